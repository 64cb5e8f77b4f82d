/* SPDX-License-Identifier: Apache-2.0 */
/* One node of an ordered map: a heap block with entries growing from the front and their 2-byte
 * places, in key order, from the end. Leaves and inner nodes are alike; an inner entry's payload is
 * the child, and its key a lower bound of what is in it. Only ordered.c uses this.
 *
 *     node  | head | entry | entry | … free … | place n-1 | … | place 0 |
 *     entry | payload | key bytes | key …           key bytes NODE_KEY_IS_BLOB: prefix, reference
 */
#pragma once

#include "state/heap.h"

#define NODE_BYTES_MAX        1008U
#define NODE_KEY_BYTES_INLINE 96U
#define NODE_KEY_IS_BLOB      0xffffU
#define NODE_KEY_PREFIX_BYTES (NODE_KEY_BYTES_INLINE - 8U)
#define NODE_HEIGHT_MAX       20U /* nodes from a map's root to a leaf */

struct node {
    uint64_t next; /* leaves only */
    uint64_t prev;
    uint16_t bytes; /* of the block */
    uint16_t used;  /* from the front, holes included */
    uint16_t count;
    uint8_t payload_bytes; /* of every entry: the value, or 8 for a child */
    uint8_t is_leaf;
};
static_assert(sizeof(struct node) == 24, "part of the checkpoint format");

/* A key as it stands in a node: blob is 0 when head is all of it. */
struct node_key {
    struct span head;
    uint64_t blob;
};

/* Takes an empty node of at least bytes.
 * returns  0 when the arena is exhausted
 * threads  owning lane only */
uint64_t node_acquire(struct heap *heap, uint32_t shard, uint32_t bytes, uint32_t payload_bytes,
                      bool is_leaf);

/* The key of entry index.
 * threads  owning lane only */
struct node_key node_key_at(const struct node *node, uint32_t index);

/* Byte distance of entry index's payload from the node.
 * threads  owning lane only */
uint32_t node_payload_offset(const struct node *node, uint32_t index);

/* The child of entry index of an inner node.
 * threads  owning lane only */
static inline uint64_t node_child(const struct node *node, uint32_t index)
{
    ASSERT(!node->is_leaf && index < node->count);
    uint64_t child;
    memcpy(&child, (const uint8_t *)node + node_payload_offset(node, index), sizeof(child));
    return child;
}

/* Orders entry index against key.
 * returns  negative, 0 or positive
 * threads  owning lane only */
int node_compare(const struct heap *heap, const struct node *node, uint32_t index, struct span key);

/* The first index whose key is >= key; count when there is none. An inner node's entry 0 bounds
 * nothing (O2), so it is not looked at: there the answer is at least 1.
 * is_equal  set to whether that one is key
 * threads  owning lane only */
uint32_t node_seek(const struct heap *heap, const struct node *node, struct span key,
                   bool *is_equal);

/* Bytes of a node that an entry with such a key takes, its place included.
 * threads  any */
uint32_t node_entry_bytes(const struct node_key *key, uint32_t payload_bytes);

/* Whether room bytes are free between entries and places.
 * threads  any */
bool node_has_room(const struct node *node, uint32_t room);

/* What the node would take without holes.
 * threads  owning lane only */
uint32_t node_live_bytes(const struct node *node);

/* Puts an entry in front of index; its payload is zeroed.
 * node     has room
 * threads  owning lane only */
void node_put(struct node *node, uint32_t index, const struct node_key *key);

/* Takes an entry out; its blob, if any, is the caller's.
 * threads  owning lane only */
void node_take(struct node *node, uint32_t index);

/* Appends entries first..end-1 of from, with their payloads.
 * into     has room
 * threads  owning lane only */
void node_copy(const struct node *from, uint32_t first, uint32_t end, struct node *into);

/* Walks a node and stops the process at a contradiction.
 * threads  owning lane only */
void node_check(const struct heap *heap, const struct node *node);
