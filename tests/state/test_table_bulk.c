/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk lookups answer as single ones do, for any count, in tables of every stage of growth. */
#include "fixture.h"

#include "state/table.h"

#define COUNT_MAX 200U

static void compare(struct fixture *fixture, struct table *table, uint32_t universe)
{
    uint8_t bytes[COUNT_MAX][64];
    struct span keys[COUNT_MAX] = {0};
    uint64_t hashes[COUNT_MAX] = {0};
    const void *values[COUNT_MAX];
    const uint32_t count = fixture_below(fixture, COUNT_MAX + 1);
    for (uint32_t index = 0; index < count; index++) {
        keys[index] = fixture_key(fixture_below(fixture, universe), 60, bytes[index]);
        hashes[index] = hash_bytes(keys[index]);
    }
    table_prefetch(table, hashes, count);
    table_find_bulk(table, hashes, keys, count, values);
    for (uint32_t index = 0; index < count; index++) {
        assert_ptr_equal(values[index], table_find(table, hashes[index], keys[index]));
    }
}

static void test_bulk_lookup_at_every_stage_of_growth_equals_single_ones(void **state)
{
    (void)state;
    const uint32_t value_bytes[] = {0, 16, 100};
    for (size_t run = 0; run < COUNT_OF(value_bytes); run++) {
        struct fixture fixture;
        fixture_open(&fixture, 12000, 5);
        const struct table_config config = {
            .name = "table", .value_bytes = value_bytes[run], .key_bytes_max = 60};
        struct table *table;
        assert_int_equal(table_create(fixture.heap, &config, &table, NULL), 0);
        compare(&fixture, table, 100);
        for (uint32_t number = 0; number < 60000; number++) {
            uint8_t bytes[64];
            bool created;
            const struct span key = fixture_key(number, 60, bytes);
            assert_non_null(table_insert(table, hash_bytes(key), key, &created));
            if (number % 97 == 0) {
                compare(&fixture, table, number + number / 4 + 1);
            }
        }
        assert_int_equal(table_counters(table)->entries, 60000);
        table_destroy(table);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bulk_lookup_at_every_stage_of_growth_equals_single_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
