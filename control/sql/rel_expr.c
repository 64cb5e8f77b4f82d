/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of expressions; see rel_expr.h. */
#include "control/sql/rel_expr.h"

#include <inttypes.h>

void type_define(FILE *into, const struct type *type)
{
    ASSERT(into != NULL);
    ASSERT(type != NULL);
    char text[TYPE_PRINT_BYTES];
    (void)fputs(type_print(type, text), into);
}

static bool value_same(const struct type *type, const struct value *a, const struct value *b)
{
    ASSERT(type->kind <= TYPE_ROW);
    ASSERT(a != NULL);
    if (a->is_null || b->is_null) {
        return a->is_null && b->is_null;
    }
    if (type_is_text(type)) {
        return a->text.bytes == b->text.bytes &&
               (a->text.bytes == 0 || memcmp(a->text.data, b->text.data, a->text.bytes) == 0);
    }
    if (type->kind == TYPE_FLOAT) {
        return memcmp(&a->f32, &b->f32, sizeof(a->f32)) == 0;
    }
    return memcmp(&a->i64, &b->i64, 8 * (size_t)type_slot_count(type)) == 0;
}

bool expr_is_same(const struct expr *a, const struct expr *b)
{
    ASSERT(a != NULL && b != NULL);
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind || a->type.nullable != b->type.nullable ||
        !type_equal(&a->type, &b->type)) {
        return false;
    }
    switch (a->kind) {
    case EXPR_COLUMN:
        return a->column == b->column;
    case EXPR_LITERAL:
        return value_same(&a->type, &a->literal, &b->literal);
    default:
        break;
    }
    if (a->function != b->function || a->argument_count != b->argument_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->argument_count; i++) {
        if (!expr_is_same(a->arguments[i], b->arguments[i])) {
            return false;
        }
    }
    return true;
}

static void literal_define(FILE *into, const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(into != NULL);
    if (expr->literal.is_null) {
        (void)fputs("NULL", into);
    } else if (type_is_text(&expr->type)) {
        (void)fprintf(into, "'%zu:", expr->literal.text.bytes);
        (void)fwrite(expr->literal.text.data, 1, expr->literal.text.bytes, into);
        (void)fputc('\'', into);
    } else if (expr->type.kind == TYPE_FLOAT) {
        (void)fprintf(into, "%a", (double)expr->literal.f32);
    } else {
        uint64_t words[2] = {0};
        memcpy(words, &expr->literal.i64, 8 * (size_t)type_slot_count(&expr->type));
        (void)fprintf(into, "%" PRIx64 ".%" PRIx64, words[0], words[1]);
    }
}

void expr_define(FILE *into, const struct expr *expr)
{
    ASSERT(into != NULL);
    ASSERT(expr != NULL);
    switch (expr->kind) {
    case EXPR_COLUMN:
        (void)fprintf(into, "#%u", expr->column);
        return;
    case EXPR_LITERAL:
        literal_define(into, expr);
        break;
    case EXPR_CALL:
        (void)fprintf(into, "%s(", expr_function_name(expr->function));
        for (uint32_t i = 0; i < expr->argument_count; i++) {
            (void)fputs(i == 0 ? "" : ",", into);
            expr_define(into, expr->arguments[i]);
        }
        (void)fputc(')', into);
        break;
    }
    (void)fputc(':', into);
    type_define(into, &expr->type);
}

const struct expr *expr_column(struct sql_memory *memory, uint32_t column, struct type type)
{
    ASSERT(memory != NULL);
    struct expr *expr = sql_allocate(memory, sizeof(*expr));
    *expr = (struct expr){.kind = EXPR_COLUMN, .type = type, .column = column};
    return expr;
}

const struct expr *expr_null(struct sql_memory *memory, const struct type *type)
{
    ASSERT(memory != NULL);
    ASSERT(type != NULL);
    struct expr *expr = sql_allocate(memory, sizeof(*expr));
    *expr = (struct expr){.kind = EXPR_LITERAL, .type = *type, .literal = {.is_null = true}};
    expr->type.nullable = true;
    return expr;
}

const struct expr *expr_substitute(struct sql_memory *memory, const struct expr *expr,
                                   const struct expr *const *by, uint32_t count)
{
    ASSERT(memory != NULL);
    ASSERT(expr != NULL);
    if (expr->kind == EXPR_COLUMN) {
        return expr->column < count && by[expr->column] != NULL ? by[expr->column] : expr;
    }
    if (expr->kind == EXPR_LITERAL) {
        return expr;
    }
    const struct expr **arguments = sql_allocate(memory, expr->argument_count * sizeof(*arguments));
    bool changed = false;
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        arguments[i] = expr_substitute(memory, expr->arguments[i], by, count);
        changed = changed || arguments[i] != expr->arguments[i];
    }
    if (!changed) {
        return expr;
    }
    struct expr *copy = sql_allocate(memory, sizeof(*copy));
    *copy = *expr;
    copy->arguments = arguments;
    return copy;
}

void expr_count_columns(const struct expr *expr, uint32_t *uses, uint32_t count)
{
    ASSERT(expr != NULL);
    if (expr->kind == EXPR_COLUMN) {
        if (expr->column < count) {
            uses[expr->column]++;
        }
        return;
    }
    for (uint32_t i = 0; expr->kind == EXPR_CALL && i < expr->argument_count; i++) {
        expr_count_columns(expr->arguments[i], uses, count);
    }
}

uint32_t expr_depth(const struct expr *expr)
{
    ASSERT(expr != NULL);
    uint32_t deepest = 0;
    for (uint32_t i = 0; expr->kind == EXPR_CALL && i < expr->argument_count; i++) {
        const uint32_t depth = expr_depth(expr->arguments[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

const struct expr *expr_and(struct sql_memory *memory, const struct expr *a, const struct expr *b)
{
    ASSERT(memory != NULL);
    if (a == NULL || b == NULL) {
        return a == NULL ? b : a;
    }
    ASSERT(a->type.kind == TYPE_BOOLEAN && b->type.kind == TYPE_BOOLEAN);
    const struct expr **arguments = sql_allocate(memory, 2 * sizeof(*arguments));
    arguments[0] = a;
    arguments[1] = b;
    struct expr *expr = sql_allocate(memory, sizeof(*expr));
    *expr = (struct expr){
        .kind = EXPR_CALL,
        .type = {.kind = TYPE_BOOLEAN, .nullable = a->type.nullable || b->type.nullable},
        .function = EXPR_AND,
        .argument_count = 2,
        .arguments = arguments,
    };
    return expr;
}
