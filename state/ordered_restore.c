/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered maps on their way back from a checkpoint. First every node is checked on its own, from
 * left to right, with its place in the chain of leaves; then lookups are safe, and the first and
 * last key of every leaf must be found there: in sorted nodes that holds for those between. */
#include "state/audit.h"
#include "state/ordered.h"
#include "state/ordered_node.h"

/* What is known while the nodes of one map are walked. */
struct walk {
    struct audit *audit;
    const struct ordered_head *head;
    uint32_t shard;
    uint64_t leaf; /* the last one seen */
    uint64_t count;
};

/* A key as a whole; one that lies in pieces is put together in the audit's scratch. */
static struct span key_whole(struct audit *audit, const struct node_key *key)
{
    if (key->blob == 0) {
        return key->head;
    }
    const uint32_t bytes = heap_blob_bytes(audit->heap, key->blob);
    ASSERT(bytes <= SHAPE_SCRATCH_BYTES);
    heap_blob_read(audit->heap, key->blob, 0, bytes, audit->scratch);
    return (struct span){audit->scratch, bytes};
}

/* One entry's place and key; its blob is taken. */
static int entry_check(struct walk *walk, const struct node *node, uint32_t index)
{
    const uint32_t place = node_payload_offset(node, index);
    const uint32_t key_at = place + node->payload_bytes + (uint32_t)sizeof(uint16_t);
    ASSERT(index < node->count);
    if (place < sizeof(*node) || place % (node->payload_bytes == 0 ? 2U : 8U) != 0 ||
        key_at > node->used) {
        return audit_fault(walk->audit, 0, "an entry lies outside its node");
    }
    uint16_t bytes;
    memcpy(&bytes, (const uint8_t *)node + key_at - sizeof(bytes), sizeof(bytes));
    const bool is_blob = bytes == NODE_KEY_IS_BLOB;
    const uint32_t inside = is_blob ? NODE_KEY_BYTES_INLINE : bytes;
    if (inside > NODE_KEY_BYTES_INLINE || key_at + inside > node->used) {
        return audit_fault(walk->audit, 0, "a key lies outside its node");
    }
    if (!is_blob) {
        return 0;
    }
    const struct node_key key = node_key_at(node, index);
    uint8_t prefix[NODE_KEY_PREFIX_BYTES];
    uint32_t whole = 0;
    const int code = audit_blob(walk->audit, key.blob, walk->shard, &whole);
    if (code != 0 || whole <= NODE_KEY_BYTES_INLINE) {
        return audit_fault(walk->audit, 0, "a key is too short for a blob");
    }
    heap_blob_read(walk->audit->heap, key.blob, 0, sizeof(prefix), prefix);
    return memcmp(prefix, key.head.data, sizeof(prefix)) == 0
               ? 0
               : audit_fault(walk->audit, 0, "a key's beginning is not its blob's");
}

/* A leaf stands behind the one seen before it. */
static int leaf_check(struct walk *walk, uint64_t ref, const struct node *node)
{
    const struct heap *heap = walk->audit->heap;
    ASSERT(node->is_leaf);
    const uint64_t before =
        walk->leaf == 0 ? ref : ((const struct node *)heap_read(heap, walk->leaf))->next;
    if (node->prev != walk->leaf || before != ref) {
        return audit_fault(walk->audit, heap_page(ref), "the leaves of a map are linked wrongly");
    }
    walk->leaf = ref;
    walk->count += node->count;
    return 0;
}

static int node_audit(struct walk *walk, uint64_t ref, bool is_leaf)
{
    struct audit *audit = walk->audit;
    const int code = audit_block(audit, ref, walk->shard, sizeof(struct node));
    if (code != 0) {
        return code;
    }
    const struct node *node = heap_read(audit->heap, ref);
    const uint32_t payload = is_leaf ? (walk->head->value_bytes + 7U) & ~7U : 8U;
    const bool is_empty = node->count == 0 && (walk->head->count != 0 || !is_leaf);
    if (node->bytes != heap_block_bytes(audit->heap, ref) || node->bytes > NODE_BYTES_MAX ||
        node->used < sizeof(*node) || node->used + node->count * 2U > node->bytes ||
        node->payload_bytes != payload || node->is_leaf != is_leaf || is_empty ||
        (!is_leaf && node->bytes != NODE_BYTES_MAX)) {
        return audit_fault(audit, heap_page(ref), "a node of a map is damaged");
    }
    for (uint32_t index = 0; index < node->count; index++) {
        const int found = entry_check(walk, node, index);
        if (found != 0) {
            return found;
        }
    }
    for (uint32_t index = is_leaf ? 1 : 2; index < node->count; index++) {
        const struct node_key key = node_key_at(node, index);
        if (node_compare(audit->heap, node, index - 1U, key_whole(audit, &key)) >= 0) {
            return audit_fault(audit, heap_page(ref), "the keys of a map are out of order");
        }
    }
    if (node_live_bytes(node) > node->used + node->count * 2U) {
        return audit_fault(audit, heap_page(ref), "the entries of a node overlap");
    }
    return is_leaf ? leaf_check(walk, ref, node) : 0;
}

/* Checks all nodes from left to right, each before its children. */
static int nodes_check(struct walk *walk)
{
    const struct heap *heap = walk->audit->heap;
    const uint32_t bottom = walk->head->height - 1U;
    ASSERT(walk->head->height != 0 && walk->head->height <= NODE_HEIGHT_MAX);
    uint64_t refs[NODE_HEIGHT_MAX] = {walk->head->root};
    uint32_t next[NODE_HEIGHT_MAX] = {0};
    uint32_t depth = 0;
    int code = node_audit(walk, refs[0], bottom == 0);
    while (code == 0) {
        const struct node *node = depth == bottom ? NULL : heap_read(heap, refs[depth]);
        if (node == NULL || next[depth] == node->count) {
            if (depth == 0) {
                break;
            }
            depth--;
            continue;
        }
        refs[depth + 1U] = node_child(node, next[depth]++);
        depth++;
        next[depth] = 0;
        code = node_audit(walk, refs[depth], depth == bottom);
    }
    return code;
}

/* A lookup of a leaf's entry ends at that entry (O2). */
static bool is_found(const struct walk *walk, uint64_t leaf, uint32_t index)
{
    struct audit *audit = walk->audit;
    const struct node_key key = node_key_at(heap_read(audit->heap, leaf), index);
    struct ordered_cursor at;
    return ordered_seek(audit->heap, walk->head, key_whole(audit, &key), &at) && at.leaf == leaf &&
           at.index == index;
}

int audit_ordered(struct audit *audit, const struct ordered_head *head, uint32_t shard)
{
    ASSERT(head != NULL && shard < audit->arena->shard_count);
    struct walk walk = {.audit = audit, .head = head, .shard = shard};
    if (head->root == 0 && head->count == 0 && head->shard < audit->arena->shard_count &&
        head->value_bytes <= ORDERED_VALUE_BYTES_MAX) {
        return 0;
    }
    if (head->root == 0 || head->height == 0 || head->height > NODE_HEIGHT_MAX ||
        head->shard != shard || head->value_bytes > ORDERED_VALUE_BYTES_MAX ||
        (head->count == 0 && head->height != 1)) {
        return audit_fault(audit, 0, "the head of a map is damaged");
    }
    const int code = nodes_check(&walk);
    if (code != 0 || head->count == 0) {
        return code;
    }
    if (walk.count != head->count ||
        ((const struct node *)heap_read(audit->heap, walk.leaf))->next != 0) {
        return audit_fault(audit, 0, "the head of a map does not fit its entries");
    }
    for (uint64_t leaf = walk.leaf; leaf != 0;) {
        const struct node *node = heap_read(audit->heap, leaf);
        if (!is_found(&walk, leaf, 0) || !is_found(&walk, leaf, node->count - 1U)) {
            return audit_fault(audit, heap_page(leaf), "a key of a map is not where it belongs");
        }
        leaf = node->prev;
    }
    return 0;
}

bool copy_ordered(const struct heap *from_heap, const struct ordered_head *from,
                  struct heap *into_heap, struct ordered_head *into, struct shape_copy *copy)
{
    ASSERT(from != into && copy->scratch != NULL);
    *into = *from;
    if (from->root == 0) {
        return true; /* as it is, even if nobody has made it a map yet */
    }
    ordered_init(into, from->shard, from->value_bytes);
    struct ordered_cursor at;
    for (bool is_there = ordered_first(from_heap, from, &at); is_there;
         is_there = ordered_next(from_heap, &at)) {
        const struct ordered_entry entry = ordered_entry(from_heap, from, &at);
        struct span key = entry.key;
        if (entry.key_blob != 0) {
            key = (struct span){copy->scratch, heap_blob_bytes(from_heap, entry.key_blob)};
            heap_blob_read(from_heap, entry.key_blob, 0, (uint32_t)key.bytes, copy->scratch);
        }
        bool created;
        void *value = ordered_insert(into_heap, into, key, &created);
        if (value == NULL) {
            return false;
        }
        ASSERT(created);
        memcpy(value, entry.value, from->value_bytes);
    }
    return true;
}
