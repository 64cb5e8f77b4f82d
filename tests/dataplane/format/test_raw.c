/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed widths in both byte orders, there and back; the numbers are those of the case raw-format.
 */
#include "dataplane/format/raw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/table.h"

static void check(const char *type, bool little, const char *bytes, size_t count, int64_t expected)
{
    const struct type column = table_type(type);
    struct value value;
    uint8_t back[8];
    const struct span span = {(const uint8_t *)bytes, count};
    assert_true(raw_decode(&column, little, span, &value));
    assert_true(value.i64 == expected);
    assert_int_equal(raw_encode(&column, little, &value, (struct span_mut){back, 8}), count);
    assert_memory_equal(back, bytes, count);
}

static void test_decode_when_numbers_then_both_byte_orders(void **state)
{
    (void)state;
    check("BIGINT", false, "\0\0\0\0\0\0\0\1", 8, 1);
    check("BIGINT", false, "\xff\xff\xff\xff\xff\xff\xff\x80", 8, -128);
    check("BIGINT", true, "\0\0\0\0\0\0\0\1", 8, 72057594037927936);
    check("BIGINT", true, "\xff\xff\xff\xff\xff\xff\xff\x80", 8, -9151314442816847873);
    check("INT", false, "\x80\0\0\0", 4, INT32_MIN);
    check("SMALLINT", true, "\xfe\xff", 2, -2);
    check("TINYINT", false, "\xff", 1, -1);
    check("BOOLEAN", false, "\1", 1, 1);
    check("FLOAT", false, "\x3f\x80\0\0", 4, 0x3f800000);
    check("DOUBLE", true, "\0\0\0\0\0\0\xf0\x3f", 8, 0x3ff0000000000000);
}

static void test_decode_when_width_is_wrong_then_refused(void **state)
{
    (void)state;
    static const char *const TYPES[] = {"BIGINT", "INT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT"};
    static const uint8_t BYTES[16];
    struct value value;
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        const struct type column = table_type(TYPES[i]);
        assert_false(raw_decode(&column, false, (struct span){BYTES, 3}, &value));
        assert_false(raw_decode(&column, false, (struct span){BYTES, 16}, &value));
        assert_false(raw_decode(&column, false, (struct span){NULL, 0}, &value));
    }
}

static void test_decode_when_text_then_any_bytes(void **state)
{
    (void)state;
    const struct type column = table_type("STRING");
    struct value value;
    const struct span span = {(const uint8_t *)"\xff\0x", 3};
    assert_true(raw_decode(&column, false, span, &value));
    assert_ptr_equal(value.text.data, span.data);
    assert_int_equal(value.text.bytes, 3);
    uint8_t small[8];
    assert_int_equal(raw_encode(&column, false, &value, (struct span_mut){small, 8}), 3);
    value.text = (struct span){(const uint8_t *)"123456789", 9};
    assert_int_equal(raw_encode(&column, false, &value, (struct span_mut){small, 8}), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_when_numbers_then_both_byte_orders),
        cmocka_unit_test(test_decode_when_width_is_wrong_then_refused),
        cmocka_unit_test(test_decode_when_text_then_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
