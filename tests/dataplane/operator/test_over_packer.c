/* SPDX-License-Identifier: Apache-2.0 */
/* The packer keeps what the calls read, each column once, and gives it back as it was: numbers,
 * wide decimals, text, NULLs; with a tag in front or without. */
#include "dataplane/operator/over_packer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/operator/aggregate.h"

#define COLUMNS   5
#define ROW_BYTES 512

static const struct type input_types[COLUMNS] = {
    {.kind = TYPE_BIGINT, .nullable = true},
    {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38},
    {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
    {.kind = TYPE_BOOLEAN, .nullable = true},
    {.kind = TYPE_BIGINT, .nullable = true},
};

struct fixture {
    struct row_layout input;
    struct type types[COLUMNS];
    uint16_t slots[COLUMNS];
    struct over_packer packer;
    _Alignas(8) uint8_t row[ROW_BYTES];
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    memcpy(fixture.types, input_types, sizeof(input_types));
    row_layout_init(&fixture.input, fixture.types, COLUMNS, fixture.slots);
    *state = &fixture;
    return over_packer_init(&fixture.packer, &fixture.input, 2 * COLUMNS);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    over_packer_fini(&fixture->packer);
    assert_null(fixture->packer.packed);
    return 0;
}

/* A row of 7, 10^30 + 1, a text, NULL, -9. */
static const struct row *row_make(struct fixture *fixture, const char *text)
{
    struct row_writer writer;
    const __int128 wide = (__int128)UINT64_C(1000000000000000) * UINT64_C(1000000000000000) + 1;
    assert_true(row_begin(&writer, &fixture->input, fixture->row, ROW_BYTES, NULL));
    row_set_i64(&writer, 0, 7);
    row_set(&writer, 1, &wide);
    if (text != NULL) {
        assert_true(row_set_text(&writer, 2, (struct span){(const uint8_t *)text, strlen(text)}));
    }
    row_set_i64(&writer, 4, -9);
    (void)row_end(&writer);
    return (const struct row *)(const void *)fixture->row;
}

static void test_column_is_packed_once_when_two_calls_read_it(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(0, over_packer_column(&fixture->packer, 4));
    assert_int_equal(1, over_packer_column(&fixture->packer, 0));
    assert_int_equal(0, over_packer_column(&fixture->packer, 4));
    assert_int_equal(AGGREGATE_COLUMN_NONE,
                     over_packer_column(&fixture->packer, AGGREGATE_COLUMN_NONE));
    over_packer_seal(&fixture->packer);
    assert_int_equal(2, fixture->packer.layout.column_count);
}

static void test_numbers_come_back_when_packed_without_text(void **state)
{
    struct fixture *fixture = *state;
    struct over_packer *packer = &fixture->packer;
    (void)over_packer_column(packer, 1);
    (void)over_packer_column(packer, 3);
    (void)over_packer_column(packer, 4);
    over_packer_seal(packer);
    const struct row *row = row_make(fixture, NULL);
    const struct span content = over_packer_pack(packer, row, 0);
    assert_int_equal(row_bytes_fixed(&packer->layout) - sizeof(struct row), content.bytes);
    const struct row *packed = over_packer_row(packer, content.data);
    const struct value wide = row_value(&fixture->input, row, 1);
    const struct value kept = row_value(&packer->layout, packed, 0);
    assert_true(wide.i128 == kept.i128);
    assert_true(row_is_null(packed, 1));
    assert_int_equal(-9, row_i64(&packer->layout, packed, 2));
}

static void test_text_and_tag_come_back_when_tagged(void **state)
{
    struct fixture *fixture = *state;
    struct over_packer *packer = &fixture->packer;
    packer->tag_bytes = 8;
    (void)over_packer_column(packer, 2);
    (void)over_packer_column(packer, 0);
    over_packer_seal(packer);
    const struct span content =
        over_packer_pack(packer, row_make(fixture, "card 4711"), UINT64_C(0x1122334455667788));
    const struct row *packed = over_packer_row(packer, content.data);
    assert_true(packed->arrival_ns == UINT64_C(0x1122334455667788));
    const struct value text = row_value(&packer->layout, packed, 0);
    assert_int_equal(9, text.text.bytes);
    assert_memory_equal("card 4711", text.text.data, 9);
    assert_int_equal(7, row_i64(&packer->layout, packed, 1));
}

static void test_null_text_stays_null_when_packed(void **state)
{
    struct fixture *fixture = *state;
    struct over_packer *packer = &fixture->packer;
    (void)over_packer_column(packer, 2);
    over_packer_seal(packer);
    const struct span content = over_packer_pack(packer, row_make(fixture, NULL), 0);
    assert_non_null(content.data);
    assert_true(row_is_null(over_packer_row(packer, content.data), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_column_is_packed_once_when_two_calls_read_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_numbers_come_back_when_packed_without_text, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_text_and_tag_come_back_when_tagged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_null_text_stays_null_when_packed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
