/* SPDX-License-Identifier: Apache-2.0 */
/* One page: tag comparison against its reference, layouts of every size, and a page filled and
 * emptied at random against a model. */
#include "fixture.h"

#include "state/segment.h"

static void test_tags_match_equals_the_reference(void **state)
{
    (void)state;
    struct fixture fixture = {.random = 7};
    for (uint32_t round = 0; round < 20000; round++) {
        uint8_t group[TAGS_BYTES + 2];
        for (uint32_t lane = 0; lane < sizeof(group); lane++) {
            group[lane] = (uint8_t)fixture_below(&fixture, round % 2 == 0 ? 4 : 256);
        }
        const uint8_t tag = (uint8_t)fixture_below(&fixture, round % 2 == 0 ? 4 : 256);
        assert_int_equal(tags_match(group + 1, tag), tags_match_reference(group + 1, tag));
    }
}

static void test_layout_of_every_size_stays_inside_the_page(void **state)
{
    (void)state;
    for (uint32_t key_bytes = 1; key_bytes <= 64; key_bytes++) {
        for (uint32_t value_bytes = 0; value_bytes <= 2048; value_bytes += 8) {
            const struct segment_layout layout = segment_layout_of(key_bytes, value_bytes);
            assert_in_range(layout.group_slots, 1, SEGMENT_GROUP_TAGS);
            assert_int_equal(layout.slot_count, layout.group_count * layout.group_slots);
            assert_true(layout.keys_offset >= 16 + layout.group_count * TAGS_BYTES);
            assert_true(segment_key_offset(&layout, layout.slot_count) <= layout.values_offset);
            assert_int_equal(layout.values_offset % 8, 0);
            assert_true(segment_value_offset(&layout, layout.slot_count) <= ARENA_PAGE_BYTES);
            const uint32_t slot_bytes = key_bytes + 1 + value_bytes;
            assert_true(slot_bytes < 16 || slot_bytes > 100 ||
                        layout.slot_count * slot_bytes >= ARENA_PAGE_BYTES * 88 / 100);
        }
    }
}

struct page {
    struct fixture fixture;
    struct segment_layout layout;
    uint8_t bytes[ARENA_PAGE_BYTES] __attribute__((aligned(64)));
};

static void page_open(struct page *page)
{
    fixture_open(&page->fixture, 64, 1);
    page->layout = segment_layout_of(8, 8);
    segment_init(&page->layout, page->bytes, 0, 0, 0);
}

static uint32_t put(struct page *page, uint64_t number)
{
    const uint64_t hash = hash_bytes((struct span){(const uint8_t *)&number, 8});
    const struct segment_spot spot = segment_spot_of(hash, 1);
    const uint32_t slot =
        segment_place(&page->layout, page->bytes, &spot, segment_tag_of(&page->layout, &spot, 8));
    const struct span key = {(const uint8_t *)&number, 8};
    segment_key_write(&page->layout, page->bytes, slot, key, 0, hash);
    memcpy(page->bytes + segment_value_offset(&page->layout, slot), &number, 8);
    return slot;
}

static uint32_t find(struct page *page, uint64_t number)
{
    const struct span key = {(const uint8_t *)&number, 8};
    const uint64_t hash = hash_bytes(key);
    const struct segment_spot spot = segment_spot_of(hash, 1);
    return segment_find(&page->layout, page->fixture.heap, page->bytes, &spot, hash, key);
}

static void test_random_places_and_clears_match_the_model_up_to_a_full_page(void **state)
{
    (void)state;
    struct page page;
    uint8_t is_there[400];
    page_open(&page);
    memset(is_there, 0, sizeof(is_there));
    const struct segment_head *head = (const void *)page.bytes;
    uint32_t full_count = 0;
    for (uint32_t step = 0; step < 60000; step++) {
        const uint64_t number = fixture_below(&page.fixture, COUNT_OF(is_there));
        const uint32_t slot = find(&page, number);
        assert_int_equal(slot != SEGMENT_SLOT_NONE, is_there[number]);
        const bool is_filling = step / 3000 % 2 == 0;
        if (slot == SEGMENT_SLOT_NONE && head->count < page.layout.slot_count) {
            (void)put(&page, number);
            is_there[number] = 1;
        } else if (slot != SEGMENT_SLOT_NONE && (!is_filling || step % 16 == 0)) {
            const uint64_t hash = segment_hash(&page.layout, page.bytes, slot);
            const struct segment_spot spot = segment_spot_of(hash, 1);
            segment_clear(&page.layout, page.bytes, &spot, slot);
            is_there[number] = 0;
        }
        full_count += head->count == page.layout.slot_count;
        if (step % 100 == 0) {
            segment_check(&page.layout, page.bytes, 1);
        }
    }
    assert_true(full_count > 100);
    fixture_close(&page.fixture);
}

static void test_move_by_a_bit_parts_the_entries_and_loses_none(void **state)
{
    (void)state;
    struct page page;
    static uint8_t other[ARENA_PAGE_BYTES] __attribute__((aligned(64)));
    page_open(&page);
    for (uint64_t number = 0; number < page.layout.slot_count; number++) {
        (void)put(&page, number);
    }
    segment_init(&page.layout, other, 1, 0, 1);
    uint8_t *const into[2] = {NULL, other};
    segment_move(&page.layout, page.bytes, into, 1, 1);
    segment_check(&page.layout, page.bytes, 1);
    segment_check(&page.layout, other, 1);
    const struct segment_head *heads[2] = {(const void *)page.bytes, (const void *)other};
    assert_int_equal(heads[0]->count + heads[1]->count, page.layout.slot_count);
    assert_true(heads[0]->count > 20 && heads[1]->count > 20);
    for (uint32_t slot = 0; slot < page.layout.slot_count; slot++) {
        if (segment_tag(&page.layout, page.bytes, slot) != 0) {
            const uint64_t hash = segment_hash(&page.layout, page.bytes, slot);
            assert_int_equal(segment_spot_of(hash, 1).index & 1, 0);
        }
    }
    fixture_close(&page.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_match_equals_the_reference),
        cmocka_unit_test(test_layout_of_every_size_stays_inside_the_page),
        cmocka_unit_test(test_random_places_and_clears_match_the_model_up_to_a_full_page),
        cmocka_unit_test(test_move_by_a_bit_parts_the_entries_and_loses_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
