/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory, for simulation: the other body of state/disk.h. Writes that were not flushed
 * are lost, torn between sectors or kept at a crash, by seed; requests fail, come short, go astray,
 * flip bits and take long, at a chosen index or by chance. Completions come in any order, on
 * virtual time.
 *
 *     write -> log (and what reads see) -> flush -> durable
 *                    |
 *                  crash: each sector of each write in the log survives, or does not
 *
 * A failed flush is final, as on Linux: part of what it covered is still read but never becomes
 * durable. A dead disk answers every request with an error, so that the code under test can be led
 * out before disk_sim_restart. A write's buffer is compared with its copy when it completes: who
 * borrowed it must not have changed it. Single-threaded; allocates freely. */
#pragma once

#include "state/disk.h"

#define DISK_SIM_ODDS_ONE 65536U /* odds are out of this many */

enum disk_sim_fault {
    DISK_SIM_NONE = 0,
    DISK_SIM_ERROR,     /* -EIO or another; of a write some sectors are done all the same */
    DISK_SIM_SHORT,     /* fewer bytes than asked for */
    DISK_SIM_FLIP,      /* one bit of what is written, or of what is read, is wrong */
    DISK_SIM_MISDIRECT, /* a write goes elsewhere, a read comes from elsewhere */
    DISK_SIM_LOST,      /* a write is said to be done and is not */
    DISK_SIM_STALL,     /* done, seconds later */
    DISK_SIM_FAULT_COUNT
};

/* What becomes of un-flushed sectors at a crash. */
enum disk_sim_survival {
    DISK_SIM_RANDOM = 0, /* each by a coin whose odds are drawn per crash */
    DISK_SIM_KEEP_NONE,
    DISK_SIM_KEEP_ALL,
    DISK_SIM_KEEP_WRITES, /* whole writes by a coin */
};

/* What a run has to expect. */
struct disk_sim_plan {
    uint64_t seed;
    uint64_t latency_ns_min;
    uint64_t latency_ns_max;
    uint64_t crash_at; /* the disk dies while this request is being submitted, from 1; 0: never */
    uint64_t fault_at; /* this request has fault; 0: none */
    uint64_t fault_count;                /* and so many from it on; 0 counts as 1 */
    uint32_t fault;                      /* enum disk_sim_fault */
    uint32_t survival;                   /* enum disk_sim_survival */
    uint32_t odds[DISK_SIM_FAULT_COUNT]; /* of each fault, of any request */
};

struct disk_sim_config {
    uint64_t bytes;
    uint64_t identity;
    uint32_t depth_max;
    uint32_t sector_bytes; /* what is written whole or not at all: 512 or 4096 */
    struct disk_sim_plan plan;
};

struct disk_sim_counters {
    uint64_t requests;
    uint64_t writes;
    uint64_t flushes;
    uint64_t faults[DISK_SIM_FAULT_COUNT];
    uint64_t crashes;
    uint64_t sectors_lost; /* at crashes */
    uint64_t sectors_kept; /* un-flushed ones, at crashes */
};

struct disk_sim;

/* Makes a disk full of zeros.
 * returns  freed by disk_sim_destroy
 * threads  one */
struct disk_sim *disk_sim_create(const struct disk_sim_config *config);

/* Frees it with its content.
 * threads  one */
void disk_sim_destroy(struct disk_sim *sim);

/* Makes another disk with the same durable content; nothing may be un-flushed.
 * returns  freed by disk_sim_destroy
 * threads  one */
struct disk_sim *disk_sim_clone(const struct disk_sim *sim);

/* The disk to hand to the code under test; its close does nothing.
 * threads  one */
struct disk *disk_sim_disk(struct disk_sim *sim);

/* Dies now, as at crash_at.
 * threads  one */
void disk_sim_crash(struct disk_sim *sim);

/* Whether it has died.
 * threads  one */
bool disk_sim_is_dead(const struct disk_sim *sim);

/* Comes back after a crash, or as after a clean stop that may not have flushed; nothing is in
 * flight. Counting of requests begins again.
 * plan     of the next run
 * threads  one */
void disk_sim_restart(struct disk_sim *sim, const struct disk_sim_plan *plan);

/* The process that used it has been killed and starts again, the disk goes on: all that was handed
 * over is seen, and what was not flushed is still not durable.
 * plan     of the next run
 * threads  one */
void disk_sim_resume(struct disk_sim *sim, const struct disk_sim_plan *plan);

/* Virtual time: never moves back. Waiting in a reap moves it on.
 * threads  one */
void disk_sim_advance(struct disk_sim *sim, uint64_t now_ns);

/* The virtual time.
 * threads  one */
uint64_t disk_sim_now(const struct disk_sim *sim);

/* Counts since creation; requests since the last restart.
 * threads  one */
const struct disk_sim_counters *disk_sim_counters(const struct disk_sim *sim);

/* Reads the durable content behind the back of the code under test.
 * threads  one */
void disk_sim_peek(const struct disk_sim *sim, uint64_t offset, void *into, size_t bytes);

/* Changes the durable content behind its back: rot, swapped copies, another's data.
 * threads  one */
void disk_sim_poke(struct disk_sim *sim, uint64_t offset, const void *from, size_t bytes);

/* Cuts the disk short or lets it grow (with zeros), or makes it another device.
 * threads  one */
void disk_sim_reshape(struct disk_sim *sim, uint64_t bytes, uint64_t identity);
