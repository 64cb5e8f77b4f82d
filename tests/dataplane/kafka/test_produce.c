/* SPDX-License-Identifier: Apache-2.0 */
/* Writing over the scripted cluster: batching, back-pressure, sequences, leader moves. */
#include "tests/dataplane/kafka/harness.h"

static uint32_t open_sink(struct harness *harness, int32_t partition)
{
    uint32_t sink;
    assert_true(kafka_client_sink(harness->client, harness->out_index, partition, &sink));
    return sink;
}

static int32_t count_of(const struct broker_batch *batch)
{
    return (int32_t)load_be32(batch->data + 57);
}

static int32_t sequence_of(const struct broker_batch *batch)
{
    return (int32_t)load_be32(batch->data + 53);
}

static void test_append_when_requests_are_in_flight_then_gathers(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.produce_in_flight_max = 1;
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    assert_int_equal(harness_append(harness, sink, "x"), KAFKA_APPEND_OK);
    harness_run(harness, 50);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(harness_append(harness, sink, "x"), KAFKA_APPEND_OK);
        if (i == 0) {
            harness_turn(harness);
        }
    }
    assert_int_equal(kafka_client_pending(harness->client), 100);
    harness_run(harness, 50);
    assert_int_equal(kafka_client_pending(harness->client), 0);
    const struct broker_partition *partition = &harness->out->partitions[0];
    assert_int_equal(partition->batch_count, 3);
    assert_int_equal(count_of(&partition->batches[1]), 1);
    assert_int_equal(count_of(&partition->batches[2]), 99);
    assert_int_equal(sequence_of(&partition->batches[2]), 2);
    assert_int_equal(harness_sink(harness, sink).acked_count, 101);
    assert_int_equal(harness_sink(harness, sink).last_acked_offset, 100);
    harness_free(harness);
}

static void test_append_when_buffers_are_out_then_full_until_acked(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.produce_buffers = 3;
    harness->config.produce_batch_bytes = 512;
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    harness_run(harness, 50);
    harness->broker->config.faults.stall = BROKER_ODDS_ONE;
    uint32_t taken = 0;
    while (harness_append(harness, sink, "0123456789012345678901234567890123456789") ==
           KAFKA_APPEND_OK) {
        harness_turn(harness);
        taken++;
        assert_true(taken < 1000);
    }
    assert_true(taken > 8);
    broker_calm(harness->broker);
    harness_run(harness, 3000);
    assert_int_equal(harness_append(harness, sink, "again"), KAFKA_APPEND_OK);
    harness_run(harness, 100);
    assert_int_equal(harness_sink(harness, sink).acked_count, taken + 1);
    assert_int_equal(harness->out->partitions[0].next_offset, taken + 1);
    harness_free(harness);
}

static void test_append_when_too_large_then_verdict(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    char *value = calloc(1, 50001);
    memset(value, 'x', 50000);
    assert_int_equal(harness_append(harness, sink, value), KAFKA_APPEND_TOO_LARGE);
    value[20000] = 0; /* above an ordinary buffer, within a large one */
    assert_int_equal(harness_append(harness, sink, value), KAFKA_APPEND_OK);
    harness_run(harness, 100);
    assert_int_equal(harness_sink(harness, sink).acked_count, 1);
    free(value);
    harness_free(harness);
}

static void test_produce_when_leader_moves_then_in_order_once(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness, 1);
    struct broker_partition *partition = &harness->out->partitions[1];
    for (int i = 0; i < 200; i++) {
        char value[16];
        (void)snprintf(value, sizeof(value), "%03d", i);
        assert_int_equal(harness_append(harness, sink, value), KAFKA_APPEND_OK);
        harness_turn(harness);
        if (i % 50 == 20) {
            partition->leader ^= 1;
            partition->epoch++;
            harness_run(harness, 100);
        }
    }
    harness_run(harness, 500);
    assert_int_equal(harness_sink(harness, sink).acked_count, 200);
    assert_int_equal(partition->next_offset, 200);
    int32_t sequence = 0;
    for (uint32_t i = 0; i < partition->batch_count; i++) {
        assert_int_equal(sequence_of(&partition->batches[i]), sequence);
        sequence += count_of(&partition->batches[i]);
    }
    harness_free(harness);
}

static void test_produce_when_answer_is_lost_then_same_bytes_again(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    harness_run(harness, 50);
    harness->broker->config.faults.lose_answer = BROKER_ODDS_ONE;
    assert_int_equal(harness_append(harness, sink, "once"), KAFKA_APPEND_OK);
    harness_run(harness, 20);
    assert_int_equal(harness->out->partitions[0].next_offset, 1);
    assert_int_equal(kafka_client_pending(harness->client), 1);
    broker_calm(harness->broker);
    harness_run(harness, 1000);
    assert_int_equal(harness->out->partitions[0].next_offset, 1);
    assert_true(harness->out->partitions[0].duplicate_count > 0);
    assert_int_equal(harness_sink(harness, sink).acked_count, 1);
    assert_int_equal(harness_sink(harness, sink).last_acked_offset, 0);
    harness_free(harness);
}

static void test_departed_when_the_stream_still_holds_bytes_then_lags_behind_handed(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    assert_int_equal(harness_append(harness, sink, "one"), KAFKA_APPEND_OK);
    harness_run(harness, 50);
    assert_int_equal(harness_sink(harness, sink).departed_count, 1);
    harness->broker->config.fragment_bytes_max = 1; /* bytes that leave in a turn */
    assert_int_equal(harness_append(harness, sink, "two"), KAFKA_APPEND_OK);
    for (int i = 0; i < 5; i++) {
        harness_turn(harness);
    }
    assert_int_equal(harness_sink(harness, sink).handed_count, 2);
    assert_int_equal(harness_sink(harness, sink).departed_count, 1);
    broker_calm(harness->broker);
    harness_run(harness, 50);
    assert_int_equal(harness_sink(harness, sink).departed_count, 2);
    harness_free(harness);
}

static void test_config_when_lz4_then_batches_are(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.produce_codec = KAFKA_CODEC_LZ4;
    harness_client(harness);
    uint32_t sink = open_sink(harness, 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(harness_append(harness, sink, "the same again"), KAFKA_APPEND_OK);
    }
    harness_run(harness, 100);
    assert_int_equal(harness->out->partitions[0].batches[0].data[22] & 7, 3);
    assert_int_equal(harness_sink(harness, sink).acked_count, 50);
    harness_free(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_when_requests_are_in_flight_then_gathers),
        cmocka_unit_test(test_append_when_buffers_are_out_then_full_until_acked),
        cmocka_unit_test(test_append_when_too_large_then_verdict),
        cmocka_unit_test(test_produce_when_leader_moves_then_in_order_once),
        cmocka_unit_test(test_departed_when_the_stream_still_holds_bytes_then_lags_behind_handed),
        cmocka_unit_test(test_produce_when_answer_is_lost_then_same_bytes_again),
        cmocka_unit_test(test_config_when_lz4_then_batches_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
