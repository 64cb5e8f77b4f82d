/* SPDX-License-Identifier: Apache-2.0 */
/* One scalar of a document into one column's value, by Flink's rules per type: which kinds of
 * token it takes, what it converts quietly, and what it calls an error. STRING is not here: its
 * text is written by the walkers. */
#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/format/json_internal.h"

#define NUMBER_BYTES_MAX 128

/* Cuts bytes up to the space on both sides, as Java's String.trim. */
static struct span trim(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    while (text.bytes != 0 && text.data[0] <= ' ') {
        text.data++;
        text.bytes--;
    }
    while (text.bytes != 0 && text.data[text.bytes - 1] <= ' ') {
        text.bytes--;
    }
    return text;
}

/* Java reads the decimal digits of every script; these are their zeros in the basic plane. */
static const uint16_t ZEROS[] = {
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
};

/* The digit that starts at a byte past 0x7f, as ASCII; 0 when it is none. */
static uint8_t script_digit(const uint8_t *at, size_t left, size_t *bytes)
{
    ASSERT_SLOW(*at >= 0x80);
    ASSERT_SLOW(left > 0);
    *bytes = *at < 0xe0 ? 2 : 3;
    if (*at >= 0xf0 || left < *bytes) {
        return 0;
    }
    const uint32_t point =
        *bytes == 2 ? (uint32_t)(at[0] & 31) << 6 | (at[1] & 63)
                    : (uint32_t)(at[0] & 15) << 12 | (uint32_t)(at[1] & 63) << 6 | (at[2] & 63);
    for (size_t i = 0; i < COUNT_OF(ZEROS); i++) {
        if (point >= ZEROS[i] && point < ZEROS[i] + 10u) {
            return (uint8_t)('0' + point - ZEROS[i]);
        }
    }
    return 0;
}

/* Rewrites digits of other scripts as ASCII ones. ASCII text, and what holds other characters or
 * is too long to be a number of ours, comes back as it is. */
static struct span ascii_digits(struct span text, uint8_t into[static NUMBER_BYTES_MAX])
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t used = 0;
    bool other_script = false;
    for (size_t at = 0; at < text.bytes; used++) {
        size_t bytes = 1;
        uint8_t byte = text.data[at];
        if (used == NUMBER_BYTES_MAX) {
            return text;
        }
        if (byte >= 0x80) {
            byte = script_digit(text.data + at, text.bytes - at, &bytes);
            other_script = true;
        }
        if (byte == 0) {
            return text;
        }
        into[used] = byte;
        at += bytes;
    }
    return other_script ? (struct span){into, used} : text;
}

/* Reads a whole number as Java's Long.parseLong: sign, digits, nothing else. */
static bool read_i64(struct span text, int64_t *out)
{
    ASSERT_SLOW(out != NULL);
    const uint8_t *at = text.data;
    const uint8_t *const end = at + text.bytes;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    if (at == end) {
        return false;
    }
    uint64_t value = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (*at - '0');
    }
    if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

/* java.time's ISO_LOCAL_DATE_TIME: the day must exist, no 24:00, and a small t will do. */
static bool read_iso_strict(struct span text, const struct timestamp_form *form,
                            struct timestamp *out)
{
    ASSERT(form->seconds_optional && !form->zulu);
    ASSERT(out != NULL);
    uint8_t copy[TIMESTAMP_TEXT_BYTES];
    int64_t days;
    size_t date_bytes = 0;
    while (date_bytes < text.bytes && (text.data[date_bytes] | 0x20) != 't') {
        date_bytes++;
    }
    if (text.bytes > sizeof(copy) || text.bytes - date_bytes < 6 ||
        !date_parse((struct span){text.data, date_bytes}, &days) ||
        memcmp(text.data + date_bytes + 1, "24", 2) == 0) {
        return false;
    }
    memcpy(copy, text.data, text.bytes);
    copy[date_bytes] = 'T';
    return timestamp_parse((struct span){copy, text.bytes}, form, out);
}

bool json_value_stamp(struct span text, bool iso, bool with_zone, struct timestamp *out)
{
    ASSERT(out != NULL);
    const struct timestamp_form form = {
        .separator = iso ? 'T' : ' ',
        .zulu = with_zone,
        .seconds_optional = iso,
    };
    if (iso && !with_zone) {
        return read_iso_strict(text, &form, out);
    }
    return timestamp_parse(text, &form, out);
}

static enum json_outcome convert_decimal_text(struct span text, const struct type *type,
                                              struct value *out)
{
    ASSERT(type->kind == TYPE_DECIMAL);
    ASSERT(type->precision <= TYPE_DECIMAL_PRECISION_MAX);
    __int128 unscaled;
    const enum decimal_verdict verdict =
        decimal_parse(text, type->precision, type->scale, &unscaled);
    if (verdict != DECIMAL_OK) {
        return verdict == DECIMAL_BAD ? JSON_VALUE_BAD : JSON_VALUE_NULL;
    }
    if (type_slot_count(type) == 2) {
        out->i128 = unscaled;
    } else {
        out->i64 = (int64_t)unscaled;
    }
    return JSON_VALUE;
}

static bool in_range(enum type_kind kind, int64_t value)
{
    ASSERT_SLOW(kind != TYPE_NULL);
    switch (kind) {
    case TYPE_TINYINT:
        return value >= INT8_MIN && value <= INT8_MAX;
    case TYPE_SMALLINT:
        return value >= INT16_MIN && value <= INT16_MAX;
    case TYPE_INT:
    case TYPE_INTERVAL_YEAR_MONTH:
        return value >= INT32_MIN && value <= INT32_MAX;
    default:
        return true;
    }
}

/* A number with a point or an exponent is cut for INT and BIGINT; the bounds are doubles. */
static bool cut_fraction(enum type_kind kind, struct span text, int64_t *out)
{
    ASSERT(out != NULL);
    const bool is_long = kind == TYPE_BIGINT || kind == TYPE_INTERVAL_DAY_TIME;
    const double low = is_long ? -0x1p63 : INT32_MIN;
    const double high = is_long ? 0x1p63 : INT32_MAX;
    double value;
    if (kind == TYPE_TINYINT || kind == TYPE_SMALLINT || !double_parse(text, &value) ||
        value < low || value > high) {
        return false;
    }
    *out = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
    return true;
}

static enum json_outcome convert_integer(const struct type *type, enum json_kind kind,
                                         struct span text, struct value *out)
{
    ASSERT(out != NULL);
    bool good;
    uint8_t digits[NUMBER_BYTES_MAX];
    if (kind == JSON_FRACTION) {
        good = cut_fraction(type->kind, text, &out->i64);
    } else {
        good =
            read_i64(ascii_digits(trim(text), digits), &out->i64) && in_range(type->kind, out->i64);
    }
    return good ? JSON_VALUE : JSON_VALUE_BAD;
}

/* Everything that is not the word true is false, without an error. */
static bool text_is_true(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    const struct span word = trim(text);
    static const char TRUE[] = "true";
    if (word.bytes != 4) {
        return false;
    }
    for (uint32_t i = 0; i < 4; i++) {
        if ((word.data[i] | 0x20) != TRUE[i]) {
            return false;
        }
    }
    return true;
}

static enum json_outcome convert_decimal(const struct type *type, enum json_kind kind,
                                         struct span text, struct value *out)
{
    ASSERT(type->kind == TYPE_DECIMAL);
    ASSERT(out != NULL);
    if (kind == JSON_STRING) {
        uint8_t digits[NUMBER_BYTES_MAX];
        return convert_decimal_text(ascii_digits(trim(text), digits), type, out);
    }
    if (kind != JSON_INTEGER && kind != JSON_FRACTION) {
        return JSON_VALUE_BAD;
    }
    return convert_decimal_text(text, type, out);
}

enum json_outcome json_value_convert(const struct type *type, bool iso, enum json_kind kind,
                                     struct span text, struct value *out)
{
    ASSERT(!type_is_text(type));
    ASSERT(kind != JSON_NULL && kind != JSON_BROKEN);
    ASSERT(out != NULL);
    *out = (struct value){.is_null = false};
    bool good = false;
    switch (type->kind) {
    case TYPE_BOOLEAN:
        out->i64 = kind == JSON_TRUE || (kind != JSON_FALSE && text_is_true(text));
        return JSON_VALUE;
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
    case TYPE_INTERVAL_YEAR_MONTH:
    case TYPE_INTERVAL_DAY_TIME:
        return convert_integer(type, kind, text, out);
    case TYPE_FLOAT:
        good = float_parse(text, &out->f32);
        break;
    case TYPE_DOUBLE:
        good = double_parse(text, &out->f64);
        break;
    case TYPE_DECIMAL:
        return convert_decimal(type, kind, text, out);
    case TYPE_DATE:
        good = date_parse(text, &out->i64);
        out->i64 = (int32_t)out->i64; /* Java's int keeps the low bits */
        break;
    case TYPE_TIME:
        good = time_parse(text, &out->i64);
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        good = json_value_stamp(text, iso, type->kind == TYPE_TIMESTAMP_LTZ, &out->timestamp);
        break;
    default:
        break;
    }
    return good ? JSON_VALUE : JSON_VALUE_BAD;
}
