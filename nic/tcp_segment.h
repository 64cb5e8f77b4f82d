/* SPDX-License-Identifier: Apache-2.0 */
/* Builds one TCP segment into a frame: header, options, payload, checksum. Everything that leaves,
 * data, ACKs, resets and probes, passes here. */
#pragma once

#include "nic/tcp_internal.h"

/* One segment of a connection. */
struct tcp_send {
    uint32_t seq;
    uint64_t offset;        /* of its first payload byte */
    uint32_t payload_bytes; /* above mss_bytes only where the port segments */
    uint8_t flags;
};

/* One segment outside any connection. */
struct tcp_answer {
    uint32_t seq;
    uint32_t ack;
    uint8_t flags;
    bool has_timestamp;
    uint32_t timestamp;
    uint32_t timestamp_echo;
};

/* Sends a segment of a connection with what its receiving side has to say: ACK, window, SACK
 * blocks (left out where a full payload leaves no room; ack_need then stays).
 * returns  false when no frame was free: nothing changed
 * threads  owning lane only */
bool tcp_segment_send(struct tcp_connection *connection, const struct tcp_send *send);

/* Answers a received segment outside any connection.
 * threads  owning lane only */
void tcp_segment_answer(struct stack *stack, const struct ip4_packet *received,
                        const struct tcp_answer *answer);
