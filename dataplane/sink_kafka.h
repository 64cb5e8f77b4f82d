/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka as a record sink: the topics that one transmit lane writes, over its Kafka client. Where a
 * record names no partition, one is chosen as Kafka's default partitioner does: by the murmur2 hash
 * of the key, without a key one partition after another, a batch's worth each (sticky). On
 * RECORD_PARTITION_NEXT each record goes to the partition after the last one's, key or not. A full
 * partition is passed over, but where the key or the caller names it.
 *
 * Limits: SINK_KAFKA_TOPICS_MAX topics, SINK_KAFKA_PARTITIONS_MAX partitions each. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/record.h"

#define SINK_KAFKA_TOPICS_MAX     256
#define SINK_KAFKA_PARTITIONS_MAX 1024
#define SINK_KAFKA_STAMPS         (UINT32_C(1) << 16)

struct ledger;
struct sink_kafka;

/* Makes a sink.
 * client   borrowed; polled here
 * topics   topic_count names, numbered as record_sink_append's topic
 * out      freed by sink_kafka_destroy
 * threads  control */
int sink_kafka_create(struct kafka_client *client, const char *const *topics, uint32_t topic_count,
                      struct sink_kafka **out, struct error *error);

/* Frees it; the client stays. NULL is fine.
 * threads  control, when the lane has stopped */
void sink_kafka_destroy(struct sink_kafka *sink);

/* The seam that the runtime writes to.
 * returns  borrowed, lives as long as the sink
 * threads  any */
struct record_sink *sink_kafka_records(struct sink_kafka *sink);

/* Notes how long records stay: each appended record is entered when its batch has been given to the
 * port, at most SINK_KAFKA_STAMPS at a time (those beyond are not entered).
 * ledger   of the lane; borrowed
 * sinks    the ledger's sink of each topic, UINT32_MAX for none; topic_count of them, copied
 * clock    read when a record is appended: the end of its encoding, the start of its way out
 * returns  0 or -ENOMEM
 * threads  control, before the lane starts */
int sink_kafka_keep_ledger(struct sink_kafka *sink, struct ledger *ledger, const uint32_t *sinks,
                           uint64_t (*clock)(void *context));

/* Tells whether records wait to be entered: only then is the clock worth reading.
 * threads  owning lane only */
bool sink_kafka_has_stamps(const struct sink_kafka *sink);

/* Enters the records that have left since the last call; to be called behind a flush of the stack.
 * threads  owning lane only */
void sink_kafka_sent(struct sink_kafka *sink, uint64_t now_ns);

/* Tells how many records the cluster has lost or refused.
 * threads  owning lane only */
uint64_t sink_kafka_lost(const struct sink_kafka *sink);

/* Tells whether a partition takes no more records, and why.
 * threads  owning lane only */
bool sink_kafka_has_failed(const struct sink_kafka *sink, int16_t *error_code);

/* Where records without a named partition go next. Zero-initialise it; one a topic. */
struct sink_kafka_turn {
    uint32_t next; /* by RECORD_PARTITION_NEXT */
    uint32_t sticky;
    uint32_t sticky_left;
};

/* Chooses the partition of a record.
 * turn             of the topic; moved on
 * wanted           as record_sink_append's partition
 * partition_count  of the topic, above 0
 * returns          below partition_count
 * threads          owning lane only */
uint32_t sink_kafka_partition(struct sink_kafka_turn *turn, int32_t wanted,
                              const struct record *record, uint32_t partition_count);

/* Kafka's murmur2 over a key, made positive, as the default partitioner uses it.
 * threads  any
 * source   org.apache.kafka.common.utils.Utils.murmur2 */
uint32_t sink_kafka_hash(struct span key);
