/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times as text and back, in the strict ISO and SQL forms that the formats and CAST to
 * STRING use, and the calendar beneath (proleptic Gregorian, days counted from 1970-01-01). The
 * lenient forms that CAST from text takes are in time_lenient.h. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

#define DATE_TEXT_BYTES      32
#define TIME_TEXT_BYTES      24
#define TIMESTAMP_TEXT_BYTES 48
#define FRACTION_STRIPPED    255 /* as a precision: as many digits as the value has, no zeros */

#define MS_PER_SECOND INT64_C(1000)
#define MS_PER_MINUTE INT64_C(60000)
#define MS_PER_HOUR   INT64_C(3600000)
#define MS_PER_DAY    INT64_C(86400000)

struct civil {
    int64_t year;  /* 0 is 1 BC */
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
};

/* Counts the days from 1970-01-01 to a date.
 * month    1 to 12
 * day      may lie outside its month: it counts on
 * threads  any */
int64_t civil_days(int64_t year, int32_t month, int32_t day);

/* Finds the date of a day number.
 * threads  any */
struct civil civil_from_days(int64_t days);

/* Tells how many days a month has.
 * threads  any */
int32_t civil_month_days(int64_t year, int32_t month);

/* Divides rounding down; divisor positive.
 * threads  any */
static inline int64_t floor_divide(int64_t value, int64_t divisor)
{
    const int64_t quotient = value / divisor;
    return value % divisor < 0 ? quotient - 1 : quotient;
}

/* The rest of floor_divide, never negative.
 * threads  any */
static inline int64_t floor_modulo(int64_t value, int64_t divisor)
{
    const int64_t rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}

/* Writes yyyy-MM-dd.
 * plus     put a + before years past 9999, as the JSON sink does (CAST does not)
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t date_print(int64_t days, bool plus, char into[static DATE_TEXT_BYTES]);

/* Writes HH:mm:ss and a fraction.
 * time_ms    of the day
 * precision  digits of the fraction, 0 to 9, or FRACTION_STRIPPED
 * into       not ended by 0
 * returns    its bytes
 * threads    any */
uint32_t time_print(int64_t time_ms, uint8_t precision, char into[static TIME_TEXT_BYTES]);

/* How a timestamp is written or read. */
struct timestamp_form {
    char separator;        /* between date and time: ' ' (SQL) or 'T' (ISO-8601) */
    bool zulu;             /* ends in Z: TIMESTAMP_LTZ in the formats */
    bool seconds_optional; /* reading: HH:mm will do (ISO-8601) */
    bool plus;             /* writing: + before years past 9999 */
    uint8_t precision;     /* writing: as time_print's */
};

/* Writes yyyy-MM-dd HH:mm:ss and a fraction.
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t timestamp_print(struct timestamp value, const struct timestamp_form *form,
                         char into[static TIMESTAMP_TEXT_BYTES]);

/* Reads a date as java.time's ISO_LOCAL_DATE does: two-digit months and days, years of four digits,
 * longer ones with a sign; a day that does not exist is bad.
 * threads  any */
bool date_parse(struct span text, int64_t *days);

/* Reads HH:mm:ss with up to nine fraction digits (a bare point is fine), cut to milliseconds;
 * 24:00:00 is 0.
 * threads  any */
bool time_parse(struct span text, int64_t *time_ms);

/* Reads a timestamp of the given form, up to nine fraction digits. As java.time does, the 30th of
 * February is its last day and 24:00:00 the next midnight.
 * threads  any */
bool timestamp_parse(struct span text, const struct timestamp_form *form, struct timestamp *out);
