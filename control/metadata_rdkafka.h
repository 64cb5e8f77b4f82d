/* SPDX-License-Identifier: Apache-2.0 */
/* The control path to Kafka over the kernel and librdkafka: whether topics exist, what a group has
 * committed, and commits of positions for outside monitoring. It never carries records. Calls wait
 * for the broker, METADATA_TIMEOUT_MS at most. Control thread only. */
#pragma once

#include "base.h"

#define METADATA_TIMEOUT_MS     5000
#define METADATA_PARTITIONS_MAX 4096 /* of one topic */

struct metadata;

/* A position of one partition. */
struct metadata_offset {
    const char *topic; /* borrowed */
    int32_t partition;
    int64_t offset; /* the next to read; -1: none committed */
};

/* Opens a client; does not connect yet.
 * bootstrap  host:port[,host:port]… as the kernel reaches them
 * group      whose offsets are read and committed; NULL: only topics are asked for
 * out        closed by metadata_close */
int metadata_open(const char *bootstrap, const char *client_id, const char *group,
                  struct metadata **out, struct error *error);

/* Closes it; waits for commits that are on their way, with a broker that hangs for a minute. NULL
 * is fine. */
void metadata_close(struct metadata *metadata);

/* Asks for a topic.
 * partition_count  set on success
 * returns          0, -ENOENT when the cluster does not know it, -ETIMEDOUT when no broker answers
 */
int metadata_topic(struct metadata *metadata, const char *topic, uint32_t *partition_count,
                   struct error *error);

/* Reads what the group has committed.
 * offsets  count of them; topic and partition given, offset filled in */
int metadata_committed(struct metadata *metadata, struct metadata_offset *offsets, uint32_t count,
                       struct error *error);

/* Commits positions; with wait false the broker's answer is not looked at.
 * offsets  those of -1 are left out */
int metadata_commit(struct metadata *metadata, const struct metadata_offset *offsets,
                    uint32_t count, bool wait, struct error *error);
