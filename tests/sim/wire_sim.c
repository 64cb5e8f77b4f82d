/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers are stamped when they are out, so giving one back twice stops the test. */
#include "tests/sim/wire_sim.h"

#include <stdlib.h>

#include "nic/checksum.h"
#include "nic/flow.h"

struct list_frame {
    uint32_t bytes;
    uint8_t data[WIRE_FRAME_BYTES];
};

struct buffer {
    bool is_out;
    uint8_t data[PORT_SIM_SEND_BYTES + PACKET_HEADER_BYTES_MAX];
};

struct port {
    struct port_info info;
    struct port_sim_config config;
    struct wire_random random;
    uint64_t now_ns;
    uint32_t out_count;
    uint32_t free_count;
    uint16_t free_buffers[PORT_SIM_BUFFER_COUNT];
    struct buffer buffers[PORT_SIM_BUFFER_COUNT];
    uint32_t fed_count;
    uint32_t taken_at;
    uint32_t sent_count;
    struct list_frame fed[PORT_SIM_LIST_MAX];
    struct list_frame sent[PORT_SIM_LIST_MAX];
};

struct port *port_sim_create(const struct port_sim_config *config)
{
    struct port *port = calloc(1, sizeof(*port));
    ASSERT(port != NULL);
    port_sim_reset(port, config);
    return port;
}

void port_sim_reset(struct port *port, const struct port_sim_config *config)
{
    static const uint8_t mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x02};
    ASSERT(port->out_count == 0);
    port->config = *config;
    port->random.state = config->seed;
    port->now_ns = 0;
    port->fed_count = 0;
    port->sent_count = 0;
    port->taken_at = 0;
    port->info = (struct port_info){
        .name = "sim",
        .queue_count = config->queue_count == 0 ? 1 : config->queue_count,
        .mtu_bytes = config->mtu_bytes,
        .tx_ip_sum = config->checksum_offload,
        .tx_tcp_sum = config->checksum_offload,
        .tso_bytes_max = config->segments && config->checksum_offload ? PORT_SIM_SEND_BYTES : 0,
    };
    memcpy(port->info.mac, mac, MAC_BYTES);
    flow_defaults(&port->info);
    port->free_count = PORT_SIM_BUFFER_COUNT;
    for (uint32_t i = 0; i < PORT_SIM_BUFFER_COUNT; i++) {
        port->free_buffers[i] = (uint16_t)i;
    }
}

void port_sim_destroy(struct port *port)
{
    ASSERT(port->out_count == 0);
    free(port);
}

void port_sim_time(struct port *port, uint64_t now_ns)
{
    port->now_ns = now_ns;
}

uint32_t port_sim_buffers_out(const struct port *port)
{
    return port->out_count;
}

void port_sim_feed(struct port *port, struct span frame)
{
    ASSERT(port->fed_count < PORT_SIM_LIST_MAX);
    ASSERT(frame.bytes <= WIRE_FRAME_BYTES);
    struct list_frame *into = &port->fed[port->fed_count++];
    into->bytes = (uint32_t)frame.bytes;
    memcpy(into->data, frame.data, frame.bytes);
}

uint32_t port_sim_take(struct port *port, uint8_t *out)
{
    if (port->taken_at == port->sent_count) {
        port->taken_at = port->sent_count = 0;
        return 0;
    }
    const struct list_frame *from = &port->sent[port->taken_at++];
    memcpy(out, from->data, from->bytes);
    return from->bytes;
}

const struct port_info *port_info(const struct port *port)
{
    return &port->info;
}

bool port_link_is_up(const struct port *port)
{
    return port != NULL;
}

static bool buffer_take(struct port *port, struct port_frame *frame)
{
    if (port->free_count == 0) {
        return false;
    }
    struct buffer *buffer = &port->buffers[port->free_buffers[--port->free_count]];
    ASSERT(!buffer->is_out);
    buffer->is_out = true;
    port->out_count++;
    *frame = (struct port_frame){.data = buffer->data, .cookie = buffer};
    return true;
}

static void buffer_give(struct port *port, struct port_frame *frame)
{
    struct buffer *buffer = frame->cookie;
    ASSERT(buffer != NULL && buffer->is_out);
    buffer->is_out = false;
    frame->cookie = NULL;
    port->out_count--;
    port->free_buffers[port->free_count++] = (uint16_t)(buffer - port->buffers);
}

static uint32_t list_receive(struct port *port, uint8_t *out)
{
    if (port->fed_count == 0) {
        return 0;
    }
    uint32_t bytes = port->fed[0].bytes;
    memcpy(out, port->fed[0].data, bytes);
    port->fed_count--;
    memmove(&port->fed[0], &port->fed[1], sizeof(port->fed[0]) * port->fed_count);
    return bytes;
}

uint32_t port_rx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    uint32_t received = 0;
    while (queue == 0 && received < count && buffer_take(port, &frames[received])) {
        struct port_frame *frame = &frames[received];
        frame->bytes = port->config.wire != NULL
                           ? wire_receive(port->config.wire, WIRE_STACK, port->now_ns, frame->data)
                           : list_receive(port, frame->data);
        if (frame->bytes == 0) {
            buffer_give(port, frame);
            break;
        }
        received++;
    }
    return received;
}

void port_release(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    (void)queue;
    for (uint32_t i = 0; i < count; i++) {
        buffer_give(port, &frames[i]);
    }
}

bool port_tx_alloc(struct port *port, uint16_t queue, uint32_t bytes, struct port_frame *frame)
{
    (void)queue;
    ASSERT(bytes <= port->info.mtu_bytes + ETHER_HEADER_BYTES || port->info.tso_bytes_max > 0);
    ASSERT(bytes <= sizeof(((struct buffer *)NULL)->data));
    bool fails =
        wire_random_below(&port->random, WIRE_PER_MILLION) < port->config.alloc_failure_ppm;
    if (fails || !buffer_take(port, frame)) {
        return false;
    }
    frame->bytes = bytes;
    return true;
}

/* What a device does with the two flags. */
static void checksums_fill(const struct port_frame *frame)
{
    uint8_t *ip = frame->data + ETHER_HEADER_BYTES;
    if ((frame->flags & PORT_TX_IP_SUM) != 0) {
        store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP4_HEADER_BYTES)));
    }
    if ((frame->flags & PORT_TX_TCP_SUM) != 0) {
        uint32_t bytes = frame->bytes - ETHER_HEADER_BYTES - IP4_HEADER_BYTES;
        uint8_t *tcp = ip + IP4_HEADER_BYTES;
        store_be16(tcp + 16, checksum_finish(checksum_add(0, tcp, bytes)));
    }
}

static void frame_leave(struct port *port, const struct port_frame *frame)
{
    checksums_fill(frame);
    ASSERT(frame->bytes <= port->info.mtu_bytes + ETHER_HEADER_BYTES);
    struct span bytes = {frame->data, frame->bytes};
    if (port->config.wire != NULL) {
        wire_send(port->config.wire, WIRE_STACK, bytes, port->now_ns);
    } else if (port->sent_count < PORT_SIM_LIST_MAX) {
        struct list_frame *into = &port->sent[port->sent_count++];
        into->bytes = frame->bytes;
        memcpy(into->data, frame->data, frame->bytes);
    }
}

/* Cuts a large send as a device does: lengths, sequence numbers, and PSH and FIN on the last. The
 * pseudo header sum comes without the length and gets each segment's own. */
static void frame_cut(struct port *port, const struct port_frame *frame)
{
    uint32_t header_bytes = ETHER_HEADER_BYTES + IP4_HEADER_BYTES + frame->l4_header_bytes;
    uint32_t left = frame->bytes - header_bytes;
    const uint8_t *from = frame->data + header_bytes;
    uint32_t seq = load_be32(frame->data + 38);
    uint32_t sum = load_be16(frame->data + 50);
    uint8_t flags = frame->data[47];
    ASSERT(frame->mss_bytes > 0);
    while (left > 0) {
        uint8_t piece[WIRE_FRAME_BYTES];
        uint32_t bytes = left < frame->mss_bytes ? left : frame->mss_bytes;
        uint32_t l4_bytes = frame->l4_header_bytes + bytes;
        memcpy(piece, frame->data, header_bytes);
        memcpy(piece + header_bytes, from, bytes);
        store_be16(piece + 16, (uint16_t)(IP4_HEADER_BYTES + l4_bytes));
        store_be32(piece + 38, seq);
        piece[47] = bytes == left ? flags : flags & ~(TCP_PSH | TCP_FIN);
        store_be16(piece + 50, (uint16_t)((sum + l4_bytes) + ((sum + l4_bytes) >> 16)));
        struct port_frame one = {
            .data = piece, .bytes = header_bytes + bytes, .flags = frame->flags};
        frame_leave(port, &one);
        seq += bytes;
        from += bytes;
        left -= bytes;
    }
}

uint32_t port_tx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    (void)queue;
    ASSERT(count <= PORT_BURST_MAX);
    if (wire_random_below(&port->random, WIRE_PER_MILLION) < port->config.tx_short_ppm) {
        count = (uint32_t)wire_random_below(&port->random, count + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((frames[i].flags & PORT_TX_SEGMENT) != 0) {
            frame_cut(port, &frames[i]);
        } else {
            frame_leave(port, &frames[i]);
        }
        buffer_give(port, &frames[i]);
    }
    return count;
}
