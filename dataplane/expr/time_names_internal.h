/* SPDX-License-Identifier: Apache-2.0 */
/* English names of months and weekdays, for printing and reading. */
#pragma once

extern const char *const time_months[12];
extern const char *const time_weekdays[7]; /* from Sunday */
