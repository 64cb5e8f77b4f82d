/* SPDX-License-Identifier: Apache-2.0 */
/* OVER by event time: each row goes out once, with aggregates over the rows of its key up to it.
 * This file makes the operator and holds what its two ways of answering share.
 *
 * State: a table by key. A value holds the last fired time, a list of whole rows that wait for the
 * watermark, a list of packed rows that a later frame may have to give back (only the columns that
 * the calls read), and the accumulators. Timers say which keys are due.
 *
 *     key -> value:  over_key { pending list, cleanup, sequence, last, frame list } | accumulators
 *                         |                                       |
 *                         | whole rows, by time                   | packed rows, by time or number
 *                         v                                       v
 *     a row:  pending ----(watermark reaches its time)----> answered, packed into the frame ----> left
 *
 * Invariants:
 *   1. The accumulators hold exactly the rows of the frame list, or for an unbounded frame all
 *      rows that were answered.
 *   2. A key has a timer for each time among its pending rows.
 *   3. A value pointer is good until a key is inserted or removed: values_void says that the
 *      batch's pointers are not. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/over_fused.h"
#include "dataplane/operator/over_internal.h"

#define DUE_PAYLOAD_BYTES (KEY_BYTES_MAX + 4096)

/* Also the way out of a failed open: every part may still be NULL. */
static void over_close(struct operator* base)
{
    struct over *self = (struct over *)base;
    timers_destroy(self->timers);
    table_destroy(self->keys);
    accumulators_destroy(self->set);
    keyer_destroy(self->keyer);
    widener_fini(&self->widener);
    over_packer_fini(&self->packer);
    free(self->calls);
    free(self->scratch_value);
    free(self->due_payload);
    free(self);
}

static int calls_create(struct over *self)
{
    ASSERT(self != NULL);
    const uint32_t count = self->plan->call_count;
    self->calls = calloc(count + 1, sizeof(self->calls[0]));
    if (over_packer_init(&self->packer, self->input, 2 * count) != 0 || self->calls == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        self->calls[i] = self->plan->calls[i];
        if (self->uses_frame) {
            self->calls[i].argument =
                over_packer_column(&self->packer, self->plan->calls[i].argument);
            self->calls[i].filter = over_packer_column(&self->packer, self->plan->calls[i].filter);
        }
    }
    over_packer_seal(&self->packer);
    return 0;
}

/* Keys of on-arrival unbounded frames have their accumulators twice. */
static uint32_t heads_fill(const struct over *self, struct table_head *heads)
{
    ASSERT_SLOW(self != NULL);
    ASSERT_SLOW(heads != NULL);
    uint32_t count = accumulators_heads(self->set, heads);
    /* The second set lies behind the first and has its lists and maps at the same distances. */
    const uint32_t shift = accumulators_bytes(self->set) - (uint32_t)sizeof(struct over_key);
    if (self->plan->on_arrival && self->plan->unbounded) {
        for (uint32_t i = 0; i < count; i++) {
            heads[count + i] = heads[i];
            heads[count + i].offset = (uint16_t)(heads[i].offset + shift);
        }
        count *= 2;
    }
    heads[count++] = (struct table_head){
        .offset = offsetof(struct over_key, pending),
        .kind = TABLE_HEAD_LIST,
    };
    heads[count++] = (struct table_head){
        .offset = offsetof(struct over_key, frame),
        .kind = TABLE_HEAD_LIST,
    };
    return count;
}

/* The caps are those of the state's table; a query that needs more is refused at start, with
 * both numbers in the message. */
static int table_make(struct over *self, struct error *error)
{
    ASSERT_SLOW(self != NULL);
    struct table_head heads[2 * ACCUMULATOR_HEADS_MAX + 2];
    const uint32_t head_count = heads_fill(self, heads);
    uint32_t bytes = accumulators_bytes(self->set);
    if (self->plan->on_arrival && self->plan->unbounded) {
        bytes += bytes - (uint32_t)sizeof(struct over_key);
    }
    if (head_count > TABLE_HEAD_COUNT_MAX || bytes > TABLE_VALUE_BYTES_MAX) {
        return error_set(error, -ENOTSUP,
                         "the OVER calls of one SELECT need %u bytes and %u collections of state a "
                         "key, more than %u and %u",
                         bytes, head_count, TABLE_VALUE_BYTES_MAX, TABLE_HEAD_COUNT_MAX);
    }
    char name[OPERATOR_NAME_BYTES];
    const struct table_config config = {
        .name = state_name(name, "over", self->node),
        .value_bytes = bytes,
        .heads = heads,
        .head_count = head_count,
    };
    return table_create(self->context->heap, &config, &self->keys, error);
}

/* An unbounded frame never gives a row back, so cheaper accumulators will do, e.g. a maximum
 * instead of an ordered map. */
static int state_create(struct over *self, struct error *error)
{
    ASSERT(self != NULL);
    const bool only_grows = self->plan->unbounded;
    const struct accumulator_config config = {
        .calls = self->calls,
        .call_count = self->plan->call_count,
        .layout = self->uses_frame ? &self->packer.layout : self->input,
        .mode = only_grows ? ACCUMULATOR_APPEND : ACCUMULATOR_SLIDING,
        .is_over = true,
        .base_bytes = sizeof(struct over_key),
    };
    int result = accumulators_create(&config, &self->set, error);
    if (result == 0) {
        result = table_make(self, error);
    }
    char name[OPERATOR_NAME_BYTES];
    if (result == 0) {
        result = timers_create(self->context->heap, state_name(name, "over.due", self->node),
                               &self->timers, error);
    }
    return result;
}

/* uses_frame: rows are kept beyond their answer when they must leave again, or when a later old
 * row must be put in order. */
static int over_open(const struct plan_node *node, const struct row_layout *const *inputs,
                     struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(context != NULL);
    ASSERT(out != NULL);
    ASSERT(node->operator== PLAN_OVER);
    if (node->over.frame_count != 0) {
        return over_fused_open(node, inputs, context, out, error);
    }
    struct over *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &over_ops;
    self->context = context;
    self->node = node;
    self->plan = &node->over;
    self->input = inputs[0];
    self->uses_frame = !node->over.unbounded || node->over.on_arrival;
    self->watermark_ms = WATERMARK_MIN;
    self->keyer = keyer_create(inputs[0], &node->over.key);
    self->scratch_value = operator_scratch(TABLE_VALUE_BYTES_MAX);
    self->due_payload = operator_scratch(DUE_PAYLOAD_BYTES);
    int result = calls_create(self);
    if (result != 0 || self->keyer == NULL || self->scratch_value == NULL ||
        self->due_payload == NULL || widener_init(&self->widener, inputs[0]) != 0) {
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

bool over_emit(struct over *self, const struct accumulator_state *state, const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    struct row_writer writer;
    struct output *output = self->context->output;
    if (!widener_begin(&self->widener, output, &writer, row) ||
        !results_store(self->set, state, output, &writer, self->input->column_count)) {
        return false;
    }
    output_row_end(output, &writer);
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return true;
}

/* The payload is the hash and the key, so that firing needs no search for either. */
bool over_timer_set(struct over *self, int64_t time_ms, uint64_t hash, struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(key.bytes <= KEY_BYTES_MAX);
    /* A short key's payload is put together on the stack; the due payload may be in use. */
    uint8_t small[256];
    uint8_t *payload = key.bytes <= sizeof(small) - sizeof(hash) ? small : self->packer.packed;
    memcpy(payload, &hash, sizeof(hash));
    memcpy(payload + sizeof(hash), key.data, key.bytes);
    const struct span content = {.data = payload, .bytes = sizeof(hash) + key.bytes};
    return timers_set(self->timers, table_shard(self->keys, hash), time_ms, content, NULL);
}

void over_due_key(const struct over *self, uint64_t *hash, struct span *key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(self->due.payload.bytes > sizeof(*hash));
    memcpy(hash, self->due.payload.data, sizeof(*hash));
    key->data = self->due.payload.data + sizeof(*hash);
    key->bytes = self->due.payload.bytes - sizeof(*hash);
}

/* A payload that fits a heap block is shown in place. */
bool over_timer_pop(struct over *self, uint64_t *hash, struct span *key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(!self->is_firing);
    const struct span_mut scratch = {.data = self->due_payload, .bytes = DUE_PAYLOAD_BYTES};
    if (!timers_pop(self->timers, self->watermark_ms, scratch, &self->due)) {
        return false;
    }
    if (self->due.payload.data != self->due_payload) {
        /* Firing changes timers, so the key must outlive them. */
        memcpy(self->due_payload, self->due.payload.data, self->due.payload.bytes);
        self->due.payload.data = self->due_payload;
    }
    over_due_key(self, hash, key);
    return true;
}

/* Long lists are freed in bounded steps elsewhere; here all must go, since the value that points
 * to them goes. */
void over_key_remove(struct over *self, const struct accumulator_state *state, uint64_t hash,
                     struct span key)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(state->value != NULL);
    struct heap *heap = self->context->heap;
    while (!list_clear(heap, over_pending(state), UINT32_MAX)) {
    }
    while (!list_clear(heap, over_frame_list(state), UINT32_MAX)) {
    }
    accumulators_clear(self->set, state);
    (void)table_remove(self->keys, hash, key);
    self->context->counters[OPERATOR_EXPIRED]++;
}

struct accumulator_state over_value_take(struct over *self, const struct over_lookup *lookup,
                                         bool *created)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(created != NULL);
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
    return state;
}

/* Looks up the values of a batch step by step, so that the misses of its rows overlap: values, then
 * the chunks of their lists, then the items. */
static void values_warm(struct over *self, uint32_t count)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT(count <= PARCEL_ROWS_MAX);
    const uint32_t bytes = accumulators_bytes(self->set);
    const uint32_t first_byte = self->plan->on_arrival ? offsetof(struct over_key, last_ms) : 0;
    struct accumulator_state state = {.heap = self->context->heap};
    for (uint32_t i = 0; i < count; i++) {
        self->values[i] =
            table_find_write(self->keys, self->keyer->hashes[i], self->keyer->keys[i]);
        for (uint32_t at = first_byte; self->values[i] != NULL && at < bytes;
             at += CACHE_LINE_BYTES) {
            __builtin_prefetch((const uint8_t *)self->values[i] + at, 1);
        }
    }
    self->values_void = false;
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t i = 0; i < count; i++) {
            if (self->values[i] == NULL) {
                continue;
            }
            state.value = self->values[i];
            const struct list_head *list =
                self->plan->on_arrival ? over_frame_list(&state) : over_pending(&state);
            if (step == 0) {
                list_prefetch(state.heap, list);
            } else {
                list_prefetch_items(state.heap, list);
            }
            if (self->plan->on_arrival) {
                accumulators_prefetch(self->set, &state, step);
            }
        }
    }
}

/* One lookup for the batch as long as no key is new; behind an insert pages may have moved, and
 * each row looks up its own key again. */
static enum operator_verdict rows_take(struct over *self, const struct row *const *rows,
                                       uint32_t count)
{
    ASSERT_SLOW(self->plan != NULL);
    values_warm(self, count);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_SLOW(rows[i]->kind == ROW_INSERT);
        const struct over_lookup lookup = {
            .hash = self->keyer->hashes[i],
            .key = self->keyer->keys[i],
            .value = self->values_void ? NULL : self->values[i],
        };
        const enum operator_verdict verdict = self->plan->on_arrival
                                                  ? over_arrival_row(self, rows[i], &lookup)
                                                  : over_event_row(self, rows[i], &lookup);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
    }
    return OPERATOR_DONE;
}

/* Keys are encoded as many at a time as the keyer's buffer holds; a parcel is nearly always one
 * round. */
static enum operator_verdict over_process(struct operator* base, uint32_t input,
                                          const struct parcel *parcel)
{
    struct over *self = (struct over *)base;
    ASSERT(input == 0);
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    self->context->counters[OPERATOR_ROWS_IN] += count;
    operator_tidy(self->context);
    for (uint32_t first = 0; first < count;) {
        const uint32_t filled = keyer_fill(self->keyer, self->keys, rows + first, count - first);
        if (filled == 0) {
            return operator_fail(self->context, "a PARTITION BY key is longer than %u bytes",
                                 KEY_BYTES_MAX);
        }
        const enum operator_verdict verdict = rows_take(self, rows + first, filled);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        first += filled;
    }
    return OPERATOR_DONE;
}

static enum operator_verdict over_advance(struct operator* base, int64_t watermark_ms)
{
    struct over *self = (struct over *)base;
    ASSERT(watermark_ms >= self->watermark_ms);
    self->watermark_ms = watermark_ms;
    return self->plan->on_arrival ? over_arrival_advance(self) : over_event_advance(self);
}

const struct operator_ops over_ops = {
    .name = "Over",
    .open = over_open,
    .process = over_process,
    .advance = over_advance,
    .close = over_close,
};
