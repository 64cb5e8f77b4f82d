/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of OVER with a lifetime, against a model that keeps Flink's clean-up timers: one a key, at
 * 1.5 lifetimes behind a touch, moved when a touch comes within one lifetime of it; firing clears
 * the key unless rows of it wait. Random rows, ticks and watermarks over a few keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/operator/harness.h"
#include "state/arena.h"

#define ARENA ((size_t)32 << 20)
#define KEYS  3
#define ROWS  3000
#define TTL   1000

static const uint32_t key_column[] = {0};

struct model_row {
    int64_t key;
    int64_t value;
    int64_t time_ms;
    bool waits;
    bool is_in; /* of what the key has taken in, and not cleared */
};

struct model {
    struct harness *harness;
    bool is_rows;
    bool unbounded;
    bool on_arrival;
    int64_t preceding;
    struct model_row rows[ROWS];
    uint32_t row_count;
    int64_t watermark_ms;
    int64_t now_ms;
    int64_t timer_ms[KEYS]; /* 0: none */
    int64_t fired_ms[KEYS];
    uint32_t cleared;
    uint64_t random;
    char *lines[2 * ROWS];
    uint32_t line_count;
};

static uint64_t draw(struct model *model, uint64_t below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (model->random >> 11) % below;
}

static struct harness *over_create(const struct model *model)
{
    static struct aggregate_call calls[2];
    const struct type number = type_of(TYPE_BIGINT);
    const struct type types[4] = {number, number, number, number};
    calls[0] = call_of(AGGREGATE_COUNT, AGGREGATE_COLUMN_NONE, number, number);
    calls[1] = call_of(AGGREGATE_SUM, 1, number, number);
    struct harness *harness = harness_create(types, 2, types, 4, ARENA);
    harness->node.operator= PLAN_OVER;
    harness->node.over = (struct plan_over){
        .key = {.columns = key_column, .count = 1},
        .is_rows = model->is_rows,
        .unbounded = model->unbounded,
        .preceding = model->preceding,
        .on_arrival = model->on_arrival,
        .ttl_ms = TTL,
        .calls = calls,
        .call_count = 2,
    };
    harness_open(harness);
    return harness;
}

static bool has_waiting(const struct model *model, int64_t key)
{
    for (uint32_t i = 0; i < model->row_count; i++) {
        if (model->rows[i].waits && model->rows[i].key == key) {
            return true;
        }
    }
    return false;
}

static void touch(struct model *model, int64_t key)
{
    if (model->timer_ms[key] == 0 || model->now_ms + TTL > model->timer_ms[key]) {
        model->timer_ms[key] = model->now_ms + TTL * 3 / 2;
    }
}

static void timers_fire(struct model *model)
{
    for (int64_t key = 0; key < KEYS; key++) {
        while (model->timer_ms[key] != 0 && model->timer_ms[key] <= model->now_ms) {
            if (has_waiting(model, key)) {
                model->timer_ms[key] += TTL * 3 / 2;
                continue;
            }
            model->timer_ms[key] = 0;
            model->fired_ms[key] = 0;
            model->cleared++;
            for (uint32_t i = 0; i < model->row_count; i++) {
                model->rows[i].is_in = model->rows[i].is_in && model->rows[i].key != key;
            }
        }
    }
}

/* Writes the line of a row over the key's rows that are in. In the frames here all of them count,
 * or the last ones by number. */
static void answer(struct model *model, const struct model_row *row)
{
    int64_t count = 0;
    int64_t sum = 0;
    for (uint32_t i = model->row_count; i-- > 0;) {
        const struct model_row *other = &model->rows[i];
        if (!other->is_in || other->key != row->key) {
            continue;
        }
        if (!model->unbounded && count > model->preceding) {
            break;
        }
        count++;
        sum += other->value;
    }
    char *line = NULL;
    assert_true(asprintf(&line, "+I(%lld, %lld, %lld, %lld)", (long long)row->key,
                         (long long)row->value, (long long)count, (long long)sum) > 0);
    model->lines[model->line_count++] = line;
}

static void row_add(struct model *model, int64_t key, int64_t time_ms)
{
    struct model_row *row = &model->rows[model->row_count];
    *row = (struct model_row){.key = key, .value = model->row_count + 1, .time_ms = time_ms};
    touch(model, key);
    const int64_t bound = model->unbounded ? model->watermark_ms : model->fired_ms[key];
    model->row_count++;
    if (model->on_arrival) {
        row->is_in = true;
        answer(model, row);
    } else {
        row->waits = time_ms > bound;
    }
    harness_row(model->harness, ROW_INSERT, time_ms,
                (const struct value[]){v_int(row->key), v_int(row->value)});
}

/* Times rise with arrival here, so the order of rows is that of arrival, ties included. */
static void watermark_move(struct model *model, int64_t watermark_ms)
{
    model->watermark_ms = watermark_ms;
    for (uint32_t i = 0; i < model->row_count; i++) {
        struct model_row *row = &model->rows[i];
        if (!row->waits || row->time_ms > watermark_ms) {
            continue;
        }
        for (uint32_t k = i; k < model->row_count; k++) {
            struct model_row *tie = &model->rows[k];
            if (tie->waits && tie->key == row->key && tie->time_ms == row->time_ms &&
                (k == i || !model->is_rows)) {
                tie->is_in = true;
            }
        }
        answer(model, row);
        row->waits = false;
        model->fired_ms[row->key] = row->time_ms;
        touch(model, row->key);
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(model->harness, watermark_ms));
}

static void compare(struct model *model)
{
    harness_expect_sorted(model->harness, (const char *const *)model->lines, model->line_count);
    for (uint32_t i = 0; i < model->line_count; i++) {
        free(model->lines[i]);
    }
    model->line_count = 0;
}

static void run(struct model *model, uint64_t seed)
{
    model->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model->watermark_ms = 0;
    model->harness = over_create(model);
    model->now_ms = 5000;
    assert_int_equal(OPERATOR_DONE, harness_tick(model->harness, model->now_ms));
    assert_int_equal(OPERATOR_DONE, harness_advance(model->harness, 0));
    int64_t newest_ms = 1;
    while (model->row_count < ROWS) {
        const uint64_t what = draw(model, 10);
        if (what < 5) {
            newest_ms += (int64_t)draw(model, 3);
            const int64_t key = (int64_t)draw(model, KEYS);
            const int64_t late_ms = model->unbounded ? model->watermark_ms : model->fired_ms[key];
            const bool is_late = !model->on_arrival && draw(model, 8) == 0;
            row_add(model, key, is_late ? late_ms : newest_ms);
        } else if (what < 9) {
            model->now_ms += (int64_t)draw(model, draw(model, 10) == 0 ? 4 * TTL : TTL);
            assert_int_equal(OPERATOR_DONE, harness_process(model->harness));
            timers_fire(model);
            assert_int_equal(OPERATOR_DONE, harness_tick(model->harness, model->now_ms));
        } else {
            assert_int_equal(OPERATOR_DONE, harness_process(model->harness));
            watermark_move(model, newest_ms - 1 > model->watermark_ms ? newest_ms - 1
                                                                      : model->watermark_ms);
        }
    }
    assert_int_equal(OPERATOR_DONE, harness_process(model->harness));
    compare(model);
    assert_true(model->cleared > 20);
    /* Keys made by late rows only count here as well. */
    assert_true(model->harness->counters[OPERATOR_EXPIRED] >= model->cleared / 2);
    harness_destroy(model->harness);
}

static void run_all(struct model shape)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct model *model = malloc(sizeof(*model));
        assert_non_null(model);
        *model = shape;
        run(model, seed);
        free(model);
    }
}

static void test_unbounded_rows_begin_anew_when_the_deadline_passes(void **state)
{
    run_all((struct model){.is_rows = true, .unbounded = true});
}

static void test_unbounded_range_begins_anew_when_the_deadline_passes(void **state)
{
    run_all((struct model){.unbounded = true});
}

static void test_bounded_rows_begin_anew_when_the_deadline_passes(void **state)
{
    run_all((struct model){.is_rows = true, .preceding = 3});
}

static void test_frames_on_arrival_begin_anew_when_the_deadline_passes(void **state)
{
    run_all((struct model){.is_rows = true, .unbounded = true, .on_arrival = true});
    run_all((struct model){.is_rows = true, .preceding = 3, .on_arrival = true});
}

/* By hand: the numbers of the rule. */
static void test_a_touch_moves_the_deadline_when_it_comes_within_one_lifetime_of_it(void **state)
{
    struct model shape = {.is_rows = true, .unbounded = true, .on_arrival = true};
    struct harness *harness = over_create(&shape);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 10000)); /* deadline 11,500 */
    ROW(harness, 1, v_int(1), v_int(1));
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 10500)); /* 11,500 is not above: stays */
    ROW(harness, 2, v_int(1), v_int(1));
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 11499));
    EXPECT(harness, "+I(1, 1, 1, 1)", "+I(1, 1, 2, 2)");
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 11500));
    ROW(harness, 3, v_int(1), v_int(1)); /* deadline 13,000 */
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 12001));
    ROW(harness, 4, v_int(1), v_int(1)); /* 13,001 is above: deadline 13,501 */
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 13500));
    ROW(harness, 5, v_int(1), v_int(1));
    EXPECT(harness, "+I(1, 1, 1, 1)", "+I(1, 1, 2, 2)", "+I(1, 1, 3, 3)");
    harness_destroy(harness);
}

static void test_pages_come_back_when_keys_have_ended_without_another_row(void **state)
{
    struct model shape = {.is_rows = true, .preceding = 3};
    struct harness *harness = over_create(&shape);
    assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1));
    for (int64_t i = 1; i <= 20000; i++) {
        ROW(harness, i, v_int(i), v_int(i));
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, 15000));
    harness_forget(harness);
    for (int64_t now = 2; now < 4 * TTL; now++) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
    }
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 15000); /* the others wait */
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, 20000));
    assert_int_equal(harness->line_count, 5000);
    harness_forget(harness);
    for (int64_t now = 4 * TTL; now < 8 * TTL; now++) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, now));
    }
    assert_int_equal(harness->counters[OPERATOR_EXPIRED], 20000);
    assert_true(harness->context.arena->counters.pages_used < 50);
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unbounded_rows_begin_anew_when_the_deadline_passes),
        cmocka_unit_test(test_unbounded_range_begins_anew_when_the_deadline_passes),
        cmocka_unit_test(test_bounded_rows_begin_anew_when_the_deadline_passes),
        cmocka_unit_test(test_frames_on_arrival_begin_anew_when_the_deadline_passes),
        cmocka_unit_test(test_a_touch_moves_the_deadline_when_it_comes_within_one_lifetime_of_it),
        cmocka_unit_test(test_pages_come_back_when_keys_have_ended_without_another_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
