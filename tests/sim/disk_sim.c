/* SPDX-License-Identifier: Apache-2.0 */
/* Durable pages are allocated when something but zeros is written to them. What reads see is the
 * overlay where there is one, else the durable page. */
#include "tests/sim/disk_sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES  DISK_ALIGN_BYTES
#define DEPTH_MAX   256U
#define STALL_NS    (UINT64_C(5) * NANOSECONDS_PER_S)
#define ERRNO_COUNT 3U

/* A write that is not durable. */
struct logged {
    uint64_t offset;
    uint8_t *data; /* owned */
    uint32_t bytes;
    bool is_reaped;  /* its completion was seen: the next flush covers it */
    bool is_covered; /* by the flush in flight */
};

struct flight {
    uint64_t due_ns;
    uint64_t tag;
    int64_t result;
    uint32_t operation;
    uint64_t log_number; /* of a write, from 1; 0: none */
    const uint8_t *buffer;
    uint8_t *copy; /* of what was handed over; owned */
    uint32_t bytes;
};

struct disk_sim {
    struct disk disk; /* first */
    struct disk_sim_config config;
    struct disk_sim_counters counters;
    uint64_t random;
    uint64_t now_ns;
    bool is_dead;
    bool has_overlay;
    bool has_orphans; /* the overlay has what no flush will save */
    uint8_t **durable;
    uint8_t **overlay;
    struct logged *log;
    size_t log_count;
    size_t log_capacity;
    uint64_t log_base; /* the number before that of log[0] */
    struct flight flights[DEPTH_MAX];
};

static const uint8_t zero_page[PAGE_BYTES];

static uint64_t draw(struct disk_sim *sim)
{
    /* xorshift64*, Vigna 2016 */
    sim->random ^= sim->random >> 12;
    sim->random ^= sim->random << 25;
    sim->random ^= sim->random >> 27;
    return sim->random * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t draw_below(struct disk_sim *sim, uint64_t bound)
{
    ASSERT(bound != 0);
    return (draw(sim) >> 16) % bound;
}

static size_t page_count(const struct disk_sim *sim)
{
    return (size_t)(sim->config.bytes / PAGE_BYTES);
}

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    ASSERT(memory != NULL);
    return memory;
}

/* Writes into durable pages; zeros do not make one. */
static void put(uint8_t **pages, uint64_t offset, const uint8_t *data, size_t bytes)
{
    while (bytes != 0) {
        const size_t page = (size_t)(offset / PAGE_BYTES), at = (size_t)(offset % PAGE_BYTES);
        const size_t part = bytes < PAGE_BYTES - at ? bytes : PAGE_BYTES - at;
        if (pages[page] == NULL && memcmp(data, zero_page, part) != 0) {
            pages[page] = allocate(1, PAGE_BYTES);
        }
        if (pages[page] != NULL) {
            memcpy(pages[page] + at, data, part);
        }
        offset += part;
        data += part;
        bytes -= part;
    }
}

static const uint8_t *visible(const struct disk_sim *sim, size_t page)
{
    if (sim->overlay[page] != NULL) {
        return sim->overlay[page];
    }
    return sim->durable[page] != NULL ? sim->durable[page] : zero_page;
}

/* Makes a write visible. */
static void show(struct disk_sim *sim, uint64_t offset, const uint8_t *data, size_t bytes)
{
    ASSERT(offset + bytes <= sim->config.bytes);
    sim->has_overlay = true;
    while (bytes != 0) {
        const size_t page = (size_t)(offset / PAGE_BYTES), at = (size_t)(offset % PAGE_BYTES);
        const size_t part = bytes < PAGE_BYTES - at ? bytes : PAGE_BYTES - at;
        if (sim->overlay[page] == NULL) {
            const uint8_t *before = visible(sim, page);
            sim->overlay[page] = allocate(1, PAGE_BYTES);
            memcpy(sim->overlay[page], before, PAGE_BYTES);
        }
        memcpy(sim->overlay[page] + at, data, part);
        offset += part;
        data += part;
        bytes -= part;
    }
}

static void drop_overlay(struct disk_sim *sim)
{
    for (size_t page = 0; sim->has_overlay && page < page_count(sim); page++) {
        free(sim->overlay[page]);
        sim->overlay[page] = NULL;
    }
    sim->has_overlay = false;
}

/* Notes a write that may become durable, and shows it.
 * returns  its number */
static uint64_t log_write(struct disk_sim *sim, uint64_t offset, const uint8_t *data,
                          uint32_t bytes)
{
    ASSERT(bytes != 0);
    if (sim->log_count == sim->log_capacity) {
        sim->log_capacity = sim->log_capacity * 2 + 64;
        sim->log = realloc(sim->log, sim->log_capacity * sizeof(*sim->log));
        ASSERT(sim->log != NULL);
    }
    struct logged *logged = &sim->log[sim->log_count++];
    *logged = (struct logged){.offset = offset, .bytes = bytes, .data = malloc(bytes)};
    ASSERT(logged->data != NULL);
    memcpy(logged->data, data, bytes);
    show(sim, offset, data, bytes);
    return sim->log_base + sim->log_count;
}

/* Takes out of the log what was marked by bytes == 0. Numbers of the others must stay findable, so
 * only the front shrinks. */
static void trim_log(struct disk_sim *sim)
{
    size_t gone = 0;
    while (gone < sim->log_count && sim->log[gone].bytes == 0) {
        gone++;
    }
    if (gone != 0) {
        memmove(sim->log, sim->log + gone, (sim->log_count - gone) * sizeof(*sim->log));
    }
    sim->log_count -= gone;
    sim->log_base += gone;
    if (sim->log_count == 0 && !sim->has_orphans && sim->disk.in_flight == 0) {
        drop_overlay(sim);
    }
}

static void forget(struct logged *logged)
{
    free(logged->data);
    *logged = (struct logged){.bytes = 0};
}

/* A flush ends: what it covers is durable, or, when it failed, perhaps lost for good. */
static void end_flush(struct disk_sim *sim, bool is_good)
{
    for (size_t index = 0; index < sim->log_count; index++) {
        struct logged *logged = &sim->log[index];
        if (logged->bytes == 0 || !logged->is_covered) {
            continue;
        }
        logged->is_covered = false;
        if (is_good) {
            put(sim->durable, logged->offset, logged->data, logged->bytes);
            forget(logged);
        } else if (draw_below(sim, 2) == 0) {
            sim->has_orphans = true;
            forget(logged);
        }
    }
}

/* The fault of the request that is being submitted. */
static enum disk_sim_fault choose_fault(struct disk_sim *sim)
{
    const struct disk_sim_plan *plan = &sim->config.plan;
    const uint64_t count = plan->fault_count != 0 ? plan->fault_count : 1;
    if (plan->fault_at != 0 && sim->counters.requests >= plan->fault_at &&
        sim->counters.requests < plan->fault_at + count) {
        return (enum disk_sim_fault)plan->fault;
    }
    for (uint32_t fault = 1; fault < DISK_SIM_FAULT_COUNT; fault++) {
        if (plan->odds[fault] != 0 && draw_below(sim, DISK_SIM_ODDS_ONE) < plan->odds[fault]) {
            return (enum disk_sim_fault)fault;
        }
    }
    return DISK_SIM_NONE;
}

static int64_t draw_errno(struct disk_sim *sim)
{
    static const int known[ERRNO_COUNT] = {EIO, ENOSPC, ETIMEDOUT};
    return -known[draw_below(sim, ERRNO_COUNT)];
}

/* Another place for a request that goes astray. */
static uint64_t draw_offset(struct disk_sim *sim, uint32_t bytes)
{
    return draw_below(sim, (sim->config.bytes - bytes) / PAGE_BYTES + 1) * PAGE_BYTES;
}

static void flip_bit(struct disk_sim *sim, uint8_t *data, uint32_t bytes)
{
    const uint64_t bit = draw_below(sim, (uint64_t)bytes * 8);
    data[bit / 8] ^= (uint8_t)(1U << (bit % 8));
}

static int64_t do_write(struct disk_sim *sim, const struct disk_request *request,
                        enum disk_sim_fault fault, struct flight *flight)
{
    const uint32_t sector = sim->config.sector_bytes;
    uint32_t bytes = request->bytes;
    uint64_t offset = request->offset;
    uint8_t *data = malloc(bytes);
    ASSERT(data != NULL);
    memcpy(data, request->buffer, bytes);
    flight->copy = malloc(bytes);
    ASSERT(flight->copy != NULL);
    memcpy(flight->copy, data, bytes);
    int64_t result = bytes;
    if (fault == DISK_SIM_FLIP) {
        flip_bit(sim, data, bytes);
    } else if (fault == DISK_SIM_MISDIRECT) {
        offset = draw_offset(sim, bytes);
    } else if (fault == DISK_SIM_ERROR || fault == DISK_SIM_SHORT) {
        bytes = (uint32_t)draw_below(sim, bytes / sector) * sector;
        result = fault == DISK_SIM_SHORT ? (int64_t)bytes : draw_errno(sim);
    }
    if (fault != DISK_SIM_LOST && bytes != 0) {
        flight->log_number = log_write(sim, offset, data, bytes);
    }
    free(data);
    return result;
}

static int64_t do_read(struct disk_sim *sim, const struct disk_request *request,
                       enum disk_sim_fault fault)
{
    uint32_t bytes = request->bytes;
    uint64_t offset = request->offset;
    if (fault == DISK_SIM_ERROR) {
        return draw_errno(sim);
    }
    if (fault == DISK_SIM_SHORT) {
        bytes =
            (uint32_t)draw_below(sim, bytes / sim->config.sector_bytes) * sim->config.sector_bytes;
    }
    if (fault == DISK_SIM_MISDIRECT) {
        offset = draw_offset(sim, bytes);
    }
    for (uint32_t at = 0; at < bytes; at += PAGE_BYTES) {
        const uint32_t part = bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES;
        memcpy(request->buffer + at, visible(sim, (size_t)((offset + at) / PAGE_BYTES)), part);
    }
    if (fault == DISK_SIM_FLIP && bytes != 0) {
        flip_bit(sim, request->buffer, bytes);
    }
    return bytes;
}

static int64_t do_flush(struct disk_sim *sim, enum disk_sim_fault fault)
{
    sim->counters.flushes++;
    for (size_t index = 0; index < sim->log_count; index++) {
        sim->log[index].is_covered = sim->log[index].is_reaped;
    }
    return fault == DISK_SIM_ERROR || fault == DISK_SIM_SHORT ? draw_errno(sim) : 0;
}

static bool sim_submit(struct disk *disk, const struct disk_request *request)
{
    struct disk_sim *sim = (struct disk_sim *)disk;
    if (disk->in_flight == disk->depth_max) {
        return false;
    }
    struct flight *flight = &sim->flights[disk->in_flight];
    *flight = (struct flight){.tag = request->tag,
                              .operation = request->operation,
                              .buffer = request->buffer,
                              .bytes = request->bytes,
                              .due_ns = sim->now_ns,
                              .result = -EIO};
    disk->in_flight++;
    if (sim->is_dead) {
        return true;
    }
    sim->counters.requests++;
    const enum disk_sim_fault fault = choose_fault(sim);
    sim->counters.faults[fault]++;
    const struct disk_sim_plan *plan = &sim->config.plan;
    flight->due_ns += plan->latency_ns_min +
                      draw_below(sim, plan->latency_ns_max - plan->latency_ns_min + 1) +
                      (fault == DISK_SIM_STALL ? STALL_NS : 0);
    if (request->operation == DISK_WRITE) {
        sim->counters.writes++;
        flight->result = do_write(sim, request, fault, flight);
    } else if (request->operation == DISK_READ) {
        flight->result = do_read(sim, request, fault);
    } else {
        flight->result = do_flush(sim, fault);
    }
    if (plan->crash_at == sim->counters.requests) {
        disk_sim_crash(sim);
    }
    return true;
}

/* Ends one request. The buffer of a write was only borrowed. */
static void complete(struct disk_sim *sim, uint32_t index, struct disk_completion *into)
{
    struct flight flight = sim->flights[index];
    *into = (struct disk_completion){.tag = flight.tag, .result = flight.result};
    if (flight.copy != NULL) {
        ASSERT(memcmp(flight.copy, flight.buffer, flight.bytes) == 0);
        free(flight.copy);
    }
    sim->disk.in_flight--;
    sim->flights[index] = sim->flights[sim->disk.in_flight];
    if (sim->is_dead) {
        return;
    }
    if (flight.operation == DISK_FLUSH) {
        end_flush(sim, flight.result == 0);
    } else if (flight.log_number > sim->log_base) {
        sim->log[flight.log_number - sim->log_base - 1].is_reaped = true;
    }
    trim_log(sim);
}

/* Moves time to the first completion, when it is near enough. */
static void wait_for_one(struct disk_sim *sim, uint64_t wait_ns)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t index = 0; index < sim->disk.in_flight; index++) {
        first = sim->flights[index].due_ns < first ? sim->flights[index].due_ns : first;
    }
    const uint64_t end = sim->now_ns + wait_ns;
    if (first > sim->now_ns) {
        sim->now_ns = first < end ? first : end;
    }
}

static uint32_t sim_reap(struct disk *disk, struct disk_completion *into, uint32_t max,
                         uint64_t wait_ns)
{
    struct disk_sim *sim = (struct disk_sim *)disk;
    if (disk->in_flight == 0) {
        return 0;
    }
    wait_for_one(sim, wait_ns);
    uint32_t count = 0, start = (uint32_t)draw_below(sim, disk->in_flight);
    for (uint32_t tried = 0; tried < DEPTH_MAX && count < max && disk->in_flight != 0; tried++) {
        const uint32_t index = (start + tried) % disk->in_flight;
        if (sim->flights[index].due_ns <= sim->now_ns) {
            complete(sim, index, &into[count++]);
        }
    }
    return count;
}

static int sim_register_memory(struct disk *disk, void *memory, size_t bytes)
{
    ASSERT(disk->in_flight == 0 && memory != NULL && bytes != 0);
    return 0;
}

static void sim_close(struct disk *disk)
{
    ASSERT(disk->in_flight == 0);
}

struct disk_sim *disk_sim_create(const struct disk_sim_config *config)
{
    static const struct disk_ops ops = {.submit = sim_submit,
                                        .reap = sim_reap,
                                        .register_memory = sim_register_memory,
                                        .close = sim_close};
    ASSERT(config->bytes % PAGE_BYTES == 0 && config->bytes != 0);
    ASSERT(config->depth_max != 0 && config->depth_max <= DEPTH_MAX);
    ASSERT(config->sector_bytes != 0 && PAGE_BYTES % config->sector_bytes == 0);
    struct disk_sim *sim = allocate(1, sizeof(*sim));
    sim->config = *config;
    sim->durable = allocate(page_count(sim), sizeof(*sim->durable));
    sim->overlay = allocate(page_count(sim), sizeof(*sim->overlay));
    sim->disk = (struct disk){.ops = &ops,
                              .bytes = config->bytes,
                              .identity = config->identity,
                              .depth_max = config->depth_max};
    disk_sim_restart(sim, &config->plan);
    return sim;
}

static void drop_log(struct disk_sim *sim)
{
    for (size_t index = 0; index < sim->log_count; index++) {
        free(sim->log[index].data);
    }
    sim->log_base += sim->log_count;
    sim->log_count = 0;
}

void disk_sim_destroy(struct disk_sim *sim)
{
    drop_log(sim);
    drop_overlay(sim);
    for (uint32_t index = 0; index < sim->disk.in_flight; index++) {
        free(sim->flights[index].copy);
    }
    for (size_t page = 0; page < page_count(sim); page++) {
        free(sim->durable[page]);
    }
    free(sim->log);
    free(sim->durable);
    free(sim->overlay);
    free(sim);
}

struct disk_sim *disk_sim_clone(const struct disk_sim *sim)
{
    ASSERT(sim->log_count == 0);
    struct disk_sim *clone = disk_sim_create(&sim->config);
    for (size_t page = 0; page < page_count(sim); page++) {
        if (sim->durable[page] != NULL) {
            put(clone->durable, page * PAGE_BYTES, sim->durable[page], PAGE_BYTES);
        }
    }
    return clone;
}

struct disk *disk_sim_disk(struct disk_sim *sim)
{
    return &sim->disk;
}

void disk_sim_crash(struct disk_sim *sim)
{
    ASSERT(!sim->is_dead);
    sim->is_dead = true;
    sim->counters.crashes++;
    for (uint32_t index = 0; index < sim->disk.in_flight; index++) {
        sim->flights[index].result = -EIO;
        sim->flights[index].due_ns = sim->now_ns;
    }
}

bool disk_sim_is_dead(const struct disk_sim *sim)
{
    return sim->is_dead;
}

/* What a crash leaves of one write. */
static void survive(struct disk_sim *sim, const struct logged *logged, uint64_t odds)
{
    const uint32_t survival = sim->config.plan.survival;
    const bool is_whole = draw_below(sim, 2) == 0;
    for (uint32_t at = 0; at < logged->bytes; at += sim->config.sector_bytes) {
        bool is_kept = survival == DISK_SIM_KEEP_ALL;
        if (survival == DISK_SIM_RANDOM) {
            is_kept = draw_below(sim, DISK_SIM_ODDS_ONE) < odds;
        } else if (survival == DISK_SIM_KEEP_WRITES) {
            is_kept = is_whole;
        }
        if (is_kept) {
            put(sim->durable, logged->offset + at, logged->data + at, sim->config.sector_bytes);
        }
        sim->counters.sectors_kept += is_kept;
        sim->counters.sectors_lost += !is_kept;
    }
}

/* A new run on what is there. */
static void begin_run(struct disk_sim *sim, const struct disk_sim_plan *plan)
{
    ASSERT(sim->disk.in_flight == 0);
    ASSERT(plan->latency_ns_max >= plan->latency_ns_min);
    sim->is_dead = false;
    sim->config.plan = *plan;
    sim->random = (plan->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    sim->counters.requests = 0;
}

void disk_sim_restart(struct disk_sim *sim, const struct disk_sim_plan *plan)
{
    const uint64_t odds = draw_below(sim, DISK_SIM_ODDS_ONE + 1);
    for (size_t index = 0; index < sim->log_count; index++) {
        if (sim->log[index].bytes != 0) {
            survive(sim, &sim->log[index], odds);
        }
    }
    drop_log(sim);
    drop_overlay(sim);
    sim->has_orphans = false;
    begin_run(sim, plan);
}

void disk_sim_resume(struct disk_sim *sim, const struct disk_sim_plan *plan)
{
    for (size_t index = 0; index < sim->log_count; index++) {
        sim->log[index].is_reaped = sim->log[index].bytes != 0;
        sim->log[index].is_covered = false;
    }
    begin_run(sim, plan);
}

void disk_sim_advance(struct disk_sim *sim, uint64_t now_ns)
{
    ASSERT(now_ns >= sim->now_ns);
    sim->now_ns = now_ns;
}

uint64_t disk_sim_now(const struct disk_sim *sim)
{
    return sim->now_ns;
}

const struct disk_sim_counters *disk_sim_counters(const struct disk_sim *sim)
{
    return &sim->counters;
}

void disk_sim_peek(const struct disk_sim *sim, uint64_t offset, void *into, size_t bytes)
{
    ASSERT(offset + bytes <= sim->config.bytes);
    for (size_t at = 0; at < bytes; at++) {
        const uint8_t *page = sim->durable[(offset + at) / PAGE_BYTES];
        ((uint8_t *)into)[at] = page != NULL ? page[(offset + at) % PAGE_BYTES] : 0;
    }
}

void disk_sim_poke(struct disk_sim *sim, uint64_t offset, const void *from, size_t bytes)
{
    ASSERT(offset + bytes <= sim->config.bytes);
    ASSERT(sim->log_count == 0);
    put(sim->durable, offset, from, bytes);
}

void disk_sim_reshape(struct disk_sim *sim, uint64_t bytes, uint64_t identity)
{
    ASSERT(sim->log_count == 0 && bytes % PAGE_BYTES == 0 && bytes != 0);
    const size_t before = page_count(sim), after = (size_t)(bytes / PAGE_BYTES);
    for (size_t page = after; page < before; page++) {
        free(sim->durable[page]);
        free(sim->overlay[page]);
    }
    sim->durable = realloc(sim->durable, after * sizeof(*sim->durable));
    sim->overlay = realloc(sim->overlay, after * sizeof(*sim->overlay));
    ASSERT(sim->durable != NULL && sim->overlay != NULL);
    for (size_t page = before; page < after; page++) {
        sim->durable[page] = sim->overlay[page] = NULL;
    }
    sim->config.bytes = sim->disk.bytes = bytes;
    sim->config.identity = sim->disk.identity = identity;
}
