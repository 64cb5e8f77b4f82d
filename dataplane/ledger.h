/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: how long records stay in the box, stage by stage and per sink, live. Parcels carry
 * the stamps; the sink's stage enters them here, and the record sink adds when the bytes left.
 *
 *     NIC in -> decoded -> routed -> operated -> encoded -> NIC out
 *        queue+decode   exchange   operators   sink      produce, TCP
 *
 * A stage that a job does not have (no exchange, no operator) takes no time. Rows that no single
 * record caused (a window's result) carry the arrival of none and are not counted.
 *
 * One lane writes its ledger; control merges and prints at any time. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "dataplane/histogram.h"
#include "dataplane/parcel.h"

#define LEDGER_SINKS_MAX 64

enum ledger_stage {
    LEDGER_DECODED = 0, /* NIC in -> decoded: sourceQueuingLatency */
    LEDGER_ROUTED,
    LEDGER_OPERATED,
    LEDGER_ENCODED,
    LEDGER_PROCESSED, /* decoded -> encoded: processingLatency */
    LEDGER_SENT,      /* encoded -> NIC out */
    LEDGER_STAY,      /* NIC in -> NIC out: e2eLatency */
    LEDGER_STAGE_COUNT,
};

struct ledger_sink {
    const char *name;            /* the table's; borrowed from the plan */
    struct histogram *processed; /* NIC in -> encoded */
    struct histogram *stay;      /* NIC in -> NIC out */
    uint64_t skipped;            /* records that stay leaves out: too many were on their way */
};

struct ledger {
    struct histogram *stages[LEDGER_STAGE_COUNT];
    struct ledger_sink sinks[LEDGER_SINKS_MAX];
    uint32_t sink_count;
};

/* Makes an empty ledger.
 * names    sink_count names of sinks, borrowed
 * returns  0 or -ENOMEM
 * threads  control */
int ledger_create(const char *const *names, uint32_t sink_count, struct ledger **out,
                  struct error *error);

/* Frees it. NULL is fine.
 * threads  control */
void ledger_destroy(struct ledger *ledger);

/* Enters a parcel that a sink has encoded; encoded_ns is set.
 * threads  owning lane only */
void ledger_parcel(struct ledger *ledger, uint32_t sink, const struct parcel *parcel);

/* Enters one record whose bytes went to the port.
 * encoded_ns  0: unknown, then only the whole stay is entered
 * threads     owning lane only */
void ledger_sent(struct ledger *ledger, uint32_t sink, uint64_t arrival_ns, uint64_t encoded_ns,
                 uint64_t now_ns);

/* Counts a record whose way out is not entered.
 * threads  owning lane only */
void ledger_skipped(struct ledger *ledger, uint32_t sink);

/* Adds another lane's ledger of the same job.
 * threads  any for from, control for into */
void ledger_merge(struct ledger *into, const struct ledger *from);

/* Prints a table of percentiles in microseconds, a line a stage and a sink.
 * threads  control */
void ledger_print(const struct ledger *ledger, FILE *into);

/* Prints the same as one JSON object, in nanoseconds, on one line.
 * threads  control */
void ledger_print_json(const struct ledger *ledger, FILE *into);
