/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over the flight run only while something is selectively acknowledged, lost or sent again;
 * a clean transfer pops segments from the head and touches nothing else. */
#include "nic/tcp_scoreboard.h"

#include "nic/tcp_seq.h"

#define REORDERING_FACTOR_MAX 16
#define SACK_BLOCK_BYTES_MAX  (UINT32_C(1) << 30) /* no window is larger; empty blocks wrap */

static struct tcp_segment *segment_at(const struct tcp_scoreboard *board, uint32_t index)
{
    ASSERT(board != NULL);
    return &board->segments[index & board->mask];
}

void tcp_scoreboard_init(struct tcp_scoreboard *board, struct tcp_segment *segments, uint32_t count)
{
    ASSERT(board != NULL && segments != NULL);
    ASSERT(count > 0 && (count & (count - 1)) == 0);
    *board =
        (struct tcp_scoreboard){.segments = segments, .mask = count - 1, .reordering_factor = 1};
}

bool tcp_scoreboard_has_room(const struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    return board->tail - board->head <= board->mask;
}

static void board_check(const struct tcp_scoreboard *board)
{
#ifdef PENSTOCK_SLOW_ASSERTS
    uint32_t sacked = 0, lost = 0, resent = 0;
    for (uint32_t i = board->head; i != board->tail; i++) {
        const struct tcp_segment *segment = segment_at(board, i);
        uint32_t bytes = segment->end - segment->seq;
        bool is_sacked = (segment->flags & TCP_SEGMENT_SACKED) != 0;
        bool is_lost = (segment->flags & TCP_SEGMENT_LOST) != 0;
        ASSERT(!(is_sacked && is_lost));                                           /* (2) */
        ASSERT(i == board->head || segment_at(board, i - 1)->end == segment->seq); /* (1) */
        sacked += is_sacked ? bytes : 0;
        lost += is_lost ? bytes : 0;
        resent += (segment->flags & TCP_SEGMENT_RETRANSMITTED) != 0 ? 1 : 0;
    }
    ASSERT(sacked == board->sacked_bytes && lost == board->lost_bytes); /* (3) */
    ASSERT(resent == board->retransmitted_count);
#else
    (void)board;
#endif
}

void tcp_scoreboard_push(struct tcp_scoreboard *board, const struct tcp_segment *segment)
{
    ASSERT(tcp_scoreboard_has_room(board)); /* (4) */
    ASSERT(seq_lt(segment->seq, segment->end));
    ASSERT(tcp_scoreboard_is_empty(board) ||
           segment_at(board, board->tail - 1)->end == segment->seq);
    if (tcp_scoreboard_is_empty(board)) {
        board->lost_hint = board->tail;
    }
    *segment_at(board, board->tail++) = *segment;
}

/* RFC 8985 §6.2, steps 1 to 3, for one segment that has arrived. */
static void segment_delivered(struct tcp_scoreboard *board, const struct tcp_segment *segment,
                              uint64_t now_ns, uint64_t min_rtt_ns, struct tcp_ack_report *report)
{
    ASSERT(board != NULL);
    ASSERT(segment != NULL);
    bool again = (segment->flags & TCP_SEGMENT_RETRANSMITTED) != 0;
    uint64_t rtt_ns = now_ns - segment->sent_ns;
    report->delivered_bytes += segment->end - segment->seq;
    if (again) {
        report->retransmitted = true;
        /* Too fast to be the answer to the retransmission. */
        if (rtt_ns < min_rtt_ns) {
            return;
        }
    } else {
        report->rtt_sample_ns = rtt_ns == 0 ? 1 : rtt_ns;
        if (board->sacked_bytes > 0 && seq_lt(segment->end, board->highest_sacked)) {
            board->reordering_seen = true;
        }
    }
    bool newer = segment->sent_ns > board->rack_sent_ns ||
                 (segment->sent_ns == board->rack_sent_ns && seq_lt(board->rack_end, segment->end));
    if (newer) {
        board->rack_sent_ns = segment->sent_ns;
        board->rack_end = segment->end;
        board->rack_rtt_ns = rtt_ns;
    }
}

/* Takes bytes of a segment's front out of the sums; all of them when it goes. */
static void segment_forget(struct tcp_scoreboard *board, const struct tcp_segment *segment,
                           uint32_t bytes)
{
    if ((segment->flags & TCP_SEGMENT_SACKED) != 0) {
        ASSERT(board->sacked_bytes >= bytes);
        board->sacked_bytes -= bytes;
    }
    if ((segment->flags & TCP_SEGMENT_LOST) != 0) {
        ASSERT(board->lost_bytes >= bytes);
        board->lost_bytes -= bytes;
    }
}

void tcp_scoreboard_ack(struct tcp_scoreboard *board, uint32_t ack, uint64_t now_ns,
                        uint64_t min_rtt_ns, struct tcp_ack_report *report)
{
    ASSERT(board != NULL && report != NULL);
    while (board->head != board->tail) {
        struct tcp_segment *segment = segment_at(board, board->head);
        if (!seq_lt(segment->seq, ack)) {
            break;
        }
        if (seq_lt(ack, segment->end)) {
            uint32_t bytes = ack - segment->seq;
            segment_forget(board, segment, bytes);
            report->acked_bytes += bytes;
            report->delivered_bytes += (segment->flags & TCP_SEGMENT_SACKED) != 0 ? 0 : bytes;
            segment->seq = ack;
            break;
        }
        uint32_t bytes = segment->end - segment->seq;
        report->acked_bytes += bytes;
        segment_forget(board, segment, bytes);
        if ((segment->flags & TCP_SEGMENT_SACKED) == 0) {
            segment_delivered(board, segment, now_ns, min_rtt_ns, report);
        }
        if ((segment->flags & TCP_SEGMENT_RETRANSMITTED) != 0) {
            ASSERT(board->retransmitted_count > 0);
            board->retransmitted_count--;
        }
        board->head++;
    }
    if ((int32_t)(board->lost_hint - board->head) < 0) {
        board->lost_hint = board->head;
    }
    board_check(board);
}

/* The first segment that starts at or after seq. */
static uint32_t index_from(const struct tcp_scoreboard *board, uint32_t seq)
{
    ASSERT(board != NULL);
    uint32_t low = 0, high = board->tail - board->head;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (seq_lt(segment_at(board, board->head + middle)->seq, seq)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return board->head + low;
}

/* A segment counts only when the block covers all of it: a peer that cuts blocks finely gains
 * nothing. */
static void block_take(struct tcp_scoreboard *board, const struct tcp_sack_block *block,
                       uint64_t now_ns, uint64_t min_rtt_ns, struct tcp_ack_report *report)
{
    ASSERT(board != NULL);
    ASSERT(block != NULL);
    for (uint32_t i = index_from(board, block->start); i != board->tail; i++) {
        struct tcp_segment *segment = segment_at(board, i);
        if (!seq_le(segment->end, block->end)) {
            break;
        }
        if ((segment->flags & TCP_SEGMENT_SACKED) != 0) {
            continue;
        }
        segment_delivered(board, segment, now_ns, min_rtt_ns, report);
        segment_forget(board, segment, segment->end - segment->seq);
        segment->flags = (segment->flags & ~(uint32_t)TCP_SEGMENT_LOST) | TCP_SEGMENT_SACKED;
        board->highest_sacked =
            board->sacked_bytes == 0 ? segment->end : seq_max(board->highest_sacked, segment->end);
        board->sacked_bytes += segment->end - segment->seq;
    }
}

/* RFC 2883: the first block tells of a duplicate when it lies below the cumulative ACK or inside
 * the second block. */
static bool block_is_duplicate(const struct tcp_options *options, uint32_t ack)
{
    ASSERT(options != NULL);
    const struct tcp_sack_block *first = &options->sack[0];
    if (seq_le(first->end, ack)) {
        return true;
    }
    return options->sack_count > 1 && seq_le(options->sack[1].start, first->start) &&
           seq_le(first->end, options->sack[1].end);
}

void tcp_scoreboard_sack(struct tcp_scoreboard *board, const struct tcp_options *options,
                         uint32_t ack, uint64_t now_ns, uint64_t min_rtt_ns,
                         struct tcp_ack_report *report)
{
    ASSERT(board != NULL && report != NULL);
    ASSERT(options->sack_count <= TCP_SACK_BLOCKS_MAX);
    for (uint32_t i = 0; i < options->sack_count; i++) {
        const struct tcp_sack_block *block = &options->sack[i];
        if (block->end - block->start - 1 >= SACK_BLOCK_BYTES_MAX) {
            report->invalid_blocks++;
            continue;
        }
        if (i == 0 && block_is_duplicate(options, ack)) {
            report->duplicate_sack = true;
            continue;
        }
        bool inside = board->head != board->tail && seq_lt(ack, block->end) &&
                      seq_le(segment_at(board, board->head)->seq, block->start) &&
                      seq_le(block->end, segment_at(board, board->tail - 1)->end);
        if (!inside) {
            report->invalid_blocks += seq_le(block->end, ack) ? 0 : 1;
            continue;
        }
        block_take(board, block, now_ns, min_rtt_ns, report);
    }
    if (report->duplicate_sack && board->reordering_factor < REORDERING_FACTOR_MAX) {
        board->reordering_factor++;
        board->reordering_seen = true;
    }
    board_check(board);
}

/* The hint moves left at once, so next_lost never misses one. */
static void segment_lose(struct tcp_scoreboard *board, uint32_t index)
{
    ASSERT(board != NULL);
    struct tcp_segment *segment = segment_at(board, index);
    ASSERT((segment->flags & (TCP_SEGMENT_SACKED | TCP_SEGMENT_LOST)) == 0);
    segment->flags |= TCP_SEGMENT_LOST;
    board->lost_bytes += segment->end - segment->seq;
    if ((int32_t)(index - board->lost_hint) < 0) {
        board->lost_hint = index;
    }
}

/* RFC 8985 §6.2, step 4. */
static uint64_t reordering_window(const struct tcp_scoreboard *board, uint64_t min_rtt_ns,
                                  uint64_t srtt_ns, bool recovering)
{
    ASSERT(board != NULL);
    if (!board->reordering_seen) {
        const struct tcp_segment *head = segment_at(board, board->head);
        uint32_t bytes = head->end - head->seq;
        if (recovering || board->sacked_bytes >= 3 * bytes) {
            return 0;
        }
    }
    uint64_t window_ns = board->reordering_factor * (min_rtt_ns == UINT64_MAX ? 0 : min_rtt_ns / 4);
    return window_ns < srtt_ns ? window_ns : srtt_ns;
}

uint32_t tcp_scoreboard_detect(struct tcp_scoreboard *board, uint64_t now_ns, uint64_t min_rtt_ns,
                               uint64_t srtt_ns, bool recovering, uint64_t *timeout_ns)
{
    ASSERT(board != NULL);
    ASSERT(timeout_ns != NULL);
    uint32_t marked = 0;
    *timeout_ns = 0;
    bool idle = board->sacked_bytes == 0 && board->retransmitted_count == 0;
    if (LIKELY(idle || tcp_scoreboard_is_empty(board))) {
        return 0;
    }
    uint64_t patience_ns =
        board->rack_rtt_ns + reordering_window(board, min_rtt_ns, srtt_ns, recovering);
    for (uint32_t i = board->head; i != board->tail; i++) {
        struct tcp_segment *segment = segment_at(board, i);
        bool earlier =
            segment->sent_ns < board->rack_sent_ns ||
            (segment->sent_ns == board->rack_sent_ns && seq_lt(segment->end, board->rack_end));
        if (!earlier || (segment->flags & (TCP_SEGMENT_SACKED | TCP_SEGMENT_LOST)) != 0) {
            continue;
        }
        uint64_t due_ns = segment->sent_ns + patience_ns;
        if (due_ns <= now_ns) {
            segment_lose(board, i);
            marked += segment->end - segment->seq;
        } else if (due_ns > *timeout_ns) {
            *timeout_ns = due_ns;
        }
    }
    board_check(board);
    return marked;
}

uint32_t tcp_scoreboard_lose_head(struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    ASSERT(!tcp_scoreboard_is_empty(board));
    const struct tcp_segment *head = segment_at(board, board->head);
    if ((head->flags & (TCP_SEGMENT_SACKED | TCP_SEGMENT_LOST)) != 0) {
        return 0;
    }
    segment_lose(board, board->head);
    return head->end - head->seq;
}

bool tcp_scoreboard_lose_all(struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    bool reneged = !tcp_scoreboard_is_empty(board) &&
                   (segment_at(board, board->head)->flags & TCP_SEGMENT_SACKED) != 0;
    for (uint32_t i = board->head; i != board->tail; i++) {
        struct tcp_segment *segment = segment_at(board, i);
        if (reneged && (segment->flags & TCP_SEGMENT_SACKED) != 0) {
            segment_forget(board, segment, segment->end - segment->seq);
            segment->flags &= ~(uint32_t)TCP_SEGMENT_SACKED;
        }
        if ((segment->flags & (TCP_SEGMENT_SACKED | TCP_SEGMENT_LOST)) == 0) {
            segment_lose(board, i);
        }
    }
    ASSERT(!reneged || board->sacked_bytes == 0);
    board_check(board);
    return reneged;
}

void tcp_scoreboard_forgive(struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    for (uint32_t i = board->head; i != board->tail; i++) {
        segment_at(board, i)->flags &= ~(uint32_t)TCP_SEGMENT_LOST;
    }
    board->lost_bytes = 0;
    board_check(board);
}

struct tcp_segment *tcp_scoreboard_next_lost(struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    if (LIKELY(board->lost_bytes == 0)) {
        return NULL;
    }
    for (uint32_t i = board->lost_hint; i != board->tail; i++) {
        struct tcp_segment *segment = segment_at(board, i);
        if ((segment->flags & TCP_SEGMENT_LOST) != 0) {
            board->lost_hint = i;
            return segment;
        }
    }
    ASSERT(false);
    return NULL;
}

void tcp_scoreboard_resent(struct tcp_scoreboard *board, struct tcp_segment *segment,
                           uint64_t now_ns)
{
    ASSERT((segment->flags & TCP_SEGMENT_SACKED) == 0);
    if ((segment->flags & TCP_SEGMENT_LOST) != 0) {
        ASSERT(board->lost_bytes >= segment->end - segment->seq);
        board->lost_bytes -= segment->end - segment->seq;
    }
    if ((segment->flags & TCP_SEGMENT_RETRANSMITTED) == 0) {
        board->retransmitted_count++;
    }
    segment->flags &= ~(uint32_t)TCP_SEGMENT_LOST;
    segment->flags |= TCP_SEGMENT_RETRANSMITTED;
    segment->sent_ns = now_ns;
}

struct tcp_segment *tcp_scoreboard_last(struct tcp_scoreboard *board)
{
    ASSERT(board != NULL);
    return tcp_scoreboard_is_empty(board) ? NULL : segment_at(board, board->tail - 1);
}
