/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of whole and floating numbers: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"7 + 5", "12"},
    {"7 - 9", "-2"},
    {"7 * 6", "42"},
    {"7 / 2", "3"},
    {"-7 / 2", "-3"},
    {"7 % 3", "1"},
    {"-7 % 3", "-1"},
    {"MOD(7, -3)", "1"},
    {"- (3)", "-3"},
    {"2147483647 + 1", "-2147483648"},
    {"CAST(127 AS TINYINT) + CAST(1 AS TINYINT)", "-128"},
    {"CAST(32767 AS SMALLINT) + CAST(1 AS SMALLINT)", "-32768"},
    {"9223372036854775807 + 1", "-9223372036854775808"},
    {"1e0 / 3", "0.3333333333333333"},
    {"CAST(1 AS FLOAT) / 3", "0.33333334"},
    {"7.5 + 1", "8.5"},
    {"7.5 - 8.25", "-0.75"},
    {"ABS(-7)", "7"},
    {"ABS(CAST(-2147483648 AS INT))", "-2147483648"},
    {"ABS(-7.5)", "7.5"},
    {"ABS(CAST(-0.5 AS DOUBLE))", "0.5"},
    {"SIGN(-3)", "-1"},
    {"SIGN(CAST(0 AS DOUBLE))", "0.0"},
    {"SIGN(2.5)", "1.0"},
    {"1e308 * 10", "Infinity"},
    {"-1e308 * 10", "-Infinity"},
    {"CAST(5 AS BIGINT) * CAST(6 AS SMALLINT)", "30"},
    {"3 + CAST(NULL AS INT)", NULL},
    {"MOD(7.5, 2)", "1.5"},
    {"CAST(7 AS DOUBLE) / 0", "Infinity"},
    {"6 / CAST(4 AS DOUBLE)", "1.5"},
};

static void test_number_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_number_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
