/* SPDX-License-Identifier: Apache-2.0 */
/* Rings between lanes: a frame comes out at its owner as it went in, ARP at all others, a full ring
 * counts; and two lanes in threads that hand frames to each other at once (thread sanitizer). */
#include "nic/hand_off.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "nic/ether.h"
#include "tests/nic/harness.h"

#define FRAME_BYTES_MAX 1518
#define THREAD_FRAMES   20000

struct lanes {
    struct nic_config config;
    struct port *port;
    struct hand_off *rings;
    struct stack *stacks[3];
};

static void lanes_init(struct lanes *lanes, uint32_t count, uint32_t slots)
{
    const struct port_sim_config sim = {.mtu_bytes = 1500, .queue_count = (uint16_t)count};
    nic_config_defaults(&lanes->config);
    lanes->config.address_ip4 = HARNESS_LOCAL_IP4;
    lanes->config.prefix_bits = 15;
    lanes->config.queue_count = count;
    lanes->config.connection_count_max = 4;
    lanes->config.receive_bytes_max = 65536;
    lanes->config.send_bytes_max = 65536;
    lanes->port = port_sim_create(&sim);
    assert_int_equal(hand_off_create(count, slots, FRAME_BYTES_MAX, &lanes->rings, NULL), 0);
    for (uint16_t i = 0; i < count; i++) {
        const struct stack_options options = {
            .config = &lanes->config,
            .port = lanes->port,
            .queue = i,
            .hand_off = hand_off_push,
            .hand_off_context = hand_off_lane(lanes->rings, i),
        };
        assert_int_equal(stack_create(&options, &lanes->stacks[i], NULL), 0);
    }
}

static void lanes_fini(struct lanes *lanes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(stack_is_balanced(lanes->stacks[i]));
        stack_destroy(lanes->stacks[i]);
    }
    hand_off_destroy(lanes->rings);
    port_sim_destroy(lanes->port);
}

static uint32_t poll(struct lanes *lanes, uint16_t queue)
{
    return hand_off_poll(hand_off_lane(lanes->rings, queue), lanes->stacks[queue], 1);
}

static const struct hand_off_counters *counters(struct lanes *lanes, uint16_t queue)
{
    return hand_off_counters_get(hand_off_lane(lanes->rings, queue));
}

/* An ARP reply of the other station to this host. */
static void write_arp(const struct lanes *lanes, uint8_t frame[ETHER_FRAME_MIN])
{
    static const uint8_t mac[MAC_BYTES] = {2, 0, 0, 0, 0, 9};
    memset(frame, 0, ETHER_FRAME_MIN);
    ether_header_write(frame, port_info(lanes->port)->mac, mac, ETHER_TYPE_ARP);
    store_be16(frame + 14, 1);
    store_be16(frame + 16, ETHER_TYPE_IP4);
    frame[18] = MAC_BYTES;
    frame[19] = 4;
    store_be16(frame + 20, 2);
    memcpy(frame + 22, mac, MAC_BYTES);
    store_be32(frame + 28, HARNESS_REMOTE_IP4);
    memcpy(frame + 32, port_info(lanes->port)->mac, MAC_BYTES);
    store_be32(frame + 38, HARNESS_LOCAL_IP4);
}

static void test_first_answer_on_another_queue_opens_the_connection_of_its_owner(void **state)
{
    struct lanes lanes;
    struct stream *stream;
    uint8_t tcp[20] = {0};
    uint8_t frame[100];
    lanes_init(&lanes, 2, 8);
    assert_int_equal(stack_connect(lanes.stacks[1], HARNESS_REMOTE_IP4, 9, 0, &stream), 0);
    (void)stack_poll(lanes.stacks[1], 0);
    const struct tcp_connection *connection = (const struct tcp_connection *)(void *)stream;
    store_be16(tcp, 9);
    store_be16(tcp + 2, connection->tuple.local_port);
    store_be32(tcp + 8, connection->iss + 1);
    tcp[12] = 0x50;
    tcp[13] = TCP_SYN | TCP_ACK;
    memcpy(frame, port_info(lanes.port)->mac, MAC_BYTES);
    const size_t bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, sizeof(tcp));
    port_sim_feed(lanes.port, (struct span){frame, bytes});
    (void)stack_poll(lanes.stacks[0], 0);
    assert_int_equal(stack_counters_get(lanes.stacks[0])->rx_handed_off, 1);
    assert_int_equal(counters(&lanes, 0)->given, 1);
    assert_int_equal(stream->state, STREAM_CONNECTING);
    assert_int_equal(poll(&lanes, 1), 1);
    assert_int_equal(stream->state, STREAM_OPEN);
    assert_int_equal(poll(&lanes, 1), 0);
    lanes_fini(&lanes, 2);
}

static void test_arp_reaches_every_other_lane(void **state)
{
    struct lanes lanes;
    uint8_t frame[ETHER_FRAME_MIN];
    lanes_init(&lanes, 3, 8);
    write_arp(&lanes, frame);
    const struct port_frame arp = {.data = frame, .bytes = sizeof(frame)};
    assert_true(hand_off_push(hand_off_lane(lanes.rings, 1), STACK_FOREIGN_SHARED, 1, &arp));
    assert_int_equal(poll(&lanes, 0), 1);
    assert_int_equal(poll(&lanes, 1), 0);
    assert_int_equal(poll(&lanes, 2), 1);
    assert_int_equal(stack_counters_get(lanes.stacks[0])->rx_frames, 1);
    assert_int_equal(stack_counters_get(lanes.stacks[2])->rx_frames, 1);
    lanes_fini(&lanes, 3);
}

static void test_full_ring_drops_and_counts(void **state)
{
    struct lanes lanes;
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    lanes_init(&lanes, 2, 8);
    struct hand_off_lane *lane = hand_off_lane(lanes.rings, 0);
    const struct port_frame empty = {.data = frame, .bytes = sizeof(frame)};
    for (int i = 0; i < 7; i++) {
        assert_true(hand_off_push(lane, STACK_FOREIGN_FLOW, 1, &empty));
    }
    assert_false(hand_off_push(lane, STACK_FOREIGN_FLOW, 1, &empty));
    assert_int_equal(counters(&lanes, 0)->given, 7);
    assert_int_equal(counters(&lanes, 0)->drop_full, 1);
    assert_int_equal(poll(&lanes, 1), 7);
    assert_true(hand_off_push(lane, STACK_FOREIGN_FLOW, 1, &empty));
    lanes_fini(&lanes, 2);
}

static void test_frame_without_a_place_is_refused(void **state)
{
    struct lanes lanes;
    uint8_t frame[4096] = {0};
    lanes_init(&lanes, 2, 8);
    struct hand_off_lane *lane = hand_off_lane(lanes.rings, 0);
    struct port_frame wrong = {.data = frame, .bytes = sizeof(frame)};
    assert_false(hand_off_push(lane, STACK_FOREIGN_FLOW, 1, &wrong));
    wrong.bytes = 64;
    assert_false(hand_off_push(lane, STACK_FOREIGN_FLOW, 2, &wrong));
    assert_int_equal(counters(&lanes, 0)->drop_length, 2);
    wrong.bytes = FRAME_BYTES_MAX;
    assert_true(hand_off_push(lane, STACK_FOREIGN_FLOW, 1, &wrong));
    assert_int_equal(poll(&lanes, 1), 1);
    lanes_fini(&lanes, 2);
}

struct side {
    struct lanes *lanes;
    uint16_t queue;
};

/* Gives frames away and takes what comes, until both sides have seen all of them. */
static void *trade(void *context)
{
    const struct side *side = context;
    uint8_t frame[ETHER_FRAME_MIN];
    struct hand_off_lane *lane = hand_off_lane(side->lanes->rings, side->queue);
    write_arp(side->lanes, frame);
    const struct port_frame arp = {.data = frame, .bytes = sizeof(frame)};
    uint32_t given = 0;
    uint32_t taken = 0;
    while (given < THREAD_FRAMES || taken < THREAD_FRAMES) {
        const enum stack_foreign kind = given % 2 == 0 ? STACK_FOREIGN_SHARED : STACK_FOREIGN_FLOW;
        given += given < THREAD_FRAMES && hand_off_push(lane, kind, 1 - side->queue, &arp);
        const uint32_t fed = hand_off_poll(lane, side->lanes->stacks[side->queue], 1);
        taken += fed;
        if (fed == 0) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void test_two_lanes_in_threads_lose_nothing_but_what_they_count(void **state)
{
    struct lanes lanes;
    pthread_t threads[2];
    lanes_init(&lanes, 2, 64);
    struct side sides[2] = {{&lanes, 0}, {&lanes, 1}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, trade, &sides[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint16_t i = 0; i < 2; i++) {
        assert_int_equal(counters(&lanes, i)->given, THREAD_FRAMES);
        assert_int_equal(stack_counters_get(lanes.stacks[i])->rx_frames, THREAD_FRAMES);
    }
    lanes_fini(&lanes, 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_answer_on_another_queue_opens_the_connection_of_its_owner),
        cmocka_unit_test(test_arp_reaches_every_other_lane),
        cmocka_unit_test(test_full_ring_drops_and_counts),
        cmocka_unit_test(test_frame_without_a_place_is_refused),
        cmocka_unit_test(test_two_lanes_in_threads_lose_nothing_but_what_they_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
