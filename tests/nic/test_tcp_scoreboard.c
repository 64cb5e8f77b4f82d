/* SPDX-License-Identifier: Apache-2.0 */
/* SACK blocks good and bad (CVE-2019-11477 to 11479 came from believing them), RACK's marking by
 * time (RFC 8985), and the sums. */
#include "nic/tcp_scoreboard.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define MSS 1000

struct board {
    struct tcp_segment segments[64];
    struct tcp_scoreboard board;
    struct tcp_ack_report report;
};

/* count segments from first on, a millisecond apart, the first sent at 0. */
static void board_fill(struct board *b, uint32_t first, uint32_t count)
{
    memset(b, 0, sizeof(*b));
    tcp_scoreboard_init(&b->board, b->segments, 64);
    for (uint32_t i = 0; i < count; i++) {
        struct tcp_segment segment = {
            .seq = first + i * MSS, .end = first + (i + 1) * MSS, .sent_ns = i * MS};
        tcp_scoreboard_push(&b->board, &segment);
    }
}

static void sack(struct board *b, uint32_t ack, uint32_t start, uint32_t end, uint64_t now_ns)
{
    struct tcp_options options = {.sack_count = 1, .sack = {{start, end}}};
    memset(&b->report, 0, sizeof(b->report));
    tcp_scoreboard_sack(&b->board, &options, ack, now_ns, UINT64_MAX, &b->report);
}

static void test_ack_over_the_wrap_frees_whole_and_cut_segments(void **state)
{
    struct board b;
    uint32_t first = UINT32_MAX - 1499;
    board_fill(&b, first, 4);
    tcp_scoreboard_ack(&b.board, first + 2500, 10 * MS, UINT64_MAX, &b.report);
    assert_int_equal(2500, b.report.acked_bytes);
    assert_int_equal(2, b.board.tail - b.board.head);
    assert_true(b.report.rtt_sample_ns == 9 * MS);
    tcp_scoreboard_ack(&b.board, first + 4000, 10 * MS, UINT64_MAX, &b.report);
    assert_true(tcp_scoreboard_is_empty(&b.board));
}

static void test_sack_outside_the_flight_changes_nothing(void **state)
{
    static const struct tcp_sack_block bad[] = {
        {20000, 21000},             /* beyond what was sent */
        {5000, 4000},               /* backwards */
        {4000, 4000},               /* empty */
        {1000, 12000},              /* over both ends */
        {4000, 4000 + 0x80000000u}, /* half the sequence space */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct board b;
        board_fill(&b, 1000, 10);
        struct tcp_options options = {.sack_count = 2, .sack = {bad[i], {3000, 4000}}};
        tcp_scoreboard_sack(&b.board, &options, 1000, 20 * MS, UINT64_MAX, &b.report);
        assert_int_equal(1, b.report.invalid_blocks);
        assert_int_equal(MSS, b.board.sacked_bytes);
    }
}

static void test_sack_of_part_of_a_segment_marks_nothing_and_splits_nothing(void **state)
{
    struct board b;
    board_fill(&b, 1000, 10);
    sack(&b, 1000, 3001, 4999, 20 * MS);
    assert_int_equal(0, b.board.sacked_bytes);
    assert_int_equal(10, b.board.tail - b.board.head);
    sack(&b, 1000, 3500, 5500, 20 * MS);
    assert_int_equal(MSS, b.board.sacked_bytes);
}

static void test_repeated_sack_delivers_once(void **state)
{
    struct board b;
    board_fill(&b, 1000, 10);
    sack(&b, 1000, 3000, 5000, 20 * MS);
    assert_int_equal(2 * MSS, b.report.delivered_bytes);
    sack(&b, 1000, 3000, 5000, 20 * MS);
    assert_int_equal(0, b.report.delivered_bytes);
    assert_int_equal(2 * MSS, b.board.sacked_bytes);
}

static void test_duplicate_sack_is_recognised_and_not_taken(void **state)
{
    struct board b;
    board_fill(&b, 1000, 10);
    sack(&b, 1000, 500, 900, 20 * MS);
    assert_true(b.report.duplicate_sack);
    assert_int_equal(0, b.report.invalid_blocks);
    assert_int_equal(0, b.board.sacked_bytes);
}

static void test_rack_with_three_later_arrivals_marks_the_earlier_at_once(void **state)
{
    struct board b;
    uint64_t due_ns;
    board_fill(&b, 0, 6);
    sack(&b, 0, 1 * MSS, 4 * MSS, 20 * MS);
    uint32_t lost = tcp_scoreboard_detect(&b.board, 20 * MS, 17 * MS, 17 * MS, false, &due_ns);
    assert_int_equal(MSS, lost);
    struct tcp_segment *segment = tcp_scoreboard_next_lost(&b.board);
    assert_int_equal(0, segment->seq);
    tcp_scoreboard_resent(&b.board, segment, 21 * MS);
    assert_null(tcp_scoreboard_next_lost(&b.board));
}

static void test_rack_with_one_later_arrival_waits_a_quarter_of_the_least_rtt(void **state)
{
    struct board b;
    uint64_t due_ns;
    board_fill(&b, 0, 6);
    sack(&b, 0, 1 * MSS, 2 * MSS, 21 * MS); /* sent at 1 ms: RTT 20 ms */
    assert_int_equal(0, tcp_scoreboard_detect(&b.board, 21 * MS, 20 * MS, 20 * MS, false, &due_ns));
    assert_true(due_ns == 0 + 20 * MS + 5 * MS);
    assert_int_equal(MSS,
                     tcp_scoreboard_detect(&b.board, 25 * MS, 20 * MS, 20 * MS, false, &due_ns));
}

static void test_rack_does_not_mark_what_was_sent_after_the_newest_arrival(void **state)
{
    struct board b;
    uint64_t due_ns;
    board_fill(&b, 0, 6);
    sack(&b, 0, 1 * MSS, 2 * MSS, 500 * MS);
    (void)tcp_scoreboard_detect(&b.board, 5000 * MS, 20 * MS, 20 * MS, true, &due_ns);
    assert_int_equal(MSS, b.board.lost_bytes);
}

static void test_timeout_marks_all_but_the_sacked_unless_the_peer_reneged(void **state)
{
    struct board b;
    board_fill(&b, 0, 6);
    sack(&b, 0, 2 * MSS, 3 * MSS, 20 * MS);
    assert_false(tcp_scoreboard_lose_all(&b.board));
    assert_int_equal(5 * MSS, b.board.lost_bytes);
    board_fill(&b, 0, 6);
    sack(&b, 0, 0, 1 * MSS, 20 * MS);
    assert_true(tcp_scoreboard_lose_all(&b.board));
    assert_int_equal(6 * MSS, b.board.lost_bytes);
    assert_int_equal(0, b.board.sacked_bytes);
}

static void test_forgive_takes_all_marks_back(void **state)
{
    struct board b;
    board_fill(&b, 0, 3);
    (void)tcp_scoreboard_lose_all(&b.board);
    tcp_scoreboard_forgive(&b.board);
    assert_int_equal(0, b.board.lost_bytes);
    assert_null(tcp_scoreboard_next_lost(&b.board));
}

static void test_retransmitted_segment_gives_no_rtt_sample(void **state)
{
    struct board b;
    board_fill(&b, 0, 1);
    assert_int_equal(MSS, tcp_scoreboard_lose_head(&b.board));
    tcp_scoreboard_resent(&b.board, tcp_scoreboard_next_lost(&b.board), 100 * MS);
    tcp_scoreboard_ack(&b.board, MSS, 110 * MS, UINT64_MAX, &b.report);
    assert_true(b.report.retransmitted);
    assert_true(b.report.rtt_sample_ns == 0);
}

static void test_room_ends_at_the_ring_size(void **state)
{
    struct board b;
    board_fill(&b, 0, 63);
    assert_true(tcp_scoreboard_has_room(&b.board));
    board_fill(&b, 0, 64);
    assert_false(tcp_scoreboard_has_room(&b.board));
    assert_int_equal(63 * MSS, tcp_scoreboard_last(&b.board)->seq);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ack_over_the_wrap_frees_whole_and_cut_segments),
        cmocka_unit_test(test_sack_outside_the_flight_changes_nothing),
        cmocka_unit_test(test_sack_of_part_of_a_segment_marks_nothing_and_splits_nothing),
        cmocka_unit_test(test_repeated_sack_delivers_once),
        cmocka_unit_test(test_duplicate_sack_is_recognised_and_not_taken),
        cmocka_unit_test(test_rack_with_three_later_arrivals_marks_the_earlier_at_once),
        cmocka_unit_test(test_rack_with_one_later_arrival_waits_a_quarter_of_the_least_rtt),
        cmocka_unit_test(test_rack_does_not_mark_what_was_sent_after_the_newest_arrival),
        cmocka_unit_test(test_timeout_marks_all_but_the_sacked_unless_the_peer_reneged),
        cmocka_unit_test(test_forgive_takes_all_marks_back),
        cmocka_unit_test(test_retransmitted_segment_gives_no_rtt_sample),
        cmocka_unit_test(test_room_ends_at_the_ring_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
