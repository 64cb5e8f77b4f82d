/* SPDX-License-Identifier: Apache-2.0 */
/* ROUND, FLOOR, CEIL and TRUNCATE: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"ROUND(2.5, 0)", "3"},
    {"ROUND(-2.5, 0)", "-3"},
    {"ROUND(2.45, 1)", "2.5"},
    {"ROUND(1234.567, -2)", "1200"},
    {"ROUND(CAST(2.5 AS DOUBLE), 0)", "3.0"},
    {"ROUND(CAST(2.345 AS DOUBLE), 2)", "2.35"},
    {"ROUND(1234, -2)", "1200"},
    {"ROUND(1250, -2)", "1300"},
    {"ROUND(7)", "7"},
    {"ROUND(2.5)", "3"},
    {"FLOOR(2.7)", "2"},
    {"FLOOR(-2.7)", "-3"},
    {"CEIL(2.1)", "3"},
    {"CEIL(-2.1)", "-2"},
    {"FLOOR(CAST(-2.5 AS DOUBLE))", "-3.0"},
    {"CEIL(CAST(-2.5 AS DOUBLE))", "-2.0"},
    {"FLOOR(5)", "5"},
    {"TRUNCATE(2.789, 2)", "2.78"},
    {"TRUNCATE(-2.789, 1)", "-2.7"},
    {"TRUNCATE(1234, -2)", "1200"},
    {"TRUNCATE(CAST(2.789 AS DOUBLE), 2)", "2.78"},
    {"TRUNCATE(2.7)", "2"},
    {"ROUND(CAST(NULL AS INT), 1)", NULL},
    {"ROUND(0.005, 2)", "0.01"},
    {"ROUND(CAST(0.005 AS DOUBLE), 2)", "0.01"},
    {"ROUND(99.995, 2)", "100.00"},
};

static void test_number_round_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_number_round_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
