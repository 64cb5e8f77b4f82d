/* SPDX-License-Identifier: Apache-2.0 */
/* Restarts in the middle of a replay: answers are those of a run that never stopped, whatever the
 * records between restarts and the lanes before and after; and every key in state lies in a shard
 * that its lane owns, without which shards could not move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "control/replay.h"
#include "control/sql/sql.h"
#include "dataplane/job.h"
#include "dataplane/source_file.h"
#include "dataplane/table_source.h"
#include "state/arena.h"
#include "state/heap.h"

#define PATH_BYTES 128
#define TEXT_BYTES (1 << 18)
#define RECORDS    300
#define LANES_MAX  4

#define KAFKA(topic)                                                                               \
    "'connector' = 'kafka', 'topic' = '" topic "', 'properties.bootstrap.servers' = 'x:1',\n"      \
    " 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',\n"           \
    " 'format' = 'json'"

/* Two windows by one key, one by a finer one, groups, a global group, windows with and without a
 * key, and lines on the terminal. */
static const char script[] =
    "CREATE TABLE t (k STRING, c STRING, v INT, ts TIMESTAMP(3),\n"
    "  WATERMARK FOR ts AS ts - INTERVAL '3' SECOND) WITH (" KAFKA(
        "t") ");\n"
             "CREATE TABLE o (k STRING, a INT, b BIGINT, d INT) WITH (" KAFKA(
                 "o") ");\n"
                      "CREATE TABLE w (k STRING, n BIGINT, m INT) WITH (" KAFKA(
                          "w") ");\n"
                               "CREATE TABLE h (n BIGINT, s STRING) WITH (" KAFKA(
                                   "h") ");\n"
                                        "CREATE TABLE p (c STRING, n BIGINT, PRIMARY KEY (c) NOT "
                                        "ENFORCED) WITH ('topic' = 'p',\n"
                                        "  'connector' = 'upsert-kafka', "
                                        "'properties.bootstrap.servers' = 'x:1',\n"
                                        "  'key.format' = 'json', 'value.format' = 'json');\n"
                                        "CREATE TABLE q (n BIGINT) WITH ('connector' = 'print');\n"
                                        "CREATE VIEW o1 AS SELECT *, SUM(v) OVER w AS a FROM t "
                                        "WINDOW w AS (PARTITION BY k\n"
                                        "  ORDER BY ts RANGE BETWEEN INTERVAL '20' SECOND "
                                        "PRECEDING AND CURRENT ROW);\n"
                                        "CREATE VIEW o2 AS SELECT *, COUNT(*) OVER w AS b FROM o1 "
                                        "WINDOW w AS (PARTITION BY k\n"
                                        "  ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW);\n"
                                        "EXECUTE STATEMENT SET BEGIN\n"
                                        "INSERT INTO o SELECT k, a, b, MAX(v) OVER (PARTITION BY "
                                        "k, c ORDER BY ts RANGE BETWEEN\n"
                                        "  INTERVAL '9' SECOND PRECEDING AND CURRENT ROW) FROM "
                                        "o2;\n"
                                        "INSERT INTO w SELECT k, COUNT(*), MAX(v) FROM "
                                        "TABLE(HOP(TABLE t, DESCRIPTOR(ts),\n"
                                        "  INTERVAL '5' SECOND, INTERVAL '15' SECOND)) GROUP BY "
                                        "window_start, window_end, k;\n"
                                        "INSERT INTO h SELECT COUNT(*), MIN(c) FROM "
                                        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts),\n"
                                        "  INTERVAL '10' SECOND)) GROUP BY window_start, "
                                        "window_end;\n"
                                        "INSERT INTO p SELECT c, COUNT(DISTINCT k) FROM t GROUP BY "
                                        "c;\n"
                                        "INSERT INTO q SELECT COUNT(*) FROM t;\n"
                                        "END;\n";

struct fixture {
    char folder[PATH_BYTES];
    char path[2 * PATH_BYTES];
    char text[TEXT_BYTES];
};

static const char *in_folder(struct fixture *f, const char *name)
{
    (void)snprintf(f->path, sizeof(f->path), "%s/%s", f->folder, name);
    return f->path;
}

/* Times go on with some disorder, a few of them late. */
static void write_records(struct fixture *f)
{
    FILE *file = fopen(in_folder(f, "in/t.jsonl"), "w");
    assert_non_null(file);
    uint32_t random = 7;
    for (int i = 0; i < RECORDS; i++) {
        random = random * 1103515245U + 12345U;
        const int second = i / 3 - (int)(random >> 16) % 6;
        (void)fprintf(
            file, "{\"k\":\"key %u\",\"c\":\"%c\",\"v\":%d,\"ts\":\"2026-01-01 00:%02d:%02d\"}\n",
            (random >> 20) % 23, 'a' + (int)((random >> 8) % 5), i % 37, 10 + (second + 60) / 60,
            (second + 60) % 60);
    }
    assert_int_equal(fclose(file), 0);
}

static void begin(struct fixture *f)
{
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/penstock-restarts-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    char line[4 * PATH_BYTES];
    (void)snprintf(line, sizeof(line), "mkdir %s/in %s/out", f->folder, f->folder);
    assert_int_equal(system(line), 0);
    FILE *file = fopen(in_folder(f, "job.sql"), "w");
    assert_non_null(file);
    (void)fputs(script, file);
    assert_int_equal(fclose(file), 0);
    write_records(f);
}

static void end(struct fixture *f)
{
    char line[4 * PATH_BYTES];
    (void)snprintf(line, sizeof(line), "rm -r %s", f->folder);
    assert_int_equal(system(line), 0);
    free(f);
}

/* Runs with what is printed in a file. */
static void run(struct fixture *f, const char *const *options)
{
    char job[2 * PATH_BYTES];
    char in[2 * PATH_BYTES];
    char out[2 * PATH_BYTES];
    (void)snprintf(job, sizeof(job), "%s/job.sql", f->folder);
    (void)snprintf(in, sizeof(in), "%s/in", f->folder);
    (void)snprintf(out, sizeof(out), "%s/out", f->folder);
    const char *arguments[16] = {"replay", job, "--in", in, "--out", out, "--quiet"};
    int count = 7;
    for (uint32_t i = 0; options[i] != NULL; i++) {
        arguments[count++] = options[i];
    }
    (void)fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    assert_non_null(freopen(in_folder(f, "out/printed"), "w", stdout));
    const int code = replay_command(count, (char **)(uintptr_t)arguments);
    (void)fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    (void)close(kept);
    assert_int_equal(code, REPLAY_OK);
}

/* All that was written, each file by itself, sorted where the order of keys is free. Record times
 * are processing time, which a replay tells once a batch. */
static void read_all(struct fixture *f, bool sorted, char *into)
{
    char line[8 * PATH_BYTES];
    (void)snprintf(line, sizeof(line),
                   "cd %s/out && for x in o.jsonl w.jsonl h.jsonl p.records printed; do echo $x; "
                   "sed 's/\"t\":[0-9]*//' $x | %s; done",
                   f->folder, sorted ? "sort" : "cat");
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    const size_t bytes = fread(into, 1, TEXT_BYTES - 1, pipe);
    into[bytes] = 0;
    assert_int_equal(pclose(pipe), 0);
    assert_true(bytes > 1000 && bytes < TEXT_BYTES - 1);
}

static void test_replay_when_restarted_on_one_lane_then_the_same_bytes(void **state)
{
    (void)state;
    struct fixture *f = calloc(1, sizeof(*f));
    char *expected = malloc(TEXT_BYTES);
    begin(f);
    run(f, (const char *const[]){NULL});
    read_all(f, false, expected);
    static const char *const every[] = {"3", "7", "50", "299", "300", "1000"};
    for (uint32_t i = 0; i < COUNT_OF(every); i++) {
        run(f, (const char *const[]){"--restart-every", every[i], NULL});
        read_all(f, false, f->text);
        assert_string_equal(f->text, expected);
    }
    free(expected);
    end(f);
}

static void test_replay_when_restarted_on_other_lanes_then_the_same_rows(void **state)
{
    (void)state;
    static const char *const lanes[][2] = {
        {"2", "1"}, {"2", "2"}, {"2", "4"}, {"1", "4,3,2,1"}, {"4", "2,4"}};
    struct fixture *f = calloc(1, sizeof(*f));
    char *expected = malloc(TEXT_BYTES);
    begin(f);
    run(f, (const char *const[]){NULL});
    read_all(f, true, expected);
    for (uint32_t i = 0; i < COUNT_OF(lanes); i++) {
        run(f, (const char *const[]){"--restart-every", "17", "--lanes", lanes[i][0],
                                     "--restart-lanes", lanes[i][1], NULL});
        read_all(f, true, f->text);
        assert_string_equal(f->text, expected);
    }
    free(expected);
    end(f);
}

/* ---- Owners of shards ---- */

struct sink_body {
    struct sink base;
};

static enum operator_verdict swallow(struct sink *sink, const struct parcel *parcel)
{
    (void)sink;
    (void)parcel;
    return OPERATOR_DONE;
}

static bool always(struct sink *sink)
{
    (void)sink;
    return true;
}

static void close_sink(struct sink *sink)
{
    free(sink);
}

static int open_sink(struct sink_context *context, struct sink **out, struct error *error);

static const struct sink_ops swallowing = {
    .open = open_sink, .process = swallow, .flushed = always, .close = close_sink};

static int open_sink(struct sink_context *context, struct sink **out, struct error *error)
{
    (void)context;
    (void)error;
    struct sink_body *body = calloc(1, sizeof(*body));
    body->base.ops = &swallowing;
    *out = &body->base;
    return 0;
}

static int find_source(void *context, const struct plan_node *node, uint32_t lane,
                       struct table_source_edge *out, struct error *error)
{
    (void)node;
    (void)lane;
    (void)error;
    *out = (struct table_source_edge){.records = context};
    return 0;
}

static void *allocate(void *context, uint32_t lane, size_t bytes)
{
    (void)context;
    (void)lane;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory; /* goes with the process */
}

static struct job *make_job(const struct plan *plan, struct record_source *records,
                            uint32_t lane_count, struct arena **arenas, struct heap **heaps)
{
    static struct table_source_environment environment;
    environment = (struct table_source_environment){.find = find_source, .context = records};
    struct job_config config = {
        .plan = plan,
        .lane_count = lane_count,
        .allocate = allocate,
        .classes = {{.bytes = PARCEL_BYTES_DEFAULT, .count = 1024}},
        .class_count = 1,
        .parcel_rows_max = 16,
        .ring_items = 64,
        .queue_rows_max = 1024,
        .records_a_turn = 8,
        .is_replay = true,
        .find_operator = operator_find,
        .source_ops = &table_source_ops,
        .sink_ops = &swallowing,
    };
    for (uint32_t i = 0; i < lane_count; i++) {
        const struct arena_config arena = {
            .memory = allocate(NULL, i, 64U << 20),
            .bytes = 64U << 20,
            .shard_count = EXCHANGE_SHARD_COUNT,
            .is_lazy = true,
        };
        assert_int_equal(arena_create(&arena, &arenas[i], NULL), 0);
        assert_int_equal(heap_create(arenas[i], &heaps[i], NULL), 0);
        config.lanes[i] = (struct job_lane_config){
            .receive = i == 0,
            .operate = true,
            .transmit = i == 0,
            .arena = arenas[i],
            .heap = heaps[i],
            .source_environment = &environment,
        };
    }
    struct job *job = NULL;
    struct error error = {0};
    if (job_create(&config, &job, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return job;
}

/* Every root that has been used lies on the lane that owns its shard.
 * returns  how many there are */
static uint32_t check_owners(struct job *job, struct arena *const *arenas, uint32_t lane_count)
{
    static const uint8_t zeros[ARENA_ROOT_BYTES];
    uint32_t used = 0;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        for (uint32_t object = 0; object < arenas[lane]->object_count; object++) {
            const struct arena_object *state = &arenas[lane]->objects[object];
            for (uint32_t shard = 0; shard < EXCHANGE_SHARD_COUNT; shard++) {
                const void *root = arena_root_read(arenas[lane], object, shard);
                if (state->kind == ARENA_OBJECT_HEAP || root == NULL ||
                    memcmp(root, zeros, sizeof(zeros)) == 0) {
                    continue;
                }
                assert_non_null(job_state_node(job, state->name));
                assert_int_equal(job_owner_lane(job, state->name, shard), lane);
                used++;
            }
        }
    }
    return used;
}

static void test_state_when_on_several_lanes_then_each_shard_on_its_owners(void **state)
{
    (void)state;
    struct fixture *f = calloc(1, sizeof(*f));
    begin(f);
    struct plan *plan = NULL;
    const struct sql_input input = {
        .text = script, .bytes = sizeof(script) - 1, .file_name = "job.sql"};
    assert_int_equal(sql_plan(&input, &plan, NULL, NULL), 0);
    for (uint32_t lane_count = 1; lane_count <= LANES_MAX; lane_count++) {
        static const char *const topics[] = {"t"};
        struct record_source *records = NULL;
        struct arena *arenas[LANES_MAX];
        struct heap *heaps[LANES_MAX];
        const struct source_file_config config = {
            .directory = in_folder(f, "in"), .topics = topics, .topic_count = 1};
        assert_int_equal(source_file_create(&config, &records, NULL), 0);
        struct job *job = make_job(plan, records, lane_count, arenas, heaps);
        uint32_t used = 0;
        for (uint32_t turn = 1; turn < 400; turn++) {
            for (uint32_t lane = 0; lane < lane_count; lane++) {
                (void)job_lane_poll(job, lane, turn);
                assert_int_not_equal(job_lane_state(job, lane), JOB_FAILED);
            }
            if (turn == 20) {
                used = check_owners(job, arenas, lane_count);
            }
        }
        assert_true(used > 20);
        (void)check_owners(job, arenas, lane_count);
        job_destroy(job);
        for (uint32_t lane = 0; lane < lane_count; lane++) {
            heap_destroy(heaps[lane]);
        }
        source_file_destroy(records);
    }
    plan_destroy(plan);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay_when_restarted_on_one_lane_then_the_same_bytes),
        cmocka_unit_test(test_replay_when_restarted_on_other_lanes_then_the_same_rows),
        cmocka_unit_test(test_state_when_on_several_lanes_then_each_shard_on_its_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
