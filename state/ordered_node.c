/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are never moved inside a node, only their places are; a hole is squeezed out when the
 * node is copied. Payloads are 8-byte aligned: every entry is padded to 8, or to 2 when there is
 * none. */
#include "state/ordered_node.h"

#define PLACE_BYTES 2U

static uint32_t place_get(const struct node *node, uint32_t index)
{
    ASSERT_SLOW(node->used <= node->bytes);
    uint16_t place;
    memcpy(&place, (const uint8_t *)node + node->bytes - (index + 1U) * PLACE_BYTES, sizeof(place));
    return place;
}

static void place_set(struct node *node, uint32_t index, uint32_t place)
{
    ASSERT_SLOW(place >= sizeof(*node) && place < node->bytes);
    const uint16_t value = (uint16_t)place;
    memcpy((uint8_t *)node + node->bytes - (index + 1U) * PLACE_BYTES, &value, sizeof(value));
}

/* Bytes of an entry without its place. */
static uint32_t entry_bytes(uint32_t key_bytes, uint32_t payload_bytes)
{
    ASSERT_SLOW(key_bytes <= NODE_KEY_BYTES_INLINE && payload_bytes % 8U == 0);
    const uint32_t unit = payload_bytes == 0 ? 2U : 8U;
    const uint32_t bytes = payload_bytes + (uint32_t)sizeof(uint16_t) + key_bytes;
    return (bytes + unit - 1U) & ~(unit - 1U);
}

uint64_t node_acquire(struct heap *heap, uint32_t shard, uint32_t bytes, uint32_t payload_bytes,
                      bool is_leaf)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(bytes <= NODE_BYTES_MAX && payload_bytes <= UINT8_MAX);
    const uint32_t block_bytes = heap_class_bytes(bytes);
    const uint64_t ref = heap_acquire(heap, shard, block_bytes);
    if (ref != 0) {
        struct node *node = heap_write(heap, ref);
        *node = (struct node){.bytes = (uint16_t)block_bytes,
                              .used = sizeof(struct node),
                              .payload_bytes = (uint8_t)payload_bytes,
                              .is_leaf = is_leaf};
    }
    return ref;
}

uint32_t node_payload_offset(const struct node *node, uint32_t index)
{
    ASSERT(index < node->count);
    return place_get(node, index);
}

/* Bytes of key in the node, the reference included. */
static uint32_t key_bytes_at(const struct node *node, uint32_t index, bool *is_blob)
{
    ASSERT_SLOW(node->used <= node->bytes);
    uint16_t bytes;
    memcpy(&bytes, (const uint8_t *)node + node_payload_offset(node, index) + node->payload_bytes,
           sizeof(bytes));
    *is_blob = bytes == NODE_KEY_IS_BLOB;
    return *is_blob ? NODE_KEY_BYTES_INLINE : bytes;
}

struct node_key node_key_at(const struct node *node, uint32_t index)
{
    ASSERT_SLOW(node->used <= node->bytes);
    bool is_blob;
    const uint32_t bytes = key_bytes_at(node, index, &is_blob);
    const uint8_t *at = (const uint8_t *)node + node_payload_offset(node, index) +
                        node->payload_bytes + sizeof(uint16_t);
    struct node_key key = {.head = {at, bytes}};
    if (is_blob) {
        key.head.bytes = NODE_KEY_PREFIX_BYTES;
        memcpy(&key.blob, at + NODE_KEY_PREFIX_BYTES, sizeof(key.blob));
    }
    return key;
}

int node_compare(const struct heap *heap, const struct node *node, uint32_t index, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct node_key mine = node_key_at(node, index);
    const size_t common = mine.head.bytes < key.bytes ? mine.head.bytes : key.bytes;
    const int order = common == 0 ? 0 : memcmp(mine.head.data, key.data, common);
    if (order != 0) {
        return order;
    }
    if (mine.blob != 0 && key.bytes > mine.head.bytes) {
        return heap_blob_compare(heap, mine.blob, key);
    }
    if (mine.blob != 0) {
        return 1;
    }
    return (mine.head.bytes > key.bytes) - (mine.head.bytes < key.bytes);
}

uint32_t node_seek(const struct heap *heap, const struct node *node, struct span key,
                   bool *is_equal)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(node->used <= node->bytes);
    ASSERT_SLOW(is_equal != NULL);
    uint32_t low = node->is_leaf ? 0 : 1;
    uint32_t high = node->count;
    *is_equal = false;
    while (low < high) {
        const uint32_t middle = (low + high) / 2U;
        const int order = node_compare(heap, node, middle, key);
        if (order < 0) {
            low = middle + 1U;
        } else {
            high = middle;
            *is_equal = order == 0;
        }
    }
    return low;
}

/* Bytes of key that go into a node. */
static uint32_t key_stored_bytes(const struct node_key *key)
{
    ASSERT(key->blob == 0 || key->head.bytes >= NODE_KEY_PREFIX_BYTES);
    ASSERT(key->blob != 0 || key->head.bytes <= NODE_KEY_BYTES_INLINE);
    return key->blob != 0 ? NODE_KEY_BYTES_INLINE : (uint32_t)key->head.bytes;
}

uint32_t node_entry_bytes(const struct node_key *key, uint32_t payload_bytes)
{
    return entry_bytes(key_stored_bytes(key), payload_bytes) + PLACE_BYTES;
}

bool node_has_room(const struct node *node, uint32_t room)
{
    ASSERT_SLOW(node->used <= node->bytes);
    return node->used + node->count * PLACE_BYTES + room <= node->bytes;
}

uint32_t node_live_bytes(const struct node *node)
{
    ASSERT_SLOW(node->used <= node->bytes);
    uint32_t bytes = sizeof(*node);
    for (uint32_t index = 0; index < node->count; index++) {
        bool is_blob;
        bytes += entry_bytes(key_bytes_at(node, index, &is_blob), node->payload_bytes);
    }
    return bytes + node->count * PLACE_BYTES;
}

static void place_open(struct node *node, uint32_t index, uint32_t place)
{
    ASSERT(node != NULL);
    ASSERT(index <= node->count);
    for (uint32_t slot = node->count; slot > index; slot--) {
        place_set(node, slot, place_get(node, slot - 1U));
    }
    place_set(node, index, place);
    node->count++;
}

void node_put(struct node *node, uint32_t index, const struct node_key *key)
{
    ASSERT_SLOW(node->used <= node->bytes);
    ASSERT(index <= node->count);
    ASSERT(node_has_room(node, node_entry_bytes(key, node->payload_bytes)));
    uint8_t *entry = (uint8_t *)node + node->used;
    const uint16_t bytes = (uint16_t)(key->blob != 0 ? NODE_KEY_IS_BLOB : key->head.bytes);
    memset(entry, 0, node->payload_bytes);
    entry += node->payload_bytes;
    memcpy(entry, &bytes, sizeof(bytes));
    entry += sizeof(bytes);
    if (key->blob != 0) {
        memcpy(entry, key->head.data, NODE_KEY_PREFIX_BYTES);
        memcpy(entry + NODE_KEY_PREFIX_BYTES, &key->blob, sizeof(key->blob));
    } else if (bytes != 0) {
        memcpy(entry, key->head.data, bytes);
    }
    place_open(node, index, node->used);
    node->used = (uint16_t)(node->used + entry_bytes(key_stored_bytes(key), node->payload_bytes));
}

void node_take(struct node *node, uint32_t index)
{
    ASSERT_SLOW(node->used <= node->bytes);
    ASSERT(index < node->count);
    for (uint32_t slot = index + 1U; slot < node->count; slot++) {
        place_set(node, slot - 1U, place_get(node, slot));
    }
    node->count--;
}

void node_copy(const struct node *from, uint32_t first, uint32_t end, struct node *into)
{
    ASSERT(first <= end && end <= from->count);
    ASSERT(from->payload_bytes == into->payload_bytes);
    for (uint32_t index = first; index < end; index++) {
        bool is_blob;
        const uint32_t bytes =
            entry_bytes(key_bytes_at(from, index, &is_blob), from->payload_bytes);
        ASSERT(node_has_room(into, bytes + PLACE_BYTES));
        memcpy((uint8_t *)into + into->used, (const uint8_t *)from + place_get(from, index), bytes);
        place_open(into, into->count, into->used);
        into->used = (uint16_t)(into->used + bytes);
    }
}

void node_check(const struct heap *heap, const struct node *node)
{
    ASSERT(node->count != 0);
    ASSERT(node->bytes <= NODE_BYTES_MAX);
    ASSERT(node->used + node->count * PLACE_BYTES <= node->bytes);
    ASSERT(node_live_bytes(node) <= node->used + node->count * PLACE_BYTES);
    for (uint32_t index = node->is_leaf ? 1 : 2; index < node->count; index++) {
        const struct node_key key = node_key_at(node, index);
        if (key.blob == 0) {
            ASSERT(node_compare(heap, node, index - 1U, key.head) < 0);
        }
    }
}
