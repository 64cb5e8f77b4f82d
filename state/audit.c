/* SPDX-License-Identifier: Apache-2.0 */
/* One bit says taken, for pages as a whole and for each block's first unit. A heap page's free
 * blocks are marked when the page is taken over, so a reference to one shows. */
#include "state/audit.h"

#include <errno.h>
#include <stdlib.h>

#include "state/heap_inner.h"

#define WORDS_A_PAGE (ARENA_PAGE_BYTES / HEAP_UNIT / 64U)

int audit_init(struct audit *audit, struct arena *arena, struct heap *heap, struct error *error)
{
    ASSERT(audit != NULL && arena != NULL && heap != NULL);
    const size_t pages = arena->page_fresh;
    *audit = (struct audit){
        .arena = arena,
        .heap = heap,
        .pages = calloc(pages / 64U + 1U, sizeof(uint64_t)),
        .blocks = calloc(pages * WORDS_A_PAGE, sizeof(uint64_t)),
        .scratch = malloc(SHAPE_SCRATCH_BYTES),
    };
    if (audit->pages == NULL || audit->blocks == NULL || audit->scratch == NULL) {
        audit_fini(audit);
        return error_set(error, -ENOMEM, "no memory to check the checkpoint");
    }
    return 0;
}

void audit_fini(struct audit *audit)
{
    ASSERT(audit != NULL);
    free(audit->pages);
    free(audit->blocks);
    free(audit->scratch);
    *audit = (struct audit){0};
}

int audit_fault(struct audit *audit, uint32_t page, const char *reason)
{
    ASSERT(reason != NULL);
    if (audit->reason == NULL) {
        audit->page = page;
        audit->reason = reason;
    }
    return -EBADMSG;
}

int audit_page(struct audit *audit, uint32_t page, enum arena_page_kind kind, uint32_t shard)
{
    ASSERT(shard < audit->arena->shard_count);
    if (page == 0 || page >= audit->arena->page_fresh) {
        return audit_fault(audit, page, "a page number is out of range");
    }
    const struct arena_page_meta *meta = &audit->arena->meta[page];
    if (meta->kind != kind || meta->shard != shard) {
        return audit_fault(audit, page, "a page is of another kind or shard than what names it");
    }
    const uint64_t bit = UINT64_C(1) << (page % 64U);
    if ((audit->pages[page / 64U] & bit) != 0) {
        return audit_fault(audit, page, "a page is named twice");
    }
    audit->pages[page / 64U] |= bit;
    return 0;
}

bool audit_mark(struct audit *audit, uint64_t ref)
{
    const uint64_t unit = ref / HEAP_UNIT;
    ASSERT(unit / 64U < (uint64_t)audit->arena->page_fresh * WORDS_A_PAGE);
    uint64_t *word = &audit->blocks[unit / 64U];
    const uint64_t bit = UINT64_C(1) << (unit % 64U);
    const bool is_first = (*word & bit) == 0;
    *word |= bit;
    return is_first;
}

int audit_block(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t bytes_min)
{
    const struct arena *arena = audit->arena;
    ASSERT(shard < arena->shard_count);
    const uint64_t page = ref >> ARENA_PAGE_SHIFT;
    if (page == 0 || page >= arena->page_fresh || arena->meta[page].kind != ARENA_PAGE_HEAP ||
        arena->meta[page].shard != shard) {
        return audit_fault(audit, (uint32_t)page, "a reference leads to no heap page of its shard");
    }
    const struct heap_page *head = (const void *)arena_read(arena, (uint32_t)page);
    const uint32_t offset = ref & (ARENA_PAGE_BYTES - 1U);
    const uint32_t bytes = heap_class_at(head->class_index);
    const uint32_t place = offset / HEAP_UNIT;
    if (offset % HEAP_UNIT != 0 || place == 0 || place >= head->fresh ||
        (place - 1U) % (bytes / HEAP_UNIT) != 0 || bytes < bytes_min) {
        return audit_fault(audit, (uint32_t)page, "a reference leads to no block of its size");
    }
    if (!audit_mark(audit, ref)) {
        return audit_fault(audit, (uint32_t)page, "a block is free, or named twice");
    }
    return 0;
}

/* A piece of a long blob: a page, or a block of the rest. */
static int piece_check(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t bytes)
{
    ASSERT(bytes != 0 && bytes <= ARENA_PAGE_BYTES);
    if (bytes <= HEAP_BLOCK_BYTES_MAX) {
        return audit_block(audit, ref, shard, bytes);
    }
    if (ref % ARENA_PAGE_BYTES != 0 || ref >> ARENA_PAGE_SHIFT > UINT32_MAX) {
        return audit_fault(audit, 0, "a piece of a blob is no page");
    }
    return audit_page(audit, heap_page(ref), ARENA_PAGE_BLOB, shard);
}

/* One index block and its pieces, of bytes content.
 * returns  0 and the next index block, or -EBADMSG */
static int index_check(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t bytes,
                       uint64_t *next)
{
    ASSERT(bytes != 0 && bytes <= BLOB_INDEX_CONTENT);
    const struct blob_index *index = heap_read(audit->heap, ref);
    const uint32_t count = (bytes + ARENA_PAGE_BYTES - 1U) / ARENA_PAGE_BYTES;
    if (index->piece_count != count ||
        heap_block_bytes(audit->heap, ref) < sizeof(*index) + count * sizeof(uint64_t)) {
        return audit_fault(audit, heap_page(ref), "a blob's index does not fit its length");
    }
    for (uint32_t piece = 0; piece < count; piece++) {
        const uint32_t left = bytes - piece * ARENA_PAGE_BYTES;
        const int code = piece_check(audit, index->pieces[piece], shard,
                                     left < ARENA_PAGE_BYTES ? left : ARENA_PAGE_BYTES);
        if (code != 0) {
            return code;
        }
    }
    *next = index->next;
    return 0;
}

int audit_blob(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t *bytes)
{
    ASSERT(bytes != NULL);
    int code = audit_block(audit, ref, shard, BLOB_HEAD_BYTES);
    if (code != 0) {
        return code;
    }
    uint32_t left = heap_blob_bytes(audit->heap, ref);
    *bytes = left;
    if (!blob_is_long(left)) {
        return heap_block_bytes(audit->heap, ref) >= BLOB_HEAD_BYTES + left
                   ? 0
                   : audit_fault(audit, heap_page(ref), "a blob is longer than its block");
    }
    if (left > HEAP_BLOB_BYTES_MAX) {
        return audit_fault(audit, heap_page(ref), "a blob is longer than any can be");
    }
    while (code == 0 && left != 0) {
        const uint32_t step = left < BLOB_INDEX_CONTENT ? left : BLOB_INDEX_CONTENT;
        uint64_t next = 0;
        code = index_check(audit, ref, shard, step, &next);
        left -= step;
        if (code == 0 && (next == 0) != (left == 0)) {
            return audit_fault(audit, heap_page(ref), "a blob's indexes end too early or late");
        }
        ref = next;
        code = code == 0 && left != 0 ? audit_block(audit, ref, shard, sizeof(struct blob_index))
                                      : code;
    }
    return code;
}
