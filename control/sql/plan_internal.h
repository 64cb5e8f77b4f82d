/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that turn relations into plan nodes share. */
#pragma once

#include "control/sql/prune.h"
#include "control/sql/rel.h"

/* The plan being made. */
struct planning {
    struct session *session;
    const struct need *needs;
    struct plan_node **nodes; /* by node id */
    uint32_t node_count;
    uint32_t *node_of;          /* by relation id */
    uint32_t **column_of;       /* by relation id: old column to new; UINT32_MAX: dropped */
    struct key_columns *spread; /* by node id: columns that its rows are spread by */
    bool *is_spread;            /* by node id: spread says something (none: one lane) */
};

/* Fills layout and names of a node from the columns that are kept.
 * returns  0, or -ENOTSUP for a column of a type that cannot travel */
int plan_columns(struct planning *planning, struct plan_node *node, const struct rel *rel,
                 const bool *keep);

/* Makes a layout of types. */
struct row_layout plan_layout(struct session *session, const struct type *types, uint32_t count);

/* Names a kind of window as SQL does; checkpoints know it by this name. */
const char *plan_window_name(enum plan_window_kind kind);

/* Fills the body of a source. */
int plan_scan(struct planning *planning, struct plan_node *node, const struct rel *rel);

/* Fills the body of a sink. */
int plan_sink(struct planning *planning, struct plan_node *node, const struct rel *rel);

/* Rewrites an expression over a relation's columns to the columns that its node has. */
const struct expr *plan_expr(struct planning *planning, const struct rel *input,
                             const struct expr *expr);

/* Maps columns of a relation to those of its node. */
struct key_columns plan_key(struct planning *planning, const struct rel *input,
                            const uint32_t *columns, uint32_t count);
