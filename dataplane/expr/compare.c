/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, IS DISTINCT FROM, GREATEST and LEAST. Arguments are of one kind; decimals may differ
 * in precision and scale and compare by value. NaN compares as in IEEE 754. */
#include <errno.h>

#include "dataplane/expr/compare_internal.h"
#include "dataplane/expr/decimal_internal.h"
#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_order.h"

enum comparison {
    COMPARE_EQUAL = 0,
    COMPARE_NOT_EQUAL,
    COMPARE_LESS,
    COMPARE_LESS_OR_EQUAL,
    COMPARE_GREATER,
    COMPARE_GREATER_OR_EQUAL,
    COMPARISONS,
};

enum compare_class compare_class_of(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    switch (type->kind) {
    case TYPE_FLOAT:
        return CLASS_F32;
    case TYPE_DOUBLE:
        return CLASS_F64;
    case TYPE_DECIMAL:
        return type->precision > TYPE_DECIMAL_NARROW_MAX ? CLASS_I128 : CLASS_I64;
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        return CLASS_TEXT;
    case TYPE_BINARY:
    case TYPE_VARBINARY:
        return CLASS_BYTES;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return CLASS_TIMESTAMP;
    default:
        return type->kind >= TYPE_ARRAY ? CLASS_NONE : CLASS_I64;
    }
}

static int order_timestamp(struct timestamp a, struct timestamp b)
{
    ASSERT_SLOW(a.ns >= 0);
    return a.ms != b.ms ? (a.ms < b.ms ? -1 : 1) : (a.ns > b.ns) - (a.ns < b.ns);
}

/* One kernel per class and comparison over plain pointers. */
#define COMPARE_PLAIN(class, field, c_type, name, op)                                              \
    static void class##_##name(struct kernel_run *run)                                             \
    {                                                                                              \
        const c_type *restrict a = run->in[0]->field;                                              \
        const c_type *restrict b = run->in[1]->field;                                              \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, { out[i] = a[i] op b[i]; });                                              \
    }
#define COMPARE_ORDER(class, field, c_type, order, name, op)                                       \
    static void class##_##name(struct kernel_run *run)                                             \
    {                                                                                              \
        const c_type *restrict a = run->in[0]->field;                                              \
        const c_type *restrict b = run->in[1]->field;                                              \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, { out[i] = order(a[i], b[i]) op 0; });                                    \
    }
#define COMPARE_ALL(macro, ...)                                                                    \
    macro(__VA_ARGS__, equal, ==) macro(__VA_ARGS__, not_equal, !=) macro(__VA_ARGS__, less, <)    \
        macro(__VA_ARGS__, less_or_equal, <=) macro(__VA_ARGS__, greater, >)                       \
            macro(__VA_ARGS__, greater_or_equal, >=)
#define COMPARE_NAMES(class)                                                                       \
    {                                                                                              \
        class##_equal, class##_not_equal, class##_less, class##_less_or_equal, class##_greater,    \
            class##_greater_or_equal                                                               \
    }

COMPARE_ALL(COMPARE_PLAIN, i64, i64, int64_t)
COMPARE_ALL(COMPARE_PLAIN, f32, f32, float)
COMPARE_ALL(COMPARE_PLAIN, f64, f64, double)
COMPARE_ALL(COMPARE_PLAIN, i128, i128, __int128)
COMPARE_ALL(COMPARE_ORDER, timestamp, timestamp, struct timestamp, order_timestamp)
COMPARE_ALL(COMPARE_ORDER, texts, text, struct span, text_compare)
COMPARE_ALL(COMPARE_ORDER, bytes, text, struct span, text_compare_bytes)

#define TEXT_EQUALITY(name, wanted)                                                                \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const struct span *restrict a = run->in[0]->text;                                          \
        const struct span *restrict b = run->in[1]->text;                                          \
        int64_t *restrict out = run->out->i64;                                                     \
        KERNEL_ROWS(run, { out[i] = text_equal(a[i], b[i]) == (wanted); });                        \
    }
TEXT_EQUALITY(text_same, true)
TEXT_EQUALITY(text_differs, false)

static bool order_holds(enum comparison comparison, int order)
{
    static const bool holds[COMPARISONS][3] = {
        [COMPARE_EQUAL] = {false, true, false},   [COMPARE_NOT_EQUAL] = {true, false, true},
        [COMPARE_LESS] = {true, false, false},    [COMPARE_LESS_OR_EQUAL] = {true, true, false},
        [COMPARE_GREATER] = {false, false, true}, [COMPARE_GREATER_OR_EQUAL] = {false, true, true},
    };
    return holds[comparison][order + 1];
}

/* Decimals of two scales or two widths. */
static void decimal_compare_run(struct kernel_run *run, enum comparison comparison)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *a = run->in[0];
    const struct vector *b = run->in[1];
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, {
        const int order =
            decimal_compare(decimal_load(a, i), a->type.scale, decimal_load(b, i), b->type.scale);
        out[i] = order_holds(comparison, order);
    });
}

#define COMPARE_DECIMAL(name, comparison)                                                          \
    static void decimal_##name(struct kernel_run *run)                                             \
    {                                                                                              \
        decimal_compare_run(run, comparison);                                                      \
    }
COMPARE_DECIMAL(equal, COMPARE_EQUAL)
COMPARE_DECIMAL(not_equal, COMPARE_NOT_EQUAL)
COMPARE_DECIMAL(less, COMPARE_LESS)
COMPARE_DECIMAL(less_or_equal, COMPARE_LESS_OR_EQUAL)
COMPARE_DECIMAL(greater, COMPARE_GREATER)
COMPARE_DECIMAL(greater_or_equal, COMPARE_GREATER_OR_EQUAL)

int compare_order(const struct vector *a, const struct vector *b, uint32_t i)
{
    ASSERT_SLOW(a != NULL);
    switch (compare_class_of(&a->type)) {
    case CLASS_F32:
        return (a->f32[i] > b->f32[i]) - (a->f32[i] < b->f32[i]);
    case CLASS_F64:
        return (a->f64[i] > b->f64[i]) - (a->f64[i] < b->f64[i]);
    case CLASS_TEXT:
        return text_compare(a->text[i], b->text[i]);
    case CLASS_BYTES:
        return text_compare_bytes(a->text[i], b->text[i]);
    case CLASS_TIMESTAMP:
        return order_timestamp(a->timestamp[i], b->timestamp[i]);
    case CLASS_I128:
    case CLASS_I64:
        if (a->type.kind == TYPE_DECIMAL) {
            return decimal_compare(decimal_load(a, i), a->type.scale, decimal_load(b, i),
                                   b->type.scale);
        }
        return (a->i64[i] > b->i64[i]) - (a->i64[i] < b->i64[i]);
    case CLASS_NONE:
        break;
    }
    return 0;
}

static bool values_equal(const struct vector *a, const struct vector *b, uint32_t i)
{
    ASSERT_SLOW(a != NULL);
    switch (compare_class_of(&a->type)) {
    case CLASS_F32:
        return a->f32[i] == b->f32[i];
    case CLASS_F64:
        return a->f64[i] == b->f64[i];
    case CLASS_TEXT:
    case CLASS_BYTES:
        return text_equal(a->text[i], b->text[i]);
    default:
        return compare_order(a, b, i) == 0;
    }
}

static void distinct_run(struct kernel_run *run, bool wanted)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const struct vector *a = run->in[0];
    const struct vector *b = run->in[1];
    int64_t *restrict out = run->out->i64;
    KERNEL_ROWS(run, {
        const bool a_null = a->null[i] != 0;
        const bool b_null = b->null[i] != 0;
        const bool same = a_null || b_null ? a_null == b_null : values_equal(a, b, i);
        out[i] = same != wanted;
    });
}

static void is_distinct(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    distinct_run(run, true);
}

static void is_not_distinct(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    distinct_run(run, false);
}

static void copy_value(const struct vector *from, struct vector *into, uint32_t i)
{
    ASSERT_SLOW(into != NULL);
    switch (compare_class_of(&into->type)) {
    case CLASS_F32:
        into->f32[i] = from->f32[i];
        break;
    case CLASS_I64:
    case CLASS_F64:
    case CLASS_NONE:
        into->i64[i] = from->i64[i];
        break;
    default:
        into->i128[i] = from->i128[i];
        break;
    }
}

static void extreme_run(struct kernel_run *run, int sign)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    KERNEL_ROWS(run, {
        uint32_t best = 0;
        for (uint32_t argument = 1; argument < run->in_count; argument++) {
            if (compare_order(run->in[argument], run->in[best], i) * sign > 0) {
                best = argument;
            }
        }
        copy_value(run->in[best], run->out, i);
    });
}

static void greatest(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    extreme_run(run, 1);
}

static void least(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    extreme_run(run, -1);
}

static bool same_scale(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    const struct type *a = &expr->arguments[0]->type;
    const struct type *b = &expr->arguments[1]->type;
    return a->scale == b->scale && compare_class_of(a) == compare_class_of(b);
}

static kernel_function *find_comparison(const struct expr *expr, enum comparison comparison)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    static kernel_function *const kernels[][COMPARISONS] = {
        [CLASS_I64] = COMPARE_NAMES(i64),
        [CLASS_F32] = COMPARE_NAMES(f32),
        [CLASS_F64] = COMPARE_NAMES(f64),
        [CLASS_I128] = COMPARE_NAMES(i128),
        [CLASS_TIMESTAMP] = COMPARE_NAMES(timestamp),
        [CLASS_TEXT] = COMPARE_NAMES(texts),
        [CLASS_BYTES] = COMPARE_NAMES(bytes),
    };
    static kernel_function *const decimals[COMPARISONS] = COMPARE_NAMES(decimal);
    const enum compare_class class = compare_class_of(&expr->arguments[0]->type);
    if (class == CLASS_NONE) {
        return NULL;
    }
    if (expr->arguments[0]->type.kind == TYPE_DECIMAL && !same_scale(expr)) {
        return decimals[comparison];
    }
    const bool text = class == CLASS_TEXT || class == CLASS_BYTES;
    if (text && comparison <= COMPARE_NOT_EQUAL) {
        return comparison == COMPARE_EQUAL ? text_same : text_differs;
    }
    return kernels[class][comparison];
}

static int find_other(const struct expr *expr, struct kernel_choice *out)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    ASSERT_SLOW(out != NULL);
    const enum compare_class class = compare_class_of(&expr->arguments[0]->type);
    if (class == CLASS_NONE) {
        return -ENOENT;
    }
    switch (expr->function) {
    case EXPR_IS_DISTINCT:
    case EXPR_IS_NOT_DISTINCT:
        *out = (struct kernel_choice){
            .function = expr->function == EXPR_IS_DISTINCT ? is_distinct : is_not_distinct,
            .mode = KERNEL_RAW,
            .eager = true};
        return 0;
    case EXPR_GREATEST:
    case EXPR_LEAST:
        *out =
            (struct kernel_choice){.function = expr->function == EXPR_GREATEST ? greatest : least,
                                   .mode = KERNEL_STRICT,
                                   .eager = true};
        return 0;
    default:
        return -ENOENT;
    }
}

int compare_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static const uint8_t comparisons[EXPR_FUNCTION_COUNT] = {
        [EXPR_EQUALS] = COMPARE_EQUAL + 1,
        [EXPR_NOT_EQUALS] = COMPARE_NOT_EQUAL + 1,
        [EXPR_LESS] = COMPARE_LESS + 1,
        [EXPR_LESS_OR_EQUAL] = COMPARE_LESS_OR_EQUAL + 1,
        [EXPR_GREATER] = COMPARE_GREATER + 1,
        [EXPR_GREATER_OR_EQUAL] = COMPARE_GREATER_OR_EQUAL + 1,
    };
    const struct expr *expr = call->expr;
    if (comparisons[expr->function] == 0) {
        return expr->argument_count == 0 ? -ENOENT : find_other(expr, out);
    }
    ASSERT(expr->argument_count == 2);
    const enum comparison comparison = comparisons[expr->function] - 1;
    kernel_function *const function = find_comparison(expr, comparison);
    if (function == NULL) {
        return -ENOENT;
    }
    const bool text = type_is_text(&expr->arguments[0]->type);
    *out = (struct kernel_choice){
        .function = function, .mode = text ? KERNEL_STRICT : KERNEL_TOTAL, .eager = true};
    return 0;
}
