/* SPDX-License-Identifier: Apache-2.0 */
/* OVER answered on arrival ('penstock.over.emit' = 'on-arrival'): each row goes out at once, over
 * the rows of its range that have arrived. Nothing is late and nothing is dropped. While a key's
 * rows come in order and without ties, the answers are those of over_event.c. Frame by frame:
 *
 *  - Bounded RANGE: accumulators slide with the key's newest row, leavers are what the frame's mark
 *    passes. An older row joins them when it lies in their frame, and is answered by a walk over
 *    its own range.
 *  - Bounded ROWS: a walk over the rows of the frame.
 *  - Unbounded: one state over all rows, one over those behind the watermark; the mark stands at
 *    the first row that is not yet in the latter. An older row rebuilds the former from the latter
 *    and the rows behind the mark.
 *
 * A NULL time reads as the epoch, and rows at or before the epoch are answered as any other, where
 * Flink drops them silently: a payment without answer would be the worse surprise.
 *
 * Rows stay as long as any frame of a row in time may need them: a row later than that is answered
 * over what is still there, which in a stack of frames can be more than each alone would keep. */
#include "dataplane/operator/over_internal.h"

#define DEAD_DROP_MAX 4 /* rows given up per row taken in */

/* A row being answered. */
struct arrival {
    struct accumulator_state state;
    const struct row *row;
    const struct row *packed;
    int64_t time_ms;
    bool in_order; /* no newer row of the key is here */
};

/* Begins a frame's state that lives for one answer. */
static struct accumulator_state scratch_begin(struct over *self, const struct over_frame *frame,
                                              uint32_t shard)
{
    ASSERT(accumulators_bytes(frame->set) <= TABLE_VALUE_BYTES_MAX);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = self->scratch_value,
        .shard = shard,
    };
    memset(state.value, 0, accumulators_bytes(frame->set));
    accumulators_init(frame->set, &state);
    return state;
}

/* Stores the results of a frame. */
static bool frame_store(struct over *self, const struct over_frame *frame,
                        const struct accumulator_state *state, struct row_writer *writer)
{
    ASSERT_SLOW(state->value != NULL);
    return results_store(frame->set, state, self->context->output, writer, frame->first_column);
}

/* Answers a frame over the rows from cursor on, up to the row's time. */
static enum operator_verdict walk_answer(struct over *self, const struct over_frame *frame,
                                         const struct arrival *arrival, struct list_cursor cursor,
                                         int64_t count_max, struct row_writer *writer)
{
    ASSERT_SLOW(count_max > 0);
    ASSERT_SLOW(arrival->row != NULL);
    const struct heap *heap = self->context->heap;
    struct accumulator_state scratch = scratch_begin(self, frame, arrival->state.shard);
    bool more = cursor.chunk != 0;
    for (int64_t i = 0; more && i < count_max; i++) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order > arrival->time_ms) {
            break;
        }
        scratch.order = frame->plan->is_rows ? i : item.order;
        const struct row *packed = over_packer_unpack(&self->packer, heap, &item);
        if (!accumulators_add(frame->set, &scratch, packed)) {
            return operator_fail_full(self->context);
        }
        more = list_next(heap, &cursor);
    }
    const bool fits = frame_store(self, frame, &scratch, writer);
    accumulators_clear(frame->set, &scratch);
    return fits ? OPERATOR_DONE : operator_fail_row(self->context);
}

static enum operator_verdict rows_answer(struct over *self, const struct over_frame *frame,
                                         const struct arrival *arrival, struct row_writer *writer)
{
    ASSERT(frame->plan->is_rows);
    const struct heap *heap = self->context->heap;
    const struct list_head *list = over_rows(&arrival->state);
    const int64_t time_ms = arrival->time_ms;
    struct list_cursor cursor;
    const bool found = time_ms != INT64_MAX && list_seek(heap, list, time_ms + 1, &cursor)
                           ? list_prev(heap, &cursor)
                           : list_last(heap, list, &cursor);
    ASSERT(found);
    struct list_cursor start = cursor;
    int64_t count = 1;
    while (count <= frame->plan->preceding && list_prev(heap, &cursor)) {
        start = cursor;
        count++;
    }
    return walk_answer(self, frame, arrival, start, count, writer);
}

/* Makes an unbounded frame's state over all rows anew, answering the row at its place. */
static enum operator_verdict all_rebuild(struct over *self, const struct over_frame *frame,
                                         const struct arrival *arrival, struct row_writer *writer)
{
    ASSERT_SLOW(frame->plan->unbounded && frame->behind_bytes != 0);
    ASSERT_SLOW(!arrival->in_order);
    const struct heap *heap = self->context->heap;
    const struct accumulator_state *state = &arrival->state;
    const struct accumulator_state behind = over_behind(frame, state);
    accumulators_clear(frame->set, state);
    accumulators_init(frame->set, state);
    if (!accumulators_merge(frame->set, state, &behind)) {
        return operator_fail_full(self->context);
    }
    struct list_cursor cursor;
    bool answered = false;
    bool more = list_mark(heap, over_rows(state), frame->mark, &cursor);
    for (; more; more = list_next(heap, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (!answered && item.order > arrival->time_ms) {
            answered = true;
            if (!frame_store(self, frame, state, writer)) {
                return operator_fail_row(self->context);
            }
        }
        const struct row *packed = over_packer_unpack(&self->packer, heap, &item);
        if (!accumulators_add(frame->set, state, packed)) {
            return operator_fail_full(self->context);
        }
    }
    return answered || frame_store(self, frame, state, writer) ? OPERATOR_DONE
                                                               : operator_fail_row(self->context);
}

static enum operator_verdict frame_answer(struct over *self, const struct over_frame *frame,
                                          const struct arrival *arrival, struct row_writer *writer)
{
    ASSERT_SLOW(arrival->packed != NULL);
    if (frame->plan->is_rows && !frame->plan->unbounded) {
        return rows_answer(self, frame, arrival, writer);
    }
    if (arrival->in_order) {
        return frame_store(self, frame, &arrival->state, writer) ? OPERATOR_DONE
                                                                 : operator_fail_row(self->context);
    }
    if (frame->plan->unbounded) {
        return all_rebuild(self, frame, arrival, writer);
    }
    struct list_cursor cursor;
    const int64_t start_ms = over_minus(arrival->time_ms, frame->plan->preceding);
    (void)list_seek(self->context->heap, over_rows(&arrival->state), start_ms, &cursor);
    return walk_answer(self, frame, arrival, cursor, INT64_MAX, writer);
}

/* The row goes out once, widened by the results of all frames. */
static enum operator_verdict answer(struct over *self, const struct arrival *arrival)
{
    struct row_writer writer;
    struct output *output = self->context->output;
    if (!widener_begin(&self->widener, output, &writer, arrival->row)) {
        return operator_fail_row(self->context);
    }
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const enum operator_verdict verdict =
            frame_answer(self, &self->frames[i], arrival, &writer);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    output_row_end(output, &writer);
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return OPERATOR_DONE;
}

/* Where a RANGE frame of the key's newest row begins. */
static int64_t start_ms(const struct over_frame *frame, const struct arrival *arrival)
{
    ASSERT_SLOW(!frame->plan->unbounded);
    const int64_t newest_ms =
        arrival->in_order ? arrival->time_ms : over_key(&arrival->state)->last_ms;
    return over_minus(newest_ms, frame->plan->preceding);
}

/* Notes the time of the row at a frame's mark. */
static void leave_time_set(struct over *self, uint32_t index, const struct arrival *arrival)
{
    ASSERT_SLOW(index < self->frame_count);
    ASSERT_SLOW(self->frames[index].mark != OVER_MARK_NONE);
    struct list_cursor cursor;
    const struct heap *heap = self->context->heap;
    const bool found =
        list_mark(heap, over_rows(&arrival->state), self->frames[index].mark, &cursor);
    over_leave_times(self, &arrival->state)[index] =
        found ? list_item(heap, &cursor).order : INT64_MAX;
}

/* Bounded RANGE: lets rows go that the row's frame begins behind.
 * count    becomes how many in this call */
static enum operator_verdict range_pass(struct over *self, const struct over_frame *frame,
                                        struct arrival *arrival, uint32_t *count)
{
    ASSERT_SLOW(frame->is_range && frame->mark != OVER_MARK_NONE);
    const struct heap *heap = self->context->heap;
    struct list_head *list = over_rows(&arrival->state);
    struct list_item item;
    while (list_mark_pass(heap, list, frame->mark, start_ms(frame, arrival), &item)) {
        (*count)++;
        arrival->state.order = item.order;
        const struct row *packed = over_packer_unpack(&self->packer, heap, &item);
        if (!accumulators_retract(frame->set, &arrival->state, packed)) {
            return operator_fail_full(self->context);
        }
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
    }
    return OPERATOR_DONE;
}

/* Unbounded: moves rows that the watermark has passed into the state behind it; as range_pass. */
static enum operator_verdict behind_pass(struct over *self, const struct over_frame *frame,
                                         const struct arrival *arrival, uint32_t *count)
{
    ASSERT_SLOW(frame->plan->unbounded && frame->mark != OVER_MARK_NONE);
    const struct heap *heap = self->context->heap;
    struct list_head *list = over_rows(&arrival->state);
    struct accumulator_state behind = over_behind(frame, &arrival->state);
    const int64_t bound_ms = over_plus(self->watermark_ms, 1);
    struct list_item item;
    while (list_mark_pass(heap, list, frame->mark, bound_ms, &item)) {
        (*count)++;
        behind.order = item.order;
        const struct row *packed = over_packer_unpack(&self->packer, heap, &item);
        if (!accumulators_add(frame->set, &behind, packed)) {
            return operator_fail_full(self->context);
        }
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
    }
    return OPERATOR_DONE;
}

/* Moves all marks before the row is listed: those that pass a row, and those whose bound decides
 * on which side of them an old row falls. Begun again after AGAIN, it finds those that have arrived
 * where they are. has_left says whether rows may have become useless. */
static enum operator_verdict marks_pass(struct over *self, struct arrival *arrival)
{
    self->has_left = self->has_left || !self->has_range;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const struct over_frame *frame = &self->frames[i];
        const int64_t leave_ms = over_leave_times(self, &arrival->state)[i];
        enum operator_verdict verdict = OPERATOR_DONE;
        uint32_t count = 0;
        if (frame->plan->unbounded &&
            (leave_ms <= self->watermark_ms || arrival->time_ms <= self->watermark_ms)) {
            verdict = behind_pass(self, frame, arrival, &count);
        } else if (frame->is_range && (!arrival->in_order || leave_ms < start_ms(frame, arrival))) {
            verdict = range_pass(self, frame, arrival, &count);
            self->has_left =
                self->has_left || (count != 0 && frame->plan->preceding == self->range_max_ms);
        }
        if (count != 0) {
            leave_time_set(self, i, arrival);
        }
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    return OPERATOR_DONE;
}

/* Takes the row into a frame's accumulators. */
static bool frame_take(struct over *self, uint32_t index, const struct arrival *arrival)
{
    ASSERT_SLOW(index < self->frame_count);
    ASSERT_SLOW(arrival->packed != NULL);
    const struct over_frame *frame = &self->frames[index];
    int64_t *leave_ms = &over_leave_times(self, &arrival->state)[index];
    const int64_t time_ms = arrival->time_ms;
    if (frame->plan->unbounded) {
        /* A row behind the watermark stands in front of the mark, which so never passes it. */
        const struct accumulator_state behind = over_behind(frame, &arrival->state);
        if (time_ms <= self->watermark_ms) {
            if (!accumulators_add(frame->set, &behind, arrival->packed)) {
                return false;
            }
        } else {
            *leave_ms = time_ms < *leave_ms ? time_ms : *leave_ms;
        }
        return !arrival->in_order || accumulators_add(frame->set, &arrival->state, arrival->packed);
    }
    if (frame->plan->is_rows || time_ms < start_ms(frame, arrival)) {
        return true;
    }
    *leave_ms = time_ms < *leave_ms ? time_ms : *leave_ms;
    return accumulators_add(frame->set, &arrival->state, arrival->packed);
}

/* Whether no frame of a row in time reaches the first row any more. */
static bool first_is_dead(const struct over *self, const struct accumulator_state *state,
                          const struct list_cursor *first)
{
    ASSERT_SLOW(first->chunk != 0);
    const struct heap *heap = self->context->heap;
    const struct list_head *list = over_rows(state);
    const int64_t newest_ms = over_key(state)->last_ms;
    const int64_t reached_ms = newest_ms < self->watermark_ms ? newest_ms : self->watermark_ms;
    struct list_cursor cursor;
    if (self->has_range &&
        list_item(heap, first).order >= over_minus(reached_ms, self->range_max_ms)) {
        return false;
    }
    for (uint32_t i = 0; i < self->frame_count; i++) {
        if (self->frames[i].plan->unbounded &&
            list_mark(heap, list, self->frames[i].mark, &cursor) && cursor.chunk == first->chunk &&
            cursor.index == first->index) {
            return false;
        }
    }
    if (!self->has_rows) {
        return true;
    }
    /* As many rows as the longest frame needs must lie between it and the watermark. */
    cursor = *first;
    for (int64_t i = 0; i < self->rows_max; i++) {
        if (!list_next(heap, &cursor)) {
            return false;
        }
    }
    return list_item(heap, &cursor).order <= self->watermark_ms &&
           (int64_t)list->count > self->rows_max + 1;
}

/* As many as this call has let go, and a few more. */
static void dead_drop(struct over *self, const struct accumulator_state *state)
{
    ASSERT_SLOW(state->value != NULL);
    const uint32_t count_max = DEAD_DROP_MAX + OVER_STEPS_MAX - self->steps_left;
    struct list_cursor first;
    for (uint32_t i = 0; i < count_max && list_first(self->context->heap, over_rows(state), &first);
         i++) {
        if (!first_is_dead(self, state, &first)) {
            break;
        }
        list_drop_first(self->context->heap, over_rows(state));
    }
}

/* When a key ends: no later row in time reaches what it holds. */
static int64_t end_ms(const struct over *self, const struct over_key *key)
{
    return key->last_ms + self->range_max_ms + 1;
}

static bool end_timer_set(struct over *self, const struct over_key *key, uint64_t hash,
                          struct span name)
{
    const struct over_due due = {
        .time_ms = end_ms(self, key) + OVER_END_SLACK_MS,
        .hash = hash,
        .key = name,
        .tag = OVER_TAG_END,
    };
    return over_timer_set(self, &due);
}

/* Lists the row, takes it into the frames and answers it. */
static enum operator_verdict row_take(struct over *self, struct arrival *arrival,
                                      struct span content)
{
    struct over_key *key = over_key(&arrival->state);
    ASSERT(content.data != NULL);
    if (!list_insert(self->context->heap, over_rows(&arrival->state), arrival->time_ms, content)) {
        return operator_fail_full(self->context);
    }
    key->last_ms = arrival->in_order ? arrival->time_ms : key->last_ms;
    arrival->state.order = arrival->time_ms;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        if (!frame_take(self, i, arrival)) {
            return operator_fail_full(self->context);
        }
    }
    return answer(self, arrival);
}

/* The key of a row without what has ended. */
static struct over_lookup living(struct over *self, const struct over_lookup *lookup)
{
    struct over_lookup known = *lookup;
    if (self->expiry.ttl_ms == 0) {
        return known;
    }
    if (known.value == NULL) {
        known.value = table_find_write(self->keys, lookup->hash, lookup->key);
    }
    const struct accumulator_state state = {
        .heap = self->context->heap,
        .value = known.value,
        .shard = table_shard(self->keys, lookup->hash),
    };
    if (known.value != NULL && over_expiry_end(self, &state, lookup->hash, lookup->key)) {
        known.value = NULL;
    }
    return known;
}

enum operator_verdict over_arrival_row(struct over *self, const struct row *row,
                                       const struct over_lookup *lookup)
{
    bool created;
    const struct over_lookup known = living(self, lookup);
    struct arrival arrival = {
        .state = over_take(self, &known, &created),
        .row = row,
        .time_ms = over_time(row),
    };
    if (arrival.state.value == NULL) {
        return operator_fail_full(self->context);
    }
    struct over_key *key = over_key(&arrival.state);
    over_expiry_keep(self, &arrival.state);
    if (created) {
        key->last_ms = arrival.time_ms;
        if (self->all_range && !end_timer_set(self, key, lookup->hash, lookup->key)) {
            return operator_fail_full(self->context);
        }
    }
    const struct span content = over_packer_pack(&self->packer, row, 0);
    if (content.data == NULL) {
        return operator_fail_row(self->context);
    }
    arrival.packed = over_packer_row(&self->packer, content.data);
    arrival.in_order = arrival.time_ms >= key->last_ms;
    enum operator_verdict verdict = marks_pass(self, &arrival);
    if (verdict == OPERATOR_DONE) {
        verdict = row_take(self, &arrival, content);
    }
    if (self->has_left && verdict != OPERATOR_FAILED) {
        dead_drop(self, &arrival.state);
    }
    self->has_left = self->has_left && verdict == OPERATOR_AGAIN;
    return verdict;
}

enum operator_verdict over_arrival_advance(struct over *self)
{
    ASSERT_SLOW(self->plan->on_arrival);
    for (const struct over_due *due = over_due_next(self); due != NULL; due = over_due_next(self)) {
        const struct accumulator_state state = {
            .heap = self->context->heap,
            .value = due->value,
            .shard = table_shard(self->keys, due->hash),
        };
        ASSERT(state.value != NULL); /* one timer a key, from its first row to its end */
        if (end_ms(self, over_key(&state)) <= self->watermark_ms) {
            over_remove(self, &state, due->hash, due->key);
        } else if (!end_timer_set(self, over_key(&state), due->hash, due->key)) {
            return operator_fail_full(self->context);
        }
        if (!over_step_take(self)) {
            return OPERATOR_AGAIN;
        }
    }
    return OPERATOR_DONE;
}
