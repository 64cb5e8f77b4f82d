/* SPDX-License-Identifier: Apache-2.0 */
/* Script files: read, planned, refused, and how an error is printed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/job_file.h"

#define SCRIPT                                                                                     \
    "CREATE TABLE a (x INT) WITH ('connector' = 'kafka', 'topic' = 'a', "                          \
    "'properties.bootstrap.servers' = '198.18.0.1:9092', 'format' = 'json', "                      \
    "'scan.startup.mode' = 'earliest-offset');\n"                                                  \
    "CREATE TABLE b (x INT) WITH ('connector' = 'blackhole');\n"                                   \
    "INSERT INTO b SELECT x FROM a;\n"

/* Writes a file of the test's own; the caller removes it. */
static void write_file(char path[static 32], const void *text, size_t bytes)
{
    (void)snprintf(path, 32, "/tmp/penstock-test-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, bytes), (ssize_t)bytes);
    assert_int_equal(close(file), 0);
}

static void test_load_when_script_is_good_then_planned(void **state)
{
    char path[32];
    struct job_file script;
    struct error error = {0};
    write_file(path, SCRIPT, strlen(SCRIPT));
    assert_int_equal(job_file_load(path, &script, NULL, &error), 0);
    assert_non_null(script.plan);
    assert_int_equal(script.plan->nodes[0]->operator, PLAN_SOURCE);
    assert_int_equal(script.plan->nodes[script.plan->node_count - 1]->operator, PLAN_SINK);
    job_file_unload(&script);
    assert_null(script.plan);
    assert_int_equal(unlink(path), 0);
}

static void test_load_when_script_is_wrong_then_error_has_file_line_and_column(void **state)
{
    static const char text[] = "CREATE TABLE b (x INT) WITH ('connector' = 'blackhole');\n"
                               "INSERT INTO b SELECT x FROM nowhere;\n";
    char path[32];
    struct job_file script;
    struct error error = {0};
    write_file(path, text, strlen(text));
    assert_int_equal(job_file_load(path, &script, NULL, &error), -EINVAL);
    assert_string_equal(error.place, path);
    assert_int_equal(error.line, 2);
    assert_int_equal(error.column, 29);
    assert_non_null(strstr(error.text, "nowhere"));
    job_file_unload(&script);
    assert_int_equal(unlink(path), 0);
}

static void test_load_when_no_file_then_enoent_and_its_name(void **state)
{
    struct job_file script;
    struct error error = {0};
    assert_int_equal(job_file_load("/nonexistent/job.sql", &script, NULL, &error), -ENOENT);
    assert_string_equal(error.place, "/nonexistent/job.sql");
    job_file_unload(&script);
}

static void test_load_when_larger_than_the_limit_then_efbig(void **state)
{
    char path[32];
    struct job_file script;
    struct error error = {0};
    char *text = malloc(SCRIPT_BYTES_MAX + 1);
    assert_non_null(text);
    memset(text, ' ', SCRIPT_BYTES_MAX + 1);
    write_file(path, text, SCRIPT_BYTES_MAX + 1);
    assert_int_equal(job_file_load(path, &script, NULL, &error), -EFBIG);
    job_file_unload(&script);
    free(text);
    assert_int_equal(unlink(path), 0);
}

static void assert_printed(const struct error *error, const char *wanted)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *into = open_memstream(&text, &bytes);
    assert_non_null(into);
    error_print(into, error);
    assert_int_equal(fclose(into), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_print_when_parts_are_missing_then_they_are_left_out(void **state)
{
    assert_printed(&(struct error){.text = "why", .place = "a.sql", .line = 3, .column = 7},
                   "a.sql:3:7: why\n");
    assert_printed(&(struct error){.text = "why", .place = "nic.mtu"}, "nic.mtu: why\n");
    assert_printed(&(struct error){.text = "why", .line = 3, .column = 7}, "3:7: why\n");
    assert_printed(&(struct error){.text = "why"}, "why\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_when_script_is_good_then_planned),
        cmocka_unit_test(test_load_when_script_is_wrong_then_error_has_file_line_and_column),
        cmocka_unit_test(test_load_when_no_file_then_enoent_and_its_name),
        cmocka_unit_test(test_load_when_larger_than_the_limit_then_efbig),
        cmocka_unit_test(test_print_when_parts_are_missing_then_they_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
