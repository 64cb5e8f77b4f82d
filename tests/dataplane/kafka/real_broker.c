/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a real broker, over kernel sockets; run by hand or by real_broker.sh.
 *
 *     real_broker BROKER:PORT TOPIC produce COUNT none|lz4      our client writes
 *     real_broker BROKER:PORT TOPIC consume COUNT [committed]   our client reads and checks
 *     real_broker BROKER:PORT TOPIC feed COUNT CODEC            librdkafka writes
 *     real_broker BROKER:PORT TOPIC read COUNT                  librdkafka reads and checks
 *     real_broker BROKER:PORT TOPIC ping COUNT                  our client writes and reads back
 *
 * BROKER is a dotted number. Record n goes to partition n % P with key n and a value of some 100
 * bytes that starts with n, so that a reader knows that it got each record once and in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <librdkafka/rdkafka.h>

#include "dataplane/kafka/client.h"
#include "tests/dataplane/kafka/kernel_stream.h"

#define VALUE_BYTES    160
#define PARTITIONS_MAX 64
#define PULL_MAX       256
#define PATIENCE_NS    (60 * NANOSECONDS_PER_S)

struct run {
    const char *host;
    uint16_t port;
    const char *topic;
    uint64_t count;
    struct kernel_streams streams;
    struct kafka_client *client;
    uint32_t topic_index;
    uint32_t partitions;
    uint64_t next[PARTITIONS_MAX]; /* the number that a partition's next record has */
    uint64_t seen;
};

static uint64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NANOSECONDS_PER_S + (uint64_t)time.tv_nsec;
}

/* A broker that restarts forgets producers whose newest record is older than a day by its own
 * timestamp, and with them what it would recognise as sent twice. */
static int64_t wall_ms(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

static void make_value(char value[VALUE_BYTES + 1], uint64_t number)
{
    (void)snprintf(value, VALUE_BYTES + 1,
                   "%012" PRIu64 " {\"card\":\"4000-%06" PRIu64 "\",\"amount\":\"%" PRIu64
                   ".99\",\"device\":\"%016" PRIx64 "\",\"country\":\"NL\"} ...........",
                   number, number % 100000, number % 977, number * 0x9E3779B97F4A7C15);
}

static bool check(struct run *run, uint32_t partition, const void *value, size_t bytes)
{
    char wanted[VALUE_BYTES + 1];
    make_value(wanted, run->next[partition]);
    if (bytes != strlen(wanted) || memcmp(value, wanted, bytes) != 0) {
        printf("partition %u: got \"%.*s\", wanted \"%s\"\n", partition, (int)bytes,
               (const char *)value, wanted);
        return false;
    }
    run->next[partition] += run->partitions;
    run->seen++;
    return true;
}

static void tell_events(struct run *run)
{
    struct kafka_event event;
    while (kafka_client_event(run->client, &event)) {
        printf("  event %d: %s\n", event.code, event.text);
    }
}

static uint64_t turn(struct run *run)
{
    uint64_t now_ns = now();
    (void)kernel_streams_poll(&run->streams, now_ns);
    (void)kafka_client_poll(run->client, now_ns);
    return now_ns;
}

static int open_client(struct run *run, enum kafka_codec_kind codec, bool committed)
{
    struct kafka_config config;
    kafka_config_init(&config);
    config.bootstrap_count = 1;
    (void)snprintf(config.bootstrap[0].host, KAFKA_HOST_BYTES, "%s", run->host);
    config.bootstrap[0].port = run->port;
    config.stream_receive_bytes = KERNEL_STREAM_RX_BYTES / 2;
    config.produce_codec = codec;
    config.read_committed = committed;
    struct kafka_connector connector = {.connect = kernel_stream_connect, .context = &run->streams};
    struct error error = {0};
    if (kafka_client_create(&config, &connector, &run->client, &error) != 0 ||
        !kafka_client_topic(run->client, run->topic, &run->topic_index)) {
        printf("%s\n", error.text);
        return 1;
    }
    uint64_t start = now();
    int32_t count = 0;
    while (count <= 0 && now() < start + PATIENCE_NS) {
        (void)turn(run);
        count = kafka_client_partition_count(run->client, run->topic_index);
        tell_events(run);
    }
    run->partitions = (uint32_t)count;
    return count > 0 && count <= PARTITIONS_MAX ? 0 : 1;
}

static int close_client(struct run *run, const char *what, uint64_t start, uint64_t cpu)
{
    double seconds = (double)(now() - start) / 1e9;
    double busy = (double)((uint64_t)clock() - cpu) / CLOCKS_PER_SEC;
    const struct kafka_counters *counters = kafka_client_counters(run->client);
    printf("%-8s %9" PRIu64 " records %7.3f s %9.0f/s; requests %" PRIu64 ", batches %" PRIu64
           " in %" PRIu64 " out, lost connections %" PRIu64 ", cpu %.2f s\n",
           what, run->seen, seconds, (double)run->seen / seconds, counters->requests_sent,
           counters->batches_read, counters->batches_sent, counters->connections_lost, busy);
    kafka_client_destroy(run->client);
    kernel_streams_free(&run->streams);
    return run->seen == run->count ? 0 : 1;
}

static int produce(struct run *run, enum kafka_codec_kind codec)
{
    if (open_client(run, codec, false) != 0) {
        return 1;
    }
    uint32_t sinks[PARTITIONS_MAX];
    for (uint32_t i = 0; i < run->partitions; i++) {
        (void)kafka_client_sink(run->client, run->topic_index, (int32_t)i, &sinks[i]);
    }
    uint64_t start = now();
    uint64_t cpu = (uint64_t)clock();
    uint64_t number = 0;
    while (number < run->count || kafka_client_pending(run->client) > 0) {
        if (turn(run) > start + PATIENCE_NS * 5) {
            break;
        }
        tell_events(run);
        for (int i = 0; i < 512 && number < run->count; i++) {
            char value[VALUE_BYTES + 1];
            make_value(value, number);
            struct kafka_produce_record record = {.key = {(const uint8_t *)&number, 8},
                                                  .has_key = true,
                                                  .value = kafka_span_of(value),
                                                  .has_value = true,
                                                  .timestamp_ms = wall_ms()};
            if (kafka_client_append(run->client, sinks[number % run->partitions], &record) !=
                KAFKA_APPEND_OK) {
                break;
            }
            number++;
        }
    }
    run->seen = kafka_client_counters(run->client)->records_acked;
    return close_client(run, "produce", start, cpu);
}

static void assign_all(struct run *run, enum kafka_start start)
{
    for (uint32_t i = 0; i < run->partitions; i++) {
        struct kafka_assignment assignment = {
            .topic_index = run->topic_index, .partition = (int32_t)i, .start = start};
        uint32_t source;
        (void)kafka_client_assign(run->client, &assignment, &source);
        run->next[i] = i;
    }
}

static bool pull(struct run *run)
{
    struct kafka_record records[PULL_MAX];
    uint32_t count = kafka_client_pull(run->client, records, PULL_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (!check(run, (uint32_t)records[i].partition, records[i].value.data,
                   records[i].value.bytes)) {
            printf("at offset %lld\n", (long long)records[i].offset);
            return false;
        }
    }
    return true;
}

static int consume(struct run *run, bool committed)
{
    if (open_client(run, KAFKA_CODEC_NONE, committed) != 0) {
        return 1;
    }
    assign_all(run, KAFKA_START_EARLIEST);
    uint64_t start = now();
    uint64_t cpu = (uint64_t)clock();
    while (run->seen < run->count && turn(run) < start + PATIENCE_NS) {
        tell_events(run);
        if (!pull(run)) {
            break;
        }
    }
    return close_client(run, "consume", start, cpu);
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* One record at a time: append, and wait until it comes back through the broker. */
static int ping(struct run *run)
{
    if (open_client(run, KAFKA_CODEC_NONE, false) != 0) {
        return 1;
    }
    assign_all(run, KAFKA_START_LATEST);
    uint32_t sink;
    (void)kafka_client_sink(run->client, run->topic_index, 0, &sink);
    for (uint64_t end = now() + NANOSECONDS_PER_S; now() < end;) {
        (void)turn(run);
        struct kafka_record record;
        (void)kafka_client_pull(run->client, &record, 1);
    }
    uint64_t *times = calloc(run->count, sizeof(uint64_t));
    uint64_t start = now();
    uint64_t cpu = (uint64_t)clock();
    for (; run->seen < run->count; run->seen++) {
        uint64_t sent = now();
        struct kafka_produce_record record = {.value = kafka_span_of("ping"), .has_value = true};
        (void)kafka_client_append(run->client, sink, &record);
        struct kafka_record got;
        do {
            (void)turn(run);
        } while (kafka_client_pull(run->client, &got, 1) == 0 && now() < sent + PATIENCE_NS);
        times[run->seen] = now() - sent;
    }
    qsort(times, run->count, sizeof(uint64_t), compare);
    printf("ping     p50 %.1f us, p90 %.1f, p99 %.1f, max %.1f\n",
           (double)times[run->count / 2] / 1e3, (double)times[run->count * 9 / 10] / 1e3,
           (double)times[run->count * 99 / 100] / 1e3, (double)times[run->count - 1] / 1e3);
    free(times);
    return close_client(run, "ping", start, cpu);
}

static rd_kafka_t *open_rdkafka(const struct run *run, rd_kafka_type_t type, const char *codec)
{
    char text[512];
    char bootstrap[KAFKA_HOST_BYTES + 8];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)snprintf(bootstrap, sizeof(bootstrap), "%s:%u", run->host, run->port);
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    if (type == RD_KAFKA_CONSUMER) {
        (void)rd_kafka_conf_set(conf, "group.id", "real-broker", text, sizeof(text));
    }
    if (codec != NULL) {
        (void)rd_kafka_conf_set(conf, "compression.codec", codec, text, sizeof(text));
        (void)rd_kafka_conf_set(conf, "enable.idempotence", "true", text, sizeof(text));
    }
    return rd_kafka_new(type, conf, text, sizeof(text));
}

static int find_partitions(struct run *run, rd_kafka_t *rk)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, run->topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 0, topic, &metadata, 10000);
    rd_kafka_topic_destroy(topic);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        printf("librdkafka: %s\n", rd_kafka_err2str(code));
        return 1;
    }
    run->partitions = (uint32_t)metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    return run->partitions > 0 ? 0 : 1;
}

static int feed(struct run *run, const char *codec)
{
    rd_kafka_t *rk = open_rdkafka(run, RD_KAFKA_PRODUCER, codec);
    if (rk == NULL || find_partitions(run, rk) != 0) {
        return 1;
    }
    uint64_t start = now();
    for (uint64_t number = 0; number < run->count;) {
        char value[VALUE_BYTES + 1];
        make_value(value, number);
        rd_kafka_resp_err_t code = rd_kafka_producev(
            rk, RD_KAFKA_V_TOPIC(run->topic),
            RD_KAFKA_V_PARTITION((int32_t)(number % run->partitions)),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(&number, sizeof(number)),
            RD_KAFKA_V_VALUE(value, strlen(value)), RD_KAFKA_V_END);
        number += code == RD_KAFKA_RESP_ERR_NO_ERROR;
        (void)rd_kafka_poll(rk, code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 10);
    }
    int status = rd_kafka_flush(rk, 60000) == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 1;
    printf("feed     %9" PRIu64 " records %7.3f s, %s by librdkafka\n", run->count,
           (double)(now() - start) / 1e9, codec);
    rd_kafka_destroy(rk);
    return status;
}

static int read_back(struct run *run)
{
    rd_kafka_t *rk = open_rdkafka(run, RD_KAFKA_CONSUMER, NULL);
    if (rk == NULL || find_partitions(run, rk) != 0) {
        return 1;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    for (uint32_t i = 0; i < run->partitions; i++) {
        rd_kafka_topic_partition_list_add(list, run->topic, (int32_t)i)->offset =
            RD_KAFKA_OFFSET_BEGINNING;
        run->next[i] = i;
    }
    (void)rd_kafka_assign(rk, list);
    uint64_t start = now();
    while (run->seen < run->count && now() < start + PATIENCE_NS) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        bool is_good = message == NULL || message->err != 0 ||
                       check(run, (uint32_t)message->partition, message->payload, message->len);
        if (message != NULL) {
            rd_kafka_message_destroy(message);
        }
        if (!is_good) {
            break;
        }
    }
    printf("read     %9" PRIu64 " records %7.3f s by librdkafka\n", run->seen,
           (double)(now() - start) / 1e9);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return run->seen == run->count ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 5 || strchr(argv[1], ':') == NULL) {
        printf(
            "usage: real_broker BROKER:PORT TOPIC produce|consume|feed|read|ping COUNT [CODEC]\n");
        return 2;
    }
    char host[KAFKA_HOST_BYTES];
    (void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(argv[1], ":"), argv[1]);
    struct run run = {.host = host};
    run.port = (uint16_t)strtoul(strchr(argv[1], ':') + 1, NULL, 10);
    run.topic = argv[2];
    run.count = strtoull(argv[4], NULL, 10);
    const char *extra = argc > 5 ? argv[5] : "none";
    if (strcmp(argv[3], "produce") == 0) {
        return produce(&run, strcmp(extra, "lz4") == 0 ? KAFKA_CODEC_LZ4 : KAFKA_CODEC_NONE);
    }
    if (strcmp(argv[3], "consume") == 0) {
        return consume(&run, strcmp(extra, "committed") == 0);
    }
    if (strcmp(argv[3], "ping") == 0) {
        return ping(&run);
    }
    return strcmp(argv[3], "feed") == 0 ? feed(&run, extra) : read_back(&run);
}
