/* SPDX-License-Identifier: Apache-2.0 */
/* State that ends so long after its last write (table.exec.state.ttl, STATE_TTL): the clock, the
 * test, and the sweep that frees what has ended. Time is processing time and comes by ticks only.
 * What has ended reads as absent at once; the sweep gives its memory back later, a few segments of
 * the table a tick, so that a pass takes about half a lifetime. Its cursor is not saved: after a
 * restore a pass begins anew, and nothing is lost by that. */
#pragma once

#include "base.h"
#include "state/table.h"

#define EXPIRY_TIME_NONE        INT64_MIN
#define EXPIRY_SEGMENTS_MAX     16  /* a tick */
#define EXPIRY_SEGMENTS_LOW_MAX 128 /* a tick, while the arena is low */

struct expiry {
    uint64_t ttl_ms;   /* 0: state never ends */
    int64_t now_ms;    /* of the last tick; EXPIRY_TIME_NONE before the first */
    uint64_t due;      /* segments that the sweep owes, times half the lifetime */
    uint64_t segments; /* the most that the table had in this pass: emptying must not slow it */
    struct table_cursor cursor;
};

/* Sets the lifetime; no tick has come.
 * threads  control */
static inline void expiry_init(struct expiry *expiry, uint64_t ttl_ms)
{
    *expiry = (struct expiry){.ttl_ms = ttl_ms, .now_ms = EXPIRY_TIME_NONE};
}

/* Tells whether something last written at that time has ended. What was written before the first
 * tick has no time yet: it counts as new until it is written again, or swept. State restored from
 * another lane may be a little ahead of this one's clock.
 * threads  owning lane only */
static inline bool expiry_is_over(const struct expiry *expiry, int64_t written_ms)
{
    return expiry->ttl_ms != 0 && written_ms != EXPIRY_TIME_NONE && written_ms < expiry->now_ms &&
           (uint64_t)expiry->now_ms - (uint64_t)written_ms >= expiry->ttl_ms;
}

/* Moves the clock; it never falls.
 * returns  how many segments of the table to sweep now, at most EXPIRY_SEGMENTS_LOW_MAX
 * threads  owning lane only */
uint32_t expiry_tick(struct expiry *expiry, const struct table *table, int64_t now_ms, bool is_low);

/* Sweeps so many segments: visit removes what has ended. Begins again at the table's end.
 * threads  owning lane only */
void expiry_sweep(struct expiry *expiry, struct table *table, uint32_t segment_count,
                  table_visit_fn *visit, void *context);
