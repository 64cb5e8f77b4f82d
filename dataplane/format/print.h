/* SPDX-License-Identifier: Apache-2.0 */
/* The print connector's lines. */
#pragma once

#include "base.h"
#include "dataplane/format/writer.h"
#include "dataplane/plan.h"

/* Writes a row as the print connector does: +I[1, a, null].
 * identifier  goes in front, NULL: none
 * threads     owning lane */
void print_encode_row(const char *identifier, const struct plan_sink_field *fields,
                      uint32_t field_count, const struct row_layout *layout, const struct row *row,
                      struct writer *writer);
