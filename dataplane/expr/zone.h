/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: the system's tz database, read once when a program is compiled. Afterwards a zone is
 * a const table; looking up an offset is a binary search. Times past the table's end follow the
 * zone's last rule, by cycles of 400 years. */
#pragma once

#include "base.h"

struct zone;

/* Reads a zone: a name of the tz database, UTC, or an offset (Z, +05:30, GMT+8, UTC-03:00).
 * returns  NULL when there is none of that name or memory is out; freed with zone_destroy
 * threads  control (reads files) */
struct zone *zone_open(const char *name);

/* Frees a zone. NULL is fine.
 * zone     a struct zone *; untyped so that it serves as a destructor
 * threads  control */
void zone_destroy(void *zone);

/* Tells the wall clock at an instant, both in milliseconds since 1970.
 * threads  any */
int64_t zone_local(const struct zone *zone, int64_t utc_ms);

/* Tells the instant of a wall clock. A time that the clock skips moves forward by the gap, one that
 * comes twice is the first.
 * threads  any */
int64_t zone_utc(const struct zone *zone, int64_t local_ms);
