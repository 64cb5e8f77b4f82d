/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as a Flink sink writes them. Expected texts are from Flink's answers to the cases
 * json-encode-types, json-text-escapes, raw-format and upsert-keys. */
#include "dataplane/format/encoder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/table.h"

#define SPACE_BYTES 1024

/* A sink whose columns are those of a table text, and one row to write. */
struct fixture {
    struct table table;
    struct plan_sink sink;
    struct plan_sink_field fields[TABLE_FIELDS_MAX];
    struct encoder *encoder;
    uint64_t row[512];
    struct row_writer writer;
    uint8_t space[SPACE_BYTES];
};

static void open_fixture(struct fixture *fixture, const char *columns)
{
    memset(fixture, 0, sizeof(*fixture));
    table_init(&fixture->table, columns);
    const struct plan_source *source = &fixture->table.source;
    for (uint32_t i = 0; i < source->field_count; i++) {
        fixture->fields[i] = (struct plan_sink_field){
            .name = source->fields[i].path[0],
            .column = i,
            .type = source->fields[i].type,
        };
    }
    fixture->sink = (struct plan_sink){
        .table = "dst",
        .value_format = {.format = PLAN_FORMAT_JSON},
        .value_fields = fixture->fields,
        .value_field_count = source->field_count,
    };
    assert_true(
        row_begin(&fixture->writer, &source->decoded, fixture->row, sizeof(fixture->row), NULL));
}

static void create_encoder(struct fixture *fixture)
{
    struct error error = {.line = 0};
    assert_int_equal(
        encoder_create(&fixture->sink, &fixture->table.source.decoded, &fixture->encoder, &error),
        0);
    (void)row_end(&fixture->writer);
}

static void close_fixture(struct fixture *fixture)
{
    encoder_destroy(fixture->encoder);
    table_fini(&fixture->table);
}

static void set_text(struct fixture *fixture, uint32_t column, const char *text)
{
    const struct span bytes = {(const uint8_t *)text, strlen(text)};
    assert_true(row_set_text(&fixture->writer, column, bytes));
}

static void set_f64(struct fixture *fixture, uint32_t column, double value)
{
    row_set(&fixture->writer, column, &value);
}

static const char *value_of(struct fixture *fixture)
{
    size_t bytes = 0;
    const struct row *row = fixture->writer.row;
    const struct span_mut into = {fixture->space, SPACE_BYTES - 1};
    const enum encoder_verdict verdict = encoder_value(fixture->encoder, row, into, &bytes);
    if (verdict == ENCODER_NULL) {
        return NULL;
    }
    assert_int_equal(verdict, ENCODER_OK);
    fixture->space[bytes] = 0;
    return (const char *)fixture->space;
}

static void test_value_when_all_null_then_written_or_left_out(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "id INT, s STRING");
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "{\"id\":null,\"s\":null}");
    encoder_destroy(fixture.encoder);
    fixture.sink.value_format.ignore_null_fields = true;
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "{}");
    close_fixture(&fixture);
}

static void test_value_when_numbers_then_java_forms(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "l BIGINT, b BOOLEAN, x DOUBLE, n DOUBLE, f FLOAT, t TINYINT");
    row_set_i64(&fixture.writer, 0, INT64_MAX);
    row_set_i64(&fixture.writer, 1, 1);
    set_f64(&fixture, 2, 1e21);
    set_f64(&fixture, 3, NAN);
    const float tenth[2] = {0.1f, 0};
    row_set(&fixture.writer, 4, tenth);
    row_set_i64(&fixture.writer, 5, -128);
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "{\"l\":9223372036854775807,\"b\":true,\"x\":1.0E21,"
                                            "\"n\":\"NaN\",\"f\":0.1,\"t\":-128}");
    close_fixture(&fixture);
}

static void test_value_when_decimal_then_stripped_or_plain(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "p DECIMAL(20,6), q DECIMAL(6,2), z DECIMAL(6,2)");
    const __int128 wide = (__int128)INT64_C(10000000000000) * 1000000;
    row_set(&fixture.writer, 0, &wide);
    row_set_i64(&fixture.writer, 1, 2000);
    row_set_i64(&fixture.writer, 2, 0);
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "{\"p\":1E+13,\"q\":2E+1,\"z\":0}");
    encoder_destroy(fixture.encoder);
    fixture.sink.value_format.decimal_as_plain_number = true;
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "{\"p\":10000000000000.000000,\"q\":20.00,\"z\":0.00}");
    close_fixture(&fixture);
}

static void test_value_when_times_then_fraction_without_zeros(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "d DATE, tm TIME, ts TIMESTAMP, z TIMESTAMP_LTZ");
    row_set_i64(&fixture.writer, 0, 19782);
    row_set_i64(&fixture.writer, 1, 45296100);
    const struct timestamp stamp = {.ms = 1709210096010, .ns = 0};
    const struct timestamp before = {.ms = -1, .ns = 999999};
    row_set(&fixture.writer, 2, &stamp);
    row_set(&fixture.writer, 3, &before);
    create_encoder(&fixture);
    assert_string_equal(
        value_of(&fixture),
        "{\"d\":\"2024-02-29\",\"tm\":\"12:34:56.1\","
        "\"ts\":\"2024-02-29 12:34:56.01\",\"z\":\"1969-12-31 23:59:59.999999999Z\"}");
    encoder_destroy(fixture.encoder);
    fixture.sink.value_format.timestamp_format = PLAN_TIMESTAMP_ISO_8601;
    create_encoder(&fixture);
    assert_non_null(strstr(value_of(&fixture), "\"ts\":\"2024-02-29T12:34:56.01\""));
    close_fixture(&fixture);
}

static void check_text(const char *text, const char *expected)
{
    struct fixture fixture;
    open_fixture(&fixture, "s STRING");
    set_text(&fixture, 0, text);
    create_encoder(&fixture);
    char wanted[SPACE_BYTES];
    (void)snprintf(wanted, sizeof(wanted), "{\"s\":\"%s\"}", expected);
    assert_string_equal(value_of(&fixture), wanted);
    close_fixture(&fixture);
}

static void test_value_when_text_then_escaped_as_jackson(void **state)
{
    (void)state;
    check_text("", "");
    check_text("\xc3\xa9\xe6\x9d\xb1\xf0\x9f\x98\x80", "\xc3\xa9\xe6\x9d\xb1\\uD83D\\uDE00");
    check_text("tab\tnl\nq\"bs\\sl/bell\a", "tab\\tnl\\nq\\\"bs\\\\sl/bell\\u0007");
    check_text("\b\f\r\x1f\x7f\xc2\x80", "\\b\\f\\r\\u001F\x7f\xc2\x80");
    check_text("<script>&'</script>", "<script>&'</script>");
    check_text("0123456789abcdef0123456789\"abcdef0123456789",
               "0123456789abcdef0123456789\\\"abcdef0123456789");
    check_text("lone \xed\xa0\xbd.", "lone \\uD83D.");
    check_text("\xff\xff\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_text("cut \xe6\x9d", "cut \xef\xbf\xbd");
}

static void test_value_when_bytes_then_base64(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    for (uint32_t i = 0; i < COUNT_OF(PAIRS); i++) {
        struct fixture fixture;
        char wanted[64];
        open_fixture(&fixture, "b BYTES");
        set_text(&fixture, 0, PAIRS[i][0]);
        create_encoder(&fixture);
        (void)snprintf(wanted, sizeof(wanted), "{\"b\":\"%s\"}", PAIRS[i][1]);
        assert_string_equal(value_of(&fixture), wanted);
        close_fixture(&fixture);
    }
}

static void test_value_when_space_is_short_then_full_and_nothing_past_it(void **state)
{
    (void)state;
    struct fixture fixture;
    size_t whole = 0;
    open_fixture(&fixture, "s STRING, x DOUBLE");
    set_text(&fixture, 0, "a text with \" and \xf0\x9f\x98\x80 in it");
    set_f64(&fixture, 1, 0.1);
    create_encoder(&fixture);
    const struct row *row = fixture.writer.row;
    const struct span_mut all = {fixture.space, SPACE_BYTES};
    assert_int_equal(encoder_value(fixture.encoder, row, all, &whole), ENCODER_OK);
    for (size_t space = 0; space < whole; space++) {
        size_t bytes = 0;
        memset(fixture.space, 0x5a, SPACE_BYTES);
        assert_int_equal(
            encoder_value(fixture.encoder, row, (struct span_mut){fixture.space, space}, &bytes),
            ENCODER_FULL);
        for (size_t i = space; i < whole + 16; i++) {
            assert_int_equal(fixture.space[i], 0x5a);
        }
    }
    close_fixture(&fixture);
}

static void test_key_when_upsert_then_members_in_key_order_and_tombstones(void **state)
{
    (void)state;
    struct fixture fixture;
    size_t bytes = 0;
    open_fixture(&fixture, "region STRING, n BIGINT");
    const struct plan_sink_field key[2] = {fixture.fields[1], fixture.fields[0]};
    fixture.sink.connector = PLAN_CONNECTOR_UPSERT_KAFKA;
    fixture.sink.key_format.format = PLAN_FORMAT_JSON;
    fixture.sink.key_fields = key;
    fixture.sink.key_field_count = 2;
    set_text(&fixture, 0, "eu");
    create_encoder(&fixture);
    const struct span_mut into = {fixture.space, SPACE_BYTES - 1};
    assert_int_equal(encoder_key(fixture.encoder, fixture.writer.row, into, &bytes), ENCODER_OK);
    assert_int_equal(bytes, strlen("{\"n\":null,\"region\":\"eu\"}"));
    assert_memory_equal(fixture.space, "{\"n\":null,\"region\":\"eu\"}", bytes);
    assert_string_equal(value_of(&fixture), "{\"region\":\"eu\",\"n\":null}");
    fixture.writer.row->kind = ROW_DELETE;
    assert_null(value_of(&fixture));
    close_fixture(&fixture);
}

static void test_value_when_raw_then_bytes_as_they_are_or_null(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "v STRING");
    fixture.sink.value_format.format = PLAN_FORMAT_RAW;
    set_text(&fixture, 0, "a \xff \"q\"");
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "a \xff \"q\"");
    close_fixture(&fixture);
    open_fixture(&fixture, "v BIGINT");
    fixture.sink.value_format.format = PLAN_FORMAT_RAW;
    create_encoder(&fixture);
    assert_null(value_of(&fixture));
    close_fixture(&fixture);
}

static void test_admit_when_not_null_column_is_null_then_failed_or_dropped(void **state)
{
    (void)state;
    struct fixture fixture;
    static const uint32_t COLUMNS[] = {1};
    open_fixture(&fixture, "a INT, k STRING");
    fixture.sink.not_null_columns = COLUMNS;
    fixture.sink.not_null_count = 1;
    create_encoder(&fixture);
    assert_int_equal(encoder_admit(fixture.encoder, fixture.writer.row), ENCODER_FAILED);
    assert_non_null(strstr(encoder_reason(fixture.encoder), "column 'k'"));
    fixture.sink.not_null_drop = true;
    assert_int_equal(encoder_admit(fixture.encoder, fixture.writer.row), ENCODER_DROP);
    row_set_i64(&fixture.writer, 1, 0);
    assert_int_equal(encoder_admit(fixture.encoder, fixture.writer.row), ENCODER_OK);
    close_fixture(&fixture);
}

static void test_value_when_print_then_as_flink_prints_rows(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "id INT, s STRING, ts TIMESTAMP, z TIMESTAMP_LTZ, p DECIMAL(6,2), "
                           "b BYTES, tm TIME, n INT");
    fixture.sink.connector = PLAN_CONNECTOR_PRINT;
    const struct timestamp midnight = {.ms = 1709164800000};
    const struct timestamp tenth = {.ms = 1709164800100};
    row_set_i64(&fixture.writer, 0, 1);
    set_text(&fixture, 1, "a");
    row_set(&fixture.writer, 2, &midnight);
    row_set(&fixture.writer, 3, &tenth);
    row_set_i64(&fixture.writer, 4, 2000);
    set_text(&fixture, 5, "a\xff");
    row_set_i64(&fixture.writer, 6, 45240000);
    create_encoder(&fixture);
    assert_string_equal(value_of(&fixture), "+I[1, a, 2024-02-29T00:00, 2024-02-29T00:00:00.100Z, "
                                            "20.00, [97, -1], 12:34, null]");
    fixture.writer.row->kind = ROW_UPDATE_BEFORE;
    fixture.sink.print_identifier = "out";
    assert_non_null(strstr(value_of(&fixture), "out> -U[1, a, "));
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_when_all_null_then_written_or_left_out),
        cmocka_unit_test(test_value_when_numbers_then_java_forms),
        cmocka_unit_test(test_value_when_decimal_then_stripped_or_plain),
        cmocka_unit_test(test_value_when_times_then_fraction_without_zeros),
        cmocka_unit_test(test_value_when_text_then_escaped_as_jackson),
        cmocka_unit_test(test_value_when_bytes_then_base64),
        cmocka_unit_test(test_value_when_space_is_short_then_full_and_nothing_past_it),
        cmocka_unit_test(test_key_when_upsert_then_members_in_key_order_and_tombstones),
        cmocka_unit_test(test_value_when_raw_then_bytes_as_they_are_or_null),
        cmocka_unit_test(test_admit_when_not_null_column_is_null_then_failed_or_dropped),
        cmocka_unit_test(test_value_when_print_then_as_flink_prints_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
