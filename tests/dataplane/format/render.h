/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a decoded row the way the recorded answers of Flink's own decoder are printed: text as
 * UTF-16 units, doubles and floats as bits, decimals unscaled, timestamps as ms+ns, NULL as ~. */
#pragma once

#include <stdio.h>

#include "dataplane/row.h"

/* Prints text as its UTF-16 units.
 * threads  any */
static inline void render_text(FILE *out, struct span text)
{
    (void)fputc('s', out);
    for (size_t i = 0; i < text.bytes;) {
        const uint8_t *at = text.data + i;
        if (at[0] < 0x80) {
            (void)fprintf(out, "%04x", at[0]);
            i += 1;
        } else if (at[0] < 0xe0) {
            (void)fprintf(out, "%04x", (at[0] & 31) << 6 | (at[1] & 63));
            i += 2;
        } else if (at[0] < 0xf0) {
            (void)fprintf(out, "%04x", (at[0] & 15) << 12 | (at[1] & 63) << 6 | (at[2] & 63));
            i += 3;
        } else {
            const int point =
                ((at[0] & 7) << 18 | (at[1] & 63) << 12 | (at[2] & 63) << 6 | (at[3] & 63)) -
                0x10000;
            (void)fprintf(out, "%04x%04x", 0xd800 | point >> 10, 0xdc00 | (point & 0x3ff));
            i += 4;
        }
    }
}

/* Prints an unscaled decimal.
 * threads  any */
static inline void render_decimal(FILE *out, __int128 value)
{
    char digits[48];
    int count = 0;
    unsigned __int128 left = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    do {
        digits[count++] = (char)('0' + (int)(left % 10));
        left /= 10;
    } while (left != 0);
    (void)fputs(value < 0 ? "n-" : "n", out);
    while (count > 0) {
        (void)fputc(digits[--count], out);
    }
}

/* Prints a value that is not NULL.
 * threads  any */
static inline void render_value(FILE *out, const struct type *type, const struct value *value)
{
    uint32_t bits;
    switch (type->kind) {
    case TYPE_VARCHAR:
        render_text(out, value->text);
        break;
    case TYPE_VARBINARY:
        (void)fputc('b', out);
        for (size_t i = 0; i < value->text.bytes; i++) {
            (void)fprintf(out, "%02x", value->text.data[i]);
        }
        break;
    case TYPE_FLOAT:
        memcpy(&bits, &value->f32, sizeof(bits));
        (void)fprintf(out, "f%08x", bits);
        break;
    case TYPE_DOUBLE:
        (void)fprintf(out, "d%016llx", (unsigned long long)value->i64);
        break;
    case TYPE_DECIMAL:
        render_decimal(out, type_slot_count(type) == 2 ? value->i128 : value->i64);
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        (void)fprintf(out, "%lld+%d", (long long)value->timestamp.ms, value->timestamp.ns);
        break;
    default:
        (void)fprintf(out, "%lld", (long long)value->i64);
        break;
    }
}

/* Prints a whole row.
 * threads  any */
static inline void render_row(FILE *out, const struct row_layout *layout, const struct row *row)
{
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct value value = row_value(layout, row, i);
        (void)fputs(i == 0 ? "(" : ",", out);
        if (value.is_null) {
            (void)fputc('~', out);
        } else {
            render_value(out, &layout->types[i], &value);
        }
    }
    (void)fputc(')', out);
}
