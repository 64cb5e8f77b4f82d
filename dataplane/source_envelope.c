/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes are JSON and are read with the decoder's lexer. Texts are decoded into one block as
 * large as the file could need; headers go into one growing list, and records point into it by
 * number until the last one is read. */
#include "dataplane/source_envelope_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/format/json_lexer.h"
#include "dataplane/format/json_text.h"
#include "dataplane/source_file.h"

struct line_reader {
    struct envelopes *envelopes;
    struct json_lexer lexer;
    struct envelope *envelope;
    const char *wrong; /* what is wrong with the line */
};

/* Notes what is wrong with the line; returns false. */
static bool fail(struct line_reader *reader, const char *wrong)
{
    ASSERT(wrong != NULL);
    reader->wrong = wrong;
    return false;
}

static bool name_is(const struct json_token *token, const char *name)
{
    ASSERT(name != NULL);
    return token->text.bytes == strlen(name) &&
           memcmp(token->text.data, name, token->text.bytes) == 0;
}

static bool read_text(struct line_reader *reader, const struct json_token *token, struct span *out)
{
    ASSERT_SLOW(reader->envelope != NULL);
    ASSERT(out != NULL);
    struct envelopes *envelopes = reader->envelopes;
    if (token->kind != JSON_STRING || token->fault != NULL) {
        return fail(reader, "a text is due");
    }
    uint8_t *into = envelopes->bytes + envelopes->bytes_used;
    const size_t bytes = json_text_decode(token->text, into);
    ASSERT(bytes != SIZE_MAX);
    envelopes->bytes_used += bytes;
    *out = (struct span){.data = into, .bytes = bytes};
    return true;
}

static bool read_base64(struct line_reader *reader, const struct json_token *token,
                        struct span *out)
{
    ASSERT_SLOW(reader->envelope != NULL);
    ASSERT_SLOW(token != NULL);
    ASSERT(out != NULL);
    struct envelopes *envelopes = reader->envelopes;
    const uint8_t *fault;
    uint8_t *into = envelopes->bytes + envelopes->bytes_used;
    const size_t bytes =
        token->kind == JSON_STRING ? json_text_base64(token->text, into, &fault) : SIZE_MAX;
    if (bytes == SIZE_MAX) {
        return fail(reader, "b64 must be padded base64");
    }
    envelopes->bytes_used += bytes;
    *out = (struct span){.data = into, .bytes = bytes};
    return true;
}

static bool read_number(struct line_reader *reader, const struct json_token *token, int64_t low,
                        int64_t high, int64_t *out)
{
    ASSERT_SLOW(token != NULL);
    ASSERT(low <= high);
    ASSERT(out != NULL);
    char text[32] = "";
    char *end = text;
    if (token->kind == JSON_INTEGER && token->text.bytes < sizeof(text)) {
        memcpy(text, token->text.data, token->text.bytes);
        errno = 0;
        *out = strtoll(text, &end, 10);
    }
    if (end == text || errno != 0 || *out < low || *out > high) {
        return fail(reader, "a number of its range is due");
    }
    return true;
}

/* A place for one more header; NULL without memory. */
static struct record_header *add_header(struct envelopes *envelopes)
{
    ASSERT_SLOW(envelopes != NULL);
    ASSERT(envelopes->header_count <= envelopes->header_capacity);
    if (envelopes->header_count == envelopes->header_capacity) {
        const size_t capacity = envelopes->header_capacity * 2 + 16;
        struct record_header *headers = realloc(envelopes->headers, capacity * sizeof(*headers));
        if (headers == NULL) {
            return NULL;
        }
        envelopes->headers = headers;
        envelopes->header_capacity = capacity;
    }
    return &envelopes->headers[envelopes->header_count++];
}

static bool read_headers(struct line_reader *reader)
{
    ASSERT(reader->envelope != NULL);
    struct json_lexer *lexer = &reader->lexer;
    if (lexer->token.kind != JSON_OBJECT) {
        return fail(reader, "h must be an object");
    }
    while (json_lexer_next(lexer) == JSON_NAME) {
        struct record_header *header = add_header(reader->envelopes);
        struct json_token name = lexer->token;
        name.kind = JSON_STRING;
        if (header == NULL) {
            return fail(reader, "no memory");
        }
        *header = (struct record_header){.value_is_null = json_lexer_next(lexer) == JSON_NULL};
        if (!read_text(reader, &name, &header->name) ||
            (!header->value_is_null && !read_text(reader, &lexer->token, &header->value))) {
            return false;
        }
        reader->envelope->record.header_count++;
    }
    return lexer->token.kind == JSON_OBJECT_END || fail(reader, "h is broken");
}

static bool read_member(struct line_reader *reader, const struct json_token *name)
{
    ASSERT_SLOW(name != NULL);
    ASSERT(name->kind == JSON_NAME);
    ASSERT(reader->envelope != NULL);
    struct record *record = &reader->envelope->record;
    const struct json_token *token = &reader->lexer.token;
    int64_t number = 0;
    if (name_is(name, "p")) {
        const bool good = read_number(reader, token, 0, SOURCE_FILE_PARTITIONS_MAX - 1, &number);
        reader->envelope->partition = (uint32_t)number;
        return good;
    }
    if (name_is(name, "t")) {
        return read_number(reader, token, INT64_MIN, INT64_MAX, &record->timestamp_ms);
    }
    if (name_is(name, "h")) {
        return read_headers(reader);
    }
    if (name_is(name, "k")) {
        record->key_is_null = token->kind == JSON_NULL;
        return record->key_is_null || read_text(reader, token, &record->key);
    }
    if (name_is(name, "v")) {
        record->value_is_null = token->kind == JSON_NULL;
        return record->value_is_null || read_text(reader, token, &record->value);
    }
    if (name_is(name, "b64")) {
        record->value_is_null = false;
        return read_base64(reader, token, &record->value);
    }
    if (name_is(name, "k64")) {
        record->key_is_null = false;
        return read_base64(reader, token, &record->key);
    }
    return fail(reader, "unknown member; known are p, t, k, k64, h, v, b64");
}

static bool read_line(struct line_reader *reader, struct span line)
{
    ASSERT_SLOW(line.data != NULL || line.bytes == 0);
    ASSERT(reader->envelope != NULL);
    struct json_lexer *lexer = &reader->lexer;
    json_lexer_init(lexer, line);
    if (json_lexer_next(lexer) != JSON_OBJECT) {
        return fail(reader, "an envelope must be an object");
    }
    while (json_lexer_next(lexer) == JSON_NAME) {
        const struct json_token name = lexer->token;
        (void)json_lexer_next(lexer);
        if (!read_member(reader, &name)) {
            return false;
        }
    }
    return lexer->token.kind == JSON_OBJECT_END ||
           fail(reader, lexer->reason == NULL ? "broken JSON" : lexer->reason);
}

/* A place for one more record, with the values of missing members. */
static struct envelope *add_envelope(struct envelopes *envelopes)
{
    ASSERT_SLOW(envelopes != NULL);
    ASSERT(envelopes->count <= envelopes->capacity);
    if (envelopes->count == envelopes->capacity) {
        const uint64_t capacity = envelopes->capacity * 2 + 64;
        struct envelope *list = realloc(envelopes->list, capacity * sizeof(*list));
        if (list == NULL) {
            return NULL;
        }
        envelopes->list = list;
        envelopes->capacity = capacity;
    }
    struct envelope *envelope = &envelopes->list[envelopes->count];
    *envelope = (struct envelope){
        .record = {.timestamp_ms = SOURCE_FILE_TIME_MS + (int64_t)envelopes->count,
                   .key_is_null = true,
                   .value_is_null = true},
    };
    envelopes->count++;
    return envelope;
}

/* Headers moved while the list grew: point to them now. */
static void place_headers(struct envelopes *envelopes)
{
    ASSERT(envelopes->count <= envelopes->capacity);
    size_t at = 0;
    for (uint64_t i = 0; i < envelopes->count; i++) {
        struct record *record = &envelopes->list[i].record;
        record->headers = record->header_count == 0 ? NULL : &envelopes->headers[at];
        at += record->header_count;
    }
    ASSERT(at == envelopes->header_count);
}

int envelopes_read(struct span file, const char *path, struct envelopes *out, struct error *error)
{
    ASSERT_SLOW(file.data != NULL || file.bytes == 0);
    ASSERT(path != NULL);
    ASSERT(out != NULL);
    *out = (struct envelopes){.bytes = malloc(file.bytes * 3 / 2 + 8)};
    if (out->bytes == NULL) {
        return error_set(error, -ENOMEM, "no memory to read %s", path);
    }
    struct line_reader reader = {.envelopes = out};
    for (size_t at = 0; at < file.bytes;) {
        const uint8_t *const start = file.data + at;
        const uint8_t *const end = memchr(start, '\n', file.bytes - at);
        const size_t bytes = end == NULL ? file.bytes - at : (size_t)(end - start);
        reader.envelope = add_envelope(out);
        if (reader.envelope == NULL) {
            return error_set(error, -ENOMEM, "no memory to read %s", path);
        }
        if (!read_line(&reader, (struct span){start, bytes})) {
            if (error != NULL) {
                (void)snprintf(error->place, sizeof(error->place), "%s", path);
                error->line = (uint32_t)out->count;
            }
            return error_set(error, -EINVAL, "not an envelope: %s", reader.wrong);
        }
        at += bytes + 1;
    }
    place_headers(out);
    return 0;
}

void envelopes_free(struct envelopes *envelopes)
{
    ASSERT(envelopes != NULL);
    free(envelopes->list);
    free(envelopes->bytes);
    free(envelopes->headers);
    *envelopes = (struct envelopes){.count = 0};
}
