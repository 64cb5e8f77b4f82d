/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over event time: TABLE(TUMBLE | HOP | CUMULATE(…)), arguments by position or by name,
 * and the older GROUP BY TUMBLE | HOP(…). */
#include <errno.h>

#include "control/sql/bind.h"

/* What a window function takes, in order. */
struct window_function {
    const char *name;
    enum plan_window_kind kind;
    const char
        *parameters[5]; /* after DATA and TIMECOL; the last is OFFSET, which may be left out */
};

static const struct window_function functions[] = {
    {"TUMBLE", PLAN_WINDOW_TUMBLE, {"SIZE", "OFFSET"}},
    {"HOP", PLAN_WINDOW_HOP, {"SLIDE", "SIZE", "OFFSET"}},
    {"CUMULATE", PLAN_WINDOW_CUMULATE, {"STEP", "SIZE", "OFFSET"}},
};

static const struct window_function *find_function(const char *name)
{
    ASSERT(name != NULL);
    for (uint32_t i = 0; i < COUNT_OF(functions); i++) {
        if (strcasecmp(functions[i].name, name) == 0) {
            return &functions[i];
        }
    }
    return NULL;
}

int bind_window_check(struct session *session, const struct rel *rel, uint32_t column,
                      struct place at)
{
    ASSERT(rel->columns != NULL || rel->column_count == 0);
    ASSERT(session != NULL);
    ASSERT(column < rel->column_count);
    if ((rel->columns[column].roles & REL_PROCTIME) != 0) {
        return sql_fail(session, -ENOTSUP, at,
                        "`%s` is processing time: windows over it are not supported yet",
                        rel->columns[column].name);
    }
    if ((rel->columns[column].roles & REL_ROWTIME) == 0) {
        return sql_fail(session, -EINVAL, at,
                        "`%s` is no time attribute: a window needs a column with WATERMARK FOR "
                        "(computing on it or casting it loses it)",
                        rel->columns[column].name);
    }
    if (rel->time_column != (int32_t)column) {
        return sql_fail(session, -ENOTSUP, at,
                        "rows with two time attributes: going on by `%s` is not supported yet",
                        rel->columns[column].name);
    }
    return 0;
}

static int check_times(struct session *session, const struct plan_window_spec *spec,
                       struct place at)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    if (spec->size_ms <= 0 || spec->slide_ms <= 0) {
        return sql_fail(session, -EINVAL, at, "the sizes of a window must be positive");
    }
    const int64_t offset = spec->offset_ms < 0 ? -spec->offset_ms : spec->offset_ms;
    if (offset >= spec->size_ms) {
        return sql_fail(session, -EINVAL, at,
                        "the offset of a window must be smaller than its size (%lld ms against "
                        "%lld ms)",
                        (long long)offset, (long long)spec->size_ms);
    }
    if (spec->kind == PLAN_WINDOW_CUMULATE && spec->size_ms % spec->slide_ms != 0) {
        return sql_fail(session, -EINVAL, at,
                        "CUMULATE requires maxSize to be an integral multiple of step: %lld ms "
                        "against %lld ms",
                        (long long)spec->size_ms, (long long)spec->slide_ms);
    }
    return 0;
}

/* The arguments of one call, by what they are. */
struct window_arguments {
    const struct ast_table_argument *data;
    const struct ast_table_argument *time;
    const struct ast_table_argument *values[3];
};

static int place_argument(struct session *session, const struct window_function *function,
                          const struct ast_table_argument *argument, uint32_t position,
                          struct window_arguments *out)
{
    ASSERT(argument != NULL);
    ASSERT(session != NULL);
    const char *label = argument->label.text;
    const struct ast_table_argument **slot = NULL;
    if (label == NULL && position < 5) {
        slot = position == 0 ? &out->data : position == 1 ? &out->time : &out->values[position - 2];
    } else if (label != NULL && strcasecmp(label, "DATA") == 0) {
        slot = &out->data;
    } else if (label != NULL && strcasecmp(label, "TIMECOL") == 0) {
        slot = &out->time;
    }
    for (uint32_t i = 0; label != NULL && i < 3 && function->parameters[i] != NULL; i++) {
        if (strcasecmp(label, function->parameters[i]) == 0) {
            slot = &out->values[i];
        }
    }
    const bool fits = slot != NULL && (slot < &out->values[0] || slot > &out->values[2] ||
                                       function->parameters[slot - out->values] != NULL);
    if (!fits || *slot != NULL) {
        return sql_fail(session, -EINVAL, argument->at, "%s does not take this argument%s%s",
                        function->name, label == NULL ? "" : ": ", label == NULL ? "" : label);
    }
    *slot = argument;
    return 0;
}

static int read_values(struct session *session, const struct window_function *function,
                       const struct window_arguments *arguments, struct place at,
                       struct plan_window_spec *spec)
{
    ASSERT(session != NULL);
    ASSERT(spec != NULL);
    int64_t values[3] = {0};
    for (uint32_t i = 0; i < 3 && function->parameters[i] != NULL; i++) {
        const bool is_optional = strcmp(function->parameters[i], "OFFSET") == 0;
        if (arguments->values[i] == NULL && is_optional) {
            continue;
        }
        if (arguments->values[i] == NULL || arguments->values[i]->expr == NULL) {
            return sql_fail(
                session, -EINVAL, arguments->values[i] == NULL ? at : arguments->values[i]->at,
                "%s needs its %s as an INTERVAL", function->name, function->parameters[i]);
        }
        const int verdict = bind_interval_ms(session, arguments->values[i]->expr, &values[i]);
        if (verdict != 0) {
            return verdict;
        }
    }
    const bool tumbles = function->kind == PLAN_WINDOW_TUMBLE;
    spec->kind = function->kind;
    spec->size_ms = tumbles ? values[0] : values[1];
    spec->slide_ms = values[0];
    spec->offset_ms = tumbles ? values[1] : values[2];
    return check_times(session, spec, at);
}

static int bind_data(struct session *session, const struct window_arguments *arguments,
                     const struct cte *ctes, struct place at, struct relation *out)
{
    ASSERT(arguments != NULL);
    ASSERT(session != NULL);
    const struct ast_table_argument *data = arguments->data;
    if (data == NULL || (data->table.count == 0 && data->query == NULL)) {
        return sql_fail(session, -EINVAL, data == NULL ? at : data->at,
                        "a window function takes TABLE name (or a query in parentheses) first");
    }
    if (data->query != NULL) {
        return bind_query(session, data->query, ctes, out);
    }
    return bind_name(session, &data->table, ctes, out);
}

static int bind_time_column(struct session *session, const struct window_arguments *arguments,
                            const struct relation *data, struct place at, uint32_t *out)
{
    ASSERT(arguments != NULL);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const struct ast_table_argument *time = arguments->time;
    if (time == NULL || time->descriptor.count != 1) {
        return sql_fail(session, -EINVAL, time == NULL ? at : time->at,
                        "a window function takes DESCRIPTOR(time attribute) second");
    }
    struct ast_name *name = time->descriptor.items[0];
    const struct ast_expr path = {.kind = AST_NAME, .at = name->at, .path = name, .path_count = 1};
    const struct scope scope = {.relation = *data};
    const struct field *field = NULL;
    const int verdict = scope_resolve(session, &scope, &path, &field);
    if (verdict != 0) {
        return verdict;
    }
    if (field->field_count != 0) {
        return sql_fail(session, -EINVAL, name->at, "`%s` is a ROW, not a time attribute",
                        name->text);
    }
    *out = field->column;
    return bind_window_check(session, data->rel, field->column, name->at);
}

int bind_window_function(struct session *session, const struct ast_from *from,
                         const struct cte *ctes, struct relation *out)
{
    ASSERT(from != NULL);
    ASSERT(session != NULL);
    const struct window_function *function = find_function(from->function.text);
    if (function == NULL) {
        return sql_fail(session, -ENOTSUP, from->at,
                        "the table function %s is not supported yet (there are TUMBLE, HOP and "
                        "CUMULATE)",
                        from->function.text);
    }
    struct window_arguments arguments = {0};
    int verdict = 0;
    for (uint32_t i = 0; i < from->arguments.count && verdict == 0; i++) {
        verdict = place_argument(session, function, from->arguments.items[i], i, &arguments);
    }
    struct relation data = {0};
    uint32_t time_column = 0;
    struct plan_window_spec *spec = sql_allocate(session->memory, sizeof(*spec));
    if (verdict == 0) {
        verdict = bind_data(session, &arguments, ctes, from->at, &data);
    }
    if (verdict == 0) {
        verdict = bind_time_column(session, &arguments, &data, from->at, &time_column);
    }
    if (verdict == 0) {
        verdict = read_values(session, function, &arguments, from->at, spec);
    }
    if (verdict != 0) {
        return verdict;
    }
    spec->time_zone = session->settings.time_zone;
    spec->local_clock = data.rel->columns[time_column].type.kind == TYPE_TIMESTAMP_LTZ;
    out->rel = rel_window_rows(session, data.rel, spec, from->at);
    out->field_count = data.field_count + 3;
    struct field *fields = sql_allocate(session->memory, out->field_count * sizeof(*fields));
    memcpy(fields, data.fields, data.field_count * sizeof(*fields));
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t column = data.rel->column_count + i;
        fields[data.field_count + i] = (struct field){
            .name = out->rel->columns[column].name,
            .type = out->rel->columns[column].type,
            .column = column,
        };
    }
    out->fields = fields;
    return 0;
}

int bind_legacy_window(struct session *session, const struct scope *scope,
                       const struct ast_expr *ast, struct legacy_window *out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(session != NULL);
    if (ast->kind != AST_CALL || scope == NULL) {
        return 0;
    }
    if (strcmp(ast->text, "SESSION") == 0) {
        return sql_fail(session, -ENOTSUP, ast->at, "SESSION windows are not supported yet");
    }
    const struct window_function *function = find_function(ast->text);
    if (function == NULL || function->kind == PLAN_WINDOW_CUMULATE) {
        return 0;
    }
    const bool hops = function->kind == PLAN_WINDOW_HOP;
    const uint32_t needs = hops ? 3 : 2;
    if (ast->argument_count != needs && ast->argument_count != needs + 1) {
        return sql_fail(session, -EINVAL, ast->at, "%s(…) in GROUP BY takes %s", ast->text,
                        hops ? "(time, slide, size)" : "(time, size)");
    }
    const struct field *field = NULL;
    const struct ast_expr *time = ast->arguments[0];
    if (time->kind != AST_NAME) {
        return sql_fail(session, -EINVAL, time->at, "%s(…) takes a time attribute first",
                        ast->text);
    }
    int verdict = scope_resolve(session, scope, time, &field);
    if (verdict == 0 && field->field_count != 0) {
        verdict = sql_fail(session, -EINVAL, time->at, "`%s` is a ROW, not a time attribute",
                           field->name);
    }
    if (verdict == 0) {
        verdict = bind_window_check(session, scope->relation.rel, field->column, time->at);
    }
    int64_t values[3] = {0};
    for (uint32_t i = 1; i < ast->argument_count && verdict == 0; i++) {
        verdict = bind_interval_ms(session, ast->arguments[i], &values[i - 1]);
    }
    if (verdict != 0) {
        return verdict;
    }
    out->name = function->name;
    out->at = ast->at;
    out->time_column = field->column;
    out->spec = (struct plan_window_spec){
        .kind = function->kind,
        .size_ms = hops ? values[1] : values[0],
        .slide_ms = values[0],
        .offset_ms = hops ? values[2] : values[1],
        .local_clock = field->type.kind == TYPE_TIMESTAMP_LTZ,
        .time_zone = session->settings.time_zone,
    };
    return check_times(session, &out->spec, ast->at);
}
