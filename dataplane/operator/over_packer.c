/* SPDX-License-Identifier: Apache-2.0 */
/* Packing rows for the frames of OVER, and showing them again; what it is for stands in
 * over_packer.h. */
#include "dataplane/operator/over_packer.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/operator_internal.h"

int over_packer_init(struct over_packer *packer, const struct row_layout *input,
                     uint32_t columns_max)
{
    ASSERT(packer->types == NULL);
    const size_t columns = (size_t)columns_max + 1;
    packer->input = input;
    packer->types = calloc(columns, sizeof(packer->types[0]));
    packer->slots = calloc(columns, sizeof(packer->slots[0]));
    packer->columns = calloc(columns, sizeof(packer->columns[0]));
    packer->packed = operator_scratch(OPERATOR_ROW_BYTES);
    packer->unpacked = operator_scratch(OPERATOR_ROW_BYTES);
    const bool is_whole = packer->types != NULL && packer->slots != NULL &&
                          packer->columns != NULL && packer->packed != NULL &&
                          packer->unpacked != NULL;
    return is_whole ? 0 : -ENOMEM;
}

void over_packer_fini(struct over_packer *packer)
{
    free(packer->types);
    free(packer->slots);
    free(packer->columns);
    free(packer->packed);
    free(packer->unpacked);
    *packer = (struct over_packer){0};
}

uint32_t over_packer_column(struct over_packer *packer, uint32_t column)
{
    ASSERT(packer->types != NULL);
    if (column == AGGREGATE_COLUMN_NONE) {
        return AGGREGATE_COLUMN_NONE;
    }
    uint32_t i = 0;
    while (i < packer->layout.column_count && packer->columns[i] != column) {
        i++;
    }
    if (i == packer->layout.column_count) {
        ASSERT(column < packer->input->column_count);
        packer->columns[i] = column;
        packer->types[i] = packer->input->types[column];
        packer->has_text |= type_is_text(&packer->types[i]);
        packer->layout.column_count++;
    }
    return i;
}

void over_packer_seal(struct over_packer *packer)
{
    ASSERT(packer->tag_bytes == 0 || packer->tag_bytes == sizeof(uint64_t));
    row_layout_init(&packer->layout, packer->types, packer->layout.column_count, packer->slots);
}

/* Without text every packed row has the same length, and columns are copied word by word. */
static uint32_t pack_fixed(struct over_packer *packer, const struct row *row)
{
    ASSERT_SLOW(!packer->has_text);
    struct row *into = (struct row *)(void *)packer->packed;
    memset(into->words, 0, 8 * (size_t)packer->layout.bitmap_words);
    for (uint32_t i = 0; i < packer->layout.column_count; i++) {
        const uint32_t column = packer->columns[i];
        const uint64_t *from = &row->words[packer->input->slots[column]];
        uint64_t *to = &into->words[packer->layout.slots[i]];
        to[0] = from[0];
        if (type_slot_count(&packer->types[i]) == 2) {
            to[1] = from[1];
        }
        into->words[i >> 6] |= (uint64_t)row_is_null(row, column) << (i & 63);
    }
    return row_bytes_fixed(&packer->layout);
}

/* Returns 0 when the row is too long. */
static uint32_t pack_text(struct over_packer *packer, const struct row *row)
{
    ASSERT_SLOW(packer->has_text);
    struct row_writer writer;
    if (!row_begin(&writer, &packer->layout, packer->packed, OPERATOR_ROW_BYTES, NULL)) {
        return 0;
    }
    for (uint32_t i = 0; i < packer->layout.column_count; i++) {
        if (!row_copy_column(&writer, i, packer->input, row, packer->columns[i])) {
            return 0;
        }
    }
    return row_end(&writer);
}

struct span over_packer_pack(struct over_packer *packer, const struct row *row, uint64_t tag)
{
    ASSERT_SLOW(row->bytes >= row_bytes_fixed(packer->input));
    const uint32_t bytes = packer->has_text ? pack_text(packer, row) : pack_fixed(packer, row);
    if (bytes == 0) {
        return (struct span){0};
    }
    struct row *packed = (struct row *)(void *)packer->packed;
    packed->arrival_ns = tag;
    const uint32_t skipped = (uint32_t)sizeof(*packed) - packer->tag_bytes;
    return (struct span){.data = packer->packed + skipped, .bytes = bytes - skipped};
}

const struct row *over_packer_unpack(struct over_packer *packer, const struct heap *heap,
                                     const struct list_item *item)
{
    if (item->data != NULL || item->bytes == 0) {
        return over_packer_row(packer, item->data);
    }
    ASSERT(item->bytes <= OPERATOR_ROW_BYTES - sizeof(struct row));
    uint8_t *into = packer->unpacked + sizeof(struct row) - packer->tag_bytes;
    heap_blob_read(heap, item->blob, 0, item->bytes, into);
    return over_packer_row(packer, into);
}
