/* SPDX-License-Identifier: Apache-2.0 */
/* Echo, and errors that prove nothing. Those that do are in test_tcp.c. */
#include "nic/icmp.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "nic/checksum.h"
#include "tests/nic/harness.h"

static size_t icmp_frame(uint8_t *frame, uint8_t *icmp, size_t bytes)
{
    store_be16(icmp + 2, 0);
    store_be16(icmp + 2, checksum_finish(checksum_add(0, icmp, bytes)));
    return harness_ip4(frame, IP4_PROTOCOL_ICMP, icmp, bytes);
}

static void test_echo_is_answered_with_its_own_bytes(void **state)
{
    struct harness h;
    uint8_t icmp[64] = {ICMP_ECHO_REQUEST}, frame[200], out[WIRE_FRAME_BYTES];
    harness_init(&h);
    harness_start(&h);
    memset(icmp + 4, 0x5a, 60);
    harness_frame(&h, frame, icmp_frame(frame, icmp, sizeof(icmp)));
    uint32_t bytes = port_sim_take(h.port, out);
    while (bytes > 0 && load_be16(out + 12) != ETHER_TYPE_IP4) {
        bytes = port_sim_take(h.port, out);
    }
    assert_int_equal(34 + sizeof(icmp), bytes);
    assert_int_equal(ICMP_ECHO_REPLY, out[34]);
    assert_int_equal(0, checksum_finish(checksum_add(0, out + 34, sizeof(icmp))));
    assert_memory_equal(icmp + 4, out + 38, 60);
    assert_memory_equal(frame + 6, out, MAC_BYTES);
    harness_fini(&h);
}

static void test_echo_flood_is_answered_in_part(void **state)
{
    struct harness h;
    uint8_t icmp[8] = {ICMP_ECHO_REQUEST}, frame[100];
    harness_init(&h);
    harness_start(&h);
    size_t bytes = icmp_frame(frame, icmp, sizeof(icmp));
    for (int i = 0; i < 30; i++) {
        port_sim_feed(h.port, (struct span){frame, bytes});
    }
    (void)stack_poll(h.stack, h.now_ns);
    assert_int_equal(STACK_REPLY_COUNT_MAX, stack_counters_get(h.stack)->icmp_echo_replies);
    assert_int_equal(30 - STACK_REPLY_COUNT_MAX, stack_counters_get(h.stack)->rx_drop_icmp);
    harness_fini(&h);
}

static void test_errors_without_a_whole_quotation_are_dropped(void **state)
{
    struct harness h;
    uint8_t icmp[64], frame[200];
    harness_init(&h);
    harness_open(&h);
    for (size_t bytes = 0; bytes < sizeof(icmp); bytes++) {
        memset(icmp, 0x45, sizeof(icmp));
        icmp[0] = ICMP_UNREACHABLE;
        icmp[1] = ICMP_CODE_TOO_BIG;
        if (bytes >= 4) {
            harness_frame(&h, frame, icmp_frame(frame, icmp, bytes));
        } else {
            harness_frame(&h, frame, harness_ip4(frame, IP4_PROTOCOL_ICMP, icmp, bytes));
        }
    }
    assert_int_equal(sizeof(icmp), stack_counters_get(h.stack)->rx_drop_icmp);
    assert_int_equal(STREAM_OPEN, h.stream->state);
    harness_fini(&h);
}

static void test_bad_checksum_is_dropped(void **state)
{
    struct harness h;
    uint8_t icmp[8] = {ICMP_ECHO_REQUEST}, frame[100];
    harness_init(&h);
    harness_start(&h);
    size_t bytes = icmp_frame(frame, icmp, sizeof(icmp));
    frame[40] ^= 4;
    harness_frame(&h, frame, bytes);
    assert_int_equal(1, stack_counters_get(h.stack)->rx_drop_icmp);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_is_answered_with_its_own_bytes),
        cmocka_unit_test(test_echo_flood_is_answered_in_part),
        cmocka_unit_test(test_errors_without_a_whole_quotation_are_dropped),
        cmocka_unit_test(test_bad_checksum_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
