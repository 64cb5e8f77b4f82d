/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a start with exactly-once topics: which transactions of earlier runs are committed,
 * which ids are aborted, and which of its two ids each client takes.
 *
 *     prepared in the facts                  EndTxn(commit) with the stored producer id and epoch
 *     pooled, and nowhere prepared           InitProducerId: fences, aborts what is open
 *     own ids that are not taken             the same: a run without facts may have left them
 *     own ids that are taken                 started by their clients, which is the same
 *
 * An id that is prepared is never started here: that would raise its epoch, and if this run ended
 * before its first checkpoint, the next could not tell "committed" from "lost". So each client
 * takes the id of its two that is not prepared. The work is spread over the lanes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/facts.h"
#include "dataplane/sink_kafka_internal.h"

_Static_assert(FACTS_ID_BYTES == KAFKA_TRANSACTIONAL_ID_BYTES, "ids are copied whole");

struct recovery {
    struct sink_kafka *const *sinks;
    uint32_t sink_count;
    const struct facts_transaction *facts;
    uint32_t fact_count;
    struct kafka_transaction_claim *claims;
    uint32_t claim_count;
    uint32_t claims_max;
};

static void make_id(const struct sink_kafka *sink, uint32_t twin, uint32_t slot,
                    char into[KAFKA_TRANSACTIONAL_ID_BYTES])
{
    ASSERT(twin < SLOT_IDS && slot < SINK_KAFKA_POOL_MAX);
    (void)snprintf(into, KAFKA_TRANSACTIONAL_ID_BYTES, "%s-%c%u", sink->transactional_id,
                   (char)('a' + twin), slot);
}

static bool is_prepared(const struct recovery *recovery, const char *id)
{
    for (uint32_t i = 0; i < recovery->fact_count; i++) {
        if (recovery->facts[i].state == FACTS_TRANSACTION_PREPARED &&
            strcmp(recovery->facts[i].transactional_id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* At most one of a slot's ids can be prepared. */
static int choose_ids(const struct recovery *recovery, struct sink_kafka *sink, struct error *error)
{
    ASSERT(sink->pool_count <= SINK_KAFKA_POOL_MAX);
    for (uint32_t i = 0; i < sink->pool_count; i++) {
        struct slot *slot = &sink->slots[i];
        make_id(sink, 0, i, slot->ids[0]);
        make_id(sink, 1, i, slot->ids[1]);
        slot->id = is_prepared(recovery, slot->ids[0]) ? 1 : 0;
        if (is_prepared(recovery, slot->ids[slot->id])) {
            return error_set(error, -EINVAL,
                             "both %.100s and %.100s are prepared: no single checkpoint says that",
                             slot->ids[0], slot->ids[1]);
        }
    }
    return 0;
}

/* Tells whether a client of this run starts the id itself. */
static bool is_started(const struct recovery *recovery, const char *id)
{
    for (uint32_t i = 0; i < recovery->sink_count; i++) {
        const struct sink_kafka *sink = recovery->sinks[i];
        for (uint32_t k = 0; k < sink->pool_count; k++) {
            if (strcmp(sink->slots[k].ids[sink->slots[k].id], id) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void add_claim(struct recovery *recovery, const struct kafka_transaction_claim *claim)
{
    for (uint32_t i = 0; i < recovery->claim_count; i++) {
        if (strcmp(recovery->claims[i].transactional_id, claim->transactional_id) == 0) {
            return;
        }
    }
    ASSERT(recovery->claim_count < recovery->claims_max);
    recovery->claims[recovery->claim_count++] = *claim;
}

static void add_abort(struct recovery *recovery, const char *id)
{
    if (!is_prepared(recovery, id) && !is_started(recovery, id)) {
        struct kafka_transaction_claim claim = {.producer_id = -1, .producer_epoch = -1};
        (void)snprintf(claim.transactional_id, KAFKA_TRANSACTIONAL_ID_BYTES, "%s", id);
        add_claim(recovery, &claim);
    }
}

/* Commits come first: readers wait for them. */
static void add_claims(struct recovery *recovery)
{
    for (uint32_t i = 0; i < recovery->fact_count; i++) {
        const struct facts_transaction *fact = &recovery->facts[i];
        struct kafka_transaction_claim claim = {.producer_id = fact->producer_id,
                                                .producer_epoch = fact->producer_epoch,
                                                .is_prepared = true};
        if (fact->state == FACTS_TRANSACTION_PREPARED) {
            memcpy(claim.transactional_id, fact->transactional_id, FACTS_ID_BYTES);
            add_claim(recovery, &claim);
        }
    }
    for (uint32_t i = 0; i < recovery->fact_count; i++) {
        if (recovery->facts[i].state == FACTS_TRANSACTION_POOLED) {
            add_abort(recovery, recovery->facts[i].transactional_id);
        }
    }
    for (uint32_t i = 0; i < recovery->sink_count; i++) {
        const struct sink_kafka *sink = recovery->sinks[i];
        for (uint32_t k = 0; k < sink->pool_count; k++) {
            add_abort(recovery, sink->slots[k].ids[0]);
            add_abort(recovery, sink->slots[k].ids[1]);
        }
    }
}

/* Every n-th claim to the n-th of the lanes that have clients. */
static int spread_claims(const struct recovery *recovery, struct error *error)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < recovery->sink_count; i++) {
        lanes += recovery->sinks[i]->pool_count > 0;
    }
    uint32_t lane = 0;
    for (uint32_t i = 0; i < recovery->sink_count; i++) {
        struct sink_kafka *sink = recovery->sinks[i];
        if (sink->pool_count == 0) {
            continue;
        }
        ASSERT(sink->claims == NULL && !sink->is_recovered);
        sink->claims = calloc(recovery->claim_count / lanes + 1, sizeof(*sink->claims));
        if (sink->claims == NULL) {
            return error_set(error, -ENOMEM, "out of memory");
        }
        for (uint32_t k = lane; k < recovery->claim_count; k += lanes) {
            sink->claims[sink->claim_count++] = recovery->claims[k];
        }
        sink->is_recovering = true;
        lane++;
    }
    return 0;
}

static int check_facts(const struct recovery *recovery, struct error *error)
{
    uint32_t pools = 0;
    for (uint32_t i = 0; i < recovery->sink_count; i++) {
        pools += recovery->sinks[i]->pool_count;
    }
    for (uint32_t i = 0; i < recovery->fact_count; i++) {
        const struct facts_transaction *fact = &recovery->facts[i];
        const bool is_commit = fact->state == FACTS_TRANSACTION_PREPARED;
        if (fact->transactional_id[0] == 0 ||
            memchr(fact->transactional_id, 0, FACTS_ID_BYTES) == NULL ||
            (is_commit && (fact->producer_id < 0 || fact->producer_epoch < 0))) {
            return error_set(error, -EINVAL, "a transaction of the checkpoint makes no sense");
        }
        if (is_commit && pools == 0) {
            return error_set(error, -ENOTSUP,
                             "transaction %.100s waits to be committed, but no topic is written "
                             "exactly once any more",
                             fact->transactional_id);
        }
    }
    return 0;
}

int sink_kafka_recover(struct sink_kafka *const *sinks, uint32_t sink_count,
                       const struct facts_transaction *facts, uint32_t fact_count,
                       struct error *error)
{
    struct recovery recovery = {.sinks = sinks,
                                .sink_count = sink_count,
                                .facts = facts,
                                .fact_count = fact_count,
                                .claims_max = fact_count};
    int status = check_facts(&recovery, error);
    for (uint32_t i = 0; i < sink_count && status == 0; i++) {
        recovery.claims_max += sinks[i]->pool_count * SLOT_IDS;
        status = choose_ids(&recovery, sinks[i], error);
    }
    if (status != 0 || recovery.claims_max == 0) {
        return status;
    }
    recovery.claims = calloc(recovery.claims_max, sizeof(*recovery.claims));
    if (recovery.claims == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    add_claims(&recovery);
    status = spread_claims(&recovery, error);
    free(recovery.claims);
    return status;
}
