/* SPDX-License-Identifier: Apache-2.0 */
/* Frames by hand. */
#include "tests/nic/harness.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "nic/checksum.h"
#include "nic/ether.h"

static const uint8_t remote_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x01};

void harness_init(struct harness *harness)
{
    struct port_sim_config port_config = {.mtu_bytes = 1500};
    memset(harness, 0, sizeof(*harness));
    nic_config_defaults(&harness->config);
    harness->config.address_ip4 = HARNESS_LOCAL_IP4;
    harness->config.prefix_bits = 15;
    harness->config.connection_count_max = 4;
    harness->config.receive_bytes_max = 65536;
    harness->config.send_bytes_max = 65536;
    harness->config.segment_count_max = 64;
    harness->port = port_sim_create(&port_config);
    harness->now_ns = 1000 * NANOSECONDS_PER_S;
    harness->timestamps = true;
    harness->sack = true;
    harness->mss_bytes = 1460;
    harness->window = 65535;
    harness->timestamp = 5000;
}

void harness_start(struct harness *harness)
{
    struct error error = {0};
    struct stack_options options = {
        .config = &harness->config,
        .port = harness->port,
        .now_ns = harness->now_ns,
        .secret = "a fixed secret",
    };
    assert_int_equal(0, stack_create(&options, &harness->stack, &error));
}

void harness_fini(struct harness *harness)
{
    assert_true(stack_is_balanced(harness->stack));
    stack_destroy(harness->stack);
    assert_int_equal(0, port_sim_buffers_out(harness->port));
    port_sim_destroy(harness->port);
}

void harness_frame(struct harness *harness, const uint8_t *frame, size_t bytes)
{
    port_sim_feed(harness->port, (struct span){frame, bytes});
    (void)stack_poll(harness->stack, harness->now_ns);
}

size_t harness_ip4(uint8_t *frame, uint8_t protocol, const uint8_t *l4, size_t l4_bytes)
{
    static const uint8_t local_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x02};
    uint8_t *ip = frame + ETHER_HEADER_BYTES;
    ether_header_write(frame, local_mac, remote_mac, ETHER_TYPE_IP4);
    memset(ip, 0, IP4_HEADER_BYTES);
    ip[0] = 0x45;
    store_be16(ip + 2, (uint16_t)(IP4_HEADER_BYTES + l4_bytes));
    store_be16(ip + 6, IP4_FLAG_DF);
    ip[8] = 64;
    ip[9] = protocol;
    store_be32(ip + 12, HARNESS_REMOTE_IP4);
    store_be32(ip + 16, HARNESS_LOCAL_IP4);
    store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP4_HEADER_BYTES)));
    memcpy(ip + IP4_HEADER_BYTES, l4, l4_bytes);
    if (protocol == IP4_PROTOCOL_TCP) {
        uint8_t *tcp = ip + IP4_HEADER_BYTES;
        store_be16(tcp + 16, 0);
        uint64_t sum = checksum_pseudo_ip4(HARNESS_REMOTE_IP4, HARNESS_LOCAL_IP4, IP4_PROTOCOL_TCP,
                                           (uint32_t)l4_bytes);
        store_be16(tcp + 16, checksum_finish(checksum_add(sum, tcp, l4_bytes)));
    }
    return ETHER_HEADER_BYTES + IP4_HEADER_BYTES + l4_bytes;
}

void harness_segment(struct harness *harness, const struct harness_segment *segment)
{
    uint8_t tcp[1700], frame[1800];
    size_t option_bytes = tcp_options_write(tcp + TCP_HEADER_BYTES, &segment->options);
    size_t header_bytes = TCP_HEADER_BYTES + option_bytes;
    store_be16(tcp, HARNESS_REMOTE_PORT);
    store_be16(tcp + 2, harness->local_port);
    store_be32(tcp + 4, segment->seq);
    store_be32(tcp + 8, segment->ack);
    tcp[12] = (uint8_t)(header_bytes / 4 << 4);
    tcp[13] = segment->flags;
    store_be16(tcp + 14, segment->window);
    store_be32(tcp + 16, 0);
    memcpy(tcp + header_bytes, segment->payload, segment->payload_bytes);
    size_t bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, header_bytes + segment->payload_bytes);
    harness_frame(harness, frame, bytes);
}

void harness_data(struct harness *harness, uint32_t seq, uint32_t ack, uint8_t flags,
                  const char *payload)
{
    struct harness_segment segment = {
        .seq = HARNESS_ISN + 1 + seq,
        .ack = harness->iss + 1 + ack,
        .flags = flags,
        .window = harness->window,
        .options = {.has_timestamp = harness->timestamps && (flags & TCP_RST) == 0,
                    .timestamp = harness->timestamp,
                    .timestamp_echo = harness->timestamp_echo},
        .payload_bytes = (uint32_t)strlen(payload),
    };
    memcpy(segment.payload, payload, segment.payload_bytes);
    harness_segment(harness, &segment);
}

bool harness_take(struct harness *harness, struct harness_segment *out)
{
    uint8_t frame[WIRE_FRAME_BYTES];
    uint32_t bytes = port_sim_take(harness->port, frame);
    while (bytes > 0 && load_be16(frame + 12) != ETHER_TYPE_IP4) {
        bytes = port_sim_take(harness->port, frame);
    }
    if (bytes == 0) {
        return false;
    }
    const uint8_t *ip = frame + ETHER_HEADER_BYTES, *tcp = ip + IP4_HEADER_BYTES;
    uint32_t total = load_be16(ip + 2);
    uint32_t header = (uint32_t)(tcp[12] >> 4) * 4;
    uint64_t sum = checksum_pseudo_ip4(load_be32(ip + 12), load_be32(ip + 16), ip[9], total - 20);
    assert_int_equal(0, checksum_finish(checksum_add(0, ip, 20)));
    assert_int_equal(0, checksum_finish(checksum_add(sum, tcp, total - 20)));
    memset(out, 0, sizeof(*out));
    harness->local_port = load_be16(tcp);
    out->seq = load_be32(tcp + 4);
    out->ack = load_be32(tcp + 8);
    out->flags = tcp[13];
    out->window = load_be16(tcp + 14);
    assert_true(tcp_options_parse(tcp + 20, header - 20, &out->options));
    harness->timestamp_echo = out->options.timestamp;
    out->payload_bytes = total - 20 - header;
    memcpy(out->payload, tcp + header, out->payload_bytes);
    return true;
}

void harness_drain(struct harness *harness)
{
    struct harness_segment segment;
    while (harness_take(harness, &segment)) {
    }
}

void harness_wait(struct harness *harness, uint64_t ns)
{
    harness->now_ns += ns;
    (void)stack_poll(harness->stack, harness->now_ns);
    (void)stack_poll(harness->stack, harness->now_ns);
}

static void arp_answer(struct harness *harness)
{
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    ether_header_write(frame, harness->stack->info->mac, remote_mac, ETHER_TYPE_ARP);
    uint8_t *arp = frame + ETHER_HEADER_BYTES;
    store_be16(arp, 1);
    store_be16(arp + 2, ETHER_TYPE_IP4);
    arp[4] = MAC_BYTES;
    arp[5] = 4;
    store_be16(arp + 6, ARP_OP_REPLY);
    memcpy(arp + 8, remote_mac, MAC_BYTES);
    store_be32(arp + 14, HARNESS_REMOTE_IP4);
    memcpy(arp + 18, harness->stack->info->mac, MAC_BYTES);
    store_be32(arp + 24, HARNESS_LOCAL_IP4);
    harness_frame(harness, frame, sizeof(frame));
}

void harness_open(struct harness *harness)
{
    struct harness_segment syn;
    harness_start(harness);
    assert_int_equal(0, stack_connect(harness->stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT,
                                      harness->now_ns, &harness->stream));
    harness->connection = (struct tcp_connection *)(void *)harness->stream;
    harness_wait(harness, 0);
    arp_answer(harness);
    assert_true(harness_take(harness, &syn));
    assert_int_equal(TCP_SYN, syn.flags);
    harness->iss = syn.seq;
    harness->now_ns += HARNESS_MS;
    struct harness_segment answer = {
        .seq = HARNESS_ISN,
        .ack = syn.seq + 1,
        .flags = TCP_SYN | TCP_ACK,
        .window = harness->window,
        .options = {.has_mss = harness->mss_bytes > 0,
                    .mss_bytes = harness->mss_bytes,
                    .has_scale = harness->scale >= 0,
                    .scale = (uint8_t)(harness->scale >= 0 ? harness->scale : 0),
                    .has_sack_permitted = harness->sack,
                    .has_timestamp = harness->timestamps,
                    .timestamp = harness->timestamp,
                    .timestamp_echo = harness->timestamp_echo},
    };
    harness_segment(harness, &answer);
    assert_int_equal(STREAM_OPEN, harness->stream->state);
    harness_wait(harness, 0);
    harness_drain(harness);
}
