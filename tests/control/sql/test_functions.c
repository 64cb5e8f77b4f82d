/* SPDX-License-Identifier: Apache-2.0 */
/* Typing and folding of calls. Types and values are what a Flink 2.3 answered (TYPEOF and the
 * answers of the scalar cases). */
#include <errno.h>

#include "tests/control/sql/bind_testing.h"

#define COLUMN(of) column(0, of)

static void test_arithmetic_type_when_whole_numbers_then_flinks(void **state)
{
    const struct expr *t = column(0, kind(TYPE_TINYINT));
    const struct expr *s = column(1, kind(TYPE_SMALLINT));
    const struct expr *i = column(2, kind(TYPE_INT));
    const struct expr *l = column(3, kind(TYPE_BIGINT));
    TYPED(CALL("+", t, t), "TINYINT");
    TYPED(CALL("+", t, i), "INT");
    TYPED(CALL("*", i, l), "BIGINT");
    TYPED(CALL("/", i, l), "BIGINT");
    TYPED(CALL("MOD", l, i), "INT");
    TYPED(CALL("%", l, t), "TINYINT");
    TYPED(CALL("MOD", t, l), "BIGINT");
    TYPED(CALL("-", s, t), "SMALLINT");
    TYPED(CALL("NEGATE", t), "TINYINT");
}

static void test_arithmetic_type_when_decimals_then_flinks(void **state)
{
    const struct expr *a = column(0, decimal_type(10, 2));
    const struct expr *b = column(1, decimal_type(5, 3));
    const struct expr *c = column(2, decimal_type(38, 18));
    const struct expr *d = column(3, decimal_type(38, 0));
    const struct expr *e = column(4, decimal_type(20, 10));
    const struct expr *l = column(5, kind(TYPE_BIGINT));
    const struct expr *id = column(6, kind(TYPE_INT));
    const struct expr *t = column(7, kind(TYPE_TINYINT));
    TYPED(CALL("+", a, b), "DECIMAL(12, 3)");
    TYPED(CALL("*", a, b), "DECIMAL(16, 5)");
    TYPED(CALL("/", a, b), "DECIMAL(19, 8)");
    TYPED(CALL("MOD", a, b), "DECIMAL(5, 3)");
    TYPED(CALL("/", b, a), "DECIMAL(18, 14)");
    TYPED(CALL("+", a, c), "DECIMAL(38, 17)");
    TYPED(CALL("*", a, c), "DECIMAL(38, 9)");
    TYPED(CALL("/", a, c), "DECIMAL(38, 12)");
    TYPED(CALL("*", c, c), "DECIMAL(38, 6)");
    TYPED(CALL("/", c, c), "DECIMAL(38, 6)");
    TYPED(CALL("+", d, d), "DECIMAL(38, 0)");
    TYPED(CALL("/", d, d), "DECIMAL(38, 6)");
    TYPED(CALL("+", d, c), "DECIMAL(38, 6)");
    TYPED(CALL("*", e, e), "DECIMAL(38, 17)");
    TYPED(CALL("/", e, e), "DECIMAL(38, 18)");
    TYPED(CALL("+", a, id), "DECIMAL(13, 2)");
    TYPED(CALL("/", a, id), "DECIMAL(21, 13)");
    TYPED(CALL("/", id, a), "DECIMAL(23, 11)");
    TYPED(CALL("/", l, a), "DECIMAL(32, 11)");
    TYPED(CALL("*", a, t), "DECIMAL(14, 2)");
    TYPED(CALL("%", a, INT(7)), "DECIMAL(10, 2)");
    TYPED(CALL("%", id, a), "DECIMAL(10, 2)");
    TYPED(CALL("+", id, DECIMAL("1.5", 2, 1)), "DECIMAL(12, 1)");
    TYPED(CALL("/", INT(100), DECIMAL("3.0", 2, 1)), "DECIMAL(17, 6) NOT NULL");
    TYPED(CALL("ROUND", a, INT(1)), "DECIMAL(10, 1)");
    TYPED(CALL("ROUND", a), "DECIMAL(9, 0)");
    TYPED(CALL("ROUND", a, id), "DECIMAL(10, 2)");
    TYPED(CALL("TRUNCATE", c, INT(2)), "DECIMAL(23, 2)");
    TYPED(CALL("ROUND", c, INT(20)), "DECIMAL(38, 18)");
    TYPED(CALL("ROUND", e, INT(-2)), "DECIMAL(11, 0)");
    TYPED(CALL("FLOOR", a), "DECIMAL(10, 0)");
    TYPED(CALL("CEIL", b), "DECIMAL(5, 0)");
    TYPED(CALL("SIGN", a), "DECIMAL(10, 2)");
    TYPED(CALL("COALESCE", a, b), "DECIMAL(11, 3)");
    TYPED(CALL("IF", CALL(">", a, INT(0)), a, id), "DECIMAL(12, 2)");
    TYPED(CALL("CASE", CALL(">", a, INT(0)), a, c), "DECIMAL(38, 18)");
    TYPED(CALL("GREATEST", a, b), "DECIMAL(11, 3)");
    TYPED(CALL("NULLIF", a, b), "DECIMAL(10, 2)");
    TYPED(CALL("+", CALL("+", a, b), c), "DECIMAL(38, 17)");
    TYPED(CALL("/", CALL("+", a, b), INT(2)), "DECIMAL(23, 14)");
}

static void test_arithmetic_type_when_approximate_then_first_wins(void **state)
{
    const struct expr *f = column(0, kind(TYPE_FLOAT));
    const struct expr *x = column(1, kind(TYPE_DOUBLE));
    const struct expr *i = column(2, kind(TYPE_INT));
    const struct expr *p = column(3, decimal_type(10, 2));
    TYPED(CALL("+", x, f), "DOUBLE");
    TYPED(CALL("+", f, x), "FLOAT");
    TYPED(CALL("+", f, i), "FLOAT");
    TYPED(CALL("+", f, p), "DOUBLE");
    TYPED(CALL("+", p, x), "DOUBLE");
    TYPED(CALL("COALESCE", f, i), "FLOAT");
    TYPED(CALL("GREATEST", p, x), "DOUBLE");
    TYPED(CALL("POWER", i, i), "DOUBLE");
    TYPED(CALL("PI"), "DOUBLE NOT NULL");
}

static void test_text_type_when_lengths_then_flinks(void **state)
{
    const struct expr *c = column(0, char_type(5));
    const struct expr *v = column(1, text_type(4));
    const struct expr *s = column(2, text_type(TYPE_LENGTH_MAX));
    const struct expr *i = column(3, kind(TYPE_INT));
    const struct expr *b = column(4, kind(TYPE_BOOLEAN));
    TYPED(CALL("||", c, v), "VARCHAR(9)");
    TYPED(CALL("||", c, c), "CHAR(10)");
    TYPED(CALL("||", c, s), "STRING");
    TYPED(CALL("UPPER", v), "VARCHAR(4)");
    TYPED(CALL("SUBSTRING", c, INT(1), INT(2)), "VARCHAR(5)");
    TYPED(CALL("CONCAT", v, TEXT("a")), "STRING");
    TYPED(CALL("OVERLAY", v, TEXT("a"), INT(1)), "VARCHAR(5)");
    TYPED(CALL("TRIM", v), "VARCHAR(4)");
    TYPED(CALL("MD5", v), "CHAR(32)");
    TYPED(CALL("CHAR_LENGTH", v), "INT");
    TYPED(CALL("CASE", b, TEXT("a"), TEXT("bcd")), "VARCHAR(3) NOT NULL");
    TYPED(CALL("CASE", b, TEXT("ab"), TEXT("cd")), "CHAR(2) NOT NULL");
    TYPED(CALL("CASE", b, TEXT("a")), "CHAR(1)");
    TYPED(CALL("CASE", b, v, TEXT("bcdefg")), "VARCHAR(6)");
    TYPED(CALL("IF", b, TEXT("a"), TEXT("bc")), "VARCHAR(2)");
    TYPED(CALL("COALESCE", v, TEXT("abcdefg")), "VARCHAR(7) NOT NULL");
    TYPED(CALL("NULLIF", v, TEXT("x")), "VARCHAR(4)");
    TYPED(CALL("GREATEST", TEXT("m"), s), "STRING");
    TYPED(CAST(i, char_type(3)), "CHAR(3)");
    TYPED(CALL("SPLIT_INDEX", v, TEXT(","), INT(1)), "STRING");
    TYPED(CALL("SPLIT_INDEX", v, INT(45), INT(1)), "STRING");
}

static void test_time_type_when_any_then_flinks(void **state)
{
    const struct expr *ts = column(0, time_type(TYPE_TIMESTAMP, 3));
    const struct expr *d = column(1, kind(TYPE_DATE));
    const struct expr *z = column(2, time_type(TYPE_TIMESTAMP_LTZ, 3));
    const struct expr *day = literal(kind(TYPE_INTERVAL_DAY_TIME), (struct value){.i64 = 86400000});
    TYPED(CALL("EXTRACT", TEXT("YEAR"), ts), "BIGINT");
    TYPED(CALL("YEAR", ts), "BIGINT");
    TYPED(CALL("FLOOR", ts, TEXT("DAY")), "TIMESTAMP(3)");
    TYPED(CALL("CEIL", z, TEXT("DAY")), "TIMESTAMP_LTZ(3)");
    TYPED(CALL("TIMESTAMPADD", TEXT("HOUR"), INT(1), d), "TIMESTAMP(6)");
    TYPED(CALL("TIMESTAMPADD", TEXT("MONTH"), INT(1), d), "DATE");
    TYPED(CALL("+", ts, day), "TIMESTAMP(3)");
    TYPED(CALL("+", day, d), "DATE");
    TYPED(CALL("-", z, day), "TIMESTAMP_LTZ(3)");
    TYPED(CALL("TIMESTAMPDIFF", TEXT("DAY"), ts, ts), "INT");
    TYPED(CALL("DATE_FORMAT", ts, TEXT("yyyy")), "STRING");
    TYPED(CALL("TO_TIMESTAMP", TEXT("x"), TEXT("yyyy")), "TIMESTAMP(3)");
    TYPED(CALL("TO_TIMESTAMP_LTZ", column(3, kind(TYPE_BIGINT)), INT(0)), "TIMESTAMP_LTZ(3)");
}

static void test_typeof_when_any_then_printed(void **state)
{
    SHOWS(CALL("TYPEOF", DECIMAL("12.3400", 6, 4)), "'DECIMAL(6, 4) NOT NULL'");
    SHOWS(CALL("TYPEOF", TEXT("abc")), "'CHAR(3) NOT NULL'");
    SHOWS(CALL("TYPEOF", column(0, kind(TYPE_INT))), "'INT'");
    SHOWS(CALL("TYPEOF", literal(kind(TYPE_INTERVAL_DAY_TIME), (struct value){.i64 = 1})),
          "'INTERVAL SECOND(3) NOT NULL'");
}

static void test_integers_when_past_the_end_then_wrap(void **state)
{
    SHOWS(CALL("+", INT(2147483647), INT(1)), "-2147483648");
    SHOWS(CALL("+", TINYINT(127), TINYINT(1)), "-128");
    SHOWS(CALL("+", TINYINT(127), INT(1)), "128");
    SHOWS(CALL("-", SMALLINT(-32768), SMALLINT(1)), "32767");
    SHOWS(CALL("+", BIGINT(INT64_MAX), INT(1)), "-9223372036854775808");
    SHOWS(CALL("*", INT(46341), INT(46341)), "-2147479015");
    SHOWS(CALL("*", BIGINT(3037000500), BIGINT(3037000500)), "-9223372036709301616");
    SHOWS(CALL("NEGATE", INT(INT32_MIN)), "-2147483648");
    SHOWS(CALL("/", INT(INT32_MIN), INT(-1)), "-2147483648");
    SHOWS(CALL("/", INT(-7), INT(2)), "-3");
    SHOWS(CALL("%", INT(-7), INT(3)), "-1");
    SHOWS(CALL("MOD", INT(7), INT(-3)), "1");
    SHOWS(CALL("ABS", INT(INT32_MIN)), "-2147483648");
    SHOWS(CALL("/", INT(1), INT(0)), "/(1, 0)");
}

static void test_decimals_when_computed_then_flinks(void **state)
{
    const struct expr *a = DECIMAL("10.00", 10, 2);
    SHOWS(CALL("+", a, DECIMAL("3.00", 10, 2)), "13.00");
    SHOWS(CALL("/", a, DECIMAL("3.00", 10, 2)), "3.3333333333333");
    SHOWS(CALL("/", DECIMAL("-1.01", 10, 2), DECIMAL("-1.02", 10, 2)), "0.9901960784314");
    SHOWS(CALL("MOD", DECIMAL("-1.01", 10, 2), DECIMAL("-1.02", 10, 2)), "-1.01");
    SHOWS(CALL("*", DECIMAL("99999999.99", 10, 2), DECIMAL("99999999.99", 10, 2)),
          "9999999998000000.0001");
    SHOWS(CALL("*", DECIMAL("0.05", 10, 2), DECIMAL("0.0825", 4, 4)), "0.004125");
    SHOWS(CALL("+", DECIMAL("12345678901234567890.123456789012345678", 38, 18),
               DECIMAL("12345678901234567890.123456789012345678", 38, 18)),
          "24691357802469135780.24691357802469136");
    SHOWS(CALL("/", DECIMAL("12345678901234567890.123456789012345678", 38, 18), INT(3)),
          "4115226300411522630.041152263004115226");
}

static void test_decimal_divide_when_wide_then_digits_of_java(void **state)
{
    SHOWS(CALL("/", DECIMAL("1.000000000000000001", 38, 18), INT(3)), "0.333333333333333334");
}

static void test_cast_when_numbers_then_flinks(void **state)
{
    SHOWS(CAST(DOUBLE(128.75), kind(TYPE_TINYINT)), "-128");
    SHOWS(CAST(DOUBLE(1e300), kind(TYPE_INT)), "2147483647");
    SHOWS(CAST(DOUBLE(1e300), kind(TYPE_TINYINT)), "-1");
    SHOWS(CAST(DECIMAL("-10.25", 4, 2), kind(TYPE_BIGINT)), "-10");
    SHOWS(CAST(DECIMAL("999.995", 6, 3), decimal_type(5, 2)), "NULL");
    SHOWS(CAST(DECIMAL("999.994", 6, 3), decimal_type(5, 2)), "999.99");
    SHOWS(CAST(DOUBLE(1e7), text_type(TYPE_LENGTH_MAX)), "'1.0E7'");
    SHOWS(CAST(BOOL(1), text_type(3)), "'TRU'");
    SHOWS(CAST(INT(-1), char_type(5)), "'-1   '");
    SHOWS(CAST(FLOAT(0.1F), kind(TYPE_DOUBLE)), "0.10000000149011612");
    SHOWS(CAST(INT(300), kind(TYPE_TINYINT)), "44");
}

static void test_cast_when_text_then_flinks_grammar(void **state)
{
    SHOWS(TRY_CAST(TEXT(" 42 "), kind(TYPE_INT)), "42");
    SHOWS(TRY_CAST(TEXT("+7"), kind(TYPE_TINYINT)), "7");
    SHOWS(TRY_CAST(TEXT("-3.9"), kind(TYPE_INT)), "-3");
    SHOWS(TRY_CAST(TEXT("128"), kind(TYPE_TINYINT)), "NULL");
    SHOWS(TRY_CAST(TEXT("1e2"), kind(TYPE_INT)), "NULL");
    SHOWS(TRY_CAST(TEXT("\t8\n"), kind(TYPE_INT)), "NULL");
    SHOWS(TRY_CAST(TEXT("\t8\n"), kind(TYPE_DOUBLE)), "8.0");
    SHOWS(TRY_CAST(TEXT("\t8\n"), decimal_type(10, 2)), "8.00");
    SHOWS(TRY_CAST(TEXT("1e2"), decimal_type(10, 2)), "100.00");
    SHOWS(TRY_CAST(TEXT("t"), decimal_type(10, 2)), "0.00");
    SHOWS(TRY_CAST(TEXT("2147483647"), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("1.0f"), decimal_type(10, 2)), "1.00");
    SHOWS(TRY_CAST(TEXT("1e"), decimal_type(10, 2)), "1.00");
    SHOWS(TRY_CAST(TEXT("-x"), decimal_type(10, 2)), "0.00");
    SHOWS(TRY_CAST(TEXT("-"), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT(".."), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("1e+"), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("1.0ff"), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("1x"), decimal_type(38, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("1e-20"), decimal_type(10, 2)), "0.00");
    SHOWS(TRY_CAST(TEXT("4.9e-325"), decimal_type(10, 2)), "NULL");
    SHOWS(TRY_CAST(TEXT("4.9e-325"), decimal_type(38, 2)), "0.00");
    SHOWS(TRY_CAST(TEXT("yes"), kind(TYPE_BOOLEAN)), "TRUE");
    SHOWS(TRY_CAST(TEXT(" false "), kind(TYPE_BOOLEAN)), "NULL");
    SHOWS(CAST(TEXT("4x2"), kind(TYPE_INT)), "CAST('4x2' AS INT)");
}

static void test_cast_when_times_then_cut_towards_1970(void **state)
{
    const struct expr *late = TIMESTAMP("1969-12-31 23:59:59.999999999", 9);
    SHOWS(CAST(late, time_type(TYPE_TIMESTAMP, 3)), "1969-12-31 23:59:59.999");
    SHOWS(CAST(late, time_type(TYPE_TIMESTAMP, 0)), "1970-01-01 00:00:00");
    SHOWS(CAST(late, kind(TYPE_DATE)), "1970-01-01");
    SHOWS(CAST(TIMESTAMP("1960-05-05 10:30:15.250", 3), kind(TYPE_DATE)), "1960-05-06");
    SHOWS(CAST(TIMESTAMP("1960-05-05 10:30:15.250", 3), time_type(TYPE_TIME, 0)), "10:30:16");
    SHOWS(CAST(TEXT("2020-1-2 3:4"), kind(TYPE_DATE)), "2020-01-02");
    SHOWS(CAST(TEXT("2020"), kind(TYPE_DATE)), "2020-01-01");
    SHOWS(TRY_CAST(TEXT("2020-02-31"), kind(TYPE_DATE)), "NULL");
    SHOWS(TRY_CAST(TEXT("2020-02-31 00:00:00"), time_type(TYPE_TIMESTAMP, 3)),
          "2020-02-29 00:00:00");
    SHOWS(TRY_CAST(TEXT("2020-01-01T00:00:00"), time_type(TYPE_TIMESTAMP, 3)), "NULL");
}

static void test_comparison_when_types_differ_then_by_value(void **state)
{
    SHOWS(CALL("=", DECIMAL("10.00", 10, 2), INT(10)), "TRUE");
    SHOWS(CALL("=", DECIMAL("10.00", 10, 2), DECIMAL("10.000", 5, 3)), "TRUE");
    SHOWS(CALL("<", INT(3), DECIMAL("3.7", 2, 1)), "TRUE");
    SHOWS(CALL("IN", INT(3), INT(1), DECIMAL("3.7", 2, 1)), "TRUE");
    SHOWS(CALL("=", DATE("2024-02-29"), TEXT("2024-02-29")), "TRUE");
    SHOWS(CALL("<", TEXT("\xf0\x9f\x98\x80"), TEXT("\xee\x80\x80")), "TRUE");
    SHOWS(CALL("=", INT(1), NULL_OF(kind(TYPE_INT))), "NULL");
    SHOWS(CALL("IS DISTINCT FROM", INT(1), NULL_OF(kind(TYPE_INT))), "TRUE");
    SHOWS(CALL("GREATEST", INT(1), INT(3), INT(2)), "3");
    SHOWS(CALL("LEAST", INT(1), NULL_OF(kind(TYPE_INT))), "NULL");
}

static void test_logic_when_null_then_three_valued(void **state)
{
    const struct expr *null = NULL_OF(kind(TYPE_BOOLEAN));
    SHOWS(CALL("AND", BOOL(0), null), "FALSE");
    SHOWS(CALL("AND", null, BOOL(1)), "NULL");
    SHOWS(CALL("OR", null, BOOL(1)), "TRUE");
    SHOWS(CALL("OR", null, BOOL(0)), "NULL");
    SHOWS(CALL("NOT", null), "NULL");
    SHOWS(CALL("IS NOT TRUE", null), "TRUE");
    SHOWS(CALL("IS UNKNOWN", null), "TRUE");
}

static void test_bind_when_unknown_then_nearest_name(void **state)
{
    const struct expr *out = NULL;
    const struct expr *one = INT(1);
    assert_int_equal(bind_all("COALESE", &one, 1, NULL, &out), -EINVAL);
    assert_non_null(strstr(the_bench->error.text, "COALESCE"));
    assert_int_equal(the_bench->error.line, 3);
    assert_int_equal(the_bench->error.column, 7);
    assert_int_equal(bind_all("json_value", &one, 1, NULL, &out), -ENOTSUP);
    assert_non_null(strstr(the_bench->error.text, "JSON_VALUE"));
    assert_int_equal(bind_all("UPPER", &one, 1, NULL, &out), -EINVAL);
    assert_string_equal(the_bench->error.text, "Invalid function call: UPPER(INT NOT NULL)");
}

static void test_same_operands_when_compared_then_null_test(void **state)
{
    const struct expr *x = column(0, kind(TYPE_DOUBLE));
    SHOWS(CALL("=", x, column(0, kind(TYPE_DOUBLE))), "CASE(IS NOT NULL(c0), TRUE, NULL)");
    SHOWS(CALL("<>", x, column(0, kind(TYPE_DOUBLE))), "CASE(IS NOT NULL(c0), FALSE, NULL)");
}

static void check_aggregate(const char *name, struct type argument, const char *expected)
{
    const struct expr *argument_expr = column(0, argument);
    const struct aggregate_bind_call call = {
        .name = name, .arguments = &argument_expr, .argument_count = 1};
    struct aggregate_call out;
    const struct expr *computed = NULL;
    assert_int_equal(aggregate_bind(the_bench->memory, &call, &out, &computed, &the_bench->error),
                     0);
    char text[TYPE_PRINT_BYTES];
    assert_string_equal(type_print(&out.result_type, text), expected);
    assert_ptr_equal(computed, argument_expr);
}

static void test_aggregate_type_when_any_then_flinks(void **state)
{
    check_aggregate("SUM", kind(TYPE_TINYINT), "TINYINT");
    check_aggregate("SUM", decimal_type(10, 2), "DECIMAL(38, 2)");
    check_aggregate("AVG", decimal_type(10, 2), "DECIMAL(38, 6)");
    check_aggregate("AVG", decimal_type(20, 10), "DECIMAL(38, 10)");
    check_aggregate("AVG", kind(TYPE_INT), "INT");
    check_aggregate("AVG", kind(TYPE_FLOAT), "FLOAT");
    check_aggregate("STDDEV_POP", kind(TYPE_INT), "INT");
    check_aggregate("COUNT", kind(TYPE_INT), "BIGINT NOT NULL");
    check_aggregate("LISTAGG", text_type(4), "STRING");
    check_aggregate("MAX", text_type(4), "VARCHAR(4)");
    assert_true(function_is_aggregate("sum"));
    assert_false(function_is_aggregate("ABS"));
}

static void test_cast_implicit_when_narrowing_then_refused(void **state)
{
    const struct expr *out = NULL;
    const struct type int_type = kind(TYPE_INT);
    const struct type bigint = kind(TYPE_BIGINT);
    const struct type timestamp = time_type(TYPE_TIMESTAMP, 3);
    assert_int_equal(
        cast_implicit(the_bench->memory, column(0, bigint), &int_type, &out, &the_bench->error),
        -EINVAL);
    assert_int_equal(cast_implicit(the_bench->memory, column(0, int_type), &bigint, &out, NULL), 0);
    TYPED(out, "BIGINT");
    assert_int_equal(
        cast_implicit(the_bench->memory, column(0, kind(TYPE_DATE)), &timestamp, &out, NULL),
        -EINVAL);
    const struct type narrow = char_type(3);
    assert_int_equal(cast_implicit(the_bench->memory, column(0, text_type(TYPE_LENGTH_MAX)),
                                   &narrow, &out, NULL),
                     -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic_type_when_whole_numbers_then_flinks),
        cmocka_unit_test(test_arithmetic_type_when_decimals_then_flinks),
        cmocka_unit_test(test_arithmetic_type_when_approximate_then_first_wins),
        cmocka_unit_test(test_text_type_when_lengths_then_flinks),
        cmocka_unit_test(test_time_type_when_any_then_flinks),
        cmocka_unit_test(test_typeof_when_any_then_printed),
        cmocka_unit_test(test_integers_when_past_the_end_then_wrap),
        cmocka_unit_test(test_decimals_when_computed_then_flinks),
        cmocka_unit_test(test_decimal_divide_when_wide_then_digits_of_java),
        cmocka_unit_test(test_cast_when_numbers_then_flinks),
        cmocka_unit_test(test_cast_when_text_then_flinks_grammar),
        cmocka_unit_test(test_cast_when_times_then_cut_towards_1970),
        cmocka_unit_test(test_comparison_when_types_differ_then_by_value),
        cmocka_unit_test(test_logic_when_null_then_three_valued),
        cmocka_unit_test(test_bind_when_unknown_then_nearest_name),
        cmocka_unit_test(test_same_operands_when_compared_then_null_test),
        cmocka_unit_test(test_aggregate_type_when_any_then_flinks),
        cmocka_unit_test(test_cast_implicit_when_narrowing_then_refused),
    };
    return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
