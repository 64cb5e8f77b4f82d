/* SPDX-License-Identifier: Apache-2.0 */
/* Short ways to write bound calls in tests: literals of each type, calls by SQL name, and the text
 * of the literal that a call of literals folds to. One memory a test program. */
#pragma once

#include "control/sql/functions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"

struct bench {
    struct sql_memory *memory;
    struct error error;
};

/* The one bench of a test program. */
static struct bench *const the_bench = (struct bench[]){{.memory = NULL}};

/* Makes the bench; a group setup. */
static inline int bench_setup(void **state)
{
    the_bench->memory = sql_memory_create();
    return the_bench->memory == NULL;
}

/* Frees the bench; a group teardown. */
static inline int bench_teardown(void **state)
{
    sql_memory_destroy(the_bench->memory);
    return 0;
}

/* A literal of a type. */
static inline const struct expr *literal(struct type type, struct value value)
{
    struct expr *expr = sql_allocate(the_bench->memory, sizeof(*expr));
    expr->kind = EXPR_LITERAL;
    expr->type = type;
    expr->type.nullable = value.is_null;
    expr->literal = value;
    return expr;
}

/* A column reference. */
static inline const struct expr *column(uint32_t index, struct type type)
{
    struct expr *expr = sql_allocate(the_bench->memory, sizeof(*expr));
    expr->kind = EXPR_COLUMN;
    expr->type = type;
    expr->column = index;
    return expr;
}

/* A type without parameters, nullable as all of these. */
static inline struct type kind(enum type_kind of)
{
    return (struct type){.kind = of, .nullable = true};
}

/* DECIMAL(precision, scale). */
static inline struct type decimal_type(uint8_t precision, uint8_t scale)
{
    return (struct type){
        .kind = TYPE_DECIMAL, .nullable = true, .precision = precision, .scale = scale};
}

/* VARCHAR(length). */
static inline struct type text_type(uint32_t length)
{
    return (struct type){.kind = TYPE_VARCHAR, .nullable = true, .length = length};
}

/* CHAR(length). */
static inline struct type char_type(uint32_t length)
{
    return (struct type){.kind = TYPE_CHAR, .nullable = true, .length = length};
}

/* A time with fraction digits. */
static inline struct type time_type(enum type_kind of, uint8_t precision)
{
    return (struct type){.kind = of, .nullable = true, .precision = precision};
}

/* A literal whose value is a whole number. */
static inline const struct expr *whole(enum type_kind of, int64_t value)
{
    return literal(kind(of), (struct value){.i64 = value});
}

#define TINYINT(value)  whole(TYPE_TINYINT, value)
#define SMALLINT(value) whole(TYPE_SMALLINT, value)
#define INT(value)      whole(TYPE_INT, value)
#define BIGINT(value)   whole(TYPE_BIGINT, value)
#define BOOL(value)     whole(TYPE_BOOLEAN, value)
#define DOUBLE(x)       literal(kind(TYPE_DOUBLE), (struct value){.f64 = (x)})
#define FLOAT(x)        literal(kind(TYPE_FLOAT), (struct value){.f32 = (x)})
#define NULL_OF(of)     literal(of, (struct value){.is_null = true})

/* A CHAR literal. */
static inline const struct expr *TEXT(const char *text)
{
    return literal(char_type((uint32_t)strlen(text)),
                   (struct value){.text = {.data = (const uint8_t *)text, .bytes = strlen(text)}});
}

/* A DECIMAL literal from its text. */
static inline const struct expr *DECIMAL(const char *text, uint8_t precision, uint8_t scale)
{
    const struct span span = {.data = (const uint8_t *)text, .bytes = strlen(text)};
    struct value value = {.is_null = false};
    __int128 unscaled = 0;
    assert_int_equal(decimal_parse(span, precision, scale, &unscaled), DECIMAL_OK);
    if (precision > TYPE_DECIMAL_NARROW_MAX) {
        value.i128 = unscaled;
    } else {
        value.i64 = (int64_t)unscaled;
    }
    return literal(decimal_type(precision, scale), value);
}

/* A TIMESTAMP literal from its text. */
static inline const struct expr *TIMESTAMP(const char *text, uint8_t precision)
{
    const struct span span = {.data = (const uint8_t *)text, .bytes = strlen(text)};
    const struct timestamp_form form = {.separator = ' '};
    struct value value = {.is_null = false};
    assert_true(timestamp_parse(span, &form, &value.timestamp));
    return literal(time_type(TYPE_TIMESTAMP, precision), value);
}

/* A DATE literal from its text. */
static inline const struct expr *DATE(const char *text)
{
    const struct span span = {.data = (const uint8_t *)text, .bytes = strlen(text)};
    struct value value = {.is_null = false};
    assert_true(date_parse(span, &value.i64));
    return literal(kind(TYPE_DATE), value);
}

/* Binds a call.
 * returns  function_bind's */
static inline int bind_all(const char *name, const struct expr *const *arguments, uint32_t count,
                           const struct type *target, const struct expr **out)
{
    const struct function_call call = {.name = name,
                                       .arguments = arguments,
                                       .argument_count = count,
                                       .target = target,
                                       .line = 3,
                                       .column = 7};
    the_bench->error = (struct error){.line = 0};
    return function_bind(the_bench->memory, &call, out, &the_bench->error);
}

/* Binds a call that must be good. */
static inline const struct expr *bind_ok(const char *name, const struct expr *const *arguments,
                                         uint32_t count, const struct type *target)
{
    const struct expr *out = NULL;
    const int result = bind_all(name, arguments, count, target, &out);
    if (result != 0) {
        print_error("%s: %s\n", name, the_bench->error.text);
    }
    assert_int_equal(result, 0);
    return out;
}

#define ARGUMENTS(...)                                                                             \
    (const struct expr *const[]){__VA_ARGS__},                                                     \
        (uint32_t)(sizeof((const struct expr *const[]){__VA_ARGS__}) / sizeof(struct expr *))

/* CALL("name", argument, …): the bound call, or the literal it folds to. */
#define CALL(name, ...)          bind_ok(name, ARGUMENTS(__VA_ARGS__), NULL)
#define CAST(argument, type)     cast_of("CAST", argument, type)
#define TRY_CAST(argument, type) cast_of("TRY_CAST", argument, type)

/* Binds CAST or TRY_CAST. */
static inline const struct expr *cast_of(const char *name, const struct expr *argument,
                                         struct type type)
{
    return bind_ok(name, &argument, 1, &type);
}

/* Prints an expression. */
static inline const char *show(const struct expr *expr)
{
    char *text = sql_allocate(the_bench->memory, 1024);
    static const char *const names[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
    return expr_print(expr, names, text, 1024);
}

/* Prints an expression's type. */
static inline const char *type_of(const struct expr *expr)
{
    char *text = sql_allocate(the_bench->memory, TYPE_PRINT_BYTES);
    return type_print(&expr->type, text);
}

#define SHOWS(expr, expected) assert_string_equal(show(expr), expected)
#define TYPED(expr, expected) assert_string_equal(type_of(expr), expected)
