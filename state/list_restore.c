/* SPDX-License-Identifier: Apache-2.0 */
/* Lists on their way back from a checkpoint: checked chunk by chunk, and copied item by item into
 * another arena. Marks are set by place, not by bound: one that was stepped by hand may stand
 * behind items whose order equals its bound. */
#include "state/audit.h"
#include "state/list_inner.h"

/* One item's place, room and blob.
 * order    that of the item in front; becomes this one's */
static int item_check(struct audit *audit, const struct chunk *chunk, uint32_t index,
                      uint32_t shard, int64_t *order)
{
    const uint32_t place = list_place(chunk, index);
    ASSERT(index < chunk->end);
    if (place < sizeof(*chunk) || place % 8U != 0 || place + sizeof(struct item) > chunk->used) {
        return audit_fault(audit, 0, "an item of a list lies outside its chunk");
    }
    struct item item;
    memcpy(&item, (const uint8_t *)chunk + place, sizeof(item));
    if (item.flags > FLAG_BLOB ||
        (item.flags != FLAG_BLOB && item.bytes > LIST_ITEM_BYTES_INLINE_MAX) ||
        place + list_item_room(item.bytes, item.flags) > chunk->used || item.order < *order) {
        return audit_fault(audit, 0, "an item of a list is damaged or out of order");
    }
    *order = item.order;
    if (item.flags != FLAG_BLOB) {
        return 0;
    }
    uint64_t blob;
    uint32_t bytes = 0;
    memcpy(&blob, (const uint8_t *)chunk + place + sizeof(item), sizeof(blob));
    const int code = audit_blob(audit, blob, shard, &bytes);
    if (code == 0 && bytes != item.bytes) {
        return audit_fault(audit, 0, "an item of a list has another length than its blob");
    }
    return code;
}

static int chunk_check(struct audit *audit, uint64_t ref, uint32_t shard, int64_t *order)
{
    const int code = audit_block(audit, ref, shard, sizeof(struct chunk));
    if (code != 0) {
        return code;
    }
    const struct chunk *chunk = heap_read(audit->heap, ref);
    if (chunk->bytes != heap_block_bytes(audit->heap, ref) || chunk->bytes > CHUNK_BYTES_MAX ||
        chunk->used < sizeof(*chunk) || chunk->first >= chunk->end ||
        chunk->used + chunk->end * PLACE_BYTES > chunk->bytes) {
        return audit_fault(audit, heap_page(ref), "a chunk of a list is damaged");
    }
    int found = 0;
    for (uint32_t index = chunk->first; found == 0 && index < chunk->end; index++) {
        found = item_check(audit, chunk, index, shard, order);
    }
    return found;
}

/* Counts the marks that stand at an item of this chunk. */
static uint32_t marks_in(const struct list_head *head, uint64_t ref, const struct chunk *chunk)
{
    ASSERT(head->mark_count <= LIST_MARK_COUNT_MAX);
    uint32_t count = 0;
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        const struct list_cursor at = mark_cursor(head->marks[mark].place);
        count += at.chunk == ref && at.index >= chunk->first && at.index < chunk->end;
    }
    return count;
}

int audit_list(struct audit *audit, const struct list_head *head, uint32_t shard, uint32_t room)
{
    ASSERT(head != NULL && shard < audit->arena->shard_count);
    if (room < sizeof(*head) || head->mark_count > LIST_MARK_COUNT_MAX ||
        LIST_HEAD_BYTES(head->mark_count) > room || head->shard >= audit->arena->shard_count ||
        (head->first != 0 && head->shard != shard)) {
        return audit_fault(audit, 0, "the head of a list is damaged");
    }
    uint32_t marks = 0;
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        marks += head->marks[mark].place != 0;
    }
    int64_t order = INT64_MIN;
    uint64_t last = 0;
    uint64_t count = 0;
    for (uint64_t ref = head->first; ref != 0;) {
        const int code = chunk_check(audit, ref, shard, &order);
        if (code != 0) {
            return code;
        }
        const struct chunk *chunk = heap_read(audit->heap, ref);
        if (chunk->prev != last) {
            return audit_fault(audit, heap_page(ref), "the chunks of a list are linked wrongly");
        }
        count += (uint32_t)(chunk->end - chunk->first);
        marks -= marks_in(head, ref, chunk);
        last = ref;
        ref = chunk->next;
    }
    if (head->last != last || head->count != count || marks != 0) {
        return audit_fault(audit, 0, "the head of a list does not fit its items");
    }
    return 0;
}

/* Inserts a copy of one item at the end. */
static bool item_copy(const struct heap *from_heap, const struct list_cursor *at,
                      struct heap *into_heap, struct list_head *into, struct shape_copy *copy)
{
    const struct list_item item = list_item(from_heap, at);
    struct span content = {item.data, item.bytes};
    if (item.data == NULL) {
        ASSERT(item.blob != 0 && item.bytes <= SHAPE_SCRATCH_BYTES);
        heap_blob_read(from_heap, item.blob, 0, item.bytes, copy->scratch);
        content.data = copy->scratch;
    }
    return list_insert(into_heap, into, item.order, content);
}

/* Sets marks by walking both lists side by side. */
static void marks_copy(const struct heap *from_heap, const struct list_head *from,
                       const struct heap *into_heap, struct list_head *into)
{
    ASSERT(from->mark_count == into->mark_count);
    struct list_cursor old;
    struct list_cursor new;
    bool is_there = list_first(from_heap, from, &old) && list_first(into_heap, into, &new);
    while (is_there) {
        for (uint32_t mark = 0; mark < from->mark_count; mark++) {
            if (from->marks[mark].place == mark_pack(old.chunk, old.index)) {
                into->marks[mark].place = mark_pack(new.chunk, new.index);
            }
        }
        is_there = list_next(from_heap, &old) && list_next(into_heap, &new);
    }
}

bool copy_list(const struct heap *from_heap, const struct list_head *from, struct heap *into_heap,
               struct list_head *into, struct shape_copy *copy)
{
    ASSERT(from != into && from->mark_count <= LIST_MARK_COUNT_MAX);
    memcpy(into, from, LIST_HEAD_BYTES(from->mark_count));
    if (from->first == 0) {
        return true; /* as it is, even if nobody has made it a list yet */
    }
    into->first = 0;
    into->last = 0;
    into->count = 0;
    into->mark_count = 0; /* none follow while items are put in */
    struct list_cursor at;
    for (bool is_there = list_first(from_heap, from, &at); is_there;
         is_there = list_next(from_heap, &at)) {
        if (!item_copy(from_heap, &at, into_heap, into, copy)) {
            return false;
        }
    }
    into->mark_count = from->mark_count;
    marks_copy(from_heap, from, into_heap, into);
    ASSERT(into->count == from->count);
    return true;
}
