/* SPDX-License-Identifier: Apache-2.0 */
/* The batch builder; see batch.h for the layout. */
#include "dataplane/kafka/batch_build.h"

#define TRANSACTIONAL_BIT 0x10
#define LENGTH_AT         8
#define CRC_AT            17
#define ATTRIBUTES_AT     21
#define PRODUCER_AT       43

void kafka_builder_init(struct kafka_builder *builder, struct span_mut into)
{
    ASSERT(builder != NULL);
    ASSERT(into.bytes >= KAFKA_BATCH_HEADER_BYTES);
    *builder = (struct kafka_builder){
        .data = into.data,
        .capacity = into.bytes,
        .bytes = KAFKA_BATCH_HEADER_BYTES,
        .base_timestamp_ms = -1,
        .max_timestamp_ms = -1,
    };
}

static size_t headers_bytes(const struct kafka_build_record *record)
{
    ASSERT_SLOW(record != NULL);
    if (record->encoded_headers.data != NULL) {
        return record->encoded_headers.bytes;
    }
    size_t bytes = 0;
    for (uint32_t i = 0; i < record->header_count; i++) {
        const struct kafka_header *header = &record->headers[i];
        bytes += (size_t)kafka_varint_bytes((int64_t)header->key.bytes) + header->key.bytes;
        bytes += (size_t)kafka_varint_bytes(header->has_value ? (int64_t)header->value.bytes : -1);
        bytes += header->has_value ? header->value.bytes : 0;
    }
    return bytes;
}

size_t kafka_builder_record_bytes(const struct kafka_build_record *record)
{
    ASSERT_SLOW(record != NULL);
    ASSERT(record->headers != NULL || record->header_count == 0 ||
           record->encoded_headers.data != NULL);
    return KAFKA_RECORD_OVERHEAD_BYTES + record->key.bytes + record->value.bytes +
           headers_bytes(record);
}

static void write_nullable(struct kafka_writer *writer, struct span from, bool has)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    ASSERT_SLOW(from.data != NULL || from.bytes == 0);
    kafka_write_varint(writer, has ? (int64_t)from.bytes : -1);
    if (has) {
        kafka_write_span(writer, from);
    }
}

static void write_headers(struct kafka_writer *writer, const struct kafka_build_record *record)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    ASSERT_SLOW(record != NULL);
    kafka_write_varint(writer, record->header_count);
    if (record->encoded_headers.data != NULL) {
        kafka_write_span(writer, record->encoded_headers);
        return;
    }
    for (uint32_t i = 0; i < record->header_count; i++) {
        write_nullable(writer, record->headers[i].key, true);
        write_nullable(writer, record->headers[i].value, record->headers[i].has_value);
    }
}

static size_t nullable_bytes(struct span from, bool has)
{
    ASSERT_SLOW(from.data != NULL || from.bytes == 0);
    return has ? kafka_varint_bytes((int64_t)from.bytes) + from.bytes : 1;
}

/* The bytes that the record's length field counts. */
static size_t body_bytes(const struct kafka_build_record *record, int64_t timestamp_delta,
                         int32_t offset_delta)
{
    ASSERT_SLOW(record != NULL);
    return 1 + (size_t)kafka_varint_bytes(timestamp_delta) + kafka_varint_bytes(offset_delta) +
           nullable_bytes(record->key, record->has_key) +
           nullable_bytes(record->value, record->has_value) +
           kafka_varint_bytes(record->header_count) + headers_bytes(record);
}

bool kafka_builder_append(struct kafka_builder *builder, const struct kafka_build_record *record)
{
    ASSERT_SLOW(builder->bytes <= builder->capacity);
    ASSERT(builder->bytes >= KAFKA_BATCH_HEADER_BYTES);
    ASSERT(builder->record_count < INT32_MAX);
    int64_t base = builder->has_base ? builder->base_timestamp_ms : record->timestamp_ms;
    int64_t delta = (int64_t)((uint64_t)record->timestamp_ms - (uint64_t)base);
    struct kafka_writer writer = {
        .data = builder->data, .capacity = builder->capacity, .at = builder->bytes};
    size_t body = body_bytes(record, delta, builder->record_count);
    kafka_write_varint(&writer, (int64_t)body);
    size_t start = writer.at;
    kafka_write_i8(&writer, 0);
    kafka_write_varint(&writer, delta);
    kafka_write_varint(&writer, builder->record_count);
    write_nullable(&writer, record->key, record->has_key);
    write_nullable(&writer, record->value, record->has_value);
    write_headers(&writer, record);
    if (writer.overflow) {
        return false;
    }
    ASSERT(writer.at - start == body);
    builder->bytes = writer.at;
    builder->base_timestamp_ms = base;
    builder->has_base = true;
    if (record->timestamp_ms > builder->max_timestamp_ms || builder->record_count == 0) {
        builder->max_timestamp_ms = record->timestamp_ms;
    }
    builder->record_count++;
    return true;
}

/* Replaces the records by their LZ4 frame when that is smaller; returns the codec used. */
static enum kafka_codec_kind compress(struct kafka_builder *builder, struct kafka_codec *codec,
                                      struct span_mut scratch)
{
    struct span plain = {.data = builder->data + KAFKA_BATCH_HEADER_BYTES,
                         .bytes = builder->bytes - KAFKA_BATCH_HEADER_BYTES};
    size_t made = kafka_codec_lz4_compress(codec, plain, scratch);
    if (made == 0 || made >= plain.bytes) {
        return KAFKA_CODEC_NONE;
    }
    memcpy(builder->data + KAFKA_BATCH_HEADER_BYTES, scratch.data, made);
    builder->bytes = KAFKA_BATCH_HEADER_BYTES + made;
    return KAFKA_CODEC_LZ4;
}

void kafka_builder_finish(struct kafka_builder *builder, const struct kafka_stamp *stamp,
                          struct kafka_codec *codec, struct span_mut scratch)
{
    ASSERT_SLOW(builder->bytes <= builder->capacity);
    ASSERT(builder->record_count > 0);
    enum kafka_codec_kind kind =
        codec == NULL ? KAFKA_CODEC_NONE : compress(builder, codec, scratch);
    struct kafka_writer writer = {.data = builder->data, .capacity = KAFKA_BATCH_HEADER_BYTES};
    kafka_write_i64(&writer, 0);
    kafka_write_i32(&writer, (int32_t)(builder->bytes - KAFKA_BATCH_PREFIX_BYTES));
    kafka_write_i32(&writer, -1); /* leader epoch: the broker's to write */
    kafka_write_i8(&writer, 2);
    kafka_write_i32(&writer, 0); /* checksum: by the stamp */
    kafka_write_i16(&writer,
                    (int16_t)((int16_t)kind | (stamp->is_transactional ? TRANSACTIONAL_BIT : 0)));
    kafka_write_i32(&writer, builder->record_count - 1);
    kafka_write_i64(&writer, builder->base_timestamp_ms);
    kafka_write_i64(&writer, builder->max_timestamp_ms);
    kafka_write_i64(&writer, -1);
    kafka_write_i16(&writer, -1);
    kafka_write_i32(&writer, -1);
    kafka_write_i32(&writer, builder->record_count);
    ASSERT(!writer.overflow && writer.at == KAFKA_BATCH_HEADER_BYTES);
    kafka_batch_stamp((struct span_mut){.data = builder->data, .bytes = builder->bytes}, stamp);
}

void kafka_batch_stamp(struct span_mut whole, const struct kafka_stamp *stamp)
{
    ASSERT(whole.bytes >= KAFKA_BATCH_HEADER_BYTES);
    ASSERT(load_be32(whole.data + LENGTH_AT) == whole.bytes - KAFKA_BATCH_PREFIX_BYTES);
    store_be64(whole.data + PRODUCER_AT, (uint64_t)stamp->producer_id);
    store_be16(whole.data + PRODUCER_AT + 8, (uint16_t)stamp->producer_epoch);
    store_be32(whole.data + PRODUCER_AT + 10, (uint32_t)stamp->base_sequence);
    struct span covered = {.data = whole.data + ATTRIBUTES_AT,
                           .bytes = whole.bytes - ATTRIBUTES_AT};
    store_be32(whole.data + CRC_AT, kafka_crc32c(covered));
}
