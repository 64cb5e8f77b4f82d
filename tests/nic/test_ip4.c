/* SPDX-License-Identifier: Apache-2.0 */
/* Header checks, fragments, padding, routes. */
#include "nic/ip4.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "nic/checksum.h"
#include "tests/nic/harness.h"

static const struct stack_counters *counters(const struct harness *h)
{
    return stack_counters_get(h->stack);
}

static size_t echo_frame(uint8_t *frame)
{
    static const uint8_t echo[] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0};
    return harness_ip4(frame, IP4_PROTOCOL_ICMP, echo, sizeof(echo));
}

static void resum(uint8_t *frame)
{
    uint8_t *ip = frame + ETHER_HEADER_BYTES;
    store_be16(ip + 10, 0);
    store_be16(ip + 10, checksum_finish(checksum_add(0, ip, IP4_HEADER_BYTES)));
}

static void test_broken_headers_are_dropped_and_counted(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } damage[] = {
        {14, 0x65}, /* version 6 */
        {14, 0x44}, /* header of 16 bytes */
        {14, 0x4f}, /* header beyond the packet */
        {16, 0x40}, /* total length beyond the frame */
        {17, 19},   /* total length below the header */
    };
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_start(&h);
    for (size_t i = 0; i < COUNT_OF(damage); i++) {
        size_t bytes = echo_frame(frame);
        frame[damage[i].at] = damage[i].value;
        resum(frame);
        harness_frame(&h, frame, bytes);
        assert_int_equal(i + 1, counters(&h)->rx_drop_ip_header);
    }
    size_t bytes = echo_frame(frame);
    frame[22] ^= 1;
    harness_frame(&h, frame, bytes);
    assert_int_equal(COUNT_OF(damage) + 1, counters(&h)->rx_drop_ip_header);
    harness_fini(&h);
}

static void test_fragments_are_dropped_and_counted(void **state)
{
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_start(&h);
    size_t bytes = echo_frame(frame);
    store_be16(frame + 20, 0x2000); /* more fragments */
    resum(frame);
    harness_frame(&h, frame, bytes);
    store_be16(frame + 20, 0x0001); /* an offset */
    resum(frame);
    harness_frame(&h, frame, bytes);
    assert_int_equal(2, counters(&h)->rx_drop_fragment);
    store_be16(frame + 20, 0);
    resum(frame);
    harness_frame(&h, frame, bytes);
    assert_int_equal(1, counters(&h)->rx_icmp);
    harness_fini(&h);
}

static void test_packets_of_odd_sources_and_for_others_are_dropped(void **state)
{
    static const uint32_t odd[] = {HARNESS_LOCAL_IP4, 0xe0000001, 0xffffffff, 0x7f000001, 0};
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_start(&h);
    size_t bytes = echo_frame(frame);
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        store_be32(frame + 26, odd[i]);
        resum(frame);
        harness_frame(&h, frame, bytes);
    }
    bytes = echo_frame(frame);
    store_be32(frame + 30, HARNESS_LOCAL_IP4 + 1);
    resum(frame);
    harness_frame(&h, frame, bytes);
    bytes = echo_frame(frame);
    frame[23] = 17;
    resum(frame);
    harness_frame(&h, frame, bytes);
    assert_int_equal(COUNT_OF(odd) + 2, counters(&h)->rx_drop_other);
    harness_fini(&h);
}

static void test_padding_behind_the_packet_is_ignored(void **state)
{
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_start(&h);
    memset(frame, 0x77, sizeof(frame));
    (void)echo_frame(frame);
    harness_frame(&h, frame, 60);
    assert_int_equal(1, counters(&h)->icmp_echo_replies);
    harness_fini(&h);
}

static void test_options_in_the_header_are_skipped(void **state)
{
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_start(&h);
    size_t bytes = echo_frame(frame);
    uint8_t *ip = frame + ETHER_HEADER_BYTES;
    memmove(ip + 24, ip + 20, 8);
    memset(ip + 20, 1, 4);
    ip[0] = 0x46;
    store_be16(ip + 2, 32);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, checksum_finish(checksum_add(0, ip, 24)));
    harness_frame(&h, frame, bytes + 4);
    assert_int_equal(1, counters(&h)->icmp_echo_replies);
    harness_fini(&h);
}

static void test_next_hop_is_the_neighbour_or_the_gateway(void **state)
{
    struct harness h;
    harness_init(&h);
    h.config.gateway_ip4 = HARNESS_REMOTE_IP4 + 9;
    harness_start(&h);
    assert_int_equal(0xc6130707, ip4_next_hop(h.stack, 0xc6130707));
    assert_int_equal(HARNESS_REMOTE_IP4 + 9, ip4_next_hop(h.stack, 0x08080808));
    assert_int_equal(0, ip4_next_hop(h.stack, 0xc613ffff)); /* the subnet's broadcast */
    assert_int_equal(0, ip4_next_hop(h.stack, 0xe0000001));
    assert_int_equal(0, ip4_next_hop(h.stack, HARNESS_LOCAL_IP4));
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_headers_are_dropped_and_counted),
        cmocka_unit_test(test_fragments_are_dropped_and_counted),
        cmocka_unit_test(test_packets_of_odd_sources_and_for_others_are_dropped),
        cmocka_unit_test(test_padding_behind_the_packet_is_ignored),
        cmocka_unit_test(test_options_in_the_header_are_skipped),
        cmocka_unit_test(test_next_hop_is_the_neighbour_or_the_gateway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
