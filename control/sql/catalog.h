/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and views of a script. A table is checked whole when it is created: types, options with
 * their values, computed columns, watermark. ARRAY, MAP and MULTISET columns may stand in a
 * table; reading or writing one is refused where it is asked for. */
#pragma once

#include "base.h"
#include "control/sql/ast.h"
#include "control/sql/session.h"
#include "dataplane/plan.h"

struct rel;

/* A name in a relation: a leaf is one column, a ROW has fields of its own. */
struct field {
    const char *name;
    struct type type;
    uint32_t column; /* of a leaf */
    const struct field *fields;
    uint32_t field_count; /* 0: a leaf */
};

/* A relation with the names that a query knows its columns by. */
struct relation {
    struct rel *rel;
    const struct field *fields;
    uint32_t field_count;
};

struct table_column {
    struct ast_name name;
    enum ast_column_kind kind;
    struct type type; /* as declared; of a computed column: of its expression */
    bool is_virtual;
    bool not_null; /* declared, or part of the primary key */
    enum plan_metadata metadata;
    bool is_headers;         /* metadata that cannot be read yet */
    const struct expr *expr; /* computed: over the decoded row */
    uint32_t first_leaf;     /* of the scan's columns */
    uint32_t leaf_count;
};

/* WITH (…), checked. Key fields are positions in table->columns. */
struct table_options {
    enum plan_connector connector;
    bool is_source; /* the connector can be read */
    const char *const *topics;
    uint32_t topic_count;
    const char *bootstrap_servers;
    const char *group_id;
    bool read_committed;
    enum plan_group_reset group_reset;
    struct plan_format_options value_format;
    struct plan_format_options key_format;
    const char *key_fields; /* as written, or NULL */
    struct place key_fields_at;
    const char *key_prefix;
    bool except_key;
    bool watermark_on_event;
    enum plan_startup startup;
    int64_t startup_timestamp_ms;
    struct ast_list startup_offsets; /* struct plan_partition_offset */
    enum plan_bounded bounded;
    int64_t bounded_timestamp_ms;
    struct ast_list bounded_offsets;
    enum plan_partitioner partitioner;
    bool exactly_once;
    struct place exactly_once_at;
    const char *transactional_id_prefix; /* as written, or NULL */
    const char *print_identifier;
    bool print_to_stderr;
};

struct table {
    struct ast_name name;
    struct place at;
    struct table_column *columns;
    uint32_t column_count;
    uint32_t *primary_key; /* columns */
    uint32_t primary_key_count;
    struct table_options options;
    uint32_t *key_columns; /* of the record's key: columns */
    uint32_t key_column_count;
    /* Reading it: the decoded row, then computed columns; see plan_source. */
    struct plan_field *fields;
    uint32_t field_count;
    const struct expr **computed;
    uint32_t computed_count;
    uint32_t *picks;      /* of each of the scan's columns */
    struct relation scan; /* rel is NULL until it is read */
    uint32_t scan_column_count;
    struct type *scan_types;
    const char **scan_names;
    const struct expr *watermark; /* over the scan's columns; NULL: none */
    uint32_t rowtime;             /* the scan's column */
    uint32_t proctime;            /* the scan's column that is PROCTIME(); UINT32_MAX: none */
};

struct view {
    struct ast_name name;
    struct relation relation;
};

/* Creates a table.
 * threads  control */
int bind_table(struct session *session, const struct ast_statement *statement);

/* Checks WITH (…) of a table whose columns are there.
 * threads  control */
int options_apply(struct session *session, struct table *table, const struct ast_list *options);

/* Finds a table by name; names have case.
 * returns  NULL when there is none
 * threads  control */
struct table *catalog_table(const struct session *session, const char *name);

/* Finds a view by name.
 * returns  NULL when there is none
 * threads  control */
struct view *catalog_view(const struct session *session, const char *name);

/* Makes a type of the syntax.
 * threads  control */
int bind_type(struct session *session, const struct ast_type *ast, struct type *out);

/* Gives the relation that reads a table; the same one each time.
 * threads  control */
int catalog_scan(struct session *session, struct table *table, struct place at,
                 struct relation *out);
