/* SPDX-License-Identifier: Apache-2.0 */
/* Where the nodes of a plan run: which lanes have an instance of a node, and which instances of a
 * consumer an instance of its input sends to.
 *
 *     sources                  receive lanes
 *     forward nodes            where their inputs run: the stateless chain stays with its source
 *     hash, single             operate lanes, the first operate lane
 *     sinks                    transmit lanes: by hash, the first, or one fixed transmit lane for
 *                              each lane of the input, itself when it transmits */
#pragma once

#include "base.h"
#include "dataplane/exchange.h"
#include "dataplane/plan.h"

#define PLACEMENT_LANES_MAX 64

/* Sets of lanes are bit masks: bit n is lane n. */
struct placement {
    uint64_t receive;
    uint64_t operate;
    uint64_t transmit;
    uint64_t nodes[PLAN_NODES_MAX]; /* by node id */
};

/* Places every node.
 * placement  receive, operate and transmit are set, none is empty
 * threads    control */
void placement_init(struct placement *placement, const struct plan *plan);

/* Tells which instances of a consumer get what an instance of its input sends.
 * from     a lane of the input
 * threads  control */
uint64_t placement_targets(const struct placement *placement, const struct plan_node *consumer,
                           uint32_t from);

/* Tells what kind of edge leads to such targets.
 * threads  control */
enum exchange_kind placement_kind(uint64_t targets, uint32_t from);

/* The lowest lane of a set at or above `from`; PLACEMENT_LANES_MAX when there is none.
 * threads  any */
static inline uint32_t placement_next(uint64_t lanes, uint32_t from)
{
    const uint64_t rest = from >= 64 ? 0 : lanes & (UINT64_MAX << from);
    return rest == 0 ? PLACEMENT_LANES_MAX : (uint32_t)__builtin_ctzll(rest);
}
