/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery as a sender sees it: fast retransmit with and without SACK, windows from reordered
 * ACKs, and the undo of a timeout that was not needed. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FULL 1448 /* 1460 less timestamps */

static uint32_t first_taken(struct harness *h, struct harness_segment *out)
{
    return harness_take(h, out) ? out->seq - h->iss - 1 : UINT32_MAX;
}

static void flight_send(struct harness *h, uint32_t segments)
{
    struct span_mut room = stream_writable(h->stream);
    memset(room.data, 'f', segments * FULL);
    h->connection->probe_out = true; /* keeps the tail loss probe out of the picture */
    stream_commit(h->stream, segments * FULL);
    harness_wait(h, 1);
    harness_drain(h);
    h->now_ns += 10 * HARNESS_MS;
}

static void sack_feed(struct harness *h, uint32_t ack, uint32_t start, uint32_t end)
{
    struct harness_segment segment = {
        .seq = HARNESS_ISN + 1,
        .ack = h->iss + 1 + ack,
        .flags = TCP_ACK,
        .window = h->window,
        .options = {.has_timestamp = true,
                    .timestamp = h->timestamp,
                    .timestamp_echo = h->timestamp_echo,
                    .sack_count = 1,
                    .sack = {{h->iss + 1 + start, h->iss + 1 + end}}},
    };
    harness_segment(h, &segment);
}

static void test_three_later_segments_sacked_send_the_hole_again(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    flight_send(&h, 8);
    sack_feed(&h, 0, FULL, 4 * FULL);
    assert_int_equal(0, first_taken(&h, &out));
    assert_int_equal(FULL, out.payload_bytes);
    assert_int_equal(TCP_PHASE_RECOVERY, h.connection->congestion.phase);
    assert_int_equal(1, stack_counters_get(h.stack)->tcp_fast_recoveries);
    sack_feed(&h, 0, FULL, 5 * FULL);
    assert_int_equal(UINT32_MAX, first_taken(&h, &out)); /* not a second time */
    sack_feed(&h, 8 * FULL, FULL, 5 * FULL);
    assert_int_equal(TCP_PHASE_OPEN, h.connection->congestion.phase);
    assert_int_equal(4 * FULL, h.connection->congestion.cwnd_bytes);
    harness_fini(&h);
}

static void test_one_later_segment_sacked_waits_for_the_reordering_window(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    flight_send(&h, 8);
    sack_feed(&h, 0, FULL, 2 * FULL);
    assert_int_equal(UINT32_MAX, first_taken(&h, &out));
    harness_wait(&h, 3 * HARNESS_MS); /* a quarter of 10 ms and a bit */
    assert_int_equal(0, first_taken(&h, &out));
    harness_fini(&h);
}

static void test_three_duplicates_without_sack_send_the_first_again(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    h.sack = false;
    harness_open(&h);
    flight_send(&h, 8);
    harness_data(&h, 0, 0, TCP_ACK, "");
    harness_data(&h, 0, 0, TCP_ACK, "");
    assert_int_equal(UINT32_MAX, first_taken(&h, &out));
    harness_data(&h, 0, 0, TCP_ACK, "");
    assert_int_equal(0, first_taken(&h, &out));
    harness_drain(&h);
    /* RFC 6582: a partial acknowledgment tells of the next hole. */
    harness_data(&h, 0, 2 * FULL, TCP_ACK, "");
    assert_int_equal(2 * FULL, first_taken(&h, &out));
    harness_drain(&h);
    harness_data(&h, 0, 8 * FULL, TCP_ACK, "");
    assert_int_equal(TCP_PHASE_OPEN, h.connection->congestion.phase);
    harness_fini(&h);
}

static void test_window_of_an_old_segment_is_not_taken(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    harness_data(&h, 0, 0, TCP_ACK, "0123456789");
    h.window = 9;
    harness_data(&h, 0, 0, TCP_ACK, ""); /* overtaken by the ten bytes */
    assert_int_equal(65535, h.connection->snd_wnd_bytes);
    harness_fini(&h);
}

static void test_window_edge_stays_when_an_old_segment_acknowledges_more(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    flight_send(&h, 4);
    h.window = 10 * FULL;
    harness_data(&h, 0, FULL, TCP_ACK, "0123456789");
    h.window = 9 * FULL;
    harness_data(&h, 0, 2 * FULL, TCP_ACK, "0123456789"); /* a retransmission */
    assert_int_equal(9 * FULL, h.connection->snd_wnd_bytes);
    harness_fini(&h);
}

static void test_unneeded_timeout_is_undone(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_open(&h);
    flight_send(&h, 8);
    uint32_t window = h.connection->congestion.cwnd_bytes;
    uint32_t stamp_before = h.timestamp_echo;
    harness_wait(&h, 400 * HARNESS_MS);
    assert_int_equal(TCP_PHASE_LOSS, h.connection->congestion.phase);
    harness_drain(&h);
    h.timestamp_echo = stamp_before; /* of the first transmission */
    harness_data(&h, 0, 2 * FULL, TCP_ACK, "");
    assert_int_equal(TCP_PHASE_OPEN, h.connection->congestion.phase);
    assert_true(h.connection->congestion.cwnd_bytes >= window);
    assert_int_equal(0, h.connection->board.lost_bytes);
    harness_fini(&h);
}

static void test_needed_timeout_stays(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    flight_send(&h, 8);
    harness_wait(&h, 400 * HARNESS_MS);
    assert_int_equal(0, first_taken(&h, &out));
    assert_int_equal(UINT32_MAX, first_taken(&h, &out)); /* one segment, no more */
    harness_data(&h, 0, FULL, TCP_ACK, "");
    assert_int_equal(TCP_PHASE_LOSS, h.connection->congestion.phase);
    assert_int_equal(FULL, first_taken(&h, &out));
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_later_segments_sacked_send_the_hole_again),
        cmocka_unit_test(test_one_later_segment_sacked_waits_for_the_reordering_window),
        cmocka_unit_test(test_three_duplicates_without_sack_send_the_first_again),
        cmocka_unit_test(test_window_of_an_old_segment_is_not_taken),
        cmocka_unit_test(test_window_edge_stays_when_an_old_segment_acknowledges_more),
        cmocka_unit_test(test_unneeded_timeout_is_undone),
        cmocka_unit_test(test_needed_timeout_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
