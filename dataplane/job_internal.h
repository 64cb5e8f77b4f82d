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
    struct error failure;
};

struct job {
    struct job_config config;
    struct placement placement;
    struct job_lane lanes[PLACEMENT_LANES_MAX];
};

/* Makes pools, stages, channels, exchanges and outputs, and opens all bodies.
 * job      config is set
 * returns  0 or -errno; what was made is undone by wiring_destroy in both cases
 * threads  control */
int wiring_create(struct job *job, struct error *error);

/* Closes and frees whatever wiring_create made.
 * threads  control */
void wiring_destroy(struct job *job);
