/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the protocol's primitives that are not worth inlining. */
#include "dataplane/kafka/wire.h"

#define SIZE_BYTES 4

static struct span read_sized(struct kafka_reader *reader, int64_t length)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    if (length == -1) {
        return (struct span){0};
    }
    if (length < 0) {
        reader->bad = true;
        return (struct span){0};
    }
    const uint8_t *at = kafka_read_raw(reader, (size_t)length);
    return (struct span){.data = at, .bytes = at == NULL ? 0 : (size_t)length};
}

struct span kafka_read_string(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    int16_t length = kafka_read_i16(reader);
    return read_sized(reader, length);
}

struct span kafka_read_bytes(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    int32_t length = kafka_read_i32(reader);
    return read_sized(reader, length);
}

struct span kafka_read_compact_string(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint32_t length = kafka_read_uvarint(reader);
    return read_sized(reader, (int64_t)length - 1);
}

static uint32_t check_count(struct kafka_reader *reader, int64_t count, size_t item_bytes_min)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    ASSERT(item_bytes_min > 0);
    if (count == -1) {
        return 0;
    }
    if (reader->bad || count < 0 || (uint64_t)count > kafka_reader_left(reader) / item_bytes_min) {
        reader->bad = true;
        return 0;
    }
    return (uint32_t)count;
}

uint32_t kafka_read_array(struct kafka_reader *reader, size_t item_bytes_min)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    int32_t count = kafka_read_i32(reader);
    return check_count(reader, count, item_bytes_min);
}

uint32_t kafka_read_compact_array(struct kafka_reader *reader, size_t item_bytes_min)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint32_t count = kafka_read_uvarint(reader);
    return check_count(reader, (int64_t)count - 1, item_bytes_min);
}

void kafka_read_tags(struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    uint32_t count = kafka_read_uvarint(reader);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        (void)kafka_read_uvarint(reader);
        uint32_t bytes = kafka_read_uvarint(reader);
        (void)kafka_read_raw(reader, bytes);
    }
}

void kafka_write_uvarint(struct kafka_writer *writer, uint64_t value)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    uint8_t bytes[10];
    size_t count = 0;
    while (value >= 0x80) {
        bytes[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[count++] = (uint8_t)value;
    ASSERT(count <= sizeof(bytes));
    kafka_write_span(writer, (struct span){.data = bytes, .bytes = count});
}

void kafka_write_span(struct kafka_writer *writer, struct span from)
{
    ASSERT_SLOW(writer->at <= writer->capacity);
    ASSERT(from.data != NULL || from.bytes == 0);
    uint8_t *at = kafka_write_raw(writer, from.bytes);
    if (at != NULL && from.bytes > 0) {
        memcpy(at, from.data, from.bytes);
    }
}

void kafka_write_string(struct kafka_writer *writer, struct span text)
{
    ASSERT(text.bytes <= INT16_MAX);
    kafka_write_i16(writer, text.data == NULL ? -1 : (int16_t)text.bytes);
    kafka_write_span(writer, text);
}

void kafka_write_compact_string(struct kafka_writer *writer, struct span text)
{
    ASSERT(text.bytes < UINT32_MAX);
    kafka_write_uvarint(writer, text.data == NULL ? 0 : text.bytes + 1);
    kafka_write_span(writer, text);
}

bool kafka_api_is_flexible(enum kafka_api api, int16_t version)
{
    ASSERT(version >= 0);
    switch (api) {
    case KAFKA_API_PRODUCE:
        return version >= 9;
    case KAFKA_API_FETCH:
        return version >= 12;
    case KAFKA_API_LIST_OFFSETS:
        return version >= 6;
    case KAFKA_API_METADATA:
        return version >= 9;
    case KAFKA_API_API_VERSIONS:
        return version >= 3;
    case KAFKA_API_INIT_PRODUCER_ID:
        return version >= 2;
    case KAFKA_API_FIND_COORDINATOR:
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
    case KAFKA_API_END_TXN:
        return version >= 3;
    }
    return false;
}

const char *kafka_api_name(enum kafka_api api)
{
    switch (api) {
    case KAFKA_API_PRODUCE:
        return "Produce";
    case KAFKA_API_FETCH:
        return "Fetch";
    case KAFKA_API_LIST_OFFSETS:
        return "ListOffsets";
    case KAFKA_API_METADATA:
        return "Metadata";
    case KAFKA_API_API_VERSIONS:
        return "ApiVersions";
    case KAFKA_API_INIT_PRODUCER_ID:
        return "InitProducerId";
    case KAFKA_API_FIND_COORDINATOR:
        return "FindCoordinator";
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
        return "AddPartitionsToTxn";
    case KAFKA_API_END_TXN:
        return "EndTxn";
    }
    return "unknown";
}

void kafka_write_request_header(struct kafka_writer *writer,
                                const struct kafka_request_header *header)
{
    ASSERT(header->version >= 0);
    ASSERT(header->correlation >= 0);
    (void)kafka_write_raw(writer, SIZE_BYTES);
    kafka_write_i16(writer, (int16_t)header->api);
    kafka_write_i16(writer, header->version);
    kafka_write_i32(writer, header->correlation);
    kafka_write_string(writer, header->client_id);
    if (kafka_api_is_flexible(header->api, header->version)) {
        kafka_write_uvarint(writer, 0);
    }
}
