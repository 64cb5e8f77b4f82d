/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of a lane: random graphs over random lanes, polled in random order with pools and rings
 * as small as can be, and barriers ordered at random moments, some of them never on some lanes.
 * What must hold: nothing locks, each lane is cut once a barrier, and at a cut every node has taken
 * in exactly what its inputs had sent. And going on from a cut: every row once. */
#include "tests/dataplane/fake_job.h"

#include <errno.h>

#define LANES_MAX  4
#define EPOCHS_MAX 16
#define ROWS       150

struct fixture {
    struct fake_plan plan;
    struct fake_world worlds[LANES_MAX];
    struct fake_memory memory;
    struct job *job;
    uint32_t lane_count;
    uint32_t cuts[EPOCHS_MAX][LANES_MAX];
    uint64_t rows_in[EPOCHS_MAX][FAKE_NODES_MAX];
    uint64_t rows_out[EPOCHS_MAX][FAKE_NODES_MAX];
    size_t logged[EPOCHS_MAX][LANES_MAX][FAKE_NODES_MAX];
    _Alignas(8) uint8_t facts[LANES_MAX][4096]; /* of the last cut */
    struct span facts_written[LANES_MAX];
};

static void on_cut(void *context, uint32_t lane, int64_t epoch, struct facts_writer *facts)
{
    struct fixture *f = context;
    assert_true(epoch > 0 && epoch < EPOCHS_MAX);
    f->cuts[epoch][lane]++;
    for (uint32_t i = 0; i < f->plan.plan.node_count; i++) {
        const struct stage *stage = job_stage(f->job, lane, i);
        if (stage != NULL) {
            f->rows_in[epoch][i] += stage->stage_counters[STAGE_ROWS_IN];
            f->rows_out[epoch][i] += stage->output == NULL ? 0 : output_row_count(stage->output);
            f->logged[epoch][lane][i] = f->worlds[lane].logs[i].count;
        }
    }
    const struct span written = facts_written(facts);
    assert_false(facts->is_full);
    assert_true(written.bytes <= sizeof(f->facts[lane]));
    memcpy(f->facts[lane], written.data, written.bytes);
    f->facts_written[lane] = (struct span){.data = f->facts[lane], .bytes = written.bytes};
}

static void begin(struct fixture *f, uint32_t lane_count)
{
    memset(f, 0, sizeof(*f));
    fake_plan_init(&f->plan);
    f->lane_count = lane_count;
    for (uint32_t i = 0; i < LANES_MAX; i++) {
        fake_world_init(&f->worlds[i], i, lane_count);
        f->worlds[i].rows_a_source = ROWS;
    }
}

static struct job_config config_of(struct fixture *f)
{
    struct job_config config = fake_config(&f->plan, f->lane_count, f->worlds, &f->memory);
    config.hooks = (struct stage_hooks){.cut = on_cut, .cut_context = f};
    return config;
}

static void start(struct fixture *f, const struct job_config *config)
{
    struct error error = {0};
    if (job_create(config, &f->job, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

/* The smallest pool that job_create takes; see test_job.c. */
static void start_small(struct fixture *f, struct job_config *config)
{
    struct error error = {0};
    config->classes[0].count = 1;
    while (job_create(config, &f->job, &error) != 0) {
        const char *at = strstr(error.text, "at least ");
        assert_non_null(at);
        config->classes[0].count = (uint32_t)strtoul(at + 9, NULL, 10);
    }
}

static void end(struct fixture *f)
{
    job_destroy(f->job);
    fake_memory_free(&f->memory);
    for (uint32_t i = 0; i < LANES_MAX; i++) {
        fake_world_free(&f->worlds[i]);
    }
}

static void random_plan(struct fake_plan *plan, uint64_t *random)
{
    const uint32_t sources = 1 + (uint32_t)fake_random(random) % 2;
    for (uint32_t i = 0; i < sources; i++) {
        (void)fake_node(plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    }
    const uint32_t operators = 2 + (uint32_t)fake_random(random) % 5;
    for (uint32_t i = 0; i < operators; i++) {
        const uint32_t below = plan->plan.node_count;
        const uint32_t a = (uint32_t)fake_random(random) % below;
        const uint32_t b = (uint32_t)fake_random(random) % below;
        const enum plan_distribution distribution =
            (enum plan_distribution)(fake_random(random) % 3);
        const enum fake_kind kind = i == 0 ? FAKE_DOUBLE : (fake_random(random) % 2) * FAKE_HOLD;
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
}

/* At a complete cut a node has taken in what its inputs have sent, and nothing else. */
static void check_cut(const struct fixture *f, uint32_t epoch)
{
    for (uint32_t i = 0; i < f->plan.plan.node_count; i++) {
        const struct plan_node *node = &f->plan.nodes[i];
        uint64_t sent = 0;
        for (uint32_t k = 0; k < node->input_count; k++) {
            sent += f->rows_out[epoch][node->inputs[k]];
        }
        if (node->operator!= PLAN_SOURCE) {
            assert_int_equal(f->rows_in[epoch][i], sent);
        }
    }
}

static bool is_complete(const struct fixture *f, uint32_t epoch)
{
    for (uint32_t lane = 0; lane < f->lane_count; lane++) {
        assert_true(f->cuts[epoch][lane] <= 1);
        if (f->cuts[epoch][lane] == 0) {
            return false;
        }
    }
    return true;
}

/* Orders come to each lane in order, at a moment of its own; a lane misses some, but never the
 * newest one that any lane has got, and never the last. */
struct orders {
    uint32_t newest;
    uint32_t done[LANES_MAX];
};

static bool is_cutting(const struct fixture *f, const struct orders *orders, uint32_t lane)
{
    return orders->done[lane] != 0 && f->cuts[orders->done[lane]][lane] == 0;
}

static void order(struct fixture *f, struct orders *orders, uint64_t *random, bool misses)
{
    bool all = true;
    for (uint32_t lane = 0; lane < f->lane_count; lane++) {
        all = all && orders->done[lane] == orders->newest && !is_cutting(f, orders, lane);
    }
    if (orders->newest + 1 < EPOCHS_MAX && (all || (misses && fake_random(random) % 64 == 0))) {
        orders->newest++;
    }
    const uint32_t lane = (uint32_t)fake_random(random) % f->lane_count;
    if (orders->done[lane] < orders->newest) {
        orders->done[lane] = orders->newest;
        job_lane_barrier(f->job, lane, orders->newest);
    }
}

static bool all_ended(const struct fixture *f)
{
    for (uint32_t lane = 0; lane < f->lane_count; lane++) {
        assert_int_not_equal(job_lane_state(f->job, lane), JOB_FAILED);
        if (job_lane_state(f->job, lane) != JOB_ENDED) {
            return false;
        }
    }
    return true;
}

static uint32_t run_random(uint64_t seed, bool misses)
{
    static struct fixture f;
    uint64_t random = seed * 91 + 7;
    struct orders orders = {0};
    begin(&f, 1 + (uint32_t)(seed % LANES_MAX));
    random_plan(&f.plan, &random);
    for (uint32_t i = 0; i < f.lane_count; i++) {
        f.worlds[i].watermark_every = (int64_t)(fake_random(&random) % 20);
        f.worlds[i].refuse_of_16 = (uint32_t)fake_random(&random) % 12;
    }
    struct job_config config = config_of(&f);
    config.ring_items = 2;
    config.parcel_rows_max = 1 + (uint32_t)(fake_random(&random) % 4);
    config.queue_rows_max = 4 + (uint32_t)(fake_random(&random) % 8);
    config.records_a_turn = 1 + (uint32_t)(fake_random(&random) % 16);
    config.classes[0].bytes = 256;
    start_small(&f, &config);
    const uint32_t seldom = 1 + (uint32_t)fake_random(&random) % 32;
    uint32_t turns = 0;
    while (!all_ended(&f) || orders.newest + 1 < EPOCHS_MAX) {
        assert_true(turns++ < 2000000);
        if (fake_random(&random) % seldom == 0) {
            order(&f, &orders, &random, misses);
        }
        (void)job_lane_poll(f.job, (uint32_t)fake_random(&random) % f.lane_count, turns);
    }
    /* The last barrier comes through whatever became of those before. */
    for (uint32_t i = 0; i < 1000 && !is_complete(&f, EPOCHS_MAX - 1); i++) {
        order(&f, &orders, &random, false);
        (void)job_lane_poll(f.job, (uint32_t)fake_random(&random) % f.lane_count, turns + i);
    }
    assert_true(is_complete(&f, EPOCHS_MAX - 1));
    uint32_t complete = 0;
    for (uint32_t epoch = 1; epoch < EPOCHS_MAX; epoch++) {
        if (is_complete(&f, epoch)) {
            check_cut(&f, epoch);
            complete++;
        }
    }
    end(&f);
    return complete;
}

static void test_random_graphs_when_barriers_come_at_any_time_then_cuts_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        assert_int_equal(run_random(seed, false), EPOCHS_MAX - 1);
    }
}

static void test_random_graphs_when_lanes_miss_barriers_then_newer_ones_cut(void **state)
{
    (void)state;
    uint32_t complete = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        complete += run_random(seed, true);
    }
    assert_true(complete < 120 * (EPOCHS_MAX - 1));
}

static void run_turns(struct fixture *f, uint64_t *random, uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++) {
        (void)job_lane_poll(f->job, (uint32_t)fake_random(random) % f->lane_count, i + 1);
    }
}

static void cut_all(struct fixture *f, uint64_t *random, uint32_t epoch)
{
    for (uint32_t lane = 0; lane < f->lane_count; lane++) {
        job_lane_barrier(f->job, lane, epoch);
        run_turns(f, random, (uint32_t)fake_random(random) % 5);
    }
    for (uint32_t i = 0; i < 100000 && !is_complete(f, epoch); i++) {
        run_turns(f, random, 1);
    }
    assert_true(is_complete(f, epoch));
}

static void check_every_row_once(const struct fixture *f, uint32_t sink)
{
    uint8_t seen[LANES_MAX * ROWS] = {0};
    for (uint32_t lane = 0; lane < f->lane_count; lane++) {
        const struct fake_sink_log *log = &f->worlds[lane].logs[sink];
        for (size_t i = 0; i < log->count; i++) {
            seen[log->rows[i].number]++;
        }
    }
    for (uint32_t i = 0; i < f->lane_count * ROWS; i++) {
        assert_int_equal(seen[i], 1);
    }
}

/* Rows that came after the cut are forgotten with the job; the new one sends them again. */
static void test_restore_when_a_job_is_thrown_away_then_every_row_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static struct fixture f;
        uint64_t random = seed;
        begin(&f, 1 + (uint32_t)(seed % LANES_MAX));
        (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
        (void)fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
        const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
        for (uint32_t lane = 0; lane < f.lane_count; lane++) {
            f.worlds[lane].watermark_every = 3;
        }
        struct job_config config = config_of(&f);
        config.records_a_turn = 4;
        start(&f, &config);
        for (uint32_t epoch = 1; epoch < 6; epoch++) {
            run_turns(&f, &random, (uint32_t)fake_random(&random) % 30);
            cut_all(&f, &random, epoch);
            const int64_t watermark_ms = job_stage(f.job, 0, 1)->watermark.value_ms;
            run_turns(&f, &random, (uint32_t)fake_random(&random) % 30);
            job_destroy(f.job);
            for (uint32_t lane = 0; lane < f.lane_count; lane++) {
                f.worlds[lane].logs[sink].count = f.logged[epoch][lane][sink];
            }
            start(&f, &config);
            assert_int_equal(job_restore(f.job, f.facts_written, f.lane_count, NULL), 0);
            assert_true(job_stage(f.job, 0, 1)->watermark.value_ms <= watermark_ms);
            assert_int_equal(
                job_stage(f.job, 0, 1)->watermark.value_ms,
                ((const struct fake_operator *)job_stage(f.job, 0, 1)->operator)->watermark_ms);
        }
        fake_run(f.job, f.lane_count, 20000);
        check_every_row_once(&f, sink);
        assert_int_equal(job_stage(f.job, 0, sink)->watermark.value_ms, WATERMARK_MAX);
        end(&f);
    }
}

static void test_restore_when_lanes_differ_then_the_least_time_holds(void **state)
{
    (void)state;
    static struct fixture f;
    _Alignas(8) uint8_t memory[2][512];
    struct span facts[2];
    static const int64_t times_ms[2] = {70, 50};
    begin(&f, 1);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    const uint32_t over = fake_node(&f.plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    const uint32_t sink = fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(over));
    for (uint32_t i = 0; i < 2; i++) {
        struct facts_writer writer;
        facts_begin(&writer, (struct span_mut){.data = memory[i], .bytes = sizeof(memory[i])});
        const struct facts_item item = {
            .kind = FACTS_NODE,
            .node = {.identity = f.plan.nodes[over].identity,
                     .watermark_ms = times_ms[i],
                     .tick_ms = 2 * times_ms[i]},
        };
        facts_put(&writer, &item);
        facts[i] = facts_written(&writer);
    }
    const struct job_config config = config_of(&f);
    start(&f, &config);
    assert_int_equal(job_restore(f.job, facts, 2, NULL), 0);
    assert_int_equal(job_stage(f.job, 0, over)->watermark.value_ms, 50);
    assert_int_equal(job_stage(f.job, 0, over)->tick_ms, 100);
    /* Not known to the checkpoint: it learns from what stands in front of it. */
    assert_int_equal(job_stage(f.job, 0, sink)->watermark.value_ms, WATERMARK_MIN);
    (void)job_lane_poll(f.job, 0, 1);
    assert_int_equal(job_stage(f.job, 0, sink)->watermark.value_ms, 50);
    end(&f);
}

static void test_restore_when_facts_are_damaged_then_refused(void **state)
{
    (void)state;
    static struct fixture f;
    _Alignas(8) uint8_t memory[64] = {0};
    begin(&f, 1);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    const struct job_config config = config_of(&f);
    start(&f, &config);
    struct error error = {0};
    const struct span facts = {.data = memory, .bytes = sizeof(memory)};
    assert_int_equal(job_restore(f.job, &facts, 1, &error), -EBADMSG);
    assert_true(error.text[0] != 0);
    end(&f);
}

static void test_cut_when_the_job_has_ended_then_at_once(void **state)
{
    (void)state;
    static struct fixture f;
    begin(&f, 1);
    (void)fake_node(&f.plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f.plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    const struct job_config config = config_of(&f);
    start(&f, &config);
    fake_run(f.job, 1, 1000);
    job_lane_barrier(f.job, 0, 1);
    assert_int_equal(f.cuts[1][0], 0);
    (void)job_lane_poll(f.job, 0, 1001);
    assert_int_equal(f.cuts[1][0], 1);
    (void)job_lane_poll(f.job, 0, 1002);
    assert_int_equal(f.cuts[1][0], 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs_when_barriers_come_at_any_time_then_cuts_agree),
        cmocka_unit_test(test_random_graphs_when_lanes_miss_barriers_then_newer_ones_cut),
        cmocka_unit_test(test_restore_when_a_job_is_thrown_away_then_every_row_once),
        cmocka_unit_test(test_restore_when_lanes_differ_then_the_least_time_holds),
        cmocka_unit_test(test_restore_when_facts_are_damaged_then_refused),
        cmocka_unit_test(test_cut_when_the_job_has_ended_then_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
