/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of state that ends, and the pace of its sweep: a pass in half a lifetime, whatever the
 * ticks are, bounded work a tick, and a pass at most after a jump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/operator/expiry.h"

#define ARENA_BYTES ((size_t)8 << 20)

struct fixture {
    void *memory;
    struct arena *arena;
    struct heap *heap;
    struct table *table;
};

static void begin(struct fixture *fixture, uint32_t key_count)
{
    fixture->memory = aligned_alloc(ARENA_PAGE_BYTES, ARENA_BYTES);
    const struct arena_config config = {
        .memory = fixture->memory, .bytes = ARENA_BYTES, .shard_count = 4};
    assert_int_equal(0, arena_create(&config, &fixture->arena, NULL));
    assert_int_equal(0, heap_create(fixture->arena, &fixture->heap, NULL));
    const struct table_config table = {.name = "t", .value_bytes = 8};
    assert_int_equal(0, table_create(fixture->heap, &table, &fixture->table, NULL));
    for (uint32_t key = 0; key < key_count; key++) {
        bool created = false;
        const struct span bytes = {(const uint8_t *)&key, sizeof(key)};
        assert_non_null(table_insert(fixture->table, hash_bytes(bytes), bytes, &created));
    }
}

static void end(struct fixture *fixture)
{
    table_check(fixture->table);
    table_destroy(fixture->table);
    heap_destroy(fixture->heap);
    free(fixture->memory);
}

static void test_a_write_ends_when_the_whole_lifetime_has_passed(void **state)
{
    struct fixture fixture;
    begin(&fixture, 0);
    struct expiry expiry;
    expiry_init(&expiry, 100);
    assert_false(expiry_is_over(&expiry, EXPIRY_TIME_NONE));
    (void)expiry_tick(&expiry, fixture.table, 1000, false);
    assert_false(expiry_is_over(&expiry, 901));
    assert_true(expiry_is_over(&expiry, 900));
    assert_true(expiry_is_over(&expiry, -INT64_MAX)); /* no overflow */
    assert_false(expiry_is_over(&expiry, EXPIRY_TIME_NONE));
    assert_false(expiry_is_over(&expiry, 1001)); /* restored from a lane that was ahead */
    expiry_init(&expiry, UINT64_MAX);
    (void)expiry_tick(&expiry, fixture.table, INT64_MAX, false);
    assert_false(expiry_is_over(&expiry, -INT64_MAX));
    end(&fixture);
}

static uint64_t owed_over(struct fixture *fixture, uint64_t ttl_ms, int64_t step_ms,
                          int64_t span_ms)
{
    struct expiry expiry;
    expiry_init(&expiry, ttl_ms);
    (void)expiry_tick(&expiry, fixture->table, 0, false);
    expiry.due = 0;
    uint64_t sum = 0;
    for (int64_t now = step_ms; now <= span_ms; now += step_ms) {
        const uint32_t count = expiry_tick(&expiry, fixture->table, now, false);
        assert_true(count <= EXPIRY_SEGMENTS_MAX);
        sum += count;
    }
    return sum;
}

static void test_the_sweep_passes_the_table_in_half_a_lifetime_when_ticks_come(void **state)
{
    struct fixture fixture;
    begin(&fixture, 20000);
    const uint64_t segments = table_counters(fixture.table)->segments;
    assert_true(segments > 100);
    /* Half a lifetime of 4,000 ms, in steps of 1, 7 and 20 ms, and of a day, in minutes. */
    assert_in_range(owed_over(&fixture, 4000, 1, 2001), segments - 1, segments);
    assert_in_range(owed_over(&fixture, 4000, 7, 2001), segments - 2, segments);
    assert_in_range(owed_over(&fixture, 4000, 20, 2001), segments - 2, segments);
    assert_in_range(owed_over(&fixture, 86400000, 60000, 43200000), segments - 1, segments);
    /* Longer than that is swept as if it were a day. */
    assert_in_range(owed_over(&fixture, UINT64_MAX, 60000, 43200000), segments - 1, segments);
    end(&fixture);
}

static void test_a_tick_is_bounded_when_the_clock_has_jumped(void **state)
{
    struct fixture fixture;
    begin(&fixture, 20000);
    struct expiry expiry;
    expiry_init(&expiry, 1000);
    assert_int_equal(EXPIRY_SEGMENTS_MAX, expiry_tick(&expiry, fixture.table, 0, false));
    assert_int_equal(EXPIRY_SEGMENTS_MAX,
                     expiry_tick(&expiry, fixture.table, INT64_MAX / 2, false));
    assert_int_equal(EXPIRY_SEGMENTS_LOW_MAX,
                     expiry_tick(&expiry, fixture.table, INT64_MAX / 2, true));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        sum += expiry_tick(&expiry, fixture.table, INT64_MAX / 2, false);
    }
    assert_true(sum <= table_counters(fixture.table)->segments);
    end(&fixture);
}

static enum table_visit count_visit(void *context, const struct table_entry *entry)
{
    uint32_t *seen = context;
    uint32_t key = 0;
    memcpy(&key, entry->key.data, sizeof(key));
    seen[key]++;
    return key % 2 == 0 ? TABLE_REMOVE : TABLE_KEEP;
}

static void test_the_sweep_sees_each_entry_once_a_pass_and_begins_again(void **state)
{
    struct fixture fixture;
    begin(&fixture, 5000);
    static uint32_t seen[5000];
    memset(seen, 0, sizeof(seen));
    struct expiry expiry;
    expiry_init(&expiry, 1000);
    uint32_t steps = 0;
    do {
        expiry_sweep(&expiry, fixture.table, 1, count_visit, seen);
        steps++;
    } while (expiry.cursor.shard != 0 || expiry.cursor.position != 0);
    assert_true(steps > 20);
    for (uint32_t key = 0; key < 5000; key++) {
        assert_int_equal(seen[key], 1);
    }
    assert_int_equal(table_counters(fixture.table)->entries, 2500);
    do {
        expiry_sweep(&expiry, fixture.table, 3, count_visit, seen);
    } while (expiry.cursor.shard != 0 || expiry.cursor.position != 0);
    /* Steps of three segments end a pass exactly after one to three of them. */
    for (uint32_t key = 0; key < 5000; key++) {
        assert_in_range(seen[key], key % 2 == 0 ? 1 : 2, key % 2 == 0 ? 1 : 4);
    }
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_write_ends_when_the_whole_lifetime_has_passed),
        cmocka_unit_test(test_the_sweep_passes_the_table_in_half_a_lifetime_when_ticks_come),
        cmocka_unit_test(test_a_tick_is_bounded_when_the_clock_has_jumped),
        cmocka_unit_test(test_the_sweep_sees_each_entry_once_a_pass_and_begins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
