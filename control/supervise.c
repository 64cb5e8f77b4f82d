/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop of a run: it waits for signals with a short timeout, and between them looks at
 * what the lanes say, what the control socket asks, and whether positions are to be committed. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "control/appliance_internal.h"
#include "dataplane/sink_print.h"

#define LOOP_WAIT_NS 50000000 /* how long the control loop sleeps between looks at its lanes */

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

static void begin_drain(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const struct lane_command drain = {.kind = LANE_COMMAND_DRAIN};
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
    begin_drain(appliance);
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

/* Answers a request of the control socket; a stop is answered when the run has stopped. */
static bool take_request(void *context, const char *request, uint64_t *ticket, FILE *answer)
{
    struct appliance *appliance = context;
    if (strcmp(request, "status") == 0) {
        report_status(appliance, answer);
        return true;
    }
    if (strcmp(request, "stop") != 0) {
        (void)fprintf(answer, "error: unknown request %s\n", request);
        return true;
    }
    if (*ticket == 0) {
        *ticket = 1;
        if (appliance->phase == APPLIANCE_RUNNING) {
            begin_drain(appliance);
        }
    }
    if (appliance->phase != APPLIANCE_STOPPED) {
        return false;
    }
    (void)fprintf(answer, "stopped\n");
    return true;
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
        if (appliance->exit_code != EXIT_DONE || all_ended(&appliance->box) ||
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
    if (appliance->socket != NULL) {
        control_socket_poll(appliance->socket, take_request, appliance);
    }
}
