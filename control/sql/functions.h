/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and operators of Flink SQL: which exist, which argument types they take, what they
 * return, which casts they put in. The binder calls this with bound arguments; the result is a
 * typed tree for the plan. A function that Flink has and Penstock has not is refused by name.
 *
 * Special syntax reaches here as an ordinary call under these names (arguments in order; a SYMBOL
 * is a CHAR literal in capitals):
 *   "+ - * / %" binary, "NEGATE", "= <> < <= > >=", "AND OR NOT", "||" (also CONCAT)
 *   "IS NULL", "IS NOT NULL", "IS TRUE|FALSE|UNKNOWN", "IS NOT TRUE|FALSE|UNKNOWN",
 *   "IS DISTINCT FROM", "IS NOT DISTINCT FROM"
 *   "BETWEEN" x, low, high (NOT BETWEEN is NOT of it); "IN" x, item, item, …
 *   "LIKE" x, pattern[, escape]; "SIMILAR TO" likewise
 *   "CASE" condition, result, …, else (a simple CASE x WHEN y is rewritten to x = y by the binder)
 *   "CAST", "TRY_CAST" x with call->target
 *   "EXTRACT" SYMBOL unit, x; "FLOOR" x[, SYMBOL unit]; "CEIL" likewise
 *   "TRIM" SYMBOL BOTH|LEADING|TRAILING, characters, x; "SUBSTRING" x, from[, for];
 *   "POSITION" x, text; "OVERLAY" x, by, from[, for]
 *   "TIMESTAMPADD" SYMBOL unit, n, t; "TIMESTAMPDIFF" SYMBOL unit, a, b
 * Everything else is a call by its SQL name, compared without regard to case. */
#pragma once

#include "base.h"
#include "control/sql/memory.h"
#include "dataplane/expr/expr.h"
#include "dataplane/operator/aggregate.h"

struct function_call {
    const char *name;
    const struct expr *const *arguments; /* bound; argument_count of them */
    uint32_t argument_count;
    const struct type *target; /* CAST, TRY_CAST; else NULL */
    uint32_t line;             /* of the call, for errors */
    uint32_t column;
};

/* Types a scalar call and puts casts round its arguments.
 * out      lives in memory
 * returns  0, or -EINVAL with error naming the function and the types found (line and column set),
 *          or -ENOTSUP for a function of Flink's that is not built yet
 * threads  control */
int function_bind(struct sql_memory *memory, const struct function_call *call,
                  const struct expr **out, struct error *error);

/* Tells whether a name is that of an aggregate function (COUNT, SUM, …), OVER-only ones included.
 * threads  control */
bool function_is_aggregate(const char *name);

struct aggregate_bind_call {
    const char *name;
    const struct expr *const *arguments; /* none for COUNT(*) */
    uint32_t argument_count;
    bool distinct;
    bool is_over; /* in an OVER window: AVG of integers sums in the input type, LAG is legal */
    uint32_t line;
    uint32_t column;
};

/* Types an aggregate call. The argument's and filter's columns are left for the planner to fill
 * (AGGREGATE_COLUMN_NONE); function, types, LAG's and LISTAGG's constants are set.
 * argument  the expression to compute below, cast if need be; NULL for COUNT(*), ROW_NUMBER …
 * threads   control */
int aggregate_bind(struct sql_memory *memory, const struct aggregate_bind_call *call,
                   struct aggregate_call *out, const struct expr **argument, struct error *error);

/* Finds the common type of columns that meet (UNION, CASE, COALESCE, VALUES).
 * returns  0, or -EINVAL when there is none
 * threads  control */
int type_common(const struct type *types, uint32_t count, struct type *out);

/* Cuts and pads a text to the length of a column: CHAR and BINARY get exactly it, VARCHAR and
 * VARBINARY at most it. Other types, and those without a length, pass as they are.
 * returns  an expression of type to
 * threads  control */
const struct expr *cast_length(struct sql_memory *memory, const struct expr *from,
                               const struct type *to, struct error *error);

/* Casts an expression for assignment to a column, as INSERT does: only widening casts, else
 * -EINVAL with Flink's reason.
 * threads  control */
int cast_implicit(struct sql_memory *memory, const struct expr *from, const struct type *to,
                  const struct expr **out, struct error *error);
