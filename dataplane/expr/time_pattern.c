/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling and printing of patterns; see time_pattern.h. Reading is in time_pattern_read.c. */
#include "dataplane/expr/time_pattern.h"

#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_names_internal.h"

const char *const time_months[12] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
const char *const time_weekdays[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool add_literal(struct time_pattern *out, uint32_t *used, uint8_t c)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(used != NULL);
    struct time_pattern_item *last = out->item_count == 0 ? NULL : &out->items[out->item_count - 1];
    if (*used == TIME_PATTERN_TEXT_MAX) {
        return false;
    }
    if (last == NULL || last->letter != '\0') {
        if (out->item_count == TIME_PATTERN_ITEMS_MAX) {
            return false;
        }
        last = &out->items[out->item_count++];
        *last = (struct time_pattern_item){.text = (uint16_t)*used};
    }
    out->text[(*used)++] = (char)c;
    last->bytes++;
    return true;
}

/* Takes quoted text from behind its first quote; two quotes are one.
 * returns  the place behind it, or 0 when the text does not end */
static size_t take_quoted(struct span pattern, size_t at, struct time_pattern *out, uint32_t *used)
{
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    if (at < pattern.bytes && pattern.data[at] == '\'') {
        return add_literal(out, used, '\'') ? at + 1 : 0;
    }
    while (at < pattern.bytes) {
        if (pattern.data[at] != '\'') {
            if (!add_literal(out, used, pattern.data[at])) {
                return 0;
            }
            at++;
        } else if (at + 1 < pattern.bytes && pattern.data[at + 1] == '\'') {
            if (!add_literal(out, used, '\'')) {
                return 0;
            }
            at += 2;
        } else {
            return at + 1;
        }
    }
    return 0;
}

const char *time_pattern_compile(struct span pattern, struct time_pattern *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    static const char known[] = "yuMLdDHhkKmsSAnNaEecQqwWFYG";
    *out = (struct time_pattern){.item_count = 0};
    uint32_t used = 0;
    size_t at = 0;
    while (at < pattern.bytes) {
        const uint8_t c = pattern.data[at];
        if (c == '\'') {
            at = take_quoted(pattern, at + 1, out, &used);
            if (at == 0) {
                return "the pattern ends within a quoted text";
            }
        } else if (is_letter(c)) {
            size_t count = 0;
            while (at + count < pattern.bytes && pattern.data[at + count] == c) {
                count++;
            }
            if (strchr(known, c) == NULL || count > 19 ||
                out->item_count == TIME_PATTERN_ITEMS_MAX) {
                return "the pattern has a letter that is not built";
            }
            out->items[out->item_count++] =
                (struct time_pattern_item){.letter = (char)c, .count = (uint8_t)count};
            at += count;
        } else if (strchr("[]{}#", c) != NULL) {
            return "the pattern has a reserved character that is not built";
        } else if (!add_literal(out, &used, c)) {
            return "the pattern is too long";
        } else {
            at++;
        }
    }
    return NULL;
}

/* The parts of one time, and where it is written. */
struct printer {
    struct civil date;
    int64_t days;
    int64_t ms;    /* of the day */
    int64_t nanos; /* of the second */
    bool plus;
    uint8_t *into;
    size_t used;
    size_t bytes;
    bool full;
};

static void put(struct printer *out, const char *text, size_t bytes)
{
    ASSERT_SLOW(out != NULL);
    if (bytes > out->bytes - out->used) {
        out->full = true;
        return;
    }
    memcpy(out->into + out->used, text, bytes);
    out->used += bytes;
}

static void put_number(struct printer *out, int64_t value, uint32_t width)
{
    ASSERT_SLOW(out != NULL);
    char text[INTEGER_TEXT_BYTES];
    const bool negative = value < 0;
    const uint32_t digits = integer_print(negative ? -value : value, text);
    put(out, "-", negative ? 1 : 0);
    for (uint32_t i = digits; i < width; i++) {
        put(out, "0", 1);
    }
    put(out, text, digits);
}

/* A name in full (four letters), short (up to three) or by its first letter (five). */
static void put_name(struct printer *out, const char *name, uint32_t count)
{
    const size_t full = strlen(name);
    put(out, name, count == 4 ? full : count == 5 ? 1 : full < 3 ? full : 3);
}

static void put_year(struct printer *out, int64_t year, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    if (count == 2) {
        put_number(out, floor_modulo(year, 100), 2);
        return;
    }
    if (out->plus && count >= 4 && year > 9999) {
        put(out, "+", 1);
    }
    put_number(out, year, count);
}

static void put_fraction(struct printer *out, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    int64_t value = out->nanos;
    for (uint32_t i = count; i < 9; i++) {
        value /= 10;
    }
    put_number(out, value, count < 9 ? count : 9);
    for (uint32_t i = 9; i < count; i++) {
        put(out, "0", 1);
    }
}

static int64_t sunday_of(int64_t days)
{
    return days - floor_modulo(days + 4, 7);
}

/* Weeks of the US: from Sunday, the first one holds 1 January. */
static int64_t us_week(int64_t days, int64_t year, int64_t *week_year)
{
    ASSERT_SLOW(week_year != NULL);
    const int64_t next = civil_days(year + 1, 1, 1);
    *week_year = year;
    if (sunday_of(days) + 6 >= next) {
        *week_year = year + 1;
        return 1;
    }
    return (days - sunday_of(civil_days(year, 1, 1))) / 7 + 1;
}

static void put_week(struct printer *out, char letter, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    int64_t week_year;
    const int64_t week = us_week(out->days, out->date.year, &week_year);
    if (letter == 'Y') {
        put_year(out, week_year, count);
    } else {
        put_number(out, week, count);
    }
}

static void put_quarter(struct printer *out, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    static const char *const ends[] = {"st", "nd", "rd", "th"};
    const int32_t quarter = (out->date.month - 1) / 3 + 1;
    if (count == 3) {
        put(out, "Q", 1);
    }
    put_number(out, quarter, count == 2 ? 2 : 1);
    if (count == 4) {
        put(out, ends[quarter - 1], 2);
        put(out, " quarter", 8);
    }
}

static void put_weekday(struct printer *out, char letter, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    const int64_t sunday_first = floor_modulo(out->days + 4, 7);
    if (letter != 'E' && count <= 2) {
        put_number(out, sunday_first + 1, count);
    } else {
        put_name(out, time_weekdays[sunday_first], count);
    }
}

static void put_date_field(struct printer *out, char letter, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    const struct civil *date = &out->date;
    switch (letter) {
    case 'y':
        put_year(out, date->year > 0 ? date->year : 1 - date->year, count);
        break;
    case 'u':
        put_year(out, date->year, count);
        break;
    case 'Y':
    case 'w':
        put_week(out, letter, count);
        break;
    case 'M':
    case 'L':
        if (count <= 2) {
            put_number(out, date->month, count);
        } else {
            put_name(out, time_months[date->month - 1], count);
        }
        break;
    case 'd':
        put_number(out, date->day, count);
        break;
    case 'D':
        put_number(out, out->days - civil_days(date->year, 1, 1) + 1, count);
        break;
    case 'Q':
    case 'q':
        put_quarter(out, count);
        break;
    case 'W':
        put_number(out, (out->days - sunday_of(civil_days(date->year, date->month, 1))) / 7 + 1,
                   count);
        break;
    case 'F':
        put_number(out, (date->day - 1) % 7 + 1, count);
        break;
    case 'G':
        put(out, date->year > 0 ? "AD" : "BC", 2);
        break;
    default:
        put_weekday(out, letter, count);
        break;
    }
}

static void put_clock_field(struct printer *out, char letter, uint32_t count)
{
    ASSERT_SLOW(out != NULL);
    const int64_t hour = out->ms / MS_PER_HOUR;
    switch (letter) {
    case 'H':
        put_number(out, hour, count);
        break;
    case 'k':
        put_number(out, hour == 0 ? 24 : hour, count);
        break;
    case 'K':
        put_number(out, hour % 12, count);
        break;
    case 'h':
        put_number(out, hour % 12 == 0 ? 12 : hour % 12, count);
        break;
    case 'm':
        put_number(out, out->ms / MS_PER_MINUTE % 60, count);
        break;
    case 's':
        put_number(out, out->ms / MS_PER_SECOND % 60, count);
        break;
    case 'S':
        put_fraction(out, count);
        break;
    case 'A':
        put_number(out, out->ms, count);
        break;
    case 'n':
        put_number(out, out->nanos, count);
        break;
    case 'N':
        put_number(out, out->ms / MS_PER_SECOND * 1000000000 + out->nanos, count);
        break;
    default: /* a */
        put(out, hour < 12 ? "AM" : "PM", 2);
        break;
    }
}

size_t time_pattern_print(const struct time_pattern *pattern, struct timestamp value, bool plus,
                          uint8_t *into, size_t bytes)
{
    ASSERT(value.ns >= 0);
    ASSERT(pattern != NULL && into != NULL);
    struct printer out = {
        .days = floor_divide(value.ms, MS_PER_DAY), .plus = plus, .into = into, .bytes = bytes};
    out.ms = value.ms - out.days * MS_PER_DAY;
    out.nanos = out.ms % MS_PER_SECOND * 1000000 + value.ns;
    out.date = civil_from_days(out.days);
    for (uint32_t i = 0; i < pattern->item_count; i++) {
        const struct time_pattern_item *item = &pattern->items[i];
        if (item->letter == '\0') {
            put(&out, pattern->text + item->text, item->bytes);
        } else if (strchr("HkKhmsSAnNa", item->letter) != NULL) {
            put_clock_field(&out, item->letter, item->count);
        } else {
            put_date_field(&out, item->letter, item->count);
        }
    }
    return out.full ? SIZE_MAX : out.used;
}
