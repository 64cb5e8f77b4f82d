/* SPDX-License-Identifier: Apache-2.0 */
/* Segments in: RFC 9293 §3.10.7, the blind attacks of RFC 5961, PAWS (RFC 7323 §5), closing from
 * either side, and what a peer may not do. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stack_counters *counters(const struct harness *h)
{
    return stack_counters_get(h->stack);
}

static void test_data_in_order_is_readable_and_acknowledged_after_the_turn(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK | TCP_PSH, "hello");
    assert_int_equal(5, stream_readable(h.stream).bytes);
    assert_memory_equal(stream_readable(h.stream).data, "hello", 5);
    assert_false(harness_take(&h, &out)); /* waits for data to ride on */
    (void)stack_flush(h.stack, h.now_ns);
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_ACK, out.flags);
    assert_int_equal(HARNESS_ISN + 6, out.ack);
    assert_int_equal(h.timestamp, out.options.timestamp_echo);
    stream_consume(h.stream, 5);
    harness_fini(&h);
}

static void test_early_data_is_acknowledged_at_once_with_sack(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 10, 0, TCP_ACK, "klmno");
    assert_true(harness_take(&h, &out));
    assert_int_equal(HARNESS_ISN + 1, out.ack);
    assert_int_equal(1, out.options.sack_count);
    assert_int_equal(HARNESS_ISN + 11, out.options.sack[0].start);
    assert_int_equal(HARNESS_ISN + 16, out.options.sack[0].end);
    assert_int_equal(0, stream_readable(h.stream).bytes);
    harness_data(&h, 0, 0, TCP_ACK, "abcdefghij");
    assert_memory_equal(stream_readable(h.stream).data, "abcdefghijklmno", 15);
    assert_true(harness_take(&h, &out));
    assert_int_equal(HARNESS_ISN + 16, out.ack);
    assert_int_equal(0, out.options.sack_count);
    harness_fini(&h);
}

static void test_duplicate_data_is_told_as_duplicate_sack(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK, "abcde");
    harness_data(&h, 0, 0, TCP_ACK, "abcde");
    assert_true(harness_take(&h, &out));
    assert_int_equal(1, out.options.sack_count);
    assert_int_equal(HARNESS_ISN + 1, out.options.sack[0].start);
    assert_int_equal(HARNESS_ISN + 6, out.options.sack[0].end);
    assert_int_equal(5, counters(&h)->tcp_bytes_duplicate);
    harness_fini(&h);
}

static void test_reset_at_the_next_byte_ends_the_stream(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_RST, "");
    assert_int_equal(STREAM_FAILED, h.stream->state);
    assert_int_equal(STREAM_FAILURE_RESET, h.stream->failure);
    harness_fini(&h);
}

static void test_reset_elsewhere_in_the_window_earns_a_challenge(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 1, 0, TCP_RST, "");
    assert_int_equal(STREAM_OPEN, h.stream->state);
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_ACK, out.flags);
    harness_data(&h, 200000, 0, TCP_RST, "");
    assert_int_equal(STREAM_OPEN, h.stream->state);
    assert_false(harness_take(&h, &out)); /* outside: silence */
    harness_fini(&h);
}

static void test_syn_on_an_open_connection_earns_a_challenge(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_SYN, "");
    assert_int_equal(STREAM_OPEN, h.stream->state);
    assert_true(harness_take(&h, &out));
    assert_int_equal(1, counters(&h)->tcp_challenge_acks);
    harness_fini(&h);
}

static void test_challenges_are_bounded_for_each_connection(void **state)
{
    struct harness h;
    harness_init(&h);
    h.config.challenge_ack_count_max = 3;
    harness_open(&h);
    for (int i = 0; i < 10; i++) {
        harness_data(&h, 1, 0, TCP_RST, "");
    }
    assert_int_equal(3, counters(&h)->tcp_challenge_acks);
    assert_int_equal(7, counters(&h)->tcp_challenge_suppressed);
    h.now_ns += NANOSECONDS_PER_S;
    harness_data(&h, 1, 0, TCP_RST, "");
    assert_int_equal(4, counters(&h)->tcp_challenge_acks);
    harness_fini(&h);
}

static void test_ack_of_what_was_never_sent_is_dropped_with_its_data(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 1, TCP_ACK, "evil");
    assert_int_equal(0, stream_readable(h.stream).bytes);
    assert_int_equal(1, counters(&h)->tcp_drop_ack);
    harness_data(&h, 0, 0u - 70000u, TCP_ACK, "evil"); /* below SND.UNA - MAX.SND.WND */
    assert_int_equal(0, stream_readable(h.stream).bytes);
    assert_int_equal(2, counters(&h)->tcp_drop_ack);
    harness_fini(&h);
}

static void test_old_timestamp_is_dropped_and_answered(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    h.timestamp = 6000;
    harness_data(&h, 0, 0, TCP_ACK, "new");
    harness_wait(&h, 1);
    harness_drain(&h);
    h.timestamp = 5999;
    harness_data(&h, 3, 0, TCP_ACK, "old");
    assert_int_equal(3, stream_readable(h.stream).bytes);
    assert_int_equal(1, counters(&h)->tcp_drop_paws);
    assert_true(harness_take(&h, &out));
    /* RFC 7323 §5.5: after 24 days of silence an old stamp counts again. */
    h.now_ns += 25 * UINT64_C(86400) * NANOSECONDS_PER_S;
    h.connection->keepalive_ns = UINT64_MAX;
    harness_data(&h, 3, 0, TCP_ACK, "old");
    assert_int_equal(6, stream_readable(h.stream).bytes);
    harness_fini(&h);
}

static void test_missing_timestamp_is_dropped_except_on_reset(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    h.timestamps = false;
    harness_data(&h, 0, 0, TCP_ACK, "none");
    assert_int_equal(0, stream_readable(h.stream).bytes);
    assert_int_equal(1, counters(&h)->tcp_drop_no_timestamp);
    harness_data(&h, 0, 0, TCP_RST, "");
    assert_int_equal(STREAM_FAILED, h.stream->state);
    harness_fini(&h);
}

static void test_timestamp_beyond_the_last_ack_is_not_remembered(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    h.timestamp = 9000;
    harness_data(&h, 100, 0, TCP_ACK, "early"); /* RFC 7323 §4.3: SEG.SEQ > Last.ACK.sent */
    assert_true(harness_take(&h, &out));
    assert_int_equal(5000, out.options.timestamp_echo);
    harness_fini(&h);
}

static void test_bytes_beyond_the_window_are_cut_and_a_fin_behind_them_too(void **state)
{
    struct harness h;
    harness_init(&h);
    h.timestamps = false;
    harness_open(&h);
    struct harness_segment segment = {
        .ack = h.iss + 1, .flags = TCP_ACK, .window = 65535, .payload_bytes = 1460};
    for (uint32_t at = 0; at + 1460 <= 65536; at += 1460) {
        segment.seq = HARNESS_ISN + 1 + at;
        harness_segment(&h, &segment);
    }
    uint32_t left = 65536 % 1460;
    segment.seq = HARNESS_ISN + 1 + 65536 - left;
    segment.flags = TCP_ACK | TCP_FIN;
    harness_segment(&h, &segment);
    assert_int_equal(65536, stream_readable(h.stream).bytes);
    assert_int_equal(1460 - left, counters(&h)->tcp_bytes_outside);
    assert_int_equal(STREAM_OPEN, h.stream->state);
    /* A bare FIN is taken even at window zero. */
    segment = (struct harness_segment){.seq = HARNESS_ISN + 1 + 65536,
                                       .ack = h.iss + 1,
                                       .flags = TCP_ACK | TCP_FIN,
                                       .window = 65535};
    harness_segment(&h, &segment);
    assert_int_equal(STREAM_HALF_CLOSED, h.stream->state);
    harness_fini(&h);
}

static void test_fin_before_its_data_waits_for_it(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 5, 0, TCP_ACK | TCP_FIN, "56789");
    assert_int_equal(STREAM_OPEN, h.stream->state);
    harness_data(&h, 0, 0, TCP_ACK, "01234");
    assert_int_equal(STREAM_HALF_CLOSED, h.stream->state);
    assert_int_equal(10, stream_readable(h.stream).bytes);
    harness_wait(&h, 1);
    while (harness_take(&h, &out)) {
    }
    assert_int_equal(HARNESS_ISN + 12, out.ack);
    harness_fini(&h);
}

static void test_data_after_the_peers_end_is_refused(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 5, 0, TCP_ACK | TCP_FIN, "");
    harness_data(&h, 5, 0, TCP_ACK, "beyond");
    harness_data(&h, 0, 0, TCP_ACK, "01234");
    assert_int_equal(STREAM_HALF_CLOSED, h.stream->state);
    assert_int_equal(5, stream_readable(h.stream).bytes);
    harness_data(&h, 6, 0, TCP_ACK, "more");
    assert_int_equal(5, stream_readable(h.stream).bytes);
    assert_int_equal(10, counters(&h)->tcp_bytes_refused);
    harness_fini(&h);
}

static void test_tiny_segment_size_of_a_peer_gets_a_floor(void **state)
{
    struct harness h;
    harness_init(&h);
    h.mss_bytes = 8;
    harness_open(&h);
    assert_int_equal(h.config.mss_bytes_min - TCP_TIMESTAMP_BYTES, h.connection->mss_bytes);
    harness_fini(&h);
}

static void test_peer_without_options_gets_536_bytes_a_segment(void **state)
{
    struct harness h;
    harness_init(&h);
    h.mss_bytes = 0;
    h.timestamps = h.sack = false;
    h.scale = -1;
    harness_open(&h);
    assert_int_equal(536, h.connection->mss_bytes);
    assert_int_equal(0, h.connection->rcv_scale);
    assert_false(h.connection->sack);
    harness_fini(&h);
}

static void test_segment_of_no_connection_is_reset_but_a_reset_never(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    h.local_port++;
    harness_data(&h, 0, 7, TCP_ACK, "lost");
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_RST, out.flags);
    assert_int_equal(h.iss + 8, out.seq);
    harness_data(&h, 0, 7, TCP_SYN, "");
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_RST | TCP_ACK, out.flags);
    assert_int_equal(HARNESS_ISN + 2, out.ack);
    harness_data(&h, 0, 7, TCP_RST, "");
    assert_false(harness_take(&h, &out));
    harness_fini(&h);
}

static void test_bad_checksum_and_bad_header_are_counted_apart(void **state)
{
    struct harness h;
    uint8_t tcp[20] = {0}, frame[80];
    harness_init(&h);
    harness_open(&h);
    tcp[12] = 0x50;
    size_t bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, sizeof(tcp));
    frame[34] ^= 1;
    harness_frame(&h, frame, bytes);
    assert_int_equal(1, counters(&h)->rx_drop_tcp_checksum);
    tcp[12] = 0x40;
    bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, sizeof(tcp));
    harness_frame(&h, frame, bytes);
    tcp[12] = 0xf0;
    bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, sizeof(tcp));
    harness_frame(&h, frame, bytes);
    assert_int_equal(2, counters(&h)->rx_drop_tcp_header);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_in_order_is_readable_and_acknowledged_after_the_turn),
        cmocka_unit_test(test_early_data_is_acknowledged_at_once_with_sack),
        cmocka_unit_test(test_duplicate_data_is_told_as_duplicate_sack),
        cmocka_unit_test(test_reset_at_the_next_byte_ends_the_stream),
        cmocka_unit_test(test_reset_elsewhere_in_the_window_earns_a_challenge),
        cmocka_unit_test(test_syn_on_an_open_connection_earns_a_challenge),
        cmocka_unit_test(test_challenges_are_bounded_for_each_connection),
        cmocka_unit_test(test_ack_of_what_was_never_sent_is_dropped_with_its_data),
        cmocka_unit_test(test_old_timestamp_is_dropped_and_answered),
        cmocka_unit_test(test_missing_timestamp_is_dropped_except_on_reset),
        cmocka_unit_test(test_timestamp_beyond_the_last_ack_is_not_remembered),
        cmocka_unit_test(test_bytes_beyond_the_window_are_cut_and_a_fin_behind_them_too),
        cmocka_unit_test(test_fin_before_its_data_waits_for_it),
        cmocka_unit_test(test_data_after_the_peers_end_is_refused),
        cmocka_unit_test(test_tiny_segment_size_of_a_peer_gets_a_floor),
        cmocka_unit_test(test_peer_without_options_gets_536_bytes_a_segment),
        cmocka_unit_test(test_segment_of_no_connection_is_reset_but_a_reset_never),
        cmocka_unit_test(test_bad_checksum_and_bad_header_are_counted_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
