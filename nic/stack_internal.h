/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder see of a stack. The IPv6 seam: TCP asks for a frame with room for
 * the network header (stack_frame_take) and hands the finished segment to ip4_send; a second body
 * of the two calls and a wider address in struct flow_tuple are what IPv6 adds. */
#pragma once

#include "nic/arp.h"
#include "nic/stack.h"
#include "nic/tcp_internal.h"

#define STACK_TX_MAX          PORT_BURST_MAX
#define STACK_REPLY_COUNT_MAX 8 /* to strangers, in one turn */

struct stack {
    struct nic_config config;
    struct port *port;
    const struct port_info *info;
    uint16_t queue;
    uint16_t ip4_id;
    uint64_t now_ns;

    struct port_frame tx[STACK_TX_MAX]; /* finished, waiting for the port, in order */
    uint32_t tx_count;
    uint32_t sent_count;   /* since the start of this turn */
    uint32_t reply_budget; /* echo replies and resets to strangers left in this turn */

    struct stack_counters counters;
    struct arp arp;
    struct tcp tcp;

    bool (*hand_off)(void *context, enum stack_foreign kind, uint16_t owner_queue,
                     const struct port_frame *frame);
    void *hand_off_context;
};

/* Takes an empty frame for an IPv4 packet.
 * l4_bytes transport header and payload
 * returns  false when the pool is empty or the outgoing burst is full; counted
 * threads  owning lane only */
bool stack_frame_take(struct stack *stack, uint32_t l4_bytes, struct port_frame *frame);

/* Queues a finished frame for the port; ownership moves.
 * threads  owning lane only */
void stack_frame_push(struct stack *stack, const struct port_frame *frame);

/* Gives back a frame that is not sent after all.
 * threads  owning lane only */
void stack_frame_drop(struct stack *stack, struct port_frame *frame);

/* Hands queued frames to the port.
 * threads  owning lane only */
void stack_frames_flush(struct stack *stack);
