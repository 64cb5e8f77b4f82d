/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator on a store in memory and lanes that are played by hand: order of events, faults
 * of lane, store and time, bases and chains, requests and reports. */
#include "state/checkpoint.h"

#include <pthread.h>

#include "tests/state/world.h"

struct rig {
    struct store *store;
    struct world_config config;
    struct world *world;
    bool is_stopped; /* atomic */
};

static void rig_open_at(struct rig *rig, uint32_t lane_count, uint32_t full_every)
{
    rig->store = fake_store_create();
    rig->config = (struct world_config){.store = rig->store,
                                        .lane_count = lane_count,
                                        .buffer_count = 16,
                                        .full_every = full_every,
                                        .first_id = 10,
                                        .seed = 5};
    rig->world = malloc(sizeof(*rig->world));
    assert_non_null(rig->world);
    world_open(rig->world, &rig->config);
    world_start(rig->world, &rig->config);
    world_run(rig->world, 1000);
}

static void rig_open(struct rig *rig)
{
    rig_open_at(rig, 2, 3);
}

static void rig_close(struct rig *rig)
{
    world_close(rig->world);
    free(rig->world);
    fake_store_destroy(rig->store);
}

/* Replaces the coordinator by one with other settings. */
static void restart(struct rig *rig, const struct checkpoint_config *with)
{
    struct checkpoint_config config = *with;
    struct error error = {0};
    checkpoint_destroy(rig->world->checkpoint);
    config.store = rig->store;
    config.lanes = rig->world->snapshots;
    config.lane_count = rig->world->lane_count;
    config.shard_count = WORLD_SHARDS;
    assert_int_equal(checkpoint_create(&config, &rig->world->checkpoint, &error), 0);
}

/* Restores an id into a fresh world and compares it with the last cuts. */
static void restore_check(struct rig *rig, uint64_t id)
{
    struct world *other = malloc(sizeof(*other));
    struct restore_report report;
    struct error error = {0};
    assert_non_null(other);
    world_open(other, &rig->config);
    assert_int_equal(world_restore(other, id, &report, &error), 0);
    world_compare(other, &rig->world->cut);
    world_close(other);
    free(other);
}

static void test_chain_then_full_every_third_and_reports_add_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    uint64_t bytes = 0;
    for (uint32_t round = 0; round < 7; round++) {
        const struct checkpoint_report report = world_checkpoint(rig.world, 5);
        assert_int_equal(report.id, 10 + round);
        assert_int_equal(report.result, CHECKPOINT_COMPLETE);
        assert_int_equal(report.base_id, round % 3 == 0 ? 0 : report.id - 1);
        assert_true(report.alignment_ns != 0 && report.duration_ns >= report.alignment_ns);
        assert_true(report.pages != 0);
        const struct fake_checkpoint *stored = fake_store_find(rig.store, report.id);
        assert_non_null(stored);
        assert_int_equal(stored->entry.bytes, report.bytes);
        assert_int_equal(stored->entry.lane_count, 2);
        assert_int_equal(stored->entry.shard_count, WORLD_SHARDS);
        assert_string_equal(stored->entry.label, "world");
        assert_false(report.is_savepoint || stored->entry.is_savepoint);
        bytes += report.bytes;
    }
    const struct checkpoint_counters *counters = checkpoint_counters(rig.world->checkpoint);
    assert_int_equal(counters->complete, 7);
    assert_int_equal(counters->failed, 0);
    assert_int_equal(counters->bytes, bytes);
    assert_int_equal(counters->last_complete_id, 16);
    restore_check(&rig, 16);
    rig_close(&rig);
}

static void test_failed_write_then_reported_and_the_next_builds_on_the_old_base(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_COMPLETE);
    for (uint32_t nth = 1; nth <= 4; nth++) {
        world_run(rig.world, 100);
        rig.store->fail_append_in = nth;
        const struct checkpoint_report failed = world_checkpoint(rig.world, 5);
        rig.store->fail_append_in = 0;
        if (failed.result == CHECKPOINT_COMPLETE) {
            break; /* it had fewer extents */
        }
        assert_int_equal(failed.result, CHECKPOINT_FAILED_DISK);
        assert_true(failed.reason[0] != '\0');
        assert_int_equal(failed.base_id, 10);
        assert_null(fake_store_find(rig.store, failed.id));
    }
    world_run(rig.world, 100);
    const struct checkpoint_report report = world_checkpoint(rig.world, 5);
    assert_int_equal(report.result, CHECKPOINT_COMPLETE);
    assert_int_equal(report.base_id, 10);
    restore_check(&rig, report.id);
    assert_int_equal(checkpoint_counters(rig.world->checkpoint)->failed_in_a_row, 0);
    rig_close(&rig);
}

static void test_failed_commit_then_in_trouble_after_three(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.store->fail_commit = true;
    for (uint32_t round = 0; round < 3; round++) {
        assert_false(checkpoint_is_in_trouble(rig.world->checkpoint));
        assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_FAILED_DISK);
    }
    assert_true(checkpoint_is_in_trouble(rig.world->checkpoint));
    rig.store->fail_commit = false;
    const struct checkpoint_report report = world_checkpoint(rig.world, 5);
    assert_int_equal(report.result, CHECKPOINT_COMPLETE);
    assert_int_equal(report.base_id, 0); /* none was ever complete */
    assert_false(checkpoint_is_in_trouble(rig.world->checkpoint));
    restore_check(&rig, report.id);
    rig_close(&rig);
}

static void test_no_slots_then_failed_full(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.store->slots_left = 2;
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_FAILED_FULL);
    rig.store->slots_left = 0;
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_FAILED_FULL);
    rig.store->slots_left = UINT32_MAX;
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_COMPLETE);
    restore_check(&rig, 12);
    rig_close(&rig);
}

static void test_disk_that_takes_little_at_once_then_complete(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.store->in_flight_max = 1;
    rig.store->completions_max = 1;
    rig.store->commit_polls = 20;
    world_run(rig.world, 3000);
    assert_int_equal(world_checkpoint(rig.world, 1).result, CHECKPOINT_COMPLETE);
    restore_check(&rig, 10);
    rig_close(&rig);
}

static void test_lane_that_runs_out_of_buffers_then_failed_staging(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_at(&rig, 1, 3);
    for (uint32_t count = 0; count < 16 * EXTENT_IMAGES_MAX; count++) {
        assert_int_not_equal(arena_page_acquire(rig.world->lanes[0].arena, 0, ARENA_PAGE_BLOB), 0);
    }
    const uint32_t last = rig.world->lanes[0].arena->page_fresh - 1U;
    rig.store->completions_max = 0; /* nothing comes back */
    checkpoint_request(rig.world->checkpoint, false);
    world_turn(rig.world, 0);
    for (uint32_t turn = 0; turn < 10; turn++) {
        world_turn(rig.world, 0);
    }
    for (uint32_t page = last; page > last - 16 * EXTENT_IMAGES_MAX; page--) {
        (void)arena_write(rig.world->lanes[0].arena, page);
    }
    for (uint32_t turn = 0; turn < 10; turn++) {
        world_turn(rig.world, 0);
    }
    struct checkpoint_report report;
    assert_false(checkpoint_report(rig.world->checkpoint, &report)); /* writes are in flight */
    rig.store->completions_max = 64;
    while (!checkpoint_report(rig.world->checkpoint, &report)) {
        world_turn(rig.world, 0);
    }
    assert_int_equal(report.result, CHECKPOINT_FAILED_STAGING);
    assert_int_equal(snapshot_counters(rig.world->snapshots[0])->given_up, 1);
    assert_int_equal(world_checkpoint(rig.world, 0).result, CHECKPOINT_COMPLETE);
    rig_close(&rig);
}

static void test_lane_that_does_not_answer_then_timeout_and_no_harm(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct checkpoint_config config = {
        .timeout_ns = 5000, .full_every = 3, .failures_max = 2, .first_id = 20};
    restart(&rig, &config);
    checkpoint_request(rig.world->checkpoint, false);
    uint64_t now_ns = 100;
    struct checkpoint_report report;
    while (!checkpoint_report(rig.world->checkpoint, &report)) {
        (void)checkpoint_poll(rig.world->checkpoint, now_ns, 0); /* lanes do nothing */
        now_ns += 100;
    }
    assert_int_equal(report.result, CHECKPOINT_FAILED_TIMEOUT);
    assert_true(now_ns > 5100 && now_ns < 5600);
    config = (struct checkpoint_config){
        .timeout_ns = UINT64_C(1) << 40, .full_every = 3, .failures_max = 2, .first_id = 30};
    while (!checkpoint_is_idle(rig.world->checkpoint)) {
        (void)checkpoint_poll(rig.world->checkpoint, now_ns, 0);
    }
    restart(&rig, &config);
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_COMPLETE);
    restore_check(&rig, 30);
    rig_close(&rig);
}

static void test_abandon_when_lanes_have_stopped_then_idle_and_the_store_goes_on(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct checkpoint_config config = {.timeout_ns = UINT64_C(1) << 40,
                                       .interval_ns = 1000,
                                       .full_every = 3,
                                       .failures_max = 2,
                                       .first_id = 20};
    restart(&rig, &config);
    checkpoint_request(rig.world->checkpoint, true);
    (void)checkpoint_poll(rig.world->checkpoint, 100, 0); /* ordered; no lane will ever cut */
    assert_false(checkpoint_is_idle(rig.world->checkpoint));
    checkpoint_request(rig.world->checkpoint, false);
    checkpoint_abandon(rig.world->checkpoint);
    for (uint32_t turn = 0; turn < 100; turn++) {
        (void)checkpoint_poll(rig.world->checkpoint, 1000000 + turn, 0);
    }
    assert_true(checkpoint_is_idle(rig.world->checkpoint));
    struct checkpoint_report report;
    assert_true(checkpoint_report(rig.world->checkpoint, &report));
    assert_int_equal(report.id, 20);
    assert_int_equal(report.result, CHECKPOINT_FAILED_ABANDONED);
    assert_false(checkpoint_report(rig.world->checkpoint, &report)); /* none was begun after */
    config.first_id = 30;
    restart(&rig, &config);
    assert_int_equal(world_checkpoint(rig.world, 5).result, CHECKPOINT_COMPLETE);
    rig_close(&rig);
}

static void test_interval_then_checkpoints_begin_at_it_and_hold_stops_them(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    const struct checkpoint_config config = {.timeout_ns = UINT64_C(1) << 40,
                                             .interval_ns = 100000,
                                             .pause_ns = 10000,
                                             .full_every = 3,
                                             .failures_max = 2,
                                             .first_id = 20};
    restart(&rig, &config);
    const uint64_t start_ns = rig.world->now_ns;
    uint64_t last_ns = 0;
    for (uint32_t count = 0; count < 4;) {
        struct checkpoint_report report;
        world_turn(rig.world, 0);
        if (checkpoint_report(rig.world->checkpoint, &report)) {
            assert_true(report.began_ns >= start_ns + 100000);
            assert_true(last_ns == 0 || report.began_ns >= last_ns + 100000);
            assert_true(last_ns == 0 || report.began_ns < last_ns + 110000);
            last_ns = report.began_ns;
            count++;
        }
    }
    checkpoint_hold(rig.world->checkpoint);
    for (uint32_t turn = 0; turn < 500; turn++) {
        world_turn(rig.world, 0);
    }
    struct checkpoint_report report;
    assert_false(checkpoint_report(rig.world->checkpoint, &report));
    assert_true(checkpoint_is_idle(rig.world->checkpoint));
    checkpoint_request(rig.world->checkpoint, true);
    assert_false(checkpoint_is_idle(rig.world->checkpoint));
    while (!checkpoint_report(rig.world->checkpoint, &report)) {
        world_turn(rig.world, 0);
    }
    assert_true(report.is_savepoint);
    assert_true(fake_store_find(rig.store, report.id)->entry.is_savepoint);
    rig_close(&rig);
}

static void test_idle_then_scrubs_and_a_damaged_base_makes_the_next_full(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(world_checkpoint(rig.world, 0).result, CHECKPOINT_COMPLETE);
    rig.store->scrub_finds = true;
    for (uint32_t turn = 0; turn < 100; turn++) {
        rig.world->now_ns += 1000000;
        world_turn(rig.world, 0);
    }
    const struct checkpoint_counters *counters = checkpoint_counters(rig.world->checkpoint);
    assert_true(counters->scrubbed_extents >= 4 && counters->scrubbed_extents <= 6);
    assert_int_equal(counters->scrub_faults, 1);
    const struct checkpoint_report report = world_checkpoint(rig.world, 0);
    assert_int_equal(report.result, CHECKPOINT_COMPLETE);
    assert_int_equal(report.base_id, 0);
    restore_check(&rig, report.id);
    rig_close(&rig);
}

static void test_reports_that_nobody_takes_then_the_oldest_are_lost(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_at(&rig, 1, 1);
    rig.store->slots_left = 0;
    for (uint32_t count = 0; count < CHECKPOINT_REPORTS_MAX + 6; count++) {
        checkpoint_request(rig.world->checkpoint, false);
        while (!checkpoint_is_idle(rig.world->checkpoint)) {
            (void)checkpoint_poll(rig.world->checkpoint, 1, 0);
        }
    }
    struct checkpoint_report report;
    for (uint32_t count = 0; count < CHECKPOINT_REPORTS_MAX; count++) {
        assert_true(checkpoint_report(rig.world->checkpoint, &report));
        assert_int_equal(report.id, 10 + 6 + count);
    }
    assert_false(checkpoint_report(rig.world->checkpoint, &report));
    rig_close(&rig);
}

/* The storage thread of the test below. */
static void *storage_run(void *context)
{
    struct rig *rig = context;
    uint64_t now_ns = 1;
    while (!__atomic_load_n(&rig->is_stopped, __ATOMIC_ACQUIRE) ||
           !checkpoint_is_idle(rig->world->checkpoint)) {
        now_ns += 1000;
        (void)checkpoint_poll(rig->world->checkpoint, now_ns, 0);
    }
    return NULL;
}

static void test_lane_and_storage_in_two_threads_then_complete_and_exact(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_open_at(&rig, 1, 4);
    rig.store->in_flight_max = 3;
    pthread_t storage;
    assert_int_equal(pthread_create(&storage, NULL, storage_run, &rig), 0);
    struct checkpoint_report report = {0};
    for (uint32_t round = 0; round < 25; round++) {
        checkpoint_request(rig.world->checkpoint, false);
        while (!checkpoint_report(rig.world->checkpoint, &report)) {
            rig.world->now_ns += 1000;
            world_lane_turn(rig.world, 0, 3);
        }
        assert_int_equal(report.result, CHECKPOINT_COMPLETE);
    }
    __atomic_store_n(&rig.is_stopped, true,
                     __ATOMIC_RELEASE); /* pairs with storage_run's acquire */
    assert_int_equal(pthread_join(storage, NULL), 0);
    assert_int_equal(checkpoint_counters(rig.world->checkpoint)->complete, 25);
    restore_check(&rig, report.id);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_then_full_every_third_and_reports_add_up),
        cmocka_unit_test(test_failed_write_then_reported_and_the_next_builds_on_the_old_base),
        cmocka_unit_test(test_failed_commit_then_in_trouble_after_three),
        cmocka_unit_test(test_no_slots_then_failed_full),
        cmocka_unit_test(test_disk_that_takes_little_at_once_then_complete),
        cmocka_unit_test(test_lane_that_runs_out_of_buffers_then_failed_staging),
        cmocka_unit_test(test_lane_that_does_not_answer_then_timeout_and_no_harm),
        cmocka_unit_test(test_abandon_when_lanes_have_stopped_then_idle_and_the_store_goes_on),
        cmocka_unit_test(test_interval_then_checkpoints_begin_at_it_and_hold_stops_them),
        cmocka_unit_test(test_idle_then_scrubs_and_a_damaged_base_makes_the_next_full),
        cmocka_unit_test(test_reports_that_nobody_takes_then_the_oldest_are_lost),
        cmocka_unit_test(test_lane_and_storage_in_two_threads_then_complete_and_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
