/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered map, one a key: its head is embedded in a table value. Byte-string keys, compared as
 * memcmp does with a prefix in front, to values of one size. A B+tree of heap blocks: a small map
 * is one small block that grows, a large one has nodes of about 1 KiB. For MIN/MAX that can
 * retract, Top-N, interval joins and timers.
 *
 * A cursor is good until the map changes; values are 8-byte aligned, zeroed when created, and their
 * addresses are good until the map changes. The head must be writable in this epoch whenever it is
 * passed without const. */
#pragma once

#include "state/heap.h"

#define ORDERED_KEY_BYTES_INLINE_MAX 96U /* longer keys: a prefix in the node and a blob */
#define ORDERED_KEY_BYTES_MAX        HEAP_BLOB_BYTES_MAX
#define ORDERED_VALUE_BYTES_MAX      128U

/* Embedded in a table value, 8-byte aligned. Fields are the map's own, count may be read. */
struct ordered_head {
    uint64_t root;
    uint32_t count;
    uint16_t shard;
    uint8_t height; /* 0 empty, 1 a single leaf */
    uint8_t value_bytes;
};
static_assert(sizeof(struct ordered_head) == 16, "part of the checkpoint format");

/* A position at an entry; leaf 0 is the end. */
struct ordered_cursor {
    uint64_t leaf;
    uint32_t index;
};

/* An entry as read. When key_blob is 0, key is the whole key; else key holds its first bytes and
 * key_blob the whole, to be read by heap_blob_*. */
struct ordered_entry {
    struct span key;
    uint64_t key_blob;
    const void *value;
};

/* Makes an empty map.
 * value_bytes  0..ORDERED_VALUE_BYTES_MAX
 * threads  owning lane only */
void ordered_init(struct ordered_head *head, uint32_t shard, uint32_t value_bytes);

/* Looks a key up.
 * returns  the value (never NULL for a key that is there, even of 0 bytes) or NULL
 * threads  owning lane only */
const void *ordered_find(const struct heap *heap, const struct ordered_head *head, struct span key);

/* As ordered_find, to write in this epoch. */
void *ordered_find_write(struct heap *heap, const struct ordered_head *head, struct span key);

/* Finds or creates an entry; a new value is all zeros.
 * key      at most ORDERED_KEY_BYTES_MAX; copied
 * created  set to whether the key is new; may not be NULL
 * returns  the value to write, or NULL when the arena is exhausted: then nothing has changed
 * threads  owning lane only */
void *ordered_insert(struct heap *heap, struct ordered_head *head, struct span key, bool *created);

/* Removes a key.
 * returns  whether it was there
 * threads  owning lane only */
bool ordered_remove(struct heap *heap, struct ordered_head *head, struct span key);

/* Sets cursor to the entry with the lowest key.
 * returns  false when the map is empty
 * threads  owning lane only */
bool ordered_first(const struct heap *heap, const struct ordered_head *head,
                   struct ordered_cursor *cursor);

/* As ordered_first, with the highest key. */
bool ordered_last(const struct heap *heap, const struct ordered_head *head,
                  struct ordered_cursor *cursor);

/* Sets cursor to the entry with the lowest key >= the given one.
 * returns  false when there is none
 * threads  owning lane only */
bool ordered_seek(const struct heap *heap, const struct ordered_head *head, struct span key,
                  struct ordered_cursor *cursor);

/* Moves a cursor that stands at an entry to the next one.
 * returns  false (cursor at the end) when there is none
 * threads  owning lane only */
bool ordered_next(const struct heap *heap, struct ordered_cursor *cursor);

/* As ordered_next, to the one in front. */
bool ordered_prev(const struct heap *heap, struct ordered_cursor *cursor);

/* Reads the entry at a cursor; the result is borrowed until the map changes.
 * threads  owning lane only */
struct ordered_entry ordered_entry(const struct heap *heap, const struct ordered_head *head,
                                   const struct ordered_cursor *cursor);

/* The value at a cursor, to write in this epoch.
 * threads  owning lane only */
void *ordered_value_write(struct heap *heap, const struct ordered_head *head,
                          const struct ordered_cursor *cursor);

/* Frees the map's nodes from the front, at most node_count_max of them.
 * returns  true when the map is empty
 * threads  owning lane only */
bool ordered_clear(struct heap *heap, struct ordered_head *head, uint32_t node_count_max);

/* Walks the map and stops the process at a broken invariant; for tests.
 * threads  owning lane only */
void ordered_check(const struct heap *heap, const struct ordered_head *head);
