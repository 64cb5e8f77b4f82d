/* SPDX-License-Identifier: Apache-2.0 */
/* A span over the ring's end is one span, seen alike through both mappings. */
#include "nic/mirror.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_write_over_the_end_shows_at_the_front(void **state)
{
    struct mirror mirror;
    struct error error = {0};
    assert_int_equal(0, mirror_init(&mirror, 65536, false, &error));
    uint8_t *at = mirror_at(&mirror, 65536 * 3 + 65530);
    memcpy(at, "0123456789ab", 12);
    assert_memory_equal(mirror.data, "6789ab", 6);
    assert_memory_equal(mirror.data + 65530, "0123456789ab", 12);
    assert_ptr_equal(mirror_at(&mirror, 65536), mirror.data);
    mirror_fini(&mirror);
    assert_null(mirror.data);
}

static void test_whole_ring_from_any_start_is_writable(void **state)
{
    struct mirror mirror;
    assert_int_equal(0, mirror_init(&mirror, 4096, false, NULL));
    for (uint64_t start = 0; start < 4096; start += 509) {
        memset(mirror_at(&mirror, start), (int)start, 4096);
    }
    mirror_fini(&mirror);
}

static void test_ring_smaller_than_a_page_is_refused(void **state)
{
    struct mirror mirror;
    struct error error = {0};
    assert_int_equal(-EINVAL, mirror_init(&mirror, 1024, false, &error));
    assert_non_null(strstr(error.text, "1024"));
    assert_int_equal(-EINVAL, mirror_init(&mirror, 65536, true, &error));
    mirror_fini(&mirror);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_over_the_end_shows_at_the_front),
        cmocka_unit_test(test_whole_ring_from_any_start_is_writable),
        cmocka_unit_test(test_ring_smaller_than_a_page_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
