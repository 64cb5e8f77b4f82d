/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of RFC 6298 §2 on numbers worked out by hand. */
#include "nic/tcp_rtt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static void test_timeout_before_a_sample_is_the_initial_one(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    assert_true(tcp_rtt_timeout_ns(&rtt) == 1000 * MS);
}

static void test_first_sample_sets_half_of_it_as_variation(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    tcp_rtt_sample(&rtt, 400 * MS, 1);
    assert_true(rtt.srtt_ns == 400 * MS);
    assert_true(rtt.rttvar_ns == 200 * MS);
    assert_true(tcp_rtt_timeout_ns(&rtt) == 1200 * MS); /* R + 4 * R/2 */
}

static void test_second_sample_weighs_one_eighth_and_one_quarter(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    tcp_rtt_sample(&rtt, 400 * MS, 1);
    tcp_rtt_sample(&rtt, 800 * MS, 2);
    /* RTTVAR = 3/4 * 200 + 1/4 * |400 - 800| = 250, SRTT = 7/8 * 400 + 1/8 * 800 = 450 */
    assert_true(rtt.rttvar_ns == 250 * MS);
    assert_true(rtt.srtt_ns == 450 * MS);
    assert_true(tcp_rtt_timeout_ns(&rtt) == 1450 * MS);
}

static void test_timeout_never_falls_below_its_floor(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    for (uint64_t i = 0; i < 100; i++) {
        tcp_rtt_sample(&rtt, 50000, i);
    }
    assert_true(tcp_rtt_timeout_ns(&rtt) == 200 * MS);
}

static void test_backing_off_doubles_up_to_the_ceiling_and_a_sample_ends_it(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    rtt.backoff = 3;
    assert_true(tcp_rtt_timeout_ns(&rtt) == 8000 * MS);
    rtt.backoff = 60;
    assert_true(tcp_rtt_timeout_ns(&rtt) == 60000 * MS);
    tcp_rtt_sample(&rtt, 100 * MS, 1);
    assert_true(tcp_rtt_timeout_ns(&rtt) == 300 * MS);
}

static void test_least_rtt_forgets_after_its_window(void **state)
{
    struct tcp_rtt rtt;
    tcp_rtt_init(&rtt, 1000 * MS, 200 * MS, 60000 * MS);
    tcp_rtt_sample(&rtt, 10 * MS, 0);
    tcp_rtt_sample(&rtt, 50 * MS, 5 * NANOSECONDS_PER_S);
    assert_true(rtt.min_rtt_ns == 10 * MS);
    tcp_rtt_sample(&rtt, 40 * MS, 11 * NANOSECONDS_PER_S);
    assert_true(rtt.min_rtt_ns == 40 * MS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout_before_a_sample_is_the_initial_one),
        cmocka_unit_test(test_first_sample_sets_half_of_it_as_variation),
        cmocka_unit_test(test_second_sample_weighs_one_eighth_and_one_quarter),
        cmocka_unit_test(test_timeout_never_falls_below_its_floor),
        cmocka_unit_test(test_backing_off_doubles_up_to_the_ceiling_and_a_sample_ends_it),
        cmocka_unit_test(test_least_rtt_forgets_after_its_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
