/* SPDX-License-Identifier: Apache-2.0 */
/* The transaction requests byte by byte, put together by hand from Kafka's message schemas
 * (FindCoordinatorRequest, InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest), and
 * their responses, cut off at every byte too. */
#include "dataplane/kafka/transaction.h"
#include "tests/dataplane/kafka/harness.h"

struct part {
    struct kafka_core core;
    struct kafka_produce produce;
    struct kafka_transaction transaction;
    uint8_t *memory;
};

/* Topics "t" and "uv", their partitions 1 and 0 to be written. */
static int make_part(void **state)
{
    struct part *part = calloc(1, sizeof(*part));
    struct harness *harness = calloc(1, sizeof(*harness));
    harness_config(harness);
    struct kafka_arena counting = {0};
    kafka_core_layout(NULL, &harness->config, &counting);
    kafka_produce_layout(NULL, &harness->config, &counting);
    part->memory = aligned_alloc(64, counting.used);
    memset(part->memory, 0, counting.used);
    struct kafka_arena arena = {.base = part->memory};
    part->core.config = harness->config;
    part->core.connector.connect = broker_connect;
    free(harness);
    kafka_core_layout(&part->core, &part->core.config, &arena);
    kafka_produce_layout(&part->produce, &part->core.config, &arena);
    kafka_core_init(&part->core);
    kafka_produce_init(&part->produce, &part->core);
    kafka_transaction_init(&part->transaction, &part->core, &part->produce);
    kafka_transaction_start(&part->transaction, "id");
    part->transaction.producer_id = 0x0A;
    part->transaction.producer_epoch = 3;
    uint32_t sink;
    assert_int_equal(kafka_metadata_add_topic(&part->core.metadata, kafka_span_of("t")), 0);
    assert_int_equal(kafka_metadata_add_topic(&part->core.metadata, kafka_span_of("uv")), 1);
    assert_true(kafka_produce_sink(&part->produce, 0, 1, &sink));
    assert_true(kafka_produce_sink(&part->produce, 1, 0, &sink));
    const struct kafka_produce_record record = {.value = kafka_span_of("v"), .has_value = true};
    assert_int_equal(kafka_produce_append(&part->produce, 0, &record), KAFKA_APPEND_OK);
    assert_int_equal(kafka_produce_append(&part->produce, 1, &record), KAFKA_APPEND_OK);
    *state = part;
    return 0;
}

static int free_part(void **state)
{
    struct part *part = *state;
    free(part->memory);
    free(part);
    return 0;
}

static void expect(const struct kafka_writer *writer, const void *wanted, size_t bytes)
{
    assert_false(writer->overflow);
    assert_int_equal(writer->at, bytes);
    assert_memory_equal(writer->data, wanted, bytes);
}

static void test_find_coordinator_when_written_then_key_and_type(void **state)
{
    uint8_t buffer[64];
    struct kafka_writer writer = kafka_writer_of((struct span_mut){buffer, sizeof(buffer)});
    kafka_write_find_coordinator(&writer, "job-0");
    static const uint8_t wanted[] = {0, 5, 'j', 'o', 'b', '-', '0', 1};
    expect(&writer, wanted, sizeof(wanted));
}

static void test_init_when_written_then_compact_and_without_an_epoch(void **state)
{
    uint8_t buffer[64];
    struct kafka_writer writer = kafka_writer_of((struct span_mut){buffer, sizeof(buffer)});
    kafka_write_init_transaction(&writer, "ab", 900000);
    static const uint8_t wanted[] = {3,    'a',  'b',  0x00, 0x0D, 0xBB, 0xA0, 0xFF, 0xFF,
                                     0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0};
    expect(&writer, wanted, sizeof(wanted));
}

static void test_add_partitions_when_written_then_only_those_that_wait(void **state)
{
    struct part *part = *state;
    uint8_t buffer[128];
    struct kafka_writer writer = kafka_writer_of((struct span_mut){buffer, sizeof(buffer)});
    kafka_write_add_partitions(&writer, &part->transaction);
    static const uint8_t both[] = {0, 2, 'i', 'd', 0, 0, 0, 0, 0, 0, 0, 10, 0, 3, /* producer */
                                   0, 0, 0,   2,                                  /* topics */
                                   0, 1, 't', 0,   0, 0, 1, 0, 0, 0, 1,           /* t: 1 */
                                   0, 2, 'u', 'v', 0, 0, 0, 1, 0, 0, 0, 0};       /* uv: 0 */
    expect(&writer, both, sizeof(both));
    kafka_produce_mark_added(&part->produce, kafka_span_of("t"), 1);
    writer = kafka_writer_of((struct span_mut){buffer, sizeof(buffer)});
    kafka_write_add_partitions(&writer, &part->transaction);
    static const uint8_t one[] = {0, 2, 'i', 'd', 0, 0,   0,   0, 0, 0, 0, 10, 0, 3, 0,
                                  0, 0, 1,   0,   2, 'u', 'v', 0, 0, 0, 1, 0,  0, 0, 0};
    expect(&writer, one, sizeof(one));
}

static void test_end_when_written_then_commit_is_one_and_abort_zero(void **state)
{
    struct part *part = *state;
    static uint8_t wanted[] = {0, 2, 'i', 'd', 0, 0, 0, 0, 0, 0, 0, 10, 0, 3, 1};
    for (uint8_t commit = 0; commit < 2; commit++) {
        uint8_t buffer[64];
        struct kafka_writer writer = kafka_writer_of((struct span_mut){buffer, sizeof(buffer)});
        kafka_write_end_transaction(&writer, &part->transaction, commit == 1);
        wanted[14] = commit;
        expect(&writer, wanted, sizeof(wanted));
    }
}

/* Reads an answer whole, and every cut-off of it, which must be refused and mark nothing. */
static struct kafka_transaction_answer read_answer(struct part *part, enum kafka_api api,
                                                   const uint8_t *bytes, size_t count)
{
    struct kafka_transaction_answer answer;
    for (size_t cut = 0; cut < count; cut++) {
        assert_false(
            kafka_read_transaction_answer(&part->produce, api, (struct span){bytes, cut}, &answer));
        assert_false(part->produce.sinks[0].is_added || part->produce.sinks[1].is_added);
    }
    assert_true(
        kafka_read_transaction_answer(&part->produce, api, (struct span){bytes, count}, &answer));
    return answer;
}

static void test_answer_of_find_coordinator_when_read_then_the_node(void **state)
{
    static uint8_t bytes[] = {0, 0, 0, 9, 0,   0,   0xFF, 0xFF, 0,    0,
                              0, 7, 0, 2, 'h', 'o', 0,    0,    0x23, 0x84};
    struct kafka_transaction_answer answer =
        read_answer(*state, KAFKA_API_FIND_COORDINATOR, bytes, sizeof(bytes));
    assert_int_equal(answer.code, 0);
    assert_int_equal(answer.node_id, 7);
    assert_int_equal(answer.throttle_ms, 9);
    struct part *part = *state;
    bytes[8] = 0xFF; /* no node, and no code that says why */
    assert_false(kafka_read_transaction_answer(&part->produce, KAFKA_API_FIND_COORDINATOR,
                                               (struct span){bytes, sizeof(bytes)}, &answer));
}

static void test_answer_of_init_when_read_then_id_and_epoch(void **state)
{
    static uint8_t bytes[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 4, 0};
    struct kafka_transaction_answer answer =
        read_answer(*state, KAFKA_API_INIT_PRODUCER_ID, bytes, sizeof(bytes));
    assert_int_equal(answer.producer_id, 0x0102);
    assert_int_equal(answer.producer_epoch, 4);
    struct part *part = *state;
    bytes[6] = 0xFF; /* a negative producer id without a code makes no sense */
    assert_false(kafka_read_transaction_answer(&part->produce, KAFKA_API_INIT_PRODUCER_ID,
                                               (struct span){bytes, sizeof(bytes)}, &answer));
}

static void test_answer_of_end_when_read_then_the_code(void **state)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 0, 51};
    assert_int_equal(read_answer(*state, KAFKA_API_END_TXN, bytes, sizeof(bytes)).code, 51);
}

/* Two topics: t-1 and uv-0 with their codes. */
static void make_added(uint8_t bytes[41], int16_t first, int16_t second)
{
    const uint8_t made[] = {0, 0, 0, 0, 0, 0,   0,   2, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0,
                            1, 0, 0, 0, 2, 'u', 'v', 0, 0, 0, 1,   0, 0, 0, 0, 0, 0};
    _Static_assert(sizeof(made) == 35, "as computed by hand");
    memcpy(bytes, made, sizeof(made));
    store_be16(bytes + 19, (uint16_t)first);
    store_be16(bytes + 33, (uint16_t)second);
}

static void test_answer_of_add_when_all_are_good_then_they_are_added(void **state)
{
    struct part *part = *state;
    uint8_t bytes[41];
    make_added(bytes, 0, 0);
    assert_int_equal(read_answer(part, KAFKA_API_ADD_PARTITIONS_TO_TXN, bytes, 35).code, 0);
    assert_true(part->produce.sinks[0].is_added && part->produce.sinks[1].is_added);
    assert_false(kafka_produce_wants_adding(&part->produce.sinks[0]));
}

static void test_answer_of_add_when_one_is_bad_then_its_code_and_none_is_added(void **state)
{
    struct part *part = *state;
    uint8_t bytes[41];
    make_added(bytes, 55, 3); /* not attempted, because of the other */
    assert_int_equal(read_answer(part, KAFKA_API_ADD_PARTITIONS_TO_TXN, bytes, 35).code, 3);
    assert_false(part->produce.sinks[0].is_added || part->produce.sinks[1].is_added);
    make_added(bytes, 29, 55);
    assert_int_equal(read_answer(part, KAFKA_API_ADD_PARTITIONS_TO_TXN, bytes, 35).code, 29);
}

#define WITH_PART(test) cmocka_unit_test_setup_teardown(test, make_part, free_part)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_coordinator_when_written_then_key_and_type),
        cmocka_unit_test(test_init_when_written_then_compact_and_without_an_epoch),
        WITH_PART(test_add_partitions_when_written_then_only_those_that_wait),
        WITH_PART(test_end_when_written_then_commit_is_one_and_abort_zero),
        WITH_PART(test_answer_of_find_coordinator_when_read_then_the_node),
        WITH_PART(test_answer_of_init_when_read_then_id_and_epoch),
        WITH_PART(test_answer_of_end_when_read_then_the_code),
        WITH_PART(test_answer_of_add_when_all_are_good_then_they_are_added),
        WITH_PART(test_answer_of_add_when_one_is_bad_then_its_code_and_none_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
