/* SPDX-License-Identifier: Apache-2.0 */
/* Checking pages that came from a disk before anything trusts them: each page and each heap block
 * that something refers to is there, of the kind and shard that it should be, large enough, and
 * referred to once. The checks return an error where the shapes' own walks would stop the process.
 *
 * It holds a bit a page and a bit for each 16 bytes of heap pages, for the time of a restore. */
#pragma once

#include "state/heap.h"
#include "state/shape.h"

struct audit {
    struct arena *arena;
    struct heap *heap;
    uint64_t *pages;  /* a bit a page: something refers to it */
    uint64_t *blocks; /* four words a page: a bit for each unit where a block is free or taken */
    uint8_t *scratch; /* SHAPE_SCRATCH_BYTES, for keys that lie in pieces */
    uint32_t page;    /* where the fault is, for people */
    const char *reason;
};

/* Makes an audit of an arena that was just adopted.
 * out      emptied by audit_fini
 * returns  0 or -ENOMEM
 * threads  control */
int audit_init(struct audit *audit, struct arena *arena, struct heap *heap, struct error *error);

/* Frees what audit_init took.
 * threads  control */
void audit_fini(struct audit *audit);

/* Notes a fault.
 * page     where, 0 when that is not known
 * reason   outlives the audit
 * returns  -EBADMSG
 * threads  control */
int audit_fault(struct audit *audit, uint32_t page, const char *reason);

/* Takes a whole page.
 * returns  0 or -EBADMSG
 * threads  control */
int audit_page(struct audit *audit, uint32_t page, enum arena_page_kind kind, uint32_t shard);

/* Marks a heap block as free or in use, when its page is taken over.
 * returns  false when it was marked already
 * threads  control */
bool audit_mark(struct audit *audit, uint64_t ref);

/* Takes a heap block of at least so many bytes.
 * returns  0 or -EBADMSG
 * threads  control */
int audit_block(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t bytes_min);

/* Takes a blob with all its blocks and pages.
 * bytes    its length
 * returns  0 or -EBADMSG
 * threads  control */
int audit_blob(struct audit *audit, uint64_t ref, uint32_t shard, uint32_t *bytes);

struct list_head;
struct ordered_head;

/* Takes all of a list (list_restore.c).
 * room     bytes of the value from the head on
 * returns  0 or -EBADMSG
 * threads  control */
int audit_list(struct audit *audit, const struct list_head *head, uint32_t shard, uint32_t room);

/* Takes all of an ordered map (ordered_restore.c); as audit_list. */
int audit_ordered(struct audit *audit, const struct ordered_head *head, uint32_t shard);

/* Copies a list with its marks into another arena's heap (list_restore.c).
 * from     audited
 * into     LIST_HEAD_BYTES(from->mark_count) bytes
 * returns  false when the arena is exhausted
 * threads  control */
bool copy_list(const struct heap *from_heap, const struct list_head *from, struct heap *into_heap,
               struct list_head *into, struct shape_copy *copy);

/* Copies an ordered map (ordered_restore.c); as copy_list. */
bool copy_ordered(const struct heap *from_heap, const struct ordered_head *from,
                  struct heap *into_heap, struct ordered_head *into, struct shape_copy *copy);

/* Copies a blob (heap_restore.c).
 * returns  its reference, or 0 when the arena is exhausted */
uint64_t copy_blob(const struct heap *from_heap, uint64_t ref, struct heap *into_heap,
                   struct shape_copy *copy);
