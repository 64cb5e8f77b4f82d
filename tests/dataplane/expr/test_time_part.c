/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of dates and times: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"EXTRACT(YEAR FROM DATE '2026-03-01')", "2026"},
    {"EXTRACT(MONTH FROM DATE '2026-03-01')", "3"},
    {"EXTRACT(DAY FROM DATE '2026-03-01')", "1"},
    {"EXTRACT(QUARTER FROM DATE '2026-03-01')", "1"},
    {"EXTRACT(WEEK FROM DATE '2027-01-01')", "53"},
    {"EXTRACT(DOW FROM DATE '2026-03-01')", "1"},
    {"EXTRACT(DOY FROM DATE '2026-03-01')", "60"},
    {"EXTRACT(HOUR FROM TIMESTAMP '2026-03-01 12:34:56.789')", "12"},
    {"EXTRACT(MINUTE FROM TIMESTAMP '2026-03-01 12:34:56.789')", "34"},
    {"EXTRACT(SECOND FROM TIMESTAMP '2026-03-01 12:34:56.789')", "56"},
    {"EXTRACT(MILLISECOND FROM TIMESTAMP '2026-03-01 12:34:56.789')", "789"},
    {"YEAR(DATE '1969-12-31')", "1969"},
    {"MONTH(DATE '1969-12-31')", "12"},
    {"DAYOFMONTH(DATE '1969-12-31')", "31"},
    {"DAYOFWEEK(DATE '1969-12-31')", "4"},
    {"DAYOFYEAR(DATE '2024-12-31')", "366"},
    {"HOUR(TIMESTAMP '1969-12-31 23:00:00')", "-1"},
    {"QUARTER(DATE '2026-12-31')", "4"},
    {"WEEK(DATE '2026-12-31')", "53"},
    {"EXTRACT(CENTURY FROM DATE '2000-12-31')", "20"},
    {"EXTRACT(DECADE FROM DATE '2026-01-01')", "202"},
    {"EXTRACT(EPOCH FROM TIMESTAMP '2026-03-01 00:00:00')", "1772323200"},
};

static void test_time_part_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_part_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
