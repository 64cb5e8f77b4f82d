/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 1071's own example, and agreement with a word-by-word model on every length and offset. */
#include "nic/checksum.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_sum_of_rfc_1071_example_gives_its_result(void **state)
{
    static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    assert_int_equal(0xddf2, checksum_fold(checksum_add(0, bytes, sizeof(bytes))));
    assert_int_equal(0x220d, checksum_finish(checksum_add(0, bytes, sizeof(bytes))));
}

static void test_sum_of_ip4_header_with_its_checksum_is_zero(void **state)
{
    /* The header in the article on IPv4 of many textbooks: checksum b861. */
    static const uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                     0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    assert_int_equal(0, checksum_finish(checksum_add(0, header, sizeof(header))));
}

static uint16_t model(const uint8_t *data, size_t bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        sum += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

static void test_sum_of_every_length_equals_model(void **state)
{
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(255 - i * 7);
    }
    for (size_t start = 0; start < 9; start++) {
        for (size_t count = 0; start + count <= sizeof(bytes); count++) {
            assert_int_equal(model(bytes + start, count),
                             checksum_fold(checksum_add(0, bytes + start, count)));
        }
    }
}

static void test_sum_in_even_parts_equals_sum_of_whole(void **state)
{
    uint8_t bytes[101];
    memset(bytes, 0xff, sizeof(bytes));
    bytes[7] = 1;
    uint64_t sum = checksum_add(checksum_add(0, bytes, 46), bytes + 46, 55);
    assert_int_equal(model(bytes, sizeof(bytes)), checksum_fold(sum));
}

static void test_pseudo_header_equals_its_bytes(void **state)
{
    static const uint8_t pseudo[] = {198, 18, 0, 1, 198, 18, 0, 2, 0, 6, 0x05, 0xdc};
    uint64_t sum = checksum_pseudo_ip4(UINT32_C(0xc6120001), UINT32_C(0xc6120002), 6, 1500);
    assert_int_equal(model(pseudo, sizeof(pseudo)), checksum_fold(sum));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_of_rfc_1071_example_gives_its_result),
        cmocka_unit_test(test_sum_of_ip4_header_with_its_checksum_is_zero),
        cmocka_unit_test(test_sum_of_every_length_equals_model),
        cmocka_unit_test(test_sum_in_even_parts_equals_sum_of_whole),
        cmocka_unit_test(test_pseudo_header_equals_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
