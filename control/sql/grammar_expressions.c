/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of the grammar's actions on expressions; see grammar_actions.h. Forms that say the same
 * become one here: x NOT IN …, CASE x WHEN …, BETWEEN SYMMETRIC, -9223372036854775808. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "control/sql/grammar_actions.h"

struct ast_expr *grammar_call(struct parse *parse, struct place at, const char *name,
                              struct ast_expr *const arguments[4])
{
    ASSERT(parse != NULL);
    ASSERT(arguments[0] != NULL);
    return ast_call(parse->memory, at, name, arguments);
}

static const char *upper_copy(struct parse *parse, const char *text)
{
    ASSERT(parse != NULL);
    char *copy = sql_copy_text(parse->memory, text, strlen(text));
    for (char *c = copy; *c != 0; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return copy;
}

struct ast_expr *grammar_function(struct parse *parse, struct place at, struct ast_name name,
                                  const struct ast_list *arguments)
{
    ASSERT(parse != NULL);
    ASSERT(name.text != NULL);
    return ast_call_list(parse->memory, at, upper_copy(parse, name.text), arguments);
}

bool grammar_depth_ok(struct parse *parse, const struct ast_expr *node)
{
    ASSERT(parse != NULL);
    ASSERT(node != NULL);
    uint32_t depth = node->depth;
    if (node->filter != NULL && node->filter->depth >= depth) {
        depth = node->filter->depth + 1;
    }
    if (depth > AST_DEPTH_MAX) {
        (void)parse_fail(parse, -E2BIG, node->at, "an expression is nested deeper than %d",
                         AST_DEPTH_MAX);
        return false;
    }
    return true;
}

struct ast_expr *grammar_name(struct parse *parse, enum ast_kind kind, struct place at,
                              const struct ast_list *path)
{
    ASSERT(parse != NULL);
    ASSERT(path->count >= 1);
    struct ast_expr *node = ast_expr(parse->memory, kind, at, NULL, 0);
    node->path = sql_allocate(parse->memory, path->count * sizeof(*node->path));
    node->path_count = path->count;
    for (uint32_t i = 0; i < path->count; i++) {
        node->path[i] = *(const struct ast_name *)path->items[i];
    }
    return node;
}

struct ast_expr *grammar_word(struct parse *parse, struct place at, const char *word)
{
    ASSERT(parse != NULL);
    ASSERT(word != NULL);
    return ast_expr(parse->memory, AST_SYMBOL, at, word, strlen(word));
}

struct ast_expr *grammar_symbol(struct parse *parse, struct ast_name name)
{
    ASSERT(parse != NULL);
    ASSERT(name.text != NULL);
    return grammar_word(parse, name.at, upper_copy(parse, name.text));
}

struct ast_expr *grammar_text(struct parse *parse, struct place at, const char *text)
{
    ASSERT(parse != NULL);
    ASSERT(text != NULL);
    return ast_expr(parse->memory, AST_TEXT, at, text, strlen(text));
}

void grammar_set_side(struct parse *parse, const char *side)
{
    ASSERT(parse != NULL);
    ASSERT(side != NULL);
    parse->side = side;
}

const char *grammar_side(const struct parse *parse)
{
    ASSERT(parse != NULL);
    ASSERT(parse->side != NULL);
    return parse->side;
}

struct ast_expr *grammar_negate(struct parse *parse, struct place at, struct ast_expr *operand)
{
    ASSERT(parse != NULL);
    ASSERT(operand != NULL);
    if (operand->kind == AST_NUMBER && operand->text[0] != '-') {
        const char *text = sql_format(parse->memory, "-%s", operand->text);
        return ast_expr(parse->memory, AST_NUMBER, at, text, strlen(text));
    }
    return grammar_call(parse, at, "NEGATE", (struct ast_expr *[4]){operand});
}

bool grammar_between(struct parse *parse, struct place at, bool symmetric,
                     struct ast_expr *const operands[3], struct ast_expr **out)
{
    ASSERT(parse != NULL);
    ASSERT(operands[0] != NULL);
    ASSERT(operands[2] != NULL);
    struct ast_expr *straight = grammar_call(
        parse, at, "BETWEEN", (struct ast_expr *[4]){operands[0], operands[1], operands[2]});
    *out = straight;
    if (!symmetric) {
        return true;
    }
    struct ast_expr *turned = grammar_call(
        parse, at, "BETWEEN", (struct ast_expr *[4]){operands[0], operands[2], operands[1]});
    *out = grammar_call(parse, at, "OR", (struct ast_expr *[4]){straight, turned});
    return true;
}

struct ast_expr *grammar_in(struct parse *parse, struct place at, struct ast_expr *operand,
                            const struct ast_list *items)
{
    ASSERT(parse != NULL);
    ASSERT(items->count >= 1);
    struct ast_list all = {0};
    ast_append(parse->memory, &all, operand);
    for (uint32_t i = 0; i < items->count; i++) {
        ast_append(parse->memory, &all, items->items[i]);
    }
    return ast_call_list(parse->memory, at, "IN", &all);
}

/* A WHEN of several values is kept as one AST_ROW until CASE is complete. */
bool grammar_when(struct parse *parse, struct ast_list *list, const struct ast_list *conditions,
                  struct ast_expr *result)
{
    ASSERT(parse != NULL);
    ASSERT(conditions->count >= 1);
    struct ast_expr *condition = conditions->items[0];
    if (conditions->count > 1) {
        condition = ast_call_list(parse->memory, condition->at, "WHEN", conditions);
        condition->kind = AST_ROW;
    }
    ast_append(parse->memory, list, condition);
    ast_append(parse->memory, list, result);
    return true;
}

/* Turns WHEN a, b of CASE x into x = a OR x = b. */
static struct ast_expr *when_equals(struct parse *parse, struct ast_expr *operand,
                                    struct ast_expr *when)
{
    ASSERT(operand->depth >= 1);
    ASSERT(parse != NULL);
    if (when->kind != AST_ROW) {
        return grammar_call(parse, when->at, "=", (struct ast_expr *[4]){operand, when});
    }
    struct ast_expr *all = NULL;
    for (uint32_t i = 0; i < when->argument_count; i++) {
        struct ast_expr *one =
            grammar_call(parse, when->at, "=", (struct ast_expr *[4]){operand, when->arguments[i]});
        all = all == NULL ? one
                          : grammar_call(parse, when->at, "OR", (struct ast_expr *[4]){all, one});
    }
    ASSERT(all != NULL);
    return all;
}

bool grammar_case(struct parse *parse, struct place at, struct ast_expr *operand,
                  const struct ast_list *whens, struct ast_expr *otherwise, struct ast_expr **out)
{
    ASSERT(parse != NULL);
    ASSERT(whens->count >= 2);
    ASSERT(whens->count % 2 == 0);
    struct ast_list arguments = {0};
    for (uint32_t i = 0; i < whens->count; i += 2) {
        struct ast_expr *when = whens->items[i];
        if (operand == NULL && when->kind == AST_ROW) {
            (void)parse_fail(parse, -EINVAL, when->at,
                             "WHEN takes several values only in CASE x WHEN a, b THEN …");
            return false;
        }
        ast_append(parse->memory, &arguments,
                   operand == NULL ? when : when_equals(parse, operand, when));
        ast_append(parse->memory, &arguments, whens->items[i + 1]);
    }
    if (otherwise == NULL) {
        otherwise = ast_expr(parse->memory, AST_NULL, at, "NULL", 4);
    }
    ast_append(parse->memory, &arguments, otherwise);
    *out = ast_call_list(parse->memory, at, "CASE", &arguments);
    return true;
}

/* Writes a code point as UTF-8. */
static size_t put_utf8(char *into, uint32_t point)
{
    if (point < 0x80) {
        into[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        into[0] = (char)(0xc0 | (point >> 6));
        into[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    into[0] = (char)(0xe0 | (point >> 12));
    into[1] = (char)(0x80 | ((point >> 6) & 0x3f));
    into[2] = (char)(0x80 | (point & 0x3f));
    return 3;
}

/* Reads four hexadecimal digits. */
static bool read_point(const char *text, uint32_t *out)
{
    ASSERT(out != NULL);
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int c = (unsigned char)text[i];
        if (!isxdigit(c)) {
            return false;
        }
        const int digit = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
        *out = *out * 16 + (uint32_t)digit;
    }
    return *out != 0 && (*out < 0xd800 || *out > 0xdfff);
}

struct ast_expr *grammar_unicode(struct parse *parse, struct ast_name text,
                                 const struct ast_name *escape)
{
    ASSERT(parse != NULL);
    ASSERT(text.text != NULL);
    const char mark = escape == NULL ? '\\' : escape->text[0];
    if (escape != NULL && strlen(escape->text) != 1) {
        (void)parse_fail(parse, -EINVAL, escape->at, "UESCAPE takes one character");
        return NULL;
    }
    char *copy = sql_allocate(parse->memory, strlen(text.text) + 4);
    size_t used = 0;
    for (const char *c = text.text; *c != 0;) {
        uint32_t point = 0;
        if (*c != mark) {
            copy[used++] = *c++;
        } else if (c[1] == mark) {
            copy[used++] = mark;
            c += 2;
        } else if (read_point(c + 1, &point)) {
            used += put_utf8(copy + used, point);
            c += 5;
        } else {
            (void)parse_fail(parse, -EINVAL, text.at,
                             "U&'…' holds an escape that is no %cXXXX of a character", mark);
            return NULL;
        }
    }
    return ast_expr(parse->memory, AST_TEXT, text.at, copy, used);
}

struct ast_expr *grammar_interval(struct parse *parse, struct place at, struct ast_name text,
                                  struct ast_name from, const struct ast_name *to, bool negative)
{
    ASSERT(parse != NULL);
    ASSERT(from.text != NULL);
    const char *value = negative ? sql_format(parse->memory, "-%s", text.text) : text.text;
    struct ast_expr *node = ast_expr(parse->memory, AST_INTERVAL, at, value, strlen(value));
    node->unit_from = upper_copy(parse, from.text);
    node->unit_to = to == NULL ? NULL : upper_copy(parse, to->text);
    return node;
}

const char *grammar_subscript(const struct ast_expr *node)
{
    ASSERT(node != NULL);
    const bool is_map = node->kind == AST_NAME && node->path_count == 1 &&
                        strcasecmp(node->path[0].text, "MAP") == 0;
    return is_map ? "MAP[…]" : "element access x[…]";
}
