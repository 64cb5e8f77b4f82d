/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of control/sql/script.c: every case of tests/cases is planned or refused by name; what
 * Flink itself refuses at planning is not planned here; a script cut at any byte gives a plan or
 * an error, and the same script gives the same fingerprint. */
#include <ftw.h>

#include "tests/control/sql/golden.h"

/* What a walk over the cases has seen. */
static struct walk {
    uint32_t planned;
    uint32_t refused;
    uint32_t wrong;
} walk;

/* One case; -EINVAL is right only where Flink says no as well. */
static int run_case(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    if (type != FTW_F || strcmp(path + place->base, "job.sql") != 0) {
        return 0;
    }
    char *text = golden_read(path);
    struct plan *plan = NULL;
    struct error error = {0};
    const struct sql_input input = {.text = text, .bytes = strlen(text), .file_name = path};
    const int verdict = sql_plan(&input, &plan, NULL, &error);
    char refused[4096];
    (void)snprintf(refused, sizeof(refused), "%.*s/out/refused", place->base - 1, path);
    FILE *expected = fopen(refused, "r");
    const bool no_place = verdict != 0 && error.line == 0;
    if ((verdict != 0 && verdict != -ENOTSUP && expected == NULL) || no_place) {
        print_message("%s:%u:%u %s\n", path, error.line, error.column, error.text);
        walk.wrong++;
    }
    walk.planned += verdict == 0;
    walk.refused += verdict != 0;
    if (expected != NULL) {
        (void)fclose(expected);
    }
    plan_destroy(plan);
    free(text);
    return 0;
}

static void test_cases_all_are_planned_or_refused_by_name(void **state)
{
    (void)state;
    walk = (struct walk){0};
    assert_int_equal(nftw(SOURCE_ROOT "/tests/cases", run_case, 16, FTW_PHYS), 0);
    print_message("%u planned, %u refused\n", walk.planned, walk.refused);
    assert_int_equal(walk.wrong, 0);
    assert_true(walk.planned + walk.refused >= 200);
    assert_true(walk.planned >= 80);
}

static const char job[] =
    "CREATE TABLE p (id INT, card STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH "
    "('connector' = 'kafka', 'topic' = 'p', 'properties.bootstrap.servers' = 'b:1', 'format' = "
    "'json');\n"
    "CREATE TABLE o (a STRING, b BIGINT) WITH ('connector' = 'print');\n"
    "INSERT INTO o SELECT UPPER(card), COUNT(*) OVER (PARTITION BY card ORDER BY ts RANGE BETWEEN "
    "INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) FROM p WHERE id > 3 /* end */;\n";

static int plan_text(const char *text, size_t bytes, struct plan **plan, struct error *error)
{
    const struct sql_input input = {.text = text, .bytes = bytes, .file_name = "job.sql"};
    return sql_plan(&input, plan, NULL, error);
}

static void test_script_cut_at_any_byte_gives_an_error_with_words(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof(job) - 1; bytes++) {
        struct plan *plan = NULL;
        struct error error = {0};
        const int verdict = plan_text(job, bytes, &plan, &error);
        if (verdict != 0) {
            assert_null(plan);
            assert_true(error.text[0] != 0);
            assert_string_equal(error.place, "job.sql");
        }
        plan_destroy(plan);
    }
}

static void test_script_planned_twice_has_one_fingerprint(void **state)
{
    (void)state;
    struct plan *plans[2] = {NULL};
    struct error error = {0};
    assert_int_equal(plan_text(job, sizeof(job) - 1, &plans[0], &error), 0);
    assert_int_equal(plan_text(job, sizeof(job) - 1, &plans[1], &error), 0);
    assert_true(plans[0]->fingerprint == plans[1]->fingerprint);
    for (uint32_t i = 0; i < plans[0]->node_count; i++) {
        assert_int_equal(plans[0]->nodes[i]->id, i);
        for (uint32_t k = 0; k < plans[0]->nodes[i]->input_count; k++) {
            assert_true(plans[0]->nodes[i]->inputs[k] < i);
        }
    }
    plan_destroy(plans[0]);
    plan_destroy(plans[1]);
}

static void test_script_with_another_window_has_another_fingerprint(void **state)
{
    (void)state;
    char *other = strdup(job);

    strstr(other, "'1' MINUTE")[1] = '2';
    struct plan *plans[2] = {NULL};
    struct error error = {0};
    assert_int_equal(plan_text(job, sizeof(job) - 1, &plans[0], &error), 0);
    assert_int_equal(plan_text(other, strlen(other), &plans[1], &error), 0);
    assert_true(plans[0]->fingerprint != plans[1]->fingerprint);
    plan_destroy(plans[0]);
    plan_destroy(plans[1]);
    free(other);
}

static void test_script_larger_than_the_cap_is_refused(void **state)
{
    (void)state;
    const size_t bytes = ((size_t)4 << 20) + 1;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, ' ', bytes);
    struct plan *plan = NULL;
    struct error error = {0};
    assert_int_equal(plan_text(text, bytes, &plan, &error), -E2BIG);
    free(text);
}

/* Nesting of every kind, deep enough to break a stack that nobody counts. */
static void test_script_nested_deeply_is_refused(void **state)
{
    (void)state;
    static const char *const openings[] = {"(", "- ", "NOT (", "UPPER(", "CASE WHEN "};
    for (uint32_t i = 0; i < COUNT_OF(openings); i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *into = open_memstream(&text, &bytes);
        (void)fputs("INSERT INTO o SELECT ", into);
        for (uint32_t k = 0; k < 100000; k++) {
            (void)fputs(openings[i], into);
        }
        (void)fclose(into);
        struct plan *plan = NULL;
        struct error error = {0};
        assert_true(plan_text(text, bytes, &plan, &error) < 0);
        free(text);
    }
}

/* CASE x WHEN … repeats x: the tree grows faster than the text, and is capped. */
static void test_script_with_repeated_operands_is_capped(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *into = open_memstream(&text, &bytes);
    (void)fwrite(job, 1, (size_t)(strstr(job, "INSERT") - job), into);
    (void)fputs("INSERT INTO o SELECT card, ", into);
    for (uint32_t i = 0; i < 60; i++) {
        (void)fputs("CASE ", into);
    }
    (void)fputs("id", into);
    for (uint32_t i = 0; i < 60; i++) {
        (void)fputs(" WHEN 1 THEN 2 WHEN 3 THEN 4 END", into);
    }
    (void)fputs(" FROM p;", into);
    (void)fclose(into);
    struct plan *plan = NULL;
    struct error error = {0};
    assert_int_equal(plan_text(text, bytes, &plan, &error), -E2BIG);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_all_are_planned_or_refused_by_name),
        cmocka_unit_test(test_script_cut_at_any_byte_gives_an_error_with_words),
        cmocka_unit_test(test_script_planned_twice_has_one_fingerprint),
        cmocka_unit_test(test_script_with_another_window_has_another_fingerprint),
        cmocka_unit_test(test_script_larger_than_the_cap_is_refused),
        cmocka_unit_test(test_script_nested_deeply_is_refused),
        cmocka_unit_test(test_script_with_repeated_operands_is_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
