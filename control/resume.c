/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoint a run goes on from: the newest that is whole, or the one that was named. A
 * damaged one is told loudly and the one before is tried, as long as nothing has been taken over.
 * One that another machine made is taken only when it is named: that one may still run the job. */
#include <errno.h>
#include <inttypes.h>

#include "control/mapping.h"
#include "control/storage_internal.h"
#include "dataplane/facts.h"
#include "state/restore.h"

#define MIB_BYTES (UINT64_C(1) << 20)

static bool pass_fact(void *context, const struct facts_item *item)
{
    (void)context;
    (void)item;
    return true;
}

static int check_facts(void *context, uint32_t lane, struct span facts)
{
    (void)lane;
    return facts_read(facts, pass_fact, NULL, context);
}

/* Facts are looked at before state is touched. What fails behind state is no reason to try another
 * checkpoint: arenas are full already. */
static int restore_one(struct storage *storage, struct box *box, uint64_t id,
                       const struct storage_resume *resume, struct restore_report *report,
                       struct error *error)
{
    struct arena *arenas[PLACEMENT_LANES_MAX];
    for (uint32_t i = 0; i < box->lane_count; i++) {
        arenas[i] = box->lanes[i].arena;
    }
    const struct restore_config config = {
        .store = storage->store,
        .id = id,
        .arenas = arenas,
        .lane_count = box->lane_count,
        .owner = job_owner_lane,
        .owner_context = box->job,
        .drop_names = resume->drop_states,
        .drop_count = resume->drop_count,
        .map = mapping_scratch,
        .unmap = mapping_scratch_free,
    };
    int status = restore_facts(storage->store, id, check_facts, error, error);
    if (status == 0) {
        status = restore_state(&config, box_clock, report, error);
    }
    if (status != 0) {
        return status;
    }
    status = job_restore_from(box->job, storage->store, id, error);
    if (status == 0) {
        status = box_recover(box, storage->store, id, error);
    }
    return status == -EBADMSG || status == -EIO ? -EPROTO : status;
}

static void tell_success(const struct store_checkpoint *one, const struct restore_report *report,
                         FILE *messages)
{
    const double seconds = (double)report->duration_ns / 1e9;
    const double mib = (double)report->bytes / (double)MIB_BYTES;
    (void)fprintf(messages,
                  "penstock: resumed from checkpoint %" PRIu64
                  ", %.1f MiB in %.0f ms (%.0f MiB/s), "
                  "%u states%s\n",
                  one->id, mib, seconds * 1e3, seconds > 0 ? mib / seconds : 0,
                  report->states_restored, report->is_in_place ? "" : ", spread anew over lanes");
    if (report->states_new != 0 || report->states_dropped != 0) {
        (void)fprintf(messages, "penstock: %u states begin empty, %u were dropped\n",
                      report->states_new, report->states_dropped);
    }
}

/* Tries one checkpoint.
 * returns  0, -EAGAIN when the one before is to be tried, else -errno */
static int try_one(struct storage *storage, struct box *box, const struct store_checkpoint *one,
                   const struct storage_resume *resume, FILE *messages, struct error *error)
{
    struct restore_report report = {0};
    if (one->host_identity != storage_host_identity() && resume->from_id == 0) {
        return error_set(error, -EPERM,
                         "checkpoint %" PRIu64 " was made by another machine: if this one takes "
                         "the job over, start it with --from %" PRIu64 "; else with --fresh",
                         one->id, one->id);
    }
    const int status = restore_one(storage, box, one->id, resume, &report, error);
    if (status == 0) {
        storage->resumed_id = one->id;
        storage->base_id = report.is_in_place ? one->id : 0;
        tell_success(one, &report, messages);
        return 0;
    }
    if ((status == -EBADMSG || status == -EIO) && resume->from_id == 0) {
        (void)fprintf(messages,
                      "penstock: WARNING: checkpoint %" PRIu64
                      " is damaged and passed over: %s; trying the one before, so answers "
                      "written since that one may come twice\n",
                      one->id, error->text);
        return -EAGAIN;
    }
    return status;
}

int storage_resume(struct storage *storage, struct box *box, const struct storage_resume *resume,
                   FILE *messages, struct error *error)
{
    ASSERT(storage != NULL && box->job != NULL);
    struct store_checkpoint all[STORE_CHECKPOINTS_MAX];
    struct error damage = {0};
    const uint32_t damaged = store_damaged(storage->store, &damage);
    const uint32_t count = store_list(storage->store, all, STORE_CHECKPOINTS_MAX);
    int status = -ENOENT;
    if (damaged != 0) {
        (void)fprintf(messages, "penstock: WARNING: %u damaged checkpoints: %s\n", damaged,
                      damage.text);
    }
    if (resume->is_fresh || (count == 0 && damaged == 0 && resume->from_id == 0)) {
        return box_recover(box, NULL, 0, error);
    }
    for (uint32_t i = 0; i < count && i < STORE_CHECKPOINTS_MAX; i++) {
        if (resume->from_id != 0 && all[i].id != resume->from_id) {
            continue;
        }
        status = try_one(storage, box, &all[i], resume, messages, error);
        if (status != -EAGAIN) {
            return status;
        }
    }
    if (resume->from_id != 0) {
        return error_set(error, -ENOENT, "no whole checkpoint %" PRIu64 " is there",
                         resume->from_id);
    }
    return error_set(error, status == -EAGAIN ? -EBADMSG : status,
                     "no checkpoint is whole any more: start with --fresh to begin empty");
}
