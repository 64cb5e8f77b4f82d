/* SPDX-License-Identifier: Apache-2.0 */
/* Records with keys, metadata and every sort of emptiness. Expected rows are Flink's answers to the
 * cases key-fields, metadata-read, raw-format, json-empty-value and json-tombstone-default. */
#include "dataplane/format/decoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/render.h"
#include "tests/dataplane/format/table.h"

struct fixture {
    struct table table;
    struct decoder *decoder;
    uint64_t buffer[1024];
    char got[4096];
};

static void open_fixture(struct fixture *fixture, const char *columns, enum plan_format key,
                         enum plan_format value)
{
    memset(fixture, 0, sizeof(*fixture));
    table_init(&fixture->table, columns);
    fixture->table.source.key_format.format = key;
    fixture->table.source.value_format.format = value;
}

static void create_decoder(struct fixture *fixture)
{
    struct error error = {.line = 0};
    const struct decoder_config config = {
        .source = &fixture->table.source,
        .record_bytes_max = 4096,
    };
    assert_int_equal(decoder_create(&config, &fixture->decoder, &error), 0);
}

static void close_fixture(struct fixture *fixture)
{
    decoder_destroy(fixture->decoder);
    table_fini(&fixture->table);
}

static struct span span_of(const char *text)
{
    return (struct span){(const uint8_t *)text, text == NULL ? 0 : strlen(text)};
}

static struct record record_of(const char *key, const char *value)
{
    return (struct record){
        .offset = 7,
        .timestamp_ms = 1709164800123,
        .leader_epoch = -1,
        .key_is_null = key == NULL,
        .value_is_null = value == NULL,
        .key = span_of(key),
        .value = span_of(value),
        .arrival_ns = 42,
    };
}

/* Rows in the recorded form, E for a bad record, - for a skipped one. */
static const char *rows_of(struct fixture *fixture, const struct record *record, size_t space)
{
    FILE *out = fmemopen(fixture->got, sizeof(fixture->got), "w");
    enum decoder_verdict verdict = decoder_begin(fixture->decoder, record, 0, 3);
    if (verdict == DECODER_SKIP) {
        (void)fputc('-', out);
    }
    while (verdict == DECODER_OK || verdict == DECODER_ROW || verdict == DECODER_FULL) {
        space += verdict == DECODER_FULL ? 8 : 0;
        verdict =
            decoder_next(fixture->decoder, (struct span_mut){(uint8_t *)fixture->buffer, space});
        if (verdict == DECODER_ROW) {
            const struct row *row = (const struct row *)(const void *)fixture->buffer;
            assert_int_equal(row->arrival_ns, 42);
            assert_true(row->time_ms == ROW_TIME_NONE && row->kind == ROW_INSERT);
            render_row(out, &fixture->table.source.decoded, row);
        }
    }
    if (verdict == DECODER_BAD) {
        (void)fputc('E', out);
        assert_true(strlen(decoder_reason(fixture->decoder)) > 0);
    }
    (void)fputc(0, out);
    (void)fclose(out);
    return fixture->got;
}

static void check(struct fixture *fixture, const char *key, const char *value, const char *expected)
{
    const struct record record = record_of(key, value);
    assert_string_equal(rows_of(fixture, &record, sizeof(fixture->buffer)), expected);
    assert_string_equal(rows_of(fixture, &record, 8), expected);
}

static void test_next_when_json_key_then_joined_with_value(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "key:id INT, key:n INT, id INT, amount INT", PLAN_FORMAT_JSON,
                 PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    check(&fixture, "{\"id\":1,\"n\":2}", "{\"id\":10,\"amount\":5}", "(1,2,10,5)");
    check(&fixture, "{\"id\":2}", "{\"amount\":2}", "(2,~,~,2)");
    check(&fixture, NULL, "{\"id\":30,\"amount\":3}", "");
    check(&fixture, "{\"id\":5}", NULL, "-");
    check(&fixture, "{\"n\":1,\"extra\":1}", "{}", "(~,1,~,~)");
    check(&fixture, "[{\"id\":1},{\"id\":2}]", "[{\"id\":8},{\"id\":9}]",
          "(1,~,8,~)(2,~,8,~)(1,~,9,~)(2,~,9,~)");
    check(&fixture, "{\"id\":x}", "{}", "E");
    assert_non_null(strstr(decoder_reason(fixture.decoder), "JSON key"));
    close_fixture(&fixture);
}

static void test_next_when_raw_key_is_null_then_row_with_null(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "key:k STRING, id INT", PLAN_FORMAT_RAW, PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    check(&fixture, NULL, "{\"id\":30}", "(~,30)");
    check(&fixture, "ab", "{\"id\":1}", "(s00610062,1)");
    close_fixture(&fixture);
}

static void test_next_when_metadata_then_from_the_record(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture,
                 "id INT, meta:partition INT, meta:offset BIGINT, meta:timestamp TIMESTAMP_LTZ, "
                 "meta:timestamp-type STRING, meta:topic STRING, meta:leader-epoch INT",
                 PLAN_FORMAT_NONE, PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    check(&fixture, NULL, "{\"id\":1}",
          "(1,3,7,1709164800123+0,s00430072006500610074006500540069006d0065,"
          "s0074006f007000690063,~)");
    close_fixture(&fixture);
}

static void test_next_when_raw_value_then_one_column(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "v STRING", PLAN_FORMAT_NONE, PLAN_FORMAT_RAW);
    create_decoder(&fixture);
    check(&fixture, NULL, "hi", "(s00680069)");
    check(&fixture, NULL, "", "(s)");
    check(&fixture, NULL, NULL, "(~)");
    close_fixture(&fixture);
    open_fixture(&fixture, "v INT", PLAN_FORMAT_NONE, PLAN_FORMAT_RAW);
    create_decoder(&fixture);
    check(&fixture, NULL, "\xff\xff\xff\x80", "(-128)");
    check(&fixture, NULL, "abc", "E");
    assert_non_null(strstr(decoder_reason(fixture.decoder), "3 bytes do not fit the type INT"));
    close_fixture(&fixture);
}

static void test_begin_when_value_is_empty_then_skipped_and_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "id INT", PLAN_FORMAT_NONE, PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    check(&fixture, NULL, "", "-");
    check(&fixture, NULL, NULL, "-");
    check(&fixture, NULL, "[]", "");
    check(&fixture, NULL, "null", "E");
    check(&fixture, NULL, "[{\"id\":2},{\"id\":3}]", "(2)(3)");
    const struct decoder_counters *counters = decoder_counters(fixture.decoder);
    assert_int_equal(counters->records, 10);
    assert_int_equal(counters->skipped, 4);
    assert_int_equal(counters->bad, 2);
    assert_int_equal(counters->rows, 4);
    close_fixture(&fixture);
}

static void test_next_when_errors_are_ignored_then_dropped_and_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "id INT", PLAN_FORMAT_NONE, PLAN_FORMAT_JSON);
    fixture.table.source.value_format.ignore_parse_errors = true;
    create_decoder(&fixture);
    check(&fixture, NULL, "not json", "");
    check(&fixture, NULL, "[{\"id\":1},5,{\"id\":2}]", "(1)");
    check(&fixture, NULL, "{\"id\":\"x\"}", "(~)");
    assert_int_equal(decoder_counters(fixture.decoder)->ignored, 4);
    assert_int_equal(decoder_counters(fixture.decoder)->bad, 0);
    close_fixture(&fixture);
}

static void test_reason_when_a_field_is_bad_then_names_path_and_text(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "id INT, r.q.z INT", PLAN_FORMAT_NONE, PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    check(&fixture, NULL, "{\"id\":1,\"r\":{\"q\":{\"z\":\"abc\"}}}", "E");
    assert_non_null(strstr(decoder_reason(fixture.decoder), "field: r.q.z"));
    assert_non_null(strstr(decoder_reason(fixture.decoder), "abc"));
    close_fixture(&fixture);
}

static void test_begin_when_record_passes_the_cap_then_bad(void **state)
{
    (void)state;
    struct fixture fixture;
    uint8_t large[4097];
    open_fixture(&fixture, "id INT", PLAN_FORMAT_NONE, PLAN_FORMAT_JSON);
    create_decoder(&fixture);
    memset(large, ' ', sizeof(large));
    const struct record record = {.value = {large, sizeof(large)}, .arrival_ns = 42};
    assert_string_equal(rows_of(&fixture, &record, 64), "E");
    assert_non_null(strstr(decoder_reason(fixture.decoder), "4097 bytes"));
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_when_json_key_then_joined_with_value),
        cmocka_unit_test(test_next_when_raw_key_is_null_then_row_with_null),
        cmocka_unit_test(test_next_when_metadata_then_from_the_record),
        cmocka_unit_test(test_next_when_raw_value_then_one_column),
        cmocka_unit_test(test_begin_when_value_is_empty_then_skipped_and_counted),
        cmocka_unit_test(test_next_when_errors_are_ignored_then_dropped_and_counted),
        cmocka_unit_test(test_reason_when_a_field_is_bad_then_names_path_and_text),
        cmocka_unit_test(test_begin_when_record_passes_the_cap_then_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
