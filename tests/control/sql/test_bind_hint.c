/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of control/sql/bind_hint.c: scripts with the plans or errors that they must give, in
 * golden/bind_hint/. */
#include "tests/control/sql/golden.h"

static void test_bind_hint_on_golden_scripts_gives_golden_plans(void **state)
{
    (void)state;
    golden_run("bind_hint");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bind_hint_on_golden_scripts_gives_golden_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
