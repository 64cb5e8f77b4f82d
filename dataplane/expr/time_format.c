/* SPDX-License-Identifier: Apache-2.0 */
/* DATE_FORMAT, TO_DATE, TO_TIMESTAMP, TO_TIMESTAMP_LTZ, UNIX_TIMESTAMP, FROM_UNIXTIME, CONVERT_TZ.
 * Patterns and zones are constant and prepared at compile time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_lenient.h"
#include "dataplane/expr/time_pattern.h"
#include "dataplane/expr/zone.h"

#define DEFAULT_PATTERN  "yyyy-MM-dd HH:mm:ss"
#define PRINTED_MAX      512 /* bytes of a time by any pattern */
#define YEAR_0001_MS     INT64_C(-62135596800000)
#define YEAR_9999_END_MS INT64_C(253402300799999)

struct format {
    struct time_pattern pattern; /* of the call */
    struct time_pattern plain;   /* yyyy-MM-dd HH:mm:ss */
    bool has_pattern;
    struct zone *zone; /* of the session, or CONVERT_TZ's first */
    struct zone *into; /* CONVERT_TZ's second */
    int64_t precision; /* TO_TIMESTAMP_LTZ */
};

static void format_destroy(void *constant)
{
    struct format *format = constant;
    zone_destroy(format->zone);
    zone_destroy(format->into);
    free(format);
}

static void print(struct kernel_run *run, uint32_t row, const struct time_pattern *pattern,
                  struct timestamp value, bool plus)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    uint8_t text[PRINTED_MAX];
    const size_t bytes = time_pattern_print(pattern, value, plus, text, sizeof(text));
    if (bytes == SIZE_MAX) {
        kernel_fail(run, row, "a time by this pattern is longer than %d bytes", PRINTED_MAX);
        return;
    }
    (void)text_copy(run, text, bytes, &run->out->text[row]);
}

static void date_format(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, { print(run, i, &format->pattern, run->in[0]->timestamp[i], true); });
}

static void date_format_ltz(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        struct timestamp value = run->in[0]->timestamp[i];
        value.ms = zone_local(format->zone, value.ms);
        print(run, i, &format->pattern, value, true);
    });
}

static void date_format_text(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        struct timestamp value = {.ms = 0};
        if (time_pattern_read_lenient(&format->plain, run->in[0]->text[i], &value.ms)) {
            print(run, i, &format->pattern, value, false);
        } else {
            kernel_null(run, i);
        }
    });
}

static void to_date(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        int64_t ms;
        if (!format->has_pattern) {
            if (!date_parse_lenient(text, &run->out->i64[i])) {
                kernel_null(run, i);
            }
        } else if (time_pattern_read_lenient(&format->pattern, text, &ms)) {
            run->out->i64[i] = floor_divide(ms, MS_PER_DAY);
        } else {
            kernel_null(run, i);
        }
    });
}

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

/* By the pattern, else by the default form, which keeps all digits then. */
static bool read_timestamp(const struct format *format, struct span text, struct timestamp *out)
{
    ASSERT_SLOW(format != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (!format->has_pattern) {
        return timestamp_parse_lenient(text, 3, out);
    }
    return time_pattern_read(&format->pattern, text, out) ||
           timestamp_parse_lenient(trim(text), 9, out);
}

static void to_timestamp(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        if (!read_timestamp(format, run->in[0]->text[i], &run->out->timestamp[i])) {
            kernel_null(run, i);
        }
    });
}

static void put_instant(struct kernel_run *run, uint32_t row, bool good, int64_t ms)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    if (good && ms >= YEAR_0001_MS && ms <= YEAR_9999_END_MS) {
        run->out->timestamp[row] = (struct timestamp){.ms = ms};
    } else {
        kernel_null(run, row);
    }
}

static void ltz_from_integer(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    const struct format *format = run->constant;
    const int64_t factor = format->precision == 0 ? 1000 : 1;
    KERNEL_ROWS(run, {
        int64_t ms;
        const bool good = !__builtin_mul_overflow(run->in[0]->i64[i], factor, &ms);
        put_instant(run, i, good, ms);
    });
}

/* Seconds are split at the point first, so that the binary fraction shows: 1700000000.123 is 122
 * milliseconds. */
static int64_t ms_of_seconds(double seconds)
{
    const int64_t whole = (int64_t)seconds;
    const int64_t nanos = (int64_t)((seconds - (double)whole) * 1e9);
    return whole * MS_PER_SECOND + floor_divide(nanos, 1000000);
}

static void ltz_from_double(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        const double value = run->in[0]->f64[i];
        const bool good = fabs(value) < 1e15; /* false for NaN */
        const int64_t ms = !good                    ? 0
                           : format->precision == 0 ? ms_of_seconds(value)
                                                    : (int64_t)value;
        put_instant(run, i, good, ms);
    });
}

static void ltz_from_text(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        struct timestamp *out = &run->out->timestamp[i];
        const bool good = format->has_pattern ? time_pattern_read(&format->pattern, text, out)
                                              : timestamp_parse_lenient(text, 3, out);
        if (!good) {
            kernel_fail(run, i, "Text '%.*s' could not be parsed",
                        (int)(text.bytes < 80 ? text.bytes : 80), (const char *)text.data);
        }
    });
}

static void unix_now(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run,
                { run->out->i64[i] = floor_divide(run->context->processing_ms, MS_PER_SECOND); });
}

/* A text that cannot be read is the smallest number, as in Flink. */
static void unix_timestamp(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        int64_t ms;
        if (time_pattern_read_lenient(&format->pattern, run->in[0]->text[i], &ms)) {
            run->out->i64[i] = zone_utc(format->zone, ms) / MS_PER_SECOND;
        } else {
            run->out->i64[i] = INT64_MIN;
        }
    });
}

static void from_unixtime(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        int64_t ms;
        if (__builtin_mul_overflow(run->in[0]->i64[i], MS_PER_SECOND, &ms) || ms > INT64_MAX / 4 ||
            ms < INT64_MIN / 4) {
            kernel_null(run, i);
            continue;
        }
        print(run, i, &format->pattern, (struct timestamp){.ms = zone_local(format->zone, ms)},
              false);
    });
}

static void convert_tz(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct format *format = run->constant;
    KERNEL_ROWS(run, {
        int64_t ms;
        if (time_pattern_read_lenient(&format->plain, run->in[0]->text[i], &ms)) {
            ms = zone_local(format->into, zone_utc(format->zone, ms));
            print(run, i, &format->plain, (struct timestamp){.ms = ms}, false);
        } else {
            kernel_null(run, i);
        }
    });
}

static kernel_function *find(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    const enum type_kind kind =
        expr->argument_count > 0 ? expr->arguments[0]->type.kind : TYPE_NULL;
    switch (expr->function) {
    case EXPR_DATE_FORMAT:
        return kind == TYPE_TIMESTAMP       ? date_format
               : kind == TYPE_TIMESTAMP_LTZ ? date_format_ltz
                                            : date_format_text;
    case EXPR_TO_DATE:
        return to_date;
    case EXPR_TO_TIMESTAMP:
        return to_timestamp;
    case EXPR_TO_TIMESTAMP_LTZ:
        return kind == TYPE_BIGINT   ? ltz_from_integer
               : kind == TYPE_DOUBLE ? ltz_from_double
                                     : ltz_from_text;
    case EXPR_UNIX_TIMESTAMP:
        return expr->argument_count == 0 ? unix_now : unix_timestamp;
    case EXPR_FROM_UNIXTIME:
        return from_unixtime;
    case EXPR_CONVERT_TZ:
        return convert_tz;
    default:
        return NULL;
    }
}

/* java.util.TimeZone takes a name that it does not know for GMT, a bare offset too. */
static struct zone *open_or_gmt(const struct expr *literal)
{
    ASSERT(literal != NULL);
    char name[64] = "GMT";
    const struct span text = literal->literal.text;
    if (text.bytes > 0 && text.bytes < sizeof(name) && text.data[0] != '+' && text.data[0] != '-') {
        memcpy(name, text.data, text.bytes);
        name[text.bytes] = '\0';
    }
    struct zone *zone = zone_open(name);
    return zone != NULL ? zone : zone_open("GMT");
}

static int open_zones(const struct kernel_call *call, struct format *format, struct error *error)
{
    ASSERT(call != NULL);
    const struct expr *expr = call->expr;
    if (expr->function != EXPR_CONVERT_TZ) {
        format->zone = zone_open(call->time_zone);
        return format->zone == NULL
                   ? error_set(error, -EINVAL, "the time zone '%s' is not known", call->time_zone)
                   : 0;
    }
    if (!kernel_is_literal(expr, 1) || !kernel_is_literal(expr, 2)) {
        return error_set(error, -ENOTSUP, "the zones of CONVERT_TZ must be constants");
    }
    format->zone = open_or_gmt(expr->arguments[1]);
    format->into = open_or_gmt(expr->arguments[2]);
    return format->zone == NULL || format->into == NULL
               ? error_set(error, -ENOMEM, "out of memory for a time zone")
               : 0;
}

static int read_pattern(const struct expr *expr, struct format *format, struct error *error)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    ASSERT_SLOW(format != NULL);
    const struct span plain = {.data = (const uint8_t *)DEFAULT_PATTERN,
                               .bytes = sizeof(DEFAULT_PATTERN) - 1};
    const char *why = time_pattern_compile(plain, &format->plain);
    ASSERT(why == NULL);
    format->pattern = format->plain;
    const bool takes_pattern = expr->argument_count > 1 && expr->function != EXPR_CONVERT_TZ &&
                               (expr->arguments[1]->type.kind == TYPE_CHAR ||
                                expr->arguments[1]->type.kind == TYPE_VARCHAR);
    if (!takes_pattern) {
        return 0;
    }
    if (expr->arguments[1]->kind != EXPR_LITERAL) {
        return error_set(error, -ENOTSUP, "the pattern of %s must be a constant",
                         expr_function_name(expr->function));
    }
    format->has_pattern = true;
    if (!expr->arguments[1]->literal.is_null) {
        why = time_pattern_compile(expr->arguments[1]->literal.text, &format->pattern);
    }
    return why == NULL
               ? 0
               : error_set(error, -ENOTSUP, "%s: %s", expr_function_name(expr->function), why);
}

int time_format_kernel(const struct kernel_call *call, struct kernel_choice *out,
                       struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    kernel_function *function = find(expr);
    if (function == NULL) {
        return -ENOENT;
    }
    struct format *format = calloc(1, sizeof(*format));
    if (format == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a pattern");
    }
    int result = read_pattern(expr, format, error);
    if (result == 0) {
        result = open_zones(call, format, error);
    }
    if (result != 0) {
        format_destroy(format);
        return result;
    }
    if (expr->function == EXPR_TO_TIMESTAMP_LTZ && expr->argument_count > 1 &&
        type_is_integer(&expr->arguments[1]->type)) {
        format->precision = expr->arguments[1]->literal.i64;
    }
    *out = (struct kernel_choice){.function = function,
                                  .mode = function == unix_now ? KERNEL_RAW : KERNEL_STRICT,
                                  .constant = format,
                                  .constant_destroy = format_destroy};
    return 0;
}
