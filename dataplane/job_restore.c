/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a job's clocks and places back. The facts of all old lanes are read into one list; each
 * node takes what stands under its identity: of times the least, for a time that was reached on one
 * lane only is not reached for rows that come from the others.
 *
 * Every stage tells the stages behind it what it had told them before, so that none of them waits
 * for a time that is long past; those hear nothing new and do nothing. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/job_internal.h"
#include "state/restore.h"

/* What all lanes said. */
struct recalled {
    struct facts_partition *partitions;
    uint32_t partition_count;
    uint32_t partition_capacity;
    struct facts_source sources[PLAN_NODES_MAX];
    uint32_t source_count;
    struct facts_node nodes[PLAN_NODES_MAX];
    uint32_t node_count;
    bool has_no_memory;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool recall_partition(struct recalled *recalled, const struct facts_partition *partition)
{
    ASSERT(recalled->partition_count <= recalled->partition_capacity);
    if (recalled->partition_count == recalled->partition_capacity) {
        const uint32_t capacity = 2 * recalled->partition_capacity + 64;
        struct facts_partition *larger =
            realloc(recalled->partitions, capacity * sizeof(*recalled->partitions));
        recalled->has_no_memory = larger == NULL;
        if (larger == NULL) {
            return false;
        }
        recalled->partitions = larger;
        recalled->partition_capacity = capacity;
    }
    recalled->partitions[recalled->partition_count++] = *partition;
    return true;
}

static bool recall_source(struct recalled *recalled, const struct facts_source *source)
{
    for (uint32_t i = 0; i < recalled->source_count; i++) {
        struct facts_source *known = &recalled->sources[i];
        if (known->identity == source->identity) {
            known->watermark_ms = least(known->watermark_ms, source->watermark_ms);
            known->next_emit_ms = least(known->next_emit_ms, source->next_emit_ms);
            known->processing_ms = least(known->processing_ms, source->processing_ms);
            known->is_incomplete |= source->is_incomplete;
            return true;
        }
    }
    if (recalled->source_count == COUNT_OF(recalled->sources)) {
        return false;
    }
    recalled->sources[recalled->source_count++] = *source;
    return true;
}

static bool recall_node(struct recalled *recalled, const struct facts_node *node)
{
    for (uint32_t i = 0; i < recalled->node_count; i++) {
        struct facts_node *known = &recalled->nodes[i];
        if (known->identity == node->identity) {
            known->watermark_ms = least(known->watermark_ms, node->watermark_ms);
            known->tick_ms = least(known->tick_ms, node->tick_ms);
            known->mark_ms = least(known->mark_ms, node->mark_ms);
            return true;
        }
    }
    if (recalled->node_count == COUNT_OF(recalled->nodes)) {
        return false;
    }
    recalled->nodes[recalled->node_count++] = *node;
    return true;
}

/* Transactions are the sinks' business. */
static bool recall(void *context, const struct facts_item *item)
{
    struct recalled *recalled = context;
    switch (item->kind) {
    case FACTS_PARTITION:
        return recall_partition(recalled, &item->partition);
    case FACTS_SOURCE:
        return recall_source(recalled, &item->source);
    case FACTS_NODE:
        return recall_node(recalled, &item->node);
    default:
        return true;
    }
}

/* Tells an operator the times of the cut. Whatever they made due was done before it; what waits for
 * a later watermark is a matter of operators with a restore of their own. */
static int restore_operator(struct stage *stage, const struct facts_node *node, struct error *error)
{
    struct operator* operator= stage->operator;
    const struct operator_ops *ops = operator->ops;
    const uint64_t rows_before = output_row_count(stage->output);
    enum operator_verdict verdict = OPERATOR_DONE;
    if (ops->restore != NULL) {
        const struct operator_times times = {
            .watermark_ms = node->watermark_ms,
            .tick_ms = node->tick_ms,
            .mark_ms = node->mark_ms,
        };
        ops->restore(operator, & times);
        return 0;
    }
    if (ops->advance != NULL && node->watermark_ms != WATERMARK_MIN) {
        verdict = ops->advance(operator, node->watermark_ms);
    }
    if (verdict == OPERATOR_DONE && operator_takes_ticks(ops, stage->node) &&
        node->tick_ms != INT64_MIN) {
        verdict = ops->tick(operator, node->tick_ms);
    }
    if (verdict != OPERATOR_DONE || output_row_count(stage->output) != rows_before) {
        return error_set(error, -EBADMSG,
                         "%s has work left to do at the time of the checkpoint: state and times do "
                         "not belong together",
                         stage->node->name);
    }
    return 0;
}

static int restore_stage(struct stage *stage, const struct recalled *recalled, struct error *error)
{
    ASSERT(stage->source == NULL);
    const struct facts_node *node = NULL;
    for (uint32_t i = 0; node == NULL && i < recalled->node_count; i++) {
        node = recalled->nodes[i].identity == stage->node->identity ? &recalled->nodes[i] : NULL;
    }
    if (node == NULL) {
        return 0;
    }
    stage->watermark.value_ms = node->watermark_ms;
    stage->tick_ms = node->tick_ms;
    const int code = stage->operator== NULL ? 0 : restore_operator(stage, node, error);
    if (code == 0 && stage->output != NULL && node->watermark_ms != WATERMARK_MIN) {
        output_control(stage->output, PARCEL_WATERMARK, node->watermark_ms);
    }
    if (code == 0 && stage->output != NULL && node->tick_ms != INT64_MIN) {
        output_control(stage->output, PARCEL_TICK, node->tick_ms);
    }
    return code;
}

/* A source that the checkpoint does not know begins as its table says. */
static int restore_source(struct stage *stage, const struct recalled *recalled,
                          struct facts_partition *own, struct error *error)
{
    ASSERT(stage->source != NULL);
    const uint64_t identity = stage->node->identity;
    struct source_facts facts = {
        .partitions = own,
        .source = {.identity = identity, .watermark_ms = WATERMARK_MIN, .next_emit_ms = INT64_MIN},
    };
    bool is_known = false;
    for (uint32_t i = 0; i < recalled->partition_count; i++) {
        if (recalled->partitions[i].identity == identity) {
            own[facts.partition_count++] = recalled->partitions[i];
        }
    }
    for (uint32_t i = 0; i < recalled->source_count; i++) {
        if (recalled->sources[i].identity == identity) {
            facts.source = recalled->sources[i];
            is_known = true;
        }
    }
    if (facts.partition_count == 0 && !is_known) {
        return 0;
    }
    if (stage->source->ops->restore == NULL) {
        return error_set(error, -ENOTSUP, "%s cannot go on from a checkpoint", stage->node->name);
    }
    return stage->source->ops->restore(stage->source, &facts, error);
}

static int restore_lane(struct job *job, uint32_t number, const struct recalled *recalled,
                        struct error *error)
{
    ASSERT(number < job->config.lane_count);
    const struct job_lane *lane = &job->lanes[number];
    struct facts_partition *own = calloc(recalled->partition_count + 1, sizeof(*own));
    int code = own == NULL ? error_set(error, -ENOMEM, "out of memory for facts") : 0;
    for (uint32_t i = 0; code == 0 && i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        code = stage->source != NULL ? restore_source(stage, recalled, own, error)
                                     : restore_stage(stage, recalled, error);
        if (code != 0 && error != NULL && error->place[0] == 0) {
            memcpy(error->place, stage->node->name, sizeof(stage->node->name));
        }
    }
    free(own);
    return code;
}

int job_restore(struct job *job, const struct span *facts, uint32_t lane_count, struct error *error)
{
    ASSERT(job->config.plan != NULL);
    ASSERT(lane_count == 0 || facts != NULL);
    struct recalled *recalled = calloc(1, sizeof(*recalled));
    int code = recalled == NULL ? error_set(error, -ENOMEM, "out of memory for facts") : 0;
    for (uint32_t i = 0; code == 0 && i < lane_count; i++) {
        code = facts_read(facts[i], recall, recalled, error);
        if (code == -ECANCELED) {
            code = recalled->has_no_memory
                       ? error_set(error, -ENOMEM, "out of memory for facts")
                       : error_set(error, -EBADMSG, "a checkpoint names more than %u nodes",
                                   PLAN_NODES_MAX);
        }
    }
    for (uint32_t i = 0; code == 0 && i < job->config.lane_count; i++) {
        code = restore_lane(job, i, recalled, error);
    }
    if (recalled != NULL) {
        free(recalled->partitions);
    }
    free(recalled);
    return code;
}

/* Facts of the lanes of a checkpoint, copied out of the store. */
struct collected {
    struct span lanes[PLACEMENT_LANES_MAX];
    uint32_t count;
};

static int collect(void *context, uint32_t lane, struct span facts)
{
    struct collected *collected = context;
    if (collected->count == COUNT_OF(collected->lanes)) {
        return -E2BIG;
    }
    (void)lane;
    uint8_t *copy = malloc(facts.bytes + 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, facts.data, facts.bytes);
    collected->lanes[collected->count++] = (struct span){.data = copy, .bytes = facts.bytes};
    return 0;
}

int job_restore_from(struct job *job, struct store *store, uint64_t id, struct error *error)
{
    ASSERT(id != 0);
    struct collected collected = {.count = 0};
    int code = restore_facts(store, id, collect, &collected, error);
    if (code == 0) {
        code = job_restore(job, collected.lanes, collected.count, error);
    } else if (error != NULL && error->text[0] == 0) {
        code = error_set(error, code, "cannot take over the facts of checkpoint %llu",
                         (unsigned long long)id);
    }
    for (uint32_t i = 0; i < collected.count; i++) {
        free((void *)(uintptr_t)collected.lanes[i].data);
    }
    return code;
}
