/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between numbers: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"CAST(300 AS TINYINT)", "44"},
    {"CAST(-129 AS TINYINT)", "127"},
    {"CAST(70000 AS SMALLINT)", "4464"},
    {"CAST(3000000000 AS INT)", "-1294967296"},
    {"CAST(3.99 AS INT)", "3"},
    {"CAST(-3.99 AS INT)", "-3"},
    {"CAST(CAST(3.99 AS DOUBLE) AS INT)", "3"},
    {"CAST(1e20 AS BIGINT)", "9223372036854775807"},
    {"CAST(CAST(-1e20 AS DOUBLE) AS BIGINT)", "-9223372036854775808"},
    {"CAST(TRUE AS INT)", "1"},
    {"CAST(0 AS BOOLEAN)", "FALSE"},
    {"CAST(7 AS BOOLEAN)", "TRUE"},
    {"CAST(1 AS DOUBLE)", "1.0"},
    {"CAST(1.1 AS FLOAT)", "1.1"},
    {"CAST(1.005 AS DOUBLE)", "1.005"},
    {"CAST(CAST(2.5 AS DOUBLE) AS DECIMAL(3, 0))", "3"},
    {"CAST(CAST(1.15 AS DOUBLE) AS DECIMAL(3, 1))", "1.2"},
    {"TRY_CAST('x' AS INT)", NULL},
    {"TRY_CAST('12' AS INT)", "12"},
    {"CAST(CAST(NULL AS INT) AS STRING)", NULL},
    {"CAST(CAST(1e300 AS DOUBLE) AS FLOAT)", "Infinity"},
    {"CAST(16777217 AS FLOAT)", "1.6777216E7"},
    {"CAST(9007199254740993 AS DOUBLE)", "9.007199254740992E15"},
};

static void test_cast_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cast_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
