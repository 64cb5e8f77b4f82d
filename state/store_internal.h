/* SPDX-License-Identifier: Apache-2.0 */
/* The store's parts as they see each other: the catalog of retained checkpoints, the writer, and
 * reads that wait. The numbers of invariants are those of store.h. */
#pragma once

#include "state/store.h"
#include "state/store_layout.h"
#include "state/store_slots.h"

#define STORE_READ_TRIES 2U /* reads, never writes, are tried again */
#define STORE_READ_DEPTH 32U
/* More roots than a process writes without one becoming durable. */
#define STORE_GENERATION_LEAP (UINT64_C(1) << 20)
#define STORE_PIECES          2U /* manifest buffers: one being filled, one on its way */

/* A retained checkpoint. */
struct store_kept {
    struct store_entry entry;
    struct slot_list slots;
};

enum store_phase {
    STORE_PHASE_IDLE = 0,
    STORE_PHASE_EXTENTS,
    STORE_PHASE_PAYLOAD, /* waits for extents and manifest */
    STORE_PHASE_PAYLOAD_FLUSH,
    STORE_PHASE_ROOT,
    STORE_PHASE_ROOT_FLUSH,
    STORE_PHASE_REVOKE, /* a root without the failed checkpoint: invariant 6 */
    STORE_PHASE_REVOKE_FLUSH,
};

enum store_op_kind {
    STORE_OP_EXTENT = 1,
    STORE_OP_PIECE,
    STORE_OP_ROOT,
    STORE_OP_FLUSH,
};

struct store_op {
    uint32_t kind; /* enum store_op_kind; 0: not in use */
    uint32_t bytes;
    uint32_t slot;  /* extent, piece */
    uint32_t piece; /* its buffer */
    uint64_t offset;
    uint64_t tag; /* extent: the caller's */
};

struct store_writer {
    enum store_phase phase;
    bool is_failed;
    bool is_revoke_failed; /* the root that takes it back did not get through either */
    uint32_t in_flight;
    struct store_kept pending;
    struct error failure;
    struct store_op ops[STORE_IN_FLIGHT_MAX];
    uint8_t *pieces[STORE_PIECES];
    bool piece_is_busy[STORE_PIECES];
    uint32_t piece_slot;       /* of the piece being filled */
    uint32_t piece_number;     /* its number; its buffer is that modulo STORE_PIECES */
    struct store_ref previous; /* the piece before it */
};

/* Where scrubbing stands. */
struct store_scrubber {
    uint64_t checkpoint; /* 0: before the first */
    uint64_t loaded;     /* whose piece is in the buffer; 0: nobody's */
    uint32_t index;      /* the next extent of the piece */
    uint8_t *piece;
    uint8_t *extent;
};

struct store {
    struct disk *disk;
    struct store_layout layout;
    struct store_superblock superblock;
    uint32_t keep_count;
    uint32_t piece_extents_max; /* lower in tests of long manifests */
    bool is_read_only;
    bool is_uncertain;
    uint32_t damaged_count;
    struct error damaged;
    /* roots */
    struct store_root *root;  /* the buffer they are made in */
    uint64_t generation;      /* the highest ever used or seen */
    uint32_t root_place;      /* of the durable one: never written while it is the newest */
    uint32_t root_places_bad; /* a bit each: writing there failed */
    uint64_t id_max;          /* the highest checkpoint of any root */
    bool retain[STORE_CHECKPOINTS_MAX]; /* which of kept the root in work lists */
    /* slots and checkpoints */
    struct store_slots slots;
    struct slot_list free;
    struct slot_list held;    /* free once the next root is durable: invariant 3 */
    struct slot_list retired; /* writing failed: invariant 4 */
    uint32_t kept_count;
    struct store_kept kept[STORE_CHECKPOINTS_MAX]; /* ascending by id */
    struct store_writer writer;
    struct store_scrubber scrubber;
};

/* ---- store_io.c: requests that wait ---- */

/* Submits requests, as many at once as the disk takes, and waits for all.
 * requests  count of them; tags are not used
 * results   of each: bytes or -errno
 * threads   the store's owner, with nothing else in flight */
void store_io_run(struct disk *disk, const struct disk_request *requests, int64_t *results,
                  uint32_t count);

/* As store_io_run, and all must be whole.
 * returns  0 or -EIO with the reason */
int store_io_all(struct disk *disk, const struct disk_request *requests, uint32_t count,
                 struct error *error);

/* Flushes the disk.
 * returns  0 or -EIO with the reason */
int store_io_flush(struct disk *disk, struct error *error);

/* Puts into words how a request failed.
 * returns  -EIO
 * threads  any */
int store_io_explain(struct error *error, uint32_t operation, uint64_t offset, uint32_t bytes,
                     int64_t result);

/* Memory for requests: page aligned.
 * returns  NULL without memory; freed by free
 * threads  control */
uint8_t *store_io_buffer(size_t bytes);

/* ---- store_format.c ---- */

/* What the zones of a disk hold. */
struct store_probe {
    uint8_t *memory;                    /* STORE_ZONES * EXTENT_BYTES; freed by free */
    const uint8_t *zones[STORE_ZONES];  /* in memory, NULL where reading failed */
    struct store_superblock superblock; /* the one that two copies agree on */
    uint32_t copies;                    /* that agree; 0: none or too few */
    uint32_t whole;                     /* superblocks whose checksum is right */
    uint32_t formatting;                /* those that say that formatting is not over */
    uint32_t other_version;             /* of superblocks of another version, 0: none */
    uint64_t other_bytes;               /* a whole superblock's size when it differs from layout */
    bool is_zero;                       /* nothing but zeros in all zones */
    bool is_unreadable;                 /* reading failed in too many zones */
};

/* Reads the zones that layout names, flushing first.
 * returns  0, -ENOMEM, or -EIO
 * threads  control; waits for the disk */
int store_probe_read(struct disk *disk, const struct store_layout *layout, struct store_probe *out,
                     struct error *error);

/* ---- store_catalog.c ---- */

/* Finds a retained checkpoint.
 * returns  NULL when there is none */
const struct store_kept *store_catalog_find(const struct store *store, uint64_t id);

/* How many checkpoints must be read for this one, itself included. */
uint32_t store_catalog_chain(const struct store *store, uint64_t id);

/* Marks in store->retain what the next root lists.
 * pending  the checkpoint that it will have as well, or NULL
 * returns  how many are marked */
uint32_t store_catalog_retain(struct store *store, const struct store_entry *pending);

/* Drops what is not marked, adds pending, and frees slots: a root that says so is durable.
 * pending  NULL: none; its slots go to the catalog */
void store_catalog_apply(struct store *store, struct store_kept *pending);

/* Takes a checkpoint and those that build on it out; their slots are held (invariant 3). */
void store_catalog_drop(struct store *store, uint64_t id);

/* As store_catalog_drop, for a damaged one: counted, and told as the last. */
void store_catalog_damage(struct store *store, uint64_t id, const struct error *reason);

/* Makes the next root in store->root from marks and pending, with a new generation.
 * returns  bytes of a copy */
uint32_t store_catalog_root(struct store *store, const struct store_entry *pending);

/* The writes of a root's copies.
 * out      STORE_ZONES places */
void store_catalog_root_requests(const struct store *store, uint32_t bytes,
                                 struct disk_request *out);

/* The root in store->root is durable, or is not.
 * is_durable  else its place counts as bad */
void store_catalog_root_done(struct store *store, bool is_durable);

/* Writes a root of the catalog as it is, and waits.
 * returns  0 or -EIO with the reason; the store is uncertain then */
int store_catalog_sync(struct store *store, struct error *error);

/* ---- store_manifest.c ---- */

/* Takes one piece of a manifest, the last one first.
 * slot     where it stands
 * returns  0 to go on */
typedef int store_piece_fn(void *context, uint32_t slot, const struct store_piece *piece);

/* Reads and checks a piece.
 * buffer   EXTENT_BYTES
 * returns  0, -EIO or -EBADMSG with the reason
 * threads  the store's owner; waits for the disk */
int store_manifest_piece(struct store *store, const struct store_ref *ref,
                         const struct store_piece_place *place, uint8_t *buffer,
                         struct error *error);

/* Reads a manifest.
 * buffer   EXTENT_BYTES
 * returns  0, -EIO or -EBADMSG with the reason, or what visit returned
 * threads  the store's owner; waits for the disk */
int store_manifest_walk(struct store *store, const struct store_entry *entry, uint8_t *buffer,
                        store_piece_fn *visit, void *context, struct error *error);

/* Lists the slots of a checkpoint in its slots and checks that nobody else has them.
 * returns  0, -EIO or -EBADMSG with the reason; no slot is listed then
 * threads  the store's owner; waits for the disk */
int store_manifest_claim(struct store *store, struct store_kept *kept, uint8_t *buffer,
                         struct error *error);
