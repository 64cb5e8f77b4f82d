/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 6298 with alpha 1/8, beta 1/4, K 4. The clock granularity G of the standard is 1 µs here:
 * callers stamp segments with the poll's time. */
#include "nic/tcp_rtt.h"

#define GRANULARITY_NS 1000
#define BACKOFF_MAX    16

void tcp_rtt_init(struct tcp_rtt *rtt, uint64_t initial_ns, uint64_t min_ns, uint64_t max_ns)
{
    ASSERT(rtt != NULL);
    ASSERT(min_ns > 0 && min_ns <= max_ns);
    *rtt = (struct tcp_rtt){
        .rto_ns = initial_ns < min_ns ? min_ns : initial_ns,
        .rto_ns_min = min_ns,
        .rto_ns_max = max_ns,
        .min_rtt_ns = UINT64_MAX,
    };
}

static void minimum_update(struct tcp_rtt *rtt, uint64_t sample_ns, uint64_t now_ns)
{
    ASSERT(rtt != NULL);
    bool stale = now_ns - rtt->min_since_ns > TCP_RTT_MIN_WINDOW_NS;
    if (stale || sample_ns <= rtt->min_rtt_ns) {
        rtt->min_rtt_ns = sample_ns;
        rtt->min_since_ns = now_ns;
    }
}

void tcp_rtt_sample(struct tcp_rtt *rtt, uint64_t sample_ns, uint64_t now_ns)
{
    ASSERT(rtt != NULL);
    ASSERT(rtt->rto_ns_min > 0);
    sample_ns = sample_ns == 0 ? 1 : sample_ns;
    if (rtt->srtt_ns == 0) {
        rtt->srtt_ns = sample_ns;
        rtt->rttvar_ns = sample_ns / 2;
    } else {
        uint64_t error_ns =
            rtt->srtt_ns > sample_ns ? rtt->srtt_ns - sample_ns : sample_ns - rtt->srtt_ns;
        rtt->rttvar_ns = rtt->rttvar_ns - rtt->rttvar_ns / 4 + error_ns / 4;
        rtt->srtt_ns = rtt->srtt_ns - rtt->srtt_ns / 8 + sample_ns / 8;
        rtt->srtt_ns = rtt->srtt_ns == 0 ? 1 : rtt->srtt_ns;
    }
    uint64_t spread_ns = 4 * rtt->rttvar_ns;
    uint64_t rto_ns = rtt->srtt_ns + (spread_ns < GRANULARITY_NS ? GRANULARITY_NS : spread_ns);
    rto_ns = rto_ns < rtt->rto_ns_min ? rtt->rto_ns_min : rto_ns;
    rtt->rto_ns = rto_ns > rtt->rto_ns_max ? rtt->rto_ns_max : rto_ns;
    rtt->backoff = 0;
    minimum_update(rtt, sample_ns, now_ns);
}

uint64_t tcp_rtt_timeout_ns(const struct tcp_rtt *rtt)
{
    ASSERT(rtt != NULL);
    ASSERT(rtt->rto_ns >= rtt->rto_ns_min);
    uint32_t shift = rtt->backoff < BACKOFF_MAX ? rtt->backoff : BACKOFF_MAX;
    uint64_t timeout_ns = rtt->rto_ns << shift;
    return timeout_ns < rtt->rto_ns_max ? timeout_ns : rtt->rto_ns_max;
}
