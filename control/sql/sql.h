/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL front end: Flink SQL text in, a plan (dataplane/plan.h) or one error out. In order:
 * parse.h (text to syntax tree), script.c (statements), catalog.h (tables and their options),
 * bind_*.c (names, types, queries to relations, rel.h), prune.c (what is needed), plan*.c
 * (relations to plan nodes), explain.c. Control thread only; nothing here touches a network. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "dataplane/plan.h"

/* A script in memory. */
struct sql_input {
    const char *text; /* bytes of it; need not end in 0 */
    size_t bytes;
    const char *file_name; /* for messages */
};

/* Something that the user should know though the job runs: an accepted setting without effect
 * here. */
struct sql_note {
    uint32_t line;
    uint32_t column;
    const char *text;
};

/* Lives as long as the plan. */
struct sql_notes {
    const struct sql_note *notes;
    uint32_t count;
};

/* Makes the plan of a script.
 * out        freed by the caller with plan_destroy; untouched on failure
 * out_notes  may be NULL; lives as long as the plan
 * returns    0; -EINVAL: the script is wrong; -ENOTSUP: Flink has it, Penstock has not (yet);
 *            -E2BIG: a limit; error then has text, place (file), line and column
 * threads    control */
int sql_plan(const struct sql_input *input, struct plan **out, struct sql_notes *out_notes,
             struct error *error);

/* Frees a plan. NULL is fine.
 * threads    control */
void plan_destroy(struct plan *plan);

/* Prints a plan for people: one tree a sink; a node that several read is printed once.
 * threads    control */
void plan_explain(const struct plan *plan, FILE *into);
