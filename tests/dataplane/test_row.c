/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: what is written is read back, unused bytes are 0, corrupted rows are refused. */
#include "tests/dataplane/fake_job.h"

#define COLUMNS 7

struct shape {
    struct type types[COLUMNS];
    uint16_t slots[COLUMNS];
    struct row_layout layout;
};

static void make_shape(struct shape *shape)
{
    *shape = (struct shape){
        .types =
            {
                {.kind = TYPE_BIGINT, .nullable = true},
                {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
                {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3},
                {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38, .scale = 2},
                {.kind = TYPE_DOUBLE, .nullable = true},
                {.kind = TYPE_VARBINARY, .nullable = true, .length = TYPE_LENGTH_MAX},
                {.kind = TYPE_DECIMAL, .nullable = true, .precision = 18, .scale = 2},
            },
    };
    row_layout_init(&shape->layout, shape->types, COLUMNS, shape->slots);
}

static struct span text(const char *from)
{
    return (struct span){.data = (const uint8_t *)from, .bytes = strlen(from)};
}

/* Writes a row with every column set. */
static struct row *write_full(const struct shape *shape, uint64_t *buffer, uint32_t bytes)
{
    struct row_writer writer;
    const struct row head = {.kind = ROW_UPDATE_AFTER, .time_ms = 77, .arrival_ns = 5};
    const struct timestamp time = {.ms = -1, .ns = 999999};
    const __int128 wide = -((__int128)1 << 100);
    const double number = -0.0;
    assert_true(row_begin(&writer, &shape->layout, buffer, bytes, &head));
    row_set_i64(&writer, 0, INT64_MIN);
    assert_true(row_set_text(&writer, 1, text("hello")));
    row_set(&writer, 2, &time);
    row_set(&writer, 3, &wide);
    row_set(&writer, 4, &number);
    assert_true(row_set_text(&writer, 5, text("")));
    row_set_i64(&writer, 6, 1234);
    (void)row_end(&writer);
    return (struct row *)buffer;
}

static void test_layout_gives_wide_types_two_slots(void **state)
{
    struct shape shape;
    make_shape(&shape);
    assert_int_equal(shape.layout.bitmap_words, 1);
    assert_int_equal(shape.layout.slot_count, 9);
    const uint16_t expected[COLUMNS] = {1, 2, 3, 5, 7, 8, 9};
    assert_memory_equal(shape.slots, expected, sizeof(expected));
    assert_int_equal(row_bytes_fixed(&shape.layout), 24 + 8 * 10);
}

static void test_row_when_written_then_reads_back(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t buffer[64];
    memset(buffer, 0xee, sizeof(buffer));
    const struct row *row = write_full(&shape, buffer, sizeof(buffer));
    assert_int_equal(row->bytes, 24 + 8 * 10 + 8);
    assert_int_equal(row->kind, ROW_UPDATE_AFTER);
    assert_int_equal(row->time_ms, 77);
    assert_true(row_i64(&shape.layout, row, 0) == INT64_MIN);
    assert_int_equal(row_text(&shape.layout, row, 1).bytes, 5);
    assert_memory_equal(row_text(&shape.layout, row, 1).data, "hello\0\0\0", 8);
    assert_int_equal(row_value(&shape.layout, row, 2).timestamp.ms, -1);
    assert_int_equal(row_value(&shape.layout, row, 2).timestamp.ns, 999999);
    assert_true(row_value(&shape.layout, row, 3).i128 == -((__int128)1 << 100));
    assert_true(__builtin_signbit(row_value(&shape.layout, row, 4).f64));
    assert_false(row_is_null(row, 5));
    assert_int_equal(row_text(&shape.layout, row, 5).bytes, 0);
    assert_int_equal(row_i64(&shape.layout, row, 6), 1234);
    assert_true(row_check(&shape.layout, row, sizeof(buffer)));
}

static void test_row_when_columns_are_left_out_then_they_are_null_and_zero(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t buffer[64];
    memset(buffer, 0xee, sizeof(buffer));
    struct row_writer writer;
    assert_true(row_begin(&writer, &shape.layout, buffer, sizeof(buffer), NULL));
    row_set_i64(&writer, 6, 9);
    const uint32_t bytes = row_end(&writer);
    const struct row *row = (const struct row *)buffer;
    assert_int_equal(bytes, row_bytes_fixed(&shape.layout));
    assert_int_equal(row->kind, ROW_INSERT);
    assert_true(row->time_ms == ROW_TIME_NONE);
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(row_is_null(row, i));
        assert_true(row_value(&shape.layout, row, i).is_null);
        assert_int_equal(row_i64(&shape.layout, row, i), 0);
    }
    assert_false(row_is_null(row, 6));
}

static void test_equal_rows_are_equal_bytes(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t one[64];
    uint64_t two[64];
    memset(one, 0x11, sizeof(one));
    memset(two, 0x22, sizeof(two));
    const struct row *row = write_full(&shape, one, sizeof(one));
    (void)write_full(&shape, two, sizeof(two));
    assert_memory_equal(one, two, row->bytes);
}

static void test_begin_and_text_when_buffer_is_short_then_refuse(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t buffer[64];
    struct row_writer writer;
    const uint32_t fixed = row_bytes_fixed(&shape.layout);
    assert_false(row_begin(&writer, &shape.layout, buffer, fixed - 1, NULL));
    assert_true(row_begin(&writer, &shape.layout, buffer, fixed + 4, NULL));
    assert_false(row_set_text(&writer, 1, text("hello")));
    assert_true(row_set_text(&writer, 1, text("hell")));
    assert_false(row_set_text(&writer, 5, text("x")));
}

static void test_copy_column_takes_value_and_null(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t from[64];
    uint64_t into[64];
    const struct row *row = write_full(&shape, from, sizeof(from));
    struct row_writer writer;
    assert_true(row_begin(&writer, &shape.layout, into, sizeof(into), row));
    for (uint32_t i = 0; i < COLUMNS; i++) {
        assert_true(row_copy_column(&writer, i, &shape.layout, row, i));
    }
    (void)row_end(&writer);
    assert_memory_equal(from, into, row->bytes);
    struct value null = {.is_null = true};
    assert_true(row_begin(&writer, &shape.layout, into, sizeof(into), row));
    assert_true(row_set_value(&writer, 1, &null));
    (void)row_end(&writer);
    assert_true(row_is_null((const struct row *)into, 1));
}

static void refuse(const struct shape *shape, const uint64_t *good, uint32_t byte, uint8_t value)
{
    uint64_t bad[64];
    memcpy(bad, good, sizeof(bad));
    ((uint8_t *)bad)[byte] = value;
    assert_false(row_check(&shape->layout, (const struct row *)bad, sizeof(bad)));
}

static void test_check_refuses_corrupted_rows(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t good[64];
    memset(good, 0, sizeof(good));
    const struct row *row = write_full(&shape, good, sizeof(good));
    assert_true(row_check(&shape.layout, row, row->bytes));
    assert_false(row_check(&shape.layout, row, row->bytes - 1));
    assert_false(row_check(&shape.layout, row, 8));
    refuse(&shape, good, 0, (uint8_t)(row->bytes + 4)); /* no multiple of 8 */
    refuse(&shape, good, 0, 16);                        /* shorter than the fixed part */
    refuse(&shape, good, 3, 0xff);                      /* longer than the buffer */
    refuse(&shape, good, 4, 4);                         /* no such kind */
    const uint32_t slot = (uint32_t)sizeof(*row) + 8 * shape.slots[1];
    refuse(&shape, good, slot, 3);        /* text inside the header */
    refuse(&shape, good, slot + 4, 200);  /* text past the row */
    refuse(&shape, good, slot + 7, 0x80); /* a length near 4 GiB must not wrap */
}

static void test_check_on_random_bytes_never_reads_past_the_row(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint64_t random = 3;
    for (uint32_t round = 0; round < 20000; round++) {
        /* Its own allocation, so that a sanitizer sees a step too far. */
        const uint32_t words = 3 + (uint32_t)fake_random(&random) % 30;
        uint64_t *bytes = malloc(8 * (size_t)words);
        for (uint32_t i = 0; i < words; i++) {
            bytes[i] = fake_random(&random) << 32 ^ fake_random(&random);
        }
        ((struct row *)bytes)->bytes = 8 * words;
        ((struct row *)bytes)->kind &= 3;
        if (row_check(&shape.layout, (const struct row *)bytes, 8 * (size_t)words)) {
            for (uint32_t c = 0; c < COLUMNS; c++) {
                const struct value value = row_value(&shape.layout, (struct row *)bytes, c);
                if (!value.is_null && type_is_text(&shape.types[c]) && value.text.bytes > 0) {
                    assert_true(value.text.data + value.text.bytes <=
                                (const uint8_t *)bytes + 8 * (size_t)words);
                }
            }
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_gives_wide_types_two_slots),
        cmocka_unit_test(test_row_when_written_then_reads_back),
        cmocka_unit_test(test_row_when_columns_are_left_out_then_they_are_null_and_zero),
        cmocka_unit_test(test_equal_rows_are_equal_bytes),
        cmocka_unit_test(test_begin_and_text_when_buffer_is_short_then_refuse),
        cmocka_unit_test(test_copy_column_takes_value_and_null),
        cmocka_unit_test(test_check_refuses_corrupted_rows),
        cmocka_unit_test(test_check_on_random_bytes_never_reads_past_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
