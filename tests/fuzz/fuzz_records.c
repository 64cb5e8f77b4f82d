/* SPDX-License-Identifier: Apache-2.0 */
/* A whole small job over any record bytes, as penstock replay runs it: decode, computed columns,
 * OVER, GROUP BY, a window, dead letters, encode. The first byte chooses how bad records are taken
 * and whether the rest is a file of lines or of envelopes. The job must end in one of the
 * documented ways, and its answers must not depend on the size of parcels. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/replay.h"

#define OUT_BYTES_MAX   ((size_t)1 << 20)
#define EXIT_OK         0
#define EXIT_BAD_FILE   2
#define EXIT_JOB_FAILED 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const ON_ERROR[] = {
    "SET 'penstock.table.a.on-error' = 'skip';",
    ("SET 'penstock.table.a.on-error' = 'dead-letter';"
     "SET 'penstock.table.a.dead-letter-topic' = 'dead';"),
    "",
};

static const char JOB[] =
    "CREATE TABLE a (id BIGINT, k STRING, d DECIMAL(12, 2), r ROW<x INT, y STRING>, ts "
    "TIMESTAMP(3),"
    " up AS UPPER(k), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'kafka',"
    " 'topic' = 'in', 'properties.bootstrap.servers' = 'b:1', 'scan.startup.mode' ="
    " 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'%s);\n"
    "CREATE TABLE o (id BIGINT, up STRING, n BIGINT, s DECIMAL(38, 2), x INT) WITH ('connector' ="
    " 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');\n"
    "CREATE TABLE g (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' ="
    " 'upsert-kafka', 'topic' = 'g', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json',"
    " 'value.format' = 'json');\n"
    "EXECUTE STATEMENT SET BEGIN\n"
    "INSERT INTO o SELECT id, up, COUNT(*) OVER w, SUM(d) OVER w, r.x FROM a WINDOW w AS (PARTITION"
    " BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW);\n"
    "INSERT INTO g SELECT k, COUNT(*) FROM a GROUP BY k;\n"
    "END;\n";

static void write_file(const char *path, const void *data, size_t bytes)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || write(file, data, bytes) != (ssize_t)bytes || close(file) != 0) {
        abort();
    }
}

static size_t read_file(const char *path, char *into)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, into, OUT_BYTES_MAX);
    if (file >= 0) {
        (void)close(file);
    }
    return bytes < 0 ? 0 : (size_t)bytes;
}

static int replay(const char *out, const char *rows)
{
    const char *words[] = {"replay",      "job.sql", "--in",          "in", "--out", out, "--quiet",
                           "--state-mib", "64",      "--parcel-rows", rows, NULL};
    char *arguments[COUNT_OF(words)];
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        arguments[i] = (char *)(uintptr_t)words[i];
    }
    (void)mkdir(out, 0700);
    return replay_command(COUNT_OF(words) - 1, arguments);
}

/* A folder in memory, made once and entered. */
static void enter_folder(void)
{
    char folder[] = "/dev/shm/fuzz-records-XXXXXX";
    if (access("job.sql", F_OK) == 0) {
        return;
    }
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("in", 0700) != 0) {
        abort();
    }
}

static void compare(const char *topic)
{
    static char a[OUT_BYTES_MAX];
    static char b[OUT_BYTES_MAX];
    char path[64];
    (void)snprintf(path, sizeof(path), "small/%s", topic);
    const size_t bytes = read_file(path, a);
    (void)snprintf(path, sizeof(path), "large/%s", topic);
    if (read_file(path, b) != bytes || memcmp(a, b, bytes) != 0) {
        (void)fprintf(stderr, "%s: answers depend on the size of parcels\n", topic);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char script[sizeof(JOB) + 256];
    if (bytes < 1) {
        return 0;
    }
    enter_folder();
    const int head = snprintf(script, sizeof(script), "%s", ON_ERROR[data[0] % COUNT_OF(ON_ERROR)]);
    const char *ignore = (data[0] & 64) != 0 ? ", 'json.ignore-parse-errors' = 'true'" : "";
    (void)snprintf(script + head, sizeof(script) - (size_t)head, JOB, ignore);
    write_file("job.sql", script, strlen(script));
    const bool lines = (data[0] & 128) == 0;
    (void)unlink(lines ? "in/in.records" : "in/in.jsonl");
    write_file(lines ? "in/in.jsonl" : "in/in.records", data + 1, bytes - 1);
    const int small = replay("small", "1");
    const int large = replay("large", "256");
    if (small != large ||
        (small != EXIT_OK && small != EXIT_JOB_FAILED && (lines || small != EXIT_BAD_FILE))) {
        (void)fprintf(stderr, "ended with %d and %d\n", small, large);
        abort();
    }
    if (small == EXIT_OK) {
        compare("o.jsonl");
        compare("g.records");
        compare("dead.records");
    }
    return 0;
}
