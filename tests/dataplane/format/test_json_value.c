/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars into columns: the table of section "JSON source" of what Flink accepts, row by row. */
#include "dataplane/format/json_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/table.h"

static enum json_outcome convert(const char *type, enum json_kind kind, const char *text, bool iso,
                                 struct value *value)
{
    const struct type column = table_type(type);
    const struct span span = {(const uint8_t *)text, strlen(text)};
    return json_value_convert(&column, iso, kind, span, value);
}

static void check_i64(const char *type, enum json_kind kind, const char *text, int64_t expected)
{
    struct value value;
    assert_int_equal(convert(type, kind, text, false, &value), JSON_VALUE);
    assert_true(value.i64 == expected);
}

static void check_bad(const char *type, enum json_kind kind, const char *text)
{
    struct value value;
    assert_int_equal(convert(type, kind, text, false, &value), JSON_VALUE_BAD);
}

static void test_convert_when_integers_then_cut_or_bad(void **state)
{
    (void)state;
    check_i64("INT", JSON_INTEGER, "12", 12);
    check_i64("INT", JSON_FRACTION, "12.9", 12);
    check_i64("INT", JSON_FRACTION, "-12.9", -12);
    check_i64("INT", JSON_FRACTION, "1e2", 100);
    check_i64("INT", JSON_STRING, " 12 ", 12);
    check_i64("INT", JSON_STRING, "+5", 5);
    check_i64("INT", JSON_STRING, "\xef\xbc\x91\xef\xbc\x92", 12); /* full-width digits */
    check_i64("BIGINT", JSON_INTEGER, "-9223372036854775808", INT64_MIN);
    check_i64("BIGINT", JSON_FRACTION, "9.2233720368547758e18", INT64_MAX);
    check_i64("TINYINT", JSON_STRING, "-128", -128);
    check_bad("INT", JSON_INTEGER, "2147483648");
    check_bad("INT", JSON_FRACTION, "2147483647.5");
    check_bad("INT", JSON_FRACTION, "1e30");
    check_bad("INT", JSON_STRING, "12.9");
    check_bad("INT", JSON_STRING, "");
    check_bad("INT", JSON_STRING, "0x10");
    check_bad("INT", JSON_TRUE, "true");
    check_bad("BIGINT", JSON_INTEGER, "9223372036854775808");
    check_bad("TINYINT", JSON_INTEGER, "128");
    check_bad("SMALLINT", JSON_FRACTION, "1.0");
}

static void test_convert_when_boolean_then_never_bad(void **state)
{
    (void)state;
    check_i64("BOOLEAN", JSON_TRUE, "true", 1);
    check_i64("BOOLEAN", JSON_FALSE, "false", 0);
    check_i64("BOOLEAN", JSON_STRING, " TrUe ", 1);
    check_i64("BOOLEAN", JSON_STRING, "yes", 0);
    check_i64("BOOLEAN", JSON_INTEGER, "1", 0);
    check_i64("BOOLEAN", JSON_OBJECT, "{", 0);
}

static void test_convert_when_doubles_then_java_grammar(void **state)
{
    (void)state;
    struct value value;
    assert_int_equal(convert("DOUBLE", JSON_STRING, " 1.5d ", false, &value), JSON_VALUE);
    assert_true(value.f64 == 1.5);
    assert_int_equal(convert("DOUBLE", JSON_FRACTION, "1e400", false, &value), JSON_VALUE);
    assert_true(isinf(value.f64));
    assert_int_equal(convert("FLOAT", JSON_FRACTION, "16777217.000000001", false, &value),
                     JSON_VALUE);
    assert_true(value.f32 == 16777218.0f);
    assert_int_equal(convert("DOUBLE", JSON_STRING, "NaN", false, &value), JSON_VALUE);
    assert_true(isnan(value.f64));
    check_bad("DOUBLE", JSON_STRING, "1,5");
    check_bad("DOUBLE", JSON_STRING, "inf");
    check_bad("DOUBLE", JSON_TRUE, "true");
}

static void test_convert_when_decimals_then_half_up_and_null_past_precision(void **state)
{
    (void)state;
    struct value value;
    check_i64("DECIMAL(10,2)", JSON_FRACTION, "0.005", 1);
    check_i64("DECIMAL(10,2)", JSON_FRACTION, "-0.005", -1);
    check_i64("DECIMAL(10,2)", JSON_STRING, " 1e2 ", 10000);
    assert_int_equal(convert("DECIMAL(10,2)", JSON_FRACTION, "99999999.995", false, &value),
                     JSON_VALUE_NULL);
    assert_int_equal(convert("DECIMAL(38,4)", JSON_INTEGER, "-5", false, &value), JSON_VALUE);
    assert_true(value.i128 == -50000);
    check_bad("DECIMAL(10,2)", JSON_STRING, "x");
    check_bad("DECIMAL(10,2)", JSON_TRUE, "true");
}

static void check_stamp(const char *type, const char *text, bool iso, int64_t ms, int32_t ns)
{
    struct value value;
    const enum json_outcome outcome = convert(type, JSON_STRING, text, iso, &value);
    if (ns < 0) {
        assert_int_equal(outcome, JSON_VALUE_BAD);
        return;
    }
    assert_int_equal(outcome, JSON_VALUE);
    assert_true(value.timestamp.ms == ms && value.timestamp.ns == ns);
}

static void test_convert_when_timestamps_then_spellings_of_the_standard(void **state)
{
    (void)state;
    check_stamp("TIMESTAMP", "2024-02-29 12:34:56.123456789", false, 1709210096123, 456789);
    check_stamp("TIMESTAMP", "2024-02-30 12:34:56", false, 1709210096000, 0);
    check_stamp("TIMESTAMP", "2024-02-28 24:00:00", false, 1709164800000, 0);
    check_stamp("TIMESTAMP", "2024-02-29 12:34:56.", false, 1709210096000, 0);
    check_stamp("TIMESTAMP", "2024-02-29T12:34:56", false, 0, -1);
    check_stamp("TIMESTAMP", "2024-02-29 12:34", false, 0, -1);
    check_stamp("TIMESTAMP", "2024-02-29 12:34:56Z", false, 0, -1);
    check_stamp("TIMESTAMP", "2024-02-29T12:34", true, 1709210040000, 0);
    check_stamp("TIMESTAMP", "2024-02-29t12:34:56.5", true, 1709210096500, 0);
    check_stamp("TIMESTAMP", "2024-02-30T12:34:56", true, 0, -1);
    check_stamp("TIMESTAMP", "2024-02-28T24:00:00", true, 0, -1);
    check_stamp("TIMESTAMP_LTZ", "2024-02-29 12:34:56Z", false, 1709210096000, 0);
    check_stamp("TIMESTAMP_LTZ", "2024-02-29 12:34:56", false, 0, -1);
    check_stamp("TIMESTAMP_LTZ", "2023-02-29T12:34:56Z", true, 1677587696000, 0);
}

static void test_convert_when_days_and_times_then_strict(void **state)
{
    (void)state;
    check_i64("DATE", JSON_STRING, "2024-02-29", 19782);
    check_i64("TIME", JSON_STRING, "12:34:56.789", 45296789);
    check_i64("TIME", JSON_STRING, "24:00:00", 0);
    check_bad("DATE", JSON_STRING, "2024-02-30");
    check_bad("DATE", JSON_STRING, "2024-2-9");
    check_bad("DATE", JSON_STRING, "-0000-01-01");
    check_bad("DATE", JSON_INTEGER, "20240229");
    check_bad("TIME", JSON_STRING, "12:34");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert_when_integers_then_cut_or_bad),
        cmocka_unit_test(test_convert_when_boolean_then_never_bad),
        cmocka_unit_test(test_convert_when_doubles_then_java_grammar),
        cmocka_unit_test(test_convert_when_decimals_then_half_up_and_null_past_precision),
        cmocka_unit_test(test_convert_when_timestamps_then_spellings_of_the_standard),
        cmocka_unit_test(test_convert_when_days_and_times_then_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
