/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of text: HEX, BIN, base64, URLs, digits: what a Flink 2.3 answered to the same SQL, as
 * text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"HEX('abc')", "616263"},
    {"HEX(255)", "FF"},
    {"HEX(0)", "0"},
    {"HEX(-1)", "FFFFFFFFFFFFFFFF"},
    {"HEX('')", ""},
    {"BIN(0)", "0"},
    {"BIN(-1)", "1111111111111111111111111111111111111111111111111111111111111111"},
    {"BIN(10)", "1010"},
    {"TO_BASE64('')", ""},
    {"TO_BASE64('a')", "YQ=="},
    {"TO_BASE64('ab')", "YWI="},
    {"TO_BASE64('abc')", "YWJj"},
    {"TO_BASE64('日本')", "5pel5pys"},
    {"FROM_BASE64('YQ==')", "a"},
    {"FROM_BASE64('')", ""},
    {"URL_ENCODE('a b&c=d/é')", "a+b%26c%3Dd%2F%C3%A9"},
    {"URL_ENCODE('*-._~')", "*-._%7E"},
    {"URL_DECODE('a%20b+c')", "a b c"},
    {"URL_DECODE('%E6%97%A5')", "日"},
    {"URL_DECODE('%')", NULL},
    {"IS_DECIMAL('1.5')", "TRUE"},
    {"IS_DECIMAL('a')", "FALSE"},
    {"IS_DECIMAL('')", "FALSE"},
    {"IS_DIGIT('123')", "TRUE"},
    {"IS_DIGIT('1.2')", "FALSE"},
    {"IS_ALPHA('abc')", "TRUE"},
    {"IS_ALPHA('a1')", "FALSE"},
};

static void test_text_code_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_code_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
