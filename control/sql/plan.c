/* SPDX-License-Identifier: Apache-2.0 */
/* From relations to plan nodes: columns that nobody needs are dropped, expressions renumbered,
 * kinds of changes and distribution derived. A node whose rows lie already as it needs them is fed
 * FORWARD: three OVER windows by one key cross lanes once. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/fuse.h"
#include "control/sql/identity.h"
#include "control/sql/plan_internal.h"
#include "control/sql/rel_expr.h"
#include "control/sql/script.h"

const struct expr *plan_expr(struct planning *planning, const struct rel *input,
                             const struct expr *expr)
{
    ASSERT(planning != NULL);
    struct sql_memory *memory = planning->session->memory;
    const uint32_t *map = planning->column_of[input->id];
    ASSERT(map != NULL);
    const struct expr **by = sql_allocate(memory, (input->column_count + 1) * sizeof(*by));
    for (uint32_t i = 0; i < input->column_count; i++) {
        by[i] = map[i] == UINT32_MAX ? NULL : expr_column(memory, map[i], input->columns[i].type);
    }
    return expr_substitute(memory, expr, by, input->column_count);
}

struct key_columns plan_key(struct planning *planning, const struct rel *input,
                            const uint32_t *columns, uint32_t count)
{
    ASSERT(planning != NULL);
    uint32_t *mapped = sql_allocate(planning->session->memory, (count + 1) * sizeof(*mapped));
    for (uint32_t i = 0; i < count; i++) {
        mapped[i] = planning->column_of[input->id][columns[i]];
        ASSERT(mapped[i] != UINT32_MAX);
    }
    return (struct key_columns){.columns = mapped, .count = count};
}

struct row_layout plan_layout(struct session *session, const struct type *types, uint32_t count)
{
    ASSERT(session != NULL);
    ASSERT(count <= ROW_COLUMNS_MAX);
    struct row_layout layout;
    uint16_t *slots = sql_allocate(session->memory, (count + 1) * sizeof(*slots));
    row_layout_init(&layout, types, count, slots);
    return layout;
}

int plan_columns(struct planning *planning, struct plan_node *node, const struct rel *rel,
                 const bool *keep)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    struct session *session = planning->session;
    uint32_t *map = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*map));
    struct type *types = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*types));
    const char **names = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*names));
    uint32_t count = 0;
    for (uint32_t i = 0; i < rel->column_count; i++) {
        map[i] = UINT32_MAX;
        if (!keep[i]) {
            continue;
        }
        const enum type_kind kind = rel->columns[i].type.kind;
        if (kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_MULTISET || kind == TYPE_ROW) {
            return sql_fail(session, -ENOTSUP, rel->at,
                            "column `%s`: ARRAY, MAP and MULTISET are not supported yet",
                            rel->columns[i].name);
        }
        types[count] = rel->columns[i].type;
        names[count] = rel->columns[i].name;
        map[i] = count++;
    }
    node->layout = plan_layout(session, types, count);
    node->column_names = names;
    node->time_column = rel->time_column < 0 || map[rel->time_column] == UINT32_MAX
                            ? -1
                            : (int32_t)map[rel->time_column];
    planning->column_of[rel->id] = map;
    return 0;
}

static const struct plan_node *input_node(const struct planning *planning, const struct rel *rel)
{
    ASSERT(planning != NULL);
    const uint32_t id = planning->node_of[rel->id];
    ASSERT(id < planning->node_count);
    return planning->nodes[id];
}

static bool key_same(const struct key_columns *a, const struct key_columns *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->columns, b->columns, a->count * sizeof(uint32_t)) == 0);
}

/* Says how the rows must be spread; FORWARD where they are already by this very key. By a part of
 * it they would lie right too, but then the shard of a key in state were not the one that the
 * exchange reckons with, and state could not move between lanes. */
static void distribute(struct planning *planning, struct plan_node *node,
                       const struct key_columns *key)
{
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const uint32_t input = node->inputs[0];
    node->distribution_key = *key;
    const bool lies_right = planning->is_spread[input] && key_same(&planning->spread[input], key);
    if (lies_right) {
        node->distribution = PLAN_FORWARD;
    } else {
        node->distribution = key->count == 0 ? PLAN_SINGLE : PLAN_HASH;
    }
}

/* Says how a node's output rows are spread: by columns of it that hold the key. */
static void set_spread(struct planning *planning, uint32_t id, const uint32_t *columns,
                       uint32_t count)
{
    ASSERT(planning != NULL);
    uint32_t *copy = sql_allocate(planning->session->memory, (count + 1) * sizeof(*copy));
    memcpy(copy, columns, count * sizeof(*copy));
    planning->spread[id] = (struct key_columns){.columns = copy, .count = count};
    planning->is_spread[id] = true;
}

/* A Calc keeps its input's spread where it passes the key on. */
static void pass_spread(struct planning *planning, const struct plan_node *node)
{
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const uint32_t input = node->inputs[0];
    if (!planning->is_spread[input]) {
        return;
    }
    const struct key_columns *key = &planning->spread[input];
    uint32_t columns[KEY_COLUMNS_MAX];
    for (uint32_t i = 0; i < key->count; i++) {
        columns[i] = UINT32_MAX;
        for (uint32_t k = 0; k < node->layout.column_count; k++) {
            const struct expr *output = node->calc.outputs == NULL ? NULL : node->calc.outputs[k];
            const bool passes =
                output == NULL ? k == key->columns[i]
                               : output->kind == EXPR_COLUMN && output->column == key->columns[i];
            columns[i] = passes && columns[i] == UINT32_MAX ? k : columns[i];
        }
        if (columns[i] == UINT32_MAX) {
            return;
        }
    }
    set_spread(planning, node->id, columns, key->count);
}

static void plan_calc(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const struct rel *input = rel->inputs[0];
    struct session *session = planning->session;
    if (rel->condition != NULL) {
        node->calc.condition = plan_expr(planning, input, rel->condition);
    }
    const uint32_t *map = planning->column_of[rel->id];
    const struct expr **outputs =
        sql_allocate(session->memory, (node->layout.column_count + 1) * sizeof(*outputs));
    bool is_same = node->layout.column_count == input_node(planning, input)->layout.column_count;
    for (uint32_t i = 0; i < rel->column_count; i++) {
        if (map[i] != UINT32_MAX) {
            outputs[map[i]] = plan_expr(planning, input, rel->outputs[i]);
            is_same = is_same && outputs[map[i]]->kind == EXPR_COLUMN &&
                      outputs[map[i]]->column == map[i];
        }
    }
    node->calc.outputs = is_same ? NULL : outputs;
    node->distribution = PLAN_FORWARD;
    pass_spread(planning, node);
    (void)snprintf(node->name, sizeof(node->name), "Calc");
}

/* Keeps the calls that somebody reads, with columns renumbered. */
static struct aggregate_call *keep_calls(struct planning *planning, const struct rel *rel,
                                         uint32_t first, uint32_t *count)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const uint32_t *below = planning->column_of[rel->inputs[0]->id];
    const uint32_t *own = planning->column_of[rel->id];
    struct aggregate_call *calls =
        sql_allocate(planning->session->memory, (rel->call_count + 1) * sizeof(*calls));
    *count = 0;
    for (uint32_t i = 0; i < rel->call_count; i++) {
        if (own[first + i] == UINT32_MAX) {
            continue;
        }
        struct aggregate_call *call = &calls[(*count)++];
        *call = rel->calls[i];
        if (call->argument != AGGREGATE_COLUMN_NONE) {
            call->argument = below[call->argument];
        }
        if (call->filter != AGGREGATE_COLUMN_NONE) {
            call->filter = below[call->filter];
        }
    }
    return calls;
}

/* The name of a node: its operator and the names of its key. */
static void name_keyed(struct plan_node *node, const char *operator, const struct plan_node * input,
                       const struct key_columns *key, const char *suffix)
{
    ASSERT(input->input_count <= PLAN_INPUTS_MAX);
    ASSERT(key != NULL);
    ASSERT(node != NULL);
    size_t used = (size_t)snprintf(node->name, sizeof(node->name), "%s[", operator);
    for (uint32_t i = 0; i < key->count && used < sizeof(node->name); i++) {
        used += (size_t)snprintf(node->name + used, sizeof(node->name) - used, "%s%s",
                                 i == 0 ? "" : ", ", input->column_names[key->columns[i]]);
    }
    if (used < sizeof(node->name)) {
        (void)snprintf(node->name + used, sizeof(node->name) - used, "%s%s]",
                       key->count != 0 && suffix[0] != 0 ? ", " : "", suffix);
    }
}

static uint32_t *first_columns(struct planning *planning, uint32_t count)
{
    ASSERT(planning != NULL);
    uint32_t *columns = sql_allocate(planning->session->memory, (count + 1) * sizeof(*columns));
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = i;
    }
    return columns;
}

static void plan_group(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const struct rel *input = rel->inputs[0];
    struct plan_group *group = &node->group;
    group->key = plan_key(planning, input, rel->group, rel->group_count);
    group->calls = keep_calls(planning, rel, rel->group_count, &group->call_count);
    group->input_updates = input->updating;
    group->ttl_ms = rel->ttl_ms;
    group->send_update_before = planning->needs[rel->id].update_before;
    distribute(planning, node, &group->key);
    set_spread(planning, node->id, first_columns(planning, rel->group_count), rel->group_count);
    name_keyed(node, "Group", input_node(planning, input), &group->key, "");
}

const char *plan_window_name(enum plan_window_kind kind)
{
    static const char *const names[] = {
        [PLAN_WINDOW_TUMBLE] = "TUMBLE",
        [PLAN_WINDOW_HOP] = "HOP",
        [PLAN_WINDOW_CUMULATE] = "CUMULATE",
    };
    ASSERT(kind < COUNT_OF(names) && names[kind] != NULL);
    return names[kind];
}

static void print_window(const struct plan_window_spec *window, char into[static 128])
{
    ASSERT(window != NULL);
    char size[32];
    char slide[32];
    sql_duration_print(window->size_ms, size);
    sql_duration_print(window->slide_ms, slide);
    const bool tumbles = window->kind == PLAN_WINDOW_TUMBLE;
    (void)snprintf(into, 128, "%s %s%s%s", plan_window_name(window->kind), tumbles ? "" : slide,
                   tumbles ? "" : " of ", size);
}

static void plan_window(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const struct rel *input = rel->inputs[0];
    struct plan_window *window = &node->window;
    const uint32_t *own = planning->column_of[rel->id];
    window->window = *rel->window;
    window->key = plan_key(planning, input, rel->group, rel->group_count);
    window->calls = keep_calls(planning, rel, rel->group_count, &window->call_count);
    enum plan_window_column *columns =
        sql_allocate(planning->session->memory, 3 * sizeof(*columns));
    for (uint32_t i = 0; i < 3; i++) {
        if (own[rel->group_count + rel->call_count + i] != UINT32_MAX) {
            columns[window->column_count++] = (enum plan_window_column)i;
        }
    }
    window->columns = columns;
    window->window_end_column = rel->window_end == UINT32_MAX
                                    ? PLAN_WINDOW_END_NONE
                                    : planning->column_of[input->id][rel->window_end];
    window->input_updates = input->updating;
    window->keeps_before_epoch = rel->keeps_before_epoch;
    distribute(planning, node, &window->key);
    set_spread(planning, node->id, first_columns(planning, rel->group_count), rel->group_count);
    char text[128];
    print_window(rel->window, text);
    name_keyed(node, "Window", input_node(planning, input), &window->key, text);
}

static void plan_window_rows(struct planning *planning, struct plan_node *node,
                             const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    char text[128];
    node->window.window = *rel->window;
    node->window.window_end_column = PLAN_WINDOW_END_NONE;
    static const enum plan_window_column all[] = {PLAN_WINDOW_START, PLAN_WINDOW_END,
                                                  PLAN_WINDOW_TIME};
    node->window.columns = all;
    node->window.column_count = COUNT_OF(all);
    node->distribution = PLAN_FORWARD;
    print_window(rel->window, text);
    (void)snprintf(node->name, sizeof(node->name), "WindowRows[%.100s]", text);
    if (planning->is_spread[node->inputs[0]]) {
        const struct key_columns *key = &planning->spread[node->inputs[0]];
        set_spread(planning, node->id, key->columns, key->count);
    }
}

static void plan_over(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    const struct rel *input = rel->inputs[0];
    struct plan_over *over = &node->over;
    over->key = plan_key(planning, input, rel->group, rel->group_count);
    over->calls = keep_calls(planning, rel, input->column_count, &over->call_count);
    over->is_rows = rel->frame.is_rows;
    over->unbounded = rel->frame.unbounded;
    over->preceding = rel->frame.preceding;
    over->on_arrival = rel->on_arrival;
    over->ttl_ms = rel->ttl_ms;
    distribute(planning, node, &over->key);
    const struct key_columns *spread =
        node->distribution == PLAN_FORWARD ? &planning->spread[node->inputs[0]] : &over->key;
    set_spread(planning, node->id, spread->columns, spread->count);
    char text[64];
    char span[32];
    sql_duration_print(over->preceding, span);
    if (over->unbounded) {
        (void)snprintf(text, sizeof(text), "%s unbounded", over->is_rows ? "ROWS" : "RANGE");
    } else if (over->is_rows) {
        (void)snprintf(text, sizeof(text), "%lld rows", (long long)over->preceding);
    } else {
        (void)snprintf(text, sizeof(text), "%s", span);
    }
    name_keyed(node, "Over", input_node(planning, input), &over->key, text);
}

/* Which columns a relation's node keeps. WindowRows and Over put theirs behind all of the input's
 * columns, so the input's node decides; group keys and the time attribute always stay. */
static bool *kept_columns(struct planning *planning, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const struct need *need = &planning->needs[rel->id];
    bool *keep = sql_allocate(planning->session->memory, rel->column_count + 1);
    memcpy(keep, need->columns, rel->column_count);
    if (rel->kind == REL_OVER || rel->kind == REL_WINDOW_ROWS) {
        const uint32_t *below = planning->column_of[rel->inputs[0]->id];
        for (uint32_t i = 0; i < rel->inputs[0]->column_count; i++) {
            keep[i] = below[i] != UINT32_MAX;
        }
        for (uint32_t i = 0; i < 3 && rel->kind == REL_WINDOW_ROWS; i++) {
            keep[rel->inputs[0]->column_count + i] = true;
        }
    }
    for (uint32_t i = 0; i < rel->group_count && rel->kind != REL_OVER; i++) {
        keep[i] = true;
    }
    /* UNION's inputs have equal layouts: they keep what it keeps. */
    return keep;
}

static int plan_body(struct planning *planning, struct plan_node *node, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    switch (rel->kind) {
    case REL_SCAN:
        return plan_scan(planning, node, rel);
    case REL_CALC:
        plan_calc(planning, node, rel);
        return 0;
    case REL_UNION:
        node->distribution = PLAN_FORWARD;
        (void)snprintf(node->name, sizeof(node->name), "Union");
        return 0;
    case REL_GROUP:
        plan_group(planning, node, rel);
        return 0;
    case REL_WINDOW:
        plan_window(planning, node, rel);
        return 0;
    case REL_WINDOW_ROWS:
        plan_window_rows(planning, node, rel);
        return 0;
    case REL_OVER:
        plan_over(planning, node, rel);
        return 0;
    case REL_SINK:
        return plan_sink(planning, node, rel);
    }
    ASSERT(false);
    return -EINVAL;
}

/* What a node sends: a Group as it is asked to, those that pass rows on what they get. */
static enum plan_changelog changelog_of(const struct planning *planning, const struct rel *rel,
                                        const struct plan_node *node)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    ASSERT(node != NULL);
    if (!rel->updating) {
        return PLAN_APPEND;
    }
    if (rel->kind == REL_GROUP) {
        return planning->needs[rel->id].update_before ? PLAN_RETRACT : PLAN_UPSERT;
    }
    enum plan_changelog changelog = PLAN_APPEND;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const enum plan_changelog below = planning->nodes[node->inputs[i]]->changelog;
        changelog = below > changelog ? below : changelog;
    }
    return changelog;
}

static struct plan_node *new_node(struct planning *planning, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(planning != NULL);
    static const enum plan_operator operators[] = {
        [REL_SCAN] = PLAN_SOURCE, [REL_CALC] = PLAN_CALC,     [REL_UNION] = PLAN_UNION,
        [REL_GROUP] = PLAN_GROUP, [REL_WINDOW] = PLAN_WINDOW, [REL_WINDOW_ROWS] = PLAN_WINDOW_ROWS,
        [REL_OVER] = PLAN_OVER,   [REL_SINK] = PLAN_SINK,
    };
    struct session *session = planning->session;
    struct plan_node *node = sql_allocate(session->memory, sizeof(*node));
    node->operator= operators[rel->kind];
    node->id = planning->node_count;
    node->line = rel->at.line;
    node->column_in_line = rel->at.column;
    node->input_count = rel->input_count;
    uint32_t *inputs = sql_allocate(session->memory, (rel->input_count + 1) * sizeof(*inputs));
    for (uint32_t i = 0; i < rel->input_count; i++) {
        inputs[i] = planning->node_of[rel->inputs[i]->id];
        ASSERT(inputs[i] < node->id);
    }
    node->inputs = inputs;
    node->changelog = changelog_of(planning, rel, node);
    return node;
}

/* The inputs of a UNION must have equal layouts: one whose node keeps other columns (it is shared)
 * gets a Calc of its own between. */
static struct plan_node *align_union_input(struct planning *planning, const struct rel *rel,
                                           const bool *keep, uint32_t index)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const struct rel *input = rel->inputs[index];
    const uint32_t *map = planning->column_of[input->id];
    bool is_same = true;
    struct session *session = planning->session;
    for (uint32_t i = 0; i < rel->column_count; i++) {
        is_same = is_same && (map[i] != UINT32_MAX) == keep[i];
    }
    struct plan_node *below = planning->nodes[planning->node_of[input->id]];
    if (is_same) {
        return below;
    }
    uint32_t count = 0;
    struct type *types = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*types));
    const char **names = sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*names));
    const struct expr **outputs =
        sql_allocate(session->memory, (rel->column_count + 1) * sizeof(*outputs));
    struct plan_node *node = sql_allocate(session->memory, sizeof(*node));
    *node = (struct plan_node){.operator= PLAN_CALC, .id = planning->node_count, .time_column = -1};
    for (uint32_t i = 0; i < rel->column_count; i++) {
        if (!keep[i]) {
            continue;
        }
        if (rel->time_column == (int32_t)i) {
            node->time_column = (int32_t)count;
        }
        types[count] = rel->columns[i].type;
        names[count] = rel->columns[i].name;
        outputs[count++] = expr_column(session->memory, map[i], input->columns[i].type);
    }
    node->line = rel->at.line;
    node->column_in_line = rel->at.column;
    node->input_count = 1;
    uint32_t *inputs = sql_allocate(session->memory, sizeof(*inputs));
    inputs[0] = below->id;
    node->inputs = inputs;
    node->layout = plan_layout(session, types, count);
    node->column_names = names;
    node->changelog = below->changelog;
    node->calc.outputs = outputs;
    (void)snprintf(node->name, sizeof(node->name), "Calc");
    planning->nodes[planning->node_count++] = node;
    pass_spread(planning, node);
    return node;
}

static int plan_rel(struct planning *planning, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(planning != NULL);
    const bool *keep = kept_columns(planning, rel);
    uint32_t aligned[PLAN_INPUTS_MAX];
    if (planning->node_count + rel->input_count >= PLAN_NODES_MAX) {
        return sql_fail(planning->session, -E2BIG, rel->at, "the plan has more than %d operators",
                        PLAN_NODES_MAX);
    }
    for (uint32_t i = 0; rel->kind == REL_UNION && i < rel->input_count; i++) {
        aligned[i] = align_union_input(planning, rel, keep, i)->id;
    }
    struct plan_node *node = new_node(planning, rel);
    if (rel->kind == REL_UNION) {
        uint32_t *inputs =
            sql_allocate(planning->session->memory, rel->input_count * sizeof(*inputs));
        memcpy(inputs, aligned, rel->input_count * sizeof(*inputs));
        node->inputs = inputs;
    }
    int verdict = 0;
    if (rel->kind == REL_SINK) {
        const struct plan_node *input = input_node(planning, rel->inputs[0]);
        node->layout = input->layout;
        node->column_names = input->column_names;
        node->time_column = input->time_column;
    } else {
        verdict = plan_columns(planning, node, rel, keep);
    }
    planning->node_of[rel->id] = node->id;
    planning->nodes[planning->node_count++] = node;
    if (verdict == 0) {
        verdict = plan_body(planning, node, rel);
    }
    return verdict;
}

/* FNV-1a, 64 bits: stable over runs and machines. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    ASSERT(text != NULL);
    for (; *text != 0; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return (hash ^ 0xff) * UINT64_C(1099511628211);
}

static uint64_t fingerprint(const struct planning *planning)
{
    ASSERT(planning != NULL);
    const struct session *session = planning->session;
    uint64_t hash = hash_text(UINT64_C(14695981039346656037), session->settings.time_zone);
    for (uint32_t i = 0; i < session->rels.count; i++) {
        const struct rel *rel = session->rels.items[i];
        if (planning->needs[i].reached) {
            hash = hash_text(hash, rel->definition);
            hash = hash_text(hash, rel->kind == REL_SCAN ? rel->table->options.topics[0] : "");
        }
    }
    return hash;
}

int plan_build(struct session *session, struct plan *out)
{
    ASSERT(session != NULL);
    ASSERT(out != NULL);
    const uint32_t count = session->rels.count;
    struct sql_memory *memory = session->memory;
    struct planning planning = {
        .session = session,
        .needs = prune(session),
        .nodes = sql_allocate(memory, PLAN_NODES_MAX * sizeof(struct plan_node *)),
        .node_of = sql_allocate(memory, (count + 1) * sizeof(uint32_t)),
        .column_of = sql_allocate(memory, (count + 1) * sizeof(uint32_t *)),
        .spread = sql_allocate(memory, PLAN_NODES_MAX * sizeof(struct key_columns)),
        .is_spread = sql_allocate(memory, PLAN_NODES_MAX * sizeof(bool)),
    };
    for (uint32_t i = 0; i < count; i++) {
        if (!planning.needs[i].reached) {
            continue;
        }
        const int verdict = plan_rel(&planning, session->rels.items[i]);
        if (verdict != 0) {
            return verdict;
        }
    }
    if (!session->settings.over_apart) {
        plan_fuse(&planning);
    }
    plan_identify(&planning);
    out->nodes = (const struct plan_node *const *)planning.nodes;
    out->node_count = planning.node_count;
    out->time_zone = session->settings.time_zone;
    out->fingerprint = fingerprint(&planning);
    return 0;
}
