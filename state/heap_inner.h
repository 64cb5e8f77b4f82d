/* SPDX-License-Identifier: Apache-2.0 */
/* What heap.c and heap_restore.c share; nobody else includes it. The layouts are drawn at the head
 * of heap.c. */
#pragma once

#include "state/heap.h"
#include "state/shape.h"

struct audit;

#define HEAP_UNIT          16U
#define BLOB_HEAD_BYTES    8U
#define BLOB_BLOCK_BYTES   (HEAP_BLOCK_BYTES_MAX - BLOB_HEAD_BYTES)
#define BLOB_INDEX_PIECES  506U
#define BLOB_INDEX_CONTENT (BLOB_INDEX_PIECES * ARENA_PAGE_BYTES)

/* The first bytes of a heap page; places are counted in units from the page's start, 0 is none. */
struct heap_page {
    uint16_t class_index;
    uint16_t used;
    uint16_t free;
    uint16_t fresh;
    uint64_t reserved;
};
static_assert(sizeof(struct heap_page) == HEAP_UNIT, "blocks start at unit 1");
static_assert(sizeof(struct heap_page) + HEAP_BLOCK_BYTES_MAX == ARENA_PAGE_BYTES, "one block");

struct blob_index {
    uint32_t bytes; /* of the whole blob, in the first index block only */
    uint32_t piece_count;
    uint64_t next;
    uint64_t queued;
    uint64_t pieces[];
};
static_assert(sizeof(struct blob_index) + BLOB_INDEX_PIECES * 8U <= HEAP_BLOCK_BYTES_MAX,
              "a block");

struct heap_root {
    uint64_t queue; /* long blobs released, their pages still to be freed */
    uint64_t trash; /* collections whose owner is gone (trash.c) */
};
static_assert(sizeof(struct heap_root) <= ARENA_ROOT_BYTES, "fits a root");

extern const struct shape_ops heap_shape_ops;

/* Whether a blob of so many bytes is one of whole pages and an index. */
static inline bool blob_is_long(uint32_t bytes)
{
    return bytes > BLOB_BLOCK_BYTES;
}

/* Frees one chunk or node of the shard's first piece of trash.
 * root     has trash */
void trash_step(struct heap *heap, struct heap_root *root);

/* Checks and counts a shard's trash after a restore.
 * returns  0 or -EBADMSG */
int trash_audit(struct heap *heap, struct audit *audit, uint32_t shard);

/* Whether a page can give one more block. */
bool heap_page_has_room(const struct heap_page *head);

/* Bytes of a block of a class. */
uint32_t heap_class_at(uint32_t class_index);

/* Puts a page with room on its list. */
void heap_partial_link(struct heap *heap, uint32_t page, uint32_t class_index);
