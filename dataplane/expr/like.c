/* SPDX-License-Identifier: Apache-2.0 */
/* LIKE by a walk with one point of return, the last %: no pattern takes more than text times
 * pattern steps. _ takes one character but no line end, % takes anything; there is no escape
 * character unless one is given. Patterns that only have % at their ends are told at once. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"
#include "dataplane/expr/text_order.h"

enum like_shape {
    LIKE_GENERAL = 0,
    LIKE_EQUALS,
    LIKE_STARTS,
    LIKE_ENDS,
    LIKE_CONTAINS,
};

/* A constant pattern. */
struct like {
    enum like_shape shape;
    struct span core; /* without the % at the ends */
};

/* Steps over one character that _ may take.
 * returns  its bytes, 0 for a line end */
static size_t step_of(const uint8_t *at, size_t bytes)
{
    size_t step;
    const uint32_t character = text_decode(at, bytes, &step);
    const bool line_end = character == '\n' || character == '\r' || character == 0x85 ||
                          character == 0x2028 || character == 0x2029;
    return line_end ? 0 : step;
}

/* A place in the pattern and one in the text. */
struct walk {
    size_t pattern;
    size_t text;
};

/* Takes one pattern element other than %.
 * returns  whether it was there; both places then moved */
static bool take(struct span text, struct span pattern, int escape, struct walk *at)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    if (at->text == text.bytes) {
        return false;
    }
    const uint8_t c = pattern.data[at->pattern];
    if (c == '_' && c != escape) {
        const size_t step = step_of(text.data + at->text, text.bytes - at->text);
        at->pattern++;
        at->text += step;
        return step != 0;
    }
    const size_t skip = c == escape && at->pattern + 1 < pattern.bytes ? 1 : 0;
    if (pattern.data[at->pattern + skip] != text.data[at->text]) {
        return false;
    }
    at->pattern += skip + 1;
    at->text++;
    return true;
}

static bool matches(struct span text, struct span pattern, int escape)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    struct walk at = {.pattern = 0, .text = 0};
    struct walk back = {.pattern = SIZE_MAX, .text = 0};
    for (;;) {
        const bool more = at.pattern < pattern.bytes;
        if (more && pattern.data[at.pattern] == '%' && escape != '%') {
            at.pattern++;
            back = at;
            continue;
        }
        if (!more && at.text == text.bytes) {
            return true;
        }
        if (more && take(text, pattern, escape, &at)) {
            continue;
        }
        if (back.pattern == SIZE_MAX || back.text >= text.bytes) {
            return false;
        }
        back.text += text_step(text.data + back.text, text.bytes - back.text);
        at = back;
    }
}

static bool shape_holds(const struct like *like, struct span text)
{
    ASSERT_SLOW(like != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    const struct span core = like->core;
    if (core.bytes > text.bytes) {
        return false;
    }
    const struct span start = {.data = text.data, .bytes = core.bytes};
    const struct span end = {.data = text.data + text.bytes - core.bytes, .bytes = core.bytes};
    switch (like->shape) {
    case LIKE_EQUALS:
        return text_equal(text, core);
    case LIKE_STARTS:
        return text_equal(start, core);
    case LIKE_ENDS:
        return text_equal(end, core);
    default:
        return core.bytes == 0 || memmem(text.data, text.bytes, core.data, core.bytes) != NULL;
    }
}

static void like_shaped(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    const struct like *like = run->constant;
    KERNEL_ROWS(run, { run->out->i64[i] = shape_holds(like, run->in[0]->text[i]); });
}

static void like_general(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        int escape = -1;
        if (run->in_count > 2) {
            const struct span text = run->in[2]->text[i];
            escape = text.bytes == 1 ? text.data[0] : -1;
        }
        run->out->i64[i] = matches(run->in[0]->text[i], run->in[1]->text[i], escape);
    });
}

static struct like find_shape(struct span pattern)
{
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    struct like like = {.shape = LIKE_GENERAL, .core = pattern};
    const bool first = pattern.bytes > 0 && pattern.data[0] == '%';
    if (first) {
        like.core.data++;
        like.core.bytes--;
    }
    const bool last = like.core.bytes > 0 && like.core.data[like.core.bytes - 1] == '%';
    like.core.bytes -= last ? 1 : 0;
    for (size_t i = 0; i < like.core.bytes; i++) {
        if (like.core.data[i] == '%' || like.core.data[i] == '_') {
            return (struct like){.shape = LIKE_GENERAL};
        }
    }
    like.shape = first ? (last || like.core.bytes == 0 ? LIKE_CONTAINS : LIKE_ENDS)
                       : (last ? LIKE_STARTS : LIKE_EQUALS);
    return like;
}

/* An escape character protects %, _ and itself only. */
static bool escapes_are_good(struct span pattern, uint8_t escape)
{
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    for (size_t i = 0; i < pattern.bytes; i++) {
        if (pattern.data[i] != escape) {
            continue;
        }
        if (++i == pattern.bytes ||
            (pattern.data[i] != '%' && pattern.data[i] != '_' && pattern.data[i] != escape)) {
            return false;
        }
    }
    return true;
}

int like_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    if (expr->function != EXPR_LIKE) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = like_general, .mode = KERNEL_STRICT};
    if (expr->argument_count > 2) {
        if (!kernel_is_literal(expr, 2) || expr->arguments[2]->literal.text.bytes != 1) {
            return error_set(error, -EINVAL, "LIKE: the escape must be one constant character");
        }
        const uint8_t escape = expr->arguments[2]->literal.text.data[0];
        if (kernel_is_literal(expr, 1) &&
            !escapes_are_good(expr->arguments[1]->literal.text, escape)) {
            return error_set(error, -EINVAL, "LIKE: invalid escape sequence");
        }
        return 0;
    }
    if (!kernel_is_literal(expr, 1)) {
        return 0;
    }
    const struct like like = find_shape(expr->arguments[1]->literal.text);
    if (like.shape == LIKE_GENERAL) {
        return 0;
    }
    struct like *constant = malloc(sizeof(*constant));
    if (constant == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a pattern");
    }
    *constant = like;
    out->constant = constant;
    out->constant_destroy = free;
    out->function = like_shaped;
    return 0;
}
