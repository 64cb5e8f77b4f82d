/* SPDX-License-Identifier: Apache-2.0 */
/* The storage thread's side of a lane's snapshot: only rings and buffers are touched here. */
#include "state/snapshot_inner.h"
#include "state/snapshot_ring.h"

bool snapshot_order(struct snapshot *snapshot, uint64_t id, uint64_t base_id)
{
    ASSERT(id != 0 && base_id < id);
    const struct snapshot_order order = {.id = id, .base_id = base_id};
    return snapshot_ring_push(snapshot->orders, &order, sizeof(order));
}

bool snapshot_take(struct snapshot *snapshot, struct snapshot_news *out)
{
    ASSERT(out != NULL);
    if (!snapshot_ring_pop(snapshot->news, out, sizeof(*out))) {
        return false;
    }
    ASSERT(out->kind >= SNAPSHOT_NEWS_CUT && out->kind <= SNAPSHOT_NEWS_GIVEN_UP);
    ASSERT(out->kind != SNAPSHOT_NEWS_EXTENT || out->buffer < snapshot->config.buffer_count);
    return true;
}

uint8_t *snapshot_buffer(struct snapshot *snapshot, uint32_t buffer)
{
    ASSERT(buffer < snapshot->config.buffer_count);
    return (uint8_t *)snapshot->config.memory + (size_t)buffer * EXTENT_BYTES;
}

void snapshot_give(struct snapshot *snapshot, uint32_t buffer)
{
    ASSERT(buffer < snapshot->config.buffer_count);
    const bool is_given = snapshot_ring_push(snapshot->empties, &buffer, sizeof(buffer));
    ASSERT(is_given); /* it has room for all buffers */
}

bool snapshot_tell(struct snapshot *snapshot, const struct snapshot_outcome *outcome)
{
    ASSERT(outcome != NULL && outcome->id != 0);
    const struct snapshot_order order = {
        .id = outcome->id, .is_outcome = 1, .is_durable = outcome->is_durable};
    return snapshot_ring_push(snapshot->orders, &order, sizeof(order));
}
