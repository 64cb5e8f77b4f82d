/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered maps against a model: the numbers of a universe, sorted once by the bytes of their keys,
 * and a flag for each. */
#include "fixture.h"

#include "state/ordered.h"

#define UNIVERSE_MAX 5000U

struct model {
    uint32_t universe;
    uint32_t key_bytes_max;
    uint32_t count;
    uint32_t sorted[UNIVERSE_MAX]; /* numbers in key order */
    uint8_t is_there[UNIVERSE_MAX];
    uint64_t values[UNIVERSE_MAX];
};

struct map {
    struct fixture fixture;
    uint64_t head;
    uint32_t value_bytes;
    struct model model;
};

static struct span key_of(const struct map *map, uint32_t number, uint8_t *into)
{
    return fixture_key(number, map->model.key_bytes_max, into);
}

static int span_compare(struct span left, struct span right)
{
    const size_t common = left.bytes < right.bytes ? left.bytes : right.bytes;
    const int order = memcmp(left.data, right.data, common);
    return order != 0 ? order : (left.bytes > right.bytes) - (left.bytes < right.bytes);
}

static int number_compare(const void *left, const void *right, void *context)
{
    uint8_t bytes[2][KEY_BYTES_MAX_MADE];
    return span_compare(key_of(context, *(const uint32_t *)left, bytes[0]),
                        key_of(context, *(const uint32_t *)right, bytes[1]));
}

static void map_open(struct map *map, uint32_t universe, uint32_t key_bytes_max,
                     uint32_t value_bytes)
{
    map->model = (struct model){.universe = universe, .key_bytes_max = key_bytes_max};
    map->value_bytes = value_bytes;
    fixture_open(&map->fixture, 8000, 2);
    map->head = heap_acquire(map->fixture.heap, 1, sizeof(struct ordered_head));
    ordered_init(heap_write(map->fixture.heap, map->head), 1, value_bytes);
    for (uint32_t number = 0; number < universe; number++) {
        map->model.sorted[number] = number;
    }
    qsort_r(map->model.sorted, universe, sizeof(uint32_t), number_compare, map);
}

static void value_set(const struct map *map, void *value, uint64_t number)
{
    memcpy(value, &number, map->value_bytes < 8 ? map->value_bytes : 8);
}

static bool value_is(const struct map *map, const void *value, uint64_t number)
{
    return memcmp(value, &number, map->value_bytes < 8 ? map->value_bytes : 8) == 0;
}

static void entry_compare(const struct map *map, const struct ordered_cursor *cursor,
                          uint32_t number)
{
    const struct heap *heap = map->fixture.heap;
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const struct span key = key_of(map, number, bytes);
    const struct ordered_entry entry = ordered_entry(heap, heap_read(heap, map->head), cursor);
    if (entry.key_blob != 0) {
        assert_int_equal(heap_blob_compare(heap, entry.key_blob, key), 0);
    } else {
        assert_int_equal(span_compare(entry.key, key), 0);
    }
    assert_true(value_is(map, entry.value, map->model.values[number]));
}

static void map_compare(const struct map *map)
{
    const struct heap *heap = map->fixture.heap;
    const struct ordered_head *head = heap_read(heap, map->head);
    const struct model *model = &map->model;
    struct ordered_cursor cursor;
    ordered_check(heap, head);
    assert_int_equal(head->count, model->count);
    bool is_there = ordered_first(heap, head, &cursor);
    for (uint32_t at = 0; at < model->universe; at++) {
        if (model->is_there[model->sorted[at]]) {
            assert_true(is_there);
            entry_compare(map, &cursor, model->sorted[at]);
            is_there = ordered_next(heap, &cursor);
        }
    }
    assert_false(is_there);
    is_there = ordered_last(heap, head, &cursor);
    for (uint32_t at = model->universe; at != 0; at--) {
        if (model->is_there[model->sorted[at - 1]]) {
            assert_true(is_there);
            entry_compare(map, &cursor, model->sorted[at - 1]);
            is_there = ordered_prev(heap, &cursor);
        }
    }
    assert_false(is_there);
}

static void *insert(struct map *map, uint32_t number, uint64_t value)
{
    struct heap *heap = map->fixture.heap;
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    bool created;
    void *at =
        ordered_insert(heap, heap_write(heap, map->head), key_of(map, number, bytes), &created);
    if (at != NULL) {
        assert_int_equal(created, !map->model.is_there[number]);
        assert_true(value_is(map, at, created ? 0 : map->model.values[number]));
        value_set(map, at, value);
        map->model.count += created;
        map->model.is_there[number] = 1;
        map->model.values[number] = value;
    }
    return at;
}

static void seek_compare(struct map *map, uint32_t number)
{
    const struct heap *heap = map->fixture.heap;
    const struct model *model = &map->model;
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    uint32_t at = 0;
    while (model->sorted[at] != number) {
        at++;
    }
    while (at < model->universe && !model->is_there[model->sorted[at]]) {
        at++;
    }
    struct ordered_cursor cursor;
    assert_int_equal(
        ordered_seek(heap, heap_read(heap, map->head), key_of(map, number, bytes), &cursor),
        at < model->universe);
    if (at < model->universe) {
        entry_compare(map, &cursor, model->sorted[at]);
    }
}

static void step_once(struct map *map, uint32_t bias)
{
    struct heap *heap = map->fixture.heap;
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const uint32_t number = fixture_below(&map->fixture, map->model.universe);
    const uint64_t value = fixture_random(&map->fixture);
    if (fixture_below(&map->fixture, 100) < bias) {
        assert_non_null(insert(map, number, value));
    } else {
        assert_int_equal(
            ordered_remove(heap, heap_write(heap, map->head), key_of(map, number, bytes)),
            map->model.is_there[number]);
        map->model.count -= map->model.is_there[number];
        map->model.is_there[number] = 0;
    }
    const uint32_t other = fixture_below(&map->fixture, map->model.universe);
    void *found = ordered_find_write(heap, heap_read(heap, map->head), key_of(map, other, bytes));
    assert_int_equal(found != NULL, map->model.is_there[other]);
    if (found != NULL) {
        assert_true(value_is(map, found, map->model.values[other]));
        map->model.values[other] = value;
        value_set(map, found, value);
    }
    if (value % 16 == 0) {
        seek_compare(map, fixture_below(&map->fixture, map->model.universe));
    }
}

static void model_run(uint32_t universe, uint32_t key_bytes_max, uint32_t value_bytes,
                      uint32_t step_count)
{
    struct map map;
    map_open(&map, universe, key_bytes_max, value_bytes);
    const uint32_t biases[] = {95, 50, 10, 60, 0, 80};
    for (uint32_t phase = 0; phase < COUNT_OF(biases); phase++) {
        fixture_barrier(&map.fixture);
        for (uint32_t step = 0; step < step_count / 6; step++) {
            step_once(&map, biases[phase]);
            (void)heap_poll(map.fixture.heap, 2);
        }
        fixture_barrier_check(&map.fixture);
        map_compare(&map);
        heap_check(map.fixture.heap);
    }
    struct heap *heap = map.fixture.heap;
    while (!ordered_clear(heap, heap_write(heap, map.head), 3)) {
        ordered_check(heap, heap_read(heap, map.head));
    }
    heap_release(heap, map.head);
    while (heap_poll(heap, 100) != 0) {
    }
    assert_int_equal(heap->counters.blocks_used, 0);
    fixture_close(&map.fixture);
}

static void test_random_operations_match_the_model_and_every_barrier_is_rebuilt(void **state)
{
    (void)state;
    model_run(30, 8, 8, 3000);
    model_run(UNIVERSE_MAX, 12, 8, 60000);
    model_run(UNIVERSE_MAX, 12, 0, 60000);
    model_run(3000, 110, ORDERED_VALUE_BYTES_MAX, 30000);
    model_run(2000, KEY_BYTES_MAX_MADE, 8, 15000);
}

static void test_ascending_keys_leave_full_nodes_behind(void **state)
{
    (void)state;
    struct map map;
    map_open(&map, 1, 8, 8);
    struct heap *heap = map.fixture.heap;
    bool created;
    for (uint64_t number = 0; number < 20000; number++) {
        uint8_t key[8];
        store_be64(key, number);
        assert_non_null(
            ordered_insert(heap, heap_write(heap, map.head), (struct span){key, 8}, &created));
    }
    ordered_check(heap, heap_read(heap, map.head));
    /* 24 bytes of entry and 2 of place: a leaf holds 37 or 38 */
    assert_true(heap->counters.bytes_used < 20000U / 36U * 1008U * 11U / 10U);
    fixture_close(&map.fixture);
}

static void test_insert_at_every_nth_refused_page_changes_nothing(void **state)
{
    (void)state;
    struct map map;
    map_open(&map, 2000, KEY_BYTES_MAX_MADE, 8);
    uint32_t refused = 0;
    for (uint32_t count = 0; count < 1200; count++) {
        const uint32_t number = fixture_below(&map.fixture, 2000);
        void *value = NULL;
        for (uint32_t after = 1; value == NULL; after++) {
            arena_fail_after(map.fixture.arena, after);
            value = insert(&map, number, count);
            arena_fail_after(map.fixture.arena, 0);
            if (value == NULL) {
                refused++;
                ordered_check(map.fixture.heap, heap_read(map.fixture.heap, map.head));
            }
        }
        (void)heap_poll(map.fixture.heap, 100);
    }
    assert_true(refused > 20);
    map_compare(&map);
    heap_check(map.fixture.heap);
    fixture_close(&map.fixture);
}

static void test_map_of_few_entries_costs_few_bytes(void **state)
{
    (void)state;
    struct map map;
    map_open(&map, 1, 8, 8);
    struct heap *heap = map.fixture.heap;
    const uint64_t before = heap->counters.bytes_used;
    bool created;
    for (uint64_t number = 0; number < 4; number++) {
        uint8_t key[8];
        store_be64(key, number);
        assert_non_null(
            ordered_insert(heap, heap_write(heap, map.head), (struct span){key, 8}, &created));
        assert_true(heap->counters.bytes_used - before <= (number == 0 ? 64U : 160U));
    }
    fixture_close(&map.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_match_the_model_and_every_barrier_is_rebuilt),
        cmocka_unit_test(test_ascending_keys_leave_full_nodes_behind),
        cmocka_unit_test(test_insert_at_every_nth_refused_page_changes_nothing),
        cmocka_unit_test(test_map_of_few_entries_costs_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
