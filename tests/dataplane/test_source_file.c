/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded files as partitions: the rules of the case folders (record times, envelopes), and that
 * the order and the ends do not depend on the size of batches. */
#include "dataplane/source_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define LOG_BYTES 65536

struct folder {
    char path[64];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    (void)strcpy(folder->path, "/tmp/penstock-source-XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    static const char *const NAMES[] = {"a.jsonl", "a.records", "b.jsonl", "b.records"};
    char path[128];
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder->path, NAMES[i]);
        (void)unlink(path);
    }
    const int result = rmdir(folder->path);
    free(folder);
    return result;
}

static void write_file(const struct folder *folder, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static struct record_source *open_source(const struct folder *folder, uint32_t topic_count,
                                         uint32_t batch_records_max)
{
    static const char *const TOPICS[] = {"a", "b"};
    struct record_source *source = NULL;
    struct error error = {.line = 0};
    const struct source_file_config config = {
        .directory = folder->path,
        .topics = TOPICS,
        .topic_count = topic_count,
        .batch_records_max = batch_records_max,
        .missing_is_empty = true,
    };
    assert_int_equal(source_file_create(&config, &source, &error), 0);
    return source;
}

static void log_record(FILE *log, const struct record_batch_view *batch,
                       const struct record *record)
{
    (void)fprintf(log, "%u/%u@%lld t%lld", batch->topic, batch->partition,
                  (long long)record->offset, (long long)record->timestamp_ms);
    if (!record->key_is_null) {
        (void)fprintf(log, " k=%.*s", (int)record->key.bytes, (const char *)record->key.data);
    }
    for (uint32_t i = 0; i < record->header_count; i++) {
        (void)fprintf(log, " %.*s:%.*s", (int)record->headers[i].name.bytes,
                      (const char *)record->headers[i].name.data,
                      (int)record->headers[i].value.bytes,
                      (const char *)record->headers[i].value.data);
    }
    if (!record->value_is_null) {
        (void)fprintf(log, " v=%.*s", (int)record->value.bytes, (const char *)record->value.data);
    }
    (void)fputc('\n', log);
}

/* Reads all there is into text lines; ends of partitions are lines too. The caller frees. */
static char *read_all(struct record_source *source)
{
    char *text = malloc(LOG_BYTES);
    struct record_batch_view batch;
    FILE *log = fmemopen(text, LOG_BYTES, "w");
    while (record_source_poll(source, 99, &batch)) {
        for (uint32_t i = 0; i < batch.record_count; i++) {
            assert_int_equal(batch.records[i].arrival_ns, 99);
            log_record(log, &batch, &batch.records[i]);
        }
        if (batch.ended) {
            (void)fprintf(log, "%u/%u ended\n", batch.topic, batch.partition);
        }
        record_source_release(source);
    }
    (void)fputc(0, log);
    (void)fclose(log);
    return text;
}

static void check_all(struct record_source *source, const char *expected)
{
    char *text = read_all(source);
    assert_string_equal(text, expected);
    free(text);
}

static void test_poll_when_lines_then_times_and_offsets_count(void **state)
{
    write_file(*state, "a.jsonl", "{\"x\":1}\r\n\n{\"x\":3}");
    struct record_source *source = open_source(*state, 1, 0);
    assert_int_equal(source_file_partition_count(source, 0), 1);
    check_all(source, "0/0@0 t1700000000000 v={\"x\":1}\n"
                      "0/0@1 t1700000000001 v=\n"
                      "0/0@2 t1700000000002 v={\"x\":3}\n"
                      "0/0 ended\n");
    source_file_destroy(source);
}

static void test_poll_when_envelopes_then_every_member_is_read(void **state)
{
    write_file(*state, "a.records",
               "{\"v\":\"x\\u00e9\\n\"}\n"
               "{\"p\":2,\"t\":1709164800000,\"k\":\"key\",\"v\":null}\n"
               "{\"b64\":\"aGkh\",\"h\":{\"source\":\"pos\",\"e\":\"\"}}\n"
               "{}\n"
               "{\"p\":2,\"k\":null,\"k64\":\"QQ==\",\"v\":\"\"}\n");
    struct record_source *source = open_source(*state, 1, 0);
    assert_int_equal(source_file_partition_count(source, 0), 3);
    check_all(source, "0/1 ended\n"
                      "0/0@0 t1700000000000 v=x\xc3\xa9\n\n"
                      "0/2@0 t1709164800000 k=key\n"
                      "0/0@1 t1700000000002 source:pos e: v=hi!\n"
                      "0/0@2 t1700000000003\n"
                      "0/0 ended\n"
                      "0/2@1 t1700000000004 k=A v=\n"
                      "0/2 ended\n");
    source_file_destroy(source);
}

static void test_poll_when_two_topics_then_merged_by_record_time(void **state)
{
    write_file(*state, "a.records",
               "{\"t\":10,\"v\":\"1\"}\n{\"t\":20,\"v\":\"2\"}\n"
               "{\"t\":20,\"v\":\"3\"}\n{\"t\":5,\"v\":\"4\"}\n");
    write_file(*state, "b.records", "{\"t\":20,\"v\":\"5\"}\n{\"t\":1,\"v\":\"6\"}\n");
    struct record_source *source = open_source(*state, 2, 0);
    check_all(source, "0/0@0 t10 v=1\n0/0@1 t20 v=2\n0/0@2 t20 v=3\n0/0@3 t5 v=4\n"
                      "0/0 ended\n1/0@0 t20 v=5\n1/0@1 t1 v=6\n1/0 ended\n");
    source_file_destroy(source);
}

static void test_poll_when_batches_differ_then_order_is_the_same(void **state)
{
    char text[8192];
    size_t used = 0;
    for (int i = 0; i < 60; i++) {
        used += (size_t)sprintf(text + used, "{\"p\":%d,\"t\":%d,\"v\":\"%d\"}\n", i * 7 % 3,
                                1000 + i * 5 % 17, i);
    }
    write_file(*state, "a.records", text);
    write_file(*state, "b.jsonl", "1\n2\n3\n4\n");
    struct record_source *source = open_source(*state, 2, 1);
    char *expected = read_all(source);
    source_file_destroy(source);
    for (uint32_t size = 2; size < 70; size += 3) {
        source = open_source(*state, 2, size);
        check_all(source, expected);
        source_file_destroy(source);
    }
    free(expected);
}

static void test_poll_when_paused_then_nothing_until_resumed(void **state)
{
    struct record_batch_view batch;
    write_file(*state, "a.jsonl", "1\n2\n");
    struct record_source *source = open_source(*state, 1, 1);
    assert_true(record_source_poll(source, 99, &batch));
    assert_false(batch.ended);
    record_source_pause(source, 0, 0, true);
    assert_false(record_source_poll(source, 99, &batch));
    record_source_pause(source, 0, 0, false);
    check_all(source, "0/0@1 t1700000000001 v=2\n0/0 ended\n");
    source_file_destroy(source);
}

static void test_poll_when_file_is_empty_or_missing_then_ends_at_once(void **state)
{
    write_file(*state, "a.jsonl", "");
    struct record_source *source = open_source(*state, 2, 0);
    check_all(source, "0/0 ended\n1/0 ended\n");
    source_file_destroy(source);
}

static void test_create_when_topic_has_no_file_then_named(void **state)
{
    const struct folder *folder = *state;
    static const char *const TOPICS[] = {"nowhere"};
    struct record_source *source;
    struct error error = {.line = 0};
    const struct source_file_config config = {
        .directory = folder->path,
        .topics = TOPICS,
        .topic_count = 1,
    };
    assert_int_not_equal(source_file_create(&config, &source, &error), 0);
    assert_null(source);
    assert_non_null(strstr(error.text, "'nowhere'"));
}

static void test_create_when_envelope_is_broken_then_line_is_named(void **state)
{
    static const char *const BROKEN[] = {
        "{\"p\":-1}", "{\"p\":4096}", "{\"t\":\"x\"}", "{\"v\":5}", "{\"b64\":\"A\"}", "{\"h\":5}",
        "{\"q\":1}",  "[]",           "{\"v\":\"x\"",  "",
    };
    const struct folder *folder = *state;
    static const char *const TOPICS[] = {"a"};
    for (size_t i = 0; i < COUNT_OF(BROKEN); i++) {
        char text[128];
        struct record_source *source;
        struct error error = {.line = 0};
        const struct source_file_config config = {
            .directory = folder->path,
            .topics = TOPICS,
            .topic_count = 1,
        };
        (void)snprintf(text, sizeof(text), "{\"v\":\"good\"}\n%s\n", BROKEN[i]);
        write_file(folder, "a.records", text);
        assert_int_not_equal(source_file_create(&config, &source, &error), 0);
        assert_int_equal(error.line, 2);
        assert_non_null(strstr(error.place, "a.records"));
    }
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

/* Reads so many records and says which: topic, partition, offset. */
static void read_places(struct record_source *source, uint32_t count, char *into)
{
    struct record_batch_view batch;
    into[0] = 0;
    while (count > 0 && record_source_poll(source, 1, &batch)) {
        for (uint32_t i = 0; i < batch.record_count; i++, count--) {
            const size_t used = strlen(into);
            (void)snprintf(into + used, LOG_BYTES - used, " %u.%u.%lld", batch.topic,
                           batch.partition, (long long)batch.records[i].offset);
        }
        record_source_release(source);
    }
}

static void test_start_at_when_read_in_two_parts_then_as_in_one(void **state)
{
    const struct folder *folder = *state;
    static char whole[LOG_BYTES];
    static char first[LOG_BYTES];
    static char second[LOG_BYTES];
    write_file(folder, "a.records",
               "{\"p\":0,\"t\":1,\"v\":\"x\"}\n{\"p\":1,\"t\":4,\"v\":\"x\"}\n"
               "{\"p\":0,\"t\":5,\"v\":\"x\"}\n{\"p\":1,\"t\":6,\"v\":\"x\"}\n");
    write_file(folder, "b.records", "{\"t\":2,\"v\":\"y\"}\n{\"t\":7,\"v\":\"y\"}\n");
    struct record_source *source = open_source(folder, 2, 1);
    read_places(source, 6, whole);
    source_file_destroy(source);
    for (uint32_t stop = 0; stop <= 6; stop++) {
        struct record_position positions[3];
        source = open_source(folder, 2, 1);
        read_places(source, stop, first);
        assert_true(source->ops->position(source, 0, 0, &positions[0]));
        assert_true(source->ops->position(source, 0, 1, &positions[1]));
        assert_true(source->ops->position(source, 1, 0, &positions[2]));
        source_file_destroy(source);
        source = open_source(folder, 2, 1);
        assert_int_equal(source->ops->start_at(source, positions, 3, NULL), 0);
        read_places(source, 6 - stop, second);
        (void)strcat(first, second);
        assert_string_equal(first, whole);
        source_file_destroy(source);
    }
}

static void test_start_at_when_the_recording_is_another_then_refused(void **state)
{
    const struct folder *folder = *state;
    write_file(folder, "a.jsonl", "1\n2\n");
    struct record_source *source = open_source(folder, 1, 1);
    const struct record_position position = {.partition = 3, .next_offset = 1};
    struct error error = {0};
    assert_int_equal(source->ops->start_at(source, &position, 1, &error), -EINVAL);
    assert_true(error.text[0] != 0);
    source_file_destroy(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_poll_when_lines_then_times_and_offsets_count),
        FILE_TEST(test_poll_when_envelopes_then_every_member_is_read),
        FILE_TEST(test_poll_when_two_topics_then_merged_by_record_time),
        FILE_TEST(test_poll_when_batches_differ_then_order_is_the_same),
        FILE_TEST(test_poll_when_paused_then_nothing_until_resumed),
        FILE_TEST(test_poll_when_file_is_empty_or_missing_then_ends_at_once),
        FILE_TEST(test_create_when_topic_has_no_file_then_named),
        FILE_TEST(test_create_when_envelope_is_broken_then_line_is_named),
        FILE_TEST(test_start_at_when_read_in_two_parts_then_as_in_one),
        FILE_TEST(test_start_at_when_the_recording_is_another_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
