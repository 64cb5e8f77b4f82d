/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles and floats as JDK 17 prints them. That is Steele and White's free-format digit generation
 * with fixed quirks, all of which show in output and are kept:
 *   - whole numbers below 2^63 take a path of their own, cut by powers of ten;
 *   - in exponent form at least two digits are made, even where one reads back;
 *   - with small operands the upper limit is exclusive, with large ones it is inclusive;
 *   - a step size that overflows its 32 or 64 bits ends the digits, and so may a tie be misjudged.
 * Operands are B (the rest), S (the divisor) and M (half a unit in the last place), as in the
 * paper. */
#include "dataplane/expr/text_number.h"

#define MANTISSA_BITS  52
#define DIGITS_MAX     24
#define SMALL_EXPONENT 62  /* whole numbers below 2^63 */
#define SMALL_NEGATIVE -21 /* 63 / 3 */
#define FIVE_POWERS    27  /* 5^0 to 5^26 fit 64 bits */
#define WIDE_BITS      118 /* operands of the 128-bit path */
#define BIG_LIMBS      48

struct digits {
    uint8_t digit[DIGITS_MAX];
    uint32_t count;
    int32_t point; /* the value is 0.d1d2d3… times 10^point */
};

/* A positive finite value: mantissa with its leading 1 at bit 52, binary exponent. */
struct parts {
    uint64_t mantissa;
    int32_t exponent;
    int32_t significant; /* bits that the source format holds */
};

/* The scaled operands of one value. */
struct operands {
    uint64_t mantissa; /* without trailing zeros */
    int32_t mantissa_bits;
    int32_t b2, b5, s2, s5, m2;
    int32_t ten; /* decimal exponent of the first digit */
};

/* What the digit loop ends with. */
struct ending {
    bool low;
    bool high;
    int rest; /* sign of twice the rest against the divisor */
};

static int32_t bits_of_five_power(int32_t power)
{
    static const uint8_t bits[FIVE_POWERS] = {0,  3,  5,  7,  10, 12, 14, 17, 19,
                                              21, 24, 26, 28, 31, 33, 35, 38, 40,
                                              42, 45, 47, 49, 52, 54, 56, 59, 61};
    ASSERT(power >= 0);
    return power < FIVE_POWERS ? bits[power] : power * 3;
}

static uint64_t five_power(int32_t power)
{
    ASSERT(power >= 0 && power < FIVE_POWERS + 1);
    uint64_t value = 1;
    for (int32_t i = 0; i < power; i++) {
        value *= 5;
    }
    return value;
}

static void round_up(struct digits *out)
{
    ASSERT_SLOW(out != NULL);
    uint32_t i = out->count - 1;
    while (out->digit[i] == 9 && i > 0) {
        out->digit[i--] = 0;
    }
    if (out->digit[i] == 9) {
        out->digit[0] = 1;
        out->point++;
    } else {
        out->digit[i]++;
    }
}

/* Digits of a whole number whose last `dropped` digits the format cannot tell. */
static void whole_digits(uint64_t value, int32_t dropped, struct digits *out)
{
    ASSERT_SLOW(out != NULL);
    if (dropped > 0) {
        const uint64_t power = (uint64_t)decimal_power((uint32_t)dropped);
        const uint64_t rest = value % power;
        value = value / power + (rest >= power >> 1 ? 1 : 0);
    }
    char text[INTEGER_TEXT_BYTES];
    const uint32_t count = integer_print((int64_t)value, text);
    out->point = (int32_t)count + dropped;
    out->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        out->digit[i] = (uint8_t)(text[i] - '0');
        out->count = out->digit[i] != 0 ? i + 1 : out->count;
    }
    out->count = out->count == 0 ? 1 : out->count;
}

/* Decimal digits that 2^power outgrows: floor(power * log10 2), from 2^4 on. */
static int32_t droppable_digits(int32_t power)
{
    return power < 4 ? 0 : (int32_t)((int64_t)power * 30103 / 100000);
}

static bool whole_number(const struct parts *in, int32_t mantissa_bits, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    if (in->exponent < mantissa_bits - 1 || in->exponent > SMALL_EXPONENT) {
        return false;
    }
    const int32_t dropped =
        in->exponent > in->significant ? droppable_digits(in->exponent - in->significant - 1) : 0;
    const uint64_t value = in->exponent >= MANTISSA_BITS
                               ? in->mantissa << (in->exponent - MANTISSA_BITS)
                               : in->mantissa >> (MANTISSA_BITS - in->exponent);
    whole_digits(value, dropped, out);
    return true;
}

static int32_t estimate_ten(uint64_t mantissa, int32_t exponent)
{
    const uint64_t bits =
        (UINT64_C(1023) << MANTISSA_BITS) | (mantissa & ((UINT64_C(1) << MANTISSA_BITS) - 1));
    double fraction;
    memcpy(&fraction, &bits, sizeof(fraction));
    const double estimate =
        (fraction - 1.5) * 0.289529654 + 0.176091259 + (double)exponent * 0.301029995663981;
    const int32_t cut = (int32_t)estimate;
    return estimate < 0 && (double)cut != estimate ? cut - 1 : cut;
}

static struct operands scale(const struct parts *in, int32_t mantissa_bits)
{
    ASSERT_SLOW(in != NULL);
    const int32_t fraction_bits =
        mantissa_bits - in->exponent - 1 > 0 ? mantissa_bits - in->exponent - 1 : 0;
    struct operands out = {
        .mantissa = in->mantissa >> (MANTISSA_BITS + 1 - mantissa_bits),
        .mantissa_bits = mantissa_bits,
        .ten = estimate_ten(in->mantissa, in->exponent),
    };
    out.b5 = out.ten < 0 ? -out.ten : 0;
    out.s5 = out.ten > 0 ? out.ten : 0;
    out.b2 = out.b5 + fraction_bits + in->exponent;
    out.s2 = out.s5 + fraction_bits;
    out.m2 = out.b2 - in->significant;
    out.b2 -= mantissa_bits - 1;
    const int32_t common = out.b2 < out.s2 ? out.b2 : out.s2;
    out.b2 -= common;
    out.s2 -= common;
    out.m2 -= common;
    if (mantissa_bits == 1) {
        out.m2 -= 1; /* below a power of two the gap is half as wide */
    }
    if (out.m2 < 0) {
        out.b2 -= out.m2;
        out.s2 -= out.m2;
        out.m2 = 0;
    }
    return out;
}

static bool exponent_form(int32_t ten)
{
    return ten < -3 || ten >= 8;
}

static int64_t narrow(uint64_t value, bool is_int)
{
    return is_int ? (int32_t)(uint32_t)value : (int64_t)value;
}

/* 32- and 64-bit operands; the wrap of m is part of the result. */
static struct ending small_digits(struct operands *in, bool is_int, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    int64_t b = narrow((in->mantissa * five_power(in->b5)) << in->b2, is_int);
    const int64_t s = narrow(five_power(in->s5) << in->s2, is_int);
    int64_t m = narrow(five_power(in->b5) << in->m2, is_int);
    const int64_t tens = narrow((uint64_t)s * 10, is_int);
    int64_t q = b / s;
    b = 10 * (b % s);
    m = narrow((uint64_t)m * 10, is_int);
    struct ending end = {.low = b<m, .high = narrow((uint64_t)b + (uint64_t)m, is_int)> tens};
    if (q == 0 && !end.high) {
        in->ten--;
    } else {
        out->digit[out->count++] = (uint8_t)q;
    }
    if (exponent_form(in->ten)) {
        end.low = end.high = false;
    }
    while (!end.low && !end.high) {
        q = b / s;
        b = 10 * (b % s);
        m = narrow((uint64_t)m * 10, is_int);
        end.low = m <= 0 || b < m;
        end.high = m <= 0 || narrow((uint64_t)b + (uint64_t)m, is_int) > tens;
        ASSERT(out->count < DIGITS_MAX);
        out->digit[out->count++] = (uint8_t)q;
    }
    const int64_t rest = narrow(((uint64_t)b << 1) - (uint64_t)tens, is_int);
    end.rest = rest < 0 ? -1 : rest > 0;
    return end;
}

static unsigned __int128 wide_five_power(int32_t power)
{
    unsigned __int128 value = 1;
    for (int32_t i = 0; i < power; i++) {
        value *= 5;
    }
    return value;
}

/* Operands of up to 118 bits; otherwise as big_digits. */
static struct ending wide_digits(struct operands *in, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    const unsigned __int128 five = wide_five_power(in->b5);
    unsigned __int128 b = (five * in->mantissa) << in->b2;
    const unsigned __int128 s = wide_five_power(in->s5) << in->s2;
    unsigned __int128 m = five << in->m2;
    const unsigned __int128 tens = s * 10;
    uint32_t q = (uint32_t)(b / s);
    b = 10 * (b % s);
    m *= 10;
    struct ending end = {.low = b < m, .high = b + m >= tens};
    if (q == 0 && !end.high) {
        in->ten--;
    } else {
        out->digit[out->count++] = (uint8_t)q;
    }
    if (exponent_form(in->ten)) {
        end.low = end.high = false;
    }
    while (!end.low && !end.high) {
        for (q = 0; b >= s; q++) {
            b -= s;
        }
        b *= 10;
        m *= 10;
        end.low = b < m;
        end.high = b + m >= tens;
        ASSERT(out->count < DIGITS_MAX);
        out->digit[out->count++] = (uint8_t)q;
    }
    end.rest = b << 1 < tens ? -1 : b << 1 > tens;
    return end;
}

/* An unsigned number of up to 1,536 bits, low limb first. */
struct big {
    uint32_t limb[BIG_LIMBS];
    uint32_t count;
};

static void big_multiply(struct big *value, uint32_t factor)
{
    ASSERT_SLOW(value->count <= BIG_LIMBS);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < value->count; i++) {
        carry += (uint64_t)value->limb[i] * factor;
        value->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0) {
        ASSERT(value->count < BIG_LIMBS);
        value->limb[value->count++] = (uint32_t)carry;
    }
}

static void big_shift(struct big *value, uint32_t bits)
{
    ASSERT_SLOW(value->count <= BIG_LIMBS);
    const uint32_t limbs = bits / 32;
    ASSERT(value->count + limbs < BIG_LIMBS);
    memmove(value->limb + limbs, value->limb, value->count * sizeof(uint32_t));
    memset(value->limb, 0, limbs * sizeof(uint32_t));
    value->count += limbs;
    if (bits % 32 != 0) {
        big_multiply(value, UINT32_C(1) << (bits % 32));
    }
}

static struct big big_make(uint64_t mantissa, int32_t five, int32_t two)
{
    struct big value = {.limb = {(uint32_t)mantissa, (uint32_t)(mantissa >> 32)}, .count = 2};
    while (five >= 13) {
        big_multiply(&value, 1220703125);
        five -= 13;
    }
    big_multiply(&value, (uint32_t)five_power(five));
    big_shift(&value, (uint32_t)two);
    return value;
}

static uint32_t big_limb(const struct big *value, uint32_t index)
{
    ASSERT_SLOW(value->count <= BIG_LIMBS);
    return index < value->count ? value->limb[index] : 0;
}

static int big_compare(const struct big *a, const struct big *b)
{
    ASSERT_SLOW(a->count <= BIG_LIMBS);
    ASSERT_SLOW(b->count <= BIG_LIMBS);
    uint32_t i = a->count > b->count ? a->count : b->count;
    while (i-- > 0) {
        const uint32_t left = big_limb(a, i);
        const uint32_t right = big_limb(b, i);
        if (left != right) {
            return left < right ? -1 : 1;
        }
    }
    return 0;
}

static struct big big_add(const struct big *a, const struct big *b)
{
    struct big sum = {.count = (a->count > b->count ? a->count : b->count) + 1};
    ASSERT(sum.count <= BIG_LIMBS);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < sum.count; i++) {
        carry += (uint64_t)big_limb(a, i) + big_limb(b, i);
        sum.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return sum;
}

static void big_subtract(struct big *a, const struct big *b)
{
    ASSERT_SLOW(a->count <= BIG_LIMBS);
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        borrow += (int64_t)a->limb[i] - (int64_t)big_limb(b, i);
        a->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    ASSERT(borrow == 0);
}

/* Takes the next digit off b and scales the rest by ten. */
static uint8_t big_digit(struct big *b, const struct big *s)
{
    uint8_t digit = 0;
    while (big_compare(b, s) >= 0) {
        big_subtract(b, s);
        digit++;
    }
    big_multiply(b, 10);
    ASSERT(digit <= 10);
    return digit;
}

static bool reaches(const struct big *b, const struct big *m, const struct big *tens)
{
    const struct big sum = big_add(b, m);
    return big_compare(&sum, tens) >= 0;
}

static struct ending big_digits(struct operands *in, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    struct big b = big_make(in->mantissa, in->b5, in->b2);
    const struct big s = big_make(1, in->s5, in->s2);
    struct big m = big_make(1, in->b5, in->m2);
    struct big tens = s;
    big_multiply(&tens, 10);
    uint8_t q = big_digit(&b, &s);
    big_multiply(&m, 10);
    struct ending end = {.low = big_compare(&b, &m) < 0, .high = reaches(&b, &m, &tens)};
    if (q == 0 && !end.high) {
        in->ten--;
    } else {
        out->digit[out->count++] = q;
    }
    if (exponent_form(in->ten)) {
        end.low = end.high = false;
    }
    while (!end.low && !end.high) {
        q = big_digit(&b, &s);
        big_multiply(&m, 10);
        end.low = big_compare(&b, &m) < 0;
        end.high = reaches(&b, &m, &tens);
        ASSERT(out->count < DIGITS_MAX);
        out->digit[out->count++] = q;
    }
    big_shift(&b, 1);
    end.rest = big_compare(&b, &tens);
    return end;
}

static struct ending generate(struct operands *in, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    const int32_t b_bits = in->mantissa_bits + in->b2 + bits_of_five_power(in->b5);
    const int32_t tens_bits = in->s2 + 1 + bits_of_five_power(in->s5 + 1);
    if (b_bits < 64 && tens_bits < 64) {
        return small_digits(in, b_bits < 32 && tens_bits < 32, out);
    }
    if (b_bits < WIDE_BITS && tens_bits < WIDE_BITS) {
        return wide_digits(in, out);
    }
    return big_digits(in, out);
}

static void develop(const struct parts *in, struct digits *out)
{
    ASSERT_SLOW(in != NULL);
    const int32_t mantissa_bits = MANTISSA_BITS + 1 - __builtin_ctzll(in->mantissa);
    if (in->exponent <= SMALL_EXPONENT && in->exponent >= SMALL_NEGATIVE &&
        whole_number(in, mantissa_bits, out)) {
        return;
    }
    struct operands operands = scale(in, mantissa_bits);
    const struct ending end = generate(&operands, out);
    out->point = operands.ten + 1;
    const bool odd = (out->digit[out->count - 1] & 1) != 0;
    if (end.high && (!end.low || end.rest > 0 || (end.rest == 0 && odd))) {
        round_up(out);
    }
}

static uint32_t put_zeros(char *into, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        into[i] = '0';
    }
    return count > 0 ? (uint32_t)count : 0;
}

static uint32_t put_digits(char *into, const uint8_t *digit, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        into[i] = (char)('0' + digit[i]);
    }
    return count;
}

/* One digit or more before the point: 10^7 > value >= 1. */
static uint32_t put_plain(const struct digits *in, char *into)
{
    ASSERT_SLOW(in->count <= DIGITS_MAX);
    ASSERT_SLOW(into != NULL);
    const uint32_t whole = (uint32_t)in->point;
    const uint32_t before = in->count < whole ? in->count : whole;
    uint32_t at = put_digits(into, in->digit, before);
    at += put_zeros(into + at, (int32_t)(whole - before));
    into[at++] = '.';
    if (before == in->count) {
        into[at++] = '0';
        return at;
    }
    return at + put_digits(into + at, in->digit + before, in->count - before);
}

static uint32_t put(const struct digits *in, char *into)
{
    ASSERT_SLOW(in->count <= DIGITS_MAX);
    ASSERT(in->count > 0);
    if (in->point > 0 && in->point < 8) {
        return put_plain(in, into);
    }
    uint32_t at = 0;
    if (in->point <= 0 && in->point > -3) {
        into[at++] = '0';
        into[at++] = '.';
        at += put_zeros(into + at, -in->point);
        return at + put_digits(into + at, in->digit, in->count);
    }
    into[at++] = (char)('0' + in->digit[0]);
    into[at++] = '.';
    if (in->count == 1) {
        into[at++] = '0';
    } else {
        at += put_digits(into + at, in->digit + 1, in->count - 1);
    }
    into[at++] = 'E';
    return at + integer_print(in->point - 1, into + at);
}

static uint32_t put_word(const char *word, char *into)
{
    const size_t bytes = strlen(word);
    memcpy(into, word, bytes);
    return (uint32_t)bytes;
}

/* Prints sign and value; mantissa 0 is zero. */
static uint32_t print_parts(bool negative, const struct parts *in, char *into)
{
    ASSERT_SLOW(in != NULL);
    uint32_t at = 0;
    if (negative) {
        into[at++] = '-';
    }
    if (in->mantissa == 0) {
        return at + put_word("0.0", into + at);
    }
    struct digits digits = {.count = 0};
    develop(in, &digits);
    return at + put(&digits, into + at);
}

/* Moves the leading 1 of a subnormal's mantissa to bit 52. */
static void normalize(struct parts *parts, int32_t exponent_min)
{
    ASSERT_SLOW(parts != NULL);
    const int32_t leading = __builtin_clzll(parts->mantissa);
    const int32_t shift = leading - (63 - MANTISSA_BITS);
    parts->mantissa <<= shift;
    parts->exponent = exponent_min - shift;
    parts->significant -= shift;
}

uint32_t double_print(double value, char into[static DOUBLE_TEXT_BYTES])
{
    ASSERT(into != NULL);
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const bool negative = bits >> 63 != 0;
    const int32_t exponent = (int32_t)(bits >> MANTISSA_BITS & 0x7ff);
    struct parts parts = {
        .mantissa = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1),
        .exponent = exponent - 1023,
        .significant = MANTISSA_BITS + 1,
    };
    if (exponent == 0x7ff) {
        return put_word(parts.mantissa != 0 ? "NaN" : negative ? "-Infinity" : "Infinity", into);
    }
    if (exponent != 0) {
        parts.mantissa |= UINT64_C(1) << MANTISSA_BITS;
    } else if (parts.mantissa != 0) {
        normalize(&parts, -1022);
    }
    return print_parts(negative, &parts, into);
}

uint32_t float_print(float value, char into[static DOUBLE_TEXT_BYTES])
{
    ASSERT(into != NULL);
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const bool negative = bits >> 31 != 0;
    const int32_t exponent = (int32_t)(bits >> 23 & 0xff);
    struct parts parts = {
        .mantissa = (uint64_t)(bits & 0x7fffff) << (MANTISSA_BITS - 23),
        .exponent = exponent - 127,
        .significant = 24,
    };
    if (exponent == 0xff) {
        return put_word(parts.mantissa != 0 ? "NaN" : negative ? "-Infinity" : "Infinity", into);
    }
    if (exponent != 0) {
        parts.mantissa |= UINT64_C(1) << MANTISSA_BITS;
    } else if (parts.mantissa != 0) {
        normalize(&parts, -126);
    }
    return print_parts(negative, &parts, into);
}
