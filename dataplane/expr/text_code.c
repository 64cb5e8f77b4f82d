/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of text and numbers: BIN, HEX, UNHEX, base64, URL encoding, and what reads as a
 * decimal. Bad codes are NULL, but bad base64 fails the job. */
#include <errno.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"
#include "dataplane/expr/text_number.h"

static const char capital_digits[] = "0123456789ABCDEF";
static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Digits of an unsigned number in base 2 or 16, without leading zeros. */
static void put_digits(struct kernel_run *run, uint32_t row, uint64_t value, uint32_t bits)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    uint8_t text[64];
    uint32_t at = sizeof(text);
    do {
        text[--at] = (uint8_t)capital_digits[value & ((UINT64_C(1) << bits) - 1)];
        value >>= bits;
    } while (value != 0);
    (void)text_copy(run, text + at, sizeof(text) - at, &run->out->text[row]);
}

static void bin(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { put_digits(run, i, (uint64_t)run->in[0]->i64[i], 1); });
}

static void hex_number(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { put_digits(run, i, (uint64_t)run->in[0]->i64[i], 4); });
}

static void hex_text(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        uint8_t *into = kernel_text(run, text.bytes * 2);
        if (into == NULL) {
            return;
        }
        for (size_t at = 0; at < text.bytes; at++) {
            into[2 * at] = (uint8_t)capital_digits[text.data[at] >> 4];
            into[2 * at + 1] = (uint8_t)capital_digits[text.data[at] & 15];
        }
        run->out->text[i] = (struct span){.data = into, .bytes = text.bytes * 2};
    });
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const uint8_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* An odd digit stands alone at the start. */
static bool read_hex(struct span text, uint8_t *into)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t at = 0;
    if (text.bytes % 2 != 0) {
        const int only = hex_value(text.data[at++]);
        if (only < 0) {
            return false;
        }
        *into++ = (uint8_t)only;
    }
    for (; at < text.bytes; at += 2) {
        const int high = hex_value(text.data[at]);
        const int low = hex_value(text.data[at + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        *into++ = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void unhex(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const size_t bytes = (text.bytes + 1) / 2;
        uint8_t *into = kernel_text(run, bytes);
        if (into == NULL) {
            return;
        }
        if (read_hex(text, into)) {
            run->out->text[i] = (struct span){.data = into, .bytes = bytes};
        } else {
            kernel_null(run, i);
        }
    });
}

static void to_base64(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const size_t bytes = (text.bytes + 2) / 3 * 4;
        uint8_t *into = kernel_text(run, bytes);
        if (into == NULL) {
            return;
        }
        run->out->text[i] = (struct span){.data = into, .bytes = bytes};
        for (size_t at = 0; at < text.bytes; at += 3) {
            const size_t left = text.bytes - at;
            const uint32_t group = (uint32_t)text.data[at] << 16 |
                                   (left > 1 ? (uint32_t)text.data[at + 1] << 8 : 0) |
                                   (left > 2 ? text.data[at + 2] : 0);
            *into++ = (uint8_t)base64_digits[group >> 18];
            *into++ = (uint8_t)base64_digits[group >> 12 & 63];
            *into++ = left > 1 ? (uint8_t)base64_digits[group >> 6 & 63] : '=';
            *into++ = left > 2 ? (uint8_t)base64_digits[group & 63] : '=';
        }
    });
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* returns  bytes written, or SIZE_MAX when the text is no base64 */
static size_t read_base64(struct span text, uint8_t *into)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    while (text.bytes > 0 && text.data[text.bytes - 1] == '=') {
        text.bytes--;
    }
    uint32_t group = 0;
    uint32_t bits = 0;
    size_t bytes = 0;
    for (size_t at = 0; at < text.bytes; at++) {
        const int value = base64_value(text.data[at]);
        if (value < 0) {
            return SIZE_MAX;
        }
        group = group << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            into[bytes++] = (uint8_t)(group >> bits);
        }
    }
    return text.bytes % 4 == 1 ? SIZE_MAX : bytes;
}

static void from_base64(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        uint8_t *into = kernel_text(run, text.bytes);
        if (into == NULL) {
            return;
        }
        const size_t bytes = read_base64(text, into);
        if (bytes == SIZE_MAX) {
            kernel_fail(run, i, "Illegal base64 text");
            return;
        }
        kernel_text_trim(run, into, bytes);
        run->out->text[i] = (struct span){.data = into, .bytes = bytes};
    });
}

static bool url_plain(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '*' || c == '_';
}

static void url_encode(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT(run->count <= PARCEL_ROWS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        uint8_t *into = kernel_text(run, text.bytes * 3);
        if (into == NULL) {
            return;
        }
        size_t bytes = 0;
        for (size_t at = 0; at < text.bytes; at++) {
            const uint8_t c = text.data[at];
            if (url_plain(c) || c == ' ') {
                into[bytes++] = c == ' ' ? '+' : c;
                continue;
            }
            into[bytes++] = '%';
            into[bytes++] = (uint8_t)capital_digits[c >> 4];
            into[bytes++] = (uint8_t)capital_digits[c & 15];
        }
        kernel_text_trim(run, into, bytes);
        run->out->text[i] = (struct span){.data = into, .bytes = bytes};
    });
}

/* returns  bytes written, or SIZE_MAX at a broken escape */
static size_t read_url(struct span text, uint8_t *into)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t bytes = 0;
    for (size_t at = 0; at < text.bytes; at++) {
        const uint8_t c = text.data[at];
        if (c != '%') {
            into[bytes++] = c == '+' ? ' ' : c;
            continue;
        }
        if (text.bytes - at < 3) {
            return SIZE_MAX;
        }
        const int high = hex_value(text.data[at + 1]);
        const int low = hex_value(text.data[at + 2]);
        if (high < 0 || low < 0) {
            return SIZE_MAX;
        }
        into[bytes++] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    return bytes;
}

static void url_decode(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        uint8_t *into = kernel_text(run, text.bytes);
        if (into == NULL) {
            return;
        }
        const size_t bytes = read_url(text, into);
        if (bytes == SIZE_MAX) {
            kernel_null(run, i);
        } else {
            kernel_text_trim(run, into, bytes);
            run->out->text[i] = (struct span){.data = into, .bytes = bytes};
        }
    });
}

/* Text that reads as a decimal; numbers are, NULL is not. */
static void is_decimal(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    const bool text = type_is_text(&in->type);
    KERNEL_ROWS(run, {
        __int128 value;
        run->out->i64[i] =
            in->null[i] == 0 && (!text || decimal_parse(in->text[i], TYPE_DECIMAL_PRECISION_MAX, 0,
                                                        &value) != DECIMAL_BAD);
    });
}

int text_code_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_BIN] = bin,
        [EXPR_HEX] = hex_text,
        [EXPR_UNHEX] = unhex,
        [EXPR_TO_BASE64] = to_base64,
        [EXPR_FROM_BASE64] = from_base64,
        [EXPR_URL_ENCODE] = url_encode,
        [EXPR_URL_DECODE] = url_decode,
    };
    const struct expr *expr = call->expr;
    kernel_function *function = kernels[expr->function];
    if (function == hex_text && type_is_integer(&expr->arguments[0]->type)) {
        function = hex_number;
    }
    if (expr->function == EXPR_IS_DECIMAL) {
        *out = (struct kernel_choice){.function = is_decimal, .mode = KERNEL_RAW};
        return 0;
    }
    if (function == NULL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = function, .mode = KERNEL_STRICT};
    return 0;
}
