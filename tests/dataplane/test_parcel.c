/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: classes, exhaustion, and the way home of a parcel that another lane drops. */
#include "tests/dataplane/fake_job.h"

static struct parcel_pool *make(struct fake_memory *memory, uint32_t lane, uint32_t lane_count)
{
    const struct parcel_pool_config config = {
        .classes = {{.bytes = 1024, .count = 3}, {.bytes = 4096, .count = 2}},
        .class_count = 2,
        .lane = lane,
        .lane_count = lane_count,
    };
    return parcel_pool_init(&config, fake_allocate(memory, lane, parcel_pool_bytes(&config)));
}

static void test_acquire_takes_the_smallest_class_that_fits(void **state)
{
    struct fake_memory memory = {0};
    struct parcel_pool *pool = make(&memory, 0, 1);
    struct parcel *small = parcel_acquire(pool, 100);
    struct parcel *large = parcel_acquire(pool, 2000);
    assert_int_equal(small->size_class, 0);
    assert_int_equal(large->size_class, 1);
    assert_int_equal(small->holders, 1);
    assert_true(large->bytes_max >= 2000);
    assert_null(parcel_acquire(pool, 4096));
    assert_int_equal(parcel_pool_free(pool), 3);
    fake_memory_free(&memory);
}

static void test_acquire_when_a_class_is_used_up_then_takes_a_larger_one(void **state)
{
    struct fake_memory memory = {0};
    struct parcel_pool *pool = make(&memory, 0, 1);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(parcel_acquire(pool, 8)->size_class, i < 3 ? 0 : 1);
    }
    assert_null(parcel_acquire(pool, 8));
    assert_int_equal(parcel_pool_free(pool), 0);
    fake_memory_free(&memory);
}

static void test_release_when_several_hold_it_then_the_last_one_frees(void **state)
{
    struct fake_memory memory = {0};
    struct parcel_pool *pool = make(&memory, 0, 1);
    struct parcel *parcel = parcel_acquire(pool, 8);
    parcel->holders = 3;
    parcel_release(parcel, pool);
    parcel_release(parcel, pool);
    assert_int_equal(parcel_pool_free(pool), 4);
    parcel_release(parcel, pool);
    assert_int_equal(parcel_pool_free(pool), 5);
    assert_ptr_equal(parcel_acquire(pool, 8), parcel);
    fake_memory_free(&memory);
}

static void test_release_on_another_lane_then_comes_home_by_collect(void **state)
{
    struct fake_memory memory = {0};
    struct parcel_pool *home = make(&memory, 0, 3);
    struct parcel_pool *other = make(&memory, 2, 3);
    struct parcel *parcels[5];
    for (uint32_t i = 0; i < 5; i++) {
        parcels[i] = parcel_acquire(home, 8);
    }
    for (uint32_t i = 0; i < 5; i++) {
        parcel_release(parcels[i], other);
    }
    assert_int_equal(parcel_pool_free(home), 0);
    assert_int_equal(parcel_pool_free(other), 5);
    assert_int_equal(parcel_pool_collect(home), 5);
    assert_int_equal(parcel_pool_free(home), 5);
    assert_int_equal(parcel_pool_collect(home), 0);
    fake_memory_free(&memory);
}

static void test_queue_when_watermarks_meet_then_keeps_the_last(void **state)
{
    struct item storage[4];
    struct queue queue;
    queue_init(&queue, storage, 4);
    queue_push(&queue, item_control(PARCEL_WATERMARK, 1));
    queue_push(&queue, item_control(PARCEL_WATERMARK, 7));
    queue_push(&queue, item_control(PARCEL_TICK, 8));
    queue_push(&queue, item_control(PARCEL_WATERMARK, 9));
    assert_int_equal(queue_pop(&queue).value, 7);
    assert_int_equal(item_kind(queue_pop(&queue)), PARCEL_TICK);
    assert_int_equal(queue_pop(&queue).value, 9);
    assert_true(queue_is_empty(&queue));
}

static void test_ring_when_full_then_refuses_and_keeps_order(void **state)
{
    struct fake_memory memory = {0};
    struct rte_ring *ring = ring_init(fake_allocate(&memory, 0, ring_bytes(8)), 8);
    for (int64_t i = 0; i < 7; i++) {
        assert_false(ring_is_full(ring));
        assert_true(ring_push(ring, item_control(PARCEL_TICK, i)));
    }
    assert_true(ring_is_full(ring));
    assert_false(ring_push(ring, item_control(PARCEL_TICK, 7)));
    struct item item;
    for (int64_t i = 0; i < 7; i++) {
        assert_true(ring_pop(ring, &item));
        assert_int_equal(item.value, i);
    }
    assert_false(ring_pop(ring, &item));
    fake_memory_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acquire_takes_the_smallest_class_that_fits),
        cmocka_unit_test(test_acquire_when_a_class_is_used_up_then_takes_a_larger_one),
        cmocka_unit_test(test_release_when_several_hold_it_then_the_last_one_frees),
        cmocka_unit_test(test_release_on_another_lane_then_comes_home_by_collect),
        cmocka_unit_test(test_queue_when_watermarks_meet_then_keeps_the_last),
        cmocka_unit_test(test_ring_when_full_then_refuses_and_keeps_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
