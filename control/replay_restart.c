/* SPDX-License-Identifier: Apache-2.0 */
/* A replay with restarts: each so many records a checkpoint is made while the job goes on; as soon
 * as it is durable the job is thrown away with all that it did since, and made anew from it. What
 * was written behind the cut is taken back, as a broker does with transactions that never end. */
#include <errno.h>
#include <unistd.h>

#include "control/replay_internal.h"
#include "dataplane/sink_print.h"

#define DISK_MIB 256

int replay_restart_open(struct replay *replay, struct error *error)
{
    ASSERT(replay->restarts == NULL);
    if (replay->options.restart_every == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < COUNT_OF(replay->capture.streams); i++) {
        replay->capture.streams[i] = tmpfile();
        if (replay->capture.streams[i] == NULL) {
            return error_set(error, -errno, "cannot make a temporary file");
        }
    }
    return restarts_create(DISK_MIB, &replay->restarts, error);
}

uint32_t replay_restart_lane(struct replay *replay, uint32_t lane, uint64_t now_ns)
{
    ASSERT(lane < replay->lanes);
    return replay->restarts == NULL ? 0 : restarts_poll_lane(replay->restarts, lane, now_ns);
}

static void drain(struct replay *replay)
{
    struct replay_capture *capture = &replay->capture;
    (void)sink_print_drain(replay->lines, capture->streams[0], capture->streams[1]);
}

void replay_restart_cut(struct replay *replay, uint32_t lane)
{
    if (replay->restarts == NULL || lane != 0) {
        return;
    }
    drain(replay);
    struct replay_capture *capture = &replay->capture;
    if (!restarts_was_cut(replay->restarts)) {
        return;
    }
    for (uint32_t i = 0; i < COUNT_OF(capture->streams); i++) {
        capture->cut[i] = ftell(capture->streams[i]);
    }
}

static uint64_t records_read(const struct replay *replay)
{
    uint64_t records = 0;
    for (uint32_t i = 0; i < replay->plan->node_count; i++) {
        if (replay->plan->nodes[i]->operator== PLAN_SOURCE) {
            const struct stage *stage = job_stage(replay->job, 0, i);
            records += table_source_counters(stage->source)->records;
        }
    }
    return records;
}

static int rewind_outputs(struct replay *replay, struct error *error)
{
    struct replay_capture *capture = &replay->capture;
    drain(replay);
    sink_file_rewind(replay->files);
    for (uint32_t i = 0; i < COUNT_OF(capture->streams); i++) {
        FILE *stream = capture->streams[i];
        capture->committed[i] = capture->cut[i];
        if (fflush(stream) != 0 || ftruncate(fileno(stream), capture->committed[i]) != 0 ||
            fseek(stream, capture->committed[i], SEEK_SET) != 0) {
            return error_set(error, -errno, "cannot take printed lines back");
        }
    }
    return 0;
}

/* The lanes of the next life. */
static uint32_t next_lanes(const struct replay *replay)
{
    const struct replay_options *options = &replay->options;
    return options->restart_lane_count == 0
               ? replay->lanes
               : options->restart_lanes[replay->restart_count % options->restart_lane_count];
}

static int restart(struct replay *replay, struct error *error)
{
    replay_job_destroy(replay);
    replay->lanes = next_lanes(replay);
    replay->restart_count++;
    int code = rewind_outputs(replay, error);
    code = code != 0 ? code : replay_job_open(replay, error);
    return code != 0 ? code : replay_job_create(replay, error);
}

int replay_restart_poll(struct replay *replay, uint64_t now_ns, uint32_t *work, bool *ended,
                        struct error *error)
{
    if (replay->restarts == NULL) {
        return 0;
    }
    switch (restarts_poll(replay->restarts, now_ns, work, error)) {
    case RESTARTS_NONE:
        if (records_read(replay) >= replay->options.restart_every) {
            restarts_request(replay->restarts);
            *ended = false;
            (*work)++;
        }
        return 0;
    case RESTARTS_OPEN:
        *ended = false;
        return 0;
    case RESTARTS_DONE:
        *ended = false;
        (*work)++;
        return restart(replay, error);
    default:
        return -EIO;
    }
}

static void print_captured(FILE *from, FILE *into)
{
    char part[4096];
    size_t bytes;
    (void)fflush(from);
    rewind(from);
    while ((bytes = fread(part, 1, sizeof(part), from)) > 0) {
        (void)fwrite(part, 1, bytes, into);
    }
}

void replay_restart_close(struct replay *replay)
{
    struct replay_capture *capture = &replay->capture;
    FILE *const into[] = {stdout, stderr};
    if (replay->restarts != NULL && replay->lines != NULL) {
        drain(replay);
    }
    for (uint32_t i = 0; i < COUNT_OF(capture->streams); i++) {
        if (capture->streams[i] != NULL) {
            print_captured(capture->streams[i], into[i]);
            (void)fclose(capture->streams[i]);
            capture->streams[i] = NULL;
        }
    }
    restarts_destroy(replay->restarts);
    replay->restarts = NULL;
}
