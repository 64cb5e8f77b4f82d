/* SPDX-License-Identifier: Apache-2.0 */
/* OVER as Flink answers it: a row waits in its key's list until the watermark reaches its time;
 * then it goes up through all levels (frames) at once. One timer a key and time; timers fire in the
 * order of time and, within one time, of first arrival. What sets levels apart is kept in clocks,
 * one each:
 *
 *  1. A bounded frame takes a row whose time is above the key's last fired timer, wherever the
 *     watermark is; an unbounded frame takes a row above the watermark. The lowest level asks as
 *     the row comes, the others as it comes up to them, by the watermark before this one. A row
 *     that is late at one level counts below and goes no further: its tag says how many levels took
 *     it.
 *  2. RANGE: all rows of one time are taken in before the first of them is answered. ROWS: one by
 *     one in the order of arrival.
 *  3. Bounded RANGE forgets a key at time + 1.5 frames + 1 ms, a time set anew only when a row's
 *     time + 1 frame + 1 ms lies above it. One that was overtaken still counts as fired for rule 1.
 *     These are timers in Flink; here they are numbers in the level's clock, looked at when the key
 *     is touched (key_settle), and one timer a key looks later whether it can go. What one level
 *     forgets stays in the list for the others: tags from before do not count for it any more.
 *  4. In the stack that the node stands for, a level has taken in all rows up to the new watermark
 *     before it fires the first, so the rows of one watermark overtake the clean-ups in it.
 *
 * A full output, or many rows, stop in the middle: the timer stays the one that fires, ready_count
 * levels have let go of their leavers, ties in front of `tie` are in the accumulators, all of them
 * once is_accumulated, and those answered have left the list. The next advance goes on there. */
#include "dataplane/operator/over_internal.h"

#define TAG_DEPTH_BITS 8
#define DEAD_DROP_MAX  8

/* A time of a level has fired; those that are settled late may lie in front of others. */
static void clock_fire(struct over_clock *clock, int64_t time_ms)
{
    ASSERT_SLOW(clock != NULL);
    clock->last_ms = time_ms > clock->last_ms ? time_ms : clock->last_ms;
}

/* Fires those of the clean-up times before that have come by a time. */
static void overtaken_fire(struct over_clock *clock, int64_t until_ms)
{
    ASSERT_SLOW(clock != NULL);
    while (clock->overtaken_ms[0] != 0 && clock->overtaken_ms[0] <= until_ms) {
        clock_fire(clock, clock->overtaken_ms[0]);
        clock->overtaken_ms[0] = clock->overtaken_ms[1];
        clock->overtaken_ms[1] = 0;
    }
}

/* What a level's clean-up timers have done by a watermark: those before the last only count as
 * fired, the last forgets the key. */
static void clock_settle(struct over *self, const struct accumulator_state *state, uint32_t level,
                         int64_t watermark_ms)
{
    ASSERT_SLOW(level < self->frame_count);
    ASSERT_SLOW(state->value != NULL && state->heap != NULL);
    const struct over_frame *frame = &self->frames[level];
    struct over_clock *clock = &over_clocks(self, state)[level];
    if (!frame->is_range || clock->cleanup_ms == 0) {
        return;
    }
    if (clock->cleanup_ms <= watermark_ms) {
        accumulators_clear(frame->set, state);
        accumulators_init(frame->set, state);
        *clock = (struct over_clock){.forgotten = over_key(state)->sequence};
    }
    overtaken_fire(clock, watermark_ms);
}

/* A row comes up to a level in front of which clean-up timers fire in the same watermark: rule 4,
 * it has overtaken even the last of them. */
static void clock_overtake(struct over_clock *clock, int64_t row_ms)
{
    ASSERT_SLOW(clock != NULL);
    overtaken_fire(clock, over_minus(row_ms, 1));
    if (clock->cleanup_ms != 0 && clock->cleanup_ms < row_ms) {
        ASSERT(clock->overtaken_ms[0] == 0);
        clock_fire(clock, clock->cleanup_ms);
        clock->cleanup_ms = 0;
    }
}

/* Brings a key's clocks up to a watermark that all its timers have seen, once: what is set later
 * for a time that this watermark has passed already fires with the next. */
static void key_settle(struct over *self, const struct accumulator_state *state,
                       int64_t watermark_ms)
{
    ASSERT_SLOW(state->value != NULL);
    struct over_key *key = over_key(state);
    if (key->last_ms >= watermark_ms) {
        return;
    }
    key->last_ms = watermark_ms;
    for (uint32_t level = 0; level < self->frame_count; level++) {
        clock_settle(self, state, level, watermark_ms);
    }
}

/* Whether a row that comes up to a level above the lowest is late there. */
static bool frame_is_late(struct over *self, const struct accumulator_state *state, uint32_t level,
                          int64_t time_ms)
{
    ASSERT_SLOW(level != 0 && level < self->frame_count);
    ASSERT_SLOW(self->is_advancing);
    struct over_clock *clock = &over_clocks(self, state)[level];
    if (self->frames[level].plan->unbounded) {
        return time_ms <= self->before_ms;
    }
    if (self->frames[level].is_range) {
        clock_overtake(clock, time_ms);
    }
    return time_ms <= clock->last_ms;
}

/* The lowest level, for a row that comes now; a key that is not there has nothing fired. */
static bool is_late(struct over *self, const struct accumulator_state *state, int64_t time_ms)
{
    if (state->value != NULL) {
        key_settle(self, state, self->watermark_ms);
    }
    if (self->frames[0].plan->unbounded) {
        return time_ms <= self->watermark_ms;
    }
    return time_ms <= (state->value == NULL ? 0 : over_clocks(self, state)->last_ms);
}

/* Whether a row of this time waits already, and so has set the timer. */
static bool has_timer(const struct over *self, const struct accumulator_state *state,
                      int64_t time_ms)
{
    ASSERT_SLOW(state->value != NULL);
    struct list_cursor cursor;
    const struct list_head *pending = over_pending(state);
    if (!list_last(self->context->heap, pending, &cursor)) {
        return false;
    }
    int64_t order = list_item(self->context->heap, &cursor).order;
    if (order > time_ms && list_seek(self->context->heap, pending, time_ms, &cursor)) {
        order = list_item(self->context->heap, &cursor).order;
    }
    return order == time_ms;
}

/* Rule 3: Flink's clean-up, 1.5 frames after a row, rounded through a double as in Flink. */
static int64_t cleanup_time(const struct over_frame *frame, int64_t time_ms)
{
    ASSERT_SLOW(frame->is_range);
    ASSERT_SLOW(frame->plan->preceding >= 0);
    const int64_t late_ms = (int64_t)((double)frame->plan->preceding * 1.5);
    return over_plus(over_plus(time_ms, late_ms), 1);
}

/* A level takes in a row: when will it forget the key? The time before is kept, since passing it
 * still counts; only for rows far ahead of the watermark, at level 0, is there one too many. */
static bool cleanup_register(struct over *self, const struct accumulator_state *state,
                             uint32_t level, int64_t time_ms, const struct over_due *key)
{
    ASSERT_SLOW(level < self->frame_count);
    ASSERT_SLOW(key->key.data != NULL);
    const struct over_frame *frame = &self->frames[level];
    struct over_clock *clock = &over_clocks(self, state)[level];
    if (!frame->is_range) {
        return true;
    }
    const int64_t before_ms = clock->cleanup_ms;
    if (before_ms != 0 && before_ms >= over_plus(over_plus(time_ms, frame->plan->preceding), 1)) {
        return true;
    }
    clock->cleanup_ms = cleanup_time(frame, time_ms);
    if (before_ms != 0 && clock->overtaken_ms[1] != 0) {
        ASSERT(level == 0);
        const struct over_due overtaken = {
            .time_ms = before_ms,
            .hash = key->hash,
            .key = key->key,
            .tag = OVER_TAG_OVERTAKEN,
        };
        return over_timer_set(self, &overtaken);
    }
    clock->overtaken_ms[clock->overtaken_ms[0] != 0] = before_ms;
    return true;
}

/* Sets the timer that looks whether a key has ended.
 * newest_ms  the newest row that waits; or when all its rows have been answered, INT64_MIN */
static bool end_timer_set(struct over *self, const struct accumulator_state *state,
                          int64_t newest_ms, const struct over_due *key)
{
    ASSERT_SLOW(state->value != NULL);
    ASSERT(self->all_range);
    int64_t end_ms = INT64_MIN;
    for (uint32_t level = 0; level < self->frame_count; level++) {
        const int64_t own_ms = over_clocks(self, state)[level].cleanup_ms;
        const int64_t new_ms =
            newest_ms == INT64_MIN ? INT64_MIN : cleanup_time(&self->frames[level], newest_ms);
        end_ms = own_ms > end_ms ? own_ms : end_ms;
        end_ms = new_ms > end_ms ? new_ms : end_ms;
    }
    const struct over_due end = {
        .time_ms = over_plus(end_ms, OVER_END_SLACK_MS),
        .hash = key->hash,
        .key = key->key,
        .tag = OVER_TAG_END,
    };
    return over_timer_set(self, &end);
}

/* A late row is a touch of its key as well, which it makes where keys have a deadline. */
static enum operator_verdict late_drop(struct over *self, const struct over_lookup *lookup)
{
    self->context->counters[OPERATOR_LATE_ROWS]++;
    if (self->expiry.ttl_ms != 0) {
        bool created;
        const struct accumulator_state state = over_take(self, lookup, &created);
        if (state.value == NULL) {
            return operator_fail_full(self->context);
        }
        over_expiry_keep(self, &state);
    }
    return OPERATOR_DONE;
}

enum operator_verdict over_event_row(struct over *self, const struct row *row,
                                     const struct over_lookup *lookup)
{
    ASSERT_SLOW(row->bytes >= sizeof(*row));
    const int64_t time_ms = over_time(row);
    const struct over_due due = {.time_ms = time_ms, .hash = lookup->hash, .key = lookup->key};
    struct over_lookup known = *lookup;
    if (known.value == NULL) {
        known.value = table_find_write(self->keys, lookup->hash, lookup->key);
    }
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = known.value,
        .shard = table_shard(self->keys, lookup->hash),
    };
    if (state.value != NULL && over_expiry_end(self, &state, lookup->hash, lookup->key)) {
        known.value = NULL;
        state.value = NULL;
    }
    if (is_late(self, &state, time_ms)) {
        return late_drop(self, &known);
    }
    if (row->bytes > OPERATOR_ROW_BYTES - sizeof(*row)) {
        return operator_fail_row(self->context);
    }
    bool created;
    state = over_take(self, &known, &created);
    if (state.value == NULL) {
        return operator_fail_full(self->context);
    }
    over_expiry_keep(self, &state);
    const bool timed = has_timer(self, &state, time_ms);
    const struct span content = {.data = (const uint8_t *)row, .bytes = row->bytes};
    if (!list_insert(self->context->heap, over_pending(&state), time_ms, content) ||
        (!timed && !over_timer_set(self, &due)) ||
        !cleanup_register(self, &state, 0, time_ms, &due) ||
        (created && self->all_range && !end_timer_set(self, &state, time_ms, &due))) {
        return operator_fail_full(self->context);
    }
    return OPERATOR_DONE;
}

/* Shows a waiting row; a long one is read into memory first. */
static const struct row *pending_row(struct over *self, const struct list_item *item)
{
    if (item->data != NULL) {
        return (const struct row *)(const void *)item->data;
    }
    ASSERT(item->bytes <= OPERATOR_ROW_BYTES);
    heap_blob_read(self->context->heap, item->blob, 0, item->bytes, self->pending_row);
    return (const struct row *)(const void *)self->pending_row;
}

/* Whether a listed row is one of a level's. */
static bool is_member(const struct over_clock *clock, uint32_t level, uint64_t tag)
{
    ASSERT_SLOW(level < PLAN_OVER_FRAMES_MAX);
    return (tag & ((1U << TAG_DEPTH_BITS) - 1)) > level &&
           tag >> TAG_DEPTH_BITS >= clock->forgotten;
}

/* RANGE: lets go of rows that are more than the frame older than time_ms. */
static enum operator_verdict range_retract(struct over *self, struct accumulator_state *state,
                                           uint32_t level, int64_t time_ms)
{
    ASSERT_SLOW(level < self->frame_count);
    ASSERT_SLOW(self->frames[level].mark != OVER_MARK_NONE);
    const struct over_frame *frame = &self->frames[level];
    const struct over_clock *clock = &over_clocks(self, state)[level];
    const int64_t start_ms = over_minus(time_ms, frame->plan->preceding);
    struct list_item item;
    while (list_mark_pass(self->context->heap, over_rows(state), frame->mark, start_ms, &item)) {
        const struct row *packed = over_packer_unpack(&self->packer, self->context->heap, &item);
        state->order = item.order;
        if (is_member(clock, level, packed->arrival_ns) &&
            !accumulators_retract(frame->set, state, packed)) {
            return operator_fail_full(self->context);
        }
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
    }
    return OPERATOR_DONE;
}

/* ROWS: lets go of the oldest row. */
static bool rows_retract(struct over *self, struct accumulator_state *state, uint32_t level)
{
    ASSERT_SLOW(level < self->frame_count);
    ASSERT_SLOW(self->frames[level].plan->is_rows);
    const struct over_frame *frame = &self->frames[level];
    struct over_clock *clock = &over_clocks(self, state)[level];
    struct list_item item;
    while (list_mark_step(self->context->heap, over_rows(state), frame->mark, &item)) {
        const struct row *packed = over_packer_unpack(&self->packer, self->context->heap, &item);
        if (is_member(clock, level, packed->arrival_ns)) {
            state->order = clock->taken_out++;
            return accumulators_retract(frame->set, state, packed);
        }
    }
    ASSERT(false); /* the frame holds taken_in - taken_out rows */
    return false;
}

/* Readies the levels that take the rows of the due time: clean-up, leavers, marks. */
static enum operator_verdict levels_ready(struct over *self, struct accumulator_state *state,
                                          const struct over_due *due)
{
    ASSERT_SLOW(self->due_depth >= 1 && self->due_depth <= self->frame_count);
    const int64_t time_ms = due->time_ms;
    struct list_head *rows = over_rows(state);
    for (; self->ready_count < self->due_depth; self->ready_count++) {
        const uint32_t level = self->ready_count;
        const struct over_frame *frame = &self->frames[level];
        if (level != 0 && !cleanup_register(self, state, level, time_ms, due)) {
            return operator_fail_full(self->context);
        }
        const enum operator_verdict verdict =
            frame->is_range ? range_retract(self, state, level, time_ms) : OPERATOR_DONE;
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        /* A level that forgot the key takes rows from before what it had. */
        if (frame->mark != OVER_MARK_NONE && rows->marks[frame->mark].bound > time_ms) {
            list_mark_rewind(self->context->heap, rows, frame->mark, time_ms);
        }
    }
    return OPERATOR_DONE;
}

/* Lists a waiting row for the frames that must give it back one day.
 * packed   set to it as listed, NULL when no level needs that
 * returns  false when the arena is exhausted */
static bool row_list(struct over *self, const struct accumulator_state *state, int64_t time_ms,
                     const struct row *row, const struct row **packed)
{
    ASSERT_SLOW(packed != NULL);
    ASSERT_SLOW(state->value != NULL);
    bool is_needed = false;
    for (uint32_t level = 0; level < self->due_depth; level++) {
        is_needed = is_needed || self->frames[level].mark != OVER_MARK_NONE;
    }
    *packed = NULL;
    if (!is_needed) {
        return true;
    }
    const uint64_t tag = over_key(state)->sequence++ << TAG_DEPTH_BITS | self->due_depth;
    const struct span content = over_packer_pack(&self->packer, row, tag);
    if (content.data == NULL ||
        !list_insert(self->context->heap, over_rows(state), time_ms, content)) {
        return false;
    }
    *packed = over_packer_row(&self->packer, content.data);
    return true;
}

/* Takes a waiting row of the due time into the list and into the RANGE frames.
 * returns  false when the arena is exhausted */
static bool tie_accumulate(struct over *self, struct accumulator_state *state, int64_t time_ms,
                           const struct row *row)
{
    const struct row *packed;
    if (!row_list(self, state, time_ms, row, &packed)) {
        return false;
    }
    state->order = time_ms;
    for (uint32_t level = 0; level < self->due_depth; level++) {
        const struct over_frame *frame = &self->frames[level];
        if (!frame->plan->is_rows &&
            !accumulators_add(frame->set, state, frame->reads_packed ? packed : row)) {
            return false;
        }
    }
    return true;
}

/* Takes in all waiting rows of the due time. */
static enum operator_verdict ties_accumulate(struct over *self, struct accumulator_state *state,
                                             int64_t time_ms)
{
    ASSERT_SLOW(!self->is_accumulated);
    const struct heap *heap = self->context->heap;
    bool more = self->has_tie || list_first(heap, over_pending(state), &self->tie);
    self->has_tie = true;
    for (; more; more = list_next(heap, &self->tie)) {
        const struct list_item item = list_item(heap, &self->tie);
        ASSERT(item.order >= time_ms);
        if (item.order != time_ms) {
            break;
        }
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
        if (!tie_accumulate(self, state, time_ms, pending_row(self, &item))) {
            return operator_fail_full(self->context);
        }
    }
    self->has_tie = false;
    return OPERATOR_DONE;
}

/* Takes a row into the ROWS frames, which see only those before it. */
static bool row_accumulate(struct over *self, struct accumulator_state *state,
                           const struct row *row)
{
    ASSERT_SLOW(self->is_accumulated);
    ASSERT_SLOW(row->bytes >= sizeof(*row));
    const struct row *packed = NULL;
    for (uint32_t level = 0; level < self->due_depth; level++) {
        const struct over_frame *frame = &self->frames[level];
        struct over_clock *clock = &over_clocks(self, state)[level];
        if (!frame->plan->is_rows) {
            continue;
        }
        if (frame->reads_packed && clock->taken_in - clock->taken_out > frame->plan->preceding &&
            !rows_retract(self, state, level)) {
            return false;
        }
        if (frame->reads_packed && packed == NULL) {
            const struct span content = over_packer_pack(&self->packer, row, 0);
            ASSERT(content.data != NULL); /* it was listed */
            packed = over_packer_row(&self->packer, content.data);
        }
        state->order = clock->taken_in++;
        if (!accumulators_add(frame->set, state, frame->reads_packed ? packed : row)) {
            return false;
        }
    }
    return true;
}

/* The row goes out widened by the results of all frames. */
static bool row_emit(struct over *self, const struct accumulator_state *state,
                     const struct row *row)
{
    ASSERT_SLOW(self->due_depth == self->frame_count);
    struct row_writer writer;
    struct output *output = self->context->output;
    if (!widener_begin(&self->widener, output, &writer, row)) {
        return false;
    }
    for (uint32_t level = 0; level < self->frame_count; level++) {
        const struct over_frame *frame = &self->frames[level];
        if (!results_store(frame->set, state, output, &writer, frame->first_column)) {
            return false;
        }
    }
    output_row_end(output, &writer);
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return true;
}

/* Answers the waiting rows of the due time, as many as the output takes. */
static enum operator_verdict answer(struct over *self, struct accumulator_state *state,
                                    int64_t time_ms)
{
    ASSERT(self->is_accumulated);
    struct heap *heap = self->context->heap;
    struct list_head *pending = over_pending(state);
    struct list_cursor cursor;
    while (list_first(heap, pending, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order != time_ms) {
            break;
        }
        const bool goes_out = self->due_depth == self->frame_count;
        if ((goes_out && !output_has_room(self->context->output)) || !over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
        const struct row *row = pending_row(self, &item);
        if (!row_accumulate(self, state, row)) {
            return operator_fail_full(self->context);
        }
        if (goes_out && !row_emit(self, state, row)) {
            return operator_fail_row(self->context);
        }
        self->context->counters[OPERATOR_LATE_ROWS] += !goes_out;
        list_drop_first(heap, pending);
    }
    return OPERATOR_DONE;
}

/* Gives up the first rows of the list that no frame holds any more: as many as this call has let
 * go, and a few more, so that the list shrinks. */
static void dead_drop(struct over *self, const struct accumulator_state *state)
{
    ASSERT_SLOW(state->value != NULL);
    const uint32_t count_max = DEAD_DROP_MAX + OVER_STEPS_MAX - self->steps_left;
    struct heap *heap = self->context->heap;
    struct list_head *rows = over_rows(state);
    struct list_cursor first;
    for (uint32_t i = 0; i < count_max && list_first(heap, rows, &first); i++) {
        const struct list_item item = list_item(heap, &first);
        const uint64_t tag = over_packer_unpack(&self->packer, heap, &item)->arrival_ns;
        for (uint32_t level = 0; level < self->frame_count; level++) {
            const uint32_t mark = self->frames[level].mark;
            struct list_cursor at;
            /* A mark that is not at the first row has passed it. */
            if (mark != OVER_MARK_NONE && is_member(&over_clocks(self, state)[level], level, tag) &&
                list_mark(heap, rows, mark, &at) && at.chunk == first.chunk &&
                at.index == first.index) {
                return;
            }
        }
        list_drop_first(heap, rows);
    }
}

/* Readies all levels that take the rows of the due time, and takes in what they may see. */
static enum operator_verdict rows_take_in(struct over *self, struct accumulator_state *state,
                                          const struct over_due *due)
{
    if (!self->is_measured) {
        key_settle(self, state, self->before_ms);
        (void)over_expiry_end(self, state, due->hash, due->key); /* rows wait: it goes on */
        self->due_depth = 1;
        while (self->due_depth < self->frame_count &&
               !frame_is_late(self, state, self->due_depth, due->time_ms)) {
            self->due_depth++;
        }
        self->ready_count = 0;
        self->is_measured = true;
    }
    enum operator_verdict verdict = levels_ready(self, state, due);
    if (verdict == OPERATOR_DONE) {
        verdict = ties_accumulate(self, state, due->time_ms);
    }
    return verdict;
}

/* Fires the rows of the due time through all levels that take them. */
static enum operator_verdict rows_fire(struct over *self, struct accumulator_state *state,
                                       const struct over_due *due)
{
    ASSERT_SLOW(due->time_ms <= self->watermark_ms);
    ASSERT_SLOW(state->value != NULL);
    struct list_cursor cursor;
    const int64_t time_ms = due->time_ms;
    if (!list_first(state->heap, over_pending(state), &cursor) ||
        list_item(state->heap, &cursor).order != time_ms) {
        return OPERATOR_DONE; /* another timer of this time has answered them */
    }
    enum operator_verdict verdict = OPERATOR_DONE;
    if (!self->is_accumulated) {
        verdict = rows_take_in(self, state, due);
        self->is_accumulated = verdict == OPERATOR_DONE;
    }
    if (verdict == OPERATOR_DONE) {
        verdict = answer(self, state, time_ms);
    }
    if (verdict == OPERATOR_DONE) {
        struct over_clock *clocks = over_clocks(self, state);
        for (uint32_t level = 0; level < self->due_depth; level++) {
            clock_fire(&clocks[level], time_ms);
        }
        self->is_accumulated = false;
        self->is_measured = false;
        over_expiry_keep(self, state);
    }
    if (verdict != OPERATOR_FAILED) {
        dead_drop(self, state);
    }
    return verdict;
}

/* Removes a key that all levels have forgotten, or looks again when that may be so. */
static bool end_fire(struct over *self, const struct accumulator_state *state,
                     const struct over_due *due)
{
    ASSERT_SLOW(due->tag == OVER_TAG_END);
    struct list_cursor cursor;
    int64_t newest_ms = INT64_MIN;
    bool is_over = true;
    if (list_last(state->heap, over_pending(state), &cursor)) {
        newest_ms = list_item(state->heap, &cursor).order;
        is_over = false;
    }
    for (uint32_t level = 0; level < self->frame_count; level++) {
        is_over = is_over && over_clocks(self, state)[level].cleanup_ms <= due->time_ms;
    }
    if (is_over) {
        over_remove(self, state, due->hash, due->key);
        return true;
    }
    return end_timer_set(self, state, newest_ms, due);
}

static enum operator_verdict fire(struct over *self, const struct over_due *due)
{
    ASSERT_SLOW(due->time_ms <= self->watermark_ms);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = due->value,
        .shard = table_shard(self->keys, due->hash),
    };
    if (due->tag == OVER_TAG_ROWS) {
        ASSERT(state.value != NULL); /* a key with rows that wait does not end */
        return rows_fire(self, &state, due);
    }
    if (due->tag == OVER_TAG_END) {
        ASSERT(state.value != NULL); /* one timer a key, from its first row to its end */
        return end_fire(self, &state, due) ? OPERATOR_DONE : operator_fail_full(self->context);
    }
    ASSERT(due->tag == OVER_TAG_OVERTAKEN);
    if (state.value != NULL) {
        clock_fire(over_clocks(self, &state), due->time_ms);
    }
    return OPERATOR_DONE;
}

enum operator_verdict over_event_advance(struct over *self)
{
    ASSERT_SLOW(!self->plan->on_arrival);
    struct over_due *due = over_due_again(self);
    due = due != NULL ? due : over_due_next(self);
    for (; due != NULL; due = over_due_next(self)) {
        const enum operator_verdict verdict = fire(self, due);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->due_is_done = true;
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
    }
    return OPERATOR_DONE;
}
