/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches: the layout of KIP-98 byte by byte, CRC-32C's check value, and what brokers send
 * that is not a plain whole batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/kafka/batch.h"
#include "tests/sim/broker.h"
#include "tests/sim/broker_feed.h"

/* One record: key "k", value "v", one header "h" = null, delta 2, offset delta 0. */
static const uint8_t record_bytes[] = {0x16, 0x00, 0x04, 0x00, 0x02, 0x6b,
                                       0x02, 0x76, 0x02, 0x02, 0x68, 0x01};
#define RECORD_BYTES 12

static struct bytes build(struct feed_header header, const void *records, size_t bytes)
{
    struct bytes out = {0};
    feed_build(&header, (struct span){records, bytes}, &out);
    return out;
}

static struct feed_header plain_header(void)
{
    return (struct feed_header){.base_timestamp = 1000,
                                .max_timestamp = 1002,
                                .producer_id = -1,
                                .producer_epoch = -1,
                                .base_sequence = -1,
                                .record_count = 1};
}

static void test_crc32c_when_check_string_then_check_value(void **state)
{
    assert_int_equal(kafka_crc32c(kafka_span_of("123456789")), 0xE3069283);
    assert_int_equal(broker_crc32c(kafka_span_of("123456789")), 0xE3069283);
    uint8_t zeros[32] = {0}; /* RFC 3720, B.4 */
    assert_int_equal(kafka_crc32c((struct span){zeros, sizeof(zeros)}), 0x8A9136AA);
}

static void test_header_when_kip98_bytes_then_fields(void **state)
{
    static const uint8_t raw[61] = {
        0, 0,    0, 0,  0, 0, 1, 0, /* base offset 256 */
        0, 0,    0, 49,             /* length */
        0, 0,    0, 5,              /* leader epoch */
        2,                          /* magic */
        1, 2,    3, 4,              /* crc */
        0, 0x3c,                    /* zstd, log append, transactional, control */
        0, 0,    0, 9,              /* last offset delta */
        0, 0,    0, 0,  0, 0, 0, 7,  0, 0, 0, 0, 0, 0, 0, 8, /* timestamps */
        0, 0,    0, 0,  0, 0, 0, 11,                         /* producer id */
        0, 3,    0, 0,  0, 4, 0, 0,  0, 2,                   /* epoch, sequence, count */
    };
    struct kafka_batch batch;
    assert_int_equal(kafka_batch_parse((struct span){raw, sizeof(raw)}, &batch), KAFKA_BATCH_OK);
    assert_int_equal(batch.base_offset, 256);
    assert_int_equal(batch.total_bytes, 61);
    assert_int_equal(batch.leader_epoch, 5);
    assert_int_equal(batch.crc, 0x01020304);
    assert_int_equal(batch.codec, KAFKA_CODEC_ZSTD);
    assert_int_equal(batch.timestamp_type, KAFKA_TIMESTAMP_LOG_APPEND);
    assert_true(batch.is_transactional);
    assert_true(batch.is_control);
    assert_int_equal(kafka_batch_next_offset(&batch), 266);
    assert_int_equal(batch.base_timestamp_ms, 7);
    assert_int_equal(batch.max_timestamp_ms, 8);
    assert_int_equal(batch.producer_id, 11);
    assert_int_equal(batch.producer_epoch, 3);
    assert_int_equal(batch.base_sequence, 4);
    assert_int_equal(batch.record_count, 2);
    assert_int_equal(batch.records.bytes, 0);
}

static void test_record_when_header_is_null_then_told_apart(void **state)
{
    struct bytes out = build(plain_header(), record_bytes, RECORD_BYTES);
    struct span whole = {out.data, out.count};
    struct kafka_batch batch;
    assert_int_equal(kafka_batch_parse(whole, &batch), KAFKA_BATCH_OK);
    assert_true(kafka_batch_crc_is_good(whole));
    struct kafka_reader reader = kafka_reader_of(batch.records);
    struct kafka_batch_record record;
    assert_true(kafka_batch_record_next(&batch, &reader, &record));
    assert_int_equal(record.timestamp_ms, 1002);
    assert_int_equal(record.offset, 0);
    assert_memory_equal(record.key.data, "k", 1);
    assert_memory_equal(record.value.data, "v", 1);
    struct kafka_header header;
    assert_true(kafka_header_next(&record.headers, &record.header_count, &header));
    assert_memory_equal(header.key.data, "h", 1);
    assert_false(header.has_value);
    assert_false(kafka_header_next(&record.headers, &record.header_count, &header));
    assert_int_equal(kafka_reader_left(&reader), 0);
    out.data[40] ^= 1;
    assert_false(kafka_batch_crc_is_good(whole));
    bytes_free(&out);
}

static void test_parse_when_cut_at_each_byte_then_short(void **state)
{
    struct bytes out = build(plain_header(), record_bytes, RECORD_BYTES);
    for (size_t bytes = 0; bytes < out.count; bytes++) {
        struct kafka_batch batch;
        assert_int_equal(kafka_batch_parse((struct span){out.data, bytes}, &batch),
                         KAFKA_BATCH_SHORT);
        assert_int_equal(batch.total_bytes, bytes < 12 ? 0 : out.count);
    }
    bytes_free(&out);
}

static void test_parse_when_magic_is_old_then_legacy_and_never_read(void **state)
{
    struct bytes out = build(plain_header(), record_bytes, RECORD_BYTES);
    struct kafka_batch batch;
    for (uint8_t magic = 0; magic < 2; magic++) {
        out.data[16] = magic;
        assert_int_equal(kafka_batch_parse((struct span){out.data, out.count}, &batch),
                         KAFKA_BATCH_LEGACY);
        assert_int_equal(batch.magic, magic);
    }
    out.data[16] = 3;
    assert_int_equal(kafka_batch_parse((struct span){out.data, out.count}, &batch),
                     KAFKA_BATCH_BAD);
    bytes_free(&out);
}

static void test_parse_when_counts_are_impossible_then_bad(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } lies[] = {{8, 0},           {8, 0xFFFFFFFF}, {8, 48},        {23, 0xFFFFFFFF},
                {57, 0xFFFFFFFF}, {57, 2},         {0, 0xFFFFFFFF}};
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        struct bytes out = build(plain_header(), record_bytes, RECORD_BYTES);
        store_be32(out.data + lies[i].at, lies[i].value);
        struct kafka_batch batch;
        assert_int_equal(kafka_batch_parse((struct span){out.data, out.count}, &batch),
                         KAFKA_BATCH_BAD);
        bytes_free(&out);
    }
}

static void test_record_when_length_does_not_fit_its_fields_then_bad(void **state)
{
    /* Each byte of the record set to each of a few values: never a crash, and where the lengths
     * no longer add up, bad. Trailing bytes inside a record are bad, as in Java. */
    static const uint8_t trailing[] = {0x18, 0x00, 0x04, 0x00, 0x02, 0x6b, 0x02,
                                       0x76, 0x02, 0x02, 0x68, 0x01, 0x00};
    struct kafka_batch batch = {.last_offset_delta = 0, .record_count = 1};
    struct kafka_batch_record record;
    struct kafka_reader reader = kafka_reader_of((struct span){trailing, sizeof(trailing)});
    assert_false(kafka_batch_record_next(&batch, &reader, &record));
    assert_true(reader.bad);
    for (size_t at = 0; at < RECORD_BYTES; at++) {
        for (int value = 0; value < 256; value++) {
            uint8_t copy[RECORD_BYTES];
            memcpy(copy, record_bytes, sizeof(copy));
            copy[at] = (uint8_t)value;
            reader = kafka_reader_of((struct span){copy, sizeof(copy)});
            bool is_good = kafka_batch_record_next(&batch, &reader, &record);
            assert_int_equal(is_good, !reader.bad);
        }
    }
}

static void test_timestamp_when_log_append_or_horizon_then_right(void **state)
{
    struct kafka_batch batch = {.base_timestamp_ms = 5, .max_timestamp_ms = 77};
    struct kafka_batch_record record;
    struct kafka_reader reader = kafka_reader_of((struct span){record_bytes, RECORD_BYTES});
    batch.timestamp_type = KAFKA_TIMESTAMP_LOG_APPEND;
    assert_true(kafka_batch_record_next(&batch, &reader, &record));
    assert_int_equal(record.timestamp_ms, 77);
    /* A delete horizon in the base: the delta is far below 32 bits. */
    struct bytes body = {0};
    struct bytes records = {0};
    bytes_i8(&body, 0);
    bytes_varint(&body, -((int64_t)1 << 41));
    bytes_varint(&body, 0);
    bytes_varint(&body, -1);
    bytes_varint(&body, -1);
    bytes_varint(&body, 0);
    bytes_varint(&records, (int64_t)body.count);
    bytes_put(&records, body.data, body.count);
    batch = (struct kafka_batch){.base_timestamp_ms = ((int64_t)1 << 41) + 3};
    reader = kafka_reader_of((struct span){records.data, records.count});
    assert_true(kafka_batch_record_next(&batch, &reader, &record));
    assert_int_equal(record.timestamp_ms, 3);
    assert_false(record.has_key);
    assert_false(record.has_value);
    bytes_free(&body);
    bytes_free(&records);
}

static void test_control_when_marker_then_type(void **state)
{
    static const uint8_t marker[] = {0x20, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 7, 0};
    struct kafka_batch batch = {.is_control = true, .records = {marker, sizeof(marker)}};
    assert_int_equal(kafka_batch_control(&batch), KAFKA_CONTROL_COMMIT);
    uint8_t copy[sizeof(marker)];
    memcpy(copy, marker, sizeof(marker));
    copy[8] = 0;
    batch.records.data = copy;
    assert_int_equal(kafka_batch_control(&batch), KAFKA_CONTROL_ABORT);
    copy[8] = 5;
    assert_int_equal(kafka_batch_control(&batch), KAFKA_CONTROL_OTHER);
    batch.records.bytes = 3;
    assert_int_equal(kafka_batch_control(&batch), KAFKA_CONTROL_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_when_check_string_then_check_value),
        cmocka_unit_test(test_header_when_kip98_bytes_then_fields),
        cmocka_unit_test(test_record_when_header_is_null_then_told_apart),
        cmocka_unit_test(test_parse_when_cut_at_each_byte_then_short),
        cmocka_unit_test(test_parse_when_magic_is_old_then_legacy_and_never_read),
        cmocka_unit_test(test_parse_when_counts_are_impossible_then_bad),
        cmocka_unit_test(test_record_when_length_does_not_fit_its_fields_then_bad),
        cmocka_unit_test(test_timestamp_when_log_append_or_horizon_then_right),
        cmocka_unit_test(test_control_when_marker_then_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
