/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of documents, good and broken, written as one letter each. The broken ones are from the
 * grammar of RFC 8259 and from what Flink's parser was seen to refuse. */
#include "dataplane/format/json_lexer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* In the order of enum json_kind. */
static const char LETTERS[] = "_{}[]:sidtfn!";

static void check(const char *document, const char *expected)
{
    struct json_lexer lexer;
    char got[64];
    uint32_t used = 0;
    json_lexer_init(&lexer, (struct span){(const uint8_t *)document, strlen(document)});
    enum json_kind kind;
    do {
        kind = json_lexer_next(&lexer);
        got[used++] = LETTERS[kind];
    } while (kind != JSON_NONE && kind != JSON_BROKEN && used < sizeof(got) - 1);
    got[used] = 0;
    assert_string_equal(got, expected);
    if (kind == JSON_BROKEN) {
        assert_non_null(lexer.reason);
        assert_int_equal(json_lexer_next(&lexer), JSON_BROKEN);
    }
}

static void test_next_when_documents_are_good_then_tokens(void **state)
{
    (void)state;
    check("{}", "{}_");
    check(" { \"a\" : 1 , \"b\" : [ -2.5e3 , \"x\" , true , false , null ] } \n", "{:i:[dstfn]}_");
    check("[[],{},[{}]]", "[[]{}[{}]]_");
    check("\xef\xbb\xbf{\"a\":0}", "{:i}_");
    check("{\"a\":\"\x01\n\"}", "{:s}_");
    check("{}{}", "{}{}_");
    check("", "_");
    check("\"a\\\"b\"", "s_");
}

static void test_next_when_broken_then_final(void **state)
{
    (void)state;
    static const char *const DOCUMENTS[][2] = {
        {"{", "{!"},
        {"{\"a\"", "{!"},
        {"{\"a\":", "{:!"},
        {"{\"a\":1", "{:i!"},
        {"{\"a\":1,}", "{:i!"},
        {"{a:1}", "{!"},
        {"{'a':1}", "{!"},
        {"[1,]", "[i!"},
        {"[1 2]", "[i!"},
        {"[01]", "[!"},
        {"[+1]", "[!"},
        {"[.5]", "[!"},
        {"[5.]", "[!"},
        {"[1e]", "[!"},
        {"[-]", "[!"},
        {"[NaN]", "[!"},
        {"[nul]", "[!"},
        {"[tru]", "[!"},
        {"{]", "{!"},
        {"[}", "[!"},
        {"[\"abc", "[!"},
        {"/**/{}", "!"},
        {"{\"a\" 1}", "{!"},
        {"{\"\xff\":1}", "{!"},
        {"[\"\xff\",1]", "[s!"},
        {"[\v1]", "[!"},
        {"]", "!"},
        {"[1}", "[i!"},
    };
    for (size_t i = 0; i < COUNT_OF(DOCUMENTS); i++) {
        check(DOCUMENTS[i][0], DOCUMENTS[i][1]);
    }
}

static void test_next_when_numbers_are_long_then_cap_of_1000(void **state)
{
    (void)state;
    char document[1100];
    memset(document, '7', sizeof(document));
    for (size_t digits = 999; digits <= 1001; digits++) {
        document[digits] = 0;
        check(document, digits <= 1000 ? "i_" : "!");
        document[digits] = '7';
    }
}

static void test_resume_when_text_is_faulty_then_goes_on_behind_the_fault(void **state)
{
    (void)state;
    static const char DOCUMENT[] = "{\"a\":\"x\xc3\",\"b\":1}";
    struct json_lexer lexer;
    json_lexer_init(&lexer, (struct span){(const uint8_t *)DOCUMENT, sizeof(DOCUMENT) - 1});
    for (uint32_t i = 0; i < 3; i++) {
        (void)json_lexer_next(&lexer);
    }
    assert_int_equal(lexer.token.kind, JSON_STRING);
    assert_non_null(lexer.token.fault);
    json_lexer_resume(&lexer);
    assert_int_equal(json_lexer_next(&lexer), JSON_NAME);
    assert_int_equal(json_lexer_next(&lexer), JSON_INTEGER);
    assert_int_equal(json_lexer_next(&lexer), JSON_OBJECT_END);
}

static void test_skip_text_when_inside_then_behind_its_quote(void **state)
{
    (void)state;
    static const char DOCUMENT[] = "[\"a b\",2]";
    struct json_lexer lexer;
    json_lexer_init(&lexer, (struct span){(const uint8_t *)DOCUMENT, sizeof(DOCUMENT) - 1});
    (void)json_lexer_next(&lexer);
    assert_int_equal(json_lexer_next(&lexer), JSON_STRING);
    json_lexer_skip_text(&lexer, lexer.token.text.data + 2);
    assert_int_equal(json_lexer_next(&lexer), JSON_INTEGER);
    json_lexer_skip_text(&lexer, lexer.at);
    assert_int_equal(lexer.token.kind, JSON_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_when_documents_are_good_then_tokens),
        cmocka_unit_test(test_next_when_broken_then_final),
        cmocka_unit_test(test_next_when_numbers_are_long_then_cap_of_1000),
        cmocka_unit_test(test_resume_when_text_is_faulty_then_goes_on_behind_the_fault),
        cmocka_unit_test(test_skip_text_when_inside_then_behind_its_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
