/* SPDX-License-Identifier: Apache-2.0 */
/* Lenient reading of dates and times; see time_lenient.h. */
#include "dataplane/expr/time_lenient.h"

#include "dataplane/expr/text_time.h"

#define DIGITS_MAX 9

static struct span trim(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    while (text.bytes > 0 && text.data[0] <= ' ') {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && text.data[text.bytes - 1] <= ' ') {
        text.bytes--;
    }
    return text;
}

static size_t find(struct span text, char c)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t at = 0;
    while (at < text.bytes && text.data[at] != (uint8_t)c) {
        at++;
    }
    return at;
}

/* Splits the part before a character off; the rest is what follows it.
 * returns  whether the character was there */
static bool split(struct span *rest, char c, struct span *part)
{
    ASSERT_SLOW(rest != NULL);
    ASSERT_SLOW(part != NULL);
    const size_t at = find(*rest, c);
    *part = (struct span){.data = rest->data, .bytes = at};
    const bool found = at < rest->bytes;
    rest->data += found ? at + 1 : at;
    rest->bytes -= found ? at + 1 : at;
    return found;
}

static bool read_number(struct span text, int64_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    text = trim(text);
    if (text.bytes == 0 || text.bytes > DIGITS_MAX) {
        return false;
    }
    int64_t value = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = value * 10 + (text.data[i] - '0');
    }
    *out = value;
    return true;
}

bool date_parse_lenient(struct span text, int64_t *days)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    struct span rest = text;
    /* What follows a blank is dropped, unless the text begins with one. */
    rest.bytes = text.bytes != 0 && text.data[0] != ' ' ? find(rest, ' ') : text.bytes;
    struct span part;
    int64_t parts[3] = {0, 1, 1};
    bool more = true;
    for (uint32_t i = 0; i < 3 && more; i++) {
        more = i < 2 && split(&rest, '-', &part);
        if (!read_number(more ? part : i < 2 ? part : rest, &parts[i])) {
            return false;
        }
    }
    if (parts[0] > 9999 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 ||
        parts[2] > civil_month_days(parts[0], (int32_t)parts[1])) {
        return false;
    }
    *days = civil_days(parts[0], (int32_t)parts[1], (int32_t)parts[2]);
    return true;
}

/* Digits after a point, as nanoseconds. */
static bool read_fraction(struct span text, int64_t *nanos)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (text.bytes > DIGITS_MAX) {
        return false;
    }
    int64_t value = 0;
    if (text.bytes != 0 && (!read_number(text, &value) || trim(text).bytes != text.bytes)) {
        return false;
    }
    for (size_t i = text.bytes; i < DIGITS_MAX; i++) {
        value *= 10;
    }
    *nanos = value;
    return true;
}

bool time_parse_lenient(struct span text, int64_t *time_ms)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    struct span rest = trim(text);
    struct span part;
    int64_t parts[3] = {0, 0, 0};
    int64_t nanos = 0;
    bool more = true;
    for (uint32_t i = 0; i < 3 && more; i++) {
        if (i == 2) {
            more = false;
            if (split(&rest, '.', &part) && !read_fraction(rest, &nanos)) {
                return false;
            }
        } else {
            more = split(&rest, ':', &part);
        }
        if (!read_number(part, &parts[i])) {
            return false;
        }
    }
    if (parts[0] > 23 || parts[1] > 59 || parts[2] > 59) {
        return false;
    }
    *time_ms = parts[0] * MS_PER_HOUR + parts[1] * MS_PER_MINUTE + parts[2] * MS_PER_SECOND +
               nanos / 1000000;
    return true;
}

/* Takes one or two digits, or four for a year, off the front. */
static bool take_digits(struct span *rest, uint32_t min, uint32_t max, int64_t *out)
{
    ASSERT_SLOW(rest != NULL);
    ASSERT_SLOW(out != NULL);
    uint32_t count = 0;
    *out = 0;
    while (count < max && count < rest->bytes && rest->data[count] >= '0' &&
           rest->data[count] <= '9') {
        *out = *out * 10 + (rest->data[count] - '0');
        count++;
    }
    rest->data += count;
    rest->bytes -= count;
    return count >= min;
}

static bool take(struct span *rest, char c)
{
    ASSERT_SLOW(rest != NULL);
    if (rest->bytes == 0 || rest->data[0] != (uint8_t)c) {
        return false;
    }
    rest->data++;
    rest->bytes--;
    return true;
}

static bool take_clock(struct span *rest, int64_t *seconds, int64_t *nanos)
{
    int64_t hour;
    int64_t minute;
    int64_t second;
    if (!take_digits(rest, 1, 2, &hour) || !take(rest, ':') || !take_digits(rest, 1, 2, &minute) ||
        !take(rest, ':') || !take_digits(rest, 1, 2, &second)) {
        return false;
    }
    if (take(rest, '.') && !read_fraction(*rest, nanos)) {
        return false;
    }
    if (*nanos == 0 && rest->bytes != 0 && (rest->data[-1] != '.')) {
        return false;
    }
    *seconds = hour * 3600 + minute * 60 + second;
    return hour <= 24 && minute <= 59 && second <= 59 &&
           (hour < 24 || (*seconds == 86400 && *nanos == 0));
}

bool timestamp_parse_lenient(struct span text, uint8_t precision, struct timestamp *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    struct span rest = text;
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t seconds = 0;
    int64_t nanos = 0;
    if (!take_digits(&rest, 4, 4, &year) || !take(&rest, '-') ||
        !take_digits(&rest, 1, 2, &month) || !take(&rest, '-') || !take_digits(&rest, 1, 2, &day)) {
        return false;
    }
    if (rest.bytes != 0 && (!take(&rest, ' ') || !take_clock(&rest, &seconds, &nanos))) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31 || year == 0) {
        return false;
    }
    const int32_t last = civil_month_days(year, (int32_t)month);
    const int64_t days = civil_days(year, (int32_t)month, day > last ? last : (int32_t)day);
    int64_t power = 1;
    for (uint8_t digit = precision; digit < DIGITS_MAX; digit++) {
        power *= 10;
    }
    nanos -= nanos % power;
    *out = (struct timestamp){
        .ms = days * MS_PER_DAY + seconds * MS_PER_SECOND + nanos / 1000000,
        .ns = (int32_t)(nanos % 1000000),
    };
    return true;
}

struct timestamp timestamp_cut(struct timestamp value, uint8_t precision)
{
    ASSERT_SLOW(value.ns >= 0);
    ASSERT(precision <= DIGITS_MAX);
    const int64_t nanos = floor_modulo(value.ms, MS_PER_SECOND) * 1000000 + value.ns;
    int64_t limit = 1;
    for (uint8_t digit = 0; digit < precision; digit++) {
        limit *= 10;
    }
    if (nanos < limit || (nanos == 0 && precision == 0)) {
        return value;
    }
    int64_t power = 1;
    for (uint8_t digit = precision <= 3 ? precision : 3; digit < 3; digit++) {
        power *= 10;
    }
    value.ms = value.ms / power * power;
    if (precision <= 3) {
        value.ns = 0;
        return value;
    }
    int32_t small = 1;
    for (uint8_t digit = precision; digit < DIGITS_MAX; digit++) {
        small *= 10;
    }
    value.ns = value.ns / small * small;
    return value;
}
