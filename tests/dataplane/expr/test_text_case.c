/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case, beyond ASCII too: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"UPPER('abc')", "ABC"},
    {"LOWER('ABC')", "abc"},
    {"UPPER('ß')", "SS"},
    {"UPPER('ﬁ')", "FI"},
    {"LOWER('İ')", "i̇"},
    {"UPPER('ı')", "I"},
    {"LOWER('ΑΣ')", "ας"},
    {"LOWER('Σ')", "σ"},
    {"LOWER('ΣΑ')", "σα"},
    {"UPPER('ά')", "Ά"},
    {"UPPER('ŉ')", "ʼN"},
    {"INITCAP('hello world')", "Hello World"},
    {"INITCAP('HELLO wORLD')", "Hello World"},
    {"INITCAP('a1b2')", "A1b2"},
    {"INITCAP('')", ""},
    {"UPPER('日本')", "日本"},
    {"LOWER('ÀÉÎ')", "àéî"},
    {"UPPER('àéî')", "ÀÉÎ"},
    {"UPPER('ÿ')", "Ÿ"},
    {"LOWER('Ÿ')", "ÿ"},
    {"UPPER('ᾳ')", "ΑΙ"},
    {"LOWER('𐐀')", "𐐨"},
    {"UPPER('𐐨')", "𐐀"},
    {"UPPER('ǆ')", "Ǆ"},
    {"LOWER('ǅ')", "ǆ"},
};

static void test_text_case_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_case_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
