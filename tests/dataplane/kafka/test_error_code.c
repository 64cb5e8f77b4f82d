/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error codes against the Java client's classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/kafka/error_code.h"

static void test_classes_when_every_code_then_as_the_java_client(void **state)
{
    static const int16_t retriable[] = {2,  3,  5,  6,  7,  9,  13,  14,  15, 16,
                                        19, 20, 41, 51, 56, 70, 71,  72,  74, 75,
                                        78, 80, 83, 84, 88, 89, 100, 103, 106};
    static const int16_t refresh[] = {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103};
    for (int16_t code = -2; code < 140; code++) {
        bool wants_retry = false;
        bool wants_refresh = false;
        for (size_t i = 0; i < COUNT_OF(retriable); i++) {
            wants_retry |= retriable[i] == code;
        }
        for (size_t i = 0; i < COUNT_OF(refresh); i++) {
            wants_refresh |= refresh[i] == code;
        }
        assert_int_equal(kafka_error_is_retriable(code), wants_retry);
        assert_int_equal(kafka_error_wants_metadata(code), wants_refresh);
    }
}

static void test_name_when_unlisted_then_says_so(void **state)
{
    assert_string_equal(kafka_error_name(45), "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert_string_equal(kafka_error_name(-1), "UNKNOWN_SERVER_ERROR");
    assert_string_equal(kafka_error_name(12345), "UNLISTED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_when_every_code_then_as_the_java_client),
        cmocka_unit_test(test_name_when_unlisted_then_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
