/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP BY without a window. Each row changes its group's result and the change goes out at once:
 * +I for a new group, then -U and +U (or +U alone when nobody wants -U), -D when the last row was
 * taken back. A result that stays as it was is not sent.
 *
 * The result before and after a row are built as rows in scratch memory and compared there; a query
 * with a plain COUNT(*), whose result always changes, skips that unless -U is wanted.
 *
 *     row -> group's value -> before? -> add or retract -> after? -> rows out
 *
 *     new group            +I after                 rows came to 0       -D before
 *     same result          nothing                  changed              -U before, +U after
 *
 * With a lifetime (expiry.h) a group ends so long after its last row, silently: a later row makes a
 * new one. Then equal results are sent as well, since they keep state further down alive. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/expiry.h"
#include "dataplane/operator/operator_internal.h"

#define GROUP_SCRATCH_BYTES (UINT32_C(4) << 20)

/* In front of the accumulators. */
struct group_value {
    int64_t rows;       /* rows that came less rows taken back */
    int64_t written_ms; /* only with a lifetime */
};

struct group {
    struct operator base;
    struct operator_context *context;
    const struct plan_node *node;
    const struct row_layout *input;
    struct keyer *keyer;
    struct accumulator_set *set;
    struct table *groups;
    bool always_changes;
    struct expiry expiry;
    uint8_t *before; /* GROUP_SCRATCH_BYTES each: the result before and after a row */
    uint8_t *after;
};

/* Also the way out of a failed open. */
static void group_close(struct operator* base)
{
    struct group *self = (struct group *)base;
    table_destroy(self->groups);
    accumulators_destroy(self->set);
    keyer_destroy(self->keyer);
    free(self->before);
    free(self->after);
    free(self);
}

/* A COUNT(*) without FILTER moves with every row. */
static bool always_changes(const struct plan_group *plan)
{
    ASSERT_SLOW(plan != NULL);
    for (uint32_t i = 0; i < plan->call_count; i++) {
        const struct aggregate_call *call = &plan->calls[i];
        if (call->function == AGGREGATE_COUNT && call->argument == AGGREGATE_COLUMN_NONE &&
            call->filter == AGGREGATE_COLUMN_NONE) {
            return true;
        }
    }
    return false;
}

static int group_state_create(struct group *self, struct error *error)
{
    ASSERT(self != NULL);
    const struct plan_group *plan = &self->node->group;
    const struct accumulator_config config = {
        .calls = plan->calls,
        .call_count = plan->call_count,
        .layout = self->input,
        .mode = plan->input_updates ? ACCUMULATOR_RETRACT : ACCUMULATOR_APPEND,
        .base_bytes = plan->ttl_ms == 0 ? offsetof(struct group_value, written_ms)
                                        : sizeof(struct group_value),
        .expiry = &self->expiry,
    };
    const int result = accumulators_create(&config, &self->set, error);
    if (result != 0) {
        return result;
    }
    char name[OPERATOR_NAME_BYTES];
    struct table_head heads[ACCUMULATOR_HEADS_MAX];
    const struct table_config table = {
        .name = state_name(name, "group", self->node),
        .value_bytes = accumulators_bytes(self->set),
        .heads = heads,
        .head_count = accumulators_heads(self->set, heads),
    };
    return table_create(self->context->heap, &table, &self->groups, error);
}

static int group_open(const struct plan_node *node, const struct row_layout *const *inputs,
                      struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(context != NULL);
    ASSERT(out != NULL);
    ASSERT(node->operator== PLAN_GROUP);
    struct group *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &group_ops;
    self->context = context;
    self->node = node;
    self->input = inputs[0];
    self->always_changes = always_changes(&node->group);
    expiry_init(&self->expiry, node->group.ttl_ms);
    self->keyer = keyer_create(inputs[0], &node->group.key);
    self->before = operator_scratch(GROUP_SCRATCH_BYTES);
    self->after = operator_scratch(GROUP_SCRATCH_BYTES);
    int result = -ENOMEM;
    if (self->keyer == NULL || self->before == NULL || self->after == NULL) {
        error_set(error, result, "out of memory");
    } else {
        result = group_state_create(self, error);
    }
    if (result != 0) {
        group_close(&self->base);
        return result;
    }
    *out = &self->base;
    return 0;
}

/* Writes key columns and results as a row into scratch memory. The kind is set when the row is
 * sent; results carry no time: a GROUP BY's output has no time attribute. */
static bool result_build(struct group *self, const struct accumulator_state *state,
                         const struct row *row, uint8_t *into)
{
    ASSERT_SLOW(self->node != NULL);
    const struct plan_group *plan = &self->node->group;
    struct row_writer writer;
    if (!row_begin(&writer, &self->node->layout, into, GROUP_SCRATCH_BYTES, row)) {
        return false;
    }
    writer.row->time_ms = ROW_TIME_NONE;
    for (uint32_t i = 0; i < plan->key.count; i++) {
        if (!row_copy_column(&writer, i, self->input, row, plan->key.columns[i])) {
            return false;
        }
    }
    uint32_t next = 0;
    if (accumulators_store(self->set, state, &writer, plan->key.count, &next) != 0) {
        return false;
    }
    (void)row_end(&writer);
    return true;
}

/* Doubles compare as numbers, as Flink's generated code does: NaN is never equal to itself and 0.0
 * equals -0.0. All else is equal by its bytes. */
static bool real_equal(const struct type *type, uint64_t a, uint64_t b)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    if (type->kind == TYPE_DOUBLE) {
        double left;
        double right;
        memcpy(&left, &a, sizeof(left));
        memcpy(&right, &b, sizeof(right));
        return left == right;
    }
    float left;
    float right;
    memcpy(&left, &a, sizeof(left));
    memcpy(&right, &b, sizeof(right));
    return left == right;
}

/* Tells besides whether a real column was compared at all: without one, bytes decide. */
static bool reals_equal(const struct group *self, const struct row *a, const struct row *b,
                        bool *has_real)
{
    ASSERT_SLOW(self->node != NULL);
    ASSERT_SLOW(has_real != NULL);
    const struct row_layout *layout = &self->node->layout;
    *has_real = false;
    for (uint32_t i = self->node->group.key.count; i < layout->column_count; i++) {
        const struct type *type = &layout->types[i];
        if ((type->kind != TYPE_DOUBLE && type->kind != TYPE_FLOAT) || row_is_null(a, i) ||
            row_is_null(b, i)) {
            continue;
        }
        *has_real = true;
        if (!real_equal(type, a->words[layout->slots[i]], b->words[layout->slots[i]])) {
            return false;
        }
    }
    return true;
}

/* Whether two results are the same to Flink. */
static bool results_equal(const struct group *self, struct row *a, struct row *b)
{
    ASSERT_SLOW(self->node != NULL);
    bool has_real;
    if (!reals_equal(self, a, b, &has_real)) {
        return false;
    }
    const size_t bytes = a->bytes - sizeof(*a);
    if (a->bytes == b->bytes && memcmp(a->words, b->words, bytes) == 0) {
        return true;
    }
    if (!has_real) {
        return false;
    }
    /* 0.0 against -0.0 is the one difference in bytes that does not count. */
    const struct row_layout *layout = &self->node->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        struct value left = row_value(layout, a, i);
        struct value right = row_value(layout, b, i);
        if (left.is_null != right.is_null) {
            return false;
        }
        const enum type_kind kind = layout->types[i].kind;
        if (left.is_null || kind == TYPE_DOUBLE || kind == TYPE_FLOAT) {
            continue;
        }
        const bool same = type_is_text(&layout->types[i])
                              ? left.text.bytes == right.text.bytes &&
                                    memcmp(left.text.data, right.text.data, left.text.bytes) == 0
                              : memcmp(row_slot(layout, a, i), row_slot(layout, b, i),
                                       8 * (size_t)type_slot_count(&layout->types[i])) == 0;
        if (!same) {
            return false;
        }
    }
    return true;
}

/* The row was built in scratch, so the same bytes serve all edges. */
static bool emit(struct group *self, uint8_t *scratch, enum row_kind kind)
{
    ASSERT_SLOW(self->node != NULL);
    ASSERT(kind <= ROW_DELETE);
    struct row *row = (struct row *)(void *)scratch;
    row->kind = kind;
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return output_row_copy(self->context->output, row);
}

/* Sends what changed in a group that goes on. Without -U a COUNT(*) always changes, so nothing
 * needs to be compared. */
static bool update_emit(struct group *self, bool created)
{
    ASSERT_SLOW(self->node != NULL);
    if (created) {
        return emit(self, self->after, ROW_INSERT);
    }
    const bool compares =
        self->expiry.ttl_ms == 0 && (!self->always_changes || self->node->group.send_update_before);
    if (compares && results_equal(self, (struct row *)(void *)self->before,
                                  (struct row *)(void *)self->after)) {
        return true;
    }
    return (!self->node->group.send_update_before || emit(self, self->before, ROW_UPDATE_BEFORE)) &&
           emit(self, self->after, ROW_UPDATE_AFTER);
}

/* Deletes a group whose last row was taken back. A group that was new and came to 0 in one row
 * was never told to anybody. */
static bool group_remove(struct group *self, const struct accumulator_state *state, uint64_t hash,
                         struct span key, bool created)
{
    ASSERT_SLOW(self->node != NULL);
    ASSERT(state->value != NULL);
    accumulators_clear(self->set, state);
    (void)table_remove(self->groups, hash, key);
    return created || emit(self, self->before, ROW_DELETE);
}

/* Empties a group that has ended, so that it is as new; one that only gives back is not made.
 * returns  whether the row that found it goes on */
static bool group_renew(struct group *self, const struct accumulator_state *state, uint64_t hash,
                        struct span key, bool adds)
{
    ASSERT_SLOW(self->expiry.ttl_ms != 0);
    ASSERT(state->value != NULL);
    accumulators_clear(self->set, state);
    self->context->counters[OPERATOR_EXPIRED]++;
    if (!adds) {
        (void)table_remove(self->groups, hash, key);
        return false;
    }
    *(struct group_value *)(void *)state->value = (struct group_value){0};
    return true;
}

/* A -U or -D of an unknown group is what a Flink job drops as well, e.g. after its state has
 * been cleared. */
static enum operator_verdict group_row(struct group *self, const struct row *row, uint64_t hash,
                                       struct span key)
{
    ASSERT_SLOW(self->node != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const bool adds = row->kind == ROW_INSERT || row->kind == ROW_UPDATE_AFTER;
    bool created = false;
    struct accumulator_state state = {
        .heap = self->context->heap,
        .shard = table_shard(self->groups, hash),
    };
    state.value = adds ? table_insert(self->groups, hash, key, &created)
                       : table_find_write(self->groups, hash, key);
    if (state.value == NULL) {
        /* Taking back from a group that is not there does nothing. */
        return adds ? operator_fail_full(self->context) : OPERATOR_DONE;
    }
    struct group_value *group = (struct group_value *)(void *)state.value;
    const bool expires = self->expiry.ttl_ms != 0;
    if (expires && !created && expiry_is_over(&self->expiry, group->written_ms)) {
        created = group_renew(self, &state, hash, key, adds);
        if (!created) {
            return OPERATOR_DONE;
        }
    }
    if (created) {
        accumulators_init(self->set, &state);
    } else if ((!self->always_changes || self->node->group.send_update_before || !adds) &&
               !result_build(self, &state, row, self->before)) {
        return operator_fail_row(self->context);
    }
    group->rows += adds ? 1 : -1;
    if (expires) {
        group->written_ms = self->expiry.now_ms;
    }
    if (!(adds ? accumulators_add(self->set, &state, row)
               : accumulators_retract(self->set, &state, row))) {
        return operator_fail_full(self->context);
    }
    if (group->rows == 0) {
        return group_remove(self, &state, hash, key, created) ? OPERATOR_DONE
                                                              : operator_fail_row(self->context);
    }
    if (!result_build(self, &state, row, self->after) || !update_emit(self, created)) {
        return operator_fail_row(self->context);
    }
    return OPERATOR_DONE;
}

static enum operator_verdict group_process(struct operator* base, uint32_t input,
                                           const struct parcel *parcel)
{
    struct group *self = (struct group *)base;
    ASSERT(input == 0);
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    self->context->counters[OPERATOR_ROWS_IN] += count;
    operator_tidy(self->context);
    for (uint32_t first = 0; first < count;) {
        const uint32_t filled = keyer_fill(self->keyer, self->groups, rows + first, count - first);
        if (filled == 0) {
            return operator_fail(self->context, "a grouping key is longer than %u bytes",
                                 KEY_BYTES_MAX);
        }
        for (uint32_t i = 0; i < filled; i++) {
            const enum operator_verdict verdict =
                group_row(self, rows[first + i], self->keyer->hashes[i], self->keyer->keys[i]);
            if (verdict != OPERATOR_DONE) {
                return verdict;
            }
        }
        first += filled;
    }
    return OPERATOR_DONE;
}

static enum table_visit group_visit(void *context, const struct table_entry *entry)
{
    struct group *self = context;
    const struct group_value *group = entry->value;
    const bool is_over = expiry_is_over(&self->expiry, group->written_ms);
    if (!is_over && group->written_ms != EXPIRY_TIME_NONE) {
        return TABLE_KEEP;
    }
    const struct accumulator_state state = {
        .heap = self->context->heap,
        .value = table_entry_write(self->groups, entry),
        .shard = entry->shard,
    };
    if (!is_over) {
        ((struct group_value *)(void *)state.value)->written_ms = self->expiry.now_ms;
        return TABLE_KEEP;
    }
    accumulators_clear(self->set, &state);
    self->context->counters[OPERATOR_EXPIRED]++;
    return TABLE_REMOVE;
}

/* Frees groups that have ended, a bounded number of segments. */
static enum operator_verdict group_tick(struct operator* base, int64_t processing_ms)
{
    struct group *self = (struct group *)base;
    ASSERT(self->expiry.ttl_ms != 0);
    const bool is_low = arena_is_low(self->context->arena);
    const uint32_t count = expiry_tick(&self->expiry, self->groups, processing_ms, is_low);
    expiry_sweep(&self->expiry, self->groups, count, group_visit, self);
    operator_tidy(self->context);
    return OPERATOR_DONE;
}

static bool group_wants_ticks(const struct plan_node *node)
{
    ASSERT(node->operator== PLAN_GROUP);
    return node->group.ttl_ms != 0;
}

static void group_restore(struct operator* base, const struct operator_times *times)
{
    ((struct group *)base)->expiry.now_ms = times->tick_ms;
}

const struct operator_ops group_ops = {
    .name = "Group",
    .open = group_open,
    .process = group_process,
    .tick = group_tick,
    .restore = group_restore,
    .wants_ticks = group_wants_ticks,
    .close = group_close,
};
