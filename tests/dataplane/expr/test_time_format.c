/* SPDX-License-Identifier: Apache-2.0 */
/* Times printed by patterns: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06.789', 'yyyy-MM-dd')", "2026-03-01"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06.789', 'HH:mm:ss.SSS')", "04:05:06.789"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 14:05:06', 'hh a')", "02 PM"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06', 'EEE, d MMM yy')", "Sun, 1 Mar 26"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06', 'EEEE MMMM')", "Sunday March"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06', 'yyyy''T''DDD')", "2026T060"},
    {"DATE_FORMAT('2026-03-01 04:05:06', 'yyyy/MM')", "2026/03"},
    {"FROM_UNIXTIME(0)", "1970-01-01 00:00:00"},
    {"FROM_UNIXTIME(1700000000, 'yyyy')", "2023"},
    {"UNIX_TIMESTAMP('2026-03-01 00:00:00')", "1772323200"},
    {"UNIX_TIMESTAMP('01/03/2026', 'dd/MM/yyyy')", "1772323200"},
    {"TO_TIMESTAMP_LTZ(0, 3)", "1970-01-01 00:00:00.000"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06', 'Q')", "1"},
    {"CONVERT_TZ('2026-03-01 00:00:00', 'UTC', 'America/Los_Angeles')", "2026-02-28 16:00:00"},
    {"DATE_FORMAT(TIMESTAMP '2026-03-01 04:05:06.123456', 'SSSSSS')", "123456"},
};

static void test_time_format_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_format_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
