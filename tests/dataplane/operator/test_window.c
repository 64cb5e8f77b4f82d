/* SPDX-License-Identifier: Apache-2.0 */
/* Window aggregates: the answers of Flink's cases tumble-late, hop-late, cumulate-steps,
 * aggregated-windows-before-1970, cascaded-windows and of a question about offsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "state/arena.h"
#include "tests/dataplane/operator/harness.h"

#define NONE    AGGREGATE_COLUMN_NONE
#define ARENA   (UINT32_C(16) << 20)
#define HOUR    INT64_C(3600000)
#define MINUTE  INT64_C(60000)
#define AT_NOON INT64_C(1772366400000) /* 2026-03-01 12:00:00 */

static const uint32_t key_column[] = {0};
static const enum plan_window_column bounds[] = {PLAN_WINDOW_START, PLAN_WINDOW_END};

struct setup {
    struct plan_window_spec spec;
    const struct aggregate_call *calls;
    uint32_t call_count;
    bool keyed;
    bool cascaded;
    bool input_updates;
    bool keeps_before_epoch;
};

/* Columns: key STRING, value INT, and for cascaded input the window's end. */
static struct harness *window_create(const struct setup *setup)
{
    const struct type timestamp = type_of(TYPE_TIMESTAMP);
    const struct type input[3] = {type_of(TYPE_VARCHAR), type_of(TYPE_INT), timestamp};
    struct type output[HARNESS_COLUMNS_MAX] = {input[0]};
    uint32_t used = setup->keyed;
    for (uint32_t i = 0; i < setup->call_count; i++) {
        output[used++] = setup->calls[i].result_type;
    }
    output[used++] = timestamp;
    output[used++] = timestamp;
    struct harness *harness = harness_create(input, setup->cascaded ? 3 : 2, output, used, ARENA);
    harness->node.operator= PLAN_WINDOW;
    harness->node.window = (struct plan_window){
        .window = setup->spec,
        .key = {.columns = key_column, .count = setup->keyed},
        .calls = setup->calls,
        .call_count = setup->call_count,
        .columns = bounds,
        .column_count = 2,
        .window_end_column = setup->cascaded ? 2 : NONE,
        .input_updates = setup->input_updates,
        .keeps_before_epoch = setup->keeps_before_epoch,
    };
    harness_open(harness);
    return harness;
}

static struct aggregate_call count_all(void)
{
    return call_of(AGGREGATE_COUNT, NONE, type_of(TYPE_BIGINT), type_of(TYPE_BIGINT));
}

static struct aggregate_call sum_value(void)
{
    return call_of(AGGREGATE_SUM, 1, type_of(TYPE_INT), type_of(TYPE_INT));
}

static struct aggregate_call list_keys(void)
{
    return call_of(AGGREGATE_LISTAGG, 0, type_of(TYPE_VARCHAR), type_of(TYPE_VARCHAR));
}

/* A row, then the watermark that follows it by delay_ms. */
static void feed(struct harness *harness, const char *key, int64_t value, int64_t time_ms,
                 int64_t delay_ms, int64_t *watermark)
{
    ROW(harness, time_ms, v_text(key), v_int(value));
    *watermark = time_ms - delay_ms > *watermark ? time_ms - delay_ms : *watermark;
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, *watermark));
}

static void finish(struct harness *harness)
{
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
}

static void test_tumble_drops_rows_when_their_window_is_over(void **context)
{
    static const struct {
        const char *id;
        int64_t time_ms;
    } rows[] = {
        {"in-order", 9000},
        {"wm-one-ms-before-close", 14998},
        {"behind-watermark-open", 0},
        {"equal-to-watermark", 9998},
        {"wm-closes-first", 14999},
        {"late-last-ms", 9999},
        {"late-start", 0},
        {"next-window-start", 10000},
        {"jump", 60000},
        {"late-by-far", 19999},
        {"behind-open", 50000},
        {"equal-wm-open", 55000},
        {"just-closed", 49999},
        {"very-old", -840412800001},
    };
    const struct aggregate_call calls[] = {count_all(), list_keys()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = 10000, .slide_ms = 10000},
        .calls = calls,
        .call_count = 2,
    });
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, rows[i].id, 1, AT_NOON + rows[i].time_ms, 5000, &watermark);
    }
    finish(harness);
    assert_int_equal(AT_NOON + 9999, harness->times[0]);
    EXPECT(harness,
           "+I(3, 'in-order,behind-watermark-open,equal-to-watermark', 1772366400000, "
           "1772366410000)",
           "+I(3, 'wm-one-ms-before-close,wm-closes-first,next-window-start', 1772366410000, "
           "1772366420000)",
           "+I(2, 'behind-open,equal-wm-open', 1772366450000, 1772366460000)",
           "+I(1, 'jump', 1772366460000, 1772366470000)");
    assert_int_equal(5, harness->counters[OPERATOR_LATE_ROWS]);
    harness_destroy(harness);
}

/* 08:00 of the case hop-late is AT_NOON here. */
static void test_hop_counts_late_rows_when_later_windows_are_open(void **context)
{
    static const struct {
        const char *user;
        int64_t time_ms;
    } rows[] = {
        {"ann", 0},       {"bob", 299999},  {"ann", 300000},  {"cyd", 899998},  {"bob", 180000},
        {"dan", 900000},  {"eve", 240000},  {"eve", 599999},  {"fay", 1860000}, {"gus", 900000},
        {"gus", 1199999}, {"hal", 1200000}, {"hal", 1859000},
    };
    struct aggregate_call calls[] = {
        count_all(), call_of(AGGREGATE_COUNT, 0, type_of(TYPE_VARCHAR), type_of(TYPE_BIGINT))};
    calls[1].distinct = true;
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_HOP, .size_ms = 15 * MINUTE, .slide_ms = 5 * MINUTE},
        .calls = calls,
        .call_count = 2,
    });
    harness_room(harness, 1);
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, rows[i].user, 1, AT_NOON + rows[i].time_ms, 0, &watermark);
    }
    finish(harness);
    EXPECT(harness, "+I(2, 2, 1772365800000, 1772366700000)",
           "+I(3, 2, 1772366100000, 1772367000000)", "+I(5, 3, 1772366400000, 1772367300000)",
           "+I(4, 4, 1772366700000, 1772367600000)", "+I(2, 2, 1772367000000, 1772367900000)",
           "+I(1, 1, 1772367300000, 1772368200000)", "+I(3, 2, 1772367600000, 1772368500000)",
           "+I(2, 2, 1772367900000, 1772368800000)", "+I(2, 2, 1772368200000, 1772369100000)");
    harness_destroy(harness);
}

static void test_hop_merges_newest_first_when_windows_have_an_offset(void **context)
{
    static const int64_t times[] = {1000,  6000,  9999,  12000, 13000, 14999,
                                    16000, 17000, 19999, 22000, 25000, 40000};
    static const char *const ids[] = {"1", "2", "3", "4",  "5",  "6",
                                      "7", "8", "9", "10", "11", "12"};
    const struct aggregate_call calls[] = {list_keys()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_HOP, .size_ms = 20000, .slide_ms = 10000, .offset_ms = 5000},
        .calls = calls,
        .call_count = 1,
    });
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        feed(harness, ids[i], 1, AT_NOON + times[i], 0, &watermark);
    }
    finish(harness);
    EXPECT(harness, "+I('1', 1772366385000, 1772366405000)",
           "+I('2,3,4,5,6,1', 1772366395000, 1772366415000)",
           "+I('7,8,9,10,2,3,4,5,6', 1772366405000, 1772366425000)",
           "+I('11,7,8,9,10', 1772366415000, 1772366435000)",
           "+I('12,11', 1772366425000, 1772366445000)", "+I('12', 1772366435000, 1772366455000)");
    harness_destroy(harness);
}

static void test_cumulate_repeats_values_when_a_step_brings_nothing_new(void **context)
{
    static const struct {
        const char *shop;
        int64_t value;
        int64_t time_ms;
    } rows[] = {
        {"oslo", 1, 0},
        {"rome", 2, 6 * HOUR - 1},
        {"oslo", 4, 6 * HOUR},
        {"oslo", 8, 13 * HOUR + 30 * MINUTE},
        {"lima", 16, 18 * HOUR},
        {"oslo", 32, 24 * HOUR - 1},
        {"rome", 64, 24 * HOUR},
        {"oslo", 128, 36 * HOUR},
        {"oslo", 256, 36 * HOUR - 500},
    };
    const struct aggregate_call calls[] = {count_all(), sum_value()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_CUMULATE, .size_ms = 24 * HOUR, .slide_ms = 6 * HOUR},
        .calls = calls,
        .call_count = 2,
        .keyed = true,
    });
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        feed(harness, rows[i].shop, rows[i].value, rows[i].time_ms, 1000, &watermark);
    }
    finish(harness);
    EXPECT_SORTED(
        harness, "+I('lima', 1, 16, 0, 86400000)", "+I('oslo', 1, 1, 0, 21600000)",
        "+I('oslo', 2, 5, 0, 43200000)", "+I('oslo', 3, 13, 0, 64800000)",
        "+I('oslo', 4, 45, 0, 86400000)", "+I('oslo', 1, 256, 86400000, 129600000)",
        "+I('oslo', 2, 384, 86400000, 151200000)", "+I('oslo', 2, 384, 86400000, 172800000)",
        "+I('rome', 1, 2, 0, 21600000)", "+I('rome', 1, 2, 0, 43200000)",
        "+I('rome', 1, 2, 0, 64800000)", "+I('rome', 1, 2, 0, 86400000)",
        "+I('rome', 1, 64, 86400000, 108000000)", "+I('rome', 1, 64, 86400000, 129600000)",
        "+I('rome', 1, 64, 86400000, 151200000)", "+I('rome', 1, 64, 86400000, 172800000)");
    harness_destroy(harness);
}

static void feed_before_1970(struct harness *harness)
{
    static const int64_t times[] = {
        -2208988800000, -HOUR - 1, -HOUR, -30 * MINUTE - 1, -30 * MINUTE, -1, 0, HOUR - 1, HOUR};
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        feed(harness, "k", INT64_C(1) << i, times[i], 1000, &watermark);
    }
    finish(harness);
}

static void test_windows_are_lost_when_they_end_before_1970(void **context)
{
    const struct aggregate_call calls[] = {count_all(), sum_value()};
    struct setup setup = {
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = HOUR, .slide_ms = HOUR},
        .calls = calls,
        .call_count = 2,
    };
    struct harness *harness = window_create(&setup);
    feed_before_1970(harness);
    EXPECT(harness, "+I(4, 60, -3600000, 0)", "+I(2, 192, 0, 3600000)",
           "+I(1, 256, 3600000, 7200000)");
    harness_destroy(harness);

    setup.spec.kind = PLAN_WINDOW_HOP;
    setup.spec.slide_ms = 30 * MINUTE;
    harness = window_create(&setup);
    feed_before_1970(harness);
    EXPECT(harness, "+I(4, 60, -3600000, 0)", "+I(3, 112, -1800000, 1800000)",
           "+I(2, 192, 0, 3600000)", "+I(2, 384, 1800000, 5400000)",
           "+I(1, 256, 3600000, 7200000)");
    harness_destroy(harness);

    setup.spec.kind = PLAN_WINDOW_CUMULATE;
    harness = window_create(&setup);
    feed_before_1970(harness);
    EXPECT(harness, "+I(4, 60, -3600000, 0)", "+I(1, 64, 0, 1800000)", "+I(2, 192, 0, 3600000)",
           "+I(1, 256, 3600000, 5400000)", "+I(1, 256, 3600000, 7200000)");
    harness_destroy(harness);
}

static void test_windows_before_1970_come_out_when_the_plan_keeps_them(void **context)
{
    const struct aggregate_call calls[] = {count_all(), sum_value()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = HOUR, .slide_ms = HOUR},
        .calls = calls,
        .call_count = 2,
        .keeps_before_epoch = true,
    });
    feed_before_1970(harness);
    EXPECT(harness, "+I(1, 1, -2208988800000, -2208985200000)", "+I(1, 2, -7200000, -3600000)",
           "+I(4, 60, -3600000, 0)", "+I(2, 192, 0, 3600000)", "+I(1, 256, 3600000, 7200000)");
    harness_destroy(harness);
}

/* GROUP BY HOP(...) takes a size that is no multiple of the slide, and a slide above the size. */
static void test_hop_counts_every_window_when_the_size_is_no_multiple(void **context)
{
    const struct aggregate_call calls[] = {count_all(), sum_value()};
    struct setup setup = {
        .spec = {.kind = PLAN_WINDOW_HOP, .size_ms = 25, .slide_ms = 10},
        .calls = calls,
        .call_count = 2,
    };
    struct harness *harness = window_create(&setup);
    ROW(harness, 23, v_text("a"), v_int(1));
    ROW(harness, 27, v_text("a"), v_int(2));
    ROW(harness, 44, v_text("a"), v_int(4));
    finish(harness);
    EXPECT(harness, "+I(1, 1, 0, 25)", "+I(2, 3, 10, 35)", "+I(3, 7, 20, 45)", "+I(1, 4, 30, 55)",
           "+I(1, 4, 40, 65)");
    harness_destroy(harness);
    setup.spec = (struct plan_window_spec){.kind = PLAN_WINDOW_HOP, .size_ms = 4, .slide_ms = 10};
    harness = window_create(&setup);
    ROW(harness, 13, v_text("a"), v_int(1));
    ROW(harness, 14, v_text("a"), v_int(2)); /* between windows */
    finish(harness);
    EXPECT(harness, "+I(1, 1, 10, 14)");
    harness_destroy(harness);
}

static void test_cascaded_rows_count_when_the_window_they_bring_is_open(void **context)
{
    const struct aggregate_call calls[] = {count_all(), sum_value()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_CUMULATE, .size_ms = 10 * MINUTE, .slide_ms = 2 * MINUTE},
        .calls = calls,
        .call_count = 2,
        .cascaded = true,
    });
    ROW(harness, 0, v_text("a"), v_int(1), v_time(2 * MINUTE));
    ROW(harness, 0, v_text("b"), v_int(2), v_time(4 * MINUTE));
    ROW(harness, 0, v_text("c"), v_int(4), v_time(4 * MINUTE));
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, 2 * MINUTE - 1));
    EXPECT(harness, "+I(1, 1, 0, 120000)");
    ROW(harness, 0, v_text("late"), v_int(8), v_time(2 * MINUTE));
    ROW(harness, 0, v_text("d"), v_int(16), v_time(12 * MINUTE));
    finish(harness);
    EXPECT(harness, "+I(2, 6, 0, 240000)", "+I(1, 16, 600000, 720000)");
    assert_int_equal(1, harness->counters[OPERATOR_LATE_ROWS]);
    harness_destroy(harness);
}

static void test_windows_are_not_sent_when_their_rows_were_taken_back(void **context)
{
    const struct aggregate_call calls[] = {
        count_all(), sum_value(), call_of(AGGREGATE_MAX, 1, type_of(TYPE_INT), type_of(TYPE_INT))};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = 1000, .slide_ms = 1000},
        .calls = calls,
        .call_count = 3,
        .keyed = true,
        .input_updates = true,
    });
    ROW(harness, 5, v_text("a"), v_int(1));
    ROW(harness, 6, v_text("b"), v_int(9));
    ROW(harness, 7, v_text("b"), v_int(3));
    harness_row(harness, ROW_DELETE, 5, (const struct value[]){v_text("a"), v_int(1)});
    harness_row(harness, ROW_UPDATE_BEFORE, 6, (const struct value[]){v_text("b"), v_int(9)});
    finish(harness);
    EXPECT(harness, "+I('b', 1, 3, 3, 0, 1000)");
    harness_destroy(harness);
}

static void test_the_job_fails_when_a_row_has_no_time(void **context)
{
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = 1000, .slide_ms = 1000},
        .calls = calls,
        .call_count = 1,
    });
    ROW(harness, ROW_TIME_NONE, v_text("a"), v_int(1));
    assert_int_equal(OPERATOR_FAILED, harness_process(harness));
    assert_string_equal("RowTime field should not be null, please convert it to a non-null long "
                        "value.",
                        harness->context.failure.text);
    harness_destroy(harness);
}

/* Kolkata is half an hour off: hourly windows begin at half past, UTC. In Berlin the hour from
 * 02:00 on 2026-03-29 is skipped and the one on 2026-10-25 comes twice. */
static void test_windows_follow_the_wall_clock_when_the_zone_has_one(void **context)
{
    const struct aggregate_call calls[] = {count_all()};
    struct setup setup = {
        .spec = {.kind = PLAN_WINDOW_TUMBLE,
                 .size_ms = HOUR,
                 .slide_ms = HOUR,
                 .local_clock = true,
                 .time_zone = "Asia/Kolkata"},
        .calls = calls,
        .call_count = 1,
    };
    struct harness *harness = window_create(&setup);
    ROW(harness, AT_NOON, v_text("a"), v_int(1));
    ROW(harness, AT_NOON + 30 * MINUTE, v_text("a"), v_int(1));
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, AT_NOON + 30 * MINUTE - 1));
    assert_int_equal(AT_NOON + 30 * MINUTE - 1, harness->times[0]);
    EXPECT(harness, "+I(1, 1772384400000, 1772388000000)"); /* 17:00 to 18:00 local */
    harness_destroy(harness);

    setup.spec.time_zone = "Europe/Berlin";
    harness = window_create(&setup);
    const int64_t spring = INT64_C(1774746000000); /* 2026-03-29 01:00 UTC, the jump */
    ROW(harness, spring - 1, v_text("a"), v_int(1));
    ROW(harness, spring, v_text("a"), v_int(1));
    const int64_t autumn = INT64_C(1792886400000); /* 2026-10-25 00:00 UTC, 02:00 local */
    ROW(harness, autumn, v_text("a"), v_int(1));
    ROW(harness, autumn + HOUR, v_text("a"), v_int(1)); /* 02:00 local again */
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, autumn + HOUR + MINUTE));
    EXPECT(harness, "+I(1, 1774746000000, 1774749600000)", "+I(1, 1774753200000, 1774756800000)");
    ROW(harness, autumn + 2 * HOUR - 1, v_text("a"), v_int(1));
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, autumn + 2 * HOUR - 1));
    EXPECT(harness, "+I(3, 1792893600000, 1792897200000)");
    harness_destroy(harness);
}

/* The case watermark-epoch-column: the first phase hands on at midnight UTC, so a row that comes
 * behind it waits there while its window fires at midnight in Kolkata. */
static void test_rows_are_lost_when_the_first_phase_holds_them_in_a_shifted_zone(void **context)
{
    static const int64_t times[] = {1767205799999, 1767205800000, 1767292199999,
                                    1767292200000, 1767292195500, 0,
                                    1767295800000};
    static const char *const ids[] = {"1", "2", "3", "4", "5", "6", "7"};
    const struct aggregate_call calls[] = {list_keys()};
    struct setup setup = {
        .spec = {.kind = PLAN_WINDOW_TUMBLE,
                 .size_ms = 24 * HOUR,
                 .slide_ms = 24 * HOUR,
                 .local_clock = true,
                 .time_zone = "Asia/Kolkata"},
        .calls = calls,
        .call_count = 1,
    };
    struct harness *harness = window_create(&setup);
    int64_t watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        feed(harness, ids[i], 1, times[i], 5000, &watermark);
    }
    finish(harness);
    EXPECT(harness, "+I('1', 1767139200000, 1767225600000)",
           "+I('2,3', 1767225600000, 1767312000000)", "+I('4,7', 1767312000000, 1767398400000)");
    assert_int_equal(2, harness->counters[OPERATOR_LATE_ROWS]);
    harness_destroy(harness);
    setup.keeps_before_epoch = true;
    harness = window_create(&setup);
    watermark = INT64_MIN;
    for (uint32_t i = 0; i < COUNT_OF(times); i++) {
        feed(harness, ids[i], 1, times[i], 5000, &watermark);
    }
    finish(harness);
    EXPECT(harness, "+I('1', 1767139200000, 1767225600000)",
           "+I('2,3,5', 1767225600000, 1767312000000)", "+I('4,7', 1767312000000, 1767398400000)");
    harness_destroy(harness);
}

static uint32_t advance_counted(struct harness *harness, int64_t watermark_ms)
{
    uint32_t again = 0;
    while (harness->operator->ops->advance(harness->operator, watermark_ms) == OPERATOR_AGAIN) {
        again++;
    }
    return again;
}

/* Windows of which every row was taken back put nothing out, so the output does not bound them. */
static void test_empty_windows_fire_in_steps_when_there_are_many(void **context)
{
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE, .size_ms = 1000, .slide_ms = 1000},
        .calls = calls,
        .call_count = 1,
        .keyed = true,
        .input_updates = true,
    });
    char key[16];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key %d", i);
        ROW(harness, 5, v_text(key), v_int(1));
        harness_row(harness, ROW_DELETE, 5, (const struct value[]){v_text(key), v_int(1)});
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_in_range(advance_counted(harness, 1000), 4, 5);
    assert_int_equal(0, harness->line_count);
    harness_destroy(harness);
}

static void test_the_first_phase_hands_on_in_steps_when_it_holds_much(void **context)
{
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = window_create(&(struct setup){
        .spec = {.kind = PLAN_WINDOW_TUMBLE,
                 .size_ms = HOUR,
                 .slide_ms = HOUR,
                 .local_clock = true,
                 .time_zone = "Asia/Kolkata"},
        .calls = calls,
        .call_count = 1,
        .keyed = true,
    });
    char key[16];
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof(key), "key %d", i);
        ROW(harness, HOUR + 5, v_text(key), v_int(1));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_true(advance_counted(harness, 3 * HOUR) > 10);
    assert_int_equal(20000, harness->line_count);
    assert_true(harness->context.arena->counters.pages_used < 100);
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tumble_drops_rows_when_their_window_is_over),
        cmocka_unit_test(test_hop_counts_late_rows_when_later_windows_are_open),
        cmocka_unit_test(test_hop_merges_newest_first_when_windows_have_an_offset),
        cmocka_unit_test(test_cumulate_repeats_values_when_a_step_brings_nothing_new),
        cmocka_unit_test(test_windows_are_lost_when_they_end_before_1970),
        cmocka_unit_test(test_windows_before_1970_come_out_when_the_plan_keeps_them),
        cmocka_unit_test(test_hop_counts_every_window_when_the_size_is_no_multiple),
        cmocka_unit_test(test_cascaded_rows_count_when_the_window_they_bring_is_open),
        cmocka_unit_test(test_windows_are_not_sent_when_their_rows_were_taken_back),
        cmocka_unit_test(test_the_job_fails_when_a_row_has_no_time),
        cmocka_unit_test(test_rows_are_lost_when_the_first_phase_holds_them_in_a_shifted_zone),
        cmocka_unit_test(test_windows_follow_the_wall_clock_when_the_zone_has_one),
        cmocka_unit_test(test_empty_windows_fire_in_steps_when_there_are_many),
        cmocka_unit_test(test_the_first_phase_hands_on_in_steps_when_it_holds_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
