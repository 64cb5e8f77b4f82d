/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP BY, HAVING, DISTINCT and aggregate calls. A SELECT with aggregates becomes: a Calc of
 * keys, arguments and FILTER conditions; a Group or Window; and the SELECT list over its output.
 * Keys that are the bounds of a window make it a window aggregation; right above the window
 * function (a Calc between them may be) rows are assigned by their time, else by the window
 * columns that they carry. */
#include <errno.h>

#include "control/sql/bind.h"
#include "control/sql/rel_expr.h"

int bind_aggregate_arguments(struct binder *binder, const struct ast_expr *ast, bool is_over,
                             struct bound_aggregate *out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    ASSERT(!binder->in_aggregate);
    const struct expr **arguments =
        sql_allocate(session->memory, ast->argument_count * sizeof(*arguments));
    struct binder inner = *binder;
    /* SUM(COUNT(*)) OVER (…) takes an aggregate of the query below; SUM(COUNT(*)) does not. */
    inner.in_aggregate = !is_over;
    inner.takes_over = false;
    int verdict = 0;
    for (uint32_t i = 0; i < ast->argument_count && verdict == 0; i++) {
        verdict = bind_expression(&inner, ast->arguments[i], &arguments[i], NULL);
    }
    if (verdict == 0 && ast->filter != NULL) {
        inner.place_name = "FILTER";
        verdict = bind_condition(&inner, ast->filter, &out->filter);
    }
    binder->aggregates = inner.aggregates;
    if (verdict != 0) {
        return verdict;
    }
    const struct aggregate_bind_call call = {
        .name = ast->text,
        .arguments = arguments,
        .argument_count = ast->argument_count,
        .distinct = ast->distinct,
        .is_over = is_over,
        .line = ast->at.line,
        .column = ast->at.column,
    };
    out->name = ast->text;
    verdict = aggregate_bind(session->memory, &call, &out->call, &out->argument, session->error);
    if (verdict == 0 && out->call.function == AGGREGATE_COUNT && !ast->distinct &&
        out->argument != NULL && !out->argument->type.nullable) {
        out->argument = NULL; /* COUNT(1) counts rows */
    }
    return verdict;
}

static bool span_same(struct span a, struct span b)
{
    ASSERT(a.data != NULL || a.bytes == 0);
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static bool optional_same(const struct expr *a, const struct expr *b)
{
    return a == NULL || b == NULL ? a == b : expr_is_same(a, b);
}

static bool aggregate_same(const struct bound_aggregate *a, const struct bound_aggregate *b)
{
    ASSERT(a != NULL);
    ASSERT(b != NULL);
    return a->call.function == b->call.function && a->call.distinct == b->call.distinct &&
           type_equal(&a->call.result_type, &b->call.result_type) &&
           span_same(a->call.separator, b->call.separator) &&
           optional_same(a->argument, b->argument) && optional_same(a->filter, b->filter);
}

int bind_aggregate_call(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    if (!binder->takes_aggregates) {
        return sql_fail(session, -EINVAL, ast->at, "the aggregate %s cannot stand in %s", ast->text,
                        binder->place_name);
    }
    if (binder->in_aggregate) {
        return sql_fail(session, -EINVAL, ast->at, "aggregates cannot be nested");
    }
    struct bound_aggregate *aggregate = sql_allocate(session->memory, sizeof(*aggregate));
    const int verdict = bind_aggregate_arguments(binder, ast, false, aggregate);
    if (verdict != 0) {
        return verdict;
    }
    uint32_t index = 0;
    while (index < binder->aggregates.count &&
           !aggregate_same(binder->aggregates.items[index], aggregate)) {
        index++;
    }
    if (index == AGGREGATE_CALLS_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "more than %d aggregates in one SELECT",
                        AGGREGATE_CALLS_MAX);
    }
    if (index == binder->aggregates.count) {
        ast_append(session->memory, &binder->aggregates, aggregate);
    }
    *out = expr_column(session->memory, BIND_AGGREGATE_FIRST + index, aggregate->call.result_type);
    return 0;
}

int bind_replace(const struct replacing *replacing, const struct expr *expr,
                 const struct expr **out)
{
    ASSERT(out != NULL);
    ASSERT(replacing != NULL);
    struct session *session = replacing->session;
    ASSERT(expr != NULL);
    for (uint32_t i = 0; i < replacing->count; i++) {
        const struct replacement *one = &replacing->replacements[i];
        const bool hit = one->from != NULL
                             ? expr_is_same(one->from, expr)
                             : expr->kind == EXPR_COLUMN && expr->column == one->placeholder;
        if (hit) {
            *out = expr_column(session->memory, one->column, one->type);
            return 0;
        }
    }
    if (expr->kind == EXPR_LITERAL) {
        *out = expr;
        return 0;
    }
    if (expr->kind == EXPR_COLUMN) {
        *out = expr;
        if (replacing->keeps_columns || expr->column >= BIND_AGGREGATE_FIRST) {
            return 0;
        }
        const struct place at = {expr->line, expr->column_in_line};
        return sql_fail(
            session, -EINVAL, at.line != 0 ? at : replacing->at,
            "column `%s` is neither grouped nor inside of an aggregate",
            expr->column < replacing->column_count ? replacing->column_names[expr->column] : "?");
    }
    struct expr *copy = sql_allocate(session->memory, sizeof(*copy));
    const struct expr **arguments =
        sql_allocate(session->memory, expr->argument_count * sizeof(*arguments));
    *copy = *expr;
    copy->arguments = arguments;
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        const int verdict = bind_replace(replacing, expr->arguments[i], &arguments[i]);
        if (verdict != 0) {
            return verdict;
        }
    }
    *out = copy;
    return 0;
}

/* What a grouping has found out so far. */
struct grouping {
    struct session *session;
    struct rel *input;
    const struct expr *condition;
    struct place at;
    struct ast_list keys;        /* struct expr: keys that are not window columns */
    struct ast_list window_keys; /* struct expr: columns with a window role */
    uint32_t *where;             /* in the grouped rel: of each key */
    const struct legacy_window *legacy;
    const struct ast_list *aggregates;
    uint64_t ttl_ms; /* of a group without window; 0: never expires */
    bool is_window;
};

static uint8_t role_of(const struct grouping *grouping, const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(grouping != NULL);
    if (expr->kind != EXPR_COLUMN || expr->column >= grouping->input->column_count) {
        return REL_PLAIN;
    }
    return grouping->input->columns[expr->column].roles;
}

/* Splits keys into those of the window and others. */
static void sort_keys(struct grouping *grouping, const struct ast_list *all)
{
    ASSERT(all->count <= all->capacity);
    ASSERT(grouping != NULL);
    const uint8_t window_roles = REL_WINDOW_START | REL_WINDOW_END | REL_WINDOW_TIME;
    uint8_t seen = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        seen |= role_of(grouping, all->items[i]);
    }
    grouping->is_window = grouping->legacy != NULL ||
                          (grouping->input->window != NULL && (seen & REL_WINDOW_START) != 0 &&
                           (seen & REL_WINDOW_END) != 0);
    for (uint32_t i = 0; i < all->count; i++) {
        struct expr *key = all->items[i];
        const bool is_bound = grouping->is_window && grouping->legacy == NULL &&
                              (role_of(grouping, key) & window_roles) != 0;
        ast_append(grouping->session->memory, is_bound ? &grouping->window_keys : &grouping->keys,
                   key);
    }
}

/* Tells whether the rows come straight from a window function, so that the window aggregation can
 * assign them itself: only columns that were there before the function are read. */
static bool is_fusable(const struct grouping *grouping, const struct projection *projection)
{
    ASSERT(grouping != NULL);
    ASSERT(projection != NULL);
    const struct rel *base = grouping->input;
    if (base->kind == REL_CALC) {
        base = base->inputs[0];
    }
    if (base->kind != REL_WINDOW_ROWS || base->time_column < 0) {
        return false;
    }
    const uint32_t own = base->inputs[0]->column_count;
    uint32_t *uses = sql_allocate(grouping->session->memory, base->column_count * sizeof(*uses));
    const struct rel *calc = grouping->input->kind == REL_CALC ? grouping->input : NULL;
    const struct expr *const *by = calc == NULL ? NULL : calc->outputs;
    const uint32_t by_count = calc == NULL ? 0 : calc->column_count;
    struct sql_memory *memory = grouping->session->memory;
    for (uint32_t i = 0; i < projection->exprs.count; i++) {
        const struct expr *expr = projection->exprs.items[i];
        expr_count_columns(expr_substitute(memory, expr, by, by_count), uses, base->column_count);
    }
    if (projection->condition != NULL) {
        expr_count_columns(expr_substitute(memory, projection->condition, by, by_count), uses,
                           base->column_count);
    }
    if (calc != NULL && calc->condition != NULL) {
        expr_count_columns(calc->condition, uses, base->column_count);
    }
    for (uint32_t i = own; i < base->column_count; i++) {
        if (uses[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Moves a projection from above the window function to below it. */
static void move_below(struct projection *projection, const struct grouping *grouping)
{
    ASSERT(projection != NULL);
    ASSERT(grouping != NULL);
    struct sql_memory *memory = grouping->session->memory;
    const struct rel *calc = grouping->input->kind == REL_CALC ? grouping->input : NULL;
    const struct rel *rows = calc == NULL ? grouping->input : calc->inputs[0];
    ASSERT(rows->kind == REL_WINDOW_ROWS);
    if (calc != NULL) {
        union {
            const void *in;
            void *out;
        } item;
        for (uint32_t i = 0; i < projection->exprs.count; i++) {
            item.in = expr_substitute(memory, projection->exprs.items[i], calc->outputs,
                                      calc->column_count);
            projection->exprs.items[i] = item.out;
        }
        if (projection->condition != NULL) {
            projection->condition =
                expr_substitute(memory, projection->condition, calc->outputs, calc->column_count);
        }
        projection->condition = expr_and(memory, calc->condition, projection->condition);
    }
    projection->input = rows->inputs[0];
}

/* Adds keys, arguments and FILTER conditions to the projection below; calls then hold numbers of
 * it. */
static void project_calls(struct grouping *grouping, struct projection *projection,
                          struct aggregate_call *calls)
{
    ASSERT(grouping != NULL);
    ASSERT(projection != NULL);
    for (uint32_t i = 0; i < grouping->keys.count; i++) {
        grouping->where[i] = projection_add(projection, grouping->keys.items[i],
                                            sql_format(grouping->session->memory, "k%u", i));
    }
    for (uint32_t i = 0; i < grouping->aggregates->count; i++) {
        const struct bound_aggregate *aggregate = grouping->aggregates->items[i];
        calls[i] = aggregate->call;
        calls[i].argument = AGGREGATE_COLUMN_NONE;
        calls[i].filter = AGGREGATE_COLUMN_NONE;
        if (aggregate->argument != NULL) {
            calls[i].argument = projection_add(projection, aggregate->argument,
                                               sql_format(grouping->session->memory, "a%u", i));
        }
        if (aggregate->filter != NULL) {
            calls[i].filter = projection_add(projection, aggregate->filter,
                                             sql_format(grouping->session->memory, "f%u", i));
        }
    }
}

/* The time attribute must travel with the rows; HOP and CUMULATE must divide. */
static int check_window(const struct grouping *grouping, const struct plan_window_spec *window)
{
    ASSERT(grouping != NULL);
    ASSERT(window != NULL);
    struct session *session = grouping->session;
    if (grouping->legacy != NULL || window->size_ms % window->slide_ms == 0) {
        return 0;
    }
    return sql_fail(session, -EINVAL, grouping->at,
                    "%s table function based aggregate requires size must be an integral "
                    "multiple of %s, but got size %lld ms and %s %lld ms",
                    window->kind == PLAN_WINDOW_HOP ? "HOP" : "CUMULATE",
                    window->kind == PLAN_WINDOW_HOP ? "slide" : "step", (long long)window->size_ms,
                    window->kind == PLAN_WINDOW_HOP ? "slide" : "step",
                    (long long)window->slide_ms);
}

/* Relations keep their window by reference. */
static const struct plan_window_spec *keep_spec(struct session *session,
                                                const struct plan_window_spec *spec)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    struct plan_window_spec *copy = sql_allocate(session->memory, sizeof(*copy));
    *copy = *spec;
    return copy;
}

static int make_group(struct grouping *grouping, struct rel **out)
{
    ASSERT(out != NULL);
    ASSERT(grouping != NULL);
    struct session *session = grouping->session;
    const uint32_t call_count = grouping->aggregates->count;
    struct projection projection = {
        .session = session,
        .input = grouping->input,
        .condition = grouping->condition,
        .at = grouping->at,
    };
    struct aggregate_call *calls = sql_allocate(session->memory, call_count * sizeof(*calls));
    const char **names = sql_allocate(session->memory, call_count * sizeof(*names));
    project_calls(grouping, &projection, calls);
    for (uint32_t i = 0; i < call_count; i++) {
        const struct bound_aggregate *aggregate = grouping->aggregates->items[i];
        names[i] = aggregate->alias != NULL
                       ? aggregate->alias
                       : sql_format(session->memory, "%s$%u", aggregate->name, i);
    }
    const struct plan_window_spec *window = grouping->legacy != NULL
                                                ? keep_spec(session, &grouping->legacy->spec)
                                                : grouping->input->window;
    uint32_t window_end = UINT32_MAX;
    if (grouping->is_window) {
        const int verdict = check_window(grouping, window);
        if (verdict != 0) {
            return verdict;
        }
        if (grouping->legacy == NULL && is_fusable(grouping, &projection)) {
            move_below(&projection, grouping);
        } else if (grouping->legacy == NULL) {
            for (uint32_t i = 0; i < grouping->window_keys.count; i++) {
                const struct expr *key = grouping->window_keys.items[i];
                if ((role_of(grouping, key) & REL_WINDOW_END) != 0) {
                    window_end = projection_add(&projection, key, "window_end");
                }
            }
        }
    }
    uint32_t *columns =
        sql_allocate(session->memory, (projection.exprs.count + 1) * sizeof(*columns));
    struct rel *below = projection_finish(&projection, columns);
    for (uint32_t i = 0; i < grouping->keys.count; i++) {
        grouping->where[i] = columns[grouping->where[i]];
    }
    for (uint32_t i = 0; i < call_count; i++) {
        calls[i].argument = calls[i].argument == AGGREGATE_COLUMN_NONE ? AGGREGATE_COLUMN_NONE
                                                                       : columns[calls[i].argument];
        calls[i].filter = calls[i].filter == AGGREGATE_COLUMN_NONE ? AGGREGATE_COLUMN_NONE
                                                                   : columns[calls[i].filter];
    }
    const struct rel_aggregate_spec spec = {
        .input = below,
        .group = grouping->where,
        .group_count = grouping->keys.count,
        .calls = calls,
        .call_names = names,
        .call_count = call_count,
        .at = grouping->at,
        .ttl_ms = grouping->ttl_ms,
    };
    *out = grouping->is_window
               ? rel_window(session, &spec, window,
                            window_end == UINT32_MAX ? UINT32_MAX : columns[window_end],
                            grouping->legacy != NULL)
               : rel_group(session, &spec);
    return 0;
}

/* Says what each key and call became in the grouped relation. */
static struct replacement *list_replacements(const struct grouping *grouping, const struct rel *rel,
                                             uint32_t *count)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(count != NULL);
    ASSERT(grouping != NULL);
    struct sql_memory *memory = grouping->session->memory;
    const uint32_t key_count = grouping->keys.count;
    const uint32_t call_count = grouping->aggregates->count;
    const uint32_t first = key_count + call_count;
    struct replacement *list = sql_allocate(memory, (first + grouping->window_keys.count + 3) *
                                                        sizeof(struct replacement));
    for (uint32_t i = 0; i < key_count; i++) {
        list[i] = (struct replacement){.from = grouping->keys.items[i], .column = i};
        list[i].type = rel->columns[i].type;
    }
    for (uint32_t i = 0; i < call_count; i++) {
        list[key_count + i] = (struct replacement){
            .placeholder = BIND_AGGREGATE_FIRST + i,
            .column = key_count + i,
            .type = rel->columns[key_count + i].type,
        };
    }
    *count = first;
    for (uint32_t i = 0; i < grouping->window_keys.count; i++) {
        const struct expr *key = grouping->window_keys.items[i];
        const uint8_t role = role_of(grouping, key);
        const uint32_t which = (role & REL_WINDOW_START) != 0 ? 0
                               : (role & REL_WINDOW_END) != 0 ? 1
                                                              : 2;
        list[(*count)++] = (struct replacement){
            .from = key, .column = first + which, .type = rel->columns[first + which].type};
    }
    for (uint32_t i = 0; i < 3 && grouping->legacy != NULL; i++) {
        list[(*count)++] = (struct replacement){.placeholder = BIND_WINDOW_FIRST + i,
                                                .column = first + i,
                                                .type = rel->columns[first + i].type};
    }
    return list;
}

/* Rewrites what stands above the grouping: items, HAVING, OVER calls. */
static int replace_all(const struct replacing *replacing, struct binder *binder,
                       struct selection *selection, const struct expr **having)
{
    ASSERT(selection->session != NULL);
    ASSERT(replacing != NULL);
    ASSERT(binder != NULL);
    union {
        const void *in;
        void *out;
    } item;
    for (uint32_t i = 0; i < selection->exprs.count; i++) {
        const struct expr *out = NULL;
        const int verdict = bind_replace(replacing, selection->exprs.items[i], &out);
        if (verdict != 0) {
            return verdict;
        }
        item.in = out;
        selection->exprs.items[i] = item.out;
    }
    if (*having != NULL) {
        const int verdict = bind_replace(replacing, *having, having);
        if (verdict != 0) {
            return verdict;
        }
    }
    for (uint32_t i = 0; i < binder->overs.count; i++) {
        struct bound_over *over = binder->overs.items[i];
        int verdict = 0;
        if (over->aggregate.argument != NULL) {
            verdict = bind_replace(replacing, over->aggregate.argument, &over->aggregate.argument);
        }
        for (uint32_t k = 0; k < over->window.partition_count && verdict == 0; k++) {
            verdict =
                bind_replace(replacing, over->window.partition[k], &over->window.partition[k]);
        }
        for (uint32_t k = 0; k < replacing->count; k++) {
            const struct replacement *one = &replacing->replacements[k];
            if (one->from != NULL && one->from->kind == EXPR_COLUMN &&
                one->from->column == over->window.order_column) {
                over->window.order_column = one->column;
                break;
            }
        }
        if (verdict != 0) {
            return verdict;
        }
    }
    return 0;
}

/* Constants do not group; Flink drops them from the key, but for one when there is nothing else. */
static void drop_constants(struct ast_list *keys)
{
    ASSERT(keys->count <= keys->capacity);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct expr *key = keys->items[i];
        const bool is_last = kept == 0 && i + 1 == keys->count;
        if (key->kind != EXPR_LITERAL || is_last) {
            keys->items[kept++] = keys->items[i];
        }
    }
    keys->count = kept;
}

/* Binds GROUP BY's items; numbers are not positions in Flink, they are refused as such. */
static int bind_keys(struct binder *binder, const struct ast_select *select, struct ast_list *keys,
                     struct legacy_window *legacy)
{
    ASSERT(keys->count <= keys->capacity);
    ASSERT(select != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    struct binder inner = *binder;
    inner.takes_aggregates = false;
    inner.takes_over = false;
    inner.place_name = "GROUP BY";
    for (uint32_t i = 0; i < select->group.count; i++) {
        const struct ast_expr *ast = select->group.items[i];
        struct legacy_window window = {0};
        int verdict = bind_legacy_window(session, binder->scope, ast, &window);
        if (verdict != 0) {
            return verdict;
        }
        if (window.name != NULL && legacy->name != NULL) {
            return sql_fail(session, -EINVAL, ast->at, "GROUP BY has two windows");
        }
        if (window.name != NULL) {
            *legacy = window;
            continue;
        }
        const struct expr *key = NULL;
        verdict = bind_expression(&inner, ast, &key, NULL);
        if (verdict != 0) {
            return verdict;
        }
        union {
            const void *in;
            void *out;
        } item = {.in = key};
        ast_append(session->memory, keys, item.out);
    }
    drop_constants(keys);
    return 0;
}

int bind_grouping(struct binder *binder, const struct ast_select *select,
                  const struct expr *condition, struct selection *selection,
                  const struct expr **having, struct rel **out)
{
    ASSERT(binder != NULL);
    ASSERT(selection != NULL);
    struct session *session = binder->session;
    struct ast_list keys = {0};
    struct legacy_window legacy = {0};
    struct rel *input = binder->scope->relation.rel;
    int verdict = bind_keys(binder, select, &keys, &legacy);
    if (verdict != 0) {
        return verdict;
    }
    if (keys.count > KEY_COLUMNS_MAX) {
        return sql_fail(session, -E2BIG, select->at, "more than %d columns in GROUP BY",
                        KEY_COLUMNS_MAX);
    }
    struct grouping grouping = {
        .session = session,
        .input = input,
        .condition = condition,
        .at = select->at,
        .where = sql_allocate(session->memory, (keys.count + 1) * sizeof(uint32_t)),
        .legacy = legacy.name == NULL ? NULL : &legacy,
        .aggregates = &binder->aggregates,
        .ttl_ms = binder->ttl_ms,
    };
    sort_keys(&grouping, &keys);
    verdict = make_group(&grouping, out);
    if (verdict != 0) {
        return verdict;
    }
    const char **names = sql_allocate(session->memory, input->column_count * sizeof(*names));
    for (uint32_t i = 0; i < input->column_count; i++) {
        names[i] = input->columns[i].name;
    }
    struct replacing replacing = {
        .session = session,
        .column_names = names,
        .column_count = input->column_count,
        .at = select->at,
    };
    replacing.replacements = list_replacements(&grouping, *out, &replacing.count);
    return replace_all(&replacing, binder, selection, having);
}

int bind_distinct(struct session *session, struct place at, uint64_t ttl_ms,
                  struct relation *relation)
{
    ASSERT(relation != NULL);
    ASSERT(session != NULL);
    struct rel *input = relation->rel;
    ASSERT(input != NULL);
    if (input->column_count > KEY_COLUMNS_MAX) {
        return sql_fail(session, -E2BIG, at, "more than %d columns in SELECT DISTINCT",
                        KEY_COLUMNS_MAX);
    }
    struct ast_list keys = {0};
    const struct ast_list no_calls = {0};
    union {
        const void *in;
        void *out;
    } item;
    for (uint32_t i = 0; i < input->column_count; i++) {
        item.in = expr_column(session->memory, i, input->columns[i].type);
        ast_append(session->memory, &keys, item.out);
    }
    struct grouping grouping = {
        .session = session,
        .input = input,
        .at = at,
        .where = sql_allocate(session->memory, (keys.count + 1) * sizeof(uint32_t)),
        .aggregates = &no_calls,
        .ttl_ms = ttl_ms,
    };
    sort_keys(&grouping, &keys);
    struct rel *rel = NULL;
    const int verdict = make_group(&grouping, &rel);
    if (verdict != 0) {
        return verdict;
    }
    uint32_t count = 0;
    const struct replacement *list = list_replacements(&grouping, rel, &count);
    struct rel_calc_spec spec = {
        .input = rel,
        .outputs = sql_allocate(session->memory, keys.count * sizeof(struct expr *)),
        .names = sql_allocate(session->memory, keys.count * sizeof(char *)),
        .roles = sql_allocate(session->memory, keys.count),
        .count = keys.count,
        .at = at,
    };
    for (uint32_t i = 0; i < keys.count; i++) {
        for (uint32_t k = 0; k < count && spec.outputs[i] == NULL; k++) {
            if (list[k].from != NULL && expr_is_same(list[k].from, keys.items[i])) {
                spec.outputs[i] = expr_column(session->memory, list[k].column, list[k].type);
                spec.roles[i] = rel->columns[list[k].column].roles;
            }
        }
        ASSERT(spec.outputs[i] != NULL);
        spec.names[i] = input->columns[i].name;
    }
    relation->rel = rel_calc(session, &spec);
    return 0;
}
