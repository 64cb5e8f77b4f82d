/* SPDX-License-Identifier: Apache-2.0 */
/* Microsoft's RSS verification suite, and ports that land where they should. */
#include "nic/flow.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Source and destination as the peer sends them: remote is the source. */
static const struct {
    struct flow_tuple tuple;
    uint32_t hash;
} vectors[] = {
    {{.remote_ip4 = 0x420995bb, .local_ip4 = 0xa18e6450, .remote_port = 2794, .local_port = 1766},
     0x51ccc178},
    {{.remote_ip4 = 0xc75c6f02, .local_ip4 = 0x41458c53, .remote_port = 14230, .local_port = 4739},
     0xc626b0ea},
    {{.remote_ip4 = 0x1813c65f, .local_ip4 = 0x0c16cfb8, .remote_port = 12898, .local_port = 38024},
     0x5c2b394a},
};

static void test_queue_of_rss_vectors_follows_their_hash(void **state)
{
    struct port_info info = {.queue_count = 16};
    flow_defaults(&info);
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        assert_int_equal((vectors[i].hash & 127) % 16, flow_queue(&info, &vectors[i].tuple));
    }
}

static void test_queue_of_a_single_queue_port_is_zero(void **state)
{
    struct port_info info = {.queue_count = 1};
    flow_defaults(&info);
    assert_int_equal(0, flow_queue(&info, &vectors[0].tuple));
}

static void test_random_ports_spread_over_all_queues(void **state)
{
    struct port_info info = {.queue_count = 4};
    struct flow_tuple tuple = vectors[0].tuple;
    uint32_t hits[4] = {0};
    flow_defaults(&info);
    for (uint32_t port = 32768; port < 61000; port++) {
        tuple.local_port = (uint16_t)port;
        hits[flow_queue(&info, &tuple)]++;
    }
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(hits[i], 5000, 9200);
    }
}

static void test_a_table_entry_beyond_the_queues_is_not_followed(void **state)
{
    struct port_info info = {.queue_count = 2};
    flow_defaults(&info);
    for (size_t i = 0; i < info.reta_count; i++) {
        info.reta[i] = 40;
    }
    assert_int_equal(0, flow_queue(&info, &vectors[1].tuple));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_of_rss_vectors_follows_their_hash),
        cmocka_unit_test(test_queue_of_a_single_queue_port_is_zero),
        cmocka_unit_test(test_random_ports_spread_over_all_queues),
        cmocka_unit_test(test_a_table_entry_beyond_the_queues_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
