/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka clients of each lane and the record sources and sinks over them: one client a source
 * table, so that tables of one topic are independent, and one for all that the lane writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/box.h"
#include "dataplane/facts.h"
#include "dataplane/sink_print.h"
#include "state/restore.h"

static int read_positions(struct box_source *source, struct metadata *metadata, struct error *error)
{
    ASSERT(source != NULL);
    const struct plan_source *plan = &source->node->source;
    struct metadata_offset *offsets =
        calloc(METADATA_PARTITIONS_MAX, sizeof(*offsets)); /* of one topic at a time */
    const size_t positions_max = (size_t)plan->topic_count * METADATA_PARTITIONS_MAX;
    source->positions = calloc(positions_max, sizeof(*source->positions));
    int status = offsets == NULL || source->positions == NULL
                     ? error_set(error, -ENOMEM, "out of memory")
                     : 0;
    for (uint32_t topic = 0; topic < plan->topic_count && status == 0; topic++) {
        uint32_t count = 0;
        status = metadata_topic(metadata, plan->topics[topic], &count, error);
        for (uint32_t p = 0; p < count; p++) {
            offsets[p] = (struct metadata_offset){
                .topic = plan->topics[topic], .partition = (int32_t)p, .offset = -1};
        }
        if (status == 0) {
            status = metadata_committed(metadata, offsets, count, error);
        }
        for (uint32_t p = 0; p < count && status == 0; p++) {
            if (offsets[p].offset < 0 && plan->group_reset == PLAN_GROUP_RESET_NONE) {
                status = error_set(error, -ENOENT,
                                   "group %s has no offset of topic %s, partition %u: set "
                                   "'properties.auto.offset.reset', or another "
                                   "'scan.startup.mode'",
                                   plan->group_id == NULL ? "(none)" : plan->group_id,
                                   plan->topics[topic], p);
                error->line = source->node->line;
                error->column = source->node->column_in_line;
            }
            if (offsets[p].offset >= 0) {
                ASSERT(source->position_count < positions_max);
                source->positions[source->position_count++] = (struct source_kafka_position){
                    .topic = topic, .partition = p, .offset = offsets[p].offset};
            }
        }
    }
    free(offsets);
    return status;
}

/* What a client of a lane is for. */
struct client_wish {
    const char *servers;
    bool read_committed;
    bool is_transactional;
};

static int make_client(struct box_lane *lane, const struct client_wish *wish,
                       struct kafka_client **out, struct error *error)
{
    ASSERT(lane != NULL);
    struct kafka_config *config = malloc(sizeof(*config));
    const struct kafka_connector connector = {.connect = network_connect, .context = lane->stack};
    if (config == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    int status = network_kafka_config(lane->box->config, wish->servers, config, error);
    if (status == 0) {
        config->read_committed = wish->read_committed;
        if (wish->is_transactional) {
            kafka_config_make_transactional(config);
            config->transaction_timeout_ms =
                (uint32_t)lane->box->config->kafka.transaction_timeout_ms;
        }
        config->seed = box_clock(NULL) + lane->number;
        const size_t bytes = kafka_client_bytes(config);
        config->memory =
            (struct span_mut){.data = mapping_take(lane->mapping, bytes), .bytes = bytes};
        if (config->memory.data == NULL) {
            status =
                error_set(error, -ENOMEM, "no memory for a Kafka client of %zu MiB on core %u%s",
                          bytes >> 20, lane->core,
                          lane->box->config->memory.hugepages
                              ? ": reserve more hugepages in /proc/sys/vm/nr_hugepages"
                              : "");
        } else {
            status = kafka_client_create(config, &connector, out, error);
        }
    }
    free(config);
    return status;
}

static enum kafka_reset reset_of(enum config_gone gone)
{
    static const enum kafka_reset resets[] = {
        [CONFIG_GONE_FAIL] = KAFKA_RESET_FAIL,
        [CONFIG_GONE_EARLIEST] = KAFKA_RESET_EARLIEST,
        [CONFIG_GONE_LATEST] = KAFKA_RESET_LATEST,
    };
    ASSERT((size_t)gone < COUNT_OF(resets));
    return resets[gone];
}

static int make_source(struct box_lane *lane, const struct plan_node *node, uint32_t index,
                       struct metadata *metadata, struct error *error)
{
    ASSERT(lane != NULL);
    ASSERT(node != NULL);
    struct box_source *source = &lane->sources[lane->source_count];
    source->node = node;
    lane->source_count++;
    const struct client_wish wish = {
        .servers = node->source.bootstrap_servers,
        .read_committed = node->source.read_committed,
    };
    int status = make_client(lane, &wish, &source->client, error);
    if (status == 0 && node->source.startup == PLAN_STARTUP_GROUP_OFFSETS && metadata != NULL) {
        status = read_positions(source, metadata, error);
    }
    if (status == 0) {
        const struct source_kafka_config config = {
            .client = source->client,
            .source = &node->source,
            .lane_index = index,
            .lane_count = lane->box->config->cores.receive.count,
            .positions = source->positions,
            .position_count = source->position_count,
            .restored_reset = reset_of(lane->box->config->checkpoint.when_offset_is_gone),
        };
        status = source_kafka_create(&config, &source->source, error);
    }
    return status;
}

static int make_sources(struct box_lane *lane, uint32_t index, struct metadata *metadata,
                        struct error *error)
{
    ASSERT(lane != NULL);
    const struct plan *plan = lane->box->plan;
    int status = 0;
    for (uint32_t i = 0; i < plan->node_count && status == 0; i++) {
        if (plan->nodes[i]->operator== PLAN_SOURCE) {
            status = make_source(lane, plan->nodes[i], index, metadata, error);
        }
    }
    return status;
}

/* All sinks of a job write to one cluster: that of the first, or of the appliance file. */
static const char *written_servers(const struct plan *plan)
{
    ASSERT(plan->node_count <= PLAN_NODES_MAX);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct plan_node *node = plan->nodes[i];
        if (node->operator== PLAN_SINK && node->sink.bootstrap_servers != NULL) {
            return node->sink.bootstrap_servers;
        }
    }
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_SOURCE) {
            return plan->nodes[i]->source.bootstrap_servers;
        }
    }
    return NULL;
}

static int check_one_cluster(const struct box *box, struct error *error)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    const char *servers = written_servers(box->plan);
    for (uint32_t i = 0; i < box->plan->node_count; i++) {
        const struct plan_node *node = box->plan->nodes[i];
        if (node->operator== PLAN_SINK && node->sink.bootstrap_servers != NULL &&
            box->config->kafka.bootstrap.count == 0 &&
            strcmp(node->sink.bootstrap_servers, servers) != 0) {
            error->line = node->line;
            error->column = node->column_in_line;
            return error_set(error, -ENOTSUP, "sinks on several clusters: %s and %s", servers,
                             node->sink.bootstrap_servers);
        }
    }
    return 0;
}

/* The transactional clients of a lane. */
static int make_pool(struct box_lane *lane, struct error *error)
{
    const struct box *box = lane->box;
    if (box->transactional_id_prefix == NULL) {
        return 0;
    }
    int status = 0;
    for (uint32_t i = 0; i < box->config->kafka.transactions && status == 0; i++) {
        const struct client_wish wish = {.servers = written_servers(box->plan),
                                         .is_transactional = true};
        status = make_client(lane, &wish, &lane->pool[i], error);
        lane->pool_count += status == 0 ? 1 : 0;
    }
    return status;
}

static int make_sink(struct box_lane *lane, struct error *error)
{
    const struct box *box = lane->box;
    char id[SINK_KAFKA_ID_BYTES];
    const struct client_wish wish = {.servers = written_servers(box->plan)};
    int status = make_client(lane, &wish, &lane->writer, error);
    if (status == 0) {
        status = make_pool(lane, error);
    }
    if (status != 0) {
        return status;
    }
    (void)snprintf(id, sizeof(id), "%s-%u",
                   box->transactional_id_prefix == NULL ? "" : box->transactional_id_prefix,
                   lane->number);
    const struct sink_kafka_config config = {
        .client = lane->writer,
        .topics = box->topics,
        .topic_count = box->topic_count,
        .pool = lane->pool,
        .pool_count = lane->pool_count,
        .transactional_id = id,
    };
    return sink_kafka_create(&config, &lane->sink, error);
}

/* Transactions among facts, of all lanes. */
struct claims {
    struct facts_transaction *items; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct error *error;
};

static bool take_claim(void *context, const struct facts_item *item)
{
    struct claims *claims = context;
    if (item->kind != FACTS_TRANSACTION) {
        return true;
    }
    if (claims->count == claims->capacity) {
        const uint32_t capacity = claims->capacity == 0 ? 64 : 2 * claims->capacity;
        struct facts_transaction *items =
            reallocarray(claims->items, capacity, sizeof(*claims->items));
        if (items == NULL) {
            return false;
        }
        claims->items = items;
        claims->capacity = capacity;
    }
    claims->items[claims->count++] = item->transaction;
    return true;
}

static int take_facts(void *context, uint32_t lane, struct span facts)
{
    struct claims *claims = context;
    (void)lane;
    return facts_read(facts, take_claim, claims, claims->error);
}

int box_recover(struct box *box, struct store *store, uint64_t checkpoint_id, struct error *error)
{
    ASSERT(box->job != NULL && (store != NULL || checkpoint_id == 0));
    struct claims claims = {.error = error};
    struct sink_kafka *sinks[PLACEMENT_LANES_MAX];
    uint32_t sink_count = 0;
    int status =
        checkpoint_id == 0 ? 0 : restore_facts(store, checkpoint_id, take_facts, &claims, error);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        if (box->lanes[i].sink != NULL) {
            sinks[sink_count++] = box->lanes[i].sink;
        }
    }
    if (status == 0 && (sink_count != 0 || claims.count != 0)) {
        status = sink_kafka_recover(sinks, sink_count, claims.items, claims.count, error);
    }
    free(claims.items);
    return status;
}

int box_make_edges(struct box *box, struct metadata *metadata, struct error *error)
{
    ASSERT(box != NULL);
    uint32_t receiver = 0;
    uint32_t queue = 0;
    int status = check_one_cluster(box, error);
    for (uint32_t i = 0; i < box->lane_count && status == 0; i++) {
        struct box_lane *lane = &box->lanes[i];
        if (!lane->receive && !lane->transmit) {
            continue;
        }
        lane->queue = queue++;
        lane->stack = network_stack(box->network, lane->queue);
        if (lane->receive) {
            status = make_sources(lane, receiver++, metadata, error);
        }
        if (status == 0 && box->topic_count > 0) {
            status = make_sink(lane, error);
        }
        if (status == 0) {
            status = sink_print_create(SINK_PRINT_BYTES_DEFAULT, &lane->printer, error);
        }
    }
    return status;
}

static void fini_edges(struct box_lane *lane)
{
    ASSERT(lane->source_count <= BOX_SOURCES_MAX);
    ASSERT(lane->box != NULL);
    for (uint32_t i = 0; i < lane->source_count; i++) {
        source_kafka_destroy(lane->sources[i].source);
        kafka_client_destroy(lane->sources[i].client);
        free(lane->sources[i].positions);
    }
    sink_kafka_destroy(lane->sink);
    kafka_client_destroy(lane->writer);
    for (uint32_t i = 0; i < lane->pool_count; i++) {
        kafka_client_destroy(lane->pool[i]);
    }
    sink_print_destroy(lane->printer);
}

void box_fini(struct box *box)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        ASSERT(!box->lanes[i].is_running);
        lane_destroy(box->lanes[i].lane);
        lane_checkpoint_destroy(box->lanes[i].checkpoint);
    }
    job_destroy(box->job);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        struct box_lane *lane = &box->lanes[i];
        fini_edges(lane);
        heap_destroy(lane->heap);
        mapping_destroy(lane->mapping);
        free(lane->news);
    }
    free(box->topics);
    /* The network is its owner's; everything else is gone. */
    *box = (struct box){.network = box->network};
}
