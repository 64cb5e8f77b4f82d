/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's part in checkpoints, step by step: who is told what, and when. The snapshot is the real
 * one of a lane without state; the storage thread is played by the test. */
#include "dataplane/lane_checkpoint.h"
#include "tests/dataplane/fake_job.h"

#include "state/snapshot.h"

/* A record sink that writes down its cuts and arrives when it is told to. */
struct marker {
    struct record_sink base;
    uint64_t cut_id;
    uint64_t arrived_id;
    uint64_t completed_id;
    uint32_t completes;
};

static void marker_cut(struct record_sink *sink, uint64_t id, struct facts_writer *facts)
{
    struct marker *self = (struct marker *)sink;
    assert_true(id > self->cut_id);
    self->cut_id = id;
    struct facts_item item = {.kind = FACTS_TRANSACTION};
    item.transaction = (struct facts_transaction){
        .transactional_id = "tx", .producer_id = (int64_t)id, .state = FACTS_TRANSACTION_PREPARED};
    facts_put(facts, &item);
}

static bool marker_is_settled(struct record_sink *sink, uint64_t id)
{
    return ((struct marker *)sink)->arrived_id >= id;
}

static void marker_complete(struct record_sink *sink, uint64_t id)
{
    struct marker *self = (struct marker *)sink;
    self->completed_id = id;
    self->completes++;
}

static const struct record_sink_ops marker_ops = {
    .cut = marker_cut, .is_settled = marker_is_settled, .complete = marker_complete};

struct fixture {
    struct fake_plan plan;
    struct fake_world world;
    struct fake_memory memory;
    struct job *job;
    struct snapshot *snapshot;
    void *staging;
    struct lane_checkpoint *lanes[1];
    struct marker marker;
    uint64_t durable_id;
    size_t durable_bytes;
    uint64_t now_ns;
};

static void on_durable(void *context, uint32_t lane, uint64_t id, struct span facts)
{
    struct fixture *f = context;
    assert_int_equal(lane, 0);
    f->durable_id = id;
    f->durable_bytes = facts.bytes;
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    fake_plan_init(&f->plan);
    fake_world_init(&f->world, 0, 1);
    f->world.rows_a_source = 100000;
    f->marker.base.ops = &marker_ops;
    (void)fake_node(&f->plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f->plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    struct job_config config = fake_config(&f->plan, 1, &f->world, &f->memory);
    config.hooks = (struct stage_hooks){.cut = lane_checkpoint_cut, .cut_context = f->lanes};
    assert_int_equal(job_create(&config, &f->job, NULL), 0);
    struct snapshot_config snapshot = {.buffer_count = 4, .pages_a_turn = 4};
    const size_t bytes = (snapshot_memory_bytes(&snapshot) + 4095) & ~(size_t)4095;
    f->staging = aligned_alloc(4096, bytes);
    snapshot.memory = f->staging;
    assert_int_equal(snapshot_create(&snapshot, &f->snapshot, NULL), 0);
    const struct lane_checkpoint_config glue = {
        .job = f->job,
        .snapshot = f->snapshot,
        .sinks = {&f->marker.base},
        .sink_count = 1,
        .durable = on_durable,
        .durable_context = f,
    };
    assert_int_equal(lane_checkpoint_create(&glue, &f->lanes[0], NULL), 0);
}

static void end(struct fixture *f)
{
    lane_checkpoint_destroy(f->lanes[0]);
    snapshot_destroy(f->snapshot);
    free(f->staging);
    job_destroy(f->job);
    fake_memory_free(&f->memory);
    fake_world_free(&f->world);
}

static void turn(struct fixture *f)
{
    f->now_ns += 100;
    (void)lane_checkpoint_poll(f->lanes[0], f->now_ns);
    (void)job_lane_poll(f->job, 0, f->now_ns);
}

/* Takes the lane's news as the storage thread does.
 * returns  whether the snapshot is staged and settled */
static bool take_news(struct fixture *f, uint32_t *facts_bytes)
{
    struct snapshot_news news;
    bool is_staged = false;
    while (snapshot_take(f->snapshot, &news)) {
        if (news.kind == SNAPSHOT_NEWS_EXTENT) {
            const struct extent_header *head =
                (const void *)snapshot_buffer(f->snapshot, news.buffer);
            *facts_bytes += head->kind == EXTENT_FACTS ? head->facts_bytes : 0;
            snapshot_give(f->snapshot, news.buffer);
        }
        is_staged = is_staged || news.kind == SNAPSHOT_NEWS_STAGED;
    }
    return is_staged;
}

static void test_checkpoint_when_ordered_then_each_step_in_turn(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t facts_bytes = 0;
    begin(&f);
    turn(&f);
    assert_false(lane_checkpoint_is_open(f.lanes[0]));
    assert_true(snapshot_order(f.snapshot, 5, 0));
    turn(&f);
    assert_int_equal(f.marker.cut_id, 5);
    /* The sink's rows have not arrived: whatever the scan does, it is not complete. */
    for (uint32_t i = 0; i < 20; i++) {
        turn(&f);
        assert_false(take_news(&f, &facts_bytes));
    }
    assert_true(lane_checkpoint_is_open(f.lanes[0]));
    assert_true(facts_bytes > sizeof(struct facts_partition) / 4);
    f.marker.arrived_id = 5;
    turn(&f);
    assert_true(take_news(&f, &facts_bytes));
    assert_false(lane_checkpoint_is_open(f.lanes[0]));
    assert_int_equal(f.marker.completes, 0);
    const struct snapshot_outcome outcome = {.id = 5, .is_durable = true};
    assert_true(snapshot_tell(f.snapshot, &outcome));
    turn(&f);
    assert_int_equal(f.marker.completed_id, 5);
    assert_int_equal(f.durable_id, 5);
    assert_int_equal(f.durable_bytes, facts_bytes);
    const struct lane_checkpoint_counters *counters = lane_checkpoint_counters(f.lanes[0]);
    assert_int_equal(counters->ordered, 1);
    assert_int_equal(counters->cuts, 1);
    assert_int_equal(counters->durable, 1);
    assert_int_equal(counters->settle_ns, 21 * 100);
    end(&f);
}

/* The next complete one stands for what the failed one had cut. */
static void test_checkpoint_when_it_fails_then_sinks_wait_for_the_next(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t facts_bytes = 0;
    begin(&f);
    assert_true(snapshot_order(f.snapshot, 1, 0));
    turn(&f);
    turn(&f);
    const struct snapshot_outcome failed = {.id = 1};
    assert_true(snapshot_tell(f.snapshot, &failed));
    assert_true(snapshot_order(f.snapshot, 2, 0));
    for (uint32_t i = 0; i < 5; i++) {
        turn(&f);
        (void)take_news(&f, &facts_bytes);
    }
    assert_int_equal(f.marker.cut_id, 2);
    assert_int_equal(f.marker.completes, 0);
    f.marker.arrived_id = 2;
    turn(&f);
    assert_true(take_news(&f, &facts_bytes));
    const struct snapshot_outcome durable = {.id = 2, .is_durable = true};
    assert_true(snapshot_tell(f.snapshot, &durable));
    turn(&f);
    assert_int_equal(f.marker.completes, 1);
    assert_int_equal(f.marker.completed_id, 2);
    assert_int_equal(lane_checkpoint_counters(f.lanes[0])->failed, 1);
    end(&f);
}

/* Told of and failed before the lane looked: it never hears of the first. */
static void test_order_when_failed_before_it_was_seen_then_only_the_next_is_cut(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    turn(&f);
    const struct snapshot_outcome failed = {.id = 1};
    assert_true(snapshot_order(f.snapshot, 1, 0));
    assert_true(snapshot_tell(f.snapshot, &failed));
    assert_true(snapshot_order(f.snapshot, 2, 0));
    turn(&f);
    turn(&f);
    assert_int_equal(f.marker.cut_id, 2);
    assert_int_equal(lane_checkpoint_counters(f.lanes[0])->ordered, 1);
    end(&f);
}

static void test_lane_when_held_then_nothing_enters(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    turn(&f);
    const size_t before = f.world.logs[1].count;
    assert_true(before > 0);
    job_lane_hold(f.job, 0, true);
    (void)job_lane_poll(f.job, 0, 1000);
    (void)job_lane_poll(f.job, 0, 1001);
    assert_int_equal(f.world.logs[1].count, before);
    assert_false(job_lane_was_busy(f.job, 0));
    job_lane_hold(f.job, 0, false);
    (void)job_lane_poll(f.job, 0, 1002);
    assert_true(f.world.logs[1].count > before);
    assert_true(job_lane_was_busy(f.job, 0));
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_when_ordered_then_each_step_in_turn),
        cmocka_unit_test(test_checkpoint_when_it_fails_then_sinks_wait_for_the_next),
        cmocka_unit_test(test_order_when_failed_before_it_was_seen_then_only_the_next_is_cut),
        cmocka_unit_test(test_lane_when_held_then_nothing_enters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
