/* SPDX-License-Identifier: Apache-2.0 */
/* Makers of relations; see rel.h. Each writes a definition of itself and gives back the relation
 * that has this definition already, if there is one. */
#include "control/sql/rel.h"

#include <inttypes.h>
#include <stdlib.h>

#include "control/sql/rel_expr.h"

/* A definition being written. */
struct definition {
    FILE *into;
    char *text;
    size_t bytes;
};

static void definition_begin(struct definition *definition, const char *kind)
{
    ASSERT(definition != NULL);
    definition->into = open_memstream(&definition->text, &definition->bytes);
    ASSERT(definition->into != NULL);
    (void)fprintf(definition->into, "%s", kind);
}

/* Gives the relation of this definition: an older one, or the new one, then numbered. */
static struct rel *intern(struct session *session, struct rel *rel, struct definition *definition)
{
    ASSERT(session != NULL);
    ASSERT(definition != NULL);
    for (uint32_t i = 0; i < rel->input_count; i++) {
        (void)fprintf(definition->into, " <%u", rel->inputs[i]->id);
    }
    (void)fclose(definition->into);
    ASSERT(definition->text != NULL);
    struct rel *found = NULL;
    for (uint32_t i = 0; i < session->rels.count && found == NULL; i++) {
        struct rel *other = session->rels.items[i];
        found = strcmp(other->definition, definition->text) == 0 ? other : NULL;
    }
    if (found == NULL) {
        rel->definition = sql_copy_text(session->memory, definition->text, definition->bytes);
        rel->id = session->rels.count;
        ast_append(session->memory, &session->rels, rel);
        found = rel;
    }
    free(definition->text);
    return found;
}

static struct rel *new_rel(struct session *session, enum rel_kind kind, uint32_t input_count,
                           struct place at)
{
    ASSERT(session != NULL);
    struct rel *rel = sql_allocate(session->memory, sizeof(*rel));
    rel->kind = kind;
    rel->at = at;
    rel->input_count = input_count;
    rel->inputs = sql_allocate(session->memory, input_count * sizeof(struct rel *));
    rel->time_column = -1;
    rel->window_end = UINT32_MAX;
    return rel;
}

static void new_columns(struct session *session, struct rel *rel, uint32_t count)
{
    ASSERT(session != NULL);
    ASSERT(count <= UINT16_MAX);
    rel->column_count = count;
    rel->columns = sql_allocate(session->memory, count * sizeof(struct rel_column));
}

static uint32_t *copy_indices(struct session *session, const uint32_t *from, uint32_t count)
{
    ASSERT(session != NULL);
    uint32_t *copy = sql_allocate(session->memory, count * sizeof(*copy));
    if (count != 0) {
        memcpy(copy, from, count * sizeof(*copy));
    }
    return copy;
}

static void define_indices(FILE *into, const char *name, const uint32_t *indices, uint32_t count)
{
    ASSERT(into != NULL);
    (void)fprintf(into, " %s(", name);
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(into, "%s%u", i == 0 ? "" : ",", indices[i]);
    }
    (void)fputc(')', into);
}

struct rel *rel_scan(struct session *session, struct table *table)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(table->scan_column_count != 0);
    struct rel *rel = new_rel(session, REL_SCAN, 0, table->at);
    rel->table = table;
    new_columns(session, rel, table->scan_column_count);
    for (uint32_t i = 0; i < rel->column_count; i++) {
        rel->columns[i] = (struct rel_column){
            .name = table->scan_names[i],
            .type = table->scan_types[i],
        };
    }
    if (table->proctime != UINT32_MAX) {
        rel->columns[table->proctime].roles = REL_PROCTIME;
    }
    if (table->watermark != NULL) {
        ASSERT(table->rowtime < rel->column_count);
        rel->columns[table->rowtime].roles = REL_ROWTIME;
        rel->time_column = (int32_t)table->rowtime;
    }
    struct definition definition;
    definition_begin(&definition, "scan ");
    (void)fprintf(definition.into, "%s", table->name.text);
    return intern(session, rel, &definition);
}

/* Tells whether values of a type print as texts of at most so many characters, and different ones
 * differently. */
static bool prints_within(const struct type *type, uint32_t length)
{
    ASSERT(type->kind <= TYPE_ROW);
    switch (type->kind) {
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
        return length >= 20;
    case TYPE_BOOLEAN:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
        return length == TYPE_LENGTH_MAX;
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        return length >= type->length;
    default:
        return false;
    }
}

/* Looks through casts of which Flink knows that they lose nothing: a key cast so is still a key. */
static const struct expr *expr_faithful(const struct expr *expr)
{
    while (expr->kind == EXPR_CALL && expr->function == EXPR_CAST) {
        const struct type *from = &expr->arguments[0]->type;
        const struct type *to = &expr->type;
        const bool widens = type_is_integer(from) && type_is_integer(to) && from->kind <= to->kind;
        if (!widens && (to->kind != TYPE_VARCHAR || !prints_within(from, to->length))) {
            return expr;
        }
        expr = expr->arguments[0];
    }
    return expr;
}

/* A Calc passes its input's properties on through the columns that it passes unchanged. */
static void derive_calc(struct session *session, struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(session != NULL);
    const struct rel *input = rel->inputs[0];
    rel->window = input->window;
    rel->updating = input->updating;
    uint32_t *where = sql_allocate(session->memory, input->column_count * sizeof(*where));
    memset(where, 0xff, input->column_count * sizeof(*where));
    for (uint32_t i = rel->column_count; i-- > 0;) {
        const struct expr *from = expr_faithful(rel->outputs[i]);
        if (from->kind == EXPR_COLUMN) {
            where[from->column] = i;
        }
    }
    for (uint32_t i = 0; i < rel->column_count && rel->time_column < 0; i++) {
        if ((rel->columns[i].roles & REL_ROWTIME) != 0 && rel->outputs[i]->kind == EXPR_COLUMN &&
            (int32_t)rel->outputs[i]->column == input->time_column) {
            rel->time_column = (int32_t)i;
        }
    }
    rel->has_key = input->has_key;
    rel->key_column_count = input->key_column_count;
    rel->key_columns = sql_allocate(session->memory, rel->key_column_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < rel->key_column_count && rel->has_key; i++) {
        rel->key_columns[i] = where[input->key_columns[i]];
        rel->has_key = rel->key_columns[i] != UINT32_MAX;
    }
    rel->key_column_count = rel->has_key ? rel->key_column_count : 0;
}

/* Tells whether a Calc over a Calc may become one: no computation would be repeated and the trees
 * stay shallow. */
static bool calc_melts(const struct rel *below, const struct rel_calc_spec *spec)
{
    ASSERT(below->columns != NULL || below->column_count == 0);
    ASSERT(below->inputs != NULL || below->input_count == 0);
    uint32_t uses[UINT8_MAX + 1] = {0};
    if (below->column_count > UINT8_MAX) {
        return false;
    }
    if (spec->condition != NULL) {
        expr_count_columns(spec->condition, uses, below->column_count);
    }
    uint32_t depth = spec->condition == NULL ? 0 : expr_depth(spec->condition);
    for (uint32_t i = 0; i < spec->count; i++) {
        expr_count_columns(spec->outputs[i], uses, below->column_count);
        const uint32_t own = expr_depth(spec->outputs[i]);
        depth = own > depth ? own : depth;
    }
    for (uint32_t i = 0; i < below->column_count; i++) {
        if (uses[i] > 1 && below->outputs[i]->kind == EXPR_CALL) {
            return false;
        }
        if (uses[i] != 0 && depth + expr_depth(below->outputs[i]) + 1 > EXPR_DEPTH_MAX) {
            return false;
        }
    }
    return below->condition == NULL || expr_depth(below->condition) + 1 < EXPR_DEPTH_MAX;
}

static bool calc_is_identity(const struct rel_calc_spec *spec)
{
    ASSERT(spec != NULL);
    if (spec->condition != NULL || spec->count != spec->input->column_count) {
        return false;
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct expr *output = spec->outputs[i];
        if (output->kind != EXPR_COLUMN || output->column != i ||
            spec->roles[i] != spec->input->columns[i].roles) {
            return false;
        }
    }
    return true;
}

static struct rel *calc_plain(struct session *session, const struct rel_calc_spec *spec)
{
    ASSERT(spec != NULL);
    ASSERT(session != NULL);
    struct rel *rel = new_rel(session, REL_CALC, 1, spec->at);
    rel->inputs[0] = spec->input;
    rel->condition = spec->condition;
    rel->outputs = sql_allocate(session->memory, spec->count * sizeof(*rel->outputs));
    new_columns(session, rel, spec->count);
    struct definition definition;
    definition_begin(&definition, "calc ");
    if (spec->condition != NULL) {
        expr_define(definition.into, spec->condition);
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        rel->outputs[i] = spec->outputs[i];
        rel->columns[i] = (struct rel_column){
            .name = spec->names[i],
            .type = spec->outputs[i]->type,
            .roles = spec->roles[i],
        };
        (void)fprintf(definition.into, ";%u ", spec->roles[i]);
        expr_define(definition.into, spec->outputs[i]);
    }
    derive_calc(session, rel);
    return intern(session, rel, &definition);
}

struct rel *rel_calc(struct session *session, const struct rel_calc_spec *spec)
{
    ASSERT(spec != NULL);
    ASSERT(session != NULL);
    ASSERT(spec->input != NULL);
    if (calc_is_identity(spec)) {
        return spec->input;
    }
    const struct rel *below = spec->input;
    if (below->kind != REL_CALC || !calc_melts(below, spec)) {
        return calc_plain(session, spec);
    }
    struct rel_calc_spec melted = *spec;
    melted.input = below->inputs[0];
    const struct expr *own = spec->condition == NULL
                                 ? NULL
                                 : expr_substitute(session->memory, spec->condition, below->outputs,
                                                   below->column_count);
    melted.condition = expr_and(session->memory, below->condition, own);
    melted.outputs = sql_allocate(session->memory, spec->count * sizeof(*melted.outputs));
    for (uint32_t i = 0; i < spec->count; i++) {
        melted.outputs[i] =
            expr_substitute(session->memory, spec->outputs[i], below->outputs, below->column_count);
    }
    return rel_calc(session, &melted);
}

struct rel *rel_union(struct session *session, struct rel **inputs, uint32_t count, struct place at)
{
    ASSERT(session != NULL);
    ASSERT(count >= 2);
    struct rel *rel = new_rel(session, REL_UNION, count, at);
    new_columns(session, rel, inputs[0]->column_count);
    memcpy(rel->columns, inputs[0]->columns, rel->column_count * sizeof(struct rel_column));
    rel->time_column = inputs[0]->time_column;
    for (uint32_t i = 0; i < count; i++) {
        rel->inputs[i] = inputs[i];
        ASSERT(inputs[i]->column_count == rel->column_count);
        rel->updating = rel->updating || inputs[i]->updating;
        rel->time_column = inputs[i]->time_column == rel->time_column ? rel->time_column : -1;
        for (uint32_t k = 0; k < rel->column_count; k++) {
            rel->columns[k].roles &= inputs[i]->columns[k].roles & REL_ROWTIME;
            rel->columns[k].type.nullable |= inputs[i]->columns[k].type.nullable;
        }
    }
    struct definition definition;
    definition_begin(&definition, "union");
    return intern(session, rel, &definition);
}

static void define_calls(FILE *into, const struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(into != NULL);
    for (uint32_t i = 0; i < rel->call_count; i++) {
        const struct aggregate_call *call = &rel->calls[i];
        (void)fprintf(into, " %d%s(%u,%u,%u,", (int)call->function, call->distinct ? "d" : "",
                      call->argument, call->filter, call->lag_offset);
        type_define(into, &call->result_type);
        (void)fprintf(into, ",%.*s,", (int)call->separator.bytes,
                      call->separator.bytes == 0 ? "" : (const char *)call->separator.data);
        const struct expr fallback = {
            .kind = EXPR_LITERAL, .type = call->result_type, .literal = call->lag_default};
        if (call->function == AGGREGATE_LAG) {
            expr_define(into, &fallback);
        }
        (void)fputc(')', into);
    }
}

/* Fills in what GROUP, WINDOW and OVER have in common. */
static struct rel *new_aggregate(struct session *session, enum rel_kind kind,
                                 const struct rel_aggregate_spec *spec)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    struct rel *rel = new_rel(session, kind, 1, spec->at);
    rel->inputs[0] = spec->input;
    rel->group = copy_indices(session, spec->group, spec->group_count);
    rel->group_count = spec->group_count;
    rel->calls = spec->calls;
    rel->call_count = spec->call_count;
    return rel;
}

static void put_calls(struct rel *rel, const struct rel_aggregate_spec *spec, uint32_t first)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    ASSERT(spec != NULL);
    for (uint32_t i = 0; i < spec->call_count; i++) {
        const enum aggregate_function function = spec->calls[i].function;
        const bool is_rank = function == AGGREGATE_ROW_NUMBER || function == AGGREGATE_RANK ||
                             function == AGGREGATE_DENSE_RANK;
        rel->columns[first + i] = (struct rel_column){
            .name = spec->call_names[i],
            .type = spec->calls[i].result_type,
            .roles = is_rank ? REL_RANK : REL_PLAIN,
        };
    }
}

static void put_group(struct rel *rel)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(rel->inputs != NULL || rel->input_count == 0);
    for (uint32_t i = 0; i < rel->group_count; i++) {
        rel->columns[i] = rel->inputs[0]->columns[rel->group[i]];
        rel->columns[i].roles = REL_PLAIN;
    }
}

static uint32_t *first_indices(struct session *session, uint32_t count)
{
    ASSERT(session != NULL);
    uint32_t *indices = sql_allocate(session->memory, count * sizeof(*indices));
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = i;
    }
    return indices;
}

/* The same rows with another lifetime are another state. */
static void define_ttl(FILE *into, const struct rel *rel)
{
    ASSERT(into != NULL);
    ASSERT(rel->kind == REL_GROUP || rel->kind == REL_OVER);
    if (rel->ttl_ms != 0) {
        (void)fprintf(into, " ttl%" PRIu64, rel->ttl_ms);
    }
}

struct rel *rel_group(struct session *session, const struct rel_aggregate_spec *spec)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    struct rel *rel = new_aggregate(session, REL_GROUP, spec);
    new_columns(session, rel, spec->group_count + spec->call_count);
    put_group(rel);
    put_calls(rel, spec, spec->group_count);
    rel->updating = true;
    rel->has_key = true;
    rel->key_column_count = spec->group_count;
    rel->key_columns = first_indices(session, spec->group_count);
    rel->ttl_ms = spec->ttl_ms;
    struct definition definition;
    definition_begin(&definition, "group");
    define_ttl(definition.into, rel);
    define_indices(definition.into, "by", rel->group, rel->group_count);
    define_calls(definition.into, rel);
    return intern(session, rel, &definition);
}

static void define_window(FILE *into, const struct plan_window_spec *window)
{
    ASSERT(into != NULL);
    ASSERT(window != NULL);
    (void)fprintf(into, " %d %" PRId64 " %" PRId64 " %" PRId64 " %d %s", (int)window->kind,
                  window->size_ms, window->slide_ms, window->offset_ms, window->local_clock,
                  window->time_zone);
}

/* Appends window start, end and time to the columns. */
static void put_window_columns(struct rel *rel, const struct plan_window_spec *window,
                               uint32_t first)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(window != NULL);
    const struct type bound = {.kind = TYPE_TIMESTAMP, .precision = 3};
    struct type time = bound;
    time.kind = window->local_clock ? TYPE_TIMESTAMP_LTZ : TYPE_TIMESTAMP;
    rel->columns[first] = (struct rel_column){"window_start", bound, REL_WINDOW_START};
    rel->columns[first + 1] = (struct rel_column){"window_end", bound, REL_WINDOW_END};
    rel->columns[first + 2] =
        (struct rel_column){"window_time", time, REL_ROWTIME | REL_WINDOW_TIME};
    rel->window = window;
}

struct rel *rel_window(struct session *session, const struct rel_aggregate_spec *spec,
                       const struct plan_window_spec *window, uint32_t window_end, bool legacy)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    ASSERT(window != NULL);
    struct rel *rel = new_aggregate(session, REL_WINDOW, spec);
    const uint32_t first = spec->group_count + spec->call_count;
    new_columns(session, rel, first + 3);
    put_group(rel);
    put_calls(rel, spec, spec->group_count);
    put_window_columns(rel, window, first);
    rel->time_column = (int32_t)first + 2;
    rel->window_end = window_end;
    rel->keeps_before_epoch = legacy || session->settings.one_phase;
    struct definition definition;
    definition_begin(&definition, "window");
    define_window(definition.into, window);
    define_indices(definition.into, "by", rel->group, rel->group_count);
    define_calls(definition.into, rel);
    (void)fprintf(definition.into, " end%u epoch%d", window_end, rel->keeps_before_epoch);
    return intern(session, rel, &definition);
}

struct rel *rel_window_rows(struct session *session, struct rel *input,
                            const struct plan_window_spec *window, struct place at)
{
    ASSERT(input->columns != NULL || input->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(window != NULL);
    struct rel *rel = new_rel(session, REL_WINDOW_ROWS, 1, at);
    rel->inputs[0] = input;
    new_columns(session, rel, input->column_count + 3);
    for (uint32_t i = 0; i < input->column_count; i++) {
        rel->columns[i] = input->columns[i];
        rel->columns[i].roles &= REL_ROWTIME;
    }
    put_window_columns(rel, window, input->column_count);
    rel->time_column = input->time_column;
    rel->updating = input->updating;
    struct definition definition;
    definition_begin(&definition, "rows");
    define_window(definition.into, window);
    return intern(session, rel, &definition);
}

struct rel *rel_over(struct session *session, const struct rel_aggregate_spec *spec,
                     const struct rel_frame *frame, bool on_arrival)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    ASSERT(!spec->input->updating);
    struct rel *rel = new_aggregate(session, REL_OVER, spec);
    const uint32_t width = spec->input->column_count;
    new_columns(session, rel, width + spec->call_count);
    memcpy(rel->columns, spec->input->columns, width * sizeof(struct rel_column));
    put_calls(rel, spec, width);
    rel->time_column = spec->input->time_column;
    rel->window = spec->input->window;
    rel->frame = *frame;
    rel->on_arrival = on_arrival;
    rel->ttl_ms = frame->unbounded || frame->is_rows ? spec->ttl_ms : 0;
    rel->has_key = spec->input->has_key;
    rel->key_columns = spec->input->key_columns;
    rel->key_column_count = spec->input->key_column_count;
    struct definition definition;
    definition_begin(&definition, "over");
    (void)fprintf(definition.into, " %d %d %" PRId64 " %d", frame->is_rows, frame->unbounded,
                  frame->preceding, on_arrival);
    define_ttl(definition.into, rel);
    define_indices(definition.into, "by", rel->group, rel->group_count);
    define_calls(definition.into, rel);
    return intern(session, rel, &definition);
}

struct rel *rel_sink(struct session *session, struct rel *input, struct table *table,
                     uint32_t *columns, bool key_matches, struct place at)
{
    ASSERT(input->columns != NULL || input->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(table != NULL);
    struct rel *rel = new_rel(session, REL_SINK, 1, at);
    rel->inputs[0] = input;
    rel->table = table;
    rel->sink_columns = columns;
    rel->sink_key_matches = key_matches;
    rel->columns = input->columns;
    rel->column_count = input->column_count;
    rel->time_column = input->time_column;
    rel->updating = input->updating;
    struct definition definition;
    definition_begin(&definition, "sink ");
    (void)fprintf(definition.into, "%s %u:%u", table->name.text, at.line, at.column);
    return intern(session, rel, &definition);
}

uint32_t projection_add(struct projection *projection, const struct expr *expr, const char *name)
{
    ASSERT(projection != NULL);
    ASSERT(expr != NULL);
    for (uint32_t i = 0; i < projection->exprs.count; i++) {
        if (expr_is_same(projection->exprs.items[i], expr)) {
            return i;
        }
    }
    struct sql_memory *memory = projection->session->memory;
    union {
        const void *in;
        void *out;
    } item = {.in = expr}, text = {.in = name == NULL ? "" : name};
    ast_append(memory, &projection->exprs, item.out);
    ast_append(memory, &projection->names, text.out);
    return projection->exprs.count - 1;
}

struct rel *projection_finish(struct projection *projection, uint32_t *columns)
{
    ASSERT(projection != NULL);
    struct session *session = projection->session;
    const uint32_t count = projection->exprs.count;
    bool is_plain = projection->condition == NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *expr = projection->exprs.items[i];
        is_plain = is_plain && expr->kind == EXPR_COLUMN;
        columns[i] = is_plain ? expr->column : i;
    }
    if (is_plain) {
        return projection->input;
    }
    struct rel_calc_spec spec = {
        .input = projection->input,
        .condition = projection->condition,
        .outputs = sql_allocate(session->memory, count * sizeof(struct expr *)),
        .names = sql_allocate(session->memory, count * sizeof(char *)),
        .roles = sql_allocate(session->memory, count),
        .count = count,
        .at = projection->at,
    };
    for (uint32_t i = 0; i < count; i++) {
        spec.outputs[i] = projection->exprs.items[i];
        spec.names[i] = projection->names.items[i];
        columns[i] = i;
        if (spec.outputs[i]->kind == EXPR_COLUMN) {
            const struct rel_column *column = &projection->input->columns[spec.outputs[i]->column];
            spec.roles[i] = column->roles;
            spec.names[i] = column->name;
        }
    }
    return rel_calc(session, &spec);
}
