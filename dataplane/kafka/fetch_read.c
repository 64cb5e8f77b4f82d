/* SPDX-License-Identifier: Apache-2.0 */
/* The second walk over a response: batches are checked, decompressed and handed up record by
 * record. One batch is open at a time in the whole client, so one decode buffer is enough; several
 * connections may hold a response, and their batches are opened in turn.
 *
 *     held response: [entry: partition -> [batch][batch]...][entry]...
 *                     step_entry           step_batch -> open_batch -> take_records
 *
 * A step does one of these; a pull takes steps until it has records or nothing is held. Empty,
 * hidden and old batches cost a step each, so STEPS_MAX bounds a pull. */
#include "dataplane/kafka/codec.h"
#include "dataplane/kafka/fetch.h"

#define STEPS_MAX 1024 /* of one pull, over batches without records */

/* The list of aborted transactions comes once an answer, the markers come in the records: an
 * entry is done once its marker went by, so a later transaction of the same producer, which has
 * its own entry, is not hidden by it. */
static bool aborted_is_done(const struct kafka_fetch_hold *hold, uint32_t index)
{
    ASSERT_SLOW(index < KAFKA_ABORTED_MAX);
    return hold->aborted_done[index / 64] >> (index % 64) & 1;
}

/* An entry of the aborted list applies to a batch when it is the same producer's, starts at or
 * before `offset`, and its marker has not gone by. The list need not be sorted. */
static bool aborted_applies(const struct kafka_fetch_hold *hold, struct span body, uint32_t index,
                            int64_t producer_id, int64_t offset)
{
    ASSERT_SLOW(hold != NULL);
    ASSERT_SLOW(hold->entry.aborted_at + (index + 1) * KAFKA_ABORTED_ENTRY_BYTES <= body.bytes);
    const uint8_t *at =
        body.data + hold->entry.aborted_at + (size_t)index * KAFKA_ABORTED_ENTRY_BYTES;
    return (int64_t)load_be64(at) == producer_id && (int64_t)load_be64(at + 8) <= offset &&
           !aborted_is_done(hold, index);
}

/* The broker lists transactions by their first offset; a batch belongs to one when it ends at or
 * behind that. */
static bool is_aborted(const struct kafka_fetch_hold *hold, struct span body,
                       const struct kafka_batch *batch)
{
    ASSERT_SLOW(hold != NULL);
    ASSERT_SLOW(batch != NULL);
    int64_t last = batch->base_offset + batch->last_offset_delta;
    for (uint32_t i = 0; i < hold->entry.aborted_count; i++) {
        if (aborted_applies(hold, body, i, batch->producer_id, last)) {
            return true;
        }
    }
    return false;
}

/* A marker ends the transaction that its producer has open at that offset: at most one, for a
 * producer has one at a time. */
static void note_abort_marker(struct kafka_fetch_hold *hold, struct span body,
                              const struct kafka_batch *batch)
{
    ASSERT_SLOW(hold != NULL);
    ASSERT(batch->is_control);
    for (uint32_t i = 0; i < hold->entry.aborted_count; i++) {
        if (aborted_applies(hold, body, i, batch->producer_id, batch->base_offset)) {
            hold->aborted_done[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
}

/* Decodes the records when they are compressed; false when the source was sent back or failed. */
static bool decode(struct kafka_fetch *fetch, struct kafka_fetch_open *open, struct span body)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT_SLOW(open->read_bytes <= open->records_bytes);
    open->is_decoded = open->batch.codec != KAFKA_CODEC_NONE;
    open->records_at = (size_t)(open->batch.records.data - body.data);
    open->records_bytes = open->batch.records.bytes;
    if (!open->is_decoded) {
        return true;
    }
    enum kafka_codec_verdict verdict =
        kafka_codec_decompress(fetch->core->codec, open->batch.codec, open->batch.records,
                               fetch->decode_buffer, &open->records_bytes);
    ASSERT(open->records_bytes <= fetch->decode_buffer.bytes);
    switch (verdict) {
    case KAFKA_CODEC_OK:
        return true;
    case KAFKA_CODEC_BAD:
        kafka_fetch_corrupt(fetch, open->source_index, "a batch that cannot be decompressed");
        return false;
    case KAFKA_CODEC_TOO_LARGE:
        kafka_fetch_fail(fetch, open->source_index, 0, "a batch above decoded_bytes_max");
        return false;
    case KAFKA_CODEC_UNKNOWN:
        break;
    }
    kafka_fetch_fail(fetch, open->source_index, 0, "a batch in an unknown codec");
    return false;
}

/* Tells whether a batch has nothing for the application; markers are noted on the way. */
static bool is_hidden(struct kafka_fetch *fetch, struct kafka_fetch_hold *hold, struct span body,
                      const struct kafka_batch *batch)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT_SLOW(batch != NULL);
    bool is_committed_only = fetch->core->config.read_committed;
    if (batch->is_control) {
        fetch->core->counters.batches_control++;
        if (is_committed_only && kafka_batch_control(batch) == KAFKA_CONTROL_ABORT) {
            note_abort_marker(hold, body, batch);
        }
        return true;
    }
    if (is_committed_only && batch->is_transactional && is_aborted(hold, body, batch)) {
        fetch->core->counters.batches_aborted++;
        return true;
    }
    return batch->record_count == 0;
}

/* The checksum is looked at here and not on arrival: by now the bytes are about to be read
 * anyway, and batches that were rewound are never paid for. */
static void open_batch(struct kafka_fetch *fetch, uint32_t broker, struct span body,
                       const struct kafka_batch *batch)
{
    ASSERT(fetch != NULL);
    ASSERT_SLOW(body.data != NULL || body.bytes == 0);
    struct kafka_fetch_hold *hold = &fetch->holds[broker];
    struct kafka_source *source = kafka_fetch_source(fetch, hold->source_index);
    int64_t next_offset = kafka_batch_next_offset(batch);
    struct span whole = {.data = batch->records.data - KAFKA_BATCH_HEADER_BYTES,
                         .bytes = batch->total_bytes};
    ASSERT(!fetch->open.is_open);
    if (!kafka_batch_crc_is_good(whole)) {
        kafka_fetch_corrupt(fetch, hold->source_index, "a batch with a wrong checksum");
        return;
    }
    fetch->core->counters.batches_read++;
    /* Compressed batches come whole even when the fetch began in their middle, and after a rewind
     * old ones come again: nothing in them is at or above position. */
    if (is_hidden(fetch, hold, body, batch) || next_offset <= source->position) {
        (void)kafka_fetch_advance(fetch, hold->source_index, next_offset);
        return;
    }
    fetch->open = (struct kafka_fetch_open){
        .connection_index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH,
        .source_index = hold->source_index,
        .batch = *batch,
        .records_left = (uint32_t)batch->record_count,
    };
    fetch->open.is_open = decode(fetch, &fetch->open, body);
}

/* Steps to the next batch of the entry that a hold is in. The source may have been paused,
 * sought, unassigned or failed since the answer came; decode_on tells whether the bytes still
 * count. */
static void step_batch(struct kafka_fetch *fetch, uint32_t broker, struct span body)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    ASSERT_SLOW(body.data != NULL || body.bytes == 0);
    struct kafka_fetch_hold *hold = &fetch->holds[broker];
    uint32_t connection_index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH;
    struct kafka_source *source = &fetch->sources[hold->source_index];
    if (source->state != KAFKA_SOURCE_READING || source->decode_on != connection_index) {
        hold->in_records = false;
        return;
    }
    ASSERT(hold->records_read <= hold->entry.records_bytes);
    struct span rest = {.data = body.data + hold->entry.records_at + hold->records_read,
                        .bytes = hold->entry.records_bytes - hold->records_read};
    struct kafka_batch batch;
    switch (kafka_batch_parse(rest, &batch)) {
    case KAFKA_BATCH_OK:
        hold->records_read += batch.total_bytes;
        open_batch(fetch, broker, body, &batch);
        return;
    case KAFKA_BATCH_SHORT:
        hold->in_records = false;
        source->decode_on = KAFKA_NO_CONNECTION;
        return;
    case KAFKA_BATCH_LEGACY:
        kafka_fetch_fail(fetch, hold->source_index, 0,
                         "records in the format of Kafka before 0.11 (magic 0 or 1)");
        return;
    case KAFKA_BATCH_BAD:
        kafka_fetch_corrupt(fetch, hold->source_index, "bytes that are no record batch");
        return;
    }
}

/* Steps to the next partition of a held response, or lets go of it at the end. The cursor has
 * been walked once by kafka_fetch_take, so it cannot meet a malformed entry; but the source
 * behind an entry may have changed since. */
static void step_entry(struct kafka_fetch *fetch, uint32_t broker, struct span body)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_fetch_hold *hold = &fetch->holds[broker];
    uint32_t connection_index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH;
    struct kafka_fetch_entry *entry = &hold->entry;
    ASSERT(!hold->in_records);
    if (!kafka_fetch_cursor_next(&hold->cursor, body, entry)) {
        ASSERT(!hold->cursor.bad);
        hold->is_held = false;
        kafka_connection_done(&fetch->core->connections[connection_index], fetch->now_ns);
        return;
    }
    int32_t index = kafka_fetch_find(fetch, entry->topic, entry->partition);
    if (index < 0 || entry->records_bytes == 0 || entry->error_code != 0 ||
        fetch->sources[index].decode_on != connection_index) {
        return;
    }
    if (entry->aborted_count > KAFKA_ABORTED_MAX) {
        kafka_fetch_fail(fetch, (uint32_t)index, 0, "too many aborted transactions in one answer");
        return;
    }
    hold->source_index = (uint32_t)index;
    hold->records_read = 0;
    hold->in_records = true;
    memset(hold->aborted_done, 0, sizeof(hold->aborted_done));
}

/* Does one step on the next held response; false when none is held. Turns among the brokers'
 * holds only behind an opened batch, so that one busy broker cannot starve the others and cheap
 * steps do not turn at all. */
static bool step(struct kafka_fetch *fetch)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    uint32_t count = fetch->core->metadata.broker_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t broker = (fetch->hold_cursor + i) % count;
        struct kafka_fetch_hold *hold = &fetch->holds[broker];
        if (!hold->is_held) {
            continue;
        }
        uint32_t connection_index = broker * KAFKA_ROLE_COUNT + KAFKA_ROLE_FETCH;
        struct span body = kafka_connection_body(&fetch->core->connections[connection_index]);
        if (hold->in_records) {
            step_batch(fetch, broker, body);
        } else {
            step_entry(fetch, broker, body);
        }
        fetch->hold_cursor = fetch->open.is_open ? (broker + 1) % count : broker;
        return true;
    }
    return false;
}

static void fill(const struct kafka_fetch_open *open, const struct kafka_source *source,
                 const struct kafka_batch_record *from, struct kafka_record *out)
{
    ASSERT_SLOW(out != NULL);
    *out = (struct kafka_record){
        .source_index = open->source_index,
        .topic_index = source->assignment.topic_index,
        .partition = source->assignment.partition,
        .leader_epoch = open->batch.leader_epoch,
        .offset = from->offset,
        .timestamp_ms = from->timestamp_ms,
        .timestamp_type = open->batch.timestamp_type,
        .has_key = from->has_key,
        .has_value = from->has_value,
        .key = from->key,
        .value = from->value,
        .header_count = from->header_count,
        .headers = from->headers,
    };
}

/* The reader is made anew for each pull: a body is borrowed only until the network's next poll,
 * and between two pulls there may be one. */
static struct kafka_reader open_reader(const struct kafka_fetch *fetch)
{
    ASSERT(fetch != NULL);
    const struct kafka_fetch_open *open = &fetch->open;
    const uint8_t *data = fetch->decode_buffer.data;
    if (!open->is_decoded) {
        struct span body = kafka_connection_body(&fetch->core->connections[open->connection_index]);
        ASSERT(open->records_at + open->records_bytes <= body.bytes);
        data = body.data + open->records_at;
    }
    return (struct kafka_reader){
        .data = data, .bytes = open->records_bytes, .at = open->read_bytes};
}

/* Takes records out of the open batch; closes it once it is empty, bad or past the end. */
static uint32_t take_records(struct kafka_fetch *fetch, struct kafka_record *out,
                             uint32_t record_max)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT_SLOW(fetch->source_end <= fetch->core->config.sources_max);
    struct kafka_fetch_open *open = &fetch->open;
    struct kafka_source *source = kafka_fetch_source(fetch, open->source_index);
    struct kafka_reader reader = open_reader(fetch);
    uint64_t arrival_ns = fetch->core->connections[open->connection_index].held_arrival_ns;
    int64_t end = source->end_offset < 0 ? INT64_MAX : source->end_offset;
    int64_t position = source->position;
    uint32_t count = 0;
    uint64_t bytes = 0;
    struct kafka_batch_record record;
    while (open->records_left > 0 && count < record_max &&
           kafka_batch_record_next(&open->batch, &reader, &record) && record.offset < end) {
        open->records_left--;
        if (record.offset < position) {
            continue;
        }
        fill(open, source, &record, &out[count]);
        out[count++].arrival_ns = arrival_ns;
        bytes += record.key.bytes + record.value.bytes;
        position = record.offset + 1;
    }
    open->read_bytes = reader.at;
    fetch->core->counters.records_read += count;
    fetch->core->counters.record_bytes_read += bytes;
    uint32_t source_index = open->source_index;
    if (reader.bad) {
        if (kafka_fetch_advance(fetch, source_index, position)) {
            kafka_fetch_corrupt(fetch, source_index, "a record that cannot be read");
        }
        return count;
    }
    bool is_finished = open->records_left == 0 || count < record_max;
    if (is_finished) {
        source->leader_epoch = open->batch.leader_epoch;
        open->is_open = false;
        position = kafka_batch_next_offset(&open->batch);
        position = position < end ? position : end;
    }
    (void)kafka_fetch_advance(fetch, source_index, position);
    return count;
}

uint32_t kafka_fetch_pull(struct kafka_fetch *fetch, struct kafka_record *out, uint32_t record_max)
{
    ASSERT_SLOW(fetch->core != NULL);
    ASSERT(out != NULL);
    ASSERT(record_max > 0);
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        if (fetch->open.is_open) {
            uint32_t count = take_records(fetch, out, record_max);
            if (count > 0) {
                return count;
            }
        } else if (!step(fetch)) {
            return 0;
        }
    }
    return 0;
}
