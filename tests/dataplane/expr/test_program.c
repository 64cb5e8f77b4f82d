/* SPDX-License-Identifier: Apache-2.0 */
/* Running of programs over rows: branches compute only their rows, NULLs, failures and their row,
 * scratch, reuse between runs, and random trees against an evaluation row by row. */
#include "dataplane/expr/program.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COLUMNS    4 /* BIGINT a, BIGINT b, VARCHAR s, DECIMAL(38, 0) d */
#define ROWS_MAX   PARCEL_ROWS_MAX
#define ROW_BYTES  256
#define NODES_MAX  4096
#define TREE_DEPTH 4

static const struct type bigint = {.kind = TYPE_BIGINT, .nullable = true};
static const struct type boolean = {.kind = TYPE_BOOLEAN, .nullable = true};
static const struct type string = {
    .kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
static const struct type wide = {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38};

struct rows {
    struct row_layout layout;
    struct type types[COLUMNS];
    uint16_t slots[COLUMNS];
    const struct row *rows[ROWS_MAX];
    _Alignas(8) uint8_t data[ROWS_MAX][ROW_BYTES];
    uint32_t count;
};

/* Expressions of one test; nodes are never freed singly. */
struct trees {
    struct expr nodes[NODES_MAX];
    const struct expr *arguments[NODES_MAX * 3];
    uint32_t node_count;
    uint32_t argument_count;
};

struct setup {
    struct rows rows;
    struct trees trees;
};

static int setup(void **state)
{
    struct setup *setup = calloc(1, sizeof(*setup));
    *state = setup;
    if (setup == NULL) {
        return -1;
    }
    const struct type types[COLUMNS] = {bigint, bigint, string, wide};
    memcpy(setup->rows.types, types, sizeof(types));
    row_layout_init(&setup->rows.layout, setup->rows.types, COLUMNS, setup->rows.slots);
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void add_row(struct rows *rows, const int64_t *a, const int64_t *b, const char *s)
{
    struct row_writer writer;
    void *into = rows->data[rows->count];
    assert_true(row_begin(&writer, &rows->layout, into, ROW_BYTES, NULL));
    if (a != NULL) {
        row_set_i64(&writer, 0, *a);
    }
    if (b != NULL) {
        row_set_i64(&writer, 1, *b);
    }
    if (s != NULL) {
        const struct span text = {.data = (const uint8_t *)s, .bytes = strlen(s)};
        assert_true(row_set_text(&writer, 2, text));
    }
    (void)row_end(&writer);
    rows->rows[rows->count++] = into;
}

#define ROW(rows, a, b, s) add_row(rows, &(const int64_t){a}, &(const int64_t){b}, s)

static const struct expr *column(struct trees *trees, uint32_t index, struct type type)
{
    struct expr *expr = &trees->nodes[trees->node_count++];
    *expr = (struct expr){.kind = EXPR_COLUMN, .type = type, .column = index};
    return expr;
}

static const struct expr *number(struct trees *trees, int64_t value)
{
    struct expr *expr = &trees->nodes[trees->node_count++];
    *expr = (struct expr){.kind = EXPR_LITERAL, .type = bigint, .literal = {.i64 = value}};
    return expr;
}

static const struct expr *call_of(struct trees *trees, enum expr_function function,
                                  struct type type, const struct expr *const *arguments,
                                  uint32_t count)
{
    assert_true(trees->node_count < NODES_MAX);
    struct expr *expr = &trees->nodes[trees->node_count++];
    const struct expr **own = &trees->arguments[trees->argument_count];
    memcpy(own, arguments, count * sizeof(*own));
    trees->argument_count += count;
    *expr = (struct expr){.kind = EXPR_CALL,
                          .type = type,
                          .function = function,
                          .arguments = own,
                          .argument_count = count};
    return expr;
}

#define CALL(trees, function, type, ...)                                                           \
    call_of(trees, function, type, (const struct expr *const[]){__VA_ARGS__},                      \
            sizeof((const struct expr *const[]){__VA_ARGS__}) / sizeof(struct expr *))

static struct program *compile(const struct rows *rows, const struct expr *const *outputs,
                               uint32_t count, uint32_t scratch_bytes)
{
    const struct program_config config = {.layout = &rows->layout,
                                          .outputs = outputs,
                                          .output_count = count,
                                          .time_zone = "UTC",
                                          .scratch_bytes = scratch_bytes};
    struct program *program = NULL;
    struct error error = {.line = 0};
    const int result = program_compile(&config, &program, &error);
    if (result != 0) {
        print_error("%s\n", error.text);
    }
    assert_int_equal(result, 0);
    return program;
}

static enum program_verdict run(struct program_state *state, const struct rows *rows)
{
    const struct program_context context = {.watermark_ms = 7, .processing_ms = 9};
    return program_run(state, &context, rows->rows, rows->count);
}

static struct program_state *state_of(const struct program *program)
{
    struct program_state *state = NULL;
    assert_int_equal(program_state_create(program, &state, NULL), 0);
    return state;
}

/* b <> 0 AND 100 / b > a */
static const struct expr *guarded(struct trees *trees)
{
    const struct expr *a = column(trees, 0, bigint);
    const struct expr *b = column(trees, 1, bigint);
    const struct expr *quotient = CALL(trees, EXPR_DIVIDE, bigint, number(trees, 100), b);
    return CALL(trees, EXPR_AND, boolean,
                CALL(trees, EXPR_NOT_EQUALS, boolean, b, number(trees, 0)),
                CALL(trees, EXPR_GREATER, boolean, quotient, a));
}

static void test_run_when_and_guards_a_division_then_no_failure(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    ROW(&setup->rows, 1, 0, "x");
    ROW(&setup->rows, 1, 10, "x");
    ROW(&setup->rows, 50, 10, "x");
    add_row(&setup->rows, NULL, &(int64_t){10}, "x");
    add_row(&setup->rows, &(int64_t){1}, NULL, "x");
    const struct expr *output = guarded(&setup->trees);
    struct program *program = compile(&setup->rows, &output, 1, 0);
    struct program_state *run_state = state_of(program);
    for (uint32_t again = 0; again < 2; again++) {
        assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
        const struct vector *out = program_result(run_state, 0);
        static const int64_t values[] = {0, 1, 0};
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(out->null[i], VECTOR_VALUE);
            assert_int_equal(out->i64[i], values[i]);
        }
        assert_int_equal(out->null[3], VECTOR_NULL);
        assert_int_equal(out->null[4], VECTOR_NULL);
    }
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_run_when_division_by_zero_then_row_and_reason(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    ROW(&setup->rows, 1, 5, "x");
    ROW(&setup->rows, 1, 0, "x");
    ROW(&setup->rows, 1, 0, "x");
    struct trees *trees = &setup->trees;
    const struct expr *output =
        CALL(trees, EXPR_DIVIDE, bigint, column(trees, 0, bigint), column(trees, 1, bigint));
    struct program *program = compile(&setup->rows, &output, 1, 0);
    struct program_state *run_state = state_of(program);
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_FAILED);
    char reason[PROGRAM_REASON_BYTES];
    assert_int_equal(program_failure(run_state, reason), 1);
    assert_string_equal(reason, "/ by zero");
    setup->rows.count = 1;
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_run_when_case_then_only_its_branch(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    ROW(&setup->rows, 7, 0, "x");
    ROW(&setup->rows, 7, 2, "x");
    add_row(&setup->rows, &(int64_t){7}, NULL, "x");
    struct trees *trees = &setup->trees;
    const struct expr *a = column(trees, 0, bigint);
    const struct expr *b = column(trees, 1, bigint);
    const struct expr *zero = CALL(trees, EXPR_EQUALS, boolean, b, number(trees, 0));
    const struct expr *quotient = CALL(trees, EXPR_DIVIDE, bigint, a, b);
    const struct expr *outputs[3] = {
        CALL(trees, EXPR_CASE, bigint, zero, number(trees, -1), quotient),
        CALL(trees, EXPR_COALESCE, bigint, b, CALL(trees, EXPR_DIVIDE, bigint, a, a)),
        CALL(trees, EXPR_OR, boolean, zero,
             CALL(trees, EXPR_GREATER, boolean, quotient, number(trees, 3))),
    };
    struct program *program = compile(&setup->rows, outputs, 3, 0);
    struct program_state *run_state = state_of(program);
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
    assert_int_equal(program_result(run_state, 0)->i64[0], -1);
    assert_int_equal(program_result(run_state, 0)->i64[1], 3);
    assert_int_equal(program_result(run_state, 0)->null[2], VECTOR_NULL);
    assert_int_equal(program_result(run_state, 1)->i64[0], 0);
    assert_int_equal(program_result(run_state, 1)->i64[2], 1);
    assert_int_equal(program_result(run_state, 1)->null[2], VECTOR_VALUE);
    assert_int_equal(program_result(run_state, 2)->i64[0], 1);
    assert_int_equal(program_result(run_state, 2)->i64[1], 0);
    assert_int_equal(program_result(run_state, 2)->null[2], VECTOR_NULL);
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_run_when_decimal_overflows_then_hidden_null(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    struct row_writer writer;
    void *into = setup->rows.data[0];
    assert_true(row_begin(&writer, &setup->rows.layout, into, ROW_BYTES, NULL));
    __int128 most = 1;
    for (uint32_t i = 0; i < 38; i++) {
        most *= 10;
    }
    most -= 1;
    row_set(&writer, 3, &most);
    (void)row_end(&writer);
    setup->rows.rows[0] = into;
    setup->rows.count = 1;
    struct trees *trees = &setup->trees;
    const struct expr *d = column(trees, 3, wide);
    const struct expr *sum = CALL(trees, EXPR_PLUS, wide, d, d);
    const struct expr *outputs[4] = {
        sum,
        CALL(trees, EXPR_IS_NULL, boolean, sum),
        CALL(trees, EXPR_GREATER, boolean, sum, d),
        CALL(trees, EXPR_COALESCE, wide, sum, d),
    };
    struct program *program = compile(&setup->rows, outputs, 4, 0);
    struct program_state *run_state = state_of(program);
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
    assert_int_equal(program_result(run_state, 0)->null[0], VECTOR_NULL_HIDDEN);
    assert_int_equal(program_result(run_state, 1)->i64[0], 0);
    assert_int_equal(program_result(run_state, 2)->null[0], VECTOR_NULL);
    assert_true(program_result(run_state, 3)->i128[0] == most);
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_run_when_scratch_full_then_fewer_rows_pass(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    for (uint32_t i = 0; i < 8; i++) {
        ROW(&setup->rows, 1, 1, "0123456789abcdef");
    }
    struct trees *trees = &setup->trees;
    const struct expr *s = column(trees, 2, string);
    const struct expr *output = CALL(trees, EXPR_CONCAT, string, s, s);
    struct program *program = compile(&setup->rows, &output, 1, 100);
    struct program_state *run_state = state_of(program);
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_SCRATCH_FULL);
    setup->rows.count = 3;
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
    const struct vector *out = program_result(run_state, 0);
    assert_int_equal(out->text[2].bytes, 32);
    assert_memory_equal(out->text[2].data, "0123456789abcdef0123456789abcdef", 32);
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_store_when_any_type_then_row_reads_back(void **state)
{
    struct setup *setup = *state;
    setup->rows.count = 0;
    ROW(&setup->rows, 42, 0, "héllo");
    add_row(&setup->rows, NULL, NULL, NULL);
    struct trees *trees = &setup->trees;
    const struct expr *outputs[4] = {column(trees, 0, bigint), column(trees, 1, bigint),
                                     column(trees, 2, string), column(trees, 3, wide)};
    struct program *program = compile(&setup->rows, outputs, 4, 0);
    struct program_state *run_state = state_of(program);
    assert_int_equal(run(run_state, &setup->rows), PROGRAM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        _Alignas(8) uint8_t into[ROW_BYTES];
        struct row_writer writer;
        assert_true(row_begin(&writer, &setup->rows.layout, into, sizeof(into), NULL));
        for (uint32_t k = 0; k < COLUMNS; k++) {
            assert_true(program_store(program_result(run_state, k), i, &writer, k));
        }
        const uint32_t bytes = row_end(&writer);
        assert_int_equal(bytes, setup->rows.rows[i]->bytes);
        assert_memory_equal(into, setup->rows.rows[i], bytes);
    }
    program_state_destroy(run_state);
    program_destroy(program);
}

static void test_compile_when_types_have_no_kernel_then_named(void **state)
{
    struct setup *setup = *state;
    struct trees *trees = &setup->trees;
    const struct expr *output = CALL(trees, EXPR_ABS, string, column(trees, 2, string));
    const struct program_config config = {
        .layout = &setup->rows.layout, .outputs = &output, .output_count = 1, .time_zone = "UTC"};
    struct program *program = NULL;
    struct error error = {.line = 0};
    assert_int_equal(program_compile(&config, &program, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "ABS"));
    assert_null(program);
}

/* The model: one value, computed row by row, branches by need. */
struct model {
    bool null;
    bool failed;
    int64_t value;
};

static struct model model_of(const struct expr *expr, const struct rows *rows, uint32_t row);

static struct model model_logic(const struct expr *expr, const struct rows *rows, uint32_t row)
{
    const bool wins = expr->function == EXPR_OR;
    struct model out = {.value = !wins};
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        const struct model next = model_of(expr->arguments[i], rows, row);
        if (next.failed || (!next.null && (next.value != 0) == wins)) {
            return next;
        }
        out.null = out.null || next.null;
    }
    return out;
}

static struct model model_case(const struct expr *expr, const struct rows *rows, uint32_t row)
{
    for (uint32_t i = 0; i + 1 < expr->argument_count; i += 2) {
        const struct model condition = model_of(expr->arguments[i], rows, row);
        if (condition.failed) {
            return condition;
        }
        if (!condition.null && condition.value != 0) {
            return model_of(expr->arguments[i + 1], rows, row);
        }
    }
    return model_of(expr->arguments[expr->argument_count - 1], rows, row);
}

static struct model model_two(const struct expr *expr, const struct rows *rows, uint32_t row)
{
    const struct model a = model_of(expr->arguments[0], rows, row);
    const struct model b = model_of(expr->arguments[1], rows, row);
    struct model out = {.null = a.null || b.null, .failed = a.failed || b.failed};
    if (out.null || out.failed) {
        return out;
    }
    switch (expr->function) {
    case EXPR_PLUS:
        out.value = (int64_t)((uint64_t)a.value + (uint64_t)b.value);
        break;
    case EXPR_TIMES:
        out.value = (int64_t)((uint64_t)a.value * (uint64_t)b.value);
        break;
    case EXPR_DIVIDE:
        out.failed = b.value == 0;
        out.value = b.value == 0    ? 0
                    : b.value == -1 ? (int64_t)(0 - (uint64_t)a.value)
                                    : a.value / b.value;
        break;
    case EXPR_LESS:
        out.value = a.value < b.value;
        break;
    default:
        out.value = a.value == b.value;
        break;
    }
    return out;
}

static struct model model_of(const struct expr *expr, const struct rows *rows, uint32_t row)
{
    if (expr->kind == EXPR_LITERAL) {
        return (struct model){.value = expr->literal.i64};
    }
    if (expr->kind == EXPR_COLUMN) {
        return (struct model){.null = row_is_null(rows->rows[row], expr->column),
                              .value = row_i64(&rows->layout, rows->rows[row], expr->column)};
    }
    if (expr->function == EXPR_AND || expr->function == EXPR_OR) {
        return model_logic(expr, rows, row);
    }
    if (expr->function == EXPR_CASE) {
        return model_case(expr, rows, row);
    }
    if (expr->function == EXPR_COALESCE) {
        const struct model first = model_of(expr->arguments[0], rows, row);
        return first.null && !first.failed ? model_of(expr->arguments[1], rows, row) : first;
    }
    return model_two(expr, rows, row);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static const struct expr *random_tree(struct trees *trees, uint64_t *seed, bool truth,
                                      uint32_t depth);

static const struct expr *random_truth(struct trees *trees, uint64_t *seed, uint32_t depth)
{
    static const enum expr_function kinds[] = {EXPR_AND, EXPR_OR, EXPR_LESS, EXPR_EQUALS};
    const enum expr_function function = depth == 0 ? EXPR_LESS : kinds[draw(seed, 4)];
    const bool logic = function == EXPR_AND || function == EXPR_OR;
    const uint32_t below = depth == 0 ? 0 : depth - 1;
    return CALL(trees, function, boolean, random_tree(trees, seed, logic, below),
                random_tree(trees, seed, logic, below));
}

static const struct expr *random_tree(struct trees *trees, uint64_t *seed, bool truth,
                                      uint32_t depth)
{
    if (truth) {
        return random_truth(trees, seed, depth);
    }
    if (depth == 0 || draw(seed, 5) == 0) {
        return draw(seed, 3) == 0 ? number(trees, (int64_t)draw(seed, 5) - 2)
                                  : column(trees, draw(seed, 2), bigint);
    }
    switch (draw(seed, 5)) {
    case 0:
        return CALL(trees, EXPR_CASE, bigint, random_tree(trees, seed, true, depth - 1),
                    random_tree(trees, seed, false, depth - 1),
                    random_tree(trees, seed, false, depth - 1));
    case 1:
        return CALL(trees, EXPR_COALESCE, bigint, random_tree(trees, seed, false, depth - 1),
                    random_tree(trees, seed, false, depth - 1));
    case 2:
        return CALL(trees, EXPR_DIVIDE, bigint, random_tree(trees, seed, false, depth - 1),
                    random_tree(trees, seed, false, depth - 1));
    case 3:
        return CALL(trees, EXPR_TIMES, bigint, random_tree(trees, seed, false, depth - 1),
                    random_tree(trees, seed, false, depth - 1));
    default:
        return CALL(trees, EXPR_PLUS, bigint, random_tree(trees, seed, false, depth - 1),
                    random_tree(trees, seed, false, depth - 1));
    }
}

/* Compares a program with the model on every row; rows where the model fails are left out first,
 * and must make the program fail. */
static void check_tree(struct rows *rows, const struct expr *const *outputs, uint32_t count)
{
    struct program *program = compile(rows, outputs, count, 0);
    struct program_state *state = state_of(program);
    const struct row *good[ROWS_MAX];
    uint32_t good_count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        bool failed = false;
        for (uint32_t k = 0; k < count; k++) {
            failed = failed || model_of(outputs[k], rows, i).failed;
        }
        if (!failed) {
            good[good_count++] = rows->rows[i];
        }
    }
    const enum program_verdict verdict = run(state, rows);
    assert_int_equal(verdict, good_count == rows->count ? PROGRAM_OK : PROGRAM_FAILED);
    struct rows some = {.layout = rows->layout, .count = good_count};
    memcpy(some.rows, good, good_count * sizeof(*good));
    assert_int_equal(run(state, &some), PROGRAM_OK);
    for (uint32_t i = 0; i < good_count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            const struct model model = model_of(outputs[k], &some, i);
            const struct vector *out = program_result(state, k);
            assert_int_equal(out->null[i] != 0, model.null);
            assert_true(model.null || out->i64[i] == model.value);
        }
    }
    program_state_destroy(state);
    program_destroy(program);
}

static void test_run_when_random_trees_then_as_row_by_row(void **state)
{
    struct setup *setup = *state;
    uint64_t seed = 20261130;
    for (uint32_t round = 0; round < 300; round++) {
        setup->rows.count = 0;
        const uint32_t count = 1 + draw(&seed, round % 10 == 0 ? ROWS_MAX : 20);
        for (uint32_t i = 0; i < count; i++) {
            const int64_t a = (int64_t)draw(&seed, 5) - 2;
            const int64_t b = (int64_t)draw(&seed, 7) - 1;
            add_row(&setup->rows, draw(&seed, 4) == 0 ? NULL : &a, draw(&seed, 4) == 0 ? NULL : &b,
                    NULL);
        }
        setup->trees.node_count = 0;
        setup->trees.argument_count = 0;
        const struct expr *outputs[3];
        for (uint32_t k = 0; k < 3; k++) {
            outputs[k] = random_tree(&setup->trees, &seed, k == 1, TREE_DEPTH);
        }
        check_tree(&setup->rows, outputs, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_when_and_guards_a_division_then_no_failure),
        cmocka_unit_test(test_run_when_division_by_zero_then_row_and_reason),
        cmocka_unit_test(test_run_when_case_then_only_its_branch),
        cmocka_unit_test(test_run_when_decimal_overflows_then_hidden_null),
        cmocka_unit_test(test_run_when_scratch_full_then_fewer_rows_pass),
        cmocka_unit_test(test_store_when_any_type_then_row_reads_back),
        cmocka_unit_test(test_compile_when_types_have_no_kernel_then_named),
        cmocka_unit_test(test_run_when_random_trees_then_as_row_by_row),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
