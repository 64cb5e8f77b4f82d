/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as bytes; the form is drawn in key.h. */
#include "dataplane/key.h"

/* All NaNs are one key, as Java's doubleToLongBits makes them. */
#define CANONICAL_NAN_F64 UINT64_C(0x7ff8000000000000)
#define CANONICAL_NAN_F32 UINT64_C(0x7fc00000)

static uint32_t encode_text(struct span text, uint8_t *into, uint32_t capacity)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (text.bytes > KEY_BYTES_MAX || capacity < 5 + text.bytes) {
        return UINT32_MAX;
    }
    const uint32_t length = (uint32_t)text.bytes;
    into[0] = 1;
    memcpy(into + 1, &length, sizeof(length));
    if (length != 0) {
        memcpy(into + 5, text.data, length);
    }
    return 5 + length;
}

static void encode_slots(const struct type *type, const void *slot, uint8_t *into)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    uint64_t words[2];
    const uint32_t count = type_slot_count(type);
    memcpy(words, slot, 8 * (size_t)count);
    double f64;
    float f32;
    memcpy(&f64, words, sizeof(f64));
    memcpy(&f32, words, sizeof(f32));
    if (type->kind == TYPE_DOUBLE && f64 != f64) {
        words[0] = CANONICAL_NAN_F64;
    } else if (type->kind == TYPE_FLOAT && f32 != f32) {
        words[0] = CANONICAL_NAN_F32;
    }
    into[0] = 1;
    memcpy(into + 1, words, 8 * (size_t)count);
}

static uint32_t encode_column(const struct row_layout *layout, const struct row *row,
                              uint32_t column, struct span_mut into)
{
    ASSERT_SLOW(column < layout->column_count);
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    const struct type *type = &layout->types[column];
    const uint32_t capacity = (uint32_t)into.bytes;
    if (row_is_null(row, column)) {
        if (capacity == 0) {
            return UINT32_MAX;
        }
        into.data[0] = 0;
        return 1;
    }
    if (type_is_text(type)) {
        return encode_text(row_text(layout, row, column), into.data, capacity);
    }
    const uint32_t bytes = 1 + 8 * type_slot_count(type);
    if (capacity < bytes) {
        return UINT32_MAX;
    }
    encode_slots(type, row_slot(layout, row, column), into.data);
    return bytes;
}

uint32_t key_encode(const struct row_layout *layout, const struct row *row,
                    const struct key_columns *columns, uint8_t *into, uint32_t capacity)
{
    ASSERT(columns->count <= KEY_COLUMNS_MAX);
    uint32_t used = 0;
    for (uint32_t i = 0; i < columns->count; i++) {
        ASSERT_SLOW(columns->columns[i] < layout->column_count);
        const uint32_t bytes =
            encode_column(layout, row, columns->columns[i],
                          (struct span_mut){.data = into + used, .bytes = capacity - used});
        if (bytes == UINT32_MAX) {
            return UINT32_MAX;
        }
        used += bytes;
    }
    ASSERT(used <= capacity);
    return used;
}

/* Reads one column at `from`; returns the bytes it took, 0 when the row is full. */
static uint32_t decode_column(const uint8_t *from, struct row_writer *writer, uint32_t column)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT_SLOW(from != NULL);
    if (from[0] == 0) {
        return 1;
    }
    if (!type_is_text(&writer->layout->types[column])) {
        row_set(writer, column, from + 1);
        return 1 + 8 * type_slot_count(&writer->layout->types[column]);
    }
    uint32_t length;
    memcpy(&length, from + 1, sizeof(length));
    const struct span text = {.data = from + 5, .bytes = length};
    return row_set_text(writer, column, text) ? 5 + length : 0;
}

bool key_decode(struct span key, uint32_t count, struct row_writer *writer, uint32_t first)
{
    ASSERT(first + count <= writer->layout->column_count);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(used < key.bytes);
        const uint32_t bytes = decode_column(key.data + used, writer, first + i);
        if (bytes == 0) {
            return false;
        }
        used += bytes;
    }
    ASSERT(used == key.bytes);
    return true;
}
