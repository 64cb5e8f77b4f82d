/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/state/fake_store.h"

#include <errno.h>
#include <stdlib.h>

struct store *fake_store_create(void)
{
    struct store *store = calloc(1, sizeof(*store));
    ASSERT(store != NULL);
    store->in_flight_max = FAKE_IN_FLIGHT_MAX;
    store->completions_max = FAKE_IN_FLIGHT_MAX;
    store->slots_left = UINT32_MAX;
    return store;
}

static void checkpoint_free(struct fake_checkpoint *checkpoint)
{
    for (uint32_t index = 0; index < checkpoint->extent_count; index++) {
        free(checkpoint->extents[index].bytes);
    }
    free(checkpoint->extents);
    *checkpoint = (struct fake_checkpoint){0};
}

void fake_store_destroy(struct store *store)
{
    for (uint32_t index = 0; index < store->count; index++) {
        checkpoint_free(&store->checkpoints[index]);
    }
    free(store);
}

const struct fake_checkpoint *fake_store_find(const struct store *store, uint64_t id)
{
    for (uint32_t index = 0; index < store->count; index++) {
        if (store->checkpoints[index].is_complete && store->checkpoints[index].entry.id == id) {
            return &store->checkpoints[index];
        }
    }
    return NULL;
}

uint32_t store_list(const struct store *store, struct store_checkpoint *into, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t index = store->count; index-- != 0;) {
        if (store->checkpoints[index].is_complete) {
            if (count < max) {
                into[count] = store->checkpoints[index].entry;
            }
            count++;
        }
    }
    return count;
}

bool store_find(const struct store *store, uint64_t id, struct store_checkpoint *out)
{
    const struct fake_checkpoint *found = fake_store_find(store, id);
    if (found != NULL) {
        *out = found->entry;
    }
    return found != NULL;
}

int store_begin(struct store *store, const struct store_checkpoint *checkpoint, struct error *error)
{
    ASSERT(store->phase == STORE_IDLE && store->count < FAKE_CHECKPOINTS_MAX);
    ASSERT(checkpoint->base_id == 0 || fake_store_find(store, checkpoint->base_id) != NULL);
    if (store->slots_left == 0) {
        return error_set(error, -ENOSPC, "no slots");
    }
    store->checkpoints[store->count++] = (struct fake_checkpoint){.entry = *checkpoint};
    store->phase = STORE_WRITING;
    store->failure = (struct error){0};
    return 0;
}

int store_append(struct store *store, const uint8_t *extent, uint64_t tag)
{
    ASSERT(store->phase == STORE_WRITING || store->phase == STORE_FAILED);
    if (store->phase == STORE_FAILED) {
        return -EIO;
    }
    if (store->flight_count == store->in_flight_max) {
        return -EAGAIN;
    }
    if (store->slots_left == 0) {
        return -ENOSPC;
    }
    if (store->fail_append_in != 0 && --store->fail_append_in == 0) {
        store->phase = STORE_FAILED;
        (void)error_set(&store->failure, 0, "input/output error");
        return -EIO;
    }
    store->slots_left--;
    store->flights[store->flight_count++] = (struct fake_flight){.extent = extent, .tag = tag};
    return 0;
}

void store_commit(struct store *store, uint64_t duration_ns)
{
    ASSERT(store->phase == STORE_WRITING);
    store->phase = STORE_COMMITTING;
    store->commit_left = store->commit_polls;
    store->checkpoints[store->count - 1].entry.duration_ns = duration_ns;
}

void store_abort(struct store *store)
{
    ASSERT(store->phase == STORE_WRITING || store->phase == STORE_FAILED);
    store->phase = STORE_FAILED;
}

static void complete(struct store *store, const struct fake_flight *flight)
{
    struct fake_checkpoint *checkpoint = &store->checkpoints[store->count - 1];
    if (checkpoint->extent_count == checkpoint->extent_max) {
        checkpoint->extent_max = checkpoint->extent_max * 2 + 8;
        checkpoint->extents =
            realloc(checkpoint->extents, checkpoint->extent_max * sizeof(struct fake_extent));
        ASSERT(checkpoint->extents != NULL);
    }
    uint8_t *bytes = calloc(1, EXTENT_BYTES);
    ASSERT(bytes != NULL && extent_check(flight->extent, EXTENT_BYTES));
    memcpy(bytes, flight->extent, extent_bytes(flight->extent));
    checkpoint->extents[checkpoint->extent_count++].bytes = bytes;
    checkpoint->entry.extent_count++;
    checkpoint->entry.bytes += extent_bytes(flight->extent);
}

enum store_state store_poll(struct store *store, uint64_t *tags, uint32_t tag_max,
                            uint32_t *tag_count, uint64_t wait_ns)
{
    (void)wait_ns;
    *tag_count = 0;
    while (store->flight_count != 0 && *tag_count < store->completions_max &&
           *tag_count < tag_max) {
        const struct fake_flight flight = store->flights[0];
        memmove(store->flights, store->flights + 1, --store->flight_count * sizeof(flight));
        complete(store, &flight);
        tags[(*tag_count)++] = flight.tag;
    }
    if (store->flight_count != 0 || store->phase == STORE_IDLE) {
        return store->phase == STORE_FAILED ? STORE_WRITING : store->phase;
    }
    if (store->phase == STORE_COMMITTING && store->commit_left-- == 0) {
        store->phase = STORE_IDLE;
        if (!store->fail_commit) {
            store->checkpoints[store->count - 1].is_complete = true;
            return STORE_DURABLE;
        }
        (void)error_set(&store->failure, 0, "flush failed");
        checkpoint_free(&store->checkpoints[--store->count]);
        return STORE_FAILED;
    }
    if (store->phase == STORE_FAILED) {
        store->phase = STORE_IDLE;
        checkpoint_free(&store->checkpoints[--store->count]);
        return STORE_FAILED;
    }
    return store->phase;
}

const struct error *store_failure(const struct store *store)
{
    return &store->failure;
}

bool store_scrub(struct store *store)
{
    ASSERT(store->phase == STORE_IDLE);
    const bool is_good = !store->scrub_finds;
    if (!is_good && store->count != 0) {
        checkpoint_free(&store->checkpoints[--store->count]);
    }
    store->scrub_finds = false;
    return is_good;
}

static int checkpoint_read(const struct fake_checkpoint *checkpoint, uint32_t lane, uint32_t kind,
                           store_extent_fn *visit, void *context, struct error *error)
{
    /* From the last to the first: the order within a checkpoint is any. */
    for (uint32_t index = checkpoint->extent_count; index-- != 0;) {
        const uint8_t *bytes = checkpoint->extents[index].bytes;
        const struct extent_header *header = (const void *)bytes;
        if ((lane != UINT32_MAX && header->lane != lane) || (kind != 0 && header->kind != kind)) {
            continue;
        }
        const int code = extent_check(bytes, EXTENT_BYTES)
                             ? visit(context, &checkpoint->entry, bytes)
                             : error_set(error, -EBADMSG, "an extent is damaged");
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

int store_read(struct store *store, uint64_t id, uint32_t lane, uint32_t kind,
               store_extent_fn *visit, void *context, struct error *error)
{
    const struct fake_checkpoint *chain[STORE_CHAIN_MAX];
    uint32_t count = 0;
    while (id != 0) {
        chain[count] = fake_store_find(store, id);
        if (chain[count] == NULL) {
            return error_set(error, -ENOENT, "no checkpoint %lu", (unsigned long)id);
        }
        id = chain[count++]->entry.base_id;
    }
    while (count-- != 0) {
        const int code = checkpoint_read(chain[count], lane, kind, visit, context, error);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}
