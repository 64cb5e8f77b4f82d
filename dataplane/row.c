/* SPDX-License-Identifier: Apache-2.0 */
/* Building and checking of rows; the layout is drawn in row.h. */
#include "dataplane/row.h"

static uint32_t round_up_8(uint32_t bytes)
{
    return (bytes + 7) & ~UINT32_C(7);
}

void row_layout_init(struct row_layout *layout, const struct type *types, uint32_t column_count,
                     uint16_t *slots)
{
    ASSERT(layout != NULL);
    ASSERT(column_count <= ROW_COLUMNS_MAX);
    ASSERT(column_count == 0 || (types != NULL && slots != NULL));
    const uint32_t bitmap_words = (column_count + 63) / 64;
    uint32_t slot_count = 0;
    for (uint32_t i = 0; i < column_count; i++) {
        slots[i] = (uint16_t)(bitmap_words + slot_count);
        slot_count += type_slot_count(&types[i]);
    }
    *layout = (struct row_layout){
        .column_count = column_count,
        .bitmap_words = bitmap_words,
        .slot_count = slot_count,
        .types = types,
        .slots = slots,
    };
}

struct value row_value(const struct row_layout *layout, const struct row *row, uint32_t column)
{
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    ASSERT(column < layout->column_count);
    struct value value = {.is_null = row_is_null(row, column)};
    const struct type *type = &layout->types[column];
    if (value.is_null) {
        return value;
    }
    if (type_is_text(type)) {
        value.text = row_text(layout, row, column);
    } else {
        memcpy(&value.i64, row_slot(layout, row, column), 8 * (size_t)type_slot_count(type));
    }
    return value;
}

bool row_begin(struct row_writer *writer, const struct row_layout *layout, void *into,
               uint32_t capacity, const struct row *from)
{
    ASSERT_SLOW(writer != NULL);
    ASSERT_SLOW(layout != NULL);
    ASSERT(((uintptr_t)into & 7) == 0);
    const uint32_t fixed = row_bytes_fixed(layout);
    if (capacity < fixed) {
        return false;
    }
    struct row *row = into;
    row->bytes = 0;
    row->kind = from == NULL ? ROW_INSERT : from->kind;
    memset(row->reserved, 0, sizeof(row->reserved));
    row->time_ms = from == NULL ? ROW_TIME_NONE : from->time_ms;
    row->arrival_ns = from == NULL ? 0 : from->arrival_ns;
    memset(row->words, 0xff, 8 * (size_t)layout->bitmap_words);
    memset(row->words + layout->bitmap_words, 0, 8 * (size_t)layout->slot_count);
    *writer = (struct row_writer){
        .layout = layout,
        .row = row,
        .used = fixed,
        .capacity = capacity,
    };
    return true;
}

bool row_set_text(struct row_writer *writer, uint32_t column, struct span text)
{
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT(column < writer->layout->column_count);
    ASSERT_SLOW(type_is_text(&writer->layout->types[column]));
    if (text.bytes > writer->capacity - writer->used) {
        return false;
    }
    if (text.bytes != 0) {
        memcpy((uint8_t *)writer->row + writer->used, text.data, text.bytes);
    }
    const uint64_t slot = writer->used | ((uint64_t)text.bytes << 32);
    writer->row->words[writer->layout->slots[column]] = slot;
    writer->row->words[column >> 6] &= ~(UINT64_C(1) << (column & 63));
    writer->used += (uint32_t)text.bytes;
    return true;
}

bool row_set_value(struct row_writer *writer, uint32_t column, const struct value *value)
{
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT(column < writer->layout->column_count);
    if (value->is_null) {
        return true;
    }
    if (type_is_text(&writer->layout->types[column])) {
        return row_set_text(writer, column, value->text);
    }
    row_set(writer, column, &value->i64);
    return true;
}

bool row_copy_column(struct row_writer *writer, uint32_t column, const struct row_layout *from,
                     const struct row *row, uint32_t from_column)
{
    ASSERT(from_column < from->column_count);
    ASSERT_SLOW(type_slot_count(&from->types[from_column]) ==
                type_slot_count(&writer->layout->types[column]));
    if (row_is_null(row, from_column)) {
        return true;
    }
    if (type_is_text(&from->types[from_column])) {
        return row_set_text(writer, column, row_text(from, row, from_column));
    }
    row_set(writer, column, row_slot(from, row, from_column));
    return true;
}

uint32_t row_end(struct row_writer *writer)
{
    ASSERT(writer->used <= writer->capacity);
    const uint32_t bytes = round_up_8(writer->used);
    /* Buffers are 8-byte aligned and sized, so the padding always has room. */
    ASSERT(bytes <= round_up_8(writer->capacity));
    memset((uint8_t *)writer->row + writer->used, 0, bytes - writer->used);
    writer->row->bytes = bytes;
    return bytes;
}

static bool text_in_row(const struct row_layout *layout, const struct row *row, uint32_t column)
{
    ASSERT_SLOW(column < layout->column_count);
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    const uint64_t slot = row->words[layout->slots[column]];
    const uint64_t start = (uint32_t)slot;
    const uint64_t bytes = slot >> 32;
    return bytes == 0 || (start >= row_bytes_fixed(layout) && start + bytes <= row->bytes);
}

bool row_check(const struct row_layout *layout, const struct row *row, size_t bytes)
{
    if (bytes < sizeof(*row) || row->bytes > bytes || (row->bytes & 7) != 0 ||
        row->bytes < row_bytes_fixed(layout) || row->kind > ROW_DELETE) {
        return false;
    }
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (type_is_text(&layout->types[i]) && !row_is_null(row, i) &&
            !text_in_row(layout, row, i)) {
            return false;
        }
    }
    return true;
}
