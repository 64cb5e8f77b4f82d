/* SPDX-License-Identifier: Apache-2.0 */
/* penstock replay as a user calls it: answers, exit codes, and the same bytes for every size of
 * parcels. The expected rows follow from Flink's rules for windows and lateness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "control/replay.h"
#include "control/replay_options.h"

#define PATH_BYTES 256
#define TEXT_BYTES 65536

struct fixture {
    char folder[PATH_BYTES];
    char script[PATH_BYTES + 16];
    char input[PATH_BYTES + 16];
    char output[PATH_BYTES + 16];
    char text[TEXT_BYTES];
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void run_shell(const char *command, const char *path, const char *rest)
{
    char line[2 * PATH_BYTES];
    (void)snprintf(line, sizeof(line), "%s %s%s", command, path, rest);
    assert_int_equal(system(line), 0);
}

static void begin(struct fixture *f, const char *script)
{
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/penstock-replay-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->script, sizeof(f->script), "%s/job.sql", f->folder);
    (void)snprintf(f->input, sizeof(f->input), "%s/in", f->folder);
    (void)snprintf(f->output, sizeof(f->output), "%s/out", f->folder);
    write_text(f->script, script);
    run_shell("mkdir", f->folder, "/in");
    run_shell("mkdir", f->folder, "/out");
}

static void end(struct fixture *f)
{
    run_shell("rm -r", f->folder, "");
}

static void put_input(struct fixture *f, const char *name, const char *text)
{
    char path[2 * PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", f->input, name);
    write_text(path, text);
}

static const char *get_output(struct fixture *f, const char *name)
{
    char path[2 * PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", f->output, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t bytes = fread(f->text, 1, sizeof(f->text) - 1, file);
    f->text[bytes] = 0;
    (void)fclose(file);
    return f->text;
}

static int replay(struct fixture *f, const char *option, const char *value)
{
    char *arguments[] = {(char[]){"replay"},
                         f->script,
                         (char[]){"--in"},
                         f->input,
                         (char[]){"--out"},
                         f->output,
                         (char[]){"--quiet"},
                         NULL,
                         NULL,
                         NULL};
    int count = 7;
    if (option != NULL) {
        arguments[count++] = strdup(option);
        arguments[count++] = strdup(value);
    }
    const int code = replay_command(count, arguments);
    free(arguments[7]);
    free(arguments[8]);
    return code;
}

static const char windows[] =
    "CREATE TABLE taps (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (\n"
    "  'connector' = 'kafka', 'topic' = 'taps', 'properties.bootstrap.servers' = 'x:1',\n"
    "  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',\n"
    "  'scan.watermark.emit.strategy' = 'on-event', 'format' = 'json');\n"
    "CREATE TABLE counts (window_start TIMESTAMP(3), n BIGINT) WITH (\n"
    "  'connector' = 'kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'x:1',\n"
    "  'format' = 'json');\n"
    "INSERT INTO counts SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE taps,\n"
    "  DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;\n";

static const char taps[] = "{\"id\":1,\"ts\":\"2026-01-01 00:00:01\"}\n"
                           "{\"id\":2,\"ts\":\"2026-01-01 00:00:09\"}\n"
                           "{\"id\":3,\"ts\":\"2026-01-01 00:00:12\"}\n"
                           "{\"id\":4,\"ts\":\"2026-01-01 00:00:03\"}\n"
                           "{\"id\":5,\"ts\":\"2026-01-01 00:00:25\"}\n";

/* The fourth tap is late: the third moved the watermark past its window. */
static const char counts[] = "{\"window_start\":\"2026-01-01 00:00:00\",\"n\":2}\n"
                             "{\"window_start\":\"2026-01-01 00:00:10\",\"n\":1}\n"
                             "{\"window_start\":\"2026-01-01 00:00:20\",\"n\":1}\n";

static void test_window_job_gives_flinks_rows_for_any_parcel_size(void **state)
{
    static const char *const sizes[] = {"1", "2", "3", "256"};
    struct fixture f;
    begin(&f, windows);
    put_input(&f, "taps.jsonl", taps);
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(replay(&f, "--parcel-rows", sizes[i]), REPLAY_OK);
        assert_string_equal(get_output(&f, "counts.jsonl"), counts);
    }
    assert_int_equal(replay(&f, "--lanes", "3"), REPLAY_OK);
    assert_string_equal(get_output(&f, "counts.jsonl"), counts);
    end(&f);
}

/* Compares the values written, each as its key and count. */
static void check_counts(struct fixture *f, const char *name, const char *expected)
{
    char got[256];
    size_t used = 0;
    static const char mark[] = "\"v\":\"{\\\"k\\\":\\\"";
    for (const char *at = strstr(get_output(f, name), mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof(mark) - 1;
        const char *count = strstr(at, "\\\"n\\\":");
        assert_non_null(count);
        assert_true(used + 2 < sizeof(got));
        got[used++] = at[0];
        got[used++] = count[strlen("\\\"n\\\":")];
    }
    got[used] = 0;
    assert_string_equal(got, expected);
}

/* Processing time is the records' in a replay, so lifetimes can be shown: last write + 10 s <= now
 * is gone, 1 ms less is not, and a record from before does not turn the clock back. The second
 * query's hint switches the lifetime off. */
static void test_group_when_its_lifetime_has_passed_then_counts_anew(void **state)
{
    static const char *const sizes[] = {"1", "2", "256"};
    struct fixture f;
    begin(&f,
          "SET 'table.exec.state.ttl' = '10 s';\n"
          "CREATE TABLE t (k STRING) WITH ('connector' = 'kafka', 'topic' = 't',\n"
          "  'properties.bootstrap.servers' = 'x:1', 'scan.startup.mode' = 'earliest-offset',\n"
          "  'scan.bounded.mode' = 'latest-offset', 'format' = 'json');\n"
          "CREATE TABLE o (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (\n"
          "  'connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'x:1',\n"
          "  'key.format' = 'json', 'value.format' = 'json');\n"
          "CREATE TABLE h (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (\n"
          "  'connector' = 'upsert-kafka', 'topic' = 'h', 'properties.bootstrap.servers' = 'x:1',\n"
          "  'key.format' = 'json', 'value.format' = 'json');\n"
          "INSERT INTO o SELECT k, COUNT(*) FROM t GROUP BY k;\n"
          "INSERT INTO h SELECT /*+ STATE_TTL('t' = '0') */ k, COUNT(*) FROM t GROUP BY k;\n");
    put_input(&f, "t.records",
              "{\"t\":1000,\"v\":\"{\\\"k\\\":\\\"a\\\"}\"}\n"
              "{\"t\":5000,\"v\":\"{\\\"k\\\":\\\"b\\\"}\"}\n"
              "{\"t\":10999,\"v\":\"{\\\"k\\\":\\\"a\\\"}\"}\n"
              "{\"t\":15000,\"v\":\"{\\\"k\\\":\\\"b\\\"}\"}\n"
              "{\"t\":9000,\"v\":\"{\\\"k\\\":\\\"b\\\"}\"}\n"
              "{\"t\":20999,\"v\":\"{\\\"k\\\":\\\"a\\\"}\"}\n");
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(replay(&f, "--parcel-rows", sizes[i]), REPLAY_OK);
        check_counts(&f, "o.records", "a1b1a2b1b2a1");
        check_counts(&f, "h.records", "a1b1a2b2b3a3");
    }
    assert_int_equal(replay(&f, "--lanes", "3"), REPLAY_OK);
    check_counts(&f, "o.records", "a1b1a2b1b2a1");
    end(&f);
}

static void test_script_when_refused_then_exits_3(void **state)
{
    struct fixture f;
    begin(&f, "CREATE TABLE t (a INT) WITH ('connector' = 'no-such-connector');\n");
    assert_int_equal(replay(&f, NULL, NULL), REPLAY_REFUSED);
    end(&f);
}

static void test_input_when_missing_then_exits_2(void **state)
{
    struct fixture f;
    begin(&f, windows);
    assert_int_equal(replay(&f, NULL, NULL), REPLAY_USAGE);
    (void)snprintf(f.script, sizeof(f.script), "%s/none.sql", f.folder);
    assert_int_equal(replay(&f, NULL, NULL), REPLAY_USAGE);
    end(&f);
}

static void test_envelope_when_broken_then_the_file_is_to_blame_with_exit_2(void **state)
{
    struct fixture f;
    begin(&f, windows);
    put_input(&f, "taps.records", "\x80\x04]\x94.");
    assert_int_equal(replay(&f, NULL, NULL), REPLAY_USAGE);
    end(&f);
}

static void test_record_when_bad_then_the_job_fails_with_exit_4(void **state)
{
    struct fixture f;
    begin(&f, windows);
    put_input(&f, "taps.jsonl", "{\"id\":1,\"ts\":\"2026-01-01 00:00:01\"}\nno json\n");
    assert_int_equal(replay(&f, NULL, NULL), REPLAY_FAILED);
    end(&f);
}

static bool read_options(struct replay_options *out, int count, const char *const *words)
{
    char *arguments[16];
    assert_true(count <= 16);
    for (int i = 0; i < count; i++) {
        arguments[i] = strdup(words[i]);
    }
    const bool ok = replay_options_read(count, arguments, out);
    for (int i = 0; i < count; i++) {
        /* The options point into the arguments: only numbers are looked at afterwards. */
        free(arguments[i]);
    }
    return ok;
}

static void test_options_read_numbers_and_refuse_nonsense(void **state)
{
    struct replay_options options;
    const char *good[] = {"replay",        "a.sql", "--in",    "i", "--out",  "o",
                          "--parcel-rows", "7",     "--lanes", "2", "--nodes"};
    assert_true(read_options(&options, 11, good));
    assert_int_equal(options.parcel_rows, 7);
    assert_int_equal(options.lanes, 2);
    assert_true(options.prints_nodes);
    assert_false(options.is_quiet);
    const char *missing[] = {"replay", "a.sql", "--in", "i"};
    assert_false(read_options(&options, 4, missing));
    const char *zero[] = {"replay", "a.sql", "--in", "i", "--out", "o", "--parcel-rows", "0"};
    assert_false(read_options(&options, 8, zero));
    const char *text[] = {"replay", "a.sql", "--in", "i", "--out", "o", "--lanes", "2x"};
    assert_false(read_options(&options, 8, text));
    const char *unknown[] = {"replay", "a.sql", "--in", "i", "--out", "o", "--fast"};
    assert_false(read_options(&options, 7, unknown));
    const char *dangling[] = {"replay", "a.sql", "--in", "i", "--out"};
    assert_false(read_options(&options, 5, dangling));
    const char *two[] = {"replay", "a.sql", "b.sql", "--in", "i", "--out", "o"};
    assert_false(read_options(&options, 7, two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_job_gives_flinks_rows_for_any_parcel_size),
        cmocka_unit_test(test_group_when_its_lifetime_has_passed_then_counts_anew),
        cmocka_unit_test(test_script_when_refused_then_exits_3),
        cmocka_unit_test(test_input_when_missing_then_exits_2),
        cmocka_unit_test(test_envelope_when_broken_then_the_file_is_to_blame_with_exit_2),
        cmocka_unit_test(test_record_when_bad_then_the_job_fails_with_exit_4),
        cmocka_unit_test(test_options_read_numbers_and_refuse_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
