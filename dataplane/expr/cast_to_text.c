/* SPDX-License-Identifier: Apache-2.0 */
/* CAST to CHAR, VARCHAR, BINARY and VARBINARY: prints a value, then fits it to the length. */
#include "dataplane/expr/cast_internal.h"
#include "dataplane/expr/decimal_internal.h"
#include "dataplane/expr/text_internal.h"
#include "dataplane/expr/text_number.h"
#include "dataplane/expr/text_time.h"
#include "dataplane/expr/zone.h"

/* Room for the longest form of anything but text. */
#define FORM_BYTES 64

static void put(struct kernel_run *run, uint32_t i, const char *text, size_t bytes)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    struct span copied;
    if (text_copy(run, text, bytes, &copied)) {
        (void)text_fit(run, copied, &run->out->type, &run->out->text[i]);
    }
}

static void put_word(struct kernel_run *run, uint32_t i, const char *word)
{
    ASSERT_SLOW(run->out != NULL);
    put(run, i, word, strlen(word));
}

#define TO_TEXT(name, print)                                                                       \
    static void name(struct kernel_run *run)                                                       \
    {                                                                                              \
        const struct vector *in = run->in[0];                                                      \
        char form[FORM_BYTES];                                                                     \
        KERNEL_ROWS(run, { put(run, i, form, print); });                                           \
    }

/* HH:mm:ss; with a precision at least one digit of the fraction, then as many as are not 0. */
static uint32_t print_time(int64_t ms, uint8_t precision, char *into)
{
    char whole[TIME_TEXT_BYTES];
    uint32_t bytes = time_print(floor_modulo(ms, MS_PER_DAY), precision < 3 ? precision : 3, whole);
    while (precision > 0 && whole[bytes - 1] == '0' && whole[bytes - 2] != '.') {
        bytes--;
    }
    memcpy(into, whole, bytes);
    return bytes;
}

TO_TEXT(from_integer, integer_print(in->i64[i], form))
TO_TEXT(from_f32, float_print(in->f32[i], form))
TO_TEXT(from_f64, double_print(in->f64[i], form))
TO_TEXT(from_decimal, decimal_print(decimal_load(in, i), in->type.scale, form))
TO_TEXT(from_date, date_print(in->i64[i], false, form))
TO_TEXT(from_time, print_time(in->i64[i], in->type.precision, form))

static void from_boolean(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    KERNEL_ROWS(run, { put_word(run, i, run->in[0]->i64[i] != 0 ? "TRUE" : "FALSE"); });
}

static void from_timestamp(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct vector *in = run->in[0];
    const struct timestamp_form form = {.separator = ' ', .precision = in->type.precision};
    char text[TIMESTAMP_TEXT_BYTES];
    KERNEL_ROWS(run, { put(run, i, text, timestamp_print(in->timestamp[i], &form, text)); });
}

static void from_timestamp_ltz(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const struct vector *in = run->in[0];
    const struct zone *zone = run->constant;
    const struct timestamp_form form = {.separator = ' ', .precision = in->type.precision};
    char text[TIMESTAMP_TEXT_BYTES];
    KERNEL_ROWS(run, {
        struct timestamp local = in->timestamp[i];
        local.ms = zone_local(zone, local.ms);
        put(run, i, text, timestamp_print(local, &form, text));
    });
}

/* +14-02: years and months with a sign. */
static uint32_t print_months(int64_t months, char *into)
{
    ASSERT_SLOW(into != NULL);
    const int64_t magnitude = months < 0 ? -months : months;
    uint32_t at = 0;
    into[at++] = months < 0 ? '-' : '+';
    at += integer_print(magnitude / 12, into + at);
    into[at++] = '-';
    into[at++] = (char)('0' + magnitude % 12 / 10);
    into[at++] = (char)('0' + magnitude % 12 % 10);
    return at;
}

/* +1 02:03:04.005: days and the time of day with a sign. */
static uint32_t print_duration(int64_t ms, char *into)
{
    ASSERT_SLOW(into != NULL);
    const uint64_t magnitude = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    uint32_t at = 0;
    into[at++] = ms < 0 ? '-' : '+';
    at += integer_print((int64_t)(magnitude / (uint64_t)MS_PER_DAY), into + at);
    into[at++] = ' ';
    return at + time_print((int64_t)(magnitude % (uint64_t)MS_PER_DAY), 3, into + at);
}

TO_TEXT(from_months, print_months(in->i64[i], form))
TO_TEXT(from_duration, print_duration(in->i64[i], form))

static void from_text(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    const struct span *in = run->in[0]->text;
    KERNEL_ROWS(run, { (void)text_fit(run, in[i], &run->out->type, &run->out->text[i]); });
}

static void from_text_same(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    const struct span *restrict in = run->in[0]->text;
    struct span *restrict out = run->out->text;
    KERNEL_ROWS(run, { out[i] = in[i]; });
}

static bool is_bytes(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type->kind == TYPE_BINARY || type->kind == TYPE_VARBINARY;
}

/* Tells whether no value can be cut or padded. */
static bool always_fits(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    if (to->kind == TYPE_CHAR || to->kind == TYPE_BINARY) {
        return type_equal(from, to);
    }
    return to->length >= from->length && is_bytes(from) == is_bytes(to);
}

static kernel_function *find(const struct type *from, const struct type *to)
{
    ASSERT_SLOW(from->kind <= TYPE_ROW);
    ASSERT_SLOW(to->kind <= TYPE_ROW);
    switch (from->kind) {
    case TYPE_BOOLEAN:
        return from_boolean;
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
        return from_integer;
    case TYPE_FLOAT:
        return from_f32;
    case TYPE_DOUBLE:
        return from_f64;
    case TYPE_DECIMAL:
        return from_decimal;
    case TYPE_DATE:
        return from_date;
    case TYPE_TIME:
        return from_time;
    case TYPE_TIMESTAMP:
        return from_timestamp;
    case TYPE_TIMESTAMP_LTZ:
        return from_timestamp_ltz;
    case TYPE_INTERVAL_YEAR_MONTH:
        return from_months;
    case TYPE_INTERVAL_DAY_TIME:
        return from_duration;
    default:
        return type_is_text(from) ? (always_fits(from, to) ? from_text_same : from_text) : NULL;
    }
}

void cast_to_text_find(const struct kernel_call *call, struct kernel_choice *out)
{
    ASSERT_SLOW(call->expr->kind == EXPR_CALL);
    ASSERT_SLOW(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    const struct type *from = &call->expr->arguments[0]->type;
    const struct type *to = &call->expr->type;
    *out = (struct kernel_choice){.mode = KERNEL_STRICT};
    if (!type_is_text(to) || (is_bytes(to) && !type_is_text(from))) {
        return;
    }
    out->function = find(from, to);
    out->eager = out->function == from_text_same;
    if (out->function == from_timestamp_ltz) {
        struct zone *zone = zone_open(call->time_zone);
        out->constant = zone;
        out->constant_destroy = zone_destroy;
        out->function = zone == NULL ? NULL : out->function;
    }
}
