/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate calls as the plan holds them. The planner computes arguments and FILTER conditions into
 * columns first (a Calc below), so a call only names columns. Accumulators and their arithmetic are
 * in accumulator.h; GROUP BY, window and OVER operators share them. */
#pragma once

#include "base.h"
#include "dataplane/row.h"

#define AGGREGATE_COLUMN_NONE UINT32_MAX
#define AGGREGATE_CALLS_MAX   128 /* in one operator */

enum aggregate_function {
    AGGREGATE_COUNT = 0, /* argument AGGREGATE_COLUMN_NONE: COUNT(*) */
    AGGREGATE_SUM,
    AGGREGATE_MIN,
    AGGREGATE_MAX,
    AGGREGATE_AVG,
    AGGREGATE_FIRST_VALUE,
    AGGREGATE_LAST_VALUE,
    AGGREGATE_STDDEV_POP,
    AGGREGATE_STDDEV_SAMP,
    AGGREGATE_VAR_POP,
    AGGREGATE_VAR_SAMP,
    AGGREGATE_LISTAGG,
    AGGREGATE_ROW_NUMBER, /* OVER only, as are the rest */
    AGGREGATE_RANK,
    AGGREGATE_DENSE_RANK,
    AGGREGATE_LAG,
    AGGREGATE_FUNCTION_COUNT,
};

struct aggregate_call {
    enum aggregate_function function;
    bool distinct;
    uint32_t argument; /* input column, or AGGREGATE_COLUMN_NONE */
    uint32_t filter;   /* BOOLEAN input column: only rows where it is TRUE; or none */
    struct type argument_type;
    struct type result_type;
    uint32_t lag_offset;      /* LAG: rows back, 1 by default */
    struct value lag_default; /* LAG: of result_type, NULL by default */
    struct span separator;    /* LISTAGG: ',' by default */
};

/* Names a function as SQL does; checkpoints know it by this name.
 * threads  any */
const char *aggregate_function_name(enum aggregate_function function);
