/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks, buffers, appending, and building Produce requests.
 *
 *   request v7:  transactional id or null, acks i16 = -1, timeout i32,
 *                [topic: name, [partition i32, records bytes]]
 *
 * A sink's queue, oldest batch on the left; sequences grow to the right without a gap (invariant
 * 3):
 *
 *     head -> [acked][in flight][in flight][sealed][open] <- tail
 *             released once all   at most KAFKA_DUPLICATE_WINDOW deep, one connection
 *             before it are
 *
 * An open batch is sealed when it is full or when the connection could take it: under load
 * batches fill, when idle each record goes out at once. There is no linger. */
#include "dataplane/kafka/produce.h"

#include "dataplane/kafka/error_code.h"

#define ACKS_ALL        (-1)
#define PARTITION_BYTES 8

/* As kafka_fetch_layout: measures with produce NULL. Large buffers hold one record above the
 * ordinary batch size each; there are few. */
void kafka_produce_layout(struct kafka_produce *produce, const struct kafka_config *config,
                          struct kafka_arena *arena)
{
    ASSERT(config != NULL);
    size_t pairs = (size_t)config->topics_max * config->topic_partitions_max;
    uint32_t total = config->produce_buffers + config->produce_large_buffers;
    size_t large = (size_t)config->produce_record_bytes_max + KAFKA_BATCH_HEADER_BYTES;
    void *sinks = kafka_arena_take(arena, config->sinks_max, sizeof(struct kafka_sink));
    void *sink_of = kafka_arena_take(arena, pairs, sizeof(int32_t));
    void *topic_want = kafka_arena_take(arena, config->topics_max, sizeof(uint32_t));
    struct kafka_out_batch *batches =
        kafka_arena_take(arena, total, sizeof(struct kafka_out_batch));
    void *scratch = kafka_arena_take(arena, large, 1);
    for (uint32_t i = 0; i < total; i++) {
        bool is_large = i >= config->produce_buffers;
        size_t bytes = is_large ? large : config->produce_batch_bytes;
        uint8_t *buffer = kafka_arena_take(arena, bytes, 1);
        if (produce != NULL) {
            batches[i].buffer = (struct span_mut){.data = buffer, .bytes = bytes};
            batches[i].is_large = is_large;
        }
    }
    if (produce == NULL) {
        return;
    }
    ASSERT(arena->base != NULL);
    produce->sinks = sinks;
    produce->sink_of = sink_of;
    produce->topic_want = topic_want;
    produce->batches = batches;
    produce->batch_total = total;
    produce->scratch = (struct span_mut){.data = scratch, .bytes = large};
}

/* A free list is a stack, so that the buffer used last, still in the cache, is taken first. */
static void put_free(struct kafka_produce *produce, uint32_t index)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    struct kafka_out_batch *batch = &produce->batches[index];
    uint32_t *head = batch->is_large ? &produce->free_large : &produce->free_small;
    batch->state = KAFKA_OUT_FREE;
    batch->next = *head;
    *head = index;
}

void kafka_produce_init(struct kafka_produce *produce, struct kafka_core *core)
{
    ASSERT(produce != NULL);
    ASSERT(core != NULL);
    ASSERT(produce->sinks != NULL);
    produce->core = core;
    produce->free_small = KAFKA_NO_BATCH;
    produce->free_large = KAFKA_NO_BATCH;
    produce->producer_id = -1;
    produce->producer_epoch = -1;
    produce->init_on = KAFKA_NO_CONNECTION;
    for (uint32_t i = 0; i < produce->batch_total; i++) {
        put_free(produce, i);
    }
    size_t pairs = (size_t)core->config.topics_max * core->config.topic_partitions_max;
    for (size_t i = 0; i < pairs; i++) {
        produce->sink_of[i] = -1;
    }
}

uint32_t kafka_produce_acquire(struct kafka_produce *produce, bool is_large)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    uint32_t *head = is_large ? &produce->free_large : &produce->free_small;
    uint32_t index = *head;
    if (index == KAFKA_NO_BATCH) {
        return index;
    }
    struct kafka_out_batch *batch = &produce->batches[index];
    ASSERT(batch->state == KAFKA_OUT_FREE);
    *head = batch->next;
    *batch = (struct kafka_out_batch){.buffer = batch->buffer,
                                      .is_large = is_large,
                                      .state = KAFKA_OUT_OPEN,
                                      .next = KAFKA_NO_BATCH};
    kafka_builder_init(&batch->builder, batch->buffer);
    return index;
}

/* Once: the caller asks again and again. */
static void report_full(struct kafka_produce *produce, uint32_t topic_index, int32_t partition)
{
    ASSERT(produce->sink_count == produce->core->config.sinks_max);
    if (produce->has_told_full) {
        return;
    }
    produce->has_told_full = true;
    struct kafka_event event = {.code = KAFKA_EVENT_PRODUCE_FAILED,
                                .topic_index = (int32_t)topic_index,
                                .partition = partition,
                                .at_ns = produce->now_ns};
    kafka_events_push(&produce->core->events, &event,
                      "%.100s-%d cannot be written: there is room for %u partitions a lane",
                      produce->core->metadata.topics[topic_index].name, partition,
                      produce->sink_count);
}

/* Sinks are never closed: a job writes the same partitions for its life. */
bool kafka_produce_sink(struct kafka_produce *produce, uint32_t topic_index, int32_t partition,
                        uint32_t *out)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(out != NULL);
    const struct kafka_config *config = &produce->core->config;
    ASSERT(topic_index < produce->core->metadata.topic_count);
    if (partition < 0 || (uint32_t)partition >= config->topic_partitions_max) {
        return false;
    }
    int32_t *slot =
        &produce->sink_of[(size_t)topic_index * config->topic_partitions_max + (uint32_t)partition];
    if (*slot < 0) {
        if (produce->sink_count == config->sinks_max) {
            report_full(produce, topic_index, partition);
            return false;
        }
        *slot = (int32_t)produce->sink_count++;
        produce->sinks[*slot] = (struct kafka_sink){
            .topic_index = topic_index,
            .partition = partition,
            .head = KAFKA_NO_BATCH,
            .tail = KAFKA_NO_BATCH,
            .chosen = KAFKA_NO_BATCH,
            .last_acked_offset = -1,
        };
        kafka_core_want_metadata(produce->core);
    }
    *out = (uint32_t)*slot;
    return true;
}

static struct kafka_out_batch *open_batch(struct kafka_produce *produce, struct kafka_sink *sink)
{
    ASSERT(produce != NULL);
    ASSERT(sink != NULL);
    if (sink->tail == KAFKA_NO_BATCH) {
        return NULL;
    }
    struct kafka_out_batch *tail = &produce->batches[sink->tail];
    return tail->state == KAFKA_OUT_OPEN ? tail : NULL;
}

/* The last ordinary buffer is kept back for splitting a refused batch (invariant 6): without it
 * a full client could never get rid of the batch that blocks it. */
static struct kafka_out_batch *start_batch(struct kafka_produce *produce, struct kafka_sink *sink,
                                           size_t record_bytes)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    ASSERT(sink->in_flight_count <= sink->batch_count);
    size_t small = produce->core->config.produce_batch_bytes - KAFKA_BATCH_HEADER_BYTES;
    if (sink->batch_count >= KAFKA_SINK_BATCHES_MAX) {
        return NULL;
    }
    bool is_large = record_bytes > small;
    if (!is_large && (produce->free_small == KAFKA_NO_BATCH ||
                      produce->batches[produce->free_small].next == KAFKA_NO_BATCH)) {
        return NULL; /* invariant 6 */
    }
    uint32_t index = kafka_produce_acquire(produce, is_large);
    if (index == KAFKA_NO_BATCH) {
        return NULL;
    }
    if (sink->tail == KAFKA_NO_BATCH) {
        sink->head = index;
    } else {
        produce->batches[sink->tail].next = index;
    }
    sink->tail = index;
    sink->batch_count++;
    produce->unsent_count++;
    return &produce->batches[index];
}

/* Finishes and numbers the open batch at the tail. Only now does the batch get a sequence.
 * Numbering at append would have to be undone whenever an epoch starts anew. */
static void seal(struct kafka_produce *produce, struct kafka_sink *sink)
{
    ASSERT(produce->core != NULL);
    struct kafka_out_batch *batch = &produce->batches[sink->tail];
    ASSERT(batch->state == KAFKA_OUT_OPEN);
    ASSERT(batch->builder.record_count > 0);
    batch->base_sequence = sink->next_sequence;
    sink->next_sequence =
        (int32_t)(((uint32_t)sink->next_sequence + (uint32_t)batch->builder.record_count) &
                  INT32_MAX);
    struct kafka_stamp stamp = {.producer_id = produce->producer_id,
                                .producer_epoch = produce->producer_epoch,
                                .base_sequence = batch->base_sequence,
                                .is_transactional = produce->transactional_id != NULL};
    bool is_lz4 = produce->core->config.produce_codec == KAFKA_CODEC_LZ4;
    kafka_builder_finish(&batch->builder, &stamp, is_lz4 ? produce->core->codec : NULL,
                         produce->scratch);
    batch->state = KAFKA_OUT_SEALED;
}

/* Nothing is sent here. A full batch cannot be sealed before the producer has its id, so until
 * then FULL pushes back on the pipeline. */
enum kafka_append kafka_produce_append(struct kafka_produce *produce, uint32_t sink_index,
                                       const struct kafka_produce_record *record)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(sink_index < produce->sink_count);
    struct kafka_sink *sink = &produce->sinks[sink_index];
    struct kafka_build_record build = {
        .key = record->key,
        .value = record->value,
        .has_key = record->has_key,
        .has_value = record->has_value,
        .timestamp_ms = record->timestamp_ms,
        .header_count = record->header_count,
        .headers = record->headers,
    };
    if (sink->is_failed) {
        return KAFKA_APPEND_FAILED;
    }
    size_t bytes = kafka_builder_record_bytes(&build);
    if (bytes > produce->core->config.produce_record_bytes_max) {
        return KAFKA_APPEND_TOO_LARGE;
    }
    struct kafka_out_batch *batch = open_batch(produce, sink);
    if (batch == NULL || batch->is_large || !kafka_builder_append(&batch->builder, &build)) {
        if (batch != NULL && produce->state == KAFKA_PRODUCER_READY) {
            seal(produce, sink);
        } else if (batch != NULL) {
            produce->core->counters.append_full++;
            return KAFKA_APPEND_FULL;
        }
        batch = start_batch(produce, sink, bytes);
        if (batch == NULL) {
            produce->core->counters.append_full++;
            return KAFKA_APPEND_FULL;
        }
        bool fits = kafka_builder_append(&batch->builder, &build);
        ASSERT(fits);
    }
    sink->appended_count++;
    produce->pending_count++;
    produce->core->counters.records_appended++;
    produce->core->counters.record_bytes_appended += record->key.bytes + record->value.bytes;
    return KAFKA_APPEND_OK;
}

/* Only the header is rewritten, and its checksum: records do not know their sequence. */
void kafka_produce_renumber(struct kafka_produce *produce, struct kafka_sink *sink, int32_t first)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(sink->in_flight_count == 0);
    uint32_t sequence = (uint32_t)first;
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        struct kafka_out_batch *batch = &produce->batches[i];
        if (batch->is_acked) {
            batch->base_sequence = KAFKA_NO_SEQUENCE;
        }
        if (batch->is_acked || batch->state != KAFKA_OUT_SEALED) {
            continue;
        }
        batch->base_sequence = (int32_t)sequence;
        struct kafka_stamp stamp = {.producer_id = produce->producer_id,
                                    .producer_epoch = produce->producer_epoch,
                                    .base_sequence = batch->base_sequence};
        kafka_batch_stamp(
            (struct span_mut){.data = batch->builder.data, .bytes = batch->builder.bytes}, &stamp);
        sequence = (sequence + (uint32_t)batch->builder.record_count) & INT32_MAX;
    }
    sink->next_sequence = (int32_t)sequence;
}

/* The oldest batch that is to go out: the first that is neither in flight nor acknowledged. */
static uint32_t next_unsent(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    uint32_t index = sink->head;
    while (index != KAFKA_NO_BATCH &&
           (produce->batches[index].is_in_flight || produce->batches[index].is_acked)) {
        index = produce->batches[index].next;
    }
    return index;
}

/* A broker remembers the last five batches of a producer and partition; a batch sent beyond that
 * window could be appended twice without notice. */
static uint32_t depth_of(const struct kafka_produce *produce, const struct kafka_sink *sink,
                         uint32_t index)
{
    ASSERT(produce->core != NULL);
    uint32_t depth = 0;
    for (uint32_t i = sink->head; i != index; i = produce->batches[i].next) {
        ASSERT(i != KAFKA_NO_BATCH);
        depth++;
    }
    return depth;
}

/* Ends a recovery once everything is home; false while that is not possible. All that was in
 * flight behind a failure must be home first: a resend that overtakes one of them would be out
 * of sequence for certain. */
static bool finish_recovery(struct kafka_produce *produce, struct kafka_sink *sink)
{
    ASSERT(sink->in_flight_count <= sink->batch_count);
    ASSERT(sink->acked_count + sink->lost_count <= sink->appended_count);
    if (sink->in_flight_count > 0) {
        return false;
    }
    uint32_t first = next_unsent(produce, sink);
    if (first != KAFKA_NO_BATCH && produce->batches[first].refusal != 0 &&
        !kafka_produce_split(produce, sink, first)) {
        return false;
    }
    if (produce->state != KAFKA_PRODUCER_READY) {
        return false; /* what is left gets its numbers with the new epoch */
    }
    sink->is_recovering = false;
    return true;
}

/* Picks the batch of a sink that may join a request on this connection now. One connection at a
 * time may carry a partition, since two have no order between them. Until the first
 * acknowledgement of an epoch only one batch is in flight: a broker that does not know the
 * producer takes any first sequence, so a second batch that arrived first would be believed. */
static uint32_t choose(struct kafka_produce *produce, struct kafka_sink *sink,
                       uint32_t connection_index)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    if (sink->head == KAFKA_NO_BATCH || sink->is_failed || sink->retry_at_ns > produce->now_ns ||
        (produce->transactional_id != NULL && !sink->is_added)) {
        return KAFKA_NO_BATCH;
    }
    const struct kafka_leader *leader =
        kafka_metadata_leader(&produce->core->metadata, sink->topic_index, sink->partition);
    if (leader == NULL || leader->broker_index != (int32_t)kafka_core_broker_of(connection_index) ||
        sink->in_flight_count >= produce->core->config.produce_partition_in_flight_max ||
        (sink->in_flight_count > 0 &&
         (sink->in_flight_on != connection_index || !sink->is_established))) {
        return KAFKA_NO_BATCH;
    }
    if (sink->is_recovering && !finish_recovery(produce, sink)) {
        return KAFKA_NO_BATCH;
    }
    uint32_t index = next_unsent(produce, sink);
    if (index != KAFKA_NO_BATCH && depth_of(produce, sink, index) >= KAFKA_DUPLICATE_WINDOW) {
        return KAFKA_NO_BATCH;
    }
    if (index != KAFKA_NO_BATCH && produce->batches[index].state == KAFKA_OUT_OPEN) {
        ASSERT(index == sink->tail);
        seal(produce, sink);
    }
    return index;
}

/* Chooses batches for one request; returns how many topics they are of. Starts behind the sink
 * that was last in the request before, so that a request limit does not starve the sinks at the
 * end of the table. */
static uint32_t choose_all(struct kafka_produce *produce, uint32_t connection_index)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    size_t bytes = 0;
    uint32_t topics = 0;
    memset(produce->topic_want, 0, produce->core->metadata.topic_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        uint32_t at = (produce->cursor + i) % produce->sink_count;
        struct kafka_sink *sink = &produce->sinks[at];
        sink->chosen = KAFKA_NO_BATCH;
        if (bytes >= produce->core->config.produce_request_bytes_max) {
            continue;
        }
        uint32_t index = choose(produce, sink, connection_index);
        if (index == KAFKA_NO_BATCH) {
            continue;
        }
        size_t batch_bytes = produce->batches[index].builder.bytes;
        if (bytes > 0 && bytes + batch_bytes > produce->core->config.produce_request_bytes_max) {
            continue;
        }
        sink->chosen = index;
        bytes += batch_bytes;
        topics += produce->topic_want[sink->topic_index]++ == 0;
    }
    return topics;
}

/* Batches are spliced, not copied: the connection's segments point into the sealed buffers,
 * which stay until they are acknowledged. */
static bool write_topic(struct kafka_produce *produce, struct kafka_connection *connection,
                        uint32_t topic, struct kafka_writer *writer)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    const struct kafka_topic *entry = &produce->core->metadata.topics[topic];
    kafka_write_string(
        writer, (struct span){.data = (const uint8_t *)entry->name, .bytes = entry->name_bytes});
    kafka_write_i32(writer, (int32_t)produce->topic_want[topic]);
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        const struct kafka_sink *sink = &produce->sinks[i];
        if (sink->topic_index != topic || sink->chosen == KAFKA_NO_BATCH) {
            continue;
        }
        const struct kafka_builder *builder = &produce->batches[sink->chosen].builder;
        kafka_write_i32(writer, sink->partition);
        kafka_write_i32(writer, (int32_t)builder->bytes);
        if (!kafka_connection_splice(
                connection, writer,
                (struct span){.data = builder->data, .bytes = builder->bytes})) {
            return false;
        }
    }
    return true;
}

/* From here until an answer the batch may be in the log (is_uncertain). What it was before is
 * kept, for answers that prove that nothing was appended. */
static void mark_in_flight(struct kafka_produce *produce, struct kafka_sink *sink,
                           uint32_t connection_index)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    struct kafka_out_batch *batch = &produce->batches[sink->chosen];
    ASSERT(!batch->is_in_flight && !batch->is_acked);
    ASSERT(batch->state == KAFKA_OUT_SEALED);
    batch->is_in_flight = true;
    batch->was_uncertain = batch->is_uncertain;
    batch->is_uncertain = true;
    batch->token = produce->token;
    batch->tx_end = batch->was_sent ? 0 : produce->core->connections[connection_index].tx_queued;
    sink->in_flight_count++;
    sink->in_flight_on = connection_index;
    produce->flight_count++;
    produce->unsent_count--;
    produce->core->counters.batches_sent++;
    produce->core->counters.batches_resent += batch->was_sent;
    /* The ledger counts the first hand-over only; resends say nothing about latency. */
    if (!batch->was_sent) {
        sink->handed_ns = produce->now_ns;
        sink->handed_count += (uint64_t)batch->builder.record_count;
    }
    batch->was_sent = true;
}

uint64_t kafka_produce_departed(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    uint64_t count = sink->handed_count;
    if (sink->in_flight_count == 0) {
        return count;
    }
    const struct stream *stream = produce->core->connections[sink->in_flight_on].stream;
    const uint64_t gone = stream == NULL ? 0 : stream->sent_bytes;
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        const struct kafka_out_batch *batch = &produce->batches[i];
        if (!batch->is_in_flight && !batch->is_acked) {
            break;
        }
        if (batch->is_in_flight && batch->tx_end > gone) {
            ASSERT(count >= (uint64_t)batch->builder.record_count);
            count -= (uint64_t)batch->builder.record_count;
        }
    }
    return count;
}

static bool write_request(struct kafka_produce *produce, struct kafka_connection *connection,
                          uint32_t topics)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    uint32_t timeout_ms = produce->core->config.request_timeout_ms;
    struct kafka_writer writer =
        kafka_connection_begin(connection, KAFKA_API_PRODUCE, KAFKA_PRODUCE_VERSION);
    kafka_write_string(&writer, produce->transactional_id == NULL
                                    ? (struct span){0}
                                    : kafka_span_of(produce->transactional_id));
    kafka_write_i16(&writer, ACKS_ALL);
    kafka_write_i32(&writer, (int32_t)(timeout_ms / 4 * 3));
    kafka_write_i32(&writer, (int32_t)topics);
    for (uint32_t topic = 0; topic < produce->core->metadata.topic_count; topic++) {
        if (produce->topic_want[topic] > 0 && !write_topic(produce, connection, topic, &writer)) {
            kafka_connection_drop(connection);
            return false;
        }
    }
    return kafka_connection_submit(connection, &writer, ++produce->token, timeout_ms,
                                   produce->now_ns);
}

static uint32_t send_to(struct kafka_produce *produce, struct kafka_connection *connection)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    uint32_t connection_index = kafka_core_index(produce->core, connection);
    uint32_t topics = choose_all(produce, connection_index);
    if (topics == 0) {
        return 0;
    }
    if (!kafka_connection_speaks(connection, KAFKA_API_PRODUCE, KAFKA_PRODUCE_VERSION)) {
        kafka_connection_fail(connection, "the broker does not speak Produce v7");
        return 0;
    }
    if (!write_request(produce, connection, topics)) {
        return 0;
    }
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        if (produce->sinks[i].chosen != KAFKA_NO_BATCH) {
            mark_in_flight(produce, &produce->sinks[i], connection_index);
            produce->cursor = (i + 1) % produce->sink_count;
        }
    }
    return 1;
}

/* Tells whether a sink that a broker leads has something to send; dialling is worth it then. */
static bool has_work(const struct kafka_produce *produce, uint32_t broker)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        const struct kafka_sink *sink = &produce->sinks[i];
        if (sink->head == KAFKA_NO_BATCH || sink->is_failed) {
            continue;
        }
        const struct kafka_leader *leader =
            kafka_metadata_leader(&produce->core->metadata, sink->topic_index, sink->partition);
        if (leader != NULL && leader->broker_index == (int32_t)broker) {
            return true;
        }
    }
    return false;
}

/* News of a leader ends the back-off: that is what it waited for. */
static void follow_leaders(struct kafka_produce *produce)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    if (produce->metadata_seen == produce->core->metadata.change_count) {
        return;
    }
    produce->metadata_seen = produce->core->metadata.change_count;
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        produce->sinks[i].retry_at_ns = 0;
    }
}

/* Invariant 3 of one sink. */
static bool sequences_run_on(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    bool has_sequence = false;
    uint32_t sequence = 0;
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        const struct kafka_out_batch *batch = &produce->batches[i];
        if (batch->state != KAFKA_OUT_SEALED || batch->base_sequence == KAFKA_NO_SEQUENCE) {
            ASSERT(batch->state == KAFKA_OUT_OPEN || batch->is_acked);
            continue;
        }
        ASSERT(!has_sequence || (uint32_t)batch->base_sequence == sequence);
        has_sequence = true;
        sequence =
            ((uint32_t)batch->base_sequence + (uint32_t)batch->builder.record_count) & INT32_MAX;
    }
    return !has_sequence || (uint32_t)sink->next_sequence == sequence;
}

/* Invariants 2 to 4 of one sink, and its share of the sums. */
bool kafka_produce_sink_is_sound(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    uint32_t batches = 0;
    uint32_t in_flight = 0;
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        const struct kafka_out_batch *batch = &produce->batches[i];
        ASSERT(batch->state != KAFKA_OUT_FREE);
        ASSERT(batch->state == KAFKA_OUT_SEALED || i == sink->tail);
        ASSERT(!batch->is_in_flight || batch->state == KAFKA_OUT_SEALED);
        ASSERT(!(batch->is_in_flight && batch->is_acked));
        batches++;
        in_flight += batch->is_in_flight;
    }
    ASSERT(batches == sink->batch_count);
    ASSERT(in_flight == sink->in_flight_count);
    ASSERT(in_flight <= KAFKA_DUPLICATE_WINDOW);
    ASSERT(sequences_run_on(produce, sink));
    return (sink->head == KAFKA_NO_BATCH) == (sink->tail == KAFKA_NO_BATCH);
}

static bool is_sound(const struct kafka_produce *produce)
{
    uint64_t pending = 0;
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        const struct kafka_sink *sink = &produce->sinks[i];
        ASSERT(kafka_produce_sink_is_sound(produce, sink));
        ASSERT(sink->acked_count + sink->lost_count <= sink->appended_count);
        pending += sink->appended_count - sink->acked_count - sink->lost_count;
    }
    return pending == produce->pending_count;
}

/* unsent_count is what ends the loop in the idle turn: no sink is looked at while all batches
 * are under way. */
uint32_t kafka_produce_poll(struct kafka_produce *produce, uint64_t now_ns)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    ASSERT_SLOW(is_sound(produce));
    struct kafka_core *core = produce->core;
    produce->now_ns = now_ns;
    if (produce->sink_count == 0) {
        return 0;
    }
    follow_leaders(produce);
    if (produce->state != KAFKA_PRODUCER_READY) {
        return kafka_produce_poll_id(produce);
    }
    uint32_t work = 0;
    uint32_t first = core->config.bootstrap_count;
    for (uint32_t broker = first; produce->unsent_count > 0 && broker < core->metadata.broker_count;
         broker++) {
        uint32_t index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_PRODUCE;
        if (core->connections[index].queue_count >= core->config.produce_in_flight_max ||
            !has_work(produce, broker)) {
            continue;
        }
        struct kafka_connection *connection =
            kafka_core_ready(core, broker, KAFKA_ROLE_PRODUCE, now_ns);
        if (connection != NULL) {
            work += send_to(produce, connection);
        }
    }
    return work;
}
