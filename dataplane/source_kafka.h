/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka as a record source: one table on one lane, over its own Kafka client. Partition p is read
 * by receive lane p modulo the number of receive lanes; partitions are assigned as soon as the
 * cluster has told how many there are.
 *
 * Limits: SOURCE_KAFKA_PARTITIONS_MAX partitions a table and lane, the client says which one has no
 * room; records are handed up at most SOURCE_KAFKA_RECORDS at a time, all of one partition. Headers
 * are shown only of tables with a dead-letter topic. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/plan.h"
#include "dataplane/record.h"

#define SOURCE_KAFKA_PARTITIONS_MAX 1024
#define SOURCE_KAFKA_RECORDS        256
#define SOURCE_KAFKA_HEADERS        8192 /* of the records handed up at once */
#define SOURCE_KAFKA_RECORD_HEADERS 1024 /* of one record; with more it says headers_are_cut */

/* A committed position of the table's group, for scan.startup.mode group-offsets. */
struct source_kafka_position {
    uint32_t topic; /* index into plan_source.topics */
    uint32_t partition;
    int64_t offset;
};

struct source_kafka_config {
    struct kafka_client *client;      /* borrowed; polled here */
    const struct plan_source *source; /* borrowed */
    uint32_t lane_index;
    uint32_t lane_count;
    const struct source_kafka_position *positions; /* position_count; borrowed */
    uint32_t position_count;
    enum kafka_reset restored_reset; /* where the broker no longer has a restored offset */
};

/* How far one partition is, for group commits and for people. */
struct source_kafka_progress {
    uint32_t topic;
    uint32_t partition;
    int64_t position; /* the next offset to read, -1 not known yet */
    int64_t high_watermark;
};

struct source_kafka;

/* Makes a source; names the topics to the client.
 * out      freed by source_kafka_destroy
 * threads  control */
int source_kafka_create(const struct source_kafka_config *config, struct source_kafka **out,
                        struct error *error);

/* Frees it; the client stays. NULL is fine.
 * threads  control, when the lane has stopped */
void source_kafka_destroy(struct source_kafka *source);

/* The seam that the runtime reads.
 * returns  borrowed, lives as long as the source
 * threads  any */
struct record_source *source_kafka_records(struct source_kafka *source);

/* Tells whether a partition of this lane has failed for good, and why.
 * reason   a static or client-owned text
 * threads  owning lane only */
bool source_kafka_has_failed(const struct source_kafka *source, int16_t *error_code);

/* Lists the partitions of this lane.
 * into     room for max
 * returns  how many
 * threads  owning lane only */
uint32_t source_kafka_progress(const struct source_kafka *source,
                               struct source_kafka_progress *into, uint32_t max);
