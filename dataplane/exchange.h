/* SPDX-License-Identifier: Apache-2.0 */
/* One edge of the plan as its sender on one lane sees it: to a consumer on the same lane, to one
 * fixed other lane, or spread over lanes by the hash of key columns.
 *
 *     rows of a parcel --hash--> shard (256) --table--> link ---> queue of the consumer, same lane
 *                                                          \---> backlog ---> SPSC ring ---> lane
 *
 * Each (edge, from lane, to lane) has its own ring, so the lanes' pipelines form the same acyclic
 * graph as the plan and cannot wait in a circle. Control items go to every link, in order with the
 * rows before them. What a full ring does not take waits in the link's backlog, in order. */
#pragma once

#include "base.h"
#include "dataplane/key.h"
#include "dataplane/queue.h"
#include "dataplane/ring.h"

#define EXCHANGE_SHARD_COUNT 256

enum exchange_kind {
    EXCHANGE_DIRECT = 0, /* parcels are shared with the consumer on this lane */
    EXCHANGE_LANE,       /* parcels go to one other lane whole */
    EXCHANGE_HASH,       /* rows are copied into one parcel a link */
};

/* The way to one consumer instance. */
struct exchange_link {
    struct queue *queue;    /* same lane: the consumer's; other lane: the backlog */
    struct rte_ring *ring;  /* NULL: same lane */
    struct parcel *filling; /* EXCHANGE_HASH */
};

struct exchange {
    enum exchange_kind kind;
    const struct row_layout *layout; /* of the rows */
    struct key_columns key;          /* EXCHANGE_HASH */
    struct exchange_link *links;     /* link_count; owned by the job */
    uint32_t link_count;
    uint32_t parcel_rows_max;
    struct parcel_pool *pool;
    uint8_t *key_scratch; /* KEY_BYTES_MAX, shared by the lane */
    uint8_t link_of_shard[EXCHANGE_SHARD_COUNT];
    uint64_t copied_rows;
};

/* Tells which shard a row's key belongs to. Keys past KEY_BYTES_MAX all belong to shard 0.
 * scratch  KEY_BYTES_MAX
 * threads  any */
uint32_t exchange_shard(const struct row_layout *layout, const struct row *row,
                        const struct key_columns *key, uint8_t *scratch);

/* Sends a parcel's rows. A direct link gets a hold on the parcel; others get copies, but for a
 * parcel that `give` hands over.
 * give     EXCHANGE_LANE only: the caller's hold goes with the parcel, nobody else has one
 * returns  false when the pool ran dry in the middle: the job cannot go on
 * threads  owning lane only */
bool exchange_send(struct exchange *exchange, struct parcel *parcel, bool give);

/* Closes half-filled parcels and moves backlogs into rings as far as those have room.
 * returns  how many items entered rings
 * threads  owning lane only */
uint32_t exchange_flush(struct exchange *exchange);

/* Sends a control item to every consumer, behind all rows sent before.
 * threads  owning lane only */
void exchange_control(struct exchange *exchange, struct item item);

/* Tells how many rows wait on this lane because rings are full.
 * threads  owning lane only */
uint32_t exchange_backlog_rows(const struct exchange *exchange);

/* Tells how many rows consumers on this lane and rings have still to take.
 * threads  owning lane only */
uint32_t exchange_waiting_rows(const struct exchange *exchange);

/* Tells whether anything, rows or control items, waits on this lane for a ring.
 * threads  owning lane only */
bool exchange_has_backlog(const struct exchange *exchange);
