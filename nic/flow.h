/* SPDX-License-Identifier: Apache-2.0 */
/* Which receive queue a flow lands on: the Toeplitz hash of the inbound tuple under the port's own
 * key, its low bits looked up in the port's table. A connection draws random local ports until
 * the reply's queue is its own (about queue_count draws).
 *
 * A device that does not tell its key gets the default one and an even table: it then decides
 * which lane owns a flow, not where the device puts it, and lanes pass misplaced frames on by ring
 * (struct stack_options, hand_off). */
#pragma once

#include "base.h"
#include "nic/port.h"

/* A flow as this host sees it; ports and addresses in host order. */
struct flow_tuple {
    uint32_t local_ip4;
    uint32_t remote_ip4;
    uint16_t local_port;
    uint16_t remote_port;
};

/* Fills key and table of a port whose device told none.
 * threads  control path */
void flow_defaults(struct port_info *info);

/* Computes the queue on which the peer's segments of this flow arrive, or that owns it.
 * returns  below info->queue_count
 * threads  any
 * source   Toeplitz hash, source address and port first, as the peer sends them */
uint16_t flow_queue(const struct port_info *info, const struct flow_tuple *tuple);
