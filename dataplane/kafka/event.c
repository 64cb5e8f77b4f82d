/* SPDX-License-Identifier: Apache-2.0 */
/* The event ring and the names of the counters. */
#include "dataplane/kafka/event.h"

#include <stdarg.h>
#include <stdio.h>

_Static_assert((KAFKA_EVENTS_MAX & (KAFKA_EVENTS_MAX - 1)) == 0, "the ring index is a mask");

const char *kafka_counter_name(size_t index)
{
    static const char *const names[] = {
#define KAFKA_COUNTER_NAME(name) #name,
        KAFKA_COUNTERS(KAFKA_COUNTER_NAME)
#undef KAFKA_COUNTER_NAME
    };
    _Static_assert(COUNT_OF(names) == KAFKA_COUNTERS_COUNT, "one name a counter");
    ASSERT(index < COUNT_OF(names));
    return names[index];
}

void kafka_events_push(struct kafka_events *events, const struct kafka_event *event,
                       const char *format, ...)
{
    ASSERT(events->tail - events->head <= KAFKA_EVENTS_MAX);
    if (events->tail - events->head == KAFKA_EVENTS_MAX) {
        events->lost++;
        return;
    }
    struct kafka_event *into = &events->ring[events->tail++ & (KAFKA_EVENTS_MAX - 1)];
    *into = *event;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(into->text, sizeof(into->text), format, arguments);
    va_end(arguments);
    ASSERT(length >= 0);
}

bool kafka_events_pop(struct kafka_events *events, struct kafka_event *out)
{
    ASSERT(out != NULL);
    ASSERT(events->head <= events->tail);
    if (events->head == events->tail) {
        return false;
    }
    *out = events->ring[events->head++ & (KAFKA_EVENTS_MAX - 1)];
    return true;
}
