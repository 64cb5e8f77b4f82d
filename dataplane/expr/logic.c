/* SPDX-License-Identifier: Apache-2.0 */
/* Three-valued logic over vectors of truth values: 1, 0 and a null flag. All without branches. */
#include <errno.h>

#include "dataplane/expr/kernel_internal.h"

/* Folds one more operand into out, whose value is the one that decides nothing yet. `wins` decides:
 * FALSE for AND, TRUE for OR. A NULL row of out holds !wins, so that a later winner shows. */
static void fold(struct kernel_run *run, const struct vector *in, bool wins)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(in != NULL);
    const int64_t *restrict value = in->i64;
    const uint8_t *restrict null = in->null;
    int64_t *restrict out = run->out->i64;
    uint8_t *restrict out_null = run->out->null;
    uint8_t any = 0;
    KERNEL_ROWS(run, {
        const bool won = out_null[i] == 0 && (out[i] != 0) == wins;
        const bool wins_now = null[i] == 0 && (value[i] != 0) == wins;
        const bool decided = won | wins_now;
        out_null[i] = !decided & ((out_null[i] | null[i]) != 0);
        out[i] = decided ? wins : !wins;
        any |= out_null[i];
    });
    run->out_null |= any != 0;
}

static void fold_all(struct kernel_run *run, bool wins)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT(run->in_count >= 1);
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, { out[i] = !wins; });
    for (uint32_t argument = 0; argument < run->in_count; argument++) {
        fold(run, run->in[argument], wins);
    }
}

void logic_and(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    fold_all(run, false);
}

void logic_or(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    fold_all(run, true);
}

static void logic_not(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const int64_t *restrict in = run->in[0]->i64;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, { out[i] = in[i] == 0; });
}

static void is_null(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const uint8_t *restrict null = run->in[0]->null;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, { out[i] = null[i] == VECTOR_NULL; });
}

static void is_not_null(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const uint8_t *restrict null = run->in[0]->null;
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, { out[i] = null[i] != VECTOR_NULL; });
}

#define IS_TEST(name, holds)                                                                       \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const int64_t *restrict in = run->in[0]->i64;                                              \
        const uint8_t *restrict null = run->in[0]->null;                                           \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, { out[i] = holds; });                                                     \
    }

IS_TEST(is_true, (null[i] == 0) & (in[i] != 0))
IS_TEST(is_not_true, (null[i] != 0) | (in[i] == 0))
IS_TEST(is_false, (null[i] == 0) & (in[i] == 0))
IS_TEST(is_not_false, (null[i] != 0) | (in[i] != 0))

int logic_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    static kernel_function *const raw[EXPR_FUNCTION_COUNT] = {
        [EXPR_IS_NULL] = is_null,   [EXPR_IS_NOT_NULL] = is_not_null,
        [EXPR_IS_TRUE] = is_true,   [EXPR_IS_NOT_TRUE] = is_not_true,
        [EXPR_IS_FALSE] = is_false, [EXPR_IS_NOT_FALSE] = is_not_false,
    };
    const struct expr *expr = call->expr;
    if (expr->function == EXPR_NOT) {
        *out = (struct kernel_choice){.function = logic_not, .mode = KERNEL_TOTAL};
        return 0;
    }
    if (raw[expr->function] == NULL) {
        return -ENOENT;
    }
    ASSERT(expr->argument_count == 1);
    *out =
        (struct kernel_choice){.function = raw[expr->function], .mode = KERNEL_RAW, .eager = true};
    return 0;
}
