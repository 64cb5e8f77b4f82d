/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators share: failing with words, the keys of a parcel's rows, rows that are their
 * input plus columns, and results into rows. */
#pragma once

#include "dataplane/operator/accumulator.h"
#include "dataplane/operator/operator.h"
#include "state/hash.h"
#include "state/table.h"

#define OPERATOR_NAME_BYTES 56
#define OPERATOR_TIDY_PAGES 16 /* per call; a parcel's rows release fewer but in rare cases */
#define OPERATOR_ROW_BYTES  (UINT32_C(16) << 20) /* the longest row that state can hold */

extern const struct operator_ops calc_ops;
extern const struct operator_ops union_ops;
extern const struct operator_ops group_ops;
extern const struct operator_ops window_ops;
extern const struct operator_ops window_rows_ops;
extern const struct operator_ops over_ops;

/* Fails the job with a reason.
 * returns  OPERATOR_FAILED
 * threads  owning lane only */
enum operator_verdict operator_fail(struct operator_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Fails the job because the lane's arena is full; the reason names its size. */
enum operator_verdict operator_fail_full(struct operator_context *context) __attribute__((cold));

/* Fails the job because a row fits no parcel. */
enum operator_verdict operator_fail_row(struct operator_context *context) __attribute__((cold));

/* Gives back a few pages of long blobs that were released, if there are any.
 * threads  owning lane only */
static inline void operator_tidy(struct operator_context *context)
{
    if (UNLIKELY(heap_has_queue(context->heap))) {
        (void)heap_poll(context->heap, OPERATOR_TIDY_PAGES);
    }
}

/* Reserves bytes that an operator works with inside of one call; the first page is touched.
 * returns  NULL when the process is out of memory; freed by free
 * threads  control */
void *operator_scratch(size_t bytes);

/* Keys of a parcel's rows as bytes, with their hashes. One an operator instance. */
struct keyer {
    const struct row_layout *layout;
    struct key_columns columns;
    uint8_t *bytes; /* the keys, one behind the other */
    uint64_t hashes[PARCEL_ROWS_MAX];
    struct span keys[PARCEL_ROWS_MAX];
};

/* Makes a keyer.
 * columns  kept by reference; count 0: all rows have one and the same key
 * returns  NULL when the process is out of memory
 * threads  control */
struct keyer *keyer_create(const struct row_layout *layout, const struct key_columns *columns);

/* Frees it. NULL is fine. */
void keyer_destroy(struct keyer *keyer);

/* Computes keys and hashes of as many of the rows as its memory holds, and prefetches what their
 * lookups touch; element i belongs to rows[i].
 * table    may be NULL: no prefetch
 * count    1..PARCEL_ROWS_MAX
 * returns  how many rows, 0 when the first key is longer than KEY_BYTES_MAX
 * threads  owning lane only */
uint32_t keyer_fill(struct keyer *keyer, const struct table *table, const struct row *const *rows,
                    uint32_t count);

/* As keyer_fill, with a number of 8 bytes in front of each key: prefixes[i] for rows[i]. */
uint32_t keyer_fill_prefixed(struct keyer *keyer, const struct table *table,
                             const struct row *const *rows, uint32_t count,
                             const int64_t *prefixes);

/* Which words of an input row are text slots: what moves when columns are appended. */
struct widener {
    const struct row_layout *from;
    uint32_t text_count;
    uint16_t *text_words; /* counted from the first slot */
};

/* Prepares a widener.
 * returns  0 or -ENOMEM; filled by widener_init, emptied by widener_fini
 * threads  control */
int widener_init(struct widener *widener, const struct row_layout *from);

/* Frees what widener_init took. */
void widener_fini(struct widener *widener);

/* Begins an output row that starts with all columns of an input row; the others are NULL.
 * returns  false when the row fits no parcel
 * threads  owning lane only */
bool widener_begin(const struct widener *widener, struct output *output, struct row_writer *writer,
                   const struct row *row);

/* Stores all results of a set from first_column on, growing the row as needed.
 * returns  false when the row fits no parcel
 * threads  owning lane only */
bool results_store(struct accumulator_set *set, const struct accumulator_state *state,
                   struct output *output, struct row_writer *writer, uint32_t first_column);

/* Names an operator's state: the kind and the node's identity, so that a job finds it again
 * whatever else has changed in the script.
 * threads  control */
const char *state_name(char into[static OPERATOR_NAME_BYTES], const char *kind,
                       const struct plan_node *node);
