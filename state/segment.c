/* SPDX-License-Identifier: Apache-2.0 */
/* In-page hashing: a spot's home group, then the following ones in a ring. "passed" of a group
 * counts entries whose search goes through it; at 255 it sticks, which costs probes and never
 * answers. Removing clears the tag and takes the count back, so there are no tombstones. */
#include "state/segment.h"

#define GROUP_PASSED    SEGMENT_GROUP_TAGS
#define PASSED_STUCK    255U
#define GROUP_COUNT_MAX 128U

static uint32_t group_offset(uint32_t group)
{
    ASSERT_SLOW(group <= GROUP_COUNT_MAX);
    return (uint32_t)sizeof(struct segment_head) + group * TAGS_BYTES;
}

static uint32_t group_next(const struct segment_layout *layout, uint32_t group)
{
    ASSERT_SLOW(group < layout->group_count);
    return group + 1 == layout->group_count ? 0 : group + 1;
}

static struct segment_head *head_of(uint8_t *page)
{
    return (struct segment_head *)(void *)page;
}

/* The slots that fit beside group_count groups, a multiple of it. */
static uint32_t slots_beside(uint32_t group_count, uint32_t slot_bytes)
{
    ASSERT(group_count != 0 && slot_bytes != 0);
    const uint32_t fixed = group_offset(group_count) + 7U; /* values are aligned to 8 */
    if (fixed >= ARENA_PAGE_BYTES) {
        return 0;
    }
    uint32_t group_slots = (ARENA_PAGE_BYTES - fixed) / slot_bytes / group_count;
    group_slots = group_slots > SEGMENT_GROUP_TAGS ? SEGMENT_GROUP_TAGS : group_slots;
    return group_slots * group_count;
}

struct segment_layout segment_layout_of(uint32_t key_inline_bytes, uint32_t value_bytes)
{
    ASSERT(key_inline_bytes >= 1 && key_inline_bytes <= 64);
    ASSERT(value_bytes % 8 == 0 && value_bytes <= 2048);
    const uint32_t slot_bytes = key_inline_bytes + value_bytes;
    struct segment_layout layout = {.key_inline_bytes = key_inline_bytes,
                                    .value_bytes = value_bytes};
    for (uint32_t group_count = 1; group_count <= GROUP_COUNT_MAX; group_count++) {
        const uint32_t slot_count = slots_beside(group_count, slot_bytes);
        if (slot_count > layout.slot_count) {
            layout.group_count = group_count;
            layout.group_slots = slot_count / group_count;
            layout.slot_count = slot_count;
        }
    }
    ASSERT(layout.slot_count != 0);
    layout.keys_offset = group_offset(layout.group_count);
    const uint32_t keys_end = segment_key_offset(&layout, layout.slot_count);
    layout.values_offset = (keys_end + 7U) & ~7U;
    ASSERT(segment_value_offset(&layout, layout.slot_count) <= ARENA_PAGE_BYTES);
    return layout;
}

void segment_init(const struct segment_layout *layout, uint8_t *page, uint32_t depth, uint32_t part,
                  uint32_t pattern)
{
    ASSERT(depth <= SEGMENT_INDEX_BITS && pattern < 1U << depth);
    ASSERT(part < SEGMENT_PARTS_MAX);
    *head_of(page) =
        (struct segment_head){.depth = (uint8_t)depth, .part = (uint8_t)part, .pattern = pattern};
    memset(page + sizeof(struct segment_head), 0, layout->group_count * TAGS_BYTES);
}

/* memcmp for equality of short strings, inlined: keys are a few words. */
static inline bool is_equal(const uint8_t *left, const uint8_t *right, size_t bytes)
{
    uint64_t a;
    uint64_t b;
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        memcpy(&a, left + at, 8);
        memcpy(&b, right + at, 8);
        if (a != b) {
            return false;
        }
    }
    for (; at < bytes; at++) {
        if (left[at] != right[at]) {
            return false;
        }
    }
    return true;
}

/* Whether the key in a slot whose tag matches is this one. */
static inline bool key_is(const struct segment_layout *layout, const struct heap *heap,
                          const uint8_t *key_slot, uint64_t hash, struct span key)
{
    ASSERT_SLOW(heap->arena != NULL);
    const uint32_t inside = layout->key_inline_bytes;
    if (LIKELY(key.bytes == inside)) { /* the tag says that the slot's does, too */
        return is_equal(key_slot, key.data, inside);
    }
    const uint8_t length = key_slot[inside - 1U];
    if (key.bytes < inside) {
        return length == key.bytes && is_equal(key_slot, key.data, key.bytes);
    }
    uint64_t stored[2];
    if (length != SEGMENT_KEY_IS_REF) {
        return false;
    }
    memcpy(stored, key_slot, sizeof(stored));
    return stored[1] == hash && heap_blob_compare(heap, stored[0], key) == 0;
}

uint32_t segment_find(const struct segment_layout *layout, const struct heap *heap,
                      const uint8_t *page, const struct segment_spot *spot, uint64_t hash,
                      struct span key)
{
    ASSERT_SLOW(layout->slot_count == layout->group_count * layout->group_slots);
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    uint32_t group = segment_group(layout, spot);
    const uint8_t tag = segment_tag_of(layout, spot, key.bytes);
    const uint32_t lanes = (1U << layout->group_slots) - 1U;
    for (uint32_t seen = 0; seen < layout->group_count; seen++) {
        const uint8_t *tags = page + group_offset(group);
        uint32_t hits = tags_match(tags, tag) & lanes;
        for (; hits != 0; hits &= hits - 1) {
            const uint32_t slot = group * layout->group_slots + (uint32_t)__builtin_ctz(hits);
            if (LIKELY(key_is(layout, heap, page + segment_key_offset(layout, slot), hash, key))) {
                return slot;
            }
        }
        if (tags[GROUP_PASSED] == 0) {
            break;
        }
        group = group_next(layout, group);
    }
    return SEGMENT_SLOT_NONE;
}

uint32_t segment_place(const struct segment_layout *layout, uint8_t *page,
                       const struct segment_spot *spot, uint8_t tag)
{
    ASSERT_SLOW((tag & ~SEGMENT_TAG_IS_FULL) == spot->tag);
    struct segment_head *head = head_of(page);
    ASSERT(head->count < layout->slot_count);
    uint32_t group = segment_group(layout, spot);
    const uint32_t lanes = (1U << layout->group_slots) - 1U;
    for (;;) {
        uint8_t *tags = page + group_offset(group);
        const uint32_t room = tags_match(tags, 0) & lanes;
        if (room != 0) {
            const uint32_t lane = (uint32_t)__builtin_ctz(room);
            tags[lane] = tag;
            head->count++;
            return group * layout->group_slots + lane;
        }
        tags[GROUP_PASSED] += tags[GROUP_PASSED] != PASSED_STUCK;
        group = group_next(layout, group);
    }
}

void segment_clear(const struct segment_layout *layout, uint8_t *page,
                   const struct segment_spot *spot, uint32_t slot)
{
    struct segment_head *head = head_of(page);
    ASSERT(head->count != 0 && slot < layout->slot_count);
    const uint32_t stop = slot / layout->group_slots;
    for (uint32_t group = segment_group(layout, spot); group != stop;
         group = group_next(layout, group)) {
        uint8_t *passed = page + group_offset(group) + GROUP_PASSED;
        ASSERT(*passed != 0);
        *passed -= *passed != PASSED_STUCK;
    }
    uint8_t *tag = page + group_offset(stop) + slot % layout->group_slots;
    ASSERT((*tag & ~SEGMENT_TAG_IS_FULL) == spot->tag);
    *tag = 0;
    head->count--;
}

void segment_key_write(const struct segment_layout *layout, uint8_t *page, uint32_t slot,
                       struct span key, uint64_t ref, uint64_t hash)
{
    const uint32_t inside = layout->key_inline_bytes;
    ASSERT((ref != 0) == (key.bytes > inside));
    uint8_t *key_slot = page + segment_key_offset(layout, slot);
    if (ref != 0) {
        ASSERT(inside >= SEGMENT_KEY_REF_BYTES);
        const uint64_t stored[2] = {ref, hash};
        memcpy(key_slot, stored, sizeof(stored));
        key_slot[inside - 1U] = SEGMENT_KEY_IS_REF;
        return;
    }
    if (key.bytes != inside) {
        key_slot[inside - 1U] = (uint8_t)key.bytes;
    }
    if (key.bytes != 0) {
        memcpy(key_slot, key.data, key.bytes);
    }
}

struct span segment_key_read(const struct segment_layout *layout, const uint8_t *page,
                             uint32_t slot, uint64_t *ref)
{
    const uint8_t tag = segment_tag(layout, page, slot);
    const uint8_t *key_slot = page + segment_key_offset(layout, slot);
    ASSERT_SLOW(tag != 0);
    *ref = 0;
    if ((tag & SEGMENT_TAG_IS_FULL) != 0) {
        return (struct span){key_slot, layout->key_inline_bytes};
    }
    const uint8_t length = key_slot[layout->key_inline_bytes - 1U];
    if (length != SEGMENT_KEY_IS_REF) {
        return (struct span){key_slot, length};
    }
    memcpy(ref, key_slot, sizeof(*ref));
    return (struct span){key_slot, 0};
}

uint64_t segment_hash(const struct segment_layout *layout, const uint8_t *page, uint32_t slot)
{
    uint64_t hash;
    uint64_t ref;
    const struct span key = segment_key_read(layout, page, slot, &ref);
    if (ref == 0) {
        return hash_behind(key, layout->key_skip_bytes);
    }
    memcpy(&hash, key.data + sizeof(ref), sizeof(hash));
    return hash;
}

void segment_move(const struct segment_layout *layout, uint8_t *from, uint8_t *const *into,
                  uint32_t shard_count, uint32_t mask)
{
    ASSERT_SLOW(layout->slot_count == layout->group_count * layout->group_slots);
    ASSERT(into != NULL && (mask & (mask - 1U)) == 0);
    for (uint32_t slot = 0; slot < layout->slot_count; slot++) {
        if (segment_tag(layout, from, slot) == 0) {
            continue;
        }
        const struct segment_spot spot =
            segment_spot_of(segment_hash(layout, from, slot), shard_count);
        uint8_t *page = into[mask == 0 ? spot.part : (spot.index & mask) != 0];
        if (page == NULL) {
            continue;
        }
        const uint32_t place = segment_place(layout, page, &spot, segment_tag(layout, from, slot));
        memcpy(page + segment_key_offset(layout, place), from + segment_key_offset(layout, slot),
               layout->key_inline_bytes);
        memcpy(page + segment_value_offset(layout, place),
               from + segment_value_offset(layout, slot), layout->value_bytes);
        segment_clear(layout, from, &spot, slot);
    }
}

/* Whether a slot's key can be read and hashed at all.
 * is_ref   set to whether it lies in the heap */
static bool is_key_sound(const struct segment_layout *layout, const uint8_t *page, uint32_t slot,
                         bool *is_ref)
{
    const uint32_t inside = layout->key_inline_bytes;
    const uint8_t length = page[segment_key_offset(layout, slot) + inside - 1U];
    const bool is_full = (segment_tag(layout, page, slot) & SEGMENT_TAG_IS_FULL) != 0;
    *is_ref = !is_full && length == SEGMENT_KEY_IS_REF;
    if (*is_ref) {
        uint64_t ref;
        return inside >= SEGMENT_KEY_REF_BYTES && segment_key_read(layout, page, slot, &ref).data &&
               ref != 0;
    }
    const uint32_t bytes = is_full ? inside : length;
    return bytes <= inside && (is_full || bytes != inside) &&
           (layout->key_skip_bytes == 0 || bytes > layout->key_skip_bytes);
}

/* Counts an entry's way from its home group to where it stands. */
static void way_count(const struct segment_layout *layout, const struct segment_spot *spot,
                      uint32_t slot, uint16_t *passed)
{
    const uint32_t stop = slot / layout->group_slots;
    ASSERT_SLOW(slot < layout->slot_count);
    for (uint32_t group = segment_group(layout, spot); group != stop;
         group = group_next(layout, group)) {
        passed[group]++;
    }
}

bool segment_is_sound(const struct segment_layout *layout, const uint8_t *page,
                      const struct segment_place *place, bool *has_refs)
{
    const struct segment_head *head = (const void *)page;
    ASSERT(place->shard < place->shard_count && layout->group_count <= GROUP_COUNT_MAX);
    ASSERT(head->depth <= SEGMENT_INDEX_BITS);
    const uint32_t mask = (1U << head->depth) - 1U;
    uint32_t count = 0;
    uint16_t passed[GROUP_COUNT_MAX] = {0};
    *has_refs = false;
    for (uint32_t group = 0; group < layout->group_count; group++) {
        const uint8_t *tags = page + group_offset(group);
        const uint32_t first = group * layout->group_slots;
        uint32_t used = ~tags_match(tags, 0) & ((1U << layout->group_slots) - 1U);
        for (; used != 0; used &= used - 1U, count++) {
            const uint32_t lane = (uint32_t)__builtin_ctz(used);
            bool is_ref;
            if (!is_key_sound(layout, page, first + lane, &is_ref)) {
                return false;
            }
            const struct segment_spot spot =
                segment_spot_of(segment_hash(layout, page, first + lane), place->shard_count);
            if (spot.tag != (tags[lane] & ~SEGMENT_TAG_IS_FULL) || spot.shard != place->shard ||
                (spot.index & mask) != head->pattern ||
                (place->part != SEGMENT_PARTS_MAX && spot.part != place->part)) {
                return false;
            }
            *has_refs |= is_ref;
            way_count(layout, &spot, first + lane, passed);
        }
    }
    bool is_sound = count == head->count;
    for (uint32_t group = 0; group < layout->group_count; group++) {
        const uint8_t stored = page[group_offset(group) + GROUP_PASSED];
        is_sound = is_sound && (stored == PASSED_STUCK || stored == passed[group]);
    }
    return is_sound;
}

void segment_check(const struct segment_layout *layout, const uint8_t *page, uint32_t shard_count)
{
    const struct segment_head *head = (const void *)page;
    uint32_t count = 0;
    uint32_t passed[GROUP_COUNT_MAX + 1U] = {0};
    for (uint32_t slot = 0; slot < layout->slot_count; slot++) {
        if (segment_tag(layout, page, slot) == 0) {
            continue;
        }
        count++;
        const struct segment_spot spot =
            segment_spot_of(segment_hash(layout, page, slot), shard_count);
        ASSERT(spot.tag == (segment_tag(layout, page, slot) & ~SEGMENT_TAG_IS_FULL));
        ASSERT((spot.index & ((1U << head->depth) - 1U)) == head->pattern);
        const uint32_t stop = slot / layout->group_slots;
        for (uint32_t group = segment_group(layout, &spot); group != stop;
             group = group_next(layout, group)) {
            passed[group]++;
        }
    }
    ASSERT(count == head->count);
    for (uint32_t group = 0; group < layout->group_count; group++) {
        const uint8_t stored = page[group_offset(group) + GROUP_PASSED];
        ASSERT(stored == PASSED_STUCK || stored == passed[group]);
    }
}
