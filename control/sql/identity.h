/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of plan nodes: the names under which a checkpoint keeps state and facts, so that a
 * changed script finds again what it still can use. A node's identity is a hash of what decides its
 * state: operator, key, calls, frames, types, and how the rows and columns that it reads came
 * about. Columns count by what they hold, not by place or name, so that another SELECT list,
 * another CASE or another sink above leaves a node what it was.
 *
 * Equal nodes are told apart by their order. Runs on the finished plan. */
#pragma once

#include "control/sql/plan_internal.h"

/* Gives each node its identity.
 * planning  its nodes are numbered for good */
void plan_identify(struct planning *planning);
