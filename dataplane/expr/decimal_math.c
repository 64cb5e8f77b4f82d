/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal arithmetic; see decimal_internal.h. Products and scaled values of up to 76 digits live in
 * 256 bits; whatever fits 128 bits takes a shorter way with the same result. */
#include "dataplane/expr/decimal_internal.h"

#define DIGITS 38

typedef unsigned __int128 wide;

/* high * 2^128 + low. */
struct wider {
    wide high;
    wide low;
};

static wide magnitude_of(__int128 value)
{
    return value < 0 ? -(wide)value : (wide)value;
}

static wide power_of(uint32_t exponent)
{
    return (wide)decimal_power(exponent);
}

static struct wider multiply(wide a, wide b)
{
    const wide mask = UINT64_MAX;
    const wide low = (a & mask) * (b & mask);
    const wide left = (a >> 64) * (b & mask);
    const wide right = (a & mask) * (b >> 64);
    const wide middle = (low >> 64) + (left & mask) + (right & mask);
    return (struct wider){
        .high = (a >> 64) * (b >> 64) + (left >> 64) + (right >> 64) + (middle >> 64),
        .low = (low & mask) | middle << 64,
    };
}

static int compare(struct wider a, struct wider b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return (a.low > b.low) - (a.low < b.low);
}

/* Divides bit by bit; the quotient must fit 128 bits.
 * returns  false when it does not */
static bool divide(struct wider value, wide divisor, wide *quotient, wide *rest)
{
    ASSERT(divisor != 0);
    if (value.high >= divisor) {
        return false;
    }
    wide r = value.high;
    wide q = 0;
    if (r == 0) {
        *quotient = value.low / divisor;
        *rest = value.low % divisor;
        return true;
    }
    for (uint32_t bit = 128; bit-- > 0;) {
        const bool carry = r >> 127 != 0;
        r = r << 1 | (value.low >> bit & 1);
        q <<= 1;
        if (carry || r >= divisor) {
            r -= divisor;
            q |= 1;
        }
    }
    *quotient = q;
    *rest = r;
    return true;
}

static wide half_up(wide quotient, wide rest, wide divisor)
{
    return quotient + (rest >= divisor - rest ? 1 : 0);
}

static bool settle(wide magnitude, bool negative, uint8_t precision, __int128 *out)
{
    ASSERT_SLOW(precision <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT(precision >= 1 && precision <= DIGITS);
    if (magnitude >= power_of(precision)) {
        return false;
    }
    *out = negative ? -(__int128)magnitude : (__int128)magnitude;
    return true;
}

/* Takes value * 10^shift, rounding when shift is negative.
 * returns  false when it passes 38 digits by far */
static bool shift_digits(struct wider value, int32_t shift, wide *out)
{
    ASSERT_SLOW(out != NULL);
    if (shift == 0 || (value.high == 0 && value.low == 0)) {
        *out = value.low;
        return value.high == 0;
    }
    if (shift > 0) {
        if (value.high != 0 || shift > DIGITS) {
            return false;
        }
        const struct wider product = multiply(value.low, power_of((uint32_t)shift));
        *out = product.low;
        return product.high == 0;
    }
    wide quotient;
    wide rest;
    while (shift < -DIGITS) {
        /* Digits that far down cannot round up what 10^38 more will cut. */
        if (!divide(value, power_of(DIGITS), &quotient, &rest)) {
            return false;
        }
        value = (struct wider){.low = quotient};
        shift += DIGITS;
    }
    const wide power = power_of((uint32_t)-shift);
    if (!divide(value, power, &quotient, &rest)) {
        return false;
    }
    *out = half_up(quotient, rest, power);
    return true;
}

int decimal_compare(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale)
{
    if (a_scale == b_scale || (a < 0) != (b < 0)) {
        return (a > b) - (a < b);
    }
    const bool left = a_scale < b_scale;
    const struct wider x =
        multiply(magnitude_of(a), power_of(left ? (uint32_t)(b_scale - a_scale) : 0));
    const struct wider y =
        multiply(magnitude_of(b), power_of(left ? 0 : (uint32_t)(a_scale - b_scale)));
    const int order = compare(x, y);
    return a < 0 ? -order : order;
}

bool decimal_rescale(__int128 value, uint8_t from_scale, struct decimal_shape to, __int128 *out)
{
    wide magnitude;
    const struct wider wider = {.low = magnitude_of(value)};
    return shift_digits(wider, (int32_t)to.scale - from_scale, &magnitude) &&
           settle(magnitude, value < 0, to.precision, out);
}

/* Adds signed magnitudes of one scale, up to 76 digits each. */
static struct wider add_signed(struct wider a, bool a_negative, struct wider b, bool b_negative,
                               bool *negative)
{
    if (a_negative == b_negative) {
        const struct wider sum = {.low = a.low + b.low,
                                  .high = a.high + b.high + (a.low + b.low < a.low ? 1 : 0)};
        *negative = a_negative;
        return sum;
    }
    const bool swap = compare(a, b) < 0;
    const struct wider large = swap ? b : a;
    const struct wider small = swap ? a : b;
    *negative = swap ? b_negative : a_negative;
    return (struct wider){.low = large.low - small.low,
                          .high = large.high - small.high - (large.low < small.low ? 1 : 0)};
}

bool decimal_add(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale, struct decimal_shape to,
                 __int128 *out)
{
    const uint8_t scale = a_scale > b_scale ? a_scale : b_scale;
    bool negative;
    wide magnitude;
    const struct wider sum = add_signed(
        multiply(magnitude_of(a), power_of((uint32_t)(scale - a_scale))), a < 0,
        multiply(magnitude_of(b), power_of((uint32_t)(scale - b_scale))), b < 0, &negative);
    return shift_digits(sum, (int32_t)to.scale - scale, &magnitude) &&
           settle(magnitude, negative, to.precision, out);
}

bool decimal_multiply(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                      struct decimal_shape to, __int128 *out)
{
    wide magnitude;
    const struct wider product = multiply(magnitude_of(a), magnitude_of(b));
    return shift_digits(product, (int32_t)to.scale - a_scale - b_scale, &magnitude) &&
           settle(magnitude, (a < 0) != (b < 0), to.precision, out);
}

static uint32_t count_digits(wide value)
{
    uint32_t digits = 1;
    while (digits < DIGITS && value >= power_of(digits)) {
        digits++;
    }
    return digits;
}

/* a * 10^shift / b to 38 digits; shift is found here. */
static wide divide_fully(wide a, wide b, int32_t *shift)
{
    ASSERT_SLOW(shift != NULL);
    /* One digit short of certain to be enough, then one more if need be. */
    int32_t k = DIGITS - 1 + (int32_t)count_digits(b) - (int32_t)count_digits(a);
    wide quotient = 0;
    wide rest = 0;
    for (;; k++) {
        struct wider value;
        if (k <= DIGITS) {
            value = multiply(a, power_of((uint32_t)k));
        } else {
            value = multiply(a * power_of((uint32_t)(k - DIGITS)), power_of(DIGITS));
        }
        const bool fits = divide(value, b, &quotient, &rest);
        ASSERT(fits);
        if (quotient >= power_of(DIGITS - 1)) {
            break;
        }
    }
    quotient = half_up(quotient, rest, b);
    if (quotient == power_of(DIGITS)) {
        quotient /= 10;
        k--;
    }
    *shift = k;
    return quotient;
}

bool decimal_divide(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                    struct decimal_shape to, __int128 *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT(b != 0);
    if (a == 0) {
        *out = 0;
        return true;
    }
    const bool negative = (a < 0) != (b < 0);
    const wide divisor = magnitude_of(b);
    const wide dividend = magnitude_of(a);
    const int32_t wanted = (int32_t)to.scale - a_scale + b_scale;
    /* Rounding twice cannot show where the quotient has up to 18 digits and the divisor 63 bits:
     * the rest then differs from a half by more than the first rounding moves it. */
    if (wanted >= 0 && wanted <= 19 && dividend < power_of(18) && divisor < (wide)1 << 63) {
        const wide value = dividend * power_of((uint32_t)wanted);
        const wide quotient = value / divisor;
        if (quotient < power_of(18)) {
            return settle(half_up(quotient, value % divisor, divisor), negative, to.precision, out);
        }
    }
    int32_t shift;
    wide magnitude;
    const struct wider quotient = {.low = divide_fully(dividend, divisor, &shift)};
    return shift_digits(quotient, wanted - shift, &magnitude) &&
           settle(magnitude, negative, to.precision, out);
}

/* value mod divisor of a value below 2^256, bit by bit from the top. */
static wide modulo(struct wider value, wide divisor)
{
    wide quotient;
    wide rest;
    const bool fits = divide((struct wider){.high = value.high % divisor, .low = value.low},
                             divisor, &quotient, &rest);
    ASSERT(fits);
    return rest;
}

bool decimal_remainder(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                       struct decimal_shape to, __int128 *out)
{
    ASSERT(b != 0);
    const uint8_t scale = a_scale > b_scale ? a_scale : b_scale;
    const struct wider dividend = multiply(magnitude_of(a), power_of((uint32_t)(scale - a_scale)));
    const struct wider divisor = multiply(magnitude_of(b), power_of((uint32_t)(scale - b_scale)));
    wide rest = dividend.low;
    if (compare(dividend, divisor) >= 0) {
        /* The divisor is not larger; it passes 128 bits only when the dividend does too, and then
         * Flink's MathContext has no digits for it either. */
        if (divisor.high != 0) {
            return false;
        }
        rest = modulo(dividend, divisor.low);
    } else if (dividend.high != 0) {
        return false;
    }
    wide magnitude;
    return shift_digits((struct wider){.low = rest}, (int32_t)to.scale - scale, &magnitude) &&
           settle(magnitude, a < 0, to.precision, out);
}
