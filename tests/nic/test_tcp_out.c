/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves and when: windows, silly windows, probes of a shut window, the FIN's turn, ACKs that
 * ride. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void write_bytes(struct harness *h, size_t bytes)
{
    struct span_mut room = stream_writable(h->stream);
    assert_true(room.bytes >= bytes);
    memset(room.data, 'w', bytes);
    stream_commit(h->stream, bytes);
}

static uint32_t taken_bytes(struct harness *h)
{
    struct harness_segment out;
    uint32_t bytes = 0;
    while (harness_take(h, &out)) {
        bytes += out.payload_bytes;
    }
    return bytes;
}

static void test_small_commit_leaves_at_once_with_the_ack_on_it(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK, "request");
    write_bytes(&h, 3);
    assert_int_equal(1, stack_flush(h.stack, h.now_ns));
    assert_true(harness_take(&h, &out));
    assert_int_equal(3, out.payload_bytes);
    assert_int_equal(TCP_ACK | TCP_PSH, out.flags);
    assert_int_equal(HARNESS_ISN + 8, out.ack);
    assert_int_equal(3, h.stream->sent_bytes);
    harness_fini(&h);
}

static void test_bytes_in_flight_never_exceed_the_initial_window(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    write_bytes(&h, 60000);
    harness_wait(&h, 1);
    uint32_t first = taken_bytes(&h);
    assert_in_range(first, 14480 - 1448, 14480);
    harness_wait(&h, 1);
    assert_int_equal(0, taken_bytes(&h));
    harness_data(&h, 0, first, TCP_ACK, "");
    assert_true(taken_bytes(&h) >= first); /* slow start */
    harness_fini(&h);
}

static void test_peer_window_limits_what_is_sent(void **state)
{
    struct harness h;
    harness_init(&h);
    h.window = 3000;
    harness_open(&h);
    write_bytes(&h, 10000);
    harness_wait(&h, 1);
    assert_int_equal(1448 * 2, taken_bytes(&h)); /* 104 bytes more would be silly */
    h.window = 100;
    harness_data(&h, 0, 2896, TCP_ACK, "");
    assert_int_equal(0, taken_bytes(&h));
    harness_fini(&h);
}

static void test_small_window_is_used_when_the_persist_timer_expires(void **state)
{
    struct harness h;
    harness_init(&h);
    h.window = 3000;
    harness_open(&h);
    write_bytes(&h, 10000);
    harness_wait(&h, 1);
    h.window = 100;
    harness_data(&h, 0, taken_bytes(&h), TCP_ACK, "");
    assert_int_equal(0, taken_bytes(&h));
    harness_wait(&h, 300 * HARNESS_MS);
    assert_int_equal(100, taken_bytes(&h));
    harness_fini(&h);
}

static void test_shut_window_is_probed_with_growing_pauses_for_ever(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    h.window = 0;
    harness_data(&h, 0, 0, TCP_ACK, "x");
    harness_wait(&h, 1);
    harness_drain(&h);
    write_bytes(&h, 100);
    uint32_t probes = 0;
    for (uint32_t i = 0; i < 1200; i++) { /* two minutes: user_timeout_ms is 30 s */
        harness_wait(&h, 100 * HARNESS_MS);
        while (harness_take(&h, &out)) {
            assert_int_equal(0, out.payload_bytes);
            assert_int_equal(h.iss, out.seq);
            probes++;
            harness_data(&h, 1, 0, TCP_ACK, "");
        }
    }
    assert_in_range(probes, 14, 18); /* at most 10 s apart */
    assert_int_equal(STREAM_OPEN, h.stream->state);
    h.window = 5000;
    harness_data(&h, 1, 0, TCP_ACK, "");
    assert_int_equal(100, taken_bytes(&h));
    harness_fini(&h);
}

static void test_unanswered_window_probes_end_in_a_timeout(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    h.window = 0;
    harness_data(&h, 0, 0, TCP_ACK, "x");
    write_bytes(&h, 100);
    for (uint32_t i = 0; i < 700 && h.stream->state == STREAM_OPEN; i++) {
        harness_wait(&h, 100 * HARNESS_MS);
        harness_drain(&h);
    }
    assert_int_equal(STREAM_FAILED, h.stream->state);
    assert_int_equal(STREAM_FAILURE_TIMEOUT, h.stream->failure);
    harness_fini(&h);
}

static void test_fin_waits_for_a_shut_window_and_then_leaves(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    h.window = 0;
    harness_data(&h, 0, 0, TCP_ACK, "x");
    harness_wait(&h, 1);
    harness_drain(&h);
    stream_close(h.stream);
    harness_wait(&h, 1);
    assert_false(harness_take(&h, &out));
    h.window = 1000;
    harness_data(&h, 1, 0, TCP_ACK, "");
    assert_true(harness_take(&h, &out));
    assert_true((out.flags & TCP_FIN) != 0);
    harness_fini(&h);
}

static void test_last_data_and_fin_share_a_segment(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    write_bytes(&h, 10);
    stream_close(h.stream);
    assert_int_equal(0, stream_writable(h.stream).bytes);
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_int_equal(10, out.payload_bytes);
    assert_int_equal(TCP_ACK | TCP_PSH | TCP_FIN, out.flags);
    assert_int_equal(TCP_FIN_WAIT_1, h.connection->state);
    harness_data(&h, 0, 11, TCP_ACK, "");
    assert_int_equal(TCP_FIN_WAIT_2, h.connection->state);
    harness_data(&h, 0, 11, TCP_ACK | TCP_FIN, "");
    assert_int_equal(STREAM_CLOSED, h.stream->state);
    assert_true(harness_take(&h, &out));
    assert_int_equal(HARNESS_ISN + 2, out.ack);
    /* In TIME-WAIT the last ACK is repeated, and a reset changes nothing (RFC 1337). */
    stream_release(h.stream);
    harness_data(&h, 0, 11, TCP_RST, "");
    harness_data(&h, 0, 11, TCP_ACK | TCP_FIN, "");
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_ACK, out.flags);
    assert_int_equal(h.iss + 12, out.seq);
    harness_fini(&h);
}

static void test_simultaneous_close_ends_in_order_on_both_sides(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    stream_close(h.stream);
    harness_wait(&h, 1);
    harness_data(&h, 0, 0, TCP_ACK | TCP_FIN, "");
    assert_int_equal(TCP_CLOSING, h.connection->state);
    harness_data(&h, 1, 1, TCP_ACK, "");
    assert_int_equal(STREAM_CLOSED, h.stream->state);
    harness_fini(&h);
}

static void test_passive_close_ends_without_time_wait(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK | TCP_FIN, "");
    assert_int_equal(STREAM_HALF_CLOSED, h.stream->state);
    write_bytes(&h, 5); /* the other direction still works */
    stream_close(h.stream);
    harness_wait(&h, 1);
    assert_int_equal(TCP_LAST_ACK, h.connection->state);
    harness_data(&h, 1, 6, TCP_ACK, "");
    assert_int_equal(STREAM_CLOSED, h.stream->state);
    assert_int_equal(0, h.stack->tcp.time_wait_count);
    harness_fini(&h);
}

static void test_window_update_is_told_once_it_is_worth_it(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    h.timestamps = false;
    harness_open(&h);
    struct harness_segment segment = {
        .ack = h.iss + 1, .flags = TCP_ACK, .window = 65535, .payload_bytes = 1460};
    for (uint32_t at = 0; at < 65536; at += 1460) {
        segment.seq = HARNESS_ISN + 1 + at;
        harness_segment(&h, &segment);
    }
    harness_wait(&h, 1);
    while (harness_take(&h, &out)) {
    }
    assert_int_equal(0, out.window);
    stream_consume(h.stream, 2000);
    harness_wait(&h, 1);
    assert_false(harness_take(&h, &out));
    stream_consume(h.stream, 1000);
    (void)stack_poll(h.stack, h.now_ns); /* a starved peer is told at once */
    assert_true(harness_take(&h, &out));
    assert_int_equal(3000, out.window << h.connection->rcv_scale);
    harness_fini(&h);
}

static void test_sends_put_off_for_lack_of_frames_leave_later(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    struct port_sim_config none = {.mtu_bytes = 1500, .alloc_failure_ppm = WIRE_PER_MILLION};
    struct port_sim_config some = {.mtu_bytes = 1500};
    port_sim_reset(h.port, &none);
    write_bytes(&h, 1000);
    harness_wait(&h, 1);
    assert_int_equal(0, taken_bytes(&h));
    assert_true(stack_counters_get(h.stack)->tx_no_frame > 0);
    assert_true(stack_deadline_ns(h.stack) <= h.now_ns);
    port_sim_reset(h.port, &some);
    harness_wait(&h, 1);
    assert_int_equal(1000, taken_bytes(&h));
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_commit_leaves_at_once_with_the_ack_on_it),
        cmocka_unit_test(test_bytes_in_flight_never_exceed_the_initial_window),
        cmocka_unit_test(test_peer_window_limits_what_is_sent),
        cmocka_unit_test(test_small_window_is_used_when_the_persist_timer_expires),
        cmocka_unit_test(test_shut_window_is_probed_with_growing_pauses_for_ever),
        cmocka_unit_test(test_unanswered_window_probes_end_in_a_timeout),
        cmocka_unit_test(test_fin_waits_for_a_shut_window_and_then_leaves),
        cmocka_unit_test(test_last_data_and_fin_share_a_segment),
        cmocka_unit_test(test_simultaneous_close_ends_in_order_on_both_sides),
        cmocka_unit_test(test_passive_close_ends_without_time_wait),
        cmocka_unit_test(test_window_update_is_told_once_it_is_worth_it),
        cmocka_unit_test(test_sends_put_off_for_lack_of_frames_leave_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
