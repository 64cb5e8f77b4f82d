/* SPDX-License-Identifier: Apache-2.0 */
/* One stack on a simulated port without a wire: a test writes the frames that arrive and reads the
 * frames that leave, on a clock that it turns itself. The other station is 198.18.0.1. */
#pragma once

#include "nic/stack_internal.h"
#include "tests/sim/wire_sim.h"

#define HARNESS_LOCAL_IP4   UINT32_C(0xc6120002)
#define HARNESS_REMOTE_IP4  UINT32_C(0xc6120001)
#define HARNESS_REMOTE_PORT 9092
#define HARNESS_ISN         UINT32_C(1000000)
#define HARNESS_MS          UINT64_C(1000000)

struct harness {
    struct nic_config config;
    struct port *port;
    struct stack *stack;
    struct stream *stream;
    struct tcp_connection *connection;
    uint64_t now_ns;
    uint16_t local_port;
    uint32_t iss;
    bool timestamps; /* of the handshake, and of segments sent from then on */
    bool sack;
    uint16_t mss_bytes;
    int scale; /* -1 for none */
    uint16_t window;
    uint32_t timestamp;
    uint32_t timestamp_echo;
};

/* A segment as a test writes or reads it. */
struct harness_segment {
    uint32_t seq;
    uint32_t ack;
    uint8_t flags;
    uint16_t window;
    struct tcp_options options;
    uint32_t payload_bytes;
    uint8_t payload[1600];
};

/* Builds a stack; config may be changed before harness_start. */
void harness_init(struct harness *harness);

/* Creates the stack as configured. */
void harness_start(struct harness *harness);

/* Starts, connects and finishes the handshake; nothing is left to be read. */
void harness_open(struct harness *harness);

/* Frees everything; fails when frames leaked or counters do not balance. */
void harness_fini(struct harness *harness);

/* Feeds a raw frame and polls once. */
void harness_frame(struct harness *harness, const uint8_t *frame, size_t bytes);

/* Builds an IPv4 frame around a transport packet, with right checksums for TCP and IP.
 * returns  bytes written to frame */
size_t harness_ip4(uint8_t *frame, uint8_t protocol, const uint8_t *l4, size_t l4_bytes);

/* Feeds a TCP segment from the remote port and polls once. */
void harness_segment(struct harness *harness, const struct harness_segment *segment);

/* Feeds a segment with a payload of the given bytes, seq relative to the stream's first byte and
 * ack relative to the stack's first byte. */
void harness_data(struct harness *harness, uint32_t seq, uint32_t ack, uint8_t flags,
                  const char *payload);

/* Takes the next TCP segment that left; ARP is skipped.
 * returns  false when none is left */
bool harness_take(struct harness *harness, struct harness_segment *out);

/* Throws away everything that left. */
void harness_drain(struct harness *harness);

/* Turns the clock and polls twice, so that ACKs that may wait leave too. */
void harness_wait(struct harness *harness, uint64_t ns);
