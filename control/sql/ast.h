/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree of a script: what the grammar saw, without names resolved and without types.
 * Everything lives in the script's sql_memory, is written by the parser only, and points back to
 * its line and column. Trees are at most AST_DEPTH_MAX deep, so that whoever walks them may
 * recurse. */
#pragma once

#include "base.h"
#include "control/sql/memory.h"
#include "dataplane/expr/expr.h"

#define AST_DEPTH_MAX EXPR_DEPTH_MAX

/* Line and column in the script, from 1; 0 when something has no place. */
struct place {
    uint32_t line;
    uint32_t column;
};

/* A word or quoted name. */
struct ast_name {
    const char *text;
    struct place at;
};

/* A growing list of pointers. */
struct ast_list {
    void **items;
    uint32_t count;
    uint32_t capacity;
};

struct ast_expr;
struct ast_query;
struct ast_type;

enum ast_kind {
    AST_NUMBER = 0, /* text as written, with a minus in front when it had one */
    AST_TEXT,
    AST_BYTES, /* text holds the hexadecimal digits */
    AST_TRUE,
    AST_FALSE,
    AST_NULL,
    AST_UNKNOWN, /* BOOLEAN NULL */
    AST_DATE,
    AST_TIME,
    AST_TIMESTAMP,
    AST_INTERVAL,
    AST_NAME, /* path of names: column, table.column, row.field … */
    AST_STAR, /* *, or path.* */
    AST_CALL, /* functions.h lists how operators and special syntax are named */
    AST_SYMBOL,
    AST_ROW, /* (a, b): refused where it stands */
};

/* One end of a window frame. */
enum ast_bound {
    AST_BOUND_NONE = 0,
    AST_UNBOUNDED_PRECEDING,
    AST_PRECEDING, /* value before */
    AST_CURRENT_ROW,
    AST_FOLLOWING,
    AST_UNBOUNDED_FOLLOWING,
};

/* One item of ORDER BY. */
struct ast_order {
    struct ast_expr *expr;
    bool descending;
    struct place at;
};

/* A window: of OVER (…), or of WINDOW name AS (…). */
struct ast_window {
    struct ast_name base; /* OVER name, or text NULL */
    struct ast_list partition;
    struct ast_list order; /* struct ast_order */
    bool has_frame;
    bool is_rows;
    enum ast_bound from;
    struct ast_expr *from_value;
    enum ast_bound to;
    struct ast_expr *to_value;
    struct place at;
};

/* WINDOW name AS (…). */
struct ast_named_window {
    struct ast_name name;
    struct ast_window *window;
};

struct ast_expr {
    enum ast_kind kind;
    uint32_t depth; /* of the tree below, 1 for a leaf */
    struct place at;
    const char *text; /* of a literal, symbol or call's name */
    uint32_t bytes;   /* of text */
    struct ast_name *path;
    uint32_t path_count;
    struct ast_expr **arguments; /* AST_CALL */
    uint32_t argument_count;
    struct ast_type *target; /* CAST, TRY_CAST */
    bool distinct;
    bool star; /* COUNT(*) */
    struct ast_expr *filter;
    struct ast_window *over;
    const char *unit_from; /* AST_INTERVAL */
    const char *unit_to;   /* or NULL */
};

struct ast_type_field {
    struct ast_name name;
    struct ast_type *type;
};

struct ast_type {
    const char *name; /* in capitals: "VARCHAR", "TIMESTAMP_LTZ", "ARRAY", "ROW" … */
    struct place at;
    uint32_t depth;
    uint32_t parameter_count;
    uint32_t parameters[2];
    bool not_null;
    struct ast_type *element; /* ARRAY, MULTISET, value of MAP */
    struct ast_type *key;     /* MAP */
    struct ast_list fields;   /* ROW: struct ast_type_field */
};

/* One item of a SELECT list. */
struct ast_item {
    struct ast_expr *expr;
    struct ast_name alias; /* text NULL: none */
};

enum ast_from_kind {
    AST_FROM_TABLE = 0,
    AST_FROM_QUERY,
    AST_FROM_FUNCTION, /* TABLE(TUMBLE(…)) */
};

/* One argument of a table function. */
struct ast_table_argument {
    struct ast_name label;      /* NAME =>, or text NULL */
    struct ast_expr *expr;      /* an interval, or NULL */
    struct ast_list descriptor; /* struct ast_name; count 0: none */
    struct ast_list table;      /* TABLE name: path of struct ast_name */
    struct ast_query *query;    /* TABLE (query), or NULL */
    struct place at;
};

struct ast_from {
    enum ast_from_kind kind;
    struct place at;
    struct ast_list path; /* struct ast_name */
    struct ast_query *query;
    struct ast_name function;
    struct ast_list arguments; /* struct ast_table_argument */
    struct ast_name alias;
    struct ast_list columns; /* struct ast_name, of AS t (a, b) */
};

/* NAME('key' = 'value', …) of a comment that opens with a plus. */
struct ast_hint {
    struct ast_name name;
    struct ast_list options; /* struct ast_option */
};

struct ast_select {
    struct place at;
    struct ast_list hints; /* struct ast_hint */
    bool distinct;
    struct ast_list items; /* struct ast_item */
    struct ast_from *from; /* NULL: SELECT without FROM */
    struct ast_expr *where;
    struct ast_list group; /* struct ast_expr */
    bool has_group;
    struct ast_expr *having;
    struct ast_list windows; /* struct ast_named_window */
};

/* One common table expression. */
struct ast_with {
    struct ast_name name;
    struct ast_list columns;
    struct ast_query *query;
};

/* A query: one SELECT, or several joined by UNION ALL; with the CTEs that stand before it. */
struct ast_query {
    struct place at;
    uint32_t depth;
    struct ast_list with;      /* struct ast_with */
    struct ast_select *select; /* or NULL: then branches */
    struct ast_list branches;  /* struct ast_query: UNION ALL */
};

enum ast_column_kind {
    AST_COLUMN_PHYSICAL = 0,
    AST_COLUMN_COMPUTED,
    AST_COLUMN_METADATA,
};

struct ast_column {
    enum ast_column_kind kind;
    struct ast_name name;
    struct ast_type *type;
    struct ast_expr *expr;    /* computed */
    struct ast_name metadata; /* FROM 'key'; text NULL: the column's own name */
    bool is_virtual;
    bool is_primary_key;
    bool not_null;
};

/* One 'key' = 'value'. */
struct ast_option {
    struct ast_name key;
    struct ast_name value;
};

enum ast_statement_kind {
    AST_SET = 0,
    AST_CREATE_TABLE,
    AST_CREATE_VIEW,
    AST_INSERT,
    AST_BEGIN_SET, /* EXECUTE STATEMENT SET BEGIN */
    AST_END_SET,
};

enum ast_conflict {
    AST_CONFLICT_NONE = 0,
    AST_CONFLICT_DEDUPLICATE,
    AST_CONFLICT_NOTHING,
    AST_CONFLICT_ERROR,
};

struct ast_statement {
    enum ast_statement_kind kind;
    struct place at;
    struct ast_option option; /* SET */
    struct ast_name name;     /* of the table or view */
    bool if_not_exists;
    struct ast_list columns;   /* CREATE TABLE: struct ast_column; VIEW, INSERT: ast_name */
    struct ast_list watermark; /* of the column's path: struct ast_name; count 0: none */
    struct ast_expr *watermark_expr;
    struct ast_list primary_key; /* struct ast_name */
    struct place primary_key_at;
    struct ast_list options; /* struct ast_option */
    struct ast_query *query;
    enum ast_conflict conflict;
    struct place conflict_at;
};

/* Appends to a list.
 * threads  control */
void ast_append(struct sql_memory *memory, struct ast_list *list, void *item);

/* Makes a leaf or an empty node of a kind.
 * threads  control */
struct ast_expr *ast_expr(struct sql_memory *memory, enum ast_kind kind, struct place at,
                          const char *text, size_t bytes);

/* Makes a call of up to four arguments; those that are NULL at the end are left out.
 * threads  control */
struct ast_expr *ast_call(struct sql_memory *memory, struct place at, const char *name,
                          struct ast_expr *const arguments[4]);

/* Makes a call from a list of struct ast_expr.
 * threads  control */
struct ast_expr *ast_call_list(struct sql_memory *memory, struct place at, const char *name,
                               const struct ast_list *arguments);
