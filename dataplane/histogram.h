/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations in the manner of HdrHistogram: log-linear, three significant digits over
 * the whole range, fixed memory, exact counts. (Debian 12 has no C package of HdrHistogram, so this
 * is our own; the bucket rule is the published one, with 2,048 sub-buckets.)
 *
 *     value < 2,048                 one bucket a value
 *     2,048 <= value < 4,096        one bucket for 2 values; then for 4, and so on
 *
 * One lane writes, control may read and merge at any time: it sees each count whole, and at worst a
 * few records that are already counted in a bucket and not yet in the total. */
#pragma once

#include "base.h"

#define HISTOGRAM_SUB_BUCKETS 2048
#define HISTOGRAM_VALUE_MAX   ((UINT64_C(1) << 42) - 1) /* 73 minutes in ns; above counts as this */
#define HISTOGRAM_BUCKETS     (HISTOGRAM_SUB_BUCKETS + (42 - 11) * (HISTOGRAM_SUB_BUCKETS / 2))

struct histogram {
    uint64_t total;
    uint64_t sum;
    uint64_t min; /* UINT64_MAX while empty */
    uint64_t max; /* exact */
    uint64_t counts[HISTOGRAM_BUCKETS];
};

/* Empties a histogram.
 * threads  the writer's */
void histogram_init(struct histogram *histogram);

/* Counts a value `count` times.
 * threads  the writer's */
void histogram_record(struct histogram *histogram, uint64_t value, uint64_t count);

/* Adds everything that another one has counted.
 * threads  any for from, the writer's for into */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* Finds the value that `part` of the counted values do not exceed, as HdrHistogram does: the
 * largest value of the bucket that holds it, never above the exact maximum.
 * part     0 to 1, e.g. 0.999
 * returns  0 when empty
 * threads  any */
uint64_t histogram_percentile(const struct histogram *histogram, double part);

/* Tells the mean, 0 when empty.
 * threads  any */
double histogram_mean(const struct histogram *histogram);

/* The largest value that shares a bucket with this one.
 * threads  any */
uint64_t histogram_bucket_top(uint64_t value);
