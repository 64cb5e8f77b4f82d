/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting: what it refuses to write over, and that it writes every slot. */
#include "store_fixture.h"

#define SLOTS 24U

static void expect_refusal(struct disk_sim *sim, const char *words)
{
    struct error error = {0};
    const uint64_t writes = disk_sim_counters(sim)->writes;
    assert_int_equal(fixture_format(sim, false, &error), -EEXIST);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
    assert_int_equal(disk_sim_counters(sim)->writes, writes);
}

static void test_format_when_a_file_system_is_there_then_refused_unless_forced(void **state)
{
    (void)state;
    struct store_fixture fixture;
    struct disk_sim *sim = fixture_disk(SLOTS, 1);
    disk_sim_poke(sim, 1080, "\x53\xef", 2);
    expect_refusal(sim, "ext4");
    assert_int_equal(fixture_format(sim, true, NULL), 0);
    fixture_init(&fixture, sim, 1);
    assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
    fixture_fini(&fixture);
}

static void test_format_when_unknown_bytes_are_anywhere_near_a_zone_then_refused(void **state)
{
    (void)state;
    struct store_layout layout;
    assert_true(store_layout_init(&layout, (uint64_t)SLOTS * EXTENT_BYTES));
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        struct disk_sim *sim = fixture_disk(SLOTS, 1);
        disk_sim_poke(sim, store_layout_slot(layout.zone_slots[zone]) + 99999, "x", 1);
        expect_refusal(sim, "something else");
        disk_sim_destroy(sim);
    }
}

static void test_format_when_ours_is_there_then_starts_anew(void **state)
{
    (void)state;
    struct store_fixture fixture;
    const struct store_format other = {.host_identity = 1, .store_id = 99};
    fixture_init(&fixture, fixture_disk(SLOTS, 1), 1);
    assert_int_equal(fixture_format(fixture.sim, false, NULL), 0);
    assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
    assert_int_equal(fixture_write(&fixture, 0, 3), STORE_DURABLE);
    fixture_close(&fixture);
    assert_int_equal(store_format(disk_sim_disk(fixture.sim), &other, NULL, NULL, NULL), 0);
    assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 0);
    assert_int_equal(store_next_id(fixture.store), 1);
    uint8_t block[STORE_BLOCK_BYTES], zeros[STORE_BLOCK_BYTES] = {0};
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (store_layout_is_data(&fixture.store->layout, slot)) {
            disk_sim_peek(fixture.sim, store_layout_slot(slot), block, sizeof(block));
            assert_memory_equal(block, zeros, sizeof(block));
        }
    }
    fixture_fini(&fixture);
}

static void test_format_when_too_small_then_says_the_least(void **state)
{
    (void)state;
    struct error error = {0};
    struct disk_sim *sim = fixture_disk(STORE_SLOTS_MIN - 1, 1);
    assert_int_equal(fixture_format(sim, false, &error), -EINVAL);
    assert_non_null(strstr(error.text, "too small"));
    assert_non_null(strstr(error.text, "4194304"));
    disk_sim_destroy(sim);
}

static void test_format_when_the_disk_fails_then_told_and_not_a_store(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 20; at++) {
        struct store_fixture fixture;
        struct error error = {0};
        struct disk_sim *sim = fixture_disk(SLOTS, at);
        const struct disk_sim_plan plan = {.fault_at = at, .fault = DISK_SIM_ERROR};
        disk_sim_restart(sim, &plan);
        fixture_init(&fixture, sim, at);
        const int status = fixture_format(sim, false, &error);
        const bool has_failed = disk_sim_counters(sim)->faults[DISK_SIM_ERROR] != 0;
        /* One zone that cannot be read does not keep it from being written. */
        assert_true(status == 0 || (has_failed && error.text[0] != '\0'));
        assert_true(status != 0 || !has_failed || at <= 5);
        fixture_fini(&fixture);
    }
}

static void note_share(void *context, double share)
{
    double *last = context;
    assert_true(share >= *last && share <= 1.0);
    *last = share;
}

static void test_progress_when_given_then_grows_to_one_and_all_is_written(void **state)
{
    (void)state;
    double share = 0;
    struct disk_sim *sim = fixture_disk(300, 1);
    const struct store_format format = {.store_id = 1};
    assert_int_equal(store_format(disk_sim_disk(sim), &format, note_share, &share, NULL), 0);
    assert_true(share == 1.0);
    disk_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_when_a_file_system_is_there_then_refused_unless_forced),
        cmocka_unit_test(test_format_when_unknown_bytes_are_anywhere_near_a_zone_then_refused),
        cmocka_unit_test(test_format_when_ours_is_there_then_starts_anew),
        cmocka_unit_test(test_format_when_too_small_then_says_the_least),
        cmocka_unit_test(test_format_when_the_disk_fails_then_told_and_not_a_store),
        cmocka_unit_test(test_progress_when_given_then_grows_to_one_and_all_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
