/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes beyond the next expected one have arrived. The bytes themselves lie in the receive
 * buffer already, each at its own place: the window never promises more than the buffer's free
 * part, so early bytes need no buffer of their own and pin no frame.
 *
 * Invariants: (1) ranges are sorted, disjoint and not adjacent; (2) each is longer than nothing;
 * (3) all lie beyond the next expected offset; (4) at most TCP_RANGES_MAX of them, what would need
 * one more is refused and comes again. Offsets are 64 bits wide and count from the stream's first
 * byte, so nothing wraps here. */
#pragma once

#include "base.h"

#define TCP_RANGES_MAX 64

struct tcp_range {
    uint64_t start;
    uint64_t end;
    uint32_t stamp; /* when it last grew, for the order of SACK blocks */
};

struct tcp_reassembly {
    uint32_t count;
    uint32_t stamp;
    struct tcp_range ranges[TCP_RANGES_MAX];
};

/* Adds [start, end).
 * new_bytes how many of them were not there yet
 * returns   false when the queue is full: nothing was added
 * threads   owning lane only */
bool tcp_reassembly_add(struct tcp_reassembly *queue, uint64_t start, uint64_t end,
                        uint64_t *new_bytes);

/* Takes what has become contiguous.
 * next     the next expected offset
 * returns  the new next expected offset, at least next
 * threads  owning lane only */
uint64_t tcp_reassembly_advance(struct tcp_reassembly *queue, uint64_t next);

/* Lists ranges, the one that grew last first.
 * out      room for count_max of them
 * returns  how many
 * threads  owning lane only
 * source   RFC 2018 §4 */
uint32_t tcp_reassembly_recent(const struct tcp_reassembly *queue, struct tcp_range *out,
                               uint32_t count_max);

/* Counts the bytes that wait.
 * threads  owning lane only */
uint64_t tcp_reassembly_held_bytes(const struct tcp_reassembly *queue);
