/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: one pinned core and the loop that it runs for ever.
 *
 *     commands from control -> pollers before (NIC receive, Kafka client) -> job -> pollers after
 *     (record sinks, NIC transmit) -> idle when nothing of it did work
 *
 * The world is plugged in as pollers, each one bounded step that returns work done. Control talks
 * to the lane through a ring of commands and hears of it through a ring of events; both have one
 * producer and one consumer. A lane that fails says so and parks: its job stands still, its pollers
 * go on, so that connections end in order, until it is told to stop.
 *
 * lane_turn does one turn with a time of the caller's choice: simulation and tests drive lanes so.
 */
#pragma once

#include "base.h"
#include "dataplane/job.h"

#define LANE_POLLERS_MAX   32
#define LANE_COMMANDS_MAX  64 /* waiting at once; powers of two */
#define LANE_EVENTS_MAX    64
#define LANE_TURNS_TO_IDLE 16 /* turns without work before the lane idles */

/* One step of something that a lane owns.
 * returns  work done, 0 when idle */
struct lane_poller {
    uint32_t (*poll)(void *context, uint64_t now_ns);
    void *context;
};

enum lane_idle {
    LANE_IDLE_SPIN = 0, /* isolated cores */
    LANE_IDLE_YIELD,    /* shared machines: gives the core away for a moment */
};

enum lane_command_kind {
    LANE_COMMAND_DRAIN = 1, /* stop reading, finish what was read; LANE_EVENT_ENDED follows.
                             * value: not 0 fires all windows and timers as well */
    LANE_COMMAND_STOP,      /* leave the loop now */
    LANE_COMMAND_BARRIER,   /* value: the epoch */
    LANE_COMMAND_CALL,      /* run call(context, value) on the lane: assign, revoke, pause … */
};

struct lane_command {
    uint32_t kind; /* enum lane_command_kind */
    uint32_t reserved;
    int64_t value;
    void (*call)(void *context, int64_t value);
    void *context;
};

enum lane_event_kind {
    LANE_EVENT_STARTED = 1,
    LANE_EVENT_ENDED,   /* the lane's part of the job is over and everything written has arrived */
    LANE_EVENT_FAILED,  /* parked: see lane_failure */
    LANE_EVENT_STOPPED, /* the loop has been left */
    LANE_EVENT_BARRIER, /* value: an epoch that has passed every node of the lane */
    /* The lane's arena crossed a line, job.h; value: its free pages. */
    LANE_EVENT_STATE_FINE,
    LANE_EVENT_STATE_LOW,
    LANE_EVENT_STATE_FULL, /* sources are held until LOW or FINE follows */
};

struct lane_event {
    uint32_t kind; /* enum lane_event_kind */
    uint32_t lane;
    int64_t value;
};

_Static_assert(sizeof(struct lane_command) == 32, "an element of a ring");
_Static_assert(sizeof(struct lane_event) == 16, "an element of a ring");

struct lane_config {
    uint32_t number; /* in the job */
    struct job *job; /* outlives the lane */
    struct lane_poller before[LANE_POLLERS_MAX];
    uint32_t before_count;
    struct lane_poller after[LANE_POLLERS_MAX];
    uint32_t after_count;
    enum lane_idle idle;
    uint64_t (*now)(void *context); /* nanoseconds that only grow; no system call */
    void *now_context;
};

/* Written by the lane, read by anybody. */
struct lane_counters {
    uint64_t turns;
    uint64_t idle_turns;
    uint64_t work;
    uint64_t events_lost; /* control did not read its ring */
};

struct lane;

/* Makes a lane.
 * config   copied
 * out      freed by lane_destroy
 * returns  0 or -ENOMEM
 * threads  control */
int lane_create(const struct lane_config *config, struct lane **out, struct error *error);

/* Frees it; the loop has been left. NULL is fine.
 * threads  control */
void lane_destroy(struct lane *lane);

/* Runs the loop until LANE_COMMAND_STOP.
 * threads  the lane's own, pinned by the caller */
void lane_run(struct lane *lane);

/* Does one turn.
 * returns  work done
 * threads  the lane's own */
uint32_t lane_turn(struct lane *lane, uint64_t now_ns);

/* Tells whether the lane was told to stop.
 * threads  the lane's own */
bool lane_is_stopped(const struct lane *lane);

/* Sends a command.
 * returns  false when the ring is full: try again
 * threads  control, one at a time */
bool lane_command(struct lane *lane, const struct lane_command *command);

/* Takes the oldest event.
 * returns  false when there is none
 * threads  control, one at a time */
bool lane_event(struct lane *lane, struct lane_event *out);

/* Posts an event, for pollers that have news of their own.
 * threads  the lane's own */
void lane_post(struct lane *lane, enum lane_event_kind kind, int64_t value);

/* Parks the lane from within, for pollers that cannot go on.
 * reason   copied
 * threads  the lane's own */
void lane_fail(struct lane *lane, const struct error *reason);

/* Tells why a lane failed.
 * returns  borrowed; empty text while it has not
 * threads  control, after LANE_EVENT_FAILED */
const struct error *lane_failure(const struct lane *lane);

/* Shows the counters.
 * threads  any */
const struct lane_counters *lane_counters(const struct lane *lane);
