/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate functions beyond plain GROUP BY: values that leave again, in any order or in the order
 * in which they came, sums of whole states, and what only OVER has. The figures of OVER were asked
 * of Flink 2.3 for this test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/operator/accumulator.h"
#include "state/arena.h"
#include "tests/dataplane/operator/harness.h"

#define NONE      AGGREGATE_COLUMN_NONE
#define ARENA     (UINT32_C(8) << 20)
#define TEXT_LONG 5000

/* One set of calls over rows of one column, with a state outside of any table. */
struct bare {
    struct harness *harness; /* for its arena and printing */
    struct accumulator_set *set;
    struct accumulator_state state;
    struct type types[1];
    uint16_t slots[1];
    struct row_layout layout;
    _Alignas(8) uint8_t value[TABLE_VALUE_BYTES_MAX];
    _Alignas(8) uint8_t row[16384];
};

static void bare_begin(struct bare *bare, struct accumulator_state *state, uint8_t *value)
{
    *state = (struct accumulator_state){.heap = bare->harness->context.heap, .value = value};
    memset(value, 0, TABLE_VALUE_BYTES_MAX);
    accumulators_init(bare->set, state);
}

static struct bare *bare_create(struct type type, const struct aggregate_call *calls,
                                uint32_t call_count, enum accumulator_mode mode)
{
    struct bare *bare = aligned_alloc(64, (sizeof(*bare) + 63) / 64 * 64);
    memset(bare, 0, sizeof(*bare));
    bare->harness = harness_create(&type, 1, &type, 1, ARENA);
    bare->types[0] = type;
    row_layout_init(&bare->layout, bare->types, 1, bare->slots);
    const struct accumulator_config config = {
        .calls = calls,
        .call_count = call_count,
        .layout = &bare->layout,
        .mode = mode,
        .is_over = mode == ACCUMULATOR_SLIDING,
    };
    struct error error = {0};
    assert_int_equal(0, accumulators_create(&config, &bare->set, &error));
    bare_begin(bare, &bare->state, bare->value);
    return bare;
}

static void bare_destroy(struct bare *bare)
{
    accumulators_clear(bare->set, &bare->state);
    while (heap_poll(bare->harness->context.heap, 64) == 64) {
    }
    assert_int_equal(0, bare->harness->context.heap->counters.blocks_used);
    accumulators_destroy(bare->set);
    /* The harness has no operator to close here. */
    bare->harness->node.operator= PLAN_UNION;
    harness_open(bare->harness);
    harness_destroy(bare->harness);
    free(bare);
}

static const struct row *bare_row(struct bare *bare, struct value value)
{
    struct row_writer writer;
    assert_true(row_begin(&writer, &bare->layout, bare->row, sizeof(bare->row), NULL));
    assert_true(row_set_value(&writer, 0, &value));
    (void)row_end(&writer);
    return writer.row;
}

static void add(struct bare *bare, int64_t order, struct value value)
{
    bare->state.order = order;
    assert_true(accumulators_add(bare->set, &bare->state, bare_row(bare, value)));
}

static void take(struct bare *bare, int64_t order, struct value value)
{
    bare->state.order = order;
    assert_true(accumulators_retract(bare->set, &bare->state, bare_row(bare, value)));
}

static struct value result(struct bare *bare, uint32_t call)
{
    struct value value;
    assert_true(accumulators_result(bare->set, call, &bare->state, &value));
    return value;
}

static void expect_text(struct bare *bare, uint32_t call, const char *text)
{
    const struct value value = result(bare, call);
    assert_int_equal(text == NULL, value.is_null);
    if (text != NULL) {
        assert_int_equal(strlen(text), value.text.bytes);
        assert_memory_equal(text, value.text.data, value.text.bytes);
    }
}

static struct aggregate_call simple(enum aggregate_function function, struct type type)
{
    return call_of(function, 0, type, type);
}

static void test_listagg_takes_the_first_equal_out_when_a_value_is_taken_back(void **context)
{
    const struct type type = type_of(TYPE_VARCHAR);
    struct aggregate_call calls[] = {simple(AGGREGATE_LISTAGG, type),
                                     simple(AGGREGATE_LISTAGG, type)};
    calls[1].distinct = true;
    struct bare *bare = bare_create(type, calls, 2, ACCUMULATOR_RETRACT);
    add(bare, 0, v_text("a"));
    add(bare, 0, v_text("b"));
    add(bare, 0, v_text("a"));
    expect_text(bare, 0, "a,b,a");
    expect_text(bare, 1, "a,b");
    take(bare, 0, v_text("a"));
    expect_text(bare, 0, "b,a");
    expect_text(bare, 1, "a,b");
    take(bare, 0, v_text("a"));
    expect_text(bare, 1, "b");
    take(bare, 0, v_text("b"));
    expect_text(bare, 0, NULL);
    bare_destroy(bare);
}

static void test_text_extremes_compare_bytes_when_values_come_and_go(void **context)
{
    const struct type type = type_of(TYPE_VARCHAR);
    const struct aggregate_call calls[] = {simple(AGGREGATE_MIN, type),
                                           simple(AGGREGATE_MAX, type)};
    char text[TEXT_LONG + 1];
    memset(text, 'm', TEXT_LONG);
    text[TEXT_LONG] = '\0';
    for (enum accumulator_mode mode = ACCUMULATOR_RETRACT; mode <= ACCUMULATOR_SLIDING; mode++) {
        struct bare *bare = bare_create(type, calls, 2, mode);
        add(bare, 1, v_text("mm"));
        add(bare, 2, v_text(text));
        add(bare, 3, v_text("\xc3\xa4"));
        add(bare, 4, v_text("a"));
        expect_text(bare, 0, "a");
        expect_text(bare, 1, "\xc3\xa4");
        take(bare, 1, v_text("mm"));
        take(bare, 2, v_text(text));
        take(bare, 3, v_text("\xc3\xa4"));
        expect_text(bare, 1, "a");
        add(bare, 5, v_text(text));
        take(bare, 4, v_text("a"));
        expect_text(bare, 0, text);
        expect_text(bare, 1, text);
        take(bare, 5, v_text(text));
        expect_text(bare, 0, NULL);
        bare_destroy(bare);
    }
}

static void extremes_of(struct type type, struct value low, struct value high, uint32_t bytes)
{
    const struct aggregate_call calls[] = {simple(AGGREGATE_MIN, type),
                                           simple(AGGREGATE_MAX, type)};
    for (enum accumulator_mode mode = ACCUMULATOR_APPEND; mode <= ACCUMULATOR_SLIDING; mode++) {
        struct bare *bare = bare_create(type, calls, 2, mode);
        add(bare, 1, high);
        add(bare, 2, low);
        struct value value = result(bare, 0);
        assert_false(value.is_null);
        assert_memory_equal(&low.i64, &value.i64, bytes);
        value = result(bare, 1);
        assert_memory_equal(&high.i64, &value.i64, bytes);
        if (mode != ACCUMULATOR_APPEND) {
            take(bare, 1, high);
            value = result(bare, 1);
            assert_memory_equal(&low.i64, &value.i64, bytes);
        }
        bare_destroy(bare);
    }
}

static void test_extremes_keep_the_values_order_when_types_differ(void **context)
{
    extremes_of(type_of(TYPE_BIGINT), v_int(INT64_MIN), v_int(INT64_MAX), 8);
    extremes_of(type_of(TYPE_BOOLEAN), v_int(0), v_int(1), 8);
    extremes_of(type_of(TYPE_DATE), v_int(-1), v_int(0), 8);
    extremes_of(type_of(TYPE_FLOAT), v_float(-1.5f), v_float(0.25f), 4);
    extremes_of(type_of(TYPE_DOUBLE), v_double(-INFINITY), v_double(-1e-300), 8);
    extremes_of(type_decimal(38, 2), v_wide(-5), (struct value){.i128 = (__int128)1 << 100}, 16);
    extremes_of(type_decimal(38, 2), (struct value){.i128 = -((__int128)1 << 100)}, v_wide(-5), 16);
    extremes_of(type_of(TYPE_TIMESTAMP), (struct value){.timestamp = {.ms = -1, .ns = 999999}},
                (struct value){.timestamp = {.ms = 0}}, 16);
    extremes_of(type_of(TYPE_TIMESTAMP), (struct value){.timestamp = {.ms = 7, .ns = 1}},
                (struct value){.timestamp = {.ms = 7, .ns = 2}}, 16);
}

/* Rows 0.0, -0.0, 0.0, 1.5, NaN, 2.5, NULL, NULL, 0.1 under ROWS 1 PRECEDING. */
static void test_sliding_doubles_follow_compare_when_frames_move(void **context)
{
    const struct type type = type_of(TYPE_DOUBLE);
    const struct aggregate_call calls[] = {simple(AGGREGATE_MIN, type), simple(AGGREGATE_MAX, type),
                                           simple(AGGREGATE_SUM, type)};
    static const double values[] = {0.0, -0.0, 0.0, 1.5, NAN, 2.5};
    static const double lows[] = {0.0, -0.0, -0.0, 0.0, 1.5, 2.5};
    static const double highs[] = {0.0, 0.0, 0.0, 1.5, NAN, NAN};
    struct bare *bare = bare_create(type, calls, 3, ACCUMULATOR_SLIDING);
    for (uint32_t i = 0; i < COUNT_OF(values); i++) {
        if (i >= 2) {
            take(bare, i - 2, v_double(values[i - 2]));
        }
        add(bare, i, v_double(values[i]));
        const double low = result(bare, 0).f64;
        const double high = result(bare, 1).f64;
        assert_true(low == lows[i] && signbit(low) == signbit(lows[i]));
        assert_true(high == highs[i] || (isnan(high) && isnan(highs[i])));
    }
    take(bare, 4, v_double(NAN));
    take(bare, 5, v_double(2.5));
    assert_true(result(bare, 0).is_null);
    assert_true(result(bare, 2).is_null);
    add(bare, 8, v_double(0.1));
    assert_true(isnan(result(bare, 2).f64)); /* what NaN left behind stays */
    assert_true(result(bare, 1).f64 == 0.1);
    bare_destroy(bare);
}

static void slide_three(struct bare *bare, const struct value *values, uint32_t count,
                        void (*check)(struct bare *, uint32_t))
{
    for (uint32_t i = 0; i < count; i++) {
        if (i >= 3) {
            take(bare, i - 3, values[i - 3]);
        }
        add(bare, i, values[i]);
        check(bare, i);
    }
}

static void check_doubles(struct bare *bare, uint32_t i)
{
    static const double populations[] = {0.0,
                                         0.02250000000000002,
                                         0.05999999999999998,
                                         0.06000000000000005,
                                         0.05999999999999991,
                                         0.05999999999999991};
    static const double deviations[] = {0,
                                        0.21213203435596434,
                                        0.29999999999999993,
                                        0.30000000000000016,
                                        0.29999999999999977,
                                        0.29999999999999977};
    assert_true(result(bare, 0).f64 == populations[i]);
    assert_int_equal(i == 0, result(bare, 1).is_null);
    assert_true(i == 0 || result(bare, 1).f64 == deviations[i]);
}

static void check_integers(struct bare *bare, uint32_t i)
{
    static const int64_t samples[] = {0, 0, 715827884, -715827881};
    static const int64_t averages[] = {1000000000, 1000000000, -431655764, -431655763};
    assert_int_equal(i == 0, result(bare, 0).is_null);
    assert_true(i == 0 || result(bare, 0).i64 == samples[i]);
    assert_int_equal(averages[i], result(bare, 1).i64);
}

static void check_floats(struct bare *bare, uint32_t i)
{
    static const float averages[] = {0.0f, 0.05f, 0.1f, 0.2f, 0.29999998f, 0.4f};
    assert_true(result(bare, 0).f32 == averages[i]);
}

static void test_over_computes_in_the_arguments_type_when_frames_slide(void **context)
{
    const struct type real = type_of(TYPE_DOUBLE);
    const struct type integer = type_of(TYPE_INT);
    const struct type single = type_of(TYPE_FLOAT);
    struct value doubles[6];
    struct value integers[4];
    struct value floats[6];
    for (int i = 0; i < 6; i++) {
        doubles[i] = v_double(i * 0.3 + 1.0 / 3);
        integers[i % 4] = v_int(1000000000 + i % 4);
        floats[i] = v_float((float)(i * 0.1));
    }
    const struct aggregate_call of_doubles[] = {simple(AGGREGATE_VAR_POP, real),
                                                simple(AGGREGATE_STDDEV_SAMP, real)};
    struct bare *bare = bare_create(real, of_doubles, 2, ACCUMULATOR_SLIDING);
    slide_three(bare, doubles, 6, check_doubles);
    bare_destroy(bare);
    const struct aggregate_call of_integers[] = {simple(AGGREGATE_VAR_SAMP, integer),
                                                 simple(AGGREGATE_AVG, integer)};
    bare = bare_create(integer, of_integers, 2, ACCUMULATOR_SLIDING);
    slide_three(bare, integers, 4, check_integers);
    bare_destroy(bare);
    const struct aggregate_call of_floats[] = {simple(AGGREGATE_AVG, single)};
    bare = bare_create(single, of_floats, 1, ACCUMULATOR_SLIDING);
    slide_three(bare, floats, 6, check_floats);
    bare_destroy(bare);
}

static void test_calls_share_a_state_when_they_keep_the_same(void **context)
{
    const struct type type = type_decimal(12, 2);
    const struct aggregate_call calls[] = {
        call_of(AGGREGATE_SUM, 0, type, type_decimal(38, 2)),
        call_of(AGGREGATE_AVG, 0, type, type_decimal(38, 6)),
        call_of(AGGREGATE_SUM, 0, type, type_decimal(38, 2)),
    };
    struct bare *bare = bare_create(type, calls, 3, ACCUMULATOR_SLIDING);
    assert_int_equal(32, accumulators_bytes(bare->set));
    add(bare, 0, v_int(100));
    add(bare, 1, v_int(200));
    add(bare, 2, v_int(201));
    assert_true(result(bare, 0).i128 == 501);
    assert_true(result(bare, 1).i128 == 1670000);
    assert_true(result(bare, 2).i128 == 501);
    bare_destroy(bare);
}

static void test_merged_states_equal_one_state_when_rows_are_split(void **context)
{
    const struct type type = type_of(TYPE_BIGINT);
    struct aggregate_call calls[] = {
        call_of(AGGREGATE_COUNT, NONE, type, type),
        simple(AGGREGATE_SUM, type),
        simple(AGGREGATE_AVG, type),
        simple(AGGREGATE_MAX, type),
        simple(AGGREGATE_VAR_POP, type),
        call_of(AGGREGATE_COUNT, 0, type, type),
        simple(AGGREGATE_SUM, type),
    };
    calls[5].distinct = true;
    calls[6].distinct = true;
    for (enum accumulator_mode mode = ACCUMULATOR_APPEND; mode <= ACCUMULATOR_RETRACT; mode++) {
        struct bare *bare = bare_create(type, calls, COUNT_OF(calls), mode);
        _Alignas(8) uint8_t values[2][TABLE_VALUE_BYTES_MAX];
        struct accumulator_state parts[2];
        bare_begin(bare, &parts[0], values[0]);
        bare_begin(bare, &parts[1], values[1]);
        for (int64_t i = 0; i < 40; i++) {
            const struct value value = i % 5 == 0 ? v_null() : v_int(i * i % 17);
            add(bare, i, value);
            assert_true(accumulators_add(bare->set, &parts[i % 3 == 0], bare_row(bare, value)));
        }
        struct value expected[COUNT_OF(calls)];
        for (uint32_t i = 0; i < COUNT_OF(calls); i++) {
            expected[i] = result(bare, i);
        }
        accumulators_clear(bare->set, &bare->state);
        accumulators_init(bare->set, &bare->state);
        for (uint32_t part = 0; part < 2; part++) {
            assert_true(accumulators_merge(bare->set, &bare->state, &parts[part]));
            accumulators_clear(bare->set, &parts[part]);
        }
        for (uint32_t i = 0; i < COUNT_OF(calls); i++) {
            assert_int_equal(expected[i].i64, result(bare, i).i64);
        }
        bare_destroy(bare);
    }
}

static void test_functions_are_refused_by_name_when_they_do_not_take_the_type(void **context)
{
    const struct type type = type_of(TYPE_BOOLEAN);
    const struct type rows[1] = {type};
    uint16_t slots[1];
    struct row_layout layout;
    row_layout_init(&layout, rows, 1, slots);
    const struct aggregate_call call = simple(AGGREGATE_SUM, type);
    const struct accumulator_config config = {.calls = &call, .call_count = 1, .layout = &layout};
    struct accumulator_set *set = NULL;
    struct error error = {0};
    assert_true(accumulators_create(&config, &set, &error) < 0);
    assert_string_equal("SUM over BOOLEAN is not supported", error.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listagg_takes_the_first_equal_out_when_a_value_is_taken_back),
        cmocka_unit_test(test_text_extremes_compare_bytes_when_values_come_and_go),
        cmocka_unit_test(test_extremes_keep_the_values_order_when_types_differ),
        cmocka_unit_test(test_sliding_doubles_follow_compare_when_frames_move),
        cmocka_unit_test(test_over_computes_in_the_arguments_type_when_frames_slide),
        cmocka_unit_test(test_calls_share_a_state_when_they_keep_the_same),
        cmocka_unit_test(test_merged_states_equal_one_state_when_rows_are_split),
        cmocka_unit_test(test_functions_are_refused_by_name_when_they_do_not_take_the_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
