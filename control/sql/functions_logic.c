/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of logic, comparisons and conditionals. */
#include <errno.h>

#include "control/sql/functions_internal.h"

static const struct expr *boolean_call(const struct binding *binding, enum expr_function function,
                                       bool nullable, const struct expr *const *arguments,
                                       uint32_t count)
{
    ASSERT(binding->count <= EXPR_ARGUMENTS_MAX);
    return make_call_of(binding, function, type_of_kind(TYPE_BOOLEAN, nullable), arguments, count);
}

static const struct expr *boolean_literal(const struct binding *binding, bool is_null, bool value)
{
    ASSERT(binding->count <= EXPR_ARGUMENTS_MAX);
    return make_literal(binding, type_of_kind(TYPE_BOOLEAN, is_null),
                        (struct value){.is_null = is_null, .i64 = value});
}

static int need_booleans(struct binding *binding)
{
    ASSERT(binding->call != NULL);
    const struct type boolean = type_of_kind(TYPE_BOOLEAN, true);
    for (uint32_t i = 0; i < binding->count; i++) {
        const enum type_kind kind = binding->arguments[i]->type.kind;
        if (kind != TYPE_BOOLEAN && kind != TYPE_NULL) {
            return binding_mismatch(binding);
        }
        binding->arguments[i] = make_cast(binding, binding->arguments[i], &boolean);
    }
    return binding->count == 0 ? binding_mismatch(binding) : 0;
}

/* AND and OR: nested ones of the same kind become one flat call, so that the program merges them
 * in one go. */
static int bind_junction(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const int result = need_booleans(binding);
    if (result != 0) {
        return result;
    }
    const struct expr *flat[EXPR_ARGUMENTS_MAX];
    uint32_t count = 0;
    bool nullable = false;
    for (uint32_t i = 0; i < binding->count; i++) {
        const struct expr *argument = binding->arguments[i];
        const bool same =
            argument->kind == EXPR_CALL && argument->function == binding->entry->function;
        const struct expr *const *from = same ? argument->arguments : &argument;
        const uint32_t parts = same ? argument->argument_count : 1;
        if (count + parts > EXPR_ARGUMENTS_MAX) {
            return binding_fail(binding, -ENOTSUP, "more than %d conditions joined by %s",
                                EXPR_ARGUMENTS_MAX, binding->call->name);
        }
        memcpy(flat + count, from, parts * sizeof(struct expr *));
        count += parts;
        nullable = nullable || argument->type.nullable;
    }
    *out = boolean_call(binding, binding->entry->function, nullable, flat, count);
    return 0;
}

static int bind_not(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const int result = need_booleans(binding);
    if (result != 0 || binding->count != 1) {
        return result != 0 ? result : binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_NOT,
                     type_of_kind(TYPE_BOOLEAN, binding->arguments[0]->type.nullable));
    return 0;
}

static int bind_is_truth(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const int result = need_booleans(binding);
    if (result != 0 || binding->count != 1) {
        return result != 0 ? result : binding_mismatch(binding);
    }
    *out = make_call(binding, binding->entry->function, type_of_kind(TYPE_BOOLEAN, false));
    return 0;
}

static int bind_is_null(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 1) {
        return binding_mismatch(binding);
    }
    if (binding->arguments[0]->type.kind == TYPE_NULL) {
        *out = boolean_literal(binding, false, binding->entry->function == EXPR_IS_NULL);
        return 0;
    }
    *out = make_call(binding, binding->entry->function, type_of_kind(TYPE_BOOLEAN, false));
    return 0;
}

/* Brings numbers that meet in a comparison to forms that compare without loss. */
static void meet_numbers(struct binding *binding)
{
    ASSERT(binding->call != NULL);
    const struct type *a = &binding->arguments[0]->type;
    const struct type *b = &binding->arguments[1]->type;
    struct type to;
    if (type_is_approximate(a) || type_is_approximate(b)) {
        /* Two FLOATs compare as they are; whatever else is exact in DOUBLE or goes there. */
        if (a->kind == b->kind) {
            return;
        }
        to = type_of_kind(TYPE_DOUBLE, true);
    } else if (a->kind == TYPE_DECIMAL || b->kind == TYPE_DECIMAL) {
        /* Decimals compare by value across scales, but faster as plain words of one scale. */
        const struct type both[2] = {*a, *b};
        const int result = type_common(both, 2, &to);
        ASSERT(result == 0);
        const bool narrow = to.precision <= TYPE_DECIMAL_NARROW_MAX;
        for (uint32_t i = 0; i < 2; i++) {
            const struct type own = type_as_decimal(&binding->arguments[i]->type);
            binding->arguments[i] = make_cast(binding, binding->arguments[i], narrow ? &to : &own);
        }
        return;
    } else {
        return; /* whole numbers lie alike */
    }
    for (uint32_t i = 0; i < 2; i++) {
        binding->arguments[i] = make_cast(binding, binding->arguments[i], &to);
    }
}

/* Text meets a time by being read as one, a truth value by that being written. */
static int meet_text(struct binding *binding, uint32_t text)
{
    ASSERT(binding->call != NULL);
    const struct type *other = &binding->arguments[1 - text]->type;
    const struct type string = type_varchar(TYPE_LENGTH_MAX, true);
    if (type_is_time(other)) {
        binding->arguments[text] = make_cast(binding, binding->arguments[text], other);
        return 0;
    }
    if (other->kind == TYPE_BOOLEAN) {
        binding->arguments[1 - text] = make_cast(binding, binding->arguments[1 - text], &string);
        return 0;
    }
    if (type_is_number(other)) {
        char names[2][TYPE_PRINT_BYTES];
        return binding_fail(binding, -EINVAL,
                            "implicit type conversion between %s and %s is not supported now",
                            type_print(&binding->arguments[0]->type, names[0]),
                            type_print(&binding->arguments[1]->type, names[1]));
    }
    return binding_mismatch(binding);
}

/* Makes two arguments comparable. */
static int meet(struct binding *binding)
{
    ASSERT(binding->call != NULL);
    const struct expr *a = binding->arguments[0];
    const struct expr *b = binding->arguments[1];
    if (a->type.kind == TYPE_NULL || b->type.kind == TYPE_NULL) {
        struct type common;
        return binding_unify(binding, 0, 1, &common);
    }
    if (type_is_number(&a->type) && type_is_number(&b->type)) {
        meet_numbers(binding);
        return 0;
    }
    if (type_is_text(&a->type) && type_is_text(&b->type) &&
        type_is_characters(&a->type) == type_is_characters(&b->type)) {
        return 0;
    }
    const bool text_left = type_is_characters(&a->type);
    if (text_left != type_is_characters(&b->type)) {
        return meet_text(binding, text_left ? 0 : 1);
    }
    const bool instant = a->type.kind == TYPE_TIMESTAMP_LTZ || b->type.kind == TYPE_TIMESTAMP_LTZ;
    const bool wall = a->type.kind == TYPE_TIMESTAMP || b->type.kind == TYPE_TIMESTAMP;
    if (instant && wall) {
        const uint32_t left = a->type.kind == TYPE_TIMESTAMP ? 0 : 1;
        struct type to = binding->arguments[left]->type;
        to.kind = TYPE_TIMESTAMP_LTZ;
        binding->arguments[left] = make_cast(binding, binding->arguments[left], &to);
        return 0;
    }
    return a->type.kind == b->type.kind ? 0 : binding_mismatch(binding);
}

/* x = x and the like hold or not by themselves where x is not NULL, for NaN as well. */
static const struct expr *compare_same(const struct binding *binding, enum expr_function function)
{
    ASSERT(binding->call != NULL);
    const bool holds = function == EXPR_EQUALS || function == EXPR_LESS_OR_EQUAL ||
                       function == EXPR_GREATER_OR_EQUAL;
    const bool nullable = binding->arguments[0]->type.nullable;
    if (!nullable) {
        return boolean_literal(binding, false, holds);
    }
    const struct expr *parts[3] = {
        boolean_call(binding, EXPR_IS_NOT_NULL, false, binding->arguments, 1),
        boolean_literal(binding, false, holds), boolean_literal(binding, true, false)};
    return boolean_call(binding, EXPR_CASE, true, parts, 3);
}

static int compare(struct binding *binding, enum expr_function function, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const int result = binding->count == 2 ? meet(binding) : binding_mismatch(binding);
    if (result != 0) {
        return result;
    }
    if (expr_same(binding->arguments[0], binding->arguments[1])) {
        *out = compare_same(binding, function);
        return 0;
    }
    *out = make_call(binding, function, type_of_kind(TYPE_BOOLEAN, binding_nullable(binding)));
    return 0;
}

static int bind_compare(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->count <= EXPR_ARGUMENTS_MAX);
    return compare(binding, binding->entry->function, out);
}

static int bind_distinct(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const int result = binding->count == 2 ? meet(binding) : binding_mismatch(binding);
    if (result == 0) {
        *out = make_call(binding, binding->entry->function, type_of_kind(TYPE_BOOLEAN, false));
    }
    return result;
}

/* Compares two arguments of a binding in a binding of its own. */
static int compare_pair(const struct binding *binding, enum expr_function function,
                        const struct expr *a, const struct expr *b, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    struct binding pair = *binding;
    pair.count = 2;
    pair.arguments[0] = a;
    pair.arguments[1] = b;
    return compare(&pair, function, out);
}

static int bind_between(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 3) {
        return binding_mismatch(binding);
    }
    const struct expr *sides[2];
    int result = compare_pair(binding, EXPR_GREATER_OR_EQUAL, binding->arguments[0],
                              binding->arguments[1], &sides[0]);
    if (result == 0) {
        result = compare_pair(binding, EXPR_LESS_OR_EQUAL, binding->arguments[0],
                              binding->arguments[2], &sides[1]);
    }
    if (result == 0) {
        *out = boolean_call(binding, EXPR_AND, sides[0]->type.nullable || sides[1]->type.nullable,
                            sides, 2);
    }
    return result;
}

/* An item of an IN list takes the type of a whole-number column: a decimal is cut, as Flink does.
 */
static const struct expr *list_item(const struct binding *binding, const struct expr *item)
{
    ASSERT(binding->call != NULL);
    const struct type *type = &binding->arguments[0]->type;
    if (type_is_integer(type) && item->type.kind == TYPE_DECIMAL) {
        return make_cast(binding, item, type);
    }
    return item;
}

static int bind_in(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const struct expr *tests[EXPR_ARGUMENTS_MAX];
    if (binding->count < 2) {
        return binding_mismatch(binding);
    }
    bool nullable = false;
    for (uint32_t i = 1; i < binding->count; i++) {
        const struct expr *item = list_item(binding, binding->arguments[i]);
        const int result =
            compare_pair(binding, EXPR_EQUALS, binding->arguments[0], item, &tests[i - 1]);
        if (result != 0) {
            return result;
        }
        nullable = nullable || tests[i - 1]->type.nullable;
    }
    *out = binding->count == 2
               ? tests[0]
               : boolean_call(binding, EXPR_OR, nullable, tests, binding->count - 1);
    return 0;
}

static int unify_results(struct binding *binding, struct type *out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    /* Results stand at the odd places, the else at the last one. */
    struct binding results = *binding;
    results.count = 0;
    for (uint32_t i = 1; i < binding->count; i += 2) {
        results.arguments[results.count++] = binding->arguments[i];
    }
    results.arguments[results.count++] = binding->arguments[binding->count - 1];
    const int result = binding_unify(&results, 0, 1, out);
    uint32_t next = 0;
    for (uint32_t i = 1; i < binding->count; i += 2) {
        binding->arguments[i] = results.arguments[next++];
    }
    binding->arguments[binding->count - 1] = results.arguments[next];
    return result;
}

static int bind_case(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count < 2) {
        return binding_mismatch(binding);
    }
    if (binding->count % 2 == 0) {
        if (binding->count == EXPR_ARGUMENTS_MAX) {
            return binding_fail(binding, -ENOTSUP, "a CASE of more than %d parts",
                                EXPR_ARGUMENTS_MAX);
        }
        binding->arguments[binding->count++] =
            make_literal(binding, type_of_kind(TYPE_NULL, true), (struct value){.is_null = true});
    }
    const struct type boolean = type_of_kind(TYPE_BOOLEAN, true);
    for (uint32_t i = 0; i + 1 < binding->count; i += 2) {
        const enum type_kind kind = binding->arguments[i]->type.kind;
        if (kind != TYPE_BOOLEAN && kind != TYPE_NULL) {
            return binding_mismatch(binding);
        }
        binding->arguments[i] = make_cast(binding, binding->arguments[i], &boolean);
    }
    struct type type;
    const int result = unify_results(binding, &type);
    if (result == 0) {
        *out = make_call(binding, EXPR_CASE, type);
    }
    return result;
}

/* IF is CASE whose type is nullable when the condition is. */
static int bind_if(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 3) {
        return binding_mismatch(binding);
    }
    const bool nullable = binding->arguments[0]->type.nullable;
    struct type type;
    const int result = unify_results(binding, &type);
    if (result != 0) {
        return result;
    }
    if (binding->arguments[0]->type.kind != TYPE_BOOLEAN) {
        return binding_mismatch(binding);
    }
    type.nullable = type.nullable || nullable;
    *out = make_call(binding, EXPR_CASE, type);
    return 0;
}

static int bind_coalesce(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    struct type type;
    if (binding->count == 0) {
        return binding_mismatch(binding);
    }
    const int result = binding_unify(binding, 0, 1, &type);
    if (result != 0) {
        return result;
    }
    type.nullable = true;
    for (uint32_t i = 0; i < binding->count; i++) {
        type.nullable = type.nullable && binding->arguments[i]->type.nullable;
    }
    *out = binding->count == 1 ? binding->arguments[0] : make_call(binding, EXPR_COALESCE, type);
    return 0;
}

/* NULLIF(a, b) is NULL where a = b, else a. */
static int bind_nullif(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 2) {
        return binding_mismatch(binding);
    }
    const struct expr *first = binding->arguments[0];
    const struct expr *parts[3];
    const int result = compare_pair(binding, EXPR_EQUALS, first, binding->arguments[1], &parts[0]);
    if (result != 0) {
        return result;
    }
    struct type type = first->type;
    type.nullable = true;
    parts[1] = make_literal(binding, type, (struct value){.is_null = true});
    parts[2] = first;
    *out = make_call_of(binding, EXPR_CASE, type, parts, 3);
    return 0;
}

static int bind_extreme(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    struct type type;
    if (binding->count == 0) {
        return binding_mismatch(binding);
    }
    const int result = binding_unify(binding, 0, 1, &type);
    if (result == 0) {
        *out = make_call(binding, binding->entry->function, type);
    }
    return result;
}

const struct function_entry functions_logic[] = {
    {"AND", EXPR_AND, NULL, NULL, bind_junction},
    {"OR", EXPR_OR, NULL, NULL, bind_junction},
    {"NOT", EXPR_NOT, NULL, NULL, bind_not},
    {"IS NULL", EXPR_IS_NULL, NULL, NULL, bind_is_null},
    {"IS NOT NULL", EXPR_IS_NOT_NULL, NULL, NULL, bind_is_null},
    {"IS UNKNOWN", EXPR_IS_NULL, NULL, NULL, bind_is_truth},
    {"IS NOT UNKNOWN", EXPR_IS_NOT_NULL, NULL, NULL, bind_is_truth},
    {"IS TRUE", EXPR_IS_TRUE, NULL, NULL, bind_is_truth},
    {"IS NOT TRUE", EXPR_IS_NOT_TRUE, NULL, NULL, bind_is_truth},
    {"IS FALSE", EXPR_IS_FALSE, NULL, NULL, bind_is_truth},
    {"IS NOT FALSE", EXPR_IS_NOT_FALSE, NULL, NULL, bind_is_truth},
    {"IS DISTINCT FROM", EXPR_IS_DISTINCT, NULL, NULL, bind_distinct},
    {"IS NOT DISTINCT FROM", EXPR_IS_NOT_DISTINCT, NULL, NULL, bind_distinct},
    {"=", EXPR_EQUALS, NULL, NULL, bind_compare},
    {"<>", EXPR_NOT_EQUALS, NULL, NULL, bind_compare},
    {"<", EXPR_LESS, NULL, NULL, bind_compare},
    {"<=", EXPR_LESS_OR_EQUAL, NULL, NULL, bind_compare},
    {">", EXPR_GREATER, NULL, NULL, bind_compare},
    {">=", EXPR_GREATER_OR_EQUAL, NULL, NULL, bind_compare},
    {"BETWEEN", EXPR_AND, NULL, NULL, bind_between},
    {"IN", EXPR_OR, NULL, NULL, bind_in},
    {"CASE", EXPR_CASE, NULL, NULL, bind_case},
    {"IF", EXPR_CASE, NULL, NULL, bind_if},
    {"COALESCE", EXPR_COALESCE, NULL, NULL, bind_coalesce},
    {"IFNULL", EXPR_COALESCE, NULL, NULL, bind_coalesce},
    {"NULLIF", EXPR_CASE, NULL, NULL, bind_nullif},
    {"GREATEST", EXPR_GREATEST, NULL, NULL, bind_extreme},
    {"LEAST", EXPR_LEAST, NULL, NULL, bind_extreme},
    {.name = NULL},
};
