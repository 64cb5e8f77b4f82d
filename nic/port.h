/* SPDX-License-Identifier: Apache-2.0 */
/* The narrow header between the stack and whatever moves frames: bursts in, bursts out, and what
 * the port can do. nic/port_dpdk.c is the body for every DPDK ethdev; tests/sim/wire_sim.c is the
 * simulated body, chosen at link time, so that the hot path pays nothing for the seam.
 *
 * Frames are described by struct port_frame and not by rte_mbuf: a burst is described in one pass
 * over headers that are about to be read anyway, and in return the simulator, the fuzzers and the
 * unit tests need no EAL, no memory pool and no root. A frame is one contiguous span: the body
 * sizes its buffers for the MTU, and flattens or drops what the device chained all the same. */
#pragma once

#include "base.h"
#include "nic/packet.h"

#define PORT_BURST_MAX      64
#define PORT_RSS_KEY_MAX    64
#define PORT_RETA_MAX       512
#define PORT_NAME_BYTES     64
#define PORT_TSO_SEND_BYTES 8192 /* sends above this are worth segmenting in the device */

enum port_frame_flag {
    PORT_RX_IP_GOOD = 1 << 0, /* the device checked: right. No flag: not known, check here */
    PORT_RX_IP_BAD = 1 << 1,
    PORT_RX_L4_GOOD = 1 << 2,
    PORT_RX_L4_BAD = 1 << 3,
    PORT_TX_IP_SUM = 1 << 4,  /* device: fill in the IPv4 header checksum */
    PORT_TX_TCP_SUM = 1 << 5, /* device: fill in TCP's; the field holds the pseudo header sum */
    PORT_TX_SEGMENT = 1 << 6, /* device: cut the payload every mss_bytes */
};

/* One frame, from its Ethernet header on. */
struct port_frame {
    uint8_t *data;
    uint32_t bytes;
    uint16_t flags;
    uint16_t l4_header_bytes; /* sending with PORT_TX_TCP_SUM or PORT_TX_SEGMENT */
    uint16_t mss_bytes;       /* sending with PORT_TX_SEGMENT */
    void *cookie;             /* the body's own handle */
};

/* What the port is and can do; constant after creation. */
struct port_info {
    char name[PORT_NAME_BYTES];
    uint8_t mac[MAC_BYTES];
    uint16_t queue_count;
    uint32_t mtu_bytes;
    bool tx_ip_sum;
    bool tx_tcp_sum;
    uint32_t tso_bytes_max; /* largest payload of a PORT_TX_SEGMENT frame; 0 when it cannot */

    /* Receive steering; rss_key_bytes is 0 when the device does not tell, see flow.h. */
    uint8_t rss_key[PORT_RSS_KEY_MAX] __attribute__((aligned(8)));
    uint32_t rss_key_bytes;
    uint16_t reta[PORT_RETA_MAX]; /* queue by hash, low bits first */
    uint32_t reta_count;          /* a power of two, or 0 */
};

struct port;

/* Tells what the port is.
 * returns  borrowed, valid as long as the port
 * threads  any */
const struct port_info *port_info(const struct port *port);

/* Asks whether the link is up.
 * threads  control path (drivers may make syscalls) */
bool port_link_is_up(const struct port *port);

/* Takes up to count received frames; each is the caller's until port_release.
 * frames   room for count descriptions
 * count    at most PORT_BURST_MAX
 * returns  how many
 * threads  the queue's lane only */
uint32_t port_rx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count);

/* Gives received or unsent frames back.
 * threads  the queue's lane only */
void port_release(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count);

/* Takes an empty frame for sending.
 * bytes    at most MTU + ETHER_HEADER_BYTES, or more where tso_bytes_max allows; frame->bytes is
 *          set to it and frame->data has that much room
 * returns  false when the pool is empty
 * threads  the queue's lane only */
bool port_tx_alloc(struct port *port, uint16_t queue, uint32_t bytes, struct port_frame *frame);

/* Hands frames to the device, in order.
 * returns  how many it took; the rest stay the caller's
 * threads  the queue's lane only */
uint32_t port_tx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count);
