/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking sockets behind the stream interface: one linear buffer each way, moved to the front
 * when the receive buffer's end is reached. */
#include "tests/dataplane/kafka/kernel_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct kernel_stream {
    struct stream stream;
    int socket;
    bool is_released;
    size_t rx_start;
    size_t rx_count;
    size_t tx_count;
    uint8_t *rx;
    uint8_t *tx;
};

static struct kernel_stream *of(struct stream *stream)
{
    return (struct kernel_stream *)stream;
}

static struct span body_readable(struct stream *stream)
{
    return (struct span){.data = of(stream)->rx + of(stream)->rx_start,
                         .bytes = of(stream)->rx_count};
}

static void body_consume(struct stream *stream, size_t bytes)
{
    ASSERT(bytes <= of(stream)->rx_count);
    of(stream)->rx_start += bytes;
    of(stream)->rx_count -= bytes;
}

static struct span_mut body_writable(struct stream *stream)
{
    struct kernel_stream *self = of(stream);
    if (stream->state != STREAM_OPEN) {
        return (struct span_mut){0};
    }
    return (struct span_mut){.data = self->tx + self->tx_count,
                             .bytes = KERNEL_STREAM_TX_BYTES - self->tx_count};
}

static void fail(struct kernel_stream *self, enum stream_failure failure)
{
    self->stream.state = STREAM_FAILED;
    self->stream.failure = failure;
}

static size_t flush(struct kernel_stream *self)
{
    if (self->tx_count == 0) {
        return 0;
    }
    ssize_t sent = send(self->socket, self->tx, self->tx_count, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN) {
            fail(self, STREAM_FAILURE_RESET);
        }
        return 0;
    }
    self->tx_count -= (size_t)sent;
    memmove(self->tx, self->tx + sent, self->tx_count);
    self->stream.sent_bytes += (size_t)sent;
    return (size_t)sent;
}

static void body_commit(struct stream *stream, size_t bytes)
{
    of(stream)->tx_count += bytes;
    (void)flush(of(stream));
}

static void body_close(struct stream *stream)
{
    stream->state = STREAM_CLOSING;
}

static void body_release(struct stream *stream)
{
    of(stream)->is_released = true;
}

static const struct stream_ops body = {
    .readable = body_readable,
    .consume = body_consume,
    .writable = body_writable,
    .commit = body_commit,
    .close = body_close,
    .abort = body_close,
    .release = body_release,
};

struct stream *kernel_stream_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct kernel_streams *streams = context;
    (void)now_ns;
    ASSERT(streams->count < KERNEL_STREAMS_MAX);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip4), .sin_port = htons(port)};
    int status = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    if (fd < 0 || (status != 0 && errno != EINPROGRESS)) {
        return NULL;
    }
    struct kernel_stream *self = calloc(1, sizeof(*self));
    self->stream.ops = &body;
    self->socket = fd;
    self->rx = malloc(KERNEL_STREAM_RX_BYTES);
    self->tx = malloc(KERNEL_STREAM_TX_BYTES);
    streams->list[streams->count++] = self;
    return &self->stream;
}

static void try_open(struct kernel_stream *self)
{
    struct pollfd ask = {.fd = self->socket, .events = POLLOUT};
    if (poll(&ask, 1, 0) != 1) {
        return;
    }
    int code = 0;
    socklen_t bytes = sizeof(code);
    (void)getsockopt(self->socket, SOL_SOCKET, SO_ERROR, &code, &bytes);
    if (code != 0) {
        fail(self, STREAM_FAILURE_REFUSED);
        return;
    }
    self->stream.state = STREAM_OPEN;
}

static size_t receive(struct kernel_stream *self, uint64_t now_ns)
{
    if (self->rx_start > 0 && self->rx_start + self->rx_count > KERNEL_STREAM_RX_BYTES / 2) {
        memmove(self->rx, self->rx + self->rx_start, self->rx_count);
        self->rx_start = 0;
    }
    size_t end = self->rx_start + self->rx_count;
    size_t room = KERNEL_STREAM_RX_BYTES - end;
    if (room == 0) {
        return 0;
    }
    ssize_t got = recv(self->socket, self->rx + end, room, 0);
    if (got == 0) {
        self->stream.state = STREAM_HALF_CLOSED;
    } else if (got < 0 && errno != EAGAIN) {
        fail(self, STREAM_FAILURE_RESET);
    } else if (got > 0) {
        self->rx_count += (size_t)got;
        self->stream.arrival_ns = now_ns;
        return (size_t)got;
    }
    return 0;
}

static void free_stream(struct kernel_stream *self)
{
    (void)close(self->socket);
    free(self->rx);
    free(self->tx);
    free(self);
}

size_t kernel_streams_poll(struct kernel_streams *streams, uint64_t now_ns)
{
    size_t moved = 0;
    for (uint32_t i = 0; i < streams->count; i++) {
        struct kernel_stream *self = streams->list[i];
        if (self->is_released) {
            free_stream(self);
            streams->list[i--] = streams->list[--streams->count];
        } else if (self->stream.state == STREAM_CONNECTING) {
            try_open(self);
        } else if (self->stream.state == STREAM_OPEN) {
            moved += flush(self);
            moved += receive(self, now_ns);
        }
    }
    return moved;
}

void kernel_streams_free(struct kernel_streams *streams)
{
    while (streams->count > 0) {
        free_stream(streams->list[--streams->count]);
    }
}
