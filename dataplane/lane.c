/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a lane. The order within a turn follows a record: receive, operate, transmit, so what
 * comes in can leave in the same turn. */
#include "dataplane/lane.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "dataplane/ring.h"

enum lane_state {
    LANE_RUNNING = 0,
    LANE_ENDED,  /* the job is over here; pollers go on */
    LANE_PARKED, /* failed; pollers go on */
    LANE_STOPPED,
};

struct lane {
    struct lane_config config;
    struct rte_ring *commands;
    struct rte_ring *events;
    enum lane_state state;
    struct error failure;
    uint32_t quiet_turns;
    enum job_memory memory; /* said last */
    _Alignas(CACHE_LINE_BYTES) struct lane_counters counters;
};

static struct rte_ring *make_ring(uint32_t items, uint32_t element_bytes)
{
    const ssize_t bytes = rte_ring_get_memsize_elem(element_bytes, items);
    ASSERT(bytes > 0);
    const size_t rounded = ((size_t)bytes + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
    struct rte_ring *ring = aligned_alloc(CACHE_LINE_BYTES, rounded);
    if (ring != NULL) {
        memset(ring, 0, rounded);
        const int code = rte_ring_init(ring, "lane", items, RING_F_SP_ENQ | RING_F_SC_DEQ);
        ASSERT(code == 0);
    }
    return ring;
}

int lane_create(const struct lane_config *config, struct lane **out, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(config->job != NULL && config->now != NULL);
    ASSERT(config->before_count <= LANE_POLLERS_MAX && config->after_count <= LANE_POLLERS_MAX);
    struct lane *lane = aligned_alloc(CACHE_LINE_BYTES, sizeof(*lane));
    if (lane == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a lane");
    }
    memset(lane, 0, sizeof(*lane));
    lane->config = *config;
    lane->commands = make_ring(LANE_COMMANDS_MAX, sizeof(struct lane_command));
    lane->events = make_ring(LANE_EVENTS_MAX, sizeof(struct lane_event));
    if (lane->commands == NULL || lane->events == NULL) {
        lane_destroy(lane);
        return error_set(error, -ENOMEM, "out of memory for a lane's rings");
    }
    *out = lane;
    return 0;
}

void lane_destroy(struct lane *lane)
{
    if (lane != NULL) {
        free(lane->commands);
        free(lane->events);
        free(lane);
    }
}

bool lane_command(struct lane *lane, const struct lane_command *command)
{
    ASSERT(command->kind >= LANE_COMMAND_DRAIN && command->kind <= LANE_COMMAND_CALL);
    return rte_ring_sp_enqueue_bulk_elem(lane->commands, command, sizeof(*command), 1, NULL) == 1;
}

bool lane_event(struct lane *lane, struct lane_event *out)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    return rte_ring_sc_dequeue_bulk_elem(lane->events, out, sizeof(*out), 1, NULL) == 1;
}

static void add(uint64_t *counter, uint64_t count)
{
    /* Relaxed: one writer, readers want the number whole. */
    __atomic_store_n(counter, *counter + count, __ATOMIC_RELAXED);
}

void lane_post(struct lane *lane, enum lane_event_kind kind, int64_t value)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    const struct lane_event event = {.kind = kind, .lane = lane->config.number, .value = value};
    if (rte_ring_sp_enqueue_bulk_elem(lane->events, &event, sizeof(event), 1, NULL) != 1) {
        add(&lane->counters.events_lost, 1);
    }
}

void lane_fail(struct lane *lane, const struct error *reason)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    if (lane->state == LANE_RUNNING || lane->state == LANE_ENDED) {
        lane->state = LANE_PARKED;
        lane->failure = *reason;
        lane_post(lane, LANE_EVENT_FAILED, 0);
    }
}

static void obey(struct lane *lane, const struct lane_command *command)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    switch (command->kind) {
    case LANE_COMMAND_DRAIN:
        job_lane_drain(lane->config.job, lane->config.number, command->value != 0);
        break;
    case LANE_COMMAND_STOP:
        lane->state = LANE_STOPPED;
        break;
    case LANE_COMMAND_BARRIER:
        job_lane_barrier(lane->config.job, lane->config.number, command->value);
        break;
    default:
        ASSERT(command->kind == LANE_COMMAND_CALL);
        command->call(command->context, command->value);
        break;
    }
}

static uint32_t take_commands(struct lane *lane)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    struct lane_command command;
    uint32_t count = 0;
    while (count < LANE_COMMANDS_MAX &&
           rte_ring_sc_dequeue_bulk_elem(lane->commands, &command, sizeof(command), 1, NULL) == 1) {
        obey(lane, &command);
        count++;
    }
    return count;
}

static uint32_t poll_all(const struct lane_poller *pollers, uint32_t count, uint64_t now_ns)
{
    uint32_t work = 0;
    for (uint32_t i = 0; i < count; i++) {
        work += pollers[i].poll(pollers[i].context, now_ns);
    }
    return work;
}

static void tell_memory(struct lane *lane)
{
    static const enum lane_event_kind kinds[] = {
        [JOB_MEMORY_FINE] = LANE_EVENT_STATE_FINE,
        [JOB_MEMORY_LOW] = LANE_EVENT_STATE_LOW,
        [JOB_MEMORY_FULL] = LANE_EVENT_STATE_FULL,
    };
    const enum job_memory memory = job_lane_memory(lane->config.job, lane->config.number);
    ASSERT((size_t)memory < COUNT_OF(kinds));
    if (UNLIKELY(memory != lane->memory)) {
        lane->memory = memory;
        lane_post(lane, kinds[memory], job_lane_pages_free(lane->config.job, lane->config.number));
    }
}

/* Polls the job and says what became of it. */
static uint32_t poll_job(struct lane *lane, uint64_t now_ns)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    struct job *job = lane->config.job;
    const uint32_t number = lane->config.number;
    const uint32_t work = job_lane_poll(job, number, now_ns);
    tell_memory(lane);
    const enum job_state state = job_lane_state(job, number);
    if (state == JOB_FAILED && lane->state != LANE_PARKED) {
        lane_fail(lane, job_lane_failure(job, number));
    } else if (state == JOB_ENDED && lane->state == LANE_RUNNING) {
        lane->state = LANE_ENDED;
        lane_post(lane, LANE_EVENT_ENDED, 0);
    }
    return work;
}

uint32_t lane_turn(struct lane *lane, uint64_t now_ns)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    const struct lane_config *config = &lane->config;
    uint32_t work = take_commands(lane);
    work += poll_all(config->before, config->before_count, now_ns);
    if (lane->state == LANE_RUNNING || lane->state == LANE_ENDED) {
        work += poll_job(lane, now_ns);
    }
    work += poll_all(config->after, config->after_count, now_ns);
    add(&lane->counters.turns, 1);
    add(&lane->counters.work, work);
    add(&lane->counters.idle_turns, work == 0);
    return work;
}

bool lane_is_stopped(const struct lane *lane)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    return lane->state == LANE_STOPPED;
}

static void idle(struct lane *lane, uint32_t work)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    if (work != 0) {
        lane->quiet_turns = 0;
    } else if (lane->quiet_turns < LANE_TURNS_TO_IDLE) {
        lane->quiet_turns++;
        rte_pause();
    } else if (lane->config.idle == LANE_IDLE_YIELD) {
        (void)sched_yield();
    } else {
        rte_pause();
    }
}

void lane_run(struct lane *lane)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    ASSERT(lane->config.after_count <= LANE_POLLERS_MAX);
    lane_post(lane, LANE_EVENT_STARTED, 0);
    while (lane->state != LANE_STOPPED) {
        idle(lane, lane_turn(lane, lane->config.now(lane->config.now_context)));
    }
    lane_post(lane, LANE_EVENT_STOPPED, 0);
}

const struct error *lane_failure(const struct lane *lane)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    return &lane->failure;
}

const struct lane_counters *lane_counters(const struct lane *lane)
{
    ASSERT(lane->config.before_count <= LANE_POLLERS_MAX);
    return &lane->counters;
}
