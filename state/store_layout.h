/* SPDX-License-Identifier: Apache-2.0 */
/* What stands where on a formatted disk, and in which bytes. Only the store and its tests see this.
 *
 *     slot 0             zone 0: superblock at 0, roots at 64 KiB: 4 places of 32 KiB
 *     slot n/3, 2n/3     zones 1 and 2, the same bytes but for the superblock's zone number
 *     slot n-1           zone 3
 *     all others         extents and manifest pieces, EXTENT_BYTES each
 *
 * A root record lists every retained checkpoint; record g stands in place g mod 4 of all four
 * zones. So a manifest is a chain of pieces from the last to the first, each with the checksum of
 * the one before; the root's entry has that of the last.
 *
 * Everything that is read here may be damaged: the checks look at bytes and never assert. Numbers
 * are little-endian, as the machine's. */
#pragma once

#include "state/checksum.h"
#include "state/store.h"

#define STORE_MAGIC_SUPERBLOCK UINT64_C(0x4b434f54534e4550) /* "PENSTOCK" */
#define STORE_MAGIC_ROOT       UINT64_C(0x544f4f5253504e50) /* "PNPSROOT" */
#define STORE_MAGIC_PIECE      UINT32_C(0x4d545350)         /* "PSTM" */

#define STORE_ZONES          4U
#define STORE_PLACES         4U
#define STORE_AGREE          2U /* copies that must agree */
#define STORE_BLOCK_BYTES    DISK_ALIGN_BYTES
#define STORE_ROOTS_OFFSET   (UINT32_C(64) << 10)
#define STORE_ROOT_BYTES_MAX (UINT32_C(32) << 10)
#define STORE_SLOTS_MIN      16U
#define STORE_SLOTS_MAX      (UINT32_MAX - 1U)
#define STORE_NUMBER_MAX     (UINT64_C(1) << 62) /* generations and ids stay below */
#define STORE_SLOT_NONE      0U                  /* slot 0 is a zone, so it never holds an extent */

static_assert(STORE_ROOTS_OFFSET + STORE_PLACES * STORE_ROOT_BYTES_MAX <= EXTENT_BYTES, "a zone");

struct store_layout {
    uint64_t bytes; /* as formatted: whole slots */
    uint32_t slot_count;
    uint32_t zone_slots[STORE_ZONES]; /* ascending */
};

enum store_stage {
    STORE_STAGE_FORMATTING = 1,
    STORE_STAGE_FORMATTED,
};

/* The start of a block whose rest is zero. */
struct store_superblock {
    struct checksum sum; /* of the rest of the block */
    uint64_t magic;
    uint32_t version;
    uint32_t zone;
    uint64_t store_id;
    uint64_t bytes;
    uint64_t identity; /* of the disk */
    uint64_t host_identity;
    uint32_t stage; /* enum store_stage */
    uint32_t slot_bytes;
    uint32_t root_bytes_max;
    uint32_t reserved[5];
};
static_assert(sizeof(struct store_superblock) == 96, "part of the checkpoint format");

/* Where something is and what its bytes sum to. */
struct store_ref {
    struct checksum sum;
    uint32_t slot;
    uint32_t bytes; /* a multiple of STORE_BLOCK_BYTES */
};
static_assert(sizeof(struct store_ref) == 24, "part of the checkpoint format");

struct store_entry {
    struct store_checkpoint about;
    struct store_ref manifest; /* its last piece */
    uint32_t piece_count;
    uint32_t reserved[7];
};
static_assert(sizeof(struct store_checkpoint) == 136, "part of the checkpoint format");
static_assert(sizeof(struct store_entry) == 192, "part of the checkpoint format");

struct store_root {
    struct checksum sum; /* of the rest of bytes */
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* of this head and the entries */
    uint64_t store_id;
    uint64_t generation; /* above 0; the newest is the one that counts */
    uint64_t id_max;     /* the highest checkpoint that ever was */
    uint32_t entry_count;
    uint32_t reserved[17];
    struct store_entry entries[]; /* ascending by id */
};
static_assert(sizeof(struct store_root) == 128, "part of the checkpoint format");
static_assert(sizeof(struct store_root) + STORE_CHECKPOINTS_MAX * sizeof(struct store_entry) <=
                  STORE_ROOT_BYTES_MAX,
              "a root record fits its place");

/* One line of a manifest. */
struct store_extent {
    struct store_ref ref;
    uint32_t lane;
    uint32_t kind; /* enum extent_kind */
};
static_assert(sizeof(struct store_extent) == 32, "part of the checkpoint format");

struct store_piece {
    uint32_t magic;
    uint32_t version;
    uint64_t store_id;
    uint64_t checkpoint;
    uint32_t number; /* from 0 */
    uint32_t extent_count;
    struct store_ref previous; /* piece number - 1; zeros in piece 0 */
    uint32_t reserved[2];
    struct store_extent extents[];
};
static_assert(sizeof(struct store_piece) == 64, "part of the checkpoint format");

#define STORE_PIECE_EXTENTS_MAX                                                                    \
    ((EXTENT_BYTES - sizeof(struct store_piece)) / sizeof(struct store_extent))

/* Lays a store over a disk of so many bytes.
 * returns  false when it is too small or too big
 * threads  any */
bool store_layout_init(struct store_layout *layout, uint64_t bytes);

/* Whether a slot may hold an extent or a piece.
 * threads  any */
bool store_layout_is_data(const struct store_layout *layout, uint32_t slot);

/* Where a slot begins.
 * threads  any */
uint64_t store_layout_slot(uint32_t slot);

/* Where the root record of a place begins in a zone.
 * threads  any */
uint64_t store_layout_root(const struct store_layout *layout, uint32_t zone, uint32_t place);

/* Whether a reference points at a data slot and has possible bytes.
 * threads  any */
bool store_layout_ref_check(const struct store_layout *layout, const struct store_ref *ref);

/* Fills a block with the superblock of a zone, checksum included.
 * block    STORE_BLOCK_BYTES
 * fields   zone and sum are set here
 * threads  any */
void store_superblock_fill(uint8_t *block, const struct store_superblock *fields, uint32_t zone);

/* Reads the superblock of a zone.
 * block    STORE_BLOCK_BYTES
 * returns  false when it is not one of this version, is damaged, or is another zone's
 * threads  any */
bool store_superblock_check(const uint8_t *block, uint32_t zone, struct store_superblock *out);

/* Tells what a disk seems to hold, from its first bytes.
 * start    the first EXTENT_BYTES
 * returns  a name for people, or NULL when nothing is known there
 * threads  any */
const char *store_foreign_name(const uint8_t *start);

/* Checks one copy of a root record.
 * copy      STORE_ROOT_BYTES_MAX bytes
 * returns   the record inside copy, or NULL when it is damaged, of another store or place
 * threads   any */
const struct store_root *store_root_check(const uint8_t *copy, uint64_t store_id, uint32_t place);

/* What was found in the zones. */
struct store_root_choice {
    const struct store_root *root; /* the newest with enough copies, or NULL */
    uint64_t generation_max;       /* of any whole copy, agreed or not */
};

/* Chooses the root that counts.
 * zones     STORE_ZONES of EXTENT_BYTES each, as read; NULL where reading failed
 * threads   any */
struct store_root_choice store_root_choose(const uint8_t *const *zones, uint64_t store_id);

/* Sets the checksum of a root record that is otherwise filled in.
 * returns  the bytes to write, a multiple of STORE_BLOCK_BYTES
 * threads  any */
uint32_t store_root_seal(struct store_root *root);

/* Where and of whom a manifest piece should be. */
struct store_piece_place {
    uint64_t store_id;
    uint64_t checkpoint;
    uint32_t number;
};

/* Checks a manifest piece's structure and its references.
 * piece    bytes of it, at most EXTENT_BYTES
 * returns  false when it cannot be that piece
 * threads  any */
bool store_piece_check(const struct store_layout *layout, const uint8_t *piece, uint32_t bytes,
                       const struct store_piece_place *place);

/* The bytes of a piece that must be written; those behind its last line are zeroed.
 * threads  any */
uint32_t store_piece_seal(struct store_piece *piece);
