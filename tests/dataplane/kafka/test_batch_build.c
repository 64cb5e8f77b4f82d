/* SPDX-License-Identifier: Apache-2.0 */
/* The batch builder against the layout and against an own reading of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dataplane/kafka/batch_build.h"
#include "tests/sim/broker.h"

static const struct kafka_stamp stamp = {
    .producer_id = 77, .producer_epoch = 3, .base_sequence = 2147483646};

static struct kafka_build_record record_of(const char *value)
{
    return (struct kafka_build_record){
        .value = kafka_span_of(value), .has_value = true, .timestamp_ms = 1000};
}

static void test_finish_when_one_record_then_kip98_bytes(void **state)
{
    uint8_t buffer[256];
    struct kafka_builder builder;
    struct kafka_header header = {.key = kafka_span_of("h"), .has_value = false};
    struct kafka_build_record record = {.key = kafka_span_of("k"),
                                        .has_key = true,
                                        .value = kafka_span_of("v"),
                                        .has_value = true,
                                        .headers = &header,
                                        .header_count = 1,
                                        .timestamp_ms = 1002};
    kafka_builder_init(&builder, (struct span_mut){buffer, sizeof(buffer)});
    assert_true(kafka_builder_append(&builder, &record));
    kafka_builder_finish(&builder, &stamp, NULL, (struct span_mut){0});
    static const uint8_t records[] = {0x18, 0, 0, 0, 2, 'k', 2, 'v', 2, 2, 'h', 1};
    assert_int_equal(builder.bytes, 61 + sizeof(records) + 1 - 1 + 0);
    assert_int_equal(load_be64(buffer), 0);
    assert_int_equal(load_be32(buffer + 8), builder.bytes - 12);
    assert_int_equal(load_be32(buffer + 12), 0xFFFFFFFF);
    assert_int_equal(buffer[16], 2);
    assert_int_equal(load_be16(buffer + 21), 0);
    assert_int_equal(load_be32(buffer + 23), 0);
    assert_int_equal(load_be64(buffer + 27), 1002);
    assert_int_equal(load_be64(buffer + 35), 1002);
    assert_int_equal(load_be64(buffer + 43), 77);
    assert_int_equal(load_be16(buffer + 51), 3);
    assert_int_equal(load_be32(buffer + 53), 2147483646);
    assert_int_equal(load_be32(buffer + 57), 1);
    assert_int_equal(load_be32(buffer + 17),
                     broker_crc32c((struct span){buffer + 21, builder.bytes - 21}));
    assert_int_equal(buffer[61], 2 * (builder.bytes - 62));
    assert_memory_equal(buffer + 62, records + 1, sizeof(records) - 1);
}

static void test_append_when_full_then_batch_is_as_before(void **state)
{
    uint8_t buffer[100];
    struct kafka_builder builder;
    struct kafka_build_record small = record_of("0123456789");
    struct kafka_build_record large = record_of("01234567890123456789012345678901234567890");
    kafka_builder_init(&builder, (struct span_mut){buffer, sizeof(buffer)});
    assert_true(kafka_builder_append(&builder, &small));
    struct kafka_builder before = builder;
    assert_false(kafka_builder_append(&builder, &large));
    assert_memory_equal(&before, &builder, sizeof(before));
    assert_true(kafka_builder_record_bytes(&large) >= 41);
}

static void test_finish_when_lz4_then_smaller_and_readable(void **state)
{
    const size_t buffer_bytes = 200000;
    uint8_t *buffer = malloc(buffer_bytes);
    uint8_t *scratch = malloc(buffer_bytes * 2);
    uint8_t *plain = malloc(buffer_bytes);
    size_t bytes = (kafka_codec_bytes() + 63) & ~(size_t)63;
    uint8_t *memory = aligned_alloc(64, bytes);
    struct kafka_codec *codec = kafka_codec_init(memory);
    struct kafka_builder builder;
    kafka_builder_init(&builder, (struct span_mut){buffer, buffer_bytes});
    struct kafka_build_record record = record_of("the same text again and again and again");
    int32_t count = 0;
    while (kafka_builder_append(&builder, &record)) {
        record.timestamp_ms -= 7;
        count++;
    }
    size_t before = builder.bytes;
    kafka_builder_finish(&builder, &stamp, codec, (struct span_mut){scratch, buffer_bytes * 2});
    assert_true(builder.bytes < before / 2);
    struct kafka_batch batch;
    struct span whole = {buffer, builder.bytes};
    assert_int_equal(kafka_batch_parse(whole, &batch), KAFKA_BATCH_OK);
    assert_true(kafka_batch_crc_is_good(whole));
    assert_int_equal(batch.codec, KAFKA_CODEC_LZ4);
    assert_int_equal(batch.record_count, count);
    assert_int_equal(batch.max_timestamp_ms, 1000);
    size_t made;
    assert_int_equal(kafka_codec_decompress(codec, batch.codec, batch.records,
                                            (struct span_mut){plain, buffer_bytes}, &made),
                     KAFKA_CODEC_OK);
    struct kafka_reader reader = kafka_reader_of((struct span){plain, made});
    for (int32_t i = 0; i < count; i++) {
        struct kafka_batch_record read;
        assert_true(kafka_batch_record_next(&batch, &reader, &read));
        assert_int_equal(read.offset, i);
        assert_int_equal(read.timestamp_ms, 1000 - 7 * i);
    }
    assert_int_equal(kafka_reader_left(&reader), 0);
    free(buffer);
    free(scratch);
    free(plain);
    free(memory);
}

static void test_stamp_when_changed_then_only_stamp_and_crc_change(void **state)
{
    uint8_t buffer[256];
    uint8_t copy[256];
    struct kafka_builder builder;
    struct kafka_build_record record = record_of("x");
    kafka_builder_init(&builder, (struct span_mut){buffer, sizeof(buffer)});
    assert_true(kafka_builder_append(&builder, &record));
    kafka_builder_finish(&builder, &stamp, NULL, (struct span_mut){0});
    memcpy(copy, buffer, builder.bytes);
    const struct kafka_stamp other = {.producer_id = 78, .producer_epoch = 4, .base_sequence = 0};
    kafka_batch_stamp((struct span_mut){buffer, builder.bytes}, &other);
    assert_memory_equal(buffer, copy, 17);
    assert_memory_equal(buffer + 21, copy + 21, 43 - 21);
    assert_memory_equal(buffer + 57, copy + 57, builder.bytes - 57);
    assert_true(kafka_batch_crc_is_good((struct span){buffer, builder.bytes}));
    kafka_batch_stamp((struct span_mut){buffer, builder.bytes}, &stamp);
    assert_memory_equal(buffer, copy, builder.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finish_when_one_record_then_kip98_bytes),
        cmocka_unit_test(test_append_when_full_then_batch_is_as_before),
        cmocka_unit_test(test_finish_when_lz4_then_smaller_and_readable),
        cmocka_unit_test(test_stamp_when_changed_then_only_stamp_and_crc_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
