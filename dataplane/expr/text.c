/* SPDX-License-Identifier: Apache-2.0 */
/* Text kernels that take parts of their arguments or look at them: most answers are spans into the
 * arguments and copy nothing. Positions count characters (code points) from 1. */
#include <errno.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"
#include "dataplane/expr/text_order.h"

#define ABSENT SIZE_MAX

static struct span empty(void)
{
    return (struct span){.data = (const uint8_t *)"", .bytes = 0};
}

static struct span part(struct span text, size_t from, size_t to)
{
    ASSERT(from <= to && to <= text.bytes);
    return (struct span){.data = text.data + from, .bytes = to - from};
}

/* Finds a text in another from a byte on. */
static size_t find(struct span text, struct span wanted, size_t from)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(wanted.data != NULL || wanted.bytes == 0);
    if (wanted.bytes == 0) {
        return from <= text.bytes ? from : ABSENT;
    }
    if (from >= text.bytes) {
        return ABSENT;
    }
    const uint8_t *at = memmem(text.data + from, text.bytes - from, wanted.data, wanted.bytes);
    return at == NULL ? ABSENT : (size_t)(at - text.data);
}

static void char_length(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { run->out->i64[i] = text_count(run->in[0]->text[i]); });
}

static void concat(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT(run->count <= PARCEL_ROWS_MAX);
    KERNEL_ROWS(run, {
        size_t bytes = 0;
        for (uint32_t argument = 0; argument < run->in_count; argument++) {
            bytes += run->in[argument]->text[i].bytes;
        }
        uint8_t *into = kernel_text(run, bytes);
        if (into == NULL) {
            return;
        }
        run->out->text[i] = (struct span){.data = into, .bytes = bytes};
        for (uint32_t argument = 0; argument < run->in_count; argument++) {
            const struct span piece = run->in[argument]->text[i];
            if (piece.bytes != 0) {
                memcpy(into, piece.data, piece.bytes);
                into += piece.bytes;
            }
        }
    });
}

static uint8_t *append(uint8_t *into, struct span piece)
{
    ASSERT_SLOW(piece.data != NULL || piece.bytes == 0);
    if (piece.bytes != 0) {
        memcpy(into, piece.data, piece.bytes);
    }
    return into + piece.bytes;
}

/* Joins what is not NULL; a NULL separator makes NULL. */
static void join_row(struct kernel_run *run, uint32_t i)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span separator = run->in[0]->text[i];
    size_t bytes = 0;
    for (uint32_t argument = 1; argument < run->in_count; argument++) {
        if (run->in[argument]->null[i] == 0) {
            bytes += run->in[argument]->text[i].bytes + separator.bytes;
        }
    }
    uint8_t *into = kernel_text(run, bytes);
    if (into == NULL) {
        return;
    }
    uint8_t *at = into;
    bool first = true;
    for (uint32_t argument = 1; argument < run->in_count; argument++) {
        if (run->in[argument]->null[i] != 0) {
            continue;
        }
        at = first ? at : append(at, separator);
        at = append(at, run->in[argument]->text[i]);
        first = false;
    }
    run->out->text[i] = (struct span){.data = into, .bytes = (size_t)(at - into)};
}

static void concat_ws(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (run->in[0]->null[i] != 0) {
            kernel_null(run, i);
        } else {
            join_row(run, i);
        }
    });
}

static struct span substring_row(struct span text, int64_t position, int64_t length)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (position == 1) {
        return part(text, 0, text_offset(text, (uint64_t)length));
    }
    int64_t start = position > 0 ? position - 1 : 0;
    if (position < 0) {
        start = (int64_t)text_count(text) + position;
        if (start < 0) {
            return empty();
        }
    }
    const size_t from = text_offset(text, (uint64_t)start);
    struct span rest = part(text, from, text.bytes);
    rest.bytes = text_offset(rest, (uint64_t)length);
    return rest;
}

static void substring(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT(run->count <= PARCEL_ROWS_MAX);
    const int64_t *lengths = run->in_count > 2 ? run->in[2]->i64 : NULL;
    KERNEL_ROWS(run, {
        const int64_t length = lengths == NULL ? INT32_MAX : lengths[i];
        if (length < 0) {
            kernel_null(run, i);
        } else {
            run->out->text[i] = substring_row(run->in[0]->text[i], run->in[1]->i64[i], length);
        }
    });
}

static void left(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const int64_t count = run->in[1]->i64[i];
        run->out->text[i] =
            count <= 0 ? empty() : part(text, 0, text_offset(text, (uint64_t)count));
    });
}

static void right(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const int64_t count = run->in[1]->i64[i];
        const int64_t all = text_count(text);
        const size_t from = count >= all ? 0 : text_offset(text, (uint64_t)(all - count));
        run->out->text[i] = count <= 0 ? empty() : part(text, from, text.bytes);
    });
}

/* Tells whether the character at the start of `at` is one of a set. */
static bool is_one_of(const uint8_t *at, size_t step, struct span set)
{
    ASSERT_SLOW(set.data != NULL || set.bytes == 0);
    for (size_t k = 0; k < set.bytes;) {
        const size_t next = text_step(set.data + k, set.bytes - k);
        if (next == step && memcmp(set.data + k, at, step) == 0) {
            return true;
        }
        k += next;
    }
    return false;
}

static struct span trim_start(struct span text, struct span set)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(set.data != NULL || set.bytes == 0);
    while (text.bytes != 0) {
        const size_t step = text_step(text.data, text.bytes);
        if (!is_one_of(text.data, step, set)) {
            break;
        }
        text.data += step;
        text.bytes -= step;
    }
    return text;
}

static struct span trim_end(struct span text, struct span set)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(set.data != NULL || set.bytes == 0);
    while (text.bytes != 0) {
        size_t step = 1;
        while (step < text.bytes && step < 4 && text_is_rest(text.data[text.bytes - step])) {
            step++;
        }
        if (!is_one_of(text.data + text.bytes - step, step, set)) {
            break;
        }
        text.bytes -= step;
    }
    return text;
}

static void trim(struct kernel_run *run)
{
    ASSERT(run->in_count > 2);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        /* BOTH, LEADING or TRAILING: the first letter tells. */
        const uint8_t side = run->in[0]->text[i].data[0];
        const struct span set = run->in[1]->text[i];
        struct span text = run->in[2]->text[i];
        text = side == 'T' ? text : trim_start(text, set);
        text = side == 'L' ? text : trim_end(text, set);
        run->out->text[i] = text;
    });
}

/* Characters before a byte, plus one; 0 for an absent text. */
static int64_t position_of(struct span text, size_t at)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    return at == ABSENT ? 0 : (int64_t)text_count(part(text, 0, at)) + 1;
}

static void position(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[1]->text[i];
        run->out->i64[i] = position_of(text, find(text, run->in[0]->text[i], 0));
    });
}

static void locate(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const int64_t *starts = run->in_count > 2 ? run->in[2]->i64 : NULL;
    KERNEL_ROWS(run, {
        const struct span text = run->in[1]->text[i];
        const struct span wanted = run->in[0]->text[i];
        const int64_t start = starts == NULL || starts[i] < 1 ? 1 : starts[i];
        const size_t from = text_offset(text, (uint64_t)(start - 1));
        run->out->i64[i] = wanted.bytes == 0 ? 1 : position_of(text, find(text, wanted, from));
    });
}

static void starts_with(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const struct span start = run->in[1]->text[i];
        run->out->i64[i] =
            start.bytes <= text.bytes && text_equal(part(text, 0, start.bytes), start);
    });
}

static void ends_with(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const struct span end = run->in[1]->text[i];
        run->out->i64[i] = end.bytes <= text.bytes &&
                           text_equal(part(text, text.bytes - end.bytes, text.bytes), end);
    });
}

static void ascii(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        run->out->i64[i] = text.bytes == 0 ? 0 : (int8_t)text.data[0];
    });
}

static void chr(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        const int64_t code = run->in[0]->i64[i];
        uint8_t character[4];
        const size_t bytes = code < 0 ? 0 : text_encode((uint32_t)(code & 0xff), character);
        if (!text_copy(run, character, bytes, &run->out->text[i])) {
            return;
        }
    });
}

static void elt(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const int64_t which = run->in[0]->null[i] != 0 ? 0 : run->in[0]->i64[i];
        if (which < 1 || which >= run->in_count || run->in[which]->null[i] != 0) {
            kernel_null(run, i);
        } else {
            run->out->text[i] = run->in[which]->text[i];
        }
    });
}

/* The index-th part of a text cut at each separator.
 * returns  false when there are fewer parts */
static bool split_part(struct span text, struct span separator, int64_t index, struct span *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(separator.data != NULL || separator.bytes == 0);
    size_t from = 0;
    for (;;) {
        const size_t at = find(text, separator, from);
        if (index == 0) {
            *out = part(text, from, at == ABSENT ? text.bytes : at);
            return true;
        }
        if (at == ABSENT) {
            return false;
        }
        from = at + separator.bytes;
        index--;
    }
}

static void split_index(struct kernel_run *run)
{
    ASSERT(run->in_count > 2);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        struct span separator = run->in[1]->text[i];
        const int64_t index = run->in[2]->i64[i];
        if (separator.bytes == 0) {
            separator = (struct span){.data = (const uint8_t *)" ", .bytes = 1};
        }
        if (index < 0 || text.bytes == 0 ||
            !split_part(text, separator, index, &run->out->text[i])) {
            kernel_null(run, i);
        }
    });
}

int text_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_CHAR_LENGTH] = char_length,
        [EXPR_CONCAT] = concat,
        [EXPR_CONCAT_WS] = concat_ws,
        [EXPR_SUBSTRING] = substring,
        [EXPR_LEFT] = left,
        [EXPR_RIGHT] = right,
        [EXPR_TRIM] = trim,
        [EXPR_POSITION] = position,
        [EXPR_LOCATE] = locate,
        [EXPR_STARTSWITH] = starts_with,
        [EXPR_ENDSWITH] = ends_with,
        [EXPR_ASCII] = ascii,
        [EXPR_CHR] = chr,
        [EXPR_ELT] = elt,
        [EXPR_SPLIT_INDEX] = split_index,
    };
    const enum expr_function function = call->expr->function;
    if (kernels[function] == NULL) {
        return -ENOENT;
    }
    if (function == EXPR_TRIM && !kernel_is_literal(call->expr, 0)) {
        return -ENOENT;
    }
    const bool raw = function == EXPR_CONCAT_WS || function == EXPR_ELT;
    *out = (struct kernel_choice){.function = kernels[function],
                                  .mode = raw ? KERNEL_RAW : KERNEL_STRICT};
    return 0;
}
