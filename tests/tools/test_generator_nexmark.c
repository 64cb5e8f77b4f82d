/* SPDX-License-Identifier: Apache-2.0 */
/* Byte for byte what the case suite's gen.py prints, for several seeds, rates and ranges. */
#include "tools/generator.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct run {
    struct generator_nexmark_config config;
    uint64_t first;
    uint64_t events;
};

static FILE *open_reference(const struct run *run)
{
    char command[512];
    (void)snprintf(command, sizeof(command),
                   "python3 " SOURCE_ROOT "/tests/cases/nexmark/gen.py --seed %" PRIu64
                   " --events %" PRIu64 " --rate %" PRIu64 " --start-ms %" PRId64 " --from %" PRIu64
                   " --disorder %u",
                   run->config.seed, run->events, run->config.rate, run->config.start_ms,
                   run->first, run->config.disorder_ms);
    FILE *reference = popen(command, "r");
    assert_non_null(reference);
    return reference;
}

static void check_run(const struct run *run)
{
    char expected[2 * GENERATOR_LINE_BYTES_MAX];
    uint8_t line[GENERATOR_LINE_BYTES_MAX];
    struct generator_nexmark *generator;
    FILE *reference = open_reference(run);
    assert_int_equal(generator_nexmark_create(&run->config, &generator), 0);
    for (uint64_t n = run->first; n < run->first + run->events; n++) {
        const size_t bytes = generator_nexmark_line(generator, n, line);
        assert_non_null(fgets(expected, sizeof(expected), reference));
        assert_int_equal(strlen(expected), bytes + 1);
        assert_memory_equal(expected, line, bytes);
    }
    assert_null(fgets(expected, sizeof(expected), reference));
    assert_int_equal(pclose(reference), 0);
    generator_nexmark_destroy(generator);
}

static void test_line_when_any_arguments_then_bytes_of_the_reference(void **state)
{
    (void)state;
    static const struct run RUNS[] = {
        {{.seed = 1, .rate = 100, .start_ms = 1700006375000}, 2, 5000},
        {{.seed = 2, .rate = 2000, .start_ms = 1700006360000, .disorder_ms = 2000}, 2, 3000},
        {{.seed = 42, .rate = 1000000, .start_ms = 0, .disorder_ms = INT32_MAX}, 999999999, 500},
        {{.seed = UINT64_MAX, .rate = 1, .start_ms = -5000, .disorder_ms = 100}, 49, 500},
    };
    for (size_t i = 0; i < COUNT_OF(RUNS); i++) {
        check_run(&RUNS[i]);
    }
}

static void test_line_when_asked_out_of_order_then_same_bytes(void **state)
{
    (void)state;
    uint8_t first[GENERATOR_LINE_BYTES_MAX];
    uint8_t again[GENERATOR_LINE_BYTES_MAX];
    struct generator_nexmark *generator;
    const struct generator_nexmark_config config = {.seed = 3, .rate = 7, .start_ms = 1};
    assert_int_equal(generator_nexmark_create(&config, &generator), 0);
    const size_t bytes = generator_nexmark_line(generator, 1234, first);
    (void)generator_nexmark_line(generator, 9, again);
    assert_int_equal(generator_nexmark_line(generator, 1234, again), bytes);
    assert_memory_equal(first, again, bytes);
    generator_nexmark_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_when_any_arguments_then_bytes_of_the_reference),
        cmocka_unit_test(test_line_when_asked_out_of_order_then_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
