/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of decimals. A sum or product that does not fit its type is a NULL that IS NULL does not
 * see; division by zero fails the job. Narrow operands (18 digits, one scale) take a short way. */
#include <errno.h>

#include "dataplane/expr/decimal_internal.h"
#include "dataplane/expr/kernel_internal.h"

static struct decimal_shape shape_of(const struct vector *vector)
{
    return (struct decimal_shape){.precision = vector->type.precision, .scale = vector->type.scale};
}

/* The general way of + - *: `compute` answers whether the result fits. */
#define DECIMAL_RUN(name, compute, sign)                                                           \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const struct vector *a = run->in[0];                                                       \
        const struct vector *b = run->in[1];                                                       \
        const struct decimal_shape to = shape_of(run->out);                                        \
        KERNEL_ROWS(run, {                                                                         \
            __int128 value = 0;                                                                    \
            if (run->out->null[i] == 0 &&                                                          \
                !compute(decimal_load(a, i), a->type.scale, (sign)*decimal_load(b, i),             \
                         b->type.scale, to, &value)) {                                             \
                kernel_null_hidden(run, i);                                                        \
            }                                                                                      \
            decimal_store(run->out, i, value);                                                     \
        });                                                                                        \
    }
DECIMAL_RUN(plus, decimal_add, 1)
DECIMAL_RUN(minus, decimal_add, -1)
DECIMAL_RUN(times, decimal_multiply, 1)

/* All three types within 18 digits, no scale is cut: plain 64-bit arithmetic cannot overflow. */
#define DECIMAL_NARROW(name, op)                                                                   \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const uint8_t scale = run->out->type.scale;                                                \
        const int64_t a_power = (int64_t)decimal_power((uint32_t)scale - run->in[0]->type.scale);  \
        const int64_t b_power = (int64_t)decimal_power((uint32_t)scale - run->in[1]->type.scale);  \
        const int64_t *restrict a = run->in[0]->i64;                                               \
        const int64_t *restrict b = run->in[1]->i64;                                               \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, {                                                                         \
            out[i] = (int64_t)((uint64_t)a[i] * (uint64_t)a_power op(uint64_t) b[i] *              \
                               (uint64_t)b_power);                                                 \
        });                                                                                        \
    }
DECIMAL_NARROW(plus_narrow, +)
DECIMAL_NARROW(minus_narrow, -)

static void times_narrow(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    const int64_t *restrict a = run->in[0]->i64;
    const int64_t *restrict b = run->in[1]->i64;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, { out[i] = (int64_t)((uint64_t)a[i] * (uint64_t)b[i]); });
}

/* Narrow operands, wide result, no scale is cut. */
static void times_widening(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    const int64_t *restrict a = run->in[0]->i64;
    const int64_t *restrict b = run->in[1]->i64;
    __int128 *restrict out = run->out->i128;
    KERNEL_ROWS(run, { out[i] = (__int128)a[i] * b[i]; });
}

static void divide(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *a = run->in[0];
    const struct vector *b = run->in[1];
    const struct decimal_shape to = shape_of(run->out);
    KERNEL_ROWS(run, {
        const __int128 divisor = decimal_load(b, i);
        __int128 value = 0;
        if (divisor == 0) {
            kernel_fail(run, i, "Division %s", decimal_load(a, i) == 0 ? "undefined" : "by zero");
        } else if (!decimal_divide(decimal_load(a, i), a->type.scale, divisor, b->type.scale, to,
                                   &value)) {
            kernel_null_hidden(run, i);
        }
        decimal_store(run->out, i, value);
    });
}

static void modulo(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *a = run->in[0];
    const struct vector *b = run->in[1];
    const struct decimal_shape to = shape_of(run->out);
    KERNEL_ROWS(run, {
        const __int128 divisor = decimal_load(b, i);
        __int128 value = 0;
        if (divisor == 0) {
            kernel_fail(run, i, "Division by zero");
        } else if (!decimal_remainder(decimal_load(a, i), a->type.scale, divisor, b->type.scale, to,
                                      &value)) {
            kernel_null_hidden(run, i);
        }
        decimal_store(run->out, i, value);
    });
}

/* One argument, result of the same digits. */
#define DECIMAL_UNARY(name, expression)                                                            \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const struct vector *in = run->in[0];                                                      \
        KERNEL_ROWS(run, {                                                                         \
            const __int128 x = decimal_load(in, i);                                                \
            decimal_store(run->out, i, expression);                                                \
        });                                                                                        \
    }
DECIMAL_UNARY(negate, -x)
DECIMAL_UNARY(absolute, x < 0 ? -x : x)

static void sign(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    const __int128 one = decimal_power(run->out->type.scale);
    KERNEL_ROWS(run, {
        const __int128 x = decimal_load(in, i);
        decimal_store(run->out, i, ((x > 0) - (x < 0)) * one);
    });
}

/* FLOOR and CEIL to scale 0. */
static void whole_run(struct kernel_run *run, bool up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *in = run->in[0];
    const __int128 power = decimal_power(in->type.scale);
    KERNEL_ROWS(run, {
        const __int128 x = decimal_load(in, i);
        const __int128 rest = x % power;
        const __int128 step = rest == 0 ? 0 : up ? rest > 0 : -(rest < 0);
        decimal_store(run->out, i, x / power + step);
    });
}

static void floor_whole(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    whole_run(run, false);
}

static void ceil_whole(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    whole_run(run, true);
}

/* Cuts a value at `digits` places after the point (before it when negative), keeping its scale. */
static __int128 cut(__int128 value, uint8_t scale, int64_t digits, bool half_up)
{
    ASSERT_SLOW(scale <= TYPE_DECIMAL_PRECISION_MAX);
    if (digits >= scale) {
        return value;
    }
    if (scale - digits > TYPE_DECIMAL_PRECISION_MAX) {
        return 0;
    }
    const __int128 power = decimal_power((uint32_t)(scale - digits));
    const __int128 rest = value % power;
    const __int128 magnitude = rest < 0 ? -rest : rest;
    const bool away = half_up && magnitude >= power - magnitude;
    const __int128 quotient = value / power + (away ? (value < 0 ? -1 : 1) : 0);
    return quotient * power; /* at most 1.5 times 10^38, which fits */
}

/* As cut and rescale in one, where the result keeps as many places as it rounds to and all has up
 * to 18 digits. */
static void round_narrow(struct kernel_run *run, bool half_up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const int64_t power =
        (int64_t)decimal_power((uint32_t)run->in[0]->type.scale - run->out->type.scale);
    const int64_t *restrict in = run->in[0]->i64;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, {
        const int64_t rest = in[i] % power;
        const int64_t magnitude = rest < 0 ? -rest : rest;
        const bool away = half_up && magnitude >= power - magnitude;
        out[i] = in[i] / power + (away ? (in[i] < 0 ? -1 : 1) : 0);
    });
}

static void round_narrow_half_up(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_narrow(run, true);
}

static void truncate_narrow(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_narrow(run, false);
}

static void round_run(struct kernel_run *run, bool half_up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const struct vector *in = run->in[0];
    const int64_t *digits = run->in_count > 1 ? run->in[1]->i64 : NULL;
    const struct decimal_shape to = shape_of(run->out);
    KERNEL_ROWS(run, {
        const __int128 x =
            cut(decimal_load(in, i), in->type.scale, digits == NULL ? 0 : digits[i], half_up);
        __int128 value = 0;
        if (!decimal_rescale(x, in->type.scale, to, &value)) {
            kernel_null(run, i);
        }
        decimal_store(run->out, i, value);
    });
}

static void round_half_up(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_run(run, true);
}

static void truncate_digits(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_run(run, false);
}

static bool is_narrow(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type->precision <= TYPE_DECIMAL_NARROW_MAX;
}

/* Picks the shortest way for a sum or product. */
static kernel_function *find_sum(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    const struct type *a = &expr->arguments[0]->type;
    const struct type *b = &expr->arguments[1]->type;
    const struct type *out = &expr->type;
    const bool product = expr->function == EXPR_TIMES;
    const bool narrow = is_narrow(a) && is_narrow(b);
    const uint8_t larger = a->scale > b->scale ? a->scale : b->scale;
    const bool exact = out->scale == (product ? a->scale + b->scale : larger);
    if (narrow && exact && is_narrow(out)) {
        return product ? times_narrow : expr->function == EXPR_PLUS ? plus_narrow : minus_narrow;
    }
    if (narrow && exact && product && out->precision >= a->precision + b->precision) {
        return times_widening;
    }
    return product ? times : expr->function == EXPR_PLUS ? plus : minus;
}

/* Picks the short way of ROUND and TRUNCATE: a constant number of places, not negative. */
static kernel_function *find_round(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    const bool half_up = expr->function == EXPR_ROUND;
    const struct type *in = &expr->arguments[0]->type;
    const bool fixed =
        expr->argument_count == 1 ||
        (kernel_is_literal(expr, 1) && expr->arguments[1]->literal.i64 == expr->type.scale);
    if (fixed && is_narrow(in) && is_narrow(&expr->type) && expr->type.scale < in->scale) {
        return half_up ? round_narrow_half_up : truncate_narrow;
    }
    return half_up ? round_half_up : truncate_digits;
}

static int find(const struct expr *expr, struct kernel_choice *out)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    ASSERT_SLOW(out != NULL);
    static kernel_function *const unary[EXPR_FUNCTION_COUNT] = {
        [EXPR_NEGATE] = negate,     [EXPR_ABS] = absolute,    [EXPR_SIGN] = sign,
        [EXPR_FLOOR] = floor_whole, [EXPR_CEIL] = ceil_whole,
    };
    switch (expr->function) {
    case EXPR_PLUS:
    case EXPR_MINUS:
    case EXPR_TIMES:
        *out = (struct kernel_choice){
            .function = find_sum(expr), .mode = KERNEL_TOTAL, .hides_null = true};
        return 0;
    case EXPR_DIVIDE:
    case EXPR_MOD:
        *out = (struct kernel_choice){.function = expr->function == EXPR_DIVIDE ? divide : modulo,
                                      .mode = KERNEL_STRICT,
                                      .hides_null = true};
        return 0;
    case EXPR_ROUND:
    case EXPR_TRUNCATE:
        *out = (struct kernel_choice){.function = find_round(expr), .mode = KERNEL_TOTAL};
        return 0;
    default:
        if (unary[expr->function] == NULL) {
            return -ENOENT;
        }
        *out = (struct kernel_choice){.function = unary[expr->function],
                                      .mode = KERNEL_TOTAL,
                                      .hides_null = expr->function == EXPR_NEGATE};
        return 0;
    }
}

int decimal_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    if (expr->argument_count == 0 || expr->type.kind != TYPE_DECIMAL ||
        expr->arguments[0]->type.kind != TYPE_DECIMAL) {
        return -ENOENT;
    }
    const bool two = expr->argument_count == 2 && expr->function != EXPR_ROUND &&
                     expr->function != EXPR_TRUNCATE;
    if (two && expr->arguments[1]->type.kind != TYPE_DECIMAL) {
        return -ENOENT;
    }
    return find(expr, out);
}
