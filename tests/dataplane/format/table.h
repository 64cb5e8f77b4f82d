/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the source of a plan from a short text, for tests, the fuzzer and the bench:
 *
 *     "id INT, amount DECIMAL(12,2), r.a INT, -skipped STRING, key:k STRING, meta:offset BIGINT"
 *
 * A dot goes into a ROW; a minus marks a column that nothing reads. Header only: each program has
 * its own copy. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "dataplane/plan.h"

#define TABLE_FIELDS_MAX 64
#define TABLE_PATH_MAX   40

struct table {
    struct plan_source source;
    struct plan_field fields[TABLE_FIELDS_MAX];
    struct type types[TABLE_FIELDS_MAX];
    uint16_t slots[TABLE_FIELDS_MAX];
    const char *paths[TABLE_FIELDS_MAX][TABLE_PATH_MAX];
    const char *topic;
    char *text;
};

/* Finds a type by its name; unknown ones stop the program.
 * threads  any */
static inline struct type table_type(const char *text)
{
    static const struct {
        const char *name;
        struct type type;
    } TYPES[] = {
        {"BOOLEAN", {.kind = TYPE_BOOLEAN, .nullable = true}},
        {"TINYINT", {.kind = TYPE_TINYINT, .nullable = true}},
        {"SMALLINT", {.kind = TYPE_SMALLINT, .nullable = true}},
        {"INT", {.kind = TYPE_INT, .nullable = true}},
        {"BIGINT", {.kind = TYPE_BIGINT, .nullable = true}},
        {"FLOAT", {.kind = TYPE_FLOAT, .nullable = true}},
        {"DOUBLE", {.kind = TYPE_DOUBLE, .nullable = true}},
        {"STRING", {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX}},
        {"BYTES", {.kind = TYPE_VARBINARY, .nullable = true, .length = TYPE_LENGTH_MAX}},
        {"DATE", {.kind = TYPE_DATE, .nullable = true}},
        {"TIME", {.kind = TYPE_TIME, .nullable = true}},
        {"TIMESTAMP_LTZ", {.kind = TYPE_TIMESTAMP_LTZ, .nullable = true, .precision = 3}},
        {"TIMESTAMP", {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3}},
    };
    unsigned precision;
    unsigned scale;
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        if (strcmp(text, TYPES[i].name) == 0) {
            return TYPES[i].type;
        }
    }
    if (sscanf(text, "DECIMAL(%u,%u)", &precision, &scale) == 2) {
        return (struct type){.kind = TYPE_DECIMAL,
                             .nullable = true,
                             .precision = (uint8_t)precision,
                             .scale = (uint8_t)scale};
    }
    (void)fprintf(stderr, "unknown type %s\n", text);
    abort();
}

/* Finds a metadata key by its name.
 * threads  any */
static inline enum plan_metadata table_metadata(const char *name)
{
    static const char *const NAMES[] = {"topic",     "partition",      "offset",
                                        "timestamp", "timestamp-type", "leader-epoch"};
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            return (enum plan_metadata)i;
        }
    }
    abort();
}

/* Reads one column of the text, which is cut in place.
 * threads  any */
static inline void table_field(struct table *table, char *text, uint32_t index)
{
    struct plan_field *field = &table->fields[index];
    char *rest = NULL;
    char *path = strtok_r(text, " ", &rest);
    const char *type = strtok_r(NULL, " ", &rest);
    *field = (struct plan_field){.needed = *path != '-', .path = table->paths[index]};
    path += *path == '-';
    if (strncmp(path, "key:", 4) == 0) {
        field->origin = PLAN_FIELD_KEY;
        path += 4;
    } else if (strncmp(path, "meta:", 5) == 0) {
        field->origin = PLAN_FIELD_METADATA;
        path += 5;
        field->metadata = table_metadata(path);
    }
    for (char *step = strtok_r(path, ".", &rest); step != NULL; step = strtok_r(NULL, ".", &rest)) {
        if (field->path_count < TABLE_PATH_MAX) {
            table->paths[index][field->path_count++] = step;
        }
    }
    field->type = table_type(type);
    table->types[index] = field->type;
}

/* Fills a table from its text; table_fini frees what it took.
 * threads  any */
static inline void table_init(struct table *table, const char *text)
{
    memset(table, 0, sizeof(*table));
    table->text = strdup(text);
    table->topic = "topic";
    char *starts[TABLE_FIELDS_MAX];
    uint32_t count = 0;
    for (char *at = table->text; *at != 0 && count < TABLE_FIELDS_MAX; count++) {
        starts[count] = at += strspn(at, " ,");
        at += strcspn(at, " ");
        at += strspn(at, " ");
        while (*at != 0 && !(*at == ',' && at[1] == ' ')) {
            at++;
        }
        if (*at != 0) {
            *at++ = 0;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        table_field(table, starts[i], i);
    }
    table->source = (struct plan_source){
        .table = "table",
        .topics = &table->topic,
        .topic_count = 1,
        .value_format = {.format = PLAN_FORMAT_JSON},
        .fields = table->fields,
        .field_count = count,
    };
    row_layout_init(&table->source.decoded, table->types, count, table->slots);
}

/* Frees what table_init took.
 * threads  any */
static inline void table_fini(struct table *table)
{
    free(table->text);
    table->text = NULL;
}
