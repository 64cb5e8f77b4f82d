/* SPDX-License-Identifier: Apache-2.0 */
/* A wheel would take O(1) instead of O(log n); at a few dozen connections a lane the heap's whole
 * working set is two cache lines, and lazy re-arming leaves it about one operation per timeout and
 * not one per segment. */
#include "nic/tcp_timer.h"

#include <errno.h>
#include <stdlib.h>

int tcp_timers_init(struct tcp_timers *timers, uint32_t count_max)
{
    ASSERT(timers != NULL);
    ASSERT(count_max > 0);
    *timers = (struct tcp_timers){.count_max = count_max};
    timers->heap = calloc(count_max, sizeof(*timers->heap));
    timers->place = calloc(count_max, sizeof(*timers->place));
    if (timers->heap == NULL || timers->place == NULL) {
        tcp_timers_fini(timers);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count_max; i++) {
        timers->place[i] = TCP_TIMER_NONE;
    }
    return 0;
}

void tcp_timers_fini(struct tcp_timers *timers)
{
    ASSERT(timers != NULL);
    free(timers->heap);
    free(timers->place);
    *timers = (struct tcp_timers){0};
}

static void entry_put(struct tcp_timers *timers, uint32_t at, struct tcp_timer_entry entry)
{
    ASSERT(timers != NULL);
    timers->heap[at] = entry;
    timers->place[entry.index] = at;
}

static void sift_up(struct tcp_timers *timers, uint32_t at)
{
    ASSERT(timers != NULL);
    struct tcp_timer_entry entry = timers->heap[at];
    while (at > 0 && timers->heap[(at - 1) / 2].deadline_ns > entry.deadline_ns) {
        entry_put(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    entry_put(timers, at, entry);
}

static void sift_down(struct tcp_timers *timers, uint32_t at)
{
    ASSERT(timers != NULL);
    struct tcp_timer_entry entry = timers->heap[at];
    for (uint32_t child = 2 * at + 1; child < timers->count; child = 2 * at + 1) {
        if (child + 1 < timers->count &&
            timers->heap[child + 1].deadline_ns < timers->heap[child].deadline_ns) {
            child++;
        }
        if (timers->heap[child].deadline_ns >= entry.deadline_ns) {
            break;
        }
        entry_put(timers, at, timers->heap[child]);
        at = child;
    }
    entry_put(timers, at, entry);
}

void tcp_timers_arm(struct tcp_timers *timers, uint32_t index, uint64_t deadline_ns)
{
    ASSERT(index < timers->count_max);
    if (deadline_ns == UINT64_MAX) {
        return;
    }
    uint32_t at = timers->place[index];
    if (at == TCP_TIMER_NONE) {
        ASSERT(timers->count < timers->count_max);
        at = timers->count++;
    } else if (timers->heap[at].deadline_ns <= deadline_ns) {
        return;
    }
    entry_put(timers, at, (struct tcp_timer_entry){deadline_ns, index});
    sift_up(timers, at);
}

void tcp_timers_cancel(struct tcp_timers *timers, uint32_t index)
{
    ASSERT(index < timers->count_max);
    uint32_t at = timers->place[index];
    if (at == TCP_TIMER_NONE) {
        return;
    }
    ASSERT(at < timers->count);
    timers->place[index] = TCP_TIMER_NONE;
    struct tcp_timer_entry last = timers->heap[--timers->count];
    if (at < timers->count) {
        entry_put(timers, at, last);
        sift_up(timers, at);
        sift_down(timers, timers->place[last.index]);
    }
}

uint32_t tcp_timers_pop(struct tcp_timers *timers, uint64_t now_ns)
{
    ASSERT(timers != NULL);
    if (LIKELY(tcp_timers_next_ns(timers) > now_ns)) {
        return TCP_TIMER_NONE;
    }
    uint32_t index = timers->heap[0].index;
    tcp_timers_cancel(timers, index);
    return index;
}
