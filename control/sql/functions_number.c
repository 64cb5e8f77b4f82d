/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of arithmetic and mathematics. A whole number meets a DECIMAL as DECIMAL(10, 0) and the
 * like, a DECIMAL meets an approximate number as DOUBLE, and of FLOAT and DOUBLE the first wins. */
#include <errno.h>

#include "control/sql/functions_internal.h"

/* The result of + - * / % on two decimals. */
static struct type decimal_result(enum expr_function function, const struct type *a,
                                  const struct type *b)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    const int32_t p1 = a->precision;
    const int32_t s1 = a->scale;
    const int32_t p2 = b->precision;
    const int32_t s2 = b->scale;
    const int32_t scale_max = s1 > s2 ? s1 : s2;
    const int32_t whole_max = p1 - s1 > p2 - s2 ? p1 - s1 : p2 - s2;
    const int32_t whole_min = p1 - s1 < p2 - s2 ? p1 - s1 : p2 - s2;
    const bool nullable = a->nullable || b->nullable;
    switch (function) {
    case EXPR_TIMES:
        return type_decimal(p1 + p2 + 1, s1 + s2, nullable);
    case EXPR_DIVIDE: {
        const int32_t scale = s1 + p2 + 1 > 6 ? s1 + p2 + 1 : 6;
        return type_decimal(p1 - s1 + s2 + scale, scale, nullable);
    }
    case EXPR_MOD:
        return type_decimal(whole_min + scale_max, scale_max, nullable);
    default:
        return type_decimal(whole_max + scale_max + 1, scale_max, nullable);
    }
}

static void cast_both(struct binding *binding, const struct type *to)
{
    ASSERT(binding->call != NULL);
    for (uint32_t i = 0; i < 2; i++) {
        binding->arguments[i] = make_cast(binding, binding->arguments[i], to);
    }
}

static int bind_numbers(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const enum expr_function function = binding->entry->function;
    const bool nullable = binding_nullable(binding);
    const struct type a = binding->arguments[0]->type;
    const struct type b = binding->arguments[1]->type;
    struct type type;
    if (type_is_integer(&a) && type_is_integer(&b)) {
        type = function == EXPR_MOD || b.kind > a.kind ? b : a;
    } else if (!type_is_approximate(&a) && !type_is_approximate(&b)) {
        const struct type x = type_as_decimal(&a);
        const struct type y = type_as_decimal(&b);
        type = decimal_result(function, &x, &y);
        binding->arguments[0] = make_cast(binding, binding->arguments[0], &x);
        binding->arguments[1] = make_cast(binding, binding->arguments[1], &y);
    } else {
        const struct type both[2] = {a, b};
        const int result = type_common(both, 2, &type);
        ASSERT(result == 0);
        cast_both(binding, &type);
    }
    type.nullable = nullable;
    *out = make_call(binding, function, type);
    return 0;
}

static bool is_interval(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind == TYPE_INTERVAL_DAY_TIME || type->kind == TYPE_INTERVAL_YEAR_MONTH;
}

/* interval * number and number * interval. */
static int bind_scaled_interval(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const uint32_t interval = is_interval(&binding->arguments[0]->type) ? 0 : 1;
    const struct expr *number = binding->arguments[1 - interval];
    struct type type = binding->arguments[interval]->type;
    if (!type_is_integer(&number->type) || binding->entry->function != EXPR_TIMES) {
        return binding_mismatch(binding);
    }
    type.nullable = binding_nullable(binding);
    *out = make_call(binding, EXPR_TIMES, type);
    return 0;
}

/* time + interval, interval + time, time - interval, interval + interval. */
static int bind_moved_time(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const enum expr_function function = binding->entry->function;
    if (function != EXPR_PLUS && function != EXPR_MINUS) {
        return bind_scaled_interval(binding, out);
    }
    if (function == EXPR_PLUS && is_interval(&binding->arguments[0]->type)) {
        const struct expr *first = binding->arguments[0];
        binding->arguments[0] = binding->arguments[1];
        binding->arguments[1] = first;
    }
    struct type type = binding->arguments[0]->type;
    const struct type *moved_by = &binding->arguments[1]->type;
    const bool intervals = is_interval(&type) && type.kind == moved_by->kind;
    if (!intervals && !(type_is_time(&type) && is_interval(moved_by))) {
        return binding_mismatch(binding);
    }
    type.nullable = binding_nullable(binding);
    *out = make_call(binding, function, type);
    return 0;
}

static int type_null_argument(struct binding *binding)
{
    ASSERT(binding->call != NULL);
    for (uint32_t i = 0; i < 2; i++) {
        if (binding->arguments[i]->type.kind == TYPE_NULL) {
            const struct type *other = &binding->arguments[1 - i]->type;
            const struct type to = other->kind == TYPE_NULL ? type_of_kind(TYPE_INT, true) : *other;
            binding->arguments[i] = make_cast(binding, binding->arguments[i], &to);
        }
    }
    return 0;
}

static int bind_arithmetic(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    if (binding->count != 2) {
        return binding_mismatch(binding);
    }
    (void)type_null_argument(binding);
    if (type_is_number(&binding->arguments[0]->type) &&
        type_is_number(&binding->arguments[1]->type)) {
        return bind_numbers(binding, out);
    }
    if (is_interval(&binding->arguments[0]->type) || is_interval(&binding->arguments[1]->type)) {
        return bind_moved_time(binding, out);
    }
    return binding_mismatch(binding);
}

static int bind_negate(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    if (binding->count != 1 || (!type_is_number(&binding->arguments[0]->type) &&
                                !is_interval(&binding->arguments[0]->type))) {
        return binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_NEGATE, binding->arguments[0]->type);
    return 0;
}

/* FLOOR and CEIL of a number; with a unit they belong to times. */
int function_bind_time_rounding(struct binding *binding, const struct expr **out);

static int bind_whole(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count == 2) {
        return function_bind_time_rounding(binding, out);
    }
    if (binding->count != 1 || !type_is_number(&binding->arguments[0]->type)) {
        return binding_mismatch(binding);
    }
    struct type type = binding->arguments[0]->type;
    type.scale = 0;
    *out = make_call(binding, binding->entry->function, type);
    return 0;
}

/* ROUND and TRUNCATE: a DECIMAL's digits follow a constant second argument. */
static int bind_round(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count < 1 || binding->count > 2 || !type_is_number(&binding->arguments[0]->type)) {
        return binding_mismatch(binding);
    }
    struct type type = binding->arguments[0]->type;
    int64_t digits = 0;
    if (binding->count == 2) {
        if (!type_is_integer(&binding->arguments[1]->type)) {
            return binding_mismatch(binding);
        }
        const struct type to = type_of_kind(TYPE_INT, true);
        binding->arguments[1] = make_cast(binding, binding->arguments[1], &to);
    }
    const bool constant = binding->count == 1 || binding_constant(binding, 1, &digits);
    if (type.kind == TYPE_DECIMAL && constant && digits < type.scale) {
        const int32_t scale = digits < 0 ? 0 : (int32_t)digits;
        const int32_t precision = type.precision - type.scale + 1 + scale;
        type = type_decimal(precision, scale, true);
    }
    type.nullable = binding_nullable(binding);
    *out = make_call(binding, binding->entry->function, type);
    return 0;
}

static int bind_constant(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    if (binding->count != 0) {
        return binding_mismatch(binding);
    }
    const bool pi = strcmp(binding->entry->name, "PI") == 0;
    *out = make_literal(binding, type_of_kind(TYPE_DOUBLE, false),
                        (struct value){.f64 = pi ? 3.141592653589793 : 2.718281828459045});
    return 0;
}

static int bind_plus_sign(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    if (binding->count != 1 || !type_is_number(&binding->arguments[0]->type)) {
        return binding_mismatch(binding);
    }
    *out = binding->arguments[0];
    return 0;
}

const struct function_entry functions_number[] = {
    {"+", EXPR_PLUS, NULL, NULL, bind_arithmetic},
    {"-", EXPR_MINUS, NULL, NULL, bind_arithmetic},
    {"*", EXPR_TIMES, NULL, NULL, bind_arithmetic},
    {"/", EXPR_DIVIDE, NULL, NULL, bind_arithmetic},
    {"%", EXPR_MOD, NULL, NULL, bind_arithmetic},
    {"MOD", EXPR_MOD, NULL, NULL, bind_arithmetic},
    {"NEGATE", EXPR_NEGATE, NULL, NULL, bind_negate},
    {"PLUS SIGN", EXPR_NEGATE, NULL, NULL, bind_plus_sign},
    {"ABS", EXPR_ABS, "n", "0", NULL},
    {"SIGN", EXPR_SIGN, "n", "0", NULL},
    {"FLOOR", EXPR_FLOOR, NULL, NULL, bind_whole},
    {"CEIL", EXPR_CEIL, NULL, NULL, bind_whole},
    {"CEILING", EXPR_CEIL, NULL, NULL, bind_whole},
    {"ROUND", EXPR_ROUND, NULL, NULL, bind_round},
    {"TRUNCATE", EXPR_TRUNCATE, NULL, NULL, bind_round},
    {"POWER", EXPR_POWER, "dd", "D", NULL},
    {"SQRT", EXPR_SQRT, "d", "D", NULL},
    {"EXP", EXPR_EXP, "d", "D", NULL},
    {"LN", EXPR_LN, "d", "D", NULL},
    {"LOG", EXPR_LOG, "d?d", "D", NULL},
    {"LOG10", EXPR_LOG10, "d", "D", NULL},
    {"LOG2", EXPR_LOG2, "d", "D", NULL},
    {"SIN", EXPR_SIN, "d", "D", NULL},
    {"COS", EXPR_COS, "d", "D", NULL},
    {"TAN", EXPR_TAN, "d", "D", NULL},
    {"COT", EXPR_COT, "d", "D", NULL},
    {"ASIN", EXPR_ASIN, "d", "D", NULL},
    {"ACOS", EXPR_ACOS, "d", "D", NULL},
    {"ATAN", EXPR_ATAN, "d", "D", NULL},
    {"ATAN2", EXPR_ATAN2, "dd", "D", NULL},
    {"SINH", EXPR_SINH, "d", "D", NULL},
    {"COSH", EXPR_COSH, "d", "D", NULL},
    {"TANH", EXPR_TANH, "d", "D", NULL},
    {"DEGREES", EXPR_DEGREES, "d", "D", NULL},
    {"RADIANS", EXPR_RADIANS, "d", "D", NULL},
    {"PI", EXPR_FUNCTION_NONE, NULL, NULL, bind_constant},
    {"E", EXPR_FUNCTION_NONE, NULL, NULL, bind_constant},
    {.name = NULL},
};
