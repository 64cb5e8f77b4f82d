/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the grammar's actions on statements, tables, types and queries; see
 * grammar_actions.h. Those on expressions are in grammar_expressions.c. */
#include "control/sql/grammar_actions.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define DEFAULT_CATALOG  "default_catalog"
#define DEFAULT_DATABASE "default_database"

void grammar_add_name(struct parse *parse, struct ast_list *list, struct ast_name name)
{
    ASSERT(parse != NULL);
    ASSERT(name.text != NULL);
    struct ast_name *copy = sql_allocate(parse->memory, sizeof(*copy));
    *copy = name;
    ast_append(parse->memory, list, copy);
}

struct ast_statement *grammar_statement(struct parse *parse, enum ast_statement_kind kind,
                                        struct place at)
{
    ASSERT(parse != NULL);
    ASSERT(at.line > 0);
    struct ast_statement *statement = sql_allocate(parse->memory, sizeof(*statement));
    statement->kind = kind;
    statement->at = at;
    return statement;
}

bool grammar_set_edge(struct parse *parse, enum ast_statement_kind kind, struct place at)
{
    ASSERT(parse != NULL);
    ASSERT(kind == AST_BEGIN_SET || kind == AST_END_SET);
    const bool begins = kind == AST_BEGIN_SET;
    if (begins == parse->in_set) {
        (void)parse_fail(parse, -EINVAL, at, "%s",
                         begins ? "a statement set stands inside of another" : "END without BEGIN");
        return false;
    }
    parse->in_set = begins;
    ast_append(parse->memory, &parse->statements, grammar_statement(parse, kind, at));
    return true;
}

bool grammar_object(struct parse *parse, struct ast_statement *statement,
                    const struct ast_list *path)
{
    ASSERT(parse != NULL);
    ASSERT(statement != NULL);
    ASSERT(path->count >= 1);
    const struct ast_name *last = path->items[path->count - 1];
    statement->name = *last;
    for (uint32_t i = 0; i + 1 < path->count; i++) {
        const struct ast_name *part = path->items[i];
        if (strcmp(part->text, DEFAULT_CATALOG) != 0 && strcmp(part->text, DEFAULT_DATABASE) != 0) {
            (void)parse_fail(parse, -ENOTSUP, part->at,
                             "'%s' is not known: there is one catalog (%s) and one database (%s)",
                             part->text, DEFAULT_CATALOG, DEFAULT_DATABASE);
            return false;
        }
    }
    return true;
}

void grammar_option(struct parse *parse, struct ast_list *list, struct ast_name key,
                    struct ast_name value)
{
    ASSERT(parse != NULL);
    ASSERT(key.text != NULL && value.text != NULL);
    struct ast_option *option = sql_allocate(parse->memory, sizeof(*option));
    *option = (struct ast_option){.key = key, .value = value};
    ast_append(parse->memory, list, option);
}

void grammar_hint(struct parse *parse, struct ast_list *list, struct ast_name name,
                  struct ast_list options)
{
    ASSERT(parse != NULL);
    ASSERT(name.text != NULL);
    struct ast_hint *hint = sql_allocate(parse->memory, sizeof(*hint));
    *hint = (struct ast_hint){.name = name, .options = options};
    ast_append(parse->memory, list, hint);
}

struct ast_column *grammar_column(struct parse *parse, enum ast_column_kind kind,
                                  struct ast_name name)
{
    ASSERT(parse != NULL);
    ASSERT(name.text != NULL);
    struct ast_column *column = sql_allocate(parse->memory, sizeof(*column));
    column->kind = kind;
    column->name = name;
    return column;
}

bool grammar_watermark(struct parse *parse, struct place at, struct ast_expr *expr)
{
    ASSERT(parse != NULL);
    ASSERT(parse->table != NULL);
    if (parse->table->watermark_expr != NULL) {
        (void)parse_fail(parse, -EINVAL, at, "table %s has a WATERMARK already",
                         parse->table->name.text);
        return false;
    }
    parse->table->watermark_expr = expr;
    return true;
}

bool grammar_primary_key(struct parse *parse, struct place at, struct ast_list names)
{
    ASSERT(parse != NULL);
    ASSERT(parse->table != NULL);
    if (parse->table->primary_key.count != 0) {
        (void)parse_fail(parse, -EINVAL, at, "table %s has a PRIMARY KEY already",
                         parse->table->name.text);
        return false;
    }
    parse->table->primary_key = names;
    parse->table->primary_key_at = at;
    return true;
}

struct ast_type *grammar_type(struct parse *parse, struct place at, const char *name)
{
    ASSERT(parse != NULL);
    ASSERT(name != NULL);
    struct ast_type *type = sql_allocate(parse->memory, sizeof(*type));
    char *upper = sql_copy_text(parse->memory, name, strlen(name));
    for (char *c = upper; *c != 0; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    type->name = upper;
    type->at = at;
    type->depth = 1;
    return type;
}

bool grammar_type_number(struct parse *parse, struct ast_type *type, struct ast_name number)
{
    ASSERT(parse != NULL);
    ASSERT(type != NULL);
    ASSERT(type->parameter_count < COUNT_OF(type->parameters));
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(number.text, &end, 10);
    if (errno != 0 || value > INT32_MAX || *end != 0) {
        (void)parse_fail(parse, -EINVAL, number.at, "%s is too large for a length or precision",
                         number.text);
        return false;
    }
    type->parameters[type->parameter_count++] = (uint32_t)value;
    return true;
}

bool grammar_type_depth(struct parse *parse, struct ast_type *type)
{
    ASSERT(parse != NULL);
    ASSERT(type != NULL);
    ASSERT(type->depth >= 1);
    uint32_t below = type->element == NULL ? 0 : type->element->depth;
    if (type->key != NULL && type->key->depth > below) {
        below = type->key->depth;
    }
    for (uint32_t i = 0; i < type->fields.count; i++) {
        const struct ast_type_field *field = type->fields.items[i];
        below = field->type->depth > below ? field->type->depth : below;
    }
    type->depth = below + 1;
    if (type->depth > AST_DEPTH_MAX) {
        (void)parse_fail(parse, -E2BIG, type->at, "a type is nested deeper than %d", AST_DEPTH_MAX);
        return false;
    }
    return true;
}

void grammar_precision(struct parse *parse, const struct ast_name *number)
{
    ASSERT(parse != NULL);
    ASSERT(number == NULL || number->text != NULL);
    parse->precision = number == NULL ? (struct ast_name){0} : *number;
}

struct ast_type *grammar_time_type(struct parse *parse, struct place at, const char *name)
{
    ASSERT(parse != NULL);
    struct ast_type *type = grammar_type(parse, at, name);
    ASSERT(type != NULL);
    if (parse->precision.text != NULL && !grammar_type_number(parse, type, parse->precision)) {
        return NULL;
    }
    return type;
}

const char *grammar_interval_type(const char *unit)
{
    ASSERT(unit != NULL);
    return strcasecmp(unit, "YEAR") == 0 || strcasecmp(unit, "MONTH") == 0 ? "INTERVAL_YEAR_MONTH"
                                                                           : "INTERVAL_DAY_TIME";
}

void grammar_type_field(struct parse *parse, struct ast_list *list, struct ast_name name,
                        struct ast_type *type)
{
    ASSERT(parse != NULL);
    ASSERT(type != NULL);
    struct ast_type_field *field = sql_allocate(parse->memory, sizeof(*field));
    *field = (struct ast_type_field){.name = name, .type = type};
    ast_append(parse->memory, list, field);
}

static bool query_depth_ok(struct parse *parse, const struct ast_query *query)
{
    ASSERT(parse != NULL);
    ASSERT(query->depth >= 1);
    if (query->depth > AST_DEPTH_MAX) {
        (void)parse_fail(parse, -E2BIG, query->at, "queries are nested deeper than %d",
                         AST_DEPTH_MAX);
        return false;
    }
    return true;
}

struct ast_query *grammar_query(struct parse *parse, struct ast_select *select)
{
    ASSERT(parse != NULL);
    ASSERT(select != NULL);
    struct ast_query *query = sql_allocate(parse->memory, sizeof(*query));
    query->at = select->at;
    query->select = select;
    query->depth = 1;
    if (select->from == NULL) {
        return query;
    }
    const struct ast_from *from = select->from;
    if (from->query != NULL) {
        query->depth = from->query->depth + 1;
    }
    for (uint32_t i = 0; i < from->arguments.count; i++) {
        const struct ast_table_argument *argument = from->arguments.items[i];
        if (argument->query != NULL && argument->query->depth >= query->depth) {
            query->depth = argument->query->depth + 1;
        }
    }
    return query_depth_ok(parse, query) ? query : NULL;
}

struct ast_query *grammar_union(struct parse *parse, struct ast_query *left,
                                struct ast_query *right)
{
    ASSERT(parse != NULL);
    ASSERT(left != NULL && right != NULL);
    struct ast_query *query = left;
    if (left->branches.count == 0 || left->with.count != 0) {
        query = sql_allocate(parse->memory, sizeof(*query));
        query->at = left->at;
        query->depth = left->depth + 1;
        ast_append(parse->memory, &query->branches, left);
    }
    ast_append(parse->memory, &query->branches, right);
    query->depth = right->depth + 1 > query->depth ? right->depth + 1 : query->depth;
    return query_depth_ok(parse, query) ? query : NULL;
}

void grammar_with(struct parse *parse, struct ast_query **query, struct ast_list with)
{
    ASSERT(query != NULL);
    ASSERT(parse != NULL);
    ASSERT(with.count != 0);
    if ((*query)->with.count != 0) {
        struct ast_query *outer = sql_allocate(parse->memory, sizeof(*outer));
        outer->at = (*query)->at;
        outer->depth = (*query)->depth;
        ast_append(parse->memory, &outer->branches, *query);
        *query = outer;
    }
    (*query)->with = with;
    for (uint32_t i = 0; i < with.count; i++) {
        const struct ast_with *item = with.items[i];
        if (item->query->depth >= (*query)->depth) {
            (*query)->depth = item->query->depth + 1;
        }
    }
}

void grammar_add_with(struct parse *parse, struct ast_list *list, struct ast_name name,
                      struct ast_list columns, struct ast_query *query)
{
    ASSERT(parse != NULL);
    ASSERT(query != NULL);
    struct ast_with *item = sql_allocate(parse->memory, sizeof(*item));
    *item = (struct ast_with){.name = name, .columns = columns, .query = query};
    ast_append(parse->memory, list, item);
}

struct ast_select *grammar_select(struct parse *parse, struct place at)
{
    ASSERT(parse != NULL);
    ASSERT(at.line > 0);
    struct ast_select *select = sql_allocate(parse->memory, sizeof(*select));
    select->at = at;
    select->group = parse->group;
    select->has_group = parse->has_group;
    return select;
}

void grammar_group(struct parse *parse, const struct ast_list *list)
{
    ASSERT(parse != NULL);
    ASSERT(list == NULL || list->count != 0);
    parse->has_group = list != NULL;
    parse->group = list == NULL ? (struct ast_list){0} : *list;
}

struct ast_item *grammar_item(struct parse *parse, struct ast_expr *expr, struct ast_name alias)
{
    ASSERT(parse != NULL);
    ASSERT(expr != NULL);
    struct ast_item *item = sql_allocate(parse->memory, sizeof(*item));
    *item = (struct ast_item){.expr = expr, .alias = alias};
    return item;
}

struct ast_from *grammar_from(struct parse *parse, enum ast_from_kind kind, struct place at,
                              struct ast_name alias)
{
    ASSERT(parse != NULL);
    ASSERT(at.line > 0);
    struct ast_from *from = sql_allocate(parse->memory, sizeof(*from));
    *from = (struct ast_from){.kind = kind, .at = at, .alias = alias};
    return from;
}

struct ast_table_argument *grammar_table_argument(struct parse *parse, struct place at)
{
    ASSERT(parse != NULL);
    ASSERT(at.line > 0);
    struct ast_table_argument *argument = sql_allocate(parse->memory, sizeof(*argument));
    argument->at = at;
    return argument;
}

void grammar_add_window(struct parse *parse, struct ast_list *list, struct ast_name name,
                        struct ast_window *window)
{
    ASSERT(parse != NULL);
    ASSERT(window != NULL);
    struct ast_named_window *named = sql_allocate(parse->memory, sizeof(*named));
    *named = (struct ast_named_window){.name = name, .window = window};
    ast_append(parse->memory, list, named);
}

struct ast_order *grammar_order(struct parse *parse, struct ast_expr *expr, bool descending,
                                struct place at)
{
    ASSERT(parse != NULL);
    ASSERT(expr != NULL);
    struct ast_order *order = sql_allocate(parse->memory, sizeof(*order));
    *order = (struct ast_order){.expr = expr, .descending = descending, .at = at};
    return order;
}

struct ast_window *grammar_frame(struct parse *parse, bool is_rows, enum ast_bound from,
                                 enum ast_bound to)
{
    ASSERT(parse != NULL);
    ASSERT((from == AST_BOUND_NONE) == (to == AST_BOUND_NONE));
    struct ast_window *window = sql_allocate(parse->memory, sizeof(*window));
    window->has_frame = from != AST_BOUND_NONE;
    window->is_rows = is_rows;
    window->from = from;
    window->to = to;
    return window;
}

struct ast_window *grammar_over_name(struct parse *parse, struct ast_name name, struct place at)
{
    ASSERT(parse != NULL);
    struct ast_window *window = grammar_frame(parse, false, AST_BOUND_NONE, AST_BOUND_NONE);
    ASSERT(!window->has_frame);
    window->base = name;
    window->at = at;
    return window;
}
