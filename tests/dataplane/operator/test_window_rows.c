/* SPDX-License-Identifier: Apache-2.0 */
/* Window table functions without aggregate, after the cases windows-before-1970 and
 * hop-not-a-multiple. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/dataplane/operator/harness.h"

#define ARENA (UINT32_C(4) << 20)

/* Columns: name STRING, value INT; then the window. */
static struct harness *rows_create(struct plan_window_spec spec)
{
    const struct type timestamp = type_of(TYPE_TIMESTAMP);
    const struct type input[2] = {type_of(TYPE_VARCHAR), type_of(TYPE_INT)};
    const struct type output[5] = {input[0], input[1], timestamp, timestamp, timestamp};
    struct harness *harness = harness_create(input, 2, output, 5, ARENA);
    harness->node.operator= PLAN_WINDOW_ROWS;
    harness->node.window = (struct plan_window){.window = spec};
    harness_open(harness);
    return harness;
}

static void test_tumble_floors_when_times_are_before_1970(void **context)
{
    struct harness *harness = rows_create(
        (struct plan_window_spec){.kind = PLAN_WINDOW_TUMBLE, .size_ms = 10000, .slide_ms = 10000});
    ROW(harness, -5000, v_text("a"), v_int(1));
    ROW(harness, 0, v_null(), v_null());
    ROW(harness, 9999, v_text(""), v_int(3));
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_int_equal(-1, harness->times[0]);
    EXPECT(harness, "+I('a', 1, -10000, 0, -1)", "+I(NULL, NULL, 0, 10000, 9999)",
           "+I('', 3, 0, 10000, 9999)");
    harness_destroy(harness);
}

static void test_hop_gives_every_window_when_the_size_is_no_multiple(void **context)
{
    struct harness *harness = rows_create((struct plan_window_spec){
        .kind = PLAN_WINDOW_HOP, .size_ms = 25, .slide_ms = 10, .offset_ms = 3});
    harness_room(harness, 1);
    ROW(harness, 23, v_text("a"), v_int(1));
    ROW(harness, 30, v_text("b"), v_int(2));
    EXPECT(harness, "+I('a', 1, 23, 48, 47)", "+I('a', 1, 13, 38, 37)", "+I('a', 1, 3, 28, 27)",
           "+I('b', 2, 23, 48, 47)", "+I('b', 2, 13, 38, 37)");
    harness_destroy(harness);
}

static void test_cumulate_gives_the_steps_that_hold_the_row_when_it_comes(void **context)
{
    struct harness *harness = rows_create(
        (struct plan_window_spec){.kind = PLAN_WINDOW_CUMULATE, .size_ms = 30, .slide_ms = 10});
    ROW(harness, 15, v_text("a"), v_int(1));
    ROW(harness, -1, v_text("b"), v_int(2));
    EXPECT(harness, "+I('a', 1, 0, 20, 19)", "+I('a', 1, 0, 30, 29)", "+I('b', 2, -30, 0, -1)");
    harness_destroy(harness);
}

static void test_rows_are_dropped_and_counted_when_they_have_no_time(void **context)
{
    struct harness *harness = rows_create(
        (struct plan_window_spec){.kind = PLAN_WINDOW_TUMBLE, .size_ms = 10, .slide_ms = 10});
    ROW(harness, ROW_TIME_NONE, v_text("a"), v_int(1));
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_int_equal(0, harness->line_count);
    assert_int_equal(1, harness->counters[OPERATOR_NULL_TIME_DROPPED]);
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tumble_floors_when_times_are_before_1970),
        cmocka_unit_test(test_hop_gives_every_window_when_the_size_is_no_multiple),
        cmocka_unit_test(test_cumulate_gives_the_steps_that_hold_the_row_when_it_comes),
        cmocka_unit_test(test_rows_are_dropped_and_counted_when_they_have_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
