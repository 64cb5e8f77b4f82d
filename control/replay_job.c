/* SPDX-License-Identifier: Apache-2.0 */
/* One life of a replay's job: its sources, state, parcels and the job itself. A restart throws all
 * of it away and makes it anew. */
#include <errno.h>
#include <sys/mman.h>

#include "control/mapping.h"
#include "control/replay_internal.h"
#include "dataplane/source_file.h"
#include "state/arena.h"
#include "state/heap.h"

#define PARCELS         8192
#define STATE_BYTES_MIN (UINT32_C(64) << 20)
#define PARCELS_RESTART 1024 /* made anew each few records */

/* Maps zeroed memory that costs nothing until it is touched. */
static void *allocate(void *context, uint32_t lane, size_t bytes)
{
    struct replay *replay = context;
    if (replay->block_count == REPLAY_BLOCKS_MAX) {
        return NULL;
    }
    void *memory = mapping_scratch(NULL, bytes);
    if (memory == NULL) {
        return NULL;
    }
    if (replay->restarts != NULL && bytes < STATE_BYTES_MIN) {
        /* Touched whole for each life anew: in large pages that is a tenth of the faults. */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    }
    replay->blocks[replay->block_count++] = (struct replay_block){.memory = memory, .bytes = bytes};
    return memory;
}

int replay_job_open(struct replay *replay, struct error *error)
{
    ASSERT(replay->plan != NULL);
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        if (node->operator!= PLAN_SOURCE) {
            continue;
        }
        const struct source_file_config config = {
            .directory = replay->options.input,
            .topics = node->source.topics,
            .topic_count = node->source.topic_count,
            /* One by one, so that a restart can come behind any of them. */
            .batch_records_max = replay->restarts != NULL ? 1 : 0,
        };
        code = source_file_create(&config, &replay->sources[i], error);
    }
    return code;
}

static int create_state(struct replay *replay, uint32_t lane, struct error *error)
{
    ASSERT(replay != NULL);
    const size_t bytes = (size_t)replay->options.state_mib << 20;
    const struct arena_config config = {
        .memory = allocate(replay, lane, bytes),
        .bytes = bytes,
        .shard_count = EXCHANGE_SHARD_COUNT,
        .is_lazy = true,
    };
    if (config.memory == NULL) {
        return error_set(error, -ENOMEM, "cannot map %u MiB for state", replay->options.state_mib);
    }
    const int code = arena_create(&config, &replay->arenas[lane], error);
    return code != 0 ? code : heap_create(replay->arenas[lane], &replay->heaps[lane], error);
}

static int create_job(struct replay *replay, struct error *error)
{
    ASSERT(replay != NULL);
    const bool restarts = replay->restarts != NULL;
    struct job_config config = {
        .plan = replay->plan,
        .lane_count = replay->lanes,
        .allocate = allocate,
        .allocate_context = replay,
        .classes = {{.bytes = PARCEL_BYTES_DEFAULT, .count = restarts ? PARCELS_RESTART : PARCELS},
                    {.bytes = JOB_PARCEL_BYTES_LARGE, .count = restarts ? 8 : 64},
                    {.bytes = UINT32_C(1) << 20, .count = restarts ? 2 : 16},
                    {.bytes = ROW_BYTES_MAX + (UINT32_C(1) << 20), .count = restarts ? 1 : 4}},
        .class_count = 4,
        .parcel_rows_max = replay->options.parcel_rows,
        .ring_items = JOB_RING_ITEMS_DEFAULT,
        .queue_rows_max = JOB_QUEUE_ROWS_DEFAULT,
        .records_a_turn = restarts ? 1 : JOB_RECORDS_A_TURN_DEFAULT,
        .settle = true,
        .is_replay = true,
        .find_operator = operator_find,
        .source_ops = &table_source_ops,
        .sink_ops = &table_sink_ops,
    };
    int code = 0;
    if (restarts) {
        restarts_hooks(replay->restarts, &config.hooks);
    }
    for (uint32_t i = 0; code == 0 && i < config.lane_count; i++) {
        code = create_state(replay, i, error);
        config.lanes[i] = (struct job_lane_config){
            .receive = i == 0,
            .operate = true,
            .transmit = i == 0,
            .arena = replay->arenas[i],
            .heap = replay->heaps[i],
            .source_environment = &replay->source_environment,
            .sink_environment = &replay->sink_environment,
        };
    }
    return code != 0 ? code : job_create(&config, &replay->job, error);
}

/* The files are read whole before the first record: all partitions are known. */
static void assign_partitions(struct replay *replay)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    for (uint32_t i = 0; i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        for (uint32_t t = 0; node->operator== PLAN_SOURCE && t<node->source.topic_count; t++) {
            const uint32_t count = source_file_partition_count(replay->sources[i], t);
            for (uint32_t p = 0; p < count; p++) {
                (void)table_source_assign(job_stage(replay->job, 0, i)->source, t, p);
            }
        }
    }
}

/* The newest checkpoint's places come before the partitions that they are for. */
static int attach(struct replay *replay, struct error *error)
{
    ASSERT(replay->job != NULL);
    if (replay->restarts == NULL) {
        return 0;
    }
    const struct restarts_life life = {
        .job = replay->job,
        .arenas = replay->arenas,
        .lane_count = replay->lanes,
        .sinks = &replay->files,
        .sink_count = 1,
        .plan_fingerprint = replay->plan->fingerprint,
    };
    return restarts_attach(replay->restarts, &life, error);
}

int replay_job_create(struct replay *replay, struct error *error)
{
    ASSERT(replay->job == NULL && replay->block_count == 0);
    ASSERT(replay->lanes >= 1 && replay->lanes <= REPLAY_LANES_MAX);
    int code = create_job(replay, error);
    code = code != 0 ? code : attach(replay, error);
    if (code == 0) {
        assign_partitions(replay);
    }
    return code;
}

void replay_job_destroy(struct replay *replay)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    if (replay->restarts != NULL) {
        restarts_detach(replay->restarts);
    }
    job_destroy(replay->job);
    replay->job = NULL;
    for (uint32_t i = 0; i < REPLAY_LANES_MAX; i++) {
        heap_destroy(replay->heaps[i]);
        replay->heaps[i] = NULL;
        replay->arenas[i] = NULL;
    }
    for (uint32_t i = 0; i < PLAN_NODES_MAX; i++) {
        source_file_destroy(replay->sources[i]);
        replay->sources[i] = NULL;
    }
    for (uint32_t i = 0; i < replay->block_count; i++) {
        mapping_scratch_free(NULL, replay->blocks[i].memory, replay->blocks[i].bytes);
    }
    replay->block_count = 0;
}
