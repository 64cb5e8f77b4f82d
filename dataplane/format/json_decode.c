/* SPDX-License-Identifier: Apache-2.0 */
/* Documents into rows: the quick walker first, the exact one when that gave up. A row that did not
 * fit its buffer is read again from where it started. */
#include "dataplane/format/json_internal.h"

#include <errno.h>
#include <stdlib.h>

int json_decoder_create(const struct plan_source *source, enum plan_field_origin origin,
                        size_t record_bytes_max, struct json_decoder **out, struct error *error)
{
    ASSERT(source->decoded.column_count == source->field_count);
    ASSERT(source != NULL && out != NULL);
    ASSERT(record_bytes_max > 0);
    struct json_decoder *decoder = calloc(1, sizeof(*decoder));
    *out = decoder;
    if (decoder == NULL) {
        return error_set(error, -ENOMEM, "no memory for the JSON decoder of '%s'", source->table);
    }
    const struct plan_format_options *options =
        origin == PLAN_FIELD_KEY ? &source->key_format : &source->value_format;
    decoder->layout = &source->decoded;
    decoder->ignore_errors = options->ignore_parse_errors;
    decoder->fail_on_missing = options->fail_on_missing_field;
    decoder->iso_timestamps = options->timestamp_format == PLAN_TIMESTAMP_ISO_8601;
    for (uint32_t i = 0; i < source->field_count; i++) {
        decoder->exact_decimals =
            decoder->exact_decimals ||
            (source->fields[i].origin == origin && source->fields[i].type.kind == TYPE_DECIMAL);
    }
    decoder->scratch.bytes = record_bytes_max * 3 / 2 + 4;
    decoder->scratch.data = malloc(decoder->scratch.bytes);
    decoder->pending = calloc(source->decoded.column_count + 1, sizeof(*decoder->pending));
    if (decoder->scratch.data == NULL || decoder->pending == NULL) {
        json_decoder_destroy(decoder);
        *out = NULL;
        return error_set(error, -ENOMEM, "no memory for the JSON decoder of '%s'", source->table);
    }
    memset(decoder->scratch.data, 0, decoder->scratch.bytes); /* no page fault later */
    const int result = json_schema_create(source, origin, &decoder->root, error);
    if (result != 0) {
        json_decoder_destroy(decoder);
        *out = NULL;
    }
    return result;
}

void json_decoder_destroy(struct json_decoder *decoder)
{
    if (decoder != NULL) {
        json_schema_destroy(decoder->root);
        free(decoder->scratch.data);
        free(decoder->pending);
        free(decoder);
    }
}

void json_decoder_begin(struct json_decoder *decoder, struct span document)
{
    ASSERT(decoder->root != NULL);
    ASSERT(document.bytes > 0 && document.data != NULL);
    ASSERT(document.bytes * 3 / 2 + 4 <= decoder->scratch.bytes);
    decoder->document = document;
    decoder->in_array = false;
    decoder->done = false;
    decoder->reason = NULL;
    decoder->lexer.at = NULL; /* set up when the quick walker gives up */
}

static enum json_step read_quick(struct json_decoder *decoder, struct row_writer *writer)
{
    ASSERT_SLOW(decoder->lexer.at == NULL);
    ASSERT_SLOW(!decoder->done);
    const enum json_step step = json_quick_row(decoder, writer);
    if (step == JSON_STEP_ROW) {
        decoder->done = true;
    }
    return step;
}

enum json_step json_decoder_next(struct json_decoder *decoder, struct span_mut into,
                                 const struct row *from, struct row_writer *writer)
{
    ASSERT(decoder->document.data != NULL);
    ASSERT(writer != NULL);
    ASSERT(into.bytes <= UINT32_MAX);
    if (decoder->done) {
        return JSON_STEP_END;
    }
    const uint32_t capacity = (uint32_t)into.bytes;
    if (!row_begin(writer, decoder->layout, into.data, capacity, from)) {
        return JSON_STEP_FULL;
    }
    if (decoder->lexer.at == NULL) {
        const enum json_step step =
            decoder->exact_only ? JSON_STEP_GIVE_UP : read_quick(decoder, writer);
        if (step != JSON_STEP_GIVE_UP || decoder->quick_only) {
            return step;
        }
        json_lexer_init(&decoder->lexer, decoder->document);
        (void)row_begin(writer, decoder->layout, into.data, capacity, from);
    }
    const enum json_step step = json_exact_row(decoder, writer);
    if (step == JSON_STEP_FULL) {
        json_decoder_again(decoder);
    }
    return step;
}

void json_decoder_again(struct json_decoder *decoder)
{
    ASSERT(decoder->document.data != NULL);
    decoder->done = false;
    if (decoder->lexer.at != NULL) {
        decoder->lexer = decoder->row_start;
    }
}
