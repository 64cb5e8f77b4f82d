/* SPDX-License-Identifier: Apache-2.0 */
/* The client's face: config checks, memory, topics, the address map. */
#include <errno.h>

#include "tests/dataplane/kafka/harness.h"

static int create(const struct kafka_config *config, struct error *error)
{
    struct kafka_client *client;
    struct kafka_connector connector = {.connect = broker_connect};
    int status = kafka_client_create(config, &connector, &client, error);
    if (status == 0) {
        kafka_client_destroy(client);
    }
    return status;
}

static void test_create_when_a_value_is_out_of_bounds_then_named(void **state)
{
    struct harness harness = {0};
    struct error error = {0};
    harness_config(&harness);
    assert_int_equal(create(&harness.config, &error), 0);
    harness.config.produce_in_flight_max = 6;
    assert_int_equal(create(&harness.config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "produce_in_flight_max"));
    harness.config.produce_in_flight_max = 5;
    harness.config.bootstrap_count = 0;
    assert_int_equal(create(&harness.config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "bootstrap_count"));
    harness.config.bootstrap_count = 1;
    harness.config.produce_codec = KAFKA_CODEC_ZSTD;
    assert_int_equal(create(&harness.config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "produce_codec"));
}

static void test_create_when_memory_is_given_then_lives_there(void **state)
{
    struct harness harness = {0};
    struct error error = {0};
    harness_config(&harness);
    size_t bytes = kafka_client_bytes(&harness.config);
    uint8_t *memory = aligned_alloc(64, bytes);
    harness.config.memory = (struct span_mut){memory, bytes - 1};
    assert_int_equal(create(&harness.config, &error), -EINVAL);
    harness.config.memory.bytes = bytes;
    assert_int_equal(create(&harness.config, &error), 0);
    free(memory);
}

static void test_topic_when_name_is_not_legal_then_refused(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t index;
    static const char *const bad[] = {"", ".", "..", "a b", "a/b", "\xc3\xa4"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(kafka_client_topic(harness->client, bad[i], &index));
    }
    char name[251];
    memset(name, 'n', sizeof(name));
    name[250] = 0;
    assert_false(kafka_client_topic(harness->client, name, &index));
    assert_true(kafka_client_topic(harness->client, "in", &index));
    assert_int_equal(index, harness->in_index);
    name[249] = 0;
    assert_true(kafka_client_topic(harness->client, name, &index));
    assert_false(kafka_client_topic(harness->client, "a.fourth_one-too", &index));
    harness_free(harness);
}

static void test_address_when_not_mapped_then_event_and_later_reachable(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.address_map_count = 0;
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 3, 1000);
    (void)harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    harness_run(harness, 50);
    struct kafka_event event;
    assert_true(harness_event(harness, KAFKA_EVENT_UNMAPPED_ADDRESS, &event));
    assert_non_null(strstr(event.text, "node-"));
    for (uint32_t i = 0; i < 2; i++) {
        struct kafka_address_map row = {
            .advertised = {.port = BROKER_PORT}, .ip4 = BROKER_IP4 + i, .port = BROKER_PORT};
        (void)snprintf(row.advertised.host, KAFKA_HOST_BYTES, "node-%u", i + 1);
        assert_true(kafka_client_map_address(harness->client, &row));
    }
    assert_int_equal(harness_drain(harness, 500), 3);
    harness_free(harness);
}

static void test_poll_when_idle_then_connections_close_and_come_back(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.idle_close_ms = 100;
    harness_client(harness);
    uint32_t sink;
    assert_true(kafka_client_sink(harness->client, harness->out_index, 0, &sink));
    assert_int_equal(harness_append(harness, sink, "a"), KAFKA_APPEND_OK);
    harness_run(harness, 1000);
    uint64_t opened = kafka_client_counters(harness->client)->connections_opened;
    assert_int_equal(harness_append(harness, sink, "b"), KAFKA_APPEND_OK);
    harness_run(harness, 200);
    assert_int_equal(harness_sink(harness, sink).acked_count, 2);
    assert_true(kafka_client_counters(harness->client)->connections_opened > opened);
    assert_int_equal(kafka_client_counters(harness->client)->connections_lost, 0);
    harness_free(harness);
}

static void test_sink_when_there_is_no_room_then_refused_and_one_event(void **state)
{
    struct harness *harness = harness_cluster();
    struct kafka_event event;
    uint32_t sink;
    harness->config.sinks_max = 1;
    harness_client(harness);
    assert_true(kafka_client_sink(harness->client, harness->out_index, 1, &sink));
    assert_false(kafka_client_sink(harness->client, harness->out_index, 0, &sink));
    assert_false(kafka_client_sink(harness->client, harness->out_index, 0, &sink));
    assert_true(harness_event(harness, KAFKA_EVENT_PRODUCE_FAILED, &event));
    assert_string_equal(event.text,
                        "out-0 cannot be written: there is room for 1 partitions a lane");
    assert_false(harness_event(harness, KAFKA_EVENT_PRODUCE_FAILED, &event));
    harness_free(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_when_a_value_is_out_of_bounds_then_named),
        cmocka_unit_test(test_create_when_memory_is_given_then_lives_there),
        cmocka_unit_test(test_topic_when_name_is_not_legal_then_refused),
        cmocka_unit_test(test_address_when_not_mapped_then_event_and_later_reachable),
        cmocka_unit_test(test_poll_when_idle_then_connections_close_and_come_back),
        cmocka_unit_test(test_sink_when_there_is_no_room_then_refused_and_one_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
