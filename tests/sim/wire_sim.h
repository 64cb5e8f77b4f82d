/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated body of nic/port.h: one port with one queue, joined to a wire, or, without a wire,
 * to two small lists that a test fills and reads itself. Frames come from a counted set of
 * buffers, so a test sees every leak; taking a frame and handing frames over can be made to fail
 * at random. */
#pragma once

#include "nic/port.h"
#include "tests/sim/wire.h"

#define PORT_SIM_BUFFER_COUNT 512
#define PORT_SIM_LIST_MAX     512
#define PORT_SIM_SEND_BYTES   12000 /* payload of a frame that the port cuts */

struct port_sim_config {
    struct wire *wire; /* NULL: use port_sim_feed and port_sim_take */
    uint64_t seed;
    uint32_t mtu_bytes;
    uint32_t alloc_failure_ppm;
    uint32_t tx_short_ppm;
    bool segments;         /* cuts PORT_TX_SEGMENT frames, as a device does; needs the next */
    bool checksum_offload; /* fills checksums in port_tx, as a device does */
    uint16_t queue_count;  /* 0 counts as 1; only queue 0 moves frames */
};

/* Builds a port. */
struct port *port_sim_create(const struct port_sim_config *config);

/* Frees it; every buffer must have come back. */
void port_sim_destroy(struct port *port);

/* Starts over with another wire run and other luck; every buffer must have come back. */
void port_sim_reset(struct port *port, const struct port_sim_config *config);

/* Tells the port the time at which its next sends happen. */
void port_sim_time(struct port *port, uint64_t now_ns);

/* How many buffers are out. */
uint32_t port_sim_buffers_out(const struct port *port);

/* Without a wire: the next port_rx delivers this frame. */
void port_sim_feed(struct port *port, struct span frame);

/* Without a wire: takes the oldest frame that the stack sent.
 * returns  its bytes, copied into out (WIRE_FRAME_BYTES of room); 0 for none */
uint32_t port_sim_take(struct port *port, uint8_t *out);
