/* SPDX-License-Identifier: Apache-2.0 */
/* Ports, sequence numbers, slots, TIME-WAIT, path MTU and ICMP errors. */
#include "tests/nic/harness.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_connect_without_a_route_or_a_slot_is_refused(void **state)
{
    struct harness h;
    struct stream *stream = NULL;
    harness_init(&h);
    h.config.connection_count_max = 1;
    harness_open(&h);
    assert_int_equal(-ENETUNREACH, stack_connect(h.stack, 0x08080808, 1, h.now_ns, &stream));
    assert_int_equal(-ENETUNREACH, stack_connect(h.stack, HARNESS_LOCAL_IP4, 1, h.now_ns, &stream));
    assert_int_equal(-EMFILE, stack_connect(h.stack, HARNESS_REMOTE_IP4, 1, h.now_ns, &stream));
    assert_null(stream);
    harness_fini(&h);
}

static void test_connect_through_all_ports_of_a_peer_is_refused_but_not_of_another(void **state)
{
    struct harness h;
    struct stream *streams[4] = {NULL};
    harness_init(&h);
    h.config.local_port_min = 40000;
    h.config.local_port_max = 40001;
    harness_start(&h);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 5, h.now_ns, &streams[i]));
    }
    assert_int_equal(-EADDRNOTAVAIL,
                     stack_connect(h.stack, HARNESS_REMOTE_IP4, 5, h.now_ns, &streams[2]));
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 6, h.now_ns, &streams[3]));
    harness_fini(&h);
}

static void test_port_stays_taken_through_time_wait(void **state)
{
    struct harness h;
    struct stream *stream = NULL;
    harness_init(&h);
    h.config.local_port_min = h.config.local_port_max = 40000;
    harness_open(&h);
    stream_close(h.stream);
    harness_wait(&h, 1);
    harness_data(&h, 0, 1, TCP_ACK | TCP_FIN, "");
    stream_release(h.stream);
    assert_int_equal(-EADDRNOTAVAIL, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT,
                                                   h.now_ns, &stream));
    h.now_ns += 61 * NANOSECONDS_PER_S;
    assert_int_equal(
        0, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT, h.now_ns, &stream));
    /* RFC 6191 at the peer needs a later sequence number than the old one. */
    uint32_t iss = ((struct tcp_connection *)(void *)stream)->iss;
    assert_true((int32_t)(iss - h.iss) > 0);
    harness_fini(&h);
}

static void test_time_wait_table_drops_the_oldest_when_full(void **state)
{
    struct harness h;
    harness_init(&h);
    h.config.time_wait_count_max = 16;
    h.config.neighbour_count_max = 4;
    harness_open(&h);
    for (int i = 0; i < 17; i++) {
        if (i > 0) {
            struct harness_segment out;
            assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT,
                                              h.now_ns, &h.stream));
            harness_wait(&h, 1);
            assert_true(harness_take(&h, &out));
            h.iss = out.seq;
            struct harness_segment answer = {.seq = HARNESS_ISN,
                                             .ack = h.iss + 1,
                                             .flags = TCP_SYN | TCP_ACK,
                                             .window = 1000,
                                             .options = {.has_timestamp = true}};
            harness_segment(&h, &answer);
        }
        stream_close(h.stream);
        harness_wait(&h, 1);
        harness_data(&h, 0, 1, TCP_ACK | TCP_FIN, "");
        assert_int_equal(STREAM_CLOSED, h.stream->state);
        stream_release(h.stream);
        harness_drain(&h);
    }
    assert_int_equal(16, h.stack->tcp.time_wait_count);
    assert_int_equal(1, stack_counters_get(h.stack)->tcp_time_wait_recycled);
    harness_fini(&h);
}

static void test_local_ports_and_sequence_numbers_are_not_sequential(void **state)
{
    struct harness h;
    struct stream *streams[4];
    harness_init(&h);
    harness_start(&h);
    int neighbours = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 5, h.now_ns, &streams[i]));
    }
    for (int i = 1; i < 4; i++) {
        struct tcp_connection *a = (struct tcp_connection *)(void *)streams[i - 1];
        struct tcp_connection *b = (struct tcp_connection *)(void *)streams[i];
        neighbours += b->tuple.local_port - a->tuple.local_port == 1 ? 1 : 0;
        assert_true(b->iss - a->iss > 100000 || a->iss - b->iss > 100000);
        assert_int_not_equal(a->timestamp_offset, b->timestamp_offset);
    }
    assert_int_equal(0, neighbours);
    harness_fini(&h);
}

static void test_simultaneous_open_comes_up(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h); /* resolves the neighbour */
    struct stream *second = NULL;
    assert_int_equal(
        0, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT, h.now_ns, &second));
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    uint32_t iss = out.seq;
    struct harness_segment syn = {.seq = 777, .flags = TCP_SYN, .window = 1000};
    harness_segment(&h, &syn);
    assert_true(harness_take(&h, &out));
    assert_int_equal(TCP_SYN | TCP_ACK, out.flags);
    assert_int_equal(iss, out.seq);
    assert_int_equal(778, out.ack);
    struct harness_segment ack = {
        .seq = 778, .ack = iss + 1, .flags = TCP_ACK, .window = 1000, .payload_bytes = 3};
    memcpy(ack.payload, "abc", 3);
    harness_segment(&h, &ack);
    assert_int_equal(STREAM_OPEN, second->state);
    assert_int_equal(3, stream_readable(second).bytes);
    harness_fini(&h);
}

static void test_reset_or_wrong_ack_while_connecting(void **state)
{
    struct harness h;
    struct harness_segment out;
    harness_init(&h);
    harness_open(&h);
    struct stream *second = NULL;
    assert_int_equal(
        0, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT, h.now_ns, &second));
    harness_wait(&h, 1);
    assert_true(harness_take(&h, &out));
    uint32_t iss = out.seq;
    struct harness_segment wrong = {
        .seq = 1, .ack = iss + 2, .flags = TCP_SYN | TCP_ACK, .window = 1000};
    harness_segment(&h, &wrong);
    assert_int_equal(STREAM_CONNECTING, second->state);
    assert_true(harness_take(&h, &out)); /* RFC 9293 §3.5.2: an old connection is reset */
    assert_int_equal(TCP_RST, out.flags);
    assert_int_equal(iss + 2, out.seq);
    wrong.flags = TCP_RST | TCP_ACK;
    harness_segment(&h, &wrong);
    assert_int_equal(STREAM_CONNECTING, second->state);
    wrong.ack = iss + 1;
    harness_segment(&h, &wrong);
    assert_int_equal(STREAM_FAILURE_REFUSED, second->failure);
    harness_fini(&h);
}

static void test_answer_before_the_syn_has_left_is_refused(void **state)
{
    struct harness h;
    struct stream *second = NULL;
    harness_init(&h);
    harness_open(&h);
    assert_int_equal(
        0, stack_connect(h.stack, HARNESS_REMOTE_IP4, HARNESS_REMOTE_PORT, h.now_ns, &second));
    const struct tcp_connection *connection = (const struct tcp_connection *)(void *)second;
    h.local_port = connection->tuple.local_port;
    struct harness_segment answer = {
        .seq = 1, .ack = connection->iss + 1, .flags = TCP_SYN | TCP_ACK, .window = 1000};
    harness_segment(&h, &answer);
    assert_int_equal(STREAM_CONNECTING, second->state);
    harness_fini(&h);
}

static size_t unreachable_frame(struct harness *h, uint8_t *frame, uint8_t code, uint32_t seq,
                                uint16_t mtu)
{
    uint8_t icmp[36] = {ICMP_UNREACHABLE, code};
    store_be16(icmp + 6, mtu);
    icmp[8] = 0x45;
    icmp[17] = IP4_PROTOCOL_TCP;
    store_be32(icmp + 20, HARNESS_LOCAL_IP4);
    store_be32(icmp + 24, HARNESS_REMOTE_IP4);
    store_be16(icmp + 28, h->connection->tuple.local_port);
    store_be16(icmp + 30, h->connection->tuple.remote_port);
    store_be32(icmp + 32, seq);
    uint32_t sum = 0;
    for (int i = 0; i < 36; i += 2) {
        sum += load_be16(icmp + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    store_be16(icmp + 2, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    return harness_ip4(frame, IP4_PROTOCOL_ICMP, icmp, sizeof(icmp));
}

static void test_too_big_in_flight_lowers_the_segment_size_and_sends_again(void **state)
{
    struct harness h;
    struct harness_segment out;
    uint8_t frame[100];
    harness_init(&h);
    harness_open(&h);
    struct span_mut room = stream_writable(h.stream);
    memset(room.data, 'm', 3000);
    stream_commit(h.stream, 3000);
    harness_wait(&h, 1);
    harness_drain(&h);
    harness_frame(&h, frame, unreachable_frame(&h, frame, ICMP_CODE_TOO_BIG, h.iss + 90000, 600));
    assert_int_equal(1448, h.connection->mss_bytes); /* not in flight: a forgery */
    harness_frame(&h, frame, unreachable_frame(&h, frame, ICMP_CODE_TOO_BIG, h.iss + 1, 600));
    assert_int_equal(600 - 52, h.connection->mss_bytes);
    assert_true(harness_take(&h, &out));
    assert_int_equal(548, out.payload_bytes);
    assert_int_equal(h.iss + 1, out.seq);
    harness_frame(&h, frame, unreachable_frame(&h, frame, ICMP_CODE_TOO_BIG, h.iss + 1, 68));
    assert_int_equal(IP4_PATH_MTU_FLOOR - 52, h.connection->mss_bytes);
    harness_fini(&h);
}

static void test_hard_error_ends_a_connect_but_not_an_open_connection(void **state)
{
    struct harness h;
    uint8_t frame[100];
    harness_init(&h);
    harness_open(&h);
    struct span_mut room = stream_writable(h.stream);
    room.data[0] = 'x';
    stream_commit(h.stream, 1);
    harness_wait(&h, 1);
    harness_frame(&h, frame, unreachable_frame(&h, frame, ICMP_CODE_PORT, h.iss + 1, 0));
    assert_int_equal(STREAM_OPEN, h.stream->state);
    assert_int_equal(1, stack_counters_get(h.stack)->icmp_errors_taken);
    struct stream *second = NULL;
    assert_int_equal(0, stack_connect(h.stack, HARNESS_REMOTE_IP4, 77, h.now_ns, &second));
    harness_wait(&h, 1);
    h.connection = (struct tcp_connection *)(void *)second;
    uint32_t iss = h.connection->iss;
    harness_frame(&h, frame, unreachable_frame(&h, frame, ICMP_CODE_PORT, iss, 0));
    assert_int_equal(STREAM_FAILURE_UNREACHABLE, second->failure);
    harness_fini(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connect_without_a_route_or_a_slot_is_refused),
        cmocka_unit_test(test_connect_through_all_ports_of_a_peer_is_refused_but_not_of_another),
        cmocka_unit_test(test_port_stays_taken_through_time_wait),
        cmocka_unit_test(test_time_wait_table_drops_the_oldest_when_full),
        cmocka_unit_test(test_local_ports_and_sequence_numbers_are_not_sequential),
        cmocka_unit_test(test_simultaneous_open_comes_up),
        cmocka_unit_test(test_reset_or_wrong_ack_while_connecting),
        cmocka_unit_test(test_answer_before_the_syn_has_left_is_refused),
        cmocka_unit_test(test_too_big_in_flight_lowers_the_segment_size_and_sends_again),
        cmocka_unit_test(test_hard_error_ends_a_connect_but_not_an_open_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
