/* SPDX-License-Identifier: Apache-2.0 */
/* A pull lexer over one document, with Jackson's grammar as Flink sets it up: plain JSON, raw
 * control characters allowed in text, no comments, no leading zeros, depth and number length
 * bounded. It keeps the nesting itself, so that it can be copied to remember a place. Errors are
 * final: the token stays JSON_BROKEN. Nothing behind the outermost value is looked at. */
#include "dataplane/format/json_lexer.h"

#include "dataplane/format/json_text.h"

#define INVALID_TEXT "invalid UTF-8 or escape inside quotes"

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static void skip_space(struct json_lexer *lexer)
{
    ASSERT_SLOW(lexer->at <= lexer->end);
    while (lexer->at < lexer->end && is_space(*lexer->at)) {
        lexer->at++;
    }
}

void json_lexer_init(struct json_lexer *lexer, struct span document)
{
    ASSERT(lexer != NULL);
    ASSERT(document.data != NULL || document.bytes == 0);
    lexer->at = document.data;
    lexer->end = document.data + document.bytes;
    lexer->token = (struct json_token){.kind = JSON_NONE};
    lexer->reason = NULL;
    lexer->depth = 0;
    lexer->first = true;
    lexer->value_due = false;
    if (document.bytes >= 3 && memcmp(document.data, "\xef\xbb\xbf", 3) == 0) {
        lexer->at += 3;
    }
}

static enum json_kind broken(struct json_lexer *lexer, const char *reason)
{
    ASSERT(reason != NULL);
    ASSERT(lexer->at <= lexer->end);
    lexer->reason = reason;
    lexer->token = (struct json_token){.kind = JSON_BROKEN};
    return JSON_BROKEN;
}

static enum json_kind set_token(struct json_lexer *lexer, enum json_kind kind, size_t bytes)
{
    ASSERT_SLOW(bytes <= (size_t)(lexer->end - lexer->at));
    lexer->token = (struct json_token){
        .kind = kind,
        .plain = true,
        .text = {.data = lexer->at, .bytes = bytes},
    };
    lexer->at += bytes;
    return kind;
}

static bool in_object(const struct json_lexer *lexer)
{
    ASSERT_SLOW(lexer->depth <= JSON_DEPTH_MAX);
    return lexer->depth != 0 && (lexer->objects[lexer->depth >> 6] >> (lexer->depth & 63) & 1);
}

static enum json_kind open_container(struct json_lexer *lexer, enum json_kind kind)
{
    ASSERT(kind == JSON_OBJECT || kind == JSON_ARRAY);
    ASSERT(lexer->depth <= JSON_DEPTH_MAX);
    if (lexer->depth == JSON_DEPTH_MAX) {
        return broken(lexer, "nested deeper than 1000 levels");
    }
    lexer->depth++;
    const uint64_t bit = UINT64_C(1) << (lexer->depth & 63);
    uint64_t *word = &lexer->objects[lexer->depth >> 6];
    *word = kind == JSON_OBJECT ? *word | bit : *word & ~bit;
    lexer->first = true;
    return set_token(lexer, kind, 1);
}

static enum json_kind close_container(struct json_lexer *lexer, enum json_kind kind)
{
    ASSERT_SLOW(kind == JSON_OBJECT_END || kind == JSON_ARRAY_END);
    ASSERT(lexer->depth > 0);
    lexer->depth--;
    lexer->first = false;
    return set_token(lexer, kind, 1);
}

/* Reads a text whose opening quote is at lexer->at. */
static enum json_kind read_text(struct json_lexer *lexer, enum json_kind kind)
{
    ASSERT(lexer->at < lexer->end && *lexer->at == '"');
    ASSERT(kind == JSON_NAME || kind == JSON_STRING);
    const uint8_t *const start = lexer->at + 1;
    bool plain;
    const uint8_t *const close = json_text_end(start, lexer->end, &plain);
    const uint8_t *const stop = close == NULL ? lexer->end : close;
    const struct span raw = {.data = start, .bytes = (size_t)(stop - start)};
    const uint8_t *const fault = plain ? NULL : json_text_fault(raw);
    if (close == NULL && (fault == NULL || fault > lexer->end)) {
        return broken(lexer, "the text ends inside quotes");
    }
    if (fault != NULL && kind == JSON_NAME) {
        return broken(lexer, INVALID_TEXT);
    }
    lexer->token = (struct json_token){
        .kind = kind,
        .plain = plain || (memchr(raw.data, '\\', raw.bytes) == NULL && json_text_is_utf8(raw)),
        .text = raw,
        .fault = fault,
    };
    lexer->at = stop + (close != NULL);
    return kind;
}

const uint8_t *json_lexer_number(const uint8_t *at, const uint8_t *end, enum json_kind *kind)
{
    ASSERT(at <= end);
    ASSERT(kind != NULL);
    const uint8_t *const start = at;
    *kind = JSON_INTEGER;
    at += at < end && *at == '-';
    if (at == end || !is_digit(*at) || (*at == '0' && end - at > 1 && is_digit(at[1]))) {
        return NULL;
    }
    while (at < end && is_digit(*at)) {
        at++;
    }
    if (at < end && *at == '.') {
        *kind = JSON_FRACTION;
        at++;
        if (at == end || !is_digit(*at)) {
            return NULL;
        }
        while (at < end && is_digit(*at)) {
            at++;
        }
    }
    if (at < end && (*at | 0x20) == 'e') {
        *kind = JSON_FRACTION;
        at++;
        at += at < end && (*at == '-' || *at == '+');
        if (at == end || !is_digit(*at)) {
            return NULL;
        }
        while (at < end && is_digit(*at)) {
            at++;
        }
    }
    return at - start > JSON_NUMBER_BYTES_MAX ? NULL : at;
}

static enum json_kind read_word(struct json_lexer *lexer, enum json_kind kind, const char *word)
{
    ASSERT(word != NULL);
    const size_t bytes = strlen(word);
    const size_t left = (size_t)(lexer->end - lexer->at);
    if (left < bytes || memcmp(lexer->at, word, bytes) != 0) {
        return broken(lexer, "an unknown word");
    }
    return set_token(lexer, kind, bytes);
}

static enum json_kind read_value(struct json_lexer *lexer)
{
    ASSERT(lexer->at < lexer->end);
    lexer->first = false;
    switch (*lexer->at) {
    case '{':
        return open_container(lexer, JSON_OBJECT);
    case '[':
        return open_container(lexer, JSON_ARRAY);
    case '"':
        return read_text(lexer, JSON_STRING);
    case 't':
        return read_word(lexer, JSON_TRUE, "true");
    case 'f':
        return read_word(lexer, JSON_FALSE, "false");
    case 'n':
        return read_word(lexer, JSON_NULL, "null");
    default:
        break;
    }
    enum json_kind kind;
    const uint8_t *const end = json_lexer_number(lexer->at, lexer->end, &kind);
    if (end == NULL) {
        return broken(lexer, "not a JSON value");
    }
    return set_token(lexer, kind, (size_t)(end - lexer->at));
}

/* Reads a member's name and the colon behind it. */
static enum json_kind read_name(struct json_lexer *lexer)
{
    ASSERT(lexer->at < lexer->end);
    if (*lexer->at != '"') {
        return broken(lexer, "a member's name must stand in quotes");
    }
    if (read_text(lexer, JSON_NAME) == JSON_BROKEN) {
        return JSON_BROKEN;
    }
    skip_space(lexer);
    if (lexer->at == lexer->end || *lexer->at != ':') {
        return broken(lexer, "no colon behind a member's name");
    }
    lexer->at++;
    lexer->value_due = true;
    return JSON_NAME;
}

/* Steps inside a container, behind a complete item or its opening bracket. */
static enum json_kind next_item(struct json_lexer *lexer)
{
    ASSERT(lexer->depth > 0);
    ASSERT(lexer->at < lexer->end);
    const bool object = in_object(lexer);
    if (*lexer->at == (object ? '}' : ']')) {
        return close_container(lexer, object ? JSON_OBJECT_END : JSON_ARRAY_END);
    }
    if (!lexer->first) {
        if (*lexer->at != ',') {
            return broken(lexer, "no comma between items");
        }
        lexer->at++;
        skip_space(lexer);
        if (lexer->at == lexer->end) {
            return broken(lexer, "the document is not finished");
        }
    }
    return object ? read_name(lexer) : read_value(lexer);
}

enum json_kind json_lexer_next(struct json_lexer *lexer)
{
    ASSERT(lexer->at <= lexer->end);
    ASSERT(lexer->depth <= JSON_DEPTH_MAX);
    if (lexer->token.kind == JSON_BROKEN) {
        return JSON_BROKEN;
    }
    if (lexer->token.fault != NULL) {
        return broken(lexer, INVALID_TEXT);
    }
    skip_space(lexer);
    if (lexer->at == lexer->end) {
        if (lexer->depth != 0) {
            return broken(lexer, "the document is not finished");
        }
        lexer->token = (struct json_token){.kind = JSON_NONE};
        return JSON_NONE;
    }
    if (lexer->value_due || lexer->depth == 0) {
        lexer->value_due = false;
        return read_value(lexer);
    }
    return next_item(lexer);
}

void json_lexer_resume(struct json_lexer *lexer)
{
    ASSERT(lexer->token.fault != NULL && lexer->token.fault <= lexer->end);
    lexer->at = lexer->token.fault;
    lexer->token.fault = NULL;
}

void json_lexer_skip_text(struct json_lexer *lexer, const uint8_t *fault)
{
    ASSERT(fault >= lexer->token.text.data);
    bool plain;
    ASSERT(fault <= lexer->end);
    const uint8_t *const close = json_text_end(fault, lexer->end, &plain);
    const struct span rest = {fault, close == NULL ? 0 : (size_t)(close - fault)};
    if (close == NULL || (!plain && json_text_fault(rest) != NULL)) {
        (void)broken(lexer, INVALID_TEXT);
        return;
    }
    lexer->token.fault = NULL;
    lexer->at = close + 1;
}
