/* SPDX-License-Identifier: Apache-2.0 */
/* COUNT, SUM, AVG, STDDEV, VAR and the numbering functions.
 *
 *  - Integer sums wrap in the argument's type; AVG outside of OVER sums in BIGINT.
 *  - A DECIMAL sum past 38 digits is NULL and the next value starts it afresh; AVG outside of OVER
 *    stays NULL for ever then.
 *  - Outside of OVER the variances follow Welford in DOUBLE; in OVER Flink rewrites them into sums
 *    of x and x*x in the argument's type, with all that cancels out there.
 *  - RANK and DENSE_RANK by time count rows: Flink computes them after all rows of one time came.
 */
#include <math.h>

#include "dataplane/operator/accumulator_internal.h"

/* A state being worked on, by its bytes; __int128 fields are moved by memcpy. */
struct sum_i64 {
    int64_t count;
    int64_t sum;
};

struct sum_real {
    int64_t count;
    uint64_t seen; /* 0: the sum is NULL */
    double sum;    /* SUM over FLOAT keeps it rounded to float */
};

struct sum_decimal {
    int64_t count;
    uint64_t seen;
    uint64_t sum[2];
};

struct welford {
    int64_t count;
    double mean;
    double m2;
};

struct power_sums {
    int64_t count;
    uint64_t sum[2]; /* double or int64_t */
    uint64_t seen;
};

static __int128 decimal_max(void)
{
    const __int128 ten_19 = (__int128)UINT64_C(10000000000000000000);
    return ten_19 * ten_19 - 1;
}

/* Cuts a wrapping sum to the integer type that it has. */
static int64_t wrap(enum type_kind kind, int64_t value)
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

static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Truncates toward zero; the one quotient that does not fit wraps. */
static int64_t divide(int64_t a, int64_t b)
{
    ASSERT(b != 0);
    return b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

static bool count_add(const struct accumulator *self, const struct accumulator_state *state,
                      void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    *(int64_t *)at += 1;
    return true;
}

static bool count_retract(const struct accumulator *self, const struct accumulator_state *state,
                          void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    *(int64_t *)at -= 1;
    return true;
}

static bool count_merge(const struct accumulator *self, const struct accumulator_state *state,
                        void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    *(int64_t *)at += *(const int64_t *)from;
    return true;
}

static bool count_result(const struct accumulator *self, const struct accumulator_state *state,
                         const void *at, struct value *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    out->is_null = false;
    out->i64 = *(const int64_t *)at;
    return true;
}

static const struct accumulator_ops count_ops = {
    .bytes = sizeof(int64_t),
    .add = count_add,
    .retract = count_retract,
    .merge = count_merge,
    .result = count_result,
};

static bool sum_i64_add(const struct accumulator *self, const struct accumulator_state *state,
                        void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_i64 *sum = at;
    sum->count++;
    sum->sum = add_wrapping(sum->sum, load_i64(datum));
    return true;
}

static bool sum_i64_retract(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_i64 *sum = at;
    sum->count--;
    sum->sum = (int64_t)((uint64_t)sum->sum - (uint64_t)load_i64(datum));
    return true;
}

static bool sum_i64_merge(const struct accumulator *self, const struct accumulator_state *state,
                          void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    struct sum_i64 *sum = at;
    const struct sum_i64 *other = from;
    sum->count += other->count;
    sum->sum = add_wrapping(sum->sum, other->sum);
    return true;
}

static bool sum_i64_result(const struct accumulator *self, const struct accumulator_state *state,
                           const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct sum_i64 *sum = at;
    out->is_null = sum->count == 0;
    out->i64 = wrap(self->call->result_type.kind, sum->sum);
    return true;
}

static bool average_i64_result(const struct accumulator *self,
                               const struct accumulator_state *state, const void *at,
                               struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct sum_i64 *sum = at;
    out->is_null = sum->count == 0;
    if (!out->is_null) {
        const enum type_kind kind = self->call->argument_type.kind;
        const int64_t total = self->is_over ? wrap(kind, sum->sum) : sum->sum;
        out->i64 = wrap(self->call->result_type.kind, divide(total, sum->count));
    }
    return true;
}

static const struct accumulator_ops sum_i64_ops = {
    .bytes = sizeof(struct sum_i64),
    .add = sum_i64_add,
    .retract = sum_i64_retract,
    .merge = sum_i64_merge,
    .result = sum_i64_result,
};

static const struct accumulator_ops average_i64_ops = {
    .bytes = sizeof(struct sum_i64),
    .add = sum_i64_add,
    .retract = sum_i64_retract,
    .merge = sum_i64_merge,
    .result = average_i64_result,
};

/* AVG(FLOAT) outside of OVER sums in DOUBLE, SUM(FLOAT) in FLOAT. */
static bool sums_in_float(const struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->argument_type.kind == TYPE_FLOAT &&
           (self->call->function == AGGREGATE_SUM || self->is_over);
}

static double real_datum(const struct accumulator *self, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->argument_type.kind == TYPE_FLOAT ? load_f32(datum) : load_f64(datum);
}

/* A sum is NULL before its first value, which it then takes as it is (-0.0 stays); AVG outside of
 * OVER starts from 0. */
static void real_step(const struct accumulator *self, struct sum_real *sum, double value)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(sum != NULL);
    if (sum->seen == 0 && (self->call->function == AGGREGATE_SUM || self->is_over)) {
        sum->sum = value;
    } else {
        sum->sum += value;
    }
    sum->seen = 1;
    if (sums_in_float(self)) {
        sum->sum = (float)sum->sum;
    }
}

static bool sum_real_add(const struct accumulator *self, const struct accumulator_state *state,
                         void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_real *sum = at;
    sum->count++;
    real_step(self, sum, real_datum(self, datum));
    return true;
}

static bool sum_real_retract(const struct accumulator *self, const struct accumulator_state *state,
                             void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_real *sum = at;
    sum->count--;
    sum->sum -= real_datum(self, datum); /* from NULL it is 0 - x, and the sum is 0 there */
    sum->seen = 1;
    if (sums_in_float(self)) {
        sum->sum = (float)sum->sum;
    }
    return true;
}

static bool sum_real_merge(const struct accumulator *self, const struct accumulator_state *state,
                           void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    struct sum_real *sum = at;
    const struct sum_real *other = from;
    sum->count += other->count;
    if (other->seen != 0) {
        real_step(self, sum, other->sum);
    }
    return true;
}

static void real_out(const struct accumulator *self, double value, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    if (self->call->result_type.kind == TYPE_FLOAT) {
        out->i64 = 0;
        out->f32 = (float)value;
    } else {
        out->f64 = value;
    }
}

static bool sum_real_result(const struct accumulator *self, const struct accumulator_state *state,
                            const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct sum_real *sum = at;
    out->is_null = sum->count == 0;
    real_out(self, sum->sum, out);
    return true;
}

static bool average_real_result(const struct accumulator *self,
                                const struct accumulator_state *state, const void *at,
                                struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct sum_real *sum = at;
    out->is_null = sum->count == 0;
    real_out(self, sum->sum / (double)sum->count, out);
    return true;
}

static const struct accumulator_ops sum_real_ops = {
    .bytes = sizeof(struct sum_real),
    .add = sum_real_add,
    .retract = sum_real_retract,
    .merge = sum_real_merge,
    .result = sum_real_result,
};

static const struct accumulator_ops average_real_ops = {
    .bytes = sizeof(struct sum_real),
    .add = sum_real_add,
    .retract = sum_real_retract,
    .merge = sum_real_merge,
    .result = average_real_result,
};

static __int128 decimal_datum(const struct accumulator *self, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->datum_bytes == 16 ? load_i128(datum) : load_i64(datum);
}

/* Where SUM starts afresh, AVG outside of OVER latches: seen becomes 2 and stays. */
#define DECIMAL_NULL    0
#define DECIMAL_SEEN    1
#define DECIMAL_LATCHED 2

static void decimal_step(const struct accumulator *self, struct sum_decimal *sum, __int128 value)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(sum != NULL);
    if (sum->seen == DECIMAL_LATCHED) {
        return;
    }
    __int128 total = sum->seen == DECIMAL_NULL ? 0 : load_i128(sum->sum);
    /* Both are within 38 digits, so their sum is within 127 bits. */
    total += value;
    const bool fits = total <= decimal_max() && total >= -decimal_max();
    const bool restarts = self->call->function == AGGREGATE_SUM || self->is_over;
    sum->seen = fits ? DECIMAL_SEEN : (restarts ? DECIMAL_NULL : DECIMAL_LATCHED);
    memcpy(sum->sum, &total, sizeof(total));
}

static bool sum_decimal_add(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_decimal *sum = at;
    sum->count++;
    decimal_step(self, sum, decimal_datum(self, datum));
    return true;
}

static bool sum_decimal_retract(const struct accumulator *self,
                                const struct accumulator_state *state, void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct sum_decimal *sum = at;
    sum->count--;
    decimal_step(self, sum, -decimal_datum(self, datum));
    return true;
}

static bool sum_decimal_merge(const struct accumulator *self, const struct accumulator_state *state,
                              void *at, const void *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    struct sum_decimal *sum = at;
    const struct sum_decimal *other = from;
    sum->count += other->count;
    if (other->seen == DECIMAL_SEEN) {
        decimal_step(self, sum, load_i128(other->sum));
    } else if (other->seen == DECIMAL_LATCHED) {
        sum->seen = DECIMAL_LATCHED;
    }
    return true;
}

static bool sum_decimal_result(const struct accumulator *self,
                               const struct accumulator_state *state, const void *at,
                               struct value *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct sum_decimal *sum = at;
    out->is_null = sum->count == 0 || sum->seen != DECIMAL_SEEN;
    out->i128 = load_i128(sum->sum);
    return true;
}

#define SCALE_FAST_MAX 6

/* The common case of divide_scaled: all within 64 bits, one machine division.
 * returns  false when the numbers are too large for it */
static bool divide_fast(uint64_t of, uint64_t by, uint32_t digits, uint64_t *out)
{
    ASSERT_SLOW(out != NULL);
    static const uint64_t powers[SCALE_FAST_MAX + 1] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    uint64_t scaled;
    if (digits > SCALE_FAST_MAX || __builtin_mul_overflow(of, powers[digits], &scaled) ||
        scaled > UINT64_MAX / 2 || by > UINT64_MAX / 4) {
        return false;
    }
    *out = scaled / by;
    *out += (scaled - *out * by) * 2 >= by;
    return true;
}

/* Divides digit by digit, so that the scaled sum need not fit 128 bits.
 * returns  false past 38 digits */
static bool divide_long(unsigned __int128 of, uint64_t by, uint32_t digits, unsigned __int128 *out)
{
    ASSERT_SLOW(out != NULL);
    const unsigned __int128 limit = (unsigned __int128)decimal_max();
    unsigned __int128 quotient = of / by;
    unsigned __int128 rest = of % by;
    for (uint32_t i = 0; i < digits; i++) {
        if (quotient > limit / 10) {
            return false;
        }
        rest *= 10; /* below 10 * 2^64 */
        const unsigned __int128 digit = rest / by;
        quotient = quotient * 10 + digit;
        rest -= digit * by;
    }
    *out = quotient + (rest * 2 >= by);
    return *out <= limit;
}

/* Divides HALF_UP and scales up by 10^digits; false past 38 digits. */
static bool divide_scaled(__int128 sum, int64_t count, uint32_t digits, __int128 *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT(count != 0);
    const bool negative = (sum < 0) != (count < 0);
    const uint64_t by = count < 0 ? -(uint64_t)count : (uint64_t)count;
    const unsigned __int128 of = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;
    uint64_t fast;
    unsigned __int128 quotient;
    if (of >> 64 == 0 && divide_fast((uint64_t)of, by, digits, &fast)) {
        quotient = fast;
    } else if (!divide_long(of, by, digits, &quotient)) {
        return false;
    }
    *out = negative ? -(__int128)quotient : (__int128)quotient;
    return true;
}

static bool average_decimal_result(const struct accumulator *self,
                                   const struct accumulator_state *state, const void *at,
                                   struct value *out)
{
    ASSERT_SLOW(at != NULL);
    const struct sum_decimal *sum = at;
    if (sum->count == 0 || sum->seen != DECIMAL_SEEN) {
        return true;
    }
    const uint32_t from_scale = self->call->argument_type.scale;
    const uint32_t scale = self->call->result_type.scale;
    ASSERT(scale >= from_scale);
    out->is_null = !divide_scaled(load_i128(sum->sum), sum->count, scale - from_scale, &out->i128);
    return true;
}

static const struct accumulator_ops sum_decimal_ops = {
    .bytes = sizeof(struct sum_decimal),
    .add = sum_decimal_add,
    .retract = sum_decimal_retract,
    .merge = sum_decimal_merge,
    .result = sum_decimal_result,
};

static const struct accumulator_ops average_decimal_ops = {
    .bytes = sizeof(struct sum_decimal),
    .add = sum_decimal_add,
    .retract = sum_decimal_retract,
    .merge = sum_decimal_merge,
    .result = average_decimal_result,
};

static double ten_to(uint32_t exponent)
{
    double power = 1;
    for (uint32_t i = 0; i < exponent; i++) {
        power *= 10; /* exact up to 10^22 */
    }
    return power;
}

/* The argument as DOUBLE, as Flink casts it for Welford. */
static double variance_datum(const struct accumulator *self, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    const struct type *type = &self->call->argument_type;
    if (type->kind == TYPE_DECIMAL) {
        return (double)decimal_datum(self, datum) / ten_to(type->scale);
    }
    if (type_is_integer(type)) {
        return (double)load_i64(datum);
    }
    return real_datum(self, datum);
}

static bool welford_add(const struct accumulator *self, const struct accumulator_state *state,
                        void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct welford *sum = at;
    const double value = variance_datum(self, datum);
    const double delta = value - sum->mean;
    sum->count++;
    sum->mean += delta / (double)sum->count;
    sum->m2 += delta * (value - sum->mean);
    return true;
}

static bool welford_retract(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct welford *sum = at;
    const double value = variance_datum(self, datum);
    const double delta = value - sum->mean;
    sum->count--;
    sum->mean = sum->count == 0 ? 0 : sum->mean - delta / (double)sum->count;
    sum->m2 = sum->count == 0 ? 0 : sum->m2 - delta * (value - sum->mean);
    return true;
}

static bool welford_merge(const struct accumulator *self, const struct accumulator_state *state,
                          void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    struct welford *sum = at;
    const struct welford *other = from;
    const int64_t count = sum->count + other->count;
    if (other->count != 0 && count != 0) {
        const double delta = other->mean - sum->mean;
        const double share = (double)other->count / (double)count;
        sum->mean += delta * share;
        sum->m2 += other->m2 + delta * delta * share * (double)sum->count;
    }
    sum->count = count;
    return true;
}

static bool is_sample(const struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->function == AGGREGATE_STDDEV_SAMP ||
           self->call->function == AGGREGATE_VAR_SAMP;
}

static bool is_deviation(const struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->function == AGGREGATE_STDDEV_SAMP ||
           self->call->function == AGGREGATE_STDDEV_POP;
}

/* Rounds a DOUBLE to a DECIMAL result by its digits after the point, HALF_UP. */
static void decimal_out(const struct accumulator *self, double value, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(out != NULL);
    const struct type *type = &self->call->result_type;
    const double scaled = round(value * ten_to(type->scale));
    out->is_null = !(fabs(scaled) < 1e38);
    if (!out->is_null && type_slot_count(type) == 2) {
        out->i128 = (__int128)scaled;
    } else if (!out->is_null) {
        out->i64 = (int64_t)scaled;
    }
}

/* Casts a variance to the result type: integers are cut. */
static void variance_out(const struct accumulator *self, double value, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    const struct type *type = &self->call->result_type;
    const double result = is_deviation(self) ? sqrt(value) : value;
    if (type->kind == TYPE_DECIMAL) {
        decimal_out(self, result, out);
    } else if (type_is_integer(type)) {
        const bool fits = result >= -0x1p63 && result < 0x1p63;
        out->i64 = wrap(type->kind, fits ? (int64_t)result : (result > 0 ? INT64_MAX : 0));
    } else {
        real_out(self, result, out);
    }
}

static bool welford_result(const struct accumulator *self, const struct accumulator_state *state,
                           const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct welford *sum = at;
    const int64_t by = sum->count - is_sample(self);
    out->is_null = by <= 0;
    if (!out->is_null) {
        variance_out(self, sum->m2 / (double)by, out);
    }
    return true;
}

static const struct accumulator_ops welford_ops = {
    .bytes = sizeof(struct welford),
    .add = welford_add,
    .retract = welford_retract,
    .merge = welford_merge,
    .result = welford_result,
};

static void powers_step(const struct accumulator *self, struct power_sums *sum, const void *datum,
                        bool leaves)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(sum != NULL);
    ASSERT_SLOW(datum != NULL);
    sum->count += leaves ? -1 : 1;
    if (type_is_integer(&self->call->argument_type)) {
        const uint64_t value = (uint64_t)load_i64(datum);
        sum->sum[0] += leaves ? -value : value;
        sum->sum[1] += leaves ? -(value * value) : value * value;
        return;
    }
    double sums[2];
    memcpy(sums, sum->sum, sizeof(sums));
    const bool single = self->call->argument_type.kind == TYPE_FLOAT;
    const double value = real_datum(self, datum);
    const double square = single ? (double)(float)(value * value) : value * value;
    sums[0] = leaves ? sums[0] - value : (sum->seen != 0 ? sums[0] + value : value);
    sums[1] = leaves ? sums[1] - square : (sum->seen != 0 ? sums[1] + square : square);
    if (single) {
        sums[0] = (float)sums[0];
        sums[1] = (float)sums[1];
    }
    sum->seen = 1;
    memcpy(sum->sum, sums, sizeof(sums));
}

static bool powers_add(const struct accumulator *self, const struct accumulator_state *state,
                       void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    powers_step(self, at, datum, false);
    return true;
}

static bool powers_retract(const struct accumulator *self, const struct accumulator_state *state,
                           void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    powers_step(self, at, datum, true);
    return true;
}

/* (sum(x*x) - sum(x)*sum(x)/n) / n, each step in the argument's integer type. */
static void powers_integer(const struct accumulator *self, const struct power_sums *sum, int64_t by,
                           struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(sum != NULL);
    const enum type_kind kind = self->call->argument_type.kind;
    const int64_t total = wrap(kind, (int64_t)sum->sum[0]);
    const int64_t squares = wrap(kind, (int64_t)sum->sum[1]);
    const int64_t square = wrap(kind, (int64_t)((uint64_t)total * (uint64_t)total));
    const int64_t mean = wrap(kind, divide(square, sum->count));
    const int64_t spread = wrap(kind, (int64_t)((uint64_t)squares - (uint64_t)mean));
    const int64_t variance = divide(spread, by);
    if (is_deviation(self)) {
        variance_out(self, (double)variance, out);
    } else {
        out->i64 = wrap(kind, variance);
    }
}

static bool powers_result(const struct accumulator *self, const struct accumulator_state *state,
                          const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct power_sums *sum = at;
    const int64_t by = sum->count - is_sample(self);
    out->is_null = by <= 0;
    if (out->is_null) {
        return true;
    }
    if (type_is_integer(&self->call->argument_type)) {
        powers_integer(self, sum, by, out);
        return true;
    }
    double sums[2];
    memcpy(sums, sum->sum, sizeof(sums));
    variance_out(self, (sums[1] - sums[0] * sums[0] / (double)sum->count) / (double)by, out);
    return true;
}

static bool powers_merge(const struct accumulator *self, const struct accumulator_state *state,
                         void *at, const void *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    struct power_sums *sum = at;
    const struct power_sums *other = from;
    for (uint32_t i = 0; i < COUNT_OF(sum->sum); i++) {
        if (type_is_integer(&self->call->argument_type)) {
            sum->sum[i] += other->sum[i];
        } else {
            const double total = load_f64(&sum->sum[i]) + load_f64(&other->sum[i]);
            memcpy(&sum->sum[i], &total, sizeof(total));
        }
    }
    sum->count += other->count;
    sum->seen |= other->seen;
    return true;
}

static const struct accumulator_ops powers_ops = {
    .bytes = sizeof(struct power_sums),
    .add = powers_add,
    .retract = powers_retract,
    .merge = powers_merge,
    .result = powers_result,
};

static const struct accumulator_ops *sum_or_average(const struct type *type,
                                                    const struct accumulator_ops *integer,
                                                    const struct accumulator_ops *real,
                                                    const struct accumulator_ops *decimal)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    if (type_is_integer(type)) {
        return integer;
    }
    if (type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE) {
        return real;
    }
    return type->kind == TYPE_DECIMAL ? decimal : NULL;
}

const struct accumulator_ops *accumulator_number_ops(const struct aggregate_call *call,
                                                     bool is_over)
{
    ASSERT(call != NULL);
    const struct type *type = &call->argument_type;
    switch (call->function) {
    case AGGREGATE_COUNT:
        return &count_ops;
    case AGGREGATE_ROW_NUMBER:
    case AGGREGATE_RANK:
    case AGGREGATE_DENSE_RANK:
        return is_over ? &count_ops : NULL;
    case AGGREGATE_SUM:
        return sum_or_average(type, &sum_i64_ops, &sum_real_ops, &sum_decimal_ops);
    case AGGREGATE_AVG:
        return sum_or_average(type, &average_i64_ops, &average_real_ops, &average_decimal_ops);
    case AGGREGATE_STDDEV_POP:
    case AGGREGATE_STDDEV_SAMP:
    case AGGREGATE_VAR_POP:
    case AGGREGATE_VAR_SAMP:
        return is_over ? sum_or_average(type, &powers_ops, &powers_ops, NULL)
                       : sum_or_average(type, &welford_ops, &welford_ops, &welford_ops);
    default:
        return NULL;
    }
}
