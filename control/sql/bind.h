/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: names become columns, calls become typed expressions, queries become relations.
 *
 * Aggregates, OVER calls and the bounds of a GROUP BY window stand in a bound expression as
 * columns with numbers no relation has (BIND_*_FIRST + i) until their relation exists; then
 * bind_replace puts in what they became. */
#pragma once

#include "base.h"
#include "control/sql/catalog.h"
#include "control/sql/functions.h"
#include "control/sql/rel.h"
#include "control/sql/session.h"

#define BIND_AGGREGATE_FIRST UINT32_C(0x01000000)
#define BIND_OVER_FIRST      UINT32_C(0x02000000)
#define BIND_WINDOW_FIRST    UINT32_C(0x03000000) /* + enum plan_window_column */

/* The one table that FROM names, as expressions see it. */
struct scope {
    const char *alias; /* NULL: none */
    struct relation relation;
};

/* Common table expressions in sight; the inner ones come first. */
struct cte {
    const char *name;
    struct relation relation;
    const struct cte *next;
};

/* An aggregate call found in an expression. */
struct bound_aggregate {
    struct aggregate_call call;
    const struct expr *argument; /* over the input; NULL: none */
    const struct expr *filter;
    const char *name;
    const char *alias; /* of the item that is the call itself; NULL: none */
};

/* An OVER window with its names bound. */
struct bound_window {
    const struct expr **partition;
    uint32_t partition_count;
    uint32_t order_column; /* of the input */
    struct rel_frame frame;
    struct place at;
};

/* An OVER call found in an expression. */
struct bound_over {
    struct bound_aggregate aggregate;
    struct bound_window window;
};

/* GROUP BY TUMBLE(…) and its like. */
struct legacy_window {
    const char *name; /* "TUMBLE", "HOP" */
    struct plan_window_spec spec;
    uint32_t time_column;
    struct place at;
};

struct binder {
    struct session *session;
    const struct scope *scope; /* NULL: no columns in sight */
    const char *place_name;    /* for messages: "WHERE", "a computed column" */
    bool takes_aggregates;
    bool takes_over;
    bool in_aggregate;              /* inside of an aggregate's arguments */
    const struct ast_list *windows; /* WINDOW name AS (…) */
    struct ast_list aggregates;     /* struct bound_aggregate */
    struct ast_list overs;          /* struct bound_over */
    const struct legacy_window *legacy;
    uint64_t ttl_ms; /* of the state of GROUP BY; 0: never expires */
    uint32_t depth;
};

/* Binds an expression.
 * roles    NULL, or filled: what a plain column is besides its type (enum rel_role)
 * threads  control */
int bind_expression(struct binder *binder, const struct ast_expr *ast, const struct expr **out,
                    uint8_t *roles);

/* Binds a condition: BOOLEAN.
 * threads  control */
int bind_condition(struct binder *binder, const struct ast_expr *ast, const struct expr **out);

/* Binds a literal.
 * threads  control */
int bind_literal(struct session *session, const struct ast_expr *ast, const struct expr **out);

/* Evaluates an INTERVAL literal to milliseconds.
 * threads  control */
int bind_interval_ms(struct session *session, const struct ast_expr *ast, int64_t *out_ms);

/* Reads the hints of a SELECT.
 * groups   whether it has state that a hint can be for
 * ttl_ms   set to how long state of this SELECT lives, 0 for ever
 * threads  control */
int bind_hints(struct session *session, const struct ast_select *select, const struct scope *scope,
               bool groups, uint64_t *ttl_ms);

/* Resolves a path of names.
 * returns  0 and the field; -EINVAL with the nearest name in the message
 * threads  control */
int scope_resolve(struct session *session, const struct scope *scope, const struct ast_expr *name,
                  const struct field **out);

/* Binds an aggregate call outside of OVER; answers a column of BIND_AGGREGATE_FIRST.
 * threads  control */
int bind_aggregate_call(struct binder *binder, const struct ast_expr *ast, const struct expr **out);

/* Binds a call with OVER; answers a column of BIND_OVER_FIRST.
 * threads  control */
int bind_over_call(struct binder *binder, const struct ast_expr *ast, const struct expr **out);

/* Binds arguments, FILTER and type of an aggregate or OVER call.
 * threads  control */
int bind_aggregate_arguments(struct binder *binder, const struct ast_expr *ast, bool is_over,
                             struct bound_aggregate *out);

/* What a placeholder or a group key became. */
struct replacement {
    const struct expr *from; /* NULL: a placeholder */
    uint32_t placeholder;
    uint32_t column;
    struct type type;
};

struct replacing {
    struct session *session;
    const struct replacement *replacements;
    uint32_t count;
    const char *const *column_names; /* of the input, for messages */
    uint32_t column_count;
    bool keeps_columns; /* other columns stay; else they are an error: not grouped */
    struct place at;
};

/* Puts columns in place of placeholders and group keys.
 * threads  control */
int bind_replace(const struct replacing *replacing, const struct expr *expr,
                 const struct expr **out);

/* Binds a query.
 * threads  control */
int bind_query(struct session *session, const struct ast_query *query, const struct cte *ctes,
               struct relation *out);

/* Names the columns of a relation anew, as of AS t (a, b) or CREATE VIEW v (a, b).
 * threads  control */
int bind_rename(struct session *session, const struct ast_list *names, struct place at,
                struct relation *relation);

/* Binds what stands in FROM.
 * threads  control */
int bind_from(struct session *session, const struct ast_from *from, const struct cte *ctes,
              struct scope *out);

/* Finds a table, view or CTE.
 * threads  control */
int bind_name(struct session *session, const struct ast_list *path, const struct cte *ctes,
              struct relation *out);

/* Binds TABLE(TUMBLE(…)) and its like.
 * threads  control */
int bind_window_function(struct session *session, const struct ast_from *from,
                         const struct cte *ctes, struct relation *out);

/* Reads GROUP BY TUMBLE(…), if that is what the expression is.
 * returns  0; out->name stays NULL when it is something else
 * threads  control */
int bind_legacy_window(struct session *session, const struct scope *scope,
                       const struct ast_expr *ast, struct legacy_window *out);

/* Checks a window's times and whether the column is a time attribute that rows carry.
 * threads  control */
int bind_window_check(struct session *session, const struct rel *rel, uint32_t column,
                      struct place at);

/* The items of one SELECT, bound. */
struct selection {
    struct session *session;
    struct place at;
    struct ast_list exprs;  /* struct expr */
    struct ast_list fields; /* struct field: what the user sees; leaves count over exprs */
    uint8_t *roles;
    uint32_t role_capacity;
};

/* Appends one output column.
 * threads  control */
void selection_add(struct selection *selection, const struct expr *expr, uint8_t roles);

/* Plans the aggregation below a SELECT: keys, calls, window; then rewrites the selection and
 * HAVING to read its output.
 * threads  control */
int bind_grouping(struct binder *binder, const struct ast_select *select,
                  const struct expr *condition, struct selection *selection,
                  const struct expr **having, struct rel **out);

/* Plans the OVER node below a SELECT and rewrites the selection to read its output.
 * threads  control */
int bind_overs(struct binder *binder, struct rel *input, const struct expr *condition,
               struct selection *selection, struct rel **out);

/* Groups a relation by all its columns: SELECT DISTINCT.
 * ttl_ms   how long the state lives without a write, 0 for ever
 * threads  control */
int bind_distinct(struct session *session, struct place at, uint64_t ttl_ms,
                  struct relation *relation);

/* Binds INSERT INTO.
 * threads  control */
int bind_insert(struct session *session, const struct ast_statement *statement);
