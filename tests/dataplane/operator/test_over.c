/* SPDX-License-Identifier: Apache-2.0 */
/* OVER by event time: the answers of Flink's cases over-late, over-unbounded, over-lag-first-last,
 * over-before-1970-and-null and of questions asked for these tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "state/arena.h"
#include "tests/dataplane/operator/harness.h"

#define NONE  AGGREGATE_COLUMN_NONE
#define BASE  INT64_C(1772366400000) /* 2026-03-01 12:00:00 */
#define ARENA (UINT32_C(16) << 20)

static const uint32_t key_column[] = {1};

/* Columns: id INT, card INT, amount INT. */
static struct harness *over_create(bool is_rows, bool unbounded, int64_t preceding,
                                   const struct aggregate_call *calls, uint32_t call_count)
{
    struct type input[3] = {type_of(TYPE_INT), type_of(TYPE_INT), type_of(TYPE_INT)};
    struct type output[HARNESS_COLUMNS_MAX] = {input[0], input[1], input[2]};
    for (uint32_t i = 0; i < call_count; i++) {
        output[3 + i] = calls[i].result_type;
    }
    struct harness *harness = harness_create(input, 3, output, 3 + call_count, ARENA);
    harness->node.operator= PLAN_OVER;
    harness->node.over = (struct plan_over){
        .key = {.columns = key_column, .count = 1},
        .is_rows = is_rows,
        .unbounded = unbounded,
        .preceding = preceding,
        .calls = calls,
        .call_count = call_count,
    };
    return harness;
}

static struct aggregate_call int_call(enum aggregate_function function)
{
    return call_of(function, 2, type_of(TYPE_INT), type_of(TYPE_INT));
}

static struct aggregate_call count_call(uint32_t argument)
{
    return call_of(AGGREGATE_COUNT, argument, type_of(TYPE_INT), type_of(TYPE_BIGINT));
}

/* id, card, amount, time behind BASE; the watermark follows each row by two seconds. */
static void feed(struct harness *harness, int64_t id, int64_t card, int64_t amount, int64_t time_ms,
                 int64_t *watermark)
{
    ROW(harness, time_ms == ROW_TIME_NONE ? ROW_TIME_NONE : BASE + time_ms, v_int(id), v_int(card),
        amount == INT64_MIN ? v_null() : v_int(amount));
    const int64_t mark = BASE + time_ms - 2000;
    *watermark = mark > *watermark ? mark : *watermark;
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, *watermark));
}

static void feed_late_case(struct harness *harness)
{
    static const int64_t rows[][3] = {
        {4111, 1, 10000},   {4111, 2, 8000},    {4111, 4, 8001},     {5500, 8, 7000},
        {4111, 16, 12000},  {5500, 32, 10000},  {5500, 64, 10001},   {4111, 128, 9999},
        {5500, 256, 20000}, {4111, 512, 17000}, {4111, 1024, 18000}, {4111, 2048, 18001},
    };
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, i + 1, rows[i][0], rows[i][1], rows[i][2], &watermark);
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
}

static void test_range_drops_when_behind_the_keys_last_fired_time(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_SUM)};
    struct harness *harness = over_create(false, false, 10000, calls, 1);
    harness_open(harness);
    feed_late_case(harness);
    EXPECT_SORTED(harness, "+I(1, 4111, 1, 7)", "+I(10, 4111, 512, 535)",
                  "+I(11, 4111, 1024, 1559)", "+I(12, 4111, 2048, 3605)", "+I(2, 4111, 2, 2)",
                  "+I(3, 4111, 4, 6)", "+I(4, 5500, 8, 8)", "+I(5, 4111, 16, 23)",
                  "+I(6, 5500, 32, 40)", "+I(7, 5500, 64, 104)", "+I(9, 5500, 256, 352)");
    assert_int_equal(1, harness->counters[OPERATOR_LATE_ROWS]);
    harness_destroy(harness);
}

static void test_rows_drop_when_behind_the_keys_last_fired_time(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_SUM)};
    struct harness *harness = over_create(true, false, 9, calls, 1);
    harness_open(harness);
    feed_late_case(harness);
    EXPECT_SORTED(harness, "+I(1, 4111, 1, 7)", "+I(10, 4111, 512, 535)",
                  "+I(11, 4111, 1024, 1559)", "+I(12, 4111, 2048, 3607)", "+I(2, 4111, 2, 2)",
                  "+I(3, 4111, 4, 6)", "+I(4, 5500, 8, 8)", "+I(5, 4111, 16, 23)",
                  "+I(6, 5500, 32, 40)", "+I(7, 5500, 64, 104)", "+I(9, 5500, 256, 360)");
    harness_destroy(harness);
}

static void test_unbounded_drops_when_at_the_watermark(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_SUM)};
    for (int is_rows = 0; is_rows < 2; is_rows++) {
        struct harness *harness = over_create(is_rows != 0, true, 0, calls, 1);
        harness_open(harness);
        feed_late_case(harness);
        EXPECT_SORTED(harness, "+I(1, 4111, 1, 5)", "+I(12, 4111, 2048, 2069)", "+I(3, 4111, 4, 4)",
                      "+I(5, 4111, 16, 21)", "+I(7, 5500, 64, 64)", "+I(9, 5500, 256, 320)");
        assert_int_equal(6, harness->counters[OPERATOR_LATE_ROWS]);
        harness_destroy(harness);
    }
}

static void feed_ties(struct harness *harness)
{
    static const int64_t rows[][3] = {
        {4111, 5, 3000},  {4111, 7, 3000}, {4111, -2, 1500},        {5500, INT64_MIN, 3000},
        {4111, 11, 3000}, {5500, 3, 4000}, {4111, INT64_MIN, 5000}, {5500, INT64_MIN, 6000},
        {0, 1, 7000},     {0, 2, 7000},
    };
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, i + 1, rows[i][0], rows[i][1], rows[i][2], &watermark);
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
}

static void test_unbounded_range_shares_the_frame_when_times_tie(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_SUM), count_call(2),
                                           int_call(AGGREGATE_MAX), int_call(AGGREGATE_MIN)};
    struct harness *harness = over_create(false, true, 0, calls, 4);
    harness_open(harness);
    harness_room(harness, 1);
    feed_ties(harness);
    EXPECT(harness, "+I(3, 4111, -2, -2, 1, -2, -2)", "+I(1, 4111, 5, 21, 4, 11, -2)",
           "+I(2, 4111, 7, 21, 4, 11, -2)", "+I(5, 4111, 11, 21, 4, 11, -2)",
           "+I(4, 5500, NULL, NULL, 0, NULL, NULL)", "+I(6, 5500, 3, 3, 1, 3, 3)",
           "+I(7, 4111, NULL, 21, 4, 11, -2)", "+I(8, 5500, NULL, 3, 1, 3, 3)",
           "+I(9, 0, 1, 3, 2, 2, 1)", "+I(10, 0, 2, 3, 2, 2, 1)");
    harness_destroy(harness);
}

static void test_unbounded_rows_see_only_those_before_when_times_tie(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_SUM), count_call(2),
                                           int_call(AGGREGATE_MAX), int_call(AGGREGATE_MIN)};
    struct harness *harness = over_create(true, true, 0, calls, 4);
    harness_open(harness);
    feed_ties(harness);
    EXPECT(harness, "+I(3, 4111, -2, -2, 1, -2, -2)", "+I(1, 4111, 5, 3, 2, 5, -2)",
           "+I(2, 4111, 7, 10, 3, 7, -2)", "+I(5, 4111, 11, 21, 4, 11, -2)",
           "+I(4, 5500, NULL, NULL, 0, NULL, NULL)", "+I(6, 5500, 3, 3, 1, 3, 3)",
           "+I(7, 4111, NULL, 21, 4, 11, -2)", "+I(8, 5500, NULL, 3, 1, 3, 3)",
           "+I(9, 0, 1, 1, 1, 1, 1)", "+I(10, 0, 2, 3, 2, 2, 1)");
    harness_destroy(harness);
}

static void feed_lag_case(struct harness *harness)
{
    static const int64_t rows[][3] = {
        {4111, 10, 1000},         {4111, 20, 3000},  {4111, 30, 2000},  {5500, 40, 2000},
        {4111, INT64_MIN, 4000},  {4111, 50, 5000},  {4111, 60, 5000},  {5500, 70, 9000},
        {5500, INT64_MIN, 10000}, {5500, 80, 11000}, {5500, 90, 12000}, {4111, 70, 12000},
    };
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, i + 1, rows[i][0], rows[i][1], rows[i][2], &watermark);
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
}

static void test_lag_looks_back_from_the_last_tie_when_times_tie(void **context)
{
    struct aggregate_call calls[] = {int_call(AGGREGATE_LAG), int_call(AGGREGATE_LAG)};
    calls[1].lag_offset = 2;
    calls[1].lag_default = v_int(-1);
    struct harness *harness = over_create(false, true, 0, calls, 2);
    harness_open(harness);
    feed_lag_case(harness);
    EXPECT_SORTED(harness, "+I(1, 4111, 10, NULL, -1)", "+I(10, 5500, 80, NULL, 70)",
                  "+I(11, 5500, 90, 80, -1)", "+I(12, 4111, 70, 60, 50)", "+I(2, 4111, 20, 30, 10)",
                  "+I(3, 4111, 30, 10, -1)", "+I(4, 5500, 40, NULL, -1)",
                  "+I(5, 4111, NULL, 20, 30)", "+I(6, 4111, 50, 50, -1)", "+I(7, 4111, 60, 50, -1)",
                  "+I(8, 5500, 70, 40, -1)", "+I(9, 5500, NULL, 70, 40)");
    harness_destroy(harness);
}

static void test_first_and_last_value_skip_null_when_frames_slide(void **context)
{
    const struct aggregate_call calls[] = {int_call(AGGREGATE_FIRST_VALUE),
                                           int_call(AGGREGATE_LAST_VALUE)};
    struct harness *harness = over_create(true, false, 2, calls, 2);
    harness_open(harness);
    feed_lag_case(harness);
    EXPECT_SORTED(harness, "+I(1, 4111, 10, 10, 10)", "+I(10, 5500, 80, 70, 80)",
                  "+I(11, 5500, 90, 80, 90)", "+I(12, 4111, 70, 50, 70)", "+I(2, 4111, 20, 10, 20)",
                  "+I(3, 4111, 30, 10, 30)", "+I(4, 5500, 40, 40, 40)", "+I(5, 4111, NULL, 30, 20)",
                  "+I(6, 4111, 50, 20, 50)", "+I(7, 4111, 60, 50, 60)", "+I(8, 5500, 70, 40, 70)",
                  "+I(9, 5500, NULL, 40, 70)");
    harness_destroy(harness);
    harness = over_create(false, false, 2000, calls, 2);
    harness_open(harness);
    feed_lag_case(harness);
    EXPECT_SORTED(harness, "+I(1, 4111, 10, 10, 10)", "+I(10, 5500, 80, 70, 80)",
                  "+I(11, 5500, 90, 80, 90)", "+I(12, 4111, 70, 70, 70)", "+I(2, 4111, 20, 10, 20)",
                  "+I(3, 4111, 30, 10, 30)", "+I(4, 5500, 40, 40, 40)", "+I(5, 4111, NULL, 30, 20)",
                  "+I(6, 4111, 50, 20, 60)", "+I(7, 4111, 60, 20, 60)", "+I(8, 5500, 70, 70, 70)",
                  "+I(9, 5500, NULL, 70, 70)");
    harness_destroy(harness);
}

/* Watermark one second behind; a NULL time reads as the epoch. */
static void feed_epoch_case(struct harness *harness)
{
    static const int64_t times[] = {
        ROW_TIME_NONE, INT64_C(-2208988800000), -3600001, 0, 1, ROW_TIME_NONE, INT64_C(63070200000),
    };
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        ROW(harness, times[i], v_int(i + 1), v_int(0), v_null());
        if (times[i] != ROW_TIME_NONE && times[i] - 1000 > watermark) {
            watermark = times[i] - 1000;
        }
        assert_int_equal(OPERATOR_DONE, harness_advance(harness, watermark));
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
}

static void test_bounded_frames_lose_rows_when_at_or_before_the_epoch(void **context)
{
    const struct aggregate_call calls[] = {count_call(NONE)};
    struct harness *harness = over_create(true, false, 3, calls, 1);
    harness_open(harness);
    feed_epoch_case(harness);
    EXPECT_SORTED(harness, "+I(5, 0, NULL, 1)", "+I(7, 0, NULL, 2)");
    harness_destroy(harness);
    harness = over_create(false, false, 86400000, calls, 1);
    harness_open(harness);
    feed_epoch_case(harness);
    EXPECT_SORTED(harness, "+I(5, 0, NULL, 1)", "+I(7, 0, NULL, 1)");
    harness_destroy(harness);
}

static void test_unbounded_frames_keep_rows_when_before_the_epoch(void **context)
{
    const struct aggregate_call calls[] = {count_call(NONE)};
    struct harness *harness = over_create(false, true, 0, calls, 1);
    harness_open(harness);
    feed_epoch_case(harness);
    EXPECT_SORTED(harness, "+I(1, 0, NULL, 5)", "+I(2, 0, NULL, 1)", "+I(3, 0, NULL, 2)",
                  "+I(4, 0, NULL, 5)", "+I(5, 0, NULL, 6)", "+I(6, 0, NULL, 5)",
                  "+I(7, 0, NULL, 7)");
    harness_destroy(harness);
    harness = over_create(true, true, 0, calls, 1);
    harness_open(harness);
    feed_epoch_case(harness);
    EXPECT_SORTED(harness, "+I(1, 0, NULL, 3)", "+I(2, 0, NULL, 1)", "+I(3, 0, NULL, 2)",
                  "+I(4, 0, NULL, 4)", "+I(5, 0, NULL, 6)", "+I(6, 0, NULL, 5)",
                  "+I(7, 0, NULL, 7)");
    harness_destroy(harness);
}

/* A clean-up timer that a later row overtook still moves the key's last fired time; and a key whose
 * clean-up fired takes late rows again. Asked of Flink 2.3 for this test. */
static void test_range_forgets_keys_when_the_clean_up_timer_fires(void **context)
{
    static const int64_t rows[][2] = {
        {1, 0},     {1, 20000}, {2, 20000}, {1, 10000},  {1, 15001}, {1, 15002}, {1, 30000},
        {2, 60000}, {1, 25000}, {1, 44000}, {3, 70000},  {3, 75000}, {9, 87000}, {3, 80000},
        {9, 87001}, {3, 80000}, {3, 74000}, {9, 100000}, {3, 74500},
    };
    const struct aggregate_call calls[] = {count_call(NONE)};
    struct harness *harness = over_create(false, false, 10000, calls, 1);
    harness_open(harness);
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, i + 1, rows[i][0], INT64_MIN, rows[i][1], &watermark);
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
    EXPECT_SORTED(harness, "+I(1, 1, NULL, 1)", "+I(10, 1, NULL, 1)", "+I(11, 3, NULL, 1)",
                  "+I(12, 3, NULL, 2)", "+I(13, 9, NULL, 1)", "+I(14, 3, NULL, 3)",
                  "+I(15, 9, NULL, 2)", "+I(18, 9, NULL, 1)", "+I(19, 3, NULL, 1)",
                  "+I(2, 1, NULL, 2)", "+I(3, 2, NULL, 1)", "+I(6, 1, NULL, 1)",
                  "+I(7, 1, NULL, 2)", "+I(8, 2, NULL, 1)", "+I(9, 1, NULL, 1)");
    harness_destroy(harness);
}

#define BURST 20000

/* One card, one frame of 100 s. */
static struct harness *burst_create(bool on_arrival)
{
    static struct aggregate_call calls[2];
    calls[0] = count_call(NONE);
    calls[1] = int_call(AGGREGATE_SUM);
    struct harness *harness = over_create(false, false, 100000, calls, 2);
    harness->node.over.on_arrival = on_arrival;
    harness_open(harness);
    return harness;
}

/* Advances as the runtime does.
 * returns  how often the answer was AGAIN */
static uint32_t advance_counted(struct harness *harness, int64_t watermark_ms)
{
    uint32_t again = 0;
    enum operator_verdict verdict;
    do {
        verdict = harness->operator->ops->advance(harness->operator, watermark_ms);
        again += verdict == OPERATOR_AGAIN;
    } while (verdict == OPERATOR_AGAIN);
    assert_int_equal(OPERATOR_DONE, verdict);
    return again;
}

static void test_rows_go_in_steps_when_many_leave_at_once(void **context)
{
    struct harness *harness = burst_create(false);
    for (int64_t i = 1; i <= BURST; i++) {
        ROW(harness, i, v_int(i), v_int(7), v_int(1));
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, BURST));
    assert_int_equal(BURST, harness->line_count);
    harness_forget(harness);
    const uint64_t used = harness->context.arena->counters.pages_used;
    /* Before the key is forgotten at 150 s, and so that all leave. */
    ROW(harness, BURST + 100002, v_int(1), v_int(7), v_int(5));
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_in_range(advance_counted(harness, BURST + 100002), BURST / 4096, BURST / 4096 + 2);
    EXPECT(harness, "+I(1, 7, 5, 1, 5)");
    assert_true(harness->context.arena->counters.pages_used < used / 10); /* and their pages */
    harness_destroy(harness);
}

static void test_rows_on_arrival_go_in_steps_when_many_leave_at_once(void **context)
{
    struct harness *harness = burst_create(true);
    for (int64_t i = 1; i <= BURST; i++) {
        ROW(harness, i, v_int(i), v_int(7), v_int(1));
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, 2 * BURST));
    harness_forget(harness);
    const uint64_t used = harness->context.arena->counters.pages_used;
    ROW(harness, BURST, v_int(1), v_int(7), v_int(5)); /* done in the first call */
    ROW(harness, 10 * BURST, v_int(2), v_int(7), v_int(5));
    ROW(harness, 10 * BURST, v_int(3), v_int(7), v_int(5));
    uint32_t again = 0;
    while (harness->operator->ops->process(harness->operator, 0, harness->parcel) ==
           OPERATOR_AGAIN) {
        again++;
    }
    harness->parcel->row_count = 0;
    assert_in_range(again, BURST / 4096, BURST / 4096 + 2);
    EXPECT(harness, "+I(1, 7, 5, 20001, 20005)", "+I(2, 7, 5, 1, 5)", "+I(3, 7, 5, 2, 10)");
    assert_int_equal(BURST + 3, harness->counters[OPERATOR_ROWS_IN]);
    assert_true(harness->context.arena->counters.pages_used >
                used / 2); /* rows in time need them */
    harness_destroy(harness);
}

static void test_ties_are_taken_in_by_steps_when_there_are_many(void **context)
{
    struct harness *harness = burst_create(false);
    for (int64_t i = 1; i <= BURST; i++) {
        ROW(harness, 5, v_int(i), v_int(7), v_int(1));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_in_range(advance_counted(harness, 5), 2 * BURST / 4096, 2 * BURST / 4096 + 2);
    assert_int_equal(BURST, harness->line_count);
    assert_string_equal("+I(1, 7, 1, 20000, 20000)", harness->lines[0]);
    assert_string_equal("+I(20000, 7, 1, 20000, 20000)", harness->lines[BURST - 1]);
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_drops_when_behind_the_keys_last_fired_time),
        cmocka_unit_test(test_rows_drop_when_behind_the_keys_last_fired_time),
        cmocka_unit_test(test_unbounded_drops_when_at_the_watermark),
        cmocka_unit_test(test_unbounded_range_shares_the_frame_when_times_tie),
        cmocka_unit_test(test_unbounded_rows_see_only_those_before_when_times_tie),
        cmocka_unit_test(test_lag_looks_back_from_the_last_tie_when_times_tie),
        cmocka_unit_test(test_first_and_last_value_skip_null_when_frames_slide),
        cmocka_unit_test(test_bounded_frames_lose_rows_when_at_or_before_the_epoch),
        cmocka_unit_test(test_unbounded_frames_keep_rows_when_before_the_epoch),
        cmocka_unit_test(test_range_forgets_keys_when_the_clean_up_timer_fires),
        cmocka_unit_test(test_rows_go_in_steps_when_many_leave_at_once),
        cmocka_unit_test(test_rows_on_arrival_go_in_steps_when_many_leave_at_once),
        cmocka_unit_test(test_ties_are_taken_in_by_steps_when_there_are_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
