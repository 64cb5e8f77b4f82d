/* SPDX-License-Identifier: Apache-2.0 */
/* Timers against a model: an array searched for the least (time, insertion number). */
#include "fixture.h"

#include "state/timers.h"

#define MODEL_MAX 3000U

struct model_timer {
    struct timer_handle handle;
    uint32_t shard;
    uint32_t number;
    bool is_set;
};

struct model {
    struct fixture fixture;
    struct timers *timers;
    uint32_t count;
    uint32_t number;
    struct model_timer list[MODEL_MAX];
};

static void model_open(struct model *model, uint32_t shard_count)
{
    model->count = 0;
    model->number = 0;
    fixture_open(&model->fixture, 8000, shard_count);
    assert_int_equal(timers_create(model->fixture.heap, "timers", &model->timers, NULL), 0);
}

static void model_done(struct model *model)
{
    timers_destroy(model->timers);
    fixture_close(&model->fixture);
}

static bool set(struct model *model, int64_t time_ms)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    struct model_timer *timer = &model->list[model->count];
    assert_true(model->count < MODEL_MAX);
    *timer = (struct model_timer){.number = model->number, .is_set = true};
    timer->shard = fixture_below(&model->fixture, model->fixture.arena->shard_count);
    if (!timers_set(model->timers, timer->shard, time_ms,
                    fixture_key(timer->number, KEY_BYTES_MAX_MADE, bytes), &timer->handle)) {
        return false;
    }
    assert_int_equal(timer->handle.time_ms, time_ms);
    assert_true(timer->handle.sequence != 0);
    model->count++;
    model->number++;
    return true;
}

/* The index of the earliest timer, model->count when there is none. */
static uint32_t earliest(const struct model *model)
{
    uint32_t best = model->count;
    for (uint32_t index = 0; index < model->count; index++) {
        const struct model_timer *timer = &model->list[index];
        if (best == model->count || timer->handle.time_ms < model->list[best].handle.time_ms ||
            (timer->handle.time_ms == model->list[best].handle.time_ms &&
             timer->number < model->list[best].number)) {
            best = index;
        }
    }
    return best;
}

static void forget(struct model *model, uint32_t index)
{
    model->list[index] = model->list[--model->count];
}

static void pop_all(struct model *model, int64_t now_ms)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    uint8_t scratch[KEY_BYTES_MAX_MADE];
    struct timer_due due;
    int64_t next_ms;
    for (;;) {
        const uint32_t index = earliest(model);
        assert_int_equal(timers_next(model->timers, &next_ms), index < model->count);
        const bool is_due = index < model->count && model->list[index].handle.time_ms <= now_ms;
        assert_int_equal(
            timers_pop(model->timers, now_ms, (struct span_mut){scratch, sizeof(scratch)}, &due),
            is_due);
        if (!is_due) {
            return;
        }
        const struct model_timer *timer = &model->list[index];
        const struct span payload = fixture_key(timer->number, KEY_BYTES_MAX_MADE, bytes);
        assert_int_equal(due.time_ms, timer->handle.time_ms);
        assert_int_equal(next_ms, due.time_ms);
        assert_int_equal(due.sequence, timer->handle.sequence);
        assert_int_equal(due.shard, timer->shard);
        assert_int_equal(due.payload.bytes, payload.bytes);
        assert_memory_equal(due.payload.data, payload.data, payload.bytes);
        assert_false(timers_cancel(model->timers, timer->shard, timer->handle));
        forget(model, index);
    }
}

static void test_random_timers_fire_in_order_and_every_barrier_is_rebuilt(void **state)
{
    (void)state;
    struct model model;
    const uint32_t shard_counts[] = {1, 5, 256};
    for (size_t run = 0; run < COUNT_OF(shard_counts); run++) {
        model_open(&model, shard_counts[run]);
        int64_t now_ms = -1000;
        for (uint32_t round = 0; round < 10; round++) {
            fixture_barrier(&model.fixture);
            for (uint32_t step = 0; step < 400; step++) {
                now_ms += fixture_below(&model.fixture, 4);
                assert_true(set(&model, now_ms + fixture_below(&model.fixture, 300)));
                if (step % 3 == 0 && model.count != 0) {
                    const uint32_t index = fixture_below(&model.fixture, model.count);
                    assert_true(timers_cancel(model.timers, model.list[index].shard,
                                              model.list[index].handle));
                    forget(&model, index);
                }
                if (step % 20 == 0) {
                    pop_all(&model, now_ms);
                }
            }
            fixture_barrier_check(&model.fixture);
            timers_check(model.timers);
            assert_int_equal(timers_count(model.timers), model.count);
        }
        pop_all(&model, INT64_MAX);
        assert_int_equal(timers_count(model.timers), 0);
        timers_check(model.timers);
        model_done(&model);
    }
}

static void test_equal_times_in_different_shards_fire_as_they_were_set(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 16);
    for (uint32_t count = 0; count < 500; count++) {
        assert_true(set(&model, count % 3));
    }
    pop_all(&model, 2);
    assert_int_equal(timers_count(model.timers), 0);
    model_done(&model);
}

static void test_extreme_times_keep_their_order(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 2);
    const int64_t times[] = {INT64_MAX, 0, INT64_MIN, -1, 1, INT64_MAX, INT64_MIN};
    for (size_t index = 0; index < COUNT_OF(times); index++) {
        assert_true(set(&model, times[index]));
    }
    pop_all(&model, INT64_MIN);
    assert_int_equal(timers_count(model.timers), 5);
    pop_all(&model, INT64_MAX);
    assert_int_equal(timers_count(model.timers), 0);
    model_done(&model);
}

static void test_set_at_every_nth_refused_page_changes_nothing(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 3);
    uint32_t refused = 0;
    for (uint32_t count = 0; count < 1500; count++) {
        bool is_set = false;
        for (uint32_t after = 1; !is_set; after++) {
            arena_fail_after(model.fixture.arena, after);
            is_set = set(&model, fixture_below(&model.fixture, 10000));
            arena_fail_after(model.fixture.arena, 0);
            if (!is_set) {
                refused++;
                timers_check(model.timers);
                assert_int_equal(timers_count(model.timers), count);
            }
        }
        (void)heap_poll(model.fixture.heap, 100);
    }
    assert_true(refused > 100);
    pop_all(&model, INT64_MAX);
    heap_check(model.fixture.heap);
    model_done(&model);
}

static void test_cancel_of_what_was_never_set_is_false(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 3);
    assert_false(
        timers_cancel(model.timers, 1, (struct timer_handle){.time_ms = 5, .sequence = 1}));
    assert_true(set(&model, 5));
    assert_false(timers_cancel(model.timers, model.list[0].shard, (struct timer_handle){0}));
    struct timer_handle other = model.list[0].handle;
    other.sequence++;
    assert_false(timers_cancel(model.timers, model.list[0].shard, other));
    other = model.list[0].handle;
    other.time_ms--;
    assert_false(timers_cancel(model.timers, model.list[0].shard, other));
    assert_int_equal(timers_count(model.timers), 1);
    model_done(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_timers_fire_in_order_and_every_barrier_is_rebuilt),
        cmocka_unit_test(test_equal_times_in_different_shards_fire_as_they_were_set),
        cmocka_unit_test(test_extreme_times_keep_their_order),
        cmocka_unit_test(test_set_at_every_nth_refused_page_changes_nothing),
        cmocka_unit_test(test_cancel_of_what_was_never_set_is_false),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
