/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the three origins of a row's columns. Key rows are read first and kept, packed, in the
 * layout of the whole row; then each row of the value is given once for each of them. A JSON key
 * on a record without key gives no key row, so no row at all; a raw key is then NULL. */
#include "dataplane/format/decoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/format/json_internal.h"
#include "dataplane/format/raw.h"

#define KEY_ROWS_BYTES (UINT32_C(1) << 16) /* key rows of one record */
#define COLUMN_NONE    UINT32_MAX

struct decoder {
    const struct plan_source *source;
    const char *const *topics;
    size_t record_bytes_max;
    struct json_decoder *value_json;
    struct json_decoder *key_json;
    uint32_t value_raw_column; /* COLUMN_NONE: the format is not raw */
    uint32_t key_raw_column;
    bool has_key;
    bool has_metadata;
    uint64_t *key_rows; /* KEY_ROWS_BYTES */
    uint32_t key_row_count;
    uint32_t key_row_next;     /* the one that goes with the value row at hand */
    const struct row *key_row; /* of key_row_next */
    /* The record at hand. */
    const struct record *record;
    uint32_t topic;
    uint32_t partition;
    bool done;
    struct decoder_counters counters;
    char reason[DECODER_REASON_BYTES];
};

/* The first column that comes from an origin. */
static uint32_t first_column(const struct plan_source *source, enum plan_field_origin origin)
{
    ASSERT(source != NULL);
    ASSERT(source->field_count <= ROW_COLUMNS_MAX);
    for (uint32_t i = 0; i < source->field_count; i++) {
        if (source->fields[i].origin == origin) {
            return i;
        }
    }
    return COLUMN_NONE;
}

static int create_formats(struct decoder *decoder, struct error *error)
{
    const struct plan_source *source = decoder->source;
    ASSERT(decoder->source != NULL);
    ASSERT(decoder->record_bytes_max > 0);
    int result = 0;
    if (source->value_format.format == PLAN_FORMAT_JSON) {
        result = json_decoder_create(source, PLAN_FIELD_VALUE, decoder->record_bytes_max,
                                     &decoder->value_json, error);
    } else if (source->value_format.format == PLAN_FORMAT_RAW) {
        decoder->value_raw_column = first_column(source, PLAN_FIELD_VALUE);
    } else {
        return error_set(error, -EINVAL, "table '%s' has no format for its values", source->table);
    }
    if (result == 0 && decoder->has_key && source->key_format.format == PLAN_FORMAT_JSON) {
        result = json_decoder_create(source, PLAN_FIELD_KEY, decoder->record_bytes_max,
                                     &decoder->key_json, error);
    }
    if (result == 0 && decoder->has_key && source->key_format.format == PLAN_FORMAT_RAW) {
        decoder->key_raw_column = first_column(source, PLAN_FIELD_KEY);
    }
    return result;
}

int decoder_create(const struct decoder_config *config, struct decoder **out, struct error *error)
{
    ASSERT(config != NULL && config->source != NULL && out != NULL);
    const struct plan_source *source = config->source;
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    *out = NULL;
    if (decoder == NULL) {
        return error_set(error, -ENOMEM, "no memory for the decoder of '%s'", source->table);
    }
    decoder->source = source;
    decoder->topics = config->topics != NULL ? config->topics : source->topics;
    decoder->record_bytes_max =
        config->record_bytes_max != 0 ? config->record_bytes_max : DECODER_RECORD_BYTES_DEFAULT;
    decoder->value_raw_column = COLUMN_NONE;
    decoder->key_raw_column = COLUMN_NONE;
    decoder->has_key = source->key_format.format != PLAN_FORMAT_NONE &&
                       first_column(source, PLAN_FIELD_KEY) != COLUMN_NONE;
    decoder->has_metadata = first_column(source, PLAN_FIELD_METADATA) != COLUMN_NONE;
    int result = create_formats(decoder, error);
    if (result == 0 && decoder->has_key) {
        decoder->key_rows = calloc(1, KEY_ROWS_BYTES);
        if (decoder->key_rows == NULL) {
            result = error_set(error, -ENOMEM, "no memory for the keys of '%s'", source->table);
        }
    }
    if (result != 0) {
        decoder_destroy(decoder);
        return result;
    }
    *out = decoder;
    return 0;
}

void decoder_destroy(struct decoder *decoder)
{
    if (decoder != NULL) {
        json_decoder_destroy(decoder->value_json);
        json_decoder_destroy(decoder->key_json);
        free(decoder->key_rows);
        free(decoder);
    }
}

/* Ends the record; the reason stands already. */
static enum decoder_verdict bad(struct decoder *decoder)
{
    ASSERT(decoder->record != NULL);
    ASSERT(decoder->reason[0] != 0);
    decoder->done = true;
    decoder->counters.bad++;
    return DECODER_BAD;
}

/* The dotted path of a member, found again from the root; schemas are small and errors rare. */
static bool find_path(const struct json_object *object, const struct json_member *wanted,
                      char *into, size_t bytes, uint32_t depth)
{
    ASSERT(bytes > 0);
    ASSERT(depth <= JSON_PATH_MAX);
    for (uint32_t i = 0; i < object->member_count; i++) {
        const struct json_member *member = &object->members[i];
        const int used = snprintf(into, bytes, "%s%s", depth == 0 ? "" : ".", member->name);
        if (member == wanted) {
            return true;
        }
        if (member->object != NULL && used >= 0 && (size_t)used < bytes &&
            find_path(member->object, wanted, into + used, bytes - (size_t)used, depth + 1)) {
            return true;
        }
    }
    return false;
}

static enum decoder_verdict bad_json(struct decoder *decoder, const struct json_decoder *json,
                                     const char *part)
{
    ASSERT(json->reason != NULL);
    ASSERT(part != NULL);
    char path[DECODER_REASON_BYTES / 2] = "";
    const struct span found = json->reason_token.text;
    if (json->reason_member == NULL ||
        !find_path(json->root, json->reason_member, path, sizeof(path), 0)) {
        (void)snprintf(decoder->reason, sizeof(decoder->reason),
                       "failed to deserialize JSON %s: %s", part, json->reason);
        return bad(decoder);
    }
    (void)snprintf(decoder->reason, sizeof(decoder->reason),
                   "failed to deserialize JSON %s at field: %s (%s: %.*s)", part, path,
                   json->reason, (int)(found.bytes > 60 ? 60 : found.bytes),
                   (const char *)found.data);
    return bad(decoder);
}

static enum decoder_verdict bad_width(struct decoder *decoder, uint32_t column, size_t bytes)
{
    ASSERT(column < decoder->source->field_count);
    char type[TYPE_PRINT_BYTES];
    (void)snprintf(decoder->reason, sizeof(decoder->reason),
                   "raw data of %zu bytes do not fit the type %.100s", bytes,
                   type_print(&decoder->source->decoded.types[column], type));
    return bad(decoder);
}

/* Reads one raw column; NULL bytes leave it NULL. */
static enum decoder_verdict set_raw(struct decoder *decoder, struct row_writer *writer,
                                    uint32_t column, bool little_endian, bool is_null,
                                    struct span bytes)
{
    ASSERT_SLOW(column == COLUMN_NONE || column < decoder->source->field_count);
    ASSERT_SLOW(writer->row != NULL);
    struct value value;
    if (column == COLUMN_NONE || is_null || !decoder->source->fields[column].needed) {
        return DECODER_ROW;
    }
    if (!raw_decode(&decoder->source->decoded.types[column], little_endian, bytes, &value)) {
        return bad_width(decoder, column, bytes.bytes);
    }
    return row_set_value(writer, column, &value) ? DECODER_ROW : DECODER_FULL;
}

static enum decoder_verdict read_raw_key(struct decoder *decoder)
{
    ASSERT(decoder->key_rows != NULL);
    ASSERT(decoder->key_row_count == 0);
    const struct record *record = decoder->record;
    struct row_writer writer;
    if (!row_begin(&writer, &decoder->source->decoded, decoder->key_rows, KEY_ROWS_BYTES, NULL)) {
        return DECODER_FULL;
    }
    const enum decoder_verdict verdict =
        set_raw(decoder, &writer, decoder->key_raw_column,
                decoder->source->key_format.little_endian, record->key_is_null, record->key);
    if (verdict == DECODER_ROW) {
        (void)row_end(&writer);
        decoder->key_row_count = 1;
    }
    return verdict;
}

static enum decoder_verdict read_json_keys(struct decoder *decoder)
{
    ASSERT(decoder->key_rows != NULL);
    ASSERT(decoder->key_row_count == 0);
    const struct record *record = decoder->record;
    struct json_decoder *json = decoder->key_json;
    uint32_t used = 0;
    if (record->key_is_null || record->key.bytes == 0) {
        return DECODER_ROW;
    }
    json_decoder_begin(json, record->key);
    for (;;) {
        struct row_writer writer;
        const struct span_mut into = {(uint8_t *)decoder->key_rows + used, KEY_ROWS_BYTES - used};
        const enum json_step step = json_decoder_next(json, into, NULL, &writer);
        if (step == JSON_STEP_BAD) {
            return bad_json(decoder, json, "key");
        }
        if (step == JSON_STEP_FULL) {
            return DECODER_FULL;
        }
        if (step == JSON_STEP_END) {
            decoder->counters.ignored += json->reason != NULL;
            return DECODER_ROW;
        }
        used += row_end(&writer);
        decoder->key_row_count++;
    }
}

/* Reads the key's rows, if the table has key columns. */
static enum decoder_verdict read_keys(struct decoder *decoder)
{
    ASSERT(decoder->has_key);
    decoder->key_row_count = 0;
    decoder->key_row_next = 0;
    decoder->key_row = (const struct row *)(const void *)decoder->key_rows;
    const enum decoder_verdict verdict =
        decoder->key_json != NULL ? read_json_keys(decoder) : read_raw_key(decoder);
    if (verdict == DECODER_FULL) {
        (void)snprintf(decoder->reason, sizeof(decoder->reason),
                       "the key's columns take more than %u bytes", KEY_ROWS_BYTES);
        return bad(decoder);
    }
    return verdict;
}

static bool is_too_large(struct decoder *decoder, struct span bytes, const char *part)
{
    ASSERT(part != NULL);
    if (bytes.bytes <= decoder->record_bytes_max) {
        return false;
    }
    (void)snprintf(decoder->reason, sizeof(decoder->reason),
                   "the record's %s has %zu bytes, more than the cap of %zu", part, bytes.bytes,
                   decoder->record_bytes_max);
    return true;
}

enum decoder_verdict decoder_begin(struct decoder *decoder, const struct record *record,
                                   uint32_t topic, uint32_t partition)
{
    ASSERT(decoder != NULL && record != NULL);
    ASSERT(decoder->topics == NULL || decoder->topics != decoder->source->topics ||
           topic < decoder->source->topic_count);
    decoder->record = record;
    decoder->topic = topic;
    decoder->partition = partition;
    decoder->done = false;
    decoder->counters.records++;
    decoder->counters.bytes += record->value.bytes + record->key.bytes;
    if (is_too_large(decoder, record->value, "value") ||
        is_too_large(decoder, record->key, "key")) {
        return bad(decoder);
    }
    if (decoder->has_key) {
        const enum decoder_verdict verdict = read_keys(decoder);
        if (verdict == DECODER_BAD) {
            return verdict;
        }
    }
    const bool empty = record->value_is_null || record->value.bytes == 0;
    if (decoder->value_json != NULL && empty) {
        decoder->done = true;
        decoder->counters.skipped++;
        return DECODER_SKIP;
    }
    if (decoder->value_json != NULL) {
        json_decoder_begin(decoder->value_json, record->value);
    }
    return DECODER_OK;
}

static bool set_metadata_text(struct row_writer *writer, uint32_t column, const char *text)
{
    ASSERT(text != NULL);
    ASSERT_SLOW(column < writer->layout->column_count);
    const struct span bytes = {(const uint8_t *)text, strlen(text)};
    return row_set_text(writer, column, bytes);
}

static bool set_metadata(const struct decoder *decoder, struct row_writer *writer, uint32_t column)
{
    const struct record *record = decoder->record;
    ASSERT(decoder->source->fields[column].origin == PLAN_FIELD_METADATA);
    ASSERT(record != NULL);
    static const char *const TYPES[] = {"CreateTime", "LogAppendTime", "NoTimestampType"};
    switch (decoder->source->fields[column].metadata) {
    case PLAN_METADATA_TOPIC:
        return set_metadata_text(writer, column, decoder->topics[decoder->topic]);
    case PLAN_METADATA_PARTITION:
        row_set_i64(writer, column, decoder->partition);
        return true;
    case PLAN_METADATA_OFFSET:
        row_set_i64(writer, column, record->offset);
        return true;
    case PLAN_METADATA_TIMESTAMP: {
        const struct timestamp stamp = {.ms = record->timestamp_ms};
        row_set(writer, column, &stamp);
        return true;
    }
    case PLAN_METADATA_TIMESTAMP_TYPE:
        ASSERT(record->timestamp_type < COUNT_OF(TYPES));
        return set_metadata_text(writer, column, TYPES[record->timestamp_type]);
    case PLAN_METADATA_LEADER_EPOCH:
        if (record->leader_epoch >= 0) {
            row_set_i64(writer, column, record->leader_epoch);
        }
        return true;
    }
    return true;
}

/* Adds the columns that do not come from the value. */
static bool add_others(struct decoder *decoder, struct row_writer *writer)
{
    ASSERT_SLOW(writer->row != NULL);
    ASSERT_SLOW(!decoder->has_key || decoder->key_row_next < decoder->key_row_count);
    const struct plan_source *source = decoder->source;
    for (uint32_t i = 0; i < source->field_count; i++) {
        const struct plan_field *field = &source->fields[i];
        if (!field->needed || field->origin == PLAN_FIELD_VALUE) {
            continue;
        }
        const bool fits = field->origin == PLAN_FIELD_METADATA
                              ? set_metadata(decoder, writer, i)
                              : row_copy_column(writer, i, &source->decoded, decoder->key_row, i);
        if (!fits) {
            return false;
        }
    }
    return true;
}

static enum decoder_verdict next_json(struct decoder *decoder, struct span_mut into,
                                      const struct row *from, struct row_writer *writer)
{
    struct json_decoder *json = decoder->value_json;
    ASSERT_SLOW(json != NULL);
    ASSERT_SLOW(writer != NULL);
    switch (json_decoder_next(json, into, from, writer)) {
    case JSON_STEP_ROW:
        return DECODER_ROW;
    case JSON_STEP_FULL:
        return DECODER_FULL;
    case JSON_STEP_BAD:
        return bad_json(decoder, json, "value");
    default:
        decoder->counters.ignored += json->reason != NULL;
        decoder->done = true;
        return DECODER_END;
    }
}

static enum decoder_verdict next_raw(struct decoder *decoder, struct span_mut into,
                                     const struct row *from, struct row_writer *writer)
{
    const struct record *record = decoder->record;
    ASSERT(decoder->value_json == NULL);
    ASSERT_SLOW(record != NULL);
    if (!row_begin(writer, &decoder->source->decoded, into.data, (uint32_t)into.bytes, from)) {
        return DECODER_FULL;
    }
    const enum decoder_verdict verdict =
        set_raw(decoder, writer, decoder->value_raw_column,
                decoder->source->value_format.little_endian, record->value_is_null, record->value);
    decoder->done = verdict != DECODER_FULL;
    return verdict;
}

/* Reads the value's row again when a further key row goes with it, or the buffer was short. */
static void value_again(struct decoder *decoder)
{
    ASSERT_SLOW(decoder->record != NULL);
    decoder->done = false;
    if (decoder->value_json != NULL) {
        json_decoder_again(decoder->value_json);
    }
}

/* Goes to the next key row; behind the last one the value moves on. */
static void step_key(struct decoder *decoder)
{
    ASSERT(decoder->has_key);
    ASSERT(decoder->key_row_next < decoder->key_row_count);
    decoder->key_row_next++;
    decoder->key_row = (const struct row *)(const void *)((const uint8_t *)decoder->key_row +
                                                          decoder->key_row->bytes);
    if (decoder->key_row_next < decoder->key_row_count) {
        value_again(decoder);
        return;
    }
    decoder->key_row_next = 0;
    decoder->key_row = (const struct row *)(const void *)decoder->key_rows;
}

enum decoder_verdict decoder_next(struct decoder *decoder, struct span_mut into)
{
    ASSERT(decoder->record != NULL);
    ASSERT(((uintptr_t)into.data & 7) == 0);
    struct row_writer writer;
    const struct row from = {
        .kind = ROW_INSERT,
        .time_ms = ROW_TIME_NONE,
        .arrival_ns = decoder->record->arrival_ns,
    };
    into.bytes &= ~(size_t)7;
    for (;;) {
        if (decoder->done) {
            return DECODER_END;
        }
        const enum decoder_verdict verdict = decoder->value_json != NULL
                                                 ? next_json(decoder, into, &from, &writer)
                                                 : next_raw(decoder, into, &from, &writer);
        if (verdict != DECODER_ROW) {
            return verdict;
        }
        if (!decoder->has_key || decoder->key_row_count != 0) {
            break; /* else the value is read only to find out whether it is bad */
        }
    }
    if ((decoder->has_key || decoder->has_metadata) && !add_others(decoder, &writer)) {
        value_again(decoder);
        return DECODER_FULL;
    }
    (void)row_end(&writer);
    decoder->counters.rows++;
    if (decoder->has_key) {
        step_key(decoder);
    }
    return DECODER_ROW;
}

const char *decoder_reason(const struct decoder *decoder)
{
    ASSERT(decoder != NULL);
    return decoder->reason;
}

const struct decoder_counters *decoder_counters(const struct decoder *decoder)
{
    ASSERT(decoder != NULL);
    return &decoder->counters;
}
