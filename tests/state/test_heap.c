/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and blobs against a model that keeps a copy of every content. */
#include "fixture.h"

#define MODEL_COUNT 600U

struct model_block {
    uint64_t ref;
    uint32_t bytes;
    uint8_t fill;
};

static void test_class_bytes_is_the_least_block_that_holds_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 256, 1);
    for (uint32_t bytes = 1; bytes <= HEAP_BLOCK_BYTES_MAX; bytes += 7) {
        const uint64_t ref = heap_acquire(fixture.heap, 0, bytes);
        assert_true(ref != 0 && ref % 16 == 0);
        assert_int_equal(heap_block_bytes(fixture.heap, ref), heap_class_bytes(bytes));
        assert_true(heap_class_bytes(bytes) >= bytes);
        assert_true(heap_class_bytes(bytes) <= 2 * bytes + 14);
        heap_release(fixture.heap, ref);
    }
    assert_int_equal(fixture.arena->counters.pages_used, 0);
    fixture_close(&fixture);
}

static void test_random_acquire_and_release_keeps_every_block_apart(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 1024, 5);
    struct model_block model[MODEL_COUNT];
    memset(model, 0, sizeof(model));
    for (uint32_t step = 0; step < 60000; step++) {
        struct model_block *block = &model[fixture_below(&fixture, MODEL_COUNT)];
        if (step % 5000 == 0) {
            fixture_barrier(&fixture);
        }
        if (block->ref != 0) {
            const uint8_t *bytes = heap_read(fixture.heap, block->ref);
            for (uint32_t at = 0; at < block->bytes; at++) {
                assert_int_equal(bytes[at], block->fill);
            }
            heap_release(fixture.heap, block->ref);
            block->ref = 0;
        } else {
            const uint32_t limit = fixture_below(&fixture, 8) == 0 ? HEAP_BLOCK_BYTES_MAX : 300;
            const uint32_t shard = fixture_below(&fixture, 5);
            block->bytes = 1 + fixture_below(&fixture, limit);
            block->fill = (uint8_t)step;
            block->ref = heap_acquire(fixture.heap, shard, block->bytes);
            assert_true(block->ref != 0);
            assert_int_equal(fixture.arena->meta[heap_page(block->ref)].shard, shard);
            memset(heap_write(fixture.heap, block->ref), block->fill, block->bytes);
        }
        if (step % 5000 == 4999) {
            fixture_barrier_check(&fixture);
            heap_check(fixture.heap);
            arena_check(fixture.arena);
        }
    }
    for (uint32_t index = 0; index < MODEL_COUNT; index++) {
        if (model[index].ref != 0) {
            heap_release(fixture.heap, model[index].ref);
        }
    }
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    assert_int_equal(fixture.arena->counters.pages_used, 0);
    fixture_close(&fixture);
}

static uint8_t *made_bytes(uint32_t bytes)
{
    uint8_t *content = malloc(bytes + 1U);
    assert_non_null(content);
    for (uint32_t at = 0; at < bytes; at++) {
        content[at] = (uint8_t)(at * 7 + at / 251 + bytes);
    }
    return content;
}

static void blob_round_trip(struct fixture *fixture, uint32_t bytes)
{
    uint8_t *content = made_bytes(bytes);
    uint8_t *back = malloc(bytes + 1U);
    const struct span span = {content, bytes};
    const uint64_t ref = heap_blob_store(fixture->heap, 0, span);
    assert_true(ref != 0);
    assert_int_equal(heap_blob_bytes(fixture->heap, ref), bytes);
    heap_blob_read(fixture->heap, ref, 0, bytes, back);
    assert_memory_equal(content, back, bytes);
    assert_int_equal(heap_blob_compare(fixture->heap, ref, span), 0);
    if (bytes != 0) {
        assert_true(heap_blob_compare(fixture->heap, ref, (struct span){content, bytes - 1}) > 0);
        heap_blob_read(fixture->heap, ref, bytes / 3, bytes - bytes / 3, back);
        assert_memory_equal(content + bytes / 3, back, bytes - bytes / 3);
        content[bytes - 1]++;
        assert_true(heap_blob_compare(fixture->heap, ref, span) != 0);
    }
    const uint64_t copy = heap_blob_copy(fixture->heap, 0, ref);
    assert_true(copy != 0 && copy != ref);
    heap_blob_release(fixture->heap, ref);
    while (heap_poll(fixture->heap, 3) != 0) {
        heap_check(fixture->heap);
    }
    heap_blob_read(fixture->heap, copy, 0, bytes, back);
    content[bytes == 0 ? 0 : bytes - 1] -= bytes != 0;
    assert_memory_equal(content, back, bytes);
    heap_blob_release(fixture->heap, copy);
    while (heap_poll(fixture->heap, 1000) != 0) {
    }
    assert_int_equal(fixture->heap->counters.blocks_used, 0);
    assert_int_equal(fixture->heap->counters.blob_pages_used, 0);
    assert_int_equal(fixture->heap->counters.blob_pages_queued, 0);
    free(content);
    free(back);
}

static void test_blob_of_every_kind_of_length_comes_back(void **state)
{
    (void)state;
    const uint32_t lengths[] = {0,
                                1,
                                15,
                                4071,
                                4072,
                                4073,
                                4080,
                                4081,
                                4096,
                                4097,
                                8176,
                                8177,
                                8192,
                                20000,
                                506 * 4096 - 1,
                                506 * 4096,
                                506 * 4096 + 1,
                                5000000,
                                HEAP_BLOB_BYTES_MAX};
    struct fixture fixture;
    fixture_open(&fixture, 10000, 2);
    for (size_t index = 0; index < COUNT_OF(lengths); index++) {
        blob_round_trip(&fixture, lengths[index]);
    }
    fixture_close(&fixture);
}

static void test_poll_frees_at_most_its_bound_a_call(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 2000, 4);
    uint8_t *content = made_bytes(1000000);
    for (uint32_t shard = 0; shard < 4; shard++) {
        const uint64_t ref = heap_blob_store(fixture.heap, shard, (struct span){content, 1000000});
        heap_blob_release(fixture.heap, ref);
    }
    uint64_t queued = fixture.heap->counters.blob_pages_queued;
    assert_int_equal(queued, 4 * (245 + 1));
    while (queued != 0) {
        const uint64_t used = fixture.arena->counters.pages_used;
        const uint32_t steps = heap_poll(fixture.heap, 10);
        assert_true(steps <= 10);
        assert_true(used - fixture.arena->counters.pages_used <= 10);
        queued -= steps;
        assert_int_equal(queued, fixture.heap->counters.blob_pages_queued);
    }
    free(content);
    fixture_close(&fixture);
}

static void test_blob_store_at_every_nth_refused_page_gives_all_back(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 4000, 1);
    uint8_t *content = made_bytes(3000000);
    const uint64_t anchor = heap_blob_store(fixture.heap, 0, (struct span){content, 10000});
    assert_true(anchor != 0);
    const uint64_t blocks = fixture.heap->counters.blocks_used;
    uint64_t ref = 0;
    for (uint32_t after = 1; ref == 0; after = after < 20 ? after + 1 : after * 2) {
        arena_fail_after(fixture.arena, after);
        ref = heap_blob_store(fixture.heap, 0, (struct span){content, 3000000});
        arena_fail_after(fixture.arena, 0);
        if (ref == 0) {
            while (heap_poll(fixture.heap, 100) != 0) {
            }
            assert_int_equal(fixture.heap->counters.blocks_used, blocks);
            heap_check(fixture.heap);
        }
        assert_int_equal(heap_blob_compare(fixture.heap, anchor, (struct span){content, 10000}), 0);
    }
    assert_int_equal(heap_blob_compare(fixture.heap, ref, (struct span){content, 3000000}), 0);
    free(content);
    fixture_close(&fixture);
}

static void test_acquire_when_exhausted_returns_none_and_keeps_the_rest(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 64, 1);
    uint32_t count = 0;
    uint64_t last = 0;
    for (uint64_t ref; (ref = heap_acquire(fixture.heap, 0, 100)) != 0; count++) {
        memcpy(heap_write(fixture.heap, ref), &last, sizeof(last));
        last = ref;
    }
    assert_true(count > 1000);
    heap_check(fixture.heap);
    for (; last != 0; count--) {
        uint64_t next;
        memcpy(&next, heap_read(fixture.heap, last), sizeof(next));
        heap_release(fixture.heap, last);
        last = next;
    }
    assert_int_equal(count, 0);
    assert_int_equal(fixture.arena->counters.pages_used, 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class_bytes_is_the_least_block_that_holds_it),
        cmocka_unit_test(test_random_acquire_and_release_keeps_every_block_apart),
        cmocka_unit_test(test_blob_of_every_kind_of_length_comes_back),
        cmocka_unit_test(test_poll_frees_at_most_its_bound_a_call),
        cmocka_unit_test(test_blob_store_at_every_nth_refused_page_gives_all_back),
        cmocka_unit_test(test_acquire_when_exhausted_returns_none_and_keeps_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
