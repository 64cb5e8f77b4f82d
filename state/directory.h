/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of one shard of a table: from (part, low bits of index) to the page of a segment.
 * It grows by doubling in place while it fits one page; from then on by an index of pages, where a
 * page of the new half comes into being only when a split needs it and until then reads as the page
 * with the highest bit of its number cleared. So no step costs more than one page.
 *
 *     level 0   root.page is the only segment
 *     level 1   root.page holds entries [index << 0 | …][part] of depth <= 7
 *     level 2   root.page holds 1024 page numbers, each page 128 indexes wide */
#pragma once

#include "state/arena.h"
#include "state/segment.h"

#define DIRECTORY_PAGE_DEPTH  7U
#define DIRECTORY_DEPTH_MAX   (DIRECTORY_PAGE_DEPTH + 10U)
#define DIRECTORY_INDEX_SLOTS (ARENA_PAGE_BYTES / 4U) /* numbers of pages in an index */

/* A table's root of one shard, in the shard's anchor page. */
struct directory_root {
    uint32_t page; /* 0: the shard is empty */
    uint8_t depth;
    uint8_t level;
    uint16_t reserved;
    uint64_t entry_count;
};
static_assert(sizeof(struct directory_root) <= ARENA_ROOT_BYTES, "fits a root");

/* Where the entry for a spot stands.
 * root     level 1 or 2
 * returns  a pointer into a directory page, to read
 * threads  owning lane only */
const uint32_t *directory_entry(const struct arena *arena, const struct directory_root *root,
                                const struct segment_spot *spot);

/* The segment page for a spot.
 * returns  0 when the shard is empty
 * threads  owning lane only */
static inline uint32_t directory_find(const struct arena *arena, const struct directory_root *root,
                                      const struct segment_spot *spot)
{
    return root->level == 0 ? root->page : *directory_entry(arena, root, spot);
}

/* Makes a level 0 root a level 1 root of depth 0 whose parts are all page 0, to be set by
 * directory_set.
 * returns  false when the arena is exhausted: then nothing has changed
 * threads  owning lane only */
bool directory_open(struct arena *arena, struct directory_root *root, uint32_t shard);

/* Makes room for entries that tell depth bits apart: doubles when depth is above the root's, and
 * acquires the page that pattern lies in. Lookups answer as before.
 * depth    at most DIRECTORY_DEPTH_MAX, at most root->depth + 1
 * returns  false when the arena is exhausted: lookups still answer as before
 * threads  owning lane only */
bool directory_grow(struct arena *arena, struct directory_root *root, uint32_t shard,
                    uint32_t depth, uint32_t pattern);

/* Points every entry of part whose low depth bits are pattern to page.
 * threads  owning lane only */
void directory_set(struct arena *arena, const struct directory_root *root, uint32_t shard,
                   uint32_t part, uint32_t depth, uint32_t pattern, uint32_t page);
