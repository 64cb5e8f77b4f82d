/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: some columns of a row as bytes, for grouping, partitioning and state lookups. Equal values
 * give equal bytes and nothing else does: 0.0 and -0.0 differ, one NaN is one key, NULL is a value
 * of its own and differs from empty text (Flink compares keys by their binary form).
 *
 *     per column: 1 byte 0 (NULL) or 1, then the slots (8 or 16 bytes), or for text its length
 *     (4 bytes) and its bytes
 */
#pragma once

#include "base.h"
#include "dataplane/row.h"

#define KEY_COLUMNS_MAX 64
#define KEY_BYTES_MAX   (UINT32_C(1) << 20)

/* Which columns make a key. Const after planning. */
struct key_columns {
    const uint32_t *columns; /* indices into the row's layout */
    uint32_t count;
};

/* Writes a row's key.
 * into     capacity bytes
 * returns  its bytes, or UINT32_MAX when it does not fit
 * threads  any */
uint32_t key_encode(const struct row_layout *layout, const struct row *row,
                    const struct key_columns *columns, uint8_t *into, uint32_t capacity);

/* Reads a key back into columns of a row being written: column i of the key goes to column
 * first + i, whose type must be that of the key's column.
 * returns  false when the row is full
 * threads  any */
bool key_decode(struct span key, uint32_t count, struct row_writer *writer, uint32_t first);
