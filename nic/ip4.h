/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 for a host with one address: header checks in, header and next hop out. Nothing is
 * fragmented when sending (DF is always set) and received fragments are counted and dropped: a
 * broker on a path with a smaller MTU is met by path MTU discovery. */
#pragma once

#include "base.h"
#include "nic/port.h"

struct stack;

/* What the transport layers need to know of a received packet. */
struct ip4_packet {
    uint32_t source_ip4;
    uint32_t target_ip4;
    struct span payload; /* header and data of the transport protocol, padding cut off */
    const struct port_frame *frame;
    bool first_hand; /* not passed on by another lane */
};

/* Where to send, and what is in the frame behind the IPv4 header. */
struct ip4_route {
    uint32_t target_ip4;
    uint32_t neighbour_index; /* of the next hop, from arp_refresh */
    uint8_t protocol;
};

/* Reads one IPv4 frame and passes it on; adds to exactly one rx_ counter.
 * threads  owning lane only
 * source   RFC 791 §3.1, RFC 1122 §3.2.1 */
void ip4_input(struct stack *stack, const struct port_frame *frame, bool first_hand);

/* Finds the next hop of an address.
 * returns  its IPv4 address, or 0 when there is no route
 * threads  owning lane only */
uint32_t ip4_next_hop(const struct stack *stack, uint32_t target_ip4);

/* Writes the IPv4 header of a frame whose transport part is complete, and sends it; ownership
 * moves.
 * frame    from stack_frame_take
 * threads  owning lane only */
void ip4_send(struct stack *stack, const struct ip4_route *route, struct port_frame *frame);

/* As ip4_send, back to the station that a received packet came from: asks and learns no neighbour,
 * so strangers cannot crowd the ARP cache.
 * threads  owning lane only */
void ip4_reply(struct stack *stack, const struct ip4_packet *received, uint8_t protocol,
               struct port_frame *frame);
