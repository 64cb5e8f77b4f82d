/* SPDX-License-Identifier: Apache-2.0 */
/* Printed lines: order, both streams, wrapping, a full ring, a line that can never fit, threads. */
#include "tests/dataplane/fake_job.h"

#include <pthread.h>
#include <sched.h>

#include "dataplane/sink_print.h"

static enum record_sink_verdict append(struct record_sink *sink, uint32_t topic, const char *line)
{
    const struct record record = {.value = {.data = (const uint8_t *)line, .bytes = strlen(line)}};
    return record_sink_append(sink, topic, -1, &record);
}

static uint32_t drain(struct record_sink *sink, char **normal, char **errors)
{
    size_t bytes = 0;
    FILE *first = open_memstream(normal, &bytes);
    FILE *second = open_memstream(errors, &bytes);
    const uint32_t lines = sink_print_drain(sink, first, second);
    (void)fclose(first);
    (void)fclose(second);
    return lines;
}

static void test_lines_come_out_in_order_on_their_streams(void **state)
{
    struct record_sink *sink = NULL;
    struct error error = {0};
    assert_int_equal(sink_print_create(256, &sink, &error), 0);
    assert_int_equal(append(sink, 0, "+I[1, a]"), RECORD_SINK_OK);
    assert_int_equal(append(sink, 1, "to stderr"), RECORD_SINK_OK);
    assert_int_equal(append(sink, 0, ""), RECORD_SINK_OK);
    char *normal = NULL;
    char *errors = NULL;
    assert_int_equal(drain(sink, &normal, &errors), 3);
    assert_string_equal(normal, "+I[1, a]\n\n");
    assert_string_equal(errors, "to stderr\n");
    assert_true(record_sink_flushed(sink));
    free(normal);
    free(errors);
    sink_print_destroy(sink);
}

static void test_ring_when_full_then_refuses_and_wraps_after_a_drain(void **state)
{
    struct record_sink *sink = NULL;
    struct error error = {0};
    assert_int_equal(sink_print_create(64, &sink, &error), 0);
    assert_int_equal(append(sink, 0, "0123456789012345678901234567890"), RECORD_SINK_TOO_LARGE);
    for (uint32_t round = 0; round < 50; round++) {
        char line[16];
        (void)snprintf(line, sizeof(line), "line %u", round);
        uint32_t count = 0;
        while (append(sink, 0, line) == RECORD_SINK_OK) {
            count++;
        }
        assert_int_equal(count, 64 / (4 + strlen(line)));
        char *normal = NULL;
        char *errors = NULL;
        assert_int_equal(drain(sink, &normal, &errors), count);
        assert_int_equal(strlen(normal), count * (strlen(line) + 1));
        assert_int_equal(strncmp(normal, line, strlen(line)), 0);
        free(normal);
        free(errors);
    }
    sink_print_destroy(sink);
}

static void *produce(void *context)
{
    for (uint32_t i = 0; i < 20000; i++) {
        char line[16];
        (void)snprintf(line, sizeof(line), "%u", i);
        while (append(context, 0, line) != RECORD_SINK_OK) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void test_lane_and_control_in_two_threads_lose_nothing(void **state)
{
    struct record_sink *sink = NULL;
    struct error error = {0};
    assert_int_equal(sink_print_create(1024, &sink, &error), 0);
    char *text = NULL;
    size_t bytes = 0;
    FILE *into = open_memstream(&text, &bytes);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, produce, sink), 0);
    uint32_t lines = 0;
    while (lines < 20000) {
        lines += sink_print_drain(sink, into, stderr);
        (void)sched_yield();
    }
    (void)pthread_join(thread, NULL);
    (void)fclose(into);
    const char *at = text;
    for (uint32_t i = 0; i < 20000; i++) {
        char *end = NULL;
        assert_int_equal(strtoul(at, &end, 10), i);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    free(text);
    sink_print_destroy(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_come_out_in_order_on_their_streams),
        cmocka_unit_test(test_ring_when_full_then_refuses_and_wraps_after_a_drain),
        cmocka_unit_test(test_lane_and_control_in_two_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
