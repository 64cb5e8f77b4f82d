/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of batches: answers, losses, splits, and the producer's id and epoch.
 *
 * A code falls into one of five classes: done (0, and 46: a duplicate from long ago), again (the
 * same bytes later), refused (the batch is split until the guilty records stand alone and are
 * dropped), sequence (45, 59, 47: expected while something before it is missing, else the epoch is
 * bumped), and final (the sink fails).
 *
 *     code -> classify -> DONE            release from the head of the queue
 *                         AGAIN           back-off, same bytes, same sequence
 *                         AGAIN_CLEAN     the same, and it is sure not to be in the log
 *                         REFUSED         halve until the guilty record is alone, drop it
 *                         SEQUENCE        wait for older ones, else bump the epoch (KIP-360)
 *                         FINAL           the sink fails, its records count as lost
 *
 * The numbers below are those of the invariants in produce.h. */
#include "dataplane/kafka/error_code.h"
#include "dataplane/kafka/produce.h"

#define INIT_VERSION        3
#define TOPIC_BYTES_MIN     6
#define PARTITION_BYTES     30
#define TRANSACTION_TIMEOUT 60000

static struct kafka_event event_of(const struct kafka_produce *produce,
                                   const struct kafka_sink *sink, enum kafka_event_code code,
                                   int16_t error_code)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    return (struct kafka_event){.code = code,
                                .topic_index = (int32_t)sink->topic_index,
                                .partition = sink->partition,
                                .error_code = error_code,
                                .at_ns = produce->now_ns};
}

static const char *topic_name(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    ASSERT(produce->core != NULL);
    return produce->core->metadata.topics[sink->topic_index].name;
}

/* A batch comes home, whatever was said about it. It counts as unsent until its fate is decided
 * by the caller. */
void kafka_produce_land(struct kafka_produce *produce, struct kafka_sink *sink,
                        struct kafka_out_batch *batch)
{
    ASSERT(batch->is_in_flight);
    ASSERT(sink->in_flight_count > 0 && produce->flight_count > 0);
    batch->is_in_flight = false;
    sink->in_flight_count--;
    produce->flight_count--;
    produce->unsent_count++;
}

/* pending, acked and lost always add up to what was appended; kafka_produce_poll checks that in
 * slow builds. */
static void count_lost(struct kafka_produce *produce, struct kafka_sink *sink,
                       const struct kafka_out_batch *batch)
{
    ASSERT(produce->core != NULL);
    uint32_t records = (uint32_t)batch->builder.record_count;
    ASSERT(produce->pending_count >= records);
    sink->lost_count += records;
    produce->pending_count -= records;
    produce->unsent_count--;
    produce->core->counters.records_lost += records;
}

static void put_free(struct kafka_produce *produce, uint32_t index)
{
    ASSERT(produce->core != NULL);
    struct kafka_out_batch *batch = &produce->batches[index];
    ASSERT(!batch->is_in_flight);
    uint32_t *head = batch->is_large ? &produce->free_large : &produce->free_small;
    batch->state = KAFKA_OUT_FREE;
    batch->next = *head;
    *head = index;
}

/* Only from the head: an acknowledged batch behind one that is not stays, since the older one
 * may yet be split and renumber what follows. */
void kafka_produce_release(struct kafka_produce *produce, struct kafka_sink *sink)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    while (sink->head != KAFKA_NO_BATCH) {
        uint32_t index = sink->head;
        struct kafka_out_batch *batch = &produce->batches[index];
        if (batch->is_in_flight || !(batch->is_acked || sink->is_failed)) {
            return;
        }
        if (!batch->is_acked) {
            count_lost(produce, sink, batch);
        }
        sink->head = batch->next;
        sink->tail = sink->head == KAFKA_NO_BATCH ? KAFKA_NO_BATCH : sink->tail;
        sink->batch_count--;
        put_free(produce, index);
    }
    ASSERT(sink->batch_count == 0);
}

/* Batches in flight stay until they land; the buffers are read by the connection until then. */
void kafka_produce_fail(struct kafka_produce *produce, struct kafka_sink *sink, int16_t code)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    if (sink->is_failed) {
        return;
    }
    sink->is_failed = true;
    sink->error_code = code;
    produce->failed_count++;
    produce->failed_code = code;
    struct kafka_event event = event_of(produce, sink, KAFKA_EVENT_PRODUCE_FAILED, code);
    kafka_events_push(&produce->core->events, &event, "%.100s-%d: the broker refuses records: %s",
                      topic_name(produce, sink), sink->partition, kafka_error_name(code));
    kafka_produce_release(produce, sink);
}

/* Counts batches of ours that may be in the log twice, and says so. */
static void tell_repeated(struct kafka_produce *produce, const struct kafka_sink *sink,
                          uint32_t batches, uint64_t records)
{
    ASSERT(batches > 0 && records >= batches);
    struct kafka_event event = event_of(produce, sink, KAFKA_EVENT_PRODUCE_REPEATED, 0);
    produce->core->counters.batches_maybe_repeated += batches;
    kafka_events_push(&produce->core->events, &event,
                      "%.100s-%d: %llu records may be in the log more than once",
                      topic_name(produce, sink), sink->partition, (unsigned long long)records);
}

/* Tells whether any batch may be in the log from an earlier sending. */
static bool has_uncertain(const struct kafka_produce *produce, const struct kafka_sink *sink)
{
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        const struct kafka_out_batch *batch = &produce->batches[i];
        if (batch->is_in_flight ? batch->was_uncertain : batch->is_uncertain) {
            return true;
        }
    }
    return false;
}

/* Tells whether a younger batch under the same id and epoch is acknowledged. */
static bool has_younger_acked(const struct kafka_produce *produce,
                              const struct kafka_out_batch *batch)
{
    for (uint32_t i = batch->next; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        const struct kafka_out_batch *younger = &produce->batches[i];
        if (younger->is_acked && younger->base_sequence != KAFKA_NO_SEQUENCE) {
            return true;
        }
    }
    return false;
}

/* A broker that knows a batch answers it with its first offset. One that has forgotten the producer
 * stores it once more: then its first copy lies between what was acknowledged before it and the
 * offset answered, or before a younger batch. Records of other writers look the same, so this is
 * "may be"; a gap smaller than the batch cannot hold a copy, and nothing is counted. */
static void look_for_repeat(struct kafka_produce *produce, struct kafka_sink *sink,
                            const struct kafka_out_batch *batch, int64_t base_offset)
{
    uint64_t records = (uint64_t)batch->builder.record_count;
    int64_t expected = sink->last_acked_offset + 1;
    bool is_resent = batch->was_uncertain;
    if (!is_resent && !has_uncertain(produce, sink)) {
        sink->strange_count = 0;
        return;
    }
    if (base_offset > expected) {
        sink->strange_count += (uint64_t)(base_offset - expected);
    }
    if (!is_resent || base_offset < expected) {
        return;
    }
    if (sink->strange_count >= records) {
        sink->strange_count -= records;
        tell_repeated(produce, sink, 1, records);
    } else if (has_younger_acked(produce, batch)) {
        tell_repeated(produce, sink, 1, records);
    }
}

static void acknowledge(struct kafka_produce *produce, struct kafka_sink *sink,
                        struct kafka_out_batch *batch, int64_t base_offset)
{
    ASSERT(produce->core != NULL);
    uint32_t records = (uint32_t)batch->builder.record_count;
    ASSERT(produce->pending_count >= records);
    ASSERT(produce->unsent_count > 0);
    batch->is_acked = true;
    batch->is_uncertain = false;
    produce->unsent_count--;
    produce->pending_count -= records;
    sink->acked_count += records;
    sink->fail_count = 0;
    sink->is_established = true;
    produce->core->counters.records_acked += records;
    if (base_offset >= 0) {
        look_for_repeat(produce, sink, batch, base_offset);
        int64_t last = base_offset + records - 1;
        sink->last_acked_offset = last > sink->last_acked_offset ? last : sink->last_acked_offset;
    }
    kafka_produce_release(produce, sink);
}

/* Tells whether something older than a batch is still without an answer or to be sent again.
 * Tells a gap that this client explains from one that it cannot. */
static bool has_older(const struct kafka_produce *produce, const struct kafka_sink *sink,
                      const struct kafka_out_batch *batch)
{
    ASSERT(produce->core != NULL);
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        if (&produce->batches[i] == batch) {
            return false;
        }
        if (!produce->batches[i].is_acked) {
            return true;
        }
    }
    ASSERT(false);
}

static void recover(struct kafka_produce *produce, struct kafka_sink *sink, int16_t code)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    if (!sink->is_recovering) { /* what was in flight behind a failure fails with it: once */
        sink->fail_count++;
        sink->retry_at_ns = kafka_core_retry_at(produce->core, sink->fail_count, produce->now_ns);
    }
    sink->is_recovering = true;
    if (kafka_error_wants_metadata(code)) {
        kafka_core_want_metadata(produce->core);
    }
}

/* Inside a transaction the epoch cannot change: it has failed, and the transaction half says so. */
static void refuse_transaction(struct kafka_produce *produce, int16_t code)
{
    ASSERT(produce->transactional_id != NULL);
    if (produce->refused_code == 0) {
        produce->refused_code = code == 0 ? KAFKA_ERROR_OUT_OF_ORDER_SEQUENCE_NUMBER : code;
    }
    produce->state = KAFKA_PRODUCER_FENCED;
}

/* A gap that no batch of ours explains: KIP-360 starts the sequences anew under a higher epoch. */
static void want_epoch(struct kafka_produce *produce, int16_t code)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    if (produce->transactional_id != NULL) {
        refuse_transaction(produce, code);
        return;
    }
    if (produce->state == KAFKA_PRODUCER_READY) {
        produce->state = KAFKA_PRODUCER_BUMP;
    }
    if (code == KAFKA_ERROR_INVALID_PRODUCER_EPOCH) {
        /* Somebody holds a higher epoch of our id: bumping ours is refused, a new id is not. */
        produce->producer_id = -1;
        produce->producer_epoch = -1;
    }
}

/* Behind a failed batch, everything in flight is out of sequence: that is expected, and the
 * resend puts it right. With nothing older the broker has lost our state (retention of producer
 * ids) or somebody else uses our id. */
static void answer_sequence(struct kafka_produce *produce, struct kafka_sink *sink,
                            struct kafka_out_batch *batch, int16_t code)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    batch->is_uncertain = batch->was_uncertain;
    bool is_expected = has_older(produce, sink, batch);
    recover(produce, sink, code);
    sink->retry_at_ns = is_expected ? sink->retry_at_ns : 0;
    if (!is_expected) {
        want_epoch(produce, code);
    }
}

enum answer {
    ANSWER_DONE = 0,
    ANSWER_AGAIN,       /* and it may be in the log */
    ANSWER_AGAIN_CLEAN, /* and it is not */
    ANSWER_REFUSED,
    ANSWER_SEQUENCE,
    ANSWER_FINAL,
};

/* A code that is not listed may have been given before or after the append: it is retried under
 * the same sequence, and the broker finds the duplicate. */
static enum answer classify(int16_t code)
{
    switch (code) {
    case KAFKA_ERROR_NONE:
    case KAFKA_ERROR_DUPLICATE_SEQUENCE_NUMBER:
        return ANSWER_DONE;
    case KAFKA_ERROR_MESSAGE_TOO_LARGE:
    case KAFKA_ERROR_RECORD_LIST_TOO_LARGE:
    case KAFKA_ERROR_INVALID_TIMESTAMP:
    case KAFKA_ERROR_INVALID_RECORD:
        return ANSWER_REFUSED;
    case KAFKA_ERROR_OUT_OF_ORDER_SEQUENCE_NUMBER:
    case KAFKA_ERROR_UNKNOWN_PRODUCER_ID:
    case KAFKA_ERROR_INVALID_PRODUCER_EPOCH:
        return ANSWER_SEQUENCE;
    case KAFKA_ERROR_TOPIC_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_CLUSTER_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_INVALID_TOPIC:
    case KAFKA_ERROR_INVALID_REQUIRED_ACKS:
    case KAFKA_ERROR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
    case KAFKA_ERROR_UNSUPPORTED_COMPRESSION_TYPE:
    case KAFKA_ERROR_UNSUPPORTED_VERSION:
    case KAFKA_ERROR_PRODUCER_FENCED:
        return ANSWER_FINAL;
    case KAFKA_ERROR_CORRUPT_MESSAGE:
    case KAFKA_ERROR_UNKNOWN_TOPIC_OR_PARTITION:
    case KAFKA_ERROR_LEADER_NOT_AVAILABLE:
    case KAFKA_ERROR_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_ERROR_NOT_ENOUGH_REPLICAS:
    case KAFKA_ERROR_FENCED_LEADER_EPOCH:
    case KAFKA_ERROR_UNKNOWN_LEADER_EPOCH:
    case KAFKA_ERROR_THROTTLING_QUOTA_EXCEEDED:
        return ANSWER_AGAIN_CLEAN;
    default:
        return ANSWER_AGAIN;
    }
}

/* Tells whether a code says that the transaction is not the coordinator's any more. An epoch can
 * only be wrong inside one because somebody took the id over, or because it timed out. */
static bool ends_transaction(int16_t code)
{
    return code == KAFKA_ERROR_INVALID_TXN_STATE || code == KAFKA_ERROR_INVALID_PRODUCER_EPOCH ||
           code == KAFKA_ERROR_INVALID_PRODUCER_ID_MAPPING ||
           code == KAFKA_ERROR_TRANSACTIONAL_ID_NOT_FOUND;
}

/* The batch lands before anything is decided, so that each branch sees counts without it. */
void kafka_produce_answer(struct kafka_produce *produce, struct kafka_sink *sink,
                          uint32_t batch_index, int16_t code, int64_t base_offset)
{
    ASSERT(batch_index < produce->batch_total);
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    struct kafka_out_batch *batch = &produce->batches[batch_index];
    enum answer answer =
        produce->transactional_id != NULL && ends_transaction(code) ? ANSWER_FINAL : classify(code);
    kafka_produce_land(produce, sink, batch);
    if (answer == ANSWER_DONE) {
        acknowledge(produce, sink, batch, base_offset);
        return;
    }
    produce->core->counters.produce_errors++;
    switch (answer) {
    case ANSWER_AGAIN_CLEAN:
        batch->is_uncertain = batch->was_uncertain;
        recover(produce, sink, code);
        return;
    case ANSWER_REFUSED:
        batch->is_uncertain = batch->was_uncertain;
        batch->refusal = code;
        sink->is_recovering = true;
        return;
    case ANSWER_SEQUENCE:
        answer_sequence(produce, sink, batch, code);
        return;
    case ANSWER_FINAL:
        batch->is_uncertain = batch->was_uncertain;
        if (produce->transactional_id != NULL) {
            refuse_transaction(produce, code);
        }
        kafka_produce_fail(produce, sink, code);
        return;
    default:
        recover(produce, sink, code);
        return;
    }
}

/* Finds a sink's batch that a request carried. */
static uint32_t find_batch(const struct kafka_produce *produce, const struct kafka_sink *sink,
                           uint64_t token)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        if (produce->batches[i].is_in_flight && produce->batches[i].token == token) {
            return i;
        }
    }
    return KAFKA_NO_BATCH;
}

static struct kafka_sink *find_sink(const struct kafka_produce *produce, struct span topic,
                                    int32_t partition)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    uint32_t width = produce->core->config.topic_partitions_max;
    int32_t topic_index = kafka_metadata_find_topic(&produce->core->metadata, topic);
    if (topic_index < 0 || partition < 0 || (uint32_t)partition >= width) {
        return NULL;
    }
    int32_t index = produce->sink_of[(size_t)topic_index * width + (uint32_t)partition];
    return index < 0 ? NULL : &produce->sinks[index];
}

/* The sink and the batch are looked up from what the broker wrote, never trusted: an answer for
 * a batch that the request did not carry is dropped. */
static void take_partition(struct kafka_produce *produce, uint64_t token, struct span topic,
                           struct kafka_reader *reader)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    int32_t partition = kafka_read_i32(reader);
    int16_t code = kafka_read_i16(reader);
    int64_t base_offset = kafka_read_i64(reader);
    (void)kafka_read_i64(reader); /* log append time */
    (void)kafka_read_i64(reader); /* log start */
    struct kafka_sink *sink = reader->bad ? NULL : find_sink(produce, topic, partition);
    uint32_t index = sink == NULL ? KAFKA_NO_BATCH : find_batch(produce, sink, token);
    if (index != KAFKA_NO_BATCH) {
        kafka_produce_answer(produce, sink, index, code, base_offset);
    }
}

/* response v7: [topic: name, [partition i32, error i16, base offset i64, append time i64, log
 * start i64]], throttle i32 */
static bool take_topics(struct kafka_produce *produce, struct kafka_connection *connection)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    struct kafka_reader reader = kafka_reader_of(kafka_connection_body(connection));
    uint32_t topic_count = kafka_read_array(&reader, TOPIC_BYTES_MIN);
    for (uint32_t i = 0; i < topic_count && !reader.bad; i++) {
        struct span topic = kafka_read_string(&reader);
        uint32_t count = kafka_read_array(&reader, PARTITION_BYTES);
        for (uint32_t k = 0; k < count && !reader.bad; k++) {
            take_partition(produce, connection->held.token, topic, &reader);
        }
    }
    int32_t throttle_ms = kafka_read_i32(&reader);
    kafka_connection_throttle(connection, throttle_ms, produce->now_ns);
    return !reader.bad && reader.at == reader.bytes;
}

bool kafka_produce_take(struct kafka_produce *produce, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(produce->core != NULL);
    struct kafka_connection *connection = &produce->core->connections[connection_index];
    ASSERT(connection->held.api == KAFKA_API_PRODUCE);
    produce->now_ns = now_ns;
    uint64_t token = connection->held.token;
    if (!take_topics(produce, connection)) {
        kafka_connection_fail(connection, "a Produce response that cannot be read");
        return false;
    }
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        /* An answer that leaves a batch out says nothing about it. */
        uint32_t index = find_batch(produce, &produce->sinks[i], token);
        if (index != KAFKA_NO_BATCH) {
            kafka_produce_answer(produce, &produce->sinks[i], index,
                                 KAFKA_ERROR_UNKNOWN_SERVER_ERROR, -1);
        }
    }
    kafka_connection_done(connection, now_ns);
    return true;
}

/* A cut connection says nothing about its batches: they stay uncertain and are sent again under
 * their sequences on the next connection, in order (2). */
void kafka_produce_lost(struct kafka_produce *produce, uint32_t connection_index, uint64_t now_ns)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count <= produce->batch_total);
    produce->now_ns = now_ns;
    if (produce->init_on == connection_index) {
        produce->init_on = KAFKA_NO_CONNECTION;
    }
    if (kafka_core_role_of(connection_index) != KAFKA_ROLE_PRODUCE) {
        return;
    }
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        struct kafka_sink *sink = &produce->sinks[i];
        if (sink->in_flight_count == 0 || sink->in_flight_on != connection_index) {
            continue;
        }
        for (uint32_t at = sink->head; at != KAFKA_NO_BATCH; at = produce->batches[at].next) {
            if (produce->batches[at].is_in_flight) {
                kafka_produce_land(produce, sink, &produce->batches[at]);
            }
        }
        sink->is_recovering = true;
        kafka_produce_release(produce, sink);
    }
}

/* Takes a batch that has no records any more out of the middle of its queue. Lists run forwards
 * only; a walk is fine on a path that a refused record takes. */
static void unlink_batch(struct kafka_produce *produce, struct kafka_sink *sink, uint32_t index)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    uint32_t next = produce->batches[index].next;
    uint32_t before = KAFKA_NO_BATCH;
    for (uint32_t i = sink->head; i != index; i = produce->batches[i].next) {
        ASSERT(i != KAFKA_NO_BATCH);
        before = i;
    }
    if (before == KAFKA_NO_BATCH) {
        sink->head = next;
    } else {
        produce->batches[before].next = next;
    }
    if (sink->tail == index) {
        sink->tail = before;
    }
    sink->batch_count--;
    put_free(produce, index);
}

/* A record that the broker refuses on its own leaves a hole in the sequence. It was not appended,
 * so nothing after it was, and what follows moves up. But a broker that had forgotten the producer
 * may have taken what follows: a batch that moves up onto the sequence of one that was stored would
 * be answered as its duplicate and be lost. Where that is known only a new epoch is safe; where it
 * may be, the next batch goes alone (invariant 5), for a sequence error then tells. */
static void drop_record(struct kafka_produce *produce, struct kafka_sink *sink, uint32_t index)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    struct kafka_out_batch *batch = &produce->batches[index];
    ASSERT(batch->builder.record_count == 1);
    int32_t sequence = batch->base_sequence;
    bool has_acked = has_younger_acked(produce, batch);
    struct kafka_event event =
        event_of(produce, sink, KAFKA_EVENT_PRODUCE_RECORD_LOST, batch->refusal);
    kafka_events_push(&produce->core->events, &event,
                      "%.100s-%d: a record of %zu bytes is dropped: %s", topic_name(produce, sink),
                      sink->partition, batch->builder.bytes, kafka_error_name(batch->refusal));
    count_lost(produce, sink, batch);
    unlink_batch(produce, sink, index);
    if (has_acked) {
        want_epoch(produce, 0);
    } else {
        kafka_produce_renumber(produce, sink, sequence);
        sink->is_established = sink->is_established && !has_uncertain(produce, sink);
    }
    kafka_produce_release(produce, sink); /* what stood behind it may be acknowledged */
}

/* The batch's records, plain, in the scratch. */
static struct span plain_records(struct kafka_produce *produce, const struct kafka_batch *batch)
{
    ASSERT(produce->core != NULL);
    size_t bytes = 0;
    enum kafka_codec_verdict verdict = kafka_codec_decompress(
        produce->core->codec, batch->codec, batch->records, produce->scratch, &bytes);
    ASSERT(verdict == KAFKA_CODEC_OK); /* we built it ourselves */
    return (struct span){.data = produce->scratch.data, .bytes = bytes};
}

/* Rebuilds some of a batch's records, those before offset `limit`, as a sealed batch; it stays
 * plain, for the scratch holds the records. Timestamps keep the old base, offsets start at 0
 * again: an idempotent producer's batches carry deltas from 0 and the broker sets the base. */
static void rebuild(struct kafka_produce *produce, const struct kafka_batch *from,
                    struct kafka_reader *reader, int64_t limit, struct kafka_out_batch *into)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    kafka_builder_init(&into->builder, into->buffer);
    /* With another base the deltas might need more bytes than the buffer has. */
    into->builder.has_base = true;
    into->builder.base_timestamp_ms = from->base_timestamp_ms;
    while (reader->at < reader->bytes) {
        struct kafka_reader at = *reader;
        struct kafka_batch_record record;
        bool is_good = kafka_batch_record_next(from, reader, &record);
        ASSERT(is_good);
        if (record.offset >= limit) {
            *reader = at;
            break;
        }
        struct kafka_build_record build = {
            .key = record.key,
            .value = record.value,
            .has_key = record.has_key,
            .has_value = record.has_value,
            .timestamp_ms = record.timestamp_ms,
            .header_count = record.header_count,
            .encoded_headers = record.headers,
        };
        bool fits = kafka_builder_append(&into->builder, &build);
        ASSERT(fits);
    }
    struct kafka_stamp stamp = {.producer_id = produce->producer_id,
                                .producer_epoch = produce->producer_epoch,
                                .base_sequence = into->base_sequence,
                                .is_transactional = from->is_transactional};
    kafka_builder_finish(&into->builder, &stamp, NULL, (struct span_mut){0});
    into->state = KAFKA_OUT_SEALED;
    into->refusal = 0;
}

/* The first half stays in its own buffer: the records have been copied to the scratch, so it may
 * be overwritten in place. */
bool kafka_produce_split(struct kafka_produce *produce, struct kafka_sink *sink, uint32_t index)
{
    struct kafka_out_batch *first = &produce->batches[index];
    ASSERT(first->refusal != 0 && !first->is_in_flight && !first->is_acked);
    ASSERT(sink->in_flight_count == 0);
    if (first->builder.record_count == 1) {
        drop_record(produce, sink, index);
        return true;
    }
    ASSERT(!first->is_large);
    uint32_t second_index = kafka_produce_acquire(produce, false);
    if (second_index == KAFKA_NO_BATCH) {
        return false;
    }
    struct kafka_out_batch *second = &produce->batches[second_index];
    struct kafka_batch batch;
    enum kafka_batch_verdict verdict = kafka_batch_parse(
        (struct span){.data = first->builder.data, .bytes = first->builder.bytes}, &batch);
    ASSERT(verdict == KAFKA_BATCH_OK);
    struct kafka_reader reader = kafka_reader_of(plain_records(produce, &batch));
    /* With the last buffer only one record is taken off: that is answered for good, and so the
     * buffer comes back (invariant 6). */
    bool is_last = produce->free_small == KAFKA_NO_BATCH;
    int32_t half = is_last ? 1 : batch.record_count / 2;
    second->base_sequence =
        (int32_t)(((uint32_t)first->base_sequence + (uint32_t)half) & INT32_MAX);
    rebuild(produce, &batch, &reader, batch.base_offset + half, first);
    rebuild(produce, &batch, &reader, INT64_MAX, second);
    ASSERT(first->builder.record_count + second->builder.record_count == batch.record_count);
    second->was_sent = first->was_sent;
    second->is_uncertain = first->is_uncertain;
    second->next = first->next;
    first->next = second_index;
    sink->tail = sink->tail == index ? second_index : sink->tail;
    sink->batch_count++;
    produce->unsent_count++;
    produce->core->counters.batches_split++;
    return true;
}

/* request v3: transactional id compact null, timeout i32, producer id i64, epoch i16, tags. With
 * an id it asks for the next epoch of it (KIP-360), without one (-1, -1) for a new id. */
static bool send_init(struct kafka_produce *produce, struct kafka_connection *connection)
{
    ASSERT(produce != NULL);
    ASSERT(connection != NULL);
    const struct kafka_config *config = &produce->core->config;
    if (!kafka_connection_speaks(connection, KAFKA_API_INIT_PRODUCER_ID, INIT_VERSION)) {
        kafka_connection_fail(connection, "the broker does not speak InitProducerId v3");
        return false;
    }
    struct kafka_writer writer =
        kafka_connection_begin(connection, KAFKA_API_INIT_PRODUCER_ID, INIT_VERSION);
    kafka_write_compact_string(&writer, (struct span){0});
    kafka_write_i32(&writer, TRANSACTION_TIMEOUT);
    kafka_write_i64(&writer, produce->producer_id);
    kafka_write_i16(&writer, produce->producer_epoch);
    kafka_write_uvarint(&writer, 0);
    if (!kafka_connection_submit(connection, &writer, 0, config->request_timeout_ms,
                                 produce->now_ns)) {
        return false;
    }
    produce->init_on = kafka_core_index(produce->core, connection);
    return true;
}

/* The epoch may change only while nothing is in flight: an answer to the old epoch could not be
 * told from one to the new. */
uint32_t kafka_produce_poll_id(struct kafka_produce *produce)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->state != KAFKA_PRODUCER_READY);
    struct kafka_core *core = produce->core;
    if (produce->state == KAFKA_PRODUCER_FENCED || core->config.is_transactional ||
        produce->init_on != KAFKA_NO_CONNECTION || produce->flight_count > 0 ||
        produce->init_retry_at_ns > produce->now_ns) {
        return 0;
    }
    uint32_t count = core->metadata.broker_count - core->config.bootstrap_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t broker = core->config.bootstrap_count + (produce->init_fail_count + i) % count;
        struct kafka_connection *connection =
            kafka_core_ready(core, broker, KAFKA_ROLE_CONTROL, produce->now_ns);
        if (connection != NULL) {
            return send_init(produce, connection) ? 1 : 0;
        }
    }
    return 0;
}

/* What may be in the log from before comes once more under the new epoch: it is counted, and is
 * certain from then on. */
static void give_up_uncertain(struct kafka_produce *produce, struct kafka_sink *sink)
{
    uint32_t batches = 0;
    uint64_t records = 0;
    for (uint32_t i = sink->head; i != KAFKA_NO_BATCH; i = produce->batches[i].next) {
        struct kafka_out_batch *batch = &produce->batches[i];
        ASSERT(!batch->is_in_flight && !(batch->is_acked && batch->is_uncertain));
        if (batch->is_uncertain) {
            batch->is_uncertain = false;
            batches++;
            records += (uint64_t)batch->builder.record_count;
        }
    }
    if (batches > 0) {
        tell_repeated(produce, sink, batches, records);
    }
}

/* Starts every sink anew under the id and epoch that the broker gave. */
static void start_epoch(struct kafka_produce *produce)
{
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    ASSERT(produce->flight_count == 0);
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        struct kafka_sink *sink = &produce->sinks[i];
        give_up_uncertain(produce, sink);
        kafka_produce_renumber(produce, sink, 0);
        sink->is_established = false;
    }
    produce->state = KAFKA_PRODUCER_READY;
    produce->core->counters.producer_epoch_bumps++;
    struct kafka_event event = {.code = KAFKA_EVENT_PRODUCER_EPOCH,
                                .topic_index = -1,
                                .partition = -1,
                                .at_ns = produce->now_ns};
    kafka_events_push(&produce->core->events, &event, "producer id %lld, epoch %d",
                      (long long)produce->producer_id, produce->producer_epoch);
}

void kafka_produce_adopt(struct kafka_produce *produce, const char *transactional_id,
                         int64_t producer_id, int16_t producer_epoch, uint64_t now_ns)
{
    ASSERT(producer_id >= 0 && producer_epoch >= 0);
    ASSERT(produce->pending_count == 0);
    produce->now_ns = now_ns;
    produce->transactional_id = transactional_id;
    produce->producer_id = producer_id;
    produce->producer_epoch = producer_epoch;
    start_epoch(produce);
}

void kafka_produce_mark_added(struct kafka_produce *produce, struct span topic, int32_t partition)
{
    struct kafka_sink *sink = find_sink(produce, topic, partition);
    if (sink != NULL) {
        sink->is_added = true;
    }
}

/* A fenced id is given up and a new one asked for; without the right to one no sink can go on. */
static void init_failed(struct kafka_produce *produce, int16_t code)
{
    ASSERT(produce != NULL);
    produce->init_fail_count++;
    produce->init_retry_at_ns =
        kafka_core_retry_at(produce->core, produce->init_fail_count, produce->now_ns);
    struct kafka_event event = {.code = KAFKA_EVENT_REQUEST_REFUSED,
                                .topic_index = -1,
                                .partition = -1,
                                .error_code = code,
                                .at_ns = produce->now_ns};
    kafka_events_push(&produce->core->events, &event, "InitProducerId: %s", kafka_error_name(code));
    if (code == KAFKA_ERROR_PRODUCER_FENCED || code == KAFKA_ERROR_INVALID_PRODUCER_EPOCH ||
        code == KAFKA_ERROR_UNKNOWN_PRODUCER_ID) {
        produce->producer_id = -1;
        produce->producer_epoch = -1;
    }
    if (code == KAFKA_ERROR_CLUSTER_AUTHORIZATION_FAILED) {
        produce->state = KAFKA_PRODUCER_FENCED;
        for (uint32_t i = 0; i < produce->sink_count; i++) {
            kafka_produce_fail(produce, &produce->sinks[i], code);
        }
    }
}

/* response v3: throttle i32, error i16, producer id i64, epoch i16, tags. */
bool kafka_produce_take_id(struct kafka_produce *produce, uint32_t connection_index,
                           uint64_t now_ns)
{
    ASSERT(connection_index < produce->core->config.brokers_max * KAFKA_ROLE_COUNT);
    ASSERT(produce->sink_count <= produce->core->config.sinks_max);
    struct kafka_connection *connection = &produce->core->connections[connection_index];
    struct kafka_reader reader = kafka_reader_of(kafka_connection_body(connection));
    int32_t throttle_ms = kafka_read_i32(&reader);
    int16_t code = kafka_read_i16(&reader);
    int64_t producer_id = kafka_read_i64(&reader);
    int16_t epoch = kafka_read_i16(&reader);
    kafka_read_tags(&reader);
    produce->now_ns = now_ns;
    ASSERT(produce->init_on == connection_index);
    if (reader.bad || (code == 0 && (producer_id < 0 || epoch < 0))) {
        kafka_connection_fail(connection, "an InitProducerId response that cannot be read");
        return false;
    }
    produce->init_on = KAFKA_NO_CONNECTION;
    kafka_connection_throttle(connection, throttle_ms, now_ns);
    kafka_connection_done(connection, now_ns);
    if (code != 0) {
        init_failed(produce, code);
        return true;
    }
    produce->init_fail_count = 0;
    produce->producer_id = producer_id;
    produce->producer_epoch = epoch;
    start_epoch(produce);
    return true;
}
