/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing and printing of SQL types; the printed form is the one Flink's DESCRIBE shows. */
#include "dataplane/type.h"

#include <stdarg.h>
#include <stdio.h>

#define TYPE_DEPTH_MAX 16 /* nesting that is compared and printed */

static const char *const kind_names[] = {
    [TYPE_NULL] = "NULL",
    [TYPE_BOOLEAN] = "BOOLEAN",
    [TYPE_TINYINT] = "TINYINT",
    [TYPE_SMALLINT] = "SMALLINT",
    [TYPE_INT] = "INT",
    [TYPE_BIGINT] = "BIGINT",
    [TYPE_FLOAT] = "FLOAT",
    [TYPE_DOUBLE] = "DOUBLE",
    [TYPE_DECIMAL] = "DECIMAL",
    [TYPE_CHAR] = "CHAR",
    [TYPE_VARCHAR] = "VARCHAR",
    [TYPE_BINARY] = "BINARY",
    [TYPE_VARBINARY] = "VARBINARY",
    [TYPE_DATE] = "DATE",
    [TYPE_TIME] = "TIME",
    [TYPE_TIMESTAMP] = "TIMESTAMP",
    [TYPE_TIMESTAMP_LTZ] = "TIMESTAMP_LTZ",
    [TYPE_INTERVAL_YEAR_MONTH] = "INTERVAL YEAR TO MONTH",
    [TYPE_INTERVAL_DAY_TIME] = "INTERVAL DAY TO SECOND",
    [TYPE_ARRAY] = "ARRAY",
    [TYPE_MAP] = "MAP",
    [TYPE_MULTISET] = "MULTISET",
    [TYPE_ROW] = "ROW",
};

static bool has_length(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type_is_text(type);
}

static bool has_precision(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type->kind == TYPE_DECIMAL || type->kind == TYPE_TIME || type->kind == TYPE_TIMESTAMP ||
           type->kind == TYPE_TIMESTAMP_LTZ;
}

static bool equal_at(const struct type *a, const struct type *b, uint32_t depth);

static bool fields_equal(const struct type *a, const struct type *b, uint32_t depth)
{
    ASSERT_SLOW(a->kind <= TYPE_ROW);
    ASSERT_SLOW(b->kind <= TYPE_ROW);
    if (a->field_count != b->field_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->field_count; i++) {
        if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
            !equal_at(&a->fields[i].type, &b->fields[i].type, depth)) {
            return false;
        }
    }
    return true;
}

static bool equal_at(const struct type *a, const struct type *b, uint32_t depth)
{
    ASSERT_SLOW(a->kind <= TYPE_ROW);
    ASSERT_SLOW(b->kind <= TYPE_ROW);
    if (depth == TYPE_DEPTH_MAX || a->kind != b->kind) {
        return false;
    }
    if (has_length(a) && a->length != b->length) {
        return false;
    }
    if (has_precision(a) && (a->precision != b->precision || a->scale != b->scale)) {
        return false;
    }
    switch (a->kind) {
    case TYPE_MAP:
        return equal_at(a->key, b->key, depth + 1) && equal_at(a->element, b->element, depth + 1);
    case TYPE_ARRAY:
    case TYPE_MULTISET:
        return equal_at(a->element, b->element, depth + 1);
    case TYPE_ROW:
        return fields_equal(a, b, depth + 1);
    default:
        return true;
    }
}

bool type_equal(const struct type *a, const struct type *b)
{
    ASSERT(a != NULL && b != NULL);
    return equal_at(a, b, 0);
}

/* Text being printed; cut silently at its end, which the caller's docstring says. */
struct printer {
    char *into;
    size_t used;
};

static __attribute__((format(printf, 2, 3))) void put(struct printer *out, const char *format, ...)
{
    ASSERT_SLOW(out != NULL);
    va_list arguments;
    va_start(arguments, format);
    const size_t room = TYPE_PRINT_BYTES - out->used;
    const int wrote = vsnprintf(out->into + out->used, room, format, arguments);
    va_end(arguments);
    ASSERT(wrote >= 0);
    out->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

static void print_at(struct printer *out, const struct type *type, uint32_t depth);

static void print_nested(struct printer *out, const struct type *type, uint32_t depth)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    ASSERT_SLOW(out != NULL);
    put(out, "%s<", kind_names[type->kind]);
    if (type->kind == TYPE_MAP) {
        print_at(out, type->key, depth);
        put(out, ", ");
    }
    if (type->kind == TYPE_ROW) {
        for (uint32_t i = 0; i < type->field_count; i++) {
            put(out, "%s`%s` ", i == 0 ? "" : ", ", type->fields[i].name);
            print_at(out, &type->fields[i].type, depth);
        }
    } else {
        print_at(out, type->element, depth);
    }
    put(out, ">");
}

static void print_plain(struct printer *out, const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    ASSERT_SLOW(out != NULL);
    if (type->kind == TYPE_VARCHAR && type->length == TYPE_LENGTH_MAX) {
        put(out, "STRING");
    } else if (type->kind == TYPE_VARBINARY && type->length == TYPE_LENGTH_MAX) {
        put(out, "BYTES");
    } else if (has_length(type)) {
        put(out, "%s(%u)", kind_names[type->kind], type->length);
    } else if (type->kind == TYPE_DECIMAL) {
        put(out, "DECIMAL(%u, %u)", type->precision, type->scale);
    } else if (has_precision(type)) {
        put(out, "%s(%u)", kind_names[type->kind], type->precision);
    } else {
        put(out, "%s", kind_names[type->kind]);
    }
}

static void print_at(struct printer *out, const struct type *type, uint32_t depth)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    ASSERT_SLOW(out != NULL);
    if (depth == TYPE_DEPTH_MAX) {
        put(out, "…");
        return;
    }
    if (type->kind >= TYPE_ARRAY) {
        print_nested(out, type, depth + 1);
    } else {
        print_plain(out, type);
    }
    if (!type->nullable && type->kind != TYPE_NULL) {
        put(out, " NOT NULL");
    }
}

const char *type_print(const struct type *type, char into[static TYPE_PRINT_BYTES])
{
    ASSERT(type != NULL);
    ASSERT(type->kind < COUNT_OF(kind_names));
    struct printer out = {.into = into};
    into[0] = '\0';
    print_at(&out, type, 0);
    return into;
}
