/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: expressions compiled once and run over the rows of a parcel, one instruction at a time
 * over all rows (a vector each). AND, OR, CASE, COALESCE, IF and the like compute only the rows
 * that need it, by selection, as Flink does row by row: `i <> 0 AND 100 / i > 1` never fails.
 *
 * A program is const and shared by lanes; what changes while it runs is a program_state, one per
 * operator instance. Nothing allocates after program_state_create.
 *
 * Limits: PARCEL_ROWS_MAX rows a run; text made by one run at most scratch_bytes. */
#pragma once

#include "base.h"
#include "dataplane/expr/expr.h"
#include "dataplane/parcel.h"
#include "dataplane/row.h"

#define PROGRAM_SCRATCH_BYTES_DEFAULT (UINT32_C(256) << 10)
#define PROGRAM_REASON_BYTES          256

/* Null flags of a vector. A DECIMAL operation past 38 digits gives VECTOR_NULL_HIDDEN: NULL for
 * everything but IS NULL and IS NOT NULL, as Flink has it. */
enum vector_null {
    VECTOR_VALUE = 0,
    VECTOR_NULL = 1,
    VECTOR_NULL_HIDDEN = 2,
};

/* One expression's values for the rows of a run; index i is row i. A value lies as type.h says for
 * slots, but text as spans. */
struct vector {
    struct type type;
    uint8_t *null; /* enum vector_null each */
    union {
        int64_t *i64;
        float *f32;
        double *f64;
        __int128 *i128;
        struct timestamp *timestamp;
        struct span *text;
    };
};

struct program;
struct program_state;

struct program_config {
    const struct row_layout *layout;   /* of the rows that it runs over */
    const struct expr *const *outputs; /* output_count of them; kept by reference */
    uint32_t output_count;
    const char *time_zone;  /* of the session, e.g. "UTC", "Asia/Kolkata" */
    uint32_t scratch_bytes; /* 0: PROGRAM_SCRATCH_BYTES_DEFAULT */
};

/* What a run may know besides its rows. */
struct program_context {
    int64_t watermark_ms;  /* CURRENT_WATERMARK; WATERMARK_MIN before the first */
    int64_t processing_ms; /* processing time stamp of the parcel */
};

enum program_verdict {
    PROGRAM_OK = 0,
    PROGRAM_SCRATCH_FULL, /* run fewer rows; with one row: the row's text is too large */
    PROGRAM_FAILED,       /* a row fails the job: program_failure says which and why */
};

/* Compiles expressions; constant patterns, formats and time zones are prepared here.
 * out      destroyed by the caller with program_destroy
 * returns  0, -ENOMEM, or -ENOTSUP with the function and its argument types in error (line and
 *          column of the expression)
 * threads  control */
int program_compile(const struct program_config *config, struct program **out, struct error *error);

/* Frees a program that no state uses any more. NULL is fine.
 * threads  control */
void program_destroy(struct program *program);

/* Makes the memory that runs of this program need.
 * threads  control */
int program_state_create(const struct program *program, struct program_state **out,
                         struct error *error);

/* Frees it. NULL is fine.
 * threads  control */
void program_state_destroy(struct program_state *state);

/* Computes all outputs for some rows.
 * rows     row_count of them, at most PARCEL_ROWS_MAX; borrowed while results are in use
 * returns  PROGRAM_OK, then program_result is valid until the next run
 * threads  owning lane only */
enum program_verdict program_run(struct program_state *state, const struct program_context *context,
                                 const struct row *const *rows, uint32_t row_count);

/* Shows one output of the last run.
 * returns  borrowed until the next run
 * threads  owning lane only */
const struct vector *program_result(const struct program_state *state, uint32_t output);

/* Tells which row failed the last run and why, as Flink's message would.
 * reason   PROGRAM_REASON_BYTES, filled
 * returns  index into rows
 * threads  owning lane only */
uint32_t program_failure(const struct program_state *state,
                         char reason[static PROGRAM_REASON_BYTES]);

/* Sets one column of a row being written from a vector's value.
 * returns  false when the row is full
 * threads  owning lane only */
bool program_store(const struct vector *vector, uint32_t index, struct row_writer *writer,
                   uint32_t column);
