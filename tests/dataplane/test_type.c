/* SPDX-License-Identifier: Apache-2.0 */
/* Types as Flink's DESCRIBE prints them, and their comparison. */
#include "tests/dataplane/fake_job.h"

static void check_print(struct type type, const char *expected)
{
    char into[TYPE_PRINT_BYTES];
    assert_string_equal(type_print(&type, into), expected);
}

static void test_print_writes_types_as_flink_does(void **state)
{
    check_print((struct type){.kind = TYPE_BOOLEAN, .nullable = true}, "BOOLEAN");
    check_print((struct type){.kind = TYPE_BIGINT}, "BIGINT NOT NULL");
    check_print((struct type){.kind = TYPE_DECIMAL, .nullable = true, .precision = 12, .scale = 2},
                "DECIMAL(12, 2)");
    check_print((struct type){.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX},
                "STRING");
    check_print((struct type){.kind = TYPE_VARCHAR, .length = 10}, "VARCHAR(10) NOT NULL");
    check_print((struct type){.kind = TYPE_CHAR, .nullable = true, .length = 3}, "CHAR(3)");
    check_print((struct type){.kind = TYPE_VARBINARY, .nullable = true, .length = TYPE_LENGTH_MAX},
                "BYTES");
    check_print((struct type){.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3},
                "TIMESTAMP(3)");
    check_print((struct type){.kind = TYPE_TIMESTAMP_LTZ, .precision = 6},
                "TIMESTAMP_LTZ(6) NOT NULL");
}

static void test_print_writes_nested_types(void **state)
{
    const struct type number = {.kind = TYPE_INT, .nullable = true};
    const struct type text = {.kind = TYPE_VARCHAR, .length = TYPE_LENGTH_MAX, .nullable = true};
    const struct type_field fields[] = {{.name = "a", .type = number}, {.name = "b", .type = text}};
    check_print((struct type){.kind = TYPE_ARRAY, .element = &number, .nullable = true},
                "ARRAY<INT>");
    check_print((struct type){.kind = TYPE_MAP, .key = &text, .element = &number, .nullable = true},
                "MAP<STRING, INT>");
    check_print(
        (struct type){.kind = TYPE_ROW, .fields = fields, .field_count = 2, .nullable = true},
        "ROW<`a` INT, `b` STRING>");
}

static void test_print_when_type_is_long_then_is_cut(void **state)
{
    struct type_field fields[100];
    for (uint32_t i = 0; i < COUNT_OF(fields); i++) {
        fields[i] = (struct type_field){.name = "a_rather_long_name",
                                        .type = {.kind = TYPE_DOUBLE, .nullable = true}};
    }
    const struct type row = {.kind = TYPE_ROW, .fields = fields, .field_count = COUNT_OF(fields)};
    char into[TYPE_PRINT_BYTES + 1];
    into[TYPE_PRINT_BYTES] = 0x5a;
    assert_int_equal(strlen(type_print(&row, into)), TYPE_PRINT_BYTES - 1);
    assert_int_equal(into[TYPE_PRINT_BYTES], 0x5a);
}

static void test_equal_looks_at_parameters_but_not_at_nullability(void **state)
{
    const struct type a = {.kind = TYPE_DECIMAL, .precision = 10, .scale = 2, .nullable = true};
    struct type b = a;
    b.nullable = false;
    assert_true(type_equal(&a, &b));
    b.scale = 3;
    assert_false(type_equal(&a, &b));
    const struct type text = {.kind = TYPE_VARCHAR, .length = 5};
    struct type longer = text;
    longer.length = 6;
    assert_false(type_equal(&text, &longer));
    assert_false(type_equal(&a, &text));
    const struct type one = {.kind = TYPE_ARRAY, .element = &text};
    const struct type two = {.kind = TYPE_ARRAY, .element = &longer};
    assert_true(type_equal(&one, &one));
    assert_false(type_equal(&one, &two));
}

static void test_equal_when_nesting_is_too_deep_then_is_false(void **state)
{
    struct type levels[40];
    levels[0] = (struct type){.kind = TYPE_INT};
    for (uint32_t i = 1; i < COUNT_OF(levels); i++) {
        levels[i] = (struct type){.kind = TYPE_ARRAY, .element = &levels[i - 1]};
    }
    assert_true(type_equal(&levels[10], &levels[10]));
    assert_false(type_equal(&levels[39], &levels[39]));
}

static void test_slots_and_classes(void **state)
{
    const struct type narrow = {.kind = TYPE_DECIMAL, .precision = 18};
    const struct type wide = {.kind = TYPE_DECIMAL, .precision = 19};
    const struct type time = {.kind = TYPE_TIMESTAMP_LTZ, .precision = 3};
    const struct type text = {.kind = TYPE_CHAR, .length = 1};
    assert_int_equal(type_slot_count(&narrow), 1);
    assert_int_equal(type_slot_count(&wide), 2);
    assert_int_equal(type_slot_count(&time), 2);
    assert_true(type_is_text(&text));
    assert_false(type_is_text(&time));
    assert_true(type_is_integer(&(struct type){.kind = TYPE_SMALLINT}));
    assert_false(type_is_integer(&narrow));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print_writes_types_as_flink_does),
        cmocka_unit_test(test_print_writes_nested_types),
        cmocka_unit_test(test_print_when_type_is_long_then_is_cut),
        cmocka_unit_test(test_equal_looks_at_parameters_but_not_at_nullability),
        cmocka_unit_test(test_equal_when_nesting_is_too_deep_then_is_false),
        cmocka_unit_test(test_slots_and_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
