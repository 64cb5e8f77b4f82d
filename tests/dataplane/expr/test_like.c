/* SPDX-License-Identifier: Apache-2.0 */
/* LIKE and its escapes: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"'abc' LIKE 'a%'", "TRUE"},
    {"'abc' LIKE '_b_'", "TRUE"},
    {"'abc' LIKE '%c'", "TRUE"},
    {"'abc' LIKE '%b%'", "TRUE"},
    {"'' LIKE '%'", "TRUE"},
    {"'' LIKE ''", "TRUE"},
    {"'' LIKE '_'", "FALSE"},
    {"'a%c' LIKE 'a!%c' ESCAPE '!'", "TRUE"},
    {"'abc' LIKE 'a!%c' ESCAPE '!'", "FALSE"},
    {"'a_c' LIKE 'a#_c' ESCAPE '#'", "TRUE"},
    {"'日本語' LIKE '__語'", "TRUE"},
    {"'日本語' LIKE '_語'", "FALSE"},
    {"'abc' NOT LIKE 'x%'", "TRUE"},
    {"'aXbXc' LIKE '%X%X%'", "TRUE"},
    {"'aXbc' LIKE '%X%X%'", "FALSE"},
    {"'ab' LIKE 'ab%'", "TRUE"},
    {"'ABC' LIKE 'abc'", "FALSE"},
    {"'a.c' LIKE 'a.c'", "TRUE"},
    {"'abc' LIKE 'a.c'", "FALSE"},
    {"'a\nb' LIKE 'a_b'", "FALSE"},
    {"'a\nb' LIKE 'a%b'", "TRUE"},
    {"'aaa' LIKE '%aa'", "TRUE"},
    {"'mississippi' LIKE 'm%iss%ip%i'", "TRUE"},
    {"'mississippi' LIKE 'm%iss%iss%iss%'", "FALSE"},
    {"CAST(NULL AS STRING) LIKE '%'", NULL},
    {"'abc ' LIKE 'abc'", "FALSE"},
    {"'\\abc' LIKE '\\abc'", "TRUE"},
    {"'x' LIKE '%%%'", "TRUE"},
    {"'💶1' LIKE '_1'", "TRUE"},
};

static void test_like_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
