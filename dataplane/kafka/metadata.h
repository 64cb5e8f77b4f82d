/* SPDX-License-Identifier: Apache-2.0 */
/* What the client knows of the cluster: brokers, the topics it was asked about, and the leader and
 * leader epoch of each of their partitions. Requests are v7 down to v2, what the broker has.
 *
 * Invariants:
 *   1. One bad answer never makes it forget: a broker, topic or partition that an answer leaves
 *      out, or reports with an error, keeps what was known; only KAFKA_METADATA_MISSES answers in a
 *      row turn a known topic into a missing one.
 *   2. A leader epoch never goes back, unless that many answers in a row insist.
 * Source: protocol guide, Metadata; KIP-320. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/kafka/wire.h"

#define KAFKA_METADATA_VERSION_MAX 7
#define KAFKA_METADATA_VERSION_MIN 2
#define KAFKA_METADATA_MISSES      5

struct kafka_broker {
    struct kafka_address address;
    int32_t node_id; /* negative: a bootstrap address, whose node is not known */
    bool has_moved;  /* its address changed: the connections to it must be closed */
    bool is_complained_about;
};

struct kafka_leader {
    int32_t broker_index; /* -1 unknown */
    int32_t epoch;        /* -1 unknown */
    uint32_t stale_count; /* answers in a row with a lower epoch */
};

struct kafka_topic {
    char name[KAFKA_TOPIC_BYTES];
    uint32_t name_bytes;
    int32_t partition_count; /* 0 not known yet */
    uint32_t miss_count;     /* answers in a row without it */
    bool is_missing;
    bool is_reported; /* the event about it went out */
    bool is_too_wide; /* more partitions than there is room for, and the event went out */
    int16_t error_code;
    struct kafka_leader *leaders;
};

struct kafka_metadata {
    struct kafka_broker *brokers;
    uint32_t broker_count;
    uint32_t brokers_max;
    struct kafka_topic *topics;
    uint32_t topic_count;
    uint32_t topics_max;
    uint32_t topic_partitions_max;
    uint32_t change_count; /* grows whenever a leader or a count changed */
};

/* What an answer did, for the caller to act on. */
struct kafka_metadata_news {
    bool is_incomplete; /* some partition has no leader, or a topic an error: ask again soon */
    bool brokers_moved; /* some has_moved is set */
    uint32_t leader_moves;
    struct kafka_events *events; /* where news goes */
    uint64_t now_ns;
};

/* Finds a topic by name.
 * returns  its index, -1 when it was never asked about
 * threads  owning lane only */
int32_t kafka_metadata_find_topic(const struct kafka_metadata *metadata, struct span name);

/* Adds a topic to ask about.
 * returns  its index (also when it is there already), -1 when the table is full
 * threads  owning lane only */
int32_t kafka_metadata_add_topic(struct kafka_metadata *metadata, struct span name);

/* Tells who leads a partition.
 * returns  NULL when that is not known
 * threads  owning lane only */
const struct kafka_leader *kafka_metadata_leader(const struct kafka_metadata *metadata,
                                                 uint32_t topic_index, int32_t partition);

/* Writes the body of a request for all topics.
 * version  KAFKA_METADATA_VERSION_MIN to _MAX
 * threads  owning lane only */
void kafka_metadata_write(const struct kafka_metadata *metadata, int16_t version,
                          struct kafka_writer *writer);

/* Takes an answer in.
 * version  of the request
 * news     events and now_ns set by the caller, the rest is filled in
 * returns  0, or -1 when the bytes are not a Metadata response; what stood before the bad place
 *          is merged all the same
 * threads  owning lane only */
int kafka_metadata_read(struct kafka_metadata *metadata, int16_t version, struct span body,
                        struct kafka_metadata_news *news);
