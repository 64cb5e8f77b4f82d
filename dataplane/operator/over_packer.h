/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame keeps of a row: the columns that its calls read, as a row without header. Packed
 * rows stand in a key's list until no frame needs them. A tag of 8 bytes may stand in front, where
 * a row's arrival time would be. */
#pragma once

#include "dataplane/row.h"
#include "state/list.h"

struct over_packer {
    const struct row_layout *input;
    struct row_layout layout; /* of packed rows */
    struct type *types;
    uint16_t *slots;
    uint32_t *columns; /* of the input */
    bool has_text;
    uint32_t tag_bytes; /* 0 or 8 */
    uint8_t *packed;    /* one row being packed, header included */
    uint8_t *unpacked;  /* one long row read back, header included */
};

/* Takes memory for at most so many columns; all zeros before.
 * returns  0 or -ENOMEM; emptied by over_packer_fini in any case
 * threads  control */
int over_packer_init(struct over_packer *packer, const struct row_layout *input,
                     uint32_t columns_max);

/* Frees what over_packer_init took. */
void over_packer_fini(struct over_packer *packer);

/* Gives the packed number of an input column, adding it when it is new.
 * column   AGGREGATE_COLUMN_NONE stays what it is
 * threads  control */
uint32_t over_packer_column(struct over_packer *packer, uint32_t column);

/* Fixes the layout, once all columns are there.
 * threads  control */
void over_packer_seal(struct over_packer *packer);

/* Packs a row.
 * returns  the content for the list, borrowed until the next call; no data when it is too long
 * threads  owning lane only */
struct span over_packer_pack(struct over_packer *packer, const struct row *row, uint64_t tag);

/* Shows packed content as a row of the packer's layout: of its header only arrival_ns may be read,
 * which is the tag.
 * threads  owning lane only */
static inline const struct row *over_packer_row(const struct over_packer *packer,
                                                const uint8_t *content)
{
    return (const struct row *)(const void *)(content + packer->tag_bytes - sizeof(struct row));
}

/* As over_packer_row, an item of the list; a long one is read into memory first. */
const struct row *over_packer_unpack(struct over_packer *packer, const struct heap *heap,
                                     const struct list_item *item);
