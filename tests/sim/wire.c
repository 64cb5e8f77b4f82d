/* SPDX-License-Identifier: Apache-2.0 */
/* Two binary heaps of slot numbers, ordered by arrival and then by sending order. */
#include "tests/sim/wire.h"

#include <stdlib.h>

uint64_t wire_random_next(struct wire_random *random)
{
    /* splitmix64 */
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t wire_random_below(struct wire_random *random, uint64_t bound)
{
    return bound == 0 ? 0 : wire_random_next(random) % bound;
}

static bool happens(struct wire *wire, uint32_t per_million)
{
    return wire_random_below(&wire->random, WIRE_PER_MILLION) < per_million;
}

void wire_init(struct wire *wire)
{
    memset(wire, 0, sizeof(*wire));
    wire->slots = calloc(WIRE_SLOT_COUNT, sizeof(*wire->slots));
    ASSERT(wire->slots != NULL);
}

void wire_fini(struct wire *wire)
{
    free(wire->slots);
    wire->slots = NULL;
}

void wire_reset(struct wire *wire, const struct wire_config *config)
{
    wire->config = *config;
    wire->random.state = config->seed;
    wire->heap_count[WIRE_STACK] = 0;
    wire->heap_count[WIRE_PEER] = 0;
    wire->free_count = WIRE_SLOT_COUNT;
    wire->order = 0;
    wire->sent_count = 0;
    wire->lost_count = 0;
    for (uint32_t i = 0; i < WIRE_SLOT_COUNT; i++) {
        wire->free_slots[i] = (uint16_t)i;
    }
}

static bool is_earlier(const struct wire *wire, uint16_t a, uint16_t b)
{
    const struct wire_slot *x = &wire->slots[a], *y = &wire->slots[b];
    return x->arrival_ns != y->arrival_ns ? x->arrival_ns < y->arrival_ns : x->order < y->order;
}

static void heap_push(struct wire *wire, enum wire_side to, uint16_t slot)
{
    uint16_t *heap = wire->heap[to];
    uint32_t at = wire->heap_count[to]++;
    ASSERT(at < WIRE_SLOT_COUNT);
    while (at > 0 && is_earlier(wire, slot, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = slot;
}

static uint16_t heap_pop(struct wire *wire, enum wire_side side)
{
    uint16_t *heap = wire->heap[side];
    ASSERT(wire->heap_count[side] > 0);
    uint16_t first = heap[0];
    uint32_t count = --wire->heap_count[side];
    uint16_t moved = heap[count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_earlier(wire, heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_earlier(wire, heap[child], moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return first;
}

static void copy_send(struct wire *wire, enum wire_side from, struct span frame, uint64_t now_ns)
{
    if (wire->free_count == 0) {
        wire->lost_count++;
        return;
    }
    uint16_t slot = wire->free_slots[--wire->free_count];
    struct wire_slot *into = &wire->slots[slot];
    into->to = from == WIRE_STACK ? WIRE_PEER : WIRE_STACK;
    into->bytes = (uint32_t)frame.bytes;
    into->order = wire->order++;
    into->arrival_ns = now_ns + wire->config.delay_ns_min;
    memcpy(into->data, frame.data, frame.bytes);
    if (happens(wire, wire->config.delay_ppm)) {
        into->arrival_ns += wire_random_below(&wire->random, wire->config.delay_ns_max);
    }
    bool is_arp = frame.bytes >= 14 && load_be16(frame.data + 12) == 0x0806;
    if (!is_arp && happens(wire, wire->config.damage_ppm)) {
        uint64_t at = wire_random_below(&wire->random, frame.bytes);
        into->data[at] ^= (uint8_t)(1 + wire_random_below(&wire->random, 255));
    }
    heap_push(wire, into->to, slot);
}

void wire_send(struct wire *wire, enum wire_side from, struct span frame, uint64_t now_ns)
{
    ASSERT(frame.bytes > 0 && frame.bytes <= WIRE_FRAME_BYTES);
    wire->sent_count++;
    if (happens(wire, wire->config.loss_ppm)) {
        wire->lost_count++;
        return;
    }
    copy_send(wire, from, frame, now_ns);
    if (happens(wire, wire->config.duplicate_ppm)) {
        copy_send(wire, from, frame, now_ns);
    }
}

uint32_t wire_receive(struct wire *wire, enum wire_side side, uint64_t now_ns, uint8_t *out)
{
    if (wire->heap_count[side] == 0 || wire->slots[wire->heap[side][0]].arrival_ns > now_ns) {
        return 0;
    }
    uint16_t slot = heap_pop(wire, side);
    uint32_t bytes = wire->slots[slot].bytes;
    memcpy(out, wire->slots[slot].data, bytes);
    wire->free_slots[wire->free_count++] = slot;
    return bytes;
}

uint64_t wire_next_ns(const struct wire *wire)
{
    uint64_t next = UINT64_MAX;
    for (int side = 0; side < 2; side++) {
        if (wire->heap_count[side] > 0) {
            uint64_t arrival = wire->slots[wire->heap[side][0]].arrival_ns;
            next = arrival < next ? arrival : next;
        }
    }
    return next;
}
