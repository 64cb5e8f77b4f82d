/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, listing, retention and pruning; what disks of another kind get. */
#include "store_fixture.h"

#define SLOTS 64U

static const struct disk_sim_plan quiet = {.seed = 7};

static void open_formatted(struct store_fixture *fixture, uint32_t slots)
{
    struct error error = {0};
    fixture_init(fixture, fixture_disk(slots, 1), 1);
    assert_int_equal(fixture_format(fixture->sim, false, &error), 0);
    assert_int_equal(fixture_open(fixture, NULL, &error), 0);
}

static void expect_fault(struct store_fixture *fixture, enum store_fault expected,
                         const char *words)
{
    enum store_fault fault;
    struct error error = {0};
    assert_true(fixture_reopen(fixture, &quiet, &fault, &error) < 0);
    assert_int_equal(fault, expected);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
}

static void test_open_when_zero_then_not_formatted(void **state)
{
    (void)state;
    struct store_fixture fixture;
    fixture_init(&fixture, fixture_disk(SLOTS, 1), 1);
    expect_fault(&fixture, STORE_FAULT_NOT_FORMATTED, "not formatted");
    fixture_fini(&fixture);
}

static void test_open_when_fresh_then_empty(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(store_list(fixture.store, NULL, 0), 0);
    assert_int_equal(store_free_slots(fixture.store), SLOTS - STORE_ZONES);
    assert_int_equal(store_next_id(fixture.store), 1);
    assert_false(store_is_uncertain(fixture.store));
    fixture_fini(&fixture);
}

static void test_reopen_when_written_then_reads_back(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(fixture_write(&fixture, 0, 5), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 1, 1), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 2, 16), STORE_DURABLE);
    fixture_check(&fixture, false);
    const uint64_t free_slots = store_free_slots(fixture.store);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    fixture_check(&fixture, false);
    assert_int_equal(store_free_slots(fixture.store), free_slots);
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    assert_int_equal(store_list(fixture.store, list, STORE_CHECKPOINTS_MAX), 3);
    assert_int_equal(list[0].id, 3);
    assert_int_equal(list[0].base_id, 2);
    assert_int_equal(list[0].extent_count, 16);
    assert_int_equal(list[0].duration_ns, 1000);
    assert_string_equal(list[2].label, "model");
    struct store_checkpoint found = {0};
    assert_true(store_find(fixture.store, 3, &found));
    assert_memory_equal(&found, &list[0], sizeof(found));
    assert_false(store_find(fixture.store, 4, &found));
    assert_int_equal(found.id, 3);
    fixture_fini(&fixture);
}

static void test_retention_when_chain_is_superseded_then_slots_come_back(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    const uint64_t all = store_free_slots(fixture.store);
    for (uint32_t round = 0; round < 100; round++) { /* many times round the disk */
        assert_int_equal(fixture_write_next(&fixture), STORE_DURABLE);
        fixture_check(&fixture, false);
        assert_true(store_list(fixture.store, NULL, 0) <= 3 + STORE_KEEP_MIN);
    }
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    assert_int_equal(store_list(fixture.store, NULL, 0), 2);
    assert_int_equal(store_free_slots(fixture.store), all - 2 * 3);
    fixture_fini(&fixture);
}

static uint64_t write_savepoint(struct store_fixture *fixture)
{
    const struct store_checkpoint about = {.id = store_next_id(fixture->store), .is_savepoint = 1};
    assert_int_equal(store_begin(fixture->store, &about, NULL), 0);
    store_commit(fixture->store, 0);
    assert_int_equal(fixture_end(fixture), STORE_DURABLE);
    return about.id;
}

static void test_savepoint_when_many_follow_then_stays_until_pruned(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    const uint64_t id = write_savepoint(&fixture);
    for (uint32_t round = 0; round < 10; round++) {
        assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
    }
    assert_int_equal(store_list(fixture.store, list, STORE_CHECKPOINTS_MAX), 3);
    assert_int_equal(list[2].id, id);
    assert_int_equal(store_prune(fixture.store, id, NULL), 0);
    assert_int_equal(store_prune(fixture.store, id, NULL), -ENOENT);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, list, STORE_CHECKPOINTS_MAX), 2);
    fixture_fini(&fixture);
}

static void test_begin_when_too_many_savepoints_then_refused(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, 256);
    for (uint32_t count = 0; count < STORE_CHECKPOINTS_MAX; count++) {
        (void)write_savepoint(&fixture);
    }
    struct error error = {0};
    const struct store_checkpoint about = {.id = store_next_id(fixture.store)};
    assert_int_equal(store_begin(fixture.store, &about, &error), -ENOSPC);
    assert_non_null(strstr(error.text, "prune"));
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), STORE_CHECKPOINTS_MAX);
    fixture_fini(&fixture);
}

static void test_prune_when_others_build_on_it_then_they_go_too(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    fixture.keep_count = STORE_KEEP_MAX;
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    const uint64_t all = store_free_slots(fixture.store);
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    const uint64_t after_one = store_free_slots(fixture.store);
    assert_int_equal(after_one, all - 2);
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 2, 1), STORE_DURABLE);
    assert_int_equal(fixture_write(&fixture, 3, 1), STORE_DURABLE);
    assert_int_equal(store_prune(fixture.store, 2, NULL), 0);
    assert_int_equal(store_list(fixture.store, NULL, 0), 1);
    assert_int_equal(store_free_slots(fixture.store), after_one);
    assert_int_equal(store_next_id(fixture.store), 5); /* ids never come again */
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    assert_int_equal(store_next_id(fixture.store), 5);
    fixture_fini(&fixture);
}

static void test_open_when_copied_to_another_device_then_refused_unless_told(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(fixture_write(&fixture, 0, 5), STORE_DURABLE);
    store_close(fixture.store);
    fixture.store = NULL;
    disk_sim_reshape(fixture.sim, (uint64_t)SLOTS * EXTENT_BYTES, FIXTURE_IDENTITY + 1);
    expect_fault(&fixture, STORE_FAULT_DEVICE, "copied");
    const struct store_config config = {
        .disk = disk_sim_disk(fixture.sim), .keep_count = 2, .is_moved = true};
    assert_int_equal(store_open(&config, &fixture.store, NULL, NULL), 0);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0); /* now it is at home */
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

static void test_open_when_truncated_or_grown_then_told_or_fine(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(fixture_write(&fixture, 0, 5), STORE_DURABLE);
    store_close(fixture.store);
    fixture.store = NULL;
    disk_sim_reshape(fixture.sim, (uint64_t)(SLOTS + 9) * EXTENT_BYTES, FIXTURE_IDENTITY);
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    fixture_check(&fixture, false);
    store_close(fixture.store);
    fixture.store = NULL;
    disk_sim_reshape(fixture.sim, (uint64_t)(SLOTS - 9) * EXTENT_BYTES, FIXTURE_IDENTITY);
    expect_fault(&fixture, STORE_FAULT_DAMAGED, "cut short");
    disk_sim_reshape(fixture.sim, (uint64_t)3 * EXTENT_BYTES, FIXTURE_IDENTITY);
    expect_fault(&fixture, STORE_FAULT_NOT_FORMATTED, "cannot hold");
    fixture_fini(&fixture);
}

/* Pokes a superblock of version 2, whole by its own checksum, into so many zones. */
static void poke_version(struct store_fixture *fixture, uint32_t zones)
{
    uint8_t block[STORE_BLOCK_BYTES];
    for (uint32_t zone = 0; zone < zones; zone++) {
        const uint64_t offset = store_layout_slot(fixture->store->layout.zone_slots[zone]);
        struct store_superblock head;
        disk_sim_peek(fixture->sim, offset, block, sizeof(block));
        memcpy(&head, block, sizeof(head));
        head.version = 2;
        memcpy(block, &head, sizeof(head));
        head.sum = checksum_of(block + sizeof(head.sum), sizeof(block) - sizeof(head.sum));
        memcpy(block, &head, sizeof(head));
        disk_sim_poke(fixture->sim, offset, block, sizeof(block));
    }
}

static void test_open_when_other_version_then_said_so(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    poke_version(&fixture, STORE_ZONES);
    expect_fault(&fixture, STORE_FAULT_VERSION, "version 2");
    struct error error = {0};
    assert_int_equal(fixture_format(fixture.sim, false, &error), -EEXIST);
    assert_non_null(strstr(error.text, "version 2"));
    fixture_fini(&fixture);
}

static void test_open_when_superblocks_rot_then_two_suffice_and_are_mended(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(fixture_write(&fixture, 0, 5), STORE_DURABLE);
    const uint8_t rot[40] = {1, 2, 3};
    const struct store_layout layout = fixture.store->layout;
    disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[0]), rot, sizeof(rot));
    disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[2]), rot, sizeof(rot));
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    fixture_check(&fixture, false);
    disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[1]), rot, sizeof(rot));
    disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[3]), rot, sizeof(rot));
    assert_int_equal(fixture_reopen(&fixture, &quiet, NULL, NULL), 0);
    fixture_check(&fixture, false);
    for (uint32_t zone = 0; zone < 3; zone++) {
        disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[zone]), rot, sizeof(rot));
    }
    expect_fault(&fixture, STORE_FAULT_DAMAGED, "only 1");
    fixture_fini(&fixture);
}

static void test_open_when_superblocks_are_swapped_then_they_do_not_count(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    const struct store_layout layout = fixture.store->layout;
    uint8_t blocks[STORE_ZONES][STORE_BLOCK_BYTES];
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        disk_sim_peek(fixture.sim, store_layout_slot(layout.zone_slots[zone]), blocks[zone],
                      STORE_BLOCK_BYTES);
    }
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        disk_sim_poke(fixture.sim, store_layout_slot(layout.zone_slots[zone]),
                      blocks[(zone + 1) % STORE_ZONES], STORE_BLOCK_BYTES);
    }
    expect_fault(&fixture, STORE_FAULT_FOREIGN, "no checkpoints");
    fixture_fini(&fixture);
}

static void test_open_when_read_only_then_nothing_is_written(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture, SLOTS);
    assert_int_equal(fixture_write(&fixture, 0, 5), STORE_DURABLE);
    store_close(fixture.store);
    const uint64_t writes = disk_sim_counters(fixture.sim)->writes;
    const uint8_t rot[8] = {1};
    disk_sim_poke(fixture.sim, 0, rot, sizeof(rot)); /* something to mend */
    const struct store_config config = {
        .disk = disk_sim_disk(fixture.sim), .keep_count = 2, .is_read_only = true};
    assert_int_equal(store_open(&config, &fixture.store, NULL, NULL), 0);
    const struct store_checkpoint about = {.id = 2};
    assert_int_equal(store_begin(fixture.store, &about, NULL), -EROFS);
    assert_int_equal(store_prune(fixture.store, 1, NULL), -EROFS);
    fixture_check(&fixture, false);
    assert_int_equal(disk_sim_counters(fixture.sim)->writes, writes);
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_when_zero_then_not_formatted),
        cmocka_unit_test(test_open_when_fresh_then_empty),
        cmocka_unit_test(test_reopen_when_written_then_reads_back),
        cmocka_unit_test(test_retention_when_chain_is_superseded_then_slots_come_back),
        cmocka_unit_test(test_savepoint_when_many_follow_then_stays_until_pruned),
        cmocka_unit_test(test_begin_when_too_many_savepoints_then_refused),
        cmocka_unit_test(test_prune_when_others_build_on_it_then_they_go_too),
        cmocka_unit_test(test_open_when_copied_to_another_device_then_refused_unless_told),
        cmocka_unit_test(test_open_when_truncated_or_grown_then_told_or_fine),
        cmocka_unit_test(test_open_when_other_version_then_said_so),
        cmocka_unit_test(test_open_when_superblocks_rot_then_two_suffice_and_are_mended),
        cmocka_unit_test(test_open_when_superblocks_are_swapped_then_they_do_not_count),
        cmocka_unit_test(test_open_when_read_only_then_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
