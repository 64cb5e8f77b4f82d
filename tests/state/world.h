/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes with state of every shape, a random workload on them, a checkpoint coordinator on a store
 * in memory, all in one thread on a made-up clock. At each lane's cut everything that its keys hold
 * is written down through the public reading functions, key by key, so that a restored world can be
 * compared whatever its lanes and pages are. Timers are kept in a list of the harness's own. */
#pragma once

#include "state/checkpoint.h"
#include "state/restore.h"
#include "state/table.h"
#include "state/timers.h"
#include "tests/state/fake_store.h"
#include "tests/state/fixture.h"

#define WORLD_LANES_MAX  4U
#define WORLD_SHARDS     16U
#define WORLD_KEYS       260U
#define WORLD_TIMERS_MAX (190U * WORLD_SHARDS)

/* What a key of the first table holds. */
struct world_value {
    uint64_t counter;
    uint64_t blob;
    uint64_t block;
    struct {
        uint64_t words[3 + 2 * 2]; /* a list_head with two marks */
    } list;
    struct {
        uint64_t words[2]; /* an ordered_head */
    } map;
};

struct world_timer {
    struct timer_handle handle; /* sequence 0: none */
    uint32_t key;
    uint32_t bytes; /* of payload */
};

struct world_dump {
    uint8_t *bytes; /* NULL: the key is not there */
    size_t count;
};

/* What lanes held at their cuts. */
struct world_cut {
    struct world_dump cards[WORLD_KEYS];
    uint64_t counts[WORLD_KEYS];
    struct world_timer timers[WORLD_TIMERS_MAX];
};

struct world_lane {
    void *memory;
    struct arena *arena;
    struct heap *heap;
    struct table *cards;
    struct table *counts;
    struct timers *timers;
    struct snapshot *snapshot;
    void *staging;
    size_t staging_bytes;
    uint64_t ordered; /* the checkpoint that waits for its cut here */
    uint64_t facts[2];
};

struct world {
    struct fixture random; /* only its random source is used */
    struct store *store;   /* borrowed */
    struct checkpoint *checkpoint;
    uint32_t lane_count;
    uint64_t now_ns;
    struct world_lane lanes[WORLD_LANES_MAX];
    struct snapshot *snapshots[WORLD_LANES_MAX];
    uint64_t counts[WORLD_KEYS]; /* what the second table must hold */
    struct world_timer timers[WORLD_TIMERS_MAX];
    uint64_t wait_ns;     /* passed to the coordinator */
    struct world_cut cut; /* of each lane the last one */
};

struct world_config {
    struct store *store;
    uint32_t lane_count;
    uint32_t page_count; /* of each arena; 0: 6000 */
    uint32_t buffer_count;
    uint32_t full_every;
    uint64_t first_id;
    uint64_t base_id; /* 0 unless restored in place */
    uint64_t seed;
    uint32_t counts_bytes; /* of values of the second table; 0: 8 */
};

/* Makes a world of empty lanes; world_close undoes it. The coordinator is made by world_start. */
void world_open(struct world *world, const struct world_config *config);

/* Makes the coordinator. */
void world_start(struct world *world, const struct world_config *config);

/* Frees everything but the store. */
void world_close(struct world *world);

/* Does random things to random keys. */
void world_run(struct world *world, uint32_t steps);

/* Lets the coordinator and the lanes do a turn, with updates in between; a lane that was ordered to
 * cuts some turns later. */
void world_turn(struct world *world, uint32_t steps);

/* One lane's part of a turn, without the coordinator. */
void world_lane_turn(struct world *world, uint32_t number, uint32_t steps);

/* Takes a checkpoint while updates go on.
 * returns  its report */
struct checkpoint_report world_checkpoint(struct world *world, uint32_t steps_a_turn);

/* Restores a checkpoint into this world, which is empty.
 * returns  what restore_state returned */
int world_restore(struct world *world, uint64_t id, struct restore_report *report,
                  struct error *error);

/* Compares with what was written down at cuts; takes timers and counts over as one's own. */
void world_compare(struct world *world, const struct world_cut *with);

/* Makes a second copy of what was written down; freed by world_cut_free. */
void world_cut_copy(const struct world_cut *from, struct world_cut *into);

/* Frees the bytes. */
void world_cut_free(struct world_cut *cut);

/* Walks all shapes with their own checks. */
void world_check(struct world *world);

/* Pops all timers and compares with the list, which is empty then. */
void world_drain_timers(struct world *world);

/* Drops every key and pops every timer, whatever they hold. */
void world_use(struct world *world);

/* The lane that owns a shard. */
uint32_t world_owner(void *context, const char *name, uint32_t shard);

/* Scratch memory for a restore, as restore_config wants it. */
void *world_map(void *context, size_t bytes);

/* Undoes world_map. */
void world_unmap(void *context, void *memory, size_t bytes);
