/* SPDX-License-Identifier: Apache-2.0 */
/* One page of a table: a small hash table of fixed slots. Slots stand in groups; a group's tags are
 * one byte a slot, compared 16 at once, and its last byte counts the entries that wanted a slot
 * here and had to go on, so a search stops at the first group that nobody passed.
 *
 *     page | head | groups: 15 tags + passed | key slots | values |
 *     tag      | 7 bits of the hash, never 0 | whether the key fills its slot |
 *     key slot | a key that fills it
 *              | a shorter key … | length |
 *              | heap reference of a longer key | its hash | … | 255 |
 *
 * Which bits of the hash mean what is decided here, in segment_spot_of, and nowhere else. */
#pragma once

#include "state/hash.h"
#include "state/heap.h"
#include "state/tags.h"

#define SEGMENT_GROUP_TAGS    15U
#define SEGMENT_SLOT_NONE     UINT32_MAX
#define SEGMENT_KEY_IS_REF    255U
#define SEGMENT_KEY_REF_BYTES 17U /* the shortest slot that can hold a reference */
#define SEGMENT_TAG_IS_FULL   0x80U
#define SEGMENT_INDEX_BITS    24U
#define SEGMENT_PARTS_MAX     7U

/* A hash taken apart: shard (top 16 bits), part and rest (next 16: a shard's first fan-out is by 4
 * to 7 parts, so that shards do not all fill up and split at the same moment), index (24 bits, the
 * directory's) and tag (7 bits, never 0). */
struct segment_spot {
    uint32_t shard;
    uint32_t index;
    uint32_t part;
    uint32_t rest; /* 0..65535, what part left over: chooses the group */
    uint8_t tag;
};

/* The page's first bytes. */
struct segment_head {
    uint16_t count;
    uint8_t depth; /* how many low bits of index all entries share; they are in pattern */
    uint8_t part;
    uint32_t pattern;
    uint32_t next; /* more entries of the same pattern, when depth cannot grow */
    uint32_t reserved;
};
static_assert(sizeof(struct segment_head) == 16, "groups stay aligned to 16");

/* Whose a page is said to be. */
struct segment_place {
    uint32_t shard_count;
    uint32_t shard;
    uint32_t part; /* SEGMENT_PARTS_MAX: any */
};

/* How a table divides its segments; the same for all of them. */
struct segment_layout {
    uint32_t group_count;
    uint32_t group_slots;
    uint32_t slot_count;
    uint32_t key_inline_bytes;
    uint32_t value_bytes; /* multiple of 8 */
    uint32_t keys_offset;
    uint32_t values_offset;
    uint32_t key_skip_bytes; /* see table_config */
};

/* How many parts a shard fans out to.
 * threads  any */
static inline uint32_t segment_parts(uint32_t shard)
{
    return 4U + (shard & 3U);
}

/* Takes a hash apart.
 * threads  any */
static inline struct segment_spot segment_spot_of(uint64_t hash, uint32_t shard_count)
{
    const uint32_t shard = hash_shard(hash, shard_count);
    ASSERT_SLOW(shard < shard_count);
    const uint32_t scaled = (uint32_t)((hash >> 32) & 0xffffU) * segment_parts(shard);
    return (struct segment_spot){
        .shard = shard,
        .index = (uint32_t)(hash >> 8) & ((1U << SEGMENT_INDEX_BITS) - 1U),
        .part = scaled >> 16,
        .rest = scaled & 0xffffU,
        .tag = (uint8_t)(1U + (((uint32_t)hash & 0xffU) * 127U >> 8)),
    };
}

/* Chooses the number of groups that holds most entries.
 * key_inline_bytes  1..64
 * value_bytes       0..2048, multiple of 8
 * threads  any */
struct segment_layout segment_layout_of(uint32_t key_inline_bytes, uint32_t value_bytes);

/* Empties a page.
 * threads  owning lane only */
void segment_init(const struct segment_layout *layout, uint8_t *page, uint32_t depth, uint32_t part,
                  uint32_t pattern);

/* Looks for a key in this page only, not in head.next.
 * returns  the slot or SEGMENT_SLOT_NONE
 * threads  owning lane only */
uint32_t segment_find(const struct segment_layout *layout, const struct heap *heap,
                      const uint8_t *page, const struct segment_spot *spot, uint64_t hash,
                      struct span key);

/* Takes a free slot for a spot; key and value are the caller's to fill.
 * page     not full
 * tag      segment_tag_of the key
 * threads  owning lane only */
uint32_t segment_place(const struct segment_layout *layout, uint8_t *page,
                       const struct segment_spot *spot, uint8_t tag);

/* Writes a key into a slot just placed.
 * ref      of the heap, when the key is longer than a slot; else 0
 * threads  owning lane only */
void segment_key_write(const struct segment_layout *layout, uint8_t *page, uint32_t slot,
                       struct span key, uint64_t ref, uint64_t hash);

/* The key in a slot in use.
 * ref      set to its heap reference, and the result is empty; or to 0
 * returns  borrowed from the page
 * threads  owning lane only */
struct span segment_key_read(const struct segment_layout *layout, const uint8_t *page,
                             uint32_t slot, uint64_t *ref);

/* Frees a slot that spot's entry holds.
 * threads  owning lane only */
void segment_clear(const struct segment_layout *layout, uint8_t *page,
                   const struct segment_spot *spot, uint32_t slot);

/* The hash of the key in a slot in use, computed or stored.
 * threads  owning lane only */
uint64_t segment_hash(const struct segment_layout *layout, const uint8_t *page, uint32_t slot);

/* Moves entries to other pages: entry e goes to into[e's part] when mask is 0, else to into[1] when
 * its index has the bit of mask, to into[0] otherwise. NULL means that it stays.
 * into     SEGMENT_PARTS_MAX pages, or 2 when mask is not 0; they have room
 * threads  owning lane only */
void segment_move(const struct segment_layout *layout, uint8_t *from, uint8_t *const *into,
                  uint32_t shard_count, uint32_t mask);

/* Walks a page that came from a disk.
 * has_refs set to whether a key lies in the heap
 * returns  whether every entry is where and as it should be; references are not followed
 * threads  control */
bool segment_is_sound(const struct segment_layout *layout, const uint8_t *page,
                      const struct segment_place *place, bool *has_refs);

/* Walks a page and stops the process at a contradiction.
 * threads  owning lane only */
void segment_check(const struct segment_layout *layout, const uint8_t *page, uint32_t shard_count);

/* The tag byte of a slot; 0 when the slot is free.
 * threads  owning lane only */
static inline uint8_t segment_tag(const struct segment_layout *layout, const uint8_t *page,
                                  uint32_t slot)
{
    ASSERT_SLOW(slot < layout->slot_count);
    const uint32_t group = slot / layout->group_slots;
    return page[sizeof(struct segment_head) + group * TAGS_BYTES + slot % layout->group_slots];
}

/* The tag of a key with this spot.
 * threads  any */
static inline uint8_t segment_tag_of(const struct segment_layout *layout,
                                     const struct segment_spot *spot, size_t key_bytes)
{
    ASSERT_SLOW(spot->tag != 0 && spot->tag < SEGMENT_TAG_IS_FULL);
    return (uint8_t)(spot->tag |
                     (key_bytes == layout->key_inline_bytes ? SEGMENT_TAG_IS_FULL : 0U));
}

/* The group where a spot's search begins.
 * threads  any */
static inline uint32_t segment_group(const struct segment_layout *layout,
                                     const struct segment_spot *spot)
{
    ASSERT_SLOW(layout->slot_count == layout->group_count * layout->group_slots);
    return spot->rest * layout->group_count >> 16;
}

/* Byte distance of a key slot from the page's start.
 * threads  any */
static inline uint32_t segment_key_offset(const struct segment_layout *layout, uint32_t slot)
{
    ASSERT_SLOW(slot <= layout->slot_count);
    return layout->keys_offset + slot * layout->key_inline_bytes;
}

/* Byte distance of a value from the page's start.
 * threads  any */
static inline uint32_t segment_value_offset(const struct segment_layout *layout, uint32_t slot)
{
    ASSERT_SLOW(slot <= layout->slot_count);
    return layout->values_offset + slot * layout->value_bytes;
}
