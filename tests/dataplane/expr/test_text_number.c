/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text. Double and float forms are what JDK 17 printed for these bits; decimals are from
 * Flink's answers. */
#include "dataplane/expr/text_number.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct span span_of(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)};
}

static void check_double(double value, const char *expected)
{
    char text[DOUBLE_TEXT_BYTES + 1];
    text[double_print(value, text)] = '\0';
    assert_string_equal(text, expected);
}

static void check_float(float value, const char *expected)
{
    char text[DOUBLE_TEXT_BYTES + 1];
    text[float_print(value, text)] = '\0';
    assert_string_equal(text, expected);
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void test_double_print_at_form_borders_then_javas(void **state)
{
    check_double(0.0, "0.0");
    check_double(-0.0, "-0.0");
    check_double(1.0, "1.0");
    check_double(1e7, "1.0E7");
    check_double(9999999.0, "9999999.0");
    check_double(0.001, "0.001");
    check_double(9.999e-4, "9.999E-4");
    check_double(1e-5, "1.0E-5");
    check_double(123456.789, "123456.789");
    check_double(1.23456789e15, "1.23456789E15");
    check_double(9007199254740993.0, "9.007199254740992E15");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(1e308, "1.0E308");
    check_double(1.7976931348623157e308, "1.7976931348623157E308");
    check_double(NAN, "NaN");
    check_double(-INFINITY, "-Infinity");
    check_double(INFINITY, "Infinity");
}

static void test_double_print_at_jdk_quirks_then_not_shortest(void **state)
{
    check_double(2e23, "1.9999999999999998E23");
    check_double(4.9e-324, "4.9E-324");
    check_double(2.2250738585072014e-308, "2.2250738585072014E-308");
    check_double(from_bits(UINT64_C(0x3d10000000000000)), "1.4210854715202004E-14");
    check_double(from_bits(UINT64_C(0x3f60000000001ee8)), "0.0019531250000034313");
    check_double(from_bits(UINT64_C(0x3f64e52f77e667ae)), "0.0025506903759379895");
}

static void test_float_print_when_any_then_javas(void **state)
{
    check_float(0.1F, "0.1");
    check_float(3.4028235e38F, "3.4028235E38");
    check_float(1.4e-45F, "1.4E-45");
    check_float(2.8e-45F, "2.8E-45");
    check_float(16777217.0F, "1.6777216E7");
    check_float(1234567.9F, "1234567.9");
    check_float(33.333333F, "33.333332");
    check_float(1e10F, "1.0E10");
    check_float(1e-10F, "1.0E-10");
    check_float(-0.0F, "-0.0");
    check_float(2.14748365e9F, "2.14748365E9");
}

static void test_integer_print_at_limits_then_all_digits(void **state)
{
    char text[INTEGER_TEXT_BYTES + 1];
    text[integer_print(INT64_MIN, text)] = '\0';
    assert_string_equal(text, "-9223372036854775808");
    text[integer_print(INT64_MAX, text)] = '\0';
    assert_string_equal(text, "9223372036854775807");
    text[integer_print(0, text)] = '\0';
    assert_string_equal(text, "0");
}

static void test_double_parse_when_javas_grammar_then_read(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"42", 42},
        {" 42 ", 42},
        {"\t8\n", 8},
        {"+7", 7},
        {".5", 0.5},
        {"5.", 5},
        {"1e2", 100},
        {"1.0f", 1},
        {"1D", 1},
        {"1E-2", 0.01},
        {"-3.9", -3.9},
        {"Infinity", INFINITY},
        {"-Infinity", -INFINITY},
        {"1.7976931348623157e309", INFINITY},
        {"4.9e-325", 0},
        {"1e-999999999999", 0},
        {"0x1.8p1", 3},
        {"0x10p-1", 8},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        double value = -1;
        assert_true(double_parse(span_of(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    double value = 0;
    assert_true(double_parse(span_of("NaN"), &value));
    assert_true(isnan(value));
    assert_true(double_parse(span_of("-0"), &value));
    assert_true(value == 0 && signbit(value));
}

static void test_double_parse_when_no_number_then_false(void **state)
{
    static const char *const bad[] = {"",    "   ", "abc", "12abc", "0x1F",  "inf",     "nan",
                                      "1e",  "e1",  ".",   "1_000", "1,000", "1.2.3",   "1ff",
                                      "--1", "1e+", "0x",  "0xp1",  "+-1",   "infinity"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        double value;
        assert_false(double_parse(span_of(bad[i]), &value));
    }
}

static void test_float_parse_when_halfway_then_rounded_once(void **state)
{
    float value;
    assert_true(float_parse(span_of("1.00000005960464477540"), &value));
    assert_true(value == 1.00000011920928955078125F);
    assert_true(float_parse(span_of("9223372036854775807"), &value));
    check_float(value, "9.223372E18");
}

static void check_decimal(const char *text, uint8_t precision, uint8_t scale, const char *expected)
{
    __int128 value = -1;
    assert_int_equal(decimal_parse(span_of(text), precision, scale, &value), DECIMAL_OK);
    char printed[DECIMAL_TEXT_BYTES + 1];
    printed[decimal_print(value, scale, printed)] = '\0';
    assert_string_equal(printed, expected);
}

static void test_decimal_parse_when_scale_cut_then_half_away_from_zero(void **state)
{
    check_decimal("1.005", 10, 2, "1.01");
    check_decimal("-1.005", 10, 2, "-1.01");
    check_decimal("1.0049", 10, 2, "1.00");
    check_decimal("2.0000000000000000005", 38, 18, "2.000000000000000001");
    check_decimal("1e2", 10, 2, "100.00");
    check_decimal("1E-2", 10, 2, "0.01");
    check_decimal(".5", 10, 2, "0.50");
    check_decimal("+5.", 10, 2, "5.00");
    check_decimal("-0", 10, 2, "0.00");
    check_decimal("0.0000000000000000000000000000000000000000000000000001", 10, 2, "0.00");
    check_decimal("000000000000000000000000000000000000000000000000012.5", 10, 2, "12.50");
    check_decimal("99999999999999999999999999999999999999", 38, 0,
                  "99999999999999999999999999999999999999");
    check_decimal("0.123456789012345678901234567890123456785", 38, 38,
                  "0.12345678901234567890123456789012345679");
    check_decimal("1e-99999", 10, 2, "0.00");
}

static void test_decimal_parse_when_too_wide_then_overflow(void **state)
{
    __int128 value;
    assert_int_equal(decimal_parse(span_of("999.995"), 5, 2, &value), DECIMAL_OVERFLOW);
    assert_int_equal(decimal_parse(span_of("100000000"), 10, 2, &value), DECIMAL_OVERFLOW);
    assert_int_equal(decimal_parse(span_of("1e99999"), 10, 2, &value), DECIMAL_OVERFLOW);
    assert_int_equal(
        decimal_parse(span_of("999999999999999999999999999999999999999"), 38, 0, &value),
        DECIMAL_OVERFLOW);
}

static void test_decimal_parse_when_no_number_then_bad(void **state)
{
    static const char *const bad[] = {"",    " 1",   "abc", "1.0f",  "NaN",
                                      "1_0", "0x1F", "e1",  ".",     "-",
                                      "1e+", "1e",   "--1", "1.2.3", "1e99999999999"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        __int128 value;
        assert_int_equal(decimal_parse(span_of(bad[i]), 10, 2, &value), DECIMAL_BAD);
    }
}

static void check_stripped(const char *text, uint8_t scale, const char *expected)
{
    __int128 value = -1;
    assert_int_equal(decimal_parse(span_of(text), 38, scale, &value), DECIMAL_OK);
    char printed[DECIMAL_TEXT_BYTES + 1];
    printed[decimal_print_stripped(value, scale, printed)] = '\0';
    assert_string_equal(printed, expected);
}

static void test_decimal_print_stripped_when_json_then_as_the_sink(void **state)
{
    check_stripped("10.00", 2, "1E+1");
    check_stripped("-10.00", 2, "-1E+1");
    check_stripped("12300", 0, "1.23E+4");
    check_stripped("0.10", 2, "0.1");
    check_stripped("0.00", 2, "0");
    check_stripped("13.00", 2, "13");
    check_stripped("0.000000000000000001", 18, "1E-18");
    check_stripped("0.0000012", 7, "0.0000012");
    check_stripped("0.00000012", 8, "1.2E-7");
    check_stripped("9999999998000000.0001", 4, "9999999998000000.0001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double_print_at_form_borders_then_javas),
        cmocka_unit_test(test_double_print_at_jdk_quirks_then_not_shortest),
        cmocka_unit_test(test_float_print_when_any_then_javas),
        cmocka_unit_test(test_integer_print_at_limits_then_all_digits),
        cmocka_unit_test(test_double_parse_when_javas_grammar_then_read),
        cmocka_unit_test(test_double_parse_when_no_number_then_false),
        cmocka_unit_test(test_float_parse_when_halfway_then_rounded_once),
        cmocka_unit_test(test_decimal_parse_when_scale_cut_then_half_away_from_zero),
        cmocka_unit_test(test_decimal_parse_when_too_wide_then_overflow),
        cmocka_unit_test(test_decimal_parse_when_no_number_then_bad),
        cmocka_unit_test(test_decimal_print_stripped_when_json_then_as_the_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
