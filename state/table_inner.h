/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the table share; nobody else includes it. The invariants T1 to
 * T6 are at the head of table.c. */
#pragma once

#include "state/directory.h"
#include "state/segment.h"
#include "state/shape.h"
#include "state/table.h"

struct table {
    struct heap *heap;
    struct arena *arena;
    const struct directory_root **roots; /* [shard]; NULL until this run has written it */
    struct segment_layout layout;
    uint32_t object;
    uint32_t shard_count;
    uint32_t value_bytes;
    uint32_t key_bytes_max;
    bool is_value_in_heap;
    uint32_t head_count;
    struct table_head heads[TABLE_HEAD_COUNT_MAX];
    struct table_counters counters;
};

/* Where an entry stands. */
struct table_at {
    uint32_t page;
    uint32_t slot;
};

extern const struct shape_ops table_shape_ops;

/* A position of a scan: (part, index with its bits reversed), see table_scan.c. */
#define TABLE_POSITIONS_PER_PART (1U << SEGMENT_INDEX_BITS)

/* The spot that a position begins at.
 * threads  any */
struct segment_spot table_spot_at(uint32_t shard, uint32_t position);

/* The position that a segment begins at.
 * threads  any */
uint32_t table_position_of(uint32_t part, uint32_t pattern);

/* Frees an entry's slot and what it holds outside; does not merge.
 * threads  owning lane only */
void table_entry_free(struct table *table, const struct segment_spot *spot, struct table_at at);

/* Joins a segment that has become sparse with its buddy, when both are of one depth and would fill
 * at most half a page; the page freed goes back to the arena. Trims a chain.
 * page     the first page of the segment that spot lies in
 * threads  owning lane only */
void table_segment_merge(struct table *table, const struct segment_spot *spot, uint32_t page);

/* The shard's root to read; NULL while the shard has no anchor page.
 * threads  owning lane only */
static inline const struct directory_root *table_root_of(const struct table *table, uint32_t shard)
{
    ASSERT_SLOW(shard < table->shard_count);
    const struct directory_root *root = table->roots[shard];
    return LIKELY(root != NULL) ? root : arena_root_read(table->arena, table->object, shard);
}

/* A segment's head to read.
 * threads  owning lane only */
static inline const struct segment_head *table_head_of(const struct table *table, uint32_t page)
{
    ASSERT_SLOW(table->arena->meta[page].kind == ARENA_PAGE_TABLE_SEGMENT);
    return (const void *)arena_read(table->arena, page);
}

/* Byte distance of an entry's value from the arena's base.
 * threads  owning lane only */
static inline uint64_t table_value_place(const struct table *table, struct table_at at)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(at.page != 0 && at.slot < table->layout.slot_count);
    const uint32_t offset = segment_value_offset(&table->layout, at.slot);
    if (table->is_value_in_heap) {
        uint64_t ref;
        memcpy(&ref, arena_read(table->arena, at.page) + offset, sizeof(ref));
        return ref;
    }
    return ((uint64_t)at.page << ARENA_PAGE_SHIFT) + offset;
}
