/* SPDX-License-Identifier: Apache-2.0 */
/* The table against a model: an array over a universe of numbered keys, which shares no code with
 * it. Every run has barriers in it, and each rebuilds all pages of the barrier. */
#include "fixture.h"

#include "state/table.h"

struct model {
    uint32_t count;
    uint8_t *is_there;
    uint64_t *values;
};

struct shape {
    uint32_t value_bytes;
    uint32_t key_bytes_max;
    uint32_t key_bytes_inline;
    uint32_t shard_count;
    uint32_t universe;
    uint32_t step_count;
};

static struct table *table_open(struct fixture *fixture, const struct shape *shape)
{
    const struct table_config config = {.name = "table",
                                        .value_bytes = shape->value_bytes,
                                        .key_bytes_max = shape->key_bytes_max,
                                        .key_bytes_inline = shape->key_bytes_inline};
    struct table *table;
    assert_int_equal(table_create(fixture->heap, &config, &table, NULL), 0);
    return table;
}

static void value_set(void *value, uint32_t bytes, uint64_t number)
{
    uint8_t *at = value;
    if (at == NULL) {
        abort();
    }
    memset(at, (int)(number & 0xff), bytes);
    memcpy(at, &number, bytes < 8 ? bytes : 8);
}

static bool value_is(const void *value, uint32_t bytes, uint64_t number)
{
    uint8_t expected[TABLE_VALUE_BYTES_MAX];
    value_set(expected, bytes, number);
    return memcmp(value, expected, bytes) == 0;
}

static bool is_zeros(const uint8_t *value, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at++) {
        if (value[at] != 0) {
            return false;
        }
    }
    return true;
}

/* One random operation on both. */
static void step_once(struct fixture *fixture, struct table *table, struct model *model,
                      const struct shape *shape, uint32_t bias)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const uint32_t number = fixture_below(fixture, model->count);
    const uint32_t key_max = shape->key_bytes_max == 0 ? KEY_BYTES_MAX_MADE : shape->key_bytes_max;
    const struct span key = fixture_key(number, key_max, bytes);
    const uint64_t hash = hash_bytes(key);
    const uint64_t fresh = fixture_random(fixture);
    if (fixture_below(fixture, 100) < bias) {
        bool created;
        uint8_t *value = table_insert(table, hash, key, &created);
        assert_non_null(value);
        assert_int_equal((uintptr_t)value % 8, 0);
        assert_int_equal(created, !model->is_there[number]);
        assert_true(created ? is_zeros(value, shape->value_bytes)
                            : value_is(value, shape->value_bytes, model->values[number]));
        value_set(value, shape->value_bytes, fresh);
        model->is_there[number] = 1;
        model->values[number] = fresh;
    } else {
        assert_int_equal(table_remove(table, hash, key), model->is_there[number]);
        model->is_there[number] = 0;
    }
    const uint32_t other = fixture_below(fixture, model->count);
    const struct span look = fixture_key(other, key_max, bytes);
    const void *found = table_find(table, hash_bytes(look), look);
    assert_int_equal(found != NULL, model->is_there[other]);
    assert_true(found == NULL || value_is(found, shape->value_bytes, model->values[other]));
    void *write = table_find_write(table, hash_bytes(look), look);
    assert_ptr_equal(write, found);
    if (write != NULL) {
        model->values[other] += 3;
        value_set(write, shape->value_bytes, model->values[other]);
    }
}

static void model_compare(struct table *table, const struct model *model, const struct shape *shape)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    uint64_t count = 0;
    const uint32_t key_max = shape->key_bytes_max == 0 ? KEY_BYTES_MAX_MADE : shape->key_bytes_max;
    for (uint32_t number = 0; number < model->count; number++) {
        const struct span key = fixture_key(number, key_max, bytes);
        const void *value = table_find(table, hash_bytes(key), key);
        assert_int_equal(value != NULL, model->is_there[number]);
        assert_true(value == NULL || value_is(value, shape->value_bytes, model->values[number]));
        count += model->is_there[number];
    }
    assert_int_equal(table_counters(table)->entries, count);
    table_check(table);
}

static void model_run(const struct shape *shape)
{
    struct fixture fixture;
    fixture_open(&fixture, 8000, shape->shard_count);
    struct table *table = table_open(&fixture, shape);
    struct model model = {.count = shape->universe,
                          .is_there = calloc(shape->universe, 1),
                          .values = calloc(shape->universe, sizeof(uint64_t))};
    const uint32_t biases[] = {90, 50, 5, 70, 0};
    for (uint32_t phase = 0; phase < COUNT_OF(biases); phase++) {
        for (uint32_t part = 0; part < 4; part++) {
            fixture_barrier(&fixture);
            for (uint32_t step = 0; step < shape->step_count / 20; step++) {
                step_once(&fixture, table, &model, shape, biases[phase]);
                (void)heap_poll(fixture.heap, 2);
            }
            fixture_barrier_check(&fixture);
            heap_check(fixture.heap);
        }
        model_compare(table, &model, shape);
        arena_check(fixture.arena);
    }
    free(model.is_there);
    free(model.values);
    table_destroy(table);
    fixture_close(&fixture);
}

static void test_random_operations_on_short_keys_match_the_model(void **state)
{
    (void)state;
    model_run(&(struct shape){.value_bytes = 8,
                              .key_bytes_max = 16,
                              .shard_count = 8,
                              .universe = 30000,
                              .step_count = 200000});
    model_run(&(struct shape){.value_bytes = 1,
                              .key_bytes_max = 4,
                              .shard_count = 1,
                              .universe = 30000,
                              .step_count = 100000});
}

static void test_random_operations_on_long_keys_match_the_model(void **state)
{
    (void)state;
    model_run(&(struct shape){
        .value_bytes = 24, .shard_count = 3, .universe = 3000, .step_count = 20000});
    model_run(&(struct shape){.value_bytes = 8,
                              .key_bytes_inline = 1,
                              .shard_count = 2,
                              .universe = 3000,
                              .step_count = 20000});
}

static void test_random_operations_on_values_of_every_size_match_the_model(void **state)
{
    (void)state;
    const uint32_t sizes[] = {0, 7, 64, 65, 200, 1000, TABLE_VALUE_BYTES_MAX};
    for (size_t index = 0; index < COUNT_OF(sizes); index++) {
        model_run(&(struct shape){.value_bytes = sizes[index],
                                  .key_bytes_max = 40,
                                  .shard_count = 2,
                                  .universe = 2500,
                                  .step_count = 20000});
    }
}

static void test_one_shard_of_many_keys_grows_past_one_directory_page(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 12000, 1);
    const struct shape shape = {.value_bytes = 64, .key_bytes_max = 16};
    struct table *table = table_open(&fixture, &shape);
    uint8_t bytes[64];
    const uint32_t count = 200000;
    for (uint32_t number = 0; number < count; number++) {
        const struct span key = fixture_key(number, 16, bytes);
        bool created;
        uint8_t *value = table_insert(table, hash_bytes(key), key, &created);
        assert_true(value != NULL && created);
        value_set(value, 64, number);
    }
    assert_true(table_counters(table)->segments > 4U << 7);
    table_check(table);
    for (uint32_t number = 0; number < count; number++) {
        const struct span key = fixture_key(number, 16, bytes);
        assert_true(value_is(table_find(table, hash_bytes(key), key), 64, number));
        assert_true(table_remove(table, hash_bytes(key), key));
    }
    table_check(table);
    assert_true(table_counters(table)->segments < 200);
    table_destroy(table);
    fixture_close(&fixture);
}

/* Keys that agree in all bits of index that a directory can tell apart, found by trying. */
static void test_keys_that_no_split_separates_are_chained_and_found(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 2000, 1);
    const struct shape shape = {.value_bytes = 64, .key_bytes_max = 8};
    struct table *table = table_open(&fixture, &shape);
    uint64_t keys[400];
    uint32_t count = 0;
    for (uint64_t number = 0; count < COUNT_OF(keys); number++) {
        const uint64_t hash = hash_bytes((struct span){(const uint8_t *)&number, 8});
        if ((hash >> 8 & 0x1ffff) == 0x15555) {
            keys[count++] = number;
        }
    }
    for (uint32_t index = 0; index < count; index++) {
        bool created;
        const struct span key = {(const uint8_t *)&keys[index], 8};
        uint8_t *value = table_insert(table, hash_bytes(key), key, &created);
        assert_true(value != NULL && created);
        value_set(value, 64, keys[index]);
    }
    table_check(table);
    assert_true(table_counters(table)->overflows > 0);
    const uint64_t segments = table_counters(table)->segments;
    for (uint32_t index = 0; index < count; index++) {
        const struct span key = {(const uint8_t *)&keys[index], 8};
        assert_true(value_is(table_find(table, hash_bytes(key), key), 64, keys[index]));
        assert_true(table_remove(table, hash_bytes(key), key));
        assert_null(table_find(table, hash_bytes(key), key));
    }
    table_check(table);
    assert_true(table_counters(table)->segments < segments);
    table_destroy(table);
    fixture_close(&fixture);
}

/* Inserts until done, with every n-th acquire refused; what was in stays in. */
static void exhaust(const struct shape *shape, uint32_t count)
{
    struct fixture fixture;
    fixture_open(&fixture, 6000, shape->shard_count);
    struct table *table = table_open(&fixture, shape);
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    uint32_t refused = 0;
    for (uint32_t number = 0; number < count; number++) {
        const struct span key = fixture_key(number, shape->key_bytes_max, bytes);
        const uint64_t hash = hash_bytes(key);
        uint8_t *value = NULL;
        bool created;
        for (uint32_t after = 1; value == NULL; after++) {
            arena_fail_after(fixture.arena, after);
            value = table_insert(table, hash, key, &created);
            arena_fail_after(fixture.arena, 0);
            if (value == NULL) {
                refused++;
                assert_null(table_find(table, hash, key));
                assert_int_equal(table_counters(table)->entries, number);
                table_check(table);
                heap_check(fixture.heap);
            }
            assert_true(after < 1000);
        }
        assert_true(created);
        value_set(value, shape->value_bytes, number);
    }
    assert_true(refused > 10);
    while (heap_poll(fixture.heap, 100) != 0) {
    }
    for (uint32_t number = 0; number < count; number++) {
        const struct span key = fixture_key(number, shape->key_bytes_max, bytes);
        assert_true(value_is(table_find(table, hash_bytes(key), key), shape->value_bytes, number));
    }
    table_check(table);
    arena_check(fixture.arena);
    for (uint32_t number = 0; number < count; number++) {
        const struct span key = fixture_key(number, shape->key_bytes_max, bytes);
        assert_true(table_remove(table, hash_bytes(key), key));
    }
    while (heap_poll(fixture.heap, 100) != 0) {
    }
    assert_int_equal(fixture.heap->counters.blocks_used, 0); /* a refused insert leaks nothing */
    table_destroy(table);
    fixture_close(&fixture);
}

static void test_insert_at_every_nth_refused_page_loses_nothing(void **state)
{
    (void)state;
    exhaust(&(struct shape){.value_bytes = 48, .key_bytes_max = 16, .shard_count = 2}, 4000);
    exhaust(
        &(struct shape){.value_bytes = 300, .key_bytes_max = KEY_BYTES_MAX_MADE, .shard_count = 1},
        600);
}

static void test_insert_into_a_full_arena_is_refused_and_goes_on_after_removals(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 100, 1);
    const struct shape shape = {.value_bytes = 32, .key_bytes_max = 8};
    struct table *table = table_open(&fixture, &shape);
    uint64_t number = 0;
    bool created;
    while (table_insert(table, hash_bytes((struct span){(uint8_t *)&number, 8}),
                        (struct span){(uint8_t *)&number, 8}, &created) != NULL) {
        number++;
    }
    assert_true(number > 3000);
    assert_true(fixture.arena->counters.exhausted > 0);
    table_check(table);
    for (uint64_t gone = 0; gone < number; gone++) {
        const struct span key = {(uint8_t *)&gone, 8};
        assert_true(table_remove(table, hash_bytes(key), key));
    }
    table_check(table);
    const struct span key = {(uint8_t *)&number, 8};
    assert_non_null(table_insert(table, hash_bytes(key), key, &created));
    table_destroy(table);
    fixture_close(&fixture);
}

static void test_create_with_bad_config_refuses_in_words(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 200, 1);
    const struct table_head outside = {.offset = 16, .kind = TABLE_HEAD_LIST};
    const struct table_config bad[] = {
        {.name = "a", .value_bytes = TABLE_VALUE_BYTES_MAX + 1},
        {.name = "a", .key_bytes_inline = TABLE_KEY_BYTES_INLINE_MAX + 1},
        {.name = "a", .key_bytes_max = TABLE_KEY_BYTES_MAX + 1},
        {.name = "a", .value_bytes = 16, .heads = &outside, .head_count = 1},
        {.name = "a", .head_count = TABLE_HEAD_COUNT_MAX + 1},
        {.name = HEAP_NAME, .value_bytes = 8},
    };
    for (size_t index = 0; index < COUNT_OF(bad); index++) {
        struct error error = {0};
        struct table *table;
        assert_true(table_create(fixture.heap, &bad[index], &table, &error) < 0);
        assert_true(strlen(error.text) > 10);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_on_short_keys_match_the_model),
        cmocka_unit_test(test_random_operations_on_long_keys_match_the_model),
        cmocka_unit_test(test_random_operations_on_values_of_every_size_match_the_model),
        cmocka_unit_test(test_one_shard_of_many_keys_grows_past_one_directory_page),
        cmocka_unit_test(test_keys_that_no_split_separates_are_chained_and_found),
        cmocka_unit_test(test_insert_at_every_nth_refused_page_loses_nothing),
        cmocka_unit_test(test_insert_into_a_full_arena_is_refused_and_goes_on_after_removals),
        cmocka_unit_test(test_create_with_bad_config_refuses_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
