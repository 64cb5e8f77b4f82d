/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of functions of time. TIMESTAMPADD becomes a sum with an interval, YEAR(x) and the like
 * become EXTRACT; units reach the plan as CHAR literals. */
#include <errno.h>

#include "control/sql/functions_internal.h"

int function_bind_time_rounding(struct binding *binding, const struct expr **out);

struct unit {
    const char *name;
    int64_t amount; /* months or milliseconds of one; 0: no interval of it */
    bool months;
};

static const struct unit units[] = {
    {"YEAR", 12, true},         {"QUARTER", 3, true},     {"MONTH", 1, true},
    {"WEEK", 604800000, false}, {"DAY", 86400000, false}, {"HOUR", 3600000, false},
    {"MINUTE", 60000, false},   {"SECOND", 1000, false},  {"MILLISECOND", 1, false},
    {"MICROSECOND", 0, false},  {"NANOSECOND", 0, false}, {"DECADE", 0, true},
    {"CENTURY", 0, true},       {"MILLENNIUM", 0, true},  {"DOW", 0, false},
    {"DOY", 0, false},          {"ISODOW", 0, false},     {"ISOYEAR", 0, false},
    {"EPOCH", 0, false},
};

/* Reads a unit; SQL_TSI_DAY and FRAC_SECOND are TIMESTAMPADD's other spellings. */
static const struct unit *find_unit(const struct binding *binding, uint32_t index)
{
    ASSERT(binding->call != NULL);
    char symbol[32];
    if (!binding_symbol(binding, index, symbol)) {
        return NULL;
    }
    const char *name = strncmp(symbol, "SQL_TSI_", 8) == 0 ? symbol + 8 : symbol;
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static bool is_interval(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind == TYPE_INTERVAL_DAY_TIME || type->kind == TYPE_INTERVAL_YEAR_MONTH;
}

static int bind_extract(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const struct unit *unit = find_unit(binding, 0);
    if (binding->count != 2 || unit == NULL ||
        (!type_is_time(&binding->arguments[1]->type) &&
         !is_interval(&binding->arguments[1]->type))) {
        return binding_mismatch(binding);
    }
    binding->arguments[0] = make_text(binding, unit->name);
    *out = make_call(binding, EXPR_EXTRACT,
                     type_of_kind(TYPE_BIGINT, binding->arguments[1]->type.nullable));
    return 0;
}

/* YEAR(x) and the like: the name is the unit, or stands for one. */
static int bind_part(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    static const char *const names[][2] = {
        {"DAYOFYEAR", "DOY"}, {"DAYOFMONTH", "DAY"}, {"DAYOFWEEK", "DOW"}};
    const char *unit = binding->entry->name;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        unit = strcmp(unit, names[i][0]) == 0 ? names[i][1] : unit;
    }
    if (binding->count != 1) {
        return binding_mismatch(binding);
    }
    binding->arguments[1] = binding->arguments[0];
    binding->arguments[0] = make_text(binding, unit);
    binding->count = 2;
    return bind_extract(binding, out);
}

int function_bind_time_rounding(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const struct unit *unit = find_unit(binding, 1);
    if (unit == NULL || !type_is_time(&binding->arguments[0]->type)) {
        return binding_mismatch(binding);
    }
    binding->arguments[1] = make_text(binding, unit->name);
    *out = make_call(binding, binding->entry->function, binding->arguments[0]->type);
    return 0;
}

static int bind_timestamp_add(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const struct unit *unit = find_unit(binding, 0);
    if (binding->count != 3 || unit == NULL || !type_is_integer(&binding->arguments[1]->type) ||
        !type_is_time(&binding->arguments[2]->type)) {
        return binding_mismatch(binding);
    }
    if (unit->amount == 0) {
        return binding_fail(binding, -ENOTSUP, "TIMESTAMPADD in units of %s is not built yet",
                            unit->name);
    }
    const enum type_kind kind = unit->months ? TYPE_INTERVAL_YEAR_MONTH : TYPE_INTERVAL_DAY_TIME;
    const struct expr *factors[2] = {
        make_literal(binding, type_of_kind(kind, false), (struct value){.i64 = unit->amount}),
        binding->arguments[1]};
    const struct expr *sum[2] = {binding->arguments[2], NULL};
    const bool nullable = factors[1]->type.nullable;
    sum[1] = make_call_of(binding, EXPR_TIMES, type_of_kind(kind, nullable), factors, 2);
    const bool within_day = !unit->months && unit->amount < 86400000;
    if (sum[0]->type.kind == TYPE_DATE && within_day) {
        const struct type timestamp = {.kind = TYPE_TIMESTAMP, .precision = 6};
        sum[0] = make_cast(binding, sum[0], &timestamp);
    }
    struct type type = sum[0]->type;
    type.nullable = type.nullable || nullable;
    *out = make_call_of(binding, EXPR_PLUS, type, sum, 2);
    return 0;
}

static int bind_timestamp_diff(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const struct unit *unit = find_unit(binding, 0);
    if (binding->count != 3 || unit == NULL || unit->amount == 0 ||
        !type_is_time(&binding->arguments[1]->type) ||
        !type_is_time(&binding->arguments[2]->type)) {
        return binding_mismatch(binding);
    }
    binding->arguments[0] = make_text(binding, unit->name);
    *out =
        make_call(binding, EXPR_TIMESTAMPDIFF, type_of_kind(TYPE_INT, binding_nullable(binding)));
    return 0;
}

static int bind_date_format(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 2 || !type_is_characters(&binding->arguments[1]->type)) {
        return binding_mismatch(binding);
    }
    const struct type *type = &binding->arguments[0]->type;
    if (!type_is_characters(type) && type->kind != TYPE_TIMESTAMP &&
        type->kind != TYPE_TIMESTAMP_LTZ) {
        return binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_DATE_FORMAT,
                     type_varchar(TYPE_LENGTH_MAX, binding_nullable(binding)));
    return 0;
}

static int bind_to_timestamp(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    for (uint32_t i = 0; i < binding->count; i++) {
        if (!type_is_characters(&binding->arguments[i]->type)) {
            return binding_mismatch(binding);
        }
    }
    if (binding->count < 1 || binding->count > 2) {
        return binding_mismatch(binding);
    }
    const bool date = binding->entry->function == EXPR_TO_DATE;
    const struct type type = {
        .kind = date ? TYPE_DATE : TYPE_TIMESTAMP, .precision = date ? 0 : 3, .nullable = true};
    *out = make_call(binding, binding->entry->function, type);
    return 0;
}

static int bind_to_timestamp_ltz(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count < 1 || binding->count > 2) {
        return binding->count == 3 ? binding_fail(binding, -ENOTSUP,
                                                  "TO_TIMESTAMP_LTZ with a zone is not built yet")
                                   : binding_mismatch(binding);
    }
    const struct type *type = &binding->arguments[0]->type;
    int64_t precision = 3;
    if (type_is_number(type)) {
        const bool constant = binding->count == 1 || binding_constant(binding, 1, &precision);
        if (!constant || (precision != 0 && precision != 3)) {
            return binding_fail(binding, -EINVAL,
                                "The precision of TO_TIMESTAMP_LTZ must be 0 or 3");
        }
        const struct type to =
            type_of_kind(type_is_integer(type) ? TYPE_BIGINT : TYPE_DOUBLE, true);
        binding->arguments[0] = make_cast(binding, binding->arguments[0], &to);
        const struct type integer = type_of_kind(TYPE_INT, false);
        binding->arguments[1] = make_literal(binding, integer, (struct value){.i64 = precision});
        binding->count = 2;
    } else if (!type_is_characters(type)) {
        return binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_TO_TIMESTAMP_LTZ,
                     (struct type){.kind = TYPE_TIMESTAMP_LTZ, .precision = 3, .nullable = true});
    return 0;
}

static const struct expr *processing_time(const struct binding *binding)
{
    ASSERT(binding->call != NULL);
    return make_call_of(
        binding, EXPR_PROCTIME,
        (struct type){.kind = TYPE_TIMESTAMP_LTZ, .precision = 3, .nullable = false}, NULL, 0);
}

/* The clock's functions: all of them are the parcel's stamp, cast. */
static int bind_now(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    static const struct {
        const char *name;
        struct type type;
    } clocks[] = {
        {"LOCALTIMESTAMP", {.kind = TYPE_TIMESTAMP, .precision = 3}},
        {"CURRENT_DATE", {.kind = TYPE_DATE}},
        {"CURRENT_TIME", {.kind = TYPE_TIME}},
        {"LOCALTIME", {.kind = TYPE_TIME}},
    };
    if (binding->count != 0) {
        return binding_mismatch(binding);
    }
    *out = processing_time(binding);
    for (size_t i = 0; i < COUNT_OF(clocks); i++) {
        if (strcmp(binding->entry->name, clocks[i].name) == 0) {
            *out = make_cast(binding, *out, &clocks[i].type);
        }
    }
    return 0;
}

static int bind_unix_timestamp(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    for (uint32_t i = 0; i < binding->count; i++) {
        if (!type_is_characters(&binding->arguments[i]->type)) {
            return binding_mismatch(binding);
        }
    }
    if (binding->count > 2) {
        return binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_UNIX_TIMESTAMP,
                     type_of_kind(TYPE_BIGINT, binding_nullable(binding)));
    return 0;
}

static int bind_current_watermark(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 1) {
        return binding_mismatch(binding);
    }
    struct type type = binding->arguments[0]->type;
    if (type.kind != TYPE_TIMESTAMP && type.kind != TYPE_TIMESTAMP_LTZ) {
        return binding_mismatch(binding);
    }
    type.precision = 3;
    type.nullable = true;
    *out = make_call(binding, EXPR_CURRENT_WATERMARK, type);
    return 0;
}

const struct function_entry functions_time[] = {
    {"EXTRACT", EXPR_EXTRACT, NULL, NULL, bind_extract},
    {"YEAR", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"QUARTER", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"MONTH", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"WEEK", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"DAYOFYEAR", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"DAYOFMONTH", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"DAYOFWEEK", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"HOUR", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"MINUTE", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"SECOND", EXPR_EXTRACT, NULL, NULL, bind_part},
    {"TIMESTAMPADD", EXPR_PLUS, NULL, NULL, bind_timestamp_add},
    {"TIMESTAMPDIFF", EXPR_TIMESTAMPDIFF, NULL, NULL, bind_timestamp_diff},
    {"DATE_FORMAT", EXPR_DATE_FORMAT, NULL, NULL, bind_date_format},
    {"TO_DATE", EXPR_TO_DATE, NULL, NULL, bind_to_timestamp},
    {"TO_TIMESTAMP", EXPR_TO_TIMESTAMP, NULL, NULL, bind_to_timestamp},
    {"TO_TIMESTAMP_LTZ", EXPR_TO_TIMESTAMP_LTZ, NULL, NULL, bind_to_timestamp_ltz},
    {"UNIX_TIMESTAMP", EXPR_UNIX_TIMESTAMP, NULL, NULL, bind_unix_timestamp},
    {"FROM_UNIXTIME", EXPR_FROM_UNIXTIME, "l?s", "S", NULL},
    {"CONVERT_TZ", EXPR_CONVERT_TZ, "sss", "S?", NULL},
    {"CURRENT_WATERMARK", EXPR_CURRENT_WATERMARK, NULL, NULL, bind_current_watermark},
    {"PROCTIME", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"NOW", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"CURRENT_TIMESTAMP", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"CURRENT_ROW_TIMESTAMP", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"LOCALTIMESTAMP", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"LOCALTIME", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"CURRENT_TIME", EXPR_PROCTIME, NULL, NULL, bind_now},
    {"CURRENT_DATE", EXPR_PROCTIME, NULL, NULL, bind_now},
    {.name = NULL},
};
