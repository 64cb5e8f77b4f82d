/* SPDX-License-Identifier: Apache-2.0 */
/* The exact walker: what Flink's row converter does with Jackson's tokens, step for step, its
 * defects included. A converter that fails leaves the reader where it stands, so a container where
 * a scalar is due is read on as if its items were names and values; and a converter stops looking
 * at names once it has met as many known members as its row has, so that of repeated names the
 * last wins only until then. */
#include "dataplane/format/json_internal.h"

enum walk {
    WALK_OK = 0,
    WALK_BAD,    /* the row is bad: a value in strict mode, or a missing member */
    WALK_BROKEN, /* the document is no JSON, or reading has lost its way */
};

/* A token's text as Java sees it. */
static struct span token_text(struct json_decoder *decoder, const struct json_token *token)
{
    ASSERT_SLOW(token->fault == NULL);
    if (token->plain) {
        return token->text;
    }
    ASSERT(token->text.bytes * 3 / 2 + 4 <= decoder->scratch.bytes);
    const size_t bytes = json_text_decode(token->text, decoder->scratch.data);
    ASSERT(bytes != SIZE_MAX);
    return (struct span){.data = decoder->scratch.data, .bytes = bytes};
}

static bool is_string(const struct type *type)
{
    ASSERT_SLOW(type != NULL);
    return type->kind == TYPE_CHAR || type->kind == TYPE_VARCHAR;
}

/* Makes a column NULL again: a later member of one name replaces, also by nothing. */
static void clear_column(struct json_decoder *decoder, struct row_writer *writer, uint32_t column)
{
    ASSERT_SLOW(column < decoder->layout->column_count);
    ASSERT_SLOW(writer->row != NULL);
    static const uint64_t ZERO[2];
    row_set(writer, column, ZERO);
    writer->row->words[column >> 6] |= UINT64_C(1) << (column & 63);
    decoder->pending[column].is_set = false;
}

static void clear_object(struct json_decoder *decoder, struct row_writer *writer,
                         const struct json_object *object, uint32_t depth)
{
    ASSERT(object != NULL);
    ASSERT(depth <= JSON_PATH_MAX);
    for (uint32_t i = 0; i < object->member_count; i++) {
        const struct json_member *member = &object->members[i];
        if (member->object != NULL) {
            clear_object(decoder, writer, member->object, depth + 1);
        } else if (member->column != JSON_COLUMN_NONE) {
            clear_column(decoder, writer, member->column);
        }
    }
}

/* Steps over a container that the lexer stands on, to its closing bracket. */
static enum walk skip_container(struct json_lexer *lexer)
{
    ASSERT_SLOW(lexer->token.kind == JSON_OBJECT || lexer->token.kind == JSON_ARRAY);
    uint32_t open = 1;
    while (open != 0) {
        switch (json_lexer_next(lexer)) {
        case JSON_OBJECT:
        case JSON_ARRAY:
            open++;
            break;
        case JSON_OBJECT_END:
        case JSON_ARRAY_END:
            open--;
            break;
        case JSON_BROKEN:
        case JSON_NONE:
            return WALK_BROKEN;
        default:
            break;
        }
    }
    return WALK_OK;
}

static bool opens(enum json_kind kind)
{
    ASSERT_SLOW(kind <= JSON_BROKEN);
    return kind == JSON_OBJECT || kind == JSON_ARRAY;
}

/* Over the value (or whatever it is) that the lexer stands on, to the token behind it. */
static enum walk skip_to_next(struct json_lexer *lexer)
{
    ASSERT_SLOW(lexer->depth <= JSON_DEPTH_MAX);
    if (lexer->token.kind == JSON_BROKEN || lexer->token.kind == JSON_NONE) {
        return WALK_BROKEN;
    }
    if (opens(lexer->token.kind) && skip_container(lexer) != WALK_OK) {
        return WALK_BROKEN;
    }
    return json_lexer_next(lexer) == JSON_BROKEN ? WALK_BROKEN : WALK_OK;
}

/* In lenient mode nothing; the column stays NULL and the reader stands where it stands. */
static enum walk bad_value(struct json_decoder *decoder, const struct json_member *member,
                           const char *reason)
{
    ASSERT(member != NULL && reason != NULL);
    if (decoder->ignore_errors) {
        return WALK_OK;
    }
    decoder->reason = reason;
    decoder->reason_member = member;
    decoder->reason_token = decoder->lexer.token;
    return WALK_BAD;
}

/* Keeps a value for a text column until the row is complete. A container goes in whole. */
static enum walk keep_text(struct json_decoder *decoder, const struct json_member *member)
{
    ASSERT(is_string(&member->type));
    ASSERT(member->column < decoder->layout->column_count);
    struct json_lexer *lexer = &decoder->lexer;
    struct json_pending *pending = &decoder->pending[member->column];
    struct json_token token = lexer->token;
    if (opens(token.kind)) {
        const uint8_t *const start = token.text.data;
        if (json_tree_print(lexer, decoder->exact_decimals, (struct span_mut){NULL, 0}) ==
            SIZE_MAX) {
            return WALK_BROKEN;
        }
        token.text = (struct span){start, (size_t)(lexer->at - start)};
    }
    *pending = (struct json_pending){.is_set = true, .token = token};
    return WALK_OK;
}

static enum walk convert_scalar(struct json_decoder *decoder, struct row_writer *writer,
                                const struct json_member *member)
{
    const struct json_token *token = &decoder->lexer.token;
    ASSERT(!type_is_text(&member->type));
    ASSERT(token->fault == NULL);
    struct value value;
    const enum json_outcome outcome = json_value_convert(
        &member->type, decoder->iso_timestamps, token->kind, token_text(decoder, token), &value);
    if (outcome == JSON_VALUE_BAD) {
        return bad_value(decoder, member, "not a value of the column's type");
    }
    if (outcome == JSON_VALUE_NULL) {
        return WALK_OK;
    }
    row_set(writer, member->column, &value.i64);
    return WALK_OK;
}

/* Bytes are decoded as they are read: a failure leaves Jackson inside the text, the rest of which
 * it then skips; but one that met the closing quote skips to the next quote of all. */
static enum walk read_bytes(struct json_decoder *decoder, const struct json_member *member)
{
    ASSERT(member->column < decoder->layout->column_count);
    const struct json_token *token = &decoder->lexer.token;
    const uint8_t *fault;
    if (token->kind != JSON_STRING) {
        return bad_value(decoder, member, "not base64");
    }
    if (json_text_base64(token->text, decoder->scratch.data, &fault) == SIZE_MAX) {
        const enum walk walk = bad_value(decoder, member, "not base64");
        json_lexer_skip_text(&decoder->lexer, fault);
        return walk;
    }
    decoder->pending[member->column] = (struct json_pending){.is_set = true, .token = *token};
    return WALK_OK;
}

static enum walk read_scalar(struct json_decoder *decoder, struct row_writer *writer,
                             const struct json_member *member)
{
    ASSERT(member->object == NULL);
    ASSERT(member->column != JSON_COLUMN_NONE);
    struct json_lexer *lexer = &decoder->lexer;
    clear_column(decoder, writer, member->column);
    if (lexer->token.kind == JSON_NULL || lexer->token.kind == JSON_NONE) {
        return WALK_OK;
    }
    if (type_is_text(&member->type) && !is_string(&member->type)) {
        return read_bytes(decoder, member);
    }
    if (lexer->token.fault != NULL) {
        const enum walk walk = bad_value(decoder, member, "invalid UTF-8 or escape inside quotes");
        json_lexer_resume(lexer);
        return walk;
    }
    if (is_string(&member->type)) {
        return keep_text(decoder, member);
    }
    return convert_scalar(decoder, writer, member);
}

static enum walk read_object(struct json_decoder *decoder, struct row_writer *writer,
                             struct json_object *object, uint32_t depth);

static enum walk read_member(struct json_decoder *decoder, struct row_writer *writer,
                             struct json_member *member, uint32_t depth)
{
    ASSERT(depth <= JSON_PATH_MAX);
    ASSERT(member != NULL);
    struct json_lexer *lexer = &decoder->lexer;
    if (member->object != NULL) {
        clear_object(decoder, writer, member->object, depth + 1);
        if (lexer->token.kind == JSON_OBJECT) {
            return read_object(decoder, writer, member->object, depth + 1);
        }
        if (lexer->token.kind == JSON_NULL || lexer->token.kind == JSON_NONE) {
            return WALK_OK;
        }
        return bad_value(decoder, member, "not an object");
    }
    if (member->column == JSON_COLUMN_NONE) {
        return opens(lexer->token.kind) ? skip_container(lexer) : WALK_OK;
    }
    return read_scalar(decoder, writer, member);
}

/* Reads a name, which after a failed conversion may be any token, and the value behind it. */
static enum walk read_item(struct json_decoder *decoder, struct row_writer *writer,
                           struct json_object *object, uint32_t depth, bool *known)
{
    ASSERT(object->member_count > 0);
    struct json_lexer *lexer = &decoder->lexer;
    const struct json_token name = lexer->token;
    *known = false;
    if (name.kind == JSON_NONE || name.fault != NULL || json_lexer_next(lexer) == JSON_BROKEN) {
        return WALK_BROKEN;
    }
    struct json_member *member = json_schema_find(object, token_text(decoder, &name));
    if (member == NULL) {
        return skip_to_next(lexer);
    }
    *known = true;
    const enum walk walk = read_member(decoder, writer, member, depth);
    if (walk != WALK_OK) {
        return walk;
    }
    return json_lexer_next(lexer) == JSON_BROKEN ? WALK_BROKEN : WALK_OK;
}

/* Reads the object that the lexer stands on, to its closing bracket. */
static enum walk read_object(struct json_decoder *decoder, struct row_writer *writer,
                             struct json_object *object, uint32_t depth)
{
    ASSERT(depth <= JSON_PATH_MAX);
    struct json_lexer *lexer = &decoder->lexer;
    ASSERT(lexer->token.kind == JSON_OBJECT);
    uint32_t count = 0;
    if (json_lexer_next(lexer) == JSON_BROKEN) {
        return WALK_BROKEN;
    }
    while (lexer->token.kind != JSON_OBJECT_END) {
        bool known = false;
        const enum walk walk = count >= object->member_count
                                   ? skip_to_next(lexer)
                                   : read_item(decoder, writer, object, depth, &known);
        if (walk != WALK_OK) {
            return walk;
        }
        count += known;
    }
    if (decoder->fail_on_missing && count < object->member_count) {
        decoder->reason = "some field is missing";
        decoder->reason_member = NULL;
        return WALK_BAD;
    }
    return WALK_OK;
}

/* Writes one kept text behind the row's slots. */
static bool write_pending(struct json_decoder *decoder, struct row_writer *writer, uint32_t column)
{
    const struct json_token *token = &decoder->pending[column].token;
    const struct type *type = &decoder->layout->types[column];
    ASSERT(decoder->pending[column].is_set);
    ASSERT(type_is_text(type));
    if (is_string(type) && opens(token->kind)) {
        struct json_lexer lexer;
        json_lexer_init(&lexer, token->text);
        (void)json_lexer_next(&lexer);
        const struct span_mut tail = {(uint8_t *)writer->row + writer->used,
                                      writer->capacity - writer->used};
        const size_t bytes = json_tree_print(&lexer, decoder->exact_decimals, tail);
        ASSERT(bytes != SIZE_MAX);
        /* The text already stands where the row wants it. */
        return bytes <= tail.bytes && row_set_text(writer, column, (struct span){tail.data, bytes});
    }
    if (is_string(type)) {
        return row_set_text(writer, column, token_text(decoder, token));
    }
    const uint8_t *fault;
    const struct span bytes = {decoder->scratch.data,
                               json_text_base64(token->text, decoder->scratch.data, &fault)};
    ASSERT(bytes.bytes != SIZE_MAX);
    return row_set_text(writer, column, bytes);
}

static enum json_step finish_row(struct json_decoder *decoder, struct row_writer *writer)
{
    ASSERT(writer->row != NULL);
    for (uint32_t i = 0; i < decoder->layout->column_count; i++) {
        if (decoder->pending[i].is_set && !write_pending(decoder, writer, i)) {
            return JSON_STEP_FULL;
        }
    }
    return JSON_STEP_ROW;
}

/* The row that cannot be had: an error, or the silent end of the document when errors are
 * ignored. Rows before it stand. */
static enum json_step give_up(struct json_decoder *decoder, enum walk walk)
{
    ASSERT(walk != WALK_OK);
    decoder->done = true;
    if (walk == WALK_BROKEN) {
        decoder->reason = decoder->lexer.reason;
        decoder->reason_member = NULL;
    }
    if (decoder->reason == NULL) {
        decoder->reason = "not a JSON object";
    }
    return decoder->ignore_errors ? JSON_STEP_END : JSON_STEP_BAD;
}

enum json_step json_exact_row(struct json_decoder *decoder, struct row_writer *writer)
{
    ASSERT(decoder->lexer.at != NULL);
    ASSERT(writer->row != NULL && !decoder->done);
    struct json_lexer *lexer = &decoder->lexer;
    decoder->row_start = *lexer;
    enum json_kind kind = json_lexer_next(lexer);
    if (!decoder->in_array && kind == JSON_ARRAY && lexer->depth == 1) {
        decoder->in_array = true;
        decoder->row_start = *lexer;
        kind = json_lexer_next(lexer);
    }
    if (decoder->in_array && kind == JSON_ARRAY_END) {
        decoder->done = true;
        return JSON_STEP_END;
    }
    for (uint32_t i = 0; i < decoder->layout->column_count; i++) {
        decoder->pending[i].is_set = false;
    }
    decoder->reason = NULL;
    if (kind != JSON_OBJECT) {
        return give_up(decoder, WALK_BROKEN);
    }
    const enum walk walk = read_object(decoder, writer, decoder->root, 0);
    if (walk != WALK_OK) {
        return give_up(decoder, walk);
    }
    decoder->done = !decoder->in_array;
    return finish_row(decoder, writer);
}
