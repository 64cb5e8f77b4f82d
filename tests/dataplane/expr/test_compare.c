/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, BETWEEN, IN and IS: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"1 < 2", "TRUE"},
    {"2 <= 2", "TRUE"},
    {"3 > 4", "FALSE"},
    {"3 >= 3", "TRUE"},
    {"3 <> 3", "FALSE"},
    {"1 = 1.0", "TRUE"},
    {"1.10 = 1.1", "TRUE"},
    {"CAST(1 AS DOUBLE) = 1", "TRUE"},
    {"'a' < 'b'", "TRUE"},
    {"'a' < 'B'", "FALSE"},
    {"'' < 'a'", "TRUE"},
    {"'ab' > 'a'", "TRUE"},
    {"'é' > 'z'", "TRUE"},
    {"DATE '2026-01-02' > DATE '2026-01-01'", "TRUE"},
    {"TIMESTAMP '2026-01-01 00:00:00.001' > TIMESTAMP '2026-01-01 00:00:00'", "TRUE"},
    {"TIME '10:00:00' < TIME '10:00:01'", "TRUE"},
    {"TRUE > FALSE", "TRUE"},
    {"5 BETWEEN 1 AND 5", "TRUE"},
    {"5 BETWEEN 6 AND 9", "FALSE"},
    {"5 BETWEEN SYMMETRIC 9 AND 1", "TRUE"},
    {"5 NOT BETWEEN 1 AND 4", "TRUE"},
    {"3 IN (1, 2, 3)", "TRUE"},
    {"3 NOT IN (1, 2)", "TRUE"},
    {"CAST(NULL AS INT) IN (1, 2)", NULL},
    {"3 IN (1, CAST(NULL AS INT))", NULL},
    {"CAST(NULL AS INT) IS NULL", "TRUE"},
    {"4 IS NOT NULL", "TRUE"},
    {"CAST(NULL AS INT) IS DISTINCT FROM 3", "TRUE"},
    {"CAST(NULL AS INT) IS NOT DISTINCT FROM CAST(NULL AS INT)", "TRUE"},
    {"3 IS DISTINCT FROM 3", "FALSE"},
    {"CAST(NULL AS INT) = CAST(NULL AS INT)", NULL},
    {"CAST('12345678901234567890.5' AS DECIMAL(38, 1)) > CAST('12345678901234567890.4' AS "
     "DECIMAL(38, 1))",
     "TRUE"},
    {"CAST('a' AS CHAR(3)) = 'a'", "FALSE"},
};

static void test_compare_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compare_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
