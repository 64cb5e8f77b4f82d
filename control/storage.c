/* SPDX-License-Identifier: Apache-2.0 */
/* See storage.h. Which checkpoint a run goes on from is decided in resume.c. */
#include "control/storage.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/storage_internal.h"
#include "state/disk_uring.h"
#include "state/hash.h"

#define MIB_BYTES        (UINT64_C(1) << 20)
#define NANOSECONDS_A_MS UINT64_C(1000000)
#define WAIT_NS          UINT64_C(200000) /* for the disk, when there is nothing to do */
#define IDLE_NS          50000            /* how long the thread sleeps when all is quiet */
#define STOP_NS          (UINT64_C(30) * NANOSECONDS_PER_S)
#define MACHINE_ID_PATH  "/etc/machine-id"
#define MACHINE_ID_BYTES 64

uint64_t storage_host_identity(void)
{
    uint8_t id[MACHINE_ID_BYTES] = {0};
    FILE *file = fopen(MACHINE_ID_PATH, "re");
    const size_t bytes = file == NULL ? 0 : fread(id, 1, sizeof(id), file);
    if (file != NULL) {
        (void)fclose(file);
    }
    return hash_bytes((struct span){.data = id, .bytes = bytes});
}

static int fail_key(struct error *error, const char *key, int status)
{
    (void)snprintf(error->place, sizeof(error->place), "checkpoint.%s", key);
    return status;
}

static void tell_progress(void *context, double share)
{
    FILE *messages = context;
    if (share < 1 && isatty(fileno(messages)) == 0) {
        return;
    }
    (void)fprintf(messages, "\rpenstock: formatting the checkpoint file %3.0f %%%s", 100 * share,
                  share >= 1 ? "\n" : "");
    (void)fflush(messages);
}

/* A file that is not there is made and formatted; what is there is never formatted by itself. */
static int open_disk(struct storage *storage, FILE *messages, struct error *error)
{
    const struct appliance_config *config = storage->config;
    struct stat there;
    const bool is_new = stat(config->checkpoint.path, &there) != 0 && errno == ENOENT;
    const struct disk_uring_config disk = {
        .path = config->checkpoint.path,
        .bytes = is_new ? config->checkpoint.size_mib * MIB_BYTES : 0,
        .depth_max = STORE_IN_FLIGHT_MAX,
    };
    int status = disk_uring_open(&disk, &storage->disk, error);
    if (status == 0 && is_new) {
        const struct store_format format = {.host_identity = storage_host_identity()};
        status = store_format(storage->disk, &format, tell_progress, messages, error);
    }
    return status == 0 ? 0 : fail_key(error, "path", status);
}

int storage_open(const struct appliance_config *config, FILE *messages, struct storage **out,
                 struct error *error)
{
    ASSERT(config->checkpoint.path[0] != '\0');
    ASSERT(out != NULL);
    struct storage *storage = calloc(1, sizeof(*storage));
    if (storage == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    *out = storage;
    storage->config = config;
    int status = open_disk(storage, messages, error);
    if (status == 0) {
        const struct store_config store = {
            .disk = storage->disk,
            .keep_count = (uint32_t)config->checkpoint.keep,
        };
        status = store_open(&store, &storage->store, &storage->fault, error);
        status = status == 0 ? 0 : fail_key(error, "path", status);
    }
    return status;
}

int storage_make_lanes(struct storage *storage, struct box *box, struct error *error)
{
    ASSERT(storage != NULL);
    ASSERT(box->lane_count <= STORE_LANES_MAX);
    const struct appliance_config *config = storage->config;
    for (uint32_t i = 0; i < box->lane_count; i++) {
        struct box_lane *lane = &box->lanes[i];
        struct snapshot_config snapshot = {
            .arena = lane->arena,
            .lane = i,
            .buffer_count = (uint32_t)(config->checkpoint.staging_mib * MIB_BYTES / EXTENT_BYTES),
            .pages_a_turn = (uint32_t)config->checkpoint.pages_a_turn,
        };
        snapshot.memory = mapping_take(lane->mapping, snapshot_memory_bytes(&snapshot));
        if (snapshot.memory == NULL) {
            return fail_key(error, "staging_mib",
                            error_set(error, -ENOMEM,
                                      "no memory for the staging buffers of core %u", lane->core));
        }
        const int status = snapshot_create(&snapshot, &storage->snapshots[i], error);
        if (status != 0) {
            return fail_key(error, "staging_mib", status);
        }
        storage->lane_count = i + 1;
        lane->snapshot = storage->snapshots[i];
        const struct span_mut buffers = snapshot_buffers(lane->snapshot);
        /* Unregistered memory only costs the kernel a pin a request. */
        (void)disk_register_memory(storage->disk, buffers.data, buffers.bytes);
    }
    return 0;
}

/* Sleeps only when nothing is open: a barrier waits for this thread. */
static void *run_storage(void *argument)
{
    struct storage *storage = argument;
    const struct timespec nap = {.tv_nsec = IDLE_NS};
    uint64_t stop_at_ns = 0;
    for (;;) {
        const uint64_t now_ns = box_clock(NULL);
        const uint32_t work = checkpoint_poll(storage->checkpoint, now_ns, WAIT_NS);
        /* Acquire pairs with storage_stop's release. */
        if (atomic_load_explicit(&storage->stops, memory_order_acquire)) {
            stop_at_ns = stop_at_ns == 0 ? now_ns + STOP_NS : stop_at_ns;
            storage->is_stuck = !checkpoint_is_idle(storage->checkpoint);
            if (!storage->is_stuck || now_ns > stop_at_ns) {
                return NULL;
            }
        }
        if (work == 0) {
            (void)nanosleep(&nap, NULL);
        }
    }
}

static uint64_t wall_offset_ns(void)
{
    struct timespec wall;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    return (uint64_t)wall.tv_sec * NANOSECONDS_PER_S + (uint64_t)wall.tv_nsec - box_clock(NULL);
}

static int start_thread(struct storage *storage, struct error *error)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(storage->config->checkpoint.core, &cores);
    const int status = pthread_create(&storage->thread, NULL, run_storage, storage);
    if (status != 0) {
        return error_set(error, -status, "no storage thread: %s", strerror(status));
    }
    storage->is_running = true;
    if (pthread_setaffinity_np(storage->thread, sizeof(cores), &cores) != 0) {
        return fail_key(error, "core",
                        error_set(error, -EINVAL, "core %u cannot be used by this process",
                                  storage->config->checkpoint.core));
    }
    return 0;
}

int storage_start(struct storage *storage, struct box *box, const char *label, struct error *error)
{
    ASSERT(storage->lane_count == box->lane_count);
    const struct appliance_config *config = storage->config;
    const struct checkpoint_config checkpoint = {
        .store = storage->store,
        .lanes = storage->snapshots,
        .lane_count = storage->lane_count,
        .shard_count = BOX_SHARDS,
        .interval_ns = config->checkpoint.interval_ms * NANOSECONDS_A_MS,
        .pause_ns = config->checkpoint.pause_ms * NANOSECONDS_A_MS,
        .timeout_ns = config->checkpoint.timeout_ms * NANOSECONDS_A_MS,
        .full_every = (uint32_t)config->checkpoint.full_every,
        .failures_max = (uint32_t)config->checkpoint.failures,
        .first_id = store_next_id(storage->store),
        .base_id = storage->base_id,
        .plan_fingerprint = box->plan->fingerprint,
        .host_identity = storage_host_identity(),
        .wall_offset_ns = wall_offset_ns(),
        .label = label,
    };
    const int status = checkpoint_create(&checkpoint, &storage->checkpoint, error);
    return status != 0 ? status : start_thread(storage, error);
}

void storage_stop(struct storage *storage)
{
    if (storage == NULL || !storage->is_running) {
        return;
    }
    checkpoint_abandon(storage->checkpoint);
    /* Release pairs with run_storage's acquire. */
    atomic_store_explicit(&storage->stops, true, memory_order_release);
    (void)pthread_join(storage->thread, NULL);
    storage->is_running = false;
}

void storage_drop_lanes(struct storage *storage)
{
    if (storage == NULL) {
        return;
    }
    ASSERT(!storage->is_running);
    checkpoint_destroy(storage->checkpoint);
    storage->checkpoint = NULL;
    for (uint32_t i = 0; i < storage->lane_count; i++) {
        snapshot_destroy(storage->snapshots[i]);
    }
    storage->lane_count = 0;
}

void storage_close(struct storage *storage)
{
    if (storage == NULL) {
        return;
    }
    storage_drop_lanes(storage);
    if (storage->is_stuck) {
        return; /* the disk does not answer: the end of the process takes its requests back */
    }
    store_close(storage->store);
    disk_close(storage->disk);
    free(storage);
}

struct checkpoint *storage_checkpoint(struct storage *storage)
{
    return storage->checkpoint;
}

uint64_t storage_resumed_id(const struct storage *storage)
{
    return storage->resumed_id;
}
