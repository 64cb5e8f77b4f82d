/* SPDX-License-Identifier: Apache-2.0 */
/* What is retained, where roots go, and that what was passed over stays out. */
#include "store_fixture.h"

#define SLOTS 40U

static const struct disk_sim_plan quiet = {.seed = 7};

static void open_formatted(struct store_fixture *fixture)
{
    fixture_init(fixture, fixture_disk(SLOTS, 1), 1);
    assert_int_equal(fixture_format(fixture->sim, false, NULL), 0);
    assert_int_equal(fixture_open(fixture, NULL, NULL), 0);
}

/* A catalog of ids 1.. with these bases and savepoints. */
static void set_catalog(struct store *store, uint32_t count, const uint64_t *bases,
                        uint64_t savepoints)
{
    store->kept_count = count;
    for (uint32_t index = 0; index < count; index++) {
        store->kept[index] =
            (struct store_kept){.entry = {.about = {.id = index + 1,
                                                    .base_id = bases[index],
                                                    .is_savepoint = savepoints >> index & 1}}};
    }
}

static uint64_t retained(struct store *store, const struct store_entry *pending)
{
    uint64_t mask = 0;
    const uint32_t count = store_catalog_retain(store, pending);
    for (uint32_t index = 0; index < store->kept_count; index++) {
        mask |= (uint64_t)store->retain[index] << index;
    }
    assert_int_equal(count, __builtin_popcountll(mask) + (pending != NULL));
    return mask;
}

static void test_retain_when_chains_and_savepoints_then_newest_and_their_bases(void **state)
{
    (void)state;
    struct store *store = calloc(1, sizeof(*store));
    store->keep_count = 2;
    const uint64_t fulls[] = {0, 0, 0, 0, 0};
    const uint64_t chain[] = {0, 1, 2, 3, 4};
    const uint64_t mixed[] = {0, 1, 0, 3, 1}; /* 5 builds on 1, past a full one */
    const struct store_entry full = {.about = {.id = 6}};
    const struct store_entry on_five = {.about = {.id = 6, .base_id = 5}};
    const struct store_entry on_two = {.about = {.id = 6, .base_id = 2}};
    set_catalog(store, 5, fulls, 0);
    assert_int_equal(retained(store, NULL), 0x18);
    assert_int_equal(retained(store, &full), 0x10);
    assert_int_equal(retained(store, &on_two), 0x12);
    set_catalog(store, 5, fulls, 0x2);
    assert_int_equal(retained(store, &full), 0x12);
    set_catalog(store, 5, chain, 0);
    assert_int_equal(retained(store, &full), 0x1F);
    set_catalog(store, 5, mixed, 0);
    assert_int_equal(retained(store, NULL), 0x1D);
    assert_int_equal(retained(store, &on_five), 0x11);
    set_catalog(store, 5, mixed, 0x8);
    assert_int_equal(retained(store, &on_five), 0x1D);
    store->keep_count = STORE_KEEP_MAX;
    assert_int_equal(retained(store, &full), 0x1F);
    free(store);
}

/* Rots copies of the newest root until so many are left, from the last zone on. */
static void leave_copies(struct store_fixture *fixture, uint32_t count)
{
    const uint8_t rot = 0xFF;
    for (uint32_t zone = count; zone < STORE_ZONES; zone++) {
        disk_sim_poke(fixture->sim,
                      store_layout_root(&fixture->store->layout, zone, fixture->store->root_place) +
                          20,
                      &rot, 1);
    }
}

static void test_open_when_newest_root_has_one_copy_then_the_one_before_counts(void **state)
{
    (void)state;
    for (uint32_t copies = 0; copies <= STORE_ZONES; copies++) {
        struct store_fixture fixture;
        open_formatted(&fixture);
        assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
        assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
        leave_copies(&fixture, copies);
        assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
        struct store_checkpoint list[2];
        assert_int_equal(store_list(fixture.store, list, 2), copies >= STORE_AGREE ? 2 : 1);
        assert_int_equal(fixture_read(&fixture, &list[0]), 0);
        fixture_fini(&fixture);
    }
}

/* Two copies are left and one cannot be read for the moment: the checkpoint is passed over. When it
 * could be read again it must not come back, since the job went on from the one before. */
static void test_open_when_newest_was_passed_over_then_it_stays_out(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    leave_copies(&fixture, 2);
    const struct disk_sim_plan plan = {.fault_at = 3, .fault = DISK_SIM_ERROR}; /* zone 1 */
    assert_int_equal(fixture_reopen(&fixture, &plan, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    fixture_fini(&fixture);
}

/* The two newest roots stand in two zones only, neither of which can be read just now: nothing
 * of them is seen, and still they must not come back. */
static void test_open_when_a_newer_root_is_hidden_then_it_stays_out(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    leave_copies(&fixture, 2);
    assert_int_equal(fixture_write(&fixture, 1, 2), STORE_DURABLE);
    leave_copies(&fixture, 2);
    const struct disk_sim_plan plan = {
        .fault_at = 2, .fault_count = 2, .fault = DISK_SIM_ERROR}; /* zones 0 and 1 */
    assert_int_equal(fixture_reopen(&fixture, &plan, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    fixture_fini(&fixture);
}

/* The disk takes the root's writes but no flush, neither then nor for the root that takes it back:
 * nobody knows whether the checkpoint exists. Its slots must wait, should it be found. */
static void test_slots_when_a_checkpoint_is_uncertain_then_not_used_again(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    const uint64_t free_slots = store_free_slots(fixture.store);
    /* Opening: 16 requests; then 2 extents, a piece, a flush, 4 copies: 25 flushes the root. */
    const struct disk_sim_plan plan = {.fault_at = 16 + 9,
                                       .fault_count = 5,
                                       .fault = DISK_SIM_ERROR,
                                       .survival = DISK_SIM_KEEP_ALL};
    assert_int_equal(fixture_reopen(&fixture, &plan, NULL, NULL), 0);
    /* Else the numbers above are wrong. */
    assert_int_equal(disk_sim_counters(fixture.sim)->requests, 16);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_FAILED);
    assert_true(store_is_uncertain(fixture.store));
    assert_int_equal(store_free_slots(fixture.store), free_slots - 3);
    const uint64_t number = fixture_begin(&fixture, 0, 16, NULL); /* takes what it can get */
    (void)fixture_append(&fixture, number);
    store_abort(fixture.store);
    assert_int_equal(fixture_end(&fixture), STORE_FAILED);
    fixture.attempts[number].fate = ATTEMPT_FAILED;
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    assert_false(store_is_uncertain(fixture.store));
    assert_int_equal(store_free_slots(fixture.store), free_slots - 2);
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

static void test_prune_when_the_disk_fails_then_told_and_uncertain(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    disk_sim_crash(fixture.sim);
    struct error error = {0};
    assert_int_equal(store_prune(fixture.store, 1, &error), -EIO);
    assert_true(store_is_uncertain(fixture.store));
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    fixture_check(&fixture, false);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retain_when_chains_and_savepoints_then_newest_and_their_bases),
        cmocka_unit_test(test_open_when_newest_root_has_one_copy_then_the_one_before_counts),
        cmocka_unit_test(test_open_when_newest_was_passed_over_then_it_stays_out),
        cmocka_unit_test(test_open_when_a_newer_root_is_hidden_then_it_stays_out),
        cmocka_unit_test(test_slots_when_a_checkpoint_is_uncertain_then_not_used_again),
        cmocka_unit_test(test_prune_when_the_disk_fails_then_told_and_uncertain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
