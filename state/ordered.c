/* SPDX-License-Identifier: Apache-2.0 */
/* A B+tree. Inserting splits full inner nodes on the way down, so that each split has room in its
 * parent and stands alone: when the arena runs out half-way, what was split stays and is a valid
 * tree. Removing frees empty nodes at once and joins a sparse leaf with its neighbour.
 *
 * Invariants:
 *  O1  keys ascend within a node and along the chain of leaves
 *  O2  an inner entry's key is <= all keys in its child and > all keys in the child before; the
 *      first entry's key of a node bounds nothing: what it bounded may have been freed
 *  O3  all leaves are at depth height; no node is empty
 *  O4  inner nodes are blocks of NODE_BYTES_MAX; a leaf is smaller only while it is the root
 *  O5  head.count is the number of entries */
#include "state/ordered.h"

#include "state/ordered_node.h"

static_assert(ORDERED_KEY_BYTES_INLINE_MAX == NODE_KEY_BYTES_INLINE, "said in both");
static_assert(24U + 4U * (ORDERED_VALUE_BYTES_MAX + 100U + 2U) <= NODE_BYTES_MAX, "fan-out >= 4");

/* The way from the root to a leaf: node and the index taken in it. */
struct path {
    uint32_t depth; /* of the leaf: steps[depth] */
    struct {
        uint64_t ref;
        uint32_t index;
    } steps[NODE_HEIGHT_MAX];
};

static const struct node *node_read(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(ref != 0 && heap->arena->meta[heap_page(ref)].kind == ARENA_PAGE_HEAP);
    return heap_read(heap, ref);
}

static struct node *node_write(struct heap *heap, uint64_t ref)
{
    ASSERT(ref != 0);
    return heap_write(heap, ref);
}

static uint32_t payload_bytes_of(const struct ordered_head *head)
{
    return (head->value_bytes + 7U) & ~7U;
}

void ordered_init(struct ordered_head *head, uint32_t shard, uint32_t value_bytes)
{
    ASSERT(head != NULL && value_bytes <= ORDERED_VALUE_BYTES_MAX);
    *head = (struct ordered_head){.shard = (uint16_t)shard, .value_bytes = (uint8_t)value_bytes};
}

static void child_set(struct node *node, uint32_t index, uint64_t child)
{
    ASSERT(!node->is_leaf);
    memcpy((uint8_t *)node + node_payload_offset(node, index), &child, sizeof(child));
}

/* Asks for all lines of a node at once: a binary search would wait for them one after the other. */
static void node_prefetch(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    const uint8_t *node = heap_read(heap, ref);
    for (uint32_t at = 0; at < NODE_BYTES_MAX; at += CACHE_LINE_BYTES) {
        __builtin_prefetch(node + at);
    }
}

/* The child that key belongs to (O2). */
static uint32_t child_seek(const struct heap *heap, const struct node *node, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(!node->is_leaf && node->count != 0); /* O3 */
    bool is_equal;
    const uint32_t index = node_seek(heap, node, key, &is_equal);
    return is_equal ? index : index - 1U;
}

/* Finds the leaf for a key, and its place there.
 * returns  whether the key is there */
static bool path_find(const struct heap *heap, const struct ordered_head *head, struct span key,
                      struct path *path)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(head->height != 0 && head->height <= NODE_HEIGHT_MAX);
    uint64_t ref = head->root;
    path->depth = head->height - 1U;
    for (uint32_t depth = 0; depth < path->depth; depth++) {
        const struct node *node = node_read(heap, ref);
        path->steps[depth].ref = ref;
        path->steps[depth].index = child_seek(heap, node, key);
        ref = node_child(node, path->steps[depth].index);
        node_prefetch(heap, ref);
    }
    bool is_equal;
    path->steps[path->depth].ref = ref;
    path->steps[path->depth].index = node_seek(heap, node_read(heap, ref), key, &is_equal);
    return is_equal;
}

/* Byte distance of a value from the arena's base, 0 when the key is not there. */
static uint64_t value_place(const struct heap *heap, const struct ordered_head *head,
                            struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    struct path path;
    if (head->count == 0 || !path_find(heap, head, key, &path)) {
        return 0;
    }
    const uint64_t leaf = path.steps[path.depth].ref;
    return leaf + node_payload_offset(node_read(heap, leaf), path.steps[path.depth].index);
}

const void *ordered_find(const struct heap *heap, const struct ordered_head *head, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    const uint64_t place = value_place(heap, head, key);
    return place == 0 ? NULL : heap_read(heap, place);
}

void *ordered_find_write(struct heap *heap, const struct ordered_head *head, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    const uint64_t place = value_place(heap, head, key);
    return place == 0 ? NULL : heap_write(heap, place);
}

/* The value that a path ends at, to write. */
static void *path_value(struct heap *heap, const struct path *path)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(path != NULL);
    const uint64_t leaf = path->steps[path->depth].ref;
    return heap_write(
        heap, leaf + node_payload_offset(node_read(heap, leaf), path->steps[path->depth].index));
}

/* Replaces a node in its parent, or the root. */
static void node_replace(struct heap *heap, struct ordered_head *head, const struct path *path,
                         uint32_t depth, uint64_t fresh)
{
    ASSERT_SLOW(heap->arena != NULL);
    if (depth == 0) {
        head->root = fresh;
    } else {
        child_set(node_write(heap, path->steps[depth - 1U].ref), path->steps[depth - 1U].index,
                  fresh);
    }
}

/* Points a leaf's neighbours at it. */
static void leaf_link(struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    const struct node *node = node_read(heap, ref);
    if (node->prev != 0) {
        node_write(heap, node->prev)->next = ref;
    }
    if (node->next != 0) {
        node_write(heap, node->next)->prev = ref;
    }
}

/* Copies the path's node at depth to a block of at least bytes, without holes.
 * returns  false when the arena is exhausted */
static bool node_renew(struct heap *heap, struct ordered_head *head, struct path *path,
                       uint32_t depth, uint32_t bytes)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(depth <= path->depth);
    const uint64_t ref = path->steps[depth].ref;
    const struct node *from = node_read(heap, ref);
    ASSERT(from->count != 0); /* O3 */
    const uint64_t fresh =
        node_acquire(heap, head->shard, bytes, from->payload_bytes, from->is_leaf);
    if (fresh == 0) {
        return false;
    }
    struct node *into = node_write(heap, fresh);
    node_copy(from, 0, from->count, into);
    if (from->is_leaf) {
        into->next = from->next;
        into->prev = from->prev;
        leaf_link(heap, fresh);
    }
    node_replace(heap, head, path, depth, fresh);
    heap_release(heap, ref);
    path->steps[depth].ref = fresh;
    return true;
}

/* A copy of a key that can stand in another node: a blob is stored a second time.
 * returns  false when the arena is exhausted */
static bool key_copy(struct heap *heap, uint32_t shard, const struct node_key *key,
                     struct node_key *out)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    *out = *key;
    if (key->blob != 0) {
        out->blob = heap_blob_copy(heap, shard, key->blob);
    }
    return (out->blob == 0) == (key->blob == 0);
}

/* Puts an inner root with one child above the root. */
static bool root_raise(struct heap *heap, struct ordered_head *head)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(head->height < NODE_HEIGHT_MAX);
    const uint64_t fresh = node_acquire(heap, head->shard, NODE_BYTES_MAX, 8, false);
    if (fresh == 0) {
        return false;
    }
    struct node *node = node_write(heap, fresh);
    const struct node_key lowest = {.head = {NULL, 0}};
    node_put(node, 0, &lowest);
    child_set(node, 0, head->root);
    head->root = fresh;
    head->height++;
    return true;
}

/* Where to cut a node: appending at the end of the map cuts off nothing, which leaves full nodes
 * behind when keys come in ascending order. */
static uint32_t split_index(const struct node *node, uint32_t insert_index)
{
    ASSERT(node->count > 1);
    const bool is_append = node->is_leaf && node->next == 0 && insert_index == node->count;
    return is_append ? node->count - 1U : node->count / 2U;
}

/* Splits the path's node at depth; its parent has room. The path is out of date afterwards.
 * returns  false when the arena is exhausted: then nothing has changed */
static bool node_split(struct heap *heap, struct ordered_head *head, const struct path *path,
                       uint32_t depth)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(depth != 0);
    const uint64_t ref = path->steps[depth].ref;
    const struct node *node = node_read(heap, ref);
    const uint32_t cut = split_index(node, path->steps[depth].index);
    ASSERT(cut != 0 && cut < node->count);
    const struct node_key first = node_key_at(node, cut);
    struct node_key bound;
    const uint64_t right =
        node_acquire(heap, head->shard, NODE_BYTES_MAX, node->payload_bytes, node->is_leaf);
    if (right == 0 || !key_copy(heap, head->shard, &first, &bound)) {
        if (right != 0) {
            heap_release(heap, right);
        }
        return false;
    }
    struct node *left = node_write(heap, ref);
    struct node *into = node_write(heap, right);
    node_copy(left, cut, left->count, into);
    struct node *parent = node_write(heap, path->steps[depth - 1U].ref);
    const uint32_t at = path->steps[depth - 1U].index + 1U;
    node_put(parent, at, &bound);
    child_set(parent, at, right);
    left->count = (uint16_t)cut;
    if (left->is_leaf) {
        into->prev = ref;
        into->next = left->next;
        leaf_link(heap, right);
    }
    return true;
}

/* Makes room for an entry in the path's node at depth. When that changes the tree beyond this node,
 * again is set and the path must be found anew.
 * returns  false when the arena is exhausted: the tree reads as before */
static bool room_make(struct heap *heap, struct ordered_head *head, struct path *path,
                      uint32_t depth, uint32_t room, bool *again)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT_SLOW(path != NULL);
    const struct node *node = node_read(heap, path->steps[depth].ref);
    *again = false;
    if (node_has_room(node, room)) {
        return true;
    }
    const uint32_t live = node_live_bytes(node) + room;
    if (live <= NODE_BYTES_MAX) {
        const bool is_small = depth == 0 && node->is_leaf && live * 2U < NODE_BYTES_MAX; /* O4 */
        return node_renew(heap, head, path, depth, is_small ? live * 2U : NODE_BYTES_MAX);
    }
    *again = true;
    return depth == 0 ? root_raise(heap, head) : node_split(heap, head, path, depth);
}

/* Makes room on the whole way down: inner nodes for a separator, the leaf for the entry.
 * returns  false when the arena is exhausted */
static bool path_make(struct heap *heap, struct ordered_head *head, struct span key,
                      uint32_t entry_bytes, struct path *path)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    const uint32_t separator_bytes = 8U + 2U + NODE_KEY_BYTES_INLINE + 6U + 2U;
    for (uint32_t turn = 0; turn < 4U * NODE_HEIGHT_MAX; turn++) {
        bool again = false;
        (void)path_find(heap, head, key, path);
        for (uint32_t depth = 0; depth <= path->depth && !again; depth++) {
            const uint32_t room = depth == path->depth ? entry_bytes : separator_bytes;
            if (!room_make(heap, head, path, depth, room, &again)) {
                return false;
            }
        }
        if (!again) {
            return true;
        }
    }
    ASSERT(false); /* each turn splits or raises, and a split node has room */
    return false;
}

/* The key as a node will hold it, its blob stored when it needs one.
 * returns  false when the arena is exhausted */
static bool key_store(struct heap *heap, uint32_t shard, struct span key, struct node_key *out)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    *out = (struct node_key){.head = key};
    if (key.bytes > NODE_KEY_BYTES_INLINE) {
        out->blob = heap_blob_store(heap, shard, key);
        return out->blob != 0;
    }
    return true;
}

static bool leaf_make(struct heap *heap, struct ordered_head *head, uint32_t entry_bytes)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    if (head->root == 0) {
        head->root = node_acquire(heap, head->shard, (uint32_t)sizeof(struct node) + entry_bytes,
                                  payload_bytes_of(head), true);
        head->height = head->root != 0;
    }
    return head->root != 0;
}

void *ordered_insert(struct heap *heap, struct ordered_head *head, struct span key, bool *created)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(created != NULL && key.bytes <= ORDERED_KEY_BYTES_MAX);
    ASSERT(head->count != UINT32_MAX);
    struct path path = {0};
    *created = head->count == 0 || !path_find(heap, head, key, &path);
    if (!*created) {
        return path_value(heap, &path);
    }
    struct node_key stored;
    if (!key_store(heap, head->shard, key, &stored)) {
        return NULL;
    }
    const uint32_t entry_bytes = node_entry_bytes(&stored, payload_bytes_of(head));
    const bool has_room =
        head->count != 0 && node_has_room(node_read(heap, path.steps[path.depth].ref), entry_bytes);
    if (!has_room &&
        (!leaf_make(heap, head, entry_bytes) || !path_make(heap, head, key, entry_bytes, &path))) {
        if (stored.blob != 0) {
            heap_blob_release(heap, stored.blob);
        }
        return NULL;
    }
    const uint32_t index = path.steps[path.depth].index;
    struct node *leaf = node_write(heap, path.steps[path.depth].ref);
    node_put(leaf, index, &stored);
    head->count++; /* O5 */
    return (uint8_t *)leaf + node_payload_offset(leaf, index);
}

/* Takes an entry out of a node and frees its key's blob. */
static void entry_free(struct heap *heap, struct node *node, uint32_t index)
{
    ASSERT_SLOW(node->used <= node->bytes);
    ASSERT(index < node->count);
    const struct node_key key = node_key_at(node, index);
    if (key.blob != 0) {
        heap_blob_release(heap, key.blob);
    }
    node_take(node, index);
}

/* Takes the path's node at depth, which is empty or whose entries are elsewhere, out of the tree,
 * and ancestors that become empty with it (O3). */
static void node_drop(struct heap *heap, struct ordered_head *head, const struct path *path,
                      uint32_t depth)
{
    ASSERT_SLOW(heap->arena != NULL);
    for (;; depth--) {
        const uint64_t ref = path->steps[depth].ref;
        const struct node *node = node_read(heap, ref);
        if (node->is_leaf && node->prev != 0) {
            node_write(heap, node->prev)->next = node->next;
        }
        if (node->is_leaf && node->next != 0) {
            node_write(heap, node->next)->prev = node->prev;
        }
        heap_release(heap, ref);
        if (depth == 0) {
            head->root = 0;
            head->height = 0;
            return;
        }
        struct node *parent = node_write(heap, path->steps[depth - 1U].ref);
        entry_free(heap, parent, path->steps[depth - 1U].index);
        if (parent->count != 0) {
            return;
        }
    }
}

/* Takes inner roots with a single child away. */
static void root_lower(struct heap *heap, struct ordered_head *head)
{
    ASSERT_SLOW(heap->arena != NULL);
    while (head->height > 1 && node_read(heap, head->root)->count == 1) {
        const uint64_t root = head->root;
        head->root = node_child(node_read(heap, root), 0);
        entry_free(heap, node_write(heap, root), 0);
        heap_release(heap, root);
        head->height--;
    }
}

/* Joins the path's leaf with the one behind it under the same parent, or in front, when both
 * together fill at most half a node. An exhausted arena only means that they stay apart. */
static void leaf_join(struct heap *heap, struct ordered_head *head, struct path *path)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(path != NULL);
    const uint32_t depth = path->depth;
    if (depth == 0 ||
        node_live_bytes(node_read(heap, path->steps[depth].ref)) > NODE_BYTES_MAX / 4U) {
        return;
    }
    const struct node *parent = node_read(heap, path->steps[depth - 1U].ref);
    uint32_t left = path->steps[depth - 1U].index;
    left -= left + 1U == parent->count && left != 0;
    if (left + 1U >= parent->count) {
        return;
    }
    path->steps[depth - 1U].index = left;
    path->steps[depth].ref = node_child(parent, left);
    const uint64_t right = node_child(parent, left + 1U);
    const uint32_t live = node_live_bytes(node_read(heap, path->steps[depth].ref)) +
                          node_live_bytes(node_read(heap, right));
    if (live > NODE_BYTES_MAX / 2U || !node_renew(heap, head, path, depth, NODE_BYTES_MAX)) {
        return;
    }
    const struct node *from = node_read(heap, right);
    node_copy(from, 0, from->count, node_write(heap, path->steps[depth].ref));
    path->steps[depth - 1U].index = left + 1U;
    path->steps[depth].ref = right;
    node_drop(heap, head, path, depth);
}

bool ordered_remove(struct heap *heap, struct ordered_head *head, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    struct path path;
    if (head->count == 0 || !path_find(heap, head, key, &path)) {
        return false;
    }
    struct node *leaf = node_write(heap, path.steps[path.depth].ref);
    entry_free(heap, leaf, path.steps[path.depth].index);
    head->count--; /* O5 */
    if (leaf->count == 0) {
        node_drop(heap, head, &path, path.depth);
    } else {
        leaf_join(heap, head, &path);
    }
    root_lower(heap, head);
    return true;
}

/* The leftmost or rightmost path. */
static void path_edge(const struct heap *heap, const struct ordered_head *head, bool is_last,
                      struct path *path)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(path != NULL);
    uint64_t ref = head->root;
    path->depth = head->height - 1U;
    for (uint32_t depth = 0;; depth++) {
        const struct node *node = node_read(heap, ref);
        path->steps[depth].ref = ref;
        path->steps[depth].index = is_last ? node->count - 1U : 0;
        if (depth == path->depth) {
            return;
        }
        ref = node_child(node, path->steps[depth].index);
    }
}

static bool edge(const struct heap *heap, const struct ordered_head *head, bool is_last,
                 struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor != NULL);
    *cursor = (struct ordered_cursor){0};
    if (head->count == 0) {
        return false;
    }
    struct path path;
    path_edge(heap, head, is_last, &path);
    *cursor = (struct ordered_cursor){.leaf = path.steps[path.depth].ref,
                                      .index = path.steps[path.depth].index};
    return true;
}

bool ordered_first(const struct heap *heap, const struct ordered_head *head,
                   struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    return edge(heap, head, false, cursor);
}

bool ordered_last(const struct heap *heap, const struct ordered_head *head,
                  struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    return edge(heap, head, true, cursor);
}

bool ordered_seek(const struct heap *heap, const struct ordered_head *head, struct span key,
                  struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor != NULL);
    *cursor = (struct ordered_cursor){0};
    if (head->count == 0) {
        return false;
    }
    struct path path;
    (void)path_find(heap, head, key, &path);
    cursor->leaf = path.steps[path.depth].ref;
    cursor->index = path.steps[path.depth].index;
    const struct node *leaf = node_read(heap, cursor->leaf);
    if (cursor->index == leaf->count) {
        *cursor = (struct ordered_cursor){.leaf = leaf->next};
    }
    return cursor->leaf != 0;
}

bool ordered_next(const struct heap *heap, struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->leaf != 0);
    const struct node *leaf = node_read(heap, cursor->leaf);
    if (++cursor->index == leaf->count) {
        *cursor = (struct ordered_cursor){.leaf = leaf->next};
    }
    return cursor->leaf != 0;
}

bool ordered_prev(const struct heap *heap, struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->leaf != 0);
    if (cursor->index != 0) {
        cursor->index--;
        return true;
    }
    cursor->leaf = node_read(heap, cursor->leaf)->prev;
    cursor->index = cursor->leaf == 0 ? 0 : node_read(heap, cursor->leaf)->count - 1U;
    return cursor->leaf != 0;
}

struct ordered_entry ordered_entry(const struct heap *heap, const struct ordered_head *head,
                                   const struct ordered_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->leaf != 0 && head->count != 0);
    const struct node *leaf = node_read(heap, cursor->leaf);
    const struct node_key key = node_key_at(leaf, cursor->index);
    struct ordered_entry entry = {.key = key.head, .key_blob = key.blob};
    entry.value = (const uint8_t *)leaf + node_payload_offset(leaf, cursor->index);
    if (key.blob != 0) {
        const struct span piece = heap_blob_piece(heap, key.blob, 0);
        entry.key = piece;
        entry.key_blob = piece.bytes == heap_blob_bytes(heap, key.blob) ? 0 : key.blob;
    }
    return entry;
}

void *ordered_value_write(struct heap *heap, const struct ordered_head *head,
                          const struct ordered_cursor *cursor)
{
    ASSERT(cursor->leaf != 0 && head->count != 0);
    const uint32_t offset = node_payload_offset(node_read(heap, cursor->leaf), cursor->index);
    return heap_write(heap, cursor->leaf + offset);
}

bool ordered_clear(struct heap *heap, struct ordered_head *head, uint32_t node_count_max)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(node_count_max != 0);
    for (uint32_t count = 0; head->root != 0 && count < node_count_max; count++) {
        struct path path;
        path_edge(heap, head, false, &path);
        struct node *leaf = node_write(heap, path.steps[path.depth].ref);
        head->count -= leaf->count;
        while (leaf->count != 0) {
            entry_free(heap, leaf, leaf->count - 1U);
        }
        node_drop(heap, head, &path, path.depth);
        root_lower(heap, head);
    }
    return head->root == 0;
}

/* Checks O3 and O4 along the leftmost path. */
static void spine_check(const struct heap *heap, const struct ordered_head *head)
{
    struct path path;
    path_edge(heap, head, false, &path);
    for (uint32_t depth = 0; depth <= path.depth; depth++) {
        const struct node *node = node_read(heap, path.steps[depth].ref);
        node_check(heap, node);
        ASSERT(node->is_leaf == (depth == path.depth)); /* O3 */
        ASSERT(node->bytes == NODE_BYTES_MAX || depth == 0);
    }
}

void ordered_check(const struct heap *heap, const struct ordered_head *head)
{
    ASSERT((head->count == 0) == (head->root == 0 || head->height == 1) || head->count != 0);
    if (head->count == 0) {
        return;
    }
    spine_check(heap, head);
    struct ordered_cursor at;
    uint32_t count = 0;
    uint64_t leaf = 0;
    for (bool is_there = ordered_first(heap, head, &at); is_there;
         is_there = ordered_next(heap, &at)) {
        const struct node *node = node_read(heap, at.leaf);
        if (at.leaf != leaf) {
            node_check(heap, node);
            ASSERT(node->prev == leaf);
            leaf = at.leaf;
        }
        const struct ordered_entry entry = ordered_entry(heap, head, &at);
        if (entry.key_blob == 0) {
            struct path path;
            ASSERT(path_find(heap, head, entry.key, &path)); /* O1, O2 */
            ASSERT(path.steps[path.depth].ref == at.leaf);
        }
        count++;
    }
    ASSERT(count == head->count); /* O5 */
}
