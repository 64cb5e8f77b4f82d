/* SPDX-License-Identifier: Apache-2.0 */
/* Parses record batches in place. Every length is checked against the bytes that are there; a
 * record must fill its own length exactly, as the Java client demands.
 *
 *     0  base offset i64      8  length i32        12 leader epoch i32   16 magic i8 = 2
 *     17 crc u32 (from 21)    21 attributes i16    23 last delta i32     27 base time i64
 *     35 max time i64         43 producer id i64   51 epoch i16          53 base sequence i32
 *     57 record count i32     61 records, perhaps compressed as a whole (KIP-98)
 *
 *     record: length, attributes i8, time delta, offset delta, key, value, [header: key, value]
 *             all lengths and deltas zig-zag varints */
#include "dataplane/kafka/batch.h"

#include <isa-l/crc.h>
#include <limits.h>

#define MAGIC_AT           16
#define CRC_AT             17
#define ATTRIBUTES_AT      21
#define RECORD_BYTES_MIN   7 /* length, attributes, two deltas, key, value, header count */
#define HEADER_BYTES_MIN   2
#define ATTRIBUTE_CODEC    0x07
#define ATTRIBUTE_LOG_TIME 0x08
#define ATTRIBUTE_TXN      0x10
#define ATTRIBUTE_CONTROL  0x20

uint32_t kafka_crc32c(struct span in)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    ASSERT(in.bytes <= INT_MAX);
    /* ISA-L folds the bytes in without the inversions before and after that CRC-32C has. Its
     * prototype lacks a const; it only reads. */
    union {
        const uint8_t *data;
        unsigned char *mutable_data;
    } from = {.data = in.data};
    return ~crc32_iscsi(from.mutable_data, (int)in.bytes, UINT32_MAX);
}

/* The checksum covers attributes to the end; offset, length, epoch and magic, which brokers
 * rewrite, are outside of it. */
bool kafka_batch_crc_is_good(struct span whole)
{
    ASSERT_SLOW(whole.data != NULL || whole.bytes == 0);
    ASSERT(whole.bytes >= KAFKA_BATCH_HEADER_BYTES);
    struct span covered = {.data = whole.data + ATTRIBUTES_AT,
                           .bytes = whole.bytes - ATTRIBUTES_AT};
    return kafka_crc32c(covered) == load_be32(whole.data + CRC_AT);
}

/* Offsets as in the drawing above; the caller has seen that all bytes are there. */
static void parse_header(const uint8_t *data, struct kafka_batch *out)
{
    ASSERT_SLOW(out != NULL);
    uint16_t attributes = load_be16(data + ATTRIBUTES_AT);
    out->leader_epoch = (int32_t)load_be32(data + 12);
    out->crc = load_be32(data + CRC_AT);
    out->codec = attributes & ATTRIBUTE_CODEC;
    out->timestamp_type =
        (attributes & ATTRIBUTE_LOG_TIME) ? KAFKA_TIMESTAMP_LOG_APPEND : KAFKA_TIMESTAMP_CREATE;
    out->is_transactional = attributes & ATTRIBUTE_TXN;
    out->is_control = attributes & ATTRIBUTE_CONTROL;
    out->last_offset_delta = (int32_t)load_be32(data + 23);
    out->base_timestamp_ms = (int64_t)load_be64(data + 27);
    out->max_timestamp_ms = (int64_t)load_be64(data + 35);
    out->producer_id = (int64_t)load_be64(data + 43);
    out->producer_epoch = (int16_t)load_be16(data + 51);
    out->base_sequence = (int32_t)load_be32(data + 53);
    out->record_count = (int32_t)load_be32(data + 57);
    out->records = (struct span){.data = data + KAFKA_BATCH_HEADER_BYTES,
                                 .bytes = out->total_bytes - KAFKA_BATCH_HEADER_BYTES};
}

/* Of counts and offsets that no broker can store: they would overflow further on. */
static bool header_is_possible(const struct kafka_batch *batch)
{
    ASSERT_SLOW(batch != NULL);
    if (batch->base_offset < 0 || batch->last_offset_delta < 0 || batch->record_count < 0) {
        return false;
    }
    if (batch->base_offset > INT64_MAX - INT32_MAX - 1) {
        return false;
    }
    return (int64_t)batch->record_count <= (int64_t)batch->last_offset_delta + 1;
}

/* SHORT is no error: a broker cuts its answer where the limit falls. total_bytes is set as soon
 * as the length is known, so that the caller can ask for more. */
enum kafka_batch_verdict kafka_batch_parse(struct span in, struct kafka_batch *out)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    ASSERT(out != NULL);
    *out = (struct kafka_batch){.magic = UINT8_MAX};
    if (in.bytes < KAFKA_BATCH_PREFIX_BYTES) {
        return KAFKA_BATCH_SHORT;
    }
    int32_t length = (int32_t)load_be32(in.data + 8);
    out->base_offset = (int64_t)load_be64(in.data);
    if (length <= 0) {
        return KAFKA_BATCH_BAD;
    }
    out->total_bytes = (size_t)length + KAFKA_BATCH_PREFIX_BYTES;
    if (in.bytes > MAGIC_AT) {
        out->magic = in.data[MAGIC_AT];
        if (out->magic < 2) {
            return KAFKA_BATCH_LEGACY;
        }
        if (out->magic > 2 || out->total_bytes < KAFKA_BATCH_HEADER_BYTES) {
            return KAFKA_BATCH_BAD;
        }
    }
    if (in.bytes < out->total_bytes) {
        return KAFKA_BATCH_SHORT;
    }
    if (out->total_bytes < KAFKA_BATCH_HEADER_BYTES) {
        return KAFKA_BATCH_BAD;
    }
    parse_header(in.data, out);
    return header_is_possible(out) ? KAFKA_BATCH_OK : KAFKA_BATCH_BAD;
}

/* -1 is null and anything below it is hostile; 0 is empty and keeps a null pointer, which no
 * reader follows. */
static struct span read_nullable(struct kafka_reader *reader, bool *has)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    ASSERT_SLOW(has != NULL);
    int32_t bytes = kafka_read_varint(reader);
    *has = bytes >= 0;
    if (bytes < -1) {
        reader->bad = true;
    }
    if (bytes <= 0) {
        return (struct span){0};
    }
    const uint8_t *at = kafka_read_raw(reader, (size_t)bytes);
    return (struct span){.data = at, .bytes = at == NULL ? 0 : (size_t)bytes};
}

static bool read_header(struct kafka_reader *reader, struct kafka_header *out)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    ASSERT_SLOW(out != NULL);
    bool has_key;
    out->key = read_nullable(reader, &has_key);
    if (!has_key) {
        reader->bad = true;
    }
    out->value = read_nullable(reader, &out->has_value);
    return !reader->bad;
}

/* The count is capped by what could fit: a record of ten bytes cannot claim a million headers.
 * They are only checked here and walked again by whoever wants them. */
static void read_headers(struct kafka_reader *body, struct kafka_batch_record *out)
{
    ASSERT_SLOW(body->at <= body->bytes);
    int32_t count = kafka_read_varint(body);
    if (count < 0 || (size_t)count > kafka_reader_left(body) / HEADER_BYTES_MIN) {
        body->bad = true;
        return;
    }
    size_t start = body->at;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_header header;
        if (!read_header(body, &header)) {
            return;
        }
    }
    out->header_count = (uint32_t)count;
    out->headers = (struct span){.data = body->data + start, .bytes = body->at - start};
}

static void make_absolute(const struct kafka_batch *batch, int64_t timestamp_delta,
                          int32_t offset_delta, struct kafka_batch_record *out)
{
    ASSERT(batch != NULL);
    ASSERT_SLOW(offset_delta >= 0);
    out->offset = batch->base_offset + offset_delta;
    /* With a delete horizon the base is some other moment and the delta 64 bits wide; the sum is
     * right all the same, and hostile deltas may wrap. */
    out->timestamp_ms = (int64_t)((uint64_t)batch->base_timestamp_ms + (uint64_t)timestamp_delta);
    if (batch->timestamp_type == KAFKA_TIMESTAMP_LOG_APPEND) {
        out->timestamp_ms = batch->max_timestamp_ms;
    }
}

bool kafka_batch_record_next(const struct kafka_batch *batch, struct kafka_reader *reader,
                             struct kafka_batch_record *out)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    int32_t bytes = kafka_read_varint(reader);
    if (bytes < RECORD_BYTES_MIN - 1) {
        reader->bad = true;
        return false;
    }
    const uint8_t *at = kafka_read_raw(reader, (size_t)bytes);
    if (at == NULL) {
        return false;
    }
    struct kafka_reader body = {.data = at, .bytes = (size_t)bytes};
    (void)kafka_read_i8(&body);
    int64_t timestamp_delta = kafka_read_varlong(&body);
    int32_t offset_delta = kafka_read_varint(&body);
    out->key = read_nullable(&body, &out->has_key);
    out->value = read_nullable(&body, &out->has_value);
    out->header_count = 0;
    out->headers = (struct span){0};
    read_headers(&body, out);
    if (body.bad || body.at != body.bytes || offset_delta < 0 ||
        offset_delta > batch->last_offset_delta) {
        reader->bad = true;
        return false;
    }
    make_absolute(batch, timestamp_delta, offset_delta, out);
    return true;
}

enum kafka_control kafka_batch_control(const struct kafka_batch *batch)
{
    ASSERT_SLOW(batch != NULL);
    ASSERT(batch->is_control);
    struct kafka_reader reader = kafka_reader_of(batch->records);
    struct kafka_batch_record record;
    if (!kafka_batch_record_next(batch, &reader, &record) || record.key.bytes < 4) {
        return KAFKA_CONTROL_OTHER;
    }
    uint16_t type = load_be16(record.key.data + 2);
    if (type > KAFKA_CONTROL_COMMIT) {
        return KAFKA_CONTROL_OTHER;
    }
    return (enum kafka_control)type;
}

bool kafka_header_next(struct span *rest, uint32_t *left, struct kafka_header *out)
{
    ASSERT_SLOW(left != NULL);
    ASSERT(out != NULL);
    if (*left == 0) {
        return false;
    }
    struct kafka_reader reader = kafka_reader_of(*rest);
    if (!read_header(&reader, out)) {
        *left = 0;
        return false;
    }
    (*left)--;
    rest->data += reader.at;
    rest->bytes -= reader.at;
    return true;
}
