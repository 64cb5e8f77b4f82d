/* SPDX-License-Identifier: Apache-2.0 */
/* What an acknowledgment changes: the scoreboard, the send buffer, the peer's window, round-trip
 * time, loss and congestion state, in this order. Windows are only taken from segments that are
 * newer than the last that gave one (SND.WL1, SND.WL2), so a reordered ACK cannot shrink it. */
#include "nic/stack_internal.h"
#include "nic/tcp_seq.h"

#define DUPLICATE_ACKS_MAX 3
#define MS                 UINT64_C(1000000)

/* The probe timer gives way: RFC 8985 §7.2 arms it only outside recovery. */
static void recovery_enter(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint32_t flight = connection->snd_nxt - connection->snd_una;
    if (tcp_congestion_loss(&connection->congestion, flight, connection->snd_nxt)) {
        connection->stack->counters.tcp_fast_recoveries++;
        connection->probe_out = false;
        tcp_timer_restart(connection);
    }
}

static uint32_t losses_detect(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t due_ns = 0;
    uint32_t lost = tcp_scoreboard_detect(&connection->board, connection->stack->now_ns,
                                          connection->rtt.min_rtt_ns, connection->rtt.srtt_ns,
                                          connection->congestion.phase != TCP_PHASE_OPEN, &due_ns);
    connection->reorder_ns = due_ns > 0 ? due_ns : UINT64_MAX;
    return lost;
}

void tcp_ack_detect(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(tcp_is_synchronized(connection));
    if (losses_detect(connection) == 0) {
        return;
    }
    recovery_enter(connection);
    if (connection->congestion.phase == TCP_PHASE_RECOVERY) {
        tcp_congestion_recovery_ack(&connection->congestion, 0, tcp_pipe_bytes(connection), false);
    }
    tcp_output_ask(connection);
}

/* The FIN takes a sequence number and no byte of the buffer. */
static void buffer_release(struct tcp_connection *connection, uint32_t ack)
{
    uint32_t bytes = ack - connection->snd_una;
    bool fin = connection->fin_sent && ack == connection->snd_nxt && bytes > 0;
    connection->tx_acked += bytes - (fin ? 1 : 0);
    connection->snd_una = ack;
    ASSERT(connection->tx_acked <= connection->tx_committed);
    ASSERT(seq_le(connection->snd_una, connection->snd_nxt));
}

/* A segment with an older sequence number (a retransmission) that acknowledges more is newer all
 * the same; kept as it was, the window's edge would drift to the right with snd_una. */
static void window_update(struct tcp_connection *connection, const struct tcp_header *header,
                          bool advances)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    bool newer = advances || seq_lt(connection->snd_wl1, header->seq) ||
                 (connection->snd_wl1 == header->seq && seq_le(connection->snd_wl2, header->ack));
    if (!newer) {
        return;
    }
    uint32_t window = header->window << connection->snd_scale;
    if (window > connection->snd_wnd_bytes) {
        tcp_output_ask(connection);
    }
    connection->snd_wnd_bytes = window;
    connection->snd_wl1 = header->seq;
    connection->snd_wl2 = header->ack;
    if (window > connection->snd_wnd_bytes_max) {
        connection->snd_wnd_bytes_max = window;
    }
}

static void rtt_update(struct tcp_connection *connection, const struct tcp_header *header,
                       const struct tcp_ack_report *report)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    uint64_t now_ns = connection->stack->now_ns;
    if (report->rtt_sample_ns > 0 && !report->retransmitted) {
        tcp_rtt_sample(&connection->rtt, report->rtt_sample_ns, now_ns);
    } else if (report->acked_bytes > 0 && connection->timestamps &&
               header->options.timestamp_echo != 0) {
        /* Karn's rule does not bind a sample that names its transmission. */
        uint32_t age_ms = tcp_timestamp(connection) - header->options.timestamp_echo;
        if (age_ms < connection->stack->config.rto_ms_max) {
            tcp_rtt_sample(&connection->rtt, age_ms * MS + MS / 2, now_ns);
        }
    }
}

/* RFC 3522: the acknowledgment names a segment sent before the retransmission, so the timeout was
 * not needed. */
static void timeout_undo(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    if (!connection->undo_armed) {
        return;
    }
    connection->undo_armed = false;
    bool older = header->options.has_timestamp &&
                 (int32_t)(header->options.timestamp_echo - connection->undo_timestamp) < 0;
    if (older && connection->congestion.phase == TCP_PHASE_LOSS) {
        connection->congestion.cwnd_bytes = connection->undo_cwnd_bytes;
        connection->congestion.ssthresh_bytes = connection->undo_ssthresh_bytes;
        connection->congestion.phase = TCP_PHASE_OPEN;
        tcp_scoreboard_forgive(&connection->board);
    }
}

/* RFC 8985 §7.4.2: a probe that repeated bytes and was acknowledged without D-SACK has repaired a
 * loss that the window must answer. */
static void probe_finish(struct tcp_connection *connection, const struct tcp_ack_report *report)
{
    ASSERT(connection != NULL);
    ASSERT(report != NULL);
    if (!connection->probe_out || seq_lt(connection->snd_una, connection->probe_end)) {
        return;
    }
    if (!connection->probe_is_repeat || report->duplicate_sack) {
        connection->probe_out = false;
    } else if (seq_lt(connection->probe_end, connection->snd_una)) {
        recovery_enter(connection);
        connection->probe_out = false;
    }
}

static bool is_duplicate(const struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    return header->payload.bytes == 0 && (header->flags & (TCP_SYN | TCP_FIN)) == 0 &&
           header->ack == connection->snd_una &&
           header->window << connection->snd_scale == connection->snd_wnd_bytes &&
           !tcp_scoreboard_is_empty(&connection->board);
}

/* Without SACK: three duplicates mean a loss (RFC 5681 §3.2), and each partial acknowledgment
 * during recovery another one (RFC 6582 §3.2). Returns bytes marked. */
static uint32_t duplicates_count(struct tcp_connection *connection, const struct tcp_header *header,
                                 bool duplicate, struct tcp_ack_report *report)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    if (connection->sack) {
        return 0;
    }
    uint32_t mss = connection->mss_bytes;
    if (duplicate) {
        connection->duplicate_acks++;
        report->delivered_bytes += mss;
        bool first = connection->duplicate_acks == DUPLICATE_ACKS_MAX &&
                     connection->congestion.phase == TCP_PHASE_OPEN;
        return first ? tcp_scoreboard_lose_head(&connection->board) : 0;
    }
    if (report->acked_bytes == 0) {
        return 0;
    }
    uint32_t passed = report->acked_bytes / mss;
    bool partial = connection->congestion.phase == TCP_PHASE_RECOVERY &&
                   seq_lt(header->ack, connection->congestion.recover_seq);
    connection->duplicate_acks =
        partial && connection->duplicate_acks > passed ? connection->duplicate_acks - passed : 0;
    return partial ? tcp_scoreboard_lose_head(&connection->board) : 0;
}

/* Growth is judged before new losses are: the acknowledged flight had the old window. */
static void congestion_update(struct tcp_connection *connection, const struct tcp_header *header,
                              bool duplicate, struct tcp_ack_report *report)
{
    ASSERT(connection != NULL);
    ASSERT(header != NULL);
    struct tcp_congestion *congestion = &connection->congestion;
    uint32_t lost = duplicates_count(connection, header, duplicate, report);
    bool repair = lost > 0;
    (void)tcp_congestion_exit(congestion, connection->snd_una);
    if (congestion->phase != TCP_PHASE_RECOVERY) {
        tcp_congestion_ack(congestion, report->acked_bytes, connection->cwnd_limited);
    }
    lost += losses_detect(connection);
    if (lost > 0) {
        recovery_enter(connection);
    }
    probe_finish(connection, report);
    if (congestion->phase == TCP_PHASE_RECOVERY) {
        tcp_congestion_recovery_ack(congestion, report->delivered_bytes, tcp_pipe_bytes(connection),
                                    repair);
    }
}

/* A peer that keeps its window shut but answers is alive, for the user timeout and for ARP. */
static void progress_note(struct tcp_connection *connection, const struct tcp_ack_report *report)
{
    ASSERT(connection != NULL);
    ASSERT(report != NULL);
    bool waiting =
        connection->retransmit_kind == TCP_TIMER_PERSIST || connection->snd_wnd_bytes == 0;
    if (report->acked_bytes > 0 || waiting) {
        connection->progress_ns = connection->stack->now_ns;
        arp_confirm(connection->stack, connection->neighbour_index, connection->hop_ip4);
    }
    if (report->acked_bytes > 0) {
        connection->black_hole_count = 0;
        tcp_timer_restart(connection);
    }
    if (report->delivered_bytes > 0 || connection->board.lost_bytes > 0) {
        tcp_output_ask(connection);
    }
}

bool tcp_ack_input(struct tcp_connection *connection, const struct tcp_header *header)
{
    ASSERT(tcp_is_synchronized(connection));
    ASSERT((header->flags & TCP_ACK) != 0);
    struct stack *stack = connection->stack;
    uint32_t oldest = connection->snd_una - connection->snd_wnd_bytes_max;
    if (seq_lt(connection->snd_nxt, header->ack) || seq_lt(header->ack, oldest)) {
        stack->counters.tcp_drop_ack++;
        tcp_challenge_ack(connection);
        return false;
    }
    if (seq_lt(header->ack, connection->snd_una)) {
        return true;
    }
    struct tcp_ack_report report = {0};
    bool duplicate = is_duplicate(connection, header);
    tcp_scoreboard_ack(&connection->board, header->ack, stack->now_ns, connection->rtt.min_rtt_ns,
                       &report);
    if (connection->sack && header->options.sack_count > 0) {
        tcp_scoreboard_sack(&connection->board, &header->options, header->ack, stack->now_ns,
                            connection->rtt.min_rtt_ns, &report);
        stack->counters.tcp_sack_invalid += report.invalid_blocks;
    }
    buffer_release(connection, header->ack);
    window_update(connection, header, report.acked_bytes > 0);
    rtt_update(connection, header, &report);
    if (report.acked_bytes > 0) {
        timeout_undo(connection, header);
    }
    congestion_update(connection, header, duplicate, &report);
    progress_note(connection, &report);
    return true;
}
