/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the Kafka sink share: appending (sink_kafka.c) and checkpoints with their
 * transactions (sink_kafka_cut.c). Nobody else includes this. */
#pragma once

#include "base.h"
#include "dataplane/sink_kafka.h"

#define INDEX_NONE UINT32_MAX
#define SLOT_IDS   2

struct topic {
    uint32_t client_index;
    uint32_t pool_index;      /* of an exactly-once topic, the same in every pool client */
    uint32_t partition_count; /* 0 until known */
    uint32_t *sinks;          /* by partition: index of the client, INDEX_NONE not open */
    struct sink_kafka_turn turn;
    bool is_exactly_once;
};

/* A record on its way out. */
struct stamp {
    uint64_t arrival_ns;
    uint64_t appended_ns;
    uint64_t number; /* among the records appended to its partition, from 0 */
    const struct kafka_client *client;
    uint32_t client_sink;
    uint32_t ledger_sink;
};

enum slot_state {
    SLOT_FREE = 0,
    SLOT_CURRENT,
    SLOT_PREPARED, /* cut off, its checkpoint is not durable */
    SLOT_COMMITTING,
    SLOT_COMMITTED, /* but a checkpoint that a restart may begin with names its id */
};

/* A client of the pool and its transaction. */
struct slot {
    struct kafka_client *client;
    char ids[SLOT_IDS][KAFKA_TRANSACTIONAL_ID_BYTES];
    uint32_t id; /* the one in use */
    enum slot_state state;
    bool is_used;       /* CURRENT: something was appended */
    uint64_t cut_id;    /* that cut it off */
    uint64_t listed_id; /* the last cut whose facts name the id in use as prepared */
};

/* Where the plain client stood at a cut. */
struct cut {
    uint64_t id;
    uint64_t *targets; /* records of each of its sinks that must be answered */
    uint32_t target_count;
    uint32_t met_count; /* targets from the front that are met */
};

struct sink_kafka {
    struct record_sink records; /* first: the runtime sees this */
    struct kafka_client *client;
    struct ledger *ledger; /* NULL: none is kept */
    struct stamp *stamps;  /* a ring of SINK_KAFKA_STAMPS */
    uint64_t stamps_in;
    uint64_t stamps_out;
    uint64_t (*clock)(void *context); /* of the ledger */
    uint32_t ledger_sinks[SINK_KAFKA_TOPICS_MAX];
    uint32_t topic_count;
    struct topic topics[SINK_KAFKA_TOPICS_MAX];

    struct slot slots[SINK_KAFKA_POOL_MAX];
    uint32_t pool_count;
    uint32_t current;     /* slot that takes records, INDEX_NONE none */
    uint64_t cut_id;      /* the newest cut */
    uint64_t complete_id; /* the newest complete checkpoint */
    uint64_t failed_id;   /* the newest that never will be */
    uint32_t rest;        /* polls until clients without work are looked at */
    bool is_recovered;
    bool is_recovering;
    char transactional_id[SINK_KAFKA_ID_BYTES];
    struct kafka_transaction_claim *claims; /* of earlier runs, for this lane to end */
    uint32_t claim_count;
    uint32_t claim_next;

    struct cut cuts[SINK_KAFKA_CUTS_MAX]; /* a ring */
    uint64_t cuts_in;
    uint64_t cuts_out;
    uint64_t *targets; /* memory of all cuts */
};

/* Fills the pool in from the config.
 * threads  control */
int sink_kafka_make_pool(struct sink_kafka *sink, const struct sink_kafka_config *config,
                         struct error *error);

/* Frees what make_pool and recover took.
 * threads  control */
void sink_kafka_free_pool(struct sink_kafka *sink);

/* Finds the client whose transaction takes records now, opening one when none is.
 * returns  NULL when there is none to open
 * threads  owning lane only */
struct kafka_client *sink_kafka_current(struct sink_kafka *sink);

/* Polls the pool's clients and moves recovery and commits on.
 * returns  work done
 * threads  owning lane only */
uint32_t sink_kafka_poll_pool(struct sink_kafka *sink, uint64_t now_ns);

/* Tells whether nothing of the pool is pending: records, commits, recovery.
 * threads  owning lane only */
bool sink_kafka_pool_is_flushed(const struct sink_kafka *sink);

/* As record_sink_ops.cut. */
void sink_kafka_cut(struct record_sink *self, uint64_t id, struct facts_writer *facts);

/* As record_sink_ops.is_settled. */
bool sink_kafka_is_settled(struct record_sink *self, uint64_t id);

/* As record_sink_ops.complete. */
void sink_kafka_complete(struct record_sink *self, uint64_t id);

/* As record_sink_ops.failed. */
void sink_kafka_failed(struct record_sink *self, uint64_t id);
