/* SPDX-License-Identifier: Apache-2.0 */
/* What is in flight, segment by segment: when it was last sent, and whether it was selectively
 * acknowledged or counts as lost. Loss is found by time (RACK, RFC 8985): a segment is lost when
 * one sent later has arrived and a reordering window has passed.
 *
 * Invariants: (1) segments cover [snd_una, snd_nxt) without gap or overlap; (2) a segment is never
 * both SACKED and LOST; (3) sacked_bytes and lost_bytes are the sums over those flags;
 * (4) at most segment_count_max segments (CVE-2019-11478), none shorter than it was sent, so a
 * peer cannot make them split (CVE-2019-11477). */
#pragma once

#include "base.h"
#include "nic/tcp_options.h"

enum tcp_segment_flag {
    TCP_SEGMENT_SACKED = 1 << 0,
    TCP_SEGMENT_LOST = 1 << 1,          /* and not sent again since */
    TCP_SEGMENT_RETRANSMITTED = 1 << 2, /* at least once */
    TCP_SEGMENT_FIN = 1 << 3,           /* its last sequence number is the FIN */
};

struct tcp_segment {
    uint32_t seq;
    uint32_t end;
    uint64_t sent_ns;
    uint32_t flags;
};

struct tcp_scoreboard {
    struct tcp_segment *segments; /* a ring, the oldest at head */
    uint32_t mask;
    uint32_t head; /* free running */
    uint32_t tail;
    uint32_t lost_hint; /* no lost segment before this index */
    uint32_t sacked_bytes;
    uint32_t lost_bytes;
    uint32_t retransmitted_count;
    uint32_t highest_sacked; /* end of the highest, valid while sacked_bytes > 0 */

    /* RACK: of the segment sent last among those that arrived. */
    uint64_t rack_sent_ns;
    uint32_t rack_end;
    uint64_t rack_rtt_ns;
    bool reordering_seen;
    uint32_t reordering_factor; /* quarters of the least RTT */
};

/* What one acknowledgment told. */
struct tcp_ack_report {
    uint32_t acked_bytes;     /* cumulative */
    uint32_t delivered_bytes; /* acked or sacked now, and not before */
    uint64_t rtt_sample_ns;   /* of a segment sent once; 0 for none */
    uint32_t invalid_blocks;
    bool duplicate_sack; /* a block told of bytes that arrived twice (RFC 2883) */
    bool retransmitted;  /* a segment sent more than once was among the acknowledged */
};

/* Uses a ring of a power of two segments that the caller owns.
 * threads  owning lane only */
void tcp_scoreboard_init(struct tcp_scoreboard *board, struct tcp_segment *segments,
                         uint32_t count);

/* Tells whether another segment fits.
 * threads  owning lane only */
bool tcp_scoreboard_has_room(const struct tcp_scoreboard *board);

/* Notes a segment sent for the first time; it starts where the last one ended. */
void tcp_scoreboard_push(struct tcp_scoreboard *board, const struct tcp_segment *segment);

/* Takes a cumulative acknowledgment: segments before ack are gone, one may be cut.
 * report   acked_bytes, delivered_bytes, rtt_sample_ns and retransmitted are added to
 * threads  owning lane only */
void tcp_scoreboard_ack(struct tcp_scoreboard *board, uint32_t ack, uint64_t now_ns,
                        uint64_t min_rtt_ns, struct tcp_ack_report *report);

/* Takes the SACK blocks of one segment; those outside the flight are counted and ignored.
 * ack      the cumulative acknowledgment beside them
 * source   RFC 2018, RFC 2883 §4, RFC 6675 */
void tcp_scoreboard_sack(struct tcp_scoreboard *board, const struct tcp_options *options,
                         uint32_t ack, uint64_t now_ns, uint64_t min_rtt_ns,
                         struct tcp_ack_report *report);

/* Marks segments lost by RACK.
 * recovering whether a recovery is under way: then no reordering is waited for at first
 * timeout_ns when the next one may become lost; 0 for never
 * returns    bytes marked
 * source     RFC 8985 §6.2 */
uint32_t tcp_scoreboard_detect(struct tcp_scoreboard *board, uint64_t now_ns, uint64_t min_rtt_ns,
                               uint64_t srtt_ns, bool recovering, uint64_t *timeout_ns);

/* Marks the oldest segment lost (three duplicate ACKs without SACK, partial ACK).
 * returns  bytes marked */
uint32_t tcp_scoreboard_lose_head(struct tcp_scoreboard *board);

/* Marks everything that is not selectively acknowledged lost, after a timeout. When the oldest
 * segment is selectively acknowledged the peer has dropped it again: then everything is lost.
 * returns  whether the peer reneged */
bool tcp_scoreboard_lose_all(struct tcp_scoreboard *board);

/* Takes back all that lose_all marked and that was not sent again: the timeout was not needed. */
void tcp_scoreboard_forgive(struct tcp_scoreboard *board);

/* Finds the next segment to send again.
 * returns  NULL for none; borrowed until the next call that changes the board */
struct tcp_segment *tcp_scoreboard_next_lost(struct tcp_scoreboard *board);

/* Notes that a segment goes out again. */
void tcp_scoreboard_resent(struct tcp_scoreboard *board, struct tcp_segment *segment,
                           uint64_t now_ns);

/* The newest segment in flight.
 * returns  NULL when nothing is in flight */
struct tcp_segment *tcp_scoreboard_last(struct tcp_scoreboard *board);

/* Tells whether nothing is in flight. */
static inline bool tcp_scoreboard_is_empty(const struct tcp_scoreboard *board)
{
    return board->head == board->tail;
}
