/* SPDX-License-Identifier: Apache-2.0 */
/* A stage is one plan node on one lane: its body (source, operator or sink), the channels that
 * items reach it through, and the minimum of event time over them. It does one thing at a time:
 * what answered OPERATOR_AGAIN is repeated before any other item is looked at.
 *
 *     channels (queue from this lane | ring from another) -> task -> body -> output
 *
 * A barrier closes its channel until it has come through all of them (alignment); then the hook is
 * called, the barrier goes on, and the stage is held: it takes nothing more until the whole lane
 * has been cut (job.h). A newer barrier takes the place of an older one that some channel never
 * brings. UNION ALL has no body: its parcels are passed on as they are. */
#pragma once

#include "base.h"
#include "dataplane/output.h"
#include "dataplane/sink.h"
#include "dataplane/source.h"
#include "dataplane/watermark.h"

struct ledger;

/* The way from one sender's instance into a stage. */
struct channel {
    struct queue *queue;   /* sender on this lane, else NULL */
    struct rte_ring *ring; /* sender on another lane, else NULL */
    uint32_t input;
    bool is_ended;
    bool is_aligned; /* its barrier has come; nothing is taken until the others' have */
    int64_t tick_ms;
};

enum stage_task {
    STAGE_IDLE = 0,
    STAGE_ROWS,
    STAGE_WATERMARK,
    STAGE_TICK,
};

enum stage_counter {
    STAGE_PARCELS_IN = 0,
    STAGE_ROWS_IN,
    STAGE_ROWS_OUT,
    STAGE_BLOCKED, /* turns that ended for want of room below */
    STAGE_COUNTER_COUNT,
};

struct stage {
    const struct plan_node *node;
    uint32_t lane;
    struct parcel_pool *pool;
    struct output *output;     /* NULL: a sink */
    struct source *source;     /* or */
    struct operator* operator; /* or */
    struct sink *sink;         /* or none: UNION ALL */
    struct operator_context operator_context;
    struct source_context source_context;
    struct sink_context sink_context;
    uint64_t counters[OPERATOR_COUNTER_COUNT];
    uint64_t stage_counters[STAGE_COUNTER_COUNT];
    struct exchange *edges; /* edge_count: what output sends through */
    uint32_t edge_count;
    struct channel *channels; /* channel_count; their numbers are the watermark's senders */
    uint32_t channel_count;
    uint32_t channels_ended;
    struct watermark watermark;
    bool said_idle;
    bool is_aligning;
    bool is_held;          /* barrier_epoch has passed, the lane's cut has not come */
    int64_t barrier_epoch; /* the newest that has come; 0: none */
    int64_t ordered_epoch; /* the newest that the lane was told of: older ones hold nothing */
    int64_t tick_ms;
    enum stage_task task;
    struct parcel *parcel; /* STAGE_ROWS */
    uint32_t input;
    int64_t value; /* STAGE_WATERMARK, STAGE_TICK */
    bool has_ended;
    bool has_failed;
    const struct stage_hooks *hooks;
    struct ledger *ledger; /* of the lane; NULL: none kept */
    uint32_t ledger_sink;  /* number of the sink in it */
    struct error failure;
};

/* Does what there is to do, within bounds: finishes the open task, then takes items from channels.
 * now_ns   the turn's time
 * enter    whether items of other lanes, or of the world, may be taken: false while this lane has
 *          enough to do downstream
 * budget   records a source, and items a ring, may give in this turn
 * returns  work done: items and records
 * threads  owning lane only */
uint32_t stage_poll(struct stage *stage, uint64_t now_ns, bool enter, uint32_t budget);

/* Sends a barrier behind everything that a source has sent, and holds it.
 * stage    of a source that has not ended
 * epoch    above all before
 * threads  owning lane only */
void stage_barrier(struct stage *stage, int64_t epoch);

/* Tells whether nothing of before a barrier can come from the stage any more.
 * threads  owning lane only */
bool stage_has_passed(const struct stage *stage, int64_t epoch);

/* Lets a held stage go on.
 * threads  owning lane only */
void stage_release(struct stage *stage);

/* Says that a barrier was ordered on the lane: an older one that has held the stage, or would, is
 * given up.
 * threads  owning lane only */
void stage_order(struct stage *stage, int64_t epoch);

/* Tells how many rows wait in front of the stage on this lane.
 * threads  owning lane only */
uint32_t stage_waiting_rows(const struct stage *stage);

/* Tells whether the stage has nothing to do: no task, nothing queued or backlogged on this lane,
 * and nothing in its rings.
 * threads  owning lane only */
bool stage_is_quiet(const struct stage *stage);
