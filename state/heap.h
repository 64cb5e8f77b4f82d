/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of any size inside the arena's pages. A block comes from a page of its size class and of
 * its shard; a reference is the block's byte distance from the arena's base, that is page number <<
 * 12 plus the place in the page. 0 means none. A blob is a byte string with its length: one block
 * when it fits a page, else whole pages and an index of them, so that no unit of copying exceeds a
 * page.
 *
 * Limits: a block is at most HEAP_BLOCK_BYTES_MAX, a blob at most HEAP_BLOB_BYTES_MAX. Blocks are
 * 16- byte aligned. Releasing a long blob only queues it; heap_poll gives its pages back in steps.
 */
#pragma once

#include "state/arena.h"

#define HEAP_BLOCK_BYTES_MAX 4080U
#define HEAP_BLOB_BYTES_MAX  (16U * 1024U * 1024U)
#define HEAP_CLASS_COUNT     25U
#define HEAP_NAME            "heap"

/* Counted over the heap's life; used bytes are what callers asked for, rounded to the class. */
struct heap_counters {
    uint64_t blocks_used;
    uint64_t bytes_used;
    uint64_t blob_pages_used;
    uint64_t blob_pages_queued; /* released, waiting for heap_poll, index blocks included */
    uint64_t trash_queued;      /* collections that heap_poll frees (trash.h) */
};

/* Fields are for the inline functions below; nobody else touches them. */
struct heap {
    struct arena *arena;
    uint32_t *partial; /* [shard][class] first page with room, rebuilt on restore */
    uint32_t object;
    uint32_t queue_shard; /* where heap_poll goes on */
    struct heap_counters counters;
    uint8_t class_of[HEAP_BLOCK_BYTES_MAX / 16U + 1U]; /* by bytes in units of 16 */
};

/* Creates the arena's heap; one an arena.
 * out      freed by heap_destroy
 * returns  0 or -errno with the reason
 * threads  control path, before the lane starts */
int heap_create(struct arena *arena, struct heap **out, struct error *error);

/* Frees what heap_create allocated; pages stay as they are.
 * threads  control path, after the lane stopped */
void heap_destroy(struct heap *heap);

/* Takes a block, bytes undefined, touched in this epoch.
 * bytes    1..HEAP_BLOCK_BYTES_MAX
 * returns  the reference, or 0 when the arena is exhausted
 * threads  owning lane only */
uint64_t heap_acquire(struct heap *heap, uint32_t shard, uint32_t bytes);

/* Gives a block back. Not for blobs.
 * threads  owning lane only */
void heap_release(struct heap *heap, uint64_t ref);

/* How many bytes the block really has: its class, at least what was asked for.
 * threads  owning lane only */
uint32_t heap_block_bytes(const struct heap *heap, uint64_t ref);

/* What heap_acquire(bytes) would give in heap_block_bytes.
 * bytes    1..HEAP_BLOCK_BYTES_MAX
 * threads  any */
uint32_t heap_class_bytes(uint32_t bytes);

/* Stores a byte string. The work is proportional to content.bytes.
 * content  at most HEAP_BLOB_BYTES_MAX, may be empty
 * returns  the reference, or 0 when the arena is exhausted (what was taken goes to the queue)
 * threads  owning lane only */
uint64_t heap_blob_store(struct heap *heap, uint32_t shard, struct span content);

/* Stores a second copy of a blob; as heap_blob_store. */
uint64_t heap_blob_copy(struct heap *heap, uint32_t shard, uint64_t ref);

/* Gives a blob back: at once when it is one block, else queued for heap_poll.
 * threads  owning lane only */
void heap_blob_release(struct heap *heap, uint64_t ref);

/* Length of a blob.
 * threads  owning lane only */
uint32_t heap_blob_bytes(const struct heap *heap, uint64_t ref);

/* The contiguous piece of a blob that starts at offset; a blob of one block is one piece.
 * offset   at most the blob's length; there the piece is empty
 * returns  borrowed until the blob is released
 * threads  owning lane only */
struct span heap_blob_piece(const struct heap *heap, uint64_t ref, uint32_t offset);

/* Copies a blob out.
 * into     at least bytes long
 * offset   offset + bytes at most the blob's length
 * threads  owning lane only */
void heap_blob_read(const struct heap *heap, uint64_t ref, uint32_t offset, uint32_t bytes,
                    uint8_t *into);

/* Orders a blob against bytes as memcmp does, a prefix before what it begins.
 * returns  negative, 0 or positive
 * threads  owning lane only */
int heap_blob_compare(const struct heap *heap, uint64_t ref, struct span with);

/* Frees pages of long blobs released before, and trash (trash.h), shard by shard: one page or index
 * block, one chunk or node a step.
 * step_count_max  at least 1
 * returns  steps done; less than the bound means that nothing is left
 * threads  owning lane only */
uint32_t heap_poll(struct heap *heap, uint32_t step_count_max);

/* Tells whether heap_poll has something to do.
 * threads  owning lane only */
static inline bool heap_has_queue(const struct heap *heap)
{
    return heap->counters.blob_pages_queued != 0 || heap->counters.trash_queued != 0;
}

/* Walks every page of the heap and stops the process at a contradiction; for tests.
 * threads  owning lane only */
void heap_check(const struct heap *heap);

/* The page that a reference points into.
 * threads  any */
static inline uint32_t heap_page(uint64_t ref)
{
    return (uint32_t)(ref >> ARENA_PAGE_SHIFT);
}

/* A block to read, valid until it is released.
 * threads  owning lane only */
static inline const void *heap_read_in(const struct arena *arena, uint64_t ref)
{
    ASSERT_SLOW(arena->meta[heap_page(ref)].kind != ARENA_PAGE_FREE);
    ASSERT_SLOW(ref >= ARENA_PAGE_BYTES);
    return arena->base + ref;
}

/* A block to write: the page's old image has gone to the hook. Write only in this epoch.
 * threads  owning lane only */
static inline void *heap_write_in(struct arena *arena, uint64_t ref)
{
    return arena_write(arena, heap_page(ref)) + (ref & (ARENA_PAGE_BYTES - 1));
}

/* As heap_read_in, from the heap.
 * threads  owning lane only */
static inline const void *heap_read(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    return heap_read_in(heap->arena, ref);
}

/* As heap_write_in, from the heap.
 * threads  owning lane only */
static inline void *heap_write(struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    return heap_write_in(heap->arena, ref);
}
