/* SPDX-License-Identifier: Apache-2.0 */
/* What expressions cost a row: typical ones of fraud rules, over full parcels (256 rows) and over
 * small ones (8 rows), where the fixed cost of a run shows. Each figure is the best of several
 * passes, in time on the processor. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "control/sql/functions.h"
#include "dataplane/expr/program.h"

#define COLUMNS   6 /* amount DECIMAL(10,2), n BIGINT, country, home STRING, x DOUBLE, ts */
#define ROW_BYTES 256
#define PASSES    7
#define ROWS      (UINT32_C(1) << 19) /* in one pass */

struct subject {
    struct sql_memory *memory;
    struct row_layout layout;
    struct type types[COLUMNS];
    uint16_t slots[COLUMNS];
    const struct row *rows[PARCEL_ROWS_MAX];
    _Alignas(8) uint8_t data[PARCEL_ROWS_MAX][ROW_BYTES];
};

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const struct expr *make(struct subject *subject, struct expr from)
{
    struct expr *expr = sql_allocate(subject->memory, sizeof(*expr));
    *expr = from;
    return expr;
}

static const struct expr *column(struct subject *subject, uint32_t index)
{
    return make(subject,
                (struct expr){.kind = EXPR_COLUMN, .type = subject->types[index], .column = index});
}

static const struct expr *number(struct subject *subject, int64_t value)
{
    return make(
        subject,
        (struct expr){.kind = EXPR_LITERAL, .type = {.kind = TYPE_INT}, .literal = {.i64 = value}});
}

static const struct expr *money(struct subject *subject, int64_t unscaled)
{
    return make(subject, (struct expr){.kind = EXPR_LITERAL,
                                       .type = {.kind = TYPE_DECIMAL, .precision = 6, .scale = 4},
                                       .literal = {.i64 = unscaled}});
}

static const struct expr *text(struct subject *subject, const char *from)
{
    return make(
        subject,
        (struct expr){.kind = EXPR_LITERAL,
                      .type = {.kind = TYPE_CHAR, .length = (uint32_t)strlen(from)},
                      .literal = {.text = {.data = (const uint8_t *)from, .bytes = strlen(from)}}});
}

static const struct expr *bind(struct subject *subject, const char *name,
                               const struct expr *const *arguments, uint32_t count,
                               const struct type *to)
{
    const struct function_call call = {
        .name = name, .arguments = arguments, .argument_count = count, .target = to};
    struct error error = {.line = 0};
    const struct expr *out = NULL;
    if (function_bind(subject->memory, &call, &out, &error) != 0) {
        (void)fprintf(stderr, "%s: %s\n", name, error.text);
        exit(EXIT_FAILURE);
    }
    return out;
}

#define CALL(subject, name, ...)                                                                   \
    bind(subject, name, (const struct expr *const[]){__VA_ARGS__},                                 \
         sizeof((const struct expr *const[]){__VA_ARGS__}) / sizeof(struct expr *), NULL)

static void fill(struct subject *subject)
{
    static const char *const countries[] = {"DE", "FR", "NG", "US"};
    for (uint32_t i = 0; i < PARCEL_ROWS_MAX; i++) {
        struct row_writer writer;
        if (!row_begin(&writer, &subject->layout, subject->data[i], ROW_BYTES, NULL)) {
            abort();
        }
        const double x = 48.0 + (double)i / 7;
        const struct timestamp now = {.ms = INT64_C(1700000000000) + i * 1234};
        row_set_i64(&writer, 0, (int64_t)i * 777 % 300000);
        row_set_i64(&writer, 1, i % 9);
        const char *country = countries[i % 4];
        const char *home = countries[i / 4 % 4];
        (void)row_set_text(&writer, 2, (struct span){(const uint8_t *)country, 2});
        (void)row_set_text(&writer, 3, (struct span){(const uint8_t *)home, 2});
        row_set(&writer, 4, &x);
        row_set(&writer, 5, &now);
        (void)row_end(&writer);
        subject->rows[i] = (const struct row *)(const void *)subject->data[i];
    }
}

static double measure(struct program_state *state, const struct subject *subject, uint32_t rows)
{
    const struct program_context context = {.watermark_ms = 0};
    double best = 1e9;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const double start = seconds();
        for (uint32_t done = 0; done < ROWS / 8; done += rows) {
            if (program_run(state, &context, subject->rows, rows) != PROGRAM_OK) {
                abort();
            }
        }
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    return best * 1e9 / (ROWS / 8);
}

static void show(const struct subject *subject, const char *name, const struct expr *const *outputs,
                 uint32_t count)
{
    const struct program_config config = {.layout = &subject->layout,
                                          .outputs = outputs,
                                          .output_count = count,
                                          .time_zone = "Europe/Berlin"};
    struct program *program = NULL;
    struct program_state *state = NULL;
    struct error error = {.line = 0};
    if (program_compile(&config, &program, &error) != 0 ||
        program_state_create(program, &state, &error) != 0) {
        (void)fprintf(stderr, "%s: %s\n", name, error.text);
        exit(EXIT_FAILURE);
    }
    const double full = measure(state, subject, PARCEL_ROWS_MAX);
    const double small = measure(state, subject, 8);
    (void)printf("%-48s %9.1f %9.1f\n", name, full, small);
    program_state_destroy(state);
    program_destroy(program);
}

static void show_numbers(struct subject *s)
{
    const struct expr *amount = column(s, 0);
    const struct expr *n = column(s, 1);
    const struct expr *out[2];
    out[0] = CALL(s, "CASE", CALL(s, ">=", n, number(s, 4)), number(s, 30),
                  CALL(s, "=", n, number(s, 3)), number(s, 15), number(s, 0));
    show(s, "CASE WHEN n >= 4 THEN 30 WHEN n = 3 THEN 15 …", out, 1);
    out[0] = CALL(s, ">", amount, number(s, 1000));
    show(s, "amount > 1000 (DECIMAL(10,2))", out, 1);
    out[0] = CALL(s, "*", amount, money(s, 825));
    show(s, "amount * 0.0825", out, 1);
    out[0] = CALL(s, "/", amount, number(s, 3));
    show(s, "amount / 3", out, 1);
    out[0] = CALL(s, "ROUND", CALL(s, "*", amount, money(s, 825)), number(s, 2));
    show(s, "ROUND(amount * 0.0825, 2)", out, 1);
    out[0] = CALL(s, "ROUND", CALL(s, "/", column(s, 4), number(s, 3)), number(s, 2));
    show(s, "ROUND(x / 3, 2) (DOUBLE)", out, 1);
    out[0] = CALL(s, "AND", CALL(s, "<>", n, number(s, 0)),
                  CALL(s, ">", CALL(s, "/", number(s, 100), n), number(s, 20)));
    show(s, "n <> 0 AND 100 / n > 20", out, 1);
}

static void show_texts(struct subject *s)
{
    const struct type string = {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
    const struct expr *country = column(s, 2);
    const struct expr *amount = column(s, 0);
    const struct expr *ts = column(s, 5);
    const struct expr *x = column(s, 4);
    const struct expr *out[1];
    out[0] = CALL(s, "IN", country, text(s, "NG"), text(s, "RU"));
    show(s, "country IN ('NG', 'RU')", out, 1);
    out[0] = CALL(s, "<>", country, column(s, 3));
    show(s, "country <> home", out, 1);
    out[0] = CALL(s, "LIKE", country, text(s, "N%"));
    show(s, "country LIKE 'N%'", out, 1);
    out[0] = CALL(s, "REGEXP", country, text(s, "^[NR][GU]$"));
    show(s, "REGEXP(country, '^[NR][GU]$')", out, 1);
    out[0] = CALL(s, "CONCAT", country, text(s, "-"), column(s, 3));
    show(s, "CONCAT(country, '-', home)", out, 1);
    out[0] = bind(s, "CAST", &amount, 1, &string);
    show(s, "CAST(amount AS STRING)", out, 1);
    out[0] = bind(s, "CAST", &x, 1, &string);
    show(s, "CAST(x AS STRING) (DOUBLE)", out, 1);
    out[0] = CALL(s, "DATE_FORMAT", ts, text(s, "yyyy-MM-dd HH:mm"));
    show(s, "DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')", out, 1);
    out[0] = CALL(s, "EXTRACT", text(s, "HOUR"), ts);
    show(s, "EXTRACT(HOUR FROM ts)", out, 1);
}

int main(void)
{
    struct subject *subject = calloc(1, sizeof(*subject));
    if (subject == NULL) {
        return EXIT_FAILURE;
    }
    subject->memory = sql_memory_create();
    const struct type types[COLUMNS] = {
        {.kind = TYPE_DECIMAL, .nullable = true, .precision = 10, .scale = 2},
        {.kind = TYPE_BIGINT, .nullable = true},
        {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
        {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
        {.kind = TYPE_DOUBLE, .nullable = true},
        {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3},
    };
    memcpy(subject->types, types, sizeof(types));
    row_layout_init(&subject->layout, subject->types, COLUMNS, subject->slots);
    fill(subject);
    (void)printf("%-48s %9s %9s\n", "nanoseconds a row, of a run of", "256 rows", "8 rows");
    show_numbers(subject);
    show_texts(subject);
    sql_memory_destroy(subject->memory);
    free(subject);
    return 0;
}
