/* SPDX-License-Identifier: Apache-2.0 */
/* The client's face: its config, its memory, and the turn that drives connections, metadata, fetch
 * and produce. */
#include "dataplane/kafka/client.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/kafka/core.h"
#include "dataplane/kafka/error_code.h"
#include "dataplane/kafka/fetch.h"
#include "dataplane/kafka/produce.h"
#include "dataplane/kafka/transaction.h"

#define FRAMES_MAX 16 /* of one connection in one poll */

#define RESPONSE_BYTES      (1U << 20) /* of metadata, the largest answer without a fetch */
#define RECORD_BYTES        (2U << 20) /* brokers take 1 MiB unless they are told otherwise */
#define PRODUCE_BUFFERS_MIN 16

struct kafka_client {
    struct kafka_core core;
    struct kafka_fetch fetch;
    struct kafka_produce produce;
    struct kafka_transaction transaction;
    bool is_held; /* no records are sent */
    void *owned;  /* the heap block, NULL when the caller owns the memory */
};

void kafka_config_init(struct kafka_config *config)
{
    ASSERT(config != NULL);
    *config = (struct kafka_config){
        .client_id = "penstock",
        .topics_max = 64,
        .topic_partitions_max = 1024,
        .sources_max = 1024,
        .sinks_max = 1024,
        .brokers_max = 24,
        .stream_receive_bytes = 4 << 20,
        .response_bytes_max = 32 << 20,
        .decoded_bytes_max = 64 << 20,
        .fetch_wait_ms = 500,
        .fetch_bytes_max = 1 << 20,
        .fetch_partition_bytes_max = 1 << 20,
        .produce_codec = KAFKA_CODEC_NONE,
        .produce_batch_bytes = 128 << 10,
        .produce_buffers = 64,
        .produce_record_bytes_max = 16 << 20,
        .produce_large_buffers = 4,
        .produce_request_bytes_max = 1 << 20,
        .produce_in_flight_max = 5,
        .produce_partition_in_flight_max = 5,
        .transaction_timeout_ms = 900000,
        .connect_timeout_ms = 5000,
        .request_timeout_ms = 30000,
        .retry_backoff_ms = 50,
        .reconnect_backoff_ms = 50,
        .reconnect_backoff_ms_max = 1000,
        .metadata_age_ms_max = 300000,
        .idle_close_ms = 180000,
        .seed = 1,
    };
}

/* A transactional client has the records of one checkpoint interval on their way, and no more. */
void kafka_config_make_transactional(struct kafka_config *config)
{
    ASSERT(config != NULL);
    config->is_transactional = true;
    config->sources_max = 1;
    config->decoded_bytes_max = 4096;
    config->produce_record_bytes_max = config->produce_record_bytes_max < RECORD_BYTES
                                           ? config->produce_record_bytes_max
                                           : RECORD_BYTES;
    config->response_bytes_max =
        config->response_bytes_max < RESPONSE_BYTES ? config->response_bytes_max : RESPONSE_BYTES;
    config->fetch_bytes_max = 4096;
    config->fetch_partition_bytes_max = 4096;
    config->produce_buffers = config->produce_buffers / 4 > PRODUCE_BUFFERS_MIN
                                  ? config->produce_buffers / 4
                                  : PRODUCE_BUFFERS_MIN;
    config->produce_large_buffers = config->produce_large_buffers > 0 ? 1 : 0;
}

static struct kafka_client *layout(const struct kafka_config *config, struct kafka_arena *arena)
{
    struct kafka_client *client = kafka_arena_take(arena, 1, sizeof(struct kafka_client));
    kafka_core_layout(client == NULL ? NULL : &client->core, config, arena);
    kafka_fetch_layout(client == NULL ? NULL : &client->fetch, config, arena);
    kafka_produce_layout(client == NULL ? NULL : &client->produce, config, arena);
    return client;
}

size_t kafka_client_bytes(const struct kafka_config *config)
{
    struct kafka_arena arena = {0};
    (void)layout(config, &arena);
    ASSERT(arena.used > sizeof(struct kafka_client));
    return arena.used;
}

/* One bound of the config. */
struct bound {
    const char *key;
    uint64_t value;
    uint64_t min;
    uint64_t max;
};

static int check_bounds(const struct bound *bounds, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct bound *bound = &bounds[i];
        if (bound->value < bound->min || bound->value > bound->max) {
            return error_set(error, -EINVAL, "kafka client: %s is %llu; it must be %llu to %llu",
                             bound->key, (unsigned long long)bound->value,
                             (unsigned long long)bound->min, (unsigned long long)bound->max);
        }
    }
    return 0;
}

static int check_config(const struct kafka_config *config, struct error *error)
{
    ASSERT(config != NULL);
    const struct bound bounds[] = {
        {"bootstrap_count", config->bootstrap_count, 1, KAFKA_BOOTSTRAP_MAX},
        {"address_map_count", config->address_map_count, 0, KAFKA_ADDRESS_MAP_MAX},
        {"topics_max", config->topics_max, 1, 4096},
        {"topic_partitions_max", config->topic_partitions_max, 1, 65536},
        {"sources_max", config->sources_max, 1, 65536},
        {"sinks_max", config->sinks_max, 1, 65536},
        {"brokers_max", config->brokers_max, config->bootstrap_count + 1, 1024},
        {"stream_receive_bytes", config->stream_receive_bytes, 4096, 1U << 30},
        {"response_bytes_max", config->response_bytes_max, 4096, 1U << 30},
        {"decoded_bytes_max", config->decoded_bytes_max, 4096, 1U << 30},
        {"fetch_wait_ms", config->fetch_wait_ms, 1, 60000},
        {"fetch_bytes_max", config->fetch_bytes_max, 1, config->response_bytes_max},
        {"fetch_partition_bytes_max", config->fetch_partition_bytes_max, 1,
         config->response_bytes_max},
        {"produce_batch_bytes", config->produce_batch_bytes, 512, 1U << 30},
        {"produce_buffers", config->produce_buffers, 2, 65536},
        {"produce_record_bytes_max", config->produce_record_bytes_max, config->produce_batch_bytes,
         1U << 30},
        {"produce_large_buffers", config->produce_large_buffers, 0, 1024},
        {"produce_request_bytes_max", config->produce_request_bytes_max, 1, 1U << 30},
        {"produce_in_flight_max", config->produce_in_flight_max, 1, 5},
        {"produce_partition_in_flight_max", config->produce_partition_in_flight_max, 1, 5},
        {"transaction_timeout_ms", config->transaction_timeout_ms, 1000, INT32_MAX},
        {"connect_timeout_ms", config->connect_timeout_ms, 1, 600000},
        {"request_timeout_ms", config->request_timeout_ms, 1, 600000},
        {"retry_backoff_ms", config->retry_backoff_ms, 1, 60000},
        {"reconnect_backoff_ms", config->reconnect_backoff_ms, 1, 60000},
        {"reconnect_backoff_ms_max", config->reconnect_backoff_ms_max, config->reconnect_backoff_ms,
         600000},
        {"metadata_age_ms_max", config->metadata_age_ms_max, 1, 86400000},
        {"idle_close_ms", config->idle_close_ms, 1, 86400000},
    };
    if (config->produce_codec != KAFKA_CODEC_NONE && config->produce_codec != KAFKA_CODEC_LZ4) {
        return error_set(error, -EINVAL, "kafka client: produce_codec must be none or lz4");
    }
    return check_bounds(bounds, COUNT_OF(bounds), error);
}

int kafka_client_create(const struct kafka_config *config, const struct kafka_connector *connector,
                        struct kafka_client **out, struct error *error)
{
    ASSERT(connector != NULL);
    ASSERT(out != NULL);
    ASSERT(connector->connect != NULL);
    int status = check_config(config, error);
    if (status != 0) {
        return status;
    }
    size_t bytes = kafka_client_bytes(config);
    struct kafka_arena arena = {.base = config->memory.data};
    void *owned = NULL;
    if (arena.base == NULL) {
        owned = aligned_alloc(CACHE_LINE_BYTES, bytes);
        arena.base = owned;
    } else if (config->memory.bytes < bytes || (uintptr_t)arena.base % CACHE_LINE_BYTES != 0) {
        return error_set(error, -EINVAL,
                         "kafka client: memory has %zu bytes; %zu are needed, 64-byte aligned",
                         config->memory.bytes, bytes);
    }
    if (arena.base == NULL) {
        return error_set(error, -ENOMEM, "kafka client: no %zu bytes of memory", bytes);
    }
    memset(arena.base, 0, bytes);
    struct kafka_client *client = (struct kafka_client *)(void *)arena.base;
    client->core.config = *config;
    client->core.connector = *connector;
    client->owned = owned;
    (void)layout(config, &arena);
    ASSERT(arena.used == bytes);
    kafka_core_init(&client->core);
    kafka_fetch_init(&client->fetch, &client->core);
    kafka_produce_init(&client->produce, &client->core);
    kafka_transaction_init(&client->transaction, &client->core, &client->produce);
    *out = client;
    return 0;
}

void kafka_client_destroy(struct kafka_client *client)
{
    if (client == NULL) {
        return;
    }
    uint32_t count = client->core.config.brokers_max * KAFKA_ROLE_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        kafka_connection_close(&client->core.connections[i]);
    }
    free(client->owned);
}

static void note_lost(struct kafka_client *client, uint32_t index, uint64_t now_ns)
{
    ASSERT(client != NULL);
    struct kafka_core *core = &client->core;
    struct kafka_connection *connection = &core->connections[index];
    const struct kafka_broker *broker = &core->metadata.brokers[kafka_core_broker_of(index)];
    bool was_dialling = connection->stream != NULL && connection->tx_queued == 0;
    struct kafka_event event = {.code = was_dialling ? KAFKA_EVENT_UNREACHABLE
                                                     : KAFKA_EVENT_DISCONNECTED,
                                .topic_index = -1,
                                .partition = -1,
                                .at_ns = now_ns};
    kafka_events_push(&core->events, &event, "broker %d at %.100s:%u: %s", broker->node_id,
                      broker->address.host, broker->address.port, connection->lost_reason);
    core->counters.connections_lost++;
    kafka_fetch_lost(&client->fetch, index, now_ns);
    kafka_produce_lost(&client->produce, index, now_ns);
    kafka_transaction_lost(&client->transaction, index);
    if (core->metadata_connection == index) {
        core->metadata_connection = KAFKA_NO_CONNECTION;
    }
    kafka_core_want_metadata(core);
    kafka_connection_reset(connection, kafka_core_random(core), now_ns);
}

static bool take_frame(struct kafka_client *client, uint32_t index, uint64_t now_ns)
{
    ASSERT(client != NULL);
    struct kafka_connection *connection = &client->core.connections[index];
    switch (connection->held.api) {
    case KAFKA_API_METADATA:
        return kafka_core_take_metadata(&client->core, connection, now_ns);
    case KAFKA_API_FETCH:
        return kafka_fetch_take(&client->fetch, index, now_ns);
    case KAFKA_API_LIST_OFFSETS:
        return kafka_fetch_take_offsets(&client->fetch, index, now_ns);
    case KAFKA_API_PRODUCE:
        return kafka_produce_take(&client->produce, index, now_ns);
    case KAFKA_API_FIND_COORDINATOR:
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
    case KAFKA_API_END_TXN:
        return kafka_transaction_take(&client->transaction, index, now_ns);
    case KAFKA_API_INIT_PRODUCER_ID:
        if (client->core.config.is_transactional) {
            return kafka_transaction_take(&client->transaction, index, now_ns);
        }
        return kafka_produce_take_id(&client->produce, index, now_ns);
    case KAFKA_API_API_VERSIONS:
        break;
    }
    ASSERT(false); /* the connection itself takes ApiVersions */
}

static void note_ready(struct kafka_client *client, uint32_t index, uint64_t now_ns)
{
    ASSERT(client != NULL);
    const struct kafka_broker *broker = &client->core.metadata.brokers[kafka_core_broker_of(index)];
    struct kafka_event event = {
        .code = KAFKA_EVENT_CONNECTED, .topic_index = -1, .partition = -1, .at_ns = now_ns};
    kafka_events_push(&client->core.events, &event, "broker %d at %.100s:%u", broker->node_id,
                      broker->address.host, broker->address.port);
}

static uint32_t poll_connection(struct kafka_client *client, uint32_t index, uint64_t now_ns)
{
    ASSERT(client != NULL);
    struct kafka_connection *connection = &client->core.connections[index];
    for (uint32_t work = 0; work < FRAMES_MAX; work++) {
        switch (kafka_connection_poll(connection, now_ns)) {
        case KAFKA_STEP_NOTHING:
            return work;
        case KAFKA_STEP_WORK:
            return work + 1;
        case KAFKA_STEP_READY:
            note_ready(client, index, now_ns);
            return work + 1;
        case KAFKA_STEP_FRAME:
            if (!take_frame(client, index, now_ns)) {
                client->core.counters.bad_responses++;
            }
            break;
        case KAFKA_STEP_LOST:
            note_lost(client, index, now_ns);
            return work + 1;
        }
    }
    return FRAMES_MAX;
}

/* Closes a connection that has been of no use for idle_close_ms, before a middlebox forgets it. */
static void close_idle(struct kafka_client *client, uint32_t index, uint64_t now_ns)
{
    ASSERT(client != NULL);
    struct kafka_connection *connection = &client->core.connections[index];
    uint64_t idle_ns = client->core.config.idle_close_ms * KAFKA_NANOSECONDS_PER_MS;
    if (connection->state == KAFKA_CONNECTION_READY && connection->queue_count == 0 &&
        connection->held_bytes == 0 && now_ns >= connection->used_ns + idle_ns) {
        kafka_connection_close(connection);
    }
}

uint32_t kafka_client_poll(struct kafka_client *client, uint64_t now_ns)
{
    ASSERT(client != NULL);
    uint32_t work = 0;
    uint32_t count = client->core.metadata.broker_count * KAFKA_ROLE_COUNT;
    for (uint32_t i = 0; i < count; i++) {
        if (client->core.connections[i].state == KAFKA_CONNECTION_IDLE) {
            continue;
        }
        work += poll_connection(client, i, now_ns);
        close_idle(client, i, now_ns);
    }
    work += kafka_core_poll_metadata(&client->core, now_ns);
    work += kafka_fetch_poll(&client->fetch, now_ns);
    work += kafka_transaction_poll(&client->transaction, now_ns);
    work += client->is_held ? 0 : kafka_produce_poll(&client->produce, now_ns);
    client->core.counters.events_lost = client->core.events.lost;
    return work;
}

bool kafka_client_map_address(struct kafka_client *client, const struct kafka_address_map *row)
{
    ASSERT(client != NULL);
    ASSERT(row != NULL);
    struct kafka_config *config = &client->core.config;
    ASSERT(memchr(row->advertised.host, 0, KAFKA_HOST_BYTES) != NULL);
    uint32_t at = 0;
    while (at < config->address_map_count &&
           (config->address_map[at].advertised.port != row->advertised.port ||
            strcmp(config->address_map[at].advertised.host, row->advertised.host) != 0)) {
        at++;
    }
    if (at == KAFKA_ADDRESS_MAP_MAX) {
        return false;
    }
    config->address_map[at] = *row;
    config->address_map_count += at == config->address_map_count;
    return true;
}

static bool topic_name_is_legal(const char *name)
{
    size_t bytes = strnlen(name, KAFKA_TOPIC_BYTES);
    if (bytes == 0 || bytes == KAFKA_TOPIC_BYTES || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0) {
        return false;
    }
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
           bytes;
}

bool kafka_client_topic(struct kafka_client *client, const char *name, uint32_t *out)
{
    ASSERT(name != NULL && out != NULL);
    if (!topic_name_is_legal(name)) {
        return false;
    }
    int32_t index = kafka_metadata_add_topic(&client->core.metadata, kafka_span_of(name));
    if (index < 0) {
        return false;
    }
    kafka_core_want_metadata(&client->core);
    *out = (uint32_t)index;
    return true;
}

int32_t kafka_client_partition_count(const struct kafka_client *client, uint32_t topic_index)
{
    ASSERT(topic_index < client->core.metadata.topic_count);
    const struct kafka_topic *topic = &client->core.metadata.topics[topic_index];
    return topic->is_missing ? -1 : topic->partition_count;
}

bool kafka_client_assign(struct kafka_client *client, const struct kafka_assignment *assignment,
                         uint32_t *out)
{
    return kafka_fetch_assign(&client->fetch, assignment, out);
}

void kafka_client_unassign(struct kafka_client *client, uint32_t source_index)
{
    kafka_fetch_unassign(&client->fetch, source_index);
}

void kafka_client_pause(struct kafka_client *client, uint32_t source_index)
{
    kafka_fetch_rewind(&client->fetch, source_index);
    kafka_fetch_source(&client->fetch, source_index)->is_paused = true;
}

void kafka_client_resume(struct kafka_client *client, uint32_t source_index)
{
    kafka_fetch_source(&client->fetch, source_index)->is_paused = false;
}

void kafka_client_seek(struct kafka_client *client, uint32_t source_index, int64_t offset)
{
    kafka_fetch_seek(&client->fetch, source_index, offset);
}

void kafka_client_source_status(const struct kafka_client *client, uint32_t source_index,
                                struct kafka_source_status *out)
{
    kafka_fetch_status(&client->fetch, source_index, out);
}

uint32_t kafka_client_pull(struct kafka_client *client, struct kafka_record *out,
                           uint32_t record_max)
{
    return kafka_fetch_pull(&client->fetch, out, record_max);
}

bool kafka_client_sink(struct kafka_client *client, uint32_t topic_index, int32_t partition,
                       uint32_t *out)
{
    return kafka_produce_sink(&client->produce, topic_index, partition, out);
}

enum kafka_append kafka_client_append(struct kafka_client *client, uint32_t sink_index,
                                      const struct kafka_produce_record *record)
{
    if (client->core.config.is_transactional &&
        client->transaction.state != KAFKA_TRANSACTION_OPEN) {
        return KAFKA_APPEND_FULL;
    }
    return kafka_produce_append(&client->produce, sink_index, record);
}

uint32_t kafka_client_sink_count(const struct kafka_client *client)
{
    return client->produce.sink_count;
}

uint32_t kafka_client_sinks_max(const struct kafka_client *client)
{
    return client->core.config.sinks_max;
}

bool kafka_client_has_failed(const struct kafka_client *client, int16_t *error_code)
{
    ASSERT(error_code != NULL);
    if (client->transaction.state == KAFKA_TRANSACTION_FAILED) {
        *error_code = client->transaction.error_code;
        return true;
    }
    if (client->produce.failed_count > 0) {
        *error_code = client->produce.failed_code;
        return true;
    }
    return false;
}

void kafka_client_sink_progress(const struct kafka_client *client, uint32_t sink_index,
                                uint64_t *appended_count, uint64_t *answered_count)
{
    ASSERT(sink_index < client->produce.sink_count);
    const struct kafka_sink *sink = &client->produce.sinks[sink_index];
    *appended_count = sink->appended_count;
    *answered_count = sink->acked_count + sink->lost_count;
    ASSERT(*answered_count <= *appended_count);
}

void kafka_client_transaction_start(struct kafka_client *client, const char *id)
{
    ASSERT(client->core.config.is_transactional);
    kafka_transaction_start(&client->transaction, id);
}

void kafka_client_transaction_resolve(struct kafka_client *client,
                                      const struct kafka_transaction_claim *claim)
{
    ASSERT(client->core.config.is_transactional);
    kafka_transaction_resolve(&client->transaction, claim);
}

bool kafka_client_transaction_begin(struct kafka_client *client)
{
    return kafka_transaction_begin(&client->transaction);
}

void kafka_client_transaction_end(struct kafka_client *client, bool is_commit)
{
    kafka_transaction_end(&client->transaction, is_commit);
}

void kafka_client_transaction_status(const struct kafka_client *client,
                                     struct kafka_transaction_status *out)
{
    ASSERT(out != NULL);
    const struct kafka_transaction *transaction = &client->transaction;
    *out = (struct kafka_transaction_status){.state = transaction->state,
                                             .producer_id = transaction->producer_id,
                                             .producer_epoch = transaction->producer_epoch,
                                             .error_code = transaction->error_code,
                                             .is_tainted = transaction->is_tainted};
}

void kafka_client_hold(struct kafka_client *client, bool is_held)
{
    ASSERT(client != NULL);
    client->is_held = is_held;
}

uint64_t kafka_client_pending(const struct kafka_client *client)
{
    return client->produce.pending_count;
}

void kafka_client_sink_status(const struct kafka_client *client, uint32_t sink_index,
                              struct kafka_sink_status *out)
{
    ASSERT(client != NULL);
    ASSERT(out != NULL);
    ASSERT(sink_index < client->produce.sink_count);
    const struct kafka_sink *sink = &client->produce.sinks[sink_index];
    *out = (struct kafka_sink_status){
        .is_failed = sink->is_failed,
        .error_code = sink->error_code,
        .appended_count = sink->appended_count,
        .acked_count = sink->acked_count,
        .lost_count = sink->lost_count,
        .last_acked_offset = sink->last_acked_offset,
        .handed_ns = sink->handed_ns,
        .handed_count = sink->handed_count,
        .departed_count = kafka_produce_departed(&client->produce, sink),
    };
}

bool kafka_client_event(struct kafka_client *client, struct kafka_event *out)
{
    return kafka_events_pop(&client->core.events, out);
}

const struct kafka_config *kafka_client_config(const struct kafka_client *client)
{
    ASSERT(client != NULL);
    return &client->core.config;
}

const struct kafka_counters *kafka_client_counters(const struct kafka_client *client)
{
    return &client->core.counters;
}
