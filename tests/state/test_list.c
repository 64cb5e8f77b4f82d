/* SPDX-License-Identifier: Apache-2.0 */
/* Lists against a model: a plain sorted array of (order, number). Marks are checked against their
 * definition over the model after every step. */
#include "fixture.h"

#include "state/list.h"

#define MODEL_MAX  4000U
#define MARK_COUNT 3U
#define LIST_COUNT 4U

struct model_item {
    int64_t order;
    uint32_t number;
};

struct model {
    uint32_t count;
    struct model_item items[MODEL_MAX];
    int64_t bounds[MARK_COUNT];
};

struct lists {
    struct fixture fixture;
    uint64_t heads[LIST_COUNT];
    struct model models[LIST_COUNT];
    uint32_t number;
};

static struct span content_of(uint32_t number, uint8_t *into)
{
    return number % 211 == 0 ? fixture_key(number * 101, KEY_BYTES_MAX_MADE, into)
                             : fixture_key(number, 700, into);
}

static void lists_open(struct lists *lists)
{
    memset(lists->models, 0, sizeof(lists->models));
    lists->number = 0;
    fixture_open(&lists->fixture, 12000, LIST_COUNT);
    for (uint32_t index = 0; index < LIST_COUNT; index++) {
        lists->heads[index] =
            heap_acquire(lists->fixture.heap, index, (uint32_t)LIST_HEAD_BYTES(MARK_COUNT));
        list_init(heap_write(lists->fixture.heap, lists->heads[index]), index, MARK_COUNT);
        for (uint32_t mark = 0; mark < MARK_COUNT; mark++) {
            lists->models[index].bounds[mark] = INT64_MIN;
        }
    }
}

static void item_compare(const struct heap *heap, const struct list_item *item,
                         const struct model_item *expected)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const struct span content = content_of(expected->number, bytes);
    assert_int_equal(item->order, expected->order);
    assert_int_equal(item->bytes, content.bytes);
    if (item->data != NULL) {
        assert_memory_equal(item->data, content.data, content.bytes);
        assert_int_equal((uintptr_t)item->data % 8, 0);
    } else {
        assert_int_equal(heap_blob_compare(heap, item->blob, content), 0);
    }
}

/* The first model item with order >= bound. */
static uint32_t model_seek(const struct model *model, int64_t bound)
{
    uint32_t index = 0;
    while (index < model->count && model->items[index].order < bound) {
        index++;
    }
    return index;
}

static void marks_compare(struct lists *lists, uint32_t which)
{
    const struct heap *heap = lists->fixture.heap;
    const struct list_head *head = heap_read(heap, lists->heads[which]);
    const struct model *model = &lists->models[which];
    for (uint32_t mark = 0; mark < MARK_COUNT; mark++) {
        const uint32_t index = model_seek(model, model->bounds[mark]);
        struct list_cursor cursor;
        assert_int_equal(list_mark(heap, head, mark, &cursor), index < model->count);
        if (index < model->count) {
            const struct list_item item = list_item(heap, &cursor);
            item_compare(heap, &item, &model->items[index]);
        }
    }
}

static void list_compare(struct lists *lists, uint32_t which)
{
    const struct heap *heap = lists->fixture.heap;
    const struct list_head *head = heap_read(heap, lists->heads[which]);
    const struct model *model = &lists->models[which];
    list_check(heap, head);
    assert_int_equal(head->count, model->count);
    struct list_cursor cursor;
    bool is_there = list_first(heap, head, &cursor);
    for (uint32_t index = 0; index < model->count; index++) {
        assert_true(is_there);
        const struct list_item item = list_item(heap, &cursor);
        item_compare(heap, &item, &model->items[index]);
        is_there = list_next(heap, &cursor);
    }
    assert_false(is_there);
    is_there = list_last(heap, head, &cursor);
    for (uint32_t index = model->count; index != 0; index--) {
        assert_true(is_there);
        assert_int_equal(list_item(heap, &cursor).order, model->items[index - 1].order);
        is_there = list_prev(heap, &cursor);
    }
    assert_false(is_there);
}

static bool insert(struct lists *lists, uint32_t which, int64_t order)
{
    struct model *model = &lists->models[which];
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const uint32_t number = lists->number;
    if (model->count == MODEL_MAX) {
        return true;
    }
    struct heap *heap = lists->fixture.heap;
    struct list_head *head = heap_write(heap, lists->heads[which]);
    if (!list_insert(heap, head, order, content_of(number, bytes))) {
        return false;
    }
    lists->number++;
    uint32_t index = model->count++;
    for (; index != 0 && model->items[index - 1].order > order; index--) {
        model->items[index] = model->items[index - 1];
    }
    model->items[index] = (struct model_item){.order = order, .number = number};
    return true;
}

static void model_close(struct model *model, uint32_t index)
{
    memmove(&model->items[index], &model->items[index + 1],
            (model->count - index - 1) * sizeof(model->items[0]));
    model->count--;
}

static void remove_at(struct lists *lists, uint32_t which)
{
    struct model *model = &lists->models[which];
    struct heap *heap = lists->fixture.heap;
    if (model->count == 0) {
        return;
    }
    const uint32_t index = fixture_below(&lists->fixture, model->count);
    struct list_head *head = heap_write(heap, lists->heads[which]);
    struct list_cursor cursor;
    (void)list_first(heap, head, &cursor);
    for (uint32_t at = 0; at < index; at++) {
        (void)list_next(heap, &cursor);
    }
    list_remove(heap, head, &cursor);
    model_close(model, index);
    assert_int_equal(cursor.chunk != 0, index < model->count);
    if (index < model->count) {
        const struct list_item item = list_item(heap, &cursor);
        item_compare(heap, &item, &model->items[index]);
    }
}

static void mark_move(struct lists *lists, uint32_t which, int64_t now)
{
    struct heap *heap = lists->fixture.heap;
    struct list_head *head = heap_write(heap, lists->heads[which]);
    struct model *model = &lists->models[which];
    const uint32_t mark = fixture_below(&lists->fixture, MARK_COUNT);
    const int64_t bound = now - 20 * (1 + (int64_t)mark * mark * 8);
    if (bound <= model->bounds[mark]) {
        return;
    }
    uint32_t at = model_seek(model, model->bounds[mark]);
    struct list_item item;
    while (list_mark_pass(heap, head, mark, bound, &item)) {
        assert_true(item.order < bound);
        item_compare(heap, &item, &model->items[at++]);
    }
    model->bounds[mark] = bound;
    assert_int_equal(at, model_seek(model, bound));
}

static void step_once(struct lists *lists, int64_t now)
{
    struct fixture *fixture = &lists->fixture;
    const uint32_t which = fixture_below(fixture, LIST_COUNT);
    struct model *model = &lists->models[which];
    const uint32_t kind = fixture_below(fixture, 100);
    list_prefetch(fixture->heap, heap_read(fixture->heap, lists->heads[which]));
    if (kind < 50) {
        assert_true(insert(lists, which, now));
    } else if (kind < 60) {
        assert_true(insert(lists, which, now - fixture_below(fixture, 50)));
    } else if (kind < 63) {
        assert_true(insert(lists, which, now - fixture_below(fixture, 2000)));
    } else if (kind < 66) {
        remove_at(lists, which);
    } else if (kind < 80) {
        mark_move(lists, which, now);
    } else if (model->count > 20 + which * 300U) {
        list_drop_first(fixture->heap, heap_write(fixture->heap, lists->heads[which]));
        model_close(model, 0);
    }
    marks_compare(lists, which);
}

static void test_random_operations_match_the_model_and_every_barrier_is_rebuilt(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    int64_t now = 1000;
    for (uint32_t round = 0; round < 20; round++) {
        fixture_barrier(&lists.fixture);
        for (uint32_t step = 0; step < 1500; step++) {
            now += fixture_below(&lists.fixture, 3);
            step_once(&lists, now);
            (void)heap_poll(lists.fixture.heap, 2);
        }
        fixture_barrier_check(&lists.fixture);
        for (uint32_t which = 0; which < LIST_COUNT; which++) {
            list_compare(&lists, which);
        }
        heap_check(lists.fixture.heap);
    }
    for (uint32_t which = 0; which < LIST_COUNT; which++) {
        struct list_head *head = heap_write(lists.fixture.heap, lists.heads[which]);
        uint32_t calls = 1;
        while (!list_clear(lists.fixture.heap, head, 2)) {
            list_check(lists.fixture.heap, head);
            calls++;
        }
        assert_int_equal(head->count, 0);
        assert_true(which == 0 || calls > 1);
        heap_release(lists.fixture.heap, lists.heads[which]);
    }
    while (heap_poll(lists.fixture.heap, 100) != 0) {
    }
    assert_int_equal(lists.fixture.heap->counters.blocks_used, 0);
    fixture_close(&lists.fixture);
}

static void test_insert_at_every_nth_refused_page_changes_nothing(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    uint32_t refused = 0;
    for (uint32_t count = 0; count < 1500; count++) {
        const int64_t order = fixture_below(&lists.fixture, 3) != 0
                                  ? (int64_t)count
                                  : fixture_below(&lists.fixture, 1500);
        const uint32_t which = count % 2;
        for (uint32_t after = 1;; after++) {
            arena_fail_after(lists.fixture.arena, after);
            const bool is_done = insert(&lists, which, order);
            arena_fail_after(lists.fixture.arena, 0);
            if (is_done) {
                break;
            }
            refused++;
            list_compare(&lists, which);
            heap_check(lists.fixture.heap);
        }
        marks_compare(&lists, which);
    }
    assert_true(refused > 20);
    list_compare(&lists, 0);
    list_compare(&lists, 1);
    fixture_close(&lists.fixture);
}

static void test_seek_finds_the_first_item_not_before(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    struct heap *heap = lists.fixture.heap;
    for (int64_t order = 0; order < 600; order++) {
        assert_true(insert(&lists, 0, order / 3 * 10));
    }
    const struct list_head *head = heap_read(heap, lists.heads[0]);
    for (int64_t order = -5; order < 2010; order++) {
        struct list_cursor cursor;
        const uint32_t index = model_seek(&lists.models[0], order);
        assert_int_equal(list_seek(heap, head, order, &cursor), index < 600);
        if (index < 600) {
            const struct list_item item = list_item(heap, &cursor);
            item_compare(heap, &item, &lists.models[0].items[index]);
        }
    }
    fixture_close(&lists.fixture);
}

static void test_mark_stepped_by_rows_stays_at_its_row_over_appends(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    struct heap *heap = lists.fixture.heap;
    struct list_head *head = heap_write(heap, lists.heads[0]);
    struct list_item item;
    assert_false(list_mark_step(heap, head, 0, &item));
    for (uint32_t count = 0; count < 500; count++) {
        assert_true(insert(&lists, 0, count / 4)); /* runs of equal orders */
        if (count >= 10) {                         /* a window of the last 10 rows */
            assert_true(list_mark_step(heap, head, 0, &item));
            item_compare(heap, &item, &lists.models[0].items[count - 10]);
        }
        list_check(heap, head);
    }
    for (uint32_t count = 0; count < 10; count++) {
        assert_true(list_mark_step(heap, head, 0, &item));
    }
    assert_false(list_mark_step(heap, head, 0, &item));
    assert_true(insert(&lists, 0, 124));
    assert_true(list_mark_step(heap, head, 0, &item));
    item_compare(heap, &item, &lists.models[0].items[500]);
    fixture_close(&lists.fixture);
}

static void test_item_write_changes_the_item_in_place(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    struct heap *heap = lists.fixture.heap;
    struct list_head *head = heap_write(heap, lists.heads[0]);
    assert_true(list_insert(heap, head, 5, (struct span){(const uint8_t *)"abcd", 4}));
    struct list_cursor cursor;
    assert_true(list_first(heap, head, &cursor));
    memcpy(list_item_write(heap, &cursor), "wxyz", 4);
    assert_memory_equal(list_item(heap, &cursor).data, "wxyz", 4);
    fixture_close(&lists.fixture);
}

static void test_few_items_cost_few_bytes(void **state)
{
    (void)state;
    struct lists lists;
    lists_open(&lists);
    struct heap *heap = lists.fixture.heap;
    struct list_head *head = heap_write(heap, lists.heads[0]);
    const uint64_t before = heap->counters.bytes_used;
    const uint32_t most[] = {80, 224, 224, 224, 496};
    for (uint32_t count = 0; count < COUNT_OF(most); count++) {
        assert_true(list_insert(heap, head, count,
                                (struct span){(const uint8_t *)"0123456789abcdefghijkl", 22}));
        assert_true(heap->counters.bytes_used - before <= most[count]);
    }
    fixture_close(&lists.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_match_the_model_and_every_barrier_is_rebuilt),
        cmocka_unit_test(test_insert_at_every_nth_refused_page_changes_nothing),
        cmocka_unit_test(test_seek_finds_the_first_item_not_before),
        cmocka_unit_test(test_mark_stepped_by_rows_stays_at_its_row_over_appends),
        cmocka_unit_test(test_item_write_changes_the_item_in_place),
        cmocka_unit_test(test_few_items_cost_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
