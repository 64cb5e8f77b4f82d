/* SPDX-License-Identifier: Apache-2.0 */
/* A record source over recorded files, for replay and the test cases:
 *
 *     DIR/TOPIC.jsonl     a value a line, partition 0, no key
 *     DIR/TOPIC.records   an envelope a line: {"p": partition, "t": time in ms, "k": key,
 *                         "h": {header: text}, "v": value as text, or "b64" for bytes}; every
 *                         member may be missing; without a value it is a tombstone
 *
 * Record time, where none is given, is 1700000000000 ms plus the line number from 0. Offsets count
 * from 0 per partition. Records come in file order; of several topics, in the order of record
 * time, then of the topic's index: the order does not depend on the size of batches. Each
 * partition ends with its last record, an empty one at once. */
#pragma once

#include "base.h"
#include "dataplane/record.h"

#define SOURCE_FILE_TIME_MS        INT64_C(1700000000000)
#define SOURCE_FILE_PARTITIONS_MAX 4096
#define SOURCE_FILE_BATCH_DEFAULT  256

struct source_file_config {
    const char *directory;
    const char *const *topics; /* topic_count; indices are those of record_batch_view.topic */
    uint32_t topic_count;
    uint32_t batch_records_max; /* 0: the default */
    bool missing_is_empty;      /* a topic without file is one empty partition, not an error */
};

/* Opens the files of all topics; .records are read whole, .jsonl are mapped.
 * out      freed by source_file_destroy; NULL after a failure
 * returns  0, or -errno with the file and line in error
 * threads  control */
int source_file_create(const struct source_file_config *config, struct record_source **out,
                       struct error *error);

/* Frees it and what its last batch points to; NULL is nothing.
 * threads  control */
void source_file_destroy(struct record_source *source);

/* Tells how many partitions a topic has: the highest number seen plus one.
 * threads  any */
uint32_t source_file_partition_count(const struct record_source *source, uint32_t topic);
