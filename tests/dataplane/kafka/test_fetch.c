/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, end to end over the scripted cluster: positions, pause, leader moves, losses. */
#include "tests/dataplane/kafka/harness.h"

static void test_fetch_when_stored_then_each_record_once(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    for (int i = 0; i < 20; i++) {
        harness_store(&harness->in->partitions[i % 2], 3, 1000);
    }
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    (void)harness_assign(harness, 1, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_drain(harness, 300), 60);
    assert_int_equal(harness_source(harness, source).position, 30);
    assert_true(harness_source(harness, source).is_caught_up);
    assert_int_equal(harness_source(harness, source).high_watermark, 30);
    harness_store(&harness->in->partitions[0], 5, 1000);
    assert_int_equal(harness_drain(harness, 100), 5);
    harness_free(harness);
}

static void test_fetch_when_next_request_then_sent_before_decoding(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    for (int i = 0; i < 10; i++) {
        harness_store(&harness->in->partitions[0], 3, 1000);
    }
    harness->config.fetch_bytes_max = 1;
    (void)harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    harness_run(harness, 300);
    /* Nothing was pulled: the first answer is held, and a second fetch went out behind it. */
    const struct kafka_counters *counters = kafka_client_counters(harness->client);
    assert_int_equal(counters->fetch_responses, 1);
    assert_int_equal(counters->records_read, 0);
    assert_true(counters->requests_sent > counters->responses_received);
    assert_int_equal(harness_drain(harness, 300), 30);
    harness_free(harness);
}

static void test_pause_when_data_was_received_then_fetched_again_after_resume(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 100, 1000);
    harness_store(&harness->in->partitions[1], 10, 1000);
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_pull(harness), HARNESS_PULL);
    kafka_client_pause(harness->client, source);
    (void)harness_assign(harness, 1, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_drain(harness, 200), 10);
    assert_int_equal(harness_source(harness, source).position, HARNESS_PULL);
    kafka_client_resume(harness->client, source);
    assert_int_equal(harness_pull(harness), 100 - HARNESS_PULL);
    assert_int_equal(harness->records[0].offset, HARNESS_PULL);
    harness_free(harness);
}

static void test_fetch_when_leader_moves_with_data_held_then_no_gap(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.metadata_age_ms_max = 20;
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 200, 1000);
    (void)harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_pull(harness), HARNESS_PULL);
    harness_store(&harness->in->partitions[0], 7, 1000);
    harness->in->partitions[0].leader ^= 1;
    harness->in->partitions[0].epoch++;
    harness_run(harness, 100);
    assert_int_equal(harness_drain(harness, 300), 207 - HARNESS_PULL);
    assert_int_equal(kafka_client_counters(harness->client)->leader_moves, 1);
    harness_free(harness);
}

static void test_fetch_when_topic_is_missing_then_named_event(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t topic;
    assert_true(kafka_client_topic(harness->client, "no-such-topic", &topic));
    harness_run(harness, 50);
    struct kafka_event event;
    assert_true(harness_event(harness, KAFKA_EVENT_TOPIC_MISSING, &event));
    assert_non_null(strstr(event.text, "no-such-topic"));
    assert_int_equal(kafka_client_partition_count(harness->client, topic), -1);
    harness_free(harness);
}

static void test_unassign_when_data_is_held_then_dropped_and_slot_is_free(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 100, 1000);
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_pull(harness), HARNESS_PULL);
    kafka_client_unassign(harness->client, source);
    assert_int_equal(harness_drain(harness, 100), 0);
    assert_int_equal(harness_assign(harness, 0, KAFKA_START_OFFSET, 90), source);
    assert_int_equal(harness_drain(harness, 200), 10);
    harness_free(harness);
}

static void test_seek_when_reading_then_goes_on_there(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 10, 1000);
    harness_store(&harness->in->partitions[0], 10, 1000);
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_drain(harness, 100), 20);
    kafka_client_seek(harness->client, source, 15);
    assert_int_equal(harness_pull(harness), 5);
    assert_int_equal(harness->records[0].offset, 15);
    harness_free(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch_when_stored_then_each_record_once),
        cmocka_unit_test(test_fetch_when_next_request_then_sent_before_decoding),
        cmocka_unit_test(test_pause_when_data_was_received_then_fetched_again_after_resume),
        cmocka_unit_test(test_fetch_when_leader_moves_with_data_held_then_no_gap),
        cmocka_unit_test(test_fetch_when_topic_is_missing_then_named_event),
        cmocka_unit_test(test_unassign_when_data_is_held_then_dropped_and_slot_is_free),
        cmocka_unit_test(test_seek_when_reading_then_goes_on_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
