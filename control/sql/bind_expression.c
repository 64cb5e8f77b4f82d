/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: names are resolved, calls typed by functions.h; aggregates and OVER calls are set
 * aside (see bind.h). The depth of the result is held to EXPR_DEPTH_MAX, their number to
 * SESSION_EXPRESSIONS_MAX. */
#include <errno.h>

#include "control/sql/bind.h"
#include "control/sql/rel_expr.h"

static int bind_any(struct binder *binder, const struct ast_expr *ast, const struct expr **out);

static int bind_column(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    const struct field *field = NULL;
    const int verdict = scope_resolve(binder->session, binder->scope, ast, &field);
    if (verdict != 0) {
        return verdict;
    }
    if (field->field_count != 0) {
        return sql_fail(binder->session, -ENOTSUP, ast->at,
                        "the ROW `%s` as a whole is not supported yet: name its fields (`%s`.`%s`)",
                        field->name, field->name, field->fields[0].name);
    }
    if (field->type.kind == TYPE_ARRAY || field->type.kind == TYPE_MAP ||
        field->type.kind == TYPE_MULTISET) {
        char text[TYPE_PRINT_BYTES];
        return sql_fail(binder->session, -ENOTSUP, ast->at,
                        "column `%s` is %s: ARRAY, MAP and MULTISET are not supported yet",
                        field->name, type_print(&field->type, text));
    }
    struct expr *expr = sql_allocate(binder->session->memory, sizeof(*expr));
    *expr = (struct expr){
        .kind = EXPR_COLUMN,
        .type = field->type,
        .line = ast->at.line,
        .column_in_line = ast->at.column,
        .column = field->column,
    };
    *out = expr;
    return 0;
}

/* Units that are no reserved words reach here as names. */
static bool takes_unit(const struct ast_expr *ast, uint32_t argument)
{
    ASSERT(ast->depth >= 1);
    return argument == 0 &&
           (strcmp(ast->text, "TIMESTAMPADD") == 0 || strcmp(ast->text, "TIMESTAMPDIFF") == 0);
}

static int bind_argument(struct binder *binder, const struct ast_expr *ast, uint32_t argument,
                         const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    const struct ast_expr *from = ast->arguments[argument];
    if (!takes_unit(ast, argument) || from->kind != AST_NAME || from->path_count != 1) {
        return bind_any(binder, from, out);
    }
    struct ast_expr symbol = {.kind = AST_SYMBOL, .at = from->at, .depth = 1};
    char *word =
        sql_copy_text(binder->session->memory, from->path[0].text, strlen(from->path[0].text));
    for (char *c = word; *c != 0; c++) {
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
    symbol.text = word;
    symbol.bytes = (uint32_t)strlen(word);
    return bind_literal(binder->session, &symbol, out);
}

static int call_function(struct binder *binder, const struct ast_expr *ast, const char *name,
                         const struct expr *const *arguments, uint32_t count,
                         const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct type target = {0};
    struct session *session = binder->session;
    if (ast->target != NULL) {
        const int verdict = bind_type(session, ast->target, &target);
        if (verdict != 0) {
            return verdict;
        }
    }
    const struct function_call call = {
        .name = name,
        .arguments = arguments,
        .argument_count = count,
        .target = ast->target == NULL ? NULL : &target,
        .line = ast->at.line,
        .column = ast->at.column,
    };
    return function_bind(session->memory, &call, out, session->error);
}

static int bind_scalar_call(struct binder *binder, const struct ast_expr *ast,
                            const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    if (ast->argument_count > EXPR_ARGUMENTS_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "%s has more than %d arguments", ast->text,
                        EXPR_ARGUMENTS_MAX);
    }
    const struct expr **arguments =
        sql_allocate(session->memory, ast->argument_count * sizeof(*arguments));
    for (uint32_t i = 0; i < ast->argument_count; i++) {
        const int verdict = bind_argument(binder, ast, i, &arguments[i]);
        if (verdict != 0) {
            return verdict;
        }
    }
    return call_function(binder, ast, ast->text, arguments, ast->argument_count, out);
}

/* TUMBLE_START(…) and its like below GROUP BY TUMBLE(…). */
static int bind_window_bound(struct binder *binder, const struct ast_expr *ast, const char *suffix,
                             const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    struct legacy_window own = {0};
    struct ast_expr function = *ast;
    function.text = sql_copy_text(session->memory, ast->text, strlen(ast->text) - strlen(suffix));
    const int verdict = bind_legacy_window(session, binder->scope, &function, &own);
    if (verdict != 0) {
        return verdict;
    }
    const struct legacy_window *group = binder->legacy;
    if (group == NULL || own.name == NULL || strcmp(own.name, group->name) != 0 ||
        own.spec.size_ms != group->spec.size_ms || own.spec.slide_ms != group->spec.slide_ms ||
        own.spec.offset_ms != group->spec.offset_ms || own.time_column != group->time_column) {
        return sql_fail(session, -EINVAL, ast->at, "%s(…) needs the same %s(…) in GROUP BY",
                        ast->text, function.text);
    }
    struct type type = {.kind = TYPE_TIMESTAMP, .precision = 3};
    enum plan_window_column column = PLAN_WINDOW_START;
    if (strcmp(suffix, "_END") == 0) {
        column = PLAN_WINDOW_END;
    } else if (strcmp(suffix, "_ROWTIME") == 0) {
        column = PLAN_WINDOW_TIME;
        type.kind = own.spec.local_clock ? TYPE_TIMESTAMP_LTZ : TYPE_TIMESTAMP;
    }
    *out = expr_column(session->memory, BIND_WINDOW_FIRST + (uint32_t)column, type);
    return 0;
}

static const char *window_bound_suffix(const char *name)
{
    static const char *const prefixes[] = {"TUMBLE", "HOP", "SESSION"};
    static const char *const suffixes[] = {"_START", "_END", "_ROWTIME", "_PROCTIME"};
    for (uint32_t i = 0; i < COUNT_OF(prefixes); i++) {
        const size_t bytes = strlen(prefixes[i]);
        for (uint32_t k = 0; k < COUNT_OF(suffixes); k++) {
            if (strncmp(name, prefixes[i], bytes) == 0 && strcmp(name + bytes, suffixes[k]) == 0) {
                return suffixes[k];
            }
        }
    }
    return NULL;
}

static int bind_call(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    if (ast->over != NULL) {
        return bind_over_call(binder, ast, out);
    }
    if (function_is_aggregate(ast->text)) {
        return bind_aggregate_call(binder, ast, out);
    }
    if (ast->filter != NULL) {
        return sql_fail(session, -EINVAL, ast->at, "FILTER belongs to an aggregate: %s is none",
                        ast->text);
    }
    if (ast->distinct || ast->star) {
        return sql_fail(session, -EINVAL, ast->at, "%s belongs to an aggregate: %s is none",
                        ast->star ? "*" : "DISTINCT", ast->text);
    }
    const char *suffix = window_bound_suffix(ast->text);
    if (suffix != NULL) {
        return bind_window_bound(binder, ast, suffix, out);
    }
    return bind_scalar_call(binder, ast, out);
}

static int bind_any(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    ASSERT(binder->depth <= AST_DEPTH_MAX);
    if (++session->expression_count > SESSION_EXPRESSIONS_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "the script's expressions are too many");
    }
    switch (ast->kind) {
    case AST_NAME:
        return bind_column(binder, ast, out);
    case AST_STAR:
        return sql_fail(session, -EINVAL, ast->at, "* has no meaning here");
    case AST_ROW:
        return sql_fail(session, -ENOTSUP, ast->at, "a row value is not supported yet");
    case AST_CALL:
        break;
    default:
        return bind_literal(session, ast, out);
    }
    binder->depth++;
    const int verdict = bind_call(binder, ast, out);
    binder->depth--;
    return verdict;
}

int bind_expression(struct binder *binder, const struct ast_expr *ast, const struct expr **out,
                    uint8_t *roles)
{
    ASSERT(ast->depth >= 1);
    ASSERT(binder != NULL);
    struct session *session = binder->session;
    const int verdict = bind_any(binder, ast, out);
    if (verdict != 0) {
        return verdict;
    }
    ASSERT(*out != NULL);
    if (expr_depth(*out) > EXPR_DEPTH_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "an expression is nested deeper than %d",
                        EXPR_DEPTH_MAX);
    }
    if (roles != NULL) {
        *roles = REL_PLAIN;
        const uint32_t column = (*out)->kind == EXPR_COLUMN ? (*out)->column : UINT32_MAX;
        if (ast->kind == AST_NAME && binder->scope != NULL &&
            column < binder->scope->relation.rel->column_count) {
            *roles = binder->scope->relation.rel->columns[column].roles;
        }
        if (ast->kind == AST_CALL && strcmp(ast->text, "PROCTIME") == 0) {
            *roles = REL_PROCTIME;
        }
        if (ast->kind == AST_CALL && column == BIND_WINDOW_FIRST + PLAN_WINDOW_TIME) {
            *roles = REL_ROWTIME | REL_WINDOW_TIME;
        }
    }
    return 0;
}

int bind_condition(struct binder *binder, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(binder != NULL);
    const int verdict = bind_expression(binder, ast, out, NULL);
    if (verdict != 0) {
        return verdict;
    }
    if ((*out)->type.kind == TYPE_NULL) {
        const struct type boolean = {.kind = TYPE_BOOLEAN, .nullable = true};
        *out = expr_null(binder->session->memory, &boolean);
    }
    if ((*out)->type.kind != TYPE_BOOLEAN) {
        char text[TYPE_PRINT_BYTES];
        return sql_fail(binder->session, -EINVAL, ast->at, "%s needs a BOOLEAN, not %s",
                        binder->place_name, type_print(&(*out)->type, text));
    }
    return 0;
}
