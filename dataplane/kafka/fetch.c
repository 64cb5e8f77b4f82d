/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, the Fetch request, and the first walk over a response. */
#include "dataplane/kafka/fetch.h"

#include "dataplane/kafka/error_code.h"

#define WAIT_MS_SHORT      20 /* while some source may join soon */
#define PARTITION_OVERHEAD 64
#define CORRUPT_MAX        5 /* in a row at one place */

void kafka_fetch_layout(struct kafka_fetch *fetch, const struct kafka_config *config,
                        struct kafka_arena *arena)
{
    size_t pairs = (size_t)config->topics_max * config->topic_partitions_max;
    void *sources = kafka_arena_take(arena, config->sources_max, sizeof(struct kafka_source));
    void *source_of = kafka_arena_take(arena, pairs, sizeof(int32_t));
    void *topic_want = kafka_arena_take(arena, config->topics_max, sizeof(uint32_t));
    void *holds = kafka_arena_take(arena, config->brokers_max, sizeof(struct kafka_fetch_hold));
    size_t decode_bytes = (size_t)config->decoded_bytes_max + KAFKA_DECODE_SLACK_BYTES;
    void *decode = kafka_arena_take(arena, decode_bytes, 1);
    if (fetch == NULL) {
        return;
    }
    ASSERT(arena->base != NULL);
    fetch->sources = sources;
    fetch->source_of = source_of;
    fetch->topic_want = topic_want;
    fetch->holds = holds;
    fetch->decode_buffer = (struct span_mut){.data = decode, .bytes = config->decoded_bytes_max};
}

void kafka_fetch_init(struct kafka_fetch *fetch, struct kafka_core *core)
{
    ASSERT(fetch->sources != NULL);
    fetch->core = core;
    size_t pairs = (size_t)core->config.topics_max * core->config.topic_partitions_max;
    for (size_t i = 0; i < pairs; i++) {
        fetch->source_of[i] = -1;
    }
}

struct kafka_source *kafka_fetch_source(const struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    struct kafka_source *source = &fetch->sources[source_index];
    ASSERT(source->state != KAFKA_SOURCE_UNUSED);
    return source;
}

static int32_t *source_slot(const struct kafka_fetch *fetch, uint32_t topic_index,
                            int32_t partition)
{
    uint32_t width = fetch->core->config.topic_partitions_max;
    ASSERT(topic_index < fetch->core->config.topics_max);
    ASSERT(partition >= 0 && (uint32_t)partition < width);
    return &fetch->source_of[(size_t)topic_index * width + (uint32_t)partition];
}

int32_t kafka_fetch_find(const struct kafka_fetch *fetch, struct span topic, int32_t partition)
{
    int32_t topic_index = kafka_metadata_find_topic(&fetch->core->metadata, topic);
    if (topic_index < 0 || partition < 0 ||
        (uint32_t)partition >= fetch->core->config.topic_partitions_max) {
        return -1;
    }
    return *source_slot(fetch, (uint32_t)topic_index, partition);
}

/* The query that follows once the start is known. */
enum kafka_query kafka_fetch_end_query(struct kafka_source *source)
{
    switch (source->assignment.end) {
    case KAFKA_END_LATEST:
    case KAFKA_END_TIMESTAMP:
        return KAFKA_QUERY_END;
    case KAFKA_END_OFFSET:
        source->end_offset = source->assignment.end_value;
        return KAFKA_QUERY_NONE;
    case KAFKA_END_NONE:
        break;
    }
    return KAFKA_QUERY_NONE;
}

static void init_source(struct kafka_source *source, const struct kafka_assignment *assignment,
                        uint32_t partition_bytes)
{
    *source = (struct kafka_source){
        .assignment = *assignment,
        .state = KAFKA_SOURCE_STARTING,
        .query = KAFKA_QUERY_START,
        .query_on = KAFKA_NO_CONNECTION,
        .requested_on = KAFKA_NO_CONNECTION,
        .decode_on = KAFKA_NO_CONNECTION,
        .position = -1,
        .fetch_offset = -1,
        .high_watermark = -1,
        .end_offset = -1,
        .leader_epoch = -1,
        .partition_bytes = partition_bytes,
    };
    if (assignment->start == KAFKA_START_OFFSET) {
        source->position = assignment->start_value;
        source->fetch_offset = assignment->start_value;
        source->query = kafka_fetch_end_query(source);
        source->state =
            source->query == KAFKA_QUERY_NONE ? KAFKA_SOURCE_READING : KAFKA_SOURCE_STARTING;
    }
}

bool kafka_fetch_assign(struct kafka_fetch *fetch, const struct kafka_assignment *assignment,
                        uint32_t *out)
{
    ASSERT(assignment->topic_index < fetch->core->metadata.topic_count);
    const struct kafka_config *config = &fetch->core->config;
    if (assignment->partition < 0 ||
        (uint32_t)assignment->partition >= config->topic_partitions_max ||
        (assignment->start == KAFKA_START_OFFSET && assignment->start_value < 0)) {
        return false;
    }
    int32_t *slot = source_slot(fetch, assignment->topic_index, assignment->partition);
    uint32_t index = 0;
    while (index < fetch->source_end && fetch->sources[index].state != KAFKA_SOURCE_UNUSED) {
        index++;
    }
    if (*slot >= 0 || index == config->sources_max) {
        return false;
    }
    init_source(&fetch->sources[index], assignment, config->fetch_partition_bytes_max);
    *slot = (int32_t)index;
    fetch->source_end = index < fetch->source_end ? fetch->source_end : index + 1;
    *out = index;
    if (fetch->sources[index].state == KAFKA_SOURCE_READING) {
        (void)kafka_fetch_advance(fetch, index, assignment->start_value);
    }
    kafka_core_want_metadata(fetch->core);
    return true;
}

void kafka_fetch_rewind(struct kafka_fetch *fetch, uint32_t source_index)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    source->requested_on = KAFKA_NO_CONNECTION;
    source->decode_on = KAFKA_NO_CONNECTION;
    source->fetch_offset = source->position;
    source->is_caught_up = false;
    if (source->retry_at_ns == UINT64_MAX) {
        source->retry_at_ns = 0;
    }
    if (fetch->open.is_open && fetch->open.source_index == source_index) {
        fetch->open.is_open = false;
    }
}

void kafka_fetch_unassign(struct kafka_fetch *fetch, uint32_t source_index)
{
    kafka_fetch_rewind(fetch, source_index);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    *source_slot(fetch, source->assignment.topic_index, source->assignment.partition) = -1;
    source->state = KAFKA_SOURCE_UNUSED;
    while (fetch->source_end > 0 &&
           fetch->sources[fetch->source_end - 1].state == KAFKA_SOURCE_UNUSED) {
        fetch->source_end--;
    }
}

void kafka_fetch_seek(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset)
{
    ASSERT(offset >= 0);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    source->position = offset;
    kafka_fetch_rewind(fetch, source_index);
    source->query_on = KAFKA_NO_CONNECTION;
    source->query = source->end_offset < 0 ? kafka_fetch_end_query(source) : KAFKA_QUERY_NONE;
    source->state =
        source->query == KAFKA_QUERY_NONE ? KAFKA_SOURCE_READING : KAFKA_SOURCE_STARTING;
    source->fail_count = 0;
    source->corrupt_count = 0;
    source->retry_at_ns = 0;
    source->error_code = 0;
    if (source->state == KAFKA_SOURCE_READING) {
        (void)kafka_fetch_advance(fetch, source_index, offset);
    }
}

void kafka_fetch_status(const struct kafka_fetch *fetch, uint32_t source_index,
                        struct kafka_source_status *out)
{
    const struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    *out = (struct kafka_source_status){
        .state = source->state,
        .position = source->position,
        .high_watermark = source->high_watermark,
        .end_offset = source->end_offset,
        .leader_epoch = source->leader_epoch,
        .is_caught_up = source->is_caught_up,
        .is_paused = source->is_paused,
        .caught_up_ns = source->caught_up_ns,
        .error_code = source->error_code,
    };
}

struct kafka_event kafka_fetch_event(const struct kafka_fetch *fetch, uint32_t source_index,
                                     enum kafka_event_code code, int16_t error_code)
{
    const struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    return (struct kafka_event){.code = code,
                                .topic_index = (int32_t)source->assignment.topic_index,
                                .partition = source->assignment.partition,
                                .error_code = error_code,
                                .at_ns = fetch->now_ns};
}

static const char *topic_name(const struct kafka_fetch *fetch, uint32_t source_index)
{
    uint32_t topic_index = kafka_fetch_source(fetch, source_index)->assignment.topic_index;
    return fetch->core->metadata.topics[topic_index].name;
}

void kafka_fetch_fail(struct kafka_fetch *fetch, uint32_t source_index, int16_t code,
                      const char *reason)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    kafka_fetch_rewind(fetch, source_index);
    source->state = KAFKA_SOURCE_FAILED;
    source->query = KAFKA_QUERY_NONE;
    source->error_code = code;
    fetch->core->counters.partitions_failed++;
    struct kafka_event event =
        kafka_fetch_event(fetch, source_index, KAFKA_EVENT_PARTITION_FAILED, code);
    kafka_events_push(&fetch->core->events, &event, "%.100s-%d at offset %lld: %s%s%s",
                      topic_name(fetch, source_index), source->assignment.partition,
                      (long long)source->position, reason, code == 0 ? "" : ": ",
                      code == 0 ? "" : kafka_error_name(code));
}

void kafka_fetch_error(struct kafka_fetch *fetch, uint32_t source_index, int16_t code)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    ASSERT(code != 0);
    fetch->core->counters.fetch_errors++;
    if (code == KAFKA_ERROR_TOPIC_AUTHORIZATION_FAILED || code == KAFKA_ERROR_INVALID_TOPIC ||
        code == KAFKA_ERROR_UNSUPPORTED_COMPRESSION_TYPE ||
        code == KAFKA_ERROR_UNSUPPORTED_FOR_MESSAGE_FORMAT) {
        kafka_fetch_fail(fetch, source_index, code, "the broker refuses to serve it");
        return;
    }
    source->fail_count++;
    source->retry_at_ns = kafka_core_retry_at(fetch->core, source->fail_count, fetch->now_ns);
    /* 75 says that the broker is behind our metadata: a refresh would only loop. A code that
     * nobody has listed may mean anything, so it gets one. */
    if (kafka_error_wants_metadata(code) || !kafka_error_is_retriable(code)) {
        kafka_core_want_metadata(fetch->core);
    }
}

void kafka_fetch_out_of_range(struct kafka_fetch *fetch, uint32_t source_index)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    if (source->assignment.reset == KAFKA_RESET_FAIL) {
        kafka_fetch_fail(fetch, source_index, KAFKA_ERROR_OFFSET_OUT_OF_RANGE,
                         "the broker no longer holds it");
        return;
    }
    kafka_fetch_rewind(fetch, source_index);
    source->state = KAFKA_SOURCE_STARTING;
    source->query = KAFKA_QUERY_RESET;
    source->query_on = KAFKA_NO_CONNECTION;
}

void kafka_fetch_corrupt(struct kafka_fetch *fetch, uint32_t source_index, const char *reason)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    fetch->core->counters.batches_corrupt++;
    source->corrupt_count++;
    if (source->corrupt_count >= CORRUPT_MAX) {
        kafka_fetch_fail(fetch, source_index, KAFKA_ERROR_CORRUPT_MESSAGE, reason);
        return;
    }
    kafka_fetch_rewind(fetch, source_index);
    source->retry_at_ns = kafka_core_retry_at(fetch->core, source->corrupt_count, fetch->now_ns);
    struct kafka_event event = kafka_fetch_event(fetch, source_index, KAFKA_EVENT_CORRUPT_BATCH, 0);
    kafka_events_push(&fetch->core->events, &event, "%.100s-%d at offset %lld: %s, fetched again",
                      topic_name(fetch, source_index), source->assignment.partition,
                      (long long)source->position, reason);
}

static void end_source(struct kafka_fetch *fetch, uint32_t source_index)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    kafka_fetch_rewind(fetch, source_index);
    source->state = KAFKA_SOURCE_ENDED;
    struct kafka_event event =
        kafka_fetch_event(fetch, source_index, KAFKA_EVENT_PARTITION_ENDED, 0);
    kafka_events_push(&fetch->core->events, &event, "%.100s-%d ended at offset %lld",
                      topic_name(fetch, source_index), source->assignment.partition,
                      (long long)source->position);
}

bool kafka_fetch_advance(struct kafka_fetch *fetch, uint32_t source_index, int64_t position)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    if (position > source->position) {
        source->position = position;
        source->corrupt_count = 0;
    }
    if (source->fetch_offset < source->position) {
        source->fetch_offset = source->position;
    }
    if (source->end_offset >= 0 && source->position >= source->end_offset) {
        end_source(fetch, source_index);
        return false;
    }
    return true;
}

/* What a connection holds of a source must be decoded before another connection may ask for more:
 * a hold is dropped with its connection, and the answer behind it would leave a gap. */
static bool is_fetchable(const struct kafka_source *source, uint32_t connection_index,
                         uint64_t now_ns)
{
    return source->state == KAFKA_SOURCE_READING && !source->is_paused &&
           source->requested_on == KAFKA_NO_CONNECTION && source->retry_at_ns <= now_ns &&
           (source->decode_on == KAFKA_NO_CONNECTION || source->decode_on == connection_index) &&
           (source->end_offset < 0 || source->fetch_offset < source->end_offset);
}

int32_t kafka_fetch_leader(const struct kafka_fetch *fetch, const struct kafka_source *source)
{
    const struct kafka_leader *leader = kafka_metadata_leader(
        &fetch->core->metadata, source->assignment.topic_index, source->assignment.partition);
    return leader == NULL ? -1 : leader->broker_index;
}

/* Counts what a broker could be asked for now; *may_join is set when more may be due soon. */
static uint32_t count_fetchable(struct kafka_fetch *fetch, uint32_t connection_index,
                                uint64_t now_ns, bool *may_join)
{
    int32_t broker_index = (int32_t)kafka_core_broker_of(connection_index);
    uint32_t total = 0;
    memset(fetch->topic_want, 0, fetch->core->metadata.topic_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        const struct kafka_source *source = &fetch->sources[i];
        if (source->state != KAFKA_SOURCE_READING && source->state != KAFKA_SOURCE_STARTING) {
            continue;
        }
        if (kafka_fetch_leader(fetch, source) != broker_index) {
            continue;
        }
        if (is_fetchable(source, connection_index, now_ns)) {
            fetch->topic_want[source->assignment.topic_index]++;
            total++;
        } else if (source->requested_on == KAFKA_NO_CONNECTION) {
            *may_join = true;
        }
    }
    return total;
}

static void write_partition(const struct kafka_fetch *fetch, const struct kafka_source *source,
                            struct kafka_writer *writer)
{
    const struct kafka_leader *leader = kafka_metadata_leader(
        &fetch->core->metadata, source->assignment.topic_index, source->assignment.partition);
    ASSERT(leader != NULL);
    kafka_write_i32(writer, source->assignment.partition);
    kafka_write_i32(writer, leader->epoch);
    kafka_write_i64(writer, source->fetch_offset);
    kafka_write_i64(writer, -1); /* log start: for followers */
    kafka_write_i32(writer, (int32_t)source->partition_bytes);
}

static void write_topics(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns,
                         struct kafka_writer *writer)
{
    int32_t broker_index = (int32_t)kafka_core_broker_of(connection_index);
    const struct kafka_metadata *metadata = &fetch->core->metadata;
    for (uint32_t topic = 0; topic < metadata->topic_count; topic++) {
        if (fetch->topic_want[topic] == 0) {
            continue;
        }
        kafka_write_string(writer,
                           (struct span){.data = (const uint8_t *)metadata->topics[topic].name,
                                         .bytes = metadata->topics[topic].name_bytes});
        kafka_write_i32(writer, (int32_t)fetch->topic_want[topic]);
        for (uint32_t i = 0; i < fetch->source_end; i++) {
            const struct kafka_source *source = &fetch->sources[i];
            if (source->assignment.topic_index == topic &&
                is_fetchable(source, connection_index, now_ns) &&
                kafka_fetch_leader(fetch, source) == broker_index) {
                write_partition(fetch, source, writer);
            }
        }
    }
}

static uint32_t topics_wanted(const struct kafka_fetch *fetch)
{
    uint32_t count = 0;
    for (uint32_t topic = 0; topic < fetch->core->metadata.topic_count; topic++) {
        count += fetch->topic_want[topic] > 0;
    }
    return count;
}

static void mark_requested(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    int32_t broker_index = (int32_t)kafka_core_broker_of(connection_index);
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (is_fetchable(source, connection_index, now_ns) &&
            kafka_fetch_leader(fetch, source) == broker_index) {
            source->requested_on = connection_index;
        }
    }
}

static uint32_t send_fetch(struct kafka_fetch *fetch, struct kafka_connection *connection,
                           uint64_t now_ns)
{
    const struct kafka_config *config = &fetch->core->config;
    uint32_t connection_index = kafka_core_index(fetch->core, connection);
    bool may_join = false;
    if (count_fetchable(fetch, connection_index, now_ns, &may_join) == 0) {
        return 0;
    }
    if (!kafka_connection_speaks(connection, KAFKA_API_FETCH, KAFKA_FETCH_VERSION)) {
        kafka_connection_fail(connection, "the broker does not speak Fetch v11");
        return 0;
    }
    uint32_t wait_ms =
        may_join && config->fetch_wait_ms > WAIT_MS_SHORT ? WAIT_MS_SHORT : config->fetch_wait_ms;
    struct kafka_writer writer =
        kafka_connection_begin(connection, KAFKA_API_FETCH, KAFKA_FETCH_VERSION);
    kafka_write_i32(&writer, -1); /* replica: a consumer */
    kafka_write_i32(&writer, (int32_t)wait_ms);
    kafka_write_i32(&writer, 1);
    kafka_write_i32(&writer, (int32_t)config->fetch_bytes_max);
    kafka_write_i8(&writer, config->read_committed ? 1 : 0);
    kafka_write_i32(&writer, 0);  /* session id */
    kafka_write_i32(&writer, -1); /* session epoch: no session */
    kafka_write_i32(&writer, (int32_t)topics_wanted(fetch));
    write_topics(fetch, connection_index, now_ns, &writer);
    kafka_write_i32(&writer, 0); /* forgotten topics */
    kafka_write_string(&writer, kafka_span_of(""));
    if (!kafka_connection_submit(connection, &writer, 0, config->request_timeout_ms + wait_ms,
                                 now_ns)) {
        return 0;
    }
    mark_requested(fetch, connection_index, now_ns);
    return 1;
}

/* Lets sources whose leader moved leave the request that is in flight to the old one; news of a
 * leader also ends a back-off, for that is what it waited for. */
static void follow_leaders(struct kafka_fetch *fetch)
{
    if (fetch->metadata_seen == fetch->core->metadata.change_count) {
        return;
    }
    fetch->metadata_seen = fetch->core->metadata.change_count;
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (source->state == KAFKA_SOURCE_UNUSED) {
            continue;
        }
        source->retry_at_ns = source->retry_at_ns == UINT64_MAX ? UINT64_MAX : 0;
        int32_t leader = kafka_fetch_leader(fetch, source);
        if (source->requested_on != KAFKA_NO_CONNECTION && leader >= 0 &&
            (uint32_t)leader != kafka_core_broker_of(source->requested_on)) {
            source->requested_on = KAFKA_NO_CONNECTION;
        }
    }
}

static uint32_t send_fetches(struct kafka_fetch *fetch, uint64_t now_ns)
{
    struct kafka_core *core = fetch->core;
    uint32_t work = 0;
    for (uint32_t broker = core->config.bootstrap_count; broker < core->metadata.broker_count;
         broker++) {
        uint32_t index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH;
        bool may_join = false;
        if (core->connections[index].queue_count > 0 ||
            count_fetchable(fetch, index, now_ns, &may_join) == 0) {
            continue;
        }
        struct kafka_connection *connection =
            kafka_core_ready(core, broker, KAFKA_ROLE_FETCH, now_ns);
        if (connection != NULL) {
            work += send_fetch(fetch, connection, now_ns);
        }
    }
    return work;
}

/* The invariants of one source; slow builds only. */
static bool source_is_sound(const struct kafka_fetch *fetch, uint32_t source_index)
{
    const struct kafka_source *source = &fetch->sources[source_index];
    if (source->state == KAFKA_SOURCE_UNUSED) {
        return true;
    }
    ASSERT(*source_slot(fetch, source->assignment.topic_index, source->assignment.partition) ==
           (int32_t)source_index);
    ASSERT(source->state != KAFKA_SOURCE_READING || source->fetch_offset >= source->position);
    ASSERT((source->state == KAFKA_SOURCE_STARTING) == (source->query != KAFKA_QUERY_NONE));
    if (source->state != KAFKA_SOURCE_READING) {
        ASSERT(source->requested_on == KAFKA_NO_CONNECTION);
        ASSERT(source->decode_on == KAFKA_NO_CONNECTION);
    }
    if (source->decode_on != KAFKA_NO_CONNECTION) {
        ASSERT(fetch->holds[kafka_core_broker_of(source->decode_on)].is_held);
    }
    return true;
}

uint32_t kafka_fetch_poll(struct kafka_fetch *fetch, uint64_t now_ns)
{
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        ASSERT_SLOW(source_is_sound(fetch, i));
    }
    ASSERT(now_ns >= fetch->now_ns);
    fetch->now_ns = now_ns;
    if (fetch->source_end == 0) {
        return 0;
    }
    follow_leaders(fetch);
    return kafka_fetch_send_queries(fetch, now_ns) + send_fetches(fetch, now_ns);
}

/* What batch headers tell of a partition's records. */
struct walk {
    int64_t next_offset;
    size_t whole_bytes;
    size_t wanted_bytes; /* of a batch that is cut off, when it is the first */
    bool is_stopped;     /* at something that the decoder has to judge */
};

static struct walk walk_records(struct span records, int64_t fetch_offset)
{
    struct walk walk = {.next_offset = fetch_offset};
    while (walk.whole_bytes < records.bytes) {
        struct span rest = {.data = records.data + walk.whole_bytes,
                            .bytes = records.bytes - walk.whole_bytes};
        struct kafka_batch batch;
        enum kafka_batch_verdict verdict = kafka_batch_parse(rest, &batch);
        if (verdict == KAFKA_BATCH_SHORT) {
            walk.wanted_bytes = walk.whole_bytes == 0 ? batch.total_bytes : 0;
            return walk;
        }
        if (verdict != KAFKA_BATCH_OK) {
            walk.is_stopped = true;
            return walk;
        }
        int64_t next = kafka_batch_next_offset(&batch);
        walk.next_offset = next > walk.next_offset ? next : walk.next_offset;
        walk.whole_bytes += batch.total_bytes;
    }
    return walk;
}

/* The partition's limit cut its first batch: ask for as much as the batch announces. */
static void grow_limit(struct kafka_fetch *fetch, uint32_t source_index, size_t wanted_bytes)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    size_t wanted = wanted_bytes > 0 ? wanted_bytes : (size_t)source->partition_bytes * 2;
    if (wanted + PARTITION_OVERHEAD > fetch->core->config.response_bytes_max) {
        kafka_fetch_corrupt(fetch, source_index, "a batch above response_bytes_max");
        return;
    }
    if (wanted > source->partition_bytes) {
        source->partition_bytes = (uint32_t)wanted;
    }
}

static void note_records(struct kafka_fetch *fetch, uint32_t connection_index,
                         uint32_t source_index, struct span records)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    struct walk walk = walk_records(records, source->fetch_offset);
    source->is_caught_up = false;
    if (walk.whole_bytes == 0 && !walk.is_stopped) {
        grow_limit(fetch, source_index, walk.wanted_bytes);
        return;
    }
    source->fetch_offset = walk.next_offset;
    source->decode_on = connection_index;
    if (walk.is_stopped) {
        /* The decoder will fail the source or send it back; no request may pass it by. */
        source->retry_at_ns = UINT64_MAX;
    }
}

static void note_empty(struct kafka_fetch *fetch, struct kafka_source *source)
{
    fetch->core->counters.fetch_empty++;
    bool is_at_end =
        source->fetch_offset >= source->high_watermark && source->position == source->fetch_offset;
    if (is_at_end && !source->is_caught_up) {
        source->caught_up_ns = fetch->now_ns;
    }
    source->is_caught_up = is_at_end;
}

static void note_entry(struct kafka_fetch *fetch, uint32_t connection_index, uint32_t source_index,
                       const struct kafka_fetch_entry *entry, struct span body)
{
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    ASSERT(source->requested_on == connection_index);
    source->requested_on = KAFKA_NO_CONNECTION;
    if (entry->error_code == KAFKA_ERROR_OFFSET_OUT_OF_RANGE) {
        fetch->core->counters.fetch_errors++;
        if (source->position == source->fetch_offset) {
            kafka_fetch_out_of_range(fetch, source_index);
        } else {
            kafka_fetch_rewind(fetch, source_index);
        }
        return;
    }
    if (entry->error_code != 0) {
        kafka_fetch_error(fetch, source_index, entry->error_code);
        return;
    }
    source->fail_count = 0;
    source->high_watermark =
        fetch->core->config.read_committed ? entry->last_stable_offset : entry->high_watermark;
    if (entry->records_bytes == 0) {
        note_empty(fetch, source);
        return;
    }
    note_records(
        fetch, connection_index, source_index,
        (struct span){.data = body.data + entry->records_at, .bytes = entry->records_bytes});
}

/* Invariant 2: partitions that the answer left out are asked for again. */
static void release_omitted(struct kafka_fetch *fetch, uint32_t connection_index, int16_t code)
{
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (source->state == KAFKA_SOURCE_UNUSED || source->requested_on != connection_index) {
            continue;
        }
        source->requested_on = KAFKA_NO_CONNECTION;
        if (code != 0) {
            kafka_fetch_error(fetch, i, code);
        }
    }
}

bool kafka_fetch_take(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    struct kafka_connection *connection = &fetch->core->connections[connection_index];
    struct kafka_fetch_hold *hold = &fetch->holds[kafka_core_broker_of(connection_index)];
    struct span body = kafka_connection_body(connection);
    ASSERT(!hold->is_held);
    fetch->now_ns = now_ns;
    if (!kafka_fetch_is_well_formed(body)) {
        kafka_connection_fail(connection, "a Fetch response that cannot be read");
        return false;
    }
    struct kafka_fetch_cursor cursor = kafka_fetch_cursor_of(body);
    *hold = (struct kafka_fetch_hold){.is_held = true, .cursor = cursor};
    struct kafka_fetch_entry entry;
    while (kafka_fetch_cursor_next(&cursor, body, &entry)) {
        int32_t index = kafka_fetch_find(fetch, entry.topic, entry.partition);
        if (index < 0 || fetch->sources[index].requested_on != connection_index) {
            fetch->core->counters.fetch_discarded_bytes += entry.records_bytes;
            continue;
        }
        note_entry(fetch, connection_index, (uint32_t)index, &entry, body);
    }
    release_omitted(fetch, connection_index, cursor.error_code);
    fetch->core->counters.fetch_responses++;
    kafka_connection_throttle(connection, cursor.throttle_ms, now_ns);
    if (kafka_connection_can_send(connection, now_ns)) {
        (void)send_fetch(fetch, connection, now_ns);
    }
    return true;
}

void kafka_fetch_lost(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    fetch->now_ns = now_ns;
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (source->state == KAFKA_SOURCE_UNUSED) {
            continue;
        }
        if (source->requested_on == connection_index || source->decode_on == connection_index) {
            kafka_fetch_rewind(fetch, i);
            source->retry_at_ns = 0;
        }
        if (source->query_on == connection_index) {
            source->query_on = KAFKA_NO_CONNECTION;
        }
    }
    if (kafka_core_role_of(connection_index) == KAFKA_ROLE_FETCH) {
        fetch->holds[kafka_core_broker_of(connection_index)].is_held = false;
    }
}
