/* SPDX-License-Identifier: Apache-2.0 */
/* One segment's bytes: SYN options, checksums by device and by software, SACK blocks that must
 * not push a payload over the segment size, sends cut by the port. */
#include "nic/tcp_segment.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/nic/harness.h"

static void commit(struct harness *h, size_t bytes)
{
    struct span_mut room = stream_writable(h->stream);
    for (size_t i = 0; i < bytes; i++) {
        room.data[i] = (uint8_t)(i % 251);
    }
    stream_commit(h->stream, bytes);
}

static void test_syn_offers_all_options_with_an_unscaled_window(void **state)
{
    struct harness h;
    struct harness_segment out;
    struct stream *second;
    harness_init(&h);
    h.config.receive_bytes_max = 1u << 20;
    harness_open(&h);
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 5, h.now_ns, &second));
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_int_equal(1460, out.options.mss_bytes);
    assert_true(out.options.has_sack_permitted && out.options.has_timestamp);
    assert_int_equal(5, out.options.scale); /* 1 MiB >> 5 fits 16 bits */
    assert_int_equal(UINT16_MAX, out.window);
    assert_int_equal(0, out.options.timestamp_echo);
    harness_fini(&h);
}

static void test_sack_blocks_leave_a_full_payload_alone_and_follow_in_an_ack(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    commit(&h, 1448);
    harness_data(&h, 50, 0, TCP_ACK, "early");
    assert_true(harness_take(&h, &out));
    assert_int_equal(1448, out.payload_bytes);
    assert_int_equal(0, out.options.sack_count);
    assert_true(harness_take(&h, &out));
    assert_int_equal(0, out.payload_bytes);
    assert_int_equal(1, out.options.sack_count);
    harness_fini(&h);
}

static void test_device_checksums_equal_those_of_software(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    struct port_sim_config device = {.mtu_bytes = 1500, .checksum_offload = true};
    port_sim_reset(h.port, &device);
    harness_open(&h); /* harness_take checks every sum */
    commit(&h, 777);
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_int_equal(777, out.payload_bytes);
    harness_fini(&h);
}

static void test_large_send_is_one_frame_that_the_port_cuts(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    struct port_sim_config device = {.mtu_bytes = 1500, .checksum_offload = true, .segments = true};
    port_sim_reset(h.port, &device);
    harness_open(&h);
    uint64_t before = stack_counters_get(h.stack)->tx_frames;
    commit(&h, 9000);
    harness_wait(&h, 1);
    assert_int_equal(before + 2, stack_counters_get(h.stack)->tx_frames); /* 6 full, and a rest */
    uint32_t at = 0;
    while (harness_take(&h, &out)) {
        assert_int_equal(h.iss + 1 + at, out.seq);
        assert_true(out.payload_bytes <= 1448);
        for (uint32_t i = 0; i < out.payload_bytes; i++) {
            assert_int_equal((uint8_t)((at + i) % 251), out.payload[i]);
        }
        at += out.payload_bytes;
    }
    assert_int_equal(9000, at);
    assert_int_equal(7, h.connection->board.tail - h.connection->board.head);
    harness_fini(&h);
}

static void test_reset_carries_no_timestamp(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    stream_abort(h.stream);
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    assert_false(out.options.has_timestamp);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syn_offers_all_options_with_an_unscaled_window),
        cmocka_unit_test(test_sack_blocks_leave_a_full_payload_alone_and_follow_in_an_ack),
        cmocka_unit_test(test_device_checksums_equal_those_of_software),
        cmocka_unit_test(test_large_send_is_one_frame_that_the_port_cuts),
        cmocka_unit_test(test_reset_carries_no_timestamp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
