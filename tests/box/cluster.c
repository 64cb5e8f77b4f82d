/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. */
#include "tests/box/cluster.h"

#include <stdlib.h>
#include <time.h>

#include "tests/sim/broker_feed.h"

#define NS_PER_MS UINT64_C(1000000)

/* What a connection's request at the head waits for: its user words. */
enum waiting {
    WAITS_UNTIL_NS = 0, /* 0: nothing waits */
    WAITS_LOGGED,       /* records in the input when it was last looked at */
};

static void build_batch(struct span value, struct bytes *out)
{
    struct bytes record = {0};
    struct bytes body = {0};
    bytes_i8(&body, 0);
    bytes_varint(&body, 0);
    bytes_varint(&body, 0);
    bytes_varint(&body, -1);
    bytes_varint(&body, (int64_t)value.bytes);
    bytes_put(&body, value.data, value.bytes);
    bytes_varint(&body, 0);
    bytes_varint(&record, (int64_t)body.count);
    bytes_put(&record, body.data, body.count);
    const struct feed_header header = {
        .base_timestamp = 1700000000000,
        .max_timestamp = 1700000000000,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .record_count = 1,
    };
    feed_build(&header, (struct span){.data = record.data, .bytes = record.count}, out);
    bytes_free(&body);
    bytes_free(&record);
}

struct cluster *cluster_create(const struct cluster_config *config)
{
    const struct broker_config broker = {
        .seed = 1,
        .nodes = 1,
        .metadata_version_max = 7,
        .fragment_bytes_max = 1 << 20,
        .send_bytes_max = 1 << 20,
        .receive_bytes_max = 1 << 20,
        .batch_bytes_max = 4 << 20,
    };
    const struct tcp_server_config server = {
        .port = config->port,
        .ip4 = BROKER_IP4,
        .tcp_port = BROKER_PORT,
        .misroute_ppm = config->misroute_ppm,
    };
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    ASSERT(cluster != NULL);
    cluster->config = *config;
    cluster->broker = broker_create(&broker);
    cluster->server = tcp_server_create(&server);
    cluster->input = broker_add_topic(cluster->broker, "payments", config->partitions);
    for (uint32_t i = 0; config->topics[i] != NULL; i++) {
        struct broker_topic *topic = broker_add_topic(cluster->broker, config->topics[i], 1);
        cluster->output = i == 0 ? topic : cluster->output;
    }
    cluster->batches = calloc(config->payment_count, sizeof(*cluster->batches));
    cluster->seen = calloc(config->payment_count + 1, 1);
    ASSERT(cluster->batches != NULL && cluster->seen != NULL && cluster->output != NULL);
    for (uint32_t i = 0; i < config->payment_count; i++) {
        build_batch(config->payments[i], &cluster->batches[i]);
    }
    histogram_init(&cluster->outside);
    return cluster;
}

void cluster_destroy(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->config.payment_count; i++) {
        bytes_free(&cluster->batches[i]);
    }
    free(cluster->batches);
    free(cluster->seen);
    bytes_free(&cluster->answer);
    tcp_server_destroy(cluster->server);
    broker_destroy(cluster->broker);
    free(cluster);
}

void cluster_begin(struct cluster *cluster, uint64_t now_ns)
{
    cluster->start_ns = now_ns;
}

static uint64_t due_ns(const struct cluster *cluster, uint32_t number)
{
    return cluster->start_ns + (uint64_t)((double)number * 1e9 / cluster->config.rate);
}

static void feed(struct cluster *cluster, uint64_t now_ns)
{
    const uint32_t count = cluster->config.payment_count;
    while (cluster->start_ns != 0 && cluster->next < count &&
           due_ns(cluster, cluster->next) <= now_ns) {
        const struct bytes *batch = &cluster->batches[cluster->next];
        const uint64_t late_ns = now_ns - due_ns(cluster, cluster->next);
        cluster->late_ns_max = late_ns > cluster->late_ns_max ? late_ns : cluster->late_ns_max;
        struct broker_partition *partition =
            &cluster->input->partitions[cluster->next % cluster->config.partitions];
        (void)broker_log_append(partition,
                                (struct span){.data = batch->data, .bytes = batch->count}, 0);
        cluster->next++;
    }
}

/* An answer arrived: finds whose it is. */
static void note_answer(struct cluster *cluster, struct span value, uint64_t now_ns)
{
    static const char name[] = "\"id\":";
    const uint8_t *at = memmem(value.data, value.bytes, name, sizeof(name) - 1);
    uint64_t id = 0;
    for (at = at == NULL ? NULL : at + sizeof(name) - 1;
         at != NULL && at < value.data + value.bytes && *at >= '0' && *at <= '9'; at++) {
        id = id * 10 + (uint64_t)(*at - '0');
    }
    if (id == 0 || id > cluster->config.payment_count) {
        cluster->strange_count++;
        return;
    }
    if (cluster->seen[id] != 0) {
        cluster->doubled_count++;
        return;
    }
    cluster->seen[id] = 1;
    cluster->answered_count++;
    if (id > cluster->config.warm_count) {
        histogram_record(&cluster->outside, now_ns - due_ns(cluster, (uint32_t)id - 1), 1);
    }
}

static void note_batch(struct cluster *cluster, const struct broker_batch *batch, uint64_t now_ns)
{
    const uint8_t *at = batch->data + 61;
    const uint8_t *end = batch->data + batch->bytes;
    const uint32_t count = load_be32(batch->data + 57);
    for (uint32_t i = 0; i < count && at < end; i++) {
        const int64_t bytes = broker_varint(&at, end);
        const uint8_t *next = at + bytes;
        at++; /* attributes */
        (void)broker_varint(&at, end);
        (void)broker_varint(&at, end);
        const int64_t key_bytes = broker_varint(&at, end);
        at += key_bytes > 0 ? key_bytes : 0;
        const int64_t value_bytes = broker_varint(&at, end);
        note_answer(cluster, (struct span){at, (size_t)value_bytes}, now_ns);
        at = next;
    }
}

static uint64_t read_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

/* The moment is read here and not at the turn's start: nothing is counted too short. */
static void note_answers(struct cluster *cluster)
{
    const uint64_t now_ns = read_clock();
    for (uint32_t p = 0; p < cluster->output->partition_count; p++) {
        const struct broker_partition *partition = &cluster->output->partitions[p];
        while (cluster->seen_batches[p] < partition->batch_count) {
            note_batch(cluster, &partition->batches[cluster->seen_batches[p]++], now_ns);
        }
    }
}

static uint64_t logged(const struct cluster *cluster)
{
    uint64_t sum = 1;
    for (uint32_t p = 0; p < cluster->input->partition_count; p++) {
        sum += (uint64_t)cluster->input->partitions[p].next_offset;
    }
    return sum;
}

/* Works on the request at the head; false when there is none or it has to wait. */
static bool answer_one(struct cluster *cluster, struct tcp_server_connection *connection)
{
    const uint64_t now_ns = cluster->broker->now_ns;
    if (connection->in_bytes < 4 || connection->in_bytes < 4 + (size_t)load_be32(connection->in)) {
        return false;
    }
    uint64_t *waits = connection->user;
    const struct span request = {connection->in + 4, load_be32(connection->in)};
    if (waits[WAITS_UNTIL_NS] == 0) {
        waits[WAITS_UNTIL_NS] = now_ns + broker_fetch_wait_ms(request) * NS_PER_MS + 1;
        waits[WAITS_LOGGED] = 0;
    }
    const bool may_wait = now_ns < waits[WAITS_UNTIL_NS];
    if (may_wait && waits[WAITS_LOGGED] == logged(cluster)) {
        return false;
    }
    waits[WAITS_LOGGED] = logged(cluster);
    cluster->answer.count = 0;
    bytes_i32(&cluster->answer, 0);
    const int status = broker_answer(cluster->broker, 0, request, may_wait, &cluster->answer);
    ASSERT(status >= 0);
    if (status == 1) {
        return false;
    }
    store_be32(cluster->answer.data, (uint32_t)(cluster->answer.count - 4));
    waits[WAITS_UNTIL_NS] = 0;
    tcp_server_consume(connection, 4 + request.bytes);
    tcp_server_send(connection, cluster->answer.data, cluster->answer.count);
    return true;
}

void cluster_poll(struct cluster *cluster, uint64_t now_ns)
{
    cluster->broker->now_ns = now_ns;
    feed(cluster, now_ns);
    (void)tcp_server_poll(cluster->server, now_ns);
    for (uint32_t i = 0; i < TCP_SERVER_CONNECTIONS_MAX; i++) {
        struct tcp_server_connection *connection = &cluster->server->connections[i];
        while (connection->is_open && answer_one(cluster, connection)) {
            note_answers(cluster);
        }
    }
}
