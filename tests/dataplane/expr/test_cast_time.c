/* SPDX-License-Identifier: Apache-2.0 */
/* Casts and readings of dates and times: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CAST(TIMESTAMP '2026-03-01 23:59:59.999' AS DATE)", "2026-03-01"},
    {"CAST(TIMESTAMP '2026-03-01 23:59:59.999' AS TIME)", "23:59:59"},
    {"CAST(DATE '2026-03-01' AS TIMESTAMP(3))", "2026-03-01 00:00:00.000"},
    {"CAST(TIMESTAMP '2026-03-01 01:02:03.999' AS TIMESTAMP(0))", "2026-03-01 01:02:03"},
    {"CAST(TIMESTAMP '2026-03-01 01:02:03.456789' AS TIMESTAMP(3))", "2026-03-01 01:02:03.456"},
    {"CAST(TIMESTAMP '1969-12-31 23:59:59.9' AS DATE)", "1970-01-01"},
    {"CAST(TIME '12:34:56' AS STRING)", "12:34:56"},
    {"TO_DATE('2026-03-01')", "2026-03-01"},
    {"TO_DATE('01/03/2026', 'dd/MM/yyyy')", "2026-03-01"},
    {"TO_TIMESTAMP('2026-03-01 01:02:03')", "2026-03-01 01:02:03.000"},
    {"TO_TIMESTAMP('2026-03-01 01:02:03.45')", "2026-03-01 01:02:03.450"},
    {"TO_TIMESTAMP('bad')", NULL},
    {"TO_TIMESTAMP('01.03.2026 04:05', 'dd.MM.yyyy HH:mm')", "2026-03-01 04:05:00.000"},
    {"CAST(DATE '0001-01-01' AS TIMESTAMP(3))", "0001-01-01 00:00:00.000"},
    {"CAST(DATE '9999-12-31' AS TIMESTAMP(3))", "9999-12-31 00:00:00.000"},
};

static void test_cast_time_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cast_time_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
