/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a table source, shared by table_source.c, which reads, and
 * table_source_checkpoint.c, which says where it stands and goes on from there. */
#pragma once

#include "dataplane/dead_letter.h"
#include "dataplane/format/decoder.h"
#include "dataplane/partitions.h"
#include "dataplane/source_program.h"
#include "dataplane/table_source.h"

/* The decoded rows of a chunk; all of one partition. */
struct chunk {
    uint8_t *bytes; /* capacity of them: the largest row fits */
    uint32_t capacity;
    uint32_t used;
    uint32_t count;
    uint32_t next;      /* row to be written next */
    uint32_t run_first; /* rows [run_first, run_end) have results in the program's state */
    uint32_t run_end;
    struct row *rows[PARCEL_ROWS_MAX];
    uint32_t record[PARCEL_ROWS_MAX];  /* index in the batch */
    uint32_t ordinal[PARCEL_ROWS_MAX]; /* of the row in its record, from 1 */
};

struct table_source {
    struct source base;
    struct source_context *context;
    const struct plan_source *plan;
    struct table_source_edge edge;
    struct decoder *decoder;
    struct source_program *program; /* NULL: nothing to compute */
    struct partitions partitions;
    struct chunk chunk;
    struct record_batch_view batch;
    bool has_batch;
    bool is_complete; /* all partitions are known */
    bool is_draining;
    bool fires;       /* the drain ends event time */
    bool is_identity; /* the output is the decoded row */
    bool said_idle;
    uint32_t number;      /* of the batch's partition */
    uint32_t record_next; /* in the batch: the one to be begun, or in the middle */
    bool in_record;       /* the decoder has more rows of it */
    uint32_t rows_before; /* rows of it that went out before a rewind and must not again */
    uint32_t rows_of_record;
    bool is_bad; /* the record at record_next waits for the dead-letter topic, for this reason */
    char reason[DECODER_REASON_BYTES];
    int64_t watermark_sent_ms;
    int64_t next_emit_ms; /* record time of the next periodic watermark; replay */
    int64_t processing_ms;
    struct table_source_counters counters;
    struct dead_letter letter;
};

/* Where the batch at hand is to be gone on with: at which record, of which rows_gone rows have gone
 * out already.
 * returns  the record, batch.record_count when all are done
 * threads  owning lane only */
uint32_t table_source_resume_point(const struct table_source *self, uint32_t *rows_gone);

/* As source_ops.snapshot. */
void table_source_snapshot(struct source *source, struct facts_writer *facts);

/* As source_ops.restore. */
int table_source_restore(struct source *source, const struct source_facts *facts,
                         struct error *error);
