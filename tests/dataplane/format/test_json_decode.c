/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON decoder against the recorded answers of Flink's own (flink_json.txt, some thousand
 * documents, odd and broken ones among them), by both walkers, with buffers of every size. */
#include "dataplane/format/json_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/render.h"
#include "tests/dataplane/format/table.h"

#define SCHEMAS          3
#define FLAGS            8
#define RECORD_BYTES     65536
#define FLAG_IGNORE      1
#define FLAG_MISSING     2
#define FLAG_ISO_8601    4
#define ROW_BUFFER_BYTES 65536

static const char *const TABLES[SCHEMAS] = {
    "i INT, s STRING, f FLOAT, r.q INT, r.t STRING, b BOOLEAN",
    "t TINYINT, sm SMALLINT, l BIGINT, d DOUBLE, p DECIMAL(10,2), w DECIMAL(38,4), by BYTES",
    "d DATE, tm TIME, ts TIMESTAMP, z TIMESTAMP_LTZ, s STRING",
};

struct fixture {
    struct table tables[SCHEMAS][FLAGS];
    struct json_decoder *decoders[SCHEMAS][FLAGS];
};

static struct json_decoder *decoder_for(struct fixture *fixture, uint32_t schema, const char *flags)
{
    const uint32_t flag = (strchr(flags, 'i') != NULL ? FLAG_IGNORE : 0) |
                          (strchr(flags, 'm') != NULL ? FLAG_MISSING : 0) |
                          (strchr(flags, 'T') != NULL ? FLAG_ISO_8601 : 0);
    struct json_decoder **decoder = &fixture->decoders[schema][flag];
    if (*decoder == NULL) {
        struct error error = {.line = 0};
        struct table *table = &fixture->tables[schema][flag];
        table_init(table, TABLES[schema]);
        struct plan_format_options *format = &table->source.value_format;
        format->ignore_parse_errors = (flag & FLAG_IGNORE) != 0;
        format->fail_on_missing_field = (flag & FLAG_MISSING) != 0;
        format->timestamp_format =
            (flag & FLAG_ISO_8601) != 0 ? PLAN_TIMESTAMP_ISO_8601 : PLAN_TIMESTAMP_SQL;
        assert_int_equal(
            json_decoder_create(&table->source, PLAN_FIELD_VALUE, RECORD_BYTES, decoder, &error),
            0);
    }
    return *decoder;
}

/* Decodes a document into the recorded form: (row)(row)E. Buffers start at `start_bytes`. */
static void decode(struct json_decoder *decoder, struct span document, size_t start_bytes,
                   char *into, size_t bytes)
{
    uint64_t buffer[ROW_BUFFER_BYTES / 8];
    FILE *out = fmemopen(into, bytes, "w");
    enum json_step step;
    size_t space = start_bytes;
    json_decoder_begin(decoder, document);
    do {
        struct row_writer writer;
        step =
            json_decoder_next(decoder, (struct span_mut){(uint8_t *)buffer, space}, NULL, &writer);
        if (step == JSON_STEP_FULL) {
            space += 8;
            assert_true(space <= ROW_BUFFER_BYTES);
        }
        if (step == JSON_STEP_ROW) {
            const uint32_t row_bytes = row_end(&writer);
            assert_true(row_check(decoder->layout, writer.row, row_bytes));
            render_row(out, decoder->layout, writer.row);
        }
    } while (step == JSON_STEP_ROW || step == JSON_STEP_FULL);
    if (step == JSON_STEP_BAD) {
        (void)fputc('E', out);
        assert_non_null(decoder->reason);
    }
    (void)fputc(0, out);
    (void)fclose(out);
}

struct vector {
    uint32_t schema;
    char flags[8];
    uint8_t document[RECORD_BYTES];
    size_t bytes;
    char answer[RECORD_BYTES];
};

/* A line: schema, flags, the document in base64, the answer. */
static bool read_vector(FILE *file, struct vector *vector)
{
    char text[RECORD_BYTES];
    const uint8_t *fault;
    vector->answer[0] = 0;
    char *line = NULL;
    size_t capacity = 0;
    if (getline(&line, &capacity, file) <= 0) {
        free(line);
        return false;
    }
    assert_true(sscanf(line, "%u %7s %65535s %65535s", &vector->schema, vector->flags, text,
                       vector->answer) >= 3);
    vector->bytes = json_text_base64((struct span){(const uint8_t *)text, strlen(text)},
                                     vector->document, &fault);
    free(line);
    assert_true(vector->bytes < RECORD_BYTES && vector->schema < SCHEMAS);
    return true;
}

/* The document ends at a page's end in spirit: at the last byte of an exact allocation, so that
 * the address sanitizer sees any step past it. */
static struct span exact_copy(const struct vector *vector, uint8_t **allocation)
{
    *allocation = malloc(vector->bytes);
    memcpy(*allocation, vector->document, vector->bytes);
    return (struct span){*allocation, vector->bytes};
}

static void run_vectors(bool exact_only, size_t start_bytes)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct vector vector;
    char got[RECORD_BYTES];
    uint32_t count = 0;
    FILE *file = fopen(SOURCE_ROOT "/tests/dataplane/format/flink_json.txt", "r");
    assert_non_null(file);
    while (read_vector(file, &vector)) {
        struct json_decoder *decoder = decoder_for(fixture, vector.schema, vector.flags);
        uint8_t *allocation;
        decoder->exact_only = exact_only;
        decode(decoder, exact_copy(&vector, &allocation), start_bytes, got, sizeof(got));
        if (strcmp(got, vector.answer) != 0) {
            print_error("vector %u %s: %.*s\n", count + 1, vector.flags, (int)vector.bytes,
                        (const char *)vector.document);
        }
        assert_string_equal(got, vector.answer);
        free(allocation);
        count++;
    }
    (void)fclose(file);
    assert_true(count >= 1000);
    for (uint32_t i = 0; i < SCHEMAS * FLAGS; i++) {
        json_decoder_destroy(fixture->decoders[i / FLAGS][i % FLAGS]);
        table_fini(&fixture->tables[i / FLAGS][i % FLAGS]);
    }
    free(fixture);
}

static void test_decode_when_quick_then_as_flink(void **state)
{
    (void)state;
    run_vectors(false, ROW_BUFFER_BYTES);
}

static void test_decode_when_exact_then_as_flink(void **state)
{
    (void)state;
    run_vectors(true, ROW_BUFFER_BYTES);
}

static void test_decode_when_buffers_are_short_then_as_flink(void **state)
{
    (void)state;
    run_vectors(false, 8);
    run_vectors(true, 8);
}

/* One document into the rows of a table, for the cases below. */
static void check_one(const char *columns, const char *document, bool ignore, const char *expected)
{
    char got[4096];
    struct table table;
    struct json_decoder *decoder;
    struct error error = {.line = 0};
    table_init(&table, columns);
    table.source.value_format.ignore_parse_errors = ignore;
    assert_int_equal(
        json_decoder_create(&table.source, PLAN_FIELD_VALUE, RECORD_BYTES, &decoder, &error), 0);
    const struct span text = {(const uint8_t *)document, strlen(document)};
    decode(decoder, text, ROW_BUFFER_BYTES, got, sizeof(got));
    assert_string_equal(got, expected);
    json_decoder_destroy(decoder);
    table_fini(&table);
}

static void test_decode_when_column_is_not_needed_then_value_is_not_looked_at(void **state)
{
    (void)state;
    static const char COLUMNS[] = "a INT, -b INT, c INT";
    check_one(COLUMNS, "{\"a\":1,\"b\":\"x\",\"c\":3}", false, "(1,~,3)");
    check_one(COLUMNS, "{\"a\":1,\"b\":[{\"c\":[9]}],\"c\":3}", false, "(1,~,3)");
    check_one(COLUMNS, "[{\"a\":1,\"b\":[{\"c\":[9]}],\"c\":3}]", false, "(1,~,3)");
}

static void test_decode_when_nesting_passes_1000_then_bad(void **state)
{
    (void)state;
    char document[4096];
    for (uint32_t depth = 998; depth <= 1001; depth++) {
        uint32_t used = (uint32_t)sprintf(document, "{\"x\":");
        memset(document + used, '[', depth - 1);
        memset(document + used + depth - 1, ']', depth - 1);
        (void)strcpy(document + used + 2 * (depth - 1), ",\"a\":7}");
        check_one("a INT", document, false, depth <= 1000 ? "(7)" : "E");
        check_one("a INT", document, true, depth <= 1000 ? "(7)" : "");
    }
}

static void test_decode_when_member_order_changes_then_found_again(void **state)
{
    (void)state;
    static const char *const DOCUMENTS[] = {
        "{\"a\":1,\"b\":2,\"c\":3}",          "{\"c\":3,\"b\":2,\"a\":1}",
        "{\"a\":1,\"bb\":9,\"b\":2,\"c\":3}", "{\"x\":{\"a\":8},\"b\":2,\"a\":1,\"c\":3}",
        "{\"a\" :1,\"b\": 2 , \"c\":3}",
    };
    struct table table;
    struct json_decoder *decoder;
    struct error error = {.line = 0};
    char got[64];
    table_init(&table, "a INT, b INT, c INT");
    assert_int_equal(
        json_decoder_create(&table.source, PLAN_FIELD_VALUE, RECORD_BYTES, &decoder, &error), 0);
    decoder->quick_only = true;
    for (uint32_t i = 0; i < 25; i++) {
        const char *document = DOCUMENTS[(i * 7) % COUNT_OF(DOCUMENTS)];
        const struct span text = {(const uint8_t *)document, strlen(document)};
        decode(decoder, text, ROW_BUFFER_BYTES, got, sizeof(got));
        assert_string_equal(got, "(1,2,3)");
    }
    json_decoder_destroy(decoder);
    table_fini(&table);
}

static void test_create_when_path_is_too_deep_then_refused(void **state)
{
    (void)state;
    struct table table;
    struct json_decoder *decoder;
    struct error error = {.line = 0};
    table_init(&table, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f.g INT");
    assert_int_not_equal(
        json_decoder_create(&table.source, PLAN_FIELD_VALUE, RECORD_BYTES, &decoder, &error), 0);
    assert_null(decoder);
    assert_non_null(strstr(error.text, "nested too deeply"));
    table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_when_quick_then_as_flink),
        cmocka_unit_test(test_decode_when_exact_then_as_flink),
        cmocka_unit_test(test_decode_when_buffers_are_short_then_as_flink),
        cmocka_unit_test(test_decode_when_column_is_not_needed_then_value_is_not_looked_at),
        cmocka_unit_test(test_decode_when_nesting_passes_1000_then_bad),
        cmocka_unit_test(test_decode_when_member_order_changes_then_found_again),
        cmocka_unit_test(test_create_when_path_is_too_deep_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
