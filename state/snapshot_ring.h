/* SPDX-License-Identifier: Apache-2.0 */
/* The rings between a lane and the storage thread: rte_rings with one producer and one consumer, in
 * memory of the caller. Taken with the C11 memory model, which compiles to the same instructions
 * on x86 and which the thread sanitizer can see through. */
#pragma once

#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL 1
#endif
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base.h"

/* How much memory a ring takes.
 * items    a power of two; one less than this many fit
 * threads  any */
static inline size_t snapshot_ring_bytes(uint32_t item_bytes, uint32_t items)
{
    ASSERT(item_bytes % 4U == 0 && items >= 2 && (items & (items - 1U)) == 0);
    const size_t bytes = (size_t)rte_ring_get_memsize_elem(item_bytes, items);
    return (bytes + CACHE_LINE_BYTES - 1U) & ~(size_t)(CACHE_LINE_BYTES - 1U);
}

/* Lays an empty ring over memory.
 * memory   snapshot_ring_bytes, 64-byte aligned
 * threads  control */
static inline struct rte_ring *snapshot_ring_init(void *memory, uint32_t item_bytes, uint32_t items)
{
    ASSERT((uintptr_t)memory % CACHE_LINE_BYTES == 0);
    memset(memory, 0, snapshot_ring_bytes(item_bytes, items));
    struct rte_ring *ring = memory;
    const int code = rte_ring_init(ring, "snapshot", items, RING_F_SP_ENQ | RING_F_SC_DEQ);
    ASSERT(code == 0);
    return ring;
}

/* Hands an item over.
 * returns  false when the ring is full
 * threads  the producer only */
static inline bool snapshot_ring_push(struct rte_ring *ring, const void *item, uint32_t item_bytes)
{
    return rte_ring_sp_enqueue_bulk_elem(ring, item, item_bytes, 1, NULL) == 1;
}

/* Takes the oldest item.
 * returns  false when the ring is empty
 * threads  the consumer only */
static inline bool snapshot_ring_pop(struct rte_ring *ring, void *item, uint32_t item_bytes)
{
    return rte_ring_sc_dequeue_bulk_elem(ring, item, item_bytes, 1, NULL) == 1;
}
