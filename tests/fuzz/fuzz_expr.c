/* SPDX-License-Identifier: Apache-2.0 */
/* Text functions and casts over any bytes: one row whose text is the input (an exact allocation, so
 * that a read past its end is seen) through every function that takes text apart. No input may
 * crash; casts are TRY_CASTs, so none may fail the row either. */
#include <stdlib.h>

#include "control/sql/functions.h"
#include "dataplane/expr/program.h"

#define OUTPUTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Compiled at the first input. */
struct fuzz_target {
    struct sql_memory *memory;
    struct row_layout layout;
    struct type type;
    uint16_t slot;
    const struct expr *outputs[OUTPUTS_MAX];
    uint32_t count;
    struct program *program;
    struct program_state *state;
};

static const struct expr *text_literal(struct fuzz_target *target, const char *text)
{
    struct expr *expr = sql_allocate(target->memory, sizeof(*expr));
    *expr =
        (struct expr){.kind = EXPR_LITERAL,
                      .type = {.kind = TYPE_CHAR, .length = (uint32_t)strlen(text)},
                      .literal = {.text = {.data = (const uint8_t *)text, .bytes = strlen(text)}}};
    return expr;
}

static const struct expr *int_literal(struct fuzz_target *target, int64_t value)
{
    struct expr *expr = sql_allocate(target->memory, sizeof(*expr));
    *expr =
        (struct expr){.kind = EXPR_LITERAL, .type = {.kind = TYPE_INT}, .literal = {.i64 = value}};
    return expr;
}

static void add(struct fuzz_target *target, const char *name, const struct expr *const *arguments,
                uint32_t count, const struct type *to)
{
    const struct function_call call = {
        .name = name, .arguments = arguments, .argument_count = count, .target = to};
    const struct expr *out = NULL;
    if (target->count == OUTPUTS_MAX || function_bind(target->memory, &call, &out, NULL) != 0) {
        abort();
    }
    target->outputs[target->count++] = out;
}

static void add_casts(struct fuzz_target *target, const struct expr *text)
{
    static const struct type types[] = {
        {.kind = TYPE_BOOLEAN, .nullable = true},
        {.kind = TYPE_TINYINT, .nullable = true},
        {.kind = TYPE_BIGINT, .nullable = true},
        {.kind = TYPE_FLOAT, .nullable = true},
        {.kind = TYPE_DOUBLE, .nullable = true},
        {.kind = TYPE_DECIMAL, .nullable = true, .precision = 10, .scale = 2},
        {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38, .scale = 38},
        {.kind = TYPE_DATE, .nullable = true},
        {.kind = TYPE_TIME, .nullable = true},
        {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 9},
        {.kind = TYPE_TIMESTAMP_LTZ, .nullable = true, .precision = 0},
        {.kind = TYPE_CHAR, .nullable = true, .length = 3},
        {.kind = TYPE_BINARY, .nullable = true, .length = 5},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        add(target, "TRY_CAST", &text, 1, &types[i]);
    }
}

static void add_functions(struct fuzz_target *target, const struct expr *text)
{
    static const char *const alone[] = {
        "UPPER",    "LOWER",   "INITCAP",      "REVERSE",       "CHAR_LENGTH", "ASCII",
        "HEX",      "UNHEX",   "TO_BASE64",    "URL_ENCODE",    "URL_DECODE",  "TRIM",
        "IS_ALPHA", "TO_DATE", "TO_TIMESTAMP", "UNIX_TIMESTAMP"};
    static const char *const with_text[][2] = {{"LIKE", "%a_b%"},
                                               {"SIMILAR TO", "%(a|b)[[:alpha:]]*"},
                                               {"REGEXP", "\\b(a+)+$"},
                                               {"REGEXP_EXTRACT", "(\\p{L}+)(\\d)?"},
                                               {"REGEXP_COUNT", ""},
                                               {"REGEXP_INSTR", "[^a]"},
                                               {"POSITION", "ab"},
                                               {"DATE_FORMAT", "yyyy-MM-dd EEE"},
                                               {"TO_TIMESTAMP", "yyMMdd hh:mm:ss a"},
                                               {"UNIX_TIMESTAMP", "d MMM yyyy H:m:s.S"}};
    for (size_t i = 0; i < COUNT_OF(alone); i++) {
        add(target, alone[i], &text, 1, NULL);
    }
    for (size_t i = 0; i < COUNT_OF(with_text); i++) {
        const struct expr *two[] = {text, text_literal(target, with_text[i][1])};
        add(target, with_text[i][0], two, 2, NULL);
    }
    const struct expr *pattern[] = {text_literal(target, "aaaab"), text};
    add(target, "LIKE", pattern, 2, NULL);
    const struct expr *pad[] = {text, int_literal(target, 7), text};
    add(target, "LPAD", pad, 3, NULL);
    const struct expr *overlay[] = {text, text, int_literal(target, 2), int_literal(target, 1)};
    add(target, "OVERLAY", overlay, 4, NULL);
    const struct expr *replace[] = {text, text_literal(target, "a"), text_literal(target, "bc")};
    add(target, "REPLACE", replace, 3, NULL);
    add(target, "TRANSLATE", replace, 3, NULL);
    const struct expr *zones[] = {text, text_literal(target, "Europe/Berlin"),
                                  text_literal(target, "Asia/Kolkata")};
    add(target, "CONVERT_TZ", zones, 3, NULL);
    /* Last: bad base64 ends the run. */
    add(target, "FROM_BASE64", &text, 1, NULL);
}

static struct fuzz_target *make_target(void)
{
    struct fuzz_target *target = calloc(1, sizeof(*target));
    if (target == NULL) {
        abort();
    }
    target->memory = sql_memory_create();
    target->type = (struct type){.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
    row_layout_init(&target->layout, &target->type, 1, &target->slot);
    struct expr *text = sql_allocate(target->memory, sizeof(*text));
    *text = (struct expr){.kind = EXPR_COLUMN, .type = target->type};
    add_casts(target, text);
    add_functions(target, text);
    const struct program_config config = {.layout = &target->layout,
                                          .outputs = target->outputs,
                                          .output_count = target->count,
                                          .time_zone = "America/New_York"};
    if (program_compile(&config, &target->program, NULL) != 0 ||
        program_state_create(target->program, &target->state, NULL) != 0) {
        abort();
    }
    return target;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct fuzz_target *target;
    if (target == NULL) {
        target = make_target();
    }
    if (bytes > 4096) {
        return 0;
    }
    const uint32_t capacity = row_bytes_fixed(&target->layout) + (uint32_t)bytes;
    void *into = malloc((capacity + 7) / 8 * 8);
    struct row_writer writer;
    if (into == NULL || !row_begin(&writer, &target->layout, into, capacity, NULL) ||
        !row_set_text(&writer, 0, (struct span){data, bytes})) {
        abort();
    }
    (void)row_end(&writer);
    const struct row *row = into;
    const struct program_context context = {.watermark_ms = 0};
    const enum program_verdict verdict = program_run(target->state, &context, &row, 1);
    if (verdict == PROGRAM_FAILED) {
        char reason[PROGRAM_REASON_BYTES];
        (void)program_failure(target->state, reason);
        /* The two reasons left: bad base64, and a pattern that backtracks too far. */
        if (strstr(reason, "too many steps") == NULL && strstr(reason, "base64") == NULL) {
            abort();
        }
    }
    free(into);
    return 0;
}
