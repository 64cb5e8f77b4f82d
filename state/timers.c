/* SPDX-License-Identifier: Apache-2.0 */
/* Each shard's timers are an ordered map, its head in the shard's root, with keys that sort as
 * timers fire: time and sequence big-endian, then the payload. The sequence counts over all shards
 * of the lane; each root remembers the last one given in its shard, so restore goes on behind the
 * highest.
 *
 * A winner tree over the shards, outside the pages, knows whose first timer is the earliest:
 *  W1  leaf s holds the first timer of shard s, or none
 *  W2  node n names the shard with the earlier first timer of its two children */
#include "state/timers.h"

#include <errno.h>
#include <stdlib.h>

#include "state/timers_inner.h"

int timers_create(struct heap *heap, const char *name, struct timers **out, struct error *error)
{
    ASSERT(heap != NULL && name != NULL && out != NULL);
    const uint32_t shard_count = heap->arena->shard_count;
    uint32_t leaf_count = 1;
    while (leaf_count < shard_count) {
        leaf_count *= 2;
    }
    struct timers *timers = calloc(1, sizeof(*timers));
    uint32_t *winners = calloc(2U * (size_t)leaf_count, sizeof(*winners));
    struct stamp *firsts = calloc(shard_count, sizeof(*firsts));
    int result = -ENOMEM;
    if (timers == NULL || winners == NULL || firsts == NULL) {
        (void)error_set(error, result, "no memory for timers '%s'", name);
        goto fail;
    }
    *timers = (struct timers){.heap = heap,
                              .shard_count = shard_count,
                              .leaf_count = leaf_count,
                              .winners = winners,
                              .firsts = firsts};
    for (uint32_t node = 0; node < 2U * leaf_count; node++) {
        winners[node] = SHARD_NONE;
    }
    result = arena_object_create(heap->arena, ARENA_OBJECT_TIMERS, name, &timers->object, error);
    if (result != 0) {
        goto fail;
    }
    arena_object_attach(heap->arena, timers->object, &timers_shape_ops, timers);
    *out = timers;
    return 0;
fail:
    free(firsts);
    free(winners);
    free(timers);
    return result;
}

void timers_destroy(struct timers *timers)
{
    if (timers != NULL) {
        free(timers->firsts);
        free(timers->winners);
        free(timers);
    }
}

uint64_t timers_count(const struct timers *timers)
{
    ASSERT_SLOW(timers->heap != NULL);
    return timers->count;
}

/* Writes a stamp so that bytes sort as (time, sequence). */
static void stamp_store(uint8_t *into, int64_t time_ms, uint64_t sequence)
{
    store_be64(into, (uint64_t)time_ms ^ (UINT64_C(1) << 63));
    store_be64(into + 8, sequence);
}

static bool is_before(const struct stamp *left, const struct stamp *right)
{
    return left->time_ms < right->time_ms ||
           (left->time_ms == right->time_ms && left->sequence < right->sequence);
}

/* The shard that wins between two (W2). */
static uint32_t winner_of(const struct timers *timers, uint32_t left, uint32_t right)
{
    ASSERT_SLOW(left == SHARD_NONE || left < timers->shard_count);
    ASSERT_SLOW(right == SHARD_NONE || right < timers->shard_count);
    if (left == SHARD_NONE || right == SHARD_NONE) {
        return left == SHARD_NONE ? right : left;
    }
    return is_before(&timers->firsts[right], &timers->firsts[left]) ? right : left;
}

void timers_first_update(struct timers *timers, uint32_t shard, struct stamp first)
{
    ASSERT_SLOW(timers->heap != NULL);
    ASSERT(shard < timers->shard_count);
    uint32_t *winners = timers->winners;
    timers->firsts[shard] = first;
    uint32_t node = timers->leaf_count + shard;
    winners[node] = first.sequence == 0 ? SHARD_NONE : shard;
    for (node /= 2; node != 0; node /= 2) {
        winners[node] = winner_of(timers, winners[2 * node], winners[2 * node + 1]);
    }
}

struct timers_root *timers_root_write(struct timers *timers, uint32_t shard)
{
    ASSERT_SLOW(shard < timers->shard_count);
    ASSERT_SLOW(timers->heap != NULL);
    struct timers_root *root = arena_root_write(timers->heap->arena, timers->object, shard);
    if (root != NULL && root->sequence == 0) {
        ordered_init(&root->map, shard, 0);
    }
    return root;
}

struct stamp timers_first_read(const struct timers *timers, const struct timers_root *root)
{
    ASSERT_SLOW(timers->heap != NULL);
    ASSERT_SLOW(timers->leaf_count >= timers->shard_count);
    struct ordered_cursor cursor;
    if (!ordered_first(timers->heap, &root->map, &cursor)) {
        return (struct stamp){0};
    }
    return stamp_load(ordered_entry(timers->heap, &root->map, &cursor).key.data);
}

bool timers_set(struct timers *timers, uint32_t shard, int64_t time_ms, struct span payload,
                struct timer_handle *out)
{
    ASSERT(shard < timers->shard_count);
    ASSERT(payload.bytes <= TIMERS_PAYLOAD_BYTES_MAX);
    struct timers_root *root = timers_root_write(timers, shard);
    if (root == NULL) {
        return false;
    }
    uint8_t key[STAMP_BYTES + 1U + PAYLOAD_BYTES_INLINE];
    const struct stamp stamp = {.time_ms = time_ms, .sequence = timers->sequence + 1U};
    struct span whole = {key, STAMP_BYTES + 1U + payload.bytes};
    stamp_store(key, time_ms, stamp.sequence);
    uint64_t blob = 0;
    if (payload.bytes > PAYLOAD_BYTES_INLINE) {
        blob = heap_blob_store(timers->heap, shard, payload);
        if (blob == 0) {
            return false;
        }
        key[STAMP_BYTES] = PAYLOAD_BLOB;
        memcpy(key + STAMP_BYTES + 1U, &blob, sizeof(blob));
        whole.bytes = STAMP_BYTES + 1U + sizeof(blob);
    } else {
        key[STAMP_BYTES] = PAYLOAD_INLINE;
        if (payload.bytes != 0) {
            memcpy(key + STAMP_BYTES + 1U, payload.data, payload.bytes);
        }
    }
    bool created;
    if (ordered_insert(timers->heap, &root->map, whole, &created) == NULL) {
        if (blob != 0) {
            heap_blob_release(timers->heap, blob);
        }
        return false;
    }
    ASSERT(created);
    ASSERT(root->sequence <= timers->sequence);
    root->sequence = ++timers->sequence;
    timers->count++;
    const struct stamp *first = &timers->firsts[shard];
    if (first->sequence == 0 || is_before(&stamp, first)) {
        timers_first_update(timers, shard, stamp);
    }
    if (out != NULL) {
        *out = (struct timer_handle){.time_ms = time_ms, .sequence = stamp.sequence};
    }
    return true;
}

/* Removes the timer at a cursor and its blob, if any; the shard's first may change. */
static void timer_remove(struct timers *timers, uint32_t shard, struct timers_root *root,
                         const struct ordered_cursor *cursor)
{
    const struct ordered_entry entry = ordered_entry(timers->heap, &root->map, cursor);
    ASSERT(entry.key_blob == 0 && entry.key.bytes > STAMP_BYTES);
    uint8_t key[STAMP_BYTES + 1U + PAYLOAD_BYTES_INLINE];
    ASSERT(entry.key.bytes <= sizeof(key));
    const struct span whole = {key, entry.key.bytes};
    memcpy(key, entry.key.data, entry.key.bytes);
    if (key[STAMP_BYTES] == PAYLOAD_BLOB) {
        uint64_t blob;
        memcpy(&blob, key + STAMP_BYTES + 1U, sizeof(blob));
        heap_blob_release(timers->heap, blob);
    }
    const bool is_removed = ordered_remove(timers->heap, &root->map, whole);
    ASSERT(is_removed);
    timers->count--;
    if (stamp_load(key).sequence == timers->firsts[shard].sequence) {
        timers_first_update(timers, shard, timers_first_read(timers, root));
    }
}

bool timers_cancel(struct timers *timers, uint32_t shard, struct timer_handle handle)
{
    ASSERT_SLOW(timers->heap != NULL);
    ASSERT_SLOW(timers->leaf_count >= timers->shard_count);
    ASSERT(shard < timers->shard_count);
    const struct timers_root *root = arena_root_read(timers->heap->arena, timers->object, shard);
    if (root == NULL || root->map.count == 0 || handle.sequence == 0) {
        return false;
    }
    uint8_t stamp[STAMP_BYTES];
    stamp_store(stamp, handle.time_ms, handle.sequence);
    struct ordered_cursor cursor;
    if (!ordered_seek(timers->heap, &root->map, (struct span){stamp, sizeof(stamp)}, &cursor)) {
        return false;
    }
    const struct ordered_entry entry = ordered_entry(timers->heap, &root->map, &cursor);
    if (memcmp(entry.key.data, stamp, sizeof(stamp)) != 0) {
        return false;
    }
    timer_remove(timers, shard, timers_root_write(timers, shard), &cursor);
    return true;
}

bool timers_next(const struct timers *timers, int64_t *time_ms)
{
    ASSERT_SLOW(timers->heap != NULL);
    ASSERT(time_ms != NULL);
    const uint32_t shard = timers->winners[1];
    if (shard == SHARD_NONE) {
        return false;
    }
    *time_ms = timers->firsts[shard].time_ms;
    return true;
}

/* Copies a timer's payload out. */
static struct span payload_read(const struct timers *timers, struct span key,
                                struct span_mut scratch)
{
    ASSERT(key.bytes > STAMP_BYTES && scratch.data != NULL);
    struct span payload = {key.data + STAMP_BYTES + 1U, key.bytes - STAMP_BYTES - 1U};
    if (key.data[STAMP_BYTES] == PAYLOAD_BLOB) {
        uint64_t blob;
        memcpy(&blob, payload.data, sizeof(blob));
        payload.bytes = heap_blob_bytes(timers->heap, blob);
        ASSERT(payload.bytes <= scratch.bytes);
        heap_blob_read(timers->heap, blob, 0, (uint32_t)payload.bytes, scratch.data);
    } else {
        ASSERT(payload.bytes <= scratch.bytes);
        memcpy(scratch.data, payload.data, payload.bytes);
    }
    return (struct span){scratch.data, payload.bytes};
}

bool timers_pop(struct timers *timers, int64_t now_ms, struct span_mut scratch,
                struct timer_due *due)
{
    ASSERT(due != NULL);
    const uint32_t shard = timers->winners[1];
    if (shard == SHARD_NONE || timers->firsts[shard].time_ms > now_ms) {
        return false;
    }
    struct timers_root *root = timers_root_write(timers, shard);
    struct ordered_cursor cursor;
    const bool is_there = ordered_first(timers->heap, &root->map, &cursor);
    ASSERT(is_there);
    const struct span key = ordered_entry(timers->heap, &root->map, &cursor).key;
    const struct stamp stamp = stamp_load(key.data);
    *due = (struct timer_due){.time_ms = stamp.time_ms, .sequence = stamp.sequence, .shard = shard};
    ASSERT(stamp.sequence == timers->firsts[shard].sequence); /* W1 */
    due->payload = payload_read(timers, key, scratch);
    timer_remove(timers, shard, root, &cursor);
    return true;
}

void timers_check(const struct timers *timers)
{
    uint64_t count = 0;
    const uint32_t best = timers->winners[1];
    for (uint32_t shard = 0; shard < timers->shard_count; shard++) {
        const struct timers_root *root =
            arena_root_read(timers->heap->arena, timers->object, shard);
        if (root == NULL || root->sequence == 0) {
            continue;
        }
        ordered_check(timers->heap, &root->map);
        count += root->map.count;
        const struct stamp first = timers_first_read(timers, root);
        ASSERT(first.sequence == timers->firsts[shard].sequence); /* W1 */
        ASSERT(root->sequence <= timers->sequence);
        ASSERT(first.sequence == 0 || !is_before(&first, &timers->firsts[best])); /* W2 */
    }
    ASSERT(count == timers->count);
}
