/* SPDX-License-Identifier: Apache-2.0 */
/* PARSE_URL: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"PARSE_URL('http://h/p?a=1', 'HOST')", "h"},
    {"PARSE_URL('http://h/p?a=1', 'QUERY')", "a=1"},
    {"PARSE_URL('http://h/p?a=1', 'QUERY', 'a')", "1"},
    {"PARSE_URL('http://h/p?a=1', 'QUERY', 'b')", NULL},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'USERINFO')", "u:p"},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'AUTHORITY')", "u:p@h:80"},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'FILE')", "/p;x?a=1&a=2"},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'REF')", "r"},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'PATH')", "/p;x"},
    {"PARSE_URL('http://u:p@h:80/p;x?a=1&a=2#r', 'QUERY', 'a')", "1"},
    {"PARSE_URL('HTTPS://h', 'PROTOCOL')", "https"},
    {"PARSE_URL('foo://h', 'HOST')", NULL},
    {"PARSE_URL('no url', 'HOST')", NULL},
    {"PARSE_URL('http://h:x/', 'HOST')", NULL},
    {"PARSE_URL('http://[::1]:80/', 'HOST')", "[::1]"},
    {"PARSE_URL('mailto:a@b?s=1', 'QUERY')", "s=1"},
    {"PARSE_URL('http://h/p', 'QUERY')", NULL},
    {"PARSE_URL(CAST(NULL AS STRING), 'HOST')", NULL},
};

static void test_text_url_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_url_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
