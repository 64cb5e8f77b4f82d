/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: SYN repetition and connect timeout, tail loss probe, back-off and giving up, black holes,
 * keepalive, states that must not last. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void commit(struct harness *h, size_t bytes)
{
    struct span_mut room = stream_writable(h->stream);
    memset(room.data, 'e', bytes);
    stream_commit(h->stream, bytes);
    harness_wait(h, 1);
}

static void test_syn_is_repeated_with_doubling_pauses_until_the_connect_timeout(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    struct stream *second = NULL;
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 9093, h.now_ns, &second));
    uint32_t syns = 0;
    for (int i = 0; i < 120 && second->state == STREAM_CONNECTING; i++) {
        harness_wait(&h, 100 * HARNESS_MS);
        while (harness_take(&h, &out)) {
            syns += (out.flags & TCP_SYN) != 0 ? 1 : 0;
        }
    }
    assert_int_equal(4, syns); /* at 0, 1, 3 and 7 s; the limit is 10 s */
    assert_int_equal(STREAM_FAILURE_TIMEOUT, second->failure);
    stream_release(second);
    harness_fini(&h);
}

static void test_lost_tail_is_probed_before_the_timeout(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    commit(&h, 3000);
    harness_drain(&h);
    harness_wait(&h, 5 * HARNESS_MS); /* above 2 * SRTT, far below the 200 ms floor */
    assert_true(harness_take(&h, &out));
    assert_int_equal(h.iss + 1 + 2 * 1448, out.seq); /* the newest segment */
    assert_int_equal(1, stack_counters_get(h.stack)->tcp_loss_probes);
    harness_wait(&h, 50 * HARNESS_MS);
    assert_false(harness_take(&h, &out)); /* one probe, then the timeout */
    harness_fini(&h);
}

static void test_silent_peer_is_given_up_after_the_user_timeout(void **state)
{
    struct harness h;
    struct harness_segment out = {0};
    harness_init(&h);
    h.config.user_timeout_ms = 5000;
    harness_open(&h);
    commit(&h, 100);
    uint64_t start_ns = h.now_ns;
    while (h.stream->state == STREAM_OPEN && h.now_ns < start_ns + 60 * NANOSECONDS_PER_S) {
        harness_wait(&h, 50 * HARNESS_MS);
    }
    assert_int_equal(STREAM_FAILURE_TIMEOUT, h.stream->failure);
    assert_in_range((h.now_ns - start_ns) / HARNESS_MS, 5000, 13000);
    while (harness_take(&h, &out)) {
    }
    assert_true((out.flags & TCP_RST) != 0);
    harness_fini(&h);
}

static void test_full_segments_that_vanish_get_smaller(void **state)
{
    struct harness h;
    harness_init(&h);
    h.config.user_timeout_ms = 600000;
    harness_open(&h);
    commit(&h, 5000);
    for (int i = 0; i < 100; i++) {
        harness_wait(&h, 100 * HARNESS_MS);
        harness_drain(&h);
    }
    assert_true(h.connection->mss_bytes < 1448);
    assert_true(h.connection->mss_bytes >= IP4_PATH_MTU_FLOOR - 52);
    assert_true(stack_counters_get(h.stack)->path_mtu_changes > 0);
    /* What was sent in large pieces goes again in small ones. */
    harness_data(&h, 0, 0, TCP_ACK, "");
    harness_fini(&h);
}

static void test_idle_connection_is_probed_and_given_up(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    h.config.keepalive_idle_ms = 10000;
    h.config.keepalive_interval_ms = 1000;
    h.config.keepalive_count_max = 3;
    harness_open(&h);
    uint32_t probes = 0;
    for (int i = 0; i < 100; i++) {
        harness_wait(&h, 100 * HARNESS_MS + 1);
    }
    assert_true(harness_take(&h, &out));
    assert_int_equal(h.iss, out.seq);    /* one before the next byte */
    harness_data(&h, 0, 0, TCP_ACK, ""); /* it lives */
    for (int i = 0; i < 200 && h.stream->state == STREAM_OPEN; i++) {
        harness_wait(&h, 100 * HARNESS_MS);
        while (harness_take(&h, &out)) {
            probes += out.flags == TCP_ACK ? 1 : 0;
        }
    }
    assert_int_equal(3, probes);
    assert_int_equal(STREAM_FAILURE_TIMEOUT, h.stream->failure);
    harness_fini(&h);
}

static void test_released_connection_that_does_not_close_is_reset(void **state)
{
    struct harness h;
    struct harness_segment out = {0};
    harness_init(&h);
    h.config.linger_ms = 2000;
    harness_open(&h);
    stream_close(h.stream);
    harness_wait(&h, 1);
    harness_data(&h, 0, 1, TCP_ACK, ""); /* FIN-WAIT-2, and the peer never closes */
    stream_release(h.stream);
    harness_wait(&h, 3000 * HARNESS_MS);
    while (harness_take(&h, &out)) {
    }
    assert_true((out.flags & TCP_RST) != 0);
    assert_int_equal(0, h.stack->tcp.connection_count);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syn_is_repeated_with_doubling_pauses_until_the_connect_timeout),
        cmocka_unit_test(test_lost_tail_is_probed_before_the_timeout),
        cmocka_unit_test(test_silent_peer_is_given_up_after_the_user_timeout),
        cmocka_unit_test(test_full_segments_that_vanish_get_smaller),
        cmocka_unit_test(test_idle_connection_is_probed_and_given_up),
        cmocka_unit_test(test_released_connection_that_does_not_close_is_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
