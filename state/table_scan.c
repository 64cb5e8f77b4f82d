/* SPDX-License-Identifier: Apache-2.0 */
/* Scans go through a shard in the order of (part, index with its bits reversed). In that order
 * a segment covers one unbroken range of positions, splitting cuts a range in two and merging joins
 * neighbours, so a position is all that a cursor must remember. An entry below the cursor's
 * position in a segment that has merged meanwhile was shown before and is passed over. */
#include "state/table_inner.h"

/* The lowest SEGMENT_INDEX_BITS bits in reverse. */
static uint32_t index_reverse(uint32_t index)
{
    index = (index >> 1 & 0x555555U) | (index & 0x555555U) << 1;
    index = (index >> 2 & 0x333333U) | (index & 0x333333U) << 2;
    index = (index >> 4 & 0x0f0f0fU) | (index & 0x0f0f0fU) << 4;
    return (index >> 16 & 0xffU) | (index & 0x00ff00U) | (index & 0xffU) << 16;
}

static uint32_t position_of(const struct segment_spot *spot)
{
    ASSERT_SLOW(spot->part < SEGMENT_PARTS_MAX);
    return spot->part * TABLE_POSITIONS_PER_PART + index_reverse(spot->index);
}

struct segment_spot table_spot_at(uint32_t shard, uint32_t position)
{
    ASSERT_SLOW(position < SEGMENT_PARTS_MAX * TABLE_POSITIONS_PER_PART);
    return (struct segment_spot){.shard = shard,
                                 .part = position / TABLE_POSITIONS_PER_PART,
                                 .index = index_reverse(position % TABLE_POSITIONS_PER_PART)};
}

uint32_t table_position_of(uint32_t part, uint32_t pattern)
{
    return position_of(&(struct segment_spot){.part = part, .index = pattern});
}

/* The key of a slot as an entry shows it. */
static struct span slot_key(const struct table *table, const uint8_t *page, uint32_t slot,
                            uint64_t *blob)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    const struct span key = segment_key_read(&table->layout, page, slot, blob);
    if (*blob == 0) {
        return key;
    }
    const struct span piece = heap_blob_piece(table->heap, *blob, 0);
    if (piece.bytes == heap_blob_bytes(table->heap, *blob)) {
        *blob = 0;
    }
    return piece;
}

/* Shows one page's entries at or behind the cursor. */
static void page_show(struct table *table, uint32_t page, const struct table_cursor *cursor,
                      table_visit_fn *visit, void *context)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    const struct segment_layout *layout = &table->layout;
    const uint8_t *bytes = arena_read(table->arena, page);
    for (uint32_t slot = 0; slot < layout->slot_count; slot++) {
        if (segment_tag(layout, bytes, slot) == 0) {
            continue;
        }
        const uint64_t hash = segment_hash(layout, bytes, slot);
        const struct segment_spot spot = segment_spot_of(hash, table->shard_count);
        if (position_of(&spot) < cursor->position) {
            continue;
        }
        const struct table_at at = {.page = page, .slot = slot};
        struct table_entry entry = {
            .hash = hash, .shard = spot.shard, .place = table_value_place(table, at)};
        entry.key = slot_key(table, bytes, slot, &entry.key_blob);
        entry.value = heap_read_in(table->arena, entry.place);
        if (visit(context, &entry) == TABLE_REMOVE) {
            table_entry_free(table, &spot, at);
        }
    }
}

/* The first position behind a segment. */
static uint32_t position_behind(const struct table *table, const struct directory_root *root,
                                uint32_t shard, uint32_t page)
{
    ASSERT_SLOW(shard < table->shard_count);
    if (root->level == 0) {
        return segment_parts(shard) * TABLE_POSITIONS_PER_PART;
    }
    const struct segment_head *head = table_head_of(table, page);
    ASSERT(head->part < segment_parts(shard));
    return head->part * TABLE_POSITIONS_PER_PART + index_reverse(head->pattern) +
           (TABLE_POSITIONS_PER_PART >> head->depth);
}

/* Moves a cursor to the next shard.
 * returns  false when the scan is over */
static bool shard_next(const struct table *table, struct table_cursor *cursor)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT(cursor->shard < table->shard_count);
    cursor->position = 0;
    cursor->shard++;
    return !cursor->one_shard && cursor->shard < table->shard_count;
}

bool table_scan(struct table *table, struct table_cursor *cursor, table_visit_fn *visit,
                void *context)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT(cursor != NULL && visit != NULL);
    ASSERT(cursor->shard < table->shard_count);
    const struct directory_root *root = table_root_of(table, cursor->shard);
    while (root == NULL || root->entry_count == 0) {
        if (!shard_next(table, cursor)) {
            return false;
        }
        root = table_root_of(table, cursor->shard);
    }
    const struct segment_spot spot = table_spot_at(cursor->shard, cursor->position);
    const uint32_t page = directory_find(table->arena, root, &spot);
    const uint32_t behind = position_behind(table, root, cursor->shard, page);
    ASSERT(behind > cursor->position);
    for (uint32_t link = page; link != 0; link = table_head_of(table, link)->next) {
        page_show(table, link, cursor, visit, context);
    }
    table_segment_merge(table, &spot, page);
    cursor->position = behind;
    if (behind == segment_parts(cursor->shard) * TABLE_POSITIONS_PER_PART) {
        return shard_next(table, cursor);
    }
    return true;
}

void *table_entry_write(struct table *table, const struct table_entry *entry)
{
    ASSERT(entry != NULL && entry->place != 0);
    return heap_write_in(table->arena, entry->place);
}

/* Checks the segment that position lies in, its chain, and that the directory names it everywhere
 * in its range (T1 to T4).
 * returns  the position behind it */
static uint32_t segment_walk(const struct table *table, const struct directory_root *root,
                             uint32_t shard, uint32_t position, uint64_t *entries)
{
    struct segment_spot spot = table_spot_at(shard, position);
    const uint32_t page = directory_find(table->arena, root, &spot);
    ASSERT(page != 0);
    const struct segment_head *head = table_head_of(table, page);
    const uint32_t behind = position_behind(table, root, shard, page);
    ASSERT(root->level == 0 || (head->part == spot.part && head->depth <= root->depth)); /* T2 */
    ASSERT(head->next == 0 || head->depth == DIRECTORY_DEPTH_MAX);                       /* T4 */
    for (uint32_t extra = 0; root->level != 0 && extra < 1U << (root->depth - head->depth);
         extra++) {
        spot.index = head->pattern | extra << head->depth;
        ASSERT(directory_find(table->arena, root, &spot) == page); /* T3 */
    }
    for (uint32_t link = page; link != 0; link = table_head_of(table, link)->next) {
        ASSERT(table->arena->meta[link].kind == ARENA_PAGE_TABLE_SEGMENT);
        ASSERT(table->arena->meta[link].shard == shard);
        segment_check(&table->layout, arena_read(table->arena, link), table->shard_count);
        *entries += table_head_of(table, link)->count;
    }
    return behind;
}

void table_check(const struct table *table)
{
    ASSERT(table->heap != NULL);
    uint64_t entries = 0;
    for (uint32_t shard = 0; shard < table->shard_count; shard++) {
        const struct directory_root *root = table_root_of(table, shard);
        uint64_t shard_entries = 0;
        const uint32_t end = segment_parts(shard) * TABLE_POSITIONS_PER_PART;
        for (uint32_t position = 0; root != NULL && root->page != 0 && position < end;) {
            position = segment_walk(table, root, shard, position, &shard_entries);
        }
        ASSERT(root == NULL || root->entry_count == shard_entries); /* T5 */
        entries += shard_entries;
    }
    ASSERT(entries == table->counters.entries);
}
