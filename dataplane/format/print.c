/* SPDX-License-Identifier: Apache-2.0 */
/* The print connector's lines: the row kind, then the columns as Java prints Flink's Row: java.time
 * texts (a T, seconds left out when zero), decimals with all their zeros, bytes as signed numbers.
 */
#include "dataplane/format/print.h"

#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"

#define MIDNIGHT_TAIL      3 /* ":00" */
#define PLAIN_EXPONENT_MAX 6 /* zeros behind the point and the first digit */

static void put_string(struct writer *writer, const char *text)
{
    ASSERT(text != NULL);
    writer_put(writer, text, strlen(text));
}

/* Java shows a fraction in groups of three digits, and no seconds when they and it are zero.
 * text     HH:mm:ss.fffffffff at its end */
static uint32_t java_time_bytes(const char *text, uint32_t bytes, bool seconds_always)
{
    ASSERT(bytes >= 18);
    const uint32_t whole = bytes - 10;
    uint32_t digits = 9;
    while (digits != 0 && memcmp(text + whole + 1 + digits - 3, "000", 3) == 0) {
        digits -= 3;
    }
    if (digits != 0) {
        return whole + 1 + digits;
    }
    const bool bare = memcmp(text + whole - MIDNIGHT_TAIL, ":00", MIDNIGHT_TAIL) == 0;
    return bare && !seconds_always ? whole - MIDNIGHT_TAIL : whole;
}

static void put_timestamp(struct writer *writer, const struct type *type, struct timestamp value)
{
    ASSERT(type_slot_count(type) == 2);
    char text[TIMESTAMP_TEXT_BYTES];
    const struct timestamp_form form = {.separator = 'T', .plus = true, .precision = 9};
    const uint32_t bytes = timestamp_print(value, &form, text);
    const bool instant = type->kind == TYPE_TIMESTAMP_LTZ;
    writer_put(writer, text, java_time_bytes(text, bytes, instant));
    if (instant) {
        writer_put_byte(writer, 'Z');
    }
}

static void put_time(struct writer *writer, int64_t time_ms)
{
    ASSERT(time_ms >= 0 && time_ms < MS_PER_DAY);
    char text[TIME_TEXT_BYTES];
    const uint32_t bytes = time_print(time_ms, 9, text);
    writer_put(writer, text, java_time_bytes(text, bytes, false));
}

static void put_bytes(struct writer *writer, struct span bytes)
{
    ASSERT_SLOW(bytes.data != NULL || bytes.bytes == 0);
    char text[INTEGER_TEXT_BYTES];
    writer_put_byte(writer, '[');
    for (size_t i = 0; i < bytes.bytes; i++) {
        writer_put(writer, ", ", i == 0 ? 0 : 2);
        writer_put(writer, text, integer_print((int8_t)bytes.data[i], text));
    }
    writer_put_byte(writer, ']');
}

/* As BigDecimal.toString: all digits of the scale, and an exponent below 10^-6. */
static void put_decimal(struct writer *writer, __int128 unscaled, uint8_t scale)
{
    ASSERT(scale <= TYPE_DECIMAL_PRECISION_MAX);
    char plain[DECIMAL_TEXT_BYTES];
    char text[DECIMAL_TEXT_BYTES];
    const uint32_t digits = decimal_print(unscaled, 0, text);
    const uint32_t sign = unscaled < 0;
    const uint32_t down =
        scale + 1u - (digits - sign); /* the exponent of the first digit, negated */
    if (scale < digits - sign || down <= PLAIN_EXPONENT_MAX) {
        writer_put(writer, plain, decimal_print(unscaled, scale, plain));
        return;
    }
    writer_put(writer, text, sign + 1);
    if (digits > sign + 1) {
        writer_put_byte(writer, '.');
        writer_put(writer, text + sign + 1, digits - sign - 1);
    }
    put_string(writer, "E-");
    writer_put(writer, plain, integer_print(down, plain));
}

static void put_number(struct writer *writer, const struct type *type, const struct value *value)
{
    ASSERT(!value->is_null);
    char text[DECIMAL_TEXT_BYTES];
    uint32_t bytes;
    if (type->kind == TYPE_FLOAT) {
        bytes = float_print(value->f32, text);
    } else if (type->kind == TYPE_DOUBLE) {
        bytes = double_print(value->f64, text);
    } else if (type->kind == TYPE_DECIMAL) {
        put_decimal(writer, type_slot_count(type) == 2 ? value->i128 : value->i64, type->scale);
        return;
    } else {
        bytes = integer_print(value->i64, text);
    }
    writer_put(writer, text, bytes);
}

static void put_value(struct writer *writer, const struct type *type, const struct value *value)
{
    ASSERT(!value->is_null);
    ASSERT(type != NULL);
    char date[DATE_TEXT_BYTES];
    switch (type->kind) {
    case TYPE_BOOLEAN:
        put_string(writer, value->i64 != 0 ? "true" : "false");
        break;
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        writer_put(writer, value->text.data, value->text.bytes);
        break;
    case TYPE_BINARY:
    case TYPE_VARBINARY:
        put_bytes(writer, value->text);
        break;
    case TYPE_DATE:
        writer_put(writer, date, date_print(value->i64, true, date));
        break;
    case TYPE_TIME:
        put_time(writer, value->i64);
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        put_timestamp(writer, type, value->timestamp);
        break;
    default:
        put_number(writer, type, value);
        break;
    }
}

void print_encode_row(const char *identifier, const struct plan_sink_field *fields,
                      uint32_t field_count, const struct row_layout *layout, const struct row *row,
                      struct writer *writer)
{
    ASSERT(fields != NULL || field_count == 0);
    ASSERT(writer != NULL);
    static const char *const KINDS[] = {"+I[", "-U[", "+U[", "-D["};
    ASSERT(row->kind <= ROW_DELETE);
    if (identifier != NULL && *identifier != 0) {
        put_string(writer, identifier);
        put_string(writer, "> ");
    }
    put_string(writer, KINDS[row->kind]);
    for (uint32_t i = 0; i < field_count; i++) {
        const struct value value = row_value(layout, row, fields[i].column);
        writer_put(writer, ", ", i == 0 ? 0 : 2);
        if (value.is_null) {
            put_string(writer, "null");
        } else {
            put_value(writer, &fields[i].type, &value);
        }
    }
    writer_put_byte(writer, ']');
}
