/* SPDX-License-Identifier: Apache-2.0 */
/* The storage thread's half of checkpoints: orders them at an interval or by hand, takes the lanes'
 * extents to the store, and tells the lanes when one is durable. Everything is one bounded poll, so
 * that a simulation can drive it on virtual time; the real thread calls it in a loop.
 *
 * Only one checkpoint is open at a time; the next begins interval_ns after the last began, at the
 * earliest pause_ns after it ended. A failed one is reported and the next is tried with the same
 * base; when failures_max have failed in a row control is to act (checkpoint_is_in_trouble).
 *
 * What takes longer than timeout_ns fails, until the commit has begun: from then on a root may be
 * on the disk, and only the disk's word counts. */
#pragma once

#include "state/snapshot.h"
#include "state/store.h"

#define CHECKPOINT_REPORTS_MAX 64

struct checkpoint;

struct checkpoint_config {
    struct store *store;     /* borrowed */
    struct snapshot **lanes; /* lane_count; borrowed, the array too */
    uint32_t lane_count;
    uint32_t shard_count;
    uint64_t interval_ns; /* 0: only by hand */
    uint64_t pause_ns;
    uint64_t timeout_ns; /* a checkpoint that takes longer has failed */
    uint32_t full_every; /* every so many-th is full; 1: all */
    uint32_t failures_max;
    uint64_t first_id; /* above every id in the store */
    uint64_t base_id;  /* the checkpoint that was restored in place, 0: none */
    uint64_t plan_fingerprint;
    uint64_t host_identity;
    uint64_t wall_offset_ns; /* added to now_ns it gives nanoseconds since 1970 */
    const char *label;
};

enum checkpoint_result {
    CHECKPOINT_COMPLETE = 1,
    CHECKPOINT_FAILED_DISK,
    CHECKPOINT_FAILED_FULL,    /* no slots left on the disk */
    CHECKPOINT_FAILED_STAGING, /* a lane ran out of staging buffers */
    CHECKPOINT_FAILED_TIMEOUT, /* barriers, sinks or the disk took too long */
    CHECKPOINT_FAILED_ABANDONED,
};

/* One checkpoint as people want to know it. */
struct checkpoint_report {
    uint64_t id;
    uint64_t base_id;
    uint32_t result; /* enum checkpoint_result */
    uint32_t is_savepoint;
    uint64_t began_ns;
    uint64_t alignment_ns; /* from the order to the last lane's cut */
    uint64_t staging_ns;   /* from the first cut to the last lane's last extent */
    uint64_t duration_ns;  /* from the order to durable */
    uint64_t preimages;
    uint64_t pages;
    uint64_t bytes;
    char reason[128]; /* why it failed */
};

struct checkpoint_counters {
    uint64_t complete;
    uint64_t failed;
    uint64_t failed_in_a_row;
    uint64_t last_complete_id;
    uint64_t last_complete_ns; /* when */
    uint64_t bytes;
    uint64_t scrubbed_extents;
    uint64_t scrub_faults;
};

/* Makes it.
 * config   copied
 * out      freed by checkpoint_destroy
 * returns  0 or -ENOMEM
 * threads  control */
int checkpoint_create(const struct checkpoint_config *config, struct checkpoint **out,
                      struct error *error);

/* Frees it; nothing is open. NULL is fine.
 * threads  control, after the storage thread has stopped */
void checkpoint_destroy(struct checkpoint *checkpoint);

/* Does one bounded step.
 * wait_ns  how long it may wait for the disk when there is nothing to do
 * returns  work done
 * threads  storage thread */
uint32_t checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ns, uint64_t wait_ns);

/* Asks for a checkpoint as soon as none is open; may be called from another thread.
 * is_savepoint  kept until pruned by hand
 * threads       control, one at a time */
void checkpoint_request(struct checkpoint *checkpoint, bool is_savepoint);

/* Takes the report of a checkpoint that ended, oldest first; those that nobody takes are lost from
 * the oldest on.
 * returns  whether there was one
 * threads  control, one at a time */
bool checkpoint_report(struct checkpoint *checkpoint, struct checkpoint_report *out);

/* Whether nothing is open, nothing is asked for, and the disk has nothing in flight.
 * threads  storage thread; control once it has stopped */
bool checkpoint_is_idle(const struct checkpoint *checkpoint);

/* Whether failures_max checkpoints or more have failed in a row.
 * threads  any */
bool checkpoint_is_in_trouble(const struct checkpoint *checkpoint);

/* Stops ordering new ones but for those asked for by hand.
 * threads  control */
void checkpoint_hold(struct checkpoint *checkpoint);

/* Gives the open checkpoint up unless it is being committed, and begins no more: lanes have stopped
 * and will never finish it. Poll until it is idle.
 * threads  any */
void checkpoint_abandon(struct checkpoint *checkpoint);

/* Shows the counters.
 * returns  borrowed; a reader may see a mix of moments
 * threads  any */
const struct checkpoint_counters *checkpoint_counters(const struct checkpoint *checkpoint);
