/* SPDX-License-Identifier: Apache-2.0 */
/* A source table on one lane: records of its partitions become rows of the plan's source node.
 *
 *     record source -> decoder -> staging -> computed columns, watermark -> picked columns ->
 * output
 *
 * Watermarks. Each partition has its own, the largest value so far of the table's expression; what
 * goes out is the minimum over the partitions that are neither idle (the broker has nothing more)
 * nor ended. On-event, it goes out behind each row that moves it; else once a turn, or in a replay
 * every watermark interval of record time, so that answers do not depend on speed. A source without
 * partitions is idle, or at once at its end. WATERMARK_MAX and the end follow the last partition's.
 *
 * Bad records. What the decoder refuses fails the job, is skipped, or goes to the table's
 * dead-letter topic as it came, with headers that say from where and why; each is counted.
 *
 * Limits: TABLE_SOURCE_PARTITIONS_MAX partitions a lane; a row must fit the largest parcel. */
#pragma once

#include "base.h"
#include "dataplane/record.h"
#include "dataplane/source.h"

#define TABLE_SOURCE_PARTITIONS_MAX 4096

/* Where a table's records come from on a lane. */
struct table_source_edge {
    struct record_source *records;    /* topic numbers are those of plan_source.topics */
    struct record_sink *dead_letters; /* NULL unless the table wants it */
    uint32_t dead_letter_topic;       /* number in that sink */
    size_t record_bytes_max;          /* 0: the decoder's default */
};

/* job_lane_config.source_environment. */
struct table_source_environment {
    /* Finds the edge of a table on a lane; all of it is borrowed.
     * returns  0 or -errno */
    int (*find)(void *context, const struct plan_node *node, uint32_t lane,
                struct table_source_edge *out, struct error *error);
    void *context;
};

struct table_source_counters {
    uint64_t records;
    uint64_t rows;
    uint64_t bad; /* skipped or sent to the dead-letter topic */
    uint64_t dead_letters;
};

extern const struct source_ops table_source_ops;

/* Names a partition that will be read, where the record source cannot list them.
 * source   made by table_source_ops
 * returns  false when there are too many
 * threads  owning lane; control before it starts */
bool table_source_assign(struct source *source, uint32_t topic, uint32_t partition);

/* Shows what was counted.
 * source   made by table_source_ops
 * returns  borrowed
 * threads  owning lane writes; control may read */
const struct table_source_counters *table_source_counters(const struct source *source);
