/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of trash is a small block with a copy of the collection's head; pieces are linked into a
 * stack in the root of the heap's object. Taking the block needs memory when there may be none:
 * then the collection is freed a little further, which gives memory back, until it succeeds. */
#include "state/trash.h"

#include "state/audit.h"
#include "state/heap_inner.h"

#define CLEAR_AT_ONCE 16U /* chunks or nodes: some hundreds of items */

struct trash {
    uint64_t next;
    uint32_t kind; /* enum trash_kind */
    uint32_t reserved;
    union {
        struct list_head list;
        struct ordered_head map;
    };
};
static_assert(sizeof(struct trash) == 40, "part of the checkpoint format");

enum trash_kind {
    TRASH_LIST = 1,
    TRASH_MAP
};

/* Puts a piece on its shard's stack.
 * returns  false when there is no memory for it */
static bool trash_push(struct heap *heap, uint32_t shard, const struct trash *trash)
{
    ASSERT(shard < heap->arena->shard_count);
    struct heap_root *root = arena_root_write(heap->arena, heap->object, shard);
    const uint64_t ref = root == NULL ? 0 : heap_acquire(heap, shard, sizeof(*trash));
    if (ref == 0) {
        return false;
    }
    struct trash *piece = heap_write(heap, ref);
    *piece = *trash;
    piece->next = root->trash;
    root->trash = ref;
    heap->counters.trash_queued++;
    return true;
}

void trash_list(struct heap *heap, struct list_head *head)
{
    ASSERT(heap != NULL && head != NULL);
    struct trash trash = {.kind = TRASH_LIST};
    while (!list_clear(heap, head, CLEAR_AT_ONCE)) {
        trash.list = *head;
        trash.list.mark_count = 0;
        if (trash_push(heap, head->shard, &trash)) {
            head->first = 0;
            head->last = 0;
            head->count = 0;
            for (uint32_t mark = 0; mark < head->mark_count; mark++) {
                head->marks[mark].place = 0;
            }
            return;
        }
    }
}

void trash_ordered(struct heap *heap, struct ordered_head *head)
{
    ASSERT(heap != NULL && head != NULL);
    struct trash trash = {.kind = TRASH_MAP};
    while (!ordered_clear(heap, head, CLEAR_AT_ONCE)) {
        trash.map = *head;
        if (trash_push(heap, head->shard, &trash)) {
            head->root = 0;
            head->count = 0;
            head->height = 0;
            return;
        }
    }
}

void trash_step(struct heap *heap, struct heap_root *root)
{
    ASSERT(root->trash != 0 && heap->counters.trash_queued != 0);
    const uint64_t ref = root->trash;
    struct trash *piece = heap_write(heap, ref);
    ASSERT(piece->kind == TRASH_LIST || piece->kind == TRASH_MAP);
    const bool is_empty = piece->kind == TRASH_LIST ? list_clear(heap, &piece->list, 1)
                                                    : ordered_clear(heap, &piece->map, 1);
    if (is_empty) {
        root->trash = piece->next;
        heap->counters.trash_queued--;
        heap_release(heap, ref);
    }
}

int trash_audit(struct heap *heap, struct audit *audit, uint32_t shard)
{
    ASSERT(audit != NULL);
    ASSERT(shard < heap->arena->shard_count);
    const struct heap_root *root = arena_root_read(heap->arena, heap->object, shard);
    int code = 0;
    for (uint64_t ref = root == NULL ? 0 : root->trash; code == 0 && ref != 0;) {
        code = audit_block(audit, ref, shard, sizeof(struct trash));
        if (code != 0) {
            break;
        }
        const struct trash *piece = heap_read(heap, ref);
        if (piece->kind == TRASH_LIST && piece->list.mark_count == 0) {
            code = audit_list(audit, &piece->list, shard, sizeof(piece->list));
        } else if (piece->kind == TRASH_MAP) {
            code = audit_ordered(audit, &piece->map, shard);
        } else {
            code = audit_fault(audit, heap_page(ref), "a piece of trash is damaged");
        }
        heap->counters.trash_queued++;
        ref = piece->next;
    }
    return code;
}
