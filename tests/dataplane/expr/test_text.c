/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of text and joining: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CHAR_LENGTH('日本語')", "3"},
    {"CHAR_LENGTH('')", "0"},
    {"CHARACTER_LENGTH('abc')", "3"},
    {"'a' || 'b' || 'c'", "abc"},
    {"'a' || CAST(NULL AS STRING)", NULL},
    {"CONCAT('a', 'b')", "ab"},
    {"CONCAT_WS('-', 'a', CAST(NULL AS STRING), 'b')", "a-b"},
    {"SUBSTRING('abcdef' FROM 2 FOR 3)", "bcd"},
    {"SUBSTRING('abcdef' FROM 3)", "cdef"},
    {"SUBSTR('abcdef', -2)", "ef"},
    {"LEFT('abc', 2)", "ab"},
    {"RIGHT('abc', 2)", "bc"},
    {"POSITION('c' IN 'abcabc')", "3"},
    {"POSITION('x' IN 'abc')", "0"},
    {"POSITION('' IN 'abc')", "1"},
    {"LOCATE('b', 'abcb', 3)", "4"},
    {"INSTR('abcb', 'b')", "2"},
    {"TRIM('  a  ')", "a"},
    {"TRIM(LEADING 'x' FROM 'xxaxx')", "axx"},
    {"TRIM(TRAILING 'x' FROM 'xxaxx')", "xxa"},
    {"TRIM(BOTH 'xy' FROM 'xyaxyx')", "a"},
    {"LTRIM('  a ')", "a "},
    {"RTRIM(' a  ')", " a"},
    {"BTRIM('  a  ')", "a"},
    {"ASCII('a')", "97"},
    {"ASCII('日')", "-26"},
    {"CHR(97)", "a"},
    {"STARTSWITH('abc', 'ab')", "TRUE"},
    {"ENDSWITH('abc', 'bc')", "TRUE"},
    {"SPLIT_INDEX('a;b;c', ';', 1)", "b"},
    {"SPLIT_INDEX('a;b;c', ';', 9)", NULL},
    {"REVERSE('日本')", "本日"},
};

static void test_text_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
