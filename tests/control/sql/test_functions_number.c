/* SPDX-License-Identifier: Apache-2.0 */
/* Number functions on literals: what the calls fold to is what their kernels compute. Expected
 * values are answers of a Flink 2.3 (the scalar cases, and questions asked beside them). */
#include "tests/control/sql/bind_testing.h"

static void test_round_when_any_number_then_flinks(void **state)
{
    SHOWS(CALL("ROUND", INT(2147483647), INT(-1)), "-2147483646");
    SHOWS(CALL("ROUND", INT(-15), INT(-1)), "-20");
    SHOWS(CALL("ROUND", INT(50), INT(-2)), "100");
    SHOWS(CALL("ROUND", BIGINT(INT64_MAX), INT(-3)), "-9223372036854775616");
    SHOWS(CALL("ROUND", DOUBLE(1.005), INT(2)), "1.01");
    SHOWS(CALL("ROUND", DOUBLE(2.675), INT(2)), "2.68");
    SHOWS(CALL("ROUND", DOUBLE(12345.6789), INT(-2)), "12300.0");
    SHOWS(CALL("ROUND", DOUBLE(-0.4)), "0.0");
    SHOWS(CALL("ROUND", DOUBLE(0.49999999999999994)), "0.0");
    SHOWS(CALL("ROUND", DOUBLE(1e15), INT(2)), "1.0E15");
    SHOWS(CALL("ROUND", FLOAT(0.45F), INT(1)), "0.4");
    SHOWS(CALL("ROUND", DOUBLE(9.995), INT(2)), "10.0");
    SHOWS(CALL("ROUND", DECIMAL("12345.6789", 12, 4), INT(-2)), "12300");
    SHOWS(CALL("ROUND", DECIMAL("-2.5000", 12, 4)), "-3");
    SHOWS(CALL("ROUND", DECIMAL("9999999.9999", 12, 4), INT(2)), "10000000.00");
    SHOWS(CALL("TRUNCATE", DECIMAL("-12345.6789", 12, 4), INT(2)), "-12345.67");
    SHOWS(CALL("TRUNCATE", DOUBLE(12345.6789), INT(-3)), "12000.0");
    SHOWS(CALL("TRUNCATE", DOUBLE(-0.4), INT(-3)), "0.0");
    SHOWS(CALL("TRUNCATE", DOUBLE(0.49999999999999994), INT(1)), "0.4");
    SHOWS(CALL("TRUNCATE", INT(-2147483647 - 1), INT(-2)), "-2147483600");
    SHOWS(CALL("FLOOR", DECIMAL("-12345.6789", 12, 4)), "-12346");
    SHOWS(CALL("CEIL", DOUBLE(-0.4)), "-0.0");
    SHOWS(CALL("SIGN", DECIMAL("-2.50", 12, 2)), "-1.00");
}

static void test_mathematics_when_out_of_domain_then_no_failure(void **state)
{
    SHOWS(CALL("SQRT", INT(-1)), "NaN");
    SHOWS(CALL("LN", INT(0)), "-Infinity");
    SHOWS(CALL("POWER", INT(2), INT(10)), "1024.0");
    SHOWS(CALL("LOG", INT(2), INT(8)), "3.0");
    SHOWS(CALL("LOG2", INT(8)), "3.0");
    SHOWS(CALL("LOG2", DOUBLE(5.5)), "2.4594316186372973");
    SHOWS(CALL("LOG2", DOUBLE(2.5)), "1.3219280948873624");
    SHOWS(CALL("LOG2", DOUBLE(1.5)), "0.5849625007211562");
    SHOWS(CALL("LOG2", DOUBLE(9.5)), "3.2479275134435857");
    SHOWS(CALL("LOG2", DOUBLE(10.5)), "3.3923174227787602");
    SHOWS(CALL("LOG2", DOUBLE(3.5)), "1.8073549220576042");
    SHOWS(CALL("DEGREES", DOUBLE(3.141592653589793)), "180.0");
    SHOWS(CALL("ATAN2", INT(1), INT(1)), "0.7853981633974483");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_when_any_number_then_flinks),
        cmocka_unit_test(test_mathematics_when_out_of_domain_then_no_failure),
    };
    return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
