/* SPDX-License-Identifier: Apache-2.0 */
/* Whole round trips: a world under load is checkpointed, restored into another world of the same or
 * other lanes, compared with what was written down at the cuts, worked on and checkpointed again.
 * Then damage: images whose sums would be right but whose content contradicts itself. */
#include "state/restore.h"

#include <errno.h>

#include "tests/state/world.h"

static struct world_config config_of(struct store *store, uint32_t lane_count, uint64_t seed)
{
    return (struct world_config){.store = store,
                                 .lane_count = lane_count,
                                 .buffer_count = 32,
                                 .full_every = 4,
                                 .first_id = 1,
                                 .seed = seed};
}

static struct world *world_make(const struct world_config *config)
{
    struct world *world = malloc(sizeof(*world));
    assert_non_null(world);
    world_open(world, config);
    return world;
}

static void world_free(struct world *world)
{
    world_close(world);
    free(world);
}

/* The newest complete checkpoint's id. */
static uint64_t newest(const struct store *store)
{
    struct store_checkpoint entry = {0};
    assert_true(store_list(store, &entry, 1) != 0);
    return entry.id;
}

static int facts_check(void *context, uint32_t lane, struct span facts)
{
    const uint64_t id = *(const uint64_t *)context;
    uint64_t read[2];
    assert_int_equal(facts.bytes, sizeof(read));
    memcpy(read, facts.data, sizeof(read));
    assert_int_equal(read[0], id);
    assert_int_equal(read[1], lane);
    return 0;
}

/* Restores the newest checkpoint of a world into a new one and compares. */
static struct world *successor(const struct world *from, uint32_t lane_count, uint64_t seed)
{
    struct error error = {0};
    struct restore_report report;
    uint64_t id = newest(from->store);
    struct world_config config = config_of(from->store, lane_count, seed);
    struct world *world = world_make(&config);
    assert_int_equal(world_restore(world, id, &report, &error), 0);
    assert_int_equal(report.is_in_place, lane_count == from->lane_count);
    assert_int_equal(report.states_restored, 3);
    assert_int_equal(report.states_new + report.states_dropped, 0);
    assert_true(report.pages != 0 && report.bytes != 0);
    assert_true(report.is_in_place == (report.entries == 0));
    assert_int_equal(restore_facts(from->store, id, facts_check, &id, &error), 0);
    world_compare(world, &from->cut);
    world_check(world);
    config.first_id = id + 1;
    config.base_id = report.is_in_place ? id : 0;
    world_start(world, &config);
    return world;
}

static void test_chain_under_load_then_each_checkpoint_restores_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct store *store = fake_store_create();
        const struct world_config config = config_of(store, 2, seed);
        struct world *world = world_make(&config);
        world_start(world, &config);
        world_run(world, 3000);
        for (uint32_t round = 0; round < 7; round++) {
            const struct checkpoint_report report = world_checkpoint(world, 20);
            assert_int_equal(report.result, CHECKPOINT_COMPLETE);
            assert_true((report.base_id == 0) == (round % 4 == 0));
            struct world *restored = successor(world, 2, seed);
            world_drain_timers(restored);
            world_free(restored);
            world_run(world, 300);
        }
        world_free(world);
        fake_store_destroy(store);
    }
}

static void test_other_lanes_then_the_same_state(void **state)
{
    (void)state;
    static const uint32_t lanes[] = {1, 2, 4, 3, 1, 2};
    struct store *store = fake_store_create();
    const struct world_config config = config_of(store, 2, 7);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 6000);
    for (uint32_t round = 0; round < COUNT_OF(lanes); round++) {
        (void)world_checkpoint(world, 20);
        assert_int_equal(world_checkpoint(world, 20).result, CHECKPOINT_COMPLETE);
        struct world *next = successor(world, lanes[round], round);
        world_free(world);
        world = next;
        world_run(world, 1500);
        world_check(world);
    }
    world_drain_timers(world);
    world_free(world);
    fake_store_destroy(store);
}

static void test_restored_in_place_then_the_next_incremental_builds_on_it(void **state)
{
    (void)state;
    struct store *store = fake_store_create();
    const struct world_config config = config_of(store, 2, 9);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 4000);
    const struct checkpoint_report full = world_checkpoint(world, 0);
    for (uint32_t round = 0; round < 3; round++) {
        struct world *next = successor(world, 2, round);
        world_free(world);
        world = next;
        world_run(world, 5);
        const struct checkpoint_report report = world_checkpoint(world, 0);
        assert_int_equal(report.result, CHECKPOINT_COMPLETE);
        assert_int_equal(report.base_id, report.id - 1);
        assert_true(report.pages < full.pages / 3);
    }
    world_free(successor(world, 4, 1));
    world_free(world);
    fake_store_destroy(store);
}

static void test_arena_of_another_size_then_restored_or_refused(void **state)
{
    (void)state;
    struct store *store = fake_store_create();
    struct world_config config = config_of(store, 1, 3);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 6000);
    assert_int_equal(world_checkpoint(world, 0).result, CHECKPOINT_COMPLETE);
    const uint32_t used = (uint32_t)world->lanes[0].arena->counters.pages_used;
    struct error error = {0};
    struct restore_report report;

    config.page_count = used / 2;
    struct world *small = world_make(&config);
    assert_int_equal(world_restore(small, 1, &report, &error), -ENOSPC);
    assert_true(strstr(error.text, "too small") != NULL);
    assert_int_equal(small->lanes[0].arena->counters.pages_used, 0);
    world_run(small, 10); /* empty, and good for work */
    world_free(small);

    config.page_count = 9000;
    struct world *large = world_make(&config);
    assert_int_equal(world_restore(large, 1, &report, &error), 0);
    assert_true(report.is_in_place);
    world_compare(large, &world->cut);
    world_free(large);
    world_free(world);
    fake_store_destroy(store);
}

static void test_states_that_do_not_fit_then_refused_by_name_or_dropped(void **state)
{
    (void)state;
    struct store *store = fake_store_create();
    struct world_config config = config_of(store, 1, 3);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 2000);
    assert_int_equal(world_checkpoint(world, 0).result, CHECKPOINT_COMPLETE);
    const size_t bytes = arena_memory_bytes(6000, WORLD_SHARDS);
    const struct arena_config arena_config = {
        .memory = world_map(NULL, bytes), .bytes = bytes, .shard_count = WORLD_SHARDS};
    struct arena *arena;
    struct heap *heap;
    struct table *tables[2];
    struct error error = {0};
    assert_int_equal(arena_create(&arena_config, &arena, &error), 0);
    assert_int_equal(heap_create(arena, &heap, &error), 0);
    struct table_config table = {
        .name = "fresh", .value_bytes = 16, .key_bytes_max = 4, .key_bytes_inline = 4};
    assert_int_equal(table_create(heap, &table, &tables[0], &error), 0);
    table = (struct table_config){.name = "counts",
                                  .value_bytes = 8,
                                  .key_bytes_max = 4,
                                  .key_bytes_inline = 4,
                                  .key_skip_bytes = 2};
    assert_int_equal(table_create(heap, &table, &tables[1], &error), 0);
    const char *const drops[] = {"cards", "due", "counts"};
    struct restore_config restore = {.store = store,
                                     .id = 1,
                                     .arenas = &arena,
                                     .lane_count = 1,
                                     .owner = world_owner,
                                     .owner_context = world,
                                     .drop_names = drops,
                                     .map = world_map,
                                     .unmap = world_unmap};
    struct restore_report report;
    assert_int_equal(restore_state(&restore, NULL, &report, &error), -ENOTSUP);
    assert_string_equal(error.place, "cards");
    restore.drop_count = 1;
    assert_int_equal(restore_state(&restore, NULL, &report, &error), -ENOTSUP);
    assert_string_equal(error.place, "due");
    restore.drop_count = 2;
    assert_int_equal(restore_state(&restore, NULL, &report, &error), 0);
    assert_int_equal(report.states_dropped, 2);
    assert_int_equal(report.states_restored, 1);
    assert_int_equal(report.states_new, 1);
    assert_int_equal(table_counters(tables[1])->entries,
                     table_counters(world->lanes[0].counts)->entries);
    table_check(tables[1]);
    restore.drop_count = 3;
    assert_int_equal(restore_state(&restore, NULL, &report, &error), 0);
    assert_int_equal(report.states_restored, 0);
    assert_int_equal(table_counters(tables[1])->entries, 0);
    table_destroy(tables[0]);
    table_destroy(tables[1]);
    heap_destroy(heap);
    world_unmap(NULL, arena_config.memory, bytes);
    world_free(world);
    fake_store_destroy(store);
}

/* A state of the same name whose values are of another size. */
static void test_state_of_another_size_then_refused_by_name(void **state)
{
    (void)state;
    struct store *store = fake_store_create();
    struct world_config config = config_of(store, 1, 3);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 200);
    assert_int_equal(world_checkpoint(world, 0).result, CHECKPOINT_COMPLETE);
    config.counts_bytes = 16;
    struct world *other = world_make(&config);
    struct error error = {0};
    struct restore_report report;
    assert_int_equal(world_restore(other, 1, &report, &error), -ENOTSUP);
    assert_string_equal(error.place, "counts");
    world_free(other);
    world_free(world);
    fake_store_destroy(store);
}

/* Changes some bytes of some image or head of a checkpoint, as no disk would: mostly numbers that
 * mean something, near the front of a page or where a reference could be.
 * returns  what was changed, to be put back */
struct damage {
    uint8_t *at;
    uint8_t old[8];
};

static struct damage damage_make(struct fixture *random, const struct fake_checkpoint *checkpoint)
{
    struct damage damage = {0};
    uint64_t value = 0;
    for (uint32_t turn = 0; turn < 40 && (value == 0 || value >> 40 != 0); turn++) {
        const uint32_t extent = fixture_below(random, checkpoint->extent_count);
        uint8_t *bytes = checkpoint->extents[extent].bytes;
        uint32_t place = fixture_below(random, extent_bytes(bytes) / 8U) * 8U;
        if (fixture_below(random, 4) == 0 && place >= EXTENT_HEAD_BYTES) {
            place = place / ARENA_PAGE_BYTES * ARENA_PAGE_BYTES + fixture_below(random, 24) * 8U;
        }
        damage.at = bytes + place;
        memcpy(damage.old, damage.at, sizeof(damage.old));
        memcpy(&value, damage.at, sizeof(value));
    }
    switch (fixture_below(random, 5)) {
    case 0:
        value ^= UINT64_C(1) << fixture_below(random, 64);
        break;
    case 1:
        value = fixture_random(random);
        break;
    case 2:
        value = 0;
        break;
    case 3:
        value += 16;
        break;
    default:
        damage.at[fixture_below(random, 8)] ^= (uint8_t)(1U + fixture_below(random, 255));
        return damage;
    }
    memcpy(damage.at, &value, sizeof(value));
    return damage;
}

/* The harness's own timers and counts are out of step with a damaged state that was accepted: only
 * what needs no model is done to it. */
static void use_accepted(struct world *world)
{
    for (uint32_t lane = 0; lane < world->lane_count; lane++) {
        arena_check(world->lanes[lane].arena);
        heap_check(world->lanes[lane].heap);
        table_check(world->lanes[lane].cards);
        table_check(world->lanes[lane].counts);
        timers_check(world->lanes[lane].timers);
    }
    world_use(world);
}

static void damage_round(uint64_t seed, uint32_t rounds, uint32_t lane_count)
{
    struct store *store = fake_store_create();
    struct world_config config = config_of(store, 2, seed);
    struct world *world = world_make(&config);
    world_start(world, &config);
    world_run(world, 800);
    assert_int_equal(world_checkpoint(world, 0).result, CHECKPOINT_COMPLETE);
    world_free(world);
    struct fixture random = {.random = seed * 77 + 5};
    uint32_t refused = 0;
    config = config_of(store, lane_count, seed);
    config.page_count = 1500;
    for (uint32_t round = 0; round < rounds; round++) {
        const struct damage damage = damage_make(&random, fake_store_find(store, 1));
        struct world *other = world_make(&config);
        struct restore_report report;
        struct error error = {0};
        const int code = world_restore(other, 1, &report, &error);
        assert_true(code == 0 || code == -EBADMSG || code == -ENOTSUP || code == -ENOMEM ||
                    code == -ENOSPC);
        assert_true(code == 0 || error.text[0] != '\0');
        refused += code != 0;
        if (code == 0) {
            use_accepted(other);
        }
        memcpy(damage.at, damage.old, sizeof(damage.old));
        world_free(other);
    }
    assert_true(refused > rounds / 10 && refused < rounds);
    fake_store_destroy(store);
}

static void test_images_that_contradict_themselves_then_refused_or_harmless(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        damage_round(seed, 120, 2);
        damage_round(seed, 50, 3);
    }
}

static void test_unknown_checkpoint_then_no_entry(void **state)
{
    (void)state;
    struct store *store = fake_store_create();
    const struct world_config config = config_of(store, 1, 3);
    struct world *world = world_make(&config);
    struct error error = {0};
    assert_int_equal(world_restore(world, 5, NULL, &error), -ENOENT);
    assert_int_equal(restore_facts(store, 5, facts_check, NULL, &error), -ENOENT);
    world_free(world);
    fake_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_under_load_then_each_checkpoint_restores_exactly),
        cmocka_unit_test(test_other_lanes_then_the_same_state),
        cmocka_unit_test(test_restored_in_place_then_the_next_incremental_builds_on_it),
        cmocka_unit_test(test_arena_of_another_size_then_restored_or_refused),
        cmocka_unit_test(test_states_that_do_not_fit_then_refused_by_name_or_dropped),
        cmocka_unit_test(test_state_of_another_size_then_refused_by_name),
        cmocka_unit_test(test_images_that_contradict_themselves_then_refused_or_harmless),
        cmocka_unit_test(test_unknown_checkpoint_then_no_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
