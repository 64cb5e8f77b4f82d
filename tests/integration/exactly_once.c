/* SPDX-License-Identifier: Apache-2.0 */
/* A lane that does nothing but write numbers, with checkpoints in a file, for test_transactions:
 *
 *     exactly_once BROKER:PORT CHECKPOINT COUNT EVERY [LANE [die STEP N | fail NTH | slow US]]
 *
 * Numbers 0 to COUNT - 1 go to the topic $EXACT exactly once and to $PLAIN at once, a checkpoint
 * every EVERY numbers, two under way at a time. It goes on from the file when there is one. `die`
 * ends the process without a word at the N-th checkpoint, STEP being cut, settled, durable (before
 * the sink is told) or complete (right behind that); `fail` completes only every NTH checkpoint;
 * `slow` sleeps so many microseconds a turn. Transactions time out after $TRANSACTION_MS. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/facts.h"
#include "dataplane/sink_kafka.h"
#include "tests/dataplane/kafka/kernel_stream.h"

#define POOL_COUNT      4
#define UNDER_WAY_MAX   2
#define FACTS_BYTES     (64 << 10)
#define FACTS_MAX       64
#define PATIENCE_NS     UINT64_C(200000000000)
#define DIED            9
#define PARTITION_COUNT 2

/* A checkpoint under way, and what the file holds. */
struct checkpoint {
    uint64_t id;
    uint64_t next; /* the first number behind it */
    uint64_t facts_bytes;
    _Alignas(8) uint8_t facts[FACTS_BYTES];
};

struct lane {
    const char *file;
    uint64_t count;
    uint64_t every;
    const char *die_step;
    uint64_t die_nth;
    uint64_t fail_every;
    useconds_t pause_us;
    struct kernel_streams streams;
    struct kafka_client *clients[POOL_COUNT + 1]; /* the plain one last */
    struct sink_kafka *sink;
    struct record_sink *records;
    struct checkpoint under_way[UNDER_WAY_MAX];
    uint32_t under_way_count;
    uint64_t cut_at;
    uint64_t last_id;
    uint64_t nth;
    struct facts_transaction facts[FACTS_MAX];
    uint32_t fact_count;
};

static uint64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void die(const struct lane *lane, const char *step, uint64_t nth)
{
    if (lane->die_step != NULL && nth == lane->die_nth && strcmp(lane->die_step, step) == 0) {
        (void)fprintf(stderr, "dies at checkpoint %" PRIu64 ", %s\n", lane->last_id, step);
        _exit(DIED);
    }
}

static void turn(struct lane *lane)
{
    const uint64_t now_ns = now();
    struct kafka_event event;
    int16_t code = 0;
    if (lane->pause_us > 0) {
        (void)usleep(lane->pause_us);
    }
    (void)kernel_streams_poll(&lane->streams, now_ns);
    (void)record_sink_poll(lane->records, now_ns);
    for (uint32_t i = 0; i <= POOL_COUNT; i++) {
        while (kafka_client_event(lane->clients[i], &event)) {
            if (event.code != KAFKA_EVENT_CONNECTED) {
                (void)fprintf(stderr, "  client %u: %s\n", i, event.text);
            }
        }
    }
    if (sink_kafka_has_failed(lane->sink, &code)) {
        (void)fprintf(stderr, "the sink has failed: %d\n", code);
        exit(3);
    }
}

static void save(const struct lane *lane, const struct checkpoint *checkpoint)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "%s.new", lane->file);
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(checkpoint, sizeof(*checkpoint), 1, file) != 1 ||
        fclose(file) != 0 || rename(name, lane->file) != 0) {
        (void)fprintf(stderr, "%s: %s\n", name, strerror(errno));
        exit(1);
    }
}

/* Only the oldest can be next. */
static void advance(struct lane *lane)
{
    struct checkpoint *oldest = &lane->under_way[0];
    if (lane->under_way_count == 0 || !record_sink_is_settled(lane->records, oldest->id)) {
        return;
    }
    lane->nth++;
    die(lane, "settled", lane->nth);
    if (lane->fail_every > 0 && lane->nth % lane->fail_every != 0 && oldest->next < lane->count) {
        record_sink_failed(lane->records, oldest->id);
    } else {
        save(lane, oldest);
        die(lane, "durable", lane->nth);
        record_sink_complete(lane->records, oldest->id);
        turn(lane);
        die(lane, "complete", lane->nth);
    }
    lane->under_way_count--;
    memmove(&lane->under_way[0], &lane->under_way[1],
            lane->under_way_count * sizeof(lane->under_way[0]));
}

static void cut(struct lane *lane, uint64_t next)
{
    struct checkpoint *checkpoint = &lane->under_way[lane->under_way_count++];
    struct facts_writer writer;
    checkpoint->id = ++lane->last_id;
    checkpoint->next = next;
    facts_begin(&writer, (struct span_mut){checkpoint->facts, FACTS_BYTES});
    record_sink_cut(lane->records, checkpoint->id, &writer);
    ASSERT(!writer.is_full);
    checkpoint->facts_bytes = facts_written(&writer).bytes;
    lane->cut_at = next;
    die(lane, "cut", lane->nth + lane->under_way_count);
}

static bool keep_fact(void *context, const struct facts_item *item)
{
    struct lane *lane = context;
    if (item->kind != FACTS_TRANSACTION || lane->fact_count == FACTS_MAX) {
        return false; /* a sink says nothing else */
    }
    lane->facts[lane->fact_count++] = item->transaction;
    if (item->transaction.state == FACTS_TRANSACTION_PREPARED) {
        (void)fprintf(stderr, "goes on with %s prepared\n", item->transaction.transactional_id);
    }
    return true;
}

/* Only a file that is not there is a first start: one that cannot be read ends the run, for going
 * on without it would look like a fault of the sink. */
static bool read_checkpoint(const struct lane *lane, struct checkpoint *into)
{
    FILE *file = fopen(lane->file, "rb");
    if (file == NULL && errno == ENOENT) {
        return false;
    }
    if (file == NULL || fread(into, sizeof(*into), 1, file) != 1 ||
        into->facts_bytes > sizeof(into->facts)) {
        (void)fprintf(stderr, "%s holds no checkpoint\n", lane->file);
        exit(1);
    }
    (void)fclose(file);
    return true;
}

/* Returns the number to go on with. */
static uint64_t load(struct lane *lane)
{
    struct checkpoint *checkpoint = &lane->under_way[0];
    struct error error = {0};
    uint64_t next = 0;
    int status = 0;
    if (read_checkpoint(lane, checkpoint)) {
        next = checkpoint->next;
        lane->last_id = checkpoint->id + 100; /* those given up have ids too */
        status = facts_read((struct span){checkpoint->facts, checkpoint->facts_bytes}, keep_fact,
                            lane, &error);
    }
    if (status != 0 ||
        sink_kafka_recover(&lane->sink, 1, lane->facts, lane->fact_count, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return next;
}

static bool append(struct lane *lane, uint32_t topic, uint64_t number)
{
    char value[32];
    const int bytes = snprintf(value, sizeof(value), "%" PRIu64, number);
    const struct record record = {.key_is_null = true,
                                  .timestamp_ms = (int64_t)time(NULL) * 1000,
                                  .value = {(const uint8_t *)value, (size_t)bytes}};
    return record_sink_append(lane->records, topic, (int32_t)(number % PARTITION_COUNT), &record) ==
           RECORD_SINK_OK;
}

static void run(struct lane *lane)
{
    const uint64_t start = now();
    uint64_t next = load(lane);
    uint32_t topic = 0;
    lane->cut_at = next;
    while (next < lane->count || lane->cut_at < next || lane->under_way_count > 0 ||
           !record_sink_flushed(lane->records)) {
        turn(lane);
        advance(lane);
        const bool is_due = next - lane->cut_at >= lane->every || next == lane->count;
        if (is_due && next > lane->cut_at && topic == 0 && lane->under_way_count < UNDER_WAY_MAX) {
            cut(lane, next);
        }
        for (int i = 0; i < 64 && next < lane->count && next - lane->cut_at < lane->every; i++) {
            if (!append(lane, topic, next)) {
                break;
            }
            topic ^= 1;
            next += topic == 0;
        }
        if (now() > start + PATIENCE_NS) {
            (void)fprintf(stderr, "gave up at %" PRIu64 " with %u checkpoints under way\n", next,
                          lane->under_way_count);
            exit(4);
        }
    }
}

static int open_clients(struct lane *lane, const char *address, const char *name)
{
    const struct sink_kafka_topic topics[] = {{getenv("EXACT"), true}, {getenv("PLAIN"), false}};
    struct kafka_config config;
    struct error error = {0};
    const struct kafka_connector connector = {.connect = kernel_stream_connect,
                                              .context = &lane->streams};
    char id[64];
    (void)snprintf(id, sizeof(id), "test-%s", name);
    kafka_config_init(&config);
    config.bootstrap_count = 1;
    config.bootstrap[0].port = (uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10);
    (void)snprintf(config.bootstrap[0].host, KAFKA_HOST_BYTES, "%.*s", (int)strcspn(address, ":"),
                   address);
    config.stream_receive_bytes = KERNEL_STREAM_RX_BYTES / 2;
    config.topic_partitions_max = 16;
    config.sinks_max = 64;
    const char *timeout_ms = getenv("TRANSACTION_MS");
    config.transaction_timeout_ms =
        timeout_ms == NULL ? 120000 : (uint32_t)strtoul(timeout_ms, NULL, 10);
    int status = kafka_client_create(&config, &connector, &lane->clients[POOL_COUNT], &error);
    kafka_config_make_transactional(&config);
    for (uint32_t i = 0; i < POOL_COUNT && status == 0; i++) {
        status = kafka_client_create(&config, &connector, &lane->clients[i], &error);
    }
    const struct sink_kafka_config sink = {.client = lane->clients[POOL_COUNT],
                                           .topics = topics,
                                           .topic_count = 2,
                                           .pool = lane->clients,
                                           .pool_count = POOL_COUNT,
                                           .transactional_id = id};
    status = status == 0 ? sink_kafka_create(&sink, &lane->sink, &error) : status;
    if (status != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    (void)fprintf(stderr, "a transactional client takes %zu KiB\n",
                  kafka_client_bytes(&config) >> 10);
    lane->records = sink_kafka_records(lane->sink);
    return 0;
}

static void tell(const struct lane *lane)
{
    uint64_t committed = 0;
    uint64_t resolved = 0;
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        committed += kafka_client_counters(lane->clients[i])->transactions_committed;
        resolved += kafka_client_counters(lane->clients[i])->transactions_resolved;
    }
    (void)printf("committed %" PRIu64 " transactions, resolved %" PRIu64 " of earlier runs\n",
                 committed, resolved);
}

int main(int argc, char **argv)
{
    static struct lane lane;
    if (argc < 5 || strchr(argv[1], ':') == NULL || getenv("EXACT") == NULL ||
        getenv("PLAIN") == NULL) {
        (void)fprintf(stderr, "usage: exactly_once BROKER:PORT CHECKPOINT COUNT EVERY"
                              " [LANE [die STEP N | fail EVERY_NTH | slow US]]\n");
        return 2;
    }
    lane.file = argv[2];
    lane.count = strtoull(argv[3], NULL, 10);
    lane.every = strtoull(argv[4], NULL, 10);
    if (argc > 8 && strcmp(argv[6], "die") == 0) {
        lane.die_step = argv[7];
        lane.die_nth = strtoull(argv[8], NULL, 10);
    } else if (argc > 7 && strcmp(argv[6], "slow") == 0) {
        lane.pause_us = (useconds_t)strtoul(argv[7], NULL, 10);
    } else if (argc > 7) {
        lane.fail_every = strtoull(argv[7], NULL, 10);
    }
    if (open_clients(&lane, argv[1], argc > 5 ? argv[5] : "0") != 0) {
        return 1;
    }
    run(&lane);
    tell(&lane);
    sink_kafka_destroy(lane.sink);
    for (uint32_t i = 0; i <= POOL_COUNT; i++) {
        kafka_client_destroy(lane.clients[i]);
    }
    kernel_streams_free(&lane.streams);
    return 0;
}
