/* SPDX-License-Identifier: Apache-2.0 */
/* The first look at a frame: long enough, for this station, and of a type that this host speaks. */
#include "nic/ether.h"

#include "nic/ip4.h"
#include "nic/stack_internal.h"

/* Group addresses pass: ARP requests are broadcast. Multicast ends at the IPv4 address check. */
static bool is_for_us(const struct stack *stack, const uint8_t *target)
{
    ASSERT(stack != NULL);
    ASSERT(target != NULL);
    return memcmp(target, stack->info->mac, MAC_BYTES) == 0 || (target[0] & 1) != 0;
}

static void arp_frame(struct stack *stack, const struct port_frame *frame, bool first_hand)
{
    ASSERT(stack != NULL);
    ASSERT(frame != NULL);
    struct span packet = {frame->data + ETHER_HEADER_BYTES, frame->bytes - ETHER_HEADER_BYTES};
    if (first_hand && stack->hand_off != NULL) {
        (void)stack->hand_off(stack->hand_off_context, STACK_FOREIGN_SHARED, stack->queue, frame);
    }
    if (arp_input(stack, packet)) {
        stack->counters.rx_arp++;
    } else {
        stack->counters.rx_drop_arp++;
    }
}

void ether_input(struct stack *stack, const struct port_frame *frame, bool first_hand)
{
    ASSERT(stack != NULL);
    ASSERT(frame->data != NULL);
    stack->counters.rx_frames++;
    if (UNLIKELY(frame->bytes < ETHER_HEADER_BYTES)) {
        stack->counters.rx_drop_short++;
        return;
    }
    uint16_t type = load_be16(frame->data + 2 * MAC_BYTES);
    if (UNLIKELY(!is_for_us(stack, frame->data))) {
        stack->counters.rx_drop_other++;
    } else if (LIKELY(type == ETHER_TYPE_IP4)) {
        ip4_input(stack, frame, first_hand);
    } else if (type == ETHER_TYPE_ARP) {
        arp_frame(stack, frame, first_hand);
    } else {
        stack->counters.rx_drop_other++;
    }
}
