/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP BY: the changelog of groups, and the arithmetic of the aggregate functions as the cases
 * sum-types, decimal-precision, not-a-number-and-infinity, listagg and variance have it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/operator/harness.h"
#include "state/arena.h"

#define NONE  AGGREGATE_COLUMN_NONE
#define ARENA (UINT32_C(16) << 20)

static const uint32_t key_column[] = {0};

/* Columns: key STRING, a value of one type. */
static struct harness *group_create(struct type value, const struct aggregate_call *calls,
                                    uint32_t call_count)
{
    struct type input[2] = {type_of(TYPE_VARCHAR), value};
    struct type output[HARNESS_COLUMNS_MAX] = {input[0]};
    for (uint32_t i = 0; i < call_count; i++) {
        output[1 + i] = calls[i].result_type;
    }
    struct harness *harness = harness_create(input, 2, output, 1 + call_count, ARENA);
    harness->node.operator= PLAN_GROUP;
    harness->node.group = (struct plan_group){
        .key = {.columns = key_column, .count = 1},
        .calls = calls,
        .call_count = call_count,
        .send_update_before = true,
    };
    return harness;
}

static struct aggregate_call simple(enum aggregate_function function, struct type type)
{
    return call_of(function, 1, type, type);
}

static struct aggregate_call count_all(void)
{
    return call_of(AGGREGATE_COUNT, NONE, type_of(TYPE_BIGINT), type_of(TYPE_BIGINT));
}

static void test_changes_go_out_when_a_result_changes(void **context)
{
    const struct type type = type_of(TYPE_INT);
    const struct aggregate_call calls[] = {simple(AGGREGATE_MAX, type)};
    struct harness *harness = group_create(type, calls, 1);
    harness_open(harness);
    ROW(harness, 0, v_text("a"), v_int(5));
    ROW(harness, 0, v_text("a"), v_int(3));
    ROW(harness, 0, v_text("b"), v_null());
    ROW(harness, 0, v_null(), v_int(1));
    ROW(harness, 0, v_text(""), v_int(2));
    ROW(harness, 0, v_text("a"), v_int(9));
    EXPECT(harness, "+I('a', 5)", "+I('b', NULL)", "+I(NULL, 1)", "+I('', 2)", "-U('a', 5)",
           "+U('a', 9)");
    harness_destroy(harness);
}

static void test_no_update_before_goes_out_when_nobody_wants_it(void **context)
{
    const struct type type = type_of(TYPE_INT);
    const struct aggregate_call calls[] = {count_all(), simple(AGGREGATE_SUM, type)};
    struct harness *harness = group_create(type, calls, 2);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    ROW(harness, 0, v_text("a"), v_int(5));
    ROW(harness, 0, v_text("a"), v_int(-5));
    EXPECT(harness, "+I('a', 1, 5)", "+U('a', 2, 0)");
    harness_destroy(harness);
}

static void retract(struct harness *harness, enum row_kind kind, const char *key, int64_t value)
{
    harness_row(harness, kind, 0, (const struct value[]){v_text(key), v_int(value)});
}

static void test_groups_are_deleted_when_their_last_row_is_taken_back(void **context)
{
    const struct type type = type_of(TYPE_INT);
    const struct aggregate_call calls[] = {
        count_all(), simple(AGGREGATE_SUM, type), simple(AGGREGATE_MAX, type),
        simple(AGGREGATE_FIRST_VALUE, type), simple(AGGREGATE_LAST_VALUE, type)};
    struct harness *harness = group_create(type, calls, 5);
    harness->node.group.input_updates = true;
    harness_open(harness);
    retract(harness, ROW_DELETE, "a", 1); /* of an unknown group: nothing */
    retract(harness, ROW_INSERT, "a", 5);
    retract(harness, ROW_INSERT, "a", 7);
    retract(harness, ROW_UPDATE_BEFORE, "a", 7);
    retract(harness, ROW_UPDATE_AFTER, "a", 2);
    retract(harness, ROW_DELETE, "a", 5);
    retract(harness, ROW_DELETE, "a", 2);
    retract(harness, ROW_INSERT, "a", 4);
    EXPECT(harness, "+I('a', 1, 5, 5, 5, 5)", "-U('a', 1, 5, 5, 5, 5)", "+U('a', 2, 12, 7, 5, 7)",
           "-U('a', 2, 12, 7, 5, 7)", "+U('a', 1, 5, 5, 5, 5)", "-U('a', 1, 5, 5, 5, 5)",
           "+U('a', 2, 7, 5, 5, 2)", "-U('a', 2, 7, 5, 5, 2)", "+U('a', 1, 2, 2, 2, 2)",
           "-D('a', 1, 2, 2, 2, 2)", "+I('a', 1, 4, 4, 4, 4)");
    harness_destroy(harness);
}

static void test_the_global_group_is_deleted_when_its_last_row_is_taken_back(void **context)
{
    const struct type input[1] = {type_of(TYPE_INT)};
    const struct type output[1] = {type_of(TYPE_BIGINT)};
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = harness_create(input, 1, output, 1, ARENA);
    harness->node.operator= PLAN_GROUP;
    harness->node.group = (struct plan_group){
        .calls = calls,
        .call_count = 1,
        .input_updates = true,
    };
    harness_open(harness);
    ROW(harness, 0, v_int(1));
    harness_row(harness, ROW_DELETE, 0, (const struct value[]){v_int(1)});
    EXPECT(harness, "+I(1)", "-D(1)");
    harness_destroy(harness);
}

static void integer_sums(enum type_kind kind, const int64_t *values, uint32_t count,
                         const char *const *lines)
{
    const struct type type = type_of(kind);
    const struct aggregate_call calls[] = {simple(AGGREGATE_SUM, type),
                                           simple(AGGREGATE_AVG, type)};
    struct harness *harness = group_create(type, calls, 2);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    for (uint32_t i = 0; i < count; i++) {
        ROW(harness, 0, v_text("k"), v_int(values[i]));
    }
    harness_expect(harness, lines, count);
    harness_destroy(harness);
}

static void test_integer_sums_wrap_when_they_overflow(void **context)
{
    integer_sums(
        TYPE_TINYINT, (const int64_t[]){127, 1, 1}, 3,
        (const char *const[]){"+I('k', 127, 127)", "+U('k', -128, 64)", "+U('k', -127, 43)"});
    integer_sums(TYPE_INT, (const int64_t[]){INT32_MAX, 1, -4}, 3,
                 (const char *const[]){"+I('k', 2147483647, 2147483647)",
                                       "+U('k', -2147483648, 1073741824)",
                                       "+U('k', 2147483644, 715827881)"});
    integer_sums(TYPE_BIGINT, (const int64_t[]){INT64_MAX, 1, -1}, 3,
                 (const char *const[]){"+I('k', 9223372036854775807, 9223372036854775807)",
                                       "+U('k', -9223372036854775808, -4611686018427387904)",
                                       "+U('k', 9223372036854775807, 3074457345618258602)"});
    integer_sums(TYPE_INT, (const int64_t[]){-1, -2}, 2,
                 (const char *const[]){"+I('k', -1, -1)", "+U('k', -3, -1)"});
}

/* 38 nines and one more than fits: NULL, then the sum starts afresh and the average stays NULL. */
static void test_decimal_sum_restarts_when_it_has_overflowed(void **context)
{
    const struct type type = type_decimal(38, 0);
    const struct aggregate_call calls[] = {simple(AGGREGATE_SUM, type),
                                           call_of(AGGREGATE_AVG, 1, type, type_decimal(38, 6))};
    struct harness *harness = group_create(type, calls, 2);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    __int128 nines = 0;
    for (int i = 0; i < 38; i++) {
        nines = nines * 10 + 9;
    }
    ROW(harness, 0, v_text("k"), (struct value){.i128 = nines});
    ROW(harness, 0, v_text("k"), v_wide(1));
    ROW(harness, 0, v_text("k"), v_wide(25));
    ROW(harness, 0, v_text("k"), v_wide(-30));
    EXPECT(harness, "+I('k', 99999999999999999999999999999999999999, NULL)", "+U('k', NULL, NULL)",
           "+U('k', 25, NULL)", "+U('k', -5, NULL)");
    harness_destroy(harness);
}

static void test_decimal_average_rounds_half_up_when_it_does_not_divide(void **context)
{
    const struct type type = type_decimal(10, 2);
    const struct aggregate_call calls[] = {call_of(AGGREGATE_SUM, 1, type, type_decimal(38, 2)),
                                           call_of(AGGREGATE_AVG, 1, type, type_decimal(38, 6)),
                                           simple(AGGREGATE_MIN, type)};
    struct harness *harness = group_create(type, calls, 3);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    ROW(harness, 0, v_text("k"), v_int(100));
    ROW(harness, 0, v_text("k"), v_int(100));
    ROW(harness, 0, v_text("k"), v_null());
    ROW(harness, 0, v_text("k"), v_int(0));
    ROW(harness, 0, v_text("k"), v_int(-400));
    ROW(harness, 0, v_text("m"), v_int(-100));
    ROW(harness, 0, v_text("m"), v_int(-100));
    ROW(harness, 0, v_text("m"), v_int(0));
    EXPECT(harness, "+I('k', 1.00, 1.000000, 1.00)", "+U('k', 2.00, 1.000000, 1.00)",
           "+U('k', 2.00, 0.666667, 0.00)", "+U('k', -2.00, -0.500000, -4.00)",
           "+I('m', -1.00, -1.000000, -1.00)", "+U('m', -2.00, -1.000000, -1.00)",
           "+U('m', -2.00, -0.666667, -1.00)");
    harness_destroy(harness);
}

static void test_double_extremes_compare_plainly_when_input_only_grows(void **context)
{
    const struct type type = type_of(TYPE_DOUBLE);
    struct aggregate_call calls[] = {simple(AGGREGATE_MIN, type), simple(AGGREGATE_MAX, type),
                                     call_of(AGGREGATE_COUNT, 1, type, type_of(TYPE_BIGINT))};
    calls[2].distinct = true;
    struct harness *harness = group_create(type, calls, 3);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    ROW(harness, 0, v_text("nan"), v_double(NAN));
    ROW(harness, 0, v_text("nan"), v_double(1));
    ROW(harness, 0, v_text("zero"), v_double(0.0));
    ROW(harness, 0, v_text("zero"), v_double(-0.0));
    ROW(harness, 0, v_text("zero"), v_double(NAN));
    ROW(harness, 0, v_text("zero"), v_double(-NAN));
    EXPECT(harness, "+I('nan', nan, nan, 1)", "+U('nan', nan, nan, 2)", "+I('zero', 0, 0, 1)",
           "+U('zero', 0, 0, 2)", "+U('zero', 0, 0, 3)");
    harness_destroy(harness);
}

static void test_double_extremes_follow_compare_when_input_retracts(void **context)
{
    const struct type type = type_of(TYPE_DOUBLE);
    const struct aggregate_call calls[] = {simple(AGGREGATE_MIN, type),
                                           simple(AGGREGATE_MAX, type)};
    struct harness *harness = group_create(type, calls, 2);
    harness->node.group.send_update_before = false;
    harness->node.group.input_updates = true;
    harness_open(harness);
    ROW(harness, 0, v_text("k"), v_double(1.5));
    ROW(harness, 0, v_text("k"), v_double(-INFINITY));
    ROW(harness, 0, v_text("k"), v_double(NAN));
    harness_row(harness, ROW_DELETE, 0, (const struct value[]){v_text("k"), v_double(NAN)});
    harness_row(harness, ROW_DELETE, 0, (const struct value[]){v_text("k"), v_double(-INFINITY)});
    EXPECT(harness, "+I('k', 1.5, 1.5)", "+U('k', -inf, 1.5)", "+U('k', -inf, nan)",
           "+U('k', -inf, 1.5)", "+U('k', 1.5, 1.5)");
    harness_destroy(harness);
}

static void test_float_sums_stay_float_when_they_lose_digits(void **context)
{
    const struct type type = type_of(TYPE_FLOAT);
    const struct aggregate_call calls[] = {count_all(), simple(AGGREGATE_SUM, type),
                                           simple(AGGREGATE_AVG, type)};
    struct harness *harness = group_create(type, calls, 3);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    ROW(harness, 0, v_text("k"), v_float(16777216));
    ROW(harness, 0, v_text("k"), v_float(1));
    ROW(harness, 0, v_text("k"), v_float(1));
    EXPECT(harness, "+I('k', 1, 16777216, 16777216)", "+U('k', 2, 16777216, 8388608)",
           "+U('k', 3, 16777216, 5592406)");
    harness_destroy(harness);
}

static void test_variances_follow_welford_when_values_are_large(void **context)
{
    const struct type type = type_of(TYPE_DOUBLE);
    const struct aggregate_call calls[] = {
        simple(AGGREGATE_VAR_POP, type), simple(AGGREGATE_VAR_SAMP, type),
        simple(AGGREGATE_STDDEV_POP, type), simple(AGGREGATE_STDDEV_SAMP, type)};
    struct harness *harness = group_create(type, calls, 4);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    for (int i = 0; i < 4; i++) {
        ROW(harness, 0, v_text("big"), v_double(1e9 + i + 0.1));
    }
    for (int i = 0; i < 6; i++) {
        ROW(harness, 0, v_text("mix"), v_double(i * 0.3 + 1.0 / 3));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_string_equal("+I('big', 0, NULL, 0, NULL)", harness->lines[0]);
    assert_string_equal(
        "+U('big', 1.25, 1.6666666666666667, 1.118033988749895, 1.2909944487358056)",
        harness->lines[3]);
    assert_string_equal("+U('mix', 0.2625, 0.315, 0.51234753829798, 0.5612486080160912)",
                        harness->lines[9]);
    harness_destroy(harness);
}

static void test_integer_variances_are_cut_when_they_are_not_whole(void **context)
{
    const struct type type = type_of(TYPE_INT);
    const struct aggregate_call calls[] = {
        simple(AGGREGATE_STDDEV_POP, type), simple(AGGREGATE_STDDEV_SAMP, type),
        simple(AGGREGATE_VAR_POP, type), simple(AGGREGATE_VAR_SAMP, type)};
    static const int64_t values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    struct harness *harness = group_create(type, calls, 4);
    harness_open(harness);
    for (uint32_t i = 0; i < COUNT_OF(values); i++) {
        ROW(harness, 0, v_text("a"), v_int(values[i]));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_string_equal("+U('a', 2, 2, 4, 4)", harness->lines[harness->line_count - 1]);
    harness_destroy(harness);
}

static void test_listagg_keeps_order_when_values_repeat(void **context)
{
    const struct type type = type_of(TYPE_VARCHAR);
    struct aggregate_call calls[] = {simple(AGGREGATE_LISTAGG, type),
                                     simple(AGGREGATE_LISTAGG, type), simple(AGGREGATE_MAX, type)};
    calls[1].distinct = true;
    calls[1].separator = (struct span){.data = (const uint8_t *)" | ", .bytes = 3};
    struct harness *harness = group_create(type, calls, 3);
    harness->node.group.send_update_before = false;
    harness_open(harness);
    ROW(harness, 0, v_text("k"), v_null());
    ROW(harness, 0, v_text("k"), v_text("b"));
    ROW(harness, 0, v_text("k"), v_text("a"));
    ROW(harness, 0, v_text("k"), v_text("b"));
    ROW(harness, 0, v_text("k"), v_text(""));
    EXPECT(harness, "+I('k', NULL, NULL, NULL)", "+U('k', 'b', 'b', 'b')",
           "+U('k', 'b,a', 'b | a', 'b')", "+U('k', 'b,a,b', 'b | a', 'b')",
           "+U('k', 'b,a,b,', 'b | a | ', 'b')");
    harness_destroy(harness);
}

static void test_long_texts_come_back_whole_when_they_span_pages(void **context)
{
    const struct type type = type_of(TYPE_VARCHAR);
    const struct aggregate_call calls[] = {simple(AGGREGATE_MAX, type),
                                           simple(AGGREGATE_LAST_VALUE, type),
                                           simple(AGGREGATE_LISTAGG, type)};
    for (int updates = 0; updates < 2; updates++) {
        struct harness *harness = group_create(type, calls, 3);
        harness->node.group.input_updates = updates != 0;
        harness_open(harness);
        char *text = malloc(20001);
        memset(text, 'x', 20000);
        text[20000] = '\0';
        ROW(harness, 0, v_text("k"), v_text("abc"));
        assert_int_equal(OPERATOR_DONE, harness_process(harness));
        assert_string_equal("+I('k', 'abc', 'abc', 'abc')", harness->lines[0]);
        ROW(harness, 0, v_text("k"), v_text(text));
        assert_int_equal(OPERATOR_DONE, harness_process(harness));
        assert_string_equal("+U('k', 20000 bytes, 20000 bytes, 20004 bytes)", harness->lines[2]);
        free(text);
        harness_destroy(harness);
    }
}

static void test_filters_leave_rows_out_when_they_are_not_true(void **context)
{
    const struct type input[3] = {type_of(TYPE_VARCHAR), type_of(TYPE_INT), type_of(TYPE_BOOLEAN)};
    const struct type output[3] = {input[0], type_of(TYPE_BIGINT), type_of(TYPE_INT)};
    struct aggregate_call calls[] = {count_all(), simple(AGGREGATE_SUM, type_of(TYPE_INT))};
    calls[0].filter = 2;
    calls[1].filter = 2;
    struct harness *harness = harness_create(input, 3, output, 3, ARENA);
    harness->node.operator= PLAN_GROUP;
    harness->node.group = (struct plan_group){
        .key = {.columns = key_column, .count = 1},
        .calls = calls,
        .call_count = 2,
    };
    harness_open(harness);
    ROW(harness, 0, v_text("k"), v_int(1), v_null());
    ROW(harness, 0, v_text("k"), v_int(2), v_int(0));
    ROW(harness, 0, v_text("k"), v_int(4), v_int(1));
    EXPECT(harness, "+I('k', 0, NULL)", "+U('k', 1, 4)");
    harness_destroy(harness);
}

static void test_the_job_fails_with_the_arenas_size_when_state_is_full(void **context)
{
    const struct type type = type_of(TYPE_INT);
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = group_create(type, calls, 1);
    harness_open(harness);
    arena_fail_after(harness->context.arena, 1);
    ROW(harness, 0, v_text("k"), v_int(1));
    assert_int_equal(OPERATOR_FAILED, harness_process(harness));
    char size[64];
    (void)snprintf(size, sizeof(size), "this lane's %llu KiB",
                   (unsigned long long)harness->context.arena->page_count * ARENA_PAGE_BYTES /
                       1024);
    assert_non_null(strstr(harness->context.failure.text, size));
    assert_non_null(strstr(harness->context.failure.text, "raise memory.state_mib"));
    harness->parcel->row_count = 0;
    harness_destroy(harness);
}

/* A group with a lifetime of 1,000 ms. */
static struct harness *mortal_create(const struct aggregate_call *calls, uint32_t call_count)
{
    struct harness *harness = group_create(type_of(TYPE_INT), calls, call_count);
    harness->node.group.ttl_ms = 1000;
    harness_open(harness);
    return harness;
}

static void test_a_group_reads_as_absent_when_its_lifetime_has_passed_since_its_last_row(void **c)
{
    const struct aggregate_call calls[] = {count_all(), simple(AGGREGATE_SUM, type_of(TYPE_INT))};
    struct harness *harness = mortal_create(calls, 2);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 5000));
    ROW(harness, 0, v_text("a"), v_int(5));
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 5999));
    ROW(harness, 0, v_text("a"), v_int(1)); /* 1 ms before its end: it lives 1,000 ms more */
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 6998));
    ROW(harness, 0, v_text("a"), v_int(2));
    EXPECT(harness, "+I('a', 1, 5)", "-U('a', 1, 5)", "+U('a', 2, 6)", "-U('a', 2, 6)",
           "+U('a', 3, 8)");
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 7998));
    ROW(harness, 0, v_text("a"), v_int(7)); /* last write + lifetime <= now: gone */
    EXPECT(harness, "+I('a', 1, 7)");
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 1);
    harness_destroy(harness);
}

/* V: with a lifetime Flink sends equal results too. */
static void test_an_equal_result_goes_out_when_state_has_a_lifetime(void **c)
{
    const struct aggregate_call calls[] = {simple(AGGREGATE_MAX, type_of(TYPE_INT))};
    struct harness *harness = mortal_create(calls, 1);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1));
    ROW(harness, 0, v_text("a"), v_int(5));
    ROW(harness, 0, v_text("a"), v_int(3));
    EXPECT(harness, "+I('a', 5)", "-U('a', 5)", "+U('a', 5)");
    harness_destroy(harness);
}

static void test_a_row_taken_back_does_nothing_when_its_group_has_ended(void **c)
{
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = group_create(type_of(TYPE_INT), calls, 1);
    harness->node.group.ttl_ms = 1000;
    harness->node.group.input_updates = true;
    harness_open(harness);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 10));
    retract(harness, ROW_INSERT, "a", 1);
    retract(harness, ROW_INSERT, "a", 1);
    EXPECT(harness, "+I('a', 1)", "-U('a', 1)", "+U('a', 2)");
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 500));
    retract(harness, ROW_DELETE, "a", 1); /* a write: the group lives on */
    EXPECT(harness, "-U('a', 2)", "+U('a', 1)");
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1500));
    retract(harness, ROW_DELETE, "a", 1);
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_int_equal(harness->line_count, 0);
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 1);
    harness_destroy(harness);
}

/* Each value of a DISTINCT has a lifetime of its own, from the row that brought it; COUNT(*) lives
 * with the group. */
static void test_a_distinct_value_counts_again_when_its_own_lifetime_has_passed(void **c)
{
    struct aggregate_call calls[] = {
        count_all(), call_of(AGGREGATE_COUNT, 1, type_of(TYPE_INT), type_of(TYPE_BIGINT))};
    calls[1].distinct = true;
    struct harness *harness = mortal_create(calls, 2);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1000));
    ROW(harness, 0, v_text("a"), v_int(5));
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1600));
    ROW(harness, 0, v_text("a"), v_int(5)); /* known: not written again */
    ROW(harness, 0, v_text("a"), v_int(6));
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 2000));
    ROW(harness, 0, v_text("a"), v_int(5));
    ROW(harness, 0, v_text("a"), v_int(6));
    EXPECT(harness, "+I('a', 1, 1)", "-U('a', 1, 1)", "+U('a', 2, 1)", "-U('a', 2, 1)",
           "+U('a', 3, 2)", "-U('a', 3, 2)", "+U('a', 4, 3)", "-U('a', 4, 3)", "+U('a', 5, 3)");
    harness_destroy(harness);
}

/* A group that never rests keeps about as many values as are alive, whether they rise or jump. */
static void test_values_of_distinct_come_back_when_their_group_lives_on(void **c)
{
    struct aggregate_call calls[] = {
        call_of(AGGREGATE_COUNT, 1, type_of(TYPE_INT), type_of(TYPE_BIGINT))};
    calls[0].distinct = true;
    for (int rises = 0; rises < 2; rises++) {
        struct harness *harness = mortal_create(calls, 1);
        uint64_t most = 0;
        int32_t jump = 1;
        for (int64_t now = 1; now <= 20000; now++) {
            assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
            for (int i = 0; i < 3; i++) {
                jump = (int32_t)((uint32_t)jump * 1664525U + 1013904223U);
                ROW(harness, 0, v_text("a"), v_int(rises ? (int32_t)now * 3 + i : jump));
            }
            assert_int_equal(OPERATOR_DONE, harness_process(harness));
            harness_forget(harness);
            const uint64_t used = harness->context.arena->counters.pages_used;
            most = used > most ? used : most;
        }
        /* 3,000 of 60,000 are alive: 154 pages with jumps, in nodes that are not full; all of them
         * would take some 900. */
        assert_true(most < 200);
        harness_destroy(harness);
    }
}

/* As many ticks as a lifetime has milliseconds: bounded work each, and all is free at the end. */
static void test_pages_come_back_when_groups_have_ended_without_another_row(void **c)
{
    struct aggregate_call calls[] = {
        call_of(AGGREGATE_COUNT, 1, type_of(TYPE_INT), type_of(TYPE_BIGINT))};
    calls[0].distinct = true;
    struct harness *harness = mortal_create(calls, 1);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 0));
    char key[32];
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof(key), "key %d", i);
        ROW(harness, 0, v_text(key), v_int(i));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    harness_forget(harness);
    const uint64_t used = harness->context.arena->counters.pages_used;
    for (int64_t now = 1; now < 1000; now++) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
    }
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 0);
    assert_int_equal(harness->context.arena->counters.pages_used, used);
    for (int64_t now = 1000; now < 1600; now++) {
        const uint64_t before = harness->counters[OPERATOR_EXPIRED];
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
        assert_true(harness->counters[OPERATOR_EXPIRED] - before <= 16 * 128);
    }
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 20000);
    for (int64_t now = 1600; now < 4000; now++) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
    }
    /* What is left: a root page a shard, and what merging leaves of the table's directory. */
    assert_true(harness->context.arena->counters.pages_used < 40);
    harness_destroy(harness);
}

static void test_rows_before_the_first_tick_live_from_the_sweep_that_sees_them(void **c)
{
    const struct aggregate_call calls[] = {count_all()};
    struct harness *harness = mortal_create(calls, 1);
    ROW(harness, 0, v_text("a"), v_int(5));
    for (int64_t now = 100000; now < 101000; now++) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
    }
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 0);
    ROW(harness, 0, v_text("a"), v_int(5));
    EXPECT(harness, "+I('a', 1)", "-U('a', 1)", "+U('a', 2)");
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_go_out_when_a_result_changes),
        cmocka_unit_test(test_no_update_before_goes_out_when_nobody_wants_it),
        cmocka_unit_test(test_groups_are_deleted_when_their_last_row_is_taken_back),
        cmocka_unit_test(test_the_global_group_is_deleted_when_its_last_row_is_taken_back),
        cmocka_unit_test(test_integer_sums_wrap_when_they_overflow),
        cmocka_unit_test(test_decimal_sum_restarts_when_it_has_overflowed),
        cmocka_unit_test(test_decimal_average_rounds_half_up_when_it_does_not_divide),
        cmocka_unit_test(test_double_extremes_compare_plainly_when_input_only_grows),
        cmocka_unit_test(test_double_extremes_follow_compare_when_input_retracts),
        cmocka_unit_test(test_float_sums_stay_float_when_they_lose_digits),
        cmocka_unit_test(test_variances_follow_welford_when_values_are_large),
        cmocka_unit_test(test_integer_variances_are_cut_when_they_are_not_whole),
        cmocka_unit_test(test_listagg_keeps_order_when_values_repeat),
        cmocka_unit_test(test_long_texts_come_back_whole_when_they_span_pages),
        cmocka_unit_test(test_filters_leave_rows_out_when_they_are_not_true),
        cmocka_unit_test(test_the_job_fails_with_the_arenas_size_when_state_is_full),
        cmocka_unit_test(
            test_a_group_reads_as_absent_when_its_lifetime_has_passed_since_its_last_row),
        cmocka_unit_test(test_an_equal_result_goes_out_when_state_has_a_lifetime),
        cmocka_unit_test(test_a_row_taken_back_does_nothing_when_its_group_has_ended),
        cmocka_unit_test(test_a_distinct_value_counts_again_when_its_own_lifetime_has_passed),
        cmocka_unit_test(test_values_of_distinct_come_back_when_their_group_lives_on),
        cmocka_unit_test(test_pages_come_back_when_groups_have_ended_without_another_row),
        cmocka_unit_test(test_rows_before_the_first_tick_live_from_the_sweep_that_sees_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
