/* SPDX-License-Identifier: Apache-2.0 */
/* What the shapes (heap, table, timers) have in common for checkpoints: how one says what it is,
 * checks and takes over pages that restore has put under it, and copies a shard from its like in
 * another arena. And the list of named states that a full checkpoint carries for each lane.
 *
 *     struct shape_list_head, then state_count struct shape_description in the order of objects */
#pragma once

#include "state/arena.h"

#define SHAPE_LIST_MAGIC   UINT32_C(0x4c535450) /* "PTSL" */
#define SHAPE_LIST_VERSION 1U
#define SHAPE_HEADS_MAX    16U

struct audit;

/* One named state, as part of the checkpoint format. What does not apply to its kind is 0. */
struct shape_description {
    char name[ARENA_OBJECT_NAME_BYTES]; /* NUL-terminated */
    uint32_t kind;                      /* enum arena_object_kind */
    uint32_t value_bytes;
    uint32_t key_bytes_max;
    uint32_t key_bytes_inline;
    uint32_t head_count;
    uint32_t key_skip_bytes;
    struct {
        uint16_t offset;
        uint16_t kind; /* enum table_head_kind */
    } heads[SHAPE_HEADS_MAX];
};
static_assert(sizeof(struct shape_description) == 144, "part of the checkpoint format");

struct shape_list_head {
    uint32_t magic;
    uint32_t version;
    uint32_t page_count; /* of the lane's arena, page 0 included */
    uint32_t shard_count;
    uint32_t state_count;
    uint32_t reserved[3];
};
static_assert(sizeof(struct shape_list_head) == 32, "part of the checkpoint format");

/* A shard's content on its way to another arena. */
struct shape_copy {
    uint8_t *scratch; /* SHAPE_SCRATCH_BYTES */
    uint64_t entries; /* copied so far */
    uint32_t shard;
};

#define SHAPE_SCRATCH_BYTES (UINT32_C(16) << 20) /* the longest blob */

/* What a kind of shape can do; one constant table a kind. */
struct shape_ops {
    /* Fills in all but the name and kind. */
    void (*describe)(const void *shape, struct shape_description *out);
    /* Checks what is in the arena and sets everything that is kept outside pages by it. With
     * audit NULL the arena is known to be empty. Returns 0 or -EBADMSG. */
    int (*rebuild)(void *shape, struct audit *audit, struct error *error);
    /* Copies one shard of from, which has been checked and is not used again, into its like in
     * another arena. Returns 0, -ENOSPC or -EBADMSG (something is there already). */
    int (*copy)(void *into, void *from, struct shape_copy *copy);
};

/* Bytes of an arena's list.
 * threads  any */
size_t shape_list_bytes(const struct arena *arena);

/* Writes an arena's list.
 * into     shape_list_bytes(arena) bytes
 * threads  control path, or the owning lane */
void shape_list_write(const struct arena *arena, uint8_t *into);

/* Checks a list as read from a checkpoint.
 * bytes    8-byte aligned
 * returns  0 or -EBADMSG with the reason
 * threads  any */
int shape_list_check(struct span bytes, struct error *error);

/* The description of one of a list's states.
 * list     checked, not empty
 * returns  borrowed from list
 * threads  any */
const struct shape_description *shape_list_at(struct span list, uint32_t index);

/* Describes a state as the job has it.
 * threads  any */
void shape_describe(const struct arena *arena, uint32_t object, struct shape_description *out);
