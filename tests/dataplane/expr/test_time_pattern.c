/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of dates: refusals, room, and the two ways of reading. Values are from Flink's answers.
 */
#include "dataplane/expr/time_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dataplane/expr/text_time.h"

static struct span span_of(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)};
}

static struct time_pattern compile(const char *text)
{
    struct time_pattern pattern;
    assert_null(time_pattern_compile(span_of(text), &pattern));
    return pattern;
}

static int64_t at(const char *text)
{
    const struct timestamp_form form = {.separator = ' '};
    struct timestamp value;
    assert_true(timestamp_parse(span_of(text), &form, &value));
    return value.ms;
}

static void test_compile_when_letter_or_quote_is_wrong_then_refused(void **state)
{
    static const char *const bad[] = {"yyyy-bb", "'open", "VV", "[yyyy]", "zz"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct time_pattern pattern;
        assert_non_null(time_pattern_compile(span_of(bad[i]), &pattern));
    }
}

static void test_print_when_room_is_short_then_said(void **state)
{
    const struct time_pattern pattern = compile("yyyy-MM-dd");
    uint8_t into[10];
    assert_int_equal(time_pattern_print(&pattern, (struct timestamp){.ms = 0}, true, into, 10), 10);
    assert_memory_equal(into, "1970-01-01", 10);
    assert_int_equal(time_pattern_print(&pattern, (struct timestamp){.ms = 0}, true, into, 9),
                     SIZE_MAX);
}

static void test_print_when_year_has_five_digits_then_plus_by_choice(void **state)
{
    const struct time_pattern pattern = compile("yyyy");
    const struct timestamp value = {.ms = at("9999-12-31 23:59:59") + 1000};
    uint8_t into[10];
    assert_int_equal(time_pattern_print(&pattern, value, true, into, 10), 6);
    assert_memory_equal(into, "+10000", 6);
    assert_int_equal(time_pattern_print(&pattern, value, false, into, 10), 5);
}

static void check_read(const char *pattern_text, const char *text, const char *expected)
{
    const struct time_pattern pattern = compile(pattern_text);
    struct timestamp value;
    assert_int_equal(time_pattern_read(&pattern, span_of(text), &value), expected != NULL);
    if (expected != NULL) {
        assert_int_equal(value.ms, at(expected));
    }
}

static void test_read_when_exact_then_java_time(void **state)
{
    check_read("yyyy-MM-dd HH:mm:ss", "2024-02-29 12:34:56", "2024-02-29 12:34:56");
    check_read("yyyy-MM-dd HH:mm:ss", "2024-2-29 12:34:56", NULL);
    check_read("yyyy-MM-dd", "2024-02-29 12:34:56", NULL);
    check_read("yyyy-MM-dd", "2023-02-30", "2023-02-28 00:00:00");
    check_read("yyyyMMdd", "20240229", "2024-02-29 00:00:00");
    check_read("d MMM yy, h:mm a", "3 Mar 24, 1:05 PM", "2024-03-03 13:05:00");
    check_read("d/M/yyyy", "29/2/2024", "2024-02-29 00:00:00");
    check_read("HH:mm:ss.SSS", "01:02:03.004", "1970-01-01 01:02:03.004");
    check_read("yyyy-MM-dd", "2024-13-01", NULL);
    check_read("yyyy DDD", "2024 060", "2024-02-29 00:00:00");
}

static void check_lenient(const char *pattern_text, const char *text, const char *expected)
{
    const struct time_pattern pattern = compile(pattern_text);
    int64_t ms;
    assert_int_equal(time_pattern_read_lenient(&pattern, span_of(text), &ms), expected != NULL);
    if (expected != NULL) {
        assert_int_equal(ms, at(expected));
    }
}

static void test_read_when_lenient_then_rolls_over(void **state)
{
    const char *plain = "yyyy-MM-dd HH:mm:ss";
    check_lenient(plain, "2024-02-30 25:61:61", "2024-03-02 02:02:01");
    check_lenient(plain, "2024-3-1 1:2:3", "2024-03-01 01:02:03");
    check_lenient(plain, "2024-02-29 12:34:56.789 tail", "2024-02-29 12:34:56");
    check_lenient(plain, "junk", NULL);
    check_lenient(plain, "", NULL);
    check_lenient("yyyyMMdd", "20240229", "2024-02-29 00:00:00");
    check_lenient("yyyy-MM-dd", "2024-14-01", "2025-02-01 00:00:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile_when_letter_or_quote_is_wrong_then_refused),
        cmocka_unit_test(test_print_when_room_is_short_then_said),
        cmocka_unit_test(test_print_when_year_has_five_digits_then_plus_by_choice),
        cmocka_unit_test(test_read_when_exact_then_java_time),
        cmocka_unit_test(test_read_when_lenient_then_rolls_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
