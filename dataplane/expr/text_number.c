/* SPDX-License-Identifier: Apache-2.0 */
/* Printing of whole numbers and decimals, and reading of decimals. Doubles are in text_double.c
 * (printing) and text_parse.cc (reading). */
#include "dataplane/expr/text_number.h"

#include "dataplane/type.h"

#define POWER_MAX 38

__int128 decimal_power(uint32_t exponent)
{
    ASSERT(exponent <= POWER_MAX);
    __int128 power = 1;
    __int128 base = 10;
    while (exponent != 0) {
        if (exponent & 1) {
            power *= base;
        }
        exponent >>= 1;
        base = exponent != 0 ? base * base : base;
    }
    return power;
}

/* Writes digits backwards from `end`; at least one.
 * returns  how many */
static uint32_t digits_before(char *end, unsigned __int128 value)
{
    char *at = end;
    while (value > UINT64_MAX) {
        *--at = (char)('0' + (int)(value % 10));
        value /= 10;
    }
    uint64_t small = (uint64_t)value;
    do {
        *--at = (char)('0' + (int)(small % 10));
        small /= 10;
    } while (small != 0);
    return (uint32_t)(end - at);
}

uint32_t integer_print(int64_t value, char into[static INTEGER_TEXT_BYTES])
{
    ASSERT(into != NULL);
    char buffer[INTEGER_TEXT_BYTES];
    char *end = buffer + sizeof(buffer);
    const uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint32_t bytes = digits_before(end, magnitude);
    if (value < 0) {
        bytes++;
        *(end - bytes) = '-';
    }
    memcpy(into, end - bytes, bytes);
    return bytes;
}

uint32_t decimal_print(__int128 unscaled, uint8_t scale, char into[static DECIMAL_TEXT_BYTES])
{
    ASSERT(scale <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT(scale <= POWER_MAX);
    char buffer[DECIMAL_TEXT_BYTES];
    char *end = buffer + sizeof(buffer);
    const bool negative = unscaled < 0;
    const unsigned __int128 magnitude =
        negative ? -(unsigned __int128)unscaled : (unsigned __int128)unscaled;
    uint32_t digits = digits_before(end, magnitude);
    while (digits < (uint32_t)scale + 1) {
        digits++;
        *(end - digits) = '0';
    }
    const uint32_t whole = digits - scale;
    uint32_t at = 0;
    if (negative) {
        into[at++] = '-';
    }
    memcpy(into + at, end - digits, whole);
    at += whole;
    if (scale != 0) {
        into[at++] = '.';
        memcpy(into + at, end - scale, scale);
        at += scale;
    }
    ASSERT(at <= DECIMAL_TEXT_BYTES);
    return at;
}

/* Scientific form: one digit, a point if more follow, E, a sign always, the exponent. */
static uint32_t print_scientific(unsigned __int128 magnitude, int32_t exponent, char *into)
{
    ASSERT_SLOW(into != NULL);
    char buffer[DECIMAL_TEXT_BYTES];
    const uint32_t digits = digits_before(buffer + sizeof(buffer), magnitude);
    const char *from = buffer + sizeof(buffer) - digits;
    uint32_t at = 0;
    into[at++] = from[0];
    if (digits > 1) {
        into[at++] = '.';
        memcpy(into + at, from + 1, digits - 1);
        at += digits - 1;
    }
    const int32_t adjusted = exponent + (int32_t)digits - 1;
    if (adjusted == 0) {
        return at;
    }
    into[at++] = 'E';
    if (adjusted > 0) {
        into[at++] = '+';
    }
    return at + integer_print(adjusted, into + at);
}

uint32_t decimal_print_stripped(__int128 unscaled, uint8_t scale,
                                char into[static DECIMAL_TEXT_BYTES])
{
    ASSERT_SLOW(scale <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT(scale <= POWER_MAX);
    if (unscaled == 0) {
        into[0] = '0';
        return 1;
    }
    int32_t stripped = scale;
    while (unscaled % 10 == 0) {
        unscaled /= 10;
        stripped--;
    }
    const bool negative = unscaled < 0;
    const unsigned __int128 magnitude =
        negative ? -(unsigned __int128)unscaled : (unsigned __int128)unscaled;
    char buffer[DECIMAL_TEXT_BYTES];
    const int32_t digits = (int32_t)digits_before(buffer + sizeof(buffer), magnitude);
    /* BigDecimal: plain from 10^-7 upward unless the scale is negative. */
    if (stripped >= 0 && digits - 1 - stripped >= -6) {
        return decimal_print(unscaled, (uint8_t)stripped, into);
    }
    if (negative) {
        into[0] = '-';
    }
    return (negative ? 1 : 0) + print_scientific(magnitude, -stripped, into + (negative ? 1 : 0));
}

/* A decimal being read: digits without leading zeros, at most one more than can matter. */
struct decimal_digits {
    unsigned __int128 value;
    uint32_t count;
    bool half_up;     /* the first digit cut was 5 or more; only with cut */
    bool cut;         /* digits were dropped after count reached the cap */
    int64_t exponent; /* of ten, for value */
};

#define DIGITS_CAP    38
#define EXPONENT_CAP  100000 /* beyond it any value is an overflow or zero */
#define TEXT_LONG_MAX 1000000

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static void take_digit(struct decimal_digits *out, uint8_t digit, bool fraction)
{
    ASSERT_SLOW(out != NULL);
    if (out->count == DIGITS_CAP) {
        if (!out->cut) {
            out->cut = true;
            out->half_up = digit >= 5;
        }
        out->exponent += fraction ? 0 : 1;
        return;
    }
    out->value = out->value * 10 + digit;
    out->count += out->value != 0 ? 1 : 0;
    out->exponent -= fraction ? 1 : 0;
}

static bool read_exponent(struct span text, size_t at, int64_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    bool negative = false;
    if (at < text.bytes && (text.data[at] == '+' || text.data[at] == '-')) {
        negative = text.data[at++] == '-';
    }
    if (at == text.bytes) {
        return false;
    }
    int64_t exponent = 0;
    for (; at < text.bytes; at++) {
        if (!is_digit(text.data[at])) {
            return false;
        }
        exponent = exponent * 10 + (text.data[at] - '0');
        if (exponent > INT32_MAX) {
            return false;
        }
    }
    *out = negative ? -exponent : exponent;
    return true;
}

static bool read_digits(struct span text, size_t at, struct decimal_digits *out)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    bool any = false;
    bool fraction = false;
    for (; at < text.bytes; at++) {
        const uint8_t c = text.data[at];
        if (is_digit(c)) {
            any = true;
            take_digit(out, (uint8_t)(c - '0'), fraction);
        } else if (c == '.' && !fraction) {
            fraction = true;
        } else if ((c == 'e' || c == 'E') && any) {
            int64_t exponent;
            if (!read_exponent(text, at + 1, &exponent)) {
                return false;
            }
            out->exponent += exponent;
            return true;
        } else {
            return false;
        }
    }
    return any;
}

/* Brings digits to the scale, half away from zero.
 * returns  false when more than precision digits remain */
static bool scale_digits(const struct decimal_digits *in, uint8_t precision, uint8_t scale,
                         unsigned __int128 *out)
{
    ASSERT_SLOW(precision <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT_SLOW(scale <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT_SLOW(in != NULL);
    ASSERT_SLOW(out != NULL);
    const int64_t shift = in->exponent + scale;
    unsigned __int128 value = in->value;
    if (value == 0 || shift < -(int64_t)DIGITS_CAP) {
        *out = 0;
        return true;
    }
    if (shift > 0) {
        if ((int64_t)in->count + shift > precision) {
            return false;
        }
        value *= (unsigned __int128)decimal_power((uint32_t)shift);
    } else if (shift < 0) {
        const unsigned __int128 power = (unsigned __int128)decimal_power((uint32_t)-shift);
        const unsigned __int128 rest = value % power;
        value = value / power + (rest >= power - rest ? 1 : 0);
    } else if (in->cut && in->half_up) {
        value++;
    }
    *out = value;
    return value < (unsigned __int128)decimal_power(precision);
}

enum decimal_verdict decimal_parse(struct span text, uint8_t precision, uint8_t scale,
                                   __int128 *out)
{
    ASSERT_SLOW(precision <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT(precision >= 1 && precision <= TYPE_DECIMAL_PRECISION_MAX);
    ASSERT(scale <= precision);
    struct decimal_digits digits = {.value = 0};
    const bool negative = text.bytes != 0 && text.data[0] == '-';
    const size_t start = negative || (text.bytes != 0 && text.data[0] == '+') ? 1 : 0;
    if (text.bytes > TEXT_LONG_MAX || !read_digits(text, start, &digits)) {
        return DECIMAL_BAD;
    }
    unsigned __int128 magnitude;
    if (!scale_digits(&digits, precision, scale, &magnitude)) {
        return DECIMAL_OVERFLOW;
    }
    *out = negative ? -(__int128)magnitude : (__int128)magnitude;
    return DECIMAL_OK;
}
