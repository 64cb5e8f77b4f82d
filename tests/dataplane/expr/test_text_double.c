/* SPDX-License-Identifier: Apache-2.0 */
/* Floating numbers as text: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CAST(1e21 AS STRING)", "1.0E21"},
    {"CAST(1e22 AS STRING)", "1.0E22"},
    {"CAST(2e-3 AS STRING)", "0.002"},
    {"CAST(9007199254740993e0 AS STRING)", "9.007199254740992E15"},
    {"CAST(5e-324 AS STRING)", "4.9E-324"},
    {"CAST(2.2250738585072014e-308 AS STRING)", "2.2250738585072014E-308"},
    {"CAST(1.0e23 AS STRING)", "9.999999999999999E22"},
    {"CAST(123456.789e0 AS STRING)", "123456.789"},
    {"CAST(-1.5e0 AS STRING)", "-1.5"},
    {"CAST(9999999e0 AS STRING)", "9999999.0"},
    {"CAST(10000000e0 AS STRING)", "1.0E7"},
    {"CAST(0.001e0 AS STRING)", "0.001"},
    {"CAST(0.00099e0 AS STRING)", "9.9E-4"},
    {"CAST(2e0 / 3e0 AS STRING)", "0.6666666666666666"},
    {"CAST('1e400' AS DOUBLE)", "Infinity"},
    {"CAST('1e-400' AS DOUBLE)", "0.0"},
    {"CAST(CAST('1.4e-45' AS FLOAT) AS STRING)", "1.4E-45"},
    {"CAST(CAST('0.1' AS FLOAT) AS STRING)", "0.1"},
    {"CAST(CAST('1e10' AS FLOAT) AS STRING)", "1.0E10"},
};

static void test_text_double_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_double_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
