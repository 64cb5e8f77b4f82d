/* SPDX-License-Identifier: Apache-2.0 */
/* CAST between times, and from text to times. The DATE and TIME of a TIMESTAMP are cut towards
 * 1970, so that before 1970 they are those of the next day (Flink's way); TIMESTAMP_LTZ goes
 * through the session's wall clock. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/expr/cast_internal.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_lenient.h"
#include "dataplane/expr/zone.h"

#define SHOWN_BYTES 80

/* What these casts prepare. The flag comes first: cast_bad reads it. */
struct time_cast {
    bool try_cast;
    struct zone *zone;
};

static void time_cast_destroy(void *constant)
{
    struct time_cast *cast = constant;
    zone_destroy(cast->zone);
    free(cast);
}

static const struct zone *zone_of(const struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    const struct time_cast *cast = run->constant;
    return cast->zone;
}

#define TIME_CAST(name, ...)                                                                       \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const struct vector *in = run->in[0];                                                      \
        struct vector *out = run->out;                                                             \
        KERNEL_ROWS(run, { __VA_ARGS__; });                                                        \
    }

static struct timestamp at_ms(int64_t ms)
{
    return (struct timestamp){.ms = ms};
}

/* Cuts milliseconds of a day to fraction digits, towards zero, and brings them into the day. */
static int64_t time_of(int64_t ms, uint8_t precision)
{
    static const int64_t steps[] = {1000, 100, 10, 1};
    const int64_t step = steps[precision < 3 ? precision : 3];
    return floor_modulo(ms % MS_PER_DAY / step * step, MS_PER_DAY);
}

TIME_CAST(timestamp_same, out->timestamp[i] = in->timestamp[i])
TIME_CAST(timestamp_shorter,
          out->timestamp[i] = timestamp_cut(in->timestamp[i], out->type.precision))
TIME_CAST(timestamp_to_date, out->i64[i] = in->timestamp[i].ms / MS_PER_DAY)
TIME_CAST(timestamp_to_time, out->i64[i] = time_of(in->timestamp[i].ms, out->type.precision))
TIME_CAST(date_to_timestamp, out->timestamp[i] = at_ms(in->i64[i] * MS_PER_DAY))
TIME_CAST(time_to_time, out->i64[i] = time_of(in->i64[i], out->type.precision))
TIME_CAST(date_same, out->i64[i] = in->i64[i])
TIME_CAST(date_to_ltz, out->timestamp[i] = at_ms(zone_utc(zone_of(run), in->i64[i] * MS_PER_DAY)))
TIME_CAST(ltz_to_date,
          out->i64[i] = floor_divide(zone_local(zone_of(run), in->timestamp[i].ms), MS_PER_DAY))
TIME_CAST(ltz_to_time,
          out->i64[i] = time_of(floor_modulo(zone_local(zone_of(run), in->timestamp[i].ms),
                                             MS_PER_DAY),
                                out->type.precision))

static void timestamp_to_ltz(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        struct timestamp value = run->in[0]->timestamp[i];
        value.ms = zone_utc(zone_of(run), value.ms);
        run->out->timestamp[i] = timestamp_cut(value, run->out->type.precision);
    });
}

static void ltz_to_timestamp(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        struct timestamp value = run->in[0]->timestamp[i];
        value.ms = zone_local(zone_of(run), value.ms);
        run->out->timestamp[i] = timestamp_cut(value, run->out->type.precision);
    });
}

static void bad_text(struct kernel_run *run, uint32_t row, struct span text)
{
    ASSERT_SLOW(run->out != NULL);
    const int shown = text.bytes > SHOWN_BYTES ? SHOWN_BYTES : (int)text.bytes;
    cast_bad(run, row, "For input string: '%.*s'.", shown, (const char *)text.data);
}

static void text_to_date(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (!date_parse_lenient(run->in[0]->text[i], &run->out->i64[i])) {
            bad_text(run, i, run->in[0]->text[i]);
        }
    });
}

static void text_to_time(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (!time_parse_lenient(run->in[0]->text[i], &run->out->i64[i])) {
            bad_text(run, i, run->in[0]->text[i]);
        }
    });
}

static void text_to_timestamp(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const bool local = run->out->type.kind == TYPE_TIMESTAMP_LTZ;
    KERNEL_ROWS(run, {
        struct timestamp value = {.ms = 0};
        if (!timestamp_parse_lenient(run->in[0]->text[i], run->out->type.precision, &value)) {
            bad_text(run, i, run->in[0]->text[i]);
        }
        value.ms = local ? zone_utc(zone_of(run), value.ms) : value.ms;
        run->out->timestamp[i] = value;
    });
}

/* Whole numbers to intervals and back keep the number. */
TIME_CAST(word_same, out->i64[i] = in->i64[i])

static kernel_function *find_from_timestamp(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    const bool shorter = from->precision > to->precision;
    switch (to->kind) {
    case TYPE_TIMESTAMP:
        return shorter ? timestamp_shorter : timestamp_same;
    case TYPE_TIMESTAMP_LTZ:
        return timestamp_to_ltz;
    case TYPE_DATE:
        return timestamp_to_date;
    case TYPE_TIME:
        return timestamp_to_time;
    default:
        return NULL;
    }
}

static kernel_function *find_from_ltz(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    const bool shorter = from->precision > to->precision;
    switch (to->kind) {
    case TYPE_TIMESTAMP:
        return ltz_to_timestamp;
    case TYPE_TIMESTAMP_LTZ:
        return shorter ? timestamp_shorter : timestamp_same;
    case TYPE_DATE:
        return ltz_to_date;
    case TYPE_TIME:
        return ltz_to_time;
    default:
        return NULL;
    }
}

static kernel_function *find_from_text(const struct type *to)
{
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    switch (to->kind) {
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return text_to_timestamp;
    case TYPE_DATE:
        return text_to_date;
    case TYPE_TIME:
        return text_to_time;
    default:
        return NULL;
    }
}

static kernel_function *find(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    switch (from->kind) {
    case TYPE_TIMESTAMP:
        return find_from_timestamp(from, to);
    case TYPE_TIMESTAMP_LTZ:
        return find_from_ltz(from, to);
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        return find_from_text(to);
    case TYPE_DATE:
        return to->kind == TYPE_DATE            ? date_same
               : to->kind == TYPE_TIMESTAMP     ? date_to_timestamp
               : to->kind == TYPE_TIMESTAMP_LTZ ? date_to_ltz
                                                : NULL;
    case TYPE_TIME:
        return to->kind == TYPE_TIME ? time_to_time : NULL;
    case TYPE_INTERVAL_DAY_TIME:
    case TYPE_INTERVAL_YEAR_MONTH:
        return to->kind == from->kind || type_is_integer(to) ? word_same : NULL;
    default:
        return type_is_integer(from) &&
                       (to->kind == TYPE_INTERVAL_DAY_TIME || to->kind == TYPE_INTERVAL_YEAR_MONTH)
                   ? word_same
                   : NULL;
    }
}

int cast_time_find(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT_SLOW(call->expr->kind == EXPR_CALL);
    ASSERT_SLOW(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    const struct expr *expr = call->expr;
    const struct type *from = &expr->arguments[0]->type;
    *out = (struct kernel_choice){.function = find(from, &expr->type), .mode = KERNEL_STRICT};
    if (out->function == NULL) {
        return -ENOENT;
    }
    struct time_cast *cast = calloc(1, sizeof(*cast));
    if (cast == NULL) {
        return error_set(error, -ENOMEM, "out of memory for an expression");
    }
    cast->try_cast = expr->function == EXPR_TRY_CAST;
    out->constant = cast;
    out->constant_destroy = time_cast_destroy;
    out->eager = !type_is_text(from) && type_slot_count(from) + type_slot_count(&expr->type) <= 4;
    if (from->kind == TYPE_TIMESTAMP_LTZ || expr->type.kind == TYPE_TIMESTAMP_LTZ) {
        cast->zone = zone_open(call->time_zone);
        if (cast->zone == NULL) {
            time_cast_destroy(cast);
            out->constant = NULL;
            return error_set(error, -EINVAL, "the time zone '%s' is not known", call->time_zone);
        }
    }
    return 0;
}
