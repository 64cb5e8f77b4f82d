/* SPDX-License-Identifier: Apache-2.0 */
/* Timers on their way back from a checkpoint. A copied timer keeps its time and sequence, so that
 * handles in table values stay good. Shards of several old lanes may meet in one set and then have
 * sequences in common: that is fine, since a handle goes with its shard and one shard comes from
 * one lane; timers of two shards that are due at one time fire in the order of sequence, then
 * shard. New sequences go on behind the highest. */
#include <errno.h>

#include "state/audit.h"
#include "state/timers_inner.h"

static void timers_describe(const void *shape, struct shape_description *out)
{
    ASSERT(shape != NULL && out != NULL);
}

/* Checks one timer's key; its payload's blob is taken. */
static int key_check(struct audit *audit, struct span key, uint32_t shard, uint64_t sequence_max)
{
    if (key.bytes <= STAMP_BYTES || key.bytes > STAMP_BYTES + 1U + PAYLOAD_BYTES_INLINE) {
        return audit_fault(audit, 0, "a timer has no payload, or too much");
    }
    const struct stamp stamp = stamp_load(key.data);
    if (stamp.sequence == 0 || stamp.sequence > sequence_max) {
        return audit_fault(audit, 0, "a timer's sequence is out of range");
    }
    if (key.data[STAMP_BYTES] == PAYLOAD_INLINE) {
        return 0;
    }
    uint64_t blob;
    uint32_t bytes;
    if (key.data[STAMP_BYTES] != PAYLOAD_BLOB || key.bytes != STAMP_BYTES + 1U + sizeof(blob)) {
        return audit_fault(audit, 0, "a timer's payload is of no known kind");
    }
    memcpy(&blob, key.data + STAMP_BYTES + 1U, sizeof(blob));
    return audit_blob(audit, blob, shard, &bytes);
}

static int shard_check(const struct timers *timers, struct audit *audit, uint32_t shard,
                       const struct timers_root *root)
{
    ASSERT(root != NULL);
    if (root->map.value_bytes != 0 || (root->sequence == 0 && root->map.root != 0)) {
        return audit_fault(audit, 0, "a root of timers is damaged");
    }
    int code = audit_ordered(audit, &root->map, shard);
    struct ordered_cursor at;
    bool is_there = code == 0 && ordered_first(timers->heap, &root->map, &at);
    while (code == 0 && is_there) {
        const struct ordered_entry entry = ordered_entry(timers->heap, &root->map, &at);
        code = entry.key_blob != 0 ? audit_fault(audit, 0, "a timer's payload is too long")
                                   : key_check(audit, entry.key, shard, root->sequence);
        is_there = ordered_next(timers->heap, &at);
    }
    return code;
}

static int timers_rebuild(void *shape, struct audit *audit, struct error *error)
{
    struct timers *timers = shape;
    ASSERT(timers->heap != NULL);
    timers->count = 0;
    timers->sequence = 0;
    memset(timers->firsts, 0, timers->shard_count * sizeof(*timers->firsts));
    for (uint32_t node = 0; node < 2U * timers->leaf_count; node++) {
        timers->winners[node] = SHARD_NONE;
    }
    for (uint32_t shard = 0; audit != NULL && shard < timers->shard_count; shard++) {
        const struct timers_root *root =
            arena_root_read(timers->heap->arena, timers->object, shard);
        if (root == NULL) {
            continue;
        }
        const int code = shard_check(timers, audit, shard, root);
        if (code != 0) {
            return error_set(error, code, "timers of shard %u: %s", shard, audit->reason);
        }
        timers->count += root->map.count;
        timers->sequence = root->sequence > timers->sequence ? root->sequence : timers->sequence;
        timers_first_update(timers, shard, timers_first_read(timers, root));
    }
    return 0;
}

/* Puts a copy of a timer's key into a map, its payload's blob stored anew. */
static int timer_copy(const struct timers *from, struct span key, struct timers *into,
                      struct timers_root *root, struct shape_copy *copy)
{
    uint8_t bytes[STAMP_BYTES + 1U + PAYLOAD_BYTES_INLINE];
    ASSERT(key.bytes > STAMP_BYTES && key.bytes <= sizeof(bytes));
    memcpy(bytes, key.data, key.bytes);
    if (bytes[STAMP_BYTES] == PAYLOAD_BLOB) {
        uint64_t blob;
        memcpy(&blob, bytes + STAMP_BYTES + 1U, sizeof(blob));
        blob = copy_blob(from->heap, blob, into->heap, copy);
        if (blob == 0) {
            return -ENOSPC;
        }
        memcpy(bytes + STAMP_BYTES + 1U, &blob, sizeof(blob));
    }
    bool created;
    if (ordered_insert(into->heap, &root->map, (struct span){bytes, key.bytes}, &created) == NULL) {
        return -ENOSPC;
    }
    into->count += created;
    copy->entries += created;
    return created ? 0 : -EBADMSG;
}

static int timers_copy(void *into_shape, void *from_shape, struct shape_copy *copy)
{
    struct timers *into = into_shape;
    const struct timers *from = from_shape;
    ASSERT(into != from && copy->shard < into->shard_count);
    const struct timers_root *old = arena_root_read(from->heap->arena, from->object, copy->shard);
    if (old == NULL || old->sequence == 0) {
        return 0;
    }
    struct timers_root *root = timers_root_write(into, copy->shard);
    if (root == NULL) {
        return -ENOSPC;
    }
    root->sequence = old->sequence > root->sequence ? old->sequence : root->sequence;
    into->sequence = root->sequence > into->sequence ? root->sequence : into->sequence;
    int code = 0;
    struct ordered_cursor at;
    bool is_there = ordered_first(from->heap, &old->map, &at);
    while (code == 0 && is_there) {
        code = timer_copy(from, ordered_entry(from->heap, &old->map, &at).key, into, root, copy);
        is_there = ordered_next(from->heap, &at);
    }
    timers_first_update(into, copy->shard, timers_first_read(into, root));
    return code;
}

const struct shape_ops timers_shape_ops = {
    .describe = timers_describe,
    .rebuild = timers_rebuild,
    .copy = timers_copy,
};
