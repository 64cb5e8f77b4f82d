/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs over hand-made plans: order and balance over exchanges, watermarks over inputs, tiny pools
 * and rings that must never lock, independence of parcel sizes, draining, two threads. */
#include "tests/dataplane/fake_job.h"

#include <pthread.h>
#include <sched.h>

#include "state/arena.h"
#include "state/heap.h"

#define LANES_MAX 4

struct fixture {
    struct fake_plan plan;
    struct fake_world worlds[LANES_MAX];
    struct fake_memory memory;
    struct job *job;
};

static void begin(struct fixture *fixture, uint32_t lane_count)
{
    memset(fixture, 0, sizeof(*fixture));
    fake_plan_init(&fixture->plan);
    for (uint32_t i = 0; i < LANES_MAX; i++) {
        fake_world_init(&fixture->worlds[i], i, lane_count);
    }
}

static void start(struct fixture *fixture, const struct job_config *config)
{
    struct error error = {0};
    if (job_create(config, &fixture->job, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void end(struct fixture *fixture)
{
    job_destroy(fixture->job);
    fake_memory_free(&fixture->memory);
    for (uint32_t i = 0; i < LANES_MAX; i++) {
        fake_world_free(&fixture->worlds[i]);
    }
}

static size_t logged(const struct fixture *fixture, uint32_t node)
{
    size_t count = 0;
    for (uint32_t i = 0; i < LANES_MAX; i++) {
        count += fixture->worlds[i].logs[node].count;
    }
    return count;
}

/* Every number once, each key on one lane, and within a key and sender in order. */
static void check_exchanged(const struct fixture *fixture, uint32_t node, uint32_t lane_count)
{
    uint64_t seen[LANES_MAX * 1000 / 64 + 1] = {0};
    int lane_of_key[17];
    memset(lane_of_key, -1, sizeof(lane_of_key));
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        int64_t last[17][LANES_MAX];
        memset(last, -1, sizeof(last));
        const struct fake_sink_log *log = &fixture->worlds[lane].logs[node];
        for (size_t i = 0; i < log->count; i++) {
            const struct fake_row *row = &log->rows[i];
            assert_int_equal((seen[row->number / 64] >> (row->number % 64)) & 1, 0);
            seen[row->number / 64] |= UINT64_C(1) << (row->number % 64);
            assert_true(lane_of_key[row->key] == -1 || lane_of_key[row->key] == (int)lane);
            lane_of_key[row->key] = (int)lane;
            int64_t *before = &last[row->key][row->number % lane_count];
            assert_true(row->number > *before);
            *before = row->number;
        }
    }
}

static void test_chain_on_one_lane_keeps_all_rows_in_order(void **state)
{
    struct fixture f;
    begin(&f, 1);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_CALC, FAKE_COPY, PLAN_FORWARD, FAKE_INPUTS(0));
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(1));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(2));
    const struct job_config config = fake_config(&f.plan, 1, f.worlds, &f.memory);
    start(&f, &config);
    fake_run(f.job, 1, 200);
    assert_int_equal(f.worlds[0].logs[sink].count, 1000);
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(f.worlds[0].logs[sink].rows[i].number, i);
    }
    assert_int_equal(job_lane_held_rows(f.job, 0), 0);
    assert_int_equal(job_stage(f.job, 0, 2)->stage_counters[STAGE_ROWS_IN], 1000);
    assert_int_equal(job_stage(f.job, 0, 2)->stage_counters[STAGE_ROWS_OUT], 1000);
    end(&f);
}

static void test_one_turn_takes_a_record_from_source_to_sink(void **state)
{
    struct fixture f;
    begin(&f, 1);
    f.worlds[0].rows_a_source = 1;
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_CALC, FAKE_COPY, PLAN_FORWARD, FAKE_INPUTS(0));
    (void)fake_node(&f.plan, PLAN_CALC, FAKE_COPY, PLAN_FORWARD, FAKE_INPUTS(1));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(2));
    const struct job_config config = fake_config(&f.plan, 1, f.worlds, &f.memory);
    start(&f, &config);
    (void)job_lane_poll(f.job, 0, 1);
    assert_int_equal(f.worlds[0].logs[sink].count, 1);
    end(&f);
}

static void test_exchange_by_hash_keeps_keys_together_and_in_order(void **state)
{
    for (uint32_t lane_count = 2; lane_count <= LANES_MAX; lane_count++) {
        struct fixture f;
        begin(&f, lane_count);
        (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
        (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
        const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
        const struct job_config config = fake_config(&f.plan, lane_count, f.worlds, &f.memory);
        start(&f, &config);
        fake_run(f.job, lane_count, 2000);
        assert_int_equal(logged(&f, sink), 1000 * lane_count);
        check_exchanged(&f, sink, lane_count);
        end(&f);
    }
}

static void test_roles_on_separate_lanes_bring_rows_through(void **state)
{
    struct fixture f;
    begin(&f, 1);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    struct job_config config = fake_config(&f.plan, 4, f.worlds, &f.memory);
    for (uint32_t i = 0; i < 4; i++) {
        config.lanes[i].receive = i == 0;
        config.lanes[i].operate = i == 1 || i == 2;
        config.lanes[i].transmit = i == 3;
    }
    start(&f, &config);
    fake_run(f.job, 4, 2000);
    assert_int_equal(f.worlds[3].logs[sink].count, 1000);
    assert_null(job_stage(f.job, 0, sink));
    assert_non_null(job_stage(f.job, 2, 1));
    assert_true(job_stage(f.job, 1, 1)->stage_counters[STAGE_ROWS_IN] > 100);
    assert_true(job_stage(f.job, 2, 1)->stage_counters[STAGE_ROWS_IN] > 100);
    end(&f);
}

static void test_shared_source_feeds_every_consumer(void **state)
{
    struct fixture f;
    begin(&f, 2);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    (void)fake_node(&f.plan, PLAN_CALC, FAKE_DOUBLE, PLAN_FORWARD, FAKE_INPUTS(0));
    const uint32_t a = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    const uint32_t b = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    const uint32_t c = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(2));
    const uint32_t d = fake_node(&f.plan, PLAN_SINK, 0, PLAN_SINGLE, FAKE_INPUTS(2));
    const struct job_config config = fake_config(&f.plan, 2, f.worlds, &f.memory);
    start(&f, &config);
    fake_run(f.job, 2, 2000);
    assert_int_equal(logged(&f, a), 2000);
    assert_int_equal(logged(&f, b), 2000);
    assert_int_equal(logged(&f, c), 4000);
    assert_int_equal(f.worlds[0].logs[d].count, 4000);
    check_exchanged(&f, b, 2);
    end(&f);
}

static void test_watermark_of_two_inputs_is_the_minimum(void **state)
{
    struct fixture f;
    begin(&f, 2);
    f.worlds[0].watermark_every = 10;
    f.worlds[1].watermark_every = 70;
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_UNION, 0, PLAN_FORWARD, FAKE_INPUTS(0, 1));
    /* FAKE_HOLD asserts that no row comes behind the watermark. */
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_HOLD, PLAN_HASH, FAKE_INPUTS(2));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(3));
    const struct job_config config = fake_config(&f.plan, 2, f.worlds, &f.memory);
    start(&f, &config);
    fake_run(f.job, 2, 5000);
    assert_int_equal(logged(&f, sink), 4000);
    for (uint32_t lane = 0; lane < 2; lane++) {
        const struct fake_sink_log *log = &f.worlds[lane].logs[sink];
        for (size_t i = 1; i < log->count; i++) {
            assert_true(log->rows[i].time_ms >= log->rows[i - 1].time_ms);
        }
        assert_int_equal(job_stage(f.job, lane, sink)->watermark.value_ms, WATERMARK_MAX);
    }
    end(&f);
}

/* A random graph: sources, then operators of every kind over earlier nodes, a sink on each end. */
static uint32_t random_plan(struct fake_plan *plan, uint64_t *random)
{
    const uint32_t sources = 1 + (uint32_t)fake_random(random) % 2;
    for (uint32_t i = 0; i < sources; i++) {
        (void)fake_node(plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    }
    const uint32_t operators = 2 + (uint32_t)fake_random(random) % 5;
    uint32_t doubles = 0;
    for (uint32_t i = 0; i < operators; i++) {
        const uint32_t below = plan->plan.node_count;
        const uint32_t a = (uint32_t)fake_random(random) % below;
        const uint32_t b = (uint32_t)fake_random(random) % below;
        const enum plan_distribution distribution =
            (enum plan_distribution)(fake_random(random) % 3);
        enum fake_kind kind = (enum fake_kind)(fake_random(random) % 3);
        kind = kind == FAKE_DOUBLE && ++doubles > 2 ? FAKE_COPY : kind;
        if (fake_random(random) % 4 == 0) {
            (void)fake_node(plan, PLAN_UNION, 0, PLAN_FORWARD, FAKE_INPUTS(a, b));
        } else {
            (void)fake_node(plan, PLAN_OVER, kind, distribution, FAKE_INPUTS(a));
        }
    }
    const uint32_t inner = plan->plan.node_count;
    for (uint32_t i = 0; i < inner; i++) {
        if (i + 1 == inner || fake_random(random) % 3 == 0) {
            const enum plan_distribution distribution =
                (enum plan_distribution)(fake_random(random) % 3);
            (void)fake_node(plan, PLAN_SINK, 0, distribution, FAKE_INPUTS(i));
        }
    }
    return sources;
}

/* How many rows leave a node in all. */
static uint64_t rows_of(const struct fake_plan *plan, uint32_t id, uint64_t a_source)
{
    const struct plan_node *node = &plan->nodes[id];
    if (node->operator== PLAN_SOURCE) {
        return a_source;
    }
    uint64_t rows = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        rows += rows_of(plan, node->inputs[i], a_source);
    }
    return node->operator== PLAN_OVER && node->line == FAKE_DOUBLE ? 2 * rows : rows;
}

/* Makes the job with the smallest pool that job_create takes: a refusal says how many parcels the
 * lane that it looked at wants. */
static void start_with_smallest_pool(struct fixture *f, struct job_config *config)
{
    struct error error = {0};
    config->classes[0].count = 1;
    while (job_create(config, &f->job, &error) != 0) {
        const char *at = strstr(error.text, "at least ");
        assert_non_null(at);
        const uint32_t wanted = (uint32_t)strtoul(at + 9, NULL, 10);
        assert_true(wanted > config->classes[0].count);
        config->classes[0].count = wanted;
    }
}

static void run_random_graph(uint64_t seed)
{
    struct fixture f;
    const uint32_t lane_count = 1 + (uint32_t)(seed % LANES_MAX);
    uint64_t random = seed * 77 + 1;
    begin(&f, lane_count);
    (void)random_plan(&f.plan, &random);
    for (uint32_t i = 0; i < lane_count; i++) {
        f.worlds[i].rows_a_source = 150;
        f.worlds[i].watermark_every = (int64_t)(fake_random(&random) % 20);
        f.worlds[i].refuse_of_16 = (uint32_t)fake_random(&random) % 12;
    }
    struct job_config config = fake_config(&f.plan, lane_count, f.worlds, &f.memory);
    config.ring_items = 2;
    config.parcel_rows_max = 1 + (uint32_t)(fake_random(&random) % 4);
    config.queue_rows_max = 4 + (uint32_t)(fake_random(&random) % 8);
    config.records_a_turn = 1 + (uint32_t)(fake_random(&random) % 16);
    config.classes[0].bytes = 256;
    start_with_smallest_pool(&f, &config);
    fake_run(f.job, lane_count, 200000);
    for (uint32_t i = 0; i < f.plan.plan.node_count; i++) {
        if (f.plan.nodes[i].operator== PLAN_SINK) {
            assert_int_equal(logged(&f, i), rows_of(&f.plan, i, 150 * lane_count));
        }
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        assert_int_equal(job_lane_held_rows(f.job, i), 0);
    }
    end(&f);
}

static void test_random_graphs_with_tiny_pools_and_rings_never_lock(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        run_random_graph(seed);
    }
}

static void test_settled_order_does_not_depend_on_parcel_size(void **state)
{
    const uint32_t sizes[] = {1, 3, 8, 256};
    struct fake_row *first = NULL;
    size_t first_count = 0;
    for (uint32_t s = 0; s < COUNT_OF(sizes); s++) {
        struct fixture f;
        begin(&f, 1);
        f.worlds[0].watermark_every = 37;
        (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
        (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
        (void)fake_node(&f.plan, PLAN_OVER, FAKE_HOLD, PLAN_HASH, FAKE_INPUTS(0));
        (void)fake_node(&f.plan, PLAN_CALC, FAKE_DOUBLE, PLAN_FORWARD, FAKE_INPUTS(1));
        (void)fake_node(&f.plan, PLAN_UNION, 0, PLAN_FORWARD, FAKE_INPUTS(2, 3, 0));
        const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(4));
        struct job_config config = fake_config(&f.plan, 1, f.worlds, &f.memory);
        config.parcel_rows_max = sizes[s];
        config.classes[0].count = 4096;
        config.settle = true;
        config.queue_rows_max = 20; /* so that held rows come out in many portions */
        start(&f, &config);
        fake_run(f.job, 1, 2000);
        struct fake_sink_log *log = &f.worlds[0].logs[sink];
        assert_int_equal(log->count, 4000);
        if (first == NULL) {
            first = log->rows;
            first_count = log->count;
            *log = (struct fake_sink_log){0};
        } else {
            assert_int_equal(log->count, first_count);
            assert_memory_equal(log->rows, first, first_count * sizeof(*first));
        }
        end(&f);
    }
    free(first);
}

static void test_full_sink_stops_the_source_with_bounded_rows(void **state)
{
    struct fixture f;
    begin(&f, 1);
    f.worlds[0].rows_a_source = 100000;
    f.worlds[0].refuse_of_16 = 16;
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_CALC, FAKE_COPY, PLAN_FORWARD, FAKE_INPUTS(0));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    const struct job_config config = fake_config(&f.plan, 1, f.worlds, &f.memory);
    start(&f, &config);
    for (uint32_t turn = 0; turn < 1000; turn++) {
        (void)job_lane_poll(f.job, 0, turn);
    }
    const uint64_t held = job_lane_held_rows(f.job, 0);
    assert_in_range(held, 256, 256 + 32);
    assert_int_equal(job_stage(f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT], held);
    assert_int_equal(job_lane_poll(f.job, 0, 0), 0);
    f.worlds[0].refuse_of_16 = 0;
    fake_run(f.job, 1, 100000);
    assert_int_equal(f.worlds[0].logs[sink].count, 100000);
    end(&f);
}

static void test_drain_ends_without_the_last_watermark(void **state)
{
    struct fixture f;
    begin(&f, 2);
    for (uint32_t i = 0; i < 2; i++) {
        f.worlds[i].rows_a_source = 1000000;
        f.worlds[i].watermark_every = 10;
    }
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    const uint32_t hold = fake_node(&f.plan, PLAN_OVER, FAKE_HOLD, PLAN_HASH, FAKE_INPUTS(0));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    const struct job_config config = fake_config(&f.plan, 2, f.worlds, &f.memory);
    start(&f, &config);
    for (uint32_t turn = 0; turn < 50; turn++) {
        (void)job_lane_poll(f.job, 0, turn);
        (void)job_lane_poll(f.job, 1, turn);
    }
    job_lane_drain(f.job, 0, false);
    job_lane_drain(f.job, 1, false);
    fake_run(f.job, 2, 1000);
    for (uint32_t lane = 0; lane < 2; lane++) {
        assert_true(job_stage(f.job, lane, hold)->watermark.value_ms < 1000000);
    }
    assert_true(logged(&f, sink) > 0);
    end(&f);
}

struct barrier_log {
    uint32_t count[FAKE_NODES_MAX];
    uint64_t rows_in[FAKE_NODES_MAX];
    struct fixture *fixture;
};

static void log_barrier(void *context, uint32_t lane, const struct plan_node *node, int64_t epoch)
{
    struct barrier_log *log = context;
    assert_int_equal(epoch, 5);
    log->count[node->id]++;
    log->rows_in[node->id] +=
        job_stage(log->fixture->job, lane, node->id)->stage_counters[STAGE_ROWS_IN];
}

static void test_barrier_cuts_all_nodes_at_the_same_rows(void **state)
{
    struct fixture f;
    begin(&f, 2);
    struct barrier_log log = {.fixture = &f};
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    (void)fake_node(&f.plan, PLAN_UNION, 0, PLAN_FORWARD, FAKE_INPUTS(1, 1));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_SINGLE, FAKE_INPUTS(2));
    struct job_config config = fake_config(&f.plan, 2, f.worlds, &f.memory);
    config.hooks = (struct stage_hooks){.barrier = log_barrier, .context = &log};
    start(&f, &config);
    for (uint32_t turn = 0; turn < 5; turn++) {
        (void)job_lane_poll(f.job, 0, turn);
    }
    (void)job_lane_poll(f.job, 1, 0);
    job_lane_barrier(f.job, 0, 5);
    const uint64_t first = job_stage(f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT];
    (void)job_lane_poll(f.job, 0, 6);
    (void)job_lane_poll(f.job, 1, 6);
    job_lane_barrier(f.job, 1, 5);
    const uint64_t cut = first + job_stage(f.job, 1, 0)->stage_counters[STAGE_ROWS_OUT];
    fake_run(f.job, 2, 3000);
    assert_int_equal(log.count[1], 2);
    assert_int_equal(log.count[sink], 1);
    assert_int_equal(log.rows_in[1], cut);
    assert_int_equal(log.rows_in[sink], 2 * cut);
    assert_int_equal(logged(&f, sink), 4000);
    end(&f);
}

/* Two lanes that read and operate; the arena of the second is filled by hand. */
struct memory_fixture {
    struct fixture f;
    void *memory;
    struct arena *arena;
    struct heap *heap;
    uint32_t pages[64];
    uint32_t page_count;
    uint32_t sink;
};

static void memory_begin(struct memory_fixture *m, uint32_t reserve_pages)
{
    memset(m, 0, sizeof(*m));
    begin(&m->f, 2);
    const size_t bytes = (size_t)64 * ARENA_PAGE_BYTES;
    m->memory = aligned_alloc(ARENA_PAGE_BYTES, bytes);
    const struct arena_config arena = {.memory = m->memory,
                                       .bytes = bytes,
                                       .shard_count = 2,
                                       .warn_pages_free = 20,
                                       .reserve_pages = reserve_pages};
    assert_int_equal(arena_create(&arena, &m->arena, NULL), 0);
    assert_int_equal(heap_create(m->arena, &m->heap, NULL), 0);
    (void)fake_node(&m->f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&m->f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    m->sink = fake_node(&m->f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    struct job_config config = fake_config(&m->f.plan, 2, m->f.worlds, &m->f.memory);
    config.lanes[1].arena = m->arena;
    config.lanes[1].heap = m->heap;
    start(&m->f, &config);
}

static void memory_end(struct memory_fixture *m)
{
    end(&m->f);
    heap_destroy(m->heap);
    free(m->memory);
}

static void pages_take(struct memory_fixture *m, uint32_t left)
{
    while (arena_pages_free(m->arena) > left) {
        m->pages[m->page_count++] = arena_page_acquire(m->arena, 0, ARENA_PAGE_HEAP);
    }
    while (arena_pages_free(m->arena) < left) {
        arena_page_release(m->arena, m->pages[--m->page_count]);
    }
}

static void turn(struct memory_fixture *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)job_lane_poll(m->f.job, 0, i);
        (void)job_lane_poll(m->f.job, 1, i);
    }
}

static uint64_t rows_read(const struct memory_fixture *m)
{
    return job_stage(m->f.job, 0, 0)->stage_counters[STAGE_ROWS_OUT] +
           job_stage(m->f.job, 1, 0)->stage_counters[STAGE_ROWS_OUT];
}

static void test_full_arena_holds_the_sources_of_all_lanes_and_nothing_else(void **state)
{
    struct memory_fixture m;
    memory_begin(&m, 10);
    turn(&m, 1);
    const uint64_t before = rows_read(&m);
    assert_true(before > 0 && before < 2000);
    pages_take(&m, 9);
    (void)job_lane_poll(m.f.job, 1, 1); /* the lane sees it first */
    assert_true(job_is_held(m.f.job));
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_FULL);
    const uint64_t held = rows_read(&m);
    job_lane_barrier(m.f.job, 0, 5);
    job_lane_barrier(m.f.job, 1, 5);
    turn(&m, 100);
    assert_int_equal(rows_read(&m), held);
    assert_int_equal(logged(&m.f, m.sink), held); /* what was in flight has gone through */
    assert_int_equal(job_lane_held_rows(m.f.job, 0) + job_lane_held_rows(m.f.job, 1), 0);
    pages_take(&m, 14); /* more than the reserve, not yet half of it more */
    turn(&m, 100);
    assert_int_equal(rows_read(&m), held);
    pages_take(&m, 15);
    turn(&m, 2);
    assert_false(job_is_held(m.f.job));
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_LOW);
    fake_run(m.f.job, 2, 3000);
    assert_int_equal(logged(&m.f, m.sink), 2000);
    memory_end(&m);
}

static void test_full_arena_when_drained_then_the_job_ends_with_what_it_has(void **state)
{
    struct memory_fixture m;
    memory_begin(&m, 10);
    turn(&m, 1);
    pages_take(&m, 5);
    turn(&m, 2);
    const uint64_t held = rows_read(&m);
    assert_true(held < 2000);
    job_lane_drain(m.f.job, 0, false);
    job_lane_drain(m.f.job, 1, false);
    fake_run(m.f.job, 2, 1000);
    assert_int_equal(logged(&m.f, m.sink), held);
    memory_end(&m);
}

static void test_arena_without_reserve_is_low_and_never_held(void **state)
{
    struct memory_fixture m;
    memory_begin(&m, 0);
    turn(&m, 1);
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_FINE);
    pages_take(&m, 0);
    turn(&m, 2);
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_LOW);
    assert_int_equal(job_lane_pages_free(m.f.job, 1), 0);
    assert_int_equal(job_lane_memory(m.f.job, 0), JOB_MEMORY_FINE); /* it has none */
    assert_false(job_is_held(m.f.job));
    pages_take(&m, 21); /* the line is 20, left two pages later */
    turn(&m, 1);
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_LOW);
    pages_take(&m, 22);
    turn(&m, 1);
    assert_int_equal(job_lane_memory(m.f.job, 1), JOB_MEMORY_FINE);
    fake_run(m.f.job, 2, 3000);
    memory_end(&m);
}

static void test_turns_free_what_was_released_without_any_row(void **state)
{
    struct memory_fixture m;
    memory_begin(&m, 0);
    turn(&m, 1);
    static const uint8_t bytes[30 * ARENA_PAGE_BYTES];
    const uint32_t free_before = arena_pages_free(m.arena);
    const uint64_t blob = heap_blob_store(m.heap, 0, (struct span){bytes, sizeof(bytes)});
    assert_true(blob != 0);
    heap_blob_release(m.heap, blob);
    const uint32_t used = free_before - arena_pages_free(m.arena);
    assert_true(used >= 30);
    turn(&m, 1);
    assert_in_range(free_before - arena_pages_free(m.arena), used - 16, used - 14);
    turn(&m, 2);
    assert_in_range(free_before - arena_pages_free(m.arena), 0, 2);
    memory_end(&m);
}

struct runner {
    struct job *job;
    uint32_t lane;
    enum job_state state;
};

static void *run_lane(void *context)
{
    struct runner *runner = context;
    for (uint64_t turn = 0; turn < 100000000; turn++) {
        if (job_lane_poll(runner->job, runner->lane, turn) == 0) {
            runner->state = job_lane_state(runner->job, runner->lane);
            if (runner->state != JOB_RUNNING) {
                break;
            }
            (void)sched_yield();
        }
    }
    /* The other lane may still return parcels to this one's pool: nothing to wait for. */
    return NULL;
}

static void test_two_lanes_in_two_threads_bring_every_row_through(void **state)
{
    struct fixture f;
    begin(&f, 2);
    for (uint32_t i = 0; i < 2; i++) {
        f.worlds[i].rows_a_source = 20000;
        f.worlds[i].watermark_every = 50;
    }
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_HOLD, PLAN_HASH, FAKE_INPUTS(0));
    (void)fake_node(&f.plan, PLAN_OVER, FAKE_DOUBLE, PLAN_HASH, FAKE_INPUTS(1));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_SINGLE, FAKE_INPUTS(2));
    const struct job_config config = fake_config(&f.plan, 2, f.worlds, &f.memory);
    start(&f, &config);
    struct runner runners[2];
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++) {
        runners[i] = (struct runner){.job = f.job, .lane = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_lane, &runners[i]), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(runners[i].state, JOB_ENDED);
    }
    assert_int_equal(logged(&f, sink), 2 * 2 * 20000);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_on_one_lane_keeps_all_rows_in_order),
        cmocka_unit_test(test_one_turn_takes_a_record_from_source_to_sink),
        cmocka_unit_test(test_exchange_by_hash_keeps_keys_together_and_in_order),
        cmocka_unit_test(test_roles_on_separate_lanes_bring_rows_through),
        cmocka_unit_test(test_shared_source_feeds_every_consumer),
        cmocka_unit_test(test_watermark_of_two_inputs_is_the_minimum),
        cmocka_unit_test(test_random_graphs_with_tiny_pools_and_rings_never_lock),
        cmocka_unit_test(test_settled_order_does_not_depend_on_parcel_size),
        cmocka_unit_test(test_full_sink_stops_the_source_with_bounded_rows),
        cmocka_unit_test(test_drain_ends_without_the_last_watermark),
        cmocka_unit_test(test_barrier_cuts_all_nodes_at_the_same_rows),
        cmocka_unit_test(test_full_arena_holds_the_sources_of_all_lanes_and_nothing_else),
        cmocka_unit_test(test_full_arena_when_drained_then_the_job_ends_with_what_it_has),
        cmocka_unit_test(test_arena_without_reserve_is_low_and_never_held),
        cmocka_unit_test(test_turns_free_what_was_released_without_any_row),
        cmocka_unit_test(test_two_lanes_in_two_threads_bring_every_row_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
