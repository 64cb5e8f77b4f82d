/* SPDX-License-Identifier: Apache-2.0 */
/* Timers in state: a time, a shard, and payload bytes (the key, or what the operator wants back).
 * One object an operator and a kind of time: the caller says what now is (watermark or tick). Kept
 * as an ordered map a shard, so they are in every checkpoint; a tournament over the shards, outside
 * the pages, finds the next one in O(1).
 *
 * Due timers come in the order of (time, insertion), over all shards of the lane. */
#pragma once

#include "state/heap.h"

#define TIMERS_PAYLOAD_BYTES_MAX HEAP_BLOB_BYTES_MAX

struct timers;

/* Names a timer that was set: needed to cancel it. Fits a table value. */
struct timer_handle {
    int64_t time_ms;
    uint64_t sequence; /* 0: none */
};

/* Creates an empty set of timers.
 * name     unique in the arena: the state's identity in a checkpoint
 * out      freed by timers_destroy
 * returns  0 or -errno with the reason
 * threads  control path, before the lane starts */
int timers_create(struct heap *heap, const char *name, struct timers **out, struct error *error);

/* Frees what timers_create allocated; pages stay as they are.
 * threads  control path, after the lane stopped */
void timers_destroy(struct timers *timers);

/* Sets a timer; equal ones are not merged.
 * payload  at most TIMERS_PAYLOAD_BYTES_MAX; copied
 * out      its handle; may be NULL
 * returns  false when the arena is exhausted: then nothing has changed
 * threads  owning lane only */
bool timers_set(struct timers *timers, uint32_t shard, int64_t time_ms, struct span payload,
                struct timer_handle *out);

/* Cancels a timer.
 * returns  whether it was still set
 * threads  owning lane only */
bool timers_cancel(struct timers *timers, uint32_t shard, struct timer_handle handle);

/* Tells the time of the earliest timer.
 * returns  false when there is none
 * threads  owning lane only */
bool timers_next(const struct timers *timers, int64_t *time_ms);

/* One timer that has come due. payload is borrowed until the next call on timers. */
struct timer_due {
    int64_t time_ms;
    uint64_t sequence;
    uint32_t shard;
    struct span payload;
};

/* Takes the earliest timer when its time is <= now_ms; call it until it returns false, as often a
 * step as the caller's bound allows.
 * scratch  where the payload is put; must hold the longest payload ever set here
 * returns  whether due was filled
 * threads  owning lane only */
bool timers_pop(struct timers *timers, int64_t now_ms, struct span_mut scratch,
                struct timer_due *due);

/* How many timers are set.
 * threads  owning lane only */
uint64_t timers_count(const struct timers *timers);

/* Walks all timers and stops the process at a contradiction; for tests.
 * threads  owning lane only */
void timers_check(const struct timers *timers);
