/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the syntax to types of the plan: names, default lengths and precisions, limits. */
#include <errno.h>

#include "control/sql/catalog.h"

struct type_name {
    const char *name;
    enum type_kind kind;
    uint8_t parameters_max;
};

static const struct type_name type_names[] = {
    {"BOOLEAN", TYPE_BOOLEAN, 0},
    {"TINYINT", TYPE_TINYINT, 0},
    {"SMALLINT", TYPE_SMALLINT, 0},
    {"INT", TYPE_INT, 0},
    {"INTEGER", TYPE_INT, 0},
    {"BIGINT", TYPE_BIGINT, 0},
    {"FLOAT", TYPE_FLOAT, 0},
    {"DOUBLE", TYPE_DOUBLE, 0},
    {"DECIMAL", TYPE_DECIMAL, 2},
    {"DEC", TYPE_DECIMAL, 2},
    {"NUMERIC", TYPE_DECIMAL, 2},
    {"CHAR", TYPE_CHAR, 1},
    {"CHARACTER", TYPE_CHAR, 1},
    {"VARCHAR", TYPE_VARCHAR, 1},
    {"STRING", TYPE_VARCHAR, 0},
    {"BINARY", TYPE_BINARY, 1},
    {"VARBINARY", TYPE_VARBINARY, 1},
    {"BYTES", TYPE_VARBINARY, 0},
    {"DATE", TYPE_DATE, 0},
    {"TIME", TYPE_TIME, 1},
    {"TIMESTAMP", TYPE_TIMESTAMP, 1},
    {"TIMESTAMP_LTZ", TYPE_TIMESTAMP_LTZ, 1},
    {"INTERVAL_YEAR_MONTH", TYPE_INTERVAL_YEAR_MONTH, 0},
    {"INTERVAL_DAY_TIME", TYPE_INTERVAL_DAY_TIME, 0},
    {"ARRAY", TYPE_ARRAY, 0},
    {"MAP", TYPE_MAP, 0},
    {"MULTISET", TYPE_MULTISET, 0},
    {"ROW", TYPE_ROW, 0},
};

#define TIME_PRECISION_MAX  9
#define DECIMAL_PRECISION   10
#define TIMESTAMP_PRECISION 6
#define ROW_FIELDS_MAX      ROW_COLUMNS_MAX

static const struct type_name *find_type(const char *name)
{
    ASSERT(name != NULL);
    for (uint32_t i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type_names[i].name, name) == 0) {
            return &type_names[i];
        }
    }
    return NULL;
}

static int bind_decimal(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    const uint32_t precision = ast->parameter_count > 0 ? ast->parameters[0] : DECIMAL_PRECISION;
    const uint32_t scale = ast->parameter_count > 1 ? ast->parameters[1] : 0;
    if (precision < 1 || precision > TYPE_DECIMAL_PRECISION_MAX) {
        return sql_fail(session, -EINVAL, ast->at, "the precision of DECIMAL is 1 to %d, not %u",
                        TYPE_DECIMAL_PRECISION_MAX, precision);
    }
    if (scale > precision) {
        return sql_fail(session, -EINVAL, ast->at,
                        "the scale of DECIMAL is 0 to its precision (%u), not %u", precision,
                        scale);
    }
    out->precision = (uint8_t)precision;
    out->scale = (uint8_t)scale;
    return 0;
}

static int bind_time(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    ASSERT(out->kind >= TYPE_TIME && out->kind <= TYPE_TIMESTAMP_LTZ);
    const uint32_t usual = out->kind == TYPE_TIME ? 0 : TIMESTAMP_PRECISION;
    const uint32_t precision = ast->parameter_count > 0 ? ast->parameters[0] : usual;
    if (precision > TIME_PRECISION_MAX) {
        return sql_fail(session, -EINVAL, ast->at, "the precision of %s is 0 to %d, not %u",
                        ast->name, TIME_PRECISION_MAX, precision);
    }
    out->precision = (uint8_t)precision;
    return 0;
}

static int bind_text(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    const bool is_long = strcmp(ast->name, "STRING") == 0 || strcmp(ast->name, "BYTES") == 0;
    const bool is_varying = out->kind == TYPE_VARCHAR || out->kind == TYPE_VARBINARY;
    out->length = ast->parameter_count > 0 ? ast->parameters[0] : 1;
    /* VARCHAR alone is STRING in Flink's DDL, CHAR alone is CHAR(1). */
    if (is_long || (is_varying && ast->parameter_count == 0)) {
        out->length = TYPE_LENGTH_MAX;
    }
    if (out->length < 1) {
        return sql_fail(session, -EINVAL, ast->at, "the length of %s is at least 1", ast->name);
    }
    return 0;
}

static int bind_row(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    const uint32_t count = ast->fields.count;
    if (count > ROW_FIELDS_MAX) {
        return sql_fail(session, -E2BIG, ast->at, "a ROW has at most %d fields", ROW_FIELDS_MAX);
    }
    struct type_field *fields = sql_allocate(session->memory, count * sizeof(*fields));
    for (uint32_t i = 0; i < count; i++) {
        const struct ast_type_field *field = ast->fields.items[i];
        fields[i].name = field->name.text;
        const int verdict = bind_type(session, field->type, &fields[i].type);
        if (verdict != 0) {
            return verdict;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(fields[k].name, fields[i].name) == 0) {
                return sql_fail(session, -EINVAL, field->name.at,
                                "the ROW has two fields named '%s'", fields[i].name);
            }
        }
    }
    out->fields = fields;
    out->field_count = count;
    return 0;
}

static int bind_collection(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    struct type *element = sql_allocate(session->memory, sizeof(*element));
    struct type *key = sql_allocate(session->memory, sizeof(*key));
    int verdict = bind_type(session, ast->element, element);
    if (verdict == 0 && ast->key != NULL) {
        verdict = bind_type(session, ast->key, key);
    }
    out->element = element;
    out->key = ast->key == NULL ? NULL : key;
    return verdict;
}

int bind_type(struct session *session, const struct ast_type *ast, struct type *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    const struct type_name *name = find_type(ast->name);
    if (name == NULL) {
        return sql_fail(session, -ENOTSUP, ast->at, "the type %s is not supported", ast->name);
    }
    if (ast->parameter_count > name->parameters_max) {
        return sql_fail(session, -EINVAL, ast->at, "%s takes %s", ast->name,
                        name->parameters_max == 0 ? "no parameter" : "one parameter");
    }
    *out = (struct type){.kind = name->kind, .nullable = !ast->not_null};
    switch (name->kind) {
    case TYPE_DECIMAL:
        return bind_decimal(session, ast, out);
    case TYPE_CHAR:
    case TYPE_VARCHAR:
    case TYPE_BINARY:
    case TYPE_VARBINARY:
        return bind_text(session, ast, out);
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return bind_time(session, ast, out);
    case TYPE_ROW:
        return bind_row(session, ast, out);
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_MULTISET:
        return bind_collection(session, ast, out);
    default:
        return 0;
    }
}
