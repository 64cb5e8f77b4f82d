/* SPDX-License-Identifier: Apache-2.0 */
/* Time functions on literals: what the calls fold to is what their kernels compute. Expected
 * values are answers of a Flink 2.3 (the scalar cases, and questions asked beside them). */
#include "tests/control/sql/bind_testing.h"

static const struct expr *moment(const char *text)
{
    return TIMESTAMP(text, 3);
}

static void check_extract(const char *unit, const char *text, const char *expected)
{
    SHOWS(CALL("EXTRACT", TEXT(unit), moment(text)), expected);
}

static void test_extract_when_before_1970_then_towards_1970(void **state)
{
    check_extract("YEAR", "1969-12-31 23:59:59.999", "1970");
    check_extract("MILLISECOND", "1969-12-31 23:59:59.999", "-1");
    check_extract("SECOND", "1969-12-31 23:59:59.999", "0");
    check_extract("DAY", "1960-05-05 10:30:15.250", "6");
    check_extract("HOUR", "1960-05-05 10:30:15.250", "-13");
    check_extract("MINUTE", "1960-05-05 10:30:15.250", "-29");
    check_extract("SECOND", "1960-05-05 10:30:15.250", "-44");
    check_extract("EPOCH", "1960-01-31 12:00:00.25", "-312983999");
    check_extract("WEEK", "2021-01-03 00:00:00", "53");
    check_extract("ISOYEAR", "2021-01-03 00:00:00", "2020");
    check_extract("DOW", "2024-03-03 00:00:00", "1");
    check_extract("ISODOW", "2024-03-03 00:00:00", "7");
    check_extract("DOY", "2024-12-31 00:00:00", "366");
    check_extract("QUARTER", "2024-02-29 00:00:00", "1");
    check_extract("CENTURY", "2001-01-01 00:00:00", "21");
    check_extract("DECADE", "2024-02-29 00:00:00", "202");
    SHOWS(CALL("EXTRACT", TEXT("MICROSECOND"), TIMESTAMP("2024-02-29 12:34:56.789123", 6)),
          "789123");
}

static void check_rounding(const char *unit, const char *text, const char *down, const char *up)
{
    SHOWS(CALL("FLOOR", moment(text), TEXT(unit)), down);
    SHOWS(CALL("CEIL", moment(text), TEXT(unit)), up);
}

static void test_floor_and_ceil_when_times_then_flinks(void **state)
{
    const char *leap = "2024-02-29 13:45:56.789";
    check_rounding("YEAR", leap, "2024-01-01 00:00:00", "2025-01-01 00:00:00");
    check_rounding("QUARTER", leap, "2024-01-01 00:00:00", "2024-04-01 00:00:00");
    check_rounding("WEEK", leap, "2024-02-25 00:00:00", "2024-03-03 00:00:00");
    check_rounding("DAY", leap, "2024-02-29 00:00:00", "2024-03-01 00:00:00");
    check_rounding("HOUR", leap, "2024-02-29 13:00:00", "2024-02-29 14:00:00");
    check_rounding("SECOND", leap, "2024-02-29 13:45:56", "2024-02-29 13:45:57");
    check_rounding("MONTH", "2024-03-01 00:00:01", "2024-03-01 00:00:00", "2024-03-01 00:00:00");
    check_rounding("DAY", "2024-03-01 00:00:01", "2024-03-01 00:00:00", "2024-03-02 00:00:00");
    check_rounding("MONTH", "1960-01-31 12:00:00.25", "1960-02-01 00:00:00", "1960-02-01 00:00:00");
    check_rounding("WEEK", "1969-07-20 20:17:40", "1969-07-20 00:00:00", "1969-07-27 00:00:00");
    check_rounding("CENTURY", "2001-01-01 00:00:00", "2001-01-01 00:00:00", "2101-01-01 00:00:00");
    SHOWS(CALL("FLOOR", DATE("2024-03-04"), TEXT("WEEK")), "2024-03-03");
    SHOWS(CALL("CEIL", DATE("2024-03-03"), TEXT("WEEK")), "2024-03-03");
}

static const struct expr *interval(enum type_kind of, int64_t amount)
{
    return literal(kind(of), (struct value){.i64 = amount});
}

static void test_sums_with_intervals_when_any_then_flinks(void **state)
{
    const struct expr *month = interval(TYPE_INTERVAL_YEAR_MONTH, 1);
    const struct expr *hour = interval(TYPE_INTERVAL_DAY_TIME, 3600000);
    SHOWS(CALL("-", moment("2023-03-31 12:00:00"), month), "2023-02-28 12:00:00");
    SHOWS(CALL("+", DATE("2020-01-31"), month), "2020-02-29");
    SHOWS(CALL("+", DATE("2020-01-31"), hour), "2020-01-31");
    SHOWS(CALL("+", moment("2024-02-29 23:30:00"), hour), "2024-03-01 00:30:00");
    SHOWS(CALL("TIMESTAMPADD", TEXT("HOUR"), INT(25), DATE("2020-01-31")), "2020-02-01 01:00:00");
    SHOWS(CALL("TIMESTAMPADD", TEXT("MONTH"), INT(-1), DATE("2020-03-31")), "2020-02-29");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("MONTH"), moment("2024-03-01 00:00:01"),
               moment("2024-01-31 00:00:00")),
          "-1");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("DAY"), moment("2024-03-01 12:00:00"),
               moment("2024-02-29 13:00:00")),
          "0");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("YEAR"), DATE("2020-02-29"), DATE("2024-02-28")), "3");
    SHOWS(CAST(hour, text_type(TYPE_LENGTH_MAX)), "'+0 01:00:00.000'");
    SHOWS(CAST(interval(TYPE_INTERVAL_YEAR_MONTH, 14), text_type(TYPE_LENGTH_MAX)), "'+1-02'");
}

static void check_format(const char *text, const char *pattern, const char *expected)
{
    SHOWS(CALL("DATE_FORMAT", moment(text), TEXT(pattern)), expected);
}

static void test_date_format_when_javas_patterns_then_flinks(void **state)
{
    const char *night = "2024-02-29 23:59:59.999";
    check_format(night, "yyyy-MM-dd HH:mm:ss.SSS", "'2024-02-29 23:59:59.999'");
    check_format(night, "yy/M/d H:m:s", "'24/2/29 23:59:59'");
    check_format(night, "dd MMM yyyy", "'29 Feb 2024'");
    check_format(night, "EEEE, MMMM d", "'Thursday, February 29'");
    check_format(night, "hh:mm a", "'11:59 PM'");
    check_format(night, "S", "'9'");
    check_format(night, "SSSSSS", "'999000'");
    check_format(night, "yyyy'Q'Q", "'2024Q1'");
    check_format(night, "HH'h'mm", "'23h59'");
    check_format(night, "''", "'''");
    check_format(night, "A", "'86399999'");
    check_format(night, "n", "'999000000'");
    check_format(night, "DDD", "'060'");
    check_format(night, "w", "'9'");
    check_format(night, "e", "'5'");
    check_format(night, "yyyy-MM-dd'T'HH:mm:ss'Z'", "'2024-02-29T23:59:59Z'");
    check_format("2024-02-29 00:00:00", "kk hh", "'24 12'");
    check_format("2020-12-31 13:30:00", "w", "'1'");
    check_format("2021-01-03 00:00:00", "w", "'2'");
    check_format("0001-01-01 00:00:00.001", "u yy", "'1 01'");
    check_format("1969-12-31 23:59:59.999", "yyyy-MM-dd", "'1969-12-31'");
    SHOWS(CALL("DATE_FORMAT", TEXT("2024-02-29 10:11:12"), TEXT("HH.mm")), "'10.11'");
}

static void test_to_timestamp_when_lenient_or_not_then_flinks(void **state)
{
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29")), "2024-02-29 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29 12:34:56.789123456")), "2024-02-29 12:34:56.789");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-02-31")), "2020-02-29 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-01-01 24:00:00")), "2020-01-02 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-1-2 3:4")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT(" 2020-01-01")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29T12:34:56")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("29/02/2024 10:00"), TEXT("dd/MM/yyyy HH:mm")),
          "2024-02-29 10:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29 12:34:56.789123456"), TEXT("yyyy-MM-dd")),
          "2024-02-29 12:34:56.789123456");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("20240229101112"), TEXT("yyyyMMddHHmmss")),
          "2024-02-29 10:11:12");
    SHOWS(CALL("TO_DATE", TEXT("2020-1-2 3:4")), "2020-01-02");
    SHOWS(CALL("TO_DATE", TEXT("2020-02-31")), "NULL");
    SHOWS(CALL("TO_DATE", TEXT("29/02/2024 10:00"), TEXT("dd/MM/yyyy HH:mm")), "2024-02-29");
}

static void test_convert_tz_when_any_zone_then_flinks(void **state)
{
    const struct expr *utc = TEXT("UTC");
    const struct expr *york = TEXT("America/New_York");
    SHOWS(CALL("CONVERT_TZ", TEXT("2023-11-15 03:43:20"), utc, york), "'2023-11-14 22:43:20'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-02-30 25:61:61"), utc, york), "'2024-03-01 21:02:01'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-3-1 1:2:3"), utc, york), "'2024-02-29 20:02:03'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-02-29 12:34:56.789 tail"), utc, york),
          "'2024-02-29 07:34:56'");
    SHOWS(CALL("CONVERT_TZ", TEXT("9999-12-31 23:59:59"), TEXT("+02:00"), TEXT("Asia/Tokyo")),
          "'10000-01-01 08:59:59'");
    SHOWS(CALL("CONVERT_TZ", TEXT("9999-12-31 23:59:59"), utc, york), "'9999-12-31 18:59:59'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-07-01 12:00:00"), utc, york), "'2024-07-01 08:00:00'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2124-07-01 12:00:00"), utc, york), "'2124-07-01 08:00:00'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2924-07-01 12:00:00"), utc, york), "'2924-07-01 08:00:00'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extract_when_before_1970_then_towards_1970),
        cmocka_unit_test(test_floor_and_ceil_when_times_then_flinks),
        cmocka_unit_test(test_sums_with_intervals_when_any_then_flinks),
        cmocka_unit_test(test_date_format_when_javas_patterns_then_flinks),
        cmocka_unit_test(test_to_timestamp_when_lenient_or_not_then_flinks),
        cmocka_unit_test(test_convert_tz_when_any_zone_then_flinks),
    };
    return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
