/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_server.h. Frames are Ethernet, IPv4 without options, TCP; sums are done here. */
#include "tests/box/tcp_server.h"

#include <stdlib.h>

#include <rte_pause.h>

#include "nic/checksum.h"

#define ETHER_BYTES  14
#define IP_BYTES     20
#define TCP_BYTES    20
#define HEAD_BYTES   (ETHER_BYTES + IP_BYTES + TCP_BYTES)
#define MSS_BYTES    1460
#define SCALE        7
#define WINDOW_BYTES ((uint32_t)(TCP_SERVER_IN_BYTES / 2))
#define RESEND_NS    UINT64_C(200000000)
#define FLAG_FIN     1
#define FLAG_SYN     2
#define FLAG_RST     4
#define FLAG_PSH     8
#define FLAG_ACK     16

struct segment {
    uint32_t seq;
    uint8_t flags;
    const uint8_t *data;
    uint32_t bytes;
};

struct tcp_server *tcp_server_create(const struct tcp_server_config *config)
{
    struct tcp_server *server = calloc(1, sizeof(*server));
    ASSERT(server != NULL && config->port != NULL);
    server->config = *config;
    server->random = 1;
    for (uint32_t i = 0; i < TCP_SERVER_CONNECTIONS_MAX; i++) {
        server->connections[i].server = server;
    }
    return server;
}

void tcp_server_destroy(struct tcp_server *server)
{
    for (uint32_t i = 0; i < TCP_SERVER_CONNECTIONS_MAX; i++) {
        free(server->connections[i].in);
        free(server->connections[i].out);
    }
    free(server);
}

static uint16_t choose_queue(struct tcp_server *server, uint16_t home)
{
    const uint16_t count = port_info(server->config.port)->queue_count;
    server->random = server->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    if (count < 2 || (server->random >> 33) % 1000000 >= server->config.misroute_ppm) {
        return home;
    }
    server->misrouted_count++;
    return (uint16_t)((home + 1) % count);
}

/* The link is a ring next door: when it is full, the other side is about to empty it. */
static void send_frame(struct tcp_server *server, uint16_t queue, struct port_frame *frame)
{
    for (uint32_t tries = 0; tries < 1000; tries++) {
        if (port_tx(server->config.port, queue, frame, 1) == 1) {
            return;
        }
        rte_pause();
    }
    port_release(server->config.port, queue, frame, 1); /* lost; it will be sent again */
}

static uint32_t write_options(uint8_t *tcp, bool is_syn)
{
    static const uint8_t options[8] = {2, 4, MSS_BYTES >> 8, MSS_BYTES & 255, 1, 3, 3, SCALE};
    if (!is_syn) {
        return TCP_BYTES;
    }
    memcpy(tcp + TCP_BYTES, options, sizeof(options));
    return TCP_BYTES + sizeof(options);
}

static void send_segment(struct tcp_server_connection *connection, const struct segment *segment)
{
    struct tcp_server *server = connection->server;
    const uint16_t queue = choose_queue(server, connection->queue);
    const bool is_syn = (segment->flags & FLAG_SYN) != 0;
    struct port_frame frame;
    if (!port_tx_alloc(server->config.port, queue, HEAD_BYTES + (is_syn ? 8 : 0) + segment->bytes,
                       &frame)) {
        return;
    }
    uint8_t *ip = frame.data + ETHER_BYTES;
    uint8_t *tcp = ip + IP_BYTES;
    memset(frame.data, 0, HEAD_BYTES);
    memcpy(frame.data, connection->mac, MAC_BYTES);
    memcpy(frame.data + 6, port_info(server->config.port)->mac, MAC_BYTES);
    store_be16(frame.data + 12, 0x0800);
    const uint32_t header = write_options(tcp, is_syn);
    const uint32_t tcp_bytes = header + segment->bytes;
    ip[0] = 0x45;
    store_be16(ip + 2, (uint16_t)(IP_BYTES + tcp_bytes));
    ip[8] = 64;
    ip[9] = 6;
    store_be32(ip + 12, server->config.ip4);
    store_be32(ip + 16, connection->remote_ip4);
    store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP_BYTES)));
    store_be16(tcp, server->config.tcp_port);
    store_be16(tcp + 2, connection->remote_port);
    store_be32(tcp + 4, segment->seq);
    store_be32(tcp + 8, connection->receive_next);
    tcp[12] = (uint8_t)(header / 4 << 4);
    tcp[13] = segment->flags;
    store_be16(tcp + 14, (uint16_t)(is_syn ? UINT16_MAX : WINDOW_BYTES >> SCALE));
    if (segment->bytes > 0) {
        memcpy(tcp + header, segment->data, segment->bytes);
    }
    const uint64_t sum =
        checksum_pseudo_ip4(server->config.ip4, connection->remote_ip4, 6, tcp_bytes);
    store_be16(tcp + 16, checksum_finish(checksum_add(sum, tcp, tcp_bytes)));
    connection->owes_ack = false;
    send_frame(server, queue, &frame);
}

static void send_data(struct tcp_server_connection *connection)
{
    while (connection->out_sent < connection->out_bytes &&
           connection->out_sent < connection->send_window) {
        size_t bytes = connection->out_bytes - connection->out_sent;
        const size_t room = connection->send_window - connection->out_sent;
        bytes = bytes < room ? bytes : room;
        bytes = bytes < connection->mss_bytes ? bytes : connection->mss_bytes;
        const struct segment segment = {
            .seq = connection->send_first + (uint32_t)connection->out_sent,
            .flags = FLAG_ACK | FLAG_PSH,
            .data = connection->out + connection->out_start + connection->out_sent,
            .bytes = (uint32_t)bytes,
        };
        send_segment(connection, &segment);
        connection->out_sent += bytes;
    }
}

void tcp_server_send(struct tcp_server_connection *connection, const void *data, size_t bytes)
{
    if (connection->out_start + connection->out_bytes + bytes > TCP_SERVER_OUT_BYTES) {
        memmove(connection->out, connection->out + connection->out_start, connection->out_bytes);
        connection->out_start = 0;
    }
    ASSERT(connection->out_bytes + bytes <= TCP_SERVER_OUT_BYTES);
    if (connection->out_bytes == 0) {
        connection->out_start = 0;
        connection->progress_ns = connection->server->now_ns;
    }
    memcpy(connection->out + connection->out_start + connection->out_bytes, data, bytes);
    connection->out_bytes += bytes;
    send_data(connection);
}

void tcp_server_consume(struct tcp_server_connection *connection, size_t bytes)
{
    ASSERT(bytes <= connection->in_bytes);
    connection->in_bytes -= bytes;
    memmove(connection->in, connection->in + bytes, connection->in_bytes);
}

/* ---- Receiving ---- */

static void answer_arp(struct tcp_server *server, uint16_t queue, const struct port_frame *in)
{
    const uint8_t *mac = port_info(server->config.port)->mac;
    struct port_frame frame;
    if (in->bytes < 42 || load_be16(in->data + 20) != 1 ||
        load_be32(in->data + 38) != server->config.ip4 ||
        !port_tx_alloc(server->config.port, queue, 60, &frame)) {
        return;
    }
    memset(frame.data, 0, 60);
    memcpy(frame.data, in->data + 6, MAC_BYTES);
    memcpy(frame.data + 6, mac, MAC_BYTES);
    memcpy(frame.data + 12, in->data + 12, 8);
    store_be16(frame.data + 20, 2);
    memcpy(frame.data + 22, mac, MAC_BYTES);
    store_be32(frame.data + 28, server->config.ip4);
    memcpy(frame.data + 32, in->data + 22, 10);
    send_frame(server, choose_queue(server, queue), &frame);
}

static struct tcp_server_connection *find(struct tcp_server *server, uint32_t ip4, uint16_t port,
                                          bool is_new)
{
    struct tcp_server_connection *unused = NULL;
    for (uint32_t i = 0; i < TCP_SERVER_CONNECTIONS_MAX; i++) {
        struct tcp_server_connection *connection = &server->connections[i];
        if (connection->is_open && connection->remote_port == port &&
            connection->remote_ip4 == ip4) {
            return connection;
        }
        unused = connection->is_open || unused != NULL ? unused : connection;
    }
    return is_new ? unused : NULL;
}

static uint8_t find_scale(const uint8_t *tcp, uint32_t header)
{
    for (uint32_t at = TCP_BYTES; at + 1 < header && tcp[at] != 0;
         at += tcp[at] == 1 ? 1 : (tcp[at + 1] < 2 ? 2 : tcp[at + 1])) {
        if (tcp[at] == 3) {
            return tcp[at + 2];
        }
    }
    return 0;
}

static void accept_syn(struct tcp_server_connection *connection, const struct port_frame *frame,
                       uint16_t queue)
{
    const uint8_t *ip = frame->data + ETHER_BYTES;
    const uint8_t *tcp = ip + IP_BYTES;
    uint8_t *in = connection->in;
    uint8_t *out = connection->out;
    if (in == NULL) {
        in = malloc(TCP_SERVER_IN_BYTES);
        out = malloc(TCP_SERVER_OUT_BYTES);
        ASSERT(in != NULL && out != NULL);
        memset(in, 0, TCP_SERVER_IN_BYTES);
        memset(out, 0, TCP_SERVER_OUT_BYTES);
    }
    *connection = (struct tcp_server_connection){
        .server = connection->server,
        .is_open = true,
        .remote_port = load_be16(tcp),
        .remote_ip4 = load_be32(ip + 12),
        .queue = queue,
        .mss_bytes = MSS_BYTES,
        .remote_scale = find_scale(tcp, (uint32_t)(tcp[12] >> 4) * 4),
        .receive_next = load_be32(tcp + 4) + 1,
        .send_first = 1000,
        .in = in,
        .out = out,
    };
    memcpy(connection->mac, frame->data + 6, MAC_BYTES);
    const struct segment answer = {.seq = connection->send_first, .flags = FLAG_SYN | FLAG_ACK};
    send_segment(connection, &answer);
    connection->send_first++;
}

static void take_ack(struct tcp_server_connection *connection, uint32_t ack, uint32_t window)
{
    const uint32_t acked = ack - connection->send_first;
    connection->send_window = window << connection->remote_scale;
    if (acked > 0 && acked <= connection->out_bytes) {
        connection->send_first = ack;
        connection->out_start += acked;
        connection->out_bytes -= acked;
        connection->out_sent -= acked < connection->out_sent ? acked : connection->out_sent;
        connection->progress_ns = connection->server->now_ns;
    }
}

static void take_data(struct tcp_server_connection *connection, uint32_t seq, struct span data)
{
    if (data.bytes == 0) {
        return;
    }
    connection->owes_ack = true;
    if (seq == connection->receive_next &&
        connection->in_bytes + data.bytes <= TCP_SERVER_IN_BYTES) {
        memcpy(connection->in + connection->in_bytes, data.data, data.bytes);
        connection->in_bytes += data.bytes;
        connection->receive_next += (uint32_t)data.bytes;
    } else {
        const struct segment ack = {.seq = connection->send_first + (uint32_t)connection->out_sent,
                                    .flags = FLAG_ACK};
        send_segment(connection, &ack); /* a duplicate: asks for what is missing */
    }
}

static void take_frame(struct tcp_server *server, uint16_t queue, const struct port_frame *frame)
{
    if (frame->bytes < HEAD_BYTES || load_be16(frame->data + 12) != 0x0800) {
        if (frame->bytes >= 42 && load_be16(frame->data + 12) == 0x0806) {
            answer_arp(server, queue, frame);
        }
        return;
    }
    const uint8_t *ip = frame->data + ETHER_BYTES;
    const uint8_t *tcp = ip + IP_BYTES;
    const uint32_t header = (uint32_t)(tcp[12] >> 4) * 4;
    const uint32_t total = load_be16(ip + 2);
    if (load_be32(ip + 16) != server->config.ip4 || ip[9] != 6 || total < IP_BYTES + header ||
        ETHER_BYTES + total > frame->bytes) {
        return;
    }
    const uint8_t flags = tcp[13];
    const bool is_syn = (flags & FLAG_SYN) != 0;
    struct tcp_server_connection *connection =
        find(server, load_be32(ip + 12), load_be16(tcp), is_syn);
    if (connection == NULL || (flags & FLAG_RST) != 0) {
        if (connection != NULL) {
            connection->is_open = false;
        }
        return;
    }
    if (is_syn) {
        accept_syn(connection, frame, queue);
        return;
    }
    take_ack(connection, load_be32(tcp + 8), load_be16(tcp + 14));
    take_data(connection, load_be32(tcp + 4),
              (struct span){tcp + header, total - IP_BYTES - header});
    if ((flags & FLAG_FIN) != 0 &&
        load_be32(tcp + 4) + (total - IP_BYTES - header) == connection->receive_next) {
        connection->receive_next++;
        const struct segment end = {.seq = connection->send_first + (uint32_t)connection->out_sent,
                                    .flags = FLAG_ACK | FLAG_FIN};
        send_segment(connection, &end);
        connection->is_open = false;
    }
}

static void keep_going(struct tcp_server_connection *connection)
{
    struct tcp_server *server = connection->server;
    if (connection->out_sent > 0 && server->now_ns - connection->progress_ns > RESEND_NS) {
        connection->out_sent = 0;
        connection->progress_ns = server->now_ns;
        server->resent_count++;
    }
    send_data(connection);
    if (connection->owes_ack) {
        const struct segment ack = {.seq = connection->send_first + (uint32_t)connection->out_sent,
                                    .flags = FLAG_ACK};
        send_segment(connection, &ack);
    }
}

uint32_t tcp_server_poll(struct tcp_server *server, uint64_t now_ns)
{
    struct port_frame frames[PORT_BURST_MAX];
    struct port *port = server->config.port;
    uint32_t work = 0;
    /* Acknowledgments that the last turn's answers did not carry go now. */
    for (uint32_t i = 0; i < TCP_SERVER_CONNECTIONS_MAX; i++) {
        if (server->connections[i].is_open) {
            keep_going(&server->connections[i]);
        }
    }
    server->now_ns = now_ns;
    for (uint16_t queue = 0; queue < port_info(port)->queue_count; queue++) {
        const uint32_t count = port_rx(port, queue, frames, PORT_BURST_MAX);
        for (uint32_t i = 0; i < count; i++) {
            take_frame(server, queue, &frames[i]);
        }
        port_release(port, queue, frames, count);
        work += count;
    }
    return work;
}
