/* SPDX-License-Identifier: Apache-2.0 */
/* The neighbour cache: asking, retrying, giving up, updating, answering, and bounded waiting. */
#include "tests/nic/harness.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "nic/ether.h"

static const uint8_t remote_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x01};
static const uint8_t other_mac[MAC_BYTES] = {0x02, 0, 0, 0, 0, 0x09};
static const uint8_t broadcast[MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void arp_feed(struct harness *h, uint16_t operation, const uint8_t *sender_mac,
                     uint32_t sender_ip4, uint32_t target_ip4)
{
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    ether_header_write(frame, h->stack->info->mac, sender_mac, ETHER_TYPE_ARP);
    uint8_t *arp = frame + ETHER_HEADER_BYTES;
    store_be16(arp, 1);
    store_be16(arp + 2, ETHER_TYPE_IP4);
    arp[4] = MAC_BYTES;
    arp[5] = 4;
    store_be16(arp + 6, operation);
    memcpy(arp + 8, sender_mac, MAC_BYTES);
    store_be32(arp + 14, sender_ip4);
    store_be32(arp + 24, target_ip4);
    harness_frame(h, frame, sizeof(frame));
}

/* Takes the next ARP packet that left; others are skipped. Returns its operation, 0 for none. */
static uint16_t arp_take(struct harness *h, uint8_t *frame)
{
    for (uint32_t bytes = port_sim_take(h->port, frame); bytes > 0;
         bytes = port_sim_take(h->port, frame)) {
        if (load_be16(frame + 12) == ETHER_TYPE_ARP) {
            return load_be16(frame + 20);
        }
    }
    return 0;
}

static void test_start_announces_the_own_address(void **state)
{
    struct harness h;
    uint8_t frame[WIRE_FRAME_BYTES];
    harness_init(&h);
    harness_start(&h);
    (void)stack_poll(h.stack, h.now_ns);
    assert_int_equal(ARP_OP_REQUEST, arp_take(&h, frame));
    assert_memory_equal(broadcast, frame, MAC_BYTES);
    assert_int_equal(HARNESS_LOCAL_IP4, load_be32(frame + 28));
    assert_int_equal(HARNESS_LOCAL_IP4, load_be32(frame + 38));
    assert_int_equal(0, arp_take(&h, frame));
    harness_fini(&h);
}

static void test_unanswered_requests_are_repeated_and_fail_the_connect(void **state)
{
    struct harness h;
    struct stream *stream;
    uint8_t frame[WIRE_FRAME_BYTES];
    harness_init(&h);
    harness_start(&h);
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 1, h.now_ns, &stream));
    uint32_t requests = 0;
    for (int i = 0; i < 200 && stream->state == STREAM_CONNECTING; i++) {
        harness_wait(&h, 10 * HARNESS_MS);
        while (arp_take(&h, frame) == ARP_OP_REQUEST) {
            requests += load_be32(frame + 38) == HARNESS_REMOTE_IP4 ? 1 : 0;
        }
    }
    assert_int_equal(5, requests);
    assert_int_equal(STREAM_FAILURE_UNREACHABLE, stream->failure);
    assert_int_equal(1, stack_counters_get(h.stack)->arp_failures);
    assert_true(stack_counters_get(h.stack)->tx_drop_neighbour > 0);
    harness_fini(&h);
}

static void test_frames_wait_for_the_answer_and_the_oldest_goes_first(void **state)
{
    struct harness h;
    struct stream *streams[4];
    struct harness_segment out;
    harness_init(&h);
    harness_start(&h);
    h.config.connection_count_max = 4;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, (uint16_t)(10 + i), h.now_ns,
                                          &streams[i]));
    }
    harness_wait(&h, 1);
    assert_false(harness_take(&h, &out));
    stream_abort(streams[0]); /* sends nothing in SYN-SENT */
    stream_release(streams[0]);
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 20, h.now_ns, &streams[0]));
    harness_wait(&h, 1);
    assert_int_equal(1, stack_counters_get(h.stack)->tx_drop_neighbour);
    arp_feed(&h, ARP_OP_REPLY, remote_mac, HARNESS_REMOTE_IP4, HARNESS_LOCAL_IP4);
    uint32_t syns = 0;
    while (harness_take(&h, &out)) {
        syns += out.flags == TCP_SYN ? 1 : 0;
    }
    assert_int_equal(ARP_PENDING_MAX, syns);
    harness_fini(&h);
}

static void test_request_for_the_own_address_is_answered(void **state)
{
    struct harness h;
    uint8_t frame[WIRE_FRAME_BYTES];
    harness_init(&h);
    harness_start(&h);
    (void)stack_poll(h.stack, h.now_ns);
    (void)arp_take(&h, frame);
    arp_feed(&h, ARP_OP_REQUEST, other_mac, HARNESS_REMOTE_IP4 + 6, HARNESS_LOCAL_IP4);
    assert_int_equal(ARP_OP_REPLY, arp_take(&h, frame));
    assert_memory_equal(other_mac, frame, MAC_BYTES);
    assert_int_equal(HARNESS_LOCAL_IP4, load_be32(frame + 28));
    assert_int_equal(HARNESS_REMOTE_IP4 + 6, load_be32(frame + 38));
    arp_feed(&h, ARP_OP_REQUEST, other_mac, HARNESS_REMOTE_IP4 + 6, HARNESS_REMOTE_IP4);
    assert_int_equal(0, arp_take(&h, frame));
    assert_int_equal(1, stack_counters_get(h.stack)->rx_drop_arp);
    /* A stranger's question does not enter the cache. */
    for (uint32_t i = 0; i < h.stack->arp.entry_count; i++) {
        assert_int_equal(ARP_FREE, h.stack->arp.entries[i].state);
    }
    harness_fini(&h);
}

static void test_gratuitous_packet_moves_a_known_neighbour(void **state)
{
    struct harness h;
    uint8_t frame[WIRE_FRAME_BYTES];
    harness_init(&h);
    harness_open(&h);
    arp_feed(&h, ARP_OP_REQUEST, other_mac, HARNESS_REMOTE_IP4, HARNESS_REMOTE_IP4);
    assert_int_equal(1, stack_counters_get(h.stack)->arp_updates);
    struct span_mut room = stream_writable(h.stream);
    room.data[0] = 1;
    stream_commit(h.stream, 1);
    harness_wait(&h, 1);
    assert_true(port_sim_take(h.port, frame) > 0);
    assert_memory_equal(other_mac, frame, MAC_BYTES);
    harness_fini(&h);
}

static void test_old_entry_is_asked_by_unicast_and_progress_confirms_it(void **state)
{
    struct harness h;
    uint8_t frame[WIRE_FRAME_BYTES];
    harness_init(&h);
    h.config.arp_reachable_ms = 1000;
    harness_open(&h);
    harness_wait(&h, 1100 * HARNESS_MS);
    assert_int_equal(ARP_OP_REQUEST, arp_take(&h, frame));
    assert_memory_equal(remote_mac, frame, MAC_BYTES);
    struct span_mut room = stream_writable(h.stream);
    room.data[0] = 1;
    stream_commit(h.stream, 1);
    harness_wait(&h, 1);
    harness_drain(&h);
    harness_data(&h, 0, 1, TCP_ACK, "");
    harness_wait(&h, 500 * HARNESS_MS);
    assert_int_equal(0, arp_take(&h, frame));
    assert_int_equal(ARP_REACHABLE, h.stack->arp.entries[0].state);
    harness_fini(&h);
}

static void test_another_owner_of_the_own_address_is_counted_and_not_believed(void **state)
{
    struct harness h;
    harness_init(&h);
    harness_start(&h);
    arp_feed(&h, ARP_OP_REPLY, other_mac, HARNESS_LOCAL_IP4, HARNESS_LOCAL_IP4);
    assert_int_equal(1, stack_counters_get(h.stack)->arp_conflicts);
    harness_fini(&h);
}

static void test_malformed_packets_are_counted(void **state)
{
    struct harness h;
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    harness_init(&h);
    harness_start(&h);
    ether_header_write(frame, h.stack->info->mac, remote_mac, ETHER_TYPE_ARP);
    for (size_t bytes = ETHER_HEADER_BYTES; bytes <= ETHER_FRAME_MIN; bytes++) {
        harness_frame(&h, frame, bytes);
    }
    assert_int_equal(47, stack_counters_get(h.stack)->rx_drop_arp);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_announces_the_own_address),
        cmocka_unit_test(test_unanswered_requests_are_repeated_and_fail_the_connect),
        cmocka_unit_test(test_frames_wait_for_the_answer_and_the_oldest_goes_first),
        cmocka_unit_test(test_request_for_the_own_address_is_answered),
        cmocka_unit_test(test_gratuitous_packet_moves_a_known_neighbour),
        cmocka_unit_test(test_old_entry_is_asked_by_unicast_and_progress_confirms_it),
        cmocka_unit_test(test_another_owner_of_the_own_address_is_counted_and_not_believed),
        cmocka_unit_test(test_malformed_packets_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
