/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: chains of pieces from the last to the first, each checked by the one that names it. */
#include <errno.h>

#include "state/store_internal.h"

bool store_piece_check(const struct store_layout *layout, const uint8_t *bytes_of_piece,
                       uint32_t bytes, const struct store_piece_place *place)
{
    ASSERT(bytes >= sizeof(struct store_piece) && bytes <= EXTENT_BYTES);
    const struct store_piece *piece = (const struct store_piece *)(const void *)bytes_of_piece;
    if (piece->magic != STORE_MAGIC_PIECE || piece->version != STORE_VERSION ||
        piece->store_id != place->store_id || piece->checkpoint != place->checkpoint ||
        piece->number != place->number ||
        piece->extent_count > (bytes - sizeof(*piece)) / sizeof(struct store_extent)) {
        return false;
    }
    if (piece->number != 0 && !store_layout_ref_check(layout, &piece->previous)) {
        return false;
    }
    for (uint32_t index = 0; index < piece->extent_count; index++) {
        const struct store_extent *extent = &piece->extents[index];
        if (!store_layout_ref_check(layout, &extent->ref) || extent->kind < EXTENT_PAGES ||
            extent->kind > EXTENT_STATES) {
            return false;
        }
    }
    return true;
}

uint32_t store_piece_seal(struct store_piece *piece)
{
    ASSERT(piece->extent_count <= STORE_PIECE_EXTENTS_MAX);
    piece->magic = STORE_MAGIC_PIECE;
    piece->version = STORE_VERSION;
    const uint32_t used =
        (uint32_t)(sizeof(*piece) + piece->extent_count * sizeof(struct store_extent));
    const uint32_t rounded =
        (used + STORE_BLOCK_BYTES - 1U) / STORE_BLOCK_BYTES * STORE_BLOCK_BYTES;
    ASSERT(rounded <= EXTENT_BYTES);
    memset((uint8_t *)piece + used, 0, rounded - used);
    return rounded;
}

int store_manifest_piece(struct store *store, const struct store_ref *ref,
                         const struct store_piece_place *place, uint8_t *buffer,
                         struct error *error)
{
    const unsigned long long id = place->checkpoint;
    if (!store_layout_ref_check(&store->layout, ref)) {
        return error_set(error, -EBADMSG, "checkpoint %llu: its manifest is said to be nowhere",
                         id);
    }
    const struct disk_request request = {.operation = DISK_READ,
                                         .bytes = ref->bytes,
                                         .offset = store_layout_slot(ref->slot),
                                         .buffer = buffer};
    int status = -EIO;
    for (uint32_t tries = 0; tries < STORE_READ_TRIES && status != 0; tries++) {
        status = store_io_all(store->disk, &request, 1, error);
        if (status == 0 && !checksum_is_equal(checksum_of(buffer, ref->bytes), ref->sum)) {
            status = error_set(error, -EBADMSG,
                               "checkpoint %llu: the checksum of its manifest (piece %u, slot %u) "
                               "is wrong",
                               id, place->number, ref->slot);
        }
    }
    if (status == 0 && !store_piece_check(&store->layout, buffer, ref->bytes, place)) {
        status =
            error_set(error, -EBADMSG, "checkpoint %llu: slot %u is not piece %u of its manifest",
                      id, ref->slot, place->number);
    }
    return status;
}

int store_manifest_walk(struct store *store, const struct store_entry *entry, uint8_t *buffer,
                        store_piece_fn *visit, void *context, struct error *error)
{
    ASSERT(entry->piece_count != 0);
    struct store_ref ref = entry->manifest;
    struct store_piece_place place = {.store_id = store->superblock.store_id,
                                      .checkpoint = entry->about.id};
    for (uint32_t left = entry->piece_count; left > 0; left--) {
        place.number = left - 1;
        int status = store_manifest_piece(store, &ref, &place, buffer, error);
        const struct store_piece *piece = (const struct store_piece *)(const void *)buffer;
        status = status != 0 ? status : visit(context, ref.slot, piece);
        if (status != 0) {
            return status;
        }
        ref = piece->previous;
    }
    return 0;
}

struct claim {
    struct store *store;
    struct store_kept *kept;
    struct error *error;
    uint64_t extent_count;
};

static int claim_slot(struct claim *claim, uint32_t slot)
{
    struct store *store = claim->store;
    ASSERT(store_layout_is_data(&store->layout, slot));
    if (!store_slots_is_loose(&store->slots, slot)) { /* invariant 1 */
        return error_set(claim->error, -EBADMSG,
                         "checkpoint %llu: slot %u belongs to another checkpoint as well",
                         (unsigned long long)claim->kept->entry.about.id, slot);
    }
    store_slots_push(&store->slots, &claim->kept->slots, slot);
    return 0;
}

static int claim_piece(void *context, uint32_t slot, const struct store_piece *piece)
{
    struct claim *claim = context;
    int status = claim_slot(claim, slot);
    for (uint32_t index = 0; index < piece->extent_count && status == 0; index++) {
        status = claim_slot(claim, piece->extents[index].ref.slot);
    }
    claim->extent_count += piece->extent_count;
    return status;
}

int store_manifest_claim(struct store *store, struct store_kept *kept, uint8_t *buffer,
                         struct error *error)
{
    ASSERT(kept->slots.count == 0);
    struct claim claim = {.store = store, .kept = kept, .error = error};
    int status = store_manifest_walk(store, &kept->entry, buffer, claim_piece, &claim, error);
    if (status == 0 && claim.extent_count != kept->entry.about.extent_count) {
        status =
            error_set(error, -EBADMSG, "checkpoint %llu: its manifest lists %llu extents of %u",
                      (unsigned long long)kept->entry.about.id,
                      (unsigned long long)claim.extent_count, kept->entry.about.extent_count);
    }
    while (status != 0 && store_slots_pop(&store->slots, &kept->slots) != 0) {
    }
    return status;
}
