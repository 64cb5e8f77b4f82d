/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic with times: sums with intervals, TIMESTAMPDIFF, and the clocks. Months clamp the day
 * to the month's end. A DATE takes whole days only: the rest of an interval is cut. */
#include <errno.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/time_internal.h"

int64_t time_add_months(int64_t days, int64_t months)
{
    const struct civil date = civil_from_days(days);
    const int64_t index = date.year * 12 + date.month - 1 + months;
    const int64_t year = floor_divide(index, 12);
    const int32_t month = (int32_t)floor_modulo(index, 12) + 1;
    const int32_t last = civil_month_days(year, month);
    return civil_days(year, month, date.day < last ? date.day : last);
}

static int64_t add_months_ms(int64_t ms, int64_t months)
{
    const int64_t days = floor_divide(ms, MS_PER_DAY);
    return time_add_months(days, months) * MS_PER_DAY + (ms - days * MS_PER_DAY);
}

/* One argument a time, the other an interval; minus turns the interval round. */
#define TIME_SUM(name, ...)                                                                        \
    static void name(struct kernel_run *run, bool minus)                                           \
    {                                                                                              \
        const struct vector *in = run->in[0];                                                      \
        const int64_t *restrict interval = run->in[1]->i64;                                        \
        struct vector *out = run->out;                                                             \
        KERNEL_ROWS(run, {                                                                         \
            const int64_t by = minus ? (int64_t)(0 - (uint64_t)interval[i]) : interval[i];         \
            __VA_ARGS__;                                                                           \
        });                                                                                        \
    }                                                                                              \
    static void name##_plus(struct kernel_run *run)                                                \
    {                                                                                              \
        name(run, false);                                                                          \
    }                                                                                              \
    static void name##_minus(struct kernel_run *run)                                               \
    {                                                                                              \
        name(run, true);                                                                           \
    }

static struct timestamp moved(struct timestamp from, int64_t ms)
{
    ASSERT_SLOW(from.ns >= 0);
    return (struct timestamp){.ms = ms, .ns = from.ns};
}

TIME_SUM(timestamp_ms,
         out->timestamp[i] = moved(in->timestamp[i],
                                   (int64_t)((uint64_t)in->timestamp[i].ms + (uint64_t)by)))
TIME_SUM(timestamp_months,
         out->timestamp[i] = moved(in->timestamp[i], add_months_ms(in->timestamp[i].ms, by)))
TIME_SUM(date_ms, out->i64[i] = (int32_t)(in->i64[i] + by / MS_PER_DAY))
TIME_SUM(date_months, out->i64[i] = time_add_months(in->i64[i], by))
TIME_SUM(time_ms, out->i64[i] = floor_modulo(in->i64[i] + by % MS_PER_DAY, MS_PER_DAY))

static kernel_function *find_sum(const struct expr *expr)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    static kernel_function *const kernels[][2] = {
        {timestamp_ms_plus, timestamp_ms_minus}, {timestamp_months_plus, timestamp_months_minus},
        {date_ms_plus, date_ms_minus},           {date_months_plus, date_months_minus},
        {time_ms_plus, time_ms_minus},
    };
    const enum type_kind by = expr->arguments[1]->type.kind;
    const bool months = by == TYPE_INTERVAL_YEAR_MONTH;
    const uint32_t minus = expr->function == EXPR_MINUS;
    if (!months && by != TYPE_INTERVAL_DAY_TIME) {
        return NULL;
    }
    switch (expr->arguments[0]->type.kind) {
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return kernels[months ? 1 : 0][minus];
    case TYPE_DATE:
        return kernels[months ? 3 : 2][minus];
    case TYPE_TIME:
        return months ? NULL : kernels[4][minus];
    default:
        return NULL;
    }
}

static int64_t subtract_months_days(int64_t to, int64_t from)
{
    /* A month has 31 days at most, so this never starts too high. */
    int64_t months = (to - from) / 31;
    while (time_add_months(from, months) < to && time_add_months(from, months + 1) <= to) {
        months++;
    }
    return months;
}

/* Whole months between, towards zero. */
static int64_t subtract_months(int64_t to, int64_t from)
{
    const int64_t to_days = floor_divide(to, MS_PER_DAY);
    const int64_t from_days = floor_divide(from, MS_PER_DAY);
    const int64_t to_time = to - to_days * MS_PER_DAY;
    const int64_t from_time = from - from_days * MS_PER_DAY;
    if (to_days < from_days) {
        return -subtract_months(from, to);
    }
    int64_t months = subtract_months_days(to_days, from_days);
    if (time_add_months(from_days, months) == to_days && to_time < from_time) {
        months--;
    }
    return months;
}

static int64_t ms_of(const struct vector *vector, uint32_t i)
{
    ASSERT_SLOW(vector != NULL);
    switch (vector->type.kind) {
    case TYPE_DATE:
        return vector->i64[i] * MS_PER_DAY;
    case TYPE_TIME:
        return vector->i64[i];
    default:
        return vector->timestamp[i].ms;
    }
}

static void diff_ms(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 2);
    const struct time_unit *unit = run->constant;
    const int64_t amount = unit->amount;
    KERNEL_ROWS(run, {
        const int64_t ms = ms_of(run->in[2], i) - ms_of(run->in[1], i);
        run->out->i64[i] = (int32_t)(ms / amount);
    });
}

static void diff_months(struct kernel_run *run)
{
    ASSERT(run->constant != NULL);
    ASSERT(run->in_count > 2);
    const struct time_unit *unit = run->constant;
    const int64_t amount = unit->amount;
    KERNEL_ROWS(run, {
        const int64_t months = subtract_months(ms_of(run->in[2], i), ms_of(run->in[1], i));
        run->out->i64[i] = (int32_t)(months / amount);
    });
}

static void current_watermark(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        run->out->timestamp[i] = (struct timestamp){.ms = run->context->watermark_ms};
        if (run->context->watermark_ms == WATERMARK_MIN) {
            kernel_null(run, i);
        }
    });
}

static void processing_time(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(
        run, { run->out->timestamp[i] = (struct timestamp){.ms = run->context->processing_ms}; });
}

static const struct time_unit units[] = {
    {"YEAR", UNIT_YEAR, 12, true},
    {"QUARTER", UNIT_QUARTER, 3, true},
    {"MONTH", UNIT_MONTH, 1, true},
    {"WEEK", UNIT_WEEK, 7 * MS_PER_DAY, false},
    {"DAY", UNIT_DAY, MS_PER_DAY, false},
    {"HOUR", UNIT_HOUR, MS_PER_HOUR, false},
    {"MINUTE", UNIT_MINUTE, MS_PER_MINUTE, false},
    {"SECOND", UNIT_SECOND, MS_PER_SECOND, false},
    {"MILLISECOND", UNIT_MILLISECOND, 1, false},
    {"MICROSECOND", UNIT_MICROSECOND, 0, false},
    {"NANOSECOND", UNIT_NANOSECOND, 0, false},
    {"DECADE", UNIT_DECADE, 0, true},
    {"CENTURY", UNIT_CENTURY, 0, true},
    {"MILLENNIUM", UNIT_MILLENNIUM, 0, true},
    {"DOW", UNIT_DOW, 0, false},
    {"DOY", UNIT_DOY, 0, false},
    {"ISODOW", UNIT_ISODOW, 0, false},
    {"ISOYEAR", UNIT_ISOYEAR, 0, false},
    {"EPOCH", UNIT_EPOCH, 0, false},
};

const struct time_unit *time_unit_find(const struct expr *symbol)
{
    ASSERT_SLOW(symbol->kind <= EXPR_CALL);
    if (symbol->kind != EXPR_LITERAL || symbol->literal.is_null || !type_is_text(&symbol->type)) {
        return NULL;
    }
    const struct span text = symbol->literal.text;
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strlen(units[i].name) == text.bytes &&
            memcmp(units[i].name, text.data, text.bytes) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static int find_diff(const struct expr *expr, struct kernel_choice *out)
{
    ASSERT_SLOW(expr->kind <= EXPR_CALL);
    ASSERT_SLOW(out != NULL);
    const struct time_unit *unit = time_unit_find(expr->arguments[0]);
    if (unit == NULL || unit->amount == 0) {
        return -ENOENT;
    }
    /* The constant is one of this file's units and needs no freeing. */
    *out = (struct kernel_choice){.function = unit->months ? diff_months : diff_ms,
                                  .mode = KERNEL_STRICT,
                                  .eager = true,
                                  .constant = (void *)(uintptr_t)unit};
    return 0;
}

int time_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    const struct expr *expr = call->expr;
    kernel_function *function = NULL;
    switch (expr->function) {
    case EXPR_PLUS:
    case EXPR_MINUS:
        function = find_sum(expr);
        break;
    case EXPR_TIMESTAMPDIFF:
        return find_diff(expr, out);
    case EXPR_CURRENT_WATERMARK:
        function = current_watermark;
        break;
    case EXPR_PROCTIME:
        function = processing_time;
        break;
    default:
        break;
    }
    if (function == NULL) {
        return -ENOENT;
    }
    const bool raw = expr->function == EXPR_CURRENT_WATERMARK || expr->function == EXPR_PROCTIME;
    *out = (struct kernel_choice){
        .function = function, .mode = raw ? KERNEL_RAW : KERNEL_STRICT, .eager = true};
    return 0;
}
