/* SPDX-License-Identifier: Apache-2.0 */
/* Options as Linux sends them, options that lie about their length, and a round trip. */
#include "nic/tcp_options.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_parse_of_a_linux_syn_finds_all_options(void **state)
{
    static const uint8_t area[] = {2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0,
                                   0, 7, 0,    0,    0, 9, 1, 3,  3, 7};
    struct tcp_options options;
    assert_true(tcp_options_parse(area, sizeof(area), &options));
    assert_int_equal(1460, options.mss_bytes);
    assert_true(options.has_sack_permitted && options.has_timestamp && options.has_scale);
    assert_int_equal(7, options.timestamp);
    assert_int_equal(9, options.timestamp_echo);
    assert_int_equal(7, options.scale);
}

static void test_parse_of_a_scale_above_14_takes_14(void **state)
{
    static const uint8_t area[] = {3, 3, 200, 0};
    struct tcp_options options;
    assert_true(tcp_options_parse(area, sizeof(area), &options));
    assert_int_equal(14, options.scale);
}

static void test_parse_of_bad_lengths_fails(void **state)
{
    static const uint8_t bad[][12] = {
        {2, 4, 5},    /* cut off (3 bytes are passed) */
        {8, 0, 0, 0}, /* length 0 would never end */
        {8, 1, 0, 0}, /* shorter than itself */
        {2, 3, 1, 0}, /* MSS of a wrong size */
        {5, 3, 0, 0}, /* SACK of a broken block */
        {5, 2, 0, 0}, /* SACK without a block */
        {254},        /* kind without length */
    };
    static const size_t bytes[] = {3, 4, 4, 4, 4, 4, 1};
    for (size_t i = 0; i < COUNT_OF(bytes); i++) {
        struct tcp_options options;
        assert_false(tcp_options_parse(bad[i], bytes[i], &options));
    }
}

static void test_parse_skips_unknown_kinds_and_stops_at_the_end(void **state)
{
    static const uint8_t area[] = {30, 4, 1, 2, 1, 4, 2, 0, 2, 9, 9, 9};
    struct tcp_options options;
    assert_true(tcp_options_parse(area, sizeof(area), &options));
    assert_true(options.has_sack_permitted);
    assert_false(options.has_mss);
}

static void test_write_then_parse_gives_the_same(void **state)
{
    struct tcp_options in = {
        .has_timestamp = true,
        .timestamp = 0x01020304,
        .timestamp_echo = 0xfffefdfc,
        .sack_count = 3,
        .sack = {{1, 2}, {30, 40}, {500, 600}},
    };
    struct tcp_options out;
    uint8_t area[TCP_OPTION_BYTES_MAX];
    assert_int_equal(40, tcp_options_write(area, &in));
    assert_true(tcp_options_parse(area, 40, &out));
    assert_int_equal(3, out.sack_count);
    assert_memory_equal(in.sack, out.sack, 3 * sizeof(in.sack[0]));
    assert_int_equal(in.timestamp_echo, out.timestamp_echo);
}

static void test_write_of_more_blocks_than_fit_leaves_the_last_out(void **state)
{
    struct tcp_options in = {.has_timestamp = true, .sack_count = 4};
    uint8_t area[TCP_OPTION_BYTES_MAX];
    assert_int_equal(40, tcp_options_write(area, &in));
    in.has_timestamp = false;
    assert_int_equal(36, tcp_options_write(area, &in));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_of_a_linux_syn_finds_all_options),
        cmocka_unit_test(test_parse_of_a_scale_above_14_takes_14),
        cmocka_unit_test(test_parse_of_bad_lengths_fails),
        cmocka_unit_test(test_parse_skips_unknown_kinds_and_stops_at_the_end),
        cmocka_unit_test(test_write_then_parse_gives_the_same),
        cmocka_unit_test(test_write_of_more_blocks_than_fit_leaves_the_last_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
