/* SPDX-License-Identifier: Apache-2.0 */
/* The reference peer. Offsets count stream bytes from 0; a sequence number is ISN + 1 + offset. */
#include "tests/sim/peer.h"

#include <stdlib.h>

#define MS            UINT64_C(1000000)
#define PEER_IP4      UINT32_C(0xc6120001) /* 198.18.0.1 */
#define STACK_IP4     UINT32_C(0xc6120002) /* 198.18.0.2 */
#define RTO_NS        (250 * MS)
#define DELAYED_NS    (40 * MS)
#define FLAG_FIN      1
#define FLAG_SYN      2
#define FLAG_RST      4
#define FLAG_PSH      8
#define FLAG_ACK      16
#define IN_FLIGHT_MAX 32

static const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x01};

struct peer_segment {
    uint32_t seq;
    uint32_t ack;
    uint8_t flags;
    uint32_t window;
    const uint8_t *payload;
    uint32_t payload_bytes;
    uint32_t option_bytes;
    bool has_mss, has_scale, has_sack, has_timestamp;
    uint16_t mss;
    uint8_t scale;
    uint32_t timestamp;
};

static void complain(struct peer *peer, const char *text)
{
    if (peer->complaint == NULL) {
        peer->complaint = text;
    }
}

/* The sum as RFC 1071 prints it: word by word, carries at the end. */
static uint16_t plain_sum(uint32_t sum, const uint8_t *data, uint32_t bytes)
{
    for (uint32_t i = 0; i + 1 < bytes; i += 2) {
        sum += (uint32_t)data[i] << 8 | data[i + 1];
    }
    if (bytes % 2 != 0) {
        sum += (uint32_t)data[bytes - 1] << 8;
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

static uint32_t pseudo_sum(uint32_t from, uint32_t to, uint32_t bytes)
{
    return (from >> 16) + (from & 0xffff) + (to >> 16) + (to & 0xffff) + 6 + bytes;
}

void peer_init(struct peer *peer, struct wire *wire)
{
    memset(peer, 0, sizeof(*peer));
    peer->wire = wire;
    peer->map = malloc(PEER_STREAM_BYTES_MAX + 1);
    ASSERT(peer->map != NULL);
}

void peer_fini(struct peer *peer)
{
    free(peer->map);
}

void peer_reset(struct peer *peer, const struct peer_config *config, uint64_t now_ns)
{
    struct peer fresh = {
        .config = *config,
        .wire = peer->wire,
        .map = peer->map,
        .random = {config->seed ^ 0x5eed},
        .now_ns = now_ns,
        .port = 9092,
        .timer_ns = UINT64_MAX,
        .ack_ns = UINT64_MAX,
        .next_read_ns = now_ns,
    };
    ASSERT(config->receive_bytes <= PEER_STREAM_BYTES_MAX);
    ASSERT(config->send_bytes <= PEER_STREAM_BYTES_MAX);
    *peer = fresh;
    memset(peer->map, 0, config->receive_bytes + 1);
}

/* ---- Sending -------------------------------------------------------------------------------- */

static void frame_send(struct peer *peer, uint8_t *frame, uint32_t tcp_bytes)
{
    uint8_t *ip = frame + 14, *tcp = frame + 34;
    memset(frame, 0, 34);
    frame[0] = 0x02;
    frame[5] = 0x02;
    memcpy(frame + 6, peer_mac, 6);
    store_be16(frame + 12, 0x0800);
    ip[0] = 0x45;
    store_be16(ip + 2, (uint16_t)(20 + tcp_bytes));
    ip[8] = 64;
    ip[9] = 6;
    store_be32(ip + 12, PEER_IP4);
    store_be32(ip + 16, STACK_IP4);
    store_be16(ip + 10, plain_sum(0, ip, 20));
    store_be16(tcp + 16, 0);
    store_be16(tcp + 16, plain_sum(pseudo_sum(PEER_IP4, STACK_IP4, tcp_bytes), tcp, tcp_bytes));
    uint32_t bytes = 34 + tcp_bytes;
    /* Short frames are padded with garbage, as some devices do. */
    while (bytes < 60) {
        frame[bytes++] = 0xa5;
    }
    wire_send(peer->wire, WIRE_PEER, (struct span){frame, bytes}, peer->now_ns);
}

static uint32_t window_bytes(const struct peer *peer)
{
    uint64_t used = peer->received - peer->read;
    uint64_t room = used < peer->config.buffer_bytes ? peer->config.buffer_bytes - used : 0;
    uint64_t most = (uint64_t)UINT16_MAX << peer->receive_scale;
    room = room < most ? room : most;
    return (uint32_t)(room >> peer->receive_scale << peer->receive_scale);
}

static uint32_t receive_next(const struct peer *peer)
{
    return peer->irs + 1 + (uint32_t)peer->received + (peer->fin_received ? 1 : 0);
}

/* Up to two blocks, found by looking. */
static uint32_t sack_write(const struct peer *peer, uint8_t *area)
{
    uint32_t blocks = 0;
    uint64_t at = peer->received;
    uint64_t end = peer->config.receive_bytes;
    while (peer->use_sack && blocks < 2) {
        while (at < end && peer->map[at] == 0) {
            at++;
        }
        uint64_t start = at;
        while (at < end && peer->map[at] != 0) {
            at++;
        }
        if (start == at) {
            break;
        }
        store_be32(area + 4 + 8 * blocks, peer->irs + 1 + (uint32_t)start);
        store_be32(area + 8 + 8 * blocks, peer->irs + 1 + (uint32_t)at);
        blocks++;
    }
    if (blocks == 0) {
        return 0;
    }
    area[0] = area[1] = 1;
    area[2] = 5;
    area[3] = (uint8_t)(2 + 8 * blocks);
    return 4 + 8 * blocks;
}

static uint32_t syn_options_write(const struct peer *peer, uint8_t *area)
{
    uint32_t at = 0;
    if (peer->config.mss_bytes != 0) {
        area[at] = 2;
        area[at + 1] = 4;
        store_be16(area + at + 2, peer->config.mss_bytes);
        at += 4;
    }
    if (peer->config.scale >= 0) {
        area[at] = 1;
        area[at + 1] = 3;
        area[at + 2] = 3;
        area[at + 3] = (uint8_t)peer->config.scale;
        at += 4;
    }
    if (peer->config.sack) {
        area[at] = area[at + 1] = 1;
        area[at + 2] = 4;
        area[at + 3] = 2;
        at += 4;
    }
    return at;
}

struct peer_send {
    uint32_t seq;
    uint8_t flags;
    uint64_t offset;
    uint32_t bytes;
};

static void segment_send(struct peer *peer, const struct peer_send *send)
{
    uint8_t frame[WIRE_FRAME_BYTES];
    uint8_t *tcp = frame + 34;
    uint32_t at = 20;
    bool syn = (send->flags & FLAG_SYN) != 0;
    uint32_t window = window_bytes(peer);
    memset(tcp, 0, 60);
    if (syn) {
        at += syn_options_write(peer, tcp + at);
    }
    if ((syn ? peer->config.timestamps : peer->use_timestamps) && (send->flags & FLAG_RST) == 0) {
        tcp[at] = tcp[at + 1] = 1;
        tcp[at + 2] = 8;
        tcp[at + 3] = 10;
        store_be32(tcp + at + 4, (uint32_t)(peer->now_ns / MS));
        store_be32(tcp + at + 8, peer->timestamp_recent);
        at += 12;
    }
    if (!syn && send->bytes == 0) {
        at += sack_write(peer, tcp + at);
    }
    store_be16(tcp, peer->port);
    store_be16(tcp + 2, peer->stack_port);
    store_be32(tcp + 4, send->seq);
    store_be32(tcp + 8, (send->flags & FLAG_ACK) != 0 ? receive_next(peer) : 0);
    tcp[12] = (uint8_t)(at / 4 << 4);
    tcp[13] = send->flags;
    uint32_t field =
        syn ? (window < UINT16_MAX ? window : UINT16_MAX) : window >> peer->receive_scale;
    store_be16(tcp + 14, (uint16_t)field);
    uint64_t edge = peer->received + (syn ? field : (uint64_t)field << peer->receive_scale);
    peer->edge_promised = edge > peer->edge_promised ? edge : peer->edge_promised;
    for (uint32_t i = 0; i < send->bytes; i++) {
        tcp[at + i] = peer_pattern(peer->config.seed, send->offset + i);
    }
    if ((send->flags & FLAG_ACK) != 0) {
        peer->unacked_count = 0;
        peer->ack_ns = UINT64_MAX;
    }
    frame_send(peer, frame, at + send->bytes);
}

static uint32_t send_next(const struct peer *peer)
{
    return peer->config.isn + 1 + (uint32_t)peer->sent + (peer->fin_sent ? 1 : 0);
}

static void ack_send(struct peer *peer)
{
    struct peer_send send = {.seq = send_next(peer), .flags = FLAG_ACK};
    segment_send(peer, &send);
}

/* A stranger's forgeries: none of them may change anything. */
static void attack_send(struct peer *peer)
{
    struct peer_send send = {.seq = send_next(peer), .flags = FLAG_RST};
    uint32_t saved = peer->timestamp_recent;
    switch (wire_random_below(&peer->random, 5)) {
    case 0: /* a reset in the window, but not at the next byte */
        send.seq = peer->config.isn + 1 + (uint32_t)peer->config.send_bytes + 100 +
                   (uint32_t)wire_random_below(&peer->random, 20000);
        break;
    case 1: /* a SYN in the window */
        send.flags = FLAG_SYN;
        break;
    case 2: /* an acknowledgment of bytes that were never sent */
        send.flags = FLAG_ACK;
        send.seq += (uint32_t)1 << 30;
        break;
    case 3: /* a reset far outside */
        send.seq += UINT32_C(0x80000000);
        break;
    default: /* an old duplicate */
        send.flags = FLAG_ACK;
        send.seq = peer->config.isn;
        break;
    }
    bool is_syn = send.flags == FLAG_SYN;
    uint64_t edge = peer->edge_promised;
    uint64_t ack_ns = peer->ack_ns;
    uint32_t unacked = peer->unacked_count;
    if (!is_syn || peer->state == PEER_OPEN) {
        segment_send(peer, &send);
    }
    peer->timestamp_recent = saved;
    peer->edge_promised = edge;
    peer->ack_ns = ack_ns;
    peer->unacked_count = unacked;
}

static void timer_start(struct peer *peer)
{
    uint32_t shift = peer->backoff < 5 ? peer->backoff : 5;
    peer->timer_ns = peer->now_ns + (RTO_NS << shift);
}

static bool may_close(const struct peer *peer)
{
    return peer->sent == peer->config.send_bytes && !peer->fin_sent &&
           (peer->config.fin_early || peer->config.closes_first || peer->fin_received) &&
           (peer->config.fin_early || peer->received == peer->config.receive_bytes);
}

static void data_send(struct peer *peer)
{
    while (peer->sent < peer->config.send_bytes && peer->sent < peer->send_edge &&
           peer->sent - peer->acked < (uint64_t)IN_FLIGHT_MAX * peer->mss_bytes) {
        uint64_t left = peer->config.send_bytes - peer->sent;
        uint64_t room = peer->send_edge - peer->sent;
        uint64_t bytes = left < room ? left : room;
        /* Pieces of every size. */
        uint64_t piece = wire_random_below(&peer->random, 4) == 0
                             ? 1 + wire_random_below(&peer->random, peer->mss_bytes)
                             : peer->mss_bytes;
        bytes = bytes < piece ? bytes : piece;
        struct peer_send send = {
            .seq = peer->config.isn + 1 + (uint32_t)peer->sent,
            .flags = FLAG_ACK | FLAG_PSH,
            .offset = peer->sent,
            .bytes = (uint32_t)bytes,
        };
        segment_send(peer, &send);
        peer->sent += bytes;
        if (peer->timer_ns == UINT64_MAX) {
            timer_start(peer);
        }
    }
    if (may_close(peer)) {
        struct peer_send send = {.seq = send_next(peer), .flags = FLAG_ACK | FLAG_FIN};
        segment_send(peer, &send);
        peer->fin_sent = true;
        timer_start(peer);
    }
    if (peer->sent < peer->config.send_bytes && peer->timer_ns == UINT64_MAX) {
        timer_start(peer); /* the window is shut: probe */
    }
}

static void rewind_send(struct peer *peer)
{
    peer->sent = peer->acked;
    peer->fin_sent = false;
    peer->duplicate_acks = 0;
    if (peer->sent < peer->config.send_bytes && peer->send_edge <= peer->sent) {
        /* One byte beyond the window, as the standard's probe is. */
        struct peer_send send = {
            .seq = peer->config.isn + 1 + (uint32_t)peer->sent,
            .flags = FLAG_ACK,
            .offset = peer->sent,
            .bytes = 1,
        };
        segment_send(peer, &send);
    } else {
        data_send(peer);
    }
}

static void syn_answer(struct peer *peer)
{
    struct peer_send send = {.seq = peer->config.isn, .flags = FLAG_SYN};
    if (peer->state != PEER_SYN_SENT) {
        send.flags |= FLAG_ACK;
    }
    segment_send(peer, &send);
    timer_start(peer);
}

/* ---- Receiving ------------------------------------------------------------------------------ */

static void option_read(struct peer_segment *segment, const uint8_t *option)
{
    switch (option[0]) {
    case 2:
        segment->has_mss = true;
        segment->mss = load_be16(option + 2);
        break;
    case 3:
        segment->has_scale = true;
        segment->scale = option[2];
        break;
    case 4:
        segment->has_sack = true;
        break;
    case 8:
        segment->has_timestamp = true;
        segment->timestamp = load_be32(option + 2);
        break;
    default:
        break;
    }
}

/* The stack's own output is believed in form once its checksums hold. */
static bool segment_read(const uint8_t *frame, uint32_t bytes, struct peer_segment *segment)
{
    const uint8_t *ip = frame + 14, *tcp = frame + 34;
    uint32_t total = bytes >= 54 ? load_be16(ip + 2) : 0;
    memset(segment, 0, sizeof(*segment));
    if (total < 40 || total > bytes - 14 || ip[0] != 0x45 || ip[9] != 6 ||
        plain_sum(0, ip, 20) != 0 ||
        plain_sum(pseudo_sum(STACK_IP4, PEER_IP4, total - 20), tcp, total - 20) != 0) {
        return false;
    }
    uint32_t header = (uint32_t)(tcp[12] >> 4) * 4;
    segment->seq = load_be32(tcp + 4);
    segment->ack = load_be32(tcp + 8);
    segment->flags = tcp[13];
    segment->window = load_be16(tcp + 14);
    segment->payload = tcp + header;
    segment->payload_bytes = total - 20 - header;
    segment->option_bytes = header - 20;
    for (uint32_t at = 20; at < header && tcp[at] != 0;) {
        if (tcp[at] == 1) {
            at++;
            continue;
        }
        option_read(segment, tcp + at);
        at += tcp[at + 1];
    }
    return true;
}

static void listen_input(struct peer *peer, const struct peer_segment *segment)
{
    if ((segment->flags & FLAG_SYN) == 0 || (segment->flags & FLAG_RST) != 0) {
        return;
    }
    peer->irs = segment->seq;
    if (peer->config.refuses) {
        struct peer_send send = {.seq = 0, .flags = FLAG_RST | FLAG_ACK};
        segment_send(peer, &send);
        return;
    }
    peer->use_timestamps = segment->has_timestamp && peer->config.timestamps;
    peer->use_sack = segment->has_sack && peer->config.sack;
    bool scales = segment->has_scale && peer->config.scale >= 0;
    peer->send_scale = scales ? segment->scale : 0;
    peer->receive_scale = scales ? (uint8_t)peer->config.scale : 0;
    peer->mss_bytes = segment->has_mss ? segment->mss : 536;
    peer->mss_bytes -= peer->use_timestamps ? 12 : 0;
    peer->timestamp_recent = segment->timestamp;
    peer->send_edge = segment->window;
    peer->state = peer->config.opens_too ? PEER_SYN_SENT : PEER_SYN_RECEIVED;
    syn_answer(peer);
}

static void ack_input(struct peer *peer, const struct peer_segment *segment)
{
    uint64_t before = peer->acked;
    uint64_t old_edge = peer->send_edge;
    int32_t ahead = (int32_t)(segment->ack - (peer->config.isn + 1 + (uint32_t)peer->acked));
    uint64_t end = peer->config.send_bytes + 1;
    if (ahead < 0) {
        return;
    }
    if (peer->acked + (uint32_t)ahead > end) {
        complain(peer, "acknowledged bytes that were never sent");
        return;
    }
    uint64_t acked = peer->acked + (uint32_t)ahead;
    if (acked == end) {
        peer->fin_acked = true;
        peer->fin_sent = true;
        acked--;
    }
    peer->acked = acked;
    peer->sent = peer->sent < acked ? acked : peer->sent;
    uint64_t edge = acked + ((uint64_t)segment->window << peer->send_scale);
    peer->send_edge = edge > peer->send_edge ? edge : peer->send_edge;
    if (acked > before || peer->fin_acked) {
        peer->backoff = 0;
        peer->duplicate_acks = 0;
        bool all = peer->acked == peer->sent && (!peer->fin_sent || peer->fin_acked);
        peer->timer_ns = UINT64_MAX;
        if (!all) {
            timer_start(peer);
        }
    } else if (peer->sent > peer->acked && segment->payload_bytes == 0 && edge == old_edge &&
               ++peer->duplicate_acks == 3) {
        rewind_send(peer);
    }
}

static void payload_check(struct peer *peer, const struct peer_segment *segment, int64_t offset)
{
    uint64_t seed = peer->config.seed ^ 1;
    for (uint32_t i = 0; i < segment->payload_bytes; i++) {
        if (offset + i >= 0 && segment->payload[i] != peer_pattern(seed, (uint64_t)(offset + i))) {
            complain(peer, "sent a wrong byte");
            return;
        }
    }
    uint64_t end = (uint64_t)(offset + segment->payload_bytes);
    if (segment->payload_bytes > 0 && end > peer->edge_promised) {
        complain(peer, "sent beyond the window");
    }
    uint32_t mss = peer->config.mss_bytes == 0 ? 536 : peer->config.mss_bytes;
    if (mss >= 88 && segment->payload_bytes + segment->option_bytes > mss) {
        complain(peer, "sent a segment above the agreed size");
    }
}

static void payload_input(struct peer *peer, const struct peer_segment *segment)
{
    int64_t offset = (int64_t)peer->received +
                     (int32_t)(segment->seq - (peer->irs + 1 + (uint32_t)peer->received));
    uint64_t limit = peer->read + peer->config.buffer_bytes;
    uint64_t before = peer->received;
    payload_check(peer, segment, offset);
    for (uint32_t i = 0; i < segment->payload_bytes && peer->complaint == NULL; i++) {
        int64_t at = offset + i;
        if (at >= (int64_t)peer->received && (uint64_t)at < limit) {
            if ((uint64_t)at >= peer->config.receive_bytes) {
                complain(peer, "sent more bytes than its application wrote");
                return;
            }
            peer->map[at] = 1;
        }
    }
    while (peer->received < peer->config.receive_bytes && peer->map[peer->received] != 0) {
        peer->received++;
    }
    bool fin = (segment->flags & FLAG_FIN) != 0;
    if (fin && (uint64_t)(offset + segment->payload_bytes) != peer->config.receive_bytes) {
        complain(peer, "sent its FIN at the wrong place");
    }
    peer->fin_known = peer->fin_known || fin;
    if (peer->fin_known && peer->received == peer->config.receive_bytes) {
        peer->fin_received = true;
    }
    bool in_order = peer->received - before == segment->payload_bytes && !fin;
    peer->unacked_count++;
    if (peer->config.delays_acks && in_order && peer->unacked_count < 2) {
        peer->ack_ns = peer->now_ns + DELAYED_NS;
    } else {
        ack_send(peer);
    }
}

static void misfortunes(struct peer *peer)
{
    if (peer->received >= peer->config.silent_at) {
        peer->state = PEER_SILENT;
        peer->timer_ns = peer->ack_ns = UINT64_MAX;
    } else if (peer->received >= peer->config.forget_at) {
        peer->state = PEER_FORGOT;
        peer->timer_ns = peer->ack_ns = UINT64_MAX;
    } else if (peer->received >= peer->config.reset_at) {
        struct peer_send send = {.seq = send_next(peer), .flags = FLAG_RST | FLAG_ACK};
        segment_send(peer, &send);
        peer->state = PEER_FORGOT;
        peer->timer_ns = peer->ack_ns = UINT64_MAX;
    }
}

static void open_input(struct peer *peer, const struct peer_segment *segment)
{
    if ((segment->flags & FLAG_RST) != 0) {
        peer->stack_resets++;
        peer->state = PEER_RESET;
        peer->timer_ns = peer->ack_ns = UINT64_MAX;
        return;
    }
    if ((segment->flags & FLAG_SYN) != 0) {
        ack_send(peer);
        return;
    }
    if (peer->use_timestamps && !segment->has_timestamp) {
        complain(peer, "left the timestamp out");
    }
    if (segment->has_timestamp) {
        peer->timestamp_recent = segment->timestamp;
    }
    ack_input(peer, segment);
    if (segment->payload_bytes > 0 || (segment->flags & FLAG_FIN) != 0) {
        payload_input(peer, segment);
    } else if (segment->seq != receive_next(peer) &&
               (int32_t)(segment->seq - receive_next(peer)) < 0) {
        ack_send(peer); /* a probe of window or life, or just old */
    }
    if (peer->fin_acked && peer->fin_received && peer->state == PEER_OPEN) {
        peer->state = PEER_DONE;
        peer->timer_ns = UINT64_MAX;
    }
    misfortunes(peer);
}

static void handshake_input(struct peer *peer, const struct peer_segment *segment)
{
    bool acked = (segment->flags & FLAG_ACK) != 0 && segment->ack == peer->config.isn + 1;
    if ((segment->flags & FLAG_RST) != 0) {
        peer->state = PEER_LISTEN;
        peer->timer_ns = UINT64_MAX;
        return;
    }
    if ((segment->flags & FLAG_SYN) != 0 && !acked) {
        syn_answer(peer);
        return;
    }
    if (!acked) {
        return;
    }
    bool is_syn = (segment->flags & FLAG_SYN) != 0;
    peer->state = PEER_OPEN;
    peer->timer_ns = UINT64_MAX;
    peer->backoff = 0;
    peer->send_edge = (uint64_t)segment->window << (is_syn ? 0 : peer->send_scale);
    if (is_syn) {
        ack_send(peer);
    } else {
        open_input(peer, segment);
    }
}

/* Without memory of the connection: the half-open peer's answer. */
static void forgot_input(struct peer *peer, const struct peer_segment *segment)
{
    if ((segment->flags & FLAG_RST) != 0 || (segment->flags & FLAG_ACK) == 0) {
        return;
    }
    struct peer_send send = {.seq = segment->ack, .flags = FLAG_RST};
    segment_send(peer, &send);
}

static void arp_input(struct peer *peer, const uint8_t *frame, uint32_t bytes)
{
    if (bytes < 42 || load_be16(frame + 20) != 1 || load_be32(frame + 38) != PEER_IP4) {
        return;
    }
    uint8_t reply[60];
    memset(reply, 0, sizeof(reply));
    memcpy(reply, frame + 6, 6);
    memcpy(reply + 6, peer_mac, 6);
    memcpy(reply + 12, frame + 12, 8);
    store_be16(reply + 20, 2);
    memcpy(reply + 22, peer_mac, 6);
    store_be32(reply + 28, PEER_IP4);
    memcpy(reply + 32, frame + 22, 10);
    wire_send(peer->wire, WIRE_PEER, (struct span){reply, sizeof(reply)}, peer->now_ns);
}

static void frame_input(struct peer *peer, const uint8_t *frame, uint32_t bytes)
{
    struct peer_segment segment;
    peer->frames_in++;
    if (bytes >= 14 && load_be16(frame + 12) == 0x0806) {
        if (peer->state != PEER_SILENT) {
            arp_input(peer, frame, bytes);
        }
        return;
    }
    if (bytes < 14 || memcmp(frame, peer_mac, 6) != 0 || load_be16(frame + 12) != 0x0800 ||
        !segment_read(frame, bytes, &segment)) {
        return;
    }
    peer->stack_port = load_be16(frame + 34);
    switch (peer->state) {
    case PEER_LISTEN:
        listen_input(peer, &segment);
        break;
    case PEER_SYN_RECEIVED:
    case PEER_SYN_SENT:
        handshake_input(peer, &segment);
        break;
    case PEER_OPEN:
    case PEER_DONE:
        open_input(peer, &segment);
        break;
    case PEER_FORGOT:
        forgot_input(peer, &segment);
        break;
    case PEER_RESET:
    case PEER_SILENT:
        break;
    }
    bool alive = peer->state == PEER_OPEN;
    if (alive && wire_random_below(&peer->random, WIRE_PER_MILLION) < peer->config.attack_ppm) {
        attack_send(peer);
    }
}

static void application_read(struct peer *peer)
{
    if (peer->now_ns < peer->next_read_ns || peer->read == peer->received) {
        return;
    }
    uint32_t before = window_bytes(peer);
    uint64_t bytes = 1 + wire_random_below(&peer->random, peer->config.read_bytes);
    uint64_t waiting = peer->received - peer->read;
    peer->read += bytes < waiting ? bytes : waiting;
    peer->next_read_ns =
        peer->now_ns + wire_random_below(&peer->random, peer->config.read_pause_ns);
    uint32_t after = window_bytes(peer);
    if (before < peer->config.buffer_bytes / 4 && after >= peer->config.buffer_bytes / 4) {
        ack_send(peer);
    }
}

static void timers_run(struct peer *peer)
{
    if (peer->ack_ns <= peer->now_ns) {
        ack_send(peer);
    }
    if (peer->timer_ns > peer->now_ns) {
        return;
    }
    peer->timer_ns = UINT64_MAX;
    peer->backoff++;
    if (peer->state == PEER_OPEN) {
        timer_start(peer);
        rewind_send(peer);
    } else if (peer->state == PEER_SYN_RECEIVED || peer->state == PEER_SYN_SENT) {
        syn_answer(peer);
    }
}

void peer_poll(struct peer *peer, uint64_t now_ns)
{
    uint8_t frame[WIRE_FRAME_BYTES];
    peer->now_ns = now_ns;
    for (uint32_t bytes = wire_receive(peer->wire, WIRE_PEER, now_ns, frame); bytes > 0;
         bytes = wire_receive(peer->wire, WIRE_PEER, now_ns, frame)) {
        frame_input(peer, frame, bytes);
    }
    if (peer->state == PEER_OPEN) {
        application_read(peer);
        data_send(peer);
    }
    timers_run(peer);
}

uint64_t peer_next_ns(const struct peer *peer)
{
    uint64_t next = peer->timer_ns < peer->ack_ns ? peer->timer_ns : peer->ack_ns;
    if (peer->state == PEER_OPEN && peer->read < peer->received && peer->next_read_ns < next) {
        next = peer->next_read_ns;
    }
    return next;
}
