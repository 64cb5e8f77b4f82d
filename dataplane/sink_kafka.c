/* SPDX-License-Identifier: Apache-2.0 */
/* See sink_kafka.h.
 *
 *     append -> partition by key or sticky -> client's batch -> ... -> first hand-over -> ledger
 *                  stamp pushed                                      stamp popped
 *
 * Stamps are in the order of appends over all partitions, so the oldest may belong to a
 * partition that waits: those behind it wait with it. The ledger is late then, never wrong about
 * the order. */
#include "dataplane/sink_kafka.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/dead_letter.h"
#include "dataplane/ledger.h"
#include "dataplane/sink_kafka_internal.h"

#define HEADERS_MAX  (DEAD_LETTER_HEADERS_MAX + 4) /* of one written record */
#define STICKY_COUNT 64 /* records without key that go to one partition before the next */

/* Words are little-endian, as the machine's; the length goes in as 32 bits as in Java. */
uint32_t sink_kafka_hash(struct span key)
{
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const uint32_t multiplier = 0x5bd1e995;
    uint32_t hash = 0x9747b28c ^ (uint32_t)key.bytes;
    size_t i = 0;
    for (; i + 4 <= key.bytes; i += 4) {
        uint32_t word;
        memcpy(&word, key.data + i, sizeof(word));
        word *= multiplier;
        word ^= word >> 24;
        word *= multiplier;
        hash = (hash * multiplier) ^ word;
    }
    if (i < key.bytes) {
        for (size_t rest = key.bytes - i; rest > 0; rest--) {
            hash ^= (uint32_t)key.data[i + rest - 1] << (8 * (rest - 1));
        }
        hash *= multiplier;
    }
    hash ^= hash >> 13;
    hash *= multiplier;
    hash ^= hash >> 15;
    return hash & 0x7fffffff;
}

/* Learnt once: if a topic grows, keys keep their partitions until the next start. */
static bool learn_partitions(struct sink_kafka *sink, struct topic *topic)
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    ASSERT(sink->stamps_in - sink->stamps_out <= SINK_KAFKA_STAMPS);
    const int32_t count = kafka_client_partition_count(sink->client, topic->client_index);
    if (count <= 0) {
        return false;
    }
    ASSERT(count <= SINK_KAFKA_PARTITIONS_MAX);
    topic->partition_count = (uint32_t)count;
    return true;
}

uint32_t sink_kafka_partition(struct sink_kafka_turn *turn, int32_t wanted,
                              const struct record *record, uint32_t partition_count)
{
    ASSERT(partition_count > 0);
    ASSERT(wanted >= RECORD_PARTITION_NEXT);
    if (wanted >= 0) {
        return (uint32_t)wanted % partition_count;
    }
    if (wanted == RECORD_PARTITION_NEXT) {
        return turn->next++ % partition_count;
    }
    if (!record->key_is_null) {
        return sink_kafka_hash(record->key) % partition_count;
    }
    if (turn->sticky_left == 0) {
        turn->sticky = (turn->sticky + 1) % partition_count;
        turn->sticky_left = STICKY_COUNT;
    }
    turn->sticky_left--;
    return turn->sticky;
}

static uint32_t copy_headers(const struct record *record, struct kafka_header *into)
{
    ASSERT(record != NULL);
    const uint32_t count = record->header_count;
    ASSERT(count <= HEADERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        into[i] = (struct kafka_header){
            .key = record->headers[i].name,
            .value = record->headers[i].value,
            .has_value = !record->headers[i].value_is_null,
        };
    }
    return count;
}

static enum record_sink_verdict verdict_of(enum kafka_append append)
{
    switch (append) {
    case KAFKA_APPEND_OK:
        return RECORD_SINK_OK;
    case KAFKA_APPEND_TOO_LARGE:
        return RECORD_SINK_TOO_LARGE;
    default: /* a failed sink is seen through sink_kafka_has_failed, which ends the job */
        return RECORD_SINK_FULL;
    }
}

/* Remembers a record that was just appended. A full ring enters nothing but counts: the ledger is
 * a sample then, and latency of the job is not touched by it. */
static void put_stamp(struct sink_kafka *sink, uint32_t topic, struct kafka_client *client,
                      uint32_t client_sink, const struct record *record)
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    ASSERT(sink->stamps_in - sink->stamps_out <= SINK_KAFKA_STAMPS);
    struct kafka_sink_status status;
    if (sink->ledger == NULL || sink->ledger_sinks[topic] == INDEX_NONE ||
        record->arrival_ns == 0) {
        return;
    }
    if (sink->stamps_in - sink->stamps_out == SINK_KAFKA_STAMPS) {
        ledger_skipped(sink->ledger, sink->ledger_sinks[topic]);
        return;
    }
    kafka_client_sink_status(client, client_sink, &status);
    ASSERT(status.appended_count > 0);
    sink->stamps[sink->stamps_in++ & (SINK_KAFKA_STAMPS - 1)] = (struct stamp){
        .arrival_ns = record->arrival_ns,
        .appended_ns = sink->clock(NULL),
        .number = status.appended_count - 1,
        .client = client,
        .client_sink = client_sink,
        .ledger_sink = sink->ledger_sinks[topic],
    };
}

/* The plain client's sinks are kept here; a pool client finds its own by its table. */
static bool find_client_sink(struct sink_kafka *sink, struct kafka_client *client,
                             struct topic *topic, uint32_t partition, uint32_t *out)
{
    ASSERT(partition < SINK_KAFKA_PARTITIONS_MAX);
    if (topic->is_exactly_once) {
        return kafka_client_sink(client, topic->pool_index, (int32_t)partition, out);
    }
    uint32_t *index = &topic->sinks[partition];
    if (*index == INDEX_NONE &&
        !kafka_client_sink(sink->client, topic->client_index, (int32_t)partition, index)) {
        *index = INDEX_NONE;
        return false;
    }
    *out = *index;
    return true;
}

/* Not knowing the partitions yet is back-pressure, not an error: metadata is on its way. */
static enum record_sink_verdict sink_kafka_append(struct record_sink *self, uint32_t number,
                                                  int32_t wanted, const struct record *record)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    ASSERT(number < sink->topic_count);
    struct topic *topic = &sink->topics[number];
    struct kafka_header headers[HEADERS_MAX];
    if (record->header_count > HEADERS_MAX) {
        return RECORD_SINK_TOO_LARGE;
    }
    if (topic->partition_count == 0 && !learn_partitions(sink, topic)) {
        return RECORD_SINK_FULL;
    }
    const uint32_t partition =
        sink_kafka_partition(&topic->turn, wanted, record, topic->partition_count);
    struct kafka_client *client = topic->is_exactly_once ? sink_kafka_current(sink) : sink->client;
    uint32_t index;
    if (client == NULL || !find_client_sink(sink, client, topic, partition, &index)) {
        return RECORD_SINK_FULL;
    }
    const struct kafka_produce_record produced = {
        .key = record->key,
        .value = record->value,
        .has_key = !record->key_is_null,
        .has_value = !record->value_is_null,
        .headers = headers,
        .header_count = copy_headers(record, headers),
        .timestamp_ms = record->timestamp_ms,
    };
    const enum record_sink_verdict verdict =
        verdict_of(kafka_client_append(client, index, &produced));
    if (verdict == RECORD_SINK_OK) {
        if (topic->is_exactly_once) {
            sink->slots[sink->current].is_used = true;
        }
        put_stamp(sink, number, client, index, record);
    }
    return verdict;
}

static uint32_t sink_kafka_poll(struct record_sink *self, uint64_t now_ns)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    return kafka_client_poll(sink->client, now_ns) + sink_kafka_poll_pool(sink, now_ns);
}

static bool sink_kafka_flushed(struct record_sink *self)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    return kafka_client_pending(sink->client) == 0 && sink_kafka_pool_is_flushed(sink);
}

static const struct record_sink_ops sink_kafka_ops = {
    .append = sink_kafka_append,
    .poll = sink_kafka_poll,
    .flushed = sink_kafka_flushed,
    .cut = sink_kafka_cut,
    .is_settled = sink_kafka_is_settled,
    .complete = sink_kafka_complete,
    .failed = sink_kafka_failed,
};

/* The partition table is whole from the start; nothing is allocated when a partition opens. */
static int add_topic(struct sink_kafka *sink, const struct sink_kafka_topic *from,
                     struct error *error)
{
    ASSERT(sink->topic_count < SINK_KAFKA_TOPICS_MAX);
    struct topic *topic = &sink->topics[sink->topic_count];
    topic->sinks = malloc(SINK_KAFKA_PARTITIONS_MAX * sizeof(*topic->sinks));
    if (topic->sinks == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    sink->topic_count++;
    for (uint32_t i = 0; i < SINK_KAFKA_PARTITIONS_MAX; i++) {
        topic->sinks[i] = INDEX_NONE;
    }
    topic->is_exactly_once = from->exactly_once;
    bool is_good = kafka_client_topic(sink->client, from->name, &topic->client_index);
    for (uint32_t i = 0; i < sink->pool_count && is_good && from->exactly_once; i++) {
        is_good = kafka_client_topic(sink->slots[i].client, from->name, &topic->pool_index);
        ASSERT(!is_good || topic->pool_index < sink->topic_count);
    }
    if (!is_good) {
        return error_set(error, -EINVAL, "%s is no legal topic name, or there are too many",
                         from->name);
    }
    if (from->exactly_once && sink->pool_count == 0) {
        return error_set(error, -EINVAL, "%s is written exactly once, without a pool of clients",
                         from->name);
    }
    return 0;
}

int sink_kafka_create(const struct sink_kafka_config *config, struct sink_kafka **out,
                      struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(config->client != NULL);
    ASSERT(kafka_client_config(config->client)->topic_partitions_max <= SINK_KAFKA_PARTITIONS_MAX);
    *out = NULL;
    if (config->topic_count > SINK_KAFKA_TOPICS_MAX) {
        return error_set(error, -E2BIG, "%u topics are written, at most %u", config->topic_count,
                         SINK_KAFKA_TOPICS_MAX);
    }
    struct sink_kafka *sink = calloc(1, sizeof(*sink));
    if (sink == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    sink->records.ops = &sink_kafka_ops;
    sink->client = config->client;
    int status = sink_kafka_make_pool(sink, config, error);
    for (uint32_t i = 0; i < config->topic_count && status == 0; i++) {
        status = add_topic(sink, &config->topics[i], error);
    }
    if (status != 0) {
        sink_kafka_destroy(sink);
        return status;
    }
    *out = sink;
    return 0;
}

void sink_kafka_destroy(struct sink_kafka *sink)
{
    if (sink == NULL) {
        return;
    }
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        free(sink->topics[i].sinks);
    }
    sink_kafka_free_pool(sink);
    free(sink->stamps);
    free(sink);
}

struct record_sink *sink_kafka_records(struct sink_kafka *sink)
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    return &sink->records;
}

int sink_kafka_keep_ledger(struct sink_kafka *sink, struct ledger *ledger, const uint32_t *sinks,
                           uint64_t (*clock)(void *context))
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    ASSERT(sink->stamps == NULL);
    ASSERT(clock != NULL);
    sink->stamps = malloc(SINK_KAFKA_STAMPS * sizeof(*sink->stamps));
    if (sink->stamps == NULL) {
        return -ENOMEM;
    }
    /* Touched here: the lane must not meet a fresh page. */
    memset(sink->stamps, 1, SINK_KAFKA_STAMPS * sizeof(*sink->stamps));
    memcpy(sink->ledger_sinks, sinks, sink->topic_count * sizeof(*sinks));
    sink->ledger = ledger;
    sink->clock = clock;
    return 0;
}

bool sink_kafka_has_stamps(const struct sink_kafka *sink)
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    return sink->stamps_in != sink->stamps_out;
}

/* One status a run of stamps of the same partition. */
void sink_kafka_sent(struct sink_kafka *sink, uint64_t now_ns)
{
    ASSERT(sink->topic_count <= SINK_KAFKA_TOPICS_MAX);
    ASSERT(sink->stamps_in - sink->stamps_out <= SINK_KAFKA_STAMPS);
    struct kafka_sink_status status = {0};
    uint32_t known = INDEX_NONE; /* whose status it is */
    const struct kafka_client *client = NULL;
    while (sink->stamps_in != sink->stamps_out) {
        const struct stamp *stamp = &sink->stamps[sink->stamps_out & (SINK_KAFKA_STAMPS - 1)];
        if (stamp->client_sink != known || stamp->client != client) {
            known = stamp->client_sink;
            client = stamp->client;
            kafka_client_sink_status(client, known, &status);
        }
        if (stamp->number >= status.departed_count) {
            return;
        }
        ledger_sent(sink->ledger, stamp->ledger_sink, stamp->arrival_ns, stamp->appended_ns,
                    now_ns);
        sink->stamps_out++;
    }
}

uint64_t sink_kafka_lost(const struct sink_kafka *sink)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    uint64_t lost = kafka_client_counters(sink->client)->records_lost;
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        lost += kafka_client_counters(sink->slots[i].client)->records_lost;
    }
    return lost;
}

bool sink_kafka_has_failed(const struct sink_kafka *sink, int16_t *error_code)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    bool failed = kafka_client_has_failed(sink->client, error_code);
    for (uint32_t i = 0; i < sink->pool_count && !failed; i++) {
        failed = kafka_client_has_failed(sink->slots[i].client, error_code);
    }
    return failed;
}
