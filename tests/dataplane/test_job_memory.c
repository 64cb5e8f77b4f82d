/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose GROUP BY makes a group a row, in an arena that holds a part of them: held, it can be
 * drained to an end in order (the policy stop), and where groups expire it goes on by itself as
 * they free pages (the policy pause). Without a reserve it fails in words. */
#include "tests/dataplane/fake_job.h"

#include "dataplane/operator/operator.h"
#include "state/arena.h"
#include "state/heap.h"

#define PAGES 600
#define ROWS  120000

struct fixture {
    struct fake_plan plan;
    struct fake_world world;
    struct fake_memory memory;
    struct job *job;
    void *state;
    struct arena *arena;
    struct heap *heap;
    uint32_t key_column;
    struct aggregate_call calls[1];
    uint64_t now_ns;
    uint32_t sink;
};

static const struct operator_ops *find(enum plan_operator operator)
{
    return operator== PLAN_GROUP ? operator_find(operator) : fake_find(operator);
}

static void begin(struct fixture *f, uint32_t reserve_pages, uint64_t ttl_ms)
{
    memset(f, 0, sizeof(*f));
    fake_plan_init(&f->plan);
    fake_world_init(&f->world, 0, 1);
    f->world.rows_a_source = ROWS;
    f->key_column = 1;
    f->calls[0] = (struct aggregate_call){.function = AGGREGATE_COUNT,
                                          .argument = AGGREGATE_COLUMN_NONE,
                                          .filter = AGGREGATE_COLUMN_NONE,
                                          .argument_type = {.kind = TYPE_BIGINT},
                                          .result_type = {.kind = TYPE_BIGINT}};
    (void)fake_node(&f->plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    const uint32_t group = fake_node(&f->plan, PLAN_GROUP, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    f->plan.nodes[group].group = (struct plan_group){
        .key = {.columns = &f->key_column, .count = 1},
        .calls = f->calls,
        .call_count = 1,
        .ttl_ms = ttl_ms,
    };
    f->sink = fake_node(&f->plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(group));
    struct job_config config = fake_config(&f->plan, 1, &f->world, &f->memory);
    config.find_operator = find;
    const size_t bytes = (size_t)PAGES * ARENA_PAGE_BYTES;
    f->state = aligned_alloc(ARENA_PAGE_BYTES, bytes);
    const struct arena_config arena = {.memory = f->state,
                                       .bytes = bytes,
                                       .shard_count = 4,
                                       .warn_pages_free = PAGES / 5,
                                       .reserve_pages = reserve_pages};
    assert_int_equal(arena_create(&arena, &f->arena, NULL), 0);
    assert_int_equal(heap_create(f->arena, &f->heap, NULL), 0);
    config.lanes[0].arena = f->arena;
    config.lanes[0].heap = f->heap;
    struct error error = {0};
    if (job_create(&config, &f->job, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void end(struct fixture *f)
{
    job_destroy(f->job);
    heap_check(f->heap);
    arena_check(f->arena);
    heap_destroy(f->heap);
    free(f->state);
    fake_memory_free(&f->memory);
    fake_world_free(&f->world);
}

/* A turn a millisecond. */
static enum job_state turn(struct fixture *f)
{
    f->now_ns += 1000000;
    (void)job_lane_poll(f->job, 0, f->now_ns);
    return job_lane_state(f->job, 0);
}

static size_t answered(const struct fixture *f)
{
    return f->world.logs[f->sink].count;
}

static void turn_until_held(struct fixture *f)
{
    for (uint32_t i = 0; i < 10000 && !job_is_held(f->job); i++) {
        assert_int_equal(turn(f), JOB_RUNNING);
    }
    assert_true(job_is_held(f->job));
}

static void test_tiny_arena_when_drained_then_every_row_read_is_answered(void **state)
{
    struct fixture f;
    begin(&f, PAGES / 4, 0);
    turn_until_held(&f);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(turn(&f), JOB_RUNNING);
    }
    const uint64_t rows = job_stage(f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT];
    assert_true(rows > 1000 && rows < ROWS);
    assert_int_equal(answered(&f), rows);
    assert_int_equal(job_lane_memory(f.job, 0), JOB_MEMORY_FULL);
    job_lane_drain(f.job, 0, false);
    for (uint32_t i = 0; i < 100 && turn(&f) == JOB_RUNNING; i++) {
    }
    assert_int_equal(job_lane_state(f.job, 0), JOB_ENDED);
    assert_int_equal(answered(&f), rows);
    end(&f);
}

static void test_tiny_arena_when_groups_expire_then_the_job_goes_on_by_itself(void **state)
{
    struct fixture f;
    begin(&f, PAGES / 4, 500);
    uint32_t held_count = 0;
    bool was_held = false;
    for (uint32_t i = 0; i < 100000 && turn(&f) == JOB_RUNNING; i++) {
        held_count += job_is_held(f.job) && !was_held;
        was_held = job_is_held(f.job);
    }
    assert_int_equal(job_lane_state(f.job, 0), JOB_ENDED);
    assert_int_equal(answered(&f), ROWS);
    assert_true(held_count >= 2);
    assert_true(job_counter(f.job, 1, OPERATOR_EXPIRED) > ROWS / 2);
    end(&f);
}

static void test_tiny_arena_without_reserve_fails_in_words(void **state)
{
    struct fixture f;
    begin(&f, 0, 0);
    for (uint32_t i = 0; i < 10000 && turn(&f) == JOB_RUNNING; i++) {
    }
    assert_int_equal(job_lane_state(f.job, 0), JOB_FAILED);
    assert_non_null(strstr(job_lane_failure(f.job, 0)->text, "state is full"));
    assert_true(answered(&f) < ROWS);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny_arena_when_drained_then_every_row_read_is_answered),
        cmocka_unit_test(test_tiny_arena_when_groups_expire_then_the_job_goes_on_by_itself),
        cmocka_unit_test(test_tiny_arena_without_reserve_fails_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
