/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting of Java's and SQL's patterns for PCRE2. */
#include "dataplane/expr/regex_java.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(bool similar, uint8_t escape, const char *pattern, const char *expected)
{
    static char into[REGEX_TEXT_MAX];
    const struct span span = {.data = (const uint8_t *)pattern, .bytes = strlen(pattern)};
    const char *why = NULL;
    const size_t bytes =
        similar ? regex_from_similar(span, escape, into, &why) : regex_from_java(span, into, &why);
    if (expected == NULL) {
        assert_int_equal(bytes, 0);
        assert_non_null(why);
        return;
    }
    assert_null(why);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(into, expected, bytes);
}

static void test_java_when_shared_syntax_then_unchanged(void **state)
{
    check(false, 0, "user=([0-9]+)", "user=([0-9]+)");
    check(false, 0, "(?i)^a{2,3}?(?<n>x)\\d\\.$", "(?i)^a{2,3}?(?<n>x)\\d\\.$");
    check(false, 0, "[^\\]b]", "[^\\]b]");
    check(false, 0, "", "");
    check(false, 0, "x\\", "x\\");
}

static void test_java_when_classes_then_posix(void **state)
{
    check(false, 0, "\\p{Alpha}+", "[[:alpha:]]+");
    check(false, 0, "[\\p{Upper}_]", "[[:upper:]_]");
    check(false, 0, "\\P{Digit}", "[[:^digit:]]");
    check(false, 0, "\\p{L}\\p{IsGreek}", "\\p{L}\\p{Greek}");
    check(false, 0, "\\u00e9", "\\x{00e9}");
}

static void test_java_when_class_operations_then_refused(void **state)
{
    check(false, 0, "[a-z&&[^b]]", NULL);
    check(false, 0, "[a[bc]]", NULL);
}

static void test_java_when_too_long_then_refused(void **state)
{
    char *pattern = malloc(REGEX_TEXT_MAX + 2);
    assert_non_null(pattern);
    memset(pattern, 'a', REGEX_TEXT_MAX + 1);
    pattern[REGEX_TEXT_MAX + 1] = '\0';
    check(false, 0, pattern, NULL);
    free(pattern);
}

static void test_similar_when_wildcards_then_regular(void **state)
{
    check(true, 0, "%(a|b)_", "(?:(?s:.*)(a|b).)");
    check(true, 0, "[[:ALPHA:]_%]+", "(?:[[:alpha:]_%]+)");
    check(true, 0, "a$b\\", "(?:a\\$b\\\\)");
    check(true, '!', "50!%", "(?:50\\%)");
    check(true, '!', "50!x", NULL);
    check(true, '!', "50!", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_java_when_shared_syntax_then_unchanged),
        cmocka_unit_test(test_java_when_classes_then_posix),
        cmocka_unit_test(test_java_when_class_operations_then_refused),
        cmocka_unit_test(test_java_when_too_long_then_refused),
        cmocka_unit_test(test_similar_when_wildcards_then_regular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
