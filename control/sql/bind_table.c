/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE TABLE. Columns become leaves (a ROW is taken apart) in this order: physical and metadata
 * ones are fields of the decoded row, computed ones are expressions over it; the scan's columns
 * are all of them in the order of the table.
 *
 * A physical column that is declared NOT NULL is read as nullable: Flink trusts such columns and
 * reads -1 and the like where the record has none; here it is NULL. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/bind.h"
#include "control/sql/catalog.h"
#include "control/sql/rel.h"
#include "control/sql/rel_expr.h"

struct table *catalog_table(const struct session *session, const char *name)
{
    ASSERT(session != NULL);
    ASSERT(name != NULL);
    for (uint32_t i = 0; i < session->tables.count; i++) {
        struct table *table = session->tables.items[i];
        if (strcmp(table->name.text, name) == 0) {
            return table;
        }
    }
    return NULL;
}

struct view *catalog_view(const struct session *session, const char *name)
{
    ASSERT(session != NULL);
    ASSERT(name != NULL);
    for (uint32_t i = 0; i < session->views.count; i++) {
        struct view *view = session->views.items[i];
        if (strcmp(view->name.text, name) == 0) {
            return view;
        }
    }
    return NULL;
}

struct metadata_key {
    const char *key;
    enum plan_metadata metadata;
    struct type type;
};

static const struct metadata_key metadata_keys[] = {
    {"topic", PLAN_METADATA_TOPIC, {.kind = TYPE_VARCHAR, .length = TYPE_LENGTH_MAX}},
    {"partition", PLAN_METADATA_PARTITION, {.kind = TYPE_INT}},
    {"offset", PLAN_METADATA_OFFSET, {.kind = TYPE_BIGINT}},
    {"timestamp", PLAN_METADATA_TIMESTAMP, {.kind = TYPE_TIMESTAMP_LTZ, .precision = 3}},
    {"timestamp-type",
     PLAN_METADATA_TIMESTAMP_TYPE,
     {.kind = TYPE_VARCHAR, .length = TYPE_LENGTH_MAX}},
    {"leader-epoch", PLAN_METADATA_LEADER_EPOCH, {.kind = TYPE_INT, .nullable = true}},
};

/* The table being made: its leaves so far. */
struct making {
    struct session *session;
    struct table *table;
    uint32_t field_capacity;
    uint32_t computed_capacity;
};

static int bind_metadata(struct session *session, const struct ast_column *ast,
                         struct table_column *column)
{
    ASSERT(ast != NULL);
    ASSERT(session != NULL);
    const char *key = ast->metadata.text == NULL ? ast->name.text : ast->metadata.text;
    if (strcmp(key, "headers") == 0) {
        column->is_headers = true;
        return 0;
    }
    for (uint32_t i = 0; i < COUNT_OF(metadata_keys); i++) {
        if (strcmp(metadata_keys[i].key, key) == 0) {
            column->metadata = metadata_keys[i].metadata;
            return 0;
        }
    }
    return sql_fail(session, -EINVAL, ast->metadata.text == NULL ? ast->name.at : ast->metadata.at,
                    "'%s' is no metadata of Kafka: there are topic, partition, offset, timestamp, "
                    "timestamp-type, leader-epoch and headers",
                    key);
}

static const struct metadata_key *metadata_of(enum plan_metadata metadata)
{
    for (uint32_t i = 0; i < COUNT_OF(metadata_keys); i++) {
        if (metadata_keys[i].metadata == metadata) {
            return &metadata_keys[i];
        }
    }
    ASSERT(false);
    return NULL;
}

/* Appends a leaf to the decoded row and to the scan. */
static void add_field(struct making *making, const struct plan_field *field, const char *name)
{
    ASSERT(making != NULL);
    struct table *table = making->table;
    ASSERT(table->field_count < making->field_capacity);
    table->fields[table->field_count] = *field;
    table->picks[table->scan_column_count] = table->field_count++;
    table->scan_types[table->scan_column_count] = field->type;
    table->scan_names[table->scan_column_count] = name;
    table->scan_column_count++;
}

/* Takes a physical column apart into leaves. path has room for depth + 1 names. */
static struct field add_leaves(struct making *making, const char *name, const struct type *type,
                               const char **path, uint32_t depth, bool nullable)
{
    ASSERT(type->kind <= TYPE_ROW);
    ASSERT(path != NULL);
    ASSERT(making != NULL);
    struct sql_memory *memory = making->session->memory;
    path[depth] = name;
    struct field field = {.name = name, .type = *type};
    field.type.nullable = nullable || type->nullable;
    if (type->kind == TYPE_ROW && type->field_count != 0) {
        struct field *fields = sql_allocate(memory, type->field_count * sizeof(*fields));
        for (uint32_t i = 0; i < type->field_count; i++) {
            fields[i] = add_leaves(making, type->fields[i].name, &type->fields[i].type, path,
                                   depth + 1, field.type.nullable);
        }
        field.fields = fields;
        field.field_count = type->field_count;
        return field;
    }
    const char **copy = sql_allocate(memory, (depth + 1) * sizeof(*copy));
    memcpy(copy, path, (depth + 1) * sizeof(*copy));
    const char *full = path[0];
    for (uint32_t i = 1; i <= depth; i++) {
        full = sql_format(memory, "%s.%s", full, path[i]);
    }
    field.type.nullable = true;
    field.column = making->table->scan_column_count;
    add_field(
        making,
        &(struct plan_field){
            .origin = PLAN_FIELD_VALUE, .path = copy, .path_count = depth + 1, .type = field.type},
        full);
    return field;
}

static uint32_t count_leaves(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    if (type->kind != TYPE_ROW || type->field_count == 0) {
        return 1;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < type->field_count; i++) {
        count += count_leaves(&type->fields[i].type);
    }
    return count;
}

/* Types and kinds of the columns; expressions come later, when all names are known. */
static int declare_columns(struct making *making, const struct ast_statement *statement,
                           uint32_t *leaf_count)
{
    ASSERT(leaf_count != NULL);
    ASSERT(making != NULL);
    ASSERT(statement != NULL);
    struct session *session = making->session;
    struct table *table = making->table;
    *leaf_count = 0;
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct ast_column *ast = statement->columns.items[i];
        struct table_column *column = &table->columns[i];
        *column = (struct table_column){
            .name = ast->name, .kind = ast->kind, .is_virtual = ast->is_virtual};
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(table->columns[k].name.text, ast->name.text) == 0) {
                return sql_fail(session, -EINVAL, ast->name.at,
                                "table `%s` has two columns named `%s`", table->name.text,
                                ast->name.text);
            }
        }
        int verdict = ast->type == NULL ? 0 : bind_type(session, ast->type, &column->type);
        if (verdict == 0 && ast->kind == AST_COLUMN_METADATA) {
            verdict = bind_metadata(session, ast, column);
        }
        if (verdict != 0) {
            return verdict;
        }
        column->not_null = ast->type != NULL && ast->type->not_null;
        *leaf_count += ast->type == NULL ? 1 : count_leaves(&column->type);
        if (*leaf_count > ROW_COLUMNS_MAX) {
            return sql_fail(session, -E2BIG, ast->name.at,
                            "table `%s` has more than %d columns (ROW fields counted)",
                            table->name.text, ROW_COLUMNS_MAX);
        }
    }
    return 0;
}

/* A metadata column of another type than the metadata's is a cast of it. */
static int bind_metadata_cast(struct making *making, struct table_column *column,
                              struct field *field)
{
    ASSERT(column->name.text != NULL);
    ASSERT(field != NULL);
    ASSERT(making != NULL);
    struct session *session = making->session;
    const struct metadata_key *key = metadata_of(column->metadata);
    const struct expr *from = expr_column(session->memory, field->column, key->type);
    struct type to = column->type;
    to.nullable = key->type.nullable;
    if (type_equal(&to, &key->type)) {
        field->type = to;
        return 0;
    }
    const struct function_call call = {
        .name = "CAST",
        .arguments = &from,
        .argument_count = 1,
        .target = &to,
        .line = column->name.at.line,
        .column = column->name.at.column,
    };
    return function_bind(session->memory, &call, &column->expr, session->error);
}

static int add_metadata(struct making *making, struct table_column *column, struct field *field)
{
    ASSERT(column->name.text != NULL);
    ASSERT(making != NULL);
    const struct metadata_key *key = metadata_of(column->metadata);
    for (uint32_t i = 0; i < making->table->field_count; i++) {
        const struct plan_field *other = &making->table->fields[i];
        if (other->origin == PLAN_FIELD_METADATA && other->metadata == column->metadata) {
            return sql_fail(making->session, -EINVAL, column->name.at,
                            "two columns read the metadata '%s': make the second one computed",
                            key->key);
        }
    }
    field->column = making->table->field_count; /* in the decoded row; see bind_metadata_cast */
    field->type = key->type;
    struct table *table = making->table;
    table->fields[table->field_count++] = (struct plan_field){
        .origin = PLAN_FIELD_METADATA, .metadata = column->metadata, .type = key->type};
    const int verdict = bind_metadata_cast(making, column, field);
    if (verdict != 0) {
        return verdict;
    }
    uint32_t pick = table->field_count - 1;
    if (column->expr != NULL) {
        field->type = column->expr->type;
        table->computed[table->computed_count] = column->expr;
        pick = UINT32_MAX - table->computed_count++;
    }
    field->column = table->scan_column_count;
    table->picks[table->scan_column_count] = pick;
    table->scan_types[table->scan_column_count] = field->type;
    table->scan_names[table->scan_column_count++] = column->name.text;
    return 0;
}

/* Names over the decoded row, for computed columns: physical and metadata ones. */
static void decoded_scope(struct making *making, const struct field *fields, struct scope *scope)
{
    ASSERT(scope != NULL);
    ASSERT(making != NULL);
    struct table *table = making->table;
    struct session *session = making->session;
    struct field *visible = sql_allocate(session->memory, table->column_count * sizeof(*visible));
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].kind != AST_COLUMN_COMPUTED && !table->columns[i].is_headers) {
            visible[count++] = fields[i];
        }
    }
    struct rel *rel = sql_allocate(session->memory, sizeof(*rel));
    rel->column_count = table->scan_column_count;
    rel->columns = sql_allocate(session->memory, rel->column_count * sizeof(struct rel_column));
    scope->relation = (struct relation){.rel = rel, .fields = visible, .field_count = count};
}

/* Turns an expression over the scan's columns so far into one over the decoded row. */
static const struct expr *over_decoded(struct making *making, const struct expr *expr)
{
    ASSERT(making != NULL);
    struct table *table = making->table;
    struct sql_memory *memory = making->session->memory;
    const struct expr **by = sql_allocate(memory, table->scan_column_count * sizeof(*by));
    for (uint32_t i = 0; i < table->scan_column_count; i++) {
        const uint32_t pick = table->picks[i];
        by[i] = pick > UINT32_MAX - ROW_COLUMNS_MAX
                    ? table->computed[UINT32_MAX - pick]
                    : expr_column(memory, pick, table->scan_types[i]);
    }
    return expr_substitute(memory, expr, by, table->scan_column_count);
}

static int add_computed(struct making *making, const struct ast_column *ast,
                        struct table_column *column, const struct scope *scope, struct field *field)
{
    ASSERT(column->name.text != NULL);
    ASSERT(ast != NULL);
    ASSERT(making != NULL);
    struct table *table = making->table;
    struct binder binder = {
        .session = making->session, .scope = scope, .place_name = "a computed column"};
    const int verdict = bind_expression(&binder, ast->expr, &column->expr, NULL);
    if (verdict != 0) {
        return verdict;
    }
    if (column->expr->type.kind == TYPE_NULL) {
        return sql_fail(making->session, -EINVAL, ast->expr->at,
                        "a computed column needs a type: CAST(NULL AS …)");
    }
    column->expr = over_decoded(making, column->expr);
    column->type = column->expr->type;
    table->computed[table->computed_count] = column->expr;
    if (ast->expr->kind == AST_CALL && strcmp(ast->expr->text, "PROCTIME") == 0) {
        table->proctime = table->scan_column_count;
    }
    field->type = column->type;
    field->column = table->scan_column_count;
    table->picks[table->scan_column_count] = UINT32_MAX - table->computed_count++;
    table->scan_types[table->scan_column_count] = column->type;
    table->scan_names[table->scan_column_count++] = column->name.text;
    return 0;
}

/* First all that is decoded, then what is computed from it; names stay in the table's order. */
static int make_leaves(struct making *making, const struct ast_statement *statement,
                       struct field *fields)
{
    ASSERT(making != NULL);
    ASSERT(statement != NULL);
    struct table *table = making->table;
    const char *path[AST_DEPTH_MAX + 1];
    int verdict = 0;
    for (uint32_t i = 0; i < table->column_count && verdict == 0; i++) {
        struct table_column *column = &table->columns[i];
        column->first_leaf = table->scan_column_count;
        fields[i] = (struct field){.name = column->name.text};
        if (column->kind == AST_COLUMN_PHYSICAL || column->is_headers) {
            fields[i] = add_leaves(making, column->name.text, &column->type, path, 0, false);
            if (column->is_headers) {
                table->fields[table->field_count - 1].origin = PLAN_FIELD_METADATA;
            }
        } else if (column->kind == AST_COLUMN_METADATA) {
            verdict = add_metadata(making, column, &fields[i]);
        }
        column->leaf_count = table->scan_column_count - column->first_leaf;
    }
    struct scope scope = {.alias = table->name.text};
    decoded_scope(making, fields, &scope);
    for (uint32_t i = 0; i < table->column_count && verdict == 0; i++) {
        struct table_column *column = &table->columns[i];
        if (column->kind == AST_COLUMN_COMPUTED) {
            column->first_leaf = table->scan_column_count;
            column->leaf_count = 1;
            verdict = add_computed(making, statement->columns.items[i], column, &scope, &fields[i]);
        }
    }
    for (uint32_t i = 0; i < table->scan_column_count; i++) {
        if (table->picks[i] > UINT32_MAX - ROW_COLUMNS_MAX) {
            table->picks[i] = table->field_count + (UINT32_MAX - table->picks[i]);
        }
    }
    return verdict;
}

static int bind_watermark(struct making *making, const struct ast_statement *statement)
{
    ASSERT(making != NULL);
    ASSERT(statement != NULL);
    struct session *session = making->session;
    struct table *table = making->table;
    if (statement->watermark_expr == NULL) {
        return 0;
    }
    const struct ast_name *name = statement->watermark.items[0];
    if (statement->watermark.count > 1) {
        return sql_fail(session, -ENOTSUP, name->at,
                        "WATERMARK FOR a field of a ROW is not supported yet: make a computed "
                        "column of it");
    }
    struct rel *rel = sql_allocate(session->memory, sizeof(*rel));
    rel->column_count = table->scan_column_count;
    rel->columns = sql_allocate(session->memory, rel->column_count * sizeof(struct rel_column));
    struct scope scope = {.alias = table->name.text, .relation = table->scan};
    scope.relation.rel = rel;
    struct ast_name path = *name;
    const struct ast_expr column = {
        .kind = AST_NAME, .at = name->at, .path = &path, .path_count = 1};
    const struct field *field = NULL;
    int verdict = scope_resolve(session, &scope, &column, &field);
    if (verdict != 0) {
        return verdict;
    }
    const enum type_kind kind = field->field_count != 0 ? TYPE_ROW : field->type.kind;
    const bool is_time = kind == TYPE_TIMESTAMP || kind == TYPE_TIMESTAMP_LTZ;
    if (!is_time || field->type.precision > 3) {
        char text[TYPE_PRINT_BYTES];
        return sql_fail(session, -EINVAL, name->at,
                        "Invalid data type of time field for watermark definition. `%s` is %s: it "
                        "must be TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p from 0 to 3",
                        name->text, type_print(&field->type, text));
    }
    struct binder binder = {.session = session, .scope = &scope, .place_name = "WATERMARK"};
    verdict = bind_expression(&binder, statement->watermark_expr, &table->watermark, NULL);
    if (verdict == 0 && table->watermark->type.kind != kind) {
        char text[TYPE_PRINT_BYTES];
        return sql_fail(session, -EINVAL, statement->watermark_expr->at,
                        "the watermark of `%s` is %s: it must be of the column's type", name->text,
                        type_print(&table->watermark->type, text));
    }
    table->rowtime = field->column;
    return verdict;
}

static int bind_primary_key(struct making *making, const struct ast_statement *statement)
{
    ASSERT(making != NULL);
    ASSERT(statement != NULL);
    struct session *session = making->session;
    struct table *table = making->table;
    struct ast_list names = statement->primary_key;
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct ast_column *column = statement->columns.items[i];
        if (column->is_primary_key && names.count != 0) {
            return sql_fail(session, -EINVAL, column->name.at, "the table has two PRIMARY KEYs");
        }
        if (column->is_primary_key) {
            struct ast_name *copy = sql_allocate(session->memory, sizeof(*copy));
            *copy = column->name;
            ast_append(session->memory, &names, copy);
        }
    }
    table->primary_key = sql_allocate(session->memory, (names.count + 1) * sizeof(uint32_t));
    table->primary_key_count = names.count;
    for (uint32_t i = 0; i < names.count; i++) {
        const struct ast_name *name = names.items[i];
        uint32_t column = 0;
        while (column < table->column_count &&
               strcmp(table->columns[column].name.text, name->text) != 0) {
            column++;
        }
        if (column == table->column_count || table->columns[column].kind != AST_COLUMN_PHYSICAL) {
            return sql_fail(session, -EINVAL, name->at,
                            "`%s` in PRIMARY KEY is no physical column of the table", name->text);
        }
        table->primary_key[i] = column;
        table->columns[column].not_null = true;
    }
    return 0;
}

static struct table *new_table(struct session *session, const struct ast_statement *statement)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    struct table *table = sql_allocate(session->memory, sizeof(*table));
    table->name = statement->name;
    table->at = statement->at;
    table->column_count = statement->columns.count;
    table->proctime = UINT32_MAX;
    table->columns =
        sql_allocate(session->memory, table->column_count * sizeof(struct table_column));
    return table;
}

int bind_table(struct session *session, const struct ast_statement *statement)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    const char *name = statement->name.text;
    if (catalog_table(session, name) != NULL || catalog_view(session, name) != NULL) {
        return statement->if_not_exists
                   ? 0
                   : sql_fail(session, -EINVAL, statement->name.at, "`%s` exists already", name);
    }
    if (statement->columns.count == 0) {
        return sql_fail(session, -EINVAL, statement->at, "table `%s` has no columns", name);
    }
    struct table *table = new_table(session, statement);
    struct making making = {.session = session, .table = table};
    uint32_t leaf_count = 0;
    int verdict = declare_columns(&making, statement, &leaf_count);
    if (verdict != 0) {
        return verdict;
    }
    making.field_capacity = leaf_count;
    table->fields = sql_allocate(session->memory, leaf_count * sizeof(struct plan_field));
    table->computed = sql_allocate(session->memory, leaf_count * sizeof(struct expr *));
    table->picks = sql_allocate(session->memory, leaf_count * sizeof(uint32_t));
    table->scan_types = sql_allocate(session->memory, leaf_count * sizeof(struct type));
    table->scan_names = sql_allocate(session->memory, leaf_count * sizeof(char *));
    struct field *fields = sql_allocate(session->memory, table->column_count * sizeof(*fields));
    verdict = make_leaves(&making, statement, fields);
    table->scan.fields = fields;
    table->scan.field_count = table->column_count;
    if (verdict == 0) {
        verdict = bind_watermark(&making, statement);
    }
    if (verdict == 0) {
        verdict = bind_primary_key(&making, statement);
    }
    if (verdict == 0) {
        verdict = options_apply(session, table, &statement->options);
    }
    if (verdict == 0) {
        ast_append(session->memory, &session->tables, table);
    }
    return verdict;
}

int catalog_scan(struct session *session, struct table *table, struct place at,
                 struct relation *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(table != NULL);
    if (table->options.connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        return sql_fail(session, -ENOTSUP, at,
                        "reading table `%s`: connector 'upsert-kafka' as a source is not supported "
                        "yet",
                        table->name.text);
    }
    if (!table->options.is_source) {
        return sql_fail(session, -EINVAL, at,
                        "table `%s` cannot be read: its connector only writes", table->name.text);
    }
    if (table->scan.rel == NULL) {
        table->scan.rel = rel_scan(session, table);
    }
    *out = table->scan;
    return 0;
}
