/* SPDX-License-Identifier: Apache-2.0 */
/* Names and printing of expressions. */
#include "dataplane/expr/expr.h"

#include <stdarg.h>
#include <stdio.h>

#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"

const char *expr_function_name(enum expr_function function)
{
    static const char *const names[] = {
        [EXPR_FUNCTION_NONE] = "",
#define FUNCTION(name, sql_name) [EXPR_##name] = sql_name,
#include "dataplane/expr/functions.def"
#undef FUNCTION
    };
    static_assert(COUNT_OF(names) == EXPR_FUNCTION_COUNT, "one name a function");
    ASSERT(function < EXPR_FUNCTION_COUNT);
    return names[function];
}

struct printer {
    char *into;
    size_t used;
    size_t bytes;
    const char *const *column_names;
};

static __attribute__((format(printf, 2, 3))) void put(struct printer *out, const char *format, ...)
{
    ASSERT(out != NULL);
    va_list arguments;
    va_start(arguments, format);
    const size_t room = out->bytes - out->used;
    const int wrote = vsnprintf(out->into + out->used, room, format, arguments);
    va_end(arguments);
    ASSERT(wrote >= 0);
    out->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

static void print_text(struct printer *out, const struct type *type, struct span text)
{
    ASSERT(type->kind <= TYPE_ROW);
    ASSERT(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (type->kind == TYPE_CHAR || type->kind == TYPE_VARCHAR) {
        put(out, "'%.*s'", (int)text.bytes, (const char *)text.data);
        return;
    }
    put(out, "X'");
    for (size_t i = 0; i < text.bytes; i++) {
        put(out, "%02x", text.data[i]);
    }
    put(out, "'");
}

static void print_timestamp(struct printer *out, const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(out != NULL);
    const struct timestamp_form form = {.separator = ' ',
                                        .precision = FRACTION_STRIPPED,
                                        .zulu = expr->type.kind != TYPE_TIMESTAMP};
    char text[TIMESTAMP_TEXT_BYTES];
    const uint32_t bytes = timestamp_print(expr->literal.timestamp, &form, text);
    put(out, "%.*s", (int)bytes, text);
}

static void print_number(struct printer *out, const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(out != NULL);
    char text[DECIMAL_TEXT_BYTES];
    uint32_t bytes;
    switch (expr->type.kind) {
    case TYPE_FLOAT:
        bytes = float_print(expr->literal.f32, text);
        break;
    case TYPE_DOUBLE:
        bytes = double_print(expr->literal.f64, text);
        break;
    case TYPE_DECIMAL:
        bytes = decimal_print(expr->type.precision > TYPE_DECIMAL_NARROW_MAX ? expr->literal.i128
                                                                             : expr->literal.i64,
                              expr->type.scale, text);
        break;
    case TYPE_DATE:
        bytes = date_print(expr->literal.i64, false, text);
        break;
    case TYPE_TIME:
        bytes = time_print(expr->literal.i64, FRACTION_STRIPPED, text);
        break;
    default:
        bytes = integer_print(expr->literal.i64, text);
        break;
    }
    put(out, "%.*s", (int)bytes, text);
}

static void print_literal(struct printer *out, const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(out != NULL);
    if (expr->literal.is_null) {
        put(out, "NULL");
    } else if (type_is_text(&expr->type)) {
        print_text(out, &expr->type, expr->literal.text);
    } else if (expr->type.kind == TYPE_BOOLEAN) {
        put(out, "%s", expr->literal.i64 != 0 ? "TRUE" : "FALSE");
    } else if (type_slot_count(&expr->type) == 2 && expr->type.kind != TYPE_DECIMAL) {
        print_timestamp(out, expr);
    } else if (expr->type.kind >= TYPE_ARRAY) {
        put(out, "…");
    } else {
        print_number(out, expr);
    }
}

static void print_at(struct printer *out, const struct expr *expr, uint32_t depth);

static void print_call(struct printer *out, const struct expr *expr, uint32_t depth)
{
    ASSERT(expr->kind <= EXPR_CALL);
    ASSERT(out != NULL);
    const bool is_cast = expr->function == EXPR_CAST || expr->function == EXPR_TRY_CAST;
    put(out, "%s(", expr_function_name(expr->function));
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        put(out, "%s", i == 0 ? "" : ", ");
        print_at(out, expr->arguments[i], depth + 1);
    }
    if (is_cast) {
        char type[TYPE_PRINT_BYTES];
        struct type target = expr->type;
        target.nullable = true;
        put(out, " AS %s", type_print(&target, type));
    }
    put(out, ")");
}

static void print_at(struct printer *out, const struct expr *expr, uint32_t depth)
{
    ASSERT(out != NULL);
    if (depth == EXPR_DEPTH_MAX) {
        put(out, "…");
        return;
    }
    switch (expr->kind) {
    case EXPR_COLUMN:
        put(out, "%s", out->column_names[expr->column]);
        break;
    case EXPR_LITERAL:
        print_literal(out, expr);
        break;
    case EXPR_CALL:
        print_call(out, expr, depth);
        break;
    }
}

const char *expr_print(const struct expr *expr, const char *const *column_names, char *into,
                       size_t bytes)
{
    ASSERT(expr != NULL && into != NULL);
    ASSERT(bytes > 0);
    struct printer out = {.into = into, .bytes = bytes, .column_names = column_names};
    into[0] = '\0';
    print_at(&out, expr, 0);
    return into;
}
