/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one poll: take a batch, decode a chunk of it into staging, run the program over the
 * chunk, write its rows. Each step can stop for want of room and goes on in the next poll. A batch
 * whose records cannot wait (their bytes belong to the network) is given back from the first record
 * not finished on, and comes again.
 *
 *     record source -> batch -> [record_next] -> decoder -> chunk -> program -> output
 *                                                 |         staged rows   columns, watermark
 *                                                 +-> bad: fail, skip, dead letter
 *
 * Invariants:
 *   1. Rows go out in the order of records; rows of a record in the order the decoder gives them.
 *   2. Before a record is skipped or sent away, every row before it has gone out.
 *   3. A record of which some rows have gone out is resumed behind them, though decoded anew.
 *   4. No watermark goes out before all partitions are known: one not yet known could be behind. */
#include "dataplane/table_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/table_source_internal.h"

/* Staging is closed behind this much, for the cache. */
#define CHUNK_BYTES      (UINT32_C(32) << 10)
#define BATCH_ROOM_ROWS  256 /* what a batch of the network may hold */
#define NANOSECONDS_A_MS INT64_C(1000000)

static struct table_source *self_of(struct source *source)
{
    ASSERT(source->ops == &table_source_ops);
    return (struct table_source *)source;
}

/* ---- Watermarks ---- */

/* Called after each chance of a move; only growth is news. */
static void send_watermark(struct table_source *self, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const int64_t value_ms = self->partitions.watermark.value_ms;
    if (self->is_complete && value_ms > self->watermark_sent_ms) {
        self->watermark_sent_ms = value_ms;
        output_control(self->context->output, PARCEL_WATERMARK, value_ms);
        (*work)++;
    }
}

/* A source that has ended is not idle: it no longer holds anything back. */
static void tell_idleness(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const bool idle =
        self->is_complete && watermark_is_idle(&self->partitions.watermark) && !self->base.ended;
    if (idle != self->said_idle) {
        self->said_idle = idle;
        output_control(self->context->output, idle ? PARCEL_IDLE : PARCEL_ACTIVE, 0);
    }
}

/* Processing time never falls, though wall clocks and record times do. */
static void pass_time(struct table_source *self, int64_t now_ms)
{
    ASSERT_SLOW(self->context != NULL);
    if (now_ms > self->processing_ms) {
        self->processing_ms = now_ms;
        if (self->context->wants_ticks) {
            output_control(self->context->output, PARCEL_TICK, now_ms);
        }
    }
}

/* In a replay, time is the records': periodic watermarks go out between two records. Flink's
 * periodic emission, with the records' clock in place of the wall's: an interval starts at the
 * first record and the watermark goes out in front of the record that passes its end. */
static void pass_virtual_time(struct table_source *self, int64_t record_ms, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (self->context->is_replay) {
        pass_time(self, record_ms);
    }
    const int64_t interval_ms = (int64_t)self->plan->watermark_interval_ms;
    if (!self->context->is_replay || self->plan->watermark_on_event || interval_ms == 0 ||
        record_ms < self->next_emit_ms) {
        return;
    }
    if (self->next_emit_ms != INT64_MIN) {
        send_watermark(self, work);
    }
    self->next_emit_ms = record_ms + interval_ms;
}

/* A replay's rows in staging have times of their own, which write_row passes one by one. */
static void send_tick(struct table_source *self, uint64_t now_ns)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    int64_t now_ms = self->processing_ms;
    if (!self->context->is_replay) {
        now_ms = ((int64_t)now_ns + self->context->hooks->wall_offset_ns) / NANOSECONDS_A_MS;
    } else if (self->has_batch && self->record_next < self->batch.record_count &&
               self->chunk.next == self->chunk.count) {
        now_ms = self->batch.records[self->record_next].timestamp_ms;
    }
    pass_time(self, now_ms);
}

/* ---- Failures and bad records ---- */

/* Names the record as a person would look for it: table, topic, partition, offset. */
static enum operator_verdict fail_at(struct table_source *self, uint32_t record, const char *reason)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const uint32_t topic = self->batch.topic;
    (void)error_set(&self->context->failure, 0, "table %s, topic %s, partition %u, offset %lld: %s",
                    self->plan->table,
                    topic < self->plan->topic_count ? self->plan->topics[topic] : "?",
                    self->batch.partition, (long long)self->batch.records[record].offset, reason);
    return OPERATOR_FAILED;
}

/* The rows of a bad record that are still in staging are taken back. */
static void forget_record(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct chunk *chunk = &self->chunk;
    while (chunk->count > 0 && chunk->record[chunk->count - 1] == self->record_next) {
        chunk->count--;
        chunk->used -= chunk->rows[chunk->count]->bytes;
    }
}

/* A record counts when it is over, whether it gave rows or not; give_back takes the count back. */
static void end_record(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    self->in_record = false;
    self->rows_before = 0;
    self->rows_of_record = 0;
    self->record_next++;
    self->counters.records++;
}

/* The record at record_next waits, with this reason. */
static void hold_bad(struct table_source *self, const char *reason)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (reason != self->reason) {
        (void)snprintf(self->reason, sizeof(self->reason), "%s", reason);
    }
    self->is_bad = true;
}

/* Partition -1: where dead letters go is the sink's choice. */
static enum operator_verdict send_letter(struct table_source *self, const char *reason)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (!dead_letter_fill(&self->letter, &self->batch.records[self->record_next],
                          self->plan->topics[self->batch.topic], self->batch.partition, reason)) {
        return fail_at(self, self->record_next, "a dead letter has room for 1024 headers");
    }
    const enum record_sink_verdict verdict = record_sink_append(
        self->edge.dead_letters, self->edge.dead_letter_topic, -1, &self->letter.record);
    /* One that is too large for its topic is skipped: counted as bad, not as a letter. */
    self->counters.dead_letters += verdict == RECORD_SINK_OK;
    return verdict == RECORD_SINK_FULL ? OPERATOR_AGAIN : OPERATOR_DONE;
}

/* Deals with the record at record_next as the table says, once the rows before it have gone out:
 * then a batch that is given back never brings the same record here twice. */
static enum operator_verdict take_bad(struct table_source *self, const char *reason)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (self->plan->on_error == PLAN_ON_ERROR_FAIL) {
        return fail_at(self, self->record_next, reason);
    }
    forget_record(self);
    enum operator_verdict verdict = self->chunk.count > 0 ? OPERATOR_AGAIN : OPERATOR_DONE;
    if (verdict == OPERATOR_DONE && self->plan->on_error == PLAN_ON_ERROR_DEAD_LETTER) {
        verdict = send_letter(self, reason);
    }
    if (verdict == OPERATOR_AGAIN) {
        hold_bad(self, reason);
    }
    if (verdict != OPERATOR_DONE) {
        return verdict;
    }
    self->is_bad = false;
    self->counters.bad++;
    end_record(self);
    return OPERATOR_DONE;
}

/* ---- Decoding ---- */

enum step {
    STEP_MORE = 0, /* go on */
    STEP_CLOSE,    /* the chunk is full */
    STEP_AGAIN,
    STEP_FAILED,
};

static enum step step_of(enum operator_verdict verdict)
{
    return verdict == OPERATOR_DONE ? STEP_MORE
                                    : (verdict == OPERATOR_AGAIN ? STEP_AGAIN : STEP_FAILED);
}

/* A record that comes again after a rewind skips the rows that have gone out (3). */
static enum step begin_record(struct table_source *self)
{
    ASSERT_SLOW(self != NULL);
    const struct record *record = &self->batch.records[self->record_next];
    const struct partition_place *place = &self->partitions.places[self->number];
    if (place->resume_offset == record->offset) {
        self->rows_before = place->resume_rows;
    }
    switch (decoder_begin(self->decoder, record, self->batch.topic, self->batch.partition)) {
    case DECODER_OK:
        self->in_record = true;
        return STEP_MORE;
    case DECODER_SKIP:
        end_record(self);
        return STEP_MORE;
    default:
        return step_of(take_bad(self, decoder_reason(self->decoder)));
    }
}

/* Rows of a resumed record are decoded again and dropped until the place is reached. */
static void stage_row(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct chunk *chunk = &self->chunk;
    struct row *row = (struct row *)(void *)(chunk->bytes + chunk->used);
    ASSERT_SLOW(row_check(&self->plan->decoded, row, chunk->capacity - chunk->used));
    self->rows_of_record++;
    if (self->rows_of_record <= self->rows_before) {
        return;
    }
    chunk->rows[chunk->count] = row;
    chunk->record[chunk->count] = self->record_next;
    chunk->ordinal[chunk->count] = self->rows_of_record;
    chunk->count++;
    chunk->used += row->bytes;
}

/* FULL with rows staged only means that the chunk is full; without any, the row can never fit. */
static enum step decode_row(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct chunk *chunk = &self->chunk;
    const struct span_mut into = {
        .data = chunk->bytes + chunk->used,
        .bytes = chunk->capacity - chunk->used,
    };
    char reason[96];
    switch (decoder_next(self->decoder, into)) {
    case DECODER_ROW:
        stage_row(self);
        return STEP_MORE;
    case DECODER_END:
        end_record(self);
        return STEP_MORE;
    case DECODER_FULL:
        if (chunk->count > 0) {
            return STEP_CLOSE;
        }
        (void)snprintf(reason, sizeof(reason), "the row is larger than %u bytes", chunk->capacity);
        return step_of(take_bad(self, reason));
    default:
        return step_of(take_bad(self, decoder_reason(self->decoder)));
    }
}

/* Decodes records until the chunk is full or the batch is at its end. CHUNK_BYTES closes the
 * chunk, not the row: the last row may reach past it. */
static enum operator_verdict fill_chunk(struct table_source *self)
{
    ASSERT_SLOW(self != NULL);
    struct chunk *chunk = &self->chunk;
    enum step step = STEP_MORE;
    chunk->count = 0;
    chunk->used = 0;
    chunk->next = 0;
    chunk->run_first = 0;
    chunk->run_end = 0;
    if (self->is_bad) {
        step = step_of(take_bad(self, self->reason));
    }
    while (step == STEP_MORE && self->record_next < self->batch.record_count &&
           chunk->count < PARCEL_ROWS_MAX && chunk->used < CHUNK_BYTES) {
        step = self->in_record ? decode_row(self) : begin_record(self);
    }
    /* What was decoded before a record that has to wait goes out first. */
    if (step == STEP_AGAIN && chunk->count > 0) {
        return OPERATOR_DONE;
    }
    return step == STEP_FAILED ? OPERATOR_FAILED
                               : (step == STEP_AGAIN ? OPERATOR_AGAIN : OPERATOR_DONE);
}

/* ---- Computing and writing ---- */

/* Runs the program from row `next` on, over as many rows as its scratch allows. */
static enum operator_verdict run_program(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct chunk *chunk = &self->chunk;
    struct program_state *state = source_program_state(self->program);
    const struct program_context context = {
        .watermark_ms = self->partitions.watermark.value_ms,
        .processing_ms = self->processing_ms,
    };
    uint32_t count = chunk->count - chunk->next;
    /* A program that ran out of scratch runs again over half of the rows. */
    while (count > 0) {
        const enum program_verdict verdict = program_run(
            state, &context, (const struct row *const *)chunk->rows + chunk->next, count);
        if (verdict == PROGRAM_OK) {
            chunk->run_first = chunk->next;
            chunk->run_end = chunk->next + count;
            return OPERATOR_DONE;
        }
        if (verdict == PROGRAM_FAILED) {
            char reason[PROGRAM_REASON_BYTES];
            const uint32_t row = chunk->next + program_failure(state, reason);
            return fail_at(self, chunk->record[row], reason);
        }
        count /= 2;
    }
    return fail_at(self, chunk->record[chunk->next], "a computed column's text is too large");
}

static const struct vector *computed(const struct table_source *self, uint32_t output)
{
    ASSERT_SLOW(self->plan != NULL);
    return program_result(source_program_state(self->program), output);
}

/* The event time of a staged row: its time attribute in whole milliseconds. */
static int64_t time_of(const struct table_source *self, const struct row *row, uint32_t index)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const int32_t column = self->context->node->time_column;
    if (column < 0) {
        return ROW_TIME_NONE;
    }
    const uint32_t pick = self->plan->column_picks[column];
    if (pick < self->plan->field_count) {
        const struct timestamp *slot = row_slot(&self->plan->decoded, row, pick);
        return row_is_null(row, pick) ? ROW_TIME_NONE : slot->ms;
    }
    const struct vector *vector = computed(self, pick - self->plan->field_count);
    return vector->null[index] != VECTOR_VALUE ? ROW_TIME_NONE : vector->timestamp[index].ms;
}

/* Picks count over fields, then computed columns, see plan_source. */
static bool set_column(const struct table_source *self, struct row_writer *writer,
                       const struct row *row, uint32_t index, uint32_t column)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(self->plan != NULL);
    const uint32_t pick = self->plan->column_picks[column];
    if (pick < self->plan->field_count) {
        return row_copy_column(writer, column, &self->plan->decoded, row, pick);
    }
    return program_store(computed(self, pick - self->plan->field_count), index, writer, column);
}

/* A row that grows past its parcel is moved to a larger one, with doubling room. */
static bool write_picked(struct table_source *self, const struct row *row, uint32_t index)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct output *output = self->context->output;
    struct row_writer writer;
    if (!output_row_begin(output, &writer, row)) {
        return false;
    }
    for (uint32_t i = 0; i < self->context->node->layout.column_count; i++) {
        uint32_t more = row->bytes;
        while (!set_column(self, &writer, row, index, i)) {
            if (!output_row_grow(output, &writer, more)) {
                return false;
            }
            more *= 2;
        }
    }
    output_row_end(output, &writer);
    return true;
}

/* Takes a row's watermark into account; true when the minimum over partitions moved. A NULL
 * watermark expression moves nothing. */
static bool move_watermark(struct table_source *self, uint32_t index)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (self->plan->watermark == NULL) {
        return false;
    }
    const struct vector *vector = computed(self, self->plan->computed_count);
    return vector->null[index] == VECTOR_VALUE &&
           watermark_move(&self->partitions.watermark, self->number, vector->timestamp[index].ms);
}

/* In the order of Flink's source: periodic emission first, then the row, then its watermark. */
static enum operator_verdict write_row(struct table_source *self, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct chunk *chunk = &self->chunk;
    if (self->program != NULL && chunk->next >= chunk->run_end) {
        const enum operator_verdict verdict = run_program(self);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    const uint32_t index = chunk->next - chunk->run_first;
    const uint32_t record = chunk->record[chunk->next];
    struct row *row = chunk->rows[chunk->next];
    pass_virtual_time(self, self->batch.records[record].timestamp_ms, work);
    row->time_ms = time_of(self, row, index);
    const bool written = self->is_identity ? output_row_copy(self->context->output, row)
                                           : write_picked(self, row, index);
    if (!written) {
        return fail_at(self, record, "the row does not fit the largest parcel");
    }
    self->counters.rows++;
    chunk->next++;
    if (move_watermark(self, index) && self->plan->watermark_on_event) {
        send_watermark(self, work);
    }
    return OPERATOR_DONE;
}

static enum operator_verdict write_chunk(struct table_source *self, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    while (self->chunk.next < self->chunk.count) {
        if (!output_room(self->context->output, 1)) {
            return OPERATOR_AGAIN;
        }
        const enum operator_verdict verdict = write_row(self, work);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    return OPERATOR_DONE;
}

/* ---- Batches ---- */

/* Batches without records bring only news. */
static void begin_batch(struct table_source *self)
{
    ASSERT_SLOW(self != NULL);
    self->record_next = 0;
    self->in_record = false;
    self->rows_before = 0;
    self->rows_of_record = 0;
    if (self->batch.record_count > 0) {
        /* An idle partition that speaks again holds the watermark again. */
        (void)watermark_idle(&self->partitions.watermark, self->number, false);
        tell_idleness(self);
    }
}

/* In a replay a pause between files is no idleness: the recorded order decides. */
static void end_batch(struct table_source *self, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    bool moved = false;
    if (self->batch.ended) {
        moved = partitions_end(&self->partitions, self->number);
    } else if (self->batch.caught_up && !self->context->is_replay) {
        moved = watermark_idle(&self->partitions.watermark, self->number, true);
    }
    struct partition_place *place = &self->partitions.places[self->number];
    place->resume_offset = -1;
    if (self->batch.record_count > 0) {
        const struct record *last = &self->batch.records[self->batch.record_count - 1];
        place->next_offset = last->offset + 1;
        place->leader_epoch = last->leader_epoch;
    }
    if (moved) {
        send_watermark(self, work);
    }
    self->has_batch = false;
    record_source_release(self->edge.records);
    tell_idleness(self);
}

/* Kafka's bytes lie in the stream's buffer; files are mapped and stay. */
static bool cannot_wait(const struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    return self->edge.records->ops->rewind != NULL;
}

uint32_t table_source_resume_point(const struct table_source *self, uint32_t *rows_gone)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->has_batch);
    const struct chunk *chunk = &self->chunk;
    *rows_gone = 0;
    if (chunk->next < chunk->count) {
        *rows_gone = chunk->ordinal[chunk->next] - 1;
        return chunk->record[chunk->next];
    }
    if (self->in_record) {
        *rows_gone = self->rows_of_record;
    }
    return self->record_next;
}

/* Gives the rest of a batch back that cannot wait. What has gone out of a record in the middle is
 * remembered. */
static void give_back(struct table_source *self)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    struct record_source *records = self->edge.records;
    if (!self->has_batch || !cannot_wait(self) || self->batch.record_count == 0) {
        return;
    }
    struct partition_place *place = &self->partitions.places[self->number];
    uint32_t rows_gone;
    const uint32_t record = table_source_resume_point(self, &rows_gone);
    if (record >= self->batch.record_count) {
        return;
    }
    place->resume_offset = self->batch.records[record].offset;
    place->resume_rows = rows_gone;
    self->counters.records -= self->record_next - record;
    self->chunk.count = 0;
    self->chunk.next = 0;
    self->is_bad = false;
    self->in_record = false;
    self->has_batch = false;
    records->ops->rewind(records, self->batch.topic, self->batch.partition, place->resume_offset);
    record_source_release(records);
}

/* The list of partitions may grow until it is complete, which the watermark waits for (4). */
static bool take_batch(struct table_source *self, uint64_t now_ns)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    if (!self->is_complete) {
        self->is_complete = partitions_list(&self->partitions, self->edge.records);
        /* Only now is it known which partitions hold the watermark (4). */
        watermark_recount(&self->partitions.watermark, self->watermark_sent_ms);
    }
    if (!record_source_poll(self->edge.records, now_ns, &self->batch)) {
        return false;
    }
    if (self->batch.partition == UINT32_MAX) {
        /* The lane has no partition of this table; the list says so as well. */
        record_source_release(self->edge.records);
        return false;
    }
    self->number = partitions_find(&self->partitions, self->batch.topic, self->batch.partition);
    ASSERT(self->number != UINT32_MAX);
    self->has_batch = true;
    begin_batch(self);
    return true;
}

/* One stamp a chunk: the clock is read once for up to 256 rows. */
static void stamp_output(struct table_source *self, uint64_t now_ns)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const struct stage_hooks *hooks = self->context->hooks;
    const struct parcel stamps = {
        .processing_ms = self->processing_ms,
        .decoded_ns = hooks->clock == NULL ? now_ns : hooks->clock(hooks->context),
    };
    output_stamp(self->context->output, &stamps);
}

/* Works on the batch at hand. One chunk at a time, so that a poll's rows are bounded by its
 * budget and the chunk's size. */
static enum operator_verdict work_off(struct table_source *self, uint64_t now_ns, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    const uint32_t before = self->record_next;
    if (self->chunk.next == self->chunk.count &&
        (self->record_next < self->batch.record_count || self->is_bad)) {
        const enum operator_verdict verdict = fill_chunk(self);
        *work += self->record_next - before;
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        stamp_output(self, now_ns);
    }
    const enum operator_verdict verdict = write_chunk(self, work);
    if (verdict == OPERATOR_DONE && self->record_next == self->batch.record_count) {
        end_batch(self, work);
        (*work)++;
    }
    return verdict;
}

/* Ends the source when nothing will come any more. */
static void end_when_over(struct table_source *self, uint32_t *work)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->chunk.count <= PARCEL_ROWS_MAX);
    /* Recorded files end, whatever the table says of the topic. */
    const bool is_bounded = self->plan->bounded != PLAN_UNBOUNDED || self->context->is_replay;
    const bool all_ended =
        self->is_complete && is_bounded && self->partitions.ended_count == self->partitions.count;
    if (self->has_batch || self->base.ended || (!all_ended && !self->is_draining)) {
        return;
    }
    struct output *output = self->context->output;
    if (!self->is_draining || self->fires) {
        output_control(output, PARCEL_WATERMARK, WATERMARK_MAX);
    }
    output_control(output, PARCEL_END, 0);
    self->base.ended = true;
    (*work)++;
}

/* After a drain nothing new is taken, what is at hand is finished, and END goes out without a
 * last watermark: windows stay open for the next start. */
static enum operator_verdict table_source_poll(struct source *source, uint64_t now_ns,
                                               uint32_t records_max, uint32_t *work)
{
    struct table_source *self = self_of(source);
    enum operator_verdict verdict = OPERATOR_DONE;
    uint32_t done = 0;
    /* A batch that cannot wait is finished whatever the budget says: it is small. */
    while (verdict == OPERATOR_DONE &&
           (done < records_max || (self->has_batch && cannot_wait(self)))) {
        const bool may_take =
            !self->is_draining && output_room(self->context->output, BATCH_ROOM_ROWS);
        if (!self->has_batch && (!may_take || !take_batch(self, now_ns))) {
            break;
        }
        send_tick(self, now_ns);
        verdict = work_off(self, now_ns, &done);
    }
    if (verdict == OPERATOR_FAILED) {
        return verdict;
    }
    give_back(self);
    send_tick(self, now_ns);
    if (!self->context->is_replay) {
        send_watermark(self, &done);
    }
    tell_idleness(self);
    end_when_over(self, &done);
    *work += done;
    return verdict;
}

static void table_source_drain(struct source *source, bool fires)
{
    self_of(source)->is_draining = true;
    self_of(source)->fires = fires;
}

/* ---- Opening and closing ---- */

/* Then staged rows are copied whole, without going over columns. */
static bool is_identity(const struct plan_node *node)
{
    ASSERT_SLOW(node->input_count <= PLAN_INPUTS_MAX);
    const struct plan_source *plan = &node->source;
    bool same = node->layout.column_count == plan->field_count;
    for (uint32_t i = 0; same && i < plan->field_count; i++) {
        same = plan->column_picks[i] == i;
    }
    return same;
}

/* Parts are made in the order in which they need each other; close copes with any prefix. */
static int create_parts(struct table_source *self, struct error *error)
{
    ASSERT(self != NULL);
    const struct source_context *context = self->context;
    const struct table_source_environment *environment = context->environment;
    int code =
        environment->find(environment->context, context->node, context->lane, &self->edge, error);
    if (code == 0) {
        code = partitions_init(&self->partitions, TABLE_SOURCE_PARTITIONS_MAX, error);
    }
    if (code == 0) {
        const struct decoder_config config = {
            .source = self->plan,
            .record_bytes_max = self->edge.record_bytes_max,
        };
        code = decoder_create(&config, &self->decoder, error);
    }
    if (code == 0) {
        code = source_program_create(context->node, context->time_zone, &self->program, error);
    }
    self->chunk.capacity = output_row_bytes_max(context->output) & ~UINT32_C(7);
    self->chunk.bytes = code == 0 ? calloc(1, self->chunk.capacity) : NULL;
    if (code == 0 && self->chunk.bytes == NULL) {
        code = error_set(error, -ENOMEM, "out of memory for decoded rows");
    }
    if (code == 0 && !context->is_replay) {
        /* Resident from the start: a poll core must not meet a page fault. */
        memset(self->chunk.bytes, 1, self->chunk.capacity);
    }
    return code;
}

static void table_source_close(struct source *source)
{
    struct table_source *self = self_of(source);
    source_program_destroy(self->program);
    decoder_destroy(self->decoder);
    partitions_fini(&self->partitions);
    free(self->chunk.bytes);
    free(self);
}

static int table_source_open(struct source_context *context, struct source **out,
                             struct error *error)
{
    ASSERT(context != NULL);
    ASSERT(out != NULL);
    ASSERT(context->environment != NULL);
    struct table_source *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a source");
    }
    self->base.ops = &table_source_ops;
    self->context = context;
    self->plan = &context->node->source;
    self->is_identity = is_identity(context->node);
    self->watermark_sent_ms = WATERMARK_MIN;
    self->next_emit_ms = INT64_MIN;
    const int code = create_parts(self, error);
    if (code != 0) {
        table_source_close(&self->base);
        return code;
    }
    *out = &self->base;
    return 0;
}

const struct source_ops table_source_ops = {
    .open = table_source_open,
    .poll = table_source_poll,
    .drain = table_source_drain,
    .snapshot = table_source_snapshot,
    .restore = table_source_restore,
    .close = table_source_close,
};

bool table_source_assign(struct source *source, uint32_t topic, uint32_t partition)
{
    return partitions_find(&self_of(source)->partitions, topic, partition) != UINT32_MAX;
}

const struct table_source_counters *table_source_counters(const struct source *source)
{
    ASSERT(source->ops == &table_source_ops);
    return &((const struct table_source *)source)->counters;
}
