/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of penstock replay: defaults, values, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/replay_options.h"

#define READ(out, ...) read_words((out), (const char *const[]){"replay", __VA_ARGS__, NULL})

static bool read_words(struct replay_options *out, const char *const *words)
{
    char *arguments[16];
    int count = 0;
    for (; words[count] != NULL; count++) {
        arguments[count] = (char *)(uintptr_t)words[count];
    }
    return replay_options_read(count, arguments, out);
}

static void test_read_when_only_what_is_needed_then_defaults(void **state)
{
    struct replay_options options;
    assert_true(READ(&options, "job.sql", "--in", "i", "--out", "o"));
    assert_string_equal(options.script, "job.sql");
    assert_string_equal(options.input, "i");
    assert_string_equal(options.output, "o");
    assert_int_equal(options.parcel_rows, 256);
    assert_int_equal(options.lanes, 1);
    assert_int_equal(options.state_mib, 4096);
    assert_false(options.is_quiet);
    assert_false(options.prints_nodes);
}

static void test_read_when_all_are_given_then_taken_in_any_order(void **state)
{
    struct replay_options options;
    assert_true(READ(&options, "--quiet", "--lanes", "16", "--in", "i", "job.sql", "--state-mib",
                     "64", "--nodes", "--out", "o", "--parcel-rows", "1"));
    assert_int_equal(options.lanes, 16);
    assert_int_equal(options.state_mib, 64);
    assert_int_equal(options.parcel_rows, 1);
    assert_true(options.is_quiet);
    assert_true(options.prints_nodes);
    assert_string_equal(options.script, "job.sql");
}

static void test_read_when_number_is_wrong_then_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"--lanes", "0"},         {"--lanes", "17"},     {"--lanes", "two"},
        {"--lanes", "2x"},        {"--lanes", ""},       {"--parcel-rows", "0"},
        {"--parcel-rows", "257"}, {"--state-mib", "63"}, {"--state-mib", "65537"},
        {"--lanes", "-1"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct replay_options options;
        assert_false(
            READ(&options, "job.sql", "--in", "i", "--out", "o", wrong[i][0], wrong[i][1]));
    }
}

static void test_read_when_something_is_missing_or_unknown_then_refused(void **state)
{
    struct replay_options options;
    assert_false(read_words(&options, (const char *const[]){"replay", NULL}));
    assert_false(READ(&options, "job.sql", "--in", "i"));
    assert_false(READ(&options, "job.sql", "--out", "o"));
    assert_false(READ(&options, "--in", "i", "--out", "o"));
    assert_false(READ(&options, "job.sql", "--in", "i", "--out"));
    assert_false(READ(&options, "job.sql", "--in", "i", "--out", "o", "--lanes"));
    assert_false(READ(&options, "job.sql", "--in", "i", "--out", "o", "--verbose"));
    assert_false(READ(&options, "job.sql", "two.sql", "--in", "i", "--out", "o"));
}

static void test_read_when_restarts_are_asked_for_then_taken(void **state)
{
    struct replay_options options;
    assert_true(READ(&options, "job.sql", "--in", "i", "--out", "o"));
    assert_int_equal(options.restart_every, 0);
    assert_int_equal(options.state_mib, 4096);
    assert_true(READ(&options, "job.sql", "--in", "i", "--out", "o", "--restart-every", "7",
                     "--restart-lanes", "2,1,16"));
    assert_int_equal(options.restart_every, 7);
    assert_int_equal(options.restart_lane_count, 3);
    assert_int_equal(options.restart_lanes[0], 2);
    assert_int_equal(options.restart_lanes[2], 16);
    assert_int_equal(options.state_mib, 256);
    static const char *const wrong_lanes[] = {
        "", "0", "17", "2,", ",2", "2 ,1", "2;1", "x", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"};
    for (size_t i = 0; i < COUNT_OF(wrong_lanes); i++) {
        assert_false(READ(&options, "job.sql", "--in", "i", "--out", "o", "--restart-lanes",
                          wrong_lanes[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_when_only_what_is_needed_then_defaults),
        cmocka_unit_test(test_read_when_all_are_given_then_taken_in_any_order),
        cmocka_unit_test(test_read_when_number_is_wrong_then_refused),
        cmocka_unit_test(test_read_when_something_is_missing_or_unknown_then_refused),
        cmocka_unit_test(test_read_when_restarts_are_asked_for_then_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
