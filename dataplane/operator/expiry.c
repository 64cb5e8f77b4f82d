/* SPDX-License-Identifier: Apache-2.0 */
/* How fast to sweep state that ends: each tick owes its share of a pass, counted in segments times
 * half the lifetime so that no division loses any; a jump of the clock owes a pass at most. */
#include "dataplane/operator/expiry.h"

/* Longer lifetimes are swept as if they were this long, which also keeps products in 64 bits. */
#define HALF_TTL_MS_MAX (UINT64_C(12) * 3600 * 1000)

uint32_t expiry_tick(struct expiry *expiry, const struct table *table, int64_t now_ms, bool is_low)
{
    ASSERT(expiry->ttl_ms != 0);
    ASSERT(now_ms != EXPIRY_TIME_NONE && now_ms >= expiry->now_ms);
    uint64_t half_ms = expiry->ttl_ms / 2 + 1;
    half_ms = half_ms < HALF_TTL_MS_MAX ? half_ms : HALF_TTL_MS_MAX;
    uint64_t passed_ms = (uint64_t)now_ms - (uint64_t)expiry->now_ms;
    passed_ms = expiry->now_ms != EXPIRY_TIME_NONE && passed_ms < half_ms ? passed_ms : half_ms;
    expiry->now_ms = now_ms;
    if (expiry->segments < table_counters(table)->segments) {
        expiry->segments = table_counters(table)->segments;
    }
    const uint64_t pass = expiry->segments * half_ms;
    expiry->due += expiry->segments * passed_ms;
    expiry->due = expiry->due < pass ? expiry->due : pass;
    const uint32_t most = is_low ? EXPIRY_SEGMENTS_LOW_MAX : EXPIRY_SEGMENTS_MAX;
    if (is_low) {
        expiry->due = pass; /* memory is wanted now */
    }
    const uint64_t count = expiry->due / half_ms < most ? expiry->due / half_ms : most;
    expiry->due -= count * half_ms;
    return (uint32_t)count;
}

void expiry_sweep(struct expiry *expiry, struct table *table, uint32_t segment_count,
                  table_visit_fn *visit, void *context)
{
    ASSERT(visit != NULL);
    ASSERT(segment_count <= EXPIRY_SEGMENTS_LOW_MAX);
    for (uint32_t i = 0; i < segment_count; i++) {
        if (!table_scan(table, &expiry->cursor, visit, context)) {
            expiry->cursor = (struct table_cursor){0};
            expiry->segments = 0;
        }
    }
}
