/* SPDX-License-Identifier: Apache-2.0 */
/* Two stacks in one process, hand-off of flows and ARP between lanes, deadlines, counters. */
#include "nic/stack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "nic/ether.h"
#include "tests/nic/harness.h"

struct hand_off_log {
    uint32_t flow_count;
    uint32_t shared_count;
    uint16_t owner_queue;
    bool refuses;
};

static bool hand_off(void *context, enum stack_foreign kind, uint16_t owner_queue,
                     const struct port_frame *frame)
{
    struct hand_off_log *log = context;
    log->flow_count += kind == STACK_FOREIGN_FLOW ? 1 : 0;
    log->shared_count += kind == STACK_FOREIGN_SHARED ? 1 : 0;
    log->owner_queue = owner_queue;
    assert_non_null(frame->data);
    return !log->refuses;
}

static void pair_create(struct harness *h, struct hand_off_log *log, struct stack **second)
{
    struct port_sim_config two = {.mtu_bytes = 1500, .queue_count = 2};
    harness_init(h);
    port_sim_reset(h->port, &two);
    struct stack_options options = {
        .config = &h->config,
        .port = h->port,
        .now_ns = h->now_ns,
        .hand_off = hand_off,
        .hand_off_context = log,
    };
    assert_int_equal(0, stack_create(&options, &h->stack, NULL));
    options.queue = 1;
    options.hand_off = NULL;
    assert_int_equal(0, stack_create(&options, second, NULL));
}

static void test_each_stack_draws_ports_that_come_back_to_its_queue(void **state)
{
    struct harness h;
    struct hand_off_log log = {0};
    struct stack *stacks[2];
    pair_create(&h, &log, &stacks[1]);
    stacks[0] = h.stack;
    for (uint16_t queue = 0; queue < 2; queue++) {
        for (int i = 0; i < 4; i++) {
            struct stream *stream;
            assert_int_equal(
                0, stack_connect(stacks[queue], HARNESS_REMOTE_IP4, 9, h.now_ns, &stream));
            struct tcp_connection *connection = (struct tcp_connection *)(void *)stream;
            assert_int_equal(queue, flow_queue(h.stack->info, &connection->tuple));
        }
    }
    stack_destroy(stacks[1]);
    harness_fini(&h);
}

static void test_segment_of_another_lane_is_handed_off_and_taken_there(void **state)
{
    struct harness h;
    struct hand_off_log log = {0};
    struct stack *second;
    struct stream *stream;
    uint8_t tcp[20] = {0}, frame[100];
    pair_create(&h, &log, &second);
    assert_int_equal(0, stack_connect(second, HARNESS_REMOTE_IP4, 9, h.now_ns, &stream));
    (void)stack_poll(second, h.now_ns);
    struct tcp_connection *connection = (struct tcp_connection *)(void *)stream;
    store_be16(tcp, 9);
    store_be16(tcp + 2, connection->tuple.local_port);
    store_be32(tcp + 8, connection->iss + 1);
    tcp[12] = 0x50;
    tcp[13] = TCP_SYN | TCP_ACK;
    size_t bytes = harness_ip4(frame, IP4_PROTOCOL_TCP, tcp, sizeof(tcp));
    harness_frame(&h, frame, bytes);
    assert_int_equal(1, log.flow_count);
    assert_int_equal(1, log.owner_queue);
    assert_int_equal(1, stack_counters_get(h.stack)->rx_handed_off);
    assert_int_equal(0, stack_counters_get(h.stack)->tcp_resets_out);
    struct port_frame copy = {.data = frame, .bytes = (uint32_t)bytes};
    stack_input(second, &copy, h.now_ns);
    assert_int_equal(STREAM_OPEN, stream->state);
    assert_true(stack_is_balanced(second));
    log.refuses = true;
    harness_frame(&h, frame, bytes);
    assert_int_equal(1, stack_counters_get(h.stack)->rx_drop_tcp_unknown);
    stack_destroy(second);
    harness_fini(&h);
}

static void test_arp_is_shared_with_the_other_lanes_once(void **state)
{
    struct harness h;
    struct hand_off_log log = {0};
    struct stack *second;
    uint8_t frame[ETHER_FRAME_MIN] = {0};
    pair_create(&h, &log, &second);
    ether_header_write(frame, h.stack->info->mac, h.stack->info->mac, ETHER_TYPE_ARP);
    harness_frame(&h, frame, sizeof(frame));
    assert_int_equal(1, log.shared_count);
    struct port_frame copy = {.data = frame, .bytes = sizeof(frame)};
    stack_input(h.stack, &copy, h.now_ns);
    assert_int_equal(1, log.shared_count);
    stack_destroy(second);
    harness_fini(&h);
}

static void test_deadline_is_never_when_nothing_can_happen(void **state)
{
    struct harness h;
    harness_init(&h);
    h.config.keepalive_idle_ms = 0;
    harness_start(&h);
    assert_true(stack_deadline_ns(h.stack) <= h.now_ns); /* the announcement */
    harness_wait(&h, 1);
    assert_true(stack_deadline_ns(h.stack) == UINT64_MAX);
    assert_int_equal(0, stack_poll(h.stack, h.now_ns));
    harness_fini(&h);
}

static void test_create_with_a_bad_config_says_why(void **state)
{
    struct harness h;
    struct error error = {0};
    struct stack *stack = NULL;
    harness_init(&h);
    h.config.burst_count = 1000;
    struct stack_options options = {.config = &h.config, .port = h.port};
    assert_true(stack_create(&options, &stack, &error) < 0);
    assert_non_null(strstr(error.text, "burst_count"));
    assert_null(stack);
    h.config.burst_count = 32;
    options.queue = 7;
    assert_true(stack_create(&options, &stack, &error) < 0);
    assert_non_null(strstr(error.text, "queue 7"));
    port_sim_destroy(h.port);
}

static void test_every_counter_has_a_name_and_a_meaning(void **state)
{
    size_t count;
    const struct stack_counter_name *names = stack_counter_names(&count);
    assert_int_equal(sizeof(struct stack_counters) / sizeof(uint64_t), count);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(names[i].name) > 3 && strlen(names[i].doc) > 8);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_stack_draws_ports_that_come_back_to_its_queue),
        cmocka_unit_test(test_segment_of_another_lane_is_handed_off_and_taken_there),
        cmocka_unit_test(test_arp_is_shared_with_the_other_lanes_once),
        cmocka_unit_test(test_deadline_is_never_when_nothing_can_happen),
        cmocka_unit_test(test_create_with_a_bad_config_says_why),
        cmocka_unit_test(test_every_counter_has_a_name_and_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
