/* SPDX-License-Identifier: Apache-2.0 */
/* The one interface of operators. An operator is a pure function of the items it is given: it reads
 * no clock, no random number and no network, and holds no memory that outlives a call but the state
 * it declares (state/). One instance per plan node and lane; all calls come from that lane.
 *
 * The runtime gives items in order: rows, watermarks, ticks. It asks for at most
 * one thing at a time and repeats a call that answered OPERATOR_AGAIN before it gives anything
 * else; so an operator that cannot emit more now remembers where it is and goes on there.
 *
 * The runtime guarantees room for OPERATOR_ROOM_ROWS rows in the output before each process call;
 * advance and tick check output_has_room after each row instead. */
#pragma once

#include "base.h"
#include "dataplane/parcel.h"
#include "dataplane/plan.h"

struct arena;
struct heap;
struct operator;
struct output;

#define OPERATOR_ROOM_ROWS (2 * PARCEL_ROWS_MAX)

enum operator_verdict {
    OPERATOR_DONE = 0,
    OPERATOR_AGAIN,  /* no room in the output: call the same again later */
    OPERATOR_FAILED, /* the job fails: the reason stands in context->failure */
};

/* What the runtime lends to an instance; lives as long as the instance. */
struct operator_context {
    struct arena *arena; /* of the lane */
    struct heap *heap;   /* on it */
    struct output *output;
    const char *time_zone;
    struct error failure; /* filled with OPERATOR_FAILED; dataplane code formats it only then */
    uint64_t *counters;   /* enum operator_counter */
};

enum operator_counter {
    OPERATOR_ROWS_IN = 0,
    OPERATOR_ROWS_OUT,
    OPERATOR_LATE_ROWS, /* dropped as late (numLateRecordsDropped) */
    OPERATOR_NULL_KEY_DROPPED,
    OPERATOR_EXPIRED,
    OPERATOR_FILTERED_ROWS,
    OPERATOR_NULL_TIME_DROPPED, /* rows without event time in a window table function */
    OPERATOR_COUNTER_COUNT,
};

/* The times of a cut. */
struct operator_times {
    int64_t watermark_ms; /* WATERMARK_MIN: none yet */
    int64_t tick_ms;      /* INT64_MIN: none yet */
    int64_t mark_ms;      /* what mark said */
};

struct operator_ops {
    const char *name;
    /* Declares state and prepares programs. Control thread, before the lanes start.
     * context  kept by reference
     * out      closed by close */
    int (*open)(const struct plan_node *node, const struct row_layout *const *inputs,
                struct operator_context *context, struct operator** out, struct error *error);
    /* Takes the rows of one parcel.
     * parcel   borrowed; the same again after OPERATOR_AGAIN */
    enum operator_verdict (*process)(struct operator* self, uint32_t input,
                                     const struct parcel *parcel);
    /* The watermark (already the minimum over inputs) moved to this. NULL: nothing to do. */
    enum operator_verdict (*advance)(struct operator* self, int64_t watermark_ms);
    /* Processing time is now this. NULL: nothing to do. */
    enum operator_verdict (*tick)(struct operator* self, int64_t processing_ms);
    /* A time that the operator keeps outside of its state and that neither watermark nor tick tell;
     * asked at a cut. NULL: there is none. */
    int64_t (*mark)(const struct operator* self);
    /* State is back as of a cut at these times: sets clocks, and does no work though there may be
     * some that waits for the next watermark. NULL: advance and tick, which are told the times in
     * its place, find nothing to do. */
    void (*restore)(struct operator* self, const struct operator_times *times);
    /* Whether this node's instances act on ticks: others get none. NULL: all that have tick do. */
    bool (*wants_ticks)(const struct plan_node *node);
    void (*close)(struct operator* self);
};

/* An operator's own struct embeds this first. */
struct operator
{
    const struct operator_ops *ops;
};

/* Tells whether a node's instances are given ticks.
 * threads  any */
static inline bool operator_takes_ticks(const struct operator_ops *ops,
                                        const struct plan_node *node)
{
    ASSERT_SLOW(ops != NULL && node != NULL);
    return ops->tick != NULL && (ops->wants_ticks == NULL || ops->wants_ticks(node));
}

/* Finds the body for a plan node; sources and sinks are not operators.
 * returns  never NULL
 * threads  any */
const struct operator_ops *operator_find(enum plan_operator operator);

/* Reads the identity of the node that a state belongs to out of the state's name.
 * returns  false when it is no such name
 * threads  any */
bool state_identity(const char *name, uint64_t *identity);

/* The output of an operator instance: rows are written straight into the parcel being filled. It
 * passes parcels on when they are full and at the end of each call. */

/* Starts one row in the current parcel (or a fresh one) with `capacity` bytes of room at least.
 * layout   the node's
 * from     its kind, time and arrival are copied, as row_begin does
 * returns  false when the row cannot be begun: larger than the largest parcel class; the operator
 *          fails with that reason (output_row_too_large)
 * threads  owning lane only */
bool output_row_begin(struct output *output, struct row_writer *writer, const struct row *from);

/* Moves an unfinished row to a larger parcel after a setter answered false; the writer goes on with
 * the same columns already set.
 * returns  false when there is no larger class
 * threads  owning lane only */
bool output_row_grow(struct output *output, struct row_writer *writer, uint32_t tail_bytes);

/* Ends the row begun last; it now belongs to the parcel.
 * threads  owning lane only */
void output_row_end(struct output *output, struct row_writer *writer);

/* Copies a whole row as it is.
 * returns  as output_row_begin
 * threads  owning lane only */
bool output_row_copy(struct output *output, const struct row *row);

/* Tells whether more rows may be begun now. Operators that emit without a bound (windows, timers)
 * ask before each row.
 * threads  owning lane only */
bool output_has_room(const struct output *output);
