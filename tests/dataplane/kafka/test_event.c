/* SPDX-License-Identifier: Apache-2.0 */
/* The event ring and the counters' names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dataplane/kafka/event.h"

static void test_ring_when_full_then_newest_is_counted_lost(void **state)
{
    struct kafka_events *events = calloc(1, sizeof(*events));
    struct kafka_event event = {.code = KAFKA_EVENT_CONNECTED};
    for (uint32_t i = 0; i < KAFKA_EVENTS_MAX + 3; i++) {
        kafka_events_push(events, &event, "event %u", i);
    }
    assert_int_equal(events->lost, 3);
    assert_true(kafka_events_pop(events, &event));
    assert_string_equal(event.text, "event 0");
    for (uint32_t i = 1; i < KAFKA_EVENTS_MAX; i++) {
        assert_true(kafka_events_pop(events, &event));
    }
    assert_false(kafka_events_pop(events, &event));
    free(events);
}

static void test_text_when_too_long_then_cut(void **state)
{
    struct kafka_events *events = calloc(1, sizeof(*events));
    struct kafka_event event = {0};
    kafka_events_push(events, &event, "%0500d", 1);
    assert_true(kafka_events_pop(events, &event));
    assert_int_equal(strlen(event.text), KAFKA_EVENT_TEXT_BYTES - 1);
    free(events);
}

static void test_names_when_read_as_an_array_then_match_fields(void **state)
{
    struct kafka_counters counters = {.requests_sent = 1, .events_lost = 2};
    const uint64_t *array = (const uint64_t *)&counters;
    assert_int_equal(array[0], 1);
    assert_string_equal(kafka_counter_name(0), "requests_sent");
    assert_int_equal(array[KAFKA_COUNTERS_COUNT - 1], 2);
    assert_string_equal(kafka_counter_name(KAFKA_COUNTERS_COUNT - 1), "events_lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_when_full_then_newest_is_counted_lost),
        cmocka_unit_test(test_text_when_too_long_then_cut),
        cmocka_unit_test(test_names_when_read_as_an_array_then_match_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
