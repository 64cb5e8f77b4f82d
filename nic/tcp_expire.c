/* SPDX-License-Identifier: Apache-2.0 */
/* Timers that came up: retransmission, tail loss probe, persist, reordering, keepalive, and the
 * deadline of states that must not last (connecting, FIN-WAIT-2, released). */
#include "nic/stack_internal.h"
#include "nic/tcp_seq.h"

#define MS                UINT64_C(1000000)
#define BLACK_HOLE_MAX    3  /* timeouts of full segments in a row before the size is halved */
#define EXPIRED_COUNT_MAX 64 /* connections served in one turn */

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The heap may hold an older, earlier time; whoever is popped asks here what is really due. */
static uint64_t deadline_of(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t a = earliest(connection->retransmit_ns, connection->reorder_ns);
    return earliest(a, earliest(connection->keepalive_ns, connection->linger_ns));
}

void tcp_deadline_update(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    ASSERT(connection->is_used);
    if (connection->state != TCP_CLOSED) {
        tcp_timers_arm(&connection->stack->tcp.timers, connection->index, deadline_of(connection));
    }
}

/* Nothing moved for the user timeout: the peer or the path is gone. Returns whether it ended. */
static bool user_timeout(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    if (stack->now_ns - connection->progress_ns < stack->config.user_timeout_ms * MS) {
        return false;
    }
    tcp_send_reset(connection);
    tcp_fail(connection, STREAM_FAILURE_TIMEOUT);
    return true;
}

/* The back-off shows later that the handshake gave no sample and that the window starts small. */
static void syn_timeout(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    connection->rtt.backoff++;
    connection->stack->counters.tcp_rto_expiries++;
    connection->stack->counters.tcp_retransmits++;
    tcp_send_syn(connection);
}

/* RFC 4821 §7.7: full segments vanish again and again and no router says why. */
static void black_hole_check(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    const struct tcp_segment *head =
        &connection->board.segments[connection->board.head & connection->board.mask];
    if (head->end - head->seq < connection->mss_bytes) {
        connection->black_hole_count = 0;
        return;
    }
    if (++connection->black_hole_count >= BLACK_HOLE_MAX) {
        connection->black_hole_count = 0;
        tcp_path_mtu(connection, connection->mss_bytes / 2 + IP4_HEADER_BYTES + TCP_HEADER_BYTES);
    }
}

/* RFC 6298 §5.4 to 5.6 and RFC 8985 §6.3: everything unacknowledged counts as lost, one segment
 * leaves, and the next timeout is twice as far. */
static void retransmit_timeout(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    if (user_timeout(connection)) {
        return;
    }
    stack->counters.tcp_rto_expiries++;
    uint32_t flight = connection->snd_nxt - connection->snd_una;
    bool first = connection->rtt.backoff == 0;
    if (first && connection->congestion.phase != TCP_PHASE_LOSS) {
        connection->undo_armed = true;
        connection->undo_timestamp = tcp_timestamp(connection);
        connection->undo_cwnd_bytes = connection->congestion.cwnd_bytes;
        connection->undo_ssthresh_bytes = connection->congestion.ssthresh_bytes;
    }
    tcp_congestion_timeout(&connection->congestion, flight, connection->snd_nxt, first);
    if (tcp_scoreboard_lose_all(&connection->board)) {
        stack->counters.tcp_sack_reneged++;
    }
    black_hole_check(connection);
    connection->rtt.backoff++;
    connection->duplicate_acks = 0;
    connection->probe_out = false;
    connection->reorder_ns = UINT64_MAX;
    tcp_timer_restart(connection);
    tcp_output_ask(connection);
}

/* RFC 8985 §7.3: new data if there is some, else the newest segment again. */
static void loss_probe(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct tcp_segment *last = tcp_scoreboard_last(&connection->board);
    ASSERT(last != NULL);
    if (connection->congestion.phase != TCP_PHASE_OPEN) {
        tcp_timer_restart(connection);
        return;
    }
    uint32_t flight = connection->snd_nxt - connection->snd_una;
    uint32_t window = connection->snd_wnd_bytes > flight ? connection->snd_wnd_bytes - flight : 0;
    bool fresh = tcp_unsent_bytes(connection) > 0 && window >= connection->mss_bytes &&
                 tcp_scoreboard_has_room(&connection->board);
    bool sent = false;
    if (fresh) {
        sent = tcp_send_new(connection, connection->mss_bytes);
    } else if ((last->flags & (TCP_SEGMENT_SACKED | TCP_SEGMENT_LOST)) == 0) {
        sent = tcp_send_again(connection, last);
    }
    if (sent) {
        connection->stack->counters.tcp_loss_probes++;
        connection->probe_is_repeat = !fresh;
        connection->probe_end = connection->snd_nxt;
    }
    /* Even when none could leave: the next timer is the retransmission timeout. */
    connection->probe_out = true;
    tcp_timer_restart(connection);
}

/* RFC 9293 §3.8.6.1: with a window below a segment the piece that fits goes, with none a probe. */
static void persist_timeout(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    if (user_timeout(connection)) {
        return;
    }
    uint32_t window = connection->snd_wnd_bytes;
    stack->counters.tcp_window_probes++;
    bool sent = false;
    if (window > 0) {
        uint32_t mss = connection->mss_bytes;
        sent = tcp_send_new(connection, window < mss ? window : mss);
    } else {
        (void)tcp_send_probe(connection);
    }
    if (sent) {
        tcp_timer_restart(connection);
        return;
    }
    connection->persist_backoff += connection->persist_backoff < 16 ? 1 : 0;
    uint64_t wait_ns = connection->rtt.rto_ns << connection->persist_backoff;
    /* At least three probes within the user timeout, or a live peer would be given up. */
    uint64_t most_ns = earliest(connection->rtt.rto_ns_max, stack->config.user_timeout_ms * MS / 3);
    connection->retransmit_ns = stack->now_ns + earliest(wait_ns, most_ns);
}

static void retransmit_expired(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    if (!tcp_is_synchronized(connection)) {
        syn_timeout(connection);
        return;
    }
    switch (connection->retransmit_kind) {
    case TCP_TIMER_RTO:
        retransmit_timeout(connection);
        break;
    case TCP_TIMER_PROBE:
        loss_probe(connection);
        break;
    case TCP_TIMER_PERSIST:
        persist_timeout(connection);
        break;
    case TCP_TIMER_OFF:
        connection->retransmit_ns = UINT64_MAX;
        break;
    }
}

/* RFC 9293 §3.8.4. */
static void keepalive_expired(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    const struct nic_config *config = &stack->config;
    uint64_t idle_end_ns = connection->heard_ns + config->keepalive_idle_ms * MS;
    bool busy = !tcp_scoreboard_is_empty(&connection->board) ||
                connection->retransmit_kind == TCP_TIMER_PERSIST;
    if (busy || idle_end_ns > stack->now_ns) {
        connection->keepalive_count = 0;
        uint64_t later_ns = stack->now_ns + config->keepalive_interval_ms * MS;
        connection->keepalive_ns = idle_end_ns > later_ns ? idle_end_ns : later_ns;
        return;
    }
    if (connection->keepalive_count >= config->keepalive_count_max) {
        tcp_send_reset(connection);
        tcp_fail(connection, STREAM_FAILURE_TIMEOUT);
        return;
    }
    connection->keepalive_count++;
    stack->counters.tcp_keepalive_probes++;
    (void)tcp_send_probe(connection);
    connection->keepalive_ns = stack->now_ns + config->keepalive_interval_ms * MS;
}

static void linger_expired(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    if (connection->state == TCP_SYN_SENT || connection->state == TCP_SYN_RECEIVED) {
        tcp_fail(connection, STREAM_FAILURE_TIMEOUT);
    } else if (connection->state == TCP_FIN_WAIT_2 || connection->is_released) {
        tcp_send_reset(connection);
        tcp_fail(connection, STREAM_FAILURE_TIMEOUT);
    } else {
        connection->linger_ns = UINT64_MAX;
    }
}

/* Each step may end the connection, so each asks again whether it is still there. */
static void connection_expired(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint64_t now_ns = connection->stack->now_ns;
    if (connection->linger_ns <= now_ns) {
        linger_expired(connection);
    }
    if (connection->state != TCP_CLOSED && connection->reorder_ns <= now_ns) {
        connection->reorder_ns = UINT64_MAX;
        tcp_ack_detect(connection);
    }
    if (connection->state != TCP_CLOSED && connection->retransmit_ns <= now_ns) {
        retransmit_expired(connection);
    }
    if (connection->state != TCP_CLOSED && connection->keepalive_ns <= now_ns) {
        keepalive_expired(connection);
    }
    if (connection->state != TCP_CLOSED) {
        tcp_deadline_update(connection);
    }
}

void tcp_poll(struct stack *stack)
{
    ASSERT(stack != NULL);
    tcp_time_wait_expire(stack);
    for (uint32_t i = 0; i < EXPIRED_COUNT_MAX; i++) {
        uint32_t index = tcp_timers_pop(&stack->tcp.timers, stack->now_ns);
        if (LIKELY(index == TCP_TIMER_NONE)) {
            return;
        }
        ASSERT(index < stack->tcp.connection_count_max);
        struct tcp_connection *connection = &stack->tcp.connections[index];
        if (connection->is_used && connection->state != TCP_CLOSED) {
            connection_expired(connection);
        }
    }
}
