/* SPDX-License-Identifier: Apache-2.0 */
/* What goes out, and when. In this order: what counts as lost, then new bytes, then the FIN, then
 * an ACK if none of them carried it. Bytes in flight are limited by the congestion window, bytes
 * beyond the acknowledged by the peer's window; there is no Nagle delay, since a request is
 * committed whole, but no silly small pieces of a larger rest either (RFC 9293 §3.8.6.2.1). */
#include "nic/stack_internal.h"
#include "nic/tcp_segment.h"
#include "nic/tcp_seq.h"

#define MS UINT64_C(1000000)

/* A probe waits at least this long: a peer that delays its last ACK is not lost. */
#define PROBE_NS_MIN (2 * MS)

enum output_result {
    OUTPUT_DONE = 0,
    OUTPUT_AGAIN, /* an ACK may still wait for data to ride on */
    OUTPUT_STUCK, /* no frames */
};

/* Never more than the scale can tell, or the peer would see another edge than this side. */
uint32_t tcp_receive_window(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t used = connection->rx_delivered - connection->rx_consumed;
    ASSERT(used <= connection->rx.bytes);
    uint64_t room = connection->rx.bytes - used;
    uint64_t most = (uint64_t)UINT16_MAX << connection->rcv_scale;
    return (uint32_t)(room < most ? room : most);
}

uint32_t tcp_pipe_bytes(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint32_t flight = connection->snd_nxt - connection->snd_una;
    uint32_t gone = connection->board.sacked_bytes + connection->board.lost_bytes;
    ASSERT(gone <= flight);
    /* Without SACK each duplicate ACK tells that one segment has left the network. */
    uint32_t left = flight - gone;
    uint32_t arrived = connection->sack ? 0 : connection->duplicate_acks * connection->mss_bytes;
    return left > arrived ? left - arrived : 0;
}

uint64_t tcp_unsent_bytes(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t flight = connection->snd_nxt - connection->snd_una;
    uint64_t sent = connection->tx_acked + flight - (connection->fin_sent ? 1 : 0);
    if (!tcp_is_synchronized(connection) || connection->fin_sent) {
        return 0;
    }
    ASSERT(sent <= connection->tx_committed);
    return connection->tx_committed - sent;
}

/* Each connection stands in the ring once at most, so the ring cannot overflow. */
void tcp_output_ask(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct tcp *tcp = &connection->stack->tcp;
    if (connection->is_queued) {
        return;
    }
    ASSERT(tcp->output_count < tcp->connection_count_max);
    connection->is_queued = true;
    tcp->output[(tcp->output_head + tcp->output_count++) % tcp->connection_count_max] =
        connection->index;
}

void tcp_ack_ask(struct tcp_connection *connection, enum tcp_ack_need need)
{
    ASSERT(connection != NULL);
    ASSERT(need != TCP_ACK_NONE);
    if (connection->ack_need == TCP_ACK_NONE) {
        connection->ack_turn = connection->stack->tcp.turn;
    }
    connection->ack_need = need > connection->ack_need ? need : connection->ack_need;
    tcp_output_ask(connection);
}

static bool send_empty(struct tcp_connection *connection, uint32_t seq, uint8_t flags)
{
    ASSERT(connection != NULL);
    struct tcp_send send = {.seq = seq, .flags = flags};
    return tcp_segment_send(connection, &send);
}

void tcp_challenge_ack(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    uint64_t second = stack->now_ns / NANOSECONDS_PER_S;
    if (second != connection->challenge_second) {
        connection->challenge_second = second;
        connection->challenge_count = 0;
    }
    if (connection->challenge_count >= stack->config.challenge_ack_count_max) {
        stack->counters.tcp_challenge_suppressed++;
        return;
    }
    connection->challenge_count++;
    stack->counters.tcp_challenge_acks++;
    tcp_ack_ask(connection, TCP_ACK_NOW);
}

void tcp_send_syn(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(connection->state == TCP_SYN_SENT || connection->state == TCP_SYN_RECEIVED);
    bool answer = connection->state == TCP_SYN_RECEIVED;
    /* A failed send is made good by the timer that starts all the same. */
    (void)send_empty(connection, connection->iss, TCP_SYN | (answer ? TCP_ACK : 0));
    connection->ack_need = TCP_ACK_NONE;
    connection->snd_nxt = connection->iss + 1;
    connection->retransmit_kind = TCP_TIMER_RTO;
    connection->retransmit_ns = connection->stack->now_ns + tcp_rtt_timeout_ns(&connection->rtt);
    tcp_deadline_update(connection);
}

bool tcp_send_probe(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(tcp_is_synchronized(connection));
    return send_empty(connection, connection->snd_una - 1, TCP_ACK);
}

void tcp_send_reset(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(connection->state != TCP_CLOSED);
    connection->stack->counters.tcp_resets_out++;
    (void)send_empty(connection, connection->snd_nxt, TCP_RST | TCP_ACK);
}

bool tcp_send_again(struct tcp_connection *connection, struct tcp_segment *segment)
{
    ASSERT(connection != NULL);
    ASSERT(seq_le(connection->snd_una, segment->seq));
    struct stack *stack = connection->stack;
    bool fin = (segment->flags & TCP_SEGMENT_FIN) != 0;
    uint32_t left = segment->end - segment->seq - (fin ? 1 : 0);
    struct tcp_send send = {
        .seq = segment->seq,
        .offset = connection->tx_acked + (segment->seq - connection->snd_una),
    };
    /* More than one piece only after the path MTU fell. */
    do {
        send.payload_bytes = left < connection->mss_bytes ? left : connection->mss_bytes;
        left -= send.payload_bytes;
        send.flags = TCP_ACK | (left == 0 ? TCP_PSH | (fin ? TCP_FIN : 0) : 0);
        if (!tcp_segment_send(connection, &send)) {
            return false;
        }
        stack->counters.tcp_retransmits++;
        stack->counters.tcp_bytes_retransmitted += send.payload_bytes;
        send.seq += send.payload_bytes;
        send.offset += send.payload_bytes;
    } while (left > 0);
    tcp_scoreboard_resent(&connection->board, segment, stack->now_ns);
    connection->congestion.sent_bytes += segment->end - segment->seq;
    return true;
}

static bool fin_is_due(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    return connection->close_asked && !connection->fin_sent &&
           (connection->state == TCP_ESTABLISHED || connection->state == TCP_CLOSE_WAIT);
}

/* A peer may shrink its window below what is in flight; that is no window, not a negative one. */
static uint32_t window_left(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint32_t flight = connection->snd_nxt - connection->snd_una;
    return connection->snd_wnd_bytes > flight ? connection->snd_wnd_bytes - flight : 0;
}

/* The state changes when the FIN is really sent, not when close was asked for. */
static void fin_note(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(!connection->fin_sent);
    connection->fin_sent = true;
    connection->state = connection->state == TCP_CLOSE_WAIT ? TCP_LAST_ACK : TCP_FIN_WAIT_1;
}

/* A segment that the port will cut is noted piece by piece: what is lost later is one piece. */
static void board_push(struct tcp_connection *connection, uint32_t bytes, bool fin)
{
    ASSERT(connection != NULL);
    uint64_t now_ns = connection->stack->now_ns;
    uint32_t left = bytes;
    if (tcp_scoreboard_is_empty(&connection->board)) {
        connection->progress_ns = now_ns;
    }
    do {
        uint32_t piece = left < connection->mss_bytes ? left : connection->mss_bytes;
        left -= piece;
        bool last = left == 0 && fin;
        struct tcp_segment segment = {
            .seq = connection->snd_nxt,
            .end = connection->snd_nxt + piece + (last ? 1 : 0),
            .sent_ns = now_ns,
            .flags = last ? TCP_SEGMENT_FIN : 0,
        };
        tcp_scoreboard_push(&connection->board, &segment);
        connection->snd_nxt = segment.end;
    } while (left > 0);
    connection->congestion.sent_bytes += bytes;
    connection->stream.sent_bytes += bytes;
}

bool tcp_send_new(struct tcp_connection *connection, uint32_t bytes_max)
{
    ASSERT(connection != NULL);
    uint64_t unsent = tcp_unsent_bytes(connection);
    uint32_t bytes = unsent < bytes_max ? (uint32_t)unsent : bytes_max;
    ASSERT(tcp_scoreboard_has_room(&connection->board));
    bool fin = fin_is_due(connection) && bytes == unsent && bytes <= connection->mss_bytes &&
               window_left(connection) > bytes;
    if (bytes == 0 && !fin) {
        return false;
    }
    struct tcp_send send = {
        .seq = connection->snd_nxt,
        .offset = connection->tx_committed - unsent,
        .payload_bytes = bytes,
        .flags = TCP_ACK | (bytes == unsent ? TCP_PSH : 0) | (fin ? TCP_FIN : 0),
    };
    if (!tcp_segment_send(connection, &send)) {
        return false;
    }
    if (connection->retransmit_kind == TCP_TIMER_PERSIST) {
        connection->retransmit_kind = TCP_TIMER_OFF;
        connection->persist_backoff = 0;
    }
    board_push(connection, bytes, fin);
    if (fin) {
        fin_note(connection);
    }
    return true;
}

/* How much new data the windows allow in the next frame; 0 for none. */
static uint32_t sendable(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t unsent = tcp_unsent_bytes(connection);
    uint32_t mss = connection->mss_bytes;
    uint32_t window = window_left(connection);
    uint32_t pipe = tcp_pipe_bytes(connection);
    uint32_t cwnd = connection->congestion.cwnd_bytes;
    uint32_t room = cwnd > pipe ? cwnd - pipe : 0;
    uint32_t most = mss;
    uint32_t tso = connection->stack->info->tso_bytes_max;
    uint32_t free_segments =
        connection->board.mask + 1 - (connection->board.tail - connection->board.head);
    if (tso > 0 && unsent >= PORT_TSO_SEND_BYTES && room >= 2 * mss) {
        uint32_t pieces = (tso < room ? tso : room) / mss;
        most = (pieces < free_segments ? pieces : free_segments) * mss;
    }
    uint32_t bytes = unsent < most ? (uint32_t)unsent : most;
    bytes = bytes < window ? bytes : window;
    bytes = bytes > mss ? bytes - bytes % mss : bytes;
    if (bytes < mss && bytes < unsent && bytes < connection->snd_wnd_bytes_max / 2) {
        return 0;
    }
    if (bytes > 0 && room < (bytes < mss ? bytes : mss) && pipe > 0) {
        connection->cwnd_limited = true;
        return 0;
    }
    return bytes;
}

/* Returns false when frames ran out. */
static bool send_lost(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    for (;;) {
        struct tcp_segment *segment = tcp_scoreboard_next_lost(&connection->board);
        if (segment == NULL) {
            return true;
        }
        uint32_t pipe = tcp_pipe_bytes(connection);
        if (pipe > 0 && pipe + (segment->end - segment->seq) > connection->congestion.cwnd_bytes) {
            return true;
        }
        if (!tcp_send_again(connection, segment)) {
            return false;
        }
    }
}

/* The loop ends because each round consumes window, congestion window, bytes or the FIN. */
static bool send_unsent(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    while (tcp_scoreboard_has_room(&connection->board)) {
        uint32_t bytes = sendable(connection);
        bool fin = bytes == 0 && fin_is_due(connection) && tcp_unsent_bytes(connection) == 0 &&
                   window_left(connection) > 0;
        if (bytes == 0 && !fin) {
            return true;
        }
        if (!tcp_send_new(connection, bytes)) {
            return false;
        }
    }
    return true;
}

/* RFC 8985 §7.2. */
static uint64_t probe_timeout_ns(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t timeout_ns = 2 * connection->rtt.srtt_ns;
    timeout_ns = timeout_ns < PROBE_NS_MIN ? PROBE_NS_MIN : timeout_ns;
    if (connection->snd_nxt - connection->snd_una <= connection->mss_bytes) {
        timeout_ns += connection->rtt.rto_ns_min;
    }
    return timeout_ns;
}

void tcp_timer_restart(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t now_ns = connection->stack->now_ns;
    uint64_t timeout_ns = tcp_rtt_timeout_ns(&connection->rtt);
    if (tcp_scoreboard_is_empty(&connection->board)) {
        bool blocked = tcp_unsent_bytes(connection) > 0 || fin_is_due(connection);
        if (!blocked) {
            connection->retransmit_kind = TCP_TIMER_OFF;
            connection->retransmit_ns = UINT64_MAX;
        } else if (connection->retransmit_kind != TCP_TIMER_PERSIST) {
            connection->retransmit_kind = TCP_TIMER_PERSIST;
            connection->retransmit_ns = now_ns + timeout_ns;
            connection->progress_ns = now_ns;
        }
        return;
    }
    connection->retransmit_kind = TCP_TIMER_RTO;
    connection->retransmit_ns = now_ns + timeout_ns;
    bool probe = connection->sack && connection->congestion.phase == TCP_PHASE_OPEN &&
                 !connection->probe_out && connection->rtt.srtt_ns > 0 &&
                 connection->rtt.backoff == 0 && connection->board.sacked_bytes == 0;
    uint64_t probe_ns = probe_timeout_ns(connection);
    if (probe && probe_ns < timeout_ns) {
        connection->retransmit_kind = TCP_TIMER_PROBE;
        connection->retransmit_ns = now_ns + probe_ns;
    }
}

/* An ACK may wait for the code above to answer what it was just given, until the next turn. */
static enum output_result ack_output(struct tcp_connection *connection, bool last)
{
    ASSERT(connection != NULL);
    if (connection->ack_need == TCP_ACK_NONE) {
        return OUTPUT_DONE;
    }
    bool may_wait = connection->ack_need == TCP_ACK_LATER && !last &&
                    connection->ack_turn == connection->stack->tcp.turn;
    if (may_wait) {
        return OUTPUT_AGAIN;
    }
    return send_empty(connection, connection->snd_nxt, TCP_ACK) ? OUTPUT_DONE : OUTPUT_STUCK;
}

static enum output_result connection_output(struct tcp_connection *connection, bool last)
{
    ASSERT(connection != NULL);
    if (connection->state == TCP_CLOSED) {
        return OUTPUT_DONE;
    }
    if (!tcp_is_synchronized(connection)) {
        if (connection->snd_nxt == connection->iss || connection->ack_need != TCP_ACK_NONE) {
            tcp_send_syn(connection);
        }
        return OUTPUT_DONE;
    }
    uint64_t now_ns = connection->stack->now_ns;
    if (tcp_scoreboard_is_empty(&connection->board) &&
        now_ns - connection->sent_ns > tcp_rtt_timeout_ns(&connection->rtt)) {
        tcp_congestion_idle(&connection->congestion);
    }
    uint32_t before = connection->snd_nxt;
    connection->cwnd_limited = false;
    bool all = send_lost(connection) && send_unsent(connection);
    bool is_new = connection->snd_nxt != before;
    if (connection->retransmit_kind == TCP_TIMER_OFF ||
        (is_new && connection->retransmit_kind == TCP_TIMER_PROBE)) {
        tcp_timer_restart(connection);
    }
    tcp_deadline_update(connection);
    return all ? ack_output(connection, last) : OUTPUT_STUCK;
}

void tcp_output_run(struct stack *stack, bool last)
{
    ASSERT(stack != NULL);
    struct tcp *tcp = &stack->tcp;
    for (uint32_t left = tcp->output_count; left > 0; left--) {
        struct tcp_connection *connection = &tcp->connections[tcp->output[tcp->output_head]];
        ASSERT(connection->is_queued);
        tcp->output_head = (tcp->output_head + 1) % tcp->connection_count_max;
        tcp->output_count--;
        connection->is_queued = false;
        enum output_result result = connection_output(connection, last);
        if (result != OUTPUT_DONE) {
            tcp_output_ask(connection);
        }
        if (result == OUTPUT_STUCK) {
            break;
        }
        if (connection->state == TCP_CLOSED && connection->is_released) {
            tcp_reclaim(connection);
        }
    }
}

void tcp_refuse(struct stack *stack, const struct ip4_packet *packet,
                const struct tcp_header *header)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    if ((header->flags & TCP_RST) != 0) {
        return;
    }
    struct tcp_answer answer = {.flags = TCP_RST, .seq = header->ack};
    if ((header->flags & TCP_ACK) == 0) {
        answer.flags = TCP_RST | TCP_ACK;
        answer.seq = 0;
        answer.ack = header->seq + (uint32_t)header->payload.bytes +
                     ((header->flags & TCP_SYN) != 0 ? 1 : 0) +
                     ((header->flags & TCP_FIN) != 0 ? 1 : 0);
    }
    stack->counters.tcp_resets_out++;
    tcp_segment_answer(stack, packet, &answer);
}

void tcp_time_wait_ack(struct stack *stack, const struct ip4_packet *packet,
                       struct tcp_time_wait *entry)
{
    ASSERT(stack != NULL);
    ASSERT(packet != NULL);
    uint64_t second = stack->now_ns / NANOSECONDS_PER_S;
    if (second != entry->challenge_second) {
        entry->challenge_second = second;
        entry->challenge_count = 0;
    }
    if (entry->challenge_count >= stack->config.challenge_ack_count_max) {
        stack->counters.tcp_challenge_suppressed++;
        return;
    }
    entry->challenge_count++;
    struct tcp_answer answer = {
        .flags = TCP_ACK,
        .seq = entry->snd_nxt,
        .ack = entry->rcv_nxt,
        .has_timestamp = entry->timestamps,
        .timestamp = (uint32_t)(stack->now_ns / MS) + entry->timestamp_offset,
        .timestamp_echo = entry->timestamp_recent,
    };
    tcp_segment_answer(stack, packet, &answer);
}
