/* SPDX-License-Identifier: Apache-2.0 */
/* Replay builds the same job as the appliance and swaps what is at its edges: files for Kafka,
 * anonymous memory for hugepages, one thread that polls all lanes in turn for pinned cores. Sources
 * are asked again only once everything before has been worked off (job.h, settle). */
#include "control/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "control/replay_options.h"
#include "control/sql/sql.h"
#include "dataplane/job.h"
#include "dataplane/sink_file.h"
#include "dataplane/sink_print.h"
#include "dataplane/source_file.h"
#include "dataplane/table_sink.h"
#include "dataplane/table_source.h"
#include "state/arena.h"
#include "state/heap.h"

#define BLOCKS_MAX       8192
#define PARCELS          8192
#define QUIET_TURNS_MAX  1000 /* of all lanes, without work: then the job is stuck, a bug */
#define PRINT_RING_BYTES (UINT32_C(1) << 22)

struct block {
    void *memory;
    size_t bytes;
};

struct replay {
    struct replay_options options;
    char *script;
    size_t script_bytes;
    struct plan *plan;
    struct record_source *sources[PLAN_NODES_MAX]; /* by node */
    struct sink_file_topic topics[PLAN_NODES_MAX]; /* written; topic_count of them */
    uint32_t topic_count;
    struct record_sink *files;
    struct record_sink *lines;
    struct arena *arenas[REPLAY_LANES_MAX];
    struct heap *heaps[REPLAY_LANES_MAX];
    struct block blocks[BLOCKS_MAX];
    uint32_t block_count;
    struct table_source_environment source_environment;
    struct table_sink_environment sink_environment;
    struct job *job;
};

/* Maps zeroed memory that costs nothing until it is touched. */
static void *allocate(void *context, uint32_t lane, size_t bytes)
{
    struct replay *replay = context;
    if (replay->block_count == BLOCKS_MAX) {
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    replay->blocks[replay->block_count++] = (struct block){.memory = memory, .bytes = bytes};
    return memory;
}

static int read_script(struct replay *replay, struct error *error)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    FILE *file = fopen(replay->options.script, "rb");
    if (file == NULL) {
        return error_set(error, -errno, "cannot read %s: %s", replay->options.script,
                         strerror(errno));
    }
    size_t capacity = 1 << 16;
    size_t bytes = 0;
    char *text = malloc(capacity);
    while (text != NULL) {
        bytes += fread(text + bytes, 1, capacity - bytes, file);
        if (bytes < capacity) {
            break;
        }
        capacity *= 2;
        char *larger = realloc(text, capacity);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    const bool failed = ferror(file) != 0;
    (void)fclose(file);
    replay->script = text;
    replay->script_bytes = bytes;
    if (text == NULL || failed) {
        return error_set(error, -EIO, "cannot read %s", replay->options.script);
    }
    return 0;
}

/* Numbers the topics that are written; two sinks of one topic share its file. */
static uint32_t add_topic(struct replay *replay, const char *name, bool envelopes)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    for (uint32_t i = 0; i < replay->topic_count; i++) {
        if (strcmp(replay->topics[i].name, name) == 0) {
            replay->topics[i].envelopes = replay->topics[i].envelopes || envelopes;
            return i;
        }
    }
    ASSERT(replay->topic_count < COUNT_OF(replay->topics));
    replay->topics[replay->topic_count] =
        (struct sink_file_topic){.name = name, .envelopes = envelopes};
    return replay->topic_count++;
}

/* Records of such a sink do not fit a line of text each. */
static bool needs_envelopes(const struct plan_sink *sink)
{
    return sink->connector == PLAN_CONNECTOR_UPSERT_KAFKA || sink->key_field_count > 0 ||
           sink->value_format.format == PLAN_FORMAT_RAW;
}

static bool writes_topic(const struct plan_node *node)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    return node->operator== PLAN_SINK &&(node->sink.connector == PLAN_CONNECTOR_KAFKA ||
                                         node->sink.connector == PLAN_CONNECTOR_UPSERT_KAFKA);
}

static int open_sinks(struct replay *replay, struct error *error)
{
    ASSERT(replay != NULL);
    for (uint32_t i = 0; i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        if (writes_topic(node)) {
            (void)add_topic(replay, node->sink.topic, needs_envelopes(&node->sink));
        } else if (node->operator== PLAN_SOURCE &&
                   node->source.on_error == PLAN_ON_ERROR_DEAD_LETTER) {
            (void)add_topic(replay, node->source.dead_letter_topic, true);
        }
    }
    const struct sink_file_config config = {
        .directory = replay->options.output,
        .topics = replay->topics,
        .topic_count = replay->topic_count,
    };
    const int code = sink_file_create(&config, &replay->files, error);
    return code != 0 ? code : sink_print_create(PRINT_RING_BYTES, &replay->lines, error);
}

static int open_sources(struct replay *replay, struct error *error)
{
    ASSERT(replay != NULL);
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        if (node->operator!= PLAN_SOURCE) {
            continue;
        }
        const struct source_file_config config = {
            .directory = replay->options.input,
            .topics = node->source.topics,
            .topic_count = node->source.topic_count,
        };
        code = source_file_create(&config, &replay->sources[i], error);
    }
    return code;
}

static int find_source(void *context, const struct plan_node *node, uint32_t lane,
                       struct table_source_edge *out, struct error *error)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(out != NULL);
    struct replay *replay = context;
    *out = (struct table_source_edge){.records = replay->sources[node->id]};
    if (node->source.on_error == PLAN_ON_ERROR_DEAD_LETTER) {
        out->dead_letters = replay->files;
        out->dead_letter_topic = add_topic(replay, node->source.dead_letter_topic, true);
    }
    return 0;
}

static int find_sink(void *context, const struct plan_node *node, uint32_t lane,
                     struct table_sink_edge *out, struct error *error)
{
    ASSERT(node->input_count <= PLAN_INPUTS_MAX);
    ASSERT(out != NULL);
    struct replay *replay = context;
    *out = (struct table_sink_edge){.records = replay->lines};
    if (writes_topic(node)) {
        out->records = replay->files;
        out->topic = add_topic(replay, node->sink.topic, needs_envelopes(&node->sink));
    } else {
        out->topic = node->sink.print_to_stderr ? 1 : 0;
    }
    return 0;
}

static int create_state(struct replay *replay, uint32_t lane, struct error *error)
{
    ASSERT(replay != NULL);
    const size_t bytes = (size_t)replay->options.state_mib << 20;
    const struct arena_config config = {
        .memory = allocate(replay, lane, bytes),
        .bytes = bytes,
        .shard_count = EXCHANGE_SHARD_COUNT,
        .is_lazy = true,
    };
    if (config.memory == NULL) {
        return error_set(error, -ENOMEM, "cannot map %u MiB for state", replay->options.state_mib);
    }
    const int code = arena_create(&config, &replay->arenas[lane], error);
    return code != 0 ? code : heap_create(replay->arenas[lane], &replay->heaps[lane], error);
}

static int create_job(struct replay *replay, struct error *error)
{
    ASSERT(replay != NULL);
    struct job_config config = {
        .plan = replay->plan,
        .lane_count = replay->options.lanes,
        .allocate = allocate,
        .allocate_context = replay,
        .classes = {{.bytes = PARCEL_BYTES_DEFAULT, .count = PARCELS},
                    {.bytes = JOB_PARCEL_BYTES_LARGE, .count = 64},
                    {.bytes = UINT32_C(1) << 20, .count = 16},
                    {.bytes = ROW_BYTES_MAX + (UINT32_C(1) << 20), .count = 4}},
        .class_count = 4,
        .parcel_rows_max = replay->options.parcel_rows,
        .ring_items = JOB_RING_ITEMS_DEFAULT,
        .queue_rows_max = JOB_QUEUE_ROWS_DEFAULT,
        .records_a_turn = JOB_RECORDS_A_TURN_DEFAULT,
        .settle = true,
        .is_replay = true,
        .find_operator = operator_find,
        .source_ops = &table_source_ops,
        .sink_ops = &table_sink_ops,
    };
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < config.lane_count; i++) {
        code = create_state(replay, i, error);
        config.lanes[i] = (struct job_lane_config){
            .receive = i == 0,
            .operate = true,
            .transmit = i == 0,
            .arena = replay->arenas[i],
            .heap = replay->heaps[i],
            .source_environment = &replay->source_environment,
            .sink_environment = &replay->sink_environment,
        };
    }
    return code != 0 ? code : job_create(&config, &replay->job, error);
}

/* The files are read whole before the first record: all partitions are known. */
static void assign_partitions(struct replay *replay)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    for (uint32_t i = 0; i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        for (uint32_t t = 0; node->operator== PLAN_SOURCE && t<node->source.topic_count; t++) {
            const uint32_t count = source_file_partition_count(replay->sources[i], t);
            for (uint32_t p = 0; p < count; p++) {
                (void)table_source_assign(job_stage(replay->job, 0, i)->source, t, p);
            }
        }
    }
}

static int fail_run(struct replay *replay, const struct error *reason)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    ASSERT(reason != NULL);
    fprintf(stderr, "%s: the job failed at %s: %s\n", replay->options.script, reason->place,
            reason->text);
    return REPLAY_FAILED;
}

/* Polls every lane once; ended is set when all are over. */
static int turn(struct replay *replay, uint64_t now_ns, uint32_t *work, bool *ended)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    ASSERT(ended != NULL);
    *ended = true;
    for (uint32_t i = 0; i < replay->options.lanes; i++) {
        *work += job_lane_poll(replay->job, i, now_ns);
        const enum job_state state = job_lane_state(replay->job, i);
        if (state == JOB_FAILED) {
            return fail_run(replay, job_lane_failure(replay->job, i));
        }
        *ended = *ended && state == JOB_ENDED;
    }
    (void)record_sink_poll(replay->files, now_ns);
    (void)sink_print_drain(replay->lines, stdout, stderr);
    return REPLAY_OK;
}

static int run(struct replay *replay)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    assign_partitions(replay);
    uint32_t quiet_turns = 0;
    bool ended = false;
    for (uint64_t now_ns = 1; !ended; now_ns++) {
        uint32_t work = 0;
        const int code = turn(replay, now_ns, &work, &ended);
        if (code != REPLAY_OK) {
            return code;
        }
        quiet_turns = work == 0 ? quiet_turns + 1 : 0;
        if (quiet_turns > QUIET_TURNS_MAX) {
            fprintf(stderr, "%s: the job is stuck; this is a bug of penstock\n",
                    replay->options.script);
            return REPLAY_FAILED;
        }
    }
    return REPLAY_OK;
}

static void print_counts(struct replay *replay)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    uint64_t in = 0;
    uint64_t out = 0;
    uint64_t late = 0;
    uint64_t bad = 0;
    for (uint32_t i = 0; i < replay->plan->node_count; i++) {
        const struct plan_node *node = replay->plan->nodes[i];
        late += job_counter(replay->job, i, OPERATOR_LATE_ROWS);
        const struct stage *stage = job_stage(replay->job, 0, i);
        if (node->operator== PLAN_SOURCE) {
            in += table_source_counters(stage->source)->records;
            bad += table_source_counters(stage->source)->bad;
        } else if (node->operator== PLAN_SINK) {
            out += table_sink_counters(stage->sink)->records;
        }
    }
    printf("%lu records in, %lu records out, %lu late rows, %lu bad records\n", (unsigned long)in,
           (unsigned long)out, (unsigned long)late, (unsigned long)bad);
}

static int refuse(const struct replay *replay, const struct error *error)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    fprintf(stderr, "%s:%u:%u: %s\n", replay->options.script, error->line, error->column,
            error->text);
    return REPLAY_REFUSED;
}

static int complain(const struct error *error)
{
    fprintf(stderr, "penstock replay: %s%s%s\n", error->place, error->place[0] == 0 ? "" : ": ",
            error->text);
    return REPLAY_USAGE;
}

/* Everything from the script to the running job. */
static int prepare(struct replay *replay)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    struct error error = {0};
    if (read_script(replay, &error) != 0) {
        return complain(&error);
    }
    const struct sql_input input = {
        .text = replay->script,
        .bytes = replay->script_bytes,
        .file_name = replay->options.script,
    };
    if (sql_plan(&input, &replay->plan, NULL, &error) != 0) {
        return refuse(replay, &error);
    }
    replay->source_environment =
        (struct table_source_environment){.find = find_source, .context = replay};
    replay->sink_environment =
        (struct table_sink_environment){.find = find_sink, .context = replay};
    if (open_sources(replay, &error) != 0 || open_sinks(replay, &error) != 0) {
        return complain(&error);
    }
    const int code = create_job(replay, &error);
    if (code == -ENOMEM) {
        return complain(&error);
    }
    return code != 0 ? refuse(replay, &error) : REPLAY_OK;
}

/* Closes everything; a write error that shows only now still counts. */
static int finish(struct replay *replay, int code)
{
    ASSERT(replay->block_count <= BLOCKS_MAX);
    struct error error = {0};
    job_destroy(replay->job);
    for (uint32_t i = 0; i < REPLAY_LANES_MAX; i++) {
        heap_destroy(replay->heaps[i]);
    }
    for (uint32_t i = 0; i < PLAN_NODES_MAX; i++) {
        source_file_destroy(replay->sources[i]);
    }
    if (replay->files != NULL && sink_file_destroy(replay->files, &error) != 0) {
        code = code == REPLAY_OK ? complain(&error) : code;
    }
    sink_print_destroy(replay->lines);
    plan_destroy(replay->plan);
    for (uint32_t i = 0; i < replay->block_count; i++) {
        (void)munmap(replay->blocks[i].memory, replay->blocks[i].bytes);
    }
    free(replay->script);
    free(replay);
    return code;
}

int replay_command(int argc, char **argv)
{
    struct replay *replay = calloc(1, sizeof(*replay));
    if (replay == NULL) {
        return REPLAY_USAGE;
    }
    if (!replay_options_read(argc, argv, &replay->options)) {
        free(replay);
        return REPLAY_USAGE;
    }
    int code = prepare(replay);
    if (code == REPLAY_OK) {
        code = run(replay);
        (void)sink_print_drain(replay->lines, stdout, stderr);
    }
    if (code == REPLAY_OK && replay->options.prints_nodes) {
        job_print(replay->job, stdout);
    }
    if (code == REPLAY_OK && !replay->options.is_quiet) {
        print_counts(replay);
    }
    return finish(replay, code);
}
