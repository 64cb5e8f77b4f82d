/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"REGEXP('abc123', '[0-9]+')", "TRUE"},
    {"REGEXP('abc', '^b')", "FALSE"},
    {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)", "bar"},
    {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 1)", "the"},
    {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)')", "foothebar"},
    {"REGEXP_EXTRACT('abc', 'x(y)', 1)", NULL},
    {"REGEXP_REPLACE('foobar', '[oa]', '')", "fbr"},
    {"REGEXP_REPLACE('abc', '(b)', '[$1]')", "a[$1]c"},
    {"REGEXP_REPLACE('aaa', 'a', 'b')", "bbb"},
    {"'abc' SIMILAR TO '[a-c]+'", "TRUE"},
    {"'abc' SIMILAR TO 'a%'", "TRUE"},
    {"'abc' SIMILAR TO '(ab)?c'", "TRUE"},
    {"'abc' NOT SIMILAR TO 'a'", "TRUE"},
    {"REGEXP_COUNT('banana', 'an')", "2"},
    {"REGEXP_INSTR('banana', 'n')", "3"},
    {"REGEXP_SUBSTR('banana', 'n.')", "na"},
    {"REGEXP_EXTRACT('日本語', '(本)', 1)", "本"},
    {"REGEXP('A', '(?i)a')", "TRUE"},
};

static void test_regex_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regex_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
