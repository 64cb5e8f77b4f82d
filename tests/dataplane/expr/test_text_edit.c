/* SPDX-License-Identifier: Apache-2.0 */
/* Text written anew: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"REPLACE('banana', 'an', 'x')", "bxxa"},
    {"REPLACE('abc', 'z', 'x')", "abc"},
    {"REPEAT('ab', 0)", ""},
    {"REPEAT('ab', 2)", "abab"},
    {"LPAD('hi', 5, '?')", "???hi"},
    {"RPAD('hi', 5, '?')", "hi???"},
    {"LPAD('hi', 1, '?')", "h"},
    {"LPAD('hi', 5, 'abc')", "abchi"},
    {"OVERLAY('abcdef' PLACING 'XY' FROM 3)", "abXYef"},
    {"OVERLAY('abcdef' PLACING 'XY' FROM 3 FOR 1)", "abXYdef"},
    {"TRANSLATE('hello', 'el', 'ip')", "hippo"},
    {"TRANSLATE('hello', 'l', '')", "heo"},
    {"ELT(1, 'a', 'b')", "a"},
    {"ELT(3, 'a', 'b')", NULL},
    {"REVERSE('abc')", "cba"},
    {"REPLACE('日本日', '日', '月')", "月本月"},
    {"LPAD('日', 3, '本')", "本本日"},
    {"RPAD('', 3, 'ab')", "aba"},
};

static void test_text_edit_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_edit_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
