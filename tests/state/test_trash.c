/* SPDX-License-Identifier: Apache-2.0 */
/* Long collections go in bounded steps and leave nothing, also when there is no page for the note
 * of them, and when a restore comes in between. */
#include "fixture.h"

#include <errno.h>

#include "state/audit.h"
#include "state/heap_inner.h"
#include "state/trash.h"

#define ITEMS 20000U

static struct list_head *list_make(struct fixture *fixture, uint8_t *at, uint32_t count)
{
    struct list_head *head = (struct list_head *)(void *)at;
    list_init(head, 1, 1);
    static uint8_t bytes[6000];
    for (uint32_t i = 0; i < count; i++) {
        /* Some items are short blobs, some long ones. */
        const uint32_t length = i % 1000 == 7 ? sizeof(bytes) : i % 50 == 3 ? 900 : 24;
        assert_true(list_insert(fixture->heap, head, i, (struct span){bytes, length}));
    }
    return head;
}

static void map_make(struct fixture *fixture, struct ordered_head *head, uint32_t count)
{
    ordered_init(head, 1, 8);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t key[200] = {0};
        store_be64(key, i);
        bool created = false;
        const struct span span = {key, i % 40 == 0 ? sizeof(key) : 8};
        assert_non_null(ordered_insert(fixture->heap, head, span, &created));
    }
}

/* Frees all of the queue and says how many steps that took. */
static uint32_t work_off(struct fixture *fixture)
{
    uint32_t steps = 0;
    while (heap_has_queue(fixture->heap)) {
        const uint64_t releases = fixture->arena->counters.releases;
        const uint32_t done = heap_poll(fixture->heap, 4);
        assert_true(done <= 4);
        assert_true(fixture->arena->counters.releases - releases <= 300);
        steps += done;
    }
    heap_check(fixture->heap);
    arena_check(fixture->arena);
    return steps;
}

static void test_short_collections_are_freed_at_once(void **state)
{
    struct fixture fixture;
    fixture_open(&fixture, 4096, 4);
    _Alignas(8) uint8_t at[LIST_HEAD_BYTES(1)];
    struct ordered_head map;
    const uint64_t before = fixture.heap->counters.blocks_used;
    trash_list(fixture.heap, list_make(&fixture, at, 0));
    trash_list(fixture.heap, list_make(&fixture, at, 7));
    map_make(&fixture, &map, 0);
    trash_ordered(fixture.heap, &map);
    map_make(&fixture, &map, 100);
    trash_ordered(fixture.heap, &map);
    assert_int_equal(map.root, 0);
    assert_int_equal(fixture.heap->counters.trash_queued, 0);
    assert_int_equal(fixture.heap->counters.blocks_used, before);
    fixture_close(&fixture);
}

static void test_long_collections_go_in_bounded_steps_and_leave_nothing(void **state)
{
    struct fixture fixture;
    fixture_open(&fixture, 4096, 4);
    _Alignas(8) uint8_t at[LIST_HEAD_BYTES(1)];
    struct ordered_head map;
    assert_non_null(arena_root_write(fixture.arena, fixture.heap->object, 1));
    const uint64_t before = fixture.arena->counters.pages_used;
    struct list_head *list = list_make(&fixture, at, ITEMS);
    map_make(&fixture, &map, ITEMS);
    const uint64_t full = fixture.arena->counters.pages_used;
    trash_list(fixture.heap, list);
    trash_ordered(fixture.heap, &map);
    assert_true(full - fixture.arena->counters.pages_used <
                100); /* the calls freed only a little */
    assert_int_equal(list->first, 0);
    assert_int_equal(list->count, 0);
    assert_int_equal(list->marks[0].place, 0);
    assert_int_equal(map.root, 0);
    assert_int_equal(fixture.heap->counters.trash_queued, 2);
    list_check(fixture.heap, list);
    assert_true(work_off(&fixture) > 1000);
    assert_int_equal(fixture.heap->counters.trash_queued, 0);
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    assert_int_equal(fixture.arena->counters.pages_used, before);
    fixture_close(&fixture);
}

static void test_trash_when_the_arena_is_full_is_freed_until_it_can_be_noted(void **state)
{
    struct fixture fixture;
    fixture_open(&fixture, 4096, 4);
    _Alignas(8) uint8_t at[LIST_HEAD_BYTES(1)];
    struct ordered_head map;
    struct list_head *list = list_make(&fixture, at, ITEMS);
    map_make(&fixture, &map, ITEMS);
    while (arena_page_acquire(fixture.arena, 0, ARENA_PAGE_BLOB) != 0) {
    }
    trash_list(fixture.heap, list);
    trash_ordered(fixture.heap, &map);
    (void)work_off(&fixture);
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    list = list_make(&fixture, at, ITEMS);
    map_make(&fixture, &map, ITEMS);
    arena_fail_after(fixture.arena, 1); /* even what is freed is not to be had */
    trash_list(fixture.heap, list);
    trash_ordered(fixture.heap, &map);
    arena_fail_after(fixture.arena, 0);
    (void)work_off(&fixture);
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    fixture_close(&fixture);
}

static int rebuild(struct fixture *fixture, struct error *error)
{
    struct audit audit;
    assert_int_equal(0, audit_init(&audit, fixture->arena, fixture->heap, error));
    const int code = heap_shape_ops.rebuild(fixture->heap, &audit, error);
    audit_fini(&audit);
    return code;
}

static void test_trash_when_state_is_restored_in_between_goes_on(void **state)
{
    struct fixture fixture;
    fixture_open(&fixture, 4096, 4);
    _Alignas(8) uint8_t at[LIST_HEAD_BYTES(1)];
    struct ordered_head map;
    struct error error = {0};
    struct list_head *list = list_make(&fixture, at, ITEMS);
    map_make(&fixture, &map, ITEMS);
    trash_list(fixture.heap, list);
    trash_ordered(fixture.heap, &map);
    (void)heap_poll(fixture.heap, 100);
    assert_int_equal(0, rebuild(&fixture, &error));
    assert_int_equal(fixture.heap->counters.trash_queued, 2);
    assert_true(work_off(&fixture) > 1000);
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    fixture_close(&fixture);
}

static void test_trash_when_damaged_on_disk_is_refused(void **state)
{
    struct fixture fixture;
    fixture_open(&fixture, 4096, 4);
    struct ordered_head map;
    struct error error = {0};
    map_make(&fixture, &map, ITEMS);
    trash_ordered(fixture.heap, &map);
    struct heap_root *root = arena_root_write(fixture.arena, fixture.heap->object, 1);
    uint64_t *piece = heap_write(fixture.heap, root->trash);
    piece[1] = 77; /* its kind */
    assert_int_equal(-EBADMSG, rebuild(&fixture, &error));
    assert_non_null(strstr(error.text, "trash"));
    piece[1] = 2;
    piece[0] = root->trash; /* a circle */
    assert_int_equal(-EBADMSG, rebuild(&fixture, &error));
    piece[0] = 0;
    root->trash += 8;
    assert_int_equal(-EBADMSG, rebuild(&fixture, &error));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_collections_are_freed_at_once),
        cmocka_unit_test(test_long_collections_go_in_bounded_steps_and_leave_nothing),
        cmocka_unit_test(test_trash_when_the_arena_is_full_is_freed_until_it_can_be_noted),
        cmocka_unit_test(test_trash_when_state_is_restored_in_between_goes_on),
        cmocka_unit_test(test_trash_when_damaged_on_disk_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
