/* SPDX-License-Identifier: Apache-2.0 */
/* Windows by the formulas of RFC 5681, 6928 and 6937. */
#include "nic/tcp_congestion.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_initial_window_follows_rfc_6928(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1460, 10);
    assert_int_equal(14600, c.cwnd_bytes); /* min(10*MSS, max(2*MSS, 14600)) */
    tcp_congestion_init(&c, 536, 10);
    assert_int_equal(5360, c.cwnd_bytes);
    tcp_congestion_init(&c, 8960, 10);
    assert_int_equal(17920, c.cwnd_bytes);
}

static void test_slow_start_grows_by_what_was_acknowledged(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1000, 10);
    tcp_congestion_ack(&c, 1000, true);
    assert_int_equal(11000, c.cwnd_bytes);
    tcp_congestion_ack(&c, 9000, true); /* L = 2 */
    assert_int_equal(13000, c.cwnd_bytes);
    tcp_congestion_ack(&c, 9000, false); /* the window was not the limit */
    assert_int_equal(13000, c.cwnd_bytes);
}

static void test_avoidance_grows_one_segment_a_window(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1000, 10);
    c.ssthresh_bytes = 10000;
    for (int i = 0; i < 9; i++) {
        tcp_congestion_ack(&c, 1000, true);
    }
    assert_int_equal(10000, c.cwnd_bytes);
    tcp_congestion_ack(&c, 1000, true);
    assert_int_equal(11000, c.cwnd_bytes);
}

static void test_loss_halves_once_a_flight_and_recovery_spreads_it(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1000, 20);
    assert_true(tcp_congestion_loss(&c, 20000, 50000));
    assert_false(tcp_congestion_loss(&c, 20000, 60000));
    assert_int_equal(10000, c.ssthresh_bytes);
    /* RFC 6937: while the pipe is above the target, one segment out for two delivered. */
    tcp_congestion_recovery_ack(&c, 1000, 18000, false);
    assert_int_equal(19000, c.cwnd_bytes); /* the first retransmission goes in any case */
    c.sent_bytes += 1000;
    tcp_congestion_recovery_ack(&c, 1000, 18000, false);
    assert_int_equal(18000, c.cwnd_bytes);
    tcp_congestion_recovery_ack(&c, 2000, 16000, false);
    assert_int_equal(17000, c.cwnd_bytes);
    /* Below it, grow back to the target in slow start at most. */
    c.sent_bytes += 1000;
    tcp_congestion_recovery_ack(&c, 1000, 4000, false);
    assert_int_equal(4000 + 4000, c.cwnd_bytes);
    assert_false(tcp_congestion_exit(&c, 49999));
    assert_true(tcp_congestion_exit(&c, 50000));
    assert_int_equal(10000, c.cwnd_bytes);
}

static void test_timeout_leaves_one_segment_and_halves_only_at_first(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1000, 20);
    tcp_congestion_timeout(&c, 16000, 9, true);
    assert_int_equal(1000, c.cwnd_bytes);
    assert_int_equal(8000, c.ssthresh_bytes);
    tcp_congestion_timeout(&c, 1000, 9, false);
    assert_int_equal(8000, c.ssthresh_bytes);
    assert_false(tcp_congestion_loss(&c, 16000, 9));
    tcp_congestion_ack(&c, 5000, true); /* L = 1 after a timeout */
    assert_int_equal(2000, c.cwnd_bytes);
}

static void test_idle_goes_back_to_the_initial_window(void **state)
{
    struct tcp_congestion c;
    tcp_congestion_init(&c, 1000, 10);
    c.cwnd_bytes = 500000;
    tcp_congestion_idle(&c);
    assert_int_equal(10000, c.cwnd_bytes);
    c.cwnd_bytes = 3000;
    tcp_congestion_idle(&c);
    assert_int_equal(3000, c.cwnd_bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initial_window_follows_rfc_6928),
        cmocka_unit_test(test_slow_start_grows_by_what_was_acknowledged),
        cmocka_unit_test(test_avoidance_grows_one_segment_a_window),
        cmocka_unit_test(test_loss_halves_once_a_flight_and_recovery_spreads_it),
        cmocka_unit_test(test_timeout_leaves_one_segment_and_halves_only_at_first),
        cmocka_unit_test(test_idle_goes_back_to_the_initial_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
