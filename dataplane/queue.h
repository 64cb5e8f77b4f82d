/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in first-out queue of items inside one lane: between two operators, or in front of a full
 * ring. It counts the rows that wait in it. Capacity is fixed at create and large enough for every
 * parcel of every pool, so that a push never fails; how much may wait is decided before rows are
 * made (job.h, admission), not here.
 *
 * A watermark behind a watermark replaces it: nothing came in between. The last of all does not:
 * Flink's windows in a shifted time zone answer by the one in front of it. */
#pragma once

#include "base.h"
#include "dataplane/parcel.h"

struct queue {
    struct item *items; /* capacity of them, a power of two; owned by whoever made the queue */
    uint32_t capacity;
    uint32_t head; /* running numbers; index is number & (capacity - 1) */
    uint32_t tail;
    uint32_t row_count;
};

/* Makes an empty queue over storage.
 * storage  capacity items; outlives the queue
 * threads  control */
static inline void queue_init(struct queue *queue, struct item *storage, uint32_t capacity)
{
    ASSERT(storage != NULL);
    ASSERT(capacity >= 2 && (capacity & (capacity - 1)) == 0);
    *queue = (struct queue){.items = storage, .capacity = capacity};
}

/* Tells whether nothing waits.
 * threads  owning lane only */
static inline bool queue_is_empty(const struct queue *queue)
{
    ASSERT_SLOW(queue->tail - queue->head <= queue->capacity);
    return queue->head == queue->tail;
}

/* Shows the oldest item.
 * queue    not empty
 * threads  owning lane only */
static inline struct item queue_peek(const struct queue *queue)
{
    ASSERT_SLOW(!queue_is_empty(queue));
    return queue->items[queue->head & (queue->capacity - 1)];
}

/* Appends an item.
 * threads  owning lane only */
static inline void queue_push(struct queue *queue, struct item item)
{
    if (!queue_is_empty(queue) && item_kind(item) == PARCEL_WATERMARK &&
        item.value != WATERMARK_MAX) {
        struct item *last = &queue->items[(queue->tail - 1) & (queue->capacity - 1)];
        if (item_kind(*last) == PARCEL_WATERMARK) {
            last->value = item.value;
            return;
        }
    }
    ASSERT(queue->tail - queue->head < queue->capacity);
    queue->items[queue->tail & (queue->capacity - 1)] = item;
    queue->tail++;
    if (item_kind(item) == PARCEL_ROWS) {
        queue->row_count += item_parcel(item)->row_count;
    }
}

/* Removes the oldest item. An emptied queue starts over at its first slots, which stay in cache.
 * queue    not empty
 * threads  owning lane only */
static inline struct item queue_pop(struct queue *queue)
{
    ASSERT_SLOW(queue->tail - queue->head <= queue->capacity);
    const struct item item = queue_peek(queue);
    queue->head++;
    if (item_kind(item) == PARCEL_ROWS) {
        ASSERT_SLOW(queue->row_count >= item_parcel(item)->row_count);
        queue->row_count -= item_parcel(item)->row_count;
    }
    if (queue_is_empty(queue)) {
        queue->head = 0;
        queue->tail = 0;
    }
    return item;
}
