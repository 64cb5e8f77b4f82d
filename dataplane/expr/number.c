/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of whole and binary floating-point numbers and of intervals. Whole numbers wrap round
 * silently in the width of the result; division by zero fails the job. FLOAT is computed in single
 * precision. */
#include <errno.h>
#include <math.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/number_internal.h"

/* Whole numbers: computed in 64 bits without sign, cut to the width, sign-extended. */
#define INTEGER_BINARY(name, c_type, op)                                                           \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const int64_t *restrict a = run->in[0]->i64;                                               \
        const int64_t *restrict b = run->in[1]->i64;                                               \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, { out[i] = (c_type)((uint64_t)a[i] op(uint64_t) b[i]); });                \
    }
#define INTEGER_WIDTHS(macro, name, op)                                                            \
    macro(name##_i8, int8_t, op) macro(name##_i16, int16_t, op) macro(name##_i32, int32_t, op)     \
        macro(name##_i64, int64_t, op)

INTEGER_WIDTHS(INTEGER_BINARY, plus, +)
INTEGER_WIDTHS(INTEGER_BINARY, minus, -)
INTEGER_WIDTHS(INTEGER_BINARY, times, *)

#define FLOAT_BINARY(name, field, c_type, op)                                                      \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const c_type *restrict a = run->in[0]->field;                                              \
        const c_type *restrict b = run->in[1]->field;                                              \
        c_type *restrict out = run->out->field;                                                    \
        KERNEL_ROWS(run, { out[i] = a[i] op b[i]; });                                              \
    }
FLOAT_BINARY(plus_f32, f32, float, +)
FLOAT_BINARY(minus_f32, f32, float, -)
FLOAT_BINARY(times_f32, f32, float, *)
FLOAT_BINARY(divide_f32, f32, float, /)
FLOAT_BINARY(plus_f64, f64, double, +)
FLOAT_BINARY(minus_f64, f64, double, -)
FLOAT_BINARY(times_f64, f64, double, *)
FLOAT_BINARY(divide_f64, f64, double, /)

int64_t integer_wrap(enum type_kind kind, int64_t value)
{
    switch (kind) {
    case TYPE_TINYINT:
        return (int8_t)value;
    case TYPE_SMALLINT:
        return (int16_t)value;
    case TYPE_INT:
        return (int32_t)value;
    default:
        return value;
    }
}

static void divide_integer(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const int64_t *restrict a = run->in[0]->i64;
    const int64_t *restrict b = run->in[1]->i64;
    int64_t *restrict out = run->out->i64;
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, {
        if (UNLIKELY(b[i] == 0)) {
            kernel_fail(run, i, "/ by zero");
            return;
        }
        const int64_t quotient = b[i] == -1 ? (int64_t)(0 - (uint64_t)a[i]) : a[i] / b[i];
        out[i] = integer_wrap(kind, quotient);
    });
}

static void modulo_integer(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const int64_t *restrict a = run->in[0]->i64;
    const int64_t *restrict b = run->in[1]->i64;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, {
        if (UNLIKELY(b[i] == 0)) {
            kernel_fail(run, i, "/ by zero");
            return;
        }
        out[i] = b[i] == -1 ? 0 : a[i] % b[i];
    });
}

static void modulo_f64(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    KERNEL_ROWS(run, { run->out->f64[i] = fmod(run->in[0]->f64[i], run->in[1]->f64[i]); });
}

static void modulo_f32(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    KERNEL_ROWS(run, { run->out->f32[i] = fmodf(run->in[0]->f32[i], run->in[1]->f32[i]); });
}

#define UNARY(name, field, c_type, expression)                                                     \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const c_type *restrict in = run->in[0]->field;                                             \
        c_type *restrict out = run->out->field;                                                    \
        KERNEL_ROWS(run, {                                                                         \
            const c_type x = in[i];                                                                \
            out[i] = expression;                                                                   \
        });                                                                                        \
    }
UNARY(negate_f32, f32, float, -x)
UNARY(negate_f64, f64, double, -x)
UNARY(absolute_f32, f32, float, fabsf(x))
UNARY(absolute_f64, f64, double, fabs(x))
/* Zero keeps its sign and NaN stays. */
UNARY(sign_f32, f32, float, x > 0 ? 1.0F : x < 0 ? -1.0F : x)
UNARY(sign_f64, f64, double, x > 0 ? 1.0 : x < 0 ? -1.0 : x)
UNARY(floor_f32, f32, float, floorf(x))
UNARY(floor_f64, f64, double, floor(x))
UNARY(ceil_f32, f32, float, ceilf(x))
UNARY(ceil_f64, f64, double, ceil(x))
UNARY(same_i64, i64, int64_t, x)
UNARY(sign_i64, i64, int64_t, (x > 0) - (x < 0))

static void negate_integer(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, {
        run->out->i64[i] = integer_wrap(kind, (int64_t)(0 - (uint64_t)run->in[0]->i64[i]));
    });
}

static void absolute_integer(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, {
        const int64_t x = run->in[0]->i64[i];
        run->out->i64[i] = integer_wrap(kind, x < 0 ? (int64_t)(0 - (uint64_t)x) : x);
    });
}

static bool is_integer_like(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type_is_integer(type) || type->kind == TYPE_INTERVAL_DAY_TIME ||
           type->kind == TYPE_INTERVAL_YEAR_MONTH;
}

static uint32_t width_of(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    switch (type->kind) {
    case TYPE_TINYINT:
        return 0;
    case TYPE_SMALLINT:
        return 1;
    case TYPE_INT:
        return 2;
    default:
        return 3;
    }
}

static kernel_function *find_integer(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    static kernel_function *const binary[][4] = {
        {plus_i8, plus_i16, plus_i32, plus_i64},
        {minus_i8, minus_i16, minus_i32, minus_i64},
        {times_i8, times_i16, times_i32, times_i64},
    };
    const uint32_t width = width_of(&expr->type);
    switch (expr->function) {
    case EXPR_PLUS:
        return binary[0][width];
    case EXPR_MINUS:
        return binary[1][width];
    case EXPR_TIMES:
        return binary[2][width];
    case EXPR_DIVIDE:
        return divide_integer;
    case EXPR_MOD:
        return modulo_integer;
    case EXPR_NEGATE:
        return negate_integer;
    case EXPR_ABS:
        return absolute_integer;
    case EXPR_SIGN:
        return sign_i64;
    case EXPR_FLOOR:
    case EXPR_CEIL:
        return same_i64;
    default:
        return NULL;
    }
}

static kernel_function *find_float(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT][2] = {
        [EXPR_PLUS] = {plus_f32, plus_f64},        [EXPR_MINUS] = {minus_f32, minus_f64},
        [EXPR_TIMES] = {times_f32, times_f64},     [EXPR_DIVIDE] = {divide_f32, divide_f64},
        [EXPR_MOD] = {modulo_f32, modulo_f64},     [EXPR_NEGATE] = {negate_f32, negate_f64},
        [EXPR_ABS] = {absolute_f32, absolute_f64}, [EXPR_SIGN] = {sign_f32, sign_f64},
        [EXPR_FLOOR] = {floor_f32, floor_f64},     [EXPR_CEIL] = {ceil_f32, ceil_f64},
    };
    return kernels[expr->function][expr->type.kind == TYPE_DOUBLE];
}

int number_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    kernel_function *function = NULL;
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        const struct type *type = &expr->arguments[i]->type;
        const bool is_float = type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE;
        if (!is_float && !is_integer_like(type)) {
            return -ENOENT;
        }
    }
    if (is_integer_like(&expr->type)) {
        function = find_integer(expr);
    } else if (expr->type.kind == TYPE_FLOAT || expr->type.kind == TYPE_DOUBLE) {
        function = find_float(expr);
    }
    if (function == NULL || expr->argument_count == 0) {
        return -ENOENT;
    }
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        const enum type_kind kind = expr->arguments[i]->type.kind;
        const bool fits = is_integer_like(&expr->type) ? is_integer_like(&expr->arguments[i]->type)
                                                       : kind == expr->type.kind;
        if (!fits) {
            return -ENOENT;
        }
    }
    const bool may_fail = function == divide_integer || function == modulo_integer;
    *out = (struct kernel_choice){.function = function,
                                  .mode = may_fail ? KERNEL_STRICT : KERNEL_TOTAL};
    return 0;
}
