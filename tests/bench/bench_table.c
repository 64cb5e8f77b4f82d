/* SPDX-License-Identifier: Apache-2.0 */
/* The table at growing sizes: 16-byte keys, 24-byte values, one lane. Prints nanoseconds per lookup
 * and update, one by one and with table_prefetch over parcels of 64, the bytes per entry beyond key
 * and value, and the slowest single inserts beside the slowest gaps of a loop that does nothing,
 * which is what the machine itself adds.
 *
 *     bench_table [KEY_COUNT_MAX]     default 1,000,000 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "state/table.h"

#define KEY_BYTES    16U
#define VALUE_BYTES  24U
#define PARCEL_COUNT 64U
#define BUCKET_COUNT 64U

/* A histogram by powers of two with the slowest kept exactly. */
struct spikes {
    uint64_t by_log2[BUCKET_COUNT];
    uint64_t slowest_ns;
    uint64_t spent_ns;
};

struct bench {
    void *memory;
    size_t bytes;
    struct arena *arena;
    struct heap *heap;
    struct table *table;
    uint64_t random;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(struct bench *bench)
{
    bench->random ^= bench->random >> 12;
    bench->random ^= bench->random << 25;
    bench->random ^= bench->random >> 27;
    return bench->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* A key that looks like a card number: 16 digits. */
static struct span key_of(uint64_t number, uint8_t *into)
{
    for (uint32_t at = KEY_BYTES; at != 0; at--) {
        into[at - 1] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
    return (struct span){into, KEY_BYTES};
}

static void spikes_add(struct spikes *spikes, uint64_t took_ns)
{
    spikes->by_log2[63 - __builtin_clzll(took_ns | 1)]++;
    spikes->spent_ns += took_ns;
    spikes->slowest_ns = took_ns > spikes->slowest_ns ? took_ns : spikes->slowest_ns;
}

/* Laps of at least 1 << log2 nanoseconds, a second of the time spent in laps: an insert is longer
 * than an empty lap, so it is hit more often by what the machine does. */
static double spikes_rate(const struct spikes *spikes, uint32_t log2)
{
    uint64_t count = 0;
    for (uint32_t bucket = log2; bucket < BUCKET_COUNT; bucket++) {
        count += spikes->by_log2[bucket];
    }
    return (double)count * 1e9 / (double)(spikes->spent_ns | 1);
}

static void open_bench(struct bench *bench, uint64_t key_count)
{
    *bench = (struct bench){.random = 88172645463325252U};
    bench->bytes = ((size_t)64 << 20) + key_count * 84U;
    bench->bytes = (bench->bytes + ((size_t)2 << 20) - 1) & ~(((size_t)2 << 20) - 1);
    bench->memory =
        mmap(NULL, bench->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bench->memory == MAP_FAILED) {
        exit(1);
    }
    (void)madvise(bench->memory, bench->bytes, MADV_HUGEPAGE);
    const struct arena_config config = {
        .memory = bench->memory, .bytes = bench->bytes, .shard_count = 256};
    const struct table_config table = {
        .name = "bench", .value_bytes = VALUE_BYTES, .key_bytes_max = KEY_BYTES};
    struct error error = {0};
    if (arena_create(&config, &bench->arena, &error) != 0 ||
        heap_create(bench->arena, &bench->heap, &error) != 0 ||
        table_create(bench->heap, &table, &bench->table, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

static void close_bench(struct bench *bench)
{
    table_destroy(bench->table);
    heap_destroy(bench->heap);
    (void)munmap(bench->memory, bench->bytes);
}

/* Fills the table, timing every insert, and as many empty laps of the timer for comparison. */
static double fill(struct bench *bench, uint64_t key_count, struct spikes *inserts,
                   struct spikes *machine)
{
    uint8_t bytes[KEY_BYTES];
    uint64_t spent_ns = 0;
    for (uint64_t number = 0; number < key_count; number++) {
        const struct span key = key_of(number, bytes);
        const uint64_t begin = now_ns();
        bool created;
        uint64_t *value = table_insert(bench->table, hash_bytes(key), key, &created);
        const uint64_t end = now_ns();
        if (value == NULL) {
            (void)fprintf(stderr, "arena exhausted at %lu keys\n", (unsigned long)number);
            exit(1);
        }
        value[0] = number;
        spikes_add(inserts, end - begin);
        spent_ns += end - begin;
        spikes_add(machine, now_ns() - end);
    }
    return (double)spent_ns / (double)key_count;
}

/* Random lookups one by one, or in parcels after table_prefetch.
 * returns  nanoseconds each */
static double probe(struct bench *bench, uint64_t key_count, bool is_update, bool is_bulk)
{
    const uint64_t laps = 2000000 / PARCEL_COUNT;
    uint8_t bytes[PARCEL_COUNT][KEY_BYTES];
    struct span keys[PARCEL_COUNT];
    uint64_t hashes[PARCEL_COUNT];
    uint64_t sum = 0;
    uint64_t spent_ns = 0;
    for (uint64_t lap = 0; lap < laps; lap++) {
        for (uint32_t index = 0; index < PARCEL_COUNT; index++) {
            keys[index] = key_of(next_random(bench) % key_count, bytes[index]);
        }
        const uint64_t begin = now_ns();
        for (uint32_t index = 0; index < PARCEL_COUNT; index++) {
            hashes[index] = hash_bytes(keys[index]);
        }
        if (is_bulk) {
            table_prefetch(bench->table, hashes, PARCEL_COUNT);
        }
        for (uint32_t index = 0; index < PARCEL_COUNT; index++) {
            if (is_update) {
                uint64_t *value = table_find_write(bench->table, hashes[index], keys[index]);
                value[1] += 1;
            } else {
                sum += *(const uint64_t *)table_find(bench->table, hashes[index], keys[index]);
            }
        }
        spent_ns += now_ns() - begin;
    }
    __asm__ volatile("" ::"r"(sum));
    return (double)spent_ns / (double)(laps * PARCEL_COUNT);
}

int main(int argc, char **argv)
{
    const uint64_t key_count_max = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const uint64_t counts[] = {1000, 100000, 1000000, 10000000, 20000000, 100000000};
    (void)printf("%11s %8s | %8s %8s | %8s %8s | %8s | %9s %8s %8s | %9s %8s %8s\n", "keys",
                 "insert", "lookup", "update", "lookup64", "update64", "over B/e", "worst us",
                 ">16us/s", ">65us/s", "empty: us", ">16us/s", ">65us/s");
    for (size_t index = 0; index < COUNT_OF(counts) && counts[index] <= key_count_max; index++) {
        struct bench bench;
        struct spikes inserts = {0};
        struct spikes machine = {0};
        const uint64_t count = counts[index];
        open_bench(&bench, count);
        const double insert_ns = fill(&bench, count, &inserts, &machine);
        const double lookup_ns = probe(&bench, count, false, false);
        const double update_ns = probe(&bench, count, true, false);
        const double lookup_bulk_ns = probe(&bench, count, false, true);
        const double update_bulk_ns = probe(&bench, count, true, true);
        const double overhead =
            (double)bench.arena->counters.pages_used * ARENA_PAGE_BYTES / (double)count -
            KEY_BYTES - VALUE_BYTES;
        (void)printf("%11lu %8.0f | %8.0f %8.0f | %8.0f %8.0f | %8.1f | %9.1f %8.0f %8.0f | "
                     "%9.1f %8.0f %8.0f\n",
                     (unsigned long)count, insert_ns, lookup_ns, update_ns, lookup_bulk_ns,
                     update_bulk_ns, overhead, (double)inserts.slowest_ns / 1000.0,
                     spikes_rate(&inserts, 14), spikes_rate(&inserts, 16),
                     (double)machine.slowest_ns / 1000.0, spikes_rate(&machine, 14),
                     spikes_rate(&machine, 16));
        close_bench(&bench);
    }
    return 0;
}
