/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: FROM, WHERE, then GROUP BY or OVER where there are calls for them, then the SELECT
 * list; UNION ALL; common table expressions. */
#include <errno.h>

#include "control/sql/bind.h"
#include "control/sql/functions.h"
#include "control/sql/rel_expr.h"

int bind_name(struct session *session, const struct ast_list *path, const struct cte *ctes,
              struct relation *out)
{
    ASSERT(path->count <= path->capacity);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(path->count >= 1);
    const struct ast_name *name = path->items[path->count - 1];
    for (const struct cte *cte = ctes; path->count == 1 && cte != NULL; cte = cte->next) {
        if (strcmp(cte->name, name->text) == 0) {
            *out = cte->relation;
            return 0;
        }
    }
    const struct view *view = catalog_view(session, name->text);
    if (view != NULL) {
        *out = view->relation;
        return 0;
    }
    struct table *table = catalog_table(session, name->text);
    if (table != NULL) {
        return catalog_scan(session, table, name->at, out);
    }
    const uint32_t count = session->tables.count + session->views.count;
    const char **names = sql_allocate(session->memory, (count + 1) * sizeof(*names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] =
            i < session->tables.count
                ? ((struct table *)session->tables.items[i])->name.text
                : ((struct view *)session->views.items[i - session->tables.count])->name.text;
    }
    const char *nearest = sql_nearest(name->text, names, count);
    return sql_fail(session, -EINVAL, name->at, "table or view `%s` is not known%s%s%s", name->text,
                    nearest == NULL ? "" : "; did you mean `", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "`?");
}

int bind_rename(struct session *session, const struct ast_list *names, struct place at,
                struct relation *relation)
{
    ASSERT(names->count <= names->capacity);
    ASSERT(session != NULL);
    if (names->count == 0) {
        return 0;
    }
    if (names->count != relation->field_count) {
        return sql_fail(session, -EINVAL, at, "%u names are given for %u columns", names->count,
                        relation->field_count);
    }
    struct field *fields = sql_allocate(session->memory, names->count * sizeof(*fields));
    for (uint32_t i = 0; i < names->count; i++) {
        fields[i] = relation->fields[i];
        fields[i].name = ((const struct ast_name *)names->items[i])->text;
    }
    relation->fields = fields;
    return 0;
}

int bind_from(struct session *session, const struct ast_from *from, const struct cte *ctes,
              struct scope *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(from != NULL);
    int verdict = 0;
    out->alias = from->alias.text;
    switch (from->kind) {
    case AST_FROM_TABLE:
        verdict = bind_name(session, &from->path, ctes, &out->relation);
        if (out->alias == NULL) {
            out->alias = ((const struct ast_name *)from->path.items[from->path.count - 1])->text;
        }
        break;
    case AST_FROM_QUERY:
        verdict = bind_query(session, from->query, ctes, &out->relation);
        break;
    case AST_FROM_FUNCTION:
        verdict = bind_window_function(session, from, ctes, &out->relation);
        break;
    }
    if (verdict == 0) {
        verdict = bind_rename(session, &from->columns, from->at, &out->relation);
    }
    return verdict;
}

void selection_add(struct selection *selection, const struct expr *expr, uint8_t roles)
{
    ASSERT(selection != NULL);
    ASSERT(expr != NULL);
    struct sql_memory *memory = selection->session->memory;
    if (selection->exprs.count == selection->role_capacity) {
        const uint32_t capacity = 2 * selection->role_capacity + 16;
        uint8_t *copy = sql_allocate(memory, capacity);
        if (selection->role_capacity != 0) {
            memcpy(copy, selection->roles, selection->role_capacity);
        }
        selection->roles = copy;
        selection->role_capacity = capacity;
    }
    selection->roles[selection->exprs.count] = roles;
    union {
        const void *in;
        void *out;
    } item = {.in = expr};
    ast_append(memory, &selection->exprs, item.out);
}

/* Passes a field on as it is, a ROW with all its leaves. */
static struct field pass_field(struct selection *selection, const struct rel *rel,
                               const struct field *field)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(selection != NULL);
    struct sql_memory *memory = selection->session->memory;
    struct field copy = *field;
    if (field->field_count == 0) {
        copy.column = selection->exprs.count;
        selection_add(selection, expr_column(memory, field->column, field->type),
                      rel->columns[field->column].roles);
        return copy;
    }
    struct field *fields = sql_allocate(memory, field->field_count * sizeof(*fields));
    for (uint32_t i = 0; i < field->field_count; i++) {
        fields[i] = pass_field(selection, rel, &field->fields[i]);
    }
    copy.fields = fields;
    return copy;
}

static void add_field(struct selection *selection, struct field field)
{
    ASSERT(selection != NULL);
    struct field *copy = sql_allocate(selection->session->memory, sizeof(*copy));
    *copy = field;
    ast_append(selection->session->memory, &selection->fields, copy);
}

static int select_star(struct binder *binder, const struct ast_expr *ast,
                       struct selection *selection)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    ASSERT(selection != NULL);
    struct session *session = binder->session;
    const struct scope *scope = binder->scope;
    const struct field *fields = scope->relation.fields;
    uint32_t count = scope->relation.field_count;
    const bool is_alias = ast->path_count == 1 && scope->alias != NULL &&
                          strcmp(scope->alias, ast->path[0].text) == 0;
    if (ast->path_count != 0 && !is_alias) {
        struct ast_expr name = *ast;
        name.kind = AST_NAME;
        const struct field *field = NULL;
        const int verdict = scope_resolve(session, scope, &name, &field);
        if (verdict != 0) {
            return verdict;
        }
        if (field->field_count == 0) {
            return sql_fail(session, -EINVAL, ast->at, "`%s` is no table and no ROW",
                            ast->path[ast->path_count - 1].text);
        }
        fields = field->fields;
        count = field->field_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_field(selection, pass_field(selection, scope->relation.rel, &fields[i]));
    }
    return 0;
}

/* A call that is a whole item gives its name to the column, so that plans read well. */
static void name_call(struct binder *binder, const struct expr *expr, const char *alias)
{
    ASSERT(binder != NULL);
    if (alias == NULL || expr->kind != EXPR_COLUMN || expr->column < BIND_AGGREGATE_FIRST) {
        return;
    }
    if (expr->column >= BIND_OVER_FIRST && expr->column < BIND_WINDOW_FIRST) {
        struct bound_over *over = binder->overs.items[expr->column - BIND_OVER_FIRST];
        over->aggregate.alias = alias;
    } else if (expr->column < BIND_OVER_FIRST) {
        struct bound_aggregate *call =
            binder->aggregates.items[expr->column - BIND_AGGREGATE_FIRST];
        call->alias = alias;
    }
}

/* One item of the list: a star, a whole ROW passed on, or an expression. */
static int select_item(struct binder *binder, const struct ast_item *item,
                       struct selection *selection)
{
    ASSERT(item != NULL);
    ASSERT(binder != NULL);
    ASSERT(selection != NULL);
    struct session *session = binder->session;
    const struct ast_expr *ast = item->expr;
    if (ast->kind == AST_STAR) {
        return select_star(binder, ast, selection);
    }
    const char *name = item->alias.text;
    if (name == NULL && ast->kind == AST_NAME) {
        name = ast->path[ast->path_count - 1].text;
    }
    if (name == NULL) {
        name = sql_format(session->memory, "EXPR$%u", selection->fields.count);
    }
    if (ast->kind == AST_NAME) {
        const struct field *field = NULL;
        const int verdict = scope_resolve(session, binder->scope, ast, &field);
        if (verdict != 0) {
            return verdict;
        }
        if (field->field_count != 0) {
            struct field copy = pass_field(selection, binder->scope->relation.rel, field);
            copy.name = name;
            add_field(selection, copy);
            return 0;
        }
    }
    const struct expr *expr = NULL;
    uint8_t roles = REL_PLAIN;
    const int verdict = bind_expression(binder, ast, &expr, &roles);
    if (verdict != 0) {
        return verdict;
    }
    name_call(binder, expr, item->alias.text);
    add_field(selection,
              (struct field){.name = name, .type = expr->type, .column = selection->exprs.count});
    selection_add(selection, expr, roles);
    return 0;
}

/* The SELECT list over what is below it. */
static int make_selection(const struct selection *selection, struct rel *input,
                          const struct expr *condition, struct relation *out)
{
    ASSERT(input != NULL);
    ASSERT(out != NULL);
    ASSERT(selection != NULL);
    struct session *session = selection->session;
    const uint32_t count = selection->exprs.count;
    if (count > ROW_COLUMNS_MAX) {
        return sql_fail(session, -E2BIG, selection->at, "a query has more than %d columns",
                        ROW_COLUMNS_MAX);
    }
    struct rel_calc_spec spec = {
        .input = input,
        .condition = condition,
        .outputs = sql_allocate(session->memory, count * sizeof(struct expr *)),
        .names = sql_allocate(session->memory, count * sizeof(char *)),
        .roles = selection->roles,
        .count = count,
        .at = selection->at,
    };
    for (uint32_t i = 0; i < count; i++) {
        spec.outputs[i] = selection->exprs.items[i];
        spec.names[i] = spec.outputs[i]->kind == EXPR_COLUMN
                            ? input->columns[spec.outputs[i]->column].name
                            : "";
    }
    struct field *fields = sql_allocate(session->memory, selection->fields.count * sizeof(*fields));
    for (uint32_t i = 0; i < selection->fields.count; i++) {
        fields[i] = *(const struct field *)selection->fields.items[i];
        if (fields[i].field_count == 0) {
            spec.names[fields[i].column] = fields[i].name;
            fields[i].type = spec.outputs[fields[i].column]->type;
        }
    }
    *out = (struct relation){
        .rel = rel_calc(session, &spec),
        .fields = fields,
        .field_count = selection->fields.count,
    };
    return 0;
}

/* Looks through casts. */
static const struct expr *uncast(const struct expr *expr)
{
    while (expr->kind == EXPR_CALL && expr->function == EXPR_CAST) {
        expr = expr->arguments[0];
    }
    return expr;
}

static bool is_comparison(enum expr_function function)
{
    return function == EXPR_EQUALS || function == EXPR_LESS || function == EXPR_LESS_OR_EQUAL ||
           function == EXPR_GREATER || function == EXPR_GREATER_OR_EQUAL;
}

/* Tells whether a condition compares a rank with something: rn <= 3, not MOD(rn, 2) = 0. */
static bool compares_rank(const struct rel *rel, const struct expr *condition)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(condition->kind <= EXPR_CALL);
    if (condition->kind != EXPR_CALL) {
        return false;
    }
    for (uint32_t i = 0; i < condition->argument_count; i++) {
        const struct expr *argument = uncast(condition->arguments[i]);
        if (argument->kind == EXPR_COLUMN && is_comparison(condition->function) &&
            (rel->columns[argument->column].roles & REL_RANK) != 0) {
            return true;
        }
        if (compares_rank(rel, argument)) {
            return true;
        }
    }
    return false;
}

/* A condition on ROW_NUMBER is a Top-N or a deduplication, which have rules of their own. */
static int check_rank(struct session *session, const struct rel *rel, const struct expr *condition,
                      struct place at)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(session != NULL);
    if (!compares_rank(rel, condition)) {
        return 0;
    }
    return sql_fail(session, -ENOTSUP, at,
                    "a condition on ROW_NUMBER (a Top-N or a deduplication) is not supported yet");
}

static int bind_where(struct binder *binder, const struct ast_expr *where, const struct expr **out)
{
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    *out = NULL;
    if (where == NULL) {
        return 0;
    }
    struct binder inner = {
        .session = binder->session, .scope = binder->scope, .place_name = "WHERE"};
    const int verdict = bind_condition(&inner, where, out);
    if (verdict != 0) {
        return verdict;
    }
    return check_rank(binder->session, binder->scope->relation.rel, *out, where->at);
}

static int find_legacy(struct binder *binder, const struct ast_select *select,
                       struct legacy_window *legacy)
{
    ASSERT(select != NULL);
    ASSERT(binder != NULL);
    for (uint32_t i = 0; i < select->group.count && legacy->name == NULL; i++) {
        const int verdict =
            bind_legacy_window(binder->session, binder->scope, select->group.items[i], legacy);
        if (verdict != 0) {
            return verdict;
        }
    }
    binder->legacy = legacy->name == NULL ? NULL : legacy;
    return 0;
}

/* Binds items and HAVING. */
static int bind_list(struct binder *binder, const struct ast_select *select,
                     struct selection *selection, const struct expr **having)
{
    ASSERT(select != NULL);
    ASSERT(binder != NULL);
    ASSERT(selection != NULL);
    int verdict = 0;
    for (uint32_t i = 0; i < select->items.count && verdict == 0; i++) {
        binder->takes_over = true;
        binder->place_name = "SELECT";
        verdict = select_item(binder, select->items.items[i], selection);
    }
    *having = NULL;
    if (verdict == 0 && select->having != NULL) {
        binder->takes_over = false;
        binder->place_name = "HAVING";
        verdict = bind_condition(binder, select->having, having);
    }
    return verdict;
}

static int bind_select(struct session *session, const struct ast_select *select,
                       const struct cte *ctes, struct relation *out)
{
    ASSERT(select != NULL);
    ASSERT(session != NULL);
    if (select->from == NULL) {
        return sql_fail(session, -ENOTSUP, select->at, "SELECT without FROM is not supported yet");
    }
    struct scope scope = {0};
    int verdict = bind_from(session, select->from, ctes, &scope);
    if (verdict != 0) {
        return verdict;
    }
    struct binder binder = {
        .session = session, .scope = &scope, .takes_aggregates = true, .windows = &select->windows};
    struct selection selection = {.session = session, .at = select->at};
    struct legacy_window legacy = {0};
    const struct expr *condition = NULL;
    const struct expr *having = NULL;
    verdict = bind_where(&binder, select->where, &condition);
    if (verdict == 0) {
        verdict = find_legacy(&binder, select, &legacy);
    }
    if (verdict == 0) {
        verdict = bind_list(&binder, select, &selection, &having);
    }
    struct rel *rel = scope.relation.rel;
    const bool groups = select->has_group || having != NULL || binder.aggregates.count != 0;
    if (verdict == 0) {
        verdict = bind_hints(session, select, &scope, groups || select->distinct, &binder.ttl_ms);
    }
    if (verdict == 0 && groups) {
        verdict = bind_grouping(&binder, select, condition, &selection, &having, &rel);
        condition = having;
    }
    if (verdict == 0 && binder.overs.count != 0) {
        verdict = bind_overs(&binder, rel, condition, &selection, &rel);
        condition = NULL;
    }
    if (verdict == 0) {
        verdict = make_selection(&selection, rel, condition, out);
    }
    if (verdict == 0 && select->distinct) {
        verdict = bind_distinct(session, select->at, binder.ttl_ms, out);
    }
    return verdict;
}

/* Finds the common type of column i and casts each branch's column to it. */
static int cast_branches(struct session *session, struct rel_calc_spec *specs,
                         const struct relation *branches, uint32_t count, uint32_t column)
{
    ASSERT(session != NULL);
    struct type *types = sql_allocate(session->memory, count * sizeof(*types));
    for (uint32_t i = 0; i < count; i++) {
        types[i] = branches[i].rel->columns[column].type;
    }
    struct type common = {0};
    if (type_common(types, count, &common) != 0) {
        char a[TYPE_PRINT_BYTES];
        char b[TYPE_PRINT_BYTES];
        return sql_fail(session, -EINVAL, specs[0].at,
                        "column %u of UNION ALL has no common type: %s and %s", column + 1,
                        type_print(&types[0], a), type_print(&types[1], b));
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *from = expr_column(session->memory, column, types[i]);
        specs[i].outputs[column] = from;
        specs[i].names[column] = branches[0].rel->columns[column].name;
        specs[i].roles[column] = branches[i].rel->columns[column].roles;
        if (type_equal(&types[i], &common)) {
            continue;
        }
        specs[i].roles[column] = REL_PLAIN;
        const int verdict = cast_implicit(session->memory, from, &common, &specs[i].outputs[column],
                                          session->error);
        if (verdict != 0) {
            return sql_fail(session, verdict, specs[i].at, "column %u of UNION ALL: %s", column + 1,
                            session->error == NULL ? "" : session->error->text);
        }
    }
    return 0;
}

static int bind_union(struct session *session, const struct ast_query *query,
                      const struct cte *ctes, struct relation *out)
{
    ASSERT(query != NULL);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const uint32_t count = query->branches.count;
    if (count > PLAN_INPUTS_MAX) {
        return sql_fail(session, -E2BIG, query->at, "UNION ALL of more than %d queries",
                        PLAN_INPUTS_MAX);
    }
    struct relation *branches = sql_allocate(session->memory, count * sizeof(*branches));
    struct rel_calc_spec *specs = sql_allocate(session->memory, count * sizeof(*specs));
    for (uint32_t i = 0; i < count; i++) {
        const struct ast_query *branch = query->branches.items[i];
        const int verdict = bind_query(session, branch, ctes, &branches[i]);
        if (verdict != 0) {
            return verdict;
        }
        const uint32_t width = branches[i].rel->column_count;
        if (branches[i].field_count != branches[0].field_count ||
            width != branches[0].rel->column_count) {
            return sql_fail(session, -EINVAL, branch->at,
                            "the queries of UNION ALL have %u and %u columns",
                            branches[0].field_count, branches[i].field_count);
        }
        specs[i] = (struct rel_calc_spec){
            .input = branches[i].rel,
            .outputs = sql_allocate(session->memory, width * sizeof(struct expr *)),
            .names = sql_allocate(session->memory, width * sizeof(char *)),
            .roles = sql_allocate(session->memory, width),
            .count = width,
            .at = branch->at,
        };
    }
    for (uint32_t i = 0; i < branches[0].rel->column_count; i++) {
        const int verdict = cast_branches(session, specs, branches, count, i);
        if (verdict != 0) {
            return verdict;
        }
    }
    if (count == 1) {
        *out = branches[0];
        return 0;
    }
    struct rel **inputs = sql_allocate(session->memory, count * sizeof(struct rel *));
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = rel_calc(session, &specs[i]);
    }
    out->rel = rel_union(session, inputs, count, query->at);
    struct field *fields = sql_allocate(session->memory, branches[0].field_count * sizeof(*fields));
    out->field_count = branches[0].field_count;
    for (uint32_t i = 0; i < out->field_count; i++) {
        fields[i] = branches[0].fields[i];
        if (fields[i].field_count == 0) {
            fields[i].type = out->rel->columns[fields[i].column].type;
        }
    }
    out->fields = fields;
    return 0;
}

int bind_query(struct session *session, const struct ast_query *query, const struct cte *ctes,
               struct relation *out)
{
    ASSERT(session != NULL);
    ASSERT(query != NULL);
    for (uint32_t i = 0; i < query->with.count; i++) {
        const struct ast_with *with = query->with.items[i];
        struct cte *cte = sql_allocate(session->memory, sizeof(*cte));
        cte->name = with->name.text;
        cte->next = ctes;
        int verdict = bind_query(session, with->query, ctes, &cte->relation);
        if (verdict == 0) {
            verdict = bind_rename(session, &with->columns, with->name.at, &cte->relation);
        }
        if (verdict != 0) {
            return verdict;
        }
        ctes = cte;
    }
    if (query->select != NULL) {
        return bind_select(session, query->select, ctes, out);
    }
    return bind_union(session, query, ctes, out);
}
