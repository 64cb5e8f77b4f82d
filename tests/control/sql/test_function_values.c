/* SPDX-License-Identifier: Apache-2.0 */
/* Values of functions on literals: what the calls fold to is what their kernels compute. Expected
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
}

static void test_round_when_any_number_then_flinks(void **state)
{
    SHOWS(CALL("ROUND", INT(2147483647), INT(-1)), "-2147483646");
    SHOWS(CALL("ROUND", INT(-15), INT(-1)), "-20");
    SHOWS(CALL("ROUND", INT(50), INT(-2)), "100");
    SHOWS(CALL("ROUND", BIGINT(INT64_MAX), INT(-3)), "-9223372036854775616");
    SHOWS(CALL("ROUND", DOUBLE(1.005), INT(2)), "1.01");
    SHOWS(CALL("ROUND", DOUBLE(2.675), INT(2)), "2.68");
    SHOWS(CALL("ROUND", DOUBLE(12345.6789), INT(-2)), "12300.0");
    SHOWS(CALL("ROUND", DOUBLE(-0.4)), "0.0");
    SHOWS(CALL("ROUND", DOUBLE(0.49999999999999994)), "0.0");
    SHOWS(CALL("ROUND", DOUBLE(1e15), INT(2)), "1.0E15");
    SHOWS(CALL("ROUND", FLOAT(0.45F), INT(1)), "0.4");
    SHOWS(CALL("ROUND", DOUBLE(9.995), INT(2)), "10.0");
    SHOWS(CALL("ROUND", DECIMAL("12345.6789", 12, 4), INT(-2)), "12300");
    SHOWS(CALL("ROUND", DECIMAL("-2.5000", 12, 4)), "-3");
    SHOWS(CALL("ROUND", DECIMAL("9999999.9999", 12, 4), INT(2)), "10000000.00");
    SHOWS(CALL("TRUNCATE", DECIMAL("-12345.6789", 12, 4), INT(2)), "-12345.67");
    SHOWS(CALL("TRUNCATE", DOUBLE(12345.6789), INT(-3)), "12000.0");
    SHOWS(CALL("TRUNCATE", DOUBLE(-0.4), INT(-3)), "0.0");
    SHOWS(CALL("TRUNCATE", DOUBLE(0.49999999999999994), INT(1)), "0.4");
    SHOWS(CALL("TRUNCATE", INT(-2147483647 - 1), INT(-2)), "-2147483600");
    SHOWS(CALL("FLOOR", DECIMAL("-12345.6789", 12, 4)), "-12346");
    SHOWS(CALL("CEIL", DOUBLE(-0.4)), "-0.0");
    SHOWS(CALL("SIGN", DECIMAL("-2.50", 12, 2)), "-1.00");
}

static void test_mathematics_when_out_of_domain_then_no_failure(void **state)
{
    SHOWS(CALL("SQRT", INT(-1)), "NaN");
    SHOWS(CALL("LN", INT(0)), "-Infinity");
    SHOWS(CALL("POWER", INT(2), INT(10)), "1024.0");
    SHOWS(CALL("LOG", INT(2), INT(8)), "3.0");
    SHOWS(CALL("LOG2", INT(8)), "3.0");
    SHOWS(CALL("DEGREES", DOUBLE(3.141592653589793)), "180.0");
    SHOWS(CALL("ATAN2", INT(1), INT(1)), "0.7853981633974483");
}

static const struct expr *moment(const char *text)
{
    return TIMESTAMP(text, 3);
}

static void check_extract(const char *unit, const char *text, const char *expected)
{
    SHOWS(CALL("EXTRACT", TEXT(unit), moment(text)), expected);
}

static void test_extract_when_before_1970_then_towards_1970(void **state)
{
    check_extract("YEAR", "1969-12-31 23:59:59.999", "1970");
    check_extract("MILLISECOND", "1969-12-31 23:59:59.999", "-1");
    check_extract("SECOND", "1969-12-31 23:59:59.999", "0");
    check_extract("DAY", "1960-05-05 10:30:15.250", "6");
    check_extract("HOUR", "1960-05-05 10:30:15.250", "-13");
    check_extract("MINUTE", "1960-05-05 10:30:15.250", "-29");
    check_extract("SECOND", "1960-05-05 10:30:15.250", "-44");
    check_extract("EPOCH", "1960-01-31 12:00:00.25", "-312983999");
    check_extract("WEEK", "2021-01-03 00:00:00", "53");
    check_extract("ISOYEAR", "2021-01-03 00:00:00", "2020");
    check_extract("DOW", "2024-03-03 00:00:00", "1");
    check_extract("ISODOW", "2024-03-03 00:00:00", "7");
    check_extract("DOY", "2024-12-31 00:00:00", "366");
    check_extract("QUARTER", "2024-02-29 00:00:00", "1");
    check_extract("CENTURY", "2001-01-01 00:00:00", "21");
    check_extract("DECADE", "2024-02-29 00:00:00", "202");
    SHOWS(CALL("EXTRACT", TEXT("MICROSECOND"), TIMESTAMP("2024-02-29 12:34:56.789123", 6)),
          "789123");
}

static void check_rounding(const char *unit, const char *text, const char *down, const char *up)
{
    SHOWS(CALL("FLOOR", moment(text), TEXT(unit)), down);
    SHOWS(CALL("CEIL", moment(text), TEXT(unit)), up);
}

static void test_floor_and_ceil_when_times_then_flinks(void **state)
{
    const char *leap = "2024-02-29 13:45:56.789";
    check_rounding("YEAR", leap, "2024-01-01 00:00:00", "2025-01-01 00:00:00");
    check_rounding("QUARTER", leap, "2024-01-01 00:00:00", "2024-04-01 00:00:00");
    check_rounding("WEEK", leap, "2024-02-25 00:00:00", "2024-03-03 00:00:00");
    check_rounding("DAY", leap, "2024-02-29 00:00:00", "2024-03-01 00:00:00");
    check_rounding("HOUR", leap, "2024-02-29 13:00:00", "2024-02-29 14:00:00");
    check_rounding("SECOND", leap, "2024-02-29 13:45:56", "2024-02-29 13:45:57");
    check_rounding("MONTH", "2024-03-01 00:00:01", "2024-03-01 00:00:00", "2024-03-01 00:00:00");
    check_rounding("DAY", "2024-03-01 00:00:01", "2024-03-01 00:00:00", "2024-03-02 00:00:00");
    check_rounding("MONTH", "1960-01-31 12:00:00.25", "1960-02-01 00:00:00", "1960-02-01 00:00:00");
    check_rounding("WEEK", "1969-07-20 20:17:40", "1969-07-20 00:00:00", "1969-07-27 00:00:00");
    check_rounding("CENTURY", "2001-01-01 00:00:00", "2001-01-01 00:00:00", "2101-01-01 00:00:00");
    SHOWS(CALL("FLOOR", DATE("2024-03-04"), TEXT("WEEK")), "2024-03-03");
    SHOWS(CALL("CEIL", DATE("2024-03-03"), TEXT("WEEK")), "2024-03-03");
}

static const struct expr *interval(enum type_kind of, int64_t amount)
{
    return literal(kind(of), (struct value){.i64 = amount});
}

static void test_sums_with_intervals_when_any_then_flinks(void **state)
{
    const struct expr *month = interval(TYPE_INTERVAL_YEAR_MONTH, 1);
    const struct expr *hour = interval(TYPE_INTERVAL_DAY_TIME, 3600000);
    SHOWS(CALL("-", moment("2023-03-31 12:00:00"), month), "2023-02-28 12:00:00");
    SHOWS(CALL("+", DATE("2020-01-31"), month), "2020-02-29");
    SHOWS(CALL("+", DATE("2020-01-31"), hour), "2020-01-31");
    SHOWS(CALL("+", moment("2024-02-29 23:30:00"), hour), "2024-03-01 00:30:00");
    SHOWS(CALL("TIMESTAMPADD", TEXT("HOUR"), INT(25), DATE("2020-01-31")), "2020-02-01 01:00:00");
    SHOWS(CALL("TIMESTAMPADD", TEXT("MONTH"), INT(-1), DATE("2020-03-31")), "2020-02-29");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("MONTH"), moment("2024-03-01 00:00:01"),
               moment("2024-01-31 00:00:00")),
          "-1");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("DAY"), moment("2024-03-01 12:00:00"),
               moment("2024-02-29 13:00:00")),
          "0");
    SHOWS(CALL("TIMESTAMPDIFF", TEXT("YEAR"), DATE("2020-02-29"), DATE("2024-02-28")), "3");
    SHOWS(CAST(hour, text_type(TYPE_LENGTH_MAX)), "'+0 01:00:00.000'");
    SHOWS(CAST(interval(TYPE_INTERVAL_YEAR_MONTH, 14), text_type(TYPE_LENGTH_MAX)), "'+1-02'");
}

static void check_format(const char *text, const char *pattern, const char *expected)
{
    SHOWS(CALL("DATE_FORMAT", moment(text), TEXT(pattern)), expected);
}

static void test_date_format_when_javas_patterns_then_flinks(void **state)
{
    const char *night = "2024-02-29 23:59:59.999";
    check_format(night, "yyyy-MM-dd HH:mm:ss.SSS", "'2024-02-29 23:59:59.999'");
    check_format(night, "yy/M/d H:m:s", "'24/2/29 23:59:59'");
    check_format(night, "dd MMM yyyy", "'29 Feb 2024'");
    check_format(night, "EEEE, MMMM d", "'Thursday, February 29'");
    check_format(night, "hh:mm a", "'11:59 PM'");
    check_format(night, "S", "'9'");
    check_format(night, "SSSSSS", "'999000'");
    check_format(night, "yyyy'Q'Q", "'2024Q1'");
    check_format(night, "HH'h'mm", "'23h59'");
    check_format(night, "''", "'''");
    check_format(night, "A", "'86399999'");
    check_format(night, "n", "'999000000'");
    check_format(night, "DDD", "'060'");
    check_format(night, "w", "'9'");
    check_format(night, "e", "'5'");
    check_format(night, "yyyy-MM-dd'T'HH:mm:ss'Z'", "'2024-02-29T23:59:59Z'");
    check_format("2024-02-29 00:00:00", "kk hh", "'24 12'");
    check_format("2020-12-31 13:30:00", "w", "'1'");
    check_format("2021-01-03 00:00:00", "w", "'2'");
    check_format("0001-01-01 00:00:00.001", "u yy", "'1 01'");
    check_format("1969-12-31 23:59:59.999", "yyyy-MM-dd", "'1969-12-31'");
    SHOWS(CALL("DATE_FORMAT", TEXT("2024-02-29 10:11:12"), TEXT("HH.mm")), "'10.11'");
}

static void test_to_timestamp_when_lenient_or_not_then_flinks(void **state)
{
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29")), "2024-02-29 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29 12:34:56.789123456")), "2024-02-29 12:34:56.789");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-02-31")), "2020-02-29 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-01-01 24:00:00")), "2020-01-02 00:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020-1-2 3:4")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2020")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT(" 2020-01-01")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29T12:34:56")), "NULL");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("29/02/2024 10:00"), TEXT("dd/MM/yyyy HH:mm")),
          "2024-02-29 10:00:00");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("2024-02-29 12:34:56.789123456"), TEXT("yyyy-MM-dd")),
          "2024-02-29 12:34:56.789123456");
    SHOWS(CALL("TO_TIMESTAMP", TEXT("20240229101112"), TEXT("yyyyMMddHHmmss")),
          "2024-02-29 10:11:12");
    SHOWS(CALL("TO_DATE", TEXT("2020-1-2 3:4")), "2020-01-02");
    SHOWS(CALL("TO_DATE", TEXT("2020-02-31")), "NULL");
    SHOWS(CALL("TO_DATE", TEXT("29/02/2024 10:00"), TEXT("dd/MM/yyyy HH:mm")), "2024-02-29");
}

static void test_convert_tz_when_any_zone_then_flinks(void **state)
{
    const struct expr *utc = TEXT("UTC");
    const struct expr *york = TEXT("America/New_York");
    SHOWS(CALL("CONVERT_TZ", TEXT("2023-11-15 03:43:20"), utc, york), "'2023-11-14 22:43:20'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-02-30 25:61:61"), utc, york), "'2024-03-01 21:02:01'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-3-1 1:2:3"), utc, york), "'2024-02-29 20:02:03'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-02-29 12:34:56.789 tail"), utc, york),
          "'2024-02-29 07:34:56'");
    SHOWS(CALL("CONVERT_TZ", TEXT("9999-12-31 23:59:59"), TEXT("+02:00"), TEXT("Asia/Tokyo")),
          "'10000-01-01 08:59:59'");
    SHOWS(CALL("CONVERT_TZ", TEXT("9999-12-31 23:59:59"), utc, york), "'9999-12-31 18:59:59'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2024-07-01 12:00:00"), utc, york), "'2024-07-01 08:00:00'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2124-07-01 12:00:00"), utc, york), "'2124-07-01 08:00:00'");
    SHOWS(CALL("CONVERT_TZ", TEXT("2924-07-01 12:00:00"), utc, york), "'2924-07-01 08:00:00'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_substring_and_ends_when_positions_odd_then_flinks),
        cmocka_unit_test(test_case_mapping_when_beyond_ascii_then_javas),
        cmocka_unit_test(test_codes_when_any_then_flinks),
        cmocka_unit_test(test_pads_when_short_long_or_negative_then_flinks),
        cmocka_unit_test(test_edits_when_any_then_flinks),
        cmocka_unit_test(test_concat_and_trim_when_nulls_then_flinks),
        cmocka_unit_test(test_like_when_wildcards_then_flinks),
        cmocka_unit_test(test_similar_when_regular_then_flinks),
        cmocka_unit_test(test_regexp_when_javas_patterns_then_flinks),
        cmocka_unit_test(test_round_when_any_number_then_flinks),
        cmocka_unit_test(test_mathematics_when_out_of_domain_then_no_failure),
        cmocka_unit_test(test_extract_when_before_1970_then_towards_1970),
        cmocka_unit_test(test_floor_and_ceil_when_times_then_flinks),
        cmocka_unit_test(test_sums_with_intervals_when_any_then_flinks),
        cmocka_unit_test(test_date_format_when_javas_patterns_then_flinks),
        cmocka_unit_test(test_to_timestamp_when_lenient_or_not_then_flinks),
        cmocka_unit_test(test_convert_tz_when_any_zone_then_flinks),
    };
    return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
