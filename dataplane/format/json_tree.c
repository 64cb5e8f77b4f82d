/* SPDX-License-Identifier: Apache-2.0 */
/* An object or array that a STRING column takes whole: Jackson reads it into a tree and prints the
 * tree, so blanks go, escapes are those of the writer, whole numbers lose a minus before zero,
 * fractions are Java doubles (decimals without trailing zeros when the table has a DECIMAL), and
 * of members of one name the last value stands in the first's place.
 *
 * Looking for such twins reads an object several times. It is bounded per value; past the bound,
 * which takes a hostile document, they all stay. */
#include "dataplane/expr/text_number.h"
#include "dataplane/format/json_internal.h"

#include <math.h>

#define TWIN_BYTES_MAX (UINT32_C(1) << 20) /* read in search of twins, per value */

struct printer {
    uint8_t *into;
    size_t capacity;
    size_t used; /* counts on past capacity */
    bool exact_decimals;
    size_t twin_bytes;
};

/* Appends what fits; the rest is only counted. */
static void put(struct printer *printer, const void *bytes, size_t count)
{
    ASSERT_SLOW(bytes != NULL || count == 0);
    if (printer->used + count <= printer->capacity) {
        memcpy(printer->into + printer->used, bytes, count);
    }
    printer->used += count;
}

static void put_byte(struct printer *printer, uint8_t byte)
{
    put(printer, &byte, 1);
}

static void put_control(struct printer *printer, uint8_t byte)
{
    ASSERT_SLOW(byte < ' ');
    static const char SHORT[] = "btn\0fr"; /* 0x08 to 0x0d */
    static const char HEX[] = "0123456789ABCDEF";
    if (byte >= 0x08 && byte <= 0x0d && SHORT[byte - 0x08] != 0) {
        const char text[2] = {'\\', SHORT[byte - 0x08]};
        put(printer, text, sizeof(text));
        return;
    }
    const char text[6] = {'\\', 'u', '0', '0', HEX[byte >> 4], HEX[byte & 15]};
    put(printer, text, sizeof(text));
}

/* Decodes in pieces that end between characters, and escapes what the writer escapes. */
static void put_text(struct printer *printer, struct span raw)
{
    ASSERT_SLOW(raw.data != NULL || raw.bytes == 0);
    uint8_t decoded[96];
    put_byte(printer, '"');
    while (raw.bytes != 0) {
        struct span piece = {raw.data, 0};
        while (piece.bytes < raw.bytes && piece.bytes < 40) {
            const uint8_t byte = raw.data[piece.bytes];
            const size_t pair = raw.bytes - piece.bytes >= 12 ? 12 : 6;
            const size_t escape = raw.data[piece.bytes + (byte == '\\')] == 'u' ? pair : 2;
            size_t step = byte == '\\' ? escape : 1;
            step = byte >= 0xc0 ? (byte >= 0xf0 ? 4 : (byte >= 0xe0 ? 3 : 2)) : step;
            if (step == 12 && memcmp(raw.data + piece.bytes + 6, "\\u", 2) != 0) {
                step = 6;
            }
            piece.bytes += step;
        }
        const size_t bytes = json_text_decode(piece, decoded);
        ASSERT(bytes <= sizeof(decoded));
        for (size_t i = 0; i < bytes; i++) {
            if (decoded[i] < ' ') {
                put_control(printer, decoded[i]);
                continue;
            }
            if (decoded[i] == '"' || decoded[i] == '\\') {
                put_byte(printer, '\\');
            }
            put_byte(printer, decoded[i]);
        }
        raw.data += piece.bytes;
        raw.bytes -= piece.bytes;
    }
    put_byte(printer, '"');
}

/* A double as Java prints it; one past the range is a text. */
static void put_fraction(struct printer *printer, struct span literal)
{
    ASSERT_SLOW(literal.bytes > 0);
    char text[DECIMAL_TEXT_BYTES];
    double value;
    (void)double_parse(literal, &value);
    if (isinf(value)) {
        const char *word = value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
        put(printer, word, strlen(word));
        return;
    }
    put(printer, text, double_print(value, text));
}

/* A decimal keeps its digits: as many as there are, trailing zeros off, BigDecimal's notation. */
static void put_decimal(struct printer *printer, struct span literal)
{
    ASSERT(printer->exact_decimals);
    ASSERT_SLOW(literal.bytes > 0);
    __int128 unscaled;
    char text[DECIMAL_TEXT_BYTES];
    for (uint8_t scale = 0; scale <= TYPE_DECIMAL_PRECISION_MAX; scale++) {
        __int128 finer;
        const uint8_t precision = TYPE_DECIMAL_PRECISION_MAX;
        if (decimal_parse(literal, precision, scale, &unscaled) != DECIMAL_OK) {
            break;
        }
        if (decimal_parse(literal, precision, TYPE_DECIMAL_PRECISION_MAX, &finer) == DECIMAL_OK
                ? finer == unscaled * decimal_power((uint32_t)(precision - scale))
                : decimal_parse(literal, precision, (uint8_t)(scale + 1), &finer) == DECIMAL_OK &&
                      finer == unscaled * 10) {
            put(printer, text, decimal_print_stripped(unscaled, scale, text));
            return;
        }
    }
    put(printer, literal.data, literal.bytes);
}

static void put_scalar(struct printer *printer, const struct json_token *token)
{
    ASSERT(token->kind >= JSON_STRING && token->kind <= JSON_NULL);
    ASSERT(token->fault == NULL);
    const bool minus_zero = token->kind == JSON_INTEGER && token->text.bytes == 2 &&
                            token->text.data[1] == '0' && token->text.data[0] == '-';
    if (token->kind == JSON_STRING) {
        put_text(printer, token->text);
    } else if (token->kind == JSON_FRACTION && printer->exact_decimals) {
        put_decimal(printer, token->text);
    } else if (token->kind == JSON_FRACTION) {
        put_fraction(printer, token->text);
    } else if (minus_zero) {
        put_byte(printer, '0');
    } else {
        put(printer, token->text.data, token->text.bytes);
    }
}

/* To the last token of the value that the lexer stands on. */
static bool skip_value(struct json_lexer *lexer)
{
    ASSERT_SLOW(lexer->depth <= JSON_DEPTH_MAX);
    uint32_t open = 0;
    do {
        const enum json_kind kind = lexer->token.kind;
        open += kind == JSON_OBJECT || kind == JSON_ARRAY;
        open -= kind == JSON_OBJECT_END || kind == JSON_ARRAY_END;
        if (kind == JSON_BROKEN || kind == JSON_NONE || lexer->token.fault != NULL) {
            return false;
        }
    } while (open != 0 && json_lexer_next(lexer) != JSON_BROKEN);
    return lexer->token.kind != JSON_BROKEN;
}

/* Compares names as decoded; long ones with escapes count as different. */
static bool same_name(const struct json_token *a, const struct json_token *b)
{
    ASSERT_SLOW(a->kind == JSON_NAME && b->kind == JSON_NAME);
    uint8_t left[512];
    uint8_t right[512];
    if (a->plain && b->plain) {
        return a->text.bytes == b->text.bytes &&
               memcmp(a->text.data, b->text.data, a->text.bytes) == 0;
    }
    if (a->text.bytes > 300 || b->text.bytes > 300) {
        return false;
    }
    const size_t bytes = json_text_decode(a->text, left);
    return json_text_decode(b->text, right) == bytes && memcmp(left, right, bytes) == 0;
}

/* Looks at the members from a place on; `last` becomes the lexer at the last one of the name.
 * Ends at `until` or the object's end. */
static bool find_twin(struct printer *printer, struct json_lexer from, const uint8_t *until,
                      const struct json_token *name, struct json_lexer *last)
{
    ASSERT(name->kind == JSON_NAME);
    ASSERT(last != NULL);
    const uint8_t *const start = from.at;
    bool found = false;
    while (printer->twin_bytes < TWIN_BYTES_MAX && json_lexer_next(&from) == JSON_NAME) {
        if (until != NULL && from.at >= until) {
            break;
        }
        if (same_name(&from.token, name)) {
            found = true;
            *last = from;
        }
        (void)json_lexer_next(&from);
        if (!skip_value(&from)) {
            break;
        }
    }
    printer->twin_bytes += (size_t)(from.at - start);
    return found;
}

static bool print_value(struct printer *printer, struct json_lexer *lexer, uint32_t depth);

/* Prints the member whose name the lexer stands on, unless an earlier one has the name. */
static bool print_member(struct printer *printer, const struct json_lexer *start,
                         struct json_lexer *lexer, uint32_t depth, bool *first)
{
    const struct json_token name = lexer->token;
    ASSERT(name.kind == JSON_NAME);
    ASSERT(first != NULL);
    struct json_lexer twin;
    if (find_twin(printer, *start, lexer->at, &name, &twin)) {
        (void)json_lexer_next(lexer);
        return skip_value(lexer);
    }
    struct json_lexer ahead = *lexer;
    (void)json_lexer_next(&ahead);
    const bool replaced = skip_value(&ahead) && find_twin(printer, ahead, NULL, &name, &twin);
    if (!*first) {
        put_byte(printer, ',');
    }
    *first = false;
    put_text(printer, name.text);
    put_byte(printer, ':');
    (void)json_lexer_next(lexer);
    if (!replaced) {
        return print_value(printer, lexer, depth);
    }
    (void)json_lexer_next(&twin);
    return print_value(printer, &twin, depth) && skip_value(lexer);
}

/* Prints the value that the lexer stands on and steps to its last token. */
static bool print_value(struct printer *printer, struct json_lexer *lexer, uint32_t depth)
{
    ASSERT(depth <= JSON_DEPTH_MAX + 1);
    const enum json_kind kind = lexer->token.kind;
    bool first = true;
    if (kind == JSON_BROKEN || kind == JSON_NONE || lexer->token.fault != NULL) {
        return false;
    }
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
        put_scalar(printer, &lexer->token);
        return true;
    }
    put_byte(printer, kind == JSON_OBJECT ? '{' : '[');
    const struct json_lexer start = *lexer;
    while (json_lexer_next(lexer) != JSON_OBJECT_END && lexer->token.kind != JSON_ARRAY_END) {
        if (lexer->token.kind == JSON_BROKEN) {
            return false;
        }
        if (kind == JSON_OBJECT) {
            if (!print_member(printer, &start, lexer, depth + 1, &first)) {
                return false;
            }
            continue;
        }
        if (!first) {
            put_byte(printer, ',');
        }
        first = false;
        if (!print_value(printer, lexer, depth + 1)) {
            return false;
        }
    }
    put_byte(printer, kind == JSON_OBJECT ? '}' : ']');
    return true;
}

size_t json_tree_print(struct json_lexer *lexer, bool exact_decimals, struct span_mut into)
{
    ASSERT(into.data != NULL || into.bytes == 0);
    ASSERT(lexer->token.kind == JSON_OBJECT || lexer->token.kind == JSON_ARRAY);
    struct printer printer = {
        .into = into.data,
        .capacity = into.bytes,
        .exact_decimals = exact_decimals,
    };
    return print_value(&printer, lexer, 0) ? printer.used : SIZE_MAX;
}
