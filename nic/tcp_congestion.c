/* SPDX-License-Identifier: Apache-2.0 */
/* NewReno in bytes. The window never falls below one segment and never rises past what 32-bit
 * arithmetic on windows carries safely. */
#include "nic/tcp_congestion.h"

#define CWND_BYTES_MAX (UINT32_C(1) << 30)

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void tcp_congestion_init(struct tcp_congestion *congestion, uint32_t mss_bytes, uint32_t segments)
{
    ASSERT(congestion != NULL);
    ASSERT(mss_bytes > 0 && segments > 0);
    /* RFC 6928: min(10 * MSS, max(2 * MSS, 14600)), for the configured count of segments. */
    uint32_t initial = least(segments * mss_bytes, most(2 * mss_bytes, segments * 1460));
    *congestion = (struct tcp_congestion){
        .mss_bytes = mss_bytes,
        .initial_bytes = initial,
        .cwnd_bytes = initial,
        .ssthresh_bytes = CWND_BYTES_MAX,
    };
}

void tcp_congestion_mss(struct tcp_congestion *congestion, uint32_t mss_bytes)
{
    ASSERT(mss_bytes > 0);
    ASSERT(mss_bytes <= congestion->mss_bytes);
    congestion->mss_bytes = mss_bytes;
    congestion->ssthresh_bytes = most(congestion->ssthresh_bytes, 2 * mss_bytes);
}

void tcp_congestion_ack(struct tcp_congestion *congestion, uint32_t acked_bytes, bool limited)
{
    ASSERT(congestion != NULL);
    ASSERT(congestion->phase != TCP_PHASE_RECOVERY);
    uint32_t mss = congestion->mss_bytes;
    if (acked_bytes == 0 || (!limited && congestion->phase == TCP_PHASE_OPEN)) {
        return;
    }
    if (congestion->cwnd_bytes < congestion->ssthresh_bytes) {
        /* After a timeout L is 1, so that stretched ACKs of old data do not open it in bursts. */
        uint32_t burst = congestion->phase == TCP_PHASE_LOSS ? mss : 2 * mss;
        congestion->cwnd_bytes += least(acked_bytes, burst);
    } else {
        congestion->grown_bytes += least(acked_bytes, congestion->cwnd_bytes);
        if (congestion->grown_bytes >= congestion->cwnd_bytes) {
            congestion->grown_bytes -= congestion->cwnd_bytes;
            congestion->cwnd_bytes += mss;
        }
    }
    congestion->cwnd_bytes = least(congestion->cwnd_bytes, CWND_BYTES_MAX);
}

bool tcp_congestion_loss(struct tcp_congestion *congestion, uint32_t flight_bytes, uint32_t snd_nxt)
{
    ASSERT(congestion != NULL);
    ASSERT(congestion->mss_bytes > 0);
    if (congestion->phase != TCP_PHASE_OPEN) {
        return false;
    }
    congestion->phase = TCP_PHASE_RECOVERY;
    congestion->recover_seq = snd_nxt;
    congestion->ssthresh_bytes = most(flight_bytes / 2, 2 * congestion->mss_bytes);
    congestion->flight_at_recovery_bytes = most(flight_bytes, 1);
    congestion->delivered_bytes = 0;
    congestion->sent_bytes = 0;
    congestion->grown_bytes = 0;
    return true;
}

void tcp_congestion_recovery_ack(struct tcp_congestion *congestion, uint32_t delivered_bytes,
                                 uint32_t pipe_bytes, bool repair)
{
    ASSERT(congestion->phase == TCP_PHASE_RECOVERY);
    ASSERT(congestion->flight_at_recovery_bytes > 0);
    uint64_t allowed;
    congestion->delivered_bytes += delivered_bytes;
    if (pipe_bytes > congestion->ssthresh_bytes) {
        uint64_t flight = congestion->flight_at_recovery_bytes;
        uint64_t share =
            (congestion->delivered_bytes * congestion->ssthresh_bytes + flight - 1) / flight;
        allowed = share > congestion->sent_bytes ? share - congestion->sent_bytes : 0;
    } else {
        uint64_t behind = congestion->delivered_bytes > congestion->sent_bytes
                              ? congestion->delivered_bytes - congestion->sent_bytes
                              : 0;
        uint64_t limit =
            (behind > delivered_bytes ? behind : delivered_bytes) + congestion->mss_bytes;
        uint64_t room = congestion->ssthresh_bytes - pipe_bytes;
        allowed = room < limit ? room : limit;
    }
    /* The first retransmission always goes out. */
    if ((congestion->sent_bytes == 0 || repair) && allowed < congestion->mss_bytes) {
        allowed = congestion->mss_bytes;
    }
    congestion->cwnd_bytes = least(pipe_bytes + (uint32_t)allowed, CWND_BYTES_MAX);
}

bool tcp_congestion_exit(struct tcp_congestion *congestion, uint32_t snd_una)
{
    ASSERT(congestion != NULL);
    if (congestion->phase == TCP_PHASE_OPEN || (int32_t)(snd_una - congestion->recover_seq) < 0) {
        return false;
    }
    if (congestion->phase == TCP_PHASE_RECOVERY) {
        congestion->cwnd_bytes = congestion->ssthresh_bytes;
    }
    congestion->phase = TCP_PHASE_OPEN;
    ASSERT(congestion->cwnd_bytes > 0);
    return true;
}

void tcp_congestion_timeout(struct tcp_congestion *congestion, uint32_t flight_bytes,
                            uint32_t snd_nxt, bool first)
{
    ASSERT(congestion != NULL);
    ASSERT(congestion->mss_bytes > 0);
    if (first) {
        congestion->ssthresh_bytes = most(flight_bytes / 2, 2 * congestion->mss_bytes);
    }
    congestion->phase = TCP_PHASE_LOSS;
    congestion->recover_seq = snd_nxt;
    congestion->cwnd_bytes = congestion->mss_bytes;
    congestion->grown_bytes = 0;
}

void tcp_congestion_idle(struct tcp_congestion *congestion)
{
    ASSERT(congestion != NULL);
    ASSERT(congestion->initial_bytes > 0);
    if (congestion->phase == TCP_PHASE_OPEN) {
        congestion->cwnd_bytes = least(congestion->cwnd_bytes, congestion->initial_bytes);
    }
}
