/* SPDX-License-Identifier: Apache-2.0 */
/* Places on the disk and the superblock's bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "state/store_layout.h"

static void test_init_when_of_any_size_then_zones_are_apart(void **state)
{
    (void)state;
    struct store_layout layout;
    assert_false(store_layout_init(&layout, STORE_SLOTS_MIN * (uint64_t)EXTENT_BYTES - 1));
    assert_false(store_layout_init(&layout, UINT64_MAX));
    for (uint32_t slots = STORE_SLOTS_MIN; slots < 300; slots++) {
        assert_true(store_layout_init(&layout, (uint64_t)slots * EXTENT_BYTES + 4096));
        assert_int_equal(layout.slot_count, slots);
        assert_int_equal(layout.bytes, (uint64_t)slots * EXTENT_BYTES);
        assert_int_equal(layout.zone_slots[0], 0);
        assert_int_equal(layout.zone_slots[3], slots - 1);
        uint32_t data = 0;
        for (uint32_t slot = 0; slot < slots + 5; slot++) {
            data += store_layout_is_data(&layout, slot);
        }
        assert_int_equal(data, slots - STORE_ZONES);
        for (uint32_t zone = 1; zone < STORE_ZONES; zone++) {
            assert_true(layout.zone_slots[zone] - layout.zone_slots[zone - 1] >= slots / 4);
        }
    }
}

static void test_root_when_any_place_then_inside_its_zone(void **state)
{
    (void)state;
    struct store_layout layout;
    assert_true(store_layout_init(&layout, 100 * (uint64_t)EXTENT_BYTES));
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const uint64_t start = store_layout_slot(layout.zone_slots[zone]);
        for (uint32_t place = 0; place < STORE_PLACES; place++) {
            const uint64_t offset = store_layout_root(&layout, zone, place);
            assert_true(offset >= start + STORE_BLOCK_BYTES);
            assert_true(offset + STORE_ROOT_BYTES_MAX <= start + EXTENT_BYTES);
        }
    }
}

static void test_ref_when_out_of_bounds_then_refused(void **state)
{
    (void)state;
    struct store_layout layout;
    assert_true(store_layout_init(&layout, 100 * (uint64_t)EXTENT_BYTES));
    struct store_ref ref = {.slot = 1, .bytes = 4096};
    assert_true(store_layout_ref_check(&layout, &ref));
    ref.bytes = EXTENT_BYTES;
    assert_true(store_layout_ref_check(&layout, &ref));
    for (uint32_t field = 0; field < 6; field++) {
        ref = (struct store_ref){.slot = 1, .bytes = 4096};
        ref.slot = field == 0 ? 0 : field == 1 ? 99 : field == 2 ? 100 : 1;
        ref.bytes = field == 3 ? 0 : field == 4 ? 4097 : field == 5 ? EXTENT_BYTES + 4096 : 4096;
        assert_false(store_layout_ref_check(&layout, &ref));
    }
}

static void test_superblock_when_filled_then_reads_back_for_its_zone_only(void **state)
{
    (void)state;
    _Alignas(8) uint8_t block[STORE_BLOCK_BYTES];
    const struct store_superblock fields = {.store_id = 5,
                                            .bytes = 100 * (uint64_t)EXTENT_BYTES,
                                            .identity = 6,
                                            .host_identity = 7,
                                            .stage = STORE_STAGE_FORMATTED};
    struct store_superblock out;
    store_superblock_fill(block, &fields, 2);
    assert_true(store_superblock_check(block, 2, &out));
    assert_int_equal(out.store_id, 5);
    assert_int_equal(out.identity, 6);
    assert_int_equal(out.host_identity, 7);
    assert_int_equal(out.bytes, fields.bytes);
    assert_false(store_superblock_check(block, 1, &out));
    assert_memory_equal(block + sizeof(struct checksum), "PENSTOCK", 8);
    for (uint32_t bit = 0; bit < STORE_BLOCK_BYTES * 8; bit += 5) {
        block[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_false(store_superblock_check(block, 2, &out));
        block[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    assert_true(store_superblock_check(block, 2, &out));
}

static void test_foreign_when_known_then_named(void **state)
{
    (void)state;
    static uint8_t start[EXTENT_BYTES];
    assert_null(store_foreign_name(start));
    memcpy(start + 510, "\x55\xaa", 2);
    assert_non_null(strstr(store_foreign_name(start), "MBR"));
    memcpy(start + 512, "EFI PART", 8);
    assert_non_null(strstr(store_foreign_name(start), "GPT"));
    memcpy(start, "XFSB", 4);
    assert_non_null(strstr(store_foreign_name(start), "XFS"));
    memcpy(start + 1080, "\x53\xef", 2);
    assert_non_null(strstr(store_foreign_name(start), "ext4"));
    memset(start, 0, sizeof(start));
    memcpy(start + 65600, "_BHRfS_M", 8);
    assert_non_null(strstr(store_foreign_name(start), "Btrfs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_when_of_any_size_then_zones_are_apart),
        cmocka_unit_test(test_root_when_any_place_then_inside_its_zone),
        cmocka_unit_test(test_ref_when_out_of_bounds_then_refused),
        cmocka_unit_test(test_superblock_when_filled_then_reads_back_for_its_zone_only),
        cmocka_unit_test(test_foreign_when_known_then_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
