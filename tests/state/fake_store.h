/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint store in memory with the interface of state/store.h, for tests of what stands on it:
 * extents are copied when a poll completes them, not when they are appended, so a buffer that is
 * written too early shows. Faults are set through fields. */
#pragma once

#include "state/store.h"

#define FAKE_CHECKPOINTS_MAX 256U
#define FAKE_IN_FLIGHT_MAX   64U

struct fake_extent {
    uint8_t *bytes; /* EXTENT_BYTES */
};

struct fake_checkpoint {
    struct store_checkpoint entry;
    struct fake_extent *extents;
    uint32_t extent_count;
    uint32_t extent_max;
    bool is_complete;
};

struct fake_flight {
    const uint8_t *extent;
    uint64_t tag;
};

struct store {
    struct fake_checkpoint checkpoints[FAKE_CHECKPOINTS_MAX];
    uint32_t count;
    uint32_t phase; /* enum store_state */
    uint32_t flight_count;
    struct fake_flight flights[FAKE_IN_FLIGHT_MAX];
    struct error failure;
    /* faults and limits, set by tests */
    uint32_t in_flight_max;   /* appended at once, then -EAGAIN */
    uint32_t completions_max; /* a poll completes so many */
    uint32_t commit_polls;    /* a commit takes so many polls */
    uint32_t slots_left;      /* then -ENOSPC */
    uint32_t fail_append_in;  /* the n-th append from now fails; 0 none */
    bool fail_commit;
    bool scrub_finds; /* the next scrub finds the newest damaged */
    uint32_t commit_left;
};

/* Makes an empty one without faults; freed by fake_store_destroy. */
struct store *fake_store_create(void);

/* Frees it with all checkpoints. */
void fake_store_destroy(struct store *store);

/* The complete checkpoint of an id, or NULL. */
const struct fake_checkpoint *fake_store_find(const struct store *store, uint64_t id);
