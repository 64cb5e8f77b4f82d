/* SPDX-License-Identifier: Apache-2.0 */
/* One lane's arena: 4 KiB pages, numbered, over one block of memory that the caller maps. Each page
 * belongs to one shard and has its metadata outside itself, so a checkpoint can copy pages whole.
 * The first touch of a page in an epoch hands its old image to the pre-image hook; that is all the
 * update path ever pays for a checkpoint. Page numbers are what references are made of: pages never
 * move, and pointers into them are never stored. Page 0 is never handed out: 0 means none.
 *
 * Limits: one writer, no atomics, no allocation after arena_create, at most 2^32 - 1 pages. */
#pragma once

#include "base.h"

#define ARENA_PAGE_BYTES        4096U
#define ARENA_PAGE_SHIFT        12U
#define ARENA_SHARD_COUNT_MAX   4096U
#define ARENA_ROOT_BYTES        64U
#define ARENA_ROOTS_PER_ANCHOR  (ARENA_PAGE_BYTES / ARENA_ROOT_BYTES - 1U)
#define ARENA_ANCHOR_COUNT_MAX  8U
#define ARENA_OBJECT_COUNT_MAX  (ARENA_ANCHOR_COUNT_MAX * ARENA_ROOTS_PER_ANCHOR)
#define ARENA_OBJECT_NAME_BYTES 56U
#define ARENA_GROUP_SHIFT       6U /* pages whose newest epoch is known together: 64 */

/* What a page holds; FREE is 0 so that fresh metadata says so. */
enum arena_page_kind {
    ARENA_PAGE_FREE = 0,
    ARENA_PAGE_ANCHOR,
    ARENA_PAGE_HEAP,
    ARENA_PAGE_BLOB,
    ARENA_PAGE_TABLE_SEGMENT,
    ARENA_PAGE_TABLE_DIRECTORY,
    ARENA_PAGE_KIND_COUNT
};

/* What kind of shape owns an object's roots. */
enum arena_object_kind {
    ARENA_OBJECT_HEAP = 1,
    ARENA_OBJECT_TABLE,
    ARENA_OBJECT_TIMERS
};

/* Beside each page: the epoch of its last first touch, whose it is, what it holds. */
struct arena_page_meta {
    uint32_t epoch;
    uint16_t shard;
    uint8_t kind;
    uint8_t reserved;
};
static_assert(sizeof(struct arena_page_meta) == 8, "one load in the write path");

/* Volatile links of free lists and of the heap's lists of pages with room: rebuilt on restore. */
struct arena_page_link {
    uint32_t next;
    uint32_t prev;
};

/* One page as a scan or a hook sees it. image is borrowed and valid only during the call (hook), or
 * until the next write to the page (scan). For a free page image means nothing. */
struct arena_page_view {
    uint32_t page;
    uint32_t epoch;
    uint32_t shard;
    enum arena_page_kind kind;
    const uint8_t *image;
};

/* Called before the first change of a page (write, acquire or release) in the current epoch, with
 * the page as it was at the barrier. It must not call back into the arena's writing functions. */
typedef void arena_preimage_fn(void *context, const struct arena_page_view *view);

struct arena_config {
    void *memory;                /* page aligned, owned by the caller, outlives the arena */
    size_t bytes;                /* of memory; the arena takes its metadata out of the end of it */
    uint32_t shard_count;        /* 1..ARENA_SHARD_COUNT_MAX, the job's, not the lane's */
    uint32_t warn_pages_free;    /* is_low turns true when fewer pages than this are free */
    uint32_t reserve_pages;      /* is_full turns true when fewer than this are: work in flight
                                  * may still have them */
    arena_preimage_fn *preimage; /* may be NULL: then nothing is called */
    void *preimage_context;
    bool is_lazy; /* pages are first touched when they are used: replay, never a live lane */
};

/* Read by metrics at any time from the owning lane. */
struct arena_counters {
    uint64_t pages_used;
    uint64_t pages_used_max;
    uint64_t acquires;
    uint64_t releases;
    uint64_t exhausted; /* acquires refused */
    uint64_t preimages; /* hook calls for pages that held something */
};

/* A named owner of one 64-byte root per shard: what a checkpoint finds everything else from. */
struct arena_object {
    char name[ARENA_OBJECT_NAME_BYTES];
    uint32_t kind;
    uint32_t reserved;
};

struct shape_ops; /* shape.h */

/* Who reads and writes an object's roots: restore brings it back through its operations. */
struct arena_shape {
    const struct shape_ops *ops; /* NULL while nobody has attached itself */
    void *shape;
};

/* Fields are for the inline functions below; nobody else writes them. */
struct arena {
    uint8_t *base;
    struct arena_page_meta *meta;
    uint32_t epoch;
    uint32_t page_count; /* page 0 included */
    uint32_t page_free_head;
    uint32_t page_fresh; /* pages from here on were never handed out */
    struct arena_page_link *links;
    uint32_t *groups;  /* [page >> ARENA_GROUP_SHIFT] the highest epoch of its pages */
    uint32_t *anchors; /* [shard][ARENA_ANCHOR_COUNT_MAX], rebuilt on restore */
    struct arena_object *objects;
    struct arena_shape *shapes; /* [object] */
    uint32_t object_count;
    uint32_t shard_count;
    uint32_t warn_pages_free;
    uint32_t reserve_pages;
    uint32_t acquire_fail_after; /* test seam, see arena_fail_after */
    arena_preimage_fn *preimage;
    void *preimage_context;
    /* The last complete checkpoint and the epoch that its cut ended: pages of a later epoch have
     * changed since. 0: none. */
    uint64_t base_id;
    uint32_t base_epoch;
    struct arena_counters counters;
};

/* How much memory an arena of so many pages wants.
 * page_count  page 0 included
 * threads     any */
size_t arena_memory_bytes(uint32_t page_count, uint32_t shard_count);

/* Lays an arena over config->memory and touches every page of it (unless is_lazy); the arena struct
 * itself lives in that memory. It needs a few dozen pages at least.
 * config   borrowed during the call
 * out      the arena, gone when the caller unmaps the memory
 * returns  0, or -EINVAL with the reason
 * threads  control path, before the lane starts */
int arena_create(const struct arena_config *config, struct arena **out, struct error *error);

/* Sets or replaces the pre-image hook, between two parcels.
 * preimage  NULL switches it off
 * threads  owning lane only */
void arena_preimage_set(struct arena *arena, arena_preimage_fn *preimage, void *context);

/* Takes a free page for shard; its bytes are whatever they were.
 * returns  the page number, or 0 when the arena is exhausted (counted)
 * threads  owning lane only */
uint32_t arena_page_acquire(struct arena *arena, uint32_t shard, enum arena_page_kind kind);

/* Gives a page back; a checkpoint that still needs it has got it through the hook.
 * threads  owning lane only */
void arena_page_release(struct arena *arena, uint32_t page);

/* The slow half of arena_write: calls the hook and marks the page as touched in this epoch.
 * threads  owning lane only */
void arena_page_touch(struct arena *arena, uint32_t page);

/* Starts a new epoch, in O(1): every page becomes untouched, and pointers from arena_write may no
 * longer be written through.
 * returns  the epoch that ended, the one a snapshot begun now describes
 * threads  owning lane only */
uint32_t arena_epoch_advance(struct arena *arena);

/* Looks at one page of any kind, for a checkpoint's scan: for (page = 1; page < page_count; …).
 * page     1..arena->page_count - 1
 * threads  owning lane only */
struct arena_page_view arena_page_view(const struct arena *arena, uint32_t page);

/* Pages that can still be acquired.
 * threads  owning lane only */
uint32_t arena_pages_free(const struct arena *arena);

/* Tells whether free pages are below the configured warning line.
 * threads  owning lane only */
bool arena_is_low(const struct arena *arena);

/* Tells whether only the reserve is left: nothing new should be begun.
 * threads  owning lane only */
bool arena_is_full(const struct arena *arena);

/* Registers a named object with one zeroed root of ARENA_ROOT_BYTES per shard.
 * name     unique in the arena, shorter than ARENA_OBJECT_NAME_BYTES; copied
 * out      the object's index
 * returns  0, -EINVAL, -EEXIST or -ENOSPC with the reason
 * threads  control path, before the lane starts */
int arena_object_create(struct arena *arena, enum arena_object_kind kind, const char *name,
                        uint32_t *out, struct error *error);

/* Says which shape stands on an object, so that restore can bring it back.
 * ops, shape  borrowed for the arena's life
 * threads     control path, before the lane starts */
void arena_object_attach(struct arena *arena, uint32_t object, const struct shape_ops *ops,
                         void *shape);

/* Empties an arena as if nothing had ever been put in: every page is free, objects stay. Shapes
 * must be told (shape_ops.rebuild).
 * threads  control path, before the lane starts */
void arena_clear(struct arena *arena);

/* Takes over pages whose images and metadata (kind, shard) restore has put in place: free list,
 * anchors, counters. All of them are of one epoch, which ends: the base of the next checkpoint.
 * base_id  the checkpoint that they are from
 * returns  0, or -EBADMSG with the reason: then arena_clear is due
 * threads  control path, before the lane starts */
int arena_adopt(struct arena *arena, uint64_t base_id, struct error *error);

/* The root of object in shard, to read.
 * returns  ARENA_ROOT_BYTES bytes at an address that never changes, or NULL while nobody has
 *          written any root of that shard: it reads as zeros
 * threads  owning lane only */
const void *arena_root_read(const struct arena *arena, uint32_t object, uint32_t shard);

/* The root of object in shard, to write; acquires the shard's anchor page at its first use.
 * returns  NULL when the arena is exhausted
 * threads  owning lane only */
void *arena_root_write(struct arena *arena, uint32_t object, uint32_t shard);

/* Test seam: refuses the acquire_count-th acquire from now and every one after it, as a full arena
 * would, until called with 0.
 * threads  owning lane only */
void arena_fail_after(struct arena *arena, uint32_t acquire_count);

/* Walks all metadata and stops the process where it contradicts itself; for tests.
 * threads  owning lane only */
void arena_check(const struct arena *arena);

/* The bytes of a page, to read. Valid until the page is released.
 * page     in use
 * threads  owning lane only */
static inline const uint8_t *arena_read(const struct arena *arena, uint32_t page)
{
    ASSERT_SLOW(page != 0 && page < arena->page_count);
    ASSERT_SLOW(arena->meta[page].kind != ARENA_PAGE_FREE);
    return arena->base + ((uint64_t)page << ARENA_PAGE_SHIFT);
}

/* The bytes of a page, to write: the first call in an epoch passes the old image to the hook. Write
 * only until the next arena_epoch_advance; then ask again.
 * page     in use
 * threads  owning lane only */
static inline uint8_t *arena_write(struct arena *arena, uint32_t page)
{
    ASSERT_SLOW(page != 0 && page < arena->page_count);
    ASSERT_SLOW(arena->meta[page].kind != ARENA_PAGE_FREE);
    if (UNLIKELY(arena->meta[page].epoch != arena->epoch)) {
        arena_page_touch(arena, page);
    }
    return arena->base + ((uint64_t)page << ARENA_PAGE_SHIFT);
}
