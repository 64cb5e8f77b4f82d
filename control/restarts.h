/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a replay, for restarts in its middle: the store on a disk in memory, which
 * outlives the jobs, and for each job in turn what stands between it and the store. All of it is
 * driven by the replay's one thread; the modules are those of the appliance. */
#pragma once

#include "base.h"
#include "dataplane/job.h"
#include "dataplane/record.h"

struct restarts;

/* One life of the job. */
struct restarts_life {
    struct job *job;
    struct arena *const *arenas; /* lane_count */
    uint32_t lane_count;
    struct record_sink *const *sinks; /* that lane 0 writes to */
    uint32_t sink_count;
    uint64_t plan_fingerprint;
};

/* Makes the disk and the store.
 * disk_mib  how much checkpoints may take
 * out       freed by restarts_destroy
 * returns   0 or -errno
 * threads   control */
int restarts_create(uint32_t disk_mib, struct restarts **out, struct error *error);

/* Frees all of it; no life is attached. NULL is fine.
 * threads  control */
void restarts_destroy(struct restarts *restarts);

/* Sets the hooks that a life's job is made with.
 * threads  control */
void restarts_hooks(struct restarts *restarts, struct stage_hooks *hooks);

/* Restores the newest checkpoint, if there is one, into a fresh job and its arenas, and makes what
 * the next checkpoint needs.
 * life     copied
 * returns  0 or -errno with the reason
 * threads  control, before the first turn */
int restarts_attach(struct restarts *restarts, const struct restarts_life *life,
                    struct error *error);

/* Lets go of a life: the job is thrown away next.
 * threads  control */
void restarts_detach(struct restarts *restarts);

/* Asks for a checkpoint of this life.
 * threads  control */
void restarts_request(struct restarts *restarts);

/* One step of a lane's part, before its turn.
 * returns  work done
 * threads  control */
uint32_t restarts_poll_lane(struct restarts *restarts, uint32_t lane, uint64_t now_ns);

/* Tells once, right behind lane 0's turn, that the lane was cut at its end.
 * threads  control */
bool restarts_was_cut(struct restarts *restarts);

enum restarts_state {
    RESTARTS_NONE = 0, /* nothing was asked for in this life */
    RESTARTS_OPEN,
    RESTARTS_DONE, /* durable, and every lane knows: time for another life */
    RESTARTS_FAILED,
};

/* One step of the storage thread's part.
 * work     work done is added
 * error    why it failed
 * threads  control */
enum restarts_state restarts_poll(struct restarts *restarts, uint64_t now_ns, uint32_t *work,
                                  struct error *error);
