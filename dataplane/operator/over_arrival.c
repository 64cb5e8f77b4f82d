/* SPDX-License-Identifier: Apache-2.0 */
/* OVER answered on arrival ('penstock.over.emit' = 'on-arrival'): each row goes out at once, over
 * the rows of its range that have arrived. Nothing is late and nothing is dropped. While a key's
 * rows come in order and without ties, the answers are those of over_event.c.
 *
 *  - Bounded RANGE: accumulators slide with the key's newest row. An older row joins them when it
 *    lies in their frame, and is answered by a walk over its own range.
 *  - Bounded ROWS: a walk over the rows of the frame.
 *  - Unbounded: one set of accumulators over all rows, one over those behind the watermark, and a
 *    list of the rows between. An older row rebuilds the former from the latter and the list.
 *
 * A NULL time reads as the epoch, and rows at or before the epoch are answered as any other, where
 * Flink drops them silently: a payment without answer would be the worse surprise.
 *
 * What the watermark proves unreachable for rows in time is given up: a row later than that is
 * answered over what is still there.
 */
#include "dataplane/operator/over_internal.h"

#define DEAD_DROP_MAX 4 /* rows given up per row taken in */
#define END_SLACK_MS  INT64_C(600000)

static int64_t time_minus(int64_t time_ms, int64_t delta_ms)
{
    int64_t difference;
    return __builtin_sub_overflow(time_ms, delta_ms, &difference) ? INT64_MIN : difference;
}

/* Begins a state that lives for one answer. Lives in the operator's scratch, but its lists and
 * maps are in the arena: every path must end in accumulators_clear. */
static struct accumulator_state scratch_begin(struct over *self, uint32_t shard)
{
    ASSERT_SLOW(self != NULL);
    ASSERT(accumulators_bytes(self->set) <= TABLE_VALUE_BYTES_MAX);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = self->scratch_value,
        .shard = shard,
    };
    memset(state.value, 0, accumulators_bytes(self->set));
    accumulators_init(self->set, &state);
    return state;
}

/* Adds the rows from cursor on, up to time_ms and at most count_max of them. The order stands
 * for the row's place: the time for RANGE, a running number for ROWS, where ties are told apart
 * by arrival. */
static bool walk_add(struct over *self, struct accumulator_state *state, struct list_cursor cursor,
                     int64_t time_ms, int64_t count_max)
{
    ASSERT_SLOW(self->plan != NULL);
    const struct heap *heap = self->context->heap;
    bool more = cursor.chunk != 0;
    for (int64_t i = 0; more && i < count_max; i++) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order > time_ms) {
            break;
        }
        state->order = self->plan->is_rows ? i : item.order;
        if (!accumulators_add(self->set, state, over_unpack(self, &item))) {
            return false;
        }
        more = list_next(heap, &cursor);
    }
    return true;
}

/* Answers a row over the rows from cursor on. Costs the length of the range. It is paid for rows
 * that come out of order, and for ROWS frames. */
static enum operator_verdict walk_answer(struct over *self, const struct row *row, uint32_t shard,
                                         struct list_cursor cursor, int64_t count_max)
{
    ASSERT_SLOW(self->plan != NULL);
    struct accumulator_state scratch = scratch_begin(self, shard);
    if (!walk_add(self, &scratch, cursor, over_time(row), count_max)) {
        return operator_fail_full(self->context);
    }
    const bool fits = over_emit(self, &scratch, row);
    accumulators_clear(self->set, &scratch);
    return fits ? OPERATOR_DONE : operator_fail_row(self->context);
}

/* Gives up rows that lie in front of the newest frame and behind every frame of a row in time.
 * At most DEAD_DROP_MAX a row, so that the work of one row stays bounded after a quiet spell;
 * more than one, so that the list shrinks. */
static void range_drop(struct over *self, struct accumulator_state *state)
{
    ASSERT_SLOW(self->plan != NULL);
    const struct heap *heap = self->context->heap;
    struct list_head *frame = over_frame_list(state);
    const int64_t newest = time_minus(over_key(state)->last_ms, self->plan->preceding);
    const int64_t in_time = time_minus(self->watermark_ms, self->plan->preceding);
    const int64_t before = newest < in_time ? newest : in_time;
    struct list_cursor cursor;
    for (uint32_t i = 0; i < DEAD_DROP_MAX && list_first(heap, frame, &cursor); i++) {
        if (list_item(heap, &cursor).order >= before) {
            break;
        }
        list_drop_first(self->context->heap, frame);
    }
}

/* The common case: no newer row of the key is here. The frame's mark stands at the first row
 * that is still inside, so leaving rows are found without a search. */
static enum operator_verdict range_in_order(struct over *self, struct accumulator_state *state,
                                            const struct row *row, struct span content)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(over_time(row) >= over_key(state)->last_ms);
    ASSERT(content.data != NULL);
    struct heap *heap = self->context->heap;
    struct list_head *frame = over_frame_list(state);
    const int64_t time_ms = over_time(row);
    const int64_t start_ms = time_minus(time_ms, self->plan->preceding);
    struct list_item item;
    bool left = false;
    while (list_mark_pass(heap, frame, 0, start_ms, &item)) {
        left = true;
        state->order = item.order;
        if (!accumulators_retract(self->set, state, over_unpack(self, &item))) {
            return operator_fail_full(self->context);
        }
    }
    over_key(state)->last_ms = time_ms;
    state->order = time_ms;
    if (left) {
        range_drop(self, state);
    }
    if (!list_insert(heap, frame, time_ms, content) ||
        !accumulators_add(self->set, state, over_row(content))) {
        return operator_fail_full(self->context);
    }
    return over_emit(self, state, row) ? OPERATOR_DONE : operator_fail_row(self->context);
}

static enum operator_verdict range_out_of_order(struct over *self, struct accumulator_state *state,
                                                const struct row *row, struct span content)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(over_time(row) < over_key(state)->last_ms);
    struct heap *heap = self->context->heap;
    struct list_head *frame = over_frame_list(state);
    const int64_t time_ms = over_time(row);
    const int64_t newest_start = time_minus(over_key(state)->last_ms, self->plan->preceding);
    state->order = time_ms;
    if (!list_insert(heap, frame, time_ms, content) ||
        (time_ms >= newest_start && !accumulators_add(self->set, state, over_row(content)))) {
        return operator_fail_full(self->context);
    }
    struct list_cursor cursor;
    (void)list_seek(heap, frame, time_minus(time_ms, self->plan->preceding), &cursor);
    return walk_answer(self, row, state->shard, cursor, INT64_MAX);
}

/* Gives up the oldest row when as many as a frame needs lie between it and the watermark. */
static void rows_drop(struct over *self, struct accumulator_state *state)
{
    ASSERT_SLOW(self->plan != NULL);
    const struct heap *heap = self->context->heap;
    struct list_head *frame = over_frame_list(state);
    struct list_cursor cursor;
    if ((int64_t)frame->count <= self->plan->preceding + 1 || !list_first(heap, frame, &cursor)) {
        return;
    }
    for (int64_t i = 0; i < self->plan->preceding; i++) {
        (void)list_next(heap, &cursor);
    }
    if (list_item(heap, &cursor).order <= self->watermark_ms) {
        list_drop_first(self->context->heap, frame);
    }
}

static enum operator_verdict rows_answer(struct over *self, struct accumulator_state *state,
                                         const struct row *row, struct span content)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->plan->is_rows);
    struct heap *heap = self->context->heap;
    struct list_head *frame = over_frame_list(state);
    const int64_t time_ms = over_time(row);
    if (!list_insert(heap, frame, time_ms, content)) {
        return operator_fail_full(self->context);
    }
    struct list_cursor cursor;
    const bool found = time_ms != INT64_MAX && list_seek(heap, frame, time_ms + 1, &cursor)
                           ? list_prev(heap, &cursor)
                           : list_last(heap, frame, &cursor);
    ASSERT(found);
    struct list_cursor start = cursor;
    int64_t count = 1;
    while (count <= self->plan->preceding && list_prev(heap, &cursor)) {
        start = cursor;
        count++;
    }
    const enum operator_verdict verdict = walk_answer(self, row, state->shard, start, count);
    rows_drop(self, state);
    return verdict;
}

/* Moves rows that the watermark has passed into the accumulators behind it. */
static bool behind_fold(struct over *self, const struct accumulator_state *state)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->plan->unbounded);
    struct heap *heap = self->context->heap;
    const struct accumulator_state behind = over_base_state(self, state);
    struct list_cursor cursor;
    while (list_first(heap, over_frame_list(state), &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (item.order > self->watermark_ms) {
            break;
        }
        if (!accumulators_add(self->set, &behind, over_unpack(self, &item))) {
            return false;
        }
        list_drop_first(heap, over_frame_list(state));
    }
    return true;
}

/* Makes the accumulators over all rows anew, answering the row at its place. */
static enum operator_verdict all_rebuild(struct over *self, struct accumulator_state *state,
                                         const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    const struct heap *heap = self->context->heap;
    const struct accumulator_state behind = over_base_state(self, state);
    accumulators_clear(self->set, state);
    accumulators_init(self->set, state);
    if (!accumulators_merge(self->set, state, &behind)) {
        return operator_fail_full(self->context);
    }
    struct list_cursor cursor;
    bool answered = false;
    bool more = list_first(heap, over_frame_list(state), &cursor);
    for (; more; more = list_next(heap, &cursor)) {
        const struct list_item item = list_item(heap, &cursor);
        if (!answered && item.order > over_time(row)) {
            answered = true;
            if (!over_emit(self, state, row)) {
                return operator_fail_row(self->context);
            }
        }
        if (!accumulators_add(self->set, state, over_unpack(self, &item))) {
            return operator_fail_full(self->context);
        }
    }
    return answered || over_emit(self, state, row) ? OPERATOR_DONE
                                                   : operator_fail_row(self->context);
}

static enum operator_verdict unbounded_answer(struct over *self, struct accumulator_state *state,
                                              const struct row *row, struct span content)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->plan->unbounded);
    struct over_key *key = over_key(state);
    const int64_t time_ms = over_time(row);
    const bool in_order = time_ms >= key->last_ms || key->sequence == 0;
    key->sequence++;
    if (!behind_fold(self, state) ||
        !list_insert(self->context->heap, over_frame_list(state), time_ms, content)) {
        return operator_fail_full(self->context);
    }
    if (!in_order) {
        return all_rebuild(self, state, row);
    }
    key->last_ms = time_ms;
    if (!accumulators_add(self->set, state, over_row(content))) {
        return operator_fail_full(self->context);
    }
    return over_emit(self, state, row) ? OPERATOR_DONE : operator_fail_row(self->context);
}

/* When to look whether a key has ended. Later than its frame by a while: a key that pauses for
 * little more than the frame would else be made and forgotten for each row. */
static int64_t end_ms(const struct over *self, const struct over_key *key)
{
    ASSERT_SLOW(self->plan != NULL);
    return key->last_ms + self->plan->preceding + 1;
}

static bool end_timer_set(struct over *self, const struct over_key *key, uint64_t hash,
                          struct span name)
{
    ASSERT_SLOW(self->plan != NULL);
    return over_timer_set(self, end_ms(self, key) + END_SLACK_MS, hash, name);
}

static bool key_init(struct over *self, const struct accumulator_state *state, int64_t time_ms,
                     const struct over_lookup *lookup)
{
    ASSERT(self != NULL);
    ASSERT(state != NULL);
    ASSERT(state->value != NULL);
    list_init(over_pending(state), state->shard, 0);
    list_init(over_frame_list(state), state->shard, 1);
    accumulators_init(self->set, state);
    over_key(state)->last_ms = time_ms;
    if (self->plan->unbounded) {
        const struct accumulator_state behind = over_base_state(self, state);
        accumulators_init(self->set, &behind);
    }
    return self->plan->unbounded || self->plan->is_rows ||
           end_timer_set(self, over_key(state), lookup->hash, lookup->key);
}

enum operator_verdict over_arrival_row(struct over *self, const struct row *row,
                                       const struct over_lookup *lookup)
{
    ASSERT_SLOW(self->plan != NULL);
    bool created;
    const int64_t time_ms = over_time(row);
    struct accumulator_state state = over_value_take(self, lookup, &created);
    if (state.value == NULL || (created && !key_init(self, &state, time_ms, lookup))) {
        return operator_fail_full(self->context);
    }
    const struct span content = over_pack(self, row);
    if (content.data == NULL) {
        return operator_fail_row(self->context);
    }
    if (self->plan->unbounded) {
        return unbounded_answer(self, &state, row, content);
    }
    if (self->plan->is_rows) {
        return rows_answer(self, &state, row, content);
    }
    return time_ms >= over_key(&state)->last_ms ? range_in_order(self, &state, row, content)
                                                : range_out_of_order(self, &state, row, content);
}

enum operator_verdict over_arrival_advance(struct over *self)
{
    ASSERT_SLOW(self->plan != NULL);
    uint64_t hash;
    struct span key;
    while (over_timer_pop(self, &hash, &key)) {
        struct accumulator_state state = {
            .heap = self->context->heap,
            .value = table_find_write(self->keys, hash, key),
            .shard = table_shard(self->keys, hash),
        };
        ASSERT(state.value != NULL); /* one timer a key, from its first row to its end */
        if (end_ms(self, over_key(&state)) <= self->watermark_ms) {
            over_key_remove(self, &state, hash, key);
        } else if (!end_timer_set(self, over_key(&state), hash, key)) {
            return operator_fail_full(self->context);
        }
    }
    return OPERATOR_DONE;
}
