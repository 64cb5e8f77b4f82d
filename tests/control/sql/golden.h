/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a folder of golden files through sql_plan. A file holds cases, separated by lines of "====";
 * a case is a script, a line "----", and what comes out: "error KIND LINE:COLUMN text", or notes
 * and the printed plan. prelude.sql is put before each script as one line, so a script's own lines
 * count from 2. With GOLDEN_UPDATE=1 in the environment the files are written anew, to be read
 * and judged before they are committed. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/sql/sql.h"

#ifndef SOURCE_ROOT
#define SOURCE_ROOT "."
#endif
#define GOLDEN_BYTES_MAX ((size_t)1 << 20)
#define GOLDEN_FOLDER    "tests/control/sql/golden/"

/* Reads a whole file, ended by 0; fails the test when it is not there. */
static inline char *golden_read(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    char *text = calloc(1, GOLDEN_BYTES_MAX + 1);
    assert_non_null(text);
    const size_t bytes = fread(text, 1, GOLDEN_BYTES_MAX, file);
    assert_true(bytes < GOLDEN_BYTES_MAX);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Names an error code as golden files do. */
static inline const char *golden_code(int code)
{
    return code == -EINVAL ? "EINVAL" : code == -ENOTSUP ? "ENOTSUP" : "E2BIG";
}

/* Plans one script and prints what came of it. The caller frees the text. */
static inline char *golden_answer(const char *text, size_t bytes)
{
    char *answer = NULL;
    size_t answer_bytes = 0;
    FILE *into = open_memstream(&answer, &answer_bytes);
    assert_non_null(into);
    struct plan *plan = NULL;
    struct sql_notes notes = {0};
    struct error error = {0};
    const struct sql_input input = {.text = text, .bytes = bytes, .file_name = "golden.sql"};
    const int verdict = sql_plan(&input, &plan, &notes, &error);
    if (verdict != 0) {
        (void)fprintf(into, "error %s %u:%u %s\n", golden_code(verdict), error.line, error.column,
                      error.text);
    } else {
        for (uint32_t i = 0; i < notes.count; i++) {
            (void)fprintf(into, "note %u:%u %s\n", notes.notes[i].line, notes.notes[i].column,
                          notes.notes[i].text);
        }
        plan_explain(plan, into);
    }
    assert_int_equal(fclose(into), 0);
    plan_destroy(plan);
    while (answer_bytes > 1 && answer[answer_bytes - 2] == '\n') {
        answer[--answer_bytes] = 0;
    }
    return answer;
}

/* Runs one case. out: where an update goes, or NULL. */
static inline void golden_case(const char *path, const char *prelude, char *script, FILE *out)
{
    char *line = strstr(script, "\n----\n");
    if (line == NULL) {
        fail_msg("%s: a case has no line ----: %.60s", path, script);
    }
    line[1] = 0;
    const char *expected = line + 6;
    char *text = NULL;
    const int bytes = asprintf(&text, "%s\n%s", prelude, script);
    assert_true(bytes > 0);
    char *answer = golden_answer(text, (size_t)bytes);
    if (out != NULL) {
        (void)fprintf(out, "%s----\n%s", script, answer);
    } else if (strcmp(answer, expected) != 0) {
        fail_msg("%s:\n%s---- expected\n%s---- got\n%s", path, script, expected, answer);
    }
    free(answer);
    free(text);
}

/* Runs one file. */
static inline void golden_file(const char *path, const char *prelude)
{
    char *text = golden_read(path);
    const bool updates = getenv("GOLDEN_UPDATE") != NULL;
    FILE *out = updates ? fopen(path, "w") : NULL;
    assert_true(!updates || out != NULL);
    char *rest = text;
    while (rest != NULL) {
        char *next = strstr(rest, "====\n");
        if (next != NULL) {
            *next = 0;
            next += 5;
        }
        golden_case(path, prelude, rest, out);
        if (next != NULL && out != NULL) {
            (void)fputs("====\n", out);
        }
        rest = next;
    }
    if (out != NULL) {
        assert_int_equal(fclose(out), 0);
    }
    free(text);
}

/* Runs all files of golden/NAME; at least one must be there. */
static inline void golden_run(const char *name)
{
    char folder[256];

    (void)snprintf(folder, sizeof(folder), "%s/%s%s", SOURCE_ROOT, GOLDEN_FOLDER, name);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/../prelude.sql", folder);
    char *prelude = golden_read(path);
    for (char *c = prelude; *c != 0; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, alphasort);
    int ran = 0;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
            golden_file(path, prelude);
            ran++;
        }
        free(entries[i]);
    }
    free(entries);
    free(prelude);
    assert_true(ran > 0);
}
