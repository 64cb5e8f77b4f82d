/* SPDX-License-Identifier: Apache-2.0 */
/* What program.c and the kernels share. A kernel computes one function for the chosen rows of a
 * run; one file a noun finds the kernels of its functions (number_kernel, text_kernel, …).
 *
 *   KERNEL_TOTAL   NULL when any argument is; may be run over any row, NULL ones and rows of other
 *                  branches included: it cannot fail, makes no text and reads no text
 *   KERNEL_STRICT  NULL when any argument is; sees only chosen rows without NULL
 *   KERNEL_RAW     sees all chosen rows and the null flags of its arguments
 *
 * Null flags of outputs are 0 before a kernel runs; TOTAL and STRICT outputs have those of their
 * arguments merged in already. A kernel that makes a NULL calls kernel_null. */
#pragma once

#include "base.h"
#include "dataplane/expr/expr.h"
#include "dataplane/expr/program.h"

#define KERNEL_ARGUMENTS_MAX EXPR_ARGUMENTS_MAX

enum kernel_mode {
    KERNEL_TOTAL = 0,
    KERNEL_STRICT,
    KERNEL_RAW,
};

/* Text made by one run. */
struct scratch {
    uint8_t *data;
    uint32_t used;
    uint32_t bytes;
};

/* The first failure of a run; row counts when failed. */
struct kernel_failure {
    bool failed;
    bool scratch_full;
    uint32_t row;
    char reason[PROGRAM_REASON_BYTES];
};

struct kernel_run {
    const struct vector *const *in;
    uint32_t in_count;
    struct vector *out;
    const uint16_t *index; /* the chosen rows, or NULL: 0 to count - 1 */
    uint32_t count;
    bool out_null; /* set when a null flag of out was written */
    bool hidden;   /* merge of hidden NULLs is possible */
    const void *constant;
    void *memory; /* of this instruction and state; choice.memory_bytes */
    const struct program_context *context;
    struct scratch *scratch;
    struct kernel_failure *failure;
};

typedef void kernel_function(struct kernel_run *run);

/* What a noun answers: how to compute a call. */
struct kernel_choice {
    kernel_function *function;
    enum kernel_mode mode;
    bool eager;      /* STRICT, yet so cheap and safe that rows of other branches may be computed */
    bool hides_null; /* NULLs it makes are VECTOR_NULL_HIDDEN, and hidden ones pass through */
    void *constant;  /* prepared from literal arguments; freed with constant_destroy */
    void (*constant_destroy)(void *constant);
    uint32_t memory_bytes; /* of run->memory, zeroed at state creation */
    int (*memory_init)(const void *constant, void *memory);
    void (*memory_fini)(void *memory);
};

struct kernel_call {
    const struct expr *expr; /* an EXPR_CALL */
    const char *time_zone;   /* of the session */
};

/* Goes over the chosen rows; `i` is the row. The dense form is kept apart so that it vectorises. */
#define KERNEL_ROWS(run, ...)                                                                      \
    do {                                                                                           \
        if ((run)->index == NULL) {                                                                \
            for (uint32_t i = 0; i < (run)->count; i++) {                                          \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t k = 0; k < (run)->count; k++) {                                          \
                const uint32_t i = (run)->index[k];                                                \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Tells the row at a position of the chosen ones. */
static inline uint32_t kernel_row(const struct kernel_run *run, uint32_t position)
{
    ASSERT_SLOW(run->out != NULL);
    return run->index == NULL ? position : run->index[position];
}

/* Makes a row's result NULL. */
static inline void kernel_null(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    run->out->null[row] = VECTOR_NULL;
    run->out_null = true;
}

/* As kernel_null, for what IS NULL does not see. */
static inline void kernel_null_hidden(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    run->out->null[row] = VECTOR_NULL_HIDDEN;
    run->out_null = true;
}

/* Notes that a row fails the job, keeping the first reason of a run. */
void kernel_fail(struct kernel_run *run, uint32_t row, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Takes room for text.
 * returns  NULL when the scratch is full; then the run answers PROGRAM_SCRATCH_FULL */
uint8_t *kernel_text(struct kernel_run *run, size_t bytes);

/* Gives back the end of the room taken last, of which `used` bytes stay. */
static inline void kernel_text_trim(struct kernel_run *run, const uint8_t *text, size_t used)
{
    ASSERT_SLOW(run->out != NULL);
    run->scratch->used = (uint32_t)(text - run->scratch->data + (ptrdiff_t)used);
}

/* Tells whether argument `index` of a call is a literal that is not NULL. */
static inline bool kernel_is_literal(const struct expr *call, uint32_t index)
{
    ASSERT_SLOW(call->kind <= EXPR_CALL);
    return index < call->argument_count && call->arguments[index]->kind == EXPR_LITERAL &&
           !call->arguments[index]->literal.is_null;
}

/* Three-valued AND of two arguments or more, without branches; KERNEL_RAW. */
void logic_and(struct kernel_run *run);

/* As logic_and, OR. */
void logic_or(struct kernel_run *run);

/* Finds the kernel of a call: NOT and the IS tests.
 * returns  0; -ENOENT when the call is not of its functions; -ENOTSUP or -EINVAL with error */
int logic_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: comparisons, IS DISTINCT FROM, GREATEST, LEAST.
 * returns  as logic_kernel */
int compare_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: arithmetic of whole and floating-point numbers.
 * returns  as logic_kernel */
int number_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: arithmetic of decimals.
 * returns  as logic_kernel */
int decimal_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: ROUND and TRUNCATE but of decimals.
 * returns  as logic_kernel */
int number_round_kernel(const struct kernel_call *call, struct kernel_choice *out,
                        struct error *error);

/* Finds the kernel of a call: mathematics on DOUBLE.
 * returns  as logic_kernel */
int math_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: sums of times and intervals, TIMESTAMPDIFF, the clocks.
 * returns  as logic_kernel */
int time_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: EXTRACT, FLOOR and CEIL of times.
 * returns  as logic_kernel */
int time_part_kernel(const struct kernel_call *call, struct kernel_choice *out,
                     struct error *error);

/* Finds the kernel of a call: texts of times by pattern, and zones.
 * returns  as logic_kernel */
int time_format_kernel(const struct kernel_call *call, struct kernel_choice *out,
                       struct error *error);

/* Finds the kernel of a call: parts of text and joining.
 * returns  as logic_kernel */
int text_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: text written anew.
 * returns  as logic_kernel */
int text_edit_kernel(const struct kernel_call *call, struct kernel_choice *out,
                     struct error *error);

/* Finds the kernel of a call: codes of text and numbers.
 * returns  as logic_kernel */
int text_code_kernel(const struct kernel_call *call, struct kernel_choice *out,
                     struct error *error);

/* Finds the kernel of a call: digests.
 * returns  as logic_kernel */
int text_digest_kernel(const struct kernel_call *call, struct kernel_choice *out,
                       struct error *error);

/* Finds the kernel of a call: PARSE_URL.
 * returns  as logic_kernel */
int text_url_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: LIKE.
 * returns  as logic_kernel */
int like_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: regular expressions.
 * returns  as logic_kernel */
int regex_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Finds the kernel of a call: CAST and TRY_CAST.
 * returns  as logic_kernel */
int cast_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error);
