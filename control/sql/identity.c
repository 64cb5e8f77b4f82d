/* SPDX-License-Identifier: Apache-2.0 */
/* For each node three kinds of hashes are carried up the plan:
 *
 *     rows      which rows leave the node: a filter changes it, a projection does not
 *     columns   what each output column holds
 *     identity  what the node's own state is made of
 *
 * Hashes are part of the checkpoint format: words are strung together by hash_bytes, functions and
 * kinds of windows go in by name, operators by numbers given here. Only the enumerations asserted
 * below go in as they are: new members come at their ends. */
#include "control/sql/identity.h"

#include "state/hash.h"

static_assert(PLAN_FIELD_METADATA == 2 && PLAN_METADATA_LEADER_EPOCH == 5 &&
                  PLAN_WINDOW_TIME == 2 && PLAN_CONNECTOR_BLACKHOLE == 3,
              "checkpoints know them by number");

/* What is known of a node. */
struct traits {
    uint64_t rows;
    uint64_t *columns; /* layout.column_count of them */
};

struct identifying {
    const struct planning *planning;
    struct traits *traits; /* by node id */
};

static uint64_t add(uint64_t hash, uint64_t word)
{
    const uint64_t words[2] = {hash, word};
    return hash_bytes((struct span){.data = (const uint8_t *)words, .bytes = sizeof(words)});
}

static uint64_t add_span(uint64_t hash, struct span text)
{
    return add(hash, text.bytes == 0 ? 0 : hash_bytes(text));
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    ASSERT(text != NULL);
    return add_span(hash, (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)});
}

/* Whether a column may be NULL changes no state. */
static uint64_t add_type(uint64_t hash, const struct type *type)
{
    char text[TYPE_PRINT_BYTES];
    struct type plain = *type;
    plain.nullable = true;
    return add_text(hash, type_print(&plain, text));
}

static uint64_t add_value(uint64_t hash, const struct type *type, const struct value *value)
{
    ASSERT(type->kind <= TYPE_ROW);
    hash = add_type(hash, type);
    if (value->is_null || type->kind == TYPE_NULL) {
        return add(hash, 0);
    }
    if (type_is_text(type)) {
        return add_span(hash, value->text);
    }
    const size_t bytes = 8 * (size_t)type_slot_count(type);
    uint64_t words[2] = {0, 0};
    memcpy(words, &value->i64, type->kind == TYPE_FLOAT ? sizeof(value->f32) : bytes);
    return add(add(hash, words[0]), words[1]);
}

/* columns: what the columns of the expression's input hold. Depth is bounded by EXPR_DEPTH_MAX. */
static uint64_t of_expr(const struct expr *expr, const uint64_t *columns)
{
    if (expr->kind == EXPR_COLUMN) {
        return columns[expr->column];
    }
    if (expr->kind == EXPR_LITERAL) {
        return add_value(1, &expr->type, &expr->literal);
    }
    ASSERT(expr->kind == EXPR_CALL);
    uint64_t hash = add_type(add_text(2, expr_function_name(expr->function)), &expr->type);
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        hash = add(hash, of_expr(expr->arguments[i], columns));
    }
    return hash;
}

static uint64_t add_key(uint64_t hash, const struct key_columns *key, const uint64_t *columns)
{
    hash = add(hash, key->count);
    for (uint32_t i = 0; i < key->count; i++) {
        hash = add(hash, columns[key->columns[i]]);
    }
    return hash;
}

static uint64_t column_or_none(const uint64_t *columns, uint32_t column)
{
    return column == AGGREGATE_COLUMN_NONE ? 0 : columns[column];
}

static uint64_t of_call(const struct aggregate_call *call, const uint64_t *columns)
{
    uint64_t hash = add_text(3, aggregate_function_name(call->function));
    hash = add(hash, call->distinct);
    hash = add(hash, column_or_none(columns, call->argument));
    hash = add(hash, column_or_none(columns, call->filter));
    hash = add_type(hash, &call->argument_type);
    hash = add_type(hash, &call->result_type);
    if (call->function == AGGREGATE_LAG) {
        hash = add_value(add(hash, call->lag_offset), &call->result_type, &call->lag_default);
    }
    return call->function == AGGREGATE_LISTAGG ? add_span(hash, call->separator) : hash;
}

static uint64_t add_calls(uint64_t hash, const struct aggregate_call *calls, uint32_t count,
                          const uint64_t *columns)
{
    hash = add(hash, count);
    for (uint32_t i = 0; i < count; i++) {
        hash = add(hash, of_call(&calls[i], columns));
    }
    return hash;
}

static uint64_t add_window(uint64_t hash, const struct plan_window_spec *window)
{
    hash = add_text(hash, plan_window_name(window->kind));
    hash = add(hash, (uint64_t)window->size_ms);
    hash = add(hash, (uint64_t)window->slide_ms);
    hash = add(hash, (uint64_t)window->offset_ms);
    return window->local_clock ? add_text(hash, window->time_zone) : add(hash, 0);
}

/* A table's columns hold what its records hold there; options that say how to read on (where to
 * start, what to do with bad records, the watermark) are no part of it. */
static uint64_t identify_source(const struct plan_node *node, struct traits *own)
{
    const struct plan_source *source = &node->source;
    uint64_t hash = add_text(10, source->table);
    for (uint32_t i = 0; i < source->topic_count; i++) {
        hash = add_text(hash, source->topics[i]);
    }
    own->rows = hash;
    uint64_t fields[ROW_COLUMNS_MAX];
    ASSERT(source->field_count <= COUNT_OF(fields));
    for (uint32_t i = 0; i < source->field_count; i++) {
        const struct plan_field *field = &source->fields[i];
        fields[i] = add_type(add(hash, field->origin), &field->type);
        fields[i] =
            field->origin == PLAN_FIELD_METADATA ? add(fields[i], field->metadata) : fields[i];
        for (uint32_t k = 0; k < field->path_count; k++) {
            fields[i] = add_text(fields[i], field->path[k]);
        }
    }
    for (uint32_t i = 0; i < node->layout.column_count; i++) {
        const uint32_t pick = source->column_picks[i];
        own->columns[i] = pick < source->field_count
                              ? fields[pick]
                              : of_expr(source->computed[pick - source->field_count], fields);
    }
    return hash;
}

static uint64_t identify_calc(const struct plan_node *node, const struct traits *input,
                              struct traits *own)
{
    const struct plan_calc *calc = &node->calc;
    own->rows = calc->condition == NULL
                    ? input->rows
                    : add(add(11, input->rows), of_expr(calc->condition, input->columns));
    uint64_t hash = add(12, own->rows);
    for (uint32_t i = 0; i < node->layout.column_count; i++) {
        own->columns[i] =
            calc->outputs == NULL ? input->columns[i] : of_expr(calc->outputs[i], input->columns);
        hash = add(hash, own->columns[i]);
    }
    return hash;
}

static uint64_t identify_union(const struct identifying *all, const struct plan_node *node,
                               struct traits *own)
{
    own->rows = 13;
    for (uint32_t i = 0; i < node->input_count; i++) {
        own->rows = add(own->rows, all->traits[node->inputs[i]].rows);
    }
    for (uint32_t i = 0; i < node->layout.column_count; i++) {
        own->columns[i] = 14;
        for (uint32_t k = 0; k < node->input_count; k++) {
            own->columns[i] = add(own->columns[i], all->traits[node->inputs[k]].columns[i]);
        }
    }
    return own->rows;
}

static uint64_t identify_group(const struct plan_node *node, const struct traits *input,
                               struct traits *own)
{
    const struct plan_group *group = &node->group;
    own->rows = add_key(add(15, input->rows), &group->key, input->columns);
    for (uint32_t i = 0; i < group->key.count; i++) {
        own->columns[i] = input->columns[group->key.columns[i]];
    }
    for (uint32_t i = 0; i < group->call_count; i++) {
        own->columns[group->key.count + i] =
            add(own->rows, of_call(&group->calls[i], input->columns));
    }
    /* State that expires has its time of writing in each value. */
    const uint64_t hash =
        add(own->rows, group->input_updates | (group->ttl_ms != 0 ? UINT64_C(2) : 0));
    return add_calls(hash, group->calls, group->call_count, input->columns);
}

static uint64_t identify_window(const struct plan_node *node, const struct traits *input,
                                struct traits *own)
{
    const struct plan_window *window = &node->window;
    uint64_t hash = add_key(add(16, input->rows), &window->key, input->columns);
    hash = add_window(hash, &window->window);
    hash = add(hash, window->window_end_column == PLAN_WINDOW_END_NONE
                         ? 0
                         : input->columns[window->window_end_column]);
    own->rows = hash;
    uint32_t column = 0;
    for (; column < window->key.count; column++) {
        own->columns[column] = input->columns[window->key.columns[column]];
    }
    for (uint32_t i = 0; i < window->call_count; i++) {
        own->columns[column++] = add(own->rows, of_call(&window->calls[i], input->columns));
    }
    for (uint32_t i = 0; i < window->column_count; i++) {
        own->columns[column++] = add(add(own->rows, 17), window->columns[i]);
    }
    ASSERT(column == node->layout.column_count);
    hash = add(add(hash, window->input_updates), window->keeps_before_epoch);
    return add_calls(hash, window->calls, window->call_count, input->columns);
}

static uint64_t identify_window_rows(const struct plan_node *node, const struct traits *input,
                                     struct traits *own)
{
    own->rows = add_window(add(18, input->rows), &node->window.window);
    const uint32_t below = node->layout.column_count - node->window.column_count;
    for (uint32_t i = 0; i < node->layout.column_count; i++) {
        own->columns[i] = i < below ? input->columns[i]
                                    : add(add(own->rows, 19), node->window.columns[i - below]);
    }
    return own->rows;
}

/* By watermark whole rows wait in state: then every column of the input counts, and its place. On
 * arrival only what the calls read is kept. */
static uint64_t identify_over(const struct plan_node *node, const struct traits *input,
                              uint32_t input_columns, struct traits *own)
{
    const struct plan_over *over = &node->over;
    const uint32_t frame_count = over->frame_count == 0 ? 1 : over->frame_count;
    const uint64_t keyed =
        add_key(add(add(20, input->rows), over->on_arrival), &over->key, input->columns);
    uint64_t hash = add(keyed, frame_count | (over->ttl_ms != 0 ? UINT64_C(1) << 32 : 0));
    uint32_t column = input_columns;
    memcpy(own->columns, input->columns, input_columns * sizeof(*own->columns));
    for (uint32_t i = 0; i < frame_count; i++) {
        const struct plan_over_frame frame =
            over->frame_count == 0 ? plan_over_own_frame(over) : over->frames[i];
        uint64_t framed = add(add(keyed, frame.is_rows), frame.unbounded);
        framed = add(framed, frame.unbounded ? 0 : (uint64_t)frame.preceding);
        for (uint32_t k = 0; k < frame.call_count; k++) {
            own->columns[column++] = add(framed, of_call(&frame.calls[k], input->columns));
        }
        hash = add(hash, add_calls(framed, frame.calls, frame.call_count, input->columns));
    }
    ASSERT(column == node->layout.column_count);
    for (uint32_t i = 0; !over->on_arrival && i < input_columns; i++) {
        hash = add(hash, input->columns[i]);
    }
    own->rows = over->on_arrival ? input->rows : keyed;
    return hash;
}

static uint64_t identify_sink(const struct plan_node *node, const struct traits *input)
{
    const uint64_t hash = add_text(add(21, input->rows), node->sink.table);
    return add(hash, node->sink.connector);
}

static uint64_t identify(const struct identifying *all, const struct plan_node *node,
                         struct traits *own)
{
    const struct traits *input = node->input_count == 0 ? NULL : &all->traits[node->inputs[0]];
    switch (node->operator) {
    case PLAN_SOURCE:
        return identify_source(node, own);
    case PLAN_CALC:
        return identify_calc(node, input, own);
    case PLAN_UNION:
        return identify_union(all, node, own);
    case PLAN_GROUP:
        return identify_group(node, input, own);
    case PLAN_WINDOW:
        return identify_window(node, input, own);
    case PLAN_WINDOW_ROWS:
        return identify_window_rows(node, input, own);
    case PLAN_OVER:
        return identify_over(node, input,
                             all->planning->nodes[node->inputs[0]]->layout.column_count, own);
    case PLAN_SINK:
        return identify_sink(node, input);
    }
    ASSERT(false);
    return 0;
}

/* How many nodes in front have this hash already. */
static uint64_t ordinal_of(const struct planning *planning, const uint64_t *hashes, uint32_t id)
{
    ASSERT(id < planning->node_count);
    uint64_t ordinal = 0;
    for (uint32_t i = 0; i < id; i++) {
        ordinal += hashes[i] == hashes[id];
    }
    return ordinal;
}

void plan_identify(struct planning *planning)
{
    ASSERT(planning->node_count <= PLAN_NODES_MAX);
    struct sql_memory *memory = planning->session->memory;
    uint64_t *hashes = sql_allocate(memory, (planning->node_count + 1) * sizeof(*hashes));
    struct identifying all = {
        .planning = planning,
        .traits = sql_allocate(memory, (planning->node_count + 1) * sizeof(struct traits)),
    };
    for (uint32_t i = 0; i < planning->node_count; i++) {
        struct plan_node *node = planning->nodes[i];
        struct traits *own = &all.traits[i];
        own->columns =
            sql_allocate(memory, (node->layout.column_count + 1) * sizeof(*own->columns));
        hashes[i] = identify(&all, node, own);
        const uint64_t ordinal = ordinal_of(planning, hashes, i);
        node->identity = ordinal == 0 ? hashes[i] : add(hashes[i], ordinal);
        /* Two tables over one topic are two sources, and so are their rows. */
        own->rows = node->operator== PLAN_SOURCE ? node->identity : own->rows;
    }
}
