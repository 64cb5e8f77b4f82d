/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop of a run: it waits for signals with a short timeout, and between them looks at
 * what the lanes say, what the control socket asks, and whether positions are to be committed. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "control/appliance_internal.h"
#include "dataplane/sink_print.h"

#define LOOP_WAIT_NS   50000000 /* how long the control loop sleeps between looks at its lanes */
#define FINAL_TIMEOUTS 2        /* how often checkpoint.timeout_ms the last checkpoint may take */

static bool all_ended(const struct box *box)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        if (!box->lanes[i].has_ended) {
            return false;
        }
    }
    return true;
}

/* fires: event time goes to its end, so that windows and timers answer what they have; there is no
 * going on from such an end. */
static void begin_drain(struct appliance *appliance, bool fires)
{
    ASSERT(appliance != NULL);
    const struct lane_command drain = {.kind = LANE_COMMAND_DRAIN, .value = fires};
    appliance->phase = APPLIANCE_DRAINING;
    appliance->drain_began_ns = box_clock(NULL);
    for (uint32_t i = 0; i < appliance->box.lane_count; i++) {
        while (!lane_command(appliance->box.lanes[i].lane, &drain)) {
            (void)sched_yield();
        }
    }
}

/* What a failed lane says decides how the program ends: a failure that names a place in the job is
 * the job's, one of a connection or topic is the run's. */
static void take_failure(struct appliance *appliance, struct box_lane *lane)
{
    ASSERT(lane->source_count <= BOX_SOURCES_MAX);
    ASSERT(lane->box != NULL);
    const struct error *reason = lane_failure(lane->lane);
    const bool is_job = job_lane_state(appliance->box.job, lane->number) == JOB_FAILED;
    lane->has_failed = true;
    appliance->error = *reason;
    (void)appliance_fail(appliance, is_job ? EXIT_JOB_FAILED : EXIT_RUN_FAILED);
}

/* State memory of a lane crossed a line. Full means that sources are held already; the policy says
 * whether the run ends in order now, or waits for expiry to free something. */
static void take_memory_event(struct appliance *appliance, const struct box_lane *lane,
                              uint32_t kind)
{
    const uint64_t mib = appliance->config.memory.state_mib;
    if (kind == LANE_EVENT_STATE_LOW) {
        (void)fprintf(stderr,
                      "penstock: WARNING: more than %" PRIu64 " %% of the state memory of core %u "
                      "(memory.state_mib: %" PRIu64 ") is in use\n",
                      appliance->config.memory.warn_percent, lane->core, mib);
    }
    if (kind != LANE_EVENT_STATE_FULL) {
        return;
    }
    const bool stops = appliance->config.memory.when_full == CONFIG_FULL_STOP;
    (void)fprintf(stderr,
                  "penstock: WARNING: the state memory of core %u (memory.state_mib: %" PRIu64
                  ") is used up: %s\n",
                  lane->core, mib,
                  stops ? "stopping in order" : "nothing is read until some of it is free again");
    if (stops && appliance->phase == APPLIANCE_RUNNING) {
        appliance->full_core = lane->core;
        appliance->is_full = true;
        begin_drain(appliance, false);
    }
}

static void take_events(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    for (uint32_t i = 0; i < appliance->box.lane_count; i++) {
        struct box_lane *lane = &appliance->box.lanes[i];
        struct lane_event event;
        struct kafka_event news;
        while (news_pop(lane->news, &news)) {
            (void)fprintf(stderr, "kafka: %s\n", news.text);
        }
        if (lane->printer != NULL) {
            (void)sink_print_drain(lane->printer, stdout, stderr);
        }
        while (lane_event(lane->lane, &event)) {
            lane->has_ended |= event.kind == LANE_EVENT_ENDED;
            if (event.kind == LANE_EVENT_FAILED) {
                take_failure(appliance, lane);
            } else {
                take_memory_event(appliance, lane, event.kind);
            }
        }
    }
}

/* Handles a signal; false when the program must leave now. */
static bool take_signal(struct appliance *appliance, int number)
{
    ASSERT(appliance != NULL);
    if (number == SIGUSR1) {
        report_print(appliance);
        return true;
    }
    if (appliance->phase != APPLIANCE_RUNNING) {
        appliance->exit_code = EXIT_KILLED;
        return false;
    }
    (void)fprintf(stderr, "penstock: draining; a second signal stops at once\n");
    begin_drain(appliance, false);
    return true;
}

static bool drained_too_long(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const uint64_t limit_ns = appliance->config.run.drain_timeout_ms * UINT64_C(1000000);
    if (appliance->phase != APPLIANCE_DRAINING ||
        box_clock(NULL) - appliance->drain_began_ns < limit_ns) {
        return false;
    }
    (void)error_set(&appliance->error, -ETIMEDOUT,
                    "not drained within run.drain_timeout_ms (%" PRIu64
                    " ms): what was read and not written is lost to this run",
                    appliance->config.run.drain_timeout_ms);
    (void)appliance_fail(appliance, EXIT_RUN_FAILED);
    return true;
}

/* Tells what became of checkpoints; only those that somebody asked for, and trouble, are told. */
static void take_reports(struct appliance *appliance)
{
    struct checkpoint *checkpoint = storage_checkpoint(appliance->storage);
    struct checkpoint_report report;
    while (checkpoint_report(checkpoint, &report)) {
        appliance->report = report;
        if (report.is_savepoint) {
            appliance->savepoint = report;
        }
        if (report.result == CHECKPOINT_COMPLETE) {
            appliance->final_id = appliance->phase == APPLIANCE_CHECKPOINTING &&
                                          report.began_ns >= appliance->final_began_ns
                                      ? report.id
                                      : appliance->final_id;
            continue;
        }
        (void)fprintf(stderr, "penstock: WARNING: checkpoint %" PRIu64 " failed: %s\n", report.id,
                      report.reason);
        if (appliance->phase == APPLIANCE_CHECKPOINTING) {
            checkpoint_request(checkpoint, false); /* the last one is tried again */
        }
    }
}

/* After so many failed ones in a row a crash would cost too much: the run ends while its last
 * checkpoint is still near, unless the appliance file says otherwise. */
static void check_failing(struct appliance *appliance)
{
    const struct checkpoint *checkpoint = storage_checkpoint(appliance->storage);
    if (!checkpoint_is_in_trouble(checkpoint) ||
        appliance->config.checkpoint.when_failing == CONFIG_FAILING_RUN ||
        appliance->exit_code != EXIT_DONE) {
        return;
    }
    (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "checkpoint.failures");
    (void)error_set(&appliance->error, -EIO,
                    "%" PRIu64 " checkpoints in a row have failed, the last: %s",
                    checkpoint_counters(checkpoint)->failed_in_a_row, appliance->report.reason);
    (void)appliance_fail(appliance, EXIT_RUN_FAILED);
}

/* Everything read has been answered: the last checkpoint, from which nothing is repeated. */
static void begin_final(struct appliance *appliance)
{
    ASSERT(appliance->storage != NULL);
    struct checkpoint *checkpoint = storage_checkpoint(appliance->storage);
    appliance->phase = APPLIANCE_CHECKPOINTING;
    appliance->final_began_ns = box_clock(NULL);
    checkpoint_hold(checkpoint);
    checkpoint_request(checkpoint, false);
}

/* Whether the last checkpoint is durable and what it makes visible has been made so. */
static bool is_final_done(struct appliance *appliance)
{
    const uint64_t limit_ns =
        appliance->config.checkpoint.timeout_ms * FINAL_TIMEOUTS * UINT64_C(1000000);
    if (appliance->final_id != 0 && box_is_visible(&appliance->box, appliance->final_id)) {
        (void)fprintf(stderr, "penstock: stopped at checkpoint %" PRIu64 "\n", appliance->final_id);
        return true;
    }
    if (box_clock(NULL) - appliance->final_began_ns > limit_ns) {
        (void)error_set(&appliance->error, -ETIMEDOUT,
                        "the last checkpoint did not become whole: a restart goes on from the one "
                        "before");
        (void)appliance_fail(appliance, EXIT_RUN_FAILED);
    }
    return false;
}

/* A checkpoint asked for by hand is answered when it, or a later one, is over. */
static bool answer_checkpoint(struct appliance *appliance, bool is_savepoint, uint64_t *ticket,
                              FILE *answer)
{
    const struct checkpoint_report *report =
        is_savepoint ? &appliance->savepoint : &appliance->report;
    if (appliance->storage == NULL) {
        (void)fprintf(answer, "error: checkpoint.path is not set\n");
        return true;
    }
    if (*ticket == 0) {
        *ticket = box_clock(NULL);
        checkpoint_request(storage_checkpoint(appliance->storage), is_savepoint);
        return false;
    }
    if (report->began_ns < *ticket) {
        return false;
    }
    if (report->result == CHECKPOINT_COMPLETE) {
        (void)fprintf(answer, "%s %" PRIu64 ", %.1f MiB in %.1f ms\n",
                      is_savepoint ? "savepoint" : "checkpoint", report->id,
                      (double)report->bytes / (1 << 20), (double)report->duration_ns / 1e6);
    } else {
        (void)fprintf(answer, "error: checkpoint %" PRIu64 " failed: %s\n", report->id,
                      report->reason);
    }
    return true;
}

/* Answers a request of the control socket; a stop is answered when the run has stopped. */
static bool take_request(void *context, const char *request, uint64_t *ticket, FILE *answer)
{
    struct appliance *appliance = context;
    if (strcmp(request, "status") == 0) {
        report_status(appliance, answer);
        return true;
    }
    if (strcmp(request, "checkpoint") == 0 || strcmp(request, "savepoint") == 0) {
        return answer_checkpoint(appliance, request[0] == 's', ticket, answer);
    }
    if (strcmp(request, "stop") != 0 && strcmp(request, "stop --drain") != 0) {
        (void)fprintf(answer, "error: unknown request %s\n", request);
        return true;
    }
    if (*ticket == 0) {
        *ticket = 1;
        if (appliance->phase == APPLIANCE_RUNNING) {
            begin_drain(appliance, strcmp(request, "stop --drain") == 0);
        }
    }
    if (appliance->exit_code != EXIT_DONE) {
        (void)fprintf(answer, "error: stopped: %s\n", appliance->error.text);
        return true;
    }
    if (appliance->phase != APPLIANCE_STOPPED) {
        return false;
    }
    if (appliance->final_id != 0) {
        (void)fprintf(answer, "stopped at checkpoint %" PRIu64 "\n", appliance->final_id);
    } else {
        (void)fprintf(answer, "stopped\n");
    }
    return true;
}

/* Whether the run has come to its end in order. */
static bool is_over(struct appliance *appliance)
{
    if (!all_ended(&appliance->box)) {
        return false;
    }
    if (appliance->storage == NULL) {
        return true;
    }
    if (appliance->phase != APPLIANCE_CHECKPOINTING) {
        begin_final(appliance);
    }
    return is_final_done(appliance);
}

void supervise(struct appliance *appliance, const sigset_t *signals)
{
    ASSERT(appliance != NULL);
    const struct timespec wait = {.tv_nsec = LOOP_WAIT_NS};
    for (;;) {
        const int number = sigtimedwait(signals, NULL, &wait);
        if (number > 0 && !take_signal(appliance, number)) {
            return;
        }
        take_events(appliance);
        if (appliance->socket != NULL) {
            control_socket_poll(appliance->socket, take_request, appliance);
        }
        if (appliance->storage != NULL) {
            take_reports(appliance);
            check_failing(appliance);
        }
        if (appliance->exit_code != EXIT_DONE || is_over(appliance) ||
            drained_too_long(appliance)) {
            return;
        }
        if (appliance->positions != NULL) {
            positions_poll(appliance->positions, box_clock(NULL));
        }
    }
}

void supervise_finish(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    take_events(appliance);
    if (appliance->exit_code == EXIT_DONE) {
        appliance->phase = APPLIANCE_STOPPED;
    }
    if (appliance->exit_code == EXIT_DONE && appliance->is_full) {
        (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "memory.state_mib");
        (void)error_set(&appliance->error, -ENOMEM,
                        "the state memory of core %u, %" PRIu64
                        " MiB, is used up; all that was read is answered: raise it and start again",
                        appliance->full_core, appliance->config.memory.state_mib);
        (void)appliance_fail(appliance, EXIT_RUN_FAILED);
    }
    if (appliance->socket != NULL) {
        control_socket_poll(appliance->socket, take_request, appliance);
    }
}
