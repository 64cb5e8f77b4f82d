/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times in many spellings: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"TRY_CAST('2026-3-1 4:5:6' AS TIMESTAMP(3))", "2026-03-01 04:05:06.000"},
    {"TRY_CAST('2026-03-01 04:05' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('2026-03-01' AS TIMESTAMP(3))", "2026-03-01 00:00:00.000"},
    {"TRY_CAST('2026-03-01 04:05:06.7' AS TIMESTAMP(3))", "2026-03-01 04:05:06.700"},
    {"TRY_CAST('2026-03-01 04:05:06.123456789' AS TIMESTAMP(9))", "2026-03-01 04:05:06.123456789"},
    {"TRY_CAST('2026-13-01 00:00:00' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('26-03-01 00:00:00' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('4:5:6' AS TIME)", "04:05:06"},
    {"TRY_CAST('4:5' AS TIME)", "04:05:00"},
    {"TRY_CAST('4' AS TIME)", "04:00:00"},
    {"TRY_CAST('24:00:00' AS TIME)", NULL},
    {"TRY_CAST('4:60:00' AS TIME)", NULL},
    {"TRY_CAST('2026-3' AS DATE)", "2026-03-01"},
    {"TRY_CAST('2026' AS DATE)", "2026-01-01"},
    {"TRY_CAST(' 2026-03-01 ' AS DATE)", "2026-03-01"},
    {"TRY_CAST('2026-03-01 junk' AS DATE)", "2026-03-01"},
    {"TRY_CAST('2026-02-29' AS DATE)", NULL},
    {"TRY_CAST('2024-02-29' AS DATE)", "2024-02-29"},
    {"TRY_CAST('2026-03-01 00:00:60' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('0000-01-01' AS DATE)", "0000-01-01"},
};

static void test_time_lenient_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_lenient_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
