/* SPDX-License-Identifier: Apache-2.0 */
/* Segments in, in the order of RFC 9293 §3.10.7: timestamps (PAWS), acceptability, RST, SYN, ACK,
 * data, FIN. RFC 5961 decides what a stranger on the path's edge can do: a reset counts only at
 * exactly the next expected byte, everything else near the window earns a challenge ACK. */
#include "nic/checksum.h"
#include "nic/stack_internal.h"
#include "nic/tcp_segment.h"
#include "nic/tcp_seq.h"

#define MS                UINT64_C(1000000)
#define PAWS_IDLE_NS      (24 * UINT64_C(86400) * NANOSECONDS_PER_S)
#define MSS_BYTES_DEFAULT 536

enum parse_verdict {
    PARSE_OK = 0,
    PARSE_BAD_HEADER,
    PARSE_BAD_CHECKSUM,
};

static bool checksum_is_good(const struct ip4_packet *packet)
{
    ASSERT(packet != NULL);
    uint16_t flags = packet->frame->flags;
    if ((flags & (PORT_RX_L4_GOOD | PORT_RX_L4_BAD)) != 0) {
        return (flags & PORT_RX_L4_BAD) == 0;
    }
    uint64_t sum = checksum_pseudo_ip4(packet->source_ip4, packet->target_ip4, IP4_PROTOCOL_TCP,
                                       (uint32_t)packet->payload.bytes);
    return checksum_finish(checksum_add(sum, packet->payload.data, packet->payload.bytes)) == 0;
}

/* The checksum comes before the options: nothing but lengths is read from bytes that may be
 * damaged. */
static enum parse_verdict header_parse(const struct ip4_packet *packet, struct tcp_header *header)
{
    ASSERT(packet != NULL);
    ASSERT(header != NULL);
    const uint8_t *tcp = packet->payload.data;
    size_t bytes = packet->payload.bytes;
    if (bytes < TCP_HEADER_BYTES) {
        return PARSE_BAD_HEADER;
    }
    size_t header_bytes = (size_t)(tcp[12] >> 4) * 4;
    if (header_bytes < TCP_HEADER_BYTES || header_bytes > bytes) {
        return PARSE_BAD_HEADER;
    }
    if (!checksum_is_good(packet)) {
        return PARSE_BAD_CHECKSUM;
    }
    header->source_port = load_be16(tcp);
    header->target_port = load_be16(tcp + 2);
    header->seq = load_be32(tcp + 4);
    header->ack = load_be32(tcp + 8);
    header->flags = tcp[13];
    header->window = load_be16(tcp + 14);
    header->payload = (struct span){tcp + header_bytes, bytes - header_bytes};
    bool good = tcp_options_parse(tcp + TCP_HEADER_BYTES, header_bytes - TCP_HEADER_BYTES,
                                  &header->options);
    return good ? PARSE_OK : PARSE_BAD_HEADER;
}

/* ---- Data and FIN --------------------------------------------------------------------------- */

static void duplicate_note(struct tcp_connection *connection, uint32_t start, uint32_t bytes)
{
    ASSERT(connection != NULL);
    connection->stack->counters.tcp_bytes_duplicate += bytes;
    if (connection->sack && bytes > 0 && !connection->duplicate_told) {
        connection->duplicate_told = true;
        connection->duplicate = (struct tcp_sack_block){start, start + bytes};
    }
    tcp_ack_ask(connection, TCP_ACK_NOW);
}

/* Bytes that continue the stream: delivers them and what they make contiguous. */
static void data_in_order(struct tcp_connection *connection, const uint8_t *data, uint32_t bytes)
{
    struct stack *stack = connection->stack;
    bool had_gap = connection->reassembly.count > 0;
    uint64_t held = had_gap ? tcp_reassembly_held_bytes(&connection->reassembly) : 0;
    memcpy(mirror_at(&connection->rx, connection->rx_delivered), data, bytes);
    uint64_t next = connection->rx_delivered + bytes;
    if (had_gap) {
        next = tcp_reassembly_advance(&connection->reassembly, next);
        held -= tcp_reassembly_held_bytes(&connection->reassembly);
    }
    uint64_t delivered = next - connection->rx_delivered;
    ASSERT(delivered >= held && delivered - held <= bytes);
    stack->counters.tcp_bytes_duplicate += bytes - (delivered - held);
    stack->counters.tcp_bytes_delivered += delivered;
    connection->rx_delivered = next;
    connection->rcv_nxt += (uint32_t)delivered;
    connection->stream.arrival_ns = stack->now_ns;
    ASSERT(connection->rx_delivered - connection->rx_consumed <= connection->rx.bytes);
    /* RFC 5681 §4.2: at once when a gap closes, even in part. */
    tcp_ack_ask(connection, had_gap ? TCP_ACK_NOW : TCP_ACK_LATER);
}

/* The queue decides first; bytes are written only where it has room to remember them. */
static void data_early(struct tcp_connection *connection, uint64_t offset, const uint8_t *data,
                       uint32_t bytes)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    uint64_t new_bytes = 0;
    stack->counters.tcp_out_of_order++;
    tcp_ack_ask(connection, TCP_ACK_NOW);
    if (!tcp_reassembly_add(&connection->reassembly, offset, offset + bytes, &new_bytes)) {
        stack->counters.tcp_bytes_unqueued += bytes;
        return;
    }
    if (new_bytes == 0) {
        uint32_t start = connection->rcv_nxt + (uint32_t)(offset - connection->rx_delivered);
        duplicate_note(connection, start, bytes);
        return;
    }
    stack->counters.tcp_bytes_duplicate += bytes - new_bytes;
    memcpy(mirror_at(&connection->rx, offset), data, bytes);
}

/* Cuts a payload to the window and takes it. Returns whether its end was inside, so that a FIN
 * behind it counts. */
static bool data_input(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct stack *stack = connection->stack;
    const uint8_t *data = header->payload.data;
    uint32_t bytes = (uint32_t)header->payload.bytes;
    int32_t ahead = (int32_t)(header->seq - connection->rcv_nxt);
    if (ahead < 0 && bytes > 0) {
        uint32_t old = (uint32_t)-ahead < bytes ? (uint32_t)-ahead : bytes;
        duplicate_note(connection, header->seq, old);
        data += old;
        bytes -= old;
        ahead = 0;
    }
    uint64_t used = connection->rx_delivered - connection->rx_consumed;
    uint64_t room = connection->rx.bytes - used;
    uint64_t end = (uint64_t)(ahead > 0 ? ahead : 0) + bytes;
    if (bytes > 0 && end > room) {
        uint32_t beyond = end - room < bytes ? (uint32_t)(end - room) : bytes;
        stack->counters.tcp_bytes_outside += beyond;
        bytes -= beyond;
        tcp_ack_ask(connection, TCP_ACK_NOW);
    }
    if (bytes > 0 && ahead == 0) {
        data_in_order(connection, data, bytes);
    } else if (bytes > 0) {
        data_early(connection, connection->rx_delivered + (uint32_t)ahead, data, bytes);
    }
    return end <= room;
}

/* Every byte before the FIN has been delivered. Only the states in which a FIN can still come
 * are possible: after one, payload_input turns everything away. */
static void fin_take(struct tcp_connection *connection)
{
    ASSERT(!connection->fin_received);
    connection->fin_received = true;
    connection->fin_known = false;
    connection->rcv_nxt++;
    tcp_ack_ask(connection, TCP_ACK_NOW);
    switch (connection->state) {
    case TCP_ESTABLISHED:
        connection->state = TCP_CLOSE_WAIT;
        if (!connection->close_asked) {
            connection->stream.state = STREAM_HALF_CLOSED;
        }
        break;
    case TCP_FIN_WAIT_1:
        connection->state = TCP_CLOSING;
        break;
    case TCP_FIN_WAIT_2:
        connection->state = TCP_TIME_WAIT;
        break;
    default:
        ASSERT(false);
    }
}

/* Positions are stream offsets, so a FIN that came early is recognised later without its
 * segment. */
static void payload_input(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct stack *stack = connection->stack;
    uint32_t bytes = (uint32_t)header->payload.bytes;
    bool fin = (header->flags & TCP_FIN) != 0;
    if (connection->fin_received) {
        stack->counters.tcp_bytes_refused += bytes;
        if (bytes > 0 || fin) {
            tcp_ack_ask(connection, TCP_ACK_NOW);
        }
        return;
    }
    uint64_t position = connection->rx_delivered +
                        (uint64_t)(int64_t)(int32_t)(header->seq + bytes - connection->rcv_nxt);
    if (connection->fin_known && bytes > 0 && (int64_t)(position - connection->fin_offset) > 0) {
        /* Bytes after the peer's own end: not credible. */
        stack->counters.tcp_bytes_refused += bytes;
        tcp_ack_ask(connection, TCP_ACK_NOW);
        return;
    }
    bool whole = data_input(connection, header);
    if (fin && whole && !connection->fin_known && position >= connection->rx_delivered) {
        connection->fin_known = true;
        connection->fin_offset = position;
        tcp_ack_ask(connection, TCP_ACK_NOW);
    }
    if (connection->fin_known && connection->fin_offset == connection->rx_delivered) {
        fin_take(connection);
    }
}

/* ---- Synchronised states -------------------------------------------------------------------- */

/* RFC 7323 §5.3. Returns false when the segment is to be dropped. */
static bool timestamp_check(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct stack *stack = connection->stack;
    if (!connection->timestamps || (header->flags & TCP_RST) != 0) {
        return true;
    }
    if (!header->options.has_timestamp) {
        stack->counters.tcp_drop_no_timestamp++;
        return false;
    }
    bool older = seq_lt(header->options.timestamp, connection->timestamp_recent);
    bool fresh = stack->now_ns - connection->timestamp_recent_ns < PAWS_IDLE_NS;
    if (older && fresh) {
        stack->counters.tcp_drop_paws++;
        if (header->payload.bytes > 0) {
            tcp_ack_ask(connection, TCP_ACK_NOW);
        } else {
            tcp_challenge_ack(connection);
        }
        return false;
    }
    return true;
}

/* RFC 7323 §4.3: only a segment that reaches the left edge of what was acknowledged last may set
 * it, or a reordered one would make good segments look old. */
static void timestamp_update(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    bool newer = connection->timestamps && header->options.has_timestamp &&
                 seq_le(connection->timestamp_recent, header->options.timestamp) &&
                 seq_le(header->seq, connection->last_ack_sent);
    bool stale = connection->timestamps && header->options.has_timestamp &&
                 connection->stack->now_ns - connection->timestamp_recent_ns >= PAWS_IDLE_NS;
    if (newer || stale) {
        connection->timestamp_recent = header->options.timestamp;
        connection->timestamp_recent_ns = connection->stack->now_ns;
    }
}

/* RFC 9293 §3.10.7.4, first step, with both edges inclusive: a peer whose bytes were lost on the
 * way to a full window still acknowledges from its right edge. */
static bool is_acceptable(const struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    uint64_t used = connection->rx_delivered - connection->rx_consumed;
    uint32_t room = (uint32_t)(connection->rx.bytes - used);
    uint32_t end = header->seq + (uint32_t)header->payload.bytes +
                   ((header->flags & TCP_FIN) != 0 ? 1 : 0) +
                   ((header->flags & TCP_SYN) != 0 ? 1 : 0);
    return seq_le(connection->rcv_nxt, end) && seq_le(header->seq, connection->rcv_nxt + room);
}

/* Bytes below the window are a retransmission whose ACK was lost: they are told as D-SACK. All
 * else may come from a stranger and is answered within the budget. */
static void unacceptable_answer(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    connection->stack->counters.tcp_drop_window++;
    if ((header->flags & TCP_RST) != 0) {
        return;
    }
    bool old = seq_lt(header->seq, connection->rcv_nxt);
    if (header->payload.bytes > 0 && old) {
        if (connection->sack && !connection->duplicate_told) {
            connection->duplicate_told = true;
            connection->duplicate =
                (struct tcp_sack_block){header->seq, header->seq + (uint32_t)header->payload.bytes};
        }
        tcp_ack_ask(connection, TCP_ACK_NOW);
    } else {
        tcp_challenge_ack(connection);
    }
}

/* With both FINs exchanged a reset loses nothing; the stream has ended in order. */
static void reset_take(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    connection->stack->counters.tcp_resets_in++;
    if (connection->state == TCP_CLOSING || connection->state == TCP_LAST_ACK) {
        tcp_finish(connection, false);
        return;
    }
    tcp_fail(connection, STREAM_FAILURE_RESET);
}

/* Flags that end the story or are an attack. Returns whether to go on. */
static bool flags_check(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    if ((header->flags & TCP_RST) != 0) {
        if (header->seq == connection->rcv_nxt) {
            reset_take(connection);
        } else {
            tcp_challenge_ack(connection);
        }
        return false;
    }
    if ((header->flags & TCP_SYN) != 0) {
        tcp_challenge_ack(connection);
        return false;
    }
    if ((header->flags & TCP_ACK) == 0) {
        connection->stack->counters.tcp_drop_flags++;
        return false;
    }
    return true;
}

/* Our FIN was acknowledged. Returns false when the connection is over. */
static bool fin_acknowledged(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    switch (connection->state) {
    case TCP_FIN_WAIT_1:
        connection->state = TCP_FIN_WAIT_2;
        connection->linger_ns =
            connection->stack->now_ns + connection->stack->config.linger_ms * MS;
        return true;
    case TCP_CLOSING:
        tcp_finish(connection, true);
        return false;
    case TCP_LAST_ACK:
        tcp_finish(connection, false);
        return false;
    default:
        return true;
    }
}

/* New bytes for a stream that nobody reads any more. */
static bool is_unwanted(const struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    uint32_t end = header->seq + (uint32_t)header->payload.bytes;
    return connection->is_released && header->payload.bytes > 0 && seq_lt(connection->rcv_nxt, end);
}

/* A connection in TIME-WAIT is remembered outside; its last ACK leaves at once. */
static void time_wait_enter(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct tcp_send send = {.seq = connection->snd_nxt, .flags = TCP_ACK};
    (void)tcp_segment_send(connection, &send);
    tcp_finish(connection, true);
}

/* Returns whether the payload was accounted for. */
static bool synchronized_input(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    if (!timestamp_check(connection, header)) {
        return false;
    }
    if (!is_acceptable(connection, header)) {
        unacceptable_answer(connection, header);
        return false;
    }
    if (!flags_check(connection, header)) {
        return false;
    }
    connection->heard_ns = connection->stack->now_ns;
    if (connection->keepalive_count > 0) {
        connection->keepalive_count = 0;
        arp_confirm(connection->stack, connection->neighbour_index, connection->hop_ip4);
    }
    if (!tcp_ack_input(connection, header)) {
        return false;
    }
    timestamp_update(connection, header);
    bool fin_acked = connection->fin_sent && connection->snd_una == connection->snd_nxt;
    if (fin_acked && !fin_acknowledged(connection)) {
        return false;
    }
    if (is_unwanted(connection, header)) {
        tcp_send_reset(connection);
        tcp_fail(connection, STREAM_FAILURE_RESET);
        return false;
    }
    if (header->payload.bytes > 0 || (header->flags & TCP_FIN) != 0) {
        payload_input(connection, header);
        if (connection->state == TCP_TIME_WAIT) {
            time_wait_enter(connection);
        }
        return true;
    }
    return true;
}

/* ---- Coming up ------------------------------------------------------------------------------ */

static void syn_options_take(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    const struct tcp_options *options = &header->options;
    const struct nic_config *config = &connection->stack->config;
    uint32_t mss = options->has_mss ? options->mss_bytes : MSS_BYTES_DEFAULT;
    /* CVE-2019-11479: a tiny segment size costs a header a byte; it gets a floor. */
    mss = mss < config->mss_bytes_min ? config->mss_bytes_min : mss;
    mss = mss < connection->mss_bytes ? mss : connection->mss_bytes;
    connection->timestamps = options->has_timestamp;
    connection->sack = options->has_sack_permitted;
    connection->snd_scale = options->has_scale ? options->scale : 0;
    connection->rcv_scale = options->has_scale ? connection->rcv_scale : 0;
    connection->mss_bytes = mss - (connection->timestamps ? TCP_TIMESTAMP_BYTES : 0u);
    connection->irs = header->seq;
    connection->rcv_nxt = header->seq + 1;
    connection->last_ack_sent = connection->rcv_nxt;
    connection->rcv_advertised = connection->rcv_nxt;
    connection->timestamp_recent = options->timestamp;
    connection->timestamp_recent_ns = connection->stack->now_ns;
    bool repeated = connection->rtt.backoff > 0;
    tcp_congestion_init(&connection->congestion, connection->mss_bytes,
                        repeated ? 1 : config->initial_window_segments);
}

/* The handshake gives the first round-trip sample, unless the SYN was repeated and the answer
 * could belong to either (Karn). */
static void established(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct stack *stack = connection->stack;
    connection->state = TCP_ESTABLISHED;
    connection->stream.state = connection->close_asked ? STREAM_CLOSING : STREAM_OPEN;
    connection->snd_una = connection->iss + 1;
    connection->snd_wl1 = header->seq;
    connection->snd_wl2 = header->ack;
    uint32_t scale = (header->flags & TCP_SYN) != 0 ? 0 : connection->snd_scale;
    connection->snd_wnd_bytes = header->window << scale;
    connection->snd_wnd_bytes_max = connection->snd_wnd_bytes;
    connection->linger_ns = UINT64_MAX;
    connection->heard_ns = stack->now_ns;
    connection->progress_ns = stack->now_ns;
    if (connection->rtt.backoff == 0) {
        tcp_rtt_sample(&connection->rtt, stack->now_ns - connection->sent_ns, stack->now_ns);
    }
    connection->rtt.backoff = 0;
    connection->retransmit_kind = TCP_TIMER_OFF;
    connection->retransmit_ns = UINT64_MAX;
    if (stack->config.keepalive_idle_ms > 0) {
        connection->keepalive_ns = stack->now_ns + stack->config.keepalive_idle_ms * MS;
    }
    stack->counters.tcp_established++;
    arp_confirm(stack, connection->neighbour_index, connection->hop_ip4);
}

/* RFC 9293 §3.10.7.3. Payload in a SYN-ACK is not taken: it comes again. */
static void syn_sent_input(struct tcp_connection *connection, const struct ip4_packet *packet,
                           const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(packet != NULL);
    struct stack *stack = connection->stack;
    bool has_ack = (header->flags & TCP_ACK) != 0;
    /* The SYN may still be waiting for a frame: then nothing can be acknowledged yet. */
    bool sent = connection->snd_nxt != connection->iss;
    if (has_ack && (!sent || header->ack != connection->snd_nxt)) {
        stack->counters.tcp_drop_ack++;
        tcp_refuse(stack, packet, header);
        return;
    }
    if ((header->flags & TCP_RST) != 0) {
        if (has_ack) {
            stack->counters.tcp_resets_in++;
            tcp_fail(connection, STREAM_FAILURE_REFUSED);
        }
        return;
    }
    if ((header->flags & TCP_SYN) == 0) {
        stack->counters.tcp_drop_flags++;
        return;
    }
    syn_options_take(connection, header);
    if (has_ack) {
        established(connection, header);
        tcp_ack_ask(connection, TCP_ACK_NOW);
    } else {
        connection->state = TCP_SYN_RECEIVED;
        tcp_ack_ask(connection, TCP_ACK_NOW);
    }
}

/* The other half of a simultaneous open. Returns whether to treat the segment as synchronised. */
static bool syn_received_input(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct stack *stack = connection->stack;
    if ((header->flags & TCP_RST) != 0 && header->seq == connection->rcv_nxt) {
        stack->counters.tcp_resets_in++;
        tcp_fail(connection, STREAM_FAILURE_REFUSED);
        return false;
    }
    bool sent = connection->snd_nxt != connection->iss;
    bool acked = (header->flags & TCP_ACK) != 0 && sent && header->ack == connection->snd_nxt;
    bool is_syn_ack = (header->flags & TCP_SYN) != 0 && header->seq == connection->irs;
    if ((header->flags & TCP_RST) != 0 || !acked || !timestamp_check(connection, header) ||
        (!is_syn_ack && !is_acceptable(connection, header))) {
        stack->counters.tcp_drop_flags++;
        return false;
    }
    established(connection, header);
    tcp_ack_ask(connection, TCP_ACK_NOW);
    return !is_syn_ack;
}

static void connection_input(struct tcp_connection *connection, const struct ip4_packet *packet,
                             const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(packet != NULL);
    struct stack *stack = connection->stack;
    bool accounted = false;
    stack->counters.rx_tcp++;
    stack->counters.tcp_bytes_in += header->payload.bytes;
    if (connection->state == TCP_SYN_SENT) {
        syn_sent_input(connection, packet, header);
    } else if (connection->state != TCP_SYN_RECEIVED || syn_received_input(connection, header)) {
        accounted = synchronized_input(connection, header);
    }
    if (!accounted) {
        stack->counters.tcp_bytes_refused += header->payload.bytes;
    }
    if (connection->is_used && connection->state != TCP_CLOSED) {
        tcp_output_ask(connection);
        tcp_deadline_update(connection);
    }
}

/* RFC 9293 §3.10.7.4 for TIME-WAIT; RFC 1337: a reset does not end it. */
static void time_wait_input(struct stack *stack, const struct ip4_packet *packet,
                            struct tcp_time_wait *entry, const struct tcp_header *header)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    stack->counters.rx_tcp++;
    stack->counters.tcp_bytes_in += header->payload.bytes;
    stack->counters.tcp_bytes_refused += header->payload.bytes;
    bool takes_space = header->payload.bytes > 0 || (header->flags & (TCP_FIN | TCP_SYN)) != 0;
    if ((header->flags & TCP_RST) == 0 && takes_space) {
        tcp_time_wait_ack(stack, packet, entry);
    }
}

/* No connection here: another lane's flow, or nobody's. */
static void unknown_input(struct stack *stack, const struct ip4_packet *packet,
                          const struct tcp_header *header, const struct flow_tuple *tuple)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    uint16_t owner = flow_queue(stack->info, tuple);
    if (owner != stack->queue) {
        bool taken =
            packet->first_hand && stack->hand_off != NULL &&
            stack->hand_off(stack->hand_off_context, STACK_FOREIGN_FLOW, owner, packet->frame);
        if (taken) {
            stack->counters.rx_handed_off++;
        } else {
            stack->counters.rx_drop_tcp_unknown++;
        }
        return;
    }
    stack->counters.rx_drop_tcp_unknown++;
    tcp_refuse(stack, packet, header);
}

void tcp_input(struct stack *stack, const struct ip4_packet *packet)
{
    ASSERT(stack != NULL && packet != NULL);
    struct tcp_header header;
    enum parse_verdict verdict = header_parse(packet, &header);
    if (UNLIKELY(verdict != PARSE_OK)) {
        if (verdict == PARSE_BAD_CHECKSUM) {
            stack->counters.rx_drop_tcp_checksum++;
        } else {
            stack->counters.rx_drop_tcp_header++;
        }
        return;
    }
    struct flow_tuple tuple = {
        .local_ip4 = packet->target_ip4,
        .remote_ip4 = packet->source_ip4,
        .local_port = header.target_port,
        .remote_port = header.source_port,
    };
    uint32_t value = tcp_table_find(&stack->tcp.table, &tuple);
    if (value == TCP_TABLE_NONE) {
        unknown_input(stack, packet, &header, &tuple);
    } else if (value < stack->tcp.connection_count_max) {
        connection_input(&stack->tcp.connections[value], packet, &header);
    } else {
        uint32_t at = value - stack->tcp.connection_count_max;
        time_wait_input(stack, packet, &stack->tcp.time_wait[at], &header);
    }
}
