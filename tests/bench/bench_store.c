/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint to a file and reading it back, as MB/s, beside plain sequential O_DIRECT
 * requests of the same size at the same depth in the same file, in turns. Checksums, manifest,
 * flushes and root are in the store's time; so is the flush in the plain writer's. What else the
 * machine does shows in the spread of rounds: the ratio is that of the medians.
 *
 *     bench_store [PATH [MIB]]     default: a file in this folder, 1024 MiB; it is removed */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "state/disk_uring.h"
#include "state/store.h"

#define DEPTH  32U
#define ROUNDS 5U

enum row {
    ROW_PLAIN_WRITE = 0,
    ROW_STORE_WRITE,
    ROW_PLAIN_READ,
    ROW_STORE_READ,
    ROW_COUNT
};

struct bench {
    struct disk *disk;
    struct store *store;
    uint8_t *buffers; /* DEPTH extents, registered */
    uint32_t extent_count;
    double rates[ROW_COUNT][ROUNDS];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static void stop(const char *what, const struct error *error)
{
    (void)fprintf(stderr, "bench_store: %s: %s\n", what, error->text);
    exit(1);
}

static double rate(const struct bench *bench, uint64_t started_ns)
{
    const double seconds = (double)(now_ns() - started_ns) / 1e9;
    return (double)bench->extent_count * EXTENT_BYTES / 1e6 / seconds;
}

/* Full extents of pages with bytes that no disk compresses. */
static void fill_buffers(struct bench *bench)
{
    uint64_t word = 1;
    for (size_t at = 0; at < (size_t)DEPTH * EXTENT_BYTES; at += 8) {
        word = word * UINT64_C(6364136223846793005) + 1442695040888963407;
        memcpy(bench->buffers + at, &word, sizeof(word));
    }
    for (uint32_t buffer = 0; buffer < DEPTH; buffer++) {
        uint8_t *extent = bench->buffers + (size_t)buffer * EXTENT_BYTES;
        memset(extent, 0, EXTENT_HEAD_BYTES);
        for (uint32_t item = 0; item < EXTENT_IMAGES_MAX; item++) {
            const struct extent_page page = {.page = item + 1, .kind = ARENA_PAGE_HEAP};
            memcpy(extent + sizeof(struct extent_header) + item * sizeof(page), &page,
                   sizeof(page));
        }
    }
}

static void set_head(uint8_t *extent, uint64_t id, uint32_t number)
{
    const struct extent_header head = {.magic = EXTENT_MAGIC,
                                       .version = EXTENT_VERSION,
                                       .kind = EXTENT_PAGES,
                                       .checkpoint = id,
                                       .number = number,
                                       .item_count = EXTENT_IMAGES_MAX,
                                       .image_count = EXTENT_IMAGES_MAX};
    memcpy(extent, &head, sizeof(head));
}

/* The file's slots one by one; what the store had written there is gone. */
static double run_plain(struct bench *bench, enum disk_operation operation)
{
    const uint64_t started_ns = now_ns();
    struct disk_completion done[DEPTH];
    uint32_t idle[DEPTH], idle_count = DEPTH, finished = 0, next = 0;
    for (uint32_t index = 0; index < DEPTH; index++) {
        idle[index] = index;
    }
    while (finished < bench->extent_count) {
        while (idle_count != 0 && next < bench->extent_count) {
            const uint32_t buffer = idle[--idle_count];
            const struct disk_request request = {.operation = operation,
                                                 .bytes = EXTENT_BYTES,
                                                 .offset = (uint64_t)next++ * EXTENT_BYTES,
                                                 .buffer =
                                                     bench->buffers + (size_t)buffer * EXTENT_BYTES,
                                                 .tag = buffer};
            ASSERT(disk_submit(bench->disk, &request));
        }
        const uint32_t got = disk_reap(bench->disk, done, DEPTH, NANOSECONDS_PER_S);
        for (uint32_t index = 0; index < got; index++) {
            ASSERT(done[index].result == EXTENT_BYTES);
            idle[idle_count++] = (uint32_t)done[index].tag;
        }
        finished += got;
    }
    if (operation == DISK_WRITE) {
        const struct disk_request flush = {.operation = DISK_FLUSH};
        ASSERT(disk_submit(bench->disk, &flush));
        while (disk_reap(bench->disk, done, 1, NANOSECONDS_PER_S) == 0) {
        }
        ASSERT(done[0].result == 0);
    }
    return rate(bench, started_ns);
}

static void open_store(struct bench *bench)
{
    struct error error = {0};
    const struct store_format format = {.host_identity = 1, .force = true};
    const struct store_config config = {.disk = bench->disk, .keep_count = STORE_KEEP_MIN};
    if (store_format(bench->disk, &format, NULL, NULL, &error) != 0 ||
        store_open(&config, &bench->store, NULL, &error) != 0) {
        stop("the store", &error);
    }
}

static double run_store_write(struct bench *bench)
{
    struct error error = {0};
    const struct store_checkpoint about = {.id = store_next_id(bench->store), .lane_count = 1};
    uint64_t tags[DEPTH];
    uint32_t idle[DEPTH], idle_count = DEPTH, next = 0, count;
    for (uint32_t index = 0; index < DEPTH; index++) {
        idle[index] = index;
    }
    const uint64_t started_ns = now_ns();
    if (store_begin(bench->store, &about, &error) != 0) {
        stop("begin", &error);
    }
    enum store_state state = STORE_WRITING;
    bool is_committed = false;
    while (state == STORE_WRITING || state == STORE_COMMITTING) {
        while (idle_count != 0 && next < bench->extent_count) {
            uint8_t *extent = bench->buffers + (size_t)idle[idle_count - 1] * EXTENT_BYTES;
            set_head(extent, about.id, next);
            if (store_append(bench->store, extent, idle[idle_count - 1]) != 0) {
                break;
            }
            idle_count--;
            next++;
        }
        if (next == bench->extent_count && !is_committed) {
            store_commit(bench->store, 0);
            is_committed = true;
        }
        state = store_poll(bench->store, tags, DEPTH, &count, NANOSECONDS_PER_S);
        for (uint32_t index = 0; index < count; index++) {
            idle[idle_count++] = (uint32_t)tags[index];
        }
    }
    if (state != STORE_DURABLE) {
        stop("write", store_failure(bench->store));
    }
    return rate(bench, started_ns);
}

/* What a restore does at least: copies every page to its place. */
static int copy_pages(void *context, const struct store_checkpoint *about, const uint8_t *extent)
{
    ASSERT(about->id != 0);
    memcpy(context, extent + EXTENT_HEAD_BYTES, (size_t)EXTENT_IMAGES_MAX * ARENA_PAGE_BYTES);
    return 0;
}

static double run_store_read(struct bench *bench)
{
    struct error error = {0};
    struct store_checkpoint newest;
    ASSERT(store_list(bench->store, &newest, 1) >= 1);
    const uint64_t started_ns = now_ns();
    if (store_read(bench->store, newest.id, UINT32_MAX, 0, copy_pages, bench->buffers, &error) !=
        0) {
        stop("read", &error);
    }
    return rate(bench, started_ns);
}

static int compare(const void *one, const void *other)
{
    const double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

static double median(double *rates)
{
    qsort(rates, ROUNDS, sizeof(*rates), compare);
    return rates[ROUNDS / 2];
}

static void print_pair(struct bench *bench, const char *name, enum row plain, enum row ours)
{
    const double base = median(bench->rates[plain]), mine = median(bench->rates[ours]);
    (void)printf("%-6s plain %6.0f MB/s (%.0f to %.0f)   store %6.0f MB/s (%.0f to %.0f)   "
                 "ratio %.2f\n",
                 name, base, bench->rates[plain][0], bench->rates[plain][ROUNDS - 1], mine,
                 bench->rates[ours][0], bench->rates[ours][ROUNDS - 1], mine / base);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "bench_store.file";
    const uint32_t mib = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1024;
    struct bench bench = {.extent_count = mib * 4};
    struct error error = {0};
    /* Two checkpoints and the one being written. */
    const struct disk_uring_config config = {
        .path = path, .bytes = ((uint64_t)mib * 3 + 64) << 20, .depth_max = DEPTH + 2};
    if (disk_uring_open(&config, &bench.disk, &error) != 0) {
        stop(path, &error);
    }
    bench.buffers = aligned_alloc((size_t)2 << 20, (size_t)DEPTH * EXTENT_BYTES);
    ASSERT(bench.buffers != NULL);
    (void)madvise(bench.buffers, (size_t)DEPTH * EXTENT_BYTES, MADV_HUGEPAGE);
    (void)disk_register_memory(bench.disk, bench.buffers, (size_t)DEPTH * EXTENT_BYTES);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        fill_buffers(&bench);
        bench.rates[ROW_PLAIN_WRITE][round] = run_plain(&bench, DISK_WRITE);
        bench.rates[ROW_PLAIN_READ][round] = run_plain(&bench, DISK_READ);
        open_store(&bench);
        fill_buffers(&bench);
        bench.rates[ROW_STORE_WRITE][round] = run_store_write(&bench);
        bench.rates[ROW_STORE_READ][round] = run_store_read(&bench);
        store_close(bench.store);
        bench.store = NULL;
    }
    (void)printf("%u MiB, %u requests of %u KiB at once, %u rounds, medians\n", mib, DEPTH,
                 EXTENT_BYTES >> 10, ROUNDS);
    print_pair(&bench, "write", ROW_PLAIN_WRITE, ROW_STORE_WRITE);
    print_pair(&bench, "read", ROW_PLAIN_READ, ROW_STORE_READ);
    disk_close(bench.disk);
    (void)unlink(path);
    free(bench.buffers);
    return 0;
}
