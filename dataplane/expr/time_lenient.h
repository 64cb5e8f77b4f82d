/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of dates and times that CAST from text, TO_DATE and TO_TIMESTAMP take, which are more
 * lenient than those of the formats (text_time.h), each in its own way. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

/* Reads a date: a year alone, a year and a month, one-digit months and days, blanks round the
 * parts, anything behind a blank after the date (when it begins with no blank). The day must exist,
 * the year be 0 to 9999.
 * threads  any */
bool date_parse_lenient(struct span text, int64_t *days);

/* Reads h, h:m or h:m:s with a fraction.
 * threads  any */
bool time_parse_lenient(struct span text, int64_t *time_ms);

/* Reads yyyy-[M]M-[d]d, with [H]H:[m]m:[s]s and up to nine fraction digits behind a blank or
 * without a time. A day past the month's end is its last, 24:00:00 the next midnight.
 * precision  digits of the fraction that stay; the others are cut
 * threads    any */
bool timestamp_parse_lenient(struct span text, uint8_t precision, struct timestamp *out);

/* Cuts a timestamp to fewer fraction digits as Flink does: towards 1970 for up to three digits, and
 * not at all when its nanoseconds of the second, as a number, have no more digits than that.
 * threads  any */
struct timestamp timestamp_cut(struct timestamp value, uint8_t precision);
