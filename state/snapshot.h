/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's half of a checkpoint. The other half, checkpoint.h, runs on the storage thread; between
 * them go filled staging buffers one way and orders, empty buffers and outcomes the other, by SPSC
 * rings. The lane never waits for the disk.
 *
 *     order -> (the lane sends its barrier, aligns) -> cut -> scan slices -> settled -> outcome
 *                                                       |
 *                                                  epoch + 1; the first write to a page after this
 *                                                  stages its old image
 *
 * Invariants:
 *   1. Between a cut and its last slice, a page's image at the cut is staged exactly once: by the
 *      hook when it is written first, by the scan when the scan gets there first.
 *   2. A page that has not been touched since the base checkpoint's cut is in no extent of an
 *      incremental one.
 *   3. A snapshot that cannot be finished (no buffer left for an old image) is given up: counted,
 *      reported, and the base stays what it was, so the next one holds all that this one lacks.
 *   4. One snapshot is open at a time.
 *
 * Lanes without state (arena NULL) stage facts only. */
#pragma once

#include "state/arena.h"
#include "state/extent.h"

#define SNAPSHOT_BUFFERS_MIN 4U /* a quarter of them is the mark of being low */
#define SNAPSHOT_BUFFERS_MAX (UINT32_C(1) << 20)

struct snapshot;

struct snapshot_config {
    struct arena *arena; /* NULL: a lane without state; outlives the snapshot */
    uint32_t lane;
    uint32_t buffer_count; /* staging buffers, SNAPSHOT_BUFFERS_MIN to SNAPSHOT_BUFFERS_MAX */
    uint32_t pages_a_turn; /* pages that a scan slice looks at, when the lane is busy */
    /* snapshot_memory_bytes(config) bytes, page aligned, outliving the snapshot: hugepages on a
     * live lane. The staging buffers are one range at its start (snapshot_buffers). */
    void *memory;
};

/* Read at any time from the owning lane, by others as a mix of moments. */
struct snapshot_counters {
    uint64_t cuts;
    uint64_t given_up;      /* snapshots that ran out of staging buffers (invariant 3) */
    uint64_t preimages;     /* pages staged by the hook */
    uint64_t scanned_pages; /* pages staged by the scan */
    uint64_t freed_pages;   /* items without image */
    uint64_t low_turns;     /* turns in which sources were held for want of buffers */
};

/* How a snapshot ended. */
struct snapshot_outcome {
    uint64_t id;
    bool is_durable; /* else it failed: it counts as never taken */
};

/* How much memory a snapshot of this config wants.
 * threads  any */
size_t snapshot_memory_bytes(const struct snapshot_config *config);

/* Makes a lane's half and sets the arena's pre-image hook.
 * out      freed by snapshot_destroy
 * returns  0 or -errno with the reason
 * threads  control, before the lane starts */
int snapshot_create(const struct snapshot_config *config, struct snapshot **out,
                    struct error *error);

/* Frees it; the arena's hook is taken off. NULL is fine.
 * threads  control, after lane and storage thread have stopped */
void snapshot_destroy(struct snapshot *snapshot);

/* The staging buffers, to be registered with the disk.
 * threads  control */
struct span_mut snapshot_buffers(struct snapshot *snapshot);

/* ---- The owning lane ---- */

/* Tells once that a checkpoint was ordered: the lane's sources send the barrier now, and a lane
 * whose job has ended cuts at once.
 * id       the checkpoint's, for the barrier
 * returns  whether there is news */
bool snapshot_ordered(struct snapshot *snapshot, uint64_t *id);

/* The cut, in O(1): all of the lane's state is now as the barrier found it.
 * id       as ordered
 * facts    borrowed until snapshot_is_open turns false; staged in slices */
void snapshot_cut(struct snapshot *snapshot, uint64_t id, struct span facts, uint64_t now_ns);

/* Whether a cut is being staged or waits to be settled. */
bool snapshot_is_open(const struct snapshot *snapshot);

/* Says that everything the lane wrote to the world before the cut has arrived there: only then may
 * the checkpoint become complete. May be called before the scan is over, once a cut. */
void snapshot_settle(struct snapshot *snapshot);

/* Stages one slice.
 * is_busy  the lane had other work this turn: look at pages_a_turn pages only
 * returns  work done */
uint32_t snapshot_poll(struct snapshot *snapshot, uint64_t now_ns, bool is_busy);

/* Whether staging buffers run low: sources are to be held until it turns false. */
bool snapshot_is_low(const struct snapshot *snapshot);

/* Takes the outcome of a checkpoint, oldest first.
 * returns  whether there was one */
bool snapshot_outcome(struct snapshot *snapshot, struct snapshot_outcome *out);

/* Shows the counters.
 * returns  borrowed */
const struct snapshot_counters *snapshot_counters(const struct snapshot *snapshot);

/* ---- The storage thread ---- */

enum snapshot_news_kind {
    SNAPSHOT_NEWS_CUT = 1, /* at_ns: when */
    SNAPSHOT_NEWS_EXTENT,  /* buffer is filled; give it back by snapshot_give */
    SNAPSHOT_NEWS_STAGED,  /* the last extent has been handed over and the lane has settled */
    SNAPSHOT_NEWS_GIVEN_UP,
};

struct snapshot_news {
    uint32_t kind;   /* enum snapshot_news_kind */
    uint32_t buffer; /* SNAPSHOT_NEWS_EXTENT */
    uint64_t id;
    uint64_t at_ns;
    uint64_t preimages; /* SNAPSHOT_NEWS_STAGED: how many of its pages the hook staged */
};

/* Orders a checkpoint of a lane.
 * base_id  0 for a full one; else the complete checkpoint that it builds on: the last whose
 *          outcome the lane was told as durable, or the one that was restored in place
 * returns  false when the lane's ring is full */
bool snapshot_order(struct snapshot *snapshot, uint64_t id, uint64_t base_id);

/* Takes the lane's news, oldest first.
 * returns  whether there was some */
bool snapshot_take(struct snapshot *snapshot, struct snapshot_news *out);

/* The bytes of a staging buffer, EXTENT_BYTES of them, borrowed between take and give. */
uint8_t *snapshot_buffer(struct snapshot *snapshot, uint32_t buffer);

/* Gives a staging buffer back. */
void snapshot_give(struct snapshot *snapshot, uint32_t buffer);

/* Tells the lane how a checkpoint ended. A failed one that is still open on the lane is dropped
 * there.
 * returns  false when the lane's ring is full: try again */
bool snapshot_tell(struct snapshot *snapshot, const struct snapshot_outcome *outcome);
