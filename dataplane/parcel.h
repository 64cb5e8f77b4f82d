/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: the unit that travels between operators and through rings. A parcel is a buffer of one
 * of a few size classes in hugepages; it holds a header and packed rows of one layout. Control
 * items (watermark, barrier, tick, end of input) travel in order with parcels, in the same queues
 * and rings, but need no buffer: see struct item.
 *
 * A lane owns a pool of parcels, in memory that the caller gives; nothing allocates after init. A
 * parcel may be held by several consumers of its lane at once, read only; the last one gives it
 * back to its home pool, for another lane's pool through a return ring that always has room. */
#pragma once

#include "base.h"
#include "dataplane/row.h"

#define PARCEL_BYTES_DEFAULT 8192
#define PARCEL_CLASSES_MAX   4
#define PARCEL_ROWS_MAX      256 /* rows in one parcel, and the longest vector of a program */

#define WATERMARK_MIN INT64_MIN /* before the first watermark */
#define WATERMARK_MAX INT64_MAX /* the source has ended */

enum parcel_kind {
    PARCEL_ROWS = 0,
    PARCEL_WATERMARK, /* value: the new watermark */
    PARCEL_IDLE,      /* the sender does not hold back the watermark until PARCEL_ACTIVE */
    PARCEL_ACTIVE,
    PARCEL_TICK,    /* value: processing time now */
    PARCEL_BARRIER, /* value: the checkpoint's epoch */
    PARCEL_END,     /* no more items from this sender */
    PARCEL_KIND_COUNT,
};

struct parcel_pool;

struct parcel {
    struct parcel_pool *home; /* where it goes when dropped */
    struct parcel *next;      /* in the pool's free list */
    uint8_t kind;             /* PARCEL_ROWS: parcels carry nothing else */
    uint8_t size_class;
    uint16_t holders; /* consumers of the holding lane that still read it */
    uint32_t row_count;
    uint32_t bytes_used;   /* of data, rows packed back to back */
    uint32_t bytes_max;    /* of data */
    int64_t processing_ms; /* processing time stamp of the rows, put on by the receive lane */
    /* The ledger's stamps, 0 where the stage was not reached. NIC in stands in each row. */
    uint64_t decoded_ns;
    uint64_t routed_ns;
    uint64_t operated_ns;
    uint64_t encoded_ns;
    _Alignas(8) uint8_t data[];
};

_Static_assert(sizeof(struct parcel) % 8 == 0, "rows are 8-byte aligned");

/* What queues and rings carry: a parcel, or a control item with its value. */
struct item {
    uint64_t head; /* a parcel's address, or an enum parcel_kind other than PARCEL_ROWS */
    int64_t value; /* of a control item */
};

_Static_assert(sizeof(struct item) == 16, "one element of a ring");

/* Wraps a parcel for a queue.
 * threads  any */
static inline struct item item_rows(struct parcel *parcel)
{
    return (struct item){.head = (uint64_t)(uintptr_t)parcel};
}

/* Makes a control item.
 * threads  any */
static inline struct item item_control(enum parcel_kind kind, int64_t value)
{
    return (struct item){.head = (uint64_t)kind, .value = value};
}

/* Tells what an item is.
 * threads  any */
static inline enum parcel_kind item_kind(struct item item)
{
    return item.head < PARCEL_KIND_COUNT ? (enum parcel_kind)item.head : PARCEL_ROWS;
}

/* Unwraps a parcel.
 * item     of kind PARCEL_ROWS
 * threads  the holder's lane */
static inline struct parcel *item_parcel(struct item item)
{
    return (struct parcel *)(uintptr_t)item.head;
}

struct parcel_class {
    uint32_t bytes; /* of one buffer, header included; a multiple of 64 */
    uint32_t count;
};

struct parcel_pool_config {
    struct parcel_class classes[PARCEL_CLASSES_MAX]; /* class_count of them, growing in bytes */
    uint32_t class_count;
    uint32_t lane; /* whose pool it is */
    uint32_t lane_count;
};

/* Tells how much memory a pool of this shape needs.
 * threads  control */
size_t parcel_pool_bytes(const struct parcel_pool_config *config);

/* Lays a pool over memory and touches every page of it.
 * memory   parcel_pool_bytes of it, 64-byte aligned; outlives the pool, which is gone with it
 * returns  the pool, at the memory's start
 * threads  control, before the lanes start */
struct parcel_pool *parcel_pool_init(const struct parcel_pool_config *config, void *memory);

/* Takes an empty parcel with room for at least so many bytes of rows: of the smallest class that
 * holds them, or of a larger one when that is used up.
 * returns  NULL when there is none; it belongs to the caller, holders is 1
 * threads  owning lane only */
struct parcel *parcel_acquire(struct parcel_pool *pool, uint32_t data_bytes);

/* Gives up one hold; the last one sends the parcel home.
 * here     the pool of the lane that drops it
 * threads  that lane only */
void parcel_release(struct parcel *parcel, struct parcel_pool *here);

/* Takes back what other lanes have returned.
 * returns  how many
 * threads  owning lane only */
uint32_t parcel_pool_collect(struct parcel_pool *pool);

/* Tells how many parcels of the smallest class, or larger, are free.
 * threads  owning lane only */
uint32_t parcel_pool_free(const struct parcel_pool *pool);

/* Tells how many parcels the pool has in all.
 * threads  any */
uint32_t parcel_pool_total(const struct parcel_pool *pool);

/* Tells how many bytes of rows fit into the smallest or the largest class.
 * threads  any */
uint32_t parcel_pool_data_bytes(const struct parcel_pool *pool, bool largest);

/* Points to the first row.
 * threads  the holder's lane */
static inline const struct row *parcel_first(const struct parcel *parcel)
{
    ASSERT_SLOW(parcel->row_count <= PARCEL_ROWS_MAX);
    return (const struct row *)(const void *)parcel->data;
}

/* Steps to the row behind `row`. Valid for row_count - 1 steps.
 * threads  the holder's lane */
static inline const struct row *parcel_next(const struct row *row)
{
    return (const struct row *)(const void *)((const uint8_t *)row + row->bytes);
}

/* Lists a parcel's rows.
 * into     room for PARCEL_ROWS_MAX
 * returns  how many
 * threads  the holder's lane */
static inline uint32_t parcel_rows(const struct parcel *parcel, const struct row **into)
{
    ASSERT_SLOW(parcel->row_count <= PARCEL_ROWS_MAX);
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++) {
        into[i] = row;
        row = parcel_next(row);
    }
    return parcel->row_count;
}
