/* SPDX-License-Identifier: Apache-2.0 */
/* The writing half of a client: sinks (partitions written), idempotent Produce v7 with acks=all,
 * InitProducerId v3; or, under a transactional id (transaction.h), inside its transactions. What
 * gathers in a sink while its requests are in flight is its next batch; there is no linger. Up to
 * produce_in_flight_max requests a broker, one batch a partition each, and up to
 * produce_partition_in_flight_max batches of one partition among them.
 *
 * A sink's batches stand in one queue, oldest first:
 *
 *     [acked?] [in flight] [in flight] [sealed, to be sent again] [open: takes records]
 *
 * Invariants:
 *   1. A sealed batch's bytes never change, but for its stamp after the producer's epoch changed
 *      or records before it were refused for good, and then only when nothing of the sink is in
 *      flight. A retry is the same bytes under the same sequence.
 *   2. After any failure of a batch nothing new of the sink leaves until all that is in flight is
 *      answered or its connection is lost; then the queue goes out again in order (recovery).
 *   3. Sequences of the sealed batches run on without a gap, modulo 2^31, up to next_sequence. A
 *      batch that was acknowledged before its queue was numbered anew has none
 *      (KAFKA_NO_SEQUENCE): what is left of the queue runs on across it.
 *   4. A batch's buffer is free again only when it is acknowledged or refused for good.
 *   5. Until a batch under the current id and epoch is acknowledged, one is in flight: a broker
 *      that has not heard of the producer takes any sequence for the first, so a second batch
 *      could overtake a first that is refused for the moment.
 *   6. Appending leaves one ordinary buffer free, so that a refused batch can always be taken
 *      apart, be it record by record. A large buffer holds a single record.
 *   7. A batch leaves only while fewer than five stand before it in the queue, the acknowledged
 *      ones included: a broker knows the last five of a producer, and an older one that was
 *      stored under an error code must still be recognised when it comes again. A broker that
 *      was restarted may know the last one only: of those that can be there without our knowing,
 *      there is no more than one where produce_partition_in_flight_max is 1.
 * Source: KIP-98, KIP-360, KIP-679. */
#pragma once

#include "base.h"
#include "dataplane/kafka/batch_build.h"
#include "dataplane/kafka/core.h"

#define KAFKA_PRODUCE_VERSION  7
#define KAFKA_SINK_BATCHES_MAX 16
#define KAFKA_DUPLICATE_WINDOW 5
#define KAFKA_NO_BATCH         UINT32_MAX
#define KAFKA_NO_SEQUENCE      (-1)

enum kafka_out_state {
    KAFKA_OUT_FREE = 0,
    KAFKA_OUT_OPEN,   /* takes records */
    KAFKA_OUT_SEALED, /* finished, numbered */
};

/* A batch on its way out, and its buffer. */
struct kafka_out_batch {
    struct span_mut buffer;
    struct kafka_builder builder;
    enum kafka_out_state state;
    uint32_t next; /* in the sink's queue or in the free list */
    int32_t base_sequence;
    uint64_t token;  /* of the request that carries it, when in flight */
    uint64_t tx_end; /* where that request ends in its stream; 0 when it was sent before */
    bool is_large;
    bool is_in_flight;
    bool is_acked;      /* but something before it is not */
    bool is_uncertain;  /* it may be in the log although no answer says so */
    bool was_uncertain; /* and so before it was sent last */
    bool was_sent;
    int16_t refusal; /* the code for which the broker refuses it whole: it is split; 0 none */
};

struct kafka_sink {
    uint32_t topic_index;
    int32_t partition;
    uint32_t head; /* oldest batch, KAFKA_NO_BATCH when empty */
    uint32_t tail;
    uint32_t batch_count;
    uint32_t in_flight_count;
    uint32_t in_flight_on; /* connection, when in_flight_count > 0 */
    uint32_t chosen;       /* the batch that joins the request being built */
    int32_t next_sequence; /* of the next batch to seal */
    bool is_recovering;    /* invariant 2 */
    bool is_established;   /* invariant 5 */
    bool is_added;         /* to the open transaction */
    bool is_failed;
    int16_t error_code;
    uint32_t fail_count; /* in a row */
    uint64_t retry_at_ns;
    uint64_t appended_count;
    uint64_t acked_count;
    uint64_t lost_count;
    int64_t last_acked_offset; /* the highest; -1 none or not told */
    uint64_t strange_count;    /* offsets before it that may hold copies of what is uncertain */
    uint64_t handed_ns;
    uint64_t handed_count; /* records of batches that were given to a stream at least once */
};

enum kafka_producer_state {
    KAFKA_PRODUCER_NONE = 0, /* no id yet, or a new one is wanted */
    KAFKA_PRODUCER_READY,
    KAFKA_PRODUCER_BUMP,   /* the epoch must grow: waits until nothing is in flight */
    KAFKA_PRODUCER_FENCED, /* for good */
};

struct kafka_produce {
    struct kafka_core *core;
    struct kafka_sink *sinks;
    uint32_t sink_count;
    bool has_told_full;   /* that there is no room for another sink */
    int32_t *sink_of;     /* topics_max * topic_partitions_max, -1 none */
    uint32_t *topic_want; /* scratch of one send */
    struct kafka_out_batch *batches;
    uint32_t batch_total;
    uint32_t free_small; /* heads of the free lists */
    uint32_t free_large;
    struct span_mut scratch; /* for compression and splitting */

    enum kafka_producer_state state;
    int64_t producer_id;
    int16_t producer_epoch;
    const char *transactional_id; /* NULL: idempotent only */
    int16_t refused_code;         /* why the transaction can write no more, 0 it can */
    uint32_t init_on;             /* connection of the InitProducerId in flight */
    uint32_t init_fail_count;
    uint64_t init_retry_at_ns;

    uint32_t failed_count; /* sinks that have failed */
    int16_t failed_code;   /* the last one's */

    uint64_t token;
    uint32_t cursor;        /* the sink that a request starts with */
    uint32_t unsent_count;  /* batches with records that are neither in flight nor acked */
    uint32_t flight_count;  /* batches in flight */
    uint64_t pending_count; /* records neither acked nor lost */
    uint32_t metadata_seen; /* change_count at the last look at leaders */
    uint64_t now_ns;
};

/* Lays the writing half out, as kafka_core_layout does.
 * threads  control */
void kafka_produce_layout(struct kafka_produce *produce, const struct kafka_config *config,
                          struct kafka_arena *arena);

/* Fills it in after the layout.
 * threads  control */
void kafka_produce_init(struct kafka_produce *produce, struct kafka_core *core);

/* As kafka_client_sink.
 * threads  owning lane only */
bool kafka_produce_sink(struct kafka_produce *produce, uint32_t topic_index, int32_t partition,
                        uint32_t *out);

/* As kafka_client_append.
 * threads  owning lane only */
enum kafka_append kafka_produce_append(struct kafka_produce *produce, uint32_t sink_index,
                                       const struct kafka_produce_record *record);

/* Counts a sink's records whose bytes have been handed to the port, for the first time or again.
 * threads  owning lane only */
uint64_t kafka_produce_departed(const struct kafka_produce *produce, const struct kafka_sink *sink);

/* Sends what is due.
 * returns  requests sent
 * threads  owning lane only */
uint32_t kafka_produce_poll(struct kafka_produce *produce, uint64_t now_ns);

/* Takes in a Produce response that a connection holds.
 * returns  false when it is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_produce_take(struct kafka_produce *produce, uint32_t connection_index, uint64_t now_ns);

/* Takes in an InitProducerId response that a connection holds.
 * returns  false when it is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_produce_take_id(struct kafka_produce *produce, uint32_t connection_index,
                           uint64_t now_ns);

/* Takes back what a lost connection had in flight.
 * threads  owning lane only */
void kafka_produce_lost(struct kafka_produce *produce, uint32_t connection_index, uint64_t now_ns);

/* Asks for a producer id, or a higher epoch, when that is due.
 * returns  requests sent
 * threads  owning lane only */
uint32_t kafka_produce_poll_id(struct kafka_produce *produce);

/* Takes the id and epoch that a transactional id was given; sequences start anew.
 * transactional_id  borrowed for the client's life
 * threads           owning lane only; nothing is in flight */
void kafka_produce_adopt(struct kafka_produce *produce, const char *transactional_id,
                         int64_t producer_id, int16_t producer_epoch, uint64_t now_ns);

/* Tells whether a sink has something to send and is not part of the transaction yet.
 * threads  owning lane only */
static inline bool kafka_produce_wants_adding(const struct kafka_sink *sink)
{
    ASSERT_SLOW(sink != NULL);
    return sink->head != KAFKA_NO_BATCH && !sink->is_added && !sink->is_failed;
}

/* Notes that a partition is part of the transaction; what is not written here is left alone.
 * threads  owning lane only */
void kafka_produce_mark_added(struct kafka_produce *produce, struct span topic, int32_t partition);

/* Checks what holds between the batches of one sink: a broken invariant stops the process.
 * returns  true
 * threads  owning lane only */
bool kafka_produce_sink_is_sound(const struct kafka_produce *produce,
                                 const struct kafka_sink *sink);

/* Gives every unacknowledged batch of a sink its sequence anew, from `first` on.
 * threads  owning lane only; nothing of the sink is in flight */
void kafka_produce_renumber(struct kafka_produce *produce, struct kafka_sink *sink, int32_t first);

/* Acts on the answer for one batch.
 * threads  owning lane only */
void kafka_produce_answer(struct kafka_produce *produce, struct kafka_sink *sink,
                          uint32_t batch_index, int16_t code, int64_t base_offset);

/* Takes a batch out of flight.
 * threads  owning lane only */
void kafka_produce_land(struct kafka_produce *produce, struct kafka_sink *sink,
                        struct kafka_out_batch *batch);

/* Ends a sink for good: its records are lost and counted.
 * threads  owning lane only */
void kafka_produce_fail(struct kafka_produce *produce, struct kafka_sink *sink, int16_t code);

/* Gives acknowledged and lost batches at the head of the queue back.
 * threads  owning lane only */
void kafka_produce_release(struct kafka_produce *produce, struct kafka_sink *sink);

/* Takes a free buffer, down to the last one.
 * returns  its batch's index, KAFKA_NO_BATCH when none is free
 * threads  owning lane only */
uint32_t kafka_produce_acquire(struct kafka_produce *produce, bool is_large);

/* Splits a refused batch in two, or drops its only record and renumbers what follows.
 * index    a batch of the sink that is neither in flight nor acknowledged
 * returns  false when no buffer is free now
 * threads  owning lane only; nothing of the sink is in flight */
bool kafka_produce_split(struct kafka_produce *produce, struct kafka_sink *sink, uint32_t index);
