/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: the unit that travels between operators and through rings. A parcel is a buffer of one
 * of a few size classes in hugepages; it holds a header and packed rows of one layout, or it is a
 * control item that travels in order with them (watermark, barrier, tick, end of input).
 *
 * A lane owns a pool of parcels. Pushing a parcel hands it over; whoever drops it gives it back to
 * its home pool (for another lane's pool through a return ring, see dataplane/exchange.h). */
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
    PARCEL_WATERMARK, /* control_ms: the new watermark */
    PARCEL_IDLE,      /* the sender does not hold back the watermark until PARCEL_ACTIVE */
    PARCEL_ACTIVE,
    PARCEL_TICK,    /* control_ms: processing time now */
    PARCEL_BARRIER, /* control_ms: the checkpoint's epoch */
    PARCEL_END,     /* no more items from this sender */
};

struct parcel_pool;

struct parcel {
    struct parcel_pool *home; /* where it goes when dropped */
    struct parcel *next;      /* in a queue of its holder */
    uint8_t kind;             /* enum parcel_kind */
    uint8_t size_class;
    uint16_t input;        /* which input of the consuming operator, set by the sender */
    uint32_t row_count;    /* PARCEL_ROWS */
    uint32_t bytes_used;   /* of data, rows packed back to back */
    uint32_t bytes_max;    /* of data */
    int64_t control_ms;    /* control items */
    int64_t processing_ms; /* processing time stamp of the rows, put on by the receive lane */
    /* The ledger's stamps, 0 where the stage was not reached. NIC in stands in each row. */
    uint64_t decoded_ns;
    uint64_t routed_ns;
    uint64_t operated_ns;
    uint64_t encoded_ns;
    _Alignas(8) uint8_t data[];
};

/* Points to the first row.
 * threads  the holder's lane */
static inline const struct row *parcel_first(const struct parcel *parcel)
{
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
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++) {
        into[i] = row;
        row = parcel_next(row);
    }
    return parcel->row_count;
}
