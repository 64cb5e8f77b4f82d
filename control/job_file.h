/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a script file and saying what is wrong with it, for every command that takes one. Control
 * thread only. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "control/sql/sql.h"

#define SCRIPT_BYTES_MAX (UINT32_C(4) << 20)

/* A script and its plan. */
struct job_file {
    char *text; /* owned */
    struct plan *plan;
    struct sql_notes notes;
};

/* Reads and plans a script; prints its notes to `messages`.
 * out      freed by job_file_unload, also after a failure
 * returns  0, -ENOENT and other errors of reading, or what sql_plan returned */
int job_file_load(const char *path, struct job_file *out, FILE *messages, struct error *error);

/* Frees a script and its plan. */
void job_file_unload(struct job_file *script);

/* Prints an error as `PLACE:LINE:COLUMN: text`, leaving out what it does not have. */
void error_print(FILE *into, const struct error *error);
