/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of OVER: over.c sets it up, over_event.c answers a row when the watermark has
 * passed it, as Flink does, over_arrival.c at once. In both a key is one table entry
 *
 *     struct over_key | list of packed rows, a mark a frame | clocks, a frame each |
 *     deadline, if the key has a lifetime | accumulators of frame 0, frame 1, ...
 *
 * and a row is packed and listed once, whatever the number of frames. */
#pragma once

#include "dataplane/operator/expiry.h"
#include "dataplane/operator/operator_internal.h"
#include "dataplane/operator/over_packer.h"
#include "state/timers.h"

#define OVER_MARK_NONE UINT32_MAX
#define OVER_DUES_MAX  16 /* timers whose state is fetched together */

/* Rows of frames that one call lets go, takes in or answers, and keys that it ends: what goes
 * beyond is AGAIN, so that a key with a million rows that leave at once holds nobody up. */
#define OVER_STEPS_MAX 4096

/* Later than its frames by this is looked whether a key has ended: one that pauses for little more
 * than those would else be made and forgotten for each row. */
#define OVER_END_SLACK_MS INT64_C(600000)

/* One level of the stack that the node stands for. */
struct over_frame {
    const struct plan_over_frame *plan;
    struct aggregate_call *calls; /* the plan's, with packed columns where rows are packed */
    struct accumulator_set *set;
    bool is_range;         /* bounded RANGE: leavers go by time */
    bool reads_packed;     /* its calls read packed rows, else rows of the input */
    uint32_t mark;         /* where the frame starts in the list; NONE: it keeps no rows */
    uint32_t behind_bytes; /* on arrival, unbounded: how far behind lies its second state */
    uint32_t first_column; /* of its results in the output */
};

/* In front of each key's state. */
struct over_key {
    _Alignas(8) uint8_t pending[LIST_HEAD_BYTES(0)]; /* by watermark: whole rows that wait */
    int64_t last_ms;   /* on arrival: time of the newest row; else the watermark of its clocks */
    uint64_t sequence; /* by watermark: tags given so far */
    _Alignas(8) uint8_t rows[]; /* list head with a mark a frame */
};

/* By watermark: what a level of the stack would know of the key. */
struct over_clock {
    int64_t last_ms;    /* of the last time that fired; a later row must be above it */
    uint64_t forgotten; /* rows tagged below this have left by forgetting */
    union {
        struct {                     /* bounded RANGE */
            int64_t cleanup_ms;      /* when the level forgets the key; 0: it has no such time */
            int64_t overtaken_ms[2]; /* such times before, still ahead, rising; 0: none */
        };
        struct {              /* ROWS */
            int64_t taken_in; /* rows so far */
            int64_t taken_out;
        };
    };
};

/* On arrival a frame's clock is one number: the time of the row at its mark, so that a row which
 * makes none leave need not look at the list's front. INT64_MAX when the mark is at the end. */

/* What a timer is for. */
enum over_tag {
    OVER_TAG_ROWS = 0,  /* rows of its time wait */
    OVER_TAG_OVERTAKEN, /* by watermark: a clean-up of level 0 that is one no more */
    OVER_TAG_END,       /* to look whether the key has ended; one a key that can end */
};

/* A timer that has come up. */
struct over_due {
    int64_t time_ms;
    uint64_t hash;
    struct span key; /* in due_payload */
    uint8_t *value;  /* void as those of rows in work */
    enum over_tag tag;
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
    struct over_frame frames[PLAN_OVER_FRAMES_MAX];
    struct plan_over_frame alone; /* the plan of the only frame */
    uint32_t frame_count;
    uint32_t mark_count;
    uint32_t clocks_offset;
    uint32_t deadline_offset; /* int64_t; 0: none yet */
    struct expiry expiry;
    uint32_t value_bytes;
    bool has_range;       /* a bounded RANGE frame */
    bool has_rows;        /* a bounded ROWS frame */
    bool all_range;       /* so that a key ends */
    int64_t range_max_ms; /* the longest RANGE frame */
    int64_t rows_max;     /* the longest ROWS frame */
    uint8_t *scratch_value;
    uint8_t *pending_row; /* a long waiting row, read back */
    struct table *keys;
    void *values[PARCEL_ROWS_MAX]; /* of the rows in work; void once a key was added */
    bool values_void;
    struct timers *timers;
    int64_t watermark_ms; /* reached, or being reached while is_advancing */
    int64_t before_ms;    /* the one before: what upper levels know as rows come up to them */
    bool is_advancing;
    /* Timers that fire now, in order; kept over calls while the output has no room. */
    uint8_t *due_payload;
    struct over_due dues[OVER_DUES_MAX];
    uint32_t due_count;
    uint32_t due_index;     /* of the one that fires */
    bool due_is_done;       /* that one has fired */
    bool is_measured;       /* due_depth is that of its rows */
    bool is_accumulated;    /* the rows of its time are in the RANGE accumulators */
    bool has_tie;           /* some of them are: those in front of tie */
    uint32_t due_depth;     /* how many levels take those rows */
    uint32_t ready_count;   /* levels that have let go of what leaves for them */
    struct list_cursor tie; /* among the rows that wait */
    uint32_t steps_left;    /* of OVER_STEPS_MAX, in this call */
    uint32_t rows_done;     /* of the parcel in work, when a call went on to the next */
    bool has_left;          /* on arrival: the row in work has let rows go that may be dead */
};

/* A row's key, and its value when the table has been asked for it already. */
struct over_lookup {
    uint64_t hash;
    struct span key;
    uint8_t *value; /* NULL: not there, or not known any more */
};

/* Finds or makes the value of a key; a new one has its lists and accumulators ready.
 * created  set to whether it is new
 * returns  the state; its value is NULL when the arena is exhausted
 * threads  owning lane only */
struct accumulator_state over_take(struct over *self, const struct over_lookup *lookup,
                                   bool *created);

/* Forgets a key and all its rows.
 * threads  owning lane only */
void over_remove(struct over *self, const struct accumulator_state *state, uint64_t hash,
                 struct span key);

/* Frees all that a key's value refers to; the value itself is the caller's to remove.
 * threads  owning lane only */
void over_clear(struct over *self, const struct accumulator_state *state);

/* A key is touched: puts its deadline off, if keys have one.
 * threads  owning lane only */
void over_expiry_keep(struct over *self, const struct accumulator_state *state);

/* Removes a key whose deadline has passed and of which no row waits.
 * returns  whether it is gone
 * threads  owning lane only */
bool over_expiry_end(struct over *self, const struct accumulator_state *state, uint64_t hash,
                     struct span key);

/* As operator_ops.tick: sweeps keys that have ended. */
enum operator_verdict over_expiry_tick(struct operator* base, int64_t processing_ms);

/* As operator_ops.wants_ticks. */
bool over_expiry_wants_ticks(const struct plan_node *node);

/* Sets a timer.
 * due      its value is not used
 * returns  false when the arena is exhausted
 * threads  owning lane only */
bool over_timer_set(struct over *self, const struct over_due *due);

/* Goes on to the next timer that the watermark has passed; they are taken some at a time.
 * returns  it, with its key's value or NULL; borrowed until the next call; NULL: none is left
 * threads  owning lane only */
struct over_due *over_due_next(struct over *self);

/* The timer that fires now, as over_due_next showed it; or after a pause, its value looked up anew.
 * returns  NULL when none was left unfinished
 * threads  owning lane only */
struct over_due *over_due_again(struct over *self);

/* Takes one row of a parcel, its key already computed.
 * threads  owning lane only */
enum operator_verdict over_arrival_row(struct over *self, const struct row *row,
                                       const struct over_lookup *lookup);

/* Forgets the keys that no later row can reach. */
enum operator_verdict over_arrival_advance(struct over *self);

/* As over_arrival_row, by watermark. */
enum operator_verdict over_event_row(struct over *self, const struct row *row,
                                     const struct over_lookup *lookup);

/* Fires what the watermark has passed. */
enum operator_verdict over_event_advance(struct over *self);

/* Takes one of the call's steps; false: none is left. */
static inline bool over_step_take(struct over *self)
{
    ASSERT_SLOW(self->steps_left <= OVER_STEPS_MAX);
    if (self->steps_left == 0) {
        return false;
    }
    self->steps_left--;
    return true;
}

/* The event time that OVER works with: a NULL time reads as the epoch, as in Flink. */
static inline int64_t over_time(const struct row *row)
{
    return row->time_ms == ROW_TIME_NONE ? 0 : row->time_ms;
}

/* Subtracts without wrapping below the lowest time. */
static inline int64_t over_minus(int64_t time_ms, int64_t delta_ms)
{
    int64_t difference;
    return __builtin_sub_overflow(time_ms, delta_ms, &difference) ? INT64_MIN : difference;
}

/* Adds without wrapping above the highest time. */
static inline int64_t over_plus(int64_t time_ms, int64_t delta_ms)
{
    int64_t sum;
    return __builtin_add_overflow(time_ms, delta_ms, &sum) ? INT64_MAX : sum;
}

/* The front of a key's state. */
static inline struct over_key *over_key(const struct accumulator_state *state)
{
    return (struct over_key *)(void *)state->value;
}

/* The list of whole rows that wait. */
static inline struct list_head *over_pending(const struct accumulator_state *state)
{
    return (struct list_head *)(void *)over_key(state)->pending;
}

/* The list of packed rows. */
static inline struct list_head *over_rows(const struct accumulator_state *state)
{
    return (struct list_head *)(void *)over_key(state)->rows;
}

/* The clocks, one a frame. */
static inline struct over_clock *over_clocks(const struct over *self,
                                             const struct accumulator_state *state)
{
    return (struct over_clock *)(void *)(state->value + self->clocks_offset);
}

/* On arrival: the times at the marks, one a frame. */
static inline int64_t *over_leave_times(const struct over *self,
                                        const struct accumulator_state *state)
{
    return (int64_t *)(void *)(state->value + self->clocks_offset);
}

/* On arrival, the state of an unbounded frame over the rows at or behind the watermark. */
static inline struct accumulator_state over_behind(const struct over_frame *frame,
                                                   const struct accumulator_state *state)
{
    struct accumulator_state behind = *state;
    behind.value += frame->behind_bytes;
    return behind;
}
