/* SPDX-License-Identifier: Apache-2.0 */
/* A pull lexer over one JSON document, in Jackson's grammar as Flink sets it up. It allocates
 * nothing, keeps the nesting itself, and may be copied to remember a place. */
#pragma once

#include "base.h"

#define JSON_DEPTH_MAX        1000 /* nesting of a document, as Jackson's default */
#define JSON_NUMBER_BYTES_MAX 1000 /* digits of a number, as Jackson's default */

enum json_kind {
    JSON_NONE = 0, /* behind the end of the input */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_NAME,
    JSON_STRING,
    JSON_INTEGER,
    JSON_FRACTION, /* a number with a point or an exponent */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_BROKEN, /* not JSON; final */
};

/* A scalar as the lexer found it. */
struct json_token {
    enum json_kind kind;
    bool plain;           /* JSON_STRING, JSON_NAME: no escape in it and valid UTF-8 */
    struct span text;     /* raw: between the quotes, or the literal; of containers the bracket */
    const uint8_t *fault; /* JSON_STRING that cannot be decoded: where reading would go on */
};

struct json_lexer {
    const uint8_t *at;
    const uint8_t *end;
    struct json_token token;
    const char *reason; /* why the token is JSON_BROKEN */
    uint32_t depth;
    bool first;                                /* the next item is the first of its container */
    bool value_due;                            /* a name was read */
    uint64_t objects[JSON_DEPTH_MAX / 64 + 1]; /* bit d: container at depth d is an object */
};

/* Starts at the first byte of a document; skips a byte-order mark.
 * threads  any */
void json_lexer_init(struct json_lexer *lexer, struct span document);

/* Steps to the next token, which lexer->token then is.
 * returns  its kind
 * threads  any */
enum json_kind json_lexer_next(struct json_lexer *lexer);

/* Goes on behind the faulty byte of a text that was to be read, as Jackson does: for what is left
 * of the text that is the middle of nowhere, but a faulty closing quote leaves the rest intact.
 * threads  any */
void json_lexer_resume(struct json_lexer *lexer);

/* Goes on behind the quote that closes a text of which the first part was read.
 * fault    where reading ended: inside the text, or behind its closing quote
 * threads  any */
void json_lexer_skip_text(struct json_lexer *lexer, const uint8_t *fault);

/* Measures a number's literal.
 * kind     set to JSON_INTEGER or JSON_FRACTION
 * returns  its end, or NULL when it is not JSON's
 * threads  any */
const uint8_t *json_lexer_number(const uint8_t *at, const uint8_t *end, enum json_kind *kind);
