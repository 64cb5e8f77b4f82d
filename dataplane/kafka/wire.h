/* SPDX-License-Identifier: Apache-2.0 */
/* The primitives of Kafka's protocol: a reader and a writer over spans, for the old encoding
 * (fixed integers, i16 strings, i32 arrays) and the flexible one (varints, compact strings, tagged
 * fields). Errors are sticky: a caller reads a whole struct and asks once whether it was good.
 *
 * Limits: nothing is copied; spans point into the input. A count from the wire is never more than
 * the bytes that remain could hold. Source: Kafka protocol guide; KIP-482 (flexible versions). */
#pragma once

#include "base.h"

enum kafka_api {
    KAFKA_API_PRODUCE = 0,
    KAFKA_API_FETCH = 1,
    KAFKA_API_LIST_OFFSETS = 2,
    KAFKA_API_METADATA = 3,
    KAFKA_API_FIND_COORDINATOR = 10,
    KAFKA_API_API_VERSIONS = 18,
    KAFKA_API_INIT_PRODUCER_ID = 22,
    KAFKA_API_ADD_PARTITIONS_TO_TXN = 24,
    KAFKA_API_END_TXN = 26,
};

#define KAFKA_API_KEYS_MAX 96

/* Reads forward through bytes; bad stays set once anything did not fit. */
struct kafka_reader {
    const uint8_t *data;
    size_t bytes;
    size_t at;
    bool bad;
};

/* Writes forward into bytes; overflow stays set once anything did not fit. */
struct kafka_writer {
    uint8_t *data;
    size_t capacity;
    size_t at;
    bool overflow;
};

/* Starts a reader at the first byte of in.
 * threads  any */
static inline struct kafka_reader kafka_reader_of(struct span in)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    return (struct kafka_reader){.data = in.data, .bytes = in.bytes};
}

/* Tells how many bytes are left.
 * threads  any */
static inline size_t kafka_reader_left(const struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    return reader->bytes - reader->at;
}

/* Takes bytes as they are.
 * returns  where they start, NULL (and bad) when fewer are left
 * threads  any */
static inline const uint8_t *kafka_read_raw(struct kafka_reader *reader, size_t bytes)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    if (UNLIKELY(reader->bad || bytes > kafka_reader_left(reader))) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *at = reader->data + reader->at;
    reader->at += bytes;
    return at;
}

/* Takes a big-endian integer; 0 (and bad) when too few bytes are left.
 * threads  any */
static inline int8_t kafka_read_i8(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    const uint8_t *at = kafka_read_raw(reader, 1);
    return at == NULL ? 0 : (int8_t)at[0];
}

/* As kafka_read_i8, 2 bytes. */
static inline int16_t kafka_read_i16(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    const uint8_t *at = kafka_read_raw(reader, 2);
    return at == NULL ? 0 : (int16_t)load_be16(at);
}

/* As kafka_read_i8, 4 bytes. */
static inline int32_t kafka_read_i32(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    const uint8_t *at = kafka_read_raw(reader, 4);
    return at == NULL ? 0 : (int32_t)load_be32(at);
}

/* As kafka_read_i8, 8 bytes. */
static inline int64_t kafka_read_i64(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    const uint8_t *at = kafka_read_raw(reader, 8);
    return at == NULL ? 0 : (int64_t)load_be64(at);
}

/* Takes an unsigned varint of at most bits_max bits (32 or 64).
 * returns  0 (and bad) when it is cut off or longer than bits_max allows
 * threads  any */
static inline uint64_t kafka_read_uvarint_bits(struct kafka_reader *reader, uint32_t bits_max)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < bits_max; shift += 7) {
        const uint8_t *at = kafka_read_raw(reader, 1);
        if (UNLIKELY(at == NULL)) {
            return 0;
        }
        value |= (uint64_t)(at[0] & 0x7f) << shift;
        if (at[0] < 0x80) {
            if (UNLIKELY(bits_max == 32 && value > UINT32_MAX)) {
                break;
            }
            return value;
        }
    }
    reader->bad = true;
    return 0;
}

/* Takes an unsigned varint of 32 bits, at most 5 bytes.
 * threads  any */
static inline uint32_t kafka_read_uvarint(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    return (uint32_t)kafka_read_uvarint_bits(reader, 32);
}

/* Takes a zigzag varint of 32 bits, at most 5 bytes.
 * threads  any */
static inline int32_t kafka_read_varint(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint32_t raw = kafka_read_uvarint(reader);
    return (int32_t)((raw >> 1) ^ (0U - (raw & 1)));
}

/* Takes a zigzag varint of 64 bits, at most 10 bytes.
 * threads  any */
static inline int64_t kafka_read_varlong(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint64_t raw = kafka_read_uvarint_bits(reader, 64);
    return (int64_t)((raw >> 1) ^ (0U - (raw & 1)));
}

/* Takes a string of the old encoding: i16 length, -1 for null.
 * returns  data NULL for null; empty (and bad) when the length is not possible
 * threads  any */
struct span kafka_read_string(struct kafka_reader *reader);

/* Takes bytes of the old encoding: i32 length, -1 for null.
 * returns  as kafka_read_string
 * threads  any */
struct span kafka_read_bytes(struct kafka_reader *reader);

/* Takes the count of an array of the old encoding; null reads as 0.
 * item_bytes_min  the least that one item takes on the wire, above 0
 * returns         0 (and bad) when that many items cannot be in the bytes left
 * threads         any */
uint32_t kafka_read_array(struct kafka_reader *reader, size_t item_bytes_min);

/* Takes a compact string: uvarint length + 1, 0 for null.
 * returns  as kafka_read_string
 * threads  any */
struct span kafka_read_compact_string(struct kafka_reader *reader);

/* Takes the count of a compact array; null reads as 0.
 * returns  as kafka_read_array
 * threads  any */
uint32_t kafka_read_compact_array(struct kafka_reader *reader, size_t item_bytes_min);

/* Skips a block of tagged fields.
 * threads  any */
void kafka_read_tags(struct kafka_reader *reader);

/* Starts a writer at the first byte of into.
 * threads  any */
static inline struct kafka_writer kafka_writer_of(struct span_mut into)
{
    return (struct kafka_writer){.data = into.data, .capacity = into.bytes};
}

/* Reserves bytes for the caller to fill.
 * returns  NULL (and overflow) when they do not fit
 * threads  any */
static inline uint8_t *kafka_write_raw(struct kafka_writer *writer, size_t bytes)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    if (UNLIKELY(writer->overflow || bytes > writer->capacity - writer->at)) {
        writer->overflow = true;
        return NULL;
    }
    uint8_t *at = writer->data + writer->at;
    writer->at += bytes;
    return at;
}

/* Writes a big-endian integer.
 * threads  any */
static inline void kafka_write_i8(struct kafka_writer *writer, int8_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    uint8_t *at = kafka_write_raw(writer, 1);
    if (at != NULL) {
        at[0] = (uint8_t)value;
    }
}

/* As kafka_write_i8, 2 bytes. */
static inline void kafka_write_i16(struct kafka_writer *writer, int16_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    uint8_t *at = kafka_write_raw(writer, 2);
    if (at != NULL) {
        store_be16(at, (uint16_t)value);
    }
}

/* As kafka_write_i8, 4 bytes. */
static inline void kafka_write_i32(struct kafka_writer *writer, int32_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    uint8_t *at = kafka_write_raw(writer, 4);
    if (at != NULL) {
        store_be32(at, (uint32_t)value);
    }
}

/* As kafka_write_i8, 8 bytes. */
static inline void kafka_write_i64(struct kafka_writer *writer, int64_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    uint8_t *at = kafka_write_raw(writer, 8);
    if (at != NULL) {
        store_be64(at, (uint64_t)value);
    }
}

/* Writes an unsigned varint, 1 to 10 bytes.
 * threads  any */
void kafka_write_uvarint(struct kafka_writer *writer, uint64_t value);

/* Writes a zigzag varint, 1 to 10 bytes.
 * threads  any */
static inline void kafka_write_varint(struct kafka_writer *writer, int64_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    kafka_write_uvarint(writer, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

/* Copies bytes.
 * threads  any */
void kafka_write_span(struct kafka_writer *writer, struct span from);

/* Writes a string of the old encoding; data NULL and bytes 0 is null.
 * text     at most INT16_MAX bytes
 * threads  any */
void kafka_write_string(struct kafka_writer *writer, struct span text);

/* Writes a compact string.
 * threads  any */
void kafka_write_compact_string(struct kafka_writer *writer, struct span text);

/* Tells how many bytes a zigzag varint takes.
 * threads  any */
static inline uint32_t kafka_varint_bytes(int64_t value)
{
    uint64_t raw = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    return (uint32_t)(63 - __builtin_clzll(raw | 1)) / 7 + 1;
}

/* Makes a span over a NUL-terminated string.
 * threads  any */
static inline struct span kafka_span_of(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)};
}

/* Everything before the body of a request. */
struct kafka_request_header {
    enum kafka_api api;
    int16_t version;
    int32_t correlation;
    struct span client_id;
};

/* Tells whether an API uses the flexible encoding from this version on.
 * threads  any */
bool kafka_api_is_flexible(enum kafka_api api, int16_t version);

/* Names an API for messages.
 * returns  a static string
 * threads  any */
const char *kafka_api_name(enum kafka_api api);

/* Writes a request's size (left for the sender to fill in) and header, version 1 or 2
 * by the API's version.
 * threads  any */
void kafka_write_request_header(struct kafka_writer *writer,
                                const struct kafka_request_header *header);
