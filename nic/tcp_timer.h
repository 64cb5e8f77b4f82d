/* SPDX-License-Identifier: Apache-2.0 */
/* One deadline a connection, in a binary heap of connection indices. A deadline that moves later,
 * as every acknowledgment moves it, touches nothing: the heap keeps the old one and the owner
 * pushes the entry back when it comes up early. A cancelled timer therefore never fires on its
 * own; whoever pops asks the connection what is really due. */
#pragma once

#include "base.h"

#define TCP_TIMER_NONE UINT32_MAX

struct tcp_timer_entry {
    uint64_t deadline_ns;
    uint32_t index;
};

struct tcp_timers {
    struct tcp_timer_entry *heap;
    uint32_t *place; /* of each connection in the heap, TCP_TIMER_NONE when it is not there */
    uint32_t count;
    uint32_t count_max;
};

/* Reserves a heap for count_max connections.
 * returns  0 or -ENOMEM
 * threads  control path */
int tcp_timers_init(struct tcp_timers *timers, uint32_t count_max);

/* Frees the heap.
 * threads  control path */
void tcp_timers_fini(struct tcp_timers *timers);

/* Asks to be popped at deadline_ns at the latest; UINT64_MAX is fine and does nothing.
 * threads  owning lane only */
void tcp_timers_arm(struct tcp_timers *timers, uint32_t index, uint64_t deadline_ns);

/* Takes a connection out.
 * threads  owning lane only */
void tcp_timers_cancel(struct tcp_timers *timers, uint32_t index);

/* Takes one entry that is due.
 * returns  its connection, or TCP_TIMER_NONE
 * threads  owning lane only */
uint32_t tcp_timers_pop(struct tcp_timers *timers, uint64_t now_ns);

/* When the first entry is due.
 * returns  UINT64_MAX for never
 * threads  owning lane only */
static inline uint64_t tcp_timers_next_ns(const struct tcp_timers *timers)
{
    return timers->count > 0 ? timers->heap[0].deadline_ns : UINT64_MAX;
}
