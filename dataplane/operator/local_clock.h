/* SPDX-License-Identifier: Apache-2.0 */
/* The clock on the wall of a time zone: from instants to local time and back, as Java's time zones
 * do it. Windows over TIMESTAMP_LTZ are cut on it. Zones come from the system's compiled tz data,
 * read once at start.
 *
 * Limits: behind the last transition in the data (2037) years are mapped back by the calendar's
 * 28-year cycle, which holds until 2099. */
#pragma once

#include "base.h"

struct local_clock;

/* Reads a zone.
 * zone     a tz name such as Europe/Berlin, or UTC, GMT, GMT+05:30, UTC-8, +02:00
 * out      freed by local_clock_destroy
 * returns  0, -EINVAL for an unknown zone, -ENOMEM
 * threads  control */
int local_clock_create(const char *zone, struct local_clock **out, struct error *error);

/* Frees it. NULL is fine.
 * threads  control */
void local_clock_destroy(struct local_clock *clock);

/* Local time of an instant, both as milliseconds since 1970.
 * threads  any */
int64_t local_clock_local(const struct local_clock *clock, int64_t epoch_ms);

/* Instant of a local time: in a skipped hour it moves on by what is skipped, in a repeated hour it
 * is the first pass (java.time.LocalDateTime.atZone).
 * threads  any */
int64_t local_clock_epoch(const struct local_clock *clock, int64_t local_ms);

/* Instant at which a local time is over for good: in a repeated hour the second pass (Flink's
 * TimeWindowUtil.toEpochMillsForTimer).
 * threads  any */
int64_t local_clock_epoch_last(const struct local_clock *clock, int64_t local_ms);
