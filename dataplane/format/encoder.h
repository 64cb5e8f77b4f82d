/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into the bytes of a sink's records: value and key, JSON as Flink's serialiser prints it or
 * raw, and the lines of the print connector. Which rows go out at all (an upsert sink drops -U) is
 * the sink's business; what a row becomes is decided here. */
#pragma once

#include "base.h"
#include "dataplane/plan.h"

#define ENCODER_REASON_BYTES 256

struct encoder;

enum encoder_verdict {
    ENCODER_OK = 0,
    ENCODER_NULL,   /* no bytes: a tombstone, or a record without key */
    ENCODER_FULL,   /* the space is short: call again with more */
    ENCODER_DROP,   /* encoder_admit: 'table.exec.sink.not-null-enforcer' = 'DROP' */
    ENCODER_FAILED, /* the job fails: encoder_reason says why */
};

/* Prepares an encoder; nothing is allocated later.
 * sink     borrowed: outlives the encoder; its columns are those of layout
 * layout   of the rows, borrowed
 * out      freed by encoder_destroy; NULL after a failure
 * returns  0 or -errno
 * threads  control; afterwards the owning lane only */
int encoder_create(const struct plan_sink *sink, const struct row_layout *layout,
                   struct encoder **out, struct error *error);

/* Frees it; NULL is nothing.
 * threads  control */
void encoder_destroy(struct encoder *encoder);

/* Checks the columns that are declared NOT NULL.
 * returns  ENCODER_OK, ENCODER_DROP (counted by the caller) or ENCODER_FAILED
 * threads  owning lane only */
enum encoder_verdict encoder_admit(struct encoder *encoder, const struct row *row);

/* Writes the record's value; for the print connector its line, without the newline.
 * bytes    set with ENCODER_OK
 * returns  ENCODER_NULL for -D and -U of an upsert sink, and for a raw NULL
 * threads  owning lane only */
enum encoder_verdict encoder_value(struct encoder *encoder, const struct row *row,
                                   struct span_mut into, size_t *bytes);

/* Writes the record's key.
 * bytes    set with ENCODER_OK
 * returns  ENCODER_NULL when the sink has no key, and for a raw NULL
 * threads  owning lane only */
enum encoder_verdict encoder_key(struct encoder *encoder, const struct row *row,
                                 struct span_mut into, size_t *bytes);

/* Says in words why the last verdict was ENCODER_FAILED.
 * returns  borrowed until the next call with the encoder
 * threads  owning lane only */
const char *encoder_reason(const struct encoder *encoder);
