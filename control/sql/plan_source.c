/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a source node: what to read, what of a record is needed, its watermark. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/plan_internal.h"
#include "control/sql/rel_expr.h"

/* on-error of a table, and where bad records go. */
static int read_on_error(struct session *session, const struct table *table,
                         struct plan_source *source)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(session != NULL);
    const struct table_setting *error = settings_of_table(session, table->name.text, "on-error");
    const struct table_setting *topic =
        settings_of_table(session, table->name.text, "dead-letter-topic");
    static const char *const words[] = {"fail", "skip", "dead-letter"};
    uint32_t choice = 0;
    if (error != NULL) {
        while (choice < COUNT_OF(words) && strcmp(words[choice], error->value) != 0) {
            choice++;
        }
        if (choice == COUNT_OF(words)) {
            return sql_fail(session, -EINVAL, error->at,
                            "on-error takes fail, skip or dead-letter, not '%s'", error->value);
        }
    }
    source->on_error = (enum plan_on_error)choice;
    if (source->on_error == PLAN_ON_ERROR_DEAD_LETTER && topic == NULL) {
        return sql_fail(session, -EINVAL, error->at,
                        "on-error = dead-letter needs SET 'penstock.table.%s.dead-letter-topic'",
                        table->name.text);
    }
    if (topic != NULL && source->on_error != PLAN_ON_ERROR_DEAD_LETTER) {
        return sql_fail(session, -EINVAL, topic->at,
                        "dead-letter-topic is set, but on-error is not dead-letter");
    }
    source->dead_letter_topic = topic == NULL ? NULL : topic->value;
    return 0;
}

static void put_offsets(struct session *session, const struct ast_list *list,
                        const struct plan_partition_offset **out, uint32_t *count)
{
    ASSERT(list->count <= list->capacity);
    ASSERT(session != NULL);
    struct plan_partition_offset *offsets =
        sql_allocate(session->memory, (list->count + 1) * sizeof(*offsets));
    for (uint32_t i = 0; i < list->count; i++) {
        offsets[i] = *(const struct plan_partition_offset *)list->items[i];
    }
    *out = offsets;
    *count = list->count;
}

static void put_options(struct session *session, const struct table_options *options,
                        struct plan_source *source)
{
    ASSERT(options != NULL);
    ASSERT(source != NULL);
    ASSERT(session != NULL);
    source->topics = options->topics;
    source->topic_count = options->topic_count;
    source->bootstrap_servers = options->bootstrap_servers;
    source->group_id = options->group_id;
    source->group_reset = options->group_reset;
    source->read_committed = options->read_committed;
    source->value_format = options->value_format;
    source->key_format = options->key_format;
    source->startup = options->startup;
    source->startup_timestamp_ms = options->startup_timestamp_ms;
    source->bounded = options->bounded;
    source->bounded_timestamp_ms = options->bounded_timestamp_ms;
    source->watermark_on_event = options->watermark_on_event;
    source->watermark_interval_ms = session->settings.watermark_interval_ms;
    put_offsets(session, &options->startup_offsets, &source->startup_offsets,
                &source->startup_offset_count);
    put_offsets(session, &options->bounded_offsets, &source->bounded_offsets,
                &source->bounded_offset_count);
}

/* Marks the fields that kept columns read, straight or through a computed column. */
static void mark_needed(struct session *session, const struct table *table,
                        struct plan_field *fields, uint32_t pick)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(session != NULL);
    if (pick < table->field_count) {
        fields[pick].needed = true;
        return;
    }
    uint32_t *uses = sql_allocate(session->memory, (table->field_count + 1) * sizeof(*uses));
    expr_count_columns(table->computed[pick - table->field_count], uses, table->field_count);
    for (uint32_t i = 0; i < table->field_count; i++) {
        fields[i].needed = fields[i].needed || uses[i] != 0;
    }
}

/* The decoded row, the computed columns in use, and where the node's columns come from. */
static void put_fields(struct session *session, const struct table *table, const uint32_t *map,
                       uint32_t column_count, struct plan_source *source)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(source != NULL);
    ASSERT(session != NULL);
    struct plan_field *fields =
        sql_allocate(session->memory, (table->field_count + 1) * sizeof(*fields));
    memcpy(fields, table->fields, table->field_count * sizeof(*fields));
    uint32_t *picks = sql_allocate(session->memory, (column_count + 1) * sizeof(*picks));
    const struct expr **computed =
        sql_allocate(session->memory, (table->computed_count + 1) * sizeof(*computed));
    for (uint32_t i = 0; i < table->scan_column_count; i++) {
        if (map[i] == UINT32_MAX) {
            continue;
        }
        mark_needed(session, table, fields, table->picks[i]);
        picks[map[i]] = table->picks[i];
        if (table->picks[i] >= table->field_count) {
            computed[source->computed_count] =
                table->computed[table->picks[i] - table->field_count];
            picks[map[i]] = table->field_count + source->computed_count++;
        }
    }
    struct type *types = sql_allocate(session->memory, (table->field_count + 1) * sizeof(*types));
    for (uint32_t i = 0; i < table->field_count; i++) {
        types[i] = fields[i].type;
    }
    source->fields = fields;
    source->field_count = table->field_count;
    source->decoded = plan_layout(session, types, table->field_count);
    source->computed = computed;
    source->column_picks = picks;
}

int plan_scan(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    struct session *session = planning->session;
    const struct table *table = rel->table;
    struct plan_source *source = &node->source;
    ASSERT(table != NULL);
    source->table = table->name.text;
    put_options(session, &table->options, source);
    put_fields(session, table, planning->column_of[rel->id], node->layout.column_count, source);
    if (table->watermark != NULL && node->time_column >= 0) {
        source->watermark = plan_expr(planning, rel, table->watermark);
    }
    (void)snprintf(node->name, sizeof(node->name), "Source[%s]", table->name.text);
    return read_on_error(session, table, source);
}
