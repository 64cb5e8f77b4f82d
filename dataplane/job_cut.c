/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's cut: from the order, through the barrier's way over the stages, to the hook.
 *
 *     order: sources' facts, barrier ->  stages pass it and are held  -> nodes' facts, hook, go on
 *
 * No stage waits for ever. Take the stages that have not passed the barrier yet, in the plan's
 * order over all lanes, and of them the first: all that send to it have passed the barrier or
 * ended, and what they sent before flows on, for held stages flush. It takes that as room comes up
 * behind it, where nothing of after the barrier waits on its lane: everything there that could have
 * sent it is held, or not there yet. */
#include "dataplane/job_internal.h"

static void snapshot_source(struct stage *stage, struct facts_writer *facts)
{
    ASSERT(stage->source != NULL);
    if (stage->source->ops->snapshot != NULL && facts->into.data != NULL) {
        stage->source->ops->snapshot(stage->source, facts);
    }
}

void job_lane_barrier(struct job *job, uint32_t number, int64_t epoch)
{
    ASSERT(number < job->config.lane_count);
    struct job_lane *lane = &job->lanes[number];
    ASSERT(epoch > lane->barrier_epoch);
    lane->barrier_epoch = epoch;
    lane->is_cutting = true;
    if (lane->facts_bytes != NULL) {
        facts_begin(&lane->facts,
                    (struct span_mut){.data = lane->facts_bytes, .bytes = FACTS_BYTES_MAX});
    }
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        stage_order(stage, epoch);
        if (stage->source == NULL) {
            continue;
        }
        snapshot_source(stage, &lane->facts);
        if (!stage->source->ended) {
            stage_barrier(stage, epoch);
        }
    }
}

static void put_node(const struct stage *stage, struct facts_writer *facts)
{
    ASSERT(stage->source == NULL);
    const struct operator* operator= stage->operator;
    const bool has_mark = operator!= NULL && operator->ops->mark != NULL;
    const struct facts_item item = {
        .kind = FACTS_NODE,
        .node =
            {
                .identity = stage->node->identity,
                .watermark_ms = stage->watermark.value_ms,
                .tick_ms = stage->tick_ms,
                .mark_ms = has_mark ? operator->ops->mark(operator) : 0,
            },
    };
    facts_put(facts, &item);
}

bool job_cut_poll(struct job *job, uint32_t number)
{
    ASSERT(number < job->config.lane_count);
    struct job_lane *lane = &job->lanes[number];
    const int64_t epoch = lane->barrier_epoch;
    if (LIKELY(!lane->is_cutting)) {
        return false;
    }
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        if (!stage_has_passed(lane->order[i], epoch)) {
            return false;
        }
    }
    lane->is_cutting = false;
    for (uint32_t i = 0; i < lane->stage_count; i++) {
        struct stage *stage = lane->order[i];
        stage_release(stage);
        if (stage->source == NULL && lane->facts_bytes != NULL) {
            put_node(stage, &lane->facts);
        }
    }
    const struct stage_hooks *hooks = &job->config.hooks;
    if (hooks->cut != NULL) {
        hooks->cut(hooks->cut_context, number, epoch, &lane->facts);
    }
    return true;
}
