/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet II: the header, and the switch on what is inside. Frames for another station are
 * dropped here (virtual devices deliver them); one VLAN tag is not stripped but dropped, since a
 * port on a tagged VLAN strips it in hardware. */
#pragma once

#include "base.h"
#include "nic/packet.h"
#include "nic/port.h"

struct stack;

/* Writes the 14 bytes in front of a packet.
 * threads  any */
static inline void ether_header_write(uint8_t *into, const uint8_t *target, const uint8_t *source,
                                      uint16_t type)
{
    memcpy(into, target, MAC_BYTES);
    memcpy(into + MAC_BYTES, source, MAC_BYTES);
    store_be16(into + 2 * MAC_BYTES, type);
}

/* Reads one received frame and passes it on; adds to exactly one rx_ counter.
 * frame    borrowed
 * first_hand false when another lane passed it on: it is not handed off again
 * threads  owning lane only */
void ether_input(struct stack *stack, const struct port_frame *frame, bool first_hand);
