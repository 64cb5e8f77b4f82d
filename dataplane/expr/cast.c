/* SPDX-License-Identifier: Apache-2.0 */
/* CAST and TRY_CAST between numbers and truth values, and the finder of all casts. Narrowing wraps
 * round; a float to INT or BIGINT saturates, to smaller ones it goes through INT and wraps; a
 * DECIMAL that does not fit is NULL. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "dataplane/expr/cast_internal.h"
#include "dataplane/expr/decimal_internal.h"
#include "dataplane/expr/number_internal.h"
#include "dataplane/expr/text_number.h"

#define EXACT_SCALE_MAX 22 /* 10^22 is the largest power of ten that a double holds exactly */

static const bool modes[2] = {false, true};

const void *cast_mode(enum expr_function function)
{
    ASSERT(function == EXPR_CAST || function == EXPR_TRY_CAST);
    return &modes[function == EXPR_TRY_CAST];
}

void cast_bad(struct kernel_run *run, uint32_t row, const char *format, ...)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const bool *try_cast = run->constant;
    if (*try_cast) {
        kernel_null(run, row);
        return;
    }
    char reason[PROGRAM_REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    kernel_fail(run, row, "%s", reason);
}

#define CAST_RUN(name, from_field, from_type, to_field, to_type, expression)                       \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const from_type *restrict in = run->in[0]->from_field;                                     \
        to_type *restrict out = run->out->to_field;                                                \
        KERNEL_ROWS(run, {                                                                         \
            const from_type x = in[i];                                                             \
            out[i] = (to_type)(expression);                                                        \
        });                                                                                        \
    }

CAST_RUN(same_word, i64, int64_t, i64, int64_t, x)
CAST_RUN(same_f32, f32, float, f32, float, x)
CAST_RUN(same_pair, i128, __int128, i128, __int128, x)
CAST_RUN(word_to_i8, i64, int64_t, i64, int64_t, (int8_t)x)
CAST_RUN(word_to_i16, i64, int64_t, i64, int64_t, (int16_t)x)
CAST_RUN(word_to_i32, i64, int64_t, i64, int64_t, (int32_t)x)
CAST_RUN(word_to_bool, i64, int64_t, i64, int64_t, x != 0)
CAST_RUN(word_to_f32, i64, int64_t, f32, float, x)
CAST_RUN(word_to_f64, i64, int64_t, f64, double, x)
CAST_RUN(f32_to_f64, f32, float, f64, double, x)
CAST_RUN(f64_to_f32, f64, double, f32, float, x)
CAST_RUN(f32_to_bool, f32, float, i64, int64_t, x != 0)
CAST_RUN(f64_to_bool, f64, double, i64, int64_t, x != 0)

/* Java's (int) and (long) of a double: cut, saturating, NaN is 0. */
static int64_t to_long(double x)
{
    if (isnan(x)) {
        return 0;
    }
    if (x >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

static int64_t to_int(double x)
{
    const int64_t value = to_long(x);
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
}

static int64_t to_whole(enum type_kind kind, double x)
{
    return kind == TYPE_BIGINT ? to_long(x) : integer_wrap(kind, to_int(x));
}

static void f64_to_whole(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, { run->out->i64[i] = to_whole(kind, run->in[0]->f64[i]); });
}

static void f32_to_whole(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, { run->out->i64[i] = to_whole(kind, (double)run->in[0]->f32[i]); });
}

static struct decimal_shape shape_of(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return (struct decimal_shape){.precision = type->precision, .scale = type->scale};
}

static void word_to_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct decimal_shape to = shape_of(&run->out->type);
    KERNEL_ROWS(run, {
        __int128 value = 0;
        if (!decimal_rescale(run->in[0]->i64[i], 0, to, &value) && run->out->null[i] == 0) {
            kernel_null(run, i);
        }
        decimal_store(run->out, i, value);
    });
}

/* Every value of the source fits: only the scale grows. */
static void decimal_widen(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const uint8_t from_scale = type_is_integer(&run->in[0]->type) ? 0 : run->in[0]->type.scale;
    const __int128 power = decimal_power((uint32_t)run->out->type.scale - from_scale);
    if (run->out->type.precision <= TYPE_DECIMAL_NARROW_MAX) {
        const int64_t *restrict in = run->in[0]->i64;
        int64_t *restrict out = run->out->i64;
        const uint64_t factor = (uint64_t)power;
        KERNEL_ROWS(run, { out[i] = (int64_t)((uint64_t)in[i] * factor); });
        return;
    }
    KERNEL_ROWS(run, { run->out->i128[i] = decimal_load(run->in[0], i) * power; });
}

static void decimal_to_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *in = run->in[0];
    const struct decimal_shape to = shape_of(&run->out->type);
    KERNEL_ROWS(run, {
        __int128 value = 0;
        if (!decimal_rescale(decimal_load(in, i), in->type.scale, to, &value) &&
            run->out->null[i] == 0) {
            kernel_null(run, i);
        }
        decimal_store(run->out, i, value);
    });
}

static void decimal_to_whole(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    const enum type_kind kind = run->out->type.kind;
    const __int128 power = decimal_power(in->type.scale);
    KERNEL_ROWS(run,
                { run->out->i64[i] = integer_wrap(kind, (int64_t)(decimal_load(in, i) / power)); });
}

static void decimal_to_bool(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { run->out->i64[i] = decimal_load(run->in[0], i) != 0; });
}

/* Correctly rounded: by one exact division where both sides are exact doubles, else by the text. */
static double decimal_to_double(__int128 unscaled, uint8_t scale)
{
    ASSERT_SLOW(scale <= TYPE_DECIMAL_PRECISION_MAX);
    const __int128 magnitude = unscaled < 0 ? -unscaled : unscaled;
    if (magnitude <= (__int128)1 << 53 && scale <= EXACT_SCALE_MAX) {
        return (double)(int64_t)unscaled / (double)decimal_power(scale);
    }
    char text[DECIMAL_TEXT_BYTES];
    const uint32_t bytes = decimal_print(unscaled, scale, text);
    double value = 0;
    const bool good =
        double_parse((struct span){.data = (const uint8_t *)text, .bytes = bytes}, &value);
    ASSERT(good);
    return value;
}

static void decimal_to_f64(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    KERNEL_ROWS(run,
                { run->out->f64[i] = decimal_to_double(decimal_load(in, i), in->type.scale); });
}

static void decimal_to_f32(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    KERNEL_ROWS(
        run, { run->out->f32[i] = (float)decimal_to_double(decimal_load(in, i), in->type.scale); });
}

/* By the shortest text, as BigDecimal.valueOf does. */
static void put_double_as_decimal(struct kernel_run *run, uint32_t i, double x)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    if (!isfinite(x)) {
        kernel_fail(run, i, "Infinite or NaN");
        return;
    }
    char text[DOUBLE_TEXT_BYTES];
    const uint32_t bytes = double_print(x, text);
    __int128 value = 0;
    const enum decimal_verdict verdict =
        decimal_parse((struct span){.data = (const uint8_t *)text, .bytes = bytes},
                      run->out->type.precision, run->out->type.scale, &value);
    if (verdict != DECIMAL_OK) {
        kernel_null(run, i);
    }
    decimal_store(run->out, i, value);
}

static void f64_to_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { put_double_as_decimal(run, i, run->in[0]->f64[i]); });
}

static void f32_to_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { put_double_as_decimal(run, i, (double)run->in[0]->f32[i]); });
}

static bool is_word_number(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type_is_integer(type) || type->kind == TYPE_BOOLEAN;
}

/* Tells whether every value of `from` fits the decimal `to` without loss. */
static bool decimal_only_grows(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    static const uint8_t digits[] = {[TYPE_BOOLEAN] = 1,
                                     [TYPE_TINYINT] = 3,
                                     [TYPE_SMALLINT] = 5,
                                     [TYPE_INT] = 10,
                                     [TYPE_BIGINT] = 19};
    const bool whole = is_word_number(from);
    const int32_t from_scale = whole ? 0 : from->scale;
    const int32_t from_whole = whole ? digits[from->kind] : from->precision - from->scale;
    return to->scale >= from_scale && to->precision - to->scale >= from_whole;
}

static kernel_function *find_from_word(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    switch (to->kind) {
    case TYPE_BOOLEAN:
        return word_to_bool;
    case TYPE_TINYINT:
        return word_to_i8;
    case TYPE_SMALLINT:
        return word_to_i16;
    case TYPE_INT:
        return word_to_i32;
    case TYPE_BIGINT:
        return same_word;
    case TYPE_FLOAT:
        return word_to_f32;
    case TYPE_DOUBLE:
        return word_to_f64;
    case TYPE_DECIMAL:
        return decimal_only_grows(from, to) && type_is_integer(from) ? decimal_widen
                                                                     : word_to_decimal;
    default:
        return NULL;
    }
}

static kernel_function *find_from_float(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    const bool single = from->kind == TYPE_FLOAT;
    switch (to->kind) {
    case TYPE_BOOLEAN:
        return single ? f32_to_bool : f64_to_bool;
    case TYPE_FLOAT:
        return single ? same_f32 : f64_to_f32;
    case TYPE_DOUBLE:
        return single ? f32_to_f64 : same_word;
    case TYPE_DECIMAL:
        return single ? f32_to_decimal : f64_to_decimal;
    default:
        return type_is_integer(to) ? (single ? f32_to_whole : f64_to_whole) : NULL;
    }
}

static kernel_function *find_from_decimal(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    switch (to->kind) {
    case TYPE_BOOLEAN:
        return decimal_to_bool;
    case TYPE_FLOAT:
        return decimal_to_f32;
    case TYPE_DOUBLE:
        return decimal_to_f64;
    case TYPE_DECIMAL:
        return decimal_only_grows(from, to) ? decimal_widen : decimal_to_decimal;
    default:
        return type_is_integer(to) ? decimal_to_whole : NULL;
    }
}

void cast_number_find(const struct type *from, const struct type *to, struct kernel_choice *out)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    ASSERT_SLOW(out != NULL);
    kernel_function *function = NULL;
    if (is_word_number(from)) {
        function = find_from_word(from, to);
    } else if (from->kind == TYPE_FLOAT || from->kind == TYPE_DOUBLE) {
        function = find_from_float(from, to);
    } else if (from->kind == TYPE_DECIMAL) {
        function = find_from_decimal(from, to);
    }
    const bool may_fail = function == f64_to_decimal || function == f32_to_decimal;
    *out = (struct kernel_choice){.function = function,
                                  .mode = may_fail ? KERNEL_STRICT : KERNEL_TOTAL};
}

/* Casts that change nothing but the type: what a NULL literal has, nested types of one shape. */
static kernel_function *find_same(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    if (from->kind != TYPE_NULL && from->kind != to->kind) {
        return NULL;
    }
    if (from->kind != TYPE_NULL && !type_equal(from, to)) {
        return NULL;
    }
    if (to->kind == TYPE_FLOAT) {
        return same_f32;
    }
    return type_is_text(to) || type_slot_count(to) == 2 ? same_pair : same_word;
}

int cast_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    if (expr->function != EXPR_CAST && expr->function != EXPR_TRY_CAST) {
        return -ENOENT;
    }
    ASSERT(expr->argument_count == 1);
    const struct type *from = &expr->arguments[0]->type;
    cast_number_find(from, &expr->type, out);
    if (out->function == NULL) {
        cast_to_text_find(call, out);
    }
    if (out->function == NULL) {
        cast_from_text_find(call, out);
    }
    if (out->function == NULL) {
        const int result = cast_time_find(call, out, error);
        if (result != 0 && result != -ENOENT) {
            return result;
        }
    }
    if (out->function == NULL) {
        /* A value of a type without kernels, or NULL: its 8 or 16 bytes move as they are. */
        *out =
            (struct kernel_choice){.function = find_same(from, &expr->type), .mode = KERNEL_STRICT};
    }
    return out->function == NULL ? -ENOENT : 0;
}
