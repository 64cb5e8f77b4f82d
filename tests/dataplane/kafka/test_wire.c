/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol's primitives against the vectors of the varint encoding and hand-made bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/kafka/wire.h"

static struct kafka_reader reader_of(const void *data, size_t bytes)
{
    return kafka_reader_of((struct span){.data = data, .bytes = bytes});
}

static void test_varint_when_vectors_then_value_and_length(void **state)
{
    /* Zigzag: 0, -1, 1, -2, ... and the groups of seven bits, as protocol buffers document them. */
    static const struct {
        int64_t value;
        uint8_t bytes[10];
        size_t count;
    } vectors[] = {
        {0, {0x00}, 1},
        {-1, {0x01}, 1},
        {1, {0x02}, 1},
        {-2, {0x03}, 1},
        {63, {0x7e}, 1},
        {-64, {0x7f}, 1},
        {64, {0x80, 0x01}, 2},
        {300, {0xd8, 0x04}, 2},
        {2147483647, {0xfe, 0xff, 0xff, 0xff, 0x0f}, 5},
        {-2147483648, {0xff, 0xff, 0xff, 0xff, 0x0f}, 5},
        {INT64_MAX, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10},
        {INT64_MIN, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10},
    };
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        struct kafka_reader reader = reader_of(vectors[i].bytes, vectors[i].count);
        assert_int_equal(kafka_read_varlong(&reader), vectors[i].value);
        assert_false(reader.bad);
        assert_int_equal(reader.at, vectors[i].count);
        uint8_t into[16];
        struct kafka_writer writer = kafka_writer_of((struct span_mut){into, sizeof(into)});
        kafka_write_varint(&writer, vectors[i].value);
        assert_int_equal(writer.at, vectors[i].count);
        assert_memory_equal(into, vectors[i].bytes, vectors[i].count);
        assert_int_equal(kafka_varint_bytes(vectors[i].value), vectors[i].count);
    }
}

static void test_varint_when_too_long_or_cut_then_bad(void **state)
{
    static const uint8_t six[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x01};
    static const uint8_t wide[] = {0xff, 0xff, 0xff, 0xff, 0x7f};
    struct kafka_reader reader = reader_of(six, sizeof(six));
    assert_int_equal(kafka_read_varint(&reader), 0);
    assert_true(reader.bad);
    reader = reader_of(wide, sizeof(wide));
    (void)kafka_read_uvarint(&reader);
    assert_true(reader.bad);
    reader = reader_of(six, 3);
    (void)kafka_read_varlong(&reader);
    assert_true(reader.bad);
}

static void test_string_when_null_empty_or_impossible_then_told_apart(void **state)
{
    static const uint8_t null[] = {0xff, 0xff};
    static const uint8_t empty[] = {0x00, 0x00};
    static const uint8_t negative[] = {0xff, 0xfe};
    static const uint8_t cut[] = {0x00, 0x03, 'a', 'b'};
    struct kafka_reader reader = reader_of(null, 2);
    assert_null(kafka_read_string(&reader).data);
    assert_false(reader.bad);
    reader = reader_of(empty, 2);
    assert_non_null(kafka_read_string(&reader).data);
    reader = reader_of(negative, 2);
    (void)kafka_read_string(&reader);
    assert_true(reader.bad);
    reader = reader_of(cut, 4);
    (void)kafka_read_string(&reader);
    assert_true(reader.bad);
}

static void test_array_when_count_exceeds_bytes_then_bad(void **state)
{
    static const uint8_t huge[] = {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    static const uint8_t null[] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t fits[] = {0, 0, 0, 2, 1, 1, 2, 2};
    static const uint8_t compact[] = {3, 1, 1};
    struct kafka_reader reader = reader_of(huge, sizeof(huge));
    assert_int_equal(kafka_read_array(&reader, 1), 0);
    assert_true(reader.bad);
    reader = reader_of(null, sizeof(null));
    assert_int_equal(kafka_read_array(&reader, 4), 0);
    assert_false(reader.bad);
    reader = reader_of(fits, sizeof(fits));
    assert_int_equal(kafka_read_array(&reader, 2), 2);
    reader = reader_of(compact, sizeof(compact));
    assert_int_equal(kafka_read_compact_array(&reader, 1), 2);
    reader = reader_of(compact, sizeof(compact));
    (void)kafka_read_compact_array(&reader, 2);
    assert_true(reader.bad);
}

static void test_tags_when_unknown_then_skipped(void **state)
{
    static const uint8_t tags[] = {2, 0, 1, 0xaa, 5, 2, 0xbb, 0xcc, 0x77};
    struct kafka_reader reader = reader_of(tags, sizeof(tags));
    kafka_read_tags(&reader);
    assert_false(reader.bad);
    assert_int_equal(kafka_read_i8(&reader), 0x77);
}

static void test_request_header_when_flexible_then_tags_follow_the_old_string(void **state)
{
    uint8_t into[64];
    static const uint8_t wanted[] = {0, 18, 0, 3, 0, 0, 0, 7, 0, 2, 'm', 'e', 0};
    struct kafka_writer writer = kafka_writer_of((struct span_mut){into, sizeof(into)});
    struct kafka_request_header header = {KAFKA_API_API_VERSIONS, 3, 7, kafka_span_of("me")};
    kafka_write_request_header(&writer, &header);
    assert_int_equal(writer.at, 4 + sizeof(wanted));
    assert_memory_equal(into + 4, wanted, sizeof(wanted));
    writer = kafka_writer_of((struct span_mut){into, sizeof(into)});
    header.version = 0;
    kafka_write_request_header(&writer, &header);
    assert_int_equal(writer.at, 4 + sizeof(wanted) - 1);
}

static void test_writer_when_full_then_overflow_sticks(void **state)
{
    uint8_t into[5];
    struct kafka_writer writer = kafka_writer_of((struct span_mut){into, sizeof(into)});
    kafka_write_i32(&writer, 1);
    kafka_write_i16(&writer, 2);
    assert_true(writer.overflow);
    kafka_write_i8(&writer, 3);
    assert_int_equal(writer.at, 4);
}

static void test_compact_string_when_null_then_zero(void **state)
{
    uint8_t into[8];
    struct kafka_writer writer = kafka_writer_of((struct span_mut){into, sizeof(into)});
    kafka_write_compact_string(&writer, (struct span){0});
    kafka_write_compact_string(&writer, kafka_span_of("ab"));
    static const uint8_t wanted[] = {0, 3, 'a', 'b'};
    assert_memory_equal(into, wanted, sizeof(wanted));
    struct kafka_reader reader = reader_of(into, writer.at);
    assert_null(kafka_read_compact_string(&reader).data);
    assert_int_equal(kafka_read_compact_string(&reader).bytes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varint_when_vectors_then_value_and_length),
        cmocka_unit_test(test_varint_when_too_long_or_cut_then_bad),
        cmocka_unit_test(test_string_when_null_empty_or_impossible_then_told_apart),
        cmocka_unit_test(test_array_when_count_exceeds_bytes_then_bad),
        cmocka_unit_test(test_tags_when_unknown_then_skipped),
        cmocka_unit_test(test_request_header_when_flexible_then_tags_follow_the_old_string),
        cmocka_unit_test(test_writer_when_full_then_overflow_sticks),
        cmocka_unit_test(test_compact_string_when_null_then_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
