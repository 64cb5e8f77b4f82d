/* SPDX-License-Identifier: Apache-2.0 */
/* ROUND and TRUNCATE of whole and floating-point numbers. A float is rounded by the decimal digits
 * that it prints, half away from zero, not by its binary value; TRUNCATE goes through DECIMAL(38,
 * 18) and fails past 10^20. Whole numbers wrap round. */
#include <errno.h>
#include <math.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/number_internal.h"
#include "dataplane/expr/text_number.h"

#define TRUNCATE_SCALE 18
#define DIGITS_MAX     32

static int64_t digits_at(const struct kernel_run *run, uint32_t i)
{
    ASSERT_SLOW(run->out != NULL);
    return run->in_count > 1 ? run->in[1]->i64[i] : 0;
}

/* Cuts a whole number at a power of ten, with wrap. */
static int64_t round_whole(int64_t value, int64_t digits, bool half_up)
{
    if (digits >= 0) {
        return value;
    }
    if (digits < -19) {
        return 0;
    }
    const __int128 power = decimal_power((uint32_t)-digits);
    const __int128 rest = value % power;
    const __int128 magnitude = rest < 0 ? -rest : rest;
    __int128 out = value - rest;
    if (half_up && magnitude >= power - magnitude) {
        out += value < 0 ? -power : power;
    }
    return (int64_t)out;
}

static void round_integer(struct kernel_run *run, bool half_up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const enum type_kind kind = run->out->type.kind;
    KERNEL_ROWS(run, {
        const int64_t value = round_whole(run->in[0]->i64[i], digits_at(run, i), half_up);
        run->out->i64[i] = integer_wrap(kind, value);
    });
}

/* The decimal digits of a finite double: 0.d1d2d3… times 10^point. */
struct digits {
    bool negative;
    uint8_t digit[DIGITS_MAX];
    int32_t count;
    int64_t point;
};

static void read_digits(double value, struct digits *out)
{
    ASSERT_SLOW(out != NULL);
    char text[DOUBLE_TEXT_BYTES];
    const uint32_t bytes = double_print(value, text);
    bool fraction = false;
    *out = (struct digits){.negative = text[0] == '-'};
    for (uint32_t i = out->negative ? 1 : 0; i < bytes; i++) {
        if (text[i] == '.') {
            fraction = true;
        } else if (text[i] == 'E') {
            const bool minus = text[i + 1] == '-';
            int64_t exponent = 0;
            for (uint32_t k = i + (minus ? 2 : 1); k < bytes; k++) {
                exponent = exponent * 10 + (text[k] - '0');
            }
            out->point += minus ? -exponent : exponent;
            break;
        } else if (out->count != 0 || text[i] != '0') {
            out->digit[out->count++] = (uint8_t)(text[i] - '0');
            out->point += fraction ? 0 : 1;
        } else {
            out->point -= fraction ? 1 : 0;
        }
    }
}

/* Cuts the digits at `places` behind the point. */
static void cut_digits(struct digits *digits, int64_t places, bool half_up)
{
    ASSERT_SLOW(digits->count >= 0);
    ASSERT_SLOW(digits->count <= DIGITS_MAX);
    const int64_t kept = digits->point + places;
    if (kept >= digits->count) {
        return;
    }
    const bool up = half_up && kept >= 0 && digits->digit[kept] >= 5;
    digits->count = kept > 0 ? (int32_t)kept : 0;
    if (!up) {
        return;
    }
    int32_t at = digits->count - 1;
    while (at >= 0 && digits->digit[at] == 9) {
        digits->digit[at--] = 0;
    }
    if (at >= 0) {
        digits->digit[at]++;
        return;
    }
    digits->digit[0] = 1;
    digits->count = 1;
    digits->point++;
}

/* Zero loses its sign, as BigDecimal has none. */
static double digits_value(const struct digits *digits)
{
    ASSERT_SLOW(digits->count >= 0);
    ASSERT_SLOW(digits->count <= DIGITS_MAX);
    uint8_t text[DIGITS_MAX + 32];
    uint32_t at = 0;
    if (digits->count == 0) {
        return 0;
    }
    if (digits->negative) {
        text[at++] = '-';
    }
    for (int32_t i = 0; i < digits->count; i++) {
        text[at++] = (uint8_t)('0' + digits->digit[i]);
    }
    text[at++] = 'E';
    at += integer_print(digits->point - digits->count, (char *)text + at);
    double value = 0;
    const bool good = double_parse((struct span){.data = text, .bytes = at}, &value);
    ASSERT(good);
    return value;
}

static double round_double(double value, int64_t places)
{
    struct digits digits;
    read_digits(value, &digits);
    cut_digits(&digits, places, true);
    return digits_value(&digits);
}

static double truncate_double(double value, int64_t places)
{
    struct digits digits;
    read_digits(value, &digits);
    cut_digits(&digits, TRUNCATE_SCALE, true);
    cut_digits(&digits, places, false);
    return digits_value(&digits);
}

static double round_one(struct kernel_run *run, uint32_t i, double value, bool half_up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    if (!isfinite(value)) {
        kernel_fail(run, i, "Infinite or NaN");
        return 0;
    }
    if (half_up) {
        return round_double(value, digits_at(run, i));
    }
    if (fabs(value) >= 1e20) {
        kernel_fail(run, i, "TRUNCATE of %g: null pointer", value);
        return 0;
    }
    return truncate_double(value, digits_at(run, i));
}

static void round_float(struct kernel_run *run, bool half_up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const bool single = run->in[0]->type.kind == TYPE_FLOAT;
    KERNEL_ROWS(run, {
        if (single) {
            run->out->f32[i] = (float)round_one(run, i, (double)run->in[0]->f32[i], half_up);
        } else {
            run->out->f64[i] = round_one(run, i, run->in[0]->f64[i], half_up);
        }
    });
}

static void round_integer_half_up(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_integer(run, true);
}

static void round_integer_down(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_integer(run, false);
}

static void round_float_half_up(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_float(run, true);
}

static void round_float_down(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    round_float(run, false);
}

int number_round_kernel(const struct kernel_call *call, struct kernel_choice *out,
                        struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    const bool half_up = expr->function == EXPR_ROUND;
    if (!half_up && expr->function != EXPR_TRUNCATE) {
        return -ENOENT;
    }
    const struct type *type = &expr->arguments[0]->type;
    kernel_function *function = NULL;
    if (type_is_integer(type)) {
        function = half_up ? round_integer_half_up : round_integer_down;
    } else if (type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE) {
        function = half_up ? round_float_half_up : round_float_down;
    }
    *out = (struct kernel_choice){.function = function, .mode = KERNEL_STRICT};
    return function == NULL ? -ENOENT : 0;
}
