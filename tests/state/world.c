/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/state/world.h"

#include <stddef.h>

#include "state/list.h"
#include "state/ordered.h"

#define KEY_MAX     6000U
#define CONTENT_MAX 20000U
#define MAP_BYTES   12U
/* What does not decide a key's shard, as the ends of windows do not. */
#define CARD_SKIP_BYTES  1U
#define COUNT_SKIP_BYTES 2U

static const struct table_head card_heads[] = {
    {.offset = offsetof(struct world_value, blob), .kind = TABLE_HEAD_BLOB_REF},
    {.offset = offsetof(struct world_value, block), .kind = TABLE_HEAD_HEAP_REF},
    {.offset = offsetof(struct world_value, list), .kind = TABLE_HEAD_LIST},
    {.offset = offsetof(struct world_value, map), .kind = TABLE_HEAD_ORDERED},
};

static void *pages_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

uint32_t world_owner(void *context, const char *name, uint32_t shard)
{
    const struct world *world = context;
    assert_non_null(name);
    return shard % world->lane_count;
}

static void lane_open(struct world *world, uint32_t number, const struct world_config *config)
{
    struct world_lane *lane = &world->lanes[number];
    struct error error = {0};
    const uint32_t page_count = config->page_count == 0 ? 6000 : config->page_count;
    const struct arena_config arena = {.bytes = arena_memory_bytes(page_count, WORLD_SHARDS),
                                       .memory =
                                           pages_map(arena_memory_bytes(page_count, WORLD_SHARDS)),
                                       .shard_count = WORLD_SHARDS,
                                       .is_lazy = true};
    lane->memory = arena.memory;
    assert_int_equal(arena_create(&arena, &lane->arena, &error), 0);
    assert_int_equal(heap_create(lane->arena, &lane->heap, &error), 0);
    const struct table_config cards = {.name = "cards",
                                       .value_bytes = sizeof(struct world_value),
                                       .key_bytes_max = KEY_MAX,
                                       .key_skip_bytes = CARD_SKIP_BYTES,
                                       .heads = card_heads,
                                       .head_count = COUNT_OF(card_heads)};
    const struct table_config counts = {.name = "counts",
                                        .value_bytes =
                                            config->counts_bytes == 0 ? 8 : config->counts_bytes,
                                        .key_bytes_max = 4,
                                        .key_skip_bytes = COUNT_SKIP_BYTES,
                                        .key_bytes_inline = 4};
    assert_int_equal(table_create(lane->heap, &cards, &lane->cards, &error), 0);
    assert_int_equal(table_create(lane->heap, &counts, &lane->counts, &error), 0);
    assert_int_equal(timers_create(lane->heap, "due", &lane->timers, &error), 0);
    struct snapshot_config snapshot = {.arena = lane->arena,
                                       .lane = number,
                                       .buffer_count = config->buffer_count,
                                       .pages_a_turn = 4};
    lane->staging_bytes = snapshot_memory_bytes(&snapshot);
    lane->staging = pages_map(lane->staging_bytes);
    snapshot.memory = lane->staging;
    assert_int_equal(snapshot_create(&snapshot, &lane->snapshot, &error), 0);
    world->snapshots[number] = lane->snapshot;
}

void world_open(struct world *world, const struct world_config *config)
{
    memset(world, 0, sizeof(*world));
    world->random.random = 0x9e3779b97f4a7c15U + config->seed * 2U;
    world->store = config->store;
    world->lane_count = config->lane_count;
    world->now_ns = 1000;
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        lane_open(world, lane, config);
    }
}

void world_start(struct world *world, const struct world_config *config)
{
    struct error error = {0};
    const struct checkpoint_config checkpoint = {.store = world->store,
                                                 .lanes = world->snapshots,
                                                 .lane_count = world->lane_count,
                                                 .shard_count = WORLD_SHARDS,
                                                 .timeout_ns = UINT64_C(1) << 40,
                                                 .full_every = config->full_every,
                                                 .failures_max = 3,
                                                 .first_id = config->first_id,
                                                 .base_id = config->base_id,
                                                 .label = "world"};
    assert_int_equal(checkpoint_create(&checkpoint, &world->checkpoint, &error), 0);
}

void world_close(struct world *world)
{
    checkpoint_destroy(world->checkpoint);
    for (uint32_t number = 0; number < world->lane_count; number++) {
        struct world_lane *lane = &world->lanes[number];
        const size_t bytes = arena_memory_bytes(lane->arena->page_count, WORLD_SHARDS);
        snapshot_destroy(lane->snapshot);
        timers_destroy(lane->timers);
        table_destroy(lane->counts);
        table_destroy(lane->cards);
        heap_destroy(lane->heap);
        assert_int_equal(munmap(lane->memory, bytes), 0);
        assert_int_equal(munmap(lane->staging, lane->staging_bytes), 0);
    }
    world_cut_free(&world->cut);
}

void world_cut_free(struct world_cut *cut)
{
    for (uint32_t key = 0; key < WORLD_KEYS; key++) {
        free(cut->cards[key].bytes);
    }
    memset(cut, 0, sizeof(*cut));
}

void world_cut_copy(const struct world_cut *from, struct world_cut *into)
{
    memcpy(into, from, sizeof(*into));
    for (uint32_t key = 0; key < WORLD_KEYS; key++) {
        struct world_dump *dump = &into->cards[key];
        if (dump->bytes != NULL) {
            dump->bytes = malloc(dump->count);
            assert_non_null(dump->bytes);
            memcpy(dump->bytes, from->cards[key].bytes, dump->count);
        }
    }
}

/* A key with its lane. */
struct keyed {
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    struct span key;
    uint64_t hash;
    uint32_t shard;
    struct world_lane *lane;
};

static void keyed_fill(struct world *world, uint32_t number, struct keyed *out)
{
    out->key = fixture_key(number, KEY_MAX, out->bytes);
    out->hash = hash_behind(out->key, CARD_SKIP_BYTES);
    out->shard = hash_shard(out->hash, WORLD_SHARDS);
    out->lane = &world->lanes[world_owner(world, "cards", out->shard)];
}

static uint32_t below(struct world *world, uint32_t bound)
{
    return fixture_below(&world->random, bound);
}

/* Bytes that a number stands for. */
static struct span content_of(uint32_t number, uint32_t bytes, uint8_t *into)
{
    for (uint32_t at = 0; at < bytes; at++) {
        into[at] = (uint8_t)(number * 13 + at * 31 + at / 256);
    }
    return (struct span){into, bytes};
}

/* Mostly short, at times longer than a page. */
static uint32_t some_bytes(struct world *world)
{
    const uint32_t kind = below(world, 20);
    return kind == 0 ? below(world, CONTENT_MAX) : kind < 3 ? below(world, 900) : below(world, 60);
}

static struct list_head *list_of(struct world_value *value)
{
    return (void *)&value->list;
}

static struct ordered_head *map_of(struct world_value *value)
{
    return (void *)&value->map;
}

static struct world_value *value_make(const struct keyed *keyed)
{
    bool created;
    struct world_value *value = table_insert(keyed->lane->cards, keyed->hash, keyed->key, &created);
    assert_non_null(value);
    if (created) {
        list_init(list_of(value), keyed->shard, 2);
        ordered_init(map_of(value), keyed->shard, MAP_BYTES);
    }
    return value;
}

static void count_add(struct world *world, uint32_t number)
{
    uint8_t bytes[4];
    store_be32(bytes, number);
    const struct span key = {bytes, sizeof(bytes)};
    /* The second table's keys hash elsewhere: they have shards and lanes of their own. */
    const uint64_t hash = hash_behind(key, COUNT_SKIP_BYTES);
    struct world_lane *lane =
        &world->lanes[world_owner(world, "counts", hash_shard(hash, WORLD_SHARDS))];
    bool created;
    uint64_t *value = table_insert(lane->counts, hash, key, &created);
    assert_non_null(value);
    assert_int_equal(*value, world->counts[number]);
    *value = ++world->counts[number];
    if (world->counts[number] == 9) {
        assert_true(table_remove(lane->counts, hash, key));
        world->counts[number] = 0;
    }
}

static void list_change(struct world *world, const struct keyed *keyed, uint8_t *scratch)
{
    struct world_value *value = value_make(keyed);
    struct list_head *list = list_of(value);
    const uint32_t kind = below(world, 8);
    struct list_item item;
    if (kind == 0 && list->count != 0) {
        list_drop_first(keyed->lane->heap, list);
    } else if (kind == 1) {
        (void)list_mark_pass(keyed->lane->heap, list, 0, list->marks[0].bound, &item);
        (void)list_mark_step(keyed->lane->heap, list, 1, &item);
    } else {
        const int64_t order = (int64_t)(world->now_ns / 1000) - below(world, 5);
        assert_true(list_insert(keyed->lane->heap, list, order,
                                content_of(below(world, 999), some_bytes(world), scratch)));
    }
}

static void map_change(struct world *world, const struct keyed *keyed)
{
    struct world_value *value = value_make(keyed);
    uint8_t bytes[KEY_BYTES_MAX_MADE];
    const struct span key = fixture_key(below(world, 120), 5000, bytes);
    if (below(world, 3) == 0) {
        (void)ordered_remove(keyed->lane->heap, map_of(value), key);
        return;
    }
    bool created;
    uint32_t *entry = ordered_insert(keyed->lane->heap, map_of(value), key, &created);
    assert_non_null(entry);
    entry[below(world, 3)] = below(world, 100000);
}

static void refs_release(struct heap *heap, struct world_value *value)
{
    if (value->blob != 0) {
        heap_blob_release(heap, value->blob);
        value->blob = 0;
    }
    if (value->block != 0) {
        heap_release(heap, value->block);
        value->block = 0;
    }
}

static void refs_change(struct world *world, const struct keyed *keyed, uint8_t *scratch)
{
    struct world_value *value = value_make(keyed);
    struct heap *heap = keyed->lane->heap;
    refs_release(heap, value);
    if (below(world, 3) != 0) {
        value->blob = heap_blob_store(heap, keyed->shard,
                                      content_of(below(world, 99), some_bytes(world), scratch));
        value->block = heap_acquire(heap, keyed->shard, 1 + below(world, 1000));
        assert_true(value->blob != 0 && value->block != 0);
        memset(heap_write(heap, value->block), (int)below(world, 255),
               heap_block_bytes(heap, value->block));
    }
}

static void timers_change(struct world *world, uint32_t number, const struct keyed *keyed,
                          uint8_t *scratch)
{
    /* A place in the list belongs to one shard, and so to one lane. */
    struct world_timer *timer =
        &world->timers[below(world, WORLD_TIMERS_MAX / WORLD_SHARDS) * WORLD_SHARDS + keyed->shard];
    if (timer->handle.sequence != 0) {
        struct keyed old;
        keyed_fill(world, timer->key, &old);
        assert_true(timers_cancel(old.lane->timers, old.shard, timer->handle));
        timer->handle.sequence = 0;
        return;
    }
    timer->key = number;
    timer->bytes = 4 + some_bytes(world) / 8;
    struct span payload = content_of(number, timer->bytes, scratch);
    store_be32(scratch, number);
    assert_true(timers_set(keyed->lane->timers, keyed->shard, (int64_t)below(world, 500) - 100,
                           payload, &timer->handle));
}

/* Frees all that a value refers to; its table may forget it then. */
static void value_clear(struct heap *heap, struct world_value *value)
{
    while (!list_clear(heap, list_of(value), 100)) {
    }
    while (!ordered_clear(heap, map_of(value), 100)) {
    }
    refs_release(heap, value);
}

static void key_drop(const struct keyed *keyed)
{
    struct world_value *value = table_find_write(keyed->lane->cards, keyed->hash, keyed->key);
    if (value == NULL) {
        return;
    }
    value_clear(keyed->lane->heap, value);
    assert_true(table_remove(keyed->lane->cards, keyed->hash, keyed->key));
}

void world_run(struct world *world, uint32_t steps)
{
    uint8_t *scratch = malloc(CONTENT_MAX + 64);
    struct keyed *keyed = malloc(sizeof(*keyed));
    assert_true(scratch != NULL && keyed != NULL);
    for (uint32_t step = 0; step < steps; step++) {
        const uint32_t number = below(world, WORLD_KEYS);
        const uint32_t kind = below(world, 16);
        keyed_fill(world, number, keyed);
        world->now_ns += 100;
        if (kind < 4) {
            list_change(world, keyed, scratch);
        } else if (kind < 7) {
            map_change(world, keyed);
        } else if (kind < 9) {
            refs_change(world, keyed, scratch);
        } else if (kind < 12) {
            timers_change(world, number, keyed, scratch);
        } else if (kind < 14) {
            count_add(world, number);
            value_make(keyed)->counter++;
        } else if (kind == 14) {
            key_drop(keyed);
        } else {
            (void)heap_poll(keyed->lane->heap, 3);
        }
    }
    free(scratch);
    free(keyed);
}

/* A buffer that grows. */
struct writer {
    uint8_t *bytes;
    size_t count;
    size_t max;
};

static void put(struct writer *writer, const void *bytes, size_t count)
{
    if (writer->count + count > writer->max) {
        writer->max = (writer->count + count) * 2;
        writer->bytes = realloc(writer->bytes, writer->max);
        assert_non_null(writer->bytes);
    }
    if (count != 0) {
        memcpy(writer->bytes + writer->count, bytes, count);
    }
    writer->count += count;
}

static void put_blob(struct writer *writer, const struct heap *heap, uint64_t blob)
{
    const uint32_t bytes = heap_blob_bytes(heap, blob);
    uint8_t *copy = malloc(bytes + 1);
    assert_non_null(copy);
    heap_blob_read(heap, blob, 0, bytes, copy);
    put(writer, &bytes, sizeof(bytes));
    put(writer, copy, bytes);
    free(copy);
}

static void put_list(struct writer *writer, const struct heap *heap, const struct list_head *list)
{
    struct list_cursor at;
    put(writer, &list->count, sizeof(list->count));
    for (bool is_there = list_first(heap, list, &at); is_there; is_there = list_next(heap, &at)) {
        const struct list_item item = list_item(heap, &at);
        put(writer, &item.order, sizeof(item.order));
        put(writer, &item.bytes, sizeof(item.bytes));
        if (item.data != NULL) {
            put(writer, item.data, item.bytes);
        } else {
            put_blob(writer, heap, item.blob);
        }
        for (uint32_t mark = 0; mark < list->mark_count; mark++) {
            struct list_cursor stands;
            const bool is_here = list_mark(heap, list, mark, &stands) && stands.chunk == at.chunk &&
                                 stands.index == at.index;
            put(writer, &is_here, sizeof(is_here));
        }
    }
    for (uint32_t mark = 0; mark < list->mark_count; mark++) {
        put(writer, &list->marks[mark].bound, sizeof(int64_t));
    }
}

static void put_map(struct writer *writer, const struct heap *heap, const struct ordered_head *map)
{
    struct ordered_cursor at;
    put(writer, &map->count, sizeof(map->count));
    for (bool is_there = ordered_first(heap, map, &at); is_there;
         is_there = ordered_next(heap, &at)) {
        const struct ordered_entry entry = ordered_entry(heap, map, &at);
        put(writer, entry.value, MAP_BYTES);
        if (entry.key_blob != 0) {
            put_blob(writer, heap, entry.key_blob);
        } else {
            put(writer, entry.key.data, entry.key.bytes);
        }
    }
}

static struct world_dump dump(const struct keyed *keyed)
{
    const struct heap *heap = keyed->lane->heap;
    struct writer writer = {0};
    const struct world_value *value = table_find(keyed->lane->cards, keyed->hash, keyed->key);
    if (value != NULL) {
        put(&writer, &value->counter, sizeof(value->counter));
        if (value->blob != 0) {
            put_blob(&writer, heap, value->blob);
        }
        if (value->block != 0) {
            put(&writer, heap_read(heap, value->block), heap_block_bytes(heap, value->block));
        }
        put_list(&writer, heap, (const struct list_head *)(const void *)&value->list);
        put_map(&writer, heap, (const struct ordered_head *)(const void *)&value->map);
    }
    return (struct world_dump){.bytes = writer.bytes, .count = writer.count};
}

/* Writes down what a lane holds. */
static void lane_cut(struct world *world, struct world_lane *lane)
{
    struct keyed *keyed = malloc(sizeof(*keyed));
    assert_non_null(keyed);
    for (uint32_t number = 0; number < WORLD_KEYS; number++) {
        keyed_fill(world, number, keyed);
        if (keyed->lane == lane) {
            free(world->cut.cards[number].bytes);
            world->cut.cards[number] = dump(keyed);
        }
        uint8_t bytes[4];
        store_be32(bytes, number);
        const uint64_t hash = hash_behind((struct span){bytes, 4}, COUNT_SKIP_BYTES);
        if (lane == &world->lanes[world_owner(world, "counts", hash_shard(hash, WORLD_SHARDS))]) {
            world->cut.counts[number] = world->counts[number];
        }
    }
    for (uint32_t index = 0; index < WORLD_TIMERS_MAX; index++) {
        if (lane == &world->lanes[world_owner(world, "due", index % WORLD_SHARDS)]) {
            world->cut.timers[index] = world->timers[index];
        }
    }
    const uint64_t id = lane->ordered;
    lane->facts[0] = id;
    lane->facts[1] = (uint64_t)(lane - world->lanes);
    lane->ordered = 0;
    snapshot_cut(lane->snapshot, id,
                 (struct span){(const uint8_t *)lane->facts, sizeof(lane->facts)}, world->now_ns);
    snapshot_settle(lane->snapshot);
    free(keyed);
}

void world_lane_turn(struct world *world, uint32_t number, uint32_t steps)
{
    struct world_lane *lane = &world->lanes[number];
    struct snapshot_outcome outcome;
    uint64_t id;
    if (snapshot_ordered(lane->snapshot, &id)) {
        lane->ordered = id;
    }
    if (lane->ordered != 0 && (steps == 0 || below(world, 3) == 0)) {
        lane_cut(world, lane);
    }
    (void)snapshot_poll(lane->snapshot, world->now_ns, number % 2 == 0);
    (void)snapshot_outcome(lane->snapshot, &outcome);
    world_run(world, steps);
}

void world_turn(struct world *world, uint32_t steps)
{
    world->now_ns += 1000;
    (void)checkpoint_poll(world->checkpoint, world->now_ns, world->wait_ns);
    for (uint32_t number = 0; number < world->lane_count; number++) {
        world_lane_turn(world, number, steps);
    }
}

struct checkpoint_report world_checkpoint(struct world *world, uint32_t steps_a_turn)
{
    struct checkpoint_report report = {0};
    checkpoint_request(world->checkpoint, false);
    for (uint32_t turn = 0; !checkpoint_report(world->checkpoint, &report); turn++) {
        assert_true(turn < 100000);
        world_turn(world, steps_a_turn);
    }
    while (!checkpoint_is_idle(world->checkpoint)) {
        world_turn(world, steps_a_turn);
    }
    world_turn(world, 0); /* lanes hear of it */
    return report;
}

void *world_map(void *context, size_t bytes)
{
    (void)context;
    return pages_map(bytes);
}

void world_unmap(void *context, void *memory, size_t bytes)
{
    (void)context;
    assert_int_equal(munmap(memory, bytes), 0);
}

int world_restore(struct world *world, uint64_t id, struct restore_report *report,
                  struct error *error)
{
    struct arena *arenas[WORLD_LANES_MAX];
    for (uint32_t lane = 0; lane < world->lane_count; lane++) {
        arenas[lane] = world->lanes[lane].arena;
    }
    const struct restore_config config = {.store = world->store,
                                          .id = id,
                                          .arenas = arenas,
                                          .lane_count = world->lane_count,
                                          .owner = world_owner,
                                          .owner_context = world,
                                          .map = world_map,
                                          .unmap = world_unmap};
    return restore_state(&config, NULL, report, error);
}

void world_compare(struct world *world, const struct world_cut *with)
{
    struct keyed *keyed = malloc(sizeof(*keyed));
    assert_non_null(keyed);
    uint64_t cards = 0;
    uint64_t counts = 0;
    uint64_t timers = 0;
    for (uint32_t number = 0; number < WORLD_KEYS; number++) {
        keyed_fill(world, number, keyed);
        struct world_dump mine = dump(keyed);
        const struct world_dump *other = &with->cards[number];
        assert_int_equal(mine.count, other->count);
        assert_true((mine.bytes == NULL) == (other->bytes == NULL));
        if (mine.bytes != NULL) {
            assert_memory_equal(mine.bytes, other->bytes, mine.count);
            cards++;
        }
        free(mine.bytes);
        world->counts[number] = with->counts[number];
        counts += world->counts[number] != 0;
    }
    memcpy(world->timers, with->timers, sizeof(world->timers));
    for (uint32_t index = 0; index < WORLD_TIMERS_MAX; index++) {
        timers += world->timers[index].handle.sequence != 0;
    }
    for (uint32_t lane = 0; lane < world->lane_count; lane++) {
        cards -= table_counters(world->lanes[lane].cards)->entries;
        counts -= table_counters(world->lanes[lane].counts)->entries;
        timers -= timers_count(world->lanes[lane].timers);
    }
    assert_int_equal(cards, 0);
    assert_int_equal(counts, 0);
    assert_int_equal(timers, 0);
    free(keyed);
}

static enum table_visit card_check(void *context, const struct table_entry *entry)
{
    const struct heap *heap = context;
    const struct world_value *value = entry->value;
    list_check(heap, (const struct list_head *)(const void *)&value->list);
    ordered_check(heap, (const struct ordered_head *)(const void *)&value->map);
    return TABLE_KEEP;
}

void world_check(struct world *world)
{
    for (uint32_t number = 0; number < world->lane_count; number++) {
        struct world_lane *lane = &world->lanes[number];
        arena_check(lane->arena);
        heap_check(lane->heap);
        table_check(lane->cards);
        table_check(lane->counts);
        timers_check(lane->timers);
        struct table_cursor cursor = {0};
        while (table_scan(lane->cards, &cursor, card_check, lane->heap)) {
        }
    }
}

/* Clears what a value holds and asks for the entry to be removed. */
static enum table_visit card_drop(void *context, const struct table_entry *entry)
{
    struct world_lane *lane = context;
    value_clear(lane->heap, table_entry_write(lane->cards, entry));
    return TABLE_REMOVE;
}

void world_use(struct world *world)
{
    const size_t bytes = TIMERS_PAYLOAD_BYTES_MAX;
    uint8_t *scratch = malloc(bytes);
    assert_non_null(scratch);
    for (uint32_t number = 0; number < world->lane_count; number++) {
        struct world_lane *lane = &world->lanes[number];
        struct timer_due due;
        while (timers_pop(lane->timers, INT64_MAX, (struct span_mut){scratch, bytes}, &due)) {
        }
        struct table_cursor cursor = {0};
        while (table_scan(lane->cards, &cursor, card_drop, lane)) {
        }
        assert_int_equal(table_counters(lane->cards)->entries, 0);
        while (heap_poll(lane->heap, 1000) == 1000) {
        }
        arena_check(lane->arena);
        heap_check(lane->heap);
    }
    free(scratch);
}

void world_drain_timers(struct world *world)
{
    uint8_t *scratch = malloc(CONTENT_MAX);
    uint8_t *content = malloc(CONTENT_MAX);
    struct keyed *keyed = malloc(sizeof(*keyed));
    assert_true(scratch != NULL && content != NULL && keyed != NULL);
    for (uint32_t number = 0; number < world->lane_count; number++) {
        struct timer_due due;
        int64_t time_ms = INT64_MIN;
        while (timers_pop(world->lanes[number].timers, INT64_MAX,
                          (struct span_mut){scratch, CONTENT_MAX}, &due)) {
            assert_true(due.time_ms >= time_ms);
            time_ms = due.time_ms;
            struct world_timer *found = NULL;
            const uint32_t key = load_be32(due.payload.data);
            for (uint32_t index = 0; index < WORLD_TIMERS_MAX && found == NULL; index++) {
                struct world_timer *timer = &world->timers[index];
                found = timer->handle.sequence == due.sequence && timer->key == key &&
                                timer->handle.time_ms == due.time_ms
                            ? timer
                            : NULL;
            }
            assert_non_null(found);
            assert_int_equal(found->bytes, due.payload.bytes);
            (void)content_of(key, found->bytes, content);
            assert_memory_equal(content + 4, due.payload.data + 4, found->bytes - 4);
            keyed_fill(world, key, keyed);
            assert_int_equal(keyed->shard, due.shard);
            assert_ptr_equal(keyed->lane, &world->lanes[number]);
            found->handle.sequence = 0;
        }
        assert_int_equal(timers_count(world->lanes[number].timers), 0);
    }
    for (uint32_t index = 0; index < WORLD_TIMERS_MAX; index++) {
        assert_int_equal(world->timers[index].handle.sequence, 0);
    }
    free(scratch);
    free(content);
    free(keyed);
}
