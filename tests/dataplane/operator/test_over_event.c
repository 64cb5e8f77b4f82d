/* SPDX-License-Identifier: Apache-2.0 */
/* OVER against a naive model over random rows: ties, NULLs, late and unordered rows, several keys.
 * The model keeps every row and every clean-up timer that Flink would set (at 1.5 frames behind a
 * row, when one frame behind it lies above the last), and answers by looking at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/operator/harness.h"

#define NONE     AGGREGATE_COLUMN_NONE
#define ARENA    (UINT32_C(32) << 20)
#define ROWS     600
#define KEYS     4
#define NO_VALUE INT64_MIN
#define SEEDS    12

static const uint32_t key_column[] = {1};

struct model_row {
    int64_t id;
    int64_t key;
    int64_t value; /* NO_VALUE: NULL */
    int64_t time_ms;
    bool accepted;
    bool answered;
    bool forgotten;
};

struct model_timer {
    int64_t key;
    int64_t time_ms; /* INT64_MAX: has fired */
};

struct model {
    struct harness *harness;
    bool is_rows;
    bool unbounded;
    bool on_arrival;
    int64_t preceding;
    struct model_row rows[ROWS];
    uint32_t row_count; /* that have arrived */
    /* Accepted rows of all keys in the order in which Flink takes them in. */
    uint32_t order[ROWS];
    uint32_t order_count;
    int64_t watermark_ms;
    int64_t fired_ms[KEYS]; /* last fired time of a key */
    int64_t cleanup_ms[KEYS];
    struct model_timer timers[ROWS];
    uint32_t timer_count;
    uint32_t forgotten_count;
    uint64_t random;
    uint32_t late_count;
    char *lines[ROWS];
    uint32_t line_count;
};

static uint64_t draw(struct model *model, uint64_t below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (model->random >> 11) % below;
}

static struct harness *over_create(const struct model *model, const struct aggregate_call *calls,
                                   uint32_t call_count)
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
        .is_rows = model->is_rows,
        .unbounded = model->unbounded,
        .preceding = model->preceding,
        .on_arrival = model->on_arrival,
        .calls = calls,
        .call_count = call_count,
    };
    harness_open(harness);
    return harness;
}

/* What the calls see of a frame, in its order. */
struct answer {
    int64_t count;
    int64_t filled;
    int64_t sum;
    int64_t low;
    int64_t high;
    int64_t first;
    int64_t last;
    int64_t distinct;
    bool seen[64];
};

static void answer_add(struct answer *answer, int64_t value)
{
    answer->count++;
    if (value == NO_VALUE) {
        return;
    }
    answer->first = answer->filled == 0 ? value : answer->first;
    answer->last = value;
    answer->low = answer->filled == 0 || value < answer->low ? value : answer->low;
    answer->high = answer->filled == 0 || value > answer->high ? value : answer->high;
    answer->sum += value;
    answer->filled++;
    answer->distinct += !answer->seen[value + 30];
    answer->seen[value + 30] = true;
}

static void line_put(struct model *model, const struct model_row *row, const struct answer *answer)
{
    char value[32] = "NULL";
    char filled[200] = "NULL, NULL, NULL, NULL, NULL, NULL";
    if (row->value != NO_VALUE) {
        (void)snprintf(value, sizeof(value), "%lld", (long long)row->value);
    }
    if (answer->filled != 0) {
        (void)snprintf(filled, sizeof(filled), "%lld, %lld, %lld, %lld, %lld, %lld",
                       (long long)answer->sum, (long long)answer->low, (long long)answer->high,
                       (long long)(answer->sum / answer->filled), (long long)answer->first,
                       (long long)answer->last);
    }
    char line[HARNESS_LINE_BYTES];
    (void)snprintf(line, sizeof(line), "+I(%lld, %lld, %s, %lld, %s, %lld)", (long long)row->id,
                   (long long)row->key, value, (long long)answer->count, filled,
                   (long long)answer->distinct);
    model->lines[model->line_count++] = strdup(line);
}

/* Rows of one key that are in `order`, by (time, place in order); position of `row` is returned. */
static uint32_t key_rows(const struct model *model, const struct model_row *row,
                         const struct model_row **into, bool by_time, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < model->order_count; i++) {
        const struct model_row *other = &model->rows[model->order[i]];
        if (other->key != row->key || other->forgotten) {
            continue;
        }
        uint32_t at = (*count)++;
        while (by_time && at > 0 && into[at - 1]->time_ms > other->time_ms) {
            into[at] = into[at - 1];
            at--;
        }
        into[at] = other;
    }
    uint32_t place = 0;
    while (into[place] != row) {
        place++;
    }
    return place;
}

/* Answers a row from everything that has been taken in. */
static void row_answer(struct model *model, struct model_row *row)
{
    const struct model_row *rows[ROWS] = {0};
    uint32_t count;
    const bool ties_count = !model->is_rows && !model->on_arrival;
    const uint32_t place = key_rows(model, row, rows, model->on_arrival || !model->is_rows, &count);
    struct answer answer = {0};
    for (uint32_t i = 0; i < count; i++) {
        const int64_t age_ms = row->time_ms - rows[i]->time_ms;
        const bool in_front = ties_count ? age_ms >= 0 : i <= place;
        const bool reached =
            model->unbounded || (model->is_rows ? (int64_t)place - (int64_t)i <= model->preceding
                                                : age_ms <= model->preceding);
        if (in_front && reached) {
            answer_add(&answer, rows[i]->value);
        }
    }
    row->answered = true;
    line_put(model, row, &answer);
}

/* A bounded RANGE sets Flink's clean-up timer. */
static void timer_register(struct model *model, const struct model_row *row)
{
    int64_t *cleanup_ms = &model->cleanup_ms[row->key];
    if (*cleanup_ms == 0 || row->time_ms + model->preceding + 1 > *cleanup_ms) {
        *cleanup_ms = row->time_ms + (int64_t)((double)model->preceding * 1.5) + 1;
        model->timers[model->timer_count++] = (struct model_timer){row->key, *cleanup_ms};
    }
}

/* Fires the clean-up timers before a time, earliest first. */
static void timers_fire(struct model *model, int64_t before_ms)
{
    for (;;) {
        struct model_timer *first = NULL;
        for (uint32_t i = 0; i < model->timer_count; i++) {
            struct model_timer *timer = &model->timers[i];
            if (timer->time_ms < before_ms && (first == NULL || timer->time_ms < first->time_ms)) {
                first = timer;
            }
        }
        if (first == NULL) {
            return;
        }
        model->fired_ms[first->key] = first->time_ms;
        if (model->cleanup_ms[first->key] <= first->time_ms) {
            model->fired_ms[first->key] = 0;
            model->cleanup_ms[first->key] = 0;
            for (uint32_t i = 0; i < model->row_count; i++) {
                struct model_row *row = &model->rows[i];
                row->forgotten = row->forgotten || (row->key == first->key && row->answered);
            }
            model->forgotten_count++;
        }
        first->time_ms = INT64_MAX;
    }
}

/* Takes in and answers what a watermark passes, in the order of time and arrival. */
static void model_advance(struct model *model, int64_t watermark_ms)
{
    model->watermark_ms = watermark_ms;
    for (;;) {
        struct model_row *next = NULL;
        for (uint32_t i = 0; i < model->row_count; i++) {
            struct model_row *row = &model->rows[i];
            if (row->accepted && !row->answered && row->time_ms <= watermark_ms &&
                (next == NULL || row->time_ms < next->time_ms)) {
                next = row;
            }
        }
        if (next == NULL) {
            timers_fire(model, watermark_ms == WATERMARK_MAX ? INT64_MAX : watermark_ms + 1);
            return;
        }
        const int64_t time_ms = next->time_ms;
        timers_fire(model, time_ms);
        model->fired_ms[next->key] = time_ms;
        const int64_t key = next->key;
        for (int pass = model->is_rows ? 1 : 0; pass < 2; pass++) {
            for (uint32_t i = 0; i < model->row_count; i++) {
                struct model_row *row = &model->rows[i];
                if (!row->accepted || row->answered || row->key != key || row->time_ms != time_ms) {
                    continue;
                }
                if (pass == 0 || model->is_rows) {
                    model->order[model->order_count++] = i;
                }
                if (pass == 1) {
                    row_answer(model, row);
                }
            }
        }
    }
}

static void model_arrive(struct model *model, struct model_row row)
{
    const uint32_t at = model->row_count++;
    row.accepted = model->on_arrival || (model->unbounded ? row.time_ms > model->watermark_ms
                                                          : row.time_ms > model->fired_ms[row.key]);
    model->rows[at] = row;
    model->late_count += !row.accepted;
    if (row.accepted && !model->is_rows && !model->unbounded && !model->on_arrival) {
        timer_register(model, &row);
    }
    if (model->on_arrival) {
        model->order[model->order_count++] = at;
        row_answer(model, &model->rows[at]);
    }
}

/* spread_ms: how far rows lie out of order; slack_ms: how far the watermark stays behind. */
static void run(struct model *model, int64_t spread_ms, int64_t slack_ms)
{
    struct aggregate_call calls[] = {
        call_of(AGGREGATE_COUNT, NONE, type_of(TYPE_INT), type_of(TYPE_BIGINT)),
        call_of(AGGREGATE_SUM, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_MIN, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_MAX, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_AVG, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_FIRST_VALUE, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_LAST_VALUE, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_COUNT, 2, type_of(TYPE_INT), type_of(TYPE_BIGINT)),
    };
    calls[7].distinct = true;
    struct harness *harness = over_create(model, calls, COUNT_OF(calls));
    model->harness = harness;
    model->watermark_ms = WATERMARK_MIN;
    harness_room(harness, 3);
    int64_t now_ms = 1000000;
    for (int64_t id = 0; id < ROWS; id++) {
        now_ms += (int64_t)draw(model, 40);
        const struct model_row row = {
            .id = id,
            .key = (int64_t)draw(model, KEYS),
            .value = draw(model, 6) == 0 ? NO_VALUE : (int64_t)draw(model, 60) - 30,
            .time_ms = now_ms - (int64_t)draw(model, (uint64_t)spread_ms + 1),
        };
        ROW(harness, row.time_ms, v_int(row.id), v_int(row.key),
            row.value == NO_VALUE ? v_null() : v_int(row.value));
        model_arrive(model, row);
        if (draw(model, 5) == 0 && now_ms - slack_ms > model->watermark_ms) {
            assert_int_equal(OPERATOR_DONE, harness_advance(harness, now_ms - slack_ms));
            model_advance(model, now_ms - slack_ms);
        }
    }
    assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
    model_advance(model, WATERMARK_MAX);
    assert_int_equal(model->late_count, harness->counters[OPERATOR_LATE_ROWS]);
    harness_expect(harness, (const char *const *)model->lines, model->line_count);
    harness_destroy(harness);
    for (uint32_t i = 0; i < model->line_count; i++) {
        free(model->lines[i]);
    }
}

static struct model *model_create(uint64_t seed, bool is_rows, bool unbounded, bool on_arrival,
                                  int64_t preceding)
{
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    model->is_rows = is_rows;
    model->unbounded = unbounded;
    model->on_arrival = on_arrival;
    model->preceding = preceding;
    model->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return model;
}

/* returns  how often a key was forgotten */
static uint32_t sweep(bool is_rows, bool unbounded, bool on_arrival, int64_t preceding,
                      int64_t spread_ms, int64_t slack_ms)
{
    uint32_t forgotten = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct model *model = model_create(seed, is_rows, unbounded, on_arrival, preceding);
        run(model, spread_ms, slack_ms);
        forgotten += model->forgotten_count;
        free(model);
    }
    return forgotten;
}

static void test_range_equals_the_model_when_rows_come_unordered(void **context)
{
    sweep(false, false, false, 300, 200, 250);
    sweep(false, false, false, 0, 200, 250);
    sweep(false, false, false, 5000, 40, 50);
}

/* A key that is forgotten takes rows from before what it had, and answers them without that. */
static void test_range_equals_the_model_when_rows_come_late(void **context)
{
    /* The frame is longer than the test; then keys are forgotten at its end only. */
    assert_int_equal(SEEDS * KEYS, sweep(false, false, false, 10000000, 400, 100));
    assert_true(sweep(false, false, false, 60, 400, 100) > SEEDS * 50);
    assert_true(sweep(false, false, false, 7, 900, 20) > SEEDS * 50);
    assert_true(sweep(false, false, false, 150, 1500, 600) > SEEDS * 5);
}

/* Rows that are longer than one block of the heap, one answered while another leaves. */
static void test_long_rows_keep_their_columns_when_others_leave(void **context)
{
    enum {
        TEXT_BYTES = 9000
    };
    static char text[4][TEXT_BYTES + 1];
    struct type types[4] = {type_of(TYPE_INT), type_of(TYPE_INT), type_of(TYPE_VARCHAR)};
    types[3] = types[2];
    const struct aggregate_call call =
        call_of(AGGREGATE_MIN, 2, type_of(TYPE_VARCHAR), type_of(TYPE_VARCHAR));
    for (uint32_t is_rows = 0; is_rows < 2; is_rows++) {
        struct harness *harness = harness_create(types, 3, types, 4, ARENA);
        harness->node.operator= PLAN_OVER;
        harness->node.over = (struct plan_over){
            .key = {.columns = key_column, .count = 1},
            .is_rows = is_rows != 0,
            .preceding = is_rows != 0 ? 0 : 5,
            .calls = &call,
            .call_count = 1,
        };
        harness_open(harness);
        for (int i = 0; i < 4; i++) {
            memset(text[i], 'a' + i, TEXT_BYTES - (size_t)i);
            ROW(harness, 1000 + 10 * i, v_int(i), v_int(7), v_text(text[i]));
        }
        assert_int_equal(OPERATOR_DONE, harness_advance(harness, WATERMARK_MAX));
        assert_int_equal(4, harness->line_count);
        for (int i = 0; i < 4; i++) {
            char line[HARNESS_LINE_BYTES] = {0};
            const int bytes = TEXT_BYTES - i;
            (void)snprintf(line, sizeof(line), "+I(%d, 7, %d bytes, %d bytes)", i, bytes, bytes);
            assert_string_equal(line, harness->lines[i]);
        }
        harness_destroy(harness);
    }
}

static void test_rows_equal_the_model_when_rows_come_late(void **context)
{
    sweep(true, false, false, 3, 200, 250);
    sweep(true, false, false, 0, 200, 50);
    sweep(true, false, false, 20, 400, 100);
}

static void test_unbounded_equals_the_model_when_rows_come_late(void **context)
{
    sweep(false, true, false, 0, 300, 100);
    sweep(true, true, false, 0, 300, 100);
}

/* The watermark lies behind every row, so that nothing that a row can reach is given up. */
static void test_on_arrival_equals_the_model_when_rows_come_unordered(void **context)
{
    sweep(false, false, true, 300, 200, 250);
    sweep(false, false, true, 0, 200, 250);
    sweep(true, false, true, 3, 200, 250);
    sweep(false, true, true, 0, 200, 250);
}

/* In order and without ties, answers on arrival are those that come by watermark. */
static void test_on_arrival_equals_by_watermark_when_rows_come_in_order(void **context)
{
    const struct aggregate_call calls[] = {
        call_of(AGGREGATE_COUNT, NONE, type_of(TYPE_INT), type_of(TYPE_BIGINT)),
        call_of(AGGREGATE_SUM, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
        call_of(AGGREGATE_MAX, 2, type_of(TYPE_INT), type_of(TYPE_INT)),
    };
    static const struct model shapes[] = {
        {.preceding = 700},
        {.is_rows = true, .preceding = 5},
        {.unbounded = true},
    };
    for (uint32_t shape = 0; shape < COUNT_OF(shapes); shape++) {
        struct model waits = shapes[shape];
        struct model answers = shapes[shape];
        answers.on_arrival = true;
        struct harness *first = over_create(&waits, calls, 3);
        struct harness *second = over_create(&answers, calls, 3);
        waits.random = 99;
        int64_t now_ms = 5000;
        for (int64_t id = 0; id < 3000; id++) {
            /* Now and then a pause, long enough for keys to end. */
            now_ms += 1 + (int64_t)draw(&waits, draw(&waits, 500) == 0 ? 4000000 : 30);
            const struct value row[] = {v_int(id), v_int((int64_t)draw(&waits, 9)),
                                        v_int((int64_t)draw(&waits, 1000))};
            harness_row(first, ROW_INSERT, now_ms, row);
            harness_row(second, ROW_INSERT, now_ms, row);
            if (id % 7 == 0) {
                assert_int_equal(OPERATOR_DONE, harness_advance(first, now_ms - 100));
                assert_int_equal(OPERATOR_DONE, harness_advance(second, now_ms - 100));
            }
        }
        assert_int_equal(OPERATOR_DONE, harness_advance(first, WATERMARK_MAX));
        assert_int_equal(OPERATOR_DONE, harness_advance(second, WATERMARK_MAX));
        harness_expect(second, (const char *const *)first->lines, first->line_count);
        harness_destroy(first);
        harness_destroy(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_equals_the_model_when_rows_come_unordered),
        cmocka_unit_test(test_range_equals_the_model_when_rows_come_late),
        cmocka_unit_test(test_long_rows_keep_their_columns_when_others_leave),
        cmocka_unit_test(test_rows_equal_the_model_when_rows_come_late),
        cmocka_unit_test(test_unbounded_equals_the_model_when_rows_come_late),
        cmocka_unit_test(test_on_arrival_equals_the_model_when_rows_come_unordered),
        cmocka_unit_test(test_on_arrival_equals_by_watermark_when_rows_come_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
