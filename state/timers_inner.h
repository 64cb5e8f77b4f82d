/* SPDX-License-Identifier: Apache-2.0 */
/* What timers.c and timers_restore.c share; nobody else includes it. Keys and the tournament are
 * explained at the head of timers.c. */
#pragma once

#include "state/ordered.h"
#include "state/shape.h"
#include "state/timers.h"

#define STAMP_BYTES 16U
#define SHARD_NONE  UINT32_MAX
/* Payloads up to this are put behind the stamp on the stack; longer ones are stored as a blob. */
#define PAYLOAD_BYTES_INLINE 240U

/* What a key carries behind its stamp. */
enum payload_kind {
    PAYLOAD_INLINE = 1,
    PAYLOAD_BLOB
};

struct timers_root {
    struct ordered_head map;
    uint64_t sequence; /* the last one given in this shard */
};
static_assert(sizeof(struct timers_root) <= ARENA_ROOT_BYTES, "fits a root");

struct stamp {
    int64_t time_ms;
    uint64_t sequence; /* 0: there is no timer */
};

struct timers {
    struct heap *heap;
    uint32_t object;
    uint32_t shard_count;
    uint32_t leaf_count; /* power of two >= shard_count */
    uint64_t sequence;
    uint64_t count;
    uint32_t *winners;    /* [2 * leaf_count], node 1 is the top */
    struct stamp *firsts; /* [shard_count] */
};

extern const struct shape_ops timers_shape_ops;

/* Reads time and sequence from the front of a key. */
static inline struct stamp stamp_load(const uint8_t *from)
{
    return (struct stamp){.time_ms = (int64_t)(load_be64(from) ^ (UINT64_C(1) << 63)),
                          .sequence = load_be64(from + 8)};
}

/* Reads a shard's first timer from its map (W1). */
struct stamp timers_first_read(const struct timers *timers, const struct timers_root *root);

/* Takes over a shard's first timer and plays its matches again. */
void timers_first_update(struct timers *timers, uint32_t shard, struct stamp first);

/* The shard's root to write; NULL when the arena is exhausted. */
struct timers_root *timers_root_write(struct timers *timers, uint32_t shard);
