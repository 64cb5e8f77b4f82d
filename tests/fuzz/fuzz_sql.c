/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a script, behind two tables that it can use: sql_plan gives a plan, which prints, or
 * an error with words; nothing else. */
#include <stdio.h>
#include <stdlib.h>

#include "control/sql/sql.h"

#define FUZZ_BYTES_MAX 65536

static const char prelude[] =
    "CREATE TABLE pay (id INT, card STRING, amount DECIMAL(12, 2), x DOUBLE, r ROW<a INT, b "
    "STRING>, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = "
    "'kafka', 'topic' = 'p', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');\n"
    "CREATE TABLE o (a STRING, b BIGINT) WITH ('connector' = 'print');\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char script[sizeof(prelude) + FUZZ_BYTES_MAX];
    if (bytes > FUZZ_BYTES_MAX) {
        return 0;
    }
    memcpy(script, prelude, sizeof(prelude) - 1);
    memcpy(script + sizeof(prelude) - 1, data, bytes);
    const struct sql_input input = {
        .text = script, .bytes = sizeof(prelude) - 1 + bytes, .file_name = "fuzz.sql"};
    struct plan *plan = NULL;
    struct sql_notes notes = {0};
    struct error error = {0};
    const int verdict = sql_plan(&input, &plan, &notes, &error);
    ASSERT((verdict == 0) == (plan != NULL));
    ASSERT(verdict == 0 || error.text[0] != 0);
    if (plan != NULL) {
        FILE *into = fopen("/dev/null", "w");
        ASSERT(into != NULL);
        plan_explain(plan, into);
        (void)fclose(into);
    }
    plan_destroy(plan);
    return 0;
}
