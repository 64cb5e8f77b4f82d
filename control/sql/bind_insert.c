/* SPDX-License-Identifier: Apache-2.0 */
/* INSERT INTO: columns are filled by position, with widening casts only; what the sink can take is
 * checked (updates, keys, time attributes) with Flink's reasons. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/bind.h"
#include "control/sql/functions.h"
#include "control/sql/rel_expr.h"

/* Computed and virtual columns are not written. */
static bool is_persisted(const struct table_column *column)
{
    ASSERT(column->name.text != NULL);
    return column->kind == AST_COLUMN_PHYSICAL ||
           (column->kind == AST_COLUMN_METADATA && !column->is_virtual);
}

static int check_sink_type(struct session *session, const struct table_column *column,
                           struct place at)
{
    ASSERT(column->name.text != NULL);
    ASSERT(session != NULL);
    const enum type_kind kind = column->type.kind;
    if (kind == TYPE_ROW || kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_MULTISET) {
        char text[TYPE_PRINT_BYTES];
        return sql_fail(session, -ENOTSUP, at,
                        "column `%s` is %s: writing ROW, ARRAY, MAP and MULTISET is not supported "
                        "yet",
                        column->name.text, type_print(&column->type, text));
    }
    if (column->kind == AST_COLUMN_METADATA &&
        (column->is_headers || column->metadata != PLAN_METADATA_TIMESTAMP)) {
        return sql_fail(session, -ENOTSUP, at,
                        "writing the metadata column `%s` is not supported (only 'timestamp' is)",
                        column->name.text);
    }
    return 0;
}

static int find_column(struct session *session, const struct table *table,
                       const struct ast_name *name, uint32_t *out)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const char **names = sql_allocate(session->memory, table->column_count * sizeof(*names));
    for (uint32_t i = 0; i < table->column_count; i++) {
        names[i] = table->columns[i].name.text;
        if (strcmp(names[i], name->text) == 0) {
            *out = i;
            return is_persisted(&table->columns[i])
                       ? 0
                       : sql_fail(session, -EINVAL, name->at, "column `%s` cannot be written",
                                  name->text);
        }
    }
    const char *nearest = sql_nearest(name->text, names, table->column_count);
    return sql_fail(session, -EINVAL, name->at, "table `%s` has no column `%s`%s%s",
                    table->name.text, name->text, nearest == NULL ? "" : "; did you mean ",
                    nearest == NULL ? "" : nearest);
}

/* Which column of the query each column of the table takes: UINT32_MAX: none, NULL. */
static int map_columns(struct session *session, const struct ast_statement *statement,
                       const struct table *table, uint32_t *from, uint32_t *wanted)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(wanted != NULL);
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    memset(from, 0xff, table->column_count * sizeof(*from));
    *wanted = 0;
    if (statement->columns.count == 0) {
        for (uint32_t i = 0; i < table->column_count; i++) {
            if (is_persisted(&table->columns[i])) {
                from[i] = (*wanted)++;
            }
        }
        return 0;
    }
    for (uint32_t i = 0; i < statement->columns.count; i++) {
        const struct ast_name *name = statement->columns.items[i];
        uint32_t column = 0;
        const int verdict = find_column(session, table, name, &column);
        if (verdict != 0) {
            return verdict;
        }
        if (from[column] != UINT32_MAX) {
            return sql_fail(session, -EINVAL, name->at, "column `%s` is named twice", name->text);
        }
        from[column] = (*wanted)++;
    }
    return 0;
}

static int cast_column(struct session *session, const struct table *table, uint32_t column,
                       const struct expr *from, struct place at, const struct expr **out)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    struct type to = table->columns[column].type;
    to.nullable = true;
    if (from == NULL) {
        *out = expr_null(session->memory, &to);
        return 0;
    }
    const int verdict = cast_implicit(session->memory, from, &to, out, session->error);
    if (verdict == 0 && session->settings.trim_pad) {
        *out = cast_length(session->memory, *out, &to, session->error);
    }
    if (verdict != 0) {
        char a[TYPE_PRINT_BYTES];
        char b[TYPE_PRINT_BYTES];
        return sql_fail(session, verdict, at,
                        "Incompatible types for sink column '%s' of `%s`: the query has %s, the "
                        "table %s; INSERT only widens, so CAST it",
                        table->columns[column].name.text, table->name.text,
                        type_print(&from->type, a), type_print(&table->columns[column].type, b));
    }
    return 0;
}

/* At most one time attribute may go out. */
static int check_times(struct session *session, const struct rel *rel, const struct table *table,
                       struct place at)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(session != NULL);
    const char *first = NULL;
    for (uint32_t i = 0; i < rel->column_count; i++) {
        if ((rel->columns[i].roles & REL_ROWTIME) == 0) {
            continue;
        }
        if (first != NULL) {
            return sql_fail(session, -EINVAL, at,
                            "The query contains more than one rowtime attribute column [%s, %s] "
                            "for writing into table '%s': cast all but one to TIMESTAMP or "
                            "TIMESTAMP_LTZ",
                            first, rel->columns[i].name, table->name.text);
        }
        first = rel->columns[i].name;
    }
    return 0;
}

/* Names columns as [a, b]. */
static const char *list_names(struct session *session, const struct rel *rel,
                              const uint32_t *columns, uint32_t count)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(session != NULL);
    const char *list = "";
    for (uint32_t i = 0; i < count; i++) {
        list = sql_format(session->memory, "%s%s%s", list, i == 0 ? "" : ", ",
                          rel->columns[columns[i]].name);
    }
    return list;
}

/* Tells whether the query's upsert key lies within the sink's key, and whether it is the whole. */
static bool key_within(const struct rel *rel, const uint32_t *key, uint32_t key_count,
                       bool *matches)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    if (!rel->has_key) {
        return false;
    }
    for (uint32_t i = 0; i < rel->key_column_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < key_count && !found; k++) {
            found = key[k] == rel->key_columns[i];
        }
        if (!found) {
            return false;
        }
    }
    *matches = rel->key_column_count == key_count;
    return true;
}

/* An upsert sink wants a key that the planner can prove, or a word on what to do (2.3's rule). */
static int check_key(struct session *session, const struct ast_statement *statement,
                     const struct table *table, const struct rel *rel, const uint32_t *key,
                     bool *matches)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    const uint32_t count = table->primary_key_count;
    *matches = false;
    if (key_within(rel, key, count, matches)) {
        return 0;
    }
    if (statement->conflict == AST_CONFLICT_NONE) {
        const char *upsert =
            rel->has_key ? list_names(session, rel, rel->key_columns, rel->key_column_count) : "";
        return sql_fail(session, -EINVAL, statement->at,
                        "The query has an upsert key that differs from the primary key of the sink "
                        "table '%s'. Primary key: [%s], upsert key: [%s]. Add ON CONFLICT DO "
                        "DEDUPLICATE (or ERROR, NOTHING) behind the query",
                        table->name.text, list_names(session, rel, key, count), upsert);
    }
    if (rel->updating) {
        return sql_fail(session, -ENOTSUP, statement->conflict_at,
                        "ON CONFLICT over an updating query whose key is not the sink's key is not "
                        "supported yet");
    }
    return 0;
}

static int check_topics(struct session *session, const struct ast_statement *statement,
                        const struct table *table)
{
    ASSERT(session != NULL);
    ASSERT(table != NULL);
    if (table->options.topic_count <= 1) {
        return 0;
    }
    return sql_fail(session, -ENOTSUP, statement->name.at,
                    "table `%s` has several topics: it can be read, but not written",
                    table->name.text);
}

static int check_partitioner(struct session *session, const struct ast_statement *statement,
                             const struct table *table)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    if (table->options.partitioner == PLAN_PARTITIONER_ROUND_ROBIN &&
        table->options.key_fields != NULL) {
        return sql_fail(session, -EINVAL, statement->at,
                        "table `%s`: 'sink.partitioner' = 'round-robin' only works when option "
                        "'key.fields' is not specified",
                        table->name.text);
    }
    return 0;
}

/* As in Flink a table that is only read needs no prefix. */
static int check_guarantee(struct session *session, const struct table *table)
{
    ASSERT(session != NULL);
    ASSERT(table != NULL);
    if (table->options.exactly_once && table->options.transactional_id_prefix == NULL) {
        return sql_fail(session, -EINVAL, table->options.exactly_once_at,
                        "table `%s`: 'sink.transactional-id-prefix' must be specified with "
                        "'sink.delivery-guarantee' = 'exactly-once'",
                        table->name.text);
    }
    return 0;
}

static int check_conflict(struct session *session, const struct ast_statement *statement,
                          const struct table *table)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    if (statement->conflict == AST_CONFLICT_NONE) {
        return 0;
    }
    if (table->primary_key_count == 0) {
        return sql_fail(session, -EINVAL, statement->conflict_at,
                        "ON CONFLICT needs a table with a PRIMARY KEY: `%s` has none",
                        table->name.text);
    }
    if (statement->conflict != AST_CONFLICT_DEDUPLICATE) {
        return sql_fail(session, -ENOTSUP, statement->conflict_at,
                        "ON CONFLICT DO %s is not supported yet",
                        statement->conflict == AST_CONFLICT_ERROR ? "ERROR" : "NOTHING");
    }
    return 0;
}

/* The rows as the table wants them; sink_columns says where each persisted column is. */
static int cast_rows(struct session *session, const struct ast_statement *statement,
                     const struct table *table, const struct relation *query,
                     uint32_t *sink_columns, struct rel **out)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    uint32_t *from = sql_allocate(session->memory, table->column_count * sizeof(*from));
    uint32_t wanted = 0;
    int verdict = map_columns(session, statement, table, from, &wanted);
    if (verdict != 0) {
        return verdict;
    }
    if (wanted != query->field_count) {
        return sql_fail(session, -EINVAL, statement->query->at,
                        "the query has %u columns, but table `%s` takes %u", query->field_count,
                        table->name.text, wanted);
    }
    struct rel_calc_spec spec = {
        .input = query->rel,
        .outputs = sql_allocate(session->memory, table->column_count * sizeof(struct expr *)),
        .names = sql_allocate(session->memory, table->column_count * sizeof(char *)),
        .roles = sql_allocate(session->memory, table->column_count),
        .at = statement->at,
    };
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        sink_columns[i] = UINT32_MAX;
        if (!is_persisted(column)) {
            continue;
        }
        verdict = check_sink_type(session, column, statement->name.at);
        const struct field *field = from[i] == UINT32_MAX ? NULL : &query->fields[from[i]];
        if (verdict == 0 && field != NULL && field->field_count != 0) {
            verdict = sql_fail(session, -ENOTSUP, statement->query->at,
                               "the ROW `%s` as a whole is not supported yet", field->name);
        }
        const struct expr *expr =
            field == NULL ? NULL : expr_column(session->memory, field->column, field->type);
        if (verdict == 0) {
            verdict = cast_column(session, table, i, expr, statement->query->at,
                                  &spec.outputs[spec.count]);
        }
        if (verdict != 0) {
            return verdict;
        }
        if (spec.outputs[spec.count]->kind == EXPR_COLUMN) {
            spec.roles[spec.count] = query->rel->columns[field->column].roles;
        }
        spec.names[spec.count] = field == NULL ? column->name.text : field->name;
        sink_columns[i] = spec.count++;
    }
    *out = rel_calc(session, &spec);
    return 0;
}

int bind_insert(struct session *session, const struct ast_statement *statement)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    struct table *table = catalog_table(session, statement->name.text);
    if (table == NULL) {
        const bool is_view = catalog_view(session, statement->name.text) != NULL;
        return sql_fail(session, -EINVAL, statement->name.at,
                        is_view ? "`%s` is a view: it cannot be written"
                                : "table `%s` is not known",
                        statement->name.text);
    }
    session->has_query = true;
    struct relation query = {0};
    int verdict = bind_query(session, statement->query, NULL, &query);
    uint32_t *columns = sql_allocate(session->memory, table->column_count * sizeof(*columns));
    struct rel *rel = NULL;
    if (verdict == 0) {
        verdict = cast_rows(session, statement, table, &query, columns, &rel);
    }
    if (verdict == 0) {
        verdict = check_times(session, rel, table, statement->at);
    }
    if (verdict == 0) {
        verdict = check_topics(session, statement, table);
    }
    if (verdict == 0) {
        verdict = check_conflict(session, statement, table);
    }
    if (verdict == 0) {
        verdict = check_partitioner(session, statement, table);
    }
    if (verdict == 0) {
        verdict = check_guarantee(session, table);
    }
    if (verdict != 0) {
        return verdict;
    }
    bool matches = true;
    const bool is_upsert = table->options.connector == PLAN_CONNECTOR_UPSERT_KAFKA;
    if (rel->updating && table->options.connector == PLAN_CONNECTOR_KAFKA) {
        return sql_fail(session, -EINVAL, statement->at,
                        "Table sink '%s' doesn't support consuming update changes, which this "
                        "query makes: use connector 'upsert-kafka' with a PRIMARY KEY",
                        table->name.text);
    }
    if (is_upsert) {
        uint32_t *key = sql_allocate(session->memory, table->primary_key_count * sizeof(*key));
        for (uint32_t i = 0; i < table->primary_key_count; i++) {
            key[i] = columns[table->primary_key[i]];
        }
        verdict = check_key(session, statement, table, rel, key, &matches);
        if (verdict != 0) {
            return verdict;
        }
    }
    ast_append(session->memory, &session->inserts,
               rel_sink(session, rel, table, columns, matches, statement->at));
    return 0;
}
