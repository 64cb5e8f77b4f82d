/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of a checkpoint store on a disk that fails by seed: each seed draws a disk, then lives in
 * which requests fail, come short, stall, go astray or flip bits, that end by a power failure, a
 * killed process or a clean stop. After each, what the next opening finds is held against a model
 * kept outside (store_fixture.h); with faults that no completion tells, nothing may be wrong, but
 * something may be missing.
 *
 *     sim_store [--seeds N] [--from SEED]     PENSTOCK_SIM_SEEDS overrides N */
#include <malloc.h>

#include "tests/sim/seed_watch.h"
#include "tests/state/store_fixture.h"

#define LIVES_MAX    6U
#define OPENINGS_MAX 10U

struct totals {
    uint64_t seeds;
    uint64_t lives;
    uint64_t requests;
    uint64_t durable;
    uint64_t failed;
    uint64_t uncertain;
    uint64_t damaged;
    uint64_t lost_stores; /* that silent faults made unreadable */
    uint64_t crashes;
    uint64_t faults[DISK_SIM_FAULT_COUNT];
};

static struct store_fixture the_fixture;
static uint64_t seed_from;
static uint64_t seed_count;
static struct totals totals;

static const struct disk_sim_plan quiet = {.seed = 1};

/* Odds of 1 in 2^(least) to 1 in 2^(least + 6), or none. */
static uint32_t draw_odds(struct store_fixture *fixture, uint32_t least)
{
    if (fixture_below(fixture, 2) == 0) {
        return 0;
    }
    return DISK_SIM_ODDS_ONE >> (least + fixture_below(fixture, 7));
}

static void draw_plan(struct store_fixture *fixture, struct disk_sim_plan *plan, bool may_lie)
{
    *plan = (struct disk_sim_plan){.seed = fixture_random(fixture),
                                   .survival = fixture_below(fixture, 4)};
    plan->latency_ns_max = fixture_below(fixture, 2) == 0 ? 0 : fixture_below(fixture, 200000000);
    if (fixture_below(fixture, 4) != 0) {
        plan->crash_at = 1 + fixture_below(fixture, 150);
    }
    plan->odds[DISK_SIM_ERROR] = draw_odds(fixture, 1);
    plan->odds[DISK_SIM_SHORT] = draw_odds(fixture, 3);
    plan->odds[DISK_SIM_STALL] = draw_odds(fixture, 4);
    if (may_lie) {
        plan->odds[DISK_SIM_FLIP] = draw_odds(fixture, 5);
        plan->odds[DISK_SIM_MISDIRECT] = draw_odds(fixture, 6);
        plan->odds[DISK_SIM_LOST] = draw_odds(fixture, 6);
    }
}

/* Faults so far that completions told. */
static uint64_t count_told(const struct store_fixture *fixture)
{
    const uint64_t *faults = disk_sim_counters(fixture->sim)->faults;
    return faults[DISK_SIM_ERROR] + faults[DISK_SIM_SHORT];
}

/* Opens until it works, the disk dies, or patience ends.
 * returns  whether a store is open */
static bool open_store(struct store_fixture *fixture, bool is_power_kept,
                       const struct disk_sim_plan *plan)
{
    struct error error = {0};
    const uint64_t before = count_told(fixture);
    int status = is_power_kept ? fixture_resume(fixture, plan, NULL, &error)
                               : fixture_reopen(fixture, plan, NULL, &error);
    for (uint32_t tries = 0; status != 0 && tries < OPENINGS_MAX; tries++) {
        assert_true(error.text[0] != '\0');
        if (count_told(fixture) - before >= STORE_READ_TRIES) {
            fixture->durable_number = 0; /* it may have been unreadable, and passed over for good */
        }
        if (disk_sim_is_dead(fixture->sim)) {
            return false;
        }
        status = fixture_open(fixture, NULL, &error);
    }
    if (status != 0) {
        return false;
    }
    totals.damaged += store_damaged(fixture->store, NULL);
    fixture_note(fixture);
    return true;
}

static void prune_one(struct store_fixture *fixture)
{
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    const uint32_t count = store_list(fixture->store, list, STORE_CHECKPOINTS_MAX);
    if (count != 0) {
        (void)store_prune(fixture->store, list[fixture_below(fixture, count)].id, NULL);
        fixture->durable_number = 0; /* it may have been that one */
        fixture_note(fixture);
    }
}

/* What a process does until it ends. */
static void work(struct store_fixture *fixture)
{
    const uint32_t steps = fixture_below(fixture, 16);
    for (uint32_t step = 0; step < steps && !disk_sim_is_dead(fixture->sim); step++) {
        const uint32_t what = fixture_below(fixture, 16);
        if (what == 0) {
            prune_one(fixture);
        } else if (what < 3) {
            (void)store_scrub(fixture->store);
            fixture->durable_number =
                store_damaged(fixture->store, NULL) != 0 ? 0 : fixture->durable_number;
            fixture_note(fixture);
        } else {
            const enum store_state state = fixture_write_next(fixture);
            totals.durable += state == STORE_DURABLE;
            totals.failed += state == STORE_FAILED;
            totals.uncertain += store_is_uncertain(fixture->store);
        }
    }
}

static void add_up(struct store_fixture *fixture)
{
    const struct disk_sim_counters *counters = disk_sim_counters(fixture->sim);
    totals.seeds++;
    totals.requests += fixture->requests;
    totals.crashes += counters->crashes;
    for (uint32_t fault = 1; fault < DISK_SIM_FAULT_COUNT; fault++) {
        totals.faults[fault] += counters->faults[fault];
    }
}

static void live(struct store_fixture *fixture, bool may_lie)
{
    struct disk_sim_plan plan;
    draw_plan(fixture, &plan, may_lie);
    totals.lives++;
    if (open_store(fixture, fixture_below(fixture, 3) == 0, &plan)) {
        work(fixture);
    }
    if (!disk_sim_is_dead(fixture->sim) && fixture_below(fixture, 3) != 0) {
        disk_sim_crash(fixture->sim);
    }
}

/* Opens without faults, holds all against the model, and goes on.
 * returns  false when the store is lost to silent faults */
static bool take_stock(struct store_fixture *fixture)
{
    if (!open_store(fixture, fixture_below(fixture, 2) == 0, &quiet)) {
        assert_true(fixture_is_silent(fixture));
        totals.lost_stores++;
        return false;
    }
    const bool is_silent = fixture_is_silent(fixture);
    fixture_check(fixture, is_silent);
    const bool has_room = store_free_slots(fixture->store) >= 2; /* disks are tight */
    assert_int_equal(fixture_write(fixture, 0, 1), has_room ? STORE_DURABLE : STORE_IDLE);
    fixture_check(fixture, is_silent);
    return true;
}

static void run_seed(uint64_t seed)
{
    struct store_fixture *fixture = &the_fixture;
    struct error error = {0};
    fixture_init(fixture, NULL, seed);
    fixture->keep_count = 2 + fixture_below(fixture, 2);
    fixture->full_every = 1 + fixture_below(fixture, 4);
    fixture->piece_extents_max = 1 + fixture_below(fixture, 3);
    /* Room for what is kept, and not much more: slots are used again at once. */
    const uint32_t kept_max = fixture->keep_count + fixture->full_every;
    fixture->sim = fixture_disk(STORE_ZONES + 8 + kept_max * (4 + fixture_below(fixture, 4)), seed);
    assert_int_equal(fixture_format(fixture->sim, false, &error), 0);
    const uint32_t lives = 1 + fixture_below(fixture, LIVES_MAX);
    const bool may_lie = fixture_below(fixture, 3) == 0;
    for (uint32_t life = 0; life < lives; life++) {
        live(fixture, may_lie);
        if (fixture_below(fixture, 2) == 0 && !take_stock(fixture)) {
            break;
        }
    }
    fixture_close(fixture);
    add_up(fixture);
    fixture_fini(fixture);
}

static void test_store_when_disk_fails_by_seed_then_nothing_is_wrong(void **state)
{
    (void)state;
    for (uint64_t seed = seed_from; seed < seed_from + seed_count; seed++) {
        seed_watch(seed);
        run_seed(seed);
    }
}

static void print_totals(void)
{
    static const char *const names[] = {"none",        "errors",      "short",  "flipped bits",
                                        "misdirected", "lost writes", "stalled"};
    static_assert(COUNT_OF(names) == DISK_SIM_FAULT_COUNT, "each has a name");
    (void)printf("sim_store: %llu seeds, %llu lives, %llu crashes, %llu requests\n",
                 (unsigned long long)totals.seeds, (unsigned long long)totals.lives,
                 (unsigned long long)totals.crashes, (unsigned long long)totals.requests);
    (void)printf("  checkpoints: %llu durable, %llu failed, %llu left open; found damaged: %llu; "
                 "stores lost to silent faults: %llu\n",
                 (unsigned long long)totals.durable, (unsigned long long)totals.failed,
                 (unsigned long long)totals.uncertain, (unsigned long long)totals.damaged,
                 (unsigned long long)totals.lost_stores);
    (void)printf("  faults:");
    for (uint32_t fault = 1; fault < DISK_SIM_FAULT_COUNT; fault++) {
        (void)printf(" %s %llu%s", names[fault], (unsigned long long)totals.faults[fault],
                     fault + 1 < DISK_SIM_FAULT_COUNT ? "," : "\n");
    }
}

int main(int argc, char **argv)
{
    /* Buffers come and go with each opening: mapping them anew is most of the time. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    seed_count = 2000;
    for (int index = 1; index + 1 < argc; index += 2) {
        if (strcmp(argv[index], "--seeds") == 0) {
            seed_count = strtoull(argv[index + 1], NULL, 10);
        } else if (strcmp(argv[index], "--from") == 0) {
            seed_from = strtoull(argv[index + 1], NULL, 10);
        }
    }
    const char *more = getenv("PENSTOCK_SIM_SEEDS");
    seed_count = more != NULL ? strtoull(more, NULL, 10) : seed_count;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_when_disk_fails_by_seed_then_nothing_is_wrong),
    };
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    if (status != 0) {
        (void)printf("failed at seed %llu; alone: sim_store --seeds 1 --from %llu\n",
                     (unsigned long long)*seed_watch_cell(),
                     (unsigned long long)*seed_watch_cell());
    }
    print_totals();
    return status;
}
