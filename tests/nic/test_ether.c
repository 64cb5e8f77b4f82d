/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames are looked at, and which only counted. */
#include "nic/ether.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/nic/harness.h"

static void test_header_is_target_source_type(void **state)
{
    static const uint8_t target[MAC_BYTES] = {1, 2, 3, 4, 5, 6};
    static const uint8_t source[MAC_BYTES] = {7, 8, 9, 10, 11, 12};
    static const uint8_t expected[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0x06};
    uint8_t frame[ETHER_HEADER_BYTES];
    ether_header_write(frame, target, source, ETHER_TYPE_ARP);
    assert_memory_equal(expected, frame, sizeof(expected));
}

static void test_frames_for_other_stations_and_short_ones_are_counted(void **state)
{
    struct harness h;
    uint8_t frame[ETHER_FRAME_MIN] = {2, 2, 2};
    harness_init(&h);
    harness_start(&h);
    harness_frame(&h, frame, sizeof(frame));
    harness_frame(&h, frame, 13);
    memcpy(frame, h.stack->info->mac, MAC_BYTES);
    store_be16(frame + 12, ETHER_TYPE_VLAN);
    harness_frame(&h, frame, sizeof(frame));
    store_be16(frame + 12, ETHER_TYPE_IP4);
    harness_frame(&h, frame, 14 + 19);
    assert_int_equal(2, stack_counters_get(h.stack)->rx_drop_other);
    assert_int_equal(2, stack_counters_get(h.stack)->rx_drop_short);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_is_target_source_type),
        cmocka_unit_test(test_frames_for_other_stations_and_short_ones_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
