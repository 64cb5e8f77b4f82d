/* SPDX-License-Identifier: Apache-2.0 */
/* What a source computes over its decoded rows, in one program: the computed columns, and the
 * watermark. The plan states the watermark over the node's output; here it is restated over the
 * decoded row, so that everything about a row is known before it is written. */
#pragma once

#include "base.h"
#include "dataplane/expr/program.h"
#include "dataplane/plan.h"

struct source_program;

/* Compiles it.
 * node     a source; borrowed
 * out      freed by source_program_destroy; NULL when there is nothing to compute
 * returns  0 or -errno, with the place in error
 * threads  control */
int source_program_create(const struct plan_node *node, const char *time_zone,
                          struct source_program **out, struct error *error);

/* Frees it. NULL is fine.
 * threads  control */
void source_program_destroy(struct source_program *program);

/* The state to run: its first outputs are the computed columns, then the watermark if there is one.
 * returns  borrowed
 * threads  owning lane only */
struct program_state *source_program_state(struct source_program *program);
