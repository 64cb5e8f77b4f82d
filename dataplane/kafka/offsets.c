/* SPDX-License-Identifier: Apache-2.0 */
/* ListOffsets v2: where a source starts, where it ends, where it goes after a reset. Asked of the
 * leader only, on the control connection, so that no long poll is in the way.
 *
 *   request:  replica i32 = -1, isolation i8, [topic: name, [partition i32, timestamp i64]]
 *   response: throttle i32, [topic: name, [partition i32, error i16, timestamp i64, offset i64]] */
#include "dataplane/kafka/error_code.h"
#include "dataplane/kafka/fetch.h"

#define LIST_OFFSETS_VERSION 2
#define TIMESTAMP_LATEST     (-1)
#define TIMESTAMP_EARLIEST   (-2)
#define TOPIC_BYTES_MIN      6
#define PARTITION_BYTES      22

/* Negative timestamps are markers of the protocol, not times. */
static int64_t wanted_timestamp(const struct kafka_source *source)
{
    ASSERT(source != NULL);
    const struct kafka_assignment *assignment = &source->assignment;
    ASSERT(source->query != KAFKA_QUERY_NONE);
    if (source->query == KAFKA_QUERY_START && assignment->start == KAFKA_START_EARLIEST) {
        return TIMESTAMP_EARLIEST;
    }
    if (source->query == KAFKA_QUERY_START && assignment->start == KAFKA_START_TIMESTAMP) {
        return assignment->start_value;
    }
    if (source->query == KAFKA_QUERY_END && assignment->end == KAFKA_END_TIMESTAMP) {
        return assignment->end_value;
    }
    if (source->query == KAFKA_QUERY_RESET && assignment->reset == KAFKA_RESET_EARLIEST) {
        return TIMESTAMP_EARLIEST;
    }
    return TIMESTAMP_LATEST;
}

/* Asked twice for one request, when it is counted and when it is written; nothing may change in
 * between. */
static bool is_due(const struct kafka_fetch *fetch, const struct kafka_source *source,
                   uint32_t broker, uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    return source->state == KAFKA_SOURCE_STARTING && source->query != KAFKA_QUERY_NONE &&
           source->query_on == KAFKA_NO_CONNECTION && source->retry_at_ns <= now_ns &&
           kafka_fetch_leader(fetch, source) == (int32_t)broker;
}

/* topic_want is scratch that Fetch and ListOffsets share: each send fills it anew. */
static uint32_t count_due(struct kafka_fetch *fetch, uint32_t broker, uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    uint32_t total = 0;
    memset(fetch->topic_want, 0, fetch->core->metadata.topic_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        if (is_due(fetch, &fetch->sources[i], broker, now_ns)) {
            fetch->topic_want[fetch->sources[i].assignment.topic_index]++;
            total++;
        }
    }
    return total;
}

static void write_topic(const struct kafka_fetch *fetch, uint32_t topic, uint32_t broker,
                        uint64_t now_ns, struct kafka_writer *writer)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT(writer->at <= writer->capacity);
    const struct kafka_topic *entry = &fetch->core->metadata.topics[topic];
    kafka_write_string(
        writer, (struct span){.data = (const uint8_t *)entry->name, .bytes = entry->name_bytes});
    kafka_write_i32(writer, (int32_t)fetch->topic_want[topic]);
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        const struct kafka_source *source = &fetch->sources[i];
        if (source->assignment.topic_index == topic && is_due(fetch, source, broker, now_ns)) {
            kafka_write_i32(writer, source->assignment.partition);
            kafka_write_i64(writer, wanted_timestamp(source));
        }
    }
}

static bool submit(struct kafka_fetch *fetch, struct kafka_connection *connection, uint32_t broker,
                   uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    const struct kafka_config *config = &fetch->core->config;
    uint32_t topic_count = fetch->core->metadata.topic_count;
    uint32_t wanted = 0;
    for (uint32_t topic = 0; topic < topic_count; topic++) {
        wanted += fetch->topic_want[topic] > 0;
    }
    ASSERT(wanted > 0);
    struct kafka_writer writer =
        kafka_connection_begin(connection, KAFKA_API_LIST_OFFSETS, LIST_OFFSETS_VERSION);
    kafka_write_i32(&writer, -1); /* replica: a consumer */
    kafka_write_i8(&writer, config->read_committed ? 1 : 0);
    kafka_write_i32(&writer, (int32_t)wanted);
    for (uint32_t topic = 0; topic < topic_count; topic++) {
        if (fetch->topic_want[topic] > 0) {
            write_topic(fetch, topic, broker, now_ns, &writer);
        }
    }
    return kafka_connection_submit(connection, &writer, ++fetch->query_token,
                                   config->request_timeout_ms, now_ns);
}

/* query_token ties an answer to the question: after a seek an older answer for the same
 * partition may still come. */
static uint32_t send_query(struct kafka_fetch *fetch, uint32_t broker, uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_connection *connection =
        kafka_core_ready(fetch->core, broker, KAFKA_ROLE_CONTROL, now_ns);
    if (connection == NULL) {
        return 0;
    }
    if (!kafka_connection_speaks(connection, KAFKA_API_LIST_OFFSETS, LIST_OFFSETS_VERSION)) {
        kafka_connection_fail(connection, "the broker does not speak ListOffsets v2");
        return 0;
    }
    if (!submit(fetch, connection, broker, now_ns)) {
        return 0;
    }
    uint32_t connection_index = kafka_core_index(fetch->core, connection);
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        if (is_due(fetch, &fetch->sources[i], broker, now_ns)) {
            fetch->sources[i].query_on = connection_index;
            fetch->sources[i].query_token = fetch->query_token;
        }
    }
    return 1;
}

/* The usual case by far: every source reads, and no broker needs to be looked at. */
static bool any_query(const struct kafka_fetch *fetch)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        if (fetch->sources[i].state == KAFKA_SOURCE_STARTING) {
            return true;
        }
    }
    return false;
}

uint32_t kafka_fetch_send_queries(struct kafka_fetch *fetch, uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    if (!any_query(fetch)) {
        return 0;
    }
    uint32_t work = 0;
    uint32_t first = fetch->core->config.bootstrap_count;
    for (uint32_t broker = first; broker < fetch->core->metadata.broker_count; broker++) {
        if (count_due(fetch, broker, now_ns) > 0) {
            work += send_query(fetch, broker, now_ns);
        }
    }
    return work;
}

/* The end may lie at or below the start, then the source ends at once. */
static void start_reading(struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    ASSERT(source->position >= 0);
    source->query = KAFKA_QUERY_NONE;
    source->state = KAFKA_SOURCE_READING;
    source->fetch_offset = source->position;
    (void)kafka_fetch_advance(fetch, source_index, source->position);
}

static void take_start(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    source->position = offset;
    source->query = kafka_fetch_end_query(source);
    if (source->query == KAFKA_QUERY_NONE) {
        start_reading(fetch, source_index);
    }
}

/* A jump loses records or repeats them; it is an event and a counter, never silent. */
static void take_reset(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset)
{
    ASSERT(fetch != NULL);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    struct kafka_event event = kafka_fetch_event(fetch, source_index, KAFKA_EVENT_OFFSET_RESET, 0);
    const bool is_forward = offset >= source->position;
    const int64_t distance = is_forward ? offset - source->position : source->position - offset;
    kafka_events_push(&fetch->core->events, &event,
                      "%.100s-%d: offset %lld is out of range, reading on at %lld: %lld offsets %s",
                      fetch->core->metadata.topics[source->assignment.topic_index].name,
                      source->assignment.partition, (long long)source->position, (long long)offset,
                      (long long)distance, is_forward ? "are skipped" : "back");
    fetch->core->counters.offset_resets++;
    fetch->core->counters.offsets_skipped += is_forward ? (uint64_t)distance : 0;
    source->position = offset;
    start_reading(fetch, source_index);
}

/* -1 means that no record is as young as the timestamp: then the start, or the end, is the log's
 * end. */
static void take_offset(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    if (offset < 0 && source->query == KAFKA_QUERY_START) {
        source->query = KAFKA_QUERY_START_LATEST;
        return;
    }
    if (offset < 0 && source->query == KAFKA_QUERY_END) {
        source->query = KAFKA_QUERY_END_LATEST;
        return;
    }
    if (offset < 0) {
        kafka_fetch_error(fetch, source_index, KAFKA_ERROR_UNKNOWN_SERVER_ERROR);
        return;
    }
    source->fail_count = 0;
    if (source->query == KAFKA_QUERY_RESET) {
        take_reset(fetch, source_index, offset);
    } else if (source->query == KAFKA_QUERY_START || source->query == KAFKA_QUERY_START_LATEST) {
        take_start(fetch, source_index, offset);
    } else {
        source->end_offset = offset;
        start_reading(fetch, source_index);
    }
}

static bool is_asked(const struct kafka_fetch *fetch, const struct kafka_source *source,
                     uint32_t connection_index)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    return source->query_on == connection_index &&
           source->query_token == fetch->core->connections[connection_index].held.token;
}

static void take_partition(struct kafka_fetch *fetch, uint32_t connection_index, struct span topic,
                           struct kafka_reader *reader)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->core != NULL);
    int32_t partition = kafka_read_i32(reader);
    int16_t code = kafka_read_i16(reader);
    (void)kafka_read_i64(reader); /* timestamp */
    int64_t offset = kafka_read_i64(reader);
    int32_t index = reader->bad ? -1 : kafka_fetch_find(fetch, topic, partition);
    if (index < 0 || !is_asked(fetch, &fetch->sources[index], connection_index)) {
        return;
    }
    struct kafka_source *source = &fetch->sources[index];
    ASSERT(source->query != KAFKA_QUERY_NONE);
    source->query_on = KAFKA_NO_CONNECTION;
    if (code != 0) {
        kafka_fetch_error(fetch, (uint32_t)index, code);
        return;
    }
    take_offset(fetch, (uint32_t)index, offset);
}

static bool take_topics(struct kafka_fetch *fetch, uint32_t connection_index, struct span body)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_reader reader = kafka_reader_of(body);
    int32_t throttle_ms = kafka_read_i32(&reader);
    uint32_t topic_count = kafka_read_array(&reader, TOPIC_BYTES_MIN);
    for (uint32_t i = 0; i < topic_count && !reader.bad; i++) {
        struct span topic = kafka_read_string(&reader);
        uint32_t count = kafka_read_array(&reader, PARTITION_BYTES);
        for (uint32_t k = 0; k < count && !reader.bad; k++) {
            take_partition(fetch, connection_index, topic, &reader);
        }
    }
    kafka_connection_throttle(&fetch->core->connections[connection_index], throttle_ms,
                              fetch->now_ns);
    return !reader.bad && reader.at == reader.bytes;
}

bool kafka_fetch_take_offsets(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->core != NULL);
    struct kafka_connection *connection = &fetch->core->connections[connection_index];
    ASSERT(connection->held.api == KAFKA_API_LIST_OFFSETS);
    fetch->now_ns = now_ns;
    if (!take_topics(fetch, connection_index, kafka_connection_body(connection))) {
        kafka_connection_fail(connection, "a ListOffsets response that cannot be read");
        return false;
    }
    /* What the answer left out is asked for again, later. */
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (source->state == KAFKA_SOURCE_STARTING && is_asked(fetch, source, connection_index)) {
            source->query_on = KAFKA_NO_CONNECTION;
            kafka_fetch_error(fetch, i, KAFKA_ERROR_UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
    kafka_connection_done(connection, now_ns);
    return true;
}
