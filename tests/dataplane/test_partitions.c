/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions of a table on one lane: numbers, ends, and the watermark over those that are
 * neither idle nor ended. */
#include "dataplane/partitions.h"
#include "tests/dataplane/fake_job.h"

/* A record source that only lists. */
struct lister {
    struct record_source base;
    const struct record_partition *rows;
    uint32_t count;
    bool complete;
};

static uint32_t list(struct record_source *self, struct record_partition *into, uint32_t max,
                     bool *complete)
{
    const struct lister *lister = (const struct lister *)self;
    for (uint32_t i = 0; i < lister->count && i < max; i++) {
        into[i] = lister->rows[i];
    }
    *complete = lister->complete;
    return lister->count;
}

static const struct record_source_ops listing = {.partitions = list};
static const struct record_source_ops silent = {.partitions = NULL};

static void test_find_when_new_then_numbered_in_order_and_known_again(void **state)
{
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 4, NULL), 0);
    assert_int_equal(partitions_find(&partitions, 0, 7), 0);
    assert_int_equal(partitions_find(&partitions, 0, 3), 1);
    assert_int_equal(partitions_find(&partitions, 1, 7), 2);
    assert_int_equal(partitions_find(&partitions, 0, 7), 0);
    assert_int_equal(partitions_find(&partitions, 1, 7), 2);
    assert_int_equal(partitions_find(&partitions, 0, 3), 1);
    assert_int_equal(partitions.count, 3);
    assert_int_equal(partitions.places[2].topic, 1);
    assert_int_equal(partitions.places[2].partition, 7);
    assert_int_equal(partitions.places[2].resume_offset, -1);
    partitions_fini(&partitions);
}

static void test_find_when_full_then_refused_and_the_old_ones_stay(void **state)
{
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 2, NULL), 0);
    assert_int_equal(partitions_find(&partitions, 0, 0), 0);
    assert_int_equal(partitions_find(&partitions, 0, 1), 1);
    assert_int_equal(partitions_find(&partitions, 0, 2), UINT32_MAX);
    assert_int_equal(partitions.count, 2);
    assert_int_equal(partitions_find(&partitions, 0, 1), 1);
    partitions_fini(&partitions);
}

static void test_end_when_the_slowest_ends_then_the_watermark_is_the_next(void **state)
{
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 3, NULL), 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(partitions_find(&partitions, 0, i), i);
    }
    assert_false(watermark_move(&partitions.watermark, 0, 500));
    assert_false(watermark_move(&partitions.watermark, 1, 100));
    assert_true(watermark_move(&partitions.watermark, 2, 300));
    assert_int_equal(partitions.watermark.value_ms, 100);
    assert_true(partitions_end(&partitions, 1));
    assert_int_equal(partitions.watermark.value_ms, 300);
    assert_int_equal(partitions.ended_count, 1);
    assert_false(partitions_end(&partitions, 1));
    assert_int_equal(partitions.ended_count, 1);
    assert_true(partitions_end(&partitions, 2));
    assert_int_equal(partitions.watermark.value_ms, 500);
    assert_true(partitions_end(&partitions, 0));
    assert_int_equal(partitions.watermark.value_ms, WATERMARK_MAX);
    partitions_fini(&partitions);
}

static void test_list_when_source_grows_then_only_new_ones_are_added(void **state)
{
    static const struct record_partition rows[] = {{0, 4}, {0, 8}, {1, 0}};
    struct lister lister = {.base.ops = &listing, .rows = rows, .count = 2};
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 8, NULL), 0);
    assert_int_equal(partitions_find(&partitions, 0, 8), 0);
    assert_false(partitions_list(&partitions, &lister.base));
    assert_int_equal(partitions.count, 2);
    assert_int_equal(partitions.places[1].partition, 4);
    lister.count = 3;
    lister.complete = true;
    assert_true(partitions_list(&partitions, &lister.base));
    assert_int_equal(partitions.count, 3);
    assert_int_equal(partitions.places[2].topic, 1);
    partitions_fini(&partitions);
}

static void test_list_when_more_than_fit_then_cut_at_the_limit(void **state)
{
    static const struct record_partition rows[] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
    struct lister lister = {.base.ops = &listing, .rows = rows, .count = 4, .complete = true};
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 3, NULL), 0);
    assert_true(partitions_list(&partitions, &lister.base));
    assert_int_equal(partitions.count, 3);
    partitions_fini(&partitions);
}

static void test_list_when_source_cannot_list_then_complete_and_empty(void **state)
{
    struct lister lister = {.base.ops = &silent};
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 1, NULL), 0);
    assert_true(partitions_list(&partitions, &lister.base));
    assert_int_equal(partitions.count, 0);
    partitions_fini(&partitions);
}

static struct partition_recalled recalled_of(uint32_t partition, int64_t next_offset,
                                             int64_t watermark_ms)
{
    return (struct partition_recalled){
        .topic = 1,
        .facts = {.partition = partition,
                  .next_offset = next_offset,
                  .watermark_ms = watermark_ms,
                  .resume_rows = 2,
                  .leader_epoch = 4,
                  .topic = "t"},
    };
}

static void test_find_when_recalled_then_goes_on_from_the_furthest_place(void **state)
{
    struct partitions partitions;
    assert_int_equal(partitions_init(&partitions, 4, NULL), 0);
    struct partition_recalled *recalled = calloc(3, sizeof(*recalled));
    recalled[0] = recalled_of(7, 50, 500);
    recalled[1] = recalled_of(7, 80, 800);
    recalled[2] = recalled_of(8, 9, 90);
    recalled[2].facts.has_ended = 1;
    partitions_recall(&partitions, recalled, 3);
    assert_int_equal(partitions_find(&partitions, 1, 7), 0);
    assert_int_equal(partitions.places[0].resume_offset, 80);
    assert_int_equal(partitions.places[0].resume_rows, 2);
    assert_int_equal(partitions.places[0].leader_epoch, 4);
    assert_int_equal(partitions.watermark.senders[0].value_ms, 800);
    assert_true(recalled[0].is_taken && recalled[1].is_taken && !recalled[2].is_taken);
    assert_int_equal(partitions_find(&partitions, 1, 8), 1);
    assert_int_equal(partitions.ended_count, 1);
    assert_int_equal(partitions.watermark.senders[1].value_ms, WATERMARK_MAX);
    assert_int_equal(partitions_find(&partitions, 0, 7), 2);
    assert_int_equal(partitions.places[2].resume_offset, -1);
    partitions_fini(&partitions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_when_new_then_numbered_in_order_and_known_again),
        cmocka_unit_test(test_find_when_full_then_refused_and_the_old_ones_stay),
        cmocka_unit_test(test_end_when_the_slowest_ends_then_the_watermark_is_the_next),
        cmocka_unit_test(test_list_when_source_grows_then_only_new_ones_are_added),
        cmocka_unit_test(test_list_when_more_than_fit_then_cut_at_the_limit),
        cmocka_unit_test(test_list_when_source_cannot_list_then_complete_and_empty),
        cmocka_unit_test(test_find_when_recalled_then_goes_on_from_the_furthest_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
