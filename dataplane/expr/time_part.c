/* SPDX-License-Identifier: Apache-2.0 */
/* EXTRACT, and FLOOR and CEIL of times. Parts of a TIMESTAMP come by division towards 1970, so that
 * before 1970 a day that is not at midnight counts as the next one and parts of the time are
 * negative: Flink's answer, kept. TIMESTAMP_LTZ has its session's wall clock. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_internal.h"
#include "dataplane/expr/zone.h"

/* What these kernels prepare. */
struct part {
    enum time_unit_kind unit;
    int64_t amount;
    struct zone *zone; /* TIMESTAMP_LTZ */
};

static void part_destroy(void *constant)
{
    struct part *part = constant;
    zone_destroy(part->zone);
    free(part);
}

/* Monday is 1. */
static int64_t iso_weekday(int64_t days)
{
    return floor_modulo(days + 3, 7) + 1;
}

/* The year that owns the ISO week of a day: that of its Thursday. */
static int64_t iso_year(int64_t days)
{
    return civil_from_days(days - iso_weekday(days) + 4).year;
}

static int64_t iso_week(int64_t days)
{
    const int64_t thursday = days - iso_weekday(days) + 4;
    return (thursday - civil_days(civil_from_days(thursday).year, 1, 1)) / 7 + 1;
}

/* Centuries and millennia begin with their year 1. */
static int64_t span_of_years(int64_t year, int64_t length)
{
    return year > 0 ? (year + length - 1) / length : -((length - 1 - year) / length);
}

static int64_t date_part(enum time_unit_kind unit, int64_t days)
{
    const struct civil date = civil_from_days(days);
    switch (unit) {
    case UNIT_YEAR:
        return date.year;
    case UNIT_QUARTER:
        return (date.month - 1) / 3 + 1;
    case UNIT_MONTH:
        return date.month;
    case UNIT_WEEK:
        return iso_week(days);
    case UNIT_DAY:
        return date.day;
    case UNIT_DECADE:
        return floor_divide(date.year, 10);
    case UNIT_CENTURY:
        return span_of_years(date.year, 100);
    case UNIT_MILLENNIUM:
        return span_of_years(date.year, 1000);
    case UNIT_DOW:
        return iso_weekday(days) % 7 + 1;
    case UNIT_DOY:
        return days - civil_days(date.year, 1, 1) + 1;
    case UNIT_ISODOW:
        return iso_weekday(days);
    case UNIT_ISOYEAR:
        return iso_year(days);
    case UNIT_EPOCH:
        return days * 86400;
    default:
        return 0;
    }
}

/* Parts of the time; ms may be negative and so are they then. */
static int64_t clock_part(enum time_unit_kind unit, int64_t ms, int32_t ns)
{
    switch (unit) {
    case UNIT_HOUR:
        return ms % MS_PER_DAY / MS_PER_HOUR;
    case UNIT_MINUTE:
        return ms % MS_PER_HOUR / MS_PER_MINUTE;
    case UNIT_SECOND:
        return ms % MS_PER_MINUTE / MS_PER_SECOND;
    case UNIT_MILLISECOND:
        return ms % MS_PER_SECOND;
    case UNIT_MICROSECOND:
        return ms % MS_PER_SECOND * 1000 + ns / 1000;
    case UNIT_NANOSECOND:
        return ms % MS_PER_SECOND * 1000000 + ns;
    default:
        return ms / MS_PER_SECOND; /* EPOCH */
    }
}

static bool is_clock(enum time_unit_kind unit)
{
    return (unit >= UNIT_HOUR && unit <= UNIT_NANOSECOND) || unit == UNIT_EPOCH;
}

static void extract_timestamp(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 1);
    const struct part *part = run->constant;
    const bool clock = is_clock(part->unit);
    KERNEL_ROWS(run, {
        const struct timestamp value = run->in[1]->timestamp[i];
        run->out->i64[i] = clock ? clock_part(part->unit, value.ms, value.ns)
                                 : date_part(part->unit, value.ms / MS_PER_DAY);
    });
}

static void extract_ltz(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    const struct part *part = run->constant;
    const bool clock = is_clock(part->unit);
    KERNEL_ROWS(run, {
        const struct timestamp value = run->in[1]->timestamp[i];
        const int64_t local =
            part->unit == UNIT_EPOCH ? value.ms : zone_local(part->zone, value.ms);
        run->out->i64[i] = clock ? clock_part(part->unit, local, value.ns)
                                 : date_part(part->unit, floor_divide(local, MS_PER_DAY));
    });
}

static void extract_date(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, { run->out->i64[i] = date_part(part->unit, run->in[1]->i64[i]); });
}

static void extract_time(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, { run->out->i64[i] = clock_part(part->unit, run->in[1]->i64[i], 0); });
}

static void extract_days(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    KERNEL_ROWS(run, { run->out->i64[i] = run->in[1]->i64[i] / MS_PER_DAY; });
}

static void extract_months(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 1);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, {
        const int64_t months = run->in[1]->i64[i];
        run->out->i64[i] = part->unit == UNIT_YEAR      ? months / 12
                           : part->unit == UNIT_QUARTER ? months % 12 / 3 + 1
                                                        : months % 12;
    });
}

static kernel_function *find_extract(const struct type *from, enum time_unit_kind unit)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    switch (from->kind) {
    case TYPE_TIMESTAMP:
        return extract_timestamp;
    case TYPE_TIMESTAMP_LTZ:
        return extract_ltz;
    case TYPE_DATE:
        return is_clock(unit) && unit != UNIT_EPOCH ? NULL : extract_date;
    case TYPE_TIME:
        return is_clock(unit) ? extract_time : NULL;
    case TYPE_INTERVAL_DAY_TIME:
        return unit == UNIT_DAY ? extract_days : is_clock(unit) ? extract_time : NULL;
    case TYPE_INTERVAL_YEAR_MONTH:
        return unit <= UNIT_MONTH ? extract_months : NULL;
    default:
        return NULL;
    }
}

/* The first day of the span of years that a year lies in. */
static int64_t years_floor(int64_t year, int64_t length)
{
    const int64_t first =
        length == 10 ? floor_divide(year, 10) * 10 : floor_divide(year - 1, length) * length + 1;
    return civil_days(first, 1, 1);
}

static int64_t years_step(int64_t day, int64_t length)
{
    return civil_days(civil_from_days(day).year + length, 1, 1);
}

/* Rounds a day down to the start of its unit, or up unless it is one. */
static int64_t round_day(enum time_unit_kind unit, int64_t day, bool up)
{
    static const int64_t lengths[] = {
        [UNIT_YEAR] = 1, [UNIT_DECADE] = 10, [UNIT_CENTURY] = 100, [UNIT_MILLENNIUM] = 1000};
    const struct civil date = civil_from_days(day);
    int64_t first;
    int64_t next;
    switch (unit) {
    case UNIT_QUARTER:
        first = civil_days(date.year, (date.month - 1) / 3 * 3 + 1, 1);
        next = time_add_months(first, 3);
        break;
    case UNIT_MONTH:
        first = civil_days(date.year, date.month, 1);
        next = time_add_months(first, 1);
        break;
    case UNIT_WEEK:
        first = day - iso_weekday(day) % 7; /* Sunday */
        next = first + 7;
        break;
    case UNIT_YEAR:
        first = civil_days(date.year, 1, 1);
        next = years_step(first, 1);
        break;
    case UNIT_DECADE:
    case UNIT_CENTURY:
    case UNIT_MILLENNIUM:
        first = years_floor(date.year, lengths[unit]);
        next = years_step(first, lengths[unit]);
        break;
    default:
        return day;
    }
    /* Flink never takes a day for the start of its century when it rounds up. */
    const bool long_span = unit == UNIT_CENTURY || unit == UNIT_MILLENNIUM;
    return up && (first < day || long_span) ? next : first;
}

static int64_t round_ms(const struct part *part, int64_t ms, bool up)
{
    ASSERT_SLOW(part != NULL);
    if (part->amount != 0) {
        const int64_t down = floor_divide(ms, part->amount) * part->amount;
        return up && down < ms ? down + part->amount : down;
    }
    return round_day(part->unit, ms / MS_PER_DAY, up) * MS_PER_DAY;
}

static void round_timestamps(struct kernel_run *run, bool up)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, {
        const int64_t ms = run->in[0]->timestamp[i].ms;
        const int64_t offset = part->zone == NULL ? 0 : zone_local(part->zone, ms) - ms;
        run->out->timestamp[i] = (struct timestamp){.ms = round_ms(part, ms + offset, up) - offset};
    });
}

static void round_dates(struct kernel_run *run, bool up)
{
    ASSERT_SLOW(run->out != NULL);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, { run->out->i64[i] = round_day(part->unit, run->in[0]->i64[i], up); });
}

static void round_times(struct kernel_run *run, bool up)
{
    ASSERT_SLOW(run->out != NULL);
    const struct part *part = run->constant;
    KERNEL_ROWS(run, { run->out->i64[i] = round_ms(part, run->in[0]->i64[i], up); });
}

#define FLOOR_AND_CEIL(name)                                                                       \
    static void name##_floor(struct kernel_run *run)                                               \
    {                                                                                              \
        name(run, false);                                                                          \
    }                                                                                              \
    static void name##_ceil(struct kernel_run *run)                                                \
    {                                                                                              \
        name(run, true);                                                                           \
    }
FLOOR_AND_CEIL(round_timestamps)
FLOOR_AND_CEIL(round_dates)
FLOOR_AND_CEIL(round_times)

static kernel_function *find_rounding(const struct type *type, bool up,
                                      const struct time_unit *unit)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    ASSERT_SLOW(unit != NULL);
    const bool rounds = unit->amount != 0 || unit->kind == UNIT_DECADE ||
                        unit->kind == UNIT_CENTURY || unit->kind == UNIT_MILLENNIUM;
    if (!rounds) {
        return NULL;
    }
    switch (type->kind) {
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return up ? round_timestamps_ceil : round_timestamps_floor;
    case TYPE_DATE:
        return up ? round_dates_ceil : round_dates_floor;
    case TYPE_TIME:
        return is_clock(unit->kind) ? (up ? round_times_ceil : round_times_floor) : NULL;
    default:
        return NULL;
    }
}

static int prepare(const struct kernel_call *call, const struct time_unit *unit, bool local,
                   struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    struct part *part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return error_set(error, -ENOMEM, "out of memory for an expression");
    }
    part->unit = unit->kind;
    /* Weeks and months have no fixed grid of milliseconds that starts in 1970. */
    part->amount = unit->months || unit->kind == UNIT_WEEK ? 0 : unit->amount;
    if (local) {
        part->zone = zone_open(call->time_zone);
        if (part->zone == NULL) {
            part_destroy(part);
            return error_set(error, -EINVAL, "the time zone '%s' is not known", call->time_zone);
        }
    }
    out->constant = part;
    out->constant_destroy = part_destroy;
    return 0;
}

int time_part_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    const bool extract = expr->function == EXPR_EXTRACT;
    if ((!extract && expr->function != EXPR_FLOOR && expr->function != EXPR_CEIL) ||
        expr->argument_count != 2) {
        return -ENOENT;
    }
    const struct type *type = &expr->arguments[extract ? 1 : 0]->type;
    const struct time_unit *unit = time_unit_find(expr->arguments[extract ? 0 : 1]);
    if (unit == NULL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){
        .function = extract ? find_extract(type, unit->kind)
                            : find_rounding(type, expr->function == EXPR_CEIL, unit),
        .mode = KERNEL_STRICT,
        .eager = true};
    if (out->function == NULL) {
        return -ENOENT;
    }
    return prepare(call, unit, type->kind == TYPE_TIMESTAMP_LTZ, out, error);
}
