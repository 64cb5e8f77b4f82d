/* SPDX-License-Identifier: Apache-2.0 */
/* What of the relations is needed: which relations, which of their columns, whether rows must
 * carry event time, and whether -U must flow. Needs of all sinks together, since what is shared
 * is computed once. */
#pragma once

#include "control/sql/rel.h"

struct need {
    bool reached;
    bool *columns;      /* column_count */
    bool time;          /* somebody works by event time */
    bool update_before; /* somebody wants -U */
};

/* Finds the needs of all relations.
 * returns  one a relation, by id
 * threads  control */
struct need *prune(struct session *session);

/* Tells whether a condition between an updating relation and this one may drop one half of an
 * update: then -U at the sink is a deletion.
 * threads  control */
bool prune_splits_updates(const struct rel *rel);
