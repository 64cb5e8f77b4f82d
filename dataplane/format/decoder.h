/* SPDX-License-Identifier: Apache-2.0 */
/* Records into rows of a source's decoded layout: the value's format, the key's format, and the
 * metadata columns. One record may give no row (an empty value), one, or several (a top-level JSON
 * array; a key that is an array multiplies them). Acceptance is Flink's, value by value, with one
 * difference: what a column that nothing reads holds is not looked at.
 *
 *     if (decoder_begin(decoder, record, topic, partition) == DECODER_OK)
 *         while ((verdict = decoder_next(decoder, space)) == DECODER_ROW) take the row
 *
 * Bad input is DECODER_BAD with a reason, where Flink fails the job; what Flink drops in silence
 * ('json.ignore-parse-errors', tombstones, empty values) has counters. */
#pragma once

#include "base.h"
#include "dataplane/plan.h"
#include "dataplane/record.h"

#define DECODER_RECORD_BYTES_DEFAULT (UINT32_C(16) << 20)
#define DECODER_REASON_BYTES         256

struct decoder;

struct decoder_config {
    const struct plan_source *source; /* borrowed: outlives the decoder */
    const char *const *topics;        /* names by topic index; NULL: those of the source */
    size_t record_bytes_max;          /* longer values and keys are bad; 0: the default */
};

enum decoder_verdict {
    DECODER_OK = 0, /* decoder_begin: there may be rows */
    DECODER_SKIP,   /* decoder_begin: no row and no error, as in Flink */
    DECODER_ROW,    /* decoder_next: a row was written */
    DECODER_END,    /* decoder_next: the record has no further row */
    DECODER_FULL,   /* decoder_next: the row does not fit; call again with a larger buffer */
    DECODER_BAD,    /* the record is bad from here on: decoder_reason says why */
};

struct decoder_counters {
    uint64_t records; /* begun */
    uint64_t rows;    /* written */
    uint64_t skipped; /* tombstones and empty values */
    uint64_t ignored; /* dropped whole or in part by 'json.ignore-parse-errors' */
    uint64_t bad;     /* DECODER_BAD */
    uint64_t bytes;   /* of values and keys */
};

/* Prepares a decoder; nothing is allocated later.
 * out      freed by decoder_destroy; NULL after a failure
 * returns  0 or -errno
 * threads  control; afterwards the owning lane only */
int decoder_create(const struct decoder_config *config, struct decoder **out, struct error *error);

/* Frees it; NULL is nothing.
 * threads  control */
void decoder_destroy(struct decoder *decoder);

/* Starts a record.
 * record     borrowed with all it points to until the last decoder_next; nothing need be readable
 *            behind the value's or the key's last byte
 * topic      index into config.topics
 * returns    DECODER_OK, DECODER_SKIP or DECODER_BAD
 * threads    owning lane only */
enum decoder_verdict decoder_begin(struct decoder *decoder, const struct record *record,
                                   uint32_t topic, uint32_t partition);

/* Writes the record's next row: +I, no event time, the record's arrival.
 * into     8-byte aligned; the row begins at into.data
 * returns  DECODER_ROW, DECODER_END, DECODER_FULL or DECODER_BAD
 * threads  owning lane only */
enum decoder_verdict decoder_next(struct decoder *decoder, struct span_mut into);

/* Says in words why the last verdict was DECODER_BAD: the member's path, what was found.
 * returns  borrowed until the next call with the decoder
 * threads  owning lane only */
const char *decoder_reason(const struct decoder *decoder);

/* Shows what was counted so far.
 * threads  owning lane only */
const struct decoder_counters *decoder_counters(const struct decoder *decoder);
