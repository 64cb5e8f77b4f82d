/* SPDX-License-Identifier: Apache-2.0 */
/* OVER as Flink answers it: a row waits in its key's list until the watermark reaches its time; then
 * it goes up through all levels (frames) at once. One timer a key and time; timers fire in the order
 * of time and, within one time, of first arrival. What sets levels apart is kept in clocks, one each:
 *
 *  1. A bounded frame takes a row whose time is above the key's last fired timer, wherever the
 *     watermark is; an unbounded frame takes a row above the watermark. The lowest level asks as the
 *     row comes, the others as it comes up to them, by the watermark before this one. A row that is
 *     late at one level counts below and goes no further: its tag says how many levels took it.
 *  2. RANGE: all rows of one time are taken in before the first of them is answered. ROWS: one by
 *     one in the order of arrival.
 *  3. Bounded RANGE forgets a key by a clean-up timer at time + 1.5 frames + 1 ms, set anew only
 *     when a row's time + 1 frame + 1 ms lies above it. A clean-up timer that was overtaken still
 *     counts as fired for rule 1. What one level forgets stays in the list for the others: tags from
 *     before do not count for it any more.
 *  4. In the stack that the node stands for, a level has taken in all rows up to the new watermark
 *     before it fires the first, so a clean-up looks ahead at the rows that still wait below.
 *
 * A full output stops in the middle of the ties: the timer stays in self->due (is_firing), the ties
 * that are in the accumulators already are told by is_accumulated, and those answered have left the
 * list. The next advance goes on there. */
#include "dataplane/operator/over_internal.h"

#define TAG_DEPTH_BITS 8
#define DEAD_DROP_MAX  8

static bool frame_is_late(const struct over *self, const struct accumulator_state *state,
                          uint32_t level, int64_t time_ms)
{
    if (self->frames[level].plan->unbounded) {
        return time_ms <= self->before_ms;
    }
    return time_ms <= over_clocks(self, state)[level].last_ms;
}

/* The lowest level, for a row that comes now; a key that is not there has nothing fired. */
static bool is_late(const struct over *self, const struct accumulator_state *state, int64_t time_ms)
{
    if (self->frames[0].plan->unbounded) {
        return time_ms <= self->watermark_ms;
    }
    return time_ms <= (state->value == NULL ? 0 : over_clocks(self, state)->last_ms);
}

/* Whether a row of this time waits already, and so has set the timer. */
static bool has_timer(const struct over *self, const struct accumulator_state *state,
                      int64_t time_ms)
{
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

/* A level takes in a row: when will it forget the key? */
static bool cleanup_register(struct over *self, const struct accumulator_state *state,
                             uint32_t level, int64_t time_ms, const struct over_due *key)
{
    if (!self->frames[level].is_range) {
        return true;
    }
    struct over_clock *clock = &over_clocks(self, state)[level];
    const int64_t frame_ms = self->frames[level].plan->preceding;
    const int64_t earliest = over_plus(over_plus(time_ms, frame_ms), 1);
    if (clock->cleanup_ms != 0 && clock->cleanup_ms >= earliest) {
        return true;
    }
    clock->cleanup_ms = over_plus(over_plus(time_ms, (int64_t)((double)frame_ms * 1.5)), 1);
    return over_timer_set(self, clock->cleanup_ms, key->hash, key->key, level + 1);
}

enum operator_verdict over_event_row(struct over *self, const struct row *row,
                                     const struct over_lookup *lookup)
{
    ASSERT_SLOW(row->bytes >= sizeof(*row));
    const int64_t time_ms = over_time(row);
    const struct over_due key = {.hash = lookup->hash, .key = lookup->key};
    struct over_lookup known = *lookup;
    if (known.value == NULL) {
        known.value = table_find_write(self->keys, lookup->hash, lookup->key);
    }
    struct accumulator_state state = {.value = known.value};
    if (is_late(self, &state, time_ms)) {
        self->context->counters[OPERATOR_LATE_ROWS]++;
        return OPERATOR_DONE;
    }
    if (row->bytes > OPERATOR_ROW_BYTES - sizeof(*row)) {
        return operator_fail_row(self->context);
    }
    bool created;
    state = over_take(self, &known, &created);
    if (state.value == NULL) {
        return operator_fail_full(self->context);
    }
    const bool timed = has_timer(self, &state, time_ms);
    const struct span content = {.data = (const uint8_t *)row, .bytes = row->bytes};
    if (!list_insert(self->context->heap, over_pending(&state), time_ms, content) ||
        (!timed && !over_timer_set(self, time_ms, key.hash, key.key, 0)) ||
        !cleanup_register(self, &state, 0, time_ms, &key)) {
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
    return (tag & ((1U << TAG_DEPTH_BITS) - 1)) > level &&
           tag >> TAG_DEPTH_BITS >= clock->forgotten;
}

/* RANGE: lets go of rows that are more than the frame older than time_ms. */
static bool range_retract(struct over *self, struct accumulator_state *state, uint32_t level,
                          int64_t time_ms)
{
    const struct over_frame *frame = &self->frames[level];
    const struct over_clock *clock = &over_clocks(self, state)[level];
    const int64_t start_ms = over_minus(time_ms, frame->plan->preceding);
    struct list_item item;
    while (list_mark_pass(self->context->heap, over_rows(state), frame->mark, start_ms, &item)) {
        const struct row *packed = over_packer_unpack(&self->packer, self->context->heap, &item);
        state->order = item.order;
        if (is_member(clock, level, packed->arrival_ns) &&
            !accumulators_retract(frame->set, state, packed)) {
            return false;
        }
    }
    return true;
}

/* ROWS: lets go of the oldest row. */
static bool rows_retract(struct over *self, struct accumulator_state *state, uint32_t level)
{
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
static bool levels_ready(struct over *self, struct accumulator_state *state,
                         const struct over_due *key)
{
    const int64_t time_ms = self->due.time_ms;
    struct list_head *rows = over_rows(state);
    for (uint32_t level = 0; level < self->due_depth; level++) {
        const struct over_frame *frame = &self->frames[level];
        if (level != 0 && !cleanup_register(self, state, level, time_ms, key)) {
            return false;
        }
        if (frame->is_range && !range_retract(self, state, level, time_ms)) {
            return false;
        }
        /* A level that forgot the key takes rows from before what it had. */
        if (frame->mark != OVER_MARK_NONE && rows->marks[frame->mark].bound > time_ms) {
            list_mark_rewind(self->context->heap, rows, frame->mark, time_ms);
        }
    }
    return true;
}

/* Lists a waiting row for the frames that must give it back one day.
 * packed   set to it as listed, NULL when no level needs that
 * returns  false when the arena is exhausted */
static bool row_list(struct over *self, const struct accumulator_state *state,
                     const struct row *row, const struct row **packed)
{
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
        !list_insert(self->context->heap, over_rows(state), self->due.time_ms, content)) {
        return false;
    }
    *packed = over_packer_row(&self->packer, content.data);
    return true;
}

/* Takes all waiting rows of the due time into the list and into the RANGE frames. */
static bool ties_accumulate(struct over *self, struct accumulator_state *state)
{
    const struct heap *heap = self->context->heap;
    const int64_t time_ms = self->due.time_ms;
    struct list_cursor cursor;
    bool more = list_first(heap, over_pending(state), &cursor);
    for (; more; more = list_next(heap, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        ASSERT(item.order >= time_ms);
        if (item.order != time_ms) {
            break;
        }
        const struct row *row = pending_row(self, &item);
        const struct row *packed;
        if (!row_list(self, state, row, &packed)) {
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
    }
    return true;
}

/* Takes a row into the ROWS frames, which see only those before it. */
static bool row_accumulate(struct over *self, struct accumulator_state *state,
                           const struct row *row)
{
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
static enum operator_verdict answer(struct over *self, struct accumulator_state *state)
{
    ASSERT(self->is_accumulated);
    struct heap *heap = self->context->heap;
    struct list_head *pending = over_pending(state);
    struct list_cursor cursor;
    while (list_first(heap, pending, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order != self->due.time_ms) {
            break;
        }
        const bool goes_out = self->due_depth == self->frame_count;
        if (goes_out && !output_has_room(self->context->output)) {
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

/* Gives up the first rows of the list that no frame holds any more. */
static void dead_drop(struct over *self, const struct accumulator_state *state)
{
    struct heap *heap = self->context->heap;
    struct list_head *rows = over_rows(state);
    struct list_cursor first;
    for (uint32_t i = 0; i < DEAD_DROP_MAX && list_first(heap, rows, &first); i++) {
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

/* Fires the rows of the due time through all levels that take them. */
static enum operator_verdict rows_fire(struct over *self, struct accumulator_state *state,
                                       const struct over_due *key)
{
    struct list_cursor cursor;
    const int64_t time_ms = self->due.time_ms;
    if (!list_first(state->heap, over_pending(state), &cursor) ||
        list_item(state->heap, &cursor).order != time_ms) {
        return OPERATOR_DONE; /* another timer of this time has answered them */
    }
    if (!self->is_accumulated) {
        self->due_depth = 1;
        while (self->due_depth < self->frame_count &&
               !frame_is_late(self, state, self->due_depth, time_ms)) {
            self->due_depth++;
        }
        if (!levels_ready(self, state, key) || !ties_accumulate(self, state)) {
            return operator_fail_full(self->context);
        }
        self->is_accumulated = true;
    }
    const enum operator_verdict verdict = answer(self, state);
    if (verdict == OPERATOR_DONE) {
        struct over_clock *clocks = over_clocks(self, state);
        for (uint32_t level = 0; level < self->due_depth; level++) {
            clocks[level].last_ms = time_ms;
        }
        self->is_accumulated = false;
        dead_drop(self, state);
    }
    return verdict;
}

/* Whether a row above time_ms waits that reaches this level with the current watermark. */
static bool comes_up(const struct over *self, const struct accumulator_state *state, uint32_t level,
                     int64_t time_ms)
{
    const struct heap *heap = self->context->heap;
    const struct list_head *pending = over_pending(state);
    struct list_cursor cursor;
    const bool found =
        self->watermark_ms != INT64_MAX && list_seek(heap, pending, self->watermark_ms + 1, &cursor)
            ? list_prev(heap, &cursor)
            : list_last(heap, pending, &cursor);
    if (!found) {
        return false;
    }
    const int64_t newest_ms = list_item(heap, &cursor).order;
    bool reaches = newest_ms > time_ms;
    for (uint32_t i = 1; i <= level && reaches; i++) {
        reaches = !frame_is_late(self, state, i, newest_ms);
    }
    return reaches;
}

/* A level's clean-up timer: it forgets the key, unless newer rows have put that off. */
static void cleanup_fire(struct over *self, const struct accumulator_state *state,
                         const struct over_due *key)
{
    const uint32_t level = key->tag - 1;
    ASSERT(level < self->frame_count);
    struct over_clock *clocks = over_clocks(self, state);
    struct over_clock *clock = &clocks[level];
    if (clock->cleanup_ms > self->due.time_ms || comes_up(self, state, level, self->due.time_ms)) {
        clock->last_ms = self->due.time_ms; /* overtaken, it still counts as fired */
        return;
    }
    accumulators_clear(self->frames[level].set, state);
    accumulators_init(self->frames[level].set, state);
    *clock = (struct over_clock){.forgotten = over_key(state)->sequence};
    bool is_over = self->all_range && over_pending(state)->count == 0;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        is_over = is_over && clocks[i].cleanup_ms == 0;
    }
    if (is_over) {
        over_remove(self, state, key->hash, key->key);
    }
}

static enum operator_verdict fire(struct over *self)
{
    const struct over_due key = over_due(self);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_find_write(self->keys, key.hash, key.key),
        .shard = table_shard(self->keys, key.hash),
    };
    if (state.value == NULL) {
        return OPERATOR_DONE;
    }
    const enum operator_verdict verdict = rows_fire(self, &state, &key);
    if (verdict == OPERATOR_DONE && key.tag != 0) {
        cleanup_fire(self, &state, &key);
    }
    return verdict;
}

enum operator_verdict over_event_advance(struct over *self)
{
    for (;;) {
        if (!self->is_firing && !over_timer_pop(self)) {
            return OPERATOR_DONE;
        }
        self->is_firing = true;
        const enum operator_verdict verdict = fire(self);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->is_firing = false;
    }
}
