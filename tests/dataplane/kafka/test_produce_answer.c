/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of batches: refusals, sequence errors, the wrap of sequences. */
#include "dataplane/kafka/core.h"
#include "dataplane/kafka/produce.h"
#include "tests/dataplane/kafka/harness.h"

static uint32_t open_sink(struct harness *harness)
{
    uint32_t sink;
    assert_true(kafka_client_sink(harness->client, harness->out_index, 0, &sink));
    return sink;
}

static void test_refused_when_one_record_is_too_large_then_only_it_is_lost(void **state)
{
    struct harness *harness = harness_cluster();
    harness->broker->config.batch_bytes_max = 1000;
    harness_client(harness);
    uint32_t sink = open_sink(harness);
    char *value = calloc(1, 2000);
    memset(value, 'x', 1500);
    for (int i = 0; i < 21; i++) {
        assert_int_equal(harness_append(harness, sink, i == 10 ? value : "small"), KAFKA_APPEND_OK);
    }
    harness_run(harness, 2000);
    struct kafka_sink_status status = harness_sink(harness, sink);
    assert_int_equal(status.acked_count, 20);
    assert_int_equal(status.lost_count, 1);
    assert_int_equal(harness->out->partitions[0].next_offset, 20);
    assert_int_equal(kafka_client_pending(harness->client), 0);
    struct kafka_event event;
    assert_true(harness_event(harness, KAFKA_EVENT_PRODUCE_RECORD_LOST, &event));
    assert_int_equal(event.error_code, 10);
    free(value);
    harness_free(harness);
}

static void test_gap_when_the_broker_forgot_then_epoch_grows(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(harness_append(harness, sink, "a"), KAFKA_APPEND_OK);
        harness_run(harness, 50);
    }
    struct broker_partition *partition = &harness->out->partitions[0];
    partition->producers[0].last_sequence = 1000; /* something that is not ours to explain */
    assert_int_equal(harness_append(harness, sink, "b"), KAFKA_APPEND_OK);
    harness_run(harness, 500);
    assert_int_equal(kafka_client_counters(harness->client)->producer_epoch_bumps, 2);
    assert_int_equal(harness_sink(harness, sink).acked_count, 4);
    const struct broker_batch *last = &partition->batches[partition->batch_count - 1];
    assert_int_equal(load_be16(last->data + 51), 1);
    assert_int_equal(load_be32(last->data + 53), 0);
    assert_int_equal(kafka_client_counters(harness->client)->batches_maybe_repeated, 0);
    harness_free(harness);
}

static void test_epoch_when_invalid_then_a_new_id(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = open_sink(harness);
    assert_int_equal(harness_append(harness, sink, "a"), KAFKA_APPEND_OK);
    harness_run(harness, 100);
    harness->out->partitions[0].producers[0].epoch = 9; /* a zombie bumped it */
    assert_int_equal(harness_append(harness, sink, "b"), KAFKA_APPEND_OK);
    harness_run(harness, 500);
    assert_int_equal(harness_sink(harness, sink).acked_count, 2);
    assert_int_equal(harness->out->partitions[0].producer_count, 2);
    harness_free(harness);
}

/* One record is stored and its answer lost; what the partition knows of producers is the test's. */
static uint32_t lose_an_answer(struct harness *harness)
{
    uint32_t sink = open_sink(harness);
    assert_int_equal(harness_append(harness, sink, "before"), KAFKA_APPEND_OK);
    harness_run(harness, 100);
    harness->broker->config.faults.lose_answer = BROKER_ODDS_ONE;
    assert_int_equal(harness_append(harness, sink, "once"), KAFKA_APPEND_OK);
    while (harness->out->partitions[0].next_offset < 2) {
        harness_turn(harness);
    }
    return sink;
}

static void test_resent_when_the_broker_forgot_then_the_repeat_is_told(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = lose_an_answer(harness);
    harness->out->partitions[0].producer_count = 0;
    broker_calm(harness->broker);
    harness_run(harness, 1000);
    assert_int_equal(harness->out->partitions[0].next_offset, 3);
    assert_int_equal(harness_sink(harness, sink).acked_count, 2);
    assert_int_equal(harness_sink(harness, sink).last_acked_offset, 2);
    assert_int_equal(kafka_client_counters(harness->client)->batches_maybe_repeated, 1);
    struct kafka_event event;
    assert_true(harness_event(harness, KAFKA_EVENT_PRODUCE_REPEATED, &event));
    assert_int_equal(event.partition, 0);
    assert_string_equal(event.text, "out-0: 1 records may be in the log more than once");
    harness_free(harness);
}

static void test_resent_when_the_broker_knows_it_then_no_repeat_is_told(void **state)
{
    struct harness *harness = harness_cluster();
    harness_client(harness);
    uint32_t sink = lose_an_answer(harness);
    harness_store(&harness->out->partitions[0], 7, 5); /* somebody else's, behind ours */
    broker_calm(harness->broker);
    harness_run(harness, 1000);
    assert_int_equal(harness->out->partitions[0].next_offset, 9);
    assert_int_equal(harness_sink(harness, sink).acked_count, 2);
    assert_int_equal(harness_append(harness, sink, "after"), KAFKA_APPEND_OK);
    harness_run(harness, 100);
    assert_int_equal(harness_sink(harness, sink).last_acked_offset, 9);
    assert_int_equal(kafka_client_counters(harness->client)->batches_maybe_repeated, 0);
    harness_free(harness);
}

/* A part of a client on its own, to drive it without a cluster. */
struct part {
    struct kafka_core core;
    struct kafka_produce produce;
    struct kafka_sink *sink;
    void *memory;
};

static int make_part(void **state)
{
    struct harness *harness = harness_cluster();
    struct part *part = calloc(1, sizeof(*part));
    struct kafka_arena counting = {0};
    kafka_core_layout(NULL, &harness->config, &counting);
    kafka_produce_layout(NULL, &harness->config, &counting);
    part->memory = aligned_alloc(64, counting.used);
    memset(part->memory, 0, counting.used);
    struct kafka_arena arena = {.base = part->memory};
    part->core.config = harness->config;
    part->core.connector.connect = broker_connect;
    kafka_core_layout(&part->core, &harness->config, &arena);
    kafka_produce_layout(&part->produce, &harness->config, &arena);
    kafka_core_init(&part->core);
    kafka_produce_init(&part->produce, &part->core);
    uint32_t index;
    assert_int_equal(kafka_metadata_add_topic(&part->core.metadata, kafka_span_of("t")), 0);
    assert_true(kafka_produce_sink(&part->produce, 0, 0, &index));
    part->sink = &part->produce.sinks[index];
    part->produce.state = KAFKA_PRODUCER_READY;
    broker_destroy(harness->broker);
    free(harness);
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

/* Appends records so that some ordinary batches are sealed, and one is open. */
static void fill(struct part *part, uint32_t batches)
{
    uint8_t value[1000] = {0};
    struct kafka_produce_record record = {.value = {value, sizeof(value)}, .has_value = true};
    while (part->sink->batch_count <= batches) {
        assert_int_equal(kafka_produce_append(&part->produce, 0, &record), KAFKA_APPEND_OK);
    }
}

static void put_in_flight(struct part *part, uint32_t index)
{
    struct kafka_out_batch *batch = &part->produce.batches[index];
    batch->is_in_flight = true;
    batch->is_uncertain = true;
    part->sink->in_flight_count++;
    part->produce.flight_count++;
    part->produce.unsent_count--;
}

static void test_answer_when_every_code_then_its_class(void **state)
{
    static const int16_t done[] = {0, 46};
    static const int16_t refused[] = {10, 18, 32, 87};
    static const int16_t final[] = {17, 21, 29, 31, 35, 43, 53, 76, 90};
    for (int16_t code = -1; code < 135; code++) {
        (void)free_part(state);
        (void)make_part(state);
        struct part *part = *state;
        fill(part, 1);
        uint32_t index = part->sink->head;
        struct kafka_out_batch *batch = &part->produce.batches[index];
        put_in_flight(part, index);
        kafka_produce_answer(&part->produce, part->sink, index, code, 5);
        bool is_done = false;
        bool is_refused = false;
        bool is_final = false;
        for (size_t i = 0; i < COUNT_OF(final); i++) {
            is_done |= i < COUNT_OF(done) && done[i] == code;
            is_refused |= i < COUNT_OF(refused) && refused[i] == code;
            is_final |= final[i] == code;
        }
        bool is_sequence = code == 45 || code == 47 || code == 59;
        assert_int_equal(part->sink->acked_count > 0, is_done);
        assert_int_equal(batch->refusal != 0, is_refused);
        assert_int_equal(part->sink->is_failed, is_final);
        assert_int_equal(part->produce.state == KAFKA_PRODUCER_BUMP, is_sequence);
        assert_int_equal(part->sink->is_recovering, !is_done && !is_final);
        assert_int_equal(part->sink->lost_count > 0, is_final);
    }
}

static void test_sequence_error_when_something_older_is_missing_then_no_bump(void **state)
{
    struct part *part = *state;
    fill(part, 2);
    uint32_t first = part->sink->head;
    uint32_t second = part->produce.batches[first].next;
    put_in_flight(part, first);
    put_in_flight(part, second);
    kafka_produce_answer(&part->produce, part->sink, first, 6, -1);
    kafka_produce_answer(&part->produce, part->sink, second, 45, -1);
    assert_int_equal(part->produce.state, KAFKA_PRODUCER_READY);
    assert_true(part->sink->is_recovering);
    assert_false(part->produce.batches[first].is_uncertain);
}

static void test_sequence_when_it_reaches_the_top_then_wraps_to_zero(void **state)
{
    struct part *part = *state;
    part->sink->next_sequence = INT32_MAX - 1;
    fill(part, 2);
    const struct kafka_out_batch *first = &part->produce.batches[part->sink->head];
    const struct kafka_out_batch *second = &part->produce.batches[first->next];
    assert_int_equal(first->base_sequence, INT32_MAX - 1);
    assert_int_equal(first->builder.record_count, 3);
    assert_int_equal(second->base_sequence, 1);
    assert_int_equal(load_be32(second->builder.data + 53), 1);
}

static void test_split_when_refused_then_same_sequences_and_records(void **state)
{
    struct part *part = *state;
    part->sink->next_sequence = INT32_MAX;
    fill(part, 1);
    uint32_t index = part->sink->head;
    struct kafka_out_batch *first = &part->produce.batches[index];
    int32_t count = first->builder.record_count;
    put_in_flight(part, index);
    kafka_produce_answer(&part->produce, part->sink, index, 10, -1);
    assert_true(kafka_produce_split(&part->produce, part->sink, index));
    const struct kafka_out_batch *second = &part->produce.batches[first->next];
    assert_int_equal(first->builder.record_count + second->builder.record_count, count);
    assert_int_equal(first->base_sequence, INT32_MAX);
    assert_int_equal(second->base_sequence, first->builder.record_count - 1);
    assert_true(
        kafka_batch_crc_is_good((struct span){second->builder.data, second->builder.bytes}));
    assert_int_equal(part->produce.pending_count, count + 1);
}

static struct kafka_out_batch *batch_at(struct part *part, uint32_t place)
{
    uint32_t index = part->sink->head;
    while (place-- > 0) {
        index = part->produce.batches[index].next;
    }
    return &part->produce.batches[index];
}

static void answer_at(struct part *part, uint32_t place, int16_t code, int64_t base_offset)
{
    uint32_t index = (uint32_t)(batch_at(part, place) - part->produce.batches);
    put_in_flight(part, index);
    kafka_produce_answer(&part->produce, part->sink, index, code, base_offset);
}

/* The younger batch keeps its place in the queue, but no longer one among the sequences. */
static void test_renumber_when_a_younger_is_acked_then_sequences_run_on_across_it(void **state)
{
    struct part *part = *state;
    fill(part, 3);
    answer_at(part, 0, 7, -1);
    answer_at(part, 1, 0, 3);
    assert_true(kafka_produce_sink_is_sound(&part->produce, part->sink));
    kafka_produce_renumber(&part->produce, part->sink, 0);
    assert_int_equal(batch_at(part, 0)->base_sequence, 0);
    assert_int_equal(batch_at(part, 1)->base_sequence, KAFKA_NO_SEQUENCE);
    assert_int_equal(batch_at(part, 2)->base_sequence, batch_at(part, 0)->builder.record_count);
    assert_true(kafka_produce_sink_is_sound(&part->produce, part->sink));
}

/* Leaves the only record of the first batch to be refused. */
static void refuse_first_record(struct part *part)
{
    answer_at(part, 0, 87, -1);
    while (batch_at(part, 0)->builder.record_count > 1) {
        uint32_t index = part->sink->head;
        assert_true(kafka_produce_split(&part->produce, part->sink, index));
        part->produce.batches[index].refusal = 87;
    }
}

static void test_drop_when_what_follows_is_acked_then_epoch_not_renumbered(void **state)
{
    struct part *part = *state;
    fill(part, 2);
    refuse_first_record(part);
    answer_at(part, 1, 0, 0);
    int32_t sequence = batch_at(part, 2)->base_sequence;
    assert_true(sequence > 0);
    uint32_t before = part->sink->batch_count;
    assert_true(kafka_produce_split(&part->produce, part->sink, part->sink->head));
    assert_int_equal(part->sink->lost_count, 1);
    assert_int_equal(part->sink->batch_count, before - 2); /* the acknowledged one went too */
    assert_int_equal(batch_at(part, 0)->base_sequence, sequence);
    assert_int_equal(part->produce.state, KAFKA_PRODUCER_BUMP);
    assert_true(kafka_produce_sink_is_sound(&part->produce, part->sink));
}

static void test_drop_when_what_follows_may_be_stored_then_it_goes_alone(void **state)
{
    struct part *part = *state;
    fill(part, 2);
    part->sink->is_established = true;
    refuse_first_record(part);
    answer_at(part, 1, 7, -1);
    assert_true(kafka_produce_split(&part->produce, part->sink, part->sink->head));
    assert_int_equal(batch_at(part, 0)->base_sequence, 0);
    assert_false(part->sink->is_established);
    assert_int_equal(part->produce.state, KAFKA_PRODUCER_READY);
}

static void test_split_when_sent_then_both_halves_were(void **state)
{
    struct part *part = *state;
    fill(part, 1);
    batch_at(part, 0)->was_sent = true;
    answer_at(part, 0, 10, -1);
    assert_true(kafka_produce_split(&part->produce, part->sink, part->sink->head));
    assert_true(batch_at(part, 0)->was_sent && batch_at(part, 1)->was_sent);
}

/* [sent again] [acknowledged]: a broker that knows the older one has stored it before the younger,
 * so an offset behind it is a second copy. */
static void test_repeat_when_a_younger_has_the_lower_offset_then_told(void **state)
{
    struct part *part = *state;
    fill(part, 2);
    batch_at(part, 0)->was_uncertain = true;
    answer_at(part, 1, 0, 3);
    answer_at(part, 0, 0, 6);
    assert_int_equal(part->core.counters.batches_maybe_repeated, 1);
    assert_int_equal(part->sink->last_acked_offset, 8);
}

static void test_repeat_when_two_are_stored_again_then_both_are_told(void **state)
{
    struct part *part = *state;
    fill(part, 2);
    batch_at(part, 0)->was_uncertain = true;
    batch_at(part, 1)->was_uncertain = true;
    batch_at(part, 1)->is_uncertain = true;
    answer_at(part, 0, 0, 6); /* 0 to 5 are the first copies */
    answer_at(part, 0, 0, 9);
    assert_int_equal(part->core.counters.batches_maybe_repeated, 2);
}

static void test_repeat_when_the_gap_holds_less_then_not_told(void **state)
{
    struct part *part = *state;
    fill(part, 1);
    batch_at(part, 0)->was_uncertain = true;
    answer_at(part, 0, 0, 2);
    assert_int_equal(part->core.counters.batches_maybe_repeated, 0);
}

#define WITH_PART(test) cmocka_unit_test_setup_teardown(test, make_part, free_part)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_when_one_record_is_too_large_then_only_it_is_lost),
        cmocka_unit_test(test_gap_when_the_broker_forgot_then_epoch_grows),
        cmocka_unit_test(test_epoch_when_invalid_then_a_new_id),
        cmocka_unit_test(test_resent_when_the_broker_forgot_then_the_repeat_is_told),
        cmocka_unit_test(test_resent_when_the_broker_knows_it_then_no_repeat_is_told),
        WITH_PART(test_answer_when_every_code_then_its_class),
        WITH_PART(test_sequence_error_when_something_older_is_missing_then_no_bump),
        WITH_PART(test_sequence_when_it_reaches_the_top_then_wraps_to_zero),
        WITH_PART(test_split_when_refused_then_same_sequences_and_records),
        WITH_PART(test_renumber_when_a_younger_is_acked_then_sequences_run_on_across_it),
        WITH_PART(test_drop_when_what_follows_is_acked_then_epoch_not_renumbered),
        WITH_PART(test_drop_when_what_follows_may_be_stored_then_it_goes_alone),
        WITH_PART(test_split_when_sent_then_both_halves_were),
        WITH_PART(test_repeat_when_a_younger_has_the_lower_offset_then_told),
        WITH_PART(test_repeat_when_two_are_stored_again_then_both_are_told),
        WITH_PART(test_repeat_when_the_gap_holds_less_then_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
