/* SPDX-License-Identifier: Apache-2.0 */
/* See transaction.h. What is to be asked next follows from the state alone, so a lost answer is
 * cured by asking again:
 *
 *     coordinator unknown                    FindCoordinator, any broker
 *     STARTING, RESOLVING an open one        InitProducerId
 *     OPEN, a partition waits to be added    AddPartitionsToTxn
 *     COMMITTING, ABORTING, all answered     EndTxn
 *     RESOLVING a prepared one               EndTxn with the stored producer id and epoch
 *
 * An EndTxn whose answer was lost may have been carried out; the coordinator answers the same
 * question again with success as long as nothing else was begun on the id. */
#include "dataplane/kafka/transaction.h"

#include "dataplane/kafka/error_code.h"

/* The coordinator is still writing markers: soon over, so not the doubling back-off. */
#define CONCURRENT_WAIT_MS 10

void kafka_transaction_init(struct kafka_transaction *transaction, struct kafka_core *core,
                            struct kafka_produce *produce)
{
    ASSERT(core != NULL);
    ASSERT(produce != NULL);
    *transaction = (struct kafka_transaction){.core = core,
                                              .produce = produce,
                                              .producer_id = -1,
                                              .producer_epoch = -1,
                                              .coordinator = -1,
                                              .request_on = KAFKA_NO_CONNECTION};
}

static void take_id(struct kafka_transaction *transaction, const char *id)
{
    const size_t bytes = strnlen(id, KAFKA_TRANSACTIONAL_ID_BYTES);
    ASSERT(bytes > 0 && bytes < KAFKA_TRANSACTIONAL_ID_BYTES);
    ASSERT(transaction->state == KAFKA_TRANSACTION_OFF ||
           transaction->state == KAFKA_TRANSACTION_READY);
    ASSERT(transaction->request_on == KAFKA_NO_CONNECTION);
    memcpy(transaction->id, id, bytes + 1);
    transaction->coordinator = -1;
    transaction->producer_id = -1;
    transaction->producer_epoch = -1;
    transaction->fail_count = 0;
    transaction->retry_at_ns = 0;
}

void kafka_transaction_start(struct kafka_transaction *transaction, const char *id)
{
    take_id(transaction, id);
    transaction->state = KAFKA_TRANSACTION_STARTING;
}

void kafka_transaction_resolve(struct kafka_transaction *transaction,
                               const struct kafka_transaction_claim *claim)
{
    ASSERT(transaction->state == KAFKA_TRANSACTION_OFF);
    take_id(transaction, claim->transactional_id);
    transaction->state = KAFKA_TRANSACTION_RESOLVING;
    transaction->is_commit = claim->is_prepared;
    if (claim->is_prepared) {
        transaction->producer_id = claim->producer_id;
        transaction->producer_epoch = claim->producer_epoch;
    }
}

bool kafka_transaction_begin(struct kafka_transaction *transaction)
{
    ASSERT(transaction != NULL);
    if (transaction->state != KAFKA_TRANSACTION_READY) {
        return false;
    }
    ASSERT(transaction->produce->pending_count == 0);
    ASSERT(!transaction->has_partitions);
    transaction->state = KAFKA_TRANSACTION_OPEN;
    transaction->core->counters.transactions_begun++;
    return true;
}

void kafka_transaction_end(struct kafka_transaction *transaction, bool is_commit)
{
    ASSERT(transaction != NULL);
    if (transaction->state != KAFKA_TRANSACTION_OPEN) {
        ASSERT(transaction->state == KAFKA_TRANSACTION_FAILED);
        return;
    }
    transaction->state = is_commit ? KAFKA_TRANSACTION_COMMITTING : KAFKA_TRANSACTION_ABORTING;
}

static struct kafka_event event_of(const struct kafka_transaction *transaction,
                                   enum kafka_event_code code, int16_t error_code)
{
    ASSERT(transaction->core != NULL);
    return (struct kafka_event){.code = code,
                                .topic_index = -1,
                                .partition = -1,
                                .error_code = error_code,
                                .at_ns = transaction->now_ns};
}

/* For good. What is prepared and cannot be committed is lost to its readers: it has a name of its
 * own. */
static void fail(struct kafka_transaction *transaction, int16_t code)
{
    ASSERT(transaction->state != KAFKA_TRANSACTION_FAILED);
    const bool is_lost =
        transaction->state == KAFKA_TRANSACTION_COMMITTING ||
        (transaction->state == KAFKA_TRANSACTION_RESOLVING && transaction->is_commit);
    struct kafka_event event = event_of(
        transaction, is_lost ? KAFKA_EVENT_TRANSACTION_LOST : KAFKA_EVENT_TRANSACTION_FAILED, code);
    kafka_events_push(&transaction->core->events, &event,
                      "transactional id %.90s, producer %lld epoch %d: %s: %s", transaction->id,
                      (long long)transaction->producer_id, transaction->producer_epoch,
                      is_lost ? "its transaction cannot be committed" : "it can write no more",
                      kafka_error_name(code));
    transaction->state = KAFKA_TRANSACTION_FAILED;
    transaction->error_code = code;
    transaction->produce->state = KAFKA_PRODUCER_FENCED;
}

static bool wants_adding(const struct kafka_transaction *transaction)
{
    const struct kafka_produce *produce = transaction->produce;
    if (produce->unsent_count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        if (kafka_produce_wants_adding(&produce->sinks[i])) {
            return true;
        }
    }
    return false;
}

/* The transaction is over and the coordinator knows it. */
static void ended(struct kafka_transaction *transaction)
{
    struct kafka_counters *counters = &transaction->core->counters;
    struct kafka_produce *produce = transaction->produce;
    ASSERT(produce->pending_count == 0);
    if (transaction->state == KAFKA_TRANSACTION_COMMITTING) {
        counters->transactions_committed++;
    } else {
        counters->transactions_aborted++;
    }
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        produce->sinks[i].is_added = false;
    }
    transaction->has_partitions = false;
    transaction->state = KAFKA_TRANSACTION_READY;
}

/* What the state asks for; KAFKA_API_API_VERSIONS stands for nothing. */
static enum kafka_api next_request(struct kafka_transaction *transaction)
{
    switch (transaction->state) {
    case KAFKA_TRANSACTION_STARTING:
        return KAFKA_API_INIT_PRODUCER_ID;
    case KAFKA_TRANSACTION_RESOLVING:
        return transaction->is_commit ? KAFKA_API_END_TXN : KAFKA_API_INIT_PRODUCER_ID;
    case KAFKA_TRANSACTION_OPEN:
    case KAFKA_TRANSACTION_COMMITTING:
    case KAFKA_TRANSACTION_ABORTING:
        if (wants_adding(transaction)) {
            return KAFKA_API_ADD_PARTITIONS_TO_TXN;
        }
        if (transaction->state == KAFKA_TRANSACTION_OPEN ||
            transaction->produce->pending_count > 0) {
            return KAFKA_API_API_VERSIONS;
        }
        if (!transaction->has_partitions) {
            ended(transaction);
            return KAFKA_API_API_VERSIONS;
        }
        return KAFKA_API_END_TXN;
    default:
        return KAFKA_API_API_VERSIONS;
    }
}

static int16_t version_of(enum kafka_api api)
{
    switch (api) {
    case KAFKA_API_FIND_COORDINATOR:
        return KAFKA_FIND_COORDINATOR_VERSION;
    case KAFKA_API_INIT_PRODUCER_ID:
        return KAFKA_INIT_VERSION;
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
        return KAFKA_ADD_PARTITIONS_VERSION;
    default:
        ASSERT(api == KAFKA_API_END_TXN);
        return KAFKA_END_TXN_VERSION;
    }
}

static bool send(struct kafka_transaction *transaction, struct kafka_connection *connection,
                 enum kafka_api api)
{
    const struct kafka_config *config = &transaction->core->config;
    const int16_t version = version_of(api);
    if (!kafka_connection_speaks(connection, api, version)) {
        kafka_connection_fail(connection, "the broker lacks a transaction API that is needed");
        return false;
    }
    struct kafka_writer writer = kafka_connection_begin(connection, api, version);
    switch (api) {
    case KAFKA_API_FIND_COORDINATOR:
        kafka_write_find_coordinator(&writer, transaction->id);
        break;
    case KAFKA_API_INIT_PRODUCER_ID:
        kafka_write_init_transaction(&writer, transaction->id, config->transaction_timeout_ms);
        break;
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
        transaction->has_partitions = true; /* from here on the coordinator may know of it */
        kafka_write_add_partitions(&writer, transaction);
        break;
    default:
        kafka_write_end_transaction(&writer, transaction,
                                    transaction->state != KAFKA_TRANSACTION_ABORTING);
        break;
    }
    if (!kafka_connection_submit(connection, &writer, 0, config->request_timeout_ms,
                                 transaction->now_ns)) {
        return false;
    }
    transaction->request_on = kafka_core_index(transaction->core, connection);
    return true;
}

/* One broker after another until one is reached. */
static bool find_coordinator(struct kafka_transaction *transaction)
{
    struct kafka_core *core = transaction->core;
    ASSERT(core->metadata.broker_count >= core->config.bootstrap_count);
    const uint32_t count = core->metadata.broker_count - core->config.bootstrap_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t broker =
            core->config.bootstrap_count + (transaction->ask_cursor + i) % count;
        struct kafka_connection *connection =
            kafka_core_ready(core, broker, KAFKA_ROLE_CONTROL, transaction->now_ns);
        if (connection != NULL) {
            transaction->ask_cursor++;
            return send(transaction, connection, KAFKA_API_FIND_COORDINATOR);
        }
    }
    return false;
}

/* The coordinator is a node; metadata says where it is. */
static struct kafka_connection *coordinator(struct kafka_transaction *transaction)
{
    struct kafka_core *core = transaction->core;
    ASSERT(transaction->coordinator >= 0);
    for (uint32_t i = core->config.bootstrap_count; i < core->metadata.broker_count; i++) {
        if (core->metadata.brokers[i].node_id == transaction->coordinator) {
            return kafka_core_ready(core, i, KAFKA_ROLE_CONTROL, transaction->now_ns);
        }
    }
    kafka_core_want_metadata(core);
    transaction->coordinator = -1;
    transaction->retry_at_ns = kafka_core_retry_at(core, 1, transaction->now_ns);
    return NULL;
}

uint32_t kafka_transaction_poll(struct kafka_transaction *transaction, uint64_t now_ns)
{
    ASSERT(transaction->core != NULL);
    transaction->now_ns = now_ns;
    if (transaction->state == KAFKA_TRANSACTION_OFF ||
        transaction->state == KAFKA_TRANSACTION_FAILED) {
        return 0;
    }
    if (transaction->produce->refused_code != 0) {
        fail(transaction, transaction->produce->refused_code);
        return 1;
    }
    if (transaction->request_on != KAFKA_NO_CONNECTION || now_ns < transaction->retry_at_ns) {
        return 0;
    }
    const enum kafka_api api = next_request(transaction);
    if (api == KAFKA_API_API_VERSIONS) {
        return 0;
    }
    if (transaction->coordinator < 0) {
        return find_coordinator(transaction) ? 1 : 0;
    }
    struct kafka_connection *connection = coordinator(transaction);
    return connection != NULL && send(transaction, connection, api) ? 1 : 0;
}

enum answer {
    ANSWER_DONE = 0,
    ANSWER_AGAIN,
    ANSWER_AGAIN_SOON,
    ANSWER_ELSEWHERE, /* another broker coordinates this id */
    ANSWER_FATAL,
};

/* An epoch that InitProducerId finds outdated is one that another InitProducerId overtook while
 * both ran: asked again, it takes the next one. A code that is not listed is asked again too: all
 * four requests may be repeated. */
static enum answer classify(enum kafka_api api, int16_t code)
{
    switch (code) {
    case KAFKA_ERROR_NONE:
        return ANSWER_DONE;
    case KAFKA_ERROR_CONCURRENT_TRANSACTIONS:
        return ANSWER_AGAIN_SOON;
    case KAFKA_ERROR_COORDINATOR_NOT_AVAILABLE:
    case KAFKA_ERROR_NOT_COORDINATOR:
        return ANSWER_ELSEWHERE;
    case KAFKA_ERROR_INVALID_PRODUCER_EPOCH:
    case KAFKA_ERROR_PRODUCER_FENCED:
        return api == KAFKA_API_INIT_PRODUCER_ID ? ANSWER_AGAIN : ANSWER_FATAL;
    case KAFKA_ERROR_INVALID_TXN_STATE:
    case KAFKA_ERROR_INVALID_PRODUCER_ID_MAPPING:
    case KAFKA_ERROR_INVALID_TRANSACTION_TIMEOUT:
    case KAFKA_ERROR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_TRANSACTIONAL_ID_NOT_FOUND:
    case KAFKA_ERROR_TOPIC_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_CLUSTER_AUTHORIZATION_FAILED:
    case KAFKA_ERROR_INVALID_TOPIC:
    case KAFKA_ERROR_UNSUPPORTED_VERSION:
    case KAFKA_ERROR_UNKNOWN_PRODUCER_ID:
        return ANSWER_FATAL;
    default:
        return ANSWER_AGAIN;
    }
}

static void done(struct kafka_transaction *transaction, enum kafka_api api,
                 const struct kafka_transaction_answer *answer)
{
    transaction->fail_count = 0;
    if (api == KAFKA_API_FIND_COORDINATOR) {
        transaction->coordinator = answer->node_id;
        return;
    }
    switch (transaction->state) {
    case KAFKA_TRANSACTION_RESOLVING:
        transaction->core->counters.transactions_resolved++;
        transaction->state = KAFKA_TRANSACTION_OFF;
        return;
    case KAFKA_TRANSACTION_STARTING:
        ASSERT(api == KAFKA_API_INIT_PRODUCER_ID);
        transaction->producer_id = answer->producer_id;
        transaction->producer_epoch = answer->producer_epoch;
        transaction->state = KAFKA_TRANSACTION_READY;
        transaction->is_tainted = false; /* what is late has a lower epoch */
        kafka_produce_adopt(transaction->produce, transaction->id, answer->producer_id,
                            answer->producer_epoch, transaction->now_ns);
        return;
    default:
        if (api == KAFKA_API_END_TXN) {
            ended(transaction);
        }
        return;
    }
}

/* Told once a run of failures: a coordinator that is away for minutes would fill the ring. */
static void again(struct kafka_transaction *transaction, enum kafka_api api, int16_t code)
{
    transaction->fail_count++;
    if (transaction->fail_count == 1) {
        struct kafka_event event = event_of(transaction, KAFKA_EVENT_REQUEST_REFUSED, code);
        kafka_events_push(&transaction->core->events, &event, "%s for %.100s: %s",
                          kafka_api_name(api), transaction->id, kafka_error_name(code));
    }
    transaction->retry_at_ns =
        kafka_core_retry_at(transaction->core, transaction->fail_count, transaction->now_ns);
    if (kafka_error_wants_metadata(code)) {
        kafka_core_want_metadata(transaction->core);
    }
}

static void act(struct kafka_transaction *transaction, enum kafka_api api,
                const struct kafka_transaction_answer *answer)
{
    const enum answer kind = classify(api, answer->code);
    transaction->core->counters.transaction_errors += kind != ANSWER_DONE;
    switch (kind) {
    case ANSWER_DONE:
        done(transaction, api, answer);
        return;
    case ANSWER_AGAIN_SOON:
        transaction->retry_at_ns =
            transaction->now_ns + CONCURRENT_WAIT_MS * KAFKA_NANOSECONDS_PER_MS;
        return;
    case ANSWER_ELSEWHERE:
        transaction->coordinator = -1;
        again(transaction, api, answer->code);
        return;
    case ANSWER_AGAIN:
        again(transaction, api, answer->code);
        return;
    case ANSWER_FATAL:
        fail(transaction, answer->code);
        return;
    }
}

bool kafka_transaction_take(struct kafka_transaction *transaction, uint32_t connection_index,
                            uint64_t now_ns)
{
    ASSERT(transaction->request_on == connection_index);
    struct kafka_connection *connection = &transaction->core->connections[connection_index];
    const enum kafka_api api = connection->held.api;
    struct kafka_transaction_answer answer;
    transaction->now_ns = now_ns;
    if (!kafka_read_transaction_answer(transaction->produce, api, kafka_connection_body(connection),
                                       &answer)) {
        kafka_connection_fail(connection, "a transaction response that cannot be read");
        return false;
    }
    transaction->request_on = KAFKA_NO_CONNECTION;
    kafka_connection_throttle(connection, answer.throttle_ms, now_ns);
    kafka_connection_done(connection, now_ns);
    if (transaction->state != KAFKA_TRANSACTION_FAILED) {
        act(transaction, api, &answer);
    }
    return true;
}

/* A coordinator that cannot be reached may have moved: it is asked for anew. */
void kafka_transaction_lost(struct kafka_transaction *transaction, uint32_t connection_index)
{
    ASSERT(transaction->core != NULL);
    const uint32_t broker = kafka_core_broker_of(connection_index);
    if (transaction->request_on == connection_index) {
        transaction->request_on = KAFKA_NO_CONNECTION;
        transaction->is_tainted = true;
    }
    if (kafka_core_role_of(connection_index) == KAFKA_ROLE_CONTROL &&
        transaction->core->metadata.brokers[broker].node_id == transaction->coordinator) {
        transaction->coordinator = -1;
    }
}
