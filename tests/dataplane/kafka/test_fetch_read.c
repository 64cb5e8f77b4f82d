/* SPDX-License-Identifier: Apache-2.0 */
/* The second walk: what the fetched bytes can hold besides plain whole batches. */
#include "tests/dataplane/kafka/harness.h"

static void test_read_when_batch_starts_before_the_offset_then_skipped_up_to_it(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 10, 1000);
    (void)harness_assign(harness, 0, KAFKA_START_OFFSET, 7);
    assert_int_equal(harness_pull(harness), 3);
    assert_int_equal(harness->records[0].offset, 7);
    assert_memory_equal(harness->records[0].value.data, "v7", 2);
    harness_free(harness);
}

static void test_read_when_batch_is_empty_then_position_moves_on(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    struct bytes batch = {0};
    struct feed_header header = {.last_offset_delta = 41};
    feed_build(&header, (struct span){0}, &batch);
    (void)broker_log_append(&harness->in->partitions[0], (struct span){batch.data, batch.count},
                            41);
    harness_store(&harness->in->partitions[0], 1, 1000);
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_pull(harness), 1);
    assert_int_equal(harness->records[0].offset, 42);
    assert_int_equal(harness_source(harness, source).position, 43);
    bytes_free(&batch);
    harness_free(harness);
}

static void test_read_when_checksum_is_wrong_then_again_and_at_last_fails(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.retry_backoff_ms = 5;
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 4, 1000);
    harness_store(&harness->in->partitions[0], 4, 1000);
    struct broker_batch *second = &harness->in->partitions[0].batches[1];
    second->data[second->bytes - 1] ^= 1;
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_pull(harness), 4);
    harness_run(harness, 5);
    assert_int_equal(harness_drain(harness, 10), 0);
    assert_int_equal(harness_source(harness, source).state, KAFKA_SOURCE_READING);
    second->data[second->bytes - 1] ^= 1; /* it was the wire */
    assert_int_equal(harness_drain(harness, 200), 4);
    harness_store(&harness->in->partitions[0], 4, 1000);
    struct broker_batch *third = &harness->in->partitions[0].batches[2];
    third->data[third->bytes - 1] ^= 1; /* it is the disk */
    assert_int_equal(harness_drain(harness, 1000), 0);
    assert_int_equal(harness_source(harness, source).state, KAFKA_SOURCE_FAILED);
    assert_int_equal(harness_source(harness, source).position, 8);
    assert_true(kafka_client_counters(harness->client)->batches_corrupt >= 6);
    harness_free(harness);
}

static void test_read_when_format_is_old_then_fails_by_name(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    harness_store(&harness->in->partitions[0], 4, 1000);
    harness->in->partitions[0].batches[0].data[16] = 1;
    uint32_t source = harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_drain(harness, 100), 0);
    assert_int_equal(harness_source(harness, source).state, KAFKA_SOURCE_FAILED);
    struct kafka_event event;
    assert_true(harness_event(harness, KAFKA_EVENT_PARTITION_FAILED, &event));
    assert_non_null(strstr(event.text, "magic 0 or 1"));
    harness_free(harness);
}

static void test_read_when_batch_expands_above_the_cap_then_fails_by_name(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.decoded_bytes_max = 8192;
    harness_client(harness);
    uint8_t *zeros = calloc(1, 100000);
    for (int codec = 1; codec <= 4; codec++) {
        struct broker_partition *partition = &harness->in->partitions[0];
        struct bytes packed = {0};
        struct bytes batch = {0};
        feed_compress(codec, true, (struct span){zeros, 100000}, &packed);
        struct feed_header header = {.attributes = (int16_t)codec, .record_count = 1};
        feed_build(&header, (struct span){packed.data, packed.count}, &batch);
        int64_t at = partition->next_offset;
        (void)broker_log_append(partition, (struct span){batch.data, batch.count}, 0);
        uint32_t source = harness_assign(harness, 0, KAFKA_START_OFFSET, at);
        assert_int_equal(harness_drain(harness, 100), 0);
        struct kafka_event event;
        assert_true(harness_event(harness, KAFKA_EVENT_PARTITION_FAILED, &event));
        assert_non_null(strstr(event.text, "decoded_bytes_max"));
        kafka_client_unassign(harness->client, source);
        bytes_free(&packed);
        bytes_free(&batch);
    }
    free(zeros);
    harness_free(harness);
}

static void test_read_when_batch_exceeds_the_stream_then_assembled(void **state)
{
    struct harness *harness = harness_cluster();
    harness->config.stream_receive_bytes = 4096;
    harness->broker->config.receive_bytes_max = 4096;
    harness_client(harness);
    for (int i = 0; i < 3; i++) {
        harness_store(&harness->in->partitions[i % 2], 2000, 1000); /* some 20 KiB each */
    }
    (void)harness_assign(harness, 0, KAFKA_START_EARLIEST, 0);
    (void)harness_assign(harness, 1, KAFKA_START_EARLIEST, 0);
    assert_int_equal(harness_drain(harness, 2000), 6000);
    harness_free(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_when_batch_starts_before_the_offset_then_skipped_up_to_it),
        cmocka_unit_test(test_read_when_batch_is_empty_then_position_moves_on),
        cmocka_unit_test(test_read_when_checksum_is_wrong_then_again_and_at_last_fails),
        cmocka_unit_test(test_read_when_format_is_old_then_fails_by_name),
        cmocka_unit_test(test_read_when_batch_expands_above_the_cap_then_fails_by_name),
        cmocka_unit_test(test_read_when_batch_exceeds_the_stream_then_assembled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
