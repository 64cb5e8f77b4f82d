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

/* As make, but the only lane: both partitions are its, ten records in each. */
static void make_whole(struct fixture *fixture)
{
    struct error error = {0};
    fixture->harness = harness_cluster();
    harness_client(fixture->harness);
    fixture->topic = "in";
    fixture->plan = (struct plan_source){
        .topics = &fixture->topic, .topic_count = 1, .startup = PLAN_STARTUP_EARLIEST};
    const struct source_kafka_config config = {
        .client = fixture->harness->client, .source = &fixture->plan, .lane_count = 1};
    assert_int_equal(source_kafka_create(&config, &fixture->source, &error), 0);
    store_with_headers(&fixture->harness->in->partitions[0], 10, 0);
    store_with_headers(&fixture->harness->in->partitions[1], 10, 0);
}

/* Reads all and notes the first offset of each partition; 10 where there was none. */
static void read_first(struct fixture *fixture, int64_t first[HARNESS_PARTITIONS])
{
    first[0] = 10;
    first[1] = 10;
    for (;;) {
        const struct record_batch_view view = poll(fixture);
        if (view.record_count == 0) {
            return;
        }
        assert_true(view.partition < HARNESS_PARTITIONS);
        const int64_t offset = view.records[0].offset;
        first[view.partition] = offset < first[view.partition] ? offset : first[view.partition];
    }
}

static bool position_of(struct fixture *fixture, uint32_t partition, int64_t *offset)
{
    struct record_position position = {.next_offset = -1};
    struct record_source *records = source_kafka_records(fixture->source);
    const bool is_known = records->ops->position(records, 0, partition, &position);
    *offset = position.next_offset;
    return is_known;
}

static void test_start_when_a_checkpoint_names_partitions_then_each_begins_there(void **state)
{
    static const struct record_position positions[] = {
        {.topic = 0, .partition = 1, .next_offset = 7, .end_offset = -1, .leader_epoch = -1},
        {.topic = 0, .partition = 0, .next_offset = 4, .end_offset = -1, .leader_epoch = -1},
    };
    struct fixture fixture;
    struct error error = {0};
    int64_t first[HARNESS_PARTITIONS];
    int64_t next;
    make_whole(&fixture);
    struct record_source *records = source_kafka_records(fixture.source);
    assert_int_equal(records->ops->start_at(records, positions, 2, &error), 0);
    assert_false(position_of(&fixture, 0, &next)); /* partitions are not known yet */
    read_first(&fixture, first);
    assert_int_equal(first[0], 4);
    assert_int_equal(first[1], 7);
    for (uint32_t i = 0; i < 4; i++) { /* in turn, and one twice */
        assert_true(position_of(&fixture, (i + 1) / 2 % 2, &next));
        assert_int_equal(next, 10);
    }
    assert_false(position_of(&fixture, HARNESS_PARTITIONS, &next));
    drop(&fixture);
}

/* One that a checkpoint of the topic does not name was added since and is read whole, unless the
 * checkpoint says that it did not know all: then the table decides. */
static void test_start_when_a_partition_is_not_named_then_others_decide(void **state)
{
    static const struct record_position positions[] = {
        {.topic = 0, .partition = 0, .next_offset = 4, .end_offset = -1, .leader_epoch = -1},
        {.topic = 0,
         .partition = RECORD_PARTITION_OTHERS,
         .next_offset = -1,
         .end_offset = -1,
         .leader_epoch = -1},
    };
    for (uint32_t count = 1; count <= 2; count++) {
        struct fixture fixture;
        struct error error = {0};
        int64_t first[HARNESS_PARTITIONS];
        make_whole(&fixture);
        fixture.plan.startup = PLAN_STARTUP_LATEST;
        struct record_source *records = source_kafka_records(fixture.source);
        assert_int_equal(records->ops->start_at(records, positions, count, &error), 0);
        read_first(&fixture, first);
        assert_int_equal(first[0], 4);
        assert_int_equal(first[1], count == 1 ? 0 : 10);
        drop(&fixture);
    }
}

static void test_rewind_when_a_partition_is_named_then_it_alone_comes_again(void **state)
{
    struct fixture fixture;
    int64_t first[HARNESS_PARTITIONS];
    make_whole(&fixture);
    read_first(&fixture, first);
    assert_int_equal(first[0] + first[1], 0);
    struct record_source *records = source_kafka_records(fixture.source);
    records->ops->rewind(records, 0, 1, 6);
    records->ops->rewind(records, 0, HARNESS_PARTITIONS, 0); /* is not read here */
    read_first(&fixture, first);
    assert_int_equal(first[0], 10);
    assert_int_equal(first[1], 6);
    drop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_when_a_batch_has_too_many_then_the_rest_comes_again),
        cmocka_unit_test(test_headers_when_a_record_has_too_many_then_it_says_so),
        cmocka_unit_test(test_headers_when_no_dead_letters_then_not_looked_at),
        cmocka_unit_test(test_partitions_when_there_is_no_room_then_named),
        cmocka_unit_test(test_start_when_a_checkpoint_names_partitions_then_each_begins_there),
        cmocka_unit_test(test_start_when_a_partition_is_not_named_then_others_decide),
        cmocka_unit_test(test_rewind_when_a_partition_is_named_then_it_alone_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
