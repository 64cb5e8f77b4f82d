/* SPDX-License-Identifier: Apache-2.0 */
/* A list's chunk as it lies in a heap block; list.c and list_restore.c share it, nobody else
 * includes it. It is drawn at the head of list.c. */
#pragma once

#include "state/list.h"

#define CHUNK_BYTES_MAX 1008U
#define PLACE_BYTES     2U
#define FLAG_BLOB       1U
#define MARK_INDEX_BITS 16U

struct chunk {
    uint64_t next;
    uint64_t prev;
    uint16_t bytes; /* of the block */
    uint16_t used;  /* from the front: head and items, holes too */
    uint16_t first;
    uint16_t end;
};
static_assert(sizeof(struct chunk) == 24, "part of the checkpoint format");

struct item {
    int64_t order;
    uint32_t bytes;
    uint32_t flags;
};
static_assert(sizeof(struct item) == 16, "content stays aligned to 8");

/* Where item index begins in its chunk. */
static inline uint32_t list_place(const struct chunk *chunk, uint32_t index)
{
    ASSERT_SLOW((index + 1U) * PLACE_BYTES <= chunk->bytes);
    uint16_t place;
    memcpy(&place, (const uint8_t *)chunk + chunk->bytes - (index + 1U) * PLACE_BYTES,
           sizeof(place));
    return place;
}

/* Bytes that an item takes in its chunk. */
static inline uint32_t list_item_room(uint32_t bytes, uint32_t flags)
{
    const uint32_t content = flags & FLAG_BLOB ? (uint32_t)sizeof(uint64_t) : bytes;
    return (uint32_t)sizeof(struct item) + ((content + 7U) & ~7U);
}

/* A mark's place as it is stored. */
static inline uint64_t mark_pack(uint64_t chunk, uint32_t index)
{
    ASSERT_SLOW(index < 1U << MARK_INDEX_BITS);
    return chunk << MARK_INDEX_BITS | index;
}

/* A mark's place as a cursor. */
static inline struct list_cursor mark_cursor(uint64_t place)
{
    return (struct list_cursor){.chunk = place >> MARK_INDEX_BITS,
                                .index = place & ((1U << MARK_INDEX_BITS) - 1U)};
}
