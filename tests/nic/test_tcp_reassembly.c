/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges against a plain map of bytes, under random adds, and the bound that hostile senders
 * meet. */
#include "nic/tcp_reassembly.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAP_BYTES 4000

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void map_compare(const struct tcp_reassembly *queue, const uint8_t *map, uint64_t next)
{
    uint64_t held = 0;
    for (uint64_t i = next; i < MAP_BYTES; i++) {
        held += map[i];
    }
    assert_true(tcp_reassembly_held_bytes(queue) == held);
}

static void test_random_adds_agree_with_a_byte_map(void **state)
{
    uint64_t random = 1;
    for (int round = 0; round < 200; round++) {
        struct tcp_reassembly queue = {0};
        uint8_t map[MAP_BYTES] = {0};
        uint64_t next = 0;
        while (next < MAP_BYTES - 200) {
            uint64_t start = next + 1 + next_random(&random) % 300;
            uint64_t end = start + 1 + next_random(&random) % 60;
            end = end > MAP_BYTES ? MAP_BYTES : end;
            uint64_t fresh = 0, expected = 0;
            if (start >= end || !tcp_reassembly_add(&queue, start, end, &fresh)) {
                break;
            }
            for (uint64_t i = start; i < end; i++) {
                expected += map[i] == 0 ? 1 : 0;
                map[i] = 1;
            }
            assert_true(fresh == expected);
            uint64_t step = next_random(&random) % 40;
            memset(map + next, 1, step);
            next = tcp_reassembly_advance(&queue, next + step);
            assert_true(next == MAP_BYTES || map[next] == 0);
            map_compare(&queue, map, next);
        }
    }
}

static void test_add_beyond_the_bound_is_refused_but_merging_goes_on(void **state)
{
    struct tcp_reassembly queue = {0};
    uint64_t fresh;
    for (uint64_t i = 0; i < TCP_RANGES_MAX; i++) {
        assert_true(tcp_reassembly_add(&queue, 10 + 10 * i, 15 + 10 * i, &fresh));
    }
    assert_false(tcp_reassembly_add(&queue, 100000, 100001, &fresh));
    assert_int_equal(TCP_RANGES_MAX, queue.count);
    assert_true(tcp_reassembly_add(&queue, 15, 20, &fresh));
    assert_int_equal(5, fresh);
    assert_int_equal(TCP_RANGES_MAX - 1, queue.count);
}

static void test_recent_lists_the_range_that_grew_last_first(void **state)
{
    struct tcp_reassembly queue = {0};
    struct tcp_range out[3];
    uint64_t fresh;
    assert_true(tcp_reassembly_add(&queue, 100, 200, &fresh));
    assert_true(tcp_reassembly_add(&queue, 300, 400, &fresh));
    assert_true(tcp_reassembly_add(&queue, 500, 600, &fresh));
    assert_true(tcp_reassembly_add(&queue, 700, 800, &fresh));
    assert_true(tcp_reassembly_add(&queue, 200, 210, &fresh));
    assert_int_equal(3, tcp_reassembly_recent(&queue, out, 3));
    assert_true(out[0].start == 100 && out[0].end == 210);
    assert_true(out[1].start == 700);
    assert_true(out[2].start == 500);
}

static void test_advance_over_a_range_in_part_takes_all_of_it(void **state)
{
    struct tcp_reassembly queue = {0};
    uint64_t fresh;
    assert_true(tcp_reassembly_add(&queue, 100, 200, &fresh));
    assert_true(tcp_reassembly_advance(&queue, 150) == 200);
    assert_int_equal(0, queue.count);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_adds_agree_with_a_byte_map),
        cmocka_unit_test(test_add_beyond_the_bound_is_refused_but_merging_goes_on),
        cmocka_unit_test(test_recent_lists_the_range_that_grew_last_first),
        cmocka_unit_test(test_advance_over_a_range_in_part_takes_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
