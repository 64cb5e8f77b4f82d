/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka events on their way from a lane to control: a ring of copies with one writer and one
 * reader. A full ring counts what it could not take; the lane never waits. */
#pragma once

#include <stdatomic.h>

#include "dataplane/kafka/event.h"

#define NEWS_MAX 64 /* a power of two */

struct news {
    _Alignas(CACHE_LINE_BYTES) _Atomic uint64_t written; /* by the lane */
    uint64_t lost;
    _Alignas(CACHE_LINE_BYTES) _Atomic uint64_t read; /* by control */
    _Alignas(CACHE_LINE_BYTES) struct kafka_event events[NEWS_MAX];
};

/* Adds an event.
 * threads  the lane's */
static inline void news_push(struct news *news, const struct kafka_event *event)
{
    const uint64_t at = atomic_load_explicit(&news->written, memory_order_relaxed);
    /* Acquire pairs with news_pop's release: the place has been read. */
    if (at - atomic_load_explicit(&news->read, memory_order_acquire) == NEWS_MAX) {
        news->lost++;
        return;
    }
    news->events[at & (NEWS_MAX - 1)] = *event;
    /* Release pairs with news_pop's acquire: the event is there before its number. */
    atomic_store_explicit(&news->written, at + 1, memory_order_release);
}

/* Takes the oldest event; false when there is none.
 * threads  control */
static inline bool news_pop(struct news *news, struct kafka_event *out)
{
    const uint64_t at = atomic_load_explicit(&news->read, memory_order_relaxed);
    if (at == atomic_load_explicit(&news->written, memory_order_acquire)) {
        return false;
    }
    *out = news->events[at & (NEWS_MAX - 1)];
    atomic_store_explicit(&news->read, at + 1, memory_order_release);
    return true;
}
