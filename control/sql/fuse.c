/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing stacked OVER nodes. Not fused, so that answers stay those of the stack:
 *
 *  - a call over what a lower level computed (SUM(n) OVER … with n = COUNT(*) OVER …): the column
 *    is not there when the row comes
 *  - a level that another node reads too
 *  - state that expires by watermark, where each level counts from when rows came up to it; or on
 *    one of the levels only
 *  - on arrival, floating-point sums and DECIMAL sums that may pass 38 digits in a bounded RANGE: a
 *    level forgets its rounding errors, or its overflow, when it forgets the key, and that moment
 *    is not kept apart here
 *  - more frames, collections or bytes of state than one table value holds
 */
#include "control/sql/fuse.h"

#include <stdio.h>

#define HEADS_MAX           14   /* of TABLE_HEAD_COUNT_MAX, less the operator's own */
#define BYTES_MAX           1700 /* of TABLE_VALUE_BYTES_MAX, less the operator's own */
#define BYTES_PER_CALL      72   /* no accumulator is longer, its DISTINCT map included */
#define BYTES_PER_FRAME     56
#define DECIMAL_DIGITS_SAFE 28 /* 10^10 of them fit 38 digits */

/* What a stack asks of one table value. */
struct stack {
    uint32_t first; /* lowest node */
    uint32_t count;
    uint32_t heads;
    uint32_t bytes;
};

static bool is_sum(enum aggregate_function function)
{
    switch (function) {
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
    case AGGREGATE_STDDEV_POP:
    case AGGREGATE_STDDEV_SAMP:
    case AGGREGATE_VAR_POP:
    case AGGREGATE_VAR_SAMP:
        return true;
    default:
        return false;
    }
}

/* Whether a sum that slides depends on when it last began at nothing. */
static bool is_drifting(const struct aggregate_call *call)
{
    const struct type *type = &call->argument_type;
    return is_sum(call->function) &&
           (type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE ||
            (type->kind == TYPE_DECIMAL && type->precision > DECIMAL_DIGITS_SAFE));
}

/* Whether all calls of a node can be answered over rows of so many columns. */
static bool calls_fit(const struct plan_over *over, uint32_t column_count)
{
    const bool drifts = over->on_arrival && !over->unbounded && !over->is_rows;
    for (uint32_t i = 0; i < over->call_count; i++) {
        const struct aggregate_call *call = &over->calls[i];
        if ((call->argument != AGGREGATE_COLUMN_NONE && call->argument >= column_count) ||
            (call->filter != AGGREGATE_COLUMN_NONE && call->filter >= column_count) ||
            (drifts && is_drifting(call))) {
            return false;
        }
    }
    return true;
}

/* Lists and maps that a call keeps a key. */
static uint32_t call_heads(const struct aggregate_call *call)
{
    switch (call->function) {
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
    case AGGREGATE_FIRST_VALUE:
    case AGGREGATE_LAST_VALUE:
    case AGGREGATE_LAG:
    case AGGREGATE_LISTAGG:
        return call->distinct ? 2 : 1;
    default:
        return call->distinct ? 1 : 0;
    }
}

/* Adds a node's needs to those of the stack.
 * returns  false when they do not fit: then nothing has changed */
static bool stack_add(struct stack *stack, const struct plan_over *over)
{
    const uint32_t copies = over->on_arrival && over->unbounded ? 2 : 1;
    struct stack grown = *stack;
    grown.count++;
    grown.bytes += BYTES_PER_FRAME + copies * over->call_count * BYTES_PER_CALL;
    for (uint32_t i = 0; i < over->call_count; i++) {
        grown.heads += copies * call_heads(&over->calls[i]);
    }
    if (grown.count > PLAN_OVER_FRAMES_MAX || grown.heads > HEADS_MAX || grown.bytes > BYTES_MAX) {
        return false;
    }
    *stack = grown;
    return true;
}

static uint32_t count_readers(const struct planning *planning, uint32_t id)
{
    uint32_t count = 0;
    for (uint32_t i = id + 1; i < planning->node_count; i++) {
        for (uint32_t k = 0; k < planning->nodes[i]->input_count; k++) {
            count += planning->nodes[i]->inputs[k] == id;
        }
    }
    return count;
}

/* The node that alone reads this one and may be fused with it, or NULL. */
static const struct plan_node *next_level(const struct planning *planning,
                                          const struct plan_node *node, uint32_t column_count)
{
    if (count_readers(planning, node->id) != 1) {
        return NULL;
    }
    for (uint32_t i = node->id + 1; i < planning->node_count; i++) {
        const struct plan_node *above = planning->nodes[i];
        if (above->input_count != 1 || above->inputs[0] != node->id) {
            continue;
        }
        const struct plan_over *a = &node->over;
        const struct plan_over *b = &above->over;
        const bool fits =
            above->operator== PLAN_OVER && above->distribution == PLAN_FORWARD && a->on_arrival ==
            b->on_arrival && a->ttl_ms == b->ttl_ms &&(a->on_arrival || a->ttl_ms == 0) &&
            a->key.count == b->key.count &&
            memcmp(a->key.columns, b->key.columns, a->key.count * sizeof(uint32_t)) == 0 &&
            calls_fit(b, column_count);
        return fits ? above : NULL;
    }
    return NULL;
}

/* Joins the parts in brackets: Over[card, 1 min] and Over[card, 1 h] are Over[card, 1 min, 1 h]. */
static void name_fused(struct plan_node *fused, const struct plan_node *above, uint32_t key_bytes)
{
    const size_t used = strlen(fused->name);
    const size_t skip = key_bytes < strlen(above->name) ? key_bytes : 0;
    if (used != 0 && used + 8 < sizeof(fused->name)) {
        (void)snprintf(fused->name + used - 1, sizeof(fused->name) - used + 1, ", %s",
                       above->name + skip);
    }
}

/* Bytes of a node's name before its frame: operator and key. */
static uint32_t name_key_bytes(const struct plan_node *node, const struct plan_node *input)
{
    uint32_t bytes = (uint32_t)strlen("Over[");
    for (uint32_t i = 0; i < node->over.key.count; i++) {
        bytes += (uint32_t)strlen(input->column_names[node->over.key.columns[i]]) + 2;
    }
    return bytes;
}

/* Replaces the topmost node of the stack that begins at `lowest` by one that stands for all; those
 * below become NULL. */
static void fuse_from(struct planning *planning, struct plan_node *lowest)
{
    struct sql_memory *memory = planning->session->memory;
    const struct plan_node *input = planning->nodes[lowest->inputs[0]];
    const uint32_t column_count = input->layout.column_count;
    struct plan_over_frame frames[PLAN_OVER_FRAMES_MAX];
    struct stack stack = {0};
    if (!calls_fit(&lowest->over, column_count) || !stack_add(&stack, &lowest->over)) {
        return;
    }
    frames[0] = plan_over_own_frame(&lowest->over);
    struct plan_node fused = *lowest;
    const struct plan_node *top = lowest;
    const struct plan_node *above = next_level(planning, top, column_count);
    while (above != NULL && stack_add(&stack, &above->over)) {
        frames[stack.count - 1] = plan_over_own_frame(&above->over);
        name_fused(&fused, above, name_key_bytes(lowest, input));
        planning->nodes[top->id] = NULL;
        top = above;
        above = next_level(planning, top, column_count);
    }
    if (stack.count < 2) {
        return;
    }
    struct plan_over_frame *copy = sql_allocate(memory, stack.count * sizeof(*copy));
    memcpy(copy, frames, stack.count * sizeof(*copy));
    fused.id = top->id;
    fused.line = top->line;
    fused.column_in_line = top->column_in_line;
    fused.layout = top->layout;
    fused.column_names = top->column_names;
    fused.time_column = top->time_column;
    fused.over = (struct plan_over){
        .key = lowest->over.key,
        .on_arrival = lowest->over.on_arrival,
        .ttl_ms = lowest->over.ttl_ms,
        .frames = copy,
        .frame_count = stack.count,
    };
    struct plan_node *node = sql_allocate(memory, sizeof(*node));
    *node = fused;
    planning->nodes[top->id] = node;
}

/* Closes the gaps. */
static void renumber(struct planning *planning)
{
    struct sql_memory *memory = planning->session->memory;
    uint32_t *numbers = sql_allocate(memory, (planning->node_count + 1) * sizeof(*numbers));
    uint32_t count = 0;
    for (uint32_t i = 0; i < planning->node_count; i++) {
        struct plan_node *node = planning->nodes[i];
        if (node == NULL) {
            continue;
        }
        uint32_t *inputs = sql_allocate(memory, (node->input_count + 1) * sizeof(*inputs));
        for (uint32_t k = 0; k < node->input_count; k++) {
            inputs[k] = numbers[node->inputs[k]];
            ASSERT(inputs[k] < count);
        }
        numbers[i] = count;
        node->id = count;
        node->inputs = inputs;
        planning->nodes[count++] = node;
    }
    planning->node_count = count;
}

void plan_fuse(struct planning *planning)
{
    ASSERT(planning->node_count <= PLAN_NODES_MAX);
    for (uint32_t i = 0; i < planning->node_count; i++) {
        struct plan_node *node = planning->nodes[i];
        if (node != NULL && node->operator== PLAN_OVER && node->over.frame_count == 0) {
            fuse_from(planning, node);
        }
    }
    renumber(planning);
}
