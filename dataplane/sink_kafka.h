/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka as a record sink: the topics that one transmit lane writes, over its Kafka clients. Where a
 * record names no partition, one is chosen as Kafka's default partitioner does: by the murmur2 hash
 * of the key, without a key one partition after another, a batch's worth each (sticky). On
 * RECORD_PARTITION_NEXT each record goes to the partition after the last one's, key or not. A full
 * partition is passed over, but where the key or the caller names it.
 *
 * Topics written exactly once go through a pool of transactional clients, one transaction a
 * checkpoint, the others through the plain client at once:
 *
 *     append -> current -> cut -> prepared -> complete -> committing -> committed -> free
 *
 * A checkpoint names every transaction that is cut off and not known to be committed. An id is used
 * again only when the newest durable checkpoint does not name it: so EndTxn with what a checkpoint
 * has stored can only ever mean the transaction that was meant. Each client has two ids, a and b.
 * It goes on with the same one where that is allowed, and else takes the other, which cannot be
 * named: a client has one transaction at a time.
 *
 * Limits: SINK_KAFKA_TOPICS_MAX topics, SINK_KAFKA_PARTITIONS_MAX partitions each; checkpoints that
 * are under way at once, failed ones included that were not told, are fewer than the pool has
 * clients: beyond, exactly-once topics answer FULL. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/record.h"

#define SINK_KAFKA_TOPICS_MAX     256
#define SINK_KAFKA_PARTITIONS_MAX 1024
#define SINK_KAFKA_STAMPS         (UINT32_C(1) << 16)
#define SINK_KAFKA_POOL_MIN       3
#define SINK_KAFKA_POOL_MAX       8
#define SINK_KAFKA_CUTS_MAX       32 /* remembered; older ones are judged by the next */
#define SINK_KAFKA_ID_BYTES       240

struct facts_transaction; /* facts.h */
struct ledger;
struct sink_kafka;

/* A topic to write. */
struct sink_kafka_topic {
    const char *name;
    bool exactly_once;
};

/* What a sink is made of. */
struct sink_kafka_config {
    struct kafka_client *client;           /* borrowed; polled here; knows all topics */
    const struct sink_kafka_topic *topics; /* numbered as record_sink_append's topic */
    uint32_t topic_count;
    struct kafka_client *const *pool; /* transactional clients, borrowed; polled here */
    uint32_t pool_count;              /* 0, or SINK_KAFKA_POOL_MIN to _MAX */
    const char *transactional_id;     /* of this lane; ids add "-a0", "-b0", "-a1", … */
};

/* Makes a sink. With a pool, exactly-once topics answer FULL until sink_kafka_recover was called
 * and has done its work.
 * config   copied
 * out      freed by sink_kafka_destroy
 * returns  0, -E2BIG, -EINVAL or -ENOMEM with the reason in error
 * threads  control */
int sink_kafka_create(const struct sink_kafka_config *config, struct sink_kafka **out,
                      struct error *error);

/* Opens the pools of all lanes: what the checkpoint names as prepared is committed, what else may
 * be open on ids of earlier runs is aborted, each by some lane. To be called at every start, also
 * without a checkpoint (fact_count 0). The work is done by the sinks' polls; until it is, no
 * checkpoint is settled. What cannot be committed is KAFKA_EVENT_TRANSACTION_LOST and a failed
 * sink.
 * sinks    of all lanes of the job; those without a pool take no part
 * facts    FACTS_TRANSACTION of all lanes of the checkpoint restored, in any order
 * returns  0, -EINVAL when the facts cannot be of one checkpoint, -ENOTSUP when something is
 *          prepared and no sink has a pool, -ENOMEM
 * threads  control, before the lanes start; once */
int sink_kafka_recover(struct sink_kafka *const *sinks, uint32_t sink_count,
                       const struct facts_transaction *facts, uint32_t fact_count,
                       struct error *error);

/* Tells whether the pool is open: recovery is done, or there is nothing to recover.
 * threads  owning lane only */
bool sink_kafka_is_recovered(const struct sink_kafka *sink);

/* Frees it; the client stays. NULL is fine.
 * threads  control, when the lane has stopped */
void sink_kafka_destroy(struct sink_kafka *sink);

/* The seam that the runtime writes to.
 * returns  borrowed, lives as long as the sink
 * threads  any */
struct record_sink *sink_kafka_records(struct sink_kafka *sink);

/* Notes how long records stay: each appended record is entered when its batch has been given to the
 * port, at most SINK_KAFKA_STAMPS at a time (those beyond are counted as skipped).
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
