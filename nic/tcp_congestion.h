/* SPDX-License-Identifier: Apache-2.0 */
/* How much may be in flight: NewReno's window with the RFC 6928 start, reduced in proportion
 * during recovery (RFC 6937), behind calls that CUBIC could answer as well. Only Produce traffic
 * is large, and mostly on one LAN, so the plain algorithm comes first. */
#pragma once

#include "base.h"

enum tcp_phase {
    TCP_PHASE_OPEN = 0,
    TCP_PHASE_RECOVERY, /* loss found by acknowledgments */
    TCP_PHASE_LOSS,     /* a timeout expired: slow start until recover_seq is acknowledged */
};

struct tcp_congestion {
    enum tcp_phase phase;
    uint32_t mss_bytes;
    uint32_t initial_bytes;
    uint32_t cwnd_bytes;
    uint32_t ssthresh_bytes;
    uint32_t grown_bytes; /* acknowledged in congestion avoidance, not yet turned into a segment */
    uint32_t recover_seq; /* the phase ends when this is acknowledged */
    uint32_t flight_at_recovery_bytes;
    uint64_t delivered_bytes; /* since recovery began (prr_delivered) */
    uint64_t sent_bytes;      /* since recovery began (prr_out) */
};

/* Starts with the initial window.
 * segments initial window in segments
 * source   RFC 6928 §2 */
void tcp_congestion_init(struct tcp_congestion *congestion, uint32_t mss_bytes, uint32_t segments);

/* Takes a new, smaller segment size (path MTU).
 * source   RFC 5681 §3.1: the window is kept in bytes, at least two segments */
void tcp_congestion_mss(struct tcp_congestion *congestion, uint32_t mss_bytes);

/* Grows the window after an acknowledgment outside recovery.
 * acked_bytes newly acknowledged
 * limited     whether the window was what held sending back
 * source      RFC 5681 §3.1, with appropriate byte counting (RFC 3465, L = 2) */
void tcp_congestion_ack(struct tcp_congestion *congestion, uint32_t acked_bytes, bool limited);

/* Enters fast recovery unless already in a recovery of the same flight.
 * flight_bytes in flight when the loss was found
 * snd_nxt      end of what was sent so far
 * returns      whether recovery was entered
 * source       RFC 6675 §5, RFC 6937 §3 */
bool tcp_congestion_loss(struct tcp_congestion *congestion, uint32_t flight_bytes,
                         uint32_t snd_nxt);

/* Sets the window during fast recovery, after each acknowledgment.
 * delivered_bytes newly acknowledged or selectively acknowledged
 * pipe_bytes      still in flight
 * repair          a new hole was found by a partial acknowledgment: one segment goes in any case
 * source          RFC 6937 §3.1, slow start reduction bound */
void tcp_congestion_recovery_ack(struct tcp_congestion *congestion, uint32_t delivered_bytes,
                                 uint32_t pipe_bytes, bool repair);

/* Ends a phase when its flight is acknowledged.
 * returns  whether it ended */
bool tcp_congestion_exit(struct tcp_congestion *congestion, uint32_t snd_una);

/* A retransmission timeout expired.
 * first    not a repetition for the same bytes
 * source   RFC 5681 §3.1, equation 4 */
void tcp_congestion_timeout(struct tcp_congestion *congestion, uint32_t flight_bytes,
                            uint32_t snd_nxt, bool first);

/* Nothing was sent for longer than a timeout: start again from the initial window.
 * source   RFC 5681 §4.1 */
void tcp_congestion_idle(struct tcp_congestion *congestion);
