/* SPDX-License-Identifier: Apache-2.0 */
/* CAST from text to numbers and truth values, by Flink's rules and not by a grammar common to all:
 * whole numbers drop blanks, take a sign and cut a fraction; decimals take exponents; floats take
 * Java's grammar. */
#include "dataplane/expr/cast_internal.h"
#include "dataplane/expr/decimal_internal.h"
#include "dataplane/expr/text_number.h"

#define SHOWN_BYTES      80 /* of a bad text in a reason */
#define SHIFT_PLACES_MAX 18

static struct span trim(struct span text, bool controls)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    while (text.bytes > 0 &&
           (text.data[0] == ' ' || (controls && (text.data[0] == '\n' || text.data[0] == '\t')))) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0) {
        const uint8_t last = text.data[text.bytes - 1];
        if (last != ' ' && !(controls && (last == '\n' || last == '\t'))) {
            break;
        }
        text.bytes--;
    }
    return text;
}

static void bad_number(struct kernel_run *run, uint32_t row, struct span text, const char *why)
{
    ASSERT_SLOW(run->out != NULL);
    const int shown = text.bytes > SHOWN_BYTES ? SHOWN_BYTES : (int)text.bytes;
    cast_bad(run, row, "For input string: '%.*s'. %s", shown, (const char *)text.data, why);
}

/* Reads digits up to a point, then checks the fraction.
 * returns  NULL, or why the text is bad */
static const char *read_whole(struct span text, int64_t min, int64_t max, int64_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (text.bytes == 0) {
        return "Input is empty.";
    }
    const bool negative = text.data[0] == '-';
    size_t at = negative || text.data[0] == '+' ? 1 : 0;
    if (at == text.bytes) {
        return "Input has only positive or negative symbol.";
    }
    __int128 value = 0;
    for (; at < text.bytes && text.data[at] != '.'; at++) {
        if (text.data[at] < '0' || text.data[at] > '9') {
            return "Invalid character found.";
        }
        value = value * 10 + (text.data[at] - '0');
        if (value > (__int128)INT64_MAX + 1) {
            return "Overflow.";
        }
    }
    for (at++; at < text.bytes; at++) {
        if (text.data[at] < '0' || text.data[at] > '9') {
            return "Invalid character found.";
        }
    }
    value = negative ? -value : value;
    if (value < min || value > max) {
        return "Overflow.";
    }
    *out = (int64_t)value;
    return NULL;
}

static void to_whole(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    static const int64_t limits[][2] = {
        [TYPE_TINYINT] = {INT8_MIN, INT8_MAX},
        [TYPE_SMALLINT] = {INT16_MIN, INT16_MAX},
        [TYPE_INT] = {INT32_MIN, INT32_MAX},
        [TYPE_BIGINT] = {INT64_MIN, INT64_MAX},
    };
    const int64_t *limit = limits[run->out->type.kind];
    KERNEL_ROWS(run, {
        const struct span text = trim(run->in[0]->text[i], false);
        const char *why = read_whole(text, limit[0], limit[1], &run->out->i64[i]);
        if (why != NULL) {
            bad_number(run, i, text, why);
        }
    });
}

static void to_f64(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (!double_parse(run->in[0]->text[i], &run->out->f64[i])) {
            bad_number(run, i, run->in[0]->text[i], "");
        }
    });
}

static void to_f32(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (!float_parse(run->in[0]->text[i], &run->out->f32[i])) {
            bad_number(run, i, run->in[0]->text[i], "");
        }
    });
}

/* Digits behind the point, less the exponent; of a text that decimal_parse takes. */
static int64_t places_of(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    int64_t places = 0;
    bool fraction = false;
    for (size_t i = 0; i < text.bytes; i++) {
        const uint8_t c = text.data[i];
        if (c == 'e' || c == 'E') {
            int64_t exponent = 0;
            const struct span rest = {.data = text.data + i + 1, .bytes = text.bytes - i - 1};
            (void)read_whole(rest, INT32_MIN, INT32_MAX, &exponent);
            return places - exponent;
        }
        places += fraction ? 1 : 0;
        fraction = fraction || c == '.';
    }
    return places;
}

static bool is_sign(uint8_t c)
{
    return c == '+' || c == '-';
}

/* Text of up to 18 bytes for a narrow type goes through Flink's own reader: it does not look at the
 * last character when that is no digit, so that '1x' is 1 and 'x' is 0, and cannot shift by more
 * than 18 places. */
static enum decimal_verdict read_narrow(struct span text, const struct type *type, __int128 *out)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    enum decimal_verdict verdict = decimal_parse(text, type->precision, type->scale, out);
    if (verdict == DECIMAL_BAD && text.bytes > 0) {
        const uint8_t last = text.data[text.bytes - 1];
        text.bytes--;
        if (text.bytes == 0 ? is_sign(last) : last >= '0' && last <= '9') {
            return DECIMAL_BAD;
        }
        if (text.bytes == 0 || (text.bytes == 1 && is_sign(text.data[0]))) {
            *out = 0;
            return DECIMAL_OK;
        }
        verdict = decimal_parse(text, type->precision, type->scale, out);
    }
    if (verdict == DECIMAL_OK && places_of(text) - type->scale > SHIFT_PLACES_MAX) {
        return DECIMAL_OVERFLOW;
    }
    return verdict;
}

static void to_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct type *type = &run->out->type;
    const bool narrow = type->precision <= TYPE_DECIMAL_NARROW_MAX;
    KERNEL_ROWS(run, {
        const struct span whole = run->in[0]->text[i];
        const struct span text = trim(whole, true);
        __int128 value = 0;
        const enum decimal_verdict verdict =
            narrow && whole.bytes <= TYPE_DECIMAL_NARROW_MAX
                ? read_narrow(text, type, &value)
                : decimal_parse(text, type->precision, type->scale, &value);
        if (verdict != DECIMAL_OK) {
            bad_number(run, i, text,
                       verdict == DECIMAL_BAD ? "Invalid character found." : "Overflow.");
        }
        decimal_store(run->out, i, value);
    });
}

static bool equals_word(struct span text, const char *word)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (text.bytes != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < text.bytes; i++) {
        const uint8_t c = text.data[i];
        const uint8_t lower = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
        if (lower != (uint8_t)word[i]) {
            return false;
        }
    }
    return true;
}

static void to_boolean(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    static const char *const words[2][5] = {{"f", "false", "n", "no", "0"},
                                            {"t", "true", "y", "yes", "1"}};
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        int64_t found = -1;
        for (uint32_t word = 0; word < 10 && found < 0; word++) {
            found = equals_word(text, words[word / 5][word % 5]) ? (int64_t)(word / 5) : -1;
        }
        if (found < 0) {
            const int shown = text.bytes > SHOWN_BYTES ? SHOWN_BYTES : (int)text.bytes;
            cast_bad(run, i, "Cannot parse '%.*s' as BOOLEAN.", shown, (const char *)text.data);
        }
        run->out->i64[i] = found > 0;
    });
}

void cast_from_text_find(const struct kernel_call *call, struct kernel_choice *out)
{
    ASSERT_SLOW(call->expr->kind == EXPR_CALL);
    ASSERT_SLOW(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    const struct type *from = &call->expr->arguments[0]->type;
    const struct type *to = &call->expr->type;
    *out = (struct kernel_choice){.mode = KERNEL_STRICT};
    if (from->kind != TYPE_CHAR && from->kind != TYPE_VARCHAR) {
        return;
    }
    switch (to->kind) {
    case TYPE_BOOLEAN:
        out->function = to_boolean;
        break;
    case TYPE_FLOAT:
        out->function = to_f32;
        break;
    case TYPE_DOUBLE:
        out->function = to_f64;
        break;
    case TYPE_DECIMAL:
        out->function = to_decimal;
        break;
    default:
        out->function = type_is_integer(to) ? to_whole : NULL;
        break;
    }
    /* The constant is a flag of this file's and needs no freeing. */
    out->constant = (void *)(uintptr_t)cast_mode(call->expr->function);
}
