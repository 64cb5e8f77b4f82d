/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka client against the scripted cluster: a seed draws the cluster's oddities, the faults
 * and the load. Checked from outside the client: every visible record of the log is handed up
 * exactly once and in order with its bytes, timestamp and headers; every record produced is in the
 * log exactly once and in order, but for those that the broker refuses, which are counted lost.
 * Where the broker forgets its producers a record may be there twice, and then that is counted;
 * where it forgets all but their last batch, not with one batch of a partition on its way.
 *
 *   sim_kafka --seeds N [--first S]     many seeds; prints the first that fails and exits 1
 *   sim_kafka --seed S                  one seed, with its story */
#include <lz4frame.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/kafka/client.h"
#include "tests/sim/broker.h"
#include "tests/sim/broker_feed.h"
#include "tests/sim/seed_watch.h"

#define NS_PER_MS     UINT64_C(1000000)
#define PARTITIONS    4
#define SINKS         3
#define PULL_MAX      32
#define CALM_AFTER_NS (2000 * NS_PER_MS)
#define GIVE_UP_NS    (600000 * NS_PER_MS)
#define HOST_MAP_PORT 0

struct sink_model {
    uint32_t sink_index;
    uint32_t next_id; /* to append */
    uint32_t total;
    uint8_t *is_lost; /* by id: the broker must refuse it */
    uint32_t lost_count;
};

struct world {
    uint64_t seed;
    bool is_loud;
    bool is_bounded;
    bool may_repeat;
    bool may_reorder; /* among what is sent again */
    struct broker *broker;
    struct kafka_client *client;
    struct broker_topic *in;
    struct broker_topic *out;
    struct feed feeds[PARTITIONS];
    uint32_t source_of[PARTITIONS];
    uint32_t seen[PARTITIONS]; /* records of feeds handed up */
    uint32_t batches_left;
    struct sink_model sinks[SINKS];
    uint64_t now_ns;
    uint32_t repeats; /* batches that the log holds more than once */
    size_t filler_max;
    uint8_t noise[65536]; /* what no codec shrinks */
    uint8_t value[65536]; /* of the record being made */
    size_t oversize;
    char failure[256];
};

static uint64_t draw(struct world *world, uint64_t below)
{
    return broker_random(world->broker) % below;
}

static bool fail(struct world *world, const char *what, int64_t first, int64_t second)
{
    if (world->failure[0] == '\0') {
        (void)snprintf(world->failure, sizeof(world->failure), "%s (%lld, %lld) at %.3f ms", what,
                       (long long)first, (long long)second, (double)world->now_ns / 1e6);
    }
    return false;
}

static struct broker_faults draw_faults(uint64_t seed, struct broker *broker)
{
    struct broker_faults faults = {0};
    if (seed % 8 == 0) {
        return faults;
    }
    uint32_t *odds[] = {&faults.refuse,     &faults.hang, &faults.reset,  &faults.finish,
                        &faults.stall,      &faults.slow, &faults.error,  &faults.garbage,
                        &faults.flip,       &faults.move, &faults.forget, &faults.throttle,
                        &faults.lose_answer};
    static const uint32_t most[] = {1024, 400, 8, 8, 60, 800, 600, 100, 60, 20, 800, 400, 200};
    for (size_t i = 0; i < COUNT_OF(odds); i++) {
        if (broker_random(broker) % 2) {
            *odds[i] = (uint32_t)(broker_random(broker) % most[i]);
        }
    }
    if (seed % 16 == 5) {
        faults.sequence = (uint32_t)(broker_random(broker) % 200);
    }
    if (seed % 16 == 9) {
        faults.shorten = (uint32_t)(broker_random(broker) % 800);
    }
    if (seed % 16 == 13) {
        faults.expire = (uint32_t)(broker_random(broker) % 800);
    }
    return faults;
}

static void make_broker(struct world *world)
{
    struct broker_config config = {.seed = world->seed * 2654435761 + 1, .nodes = 3};
    struct broker *broker = broker_create(&config);
    world->broker = broker;
    config.nodes = 1 + (uint32_t)draw(world, BROKER_NODES_MAX - 1);
    config.versions = draw(world, 4);
    config.metadata_version_max = (int16_t)(2 + draw(world, 11));
    config.fragment_bytes_max = (size_t)1 << (1 + draw(world, 16));
    config.send_bytes_max = (size_t)1 << (6 + draw(world, 11));
    config.receive_bytes_max = (size_t)1 << (12 + draw(world, 6));
    config.batch_bytes_max = 3000 + draw(world, 20000);
    config.faults = draw_faults(world->seed, broker);
    broker->config = config;
    world->may_reorder = config.faults.expire > 0;
    world->may_repeat = config.faults.sequence > 0 || world->may_reorder;
    world->in = broker_add_topic(broker, "in", PARTITIONS);
    world->out = broker_add_topic(broker, "out.x_y-z", SINKS);
}

static void make_feeds(struct world *world, bool reads_committed)
{
    world->is_bounded = draw(world, 4) == 0;
    world->batches_left = 20 + (uint32_t)draw(world, 60);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        world->feeds[i] = (struct feed){
            .broker = world->broker,
            .partition = &world->in->partitions[i],
            .reads_committed = reads_committed,
            .value_bytes_max = 200 + draw(world, 8000),
        };
    }
    while (world->is_bounded && world->batches_left > 0) {
        world->batches_left--;
        feed_batch(&world->feeds[draw(world, PARTITIONS)]);
    }
    for (uint32_t i = 0; world->is_bounded && i < PARTITIONS; i++) {
        feed_end(&world->feeds[i]);
    }
}

static void make_client(struct world *world, bool reads_committed)
{
    struct kafka_config config;
    kafka_config_init(&config);
    config.bootstrap_count = 1;
    (void)snprintf(config.bootstrap[0].host, KAFKA_HOST_BYTES, "198.18.0.1");
    config.bootstrap[0].port = BROKER_PORT;
    for (uint32_t i = 0; i < BROKER_NODES_MAX; i++) {
        struct kafka_address_map *row = &config.address_map[config.address_map_count++];
        (void)snprintf(row->advertised.host, KAFKA_HOST_BYTES, "node-%u", i + 1);
        row->ip4 = BROKER_IP4 + i;
        row->advertised.port = HOST_MAP_PORT;
    }
    config.topics_max = 3;
    config.topic_partitions_max = 8;
    config.sources_max = 6;
    config.sinks_max = 6;
    config.brokers_max = 6;
    config.stream_receive_bytes = (uint32_t)world->broker->config.receive_bytes_max;
    config.response_bytes_max = 1 << 18;
    config.decoded_bytes_max = 1 << 18;
    config.read_committed = reads_committed;
    config.fetch_bytes_max = 200 + (uint32_t)draw(world, 30000);
    config.fetch_partition_bytes_max = 80 + (uint32_t)draw(world, 8000);
    config.fetch_wait_ms = 1 + (uint32_t)draw(world, 500);
    config.produce_codec = draw(world, 2) ? KAFKA_CODEC_LZ4 : KAFKA_CODEC_NONE;
    config.produce_batch_bytes = 512 + (uint32_t)draw(world, 30000);
    config.produce_buffers = 4 + (uint32_t)draw(world, 20);
    config.produce_record_bytes_max = 40000;
    config.produce_large_buffers = 2;
    config.produce_request_bytes_max = 1 + (uint32_t)draw(world, 60000);
    config.produce_in_flight_max = 1 + (uint32_t)draw(world, 5);
    config.produce_partition_in_flight_max = 1 + (uint32_t)draw(world, 5);
    if (world->broker->config.faults.shorten > 0) {
        config.produce_partition_in_flight_max = 1; /* what such a broker can tell apart */
    }
    config.connect_timeout_ms = 100;
    config.request_timeout_ms = 800;
    config.retry_backoff_ms = 1 + (uint32_t)draw(world, 30);
    config.reconnect_backoff_ms = 1 + (uint32_t)draw(world, 30);
    config.reconnect_backoff_ms_max = 100;
    config.metadata_age_ms_max = 500;
    config.idle_close_ms = 50 + (uint32_t)draw(world, 5000);
    config.seed = world->seed;
    struct kafka_connector connector = {.connect = broker_connect, .context = world->broker};
    struct error error = {0};
    int status = kafka_client_create(&config, &connector, &world->client, &error);
    if (status != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
    }
    ASSERT(status == 0);
}

static void assign(struct world *world, uint32_t partition, int64_t offset)
{
    struct kafka_assignment assignment = {
        .topic_index = 0,
        .partition = (int32_t)partition,
        .start = offset < 0 ? KAFKA_START_EARLIEST : KAFKA_START_OFFSET,
        .start_value = offset,
        .end = world->is_bounded ? KAFKA_END_LATEST : KAFKA_END_NONE,
    };
    bool is_assigned =
        kafka_client_assign(world->client, &assignment, &world->source_of[partition]);
    ASSERT(is_assigned);
}

static void make_load(struct world *world)
{
    uint32_t topic;
    bool is_good = kafka_client_topic(world->client, "in", &topic);
    ASSERT(is_good && topic == 0);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        assign(world, i, -1);
    }
    is_good = kafka_client_topic(world->client, "out.x_y-z", &topic);
    ASSERT(is_good && topic == 1);
    for (size_t i = 0; i < sizeof(world->noise); i += 8) {
        store_be64(world->noise + i, broker_random(world->broker));
    }
    world->filler_max = world->broker->config.batch_bytes_max - 300;
    world->oversize = world->broker->config.batch_bytes_max + 300;
    for (uint32_t i = 0; i < SINKS; i++) {
        struct sink_model *sink = &world->sinks[i];
        is_good = kafka_client_sink(world->client, topic, (int32_t)i, &sink->sink_index);
        ASSERT(is_good);
        sink->total = (uint32_t)draw(world, 300);
        sink->is_lost = calloc(sink->total + 1, 1);
    }
}

/* A record of the produced load: its id, then filler that no codec shrinks. */
static void produce_one(struct world *world, struct sink_model *sink)
{
    uint8_t *value = world->value;
    size_t bytes = 4 + draw(world, 60);
    if (draw(world, 20) == 0) {
        bytes = 4 + draw(world, world->filler_max);
    }
    bool is_oversize = draw(world, 60) == 0;
    bytes = is_oversize ? world->oversize : bytes;
    store_be32(value, sink->next_id);
    size_t from = draw(world, 1000);
    ASSERT(bytes <= sizeof(world->value) - 1000);
    memcpy(value + 4, world->noise + from, bytes - 4);
    if (!is_oversize) {
        memset(value + 4, 7, (bytes - 4) / 3);
    }
    struct kafka_header header = {.key = kafka_span_of("k"), .has_value = false};
    struct kafka_produce_record record = {
        .value = {.data = value, .bytes = bytes},
        .has_value = true,
        .has_key = draw(world, 2) != 0,
        .headers = &header,
        .header_count = (uint32_t)draw(world, 2),
        .timestamp_ms = 1700000000000 + (int64_t)draw(world, 1000),
    };
    enum kafka_append verdict = kafka_client_append(world->client, sink->sink_index, &record);
    if (verdict == KAFKA_APPEND_OK) {
        sink->is_lost[sink->next_id] = is_oversize;
        sink->lost_count += is_oversize;
        sink->next_id++;
    } else if (verdict != KAFKA_APPEND_FULL) {
        (void)fail(world, "append verdict", verdict, sink->next_id);
    }
}

static uint64_t hash_record(const struct kafka_record *record)
{
    uint64_t hash = feed_hash(FEED_HASH_START, record->key, record->has_key);
    hash = feed_hash(hash, record->value, record->has_value);
    struct span rest = record->headers;
    uint32_t left = record->header_count;
    struct kafka_header header;
    while (kafka_header_next(&rest, &left, &header)) {
        hash = feed_hash(hash, header.key, true);
        hash = feed_hash(hash, header.value, header.has_value);
    }
    return hash;
}

static bool check_record(struct world *world, const struct kafka_record *record)
{
    ASSERT(record->partition >= 0 && record->partition < PARTITIONS);
    const struct feed *feed = &world->feeds[record->partition];
    uint32_t at = world->seen[record->partition]++;
    if (at >= feed->record_count) {
        return fail(world, "a record that nobody wrote", record->partition, record->offset);
    }
    const struct feed_record *wanted = &feed->records[at];
    if (record->offset != wanted->offset) {
        return fail(world, "offset: got, wanted", record->offset, wanted->offset);
    }
    if (record->timestamp_ms != wanted->timestamp_ms) {
        return fail(world, "timestamp: got, wanted", record->timestamp_ms, wanted->timestamp_ms);
    }
    if (hash_record(record) != wanted->hash) {
        return fail(world, "contents at partition, offset", record->partition, record->offset);
    }
    return true;
}

static bool pull(struct world *world)
{
    struct kafka_record records[PULL_MAX];
    if (draw(world, 4) == 0) {
        return true; /* hold back */
    }
    for (int round = 0; round < 8; round++) {
        uint32_t count =
            kafka_client_pull(world->client, records, 1 + (uint32_t)draw(world, PULL_MAX));
        for (uint32_t i = 0; i < count; i++) {
            if (!check_record(world, &records[i])) {
                return false;
            }
        }
        if (count == 0 || draw(world, 6) == 0) {
            break;
        }
    }
    return true;
}

/* Pauses, resumes, and takes partitions away and gives them back. */
static void disturb(struct world *world, bool is_calm)
{
    uint32_t partition = (uint32_t)draw(world, PARTITIONS);
    uint32_t source = world->source_of[partition];
    struct kafka_source_status status;
    switch (is_calm ? UINT64_MAX : draw(world, 60)) {
    case 0:
        kafka_client_pause(world->client, source);
        return;
    case 1:
        kafka_client_source_status(world->client, source, &status);
        if (status.state == KAFKA_SOURCE_READING && !world->is_bounded) {
            kafka_client_unassign(world->client, source);
            assign(world, partition, status.position);
        }
        return;
    case 2:
        kafka_client_source_status(world->client, source, &status);
        if (status.state == KAFKA_SOURCE_READING) {
            kafka_client_seek(world->client, source, status.position);
        }
        return;
    default:
        kafka_client_resume(world->client, source);
    }
}

static void tell_events(struct world *world)
{
    struct kafka_event event;
    while (kafka_client_event(world->client, &event)) {
        if (world->is_loud) {
            printf("%10.3f ms  event %2d  %s\n", (double)event.at_ns / 1e6, event.code, event.text);
        }
        if (event.code == KAFKA_EVENT_PARTITION_FAILED ||
            event.code == KAFKA_EVENT_PRODUCE_FAILED) {
            (void)fail(world, "an event that should not be", event.code, event.partition);
        }
    }
}

static bool is_done(struct world *world)
{
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        struct kafka_source_status status;
        kafka_client_source_status(world->client, world->source_of[i], &status);
        bool is_at_end =
            world->is_bounded
                ? status.state == KAFKA_SOURCE_ENDED
                : status.is_caught_up && status.position == world->in->partitions[i].next_offset;
        if (world->seen[i] < world->feeds[i].record_count || !is_at_end) {
            return false;
        }
    }
    for (uint32_t i = 0; i < SINKS; i++) {
        if (world->sinks[i].next_id < world->sinks[i].total) {
            return false;
        }
    }
    return world->batches_left == 0 && kafka_client_pending(world->client) == 0;
}

static void grow(struct world *world)
{
    if (world->batches_left > 0 && draw(world, 3) == 0) {
        world->batches_left--;
        feed_batch(&world->feeds[draw(world, PARTITIONS)]);
        for (uint32_t i = 0; world->batches_left == 0 && i < PARTITIONS; i++) {
            feed_end(&world->feeds[i]);
        }
    }
    struct sink_model *sink = &world->sinks[draw(world, SINKS)];
    for (uint64_t i = draw(world, 12); i > 0 && sink->next_id < sink->total; i--) {
        produce_one(world, sink);
    }
}

static bool run(struct world *world)
{
    bool is_calm = false;
    while (world->failure[0] == '\0') {
        world->now_ns += 1000 + draw(world, draw(world, 8) == 0 ? 3 * NS_PER_MS : 300000);
        if (!is_calm && world->now_ns > CALM_AFTER_NS) {
            broker_calm(world->broker);
            is_calm = true;
        }
        broker_step(world->broker, world->now_ns);
        uint32_t work = kafka_client_poll(world->client, world->now_ns);
        grow(world);
        disturb(world, is_calm);
        tell_events(world);
        if (!pull(world)) {
            return false;
        }
        if (is_done(world)) {
            return true;
        }
        if (world->now_ns > GIVE_UP_NS) {
            return fail(world, "not done in time", world->seen[0],
                        (int64_t)kafka_client_pending(world->client));
        }
        world->now_ns += is_calm && work == 0 ? NS_PER_MS : 0;
    }
    return false;
}

static void expand(struct span in, struct bytes *out)
{
    LZ4F_dctx *context;
    size_t code = LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    ASSERT(!LZ4F_isError(code));
    size_t plain_bytes = 1 << 18;
    uint8_t *plain = malloc(plain_bytes);
    size_t in_bytes = in.bytes;
    code = LZ4F_decompress(context, plain, &plain_bytes, in.data, &in_bytes, NULL);
    ASSERT(code == 0 && in_bytes == in.bytes);
    bytes_put(out, plain, plain_bytes);
    free(plain);
    (void)LZ4F_freeDecompressionContext(context);
}

/* Reads the next record's id with no help from the client's own reader. */
static uint32_t read_id(const uint8_t **at, const uint8_t *end)
{
    int64_t body = broker_varint(at, end);
    const uint8_t *next = *at + body;
    (*at)++;
    (void)broker_varint(at, end);
    (void)broker_varint(at, end);
    int64_t key = broker_varint(at, end);
    *at += key > 0 ? key : 0;
    int64_t value = broker_varint(at, end);
    ASSERT(value >= 4 && *at + value <= end);
    uint32_t id = load_be32(*at);
    *at = next;
    return id;
}

struct tally {
    uint32_t next;    /* the id that comes next */
    bool is_repeated; /* the batch in work has records that are there once already */
    uint8_t *seen;    /* by id: how often, up to twice */
};

static void pass_lost(const struct sink_model *sink, struct tally *tally)
{
    while (tally->next < sink->next_id &&
           (sink->is_lost[tally->next] || tally->seen[tally->next])) {
        tally->next++;
    }
}

static bool tally_id(struct world *world, const struct sink_model *sink, struct tally *tally,
                     uint32_t id)
{
    pass_lost(sink, tally);
    if (id >= sink->total || sink->is_lost[id]) {
        return fail(world, "an id that nobody wrote", id, sink->total);
    }
    if (tally->seen[id] && world->may_repeat) {
        tally->is_repeated = tally->is_repeated || tally->seen[id] == 1;
        tally->seen[id] = 2;
        return true;
    }
    tally->seen[id] = 1;
    return id == tally->next || world->may_reorder ||
           fail(world, "produced id: got, wanted", id, tally->next);
}

static bool tally_batch(struct world *world, struct sink_model *sink,
                        const struct broker_batch *batch, struct tally *tally)
{
    struct bytes plain = {0};
    struct span stored = {.data = batch->data + 61, .bytes = batch->bytes - 61};
    if ((batch->data[22] & 7) == 3) {
        expand(stored, &plain);
    } else {
        bytes_put(&plain, stored.data, stored.bytes);
    }
    const uint8_t *at = plain.data;
    const uint8_t *end = plain.data + plain.count;
    uint32_t count = load_be32(batch->data + 57);
    bool is_good = true;
    for (uint32_t i = 0; i < count && is_good; i++) {
        is_good = tally_id(world, sink, tally, read_id(&at, end));
    }
    world->repeats += tally->is_repeated;
    tally->is_repeated = false;
    is_good &= at == end || fail(world, "bytes behind a batch's records", end - at, 0);
    bytes_free(&plain);
    return is_good;
}

static bool check_sink(struct world *world, uint32_t index)
{
    struct sink_model *sink = &world->sinks[index];
    const struct broker_partition *partition = &world->out->partitions[index];
    struct tally tally = {.seen = calloc(sink->total + 1, 1)};
    bool is_good = true;
    for (uint32_t i = 0; i < partition->batch_count && is_good; i++) {
        is_good = tally_batch(world, sink, &partition->batches[i], &tally);
    }
    pass_lost(sink, &tally);
    free(tally.seen);
    struct kafka_sink_status status;
    kafka_client_sink_status(world->client, sink->sink_index, &status);
    if (is_good && tally.next != sink->total) {
        return fail(world, "produced up to id, of", tally.next, sink->total);
    }
    if (is_good && (status.lost_count != sink->lost_count ||
                    status.acked_count + status.lost_count != status.appended_count)) {
        return fail(world, "lost: counted, wanted", (int64_t)status.lost_count, sink->lost_count);
    }
    return is_good;
}

static bool check(struct world *world)
{
    for (uint32_t i = 0; i < SINKS; i++) {
        if (!check_sink(world, i)) {
            return false;
        }
    }
    uint64_t maybe = kafka_client_counters(world->client)->batches_maybe_repeated;
    if (world->repeats > maybe) {
        return fail(world, "batches repeated, counted", world->repeats, (int64_t)maybe);
    }
    if (world->broker->malformed_count > 0) {
        return fail(world, "malformed requests", (int64_t)world->broker->malformed_count, 0);
    }
    return true;
}

static void tell_counters(const struct world *world)
{
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        struct kafka_source_status status;
        kafka_client_source_status(world->client, world->source_of[i], &status);
        printf("in-%u: state %d, position %lld of %lld, end %lld, seen %u of %u%s%s\n", i,
               status.state, (long long)status.position,
               (long long)world->in->partitions[i].next_offset, (long long)status.end_offset,
               world->seen[i], world->feeds[i].record_count,
               status.is_caught_up ? ", caught up" : "", status.is_paused ? ", paused" : "");
    }
    const uint64_t *counters = (const uint64_t *)kafka_client_counters(world->client);
    for (size_t i = 0; i < KAFKA_COUNTERS_COUNT; i++) {
        printf("%-24s %llu\n", kafka_counter_name(i), (unsigned long long)counters[i]);
    }
}

static bool run_seed(uint64_t seed, bool is_loud)
{
    struct world *world = calloc(1, sizeof(*world));
    world->seed = seed;
    world->is_loud = is_loud;
    make_broker(world);
    bool reads_committed = draw(world, 2);
    make_feeds(world, reads_committed);
    make_client(world, reads_committed);
    make_load(world);
    bool is_good = run(world) && check(world);
    if (is_loud) {
        tell_counters(world);
        printf("%llu requests, %.3f ms\n", (unsigned long long)world->broker->request_count,
               (double)world->now_ns / 1e6);
    }
    if (!is_good) {
        printf("sim_kafka: seed %llu failed: %s\n  replay: sim_kafka --seed %llu\n",
               (unsigned long long)seed, world->failure, (unsigned long long)seed);
    }
    kafka_client_destroy(world->client);
    broker_destroy(world->broker);
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        feed_free(&world->feeds[i]);
    }
    for (uint32_t i = 0; i < SINKS; i++) {
        free(world->sinks[i].is_lost);
    }
    free(world);
    return is_good;
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t count = 100;
    bool is_loud = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seeds") == 0) {
            count = value;
        } else if (strcmp(argv[i], "--first") == 0) {
            first = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            first = value;
            count = 1;
            is_loud = true;
        } else {
            (void)fprintf(stderr, "usage: sim_kafka [--seeds N] [--first S] | --seed S\n");
            return 2;
        }
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        seed_watch(seed);
        if (!run_seed(seed, is_loud)) {
            return 1;
        }
    }
    printf("sim_kafka: %llu seeds passed, from %llu\n", (unsigned long long)count,
           (unsigned long long)first);
    return 0;
}
