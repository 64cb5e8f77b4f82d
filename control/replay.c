/* SPDX-License-Identifier: Apache-2.0 */
/* Replay builds the same job as the appliance and swaps what is at its edges: files for Kafka,
 * anonymous memory for hugepages, one thread that polls all lanes in turn for pinned cores. Sources
 * are asked again only once everything before has been worked off (job.h, settle). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/replay_internal.h"
#include "dataplane/sink_print.h"

#define QUIET_TURNS_MAX  1000 /* of all lanes, without work: then the job is stuck, a bug */
#define PRINT_RING_BYTES (UINT32_C(1) << 22)

static int read_script(struct replay *replay, struct error *error)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
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
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
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

static int fail_run(struct replay *replay, const struct error *reason)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    ASSERT(reason != NULL);
    fprintf(stderr, "%s: the job failed at %s: %s\n", replay->options.script, reason->place,
            reason->text);
    return REPLAY_FAILED;
}

/* Polls every lane once; ended is set when all are over. */
static int turn(struct replay *replay, uint64_t now_ns, uint32_t *work, bool *ended)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    ASSERT(ended != NULL);
    *ended = true;
    for (uint32_t i = 0; i < replay->lanes; i++) {
        *work += replay_restart_lane(replay, i, now_ns);
        *work += job_lane_poll(replay->job, i, now_ns);
        replay_restart_cut(replay, i);
        const enum job_state state = job_lane_state(replay->job, i);
        if (state == JOB_FAILED) {
            return fail_run(replay, job_lane_failure(replay->job, i));
        }
        *ended = *ended && state == JOB_ENDED;
    }
    (void)record_sink_poll(replay->files, now_ns);
    if (replay->restarts == NULL) {
        (void)sink_print_drain(replay->lines, stdout, stderr);
    }
    return REPLAY_OK;
}

static int run(struct replay *replay)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    struct error error = {0};
    uint32_t quiet_turns = 0;
    bool ended = false;
    for (uint64_t now_ns = 1; !ended; now_ns++) {
        uint32_t work = 0;
        const int code = turn(replay, now_ns, &work, &ended);
        if (code != REPLAY_OK) {
            return code;
        }
        if (replay_restart_poll(replay, now_ns, &work, &ended, &error) != 0) {
            return fail_run(replay, &error);
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
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
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
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
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
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
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
    replay->lanes = replay->options.lanes;
    if (open_sinks(replay, &error) != 0 || replay_restart_open(replay, &error) != 0 ||
        replay_job_open(replay, &error) != 0) {
        return complain(&error);
    }
    const int code = replay_job_create(replay, &error);
    if (code == -ENOMEM) {
        return complain(&error);
    }
    return code != 0 ? refuse(replay, &error) : REPLAY_OK;
}

/* Closes everything; a write error that shows only now still counts. */
static int finish(struct replay *replay, int code)
{
    ASSERT(replay->block_count <= REPLAY_BLOCKS_MAX);
    struct error error = {0};
    replay_job_destroy(replay);
    replay_restart_close(replay);
    if (replay->files != NULL && sink_file_destroy(replay->files, &error) != 0) {
        code = code == REPLAY_OK ? complain(&error) : code;
    }
    sink_print_destroy(replay->lines);
    plan_destroy(replay->plan);
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
        if (replay->restarts == NULL) {
            (void)sink_print_drain(replay->lines, stdout, stderr);
        }
    }
    if (code == REPLAY_OK && replay->options.prints_nodes) {
        job_print(replay->job, stdout);
    }
    if (code == REPLAY_OK && !replay->options.is_quiet) {
        print_counts(replay);
    }
    return finish(replay, code);
}
