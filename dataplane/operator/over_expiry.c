/* SPDX-License-Identifier: Apache-2.0 */
/* OVER state that ends (table.exec.state.ttl), as Flink does it for all frames but bounded RANGE:
 * not each value by itself, but the key as a whole, at one deadline.
 *
 *     a row at t        no deadline, or t + ttl above it:  deadline = t + 1.5 ttl
 *     deadline passes   no row of the key waits for the watermark: all of the key goes, silently
 *                       rows wait: the key lives on, to 1.5 ttl behind the deadline
 *
 * Rows count as they come, late ones too, and again as they are answered. Deadlines are timers in
 * Flink; here they are numbers, looked at when the key is touched, and by a sweep. */
#include "dataplane/operator/over_internal.h"

static int64_t *deadline(const struct over *self, const struct accumulator_state *state)
{
    ASSERT_SLOW(self->expiry.ttl_ms != 0);
    ASSERT_SLOW(state->value != NULL);
    return (int64_t *)(void *)(state->value + self->deadline_offset);
}

static int64_t time_behind(int64_t time_ms, uint64_t delta_ms)
{
    return delta_ms > INT64_MAX ? INT64_MAX : over_plus(time_ms, (int64_t)delta_ms);
}

/* ttl * 3 / 2 as Flink computes it. */
static uint64_t ttl_max_ms(const struct over *self)
{
    ASSERT_SLOW(self->expiry.ttl_ms != 0);
    return self->expiry.ttl_ms > INT64_MAX / 3 ? INT64_MAX : self->expiry.ttl_ms * 3 / 2;
}

void over_expiry_keep(struct over *self, const struct accumulator_state *state)
{
    ASSERT(state->value != NULL);
    if (self->expiry.ttl_ms == 0 || self->expiry.now_ms == EXPIRY_TIME_NONE) {
        return;
    }
    int64_t *ends_ms = deadline(self, state);
    if (*ends_ms == 0 || time_behind(self->expiry.now_ms, self->expiry.ttl_ms) > *ends_ms) {
        *ends_ms = time_behind(self->expiry.now_ms, ttl_max_ms(self));
    }
}

/* A key with rows that wait outlives its deadlines, each as it passes. */
static bool is_over(const struct over *self, const struct accumulator_state *state)
{
    int64_t *ends_ms = deadline(self, state);
    if (*ends_ms == 0 || *ends_ms > self->expiry.now_ms) {
        return false;
    }
    if (over_pending(state)->count == 0) {
        return true;
    }
    const uint64_t step_ms = ttl_max_ms(self);
    const uint64_t passed_ms = (uint64_t)self->expiry.now_ms - (uint64_t)*ends_ms;
    *ends_ms = time_behind(*ends_ms + (int64_t)(passed_ms / step_ms * step_ms), step_ms);
    ASSERT(*ends_ms > self->expiry.now_ms || *ends_ms == INT64_MAX);
    return false;
}

bool over_expiry_end(struct over *self, const struct accumulator_state *state, uint64_t hash,
                     struct span key)
{
    ASSERT(state->value != NULL);
    if (self->expiry.ttl_ms == 0 || !is_over(self, state)) {
        return false;
    }
    over_remove(self, state, hash, key);
    return true;
}

/* Rows from before the first tick have no deadline yet. The entry's key is not needed: the scan
 * removes. */
static enum table_visit over_visit(void *context, const struct table_entry *entry)
{
    struct over *self = context;
    int64_t ends_ms;
    memcpy(&ends_ms, (const uint8_t *)entry->value + self->deadline_offset, sizeof(ends_ms));
    if (ends_ms > self->expiry.now_ms) {
        return TABLE_KEEP;
    }
    const struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_entry_write(self->keys, entry),
        .shard = entry->shard,
    };
    if (ends_ms == 0) {
        over_expiry_keep(self, &state);
        return TABLE_KEEP;
    }
    if (!is_over(self, &state)) {
        return TABLE_KEEP;
    }
    over_clear(self, &state);
    return TABLE_REMOVE;
}

enum operator_verdict over_expiry_tick(struct operator* base, int64_t processing_ms)
{
    struct over *self = (struct over *)base;
    ASSERT(self->expiry.ttl_ms != 0);
    const bool is_low = arena_is_low(self->context->arena);
    const uint32_t count = expiry_tick(&self->expiry, self->keys, processing_ms, is_low);
    expiry_sweep(&self->expiry, self->keys, count, over_visit, self);
    self->values_void = true;
    operator_tidy(self->context);
    return OPERATOR_DONE;
}

bool over_expiry_wants_ticks(const struct plan_node *node)
{
    ASSERT(node->operator== PLAN_OVER);
    return node->over.ttl_ms != 0;
}
