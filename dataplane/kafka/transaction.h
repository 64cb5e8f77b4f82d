/* SPDX-License-Identifier: Apache-2.0 */
/* The transactional half of a client, protocol version 1: coordinator, InitProducerId,
 * AddPartitionsToTxn before a partition's first batch, EndTxn. A client has one transactional id at
 * a time; its producing half then writes inside its transaction and nowhere else.
 *
 *     OFF | READY -start-> STARTING -> READY -begin-> OPEN -end-> COMMITTING | ABORTING -> READY
 *     OFF -resolve-> RESOLVING -> OFF         any -> FAILED (fenced, refused: for good)
 *
 * Invariants:
 *   1. At most one request of this half is in flight; everything it asks may be asked again.
 *   2. A partition's batch leaves only after the coordinator has said that the partition belongs
 *      to the transaction.
 *   3. EndTxn leaves only when everything appended is answered; it is repeated until it is
 *      answered too. A transaction without a record is ended without asking anybody.
 *   4. The epoch never changes inside a transaction: what the idempotent producer cures by a new
 *      epoch fails the transaction.
 *   5. A request whose connection broke may be carried out late, and an EndTxn of one transaction
 *      then ends the next, for both have one epoch. is_tainted says that such a request may be
 *      under way under this epoch: whoever holds the client starts the id anew before the next
 *      transaction.
 * Source: KIP-98, KIP-360, KIP-890 (the late request); protocol version 1, as brokers of every
 * version understand it. */
#pragma once

#include "base.h"
#include "dataplane/kafka/core.h"
#include "dataplane/kafka/produce.h"

#define KAFKA_FIND_COORDINATOR_VERSION 2
#define KAFKA_INIT_VERSION             3
#define KAFKA_ADD_PARTITIONS_VERSION   1
#define KAFKA_END_TXN_VERSION          1

struct kafka_transaction {
    struct kafka_core *core;
    struct kafka_produce *produce;
    enum kafka_transaction_state state;
    char id[KAFKA_TRANSACTIONAL_ID_BYTES]; /* own, or the one that is resolved */
    int64_t producer_id;                   /* -1: not known, ask for it */
    int16_t producer_epoch;
    bool is_commit;       /* what RESOLVING does */
    bool has_partitions;  /* the coordinator may know of this transaction */
    bool is_tainted;      /* invariant 5 */
    int32_t coordinator;  /* node id, -1 unknown */
    uint32_t request_on;  /* connection of the request in flight, or KAFKA_NO_CONNECTION */
    uint32_t ask_cursor;  /* the broker asked for the coordinator last */
    uint32_t fail_count;  /* in a row */
    uint64_t retry_at_ns; /* no request before it */
    uint64_t now_ns;
    int16_t error_code; /* why it FAILED */
};

/* What a coordinator answered, by api. */
struct kafka_transaction_answer {
    int32_t throttle_ms;
    int16_t code;
    int32_t node_id; /* FindCoordinator */
    int64_t producer_id;
    int16_t producer_epoch;
};

/* Fills it in: OFF.
 * threads  control */
void kafka_transaction_init(struct kafka_transaction *transaction, struct kafka_core *core,
                            struct kafka_produce *produce);

/* As kafka_client_transaction_start.
 * threads  owning lane only */
void kafka_transaction_start(struct kafka_transaction *transaction, const char *id);

/* As kafka_client_transaction_resolve.
 * threads  owning lane only */
void kafka_transaction_resolve(struct kafka_transaction *transaction,
                               const struct kafka_transaction_claim *claim);

/* As kafka_client_transaction_begin.
 * threads  owning lane only */
bool kafka_transaction_begin(struct kafka_transaction *transaction);

/* As kafka_client_transaction_end.
 * threads  owning lane only */
void kafka_transaction_end(struct kafka_transaction *transaction, bool is_commit);

/* Sends what is due; to be called before the producing half's poll.
 * returns  requests sent
 * threads  owning lane only */
uint32_t kafka_transaction_poll(struct kafka_transaction *transaction, uint64_t now_ns);

/* Takes in a response of one of the four APIs that a connection holds.
 * returns  false when it is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_transaction_take(struct kafka_transaction *transaction, uint32_t connection_index,
                            uint64_t now_ns);

/* Forgets what a lost connection had in flight.
 * threads  owning lane only */
void kafka_transaction_lost(struct kafka_transaction *transaction, uint32_t connection_index);

/* Writes the body of FindCoordinator v2 for a transactional id.
 * threads  any */
void kafka_write_find_coordinator(struct kafka_writer *writer, const char *id);

/* Writes the body of InitProducerId v3: a higher epoch of whatever the id has.
 * threads  any */
void kafka_write_init_transaction(struct kafka_writer *writer, const char *id, uint32_t timeout_ms);

/* Writes the body of AddPartitionsToTxn v1: the partitions that have something to send and are not
 * added yet.
 * threads  owning lane only */
void kafka_write_add_partitions(struct kafka_writer *writer,
                                const struct kafka_transaction *transaction);

/* Writes the body of EndTxn v1.
 * threads  any */
void kafka_write_end_transaction(struct kafka_writer *writer,
                                 const struct kafka_transaction *transaction, bool is_commit);

/* Reads one of the four responses. Of AddPartitionsToTxn the first code that is an answer counts;
 * where all are 0 the partitions listed are noted as added.
 * produce   its sinks are marked
 * returns   false when it is malformed
 * threads   owning lane only */
bool kafka_read_transaction_answer(struct kafka_produce *produce, enum kafka_api api,
                                   struct span body, struct kafka_transaction_answer *out);
