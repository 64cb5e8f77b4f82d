/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed state: byte-string keys to values of one declared size. Extendible hashing, one page a
 * segment: growing splits one page, and the directory grows by a page at most per insert, so no
 * insert ever pays for the size of the table. Tags of 16 slots are compared at once.
 *
 * A pointer to a value is good until the next table_insert, table_remove or table_scan on the same
 * table, and for writing only until the next arena_epoch_advance. Values are 8-byte aligned and
 * zeroed when created. A value may embed list and ordered-map heads: say so in config.heads. */
#pragma once

#include "state/hash.h"
#include "state/heap.h"

#define TABLE_VALUE_BYTES_MAX        2048U
#define TABLE_VALUE_BYTES_INLINE_MAX 64U /* longer values live in heap blocks */
#define TABLE_KEY_BYTES_MAX          HEAP_BLOB_BYTES_MAX
#define TABLE_KEY_BYTES_INLINE_MAX   64U
#define TABLE_HEAD_COUNT_MAX         16U
#define TABLE_SEGMENT_ENTRIES_MAX    1024U

/* What an embedded head is, so that restore can move shards between lanes. */
enum table_head_kind {
    TABLE_HEAD_HEAP_REF = 1,
    TABLE_HEAD_BLOB_REF,
    TABLE_HEAD_LIST,
    TABLE_HEAD_ORDERED
};

/* One field of the value that refers to other state. */
struct table_head {
    uint16_t offset;
    uint16_t kind; /* enum table_head_kind */
};

struct table_config {
    const char *name;          /* unique in the arena: the state's identity in a checkpoint */
    uint32_t value_bytes;      /* 0..TABLE_VALUE_BYTES_MAX, fixed for the table's life */
    uint32_t key_bytes_max;    /* 0 means TABLE_KEY_BYTES_MAX; longer keys are the caller's error */
    uint32_t key_bytes_inline; /* keys up to this live in the segment; 0 chooses, at most 64 */
    /* First bytes of each key that do not decide its shard (a time in front of what rows are spread
     * by); keys are longer than this, and their hashes those of hash_behind. */
    uint32_t key_skip_bytes;
    const struct table_head *heads; /* copied */
    uint32_t head_count;
};

struct table_counters {
    uint64_t entries;
    uint64_t segments;
    uint64_t splits;
    uint64_t merges;
    uint64_t overflows; /* segments chained because splitting no longer separates their keys */
};

/* What table_scan's visitor wants done with the entry it was shown. */
enum table_visit {
    TABLE_KEEP = 1,
    TABLE_REMOVE,
    TABLE_STOP
};

/* One entry as a scan shows it. key is contiguous, unless key_blob is set: then read it from the
 * heap. value may be read; call table_entry_write before changing it. */
struct table_entry {
    struct span key;
    uint64_t key_blob;
    uint64_t hash;
    uint32_t shard;
    const void *value;
    uint64_t place; /* of the value in the arena, for table_entry_write */
};

/* Where a scan stands; zero-initialise to begin at shard 0. Inserts, removals and splits between
 * steps are fine: what stays in the table throughout is shown exactly once. */
struct table_cursor {
    uint32_t shard;
    uint32_t position;
    bool one_shard; /* set with shard to scan that one only */
};

typedef enum table_visit table_visit_fn(void *context, const struct table_entry *entry);

struct table;

/* Creates an empty table, no page taken yet.
 * heap     outlives the table
 * config   borrowed during the call
 * out      freed by table_destroy
 * returns  0 or -errno with the reason
 * threads  control path, before the lane starts */
int table_create(struct heap *heap, const struct table_config *config, struct table **out,
                 struct error *error);

/* Frees what table_create allocated; pages stay as they are.
 * threads  control path, after the lane stopped */
void table_destroy(struct table *table);

/* The shard that a hash belongs to in this table's arena.
 * threads  any */
uint32_t table_shard(const struct table *table, uint64_t hash);

/* Looks a key up to read.
 * hash     hash_bytes of the key, or hash_behind where the config skips bytes
 * key      at most key_bytes_max
 * returns  the value or NULL
 * threads  owning lane only */
const void *table_find(const struct table *table, uint64_t hash, struct span key);

/* As table_find, to write: the pages' old images have gone to the hook. */
void *table_find_write(struct table *table, uint64_t hash, struct span key);

/* Finds or creates an entry; a new value is all zeros.
 * created  set to whether the key is new; may not be NULL
 * returns  the value to write, or NULL when the arena is exhausted: then nothing has changed
 * threads  owning lane only */
void *table_insert(struct table *table, uint64_t hash, struct span key, bool *created);

/* Removes a key. What embedded heads refer to is the caller's to clear before.
 * returns  whether it was there
 * threads  owning lane only */
bool table_remove(struct table *table, uint64_t hash, struct span key);

/* Brings what a lookup of each hash will touch towards the cache: directory, then tags, then the
 * entries whose tags match. Call it with a parcel's hashes, then look the keys up one by one.
 * count    any; worked off in groups
 * threads  owning lane only */
void table_prefetch(const struct table *table, const uint64_t *hashes, uint32_t count);

/* Looks many keys up to read, with prefetching.
 * hashes, keys, values   count elements each; values[i] becomes the value or NULL
 * threads  owning lane only */
void table_find_bulk(const struct table *table, const uint64_t *hashes, const struct span *keys,
                     uint32_t count, const void **values);

/* Shows the entries of one segment (at most TABLE_SEGMENT_ENTRIES_MAX) to visit and moves the
 * cursor on. visit must not insert into or remove from this table itself; it returns what it wants.
 * returns  false when the scan is over
 * threads  owning lane only */
bool table_scan(struct table *table, struct table_cursor *cursor, table_visit_fn *visit,
                void *context);

/* The value of an entry that a scan shows, to write; call it inside the visitor.
 * threads  owning lane only */
void *table_entry_write(struct table *table, const struct table_entry *entry);

/* The table's counters, borrowed.
 * threads  owning lane only */
const struct table_counters *table_counters(const struct table *table);

/* Walks the whole table and stops the process at a broken invariant; for tests.
 * threads  owning lane only */
void table_check(const struct table *table);
