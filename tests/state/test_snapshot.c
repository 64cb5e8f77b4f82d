/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's half against copies of the whole arena: at each cut the test copies every page and its
 * metadata, lets updates go on, collects the extents as the storage thread would, and lays them
 * over the images of the checkpoint before. What comes out must be the copy. */
#include "state/snapshot.h"

#include <errno.h>

#include "state/shape.h"
#include "state/table.h"
#include "tests/state/fixture.h"

#define PAGES        2000U
#define SHARDS       8U
#define BUFFERS      24U
#define KEYS         3000U
#define PAGES_A_TURN 2U

struct rig {
    struct fixture fixture;
    struct table *table;
    struct snapshot *snapshot;
    void *memory;
    size_t memory_bytes;
    /* what the storage thread has put together */
    uint8_t *images;
    struct arena_page_meta *pages; /* kind and shard; epoch counts its images in this checkpoint */
    uint8_t facts[3 * EXTENT_BYTES];
    uint32_t facts_bytes;
    uint32_t states_count;
    uint32_t last_kind;
    uint32_t extents;
    uint32_t images_staged;
    uint32_t items_free;
    uint64_t next_id;
    uint64_t base_id;
    /* the copy at the cut */
    uint8_t *cut_images;
    struct arena_page_meta *cut_meta;
};

static void *pages_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void rig_open(struct rig *rig, uint32_t buffer_count)
{
    memset(rig, 0, sizeof(*rig));
    fixture_open(&rig->fixture, PAGES, SHARDS);
    struct error error = {0};
    const struct table_config table = {.name = "t", .value_bytes = 80, .key_bytes_max = 16};
    assert_int_equal(table_create(rig->fixture.heap, &table, &rig->table, &error), 0);
    struct snapshot_config config = {.arena = rig->fixture.arena,
                                     .lane = 3,
                                     .buffer_count = buffer_count,
                                     .pages_a_turn = PAGES_A_TURN};
    rig->memory_bytes = snapshot_memory_bytes(&config);
    rig->memory = pages_map(rig->memory_bytes);
    config.memory = rig->memory;
    assert_int_equal(snapshot_create(&config, &rig->snapshot, &error), 0);
    const size_t bytes = (size_t)PAGES * ARENA_PAGE_BYTES;
    rig->images = calloc(1, bytes);
    rig->cut_images = calloc(1, bytes);
    rig->pages = calloc(PAGES, sizeof(*rig->pages));
    rig->cut_meta = calloc(PAGES, sizeof(*rig->cut_meta));
    assert_true(rig->images != NULL && rig->cut_images != NULL);
    assert_true(rig->pages != NULL && rig->cut_meta != NULL);
    rig->next_id = 1;
}

static void rig_close(struct rig *rig)
{
    snapshot_destroy(rig->snapshot);
    table_destroy(rig->table);
    fixture_close(&rig->fixture);
    assert_int_equal(munmap(rig->memory, rig->memory_bytes), 0);
    free(rig->images);
    free(rig->cut_images);
    free(rig->pages);
    free(rig->cut_meta);
}

/* Inserts, changes and removes some keys. */
static void churn(struct rig *rig, uint32_t count)
{
    for (uint32_t step = 0; step < count; step++) {
        const uint32_t number = fixture_below(&rig->fixture, KEYS);
        uint8_t bytes[16];
        store_be64(bytes, number);
        store_be64(bytes + 8, ~(uint64_t)number);
        const struct span key = {bytes, sizeof(bytes)};
        const uint64_t hash = hash_bytes(key);
        if (fixture_below(&rig->fixture, 3) == 0) {
            (void)table_remove(rig->table, hash, key);
            continue;
        }
        bool created;
        uint64_t *value = table_insert(rig->table, hash, key, &created);
        assert_non_null(value);
        value[fixture_below(&rig->fixture, 10)] = fixture_random(&rig->fixture);
    }
}

static void facts_collect(struct rig *rig, const struct extent_header *header, const uint8_t *bytes)
{
    assert_true(header->facts_bytes != 0 && header->facts_bytes <= EXTENT_FACTS_MAX);
    assert_true(header->number * EXTENT_FACTS_MAX + header->facts_bytes <= sizeof(rig->facts));
    memcpy(rig->facts + (size_t)header->number * EXTENT_FACTS_MAX, bytes, header->facts_bytes);
    rig->facts_bytes += header->facts_bytes;
    assert_true(rig->facts_bytes <= header->facts_total);
}

static void pages_collect(struct rig *rig, const struct extent_header *header, const uint8_t *bytes)
{
    const struct extent_page *items = (const void *)(header + 1);
    for (uint32_t index = 0; index < header->item_count; index++) {
        struct arena_page_meta *page = &rig->pages[items[index].page];
        assert_int_equal(page->epoch, 0); /* invariant 1 */
        page->epoch = 1;
        page->kind = items[index].kind;
        page->shard = items[index].shard;
        if (items[index].kind == ARENA_PAGE_FREE) {
            rig->items_free++;
            continue;
        }
        memcpy(rig->images + (size_t)items[index].page * ARENA_PAGE_BYTES, bytes, ARENA_PAGE_BYTES);
        bytes += ARENA_PAGE_BYTES;
        rig->images_staged++;
    }
}

/* Takes news as the storage thread would.
 * give     whether buffers go back at once */
static void collect(struct rig *rig, bool give)
{
    struct snapshot_news news;
    while (snapshot_take(rig->snapshot, &news)) {
        rig->last_kind = news.kind;
        if (news.kind != SNAPSHOT_NEWS_EXTENT) {
            continue;
        }
        const uint8_t *extent = snapshot_buffer(rig->snapshot, news.buffer);
        const struct extent_header *header = (const void *)extent;
        assert_int_equal(header->magic, EXTENT_MAGIC);
        assert_int_equal(header->checkpoint, news.id);
        assert_int_equal(header->lane, 3);
        rig->extents++;
        if (header->kind == EXTENT_PAGES) {
            pages_collect(rig, header, extent + EXTENT_HEAD_BYTES);
        } else if (header->kind == EXTENT_FACTS) {
            facts_collect(rig, header, extent + EXTENT_HEAD_BYTES);
        } else {
            const struct span list = {extent + EXTENT_HEAD_BYTES, header->facts_bytes};
            assert_int_equal(shape_list_check(list, NULL), 0);
            rig->states_count =
                ((const struct shape_list_head *)(const void *)list.data)->state_count;
        }
        if (give) {
            snapshot_give(rig->snapshot, news.buffer);
        }
    }
}

/* Orders and cuts, with a copy of everything taken at the cut. */
static uint64_t cut(struct rig *rig, bool is_full, struct span facts)
{
    const struct arena *arena = rig->fixture.arena;
    const uint64_t id = rig->next_id++;
    uint64_t told = 0;
    assert_true(snapshot_order(rig->snapshot, id, is_full ? 0 : rig->base_id));
    assert_true(snapshot_ordered(rig->snapshot, &told));
    assert_int_equal(told, id);
    assert_false(snapshot_ordered(rig->snapshot, &told));
    memcpy(rig->cut_images, arena->base, (size_t)arena->page_count * ARENA_PAGE_BYTES);
    memcpy(rig->cut_meta, arena->meta, arena->page_count * sizeof(*rig->cut_meta));
    for (uint32_t page = 0; page < PAGES; page++) {
        rig->pages[page].epoch = 0;
        rig->pages[page].kind = is_full ? (uint8_t)ARENA_PAGE_FREE : rig->pages[page].kind;
    }
    rig->facts_bytes = 0;
    rig->states_count = 0;
    rig->images_staged = 0;
    rig->items_free = 0;
    snapshot_cut(rig->snapshot, id, facts, 10);
    assert_true(snapshot_is_open(rig->snapshot));
    return id;
}

static void check(struct rig *rig)
{
    const struct arena *arena = rig->fixture.arena;
    for (uint32_t page = 1; page < arena->page_count; page++) {
        const struct arena_page_meta *was = &rig->cut_meta[page];
        assert_int_equal(rig->pages[page].kind, was->kind);
        if (was->kind == ARENA_PAGE_FREE) {
            continue;
        }
        assert_int_equal(rig->pages[page].shard, was->shard);
        assert_memory_equal(rig->images + (size_t)page * ARENA_PAGE_BYTES,
                            rig->cut_images + (size_t)page * ARENA_PAGE_BYTES, ARENA_PAGE_BYTES);
    }
}

/* Stages to the end while updates go on. */
static void stage(struct rig *rig, uint32_t updates_a_turn)
{
    for (uint32_t turn = 0; rig->last_kind != SNAPSHOT_NEWS_STAGED; turn++) {
        assert_true(turn < 100000);
        churn(rig, updates_a_turn);
        (void)snapshot_poll(rig->snapshot, 20 + turn, turn % 3 != 0);
        if (turn == 7) {
            snapshot_settle(rig->snapshot);
        }
        collect(rig, true);
    }
    rig->last_kind = 0;
    assert_false(snapshot_is_open(rig->snapshot));
}

static void outcome(struct rig *rig, uint64_t id, bool is_durable)
{
    const struct snapshot_outcome told = {.id = id, .is_durable = is_durable};
    struct snapshot_outcome heard = {0};
    assert_true(snapshot_tell(rig->snapshot, &told));
    assert_true(snapshot_outcome(rig->snapshot, &heard));
    assert_int_equal(heard.id, id);
    assert_int_equal(heard.is_durable, is_durable);
    assert_false(snapshot_outcome(rig->snapshot, &heard));
    rig->base_id = is_durable ? id : rig->base_id;
}

static void test_chain_of_cuts_under_load_then_images_are_those_of_each_cut(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    churn(&rig, 2000);
    const uint8_t facts[3] = {1, 2, 3};
    for (uint32_t round = 0; round < 40; round++) {
        churn(&rig, fixture_below(&rig.fixture, 200));
        const bool is_full = round % 8 == 0;
        const uint64_t id = cut(&rig, is_full, (struct span){facts, sizeof(facts)});
        stage(&rig, 5);
        check(&rig);
        assert_int_equal(rig.facts_bytes, sizeof(facts));
        assert_memory_equal(rig.facts, facts, sizeof(facts));
        assert_int_equal(rig.states_count, is_full ? 2 : 0);
        outcome(&rig, id, true);
    }
    assert_true(snapshot_counters(rig.snapshot)->preimages > 100);
    assert_true(snapshot_counters(rig.snapshot)->scanned_pages > 100);
    assert_int_equal(snapshot_counters(rig.snapshot)->given_up, 0);
    assert_int_equal(snapshot_counters(rig.snapshot)->cuts, 40);
    rig_close(&rig);
}

static void test_incremental_cut_when_little_has_changed_then_only_that_is_staged(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    churn(&rig, 4000);
    uint64_t id = cut(&rig, true, (struct span){NULL, 0});
    stage(&rig, 0);
    outcome(&rig, id, true);
    const uint32_t all = rig.images_staged;
    assert_int_equal(all, rig.fixture.arena->counters.pages_used);

    id = cut(&rig, false, (struct span){NULL, 0});
    stage(&rig, 0);
    outcome(&rig, id, true);
    assert_int_equal(rig.images_staged, 0); /* invariant 2 */

    churn(&rig, 3);
    (void)cut(&rig, false, (struct span){NULL, 0});
    stage(&rig, 0);
    check(&rig);
    assert_true(rig.images_staged > 0 && rig.images_staged < 30 && rig.images_staged < all / 4);
    rig_close(&rig);
}

static void test_failed_checkpoint_then_the_next_holds_what_it_lacked(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    churn(&rig, 2000);
    uint64_t id = cut(&rig, true, (struct span){NULL, 0});
    stage(&rig, 2);
    check(&rig);
    outcome(&rig, id, true);
    uint8_t *images = malloc((size_t)PAGES * ARENA_PAGE_BYTES);
    struct arena_page_meta *pages = malloc(PAGES * sizeof(*pages));
    assert_true(images != NULL && pages != NULL);
    memcpy(images, rig.images, (size_t)PAGES * ARENA_PAGE_BYTES);
    memcpy(pages, rig.pages, PAGES * sizeof(*pages));

    churn(&rig, 500);
    id = cut(&rig, false, (struct span){NULL, 0});
    stage(&rig, 3);
    outcome(&rig, id, false);
    memcpy(rig.images, images, (size_t)PAGES * ARENA_PAGE_BYTES); /* as if it had never been */
    memcpy(rig.pages, pages, PAGES * sizeof(*pages));

    churn(&rig, 100);
    (void)cut(&rig, false, (struct span){NULL, 0});
    stage(&rig, 3);
    check(&rig);
    free(images);
    free(pages);
    rig_close(&rig);
}

static void test_failed_checkpoint_while_open_then_it_is_dropped_and_buffers_come_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    churn(&rig, 1000);
    const uint64_t id = cut(&rig, true, (struct span){NULL, 0});
    (void)snapshot_poll(rig.snapshot, 1, true);
    outcome(&rig, id, false);
    assert_false(snapshot_is_open(rig.snapshot));
    snapshot_settle(rig.snapshot); /* too late, no harm */
    collect(&rig, true);
    (void)cut(&rig, true, (struct span){NULL, 0});
    stage(&rig, 1);
    check(&rig);

    /* One that fails before its cut is never cut. */
    uint64_t told;
    outcome(&rig, rig.next_id - 1, true);
    assert_true(snapshot_order(rig.snapshot, rig.next_id, rig.base_id));
    assert_true(snapshot_ordered(rig.snapshot, &told));
    outcome(&rig, rig.next_id, false);
    snapshot_cut(rig.snapshot, told, (struct span){NULL, 0}, 1);
    assert_false(snapshot_is_open(rig.snapshot));
    rig_close(&rig);
}

static void test_no_buffer_for_an_old_image_then_low_first_and_given_up_at_last(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 8);
    for (uint32_t count = 0; count < 1500; count++) { /* more than eight buffers hold */
        assert_int_not_equal(arena_page_acquire(rig.fixture.arena, 0, ARENA_PAGE_BLOB), 0);
    }
    (void)cut(&rig, true, (struct span){NULL, 0});
    uint32_t low_at = 0;
    uint32_t turn = 0;
    while (rig.last_kind != SNAPSHOT_NEWS_GIVEN_UP) {
        (void)snapshot_poll(rig.snapshot, turn++, true);
        if (low_at == 0 && snapshot_is_low(rig.snapshot)) {
            low_at = turn;
        }
        (void)arena_write(rig.fixture.arena, 1 + fixture_below(&rig.fixture, 1500));
        assert_true(turn < 100000);
        struct snapshot_news news;
        while (snapshot_take(rig.snapshot, &news)) {
            rig.last_kind = news.kind; /* the disk gives nothing back */
        }
    }
    assert_true(low_at != 0 && low_at + EXTENT_IMAGES_MAX < turn);
    assert_false(snapshot_is_open(rig.snapshot));
    assert_int_equal(snapshot_counters(rig.snapshot)->given_up, 1);
    assert_true(snapshot_counters(rig.snapshot)->low_turns > EXTENT_IMAGES_MAX);
    for (uint32_t buffer = 0; buffer < 8; buffer++) {
        snapshot_give(rig.snapshot, buffer);
    }
    outcome(&rig, rig.next_id - 1, false);
    (void)cut(&rig, true, (struct span){NULL, 0});
    stage(&rig, 0);
    check(&rig);
    rig_close(&rig);
}

static void test_scan_without_buffers_then_it_waits_and_leaves_the_reserve(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, 8);
    for (uint32_t count = 0; count < 1500; count++) {
        assert_int_not_equal(arena_page_acquire(rig.fixture.arena, 0, ARENA_PAGE_BLOB), 0);
    }
    (void)cut(&rig, true, (struct span){NULL, 0});
    for (uint32_t turn = 0; turn < 2000; turn++) {
        (void)snapshot_poll(rig.snapshot, turn, false);
    }
    assert_true(snapshot_is_open(rig.snapshot));
    assert_false(snapshot_is_low(rig.snapshot)); /* half of the buffers are left to the hook */
    assert_int_equal(snapshot_poll(rig.snapshot, 1, false), 0);
    stage(&rig, 1);
    check(&rig);
    rig_close(&rig);
}

static void test_long_facts_then_they_come_in_pieces_that_join(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    const uint32_t bytes = 2 * EXTENT_FACTS_MAX + 777;
    uint8_t *facts = malloc(bytes);
    assert_non_null(facts);
    for (uint32_t at = 0; at < bytes; at++) {
        facts[at] = (uint8_t)(at * 7 + at / 1000);
    }
    (void)cut(&rig, true, (struct span){facts, bytes});
    stage(&rig, 2);
    assert_int_equal(rig.facts_bytes, bytes);
    assert_memory_equal(rig.facts, facts, bytes);
    free(facts);
    rig_close(&rig);
}

static void test_base_that_the_arena_does_not_know_then_given_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, BUFFERS);
    churn(&rig, 100);
    uint64_t told;
    assert_true(snapshot_order(rig.snapshot, 9, 8));
    assert_true(snapshot_ordered(rig.snapshot, &told));
    snapshot_cut(rig.snapshot, told, (struct span){NULL, 0}, 1);
    assert_false(snapshot_is_open(rig.snapshot));
    collect(&rig, true);
    assert_int_equal(rig.last_kind, SNAPSHOT_NEWS_GIVEN_UP);
    rig_close(&rig);
}

static void test_lane_without_state_then_facts_alone_are_staged(void **state)
{
    (void)state;
    struct snapshot_config config = {.lane = 3, .buffer_count = 4, .pages_a_turn = 1};
    config.memory = pages_map(snapshot_memory_bytes(&config));
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    struct error error = {0};
    assert_int_equal(snapshot_create(&config, &rig->snapshot, &error), 0);
    assert_ptr_equal(snapshot_buffers(rig->snapshot).data, config.memory);
    assert_int_equal(snapshot_buffers(rig->snapshot).bytes, 4 * EXTENT_BYTES);
    uint64_t told;
    assert_true(snapshot_order(rig->snapshot, 5, 4));
    assert_true(snapshot_ordered(rig->snapshot, &told));
    const uint8_t facts[2] = {8, 9};
    snapshot_cut(rig->snapshot, told, (struct span){facts, 2}, 1);
    snapshot_settle(rig->snapshot);
    for (uint32_t turn = 0; turn < 4; turn++) {
        (void)snapshot_poll(rig->snapshot, 1, true);
    }
    collect(rig, true);
    assert_int_equal(rig->last_kind, SNAPSHOT_NEWS_STAGED);
    assert_int_equal(rig->facts_bytes, 2);
    assert_int_equal(rig->extents, 1);
    snapshot_destroy(rig->snapshot);
    snapshot_destroy(NULL);
    assert_int_equal(munmap(config.memory, snapshot_memory_bytes(&config)), 0);
    free(rig);
}

static void test_bad_config_then_refused(void **state)
{
    (void)state;
    uint8_t *memory = pages_map(ARENA_PAGE_BYTES);
    struct snapshot *snapshot = NULL;
    struct error error = {0};
    struct snapshot_config config = {.buffer_count = 3, .pages_a_turn = 1, .memory = memory};
    assert_int_equal(snapshot_create(&config, &snapshot, &error), -EINVAL);
    config = (struct snapshot_config){.buffer_count = 4, .memory = memory};
    assert_int_equal(snapshot_create(&config, &snapshot, &error), -EINVAL);
    config = (struct snapshot_config){.buffer_count = 4, .pages_a_turn = 1, .memory = memory + 64};
    assert_int_equal(snapshot_create(&config, &snapshot, &error), -EINVAL);
    assert_true(error.text[0] != '\0');
    assert_int_equal(munmap(memory, ARENA_PAGE_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_of_cuts_under_load_then_images_are_those_of_each_cut),
        cmocka_unit_test(test_incremental_cut_when_little_has_changed_then_only_that_is_staged),
        cmocka_unit_test(test_failed_checkpoint_then_the_next_holds_what_it_lacked),
        cmocka_unit_test(
            test_failed_checkpoint_while_open_then_it_is_dropped_and_buffers_come_back),
        cmocka_unit_test(test_no_buffer_for_an_old_image_then_low_first_and_given_up_at_last),
        cmocka_unit_test(test_scan_without_buffers_then_it_waits_and_leaves_the_reserve),
        cmocka_unit_test(test_long_facts_then_they_come_in_pieces_that_join),
        cmocka_unit_test(test_base_that_the_arena_does_not_know_then_given_up),
        cmocka_unit_test(test_lane_without_state_then_facts_alone_are_staged),
        cmocka_unit_test(test_bad_config_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
