/* SPDX-License-Identifier: Apache-2.0 */
/* Units of time and months, for the kernels of time. */
#pragma once

#include "base.h"
#include "dataplane/expr/expr.h"

enum time_unit_kind {
    UNIT_YEAR = 0,
    UNIT_QUARTER,
    UNIT_MONTH,
    UNIT_WEEK,
    UNIT_DAY,
    UNIT_HOUR,
    UNIT_MINUTE,
    UNIT_SECOND,
    UNIT_MILLISECOND,
    UNIT_MICROSECOND,
    UNIT_NANOSECOND,
    UNIT_DECADE,
    UNIT_CENTURY,
    UNIT_MILLENNIUM,
    UNIT_DOW,
    UNIT_DOY,
    UNIT_ISODOW,
    UNIT_ISOYEAR,
    UNIT_EPOCH,
};

struct time_unit {
    const char *name;
    enum time_unit_kind kind;
    int64_t amount; /* in milliseconds, or in months; 0 when it is no span */
    bool months;
};

/* Finds the unit that a SYMBOL literal names.
 * returns  NULL when it names none; else a const of the program */
const struct time_unit *time_unit_find(const struct expr *symbol);

/* Adds months to a day, clamping to the month's end. */
int64_t time_add_months(int64_t days, int64_t months);
