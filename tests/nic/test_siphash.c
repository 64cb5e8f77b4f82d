/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the SipHash paper (appendix A) and of its reference implementation. */
#include "nic/siphash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_hash_of_reference_inputs_gives_reference_outputs(void **state)
{
    uint8_t key[16], input[16];
    for (uint8_t i = 0; i < 16; i++) {
        key[i] = i;
        input[i] = i;
    }
    assert_true(siphash(key, input, 0) == UINT64_C(0x726fdb47dd0e0e31));
    assert_true(siphash(key, input, 1) == UINT64_C(0x74f839c593dc67fd));
    assert_true(siphash(key, input, 8) == UINT64_C(0x93f5f5799a932462));
    assert_true(siphash(key, input, 15) == UINT64_C(0xa129ca6149be45e5));
}

static void test_hash_under_another_key_differs(void **state)
{
    uint8_t key[16] = {0}, other[16] = {1};
    assert_false(siphash(key, key, 12) == siphash(other, key, 12));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_of_reference_inputs_gives_reference_outputs),
        cmocka_unit_test(test_hash_under_another_key_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
