/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of aggregate calls. A sum of whole numbers keeps their type, one of DECIMAL(p, s) has 38
 * digits; averages and deviations keep the type too, of decimals with a scale of 6 at least. */
#include <errno.h>
#include <strings.h>

#include "control/sql/functions_internal.h"

struct aggregate_name {
    const char *name;
    int function; /* enum aggregate_function, or MISSING */
    uint8_t min;
    uint8_t max;
    bool over_only;
};

#define MISSING -1

static const struct aggregate_name names[] = {
    {"COUNT", AGGREGATE_COUNT, 0, EXPR_ARGUMENTS_MAX - 1, false},
    {"SUM", AGGREGATE_SUM, 1, 1, false},
    {"MIN", AGGREGATE_MIN, 1, 1, false},
    {"MAX", AGGREGATE_MAX, 1, 1, false},
    {"AVG", AGGREGATE_AVG, 1, 1, false},
    {"FIRST_VALUE", AGGREGATE_FIRST_VALUE, 1, 1, false},
    {"LAST_VALUE", AGGREGATE_LAST_VALUE, 1, 1, false},
    {"STDDEV_POP", AGGREGATE_STDDEV_POP, 1, 1, false},
    {"STDDEV_SAMP", AGGREGATE_STDDEV_SAMP, 1, 1, false},
    {"STDDEV", AGGREGATE_STDDEV_SAMP, 1, 1, false},
    {"VAR_POP", AGGREGATE_VAR_POP, 1, 1, false},
    {"VAR_SAMP", AGGREGATE_VAR_SAMP, 1, 1, false},
    {"VARIANCE", AGGREGATE_VAR_SAMP, 1, 1, false},
    {"LISTAGG", AGGREGATE_LISTAGG, 1, 2, false},
    {"ROW_NUMBER", AGGREGATE_ROW_NUMBER, 0, 0, true},
    {"RANK", AGGREGATE_RANK, 0, 0, true},
    {"DENSE_RANK", AGGREGATE_DENSE_RANK, 0, 0, true},
    {"LAG", AGGREGATE_LAG, 1, 3, true},
    {"LEAD", MISSING, 1, 3, true},
    {"NTILE", MISSING, 1, 1, true},
    {"PERCENT_RANK", MISSING, 0, 0, true},
    {"CUME_DIST", MISSING, 0, 0, true},
    {"COLLECT", MISSING, 1, 1, false},
    {"ARRAY_AGG", MISSING, 1, 1, false},
    {"APPROX_COUNT_DISTINCT", MISSING, 1, 1, false},
    {"JSON_OBJECTAGG", MISSING, 2, 2, false},
    {"JSON_ARRAYAGG", MISSING, 1, 1, false},
};

static const struct aggregate_name *find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcasecmp(names[i].name, name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

bool function_is_aggregate(const char *name)
{
    ASSERT(name != NULL);
    return find(name) != NULL;
}

/* The result of SUM, AVG and the deviations; kind NULL when the argument is no number. */
static struct type number_result(enum aggregate_function function, const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    struct type out = *type;
    out.nullable = true;
    if (!type_is_number(type)) {
        return type_of_kind(TYPE_NULL, true);
    }
    if (type->kind == TYPE_DECIMAL) {
        const uint8_t scale = type->scale;
        out.precision = TYPE_DECIMAL_PRECISION_MAX;
        out.scale = function == AGGREGATE_SUM || scale > 6 ? scale : 6;
    }
    return out;
}

static struct type result_of(enum aggregate_function function, const struct type *type)
{
    struct type same = type != NULL ? *type : type_of_kind(TYPE_NULL, true);
    same.nullable = true;
    switch (function) {
    case AGGREGATE_COUNT:
    case AGGREGATE_ROW_NUMBER:
    case AGGREGATE_RANK:
    case AGGREGATE_DENSE_RANK:
        return type_of_kind(TYPE_BIGINT, false);
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
    case AGGREGATE_STDDEV_POP:
    case AGGREGATE_STDDEV_SAMP:
    case AGGREGATE_VAR_POP:
    case AGGREGATE_VAR_SAMP:
        return number_result(function, type);
    case AGGREGATE_LISTAGG:
        return type_is_characters(type) ? type_varchar(TYPE_LENGTH_MAX, true)
                                        : type_of_kind(TYPE_NULL, true);
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return type->kind < TYPE_ARRAY ? same : type_of_kind(TYPE_NULL, true);
    default:
        return same;
    }
}

static int bind_lag(const struct binding *binding, struct aggregate_call *out)
{
    ASSERT(binding->call != NULL);
    int64_t offset = 1;
    if (binding->count > 1 &&
        (!binding_constant(binding, 1, &offset) || offset < 0 || offset > INT32_MAX)) {
        return binding_fail(binding, -EINVAL, "The offset of LAG must be a constant");
    }
    out->lag_offset = (uint32_t)offset;
    out->lag_default.is_null = true;
    if (binding->count == 3) {
        struct type target = out->result_type;
        const struct expr *value = make_cast(binding, binding->arguments[2], &target);
        if (value->kind != EXPR_LITERAL) {
            return binding_fail(binding, -ENOTSUP, "a default of LAG that is no constant");
        }
        out->lag_default = value->literal;
        out->result_type.nullable = value->literal.is_null || binding->arguments[0]->type.nullable;
    }
    return 0;
}

static int bind_listagg(const struct binding *binding, struct aggregate_call *out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    out->separator = TEXT_OF(",");
    if (binding->count == 1) {
        return 0;
    }
    const struct expr *separator = binding->arguments[1];
    if (separator->kind != EXPR_LITERAL || separator->literal.is_null ||
        !type_is_characters(&separator->type)) {
        return binding_fail(binding, -EINVAL, "The separator of LISTAGG must be a constant");
    }
    out->separator = separator->literal.text;
    return 0;
}

/* COUNT(a, b) counts rows where neither is NULL: TRUE where all are there, else NULL. */
static const struct expr *count_argument(const struct binding *binding)
{
    ASSERT(binding->call != NULL);
    if (binding->count == 1) {
        return binding->arguments[0];
    }
    const struct type boolean = type_of_kind(TYPE_BOOLEAN, false);
    const struct expr *tests[EXPR_ARGUMENTS_MAX];
    for (uint32_t i = 0; i < binding->count; i++) {
        tests[i] = make_call_of(binding, EXPR_IS_NOT_NULL, boolean, &binding->arguments[i], 1);
    }
    const struct type maybe = type_of_kind(TYPE_BOOLEAN, true);
    const struct expr *parts[3] = {make_call_of(binding, EXPR_AND, boolean, tests, binding->count),
                                   make_literal(binding, boolean, (struct value){.i64 = 1}),
                                   make_literal(binding, maybe, (struct value){.is_null = true})};
    return make_call_of(binding, EXPR_CASE, maybe, parts, 3);
}

static int check(const struct binding *binding, const struct aggregate_name *name,
                 const struct aggregate_bind_call *call)
{
    ASSERT(binding->call != NULL);
    if (name == NULL) {
        return binding_fail(binding, -EINVAL, "No match found for aggregate function %s",
                            call->name);
    }
    if (name->function == MISSING) {
        return binding_fail(binding, -ENOTSUP, "the aggregate function %s is not built yet",
                            name->name);
    }
    if (name->over_only && !call->is_over) {
        return binding_fail(binding, -EINVAL, "%s needs an OVER clause", name->name);
    }
    if (call->argument_count < name->min || call->argument_count > name->max) {
        return binding_mismatch(binding);
    }
    if (call->distinct && call->argument_count != 1 && name->function != AGGREGATE_LISTAGG) {
        return binding_fail(binding, -ENOTSUP, "%s(DISTINCT …) of several columns", name->name);
    }
    return 0;
}

int aggregate_bind(struct sql_memory *memory, const struct aggregate_bind_call *call,
                   struct aggregate_call *out, const struct expr **argument, struct error *error)
{
    ASSERT(memory != NULL);
    ASSERT(call != NULL && call->name != NULL);
    ASSERT(out != NULL && argument != NULL);
    const struct function_call place = {
        .name = call->name, .line = call->line, .column = call->column};
    struct binding binding = {.memory = memory, .call = &place, .error = error};
    binding.count = call->argument_count < EXPR_ARGUMENTS_MAX ? call->argument_count : 0;
    for (uint32_t i = 0; i < binding.count; i++) {
        binding.arguments[i] = call->arguments[i];
    }
    const struct aggregate_name *name = find(call->name);
    const int result = check(&binding, name, call);
    if (result != 0) {
        return result;
    }
    *argument = NULL;
    *out = (struct aggregate_call){.function = (enum aggregate_function)name->function,
                                   .distinct = call->distinct,
                                   .argument = AGGREGATE_COLUMN_NONE,
                                   .filter = AGGREGATE_COLUMN_NONE};
    if (binding.count > 0) {
        *argument =
            out->function == AGGREGATE_COUNT ? count_argument(&binding) : binding.arguments[0];
        out->argument_type = (*argument)->type;
    }
    out->result_type = result_of(out->function, binding.count > 0 ? &out->argument_type : NULL);
    if (out->result_type.kind == TYPE_NULL) {
        return binding_mismatch(&binding);
    }
    if (out->function == AGGREGATE_LAG) {
        return bind_lag(&binding, out);
    }
    return out->function == AGGREGATE_LISTAGG ? bind_listagg(&binding, out) : 0;
}
