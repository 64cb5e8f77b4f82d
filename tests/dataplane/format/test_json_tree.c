/* SPDX-License-Identifier: Apache-2.0 */
/* Containers printed anew. Expected texts are what Flink wrote for a STRING column that was given
 * the container. */
#include "dataplane/format/json_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(const char *document, bool exact_decimals, const char *expected)
{
    struct json_lexer lexer;
    uint8_t into[512];
    json_lexer_init(&lexer, (struct span){(const uint8_t *)document, strlen(document)});
    (void)json_lexer_next(&lexer);
    struct json_lexer again = lexer;
    const size_t bytes =
        json_tree_print(&lexer, exact_decimals, (struct span_mut){into, sizeof(into)});
    if (expected == NULL) {
        assert_true(bytes == SIZE_MAX);
        return;
    }
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(into, expected, bytes);
    assert_int_equal(json_lexer_next(&lexer), JSON_NONE);
    /* Without space it measures the same. */
    assert_int_equal(json_tree_print(&again, exact_decimals, (struct span_mut){NULL, 0}), bytes);
}

static void test_print_when_blanks_then_gone(void **state)
{
    (void)state;
    check("{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", false, "{\"a\":[1,2],\"b\":{}}");
    check("[ true , false , null , \"x\" ]", false, "[true,false,null,\"x\"]");
}

static void test_print_when_numbers_then_java_forms(void **state)
{
    (void)state;
    check("[1.50,-0,1e2,100.0,1e400,-1e400,12345678901234567890123]", false,
          "[1.5,0,100.0,100.0,\"Infinity\",\"-Infinity\",12345678901234567890123]");
    check("[1.10,100.0,1e30,-0,0.000001,12345678901234567890.5]", true,
          "[1.1,1E+2,1E+30,0,0.000001,12345678901234567890.5]");
}

static void test_print_when_names_repeat_then_last_value_in_first_place(void **state)
{
    (void)state;
    check("{\"a\":1,\"b\":2,\"a\":3}", false, "{\"a\":3,\"b\":2}");
    check("{\"a\":{\"x\":1,\"x\":[2]},\"\\u0061\":{\"y\":1,\"y\":2}}", false, "{\"a\":{\"y\":2}}");
}

static void test_print_when_text_then_escaped_as_java_writes_it(void **state)
{
    (void)state;
    check("[\"\\u0001\\t\\\"\\\\\xc3\xa9/\\ud83d\\ude00\"]", false,
          "[\"\\u0001\\t\\\"\\\\\xc3\xa9/\xf0\x9f\x98\x80\"]");
    check("{\"0123456789012345678901234567890123456789\\n\xe6\x9d\xb1\":1}", false,
          "{\"0123456789012345678901234567890123456789\\n\xe6\x9d\xb1\":1}");
}

static void test_print_when_broken_then_says_so(void **state)
{
    (void)state;
    check("[1,", false, NULL);
    check("{\"a\":}", false, NULL);
    check("[\"\xff\"]", false, NULL);
    check("{\"a\":1,\"b\":[}", false, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print_when_blanks_then_gone),
        cmocka_unit_test(test_print_when_numbers_then_java_forms),
        cmocka_unit_test(test_print_when_names_repeat_then_last_value_in_first_place),
        cmocka_unit_test(test_print_when_text_then_escaped_as_java_writes_it),
        cmocka_unit_test(test_print_when_broken_then_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
