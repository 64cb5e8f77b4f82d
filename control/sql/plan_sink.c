/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a sink node: members of key and value in the order that Flink writes them, NOT NULL
 * columns to watch, what to do with -U. */
#include <stdio.h>

#include "control/sql/plan_internal.h"

/* Where a column of the table is in the input's rows. */
static uint32_t column_at(const struct planning *planning, const struct rel *rel, uint32_t column)
{
    ASSERT(planning != NULL);
    ASSERT(rel->sink_columns[column] != UINT32_MAX);
    const uint32_t at = planning->column_of[rel->inputs[0]->id][rel->sink_columns[column]];
    ASSERT(at != UINT32_MAX);
    return at;
}

static bool is_key(const struct table *table, uint32_t column)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    for (uint32_t i = 0; i < table->key_column_count; i++) {
        if (table->key_columns[i] == column) {
            return true;
        }
    }
    return false;
}

static void put_value(struct planning *planning, const struct rel *rel, struct plan_sink *sink)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(sink != NULL);
    ASSERT(planning != NULL);
    const struct table *table = rel->table;
    struct plan_sink_field *fields =
        sql_allocate(planning->session->memory, (table->column_count + 1) * sizeof(*fields));
    sink->timestamp_column = UINT32_MAX;
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        if (rel->sink_columns[i] == UINT32_MAX) {
            continue;
        }
        if (column->kind == AST_COLUMN_METADATA) {
            sink->timestamp_column = column_at(planning, rel, i);
            continue;
        }
        if (table->options.except_key && is_key(table, i)) {
            continue;
        }
        fields[sink->value_field_count++] = (struct plan_sink_field){
            .name = column->name.text, .column = column_at(planning, rel, i), .type = column->type};
    }
    sink->value_fields = fields;
}

static void put_key(struct planning *planning, const struct rel *rel, struct plan_sink *sink)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const struct table *table = rel->table;
    const char *prefix = table->options.key_prefix;
    const size_t skipped = prefix == NULL ? 0 : strlen(prefix);
    struct plan_sink_field *fields =
        sql_allocate(planning->session->memory, (table->key_column_count + 1) * sizeof(*fields));
    for (uint32_t i = 0; i < table->key_column_count; i++) {
        const struct table_column *column = &table->columns[table->key_columns[i]];
        fields[i] = (struct plan_sink_field){
            .name = column->name.text + skipped,
            .column = column_at(planning, rel, table->key_columns[i]),
            .type = column->type,
        };
    }
    sink->key_fields = fields;
    sink->key_field_count = table->key_column_count;
}

static void put_not_null(struct planning *planning, const struct rel *rel, struct plan_sink *sink)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const struct table *table = rel->table;
    const struct rel *input = rel->inputs[0];
    uint32_t *columns =
        sql_allocate(planning->session->memory, (table->column_count + 1) * sizeof(*columns));
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (rel->sink_columns[i] != UINT32_MAX && table->columns[i].not_null &&
            input->columns[rel->sink_columns[i]].type.nullable) {
            columns[sink->not_null_count++] = column_at(planning, rel, i);
        }
    }
    sink->not_null_columns = columns;
}

/* An upsert sink gets all rows of a key from one lane, in order; others take rows as they lie. */
static void distribute_sink(struct planning *planning, struct plan_node *node,
                            const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const struct table *table = rel->table;
    node->distribution = PLAN_FORWARD;
    if (table->options.connector != PLAN_CONNECTOR_UPSERT_KAFKA) {
        return;
    }
    uint32_t *columns =
        sql_allocate(planning->session->memory, (table->primary_key_count + 1) * sizeof(*columns));
    for (uint32_t i = 0; i < table->primary_key_count; i++) {
        columns[i] = column_at(planning, rel, table->primary_key[i]);
    }
    node->distribution_key =
        (struct key_columns){.columns = columns, .count = table->primary_key_count};
    const struct key_columns *spread = &planning->spread[node->inputs[0]];
    bool lies_right = planning->is_spread[node->inputs[0]];
    /* Rows of one sink key lie on one lane when they are spread by columns of that key. */
    for (uint32_t i = 0; i < spread->count && lies_right; i++) {
        bool found = false;
        for (uint32_t k = 0; k < table->primary_key_count; k++) {
            found = found || columns[k] == spread->columns[i];
        }
        lies_right = found;
    }
    if (!lies_right) {
        node->distribution = PLAN_HASH;
    }
}

int plan_sink(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    struct session *session = planning->session;
    const struct table *table = rel->table;
    const struct table_options *options = &table->options;
    struct plan_sink *sink = &node->sink;
    ASSERT(table != NULL);
    sink->table = table->name.text;
    sink->connector = options->connector;
    sink->topic = options->topic_count == 0 ? NULL : options->topics[0];
    sink->bootstrap_servers = options->bootstrap_servers;
    sink->value_format = options->value_format;
    sink->key_format = options->key_format;
    sink->partitioner = options->partitioner;
    sink->exactly_once = options->exactly_once;
    sink->transactional_id_prefix = options->transactional_id_prefix;
    ASSERT(!sink->exactly_once || sink->transactional_id_prefix != NULL);
    sink->print_identifier = options->print_identifier;
    sink->print_to_stderr = options->print_to_stderr;
    sink->not_null_drop = session->settings.not_null_drop;
    sink->drop_update_before =
        rel->updating && rel->sink_key_matches && !prune_splits_updates(rel->inputs[0]);
    put_value(planning, rel, sink);
    put_key(planning, rel, sink);
    put_not_null(planning, rel, sink);
    distribute_sink(planning, node, rel);
    node->changelog = planning->nodes[node->inputs[0]]->changelog;
    (void)snprintf(node->name, sizeof(node->name), "Sink[%s]", table->name.text);
    return 0;
}
