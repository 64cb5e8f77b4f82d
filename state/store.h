/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints on one disk: a formatted file or raw block device of preallocated, once-written
 * slots.
 *
 *     superblock copies | root record copies (4 per place, places taken in turn) | slots
 *     slot = EXTENT_BYTES: an extent of a lane, or a piece of a manifest
 *     root record -> manifest (a list of extents: slot, bytes, lane, checksum) -> extents
 *                 -> base checkpoint, for an incremental one
 *
 * Invariants:
 *   1. Slots that a retained checkpoint or its chain of bases refers to are never written.
 *   2. A checkpoint exists once its root is valid in at least two copies; the root is written only
 *      after all of its extents and its manifest are durable.
 *   3. Slots of a superseded checkpoint are reused only after the next root is durable.
 *   4. Every completion is read; a short or failed write, or a failed flush, fails the checkpoint;
 *      a slot whose write failed is not used again before the next opening, nothing is retried in
 *      place. Checkpoints before it stay whole.
 *   5. A checksum (XXH3, 128 bits) stands in the parent: manifest for extents, root for manifest,
 *      the root's own in itself. What does not match is not used.
 *   6. A checkpoint that was told as failed, or was passed over at opening or reading as damaged,
 *      does not come back: a root without it is made durable before that is told. Where the disk
 *      refuses that too, store_is_uncertain says so.
 *
 * One process at a time: the disk is locked while it is open. */
#pragma once

#include "state/disk.h"
#include "state/extent.h"

#define STORE_VERSION         1U
#define STORE_KEEP_MIN        2U
#define STORE_KEEP_MAX        64U
#define STORE_CHAIN_MAX       64U /* checkpoints from a full one on, itself included */
#define STORE_LANES_MAX       64U /* of a checkpoint: more are neither written nor restored */
#define STORE_LABEL_BYTES     64U
#define STORE_IN_FLIGHT_MAX   64U
#define STORE_CHECKPOINTS_MAX (STORE_KEEP_MAX + STORE_CHAIN_MAX)

struct store;

/* What a checkpoint says about itself; part of its root record. */
struct store_checkpoint {
    uint64_t id;       /* grows by one; never 0 */
    uint64_t base_id;  /* 0: full */
    uint64_t began_ms; /* since 1970 */
    uint64_t duration_ns;
    uint64_t bytes; /* of extents */
    uint32_t extent_count;
    uint32_t lane_count;
    uint32_t shard_count;
    uint32_t is_savepoint; /* made by stop or by hand: kept until pruned by hand */
    uint64_t plan_fingerprint;
    uint64_t host_identity;
    char label[STORE_LABEL_BYTES]; /* the job's name, for people */
};

struct store_format {
    uint64_t host_identity;
    uint64_t store_id; /* 0: drawn at random; simulations give one */
    bool force;        /* overwrite what is there even if it is no Penstock store */
};

struct store_config {
    struct disk *disk;   /* borrowed; outlives the store */
    uint32_t keep_count; /* complete checkpoints kept, STORE_KEEP_MIN to STORE_KEEP_MAX */
    bool is_read_only;   /* for looking: nothing is mended, begun or pruned */
    bool is_moved; /* accept a store that was copied from another device, make it this one's */
};

/* Why a store could not be opened or a checkpoint not be read, for exit codes and policies. */
enum store_fault {
    STORE_FAULT_NONE = 0,
    STORE_FAULT_NOT_FORMATTED, /* nothing of ours is there */
    STORE_FAULT_FOREIGN,       /* something else is there */
    STORE_FAULT_VERSION,
    STORE_FAULT_DEVICE, /* copied from another device */
    STORE_FAULT_DAMAGED,
    STORE_FAULT_IO,
};

/* Formats a disk: writes every slot once, then the superblock. Refuses a disk that holds something
 * else, unless told.
 * progress  called now and then with a share of 0 to 1; may be NULL
 * returns   0 or -errno with the reason
 * threads   control; waits for the disk */
int store_format(struct disk *disk, const struct store_format *format,
                 void (*progress)(void *context, double share), void *context, struct error *error);

/* Opens a formatted disk: reads roots and manifests, and finds which slots are free. Damaged
 * checkpoints are left out and told through store_damaged. A root of what was found is written, so
 * a disk that cannot be written opens for reading only.
 * out      freed by store_close
 * fault    set when it fails; may be NULL
 * returns  0 or -errno with the reason
 * threads  control; waits for the disk */
int store_open(const struct store_config *config, struct store **out, enum store_fault *fault,
               struct error *error);

/* Frees it; nothing may be in flight. The disk stays open. NULL is fine.
 * threads  control */
void store_close(struct store *store);

/* Lists complete checkpoints, newest first, those that are only bases of others included.
 * into     max places
 * returns  how many there are; at most max are filled in
 * threads  as the store's owner */
uint32_t store_list(const struct store *store, struct store_checkpoint *into, uint32_t max);

/* Finds a complete checkpoint.
 * out      filled in when there is one
 * returns  whether there is
 * threads  as the store's owner */
bool store_find(const struct store *store, uint64_t id, struct store_checkpoint *out);

/* The smallest id that a new checkpoint may have: above all that ever were in a root that was seen.
 * threads  as the store's owner */
uint64_t store_next_id(const struct store *store);

/* How many checkpoints were found damaged when it was opened or scrubbed; reason of the last one.
 * threads  as the store's owner */
uint32_t store_damaged(const struct store *store, struct error *reason);

/* Slots that a new checkpoint can take now.
 * threads  as the store's owner */
uint64_t store_free_slots(const struct store *store);

/* ---- Writing: one checkpoint at a time, never waiting ---- */

enum store_state {
    STORE_IDLE = 0,
    STORE_WRITING,    /* begun; takes extents */
    STORE_COMMITTING, /* flush, manifest, flush, root, flush */
    STORE_DURABLE,    /* told once by store_poll, then idle */
    STORE_FAILED,     /* told once by store_poll when nothing is in flight any more, then idle */
};

/* Begins a checkpoint.
 * checkpoint  copied; id above all others, base complete and retained, or 0
 * returns     0, -ENOSPC when too few slots are free for anything, -EBUSY
 * threads     storage thread */
int store_begin(struct store *store, const struct store_checkpoint *checkpoint,
                struct error *error);

/* Writes an extent to a free slot; its checksum is taken here.
 * extent   extent_bytes(extent) bytes, borrowed until its tag comes back
 * returns  0, -EAGAIN when the disk is full of requests, -ENOSPC (abort then), -EIO after a failure
 *          that store_poll tells
 * threads  storage thread */
int store_append(struct store *store, const uint8_t *extent, uint64_t tag);

/* Says that the last extent was appended and how long it took.
 * threads  storage thread */
void store_commit(struct store *store, uint64_t duration_ns);

/* Gives the checkpoint up; STORE_FAILED follows once nothing is in flight.
 * threads  storage thread */
void store_abort(struct store *store);

/* Does one step: reaps completions and goes on with a commit.
 * tags     where the tags of extents whose buffers are free again go; tag_max places, at least 1
 * tag_count  how many
 * wait_ns  how long to wait for the disk when there is nothing else to do
 * returns  the state; DURABLE and FAILED are returned once
 * threads  storage thread */
enum store_state store_poll(struct store *store, uint64_t *tags, uint32_t tag_max,
                            uint32_t *tag_count, uint64_t wait_ns);

/* Why the last checkpoint failed.
 * threads  storage thread */
const struct error *store_failure(const struct store *store);

/* Whether a checkpoint that was told as failed may yet be found after a crash, since the disk took
 * neither its root nor the next (invariant 6). The next durable checkpoint ends it.
 * threads  storage thread */
bool store_is_uncertain(const struct store *store);

/* Checks one retained extent against its checksum, when the store is idle: call it now and then.
 * It waits for one read, and after a fault for a root to be written.
 * returns  false when a fault was found (store_damaged tells it): that checkpoint and those that
 *          build on it are no longer listed
 * threads  storage thread */
bool store_scrub(struct store *store);

/* ---- Reading ---- */

/* Takes one extent of a checkpoint.
 * extent   borrowed for the call, checked (checksum and extent_check)
 * returns  0 to go on, else -errno, which ends the reading with it */
typedef int store_extent_fn(void *context, const struct store_checkpoint *checkpoint,
                            const uint8_t *extent);

/* Reads a checkpoint: the extents of the full one at its root first, then of each that builds on
 * it, itself last; within one of them in any order. Many reads are in flight at once.
 * lane     only extents of this lane, UINT32_MAX: all
 * kind     only extents of this kind, 0: both
 * returns  0, -EIO or -EBADMSG (damaged) with the reason, -ENOENT, or what visit returned. Damaged
 *          ones, and those that build on them, are no longer listed (but when read only)
 * threads  as the store's owner; waits for the disk */
int store_read(struct store *store, uint64_t id, uint32_t lane, uint32_t kind,
               store_extent_fn *visit, void *context, struct error *error);

/* Drops a checkpoint and those that build on it; a new root is written and flushed.
 * returns  0 or -errno
 * threads  as the store's owner; waits for the disk */
int store_prune(struct store *store, uint64_t id, struct error *error);
