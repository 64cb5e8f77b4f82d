/* SPDX-License-Identifier: Apache-2.0 */
/* The command's files and exit codes. Sending to a broker is for the integration tests. */
#include "tools/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "dataplane/source_file.h"

#define ARGUMENTS_MAX 16

/* Runs the command on words split at blanks. */
static int load(const char *words)
{
    char text[512];
    char *arguments[ARGUMENTS_MAX];
    int count = 0;
    char *rest = NULL;
    (void)snprintf(text, sizeof(text), "load %s", words);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < ARGUMENTS_MAX - 1);
        arguments[count++] = word;
    }
    arguments[count] = NULL;
    return load_command(count, arguments);
}

static void test_load_when_arguments_are_wrong_then_2(void **state)
{
    (void)state;
    static const char *const WRONG[] = {
        "",
        "bids --events 5 --to-file -",
        "payments --to-file /dev/null",
        "payments --events five --to-file /dev/null",
        "payments --events -5 --to-file /dev/null",
        "payments --events 5",
        "payments --events 5 --to-file /dev/null --brokers b:1 --topic t",
        "payments --events 5 --brokers b:1",
        "payments --events 5 --to-file /dev/null --nothing",
        "payments --events 5 --to-file /dev/null extra",
        "payments --events 5 --to-file /dev/null --cards 0",
        "payments --events 5 --to-file /dev/null --rate 0",
        "nexmark --events 5 --to-file /dev/null --from 1",
        "nexmark --events 5 --to-file /dev/null --rate 0.5",
        "nexmark --events 5 --to-file /dev/null --disorder 2147483648",
    };
    for (size_t i = 0; i < COUNT_OF(WRONG); i++) {
        assert_int_equal(load(WRONG[i]), 2);
    }
    assert_int_equal(load("--help"), 0);
    assert_int_equal(load("nexmark --help"), 0);
}

static void test_load_when_file_cannot_be_written_then_1(void **state)
{
    (void)state;
    assert_int_equal(load("payments --events 5 --to-file /nowhere/x.jsonl"), 1);
    assert_int_equal(load("payments --events 5 --to-file /dev/full"), 1);
}

static void test_load_when_partitions_then_envelopes_by_event_number(void **state)
{
    (void)state;
    char folder[] = "/tmp/penstock-load-XXXXXX";
    char words[256];
    char path[128];
    static const char *const TOPICS[] = {"t"};
    struct record_source *source;
    struct record_batch_view batch;
    uint32_t per_partition[3] = {0, 0, 0};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/t.records", folder);
    (void)snprintf(words, sizeof(words),
                   "nexmark --events 100 --from 50 --partitions 3 --to-file %s", path);
    assert_int_equal(load(words), 0);
    const struct source_file_config config = {
        .directory = folder, .topics = TOPICS, .topic_count = 1, .batch_records_max = 1};
    assert_int_equal(source_file_create(&config, &source, NULL), 0);
    for (uint64_t n = 50; record_source_poll(source, 0, &batch); n++) {
        assert_int_equal(batch.partition, n % 3);
        per_partition[batch.partition] += batch.record_count;
        const char *kind = n % 50 == 0 ? "{\"event_type\":0," : "{\"event_type\":";
        assert_memory_equal(batch.records[0].value.data, kind, strlen(kind));
    }
    assert_int_equal(per_partition[0] + per_partition[1] + per_partition[2], 100);
    source_file_destroy(source);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_when_arguments_are_wrong_then_2),
        cmocka_unit_test(test_load_when_file_cannot_be_written_then_1),
        cmocka_unit_test(test_load_when_partitions_then_envelopes_by_event_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
