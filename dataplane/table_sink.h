/* SPDX-License-Identifier: Apache-2.0 */
/* A sink table on one lane: rows become records of a topic (kafka, upsert-kafka), lines (print) or
 * nothing (blackhole).
 *
 * Columns that are declared NOT NULL are enforced as 'table.exec.sink.not-null-enforcer' says. An
 * upsert sink writes +I and +U under their key and -D as a tombstone; -U as well, unless the
 * planner knows that the +U of the same key follows. A full record sink stops the lane's flow here,
 * row by row, and so the sources; nothing is dropped.
 *
 * Limits: a record fits the edge's value_bytes_max and key_bytes_max, else the job fails. */
#pragma once

#include "base.h"
#include "dataplane/record.h"
#include "dataplane/sink.h"

#define TABLE_SINK_VALUE_BYTES_DEFAULT (UINT32_C(16) << 20)
#define TABLE_SINK_KEY_BYTES_DEFAULT   (UINT32_C(1) << 20)

/* Where a table's records go on a lane. */
struct table_sink_edge {
    struct record_sink *records; /* NULL: blackhole */
    uint32_t topic;              /* number in it */
    size_t value_bytes_max;      /* 0: the default */
    size_t key_bytes_max;        /* 0: the default */
};

/* job_lane_config.sink_environment. */
struct table_sink_environment {
    /* Finds the edge of a table on a lane; all of it is borrowed.
     * returns  0 or -errno */
    int (*find)(void *context, const struct plan_node *node, uint32_t lane,
                struct table_sink_edge *out, struct error *error);
    void *context;
};

struct table_sink_counters {
    uint64_t rows;
    uint64_t records; /* appended, tombstones among them */
    uint64_t tombstones;
    uint64_t null_rows_dropped;  /* by the not-null enforcer */
    uint64_t update_before_rows; /* -U that an upsert sink does not write */
};

extern const struct sink_ops table_sink_ops;

/* Shows what was counted.
 * sink     made by table_sink_ops
 * returns  borrowed
 * threads  owning lane writes; control may read */
const struct table_sink_counters *table_sink_counters(const struct sink *sink);
