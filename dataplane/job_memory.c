/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's memory between turns: which level its arena stands at, whether sources are held for it,
 * and freeing a little of what was released before. */
#include "dataplane/job_internal.h"
#include "state/arena.h"
#include "state/heap.h"

#define FREE_STEPS_A_TURN 16 /* pages of released long state that a turn gives back */

/* Enters a level when fewer pages than its line are free, and leaves it with a margin more. */
static enum job_memory memory_level(const struct arena *arena, enum job_memory before)
{
    ASSERT_SLOW(before <= JOB_MEMORY_FULL);
    const uint32_t pages_free = arena_pages_free(arena);
    if (arena_is_full(arena) || (before == JOB_MEMORY_FULL &&
                                 pages_free < arena->reserve_pages + arena->reserve_pages / 2)) {
        return JOB_MEMORY_FULL;
    }
    if (arena_is_low(arena) || (before != JOB_MEMORY_FINE &&
                                pages_free < arena->warn_pages_free + arena->warn_pages_free / 8)) {
        return JOB_MEMORY_LOW;
    }
    return JOB_MEMORY_FINE;
}

uint32_t job_memory_poll(struct job *job, uint32_t number)
{
    ASSERT_SLOW(number < job->config.lane_count);
    const struct job_lane_config *config = &job->config.lanes[number];
    struct job_lane *lane = &job->lanes[number];
    if (config->arena == NULL) {
        return 0;
    }
    const enum job_memory level = memory_level(config->arena, lane->memory);
    const uint64_t bit = UINT64_C(1) << number;
    if (level == JOB_MEMORY_FULL && lane->memory != JOB_MEMORY_FULL) {
        (void)__atomic_fetch_or(&job->full_lanes, bit, __ATOMIC_RELAXED);
    } else if (level != JOB_MEMORY_FULL && lane->memory == JOB_MEMORY_FULL) {
        (void)__atomic_fetch_and(&job->full_lanes, ~bit, __ATOMIC_RELAXED);
    }
    lane->memory = level;
    return heap_has_queue(config->heap) ? heap_poll(config->heap, FREE_STEPS_A_TURN) : 0;
}

uint32_t job_lane_pages_free(const struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    const struct arena *arena = job->config.lanes[lane].arena;
    return arena == NULL ? 0 : arena_pages_free(arena);
}

bool job_is_held(const struct job *job)
{
    ASSERT(job->config.plan != NULL);
    return __atomic_load_n(&job->full_lanes, __ATOMIC_RELAXED) != 0;
}

enum job_memory job_lane_memory(const struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    return job->lanes[lane].memory;
}
