/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding rows one by one into two buffers and appending what they hold; the record sink copies.
 * When it is full the row is encoded again in the next turn, which is rare and keeps no state but
 * the row's place in the parcel. */
#include "dataplane/table_sink.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/format/encoder.h"

struct table_sink {
    struct sink base;
    struct sink_context *context;
    const struct plan_sink *plan;
    struct table_sink_edge edge;
    struct encoder *encoder; /* NULL: blackhole */
    struct span_mut value;
    struct span_mut key;
    const struct parcel *parcel; /* in work, when the last call answered AGAIN */
    const struct row *row;       /* to go on with */
    uint32_t row_index;
    struct table_sink_counters counters;
};

static struct table_sink *self_of(struct sink *sink)
{
    ASSERT(sink->ops == &table_sink_ops);
    return (struct table_sink *)sink;
}

static enum operator_verdict fail(struct table_sink *self, const char *reason)
{
    ASSERT_SLOW(self->plan != NULL);
    (void)error_set(&self->context->failure, 0, "table %s: %s", self->plan->table, reason);
    return OPERATOR_FAILED;
}

/* Encodes one half of a record. The reason of a failure is the encoder's; sizes are told by half,
 * since the two have their own options.
 * is_null  set when the half has no bytes */
static enum operator_verdict encode(struct table_sink *self, bool is_key, const struct row *row,
                                    struct span *out, bool *is_null)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->context != NULL);
    const struct span_mut into = is_key ? self->key : self->value;
    size_t bytes = 0;
    const enum encoder_verdict verdict = is_key ? encoder_key(self->encoder, row, into, &bytes)
                                                : encoder_value(self->encoder, row, into, &bytes);
    *is_null = verdict == ENCODER_NULL;
    *out = (struct span){.data = into.data, .bytes = *is_null ? 0 : bytes};
    switch (verdict) {
    case ENCODER_OK:
    case ENCODER_NULL:
        ASSERT(bytes <= into.bytes);
        return OPERATOR_DONE;
    case ENCODER_FULL:
        return fail(self, is_key ? "a record's key is too large" : "a record is too large");
    default:
        return fail(self, encoder_reason(self->encoder));
    }
}

/* The time of the record: the written metadata column, else processing time. As Flink: without a
 * written timestamp column the record has the time at which it was processed. */
static int64_t timestamp_of(const struct table_sink *self, const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->context != NULL);
    const uint32_t column = self->plan->timestamp_column;
    if (column == UINT32_MAX || row_is_null(row, column)) {
        return self->parcel->processing_ms;
    }
    const struct timestamp *slot = row_slot(self->context->input, row, column);
    return slot->ms;
}

/* The partition to ask for: fixed keeps all of a lane's records in one, as Flink does with those
 * of a sink's subtask. */
static int32_t partition_of(const struct table_sink *self)
{
    switch (self->plan->partitioner) {
    case PLAN_PARTITIONER_FIXED:
        return (int32_t)self->context->lane;
    case PLAN_PARTITIONER_ROUND_ROBIN:
        return RECORD_PARTITION_NEXT;
    default:
        return RECORD_PARTITION_DEFAULT;
    }
}

static enum operator_verdict append(struct table_sink *self, const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->context != NULL);
    struct record record = {
        .offset = -1,
        .leader_epoch = -1,
        .timestamp_ms = timestamp_of(self, row),
        .arrival_ns = row->arrival_ns,
    };
    enum operator_verdict verdict = encode(self, false, row, &record.value, &record.value_is_null);
    if (verdict == OPERATOR_DONE) {
        verdict = encode(self, true, row, &record.key, &record.key_is_null);
    }
    if (verdict != OPERATOR_DONE) {
        return verdict;
    }
    switch (record_sink_append(self->edge.records, self->edge.topic, partition_of(self), &record)) {
    case RECORD_SINK_OK:
        self->counters.records++;
        self->counters.tombstones += record.value_is_null;
        return OPERATOR_DONE;
    case RECORD_SINK_FULL:
        return OPERATOR_AGAIN;
    default:
        return fail(self, "a record is larger than the topic takes");
    }
}

/* An upsert topic needs no -U where the +U of the same key follows: the key's newer value
 * replaces it anyhow. */
static enum operator_verdict take_row(struct table_sink *self, const struct row *row)
{
    ASSERT_SLOW(self->plan != NULL);
    ASSERT_SLOW(self->context != NULL);
    if (self->plan->connector == PLAN_CONNECTOR_UPSERT_KAFKA && row->kind == ROW_UPDATE_BEFORE &&
        self->plan->drop_update_before) {
        self->counters.update_before_rows++;
        return OPERATOR_DONE;
    }
    switch (encoder_admit(self->encoder, row)) {
    case ENCODER_OK:
        return append(self, row);
    case ENCODER_DROP:
        self->counters.null_rows_dropped++;
        return OPERATOR_DONE;
    default:
        return fail(self, encoder_reason(self->encoder));
    }
}

/* The place in the parcel is all that is kept over AGAIN; the row is encoded anew. */
static enum operator_verdict table_sink_process(struct sink *sink, const struct parcel *parcel)
{
    struct table_sink *self = self_of(sink);
    if (self->parcel == NULL) {
        self->parcel = parcel;
        self->row = parcel_first(parcel);
        self->row_index = 0;
    }
    ASSERT(self->parcel == parcel);
    enum operator_verdict verdict = OPERATOR_DONE;
    while (self->row_index < parcel->row_count) {
        ASSERT_SLOW(row_check(self->context->input, self->row, self->row->bytes));
        verdict = self->encoder == NULL ? OPERATOR_DONE : take_row(self, self->row);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->counters.rows++;
        self->row_index++;
        if (self->row_index < parcel->row_count) {
            self->row = parcel_next(self->row);
        }
    }
    self->parcel = NULL;
    return OPERATOR_DONE;
}

static bool table_sink_flushed(struct sink *sink)
{
    const struct table_sink *self = self_of(sink);
    return self->edge.records == NULL || record_sink_flushed(self->edge.records);
}

static struct span_mut make_buffer(size_t bytes)
{
    struct span_mut buffer = {.data = calloc(1, bytes), .bytes = bytes};
    return buffer;
}

static int create_parts(struct table_sink *self, struct error *error)
{
    ASSERT(self != NULL);
    const struct sink_context *context = self->context;
    const struct table_sink_environment *environment = context->environment;
    int code =
        environment->find(environment->context, context->node, context->lane, &self->edge, error);
    if (code != 0 || self->plan->connector == PLAN_CONNECTOR_BLACKHOLE) {
        self->edge.records = NULL;
        return code;
    }
    ASSERT(self->edge.records != NULL);
    const size_t value_bytes = self->edge.value_bytes_max;
    const size_t key_bytes = self->edge.key_bytes_max;
    self->value = make_buffer(value_bytes != 0 ? value_bytes : TABLE_SINK_VALUE_BYTES_DEFAULT);
    self->key = make_buffer(key_bytes != 0 ? key_bytes : TABLE_SINK_KEY_BYTES_DEFAULT);
    if (self->value.data == NULL || self->key.data == NULL) {
        return error_set(error, -ENOMEM, "out of memory for encoded records");
    }
    return encoder_create(self->plan, context->input, &self->encoder, error);
}

static void table_sink_close(struct sink *sink)
{
    struct table_sink *self = self_of(sink);
    encoder_destroy(self->encoder);
    free(self->value.data);
    free(self->key.data);
    free(self);
}

static int table_sink_open(struct sink_context *context, struct sink **out, struct error *error)
{
    ASSERT(context != NULL);
    ASSERT(out != NULL);
    ASSERT(context->environment != NULL);
    struct table_sink *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a sink");
    }
    self->base.ops = &table_sink_ops;
    self->context = context;
    self->plan = &context->node->sink;
    const int code = create_parts(self, error);
    if (code != 0) {
        table_sink_close(&self->base);
        return code;
    }
    *out = &self->base;
    return 0;
}

const struct sink_ops table_sink_ops = {
    .open = table_sink_open,
    .process = table_sink_process,
    .flushed = table_sink_flushed,
    .close = table_sink_close,
};

const struct table_sink_counters *table_sink_counters(const struct sink *sink)
{
    ASSERT(sink->ops == &table_sink_ops);
    return &((const struct table_sink *)sink)->counters;
}
