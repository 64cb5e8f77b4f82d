/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a job, shared by job.c, which runs it, and wiring.c, which makes it. Everything a
 * lane writes hangs from its job_lane; job and config are const once the lanes start. */
#pragma once

#include "base.h"
#include "dataplane/job.h"

struct job_lane {
    _Alignas(CACHE_LINE_BYTES) struct stage **order; /* stage_count, by node id */
    uint32_t stage_count;
    struct stage **by_node; /* node_count; NULL where the lane has no instance */
    struct parcel_pool *pool;
    struct ledger *ledger;
    uint8_t *key_scratch;   /* KEY_BYTES_MAX */
    uint32_t *waiting_rows; /* stage_count: of this turn, behind each place */
    enum job_state state;
    enum job_memory memory;
    struct error failure;
    bool is_held;              /* nothing enters the lane */
    uint32_t last_work;        /* done in the turn before */
    int64_t barrier_epoch;     /* ordered last; 0: none */
    bool is_cutting;           /* it has not passed all stages yet */
    uint8_t *facts_bytes;      /* FACTS_BYTES_MAX; NULL: the job makes no checkpoints */
    struct facts_writer facts; /* of the barrier ordered last */
};

struct job {
    /* Bit n: the arena of lane n is full. Each lane sets its own, all look every turn; relaxed, for
     * it carries nothing but itself. */
    _Alignas(CACHE_LINE_BYTES) uint64_t full_lanes;
    _Alignas(CACHE_LINE_BYTES) struct job_config config;
    struct placement placement;
    struct job_lane lanes[PLACEMENT_LANES_MAX];
};

/* Looks at the lane's memory: holds or lets go the sources, frees a little of what was released.
 * returns  work done
 * threads  owning lane only */
uint32_t job_memory_poll(struct job *job, uint32_t lane);

/* Cuts a lane once the barrier ordered last has passed every stage of it.
 * returns  whether it was cut
 * threads  owning lane only */
bool job_cut_poll(struct job *job, uint32_t lane);

/* The link of a hash edge that a shard belongs to, counted over the lanes of its targets.
 * threads  any */
static inline uint32_t exchange_link(uint32_t shard, uint64_t targets)
{
    ASSERT(targets != 0);
    return shard % (uint32_t)__builtin_popcountll(targets);
}

/* Makes pools, stages, channels, exchanges and outputs, and opens all bodies.
 * job      config is set
 * returns  0 or -errno; what was made is undone by wiring_destroy in both cases
 * threads  control */
int wiring_create(struct job *job, struct error *error);

/* Closes and frees whatever wiring_create made.
 * threads  control */
void wiring_destroy(struct job *job);
