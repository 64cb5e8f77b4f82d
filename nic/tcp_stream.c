/* SPDX-License-Identifier: Apache-2.0 */
/* The stream interface over a connection. Readable and writable spans are the two rings' filled
 * and free parts, contiguous by their double mapping. */
#include "nic/stack_internal.h"

#define MS UINT64_C(1000000)

/* A released stream is dead: using it is a bug of the caller, and stops here. */
static struct tcp_connection *connection_of(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = (struct tcp_connection *)(void *)stream;
    ASSERT(connection->is_used && !connection->is_released);
    return connection;
}

static struct span stream_tcp_readable(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    ASSERT(connection->rx_delivered >= connection->rx_consumed);
    return (struct span){
        .data = mirror_at(&connection->rx, connection->rx_consumed),
        .bytes = connection->rx_delivered - connection->rx_consumed,
    };
}

/* RFC 9293 §3.8.6.2.2: no silly window updates; two segments are worth one, as is half of a
 * small buffer. */
static bool window_is_worth_telling(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    uint32_t edge = connection->rcv_nxt + tcp_receive_window(connection);
    uint32_t growth = edge - connection->rcv_advertised;
    uint32_t half = (uint32_t)(connection->rx.bytes / 2);
    uint32_t wanted = 2 * connection->mss_bytes < half ? 2 * connection->mss_bytes : half;
    return (int32_t)growth > 0 && growth >= wanted;
}

static void stream_tcp_consume(struct stream *stream, size_t bytes)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    ASSERT(bytes <= connection->rx_delivered - connection->rx_consumed);
    connection->rx_consumed += bytes;
    bool receiving = tcp_is_synchronized(connection) && !connection->fin_received;
    if (receiving && window_is_worth_telling(connection)) {
        /* Later: with the reply to what was just read, or at the end of the next turn. A peer
         * that stands still for lack of window is told at once. */
        bool starved = (int32_t)(connection->rcv_advertised - connection->rcv_nxt) <
                       (int32_t)(2 * connection->mss_bytes);
        tcp_ack_ask(connection, starved ? TCP_ACK_NOW : TCP_ACK_LATER);
    }
}

static bool is_writable(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    return (connection->state == TCP_ESTABLISHED || connection->state == TCP_CLOSE_WAIT) &&
           !connection->close_asked;
}

static struct span_mut stream_tcp_writable(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    if (!is_writable(connection)) {
        return (struct span_mut){0};
    }
    uint64_t used = connection->tx_committed - connection->tx_acked;
    ASSERT(used <= connection->tx.bytes);
    return (struct span_mut){
        .data = mirror_at(&connection->tx, connection->tx_committed),
        .bytes = connection->tx.bytes - used,
    };
}

static void stream_tcp_commit(struct stream *stream, size_t bytes)
{
    struct tcp_connection *connection = connection_of(stream);
    ASSERT(bytes == 0 || is_writable(connection));
    ASSERT(bytes <= connection->tx.bytes - (connection->tx_committed - connection->tx_acked));
    connection->tx_committed += bytes;
    if (bytes > 0) {
        tcp_output_ask(connection);
    }
}

static void stream_tcp_close(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    if (connection->close_asked || connection->state == TCP_CLOSED) {
        return;
    }
    connection->close_asked = true;
    switch (connection->state) {
    case TCP_SYN_SENT:
        tcp_finish(connection, false);
        return;
    case TCP_SYN_RECEIVED:
    case TCP_ESTABLISHED:
    case TCP_CLOSE_WAIT:
        connection->stream.state = STREAM_CLOSING;
        tcp_output_ask(connection);
        return;
    default:
        ASSERT(false);
    }
}

static void stream_tcp_abort(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    if (connection->state == TCP_CLOSED) {
        return;
    }
    if (connection->state != TCP_SYN_SENT) {
        tcp_send_reset(connection);
    }
    tcp_fail(connection, STREAM_FAILURE_RESET);
}

static void stream_tcp_release(struct stream *stream)
{
    ASSERT(stream != NULL);
    struct tcp_connection *connection = connection_of(stream);
    bool unread = connection->rx_delivered != connection->rx_consumed;
    if (connection->state != TCP_CLOSED && (!connection->close_asked || unread)) {
        /* RFC 1122 §4.2.2.13: bytes that nobody will read are told by a reset. */
        stream_tcp_abort(stream);
    }
    connection->is_released = true;
    if (connection->state == TCP_CLOSED) {
        tcp_reclaim(connection);
        return;
    }
    connection->linger_ns = connection->stack->now_ns + connection->stack->config.linger_ms * MS;
    tcp_deadline_update(connection);
}

static const struct stream_ops ops = {
    .readable = stream_tcp_readable,
    .consume = stream_tcp_consume,
    .writable = stream_tcp_writable,
    .commit = stream_tcp_commit,
    .close = stream_tcp_close,
    .abort = stream_tcp_abort,
    .release = stream_tcp_release,
};

const struct stream_ops *tcp_stream_ops(void)
{
    return &ops;
}
