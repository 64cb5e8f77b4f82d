/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, the Fetch request, and the first walk over a response.
 *
 *     request v11: replica i32 = -1, max wait i32, min bytes i32 = 1, max bytes i32, isolation i8,
 *                  session id i32 = 0, session epoch i32 = -1, [topic: name, [partition i32,
 *                  leader epoch i32, fetch offset i64, log start i64 = -1, max bytes i32]],
 *                  [forgotten topics], rack = ""
 *
 * The life of a source:
 *
 *     assign -> STARTING --ListOffsets--> READING --end_offset--> ENDED
 *                   ^                        |
 *                   +------ out of range ----+---- refused, corrupt CORRUPT_MAX times --> FAILED
 *
 * The numbers below are those of the invariants in fetch.h. */
#include "dataplane/kafka/fetch.h"

#include "dataplane/kafka/error_code.h"

#define WAIT_MS_SHORT      20 /* while some source may join soon */
#define PARTITION_OVERHEAD 64
#define CORRUPT_MAX        5 /* in a row at one place */

/* Called twice: with fetch NULL it only measures, so that the caller can bring one block of
 * memory for the whole client. Both runs must take the same pieces in the same order. */
void kafka_fetch_layout(struct kafka_fetch *fetch, const struct kafka_config *config,
                        struct kafka_arena *arena)
{
    ASSERT(config != NULL);
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
    ASSERT(fetch != NULL);
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

/* One flat table from (topic, partition) to source, so that an answer's partitions are found
 * without a search; -1 where nothing is assigned. */
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
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
    ASSERT(source != NULL);
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

/* A start by offset needs no question to the broker: such a source reads at once, unless its end
 * has to be asked for. */
static void init_source(struct kafka_source *source, const struct kafka_assignment *assignment,
                        uint32_t partition_bytes)
{
    ASSERT(source != NULL);
    ASSERT(assignment != NULL);
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

/* A partition that is not read is a failure, whoever looks at what assign returns. */
static void report_full(struct kafka_fetch *fetch, const struct kafka_assignment *assignment)
{
    ASSERT(fetch->core != NULL);
    ASSERT(assignment->topic_index < fetch->core->metadata.topic_count);
    struct kafka_event event = {.code = KAFKA_EVENT_PARTITION_FAILED,
                                .topic_index = (int32_t)assignment->topic_index,
                                .partition = assignment->partition,
                                .at_ns = fetch->now_ns};
    kafka_events_push(&fetch->core->events, &event,
                      "%.100s-%d cannot be read: there is room for %u partitions a table and lane",
                      fetch->core->metadata.topics[assignment->topic_index].name,
                      assignment->partition, fetch->core->config.sources_max);
}

/* Source numbers are reused, the lowest free one first: source_end, which every loop here runs
 * to, stays near the number of sources in use. */
bool kafka_fetch_assign(struct kafka_fetch *fetch, const struct kafka_assignment *assignment,
                        uint32_t *out)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT(assignment != NULL);
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
    if (*slot < 0 && index == config->sources_max) {
        report_full(fetch, assignment);
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

/* Invariant 3. Whatever is in flight or held is disowned rather than cancelled: the answer finds
 * requested_on changed and is counted as discarded bytes. */
void kafka_fetch_rewind(struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    source->requested_on = KAFKA_NO_CONNECTION;
    source->decode_on = KAFKA_NO_CONNECTION;
    source->fetch_offset = source->position;
    source->is_caught_up = false;
    /* UINT64_MAX stands for "until the decoder has judged" (see note_records), and that is over
     * now. */
    if (source->retry_at_ns == UINT64_MAX) {
        source->retry_at_ns = 0;
    }
    if (fetch->open.is_open && fetch->open.source_index == source_index) {
        fetch->open.is_open = false;
    }
}

void kafka_fetch_unassign(struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
    kafka_fetch_rewind(fetch, source_index);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    *source_slot(fetch, source->assignment.topic_index, source->assignment.partition) = -1;
    source->state = KAFKA_SOURCE_UNUSED;
    /* Holes in the middle wait for the next assignment. */
    while (fetch->source_end > 0 &&
           fetch->sources[fetch->source_end - 1].state == KAFKA_SOURCE_UNUSED) {
        fetch->source_end--;
    }
}

/* An end that is known already stays: seeking moves the start of what is read, not the bound
 * that the job was given. */
void kafka_fetch_seek(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
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
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
    const struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    return (struct kafka_event){.code = code,
                                .topic_index = (int32_t)source->assignment.topic_index,
                                .partition = source->assignment.partition,
                                .error_code = error_code,
                                .at_ns = fetch->now_ns};
}

static const char *topic_name(const struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    uint32_t topic_index = kafka_fetch_source(fetch, source_index)->assignment.topic_index;
    return fetch->core->metadata.topics[topic_index].name;
}

/* The one way into FAILED. The offset in the event is the first record that was not handed up,
 * which is where a person would look in the log. */
void kafka_fetch_fail(struct kafka_fetch *fetch, uint32_t source_index, int16_t code,
                      const char *reason)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* Four codes will not change by waiting: rights, names, and formats that this client cannot
 * read. All others are retried for ever, with a back-off, since brokers come back. */
void kafka_fetch_error(struct kafka_fetch *fetch, uint32_t source_index, int16_t code)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
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

/* The log was cut (retention, or an unclean leader election) below or above what is asked for.
 * The table's auto.offset.reset says whether to jump or to stop. */
void kafka_fetch_out_of_range(struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* A flipped bit on the way is gone at the next try; one on the broker's disk is not. CORRUPT_MAX
 * tries at one position tell the two apart; progress sets the count back. */
void kafka_fetch_corrupt(struct kafka_fetch *fetch, uint32_t source_index, const char *reason)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* The broker may have sent records at and above the end in the same batch; they are dropped with
 * the rewind. */
static void end_source(struct kafka_fetch *fetch, uint32_t source_index)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->core != NULL);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    kafka_fetch_rewind(fetch, source_index);
    source->state = KAFKA_SOURCE_ENDED;
    struct kafka_event event =
        kafka_fetch_event(fetch, source_index, KAFKA_EVENT_PARTITION_ENDED, 0);
    kafka_events_push(&fetch->core->events, &event, "%.100s-%d ended at offset %lld",
                      topic_name(fetch, source_index), source->assignment.partition,
                      (long long)source->position);
}

/* Invariant 1: position never falls here. Offsets may jump ahead: compaction and control batches
 * leave holes. */
bool kafka_fetch_advance(struct kafka_fetch *fetch, uint32_t source_index, int64_t position)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
    ASSERT(source != NULL);
    return source->state == KAFKA_SOURCE_READING && !source->is_paused &&
           source->requested_on == KAFKA_NO_CONNECTION && source->retry_at_ns <= now_ns &&
           (source->decode_on == KAFKA_NO_CONNECTION || source->decode_on == connection_index) &&
           (source->end_offset < 0 || source->fetch_offset < source->end_offset);
}

int32_t kafka_fetch_leader(const struct kafka_fetch *fetch, const struct kafka_source *source)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    const struct kafka_leader *leader = kafka_metadata_leader(
        &fetch->core->metadata, source->assignment.topic_index, source->assignment.partition);
    return leader == NULL ? -1 : leader->broker_index;
}

/* Counts what a broker could be asked for now; *may_join is set when more may be due soon. */
static uint32_t count_fetchable(struct kafka_fetch *fetch, uint32_t connection_index,
                                uint64_t now_ns, bool *may_join)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* The leader's epoch fences: a broker that has been deposed, or has not heard of its election
 * yet, answers 74 or 75 instead of serving a log that may be cut. */
static void write_partition(const struct kafka_fetch *fetch, const struct kafka_source *source,
                            struct kafka_writer *writer)
{
    ASSERT(fetch->core != NULL);
    const struct kafka_leader *leader = kafka_metadata_leader(
        &fetch->core->metadata, source->assignment.topic_index, source->assignment.partition);
    ASSERT(leader != NULL);
    kafka_write_i32(writer, source->assignment.partition);
    kafka_write_i32(writer, leader->epoch);
    kafka_write_i64(writer, source->fetch_offset);
    kafka_write_i64(writer, -1); /* log start: for followers */
    kafka_write_i32(writer, (int32_t)source->partition_bytes);
}

/* Fetch groups partitions by topic, the sources stand in order of assignment. Going over all
 * sources once a topic keeps memory flat and costs nothing at a few hundred of them. */
static void write_topics(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns,
                         struct kafka_writer *writer)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    uint32_t count = 0;
    for (uint32_t topic = 0; topic < fetch->core->metadata.topic_count; topic++) {
        count += fetch->topic_want[topic] > 0;
    }
    return count;
}

/* Invariant 2 begins here, after the request is queued whole: exactly the sources that
 * write_topics wrote, since both ask is_fetchable at the same time. */
static void mark_requested(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->core != NULL);
    int32_t broker_index = (int32_t)kafka_core_broker_of(connection_index);
    for (uint32_t i = 0; i < fetch->source_end; i++) {
        struct kafka_source *source = &fetch->sources[i];
        if (is_fetchable(source, connection_index, now_ns) &&
            kafka_fetch_leader(fetch, source) == broker_index) {
            source->requested_on = connection_index;
        }
    }
}

/* Sessions (KIP-227) would save bytes per request, but each poll asks for all partitions of a
 * broker anyhow and a session is one more state to lose. */
static uint32_t send_fetch(struct kafka_fetch *fetch, struct kafka_connection *connection,
                           uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
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
    /* The long poll blocks the connection. A source that comes back from a pause or a back-off
     * meanwhile would wait for it to end, so the poll is short while one is about to. */
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
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* Bootstrap addresses stand first in the broker table and lead nothing: their node ids are not
 * known. */
static uint32_t send_fetches(struct kafka_fetch *fetch, uint64_t now_ns)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_core *core = fetch->core;
    uint32_t work = 0;
    for (uint32_t broker = core->config.bootstrap_count; broker < core->metadata.broker_count;
         broker++) {
        uint32_t index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH;
        bool may_join = false;
        /* One fetch at a time: the next goes out when the answer is taken note of, before it is
         * decoded. */
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

/* The first walk. It reads headers only and believes them: a batch with a bad checksum is found
 * by the second walk, which falls back by invariant 3. */
static struct walk walk_records(struct span records, int64_t fetch_offset)
{
    ASSERT_SLOW(records.data != NULL || records.bytes == 0);
    struct walk walk = {.next_offset = fetch_offset};
    while (walk.whole_bytes < records.bytes) {
        struct span rest = {.data = records.data + walk.whole_bytes,
                            .bytes = records.bytes - walk.whole_bytes};
        struct kafka_batch batch;
        enum kafka_batch_verdict verdict = kafka_batch_parse(rest, &batch);
        if (verdict == KAFKA_BATCH_SHORT) {
            /* A broker cuts its answer at the limit, often within a batch. What follows is
             * fetched again; only a first batch that is cut would come back cut for ever. */
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
    ASSERT(source_index < fetch->source_end);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
    ASSERT(source_index < fetch->source_end);
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->core != NULL);
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

/* No bytes: at the end of the log or, with read_committed, in front of an open transaction. Only
 * the former, seen from position, lets the partition count as idle. */
static void note_empty(struct kafka_fetch *fetch, struct kafka_source *source)
{
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
    fetch->core->counters.fetch_empty++;
    bool is_at_end =
        source->fetch_offset >= source->high_watermark && source->position == source->fetch_offset;
    if (is_at_end && !source->is_caught_up) {
        source->caught_up_ns = fetch->now_ns;
    }
    source->is_caught_up = is_at_end;
}

/* The answer of one partition. Errors come first; high_watermark means what may be read, so with
 * read_committed it is the last stable offset. */
static void note_entry(struct kafka_fetch *fetch, uint32_t connection_index, uint32_t source_index,
                       const struct kafka_fetch_entry *entry, struct span body)
{
    ASSERT(source_index < fetch->source_end);
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->core != NULL);
    struct kafka_source *source = kafka_fetch_source(fetch, source_index);
    ASSERT(source->requested_on == connection_index);
    source->requested_on = KAFKA_NO_CONNECTION;
    if (entry->error_code == KAFKA_ERROR_OFFSET_OUT_OF_RANGE) {
        fetch->core->counters.fetch_errors++;
        /* With records still to be decoded the offset may be wrong only because a header lied:
         * go back and ask from what has been handed up. */
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
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* The frame stays in the stream (or the assembly buffer) until it is decoded; the next request
 * goes out first, so the broker works while this lane decodes. */
bool kafka_fetch_take(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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

/* The bytes of a hold die with the stream, so what was not handed up is fetched again (3). The
 * back-off is the connection's, not the source's. */
void kafka_fetch_lost(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < fetch->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(fetch->source_end <= fetch->core->config.sources_max);
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
