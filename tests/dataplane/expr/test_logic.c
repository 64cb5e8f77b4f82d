/* SPDX-License-Identifier: Apache-2.0 */
/* Three-valued logic, CASE and their like: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"TRUE AND CAST(NULL AS BOOLEAN)", NULL},
    {"FALSE AND CAST(NULL AS BOOLEAN)", "FALSE"},
    {"TRUE OR CAST(NULL AS BOOLEAN)", "TRUE"},
    {"FALSE OR CAST(NULL AS BOOLEAN)", NULL},
    {"NOT CAST(NULL AS BOOLEAN)", NULL},
    {"CAST(NULL AS BOOLEAN) IS TRUE", "FALSE"},
    {"CAST(NULL AS BOOLEAN) IS NOT TRUE", "TRUE"},
    {"CAST(NULL AS BOOLEAN) IS UNKNOWN", "TRUE"},
    {"FALSE IS NOT FALSE", "FALSE"},
    {"TRUE IS FALSE", "FALSE"},
    {"CASE WHEN CAST(NULL AS BOOLEAN) THEN 1 ELSE 2 END", "2"},
    {"CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", "b"},
    {"CASE 4 WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", NULL},
    {"COALESCE(CAST(NULL AS INT), 5, 6)", "5"},
    {"COALESCE(CAST(NULL AS INT), CAST(NULL AS INT))", NULL},
    {"NULLIF(3, 3)", NULL},
    {"NULLIF(3, 4)", "3"},
    {"IF(1 > 2, 'x', 'y')", "y"},
    {"IF(CAST(NULL AS BOOLEAN), 'x', 'y')", "y"},
    {"IFNULL(CAST(NULL AS STRING), 'z')", "z"},
    {"IFNULL('q', 'z')", "q"},
    {"GREATEST(3, 9, 4)", "9"},
    {"LEAST(3, 9, 4)", "3"},
    {"GREATEST(3, CAST(NULL AS INT), 4)", NULL},
    {"GREATEST('b', 'abc')", "b"},
    {"LEAST(1.5, 1.25)", "1.25"},
};

static void test_logic_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logic_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
