/* SPDX-License-Identifier: Apache-2.0 */
/* Roots, powers, logarithms, trigonometry: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"SQRT(16)", "4.0"},
    {"SQRT(2)", "1.4142135623730951"},
    {"POWER(2, 10)", "1024.0"},
    {"POWER(2, -1)", "0.5"},
    {"EXP(1)", "2.718281828459045"},
    {"LN(10)", "2.302585092994046"},
    {"LOG10(1000)", "3.0"},
    {"LOG2(8)", "3.0"},
    {"LOG(2, 8)", "3.0"},
    {"SIN(0)", "0.0"},
    {"COS(0)", "1.0"},
    {"TAN(0)", "0.0"},
    {"ASIN(1)", "1.5707963267948966"},
    {"ACOS(1)", "0.0"},
    {"ATAN(1)", "0.7853981633974483"},
    {"ATAN2(1, 1)", "0.7853981633974483"},
    {"SINH(1)", "1.1752011936438014"},
    {"TANH(1)", "0.7615941559557649"},
    {"COT(1)", "0.6420926159343306"},
    {"DEGREES(PI())", "180.0"},
    {"RADIANS(180)", "3.141592653589793"},
    {"PI()", "3.141592653589793"},
    {"E()", "2.718281828459045"},
    {"SQRT(CAST(NULL AS DOUBLE))", NULL},
    {"EXP(0)", "1.0"},
    {"LN(1)", "0.0"},
    {"POWER(0, 0)", "1.0"},
    {"SIN(1.5)", "0.9974949866040544"},
    {"EXP(-1e0)", "0.36787944117144233"},
};

static void test_math_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_math_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
