/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms against exact percentiles of sorted samples, and the published bucket rule. */
#include "tests/dataplane/fake_job.h"

#include "dataplane/histogram.h"

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static struct histogram *make(void)
{
    struct histogram *histogram = malloc(sizeof(*histogram));
    histogram_init(histogram);
    return histogram;
}

static void test_bucket_when_value_is_small_then_is_exact(void **state)
{
    for (uint64_t value = 0; value < 2048; value++) {
        assert_int_equal(histogram_bucket_top(value), value);
    }
    assert_int_equal(histogram_bucket_top(2048), 2049);
    assert_int_equal(histogram_bucket_top(2049), 2049);
    assert_int_equal(histogram_bucket_top(4096), 4099);
    assert_int_equal(histogram_bucket_top(1000000), 1000447);
}

static void test_bucket_keeps_three_digits_over_the_whole_range(void **state)
{
    uint64_t random = 5;
    for (uint32_t i = 0; i < 100000; i++) {
        const uint64_t value =
            (fake_random(&random) << 20 ^ fake_random(&random)) >> (fake_random(&random) % 45);
        if (value > HISTOGRAM_VALUE_MAX) {
            continue;
        }
        const uint64_t top = histogram_bucket_top(value);
        assert_true(top >= value);
        assert_true((top - value) * 1000 <= value);
        assert_int_equal(histogram_bucket_top(top), top);
        assert_true(top == HISTOGRAM_VALUE_MAX || histogram_bucket_top(top + 1) > top);
    }
}

static void check_percentiles(uint64_t *values, uint32_t count, const struct histogram *histogram)
{
    const double parts[] = {0, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    qsort(values, count, sizeof(*values), compare);
    for (uint32_t i = 0; i < COUNT_OF(parts); i++) {
        uint32_t rank = (uint32_t)(parts[i] * count);
        rank += rank < parts[i] * count || rank == 0;
        const uint64_t exact = values[rank - 1];
        const uint64_t top = histogram_bucket_top(exact);
        const uint64_t max = values[count - 1];
        assert_int_equal(histogram_percentile(histogram, parts[i]), top < max ? top : max);
    }
}

static void test_percentiles_of_random_values_equal_the_sorted_ones(void **state)
{
    enum {
        COUNT = 20000
    };
    uint64_t *values = malloc(COUNT * sizeof(*values));
    struct histogram *histogram = make();
    uint64_t random = 11;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = fake_random(&random) >> (fake_random(&random) % 28);
        sum += values[i];
        histogram_record(histogram, values[i], 1);
    }
    check_percentiles(values, COUNT, histogram);
    assert_int_equal(histogram->total, COUNT);
    assert_int_equal(histogram->min, values[0]);
    assert_int_equal(histogram->max, values[COUNT - 1]);
    assert_true(histogram_mean(histogram) == (double)sum / COUNT);
    free(values);
    free(histogram);
}

static void test_merge_equals_recording_everything_in_one(void **state)
{
    struct histogram *one = make();
    struct histogram *two = make();
    struct histogram *all = make();
    uint64_t random = 23;
    for (uint32_t i = 0; i < 5000; i++) {
        const uint64_t value = fake_random(&random) >> (i % 30);
        histogram_record(i % 3 == 0 ? one : two, value, 1 + i % 4);
        histogram_record(all, value, 1 + i % 4);
    }
    histogram_merge(one, two);
    assert_memory_equal(one, all, sizeof(*all));
    free(one);
    free(two);
    free(all);
}

static void test_empty_and_too_large_values(void **state)
{
    struct histogram *histogram = make();
    assert_int_equal(histogram_percentile(histogram, 0.5), 0);
    assert_true(histogram_mean(histogram) == 0);
    histogram_record(histogram, UINT64_MAX / 4, 1);
    assert_int_equal(histogram->max, UINT64_MAX / 4);
    assert_int_equal(histogram_percentile(histogram, 0.5), HISTOGRAM_VALUE_MAX);
    free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_when_value_is_small_then_is_exact),
        cmocka_unit_test(test_bucket_keeps_three_digits_over_the_whole_range),
        cmocka_unit_test(test_percentiles_of_random_values_equal_the_sorted_ones),
        cmocka_unit_test(test_merge_equals_recording_everything_in_one),
        cmocka_unit_test(test_empty_and_too_large_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
