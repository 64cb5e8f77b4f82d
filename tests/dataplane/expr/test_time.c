/* SPDX-License-Identifier: Apache-2.0 */
/* Times and intervals: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"TIMESTAMP '2026-03-01 00:00:00' + INTERVAL '1' DAY", "2026-03-02 00:00:00"},
    {"TIMESTAMP '2026-01-31 00:00:00' + INTERVAL '1' MONTH", "2026-02-28 00:00:00"},
    {"DATE '2024-02-29' + INTERVAL '1' YEAR", "2025-02-28"},
    {"DATE '2026-03-01' - INTERVAL '1' DAY", "2026-02-28"},
    {"TIMESTAMP '2026-03-01 00:00:00' - INTERVAL '0.001' SECOND", "2026-02-28 23:59:59"},
    {"TIMESTAMPDIFF(DAY, TIMESTAMP '2026-01-01 00:00:00', TIMESTAMP '2026-03-01 00:00:00')", "59"},
    {"TIMESTAMPDIFF(MONTH, TIMESTAMP '2026-01-31 00:00:00', TIMESTAMP '2026-02-28 00:00:00')", "1"},
    {"TIMESTAMPDIFF(SECOND, TIMESTAMP '2026-01-01 00:00:01', TIMESTAMP '2026-01-01 00:00:00')",
     "-1"},
    {"TIMESTAMPADD(WEEK, 1, DATE '2026-03-01')", "2026-03-08"},
    {"TIMESTAMPADD(HOUR, -1, TIMESTAMP '2026-03-01 00:00:00')", "2026-02-28 23:00:00"},
    {"FLOOR(TIMESTAMP '2026-03-01 12:34:56' TO HOUR)", "2026-03-01 12:00:00"},
    {"CEIL(TIMESTAMP '2026-03-01 12:34:56' TO DAY)", "2026-03-02 00:00:00"},
    {"FLOOR(DATE '2026-03-15' TO MONTH)", "2026-03-01"},
    {"CEIL(DATE '2026-03-15' TO YEAR)", "2027-01-01"},
    {"FLOOR(TIMESTAMP '2026-03-01 12:34:56' TO WEEK)", "2026-03-01 00:00:00"},
    {"TIME '23:00:00' + INTERVAL '2' HOUR", "01:00:00"},
};

static void test_time_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
