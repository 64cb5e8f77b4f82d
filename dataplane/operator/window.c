/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP BY over TUMBLE, HOP or CUMULATE windows. Rows are gathered by key and slice (a pane); when
 * the watermark reaches a window's end, its panes are merged and go out as one row.
 *
 *  1. A row is late when the last window of its slice is over; else it counts in those of its
 *     windows that are still open.
 *  2. A key's window has a timer exactly when it holds a row and is not over; the pane whose end is
 *     the window's end remembers that the timer is set. Firing sets the timer of the next window.
 *  3. Panes go when the last window that holds them has fired.
 *  4. Flink's default plan gathers rows in a first phase that hands them on when the watermark
 *     reaches 1970 or later. Windows that are over by the watermark before that are lost; windows
 *     before 1970 come out only if they are still open then.
 *  5. In a time zone that phase hands on by UTC's clock, not by the zone's: rows that it holds
 * while their window fires are lost too. There the phase is built as it is, with a table of its
 * own; elsewhere its ends of panes and the windows' ends agree and it can be left out.
 *
 * Timers fire in the order of time and then of first arrival, so the output's order is fixed.
 *
 *     slices   |--s1--|--s2--|--s3--|--s4--|        a pane a key and slice, named by its end
 *     HOP      [------ w ------)                    merges the panes of its slices
 *                     [------ w' ------)            s2, s3 are merged twice, kept once
 *     TUMBLE   one slice a window: the pane itself is the answer
 *     CUMULATE [s1) [s1 s2) [s1 s2 s3) ...          until the full size, then anew */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/operator_internal.h"
#include "dataplane/operator/window_spec.h"
#include "state/timers.h"

#define WINDOW_KEY_BYTES (KEY_BYTES_MAX + 4096)

/* Bounds of one advance, beyond which it is AGAIN: most windows are bounded by the output's room
 * before, but those that are lost or empty put nothing out. */
#define FIRES_MAX            1024
#define HAND_ON_SEGMENTS_MAX 16
#define PANE_END_BYTES       sizeof(int64_t) /* in front of the key's bytes in a pane's */

/* In front of the accumulators. */
struct pane {
    int64_t rows;        /* rows that came less rows taken back */
    uint64_t arrival_ns; /* of the newest row */
    uint64_t has_timer;  /* of the window that ends with this pane */
};

struct window {
    struct operator base;
    struct operator_context *context;
    const struct plan_node *node;
    const struct plan_window *plan;
    const struct row_layout *input;
    struct window_spec spec;
    struct keyer *keyer;
    int64_t slices[PARCEL_ROWS_MAX]; /* ends of the slices of the rows in work */
    struct accumulator_set *set;
    uint8_t *merged; /* a state that lives inside of one call */
    struct table *panes;
    struct table *gathered; /* panes of the first phase (5); NULL: there is none */
    int64_t hand_on_ms;     /* the watermark at which it hands on */
    bool is_handing;        /* it has begun to, and has come up to hand_cursor */
    struct table_cursor hand_cursor;
    struct timers *timers;
    uint8_t *due_key;   /* slice end and key of the timer in work */
    uint8_t *other_key; /* the same with another end */
    int64_t watermark_ms;
    int64_t lost_until_ms; /* windows over by then are lost (4) */
    bool keeps_order; /* merged values keep the order of their panes (FIRST_VALUE, LAST_VALUE) */
    bool handed_on;   /* the first phase has seen 1970 (4) */
};

static void window_close(struct operator* base)
{
    struct window *self = (struct window *)base;
    timers_destroy(self->timers);
    table_destroy(self->panes);
    table_destroy(self->gathered);
    accumulators_destroy(self->set);
    keyer_destroy(self->keyer);
    window_spec_fini(&self->spec);
    free(self->merged);
    free(self->due_key);
    free(self->other_key);
    free(self);
}

/* Flink refuses to merge these two, which changes its plan and with it which rows count as late. */
static bool has_first_or_last(const struct plan_window *plan)
{
    ASSERT_SLOW(plan != NULL);
    for (uint32_t i = 0; i < plan->call_count; i++) {
        if (plan->calls[i].function == AGGREGATE_FIRST_VALUE ||
            plan->calls[i].function == AGGREGATE_LAST_VALUE) {
            return true;
        }
    }
    return false;
}

/* base_bytes is what stands in front of the accumulators in a pane. */
static int state_create(struct window *self, struct error *error)
{
    ASSERT(self != NULL);
    const struct accumulator_config config = {
        .calls = self->plan->calls,
        .call_count = self->plan->call_count,
        .layout = self->input,
        .mode = self->plan->input_updates ? ACCUMULATOR_RETRACT : ACCUMULATOR_APPEND,
        .base_bytes = sizeof(struct pane),
    };
    int result = accumulators_create(&config, &self->set, error);
    if (result != 0) {
        return result;
    }
    char name[OPERATOR_NAME_BYTES];
    struct table_head heads[ACCUMULATOR_HEADS_MAX];
    struct table_config table = {
        .name = state_name(name, "window", self->node),
        .value_bytes = accumulators_bytes(self->set),
        .key_skip_bytes = PANE_END_BYTES,
        .heads = heads,
        .head_count = accumulators_heads(self->set, heads),
    };
    result = table_create(self->context->heap, &table, &self->panes, error);
    if (result == 0 && self->spec.zone != NULL && !self->handed_on) {
        self->handed_on = true;
        table.name = state_name(name, "window.first", self->node);
        result = table_create(self->context->heap, &table, &self->gathered, error);
    }
    if (result == 0) {
        result = timers_create(self->context->heap, state_name(name, "window.due", self->node),
                               &self->timers, error);
    }
    return result;
}

/* A row that comes with its window (cascaded) belongs to that one only. */
static bool is_cascaded(const struct window *self)
{
    ASSERT_SLOW(self->plan != NULL);
    return self->plan->window_end_column != PLAN_WINDOW_END_NONE;
}

/* Two key buffers, because firing one window touches the panes of others. */
static int window_open(const struct plan_node *node, const struct row_layout *const *inputs,
                       struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(context != NULL);
    ASSERT(out != NULL);
    ASSERT(node->operator== PLAN_WINDOW);
    struct window *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &window_ops;
    self->context = context;
    self->node = node;
    self->plan = &node->window;
    self->input = inputs[0];
    self->watermark_ms = WATERMARK_MIN;
    self->lost_until_ms = WATERMARK_MIN;
    self->keeps_order = has_first_or_last(&node->window);
    /* FIRST_VALUE and LAST_VALUE cannot be merged and updating input cannot be gathered, so such
     * plans have one phase. */
    self->handed_on =
        node->window.keeps_before_epoch || node->window.input_updates || self->keeps_order;
    self->keyer = keyer_create(inputs[0], &node->window.key);
    self->merged = operator_scratch(TABLE_VALUE_BYTES_MAX);
    self->due_key = operator_scratch(WINDOW_KEY_BYTES);
    self->other_key = operator_scratch(WINDOW_KEY_BYTES);
    int result = -ENOMEM;
    if (self->keyer == NULL || self->merged == NULL || self->due_key == NULL ||
        self->other_key == NULL) {
        error_set(error, result, "out of memory");
    } else {
        result = window_spec_init(&self->spec, &node->window.window, error);
    }
    if (result == 0) {
        result = state_create(self, error);
    }
    if (result != 0) {
        window_close(&self->base);
        return result;
    }
    *out = &self->base;
    return 0;
}

/* Before the first hand-over (4) nothing is over, however late it is. */
static bool is_over(const struct window *self, int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    return self->handed_on && window_fire_ms(&self->spec, end_ms) <= self->watermark_ms;
}

/* Key of the same group's pane with another end; borrowed until the next call. */
static struct span key_with_end(struct window *self, struct span key, int64_t end_ms)
{
    ASSERT(key.bytes <= WINDOW_KEY_BYTES);
    ASSERT(key.bytes > sizeof(end_ms));
    memcpy(self->other_key, &end_ms, sizeof(end_ms));
    memcpy(self->other_key + sizeof(end_ms), key.data + sizeof(end_ms), key.bytes - sizeof(end_ms));
    return (struct span){.data = self->other_key, .bytes = key.bytes};
}

static int64_t key_end(struct span key)
{
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    int64_t end_ms;
    ASSERT(key.bytes > sizeof(end_ms));
    memcpy(&end_ms, key.data, sizeof(end_ms));
    return end_ms;
}

/* All panes of a key lie in the key's shard, which the exchange knows by the key alone. */
static uint64_t pane_hash(struct span pane)
{
    return hash_behind(pane, PANE_END_BYTES);
}

static struct pane *pane_of(const struct accumulator_state *state)
{
    ASSERT_SLOW(state->value != NULL);
    return (struct pane *)(void *)state->value;
}

/* Finds or makes a pane in a table; value is NULL when the arena is full. */
static struct accumulator_state pane_take(struct window *self, struct table *table, uint64_t hash,
                                          struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    bool created = false;
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_insert(table, hash, key, &created),
        .shard = table_shard(table, hash),
    };
    if (created && state.value != NULL) {
        accumulators_init(self->set, &state);
    }
    return state;
}

static void pane_drop(struct window *self, struct span key, int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct span pane = key_with_end(self, key, end_ms);
    const uint64_t hash = pane_hash(pane);
    const struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_find_write(self->panes, hash, pane),
        .shard = table_shard(self->panes, hash),
    };
    if (state.value != NULL) {
        accumulators_clear(self->set, &state);
        (void)table_remove(self->panes, hash, pane);
    }
}

/* Rule 2: sets the timer of a window unless it is set. */
static bool timer_ensure(struct window *self, struct span key, int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct span pane = key_end(key) == end_ms ? key : key_with_end(self, key, end_ms);
    const uint64_t hash = pane_hash(pane);
    const struct accumulator_state state = pane_take(self, self->panes, hash, pane);
    if (state.value == NULL) {
        return false;
    }
    if (pane_of(&state)->has_timer != 0) {
        return true;
    }
    pane_of(&state)->has_timer = 1;
    return timers_set(self->timers, state.shard, window_fire_ms(&self->spec, end_ms), pane, NULL);
}

/* Rule 1: the first window of a slice that is not over; false when there is none, because the slice
 * is late or lies in a gap between windows. */
static bool first_open(const struct window *self, int64_t slice_end, int64_t *end_ms)
{
    const bool alone = is_cascaded(self);
    const int64_t last_end = alone ? slice_end : window_last_end(&self->spec, slice_end);
    *end_ms = alone ? slice_end : window_first_end(&self->spec, slice_end);
    while (*end_ms <= last_end && is_over(self, *end_ms)) {
        *end_ms += self->spec.plan.slide_ms;
    }
    return *end_ms <= last_end;
}

static bool pane_add(struct window *self, const struct accumulator_state *state,
                     const struct row *row)
{
    struct pane *pane = pane_of(state);
    const bool adds = row->kind == ROW_INSERT || row->kind == ROW_UPDATE_AFTER;
    pane->rows += adds ? 1 : -1;
    pane->arrival_ns = row->arrival_ns > pane->arrival_ns ? row->arrival_ns : pane->arrival_ns;
    return adds ? accumulators_add(self->set, state, row)
                : accumulators_retract(self->set, state, row);
}

static enum operator_verdict window_row(struct window *self, const struct row *row, uint64_t hash,
                                        struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const int64_t slice_end = key_end(key);
    int64_t open_end = slice_end;
    if (self->gathered == NULL && !first_open(self, slice_end, &open_end)) {
        self->context->counters[OPERATOR_LATE_ROWS]++;
        return OPERATOR_DONE;
    }
    struct table *table = self->gathered == NULL ? self->panes : self->gathered;
    const struct accumulator_state state = pane_take(self, table, hash, key);
    if (state.value == NULL || !pane_add(self, &state, row)) {
        return operator_fail_full(self->context);
    }
    const bool has_timer = open_end == slice_end && pane_of(&state)->has_timer != 0;
    if (self->gathered == NULL && !has_timer && !timer_ensure(self, key, open_end)) {
        return operator_fail_full(self->context);
    }
    return OPERATOR_DONE;
}

/* The end of the slice that a row belongs to; false for a row without time. TIMESTAMP_LTZ is cut
 * on the local clock: a day may have 23 or 25 hours. */
static bool slice_of(const struct window *self, const struct row *row, int64_t *slice_end)
{
    ASSERT_SLOW(self->plan != NULL);
    if (is_cascaded(self)) {
        const uint32_t column = self->plan->window_end_column;
        struct timestamp end;
        memcpy(&end, row_slot(self->input, row, column), sizeof(end));
        *slice_end = end.ms;
        return !row_is_null(row, column);
    }
    if (row->time_ms == ROW_TIME_NONE) {
        return false;
    }
    *slice_end = window_slice_end(&self->spec, window_local(&self->spec, row->time_ms));
    return true;
}

/* A NULL time fails the job, in Flink's words. */
static enum operator_verdict window_process(struct operator* base, uint32_t input,
                                            const struct parcel *parcel)
{
    struct window *self = (struct window *)base;
    ASSERT(input == 0);
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    self->context->counters[OPERATOR_ROWS_IN] += count;
    operator_tidy(self->context);
    for (uint32_t i = 0; i < count; i++) {
        if (!slice_of(self, rows[i], &self->slices[i])) {
            return operator_fail(self->context, "RowTime field should not be null, please convert "
                                                "it to a non-null long value.");
        }
    }
    for (uint32_t first = 0; first < count;) {
        const uint32_t filled = keyer_fill_prefixed(self->keyer, self->panes, rows + first,
                                                    count - first, self->slices + first);
        if (filled == 0) {
            return operator_fail(self->context, "a grouping key is longer than %u bytes",
                                 KEY_BYTES_MAX);
        }
        for (uint32_t i = 0; i < filled; i++) {
            const enum operator_verdict verdict =
                window_row(self, rows[first + i], self->keyer->hashes[i], self->keyer->keys[i]);
            if (verdict != OPERATOR_DONE) {
                return verdict;
            }
        }
        first += filled;
    }
    return OPERATOR_DONE;
}

/* Columns in the plan's order: key, calls, then the window columns that are wanted. */
static bool window_emit(struct window *self, const struct accumulator_state *state, struct span key,
                        int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct span group = {.data = key.data + sizeof(end_ms),
                               .bytes = key.bytes - sizeof(end_ms)};
    const struct row header = {
        .kind = ROW_INSERT,
        .time_ms = window_time_ms(&self->spec, end_ms),
        .arrival_ns = pane_of(state)->arrival_ns,
    };
    struct output *output = self->context->output;
    struct row_writer writer;
    if (!output_row_begin(output, &writer, &header)) {
        return false;
    }
    if (group.bytes > writer.capacity - writer.used &&
        !output_row_grow(output, &writer, (uint32_t)group.bytes)) {
        return false;
    }
    const uint32_t key_count = self->plan->key.count;
    if ((key_count != 0 && !key_decode(group, key_count, &writer, 0)) ||
        !results_store(self->set, state, output, &writer, key_count)) {
        return false;
    }
    for (uint32_t i = 0; i < self->plan->column_count; i++) {
        window_column_set(&self->spec, self->plan->columns[i], window_start(&self->spec, end_ms),
                          end_ms, &writer, key_count + self->plan->call_count + i);
    }
    output_row_end(output, &writer);
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return true;
}

static void pane_sum(const struct accumulator_state *into, const struct accumulator_state *from)
{
    struct pane *pane = pane_of(into);
    const struct pane *other = pane_of(from);
    pane->rows += other->rows;
    pane->arrival_ns = other->arrival_ns > pane->arrival_ns ? other->arrival_ns : pane->arrival_ns;
}

/* Hands one pane of the first phase on; what is late by the watermark so far is lost. */
static bool gathered_merge(struct window *self, const struct accumulator_state *from,
                           struct span key)
{
    int64_t open_end;
    if (!first_open(self, key_end(key), &open_end)) {
        self->context->counters[OPERATOR_LATE_ROWS] += (uint64_t)pane_of(from)->rows;
        return true;
    }
    const struct accumulator_state state = pane_take(self, self->panes, pane_hash(key), key);
    if (state.value == NULL || !accumulators_merge(self->set, &state, from)) {
        return false;
    }
    pane_sum(&state, from);
    return timer_ensure(self, key, open_end);
}

/* What a scan over the first phase carries along. */
struct hand_on {
    struct window *window;
    bool is_full;
};

static enum table_visit gathered_visit(void *context, const struct table_entry *entry)
{
    struct hand_on *hand_on = context;
    struct window *self = hand_on->window;
    struct span key = entry->key;
    if (entry->key_blob != 0) {
        key.bytes = heap_blob_bytes(self->context->heap, entry->key_blob);
        ASSERT(key.bytes <= WINDOW_KEY_BYTES);
        heap_blob_read(self->context->heap, entry->key_blob, 0, (uint32_t)key.bytes, self->due_key);
        key.data = self->due_key;
    }
    const struct accumulator_state from = {
        .heap = self->context->heap,
        .value = table_entry_write(self->gathered, entry),
        .shard = entry->shard,
    };
    if (hand_on->is_full || !gathered_merge(self, &from, key)) {
        hand_on->is_full = true;
        return TABLE_STOP;
    }
    accumulators_clear(self->set, &from);
    return TABLE_REMOVE;
}

/* Rule 5. The watermark so far still holds, as in Flink, where rows travel in front of the new one.
 */
static enum operator_verdict gathered_hand_on(struct window *self, int64_t watermark_ms)
{
    ASSERT(watermark_ms >= self->hand_on_ms);
    struct hand_on hand_on = {.window = self};
    if (!self->is_handing) {
        self->is_handing = true;
        self->hand_cursor = (struct table_cursor){0};
    }
    for (uint32_t i = 0; i < HAND_ON_SEGMENTS_MAX; i++) {
        const bool more = table_scan(self->gathered, &self->hand_cursor, gathered_visit, &hand_on);
        if (hand_on.is_full) {
            return operator_fail_full(self->context);
        }
        if (!more) {
            self->is_handing = false;
            self->hand_on_ms = window_hand_on_ms(&self->spec, watermark_ms);
            return OPERATOR_DONE;
        }
    }
    return OPERATOR_AGAIN;
}

/* Merges one pane of the window into the merged state, if it is there. */
static bool pane_merge(struct window *self, const struct accumulator_state *merged, struct span key,
                       int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(merged->value == self->merged);
    const struct span pane = key_with_end(self, key, end_ms);
    const uint64_t hash = pane_hash(pane);
    const struct accumulator_state from = {
        .heap = self->context->heap,
        .value = table_find_write(self->panes, hash, pane),
        .shard = table_shard(self->panes, hash),
    };
    if (from.value == NULL) {
        return true;
    }
    pane_sum(merged, &from);
    return accumulators_merge(self->set, merged, &from);
}

/* Merges a window's panes as Flink does: HOP from the newest back, CUMULATE from the oldest on. */
static bool panes_merge(struct window *self, const struct accumulator_state *merged,
                        struct span key, int64_t end_ms)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const int64_t width = self->spec.pane_ms;
    const int64_t start = window_start(&self->spec, end_ms);
    const bool upward = self->spec.plan.kind == PLAN_WINDOW_CUMULATE || self->keeps_order;
    const int64_t count = (end_ms - start) / width;
    for (int64_t i = 0; i < count; i++) {
        const int64_t end = upward ? start + (i + 1) * width : end_ms - i * width;
        if (!pane_merge(self, merged, key, end)) {
            return false;
        }
    }
    return true;
}

/* Rules 2 and 3 behind a fired window of several panes. HOP goes on as long as the merged window
 * held anything: the next window shares all but its oldest slice. CUMULATE goes on to the full
 * size. */
static bool window_go_on(struct window *self, struct span key, int64_t end_ms, bool is_empty)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(!is_cascaded(self));
    const int64_t slide = self->spec.plan.slide_ms;
    const int64_t start = window_start(&self->spec, end_ms);
    int64_t drop_to = start + slide < end_ms ? start + slide : end_ms; /* HOP: the oldest */
    if (self->spec.plan.kind == PLAN_WINDOW_HOP) {
        if (is_empty) {
            drop_to = end_ms;
        } else if (!timer_ensure(self, key, end_ms + slide)) {
            return false;
        }
    } else if (end_ms == start + self->spec.plan.size_ms) {
        drop_to = end_ms;
    } else {
        return timer_ensure(self, key, end_ms + slide);
    }
    for (int64_t end = start + self->spec.pane_ms; end <= drop_to; end += self->spec.pane_ms) {
        pane_drop(self, key, end);
    }
    return true;
}

/* The merged state has lists of its own in the arena, which go before the next window. */
static enum operator_verdict window_fire_merged(struct window *self, struct span key,
                                                int64_t end_ms, bool is_lost)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct accumulator_state merged = {
        .heap = self->context->heap,
        .value = self->merged,
        .shard = table_shard(self->panes, pane_hash(key)),
    };
    memset(merged.value, 0, accumulators_bytes(self->set));
    accumulators_init(self->set, &merged);
    if (!panes_merge(self, &merged, key, end_ms)) {
        return operator_fail_full(self->context);
    }
    const bool is_empty = pane_of(&merged)->rows == 0;
    const bool fits = is_empty || is_lost || window_emit(self, &merged, key, end_ms);
    accumulators_clear(self->set, &merged);
    if (!fits) {
        return operator_fail_row(self->context);
    }
    return window_go_on(self, key, end_ms, is_empty) ? OPERATOR_DONE
                                                     : operator_fail_full(self->context);
}

/* TUMBLE and cascaded rows need no merge: the pane is answered and removed. */
static enum operator_verdict window_fire(struct window *self, struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->handed_on);
    const int64_t end_ms = key_end(key);
    const bool is_lost = window_fire_ms(&self->spec, end_ms) <= self->lost_until_ms;
    if (!is_cascaded(self) && self->spec.plan.kind != PLAN_WINDOW_TUMBLE) {
        return window_fire_merged(self, key, end_ms, is_lost);
    }
    const uint64_t hash = pane_hash(key);
    const struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_find_write(self->panes, hash, key),
        .shard = table_shard(self->panes, hash),
    };
    ASSERT(state.value != NULL);
    if (pane_of(&state)->rows != 0 && !is_lost && !window_emit(self, &state, key, end_ms)) {
        return operator_fail_row(self->context);
    }
    accumulators_clear(self->set, &state);
    (void)table_remove(self->panes, hash, key);
    return OPERATOR_DONE;
}

/* When the first phase hands on next hangs on the watermarks so far, not on the last alone. */
static int64_t window_mark(const struct operator* base)
{
    return ((const struct window *)base)->hand_on_ms;
}

/* Windows lost before the first hand-over (4) have fired by now. */
static void window_restore(struct operator* base, const struct operator_times *times)
{
    struct window *self = (struct window *)base;
    self->watermark_ms = times->watermark_ms;
    self->hand_on_ms = times->mark_ms;
    self->handed_on = self->handed_on || times->watermark_ms >= 0;
}

/* Fires the windows that are over, the earliest first. */
static enum operator_verdict windows_fire(struct window *self)
{
    ASSERT(self->handed_on);
    const struct span_mut scratch = {.data = self->due_key, .bytes = WINDOW_KEY_BYTES};
    for (uint32_t i = 0;; i++) {
        struct timer_due due;
        int64_t next_ms;
        if (!timers_next(self->timers, &next_ms) || next_ms > self->watermark_ms) {
            return OPERATOR_DONE;
        }
        if (i == FIRES_MAX || !output_has_room(self->context->output)) {
            return OPERATOR_AGAIN;
        }
        const bool popped = timers_pop(self->timers, self->watermark_ms, scratch, &due);
        ASSERT(popped);
        struct span key = due.payload;
        if (key.data != self->due_key) {
            memcpy(self->due_key, key.data, key.bytes);
            key.data = self->due_key;
        }
        const enum operator_verdict verdict = window_fire(self, key);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
}

static enum operator_verdict window_advance(struct operator* base, int64_t watermark_ms)
{
    struct window *self = (struct window *)base;
    ASSERT(watermark_ms >= self->watermark_ms);
    if (!self->handed_on) {
        /* 1970 in the watermark: the first phase hands on (4). */
        if (watermark_ms >= 0) {
            self->handed_on = true;
            self->lost_until_ms = self->watermark_ms;
        }
    }
    if (self->gathered != NULL && watermark_ms >= self->hand_on_ms) {
        const enum operator_verdict verdict = gathered_hand_on(self, watermark_ms);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    self->watermark_ms = watermark_ms;
    return self->handed_on ? windows_fire(self) : OPERATOR_DONE;
}

const struct operator_ops window_ops = {
    .name = "Window",
    .open = window_open,
    .process = window_process,
    .advance = window_advance,
    .mark = window_mark,
    .restore = window_restore,
    .close = window_close,
};
