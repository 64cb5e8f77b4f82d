/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets by the position of the highest bit. Counters are relaxed atomics: the writer is alone, a
 * reader only needs each number whole. */
#include "dataplane/histogram.h"

#define HALF      (HISTOGRAM_SUB_BUCKETS / 2)
#define HALF_BITS 10

_Static_assert(HALF == 1 << HALF_BITS, "bucket rule");

static uint64_t load(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

static void store(uint64_t *into, uint64_t value)
{
    __atomic_store_n(into, value, __ATOMIC_RELAXED);
}

/* How many low bits a bucket of this size of value ignores. */
static uint32_t shift_of(uint64_t value)
{
    const uint32_t highest = 63 - (uint32_t)__builtin_clzll(value | (HISTOGRAM_SUB_BUCKETS - 1));
    return highest - HALF_BITS;
}

static uint32_t bucket_of(uint64_t value)
{
    const uint32_t shift = shift_of(value);
    const uint32_t bucket = shift * HALF + (uint32_t)(value >> shift);
    ASSERT_SLOW(bucket < HISTOGRAM_BUCKETS);
    return bucket;
}

/* The largest value of a bucket: the inverse of bucket_of. */
static uint64_t top_of_bucket(uint32_t bucket)
{
    if (bucket < HISTOGRAM_SUB_BUCKETS) {
        return bucket;
    }
    const uint32_t shift = bucket / HALF - 1;
    const uint64_t part = bucket - shift * HALF;
    return ((part + 1) << shift) - 1;
}

void histogram_init(struct histogram *histogram)
{
    memset(histogram, 0, sizeof(*histogram));
    histogram->min = UINT64_MAX;
}

void histogram_record(struct histogram *histogram, uint64_t value, uint64_t count)
{
    ASSERT_SLOW(histogram != NULL);
    const uint64_t kept = value > HISTOGRAM_VALUE_MAX ? HISTOGRAM_VALUE_MAX : value;
    uint64_t *bucket = &histogram->counts[bucket_of(kept)];
    store(bucket, load(bucket) + count);
    store(&histogram->sum, load(&histogram->sum) + value * count);
    if (value < load(&histogram->min)) {
        store(&histogram->min, value);
    }
    if (value > load(&histogram->max)) {
        store(&histogram->max, value);
    }
    store(&histogram->total, load(&histogram->total) + count);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    ASSERT_SLOW(into != NULL);
    ASSERT_SLOW(from != NULL);
    ASSERT(into != from);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        store(&into->counts[i], load(&into->counts[i]) + load(&from->counts[i]));
    }
    store(&into->sum, load(&into->sum) + load(&from->sum));
    store(&into->total, load(&into->total) + load(&from->total));
    if (load(&from->min) < load(&into->min)) {
        store(&into->min, load(&from->min));
    }
    if (load(&from->max) > load(&into->max)) {
        store(&into->max, load(&from->max));
    }
}

uint64_t histogram_percentile(const struct histogram *histogram, double part)
{
    ASSERT_SLOW(histogram != NULL);
    ASSERT(part >= 0 && part <= 1);
    const uint64_t total = load(&histogram->total);
    const uint64_t max = load(&histogram->max);
    if (total == 0) {
        return 0;
    }
    uint64_t wanted = (uint64_t)(part * (double)total);
    if ((double)wanted < part * (double)total || wanted == 0) {
        wanted++;
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += load(&histogram->counts[i]);
        if (seen >= wanted) {
            const uint64_t top = top_of_bucket(i);
            return top < max ? top : max;
        }
    }
    return max;
}

double histogram_mean(const struct histogram *histogram)
{
    const uint64_t total = load(&histogram->total);
    return total == 0 ? 0 : (double)load(&histogram->sum) / (double)total;
}

uint64_t histogram_bucket_top(uint64_t value)
{
    const uint64_t kept = value > HISTOGRAM_VALUE_MAX ? HISTOGRAM_VALUE_MAX : value;
    return top_of_bucket(bucket_of(kept));
}
