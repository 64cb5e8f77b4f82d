/* SPDX-License-Identifier: Apache-2.0 */
/* Text functions on literals: what the calls fold to is what their kernels compute. Expected
 * values are answers of a Flink 2.3 (the scalar cases, and questions asked beside them). */
#include "tests/control/sql/bind_testing.h"

#define STRING_NULL NULL_OF(text_type(TYPE_LENGTH_MAX))

static void test_substring_and_ends_when_positions_odd_then_flinks(void **state)
{
    SHOWS(CALL("SUBSTRING", TEXT("hello"), INT(0), INT(2)), "'he'");
    SHOWS(CALL("SUBSTRING", TEXT("hello"), INT(-3)), "'llo'");
    SHOWS(CALL("SUBSTRING", TEXT("hello"), INT(-9), INT(2)), "''");
    SHOWS(CALL("SUBSTRING", TEXT("hello"), INT(2), INT(-1)), "NULL");
    SHOWS(CALL("SUBSTRING", TEXT("hello"), INT(9)), "''");
    SHOWS(CALL("SUBSTRING",
               TEXT("a\xf0\x9f\x98\x80"
                    "b"),
               INT(2), INT(1)),
          "'\xf0\x9f\x98\x80'");
    SHOWS(CALL("LEFT", TEXT("hello World"), INT(2)), "'he'");
    SHOWS(CALL("LEFT", TEXT("hello"), INT(-1)), "''");
    SHOWS(CALL("RIGHT", TEXT("hello World"), INT(2)), "'ld'");
    SHOWS(CALL("RIGHT", TEXT("ab"), INT(5)), "'ab'");
    SHOWS(CALL("RIGHT", TEXT("ab"), INT(0)), "''");
}

static void test_case_mapping_when_beyond_ascii_then_javas(void **state)
{
    SHOWS(CALL("UPPER", TEXT("straße ÀÉ")), "'STRASSE ÀÉ'");
    SHOWS(CALL("LOWER", TEXT("straße ÀÉ")), "'straße àé'");
    SHOWS(CALL("LOWER", TEXT("İstanbul ıi")), "'i\xcc\x87stanbul ıi'");
    SHOWS(CALL("UPPER", TEXT("İstanbul ıi")), "'İSTANBUL II'");
    SHOWS(CALL("UPPER", TEXT("ǆ")), "'Ǆ'");
    SHOWS(CALL("LOWER", TEXT("ΑΣ ΑΣΑ")), "'ας ασα'");
    SHOWS(CALL("INITCAP", TEXT("straße ÀÉ")), "'StraßE ÀÉ'");
    SHOWS(CALL("INITCAP", TEXT("  lead o'neil-SMITH 3rd")), "'  Lead O'Neil-Smith 3rd'");
    SHOWS(CALL("INITCAP", TEXT("İstanbul ıi")), "'İStanbul ıI'");
    SHOWS(CALL("REVERSE", TEXT("a\xf0\x9f\x98\x80"
                               "b")),
          "'b\xf0\x9f\x98\x80"
          "a'");
}

static void test_case_mapping_when_bytes_are_no_utf8_then_kept(void **state)
{
    SHOWS(CALL("UPPER", TEXT("a\xf7\xbf\xbf\xbf"
                             "b")),
          "'A\xf7\xbf\xbf\xbf"
          "B'");
    SHOWS(CALL("LOWER", TEXT("A\xc3")), "'a\xc3'");
    SHOWS(CALL("LOWER", TEXT("\xe2\x41")), "'\xe2"
                                           "a'");
    SHOWS(CALL("REVERSE", TEXT("a\xf0\x9f")), "'\xf0\x9f"
                                              "a'");
    SHOWS(CALL("REGEXP_REPLACE",
               TEXT("a\xff"
                    "1"),
               TEXT("[0-9]"), TEXT("#")),
          "'a\xff#'");
}

static void test_codes_when_any_then_flinks(void **state)
{
    SHOWS(CALL("ASCII", TEXT("é")), "-61");
    SHOWS(CALL("ASCII", TEXT("")), "0");
    SHOWS(CALL("CHR", INT(353)), "'a'");
    SHOWS(CALL("CHR", INT(8364)), "'¬'");
    SHOWS(CALL("CHR", INT(-1)), "''");
    SHOWS(CALL("HEX", TEXT("naïve")), "'6E61C3AF7665'");
    SHOWS(CALL("HEX", INT(-1)), "'FFFFFFFFFFFFFFFF'");
    SHOWS(CALL("BIN", INT(5)), "'101'");
    SHOWS(CALL("UNHEX", TEXT("xy")), "NULL");
    SHOWS(CALL("TO_BASE64", TEXT("hello")), "'aGVsbG8='");
    SHOWS(CALL("FROM_BASE64", TEXT("aGVsbG8=")), "'hello'");
    SHOWS(CALL("URL_ENCODE", TEXT("a b/é")), "'a+b%2F%C3%A9'");
    SHOWS(CALL("URL_DECODE", TEXT("a+b%2F%C3%A9")), "'a b/é'");
    SHOWS(CALL("URL_DECODE", TEXT("%zz")), "NULL");
}

static void test_pads_when_short_long_or_negative_then_flinks(void **state)
{
    SHOWS(CALL("LPAD", TEXT("abc"), INT(5), TEXT("*-")), "'*-abc'");
    SHOWS(CALL("RPAD", TEXT("abc"), INT(5), TEXT("*-")), "'abc*-'");
    SHOWS(CALL("LPAD", TEXT("abcdef"), INT(3), TEXT("*-")), "'abc'");
    SHOWS(CALL("LPAD", TEXT(""), INT(4), TEXT("*-")), "'*-*-'");
    SHOWS(CALL("LPAD", TEXT("東京"), INT(5), TEXT("*-")), "'*-*東京'");
    SHOWS(CALL("RPAD", TEXT("東京"), INT(5), TEXT("*-")), "'東京*-*'");
    SHOWS(CALL("LPAD", TEXT("abc"), INT(5), TEXT("")), "NULL");
    SHOWS(CALL("LPAD", TEXT("abc"), INT(-1), TEXT("x")), "NULL");
    SHOWS(CALL("LPAD", TEXT("a"), INT(3), TEXT("\xa5")), "'\xa5\xa5"
                                                         "a'");
    SHOWS(CALL("RPAD", TEXT("abc"), INT(0), TEXT("x")), "''");
    SHOWS(CALL("REPEAT", TEXT("ab"), INT(3)), "'ababab'");
    SHOWS(CALL("REPEAT", TEXT("ab"), INT(-3)), "''");
}

static void test_edits_when_any_then_flinks(void **state)
{
    SHOWS(CALL("REPLACE", TEXT("abc"), TEXT("a"), TEXT("ZZ")), "'ZZbc'");
    SHOWS(CALL("REPLACE", TEXT("aaa"), TEXT("a"), TEXT("ZZ")), "'ZZZZZZ'");
    SHOWS(CALL("REPLACE", TEXT("abc"), TEXT(""), TEXT("x")), "'xaxbxcx'");
    SHOWS(CALL("REPLACE", TEXT(""), TEXT(""), TEXT("x")), "'x'");
    SHOWS(CALL("TRANSLATE", TEXT("abcdef"), TEXT("abc"), TEXT("xy")), "'xydef'");
    SHOWS(CALL("OVERLAY", TEXT("abcdef"), TEXT("##"), INT(2)), "'a##def'");
    SHOWS(CALL("OVERLAY", TEXT("abc"), TEXT("##"), INT(2), INT(1)), "'a##c'");
    SHOWS(CALL("OVERLAY", TEXT("abcdef"), TEXT("Q"), INT(3), INT(2)), "'abQef'");
    SHOWS(CALL("OVERLAY", TEXT("a,b,,c"), TEXT("Q"), INT(1), INT(2)), "'Qb,,c'");
    SHOWS(CALL("OVERLAY", TEXT("東京"), TEXT("##"), INT(2)), "'東##'");
    SHOWS(CALL("OVERLAY", TEXT("abc"), TEXT("Q"), INT(5), INT(2)), "'abc'");
    SHOWS(CALL("OVERLAY", TEXT("a\xff"), TEXT("Q"), INT(1), INT(2)), "'Q?'");
    SHOWS(CALL("SPLIT_INDEX", TEXT("a,b,,c"), TEXT(","), INT(2)), "''");
    SHOWS(CALL("SPLIT_INDEX", TEXT("a,b,,c"), TEXT(","), INT(1)), "'b'");
    SHOWS(CALL("SPLIT_INDEX", TEXT("a-b-c"), INT(45), INT(1)), "'b'");
    SHOWS(CALL("SPLIT_INDEX", TEXT(""), TEXT(","), INT(0)), "NULL");
    SHOWS(CALL("SPLIT_INDEX", TEXT("a"), TEXT(","), INT(-1)), "NULL");
    SHOWS(CALL("ELT", INT(2), TEXT("one"), TEXT("two")), "'two'");
    SHOWS(CALL("ELT", INT(5), TEXT("one"), TEXT("two")), "NULL");
}

static void test_concat_and_trim_when_nulls_then_flinks(void **state)
{
    SHOWS(CALL("CONCAT_WS", TEXT(", "), TEXT("a"), STRING_NULL, TEXT(""), TEXT("z")), "'a, , z'");
    SHOWS(CALL("CONCAT_WS", STRING_NULL, TEXT("a")), "NULL");
    SHOWS(CALL("CONCAT", TEXT("a"), STRING_NULL), "NULL");
    SHOWS(CALL("||", TEXT("a"), TEXT("b"), TEXT("c")), "'abc'");
    SHOWS(CALL("TRIM", TEXT("BOTH"), TEXT(" "), TEXT("  a b ")), "'a b'");
    SHOWS(CALL("TRIM", TEXT("LEADING"), TEXT("xé"), TEXT("éxaé")), "'aé'");
    SHOWS(CALL("TRIM", TEXT("TRAILING"), TEXT("xé"), TEXT("éxaéx")), "'éxa'");
    SHOWS(CALL("LTRIM", TEXT("\t a")), "'\t a'");
    SHOWS(CALL("POSITION", TEXT("京"), TEXT("東京")), "2");
    SHOWS(CALL("POSITION", TEXT(""), TEXT("ab")), "1");
    SHOWS(CALL("POSITION", TEXT("x"), TEXT("ab")), "0");
    SHOWS(CALL("LOCATE", TEXT("a"), TEXT("banana"), INT(3)), "4");
    SHOWS(CALL("INSTR", TEXT("banana"), TEXT("n")), "3");
    SHOWS(CALL("CHAR_LENGTH", TEXT("a\xf0\x9f\x98\x80"
                                   "b")),
          "3");
    SHOWS(CALL("STARTSWITH", TEXT("abc"), TEXT("ab")), "TRUE");
    SHOWS(CALL("ENDSWITH", TEXT("abc"), TEXT("ab")), "FALSE");
}

static void check_like(const char *text, const char *pattern, bool expected)
{
    SHOWS(CALL("LIKE", TEXT(text), TEXT(pattern)), expected ? "TRUE" : "FALSE");
}

static void test_like_when_wildcards_then_flinks(void **state)
{
    check_like("Coffee Shop", "Coffee%", true);
    check_like("coffee shop", "%shop", true);
    check_like("coffee shop", "%ff%", true);
    check_like("a_b", "a_b", true);
    check_like("axb", "a_b", true);
    check_like("a_b", "a\\_b", false);
    check_like("a\\xb", "a\\_b", true);
    check_like("", "%", true);
    check_like("", "", true);
    check_like("line1\nline2", "line1%line2", true);
    check_like("line1\nline2", "line1_line2", false);
    check_like("café", "caf_", true);
    check_like("\xf0\x9f\x98\x80x", "_x", true);
    check_like("\xf0\x9f\x98\x80x", "__x", false);
    check_like("a.c", "a.c", true);
    check_like("abc", "a.c", false);
    check_like("[x]", "[x]", true);
    check_like("abcabc", "a%c%b%", true);
    check_like("abc", "___", true);
    check_like("aab", "%ab", true);
    check_like("ab", "a%b%_", false);
    SHOWS(CALL("LIKE", TEXT("50% off"), TEXT("%!%%"), TEXT("!")), "TRUE");
    SHOWS(CALL("LIKE", TEXT("axb"), TEXT("a$_b"), TEXT("$")), "FALSE");
    SHOWS(CALL("LIKE", TEXT("a_b"), TEXT("a$_b"), TEXT("$")), "TRUE");
}

static void check_similar(const char *text, const char *pattern, bool expected)
{
    SHOWS(CALL("SIMILAR TO", TEXT(text), TEXT(pattern)), expected ? "TRUE" : "FALSE");
}

static void test_similar_when_regular_then_flinks(void **state)
{
    check_similar("abcabc", "(abc)+", true);
    check_similar("2024-03-01", "[0-9]{4}-[0-9]{2}-[0-9]{2}", true);
    check_similar("Coffee Shop", "%(shop|Shop)", true);
    check_similar("a\\b", "[a-z]_[a-z]", true);
    check_similar("a_b", "[a-z]_[a-z]", true);
    check_similar("100", "1(0)*", true);
    check_similar("100", "%[0-9]%", true);
    check_similar("a.c", "a.c", true);
    check_similar("axb", "[[:alpha:]]+", true);
    check_similar("a_b", "[[:alpha:]]+", false);
    check_similar("line1\nline2", "line%", true);
}

static void test_regexp_when_javas_patterns_then_flinks(void **state)
{
    const struct expr *log = TEXT("user=42 ip=10.0.0.1");
    const struct expr *cafe = TEXT("café 東京 12");
    SHOWS(CALL("REGEXP", log, TEXT("user=[0-9]+")), "TRUE");
    SHOWS(CALL("REGEXP", log, TEXT("")), "FALSE");
    SHOWS(CALL("REGEXP_EXTRACT", log, TEXT("user=([0-9]+)")), "'user=42'");
    SHOWS(CALL("REGEXP_EXTRACT", log, TEXT("user=([0-9]+)"), INT(1)), "'42'");
    SHOWS(CALL("REGEXP_EXTRACT", log, TEXT("(x)?user"), INT(1)), "NULL");
    SHOWS(CALL("REGEXP_EXTRACT", log, TEXT("user"), INT(7)), "NULL");
    SHOWS(CALL("REGEXP_EXTRACT", log, TEXT("(user"), INT(0)), "NULL");
    SHOWS(CALL("REGEXP_EXTRACT", TEXT("user=7\nuser=8"), TEXT("([a-z]+)=([^ ]*)"), INT(2)),
          "'7\nuser=8'");
    SHOWS(CALL("REGEXP_REPLACE", log, TEXT("\\d+"), TEXT("<n>")), "'user=<n> ip=<n>.<n>.<n>.<n>'");
    SHOWS(CALL("REGEXP_REPLACE", TEXT("a1b22c333"), TEXT("([a-z])([0-9])"), TEXT("$2$1")),
          "'$2$1$2$12$2$133'");
    SHOWS(CALL("REGEXP_REPLACE", log, TEXT("(?i)USER"), TEXT("card")), "'card=42 ip=10.0.0.1'");
    SHOWS(CALL("REGEXP_REPLACE", TEXT("price: $5 \\ €6"), TEXT("\\$"), TEXT("USD")),
          "'price: USD5 \\ €6'");
    SHOWS(CALL("REGEXP_REPLACE", TEXT("aab"), TEXT("a*"), TEXT("X")), "'XXbX'");
    SHOWS(CALL("REGEXP_COUNT", log, TEXT("[0-9]+")), "5");
    SHOWS(CALL("REGEXP_INSTR", cafe, TEXT("[0-9]+")), "9");
    SHOWS(CALL("REGEXP_INSTR", TEXT(""), TEXT("[0-9]+")), "0");
    SHOWS(CALL("REGEXP_SUBSTR", log, TEXT("[0-9]+")), "'42'");
    SHOWS(CALL("REGEXP_EXTRACT", cafe, TEXT("\\b[a-z]+\\b"), INT(0)), "NULL");
    SHOWS(CALL("REGEXP_EXTRACT", TEXT("no match"), TEXT("\\b[a-z]+\\b"), INT(0)), "'no'");
    SHOWS(CALL("REGEXP_EXTRACT", TEXT("no match"), TEXT("[\\p{L}]+$"), INT(0)), "'match'");
    SHOWS(CALL("IS_ALPHA", TEXT("été")), "TRUE");
    SHOWS(CALL("IS_DIGIT", TEXT("12a")), "FALSE");
    SHOWS(CALL("IS_DIGIT", STRING_NULL), "FALSE");
    SHOWS(CALL("IS_DIGIT", TEXT("\xd9\xa3")), "TRUE");
    SHOWS(CALL("IS_DECIMAL", TEXT("1.")), "TRUE");
    SHOWS(CALL("IS_DECIMAL", TEXT("1e5")), "TRUE");
    SHOWS(CALL("IS_DECIMAL", TEXT("+.5")), "TRUE");
    SHOWS(CALL("IS_DECIMAL", TEXT("")), "FALSE");
    SHOWS(CALL("IS_DECIMAL", TEXT("abc")), "FALSE");
    SHOWS(CALL("REGEXP", TEXT("abc"), TEXT("(")), "FALSE");
    SHOWS(CALL("REGEXP_REPLACE", TEXT("abc"), TEXT("("), TEXT("x")), "NULL");
    SHOWS(CALL("REGEXP_COUNT", TEXT("abc"), TEXT("(")), "NULL");
    SHOWS(CALL("REGEXP_COUNT", TEXT("abc"), TEXT("")), "4");
    SHOWS(CALL("SIMILAR TO", TEXT("abc"), TEXT("a.c")), "TRUE");
    SHOWS(CALL("LTRIM", TEXT("xax"), TEXT("x")), "'ax'");
    SHOWS(CALL("BTRIM", TEXT("xax"), TEXT("x")), "'a'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_substring_and_ends_when_positions_odd_then_flinks),
        cmocka_unit_test(test_case_mapping_when_beyond_ascii_then_javas),
        cmocka_unit_test(test_case_mapping_when_bytes_are_no_utf8_then_kept),
        cmocka_unit_test(test_codes_when_any_then_flinks),
        cmocka_unit_test(test_pads_when_short_long_or_negative_then_flinks),
        cmocka_unit_test(test_edits_when_any_then_flinks),
        cmocka_unit_test(test_concat_and_trim_when_nulls_then_flinks),
        cmocka_unit_test(test_like_when_wildcards_then_flinks),
        cmocka_unit_test(test_similar_when_regular_then_flinks),
        cmocka_unit_test(test_regexp_when_javas_patterns_then_flinks),
    };
    return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
