/* SPDX-License-Identifier: Apache-2.0 */
/* Placing nodes on lanes; the rules stand in placement.h. */
#include "dataplane/placement.h"

static uint64_t lane_bit(uint32_t lane)
{
    ASSERT(lane < PLACEMENT_LANES_MAX);
    return UINT64_C(1) << lane;
}

static uint64_t lowest(uint64_t lanes)
{
    ASSERT(lanes != 0);
    return lanes & (~lanes + 1);
}

/* The n-th lane of a set, counted round it. */
static uint64_t pick(uint64_t lanes, uint32_t n)
{
    uint32_t skip = n % (uint32_t)__builtin_popcountll(lanes);
    while (skip-- > 0) {
        lanes &= lanes - 1;
    }
    return lowest(lanes);
}

/* The transmit lane of one lane's output. */
static uint64_t transmit_of(const struct placement *placement, uint32_t lane)
{
    ASSERT(placement != NULL);
    if ((placement->transmit & lane_bit(lane)) != 0) {
        return lane_bit(lane);
    }
    return pick(placement->transmit, lane);
}

static uint64_t role_of(const struct placement *placement, const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    return node->operator== PLAN_SINK ? placement->transmit : placement->operate;
}

uint64_t placement_targets(const struct placement *placement, const struct plan_node *consumer,
                           uint32_t from)
{
    ASSERT(consumer->input_count <= PLAN_INPUTS_MAX);
    switch (consumer->distribution) {
    case PLAN_HASH:
        return role_of(placement, consumer);
    case PLAN_SINGLE:
        return lowest(role_of(placement, consumer));
    default:
        return consumer->operator== PLAN_SINK ? transmit_of(placement, from) : lane_bit(from);
    }
}

static uint64_t place(const struct placement *placement, const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        ASSERT(node->inputs[i] < node->id);
        const uint64_t senders = placement->nodes[node->inputs[i]];
        for (uint32_t from = placement_next(senders, 0); from < PLACEMENT_LANES_MAX;
             from = placement_next(senders, from + 1)) {
            lanes |= placement_targets(placement, node, from);
        }
    }
    return lanes;
}

void placement_init(struct placement *placement, const struct plan *plan)
{
    ASSERT(placement->receive != 0 && placement->operate != 0 && placement->transmit != 0);
    ASSERT(plan->node_count <= PLAN_NODES_MAX);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct plan_node *node = plan->nodes[i];
        placement->nodes[i] =
            node->operator== PLAN_SOURCE ? placement->receive : place(placement, node);
        ASSERT(placement->nodes[i] != 0);
    }
}

enum exchange_kind placement_kind(uint64_t targets, uint32_t from)
{
    if (targets == lane_bit(from)) {
        return EXCHANGE_DIRECT;
    }
    return lowest(targets) == targets ? EXCHANGE_LANE : EXCHANGE_HASH;
}
