/* SPDX-License-Identifier: Apache-2.0 */
/* Text between quotes: the vector steps against byte-wise truth, UTF-8 by the standard's own table
 * of ill-formed sequences, Jackson's looser decoding, base64 by RFC 4648 section 10. */
#include "dataplane/format/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct span span_of(const char *text)
{
    return (struct span){(const uint8_t *)text, strlen(text)};
}

/* A page-exact copy, so that a step past the end is seen by the sanitizer. */
static void check_end(const char *text, size_t bytes, size_t close, bool plain)
{
    bool got_plain;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, text, bytes);
    const uint8_t *const end = json_text_end(copy, copy + bytes, &got_plain);
    if (close == SIZE_MAX) {
        assert_null(end);
    } else {
        assert_ptr_equal(end, copy + close);
        assert_int_equal(got_plain, plain);
    }
    free(copy);
}

static void test_end_when_quote_is_anywhere_then_found(void **state)
{
    (void)state;
    char text[80];
    for (size_t length = 1; length < sizeof(text); length++) {
        for (size_t at = 0; at < length; at++) {
            memset(text, 'x', length);
            text[at] = '"';
            check_end(text, length, at, true);
            if (at >= 2) {
                text[at - 2] = (char)0xc3;
                check_end(text, length, at, false);
                text[at - 2] = '\\';
                text[at - 1] = '"';
                check_end(text, length, at, false);
            }
        }
        memset(text, 'x', length);
        check_end(text, length, SIZE_MAX, false);
        text[length - 1] = '\\';
        check_end(text, length, SIZE_MAX, false);
    }
}

static void test_is_utf8_when_ill_formed_then_false(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const BAD[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xc3(",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe6\x9d",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff"};
    for (size_t i = 0; i < COUNT_OF(GOOD); i++) {
        assert_true(json_text_is_utf8(span_of(GOOD[i])));
    }
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        assert_false(json_text_is_utf8(span_of(BAD[i])));
    }
}

static void check_decode(const char *raw, const char *expected)
{
    uint8_t into[256];
    const size_t bytes = json_text_decode(span_of(raw), into);
    if (expected == NULL) {
        assert_true(bytes == SIZE_MAX);
        return;
    }
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(into, expected, bytes);
}

static void test_decode_when_escapes_then_characters(void **state)
{
    (void)state;
    check_decode("a\\tb\\n\\r\\f\\b\\\"\\\\\\/", "a\tb\n\r\f\b\"\\/");
    check_decode("\\u0041\\u00e9\\u6771", "A\xc3\xa9\xe6\x9d\xb1");
    check_decode("\\ud83d\\ude00", "\xf0\x9f\x98\x80");
    check_decode("\\ud83d", "\xed\xa0\xbd");
    check_decode("\\ude00\\ud83d", "\xed\xb8\x80\xed\xa0\xbd");
    check_decode("\\ud83d\xed\xb8\x80", "\xf0\x9f\x98\x80");
    check_decode("\xc1\x81", "A");
    check_decode("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
    check_decode("\\q", NULL);
    check_decode("\\u12", NULL);
    check_decode("\\u12g4", NULL);
    check_decode("\\", NULL);
    check_decode("\xff", NULL);
    check_decode("\xe6\x9d", NULL);
}

static void check_fault(const char *raw_and_quote, size_t expected)
{
    struct span raw = span_of(raw_and_quote);
    raw.bytes--;
    const uint8_t *const fault = json_text_fault(raw);
    if (expected == SIZE_MAX) {
        assert_null(fault);
    } else {
        assert_ptr_equal(fault, raw.data + expected);
    }
}

static void test_fault_when_broken_then_behind_the_faulty_byte(void **state)
{
    (void)state;
    check_fault("good \\u00e9 \xc3\xa9\"", SIZE_MAX);
    check_fault("a\xff"
                "b\"",
                2);
    check_fault("a\xc3\"", 3);
    check_fault("a\xc3(b\"", 3);
    check_fault("\xe6\x9d\"", 3);
    check_fault("a\\qb\"", 3);
    check_fault("\\u12\"", 5);
    check_fault("\\u1g\"", 4);
}

static void check_base64(const char *raw, const char *expected)
{
    uint8_t into[64];
    const uint8_t *fault;
    const size_t bytes = json_text_base64(span_of(raw), into, &fault);
    if (expected == NULL) {
        assert_true(bytes == SIZE_MAX);
        return;
    }
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(into, expected, bytes);
}

static void test_base64_when_vectors_then_bytes(void **state)
{
    (void)state;
    check_base64("", "");
    check_base64("Zg==", "f");
    check_base64("Zm8=", "fo");
    check_base64("Zm9v", "foo");
    check_base64("Zm9vYg==", "foob");
    check_base64("Zm9vYmE=", "fooba");
    check_base64("Zm9vYmFy", "foobar");
    check_base64(" Zm9v \tYmFy ", "foobar");
    check_base64("Zm9\\u0076", "foo");
    check_base64("Zg", NULL);
    check_base64("Zg=", NULL);
    check_base64("Z", NULL);
    check_base64("Zm 9v", NULL);
    check_base64("not base64!", NULL);
    check_base64("====", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_when_quote_is_anywhere_then_found),
        cmocka_unit_test(test_is_utf8_when_ill_formed_then_false),
        cmocka_unit_test(test_decode_when_escapes_then_characters),
        cmocka_unit_test(test_fault_when_broken_then_behind_the_faulty_byte),
        cmocka_unit_test(test_base64_when_vectors_then_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
