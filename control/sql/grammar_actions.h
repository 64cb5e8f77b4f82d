/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of grammar.y do. Functions that can refuse answer false or NULL after
 * parse_fail; the rule then aborts. All are for the parser alone, on the control thread. */
#pragma once

#include "control/sql/parse.h"

/* Appends a copy of a name. */
void grammar_add_name(struct parse *parse, struct ast_list *list, struct ast_name name);

/* Starts a statement of a kind. */
struct ast_statement *grammar_statement(struct parse *parse, enum ast_statement_kind kind,
                                        struct place at);

/* Records the begin or end of a statement set; they must alternate. */
bool grammar_set_edge(struct parse *parse, enum ast_statement_kind kind, struct place at);

/* Names the table or view of a statement; only the default catalog and database exist. */
bool grammar_object(struct parse *parse, struct ast_statement *statement,
                    const struct ast_list *path);

/* Appends 'key' = 'value'. */
void grammar_option(struct parse *parse, struct ast_list *list, struct ast_name key,
                    struct ast_name value);

/* Appends NAME('key' = 'value', …) to the hints of a SELECT. */
void grammar_hint(struct parse *parse, struct ast_list *list, struct ast_name name,
                  struct ast_list options);

/* Starts a column of the table being read. */
struct ast_column *grammar_column(struct parse *parse, enum ast_column_kind kind,
                                  struct ast_name name);

/* Sets the watermark of the table being read; there is one at most. */
bool grammar_watermark(struct parse *parse, struct place at, struct ast_expr *expr);

/* Sets the primary key of the table being read; there is one at most. */
bool grammar_primary_key(struct parse *parse, struct place at, struct ast_list names);

/* Makes a type by name, in capitals. */
struct ast_type *grammar_type(struct parse *parse, struct place at, const char *name);

/* Adds a parameter, as of DECIMAL(10, 2). */
bool grammar_type_number(struct parse *parse, struct ast_type *type, struct ast_name number);

/* Counts the nesting of a type and refuses what is too deep. */
bool grammar_type_depth(struct parse *parse, struct ast_type *type);

/* Notes (n) of a time type, or that there is none. */
void grammar_precision(struct parse *parse, const struct ast_name *number);

/* Makes TIME, TIMESTAMP or TIMESTAMP_LTZ with the precision noted last. */
struct ast_type *grammar_time_type(struct parse *parse, struct place at, const char *name);

/* Names the interval type of a unit. */
const char *grammar_interval_type(const char *unit);

/* Appends a field of a ROW type. */
void grammar_type_field(struct parse *parse, struct ast_list *list, struct ast_name name,
                        struct ast_type *type);

/* Makes a query of one SELECT. */
struct ast_query *grammar_query(struct parse *parse, struct ast_select *select);

/* Joins two queries by UNION ALL. */
struct ast_query *grammar_union(struct parse *parse, struct ast_query *left,
                                struct ast_query *right);

/* Puts WITH before a query. */
void grammar_with(struct parse *parse, struct ast_query **query, struct ast_list with);

/* Appends one common table expression. */
void grammar_add_with(struct parse *parse, struct ast_list *list, struct ast_name name,
                      struct ast_list columns, struct ast_query *query);

/* Makes a SELECT with the GROUP BY noted last. */
struct ast_select *grammar_select(struct parse *parse, struct place at);

/* Notes GROUP BY; NULL: none. */
void grammar_group(struct parse *parse, const struct ast_list *list);

/* Makes an item of a SELECT list. */
struct ast_item *grammar_item(struct parse *parse, struct ast_expr *expr, struct ast_name alias);

/* Makes what stands in FROM. */
struct ast_from *grammar_from(struct parse *parse, enum ast_from_kind kind, struct place at,
                              struct ast_name alias);

/* Makes an argument of a table function. */
struct ast_table_argument *grammar_table_argument(struct parse *parse, struct place at);

/* Appends WINDOW name AS (…). */
void grammar_add_window(struct parse *parse, struct ast_list *list, struct ast_name name,
                        struct ast_window *window);

/* Makes an item of ORDER BY. */
struct ast_order *grammar_order(struct parse *parse, struct ast_expr *expr, bool descending,
                                struct place at);

/* Makes a window with a frame; AST_BOUND_NONE: without. */
struct ast_window *grammar_frame(struct parse *parse, bool is_rows, enum ast_bound from,
                                 enum ast_bound to);

/* Makes OVER name. */
struct ast_window *grammar_over_name(struct parse *parse, struct ast_name name, struct place at);

/* Makes a call of up to four arguments. */
struct ast_expr *grammar_call(struct parse *parse, struct place at, const char *name,
                              struct ast_expr *const arguments[4]);

/* Makes a call by the name that the script gives, in capitals. */
struct ast_expr *grammar_function(struct parse *parse, struct place at, struct ast_name name,
                                  const struct ast_list *arguments);

/* Refuses a tree that is too deep. */
bool grammar_depth_ok(struct parse *parse, const struct ast_expr *node);

/* Makes a name or path.* out of a path. */
struct ast_expr *grammar_name(struct parse *parse, enum ast_kind kind, struct place at,
                              const struct ast_list *path);

/* Makes a symbol of a word of the script, in capitals. */
struct ast_expr *grammar_symbol(struct parse *parse, struct ast_name name);

/* Makes a symbol of a fixed word. */
struct ast_expr *grammar_word(struct parse *parse, struct place at, const char *word);

/* Makes a text. */
struct ast_expr *grammar_text(struct parse *parse, struct place at, const char *text);

/* Notes which side TRIM works on. */
void grammar_set_side(struct parse *parse, const char *side);

/* Tells the side noted last. */
const char *grammar_side(const struct parse *parse);

/* Makes -x; a number keeps its minus, so that the smallest BIGINT can be written. */
struct ast_expr *grammar_negate(struct parse *parse, struct place at, struct ast_expr *operand);

/* Makes BETWEEN; SYMMETRIC becomes two of them. */
bool grammar_between(struct parse *parse, struct place at, bool symmetric,
                     struct ast_expr *const operands[3], struct ast_expr **out);

/* Makes x IN (items). */
struct ast_expr *grammar_in(struct parse *parse, struct place at, struct ast_expr *operand,
                            const struct ast_list *items);

/* Appends one WHEN: conditions (one, but for CASE x WHEN a, b) and the result. */
bool grammar_when(struct parse *parse, struct ast_list *list, const struct ast_list *conditions,
                  struct ast_expr *result);

/* Makes CASE; operand NULL: the searched form. */
bool grammar_case(struct parse *parse, struct place at, struct ast_expr *operand,
                  const struct ast_list *whens, struct ast_expr *otherwise, struct ast_expr **out);

/* Decodes U&'…' with its escapes. */
struct ast_expr *grammar_unicode(struct parse *parse, struct ast_name text,
                                 const struct ast_name *escape);

/* Makes an INTERVAL. */
struct ast_expr *grammar_interval(struct parse *parse, struct place at, struct ast_name text,
                                  struct ast_name from, const struct ast_name *to, bool negative);

/* Names what x[…] is: access to an element, or MAP[…]. */
const char *grammar_subscript(const struct ast_expr *node);

/* Reports a syntax error.
 * list      what was expected, or "" */
void grammar_syntax_error(struct parse *parse, struct place at, bool at_end, bool is_reserved,
                          const char *list);
