/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a lane's snapshot share; nobody else includes it. The struct and its rings lie
 * in the caller's memory behind the staging buffers. Which thread writes a field is said by its
 * group; the storage thread sees rings and buffers only. */
#pragma once

#include "state/snapshot.h"

#define SNAPSHOT_OUTCOMES_MAX 8U
#define SNAPSHOT_BUFFER_NONE  UINT32_MAX
#define SNAPSHOT_RING_SPARE   32U /* news and orders beside the buffers */

struct rte_ring;

enum snapshot_phase {
    SNAPSHOT_IDLE = 0,
    SNAPSHOT_ORDERED, /* waits for its cut */
    SNAPSHOT_STAGING,
    SNAPSHOT_SETTLING, /* everything is staged, the world has not answered yet */
};

/* From the storage thread to the lane: an order (base_id) or an outcome (is_durable). */
struct snapshot_order {
    uint64_t id;
    uint64_t base_id;
    uint32_t is_outcome;
    uint32_t is_durable;
};

/* A staging buffer that is being filled. */
struct snapshot_open {
    uint32_t buffer; /* SNAPSHOT_BUFFER_NONE: none */
    uint32_t item_count;
    uint32_t image_count;
    uint32_t bytes;
};

/* Bytes on their way into extents, facts or states. */
struct snapshot_bytes {
    const uint8_t *data;
    uint32_t bytes;
    uint32_t done;
    uint32_t kind; /* enum extent_kind */
};

struct snapshot {
    /* const after create */
    struct snapshot_config config;
    struct rte_ring *orders;
    struct rte_ring *empties;
    struct rte_ring *news;
    uint32_t reserve; /* buffers that the scan leaves to the hook */
    uint32_t low;     /* fewer than this: sources are to be held */

    /* the lane's */
    uint32_t phase; /* enum snapshot_phase */
    bool is_told;   /* the order, to the lane */
    bool is_settled;
    uint64_t id;
    uint64_t base_id;
    uint64_t now_ns;        /* of the last call that knew it */
    uint64_t cut_id;        /* of cut_epoch */
    uint64_t cut_preimages; /* counters.preimages at the cut */
    uint32_t cut_epoch;
    uint32_t base_epoch;
    uint32_t page; /* the scan goes on here */
    uint32_t page_end;
    uint32_t numbers[EXTENT_STATES + 1]; /* extents so far, by kind */
    struct snapshot_bytes facts;
    struct snapshot_bytes states;
    struct snapshot_open pages_open;
    struct snapshot_open bytes_open;
    uint8_t *list; /* where the list of states is written before it is staged */
    uint32_t *free;
    uint32_t free_count;
    uint32_t outcome_first;
    uint32_t outcome_count;
    struct snapshot_outcome outcomes[SNAPSHOT_OUTCOMES_MAX];
    struct snapshot_counters counters;
};

/* Takes in what the storage thread has given back. */
void snapshot_refill(struct snapshot *snapshot);

/* Stages one page.
 * view     as it was at the cut
 * reserve  leave so many buffers free
 * returns  false when there is no buffer for it */
bool snapshot_stage_page(struct snapshot *snapshot, const struct arena_page_view *view,
                         uint32_t reserve);

/* Stages bytes, at most bytes_max of them.
 * returns  how many; fewer than could be means that there is no buffer */
uint32_t snapshot_stage_bytes(struct snapshot *snapshot, struct snapshot_bytes *from,
                              uint32_t bytes_max);

/* Hands the open pages extent over, if there is one. */
void snapshot_close_pages(struct snapshot *snapshot);

/* Takes open extents back without handing them over. */
void snapshot_discard(struct snapshot *snapshot);

/* Tells the storage thread; its ring has room for all that can be told. */
void snapshot_say(struct snapshot *snapshot, const struct snapshot_news *news);
