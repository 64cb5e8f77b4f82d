/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: which checkpoints are retained, whose slots are whose, and the root that says so.
 *
 * A root lists the newest keep_count checkpoints, every savepoint, and what those build on. The
 * catalog in memory is always that of the newest durable root, but for checkpoints that were
 * dropped as damaged or by hand: their slots are held until the next root is durable. */
#include <errno.h>

#include "state/store_internal.h"

const struct store_kept *store_catalog_find(const struct store *store, uint64_t id)
{
    ASSERT(store->kept_count <= STORE_CHECKPOINTS_MAX);
    for (uint32_t index = store->kept_count; index > 0; index--) {
        if (store->kept[index - 1].entry.about.id == id) {
            return &store->kept[index - 1];
        }
    }
    return NULL;
}

uint32_t store_catalog_chain(const struct store *store, uint64_t id)
{
    ASSERT(id != 0);
    uint32_t count = 0;
    while (id != 0) {
        const struct store_kept *kept = store_catalog_find(store, id);
        ASSERT(kept != NULL && count < STORE_CHECKPOINTS_MAX);
        id = kept->entry.about.base_id;
        count++;
    }
    return count;
}

/* Marks what id builds on; ids fall along a chain. */
static void mark_base(struct store *store, uint32_t below, uint64_t id)
{
    for (uint32_t index = below; index > 0; index--) {
        store->retain[index - 1] |= store->kept[index - 1].entry.about.id == id;
    }
}

uint32_t store_catalog_retain(struct store *store, const struct store_entry *pending)
{
    ASSERT(store->keep_count >= STORE_KEEP_MIN);
    memset(store->retain, 0, sizeof(store->retain));
    uint32_t newer = 0, marked = 0;
    if (pending != NULL) {
        newer = marked = 1;
        mark_base(store, store->kept_count, pending->about.base_id);
    }
    for (uint32_t index = store->kept_count; index > 0; index--) {
        const struct store_checkpoint *about = &store->kept[index - 1].entry.about;
        store->retain[index - 1] |= newer < store->keep_count || about->is_savepoint != 0;
        newer++;
        if (store->retain[index - 1]) {
            marked++;
            mark_base(store, index - 1, about->base_id);
        }
    }
    return marked;
}

void store_catalog_apply(struct store *store, struct store_kept *pending)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < store->kept_count; index++) {
        if (!store->retain[index]) {
            store_slots_splice(&store->slots, &store->free, &store->kept[index].slots);
            continue;
        }
        if (count != index) {
            store->kept[count] = store->kept[index];
        }
        count++;
    }
    if (pending != NULL) {
        ASSERT(count < STORE_CHECKPOINTS_MAX);
        ASSERT(count == 0 || store->kept[count - 1].entry.about.id < pending->entry.about.id);
        store->kept[count++] = *pending;
        pending->slots = (struct slot_list){.head = 0};
    }
    store->kept_count = count;
    store_slots_splice(&store->slots, &store->free, &store->held);
}

void store_catalog_drop(struct store *store, uint64_t id)
{
    ASSERT(store_catalog_find(store, id) != NULL);
    uint32_t count = 0;
    for (uint32_t index = 0; index < store->kept_count; index++) {
        struct store_kept *kept = &store->kept[index];
        const struct store_checkpoint about = kept->entry.about;
        bool is_dropped = about.id == id;
        if (about.id > id && about.base_id != 0) {
            /* kept[0..count) is whole already, so a base that is gone from there was dropped. */
            is_dropped = true;
            for (uint32_t base = 0; base < count; base++) {
                is_dropped = is_dropped && store->kept[base].entry.about.id != about.base_id;
            }
        }
        if (is_dropped) {
            store_slots_splice(&store->slots, &store->held, &kept->slots);
        } else {
            const struct store_kept copy = *kept;
            store->kept[count++] = copy;
        }
    }
    ASSERT(count < store->kept_count);
    store->kept_count = count;
}

void store_catalog_damage(struct store *store, uint64_t id, const struct error *reason)
{
    store->damaged_count++;
    store->damaged = *reason;
    ASSERT(store->damaged_count != 0);
    if (!store->is_read_only && store_catalog_find(store, id) != NULL) {
        store_catalog_drop(store, id);
    }
}

/* The next generation, whose place is neither that of the durable root nor bad. */
static uint64_t next_generation(struct store *store)
{
    const uint32_t usable = ((1U << STORE_PLACES) - 1U) & ~(1U << store->root_place);
    if ((usable & ~store->root_places_bad) == 0) {
        store->root_places_bad = 0; /* better a place that failed once than none */
    }
    do {
        store->generation++;
    } while (((usable & ~store->root_places_bad) >> (store->generation % STORE_PLACES) & 1U) == 0);
    ASSERT(store->generation % STORE_PLACES != store->root_place); /* invariant 2 */
    return store->generation;
}

uint32_t store_catalog_root(struct store *store, const struct store_entry *pending)
{
    struct store_root *root = store->root;
    *root = (struct store_root){.store_id = store->superblock.store_id,
                                .generation = next_generation(store)};
    for (uint32_t index = 0; index < store->kept_count; index++) {
        if (store->retain[index]) {
            root->entries[root->entry_count++] = store->kept[index].entry;
        }
    }
    if (pending != NULL) {
        ASSERT(root->entry_count < STORE_CHECKPOINTS_MAX);
        ASSERT(pending->about.id > store->id_max);
        root->entries[root->entry_count++] = *pending;
        store->id_max = pending->about.id;
    }
    root->id_max = store->id_max;
    return store_root_seal(root);
}

void store_catalog_root_requests(const struct store *store, uint32_t bytes,
                                 struct disk_request *out)
{
    ASSERT(bytes != 0 && bytes <= STORE_ROOT_BYTES_MAX);
    const uint32_t place = (uint32_t)(store->root->generation % STORE_PLACES);
    ASSERT(place != store->root_place);
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        out[zone] = (struct disk_request){.operation = DISK_WRITE,
                                          .bytes = bytes,
                                          .offset = store_layout_root(&store->layout, zone, place),
                                          .buffer = (uint8_t *)store->root};
    }
}

void store_catalog_root_done(struct store *store, bool is_durable)
{
    const uint32_t place = (uint32_t)(store->root->generation % STORE_PLACES);
    ASSERT(place != store->root_place);
    if (is_durable) {
        store->root_place = place;
        store->is_uncertain = false;
    } else {
        store->root_places_bad |= 1U << place;
    }
}

int store_catalog_sync(struct store *store, struct error *error)
{
    ASSERT(!store->is_read_only);
    (void)store_catalog_retain(store, NULL);
    struct disk_request requests[STORE_ZONES];
    store_catalog_root_requests(store, store_catalog_root(store, NULL), requests);
    int status = store_io_all(store->disk, requests, STORE_ZONES, error);
    status = status != 0 ? status : store_io_flush(store->disk, error);
    store_catalog_root_done(store, status == 0);
    if (status == 0) {
        store_catalog_apply(store, NULL);
    } else {
        store->is_uncertain = true;
    }
    return status;
}
