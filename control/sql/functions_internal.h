/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of functions.c share: building of calls and casts, and the table's handlers, one
 * part a noun. */
#pragma once

#include "base.h"
#include "control/sql/functions.h"

#define TEXT_OF(text) ((struct span){.data = (const uint8_t *)(text), .bytes = strlen(text)})

struct function_entry;

/* A call being bound. */
struct binding {
    struct sql_memory *memory;
    const struct function_call *call;
    const struct function_entry *entry;
    struct error *error;
    const struct expr *arguments[EXPR_ARGUMENTS_MAX]; /* may be replaced by casts of them */
    uint32_t count;
};

typedef int function_bind_handler(struct binding *binding, const struct expr **out);

/* One name. Plain functions have signature and result in a small language:
 *   arguments  s text, y bytes or text, i INT, l BIGINT, d DOUBLE, n a number as it is, b BOOLEAN,
 *              a anything, t TIMESTAMP or TIMESTAMP_LTZ; what follows ? may be left out, * repeats
 *              the one before
 *   result     S STRING, V VARCHAR of the first argument's length, I L D B the numbers, 0 the first
 *              argument's type, Y BYTES; then ? for always nullable, ! for never */
struct function_entry {
    const char *name;
    enum expr_function function;
    const char *arguments;
    const char *result;
    function_bind_handler *handler; /* instead of arguments and result */
};

/* Types without parameters, nullable or not. */
struct type type_of_kind(enum type_kind kind, bool nullable);

/* VARCHAR of a length; TYPE_LENGTH_MAX is STRING. */
struct type type_varchar(uint32_t length, bool nullable);

/* DECIMAL, cut to 38 digits as Flink cuts it. */
struct type type_decimal(int32_t precision, int32_t scale, bool nullable);

/* Tells whether a type is a number of any kind. */
bool type_is_number(const struct type *type);

/* Tells whether a type is FLOAT or DOUBLE. */
bool type_is_approximate(const struct type *type);

/* Tells whether a type is CHAR or VARCHAR. */
bool type_is_characters(const struct type *type);

/* Tells whether a type is DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ. */
bool type_is_time(const struct type *type);

/* The DECIMAL that holds every value of a whole-number type; a DECIMAL as it is. */
struct type type_as_decimal(const struct type *type);

/* Fails with the function's name and its argument types. */
int binding_mismatch(const struct binding *binding);

/* Fails with words of its own at the call's place. */
int binding_fail(const struct binding *binding, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Tells whether any argument may be NULL. */
bool binding_nullable(const struct binding *binding);

/* Makes a call of the binding's arguments; one of literals only is computed at once. */
const struct expr *make_call(const struct binding *binding, enum expr_function function,
                             struct type type);

/* Makes a call of other arguments. */
const struct expr *make_call_of(const struct binding *binding, enum expr_function function,
                                struct type type, const struct expr *const *arguments,
                                uint32_t count);

/* Makes a literal. */
const struct expr *make_literal(const struct binding *binding, struct type type,
                                struct value value);

/* Makes a CHAR literal of a text that outlives the plan. */
const struct expr *make_text(const struct binding *binding, const char *text);

/* Casts to a type (nullability kept from the expression) unless it has it already. */
const struct expr *make_cast(const struct binding *binding, const struct expr *from,
                             const struct type *to);

/* Reads a SYMBOL argument.
 * returns  false when it is no literal text */
bool binding_symbol(const struct binding *binding, uint32_t index, char into[static 32]);

/* Reads a whole-number literal argument. */
bool binding_constant(const struct binding *binding, uint32_t index, int64_t *value);

/* Tells whether two expressions are the same tree. */
bool expr_same(const struct expr *a, const struct expr *b);

/* Finds the common type of the binding's arguments from `first` on, by steps, and casts them. */
int binding_unify(struct binding *binding, uint32_t first, uint32_t step, struct type *out);

/* The tables, one a noun; each ends with a NULL name. */
extern const struct function_entry functions_logic[];
extern const struct function_entry functions_number[];
extern const struct function_entry functions_text[];
extern const struct function_entry functions_time[];
extern const struct function_entry functions_cast[];
