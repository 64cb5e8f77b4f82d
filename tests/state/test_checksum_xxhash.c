/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3_128bits against the values that xxhsum -H2 prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "state/checksum.h"

static void expect(const char *text, uint64_t high, uint64_t low)
{
    const struct checksum sum = checksum_of(text, strlen(text));
    assert_true(checksum_is_equal(sum, (struct checksum){.low = low, .high = high}));
    assert_false(checksum_is_equal(sum, (struct checksum){.low = low + 1, .high = high}));
    assert_false(checksum_is_equal(sum, (struct checksum){.low = low, .high = high ^ 1}));
}

static void test_sum_when_known_text_then_known_value(void **state)
{
    (void)state;
    expect("", UINT64_C(0x99aa06d3014798d8), UINT64_C(0x6001c324468d497f));
    expect("a", UINT64_C(0xa96faf705af16834), UINT64_C(0xe6c632b61e964e1f));
    expect("abc", UINT64_C(0x06b05ab6733a6185), UINT64_C(0x78af5f94892f3950));
}

static void test_sum_when_any_bit_flips_then_differs(void **state)
{
    (void)state;
    uint8_t data[300] = {0};
    const struct checksum sum = checksum_of(data, sizeof(data));
    for (uint32_t bit = 0; bit < sizeof(data) * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_false(checksum_is_equal(sum, checksum_of(data, sizeof(data))));
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    assert_false(checksum_is_equal(sum, checksum_of(data, sizeof(data) - 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_when_known_text_then_known_value),
        cmocka_unit_test(test_sum_when_any_bit_flips_then_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
