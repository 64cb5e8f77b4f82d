/* SPDX-License-Identifier: Apache-2.0 */
/* OVER nodes that stand directly on each other, by the same key, become one node with several
 * frames: one lookup and one list a key instead of one a window. Runs on the finished plan. */
#pragma once

#include "control/sql/plan_internal.h"

/* Fuses what can be fused and numbers the nodes anew.
 * planning  its nodes and node_count change; what is kept by node id is void afterwards */
void plan_fuse(struct planning *planning);
