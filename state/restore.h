/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing state back from a checkpoint. Where lanes, shards and named states are the same as when
 * it was made, pages are read back to their numbers and nothing is inserted again: the disk's
 * speed. Where they differ, each old lane is read into a scratch arena and what is wanted is copied
 * entry by entry to the lanes that own its shards now.
 *
 * Runs on control threads after operators have declared their state (all shapes exist and are
 * empty) and before lanes run. A damaged checkpoint is found before any arena is touched, or the
 * arenas are cleared again. */
#pragma once

#include "state/store.h"

struct restore_config {
    struct store *store;
    uint64_t id;
    struct arena *const *arenas; /* lane_count; NULL where a lane has no state */
    uint32_t lane_count;
    /* The lane that owns a shard of a state now. */
    uint32_t (*owner)(void *context, const char *state_name, uint32_t shard);
    void *owner_context;
    /* Names of states in the checkpoint that are dropped; those that the job still has start empty.
     */
    const char *const *drop_names;
    uint32_t drop_count;
    /* Memory for one old lane's scratch arena. */
    void *(*map)(void *context, size_t bytes);
    void (*unmap)(void *context, void *memory, size_t bytes);
    void *map_context;
};

struct restore_report {
    bool is_in_place;
    uint64_t pages;
    uint64_t entries; /* copied, when not in place */
    uint64_t bytes;
    uint64_t duration_ns;
    uint32_t states_restored;
    uint32_t states_new; /* of the job, not in the checkpoint: they start empty */
    uint32_t states_dropped;
};

/* Restores all arenas. A state of the checkpoint that the job does not have, or has with another
 * kind or size, is refused by name unless it is in drop_names.
 * now      a clock, for the report, called with owner_context; may be NULL
 * returns  0, -EBADMSG (damaged: try an older one), -ENOTSUP (a state does not fit; error->place is
 *          its name), -ENOSPC (arenas too small), or -errno
 * threads  control */
int restore_state(const struct restore_config *config, uint64_t (*now)(void *context),
                  struct restore_report *report, struct error *error);

/* Takes one lane's facts.
 * facts    borrowed for the call
 * returns  0 to go on, else -errno */
typedef int restore_facts_fn(void *context, uint32_t lane, struct span facts);

/* Reads the facts of every lane of a checkpoint, in the order of lanes.
 * returns  0, -EBADMSG, or what visit returned
 * threads  control */
int restore_facts(struct store *store, uint64_t id, restore_facts_fn *visit, void *context,
                  struct error *error);

struct heap;
struct table;
struct timers;

/* One lane's states as a checkpoint holds them, to be read: borrowed for the call. */
struct restore_view {
    uint32_t lane;
    struct heap *heap;
    struct span list; /* their descriptions (shape.h), state_count of them; the first is the heap */
    uint32_t state_count;
    struct table *const *tables;  /* by state; NULL where it is none */
    struct timers *const *timers; /* as well */
};

/* Takes one lane.
 * returns  0 to go on, else -errno */
typedef int restore_view_fn(void *context, const struct restore_view *view);

/* Shows the states of a checkpoint lane by lane, each in scratch memory.
 * config   store, id and map are used
 * returns  0, -EBADMSG, -ENOENT, or what visit returned
 * threads  control */
int restore_look(const struct restore_config *config, restore_view_fn *visit, void *context,
                 struct error *error);
