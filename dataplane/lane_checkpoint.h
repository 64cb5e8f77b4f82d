/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's part in checkpoints: between the snapshot of its state (state/snapshot.h), its part of
 * the job and its record sinks.
 *
 *     snapshot_ordered -> job_lane_barrier -> … -> hooks.cut: sinks draw their line, snapshot_cut
 *     each turn: snapshot_poll; sinks have arrived -> snapshot_settle; low on buffers -> lane held
 *     snapshot_outcome, durable -> sinks complete, config.durable
 *
 * It is polled in each turn of the lane, before the job. One a lane. */
#pragma once

#include "base.h"
#include "dataplane/job.h"
#include "dataplane/record.h"

#define LANE_CHECKPOINT_SINKS_MAX 64

struct snapshot;

struct lane_checkpoint_config {
    struct job *job;           /* outlives it */
    struct snapshot *snapshot; /* of the lane; outlives it */
    uint32_t lane;
    /* Record sinks that the lane writes to, each once; those of dead letters too. */
    struct record_sink *sinks[LANE_CHECKPOINT_SINKS_MAX];
    uint32_t sink_count;
    /* A checkpoint is durable, after its sinks were told; on the lane. facts are those of its cut,
     * borrowed for the call; none when another cut has been made since. NULL: nobody asks. */
    void (*durable)(void *context, uint32_t lane, uint64_t id, struct span facts);
    void *durable_context;
};

/* Written by the lane, read by anybody. */
struct lane_checkpoint_counters {
    uint64_t ordered;
    uint64_t cuts;
    uint64_t durable;
    uint64_t failed;
    uint64_t facts_too_large; /* cuts without checkpoint: more facts than FACTS_BYTES_MAX */
    uint64_t alignment_ns;    /* of the last cut: from the lane's order to it */
    uint64_t settle_ns;       /* of the last cut: until the sinks had arrived */
    uint64_t held_turns;      /* turns in which nothing entered, for want of staging buffers */
};

struct lane_checkpoint;

/* Makes it.
 * config   copied
 * out      freed by lane_checkpoint_destroy
 * returns  0 or -ENOMEM
 * threads  control, before the lane starts */
int lane_checkpoint_create(const struct lane_checkpoint_config *config,
                           struct lane_checkpoint **out, struct error *error);

/* Frees it. NULL is fine.
 * threads  control, once the lane has stopped */
void lane_checkpoint_destroy(struct lane_checkpoint *checkpoint);

/* Does one step: a lane_poller, to stand before the job.
 * context  the struct lane_checkpoint
 * returns  work done
 * threads  owning lane only */
uint32_t lane_checkpoint_poll(void *context, uint64_t now_ns);

/* What hooks.cut of the job is to be.
 * context  an array of struct lane_checkpoint pointers by lane: hooks.cut_context
 * threads  owning lane only */
void lane_checkpoint_cut(void *context, uint32_t lane, int64_t epoch, struct facts_writer *facts);

/* Tells whether a checkpoint is on its way on the lane: ordered and not cut, or cut and not all
 * staged and settled.
 * threads  owning lane only */
bool lane_checkpoint_is_open(const struct lane_checkpoint *checkpoint);

/* Shows the counters.
 * returns  borrowed
 * threads  any */
const struct lane_checkpoint_counters *
lane_checkpoint_counters(const struct lane_checkpoint *checkpoint);
