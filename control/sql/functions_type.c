/* SPDX-License-Identifier: Apache-2.0 */
/* Common types and implicit casts, as Calcite's leastRestrictive and Flink's INSERT have them. Of
 * FLOAT and DOUBLE the first one wins; an approximate number and a DECIMAL make DOUBLE. */
#include <errno.h>

#include "control/sql/functions_internal.h"

struct type type_of_kind(enum type_kind kind, bool nullable)
{
    return (struct type){.kind = kind, .nullable = nullable};
}

struct type type_varchar(uint32_t length, bool nullable)
{
    return (struct type){.kind = TYPE_VARCHAR, .nullable = nullable, .length = length};
}

struct type type_decimal(int32_t precision, int32_t scale, bool nullable)
{
    const int32_t max = TYPE_DECIMAL_PRECISION_MAX;
    if (precision > max) {
        const int32_t least = scale < 6 ? scale : 6;
        const int32_t room = max - (precision - scale);
        scale = room > least ? room : least;
        precision = max;
    }
    return (struct type){.kind = TYPE_DECIMAL,
                         .nullable = nullable,
                         .precision = (uint8_t)precision,
                         .scale = (uint8_t)scale};
}

bool type_is_approximate(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE;
}

bool type_is_number(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type_is_integer(type) || type->kind == TYPE_DECIMAL || type_is_approximate(type);
}

bool type_is_characters(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind == TYPE_CHAR || type->kind == TYPE_VARCHAR;
}

bool type_is_time(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    return type->kind >= TYPE_DATE && type->kind <= TYPE_TIMESTAMP_LTZ;
}

struct type type_as_decimal(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    static const uint8_t digits[] = {
        [TYPE_TINYINT] = 3, [TYPE_SMALLINT] = 5, [TYPE_INT] = 10, [TYPE_BIGINT] = 19};
    return type_is_integer(type) ? type_decimal(digits[type->kind], 0, type->nullable) : *type;
}

static struct type common_decimal(const struct type *a, const struct type *b)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    const struct type x = type_as_decimal(a);
    const struct type y = type_as_decimal(b);
    const int32_t x_whole = x.precision - x.scale;
    const int32_t y_whole = y.precision - y.scale;
    const int32_t whole = x_whole > y_whole ? x_whole : y_whole;
    int32_t scale = x.scale > y.scale ? x.scale : y.scale;
    if (whole + scale > TYPE_DECIMAL_PRECISION_MAX) {
        scale = TYPE_DECIMAL_PRECISION_MAX - whole;
    }
    return type_decimal(whole + scale, scale, false);
}

static struct type common_number(const struct type *a, const struct type *b)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    if (type_is_approximate(a) || type_is_approximate(b)) {
        if (a->kind == TYPE_DECIMAL || b->kind == TYPE_DECIMAL) {
            return type_of_kind(TYPE_DOUBLE, false);
        }
        return type_is_approximate(a) ? *a : *b;
    }
    if (a->kind == TYPE_DECIMAL || b->kind == TYPE_DECIMAL) {
        return common_decimal(a, b);
    }
    return a->kind > b->kind ? *a : *b;
}

static struct type common_text(const struct type *a, const struct type *b)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    const bool characters = type_is_characters(a);
    struct type out = a->length > b->length ? *a : *b;
    if (a->kind != b->kind || a->length != b->length) {
        out.kind = characters ? TYPE_VARCHAR : TYPE_VARBINARY;
    }
    return out;
}

static bool common_time(const struct type *a, const struct type *b, struct type *out)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    const bool has_time = a->kind == TYPE_TIME || b->kind == TYPE_TIME;
    if (a->kind != b->kind && has_time) {
        return false;
    }
    *out = a->kind > b->kind ? *a : *b;
    out->precision = a->precision > b->precision ? a->precision : b->precision;
    return true;
}

static bool common_of_two(const struct type *a, const struct type *b, struct type *out)
{
    ASSERT(a->kind <= TYPE_ROW);
    ASSERT(b->kind <= TYPE_ROW);
    ASSERT(out != NULL);
    if (a->kind == TYPE_NULL || b->kind == TYPE_NULL) {
        *out = a->kind == TYPE_NULL ? *b : *a;
        return true;
    }
    if (type_is_number(a) && type_is_number(b)) {
        *out = common_number(a, b);
        return true;
    }
    if (type_is_text(a) && type_is_text(b) && type_is_characters(a) == type_is_characters(b)) {
        *out = common_text(a, b);
        return true;
    }
    if (type_is_time(a) && type_is_time(b)) {
        return common_time(a, b, out);
    }
    *out = *a;
    return type_equal(a, b);
}

int type_common(const struct type *types, uint32_t count, struct type *out)
{
    ASSERT(types != NULL && out != NULL);
    ASSERT(count > 0);
    struct type common = types[0];
    bool nullable = types[0].nullable || types[0].kind == TYPE_NULL;
    for (uint32_t i = 1; i < count; i++) {
        struct type next;
        if (!common_of_two(&common, &types[i], &next)) {
            return -EINVAL;
        }
        nullable = nullable || types[i].nullable || types[i].kind == TYPE_NULL;
        common = next;
    }
    common.nullable = nullable;
    *out = common;
    return 0;
}

static bool widens_number(const struct type *from, const struct type *to)
{
    ASSERT(from->kind <= TYPE_ROW);
    ASSERT(to->kind <= TYPE_ROW);
    if (type_is_approximate(to)) {
        return !type_is_approximate(from) || to->kind >= from->kind;
    }
    if (type_is_approximate(from)) {
        return false;
    }
    if (to->kind == TYPE_DECIMAL) {
        return true; /* Flink casts and lets what does not fit be NULL */
    }
    return from->kind != TYPE_DECIMAL && to->kind >= from->kind;
}

/* What INSERT converts by itself: LogicalTypeCasts.supportsImplicitCast. */
static bool widens(const struct type *from, const struct type *to)
{
    ASSERT(from->kind <= TYPE_ROW);
    ASSERT(to->kind <= TYPE_ROW);
    if (from->kind == TYPE_NULL || type_equal(from, to)) {
        return true;
    }
    if (type_is_number(from) && type_is_number(to)) {
        return widens_number(from, to);
    }
    if (type_is_text(from) && type_is_text(to)) {
        return type_is_characters(from) == type_is_characters(to) &&
               (to->kind == TYPE_VARCHAR || to->kind == TYPE_VARBINARY || from->kind == to->kind);
    }
    if (from->kind == TYPE_TIMESTAMP || from->kind == TYPE_TIMESTAMP_LTZ) {
        return to->kind == TYPE_TIMESTAMP || to->kind == TYPE_TIMESTAMP_LTZ;
    }
    return from->kind == to->kind && from->kind < TYPE_ARRAY;
}

/* Tells whether the sink takes the value as it lies: lengths are not enforced there. */
static bool lies_alike(const struct type *from, const struct type *to)
{
    ASSERT(from->kind <= TYPE_ROW);
    ASSERT(to->kind <= TYPE_ROW);
    if (from->kind == TYPE_DECIMAL || from->kind == TYPE_TIMESTAMP ||
        from->kind == TYPE_TIMESTAMP_LTZ) {
        return from->kind == to->kind && from->precision == to->precision &&
               from->scale == to->scale;
    }
    return from->kind == to->kind || (type_is_characters(from) && type_is_characters(to)) ||
           (type_is_text(from) && type_is_text(to));
}

int cast_implicit(struct sql_memory *memory, const struct expr *from, const struct type *to,
                  const struct expr **out, struct error *error)
{
    ASSERT(memory != NULL);
    ASSERT(out != NULL);
    ASSERT(from != NULL && to != NULL);
    if (!widens(&from->type, to)) {
        char names[2][TYPE_PRINT_BYTES];
        return error_set(error, -EINVAL, "Incompatible types: %s cannot be assigned to %s",
                         type_print(&from->type, names[0]), type_print(to, names[1]));
    }
    if (lies_alike(&from->type, to)) {
        *out = from;
        return 0;
    }
    const struct function_call call = {.name = "CAST", .line = from->line};
    const struct binding binding = {.memory = memory, .call = &call, .error = error};
    *out = make_cast(&binding, from, to);
    return 0;
}

const struct expr *cast_length(struct sql_memory *memory, const struct expr *from,
                               const struct type *to, struct error *error)
{
    ASSERT(from != NULL && to != NULL);
    if (!type_is_text(to) || to->length == TYPE_LENGTH_MAX) {
        return from;
    }
    const struct function_call call = {.name = "CAST", .line = from->line};
    const struct binding binding = {.memory = memory, .call = &call, .error = error};
    /* A column's declared length binds no value that comes in: it is forgotten, then enforced. */
    struct type free_length = *to;
    free_length.kind = type_is_characters(to) ? TYPE_VARCHAR : TYPE_VARBINARY;
    free_length.length = TYPE_LENGTH_MAX;
    return make_cast(&binding, make_cast(&binding, from, &free_length), to);
}
