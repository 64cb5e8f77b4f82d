/* SPDX-License-Identifier: Apache-2.0 */
/* OVER by event time: each row goes out once, with aggregates over the rows of its key up to it.
 * OVER nodes by one key that stand directly on each other run as one operator with a frame each: a
 * row's key is hashed and looked up once, the row is listed once, and goes out once with the
 * results of all frames. A node alone is one frame. This file makes the operator and holds what its
 * two ways of answering share.
 *
 *     key -> value:  over_key { pending list, …, list of rows } | clocks | accumulators
 *                               |                |
 *                               |                | packed rows, by time, marks
 *                               | whole rows, by time
 *                               v
 *     a row:  pending --(watermark reaches its time)--> answered, packed into the list --> left
 *
 * Invariants:
 *   1. A frame's accumulators hold exactly the rows from its mark on that are its own, or for an
 *      unbounded frame all rows that were answered.
 *   2. By watermark, a key has a timer for each time among its pending rows.
 *   3. A value pointer is good until a key is inserted or removed: values_void says that the
 *      batch's pointers are not. */
#include "dataplane/operator/over_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "state/trash.h"

/* Rows whose state is fetched together: all of it has to stay in the first-level cache. */
#define BATCH_ROWS 12

#define DUE_PAYLOAD_BYTES (KEY_BYTES_MAX + 4096)
#define DUE_HEAD_BYTES    (sizeof(uint64_t) + sizeof(uint32_t))

static void over_close(struct operator* base)
{
    struct over *self = (struct over *)base;
    timers_destroy(self->timers);
    table_destroy(self->keys);
    for (uint32_t i = 0; i < self->frame_count; i++) {
        accumulators_destroy(self->frames[i].set);
        free(self->frames[i].calls);
    }
    keyer_destroy(self->keyer);
    widener_fini(&self->widener);
    over_packer_fini(&self->packer);
    free(self->scratch_value);
    free(self->pending_row);
    free(self->due_payload);
    free(self);
}

/* Says what each frame is and which packed columns its calls read. */
static int frames_fill(struct over *self)
{
    ASSERT(self->frame_count >= 1 && self->mark_count == 0);
    const bool on_arrival = self->plan->on_arrival;
    uint32_t column = self->input->column_count;
    self->all_range = true;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        struct over_frame *frame = &self->frames[i];
        const struct plan_over_frame *plan = frame->plan;
        frame->is_range = !plan->unbounded && !plan->is_rows;
        frame->reads_packed = on_arrival || !plan->unbounded;
        /* On arrival, bounded ROWS look their frames up anew for each row. */
        const bool has_mark =
            frame->reads_packed && !(on_arrival && plan->is_rows && !plan->unbounded);
        frame->mark = has_mark ? self->mark_count++ : OVER_MARK_NONE;
        frame->first_column = column;
        column += plan->call_count;
        self->all_range = self->all_range && frame->is_range;
        self->has_range = self->has_range || frame->is_range;
        if (frame->is_range && plan->preceding > self->range_max_ms) {
            self->range_max_ms = plan->preceding;
        }
        if (plan->is_rows && !plan->unbounded) {
            self->has_rows = true;
            self->rows_max = plan->preceding > self->rows_max ? plan->preceding : self->rows_max;
        }
        frame->calls = calloc(plan->call_count + 1, sizeof(frame->calls[0]));
        if (frame->calls == NULL) {
            return -ENOMEM;
        }
        for (uint32_t k = 0; k < plan->call_count; k++) {
            struct aggregate_call *call = &frame->calls[k];
            *call = plan->calls[k];
            if (frame->reads_packed) {
                call->argument = over_packer_column(&self->packer, call->argument);
                call->filter = over_packer_column(&self->packer, call->filter);
            }
        }
    }
    ASSERT(column == self->node->layout.column_count);
    over_packer_seal(&self->packer);
    return 0;
}

/* Lays the accumulators of a frame behind what there is already; on arrival, those of an unbounded
 * frame twice. */
static int frame_open(struct over *self, struct over_frame *frame, struct table_head *heads,
                      uint32_t *head_count, struct error *error)
{
    ASSERT(frame->set == NULL);
    ASSERT(self->value_bytes % 8 == 0);
    const struct accumulator_config config = {
        .calls = frame->calls,
        .call_count = frame->plan->call_count,
        .layout = frame->reads_packed ? &self->packer.layout : self->input,
        .mode = frame->plan->unbounded ? ACCUMULATOR_APPEND : ACCUMULATOR_SLIDING,
        .is_over = true,
        .base_bytes = self->value_bytes,
    };
    const int result = accumulators_create(&config, &frame->set, error);
    if (result != 0) {
        return result;
    }
    struct table_head own[ACCUMULATOR_HEADS_MAX];
    const uint32_t count = accumulators_heads(frame->set, own);
    const uint32_t bytes = accumulators_bytes(frame->set) - self->value_bytes;
    const bool is_twice = self->plan->on_arrival && frame->plan->unbounded;
    if (*head_count + (is_twice ? 2 : 1) * count > TABLE_HEAD_COUNT_MAX ||
        self->value_bytes + (is_twice ? 2 : 1) * bytes > TABLE_VALUE_BYTES_MAX) {
        return error_set(error, -ENOTSUP,
                         "the OVER calls of one SELECT need more than %u bytes or %u collections "
                         "of state a key",
                         TABLE_VALUE_BYTES_MAX, TABLE_HEAD_COUNT_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        heads[(*head_count)++] = own[i];
        if (is_twice) {
            heads[*head_count] = own[i];
            heads[(*head_count)++].offset = (uint16_t)(own[i].offset + bytes);
        }
    }
    frame->behind_bytes = is_twice ? bytes : 0;
    self->value_bytes += (is_twice ? 2 : 1) * bytes;
    return 0;
}

static int state_create(struct over *self, struct error *error)
{
    const size_t clock_bytes =
        self->frame_count * (self->plan->on_arrival ? sizeof(int64_t) : sizeof(struct over_clock));
    self->clocks_offset =
        (uint32_t)(offsetof(struct over_key, rows) + LIST_HEAD_BYTES(self->mark_count));
    self->deadline_offset = self->clocks_offset + (uint32_t)clock_bytes;
    self->value_bytes =
        self->deadline_offset + (self->expiry.ttl_ms == 0 ? 0 : (uint32_t)sizeof(int64_t));
    struct table_head heads[TABLE_HEAD_COUNT_MAX] = {
        {.offset = offsetof(struct over_key, pending), .kind = TABLE_HEAD_LIST},
        {.offset = offsetof(struct over_key, rows), .kind = TABLE_HEAD_LIST},
    };
    uint32_t head_count = 2;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const int result = frame_open(self, &self->frames[i], heads, &head_count, error);
        if (result != 0) {
            return result;
        }
    }
    char name[OPERATOR_NAME_BYTES];
    const struct table_config config = {
        .name = state_name(name, "over", self->node),
        .value_bytes = self->value_bytes,
        .heads = heads,
        .head_count = head_count,
    };
    int result = table_create(self->context->heap, &config, &self->keys, error);
    if (result == 0) {
        result = timers_create(self->context->heap, state_name(name, "over.due", self->node),
                               &self->timers, error);
    }
    return result;
}

/* Says which frames there are; a node that stands for itself alone is one.
 * returns  how many calls they have together */
static uint32_t frames_take(struct over *self)
{
    const struct plan_over *plan = self->plan;
    const struct plan_over_frame *frames = plan->frames;
    self->frame_count = plan->frame_count;
    if (plan->frame_count == 0) {
        self->alone = plan_over_own_frame(plan);
        self->frame_count = 1;
        frames = &self->alone;
    }
    uint32_t call_count = 0;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        self->frames[i].plan = &frames[i];
        call_count += self->frames[i].plan->call_count;
    }
    return call_count;
}

static int over_open(const struct plan_node *node, const struct row_layout *const *inputs,
                     struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node->operator== PLAN_OVER);
    ASSERT(node->over.frame_count <= PLAN_OVER_FRAMES_MAX);
    const size_t bytes =
        (sizeof(struct over) + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    struct over *self = operator_scratch(bytes);
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    *self = (struct over){
        .base.ops = &over_ops,
        .context = context,
        .node = node,
        .plan = &node->over,
        .input = inputs[0],
        .watermark_ms = WATERMARK_MIN,
        .before_ms = WATERMARK_MIN,
    };
    expiry_init(&self->expiry, node->over.ttl_ms);
    const uint32_t call_count = frames_take(self);
    self->packer.tag_bytes = node->over.on_arrival ? 0 : sizeof(uint64_t);
    self->keyer = keyer_create(inputs[0], &node->over.key);
    self->scratch_value = operator_scratch(TABLE_VALUE_BYTES_MAX);
    self->pending_row = operator_scratch(OPERATOR_ROW_BYTES);
    self->due_payload = operator_scratch(DUE_PAYLOAD_BYTES);
    int result = 0;
    if (self->keyer == NULL || self->scratch_value == NULL || self->pending_row == NULL ||
        self->due_payload == NULL || widener_init(&self->widener, inputs[0]) != 0 ||
        over_packer_init(&self->packer, inputs[0], 2 * call_count) != 0 || frames_fill(self) != 0) {
        result = error_set(error, -ENOMEM, "out of memory");
    }
    if (result == 0) {
        result = state_create(self, error);
    }
    if (result != 0) {
        over_close(&self->base);
        return result;
    }
    *out = &self->base;
    return 0;
}

static void key_init(struct over *self, const struct accumulator_state *state)
{
    ASSERT(state->value != NULL);
    over_key(state)->last_ms = self->watermark_ms;
    list_init(over_pending(state), state->shard, 0);
    list_init(over_rows(state), state->shard, self->mark_count);
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const struct over_frame *frame = &self->frames[i];
        accumulators_init(frame->set, state);
        if (self->plan->on_arrival) {
            over_leave_times(self, state)[i] = INT64_MAX;
        }
        if (frame->behind_bytes != 0) {
            const struct accumulator_state behind = over_behind(frame, state);
            accumulators_init(frame->set, &behind);
        }
    }
}

struct accumulator_state over_take(struct over *self, const struct over_lookup *lookup,
                                   bool *created)
{
    ASSERT_SLOW(created != NULL);
    ASSERT_SLOW(lookup->key.data != NULL);
    struct accumulator_state state = {
        .heap = self->context->heap,
        .value = lookup->value,
        .shard = table_shard(self->keys, lookup->hash),
    };
    *created = false;
    if (state.value == NULL) {
        state.value = table_insert(self->keys, lookup->hash, lookup->key, created);
        self->values_void |= *created;
    }
    if (*created) {
        key_init(self, &state);
    }
    return state;
}

void over_clear(struct over *self, const struct accumulator_state *state)
{
    ASSERT(state->value != NULL);
    ASSERT(over_pending(state)->count == 0);
    trash_list(self->context->heap, over_rows(state));
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const struct over_frame *frame = &self->frames[i];
        accumulators_clear(frame->set, state);
        if (frame->behind_bytes != 0) {
            const struct accumulator_state behind = over_behind(frame, state);
            accumulators_clear(frame->set, &behind);
        }
    }
    self->context->counters[OPERATOR_EXPIRED]++;
}

void over_remove(struct over *self, const struct accumulator_state *state, uint64_t hash,
                 struct span key)
{
    ASSERT(state->value != NULL);
    over_clear(self, state);
    (void)table_remove(self->keys, hash, key);
    self->values_void = true;
}

bool over_timer_set(struct over *self, const struct over_due *due)
{
    ASSERT(due->key.bytes <= KEY_BYTES_MAX);
    /* A short key's payload is put together on the stack; the due payload may be in use. */
    uint8_t small[256];
    const uint32_t tag = due->tag;
    const bool is_short = due->key.bytes <= sizeof(small) - DUE_HEAD_BYTES;
    uint8_t *payload = is_short ? small : self->packer.packed;
    memcpy(payload, &due->hash, sizeof(due->hash));
    memcpy(payload + sizeof(due->hash), &tag, sizeof(tag));
    memcpy(payload + DUE_HEAD_BYTES, due->key.data, due->key.bytes);
    const struct span content = {.data = payload, .bytes = DUE_HEAD_BYTES + due->key.bytes};
    const uint32_t shard = table_shard(self->keys, due->hash);
    return timers_set(self->timers, shard, due->time_ms, content, NULL);
}

/* Reads a timer's payload. */
static struct over_due due_read(const struct timer_due *timer)
{
    ASSERT_SLOW(timer->sequence != 0);
    ASSERT(timer->payload.bytes > DUE_HEAD_BYTES);
    uint32_t tag;
    struct over_due due = {
        .time_ms = timer->time_ms,
        .key = {.data = timer->payload.data + DUE_HEAD_BYTES,
                .bytes = timer->payload.bytes - DUE_HEAD_BYTES},
    };
    memcpy(&due.hash, timer->payload.data, sizeof(due.hash));
    memcpy(&tag, timer->payload.data + sizeof(due.hash), sizeof(tag));
    ASSERT(tag <= OVER_TAG_END);
    due.tag = tag;
    return due;
}

/* Asks for the state of the timers to come, step by step so that the misses overlap: the table's
 * pages, values, list chunks, items. */
static void dues_warm(struct over *self)
{
    ASSERT_SLOW(self->due_count <= OVER_DUES_MAX);
    uint64_t hashes[OVER_DUES_MAX];
    struct accumulator_state state = {.heap = self->context->heap};
    for (uint32_t i = 0; i < self->due_count; i++) {
        hashes[i] = self->dues[i].hash;
    }
    table_prefetch(self->keys, hashes, self->due_count);
    for (uint32_t i = 0; i < self->due_count; i++) {
        struct over_due *due = &self->dues[i];
        due->value = table_find_write(self->keys, due->hash, due->key);
        for (uint32_t at = 0; due->value != NULL && at < self->value_bytes;
             at += CACHE_LINE_BYTES) {
            __builtin_prefetch(due->value + at, 1);
        }
    }
    self->values_void = false;
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t i = 0; i < self->due_count; i++) {
            state.value = self->dues[i].value;
            if (state.value == NULL || self->dues[i].tag != OVER_TAG_ROWS) {
                continue;
            }
            if (step == 0) {
                list_prefetch(state.heap, over_pending(&state));
                list_prefetch(state.heap, over_rows(&state));
            } else {
                list_prefetch_items(state.heap, over_pending(&state));
                list_prefetch_items(state.heap, over_rows(&state));
            }
            for (uint32_t f = 0; f < self->frame_count; f++) {
                accumulators_prefetch(self->frames[f].set, &state, step);
            }
        }
    }
}

struct over_due *over_due_again(struct over *self)
{
    if (self->due_index >= self->due_count || self->due_is_done) {
        return NULL;
    }
    struct over_due *due = &self->dues[self->due_index];
    due->value = table_find_write(self->keys, due->hash, due->key);
    self->values_void = true;
    return due;
}

/* A timer that firing sets for a time that the watermark has passed already comes behind those
 * taken here; it is one of OVER_TAG_END, whose moment does not show in answers. */
struct over_due *over_due_next(struct over *self)
{
    struct timer_due timer;
    self->due_is_done = false;
    if (++self->due_index >= self->due_count) {
        uint32_t used = 0;
        self->due_index = 0;
        self->due_count = 0;
        while (self->due_count < OVER_DUES_MAX &&
               DUE_PAYLOAD_BYTES - used >= DUE_HEAD_BYTES + KEY_BYTES_MAX) {
            const struct span_mut room = {.data = self->due_payload + used,
                                          .bytes = DUE_PAYLOAD_BYTES - used};
            if (!timers_pop(self->timers, self->watermark_ms, room, &timer)) {
                break;
            }
            self->dues[self->due_count++] = due_read(&timer);
            used += (uint32_t)timer.payload.bytes;
        }
        if (self->due_count == 0) {
            return NULL;
        }
        dues_warm(self);
    }
    struct over_due *due = &self->dues[self->due_index];
    if (self->values_void) {
        due->value = table_find_write(self->keys, due->hash, due->key);
    }
    return due;
}

/* Asks the table for the values of a batch, and for their memory. */
static void values_find(struct over *self, uint32_t base, uint32_t count)
{
    ASSERT_SLOW(self->keyer != NULL);
    ASSERT(count <= PARCEL_ROWS_MAX);
    const uint32_t first = self->plan->on_arrival ? offsetof(struct over_key, last_ms) : 0;
    for (uint32_t i = 0; i < count; i++) {
        self->values[i] = table_find_write(self->keys, self->keyer->hashes[base + i],
                                           self->keyer->keys[base + i]);
        /* By watermark only the front is used as a row comes. */
        const uint32_t end =
            self->plan->on_arrival ? self->value_bytes : self->clocks_offset + CACHE_LINE_BYTES;
        for (uint32_t at = first; self->values[i] != NULL && at < end; at += CACHE_LINE_BYTES) {
            __builtin_prefetch((const uint8_t *)self->values[i] + at, 1);
        }
    }
    self->values_void = false;
}

/* On arrival a row touches the list's end, and its front only where it makes rows leave. */
static void arrival_warm(const struct over *self, const struct row *row,
                         const struct accumulator_state *state, uint32_t step)
{
    ASSERT_SLOW(step <= 1);
    ASSERT_SLOW(self->plan->on_arrival);
    const struct list_head *list = over_rows(state);
    const int64_t *leave_ms = over_leave_times(self, state);
    const int64_t time_ms = over_time(row);
    bool leaves = false;
    for (uint32_t i = 0; i < self->frame_count; i++) {
        const struct plan_over_frame *plan = self->frames[i].plan;
        leaves = leaves || (plan->unbounded ? leave_ms[i] <= self->watermark_ms
                                            : over_minus(time_ms, plan->preceding) > leave_ms[i]);
    }
    if (leaves && step == 0) {
        list_prefetch(state->heap, list);
    } else if (leaves) {
        list_prefetch_items(state->heap, list);
    } else {
        list_prefetch_end(state->heap, list, step);
    }
}

/* Brings the lists of a batch towards the cache, step by step so that its misses overlap: chunks,
 * then items. */
static void lists_warm(struct over *self, const struct row *const *rows, uint32_t count,
                       uint32_t step)
{
    ASSERT_SLOW(count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(step <= 1);
    struct accumulator_state state = {.heap = self->context->heap};
    for (uint32_t i = 0; i < count; i++) {
        if (self->values[i] == NULL) {
            continue;
        }
        state.value = self->values[i];
        if (self->plan->on_arrival) {
            arrival_warm(self, rows[i], &state, step);
            for (uint32_t f = 0; f < self->frame_count; f++) {
                accumulators_prefetch(self->frames[f].set, &state, step);
            }
        } else {
            list_prefetch_end(state.heap, over_pending(&state), step);
        }
    }
}

/* A row that cannot be finished in this call is the first of the next. */
static enum operator_verdict rows_take(struct over *self, const struct row *const *rows,
                                       uint32_t base, uint32_t count)
{
    values_find(self, base, count);
    lists_warm(self, rows, count, 0);
    lists_warm(self, rows, count, 1);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_SLOW(rows[i]->kind == ROW_INSERT);
        const struct over_lookup lookup = {
            .hash = self->keyer->hashes[base + i],
            .key = self->keyer->keys[base + i],
            .value = self->values_void ? NULL : self->values[i],
        };
        const enum operator_verdict verdict = self->plan->on_arrival
                                                  ? over_arrival_row(self, rows[i], &lookup)
                                                  : over_event_row(self, rows[i], &lookup);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->rows_done++;
    }
    return OPERATOR_DONE;
}

/* From the first row on that is not done. */
static enum operator_verdict rows_process(struct over *self, const struct row *const *rows,
                                          uint32_t count)
{
    for (uint32_t first = self->rows_done; first < count;) {
        const uint32_t filled = keyer_fill(self->keyer, self->keys, rows + first, count - first);
        if (filled == 0) {
            return operator_fail(self->context, "a PARTITION BY key is longer than %u bytes",
                                 KEY_BYTES_MAX);
        }
        for (uint32_t at = 0; at < filled; at += BATCH_ROWS) {
            const uint32_t batch = filled - at < BATCH_ROWS ? filled - at : BATCH_ROWS;
            const enum operator_verdict verdict = rows_take(self, rows + first + at, at, batch);
            if (verdict != OPERATOR_DONE) {
                return verdict;
            }
        }
        first += filled;
    }
    return OPERATOR_DONE;
}

static enum operator_verdict over_process(struct operator* base, uint32_t input,
                                          const struct parcel *parcel)
{
    struct over *self = (struct over *)base;
    ASSERT(input == 0);
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    const uint32_t done = self->rows_done;
    self->steps_left = OVER_STEPS_MAX;
    operator_tidy(self->context);
    const enum operator_verdict verdict = rows_process(self, rows, count);
    self->context->counters[OPERATOR_ROWS_IN] += self->rows_done - done;
    if (verdict == OPERATOR_DONE) {
        ASSERT(self->rows_done == count);
        self->rows_done = 0;
    }
    return verdict;
}

static enum operator_verdict over_advance(struct operator* base, int64_t watermark_ms)
{
    struct over *self = (struct over *)base;
    ASSERT(watermark_ms >= self->watermark_ms);
    if (!self->is_advancing) {
        if (watermark_ms == self->watermark_ms) {
            return OPERATOR_DONE; /* fires nothing, as in Flink */
        }
        self->before_ms = self->watermark_ms;
        self->watermark_ms = watermark_ms;
        self->is_advancing = true;
    }
    self->steps_left = OVER_STEPS_MAX;
    const enum operator_verdict verdict =
        self->plan->on_arrival ? over_arrival_advance(self) : over_event_advance(self);
    self->is_advancing = verdict == OPERATOR_AGAIN;
    return verdict;
}

/* A row behind the watermark that is not late waits with a timer that has passed already: it fires
 * with the next watermark. */
static void over_restore(struct operator* base, const struct operator_times *times)
{
    struct over *self = (struct over *)base;
    ASSERT(!self->is_advancing);
    self->watermark_ms = times->watermark_ms;
    self->before_ms = times->watermark_ms;
    self->expiry.now_ms = times->tick_ms;
}

const struct operator_ops over_ops = {
    .name = "Over",
    .open = over_open,
    .process = over_process,
    .advance = over_advance,
    .tick = over_expiry_tick,
    .restore = over_restore,
    .wants_ticks = over_expiry_wants_ticks,
    .close = over_close,
};
