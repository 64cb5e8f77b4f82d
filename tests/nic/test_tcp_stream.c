/* SPDX-License-Identifier: Apache-2.0 */
/* The stream interface: spans that never break at the ring's end, and the ways of leaving. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_spans_stay_whole_over_the_end_of_the_ring(void **state)
{
    struct harness h;
    harness_init(&h);
    h.timestamps = false;
    harness_open(&h);
    struct harness_segment segment = {
        .ack = h.iss + 1, .flags = TCP_ACK, .window = 65535, .payload_bytes = 1000};
    uint32_t sent = 0;
    for (int i = 0; i < 300; i++) {
        segment.seq = HARNESS_ISN + 1 + sent;
        for (uint32_t at = 0; at < 1000; at++) {
            segment.payload[at] = (uint8_t)((sent + at) % 251);
        }
        harness_segment(&h, &segment);
        sent += 1000;
        struct span in = stream_readable(h.stream);
        for (size_t at = 0; at < in.bytes; at++) {
            assert_int_equal((uint8_t)((sent - in.bytes + at) % 251), in.data[at]);
        }
        if (in.bytes > 30000) {
            stream_consume(h.stream, in.bytes - 777);
        }
        harness_drain(&h);
    }
    harness_fini(&h);
}

static void test_arrival_time_is_that_of_the_newest_byte(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    h.now_ns += 12345;
    harness_data(&h, 0, 0, TCP_ACK, "a");
    assert_true(h.stream->arrival_ns == h.now_ns);
    harness_wait(&h, 1000);
    assert_true(h.stream->arrival_ns == h.now_ns - 1000);
    harness_fini(&h);
}

static void test_nothing_is_writable_before_the_connection_is_up(void **state)
{
    struct harness h;
    struct stream *second = NULL;
    harness_init(&h);
    harness_open(&h);
    assert_int_equal(65536, stream_writable(h.stream).bytes);
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 1, h.now_ns, &second));
    assert_int_equal(STREAM_CONNECTING, second->state);
    assert_int_equal(0, stream_writable(second).bytes);
    stream_close(second); /* gives up quietly */
    assert_int_equal(STREAM_CLOSED, second->state);
    stream_release(second);
    harness_fini(&h);
}

static void test_abort_resets_the_peer(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    stream_abort(h.stream);
    assert_int_equal(STREAM_FAILED, h.stream->state);
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_RST | TCP_ACK, out.flags);
    assert_int_equal(h.iss + 1, out.seq);
    stream_release(h.stream);
    assert_int_equal(0, h.stack->tcp.connection_count);
    harness_fini(&h);
}

static void test_release_with_unread_bytes_resets_the_peer(void **state)
{
    struct harness h;
    struct harness_segment out = {0};
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK, "unread");
    stream_close(h.stream);
    harness_wait(&h, 1);
    harness_drain(&h);
    stream_release(h.stream);
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_true((out.flags & TCP_RST) != 0);
    harness_fini(&h);
}

static void test_new_bytes_for_a_released_stream_reset_the_peer(void **state)
{
    struct harness h;
    struct harness_segment out = {0};
    harness_init(&h);
    harness_open(&h);
    stream_close(h.stream);
    stream_release(h.stream);
    harness_wait(&h, 1);
    harness_drain(&h);
    harness_data(&h, 0, 1, TCP_ACK, "late");
    assert_true(harness_take(&h, &out));
    assert_true((out.flags & TCP_RST) != 0);
    harness_fini(&h);
}

static void test_rest_is_readable_after_the_end(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    stream_close(h.stream);
    harness_wait(&h, 1);
    harness_data(&h, 0, 1, TCP_ACK | TCP_FIN, "rest");
    assert_int_equal(STREAM_CLOSED, h.stream->state);
    assert_memory_equal("rest", stream_readable(h.stream).data, 4);
    stream_consume(h.stream, 4);
    stream_release(h.stream);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_stay_whole_over_the_end_of_the_ring),
        cmocka_unit_test(test_arrival_time_is_that_of_the_newest_byte),
        cmocka_unit_test(test_nothing_is_writable_before_the_connection_is_up),
        cmocka_unit_test(test_abort_resets_the_peer),
        cmocka_unit_test(test_release_with_unread_bytes_resets_the_peer),
        cmocka_unit_test(test_new_bytes_for_a_released_stream_reset_the_peer),
        cmocka_unit_test(test_rest_is_readable_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
