/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar SQL against recorded answers: each expression is cast to text as Flink did, planned from a
 * script like a user's, compiled, and run over three equal rows; all three must give the answer. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/sql/sql.h"
#include "dataplane/expr/program.h"
#include "dataplane/row.h"

#define ANSWERS_ROWS        3
#define ANSWERS_ROW_BYTES   256
#define ANSWERS_SCRIPT_SIZE 8192

struct answer {
    const char *sql;
    const char *text; /* NULL: NULL */
};

/* The expression of the only Calc below the sink of a plan. */
static inline const struct plan_node *answers_calc(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_CALC && plan->nodes[i]->calc.outputs != NULL) {
            return plan->nodes[i];
        }
    }
    fail_msg("no Calc");
    return NULL;
}

/* Runs a Calc's outputs over rows of NULLs and compares the last column. */
static inline void answers_run(const struct answer *answer, const struct plan *plan)
{
    const struct plan_node *calc = answers_calc(plan);
    const struct row_layout *layout = &plan->nodes[calc->inputs[0]]->layout;
    const uint32_t column = calc->layout.column_count - 1;
    const struct program_config config = {
        .layout = layout,
        .outputs = &calc->calc.outputs[column],
        .output_count = 1,
        .time_zone = "UTC",
    };
    static _Alignas(8) uint8_t bytes[ANSWERS_ROWS][ANSWERS_ROW_BYTES];
    const struct row *rows[ANSWERS_ROWS];
    struct program *program = NULL;
    struct error error = {0};
    if (program_compile(&config, &program, &error) != 0) {
        fail_msg("%s: %s", answer->sql, error.text);
    }
    for (uint32_t i = 0; i < ANSWERS_ROWS; i++) {
        struct row_writer writer;
        assert_true(row_begin(&writer, layout, bytes[i], ANSWERS_ROW_BYTES, NULL));
        (void)row_end(&writer);
        rows[i] = (const struct row *)(const void *)bytes[i];
    }
    struct program_state *state = NULL;
    const struct program_context context = {.watermark_ms = WATERMARK_MIN};
    assert_int_equal(0, program_state_create(program, &state, &error));
    assert_int_equal(PROGRAM_OK, program_run(state, &context, rows, ANSWERS_ROWS));
    const struct vector *result = program_result(state, 0);
    for (uint32_t i = 0; i < ANSWERS_ROWS; i++) {
        const struct span text = result->null[i] != 0 ? (struct span){0} : result->text[i];
        const bool equal = answer->text == NULL
                               ? result->null[i] != 0
                               : result->null[i] == 0 && text.bytes == strlen(answer->text) &&
                                     memcmp(text.data, answer->text, text.bytes) == 0;
        if (!equal) {
            fail_msg("%s: want %s, got %.*s", answer->sql,
                     answer->text == NULL ? "NULL" : answer->text,
                     result->null[i] != 0 ? 4 : (int)text.bytes,
                     result->null[i] != 0 ? "NULL" : (const char *)text.data);
        }
    }
    program_state_destroy(state);
    program_destroy(program);
}

/* Checks answers one by one. */
static inline void answers_check(const struct answer *answers, size_t count)
{
    static const char form[] =
        "CREATE TABLE units (id INT) WITH ('connector' = 'kafka', 'topic' = 'u', 'format' = "
        "'json',\n"
        "'properties.bootstrap.servers' = 'b:1', 'scan.startup.mode' = 'earliest-offset');\n"
        "CREATE TABLE texts (id INT, a STRING) WITH ('connector' = 'blackhole');\n"
        "INSERT INTO texts SELECT id, CAST((%s) AS STRING) FROM units;\n";
    char script[ANSWERS_SCRIPT_SIZE];
    for (size_t i = 0; i < count; i++) {
        const int bytes = snprintf(script, sizeof(script), form, answers[i].sql);
        assert_in_range(bytes, 1, sizeof(script) - 1);
        const struct sql_input input = {
            .text = script, .bytes = (size_t)bytes, .file_name = "answers.sql"};
        struct plan *plan = NULL;
        struct error error = {0};
        if (sql_plan(&input, &plan, NULL, &error) != 0) {
            fail_msg("%s: %s", answers[i].sql, error.text);
        }
        answers_run(&answers[i], plan);
        plan_destroy(plan);
    }
}
