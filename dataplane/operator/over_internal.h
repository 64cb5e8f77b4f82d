/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two bodies of OVER: over_event.c answers a row when the watermark has passed it, as
 * Flink does; over_arrival.c answers it at once. over.c sets up what both need. */
#pragma once

#include "dataplane/operator/operator_internal.h"
#include "dataplane/operator/over_packer.h"
#include "state/list.h"
#include "state/timers.h"

/* In front of the accumulators of a key; what every row touches stands last, next to them. */
struct over_key {
    _Alignas(8) uint8_t pending[LIST_HEAD_BYTES(0)]; /* whole rows waiting for the watermark */
    int64_t cleanup_ms; /* bounded RANGE: when the key is forgotten; 0: not set */
    int64_t sequence;   /* rows taken in so far */
    /* Event time: of the last timer that fired, a later row must be above it. On arrival: of the
     * newest row. */
    int64_t last_ms;
    _Alignas(8) uint8_t frame[LIST_HEAD_BYTES(1)]; /* packed rows; mark 0: the frame's start */
};

struct over {
    struct operator base;
    struct operator_context *context;
    const struct plan_node *node;
    const struct plan_over *plan;
    const struct row_layout *input;
    struct keyer *keyer;
    struct widener widener;
    struct over_packer packer;
    bool uses_frame;
    struct aggregate_call *calls; /* the plan's, with columns of the frame when it is used */
    struct accumulator_set *set;
    uint8_t *scratch_value; /* a state that lives inside of one call */
    struct table *keys;
    /* Values of the rows in work; void once a key was added to the table. */
    void *values[PARCEL_ROWS_MAX];
    bool values_void;
    struct timers *timers;
    int64_t watermark_ms;
    /* The timer that fires now; kept over calls while the output has no room. */
    uint8_t *due_payload;
    struct timer_due due;
    bool is_firing;
    bool is_accumulated; /* RANGE: the rows of its time are in the accumulators */
};

/* Packs what the frame keeps of a row.
 * returns  the content for the list, borrowed until the next call; no data when it is too long
 * threads  owning lane only */
static inline struct span over_pack(struct over *self, const struct row *row)
{
    ASSERT_SLOW(self->uses_frame);
    return over_packer_pack(&self->packer, row, 0);
}

/* Shows packed content as a row; only columns may be read, not the header. */
static inline const struct row *over_row(struct span content)
{
    ASSERT_SLOW(content.data != NULL || content.bytes == 0);
    return (const struct row *)(const void *)(content.data - sizeof(struct row));
}

/* As over_row, an item of the list. */
static inline const struct row *over_unpack(struct over *self, const struct list_item *item)
{
    return over_packer_unpack(&self->packer, self->context->heap, item);
}

/* Emits a row with the results of a state.
 * returns  false when it fits no parcel
 * threads  owning lane only */
bool over_emit(struct over *self, const struct accumulator_state *state, const struct row *row);

/* Sets a timer for a key.
 * returns  false when the arena is exhausted
 * threads  owning lane only */
bool over_timer_set(struct over *self, int64_t time_ms, uint64_t hash, struct span key);

/* Takes the next timer that is due into self->due.
 * returns  whether there was one
 * threads  owning lane only */
bool over_timer_pop(struct over *self, uint64_t *hash, struct span *key);

/* Reads hash and key of the timer in self->due. */
void over_due_key(const struct over *self, uint64_t *hash, struct span *key);

/* Forgets a key and all its rows.
 * state    its value
 * threads  owning lane only */
void over_key_remove(struct over *self, const struct accumulator_state *state, uint64_t hash,
                     struct span key);

/* The event time that OVER works with: a NULL time reads as the epoch, as in Flink. */
static inline int64_t over_time(const struct row *row)
{
    return row->time_ms == ROW_TIME_NONE ? 0 : row->time_ms;
}

/* The operator's front of a state. */
static inline struct over_key *over_key(const struct accumulator_state *state)
{
    ASSERT_SLOW(state->value != NULL);
    return (struct over_key *)(void *)state->value;
}

/* The list of whole rows that wait. */
static inline struct list_head *over_pending(const struct accumulator_state *state)
{
    return (struct list_head *)(void *)over_key(state)->pending;
}

/* The list of packed rows. */
static inline struct list_head *over_frame_list(const struct accumulator_state *state)
{
    return (struct list_head *)(void *)over_key(state)->frame;
}

/* A row's key, and its value when the table has been asked for it already. */
struct over_lookup {
    uint64_t hash;
    struct span key;
    uint8_t *value; /* NULL: not there, or not known any more */
};

/* Finds or makes the value of a key.
 * created  set to whether it is new
 * returns  the state; its value is NULL when the arena is exhausted
 * threads  owning lane only */
struct accumulator_state over_value_take(struct over *self, const struct over_lookup *lookup,
                                         bool *created);

/* Takes one row of a parcel, its key already computed.
 * threads  owning lane only */
enum operator_verdict over_event_row(struct over *self, const struct row *row,
                                     const struct over_lookup *lookup);

/* Fires what the watermark has passed. */
enum operator_verdict over_event_advance(struct over *self);

/* As over_event_row, answering at once. */
enum operator_verdict over_arrival_row(struct over *self, const struct row *row,
                                       const struct over_lookup *lookup);

/* Forgets the keys that no later row can reach. */
enum operator_verdict over_arrival_advance(struct over *self);

/* Second set of accumulators of a key, for on-arrival unbounded frames: over the rows at or behind
 * the watermark. */
static inline struct accumulator_state over_base_state(const struct over *self,
                                                       const struct accumulator_state *state)
{
    ASSERT_SLOW(self->plan != NULL);
    struct accumulator_state base = *state;
    base.value += accumulators_bytes(self->set) - sizeof(struct over_key);
    return base;
}
