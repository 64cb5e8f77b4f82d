/* SPDX-License-Identifier: Apache-2.0 */
/* Where sources start and end. */
#include "tests/dataplane/kafka/harness.h"

/* Three batches of ten, an hour apart. */
static struct harness *make(void)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    for (int i = 0; i < 3; i++) {
        harness_store(&harness->in->partitions[0], 10, 3600000 * (i + 1));
    }
    return harness;
}

static void test_start_when_each_kind_then_first_offset(void **state)
{
    static const struct {
        enum kafka_start start;
        int64_t value;
        int64_t first; /* -1: nothing but what comes later */
    } rows[] = {
        {KAFKA_START_EARLIEST, 0, 0},         {KAFKA_START_LATEST, 0, -1},
        {KAFKA_START_TIMESTAMP, 1, 0},        {KAFKA_START_TIMESTAMP, 3600001, 10},
        {KAFKA_START_TIMESTAMP, 7200000, 10}, {KAFKA_START_TIMESTAMP, 99999999, -1},
        {KAFKA_START_OFFSET, 17, 17},         {KAFKA_START_OFFSET, 30, -1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct harness *harness = make();
        uint32_t source = harness_assign(harness, 0, rows[i].start, rows[i].value);
        if (rows[i].first < 0) {
            assert_int_equal(harness_drain(harness, 100), 0);
            assert_int_equal(harness_source(harness, source).position, 30);
            harness_store(&harness->in->partitions[0], 1, 5);
            assert_int_equal(harness_pull(harness), 1);
            assert_int_equal(harness->records[0].offset, 30);
        } else {
            assert_true(harness_pull(harness) > 0);
            assert_int_equal(harness->records[0].offset, rows[i].first);
        }
        harness_free(harness);
    }
}

static void test_end_when_each_kind_then_records_before_it(void **state)
{
    static const struct {
        enum kafka_end end;
        int64_t value;
        uint32_t count;
    } rows[] = {
        {KAFKA_END_LATEST, 0, 30},
        {KAFKA_END_OFFSET, 13, 13},
        {KAFKA_END_OFFSET, 0, 0},
        {KAFKA_END_TIMESTAMP, 7200000, 10},
        {KAFKA_END_TIMESTAMP, 99999999, 30},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct harness *harness = make();
        struct kafka_assignment assignment = {
            .topic_index = harness->in_index, .end = rows[i].end, .end_value = rows[i].value};
        uint32_t source;
        assert_true(kafka_client_assign(harness->client, &assignment, &source));
        harness_run(harness, 60);
        harness_store(&harness->in->partitions[0], 5, 1); /* behind the end */
        assert_int_equal(harness_drain(harness, 200), rows[i].count);
        assert_int_equal(harness_source(harness, source).state, KAFKA_SOURCE_ENDED);
        assert_int_equal(harness_source(harness, source).position, rows[i].count);
        harness_free(harness);
    }
}

static void test_out_of_range_when_policy_then_reset_or_fail(void **state)
{
    static const struct {
        enum kafka_reset reset;
        int64_t first; /* -1: at the end */
    } rows[] = {{KAFKA_RESET_FAIL, 0}, {KAFKA_RESET_EARLIEST, 10}, {KAFKA_RESET_LATEST, -1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct harness *harness = make();
        harness->in->partitions[0].start_offset = 10;
        struct kafka_assignment assignment = {.topic_index = harness->in_index,
                                              .start = KAFKA_START_OFFSET,
                                              .start_value = 3,
                                              .reset = rows[i].reset};
        uint32_t source;
        struct kafka_event event;
        assert_true(kafka_client_assign(harness->client, &assignment, &source));
        uint32_t count = harness_pull(harness);
        if (rows[i].reset == KAFKA_RESET_FAIL) {
            assert_int_equal(harness_source(harness, source).state, KAFKA_SOURCE_FAILED);
            assert_true(harness_event(harness, KAFKA_EVENT_PARTITION_FAILED, &event));
            assert_int_equal(event.error_code, 1);
            kafka_client_seek(harness->client, source, 12);
            assert_true(harness_pull(harness) > 0);
            assert_int_equal(harness->records[0].offset, 12);
        } else {
            assert_true(harness_event(harness, KAFKA_EVENT_OFFSET_RESET, &event));
            const bool at_end = rows[i].first < 0;
            assert_string_equal(
                event.text,
                at_end ? "in-0: offset 3 is out of range, reading on at 30: 27 offsets are skipped"
                       : "in-0: offset 3 is out of range, reading on at 10: 7 offsets are skipped");
            assert_int_equal(kafka_client_counters(harness->client)->offsets_skipped,
                             at_end ? 27 : 7);
            assert_int_equal(count > 0, rows[i].first >= 0);
            assert_true(count == 0 || harness->records[0].offset == rows[i].first);
        }
        harness_free(harness);
    }
}

static void test_query_when_given_up_then_its_answer_is_not_the_next_ones(void **state)
{
    /* The answer to the START query comes after a seek has made the source ask for its END. */
    struct harness *harness = make();
    struct kafka_assignment assignment = {.topic_index = harness->in_index,
                                          .end = KAFKA_END_LATEST};
    uint32_t source;
    assert_true(kafka_client_assign(harness->client, &assignment, &source));
    uint64_t before = kafka_client_counters(harness->client)->requests_sent;
    while (kafka_client_counters(harness->client)->requests_sent < before + 5) {
        harness_turn(harness);
    }
    kafka_client_seek(harness->client, source, 5);
    assert_int_equal(harness_drain(harness, 200), 25);
    assert_int_equal(harness_source(harness, source).end_offset, 30);
    harness_free(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_when_each_kind_then_first_offset),
        cmocka_unit_test(test_end_when_each_kind_then_records_before_it),
        cmocka_unit_test(test_out_of_range_when_policy_then_reset_or_fail),
        cmocka_unit_test(test_query_when_given_up_then_its_answer_is_not_the_next_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
