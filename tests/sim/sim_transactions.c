/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly-once against the scripted cluster: lanes with a Kafka sink each write streams of numbered
 * records, a checkpoint stores where the streams are and what the sinks say, and everything is
 * destroyed at a random step and begun again from the newest durable checkpoint, with as many lanes
 * as the seed draws. Requests that a dead client has sent are still worked on for a while.
 *
 * Checked from outside the sink, at every step by a reader of what is committed:
 *   1. no record is visible that the newest durable checkpoint does not hold,
 *   2. none is visible twice, and the records of a stream and partition are in order,
 *   3. at the end all are there, which the log itself says as well, without the reader;
 *   4. the at-least-once stream has no gap.
 * Where the cluster ends transactions by itself (they timed out) a gap must have been told.
 *
 *   sim_transactions --seeds N [--first S]        many seeds; prints the first that fails, exits 1
 *   sim_transactions --seed S                     one seed, with its story
 *   sim_transactions --every N [--first S]        seed S with a crash at every N-th step of it */
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/facts.h"
#include "dataplane/kafka/client.h"
#include "dataplane/sink_kafka.h"
#include "tests/sim/broker.h"
#include "tests/sim/seed_watch.h"

#define NS_PER_MS     UINT64_C(1000000)
#define PARTITIONS    2
#define STREAMS       4 /* the last one at least once */
#define STREAM_PLAIN  (STREAMS - 1)
#define LANES_MAX     3
#define POOL          4
#define TOTAL_MAX     400
#define FACTS_BYTES   16384
#define VALUE_MAX     6000
#define CALM_AFTER_NS (2500 * NS_PER_MS)
#define GIVE_UP_NS    (60000 * NS_PER_MS)
#define CRASHES_MAX   6

struct stream_model {
    uint32_t next; /* to append, in this run */
    uint32_t total;
    uint32_t cut;              /* where the checkpoint under way has it */
    uint32_t durable;          /* where the newest durable one has it */
    uint32_t last[PARTITIONS]; /* seen by the reader, and 1 */
    uint8_t seen[TOTAL_MAX];
};

enum cut_state {
    CUT_ORDERED = 0,
    CUT_DONE,
    CUT_TOLD, /* the outcome */
};

struct lane {
    struct kafka_client *plain;
    struct kafka_client *pool[POOL];
    struct sink_kafka *sink;
    enum cut_state cut;
    uint64_t told_id; /* the outcome that it does not know yet, 0 none */
    bool told_failed;
    _Alignas(8) uint8_t facts[FACTS_BYTES];
    size_t facts_bytes;
};

struct world {
    uint64_t seed;
    bool is_loud;
    bool may_expire;
    bool is_lost_told;
    bool has_failed; /* a sink: the run is over, as a process would be */
    struct broker *broker;
    struct kafka_client *reader;
    uint32_t reader_sources[PARTITIONS];
    struct lane lanes[LANES_MAX];
    uint32_t lane_count;
    uint32_t lanes_min; /* lanes of runs that no durable checkpoint names yet */
    struct stream_model streams[STREAMS];
    uint64_t checkpoint_id;
    bool is_under_way;
    uint32_t final_count; /* durable checkpoints that hold everything */
    struct facts_transaction facts[LANES_MAX * POOL * 4]; /* of the newest durable one */
    uint32_t fact_count;
    uint64_t now_ns;
    uint64_t step;
    uint64_t crash_step; /* 0: drawn */
    uint32_t crash_odds;
    uint32_t crash_count;
    uint32_t fence_count;
    uint64_t down_ns_max;
    struct kafka_config config;
    char failure[256];
};

struct totals {
    uint64_t steps;
    uint64_t crashes;
    uint64_t checkpoints;
    uint64_t commits;
    uint64_t resolved;
    uint64_t restarts;
    uint64_t expired;
    uint64_t lost;
    uint64_t fenced;
};

static uint64_t draw(struct world *world, uint64_t below)
{
    return broker_random(world->broker) % below;
}

static bool fail(struct world *world, const char *what, int64_t first, int64_t second)
{
    if (world->failure[0] == '\0') {
        (void)snprintf(world->failure, sizeof(world->failure), "%.180s (%lld, %lld) at step %llu",
                       what, (long long)first, (long long)second, (unsigned long long)world->step);
    }
    return false;
}

static void story(const struct world *world, const char *what, uint64_t number)
{
    if (world->is_loud) {
        printf("%10.3f ms  step %6llu  %s %llu\n", (double)world->now_ns / 1e6,
               (unsigned long long)world->step, what, (unsigned long long)number);
    }
}

static struct broker_faults draw_faults(uint64_t seed, struct broker *broker)
{
    struct broker_faults faults = {0};
    if (seed % 8 == 0) {
        return faults;
    }
    uint32_t *odds[] = {&faults.refuse,      &faults.hang,    &faults.reset,    &faults.finish,
                        &faults.stall,       &faults.slow,    &faults.error,    &faults.garbage,
                        &faults.move,        &faults.forget,  &faults.throttle, &faults.lose_answer,
                        &faults.coordinator, &faults.restart, &faults.marker,   &faults.shorten};
    static const uint32_t most[] = {1024, 400, 8,   8,   30, 400, 400,  30,
                                    20,   400, 400, 300, 10, 4,   4000, 400};
    for (size_t i = 0; i < COUNT_OF(odds); i++) {
        if (broker_random(broker) % 2) {
            *odds[i] = (uint32_t)(broker_random(broker) % most[i]);
        }
    }
    return faults;
}

static void make_broker(struct world *world)
{
    struct broker_config config = {.seed = world->seed * 2654435761 + 7, .nodes = 3};
    struct broker *broker = broker_create(&config);
    world->broker = broker;
    config.nodes = 1 + (uint32_t)draw(world, BROKER_NODES_MAX - 1);
    config.metadata_version_max = (int16_t)(2 + draw(world, 11));
    config.fragment_bytes_max = (size_t)1 << (6 + draw(world, 11));
    config.send_bytes_max = (size_t)1 << (9 + draw(world, 8));
    config.receive_bytes_max = (size_t)1 << (12 + draw(world, 6));
    config.batch_bytes_max = 100000;
    config.linger_ms = (uint32_t)(draw(world, 2) * draw(world, 200));
    config.faults = draw_faults(world->seed, broker);
    broker->config = config;
    (void)broker_add_topic(broker, "once", PARTITIONS);
    (void)broker_add_topic(broker, "plain", PARTITIONS);
}

static void make_config(struct world *world)
{
    struct kafka_config *config = &world->config;
    kafka_config_init(config);
    config->bootstrap_count = 1;
    (void)snprintf(config->bootstrap[0].host, KAFKA_HOST_BYTES, "198.18.0.1");
    config->bootstrap[0].port = BROKER_PORT;
    for (uint32_t i = 0; i < BROKER_NODES_MAX; i++) {
        struct kafka_address_map *row = &config->address_map[config->address_map_count++];
        (void)snprintf(row->advertised.host, KAFKA_HOST_BYTES, "node-%u", i + 1);
        row->ip4 = BROKER_IP4 + i;
    }
    config->topics_max = 3;
    config->topic_partitions_max = 8;
    config->sources_max = 6;
    config->sinks_max = 6;
    config->brokers_max = 6;
    config->stream_receive_bytes = (uint32_t)world->broker->config.receive_bytes_max;
    config->response_bytes_max = 1 << 17;
    config->decoded_bytes_max = 1 << 17;
    config->fetch_bytes_max = 1 << 16;
    config->fetch_partition_bytes_max = 1 << 15;
    config->fetch_wait_ms = 1 + (uint32_t)draw(world, 20);
    config->produce_codec = draw(world, 2) ? KAFKA_CODEC_LZ4 : KAFKA_CODEC_NONE;
    config->produce_batch_bytes = 512 + (uint32_t)draw(world, 4000);
    config->produce_buffers = 4 + (uint32_t)draw(world, 20);
    config->produce_record_bytes_max = 10000;
    config->produce_large_buffers = 2;
    config->produce_request_bytes_max = 1 + (uint32_t)draw(world, 60000);
    config->produce_in_flight_max = 1 + (uint32_t)draw(world, 5);
    config->produce_partition_in_flight_max = 1; /* brokers restart */
    config->transaction_timeout_ms = world->may_expire ? 1000 : 900000;
    config->connect_timeout_ms = 100;
    config->request_timeout_ms = 800;
    config->retry_backoff_ms = 1 + (uint32_t)draw(world, 30);
    config->reconnect_backoff_ms = 1 + (uint32_t)draw(world, 30);
    config->reconnect_backoff_ms_max = 100;
    config->metadata_age_ms_max = 500;
    config->idle_close_ms = 50 + (uint32_t)draw(world, 5000);
}

static struct kafka_client *make_client(struct world *world, const struct kafka_config *config)
{
    const struct kafka_connector connector = {.connect = broker_connect, .context = world->broker};
    struct error error = {0};
    struct kafka_client *client = NULL;
    const int status = kafka_client_create(config, &connector, &client, &error);
    if (status != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
    }
    ASSERT(status == 0);
    return client;
}

static void make_reader(struct world *world)
{
    struct kafka_config config = world->config;
    uint32_t topic;
    config.read_committed = true;
    config.seed = world->seed;
    world->reader = make_client(world, &config);
    bool is_good = kafka_client_topic(world->reader, "once", &topic);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        const struct kafka_assignment assignment = {.topic_index = topic, .partition = (int32_t)i};
        is_good &= kafka_client_assign(world->reader, &assignment, &world->reader_sources[i]);
    }
    ASSERT(is_good);
}

static void make_lane(struct world *world, uint32_t number)
{
    struct lane *lane = &world->lanes[number];
    const struct sink_kafka_topic topics[] = {{.name = "once", .exactly_once = true},
                                              {.name = "plain"}};
    struct kafka_config config = world->config;
    struct error error = {0};
    char id[32];
    *lane = (struct lane){.cut = CUT_TOLD};
    (void)snprintf(id, sizeof(id), "job-%u", number);
    config.seed = draw(world, UINT32_MAX);
    lane->plain = make_client(world, &config);
    kafka_config_make_transactional(&config);
    for (uint32_t i = 0; i < POOL; i++) {
        config.seed = draw(world, UINT32_MAX);
        lane->pool[i] = make_client(world, &config);
    }
    const struct sink_kafka_config sink = {.client = lane->plain,
                                           .topics = topics,
                                           .topic_count = COUNT_OF(topics),
                                           .pool = lane->pool,
                                           .pool_count = POOL,
                                           .transactional_id = id};
    const int status = sink_kafka_create(&sink, &lane->sink, &error);
    if (status != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
    }
    ASSERT(status == 0);
}

static void free_lanes(struct world *world)
{
    for (uint32_t i = 0; i < world->lane_count; i++) {
        struct lane *lane = &world->lanes[i];
        sink_kafka_destroy(lane->sink);
        kafka_client_destroy(lane->plain);
        for (uint32_t k = 0; k < POOL; k++) {
            kafka_client_destroy(lane->pool[k]);
        }
    }
    world->lane_count = 0;
}

/* A start from the newest durable checkpoint. Ids of lanes that no checkpoint names, and that are
 * no more, stay open until they time out: lanes become fewer only once a checkpoint was durable. */
static void start(struct world *world)
{
    struct sink_kafka *sinks[LANES_MAX];
    struct error error = {0};
    world->lane_count = 1 + (uint32_t)draw(world, LANES_MAX);
    if (world->lane_count < world->lanes_min) {
        world->lane_count = world->lanes_min;
    }
    world->lanes_min = world->lane_count;
    for (uint32_t i = 0; i < world->lane_count; i++) {
        make_lane(world, i);
        sinks[i] = world->lanes[i].sink;
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        world->streams[i].next = world->streams[i].durable;
    }
    const int status =
        sink_kafka_recover(sinks, world->lane_count, world->facts, world->fact_count, &error);
    if (status != 0) {
        (void)fail(world, error.text, status, 0);
    }
    world->has_failed = false;
    world->is_under_way = false;
    story(world, "started, lanes:", world->lane_count);
}

/* ---- Lanes ---- */

static void tell_events(struct world *world, struct kafka_client *client)
{
    struct kafka_event event;
    while (kafka_client_event(client, &event)) {
        if (world->is_loud) {
            printf("%10.3f ms  event %2d  %s\n", (double)event.at_ns / 1e6, event.code, event.text);
        }
        const bool is_lost = event.code == KAFKA_EVENT_TRANSACTION_LOST;
        const bool is_fenced = event.code == KAFKA_EVENT_TRANSACTION_FAILED ||
                               event.code == KAFKA_EVENT_PRODUCE_FAILED;
        world->is_lost_told |= is_lost;
        world->fence_count += is_fenced;
        if ((is_lost && !world->may_expire) || (is_fenced && !world->may_expire) ||
            event.code == KAFKA_EVENT_PARTITION_FAILED ||
            event.code == KAFKA_EVENT_PRODUCE_RECORD_LOST) {
            (void)fail(world, event.text, event.code, event.error_code);
        }
    }
}

static bool append_one(struct world *world, struct lane *lane, uint32_t number)
{
    struct stream_model *stream = &world->streams[number];
    uint8_t value[VALUE_MAX];
    size_t bytes = 8 + draw(world, 100);
    if (draw(world, 30) == 0) {
        bytes = 8 + draw(world, VALUE_MAX - 8);
    }
    memset(value, (int)stream->next, bytes);
    store_be32(value, number);
    store_be32(value + 4, stream->next);
    const struct record record = {
        .key_is_null = true, .timestamp_ms = 1, .value = {.data = value, .bytes = bytes}};
    const enum record_sink_verdict verdict =
        record_sink_append(sink_kafka_records(lane->sink), number == STREAM_PLAIN ? 1 : 0,
                           (int32_t)(stream->next % PARTITIONS), &record);
    stream->next += verdict == RECORD_SINK_OK;
    return verdict == RECORD_SINK_OK;
}

static void append_some(struct world *world)
{
    const uint32_t number = (uint32_t)draw(world, STREAMS);
    struct stream_model *stream = &world->streams[number];
    struct lane *lane = &world->lanes[number % world->lane_count];
    for (uint64_t i = draw(world, 6); i > 0 && stream->next < stream->total; i--) {
        if (!append_one(world, lane, number)) {
            return;
        }
    }
}

static void poll_lane(struct world *world, struct lane *lane)
{
    int16_t code = 0;
    (void)record_sink_poll(sink_kafka_records(lane->sink), world->now_ns);
    tell_events(world, lane->plain);
    for (uint32_t i = 0; i < POOL; i++) {
        tell_events(world, lane->pool[i]);
    }
    if (sink_kafka_has_failed(lane->sink, &code)) {
        world->has_failed = true; /* tell_events judges whether it may */
    }
}

/* ---- Checkpoints ---- */

static void cut(struct world *world, uint32_t number)
{
    struct lane *lane = &world->lanes[number];
    struct facts_writer facts;
    facts_begin(&facts, (struct span_mut){lane->facts, sizeof(lane->facts)});
    record_sink_cut(sink_kafka_records(lane->sink), world->checkpoint_id, &facts);
    ASSERT(!facts.is_full);
    lane->facts_bytes = facts_written(&facts).bytes;
    lane->cut = CUT_DONE;
    for (uint32_t i = number; i < STREAMS; i += world->lane_count) {
        world->streams[i].cut = world->streams[i].next;
    }
}

static bool take_fact(void *context, const struct facts_item *item)
{
    struct world *world = context;
    ASSERT(item->kind == FACTS_TRANSACTION);
    ASSERT(world->fact_count < COUNT_OF(world->facts));
    world->facts[world->fact_count++] = item->transaction;
    return true;
}

static void end_checkpoint(struct world *world, bool is_durable)
{
    struct error error = {0};
    bool is_all = true;
    story(world, is_durable ? "durable" : "failed", world->checkpoint_id);
    world->is_under_way = false;
    for (uint32_t i = 0; i < world->lane_count; i++) {
        world->lanes[i].told_id = world->checkpoint_id;
        world->lanes[i].told_failed = !is_durable;
    }
    if (!is_durable) {
        return;
    }
    world->fact_count = 0;
    world->lanes_min = 1;
    for (uint32_t i = 0; i < world->lane_count; i++) {
        const struct span facts = {world->lanes[i].facts, world->lanes[i].facts_bytes};
        const int status = facts_read(facts, take_fact, world, &error);
        ASSERT(status == 0);
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        world->streams[i].durable = world->streams[i].cut;
        is_all &= world->streams[i].durable == world->streams[i].total;
    }
    world->final_count += is_all;
}

/* Outcomes reach lanes late, and a failure may never be told. */
static void tell_outcomes(struct world *world)
{
    for (uint32_t i = 0; i < world->lane_count; i++) {
        struct lane *lane = &world->lanes[i];
        if (lane->told_id == 0 || draw(world, 4) != 0) {
            continue;
        }
        struct record_sink *records = sink_kafka_records(lane->sink);
        if (!lane->told_failed) {
            record_sink_complete(records, lane->told_id);
        } else if (draw(world, 4) != 0) {
            record_sink_failed(records, lane->told_id);
        }
        lane->told_id = 0;
    }
}

static bool all_told(const struct world *world)
{
    for (uint32_t i = 0; i < world->lane_count; i++) {
        if (world->lanes[i].told_id != 0) {
            return false;
        }
    }
    return true;
}

static void move_checkpoint(struct world *world, bool is_calm)
{
    tell_outcomes(world);
    if (!world->is_under_way) {
        if (all_told(world) && draw(world, 20) == 0) {
            world->is_under_way = true;
            world->checkpoint_id++;
            for (uint32_t i = 0; i < world->lane_count; i++) {
                world->lanes[i].cut = CUT_ORDERED;
            }
        }
        return;
    }
    bool is_settled = true;
    for (uint32_t i = 0; i < world->lane_count; i++) {
        struct lane *lane = &world->lanes[i];
        if (lane->cut == CUT_ORDERED && draw(world, 4) == 0) {
            cut(world, i);
        }
        is_settled = is_settled && lane->cut == CUT_DONE &&
                     record_sink_is_settled(sink_kafka_records(lane->sink), world->checkpoint_id);
    }
    bool is_cut = true;
    for (uint32_t i = 0; i < world->lane_count; i++) {
        is_cut = is_cut && world->lanes[i].cut == CUT_DONE;
    }
    if (is_cut && !is_calm && draw(world, 100) == 0) {
        end_checkpoint(world, false);
    } else if (is_settled && draw(world, 3) == 0) {
        end_checkpoint(world, true);
    }
}

/* ---- What readers see ---- */

static bool check_seen(struct world *world, uint32_t partition, const uint8_t *value)
{
    const uint32_t number = load_be32(value);
    const uint32_t id = load_be32(value + 4);
    if (number >= STREAM_PLAIN || id >= world->streams[number].total) {
        return fail(world, "a record that nobody wrote", number, id);
    }
    struct stream_model *stream = &world->streams[number];
    if (id >= stream->durable) {
        return fail(world, "visible, but not in a durable checkpoint", number, id);
    }
    if (stream->seen[id]++ != 0) {
        return fail(world, "visible twice", number, id);
    }
    if (id + 1 <= stream->last[partition]) {
        return fail(world, "out of order", number, id);
    }
    stream->last[partition] = id + 1;
    return true;
}

static bool read_on(struct world *world)
{
    struct kafka_record records[32];
    (void)kafka_client_poll(world->reader, world->now_ns);
    tell_events(world, world->reader);
    for (;;) {
        const uint32_t count = kafka_client_pull(world->reader, records, COUNT_OF(records));
        for (uint32_t i = 0; i < count; i++) {
            if (!check_seen(world, (uint32_t)records[i].partition, records[i].value.data)) {
                return false;
            }
        }
        if (count == 0) {
            return true;
        }
    }
}

/* Finds a record that is not visible.
 * returns  false when all are */
static bool find_missing(const struct world *world, uint32_t *stream, uint32_t *id)
{
    for (uint32_t i = 0; i < STREAM_PLAIN; i++) {
        for (uint32_t k = 0; k < world->streams[i].total; k++) {
            if (world->streams[i].seen[k] == 0) {
                *stream = i;
                *id = k;
                return true;
            }
        }
    }
    return false;
}

static bool give_up(struct world *world)
{
    uint32_t stream = 0;
    uint32_t id = 0;
    if (world->final_count == 0) {
        return fail(world, "no checkpoint holds everything", (int64_t)world->checkpoint_id, 0);
    }
    (void)find_missing(world, &stream, &id);
    for (uint32_t i = 0; i < world->broker->transaction_count && world->is_loud; i++) {
        const struct broker_transaction *transaction = &world->broker->transactions[i];
        printf("%s: producer %lld epoch %d state %d\n", transaction->id,
               (long long)transaction->producer_id, transaction->epoch, transaction->state);
    }
    return fail(world, "never visible", stream, id);
}

/* The log of its own: committed batches of `once` hold as many records as were written, and nothing
 * is open any more. */
static bool check_log(struct world *world)
{
    uint64_t visible = 0;
    uint64_t wanted = 0;
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        const struct broker_partition *partition = &world->broker->topics[0].partitions[p];
        for (uint32_t i = 0; i < partition->batch_count; i++) {
            const uint8_t *data = partition->batches[i].data;
            if ((data[22] & 0x20) == 0 && broker_is_committed(partition, i)) {
                visible += load_be32(data + 57);
            }
        }
    }
    for (uint32_t i = 0; i < STREAM_PLAIN; i++) {
        wanted += world->streams[i].total;
    }
    return visible == wanted ||
           fail(world, "records committed in the log, wanted", (int64_t)visible, (int64_t)wanted);
}

/* The plain stream has every record at least once; batches are compressed, so a reader is asked. */
static bool check_plain(struct world *world)
{
    struct kafka_config config = world->config;
    struct kafka_record records[32];
    struct stream_model *stream = &world->streams[STREAM_PLAIN];
    uint32_t topic;
    uint32_t ended = 0;
    uint32_t sources[PARTITIONS];
    struct kafka_client *client = make_client(world, &config);
    bool is_good = kafka_client_topic(client, "plain", &topic);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        const struct kafka_assignment assignment = {
            .topic_index = topic, .partition = (int32_t)i, .end = KAFKA_END_LATEST};
        is_good &= kafka_client_assign(client, &assignment, &sources[i]);
    }
    ASSERT(is_good);
    while (ended < PARTITIONS && world->now_ns < 2 * GIVE_UP_NS) {
        world->now_ns += NS_PER_MS / 4;
        broker_step(world->broker, world->now_ns);
        (void)kafka_client_poll(client, world->now_ns);
        const uint32_t count = kafka_client_pull(client, records, COUNT_OF(records));
        for (uint32_t i = 0; i < count; i++) {
            ASSERT(load_be32(records[i].value.data + 4) < stream->total);
            stream->seen[load_be32(records[i].value.data + 4)] = 1;
        }
        ended = 0;
        for (uint32_t i = 0; i < PARTITIONS; i++) {
            struct kafka_source_status status;
            kafka_client_source_status(client, sources[i], &status);
            ended += status.state == KAFKA_SOURCE_ENDED;
        }
    }
    kafka_client_destroy(client);
    for (uint32_t i = 0; i < stream->total; i++) {
        if (stream->seen[i] == 0) {
            return fail(world, "missing from the plain topic", i, stream->total);
        }
    }
    return true;
}

/* ---- The run ---- */

static bool is_crash_due(struct world *world, bool is_calm)
{
    if (world->has_failed) {
        return true;
    }
    if (world->crash_step != 0) {
        return world->step == world->crash_step;
    }
    return !is_calm && world->crash_count < CRASHES_MAX && draw(world, 4096) < world->crash_odds;
}

/* Nothing of the old run stays but what the cluster and the disk have. */
static void crash(struct world *world, struct totals *totals)
{
    story(world, "crash", ++world->crash_count);
    for (uint32_t i = 0; i < world->lane_count; i++) {
        for (uint32_t k = 0; k < POOL; k++) {
            const struct kafka_counters *counters = kafka_client_counters(world->lanes[i].pool[k]);
            totals->commits += counters->transactions_committed;
            totals->resolved += counters->transactions_resolved;
        }
    }
    free_lanes(world);
    const uint64_t until_ns = world->now_ns + draw(world, world->down_ns_max);
    while (world->now_ns < until_ns) {
        world->now_ns += NS_PER_MS;
        broker_step(world->broker, world->now_ns);
        (void)read_on(world);
    }
    start(world);
}

/* A transaction of a durable checkpoint that timed out cannot be had back; that it was told, and
 * that nothing was shown twice, is all there is to ask for. */
static bool is_given_up(const struct world *world)
{
    return world->is_lost_told && world->broker->expired_count > 0;
}

static bool run(struct world *world, struct totals *totals)
{
    bool is_calm = false;
    start(world);
    while (world->failure[0] == '\0') {
        world->step++;
        world->now_ns += 1000 + draw(world, draw(world, 8) == 0 ? 3 * NS_PER_MS : 300000);
        if (!is_calm && world->now_ns > CALM_AFTER_NS) {
            broker_calm(world->broker);
            is_calm = true;
        }
        broker_step(world->broker, world->now_ns);
        append_some(world);
        for (uint32_t i = 0; i < world->lane_count; i++) {
            poll_lane(world, &world->lanes[i]);
        }
        move_checkpoint(world, is_calm);
        if (!read_on(world)) {
            return false;
        }
        if (is_given_up(world)) {
            totals->lost++;
            return true;
        }
        uint32_t stream;
        uint32_t id;
        if (world->final_count > 0 && !find_missing(world, &stream, &id)) {
            return check_log(world) && check_plain(world);
        }
        if (world->now_ns > GIVE_UP_NS) {
            return give_up(world);
        }
        if (is_crash_due(world, is_calm)) {
            crash(world, totals);
        }
    }
    return false;
}

static bool run_seed(uint64_t seed, uint64_t crash_step, bool is_loud, struct totals *totals)
{
    struct world *world = calloc(1, sizeof(*world));
    world->seed = seed;
    world->is_loud = is_loud;
    world->may_expire = seed % 16 == 7;
    world->crash_step = crash_step;
    make_broker(world);
    make_config(world);
    make_reader(world);
    world->crash_odds = (uint32_t)draw(world, 30);
    world->down_ns_max = 1 + draw(world, (world->may_expire ? 2000 : 300) * NS_PER_MS);
    for (uint32_t i = 0; i < STREAMS; i++) {
        world->streams[i].total = 1 + (uint32_t)draw(world, TOTAL_MAX);
    }
    bool is_good = run(world, totals);
    if (is_good && world->broker->malformed_count > 0) {
        is_good = fail(world, "malformed requests", (int64_t)world->broker->malformed_count, 0);
    }
    if (!is_good) {
        printf("sim_transactions: seed %llu failed: %s\n  replay: sim_transactions --seed %llu",
               (unsigned long long)seed, world->failure, (unsigned long long)seed);
        printf(crash_step == 0 ? "\n" : " --crash %llu\n", (unsigned long long)crash_step);
    }
    totals->steps += world->step;
    totals->crashes += world->crash_count;
    totals->checkpoints += world->checkpoint_id;
    totals->restarts += world->broker->restart_count;
    totals->fenced += world->fence_count;
    totals->expired += world->broker->expired_count;
    free_lanes(world);
    kafka_client_destroy(world->reader);
    broker_destroy(world->broker);
    free(world);
    return is_good;
}

static void print_totals(const struct totals *totals)
{
    printf("  %llu steps, %llu crashes, %llu checkpoints, at crashes %llu committed, %llu "
           "resolved\n  %llu broker restarts, %llu transactions timed out, %llu runs told a loss, "
           "%llu fenced\n",
           (unsigned long long)totals->steps, (unsigned long long)totals->crashes,
           (unsigned long long)totals->checkpoints, (unsigned long long)totals->commits,
           (unsigned long long)totals->resolved, (unsigned long long)totals->restarts,
           (unsigned long long)totals->expired, (unsigned long long)totals->lost,
           (unsigned long long)totals->fenced);
}

/* One run without a crash says how many steps there are. */
static bool run_every(uint64_t seed, uint64_t stride, struct totals *totals)
{
    struct totals plain = {0};
    if (!run_seed(seed, UINT64_MAX, false, &plain)) {
        return false;
    }
    for (uint64_t step = 1; step <= plain.steps; step += stride) {
        seed_watch(seed);
        if (!run_seed(seed, step, false, totals)) {
            return false;
        }
    }
    printf("sim_transactions: seed %llu passed with a crash at every %llu-th of %llu steps\n",
           (unsigned long long)seed, (unsigned long long)stride, (unsigned long long)plain.steps);
    return true;
}

static bool run_seeds(uint64_t first, uint64_t count, uint64_t crash_step, bool is_loud,
                      struct totals *totals)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        seed_watch(seed);
        if (!run_seed(seed, crash_step, is_loud, totals)) {
            return false;
        }
    }
    printf("sim_transactions: %llu seeds passed, from %llu\n", (unsigned long long)count,
           (unsigned long long)first);
    return true;
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    uint64_t first = 1;
    uint64_t count = 100;
    uint64_t stride = 0;
    uint64_t crash_step = 0;
    bool is_loud = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seeds") == 0) {
            count = value;
        } else if (strcmp(argv[i], "--first") == 0) {
            first = value;
        } else if (strcmp(argv[i], "--every") == 0) {
            stride = value;
        } else if (strcmp(argv[i], "--crash") == 0) {
            crash_step = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            first = value;
            count = 1;
            is_loud = true;
        } else {
            (void)fprintf(stderr, "usage: sim_transactions [--seeds N] [--first S] [--every N] | "
                                  "--seed S [--crash STEP]\n");
            return 2;
        }
    }
    const bool is_good = stride != 0 ? run_every(first, stride, &totals)
                                     : run_seeds(first, count, crash_step, is_loud, &totals);
    print_totals(&totals);
    return is_good ? 0 : 1;
}
