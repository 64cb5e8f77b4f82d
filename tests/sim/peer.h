/* SPDX-License-Identifier: Apache-2.0 */
/* A passive TCP peer for the simulator, written apart from the stack under test: its own parsing,
 * its own checksum, whole streams in memory, a map of bytes received, and go-back-N sending. It is
 * simple so that it is easy to believe, and strict: it checks every byte and every promise
 * (window edge, segment size) of what it receives.
 *
 * Both directions carry a fixed pattern: the byte at an offset is peer_pattern(seed, offset). */
#pragma once

#include "base.h"
#include "tests/sim/wire.h"

#define PEER_STREAM_BYTES_MAX (512 * 1024)

struct peer_config {
    uint64_t seed;
    uint32_t isn;
    uint16_t mss_bytes; /* 0: no such option */
    int scale;          /* -1: no such option */
    bool timestamps;
    bool sack;
    bool delays_acks;
    bool refuses;      /* answers a SYN by RST */
    bool opens_too;    /* answers a SYN by a SYN of its own (simultaneous open) */
    bool closes_first; /* sends its FIN without waiting for the other's */
    bool fin_early;    /* closes at once after its last byte, whatever arrives */
    uint32_t buffer_bytes;
    uint64_t send_bytes;
    uint64_t receive_bytes; /* what the stack will send in all */
    uint64_t silent_at;     /* bytes received, after which it never says a word; UINT64_MAX */
    uint64_t reset_at;      /* bytes received, after which it resets; UINT64_MAX */
    uint64_t forget_at;     /* bytes received, after which it restarts without memory */
    uint64_t read_pause_ns; /* time between reads of its application */
    uint32_t read_bytes;    /* most bytes of one read */
    uint32_t attack_ppm;    /* for each frame sent, a forged one follows with this chance */
};

enum peer_state {
    PEER_LISTEN = 0,
    PEER_SYN_RECEIVED,
    PEER_SYN_SENT, /* simultaneous open */
    PEER_OPEN,
    PEER_DONE, /* both FINs acknowledged */
    PEER_RESET,
    PEER_SILENT,
    PEER_FORGOT,
};

struct peer {
    struct peer_config config;
    struct wire *wire;
    struct wire_random random;
    uint64_t now_ns;
    enum peer_state state;
    const char *complaint; /* what the stack did wrong; NULL so far */

    uint16_t port;
    uint16_t stack_port;
    uint32_t irs;
    bool use_timestamps;
    bool use_sack;
    uint8_t send_scale;
    uint8_t receive_scale;
    uint32_t timestamp_recent;
    uint32_t mss_bytes; /* what it may send */

    uint64_t sent; /* offsets: next to send, oldest unacknowledged */
    uint64_t acked;
    uint64_t send_edge;
    bool fin_sent;
    bool fin_acked;
    uint32_t duplicate_acks;
    uint64_t timer_ns;
    uint32_t backoff;

    uint8_t *map; /* one byte an offset: received or not */
    uint64_t received;
    uint64_t read;
    uint64_t next_read_ns;
    uint64_t edge_promised;
    bool fin_received;
    bool fin_known;
    uint32_t unacked_count;
    uint64_t ack_ns;
    uint64_t frames_in;
    uint64_t stack_resets;
};

/* The byte that every stream of a run carries at an offset. */
static inline uint8_t peer_pattern(uint64_t seed, uint64_t offset)
{
    uint64_t z = (offset + seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint8_t)(z >> 32);
}

/* Allocates the map. */
void peer_init(struct peer *peer, struct wire *wire);

/* Frees it. */
void peer_fini(struct peer *peer);

/* Starts a new run in LISTEN. */
void peer_reset(struct peer *peer, const struct peer_config *config, uint64_t now_ns);

/* Takes the frames that have arrived, reads, sends, runs its timers. */
void peer_poll(struct peer *peer, uint64_t now_ns);

/* When it wants to be polled next; UINT64_MAX for never. */
uint64_t peer_next_ns(const struct peer *peer);
