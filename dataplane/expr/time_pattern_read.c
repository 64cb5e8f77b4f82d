/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by patterns, exact (java.time) and lenient (SimpleDateFormat); see time_pattern.h. */
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_names_internal.h"
#include "dataplane/expr/time_pattern.h"

#define DIGITS_MAX 15

/* What was read, with the defaults of a field that no pattern item sets. */
struct fields {
    int64_t year, month, day, day_of_year;
    int64_t hour, hour_of_half, minute, second, nanos;
    bool afternoon, has_half, has_day_of_year;
};

struct reader {
    struct span text;
    size_t at;
    bool lenient;
};

static bool is_digit(const struct reader *in, size_t at)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    return at < in->text.bytes && in->text.data[at] >= '0' && in->text.data[at] <= '9';
}

static uint32_t count_digits(const struct reader *in)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    uint32_t count = 0;
    while (count < DIGITS_MAX && is_digit(in, in->at + count)) {
        count++;
    }
    return count;
}

static int64_t take_digits(struct reader *in, uint32_t count)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    int64_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        value = value * 10 + (in->text.data[in->at++] - '0');
    }
    return value;
}

static bool is_numeric(const struct time_pattern_item *item)
{
    ASSERT_SLOW(item != NULL);
    if (item->letter == '\0' || item->letter == 'a' || item->letter == 'E' || item->letter == 'G') {
        return false;
    }
    return !((item->letter == 'M' || item->letter == 'L') && item->count > 2);
}

/* Digits that the numeric fields right behind an item need. */
static uint32_t reserved(const struct time_pattern *pattern, uint32_t index)
{
    ASSERT_SLOW(pattern->item_count <= TIME_PATTERN_ITEMS_MAX);
    uint32_t digits = 0;
    for (uint32_t i = index + 1; i < pattern->item_count && is_numeric(&pattern->items[i]); i++) {
        digits += pattern->items[i].count;
    }
    return digits;
}

/* How many digits a field takes here; 0 when they are not there. */
static uint32_t width_of(const struct reader *in, const struct time_pattern *pattern,
                         uint32_t index)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    ASSERT_SLOW(pattern->item_count <= TIME_PATTERN_ITEMS_MAX);
    const struct time_pattern_item *item = &pattern->items[index];
    const uint32_t there = count_digits(in);
    const uint32_t behind = reserved(pattern, index);
    if (in->lenient) {
        return behind != 0 && there > item->count ? item->count : there;
    }
    const bool year = item->letter == 'y' || item->letter == 'u';
    if (year && item->count != 2) {
        const uint32_t width = there > behind ? there - behind : 0;
        const bool good = item->count < 4 ? width >= 1 : width == 4;
        return good ? width : 0;
    }
    if (item->count == 1 && item->letter != 'S') {
        return behind != 0 && there > 1 ? 1 : there;
    }
    return there >= item->count ? item->count : 0;
}

static bool take_name(struct reader *in, const char *const *names, uint32_t count, uint32_t letters,
                      int64_t *index)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    for (uint32_t i = 0; i < count; i++) {
        const size_t full = strlen(names[i]);
        const size_t bytes = letters == 4 ? full : full < 3 ? full : 3;
        if (in->text.bytes - in->at >= bytes &&
            memcmp(in->text.data + in->at, names[i], bytes) == 0) {
            in->at += bytes;
            *index = i;
            return true;
        }
    }
    return false;
}

static bool take_text(struct reader *in, const struct time_pattern_item *item, struct fields *out)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    ASSERT_SLOW(item != NULL);
    static const char *const halves[] = {"AM", "PM"};
    static const char *const eras[] = {"AD"};
    int64_t index;
    switch (item->letter) {
    case 'M':
    case 'L':
        if (!take_name(in, time_months, 12, item->count, &index)) {
            return false;
        }
        out->month = index + 1;
        return true;
    case 'E':
        return take_name(in, time_weekdays, 7, item->count, &index);
    case 'a':
        if (!take_name(in, halves, 2, 4, &index)) {
            return false;
        }
        out->afternoon = index == 1;
        return true;
    default:
        return take_name(in, eras, 1, 4, &index);
    }
}

static bool set_field(const struct time_pattern_item *item, int64_t value, uint32_t digits,
                      bool lenient, struct fields *out)
{
    ASSERT_SLOW(item != NULL);
    switch (item->letter) {
    case 'y':
    case 'u':
        out->year = item->count == 2 && digits == 2 ? 2000 + value : value;
        return true;
    case 'M':
    case 'L':
        out->month = value;
        return true;
    case 'd':
        out->day = value;
        return true;
    case 'D':
        out->day_of_year = value;
        out->has_day_of_year = true;
        return true;
    case 'H':
        out->hour = value;
        return true;
    case 'k':
        out->hour = value == 24 ? 0 : value;
        return true;
    case 'h':
    case 'K':
        out->hour_of_half = value == 12 ? 0 : value;
        out->has_half = true;
        return true;
    case 'm':
        out->minute = value;
        return true;
    case 's':
        out->second = value;
        return true;
    case 'S':
        if (lenient) {
            out->nanos = value * 1000000;
            return true;
        }
        for (uint32_t i = digits; i < 9; i++) {
            value *= 10;
        }
        out->nanos = value;
        return digits <= 9;
    default:
        return false;
    }
}

static bool take_literal(struct reader *in, const char *text, size_t bytes)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    if (in->text.bytes - in->at < bytes || memcmp(in->text.data + in->at, text, bytes) != 0) {
        return false;
    }
    in->at += bytes;
    return true;
}

static bool take_item(struct reader *in, const struct time_pattern *pattern, uint32_t index,
                      struct fields *out)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    ASSERT_SLOW(pattern->item_count <= TIME_PATTERN_ITEMS_MAX);
    const struct time_pattern_item *item = &pattern->items[index];
    if (item->letter == '\0') {
        return take_literal(in, pattern->text + item->text, item->bytes);
    }
    while (in->lenient && in->at < in->text.bytes &&
           (in->text.data[in->at] == ' ' || in->text.data[in->at] == '\t')) {
        in->at++;
    }
    if (!is_numeric(item)) {
        return take_text(in, item, out);
    }
    const bool negative = in->lenient && in->at < in->text.bytes && in->text.data[in->at] == '-' &&
                          is_digit(in, in->at + 1);
    in->at += negative ? 1 : 0;
    const uint32_t digits = width_of(in, pattern, index);
    if (digits == 0) {
        return false;
    }
    const int64_t value = take_digits(in, digits);
    return set_field(item, negative ? -value : value, digits, in->lenient, out);
}

static bool take_all(struct reader *in, const struct time_pattern *pattern, struct fields *out)
{
    ASSERT_SLOW(in->at <= in->text.bytes);
    ASSERT_SLOW(pattern->item_count <= TIME_PATTERN_ITEMS_MAX);
    ASSERT_SLOW(out != NULL);
    *out = (struct fields){.year = 1970, .month = 1, .day = 1};
    for (uint32_t i = 0; i < pattern->item_count; i++) {
        if (!take_item(in, pattern, i, out)) {
            return false;
        }
    }
    if (out->has_half) {
        out->hour = out->hour_of_half + (out->afternoon ? 12 : 0);
    }
    return true;
}

static bool in_range(const struct fields *in)
{
    ASSERT_SLOW(in != NULL);
    const bool midnight = in->hour == 24 && in->minute == 0 && in->second == 0 && in->nanos == 0;
    return in->month >= 1 && in->month <= 12 && in->day >= 1 && in->day <= 31 &&
           (in->hour <= 23 || midnight) && in->minute <= 59 && in->second <= 59 && in->year >= 1 &&
           in->year <= 999999999;
}

bool time_pattern_read(const struct time_pattern *pattern, struct span text, struct timestamp *out)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT(pattern != NULL && out != NULL);
    struct reader in = {.text = text};
    struct fields fields;
    if (!take_all(&in, pattern, &fields) || in.at != text.bytes || !in_range(&fields)) {
        return false;
    }
    const int32_t month = (int32_t)fields.month;
    const int32_t last = civil_month_days(fields.year, month);
    int64_t days = civil_days(fields.year, month, fields.day > last ? last : (int32_t)fields.day);
    if (fields.has_day_of_year) {
        days = civil_days(fields.year, 1, 1) + fields.day_of_year - 1;
    }
    *out = (struct timestamp){
        .ms = days * MS_PER_DAY + fields.hour * MS_PER_HOUR + fields.minute * MS_PER_MINUTE +
              fields.second * MS_PER_SECOND + fields.nanos / 1000000,
        .ns = (int32_t)(fields.nanos % 1000000),
    };
    return true;
}

bool time_pattern_read_lenient(const struct time_pattern *pattern, struct span text, int64_t *ms)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT(pattern != NULL && ms != NULL);
    struct reader in = {.text = text, .lenient = true};
    struct fields fields;
    const int64_t limit = INT64_C(100000000000);
    if (!take_all(&in, pattern, &fields) || fields.year > 200000000 || fields.day > limit ||
        fields.hour > limit || fields.minute > limit || fields.second > limit ||
        fields.month > limit || fields.nanos > limit * 1000000) {
        return false;
    }
    const int64_t index = fields.year * 12 + fields.month - 1;
    const int64_t days =
        civil_days(floor_divide(index, 12), (int32_t)floor_modulo(index, 12) + 1, 1);
    const int64_t day = fields.has_day_of_year ? fields.day_of_year : fields.day;
    *ms = (days + day - 1) * MS_PER_DAY + fields.hour * MS_PER_HOUR +
          fields.minute * MS_PER_MINUTE + fields.second * MS_PER_SECOND + fields.nanos / 1000000;
    return true;
}
