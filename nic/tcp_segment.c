/* SPDX-License-Identifier: Apache-2.0 */
/* The window field is the free part of the receive buffer, rounded down by the scale; it grows by
 * at least a segment at a time (RFC 9293 §3.8.6.2.2) and its edge never moves left by more than
 * that rounding, behind which arriving bytes are accepted all the same. */
#include "nic/tcp_segment.h"

#include "nic/checksum.h"
#include "nic/stack_internal.h"
#include "nic/tcp_seq.h"

static uint16_t window_field(struct tcp_connection *connection, bool syn)
{
    ASSERT(connection != NULL);
    uint32_t room = tcp_receive_window(connection);
    if (syn) {
        uint16_t field = room < UINT16_MAX ? (uint16_t)room : UINT16_MAX;
        connection->rcv_advertised = connection->rcv_nxt + field;
        return field;
    }
    uint32_t edge = connection->rcv_nxt + room;
    uint32_t half = (uint32_t)(connection->rx.bytes / 2);
    uint32_t least = connection->mss_bytes < half ? connection->mss_bytes : half;
    bool keeps = seq_le(connection->rcv_nxt, connection->rcv_advertised);
    if (keeps && (int32_t)(edge - connection->rcv_advertised) < (int32_t)least) {
        edge = connection->rcv_advertised;
    }
    uint32_t field = (edge - connection->rcv_nxt) >> connection->rcv_scale;
    field = field < UINT16_MAX ? field : UINT16_MAX;
    connection->rcv_advertised =
        seq_max(connection->rcv_advertised, connection->rcv_nxt + (field << connection->rcv_scale));
    return (uint16_t)field;
}

static void syn_options(const struct tcp_connection *connection, struct tcp_options *options)
{
    ASSERT(connection != NULL);
    ASSERT(options != NULL);
    /* In a SYN-ACK only what the peer's SYN offered. */
    bool answer = connection->state == TCP_SYN_RECEIVED;
    uint32_t mtu = connection->stack->info->mtu_bytes;
    options->has_mss = true;
    options->mss_bytes = (uint16_t)(mtu - IP4_HEADER_BYTES - TCP_HEADER_BYTES);
    options->has_scale = !answer || connection->rcv_scale > 0;
    options->scale = connection->rcv_scale;
    options->has_sack_permitted = !answer || connection->sack;
    options->has_timestamp = !answer || connection->timestamps;
}

static void sack_options(const struct tcp_connection *connection, struct tcp_options *options)
{
    ASSERT(connection != NULL);
    ASSERT(options != NULL);
    struct tcp_range ranges[TCP_SACK_BLOCKS_MAX];
    if (connection->duplicate_told) {
        options->sack[options->sack_count++] = connection->duplicate;
    }
    uint32_t most = (connection->timestamps ? 3 : TCP_SACK_BLOCKS_MAX) - options->sack_count;
    uint32_t count = tcp_reassembly_recent(&connection->reassembly, ranges, most);
    for (uint32_t i = 0; i < count; i++) {
        options->sack[options->sack_count++] = (struct tcp_sack_block){
            .start = connection->rcv_nxt + (uint32_t)(ranges[i].start - connection->rx_delivered),
            .end = connection->rcv_nxt + (uint32_t)(ranges[i].end - connection->rx_delivered),
        };
    }
}

/* Returns whether SACK blocks had to be left out. */
static bool options_fill(const struct tcp_connection *connection, const struct tcp_send *send,
                         struct tcp_options *options)
{
    ASSERT(connection != NULL);
    ASSERT(send != NULL);
    *options = (struct tcp_options){0};
    if ((send->flags & TCP_SYN) != 0) {
        syn_options(connection, options);
    } else {
        options->has_timestamp = connection->timestamps && (send->flags & TCP_RST) == 0;
    }
    if (options->has_timestamp) {
        options->timestamp = tcp_timestamp(connection);
        options->timestamp_echo = (send->flags & TCP_ACK) != 0 ? connection->timestamp_recent : 0;
    }
    bool wanted = connection->sack && (send->flags & (TCP_SYN | TCP_RST)) == 0 &&
                  (connection->reassembly.count > 0 || connection->duplicate_told);
    if (!wanted) {
        return false;
    }
    if (send->payload_bytes + TCP_OPTION_BYTES_MAX > connection->mss_bytes) {
        return true;
    }
    sack_options(connection, options);
    return false;
}

static void checksum_fill(const struct stack *stack, struct port_frame *frame, uint32_t target_ip4)
{
    ASSERT(stack != NULL);
    ASSERT(frame != NULL);
    uint8_t *tcp = frame->data + ETHER_HEADER_BYTES + IP4_HEADER_BYTES;
    uint32_t bytes = frame->bytes - ETHER_HEADER_BYTES - IP4_HEADER_BYTES;
    bool segment = (frame->flags & PORT_TX_SEGMENT) != 0;
    /* A segmenting port adds each segment's own length. */
    uint64_t sum = checksum_pseudo_ip4(stack->config.address_ip4, target_ip4, IP4_PROTOCOL_TCP,
                                       segment ? 0 : bytes);
    frame->l4_header_bytes = (uint16_t)((tcp[12] >> 4) * 4);
    if (stack->info->tx_tcp_sum) {
        frame->flags |= PORT_TX_TCP_SUM;
        store_be16(tcp + 16, checksum_fold(sum));
    } else {
        store_be16(tcp + 16, checksum_finish(checksum_add(sum, tcp, bytes)));
    }
}

/* Window and checksum follow later: they depend on what else is in the segment. */
static void header_write(uint8_t *tcp, const struct flow_tuple *tuple, uint32_t seq, uint32_t ack,
                         uint32_t header_bytes_flags)
{
    ASSERT(tcp != NULL);
    ASSERT(tuple != NULL);
    store_be16(tcp, tuple->local_port);
    store_be16(tcp + 2, tuple->remote_port);
    store_be32(tcp + 4, seq);
    store_be32(tcp + 8, ack);
    tcp[12] = (uint8_t)((header_bytes_flags >> 8) / 4 << 4);
    tcp[13] = (uint8_t)header_bytes_flags;
    store_be16(tcp + 14, 0);
    store_be32(tcp + 16, 0);
}

/* Any segment with ACK pays the debt, unless it had to leave its SACK blocks out. */
static void sent_note(struct tcp_connection *connection, const struct tcp_send *send,
                      bool sack_left_out)
{
    ASSERT(connection != NULL);
    ASSERT(send != NULL);
    struct stack *stack = connection->stack;
    connection->sent_ns = stack->now_ns;
    stack->counters.tcp_segments_out++;
    stack->counters.tcp_bytes_out += send->payload_bytes;
    if ((send->flags & TCP_ACK) == 0 || (send->flags & TCP_RST) != 0) {
        return;
    }
    connection->last_ack_sent = connection->rcv_nxt;
    if (!sack_left_out) {
        connection->ack_need = TCP_ACK_NONE;
        connection->duplicate_told = false;
    }
}

bool tcp_segment_send(struct tcp_connection *connection, const struct tcp_send *send)
{
    ASSERT(connection != NULL && send != NULL);
    ASSERT(send->payload_bytes <= connection->tx_committed);
    struct stack *stack = connection->stack;
    struct tcp_options options;
    uint8_t area[TCP_OPTION_BYTES_MAX];
    bool sack_left_out = options_fill(connection, send, &options);
    uint32_t option_bytes = (uint32_t)tcp_options_write(area, &options);
    uint32_t header_bytes = TCP_HEADER_BYTES + option_bytes;
    struct port_frame frame;
    connection->neighbour_index =
        arp_refresh(stack, connection->neighbour_index, connection->hop_ip4);
    if (connection->neighbour_index == ARP_INDEX_NONE ||
        !stack_frame_take(stack, header_bytes + send->payload_bytes, &frame)) {
        return false;
    }
    uint8_t *tcp = frame.data + ETHER_HEADER_BYTES + IP4_HEADER_BYTES;
    header_write(tcp, &connection->tuple, send->seq,
                 (send->flags & TCP_ACK) != 0 ? connection->rcv_nxt : 0,
                 header_bytes << 8 | send->flags);
    if ((send->flags & TCP_RST) == 0) {
        store_be16(tcp + 14, window_field(connection, (send->flags & TCP_SYN) != 0));
    }
    memcpy(tcp + TCP_HEADER_BYTES, area, option_bytes);
    memcpy(tcp + header_bytes, mirror_at(&connection->tx, send->offset), send->payload_bytes);
    if (send->payload_bytes > connection->mss_bytes) {
        ASSERT(stack->info->tso_bytes_max > 0);
        frame.flags |= PORT_TX_SEGMENT;
        frame.mss_bytes = (uint16_t)connection->mss_bytes;
    }
    checksum_fill(stack, &frame, connection->tuple.remote_ip4);
    struct ip4_route route = {
        .target_ip4 = connection->tuple.remote_ip4,
        .neighbour_index = connection->neighbour_index,
        .protocol = IP4_PROTOCOL_TCP,
    };
    ip4_send(stack, &route, &frame);
    sent_note(connection, send, sack_left_out);
    return true;
}

void tcp_segment_answer(struct stack *stack, const struct ip4_packet *received,
                        const struct tcp_answer *answer)
{
    ASSERT(stack != NULL);
    ASSERT(received->payload.bytes >= TCP_HEADER_BYTES);
    struct port_frame frame;
    struct tcp_options options = {
        .has_timestamp = answer->has_timestamp,
        .timestamp = answer->timestamp,
        .timestamp_echo = answer->timestamp_echo,
    };
    uint8_t area[TCP_OPTION_BYTES_MAX];
    uint32_t option_bytes = (uint32_t)tcp_options_write(area, &options);
    if (stack->reply_budget == 0 ||
        !stack_frame_take(stack, TCP_HEADER_BYTES + option_bytes, &frame)) {
        return;
    }
    stack->reply_budget--;
    uint8_t *tcp = frame.data + ETHER_HEADER_BYTES + IP4_HEADER_BYTES;
    struct flow_tuple tuple = {
        .local_port = load_be16(received->payload.data + 2),
        .remote_port = load_be16(received->payload.data),
    };
    header_write(tcp, &tuple, answer->seq, answer->ack,
                 (TCP_HEADER_BYTES + option_bytes) << 8 | answer->flags);
    memcpy(tcp + TCP_HEADER_BYTES, area, option_bytes);
    checksum_fill(stack, &frame, received->source_ip4);
    ip4_reply(stack, received, IP4_PROTOCOL_TCP, &frame);
    stack->counters.tcp_segments_out++;
}
