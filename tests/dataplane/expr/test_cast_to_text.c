/* SPDX-License-Identifier: Apache-2.0 */
/* Casts to text: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CAST(12 AS STRING)", "12"},
    {"CAST(-0.50 AS STRING)", "-0.50"},
    {"CAST(1e0 AS STRING)", "1.0"},
    {"CAST(1e7 AS STRING)", "1.0E7"},
    {"CAST(1e-3 AS STRING)", "0.001"},
    {"CAST(1e-4 AS STRING)", "1.0E-4"},
    {"CAST(123456789012e0 AS STRING)", "1.23456789012E11"},
    {"CAST(CAST(1.1 AS FLOAT) AS STRING)", "1.1"},
    {"CAST(CAST(16777216 AS FLOAT) AS STRING)", "1.6777216E7"},
    {"CAST(TRUE AS STRING)", "TRUE"},
    {"CAST(DATE '2026-03-01' AS STRING)", "2026-03-01"},
    {"CAST(TIME '01:02:03' AS STRING)", "01:02:03"},
    {"CAST(TIMESTAMP '2026-03-01 01:02:03.4' AS STRING)", "2026-03-01 01:02:03.4"},
    {"CAST(TIMESTAMP '2026-03-01 01:02:03.456789' AS STRING)", "2026-03-01 01:02:03.456789"},
    {"CAST('abcdef' AS VARCHAR(3))", "abc"},
    {"CAST('ab' AS CHAR(4))", "ab  "},
    {"CAST(12345 AS VARCHAR(3))", "123"},
    {"CAST(CAST('12345678901234567890.10' AS DECIMAL(38, 2)) AS STRING)",
     "12345678901234567890.10"},
    {"CAST(0.000001 AS STRING)", "0.000001"},
    {"CAST(INTERVAL '1 02:03:04' DAY TO SECOND AS STRING)", "+1 02:03:04.000"},
    {"CAST(INTERVAL '1-2' YEAR TO MONTH AS STRING)", "+1-02"},
    {"CAST(4.9e-324 AS STRING)", "4.9E-324"},
    {"CAST(1.7976931348623157e308 AS STRING)", "1.7976931348623157E308"},
    {"CAST(0.1e0 + 0.2e0 AS STRING)", "0.30000000000000004"},
    {"CAST(CAST('日本語' AS VARCHAR(2)) AS STRING)", "日本"},
};

static void test_cast_to_text_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cast_to_text_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
