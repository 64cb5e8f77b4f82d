/* SPDX-License-Identifier: Apache-2.0 */
/* See restarts.h. Staging buffers are few and slices short on purpose: a checkpoint takes many
 * turns in which the job goes on, so that old images of pages are staged as they are on a busy
 * box. */
#include "control/restarts.h"

#include <errno.h>
#include <stdlib.h>

#include "control/disk_memory.h"
#include "control/mapping.h"
#include "dataplane/lane_checkpoint.h"
#include "state/checkpoint.h"
#include "state/restore.h"

#define BUFFERS      32
#define PAGES_A_TURN 2
#define HOST         UINT64_C(1)
#define NEVER_NS     (UINT64_C(1) << 62)

struct restarts {
    struct disk *disk;
    struct store *store;
    struct restarts_life life;
    struct checkpoint *checkpoint; /* NULL: no life is attached */
    struct snapshot *snapshots[PLACEMENT_LANES_MAX];
    void *memory[PLACEMENT_LANES_MAX];
    size_t memory_bytes;
    struct lane_checkpoint *lanes[PLACEMENT_LANES_MAX];
    uint64_t cuts_told; /* of lane 0, in this life */
    uint64_t newest_id; /* complete; 0: none */
    enum restarts_state state;
};

int restarts_create(uint32_t disk_mib, struct restarts **out, struct error *error)
{
    ASSERT(disk_mib != 0 && out != NULL);
    struct restarts *restarts = calloc(1, sizeof(*restarts));
    if (restarts == NULL) {
        return error_set(error, -ENOMEM, "out of memory for checkpoints");
    }
    const struct store_format format = {.host_identity = HOST, .store_id = 1};
    int code = disk_memory_open((uint64_t)disk_mib << 20, &restarts->disk, error);
    if (code == 0) {
        code = store_format(restarts->disk, &format, NULL, NULL, error);
    }
    if (code == 0) {
        const struct store_config config = {.disk = restarts->disk, .keep_count = STORE_KEEP_MIN};
        code = store_open(&config, &restarts->store, NULL, error);
    }
    if (code != 0) {
        restarts_destroy(restarts);
        return code;
    }
    *out = restarts;
    return 0;
}

void restarts_destroy(struct restarts *restarts)
{
    if (restarts != NULL) {
        ASSERT(restarts->checkpoint == NULL);
        store_close(restarts->store);
        disk_close(restarts->disk);
        free(restarts);
    }
}

void restarts_hooks(struct restarts *restarts, struct stage_hooks *hooks)
{
    ASSERT(restarts->checkpoint == NULL);
    hooks->cut = lane_checkpoint_cut;
    hooks->cut_context = restarts->lanes;
}

/* State first: the job's clocks are set against it. */
static int restore(struct restarts *restarts, bool *in_place, struct error *error)
{
    const struct restarts_life *life = &restarts->life;
    const struct restore_config config = {
        .store = restarts->store,
        .id = restarts->newest_id,
        .arenas = life->arenas,
        .lane_count = life->lane_count,
        .owner = job_owner_lane,
        .owner_context = life->job,
        .map = mapping_scratch,
        .unmap = mapping_scratch_free,
    };
    struct restore_report report = {0};
    const int code = restore_state(&config, NULL, &report, error);
    *in_place = report.is_in_place;
    return code != 0 ? code
                     : job_restore_from(life->job, restarts->store, restarts->newest_id, error);
}

static int attach_lane(struct restarts *restarts, uint32_t lane, struct error *error)
{
    const struct restarts_life *life = &restarts->life;
    struct snapshot_config config = {
        .arena = life->arenas[lane],
        .lane = lane,
        .buffer_count = BUFFERS,
        .pages_a_turn = PAGES_A_TURN,
    };
    restarts->memory_bytes = snapshot_memory_bytes(&config);
    restarts->memory[lane] = mapping_scratch(NULL, restarts->memory_bytes);
    config.memory = restarts->memory[lane];
    if (config.memory == NULL) {
        return error_set(error, -ENOMEM, "out of memory for staging buffers");
    }
    const int code = snapshot_create(&config, &restarts->snapshots[lane], error);
    struct lane_checkpoint_config glue = {
        .job = life->job,
        .snapshot = restarts->snapshots[lane],
        .lane = lane,
        .sink_count = lane == 0 ? life->sink_count : 0,
    };
    for (uint32_t i = 0; i < glue.sink_count; i++) {
        glue.sinks[i] = life->sinks[i];
    }
    return code != 0 ? code : lane_checkpoint_create(&glue, &restarts->lanes[lane], error);
}

int restarts_attach(struct restarts *restarts, const struct restarts_life *life,
                    struct error *error)
{
    ASSERT(restarts->checkpoint == NULL);
    ASSERT(life->lane_count <= PLACEMENT_LANES_MAX);
    bool in_place = false;
    restarts->life = *life;
    restarts->state = RESTARTS_NONE;
    restarts->cuts_told = 0;
    int code = restarts->newest_id == 0 ? 0 : restore(restarts, &in_place, error);
    for (uint32_t i = 0; code == 0 && i < life->lane_count; i++) {
        code = attach_lane(restarts, i, error);
    }
    const struct checkpoint_config config = {
        .store = restarts->store,
        .lanes = restarts->snapshots,
        .lane_count = life->lane_count,
        .shard_count = EXCHANGE_SHARD_COUNT,
        .timeout_ns = NEVER_NS,
        .full_every = 4,
        .failures_max = 1,
        .first_id = store_next_id(restarts->store),
        .base_id = in_place ? restarts->newest_id : 0,
        .plan_fingerprint = life->plan_fingerprint,
        .host_identity = HOST,
        .label = "replay",
    };
    return code != 0 ? code : checkpoint_create(&config, &restarts->checkpoint, error);
}

/* A job that fails leaves a checkpoint behind that its lanes will never finish. */
static void give_up(struct restarts *restarts)
{
    uint32_t steps = 0;
    checkpoint_abandon(restarts->checkpoint);
    while (!checkpoint_is_idle(restarts->checkpoint)) {
        ASSERT(steps++ < 100000);
        (void)checkpoint_poll(restarts->checkpoint, 0, 0);
    }
}

void restarts_detach(struct restarts *restarts)
{
    if (restarts->checkpoint != NULL) {
        give_up(restarts);
    }
    checkpoint_destroy(restarts->checkpoint);
    restarts->checkpoint = NULL;
    for (uint32_t i = 0; i < restarts->life.lane_count; i++) {
        lane_checkpoint_destroy(restarts->lanes[i]);
        snapshot_destroy(restarts->snapshots[i]);
        if (restarts->memory[i] != NULL) {
            mapping_scratch_free(NULL, restarts->memory[i], restarts->memory_bytes);
        }
        restarts->lanes[i] = NULL;
        restarts->snapshots[i] = NULL;
        restarts->memory[i] = NULL;
    }
}

void restarts_request(struct restarts *restarts)
{
    ASSERT(restarts->state == RESTARTS_NONE);
    restarts->state = RESTARTS_OPEN;
    checkpoint_request(restarts->checkpoint, false);
}

uint32_t restarts_poll_lane(struct restarts *restarts, uint32_t lane, uint64_t now_ns)
{
    ASSERT(lane < restarts->life.lane_count);
    return lane_checkpoint_poll(restarts->lanes[lane], now_ns);
}

bool restarts_was_cut(struct restarts *restarts)
{
    ASSERT(restarts->lanes[0] != NULL);
    const uint64_t cuts = lane_checkpoint_counters(restarts->lanes[0])->cuts;
    const bool is_news = cuts != restarts->cuts_told;
    restarts->cuts_told = cuts;
    return is_news;
}

static bool all_lanes_know(const struct restarts *restarts)
{
    for (uint32_t i = 0; i < restarts->life.lane_count; i++) {
        if (lane_checkpoint_counters(restarts->lanes[i])->durable == 0) {
            return false;
        }
    }
    return true;
}

enum restarts_state restarts_poll(struct restarts *restarts, uint64_t now_ns, uint32_t *work,
                                  struct error *error)
{
    ASSERT(work != NULL);
    struct checkpoint_report report;
    *work += checkpoint_poll(restarts->checkpoint, now_ns, 0);
    if (checkpoint_report(restarts->checkpoint, &report)) {
        if (report.result != CHECKPOINT_COMPLETE) {
            (void)error_set(error, -EIO, "checkpoint %llu failed: %s",
                            (unsigned long long)report.id, report.reason);
            restarts->state = RESTARTS_FAILED;
        } else {
            restarts->newest_id = report.id;
        }
    }
    if (restarts->state == RESTARTS_OPEN && all_lanes_know(restarts) &&
        checkpoint_is_idle(restarts->checkpoint)) {
        restarts->state = RESTARTS_DONE;
    }
    return restarts->state;
}
