/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a source node on one lane. The table source (table_source.h) is the real one; tests
 * of the runtime have others. A body writes rows and control items into its output: watermarks,
 * idle and active, and PARCEL_END when there will be no more. */
#pragma once

#include "base.h"
#include "dataplane/facts.h"
#include "dataplane/operator/operator.h"
#include "dataplane/output.h"

/* What the runtime asks of its creator while it runs. */
struct stage_hooks {
    /* A barrier has passed a node: everything before it is done, nothing behind it is begun. */
    void (*barrier)(void *context, uint32_t lane, const struct plan_node *node, int64_t epoch);
    /* A barrier has passed every node of a lane: state and facts are now as it found them. The
     * facts of sources and nodes are written, sinks' may be added; they stand until the lane's next
     * barrier is ordered. NULL: no checkpoints. */
    void (*cut)(void *context, uint32_t lane, int64_t epoch, struct facts_writer *facts);
    void *cut_context;
    /* A finer clock than the turn's, for the ledger's stamps only; NULL: the turn's time. */
    uint64_t (*clock)(void *context);
    void *context;
    int64_t wall_offset_ns; /* added to a turn's time it gives nanoseconds since 1970 */
};

struct source;

/* What a checkpoint knows of a source node, over all lanes that it was made on. */
struct source_facts {
    const struct facts_partition *partitions; /* those of other lanes now as well */
    uint32_t partition_count;
    struct facts_source source; /* the least of all lanes */
};

/* What the runtime lends to a source; lives as long as the source. */
struct source_context {
    const struct plan_node *node;
    uint32_t lane;
    struct output *output;
    const char *time_zone;
    void *environment; /* job_lane_config.source_environment */
    uint32_t parcel_rows_max;
    bool wants_ticks; /* some operator acts on processing time */
    bool is_replay;   /* virtual time: the watermark interval counts record timestamps */
    uint64_t *counters;
    const struct stage_hooks *hooks;
    struct error failure; /* filled with OPERATOR_FAILED */
};

struct source_ops {
    /* Control thread, before the lanes start.
     * context  kept by reference
     * out      closed by close */
    int (*open)(struct source_context *context, struct source **out, struct error *error);
    /* Does one bounded step: takes at most records_max records.
     * work     records taken and control items sent are added here
     * returns  OPERATOR_AGAIN when the output has no room for what was begun */
    enum operator_verdict (*poll)(struct source *self, uint64_t now_ns, uint32_t records_max,
                                  uint32_t *work);
    /* The lane stops reading: what was begun is finished, then PARCEL_END is sent. poll goes on
     * being called until then.
     * fires    WATERMARK_MAX goes before it, as at the end of bounded input */
    void (*drain)(struct source *self, bool fires);
    /* The barrier follows behind what was sent so far: adds where the source stands. NULL: it has
     * no place. */
    void (*snapshot)(struct source *self, struct facts_writer *facts);
    /* Goes on from a checkpoint; control thread, before the first poll. Sends what consumers had
     * been told of time. NULL: it cannot.
     * facts    borrowed for the call */
    int (*restore)(struct source *self, const struct source_facts *facts, struct error *error);
    void (*close)(struct source *self);
};

/* A body embeds this first. */
struct source {
    const struct source_ops *ops;
    bool ended; /* set by the body once it has sent PARCEL_END */
};
