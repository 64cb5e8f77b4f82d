/* SPDX-License-Identifier: Apache-2.0 */
/* See hand_off.h. The rings are DPDK's with slots as elements; its zero-copy calls let a frame be
 * copied once on the way in and read in place on the way out. The C11 memory model is the one whose
 * acquire and release pairs the thread sanitizer can see; on x86 it costs the same. */
#include "nic/hand_off.h"

#include <errno.h>
#include <stdlib.h>

#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL 1
#endif
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_ring_peek_zc.h>

/* A frame in a ring. The offset keeps the IPv4 header aligned, as receive buffers do. */
struct slot {
    uint32_t bytes;
    uint16_t flags; /* enum port_frame_flag: what the port knows of the checksums */
    uint8_t data[]; /* slot_bytes of the hand-off, less these fields */
};

struct hand_off_lane {
    struct hand_off *hand_off;
    uint16_t queue;
    struct hand_off_counters counters;
} __attribute__((aligned(CACHE_LINE_BYTES)));

struct hand_off {
    uint32_t queue_count;
    uint32_t slot_bytes;
    struct hand_off_lane *lanes;
    struct rte_ring **rings; /* from * queue_count + to; NULL where both are the same */
};

static_assert(sizeof(struct hand_off_lane) == CACHE_LINE_BYTES, "one writer a line");

static void *take_memory(size_t bytes)
{
    const size_t rounded = (bytes + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
    ASSERT(bytes > 0);
    void *memory = aligned_alloc(CACHE_LINE_BYTES, rounded);
    if (memory != NULL) {
        memset(memory, 0, rounded); /* touched: no lane meets a fresh page */
    }
    return memory;
}

static struct rte_ring *ring_create(uint32_t slot_bytes, uint32_t slot_count)
{
    const ssize_t bytes = rte_ring_get_memsize_elem(slot_bytes, slot_count);
    ASSERT(bytes > 0);
    struct rte_ring *ring = take_memory((size_t)bytes);
    if (ring != NULL) {
        const int code = rte_ring_init(ring, "hand_off", slot_count, RING_F_SP_ENQ | RING_F_SC_DEQ);
        ASSERT(code == 0);
    }
    return ring;
}

static int rings_create(struct hand_off *hand_off, uint32_t slot_count)
{
    const uint32_t count = hand_off->queue_count;
    for (uint32_t i = 0; i < count * count; i++) {
        if (i / count == i % count) {
            continue;
        }
        hand_off->rings[i] = ring_create(hand_off->slot_bytes, slot_count);
        if (hand_off->rings[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

int hand_off_create(uint32_t queue_count, uint32_t slot_count, uint32_t frame_bytes_max,
                    struct hand_off **out, struct error *error)
{
    ASSERT(queue_count >= 2 && queue_count <= HAND_OFF_QUEUES_MAX);
    ASSERT(slot_count >= 2 && (slot_count & (slot_count - 1)) == 0);
    ASSERT(frame_bytes_max > 0);
    *out = NULL;
    struct hand_off *hand_off = calloc(1, sizeof(*hand_off));
    if (hand_off == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    hand_off->queue_count = queue_count;
    hand_off->slot_bytes = (uint32_t)((sizeof(struct slot) + frame_bytes_max + 15) & ~UINT32_C(15));
    hand_off->lanes = take_memory(queue_count * sizeof(*hand_off->lanes));
    hand_off->rings = calloc((size_t)queue_count * queue_count, sizeof(struct rte_ring *));
    if (hand_off->lanes == NULL || hand_off->rings == NULL ||
        rings_create(hand_off, slot_count) != 0) {
        hand_off_destroy(hand_off);
        return error_set(error, -ENOMEM, "out of memory for rings between %u lanes", queue_count);
    }
    for (uint32_t i = 0; i < queue_count; i++) {
        hand_off->lanes[i] = (struct hand_off_lane){.hand_off = hand_off, .queue = (uint16_t)i};
    }
    *out = hand_off;
    return 0;
}

void hand_off_destroy(struct hand_off *hand_off)
{
    if (hand_off == NULL) {
        return;
    }
    for (uint32_t i = 0;
         hand_off->rings != NULL && i < hand_off->queue_count * hand_off->queue_count; i++) {
        free(hand_off->rings[i]);
    }
    free(hand_off->rings);
    free(hand_off->lanes);
    free(hand_off);
}

struct hand_off_lane *hand_off_lane(struct hand_off *hand_off, uint16_t queue)
{
    ASSERT(hand_off != NULL);
    ASSERT(queue < hand_off->queue_count);
    return &hand_off->lanes[queue];
}

static void count(uint64_t *counter)
{
    /* Relaxed: one writer, readers want the number whole. */
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static bool push_to(struct hand_off_lane *lane, uint32_t to, const struct port_frame *frame)
{
    const struct hand_off *hand_off = lane->hand_off;
    ASSERT(to != lane->queue);
    struct rte_ring *ring = hand_off->rings[lane->queue * hand_off->queue_count + to];
    struct rte_ring_zc_data room;
    if (rte_ring_enqueue_zc_bulk_elem_start(ring, hand_off->slot_bytes, 1, &room, NULL) != 1) {
        count(&lane->counters.drop_full);
        return false;
    }
    struct slot *slot = room.ptr1;
    slot->bytes = frame->bytes;
    slot->flags = frame->flags;
    memcpy(slot->data, frame->data, frame->bytes);
    rte_ring_enqueue_zc_elem_finish(ring, 1);
    count(&lane->counters.given);
    return true;
}

bool hand_off_push(void *context, enum stack_foreign kind, uint16_t owner_queue,
                   const struct port_frame *frame)
{
    struct hand_off_lane *lane = context;
    const struct hand_off *hand_off = lane->hand_off;
    ASSERT(frame->data != NULL);
    const bool is_shared = kind == STACK_FOREIGN_SHARED;
    if (frame->bytes > hand_off->slot_bytes - sizeof(struct slot) ||
        (!is_shared && owner_queue >= hand_off->queue_count)) {
        count(&lane->counters.drop_length);
        return false;
    }
    if (!is_shared) {
        return push_to(lane, owner_queue, frame);
    }
    bool taken = false;
    for (uint32_t to = 0; to < hand_off->queue_count; to++) {
        taken |= to != lane->queue && push_to(lane, to, frame);
    }
    return taken;
}

/* Feeds up to a burst from one ring. */
static uint32_t feed(struct rte_ring *ring, uint32_t slot_bytes, struct stack *stack,
                     uint64_t now_ns)
{
    uint32_t fed = 0;
    struct rte_ring_zc_data waiting;
    while (fed < PORT_BURST_MAX &&
           rte_ring_dequeue_zc_bulk_elem_start(ring, slot_bytes, 1, &waiting, NULL) == 1) {
        struct slot *slot = waiting.ptr1;
        ASSERT(slot->bytes <= slot_bytes - sizeof(*slot));
        const struct port_frame frame = {
            .data = slot->data, .bytes = slot->bytes, .flags = slot->flags};
        stack_input(stack, &frame, now_ns);
        rte_ring_dequeue_zc_elem_finish(ring, 1);
        fed++;
    }
    return fed;
}

uint32_t hand_off_poll(struct hand_off_lane *lane, struct stack *stack, uint64_t now_ns)
{
    const struct hand_off *hand_off = lane->hand_off;
    ASSERT(stack != NULL);
    uint32_t fed = 0;
    for (uint32_t i = 0; i < hand_off->queue_count; i++) {
        if (i != lane->queue) {
            fed += feed(hand_off->rings[i * hand_off->queue_count + lane->queue],
                        hand_off->slot_bytes, stack, now_ns);
        }
    }
    return fed;
}

const struct hand_off_counters *hand_off_counters_get(const struct hand_off_lane *lane)
{
    ASSERT(lane != NULL);
    return &lane->counters;
}
