/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a sink node on one lane. The table sink (table_sink.h) is the real one; tests of the
 * runtime have others. */
#pragma once

#include "base.h"
#include "dataplane/operator/operator.h"

struct sink;

/* What the runtime lends to a sink; lives as long as the sink. */
struct sink_context {
    const struct plan_node *node;
    const struct row_layout *input;
    uint32_t lane;
    const char *time_zone;
    void *environment; /* job_lane_config.sink_environment */
    uint64_t *counters;
    struct error failure; /* filled with OPERATOR_FAILED */
};

struct sink_ops {
    /* Control thread, before the lanes start.
     * context  kept by reference
     * out      closed by close */
    int (*open)(struct sink_context *context, struct sink **out, struct error *error);
    /* Writes the rows of one parcel; remembers its place when it answers OPERATOR_AGAIN, and gets
     * the same parcel again. */
    enum operator_verdict (*process)(struct sink *self, const struct parcel *parcel);
    /* Tells whether all that was written has arrived. */
    bool (*flushed)(struct sink *self);
    void (*close)(struct sink *self);
};

/* A body embeds this first. */
struct sink {
    const struct sink_ops *ops;
};
