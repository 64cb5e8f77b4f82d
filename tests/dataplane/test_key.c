/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: equal values give equal bytes and nothing else does (Flink compares keys by binary form).
 */
#include "tests/dataplane/fake_job.h"

#define COLUMNS 4

struct shape {
    struct type types[COLUMNS];
    uint16_t slots[COLUMNS];
    struct row_layout layout;
};

static const uint32_t all_columns[COLUMNS] = {0, 1, 2, 3};

static void make_shape(struct shape *shape)
{
    *shape = (struct shape){
        .types =
            {
                {.kind = TYPE_DOUBLE, .nullable = true},
                {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
                {.kind = TYPE_FLOAT, .nullable = true},
                {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 9},
            },
    };
    row_layout_init(&shape->layout, shape->types, COLUMNS, shape->slots);
}

/* Encodes one column of a row that has only it set; data NULL: NULL. */
static uint32_t encode(const struct shape *shape, uint32_t column, const void *data, size_t bytes,
                       uint8_t into[64])
{
    uint64_t buffer[64];
    struct row_writer writer;
    assert_true(row_begin(&writer, &shape->layout, buffer, sizeof(buffer), NULL));
    if (data != NULL && column == 1) {
        assert_true(row_set_text(&writer, 1, (struct span){.data = data, .bytes = bytes}));
    } else if (data != NULL) {
        uint64_t slots[2] = {0};
        memcpy(slots, data, bytes);
        row_set(&writer, column, slots);
    }
    (void)row_end(&writer);
    const struct key_columns columns = {.columns = &all_columns[column], .count = 1};
    memset(into, 0xaa, 64);
    return key_encode(&shape->layout, (const struct row *)buffer, &columns, into, 64);
}

static uint32_t encode_f64(const struct shape *shape, uint64_t bits, uint8_t into[64])
{
    return encode(shape, 0, &bits, sizeof(bits), into);
}

static void test_double_keys_when_nan_then_are_one_key(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint8_t one[64];
    uint8_t two[64];
    assert_int_equal(encode_f64(&shape, UINT64_C(0x7ff8000000000000), one), 9);
    assert_int_equal(encode_f64(&shape, UINT64_C(0xfff0000000000123), two), 9);
    assert_memory_equal(one, two, 64);
    const uint32_t quiet = 0x7fc00000;
    const uint32_t other = 0xffc12345;
    assert_int_equal(encode(&shape, 2, &quiet, 4, one), 9);
    assert_int_equal(encode(&shape, 2, &other, 4, two), 9);
    assert_memory_equal(one, two, 64);
}

static void test_double_keys_when_zeros_differ_in_sign_then_differ(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint8_t plus[64];
    uint8_t minus[64];
    (void)encode_f64(&shape, 0, plus);
    (void)encode_f64(&shape, UINT64_C(1) << 63, minus);
    assert_memory_not_equal(plus, minus, 9);
}

static void test_text_keys_when_null_or_empty_then_differ(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint8_t null[64];
    uint8_t empty[64];
    assert_int_equal(encode(&shape, 1, NULL, 0, null), 1);
    assert_int_equal(null[0], 0);
    assert_int_equal(encode(&shape, 1, "", 0, empty), 5);
    assert_int_equal(empty[0], 1);
}

static uint32_t encode_pair(const struct shape *shape, const char *a, const char *b, uint8_t *into)
{
    struct type types[2] = {shape->types[1], shape->types[1]};
    uint16_t slots[2];
    struct row_layout layout;
    row_layout_init(&layout, types, 2, slots);
    uint64_t buffer[32];
    struct row_writer writer;
    assert_true(row_begin(&writer, &layout, buffer, sizeof(buffer), NULL));
    const struct span first = {.data = (const uint8_t *)a, .bytes = strlen(a)};
    const struct span second = {.data = (const uint8_t *)b, .bytes = strlen(b)};
    assert_true(row_set_text(&writer, 0, first));
    assert_true(row_set_text(&writer, 1, second));
    (void)row_end(&writer);
    const struct key_columns columns = {.columns = all_columns, .count = 2};
    return key_encode(&layout, (const struct row *)buffer, &columns, into, 64);
}

static void test_text_keys_when_parts_move_between_columns_then_differ(void **state)
{
    struct shape shape;
    make_shape(&shape);
    uint8_t one[64] = {0};
    uint8_t two[64] = {0};
    assert_int_equal(encode_pair(&shape, "ab", "c", one), 13);
    assert_int_equal(encode_pair(&shape, "a", "bc", two), 13);
    assert_memory_not_equal(one, two, 13);
}

static void write_row(const struct shape *shape, uint64_t *random, uint64_t *buffer, size_t bytes)
{
    struct row_writer writer;
    assert_true(row_begin(&writer, &shape->layout, buffer, (uint32_t)bytes, NULL));
    char name[24];
    const double number = (double)fake_random(random);
    const float small = (float)fake_random(random);
    const struct timestamp time = {.ms = (int64_t)fake_random(random), .ns = 5};
    uint64_t slot = 0;
    memcpy(&slot, &small, sizeof(small));
    (void)snprintf(name, sizeof(name), "%lu", (unsigned long)fake_random(random));
    const uint64_t nulls = fake_random(random);
    const struct span span = {.data = (const uint8_t *)name, .bytes = strlen(name)};
    if ((nulls & 1) == 0) {
        row_set(&writer, 0, &number);
    }
    if ((nulls & 2) == 0) {
        assert_true(row_set_text(&writer, 1, span));
    }
    if ((nulls & 4) == 0) {
        row_set(&writer, 2, &slot);
    }
    if ((nulls & 8) == 0) {
        row_set(&writer, 3, &time);
    }
    (void)row_end(&writer);
}

static void test_decode_gives_back_what_was_encoded(void **state)
{
    struct shape shape;
    make_shape(&shape);
    const struct key_columns columns = {.columns = all_columns, .count = COLUMNS};
    uint64_t random = 9;
    for (uint32_t round = 0; round < 1000; round++) {
        uint64_t from[64];
        uint64_t into[64];
        uint8_t key[128];
        write_row(&shape, &random, from, sizeof(from));
        const uint32_t bytes =
            key_encode(&shape.layout, (const struct row *)from, &columns, key, sizeof(key));
        assert_int_not_equal(bytes, UINT32_MAX);
        struct row_writer writer;
        assert_true(row_begin(&writer, &shape.layout, into, sizeof(into), NULL));
        assert_true(key_decode((struct span){.data = key, .bytes = bytes}, COLUMNS, &writer, 0));
        (void)row_end(&writer);
        assert_memory_equal(from, into, ((const struct row *)from)->bytes);
    }
}

static void test_encode_when_space_is_short_then_says_so(void **state)
{
    struct shape shape;
    make_shape(&shape);
    const struct key_columns columns = {.columns = all_columns, .count = COLUMNS};
    uint64_t random = 1;
    uint64_t from[64];
    write_row(&shape, &random, from, sizeof(from));
    uint8_t key[128];
    const uint32_t bytes =
        key_encode(&shape.layout, (const struct row *)from, &columns, key, sizeof(key));
    for (uint32_t capacity = 0; capacity < bytes; capacity++) {
        uint8_t *space = malloc(capacity + 1);
        assert_int_equal(
            key_encode(&shape.layout, (const struct row *)from, &columns, space, capacity),
            UINT32_MAX);
        free(space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double_keys_when_nan_then_are_one_key),
        cmocka_unit_test(test_double_keys_when_zeros_differ_in_sign_then_differ),
        cmocka_unit_test(test_text_keys_when_null_or_empty_then_differ),
        cmocka_unit_test(test_text_keys_when_parts_move_between_columns_then_differ),
        cmocka_unit_test(test_decode_gives_back_what_was_encoded),
        cmocka_unit_test(test_encode_when_space_is_short_then_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
