/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: a crash at every request, and a fault of every kind at every request, each followed by
 * an opening whose findings are held against the model. Then the states of a checkpoint in turn. */
#include <malloc.h>

#include "store_fixture.h"

#define SLOTS           40U
#define CHECKPOINTS     12U
#define VARIANTS        6U
#define SECOND_LIFE_MAX 40U
#define BURST_MAX       30U

static const struct disk_sim_plan quiet = {.seed = 7};

/* A formatted disk to clone. */
static struct disk_sim *formatted(uint64_t seed)
{
    struct error error = {0};
    struct disk_sim *sim = fixture_disk(SLOTS, seed);
    assert_int_equal(fixture_format(sim, false, &error), 0);
    return sim;
}

static void open_quiet(struct store_fixture *fixture, const struct disk_sim_plan *plan)
{
    struct error error = {0};
    enum store_fault fault;
    if (fixture_reopen(fixture, plan, &fault, &error) != 0) {
        fail_msg("cannot open: %s (fault %d)", error.text, (int)fault);
    }
    fixture_note(fixture);
}

/* One life that ends at request number crash_at.
 * returns  whether it ended there, and not before by itself */
static bool live_until_crash(struct store_fixture *fixture, const struct disk_sim_plan *plan,
                             bool is_power_kept)
{
    const int opened = is_power_kept ? fixture_resume(fixture, plan, NULL, NULL)
                                     : fixture_reopen(fixture, plan, NULL, NULL);
    if (opened == 0 && !disk_sim_is_dead(fixture->sim)) {
        fixture_note(fixture);
        (void)fixture_work(fixture, CHECKPOINTS);
    }
    return disk_sim_is_dead(fixture->sim);
}

static bool crash_at(const struct disk_sim *base, uint64_t request, uint32_t variant)
{
    static const uint32_t survivals[VARIANTS] = {DISK_SIM_RANDOM,   DISK_SIM_RANDOM,
                                                 DISK_SIM_RANDOM,   DISK_SIM_KEEP_NONE,
                                                 DISK_SIM_KEEP_ALL, DISK_SIM_KEEP_WRITES};
    const struct disk_sim_plan first = {.seed = request * VARIANTS + variant,
                                        .latency_ns_max = 1000,
                                        .crash_at = request,
                                        .survival = survivals[variant]};
    const struct disk_sim_plan second = {.seed = first.seed + 1,
                                         .latency_ns_max = 1000,
                                         .crash_at = 1 + request % SECOND_LIFE_MAX,
                                         .survival = survivals[(variant + request) % VARIANTS]};
    struct store_fixture fixture;
    fixture_init(&fixture, disk_sim_clone(base), request * VARIANTS + variant);
    const bool has_crashed = live_until_crash(&fixture, &first, false);
    /* While it mends, or soon after. */
    (void)live_until_crash(&fixture, &second, request % 3 == 0);
    open_quiet(&fixture, &quiet);
    fixture_check(&fixture, false);
    assert_int_equal(fixture_work(&fixture, 4), 0);
    fixture_check(&fixture, false);
    open_quiet(&fixture, &quiet);
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
    return has_crashed;
}

static void test_crash_when_at_any_request_then_newest_durable_is_found(void **state)
{
    (void)state;
    uint64_t runs = 0, requests = 0;
    for (uint32_t variant = 0; variant < VARIANTS; variant++) {
        struct disk_sim *base = formatted(variant);
        for (requests = 1; crash_at(base, requests, variant); requests++) {
            runs++;
        }
        disk_sim_destroy(base);
        assert_true(requests > CHECKPOINTS * 8);
    }
    print_message("crashes at each of about %llu requests, %llu runs\n",
                  (unsigned long long)requests, (unsigned long long)runs);
}

/* A crash at each request of formatting. */
static void test_format_when_crashed_at_any_request_then_can_be_done_again(void **state)
{
    (void)state;
    bool has_crashed = true;
    for (uint64_t request = 1; has_crashed; request++) {
        struct store_fixture fixture;
        struct error error = {0};
        enum store_fault fault = STORE_FAULT_NONE;
        struct disk_sim *sim = fixture_disk(SLOTS, request);
        const struct disk_sim_plan plan = {.seed = request, .crash_at = request};
        disk_sim_restart(sim, &plan);
        const int formatted_now = fixture_format(sim, false, &error);
        has_crashed = disk_sim_is_dead(sim);
        assert_true(has_crashed == (formatted_now != 0));
        fixture_init(&fixture, sim, request);
        const int opened = fixture_reopen(&fixture, &quiet, &fault, &error);
        assert_true(opened == 0 || (has_crashed && fault == STORE_FAULT_NOT_FORMATTED));
        if (opened != 0) {
            assert_int_equal(fixture_format(sim, false, &error), 0);
            assert_int_equal(fixture_open(&fixture, &fault, &error), 0);
        }
        assert_int_equal(fixture_work(&fixture, 3), 0);
        fixture_check(&fixture, false);
        fixture_fini(&fixture);
    }
}

/* One fault at one request, and at the next ones for bursts.
 * returns  whether there was such a request */
static bool fault_at(const struct disk_sim *base, enum disk_sim_fault fault, uint64_t request,
                     uint64_t burst)
{
    const bool is_silent =
        fault == DISK_SIM_FLIP || fault == DISK_SIM_MISDIRECT || fault == DISK_SIM_LOST;
    const struct disk_sim_plan plan = {
        .seed = request, .fault_at = request, .fault = fault, .survival = DISK_SIM_KEEP_NONE};
    struct store_fixture fixture;
    struct error error = {0};
    fixture_init(&fixture, disk_sim_clone(base), request);
    if (fixture_reopen(&fixture, &plan, NULL, &error) != 0) {
        assert_int_equal(fixture_resume(&fixture, &quiet, NULL, &error), 0);
    }
    fixture_note(&fixture);
    const uint32_t failed = fixture_work(&fixture, CHECKPOINTS);
    assert_true(failed <= burst);
    assert_true(failed == 0 || fault == DISK_SIM_ERROR || fault == DISK_SIM_SHORT);
    const bool has_happened = disk_sim_counters(fixture.sim)->faults[fault] != 0;
    fixture_check(&fixture, is_silent);
    open_quiet(&fixture, &quiet); /* what was not flushed is gone */
    fixture_check(&fixture, is_silent);
    assert_int_equal(fixture_work(&fixture, 4), 0);
    open_quiet(&fixture, &quiet);
    fixture_check(&fixture, false); /* what was damaged is out */
    fixture_fini(&fixture);
    return has_happened;
}

static void test_fault_when_at_any_request_then_told_or_harmless(void **state)
{
    (void)state;
    uint64_t runs = 0;
    struct disk_sim *base = formatted(2);
    for (uint32_t fault = 1; fault < DISK_SIM_FAULT_COUNT; fault++) {
        uint64_t request = 1;
        while (fault_at(base, (enum disk_sim_fault)fault, request, 1)) {
            request++;
        }
        runs += request;
    }
    for (uint64_t burst = 2; burst < BURST_MAX; burst += 3) {
        uint64_t request = 1;
        while (fault_at(base, DISK_SIM_ERROR, request, burst)) {
            request++;
        }
        runs += request;
    }
    disk_sim_destroy(base);
    print_message("faults in %llu runs\n", (unsigned long long)runs);
}

static void open_formatted(struct store_fixture *fixture)
{
    fixture_init(fixture, formatted(1), 1);
    open_quiet(fixture, &quiet);
}

static void test_begin_when_not_allowed_then_says_why(void **state)
{
    (void)state;
    struct store_fixture fixture;
    struct error error = {0};
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    struct store_checkpoint about = {.id = 1};
    assert_int_equal(store_begin(fixture.store, &about, &error), -EINVAL);
    about = (struct store_checkpoint){.id = 5, .base_id = 3};
    assert_int_equal(store_begin(fixture.store, &about, &error), -ENOENT);
    assert_non_null(strstr(error.text, "checkpoint 3"));
    about.base_id = 1;
    assert_int_equal(store_begin(fixture.store, &about, &error), 0);
    assert_int_equal(store_begin(fixture.store, &about, &error), -EBUSY);
    store_abort(fixture.store);
    assert_int_equal(fixture_end(&fixture), STORE_FAILED);
    assert_int_equal(fixture_end(&fixture), STORE_IDLE);
    fixture_fini(&fixture);
}

static void test_begin_when_chain_is_long_then_wants_a_full_one(void **state)
{
    (void)state;
    struct store_fixture fixture;
    struct error error = {0};
    fixture_init(&fixture, fixture_disk(256, 1), 1);
    assert_int_equal(fixture_format(fixture.sim, false, &error), 0);
    assert_int_equal(fixture_open(&fixture, NULL, &error), 0);
    for (uint64_t base = 0; base < STORE_CHAIN_MAX; base++) {
        assert_int_equal(fixture_write(&fixture, base, 1), STORE_DURABLE);
    }
    const struct store_checkpoint about = {.id = 100, .base_id = STORE_CHAIN_MAX};
    assert_int_equal(store_begin(fixture.store, &about, &error), -EMLINK);
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

static void test_append_when_no_slot_is_free_then_nospc_and_others_stay(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    assert_int_equal(fixture_write(&fixture, 0, 8), STORE_DURABLE); /* and 4 pieces */
    assert_int_equal(fixture_write(&fixture, 0, 8), STORE_DURABLE);
    const uint64_t free_slots = store_free_slots(fixture.store);
    assert_int_equal(free_slots, SLOTS - STORE_ZONES - 24);
    const uint64_t number = fixture_begin(&fixture, 0, 12, NULL);
    assert_int_equal(fixture_append(&fixture, number), -ENOSPC);
    store_abort(fixture.store);
    assert_int_equal(fixture_end(&fixture), STORE_FAILED);
    fixture.attempts[number].fate = ATTEMPT_FAILED;
    assert_int_equal(store_free_slots(fixture.store), free_slots);
    fixture_check(&fixture, false);
    assert_int_equal(fixture_write(&fixture, 2, 4), STORE_DURABLE); /* small ones go on */
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

static void test_abort_when_committing_then_revoked(void **state)
{
    (void)state;
    for (uint32_t polls = 0; polls < 8; polls++) {
        struct store_fixture fixture;
        uint64_t tags[8];
        uint32_t count;
        open_formatted(&fixture);
        assert_int_equal(fixture_write(&fixture, 0, 2), STORE_DURABLE);
        const uint64_t number = fixture_begin(&fixture, 1, 3, NULL);
        assert_int_equal(fixture_append(&fixture, number), 0);
        store_commit(fixture.store, 0);
        enum store_state now = STORE_COMMITTING;
        for (uint32_t poll = 0; poll < polls && now == STORE_COMMITTING; poll++) {
            now = store_poll(fixture.store, tags, 8, &count, NANOSECONDS_PER_S);
        }
        store_abort(fixture.store);
        now = now == STORE_COMMITTING ? fixture_end(&fixture) : now;
        fixture.attempts[number].fate = now == STORE_FAILED ? ATTEMPT_FAILED : ATTEMPT_DURABLE;
        assert_false(store_is_uncertain(fixture.store));
        open_quiet(&fixture, &quiet);
        fixture_check(&fixture, false);
        assert_true((store_list(fixture.store, NULL, 0) == 2) == (now == STORE_DURABLE));
        fixture_fini(&fixture);
    }
}

static void test_poll_when_disk_is_slow_then_tags_come_back_once(void **state)
{
    (void)state;
    struct store_fixture fixture;
    const struct disk_sim_plan slow = {
        .seed = 3, .latency_ns_min = 100000000, .latency_ns_max = 200000000};
    fixture_init(&fixture, formatted(1), 1);
    open_quiet(&fixture, &slow);
    const uint64_t number = fixture_begin(&fixture, 0, 12, NULL);
    uint32_t seen = 0, count;
    uint64_t tags[3];
    for (uint32_t index = 0; index < 12;) {
        uint8_t *extent = fixture.buffers + (size_t)index * EXTENT_BYTES;
        (void)fixture_extent(number, 1, index, extent);
        const int status = store_append(fixture.store, extent, index);
        assert_true(status == 0 || status == -EAGAIN);
        index += status == 0;
        assert_int_equal(store_poll(fixture.store, tags, 3, &count, status == 0 ? 0 : 50000000),
                         STORE_WRITING);
        for (uint32_t tag = 0; tag < count; tag++) {
            assert_int_equal(seen >> tags[tag] & 1, 0);
            seen |= 1U << tags[tag];
        }
    }
    store_commit(fixture.store, 0);
    enum store_state now;
    while ((now = store_poll(fixture.store, tags, 3, &count, 50000000)) == STORE_COMMITTING) {
        for (uint32_t tag = 0; tag < count; tag++) {
            assert_int_equal(seen >> tags[tag] & 1, 0);
            seen |= 1U << tags[tag];
        }
    }
    assert_int_equal(now, STORE_DURABLE);
    assert_int_equal(seen, (1U << 12) - 1);
    fixture_fini(&fixture);
}

static void test_root_when_a_place_is_bad_then_another_is_taken(void **state)
{
    (void)state;
    struct store_fixture fixture;
    open_formatted(&fixture);
    const uint32_t place = fixture.store->root_place;
    fixture.store->root_places_bad = 0xF & ~(1U << place | 1U << (place + 3) % STORE_PLACES);
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    assert_int_equal(fixture.store->root_place, (place + 3) % STORE_PLACES);
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    assert_int_equal(fixture.store->root_place, place);
    fixture.store->root_places_bad = 0xF;
    assert_int_equal(fixture_write(&fixture, 0, 1), STORE_DURABLE);
    open_quiet(&fixture, &quiet);
    fixture_check(&fixture, false);
    fixture_fini(&fixture);
}

int main(void)
{
    /* Buffers come and go with each opening: mapping them anew is most of the time. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin_when_not_allowed_then_says_why),
        cmocka_unit_test(test_begin_when_chain_is_long_then_wants_a_full_one),
        cmocka_unit_test(test_append_when_no_slot_is_free_then_nospc_and_others_stay),
        cmocka_unit_test(test_abort_when_committing_then_revoked),
        cmocka_unit_test(test_poll_when_disk_is_slow_then_tags_come_back_once),
        cmocka_unit_test(test_root_when_a_place_is_bad_then_another_is_taken),
        cmocka_unit_test(test_format_when_crashed_at_any_request_then_can_be_done_again),
        cmocka_unit_test(test_crash_when_at_any_request_then_newest_durable_is_found),
        cmocka_unit_test(test_fault_when_at_any_request_then_told_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
