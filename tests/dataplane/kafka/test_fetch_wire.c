/* SPDX-License-Identifier: Apache-2.0 */
/* The cursor over Fetch v11 responses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/kafka/fetch_wire.h"
#include "tests/sim/broker.h"

static void put_partition(struct bytes *out, int32_t index, int32_t aborted, const char *records)
{
    bytes_i32(out, index);
    bytes_i16(out, 0);
    bytes_i64(out, 100);
    bytes_i64(out, 90);
    bytes_i64(out, 0);
    bytes_i32(out, aborted);
    for (int32_t i = 0; i < aborted; i++) {
        bytes_i64(out, 7);
        bytes_i64(out, 8);
    }
    bytes_i32(out, -1);
    bytes_i32(out, records == NULL ? -1 : (int32_t)strlen(records));
    bytes_put(out, records, records == NULL ? 0 : strlen(records));
}

static struct bytes response(void)
{
    struct bytes out = {0};
    bytes_i32(&out, 12);
    bytes_i16(&out, 0);
    bytes_i32(&out, 0);
    bytes_i32(&out, 3);
    bytes_string(&out, "a");
    bytes_i32(&out, 2);
    put_partition(&out, 0, -1, "records");
    put_partition(&out, 1, 2, NULL);
    bytes_string(&out, "empty");
    bytes_i32(&out, 0);
    bytes_string(&out, "b");
    bytes_i32(&out, 1);
    put_partition(&out, 5, 0, "");
    return out;
}

static void test_cursor_when_topics_and_partitions_then_each_in_turn(void **state)
{
    struct bytes out = response();
    struct span body = {out.data, out.count};
    struct kafka_fetch_cursor cursor = kafka_fetch_cursor_of(body);
    struct kafka_fetch_entry entry;
    assert_int_equal(cursor.throttle_ms, 12);
    assert_true(kafka_fetch_cursor_next(&cursor, body, &entry));
    assert_memory_equal(entry.topic.data, "a", 1);
    assert_int_equal(entry.records_bytes, 7);
    assert_memory_equal(body.data + entry.records_at, "records", 7);
    assert_int_equal(entry.high_watermark, 100);
    assert_int_equal(entry.last_stable_offset, 90);
    assert_true(kafka_fetch_cursor_next(&cursor, body, &entry));
    assert_int_equal(entry.partition, 1);
    assert_int_equal(entry.aborted_count, 2);
    assert_int_equal(load_be64(body.data + entry.aborted_at), 7);
    assert_int_equal(entry.records_bytes, 0);
    assert_true(kafka_fetch_cursor_next(&cursor, body, &entry));
    assert_memory_equal(entry.topic.data, "b", 1);
    assert_int_equal(entry.partition, 5);
    assert_false(kafka_fetch_cursor_next(&cursor, body, &entry));
    assert_false(cursor.bad);
    assert_true(kafka_fetch_is_well_formed(body));
    bytes_free(&out);
}

static void test_well_formed_when_cut_or_longer_then_not(void **state)
{
    struct bytes out = response();
    for (size_t bytes = 0; bytes < out.count; bytes++) {
        assert_false(kafka_fetch_is_well_formed((struct span){out.data, bytes}));
    }
    bytes_i8(&out, 0);
    assert_false(kafka_fetch_is_well_formed((struct span){out.data, out.count}));
    bytes_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor_when_topics_and_partitions_then_each_in_turn),
        cmocka_unit_test(test_well_formed_when_cut_or_longer_then_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
