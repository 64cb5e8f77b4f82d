/* SPDX-License-Identifier: Apache-2.0 */
/* A list of items ordered by a number (mostly event time), one a key: its head is embedded in a
 * table value. Items sit in chunks of heap blocks; a short list is one small block that grows, a
 * long one a chain of chunks of about 1 KiB, so an append touches one page. Among equal orders,
 * later inserts stand behind earlier ones.
 *
 * A cursor names an item and is good until the list changes. A mark stays good for ever: it lives
 * in the head, carries a bound, and always stands at the first item whose order is >= that bound
 * (at the end when there is none); appends, inserts, removals and drops keep it so. Sliding windows
 * keep their start as a mark.
 *
 * The head must be writable (table_find_write, table_insert) in this epoch whenever it is passed
 * without const. Items longer than LIST_ITEM_BYTES_INLINE_MAX are blobs of the heap. */
#pragma once

#include "state/heap.h"

#define LIST_ITEM_BYTES_INLINE_MAX 440U
#define LIST_ITEM_BYTES_MAX        HEAP_BLOB_BYTES_MAX
#define LIST_MARK_COUNT_MAX        16U

/* Fields are the list's own. place packs chunk and slot; 0 is the end. */
struct list_mark {
    int64_t bound;
    uint64_t place;
};

/* Embedded in a table value, LIST_HEAD_BYTES(mark_count) long, 8-byte aligned. */
struct list_head {
    uint64_t first;
    uint64_t last;
    uint32_t count;
    uint16_t shard;
    uint8_t mark_count;
    uint8_t reserved;
    struct list_mark marks[];
};
static_assert(sizeof(struct list_head) == 24, "part of the checkpoint format");

#define LIST_HEAD_BYTES(mark_count)                                                                \
    (sizeof(struct list_head) + (size_t)(mark_count) * sizeof(struct list_mark))

/* A position at an item; chunk 0 is the end. */
struct list_cursor {
    uint64_t chunk;
    uint32_t index;
};

/* An item as read. data is contiguous and borrowed until the list changes; it is 8-byte aligned.
 * When the item is longer than one heap block data is NULL and blob is to be read by heap_blob_*.
 */
struct list_item {
    int64_t order;
    const uint8_t *data;
    uint32_t bytes;
    uint64_t blob;
};

/* Makes an empty list with all marks at the end and the lowest bound.
 * head     LIST_HEAD_BYTES(mark_count) writable bytes
 * threads  owning lane only */
void list_init(struct list_head *head, uint32_t shard, uint32_t mark_count);

/* Inserts behind all items with order <= the given one; at the end that is one page's work, further
 * in front it walks back from the end, chunk by chunk.
 * content  at most LIST_ITEM_BYTES_MAX; copied
 * returns  false when the arena is exhausted: then nothing has changed
 * threads  owning lane only */
bool list_insert(struct heap *heap, struct list_head *head, int64_t order, struct span content);

/* Sets cursor to the first or last item.
 * returns  false (cursor at the end) when the list is empty
 * threads  owning lane only */
bool list_first(const struct heap *heap, const struct list_head *head, struct list_cursor *cursor);

/* As list_first, at the last item. */
bool list_last(const struct heap *heap, const struct list_head *head, struct list_cursor *cursor);

/* Sets cursor to the first item with an order >= the given one, walking back from the end.
 * returns  false (cursor at the end) when there is none
 * threads  owning lane only */
bool list_seek(const struct heap *heap, const struct list_head *head, int64_t order,
               struct list_cursor *cursor);

/* Moves a cursor that stands at an item to the one behind it.
 * returns  false (cursor at the end) when there is none
 * threads  owning lane only */
bool list_next(const struct heap *heap, struct list_cursor *cursor);

/* As list_next, to the item in front. */
bool list_prev(const struct heap *heap, struct list_cursor *cursor);

/* Reads the item at a cursor.
 * threads  owning lane only */
struct list_item list_item(const struct heap *heap, const struct list_cursor *cursor);

/* The bytes of the item at a cursor, to change in place in this epoch.
 * returns  list_item().bytes bytes, or NULL when the item is a long blob
 * threads  owning lane only */
uint8_t *list_item_write(struct heap *heap, const struct list_cursor *cursor);

/* Removes the item at a cursor; the cursor then stands at the item behind it.
 * threads  owning lane only */
void list_remove(struct heap *heap, struct list_head *head, struct list_cursor *cursor);

/* Drops the first item.
 * head     not empty
 * threads  owning lane only */
void list_drop_first(struct heap *heap, struct list_head *head);

/* Drops items from the front in whole chunks, at most chunk_count_max of them.
 * returns  true when the list is empty
 * threads  owning lane only */
bool list_clear(struct heap *heap, struct list_head *head, uint32_t chunk_count_max);

/* Sets cursor to where a mark stands.
 * mark     below head->mark_count
 * returns  false when it stands at the end
 * threads  owning lane only */
bool list_mark(const struct heap *heap, const struct list_head *head, uint32_t mark,
               struct list_cursor *cursor);

/* Moves a mark towards bound by one item: when the item at the mark has an order < bound, gives
 * that item and steps over it; else the mark has arrived. So a window sheds its leavers by
 * `while (list_mark_pass(heap, head, mark, bound, &item)) { …retract item… }`.
 * bound    not below the mark's bound of before
 * returns  whether item was filled
 * threads  owning lane only */
bool list_mark_pass(const struct heap *heap, struct list_head *head, uint32_t mark, int64_t bound,
                    struct list_item *item);

/* Steps a mark over one item whatever its order (windows by row count); the mark's bound becomes
 * the order of the item it then stands at, or at the end that of the item stepped over.
 * returns  whether there was one; it is in item
 * threads  owning lane only */
bool list_mark_step(const struct heap *heap, struct list_head *head, uint32_t mark,
                    struct list_item *item);

/* Sets a mark back to a bound that lies in front of where it is.
 * threads  owning lane only */
void list_mark_rewind(const struct heap *heap, struct list_head *head, uint32_t mark,
                      int64_t bound);

/* Brings what inserts at the end, drops and marks will touch towards the cache; for the heads of a
 * parcel's keys, in two steps with other rows between them: this one fetches the chunks.
 * threads  owning lane only */
void list_prefetch(const struct heap *heap, const struct list_head *head);

/* The second step: the items at the front, at the end and at the marks. */
void list_prefetch_items(const struct heap *heap, const struct list_head *head);

/* As both steps above, for inserts at the end only: step 0 fetches the chunk, step 1 the room. */
void list_prefetch_end(const struct heap *heap, const struct list_head *head, uint32_t step);

/* Walks the list and stops the process at a broken invariant; for tests.
 * threads  owning lane only */
void list_check(const struct heap *heap, const struct list_head *head);
