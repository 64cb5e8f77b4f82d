/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator with state, with an arena that refuses its n-th page and all after it, for n = 1,
 * 2, ... until a run goes through: each failure is said in words that name the size and the key,
 * the heap and the arena stay sound, and closing frees what is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "state/arena.h"
#include "state/heap.h"
#include "tests/dataplane/operator/harness.h"

#define NONE   AGGREGATE_COLUMN_NONE
#define ARENA  ((size_t)8 << 20)
#define KEYS   150
#define ROUNDS 8

static const uint32_t key_column[] = {0};

/* Columns: key STRING, value INT, text STRING. */
struct shape {
    void (*plan)(struct plan_node *node);
    const struct aggregate_call *calls;
    uint32_t call_count;
    bool retracts;
    bool ticks;
    bool is_over; /* output: input columns, then calls; else key, then calls */
};

static struct harness *shape_create(const struct shape *shape)
{
    const struct type input[3] = {type_of(TYPE_VARCHAR), type_of(TYPE_INT), type_of(TYPE_VARCHAR)};
    struct type output[HARNESS_COLUMNS_MAX] = {input[0], input[1], input[2]};
    const uint32_t first = shape->is_over ? 3 : 1;
    for (uint32_t i = 0; i < shape->call_count; i++) {
        output[first + i] = shape->calls[i].result_type;
    }
    struct harness *harness = harness_create(input, 3, output, first + shape->call_count, ARENA);
    shape->plan(&harness->node);
    harness_open(harness);
    return harness;
}

static enum operator_verdict step(struct harness *harness, const struct shape *shape, int64_t round)
{
    static char text[6000];
    memset(text, 'x', sizeof(text) - 1);
    char key[64];
    for (int64_t i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof(key), "a key of some length, number %d",
                       (int)(i % (KEYS - round)));
        /* Short texts, those of a block, and a few of several pages. */
        text[i % 50 == 0 ? 5500 : i % 7 == 0 ? 700 : 12] = 0;
        const struct value values[3] = {v_text(key), v_int(i * 7 % 31 + round), v_text(text)};
        const enum row_kind kind =
            shape->retracts && round > 3 && i % 3 == 0 ? ROW_DELETE : ROW_INSERT;
        if (harness->parcel->row_count == PARCEL_ROWS_MAX / 2) {
            const enum operator_verdict verdict = harness_process(harness);
            if (verdict != OPERATOR_DONE) {
                return verdict;
            }
        }
        harness_row(harness, kind, 1000 * round + i * 5 + 1, values);
        text[i % 50 == 0 ? 5500 : i % 7 == 0 ? 700 : 12] = 'x';
    }
    enum operator_verdict verdict = harness_process(harness);
    if (verdict == OPERATOR_DONE && shape->ticks) {
        verdict = harness_tick(harness, 2000 * (round + 1));
    }
    return verdict == OPERATOR_DONE ? harness_advance(harness, 1000 * round + 500) : verdict;
}

/* Runs with the n-th acquire refused.
 * returns  whether the run went through */
static bool run(const struct shape *shape, uint32_t fail_after)
{
    struct harness *harness = shape_create(shape);
    if (shape->ticks) {
        assert_int_equal(OPERATOR_DONE, harness_tick(harness, 1));
    }
    arena_fail_after(harness->context.arena, fail_after);
    enum operator_verdict verdict = OPERATOR_DONE;
    for (int64_t round = 0; round < ROUNDS && verdict == OPERATOR_DONE; round++) {
        verdict = step(harness, shape, round);
    }
    if (verdict == OPERATOR_DONE) {
        verdict = harness_advance(harness, WATERMARK_MAX);
    }
    if (verdict == OPERATOR_FAILED) {
        const char *reason = harness->context.failure.text;
        assert_non_null(strstr(reason, "state is full"));
        assert_non_null(strstr(reason, "memory.state_mib"));
    }
    arena_fail_after(harness->context.arena, 0);
    while (heap_has_queue(harness->context.heap)) {
        (void)heap_poll(harness->context.heap, 64);
    }
    harness->parcel->row_count = 0;
    harness_destroy(harness); /* checks heap and arena */
    return verdict == OPERATOR_DONE;
}

static void run_all(const struct shape *shape)
{
    uint32_t fail_after = 1;
    while (!run(shape, fail_after)) {
        /* Each early one, then with gaps: later ones differ little. */
        fail_after += fail_after < 120 ? 1 : fail_after / 40;
        assert_true(fail_after < 5000);
    }
    assert_true(fail_after > 20); /* the run did take pages */
}

static struct aggregate_call group_calls[6];
static struct aggregate_call over_calls[4];

static void calls_fill(void)
{
    const struct type number = type_of(TYPE_INT);
    const struct type large = type_of(TYPE_BIGINT);
    const struct type text = type_of(TYPE_VARCHAR);
    group_calls[0] = call_of(AGGREGATE_COUNT, NONE, large, large);
    group_calls[1] = call_of(AGGREGATE_SUM, 1, number, number);
    group_calls[2] = call_of(AGGREGATE_MAX, 1, number, number);
    group_calls[3] = call_of(AGGREGATE_COUNT, 2, text, large);
    group_calls[3].distinct = true;
    group_calls[4] = call_of(AGGREGATE_LISTAGG, 2, text, text);
    group_calls[5] = call_of(AGGREGATE_MIN, 2, text, text);
    over_calls[0] = group_calls[0];
    over_calls[1] = group_calls[2];
    over_calls[2] = call_of(AGGREGATE_LAST_VALUE, 2, text, text);
    over_calls[3] = group_calls[3];
}

static void plan_group(struct plan_node *node)
{
    node->operator= PLAN_GROUP;
    node->group = (struct plan_group){.key = {.columns = key_column, .count = 1},
                                      .calls = group_calls,
                                      .call_count = 6,
                                      .send_update_before = true};
}

static void plan_group_retracting(struct plan_node *node)
{
    plan_group(node);
    node->group.input_updates = true;
}

static void plan_group_mortal(struct plan_node *node)
{
    plan_group(node);
    node->group.ttl_ms = 2500;
}

static void plan_window(struct plan_node *node)
{
    node->operator= PLAN_WINDOW;
    node->window = (struct plan_window){
        .window = {.kind = PLAN_WINDOW_HOP, .size_ms = 900, .slide_ms = 300, .time_zone = "UTC"},
        .key = {.columns = key_column, .count = 1},
        .calls = group_calls,
        .call_count = 6,
        .window_end_column = PLAN_WINDOW_END_NONE,
    };
}

static void plan_window_zoned(struct plan_node *node)
{
    plan_window(node);
    node->window.window = (struct plan_window_spec){.kind = PLAN_WINDOW_CUMULATE,
                                                    .size_ms = 900,
                                                    .slide_ms = 300,
                                                    .local_clock = true,
                                                    .time_zone = "Asia/Kolkata"};
}

static void plan_over(struct plan_node *node)
{
    node->operator= PLAN_OVER;
    node->over = (struct plan_over){.key = {.columns = key_column, .count = 1},
                                    .preceding = 700,
                                    .calls = over_calls,
                                    .call_count = 4};
}

static void plan_over_rows(struct plan_node *node)
{
    plan_over(node);
    node->over.is_rows = true;
    node->over.preceding = 3;
    node->over.ttl_ms = 2500;
}

static void plan_over_unbounded(struct plan_node *node)
{
    plan_over(node);
    node->over.unbounded = true;
    node->over.ttl_ms = 2500;
}

static void plan_over_arrival(struct plan_node *node)
{
    plan_over(node);
    node->over.on_arrival = true;
}

static void plan_over_arrival_unbounded(struct plan_node *node)
{
    plan_over_unbounded(node);
    node->over.ttl_ms = 0;
    node->over.on_arrival = true;
}

static void plan_over_fused(struct plan_node *node)
{
    static struct plan_over_frame frames[3];
    plan_over(node);
    frames[0] = (struct plan_over_frame){.preceding = 700, .calls = over_calls, .call_count = 2};
    frames[1] = (struct plan_over_frame){
        .is_rows = true, .preceding = 2, .calls = over_calls + 2, .call_count = 1};
    frames[2] =
        (struct plan_over_frame){.unbounded = true, .calls = over_calls + 3, .call_count = 1};
    node->over.frames = frames;
    node->over.frame_count = 3;
}

static void test_group_when_the_nth_page_is_refused_fails_in_words(void **state)
{
    run_all(&(struct shape){.plan = plan_group, .calls = group_calls, .call_count = 6});
    run_all(&(struct shape){
        .plan = plan_group_retracting, .calls = group_calls, .call_count = 6, .retracts = true});
    run_all(&(struct shape){
        .plan = plan_group_mortal, .calls = group_calls, .call_count = 6, .ticks = true});
}

static void test_window_when_the_nth_page_is_refused_fails_in_words(void **state)
{
    run_all(&(struct shape){.plan = plan_window, .calls = group_calls, .call_count = 6});
    run_all(&(struct shape){.plan = plan_window_zoned, .calls = group_calls, .call_count = 6});
}

static void over_run(void (*plan)(struct plan_node *node), bool ticks)
{
    run_all(&(struct shape){
        .plan = plan, .calls = over_calls, .call_count = 4, .ticks = ticks, .is_over = true});
}

static void test_over_when_the_nth_page_is_refused_fails_in_words(void **state)
{
    over_run(plan_over, false);
    over_run(plan_over_rows, true);
    over_run(plan_over_unbounded, true);
    over_run(plan_over_fused, false);
}

static void test_over_on_arrival_when_the_nth_page_is_refused_fails_in_words(void **state)
{
    over_run(plan_over_arrival, false);
    over_run(plan_over_arrival_unbounded, false);
}

int main(void)
{
    calls_fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_when_the_nth_page_is_refused_fails_in_words),
        cmocka_unit_test(test_window_when_the_nth_page_is_refused_fails_in_words),
        cmocka_unit_test(test_over_when_the_nth_page_is_refused_fails_in_words),
        cmocka_unit_test(test_over_on_arrival_when_the_nth_page_is_refused_fails_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
