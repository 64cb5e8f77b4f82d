/* SPDX-License-Identifier: Apache-2.0 */
/* One checkpoint goes through these phases; news of lanes and completions of the disk are taken in
 * all of them, and an extent of a checkpoint that has failed is given back unread.
 *
 *     IDLE -> TAKING (extents go to the store) -> COMMITTING -> TELLING -> IDLE
 *                 | a lane gave up, timeout, disk              ^
 *                 +-----------> ABORTING ----------------------+
 *
 * The next one's base is the last complete one; every full_every-th stands alone, as does one whose
 * base the store no longer lists (a scrub may have found it damaged). */
#include "state/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TAGS_A_POLL       64U
#define SCRUB_EVERY_NS    (UINT64_C(20) * 1000 * 1000)
#define REQUEST_ANY       1U
#define REQUEST_SAVEPOINT 2U

enum phase {
    PHASE_IDLE = 0,
    PHASE_TAKING,
    PHASE_COMMITTING,
    PHASE_ABORTING,
    PHASE_TELLING,
};

/* What is known of a lane in the open checkpoint. */
struct lane_part {
    bool is_ordered;
    bool is_cut;
    bool is_staged;
    bool is_told;
    bool is_held; /* held is an extent that the store could not take yet */
    struct snapshot_news held;
};

struct checkpoint {
    struct checkpoint_config config;
    uint32_t phase; /* enum phase */
    uint32_t chain; /* checkpoints from the full one to base_id, both included */
    uint64_t base_id;
    uint64_t next_id;
    uint64_t next_ns; /* when the next one is due; 0: not known yet */
    uint64_t first_cut_ns;
    uint64_t last_extent_ns;
    uint64_t scrubbed_ns;
    struct checkpoint_report open;
    struct lane_part lanes[STORE_LANES_MAX];
    struct checkpoint_counters counters;

    uint32_t requests;     /* atomic: control sets, the storage thread takes */
    uint32_t is_held;      /* atomic: control sets */
    uint32_t is_abandoned; /* atomic: control sets */

    pthread_mutex_t lock; /* of what follows; never taken by a lane */
    uint32_t report_first;
    uint32_t report_count;
    struct checkpoint_report reports[CHECKPOINT_REPORTS_MAX];
};

/* How many checkpoints a chain has that ends at id. */
static uint32_t chain_length(const struct store *store, uint64_t id)
{
    ASSERT(store != NULL);
    uint32_t length = 0;
    while (id != 0 && length < STORE_CHAIN_MAX) {
        struct store_checkpoint found;
        if (!store_find(store, id, &found)) {
            return STORE_CHAIN_MAX; /* the next one is full */
        }
        ASSERT(found.base_id < id);
        length++;
        id = found.base_id;
    }
    return length;
}

int checkpoint_create(const struct checkpoint_config *config, struct checkpoint **out,
                      struct error *error)
{
    ASSERT(config != NULL && out != NULL);
    ASSERT(config->store != NULL && config->lanes != NULL);
    ASSERT(config->lane_count != 0 && config->lane_count <= STORE_LANES_MAX);
    ASSERT(config->first_id > config->base_id && config->full_every != 0);
    struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    if (checkpoint == NULL || pthread_mutex_init(&checkpoint->lock, NULL) != 0) {
        free(checkpoint);
        return error_set(error, -ENOMEM, "no memory for checkpoints");
    }
    checkpoint->config = *config;
    checkpoint->next_id = config->first_id;
    checkpoint->base_id = config->base_id;
    checkpoint->chain = chain_length(config->store, config->base_id);
    *out = checkpoint;
    return 0;
}

void checkpoint_destroy(struct checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        (void)pthread_mutex_destroy(&checkpoint->lock);
        free(checkpoint);
    }
}

const struct checkpoint_counters *checkpoint_counters(const struct checkpoint *checkpoint)
{
    ASSERT(checkpoint != NULL);
    return &checkpoint->counters;
}

bool checkpoint_is_in_trouble(const struct checkpoint *checkpoint)
{
    ASSERT(checkpoint != NULL);
    /* Relaxed: the number alone is looked at. */
    return __atomic_load_n(&checkpoint->counters.failed_in_a_row, __ATOMIC_RELAXED) >=
           checkpoint->config.failures_max;
}

void checkpoint_request(struct checkpoint *checkpoint, bool is_savepoint)
{
    ASSERT(checkpoint != NULL);
    /* Release: pairs with request_take's acquire. */
    (void)__atomic_fetch_or(&checkpoint->requests,
                            REQUEST_ANY | (is_savepoint ? REQUEST_SAVEPOINT : 0U),
                            __ATOMIC_RELEASE);
}

void checkpoint_hold(struct checkpoint *checkpoint)
{
    ASSERT(checkpoint != NULL);
    __atomic_store_n(&checkpoint->is_held, 1U, __ATOMIC_RELEASE); /* pairs with is_due's acquire */
}

void checkpoint_abandon(struct checkpoint *checkpoint)
{
    ASSERT(checkpoint != NULL);
    /* Release: pairs with is_abandoned's acquire. */
    __atomic_store_n(&checkpoint->is_abandoned, 1U, __ATOMIC_RELEASE);
}

static bool is_abandoned(const struct checkpoint *checkpoint)
{
    /* Acquire: pairs with checkpoint_abandon's release. */
    return __atomic_load_n(&checkpoint->is_abandoned, __ATOMIC_ACQUIRE) != 0;
}

bool checkpoint_is_idle(const struct checkpoint *checkpoint)
{
    ASSERT(checkpoint != NULL);
    return checkpoint->phase == PHASE_IDLE &&
           (is_abandoned(checkpoint) ||
            __atomic_load_n(&checkpoint->requests, __ATOMIC_ACQUIRE) == 0); /* pairs with request */
}

bool checkpoint_report(struct checkpoint *checkpoint, struct checkpoint_report *out)
{
    ASSERT(out != NULL);
    (void)pthread_mutex_lock(&checkpoint->lock);
    const bool is_there = checkpoint->report_count != 0;
    if (is_there) {
        *out = checkpoint->reports[checkpoint->report_first];
        checkpoint->report_first = (checkpoint->report_first + 1U) % CHECKPOINT_REPORTS_MAX;
        checkpoint->report_count--;
    }
    (void)pthread_mutex_unlock(&checkpoint->lock);
    return is_there;
}

static void report_push(struct checkpoint *checkpoint)
{
    ASSERT(checkpoint->open.result != 0);
    (void)pthread_mutex_lock(&checkpoint->lock);
    if (checkpoint->report_count == CHECKPOINT_REPORTS_MAX) {
        checkpoint->report_first = (checkpoint->report_first + 1U) % CHECKPOINT_REPORTS_MAX;
        checkpoint->report_count--;
    }
    const uint32_t place = checkpoint->report_first + checkpoint->report_count++;
    checkpoint->reports[place % CHECKPOINT_REPORTS_MAX] = checkpoint->open;
    (void)pthread_mutex_unlock(&checkpoint->lock);
}

/* Notes why the open checkpoint has failed; the first reason stays. */
static void fail(struct checkpoint *checkpoint, enum checkpoint_result result, const char *reason)
{
    ASSERT(result != CHECKPOINT_COMPLETE);
    struct checkpoint_report *open = &checkpoint->open;
    if (open->result == 0) {
        open->result = result;
        (void)snprintf(open->reason, sizeof(open->reason), "%.*s", (int)sizeof(open->reason) - 1,
                       reason);
    }
}

/* The checkpoint has ended: lanes are told from here on. */
static void end(struct checkpoint *checkpoint, uint64_t now_ns)
{
    struct checkpoint_report *open = &checkpoint->open;
    struct checkpoint_counters *counters = &checkpoint->counters;
    const struct checkpoint_config *config = &checkpoint->config;
    ASSERT(open->result != 0);
    open->duration_ns = now_ns - open->began_ns;
    const uint64_t due_ns = open->began_ns + config->interval_ns;
    const uint64_t rested_ns = now_ns + config->pause_ns;
    checkpoint->next_ns = due_ns > rested_ns ? due_ns : rested_ns;
    if (open->result == CHECKPOINT_COMPLETE) {
        checkpoint->base_id = open->id;
        checkpoint->chain = open->base_id == 0 ? 1 : checkpoint->chain + 1U;
        counters->complete++;
        /* Relaxed: pairs with checkpoint_is_in_trouble, which looks at the number alone. */
        __atomic_store_n(&counters->failed_in_a_row, 0, __ATOMIC_RELAXED);
        counters->last_complete_id = open->id;
        counters->last_complete_ns = now_ns;
        counters->bytes += open->bytes;
    } else {
        counters->failed++;
        __atomic_store_n(&counters->failed_in_a_row, counters->failed_in_a_row + 1U,
                         __ATOMIC_RELAXED);
    }
    checkpoint->phase = PHASE_TELLING;
    report_push(checkpoint);
}

/* Whether the next one may begin. */
static bool is_due(const struct checkpoint *checkpoint, uint64_t now_ns)
{
    ASSERT(checkpoint->phase == PHASE_IDLE);
    if (is_abandoned(checkpoint)) {
        return false;
    }
    if (__atomic_load_n(&checkpoint->requests, __ATOMIC_RELAXED) != 0) {
        return true;
    }
    /* Acquire: pairs with checkpoint_hold's release. */
    const bool is_held = __atomic_load_n(&checkpoint->is_held, __ATOMIC_ACQUIRE) != 0;
    return !is_held && checkpoint->config.interval_ns != 0 && now_ns >= checkpoint->next_ns;
}

/* Whether the next one has to be full. */
static bool is_full_due(const struct checkpoint *checkpoint)
{
    struct store_checkpoint base;
    const uint32_t every = checkpoint->config.full_every;
    const uint32_t chain_max = every < STORE_CHAIN_MAX ? every : STORE_CHAIN_MAX;
    ASSERT(chain_max != 0);
    return checkpoint->base_id == 0 || checkpoint->chain >= chain_max ||
           !store_find(checkpoint->config.store, checkpoint->base_id, &base);
}

static void begin(struct checkpoint *checkpoint, uint64_t now_ns)
{
    const struct checkpoint_config *config = &checkpoint->config;
    ASSERT(checkpoint->phase == PHASE_IDLE);
    /* Acquire: pairs with checkpoint_request's release. */
    const uint32_t requests = __atomic_exchange_n(&checkpoint->requests, 0, __ATOMIC_ACQUIRE);
    checkpoint->open = (struct checkpoint_report){
        .id = checkpoint->next_id++,
        .base_id = is_full_due(checkpoint) ? 0 : checkpoint->base_id,
        .is_savepoint = (requests & REQUEST_SAVEPOINT) != 0,
        .began_ns = now_ns,
    };
    memset(checkpoint->lanes, 0, sizeof(checkpoint->lanes));
    checkpoint->first_cut_ns = 0;
    checkpoint->last_extent_ns = 0;
    struct store_checkpoint entry = {
        .id = checkpoint->open.id,
        .base_id = checkpoint->open.base_id,
        .began_ms = (now_ns + config->wall_offset_ns) / 1000000U,
        .lane_count = config->lane_count,
        .shard_count = config->shard_count,
        .is_savepoint = checkpoint->open.is_savepoint,
        .plan_fingerprint = config->plan_fingerprint,
        .host_identity = config->host_identity,
    };
    if (config->label != NULL) {
        (void)snprintf(entry.label, sizeof(entry.label), "%s", config->label);
    }
    struct error error = {0};
    const int code = store_begin(config->store, &entry, &error);
    if (code != 0) {
        fail(checkpoint, code == -ENOSPC ? CHECKPOINT_FAILED_FULL : CHECKPOINT_FAILED_DISK,
             error.text);
        end(checkpoint, now_ns);
        return;
    }
    checkpoint->phase = PHASE_TAKING;
}

static void give_up(struct checkpoint *checkpoint, enum checkpoint_result result,
                    const char *reason)
{
    ASSERT(checkpoint->phase == PHASE_TAKING);
    fail(checkpoint, result, reason);
    store_abort(checkpoint->config.store);
    checkpoint->phase = PHASE_ABORTING;
}

/* Takes an extent to the store.
 * returns  false when the store cannot take it yet */
static bool extent_take(struct checkpoint *checkpoint, uint32_t lane,
                        const struct snapshot_news *news)
{
    struct snapshot *snapshot = checkpoint->config.lanes[lane];
    if (checkpoint->phase != PHASE_TAKING || news->id != checkpoint->open.id) {
        snapshot_give(snapshot, news->buffer);
        return true;
    }
    const uint8_t *extent = snapshot_buffer(snapshot, news->buffer);
    ASSERT(extent_check(extent, EXTENT_BYTES));
    const struct extent_header *header = (const void *)extent;
    ASSERT(header->checkpoint == news->id && header->lane == lane);
    const int code =
        store_append(checkpoint->config.store, extent, (uint64_t)lane << 32 | news->buffer);
    if (code == -EAGAIN) {
        return false;
    }
    if (code != 0) {
        snapshot_give(snapshot, news->buffer);
        give_up(checkpoint, code == -ENOSPC ? CHECKPOINT_FAILED_FULL : CHECKPOINT_FAILED_DISK,
                code == -ENOSPC ? "no slot is free on the disk" : "the disk has failed");
        return true;
    }
    checkpoint->open.pages += header->image_count;
    checkpoint->open.bytes += extent_bytes(extent);
    if (news->at_ns > checkpoint->last_extent_ns) {
        checkpoint->last_extent_ns = news->at_ns;
    }
    return true;
}

/* Takes in that a lane has cut, has staged all, or has given up. */
static void news_take(struct checkpoint *checkpoint, uint32_t lane,
                      const struct snapshot_news *news)
{
    ASSERT(lane < checkpoint->config.lane_count);
    struct checkpoint_report *open = &checkpoint->open;
    if (checkpoint->phase != PHASE_TAKING || news->id != open->id) {
        return;
    }
    if (news->kind == SNAPSHOT_NEWS_CUT) {
        const uint64_t took_ns = news->at_ns > open->began_ns ? news->at_ns - open->began_ns : 0;
        checkpoint->lanes[lane].is_cut = true;
        open->alignment_ns = took_ns > open->alignment_ns ? took_ns : open->alignment_ns;
        if (checkpoint->first_cut_ns == 0 || news->at_ns < checkpoint->first_cut_ns) {
            checkpoint->first_cut_ns = news->at_ns;
        }
    } else if (news->kind == SNAPSHOT_NEWS_STAGED) {
        ASSERT(checkpoint->lanes[lane].is_cut);
        checkpoint->lanes[lane].is_staged = true;
        open->preimages += news->preimages;
    } else {
        ASSERT(news->kind == SNAPSHOT_NEWS_GIVEN_UP);
        give_up(checkpoint, CHECKPOINT_FAILED_STAGING, "a lane ran out of staging buffers");
    }
}

/* Takes a lane's news, until the store is full of requests.
 * returns  how many */
static uint32_t lane_drain(struct checkpoint *checkpoint, uint32_t lane)
{
    struct lane_part *part = &checkpoint->lanes[lane];
    ASSERT(lane < checkpoint->config.lane_count);
    uint32_t count = 0;
    if (part->is_held) {
        if (!extent_take(checkpoint, lane, &part->held)) {
            return 0;
        }
        part->is_held = false;
        count++;
    }
    struct snapshot_news news;
    while (snapshot_take(checkpoint->config.lanes[lane], &news)) {
        count++;
        if (news.kind != SNAPSHOT_NEWS_EXTENT) {
            news_take(checkpoint, lane, &news);
        } else if (!extent_take(checkpoint, lane, &news)) {
            part->is_held = true;
            part->held = news;
            break;
        }
    }
    return count;
}

/* Orders what is not ordered yet, and looks whether all lanes are done. */
static uint32_t taking(struct checkpoint *checkpoint, uint64_t now_ns)
{
    const struct checkpoint_config *config = &checkpoint->config;
    struct checkpoint_report *open = &checkpoint->open;
    ASSERT(checkpoint->phase == PHASE_TAKING);
    uint32_t staged = 0;
    uint32_t work = 0;
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        struct lane_part *part = &checkpoint->lanes[lane];
        if (!part->is_ordered && snapshot_order(config->lanes[lane], open->id, open->base_id)) {
            part->is_ordered = true;
            work++;
        }
        staged += part->is_staged;
    }
    if (staged == config->lane_count) {
        if (checkpoint->last_extent_ns > checkpoint->first_cut_ns) {
            open->staging_ns = checkpoint->last_extent_ns - checkpoint->first_cut_ns;
        }
        store_commit(config->store, now_ns - open->began_ns);
        checkpoint->phase = PHASE_COMMITTING;
        return work + 1U;
    }
    if (is_abandoned(checkpoint)) {
        give_up(checkpoint, CHECKPOINT_FAILED_ABANDONED, "the run has ended");
        work++;
    } else if (now_ns - open->began_ns > config->timeout_ns) {
        give_up(checkpoint, CHECKPOINT_FAILED_TIMEOUT, "barriers, sinks or staging took too long");
        work++;
    }
    return work;
}

/* Tells lanes how it ended. */
static uint32_t telling(struct checkpoint *checkpoint)
{
    const struct snapshot_outcome outcome = {
        .id = checkpoint->open.id, .is_durable = checkpoint->open.result == CHECKPOINT_COMPLETE};
    ASSERT(checkpoint->phase == PHASE_TELLING);
    bool is_over = true;
    for (uint32_t lane = 0; lane < checkpoint->config.lane_count; lane++) {
        struct lane_part *part = &checkpoint->lanes[lane];
        part->is_told = part->is_told || !part->is_ordered ||
                        snapshot_tell(checkpoint->config.lanes[lane], &outcome);
        is_over = is_over && part->is_told;
    }
    if (is_over) {
        checkpoint->phase = PHASE_IDLE;
    }
    return is_over;
}

/* Takes in what the disk has done. */
static uint32_t disk_poll(struct checkpoint *checkpoint, uint64_t now_ns, uint64_t wait_ns)
{
    uint64_t tags[TAGS_A_POLL];
    uint32_t count = 0;
    const enum store_state state =
        store_poll(checkpoint->config.store, tags, TAGS_A_POLL, &count, wait_ns);
    ASSERT(count <= TAGS_A_POLL);
    for (uint32_t index = 0; index < count; index++) {
        const uint32_t lane = (uint32_t)(tags[index] >> 32);
        ASSERT(lane < checkpoint->config.lane_count);
        snapshot_give(checkpoint->config.lanes[lane], (uint32_t)tags[index]);
    }
    if (state == STORE_DURABLE) {
        ASSERT(checkpoint->phase == PHASE_COMMITTING);
        checkpoint->open.result = CHECKPOINT_COMPLETE;
        end(checkpoint, now_ns);
        count++;
    } else if (state == STORE_FAILED) {
        ASSERT(checkpoint->phase != PHASE_IDLE && checkpoint->phase != PHASE_TELLING);
        fail(checkpoint, CHECKPOINT_FAILED_DISK, store_failure(checkpoint->config.store)->text);
        end(checkpoint, now_ns);
        count++;
    }
    return count;
}

/* Checks a retained extent now and then while there is nothing else to do. */
static void scrub(struct checkpoint *checkpoint, uint64_t now_ns)
{
    ASSERT(checkpoint->phase == PHASE_IDLE);
    if (now_ns - checkpoint->scrubbed_ns < SCRUB_EVERY_NS) {
        return;
    }
    checkpoint->scrubbed_ns = now_ns;
    checkpoint->counters.scrubbed_extents++;
    checkpoint->counters.scrub_faults += !store_scrub(checkpoint->config.store);
}

uint32_t checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ns, uint64_t wait_ns)
{
    ASSERT(checkpoint != NULL);
    if (checkpoint->next_ns == 0) {
        checkpoint->next_ns = now_ns + checkpoint->config.interval_ns;
    }
    uint32_t work = 0;
    for (uint32_t lane = 0; lane < checkpoint->config.lane_count; lane++) {
        work += lane_drain(checkpoint, lane);
    }
    if (checkpoint->phase == PHASE_IDLE && is_due(checkpoint, now_ns)) {
        begin(checkpoint, now_ns);
        work++;
    }
    if (checkpoint->phase == PHASE_TAKING) {
        work += taking(checkpoint, now_ns);
    }
    if (checkpoint->phase == PHASE_IDLE) {
        scrub(checkpoint, now_ns);
        return work;
    }
    if (checkpoint->phase != PHASE_TELLING) {
        work += disk_poll(checkpoint, now_ns, work == 0 ? wait_ns : 0);
    }
    if (checkpoint->phase == PHASE_TELLING) {
        work += telling(checkpoint);
    }
    return work;
}
