/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and casts of DECIMAL: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"1.10 + 2.205", "3.305"},
    {"1.10 - 2.205", "-1.105"},
    {"1.5 * 1.5", "2.25"},
    {"1.00 / 3", "0.3333333333333"},
    {"2 / 3.0", "0.666667"},
    {"10.0 / 4", "2.500000000000"},
    {"-1.00 / 3", "-0.3333333333333"},
    {"7.25 % 2", "1.25"},
    {"CAST('12345678901234567890.12' AS DECIMAL(38, 2)) + 0.88", "12345678901234567891.00"},
    {"CAST('12345678901234567890.12' AS DECIMAL(38, 2)) * 2", "24691357802469135780.24"},
    {"0.1 * 0.1 * 0.1", "0.001"},
    {"1.0 / 7 * 7", "0.999999999999"},
    {"CAST(9.995 AS DECIMAL(5, 2))", "10.00"},
    {"CAST(-9.995 AS DECIMAL(5, 2))", "-10.00"},
    {"CAST(999.994 AS DECIMAL(5, 2))", "999.99"},
    {"CAST(1.23456789 AS DECIMAL(38, 18)) * CAST(2 AS DECIMAL(38, 18))", "2.469136"},
    {"CAST(5 AS DECIMAL(38, 0)) / CAST(3 AS DECIMAL(38, 0))", "1.666667"},
    {"- (1.50)", "-1.50"},
    {"ABS(-CAST('12345678901234567890.5' AS DECIMAL(38, 1)))", "12345678901234567890.5"},
    {"1.50 = 1.5", "TRUE"},
    {"CAST(0.5 AS DECIMAL(1, 0))", "1"},
    {"CAST(-0.5 AS DECIMAL(1, 0))", "-1"},
    {"CAST(1.5 AS DECIMAL(1, 0))", "2"},
};

static void test_decimal_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decimal_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
