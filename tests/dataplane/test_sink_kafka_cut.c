/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of the Kafka sink against a scripted coordinator: what a cut names, when it is
 * settled, when transactions are committed and their ids used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/facts.h"
#include "dataplane/sink_kafka.h"
#include "tests/dataplane/kafka/transaction_peer.h"

#define MS          UINT64_C(1000000)
#define POOL        3
#define FACTS_BYTES 16384
#define EXACT       0
#define PLAIN       1

struct lane {
    struct peer *peer;
    struct kafka_client *clients[POOL + 1];
    struct sink_kafka *sink;
    struct record_sink *records;
    uint64_t now_ns;
    struct facts_transaction facts[32];
    uint32_t fact_count;
    _Alignas(8) uint8_t bytes[FACTS_BYTES];
};

static void run(struct lane *lane, uint64_t ms)
{
    for (uint64_t end = lane->now_ns + ms * MS; lane->now_ns < end; lane->now_ns += MS / 4) {
        (void)record_sink_poll(lane->records, lane->now_ns);
    }
}

static struct lane *make_lane(const char *id)
{
    static const struct sink_kafka_topic topics[] = {{"exact", true}, {"plain", false}};
    struct lane *lane = calloc(1, sizeof(*lane));
    struct kafka_config config;
    struct error error = {0};
    lane->peer = peer_create();
    const struct kafka_connector connector = {.connect = peer_connect, .context = lane->peer};
    peer_config(&config);
    assert_int_equal(kafka_client_create(&config, &connector, &lane->clients[POOL], &error), 0);
    kafka_config_make_transactional(&config);
    for (uint32_t i = 0; i < POOL; i++) {
        assert_int_equal(kafka_client_create(&config, &connector, &lane->clients[i], &error), 0);
    }
    const struct sink_kafka_config sink = {.client = lane->clients[POOL],
                                           .topics = topics,
                                           .topic_count = 2,
                                           .pool = lane->clients,
                                           .pool_count = POOL,
                                           .transactional_id = id};
    assert_int_equal(sink_kafka_create(&sink, &lane->sink, &error), 0);
    lane->records = sink_kafka_records(lane->sink);
    return lane;
}

static void free_lane(struct lane *lane)
{
    sink_kafka_destroy(lane->sink);
    for (uint32_t i = 0; i <= POOL; i++) {
        kafka_client_destroy(lane->clients[i]);
    }
    peer_destroy(lane->peer);
    free(lane);
}

static int make_fresh(void **state)
{
    *state = make_lane("job");
    return 0;
}

static int make_open(void **state)
{
    struct lane *lane = make_lane("job");
    struct error error = {0};
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, NULL, 0, &error), 0);
    run(lane, 200);
    *state = lane;
    return 0;
}

static int free_state(void **state)
{
    free_lane(*state);
    return 0;
}

static enum record_sink_verdict append(struct lane *lane, uint32_t topic)
{
    const struct record record = {.key_is_null = true, .value = kafka_span_of("v")};
    return record_sink_append(lane->records, topic, 0, &record);
}

static bool keep_fact(void *context, const struct facts_item *item)
{
    struct lane *lane = context;
    assert_int_equal(item->kind, FACTS_TRANSACTION);
    lane->facts[lane->fact_count++] = item->transaction;
    return true;
}

static void cut(struct lane *lane, uint64_t id)
{
    struct facts_writer writer;
    struct error error = {0};
    facts_begin(&writer, (struct span_mut){lane->bytes, FACTS_BYTES});
    record_sink_cut(lane->records, id, &writer);
    assert_false(writer.is_full);
    lane->fact_count = 0;
    assert_int_equal(facts_read(facts_written(&writer), keep_fact, lane, &error), 0);
}

/* The ids that the last cut names as prepared, with spaces between. */
static const char *prepared(const struct lane *lane)
{
    static char text[512];
    text[0] = 0;
    for (uint32_t i = 0; i < lane->fact_count; i++) {
        if (lane->facts[i].state == FACTS_TRANSACTION_PREPARED) {
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " " : "",
                           lane->facts[i].transactional_id);
        }
    }
    return text;
}

static uint32_t ends(const struct lane *lane)
{
    return peer_count(lane->peer, KAFKA_API_END_TXN);
}

static void test_append_when_not_recovered_then_only_plain(void **state)
{
    struct lane *lane = *state;
    run(lane, 100);
    assert_int_equal(append(lane, EXACT), RECORD_SINK_FULL);
    assert_int_equal(append(lane, PLAIN), RECORD_SINK_OK);
    cut(lane, 1);
    run(lane, 50);
    assert_true(record_sink_flushed(lane->records));
    assert_false(sink_kafka_is_recovered(lane->sink));
    assert_false(record_sink_is_settled(lane->records, 1));
    assert_int_equal(peer_count(lane->peer, KAFKA_API_INIT_PRODUCER_ID), 1); /* the plain one's */
}

static void test_recover_when_nothing_is_stored_then_both_ids_of_each_are_taken_over(void **state)
{
    struct lane *lane = *state;
    assert_true(sink_kafka_is_recovered(lane->sink));
    assert_int_equal(peer_count(lane->peer, KAFKA_API_INIT_PRODUCER_ID), 2 * POOL);
    assert_int_equal(ends(lane), 0);
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
}

static void test_cut_when_nothing_was_written_then_nothing_is_prepared(void **state)
{
    struct lane *lane = *state;
    cut(lane, 1);
    assert_string_equal(prepared(lane), "");
    assert_int_equal(lane->fact_count, 2 * POOL);
    assert_string_equal(lane->facts[0].transactional_id, "job-a0");
    assert_string_equal(lane->facts[1].transactional_id, "job-b0");
    assert_int_equal(lane->facts[0].state, FACTS_TRANSACTION_POOLED);
    assert_true(record_sink_is_settled(lane->records, 1));
    record_sink_complete(lane->records, 1);
    run(lane, 50);
    assert_int_equal(ends(lane), 0);
}

static void test_checkpoint_when_complete_then_committed_as_named(void **state)
{
    struct lane *lane = *state;
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    cut(lane, 1);
    assert_string_equal(prepared(lane), "job-a0");
    assert_int_equal(lane->facts[0].producer_id, PEER_PRODUCER_ID);
    assert_false(record_sink_is_settled(lane->records, 1));
    assert_false(record_sink_flushed(lane->records));
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK); /* behind the cut */
    lane->peer->is_mute[KAFKA_API_END_TXN] = true;
    run(lane, 50);
    assert_true(record_sink_is_settled(lane->records, 1));
    assert_int_equal(ends(lane), 0);
    record_sink_complete(lane->records, 1);
    run(lane, 50);
    assert_int_equal(ends(lane), 1);
    const struct peer_asked *end = peer_last(lane->peer, KAFKA_API_END_TXN);
    assert_memory_equal(end->body + 2, "job-a0", 6);
    assert_int_equal(load_be16(end->body + 16), (uint16_t)lane->facts[0].producer_epoch);
    assert_int_equal(end->body[18], 1);
    assert_false(record_sink_flushed(lane->records)); /* the commit is not answered */
    cut(lane, 2);
    assert_string_equal(prepared(lane), "job-a0 job-a1");
    lane->peer->is_mute[KAFKA_API_END_TXN] = false;
    peer_cut_off(lane->peer);
    run(lane, 1000);
    assert_true(record_sink_flushed(lane->records));
    cut(lane, 3);
    assert_string_equal(prepared(lane), "job-a1");
}

/* Its records count as lost then, and a checkpoint that held them would go on behind a gap. */
static void test_settled_when_a_plain_sink_has_failed_then_never(void **state)
{
    struct lane *lane = *state;
    int16_t code = 0;
    peer_answer_next(lane->peer, KAFKA_API_PRODUCE, 29); /* TOPIC_AUTHORIZATION_FAILED */
    assert_int_equal(append(lane, PLAIN), RECORD_SINK_OK);
    cut(lane, 1);
    run(lane, 200);
    assert_true(sink_kafka_has_failed(lane->sink, &code));
    assert_int_equal(code, 29);
    assert_int_equal(sink_kafka_lost(lane->sink), 1);
    assert_false(record_sink_is_settled(lane->records, 1));
    cut(lane, 2);
    assert_false(record_sink_is_settled(lane->records, 2));
}

static void test_settled_when_plain_records_follow_then_not_waited_for(void **state)
{
    struct lane *lane = *state;
    assert_int_equal(append(lane, PLAIN), RECORD_SINK_OK);
    cut(lane, 1);
    assert_false(record_sink_is_settled(lane->records, 1));
    run(lane, 50);
    lane->peer->is_mute[KAFKA_API_PRODUCE] = true;
    assert_int_equal(append(lane, PLAIN), RECORD_SINK_OK);
    run(lane, 50);
    assert_true(record_sink_is_settled(lane->records, 1));
    cut(lane, 2);
    assert_false(record_sink_is_settled(lane->records, 2));
    assert_true(record_sink_is_settled(lane->records, 1));
    record_sink_complete(lane->records, 1);
    assert_false(record_sink_is_settled(lane->records, 2));
}

static void test_settled_when_exact_records_follow_then_not_waited_for(void **state)
{
    struct lane *lane = *state;
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    run(lane, 50);
    cut(lane, 1);
    lane->peer->is_mute[KAFKA_API_PRODUCE] = true;
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    run(lane, 50);
    cut(lane, 2);
    assert_true(record_sink_is_settled(lane->records, 1));
    assert_false(record_sink_is_settled(lane->records, 2));
}

/* Two clients have no order between them. */
static void test_cut_when_records_before_it_are_not_answered_then_those_behind_wait(void **state)
{
    static const char *const wanted[] = {"job-a0", "job-a0", "job-a1"};
    struct lane *lane = *state;
    uint32_t seen = 0;
    lane->peer->is_mute[KAFKA_API_PRODUCE] = true;
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    run(lane, 50);
    cut(lane, 1);
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    run(lane, 50);
    assert_int_equal(peer_count(lane->peer, KAFKA_API_PRODUCE), 1);
    lane->peer->is_mute[KAFKA_API_PRODUCE] = false;
    peer_cut_off(lane->peer);
    run(lane, 1000);
    for (uint32_t i = 0; i < lane->peer->asked_count; i++) {
        const struct peer_asked *asked = &lane->peer->asked[i];
        if (asked->api == KAFKA_API_PRODUCE) {
            assert_true(seen < COUNT_OF(wanted));
            assert_memory_equal(asked->body + 2, wanted[seen++], 6);
        }
    }
    assert_int_equal(seen, COUNT_OF(wanted));
}

/* An EndTxn whose answer was lost may still come, and would end the id's next transaction. */
static void test_id_when_a_request_may_come_late_then_started_anew_once_free(void **state)
{
    struct lane *lane = *state;
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_equal(peer_count(lane->peer, KAFKA_API_INIT_PRODUCER_ID), 2 * POOL);
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        cut(lane, id);
        run(lane, 50);
        lane->peer->is_mute[KAFKA_API_END_TXN] = id == 1;
        record_sink_complete(lane->records, id);
        run(lane, 50);
        if (id == 1) {
            lane->peer->is_mute[KAFKA_API_END_TXN] = false;
            peer_cut_off(lane->peer);
            run(lane, 1000);
        }
        assert_true(record_sink_flushed(lane->records));
    }
    assert_int_equal(peer_count(lane->peer, KAFKA_API_INIT_PRODUCER_ID), 2 * POOL + 1);
    const struct peer_asked *init = peer_last(lane->peer, KAFKA_API_INIT_PRODUCER_ID);
    assert_memory_equal(init->body + 1, "job-a0", 6);
}

static void test_complete_when_older_ones_never_were_then_all_are_committed(void **state)
{
    struct lane *lane = *state;
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        cut(lane, id);
        run(lane, 50);
    }
    assert_string_equal(prepared(lane), "job-a0 job-a1");
    record_sink_complete(lane->records, 2);
    run(lane, 50);
    assert_int_equal(ends(lane), 2);
}

static void test_append_when_the_pool_is_used_up_then_full_until_complete(void **state)
{
    struct lane *lane = *state;
    for (uint64_t id = 1; id <= POOL; id++) {
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        cut(lane, id);
        run(lane, 50);
    }
    assert_int_equal(append(lane, EXACT), RECORD_SINK_FULL);
    record_sink_complete(lane->records, 1);
    run(lane, 50);
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    cut(lane, POOL + 1);
    /* Checkpoint 3 names a1 and a2 but not a0, checkpoint 1 does: the first client took b0. */
    assert_string_equal(prepared(lane), "job-b0 job-a1 job-a2");
}

static void test_failed_when_the_pool_is_used_up_then_the_last_goes_on(void **state)
{
    struct lane *lane = *state;
    for (uint64_t id = 1; id <= POOL; id++) {
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        cut(lane, id);
        run(lane, 50);
    }
    record_sink_failed(lane->records, 1); /* later cuts name it: it stays as it is */
    assert_int_equal(append(lane, EXACT), RECORD_SINK_FULL);
    record_sink_failed(lane->records, 2);
    record_sink_failed(lane->records, 3);
    for (uint64_t id = POOL + 1; id < POOL + 50; id++) { /* and so for ever */
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        cut(lane, id);
        assert_string_equal(prepared(lane), "job-a0 job-a1 job-a2");
        run(lane, 20);
        assert_true(record_sink_is_settled(lane->records, id));
        record_sink_failed(lane->records, id);
    }
    assert_int_equal(ends(lane), 0);
    cut(lane, 100);
    run(lane, 20);
    record_sink_complete(lane->records, 100);
    run(lane, 50);
    assert_int_equal(ends(lane), POOL);
}

static void test_failed_when_told_before_its_cut_then_nothing_is_cut_off(void **state)
{
    struct lane *lane = *state;
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    record_sink_failed(lane->records, 4);
    cut(lane, 4);
    assert_string_equal(prepared(lane), "");
    assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
    cut(lane, 5);
    assert_string_equal(prepared(lane), "job-a0");
}

static void test_ids_when_checkpoints_are_calm_then_the_same_go_round(void **state)
{
    struct lane *lane = *state;
    char before[64] = "";
    for (uint64_t id = 1; id < 30; id++) {
        assert_int_equal(append(lane, EXACT), RECORD_SINK_OK);
        run(lane, 20);
        cut(lane, id);
        assert_null(strstr(prepared(lane), "-b"));
        /* The newest durable checkpoint names the one before. */
        assert_string_not_equal(prepared(lane), before);
        (void)snprintf(before, sizeof(before), "%s", prepared(lane));
        run(lane, 20);
        assert_true(record_sink_is_settled(lane->records, id));
        record_sink_complete(lane->records, id);
        run(lane, 20);
    }
    assert_int_equal(ends(lane), 29);
    assert_int_equal(peer_count(lane->peer, KAFKA_API_INIT_PRODUCER_ID), 2 * POOL);
}

static void test_recover_when_prepared_then_committed_and_the_other_id_taken(void **state)
{
    struct lane *lane = *state;
    struct error error = {0};
    const struct facts_transaction facts[] = {
        {"job-a1", 5, 6, 0, FACTS_TRANSACTION_POOLED},
        {"job-b1", -1, -1, 0, FACTS_TRANSACTION_POOLED},
        {"job-a1", 5, 6, 0, FACTS_TRANSACTION_PREPARED},
        {"gone-b4", 7, 8, 0, FACTS_TRANSACTION_PREPARED},
        {"gone-b4", 7, 8, 0, FACTS_TRANSACTION_POOLED},
        {"gone-a5", 9, 9, 0, FACTS_TRANSACTION_POOLED},
        {"gone-a5", 9, 9, 0, FACTS_TRANSACTION_POOLED},
    };
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, facts, COUNT_OF(facts), &error), 0);
    lane->peer->is_mute[KAFKA_API_END_TXN] = true;
    run(lane, 200);
    assert_int_equal(append(lane, EXACT), RECORD_SINK_FULL);
    cut(lane, 9);
    assert_false(record_sink_is_settled(lane->records, 9));
    assert_false(record_sink_flushed(lane->records));
    lane->peer->is_mute[KAFKA_API_END_TXN] = false;
    peer_cut_off(lane->peer);
    run(lane, 1000);
    assert_true(record_sink_is_settled(lane->records, 9));
    assert_true(record_sink_flushed(lane->records));
    uint32_t taken[2] = {0};
    for (uint32_t i = 0; i < lane->peer->asked_count; i++) {
        const struct peer_asked *asked = &lane->peer->asked[i];
        if (asked->api == KAFKA_API_INIT_PRODUCER_ID) {
            assert_memory_not_equal(asked->body + 1, "job-a1", 6);
            assert_memory_not_equal(asked->body + 1, "gone-b4", 7);
            taken[0] += memcmp(asked->body + 1, "job-b1", 6) == 0;
            taken[1] += memcmp(asked->body + 1, "gone-a5", 7) == 0;
        }
    }
    assert_int_equal(taken[0], 1);
    assert_int_equal(taken[1], 1);
    cut(lane, 10);
    assert_string_equal(lane->facts[2].transactional_id, "job-a1");
    assert_int_equal(lane->facts[2].producer_id, -1);
    assert_int_equal(lane->facts[3].producer_id, PEER_PRODUCER_ID); /* b1 is in use */
}

static void test_recover_when_a_transaction_is_gone_then_the_lane_fails(void **state)
{
    struct lane *lane = *state;
    struct error error = {0};
    int16_t code = 0;
    const struct facts_transaction facts[] = {{"job-a1", 5, 6, 0, FACTS_TRANSACTION_PREPARED}};
    peer_answer_next(lane->peer, KAFKA_API_END_TXN, 47);
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, facts, 1, &error), 0);
    run(lane, 500);
    assert_true(sink_kafka_has_failed(lane->sink, &code));
    assert_int_equal(code, 47);
    cut(lane, 1);
    assert_false(record_sink_is_settled(lane->records, 1));
    assert_int_equal(append(lane, EXACT), RECORD_SINK_FULL);
    struct kafka_event event = {0};
    while (event.code != KAFKA_EVENT_TRANSACTION_LOST) {
        assert_true(kafka_client_event(lane->clients[0], &event));
    }
    assert_non_null(strstr(event.text, "job-a1"));
}

static void test_recover_when_several_lanes_then_each_has_a_share(void **state)
{
    struct lane *lanes[] = {make_lane("job-0"), make_lane("job-1")};
    struct sink_kafka *sinks[] = {lanes[0]->sink, lanes[1]->sink};
    struct facts_transaction facts[10];
    struct error error = {0};
    memset(facts, 0, sizeof(facts));
    for (uint32_t i = 0; i < COUNT_OF(facts); i++) {
        facts[i].state = FACTS_TRANSACTION_PREPARED;
        (void)snprintf(facts[i].transactional_id, FACTS_ID_BYTES, "job-%u-a0", i);
    }
    assert_int_equal(sink_kafka_recover(sinks, 2, facts, COUNT_OF(facts), &error), 0);
    run(lanes[0], 300);
    run(lanes[1], 300);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ends(lanes[i]), 5);
        assert_true(sink_kafka_is_recovered(sinks[i]));
        assert_int_equal(append(lanes[i], EXACT), RECORD_SINK_OK);
        cut(lanes[i], 1);
        assert_string_equal(prepared(lanes[i]), i == 0 ? "job-0-b0" : "job-1-b0");
        free_lane(lanes[i]);
    }
}

static void test_recover_when_facts_contradict_then_refused(void **state)
{
    struct lane *lane = *state;
    struct error error = {0};
    struct facts_transaction facts[] = {
        {"job-a1", 5, 6, 0, FACTS_TRANSACTION_PREPARED},
        {"job-b1", 5, 6, 0, FACTS_TRANSACTION_PREPARED},
    };
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, facts, 2, &error), -EINVAL);
    assert_non_null(strstr(error.text, "job-b1"));
    facts[1].transactional_id[0] = 0;
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, facts, 2, &error), -EINVAL);
    facts[0].producer_id = -1;
    assert_int_equal(sink_kafka_recover(&lane->sink, 1, facts, 1, &error), -EINVAL);
    facts[0].producer_id = 1;
    assert_int_equal(sink_kafka_recover(NULL, 0, facts, 1, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "job-a1"));
    assert_int_equal(sink_kafka_recover(NULL, 0, facts, 0, &error), 0);
}

static void test_create_when_the_pool_is_wrong_then_says_so(void **state)
{
    struct lane *lane = *state;
    struct sink_kafka *sink;
    struct error error = {0};
    static const struct sink_kafka_topic topic = {"exact", true};
    struct sink_kafka_config config = {.client = lane->clients[POOL],
                                       .topics = &topic,
                                       .topic_count = 1,
                                       .pool = lane->clients,
                                       .pool_count = POOL - 1,
                                       .transactional_id = "x"};
    assert_int_equal(sink_kafka_create(&config, &sink, &error), -EINVAL);
    assert_non_null(strstr(error.text, "3 to 8"));
    config.pool_count = 0;
    assert_int_equal(sink_kafka_create(&config, &sink, &error), -EINVAL);
    assert_non_null(strstr(error.text, "without a pool"));
    config.pool_count = POOL;
    config.transactional_id = "";
    assert_int_equal(sink_kafka_create(&config, &sink, &error), -EINVAL);
}

#define WITH_FRESH(test) cmocka_unit_test_setup_teardown(test, make_fresh, free_state)
#define WITH_OPEN(test)  cmocka_unit_test_setup_teardown(test, make_open, free_state)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FRESH(test_append_when_not_recovered_then_only_plain),
        WITH_OPEN(test_recover_when_nothing_is_stored_then_both_ids_of_each_are_taken_over),
        WITH_OPEN(test_cut_when_nothing_was_written_then_nothing_is_prepared),
        WITH_OPEN(test_checkpoint_when_complete_then_committed_as_named),
        WITH_OPEN(test_settled_when_a_plain_sink_has_failed_then_never),
        WITH_OPEN(test_settled_when_plain_records_follow_then_not_waited_for),
        WITH_OPEN(test_settled_when_exact_records_follow_then_not_waited_for),
        WITH_OPEN(test_cut_when_records_before_it_are_not_answered_then_those_behind_wait),
        WITH_OPEN(test_id_when_a_request_may_come_late_then_started_anew_once_free),
        WITH_OPEN(test_complete_when_older_ones_never_were_then_all_are_committed),
        WITH_OPEN(test_append_when_the_pool_is_used_up_then_full_until_complete),
        WITH_OPEN(test_failed_when_the_pool_is_used_up_then_the_last_goes_on),
        WITH_OPEN(test_failed_when_told_before_its_cut_then_nothing_is_cut_off),
        WITH_OPEN(test_ids_when_checkpoints_are_calm_then_the_same_go_round),
        WITH_FRESH(test_recover_when_prepared_then_committed_and_the_other_id_taken),
        WITH_FRESH(test_recover_when_a_transaction_is_gone_then_the_lane_fails),
        cmocka_unit_test(test_recover_when_several_lanes_then_each_has_a_share),
        WITH_FRESH(test_recover_when_facts_contradict_then_refused),
        WITH_FRESH(test_create_when_the_pool_is_wrong_then_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
