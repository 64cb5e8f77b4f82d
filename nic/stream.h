/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream to one peer, as the code above TCP sees it: readable and writable spans in
 * buffers that the stream owns, and a state. TCP is one body (nic/tcp.h), TLS over another stream
 * and the scripted streams of the tests are others.
 *
 * Limits: a span never grows past the stream's buffer (receive_bytes_max, send_bytes_max of its
 * creator). No call waits, allocates or reads a clock. One stream belongs to one lane. */
#pragma once

#include "base.h"

enum stream_state {
    STREAM_CONNECTING = 0, /* nothing may be written yet */
    STREAM_OPEN,           /* both directions work */
    STREAM_HALF_CLOSED,    /* the peer sent its end: what is readable is the rest */
    STREAM_CLOSING,        /* stream_close was called; unsent bytes are still going out */
    STREAM_CLOSED,         /* ended in order; release it */
    STREAM_FAILED,         /* ended otherwise: see stream_failure; release it */
};

enum stream_failure {
    STREAM_FAILURE_NONE = 0,
    STREAM_FAILURE_RESET,       /* the peer reset it */
    STREAM_FAILURE_REFUSED,     /* reset while connecting */
    STREAM_FAILURE_TIMEOUT,     /* no answer within the stream's limits */
    STREAM_FAILURE_UNREACHABLE, /* no route, no ARP answer, or a hard ICMP error */
    STREAM_FAILURE_PROTOCOL,    /* bytes that the protocol does not allow */
};

struct stream;

/* The body of a stream. A module that offers streams embeds struct stream first in its own struct
 * and points ops here. */
struct stream_ops {
    struct span (*readable)(struct stream *stream);
    void (*consume)(struct stream *stream, size_t bytes);
    struct span_mut (*writable)(struct stream *stream);
    void (*commit)(struct stream *stream, size_t bytes);
    void (*close)(struct stream *stream);
    void (*abort)(struct stream *stream);
    void (*release)(struct stream *stream);
};

struct stream {
    const struct stream_ops *ops;
    enum stream_state state;
    enum stream_failure failure;
    uint64_t arrival_ns; /* `now` of the poll that delivered the newest readable byte */
    uint64_t sent_bytes; /* bytes handed to the port at least once, since the start */
};

/* Shows all received bytes that were not consumed, in order and contiguous.
 * returns  borrowed until the next consume or the next poll of the stream's owner
 * threads  owning lane only */
static inline struct span stream_readable(struct stream *stream)
{
    return stream->ops->readable(stream);
}

/* Drops the first bytes of the readable span; the peer's window opens by as much.
 * bytes    at most stream_readable().bytes
 * threads  owning lane only */
static inline void stream_consume(struct stream *stream, size_t bytes)
{
    stream->ops->consume(stream, bytes);
}

/* Shows the free part of the send buffer, contiguous.
 * returns  empty when the buffer is full or the state does not allow writing; borrowed until the
 *          next commit or poll
 * threads  owning lane only */
static inline struct span_mut stream_writable(struct stream *stream)
{
    return stream->ops->writable(stream);
}

/* Queues the first bytes of the writable span for sending; they leave with the owner's next poll.
 * bytes    at most stream_writable().bytes
 * threads  owning lane only */
static inline void stream_commit(struct stream *stream, size_t bytes)
{
    stream->ops->commit(stream, bytes);
}

/* Ends the sending side in order once all committed bytes are out.
 * threads  owning lane only */
static inline void stream_close(struct stream *stream)
{
    stream->ops->close(stream);
}

/* Ends the stream at once (TCP: RST); what was not sent is lost. The state is STREAM_FAILED after.
 * threads  owning lane only */
static inline void stream_abort(struct stream *stream)
{
    stream->ops->abort(stream);
}

/* Gives the stream back to its creator, in any state (an open one is aborted first); the pointer
 * is dead after. A TCP body may go on lingering (TIME-WAIT) on its own account.
 * threads  owning lane only */
static inline void stream_release(struct stream *stream)
{
    stream->ops->release(stream);
}
