/* SPDX-License-Identifier: Apache-2.0 */
/* The raw format: a record's value or key is one column. Text and bytes pass through as they are,
 * numbers have a fixed width in either byte order. Nothing is checked beyond the width. */
#pragma once

#include "base.h"
#include "dataplane/plan.h"

/* Reads the one column of a raw value or key.
 * out      text is borrowed from bytes
 * returns  false when the width is not the type's
 * threads  any */
bool raw_decode(const struct type *type, bool little_endian, struct span bytes, struct value *out);

/* Writes one value.
 * value    not NULL
 * into     at least 8 bytes
 * returns  its bytes; more than into.bytes: a text that did not fit
 * threads  any */
size_t raw_encode(const struct type *type, bool little_endian, const struct value *value,
                  struct span_mut into);
