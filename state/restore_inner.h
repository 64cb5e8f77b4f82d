/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a restore share; nobody else includes it. */
#pragma once

#include "state/restore.h"
#include "state/shape.h"

#define RESTORE_MOVED 1 /* pages cannot go back to their numbers: copy instead */

/* A restore under way. */
struct restore {
    const struct restore_config *config;
    struct store_checkpoint checkpoint;
    struct restore_report *report;
    struct span lists[STORE_LANES_MAX]; /* of old lanes; data NULL: no state; freed at the end */
};

/* Finds the checkpoint and reads the lists of states of its lanes.
 * returns  0, -ENOENT or -EBADMSG */
int restore_open(struct restore *restore, struct error *error);

/* Frees the lists. */
void restore_close(struct restore *restore);

/* Reads pages to their numbers.
 * arenas   by old lane; empty, and emptied again by the caller when it fails
 * lane     of the checkpoint; UINT32_MAX: all
 * returns  0, RESTORE_MOVED when a page has no place, -EBADMSG */
int restore_pages(struct restore *restore, struct arena *const *arenas, uint32_t lane,
                  struct error *error);

/* Adopts an arena whose pages have been read, and brings its shapes back.
 * returns  0, -EBADMSG or -ENOMEM */
int restore_adopt(struct arena *arena, uint64_t base_id, struct error *error);

/* Empties an arena and its shapes. */
void restore_clear(struct arena *arena);

/* Copies all old lanes into the arenas that own their shards now (restore_copy.c).
 * returns  0, -EBADMSG, -ENOSPC or -errno */
int restore_copy(struct restore *restore, struct error *error);

/* The object of a name in an arena; UINT32_MAX: none. */
uint32_t restore_object(const struct arena *arena, const char *name);

/* Whether a state may be dropped. */
bool restore_may_drop(const struct restore_config *config, const char *name);

/* Whether nothing was ever put under a root, as arena_root_read gives it. */
bool restore_is_root_empty(const void *root);

/* The heap that an arena's first object is. */
struct heap *restore_heap(const struct arena *arena);
