/* SPDX-License-Identifier: Apache-2.0 */
/* A record sink that writes files, for replay and the test cases: DIR/TOPIC.jsonl with a value a
 * line, or DIR/TOPIC.records with an envelope a line (see source_file.h) for topics whose records
 * have keys, tombstones or newlines. Files are truncated when the sink is made. It writes when its
 * buffer is full and when polled; it is not for a poll core. */
#pragma once

#include "base.h"
#include "dataplane/record.h"

struct sink_file_topic {
    const char *name;
    bool envelopes; /* .records, not .jsonl */
};

struct sink_file_config {
    const char *directory; /* exists */
    const struct sink_file_topic *topics;
    uint32_t topic_count;
};

/* Creates the files of all topics, empty ones too.
 * out      freed by sink_file_destroy; NULL after a failure
 * returns  0 or -errno
 * threads  control */
int sink_file_create(const struct sink_file_config *config, struct record_sink **out,
                     struct error *error);

/* Takes back what was written behind the cut of the newest durable checkpoint, as a broker does
 * with transactions that were never committed.
 * threads  control, when no lane writes */
void sink_file_rewind(struct record_sink *sink);

/* Writes what is buffered and closes the files.
 * returns  0, or the first -errno that any write met
 * threads  control */
int sink_file_destroy(struct record_sink *sink, struct error *error);
