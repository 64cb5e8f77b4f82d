/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array with binary search: an insert moves at most TCP_RANGES_MAX small entries, so a
 * hostile order of segments costs a bounded amount each (CVE-2018-5390). */
#include "nic/tcp_reassembly.h"

/* The first range that ends at or after offset: all before it lie apart, to the left. */
static uint32_t first_touching(const struct tcp_reassembly *queue, uint64_t offset)
{
    ASSERT(queue != NULL);
    uint32_t low = 0, high = queue->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (queue->ranges[middle].end < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void ranges_remove(struct tcp_reassembly *queue, uint32_t from, uint32_t count)
{
    ASSERT(queue != NULL);
    ASSERT(from + count <= queue->count);
    memmove(queue->ranges + from, queue->ranges + from + count,
            sizeof(queue->ranges[0]) * (queue->count - from - count));
    queue->count -= count;
}

static void ranges_check(const struct tcp_reassembly *queue)
{
    for (uint32_t i = 0; i < queue->count; i++) {
        ASSERT_SLOW(queue->ranges[i].start < queue->ranges[i].end);               /* (2) */
        ASSERT_SLOW(i == 0 || queue->ranges[i - 1].end < queue->ranges[i].start); /* (1) */
    }
}

bool tcp_reassembly_add(struct tcp_reassembly *queue, uint64_t start, uint64_t end,
                        uint64_t *new_bytes)
{
    ASSERT(queue != NULL && new_bytes != NULL);
    ASSERT(start < end);
    uint32_t first = first_touching(queue, start);
    uint32_t last = first;
    uint64_t low = start, high = end, had = 0;
    while (last < queue->count && queue->ranges[last].start <= end) {
        const struct tcp_range *range = &queue->ranges[last];
        low = range->start < low ? range->start : low;
        high = range->end > high ? range->end : high;
        had += range->end - range->start;
        last++;
    }
    *new_bytes = 0;
    if (last == first) {
        if (queue->count == TCP_RANGES_MAX) {
            return false; /* (4) */
        }
        memmove(queue->ranges + first + 1, queue->ranges + first,
                sizeof(queue->ranges[0]) * (queue->count - first));
        queue->count++;
    } else {
        ranges_remove(queue, first + 1, last - first - 1);
    }
    *new_bytes = high - low - had;
    queue->ranges[first] = (struct tcp_range){low, high, ++queue->stamp};
    ranges_check(queue);
    return true;
}

uint64_t tcp_reassembly_advance(struct tcp_reassembly *queue, uint64_t next)
{
    ASSERT(queue != NULL);
    uint32_t taken = 0;
    while (taken < queue->count && queue->ranges[taken].start <= next) {
        next = queue->ranges[taken].end > next ? queue->ranges[taken].end : next;
        taken++;
    }
    ranges_remove(queue, 0, taken);
    ASSERT(queue->count == 0 || queue->ranges[0].start > next); /* (3) */
    return next;
}

uint32_t tcp_reassembly_recent(const struct tcp_reassembly *queue, struct tcp_range *out,
                               uint32_t count_max)
{
    ASSERT(queue != NULL && out != NULL);
    uint32_t count = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct tcp_range *range = &queue->ranges[i];
        uint32_t at = count;
        while (at > 0 && (int32_t)(range->stamp - out[at - 1].stamp) > 0) {
            at--;
        }
        if (at >= count_max) {
            continue;
        }
        count = count < count_max ? count + 1 : count;
        memmove(out + at + 1, out + at, sizeof(*out) * (count - at - 1));
        out[at] = *range;
    }
    return count;
}

uint64_t tcp_reassembly_held_bytes(const struct tcp_reassembly *queue)
{
    ASSERT(queue != NULL);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        bytes += queue->ranges[i].end - queue->ranges[i].start;
    }
    return bytes;
}
