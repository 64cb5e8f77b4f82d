/* SPDX-License-Identifier: Apache-2.0 */
/* State, checkpoints and restores on a simulated disk, in one thread on virtual time. A world of
 * lanes works and is checkpointed; the disk fails requests, tears and loses what was not flushed
 * and dies at a request drawn at random, in the middle of a checkpoint or of its commit. Then the
 * store is opened anew and the newest checkpoint is restored, on as many lanes or on others, and
 * compared with what was written down at that checkpoint's cuts: it must be the last one that was
 * told as durable, or the one that was being committed.
 *
 *     sim_state [--seeds N] [--from SEED]                  */
#include <stdlib.h>

#include "tests/sim/disk_sim.h"
#include "tests/state/world.h"

#define SLOTS 600U

/* One seed's run. */
struct run {
    struct disk_sim *sim;
    struct store *store;
    struct world *world;
    struct world_config config;
    struct world_cut past; /* of the last durable one */
    uint64_t past_id;      /* 0: none */
    uint64_t random;
    uint64_t seed;
};

/* What all seeds did, for the figures. */
struct figures {
    uint64_t checkpoints;
    uint64_t failed;
    uint64_t crashes;
    uint64_t restores;
    uint64_t requests;
};

static uint32_t below(struct run *run, uint32_t bound)
{
    run->random ^= run->random >> 12;
    run->random ^= run->random << 25;
    run->random ^= run->random >> 27;
    return (uint32_t)((run->random * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % bound;
}

static void check(bool is_right, const struct run *run, const char *what)
{
    if (!is_right) {
        (void)fprintf(stderr, "seed %lu: %s\n", (unsigned long)run->seed, what);
        exit(1);
    }
}

static void store_up(struct run *run)
{
    struct error error = {0};
    const struct store_config config = {.disk = disk_sim_disk(run->sim), .keep_count = 2};
    const int code = store_open(&config, &run->store, NULL, &error);
    check(code == 0, run, error.text);
    run->config.store = run->store;
    run->config.first_id = store_next_id(run->store);
}

/* A world on the store, empty or from the newest checkpoint. */
static void world_up(struct run *run, struct figures *figures)
{
    struct store_checkpoint newest = {0};
    run->config.lane_count = 1 + below(run, 3);
    run->world = malloc(sizeof(*run->world));
    check(run->world != NULL, run, "no memory");
    world_open(run->world, &run->config);
    run->world->wait_ns = 1000000;
    run->config.base_id = 0;
    if (store_list(run->store, &newest, 1) != 0) {
        struct restore_report report;
        struct error error = {0};
        check(newest.id == run->past_id, run, "the newest checkpoint is neither of the two");
        check(world_restore(run->world, newest.id, &report, &error) == 0, run, error.text);
        world_compare(run->world, &run->past);
        world_check(run->world);
        run->config.base_id = report.is_in_place ? newest.id : 0;
        figures->restores++;
    } else {
        struct error reason = {0};
        (void)store_damaged(run->store, &reason);
        check(run->past_id == 0, run,
              reason.text[0] == '\0' ? "a durable checkpoint is gone" : reason.text);
    }
    world_start(run->world, &run->config);
}

static void past_set(struct run *run, uint64_t id)
{
    world_cut_free(&run->past);
    world_cut_copy(&run->world->cut, &run->past);
    run->past_id = id;
}

/* The process is gone: only what the disk holds counts. */
static void crash(struct run *run, uint64_t open_id, struct figures *figures)
{
    const struct disk_sim_plan quiet = {.seed = run->seed};
    struct store_checkpoint newest = {0};
    figures->crashes++;
    figures->requests += disk_sim_counters(run->sim)->requests;
    store_close(run->store);
    disk_sim_restart(run->sim, &quiet);
    store_up(run);
    if (open_id != 0 && store_list(run->store, &newest, 1) != 0 && newest.id == open_id) {
        past_set(run, open_id); /* its root was whole, though nobody was told */
    }
    world_close(run->world);
    free(run->world);
}

/* One life of the process: works and checkpoints until it dies or has had enough. */
static void life(struct run *run, struct figures *figures)
{
    struct disk_sim_plan plan = {.seed = run->seed * 31 + below(run, 1000)};
    plan.latency_ns_max = below(run, 2) * 50000;
    plan.crash_at = 1 + below(run, 120);
    plan.survival = below(run, 4);
    if (below(run, 3) == 0) {
        plan.odds[DISK_SIM_ERROR] = 1000;
        plan.odds[DISK_SIM_SHORT] = 1000;
    }
    disk_sim_restart(run->sim, &plan);
    for (uint32_t round = 0; round < 12; round++) {
        world_run(run->world, below(run, 400));
        const struct checkpoint_report report = world_checkpoint(run->world, below(run, 20));
        figures->checkpoints++;
        if (report.result == CHECKPOINT_COMPLETE) {
            past_set(run, report.id);
        } else {
            figures->failed++;
        }
        if (disk_sim_is_dead(run->sim)) {
            crash(run, report.result == CHECKPOINT_COMPLETE ? 0 : report.id, figures);
            return;
        }
    }
    disk_sim_crash(run->sim);
    crash(run, 0, figures);
}

static void seed_run(uint64_t seed, struct figures *figures)
{
    struct run *run = calloc(1, sizeof(*run));
    ASSERT(run != NULL);
    *run = (struct run){.seed = seed, .random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1};
    const struct disk_sim_config disk = {.bytes = (uint64_t)SLOTS * EXTENT_BYTES,
                                         .identity = 1,
                                         .depth_max = 16,
                                         .sector_bytes = seed % 2 == 0 ? 512 : 4096,
                                         .plan = {.seed = seed}};
    const struct store_format format = {.host_identity = 1, .store_id = 1 + seed};
    run->config = (struct world_config){.buffer_count = 16,
                                        .full_every = 1 + (uint32_t)(seed % 4),
                                        .page_count = 2000,
                                        .seed = seed};
    run->sim = disk_sim_create(&disk);
    check(store_format(disk_sim_disk(run->sim), &format, NULL, NULL, NULL) == 0, run, "format");
    store_up(run);
    for (uint32_t count = 0; count < 5; count++) {
        world_up(run, figures);
        life(run, figures);
    }
    store_close(run->store);
    world_cut_free(&run->past);
    disk_sim_destroy(run->sim);
    free(run);
}

int main(int argc, char **argv)
{
    uint64_t seeds = 20;
    uint64_t from = 0;
    for (int index = 1; index + 1 < argc; index += 2) {
        *(strcmp(argv[index], "--from") == 0 ? &from : &seeds) =
            strtoull(argv[index + 1], NULL, 10);
    }
    struct figures figures = {0};
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        seed_run(seed, &figures);
    }
    (void)printf("%lu seeds: %lu checkpoints (%lu failed), %lu crashes, %lu restores compared, "
                 "%lu disk requests\n",
                 (unsigned long)seeds, (unsigned long)figures.checkpoints,
                 (unsigned long)figures.failed, (unsigned long)figures.crashes,
                 (unsigned long)figures.restores, (unsigned long)figures.requests);
    return 0;
}
