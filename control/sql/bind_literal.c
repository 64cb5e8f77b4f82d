/* SPDX-License-Identifier: Apache-2.0 */
/* Literals: what a number, a text, a date or an interval in the script is, with Flink's type for
 * it. 12.30 is DECIMAL(4, 2), 1e3 a DOUBLE, 'abc' a CHAR(3), 5 an INT, 5000000000 a BIGINT. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/sql/bind.h"

#define MS_PER_DAY INT64_C(86400000)

static struct expr *new_literal(struct session *session, const struct ast_expr *ast,
                                struct type type)
{
    ASSERT(ast->depth >= 1);
    ASSERT(session != NULL);
    struct expr *expr = sql_allocate(session->memory, sizeof(*expr));
    *expr = (struct expr){
        .kind = EXPR_LITERAL,
        .type = type,
        .line = ast->at.line,
        .column_in_line = ast->at.column,
    };
    return expr;
}

/* Digits without a point, as a 128-bit number. */
static bool read_digits(const char *text, __int128 *out, uint32_t *digits)
{
    ASSERT(out != NULL);
    ASSERT(digits != NULL);
    unsigned __int128 value = 0;
    *digits = 0;
    for (const char *c = text; *c != 0; c++) {
        if (isdigit((unsigned char)*c)) {
            if (++*digits > TYPE_DECIMAL_PRECISION_MAX) {
                return false;
            }
            value = value * 10 + (unsigned)(*c - '0');
        }
    }
    *out = text[0] == '-' ? -(__int128)value : (__int128)value;
    return true;
}

static int bind_decimal(struct session *session, const struct ast_expr *ast,
                        const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const char *point = strchr(ast->text, '.');
    ASSERT(point != NULL);
    __int128 value = 0;
    uint32_t digits = 0;
    if (!read_digits(ast->text, &value, &digits)) {
        return sql_fail(session, -EINVAL, ast->at, "the number %s has more than %d digits",
                        ast->text, TYPE_DECIMAL_PRECISION_MAX);
    }
    const struct type type = {
        .kind = TYPE_DECIMAL,
        .precision = (uint8_t)digits,
        .scale = (uint8_t)strlen(point + 1),
    };
    struct expr *expr = new_literal(session, ast, type);
    if (digits > TYPE_DECIMAL_NARROW_MAX) {
        expr->literal.i128 = value;
    } else {
        expr->literal.i64 = (int64_t)value;
    }
    *out = expr;
    return 0;
}

static int bind_number(struct session *session, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    if (strpbrk(ast->text, "eE") != NULL) {
        struct expr *expr = new_literal(session, ast, (struct type){.kind = TYPE_DOUBLE});
        expr->literal.f64 = strtod(ast->text, NULL);
        *out = expr;
        return 0;
    }
    const char *point = strchr(ast->text, '.');
    if (point != NULL && point[1] != 0) {
        return bind_decimal(session, ast, out);
    }
    __int128 value = 0;
    uint32_t digits = 0;
    if (!read_digits(ast->text, &value, &digits) || value > INT64_MAX || value < INT64_MIN) {
        return sql_fail(session, -EINVAL, ast->at,
                        "the whole number %s does not fit BIGINT: write CAST('%s' AS DECIMAL(38, "
                        "0))",
                        ast->text, ast->text);
    }
    const bool is_int = value >= INT32_MIN && value <= INT32_MAX;
    struct expr *expr =
        new_literal(session, ast, (struct type){.kind = is_int ? TYPE_INT : TYPE_BIGINT});
    expr->literal.i64 = (int64_t)value;
    *out = expr;
    return 0;
}

static uint32_t count_code_points(const char *text, uint32_t bytes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return count;
}

static struct expr *text_literal(struct session *session, const struct ast_expr *ast)
{
    ASSERT(ast->depth >= 1);
    ASSERT(session != NULL);
    const struct type type = {
        .kind = TYPE_CHAR,
        .length = count_code_points(ast->text, ast->bytes),
    };
    struct expr *expr = new_literal(session, ast, type);
    expr->literal.text = (struct span){(const uint8_t *)ast->text, ast->bytes};
    return expr;
}

static int bind_bytes(struct session *session, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    uint8_t *bytes = sql_allocate(session->memory, ast->bytes / 2 + 1);
    bool ok = ast->bytes % 2 == 0;
    for (uint32_t i = 0; i < ast->bytes && ok; i++) {
        const int c = tolower((unsigned char)ast->text[i]);
        ok = isxdigit(c) != 0;
        const int digit = isdigit(c) ? c - '0' : c - 'a' + 10;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (ok ? digit : 0));
    }
    if (!ok) {
        return sql_fail(session, -EINVAL, ast->at,
                        "x'%s' is no binary text: it takes pairs of hexadecimal digits", ast->text);
    }
    const struct type type = {.kind = TYPE_BINARY, .length = ast->bytes / 2};
    struct expr *expr = new_literal(session, ast, type);
    expr->literal.text = (struct span){bytes, ast->bytes / 2};
    *out = expr;
    return 0;
}

/* Days from 1970-01-01 of a day in the proleptic Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    const int64_t y = month <= 2 ? year - 1 : year;
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Reads exactly count digits. */
static bool read_fixed(const char **text, int count, int64_t *out)
{
    ASSERT(text != NULL);
    ASSERT(out != NULL);
    *out = 0;
    for (int i = 0; i < count; i++, (*text)++) {
        if (!isdigit((unsigned char)**text)) {
            return false;
        }
        *out = *out * 10 + (**text - '0');
    }
    return true;
}

static bool read_char(const char **text, char c)
{
    if (**text != c) {
        return false;
    }
    (*text)++;
    return true;
}

static bool read_date(const char **text, int64_t *out_days)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    if (!read_fixed(text, 4, &year) || !read_char(text, '-') || !read_fixed(text, 2, &month) ||
        !read_char(text, '-') || !read_fixed(text, 2, &day) || month < 1 || month > 12) {
        return false;
    }
    const bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int64_t last = lengths[month - 1] + (month == 2 && leaps ? 1 : 0);
    *out_days = days_of(year, month, day);
    return day >= 1 && day <= last;
}

/* hh:mm:ss with up to nine fraction digits. */
static bool read_time(const char **text, int64_t *out_ms, int32_t *out_ns, uint8_t *digits)
{
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    if (!read_fixed(text, 2, &hour) || !read_char(text, ':') || !read_fixed(text, 2, &minute) ||
        !read_char(text, ':') || !read_fixed(text, 2, &second) || hour > 23 || minute > 59 ||
        second > 59) {
        return false;
    }
    int64_t fraction = 0;
    *digits = 0;
    if (read_char(text, '.')) {
        for (; isdigit((unsigned char)**text) && *digits < 9; (*text)++, (*digits)++) {
            fraction = fraction * 10 + (**text - '0');
        }
    }
    for (uint8_t i = *digits; i < 9; i++) {
        fraction *= 10;
    }
    *out_ms = ((hour * 60 + minute) * 60 + second) * 1000 + fraction / 1000000;
    *out_ns = (int32_t)(fraction % 1000000);
    return true;
}

static int bind_moment(struct session *session, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const char *text = ast->text;
    int64_t days = 0;
    int64_t ms = 0;
    int32_t ns = 0;
    uint8_t digits = 0;
    bool ok = true;
    struct type type = {.kind = TYPE_DATE};
    if (ast->kind != AST_TIME) {
        ok = read_date(&text, &days);
    }
    if (ast->kind == AST_TIMESTAMP) {
        ok = ok && read_char(&text, ' ');
    }
    if (ast->kind != AST_DATE) {
        ok = ok && read_time(&text, &ms, &ns, &digits);
        type.kind = ast->kind == AST_TIME ? TYPE_TIME : TYPE_TIMESTAMP;
        type.precision = digits;
    }
    if (!ok || *text != 0) {
        const char *form = ast->kind == AST_DATE   ? "DATE '2020-12-31'"
                           : ast->kind == AST_TIME ? "TIME '23:59:59'"
                                                   : "TIMESTAMP '2020-12-31 23:59:59.123'";
        return sql_fail(session, -EINVAL, ast->at, "'%s' is not of the form %s", ast->text, form);
    }
    struct expr *expr = new_literal(session, ast, type);
    if (ast->kind == AST_TIMESTAMP) {
        expr->literal.timestamp = (struct timestamp){.ms = days * MS_PER_DAY + ms, .ns = ns};
    } else {
        expr->literal.i64 = ast->kind == AST_DATE ? days : ms;
    }
    *out = expr;
    return 0;
}

struct interval_unit {
    const char *name;
    int64_t ms; /* 0: it counts months */
    int64_t months;
};

static const struct interval_unit interval_units[] = {
    {"YEAR", 0, 12},        {"QUARTER", 0, 3},    {"MONTH", 0, 1},      {"WEEK", 7 * MS_PER_DAY, 0},
    {"DAY", MS_PER_DAY, 0}, {"HOUR", 3600000, 0}, {"MINUTE", 60000, 0}, {"SECOND", 1000, 0},
};

static const struct interval_unit *find_unit(const char *name)
{
    const size_t bytes = strlen(name);
    for (uint32_t i = 0; i < COUNT_OF(interval_units); i++) {
        const size_t own = strlen(interval_units[i].name);
        const bool plural = bytes == own + 1 && name[own] == 'S';
        if (strncmp(name, interval_units[i].name, own) == 0 && (bytes == own || plural)) {
            return &interval_units[i];
        }
    }
    return NULL;
}

/* Reads digits of an interval field; at most 9. */
static bool read_number(const char **text, int64_t *out)
{
    ASSERT(text != NULL);
    ASSERT(out != NULL);
    int digits = 0;
    *out = 0;
    for (; isdigit((unsigned char)**text) && digits < 10; (*text)++, digits++) {
        *out = *out * 10 + (**text - '0');
    }
    return digits > 0 && digits < 10;
}

/* Seconds may have a fraction; what is below a millisecond is cut, as Flink does. */
static void read_fraction(const char **text, int64_t *ms)
{
    if (!read_char(text, '.')) {
        return;
    }
    int64_t weight = 100;
    for (int i = 0; i < 9 && isdigit((unsigned char)**text); (*text)++, i++) {
        *ms += weight * (**text - '0');
        weight /= 10;
    }
}

/* The fields of an interval from one unit to another: 1-2, 1 10:20:30.5, 10:20. */
static bool read_interval(const char *text, const struct interval_unit *from,
                          const struct interval_unit *to, int64_t *out)
{
    ASSERT(text != NULL);
    ASSERT(out != NULL);
    const bool negative = *text == '-';
    if (*text == '-' || *text == '+') {
        text++;
    }
    int64_t total = 0;
    for (const struct interval_unit *unit = from;; unit++) {
        int64_t number = 0;
        if (!read_number(&text, &number)) {
            return false;
        }
        total += number * (unit->ms != 0 ? unit->ms : unit->months);
        if (unit->ms == 1000) {
            read_fraction(&text, &total);
        }
        if (unit == to) {
            break;
        }
        if (unit->months == 12) {
            unit++; /* no quarters between years and months */
        }
        const char joint = unit->ms == 0 ? '-' : unit->ms == MS_PER_DAY ? ' ' : ':';
        if (!read_char(&text, joint)) {
            return false;
        }
    }
    *out = negative ? -total : total;
    return *text == 0;
}

static int bind_interval(struct session *session, const struct ast_expr *ast,
                         const struct expr **out)
{
    ASSERT(ast->depth >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    const struct interval_unit *from = find_unit(ast->unit_from);
    const struct interval_unit *to = ast->unit_to == NULL ? from : find_unit(ast->unit_to);
    if (from == NULL || to == NULL || to < from || (from->ms == 0) != (to->ms == 0)) {
        return sql_fail(session, -EINVAL, ast->at, "INTERVAL '%s' %s%s%s: these are no units of it",
                        ast->text, ast->unit_from, ast->unit_to == NULL ? "" : " TO ",
                        ast->unit_to == NULL ? "" : ast->unit_to);
    }
    int64_t value = 0;
    if (!read_interval(ast->text, from, to, &value)) {
        return sql_fail(session, -EINVAL, ast->at, "'%s' is no number of an INTERVAL %s%s%s",
                        ast->text, ast->unit_from, ast->unit_to == NULL ? "" : " TO ",
                        ast->unit_to == NULL ? "" : ast->unit_to);
    }
    struct expr *expr = new_literal(
        session, ast,
        (struct type){.kind = from->ms == 0 ? TYPE_INTERVAL_YEAR_MONTH : TYPE_INTERVAL_DAY_TIME,
                      .precision = 3});
    expr->literal.i64 = value;
    *out = expr;
    return 0;
}

int bind_interval_ms(struct session *session, const struct ast_expr *ast, int64_t *out_ms)
{
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    const struct expr *expr = NULL;
    if (ast->kind != AST_INTERVAL) {
        return sql_fail(session, -EINVAL, ast->at, "an INTERVAL literal is expected here");
    }
    const int verdict = bind_interval(session, ast, &expr);
    if (verdict != 0) {
        return verdict;
    }
    if (expr->type.kind != TYPE_INTERVAL_DAY_TIME) {
        return sql_fail(session, -ENOTSUP, ast->at,
                        "an INTERVAL of months or years is not supported here: its length varies");
    }
    *out_ms = expr->literal.i64;
    return 0;
}

int bind_literal(struct session *session, const struct ast_expr *ast, const struct expr **out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(ast != NULL);
    struct expr *expr = NULL;
    switch (ast->kind) {
    case AST_NUMBER:
        return bind_number(session, ast, out);
    case AST_BYTES:
        return bind_bytes(session, ast, out);
    case AST_DATE:
    case AST_TIME:
    case AST_TIMESTAMP:
        return bind_moment(session, ast, out);
    case AST_INTERVAL:
        return bind_interval(session, ast, out);
    case AST_TEXT:
    case AST_SYMBOL:
        *out = text_literal(session, ast);
        return 0;
    case AST_TRUE:
    case AST_FALSE:
        expr = new_literal(session, ast, (struct type){.kind = TYPE_BOOLEAN});
        expr->literal.i64 = ast->kind == AST_TRUE;
        break;
    case AST_UNKNOWN:
        expr = new_literal(session, ast, (struct type){.kind = TYPE_BOOLEAN, .nullable = true});
        expr->literal.is_null = true;
        break;
    default:
        ASSERT(ast->kind == AST_NULL);
        expr = new_literal(session, ast, (struct type){.kind = TYPE_NULL, .nullable = true});
        expr->literal.is_null = true;
        break;
    }
    *out = expr;
    return 0;
}
