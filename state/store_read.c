/* SPDX-License-Identifier: Apache-2.0 */
/* Reading checkpoints back: the chain from its full one on, many reads in flight, each extent
 * checked against its manifest before anyone sees it. And scrubbing, one read at a call. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "state/store_internal.h"

#define READ_ALIGN_BYTES  ((size_t)2 << 20)
#define READ_MEMORY_BYTES ((size_t)STORE_READ_DEPTH * EXTENT_BYTES)

struct read_place {
    uint8_t *buffer;
    const struct store_extent *extent;
    uint32_t tries;
};

struct reader {
    struct store *store;
    const struct store_checkpoint *about;
    uint32_t lane;
    uint32_t kind;
    store_extent_fn *visit;
    void *context;
    struct error *error;
    int status;      /* the first thing that went wrong */
    bool is_damaged; /* and it was the disk's content, not the visitor */
    /* the extents of one checkpoint */
    struct store_extent *extents;
    uint32_t extent_count;
    uint32_t extent_max;
    uint32_t next;
    uint32_t in_flight;
    uint32_t depth;
    struct read_place places[STORE_READ_DEPTH];
    uint32_t idle[STORE_READ_DEPTH]; /* places that are free */
};

static int collect_piece(void *context, uint32_t slot, const struct store_piece *piece)
{
    struct reader *reader = context;
    ASSERT(slot != STORE_SLOT_NONE);
    for (uint32_t index = 0; index < piece->extent_count; index++) {
        const struct store_extent *extent = &piece->extents[index];
        if ((reader->lane != UINT32_MAX && extent->lane != reader->lane) ||
            (reader->kind != 0 && extent->kind != reader->kind)) {
            continue;
        }
        if (reader->extent_count == reader->extent_max) {
            return error_set(reader->error, -EBADMSG,
                             "checkpoint %llu: its manifest lists more extents than it has",
                             (unsigned long long)reader->about->id);
        }
        reader->extents[reader->extent_count++] = *extent;
    }
    return 0;
}

static void submit_read(struct reader *reader, uint32_t place)
{
    const struct store_extent *extent = reader->places[place].extent;
    const struct disk_request request = {.operation = DISK_READ,
                                         .bytes = extent->ref.bytes,
                                         .offset = store_layout_slot(extent->ref.slot),
                                         .buffer = reader->places[place].buffer,
                                         .tag = place};
    reader->places[place].tries++;
    const bool is_taken = disk_submit(reader->store->disk, &request);
    ASSERT(is_taken); /* depth is at most the disk's */
}

/* Checks what was read: checksum, structure, and that it is what the manifest says. */
static int check_extent(const struct reader *reader, const struct read_place *place, int64_t result)
{
    const struct store_ref *ref = &place->extent->ref;
    const unsigned long long id = reader->about->id;
    if (result != (int64_t)ref->bytes) {
        return store_io_explain(reader->error, DISK_READ, store_layout_slot(ref->slot), ref->bytes,
                                result);
    }
    if (!checksum_is_equal(checksum_of(place->buffer, ref->bytes), ref->sum)) { /* invariant 5 */
        return error_set(
            reader->error, -EBADMSG,
            "checkpoint %llu: the checksum of an extent of lane %u in slot %u is wrong", id,
            place->extent->lane, ref->slot);
    }
    struct extent_header head;
    memcpy(&head, place->buffer, sizeof(head));
    if (!extent_check(place->buffer, ref->bytes) || head.checkpoint != id ||
        head.lane != place->extent->lane || head.kind != place->extent->kind) {
        return error_set(reader->error, -EBADMSG,
                         "checkpoint %llu: slot %u does not hold the extent that it should", id,
                         ref->slot);
    }
    return 0;
}

static void finish_read(struct reader *reader, uint32_t index, int64_t result)
{
    struct read_place *place = &reader->places[index];
    ASSERT(place->extent != NULL);
    int status = 0;
    if (reader->status == 0) {
        status = check_extent(reader, place, result);
        if (status != 0 && place->tries < STORE_READ_TRIES) {
            submit_read(reader, index);
            return;
        }
        reader->is_damaged |= status == -EBADMSG;
        status =
            status != 0 ? status : reader->visit(reader->context, reader->about, place->buffer);
    }
    reader->status = reader->status != 0 ? reader->status : status;
    place->extent = NULL;
    reader->in_flight--;
    reader->idle[reader->in_flight] = index;
}

/* Hands out as many reads as there are places. */
static void fill(struct reader *reader)
{
    while (reader->status == 0 && reader->in_flight < reader->depth &&
           reader->next < reader->extent_count) {
        const uint32_t index = reader->idle[reader->in_flight++];
        ASSERT(reader->places[index].extent == NULL);
        reader->places[index].extent = &reader->extents[reader->next++];
        reader->places[index].tries = 0;
        submit_read(reader, index);
    }
}

/* Reads the extents that were collected, in any order. The disk gets its next request after each
 * one that was looked at: it must not run dry behind checksums and visits. */
static void read_extents(struct reader *reader)
{
    ASSERT(reader->in_flight == 0);
    struct disk_completion done[STORE_READ_DEPTH];
    reader->next = 0;
    fill(reader);
    while (reader->in_flight != 0) {
        const uint32_t got =
            disk_reap(reader->store->disk, done, STORE_READ_DEPTH, NANOSECONDS_PER_S);
        for (uint32_t index = 0; index < got; index++) {
            ASSERT(done[index].tag < STORE_READ_DEPTH);
            finish_read(reader, (uint32_t)done[index].tag, done[index].result);
            fill(reader);
        }
    }
}

/* One checkpoint of the chain. */
static int read_checkpoint(struct reader *reader, const struct store_kept *kept)
{
    reader->about = &kept->entry.about;
    reader->extent_max = kept->entry.about.extent_count;
    reader->extent_count = 0;
    ASSERT(reader->extent_max <= reader->store->layout.slot_count);
    reader->extents = malloc((reader->extent_max + 1U) * sizeof(*reader->extents));
    if (reader->extents == NULL) {
        return error_set(reader->error, -ENOMEM, "no memory for a list of %u extents",
                         reader->extent_max);
    }
    int status = store_manifest_walk(reader->store, &kept->entry, reader->store->scrubber.piece,
                                     collect_piece, reader, reader->error);
    reader->store->scrubber.loaded = 0;
    reader->is_damaged = status == -EBADMSG;
    if (status == 0) {
        read_extents(reader);
        status = reader->status;
    }
    free(reader->extents);
    reader->extents = NULL;
    return status;
}

/* The ids from the full checkpoint on to id. */
static uint32_t list_chain(struct store *store, uint64_t id, uint64_t *ids)
{
    const uint32_t count = store_catalog_chain(store, id);
    ASSERT(count <= STORE_CHECKPOINTS_MAX);
    for (uint32_t index = count; index > 0; index--) {
        const struct store_kept *kept = store_catalog_find(store, id);
        ASSERT(kept != NULL);
        ids[index - 1] = id;
        id = kept->entry.about.base_id;
    }
    ASSERT(id == 0);
    return count;
}

/* Takes a damaged checkpoint out for good; the visitor's own refusals do not come here. */
static void leave_out(struct store *store, uint64_t id, const struct error *error)
{
    store_catalog_damage(store, id, error);
    if (!store->is_read_only) {
        (void)store_catalog_sync(store, NULL); /* else store_is_uncertain */
    }
}

int store_read(struct store *store, uint64_t id, uint32_t lane, uint32_t kind,
               store_extent_fn *visit, void *context, struct error *error)
{
    ASSERT(store->writer.phase == STORE_PHASE_IDLE && visit != NULL);
    struct error ours = {0};
    error = error != NULL ? error : &ours;
    if (store_catalog_find(store, id) == NULL) {
        return error_set(error, -ENOENT, "there is no checkpoint %llu", (unsigned long long)id);
    }
    struct reader reader = {.store = store,
                            .lane = lane,
                            .kind = kind,
                            .visit = visit,
                            .context = context,
                            .error = error,
                            .depth = store->disk->depth_max < STORE_READ_DEPTH
                                         ? store->disk->depth_max
                                         : STORE_READ_DEPTH};
    uint8_t *memory = aligned_alloc(READ_ALIGN_BYTES, READ_MEMORY_BYTES);
    if (memory == NULL) {
        return error_set(error, -ENOMEM, "no memory to read a checkpoint");
    }
    /* Fewer pages to pin at each read; without them it is only slower. */
    (void)madvise(memory, READ_MEMORY_BYTES, MADV_HUGEPAGE);
    for (uint32_t index = 0; index < STORE_READ_DEPTH; index++) {
        reader.places[index].buffer = memory + (size_t)index * EXTENT_BYTES;
        reader.idle[index] = index;
    }
    uint64_t ids[STORE_CHECKPOINTS_MAX];
    const uint32_t count = list_chain(store, id, ids);
    int status = 0;
    for (uint32_t index = 0; index < count && status == 0; index++) {
        status = read_checkpoint(&reader, store_catalog_find(store, ids[index]));
        if (reader.is_damaged) {
            leave_out(store, ids[index], error);
        }
    }
    free(memory);
    return status;
}

/* The checkpoint that scrubbing goes on with: the next one by id, after the last the first. */
static const struct store_kept *scrub_next(struct store *store)
{
    ASSERT(store->kept_count != 0);
    for (uint32_t index = 0; index < store->kept_count; index++) {
        if (store->kept[index].entry.about.id > store->scrubber.checkpoint) {
            return &store->kept[index];
        }
    }
    return &store->kept[0];
}

/* Loads a piece of a checkpoint's manifest. */
static int scrub_load(struct store *store, uint64_t id, const struct store_ref *ref,
                      uint32_t number, struct error *error)
{
    struct store_scrubber *scrubber = &store->scrubber;
    const struct store_piece_place place = {
        .store_id = store->superblock.store_id, .checkpoint = id, .number = number};
    scrubber->checkpoint = id;
    scrubber->index = 0;
    const struct store_ref copy = *ref; /* it may stand in the buffer */
    const int status = store_manifest_piece(store, &copy, &place, scrubber->piece, error);
    scrubber->loaded = status == 0 ? id : 0;
    return status;
}

static int scrub_extent(struct store *store, const struct store_extent *extent, struct error *error)
{
    const struct disk_request request = {.operation = DISK_READ,
                                         .bytes = extent->ref.bytes,
                                         .offset = store_layout_slot(extent->ref.slot),
                                         .buffer = store->scrubber.extent};
    int status = -EIO;
    for (uint32_t tries = 0; tries < STORE_READ_TRIES && status != 0; tries++) {
        status = store_io_all(store->disk, &request, 1, error);
        if (status == 0 &&
            !checksum_is_equal(checksum_of(request.buffer, request.bytes), extent->ref.sum)) {
            status = error_set(error, -EBADMSG,
                               "checkpoint %llu: the checksum of an extent of lane %u in slot %u "
                               "is wrong",
                               (unsigned long long)store->scrubber.checkpoint, extent->lane,
                               extent->ref.slot);
        }
    }
    return status;
}

bool store_scrub(struct store *store)
{
    ASSERT(store->writer.phase == STORE_PHASE_IDLE);
    struct store_scrubber *scrubber = &store->scrubber;
    if (store->kept_count == 0) {
        return true;
    }
    struct error error = {0};
    int status;
    const struct store_piece *piece = (const struct store_piece *)(void *)scrubber->piece;
    if (scrubber->loaded == 0 || store_catalog_find(store, scrubber->loaded) == NULL) {
        const struct store_kept *kept = scrub_next(store);
        status = scrub_load(store, kept->entry.about.id, &kept->entry.manifest,
                            kept->entry.piece_count - 1, &error);
    } else if (scrubber->index < piece->extent_count) {
        status = scrub_extent(store, &piece->extents[scrubber->index++], &error);
    } else if (piece->number != 0) {
        status = scrub_load(store, scrubber->loaded, &piece->previous, piece->number - 1, &error);
    } else {
        scrubber->loaded = 0;
        status = 0;
    }
    if (status != 0) {
        leave_out(store, scrubber->checkpoint, &error);
        scrubber->loaded = 0;
    }
    return status == 0;
}
