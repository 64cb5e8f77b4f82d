/* SPDX-License-Identifier: Apache-2.0 */
/* The options of formats (json, raw) and which columns stand in a record's key and value. */
#include <errno.h>
#include <stdlib.h>

#include "control/sql/options_internal.h"

static int find_format(struct options_reading *reading, const struct ast_option *option,
                       enum plan_format *out)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *name = option->value.text;
    ASSERT(name != NULL);
    if (strcmp(name, "json") == 0) {
        *out = PLAN_FORMAT_JSON;
        return 0;
    }
    if (strcmp(name, "raw") == 0) {
        *out = PLAN_FORMAT_RAW;
        return 0;
    }
    return sql_fail(reading->session, -ENOTSUP, option->value.at,
                    "format '%s' is not supported yet: there are json and raw", name);
}

int options_choose_formats(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    struct table_options *options = &reading->table->options;
    struct sql_memory *memory = reading->session->memory;
    const struct ast_option *plain = options_find(reading, "format");
    const struct ast_option *value = options_find(reading, "value.format");
    const struct ast_option *key = options_find(reading, "key.format");
    if (plain != NULL && value != NULL) {
        return sql_fail(reading->session, -EINVAL, value->key.at,
                        "'format' and 'value.format' say the same: give one");
    }
    const struct ast_option *chosen = plain == NULL ? value : plain;
    if (chosen == NULL) {
        return sql_fail(reading->session, -EINVAL, reading->table->at,
                        "table `%s` has no option '%s'", reading->table->name.text,
                        options->connector == PLAN_CONNECTOR_KAFKA ? "format" : "value.format");
    }
    int verdict = find_format(reading, chosen, &options->value_format.format);
    if (verdict == 0 && key != NULL) {
        verdict = find_format(reading, key, &options->key_format.format);
    }
    if (verdict != 0) {
        return verdict;
    }
    reading->value_format_at = chosen->value.at;
    reading->value_prefix =
        sql_format(memory, "%s%s.", plain == NULL ? "value." : "", chosen->value.text);
    reading->key_prefix = key == NULL ? NULL : sql_format(memory, "key.%s.", key->value.text);
    return 0;
}

static int read_json(struct options_reading *reading, const struct ast_option *option,
                     const char *name, struct plan_format_options *format)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    static const char *const known[] = {
        "fail-on-missing-field",          "ignore-parse-errors",        "timestamp-format.standard",
        "encode.decimal-as-plain-number", "encode.ignore-null-fields",  "map-null-key.mode",
        "map-null-key.literal",           "decode.json-parser.enabled",
    };
    bool *const flags[] = {
        &format->fail_on_missing_field,   &format->ignore_parse_errors, NULL,
        &format->decimal_as_plain_number, &format->ignore_null_fields,
    };
    uint32_t i = 0;
    while (i < COUNT_OF(known) && strcmp(known[i], name) != 0) {
        i++;
    }
    if (i < COUNT_OF(flags) && flags[i] != NULL) {
        return options_boolean(reading, option, flags[i]);
    }
    if (i == 2) {
        const bool iso = strcmp(option->value.text, "ISO-8601") == 0;
        format->timestamp_format = iso ? PLAN_TIMESTAMP_ISO_8601 : PLAN_TIMESTAMP_SQL;
        return iso || strcmp(option->value.text, "SQL") == 0
                   ? 0
                   : options_bad_value(reading, option, "SQL or ISO-8601");
    }
    if (i == 7 && strcasecmp(option->value.text, "true") != 0) {
        return sql_fail(reading->session, -ENOTSUP, option->value.at,
                        "'%s' = '%s' is not supported: only Flink's default, true",
                        option->key.text, option->value.text);
    }
    if (i < COUNT_OF(known)) {
        return 0; /* of maps, which no table here can write */
    }
    const char *nearest = sql_nearest(name, known, COUNT_OF(known));
    return sql_fail(reading->session, -EINVAL, option->key.at,
                    "format 'json' has no option '%s'%s%s%s", name,
                    nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "'?");
}

static int read_raw(struct options_reading *reading, const struct ast_option *option,
                    const char *name, struct plan_format_options *format)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *value = option->value.text;
    if (strcmp(name, "endianness") == 0) {
        format->little_endian = strcmp(value, "little-endian") == 0;
        return format->little_endian || strcmp(value, "big-endian") == 0
                   ? 0
                   : options_bad_value(reading, option, "big-endian or little-endian");
    }
    if (strcmp(name, "charset") == 0) {
        return strcasecmp(value, "UTF-8") == 0
                   ? 0
                   : sql_fail(reading->session, -ENOTSUP, option->value.at,
                              "'%s' = '%s' is not supported yet: only UTF-8", option->key.text,
                              value);
    }
    return sql_fail(reading->session, -EINVAL, option->key.at,
                    "format 'raw' has no option '%s': there are endianness and charset", name);
}

int options_read_format(struct options_reading *reading, const struct ast_option *option,
                        bool *is_format)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *key = option->key.text;
    struct table_options *options = &reading->table->options;
    struct plan_format_options *format = NULL;
    const char *name = NULL;
    const size_t value_bytes = strlen(reading->value_prefix);
    const size_t key_bytes = reading->key_prefix == NULL ? 0 : strlen(reading->key_prefix);
    if (strncmp(key, reading->value_prefix, value_bytes) == 0) {
        format = &options->value_format;
        name = key + value_bytes;
    } else if (key_bytes != 0 && strncmp(key, reading->key_prefix, key_bytes) == 0) {
        format = &options->key_format;
        name = key + key_bytes;
    }
    *is_format = format != NULL;
    if (format == NULL) {
        return 0;
    }
    return format->format == PLAN_FORMAT_JSON ? read_json(reading, option, name, format)
                                              : read_raw(reading, option, name, format);
}

/* Which columns make the record's key: those that 'key.fields' names, or the primary key. */
static int find_key_columns(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    struct table *table = reading->table;
    struct session *session = reading->session;
    const struct table_options *options = &table->options;
    table->key_columns =
        sql_allocate(session->memory, (table->column_count + 1) * sizeof(uint32_t));
    if (options->connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        table->key_column_count = table->primary_key_count;
        memcpy(table->key_columns, table->primary_key, table->primary_key_count * sizeof(uint32_t));
        return 0;
    }
    if (options->key_fields == NULL) {
        return 0;
    }
    char *rest = sql_copy_text(session->memory, options->key_fields, strlen(options->key_fields));
    while (rest != NULL) {
        const char *name = strsep(&rest, ";");
        uint32_t i = 0;
        while (i < table->column_count && strcmp(table->columns[i].name.text, name) != 0) {
            i++;
        }
        if (i == table->column_count || table->columns[i].kind != AST_COLUMN_PHYSICAL ||
            table->key_column_count == table->column_count) {
            return sql_fail(session, -EINVAL, options->key_fields_at,
                            "'%s' in 'key.fields' is no physical column of table `%s`", name,
                            table->name.text);
        }
        table->key_columns[table->key_column_count++] = i;
    }
    return 0;
}

static int check_keys(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    const struct table *table = reading->table;
    const struct table_options *options = &table->options;
    struct session *session = reading->session;
    const bool has_format = options->key_format.format != PLAN_FORMAT_NONE;
    const bool is_upsert = options->connector == PLAN_CONNECTOR_UPSERT_KAFKA;
    if (is_upsert && !has_format) {
        return sql_fail(session, -EINVAL, table->at, "table `%s` has no option 'key.format'",
                        table->name.text);
    }
    if (!is_upsert && has_format != (options->key_fields != NULL)) {
        return sql_fail(session, -EINVAL, table->at,
                        "table `%s`: 'key.format' and 'key.fields' belong together",
                        table->name.text);
    }
    if (!has_format && options->except_key) {
        return sql_fail(session, -EINVAL, table->at,
                        "table `%s`: 'value.fields-include' = 'EXCEPT_KEY' needs a key format",
                        table->name.text);
    }
    if (options->key_prefix != NULL && !options->except_key) {
        return sql_fail(session, -EINVAL, table->at,
                        "table `%s`: a key prefix needs 'value.fields-include' = 'EXCEPT_KEY'",
                        table->name.text);
    }
    for (uint32_t i = 0; i < table->key_column_count; i++) {
        const struct table_column *column = &table->columns[table->key_columns[i]];
        const char *prefix = options->key_prefix;
        if (prefix != NULL && strncmp(column->name.text, prefix, strlen(prefix)) != 0) {
            return sql_fail(session, -EINVAL, options->key_fields_at,
                            "key column `%s` does not begin with the prefix '%s'",
                            column->name.text, prefix);
        }
        if (column->type.kind == TYPE_ROW) {
            return sql_fail(session, -ENOTSUP, column->name.at,
                            "key column `%s` is a ROW: not supported yet", column->name.text);
        }
    }
    return 0;
}

/* With raw the whole value, or the whole key, is one column. */
static int check_raw(struct options_reading *reading, const struct plan_format_options *format,
                     uint32_t count, const char *what)
{
    ASSERT(format != NULL);
    ASSERT(reading != NULL);
    if (format->format != PLAN_FORMAT_RAW || count == 1) {
        return 0;
    }
    return sql_fail(reading->session, -EINVAL, reading->value_format_at,
                    "format 'raw' holds one column in the %s, but table `%s` has %u there", what,
                    reading->table->name.text, count);
}

/* A key column is read from the key when the value does not have it; else from the value, but the
 * key is still read, for a record without one gives no row. */
static void mark_key_fields(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    struct table *table = reading->table;
    struct sql_memory *memory = reading->session->memory;
    const struct table_options *options = &table->options;
    const size_t prefix = options->key_prefix == NULL ? 0 : strlen(options->key_prefix);
    const uint32_t room = table->field_count + table->key_column_count;
    struct plan_field *fields = sql_allocate(memory, room * sizeof(*fields));
    memcpy(fields, table->fields, table->field_count * sizeof(*fields));
    const uint32_t own = table->field_count;
    for (uint32_t i = 0; i < table->key_column_count; i++) {
        const struct table_column *column = &table->columns[table->key_columns[i]];
        struct plan_field *field = &fields[table->picks[column->first_leaf]];
        if (!options->except_key) {
            fields[table->field_count] = *field;
            field = &fields[table->field_count++];
            field->needed = true;
        }
        const char **path = sql_allocate(memory, sizeof(*path));
        path[0] = column->name.text + prefix;
        field->origin = PLAN_FIELD_KEY;
        field->path = path;
        field->path_count = 1;
    }
    table->fields = fields;
    /* Picks of computed columns count from the end of the fields. */
    for (uint32_t i = 0; i < table->scan_column_count; i++) {
        table->picks[i] += table->picks[i] >= own ? table->field_count - own : 0;
    }
}

int options_apply_keys(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    struct table *table = reading->table;
    const struct table_options *options = &table->options;
    ASSERT(table->scan_column_count != 0);
    int verdict = find_key_columns(reading);
    if (verdict == 0) {
        verdict = check_keys(reading);
    }
    if (verdict != 0) {
        return verdict;
    }
    const struct plan_format_options *value = &options->value_format;
    if (value->fail_on_missing_field && value->ignore_parse_errors) {
        return sql_fail(reading->session, -EINVAL, reading->value_format_at,
                        "fail-on-missing-field and ignore-parse-errors shouldn't both be true");
    }
    uint32_t physical = 0;
    for (uint32_t i = 0; i < table->column_count; i++) {
        physical += table->columns[i].kind == AST_COLUMN_PHYSICAL;
    }
    const uint32_t in_value = options->except_key ? physical - table->key_column_count : physical;
    verdict = check_raw(reading, value, in_value, "value");
    if (verdict == 0) {
        verdict = check_raw(reading, &options->key_format, table->key_column_count, "key");
    }
    if (verdict == 0 && table->key_column_count != 0) {
        mark_key_fields(reading);
    }
    return verdict;
}
