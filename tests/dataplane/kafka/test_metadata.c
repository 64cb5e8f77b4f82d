/* SPDX-License-Identifier: Apache-2.0 */
/* Merging Metadata responses: every version's layout, and never forgetting on one bad answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dataplane/kafka/error_code.h"
#include "dataplane/kafka/metadata.h"
#include "tests/sim/broker.h"

struct fixture {
    struct kafka_metadata metadata;
    struct kafka_broker brokers[4];
    struct kafka_topic topics[2];
    struct kafka_leader leaders[2][4];
    struct kafka_events events;
    struct kafka_metadata_news news;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->metadata = (struct kafka_metadata){.brokers = fixture->brokers,
                                                .brokers_max = 4,
                                                .topics = fixture->topics,
                                                .topics_max = 2,
                                                .topic_partitions_max = 4};
    fixture->topics[0].leaders = fixture->leaders[0];
    fixture->topics[1].leaders = fixture->leaders[1];
    assert_int_equal(kafka_metadata_add_topic(&fixture->metadata, kafka_span_of("t")), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

struct answer {
    int16_t version;
    uint32_t brokers;
    const char *host;
    int16_t topic_code;
    uint32_t partitions;
    int32_t leader;
    int32_t epoch;
};

static struct bytes build(const struct answer *answer)
{
    struct bytes out = {0};
    if (answer->version >= 3) {
        bytes_i32(&out, 0);
    }
    bytes_i32(&out, (int32_t)answer->brokers);
    for (uint32_t i = 0; i < answer->brokers; i++) {
        bytes_i32(&out, (int32_t)i + 10);
        bytes_string(&out, answer->host);
        bytes_i32(&out, 9092);
        bytes_i16(&out, -1);
    }
    bytes_i16(&out, -1);
    bytes_i32(&out, 10);
    bytes_i32(&out, 1);
    bytes_i16(&out, answer->topic_code);
    bytes_string(&out, "t");
    bytes_i8(&out, 0);
    bytes_i32(&out, (int32_t)answer->partitions);
    for (uint32_t i = 0; i < answer->partitions; i++) {
        bytes_i16(&out, answer->leader < 0 ? 5 : 0);
        bytes_i32(&out, (int32_t)i);
        bytes_i32(&out, answer->leader);
        if (answer->version >= 7) {
            bytes_i32(&out, answer->epoch);
        }
        for (int list = 0; list < (answer->version >= 5 ? 3 : 2); list++) {
            bytes_i32(&out, 1);
            bytes_i32(&out, 10);
        }
    }
    return out;
}

static int read_answer(struct fixture *fixture, const struct answer *answer)
{
    struct bytes out = build(answer);
    fixture->news = (struct kafka_metadata_news){.events = &fixture->events};
    int status = kafka_metadata_read(&fixture->metadata, answer->version,
                                     (struct span){out.data, out.count}, &fixture->news);
    bytes_free(&out);
    return status;
}

static const struct answer good = {7, 2, "h", 0, 3, 11, 4};

static void test_read_when_each_version_then_leaders(void **state)
{
    struct fixture *fixture = *state;
    for (int16_t version = 2; version <= 7; version++) {
        struct answer answer = good;
        answer.version = version;
        answer.epoch = version;
        assert_int_equal(read_answer(fixture, &answer), 0);
        const struct kafka_leader *leader = kafka_metadata_leader(&fixture->metadata, 0, 2);
        assert_non_null(leader);
        assert_int_equal(fixture->brokers[leader->broker_index].node_id, 11);
        assert_int_equal(leader->epoch, version == 7 ? 7 : -1);
    }
    assert_int_equal(fixture->metadata.broker_count, 2);
    assert_null(kafka_metadata_leader(&fixture->metadata, 0, 3));
}

static void test_read_when_cut_anywhere_then_fails_and_keeps(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(read_answer(fixture, &good), 0);
    struct bytes out = build(&good);
    for (size_t bytes = 0; bytes < out.count; bytes++) {
        fixture->news = (struct kafka_metadata_news){.events = &fixture->events};
        assert_int_equal(kafka_metadata_read(&fixture->metadata, 7, (struct span){out.data, bytes},
                                             &fixture->news),
                         -1);
        assert_non_null(kafka_metadata_leader(&fixture->metadata, 0, 2));
    }
    bytes_free(&out);
}

static void test_read_when_answer_forgets_then_old_knowledge_stays(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(read_answer(fixture, &good), 0);
    struct answer poor = good;
    poor.brokers = 0;
    poor.partitions = 1;
    poor.leader = -1;
    assert_int_equal(read_answer(fixture, &poor), 0);
    assert_true(fixture->news.is_incomplete);
    assert_non_null(kafka_metadata_leader(&fixture->metadata, 0, 0));
    assert_int_equal(fixture->topics[0].partition_count, 3);
    poor.topic_code = KAFKA_ERROR_UNKNOWN_TOPIC_OR_PARTITION;
    poor.partitions = 0;
    for (int i = 0; i < KAFKA_METADATA_MISSES; i++) {
        assert_false(fixture->topics[0].is_missing);
        assert_int_equal(read_answer(fixture, &poor), 0);
    }
    assert_true(fixture->topics[0].is_missing);
    struct kafka_event event;
    assert_true(kafka_events_pop(&fixture->events, &event));
    assert_int_equal(event.code, KAFKA_EVENT_TOPIC_MISSING);
    assert_int_equal(read_answer(fixture, &good), 0);
    assert_false(fixture->topics[0].is_missing);
}

static void test_read_when_topic_was_never_there_then_missing_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct answer poor = good;
    poor.topic_code = KAFKA_ERROR_UNKNOWN_TOPIC_OR_PARTITION;
    poor.partitions = 0;
    assert_int_equal(read_answer(fixture, &poor), 0);
    assert_true(fixture->topics[0].is_missing);
    poor.topic_code = KAFKA_ERROR_LEADER_NOT_AVAILABLE;
    fixture->topics[0].is_missing = false;
    assert_int_equal(read_answer(fixture, &poor), 0);
    assert_false(fixture->topics[0].is_missing);
}

/* Part of a topic must not pass for the whole: four fit here. */
static void test_read_when_topic_is_too_wide_then_none_of_it_and_one_event(void **state)
{
    struct fixture *fixture = *state;
    struct answer answer = good;
    struct kafka_event event;
    answer.partitions = 5;
    assert_int_equal(read_answer(fixture, &answer), 0);
    assert_int_equal(read_answer(fixture, &answer), 0);
    assert_int_equal(fixture->topics[0].partition_count, 0);
    assert_true(kafka_events_pop(&fixture->events, &event));
    assert_int_equal(event.code, KAFKA_EVENT_TOPIC_TOO_WIDE);
    assert_string_equal(event.text, "topic t has 5 partitions, there is room for 4");
    assert_false(kafka_events_pop(&fixture->events, &event));
}

static void test_read_when_epoch_goes_back_then_ignored_for_a_while(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(read_answer(fixture, &good), 0);
    struct answer old = good;
    old.leader = 10;
    old.epoch = 3;
    for (int i = 0; i < KAFKA_METADATA_MISSES; i++) {
        assert_int_equal(read_answer(fixture, &old), 0);
        assert_int_equal(kafka_metadata_leader(&fixture->metadata, 0, 0)->epoch, 4);
    }
    assert_int_equal(read_answer(fixture, &old), 0);
    assert_int_equal(kafka_metadata_leader(&fixture->metadata, 0, 0)->epoch, 3);
    assert_int_equal(fixture->news.leader_moves, 3);
}

static void test_read_when_broker_moves_then_address_and_mark(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(read_answer(fixture, &good), 0);
    struct answer moved = good;
    moved.host = "other";
    assert_int_equal(read_answer(fixture, &moved), 0);
    assert_true(fixture->news.brokers_moved);
    assert_true(fixture->brokers[1].has_moved);
    assert_string_equal(fixture->brokers[1].address.host, "other");
    assert_int_equal(fixture->metadata.broker_count, 2);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_read_when_each_version_then_leaders),
        WITH_FIXTURE(test_read_when_cut_anywhere_then_fails_and_keeps),
        WITH_FIXTURE(test_read_when_answer_forgets_then_old_knowledge_stays),
        WITH_FIXTURE(test_read_when_topic_was_never_there_then_missing_at_once),
        WITH_FIXTURE(test_read_when_topic_is_too_wide_then_none_of_it_and_one_event),
        WITH_FIXTURE(test_read_when_epoch_goes_back_then_ignored_for_a_while),
        WITH_FIXTURE(test_read_when_broker_moves_then_address_and_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
