/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a lane: order within a turn, commands, events, failing and parking, a real thread. */
#include "tests/dataplane/fake_job.h"

#include <pthread.h>
#include <sched.h>

#include "dataplane/lane.h"
#include "state/arena.h"
#include "state/heap.h"

struct fixture {
    struct fake_plan plan;
    struct fake_world world;
    struct fake_memory memory;
    struct job *job;
    struct lane *lane;
    void *state;
    struct arena *arena;
    struct heap *heap;
    char order[64];
    uint32_t polls;
    uint64_t now_ns;
};

static uint32_t poll_before(void *context, uint64_t now_ns)
{
    struct fixture *f = context;
    f->polls++;
    if (strlen(f->order) + 2 < sizeof(f->order)) {
        strcat(f->order, "b");
    }
    return 0;
}

static uint32_t poll_after(void *context, uint64_t now_ns)
{
    struct fixture *f = context;
    if (strlen(f->order) + 2 < sizeof(f->order)) {
        strcat(f->order, "a");
    }
    return 0;
}

static uint64_t now(void *context)
{
    return ++((struct fixture *)context)->now_ns;
}

static void begin(struct fixture *f, const struct operator_ops *(*find)(enum plan_operator))
{
    memset(f, 0, sizeof(*f));
    fake_plan_init(&f->plan);
    fake_world_init(&f->world, 0, 1);
    f->world.rows_a_source = 100;
    (void)fake_node(&f->plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f->plan, PLAN_CALC, FAKE_COPY, PLAN_FORWARD, FAKE_INPUTS(0));
    (void)fake_node(&f->plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    struct job_config config = fake_config(&f->plan, 1, &f->world, &f->memory);
    config.find_operator = find;
    struct error error = {0};
    const size_t bytes = (size_t)64 * ARENA_PAGE_BYTES;
    f->state = aligned_alloc(ARENA_PAGE_BYTES, bytes);
    const struct arena_config arena = {.memory = f->state, .bytes = bytes, .shard_count = 1};
    assert_int_equal(arena_create(&arena, &f->arena, &error), 0);
    assert_int_equal(heap_create(f->arena, &f->heap, &error), 0);
    config.lanes[0].arena = f->arena;
    config.lanes[0].heap = f->heap;
    assert_int_equal(job_create(&config, &f->job, &error), 0);
    const struct lane_config lane = {
        .job = f->job,
        .before = {{.poll = poll_before, .context = f}},
        .before_count = 1,
        .after = {{.poll = poll_after, .context = f}},
        .after_count = 1,
        .idle = LANE_IDLE_YIELD,
        .now = now,
        .now_context = f,
    };
    assert_int_equal(lane_create(&lane, &f->lane, &error), 0);
}

static void end(struct fixture *f)
{
    lane_destroy(f->lane);
    job_destroy(f->job);
    heap_destroy(f->heap);
    free(f->state);
    fake_memory_free(&f->memory);
    fake_world_free(&f->world);
}

static void expect_event(struct fixture *f, enum lane_event_kind kind)
{
    struct lane_event event = {0};
    assert_true(lane_event(f->lane, &event));
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.lane, 0);
}

static void test_turn_polls_before_job_after_and_reports_the_end(void **state)
{
    struct fixture f;
    begin(&f, fake_find);
    struct lane_event event;
    assert_true(lane_turn(f.lane, 1) > 0);
    assert_string_equal(f.order, "ba");
    for (uint64_t i = 2; i < 20; i++) {
        (void)lane_turn(f.lane, i);
    }
    assert_int_equal(f.world.logs[2].count, 100);
    expect_event(&f, LANE_EVENT_ENDED);
    assert_false(lane_event(f.lane, &event));
    assert_int_equal(f.polls, 19);
    assert_int_equal(lane_counters(f.lane)->turns, 19);
    end(&f);
}

static void test_memory_that_crosses_a_line_is_told_once(void **state)
{
    struct fixture f;
    begin(&f, fake_find);
    struct lane_event event = {0};
    (void)lane_turn(f.lane, 1);
    assert_false(lane_event(f.lane, &event));
    f.arena->warn_pages_free = 1000;
    (void)lane_turn(f.lane, 2);
    (void)lane_turn(f.lane, 3);
    assert_true(lane_event(f.lane, &event));
    assert_int_equal(event.kind, LANE_EVENT_STATE_LOW);
    assert_int_equal(event.value, arena_pages_free(f.arena));
    assert_false(lane_event(f.lane, &event));
    f.arena->reserve_pages = 1000;
    (void)lane_turn(f.lane, 4);
    expect_event(&f, LANE_EVENT_STATE_FULL);
    f.arena->reserve_pages = 0;
    f.arena->warn_pages_free = 0;
    (void)lane_turn(f.lane, 5);
    expect_event(&f, LANE_EVENT_STATE_FINE);
    assert_false(lane_event(f.lane, &event));
    end(&f);
}

static void count_call(void *context, int64_t value)
{
    *(int64_t *)context += value;
}

static void test_commands_run_on_the_lane_in_order(void **state)
{
    struct fixture f;
    begin(&f, fake_find);
    f.world.rows_a_source = 1000000;
    int64_t called = 0;
    const struct lane_command call = {
        .kind = LANE_COMMAND_CALL, .call = count_call, .context = &called, .value = 7};
    assert_true(lane_command(f.lane, &call));
    assert_true(lane_command(f.lane, &call));
    (void)lane_turn(f.lane, 1);
    assert_int_equal(called, 14);
    assert_true(lane_command(f.lane, &(struct lane_command){.kind = LANE_COMMAND_DRAIN}));
    for (uint64_t i = 2; i < 20; i++) {
        (void)lane_turn(f.lane, i);
    }
    expect_event(&f, LANE_EVENT_ENDED);
    assert_false(lane_is_stopped(f.lane));
    assert_true(lane_command(f.lane, &(struct lane_command){.kind = LANE_COMMAND_STOP}));
    (void)lane_turn(f.lane, 30);
    assert_true(lane_is_stopped(f.lane));
    end(&f);
}

static void test_command_ring_when_full_then_refuses(void **state)
{
    struct fixture f;
    begin(&f, fake_find);
    int64_t called = 0;
    const struct lane_command call = {
        .kind = LANE_COMMAND_CALL, .call = count_call, .context = &called, .value = 1};
    int64_t sent = 0;
    while (lane_command(f.lane, &call)) {
        sent++;
    }
    assert_int_equal(sent, LANE_COMMANDS_MAX - 1);
    (void)lane_turn(f.lane, 1);
    assert_int_equal(called, sent);
    end(&f);
}

static enum operator_verdict fail_process(struct operator* base, uint32_t input,
                                          const struct parcel *parcel)
{
    struct fake_operator *self = (struct fake_operator *)base;
    (void)error_set(&self->context->failure, 0, "division by zero");
    return OPERATOR_FAILED;
}

static int fail_open(const struct plan_node *node, const struct row_layout *const *inputs,
                     struct operator_context *context, struct operator** out, struct error *error)
{
    static const struct operator_ops failing = {
        .name = "Failing",
        .process = fail_process,
        .close = fake_operator_close,
    };
    const int code = fake_operator_open(node, inputs, context, out, error);
    (*out)->ops = &failing;
    return code;
}

static const struct operator_ops *find_failing(enum plan_operator operator)
{
    static const struct operator_ops opening = {.name = "Failing", .open = fail_open};
    return &opening;
}

static void test_lane_when_an_operator_fails_then_parks_with_the_reason(void **state)
{
    struct fixture f;
    begin(&f, find_failing);
    (void)lane_turn(f.lane, 1);
    expect_event(&f, LANE_EVENT_FAILED);
    assert_string_equal(lane_failure(f.lane)->text, "division by zero");
    assert_string_equal(lane_failure(f.lane)->place, "node 1");
    const uint32_t polls = f.polls;
    const uint64_t rows = job_stage(f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT];
    (void)lane_turn(f.lane, 2);
    assert_int_equal(f.polls, polls + 1);
    assert_int_equal(job_stage(f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT], rows);
    struct lane_event event;
    assert_false(lane_event(f.lane, &event));
    end(&f);
}

static void *run_loop(void *context)
{
    lane_run(context);
    return NULL;
}

static void wait_for(struct fixture *f, enum lane_event_kind kind)
{
    struct lane_event event = {0};
    while (!lane_event(f->lane, &event)) {
        (void)sched_yield();
    }
    assert_int_equal(event.kind, kind);
}

static void test_loop_in_a_thread_starts_ends_and_stops(void **state)
{
    struct fixture f;
    begin(&f, fake_find);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_loop, f.lane), 0);
    wait_for(&f, LANE_EVENT_STARTED);
    wait_for(&f, LANE_EVENT_ENDED);
    assert_true(lane_command(f.lane, &(struct lane_command){.kind = LANE_COMMAND_STOP}));
    wait_for(&f, LANE_EVENT_STOPPED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(f.world.logs[2].count, 100);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn_polls_before_job_after_and_reports_the_end),
        cmocka_unit_test(test_memory_that_crosses_a_line_is_told_once),
        cmocka_unit_test(test_commands_run_on_the_lane_in_order),
        cmocka_unit_test(test_command_ring_when_full_then_refuses),
        cmocka_unit_test(test_lane_when_an_operator_fails_then_parks_with_the_reason),
        cmocka_unit_test(test_loop_in_a_thread_starts_ends_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
