/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs and exchanges by themselves: parcels cut by rows and bytes, rows that outgrow a parcel,
 * sharing among consumers, routing by key, rooms and reserves. */
#include "tests/dataplane/fake_job.h"

#define QUEUE_ITEMS 256

struct fixture {
    struct fake_memory memory;
    struct parcel_pool *pool;
    struct type types[2];
    uint16_t slots[2];
    struct row_layout layout;
    uint32_t key_column;
    struct exchange edges[2];
    struct exchange_link links[4];
    struct queue queues[4];
    struct item items[4][QUEUE_ITEMS];
    uint8_t key_scratch[KEY_BYTES_MAX];
    struct output *output;
};

static struct fixture *make(uint32_t small, uint32_t large)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->types[0] = (struct type){.kind = TYPE_BIGINT, .nullable = true};
    f->types[1] = (struct type){.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
    row_layout_init(&f->layout, f->types, 2, f->slots);
    const struct parcel_pool_config config = {
        .classes = {{.bytes = 512, .count = small}, {.bytes = 8192, .count = large}},
        .class_count = 2,
        .lane_count = 1,
    };
    f->pool = parcel_pool_init(&config, fake_allocate(&f->memory, 0, parcel_pool_bytes(&config)));
    for (uint32_t i = 0; i < 4; i++) {
        queue_init(&f->queues[i], f->items[i], QUEUE_ITEMS);
        f->links[i].queue = &f->queues[i];
    }
    return f;
}

static void add_edge(struct fixture *f, uint32_t edge, enum exchange_kind kind, uint32_t first_link,
                     uint32_t link_count)
{
    f->edges[edge] = (struct exchange){
        .kind = kind,
        .layout = &f->layout,
        .key = {.columns = &f->key_column, .count = 1},
        .links = &f->links[first_link],
        .link_count = link_count,
        .parcel_rows_max = 4,
        .pool = f->pool,
        .key_scratch = f->key_scratch,
    };
    for (uint32_t i = 0; i < EXCHANGE_SHARD_COUNT; i++) {
        f->edges[edge].link_of_shard[i] = (uint8_t)(i % link_count);
    }
}

static void open_output(struct fixture *f, uint32_t edge_count)
{
    const struct output_config config = {
        .pool = f->pool,
        .layout = &f->layout,
        .edges = f->edges,
        .edge_count = edge_count,
        .parcel_rows_max = 4,
        .queue_rows_max = 10,
    };
    struct error error = {0};
    assert_int_equal(output_create(&config, &f->output, &error), 0);
}

static void drop(struct fixture *f)
{
    output_destroy(f->output);
    fake_memory_free(&f->memory);
    free(f);
}

static bool write_row(struct fixture *f, int64_t key, uint32_t text_bytes)
{
    struct row_writer writer;
    if (!output_row_begin(f->output, &writer, NULL)) {
        return false;
    }
    uint8_t *text = malloc(text_bytes + 1);
    memset(text, 'x', text_bytes);
    const struct span span = {.data = text, .bytes = text_bytes};
    row_set_i64(&writer, 0, key);
    bool ok = true;
    while (ok && !row_set_text(&writer, 1, span)) {
        ok = output_row_grow(f->output, &writer, text_bytes);
    }
    free(text);
    if (ok) {
        output_row_end(f->output, &writer);
    }
    return ok;
}

static void test_parcel_when_row_limit_is_reached_then_passes(void **state)
{
    struct fixture *f = make(16, 2);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    open_output(f, 1);
    for (int64_t i = 0; i < 9; i++) {
        assert_true(write_row(f, i, 3));
    }
    assert_int_equal(f->queues[0].row_count, 8);
    output_pass(f->output);
    assert_int_equal(f->queues[0].row_count, 9);
    int64_t expected = 0;
    while (!queue_is_empty(&f->queues[0])) {
        struct parcel *parcel = item_parcel(queue_pop(&f->queues[0]));
        const struct row *rows[PARCEL_ROWS_MAX];
        for (uint32_t i = 0; i < parcel_rows(parcel, rows); i++) {
            assert_true(row_check(&f->layout, rows[i], rows[i]->bytes));
            assert_int_equal(row_i64(&f->layout, rows[i], 0), expected++);
        }
        parcel_release(parcel, f->pool);
    }
    assert_int_equal(expected, 9);
    assert_int_equal(parcel_pool_free(f->pool), 18);
    assert_int_equal(output_row_count(f->output), 9);
    drop(f);
}

static void test_row_when_it_outgrows_the_parcel_then_moves_to_a_larger_one(void **state)
{
    struct fixture *f = make(16, 2);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    open_output(f, 1);
    assert_true(write_row(f, 1, 10));
    assert_true(write_row(f, 2, 3000));
    assert_true(write_row(f, 3, 10));
    output_pass(f->output);
    struct parcel *first = item_parcel(queue_pop(&f->queues[0]));
    assert_int_equal(first->row_count, 1);
    struct parcel *second = item_parcel(queue_pop(&f->queues[0]));
    assert_int_equal(second->size_class, 1);
    assert_int_equal(second->row_count, 2);
    const struct row *row = parcel_first(second);
    assert_int_equal(row_i64(&f->layout, row, 0), 2);
    assert_int_equal(row_text(&f->layout, row, 1).bytes, 3000);
    assert_int_equal(row_text(&f->layout, row, 1).data[2999], 'x');
    assert_int_equal(row_i64(&f->layout, parcel_next(row), 0), 3);
    assert_false(output_is_starved(f->output));
    drop(f);
}

static void test_row_when_no_class_is_large_enough_then_refuses_without_starving(void **state)
{
    struct fixture *f = make(16, 2);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    open_output(f, 1);
    assert_false(write_row(f, 1, 9000));
    assert_false(output_is_starved(f->output));
    drop(f);
}

static void test_pool_when_dry_then_output_is_starved(void **state)
{
    struct fixture *f = make(1, 1);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    open_output(f, 1);
    for (int64_t i = 0; i < 8; i++) {
        assert_true(write_row(f, i, 1));
    }
    assert_false(write_row(f, 8, 1));
    assert_true(output_is_starved(f->output));
    drop(f);
}

static void test_parcel_with_two_direct_consumers_is_shared(void **state)
{
    struct fixture *f = make(16, 2);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    add_edge(f, 1, EXCHANGE_DIRECT, 1, 1);
    open_output(f, 2);
    assert_true(write_row(f, 1, 1));
    output_pass(f->output);
    struct parcel *one = item_parcel(queue_pop(&f->queues[0]));
    struct parcel *two = item_parcel(queue_pop(&f->queues[1]));
    assert_ptr_equal(one, two);
    assert_int_equal(one->holders, 2);
    parcel_release(one, f->pool);
    assert_int_equal(parcel_pool_free(f->pool), 17);
    parcel_release(two, f->pool);
    assert_int_equal(parcel_pool_free(f->pool), 18);
    drop(f);
}

static void test_hash_edge_routes_by_shard_and_flushes_half_full_parcels(void **state)
{
    struct fixture *f = make(64, 2);
    add_edge(f, 0, EXCHANGE_HASH, 0, 3);
    open_output(f, 1);
    for (int64_t i = 0; i < 50; i++) {
        assert_true(write_row(f, i, 1));
    }
    (void)output_flush(f->output);
    assert_int_equal(output_backlog_rows(f->output), 0);
    uint32_t total = 0;
    for (uint32_t link = 0; link < 3; link++) {
        int64_t last = -1;
        while (!queue_is_empty(&f->queues[link])) {
            const struct parcel *parcel = item_parcel(queue_pop(&f->queues[link]));
            const struct row *rows[PARCEL_ROWS_MAX];
            for (uint32_t i = 0; i < parcel_rows(parcel, rows); i++) {
                const uint32_t shard =
                    exchange_shard(&f->layout, rows[i], &f->edges[0].key, f->key_scratch);
                assert_int_equal(shard % 3, link);
                assert_true(row_i64(&f->layout, rows[i], 0) > last);
                last = row_i64(&f->layout, rows[i], 0);
                total++;
            }
        }
        assert_true(last >= 0);
    }
    assert_int_equal(total, 50);
    drop(f);
}

static void test_control_goes_behind_rows_on_every_link(void **state)
{
    struct fixture *f = make(64, 2);
    add_edge(f, 0, EXCHANGE_HASH, 0, 2);
    add_edge(f, 1, EXCHANGE_DIRECT, 2, 1);
    open_output(f, 2);
    for (int64_t i = 0; i < 20; i++) {
        assert_true(write_row(f, i, 1));
    }
    output_control(f->output, PARCEL_WATERMARK, 42);
    for (uint32_t link = 0; link < 3; link++) {
        uint32_t rows = 0;
        while (item_kind(queue_peek(&f->queues[link])) == PARCEL_ROWS) {
            rows += item_parcel(queue_pop(&f->queues[link]))->row_count;
        }
        assert_true(rows > 0);
        const struct item item = queue_pop(&f->queues[link]);
        assert_int_equal(item_kind(item), PARCEL_WATERMARK);
        assert_int_equal(item.value, 42);
        assert_true(queue_is_empty(&f->queues[link]));
    }
    drop(f);
}

static void test_ring_when_full_then_the_rest_waits_in_order(void **state)
{
    struct fixture *f = make(64, 2);
    f->links[0].ring = ring_init(fake_allocate(&f->memory, 0, ring_bytes(4)), 4);
    add_edge(f, 0, EXCHANGE_LANE, 0, 1);
    open_output(f, 1);
    for (int64_t i = 0; i < 40; i++) {
        assert_true(write_row(f, i, 1));
    }
    (void)output_flush(f->output);
    assert_int_equal(ring_count(f->links[0].ring), 3);
    assert_int_equal(output_backlog_rows(f->output), 40 - 3 * 4);
    int64_t expected = 0;
    struct item item;
    while (ring_pop(f->links[0].ring, &item)) {
        const struct row *rows[PARCEL_ROWS_MAX];
        for (uint32_t i = 0; i < parcel_rows(item_parcel(item), rows); i++) {
            assert_int_equal(row_i64(&f->layout, rows[i], 0), expected++);
        }
        (void)output_flush(f->output);
    }
    assert_int_equal(expected, 40);
    assert_false(output_has_backlog(f->output));
    drop(f);
}

static void test_room_respects_reserve_and_waiting_rows(void **state)
{
    struct fixture *f = make(8, 0);
    add_edge(f, 0, EXCHANGE_DIRECT, 0, 1);
    open_output(f, 1);
    assert_true(output_has_room(f->output));
    output_reserve(f->output, 8);
    assert_false(output_has_room(f->output));
    assert_false(output_room(f->output, 1));
    output_reserve(f->output, 6);
    assert_true(output_room(f->output, 1));
    assert_true(output_room(f->output, 3));
    assert_false(output_room(f->output, 4));
    output_reserve(f->output, 0);
    for (int64_t i = 0; i < 10; i++) {
        assert_true(output_has_room(f->output));
        assert_true(write_row(f, i, 1));
    }
    assert_false(output_has_room(f->output));
    drop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parcel_when_row_limit_is_reached_then_passes),
        cmocka_unit_test(test_row_when_it_outgrows_the_parcel_then_moves_to_a_larger_one),
        cmocka_unit_test(test_row_when_no_class_is_large_enough_then_refuses_without_starving),
        cmocka_unit_test(test_pool_when_dry_then_output_is_starved),
        cmocka_unit_test(test_parcel_with_two_direct_consumers_is_shared),
        cmocka_unit_test(test_hash_edge_routes_by_shard_and_flushes_half_full_parcels),
        cmocka_unit_test(test_control_goes_behind_rows_on_every_link),
        cmocka_unit_test(test_ring_when_full_then_the_rest_waits_in_order),
        cmocka_unit_test(test_room_respects_reserve_and_waiting_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
