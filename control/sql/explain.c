/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people, one tree a sink, inputs indented below their reader:
 *
 *     Sink[scores]                  append
 *     └─ Over[card, 60 s]           hash(card), time: ts, state per key
 *        └─ …
 *
 * A node that several read is printed where it comes first and referred to by its number after. */
#include <inttypes.h>
#include <stdio.h>

#include "control/sql/session.h"
#include "control/sql/sql.h"

#define EXPRESSION_BYTES 1024

static const char *changelog_name(const struct plan_node *node)
{
    ASSERT(node != NULL);
    static const char *const names[] = {"append", "upsert (no -U)", "retract"};
    ASSERT((size_t)node->changelog < COUNT_OF(names));
    return names[node->changelog];
}

static void indent(FILE *into, uint32_t depth, const char *text)
{
    ASSERT(into != NULL);
    (void)fprintf(into, "%*s%s", (int)(depth * 3), "", text);
}

static const struct plan_node *input_of(const struct plan *plan, const struct plan_node *node)
{
    ASSERT(plan != NULL);
    ASSERT(node != NULL);
    ASSERT(node->input_count >= 1);
    return plan->nodes[node->inputs[0]];
}

static void explain_expr(FILE *into, const struct expr *expr, const char *const *names)
{
    ASSERT(into != NULL);
    char text[EXPRESSION_BYTES];
    (void)fputs(expr_print(expr, names, text, sizeof(text)), into);
}

static void explain_key(FILE *into, const struct key_columns *key, const char *const *names)
{
    ASSERT(key != NULL);
    ASSERT(into != NULL);
    for (uint32_t i = 0; i < key->count; i++) {
        (void)fprintf(into, "%s%s", i == 0 ? "" : ", ", names[key->columns[i]]);
    }
}

static void explain_distribution(FILE *into, const struct plan *plan, const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(into != NULL);
    ASSERT(plan != NULL);
    if (node->input_count == 0) {
        return;
    }
    if (node->distribution == PLAN_HASH) {
        (void)fputs(", rows by hash(", into);
        explain_key(into, &node->distribution_key, input_of(plan, node)->column_names);
        (void)fputs(")", into);
    } else if (node->distribution == PLAN_SINGLE) {
        (void)fputs(", rows to one lane", into);
    }
}

static void explain_calls(FILE *into, uint32_t depth, const struct aggregate_call *calls,
                          uint32_t count, const char *const *names)
{
    ASSERT(into != NULL);
    for (uint32_t i = 0; i < count; i++) {
        const struct aggregate_call *call = &calls[i];
        char type[TYPE_PRINT_BYTES];
        indent(into, depth, "  call: ");
        (void)fprintf(into, "%s(%s%s)", aggregate_function_name(call->function),
                      call->distinct ? "DISTINCT " : "",
                      call->argument == AGGREGATE_COLUMN_NONE ? "*" : names[call->argument]);
        if (call->filter != AGGREGATE_COLUMN_NONE) {
            (void)fprintf(into, " FILTER %s", names[call->filter]);
        }
        (void)fprintf(into, " %s\n", type_print(&call->result_type, type));
    }
}

static const char *metadata_name(enum plan_metadata metadata)
{
    static const char *const names[] = {"topic",     "partition",      "offset",
                                        "timestamp", "timestamp-type", "leader-epoch"};
    ASSERT((size_t)metadata < COUNT_OF(names));
    return names[metadata];
}

static void explain_source(FILE *into, uint32_t depth, const struct plan_node *node)
{
    ASSERT(into != NULL);
    ASSERT(node != NULL);
    const struct plan_source *source = &node->source;
    char type[TYPE_PRINT_BYTES];
    for (uint32_t i = 0; i < source->topic_count; i++) {
        indent(into, depth, "  topic: ");
        (void)fprintf(into, "%s\n", source->topics[i]);
    }
    if (source->read_committed) {
        indent(into, depth, "  isolation: ");
        (void)fputs("read_committed\n", into);
    }
    for (uint32_t i = 0; i < source->field_count; i++) {
        const struct plan_field *field = &source->fields[i];
        if (!field->needed) {
            continue;
        }
        static const char *const origins[] = {"value", "key", "metadata"};
        indent(into, depth, "  reads: ");
        (void)fprintf(into, "%s", origins[field->origin]);
        if (field->origin == PLAN_FIELD_METADATA) {
            (void)fprintf(into, ".%s", metadata_name(field->metadata));
        }
        for (uint32_t k = 0; k < field->path_count; k++) {
            (void)fprintf(into, ".%s", field->path[k]);
        }
        (void)fprintf(into, " %s\n", type_print(&field->type, type));
    }
    if (source->watermark != NULL) {
        indent(into, depth, "  watermark: ");
        explain_expr(into, source->watermark, node->column_names);
        (void)fprintf(into, " %s\n", source->watermark_on_event ? "on event" : "periodic");
    }
    if (source->on_error != PLAN_ON_ERROR_FAIL) {
        indent(into, depth, "  bad records: ");
        (void)fprintf(into, "%s %s\n",
                      source->on_error == PLAN_ON_ERROR_SKIP ? "skipped and counted" : "to topic",
                      source->dead_letter_topic == NULL ? "" : source->dead_letter_topic);
    }
}

/* Columns that a Calc passes on as they are. */
static void explain_passed(FILE *into, uint32_t depth, const struct plan_node *node)
{
    ASSERT(into != NULL);
    ASSERT(node != NULL);
    bool is_first = true;
    for (uint32_t i = 0; node->calc.outputs != NULL && i < node->layout.column_count; i++) {
        if (node->calc.outputs[i]->kind == EXPR_COLUMN) {
            if (is_first) {
                indent(into, depth, "  passes:");
            }
            (void)fprintf(into, "%s %s", is_first ? "" : ",", node->column_names[i]);
            is_first = false;
        }
    }
    (void)fputs(is_first ? "" : "\n", into);
}

static void explain_calc(FILE *into, uint32_t depth, const struct plan *plan,
                         const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(into != NULL);
    ASSERT(plan != NULL);
    const char *const *names = input_of(plan, node)->column_names;
    if (node->calc.condition != NULL) {
        indent(into, depth, "  where: ");
        explain_expr(into, node->calc.condition, names);
        (void)fputc('\n', into);
    }
    explain_passed(into, depth, node);
    for (uint32_t i = 0; node->calc.outputs != NULL && i < node->layout.column_count; i++) {
        if (node->calc.outputs[i]->kind != EXPR_COLUMN) {
            indent(into, depth, "  ");
            (void)fprintf(into, "%s: ", node->column_names[i]);
            explain_expr(into, node->calc.outputs[i], names);
            (void)fputc('\n', into);
        }
    }
}

static void explain_sink(FILE *into, uint32_t depth, const struct plan_node *node)
{
    ASSERT(into != NULL);
    ASSERT(node != NULL);
    const struct plan_sink *sink = &node->sink;
    if (sink->topic != NULL) {
        indent(into, depth, "  topic: ");
        (void)fprintf(into, "%s\n", sink->topic);
    }
    if (sink->exactly_once) {
        indent(into, depth, "  delivery: ");
        (void)fprintf(into, "exactly once, transactional ids '%s…'\n",
                      sink->transactional_id_prefix);
    }
    if (node->changelog == PLAN_RETRACT && sink->connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        indent(into, depth, "  -U: ");
        (void)fputs(sink->drop_update_before ? "not written\n" : "deletes its key\n", into);
    }
    for (uint32_t i = 0; i < sink->key_field_count; i++) {
        indent(into, depth, "  key: ");
        (void)fprintf(into, "%s\n", sink->key_fields[i].name);
    }
    for (uint32_t i = 0; i < sink->not_null_count; i++) {
        indent(into, depth, "  not null: ");
        (void)fprintf(into, "%s (%s)\n", node->column_names[sink->not_null_columns[i]],
                      sink->not_null_drop ? "drop" : "fail");
    }
}

/* What the operator keeps, in words. */
static const char *state_of(const struct plan_node *node)
{
    ASSERT(node != NULL);
    switch (node->operator) {
    case PLAN_GROUP:
        return "one entry a key";
    case PLAN_WINDOW:
        return "one entry a key and open window";
    case PLAN_OVER:
        if (node->over.frame_count != 0) {
            return "rows of the frames, one list a key";
        }
        if (node->over.unbounded) {
            return "one entry a key, rows until the watermark";
        }
        return "rows of the frame, a list a key";
    default:
        return NULL;
    }
}

/* How long that lives. */
static void explain_ttl(FILE *into, const struct plan_node *node)
{
    ASSERT(into != NULL);
    ASSERT(node != NULL);
    char text[32];
    if (node->operator== PLAN_GROUP && node->group.ttl_ms != 0) {
        sql_duration_print((int64_t)node->group.ttl_ms, text);
        (void)fprintf(into, ", ends %s after its last write", text);
    } else if (node->operator== PLAN_OVER && node->over.ttl_ms != 0) {
        sql_duration_print((int64_t)node->over.ttl_ms, text);
        (void)fprintf(into, ", ends %s to half as much again after the key's last row", text);
    }
}

static void explain_body(FILE *into, uint32_t depth, const struct plan *plan,
                         const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(into != NULL);
    ASSERT(plan != NULL);
    switch (node->operator) {
    case PLAN_SOURCE:
        explain_source(into, depth, node);
        break;
    case PLAN_CALC:
        explain_calc(into, depth, plan, node);
        break;
    case PLAN_GROUP:
        explain_calls(into, depth, node->group.calls, node->group.call_count,
                      input_of(plan, node)->column_names);
        break;
    case PLAN_WINDOW:
        explain_calls(into, depth, node->window.calls, node->window.call_count,
                      input_of(plan, node)->column_names);
        break;
    case PLAN_OVER:
        explain_calls(into, depth, node->over.calls, node->over.call_count,
                      input_of(plan, node)->column_names);
        for (uint32_t i = 0; i < node->over.frame_count; i++) {
            explain_calls(into, depth, node->over.frames[i].calls, node->over.frames[i].call_count,
                          input_of(plan, node)->column_names);
        }
        break;
    case PLAN_SINK:
        explain_sink(into, depth, node);
        break;
    case PLAN_UNION:
    case PLAN_WINDOW_ROWS:
        break;
    }
    const char *state = state_of(node);
    if (state != NULL) {
        indent(into, depth, "  state: ");
        (void)fprintf(into, "%s", state);
        explain_ttl(into, node);
        (void)fputc('\n', into);
    }
}

/* Prints a node and what is below it. Plans are at most PLAN_NODES_MAX nodes deep. */
static void explain_node(FILE *into, uint32_t depth, const struct plan *plan, uint32_t id,
                         bool *seen)
{
    ASSERT(into != NULL);
    ASSERT(plan != NULL);
    const struct plan_node *node = plan->nodes[id];
    ASSERT(node->id == id);
    indent(into, depth, "");
    (void)fprintf(into, "#%u %s", id, node->name);
    if (seen[id]) {
        (void)fputs(" (as above)\n", into);
        return;
    }
    seen[id] = true;
    (void)fprintf(into, "  %s", changelog_name(node));
    explain_distribution(into, plan, node);
    if (node->time_column >= 0) {
        (void)fprintf(into, ", time %s", node->column_names[node->time_column]);
    }
    (void)fputc('\n', into);
    explain_body(into, depth, plan, node);
    for (uint32_t i = 0; i < node->input_count; i++) {
        explain_node(into, depth + 1, plan, node->inputs[i], seen);
    }
}

void plan_explain(const struct plan *plan, FILE *into)
{
    ASSERT(into != NULL);
    ASSERT(plan != NULL && into != NULL);
    bool seen[PLAN_NODES_MAX] = {false};
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_SINK) {
            explain_node(into, 0, plan, i, seen);
            (void)fputc('\n', into);
        }
    }
}
