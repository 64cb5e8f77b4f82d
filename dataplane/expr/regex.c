/* SPDX-License-Identifier: Apache-2.0 */
/* REGEXP and its family, SIMILAR TO, IS_ALPHA and IS_DIGIT, by PCRE2 with its JIT. Patterns are
 * constant and compiled once; match data and the JIT's stack are made with the state, so that a
 * match takes no memory. Text may be any bytes: PCRE2 is told not to trust it as UTF-8. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/regex_java.h"
#include "dataplane/expr/text_internal.h"

#define STACK_BYTES_MIN ((size_t)32 << 10)
#define STACK_BYTES_MAX ((size_t)512 << 10)
#define MATCH_LIMIT     1000000

/* A compiled pattern; code is NULL for one that Java would not compile. */
struct regex {
    pcre2_code *code;
};

struct regex_memory {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static void regex_destroy(void *constant)
{
    struct regex *regex = constant;
    pcre2_code_free(regex->code);
    free(regex);
}

static void memory_fini(void *memory)
{
    struct regex_memory *own = memory;
    pcre2_match_data_free(own->match);
    pcre2_match_context_free(own->context);
    pcre2_jit_stack_free(own->stack);
    *own = (struct regex_memory){.match = NULL};
}

static int memory_init(const void *constant, void *memory)
{
    const struct regex *regex = constant;
    struct regex_memory *own = memory;
    if (regex == NULL || regex->code == NULL) {
        return 0;
    }
    own->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    own->context = pcre2_match_context_create(NULL);
    own->stack = pcre2_jit_stack_create(STACK_BYTES_MIN, STACK_BYTES_MAX, NULL);
    if (own->match == NULL || own->context == NULL || own->stack == NULL) {
        memory_fini(own);
        return -ENOMEM;
    }
    pcre2_jit_stack_assign(own->context, NULL, own->stack);
    (void)pcre2_set_match_limit(own->context, MATCH_LIMIT);
    return 0;
}

/* Where a match lies. */
struct found {
    size_t from;
    size_t to;
};

/* Matches from a byte on.
 * returns  false without a match; a match that takes too much fails the row */
static bool match(struct kernel_run *run, uint32_t row, struct span text, size_t from,
                  struct found *out)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    const struct regex *regex = run->constant;
    const struct regex_memory *own = run->memory;
    if (regex->code == NULL) {
        return false;
    }
    const uint8_t *data = text.bytes == 0 ? (const uint8_t *)"" : text.data;
    const int result =
        pcre2_match(regex->code, data, text.bytes, from, 0, own->match, own->context);
    if (result < 0) {
        if (result != PCRE2_ERROR_NOMATCH) {
            kernel_fail(run, row, "a regular expression needs too many steps on this text (%d)",
                        result);
        }
        return false;
    }
    const PCRE2_SIZE *places = pcre2_get_ovector_pointer(own->match);
    *out = (struct found){.from = places[0], .to = places[1]};
    return out->from <= out->to && out->to <= text.bytes;
}

/* The byte where the next search begins: behind the match, one character on when it was empty. */
static size_t behind(struct span text, struct found found)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (found.to > found.from || found.to >= text.bytes) {
        return found.to + (found.to > found.from ? 0 : 1);
    }
    return found.to + text_step(text.data + found.to, text.bytes - found.to);
}

static void regexp(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        struct found found;
        run->out->i64[i] = run->in_count > 1 && run->in[1]->text[i].bytes == 0
                               ? 0
                               : match(run, i, run->in[0]->text[i], 0, &found);
    });
}

/* The pattern is anchored at both ends already. */
static void whole_match(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        struct found found;
        run->out->i64[i] = match(run, i, run->in[0]->text[i], 0, &found);
    });
}

/* IS_ALPHA and IS_DIGIT: NULL is FALSE. */
static void whole_match_or_false(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        struct found found;
        run->out->i64[i] =
            run->in[0]->null[i] == 0 && match(run, i, run->in[0]->text[i], 0, &found);
    });
}

static void extract(struct kernel_run *run)
{
    ASSERT(run->memory != NULL);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT(run->count <= PARCEL_ROWS_MAX);
    const struct regex_memory *own = run->memory;
    const int64_t *groups = run->in_count > 2 ? run->in[2]->i64 : NULL;
    KERNEL_ROWS(run, {
        struct found found;
        const struct span text = run->in[0]->text[i];
        const int64_t group = groups == NULL ? 0 : groups[i];
        if (!match(run, i, text, 0, &found) || group < 0 ||
            group >= pcre2_get_ovector_count(own->match)) {
            kernel_null(run, i);
            continue;
        }
        const PCRE2_SIZE *places = pcre2_get_ovector_pointer(own->match);
        const PCRE2_SIZE from = places[2 * group];
        const PCRE2_SIZE to = places[2 * group + 1];
        if (from == PCRE2_UNSET || from > to) {
            kernel_null(run, i);
        } else {
            run->out->text[i] = (struct span){.data = text.data + from, .bytes = to - from};
        }
    });
}

static void substr(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        struct found found;
        const struct span text = run->in[0]->text[i];
        if (match(run, i, text, 0, &found)) {
            run->out->text[i] =
                (struct span){.data = text.data + found.from, .bytes = found.to - found.from};
        } else {
            kernel_null(run, i);
        }
    });
}

static void count(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct regex *regex = run->constant;
    KERNEL_ROWS(run, {
        struct found found;
        const struct span text = run->in[0]->text[i];
        int64_t matches = 0;
        size_t from = 0;
        while (from <= text.bytes && match(run, i, text, from, &found)) {
            matches++;
            from = behind(text, found);
        }
        run->out->i64[i] = matches;
        if (regex->code == NULL) {
            kernel_null(run, i);
        }
    });
}

static void instr(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct regex *regex = run->constant;
    KERNEL_ROWS(run, {
        struct found found;
        const struct span text = run->in[0]->text[i];
        const bool there = match(run, i, text, 0, &found);
        const struct span before = {.data = text.data, .bytes = there ? found.from : 0};
        run->out->i64[i] = there ? (int64_t)text_count(before) + 1 : 0;
        if (regex->code == NULL) {
            kernel_null(run, i);
        }
    });
}

/* Copies a piece of text into the scratch; pieces of one row follow each other there. */
static bool put(struct kernel_run *run, const uint8_t *data, size_t bytes)
{
    ASSERT_SLOW(run->out != NULL);
    struct span copied;
    return bytes == 0 || text_copy(run, data, bytes, &copied);
}

static bool replace_row(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const struct span text = run->in[0]->text[row];
    const struct span by = run->in[2]->text[row];
    const uint8_t *start = run->scratch->data + run->scratch->used;
    size_t copied = 0;
    size_t from = 0;
    struct found found;
    while (from <= text.bytes && match(run, row, text, from, &found)) {
        if (!put(run, text.data + copied, found.from - copied) || !put(run, by.data, by.bytes)) {
            return false;
        }
        copied = found.to;
        from = behind(text, found);
    }
    if (!put(run, text.data + copied, text.bytes - copied)) {
        return false;
    }
    const uint8_t *end = run->scratch->data + run->scratch->used;
    run->out->text[row] = (struct span){.data = start, .bytes = (size_t)(end - start)};
    return true;
}

static void replace(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->out != NULL);
    const struct regex *regex = run->constant;
    KERNEL_ROWS(run, {
        if (regex->code == NULL) {
            kernel_null(run, i);
        } else if (!replace_row(run, i)) {
            return;
        }
    });
}

static pcre2_code *compile(const char *text, size_t bytes, bool whole)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        return NULL;
    }
    /* Java's line ends: CR, LF, both, NEL, and the two separators. */
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_ANY);
    const uint32_t options =
        PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
    pcre2_code *out = pcre2_compile((PCRE2_SPTR)text, bytes, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (out != NULL && pcre2_jit_compile(out, PCRE2_JIT_COMPLETE) != 0) {
        /* Without the JIT a match would take memory from the heap. */
        pcre2_code_free(out);
        out = NULL;
    }
    return out;
}

static struct span literal_of(const struct expr *call, uint32_t index)
{
    ASSERT_SLOW(call->kind <= EXPR_CALL);
    return call->arguments[index]->literal.text;
}

/* Writes the pattern of a call for PCRE2. */
static size_t rewrite(const struct expr *expr, char *into, const char **why)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    ASSERT_SLOW(why != NULL);
    *why = NULL;
    if (expr->function == EXPR_IS_ALPHA || expr->function == EXPR_IS_DIGIT) {
        const char *class = expr->function == EXPR_IS_ALPHA ? "\\p{L}+" : "\\p{Nd}+";
        memcpy(into, class, strlen(class));
        return strlen(class);
    }
    if (expr->function != EXPR_SIMILAR) {
        return regex_from_java(literal_of(expr, 1), into, why);
    }
    uint8_t escape = 0;
    if (expr->argument_count > 2) {
        const struct span text = literal_of(expr, 2);
        if (text.bytes != 1) {
            *why = "invalid escape character";
            return 0;
        }
        escape = text.data[0];
    }
    return regex_from_similar(literal_of(expr, 1), escape, into, why);
}

static bool patterns_are_literals(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    if (expr->function == EXPR_IS_ALPHA || expr->function == EXPR_IS_DIGIT) {
        return true;
    }
    const bool escape = expr->function == EXPR_SIMILAR && expr->argument_count > 2;
    return kernel_is_literal(expr, 1) && (!escape || kernel_is_literal(expr, 2));
}

static int prepare(const struct expr *expr, bool whole, struct kernel_choice *out,
                   struct error *error)
{
    ASSERT(out != NULL);
    char *text = malloc(REGEX_TEXT_MAX);
    struct regex *regex = calloc(1, sizeof(*regex));
    int result = 0;
    if (text == NULL || regex == NULL) {
        result = error_set(error, -ENOMEM, "out of memory for a pattern");
    } else {
        const char *why = NULL;
        const size_t bytes = rewrite(expr, text, &why);
        if (why != NULL) {
            result = error_set(error, -ENOTSUP, "%s: %s", expr_function_name(expr->function), why);
        } else {
            regex->code = compile(text, bytes, whole);
        }
    }
    free(text);
    if (result != 0) {
        free(regex);
        return result;
    }
    out->constant = regex;
    out->constant_destroy = regex_destroy;
    out->memory_bytes = sizeof(struct regex_memory);
    out->memory_init = memory_init;
    out->memory_fini = memory_fini;
    return 0;
}

int regex_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_REGEXP] = regexp,
        [EXPR_SIMILAR] = whole_match,
        [EXPR_REGEXP_EXTRACT] = extract,
        [EXPR_REGEXP_REPLACE] = replace,
        [EXPR_REGEXP_COUNT] = count,
        [EXPR_REGEXP_INSTR] = instr,
        [EXPR_REGEXP_SUBSTR] = substr,
        [EXPR_IS_ALPHA] = whole_match_or_false,
        [EXPR_IS_DIGIT] = whole_match_or_false,
    };
    const struct expr *expr = call->expr;
    kernel_function *function = kernels[expr->function];
    if (function == NULL) {
        return -ENOENT;
    }
    if (!patterns_are_literals(expr)) {
        return error_set(error, -ENOTSUP, "the pattern of %s must be a constant",
                         expr_function_name(expr->function));
    }
    const bool whole = function == whole_match || function == whole_match_or_false;
    *out = (struct kernel_choice){.function = function,
                                  .mode = function == whole_match_or_false ? KERNEL_RAW
                                                                           : KERNEL_STRICT};
    return prepare(expr, whole, out, error);
}
