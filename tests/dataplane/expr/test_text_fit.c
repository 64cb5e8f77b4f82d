/* SPDX-License-Identifier: Apache-2.0 */
/* Text fitted to CHAR, VARCHAR and BINARY: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CAST('abc' AS CHAR(5)) || '#'", "abc  #"},
    {"CAST('日本語' AS CHAR(2)) || '#'", "日本#"},
    {"CAST('日本語' AS VARCHAR(2)) || '#'", "日本#"},
    {"CAST('💶💶' AS VARCHAR(1)) || '#'", "💶#"},
    {"CAST('' AS CHAR(2)) || '#'", "  #"},
    {"CAST('abc' AS VARCHAR(5)) || '#'", "abc#"},
    {"CAST(1.5 AS CHAR(5)) || '#'", "1.5  #"},
    {"CAST(TRUE AS VARCHAR(2))", "TR"},
    {"CAST(CAST('abc' AS CHAR(2)) AS VARCHAR(5)) || '#'", "ab#"},
    {"CHAR_LENGTH(CAST('é' AS CHAR(3)))", "3"},
    {"CAST(X'616263' AS STRING)", "abc"},
    {"HEX(CAST(CAST('abc' AS BINARY(2)) AS STRING))", "6162"},
};

static void test_text_fit_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_fit_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
