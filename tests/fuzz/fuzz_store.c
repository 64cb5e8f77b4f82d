/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as parts of a checkpoint disk: a root, a manifest piece, an extent, a superblock, or
 * changes all over a small store. Checksums are made right again, so that the structure behind them
 * is reached too. Whatever the bytes are: no crash, no slot used twice, and a store that opens can
 * be read, scrubbed and written. */
#include <stdlib.h>

#include "state/store_internal.h"
#include "tests/sim/disk_sim.h"

#define SLOTS    24U
#define STORE_ID 7U /* of the parsers' inputs too */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct patch {
    uint16_t where; /* 8-byte words from the start of the target */
    uint8_t target;
    uint8_t value[8];
};

static uint8_t *block_of(const uint8_t *data, size_t bytes, size_t capacity)
{
    uint8_t *block = aligned_alloc(4096, capacity);
    ASSERT(block != NULL);
    memset(block, 0, capacity);
    if (bytes != 0) {
        memcpy(block, data, bytes < capacity ? bytes : capacity);
    }
    return block;
}

static void try_parsers(const uint8_t *data, size_t bytes)
{
    struct store_layout layout;
    ASSERT(store_layout_init(&layout, (uint64_t)SLOTS * EXTENT_BYTES));
    uint8_t *block = block_of(data, bytes, EXTENT_BYTES);
    struct store_superblock superblock;
    (void)store_superblock_check(block, 0, &superblock);
    (void)store_root_check(block, STORE_ID, 1);
    (void)store_foreign_name(block);
    const struct store_piece_place place = {.store_id = STORE_ID, .checkpoint = 1};
    (void)store_piece_check(&layout, block, 4096, &place);
    (void)store_piece_check(&layout, block, EXTENT_BYTES, &place);
    if (extent_check(block, EXTENT_BYTES)) {
        const uint32_t length = extent_bytes(block);
        ASSERT(length <= EXTENT_BYTES && extent_check(block, length));
    }
    free(block);
}

static void write_one(struct store *store, uint64_t base_id, uint8_t *extent)
{
    const struct store_checkpoint about = {.id = store_next_id(store), .base_id = base_id};
    struct extent_header head = {.magic = EXTENT_MAGIC,
                                 .version = EXTENT_VERSION,
                                 .kind = EXTENT_FACTS,
                                 .checkpoint = about.id,
                                 .facts_bytes = 10};
    struct error error;
    if (store_begin(store, &about, &error) != 0) {
        return;
    }
    memcpy(extent, &head, sizeof(head));
    bool is_going = true;
    if (store_append(store, extent, 0) == 0) {
        store_commit(store, 0);
    } else {
        store_abort(store);
    }
    while (is_going) {
        uint64_t tag;
        uint32_t count;
        const enum store_state state = store_poll(store, &tag, 1, &count, NANOSECONDS_PER_S);
        is_going = state == STORE_WRITING || state == STORE_COMMITTING;
    }
}

static int take(void *context, const struct store_checkpoint *about, const uint8_t *extent)
{
    uint64_t *total = context;
    *total += about->id + extent[0];
    return 0;
}

/* The targets of patches: all superblocks, all roots, the newest manifest, the newest extent. */
static void patch_store(struct disk_sim *sim, const struct store *store, const struct patch *patch)
{
    static uint8_t image[EXTENT_BYTES] __attribute__((aligned(4096)));
    const struct store_ref *manifest = &store->kept[1].entry.manifest;
    const uint32_t place = store->root_place;
    const uint64_t at = (uint64_t)patch->where * 8;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        uint64_t offset = store_layout_slot(store->layout.zone_slots[zone]);
        uint32_t length = STORE_BLOCK_BYTES, covered = STORE_BLOCK_BYTES;
        if (patch->target % 4 == 1) {
            offset = store_layout_root(&store->layout, zone, place);
            covered = (uint32_t)(sizeof(struct store_root) + 2 * sizeof(struct store_entry));
        } else if (patch->target % 4 >= 2) {
            offset = store_layout_slot(manifest->slot);
        }
        disk_sim_peek(sim, offset, image, length);
        memcpy(image + at % length, patch->value, sizeof(patch->value));
        if (patch->target % 4 < 2) {
            const struct checksum sum = checksum_of(image + 16, covered - 16);
            memcpy(image, &sum, sizeof(sum));
        }
        disk_sim_poke(sim, offset, image, length);
        if (patch->target % 4 >= 2) { /* and the roots that name it */
            const struct checksum sum = checksum_of(image, length);
            disk_sim_peek(sim, store_layout_root(&store->layout, zone, place), image, length);
            struct store_root *root = (struct store_root *)(void *)image;
            if (root->entry_count == 2) {
                root->entries[1].manifest.sum = sum;
                (void)store_root_seal(root);
            }
            disk_sim_poke(sim, store_layout_root(&store->layout, zone, place), image, length);
        }
    }
}

static void use_store(struct disk_sim *sim, uint8_t *extent)
{
    struct store *store;
    struct error error = {0};
    enum store_fault fault;
    const struct store_config config = {.disk = disk_sim_disk(sim), .keep_count = 2};
    if (store_open(&config, &store, &fault, &error) != 0) {
        ASSERT(fault != STORE_FAULT_NONE && error.text[0] != '\0');
        return;
    }
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    const uint32_t count = store_list(store, list, STORE_CHECKPOINTS_MAX);
    uint64_t total = 0;
    for (uint32_t call = 0; call < 8; call++) {
        (void)store_scrub(store);
    }
    for (uint32_t index = 0; index < count; index++) {
        (void)store_read(store, list[index].id, UINT32_MAX, 0, take, &total, &error);
    }
    write_one(store, 0, extent);
    store_close(store);
}

/* What inputs are tried on: a store with two checkpoints, made once. */
struct sample {
    struct disk_sim *sim;
    struct store *store; /* closed never: it says where things are */
    uint8_t *extent;
};

static const struct sample *sample_get(void)
{
    static struct sample made;
    if (made.sim != NULL) {
        return &made;
    }
    const struct disk_sim_config config = {.bytes = (uint64_t)SLOTS * EXTENT_BYTES,
                                           .identity = 1,
                                           .depth_max = 8,
                                           .sector_bytes = 512};
    made.sim = disk_sim_create(&config);
    const struct store_format format = {.store_id = STORE_ID};
    const struct store_config opening = {.disk = disk_sim_disk(made.sim), .keep_count = 2};
    made.extent = block_of(NULL, 0, 2 * EXTENT_HEAD_BYTES);
    ASSERT(store_format(disk_sim_disk(made.sim), &format, NULL, NULL, NULL) == 0);
    ASSERT(store_open(&opening, &made.store, NULL, NULL) == 0);
    write_one(made.store, 0, made.extent);
    write_one(made.store, 1, made.extent);
    ASSERT(made.store->kept_count == 2);
    return &made;
}

/* The first byte chooses: the parsers, or a patched store. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        try_parsers(data + 1, bytes - 1);
        return 0;
    }
    const struct sample *sample = sample_get();
    struct disk_sim *sim = disk_sim_clone(sample->sim);
    struct patch patch;
    for (size_t at = 1; at + sizeof(patch) <= bytes && at < 4 * sizeof(patch);
         at += sizeof(patch)) {
        memcpy(&patch, data + at, sizeof(patch));
        patch_store(sim, sample->store, &patch);
    }
    use_store(sim, sample->extent);
    disk_sim_destroy(sim);
    return 0;
}
