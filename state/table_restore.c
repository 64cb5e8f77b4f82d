/* SPDX-License-Identifier: Apache-2.0 */
/* A table on its way back from a checkpoint: directory, segments, entries and all that their values
 * refer to are checked (T1 to T5 of table.c), then counted. And copied, entry by entry, into a
 * table of another arena: shards are the same there, pages are not. */
#include <errno.h>

#include "state/audit.h"
#include "state/list.h"
#include "state/ordered.h"
#include "state/table_inner.h"

static void table_describe(const void *shape, struct shape_description *out)
{
    const struct table *table = shape;
    ASSERT(table->head_count <= SHAPE_HEADS_MAX);
    out->value_bytes = table->value_bytes;
    out->key_bytes_max = table->key_bytes_max;
    out->key_bytes_inline = table->layout.key_inline_bytes;
    out->key_skip_bytes = table->layout.key_skip_bytes;
    out->head_count = table->head_count;
    for (uint32_t head = 0; head < table->head_count; head++) {
        out->heads[head].offset = table->heads[head].offset;
        out->heads[head].kind = table->heads[head].kind;
    }
}

/* One shard while it is checked. */
struct shard_walk {
    struct table *table;
    struct audit *audit;
    const struct directory_root *root;
    uint32_t shard;
    uint64_t entries;
    uint64_t segments;
};

/* What one head of a value refers to. */
static int head_audit(struct shard_walk *walk, const uint8_t *value, const struct table_head *head)
{
    const struct table *table = walk->table;
    const void *at = value + head->offset;
    ASSERT(head->offset + sizeof(uint64_t) <= table->value_bytes);
    const uint32_t room = table->value_bytes - head->offset;
    uint64_t ref;
    uint32_t bytes;
    memcpy(&ref, at, sizeof(ref));
    switch (head->kind) {
    case TABLE_HEAD_HEAP_REF:
        return ref == 0 ? 0 : audit_block(walk->audit, ref, walk->shard, 1);
    case TABLE_HEAD_BLOB_REF:
        return ref == 0 ? 0 : audit_blob(walk->audit, ref, walk->shard, &bytes);
    case TABLE_HEAD_LIST:
        return audit_list(walk->audit, at, walk->shard, room);
    case TABLE_HEAD_ORDERED:
        return room < sizeof(struct ordered_head)
                   ? audit_fault(walk->audit, 0, "a map's head does not fit its value")
                   : audit_ordered(walk->audit, at, walk->shard);
    default:
        return audit_fault(walk->audit, 0, "a value's head is of no known kind");
    }
}

/* What one entry refers to: its key, its value, and what that holds. */
static int entry_audit(struct shard_walk *walk, uint32_t page, uint32_t slot)
{
    const struct table *table = walk->table;
    const uint8_t *bytes = arena_read(table->arena, page);
    ASSERT_SLOW(slot < table->layout.slot_count);
    uint64_t key;
    int code = 0;
    (void)segment_key_read(&table->layout, bytes, slot, &key);
    if (key != 0) {
        uint32_t key_bytes = 0;
        code = audit_blob(walk->audit, key, walk->shard, &key_bytes);
        if (code == 0 &&
            (key_bytes <= table->layout.key_inline_bytes || key_bytes > table->key_bytes_max ||
             key_bytes <= table->layout.key_skip_bytes)) {
            return audit_fault(walk->audit, page, "a key has no possible length");
        }
    }
    const uint64_t place = table_value_place(table, (struct table_at){page, slot});
    if (code == 0 && table->is_value_in_heap) {
        code = audit_block(walk->audit, place, walk->shard, table->value_bytes);
    }
    for (uint32_t head = 0; code == 0 && head < table->head_count; head++) {
        code = head_audit(walk, heap_read_in(table->arena, place), &table->heads[head]);
    }
    return code;
}

/* One page of a segment.
 * part     that of its entries; SEGMENT_PARTS_MAX: any */
static int page_audit(struct shard_walk *walk, uint32_t page, uint32_t part)
{
    const struct table *table = walk->table;
    const uint8_t *bytes = arena_read(table->arena, page);
    const struct segment_place place = {
        .shard_count = table->shard_count, .shard = walk->shard, .part = part};
    bool has_refs = false;
    if (!segment_is_sound(&table->layout, bytes, &place, &has_refs)) {
        return audit_fault(walk->audit, page, "a segment is damaged");
    }
    walk->entries += table_head_of(table, page)->count;
    walk->segments++;
    if (!has_refs && !table->is_value_in_heap && table->head_count == 0) {
        return 0;
    }
    int code = 0;
    for (uint32_t slot = 0; code == 0 && slot < table->layout.slot_count; slot++) {
        if (segment_tag(&table->layout, bytes, slot) != 0) {
            code = entry_audit(walk, page, slot);
        }
    }
    return code;
}

/* The segment that begins at a position, with its chain (T1 to T4).
 * behind   becomes the position behind it */
static int segment_audit(struct shard_walk *walk, uint32_t position, uint32_t *behind)
{
    const struct table *table = walk->table;
    const struct directory_root *root = walk->root;
    struct segment_spot spot = table_spot_at(walk->shard, position);
    const uint32_t page = directory_find(table->arena, root, &spot);
    int code = audit_page(walk->audit, page, ARENA_PAGE_TABLE_SEGMENT, walk->shard);
    if (code != 0) {
        return code;
    }
    const struct segment_head head = *table_head_of(table, page);
    const bool is_sole = root->level == 0;
    if (head.depth > root->depth || head.part != spot.part || head.pattern >= 1U << head.depth ||
        table_position_of(head.part, head.pattern) != position ||
        (head.next != 0 && head.depth != DIRECTORY_DEPTH_MAX)) {
        return audit_fault(walk->audit, page, "a segment is not where it belongs");
    }
    for (uint32_t extra = 0; !is_sole && extra < 1U << (root->depth - head.depth); extra++) {
        spot.index = head.pattern | extra << head.depth;
        if (directory_find(table->arena, root, &spot) != page) { /* T3 */
            return audit_fault(walk->audit, page, "a segment is missing from its directory");
        }
    }
    const uint32_t part = is_sole ? SEGMENT_PARTS_MAX : head.part;
    code = page_audit(walk, page, part);
    for (uint32_t link = head.next; code == 0 && link != 0;) {
        code = audit_page(walk->audit, link, ARENA_PAGE_TABLE_SEGMENT, walk->shard);
        if (code != 0) {
            break;
        }
        const struct segment_head *more = table_head_of(table, link);
        if (more->depth != head.depth || more->part != head.part || more->pattern != head.pattern) {
            return audit_fault(walk->audit, link, "a chained segment is not where it belongs");
        }
        code = page_audit(walk, link, part);
        link = more->next;
    }
    *behind = is_sole ? segment_parts(walk->shard) * TABLE_POSITIONS_PER_PART
                      : position + (TABLE_POSITIONS_PER_PART >> head.depth);
    return code;
}

/* The directory's own pages; after this lookups are safe. */
static int directory_audit(struct shard_walk *walk)
{
    const struct directory_root *root = walk->root;
    struct audit *audit = walk->audit;
    const bool is_possible = root->level == 0 ? root->depth == 0
                             : root->level == 1
                                 ? root->depth <= DIRECTORY_PAGE_DEPTH
                                 : root->level == 2 && root->depth > DIRECTORY_PAGE_DEPTH &&
                                       root->depth <= DIRECTORY_DEPTH_MAX;
    if (!is_possible || (root->page == 0 && (root->level != 0 || root->entry_count != 0))) {
        return audit_fault(audit, root->page, "a table's root is damaged");
    }
    if (root->level == 0) {
        return 0;
    }
    int code = audit_page(audit, root->page, ARENA_PAGE_TABLE_DIRECTORY, walk->shard);
    if (code != 0 || root->level == 1) {
        return code;
    }
    const uint32_t *index = (const void *)arena_read(audit->arena, root->page);
    const uint32_t slots = 1U << (root->depth - DIRECTORY_PAGE_DEPTH);
    if (index[0] == 0) {
        return audit_fault(audit, root->page, "a directory has no first page"); /* D1 */
    }
    for (uint32_t slot = 0; code == 0 && slot < DIRECTORY_INDEX_SLOTS; slot++) {
        if (index[slot] != 0) {
            code = slot >= slots
                       ? audit_fault(audit, root->page, "a directory is deeper than it says")
                       : audit_page(audit, index[slot], ARENA_PAGE_TABLE_DIRECTORY, walk->shard);
        }
    }
    return code;
}

static int shard_audit(struct shard_walk *walk)
{
    ASSERT(walk->root != NULL);
    int code = directory_audit(walk);
    const uint32_t end = segment_parts(walk->shard) * TABLE_POSITIONS_PER_PART;
    for (uint32_t position = 0; code == 0 && walk->root->page != 0 && position < end;) {
        code = segment_audit(walk, position, &position);
    }
    if (code == 0 && walk->entries != walk->root->entry_count) { /* T5 */
        return audit_fault(walk->audit, walk->root->page, "a table's root counts wrongly");
    }
    return code;
}

static int table_rebuild(void *shape, struct audit *audit, struct error *error)
{
    struct table *table = shape;
    ASSERT(table->arena != NULL);
    table->counters = (struct table_counters){0};
    memset(table->roots, 0, table->shard_count * sizeof(const void *));
    for (uint32_t shard = 0; audit != NULL && shard < table->shard_count; shard++) {
        struct shard_walk walk = {.table = table, .audit = audit, .shard = shard};
        walk.root = arena_root_read(table->arena, table->object, shard);
        if (walk.root == NULL) {
            continue;
        }
        const int code = shard_audit(&walk);
        if (code != 0) {
            return error_set(error, code, "shard %u, page %u: %s", shard, audit->page,
                             audit->reason);
        }
        table->roots[shard] = walk.root;
        table->counters.entries += walk.entries;
        table->counters.segments += walk.segments;
    }
    return 0;
}

/* A shard on its way to another arena. */
struct table_copying {
    const struct table *from;
    struct table *into;
    struct shape_copy *copy;
    int code;
};

/* Copies what one head refers to; the value's bytes have been copied. */
static bool head_copy(const struct table_copying *copying, const struct table_head *head,
                      const uint8_t *from_value, uint8_t *into_value)
{
    const struct heap *from = copying->from->heap;
    struct heap *into = copying->into->heap;
    const void *old = from_value + head->offset;
    void *new = into_value + head->offset;
    ASSERT(head->kind >= TABLE_HEAD_HEAP_REF && head->kind <= TABLE_HEAD_ORDERED);
    if (head->kind == TABLE_HEAD_LIST) {
        return copy_list(from, old, into, new, copying->copy);
    }
    if (head->kind == TABLE_HEAD_ORDERED) {
        return copy_ordered(from, old, into, new, copying->copy);
    }
    uint64_t ref;
    memcpy(&ref, old, sizeof(ref));
    if (ref == 0) {
        return true;
    }
    uint64_t copied;
    if (head->kind == TABLE_HEAD_BLOB_REF) {
        copied = copy_blob(from, ref, into, copying->copy);
    } else {
        const uint32_t bytes = heap_block_bytes(from, ref);
        copied = heap_acquire(into, copying->copy->shard, bytes);
        if (copied != 0) {
            memcpy(heap_write(into, copied), heap_read(from, ref), bytes);
        }
    }
    memcpy(new, &copied, sizeof(copied));
    return copied != 0;
}

static enum table_visit entry_copy(void *context, const struct table_entry *entry)
{
    struct table_copying *copying = context;
    struct table *into = copying->into;
    ASSERT(entry->shard == copying->copy->shard);
    if (copying->code != 0) {
        return TABLE_KEEP;
    }
    struct span key = entry->key;
    if (entry->key_blob != 0) {
        key = (struct span){copying->copy->scratch,
                            heap_blob_bytes(copying->from->heap, entry->key_blob)};
        heap_blob_read(copying->from->heap, entry->key_blob, 0, (uint32_t)key.bytes,
                       copying->copy->scratch);
    }
    const uint32_t skip_bytes = into->layout.key_skip_bytes;
    if ((skip_bytes != 0 && key.bytes <= skip_bytes) ||
        hash_behind(key, skip_bytes) != entry->hash) { /* of a long key it is stored */
        copying->code = -EBADMSG;
        return TABLE_KEEP;
    }
    bool created = false;
    uint8_t *value = table_insert(into, entry->hash, key, &created);
    if (value == NULL || !created) {
        copying->code = value == NULL ? -ENOSPC : -EBADMSG;
        return TABLE_KEEP;
    }
    memcpy(value, entry->value, into->value_bytes);
    for (uint32_t head = 0; head < into->head_count; head++) {
        if (!head_copy(copying, &into->heads[head], entry->value, value)) {
            copying->code = -ENOSPC;
            return TABLE_KEEP;
        }
    }
    copying->copy->entries++;
    return TABLE_KEEP;
}

static int table_copy(void *into, void *from, struct shape_copy *copy)
{
    struct table_copying copying = {.from = from, .into = into, .copy = copy};
    ASSERT(copying.from->shard_count == copying.into->shard_count);
    ASSERT(copying.from->value_bytes == copying.into->value_bytes);
    struct table_cursor cursor = {.shard = copy->shard, .one_shard = true};
    while (table_scan(from, &cursor, entry_copy, &copying) && copying.code == 0) {
    }
    return copying.code;
}

const struct shape_ops table_shape_ops = {
    .describe = table_describe,
    .rebuild = table_rebuild,
    .copy = table_copy,
};
