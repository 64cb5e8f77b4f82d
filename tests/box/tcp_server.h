/* SPDX-License-Identifier: Apache-2.0 */
/* A passive TCP station over a port: what stands at the far end of a ring or memif pair when the
 * whole box runs in one process. It takes connections to one address and port, delivers bytes in
 * order and sends what it is given, on a link that loses next to nothing: early segments are
 * dropped and asked for again, a silent peer gets everything unacknowledged once more.
 *
 * It polls all queues of the port from one thread. A frame leaves on the queue its connection came
 * in on, or, with misroute_ppm, on another by chance, as steering that a stack cannot trust. */
#pragma once

#include "base.h"
#include "nic/port.h"

#define TCP_SERVER_CONNECTIONS_MAX 32
#define TCP_SERVER_IN_BYTES        ((size_t)1 << 20)
#define TCP_SERVER_OUT_BYTES       ((size_t)8 << 20)

struct tcp_server;

struct tcp_server_connection {
    struct tcp_server *server;
    bool is_open;
    bool owes_ack;
    uint16_t remote_port;
    uint16_t queue;
    uint16_t mss_bytes;
    uint8_t remote_scale;
    uint8_t mac[MAC_BYTES];
    uint32_t remote_ip4;
    uint32_t receive_next;
    uint32_t send_first; /* sequence number of out[out_start] */
    uint32_t send_window;
    size_t out_start;
    size_t out_bytes; /* unacknowledged and unsent, from out_start on */
    size_t out_sent;  /* of them */
    size_t in_bytes;  /* received, not consumed, from in on */
    uint8_t *in;
    uint8_t *out;
    uint64_t progress_ns;
    uint64_t user[2]; /* the application's; zero when a connection opens */
};

struct tcp_server_config {
    struct port *port;
    uint32_t ip4;
    uint16_t tcp_port;
    uint32_t misroute_ppm; /* frames that leave on a wrong queue, in a million */
};

struct tcp_server {
    struct tcp_server_config config;
    uint64_t random;
    uint64_t now_ns;
    uint64_t misrouted_count;
    uint64_t resent_count;
    struct tcp_server_connection connections[TCP_SERVER_CONNECTIONS_MAX];
};

/* Makes a server; its buffers are touched.
 * returns  freed by tcp_server_destroy
 * threads  one */
struct tcp_server *tcp_server_create(const struct tcp_server_config *config);

/* Frees it.
 * threads  one */
void tcp_server_destroy(struct tcp_server *server);

/* Takes what has arrived, sends what may go.
 * returns  frames received
 * threads  one */
uint32_t tcp_server_poll(struct tcp_server *server, uint64_t now_ns);

/* Queues bytes and sends what the window allows.
 * threads  one */
void tcp_server_send(struct tcp_server_connection *connection, const void *data, size_t bytes);

/* Takes bytes off the front of what was received.
 * threads  one */
void tcp_server_consume(struct tcp_server_connection *connection, size_t bytes);
