/* SPDX-License-Identifier: Apache-2.0 */
/* Extendible hashing over the arena. A shard is empty, one segment, or a directory of segments; a
 * full segment splits in two (the first one of a shard, into its parts). Keys and values that do
 * not fit a slot live in the heap, and the slot holds the reference.
 *
 * Invariants:
 *  T1  an entry stands in the segment that the directory names for its hash, or in that one's chain
 *  T2  all entries of a segment share its part and the low depth bits of index
 *  T3  a segment of depth d stands at every entry of its part whose low d bits are its pattern, and
 *      nowhere else
 *  T4  only segments of depth DIRECTORY_DEPTH_MAX have chains
 *  T5  root.entry_count counts the shard's entries
 *  T6  an insert takes every page and block that it needs before it changes what lookups see */
#include "state/table.h"

#include <errno.h>
#include <stdlib.h>

#include "state/table_inner.h"

#define KEY_BYTES_INLINE_DEFAULT 24U

static int config_check(const struct table_config *config, struct error *error)
{
    ASSERT(config != NULL);
    if (config->value_bytes > TABLE_VALUE_BYTES_MAX) {
        return error_set(error, -EINVAL, "state '%s': values of %u bytes, at most %u are possible",
                         config->name, config->value_bytes, TABLE_VALUE_BYTES_MAX);
    }
    if (config->key_bytes_max > TABLE_KEY_BYTES_MAX ||
        config->key_bytes_inline > TABLE_KEY_BYTES_INLINE_MAX) {
        return error_set(error, -EINVAL, "state '%s': keys of %u bytes, %u of them in place",
                         config->name, config->key_bytes_max, config->key_bytes_inline);
    }
    if (config->head_count > TABLE_HEAD_COUNT_MAX) {
        return error_set(error, -EINVAL, "state '%s': %u embedded heads, at most %u are possible",
                         config->name, config->head_count, TABLE_HEAD_COUNT_MAX);
    }
    for (uint32_t index = 0; index < config->head_count; index++) {
        if (config->heads[index].offset % 8 != 0 ||
            config->heads[index].offset + 8U > config->value_bytes) {
            return error_set(error, -EINVAL, "state '%s': head %u lies outside the value",
                             config->name, index);
        }
    }
    return 0;
}

/* How many bytes of key a slot holds: a key that can be longer needs room for its reference. */
static uint32_t key_inline_bytes(const struct table_config *config, uint32_t key_bytes_max)
{
    ASSERT_SLOW(config != NULL);
    ASSERT(key_bytes_max != 0);
    uint32_t bytes = config->key_bytes_inline;
    bytes = bytes == 0 ? KEY_BYTES_INLINE_DEFAULT : bytes;
    if (key_bytes_max <= bytes || key_bytes_max <= SEGMENT_KEY_REF_BYTES) {
        return key_bytes_max;
    }
    return bytes < SEGMENT_KEY_REF_BYTES ? SEGMENT_KEY_REF_BYTES : bytes;
}

int table_create(struct heap *heap, const struct table_config *config, struct table **out,
                 struct error *error)
{
    ASSERT(heap != NULL && config != NULL);
    ASSERT(config->name != NULL && out != NULL);
    int result = config_check(config, error);
    if (result != 0) {
        return result;
    }
    struct arena *arena = heap->arena;
    struct table *table = calloc(1, sizeof(*table));
    const struct directory_root **roots = calloc(arena->shard_count, sizeof(const void *));
    if (table == NULL || roots == NULL) {
        result = error_set(error, -ENOMEM, "no memory for state '%s'", config->name);
        goto fail;
    }
    result = arena_object_create(arena, ARENA_OBJECT_TABLE, config->name, &table->object, error);
    if (result != 0) {
        goto fail;
    }
    arena_object_attach(arena, table->object, &table_shape_ops, table);
    table->heap = heap;
    table->arena = arena;
    table->roots = roots;
    table->shard_count = arena->shard_count;
    table->value_bytes = config->value_bytes;
    table->key_bytes_max = config->key_bytes_max == 0 ? TABLE_KEY_BYTES_MAX : config->key_bytes_max;
    table->is_value_in_heap = config->value_bytes > TABLE_VALUE_BYTES_INLINE_MAX;
    table->layout = segment_layout_of(key_inline_bytes(config, table->key_bytes_max),
                                      table->is_value_in_heap ? (uint32_t)sizeof(uint64_t)
                                                              : (config->value_bytes + 7U) & ~7U);
    table->layout.key_skip_bytes = config->key_skip_bytes;
    table->head_count = config->head_count;
    if (config->head_count != 0) {
        memcpy(table->heads, config->heads, config->head_count * sizeof(*config->heads));
    }
    *out = table;
    return 0;
fail:
    free(roots);
    free(table);
    return result;
}

void table_destroy(struct table *table)
{
    if (table != NULL) {
        free(table->roots);
        free(table);
    }
}

uint32_t table_shard(const struct table *table, uint64_t hash)
{
    ASSERT_SLOW(table->heap != NULL);
    return hash_shard(hash, table->shard_count);
}

const struct table_counters *table_counters(const struct table *table)
{
    ASSERT_SLOW(table->heap != NULL);
    return &table->counters;
}

/* The shard's root to write; roots never move, so its address is kept. */
static struct directory_root *root_write(struct table *table, uint32_t shard)
{
    ASSERT_SLOW(shard < table->shard_count);
    struct directory_root *root = arena_root_write(table->arena, table->object, shard);
    ASSERT(root == NULL || root->depth <= DIRECTORY_DEPTH_MAX);
    table->roots[shard] = root;
    return root;
}

static struct segment_head *head_write(struct table *table, uint32_t page)
{
    ASSERT_SLOW(table->heap != NULL);
    return (void *)arena_write(table->arena, page);
}

/* Looks a key up in the segment of its spot and in that one's chain (T1). */
static inline struct table_at entry_find(const struct table *table, const struct segment_spot *spot,
                                         uint64_t hash, struct span key)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT(key.bytes <= table->key_bytes_max);
    const struct directory_root *root = table_root_of(table, spot->shard);
    struct table_at at = {.slot = SEGMENT_SLOT_NONE};
    uint32_t page = root == NULL ? 0 : directory_find(table->arena, root, spot);
    while (page != 0) {
        const uint8_t *bytes = arena_read(table->arena, page);
        at.page = page;
        at.slot = segment_find(&table->layout, table->heap, bytes, spot, hash, key);
        if (at.slot != SEGMENT_SLOT_NONE) {
            break;
        }
        page = ((const struct segment_head *)(const void *)bytes)->next;
    }
    return at;
}

const void *table_find(const struct table *table, uint64_t hash, struct span key)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(hash == hash_behind(key, table->layout.key_skip_bytes));
    const struct segment_spot spot = segment_spot_of(hash, table->shard_count);
    const struct table_at at = entry_find(table, &spot, hash, key);
    if (at.slot == SEGMENT_SLOT_NONE) {
        return NULL;
    }
    return heap_read_in(table->arena, table_value_place(table, at));
}

void *table_find_write(struct table *table, uint64_t hash, struct span key)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(hash == hash_behind(key, table->layout.key_skip_bytes));
    const struct segment_spot spot = segment_spot_of(hash, table->shard_count);
    const struct table_at at = entry_find(table, &spot, hash, key);
    if (at.slot == SEGMENT_SLOT_NONE) {
        return NULL;
    }
    return heap_write_in(table->arena, table_value_place(table, at));
}

/* Takes and empties a segment page. */
static uint32_t segment_acquire(struct table *table, uint32_t shard, uint32_t depth, uint32_t part,
                                uint32_t pattern)
{
    ASSERT_SLOW(shard < table->shard_count);
    ASSERT_SLOW(table->heap != NULL);
    const uint32_t page = arena_page_acquire(table->arena, shard, ARENA_PAGE_TABLE_SEGMENT);
    if (page != 0) {
        segment_init(&table->layout, arena_write(table->arena, page), depth, part, pattern);
        table->counters.segments++;
    }
    return page;
}

static void segment_free(struct table *table, uint32_t page)
{
    ASSERT(table->counters.segments != 0);
    arena_page_release(table->arena, page);
    table->counters.segments--;
}

/* Turns a shard of one full segment into a directory with a segment for each part. */
static bool shard_fan_out(struct table *table, struct directory_root *root, uint32_t shard)
{
    ASSERT_SLOW(shard < table->shard_count);
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT(root->level == 0 && root->page != 0);
    const uint32_t first = root->page;
    const uint32_t parts = segment_parts(shard);
    uint32_t pages[SEGMENT_PARTS_MAX] = {first};
    uint8_t *into[SEGMENT_PARTS_MAX] = {NULL};
    uint32_t taken = 1;
    for (; taken < parts; taken++) {
        pages[taken] = segment_acquire(table, shard, 0, taken, 0);
        if (pages[taken] == 0) {
            break;
        }
        into[taken] = arena_write(table->arena, pages[taken]);
    }
    if (taken < parts || !directory_open(table->arena, root, shard)) {
        while (taken > 1) {
            segment_free(table, pages[--taken]);
        }
        return false;
    }
    for (uint32_t part = 0; part < parts; part++) {
        directory_set(table->arena, root, shard, part, 0, 0, pages[part]);
    }
    segment_move(&table->layout, arena_write(table->arena, first), into, table->shard_count, 0);
    table->counters.splits++;
    return true;
}

/* Splits a segment by its next bit of index. */
static bool segment_split(struct table *table, struct directory_root *root, uint32_t shard,
                          uint32_t page)
{
    ASSERT_SLOW(shard < table->shard_count);
    ASSERT_SLOW(table->heap != NULL);
    const struct segment_head head = *table_head_of(table, page);
    ASSERT(head.depth < DIRECTORY_DEPTH_MAX && head.next == 0); /* T4 */
    const uint32_t depth = head.depth + 1U;
    const uint32_t pattern = head.pattern | 1U << head.depth;
    const uint32_t fresh = segment_acquire(table, shard, depth, head.part, pattern);
    if (fresh == 0) {
        return false;
    }
    if (!directory_grow(table->arena, root, shard, depth, pattern)) {
        segment_free(table, fresh);
        return false;
    }
    directory_set(table->arena, root, shard, head.part, depth, pattern, fresh); /* T3 */
    uint8_t *into[2] = {NULL, arena_write(table->arena, fresh)};
    head_write(table, page)->depth = (uint8_t)depth;
    segment_move(&table->layout, arena_write(table->arena, page), into, table->shard_count,
                 1U << head.depth);
    table->counters.splits++;
    return true;
}

/* Finds a page with room in the chain of a segment that cannot split, or puts one behind its head.
 */
static uint32_t chain_room(struct table *table, uint32_t shard, uint32_t page)
{
    ASSERT_SLOW(shard < table->shard_count);
    ASSERT_SLOW(table->heap != NULL);
    const struct segment_head head = *table_head_of(table, page);
    ASSERT(head.depth == DIRECTORY_DEPTH_MAX); /* T4 */
    for (uint32_t link = page; link != 0; link = table_head_of(table, link)->next) {
        if (table_head_of(table, link)->count < table->layout.slot_count) {
            return link;
        }
    }
    const uint32_t fresh = segment_acquire(table, shard, head.depth, head.part, head.pattern);
    if (fresh != 0) {
        head_write(table, fresh)->next = head.next;
        head_write(table, page)->next = fresh;
        table->counters.overflows++;
    }
    return fresh;
}

/* Finds or makes a segment page with a free slot for spot.
 * returns  0 when the arena is exhausted */
static uint32_t segment_with_room(struct table *table, struct directory_root *root,
                                  const struct segment_spot *spot)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    if (root->page == 0) {
        root->page = segment_acquire(table, spot->shard, 0, 0, 0);
    }
    for (uint32_t step = 0; step <= DIRECTORY_DEPTH_MAX + 1U; step++) {
        const uint32_t page = directory_find(table->arena, root, spot);
        if (page == 0 || table_head_of(table, page)->count < table->layout.slot_count) {
            return page;
        }
        if (table_head_of(table, page)->depth == DIRECTORY_DEPTH_MAX) {
            return chain_room(table, spot->shard, page);
        }
        const bool is_done = root->level == 0 ? shard_fan_out(table, root, spot->shard)
                                              : segment_split(table, root, spot->shard, page);
        if (!is_done) {
            return 0;
        }
    }
    ASSERT(false); /* T2: depth has grown past its end */
    return 0;
}

/* What a new entry holds outside its slot; 0 where nothing. */
struct outside {
    uint64_t key;
    uint64_t value;
};

/* Takes the blocks of a new entry (T6).
 * returns  false when the arena is exhausted, with nothing taken */
static bool outside_acquire(struct table *table, uint32_t shard, struct span key,
                            struct outside *out)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT(shard < table->shard_count);
    *out = (struct outside){0};
    if (key.bytes > table->layout.key_inline_bytes) {
        out->key = heap_blob_store(table->heap, shard, key);
        if (out->key == 0) {
            return false;
        }
    }
    if (table->is_value_in_heap) {
        out->value = heap_acquire(table->heap, shard, table->value_bytes);
        if (out->value == 0 && out->key != 0) {
            heap_blob_release(table->heap, out->key);
        }
        return out->value != 0;
    }
    return true;
}

/* Fills a slot just placed.
 * returns  the value, zeroed */
static void *slot_fill(struct table *table, uint8_t *page, uint32_t slot, struct span key,
                       uint64_t hash, const struct outside *outside)
{
    ASSERT_SLOW(table != NULL);
    uint8_t *value = page + segment_value_offset(&table->layout, slot);
    ASSERT((outside->value != 0) == table->is_value_in_heap);
    segment_key_write(&table->layout, page, slot, key, outside->key, hash);
    if (outside->value != 0) {
        memcpy(value, &outside->value, sizeof(outside->value));
        value = heap_write(table->heap, outside->value);
    }
    memset(value, 0, table->value_bytes);
    return value;
}

static void *entry_create(struct table *table, const struct segment_spot *spot, uint64_t hash,
                          struct span key)
{
    ASSERT(table != NULL);
    ASSERT(spot != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    struct directory_root *root = root_write(table, spot->shard);
    if (root == NULL) {
        return NULL;
    }
    ASSERT(key.bytes <= table->key_bytes_max);
    struct outside outside;
    if (!outside_acquire(table, spot->shard, key, &outside)) {
        return NULL;
    }
    const uint32_t page = segment_with_room(table, root, spot);
    if (page == 0) {
        if (outside.key != 0) {
            heap_blob_release(table->heap, outside.key);
        }
        if (outside.value != 0) {
            heap_release(table->heap, outside.value);
        }
        return NULL;
    }
    uint8_t *bytes = arena_write(table->arena, page);
    const uint32_t slot =
        segment_place(&table->layout, bytes, spot, segment_tag_of(&table->layout, spot, key.bytes));
    root->entry_count++; /* T5 */
    table->counters.entries++;
    return slot_fill(table, bytes, slot, key, hash, &outside);
}

void *table_insert(struct table *table, uint64_t hash, struct span key, bool *created)
{
    ASSERT(created != NULL);
    ASSERT_SLOW(hash == hash_behind(key, table->layout.key_skip_bytes));
    const struct segment_spot spot = segment_spot_of(hash, table->shard_count);
    const struct table_at at = entry_find(table, &spot, hash, key);
    if (at.slot != SEGMENT_SLOT_NONE) {
        *created = false;
        return heap_write_in(table->arena, table_value_place(table, at));
    }
    void *value = entry_create(table, &spot, hash, key);
    *created = value != NULL;
    return value;
}

void table_entry_free(struct table *table, const struct segment_spot *spot, struct table_at at)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    uint8_t *page = arena_write(table->arena, at.page);
    uint64_t key;
    (void)segment_key_read(&table->layout, page, at.slot, &key);
    if (key != 0) {
        heap_blob_release(table->heap, key);
    }
    if (table->is_value_in_heap) {
        heap_release(table->heap, table_value_place(table, at));
    }
    segment_clear(&table->layout, page, spot, at.slot);
    struct directory_root *root = root_write(table, spot->shard);
    ASSERT(root != NULL && root->entry_count != 0); /* T5 */
    root->entry_count--;
    table->counters.entries--;
}

/* Takes empty pages out of a chain. */
static void chain_trim(struct table *table, uint32_t first)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    uint32_t prev = first;
    while (table_head_of(table, prev)->next != 0) {
        const uint32_t link = table_head_of(table, prev)->next;
        if (table_head_of(table, link)->count == 0) {
            head_write(table, prev)->next = table_head_of(table, link)->next;
            segment_free(table, link);
        } else {
            prev = link;
        }
    }
}

/* Joins a segment with its buddy when both together are half empty.
 * returns  the page that holds both, 0 when they stay apart */
static uint32_t segment_join(struct table *table, const struct directory_root *root,
                             const struct segment_spot *spot, uint32_t page)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    const struct segment_head head = *table_head_of(table, page);
    if (root->level == 0 || head.depth == 0 || head.next != 0 ||
        head.count > table->layout.slot_count / 4U) {
        return 0;
    }
    const uint32_t bit = 1U << (head.depth - 1U);
    struct segment_spot beside = *spot;
    beside.index = head.pattern ^ bit;
    const uint32_t buddy = directory_find(table->arena, root, &beside);
    const struct segment_head *other = table_head_of(table, buddy);
    if (other->depth != head.depth || other->next != 0 ||
        other->count + head.count > table->layout.slot_count / 2U) {
        return 0;
    }
    uint8_t *bytes = arena_write(table->arena, buddy);
    uint8_t *into[SEGMENT_PARTS_MAX];
    for (uint32_t part = 0; part < SEGMENT_PARTS_MAX; part++) {
        into[part] = bytes;
    }
    segment_move(&table->layout, arena_write(table->arena, page), into, table->shard_count, 0);
    struct segment_head *joined = head_write(table, buddy);
    ASSERT(joined->depth == head.depth && joined->part == head.part); /* T2 */
    joined->depth--;
    joined->pattern &= ~bit;
    directory_set(table->arena, root, spot->shard, head.part, joined->depth, joined->pattern,
                  buddy); /* T3 */
    segment_free(table, page);
    table->counters.merges++;
    return buddy;
}

/* A joined segment may be joined again, up to the depth: a shard that empties out gives all its
 * segments back but one a part. */
void table_segment_merge(struct table *table, const struct segment_spot *spot, uint32_t page)
{
    ASSERT_SLOW(table->heap != NULL);
    struct directory_root *root = root_write(table, spot->shard);
    ASSERT(root != NULL && page != 0);
    if (table_head_of(table, page)->next != 0) {
        chain_trim(table, page);
        return;
    }
    for (uint32_t step = 0; page != 0 && step <= DIRECTORY_DEPTH_MAX; step++) {
        page = segment_join(table, root, spot, page);
    }
}

bool table_remove(struct table *table, uint64_t hash, struct span key)
{
    ASSERT_SLOW(table->heap != NULL);
    ASSERT_SLOW(table->head_count <= TABLE_HEAD_COUNT_MAX);
    ASSERT_SLOW(hash == hash_behind(key, table->layout.key_skip_bytes));
    const struct segment_spot spot = segment_spot_of(hash, table->shard_count);
    const struct table_at at = entry_find(table, &spot, hash, key);
    if (at.slot == SEGMENT_SLOT_NONE) {
        return false;
    }
    table_entry_free(table, &spot, at);
    table_segment_merge(table, &spot,
                        directory_find(table->arena, table_root_of(table, spot.shard), &spot));
    return true;
}
