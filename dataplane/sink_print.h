/* SPDX-License-Identifier: Apache-2.0 */
/* The print connector as a record sink: lines wait in a ring of bytes between the lane, which must
 * not write to a terminal, and control, which does.
 *
 * Limits: a line fits half the ring. A full ring is back-pressure, like any full sink. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "dataplane/record.h"

#define SINK_PRINT_BYTES_DEFAULT (UINT32_C(1) << 20)

/* Makes one for a lane.
 * ring_bytes  a power of two
 * out         freed by sink_print_destroy
 * returns     0 or -ENOMEM
 * threads     control */
int sink_print_create(uint32_t ring_bytes, struct record_sink **out, struct error *error);

/* Frees it with what was not drained. NULL is fine.
 * threads  control */
void sink_print_destroy(struct record_sink *sink);

/* Writes the lines that wait. Topic 0 goes to `normal`, topic 1 to `errors`.
 * returns  how many lines
 * threads  control, one at a time */
uint32_t sink_print_drain(struct record_sink *sink, FILE *normal, FILE *errors);
