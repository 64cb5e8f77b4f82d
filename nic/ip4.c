/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 in and out. Options are skipped, not read. The identification field only counts up: with DF
 * set it carries no meaning (RFC 6864). */
#include "nic/ip4.h"

#include "nic/checksum.h"
#include "nic/ether.h"
#include "nic/icmp.h"
#include "nic/stack_internal.h"

static bool address_is_ours(const struct stack *stack, uint32_t target_ip4)
{
    ASSERT(stack != NULL);
    return target_ip4 == stack->config.address_ip4;
}

/* A source that no honest packet carries: itself, broadcast, multicast, 0/8 or loopback. */
static bool source_is_odd(const struct stack *stack, uint32_t source_ip4)
{
    ASSERT(stack != NULL);
    uint32_t first = source_ip4 >> 24;
    return source_ip4 == stack->config.address_ip4 || first >= 224 || first == 0 || first == 127;
}

/* Lengths before the checksum, and the device only where it claims to know. */
static bool header_is_good(const struct port_frame *frame, const uint8_t *ip, uint32_t room)
{
    ASSERT(frame != NULL);
    ASSERT(ip != NULL);
    uint32_t header_bytes = (uint32_t)(ip[0] & 0x0f) * 4;
    uint32_t total_bytes = load_be16(ip + 2);
    if (ip[0] >> 4 != 4 || header_bytes < IP4_HEADER_BYTES || header_bytes > room ||
        total_bytes < header_bytes || total_bytes > room) {
        return false;
    }
    if ((frame->flags & (PORT_RX_IP_GOOD | PORT_RX_IP_BAD)) != 0) {
        return (frame->flags & PORT_RX_IP_BAD) == 0;
    }
    return checksum_finish(checksum_add(0, ip, header_bytes)) == 0;
}

static void payload_input(struct stack *stack, const struct ip4_packet *packet, uint8_t protocol)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    if (LIKELY(protocol == IP4_PROTOCOL_TCP)) {
        tcp_input(stack, packet);
    } else if (protocol == IP4_PROTOCOL_ICMP) {
        icmp_input(stack, packet);
    } else {
        stack->counters.rx_drop_other++;
    }
}

void ip4_input(struct stack *stack, const struct port_frame *frame, bool first_hand)
{
    ASSERT(stack != NULL);
    ASSERT(frame->bytes >= ETHER_HEADER_BYTES);
    const uint8_t *ip = frame->data + ETHER_HEADER_BYTES;
    uint32_t room = frame->bytes - ETHER_HEADER_BYTES;
    if (UNLIKELY(room < IP4_HEADER_BYTES)) {
        stack->counters.rx_drop_short++;
        return;
    }
    if (UNLIKELY(!header_is_good(frame, ip, room))) {
        stack->counters.rx_drop_ip_header++;
        return;
    }
    uint32_t header_bytes = (uint32_t)(ip[0] & 0x0f) * 4;
    struct ip4_packet packet = {
        .source_ip4 = load_be32(ip + 12),
        .target_ip4 = load_be32(ip + 16),
        .payload = {ip + header_bytes, load_be16(ip + 2) - header_bytes},
        .frame = frame,
        .first_hand = first_hand,
    };
    if (!address_is_ours(stack, packet.target_ip4) || source_is_odd(stack, packet.source_ip4)) {
        stack->counters.rx_drop_other++;
    } else if ((load_be16(ip + 6) & IP4_FRAGMENT_MASK) != 0) {
        stack->counters.rx_drop_fragment++;
    } else {
        payload_input(stack, &packet, ip[9]);
    }
}

uint32_t ip4_next_hop(const struct stack *stack, uint32_t target_ip4)
{
    ASSERT(stack != NULL);
    ASSERT(stack->config.prefix_bits >= 1 && stack->config.prefix_bits <= 32);
    uint32_t mask = UINT32_MAX << (32 - stack->config.prefix_bits);
    uint32_t own = stack->config.address_ip4;
    if (target_ip4 == 0 || target_ip4 == own || target_ip4 >> 24 >= 224 ||
        target_ip4 >> 24 == 127) {
        return 0;
    }
    if ((target_ip4 & mask) != (own & mask)) {
        return stack->config.gateway_ip4;
    }
    bool is_network = stack->config.prefix_bits < 31 &&
                      ((target_ip4 & ~mask) == 0 || (target_ip4 & ~mask) == ~mask);
    return is_network ? 0 : target_ip4;
}

static void header_write(struct stack *stack, struct port_frame *frame, uint32_t target_ip4,
                         uint8_t protocol)
{
    ASSERT(stack != NULL);
    ASSERT(frame->bytes >= ETHER_HEADER_BYTES + IP4_HEADER_BYTES);
    uint8_t *ip = frame->data + ETHER_HEADER_BYTES;
    ip[0] = 0x45;
    ip[1] = 0;
    store_be16(ip + 2, (uint16_t)(frame->bytes - ETHER_HEADER_BYTES));
    store_be16(ip + 4, stack->ip4_id++);
    store_be16(ip + 6, IP4_FLAG_DF);
    ip[8] = IP4_TTL;
    ip[9] = protocol;
    store_be16(ip + 10, 0);
    store_be32(ip + 12, stack->config.address_ip4);
    store_be32(ip + 16, target_ip4);
    if (stack->info->tx_ip_sum) {
        frame->flags |= PORT_TX_IP_SUM;
    } else {
        store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP4_HEADER_BYTES)));
    }
}

void ip4_send(struct stack *stack, const struct ip4_route *route, struct port_frame *frame)
{
    ASSERT(stack != NULL);
    ASSERT(route->target_ip4 != 0);
    header_write(stack, frame, route->target_ip4, route->protocol);
    arp_send(stack, route->neighbour_index, frame);
}

void ip4_reply(struct stack *stack, const struct ip4_packet *received, uint8_t protocol,
               struct port_frame *frame)
{
    ASSERT(stack != NULL);
    ASSERT(received->frame->bytes >= ETHER_HEADER_BYTES);
    header_write(stack, frame, received->source_ip4, protocol);
    ether_header_write(frame->data, received->frame->data + MAC_BYTES, stack->info->mac,
                       ETHER_TYPE_IP4);
    stack_frame_push(stack, frame);
}
