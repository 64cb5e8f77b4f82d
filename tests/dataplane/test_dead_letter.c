/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: the record as it came, and where and why in front of its own headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/dead_letter.h"

static bool is_text(struct span span, const char *text)
{
    return span.bytes == strlen(text) && memcmp(span.data, text, span.bytes) == 0;
}

static void test_fill_when_headers_are_many_then_all_stay(void **state)
{
    static struct record_header headers[200];
    static struct dead_letter letter;
    const uint8_t value[] = {0xff, 0x00, 0x7b};
    for (uint32_t i = 0; i < COUNT_OF(headers); i++) {
        headers[i].name = (struct span){.data = (const uint8_t *)"h", .bytes = 1};
    }
    const struct record record = {
        .offset = 42,
        .timestamp_ms = 7,
        .key_is_null = true,
        .value = {.data = value, .bytes = sizeof(value)},
        .headers = headers,
        .header_count = COUNT_OF(headers),
    };
    assert_true(dead_letter_fill(&letter, &record, "payments", 3, "not JSON"));
    const struct record *out = &letter.record;
    assert_int_equal(out->header_count, COUNT_OF(headers) + 4);
    assert_true(is_text(out->headers[0].name, DEAD_LETTER_TOPIC));
    assert_true(is_text(out->headers[0].value, "payments"));
    assert_true(is_text(out->headers[1].value, "3"));
    assert_true(is_text(out->headers[2].value, "42"));
    assert_true(is_text(out->headers[3].name, DEAD_LETTER_REASON));
    assert_true(is_text(out->headers[3].value, "not JSON"));
    assert_true(is_text(out->headers[4].name, "h"));
    assert_ptr_equal(out->value.data, value);
    assert_int_equal(out->value.bytes, sizeof(value));
    assert_true(out->key_is_null);
    assert_int_equal(out->timestamp_ms, 7);
}

static void test_fill_when_a_header_has_no_room_then_no_letter(void **state)
{
    static struct record_header headers[DEAD_LETTER_HEADERS_MAX + 1];
    static struct dead_letter letter;
    struct record record = {.headers = headers, .header_count = DEAD_LETTER_HEADERS_MAX + 1};
    assert_false(dead_letter_fill(&letter, &record, "payments", 3, "not JSON"));
    record.header_count = DEAD_LETTER_HEADERS_MAX;
    assert_true(dead_letter_fill(&letter, &record, "payments", 3, "not JSON"));
    record.headers_are_cut = true;
    assert_false(dead_letter_fill(&letter, &record, "payments", 3, "not JSON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill_when_headers_are_many_then_all_stay),
        cmocka_unit_test(test_fill_when_a_header_has_no_room_then_no_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
