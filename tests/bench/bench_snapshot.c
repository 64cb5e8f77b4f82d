/* SPDX-License-Identifier: Apache-2.0 */
/* What checkpoints cost: keyed updates of one lane with checkpoints taken back to back by a storage
 * thread, beside the same without, in turns of one run; then how fast a full checkpoint is written
 * and restored beside plain sequential O_DIRECT on the same file. 16-byte keys, 24-byte values.
 *
 *     bench_snapshot [KEY_COUNT [PATH [SECONDS]]]    default 1,000,000, in the current folder, 8 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/histogram.h"
#include "state/checkpoint.h"
#include "state/disk_uring.h"
#include "state/restore.h"
#include "state/table.h"

#define KEY_BYTES     16U
#define VALUE_BYTES   24U
#define PARCEL_COUNT  64U
#define SHARDS        256U
#define BUFFERS       256U
#define RATE_A_SECOND 100000U
#define WINDOW_NS     (UINT64_C(250) * 1000 * 1000)
#define FILE_BYTES    (UINT64_C(1536) << 20)
#define RAW_BYTES     (UINT64_C(512) << 20)
#define RAW_DEPTH     32U

struct lane {
    void *memory;
    struct arena *arena;
    struct heap *heap;
    struct table *table;
};

struct bench {
    struct lane lane;
    size_t arena_bytes;
    struct snapshot *snapshot;
    struct store *store;
    struct checkpoint *checkpoint;
    uint64_t key_count;
    uint64_t random;
    bool is_on;      /* atomic: the storage thread asks for one after the other */
    bool is_stopped; /* atomic */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *memory_map(void *context, size_t bytes)
{
    (void)context;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        die("no memory");
    }
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

static void memory_unmap(void *context, void *memory, size_t bytes)
{
    (void)context;
    (void)munmap(memory, bytes);
}

static struct span key_of(uint64_t number, uint8_t *into)
{
    for (uint32_t at = KEY_BYTES; at != 0; at--) {
        into[at - 1] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
    return (struct span){into, KEY_BYTES};
}

static uint64_t next_key(struct bench *bench)
{
    bench->random ^= bench->random >> 12;
    bench->random ^= bench->random << 25;
    bench->random ^= bench->random >> 27;
    return bench->random * UINT64_C(0x2545f4914f6cdd1d) % bench->key_count;
}

static void lane_open(struct lane *lane, size_t bytes)
{
    struct error error = {0};
    lane->memory = memory_map(NULL, bytes);
    const struct arena_config arena = {
        .memory = lane->memory, .bytes = bytes, .shard_count = SHARDS};
    const struct table_config table = {
        .name = "bench", .value_bytes = VALUE_BYTES, .key_bytes_max = KEY_BYTES};
    if (arena_create(&arena, &lane->arena, &error) != 0 ||
        heap_create(lane->arena, &lane->heap, &error) != 0 ||
        table_create(lane->heap, &table, &lane->table, &error) != 0) {
        die(error.text);
    }
}

static void lane_close(struct lane *lane, size_t bytes)
{
    table_destroy(lane->table);
    heap_destroy(lane->heap);
    memory_unmap(NULL, lane->memory, bytes);
}

static void fill(struct bench *bench)
{
    uint8_t bytes[KEY_BYTES];
    for (uint64_t number = 0; number < bench->key_count; number++) {
        const struct span key = key_of(number, bytes);
        bool created;
        if (table_insert(bench->lane.table, hash_bytes(key), key, &created) == NULL) {
            die("the arena is too small");
        }
    }
}

static void update(struct bench *bench, uint64_t number)
{
    uint8_t bytes[KEY_BYTES];
    const struct span key = key_of(number, bytes);
    uint64_t *value = table_find_write(bench->lane.table, hash_bytes(key), key);
    value[1]++;
}

/* What a lane does for checkpoints in a turn. */
static void snapshot_turn(struct bench *bench, uint64_t at_ns, bool is_busy)
{
    uint64_t id;
    struct snapshot_outcome outcome;
    if (snapshot_ordered(bench->snapshot, &id)) {
        snapshot_cut(bench->snapshot, id, (struct span){NULL, 0}, at_ns);
        snapshot_settle(bench->snapshot);
    }
    (void)snapshot_poll(bench->snapshot, at_ns, is_busy);
    (void)snapshot_outcome(bench->snapshot, &outcome);
}

static void *storage_run(void *context)
{
    struct bench *bench = context;
    while (!__atomic_load_n(&bench->is_stopped, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&bench->is_on, __ATOMIC_RELAXED) &&
            checkpoint_is_idle(bench->checkpoint)) {
            checkpoint_request(bench->checkpoint, false);
        }
        if (checkpoint_poll(bench->checkpoint, now_ns(), 20000) == 0) {
            (void)usleep(20); /* cores are shared here */
        }
    }
    return NULL;
}

/* Updates as fast as they go.
 * returns  a second */
static double closed_window(struct bench *bench)
{
    uint8_t bytes[PARCEL_COUNT][KEY_BYTES];
    struct span keys[PARCEL_COUNT];
    uint64_t hashes[PARCEL_COUNT];
    uint64_t count = 0;
    const uint64_t begin_ns = now_ns();
    uint64_t at_ns = begin_ns;
    while (at_ns - begin_ns < WINDOW_NS) {
        for (uint32_t index = 0; index < PARCEL_COUNT; index++) {
            keys[index] = key_of(next_key(bench), bytes[index]);
            hashes[index] = hash_bytes(keys[index]);
        }
        table_prefetch(bench->lane.table, hashes, PARCEL_COUNT);
        for (uint32_t index = 0; index < PARCEL_COUNT; index++) {
            uint64_t *value = table_find_write(bench->lane.table, hashes[index], keys[index]);
            value[1]++;
        }
        count += PARCEL_COUNT;
        snapshot_turn(bench, at_ns, true);
        at_ns = now_ns();
    }
    return (double)count * 1e9 / (double)(at_ns - begin_ns);
}

/* Updates at a rate, each timed from when it was due. */
static void open_window(struct bench *bench, struct histogram *histogram)
{
    const uint64_t begin_ns = now_ns();
    uint64_t due_ns = begin_ns;
    uint64_t at_ns = begin_ns;
    while (at_ns - begin_ns < WINDOW_NS) {
        const bool is_due = at_ns >= due_ns;
        if (is_due) {
            update(bench, next_key(bench));
            at_ns = now_ns();
            histogram_record(histogram, at_ns - due_ns, 1);
            due_ns += NANOSECONDS_PER_S / RATE_A_SECOND;
        }
        snapshot_turn(bench, at_ns, is_due);
        at_ns = now_ns();
    }
}

/* Lets an open checkpoint come to its end. */
static void quiet_down(struct bench *bench)
{
    const uint64_t begin_ns = now_ns();
    while (now_ns() - begin_ns < WINDOW_NS / 4U) {
        snapshot_turn(bench, now_ns(), false);
    }
}

static int double_order(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), double_order);
    return values[count / 2U];
}

static void updates_print(struct bench *bench, uint32_t rounds)
{
    double rates[2][256];
    struct histogram *latency = malloc(2 * sizeof(*latency));
    ASSERT(latency != NULL && rounds != 0 && rounds <= COUNT_OF(rates[0]));
    histogram_init(&latency[0]);
    histogram_init(&latency[1]);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t on = 0; on < 2; on++) {
            __atomic_store_n(&bench->is_on, on == 1, __ATOMIC_RELAXED);
            quiet_down(bench);
            rates[on][round] = closed_window(bench);
            open_window(bench, &latency[on]);
        }
    }
    __atomic_store_n(&bench->is_on, false, __ATOMIC_RELAXED);
    quiet_down(bench);
    const double off = median(rates[0], rounds);
    const double with = median(rates[1], rounds);
    (void)printf("%-34s %12s %12s %8s\n", "updates", "without", "checkpoints", "ratio");
    (void)printf("%-34s %12.0f %12.0f %8.3f\n", "a second, as fast as they go", off, with,
                 with / off);
    static const struct {
        const char *name;
        double share;
    } shares[] = {{"p50 us at 100,000 a second", 0.5},
                  {"p99 us", 0.99},
                  {"p99.9 us", 0.999},
                  {"p99.99 us", 0.9999}};
    for (uint32_t index = 0; index < COUNT_OF(shares); index++) {
        const double a = (double)histogram_percentile(&latency[0], shares[index].share) / 1e3;
        const double b = (double)histogram_percentile(&latency[1], shares[index].share) / 1e3;
        (void)printf("%-34s %12.2f %12.2f %8.3f\n", shares[index].name, a, b, b / a);
    }
    free(latency);
}

/* Sums up the reports that the coordinator has made. */
static void reports_print(struct bench *bench)
{
    struct checkpoint_report report;
    uint64_t count = 0;
    uint64_t pages = 0;
    uint64_t preimages = 0;
    uint64_t duration_ns = 0;
    while (checkpoint_report(bench->checkpoint, &report)) {
        count += report.result == CHECKPOINT_COMPLETE;
        pages += report.pages;
        preimages += report.preimages;
        duration_ns += report.duration_ns;
    }
    const struct checkpoint_counters *counters = checkpoint_counters(bench->checkpoint);
    count = count == 0 ? 1 : count;
    (void)printf(
        "checkpoints: %lu complete, %lu failed; the last ones: %.1f ms, %lu pages (%.1f %% "
        "of all), %lu of them staged by the hook\n",
        (unsigned long)counters->complete, (unsigned long)counters->failed,
        (double)duration_ns / 1e6 / (double)count, (unsigned long)(pages / count),
        100.0 * (double)pages / (double)count / (double)bench->lane.arena->counters.pages_used,
        (unsigned long)(preimages / count));
}

/* Plain sequential requests of an extent's size.
 * returns  bytes a second */
static double raw(struct disk *disk, uint32_t operation, uint8_t *buffers)
{
    struct disk_completion done[RAW_DEPTH];
    uint64_t offset = 0;
    uint64_t left = RAW_BYTES / EXTENT_BYTES;
    const uint64_t begin_ns = now_ns();
    while (left != 0) {
        struct disk_request request = {.operation = operation,
                                       .bytes = EXTENT_BYTES,
                                       .offset = offset,
                                       .buffer = buffers +
                                                 offset / EXTENT_BYTES % RAW_DEPTH * EXTENT_BYTES};
        while (offset != RAW_BYTES && disk->in_flight < RAW_DEPTH && disk_submit(disk, &request)) {
            offset += EXTENT_BYTES;
            request.offset = offset;
        }
        const uint32_t got = disk_reap(disk, done, RAW_DEPTH, NANOSECONDS_PER_S);
        for (uint32_t index = 0; index < got; index++) {
            ASSERT(done[index].result == EXTENT_BYTES);
        }
        left -= got;
    }
    const struct disk_request flush = {.operation = DISK_FLUSH};
    if (operation == DISK_WRITE && disk_submit(disk, &flush)) {
        while (disk_reap(disk, done, 1, NANOSECONDS_PER_S) == 0) {
        }
        ASSERT(done[0].result == 0);
    }
    return (double)RAW_BYTES * 1e9 / (double)(now_ns() - begin_ns);
}

/* Takes one full checkpoint with nothing else to do.
 * returns  bytes a second */
static double full_write(struct bench *bench)
{
    struct checkpoint_report report;
    checkpoint_request(bench->checkpoint, false);
    while (!checkpoint_report(bench->checkpoint, &report)) {
        snapshot_turn(bench, now_ns(), false);
    }
    if (report.result != CHECKPOINT_COMPLETE) {
        die(report.reason);
    }
    return (double)report.bytes * 1e9 / (double)report.duration_ns;
}

static uint32_t owner(void *context, const char *name, uint32_t shard)
{
    (void)context;
    (void)name;
    (void)shard;
    return 0;
}

static uint64_t clock_of(void *context)
{
    (void)context;
    return now_ns();
}

/* returns  bytes a second of a restore in place */
static double restore(struct bench *bench, uint64_t id)
{
    struct lane lane;
    struct restore_report report;
    struct error error = {0};
    lane_open(&lane, bench->arena_bytes);
    const struct restore_config config = {.store = bench->store,
                                          .id = id,
                                          .arenas = &lane.arena,
                                          .lane_count = 1,
                                          .owner = owner,
                                          .map = memory_map,
                                          .unmap = memory_unmap};
    if (restore_state(&config, clock_of, &report, &error) != 0) {
        die(error.text);
    }
    ASSERT(report.is_in_place && table_counters(lane.table)->entries == bench->key_count);
    lane_close(&lane, bench->arena_bytes);
    return (double)report.bytes * 1e9 / (double)report.duration_ns;
}

static void coordinator_start(struct bench *bench, uint32_t full_every, pthread_t *thread)
{
    struct error error = {0};
    const struct checkpoint_config config = {.store = bench->store,
                                             .lanes = &bench->snapshot,
                                             .lane_count = 1,
                                             .shard_count = SHARDS,
                                             .timeout_ns = 60 * NANOSECONDS_PER_S,
                                             .full_every = full_every,
                                             .failures_max = 3,
                                             .first_id = store_next_id(bench->store),
                                             .label = "bench"};
    bench->is_stopped = false;
    if (checkpoint_create(&config, &bench->checkpoint, &error) != 0 ||
        pthread_create(thread, NULL, storage_run, bench) != 0) {
        die(error.text);
    }
}

static void coordinator_stop(struct bench *bench, pthread_t thread)
{
    quiet_down(bench);
    __atomic_store_n(&bench->is_stopped, true, __ATOMIC_RELEASE);
    (void)pthread_join(thread, NULL);
    checkpoint_destroy(bench->checkpoint);
}

static void speeds_print(const char *what, double sequential, double ours)
{
    (void)printf("%-34s %12.0f %12.0f %8.3f   MB a second: sequential, ours\n", what,
                 sequential / 1e6, ours / 1e6, ours / sequential);
}

int main(int argc, char **argv)
{
    struct bench bench = {.random = 88172645463325252U};
    bench.key_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const char *path = argc > 2 ? argv[2] : "bench_snapshot.ckpt";
    const uint32_t seconds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 8;
    bench.arena_bytes = ((size_t)64 << 20) + bench.key_count * 84U;
    bench.arena_bytes = (bench.arena_bytes + ((size_t)2 << 20) - 1) & ~(((size_t)2 << 20) - 1);
    lane_open(&bench.lane, bench.arena_bytes);
    fill(&bench);

    struct error error = {0};
    struct disk *disk = NULL;
    const struct disk_uring_config disk_config = {.path = path,
                                                  .bytes = FILE_BYTES + bench.key_count / 1000000U *
                                                                            (UINT64_C(512) << 20),
                                                  .depth_max = RAW_DEPTH};
    if (disk_uring_open(&disk_config, &disk, &error) != 0) {
        die(error.text);
    }
    struct snapshot_config config = {
        .arena = bench.lane.arena, .buffer_count = BUFFERS, .pages_a_turn = 2};
    config.memory = memory_map(NULL, snapshot_memory_bytes(&config));
    if (snapshot_create(&config, &bench.snapshot, &error) != 0) {
        die(error.text);
    }
    const struct span_mut buffers = snapshot_buffers(bench.snapshot);
    (void)disk_register_memory(disk, buffers.data, buffers.bytes);
    const struct store_format format = {.force = true};
    if (store_format(disk, &format, NULL, NULL, &error) != 0) {
        die(error.text);
    }
    const double raw_write = raw(disk, DISK_WRITE, buffers.data);
    const double raw_read = raw(disk, DISK_READ, buffers.data);
    if (store_format(disk, &format, NULL, NULL, &error) != 0) {
        die(error.text);
    }
    const struct store_config store = {.disk = disk, .keep_count = STORE_KEEP_MIN};
    if (store_open(&store, &bench.store, NULL, &error) != 0) {
        die(error.text);
    }
    pthread_t thread;
    (void)printf("%lu keys, %.1f MB of state\n", (unsigned long)bench.key_count,
                 (double)bench.lane.arena->counters.pages_used * ARENA_PAGE_BYTES / 1e6);
    coordinator_start(&bench, 16, &thread);
    updates_print(&bench, seconds * 1000U / 2U / 500U);
    reports_print(&bench);
    coordinator_stop(&bench, thread);
    double writes[5];
    double reads[5];
    coordinator_start(&bench, 1, &thread);
    for (uint32_t round = 0; round < COUNT_OF(writes); round++) {
        writes[round] = full_write(&bench);
    }
    coordinator_stop(&bench, thread);
    for (uint32_t round = 0; round < COUNT_OF(reads); round++) {
        reads[round] = restore(&bench, store_next_id(bench.store) - 1U);
    }
    speeds_print("full checkpoint", raw_write, median(writes, COUNT_OF(writes)));
    speeds_print("restore in place", raw_read, median(reads, COUNT_OF(reads)));
    store_close(bench.store);
    disk_close(disk);
    snapshot_destroy(bench.snapshot);
    lane_close(&bench.lane, bench.arena_bytes);
    (void)unlink(path);
    return 0;
}
