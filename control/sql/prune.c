/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the relations from the sinks down; see prune.h. Ids of inputs are smaller, so the
 * order of ids is an order of the graph. */
#include "control/sql/prune.h"

#include "control/sql/rel_expr.h"

static void need_expr(struct session *session, struct need *need, const struct rel *rel,
                      const struct expr *expr)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(session != NULL);
    uint32_t *uses = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*uses));
    expr_count_columns(expr, uses, rel->column_count);
    for (uint32_t i = 0; i < rel->column_count; i++) {
        need->columns[i] = need->columns[i] || uses[i] != 0;
    }
}

static bool uses_watermark(const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    if (expr->kind != EXPR_CALL) {
        return false;
    }
    if (strcmp(expr_function_name(expr->function), "CURRENT_WATERMARK") == 0) {
        return true;
    }
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        if (uses_watermark(expr->arguments[i])) {
            return true;
        }
    }
    return false;
}

static void need_time(struct need *need, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    need->time = true;
    if (rel->time_column >= 0) {
        need->columns[rel->time_column] = true;
    }
}

/* Tells whether a condition reads more than the upsert key: rows of one key may then differ. */
static bool splits(const struct rel *calc)
{
    ASSERT(calc->columns != NULL || calc->column_count == 0);
    ASSERT(calc->inputs != NULL || calc->input_count == 0);
    const struct rel *input = calc->inputs[0];
    if (calc->condition == NULL || !input->updating) {
        return false;
    }
    uint32_t uses[ROW_COLUMNS_MAX] = {0};
    expr_count_columns(calc->condition, uses, input->column_count);
    for (uint32_t i = 0; i < input->key_column_count && input->has_key; i++) {
        uses[input->key_columns[i]] = 0;
    }
    for (uint32_t i = 0; i < input->column_count; i++) {
        if (uses[i] != 0) {
            return true;
        }
    }
    return false;
}

bool prune_splits_updates(const struct rel *rel)
{
    ASSERT(rel != NULL);
    while (rel->kind == REL_CALC) {
        if (splits(rel)) {
            return true;
        }
        rel = rel->inputs[0];
    }
    for (uint32_t i = 0; rel->kind == REL_UNION && i < rel->input_count; i++) {
        if (rel->inputs[i]->kind == REL_CALC && splits(rel->inputs[i])) {
            return true;
        }
    }
    return false;
}

static void pass_calc(struct session *session, const struct rel *rel, const struct need *own,
                      struct need *below)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(session != NULL);
    const struct rel *input = rel->inputs[0];
    for (uint32_t i = 0; i < rel->column_count; i++) {
        if (own->columns[i]) {
            need_expr(session, below, input, rel->outputs[i]);
            below->time = below->time || uses_watermark(rel->outputs[i]);
        }
    }
    if (rel->condition != NULL) {
        need_expr(session, below, input, rel->condition);
        below->time = below->time || uses_watermark(rel->condition);
    }
    below->update_before = below->update_before || own->update_before || splits(rel);
    if (own->time || below->time) {
        need_time(below, input);
    }
}

static void pass_aggregate(const struct rel *rel, const struct need *own, struct need *below,
                           uint32_t first_call)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(below != NULL);
    for (uint32_t i = 0; i < rel->group_count; i++) {
        below->columns[rel->group[i]] = true;
    }
    for (uint32_t i = 0; i < rel->call_count; i++) {
        if (!own->columns[first_call + i]) {
            continue;
        }
        if (rel->calls[i].argument != AGGREGATE_COLUMN_NONE) {
            below->columns[rel->calls[i].argument] = true;
        }
        if (rel->calls[i].filter != AGGREGATE_COLUMN_NONE) {
            below->columns[rel->calls[i].filter] = true;
        }
    }
    below->update_before = below->update_before || rel->inputs[0]->updating;
}

static void pass_input(struct session *session, const struct rel *rel, const struct need *own,
                       uint32_t index, struct need *below)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(below != NULL);
    ASSERT(session != NULL);
    const struct rel *input = rel->inputs[index];
    below->reached = true;
    switch (rel->kind) {
    case REL_SCAN:
        break;
    case REL_CALC:
        pass_calc(session, rel, own, below);
        return;
    case REL_UNION:
        for (uint32_t i = 0; i < rel->column_count; i++) {
            below->columns[i] = below->columns[i] || own->columns[i];
        }
        below->update_before = below->update_before || own->update_before;
        if (own->time) {
            need_time(below, input);
        }
        return;
    case REL_GROUP:
        pass_aggregate(rel, own, below, rel->group_count);
        return;
    case REL_WINDOW:
        pass_aggregate(rel, own, below, rel->group_count);
        if (rel->window_end != UINT32_MAX) {
            below->columns[rel->window_end] = true;
        }
        need_time(below, input);
        return;
    case REL_WINDOW_ROWS:
    case REL_OVER:
        for (uint32_t i = 0; i < input->column_count; i++) {
            below->columns[i] = below->columns[i] || own->columns[i];
        }
        pass_aggregate(rel, own, below, input->column_count);
        need_time(below, input);
        return;
    case REL_SINK:
        for (uint32_t i = 0; i < input->column_count; i++) {
            below->columns[i] = true;
        }
        below->update_before = below->update_before || own->update_before;
        return;
    }
}

/* An upsert sink whose key is the query's needs no -U; others show or use it. */
static bool sink_wants_before(const struct rel *sink)
{
    ASSERT(sink->columns != NULL || sink->column_count == 0);
    ASSERT(sink->inputs != NULL || sink->input_count == 0);
    const enum plan_connector connector = sink->table->options.connector;
    if (connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        return !sink->sink_key_matches;
    }
    return connector == PLAN_CONNECTOR_PRINT;
}

struct need *prune(struct session *session)
{
    ASSERT(session != NULL);
    const uint32_t count = session->rels.count;
    struct need *needs = sql_allocate(session->memory, (count + 1) * sizeof(*needs));
    for (uint32_t i = 0; i < count; i++) {
        const struct rel *rel = session->rels.items[i];
        needs[i].columns = sql_allocate(session->memory, rel->column_count + 1);
        needs[i].reached = rel->kind == REL_SINK;
        needs[i].update_before = rel->kind == REL_SINK && sink_wants_before(rel);
    }
    for (uint32_t i = count; i-- > 0;) {
        const struct rel *rel = session->rels.items[i];
        for (uint32_t k = 0; k < rel->input_count && needs[i].reached; k++) {
            ASSERT(rel->inputs[k]->id < i);
            pass_input(session, rel, &needs[i], k, &needs[rel->inputs[k]->id]);
        }
    }
    return needs;
}
