/* SPDX-License-Identifier: Apache-2.0 */
/* A scan shows what stays in the table throughout exactly once, whatever splits and merges between
 * its steps, and removes what its visitor says. */
#include "fixture.h"

#include "state/table.h"

#define NUMBER_MAX 60000U

struct seen {
    struct table *table;
    uint32_t in_step;
    uint8_t times[NUMBER_MAX];
    uint32_t remove_modulo; /* 0: keep all */
};

static struct table *table_open(struct fixture *fixture, uint32_t shard_count, uint32_t key_max)
{
    fixture_open(fixture, 12000, shard_count);
    const struct table_config config = {
        .name = "table", .value_bytes = 8, .key_bytes_max = key_max};
    struct table *table;
    assert_int_equal(table_create(fixture->heap, &config, &table, NULL), 0);
    return table;
}

static void put(struct table *table, uint64_t number, uint32_t key_max)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    bool created;
    const struct span key = fixture_key((uint32_t)number, key_max, bytes);
    uint64_t *value = table_insert(table, hash_bytes(key), key, &created);
    assert_non_null(value);
    *value = number;
}

static bool take(struct table *table, uint64_t number, uint32_t key_max)
{
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const struct span key = fixture_key((uint32_t)number, key_max, bytes);
    return table_remove(table, hash_bytes(key), key);
}

static enum table_visit visit(void *context, const struct table_entry *entry)
{
    struct seen *seen = context;
    uint64_t number;
    memcpy(&number, entry->value, sizeof(number));
    assert_true(number < NUMBER_MAX);
    seen->times[number]++;
    seen->in_step++;
    assert_int_equal(entry->shard, table_shard(seen->table, entry->hash));
    if (seen->remove_modulo != 0 && number % seen->remove_modulo == 0) {
        return TABLE_REMOVE;
    }
    memcpy(table_entry_write(seen->table, entry), &number, sizeof(number));
    return TABLE_KEEP;
}

static void scan_step_check(const struct seen *seen)
{
    assert_true(seen->in_step <= TABLE_SEGMENT_ENTRIES_MAX);
}

static void test_scan_of_an_empty_table_ends_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    struct seen seen;
    seen = (struct seen){.table = table_open(&fixture, 256, 16)};
    struct table_cursor cursor = {0};
    assert_false(table_scan(seen.table, &cursor, visit, &seen));
    assert_int_equal(seen.in_step, 0);
    table_destroy(seen.table);
    fixture_close(&fixture);
}

static void test_scan_while_the_table_grows_and_shrinks_shows_the_lasting_once(void **state)
{
    (void)state;
    for (uint32_t grows = 0; grows < 2; grows++) {
        struct fixture fixture;
        struct seen seen;
        seen = (struct seen){.table = table_open(&fixture, 3, 16)};
        const uint32_t lasting = 20000;
        uint32_t passing = grows != 0 ? lasting : NUMBER_MAX - 1;
        for (uint32_t number = 0; number < (grows != 0 ? lasting : NUMBER_MAX); number++) {
            put(seen.table, number, 16);
        }
        struct table_cursor cursor = {0};
        bool is_more = true;
        while (is_more) {
            seen.in_step = 0;
            is_more = table_scan(seen.table, &cursor, visit, &seen);
            scan_step_check(&seen);
            for (uint32_t count = 0; count < 150; count++) {
                if (grows != 0 && passing < NUMBER_MAX) {
                    put(seen.table, passing++, 16);
                } else if (grows == 0 && passing >= lasting) {
                    assert_true(take(seen.table, passing--, 16));
                }
            }
        }
        for (uint32_t number = 0; number < NUMBER_MAX; number++) {
            assert_true(number < lasting ? seen.times[number] == 1 : seen.times[number] <= 1);
        }
        table_check(seen.table);
        table_destroy(seen.table);
        fixture_close(&fixture);
    }
}

static void test_scan_that_removes_leaves_the_others(void **state)
{
    (void)state;
    struct fixture fixture;
    struct seen seen;
    seen = (struct seen){.table = table_open(&fixture, 4, KEY_BYTES_MAX_MADE), .remove_modulo = 3};
    for (uint32_t number = 0; number < 6000; number++) {
        put(seen.table, number, KEY_BYTES_MAX_MADE);
    }
    fixture_barrier(&fixture);
    struct table_cursor cursor = {0};
    while (table_scan(seen.table, &cursor, visit, &seen)) {
    }
    fixture_barrier_check(&fixture);
    table_check(seen.table);
    assert_int_equal(table_counters(seen.table)->entries, 4000);
    for (uint32_t number = 0; number < 6000; number++) {
        assert_int_equal(seen.times[number], 1);
        assert_int_equal(take(seen.table, number, KEY_BYTES_MAX_MADE), number % 3 != 0);
    }
    while (heap_poll(fixture.heap, 100) != 0) {
    }
    assert_int_equal(fixture.heap->counters.blocks_used, 0);
    table_destroy(seen.table);
    fixture_close(&fixture);
}

static void test_scan_of_one_shard_shows_that_one_only(void **state)
{
    (void)state;
    struct fixture fixture;
    struct seen seen;
    seen = (struct seen){.table = table_open(&fixture, 16, 16)};
    for (uint32_t number = 0; number < 20000; number++) {
        put(seen.table, number, 16);
    }
    struct table_cursor cursor = {.shard = 5, .one_shard = true};
    while (table_scan(seen.table, &cursor, visit, &seen)) {
    }
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    for (uint32_t number = 0; number < 20000; number++) {
        const struct span key = fixture_key(number, 16, bytes);
        assert_int_equal(seen.times[number], table_shard(seen.table, hash_bytes(key)) == 5);
    }
    table_destroy(seen.table);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_of_an_empty_table_ends_at_once),
        cmocka_unit_test(test_scan_while_the_table_grows_and_shrinks_shows_the_lasting_once),
        cmocka_unit_test(test_scan_that_removes_leaves_the_others),
        cmocka_unit_test(test_scan_of_one_shard_shows_that_one_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
