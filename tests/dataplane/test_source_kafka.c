/* SPDX-License-Identifier: Apache-2.0 */
/* What a Kafka record source hands up, from a scripted cluster. */
#include "dataplane/source_kafka.h"

#include "tests/dataplane/kafka/harness.h"

/* Stores one batch of records "v", each with so many headers "h" = "x". */
static void store_with_headers(struct broker_partition *partition, int32_t count, int32_t headers)
{
    struct bytes records = {0};
    struct bytes batch = {0};
    for (int32_t i = 0; i < count; i++) {
        struct bytes one = {0};
        bytes_i8(&one, 0);
        bytes_varint(&one, 0);
        bytes_varint(&one, i);
        bytes_varint(&one, -1);
        bytes_varint(&one, 1);
        bytes_put(&one, "v", 1);
        bytes_varint(&one, headers);
        for (int32_t h = 0; h < headers; h++) {
            bytes_varint(&one, 1);
            bytes_put(&one, "h", 1);
            bytes_varint(&one, 1);
            bytes_put(&one, "x", 1);
        }
        bytes_varint(&records, (int32_t)one.count);
        bytes_put(&records, one.data, one.count);
        bytes_free(&one);
    }
    struct feed_header header = {.last_offset_delta = count - 1,
                                 .producer_id = -1,
                                 .producer_epoch = -1,
                                 .base_sequence = -1,
                                 .record_count = count};
    feed_build(&header, (struct span){records.data, records.count}, &batch);
    (void)broker_log_append(partition, (struct span){batch.data, batch.count}, (uint32_t)count - 1);
    bytes_free(&records);
    bytes_free(&batch);
}

struct fixture {
    struct harness *harness;
    struct source_kafka *source;
    struct plan_source plan;
    const char *topic;
};

static void make(struct fixture *fixture, enum plan_on_error on_error)
{
    struct error error = {0};
    fixture->harness = harness_cluster();
    fixture->harness->config.sources_max = 1;
    harness_client(fixture->harness);
    fixture->topic = "in";
    fixture->plan = (struct plan_source){.topics = &fixture->topic,
                                         .topic_count = 1,
                                         .startup = PLAN_STARTUP_EARLIEST,
                                         .on_error = on_error};
    const struct source_kafka_config config = {.client = fixture->harness->client,
                                               .source = &fixture->plan,
                                               .lane_index = 0,
                                               .lane_count = HARNESS_PARTITIONS};
    assert_int_equal(source_kafka_create(&config, &fixture->source, &error), 0);
}

static void drop(struct fixture *fixture)
{
    source_kafka_destroy(fixture->source);
    harness_free(fixture->harness);
}

/* Polls until records come. */
static struct record_batch_view poll(struct fixture *fixture)
{
    struct record_batch_view view = {0};
    struct record_source *records = source_kafka_records(fixture->source);
    for (int i = 0; i < 4000 && view.record_count == 0; i++) {
        record_source_release(records);
        harness_turn(fixture->harness);
        (void)record_source_poll(records, fixture->harness->now_ns, &view);
    }
    return view;
}

static void test_headers_when_a_batch_has_too_many_then_the_rest_comes_again(void **state)
{
    struct fixture fixture;
    make(&fixture, PLAN_ON_ERROR_DEAD_LETTER);
    store_with_headers(&fixture.harness->in->partitions[0], 100, 100);
    int64_t next = 0;
    while (next < 100) {
        const struct record_batch_view view = poll(&fixture);
        assert_true(view.record_count > 0);
        for (uint32_t i = 0; i < view.record_count; i++) {
            assert_int_equal(view.records[i].offset, next++);
            assert_int_equal(view.records[i].header_count, 100);
            assert_false(view.records[i].headers_are_cut);
        }
    }
    drop(&fixture);
}

static void test_headers_when_a_record_has_too_many_then_it_says_so(void **state)
{
    struct fixture fixture;
    make(&fixture, PLAN_ON_ERROR_DEAD_LETTER);
    store_with_headers(&fixture.harness->in->partitions[0], 1, SOURCE_KAFKA_RECORD_HEADERS);
    store_with_headers(&fixture.harness->in->partitions[0], 1, SOURCE_KAFKA_RECORD_HEADERS + 1);
    struct record_batch_view view = poll(&fixture);
    assert_int_equal(view.records[0].header_count, SOURCE_KAFKA_RECORD_HEADERS);
    assert_false(view.records[0].headers_are_cut);
    view = poll(&fixture);
    assert_int_equal(view.records[0].header_count, SOURCE_KAFKA_RECORD_HEADERS);
    assert_true(view.records[0].headers_are_cut);
    drop(&fixture);
}

static void test_headers_when_no_dead_letters_then_not_looked_at(void **state)
{
    struct fixture fixture;
    make(&fixture, PLAN_ON_ERROR_FAIL);
    store_with_headers(&fixture.harness->in->partitions[0], 3, 5);
    const struct record_batch_view view = poll(&fixture);
    assert_int_equal(view.record_count, 3);
    assert_int_equal(view.records[2].header_count, 0);
    drop(&fixture);
}

/* The client has room for one partition; as the only lane this one would read two. */
static void test_partitions_when_there_is_no_room_then_named(void **state)
{
    struct fixture fixture;
    struct kafka_event event;
    struct error error = {0};
    make(&fixture, PLAN_ON_ERROR_FAIL);
    source_kafka_destroy(fixture.source);
    const struct source_kafka_config config = {
        .client = fixture.harness->client, .source = &fixture.plan, .lane_count = 1};
    assert_int_equal(source_kafka_create(&config, &fixture.source, &error), 0);
    store_with_headers(&fixture.harness->in->partitions[0], 3, 0);
    assert_int_equal(poll(&fixture).record_count, 3);
    assert_true(harness_event(fixture.harness, KAFKA_EVENT_PARTITION_FAILED, &event));
    assert_string_equal(event.text,
                        "in-1 cannot be read: there is room for 1 partitions a table and lane");
    drop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_when_a_batch_has_too_many_then_the_rest_comes_again),
        cmocka_unit_test(test_headers_when_a_record_has_too_many_then_it_says_so),
        cmocka_unit_test(test_headers_when_no_dead_letters_then_not_looked_at),
        cmocka_unit_test(test_partitions_when_there_is_no_room_then_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
