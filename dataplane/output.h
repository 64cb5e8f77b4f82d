/* SPDX-License-Identifier: Apache-2.0 */
/* What a source or an operator writes into (the operators' side is in operator/operator.h): rows go
 * straight into the parcel being filled; a full one, and what there is at the end of a call, is
 * passed along every edge of the plan that leaves this node.
 *
 * Room. Rows may be begun while the pool has more parcels free than the nodes downstream on this
 * lane need to go on (reserve): upstream stops first, so a small pool slows a lane down and never
 * locks it. Rows that grow past every expectation may eat into the reserve; when nothing at all is
 * left the output is starved and the job fails with that reason, since the operator is in the
 * middle of a call. */
#pragma once

#include "base.h"
#include "dataplane/exchange.h"
#include "dataplane/operator/operator.h"

#define OUTPUT_EDGES_MAX      64
#define OUTPUT_ROW_TAIL_BYTES 64 /* text a row is expected to have, for room estimates */

struct output_config {
    struct parcel_pool *pool;
    const struct row_layout *layout;
    struct exchange *edges; /* edge_count, filled by the job; outlive the output */
    uint32_t edge_count;
    uint32_t parcel_rows_max;
    uint32_t queue_rows_max; /* output_has_room says no while a consumer has so many to do */
};

/* Makes an output.
 * out      freed by output_destroy
 * returns  0 or -ENOMEM
 * threads  control */
int output_create(const struct output_config *config, struct output **out, struct error *error);

/* Frees it; parcels in it go down with their pool. NULL is fine.
 * threads  control */
void output_destroy(struct output *output);

/* Sets how many parcels must stay free for the nodes downstream.
 * threads  control, before the lanes start */
void output_reserve(struct output *output, uint32_t parcels);

/* Tells how many parcels of the pool may be needed to write so many rows and send them on.
 * threads  any */
uint32_t output_parcels(const struct output *output, uint32_t row_count);

/* Tells whether so many rows can be written without starving anybody downstream.
 * threads  owning lane only */
bool output_room(const struct output *output, uint32_t row_count);

/* Sets what the headers of the next parcels say: processing time and the stamps so far.
 * threads  owning lane only */
void output_stamp(struct output *output, const struct parcel *from);

/* Passes the parcel being filled along all edges.
 * threads  owning lane only */
void output_pass(struct output *output);

/* Sends a parcel of the same layout on as it is; the caller's hold goes with it.
 * threads  owning lane only */
void output_forward(struct output *output, struct parcel *parcel);

/* Sends a control item along all edges, behind all rows so far.
 * threads  owning lane only */
void output_control(struct output *output, enum parcel_kind kind, int64_t value);

/* Passes what is being filled, closes the parcels of hash edges, feeds rings.
 * returns  how many items entered rings
 * threads  owning lane only */
uint32_t output_flush(struct output *output);

/* Tells how many rows wait on this lane for rings.
 * threads  owning lane only */
uint32_t output_backlog_rows(const struct output *output);

/* Tells whether anything waits on this lane for rings.
 * threads  owning lane only */
bool output_has_backlog(const struct output *output);

/* Tells whether the pool ran dry in the middle of a call.
 * threads  owning lane only */
bool output_is_starved(const struct output *output);

/* Tells how many rows were written or forwarded since the start.
 * threads  owning lane only */
uint64_t output_row_count(const struct output *output);

/* Tells how large a row may be.
 * threads  any */
uint32_t output_row_bytes_max(const struct output *output);
