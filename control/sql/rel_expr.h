/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions as trees: compare, rewrite, measure. All recursion is bounded by the depth that the
 * binder checks (EXPR_DEPTH_MAX). Control thread. */
#pragma once

#include <stdio.h>

#include "control/sql/memory.h"
#include "dataplane/expr/expr.h"
#include "dataplane/plan.h"

/* Tells whether two expressions are the same computation over the same columns. */
bool expr_is_same(const struct expr *a, const struct expr *b);

/* Writes an expression so that equal text means the same computation. */
void expr_define(FILE *into, const struct expr *expr);

/* Writes a type so that equal text means the same type. */
void type_define(FILE *into, const struct type *type);

/* Puts expressions in place of columns.
 * by       what column i becomes, count of them; columns past count stay */
const struct expr *expr_substitute(struct sql_memory *memory, const struct expr *expr,
                                   const struct expr *const *by, uint32_t count);

/* Makes a column reference. */
const struct expr *expr_column(struct sql_memory *memory, uint32_t column, struct type type);

/* Counts how often each column below count is read; uses[i] grows. */
void expr_count_columns(const struct expr *expr, uint32_t *uses, uint32_t count);

/* Tells the depth of the tree, 1 for a leaf. */
uint32_t expr_depth(const struct expr *expr);

/* Makes the literal NULL of a type. */
const struct expr *expr_null(struct sql_memory *memory, const struct type *type);

/* Makes a Boolean or other call without binding, for planner use (AND of conditions). */
const struct expr *expr_and(struct sql_memory *memory, const struct expr *a, const struct expr *b);
