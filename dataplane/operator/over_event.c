/* SPDX-License-Identifier: Apache-2.0 */
/* OVER as Flink answers it: a row waits in its key's list until the watermark reaches its time. One
 * timer a key and time; timers fire in the order of time and, within one time, of first arrival.
 *
 *  1. A bounded frame takes a row whose time is above the key's last fired timer, wherever the
 *     watermark is; an unbounded frame takes a row above the watermark.
 *  2. RANGE: all rows of one time are taken in before the first of them is answered. ROWS: one by
 *     one in the order of arrival.
 *  3. Bounded RANGE forgets a key by a clean-up timer at time + 1.5 frames + 1 ms, set anew only
 *     when a row's time + 1 frame + 1 ms lies above it. A clean-up timer that was overtaken still
 *     counts as fired for rule 1.

 *
 *     advance(W):  pop timers with time <= W, one after the other
 *                  RANGE:  retract leavers -> add all ties -> emit each tie
 *                  ROWS:   for each tie: retract the oldest, add it, emit it
 *
 * A full output stops in the middle of the ties: the timer stays in self->due (is_firing), the
 * ties that are in the accumulators already are told by is_accumulated, and those answered have
 * left the list. The next advance goes on there. */
#include "dataplane/operator/over_internal.h"

static bool is_bounded_range(const struct over *self)
{
    ASSERT_SLOW(self->plan != NULL);
    return !self->plan->unbounded && !self->plan->is_rows;
}

/* Times near the ends of the range are legal rows; a sum past the end means never. */
static int64_t time_plus(int64_t time_ms, int64_t delta_ms)
{
    int64_t sum;
    return __builtin_add_overflow(time_ms, delta_ms, &sum) ? INT64_MAX : sum;
}

static bool is_late(const struct over *self, const struct over_key *key, int64_t time_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    /* Flink's two operators differ here (1): the unbounded one asks the watermark, the bounded
     * one its own last timer, which starts at 0 and so drops rows at or before 1970. */
    if (self->plan->unbounded) {
        return time_ms <= self->watermark_ms;
    }
    return time_ms <= (key == NULL ? 0 : key->last_ms);
}

/* Whether a row of this time waits already, and so has set the timer. Pending rows are in order
 * of time, so the newest tells in the usual case; only a row that is older than that needs the
 * search. */
static bool has_timer(const struct over *self, const struct accumulator_state *state,
                      int64_t time_ms)
{
    ASSERT_SLOW(self->plan != NULL);
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

/* Rule 3. Flink sets a timer at 1.5 frames and checks against 1 frame, so that a busy key does
 * not set one a row. The rounding of 1.5 frames through a double is Flink's as well. */
static bool cleanup_register(struct over *self, struct over_key *value, int64_t time_ms,
                             uint64_t hash, struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(is_bounded_range(self));
    const int64_t frame_ms = self->plan->preceding;
    const int64_t earliest = time_plus(time_plus(time_ms, frame_ms), 1);
    /* The one that is set is late enough. */
    if (value->cleanup_ms != 0 && value->cleanup_ms >= earliest) {
        return true;
    }
    const int64_t latest = time_plus(time_plus(time_ms, (int64_t)((double)frame_ms * 1.5)), 1);
    value->cleanup_ms = latest;
    return over_timer_set(self, latest, hash, key);
}

static void key_init(struct over *self, const struct accumulator_state *state)
{
    ASSERT(self != NULL);
    ASSERT(state->value != NULL);
    list_init(over_pending(state), state->shard, 0);
    list_init(over_frame_list(state), state->shard, 0);
    accumulators_init(self->set, state);
}

/* Late rows are counted and dropped before the key is inserted: a key with late rows only leaves
 * no state behind. */
enum operator_verdict over_event_row(struct over *self, const struct row *row,
                                     const struct over_lookup *lookup)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(lookup != NULL);
    ASSERT_SLOW(row->bytes >= sizeof(*row));
    const int64_t time_ms = over_time(row);
    const uint64_t hash = lookup->hash;
    struct over_lookup known = *lookup;
    if (known.value == NULL) {
        known.value = table_find_write(self->keys, hash, lookup->key);
    }
    if (is_late(self, (const struct over_key *)(void *)known.value, time_ms)) {
        self->context->counters[OPERATOR_LATE_ROWS]++;
        return OPERATOR_DONE;
    }
    if (row->bytes > OPERATOR_ROW_BYTES - sizeof(*row)) {
        return operator_fail_row(self->context);
    }
    bool created;
    struct accumulator_state state = over_value_take(self, &known, &created);
    if (state.value == NULL) {
        return operator_fail_full(self->context);
    }
    if (created) {
        key_init(self, &state);
    }
    const bool timed = has_timer(self, &state, time_ms);
    const struct span content = {.data = (const uint8_t *)row, .bytes = row->bytes};
    if (!list_insert(self->context->heap, over_pending(&state), time_ms, content) ||
        (!timed && !over_timer_set(self, time_ms, hash, lookup->key)) ||
        (is_bounded_range(self) &&
         !cleanup_register(self, over_key(&state), time_ms, hash, lookup->key))) {
        return operator_fail_full(self->context);
    }
    return OPERATOR_DONE;
}

/* Shows a waiting row; a long one is read into memory first. Rows up to a chunk's size lie in
 * the list and are shown there. */
static const struct row *pending_row(struct over *self, const struct list_item *item)
{
    ASSERT_SLOW(self->plan != NULL);
    if (item->data != NULL) {
        return (const struct row *)(const void *)item->data;
    }
    ASSERT(item->bytes <= OPERATOR_ROW_BYTES);
    heap_blob_read(self->context->heap, item->blob, 0, item->bytes, self->packer.unpacked);
    return (const struct row *)(const void *)self->packer.unpacked;
}

/* Takes a row into the accumulators, and into the frame when it must leave again one day. */
static bool take_in(struct over *self, struct accumulator_state *state, const struct row *row,
                    int64_t order)
{
    ASSERT_SLOW(self->plan != NULL);
    state->order = order;
    if (!self->uses_frame) {
        return accumulators_add(self->set, state, row);
    }
    const struct span content = over_pack(self, row);
    return content.data != NULL &&
           list_insert(self->context->heap, over_frame_list(state), order, content) &&
           accumulators_add(self->set, state, over_row(content));
}

/* Takes the oldest row of the frame out. The accumulators see the row exactly as they saw it
 * when it came in: the packed form is kept for that. */
static bool take_out(struct over *self, struct accumulator_state *state,
                     const struct list_item *item)
{
    ASSERT(self->uses_frame);
    ASSERT(over_frame_list(state)->count != 0);
    state->order = item->order;
    const bool fine = accumulators_retract(self->set, state, over_unpack(self, item));
    list_drop_first(self->context->heap, over_frame_list(state));
    return fine;
}

/* RANGE: lets go of rows that are more than the frame older than time_ms. The frame's oldest
 * rows come first; the first that stays ends the loop. */
static bool leavers_retract(struct over *self, struct accumulator_state *state, int64_t time_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(is_bounded_range(self));
    const struct heap *heap = self->context->heap;
    struct list_cursor cursor;
    while (list_first(heap, over_frame_list(state), &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (time_ms - item.order <= self->plan->preceding) {
            break;
        }
        if (!take_out(self, state, &item)) {
            return false;
        }
    }
    return true;
}

/* RANGE: takes in all waiting rows of one time. */
static bool ties_accumulate(struct over *self, struct accumulator_state *state, int64_t time_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(!self->plan->is_rows);
    const struct heap *heap = self->context->heap;
    struct list_cursor cursor;
    bool more = list_first(heap, over_pending(state), &cursor);
    for (; more; more = list_next(heap, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        ASSERT(item.order >= time_ms);
        if (item.order != time_ms) {
            break;
        }
        if (!take_in(self, state, pending_row(self, &item), time_ms)) {
            return false;
        }
    }
    return true;
}

/* ROWS: makes room for one more row and takes it in. */
static bool row_accumulate(struct over *self, struct accumulator_state *state,
                           const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->plan->is_rows);
    const struct heap *heap = self->context->heap;
    struct list_cursor cursor;
    /* preceding counts the rows before the current one, so the frame holds one more when it is
     * full. */
    if (!self->plan->unbounded && (int64_t)over_frame_list(state)->count > self->plan->preceding &&
        list_first(heap, over_frame_list(state), &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (!take_out(self, state, &item)) {
            return false;
        }
    }
    return take_in(self, state, row, over_key(state)->sequence++);
}

/* Answers the waiting rows of the timer's time, as many as the output takes. */
static enum operator_verdict answer(struct over *self, struct accumulator_state *state)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->is_firing);
    ASSERT(self->plan->is_rows || self->is_accumulated);
    struct heap *heap = self->context->heap;
    struct list_cursor cursor;
    while (list_first(heap, over_pending(state), &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order != self->due.time_ms) {
            break;
        }
        if (!output_has_room(self->context->output)) {
            return OPERATOR_AGAIN;
        }
        const struct row *row = pending_row(self, &item);
        if (self->plan->is_rows && !row_accumulate(self, state, row)) {
            return operator_fail_full(self->context);
        }
        if (!over_emit(self, state, row)) {
            return operator_fail_row(self->context);
        }
        list_drop_first(heap, over_pending(state));
    }
    return OPERATOR_DONE;
}

/* A timer of a key that a clean-up has removed finds nothing and is done. */
static enum operator_verdict fire(struct over *self, uint64_t hash, struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_find_write(self->keys, hash, key),
        .shard = table_shard(self->keys, hash),
    };
    if (state.value == NULL) {
        return OPERATOR_DONE;
    }
    struct over_key *value = over_key(&state);
    const int64_t time_ms = self->due.time_ms;
    if (value->cleanup_ms != 0 && value->cleanup_ms <= time_ms) {
        over_key_remove(self, &state, hash, key);
        return OPERATOR_DONE;
    }
    if (!self->plan->is_rows && !self->is_accumulated) {
        if ((!self->plan->unbounded && !leavers_retract(self, &state, time_ms)) ||
            !ties_accumulate(self, &state, time_ms)) {
            return operator_fail_full(self->context);
        }
        self->is_accumulated = true;
    }
    const enum operator_verdict verdict = answer(self, &state);
    if (verdict == OPERATOR_DONE) {
        value->last_ms = time_ms;
    }
    return verdict;
}

/* Called again with the same watermark after AGAIN, and with a later one otherwise. */
enum operator_verdict over_event_advance(struct over *self)
{
    ASSERT_SLOW(self->plan != NULL);
    uint64_t hash;
    struct span key;
    for (;;) {
        if (self->is_firing) {
            over_due_key(self, &hash, &key);
        } else if (!over_timer_pop(self, &hash, &key)) {
            return OPERATOR_DONE;
        }
        self->is_firing = true;
        const enum operator_verdict verdict = fire(self, hash, key);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->is_firing = false;
        self->is_accumulated = false;
    }
}
