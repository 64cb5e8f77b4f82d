/* SPDX-License-Identifier: Apache-2.0 */
/* Root records: which of up to sixteen copies counts. */
#include "state/store_layout.h"

static bool entry_check(const struct store_entry *entry, uint64_t id_below, uint64_t id_max)
{
    const struct store_checkpoint *about = &entry->about;
    return about->id > id_below && about->id <= id_max && about->base_id < about->id &&
           entry->piece_count != 0 && memchr(about->label, '\0', sizeof(about->label)) != NULL;
}

const struct store_root *store_root_check(const uint8_t *copy, uint64_t store_id, uint32_t place)
{
    ASSERT((uintptr_t)copy % _Alignof(struct store_root) == 0);
    ASSERT(place < STORE_PLACES);
    const struct store_root *root = (const struct store_root *)(const void *)copy;
    if (root->magic != STORE_MAGIC_ROOT || root->version != STORE_VERSION ||
        root->store_id != store_id || root->generation == 0 ||
        root->generation >= STORE_NUMBER_MAX || root->id_max >= STORE_NUMBER_MAX ||
        root->generation % STORE_PLACES != place || root->entry_count > STORE_CHECKPOINTS_MAX ||
        root->bytes != sizeof(*root) + root->entry_count * sizeof(struct store_entry)) {
        return NULL;
    }
    if (!checksum_is_equal(
            root->sum, checksum_of(copy + sizeof(root->sum), root->bytes - sizeof(root->sum)))) {
        return NULL;
    }
    uint64_t id = 0;
    for (uint32_t index = 0; index < root->entry_count; index++) {
        if (!entry_check(&root->entries[index], id, root->id_max)) {
            return NULL;
        }
        id = root->entries[index].about.id;
    }
    return root;
}

/* The whole copies, NULL where there is none. */
struct root_copies {
    const struct store_root *at[STORE_ZONES][STORE_PLACES];
};

/* How many zones have the same record in the same place. */
static uint32_t count_agreeing(const struct root_copies *copies, const struct store_root *root,
                               uint32_t place)
{
    ASSERT(root != NULL && place < STORE_PLACES);
    uint32_t count = 0;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const struct store_root *other = copies->at[zone][place];
        count += other != NULL && other->generation == root->generation &&
                 checksum_is_equal(other->sum, root->sum);
    }
    return count;
}

struct store_root_choice store_root_choose(const uint8_t *const *zones, uint64_t store_id)
{
    ASSERT(zones != NULL && store_id != 0);
    struct root_copies copies = {.at = {{NULL}}};
    struct store_root_choice choice = {.root = NULL};
    for (uint32_t index = 0; index < STORE_ZONES * STORE_PLACES; index++) {
        const uint32_t zone = index / STORE_PLACES, place = index % STORE_PLACES;
        if (zones[zone] == NULL) {
            continue;
        }
        const struct store_root *root = store_root_check(
            zones[zone] + STORE_ROOTS_OFFSET + place * STORE_ROOT_BYTES_MAX, store_id, place);
        copies.at[zone][place] = root;
        if (root != NULL && root->generation > choice.generation_max) {
            choice.generation_max = root->generation;
        }
    }
    for (uint32_t index = 0; index < STORE_ZONES * STORE_PLACES; index++) {
        const struct store_root *root = copies.at[index / STORE_PLACES][index % STORE_PLACES];
        const bool is_newer =
            root != NULL && (choice.root == NULL || root->generation > choice.root->generation);
        if (is_newer && count_agreeing(&copies, root, index % STORE_PLACES) >= STORE_AGREE) {
            choice.root = root; /* invariant 2 */
        }
    }
    return choice;
}

uint32_t store_root_seal(struct store_root *root)
{
    ASSERT(root->entry_count <= STORE_CHECKPOINTS_MAX);
    ASSERT(root->generation != 0 && root->store_id != 0);
    root->magic = STORE_MAGIC_ROOT;
    root->version = STORE_VERSION;
    root->bytes = (uint32_t)(sizeof(*root) + root->entry_count * sizeof(struct store_entry));
    const uint32_t rounded =
        (root->bytes + STORE_BLOCK_BYTES - 1U) / STORE_BLOCK_BYTES * STORE_BLOCK_BYTES;
    ASSERT(rounded <= STORE_ROOT_BYTES_MAX);
    uint8_t *bytes = (uint8_t *)root;
    memset(bytes + root->bytes, 0, rounded - root->bytes);
    root->sum = checksum_of(bytes + sizeof(root->sum), root->bytes - sizeof(root->sum));
    return rounded;
}
