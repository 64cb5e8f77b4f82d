/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate functions with Flink's arithmetic. A set holds the calls of one operator; their states
 * lie one behind the other in a table value, small things inline, sets of values as list and map
 * heads. GROUP BY, window and OVER operators share it; what differs is how rows leave again.
 *
 * Limits: a state, with what its operator keeps in front, is at most TABLE_VALUE_BYTES_MAX; a text
 * result at most ACCUMULATOR_TEXT_BYTES_MAX. */
#pragma once

#include "base.h"
#include "dataplane/operator/aggregate.h"
#include "dataplane/row.h"
#include "state/table.h"

#define ACCUMULATOR_TEXT_BYTES_MAX (UINT32_C(1) << 20)
#define ACCUMULATOR_HEADS_MAX      TABLE_HEAD_COUNT_MAX

enum accumulator_mode {
    ACCUMULATOR_APPEND = 0, /* rows only come */
    ACCUMULATOR_RETRACT,    /* rows come and go in any order */
    ACCUMULATOR_SLIDING,    /* rows go in the order in which they came: bounded OVER */
};

struct accumulator_config {
    const struct aggregate_call *calls; /* call_count of them; kept by reference */
    uint32_t call_count;
    const struct row_layout *layout; /* of the rows given to add and retract; kept by reference */
    enum accumulator_mode mode;
    bool is_over;        /* OVER: AVG sums as SUM does, in the argument's type */
    uint32_t base_bytes; /* what the operator keeps in front; a multiple of 8 */
    /* Lifetime of the values of DISTINCT, each by itself, as in Flink; NULL: they stay. Kept by
     * reference; its ttl_ms does not change. */
    const struct expiry *expiry;
};

struct accumulator_set;
struct expiry;

/* The state that a call works on. */
struct accumulator_state {
    struct heap *heap;
    uint8_t *value; /* the table value, operator's front included; 8-byte aligned */
    int64_t order;  /* SLIDING: place of the row that comes or goes; never falls between adds */
    uint32_t shard;
};

/* Prepares a set.
 * out      freed by accumulators_destroy
 * returns  0, -ENOMEM, or -ENOTSUP with the function's name and type in error
 * threads  control */
int accumulators_create(const struct accumulator_config *config, struct accumulator_set **out,
                        struct error *error);

/* Frees it. NULL is fine.
 * threads  control */
void accumulators_destroy(struct accumulator_set *set);

/* Tells the size of a state, the operator's front included.
 * threads  any */
uint32_t accumulators_bytes(const struct accumulator_set *set);

/* Lists what in a state refers to other state, for table_config.
 * heads    room for ACCUMULATOR_HEADS_MAX
 * returns  how many
 * threads  any */
uint32_t accumulators_heads(const struct accumulator_set *set, struct table_head *heads);

/* Makes a state of zeros ready for its first row.
 * threads  owning lane only */
void accumulators_init(const struct accumulator_set *set, const struct accumulator_state *state);

/* Takes a row in.
 * returns  false when the arena is exhausted: the state is then unfinished
 * threads  owning lane only */
bool accumulators_add(const struct accumulator_set *set, const struct accumulator_state *state,
                      const struct row *row);

/* Takes a row out again. Not in mode APPEND.
 * returns  as accumulators_add
 * threads  owning lane only */
bool accumulators_retract(const struct accumulator_set *set, const struct accumulator_state *state,
                          const struct row *row);

/* Adds what another state holds; its rows count as coming later. Not in mode SLIDING.
 * returns  as accumulators_add
 * threads  owning lane only */
bool accumulators_merge(struct accumulator_set *set, const struct accumulator_state *state,
                        const struct accumulator_state *from);

/* Frees what a state refers to; the value itself is then all zeros behind the front.
 * threads  owning lane only */
void accumulators_clear(const struct accumulator_set *set, const struct accumulator_state *state);

/* Brings what the lists of a state will touch towards the cache: step 0 wants the state itself to
 * be there, step 1 comes after other work.
 * threads  owning lane only */
void accumulators_prefetch(const struct accumulator_set *set, const struct accumulator_state *state,
                           uint32_t step);

/* Computes one call's result.
 * out      text is borrowed until the set's next call
 * returns  false when a text result is longer than ACCUMULATOR_TEXT_BYTES_MAX
 * threads  owning lane only */
bool accumulators_result(struct accumulator_set *set, uint32_t call,
                         const struct accumulator_state *state, struct value *out);

/* Sets results into consecutive columns of a row being written, from call *next on; call 0 goes to
 * first_column.
 * next     in: the first call to store; out: the call that did not fit
 * returns  0 when all are stored, else how many bytes of text the row lacks, UINT32_MAX when the
 *          text is too long for any row
 * threads  owning lane only */
uint32_t accumulators_store(struct accumulator_set *set, const struct accumulator_state *state,
                            struct row_writer *writer, uint32_t first_column, uint32_t *next);
