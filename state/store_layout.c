/* SPDX-License-Identifier: Apache-2.0 */
/* Places on the disk, the superblock, and names for what others may have written there. */
#include "state/store_layout.h"

bool store_layout_init(struct store_layout *layout, uint64_t bytes)
{
    ASSERT(layout != NULL);
    const uint64_t slot_count = bytes / EXTENT_BYTES;
    if (slot_count < STORE_SLOTS_MIN || slot_count > STORE_SLOTS_MAX) {
        return false;
    }
    layout->bytes = slot_count * EXTENT_BYTES;
    layout->slot_count = (uint32_t)slot_count;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        layout->zone_slots[zone] = (uint32_t)((slot_count - 1) * zone / (STORE_ZONES - 1));
    }
    ASSERT(layout->zone_slots[STORE_ZONES - 1] == layout->slot_count - 1);
    return true;
}

bool store_layout_is_data(const struct store_layout *layout, uint32_t slot)
{
    ASSERT(layout->zone_slots[0] == STORE_SLOT_NONE);
    bool is_zone = false;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        is_zone |= layout->zone_slots[zone] == slot;
    }
    return slot < layout->slot_count && !is_zone;
}

uint64_t store_layout_slot(uint32_t slot)
{
    return (uint64_t)slot * EXTENT_BYTES;
}

uint64_t store_layout_root(const struct store_layout *layout, uint32_t zone, uint32_t place)
{
    ASSERT(zone < STORE_ZONES && place < STORE_PLACES);
    return store_layout_slot(layout->zone_slots[zone]) + STORE_ROOTS_OFFSET +
           (uint64_t)place * STORE_ROOT_BYTES_MAX;
}

bool store_layout_ref_check(const struct store_layout *layout, const struct store_ref *ref)
{
    ASSERT(ref != NULL);
    return store_layout_is_data(layout, ref->slot) && ref->bytes != 0 &&
           ref->bytes <= EXTENT_BYTES && ref->bytes % STORE_BLOCK_BYTES == 0;
}

static struct checksum block_sum(const uint8_t *block)
{
    return checksum_of(block + sizeof(struct checksum),
                       STORE_BLOCK_BYTES - sizeof(struct checksum));
}

void store_superblock_fill(uint8_t *block, const struct store_superblock *fields, uint32_t zone)
{
    ASSERT(zone < STORE_ZONES);
    ASSERT(fields->store_id != 0 && fields->bytes % EXTENT_BYTES == 0);
    struct store_superblock head = *fields;
    head.magic = STORE_MAGIC_SUPERBLOCK;
    head.version = STORE_VERSION;
    head.zone = zone;
    head.slot_bytes = EXTENT_BYTES;
    head.root_bytes_max = STORE_ROOT_BYTES_MAX;
    memset(block, 0, STORE_BLOCK_BYTES);
    memcpy(block, &head, sizeof(head));
    head.sum = block_sum(block);
    memcpy(block, &head, sizeof(head));
}

bool store_superblock_check(const uint8_t *block, uint32_t zone, struct store_superblock *out)
{
    ASSERT(zone < STORE_ZONES && out != NULL);
    memcpy(out, block, sizeof(*out));
    return out->magic == STORE_MAGIC_SUPERBLOCK && out->version == STORE_VERSION &&
           out->zone == zone && out->slot_bytes == EXTENT_BYTES &&
           out->root_bytes_max == STORE_ROOT_BYTES_MAX && out->store_id != 0 &&
           (out->stage == STORE_STAGE_FORMATTED || out->stage == STORE_STAGE_FORMATTING) &&
           out->bytes % EXTENT_BYTES == 0 && checksum_is_equal(out->sum, block_sum(block));
}

/* Signatures at fixed places, as libblkid knows them. */
struct signature {
    const char *name;
    const char *bytes;
    uint32_t length;
    uint32_t offset;
};

const char *store_foreign_name(const uint8_t *start)
{
    ASSERT(start != NULL);
    static const struct signature known[] = {
        {"an ext2, ext3 or ext4 file system", "\x53\xef", 2, 1080},
        {"an XFS file system", "XFSB", 4, 0},
        {"a Btrfs file system", "_BHRfS_M", 8, 65600},
        {"an F2FS file system", "\x10\x20\xf5\xf2", 4, 1024},
        {"a LUKS volume", "LUKS\xba\xbe", 6, 0},
        {"an LVM volume", "LABELONE", 8, 512},
        {"swap space", "SWAPSPACE2", 10, 4086},
        {"a Linux RAID member", "\xfc\x4e\x2b\xa9", 4, 4096},
        {"an NTFS file system", "NTFS    ", 8, 3},
        {"a partition table (GPT)", "EFI PART", 8, 512},
        {"a partition table (MBR) or a FAT file system", "\x55\xaa", 2, 510},
        {"a gzip file", "\x1f\x8b", 2, 0},
        {"an ELF program",
         "\x7f"
         "ELF",
         4, 0},
    };
    for (size_t index = 0; index < COUNT_OF(known); index++) {
        const struct signature *one = &known[index];
        ASSERT(one->offset + one->length <= EXTENT_BYTES);
        if (memcmp(start + one->offset, one->bytes, one->length) == 0) {
            return one->name;
        }
    }
    return NULL;
}
