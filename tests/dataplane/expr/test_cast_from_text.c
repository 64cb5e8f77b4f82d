/* SPDX-License-Identifier: Apache-2.0 */
/* Casts from text: what a Flink 2.3 answered to the same SQL, as text. */
#include "tests/dataplane/expr/answers.h"

static const struct answer answers[] = {
    {"TRY_CAST('12' AS INT)", "12"},
    {"TRY_CAST(' 12 ' AS INT)", "12"},
    {"TRY_CAST('+7' AS INT)", "7"},
    {"TRY_CAST('-0' AS INT)", "0"},
    {"TRY_CAST('1 2' AS INT)", NULL},
    {"TRY_CAST('' AS INT)", NULL},
    {"TRY_CAST('2147483648' AS INT)", NULL},
    {"TRY_CAST('2147483648' AS BIGINT)", "2147483648"},
    {"TRY_CAST('1.9' AS INT)", "1"},
    {"TRY_CAST('1e3' AS INT)", NULL},
    {"TRY_CAST('1e3' AS DOUBLE)", "1000.0"},
    {"TRY_CAST(' 1.5 ' AS DOUBLE)", "1.5"},
    {"TRY_CAST('NaN' AS DOUBLE)", "NaN"},
    {"TRY_CAST('Infinity' AS DOUBLE)", "Infinity"},
    {"TRY_CAST('inf' AS DOUBLE)", NULL},
    {"TRY_CAST('0x10' AS DOUBLE)", NULL},
    {"TRY_CAST('1.5f' AS DOUBLE)", "1.5"},
    {"TRY_CAST('12.345' AS DECIMAL(5, 2))", "12.35"},
    {"TRY_CAST('1e2' AS DECIMAL(5, 2))", "100.00"},
    {"TRY_CAST('12345.6' AS DECIMAL(5, 2))", NULL},
    {"TRY_CAST('1,5' AS DECIMAL(5, 2))", NULL},
    {"TRY_CAST('true' AS BOOLEAN)", "TRUE"},
    {"TRY_CAST('TRUE' AS BOOLEAN)", "TRUE"},
    {"TRY_CAST('t' AS BOOLEAN)", "TRUE"},
    {"TRY_CAST('yes' AS BOOLEAN)", "TRUE"},
    {"TRY_CAST('0' AS BOOLEAN)", "FALSE"},
    {"TRY_CAST('maybe' AS BOOLEAN)", NULL},
    {"TRY_CAST('2026-03-01' AS DATE)", "2026-03-01"},
    {"TRY_CAST('2026-02-30' AS DATE)", NULL},
    {"TRY_CAST('01.03.2026' AS DATE)", NULL},
    {"TRY_CAST('12:34:56' AS TIME)", "12:34:56"},
    {"TRY_CAST('2026-03-01 12:34:56.789' AS TIMESTAMP(3))", "2026-03-01 12:34:56.789"},
    {"TRY_CAST('2026-03-01T12:34:56' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('2026-03-01 25:00:00' AS TIMESTAMP(3))", NULL},
    {"TRY_CAST('2026-3-1' AS DATE)", "2026-03-01"},
};

static void test_cast_from_text_when_asked_then_flinks(void **state)
{
    answers_check(answers, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cast_from_text_when_asked_then_flinks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
