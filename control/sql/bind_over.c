/* SPDX-License-Identifier: Apache-2.0 */
/* OVER: windows and calls. All calls of one SELECT share one window (Flink's rule; queries are
 * nested for more), so a SELECT has one Over node: its input's columns, then the calls. */
#include <errno.h>
#include <stdlib.h>

#include "control/sql/bind.h"
#include "control/sql/rel_expr.h"

/* Finds WINDOW name AS (…). */
static const struct ast_window *find_window(const struct ast_list *windows, const char *name)
{
    for (uint32_t i = 0; windows != NULL && i < windows->count; i++) {
        const struct ast_named_window *named = windows->items[i];
        if (strcmp(named->name.text, name) == 0) {
            return named->window;
        }
    }
    return NULL;
}

/* A window that refers to a named one takes what it does not say itself. */
static int merge_window(struct binder *binder, const struct ast_window *ast, struct ast_window *out)
{
    ASSERT(ast != NULL);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    *out = *ast;
    if (ast->base.text == NULL) {
        return 0;
    }
    const struct ast_window *base = find_window(binder->windows, ast->base.text);
    if (base == NULL) {
        return sql_fail(binder->session, -EINVAL, ast->base.at,
                        "window `%s` is not defined: WINDOW %s AS (…) is missing", ast->base.text,
                        ast->base.text);
    }
    if (base->base.text != NULL) {
        return sql_fail(binder->session, -ENOTSUP, ast->base.at,
                        "a window that refers to a window that refers to another is not "
                        "supported yet");
    }
    out->partition = ast->partition.count != 0 ? ast->partition : base->partition;
    out->order = ast->order.count != 0 ? ast->order : base->order;
    if (!ast->has_frame) {
        out->has_frame = base->has_frame;
        out->is_rows = base->is_rows;
        out->from = base->from;
        out->from_value = base->from_value;
        out->to = base->to;
        out->to_value = base->to_value;
    }
    return 0;
}

static int bind_frame_value(struct binder *binder, const struct ast_window *ast,
                            struct rel_frame *frame)
{
    ASSERT(ast != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    const struct ast_expr *value = ast->from_value;
    ASSERT(value != NULL);
    if (!frame->is_rows) {
        return bind_interval_ms(session, value, &frame->preceding);
    }
    const struct expr *literal = NULL;
    if (value->kind == AST_NUMBER) {
        const int verdict = bind_literal(session, value, &literal);
        if (verdict != 0) {
            return verdict;
        }
    }
    if (literal == NULL || literal->type.kind != TYPE_INT || literal->literal.i64 < 0) {
        return sql_fail(session, -EINVAL, value->at,
                        "ROWS … PRECEDING takes a whole number of rows");
    }
    frame->preceding = literal->literal.i64;
    return 0;
}

static int bind_frame(struct binder *binder, const struct ast_window *ast, bool is_row_number,
                      struct rel_frame *frame)
{
    ASSERT(ast != NULL);
    ASSERT(frame != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    *frame = (struct rel_frame){.is_rows = is_row_number, .unbounded = true};
    if (!ast->has_frame) {
        return 0;
    }
    frame->is_rows = ast->is_rows;
    if (ast->to != AST_CURRENT_ROW) {
        return sql_fail(session, -EINVAL, ast->at,
                        "OVER RANGE FOLLOWING windows are not supported: a frame ends at CURRENT "
                        "ROW, as in Flink");
    }
    frame->unbounded = ast->from == AST_UNBOUNDED_PRECEDING;
    if (frame->unbounded) {
        return 0;
    }
    if (ast->from != AST_PRECEDING) {
        return sql_fail(session, -EINVAL, ast->at, "a frame starts with … PRECEDING");
    }
    return bind_frame_value(binder, ast, frame);
}

static bool is_rank(const char *name)
{
    return strcmp(name, "ROW_NUMBER") == 0 || strcmp(name, "RANK") == 0 ||
           strcmp(name, "DENSE_RANK") == 0;
}

static bool takes_no_frame(const char *name)
{
    return is_rank(name) || strcmp(name, "LAG") == 0;
}

/* ORDER BY must be the time attribute, ascending. */
static int bind_order(struct binder *binder, const struct ast_window *ast, const char *name,
                      uint32_t *out)
{
    ASSERT(ast != NULL);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    if (ast->order.count == 0) {
        return sql_fail(session, -EINVAL, ast->at,
                        "OVER needs ORDER BY a time attribute in a streaming job");
    }
    const struct ast_order *order = ast->order.items[0];
    const struct expr *expr = NULL;
    uint8_t roles = 0;
    struct binder inner = *binder;
    inner.takes_over = false;
    inner.place_name = "ORDER BY";
    const int verdict = bind_expression(&inner, order->expr, &expr, &roles);
    binder->aggregates = inner.aggregates;
    if (verdict != 0) {
        return verdict;
    }
    if ((roles & REL_PROCTIME) != 0) {
        return sql_fail(session, -ENOTSUP, order->at,
                        "OVER ordered by processing time is not supported yet");
    }
    const bool is_time = (roles & REL_ROWTIME) != 0 && expr->kind == EXPR_COLUMN;
    const bool is_plain = is_time && !order->descending && ast->order.count == 1;
    if (!is_plain && is_rank(name)) {
        return sql_fail(session, -ENOTSUP, order->at,
                        "%s ordered by anything but one time attribute, ascending, is a Top-N or a "
                        "deduplication: not supported yet",
                        name);
    }
    if (order->descending) {
        return sql_fail(session, -EINVAL, order->at,
                        "an OVER window can only be ordered in ASCENDING mode");
    }
    if (!is_time) {
        return sql_fail(session, -ENOTSUP, order->at,
                        "OVER ordered by what is no time attribute is not supported yet (a column "
                        "is one by WATERMARK FOR; computing on it or casting it loses it)");
    }
    if (ast->order.count > 1) {
        return sql_fail(session, -ENOTSUP, ast->at,
                        "OVER ordered by more than the time attribute is not supported yet");
    }
    *out = expr->column;
    return 0;
}

static int bind_window(struct binder *binder, const struct ast_expr *call, struct bound_window *out)
{
    ASSERT(call->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    struct ast_window ast = {0};
    int verdict = merge_window(binder, call->over, &ast);
    if (verdict != 0) {
        return verdict;
    }
    out->at = call->over->at;
    out->partition_count = ast.partition.count;
    if (out->partition_count > KEY_COLUMNS_MAX) {
        return sql_fail(session, -E2BIG, ast.at, "more than %d columns in PARTITION BY",
                        KEY_COLUMNS_MAX);
    }
    out->partition = sql_allocate(session->memory, ast.partition.count * sizeof(struct expr *));
    struct binder inner = *binder;
    inner.takes_over = false;
    inner.place_name = "PARTITION BY";
    for (uint32_t i = 0; i < ast.partition.count && verdict == 0; i++) {
        verdict = bind_expression(&inner, ast.partition.items[i], &out->partition[i], NULL);
    }
    binder->aggregates = inner.aggregates;
    if (verdict == 0) {
        verdict = bind_order(binder, &ast, call->text, &out->order_column);
    }
    if (verdict == 0 && ast.has_frame && takes_no_frame(call->text)) {
        return sql_fail(session, -EINVAL, out->at, "%s takes no ROWS or RANGE frame", call->text);
    }
    if (verdict == 0) {
        verdict = bind_frame(binder, &ast, strcmp(call->text, "ROW_NUMBER") == 0, &out->frame);
    }
    return verdict;
}

/* Aggregates of the grouped query may stand inside of OVER: SUM(COUNT(*)) OVER (…). */
static int bind_call_arguments(struct binder *binder, const struct ast_expr *ast,
                               struct bound_aggregate *out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    if (ast->filter != NULL) {
        return sql_fail(binder->session, -EINVAL, ast->filter->at,
                        "FILTER cannot stand before OVER, in Flink neither");
    }
    return bind_aggregate_arguments(binder, ast, true, out);
}

int bind_over_call(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    if (!binder->takes_over || binder->in_aggregate) {
        return sql_fail(session, -EINVAL, ast->at, "%s … OVER cannot stand in %s", ast->text,
                        binder->in_aggregate ? "an aggregate" : binder->place_name);
    }
    if (strcmp(ast->text, "LEAD") == 0) {
        return sql_fail(session, -EINVAL, ast->at,
                        "LEAD is not supported in a streaming job (LAG is)");
    }
    if (!function_is_aggregate(ast->text)) {
        return sql_fail(session, -EINVAL, ast->at, "%s is no function that takes OVER", ast->text);
    }
    struct bound_over *over = sql_allocate(session->memory, sizeof(*over));
    int verdict = bind_window(binder, ast, &over->window);
    if (verdict == 0) {
        verdict = bind_call_arguments(binder, ast, &over->aggregate);
    }
    if (verdict != 0) {
        return verdict;
    }
    if (binder->overs.count == AGGREGATE_CALLS_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "more than %d OVER calls in one SELECT",
                        AGGREGATE_CALLS_MAX);
    }
    ast_append(session->memory, &binder->overs, over);
    *out = expr_column(session->memory, BIND_OVER_FIRST + binder->overs.count - 1,
                       over->aggregate.call.result_type);
    return 0;
}

static bool window_same(const struct bound_window *a, const struct bound_window *b)
{
    ASSERT(a != NULL);
    ASSERT(b != NULL);
    if (a->partition_count != b->partition_count || a->order_column != b->order_column ||
        a->frame.is_rows != b->frame.is_rows || a->frame.unbounded != b->frame.unbounded ||
        a->frame.preceding != b->frame.preceding) {
        return false;
    }
    for (uint32_t i = 0; i < a->partition_count; i++) {
        if (!expr_is_same(a->partition[i], b->partition[i])) {
            return false;
        }
    }
    return true;
}

static int check_overs(const struct binder *binder, const struct rel *input)
{
    ASSERT(input->columns != NULL || input->column_count == 0);
    ASSERT(input->inputs != NULL || input->input_count == 0);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    const struct bound_over *first = binder->overs.items[0];
    for (uint32_t i = 1; i < binder->overs.count; i++) {
        const struct bound_over *over = binder->overs.items[i];
        if (!window_same(&first->window, &over->window)) {
            return sql_fail(session, -EINVAL, over->window.at,
                            "all OVER calls of one SELECT must share one window, as in Flink: "
                            "nest queries for more windows");
        }
    }
    if (input->updating) {
        return sql_fail(session, -EINVAL, first->window.at,
                        "OVER takes rows that are only added, but its input is updating");
    }
    return bind_window_check(session, input, first->window.order_column, first->window.at);
}

/* The input's columns stay as they are; arguments and keys that are expressions come behind. */
static struct rel *make_over(const struct binder *binder, struct rel *input,
                             const struct expr *condition, uint32_t *width)
{
    ASSERT(input != NULL);
    ASSERT(width != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    const struct bound_over *first = binder->overs.items[0];
    const uint32_t call_count = binder->overs.count;
    struct projection projection = {
        .session = session, .input = input, .condition = condition, .at = first->window.at};
    for (uint32_t i = 0; i < input->column_count; i++) {
        (void)projection_add(&projection, expr_column(session->memory, i, input->columns[i].type),
                             input->columns[i].name);
    }
    struct aggregate_call *calls = sql_allocate(session->memory, call_count * sizeof(*calls));
    const char **names = sql_allocate(session->memory, call_count * sizeof(*names));
    uint32_t *keys =
        sql_allocate(session->memory, (first->window.partition_count + 1) * sizeof(*keys));
    for (uint32_t i = 0; i < first->window.partition_count; i++) {
        keys[i] = projection_add(&projection, first->window.partition[i],
                                 sql_format(session->memory, "k%u", i));
    }
    for (uint32_t i = 0; i < call_count; i++) {
        const struct bound_over *over = binder->overs.items[i];
        calls[i] = over->aggregate.call;
        calls[i].filter = AGGREGATE_COLUMN_NONE;
        calls[i].argument = AGGREGATE_COLUMN_NONE;
        names[i] = over->aggregate.alias != NULL
                       ? over->aggregate.alias
                       : sql_format(session->memory, "%s$%u", over->aggregate.name, i);
        if (over->aggregate.argument != NULL) {
            calls[i].argument = projection_add(&projection, over->aggregate.argument,
                                               sql_format(session->memory, "a%u", i));
        }
    }
    uint32_t *columns =
        sql_allocate(session->memory, (projection.exprs.count + 1) * sizeof(*columns));
    struct rel *below = projection_finish(&projection, columns);
    *width = below->column_count;
    const struct rel_aggregate_spec spec = {
        .input = below,
        .group = keys,
        .group_count = first->window.partition_count,
        .calls = calls,
        .call_names = names,
        .call_count = call_count,
        .at = first->window.at,
        /* Flink's clean-up timers of OVER are on from 2 ms. */
        .ttl_ms = session->settings.state_ttl_ms > 1 ? session->settings.state_ttl_ms : 0,
    };
    return rel_over(session, &spec, &first->window.frame, session->settings.over_on_arrival);
}

int bind_overs(struct binder *binder, struct rel *input, const struct expr *condition,
               struct selection *selection, struct rel **out)
{
    ASSERT(input->columns != NULL || input->column_count == 0);
    ASSERT(binder != NULL);
    ASSERT(selection != NULL);
    struct session *session = binder->session;
    ASSERT(binder->overs.count != 0);
    const int checked = check_overs(binder, input);
    if (checked != 0) {
        return checked;
    }
    uint32_t width = 0;
    *out = make_over(binder, input, condition, &width);
    struct replacement *list = sql_allocate(session->memory, binder->overs.count * sizeof(*list));
    for (uint32_t i = 0; i < binder->overs.count; i++) {
        list[i] = (struct replacement){
            .placeholder = BIND_OVER_FIRST + i,
            .column = width + i,
            .type = (*out)->columns[width + i].type,
        };
    }
    const struct replacing replacing = {
        .session = session,
        .replacements = list,
        .count = binder->overs.count,
        .keeps_columns = true,
        .at = selection->at,
    };
    for (uint32_t i = 0; i < selection->exprs.count; i++) {
        const struct expr *from = selection->exprs.items[i];
        union {
            const void *in;
            void *out;
        } item = {0};
        const struct expr *to = NULL;
        const int verdict = bind_replace(&replacing, from, &to);
        if (verdict != 0) {
            return verdict;
        }
        if (from->kind == EXPR_COLUMN && to->kind == EXPR_COLUMN && to->column >= width) {
            selection->roles[i] = (*out)->columns[to->column].roles;
        }
        item.in = to;
        selection->exprs.items[i] = item.out;
    }
    return 0;
}
