/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *  D1  the index's slot 0 is never 0, so a lookup ends after at most 10 cleared bits
 *  D2  a page of the index is a copy of what its number read as before, so making one changes no
 *      answer
 *  D3  before directory_set with more than DIRECTORY_PAGE_DEPTH bits, the page that pattern lies
 *      in exists: so absent pages behind it read through it and not past it */
#include "state/directory.h"

#define PAGE_INDEXES (1U << DIRECTORY_PAGE_DEPTH)

static_assert(PAGE_INDEXES * 7U * 4U <= ARENA_PAGE_BYTES, "the widest fan-out fits a page");
static_assert(DIRECTORY_INDEX_SLOTS == 1U << (DIRECTORY_DEPTH_MAX - DIRECTORY_PAGE_DEPTH),
              "one index page");

static const uint32_t *words_read(const struct arena *arena, uint32_t page)
{
    ASSERT_SLOW(arena->meta[page].kind == ARENA_PAGE_TABLE_DIRECTORY);
    return (const uint32_t *)(const void *)arena_read(arena, page);
}

static uint32_t *words_write(struct arena *arena, uint32_t page)
{
    ASSERT(arena->meta[page].kind == ARENA_PAGE_TABLE_DIRECTORY);
    return (uint32_t *)(void *)arena_write(arena, page);
}

/* The page that index slot number reads as (D1). */
static inline uint32_t page_behind(const uint32_t *index, uint32_t slot)
{
    ASSERT_SLOW(index[0] != 0); /* D1 */
    while (UNLIKELY(index[slot] == 0)) {
        ASSERT(slot != 0);
        slot &= ~(UINT32_C(1) << (31 - __builtin_clz(slot)));
    }
    return index[slot];
}

const uint32_t *directory_entry(const struct arena *arena, const struct directory_root *root,
                                const struct segment_spot *spot)
{
    ASSERT_SLOW(root->level != 0 && root->depth <= DIRECTORY_DEPTH_MAX);
    ASSERT_SLOW(spot->part < segment_parts(spot->shard));
    uint32_t index = spot->index & ((1U << root->depth) - 1U);
    uint32_t page = root->page;
    if (root->level == 2) {
        page = page_behind(words_read(arena, page), index >> DIRECTORY_PAGE_DEPTH);
        index &= PAGE_INDEXES - 1U;
    }
    return words_read(arena, page) + index * segment_parts(spot->shard) + spot->part;
}

bool directory_open(struct arena *arena, struct directory_root *root, uint32_t shard)
{
    ASSERT(arena != NULL);
    ASSERT(root != NULL);
    ASSERT(root->level == 0);
    const uint32_t page = arena_page_acquire(arena, shard, ARENA_PAGE_TABLE_DIRECTORY);
    if (page == 0) {
        return false;
    }
    memset(arena_write(arena, page), 0, ARENA_PAGE_BYTES);
    root->page = page;
    root->level = 1;
    root->depth = 0;
    return true;
}

/* Doubles a level 1 directory inside its page. */
static void page_double(struct arena *arena, const struct directory_root *root, uint32_t shard)
{
    ASSERT_SLOW(arena != NULL);
    uint32_t *entries = words_write(arena, root->page);
    const uint32_t count = segment_parts(shard) << root->depth;
    ASSERT(2U * count * sizeof(*entries) <= ARENA_PAGE_BYTES);
    memcpy(entries + count, entries, count * sizeof(*entries));
}

/* Puts an index above a full level 1 page. */
static bool index_open(struct arena *arena, struct directory_root *root, uint32_t shard)
{
    ASSERT(arena != NULL);
    const uint32_t page = arena_page_acquire(arena, shard, ARENA_PAGE_TABLE_DIRECTORY);
    if (page == 0) {
        return false;
    }
    uint32_t *index = words_write(arena, page);
    memset(index, 0, ARENA_PAGE_BYTES);
    index[0] = root->page;
    root->page = page;
    root->level = 2;
    return true;
}

/* Makes the index slot a page of its own (D2). */
static bool index_fill(struct arena *arena, const struct directory_root *root, uint32_t shard,
                       uint32_t slot)
{
    ASSERT_SLOW(arena != NULL);
    ASSERT_SLOW(root != NULL);
    ASSERT(slot < DIRECTORY_INDEX_SLOTS);
    const uint32_t *index = words_read(arena, root->page);
    if (index[slot] != 0) {
        return true;
    }
    const uint32_t page = arena_page_acquire(arena, shard, ARENA_PAGE_TABLE_DIRECTORY);
    if (page == 0) {
        return false;
    }
    memcpy(arena_write(arena, page), arena_read(arena, page_behind(index, slot)), ARENA_PAGE_BYTES);
    words_write(arena, root->page)[slot] = page;
    return true;
}

bool directory_grow(struct arena *arena, struct directory_root *root, uint32_t shard,
                    uint32_t depth, uint32_t pattern)
{
    ASSERT_SLOW(arena != NULL);
    ASSERT(root->level != 0 && depth <= DIRECTORY_DEPTH_MAX);
    ASSERT(depth <= root->depth + 1U && pattern < 1U << depth);
    if (depth > root->depth) {
        if (root->depth < DIRECTORY_PAGE_DEPTH) {
            page_double(arena, root, shard);
        } else if (root->level == 1 && !index_open(arena, root, shard)) {
            return false;
        }
        root->depth++;
    }
    return root->level == 1 || index_fill(arena, root, shard, pattern >> DIRECTORY_PAGE_DEPTH);
}

/* Sets entries inside one directory page that is 1 << width indexes wide. */
static void page_set(struct arena *arena, uint32_t directory, const struct segment_spot *at,
                     uint32_t width, uint32_t step, uint32_t page)
{
    ASSERT_SLOW(arena != NULL);
    ASSERT(step != 0 && at->index < 1U << width);
    uint32_t *entries = words_write(arena, directory);
    for (uint32_t index = at->index; index < 1U << width; index += step) {
        entries[index * segment_parts(at->shard) + at->part] = page;
    }
}

void directory_set(struct arena *arena, const struct directory_root *root, uint32_t shard,
                   uint32_t part, uint32_t depth, uint32_t pattern, uint32_t page)
{
    ASSERT(root->level != 0 && depth <= root->depth);
    ASSERT(part < segment_parts(shard) && pattern < 1U << depth);
    struct segment_spot at = {.shard = shard, .part = part, .index = pattern};
    if (root->level == 1) {
        page_set(arena, root->page, &at, root->depth, 1U << depth, page);
        return;
    }
    const uint32_t *index = words_read(arena, root->page);
    const uint32_t slots = 1U << (root->depth - DIRECTORY_PAGE_DEPTH);
    const bool is_wide = depth > DIRECTORY_PAGE_DEPTH;
    const uint32_t slot_step = is_wide ? 1U << (depth - DIRECTORY_PAGE_DEPTH) : 1U;
    ASSERT(index[pattern >> DIRECTORY_PAGE_DEPTH] != 0 || !is_wide); /* D3 */
    at.index = pattern & (PAGE_INDEXES - 1U);
    for (uint32_t slot = pattern >> DIRECTORY_PAGE_DEPTH; slot < slots; slot += slot_step) {
        if (index[slot] != 0) {
            page_set(arena, index[slot], &at, DIRECTORY_PAGE_DEPTH,
                     is_wide ? PAGE_INDEXES : 1U << depth, page);
        }
    }
}
