/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the writer for a sink's value and key, and holds what they prepare once: the members'
 * names as JSON. */
#include "dataplane/format/encoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/format/json_encode.h"
#include "dataplane/format/print.h"
#include "dataplane/format/raw.h"

/* One part of a record: value or key. */
struct part {
    const struct plan_format_options *format;
    const struct plan_sink_field *fields;
    uint32_t field_count;
    struct json_encode_field *json; /* field_count, JSON only */
    struct json_encode_options options;
};

struct encoder {
    const struct plan_sink *sink;
    const struct row_layout *layout;
    struct part value;
    struct part key;
    char reason[ENCODER_REASON_BYTES];
};

/* Prepares what a JSON part needs; raw parts need nothing. */
static int create_part(struct part *part, const struct row_layout *layout)
{
    ASSERT(part->format != NULL);
    ASSERT(part->field_count == 0 || part->fields != NULL);
    part->options = (struct json_encode_options){
        .decimal_plain = part->format->decimal_as_plain_number,
        .ignore_nulls = part->format->ignore_null_fields,
        .iso_timestamps = part->format->timestamp_format == PLAN_TIMESTAMP_ISO_8601,
    };
    if (part->format->format != PLAN_FORMAT_JSON) {
        return 0;
    }
    part->json = calloc(part->field_count + 1, sizeof(*part->json));
    for (uint32_t i = 0; part->json != NULL && i < part->field_count; i++) {
        const struct plan_sink_field *field = &part->fields[i];
        ASSERT(field->column < layout->column_count);
        char *prefix = json_encode_prefix(field->name);
        if (prefix == NULL) {
            return -ENOMEM;
        }
        part->json[i] = (struct json_encode_field){
            .prefix = prefix,
            .prefix_bytes = (uint32_t)strlen(prefix),
            .column = field->column,
            .type = field->type,
        };
    }
    return part->json == NULL ? -ENOMEM : 0;
}

static void destroy_part(struct part *part)
{
    ASSERT(part != NULL);
    for (uint32_t i = 0; part->json != NULL && i < part->field_count; i++) {
        free((void *)(uintptr_t)part->json[i].prefix);
    }
    free(part->json);
}

int encoder_create(const struct plan_sink *sink, const struct row_layout *layout,
                   struct encoder **out, struct error *error)
{
    ASSERT(sink != NULL && layout != NULL && out != NULL);
    struct encoder *encoder = calloc(1, sizeof(*encoder));
    *out = encoder;
    if (encoder == NULL) {
        return error_set(error, -ENOMEM, "no memory for the encoder of '%s'", sink->table);
    }
    encoder->sink = sink;
    encoder->layout = layout;
    encoder->value = (struct part){
        .format = &sink->value_format,
        .fields = sink->value_fields,
        .field_count = sink->value_field_count,
    };
    encoder->key = (struct part){
        .format = &sink->key_format,
        .fields = sink->key_fields,
        .field_count = sink->key_field_count,
    };
    if (create_part(&encoder->value, layout) != 0 || create_part(&encoder->key, layout) != 0) {
        encoder_destroy(encoder);
        *out = NULL;
        return error_set(error, -ENOMEM, "no memory for the encoder of '%s'", sink->table);
    }
    return 0;
}

void encoder_destroy(struct encoder *encoder)
{
    if (encoder != NULL) {
        destroy_part(&encoder->value);
        destroy_part(&encoder->key);
        free(encoder);
    }
}

/* The name under which a column is written, for messages. */
static const char *column_name(const struct encoder *encoder, uint32_t column)
{
    ASSERT(column < encoder->layout->column_count);
    const struct plan_sink *sink = encoder->sink;
    for (uint32_t i = 0; i < sink->value_field_count + sink->key_field_count; i++) {
        const struct plan_sink_field *field = i < sink->value_field_count
                                                  ? &sink->value_fields[i]
                                                  : &sink->key_fields[i - sink->value_field_count];
        if (field->column == column) {
            return field->name;
        }
    }
    return "?";
}

enum encoder_verdict encoder_admit(struct encoder *encoder, const struct row *row)
{
    ASSERT(encoder != NULL && row != NULL);
    ASSERT_SLOW(row_check(encoder->layout, row, row->bytes));
    const struct plan_sink *sink = encoder->sink;
    for (uint32_t i = 0; i < sink->not_null_count; i++) {
        const uint32_t column = sink->not_null_columns[i];
        ASSERT(column < encoder->layout->column_count);
        if (!row_is_null(row, column)) {
            continue;
        }
        if (sink->not_null_drop) {
            return ENCODER_DROP;
        }
        (void)snprintf(encoder->reason, sizeof(encoder->reason),
                       "column '%s' of table '%s' is NOT NULL, but a NULL is written to it "
                       "('table.exec.sink.not-null-enforcer' = 'DROP' drops such rows)",
                       column_name(encoder, column), sink->table);
        return ENCODER_FAILED;
    }
    return ENCODER_OK;
}

static enum encoder_verdict encode_raw(const struct encoder *encoder, const struct part *part,
                                       const struct row *row, struct writer *writer)
{
    ASSERT(part->format->format == PLAN_FORMAT_RAW);
    ASSERT(part->field_count <= 1);
    uint8_t small[8];
    const struct plan_sink_field *field = &part->fields[0];
    if (part->field_count == 0) {
        return ENCODER_NULL;
    }
    const struct value value = row_value(encoder->layout, row, field->column);
    if (value.is_null) {
        return ENCODER_NULL;
    }
    if (type_is_text(&field->type)) {
        writer_put(writer, value.text.data, value.text.bytes);
        return ENCODER_OK;
    }
    const struct span_mut into = {small, sizeof(small)};
    writer_put(writer, small, raw_encode(&field->type, part->format->little_endian, &value, into));
    return ENCODER_OK;
}

static enum encoder_verdict encode_part(const struct encoder *encoder, const struct part *part,
                                        const struct row *row, struct span_mut into, size_t *bytes)
{
    ASSERT(into.data != NULL || into.bytes == 0);
    ASSERT(bytes != NULL);
    struct writer writer = {.data = into.data, .capacity = into.bytes};
    enum encoder_verdict verdict = ENCODER_OK;
    switch (part->format->format) {
    case PLAN_FORMAT_NONE:
        return ENCODER_NULL;
    case PLAN_FORMAT_RAW:
        verdict = encode_raw(encoder, part, row, &writer);
        break;
    case PLAN_FORMAT_JSON:
        json_encode_row(part->json, part->field_count, &part->options, encoder->layout, row,
                        &writer);
        break;
    }
    *bytes = writer.used;
    return writer.used > writer.capacity ? ENCODER_FULL : verdict;
}

enum encoder_verdict encoder_value(struct encoder *encoder, const struct row *row,
                                   struct span_mut into, size_t *bytes)
{
    ASSERT(bytes != NULL);
    ASSERT_SLOW(row_check(encoder->layout, row, row->bytes));
    ASSERT(encoder != NULL && row != NULL);
    const struct plan_sink *sink = encoder->sink;
    if (sink->connector == PLAN_CONNECTOR_PRINT) {
        struct writer writer = {.data = into.data, .capacity = into.bytes};
        print_encode_row(sink->print_identifier, sink->value_fields, sink->value_field_count,
                         encoder->layout, row, &writer);
        *bytes = writer.used;
        return writer.used > writer.capacity ? ENCODER_FULL : ENCODER_OK;
    }
    const bool deletes = row->kind == ROW_DELETE || row->kind == ROW_UPDATE_BEFORE;
    if (deletes && sink->connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        return ENCODER_NULL;
    }
    return encode_part(encoder, &encoder->value, row, into, bytes);
}

enum encoder_verdict encoder_key(struct encoder *encoder, const struct row *row,
                                 struct span_mut into, size_t *bytes)
{
    ASSERT(bytes != NULL);
    ASSERT_SLOW(row_check(encoder->layout, row, row->bytes));
    ASSERT(encoder != NULL && row != NULL);
    return encode_part(encoder, &encoder->key, row, into, bytes);
}

const char *encoder_reason(const struct encoder *encoder)
{
    ASSERT(encoder != NULL);
    return encoder->reason;
}
