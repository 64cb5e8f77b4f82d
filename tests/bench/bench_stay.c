/* SPDX-License-Identifier: Apache-2.0 */
/* How long a record stays between a record source and a record sink, in process, on one lane: the
 * real table source, operators and table sink, without network. Two jobs over 300-byte payments:
 *
 *     project   decode -> filter, project -> encode
 *     velocity  decode -> OVER card, 60 s, on arrival: count, sum -> encode
 *
 * Each runs once flat out (records a second), and once open loop at 100,000 records a second, where
 * a record's stay counts from the moment it was due, so that a slow lane cannot hide it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "dataplane/job.h"
#include "dataplane/table_sink.h"
#include "dataplane/table_source.h"
#include "state/arena.h"
#include "state/heap.h"
#include "tests/dataplane/format/table.h"
#include "tools/generator.h"

#define RECORDS     200000
#define RATE        100000
#define STATE_BYTES ((size_t)256 << 20)
#define BATCH_MAX   256

static const char COLUMNS[] = "id BIGINT, card STRING, -merchant STRING, amount DECIMAL(12,2), "
                              "-country STRING, -device STRING, ts TIMESTAMP, -mcc INT";

enum column {
    COLUMN_CARD = 1,
    COLUMN_AMOUNT = 3,
    COLUMN_TS = 6,
    COLUMN_COUNT = 8,
};

struct edges {
    struct record_source source;
    struct record_sink sink;
    struct span *payments;
    uint32_t next;
    uint64_t start_ns;
    bool is_paced;
    struct record records[BATCH_MAX];
    struct histogram stay;
    uint64_t appended;
};

struct bench {
    struct table table;
    struct plan plan;
    struct plan_node nodes[3];
    const struct plan_node *pointers[3];
    uint32_t inputs[2];
    uint32_t picks[COLUMN_COUNT];
    struct type types[COLUMN_COUNT + 2];
    uint16_t slots[COLUMN_COUNT + 2];
    struct expr exprs[8];
    const struct expr *arguments[2];
    const struct expr *outputs[4];
    struct aggregate_call calls[2];
    uint32_t key_column;
    struct plan_sink_field fields[5];
    struct edges edges;
    struct table_source_environment source_environment;
    struct table_sink_environment sink_environment;
    struct job_config config;
};

static uint64_t now_ns(void *context)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

/* Flat out, the thread's own time counts: other work on a shared machine does not. */
static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *map(void *context, uint32_t lane, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint32_t due_at(const struct edges *edges, uint64_t now)
{
    const uint64_t due =
        edges->is_paced ? (now - edges->start_ns) * RATE / NANOSECONDS_PER_S : RECORDS;
    return (uint32_t)(due < RECORDS ? due : RECORDS);
}

static bool source_poll(struct record_source *source, uint64_t now, struct record_batch_view *out)
{
    struct edges *edges = (struct edges *)source;
    const uint32_t due = due_at(edges, now);
    uint32_t count = due - edges->next;
    if (due <= edges->next) {
        return false;
    }
    count = count < BATCH_MAX ? count : BATCH_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t number = edges->next + i;
        edges->records[i] = (struct record){
            .offset = (int64_t)number,
            .key_is_null = true,
            .value = edges->payments[number],
            .arrival_ns =
                edges->is_paced ? edges->start_ns + (number + 1) * NANOSECONDS_PER_S / RATE : now,
        };
    }
    edges->next += count;
    *out = (struct record_batch_view){
        .record_count = count, .records = edges->records, .ended = edges->next == RECORDS};
    return true;
}

static void source_release(struct record_source *source)
{
}

static void source_pause(struct record_source *source, uint32_t topic, uint32_t partition, bool on)
{
}

static enum record_sink_verdict sink_append(struct record_sink *sink, uint32_t topic,
                                            int32_t partition, const struct record *record)
{
    struct edges *edges = (struct edges *)((uint8_t *)sink - offsetof(struct edges, sink));
    edges->appended++;
    if (edges->is_paced) {
        histogram_record(&edges->stay, now_ns(NULL) - record->arrival_ns, 1);
    }
    return RECORD_SINK_OK;
}

static bool sink_flushed(struct record_sink *sink)
{
    return true;
}

static const struct record_source_ops source_ops = {
    .poll = source_poll, .release = source_release, .pause = source_pause};
static const struct record_sink_ops sink_ops = {.append = sink_append, .flushed = sink_flushed};

static int find_source(void *context, const struct plan_node *node, uint32_t lane,
                       struct table_source_edge *out, struct error *error)
{
    *out = (struct table_source_edge){.records = context, .record_bytes_max = 65536};
    return 0;
}

static int find_sink(void *context, const struct plan_node *node, uint32_t lane,
                     struct table_sink_edge *out, struct error *error)
{
    *out = (struct table_sink_edge){
        .records = context, .value_bytes_max = 65536, .key_bytes_max = 1024};
    return 0;
}

static void make_node(struct bench *bench, uint32_t id, enum plan_operator operator,
                      const char * name)
{
    struct plan_node *node = &bench->nodes[id];
    node->operator= operator;
    node->id = id;
    node->identity = id;
    (void)snprintf(node->name, sizeof(node->name), "%s", name);
    if (id > 0) {
        bench->inputs[id - 1] = id - 1;
        node->inputs = &bench->inputs[id - 1];
        node->input_count = 1;
    }
    node->time_column = -1;
    bench->pointers[id] = node;
}

static void make_source(struct bench *bench)
{
    table_init(&bench->table, COLUMNS);
    make_node(bench, 0, PLAN_SOURCE, "Source");
    struct plan_node *node = &bench->nodes[0];
    for (uint32_t i = 0; i < COLUMN_COUNT; i++) {
        bench->picks[i] = i;
    }
    bench->exprs[0] = (struct expr){
        .kind = EXPR_COLUMN, .type = bench->table.types[COLUMN_TS], .column = COLUMN_TS};
    node->source = bench->table.source;
    node->source.column_picks = bench->picks;
    node->source.watermark = &bench->exprs[0];
    node->source.bounded = PLAN_BOUNDED_LATEST;
    node->layout = node->source.decoded;
    node->time_column = COLUMN_TS;
}

/* SELECT id, card, amount, ts WHERE amount > 1.00 */
static void make_project(struct bench *bench)
{
    static const uint32_t columns[4] = {0, COLUMN_CARD, COLUMN_AMOUNT, COLUMN_TS};
    make_node(bench, 1, PLAN_CALC, "Calc");
    struct plan_node *node = &bench->nodes[1];
    for (uint32_t i = 0; i < 4; i++) {
        bench->types[i] = bench->table.types[columns[i]];
        bench->exprs[1 + i] =
            (struct expr){.kind = EXPR_COLUMN, .type = bench->types[i], .column = columns[i]};
        bench->outputs[i] = &bench->exprs[1 + i];
    }
    bench->exprs[5] = (struct expr){
        .kind = EXPR_LITERAL, .type = bench->table.types[COLUMN_AMOUNT], .literal = {.i64 = 100}};
    bench->arguments[0] = &bench->exprs[3];
    bench->arguments[1] = &bench->exprs[5];
    bench->exprs[6] = (struct expr){.kind = EXPR_CALL,
                                    .type = {.kind = TYPE_BOOLEAN, .nullable = true},
                                    .function = EXPR_GREATER,
                                    .argument_count = 2,
                                    .arguments = bench->arguments};
    node->calc = (struct plan_calc){.condition = &bench->exprs[6], .outputs = bench->outputs};
    row_layout_init(&node->layout, bench->types, 4, bench->slots);
    node->time_column = 3;
}

/* COUNT(*) and SUM(amount) over the card's last 60 s, answered on arrival. */
static void make_velocity(struct bench *bench)
{
    make_node(bench, 1, PLAN_OVER, "Over");
    struct plan_node *node = &bench->nodes[1];
    const struct type sum = {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38, .scale = 2};
    memcpy(bench->types, bench->table.types, COLUMN_COUNT * sizeof(struct type));
    bench->types[COLUMN_COUNT] = (struct type){.kind = TYPE_BIGINT};
    bench->types[COLUMN_COUNT + 1] = sum;
    bench->calls[0] = (struct aggregate_call){.function = AGGREGATE_COUNT,
                                              .argument = AGGREGATE_COLUMN_NONE,
                                              .filter = AGGREGATE_COLUMN_NONE,
                                              .result_type = bench->types[COLUMN_COUNT]};
    bench->calls[1] = (struct aggregate_call){.function = AGGREGATE_SUM,
                                              .argument = COLUMN_AMOUNT,
                                              .filter = AGGREGATE_COLUMN_NONE,
                                              .argument_type = bench->types[COLUMN_AMOUNT],
                                              .result_type = sum};
    bench->key_column = COLUMN_CARD;
    node->over = (struct plan_over){.key = {.columns = &bench->key_column, .count = 1},
                                    .preceding = 60000,
                                    .on_arrival = true,
                                    .calls = bench->calls,
                                    .call_count = 2};
    node->distribution = PLAN_HASH;
    node->distribution_key = node->over.key;
    row_layout_init(&node->layout, bench->types, COLUMN_COUNT + 2, bench->slots);
    node->time_column = COLUMN_TS;
}

static void make_sink(struct bench *bench, bool is_velocity)
{
    static const char *const names[] = {"id", "card", "amount", "n", "total"};
    static const uint32_t projected[] = {0, 1, 2};
    static const uint32_t full[] = {0, COLUMN_CARD, COLUMN_AMOUNT, COLUMN_COUNT, COLUMN_COUNT + 1};
    const uint32_t count = is_velocity ? 5 : 3;
    make_node(bench, 2, PLAN_SINK, "Sink");
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t column = is_velocity ? full[i] : projected[i];
        bench->fields[i] = (struct plan_sink_field){
            .name = names[i], .column = column, .type = bench->types[column]};
    }
    bench->nodes[2].layout = bench->nodes[1].layout;
    bench->nodes[2].sink = (struct plan_sink){
        .table = "scores",
        .value_format = {.format = PLAN_FORMAT_JSON, .decimal_as_plain_number = true},
        .value_fields = bench->fields,
        .value_field_count = count,
        .timestamp_column = UINT32_MAX,
    };
}

static void make_config(struct bench *bench)
{
    struct arena *arena = NULL;
    struct heap *heap = NULL;
    const struct arena_config arena_config = {
        .memory = map(NULL, 0, STATE_BYTES),
        .bytes = STATE_BYTES,
        .shard_count = EXCHANGE_SHARD_COUNT,
    };
    if (arena_create(&arena_config, &arena, NULL) != 0 || heap_create(arena, &heap, NULL) != 0) {
        abort();
    }
    bench->plan = (struct plan){.nodes = bench->pointers, .node_count = 3, .time_zone = "UTC"};
    bench->source_environment =
        (struct table_source_environment){.find = find_source, .context = &bench->edges.source};
    bench->sink_environment =
        (struct table_sink_environment){.find = find_sink, .context = &bench->edges.sink};
    bench->config = (struct job_config){
        .plan = &bench->plan,
        .lane_count = 1,
        .allocate = map,
        .classes = {{.bytes = PARCEL_BYTES_DEFAULT, .count = 2048},
                    {.bytes = JOB_PARCEL_BYTES_LARGE, .count = 16}},
        .class_count = 2,
        .parcel_rows_max = PARCEL_ROWS_MAX,
        .ring_items = JOB_RING_ITEMS_DEFAULT,
        .queue_rows_max = JOB_QUEUE_ROWS_DEFAULT,
        .records_a_turn = JOB_RECORDS_A_TURN_DEFAULT,
        .keeps_ledger = true,
        .find_operator = operator_find,
        .source_ops = &table_source_ops,
        .sink_ops = &table_sink_ops,
        .hooks = {.clock = now_ns},
        .lanes[0] = {.receive = true,
                     .operate = true,
                     .transmit = true,
                     .arena = arena,
                     .heap = heap,
                     .source_environment = &bench->source_environment,
                     .sink_environment = &bench->sink_environment},
    };
}

static void report(const struct bench *bench, const char *name, struct job *job, double seconds)
{
    if (!bench->edges.is_paced) {
        (void)printf("%-10s flat out: %.2f M records/s of CPU, %llu of %u written\n", name,
                     RECORDS / seconds / 1e6, (unsigned long long)bench->edges.appended, RECORDS);
        return;
    }
    const struct histogram *stay = &bench->edges.stay;
    (void)printf("%-10s at %u/s: stay p50 %.1f us, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f\n",
                 name, RATE, (double)histogram_percentile(stay, 0.5) / 1e3,
                 (double)histogram_percentile(stay, 0.9) / 1e3,
                 (double)histogram_percentile(stay, 0.99) / 1e3,
                 (double)histogram_percentile(stay, 0.999) / 1e3, (double)stay->max / 1e3);
    ledger_print(job_lane_ledger(job, 0), stdout);
}

static void run(struct span *payments, bool is_velocity, bool is_paced)
{
    const char *name = is_velocity ? "velocity" : "project";
    struct bench *bench = calloc(1, sizeof(*bench));
    struct job *job = NULL;
    struct error error = {0};
    if (bench == NULL) {
        abort();
    }
    bench->edges = (struct edges){.source = {.ops = &source_ops},
                                  .sink = {.ops = &sink_ops},
                                  .payments = payments,
                                  .is_paced = is_paced};
    histogram_init(&bench->edges.stay);
    make_source(bench);
    (is_velocity ? make_velocity : make_project)(bench);
    make_sink(bench, is_velocity);
    make_config(bench);
    if (job_create(&bench->config, &job, &error) != 0) {
        (void)fprintf(stderr, "%s: %s\n", name, error.text);
        exit(1);
    }
    (void)table_source_assign(job_stage(job, 0, 0)->source, 0, 0);
    const double start = cpu_seconds();
    bench->edges.start_ns = now_ns(NULL);
    while (job_lane_state(job, 0) == JOB_RUNNING) {
        (void)job_lane_poll(job, 0, now_ns(NULL));
    }
    if (job_lane_state(job, 0) == JOB_FAILED) {
        (void)fprintf(stderr, "%s: %s\n", name, job_lane_failure(job, 0)->text);
        exit(1);
    }
    report(bench, name, job, cpu_seconds() - start);
    job_destroy(job);
    heap_destroy(bench->config.lanes[0].heap);
    table_fini(&bench->table);
    free(bench);
}

int main(void)
{
    struct generator_payments *generator = NULL;
    const struct generator_payments_config config = {
        .seed = 1, .cards = 20000, .rate = RATE, .start_ms = 1700000000000, .wide = true};
    struct span *payments = calloc(RECORDS, sizeof(*payments));
    uint8_t *bytes = malloc((size_t)RECORDS * 512 + GENERATOR_LINE_BYTES_MAX);
    if (payments == NULL || bytes == NULL || generator_payments_create(&config, &generator) != 0) {
        abort();
    }
    size_t used = 0;
    for (uint32_t i = 0; i < RECORDS && used < (size_t)RECORDS * 512; i++) {
        const size_t length = generator_payments_line(generator, NULL, bytes + used);
        payments[i] = (struct span){.data = bytes + used, .bytes = length};
        used += length;
    }
    generator_payments_destroy(generator);
    for (uint32_t i = 0; i < 4; i++) {
        run(payments, i >= 2, i % 2 == 1);
    }
    free(payments);
    free(bytes);
    return 0;
}
