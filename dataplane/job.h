/* SPDX-License-Identifier: Apache-2.0 */
/* A job: a plan instantiated on lanes. One turn of a lane polls its stages in the plan's order, so
 * that a record goes from source to sink in a single turn when every role is on one lane; what
 * could not go on waits in queues for the next turn.
 *
 * Admission. Inside a lane nothing is refused: rows enter it (from a source, from a ring) only
 * while less than queue_rows_max rows wait downstream of that entry and the pool has parcels to
 * spare. Every wait is for nodes later in the plan, so lanes cannot wait for each other in a
 * circle, and a slow sink stops the sources and nothing else.
 *
 * Determinism. Given the same records and the same turns, the same rows come out in the same order.
 * With settle, a source is asked again only once everything before has been worked off; then the
 * order does not depend on the size of parcels either (replay).
 *
 * Memory. While a lane's arena has only its reserve left (arena_is_full), sources of all lanes take
 * no record; what is in flight is worked off, barriers pass, time goes on, so checkpoints and
 * expiry do. The lane goes back to reading by itself once half the reserve more is free. Without a
 * reserve an arena is never full in this sense, and fails the job when its last page is gone.
 *
 * Cut. A barrier passes the stages of a lane one by one and each that it has passed is held, so
 * that state of all of them is as of the barrier at one moment: the lane's cut (hooks.cut). State
 * of a lane lies in one arena, hence one cut for all.
 *
 * After job_create nothing allocates, locks, waits or makes a system call. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "dataplane/ledger.h"
#include "dataplane/placement.h"
#include "dataplane/plan.h"
#include "dataplane/stage.h"

#define JOB_RING_ITEMS_DEFAULT     1024
#define JOB_QUEUE_ROWS_DEFAULT     4096
#define JOB_RECORDS_A_TURN_DEFAULT 512
#define JOB_PARCEL_BYTES_LARGE     (UINT32_C(64) << 10)

struct job_lane_config {
    bool receive;
    bool operate;
    bool transmit;
    struct arena *arena; /* state of the lane's operators; NULL where there is none */
    struct heap *heap;
    void *source_environment; /* what source_ops->open finds in its context */
    void *sink_environment;
};

struct job_config {
    const struct plan *plan; /* outlives the job */
    struct job_lane_config lanes[PLACEMENT_LANES_MAX];
    uint32_t lane_count;
    /* Gives zeroed memory, 64-byte aligned, that outlives the job: parcels, queues, rings. For
     * live lanes it is resident hugepage memory. NULL when there is no more. */
    void *(*allocate)(void *context, uint32_t lane, size_t bytes);
    void *allocate_context;
    struct parcel_class classes[PARCEL_CLASSES_MAX]; /* of each lane's pool */
    uint32_t class_count;
    uint32_t parcel_rows_max; /* 1 to PARCEL_ROWS_MAX */
    uint32_t ring_items;      /* a power of two */
    uint32_t queue_rows_max;
    uint32_t records_a_turn; /* a source, and items a ring, per turn */
    bool settle;
    bool is_replay;
    bool keeps_ledger;
    const struct operator_ops *(*find_operator)(
        enum plan_operator operator); /* operator_find, or a test's */
    const struct source_ops *source_ops;
    const struct sink_ops *sink_ops;
    struct stage_hooks hooks;
};

enum job_state {
    JOB_RUNNING = 0,
    JOB_ENDED,  /* every source has ended or was drained, everything written has arrived */
    JOB_FAILED, /* see job_lane_failure */
};

/* How a lane's arena stands. */
enum job_memory {
    JOB_MEMORY_FINE = 0,
    JOB_MEMORY_LOW,  /* below its warning line */
    JOB_MEMORY_FULL, /* below its reserve: sources of all lanes are held */
};

struct job;
struct store;

/* Makes every instance, queue, ring and pool of a job.
 * config   copied
 * out      destroyed with job_destroy
 * returns  0, or -errno with the reason (line and column of the plan node where there is one)
 * threads  control */
int job_create(const struct job_config *config, struct job **out, struct error *error);

/* Closes all instances. NULL is fine. No lane runs any more.
 * threads  control */
void job_destroy(struct job *job);

/* Does one bounded turn of everything that the job has on a lane.
 * returns  work done, 0 when idle
 * threads  owning lane only (with settle: one thread polls all lanes) */
uint32_t job_lane_poll(struct job *job, uint32_t lane, uint64_t now_ns);

/* Tells how a lane's part of the job stands.
 * threads  owning lane only */
enum job_state job_lane_state(struct job *job, uint32_t lane);

/* Tells how the lane's memory stood when the turn began; each level is left a little later than it
 * was entered.
 * threads  owning lane only */
enum job_memory job_lane_memory(const struct job *job, uint32_t lane);

/* Counts the free pages of the lane's arena; 0 where it has none.
 * threads  owning lane only */
uint32_t job_lane_pages_free(const struct job *job, uint32_t lane);

/* Tells whether sources are held because some lane's arena is full.
 * threads  any */
bool job_is_held(const struct job *job);

/* Tells why a lane failed: the stage that failed first.
 * returns  borrowed
 * threads  owning lane; control once the lane is parked */
const struct error *job_lane_failure(const struct job *job, uint32_t lane);

/* Stops reading on a lane: what was read is worked off, then the lane's part of the job ends. The
 * other receive lanes must be drained as well.
 * fires    event time goes to its end, so that windows and timers answer; else none fires for it
 * threads  owning lane only */
void job_lane_drain(struct job *job, uint32_t lane, bool fires);

/* Orders a barrier on a lane: its sources say where they stand and send it behind everything that
 * they have sent so far. Once it has passed every stage of the lane, hooks.cut is called, once,
 * from job_lane_poll; on a lane whose part of the job has ended in the next one. A barrier that has
 * not been cut when the next is ordered is given up. Every lane of the job must be told of each.
 * epoch    above 0 and all before
 * threads  owning lane only */
void job_lane_barrier(struct job *job, uint32_t lane, int64_t epoch);

/* Stops and resumes taking rows into a lane, from the world and from other lanes; what is in it is
 * worked off. No barrier that the lane was told of may be on its way meanwhile.
 * threads  owning lane only */
void job_lane_hold(struct job *job, uint32_t lane, bool is_held);

/* Tells whether the job had something to do on the lane in its last turn.
 * threads  owning lane only */
bool job_lane_was_busy(const struct job *job, uint32_t lane);

/* Goes on from a checkpoint: sources start where it found them, and event and processing time stand
 * where they stood. State (state/restore.h) is back in the arenas already.
 * facts    of all lanes that it was made on, lane_count of them; borrowed for the call
 * returns  0, -EBADMSG when the facts are damaged or contradict the state, else -errno
 * threads  control, before the lanes start */
int job_restore(struct job *job, const struct span *facts, uint32_t lane_count,
                struct error *error);

/* As job_restore, with the facts of a checkpoint in a store.
 * threads  control, as the store's owner, before the lanes start */
int job_restore_from(struct job *job, struct store *store, uint64_t id, struct error *error);

/* Tells which node a named state belongs to.
 * returns  NULL when the job has none
 * threads  control */
const struct plan_node *job_state_node(const struct job *job, const char *state_name);

/* Tells which lane owns a shard of a named state: where the exchange sends the rows of its keys.
 * Fits restore_config.owner.
 * job         the struct job
 * state_name  of this job, else lane 0 is named
 * threads     control */
uint32_t job_owner_lane(void *job, const char *state_name, uint32_t shard);

/* Shows an instance: counters, watermark, body.
 * returns  borrowed, NULL when the node has none on the lane
 * threads  owning lane; control for counters, and for all once the lane is parked */
struct stage *job_stage(struct job *job, uint32_t lane, uint32_t node);

/* Shows a lane's ledger.
 * returns  borrowed, NULL when none is kept
 * threads  owning lane writes; control may merge it */
struct ledger *job_lane_ledger(struct job *job, uint32_t lane);

/* Tells which sink of the ledger a sink node is.
 * threads  any */
uint32_t job_ledger_sink(const struct job *job, uint32_t node);

/* Tells how many rows are held between stages on a lane: with them, every row that entered a stage
 * is accounted for.
 * threads  owning lane only */
uint64_t job_lane_held_rows(const struct job *job, uint32_t lane);

/* Sums a counter of operators over a node's instances.
 * threads  control */
uint64_t job_counter(const struct job *job, uint32_t node, enum operator_counter counter);

/* Prints rows in and out, late rows, drops, a line a node.
 * threads  control */
void job_print(const struct job *job, FILE *into);
