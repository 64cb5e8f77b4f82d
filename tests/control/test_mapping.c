/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for lanes, from ordinary pages: zeroed, aligned, disjoint, counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/mapping.h"

static bool is_zero(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != 0) {
            return false;
        }
    }
    return true;
}

static void test_take_when_small_then_aligned_zeroed_and_disjoint(void **state)
{
    struct mapping *mapping = mapping_create(false);
    assert_non_null(mapping);
    assert_int_equal(mapping_bytes(mapping), 0);
    uint8_t *before = NULL;
    for (uint32_t i = 1; i <= 200; i++) {
        uint8_t *piece = mapping_take(mapping, i);
        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % CACHE_LINE_BYTES, 0);
        assert_true(is_zero(piece, i));
        assert_true(before == NULL || piece >= before + i - 1);
        memset(piece, 0xff, i);
        before = piece;
    }
    mapping_destroy(mapping);
}

static void test_take_when_a_page_or_more_then_page_aligned(void **state)
{
    struct mapping *mapping = mapping_create(false);
    assert_non_null(mapping);
    assert_non_null(mapping_take(mapping, 64));
    uint8_t *page = mapping_take(mapping, 4096);
    assert_non_null(page);
    assert_int_equal((uintptr_t)page % 4096, 0);
    assert_true(is_zero(page, 4096));
    mapping_destroy(mapping);
}

static void test_take_when_chunk_is_full_then_another_is_mapped(void **state)
{
    const size_t chunk = (size_t)4 << 20;
    struct mapping *mapping = mapping_create(false);
    assert_non_null(mapping);
    assert_non_null(mapping_take(mapping, 1));
    assert_int_equal(mapping_bytes(mapping), chunk);
    uint8_t *large = mapping_take(mapping, chunk + 1);
    assert_non_null(large);
    assert_int_equal(mapping_bytes(mapping), chunk + chunk + 4096);
    large[0] = 1;
    large[chunk] = 1;
    mapping_destroy(mapping);
}

static void test_take_when_more_than_there_is_then_null_and_still_usable(void **state)
{
    struct mapping *mapping = mapping_create(false);
    assert_non_null(mapping);
    assert_null(mapping_take(mapping, (size_t)1 << 50));
    assert_int_equal(mapping_bytes(mapping), 0);
    assert_non_null(mapping_take(mapping, 100));
    mapping_destroy(mapping);
    mapping_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_when_small_then_aligned_zeroed_and_disjoint),
        cmocka_unit_test(test_take_when_a_page_or_more_then_page_aligned),
        cmocka_unit_test(test_take_when_chunk_is_full_then_another_is_mapped),
        cmocka_unit_test(test_take_when_more_than_there_is_then_null_and_still_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
