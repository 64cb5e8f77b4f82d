/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a stack with live connections. The input is a list of small commands: raw frames,
 * segments whose numbers lie near the connection's own and whose checksums are right (or every
 * input would end at the checksum), time, and what an application does. Checked: no crash, the
 * stack's own asserts, balance of counters, no frame leaked. */
#include "nic/checksum.h"
#include "nic/ether.h"
#include "nic/stack_internal.h"
#include "tests/sim/wire_sim.h"

#define LOCAL_IP4       UINT32_C(0xc6120002)
#define REMOTE_IP4      UINT32_C(0xc6120001)
#define STREAM_COUNT    3
#define FRAME_BYTES_MAX 1514

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    const uint8_t *data;
    size_t left;
    struct port *port;
    struct stack *stack;
    struct stream *streams[STREAM_COUNT];
    uint64_t now_ns;
};

static const uint8_t local_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x02};
static const uint8_t remote_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x01};

static uint32_t take(struct fuzz *fuzz, uint32_t bytes)
{
    uint32_t value = 0;
    for (; bytes > 0 && fuzz->left > 0; bytes--, fuzz->left--) {
        value = value << 8 | *fuzz->data++;
    }
    return value;
}

static void frame_feed(struct fuzz *fuzz, const uint8_t *frame, uint32_t bytes)
{
    uint8_t sent[WIRE_FRAME_BYTES];
    port_sim_feed(fuzz->port, (struct span){frame, bytes});
    (void)stack_poll(fuzz->stack, fuzz->now_ns);
    while (port_sim_take(fuzz->port, sent) > 0) {
    }
}

static void raw_frame(struct fuzz *fuzz)
{
    uint8_t frame[FRAME_BYTES_MAX];
    uint32_t bytes = take(fuzz, 2) % FRAME_BYTES_MAX;
    uint32_t have = bytes < fuzz->left ? bytes : (uint32_t)fuzz->left;
    memset(frame, 0, sizeof(frame));
    memcpy(frame, fuzz->data, have);
    fuzz->data += have;
    fuzz->left -= have;
    memcpy(frame, local_mac, MAC_BYTES);
    frame_feed(fuzz, frame, bytes);
}

/* Any IPv4 payload behind a right header; TCP and ICMP get right checksums. */
static void packet_feed(struct fuzz *fuzz, uint8_t protocol, const uint8_t *l4, uint32_t bytes)
{
    uint8_t frame[WIRE_FRAME_BYTES] = {0};
    uint8_t *ip = frame + ETHER_HEADER_BYTES, *body = ip + IP4_HEADER_BYTES;
    ether_header_write(frame, local_mac, remote_mac, ETHER_TYPE_IP4);
    ip[0] = 0x45;
    store_be16(ip + 2, (uint16_t)(IP4_HEADER_BYTES + bytes));
    ip[8] = 64;
    ip[9] = protocol;
    store_be32(ip + 12, REMOTE_IP4);
    store_be32(ip + 16, LOCAL_IP4);
    store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP4_HEADER_BYTES)));
    memcpy(body, l4, bytes);
    uint32_t at = protocol == IP4_PROTOCOL_TCP ? 16 : 2;
    uint64_t sum = protocol == IP4_PROTOCOL_TCP
                       ? checksum_pseudo_ip4(REMOTE_IP4, LOCAL_IP4, protocol, bytes)
                       : 0;
    if (bytes >= at + 2) {
        store_be16(body + at, 0);
        store_be16(body + at, checksum_finish(checksum_add(sum, body, bytes)));
    }
    frame_feed(fuzz, frame, ETHER_HEADER_BYTES + IP4_HEADER_BYTES + bytes);
}

static struct tcp_connection *connection_pick(struct fuzz *fuzz)
{
    struct stream *stream = fuzz->streams[take(fuzz, 1) % STREAM_COUNT];
    return (struct tcp_connection *)(void *)stream;
}

static void segment(struct fuzz *fuzz)
{
    uint8_t tcp[1480] = {0};
    const struct tcp_connection *connection = connection_pick(fuzz);
    uint32_t option_bytes = take(fuzz, 1) % 11 * 4;
    uint32_t payload_bytes = take(fuzz, 2) % 1400;
    if (connection == NULL) {
        return;
    }
    store_be16(tcp, connection->tuple.remote_port);
    store_be16(tcp + 2, connection->tuple.local_port);
    store_be32(tcp + 4, connection->rcv_nxt + (uint32_t)(int16_t)take(fuzz, 2));
    store_be32(tcp + 8, connection->snd_nxt + (uint32_t)(int32_t)(int8_t)take(fuzz, 1));
    tcp[12] = (uint8_t)((TCP_HEADER_BYTES + option_bytes) / 4 << 4);
    tcp[13] = (uint8_t)take(fuzz, 1);
    store_be16(tcp + 14, (uint16_t)take(fuzz, 2));
    uint32_t at = TCP_HEADER_BYTES;
    bool stamp = connection->timestamps && option_bytes >= TCP_TIMESTAMP_BYTES;
    if (stamp) {
        store_be32(tcp + at, 0x0101080a);
        store_be32(tcp + at + 4, connection->timestamp_recent + take(fuzz, 1) - 4);
        store_be32(tcp + at + 8, tcp_timestamp(connection) - take(fuzz, 1));
        at += TCP_TIMESTAMP_BYTES;
    }
    /* A SACK option near the flight, where there is room; raw bytes otherwise. */
    if (TCP_HEADER_BYTES + option_bytes >= at + 12 && take(fuzz, 1) % 2 == 0) {
        store_be32(tcp + at, 0x0101050a);
        store_be32(tcp + at + 4, connection->snd_una + take(fuzz, 2));
        store_be32(tcp + at + 8, connection->snd_una + take(fuzz, 2));
        at += 12;
    }
    while (at < TCP_HEADER_BYTES + option_bytes) {
        tcp[at++] = (uint8_t)take(fuzz, 1);
    }
    packet_feed(fuzz, IP4_PROTOCOL_TCP, tcp, at + payload_bytes);
}

static void icmp_error(struct fuzz *fuzz)
{
    uint8_t icmp[64] = {ICMP_UNREACHABLE};
    const struct tcp_connection *connection = connection_pick(fuzz);
    icmp[1] = (uint8_t)take(fuzz, 1);
    store_be16(icmp + 6, (uint16_t)take(fuzz, 2));
    icmp[8] = 0x45;
    icmp[17] = IP4_PROTOCOL_TCP;
    store_be32(icmp + 20, LOCAL_IP4);
    store_be32(icmp + 24, REMOTE_IP4);
    if (connection != NULL) {
        store_be16(icmp + 28, connection->tuple.local_port);
        store_be16(icmp + 30, connection->tuple.remote_port);
        store_be32(icmp + 32, connection->snd_una + take(fuzz, 1));
    }
    packet_feed(fuzz, IP4_PROTOCOL_ICMP, icmp, take(fuzz, 1) % 65);
}

/* Lets a connection come up, or the rest would seldom be reached. */
static void handshake(struct fuzz *fuzz)
{
    uint8_t tcp[TCP_HEADER_BYTES + TCP_OPTION_BYTES_MAX] = {0};
    struct tcp_connection *connection = connection_pick(fuzz);
    uint8_t options = (uint8_t)take(fuzz, 1);
    if (connection == NULL || connection->state != TCP_SYN_SENT) {
        return;
    }
    struct tcp_options offer = {
        .has_mss = (options & 1) != 0,
        .mss_bytes = (uint16_t)take(fuzz, 2),
        .has_scale = (options & 2) != 0,
        .scale = options >> 4,
        .has_sack_permitted = (options & 4) != 0,
        .has_timestamp = (options & 8) != 0,
    };
    uint32_t bytes = TCP_HEADER_BYTES + (uint32_t)tcp_options_write(tcp + 20, &offer);
    store_be16(tcp, connection->tuple.remote_port);
    store_be16(tcp + 2, connection->tuple.local_port);
    store_be32(tcp + 4, take(fuzz, 4));
    store_be32(tcp + 8, connection->iss + 1);
    tcp[12] = (uint8_t)(bytes / 4 << 4);
    tcp[13] = TCP_SYN | TCP_ACK;
    store_be16(tcp + 14, (uint16_t)take(fuzz, 2));
    packet_feed(fuzz, IP4_PROTOCOL_TCP, tcp, bytes);
}

static void application(struct fuzz *fuzz)
{
    uint32_t which = take(fuzz, 1) % STREAM_COUNT;
    uint32_t act = take(fuzz, 1) % 8;
    struct stream *stream = fuzz->streams[which];
    if (stream == NULL) {
        (void)stack_connect(fuzz->stack, REMOTE_IP4, 9092, fuzz->now_ns, &fuzz->streams[which]);
        return;
    }
    if (act < 3) {
        size_t bytes = take(fuzz, 2);
        struct span_mut room = stream_writable(stream);
        stream_commit(stream, bytes < room.bytes ? bytes : room.bytes);
    } else if (act < 5) {
        size_t bytes = take(fuzz, 2);
        struct span in = stream_readable(stream);
        stream_consume(stream, bytes < in.bytes ? bytes : in.bytes);
    } else if (act == 5) {
        stream_close(stream);
    } else if (act == 6) {
        stream_release(stream);
        fuzz->streams[which] = NULL;
    } else {
        (void)stack_flush(fuzz->stack, fuzz->now_ns);
    }
}

static void time_turn(struct fuzz *fuzz)
{
    uint8_t sent[WIRE_FRAME_BYTES];
    fuzz->now_ns += (uint64_t)take(fuzz, 1) << (take(fuzz, 1) % 32);
    (void)stack_poll(fuzz->stack, fuzz->now_ns);
    while (port_sim_take(fuzz->port, sent) > 0) {
    }
}

static void command_run(struct fuzz *fuzz)
{
    switch (take(fuzz, 1) % 8) {
    case 0:
        raw_frame(fuzz);
        break;
    case 1:
    case 2:
    case 3:
        segment(fuzz);
        break;
    case 4:
        handshake(fuzz);
        break;
    case 5:
        icmp_error(fuzz);
        break;
    case 6:
        application(fuzz);
        break;
    default:
        time_turn(fuzz);
        break;
    }
}

/* The neighbour answers, so that what the stack sends leaves. */
static void arp_answer(struct fuzz *fuzz)
{
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    uint8_t *arp = frame + ETHER_HEADER_BYTES;
    ether_header_write(frame, local_mac, remote_mac, ETHER_TYPE_ARP);
    store_be16(arp, 1);
    store_be16(arp + 2, ETHER_TYPE_IP4);
    arp[4] = MAC_BYTES;
    arp[5] = 4;
    store_be16(arp + 6, ARP_OP_REPLY);
    memcpy(arp + 8, remote_mac, MAC_BYTES);
    store_be32(arp + 14, REMOTE_IP4);
    store_be32(arp + 24, LOCAL_IP4);
    frame_feed(fuzz, frame, sizeof(frame));
}

static void fuzz_start(struct fuzz *fuzz)
{
    struct nic_config config;
    struct port_sim_config port_config = {.mtu_bytes = 1500};
    nic_config_defaults(&config);
    config.address_ip4 = LOCAL_IP4;
    config.prefix_bits = 15;
    config.connection_count_max = STREAM_COUNT + 1;
    config.time_wait_count_max = 16;
    config.receive_bytes_max = 65536;
    config.send_bytes_max = 65536;
    config.segment_count_max = 64;
    fuzz->now_ns = NANOSECONDS_PER_S;
    fuzz->port = port_sim_create(&port_config);
    struct stack_options options = {.config = &config, .port = fuzz->port, .now_ns = fuzz->now_ns};
    ASSERT(stack_create(&options, &fuzz->stack, NULL) == 0);
    for (int i = 0; i < STREAM_COUNT; i++) {
        ASSERT(stack_connect(fuzz->stack, REMOTE_IP4, 9092, fuzz->now_ns, &fuzz->streams[i]) == 0);
    }
    (void)stack_poll(fuzz->stack, fuzz->now_ns);
    arp_answer(fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {.data = data, .left = size};
    fuzz_start(&fuzz);
    while (fuzz.left > 0) {
        command_run(&fuzz);
        ASSERT(stack_is_balanced(fuzz.stack));
    }
    stack_destroy(fuzz.stack);
    ASSERT(port_sim_buffers_out(fuzz.port) == 0);
    port_sim_destroy(fuzz.port);
    return 0;
}
