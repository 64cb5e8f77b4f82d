/* SPDX-License-Identifier: Apache-2.0 */
/* Pages come and go, the hook sees each page once an epoch and before its first change, roots are
 * found again, and exhaustion is a verdict. */
#include "fixture.h"

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(ARENA_PAGE_BYTES, bytes);
    assert_non_null(memory);
    return memory;
}

static void test_create_with_bad_config_refuses_in_words(void **state)
{
    (void)state;
    const size_t bytes = 64 * ARENA_PAGE_BYTES;
    uint8_t *memory = aligned(bytes);
    struct arena *arena = NULL;
    const struct arena_config bad[] = {
        {.memory = NULL, .bytes = bytes, .shard_count = 1},
        {.memory = memory + 8, .bytes = bytes, .shard_count = 1},
        {.memory = memory, .bytes = bytes, .shard_count = 0},
        {.memory = memory, .bytes = bytes, .shard_count = ARENA_SHARD_COUNT_MAX + 1},
        {.memory = memory, .bytes = ARENA_PAGE_BYTES, .shard_count = 1},
    };
    for (size_t index = 0; index < COUNT_OF(bad); index++) {
        struct error error = {0};
        assert_true(arena_create(&bad[index], &arena, &error) < 0);
        assert_true(strlen(error.text) > 10);
        assert_null(arena);
    }
    free(memory);
}

static void test_create_with_any_size_keeps_metadata_inside_the_memory(void **state)
{
    (void)state;
    for (size_t bytes = 60 * ARENA_PAGE_BYTES; bytes < 64 * ARENA_PAGE_BYTES; bytes += 509) {
        uint8_t *memory =
            aligned((bytes + 64 + ARENA_PAGE_BYTES) / ARENA_PAGE_BYTES * ARENA_PAGE_BYTES);
        memset(memory + bytes, 0xa5, 64);
        const struct arena_config config = {.memory = memory, .bytes = bytes, .shard_count = 3};
        struct arena *arena;
        assert_int_equal(arena_create(&config, &arena, NULL), 0);
        assert_true(arena->page_count > 40);
        while (arena_page_acquire(arena, 1, ARENA_PAGE_HEAP) != 0) {
        }
        arena_check(arena);
        for (size_t at = 0; at < 64; at++) {
            assert_int_equal(memory[bytes + at], 0xa5);
        }
        free(memory);
    }
}

static void test_acquire_until_exhausted_then_release_makes_all_pages_free_again(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 4);
    struct arena *arena = fixture.arena;
    const uint32_t free_count = arena_pages_free(arena);
    for (int round = 0; round < 3; round++) {
        uint32_t pages[128];
        uint32_t count = 0;
        uint32_t page;
        while ((page = arena_page_acquire(arena, count % 4, ARENA_PAGE_HEAP)) != 0) {
            assert_int_equal(arena_page_view(arena, page).shard, count % 4);
            memset(arena_write(arena, page), (int)count, ARENA_PAGE_BYTES);
            pages[count++] = page;
        }
        assert_int_equal(count, free_count);
        assert_int_equal(arena_pages_free(arena), 0);
        assert_int_equal(arena->counters.exhausted, round + 1);
        arena_check(arena);
        for (uint32_t index = 0; index < count; index++) {
            assert_int_equal(arena_read(arena, pages[index])[77], index);
            arena_page_release(arena, pages[index]);
        }
        arena_check(arena);
        assert_int_equal(arena_pages_free(arena), free_count);
    }
    fixture_close(&fixture);
}

static void test_is_low_below_the_line_tells(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 1);
    fixture.arena->warn_pages_free = arena_pages_free(fixture.arena);
    assert_false(arena_is_low(fixture.arena));
    assert_true(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_true(arena_is_low(fixture.arena));
    fixture_close(&fixture);
}

static void test_is_full_when_only_the_reserve_is_left_and_it_can_be_used(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 1);
    struct arena *arena = fixture.arena;
    assert_false(arena_is_full(arena)); /* without a reserve it never is */
    arena->reserve_pages = 3;
    uint32_t last = 0;
    while (arena_pages_free(arena) > 3) {
        last = arena_page_acquire(arena, 0, ARENA_PAGE_HEAP);
        assert_true(last != 0);
    }
    assert_false(arena_is_full(arena));
    assert_true(arena_page_acquire(arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_true(arena_is_full(arena));
    assert_true(arena_page_acquire(arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_true(arena_page_acquire(arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_int_equal(arena_page_acquire(arena, 0, ARENA_PAGE_HEAP), 0);
    arena_page_release(arena, last);
    assert_true(arena_is_full(arena));
    fixture_close(&fixture);
}

static void test_fail_after_refuses_from_the_nth_acquire_on(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 1);
    arena_fail_after(fixture.arena, 3);
    assert_true(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_true(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP) != 0);
    assert_int_equal(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP), 0);
    assert_int_equal(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP), 0);
    arena_fail_after(fixture.arena, 0);
    assert_true(arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP) != 0);
    fixture_close(&fixture);
}

static void test_write_in_a_new_epoch_calls_the_hook_once_with_the_old_image(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 1);
    struct arena *arena = fixture.arena;
    const uint32_t page = arena_page_acquire(arena, 0, ARENA_PAGE_HEAP);
    memset(arena_write(arena, page), 1, ARENA_PAGE_BYTES);
    fixture_barrier(&fixture);
    assert_int_equal(arena_read(arena, page)[0], 1);
    assert_int_equal(fixture.recorded_count, 0);
    memset(arena_write(arena, page), 2, ARENA_PAGE_BYTES);
    memset(arena_write(arena, page), 3, ARENA_PAGE_BYTES);
    assert_int_equal(fixture.recorded_count, 1);
    assert_int_equal(fixture.images[(size_t)page * ARENA_PAGE_BYTES], 1);
    assert_int_equal(arena->counters.preimages, 1);
    fixture_barrier_check(&fixture);
    fixture_barrier(&fixture);
    arena_page_release(arena, page);
    assert_int_equal(fixture.images[(size_t)page * ARENA_PAGE_BYTES], 3);
    fixture_barrier_check(&fixture);
    fixture_close(&fixture);
}

static void test_page_released_and_reacquired_after_a_barrier_is_rebuilt(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 2);
    struct arena *arena = fixture.arena;
    uint32_t pages[40];
    for (uint32_t index = 0; index < 40; index++) {
        pages[index] = arena_page_acquire(arena, 0, ARENA_PAGE_HEAP);
        memset(arena_write(arena, pages[index]), (int)index, ARENA_PAGE_BYTES);
    }
    fixture_barrier(&fixture);
    for (uint32_t index = 0; index < 40; index += 2) {
        arena_page_release(arena, pages[index]);
    }
    for (uint32_t index = 0; index < 60; index++) {
        const uint32_t page = arena_page_acquire(arena, 1, ARENA_PAGE_BLOB);
        memset(arena_write(arena, page), 0xee, ARENA_PAGE_BYTES);
    }
    fixture_barrier_check(&fixture);
    arena_check(arena);
    fixture_close(&fixture);
}

static void test_free_page_keeps_the_epoch_it_was_freed_in(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 128, 1);
    const uint32_t page = arena_page_acquire(fixture.arena, 0, ARENA_PAGE_HEAP);
    (void)arena_epoch_advance(fixture.arena);
    (void)arena_epoch_advance(fixture.arena);
    arena_page_release(fixture.arena, page);
    const struct arena_page_view view = arena_page_view(fixture.arena, page);
    assert_int_equal(view.kind, ARENA_PAGE_FREE);
    assert_int_equal(view.epoch, fixture.arena->epoch);
    fixture_close(&fixture);
}

static void test_roots_of_many_objects_and_shards_keep_their_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 512, 3);
    struct arena *arena = fixture.arena;
    uint32_t objects[150];
    for (uint32_t index = 0; index < 150; index++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "object %u", index);
        assert_int_equal(
            arena_object_create(arena, ARENA_OBJECT_TABLE, name, &objects[index], NULL), 0);
        assert_null(arena_root_read(arena, objects[index], 2));
    }
    for (uint32_t index = 0; index < 150; index++) {
        for (uint32_t shard = 0; shard < 3; shard++) {
            uint8_t *root = arena_root_write(arena, objects[index], shard);
            assert_non_null(root);
            assert_int_equal(root[0], 0);
            memset(root, (int)(index * 3 + shard), ARENA_ROOT_BYTES);
        }
    }
    for (uint32_t index = 0; index < 150; index++) {
        for (uint32_t shard = 0; shard < 3; shard++) {
            const uint8_t *root = arena_root_read(arena, objects[index], shard);
            assert_int_equal(root[0], (uint8_t)(index * 3 + shard));
            assert_int_equal(root[ARENA_ROOT_BYTES - 1], (uint8_t)(index * 3 + shard));
        }
    }
    arena_check(arena);
    fixture_close(&fixture);
}

static void test_object_with_a_bad_name_or_one_too_many_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 512, 1);
    struct arena *arena = fixture.arena;
    uint32_t object;
    struct error error = {0};
    char longer[ARENA_OBJECT_NAME_BYTES + 1];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    assert_true(arena_object_create(arena, ARENA_OBJECT_TABLE, "", &object, &error) < 0);
    assert_true(arena_object_create(arena, ARENA_OBJECT_TABLE, longer, &object, &error) < 0);
    assert_int_equal(arena_object_create(arena, ARENA_OBJECT_TABLE, "a", &object, &error), 0);
    assert_true(arena_object_create(arena, ARENA_OBJECT_TABLE, "a", &object, &error) < 0);
    for (uint32_t index = arena->object_count; index < ARENA_OBJECT_COUNT_MAX; index++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%u", index);
        assert_int_equal(arena_object_create(arena, ARENA_OBJECT_TABLE, name, &object, NULL), 0);
    }
    assert_true(arena_object_create(arena, ARENA_OBJECT_TABLE, "b", &object, &error) < 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_with_bad_config_refuses_in_words),
        cmocka_unit_test(test_create_with_any_size_keeps_metadata_inside_the_memory),
        cmocka_unit_test(test_acquire_until_exhausted_then_release_makes_all_pages_free_again),
        cmocka_unit_test(test_is_low_below_the_line_tells),
        cmocka_unit_test(test_is_full_when_only_the_reserve_is_left_and_it_can_be_used),
        cmocka_unit_test(test_fail_after_refuses_from_the_nth_acquire_on),
        cmocka_unit_test(test_write_in_a_new_epoch_calls_the_hook_once_with_the_old_image),
        cmocka_unit_test(test_page_released_and_reacquired_after_a_barrier_is_rebuilt),
        cmocka_unit_test(test_free_page_keeps_the_epoch_it_was_freed_in),
        cmocka_unit_test(test_roots_of_many_objects_and_shards_keep_their_bytes),
        cmocka_unit_test(test_object_with_a_bad_name_or_one_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
