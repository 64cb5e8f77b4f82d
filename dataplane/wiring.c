/* SPDX-License-Identifier: Apache-2.0 */
/* Making a job: pools, one stage a node and lane, and the channels between them. Each pair of
 * sender and consumer instances gets a queue (same lane), or a ring and a backlog in front of it
 * (other lane). Channels of a stage are ordered by input, then by the sender's lane.
 *
 * Reserve. On each lane a stage must leave as many parcels free as all stages behind it need for
 * one call each; that sum, for the first stage, is what a pool must have at least.
 *
 *     plan nodes x lanes (placement) -> stages -> ways -> channels, queues, rings -> bodies
 *
 * Invariants:
 *   1. All memory that lanes touch comes from config.allocate, once; what control alone needs is
 *   on the heap.
 *   2. Ways are visited in one order (each_way), in the counting round and in the connecting
 *   round, so channel numbers agree.
 *   3. Whatever fails, wiring_destroy takes apart what is there: parts that were not made are
 *   NULL. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/job_internal.h"

static void *take(struct job *job, uint32_t lane, size_t bytes)
{
    ASSERT(lane < job->config.lane_count);
    return job->config.allocate(job->config.allocate_context, lane, bytes);
}

static int out_of_memory(struct error *error, const char *what)
{
    return error_set(error, -ENOMEM, "out of memory for %s", what);
}

static int create_pool(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    struct parcel_pool_config config = {
        .class_count = job->config.class_count,
        .lane = number,
        .lane_count = job->config.lane_count,
    };
    memcpy(config.classes, job->config.classes, sizeof(config.classes));
    void *memory = take(job, number, parcel_pool_bytes(&config));
    if (memory == NULL) {
        return out_of_memory(error, "parcels");
    }
    job->lanes[number].pool = parcel_pool_init(&config, memory);
    return 0;
}

/* The placement is a bit a lane for each node. */
static bool has_stage(const struct job *job, uint32_t lane, uint32_t node)
{
    ASSERT(lane < job->config.lane_count);
    return ((job->placement.nodes[node] >> lane) & 1) != 0;
}

/* by_node has holes where the lane has no instance; order does not. */
static int create_lane(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    struct job_lane *lane = &job->lanes[number];
    const uint32_t node_count = job->config.plan->node_count;
    lane->order = calloc(node_count, sizeof(*lane->order));
    lane->by_node = calloc(node_count, sizeof(*lane->by_node));
    lane->waiting_rows = calloc(node_count, sizeof(*lane->waiting_rows));
    lane->key_scratch = take(job, number, KEY_BYTES_MAX);
    if (job->config.hooks.cut != NULL) {
        lane->facts_bytes = take(job, number, FACTS_BYTES_MAX);
        if (lane->facts_bytes == NULL) {
            return out_of_memory(error, "a lane's facts");
        }
    }
    if (lane->order == NULL || lane->by_node == NULL || lane->waiting_rows == NULL ||
        lane->key_scratch == NULL) {
        return out_of_memory(error, "a lane");
    }
    for (uint32_t i = 0; i < node_count; i++) {
        if (!has_stage(job, number, i)) {
            continue;
        }
        struct stage *stage = calloc(1, sizeof(*stage));
        if (stage == NULL) {
            return out_of_memory(error, "a stage");
        }
        stage->node = job->config.plan->nodes[i];
        stage->lane = number;
        stage->hooks = &job->config.hooks;
        lane->by_node[i] = stage;
        lane->order[lane->stage_count++] = stage;
    }
    return 0;
}

/* Calls visit for each way from an instance of an input to an instance of its consumer, in the
 * order of channels: consumer, input, sender's lane, consumer's lane. */
struct way {
    const struct plan_node *consumer;
    uint32_t input;
    uint32_t from;
    uint32_t to;
};

/* The ways of one input of a consumer. Lanes in ascending order on both sides: this order is
 * part of the answer, for it decides which channel a stage drains first. */
static int each_way_of_input(struct job *job, const struct plan_node *consumer, uint32_t input,
                             int (*visit)(struct job *, const struct way *))
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(consumer->input_count <= PLAN_INPUTS_MAX);
    const uint64_t senders = job->placement.nodes[consumer->inputs[input]];
    int code = 0;
    uint32_t from = placement_next(senders, 0);
    for (; code == 0 && from < PLACEMENT_LANES_MAX; from = placement_next(senders, from + 1)) {
        const uint64_t targets = placement_targets(&job->placement, consumer, from);
        uint32_t to = placement_next(targets, 0);
        for (; code == 0 && to < PLACEMENT_LANES_MAX; to = placement_next(targets, to + 1)) {
            code = visit(job, &(struct way){consumer, input, from, to});
        }
    }
    return code;
}

static int each_way(struct job *job, int (*visit)(struct job *, const struct way *), int code)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    const struct plan *plan = job->config.plan;
    for (uint32_t c = 0; c < plan->node_count; c++) {
        for (uint32_t i = 0; code == 0 && i < plan->nodes[c]->input_count; i++) {
            code = each_way_of_input(job, plan->nodes[c], i, visit);
        }
    }
    return code;
}

static int count_channel(struct job *job, const struct way *way)
{
    ASSERT(job->config.plan != NULL);
    struct stage *stage = job->lanes[way->to].by_node[way->consumer->id];
    ASSERT(stage != NULL);
    stage->channel_count++;
    return 0;
}

/* One more than needed, because calloc of nothing may be NULL. */
static int create_channels(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    struct job_lane *lane = &job->lanes[number];
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        stage->pool = lane->pool;
        const uint32_t count = stage->channel_count;
        stage->channels = calloc(count + 1, sizeof(*stage->channels));
        struct watermark_sender *senders = calloc(count + 1, sizeof(*senders));
        if (stage->channels == NULL || senders == NULL) {
            free(senders);
            return out_of_memory(error, "channels");
        }
        watermark_init(&stage->watermark, senders, count);
        for (uint32_t s = 0; s < count; s++) {
            (void)watermark_add(&stage->watermark);
            stage->channels[s].tick_ms = INT64_MIN;
        }
        stage->tick_ms = INT64_MIN;
        stage->channel_count = 0; /* counted again as ways are connected */
    }
    return 0;
}

/* An edge for each input that reads the node: a UNION of a view with itself has two. */
static uint32_t edges_of(const struct job *job, uint32_t producer)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    uint32_t count = 0;
    for (uint32_t c = producer + 1; c < job->config.plan->node_count; c++) {
        const struct plan_node *consumer = job->config.plan->nodes[c];
        for (uint32_t i = 0; i < consumer->input_count; i++) {
            count += consumer->inputs[i] == producer;
        }
    }
    return count;
}

/* Gives a hash edge its table: shard s belongs to the link of lane s modulo their number. */
static void fill_shards(struct exchange *edge, uint64_t targets)
{
    ASSERT(edge != NULL);
    for (uint32_t s = 0; s < EXCHANGE_SHARD_COUNT; s++) {
        edge->link_of_shard[s] = (uint8_t)exchange_link(s, targets);
    }
}

/* Links stand in the order of their lanes: the n-th set bit of targets. */
static int create_edge(struct job *job, struct stage *stage, const struct plan_node *consumer,
                       struct exchange *edge)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    ASSERT(consumer != NULL);
    const uint64_t targets = placement_targets(&job->placement, consumer, stage->lane);
    *edge = (struct exchange){
        .kind = placement_kind(targets, stage->lane),
        .layout = &stage->node->layout,
        .key = consumer->distribution_key,
        .link_count = (uint32_t)__builtin_popcountll(targets),
        .parcel_rows_max = job->config.parcel_rows_max,
        .pool = stage->pool,
        .key_scratch = job->lanes[stage->lane].key_scratch,
    };
    fill_shards(edge, targets);
    edge->links = calloc(edge->link_count, sizeof(*edge->links));
    return edge->links == NULL ? -ENOMEM : 0;
}

/* Makes a stage's output and its edges, in the order of consumers and their inputs. */
static int create_output(struct job *job, struct stage *stage, struct error *error)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    const struct plan *plan = job->config.plan;
    const uint32_t producer = stage->node->id;
    stage->edges = calloc(edges_of(job, producer) + 1, sizeof(*stage->edges));
    if (stage->edges == NULL) {
        return out_of_memory(error, "edges");
    }
    for (uint32_t c = producer + 1; c < plan->node_count; c++) {
        for (uint32_t i = 0; i < plan->nodes[c]->input_count; i++) {
            if (plan->nodes[c]->inputs[i] != producer) {
                continue;
            }
            if (create_edge(job, stage, plan->nodes[c], &stage->edges[stage->edge_count]) != 0) {
                return out_of_memory(error, "links");
            }
            stage->edge_count++;
        }
    }
    const struct output_config config = {
        .pool = stage->pool,
        .layout = &stage->node->layout,
        .edges = stage->edges,
        .edge_count = stage->edge_count,
        .parcel_rows_max = job->config.parcel_rows_max,
        .queue_rows_max = job->config.queue_rows_max,
    };
    return output_create(&config, &stage->output, error);
}

static int create_outputs(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    struct job_lane *lane = &job->lanes[number];
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < lane->stage_count; i++) {
        if (lane->order[i]->node->operator!= PLAN_SINK) {
            code = create_output(job, lane->order[i], error);
        }
    }
    return code;
}

/* All parcels of all pools fit at once, so a push never fails and needs no check in the
 * dataplane. */
static uint32_t queue_capacity(const struct job *job)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    uint32_t total = 0;
    for (uint32_t i = 0; i < job->config.class_count; i++) {
        total += job->config.classes[i].count;
    }
    /* A watermark may stand between any two parcels, and a few other control items. */
    const uint32_t wanted = 2 * total * job->config.lane_count + 64;
    uint32_t capacity = 64;
    while (capacity < wanted) {
        capacity *= 2;
    }
    return capacity;
}

/* The head has a cache line of its own before the items. */
static struct queue *create_queue(struct job *job, uint32_t lane)
{
    ASSERT(job != NULL);
    const uint32_t capacity = queue_capacity(job);
    const size_t head = CACHE_LINE_BYTES;
    _Static_assert(sizeof(struct queue) <= CACHE_LINE_BYTES, "queue before its items");
    uint8_t *memory = take(job, lane, head + capacity * sizeof(struct item));
    if (memory == NULL) {
        return NULL;
    }
    struct queue *queue = (struct queue *)(void *)memory;
    queue_init(queue, (struct item *)(void *)(memory + head), capacity);
    return queue;
}

/* Finds the sender's edge for a way: edges stand in the order of consumers and their inputs.
 * Counts instead of searching: create_output laid the edges out by the same loops. */
static struct exchange *edge_of(struct job *job, const struct way *way, uint32_t *link)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    const uint32_t producer = way->consumer->inputs[way->input];
    struct stage *sender = job->lanes[way->from].by_node[producer];
    uint32_t edge = 0;
    for (uint32_t c = producer + 1; c < way->consumer->id; c++) {
        const struct plan_node *other = job->config.plan->nodes[c];
        for (uint32_t i = 0; i < other->input_count; i++) {
            edge += other->inputs[i] == producer;
        }
    }
    for (uint32_t i = 0; i < way->input; i++) {
        edge += way->consumer->inputs[i] == producer;
    }
    ASSERT(edge < sender->edge_count);
    const uint64_t targets = placement_targets(&job->placement, way->consumer, way->from);
    *link = (uint32_t)__builtin_popcountll(targets & ((UINT64_C(1) << way->to) - 1));
    return &sender->edges[edge];
}

/* The backlog is the sender's memory and the ring the receiver's: each side writes near itself. */
static int connect(struct job *job, const struct way *way)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(way != NULL);
    struct stage *stage = job->lanes[way->to].by_node[way->consumer->id];
    struct channel *channel = &stage->channels[stage->channel_count++];
    channel->input = way->input;
    uint32_t number = 0;
    struct exchange *edge = edge_of(job, way, &number);
    ASSERT(number < edge->link_count);
    struct exchange_link *link = &edge->links[number];
    link->queue = create_queue(job, way->from);
    if (link->queue == NULL) {
        return -ENOMEM;
    }
    if (way->from == way->to) {
        channel->queue = link->queue;
        return 0;
    }
    void *memory = take(job, way->to, ring_bytes(job->config.ring_items));
    if (memory == NULL) {
        return -ENOMEM;
    }
    link->ring = ring_init(memory, job->config.ring_items);
    channel->ring = link->ring;
    return 0;
}

static int check_pool(const struct job_lane *lane, uint32_t needed, struct error *error)
{
    ASSERT(lane != NULL);
    const uint32_t total = parcel_pool_total(lane->pool);
    if (total >= needed) {
        return 0;
    }
    return error_set(error, -ENOMEM,
                     "the pool of a lane has %u parcels, this plan needs at least %u", total,
                     needed);
}

/* From the last stage to the first: the reserve of a stage is what all behind it need for one
 * call each. */
static int reserve_parcels(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    struct job_lane *lane = &job->lanes[number];
    uint32_t reserve = 0;
    for (uint32_t i = lane->stage_count; i-- > 0;) {
        struct output *output = lane->order[i]->output;
        if (output != NULL) {
            output_reserve(output, reserve);
            reserve += output_parcels(output, 2 * job->config.parcel_rows_max);
        }
    }
    return check_pool(lane, reserve, error);
}

/* Sources send ticks only when some operator acts on them: each is a control item through the
 * whole graph. */
static bool node_wants_ticks(const struct job *job, const struct plan_node *node)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(node != NULL);
    if (node->operator== PLAN_SOURCE || node->operator== PLAN_SINK || node->operator== PLAN_UNION) {
        return false;
    }
    const struct operator_ops *ops = job->config.find_operator(node->operator);
    return operator_takes_ticks(ops, node);
}

static bool wants_ticks(const struct job *job)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    for (uint32_t i = 0; i < job->config.plan->node_count; i++) {
        if (node_wants_ticks(job, job->config.plan->nodes[i])) {
            return true;
        }
    }
    return false;
}

/* Contexts live in the stage, since bodies keep them by reference. */
static int open_source(struct job *job, struct stage *stage, struct error *error)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    stage->source_context = (struct source_context){
        .node = stage->node,
        .lane = stage->lane,
        .output = stage->output,
        .time_zone = job->config.plan->time_zone,
        .environment = job->config.lanes[stage->lane].source_environment,
        .parcel_rows_max = job->config.parcel_rows_max,
        .wants_ticks = wants_ticks(job),
        .is_replay = job->config.is_replay,
        .counters = stage->counters,
        .hooks = &job->config.hooks,
    };
    return job->config.source_ops->open(&stage->source_context, &stage->source, error);
}

static int open_sink(struct job *job, struct stage *stage, struct error *error)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    const uint32_t input = stage->node->inputs[0];
    stage->sink_context = (struct sink_context){
        .node = stage->node,
        .input = &job->config.plan->nodes[input]->layout,
        .lane = stage->lane,
        .time_zone = job->config.plan->time_zone,
        .environment = job->config.lanes[stage->lane].sink_environment,
        .counters = stage->counters,
    };
    stage->ledger = job->lanes[stage->lane].ledger;
    stage->ledger_sink = job_ledger_sink(job, stage->node->id);
    return job->config.sink_ops->open(&stage->sink_context, &stage->sink, error);
}

static int open_operator(struct job *job, struct stage *stage, struct error *error)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    const struct row_layout *inputs[PLAN_INPUTS_MAX];
    ASSERT(stage->node->input_count <= PLAN_INPUTS_MAX);
    for (uint32_t i = 0; i < stage->node->input_count; i++) {
        inputs[i] = &job->config.plan->nodes[stage->node->inputs[i]]->layout;
    }
    const struct job_lane_config *lane = &job->config.lanes[stage->lane];
    stage->operator_context = (struct operator_context){
        .arena = lane->arena,
        .heap = lane->heap,
        .output = stage->output,
        .time_zone = job->config.plan->time_zone,
        .counters = stage->counters,
    };
    return job->config.find_operator(stage->node->operator)
        ->open(stage->node, inputs, &stage->operator_context, &stage->operator, error);
}

/* An error without a place gets the node's, which is a line of the script. */
static int open_stage(struct job *job, struct stage *stage, struct error *error)
{
    ASSERT(job != NULL);
    ASSERT(stage != NULL);
    int code = 0;
    switch (stage->node->operator) {
    case PLAN_SOURCE:
        code = open_source(job, stage, error);
        break;
    case PLAN_SINK:
        code = open_sink(job, stage, error);
        break;
    case PLAN_UNION:
        break;
    default:
        code = open_operator(job, stage, error);
        break;
    }
    if (code != 0 && error != NULL && error->line == 0) {
        error->line = stage->node->line;
        error->column = stage->node->column_in_line;
    }
    return code;
}

/* Sinks are numbered in the plan's order; job_ledger_sink counts the same way. */
static int create_ledger(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    const char *names[LEDGER_SINKS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->config.plan->node_count; i++) {
        const struct plan_node *node = job->config.plan->nodes[i];
        if (node->operator!= PLAN_SINK) {
            continue;
        }
        if (count == LEDGER_SINKS_MAX) {
            return error_set(error, -ENOTSUP, "more than %d sinks in one job", LEDGER_SINKS_MAX);
        }
        names[count++] = node->sink.table;
    }
    return ledger_create(names, count, &job->lanes[number].ledger, error);
}

static int open_lane(struct job *job, uint32_t number, struct error *error)
{
    ASSERT(job != NULL);
    struct job_lane *lane = &job->lanes[number];
    int code = reserve_parcels(job, number, error);
    if (code == 0 && job->config.keeps_ledger) {
        code = create_ledger(job, number, error);
    }
    for (uint32_t i = 0; code == 0 && i < lane->stage_count; i++) {
        code = open_stage(job, lane->order[i], error);
    }
    return code;
}

/* Runs one step of creation on every lane. */
static int each_lane(struct job *job, int (*step)(struct job *, uint32_t, struct error *),
                     struct error *error, int code)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    for (uint32_t i = 0; code == 0 && i < job->config.lane_count; i++) {
        code = step(job, i, error);
    }
    return code;
}

int wiring_create(struct job *job, struct error *error)
{
    ASSERT(job != NULL);
    int code = each_lane(job, create_pool, error, 0);
    code = each_lane(job, create_lane, error, code);
    code = each_way(job, count_channel, code);
    code = each_lane(job, create_channels, error, code);
    code = each_lane(job, create_outputs, error, code);
    if (code == 0 && each_way(job, connect, 0) != 0) {
        code = out_of_memory(error, "queues and rings");
    }
    return each_lane(job, open_lane, error, code);
}

/* Bodies close before what they write into. */
static void destroy_stage(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    if (stage->source != NULL) {
        stage->source->ops->close(stage->source);
    }
    if (stage->operator!= NULL) {
        stage->operator->ops->close(stage->operator);
    }
    if (stage->sink != NULL) {
        stage->sink->ops->close(stage->sink);
    }
    output_destroy(stage->output);
    for (uint32_t i = 0; i < stage->edge_count; i++) {
        free(stage->edges[i].links);
    }
    free(stage->edges);
    free(stage->channels);
    free(stage->watermark.senders);
    free(stage);
}

void wiring_destroy(struct job *job)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(job->config.lane_count <= PLACEMENT_LANES_MAX);
    for (uint32_t i = 0; i < job->config.lane_count; i++) {
        struct job_lane *lane = &job->lanes[i];
        for (uint32_t s = 0; s < lane->stage_count; s++) {
            destroy_stage(lane->order[s]);
        }
        free(lane->order);
        free(lane->by_node);
        free(lane->waiting_rows);
        ledger_destroy(lane->ledger);
    }
}
