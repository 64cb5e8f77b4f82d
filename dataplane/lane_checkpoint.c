/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a checkpoint on a lane; see lane_checkpoint.h for their order.
 *
 * Invariants:
 *   1. The next order is not looked at while a snapshot is open, so a lane's facts stand until they
 *      have been staged.
 *   2. A snapshot is settled once, when every sink has said that what it wrote before the cut has
 *      arrived; one that fails meanwhile is waited for no longer.
 *   3. While the lane is held for want of staging buffers no barrier of it can be open: nothing of
 *      before it waits outside. */
#include "dataplane/lane_checkpoint.h"

#include <errno.h>
#include <stdlib.h>

#include "state/snapshot.h"

struct lane_checkpoint {
    struct lane_checkpoint_config config;
    uint64_t now_ns;
    uint64_t ordered_ns;
    uint64_t cut_ns;
    uint64_t cut_id;   /* of the cut made last; 0: none */
    bool is_aligning;  /* ordered, not cut yet */
    bool is_settling;  /* cut, and sinks have not arrived yet */
    struct span facts; /* of the cut made last, until the next order */
    struct lane_checkpoint_counters counters;
};

static void count(uint64_t *counter, uint64_t more)
{
    /* Relaxed: one writer, readers want the number whole. */
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static void set(uint64_t *counter, uint64_t value)
{
    /* Relaxed, as count. */
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

int lane_checkpoint_create(const struct lane_checkpoint_config *config,
                           struct lane_checkpoint **out, struct error *error)
{
    ASSERT(config->job != NULL && config->snapshot != NULL);
    ASSERT(config->sink_count <= LANE_CHECKPOINT_SINKS_MAX);
    struct lane_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    if (checkpoint == NULL) {
        return error_set(error, -ENOMEM, "out of memory for the checkpoints of a lane");
    }
    checkpoint->config = *config;
    *out = checkpoint;
    return 0;
}

void lane_checkpoint_destroy(struct lane_checkpoint *checkpoint)
{
    free(checkpoint);
}

/* Invariant 1. */
static uint32_t take_order(struct lane_checkpoint *checkpoint)
{
    uint64_t id = 0;
    if (snapshot_is_open(checkpoint->config.snapshot) ||
        !snapshot_ordered(checkpoint->config.snapshot, &id)) {
        return 0;
    }
    ASSERT(id <= INT64_MAX && id > checkpoint->cut_id);
    checkpoint->facts = (struct span){0};
    checkpoint->ordered_ns = checkpoint->now_ns;
    checkpoint->is_aligning = true;
    checkpoint->is_settling = false;
    count(&checkpoint->counters.ordered, 1);
    job_lane_barrier(checkpoint->config.job, checkpoint->config.lane, (int64_t)id);
    return 1;
}

void lane_checkpoint_cut(void *context, uint32_t lane, int64_t epoch, struct facts_writer *facts)
{
    struct lane_checkpoint *checkpoint = ((struct lane_checkpoint **)context)[lane];
    ASSERT(checkpoint != NULL && checkpoint->config.lane == lane);
    ASSERT(checkpoint->is_aligning);
    const uint64_t id = (uint64_t)epoch;
    for (uint32_t i = 0; i < checkpoint->config.sink_count; i++) {
        record_sink_cut(checkpoint->config.sinks[i], id, facts);
    }
    checkpoint->is_aligning = false;
    checkpoint->cut_id = id;
    checkpoint->cut_ns = checkpoint->now_ns;
    count(&checkpoint->counters.cuts, 1);
    set(&checkpoint->counters.alignment_ns, checkpoint->now_ns - checkpoint->ordered_ns);
    if (facts->is_full) {
        /* Without its facts it is no checkpoint: it is left to run into its timeout. */
        count(&checkpoint->counters.facts_too_large, 1);
        return;
    }
    checkpoint->facts = facts_written(facts);
    snapshot_cut(checkpoint->config.snapshot, id, checkpoint->facts, checkpoint->now_ns);
    checkpoint->is_settling = snapshot_is_open(checkpoint->config.snapshot);
}

/* Invariant 2. */
static uint32_t settle(struct lane_checkpoint *checkpoint)
{
    if (!checkpoint->is_settling) {
        return 0;
    }
    for (uint32_t i = 0; i < checkpoint->config.sink_count; i++) {
        if (!record_sink_is_settled(checkpoint->config.sinks[i], checkpoint->cut_id)) {
            return 0;
        }
    }
    checkpoint->is_settling = false;
    set(&checkpoint->counters.settle_ns, checkpoint->now_ns - checkpoint->cut_ns);
    snapshot_settle(checkpoint->config.snapshot);
    return 1;
}

static void conclude(struct lane_checkpoint *checkpoint, const struct snapshot_outcome *outcome)
{
    ASSERT(outcome->id != 0);
    const struct lane_checkpoint_config *config = &checkpoint->config;
    const bool is_last_cut = outcome->id == checkpoint->cut_id;
    if (!outcome->is_durable) {
        count(&checkpoint->counters.failed, 1);
        checkpoint->is_settling = checkpoint->is_settling && !is_last_cut;
        for (uint32_t i = 0; i < config->sink_count; i++) {
            record_sink_failed(config->sinks[i], outcome->id);
        }
        return;
    }
    count(&checkpoint->counters.durable, 1);
    for (uint32_t i = 0; i < config->sink_count; i++) {
        record_sink_complete(config->sinks[i], outcome->id);
    }
    if (config->durable != NULL) {
        config->durable(config->durable_context, config->lane, outcome->id,
                        is_last_cut ? checkpoint->facts : (struct span){0});
    }
}

/* Outcomes come before orders: an order follows the outcome of the one before. */
uint32_t lane_checkpoint_poll(void *context, uint64_t now_ns)
{
    struct lane_checkpoint *checkpoint = context;
    struct snapshot *snapshot = checkpoint->config.snapshot;
    struct job *job = checkpoint->config.job;
    const uint32_t lane = checkpoint->config.lane;
    struct snapshot_outcome outcome;
    uint32_t work = 0;
    checkpoint->now_ns = now_ns;
    while (snapshot_outcome(snapshot, &outcome)) {
        conclude(checkpoint, &outcome);
        work++;
    }
    work += take_order(checkpoint);
    work += settle(checkpoint);
    work += snapshot_poll(snapshot, now_ns, job_lane_was_busy(job, lane));
    const bool is_low = snapshot_is_low(snapshot);
    ASSERT(!is_low || !checkpoint->is_aligning);
    job_lane_hold(job, lane, is_low);
    count(&checkpoint->counters.held_turns, is_low);
    return work;
}

bool lane_checkpoint_is_open(const struct lane_checkpoint *checkpoint)
{
    return checkpoint->is_aligning || checkpoint->is_settling ||
           snapshot_is_open(checkpoint->config.snapshot);
}

const struct lane_checkpoint_counters *
lane_checkpoint_counters(const struct lane_checkpoint *checkpoint)
{
    return &checkpoint->counters;
}
