/* SPDX-License-Identifier: Apache-2.0 */
/* Which copy of a root counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "state/store_layout.h"

#define STORE_ID 77U

struct zones {
    uint8_t *at[STORE_ZONES];
};

static void make_zones(struct zones *zones)
{
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        zones->at[zone] = aligned_alloc(4096, EXTENT_BYTES);
        assert_non_null(zones->at[zone]);
        memset(zones->at[zone], 0, EXTENT_BYTES);
    }
}

static void free_zones(struct zones *zones)
{
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        free(zones->at[zone]);
    }
}

static struct store_root *copy_of(const struct zones *zones, uint32_t zone, uint64_t generation)
{
    return (struct store_root *)(void *)(zones->at[zone] + STORE_ROOTS_OFFSET +
                                         generation % STORE_PLACES * STORE_ROOT_BYTES_MAX);
}

/* Writes generation with one checkpoint, id, into the zones of mask. */
static void put(const struct zones *zones, uint32_t mask, uint64_t generation, uint64_t id)
{
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        if ((mask >> zone & 1) != 0) {
            struct store_root *root = copy_of(zones, zone, generation);
            memset(root, 0, STORE_ROOT_BYTES_MAX);
            root->store_id = STORE_ID;
            root->generation = generation;
            root->id_max = id;
            root->entry_count = 1;
            root->entries[0] = (struct store_entry){
                .about = {.id = id}, .manifest = {.slot = 1, .bytes = 4096}, .piece_count = 1};
            assert_int_equal(store_root_seal(root), 4096);
        }
    }
}

static void expect(const struct zones *zones, uint64_t generation, uint64_t id,
                   uint64_t generation_max)
{
    const struct store_root_choice choice =
        store_root_choose((const uint8_t *const *)zones->at, STORE_ID);
    assert_int_equal(choice.generation_max, generation_max);
    if (generation == 0) {
        assert_null(choice.root);
        return;
    }
    assert_non_null(choice.root);
    assert_int_equal(choice.root->generation, generation);
    assert_int_equal(choice.root->entries[0].about.id, id);
}

static void test_choose_when_copies_are_few_then_two_must_agree(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    expect(&zones, 0, 0, 0);
    put(&zones, 1 << 2, 5, 50);
    expect(&zones, 0, 0, 5);
    put(&zones, 1 << 0, 5, 50);
    expect(&zones, 5, 50, 5);
    put(&zones, 1 << 3, 6, 60); /* newer, and alone */
    expect(&zones, 5, 50, 6);
    put(&zones, 1 << 1, 6, 61); /* same generation, other content */
    expect(&zones, 5, 50, 6);
    put(&zones, 1 << 0, 6, 61);
    expect(&zones, 6, 61, 6);
    free_zones(&zones);
}

static void test_choose_when_a_zone_is_unreadable_then_others_do(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    put(&zones, 0xF, 7, 70);
    put(&zones, 0xF, 8, 80);
    uint8_t *kept[2] = {zones.at[0], zones.at[2]};
    zones.at[0] = zones.at[2] = NULL;
    expect(&zones, 8, 80, 8);
    uint8_t *third = zones.at[1];
    zones.at[1] = NULL;
    expect(&zones, 0, 0, 8);
    zones.at[0] = kept[0];
    zones.at[1] = third;
    zones.at[2] = kept[1];
    free_zones(&zones);
}

static void test_choose_when_a_copy_is_in_another_place_then_it_does_not_count(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    put(&zones, 0xF, 7, 70);
    put(&zones, 0x3, 9, 90);
    for (uint32_t zone = 0; zone < 2; zone++) { /* 9 belongs to place 1, and lands in 2 */
        memcpy(copy_of(&zones, zone, 10), copy_of(&zones, zone, 9), STORE_ROOT_BYTES_MAX);
        memset(copy_of(&zones, zone, 9), 0, STORE_ROOT_BYTES_MAX);
    }
    expect(&zones, 7, 70, 7);
    free_zones(&zones);
}

static void test_check_when_any_bit_flips_then_refused(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    put(&zones, 1, 4, 40);
    uint8_t *copy = (uint8_t *)copy_of(&zones, 0, 4);
    assert_non_null(store_root_check(copy, STORE_ID, 0));
    assert_null(store_root_check(copy, STORE_ID + 1, 0));
    assert_null(store_root_check(copy, STORE_ID, 1));
    const uint32_t bytes = sizeof(struct store_root) + sizeof(struct store_entry);
    for (uint32_t bit = 0; bit < bytes * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_null(store_root_check(copy, STORE_ID, 0));
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    free_zones(&zones);
}

/* Sealed, so that only the structure is wrong. */
static void test_check_when_entries_make_no_sense_then_refused(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    for (uint32_t field = 0; field < 7; field++) {
        put(&zones, 1, 4, 40);
        struct store_root *root = copy_of(&zones, 0, 4);
        struct store_entry *entry = &root->entries[0];
        entry->about.id = field == 0 ? 0 : field == 1 ? 41 : 40;
        entry->about.base_id = field == 2 ? 40 : 0;
        entry->piece_count = field != 3;
        memset(entry->about.label, field == 4 ? 'x' : 0, sizeof(entry->about.label));
        if (field == 5) { /* twice the same */
            root->entries[1] = *entry;
            root->entry_count = 2;
        }
        root->id_max = field == 6 ? UINT64_MAX : root->id_max;
        (void)store_root_seal(root);
        assert_null(store_root_check((uint8_t *)root, STORE_ID, 0));
    }
    free_zones(&zones);
}

static void test_seal_when_full_then_fits_its_place(void **state)
{
    (void)state;
    struct zones zones;
    make_zones(&zones);
    struct store_root *root = copy_of(&zones, 0, 4);
    *root = (struct store_root){.store_id = STORE_ID,
                                .generation = 4,
                                .id_max = STORE_CHECKPOINTS_MAX,
                                .entry_count = STORE_CHECKPOINTS_MAX};
    for (uint32_t index = 0; index < STORE_CHECKPOINTS_MAX; index++) {
        root->entries[index] =
            (struct store_entry){.about = {.id = index + 1, .base_id = index}, .piece_count = 1};
    }
    assert_true(store_root_seal(root) <= STORE_ROOT_BYTES_MAX);
    assert_ptr_equal(store_root_check((uint8_t *)root, STORE_ID, 0), root);
    free_zones(&zones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose_when_copies_are_few_then_two_must_agree),
        cmocka_unit_test(test_choose_when_a_zone_is_unreadable_then_others_do),
        cmocka_unit_test(test_choose_when_a_copy_is_in_another_place_then_it_does_not_count),
        cmocka_unit_test(test_check_when_any_bit_flips_then_refused),
        cmocka_unit_test(test_check_when_entries_make_no_sense_then_refused),
        cmocka_unit_test(test_seal_when_full_then_fits_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
