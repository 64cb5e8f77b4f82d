/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar by whole 400-year cycles of 146,097 days, and fixed-width printing and reading. */
#include "dataplane/expr/text_time.h"

#include "dataplane/expr/text_number.h"

#define CYCLE_DAYS        146097
#define DAYS_0000_TO_1970 719468 /* from 0000-03-01 */
#define YEAR_DIGITS_MAX   9

int64_t civil_days(int64_t year, int32_t month, int32_t day)
{
    ASSERT(month >= 1 && month <= 12);
    /* Years begin in March here, so that the leap day is the last one. */
    const int64_t shifted = month <= 2 ? year - 1 : year;
    const int64_t cycle = floor_divide(shifted, 400);
    const int64_t of_cycle = shifted - cycle * 400;
    const int64_t of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    const int64_t days = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year;
    return cycle * CYCLE_DAYS + days - DAYS_0000_TO_1970;
}

struct civil civil_from_days(int64_t days)
{
    const int64_t shifted = days + DAYS_0000_TO_1970;
    const int64_t cycle = floor_divide(shifted, CYCLE_DAYS);
    const int64_t of_cycle = shifted - cycle * CYCLE_DAYS;
    const int64_t year = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    const int64_t of_year = of_cycle - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153;
    const struct civil out = {
        .year = year + cycle * 400 + (month >= 10 ? 1 : 0),
        .month = (int32_t)(month < 10 ? month + 3 : month - 9),
        .day = (int32_t)(of_year - (153 * month + 2) / 5 + 1),
    };
    ASSERT_SLOW(civil_days(out.year, out.month, out.day) == days);
    return out;
}

int32_t civil_month_days(int64_t year, int32_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    ASSERT(month >= 1 && month <= 12);
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static uint32_t put_two(char *into, int64_t value)
{
    ASSERT_SLOW(into != NULL);
    into[0] = (char)('0' + value / 10 % 10);
    into[1] = (char)('0' + value % 10);
    return 2;
}

static uint32_t put_year(char *into, int64_t year, bool plus)
{
    uint32_t at = 0;
    if (year < 0) {
        into[at++] = '-';
        year = -year;
    } else if (year > 9999 && plus) {
        into[at++] = '+';
    }
    if (year > 9999) {
        return at + integer_print(year, into + at);
    }
    at += put_two(into + at, year / 100);
    return at + put_two(into + at, year % 100);
}

/* Longer than the room of the public functions never comes: years of nine digits at most. */
static uint32_t put_date(char *into, int64_t days, bool plus)
{
    ASSERT_SLOW(into != NULL);
    const struct civil date = civil_from_days(days);
    uint32_t at = put_year(into, date.year, plus);
    into[at++] = '-';
    at += put_two(into + at, date.month);
    into[at++] = '-';
    return at + put_two(into + at, date.day);
}

uint32_t date_print(int64_t days, bool plus, char into[static DATE_TEXT_BYTES])
{
    ASSERT(days >= INT32_MIN && days <= INT32_MAX);
    return put_date(into, days, plus);
}

static uint32_t put_fraction(char *into, uint32_t nanos, uint8_t precision)
{
    char digits[9];
    for (uint32_t i = 9; i-- > 0;) {
        digits[i] = (char)('0' + nanos % 10);
        nanos /= 10;
    }
    uint32_t count = precision;
    if (precision == FRACTION_STRIPPED) {
        count = 9;
        while (count > 0 && digits[count - 1] == '0') {
            count--;
        }
    }
    ASSERT(count <= 9);
    if (count == 0) {
        return 0;
    }
    into[0] = '.';
    memcpy(into + 1, digits, count);
    return count + 1;
}

static uint32_t put_time(char *into, int64_t time_ms, int32_t ns, uint8_t precision)
{
    ASSERT_SLOW(into != NULL);
    uint32_t at = put_two(into, time_ms / MS_PER_HOUR);
    into[at++] = ':';
    at += put_two(into + at, time_ms / MS_PER_MINUTE % 60);
    into[at++] = ':';
    at += put_two(into + at, time_ms / MS_PER_SECOND % 60);
    const uint32_t nanos = (uint32_t)(time_ms % MS_PER_SECOND) * 1000000 + (uint32_t)ns;
    return at + put_fraction(into + at, nanos, precision);
}

uint32_t time_print(int64_t time_ms, uint8_t precision, char into[static TIME_TEXT_BYTES])
{
    ASSERT(time_ms >= 0 && time_ms < 100 * MS_PER_HOUR);
    return put_time(into, time_ms, 0, precision);
}

uint32_t timestamp_print(struct timestamp value, const struct timestamp_form *form,
                         char into[static TIMESTAMP_TEXT_BYTES])
{
    ASSERT(form != NULL);
    ASSERT(value.ns >= 0 && value.ns < 1000000);
    const int64_t days = floor_divide(value.ms, MS_PER_DAY);
    uint32_t at = put_date(into, days, form->plus);
    into[at++] = form->separator;
    at += put_time(into + at, value.ms - days * MS_PER_DAY, value.ns, form->precision);
    if (form->zulu) {
        into[at++] = 'Z';
    }
    ASSERT(at <= TIMESTAMP_TEXT_BYTES);
    return at;
}

/* Text being read from its start. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static bool take(struct reader *in, char c)
{
    ASSERT_SLOW(in->at <= in->end);
    if (in->at == in->end || *in->at != (uint8_t)c) {
        return false;
    }
    in->at++;
    return true;
}

static uint32_t count_digits(const struct reader *in)
{
    ASSERT_SLOW(in->at <= in->end);
    uint32_t count = 0;
    while (in->at + count != in->end && in->at[count] >= '0' && in->at[count] <= '9') {
        count++;
    }
    return count;
}

static int64_t take_number(struct reader *in, uint32_t digits)
{
    ASSERT_SLOW(in->at <= in->end);
    int64_t value = 0;
    for (uint32_t i = 0; i < digits; i++) {
        value = value * 10 + (*in->at++ - '0');
    }
    return value;
}

static bool take_two(struct reader *in, int64_t *value)
{
    ASSERT_SLOW(in->at <= in->end);
    if (count_digits(in) < 2) {
        return false;
    }
    *value = take_number(in, 2);
    return true;
}

/* Four digits; longer years need a sign, and a + needs a longer year. */
static bool take_year(struct reader *in, int64_t *year)
{
    ASSERT_SLOW(in->at <= in->end);
    const bool negative = take(in, '-');
    const bool plus = !negative && take(in, '+');
    const uint32_t digits = count_digits(in);
    const bool longer = digits > 4 && digits <= YEAR_DIGITS_MAX;
    if (plus ? !longer : negative ? digits != 4 && !longer : digits != 4) {
        return false;
    }
    const int64_t value = take_number(in, digits);
    *year = negative ? -value : value;
    return !negative || value != 0; /* java.time takes no -0000 */
}

static bool take_date(struct reader *in, int64_t *year, int64_t *month, int64_t *day)
{
    ASSERT_SLOW(in->at <= in->end);
    return take_year(in, year) && take(in, '-') && take_two(in, month) && take(in, '-') &&
           take_two(in, day) && *month >= 1 && *month <= 12 && *day >= 1 && *day <= 31;
}

/* A time of day in nanoseconds past its whole seconds; 24:00:00 passes. */
struct clock_reading {
    int64_t seconds;
    int64_t nanos;
};

static bool take_fraction(struct reader *in, int64_t *nanos)
{
    ASSERT_SLOW(in->at <= in->end);
    ASSERT_SLOW(nanos != NULL);
    *nanos = 0;
    if (!take(in, '.')) {
        return true;
    }
    uint32_t digits = count_digits(in);
    if (digits > 9) {
        return false;
    }
    *nanos = take_number(in, digits);
    for (; digits < 9; digits++) {
        *nanos *= 10;
    }
    return true;
}

static bool take_clock(struct reader *in, bool seconds_optional, struct clock_reading *out)
{
    ASSERT_SLOW(in->at <= in->end);
    ASSERT_SLOW(out != NULL);
    int64_t hour;
    int64_t minute;
    int64_t second = 0;
    out->nanos = 0;
    if (!take_two(in, &hour) || !take(in, ':') || !take_two(in, &minute)) {
        return false;
    }
    if (take(in, ':')) {
        if (!take_two(in, &second) || !take_fraction(in, &out->nanos)) {
            return false;
        }
    } else if (!seconds_optional) {
        return false;
    }
    out->seconds = hour * 3600 + minute * 60 + second;
    return hour <= 24 && minute <= 59 && second <= 59 &&
           (out->seconds < 86400 || (out->seconds == 86400 && out->nanos == 0));
}

bool date_parse(struct span text, int64_t *days)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    struct reader in = {.at = text.data, .end = text.data + text.bytes};
    int64_t year;
    int64_t month;
    int64_t day;
    if (!take_date(&in, &year, &month, &day) || in.at != in.end ||
        day > civil_month_days(year, (int32_t)month)) {
        return false;
    }
    *days = civil_days(year, (int32_t)month, (int32_t)day);
    return true;
}

bool time_parse(struct span text, int64_t *time_ms)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    struct reader in = {.at = text.data, .end = text.data + text.bytes};
    struct clock_reading clock;
    if (!take_clock(&in, false, &clock) || in.at != in.end) {
        return false;
    }
    *time_ms = clock.seconds % 86400 * MS_PER_SECOND + clock.nanos / 1000000;
    return true;
}

bool timestamp_parse(struct span text, const struct timestamp_form *form, struct timestamp *out)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT(form != NULL && out != NULL);
    struct reader in = {.at = text.data, .end = text.data + text.bytes};
    int64_t year;
    int64_t month;
    int64_t day;
    struct clock_reading clock;
    if (!take_date(&in, &year, &month, &day) || !take(&in, form->separator) ||
        !take_clock(&in, form->seconds_optional, &clock) || (form->zulu && !take(&in, 'Z')) ||
        in.at != in.end) {
        return false;
    }
    const int32_t last = civil_month_days(year, (int32_t)month);
    const int64_t days = civil_days(year, (int32_t)month, day > last ? last : (int32_t)day);
    *out = (struct timestamp){
        .ms = days * MS_PER_DAY + clock.seconds * MS_PER_SECOND + clock.nanos / 1000000,
        .ns = (int32_t)(clock.nanos % 1000000),
    };
    return true;
}
