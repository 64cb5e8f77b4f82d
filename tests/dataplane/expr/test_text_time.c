/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times as text; values are from Flink's answers and from java.time. */
#include "dataplane/expr/text_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct timestamp_form sql = {.separator = ' ', .precision = FRACTION_STRIPPED};
static const struct timestamp_form sql_zulu = {
    .separator = ' ', .zulu = true, .plus = true, .precision = FRACTION_STRIPPED};
static const struct timestamp_form iso = {
    .separator = 'T', .seconds_optional = true, .precision = FRACTION_STRIPPED};

static struct span span_of(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)};
}

static void check_round_trip(const struct timestamp_form *form, const char *text,
                             const char *expected)
{
    struct timestamp value;
    assert_true(timestamp_parse(span_of(text), form, &value));
    char printed[TIMESTAMP_TEXT_BYTES + 1];
    printed[timestamp_print(value, form, printed)] = '\0';
    assert_string_equal(printed, expected);
}

static void test_civil_when_every_day_then_inverse(void **state)
{
    int64_t days = civil_days(-400, 3, 1);
    struct civil last = civil_from_days(days - 1);
    for (; days < 3200000; days++) {
        const struct civil date = civil_from_days(days);
        assert_int_equal(civil_days(date.year, date.month, date.day), days);
        const bool next_day = date.day == last.day + 1 && date.month == last.month;
        const bool next_month =
            date.day == 1 && last.day == civil_month_days(last.year, last.month);
        assert_true(next_day || next_month);
        last = date;
    }
    assert_int_equal(civil_days(1970, 1, 1), 0);
    assert_int_equal(civil_days(2024, 2, 29), 19782);
    assert_int_equal(civil_days(1, 1, 1), -719162);
}

static void test_timestamp_print_when_fraction_then_without_trailing_zeros(void **state)
{
    check_round_trip(&sql, "2024-02-29 12:34:56.987654321", "2024-02-29 12:34:56.987654321");
    check_round_trip(&sql, "2024-02-29 12:34:56.120", "2024-02-29 12:34:56.12");
    check_round_trip(&sql, "2024-02-29 12:34:56.", "2024-02-29 12:34:56");
    check_round_trip(&sql_zulu, "2024-02-29 12:34:56.000120Z", "2024-02-29 12:34:56.00012Z");
    check_round_trip(&sql, "1969-12-31 23:59:59.999999999", "1969-12-31 23:59:59.999999999");
    check_round_trip(&sql, "0001-01-01 00:00:00.001", "0001-01-01 00:00:00.001");
    check_round_trip(&iso, "2020-01-02T03:04", "2020-01-02T03:04:00");
    check_round_trip(&iso, "2020-01-02T03:04:05.12", "2020-01-02T03:04:05.12");
}

static void test_timestamp_parse_when_smart_then_last_day_and_next_midnight(void **state)
{
    check_round_trip(&sql, "2020-02-30 01:02:03", "2020-02-29 01:02:03");
    check_round_trip(&sql, "2020-02-28 24:00:00", "2020-02-29 00:00:00");
}

static void test_timestamp_parse_when_other_form_then_false(void **state)
{
    static const char *const bad[] = {"2020-01-02T03:04:05",
                                      "2020-01-02 03:04",
                                      "2020-01-02",
                                      "2020-01-02 03:04:05Z",
                                      "2020-01-02 03:04:60",
                                      "1577934245",
                                      "2020-1-02 03:04:05",
                                      "2020-01-32 03:04:05",
                                      "2020-13-01 00:00:00",
                                      " 2020-01-02 03:04:05",
                                      "2020-01-02 24:00:01",
                                      "2020-01-02 03:04:05.1234567891",
                                      "",
                                      "2020-01-02 03:04:05.12x",
                                      "20200-01-02 03:04:05"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct timestamp value;
        assert_false(timestamp_parse(span_of(bad[i]), &sql, &value));
    }
    struct timestamp value;
    assert_false(timestamp_parse(span_of("2020-01-02 03:04:05"), &sql_zulu, &value));
}

static void test_date_parse_when_day_does_not_exist_then_false(void **state)
{
    int64_t days;
    assert_true(date_parse(span_of("2020-02-03"), &days));
    assert_int_equal(days, 18295);
    assert_true(date_parse(span_of("+10000-01-01"), &days));
    char text[DATE_TEXT_BYTES + 1];
    text[date_print(days, true, text)] = '\0';
    assert_string_equal(text, "+10000-01-01");
    text[date_print(days, false, text)] = '\0';
    assert_string_equal(text, "10000-01-01");
    assert_false(date_parse(span_of("2020-02-31"), &days));
    assert_false(date_parse(span_of("2020-2-3"), &days));
    assert_false(date_parse(span_of("2020-02-03 00:00:00"), &days));
    assert_false(date_parse(span_of("+2020-02-03"), &days));
    assert_false(date_parse(span_of(""), &days));
}

static void test_time_parse_when_fraction_then_milliseconds(void **state)
{
    int64_t ms;
    assert_true(time_parse(span_of("12:34:56.789999999"), &ms));
    assert_int_equal(ms, 45296789);
    assert_true(time_parse(span_of("12:34:56."), &ms));
    assert_int_equal(ms, 45296000);
    assert_true(time_parse(span_of("24:00:00"), &ms));
    assert_int_equal(ms, 0);
    assert_false(time_parse(span_of("12:34"), &ms));
    assert_false(time_parse(span_of("12:34:56Z"), &ms));
    assert_false(time_parse(span_of("25:00:00"), &ms));
    char text[TIME_TEXT_BYTES + 1];
    text[time_print(45296789, FRACTION_STRIPPED, text)] = '\0';
    assert_string_equal(text, "12:34:56.789");
    text[time_print(45296789, 0, text)] = '\0';
    assert_string_equal(text, "12:34:56");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_civil_when_every_day_then_inverse),
        cmocka_unit_test(test_timestamp_print_when_fraction_then_without_trailing_zeros),
        cmocka_unit_test(test_timestamp_parse_when_smart_then_last_day_and_next_midnight),
        cmocka_unit_test(test_timestamp_parse_when_other_form_then_false),
        cmocka_unit_test(test_date_parse_when_day_does_not_exist_then_false),
        cmocka_unit_test(test_time_parse_when_fraction_then_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
