/* SPDX-License-Identifier: Apache-2.0 */
/* Order of popping against a scan of all deadlines; later re-arming is lazy, cancelling is not. */
#include "nic/tcp_timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT 50

static void test_random_arms_pop_in_order_of_deadlines(void **state)
{
    struct tcp_timers timers;
    uint64_t deadlines[COUNT];
    assert_int_equal(0, tcp_timers_init(&timers, COUNT));
    memset(deadlines, 0xff, sizeof(deadlines));
    srand(3);
    for (uint64_t now = 0; now < 20000; now++) {
        uint32_t index = (uint32_t)rand() % COUNT;
        uint64_t deadline = now + (uint64_t)rand() % 100;
        if (rand() % 4 == 0) {
            tcp_timers_cancel(&timers, index);
            deadlines[index] = UINT64_MAX;
        } else {
            tcp_timers_arm(&timers, index, deadline);
            deadlines[index] = deadline < deadlines[index] ? deadline : deadlines[index];
        }
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < COUNT; i++) {
            least = deadlines[i] < least ? deadlines[i] : least;
        }
        assert_true(tcp_timers_next_ns(&timers) == least);
        for (uint32_t due = tcp_timers_pop(&timers, now); due != TCP_TIMER_NONE;
             due = tcp_timers_pop(&timers, now)) {
            assert_true(deadlines[due] <= now);
            deadlines[due] = UINT64_MAX;
        }
    }
    tcp_timers_fini(&timers);
}

static void test_arm_at_never_does_nothing(void **state)
{
    struct tcp_timers timers;
    assert_int_equal(0, tcp_timers_init(&timers, 2));
    tcp_timers_arm(&timers, 1, UINT64_MAX);
    assert_int_equal(0, timers.count);
    assert_int_equal(TCP_TIMER_NONE, tcp_timers_pop(&timers, UINT64_MAX - 1));
    tcp_timers_cancel(&timers, 1);
    tcp_timers_fini(&timers);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_arms_pop_in_order_of_deadlines),
        cmocka_unit_test(test_arm_at_never_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
