/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes over cores, their memory and their threads; see box.h. Edges are in box_edges.c. */
#include "control/box.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_lcore.h>

#define PARCEL_BYTES_MIDDLE  (UINT32_C(64) << 10)
#define PARCEL_BYTES_LARGE   (UINT32_C(1) << 20)
#define PARCEL_BYTES_LARGEST (UINT32_C(20) << 20)
#define RESERVE_PERCENT      4 /* of state memory, for what is in flight when it is full */
#define MIB_BYTES            (UINT64_C(1) << 20)

uint64_t box_clock(void *context)
{
    struct timespec now;
    (void)context;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static struct box_lane *lane_of_core(struct box *box, uint32_t core)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        if (box->lanes[i].core == core) {
            return &box->lanes[i];
        }
    }
    if (box->lane_count == PLACEMENT_LANES_MAX) {
        return NULL;
    }
    struct box_lane *lane = &box->lanes[box->lane_count];
    *lane = (struct box_lane){.box = box, .number = box->lane_count, .core = core};
    box->lane_count++;
    return lane;
}

static int lay_lanes(struct box *box, struct error *error)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    const struct config_cores *const roles[] = {
        &box->config->cores.receive, &box->config->cores.operate, &box->config->cores.transmit};
    for (uint32_t role = 0; role < COUNT_OF(roles); role++) {
        for (uint32_t i = 0; i < roles[role]->count; i++) {
            struct box_lane *lane = lane_of_core(box, roles[role]->ids[i]);
            if (lane == NULL) {
                return error_set(error, -E2BIG, "more than %u cores in all roles",
                                 PLACEMENT_LANES_MAX);
            }
            lane->receive |= role == 0;
            lane->operate |= role == 1;
            lane->transmit |= role == 2;
        }
    }
    return 0;
}

static bool writes_kafka(const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    return node->operator== PLAN_SINK &&(node->sink.connector == PLAN_CONNECTOR_KAFKA ||
                                         node->sink.connector == PLAN_CONNECTOR_UPSERT_KAFKA);
}

static bool has_dead_letters(const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    return node->operator== PLAN_SOURCE && node->source.on_error == PLAN_ON_ERROR_DEAD_LETTER;
}

int box_init(struct box *box, const struct appliance_config *config, const struct plan *plan,
             struct error *error)
{
    ASSERT(box != NULL);
    ASSERT(config != NULL);
    ASSERT(plan != NULL);
    uint32_t sources = 0;
    *box = (struct box){.config = config, .plan = plan};
    box->topics = calloc(plan->node_count, sizeof(*box->topics));
    if (box->topics == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct plan_node *node = plan->nodes[i];
        sources += node->operator== PLAN_SOURCE ? 1 : 0;
        if (writes_kafka(node)) {
            box->topics[box->topic_count++] = (struct sink_kafka_topic){
                .name = node->sink.topic, .exactly_once = node->sink.exactly_once};
            if (node->sink.exactly_once && box->transactional_id_prefix == NULL) {
                box->transactional_id_prefix = node->sink.transactional_id_prefix;
            }
        } else if (has_dead_letters(node)) {
            box->topics[box->topic_count++] =
                (struct sink_kafka_topic){.name = node->source.dead_letter_topic};
        }
    }
    if (sources > BOX_SOURCES_MAX) {
        return error_set(error, -E2BIG, "%u source tables, at most %u", sources, BOX_SOURCES_MAX);
    }
    if (box->transactional_id_prefix != NULL && config->checkpoint.path[0] == '\0') {
        (void)snprintf(error->place, sizeof(error->place), "checkpoint.path");
        return error_set(error, -EINVAL,
                         "the script writes exactly-once, which needs checkpoints: set it");
    }
    return lay_lanes(box, error);
}

static bool is_networked(const struct box_lane *lane)
{
    ASSERT(lane->source_count <= BOX_SOURCES_MAX);
    return lane->receive || lane->transmit;
}

uint32_t box_queue_count(const struct box *box)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    uint32_t count = 0;
    for (uint32_t i = 0; i < box->lane_count; i++) {
        count += is_networked(&box->lanes[i]) ? 1 : 0;
    }
    return count;
}

static int make_state(struct box_lane *lane, uint64_t bytes, struct error *error)
{
    ASSERT(lane != NULL);
    const uint64_t pages = bytes / ARENA_PAGE_BYTES;
    const uint64_t warn_percent = lane->box->config->memory.warn_percent;
    const struct arena_config config = {
        .memory = mapping_take(lane->mapping, bytes),
        .bytes = bytes,
        .shard_count = BOX_SHARDS,
        .warn_pages_free = (uint32_t)(pages * (100 - warn_percent) / 100),
        .reserve_pages = (uint32_t)(pages * RESERVE_PERCENT / 100),
    };
    if (config.memory == NULL) {
        return error_set(error, -ENOMEM,
                         "memory.state_mib: %llu MiB for the state of core %u are not to be had%s",
                         (unsigned long long)(bytes / MIB_BYTES), lane->core,
                         lane->box->config->memory.hugepages
                             ? " in hugepages: reserve more in /proc/sys/vm/nr_hugepages"
                             : "");
    }
    int status = arena_create(&config, &lane->arena, error);
    if (status == 0) {
        status = heap_create(lane->arena, &lane->heap, error);
    }
    return status;
}

int box_make_memory(struct box *box, struct error *error)
{
    ASSERT(box != NULL);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        struct box_lane *lane = &box->lanes[i];
        lane->mapping = mapping_create(box->config->memory.hugepages);
        lane->news = aligned_alloc(CACHE_LINE_BYTES, sizeof(*lane->news));
        if (lane->mapping == NULL || lane->news == NULL) {
            return error_set(error, -ENOMEM, "out of memory");
        }
        memset(lane->news, 0, sizeof(*lane->news));
        if (!lane->operate) {
            continue;
        }
        const int status = make_state(lane, box->config->memory.state_mib * MIB_BYTES, error);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static void *take_memory(void *context, uint32_t lane, size_t bytes)
{
    struct box *box = context;
    ASSERT(lane < box->lane_count);
    return mapping_take(box->lanes[lane].mapping, bytes);
}

/* Finds which written topic a node has. */
static uint32_t topic_of(const struct box *box, const struct plan_node *node)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    uint32_t topic = 0;
    for (uint32_t i = 0; i < node->id; i++) {
        const struct plan_node *other = box->plan->nodes[i];
        topic += writes_kafka(other) || has_dead_letters(other) ? 1 : 0;
    }
    ASSERT(topic < box->topic_count);
    return topic;
}

static int find_source(void *context, const struct plan_node *node, uint32_t number,
                       struct table_source_edge *out, struct error *error)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(out != NULL);
    struct box_lane *lane = &((struct box *)context)->lanes[number];
    *out = (struct table_source_edge){0};
    for (uint32_t i = 0; i < lane->source_count; i++) {
        if (lane->sources[i].node == node) {
            out->records = source_kafka_records(lane->sources[i].source);
        }
    }
    if (out->records == NULL) {
        return error_set(error, -ENOENT, "table %s has no source on lane %u", node->source.table,
                         number);
    }
    if (has_dead_letters(node)) {
        out->dead_letters = sink_kafka_records(lane->sink);
        out->dead_letter_topic = topic_of(lane->box, node);
    }
    return 0;
}

static int find_sink(void *context, const struct plan_node *node, uint32_t number,
                     struct table_sink_edge *out, struct error *error)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(out != NULL);
    struct box_lane *lane = &((struct box *)context)->lanes[number];
    (void)error;
    *out = (struct table_sink_edge){0};
    if (writes_kafka(node)) {
        out->records = sink_kafka_records(lane->sink);
        out->topic = topic_of(lane->box, node);
    } else if (node->sink.connector == PLAN_CONNECTOR_PRINT) {
        out->records = lane->printer;
        out->topic = node->sink.print_to_stderr ? 1 : 0;
    }
    return 0;
}

static void size_parcels(struct job_config *config, uint64_t bytes)
{
    ASSERT(config != NULL);
    config->class_count = 4;
    config->classes[0] = (struct parcel_class){
        .bytes = PARCEL_BYTES_DEFAULT, .count = (uint32_t)(bytes / 2 / PARCEL_BYTES_DEFAULT)};
    config->classes[1] = (struct parcel_class){
        .bytes = PARCEL_BYTES_MIDDLE, .count = (uint32_t)(bytes / 4 / PARCEL_BYTES_MIDDLE)};
    config->classes[2] = (struct parcel_class){
        .bytes = PARCEL_BYTES_LARGE, .count = (uint32_t)(bytes / 4 / PARCEL_BYTES_LARGE + 1)};
    config->classes[3] = (struct parcel_class){.bytes = PARCEL_BYTES_LARGEST, .count = 2};
}

static uint32_t poll_stack(void *context, uint64_t now_ns)
{
    const struct box_lane *lane = context;
    const uint32_t work = network_take_over(lane->box->network, lane->queue, now_ns);
    return work + stack_poll(lane->stack, now_ns);
}

static uint32_t flush_stack(void *context, uint64_t now_ns)
{
    struct box_lane *lane = context;
    const uint32_t work = stack_flush(lane->stack, now_ns);
    if (lane->sink != NULL && sink_kafka_has_stamps(lane->sink)) {
        sink_kafka_sent(lane->sink, box_clock(NULL));
    }
    return work;
}

/* Hands up what a client has to say; what means that the job cannot go on parks the lane. */
static void tell(struct box_lane *lane, struct kafka_client *client)
{
    ASSERT(lane->source_count <= BOX_SOURCES_MAX);
    ASSERT(lane->box != NULL);
    struct kafka_event event;
    while (kafka_client_event(client, &event)) {
        news_push(lane->news, &event);
        switch (event.code) {
        case KAFKA_EVENT_TOPIC_MISSING:
        case KAFKA_EVENT_TOPIC_DENIED:
        case KAFKA_EVENT_TOPIC_TOO_WIDE:
        case KAFKA_EVENT_PARTITION_FAILED:
        case KAFKA_EVENT_PRODUCE_RECORD_LOST:
        case KAFKA_EVENT_PRODUCE_FAILED:
        case KAFKA_EVENT_TRANSACTION_LOST:
        case KAFKA_EVENT_TRANSACTION_FAILED: {
            struct error reason = {0};
            memcpy(reason.text, event.text, sizeof(event.text));
            lane_fail(lane->lane, &reason);
            break;
        }
        default:
            break;
        }
    }
}

static bool has_heard(const struct kafka_client *client)
{
    return client == NULL || kafka_client_counters(client)->metadata_refreshes != 0;
}

/* A broker that goes away is waited for; one that was never there is a mistake to be told. */
static void await_brokers(struct box_lane *lane, uint64_t now_ns)
{
    const uint64_t limit_ms = lane->box->config->kafka.start_timeout_ms;
    struct error reason = {.place = "kafka.start_timeout_ms"};
    bool all = has_heard(lane->writer);
    for (uint32_t i = 0; i < lane->source_count; i++) {
        all = all && has_heard(lane->sources[i].client);
    }
    lane->has_brokers = all;
    lane->first_poll_ns = lane->first_poll_ns == 0 ? now_ns : lane->first_poll_ns;
    if (all || now_ns - lane->first_poll_ns < limit_ms * (NANOSECONDS_PER_S / 1000)) {
        return;
    }
    (void)error_set(&reason, -ETIMEDOUT,
                    "no broker has answered the lane on core %u within %llu ms: is the broker up, "
                    "are kafka.addresses, nic.address and the cable right?",
                    lane->core, (unsigned long long)limit_ms);
    lane_fail(lane->lane, &reason);
}

static uint32_t poll_edges(void *context, uint64_t now_ns)
{
    struct box_lane *lane = context;
    uint32_t work = 0;
    if (lane->sink != NULL) {
        work += record_sink_poll(sink_kafka_records(lane->sink), now_ns);
        tell(lane, lane->writer);
    }
    for (uint32_t i = 0; i < lane->pool_count; i++) {
        tell(lane, lane->pool[i]);
    }
    for (uint32_t i = 0; i < lane->source_count; i++) {
        tell(lane, lane->sources[i].client);
    }
    if (!lane->has_brokers) {
        await_brokers(lane, now_ns);
    }
    return work;
}

static void take_durable(void *context, uint32_t number, uint64_t id, struct span facts)
{
    struct box *box = context;
    ASSERT(number < box->lane_count && id > box->lanes[number].durable_id);
    (void)facts;
    box->lanes[number].durable_id = id;
}

/* Tells control what has become visible; sinks are asked only when there is news. */
static uint32_t publish(void *context, uint64_t now_ns)
{
    struct box_lane *lane = context;
    (void)now_ns;
    if (lane->durable_id != atomic_load_explicit(&lane->visible_id, memory_order_relaxed) &&
        (lane->sink == NULL || record_sink_flushed(sink_kafka_records(lane->sink)))) {
        /* Relaxed: the number alone is what is told. */
        atomic_store_explicit(&lane->visible_id, lane->durable_id, memory_order_relaxed);
    }
    return 0;
}

static int make_checkpoint(struct box_lane *lane, struct error *error)
{
    struct box *box = lane->box;
    struct lane_checkpoint_config config = {
        .job = box->job,
        .lane = lane->number,
        .snapshot = lane->snapshot,
        .durable = take_durable,
        .durable_context = box,
    };
    if (lane->sink != NULL) {
        config.sinks[config.sink_count++] = sink_kafka_records(lane->sink);
    }
    if (lane->printer != NULL) {
        config.sinks[config.sink_count++] = lane->printer;
    }
    const int status = lane_checkpoint_create(&config, &lane->checkpoint, error);
    box->checkpoints[lane->number] = lane->checkpoint;
    return status;
}

bool box_is_visible(const struct box *box, uint64_t checkpoint_id)
{
    ASSERT(checkpoint_id != 0);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        /* Relaxed: the number alone is what counts. */
        if (atomic_load_explicit(&box->lanes[i].visible_id, memory_order_relaxed) < checkpoint_id) {
            return false;
        }
    }
    return true;
}

static int make_lane(struct box_lane *lane, struct error *error)
{
    ASSERT(lane != NULL);
    struct lane_config config = {
        .number = lane->number,
        .job = lane->box->job,
        .idle =
            lane->box->config->cores.idle == CONFIG_IDLE_SPIN ? LANE_IDLE_SPIN : LANE_IDLE_YIELD,
        .now = box_clock,
    };
    if (lane->snapshot != NULL) {
        const int status = make_checkpoint(lane, error);
        if (status != 0) {
            return status;
        }
        config.before[config.before_count++] =
            (struct lane_poller){.poll = lane_checkpoint_poll, .context = lane->checkpoint};
        config.after[config.after_count++] = (struct lane_poller){.poll = publish, .context = lane};
    }
    if (lane->stack != NULL) {
        config.before[config.before_count++] =
            (struct lane_poller){.poll = poll_stack, .context = lane};
        config.after[config.after_count++] =
            (struct lane_poller){.poll = poll_edges, .context = lane};
        config.after[config.after_count++] =
            (struct lane_poller){.poll = flush_stack, .context = lane};
    }
    return lane_create(&config, &lane->lane, error);
}

static int keep_ledger(struct box_lane *lane, struct error *error)
{
    ASSERT(lane->source_count <= BOX_SOURCES_MAX);
    ASSERT(lane->box != NULL);
    const struct box *box = lane->box;
    uint32_t sinks[SINK_KAFKA_TOPICS_MAX];
    uint32_t topic = 0;
    for (uint32_t i = 0; i < box->plan->node_count; i++) {
        const struct plan_node *node = box->plan->nodes[i];
        if (writes_kafka(node)) {
            sinks[topic++] = job_ledger_sink(box->job, i);
        } else if (has_dead_letters(node)) {
            sinks[topic++] = UINT32_MAX;
        }
    }
    ASSERT(topic == box->topic_count);
    if (sink_kafka_keep_ledger(lane->sink, job_lane_ledger(box->job, lane->number), sinks,
                               box_clock) != 0) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    return 0;
}

int box_make_job(struct box *box, struct error *error)
{
    ASSERT(box != NULL);
    box->source_environment =
        (struct table_source_environment){.find = find_source, .context = box};
    box->sink_environment = (struct table_sink_environment){.find = find_sink, .context = box};
    struct job_config config = {
        .plan = box->plan,
        .lane_count = box->lane_count,
        .allocate = take_memory,
        .allocate_context = box,
        .parcel_rows_max = PARCEL_ROWS_MAX,
        .ring_items = JOB_RING_ITEMS_DEFAULT,
        .queue_rows_max = JOB_QUEUE_ROWS_DEFAULT,
        .records_a_turn = JOB_RECORDS_A_TURN_DEFAULT,
        .keeps_ledger = true,
        .find_operator = operator_find,
        .source_ops = &table_source_ops,
        .sink_ops = &table_sink_ops,
        .hooks = {.clock = box_clock},
    };
    if (box->lanes[0].snapshot != NULL) {
        config.hooks.cut = lane_checkpoint_cut;
        config.hooks.cut_context = box->checkpoints;
    }
    size_parcels(&config, box->config->memory.parcels_mib * MIB_BYTES);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        const struct box_lane *lane = &box->lanes[i];
        config.lanes[i] = (struct job_lane_config){
            .receive = lane->receive,
            .operate = lane->operate,
            .transmit = lane->transmit,
            .arena = lane->arena,
            .heap = lane->heap,
            .source_environment = &box->source_environment,
            .sink_environment = &box->sink_environment,
        };
    }
    int status = job_create(&config, &box->job, error);
    for (uint32_t i = 0; i < box->lane_count && status == 0; i++) {
        status = make_lane(&box->lanes[i], error);
        if (status == 0 && box->lanes[i].sink != NULL) {
            status = keep_ledger(&box->lanes[i], error);
        }
    }
    return status;
}

static void *run_lane(void *argument)
{
    struct box_lane *lane = argument;
    /* A lane number of DPDK's own gives this thread a cache in each mempool. */
    const bool is_registered = lane->stack != NULL && rte_thread_register() == 0;
    lane_run(lane->lane);
    if (is_registered) {
        rte_thread_unregister();
    }
    return NULL;
}

int box_start(struct box *box, struct error *error)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        struct box_lane *lane = &box->lanes[i];
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(lane->core, &cores);
        const int status = pthread_create(&lane->thread, NULL, run_lane, lane);
        if (status != 0) {
            return error_set(error, -status, "no thread for core %u: %s", lane->core,
                             strerror(status));
        }
        lane->is_running = true;
        if (pthread_setaffinity_np(lane->thread, sizeof(cores), &cores) != 0) {
            return error_set(error, -EINVAL, "core %u cannot be used by this process", lane->core);
        }
    }
    return 0;
}

void box_stop(struct box *box)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    const struct lane_command stop = {.kind = LANE_COMMAND_STOP};
    for (uint32_t i = 0; i < box->lane_count; i++) {
        while (box->lanes[i].is_running && !lane_command(box->lanes[i].lane, &stop)) {
            (void)sched_yield();
        }
    }
    for (uint32_t i = 0; i < box->lane_count; i++) {
        if (box->lanes[i].is_running) {
            (void)pthread_join(box->lanes[i].thread, NULL);
            box->lanes[i].is_running = false;
        }
    }
}
