/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of many keys in passes over groups of 32: each pass touches what the pass before asked
 * the cache for, so the misses of a group overlap. Prefetching reads the table only, and a hint
 * that is out of date by the time of the lookup costs a miss and nothing else. */
#include "state/table_inner.h"

#define GROUP_COUNT 32U

/* One lookup between two passes. */
struct hint {
    struct segment_spot spot;
    const uint32_t *entry; /* in a directory; NULL when the shard is empty or one segment */
    const uint8_t *page;   /* the segment; NULL when there is none */
};

static void hint_directory(const struct table *table, uint64_t hash, struct hint *hint)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT_SLOW(hint != NULL);
    *hint = (struct hint){.spot = segment_spot_of(hash, table->shard_count)};
    const struct directory_root *root = table_root_of(table, hint->spot.shard);
    if (root == NULL || root->page == 0) {
        return;
    }
    if (root->level == 0) {
        hint->page = arena_read(table->arena, root->page);
    } else {
        hint->entry = directory_entry(table->arena, root, &hint->spot);
        __builtin_prefetch(hint->entry);
    }
}

static void hint_tags(const struct table *table, struct hint *hint)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT_SLOW(hint->entry == NULL || hint->page == NULL);
    if (hint->entry != NULL) {
        hint->page = arena_read(table->arena, *hint->entry);
    }
    if (hint->page != NULL) {
        const uint32_t group = segment_group(&table->layout, &hint->spot);
        __builtin_prefetch(hint->page + sizeof(struct segment_head) + group * TAGS_BYTES);
        const size_t page = (size_t)(hint->page - table->arena->base) >> ARENA_PAGE_SHIFT;
        __builtin_prefetch(&table->arena->meta[page]);
    }
}

/* Asks for the first slot whose tag matches.
 * returns  it or SEGMENT_SLOT_NONE */
static uint32_t hint_slot(const struct table *table, const struct hint *hint)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT_SLOW(hint != NULL);
    if (hint->page == NULL) {
        return SEGMENT_SLOT_NONE;
    }
    const struct segment_layout *layout = &table->layout;
    const uint32_t group = segment_group(layout, &hint->spot);
    const uint8_t *tags = hint->page + sizeof(struct segment_head) + group * TAGS_BYTES;
    const uint32_t either = tags_match(tags, hint->spot.tag) |
                            tags_match(tags, (uint8_t)(hint->spot.tag | SEGMENT_TAG_IS_FULL));
    const uint32_t hits = either & ((1U << layout->group_slots) - 1U);
    if (hits == 0) {
        return SEGMENT_SLOT_NONE;
    }
    const uint32_t slot = group * layout->group_slots + (uint32_t)__builtin_ctz(hits);
    __builtin_prefetch(hint->page + segment_key_offset(layout, slot));
    __builtin_prefetch(hint->page + segment_value_offset(layout, slot));
    return slot;
}

/* Asks for a value that lives in the heap. */
static void hint_value(const struct table *table, const struct hint *hint, uint32_t slot)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    if (slot != SEGMENT_SLOT_NONE) {
        uint64_t ref;
        memcpy(&ref, hint->page + segment_value_offset(&table->layout, slot), sizeof(ref));
        __builtin_prefetch(table->arena->base + ref);
        __builtin_prefetch(&table->arena->meta[heap_page(ref)]);
    }
}

static void group_prefetch(const struct table *table, const uint64_t *hashes, uint32_t count)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    struct hint hints[GROUP_COUNT];
    uint32_t slots[GROUP_COUNT];
    ASSERT(count <= GROUP_COUNT);
    for (uint32_t index = 0; index < count; index++) {
        hint_directory(table, hashes[index], &hints[index]);
    }
    for (uint32_t index = 0; index < count; index++) {
        hint_tags(table, &hints[index]);
    }
    for (uint32_t index = 0; index < count; index++) {
        slots[index] = hint_slot(table, &hints[index]);
    }
    for (uint32_t index = 0; table->is_value_in_heap && index < count; index++) {
        hint_value(table, &hints[index], slots[index]);
    }
}

void table_prefetch(const struct table *table, const uint64_t *hashes, uint32_t count)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT(count == 0 || hashes != NULL);
    for (uint32_t done = 0; done < count; done += GROUP_COUNT) {
        const uint32_t left = count - done;
        group_prefetch(table, hashes + done, left < GROUP_COUNT ? left : GROUP_COUNT);
    }
}

void table_find_bulk(const struct table *table, const uint64_t *hashes, const struct span *keys,
                     uint32_t count, const void **values)
{
    ASSERT(count == 0 || (hashes != NULL && keys != NULL));
    ASSERT(count == 0 || values != NULL);
    for (uint32_t done = 0; done < count; done += GROUP_COUNT) {
        const uint32_t left = count - done;
        const uint32_t step = left < GROUP_COUNT ? left : GROUP_COUNT;
        group_prefetch(table, hashes + done, step);
        for (uint32_t index = done; index < done + step; index++) {
            values[index] = table_find(table, hashes[index], keys[index]);
        }
    }
}
