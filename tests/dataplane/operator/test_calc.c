/* SPDX-License-Identifier: Apache-2.0 */
/* Calc: rows that pass, columns copied and computed, and what filters do to row kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/dataplane/operator/harness.h"

#define ARENA (UINT32_C(4) << 20)

static const struct type text_type = {
    .kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
static const struct type int_type = {.kind = TYPE_INT, .nullable = true};
static const struct type boolean_type = {.kind = TYPE_BOOLEAN, .nullable = true};

/* Input columns: name STRING, value INT. */
static const struct expr name_column = {
    .kind = EXPR_COLUMN,
    .type = {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
    .column = 0};
static const struct expr value_column = {
    .kind = EXPR_COLUMN, .type = {.kind = TYPE_INT, .nullable = true}, .column = 1};
static const struct expr zero = {
    .kind = EXPR_LITERAL, .type = {.kind = TYPE_INT}, .literal = {.i64 = 0}};
static const struct expr hundred = {
    .kind = EXPR_LITERAL, .type = {.kind = TYPE_INT}, .literal = {.i64 = 100}};
static const struct expr *const value_and_zero[] = {&value_column, &zero};
static const struct expr *const hundred_and_value[] = {&hundred, &value_column};
static const struct expr not_zero = {
    .kind = EXPR_CALL,
    .type = {.kind = TYPE_BOOLEAN, .nullable = true},
    .function = EXPR_NOT_EQUALS,
    .argument_count = 2,
    .arguments = value_and_zero,
};
static const struct expr quotient = {
    .kind = EXPR_CALL,
    .type = {.kind = TYPE_INT, .nullable = true},
    .function = EXPR_DIVIDE,
    .argument_count = 2,
    .arguments = hundred_and_value,
};

static struct harness *calc_create(const struct expr *condition, const struct expr *const *outputs,
                                   uint32_t output_count, enum plan_changelog changelog)
{
    const struct type input[2] = {text_type, int_type};
    struct type output[4] = {text_type, int_type};
    for (uint32_t i = 0; outputs != NULL && i < output_count; i++) {
        output[i] = outputs[i]->type;
    }
    struct harness *harness = harness_create(input, 2, output, output_count, ARENA);
    harness->node.operator= PLAN_CALC;
    harness->node.changelog = changelog;
    harness->node.calc = (struct plan_calc){.condition = condition, .outputs = outputs};
    harness_open(harness);
    return harness;
}

static void test_outputs_are_computed_only_when_the_condition_holds(void **context)
{
    static const struct expr *const outputs[] = {&value_column, &quotient, &name_column};
    struct harness *harness = calc_create(&not_zero, outputs, 3, PLAN_APPEND);
    ROW(harness, 7, v_text("a"), v_int(3));
    ROW(harness, 8, v_text("b"), v_int(0));
    ROW(harness, 9, v_text("c"), v_null());
    ROW(harness, 10, v_null(), v_int(-7));
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_int_equal(10, harness->times[1]);
    EXPECT(harness, "+I(3, 33, 'a')", "+I(-7, -14, NULL)");
    assert_int_equal(2, harness->counters[OPERATOR_FILTERED_ROWS]);
    harness_destroy(harness);
}

static void test_the_job_fails_when_an_output_fails(void **context)
{
    static const struct expr *const outputs[] = {&quotient};
    struct harness *harness = calc_create(NULL, outputs, 1, PLAN_APPEND);
    ROW(harness, 0, v_text("b"), v_int(0));
    assert_int_equal(OPERATOR_FAILED, harness_process(harness));
    assert_non_null(strstr(harness->context.failure.text, "zero"));
    harness_destroy(harness);
}

static void feed_kinds(struct harness *harness)
{
    static const enum row_kind kinds[] = {ROW_INSERT, ROW_UPDATE_BEFORE, ROW_UPDATE_AFTER,
                                          ROW_DELETE};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++) {
        harness_row(harness, kinds[i], 0, (const struct value[]){v_text("k"), v_int(5)});
        harness_row(harness, kinds[i], 0, (const struct value[]){v_text("z"), v_int(0)});
    }
}

static void test_kinds_pass_through_when_the_edge_retracts(void **context)
{
    struct harness *harness = calc_create(&not_zero, NULL, 2, PLAN_RETRACT);
    feed_kinds(harness);
    EXPECT(harness, "+I('k', 5)", "-U('k', 5)", "+U('k', 5)", "-D('k', 5)");
    harness_destroy(harness);
}

static void test_updates_become_deletes_when_they_stop_to_qualify_on_an_upsert_edge(void **context)
{
    struct harness *harness = calc_create(&not_zero, NULL, 2, PLAN_UPSERT);
    feed_kinds(harness);
    EXPECT(harness, "+I('k', 5)", "-U('k', 5)", "+U('k', 5)", "-D('z', 0)", "-D('k', 5)",
           "-D('z', 0)");
    harness_destroy(harness);
    static const struct expr *const outputs[] = {&name_column};
    harness = calc_create(&not_zero, outputs, 1, PLAN_UPSERT);
    harness_row(harness, ROW_UPDATE_AFTER, 0, (const struct value[]){v_text("z"), v_int(0)});
    EXPECT(harness, "-D('z')");
    harness_destroy(harness);
}

static void test_rows_are_copied_whole_when_outputs_are_the_input(void **context)
{
    static const struct expr *const outputs[] = {&name_column, &value_column};
    struct harness *harness = calc_create(NULL, outputs, 2, PLAN_APPEND);
    for (int64_t i = 0; i < 300; i++) {
        ROW(harness, i, v_text("a"), v_int(i));
    }
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    assert_int_equal(300, harness->line_count);
    assert_string_equal("+I('a', 299)", harness->lines[299]);
    harness_destroy(harness);
}

static void test_union_passes_rows_on_when_they_come(void **context)
{
    const struct type columns[2] = {text_type, boolean_type};
    struct harness *harness = harness_create(columns, 2, columns, 2, ARENA);
    harness->node.operator= PLAN_UNION;
    harness_open(harness);
    ROW(harness, 0, v_text("a"), v_int(1));
    harness_row(harness, ROW_DELETE, 0, (const struct value[]){v_null(), v_null()});
    EXPECT(harness, "+I('a', 1)", "-D(NULL, NULL)");
    harness_destroy(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_are_computed_only_when_the_condition_holds),
        cmocka_unit_test(test_the_job_fails_when_an_output_fails),
        cmocka_unit_test(test_kinds_pass_through_when_the_edge_retracts),
        cmocka_unit_test(test_updates_become_deletes_when_they_stop_to_qualify_on_an_upsert_edge),
        cmocka_unit_test(test_rows_are_copied_whole_when_outputs_are_the_input),
        cmocka_unit_test(test_union_passes_rows_on_when_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
