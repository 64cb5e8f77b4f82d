/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back: order, filters, many reads at once, what is damaged, and scrubbing. */
#include "store_fixture.h"

#define SLOTS 64U

static const struct disk_sim_plan quiet = {.seed = 7};

static void open_with_chain(struct store_fixture *fixture)
{
    struct error error = {0};
    fixture_init(fixture, fixture_disk(SLOTS, 2), 1);
    assert_int_equal(fixture_format(fixture->sim, false, &error), 0);
    assert_int_equal(fixture_open(fixture, NULL, &error), 0);
    for (uint64_t base = 0; base < 4; base++) {
        assert_int_equal(fixture_write(fixture, base, 6), STORE_DURABLE);
    }
}

struct tally {
    uint32_t visits;
    uint32_t lane;
    uint32_t kind;
    uint64_t last_id;
    int answer; /* of the third visit */
};

static int count_visit(void *context, const struct store_checkpoint *about, const uint8_t *extent)
{
    struct tally *tally = context;
    struct extent_header head;
    memcpy(&head, extent, sizeof(head));
    assert_true(tally->lane == UINT32_MAX || head.lane == tally->lane);
    assert_true(tally->kind == 0 || head.kind == tally->kind);
    assert_true(about->id >= tally->last_id);
    tally->last_id = about->id;
    tally->visits++;
    return tally->visits == 3 ? tally->answer : 0;
}

static void test_read_when_filtered_then_only_those_in_order_of_the_chain(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    const struct {
        uint32_t lane, kind, expected;
    } cases[] = {{UINT32_MAX, 0, 24},
                 {0, 0, 12},
                 {1, 0, 12},
                 {2, 0, 0},
                 {0, EXTENT_FACTS, 4},
                 {1, EXTENT_PAGES, 8},
                 {UINT32_MAX, EXTENT_FACTS, 8}};
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        struct tally tally = {.lane = cases[index].lane, .kind = cases[index].kind};
        assert_int_equal(
            store_read(fixture.store, 4, tally.lane, tally.kind, count_visit, &tally, NULL), 0);
        assert_int_equal(tally.visits, cases[index].expected);
    }
    struct tally tally = {.lane = UINT32_MAX};
    struct error error = {0};
    assert_int_equal(store_read(fixture.store, 9, 0, 0, count_visit, &tally, &error), -ENOENT);
    assert_non_null(strstr(error.text, "9"));
    fixture_fini(&fixture);
}

static void test_read_when_visitor_refuses_then_ends_and_keeps_all(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    struct tally tally = {.lane = UINT32_MAX, .answer = -EBADMSG};
    assert_int_equal(store_read(fixture.store, 4, UINT32_MAX, 0, count_visit, &tally, NULL),
                     -EBADMSG);
    assert_int_equal(tally.visits, 3);
    assert_int_equal(store_list(fixture.store, NULL, 0), 4);
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

/* Where an extent of a checkpoint stands. */
static uint64_t offset_of(struct store_fixture *fixture, uint64_t id, uint32_t index)
{
    const struct store_kept *kept = store_catalog_find(fixture->store, id);
    uint8_t block[STORE_BLOCK_BYTES];
    disk_sim_peek(fixture->sim, store_layout_slot(kept->entry.manifest.slot), block, sizeof(block));
    struct store_extent extent;
    memcpy(&extent, block + sizeof(struct store_piece) + index * sizeof(extent), sizeof(extent));
    return store_layout_slot(extent.ref.slot);
}

static void rot(struct store_fixture *fixture, uint64_t offset)
{
    uint8_t byte;
    disk_sim_peek(fixture->sim, offset, &byte, 1);
    byte ^= 0x10;
    disk_sim_poke(fixture->sim, offset, &byte, 1);
}

static void test_read_when_an_extent_rots_then_falls_back_to_the_one_before(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    rot(&fixture, offset_of(&fixture, 3, 1) + 70);
    struct tally tally = {.lane = UINT32_MAX};
    struct error error = {0};
    assert_int_equal(store_read(fixture.store, 4, UINT32_MAX, 0, count_visit, &tally, &error),
                     -EBADMSG);
    assert_non_null(strstr(error.text, "checkpoint 3"));
    struct store_checkpoint list[4];
    assert_int_equal(store_list(fixture.store, list, 4), 2); /* 4 built on it */
    assert_int_equal(list[0].id, 2);
    assert_int_equal(fixture_read(&fixture, &list[0]), 0);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, list, 4), 2); /* for good */
    assert_int_equal(store_next_id(fixture.store), 5);
    fixture_fini(&fixture);
}

static void test_read_when_extents_are_swapped_then_damaged(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    uint8_t one[8192], other[8192];
    const uint64_t first = offset_of(&fixture, 4, 0), second = offset_of(&fixture, 4, 1);
    disk_sim_peek(fixture.sim, first, one, sizeof(one));
    disk_sim_peek(fixture.sim, second, other, sizeof(other));
    disk_sim_poke(fixture.sim, first, other, sizeof(other));
    disk_sim_poke(fixture.sim, second, one, sizeof(one));
    struct tally tally = {.lane = UINT32_MAX};
    assert_int_equal(store_read(fixture.store, 4, UINT32_MAX, 0, count_visit, &tally, NULL),
                     -EBADMSG);
    fixture_fini(&fixture);
}

static void test_read_when_one_read_fails_then_it_is_tried_again(void **state)
{
    (void)state;
    static const enum disk_sim_fault faults[] = {DISK_SIM_ERROR, DISK_SIM_SHORT, DISK_SIM_FLIP,
                                                 DISK_SIM_MISDIRECT};
    struct store_fixture fixture;
    open_with_chain(&fixture);
    /* 27 requests open it, 36 read it. */
    for (uint64_t at = 0; at < 36 * COUNT_OF(faults); at++) {
        const struct disk_sim_plan plan = {
            .seed = at, .fault_at = 28 + at / COUNT_OF(faults), .fault = faults[at % 4]};
        fixture_close(&fixture);
        disk_sim_restart(fixture.sim, &plan);
        assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
        struct tally tally = {.lane = UINT32_MAX};
        assert_int_equal(store_read(fixture.store, 4, UINT32_MAX, 0, count_visit, &tally, NULL), 0);
        assert_int_equal(tally.visits, 24);
        assert_int_equal(disk_sim_counters(fixture.sim)->requests, 27 + 36 + 1);
    }
    fixture_fini(&fixture);
}

static void test_read_when_disk_is_gone_then_io_and_still_listed(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    disk_sim_crash(fixture.sim);
    struct tally tally = {.lane = UINT32_MAX};
    struct error error = {0};
    assert_int_equal(store_read(fixture.store, 4, UINT32_MAX, 0, count_visit, &tally, &error),
                     -EIO);
    assert_non_null(strstr(error.text, "read"));
    assert_int_equal(store_list(fixture.store, NULL, 0), 4);
    fixture_fini(&fixture);
}

static void test_scrub_when_whole_then_visits_every_extent_and_finds_nothing(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_with_chain(&fixture);
    const uint64_t before = disk_sim_counters(fixture.sim)->requests;
    for (uint32_t call = 0; call < 4 * (6 + 3 + 1); call++) { /* extents, pieces, and the turn */
        assert_true(store_scrub(fixture.store));
    }
    assert_int_equal(disk_sim_counters(fixture.sim)->requests - before, 4 * (6 + 3));
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

static void test_scrub_when_anything_rots_then_found_within_a_round(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 8; what++) {
        struct store_fixture fixture;
        open_with_chain(&fixture);
        const uint64_t id = 1 + what % 4;
        const struct store_kept *kept = store_catalog_find(fixture.store, id);
        rot(&fixture, what < 4 ? offset_of(&fixture, id, 0) + 4095
                               : store_layout_slot(kept->entry.manifest.slot) + 20);
        bool is_found = false;
        for (uint32_t call = 0; call < 4 * (6 + 3 + 1) && !is_found; call++) {
            is_found = !store_scrub(fixture.store);
        }
        assert_true(is_found);
        struct error reason;
        assert_int_equal(store_damaged(fixture.store, &reason), 1);
        assert_non_null(strstr(reason.text, "checksum"));
        assert_int_equal(store_list(fixture.store, NULL, 0), id - 1);
        assert_true(store_scrub(fixture.store));
        fixture.durable_number = id - 1;
        assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
        fixture_check(&fixture, false);
        fixture_fini(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_when_filtered_then_only_those_in_order_of_the_chain),
        cmocka_unit_test(test_read_when_visitor_refuses_then_ends_and_keeps_all),
        cmocka_unit_test(test_read_when_an_extent_rots_then_falls_back_to_the_one_before),
        cmocka_unit_test(test_read_when_extents_are_swapped_then_damaged),
        cmocka_unit_test(test_read_when_one_read_fails_then_it_is_tried_again),
        cmocka_unit_test(test_read_when_disk_is_gone_then_io_and_still_listed),
        cmocka_unit_test(test_scrub_when_whole_then_visits_every_extent_and_finds_nothing),
        cmocka_unit_test(test_scrub_when_anything_rots_then_found_within_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
