/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of the Kafka sink: cuts of the plain client, transactions of the pool. See
 * sink_kafka.h for a transaction's way and sink_kafka_recover.c for a start.
 *
 *     cut 7      a1 is prepared; facts: a1 prepared; a0, b0, a1, b1, ... pooled
 *     complete 7 a1: EndTxn -> committed
 *     cut 8      a2 is prepared; facts do not name a1 any more
 *     complete 8 a2: EndTxn; a1 is free: no restart will begin with checkpoint 7
 *                when that comes too late: b1 is started in its place, and is free at once
 *
 * A failed checkpoint's transactions stay prepared and are committed with the next complete one.
 * When failures have used the pool up, the last one is opened again: no checkpoint counts on it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/facts.h"
#include "dataplane/sink_kafka_internal.h"

#define REST_POLLS 16 /* a client without work is looked at every so many polls */

int sink_kafka_make_pool(struct sink_kafka *sink, const struct sink_kafka_config *config,
                         struct error *error)
{
    ASSERT(sink->targets == NULL);
    sink->current = INDEX_NONE;
    sink->is_recovered = config->pool_count == 0;
    const size_t sinks_max = kafka_client_sinks_max(sink->client);
    const size_t bytes = SINK_KAFKA_CUTS_MAX * sinks_max * sizeof(*sink->targets);
    sink->targets = malloc(bytes);
    if (sink->targets == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    memset(sink->targets, 1, bytes); /* touched here: the lane must not meet a fresh page */
    for (size_t i = 0; i < SINK_KAFKA_CUTS_MAX; i++) {
        sink->cuts[i].targets = sink->targets + i * sinks_max;
    }
    if (config->pool_count == 0) {
        return 0;
    }
    if (config->pool_count < SINK_KAFKA_POOL_MIN || config->pool_count > SINK_KAFKA_POOL_MAX) {
        return error_set(error, -EINVAL, "a pool of %u transactional clients; it must be %u to %u",
                         config->pool_count, SINK_KAFKA_POOL_MIN, SINK_KAFKA_POOL_MAX);
    }
    const size_t id_bytes = strnlen(config->transactional_id, SINK_KAFKA_ID_BYTES);
    if (id_bytes == 0 || id_bytes == SINK_KAFKA_ID_BYTES) {
        return error_set(error, -EINVAL, "a transactional id must have 1 to %u bytes",
                         SINK_KAFKA_ID_BYTES - 1);
    }
    memcpy(sink->transactional_id, config->transactional_id, id_bytes + 1);
    sink->pool_count = config->pool_count;
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        sink->slots[i].client = config->pool[i];
    }
    return 0;
}

void sink_kafka_free_pool(struct sink_kafka *sink)
{
    free(sink->targets);
    free(sink->claims);
}

struct kafka_client *sink_kafka_current(struct sink_kafka *sink)
{
    ASSERT(sink->current == INDEX_NONE || sink->current < sink->pool_count);
    if (sink->current != INDEX_NONE) {
        return sink->slots[sink->current].client;
    }
    for (uint32_t i = 0; i < sink->pool_count && sink->is_recovered; i++) {
        struct slot *slot = &sink->slots[i];
        if (slot->state == SLOT_FREE && kafka_client_transaction_begin(slot->client)) {
            slot->state = SLOT_CURRENT;
            slot->is_used = false;
            sink->current = i;
            return slot->client;
        }
    }
    return NULL;
}

static enum kafka_transaction_state state_of(const struct slot *slot)
{
    struct kafka_transaction_status status;
    kafka_client_transaction_status(slot->client, &status);
    return status.state;
}

/* A client that only waits for its turn. */
static bool is_at_rest(const struct slot *slot)
{
    return (slot->state == SLOT_FREE || slot->state == SLOT_COMMITTED) &&
           state_of(slot) == KAFKA_TRANSACTION_READY;
}

/* Ends what earlier runs left, as many at a time as there are clients; then every client takes its
 * own id over. */
static void recover(struct sink_kafka *sink)
{
    bool is_busy = false;
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        const enum kafka_transaction_state state = state_of(&sink->slots[i]);
        if (state == KAFKA_TRANSACTION_OFF && sink->claim_next < sink->claim_count) {
            kafka_client_transaction_resolve(sink->slots[i].client,
                                             &sink->claims[sink->claim_next++]);
            is_busy = true;
        }
        is_busy |= state != KAFKA_TRANSACTION_OFF; /* a failed one is busy for ever */
    }
    if (is_busy) {
        return;
    }
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        const struct slot *slot = &sink->slots[i];
        kafka_client_transaction_start(slot->client, slot->ids[slot->id]);
    }
    sink->is_recovering = false;
    sink->is_recovered = true;
}

/* Only a free slot may be started anew: of others a checkpoint knows the epoch. */
static void renew(struct slot *slot)
{
    struct kafka_transaction_status status;
    ASSERT(slot->state == SLOT_FREE);
    kafka_client_transaction_status(slot->client, &status);
    if (status.state == KAFKA_TRANSACTION_READY && status.is_tainted) {
        kafka_client_transaction_start(slot->client, slot->ids[slot->id]);
    }
}

/* Moves committed slots on. One is wanted free beside the current one, for a cut may come any
 * moment. Where a checkpoint under way will free one, that is waited for while there is a current
 * one; else a client takes its other id. */
static void free_slots(struct sink_kafka *sink)
{
    struct slot *committed = NULL;
    bool has_free = false;
    bool is_coming = false;
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        if (slot->state == SLOT_COMMITTED && slot->listed_id < sink->complete_id) {
            slot->state = SLOT_FREE;
            renew(slot);
        }
        has_free |= slot->state == SLOT_FREE;
        if (slot->state == SLOT_COMMITTED) {
            committed = slot;
            is_coming |= slot->listed_id < sink->cut_id;
        }
    }
    is_coming = is_coming && sink->current != INDEX_NONE && sink->complete_id < sink->cut_id;
    if (committed != NULL && !has_free && !is_coming) {
        committed->id = (committed->id + 1) % SLOT_IDS;
        committed->listed_id = 0;
        committed->state = SLOT_FREE;
        kafka_client_transaction_start(committed->client, committed->ids[committed->id]);
    }
}

/* Two clients have no order between them, but a partition must have: the records behind a cut wait
 * until those before it are answered. */
static void keep_order(struct sink_kafka *sink)
{
    struct slot *oldest = NULL;
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        const bool is_waiting =
            slot->state == SLOT_PREPARED && kafka_client_pending(slot->client) > 0;
        if (is_waiting && (oldest == NULL || slot->cut_id < oldest->cut_id)) {
            oldest = slot;
        }
    }
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        kafka_client_hold(slot->client, oldest != NULL && slot != oldest);
    }
}

uint32_t sink_kafka_poll_pool(struct sink_kafka *sink, uint64_t now_ns)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    uint32_t work = 0;
    const bool skip = sink->rest++ % REST_POLLS != 0;
    if (sink->is_recovering) {
        recover(sink);
    }
    keep_order(sink);
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        if (skip && is_at_rest(slot)) {
            continue;
        }
        work += kafka_client_poll(slot->client, now_ns);
        if (slot->state == SLOT_COMMITTING && state_of(slot) == KAFKA_TRANSACTION_READY) {
            slot->state = SLOT_COMMITTED;
        }
    }
    free_slots(sink);
    return work;
}

bool sink_kafka_pool_is_flushed(const struct sink_kafka *sink)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        if (sink->slots[i].state == SLOT_COMMITTING ||
            kafka_client_pending(sink->slots[i].client) > 0) {
            return false;
        }
    }
    return sink->is_recovered || !sink->is_recovering;
}

bool sink_kafka_is_recovered(const struct sink_kafka *sink)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    return sink->is_recovered;
}

static void put_fact(const struct slot *slot, uint32_t id, enum facts_transaction_state state,
                     struct facts_writer *facts)
{
    struct kafka_transaction_status status;
    struct facts_item item = {.kind = FACTS_TRANSACTION};
    kafka_client_transaction_status(slot->client, &status);
    (void)snprintf(item.transaction.transactional_id, FACTS_ID_BYTES, "%s", slot->ids[id]);
    item.transaction.producer_id = id == slot->id ? status.producer_id : -1;
    item.transaction.producer_epoch = id == slot->id ? status.producer_epoch : -1;
    item.transaction.state = (uint32_t)state;
    facts_put(facts, &item);
}

/* Where the plain client stands. A full ring forgets its oldest cut: the next one asks for more. */
static void note_cut(struct sink_kafka *sink, uint64_t id)
{
    if (sink->cuts_in - sink->cuts_out == SINK_KAFKA_CUTS_MAX) {
        sink->cuts_out++;
    }
    struct cut *cut = &sink->cuts[sink->cuts_in++ % SINK_KAFKA_CUTS_MAX];
    cut->id = id;
    cut->met_count = 0;
    cut->target_count =
        kafka_client_pending(sink->client) == 0 ? 0 : kafka_client_sink_count(sink->client);
    for (uint32_t i = 0; i < cut->target_count; i++) {
        uint64_t answered;
        kafka_client_sink_progress(sink->client, i, &cut->targets[i], &answered);
    }
}

void sink_kafka_cut(struct record_sink *self, uint64_t id, struct facts_writer *facts)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    ASSERT(facts != NULL);
    ASSERT(sink->cut_id < id);
    sink->cut_id = id;
    note_cut(sink, id);
    if (sink->current != INDEX_NONE && sink->slots[sink->current].is_used && id > sink->failed_id) {
        sink->slots[sink->current].state = SLOT_PREPARED;
        sink->slots[sink->current].cut_id = id;
        sink->current = INDEX_NONE;
    }
    const bool has_ids = sink->is_recovering || sink->is_recovered;
    for (uint32_t i = 0; i < sink->pool_count && has_ids; i++) {
        struct slot *slot = &sink->slots[i];
        if (slot->state == SLOT_PREPARED || slot->state == SLOT_COMMITTING) {
            slot->listed_id = id;
            put_fact(slot, slot->id, FACTS_TRANSACTION_PREPARED, facts);
        }
        put_fact(slot, 0, FACTS_TRANSACTION_POOLED, facts);
        put_fact(slot, 1, FACTS_TRANSACTION_POOLED, facts);
    }
}

static bool plain_is_settled(struct sink_kafka *sink, uint64_t id)
{
    uint64_t at = sink->cuts_out;
    while (at != sink->cuts_in && sink->cuts[at % SINK_KAFKA_CUTS_MAX].id < id) {
        at++;
    }
    if (at == sink->cuts_in) {
        return kafka_client_pending(sink->client) == 0;
    }
    struct cut *cut = &sink->cuts[at % SINK_KAFKA_CUTS_MAX];
    while (cut->met_count < cut->target_count) {
        uint64_t appended;
        uint64_t answered;
        kafka_client_sink_progress(sink->client, cut->met_count, &appended, &answered);
        if (answered < cut->targets[cut->met_count]) {
            return false;
        }
        cut->met_count++;
    }
    return true;
}

/* Nothing is settled before recovery is done: until then facts lack what earlier runs left. */
bool sink_kafka_is_settled(struct record_sink *self, uint64_t id)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    int16_t code;
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    /* The records of a failed partition count as lost: to go on behind them would leave a gap. */
    if (!sink->is_recovered || kafka_client_has_failed(sink->client, &code) ||
        !plain_is_settled(sink, id)) {
        return false;
    }
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        const struct slot *slot = &sink->slots[i];
        const bool is_before = slot->state == SLOT_PREPARED && slot->cut_id <= id;
        if (is_before && (kafka_client_pending(slot->client) > 0 ||
                          state_of(slot) == KAFKA_TRANSACTION_FAILED)) {
            return false;
        }
    }
    return true;
}

void sink_kafka_complete(struct record_sink *self, uint64_t id)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        if (slot->state == SLOT_PREPARED && slot->cut_id <= id) {
            kafka_client_transaction_end(slot->client, true);
            slot->state = SLOT_COMMITTING;
        }
    }
    sink->complete_id = id;
    while (sink->cuts_out != sink->cuts_in &&
           sink->cuts[sink->cuts_out % SINK_KAFKA_CUTS_MAX].id <= id) {
        sink->cuts_out++;
    }
}

/* Only what no other cut names may take records again. Told before its cut, a failed checkpoint
 * does not cut anything off. */
void sink_kafka_failed(struct record_sink *self, uint64_t id)
{
    struct sink_kafka *sink = (struct sink_kafka *)self;
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    sink->failed_id = id > sink->failed_id ? id : sink->failed_id;
    for (uint32_t i = 0; i < sink->pool_count && sink->current == INDEX_NONE; i++) {
        struct slot *slot = &sink->slots[i];
        if (slot->state == SLOT_PREPARED && slot->cut_id == id && slot->listed_id == id) {
            slot->state = SLOT_CURRENT;
            sink->current = i;
        }
    }
}
