/* SPDX-License-Identifier: Apache-2.0 */
/* Values as Java's toString has them: BigDecimal, java.time, byte arrays. */
#include "dataplane/format/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/table.h"

static void check(const char *type, const struct value *value, const char *expected)
{
    struct table table;
    struct row_writer row;
    uint64_t space[64];
    uint8_t text[256];
    char columns[64];
    (void)snprintf(columns, sizeof(columns), "c %s", type);
    table_init(&table, columns);
    const struct plan_sink_field field = {.name = "c", .column = 0, .type = table.types[0]};
    assert_true(row_begin(&row, &table.source.decoded, space, sizeof(space), NULL));
    assert_true(row_set_value(&row, 0, value));
    (void)row_end(&row);
    struct writer writer = {.data = text, .capacity = sizeof(text)};
    print_encode_row(NULL, &field, 1, &table.source.decoded, row.row, &writer);
    char wanted[256];
    (void)snprintf(wanted, sizeof(wanted), "+I[%s]", expected);
    assert_int_equal(writer.used, strlen(wanted));
    assert_memory_equal(text, wanted, writer.used);
    table_fini(&table);
}

static void test_print_when_decimals_then_as_big_decimal(void **state)
{
    (void)state;
    check("DECIMAL(10,2)", &(struct value){.i64 = 2000}, "20.00");
    check("DECIMAL(10,2)", &(struct value){.i64 = -5}, "-0.05");
    check("DECIMAL(10,8)", &(struct value){.i64 = 1}, "1E-8");
    check("DECIMAL(10,8)", &(struct value){.i64 = -123}, "-0.00000123");
    check("DECIMAL(10,9)", &(struct value){.i64 = -123}, "-1.23E-7");
    check("DECIMAL(10,8)", &(struct value){.i64 = 0}, "0E-8");
    check("DECIMAL(10,6)", &(struct value){.i64 = 0}, "0.000000");
    check("DECIMAL(38,4)", &(struct value){.i128 = 12345678}, "1234.5678");
}

static void test_print_when_times_then_as_java_time(void **state)
{
    (void)state;
    check("TIMESTAMP", &(struct value){.timestamp = {.ms = 1709164800000}}, "2024-02-29T00:00");
    check("TIMESTAMP", &(struct value){.timestamp = {.ms = 1709164801000}}, "2024-02-29T00:00:01");
    check("TIMESTAMP", &(struct value){.timestamp = {.ms = 1709164800120, .ns = 1000}},
          "2024-02-29T00:00:00.120001");
    check("TIMESTAMP_LTZ", &(struct value){.timestamp = {.ms = 1709164800000}},
          "2024-02-29T00:00:00Z");
    check("TIME", &(struct value){.i64 = 45240000}, "12:34");
    check("TIME", &(struct value){.i64 = 45240001}, "12:34:00.001");
    check("DATE", &(struct value){.i64 = 19782}, "2024-02-29");
}

static void test_print_when_others_then_plain(void **state)
{
    (void)state;
    check("BOOLEAN", &(struct value){.i64 = 1}, "true");
    check("DOUBLE", &(struct value){.f64 = 1e7}, "1.0E7");
    check("BIGINT", &(struct value){.i64 = INT64_MIN}, "-9223372036854775808");
    check("STRING", &(struct value){.text = {(const uint8_t *)"a, b", 4}}, "a, b");
    check("BYTES", &(struct value){.text = {(const uint8_t *)"a\xff", 2}}, "[97, -1]");
    check("INT", &(struct value){.is_null = true}, "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print_when_decimals_then_as_big_decimal),
        cmocka_unit_test(test_print_when_times_then_as_java_time),
        cmocka_unit_test(test_print_when_others_then_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
