/* SPDX-License-Identifier: Apache-2.0 */
/* Round-trip time and the retransmission timeout that follows from it (RFC 6298), in nanoseconds.
 * The floor is configured: 200 ms by default, because a peer may delay an ACK for 40 to 200 ms.
 * Backing off is a shift on top of the computed timeout, capped at the ceiling. */
#pragma once

#include "base.h"

#define TCP_RTT_MIN_WINDOW_NS (10 * NANOSECONDS_PER_S)

struct tcp_rtt {
    uint64_t srtt_ns; /* 0 until the first sample */
    uint64_t rttvar_ns;
    uint64_t rto_ns; /* without back-off */
    uint64_t rto_ns_min;
    uint64_t rto_ns_max;
    uint64_t min_rtt_ns; /* least sample of about the last 10 s; UINT64_MAX before the first */
    uint64_t min_since_ns;
    uint32_t backoff;
};

/* Starts without a sample.
 * threads  any */
void tcp_rtt_init(struct tcp_rtt *rtt, uint64_t initial_ns, uint64_t min_ns, uint64_t max_ns);

/* Takes one measurement of a segment that was sent once; ends the back-off.
 * source   RFC 6298 §2 */
void tcp_rtt_sample(struct tcp_rtt *rtt, uint64_t sample_ns, uint64_t now_ns);

/* The timeout to use now, back-off included.
 * returns  at most rto_ns_max
 * threads  any
 * source   RFC 6298 §5.5 */
uint64_t tcp_rtt_timeout_ns(const struct tcp_rtt *rtt);
