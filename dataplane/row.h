/* SPDX-License-Identifier: Apache-2.0 */
/* A row as it travels in parcels and rests in state: one contiguous, position-independent block.
 *
 *     struct row header | null bitmap | slots, 8 bytes each | tail of text and bytes
 *
 * The bitmap has one bit a column, in whole words. A column has one slot or two (type.h); its slot
 * number stands in the layout. Text slots hold offset (from the row's start) and length. A null
 * column's slots are 0. Rows are 8-byte aligned and a multiple of 8 bytes long; unused tail bytes
 * are 0, so that equal rows are equal bytes but for the header.
 *
 * Limits: ROW_COLUMNS_MAX columns, ROW_BYTES_MAX bytes. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

#define ROW_COLUMNS_MAX 1024
#define ROW_BYTES_MAX   (UINT32_C(32) << 20)
#define ROW_TIME_NONE   INT64_MIN /* the row has no event time */

enum row_kind {
    ROW_INSERT = 0,    /* +I */
    ROW_UPDATE_BEFORE, /* -U */
    ROW_UPDATE_AFTER,  /* +U */
    ROW_DELETE,        /* -D */
};

struct row {
    uint32_t bytes;      /* of the whole row */
    uint8_t kind;        /* enum row_kind */
    uint8_t reserved[3]; /* 0 */
    int64_t time_ms;     /* event time, or ROW_TIME_NONE */
    uint64_t arrival_ns; /* when the port delivered the record that the row came from */
    uint64_t words[];    /* bitmap, slots, tail */
};

_Static_assert(sizeof(struct row) == 24, "the header of a row");

/* The shape of the rows of one plan edge. Const after planning; lives as long as the plan. */
struct row_layout {
    uint32_t column_count;
    uint32_t bitmap_words;
    uint32_t slot_count;
    const struct type *types; /* column_count */
    const uint16_t *slots;    /* column_count: word index of the column's first slot in words[] */
};

/* Fills a layout for columns of the given types.
 * types    column_count of them; kept by reference
 * slots    room for column_count, filled here; kept by reference
 * threads  any */
void row_layout_init(struct row_layout *layout, const struct type *types, uint32_t column_count,
                     uint16_t *slots);

/* Tells whether a column is NULL.
 * threads  any */
static inline bool row_is_null(const struct row *row, uint32_t column)
{
    return (row->words[column >> 6] >> (column & 63)) & 1;
}

/* Points to a column's first slot.
 * threads  any */
static inline const void *row_slot(const struct row_layout *layout, const struct row *row,
                                   uint32_t column)
{
    ASSERT_SLOW(column < layout->column_count);
    return &row->words[layout->slots[column]];
}

/* Reads a column whose slot is an int64_t (see type.h); 0 when it is NULL.
 * threads  any */
static inline int64_t row_i64(const struct row_layout *layout, const struct row *row,
                              uint32_t column)
{
    ASSERT_SLOW(column < layout->column_count);
    return (int64_t)row->words[layout->slots[column]];
}

/* Reads a text or bytes column; empty when it is NULL.
 * returns  borrowed: points into the row
 * threads  any */
static inline struct span row_text(const struct row_layout *layout, const struct row *row,
                                   uint32_t column)
{
    ASSERT_SLOW(column < layout->column_count);
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    const uint64_t slot = row->words[layout->slots[column]];
    return (struct span){
        .data = (const uint8_t *)row + (uint32_t)slot,
        .bytes = (uint32_t)(slot >> 32),
    };
}

/* Reads any column into a value; text stays borrowed from the row.
 * threads  any */
struct value row_value(const struct row_layout *layout, const struct row *row, uint32_t column);

/* Tells how many bytes a row takes before its tail.
 * threads  any */
static inline uint32_t row_bytes_fixed(const struct row_layout *layout)
{
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    return (uint32_t)(sizeof(struct row) + 8 * ((size_t)layout->bitmap_words + layout->slot_count));
}

/* A row being written into somebody's buffer: begin, set each column once (those left out are
 * NULL), end. */
struct row_writer {
    const struct row_layout *layout;
    struct row *row;
    uint32_t used;     /* bytes so far, tail included */
    uint32_t capacity; /* bytes of the buffer */
};

/* Starts a row: header from the arguments, every column NULL.
 * into     8-byte aligned, at least capacity writable bytes; becomes the row
 * from     its kind, time_ms and arrival_ns are copied; may be NULL (+I, no time, arrival 0)
 * returns  false when capacity is short of the fixed part
 * threads  any */
bool row_begin(struct row_writer *writer, const struct row_layout *layout, void *into,
               uint32_t capacity, const struct row *from);

/* Sets a column from words: one slot or two as its type says, no text.
 * slot     type_slot_count(column's type) words
 * threads  any */
static inline void row_set(struct row_writer *writer, uint32_t column, const void *slot)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(writer->used <= writer->capacity);
    const uint32_t words = type_slot_count(&writer->layout->types[column]);
    memcpy(&writer->row->words[writer->layout->slots[column]], slot, 8 * (size_t)words);
    writer->row->words[column >> 6] &= ~(UINT64_C(1) << (column & 63));
}

/* Sets a one-slot column that holds an int64_t.
 * threads  any */
static inline void row_set_i64(struct row_writer *writer, uint32_t column, int64_t value)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    row_set(writer, column, &value);
}

/* Copies text or bytes into the tail and sets the column.
 * returns  false when the buffer is full; the row is then unfinished and must be begun anew
 * threads  any */
bool row_set_text(struct row_writer *writer, uint32_t column, struct span text);

/* Sets a column from a value of the column's type.
 * returns  as row_set_text
 * threads  any */
bool row_set_value(struct row_writer *writer, uint32_t column, const struct value *value);

/* Copies a column of another row whose type has the same memory form.
 * returns  as row_set_text
 * threads  any */
bool row_copy_column(struct row_writer *writer, uint32_t column, const struct row_layout *from,
                     const struct row *row, uint32_t from_column);

/* Pads and closes the row.
 * returns  its bytes (a multiple of 8)
 * threads  any */
uint32_t row_end(struct row_writer *writer);

/* Checks a row that crossed a boundary (a ring, a file, state): lengths, offsets and bitmap agree
 * with the layout and the row's own size.
 * threads  any */
bool row_check(const struct row_layout *layout, const struct row *row, size_t bytes);
