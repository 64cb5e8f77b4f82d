/* SPDX-License-Identifier: Apache-2.0 */
/* Relations: the query as a graph before it becomes the plan. Each is made by one function here,
 * which derives its columns, time attribute, window, upsert key and kind of changes; equal
 * relations are one (rel_intern), so that what two statements both ask for is computed once.
 * Columns are leaves: a ROW is taken apart at the scan. Unused columns go later (prune.c). */
#pragma once

#include "base.h"
#include "control/sql/catalog.h"
#include "control/sql/session.h"
#include "dataplane/plan.h"

/* What a column is besides its type. Computing on a column loses it. */
enum rel_role {
    REL_PLAIN = 0,
    REL_ROWTIME = 1, /* a time attribute */
    REL_WINDOW_START = 2,
    REL_WINDOW_END = 4,
    REL_WINDOW_TIME = 8,
    REL_RANK = 16,     /* ROW_NUMBER and such: filtering it is a Top-N */
    REL_PROCTIME = 32, /* PROCTIME(): a processing-time attribute */
};

enum rel_kind {
    REL_SCAN = 0,
    REL_CALC,
    REL_UNION,
    REL_GROUP,
    REL_WINDOW,
    REL_WINDOW_ROWS,
    REL_OVER,
    REL_SINK,
};

struct rel_column {
    const char *name;
    struct type type;
    uint8_t roles; /* enum rel_role */
};

/* An OVER frame. */
struct rel_frame {
    bool is_rows;
    bool unbounded;
    int64_t preceding;
};

struct rel {
    enum rel_kind kind;
    uint32_t id;
    struct place at;
    struct rel **inputs; /* ids are smaller */
    uint32_t input_count;
    struct rel_column *columns;
    uint32_t column_count;
    int32_t time_column; /* the attribute that the rows' time_ms is; -1: none among the columns */
    const struct plan_window_spec *window; /* whose bounds the window columns are; NULL: none */
    bool updating;                         /* rows may be taken back */
    bool has_key;                          /* upsert key: key_columns may be none (one row) */
    uint32_t *key_columns;
    uint32_t key_column_count;
    const char *definition; /* equal text, equal relation */

    struct table *table;          /* SCAN, SINK */
    const struct expr *condition; /* CALC, or NULL */
    const struct expr **outputs;  /* CALC: column_count */
    uint32_t *group;              /* GROUP, WINDOW, OVER: input columns */
    uint32_t group_count;
    struct aggregate_call *calls;
    uint32_t call_count;
    uint32_t window_end;     /* WINDOW: input column, or UINT32_MAX */
    bool keeps_before_epoch; /* WINDOW: see plan.h */
    enum plan_window_column window_columns[3];
    uint32_t window_column_count;
    struct rel_frame frame; /* OVER */
    bool on_arrival;        /* OVER */
    uint64_t ttl_ms;        /* GROUP, OVER */
    uint32_t *sink_columns; /* SINK: input column of each persisted column */
    bool sink_key_matches;  /* SINK: each -U is followed by +U of its key */
};

/* Reads a table. */
struct rel *rel_scan(struct session *session, struct table *table);

struct rel_calc_spec {
    struct rel *input;
    const struct expr *condition; /* or NULL */
    const struct expr **outputs;
    const char **names;
    uint8_t *roles;
    uint32_t count;
    struct place at;
};

/* Filters and projects; melts into a Calc below where that repeats no work; a Calc that does
 * nothing is its input. */
struct rel *rel_calc(struct session *session, const struct rel_calc_spec *spec);

/* Unites relations of equal types. */
struct rel *rel_union(struct session *session, struct rel **inputs, uint32_t count,
                      struct place at);

/* Everything that GROUP, WINDOW and OVER have in common. */
struct rel_aggregate_spec {
    struct rel *input;
    uint32_t *group;
    uint32_t group_count;
    struct aggregate_call *calls;
    const char **call_names;
    uint32_t call_count;
    struct place at;
    uint64_t ttl_ms; /* how long state lives without a write, 0 for ever; not of windows */
};

/* Groups without a window: keys, then calls. */
struct rel *rel_group(struct session *session, const struct rel_aggregate_spec *spec);

/* Groups by window: keys, calls, window start, end and time.
 * window_end  input column that says the row's window, or UINT32_MAX: assign by the row's time
 * legacy      GROUP BY TUMBLE(…): windows before 1970 count */
struct rel *rel_window(struct session *session, const struct rel_aggregate_spec *spec,
                       const struct plan_window_spec *window, uint32_t window_end, bool legacy);

/* Adds window start, end and time to each row. */
struct rel *rel_window_rows(struct session *session, struct rel *input,
                            const struct plan_window_spec *window, struct place at);

/* Adds calls to each row; a rank call's column has REL_RANK. */
struct rel *rel_over(struct session *session, const struct rel_aggregate_spec *spec,
                     const struct rel_frame *frame, bool on_arrival);

/* Writes a relation to a table.
 * columns  the input column of each persisted column */
struct rel *rel_sink(struct session *session, struct rel *input, struct table *table,
                     uint32_t *columns, bool key_matches, struct place at);

/* A projection being gathered: equal expressions are one column. */
struct projection {
    struct session *session;
    struct rel *input;
    const struct expr *condition;
    struct ast_list exprs; /* struct expr */
    struct ast_list names; /* const char */
    struct place at;
};

/* Adds an expression over the input.
 * returns  its number */
uint32_t projection_add(struct projection *projection, const struct expr *expr, const char *name);

/* Ends it. Plain columns without a condition need no Calc.
 * columns  exprs.count of them, filled: where in the result each expression is
 * returns  the relation */
struct rel *projection_finish(struct projection *projection, uint32_t *columns);
