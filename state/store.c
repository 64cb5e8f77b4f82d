/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store: superblocks, the root that counts, manifests, free slots; then making sure that
 * what was found stays and what was passed over does not come back (invariant 6). */
#include "state/store.h"

#include <errno.h>
#include <stdlib.h>

#include "state/store_internal.h"

static int refuse(enum store_fault *fault, enum store_fault what, int status)
{
    ASSERT(status < 0);
    *fault = what;
    return status;
}

/* No two superblocks agree: why. */
static int explain_superblocks(const struct store_probe *probe, const struct disk *disk,
                               enum store_fault *fault, struct error *error)
{
    ASSERT(probe->copies == 0);
    if (probe->is_unreadable) {
        return refuse(fault, STORE_FAULT_IO, error_set(error, -EIO, "the disk cannot be read"));
    }
    if (probe->other_bytes > disk->bytes) {
        return refuse(fault, STORE_FAULT_DAMAGED,
                      error_set(error, -EBADMSG,
                                "the disk was formatted with %llu bytes and has %llu now: it was "
                                "cut short",
                                (unsigned long long)probe->other_bytes,
                                (unsigned long long)disk->bytes));
    }
    if (probe->formatting != 0) {
        return refuse(fault, STORE_FAULT_NOT_FORMATTED,
                      error_set(error, -ENODATA, "formatting of the disk was interrupted"));
    }
    if (probe->whole != 0) {
        return refuse(fault, STORE_FAULT_DAMAGED,
                      error_set(error, -EBADMSG,
                                "only %u of %u superblocks is whole, and two must agree",
                                probe->whole, STORE_ZONES));
    }
    if (probe->other_version != 0) {
        return refuse(fault, STORE_FAULT_VERSION,
                      error_set(error, -EPROTO,
                                "the disk has format version %u, this program reads version %u",
                                probe->other_version, STORE_VERSION));
    }
    if (probe->is_zero) {
        return refuse(fault, STORE_FAULT_NOT_FORMATTED,
                      error_set(error, -ENODATA, "the disk is not formatted"));
    }
    const char *name = probe->zones[0] != NULL ? store_foreign_name(probe->zones[0]) : NULL;
    return refuse(fault, STORE_FAULT_FOREIGN,
                  error_set(error, -EEXIST, "the disk holds %s, no checkpoints",
                            name != NULL ? name : "data of something else"));
}

/* Reads the zones, those of a smaller store on a disk that has grown included. */
static int read_zones(struct disk *disk, struct store_layout *layout, struct store_probe *probe,
                      enum store_fault *fault, struct error *error)
{
    if (!store_layout_init(layout, disk->bytes)) {
        return refuse(fault, STORE_FAULT_NOT_FORMATTED,
                      error_set(error, -ENODATA, "a disk of %llu bytes cannot hold checkpoints",
                                (unsigned long long)disk->bytes));
    }
    int status = store_probe_read(disk, layout, probe, error);
    if (status == 0 && probe->copies == 0 && probe->other_bytes != 0 &&
        probe->other_bytes < layout->bytes && store_layout_init(layout, probe->other_bytes)) {
        free(probe->memory);
        status = store_probe_read(disk, layout, probe, error);
    }
    if (status != 0) {
        return refuse(fault, STORE_FAULT_IO, status);
    }
    if (probe->copies == 0) {
        status = explain_superblocks(probe, disk, fault, error);
        free(probe->memory);
    }
    return status;
}

static int allocate(struct store **out)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return -ENOMEM;
    }
    *out = store;
    store->root = (struct store_root *)(void *)store_io_buffer(STORE_ROOT_BYTES_MAX);
    store->scrubber.piece = store_io_buffer(EXTENT_BYTES);
    store->scrubber.extent = store_io_buffer(EXTENT_BYTES);
    bool is_whole =
        store->root != NULL && store->scrubber.piece != NULL && store->scrubber.extent != NULL;
    for (uint32_t index = 0; index < STORE_PIECES; index++) {
        store->writer.pieces[index] = store_io_buffer(EXTENT_BYTES);
        is_whole = is_whole && store->writer.pieces[index] != NULL;
    }
    return is_whole ? 0 : -ENOMEM;
}

/* Reads the manifests of the root's checkpoints; leaves out what is damaged and what builds on it.
 */
static void load_catalog(struct store *store, const struct store_root *root)
{
    ASSERT(root->entry_count <= STORE_CHECKPOINTS_MAX);
    for (uint32_t index = 0; index < root->entry_count; index++) {
        struct store_kept *kept = &store->kept[store->kept_count];
        *kept = (struct store_kept){.entry = root->entries[index]};
        const struct store_checkpoint *about = &kept->entry.about;
        struct error reason = {0};
        int status = 0;
        if (about->base_id != 0 && store_catalog_find(store, about->base_id) == NULL) {
            status = error_set(&reason, -EBADMSG,
                               "checkpoint %llu builds on %llu, which is damaged or missing",
                               (unsigned long long)about->id, (unsigned long long)about->base_id);
        }
        status = status != 0 ? status
                             : store_manifest_claim(store, kept, store->scrubber.piece, &reason);
        if (status == 0) {
            store->kept_count++;
        } else {
            store->damaged_count++;
            store->damaged = reason;
        }
    }
    for (uint32_t slot = 1; slot < store->layout.slot_count; slot++) {
        if (store_layout_is_data(&store->layout, slot) &&
            store_slots_is_loose(&store->slots, slot)) {
            store_slots_push(&store->slots, &store->free, slot);
        }
    }
}

/* Writes superblocks again where copies were lost, or where the store has moved to this disk. */
static void mend_superblocks(struct store *store, const struct store_probe *probe)
{
    if (probe->copies == STORE_ZONES && store->superblock.identity == store->disk->identity) {
        return;
    }
    store->superblock.identity = store->disk->identity;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        /* One at a time: two of the others agree at any moment. */
        store_superblock_fill(store->scrubber.extent, &store->superblock, zone);
        const struct disk_request request = {
            .operation = DISK_WRITE,
            .bytes = STORE_BLOCK_BYTES,
            .offset = store_layout_slot(store->layout.zone_slots[zone]),
            .buffer = store->scrubber.extent,
        };
        if (store_io_all(store->disk, &request, 1, NULL) != 0 ||
            store_io_flush(store->disk, NULL) != 0) {
            return; /* the next opening tries again */
        }
    }
}

static int check_place(const struct store_config *config, const struct store_probe *probe,
                       enum store_fault *fault, struct error *error)
{
    ASSERT(probe->copies >= STORE_AGREE);
    if (probe->superblock.identity != config->disk->identity && !config->is_moved) {
        return refuse(fault, STORE_FAULT_DEVICE,
                      error_set(error, -EXDEV,
                                "the checkpoints were copied here from another device or file"));
    }
    if (config->disk->depth_max < STORE_ZONES) {
        return refuse(fault, STORE_FAULT_IO,
                      error_set(error, -EINVAL,
                                "the disk takes %u requests at once, at least %u "
                                "are needed",
                                config->disk->depth_max, STORE_ZONES));
    }
    return 0;
}

/* Makes sure of what was found. The root that counts is written again where it stands, with the
 * same bytes, so that a half-done write changes nothing: it may have been read from a cache that a
 * failed flush had given up, and no other place may be written before one root is surely durable.
 * Then a newer one says the same without what is damaged; it leaps, to be above any root that could
 * not be read just now (invariant 6). */
static int settle(struct store *store, const struct store_root_choice *choice, struct error *error)
{
    const struct store_root *root = choice->root;
    ASSERT(root->bytes <= STORE_ROOT_BYTES_MAX);
    memcpy(store->root, root, root->bytes);
    const uint32_t bytes = store_root_seal(store->root);
    ASSERT(checksum_is_equal(store->root->sum, root->sum));
    struct disk_request requests[STORE_ZONES];
    store_catalog_root_requests(store, bytes, requests);
    struct error reason = {0};
    int status = store_io_all(store->disk, requests, STORE_ZONES, &reason);
    status = status != 0 ? status : store_io_flush(store->disk, &reason);
    if (status == 0) {
        store->root_place = (uint32_t)(root->generation % STORE_PLACES);
        status = store_catalog_sync(store, &reason);
    }
    if (status != 0) {
        (void)error_set(error, status, "%.200s%s%.200s", reason.text,
                        store->damaged_count != 0 ? "; before that: " : "", store->damaged.text);
    }
    return status;
}

/* Fills a store in from what was read. */
static int load(struct store *store, const struct store_config *config,
                const struct store_probe *probe, enum store_fault *fault, struct error *error)
{
    store->disk = config->disk;
    store->keep_count = config->keep_count;
    store->is_read_only = config->is_read_only;
    store->piece_extents_max = STORE_PIECE_EXTENTS_MAX;
    store->superblock = probe->superblock;
    const struct store_root_choice choice =
        store_root_choose(probe->zones, store->superblock.store_id);
    if (choice.root == NULL) {
        return refuse(fault, STORE_FAULT_DAMAGED,
                      error_set(error, -EBADMSG, "no root record is whole in two copies"));
    }
    if (store_slots_init(&store->slots, store->layout.slot_count) != 0) {
        return refuse(fault, STORE_FAULT_IO, error_set(error, -ENOMEM, "no memory for slots"));
    }
    store->generation = choice.generation_max + STORE_GENERATION_LEAP;
    store->root_place = STORE_PLACES; /* none is known to be durable */
    store->id_max = choice.root->id_max;
    load_catalog(store, choice.root);
    if (store->is_read_only) {
        return 0;
    }
    const int status = settle(store, &choice, error);
    if (status == 0) {
        mend_superblocks(store, probe);
    }
    return status == 0 ? 0 : refuse(fault, STORE_FAULT_IO, status);
}

int store_open(const struct store_config *config, struct store **out, enum store_fault *fault,
               struct error *error)
{
    ASSERT(config->disk != NULL && out != NULL);
    ASSERT(config->keep_count >= STORE_KEEP_MIN && config->keep_count <= STORE_KEEP_MAX);
    enum store_fault ignored = STORE_FAULT_NONE;
    fault = fault != NULL ? fault : &ignored;
    *fault = STORE_FAULT_NONE;
    *out = NULL;
    struct store_layout layout;
    struct store_probe probe;
    int status = read_zones(config->disk, &layout, &probe, fault, error);
    if (status != 0) {
        return status;
    }
    struct store *store = NULL;
    status = check_place(config, &probe, fault, error);
    if (status == 0 && allocate(&store) != 0) {
        status = refuse(fault, STORE_FAULT_IO, error_set(error, -ENOMEM, "no memory for a store"));
    }
    if (status == 0) {
        store->layout = layout;
        status = load(store, config, &probe, fault, error);
    }
    free(probe.memory);
    if (status != 0) {
        store_close(store);
        return status;
    }
    *out = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    ASSERT(store->writer.in_flight == 0);
    store_slots_fini(&store->slots);
    for (uint32_t index = 0; index < STORE_PIECES; index++) {
        free(store->writer.pieces[index]);
    }
    free(store->scrubber.piece);
    free(store->scrubber.extent);
    free(store->root);
    free(store);
}

uint32_t store_list(const struct store *store, struct store_checkpoint *into, uint32_t max)
{
    ASSERT(into != NULL || max == 0);
    for (uint32_t index = 0; index < store->kept_count && index < max; index++) {
        into[index] = store->kept[store->kept_count - 1 - index].entry.about;
    }
    return store->kept_count;
}

bool store_find(const struct store *store, uint64_t id, struct store_checkpoint *out)
{
    ASSERT(out != NULL);
    const struct store_kept *kept = store_catalog_find(store, id);
    if (kept != NULL) {
        *out = kept->entry.about;
    }
    return kept != NULL;
}

uint64_t store_next_id(const struct store *store)
{
    ASSERT(store != NULL);
    return store->id_max + 1;
}

uint32_t store_damaged(const struct store *store, struct error *reason)
{
    if (reason != NULL) {
        *reason = store->damaged;
    }
    return store->damaged_count;
}

uint64_t store_free_slots(const struct store *store)
{
    ASSERT(store->free.count <= store->layout.slot_count);
    return store->free.count;
}

bool store_is_uncertain(const struct store *store)
{
    ASSERT(store != NULL);
    return store->is_uncertain;
}

int store_prune(struct store *store, uint64_t id, struct error *error)
{
    ASSERT(store->writer.phase == STORE_PHASE_IDLE);
    if (store->is_read_only) {
        return error_set(error, -EROFS, "the store was opened for reading only");
    }
    if (store_catalog_find(store, id) == NULL) {
        return error_set(error, -ENOENT, "there is no checkpoint %llu", (unsigned long long)id);
    }
    store_catalog_drop(store, id);
    return store_catalog_sync(store, error);
}
