/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a transactional client against a scripted coordinator: what it asks, in which
 * order, what it asks again, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/dataplane/kafka/transaction_peer.h"

#define MS UINT64_C(1000000)

struct world {
    struct peer *peer;
    struct kafka_client *client;
    uint64_t now_ns;
    uint32_t sinks[PEER_PARTITIONS];
};

static void run(struct world *world, uint64_t ms)
{
    for (uint64_t end = world->now_ns + ms * MS; world->now_ns < end; world->now_ns += MS / 2) {
        (void)kafka_client_poll(world->client, world->now_ns);
    }
}

static struct kafka_transaction_status status_of(const struct world *world)
{
    struct kafka_transaction_status status;
    kafka_client_transaction_status(world->client, &status);
    return status;
}

static int make_world(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct kafka_config config;
    struct error error = {0};
    world->peer = peer_create();
    peer_config(&config);
    kafka_config_make_transactional(&config);
    const struct kafka_connector connector = {.connect = peer_connect, .context = world->peer};
    uint32_t topic;
    assert_int_equal(kafka_client_create(&config, &connector, &world->client, &error), 0);
    assert_true(kafka_client_topic(world->client, "t", &topic));
    for (int32_t i = 0; i < PEER_PARTITIONS; i++) {
        assert_true(kafka_client_sink(world->client, topic, i, &world->sinks[i]));
    }
    *state = world;
    return 0;
}

static int free_world(void **state)
{
    struct world *world = *state;
    kafka_client_destroy(world->client);
    peer_destroy(world->peer);
    free(world);
    return 0;
}

static int make_ready(void **state)
{
    (void)make_world(state);
    struct world *world = *state;
    kafka_client_transaction_start(world->client, "job-a0");
    run(world, 100);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    return 0;
}

static enum kafka_append append(struct world *world, uint32_t partition)
{
    const struct kafka_produce_record record = {.value = kafka_span_of("v"), .has_value = true};
    return kafka_client_append(world->client, world->sinks[partition], &record);
}

static void write_one(struct world *world)
{
    assert_true(kafka_client_transaction_begin(world->client));
    assert_int_equal(append(world, 0), KAFKA_APPEND_OK);
    run(world, 50);
}

static bool has_event(struct world *world, enum kafka_event_code code, struct kafka_event *out)
{
    while (kafka_client_event(world->client, out)) {
        if (out->code == code) {
            return true;
        }
    }
    return false;
}

static void test_start_when_coordinator_answers_then_ready(void **state)
{
    struct world *world = *state;
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_OFF);
    run(world, 50);
    assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 0);
    kafka_client_transaction_start(world->client, "job-a0");
    run(world, 50);
    assert_int_equal(peer_count(world->peer, KAFKA_API_FIND_COORDINATOR), 1);
    assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 1);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    assert_int_equal(status_of(world).producer_id, PEER_PRODUCER_ID);
    assert_int_equal(status_of(world).producer_epoch, 0);
}

static void test_append_when_nothing_is_open_then_full(void **state)
{
    struct world *world = *state;
    assert_int_equal(append(world, 0), KAFKA_APPEND_FULL);
    assert_true(kafka_client_transaction_begin(world->client));
    assert_false(kafka_client_transaction_begin(world->client));
    assert_int_equal(append(world, 0), KAFKA_APPEND_OK);
    kafka_client_transaction_end(world->client, true);
    assert_int_equal(append(world, 0), KAFKA_APPEND_FULL);
}

/* The batch behind the transactional id in the body of Produce v7: id, acks, timeout, one topic
 * "t", one partition, bytes, then 21 bytes to the attributes. */
static void test_produce_when_open_then_added_first_and_marked(void **state)
{
    struct world *world = *state;
    write_one(world);
    const struct peer *peer = world->peer;
    assert_int_equal(peer_count(peer, KAFKA_API_ADD_PARTITIONS_TO_TXN), 1);
    assert_int_equal(peer_count(peer, KAFKA_API_PRODUCE), 1);
    uint32_t at = 0;
    while (peer->asked[at].api != KAFKA_API_ADD_PARTITIONS_TO_TXN) {
        assert_int_not_equal(peer->asked[at++].api, KAFKA_API_PRODUCE);
    }
    const uint8_t *body = peer_last(peer, KAFKA_API_PRODUCE)->body;
    static const uint8_t id[] = {0, 6, 'j', 'o', 'b', '-', 'a', '0', 0xFF, 0xFF};
    assert_memory_equal(body, id, sizeof(id));
    const uint8_t *batch = body + sizeof(id) + 4 + 4 + 3 + 4 + 4 + 4;
    assert_int_equal(load_be16(batch + 21), 0x10);
    assert_int_equal(load_be64(batch + 43), (uint64_t)PEER_PRODUCER_ID);
    assert_int_equal(kafka_client_pending(world->client), 0);
}

static void test_end_when_all_is_answered_then_committed_and_added_anew(void **state)
{
    struct world *world = *state;
    write_one(world);
    assert_int_equal(append(world, 1), KAFKA_APPEND_OK); /* not on its way yet */
    kafka_client_transaction_end(world->client, true);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_COMMITTING);
    run(world, 50);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    assert_int_equal(peer_count(world->peer, KAFKA_API_PRODUCE), 2);
    assert_int_equal(peer_count(world->peer, KAFKA_API_ADD_PARTITIONS_TO_TXN), 2);
    const struct peer_asked *end = peer_last(world->peer, KAFKA_API_END_TXN);
    assert_int_equal(end->body[end->body_bytes - 1], 1);
    assert_ptr_equal(end, &world->peer->asked[world->peer->asked_count - 1]);
    assert_int_equal(kafka_client_counters(world->client)->transactions_committed, 1);
    write_one(world);
    assert_int_equal(peer_count(world->peer, KAFKA_API_ADD_PARTITIONS_TO_TXN), 3);
    kafka_client_transaction_end(world->client, false);
    run(world, 50);
    end = peer_last(world->peer, KAFKA_API_END_TXN);
    assert_int_equal(end->body[end->body_bytes - 1], 0);
    assert_int_equal(kafka_client_counters(world->client)->transactions_aborted, 1);
}

static void test_end_when_nothing_was_written_then_nobody_is_asked(void **state)
{
    struct world *world = *state;
    assert_true(kafka_client_transaction_begin(world->client));
    run(world, 20);
    kafka_client_transaction_end(world->client, true);
    run(world, 20);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    assert_int_equal(peer_count(world->peer, KAFKA_API_END_TXN), 0);
    assert_int_equal(peer_count(world->peer, KAFKA_API_ADD_PARTITIONS_TO_TXN), 0);
}

static void test_start_when_concurrent_then_asked_again_soon(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 5; i++) {
        peer_answer_next(world->peer, KAFKA_API_INIT_PRODUCER_ID, 51);
    }
    kafka_client_transaction_start(world->client, "job-a0");
    run(world, 100);
    assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 6);
    assert_int_equal(peer_count(world->peer, KAFKA_API_FIND_COORDINATOR), 1);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
}

static void test_end_when_coordinator_moved_then_found_anew(void **state)
{
    struct world *world = *state;
    static const int16_t codes[] = {16, 15, 14};
    write_one(world);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        peer_answer_next(world->peer, KAFKA_API_END_TXN, codes[i]);
    }
    peer_answer_next(world->peer, KAFKA_API_FIND_COORDINATOR, 15);
    kafka_client_transaction_end(world->client, true);
    run(world, 3000);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    assert_int_equal(peer_count(world->peer, KAFKA_API_END_TXN), 4);
    assert_int_equal(peer_count(world->peer, KAFKA_API_FIND_COORDINATOR), 4);
}

/* One that may come late to the coordinator taints what follows under the same epoch. */
static void test_request_when_its_answer_is_lost_then_asked_again(void **state)
{
    static const enum kafka_api apis[] = {KAFKA_API_ADD_PARTITIONS_TO_TXN, KAFKA_API_PRODUCE,
                                          KAFKA_API_END_TXN};
    struct world *world = *state;
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        const uint64_t committed = kafka_client_counters(world->client)->transactions_committed;
        const uint32_t before = peer_count(world->peer, apis[i]);
        world->peer->is_mute[apis[i]] = true;
        write_one(world);
        kafka_client_transaction_end(world->client, true);
        run(world, 50);
        assert_int_equal(peer_count(world->peer, apis[i]), before + 1);
        world->peer->is_mute[apis[i]] = false;
        peer_cut_off(world->peer);
        run(world, 2000);
        assert_int_equal(peer_count(world->peer, apis[i]), before + 2);
        assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
        assert_int_equal(kafka_client_counters(world->client)->transactions_committed,
                         committed + 1);
        assert_int_equal(status_of(world).is_tainted, apis[i] != KAFKA_API_PRODUCE);
        kafka_client_transaction_start(world->client, "job-a0");
        run(world, 100);
        assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
        assert_false(status_of(world).is_tainted);
    }
}

static void test_add_when_fenced_then_failed_for_good(void **state)
{
    struct world *world = *state;
    struct kafka_event event;
    int16_t code = 0;
    peer_answer_next(world->peer, KAFKA_API_ADD_PARTITIONS_TO_TXN, 47);
    write_one(world);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_FAILED);
    assert_int_equal(status_of(world).error_code, 47);
    assert_true(kafka_client_has_failed(world->client, &code));
    assert_int_equal(code, 47);
    assert_true(has_event(world, KAFKA_EVENT_TRANSACTION_FAILED, &event));
    assert_non_null(strstr(event.text, "job-a0"));
    kafka_client_transaction_end(world->client, true);
    run(world, 1000);
    assert_int_equal(peer_count(world->peer, KAFKA_API_PRODUCE), 0);
    assert_int_equal(peer_count(world->peer, KAFKA_API_END_TXN), 0);
    assert_int_equal(append(world, 0), KAFKA_APPEND_FULL);
}

/* Codes that a plain producer cures by a new epoch, or by waiting, end a transaction. */
static void test_produce_when_refused_then_the_transaction_fails(void **state)
{
    static const int16_t codes[] = {45, 47, 48, 49, 53, 59, 90};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        (void)make_ready(state);
        struct world *world = *state;
        peer_answer_next(world->peer, KAFKA_API_PRODUCE, codes[i]);
        write_one(world);
        assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_FAILED);
        assert_int_equal(status_of(world).error_code, codes[i]);
        assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 1);
        (void)free_world(state);
    }
}

static void test_end_when_every_code_then_again_or_lost(void **state)
{
    static const int16_t lost[] = {17, 29, 31, 35, 47, 48, 49, 50, 53, 59, 90, 105};
    for (int16_t code = -1; code < 135; code++) {
        (void)make_ready(state);
        struct world *world = *state;
        bool is_lost = false;
        for (size_t i = 0; i < COUNT_OF(lost); i++) {
            is_lost |= lost[i] == code;
        }
        write_one(world);
        peer_answer_next(world->peer, KAFKA_API_END_TXN, code);
        kafka_client_transaction_end(world->client, true);
        run(world, 150);
        struct kafka_event event;
        assert_int_equal(status_of(world).state,
                         is_lost ? KAFKA_TRANSACTION_FAILED : KAFKA_TRANSACTION_READY);
        assert_int_equal(has_event(world, KAFKA_EVENT_TRANSACTION_LOST, &event), is_lost);
        assert_int_equal(peer_count(world->peer, KAFKA_API_END_TXN), code == 0 || is_lost ? 1 : 2);
        (void)free_world(state);
    }
}

static void test_resolve_when_prepared_then_ended_as_stored(void **state)
{
    struct world *world = *state;
    const struct kafka_transaction_claim claim = {
        .transactional_id = "old", .producer_id = 0x1122, .producer_epoch = 5, .is_prepared = true};
    kafka_client_transaction_resolve(world->client, &claim);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_RESOLVING);
    run(world, 50);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_OFF);
    assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 0);
    const struct peer_asked *end = peer_last(world->peer, KAFKA_API_END_TXN);
    static const uint8_t wanted[] = {0, 3, 'o', 'l', 'd', 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0, 5, 1};
    assert_int_equal(end->body_bytes, sizeof(wanted));
    assert_memory_equal(end->body, wanted, sizeof(wanted));
}

static void test_resolve_when_pooled_then_taken_over_and_off_again(void **state)
{
    struct world *world = *state;
    const struct kafka_transaction_claim claim = {.transactional_id = "old"};
    kafka_client_transaction_resolve(world->client, &claim);
    run(world, 50);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_OFF);
    assert_int_equal(peer_count(world->peer, KAFKA_API_INIT_PRODUCER_ID), 1);
    assert_int_equal(peer_count(world->peer, KAFKA_API_END_TXN), 0);
    kafka_client_transaction_start(world->client, "new");
    run(world, 50);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_READY);
    assert_int_equal(peer_count(world->peer, KAFKA_API_FIND_COORDINATOR), 2);
}

static void test_resolve_when_aborted_meanwhile_then_lost_by_name(void **state)
{
    struct world *world = *state;
    struct kafka_event event;
    const struct kafka_transaction_claim claim = {
        .transactional_id = "old", .producer_id = 3, .is_prepared = true};
    peer_answer_next(world->peer, KAFKA_API_END_TXN, 48);
    kafka_client_transaction_resolve(world->client, &claim);
    run(world, 50);
    assert_int_equal(status_of(world).state, KAFKA_TRANSACTION_FAILED);
    assert_true(has_event(world, KAFKA_EVENT_TRANSACTION_LOST, &event));
    assert_string_equal(event.text, "transactional id old, producer 3 epoch 0: its transaction "
                                    "cannot be committed: INVALID_TXN_STATE");
}

static void test_start_when_another_id_then_a_new_epoch_and_sequences_from_0(void **state)
{
    struct world *world = *state;
    write_one(world);
    kafka_client_transaction_end(world->client, true);
    run(world, 50);
    kafka_client_transaction_start(world->client, "job-b0");
    assert_int_equal(append(world, 0), KAFKA_APPEND_FULL);
    run(world, 50);
    assert_int_equal(status_of(world).producer_epoch, 1);
    write_one(world);
    const uint8_t *body = peer_last(world->peer, KAFKA_API_PRODUCE)->body;
    assert_memory_equal(body + 2, "job-b0", 6);
    const uint8_t *batch = body + 10 + 4 + 4 + 3 + 4 + 4 + 4;
    assert_int_equal(load_be16(batch + 51), 1);
    assert_int_equal(load_be32(batch + 53), 0);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, free_world)
#define WITH_READY(test) cmocka_unit_test_setup_teardown(test, make_ready, free_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_start_when_coordinator_answers_then_ready),
        WITH_READY(test_append_when_nothing_is_open_then_full),
        WITH_READY(test_produce_when_open_then_added_first_and_marked),
        WITH_READY(test_end_when_all_is_answered_then_committed_and_added_anew),
        WITH_READY(test_end_when_nothing_was_written_then_nobody_is_asked),
        WITH_WORLD(test_start_when_concurrent_then_asked_again_soon),
        WITH_READY(test_end_when_coordinator_moved_then_found_anew),
        WITH_READY(test_request_when_its_answer_is_lost_then_asked_again),
        WITH_READY(test_add_when_fenced_then_failed_for_good),
        cmocka_unit_test(test_produce_when_refused_then_the_transaction_fails),
        cmocka_unit_test(test_end_when_every_code_then_again_or_lost),
        WITH_WORLD(test_resolve_when_prepared_then_ended_as_stored),
        WITH_WORLD(test_resolve_when_pooled_then_taken_over_and_off_again),
        WITH_WORLD(test_resolve_when_aborted_meanwhile_then_lost_by_name),
        WITH_READY(test_start_when_another_id_then_a_new_epoch_and_sequences_from_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
