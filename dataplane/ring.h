/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of items from one lane to one other: an rte_ring with one producer and one consumer, in
 * memory of the caller, so that it works without DPDK's environment (replay, tests) as well.
 *
 * DPDK's ring is taken with the C11 memory model: on x86 it compiles to the same instructions as
 * the default, and the thread sanitizer can see its acquire and release pairs. */
#pragma once

#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL 1
#endif
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base.h"
#include "dataplane/parcel.h"

#define RING_ITEMS_MAX (UINT32_C(1) << 20)

/* Tells how much memory a ring takes.
 * items    a power of two, at most RING_ITEMS_MAX; one less than this many fit
 * threads  any */
static inline size_t ring_bytes(uint32_t items)
{
    ASSERT(items >= 2 && items <= RING_ITEMS_MAX);
    ASSERT((items & (items - 1)) == 0);
    return (size_t)rte_ring_get_memsize_elem(sizeof(struct item), items);
}

/* Lays an empty ring over memory.
 * memory   ring_bytes(items), 64-byte aligned; outlives the ring
 * threads  control, before the lanes start */
static inline struct rte_ring *ring_init(void *memory, uint32_t items)
{
    struct rte_ring *ring = memory;
    memset(memory, 0, ring_bytes(items));
    const int code = rte_ring_init(ring, "items", items, RING_F_SP_ENQ | RING_F_SC_DEQ);
    ASSERT(code == 0);
    return ring;
}

/* Hands an item over.
 * returns  false when the ring is full
 * threads  the producing lane only */
static inline bool ring_push(struct rte_ring *ring, struct item item)
{
    return rte_ring_sp_enqueue_bulk_elem(ring, &item, sizeof(item), 1, NULL) == 1;
}

/* Takes the oldest item.
 * returns  false when the ring is empty
 * threads  the consuming lane only */
static inline bool ring_pop(struct rte_ring *ring, struct item *out)
{
    return rte_ring_sc_dequeue_bulk_elem(ring, out, sizeof(*out), 1, NULL) == 1;
}

/* Tells how many items wait; a snapshot.
 * threads  producing and consuming lane */
static inline uint32_t ring_count(const struct rte_ring *ring)
{
    /* Relaxed: only the number is used; the items are guarded by push's and pop's own pairs. */
    const uint32_t tail = __atomic_load_n(&ring->prod.tail, __ATOMIC_RELAXED);
    return tail - __atomic_load_n(&ring->cons.tail, __ATOMIC_RELAXED);
}

/* Tells whether a push would fail; it cannot fail later, since only the consumer moves on.
 * threads  the producing lane only */
static inline bool ring_is_full(const struct rte_ring *ring)
{
    return ring_count(ring) >= ring->capacity;
}
