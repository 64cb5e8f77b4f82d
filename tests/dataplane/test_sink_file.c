/* SPDX-License-Identifier: Apache-2.0 */
/* What the file sink writes, the file source reads back: every byte, key, header and tombstone. */
#include "dataplane/sink_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataplane/source_file.h"

#define VALUES 300

static struct span span_of(const char *text)
{
    return (struct span){(const uint8_t *)text, strlen(text)};
}

static struct record_sink *open_sink(const char *folder, const char *name, bool envelopes)
{
    const struct sink_file_topic topic = {.name = name, .envelopes = envelopes};
    const struct sink_file_config config = {
        .directory = folder,
        .topics = &topic,
        .topic_count = 1,
    };
    struct record_sink *sink;
    struct error error = {.line = 0};
    assert_int_equal(sink_file_create(&config, &sink, &error), 0);
    return sink;
}

static void remove_file(const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static void test_append_when_lines_then_values_as_they_are(void **state)
{
    (void)state;
    char folder[] = "/tmp/penstock-sink-XXXXXX";
    char path[128];
    char text[64] = "";
    assert_non_null(mkdtemp(folder));
    struct record_sink *sink = open_sink(folder, "t", false);
    const struct record first = {.value = span_of("{\"a\":1}"), .key_is_null = true};
    const struct record second = {.key_is_null = true, .value_is_null = true};
    assert_int_equal(record_sink_append(sink, 0, -1, &first), RECORD_SINK_OK);
    assert_int_equal(record_sink_append(sink, 0, -1, &second), RECORD_SINK_OK);
    assert_true(record_sink_flushed(sink));
    assert_int_equal(record_sink_poll(sink, 0), 0);
    assert_int_equal(sink_file_destroy(sink, NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/t.jsonl", folder);
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof(text), file), 13);
    assert_string_equal(text, "{\"a\":1}\nnull\n");
    (void)fclose(file);
    remove_file(folder, "t.jsonl");
    assert_int_equal(rmdir(folder), 0);
}

/* A record that depends on its number: text and bytes, long and short, with and without parts. */
static struct record record_of(uint32_t number, uint8_t *bytes, struct record_header *header)
{
    const size_t length = number * number % 5000;
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(number % 3 == 0 ? i * number : ' ' + i % 90);
    }
    *header = (struct record_header){.name = span_of("na\"me"), .value = span_of("\xc3\xa9\n")};
    return (struct record){
        .timestamp_ms = 1000 + number,
        .key_is_null = number % 2 == 0,
        .key = {bytes, number % 2 == 0 ? 0 : length % 40},
        .value_is_null = number % 5 == 0,
        .value = {bytes, number % 5 == 0 ? 0 : length},
        .headers = header,
        .header_count = number % 4 == 0,
    };
}

static void check_record(const struct record *got, const struct record *wanted)
{
    assert_int_equal(got->timestamp_ms, wanted->timestamp_ms);
    assert_int_equal(got->key_is_null, wanted->key_is_null);
    assert_int_equal(got->value_is_null, wanted->value_is_null);
    assert_int_equal(got->key.bytes, wanted->key.bytes);
    assert_int_equal(got->value.bytes, wanted->value.bytes);
    if (wanted->key.bytes != 0) {
        assert_memory_equal(got->key.data, wanted->key.data, wanted->key.bytes);
    }
    if (wanted->value.bytes != 0) {
        assert_memory_equal(got->value.data, wanted->value.data, wanted->value.bytes);
    }
    assert_int_equal(got->header_count, wanted->header_count);
    if (wanted->header_count != 0) {
        assert_int_equal(got->headers[0].value.bytes, wanted->headers[0].value.bytes);
        assert_memory_equal(got->headers[0].name.data, wanted->headers[0].name.data, 5);
    }
}

static void test_append_when_envelopes_then_source_reads_them_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/penstock-sink-XXXXXX";
    static const char *const TOPICS[] = {"t"};
    uint8_t bytes[8192];
    struct record_header header;
    struct record_batch_view batch;
    struct record_source *source;
    uint32_t number = 0;
    assert_non_null(mkdtemp(folder));
    struct record_sink *sink = open_sink(folder, "t", true);
    for (uint32_t i = 0; i < VALUES; i++) {
        const struct record record = record_of(i, bytes, &header);
        assert_int_equal(record_sink_append(sink, 0, (int32_t)(i % 3), &record), RECORD_SINK_OK);
        (void)record_sink_poll(sink, 0);
    }
    assert_int_equal(sink_file_destroy(sink, NULL), 0);
    const struct source_file_config config = {
        .directory = folder,
        .topics = TOPICS,
        .topic_count = 1,
    };
    assert_int_equal(source_file_create(&config, &source, NULL), 0);
    while (record_source_poll(source, 0, &batch)) {
        for (uint32_t i = 0; i < batch.record_count; i++, number++) {
            const struct record wanted = record_of(number, bytes, &header);
            assert_int_equal(batch.partition, number % 3);
            check_record(&batch.records[i], &wanted);
        }
    }
    assert_int_equal(number, VALUES);
    source_file_destroy(source);
    remove_file(folder, "t.records");
    assert_int_equal(rmdir(folder), 0);
}

static void test_append_when_record_passes_the_buffer_then_still_written(void **state)
{
    (void)state;
    char folder[] = "/tmp/penstock-sink-XXXXXX";
    const size_t bytes = 3 << 20;
    assert_non_null(mkdtemp(folder));
    struct record_sink *sink = open_sink(folder, "t", true);
    uint8_t *large = malloc(bytes);
    memset(large, 'x', bytes);
    const struct record record = {.key_is_null = true, .value = {large, bytes}};
    assert_int_equal(record_sink_append(sink, 0, -1, &record), RECORD_SINK_OK);
    assert_int_equal(record_sink_poll(sink, 0), 1);
    assert_int_equal(sink_file_destroy(sink, NULL), 0);
    free(large);
    remove_file(folder, "t.records");
    assert_int_equal(rmdir(folder), 0);
}

static void test_destroy_when_disk_is_full_then_error_is_reported(void **state)
{
    (void)state;
    char folder[] = "/tmp/penstock-sink-XXXXXX";
    char path[128];
    struct error error = {.line = 0};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/t.jsonl", folder);
    assert_int_equal(symlink("/dev/full", path), 0);
    struct record_sink *sink = open_sink(folder, "t", false);
    const struct record record = {.key_is_null = true, .value = span_of("x")};
    assert_int_equal(record_sink_append(sink, 0, -1, &record), RECORD_SINK_OK);
    assert_int_equal(sink_file_destroy(sink, &error), -ENOSPC);
    assert_non_null(strstr(error.text, "t.jsonl"));
    remove_file(folder, "t.jsonl");
    assert_int_equal(rmdir(folder), 0);
}

static void test_create_when_folder_is_missing_then_named(void **state)
{
    (void)state;
    const struct sink_file_topic topic = {.name = "t"};
    const struct sink_file_config config = {
        .directory = "/nowhere/at/all",
        .topics = &topic,
        .topic_count = 1,
    };
    struct record_sink *sink;
    struct error error = {.line = 0};
    assert_int_equal(sink_file_create(&config, &sink, &error), -ENOENT);
    assert_null(sink);
    assert_non_null(strstr(error.text, "/nowhere/at/all/t.jsonl"));
}

static void append_value(struct record_sink *sink, const char *value)
{
    const struct record record = {.value = span_of(value), .key_is_null = true};
    assert_int_equal(record_sink_append(sink, 0, -1, &record), RECORD_SINK_OK);
}

/* Once with all of it in the buffer, once with the cut in the file already. */
static void test_rewind_when_written_behind_the_cut_then_taken_back(void **state)
{
    (void)state;
    for (uint32_t pass = 0; pass < 2; pass++) {
        char folder[] = "/tmp/penstock-sink-XXXXXX";
        char path[128];
        static char text[1 << 19];
        static char filler[200001];
        assert_non_null(mkdtemp(folder));
        struct record_sink *sink = open_sink(folder, "t", false);
        append_value(sink, "one");
        record_sink_cut(sink, 3, NULL);
        append_value(sink, "two");
        record_sink_complete(sink, 3);
        if (pass == 1) {
            memset(filler, 'x', sizeof(filler) - 1);
            append_value(sink, filler);
            assert_int_equal(record_sink_poll(sink, 0), 1);
        }
        record_sink_cut(sink, 4, NULL); /* fails: it is never told */
        sink_file_rewind(sink);
        append_value(sink, "three");
        assert_int_equal(sink_file_destroy(sink, NULL), 0);
        (void)snprintf(path, sizeof(path), "%s/t.jsonl", folder);
        FILE *file = fopen(path, "r");
        const size_t bytes = fread(text, 1, sizeof(text) - 1, file);
        text[bytes] = 0;
        (void)fclose(file);
        assert_string_equal(text, "one\nthree\n");
        remove_file(folder, "t.jsonl");
        assert_int_equal(rmdir(folder), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_when_lines_then_values_as_they_are),
        cmocka_unit_test(test_append_when_envelopes_then_source_reads_them_back),
        cmocka_unit_test(test_append_when_record_passes_the_buffer_then_still_written),
        cmocka_unit_test(test_destroy_when_disk_is_full_then_error_is_reported),
        cmocka_unit_test(test_create_when_folder_is_missing_then_named),
        cmocka_unit_test(test_rewind_when_written_behind_the_cut_then_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
