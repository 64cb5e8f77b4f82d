/* SPDX-License-Identifier: Apache-2.0 */
/* Echo and destination unreachable. Replies never exceed what was received, so the host cannot be
 * made an amplifier. */
#include "nic/icmp.h"

#include "nic/checksum.h"
#include "nic/stack_internal.h"

static bool echo_reply(struct stack *stack, const struct ip4_packet *packet)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    struct port_frame frame;
    uint32_t bytes = (uint32_t)packet->payload.bytes;
    if (stack->reply_budget == 0 || bytes + IP4_HEADER_BYTES > stack->info->mtu_bytes) {
        return false;
    }
    if (!stack_frame_take(stack, bytes, &frame)) {
        return false;
    }
    stack->reply_budget--;
    uint8_t *icmp = frame.data + ETHER_HEADER_BYTES + IP4_HEADER_BYTES;
    memcpy(icmp, packet->payload.data, bytes);
    icmp[0] = ICMP_ECHO_REPLY;
    store_be16(icmp + 2, 0);
    store_be16(icmp + 2, checksum_finish(checksum_add(0, icmp, bytes)));
    ip4_reply(stack, packet, IP4_PROTOCOL_ICMP, &frame);
    stack->counters.icmp_echo_replies++;
    return true;
}

/* The quoted packet is ours, going out, and long enough to hold ports and sequence number. */
static bool unreachable(struct stack *stack, const struct ip4_packet *packet)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    const uint8_t *icmp = packet->payload.data;
    const uint8_t *quoted = icmp + ICMP_HEADER_BYTES;
    size_t room = packet->payload.bytes - ICMP_HEADER_BYTES;
    if (room < IP4_HEADER_BYTES || quoted[0] >> 4 != 4) {
        return false;
    }
    size_t header_bytes = (size_t)(quoted[0] & 0x0f) * 4;
    if (header_bytes < IP4_HEADER_BYTES || room < header_bytes + 8 ||
        quoted[9] != IP4_PROTOCOL_TCP || load_be32(quoted + 12) != stack->config.address_ip4) {
        return false;
    }
    struct tcp_icmp_error report = {
        .tuple =
            {
                .local_ip4 = load_be32(quoted + 12),
                .remote_ip4 = load_be32(quoted + 16),
                .local_port = load_be16(quoted + header_bytes),
                .remote_port = load_be16(quoted + header_bytes + 2),
            },
        .sequence = load_be32(quoted + header_bytes + 4),
        .code = icmp[1],
        .next_mtu_bytes = load_be16(icmp + 6),
    };
    return tcp_icmp_error(stack, &report);
}

void icmp_input(struct stack *stack, const struct ip4_packet *packet)
{
    ASSERT(stack != NULL && packet != NULL);
    const uint8_t *icmp = packet->payload.data;
    size_t bytes = packet->payload.bytes;
    bool taken = false;
    if (bytes >= ICMP_HEADER_BYTES && checksum_finish(checksum_add(0, icmp, bytes)) == 0) {
        if (icmp[0] == ICMP_ECHO_REQUEST && icmp[1] == 0) {
            taken = echo_reply(stack, packet);
        } else if (icmp[0] == ICMP_UNREACHABLE) {
            taken = unreachable(stack, packet);
        }
    }
    if (taken) {
        stack->counters.rx_icmp++;
    } else {
        stack->counters.rx_drop_icmp++;
    }
}
