/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of CAST, TRY_CAST and TYPEOF: which pairs of types convert. */
#include <errno.h>

#include "control/sql/functions_internal.h"

static bool is_interval(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind == TYPE_INTERVAL_DAY_TIME || type->kind == TYPE_INTERVAL_YEAR_MONTH;
}

static bool text_casts_to(const struct type *to)
{
    ASSERT(to->kind <= TYPE_ROW);
    return type_is_number(to) || type_is_time(to) || to->kind == TYPE_BOOLEAN || type_is_text(to);
}

/* LogicalTypeCasts.supportsExplicitCast, for the types here. */
static bool is_castable(const struct type *from, const struct type *to)
{
    ASSERT(from->kind <= TYPE_ROW);
    ASSERT(to->kind <= TYPE_ROW);
    if (from->kind == TYPE_NULL || type_equal(from, to)) {
        return true;
    }
    if (type_is_characters(from)) {
        return text_casts_to(to);
    }
    if (type_is_text(from)) {
        return type_is_text(to);
    }
    if (type_is_characters(to)) {
        return from->kind < TYPE_ARRAY;
    }
    const bool from_number = type_is_number(from) || from->kind == TYPE_BOOLEAN;
    if (from_number && (type_is_number(to) || to->kind == TYPE_BOOLEAN)) {
        return true;
    }
    if (is_interval(from) || is_interval(to)) {
        return from->kind == to->kind || type_is_integer(from) || type_is_integer(to);
    }
    if (type_is_time(from) && type_is_time(to)) {
        const bool date_and_time = (from->kind == TYPE_DATE && to->kind == TYPE_TIME) ||
                                   (from->kind == TYPE_TIME && to->kind == TYPE_DATE);
        return !date_and_time;
    }
    return false;
}

static int bind_cast(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    ASSERT(binding->call->target != NULL);
    if (binding->count != 1) {
        return binding_mismatch(binding);
    }
    const struct expr *from = binding->arguments[0];
    const bool is_try = binding->entry->function == EXPR_TRY_CAST;
    struct type to = *binding->call->target;
    if (!is_castable(&from->type, &to)) {
        char names[2][TYPE_PRINT_BYTES];
        return binding_fail(binding, -EINVAL,
                            "Cast function cannot convert value of type %s to type %s",
                            type_print(&from->type, names[0]), type_print(&to, names[1]));
    }
    if (from->type.kind == TYPE_NULL) {
        to.nullable = true;
        *out = make_literal(binding, to, (struct value){.is_null = true});
        return 0;
    }
    to.nullable = from->type.nullable || is_try;
    if (type_equal(&from->type, &to) && !is_try && to.kind != TYPE_CHAR &&
        (to.kind != TYPE_VARCHAR || to.length == TYPE_LENGTH_MAX)) {
        *out = from;
        return 0;
    }
    *out = make_call(binding, binding->entry->function, to);
    return 0;
}

static int bind_typeof(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count < 1 || binding->count > 2) {
        return binding_mismatch(binding);
    }
    const struct type *type = &binding->arguments[0]->type;
    char text[TYPE_PRINT_BYTES];
    const char *name = type_print(type, text);
    if (is_interval(type)) {
        const bool months = type->kind == TYPE_INTERVAL_YEAR_MONTH;
        name = months ? (type->nullable ? "INTERVAL MONTH" : "INTERVAL MONTH NOT NULL")
                      : (type->nullable ? "INTERVAL SECOND(3)" : "INTERVAL SECOND(3) NOT NULL");
    }
    *out = make_text(binding, sql_copy_text(binding->memory, name, strlen(name)));
    return 0;
}

const struct function_entry functions_cast[] = {
    {"CAST", EXPR_CAST, NULL, NULL, bind_cast},
    {"TRY_CAST", EXPR_TRY_CAST, NULL, NULL, bind_cast},
    {"TYPEOF", EXPR_FUNCTION_NONE, NULL, NULL, bind_typeof},
    {.name = NULL},
};
