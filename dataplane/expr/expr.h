/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of the physical plan: typed trees over the columns of one row layout. The planner
 * builds them (control/sql/functions.h types calls and puts in casts), dataplane/expr/program.h
 * compiles them once, EXPLAIN prints them. Const after planning; they live as long as the plan. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

#define EXPR_ARGUMENTS_MAX 256
#define EXPR_DEPTH_MAX     256 /* of a tree; deeper SQL is refused at check */

enum expr_kind {
    EXPR_COLUMN = 0, /* a column of the input row */
    EXPR_LITERAL,
    EXPR_CALL,
};

/* The functions and operators that programs can run. functions.def holds one line each:
 * FUNCTION(NAME, "SQL NAME"). Arguments are already of the types that the kernel wants: what
 * converts is an explicit CAST call. */
enum expr_function {
    EXPR_FUNCTION_NONE = 0,
#define FUNCTION(name, sql_name) EXPR_##name,
#include "dataplane/expr/functions.def"
#undef FUNCTION
    EXPR_FUNCTION_COUNT,
};

struct expr {
    enum expr_kind kind;
    struct type type; /* of the result */
    uint32_t line;    /* in the script, 0 when the planner made it */
    uint32_t column_in_line;
    union {
        uint32_t column;      /* EXPR_COLUMN */
        struct value literal; /* EXPR_LITERAL */
        struct {              /* EXPR_CALL */
            enum expr_function function;
            uint32_t argument_count;
            const struct expr *const *arguments;
        };
    };
};

/* Names a function as SQL writes it.
 * threads  any */
const char *expr_function_name(enum expr_function function);

/* Prints an expression as EXPLAIN shows it, e.g. CASE(>(amount, 100.00), 'big', 'small').
 * column_names  of the input layout
 * into          bytes of room; cut at its end
 * returns       into
 * threads       any */
const char *expr_print(const struct expr *expr, const char *const *column_names, char *into,
                       size_t bytes);
