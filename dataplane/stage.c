/* SPDX-License-Identifier: Apache-2.0 */
/* Running one plan node on one lane; see stage.h for the picture. Control items are merged over the
 * channels here, so bodies only ever see the minimum.
 *
 *     channels (queues, rings) -> take_item -> task -> do_task -> output -> exchanges
 *
 * Invariants:
 *   1. One task is open at a time, and no item is taken while one is: order within a channel is
 *      kept.
 *   2. A body sees the minimum of watermarks and ticks over channels, which only grows.
 *   3. A channel whose barrier has come is not read until all have (alignment), so that what is
 *      counted before a barrier on one channel is counted before it on all.
 *   4. A held stage takes nothing; its output still flows. So whatever stands before a barrier can
 *      move: it waits for nodes later in the plan; those that are held have nothing of it left. */
#include "dataplane/stage.h"

#include <stdio.h>

#include "dataplane/ledger.h"

/* The first reason counts. Starved outputs fail with their own words: the cause is a pool too
 * small, whatever the body made of it. */
static bool fail(struct stage *stage, const struct error *reason)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(reason != NULL);
    stage->has_failed = true;
    stage->failure = *reason;
    if (stage->output != NULL && output_is_starved(stage->output)) {
        (void)error_set(&stage->failure, 0,
                        "rows grew past the memory for parcels; raise the number of parcels");
    }
    if (stage->failure.line == 0) {
        stage->failure.line = stage->node->line;
        stage->failure.column = stage->node->column_in_line;
    }
    return false;
}

/* A body that ignored a starved output has lost rows: that must not go unseen. Bodies may ignore
 * what the output answers only as long as they asked for room; this is the net below. */
static bool check_output(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    if (stage->output != NULL && UNLIKELY(output_is_starved(stage->output))) {
        static const struct error none;
        return fail(stage, &none);
    }
    return true;
}

/* Replays and tests have no clock hook: the turn's time is exact enough there, and the same each
 * run. */
static uint64_t read_clock(const struct stage *stage, uint64_t now_ns)
{
    ASSERT(stage->node != NULL);
    const struct stage_hooks *hooks = stage->hooks;
    return hooks->clock == NULL ? now_ns : hooks->clock(hooks->context);
}

static void count_parcel(struct stage *stage, const struct parcel *parcel)
{
    ASSERT(stage->node != NULL);
    stage->stage_counters[STAGE_PARCELS_IN]++;
    stage->stage_counters[STAGE_ROWS_IN] += parcel->row_count;
}

static void drop_parcel(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    struct parcel *parcel = stage->parcel;
    stage->parcel = NULL;
    stage->task = STAGE_IDLE;
    count_parcel(stage, parcel);
    parcel_release(parcel, stage->pool);
}

/* The ledger's times are set once: a parcel that waits and comes again keeps its first. */
static enum operator_verdict process_in_sink(struct stage *stage, uint64_t now_ns)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    struct parcel *parcel = stage->parcel;
    if (parcel->operated_ns == 0) {
        parcel->operated_ns = read_clock(stage, now_ns);
    }
    const enum operator_verdict verdict = stage->sink->ops->process(stage->sink, parcel);
    if (verdict == OPERATOR_DONE && stage->ledger != NULL) {
        parcel->encoded_ns = read_clock(stage, now_ns);
        ledger_parcel(stage->ledger, stage->ledger_sink, parcel);
    }
    return verdict;
}

/* Room for two rows out a row in: -U and +U. An operator that makes more asks for itself. */
static enum operator_verdict process_in_operator(struct stage *stage, uint64_t now_ns)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    struct parcel *parcel = stage->parcel;
    if (!output_room(stage->output, 2 * parcel->row_count)) {
        return OPERATOR_AGAIN;
    }
    if (parcel->routed_ns == 0) {
        parcel->routed_ns = read_clock(stage, now_ns);
    }
    /* What the operator writes now inherits the parcel's times, up to output_pass. */
    output_stamp(stage->output, parcel);
    struct operator* operator= stage->operator;
    const enum operator_verdict verdict = operator->ops->process(operator, stage->input, parcel);
    output_pass(stage->output);
    return verdict;
}

/* Works on the open task; true when it is finished. */
static bool do_rows(struct stage *stage, uint64_t now_ns)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    enum operator_verdict verdict = OPERATOR_DONE;
    if (stage->sink != NULL) {
        verdict = process_in_sink(stage, now_ns);
    } else if (stage->operator!= NULL) {
        verdict = process_in_operator(stage, now_ns);
    } else if (!output_room(stage->output, stage->parcel->row_count)) {
        verdict = OPERATOR_AGAIN;
    } else {
        struct parcel *parcel = stage->parcel;
        count_parcel(stage, parcel);
        stage->parcel = NULL;
        stage->task = STAGE_IDLE;
        output_forward(stage->output, parcel);
        return check_output(stage);
    }
    if (verdict == OPERATOR_FAILED) {
        return fail(stage, stage->sink != NULL ? &stage->sink_context.failure
                                               : &stage->operator_context.failure);
    }
    if (verdict == OPERATOR_AGAIN) {
        return false;
    }
    drop_parcel(stage);
    return check_output(stage);
}

/* Time moved: lets the operator act on it, then tells the nodes below. An operator without the
 * call lets time pass; the nodes below are told after it has acted, so that its rows go in front
 * of the watermark. */
static bool do_time(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    const bool is_tick = stage->task == STAGE_TICK;
    struct operator* operator= stage->operator;
    if (operator!= NULL) {
        const struct operator_ops *ops = operator->ops;
        enum operator_verdict (*call)(struct operator*, int64_t) = ops->advance;
        if (is_tick) {
            call = operator_takes_ticks(ops, stage->node) ? ops->tick : NULL;
        }
        const enum operator_verdict verdict =
            call == NULL ? OPERATOR_DONE : call(operator, stage->value);
        output_pass(stage->output);
        if (verdict == OPERATOR_FAILED) {
            return fail(stage, &stage->operator_context.failure);
        }
        if (verdict == OPERATOR_AGAIN || !check_output(stage)) {
            return false;
        }
    }
    if (stage->output != NULL) {
        output_control(stage->output, is_tick ? PARCEL_TICK : PARCEL_WATERMARK, stage->value);
    }
    stage->task = STAGE_IDLE;
    return true;
}

static bool do_task(struct stage *stage, uint64_t now_ns)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    switch (stage->task) {
    case STAGE_IDLE:
        return true;
    case STAGE_ROWS:
        return do_rows(stage, now_ns);
    default:
        return do_time(stage);
    }
}

/* Idle channels do not hold the minimum back (watermark.h), so idleness can move it as well. */
static void open_watermark(struct stage *stage, bool moved)
{
    ASSERT(stage != NULL);
    if (moved) {
        stage->task = STAGE_WATERMARK;
        stage->value = stage->watermark.value_ms;
    }
}

/* Says idle or active to the nodes below when all channels together have changed. */
static void pass_idleness(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    const bool idle = watermark_is_idle(&stage->watermark);
    if (idle != stage->said_idle && stage->output != NULL) {
        output_control(stage->output, idle ? PARCEL_IDLE : PARCEL_ACTIVE, 0);
    }
    stage->said_idle = idle;
}

/* Processing time over channels is a minimum as well, but has no idleness: every source ticks. */
static void take_tick(struct stage *stage, struct channel *channel, int64_t tick_ms)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(channel != NULL);
    channel->tick_ms = tick_ms;
    int64_t minimum = tick_ms;
    for (uint32_t i = 0; i < stage->channel_count; i++) {
        const struct channel *other = &stage->channels[i];
        if (!other->is_ended && other->tick_ms < minimum) {
            minimum = other->tick_ms;
        }
    }
    if (minimum > stage->tick_ms) {
        stage->tick_ms = minimum;
        stage->task = STAGE_TICK;
        stage->value = minimum;
    }
}

/* Passes the barrier on once no channel can bring rows of before it any more. Ended channels
 * count as aligned: nothing comes from them any more. */
static void align(struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    const int64_t epoch = stage->barrier_epoch;
    for (uint32_t i = 0; i < stage->channel_count; i++) {
        if (!stage->channels[i].is_aligned && !stage->channels[i].is_ended) {
            return;
        }
    }
    for (uint32_t i = 0; i < stage->channel_count; i++) {
        stage->channels[i].is_aligned = false;
    }
    ASSERT(stage->task == STAGE_IDLE);
    stage->is_aligning = false;
    stage->is_held = epoch >= stage->ordered_epoch;
    const struct stage_hooks *hooks = stage->hooks;
    if (hooks->barrier != NULL) {
        hooks->barrier(hooks->context, stage->lane, stage->node, epoch);
    }
    if (stage->output != NULL) {
        output_control(stage->output, PARCEL_BARRIER, epoch);
    }
}

/* A barrier older than the newest was given up everywhere: it means nothing any more. A newer one
 * opens the channels again that wait for the older, which not all of them will bring. */
static void take_barrier(struct stage *stage, struct channel *channel, int64_t epoch)
{
    ASSERT(!channel->is_aligned);
    ASSERT(epoch > 0);
    if (epoch < stage->barrier_epoch) {
        return;
    }
    if (epoch > stage->barrier_epoch) {
        for (uint32_t i = 0; i < stage->channel_count; i++) {
            stage->channels[i].is_aligned = false;
        }
        stage->barrier_epoch = epoch;
        stage->is_aligning = true;
    }
    ASSERT(stage->is_aligning);
    channel->is_aligned = true;
    align(stage);
}

/* The last end is passed on behind everything; ended stages are still polled until their output
 * is flushed. */
static void take_end(struct stage *stage, struct channel *channel)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(!channel->is_ended);
    channel->is_ended = true;
    stage->channels_ended++;
    if (stage->is_aligning) {
        align(stage);
    }
    if (stage->channels_ended == stage->channel_count) {
        stage->has_ended = true;
        if (stage->output != NULL) {
            output_control(stage->output, PARCEL_END, 0);
        }
    }
}

static void take_item(struct stage *stage, uint32_t number, struct item item)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(stage->task == STAGE_IDLE);
    struct channel *channel = &stage->channels[number];
    ASSERT(!channel->is_ended);
    switch (item_kind(item)) {
    case PARCEL_ROWS:
        stage->task = STAGE_ROWS;
        stage->parcel = item_parcel(item);
        stage->input = channel->input;
        break;
    case PARCEL_WATERMARK:
        open_watermark(stage, watermark_move(&stage->watermark, number, item.value));
        pass_idleness(stage);
        break;
    case PARCEL_IDLE:
    case PARCEL_ACTIVE:
        open_watermark(stage,
                       watermark_idle(&stage->watermark, number, item_kind(item) == PARCEL_IDLE));
        pass_idleness(stage);
        break;
    case PARCEL_TICK:
        take_tick(stage, channel, item.value);
        break;
    case PARCEL_BARRIER:
        take_barrier(stage, channel, item.value);
        break;
    default:
        take_end(stage, channel);
        break;
    }
}

/* Takes items from one channel until it is empty, closed or the stage is stuck. A ring's items
 * are bounded by the budget, a queue's are not: those rows are in the lane already, and letting
 * them wait costs memory. */
static uint32_t drain_channel(struct stage *stage, uint32_t number, uint64_t now_ns,
                              uint32_t items_max)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    struct channel *channel = &stage->channels[number];
    uint32_t work = 0;
    while (work < items_max && !channel->is_aligned && !channel->is_ended && !stage->is_held) {
        struct item item;
        if (channel->ring != NULL) {
            if (!ring_pop(channel->ring, &item)) {
                break;
            }
        } else if (queue_is_empty(channel->queue)) {
            break;
        } else {
            item = queue_pop(channel->queue);
        }
        take_item(stage, number, item);
        work++;
        if (!do_task(stage, now_ns)) {
            break;
        }
    }
    return work;
}

/* Sources write their own control items, END among them. */
static uint32_t poll_source(struct stage *stage, uint64_t now_ns, uint32_t budget)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    uint32_t work = 0;
    struct source *source = stage->source;
    if (source->ended) {
        stage->has_ended = true;
        return 0;
    }
    const enum operator_verdict verdict = source->ops->poll(source, now_ns, budget, &work);
    if (verdict == OPERATOR_FAILED) {
        (void)fail(stage, &stage->source_context.failure);
    } else if (check_output(stage)) {
        output_pass(stage->output);
        stage->has_ended = source->ended;
        stage->stage_counters[STAGE_BLOCKED] += verdict == OPERATOR_AGAIN;
    }
    return work;
}

/* Whether an open task waits for its next step and not for room in the output. */
static bool is_stepping(const struct stage *stage)
{
    ASSERT(stage->task != STAGE_IDLE);
    if (stage->operator== NULL || stage->has_failed) {
        return false;
    }
    return stage->task == STAGE_ROWS ? output_room(stage->output, 2 * stage->parcel->row_count)
                                     : output_has_room(stage->output);
}

/* What could not be finished last time comes first (1). */
static uint32_t poll_channels(struct stage *stage, uint64_t now_ns, bool enter, uint32_t budget)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    uint32_t work = 0;
    if (stage->task != STAGE_IDLE) {
        work++;
        if (!do_task(stage, now_ns)) {
            stage->stage_counters[STAGE_BLOCKED]++;
            /* Blocked or failed: no work was done, so a lane with nothing else may go idle. */
            return stage->task == STAGE_IDLE || is_stepping(stage);
        }
    }
    for (uint32_t i = 0; i < stage->channel_count && stage->task == STAGE_IDLE; i++) {
        const bool is_local = stage->channels[i].ring == NULL;
        if ((is_local || enter) && !stage->has_failed) {
            work += drain_channel(stage, i, now_ns, is_local ? UINT32_MAX : budget);
        }
    }
    stage->stage_counters[STAGE_BLOCKED] += stage->task != STAGE_IDLE;
    return work;
}

/* enter: whether rows may come into the lane here, see job.h on admission. The output is flushed
 * in any case, since others may wait for it. */
uint32_t stage_poll(struct stage *stage, uint64_t now_ns, bool enter, uint32_t budget)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    ASSERT(!stage->has_failed);
    uint32_t work = 0;
    if (stage->is_held) {
        ASSERT(stage->task == STAGE_IDLE);
    } else if (stage->source != NULL) {
        work = enter ? poll_source(stage, now_ns, budget) : 0;
    } else {
        work = poll_channels(stage, now_ns, enter, budget);
    }
    if (stage->output != NULL) {
        work += output_flush(stage->output);
        stage->stage_counters[STAGE_ROWS_OUT] = output_row_count(stage->output);
    }
    return work;
}

void stage_barrier(struct stage *stage, int64_t epoch)
{
    ASSERT(stage->source != NULL && !stage->source->ended);
    ASSERT(epoch > stage->barrier_epoch);
    stage->barrier_epoch = epoch;
    stage->is_held = true;
    const struct stage_hooks *hooks = stage->hooks;
    if (hooks->barrier != NULL) {
        hooks->barrier(hooks->context, stage->lane, stage->node, epoch);
    }
    output_control(stage->output, PARCEL_BARRIER, epoch);
}

bool stage_has_passed(const struct stage *stage, int64_t epoch)
{
    ASSERT(epoch > 0);
    ASSERT(!stage->is_held || stage->task == STAGE_IDLE);
    return stage->has_ended || (stage->is_held && stage->barrier_epoch == epoch);
}

void stage_release(struct stage *stage)
{
    ASSERT(!stage->is_aligning || !stage->is_held);
    ASSERT(!stage->is_held || stage->task == STAGE_IDLE);
    stage->is_held = false;
}

void stage_order(struct stage *stage, int64_t epoch)
{
    ASSERT(epoch > stage->ordered_epoch);
    stage->ordered_epoch = epoch;
    if (stage->is_held && stage->barrier_epoch < epoch) {
        stage_release(stage);
    }
}

/* A parcel in work counts whole: how much of it is done, only the body knows. */
uint32_t stage_waiting_rows(const struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    uint32_t rows = stage->parcel != NULL ? stage->parcel->row_count : 0;
    for (uint32_t i = 0; i < stage->channel_count; i++) {
        const struct channel *channel = &stage->channels[i];
        rows += channel->queue != NULL ? channel->queue->row_count : 0;
    }
    return rows;
}

bool stage_is_quiet(const struct stage *stage)
{
    ASSERT(stage->node != NULL);
    ASSERT(stage->channels_ended <= stage->channel_count);
    if (stage->task != STAGE_IDLE || (stage->output != NULL && output_has_backlog(stage->output))) {
        return false;
    }
    for (uint32_t i = 0; i < stage->channel_count; i++) {
        const struct channel *channel = &stage->channels[i];
        if (channel->ring != NULL ? ring_count(channel->ring) != 0
                                  : !queue_is_empty(channel->queue)) {
            return false;
        }
    }
    return true;
}
