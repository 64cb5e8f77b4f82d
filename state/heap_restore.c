/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a heap over from a checkpoint: every page's count and chain of free blocks are checked,
 * pages with room go on their lists, and what was queued to be freed is counted again. Blocks in
 * use are for those that refer to them to check (audit.h); a block that nobody names is no fault,
 * since operators may hold references of their own. */
#include <errno.h>

#include "state/audit.h"
#include "state/heap_inner.h"

static void heap_describe(const void *shape, struct shape_description *out)
{
    ASSERT(shape != NULL && out != NULL);
}

/* Marks a page's free blocks.
 * returns  whether the page is sound */
static bool page_adopt(struct heap *heap, struct audit *audit, uint32_t page)
{
    const uint8_t *base = arena_read(heap->arena, page);
    const struct heap_page *head = (const void *)base;
    ASSERT_SLOW(heap->arena->meta[page].kind == ARENA_PAGE_HEAP);
    if (head->class_index >= HEAP_CLASS_COUNT || head->fresh == 0 || head->used == 0) {
        return false;
    }
    const uint32_t units = heap_class_at(head->class_index) / HEAP_UNIT;
    const uint32_t taken = (head->fresh - 1U) / units;
    if ((head->fresh - 1U) % units != 0 || head->fresh > ARENA_PAGE_BYTES / HEAP_UNIT) {
        return false;
    }
    uint32_t count = 0;
    for (uint32_t place = head->free; place != 0; count++) {
        const uint64_t ref = ((uint64_t)page << ARENA_PAGE_SHIFT) + place * HEAP_UNIT;
        if (place >= head->fresh || (place - 1U) % units != 0 || !audit_mark(audit, ref)) {
            return false;
        }
        uint16_t next;
        memcpy(&next, base + place * HEAP_UNIT, sizeof(next));
        place = next;
    }
    return count + head->used == taken;
}

/* One index block of a blob that is being freed, and what pieces it still has. */
static int queued_index_check(struct heap *heap, struct audit *audit, uint64_t ref, uint32_t shard)
{
    const int code = audit_block(audit, ref, shard, sizeof(struct blob_index));
    if (code != 0) {
        return code;
    }
    const struct blob_index *index = heap_read(heap, ref);
    if (index->piece_count > BLOB_INDEX_PIECES ||
        heap_block_bytes(heap, ref) < sizeof(*index) + index->piece_count * sizeof(uint64_t)) {
        return audit_fault(audit, heap_page(ref), "an index of freed pages is damaged");
    }
    for (uint32_t piece = 0; piece < index->piece_count; piece++) {
        const uint64_t at = index->pieces[piece];
        const uint64_t page = at >> ARENA_PAGE_SHIFT;
        const bool is_page = at % ARENA_PAGE_BYTES == 0 && page <= UINT32_MAX;
        const int found = is_page ? audit_page(audit, (uint32_t)page, ARENA_PAGE_BLOB, shard)
                                  : audit_block(audit, at, shard, 1);
        if (found != 0) {
            return found;
        }
    }
    heap->counters.blob_pages_queued += 1U + index->piece_count;
    return 0;
}

/* A shard's queue of long blobs to free: each a chain of index blocks, taken once each. */
static int queue_check(struct heap *heap, struct audit *audit, uint32_t shard)
{
    const struct heap_root *root = arena_root_read(heap->arena, heap->object, shard);
    ASSERT_SLOW(shard < heap->arena->shard_count);
    uint64_t blob = root == NULL ? 0 : root->queue;
    while (blob != 0) {
        uint64_t queued = 0;
        for (uint64_t ref = blob; ref != 0;) {
            const int code = queued_index_check(heap, audit, ref, shard);
            if (code != 0) {
                return code;
            }
            const struct blob_index *index = heap_read(heap, ref);
            queued = ref == blob ? index->queued : queued;
            ref = index->next;
        }
        blob = queued;
    }
    return 0;
}

static int heap_rebuild(void *shape, struct audit *audit, struct error *error)
{
    struct heap *heap = shape;
    ASSERT(heap->arena != NULL);
    struct arena *arena = heap->arena;
    heap->counters = (struct heap_counters){0};
    heap->queue_shard = 0;
    memset(heap->partial, 0,
           (size_t)arena->shard_count * HEAP_CLASS_COUNT * sizeof(*heap->partial));
    for (uint32_t page = audit == NULL ? 0 : arena->page_fresh - 1U; page != 0; page--) {
        heap->counters.blob_pages_used += arena->meta[page].kind == ARENA_PAGE_BLOB;
        if (arena->meta[page].kind != ARENA_PAGE_HEAP) {
            continue;
        }
        if (!page_adopt(heap, audit, page)) {
            return error_set(error, -EBADMSG, "page %u of the heap is damaged", page);
        }
        const struct heap_page *head = (const void *)arena_read(arena, page);
        if (heap_page_has_room(head)) {
            heap_partial_link(heap, page, head->class_index);
        }
        heap->counters.blocks_used += head->used;
        heap->counters.bytes_used += (uint64_t)head->used * heap_class_at(head->class_index);
    }
    int code = 0;
    for (uint32_t shard = 0; audit != NULL && code == 0 && shard < arena->shard_count; shard++) {
        code = queue_check(heap, audit, shard);
        code = code == 0 ? trash_audit(heap, audit, shard) : code;
    }
    return code == 0 ? 0 : error_set(error, code, "page %u: %s", audit->page, audit->reason);
}

/* What a heap holds is copied by those that refer to it. */
static int heap_copy(void *into, void *from, struct shape_copy *copy)
{
    ASSERT(into != NULL && from != NULL && copy != NULL);
    return 0;
}

const struct shape_ops heap_shape_ops = {
    .describe = heap_describe,
    .rebuild = heap_rebuild,
    .copy = heap_copy,
};

uint64_t copy_blob(const struct heap *from_heap, uint64_t ref, struct heap *into_heap,
                   struct shape_copy *copy)
{
    ASSERT(ref != 0 && copy->scratch != NULL);
    const uint32_t bytes = heap_blob_bytes(from_heap, ref);
    ASSERT(bytes <= SHAPE_SCRATCH_BYTES);
    heap_blob_read(from_heap, ref, 0, bytes, copy->scratch);
    return heap_blob_store(into_heap, copy->shard, (struct span){copy->scratch, bytes});
}
