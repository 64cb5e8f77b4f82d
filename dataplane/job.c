/* SPDX-License-Identifier: Apache-2.0 */
/* Running a job's stages lane by lane. How they are made and joined is in wiring.c. */
#include "dataplane/job.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/job_internal.h"

static bool lane_is_quiet(const struct job_lane *lane)
{
    ASSERT(lane != NULL);
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        if (!stage_is_quiet(lane->order[i])) {
            return false;
        }
    }
    return true;
}

/* Whether all that was read so far is worked off, on every lane: the single thread of a replay. */
static bool job_is_settled(const struct job *job)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    for (uint32_t i = 0; i < job->config.lane_count; i++) {
        if (!lane_is_quiet(&job->lanes[i])) {
            return false;
        }
    }
    return true;
}

/* Counts, for each place in the order, the rows that wait on this lane behind it. */
static void measure_waiting(struct job_lane *lane)
{
    uint32_t rows = 0;
    for (uint32_t i = lane->stage_count; i-- > 0;) {
        const struct stage *stage = lane->order[i];
        /* A parcel that the stage itself is stuck with counts: its rings must wait as well. */
        const uint32_t stuck = stage->parcel != NULL ? stage->parcel->row_count : 0;
        rows += stuck + (stage->output != NULL ? output_backlog_rows(stage->output) : 0);
        lane->waiting_rows[i] = rows;
        rows += stage_waiting_rows(stage) - stuck;
    }
}

static void fail_lane(struct job_lane *lane, const struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(lane != NULL);
    lane->state = JOB_FAILED;
    lane->failure = stage->failure;
    if (lane->failure.place[0] == 0) {
        memcpy(lane->failure.place, stage->node->name,
               sizeof(stage->node->name) < sizeof(lane->failure.place)
                   ? sizeof(stage->node->name)
                   : sizeof(lane->failure.place));
        lane->failure.place[sizeof(lane->failure.place) - 1] = 0;
    }
}

static bool may_enter(const struct job *job, const struct job_lane *lane, uint32_t place,
                      bool is_settled)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    const struct stage *stage = lane->order[place];
    if (lane->is_held || lane->waiting_rows[place] >= job->config.queue_rows_max) {
        return false;
    }
    if (stage->source != NULL && job->config.settle && !is_settled) {
        return false;
    }
    return stage->output == NULL || output_room(stage->output, 2 * job->config.parcel_rows_max);
}

static void update_state(struct job_lane *lane)
{
    ASSERT(lane != NULL);
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        const bool is_flushed = stage->sink == NULL || stage->sink->ops->flushed(stage->sink);
        if (!stage->has_ended || !is_flushed) {
            return;
        }
    }
    if (lane_is_quiet(lane)) {
        lane->state = JOB_ENDED;
    }
}

static void set_roles(struct job *job)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    const struct job_config *config = &job->config;
    for (uint32_t i = 0; i < config->lane_count; i++) {
        const uint64_t bit = UINT64_C(1) << i;
        job->placement.receive |= config->lanes[i].receive ? bit : 0;
        job->placement.operate |= config->lanes[i].operate ? bit : 0;
        job->placement.transmit |= config->lanes[i].transmit ? bit : 0;
    }
}

int job_create(const struct job_config *config, struct job **out, struct error *error)
{
    ASSERT(config->lane_count >= 1 && config->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(config->parcel_rows_max >= 1 && config->parcel_rows_max <= PARCEL_ROWS_MAX);
    ASSERT(config->source_ops != NULL && config->sink_ops != NULL);
    ASSERT(config->find_operator != NULL);
    struct job *job = aligned_alloc(CACHE_LINE_BYTES, sizeof(*job));
    if (job == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a job");
    }
    memset(job, 0, sizeof(*job));
    job->config = *config;
    set_roles(job);
    placement_init(&job->placement, config->plan);
    const int code = wiring_create(job, error);
    if (code != 0) {
        job_destroy(job);
        return code;
    }
    *out = job;
    return 0;
}

void job_destroy(struct job *job)
{
    if (job != NULL) {
        wiring_destroy(job);
        free(job);
    }
}

uint32_t job_lane_poll(struct job *job, uint32_t lane_number, uint64_t now_ns)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(lane_number < job->config.lane_count);
    struct job_lane *lane = &job->lanes[lane_number];
    if (lane->state == JOB_FAILED) {
        return 0;
    }
    uint32_t work = parcel_pool_collect(lane->pool);
    if (lane->state == JOB_ENDED) {
        return work + job_cut_poll(job, lane_number);
    }
    const bool is_settled = !job->config.settle || job_is_settled(job);
    work += job_memory_poll(job, lane_number);
    const bool is_held = job_is_held(job);
    measure_waiting(lane);
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        const bool enter = may_enter(job, lane, i, is_settled);
        /* A held source is asked for no record, yet tells the time and ends when drained. */
        const bool takes = stage->source == NULL || !is_held;
        work += stage_poll(stage, now_ns, enter, takes ? job->config.records_a_turn : 0);
        if (stage->has_failed) {
            fail_lane(lane, stage);
            return work;
        }
    }
    work += job_cut_poll(job, lane_number);
    lane->last_work = work;
    if (work == 0 || lane->stage_count == 0) {
        update_state(lane);
    }
    return work;
}

enum job_state job_lane_state(struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    return job->lanes[lane].state;
}

const struct error *job_lane_failure(const struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    return &job->lanes[lane].failure;
}

void job_lane_drain(struct job *job, uint32_t lane, bool fires)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(lane < job->config.lane_count);
    for (uint32_t i = 0; i < job->lanes[lane].stage_count; i++) {
        struct stage *stage = job->lanes[lane].order[i];
        if (stage->source != NULL && !stage->source->ended) {
            stage->source->ops->drain(stage->source, fires);
        }
    }
}

void job_lane_hold(struct job *job, uint32_t lane, bool is_held)
{
    ASSERT(lane < job->config.lane_count);
    ASSERT(!is_held || !job->lanes[lane].is_cutting);
    job->lanes[lane].is_held = is_held;
}

bool job_lane_was_busy(const struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    return job->lanes[lane].last_work != 0;
}

struct stage *job_stage(struct job *job, uint32_t lane, uint32_t node)
{
    ASSERT(lane < job->config.lane_count);
    ASSERT(node < job->config.plan->node_count);
    return job->lanes[lane].by_node[node];
}

const struct plan_node *job_state_node(const struct job *job, const char *state_name)
{
    ASSERT(job->config.plan != NULL);
    uint64_t identity = 0;
    if (!state_identity(state_name, &identity)) {
        return NULL;
    }
    for (uint32_t i = 0; i < job->config.plan->node_count; i++) {
        if (job->config.plan->nodes[i]->identity == identity) {
            return job->config.plan->nodes[i];
        }
    }
    return NULL;
}

/* A node that is fed where its input lies has the shards of the node that rows were spread for. */
uint32_t job_owner_lane(void *context, const char *state_name, uint32_t shard)
{
    ASSERT(shard < EXCHANGE_SHARD_COUNT);
    const struct job *job = context;
    const struct plan_node *node = job_state_node(job, state_name);
    if (node == NULL) {
        return 0;
    }
    while (node->distribution == PLAN_FORWARD && node->input_count != 0) {
        node = job->config.plan->nodes[node->inputs[0]];
    }
    const uint64_t lanes = job->placement.nodes[node->id];
    uint32_t lane = placement_next(lanes, 0);
    for (uint32_t skip = node->distribution == PLAN_HASH ? exchange_link(shard, lanes) : 0;
         skip > 0; skip--) {
        lane = placement_next(lanes, lane + 1);
    }
    ASSERT(lane < job->config.lane_count);
    return lane;
}

struct ledger *job_lane_ledger(struct job *job, uint32_t lane)
{
    ASSERT(lane < job->config.lane_count);
    return job->lanes[lane].ledger;
}

uint32_t job_ledger_sink(const struct job *job, uint32_t node)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(node < job->config.plan->node_count);
    uint32_t sink = 0;
    for (uint32_t i = 0; i < node; i++) {
        sink += job->config.plan->nodes[i]->operator== PLAN_SINK;
    }
    return sink;
}

uint64_t job_lane_held_rows(const struct job *job, uint32_t lane_number)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(lane_number < job->config.lane_count);
    const struct job_lane *lane = &job->lanes[lane_number];
    uint64_t rows = 0;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        const struct stage *stage = lane->order[i];
        rows += stage_waiting_rows(stage);
        rows += stage->output != NULL ? output_backlog_rows(stage->output) : 0;
    }
    return rows;
}

uint64_t job_counter(const struct job *job, uint32_t node, enum operator_counter counter)
{
    ASSERT(node < job->config.plan->node_count);
    ASSERT(counter < OPERATOR_COUNTER_COUNT);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < job->config.lane_count; i++) {
        const struct stage *stage = job->lanes[i].by_node[node];
        sum += stage == NULL ? 0 : __atomic_load_n(&stage->counters[counter], __ATOMIC_RELAXED);
    }
    return sum;
}

static uint64_t stage_counter(const struct job *job, uint32_t node, enum stage_counter counter)
{
    ASSERT(node < job->config.plan->node_count);
    ASSERT(job->config.plan != NULL);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < job->config.lane_count; i++) {
        const struct stage *stage = job->lanes[i].by_node[node];
        sum +=
            stage == NULL ? 0 : __atomic_load_n(&stage->stage_counters[counter], __ATOMIC_RELAXED);
    }
    return sum;
}

void job_print(const struct job *job, FILE *into)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    fprintf(into, "%-4s %-40s %12s %12s %10s %10s %10s\n", "node", "name", "rows in", "rows out",
            "late", "expired", "blocked");
    for (uint32_t i = 0; i < job->config.plan->node_count; i++) {
        fprintf(into, "%-4u %-40.40s %12lu %12lu %10lu %10lu %10lu\n", i,
                job->config.plan->nodes[i]->name,
                (unsigned long)stage_counter(job, i, STAGE_ROWS_IN),
                (unsigned long)stage_counter(job, i, STAGE_ROWS_OUT),
                (unsigned long)job_counter(job, i, OPERATOR_LATE_ROWS),
                (unsigned long)job_counter(job, i, OPERATOR_EXPIRED),
                (unsigned long)stage_counter(job, i, STAGE_BLOCKED));
    }
}
