/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text as Jackson's byte writer prints Flink's rows: members in the sink's order, no blanks;
 * text as UTF-8 but for quotes, backslashes, control characters and all beyond U+FFFF, which are
 * written as two escapes; decimals stripped of zeros, with an exponent, unless told otherwise;
 * doubles as Java prints them, and what is no number in quotes. */
#include "dataplane/format/json_encode.h"

#include <math.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"

static const char HEX[] = "0123456789ABCDEF";

/* How many bytes from `at` need no look: printable ASCII but quote and backslash, and the leads
 * and continuations are not among them. */
static size_t plain_run(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at <= end);
    const uint8_t *const start = at;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i escape = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');
    while (end - at >= 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        /* Signed: bytes past 0x7f are below the space too. */
        const __m128i low = _mm_cmplt_epi8(bytes, space);
        const __m128i marks =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, escape));
        const uint32_t stops = (uint32_t)_mm_movemask_epi8(_mm_or_si128(low, marks));
        if (stops != 0) {
            return (size_t)(at - start) + (size_t)__builtin_ctz(stops);
        }
        at += 16;
    }
#endif
    while (at < end && *at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\') {
        at++;
    }
    return (size_t)(at - start);
}

/* Writes a UTF-16 unit as an escape. */
static void put_unit(struct writer *writer, uint32_t unit)
{
    ASSERT_SLOW(unit <= 0xffff);
    const char text[6] = {
        '\\', 'u', HEX[unit >> 12 & 15], HEX[unit >> 8 & 15], HEX[unit >> 4 & 15], HEX[unit & 15]};
    writer_put(writer, text, sizeof(text));
}

/* Writes an ASCII byte that must not stand as it is. */
static void put_ascii(struct writer *writer, uint8_t byte)
{
    ASSERT_SLOW(byte < ' ' || byte == '"' || byte == '\\');
    static const char SHORT[] = "btn\0fr"; /* 0x08 to 0x0d */
    if (byte >= 0x08 && byte <= 0x0d && SHORT[byte - 0x08] != 0) {
        writer_put_byte(writer, '\\');
        writer_put_byte(writer, (uint8_t)SHORT[byte - 0x08]);
    } else if (byte < ' ') {
        put_unit(writer, byte);
    } else {
        writer_put_byte(writer, '\\');
        writer_put_byte(writer, byte);
    }
}

/* Measures the sequence at a byte past 0x7f: whole (returns true) or the longest beginning of
 * one, which becomes a single replacement character. Surrogates pass. */
static bool measure(const uint8_t *at, const uint8_t *end, size_t *bytes)
{
    ASSERT_SLOW(at < end);
    ASSERT_SLOW(*at >= 0x80);
    const uint8_t lead = *at;
    const size_t wanted = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
    const uint8_t low = lead == 0xe0 ? 0xa0 : (lead == 0xf0 ? 0x90 : 0x80);
    const uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    *bytes = 1;
    if (lead < 0xc2 || lead > 0xf4) {
        return false;
    }
    for (; *bytes < wanted; (*bytes)++) {
        const uint8_t floor = *bytes == 1 ? low : 0x80;
        const uint8_t ceiling = *bytes == 1 ? high : 0xbf;
        if (at + *bytes >= end || at[*bytes] < floor || at[*bytes] > ceiling) {
            return false;
        }
    }
    return true;
}

/* Writes what starts at a byte past 0x7f; returns the bytes taken. */
static size_t put_wide(struct writer *writer, const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at < end);
    size_t bytes;
    if (!measure(at, end, &bytes)) {
        writer_put(writer, "\xef\xbf\xbd", 3);
        return bytes;
    }
    if (bytes == 4) {
        const uint32_t point = (uint32_t)(at[0] & 7) << 18 | (uint32_t)(at[1] & 63) << 12 |
                               (uint32_t)(at[2] & 63) << 6 | (at[3] & 63);
        put_unit(writer, 0xd800 + ((point - 0x10000) >> 10));
        put_unit(writer, 0xdc00 + (point & 0x3ff));
    } else if (at[0] == 0xed && at[1] >= 0xa0) {
        put_unit(writer, 0xd000 | (uint32_t)(at[1] & 63) << 6 | (at[2] & 63));
    } else {
        writer_put(writer, at, bytes);
    }
    return bytes;
}

void json_encode_text(struct span text, struct writer *writer)
{
    ASSERT(text.data != NULL || text.bytes == 0);
    ASSERT(writer != NULL);
    const uint8_t *at = text.data;
    const uint8_t *const end = at + text.bytes;
    writer_put_byte(writer, '"');
    while (at < end) {
        const size_t run = plain_run(at, end);
        writer_put(writer, at, run);
        at += run;
        if (at == end) {
            break;
        }
        if (*at < 0x80) {
            put_ascii(writer, *at++);
        } else {
            at += put_wide(writer, at, end);
        }
    }
    writer_put_byte(writer, '"');
}

void json_encode_base64(struct span bytes, struct writer *writer)
{
    ASSERT(bytes.data != NULL || bytes.bytes == 0);
    ASSERT(writer != NULL);
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.bytes; i += 3) {
        const size_t left = bytes.bytes - i;
        const uint32_t second = left > 1 ? bytes.data[i + 1] : 0;
        const uint32_t third = left > 2 ? bytes.data[i + 2] : 0;
        const uint32_t bits = (uint32_t)bytes.data[i] << 16 | second << 8 | third;
        const char group[4] = {
            LETTERS[bits >> 18],
            LETTERS[bits >> 12 & 63],
            left > 1 ? LETTERS[bits >> 6 & 63] : '=',
            left > 2 ? LETTERS[bits & 63] : '=',
        };
        writer_put(writer, group, sizeof(group));
    }
}

char *json_encode_prefix(const char *name)
{
    ASSERT(name != NULL);
    const size_t bytes = strlen(name);
    char *prefix = malloc(6 * bytes + 8);
    if (prefix == NULL) {
        return NULL;
    }
    struct writer writer = {.data = (uint8_t *)prefix, .capacity = 6 * bytes + 7};
    writer_put_byte(&writer, ',');
    json_encode_text((struct span){(const uint8_t *)name, bytes}, &writer);
    writer_put_byte(&writer, ':');
    ASSERT(writer.used <= writer.capacity);
    prefix[writer.used] = 0;
    return prefix;
}

/* NaN and the infinities are written as text. */
static void put_approximate(struct writer *writer, const char *text, uint32_t bytes, bool finite)
{
    ASSERT_SLOW(bytes > 0 && bytes <= DOUBLE_TEXT_BYTES);
    if (!finite) {
        writer_put_byte(writer, '"');
    }
    writer_put(writer, text, bytes);
    if (!finite) {
        writer_put_byte(writer, '"');
    }
}

static void put_decimal(struct writer *writer, const struct type *type, const void *slot,
                        bool plain)
{
    ASSERT(type->kind == TYPE_DECIMAL);
    ASSERT_SLOW(slot != NULL);
    char text[DECIMAL_TEXT_BYTES];
    __int128 unscaled = 0;
    if (type_slot_count(type) == 2) {
        memcpy(&unscaled, slot, sizeof(unscaled));
    } else {
        int64_t narrow;
        memcpy(&narrow, slot, sizeof(narrow));
        unscaled = narrow;
    }
    const uint32_t bytes = plain ? decimal_print(unscaled, type->scale, text)
                                 : decimal_print_stripped(unscaled, type->scale, text);
    writer_put(writer, text, bytes);
}

static void put_timestamp(struct writer *writer, const struct type *type, const void *slot,
                          bool iso)
{
    ASSERT(type->kind == TYPE_TIMESTAMP || type->kind == TYPE_TIMESTAMP_LTZ);
    char text[TIMESTAMP_TEXT_BYTES];
    struct timestamp value;
    memcpy(&value, slot, sizeof(value));
    const struct timestamp_form form = {
        .separator = iso ? 'T' : ' ',
        .zulu = type->kind == TYPE_TIMESTAMP_LTZ,
        .plus = true,
        .precision = FRACTION_STRIPPED,
    };
    writer_put_byte(writer, '"');
    writer_put(writer, text, timestamp_print(value, &form, text));
    writer_put_byte(writer, '"');
}

static void put_day_or_time(struct writer *writer, const struct type *type, int64_t value)
{
    ASSERT(type->kind == TYPE_DATE || type->kind == TYPE_TIME);
    char date[DATE_TEXT_BYTES];
    char time[TIME_TEXT_BYTES];
    writer_put_byte(writer, '"');
    if (type->kind == TYPE_DATE) {
        writer_put(writer, date, date_print(value, true, date));
    } else {
        writer_put(writer, time, time_print(value, FRACTION_STRIPPED, time));
    }
    writer_put_byte(writer, '"');
}

static void put_bytes(struct writer *writer, struct span bytes)
{
    ASSERT_SLOW(bytes.data != NULL || bytes.bytes == 0);
    writer_put_byte(writer, '"');
    json_encode_base64(bytes, writer);
    writer_put_byte(writer, '"');
}

static void put_value(const struct json_encode_field *field,
                      const struct json_encode_options *options, const struct row_layout *layout,
                      const struct row *row, struct writer *writer)
{
    const uint32_t column = field->column;
    ASSERT_SLOW(!row_is_null(row, field->column));
    ASSERT_SLOW(column < layout->column_count);
    const void *slot = row_slot(layout, row, column);
    const struct value value = row_value(layout, row, column);
    char text[DOUBLE_TEXT_BYTES];
    switch (field->type.kind) {
    case TYPE_BOOLEAN:
        writer_put(writer, value.i64 != 0 ? "true" : "false", value.i64 != 0 ? 4 : 5);
        break;
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        json_encode_text(value.text, writer);
        break;
    case TYPE_BINARY:
    case TYPE_VARBINARY:
        put_bytes(writer, value.text);
        break;
    case TYPE_FLOAT:
        put_approximate(writer, text, float_print(value.f32, text), isfinite(value.f32));
        break;
    case TYPE_DOUBLE:
        put_approximate(writer, text, double_print(value.f64, text), isfinite(value.f64));
        break;
    case TYPE_DECIMAL:
        put_decimal(writer, &field->type, slot, options->decimal_plain);
        break;
    case TYPE_DATE:
    case TYPE_TIME:
        put_day_or_time(writer, &field->type, value.i64);
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        put_timestamp(writer, &field->type, slot, options->iso_timestamps);
        break;
    default: /* the integers and the intervals */
        writer_put(writer, text, integer_print(value.i64, text));
        break;
    }
}

void json_encode_row(const struct json_encode_field *fields, uint32_t field_count,
                     const struct json_encode_options *options, const struct row_layout *layout,
                     const struct row *row, struct writer *writer)
{
    ASSERT(options != NULL && writer != NULL);
    ASSERT(fields != NULL || field_count == 0);
    writer_put_byte(writer, '{');
    bool first = true;
    for (uint32_t i = 0; i < field_count; i++) {
        const struct json_encode_field *field = &fields[i];
        const bool is_null = row_is_null(row, field->column);
        if (is_null && options->ignore_nulls) {
            continue;
        }
        writer_put(writer, field->prefix + first, field->prefix_bytes - first);
        first = false;
        if (is_null) {
            writer_put(writer, "null", 4);
        } else {
            put_value(field, options, layout, row, writer);
        }
    }
    writer_put_byte(writer, '}');
}
