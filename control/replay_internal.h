/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a replay, shared by replay.c (script, sinks, the run), replay_job.c (sources, state
 * and the job: what a restart throws away) and replay_restart.c (restarts). */
#pragma once

#include <stdio.h>

#include "control/replay.h"
#include "control/replay_options.h"
#include "control/restarts.h"
#include "control/sql/sql.h"
#include "dataplane/job.h"
#include "dataplane/sink_file.h"
#include "dataplane/table_sink.h"
#include "dataplane/table_source.h"

#define REPLAY_BLOCKS_MAX 8192

struct replay_block {
    void *memory;
    size_t bytes;
};

/* What was printed, up to a place that can be gone back to: print tables in a run with restarts. */
struct replay_capture {
    FILE *streams[2]; /* normal, errors; NULL: no restarts, lines go out at once */
    long cut[2];
    long committed[2];
};

struct replay {
    struct replay_options options;
    char *script;
    size_t script_bytes;
    struct plan *plan;
    struct sink_file_topic topics[PLAN_NODES_MAX]; /* written; topic_count of them */
    uint32_t topic_count;
    struct record_sink *files;
    struct record_sink *lines;
    struct table_source_environment source_environment;
    struct table_sink_environment sink_environment;
    struct restarts *restarts; /* NULL: none asked for */
    struct replay_capture capture;
    uint32_t restart_count;
    /* Of one life of the job. */
    uint32_t lanes;
    struct record_source *sources[PLAN_NODES_MAX]; /* by node */
    struct arena *arenas[REPLAY_LANES_MAX];
    struct heap *heaps[REPLAY_LANES_MAX];
    struct replay_block blocks[REPLAY_BLOCKS_MAX];
    uint32_t block_count;
    struct job *job;
};

/* Opens the recorded files: what is wrong with them is the files' matter, not the script's.
 * returns  0 or -errno; replay_job_destroy takes apart what is there in both cases
 * threads  control */
int replay_job_open(struct replay *replay, struct error *error);

/* Makes the job over the opened files on replay->lanes lanes; goes on from the newest checkpoint,
 * if there is one.
 * returns  0 or -errno; replay_job_destroy takes apart what is there in both cases
 * threads  control */
int replay_job_create(struct replay *replay, struct error *error);

/* Throws a job and all of its memory away.
 * threads  control */
void replay_job_destroy(struct replay *replay);

/* Makes what restarts need, when they are asked for.
 * returns  0 or -errno
 * threads  control, before the first job */
int replay_restart_open(struct replay *replay, struct error *error);

/* One turn's part of checkpoints, in front of a lane's turn.
 * returns  work done
 * threads  control */
uint32_t replay_restart_lane(struct replay *replay, uint32_t lane, uint64_t now_ns);

/* Behind a lane's turn: where the lane was cut in it, what it printed before is kept apart.
 * threads  control */
void replay_restart_cut(struct replay *replay, uint32_t lane);

/* Behind a turn of all lanes: asks for a checkpoint each so many records, and once it is durable
 * throws the job away and makes it anew.
 * ended    the job is over; set to false when it is to go on
 * returns  0 or -errno
 * threads  control */
int replay_restart_poll(struct replay *replay, uint64_t now_ns, uint32_t *work, bool *ended,
                        struct error *error);

/* Prints what was captured, and frees what replay_restart_open made.
 * threads  control */
void replay_restart_close(struct replay *replay);
