/* SPDX-License-Identifier: Apache-2.0 */
/* The DPDK body on net_ring, without root and without hugepages: what is sent comes back; a port
 * that is not there and hugepages that are not there are told in words. */
#include "nic/port_dpdk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void config_fill(struct nic_config *config)
{
    nic_config_defaults(config);
    config->address_ip4 = 1;
    config->rx_descriptor_count = 64;
    config->tx_descriptor_count = 64;
    config->rx_frame_count = 511;
    config->tx_frame_count = 511;
}

static void test_frames_sent_into_a_ring_come_back_whole(void **state)
{
    struct nic_config config;
    struct error error = {0};
    struct port *port = NULL;
    struct port_frame frames[3], got[PORT_BURST_MAX];
    config_fill(&config);
    strcpy(config.vdev, "net_ring0");
    int status = port_create(&config, &port, &error);
    if (status != 0) {
        print_message("%s\n", error.text);
    }
    assert_int_equal(0, status);
    const struct port_info *info = port_info(port);
    assert_int_equal(1, info->queue_count);
    assert_int_equal(1500, info->mtu_bytes);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(port_tx_alloc(port, 0, 100 + 700 * i, &frames[i]));
        memset(frames[i].data, (int)(i + 1), frames[i].bytes);
    }
    assert_int_equal(3, port_tx(port, 0, frames, 3));
    assert_int_equal(3, port_rx(port, 0, got, PORT_BURST_MAX));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(100 + 700 * i, got[i].bytes);
        assert_int_equal(i + 1, got[i].data[got[i].bytes - 1]);
        assert_int_equal(0, got[i].flags & (PORT_RX_L4_GOOD | PORT_RX_IP_GOOD));
    }
    port_release(port, 0, got, 3);
    assert_int_equal(0, port_rx(port, 0, got, PORT_BURST_MAX));
    struct port_drops drops;
    port_drops_get(port, &drops);
    assert_int_equal(0, drops.chained_count);
    port_destroy(port);
}

static void test_empty_pool_is_a_verdict_and_not_a_crash(void **state)
{
    struct nic_config config;
    struct port *port = NULL;
    struct port_frame frames[1024];
    uint32_t count = 0;
    config_fill(&config);
    strcpy(config.vdev, "net_ring1");
    assert_int_equal(0, port_create(&config, &port, NULL));
    while (count < COUNT_OF(frames) && port_tx_alloc(port, 0, 60, &frames[count])) {
        count++;
    }
    assert_in_range(count, 400, 511);
    port_release(port, 0, frames, count);
    assert_true(port_tx_alloc(port, 0, 60, &frames[0]));
    port_release(port, 0, frames, 1);
    port_destroy(port);
}

static void test_missing_port_is_named(void **state)
{
    struct nic_config config;
    struct error error = {0};
    struct port *port = NULL;
    config_fill(&config);
    strcpy(config.device, "0000:99:00.0");
    assert_int_equal(-ENODEV, port_create(&config, &port, &error));
    assert_non_null(strstr(error.text, "0000:99:00.0"));
    assert_null(port);
}

static void test_more_queues_than_the_port_has_are_refused(void **state)
{
    struct nic_config config;
    struct error error = {0};
    struct port *port = NULL;
    config_fill(&config);
    strcpy(config.vdev, "net_ring2");
    config.queue_count = 64;
    assert_int_equal(-ENOTSUP, port_create(&config, &port, &error));
    assert_non_null(strstr(error.text, "64"));
}

static void test_unknown_driver_is_refused(void **state)
{
    struct nic_config config;
    struct error error = {0};
    struct port *port = NULL;
    config_fill(&config);
    strcpy(config.vdev, "net_nonsense0");
    assert_true(port_create(&config, &port, &error) < 0);
    assert_non_null(strstr(error.text, "net_nonsense0"));
}

/* Runs first: the environment layer starts once a process. */
static void test_missing_hugepages_are_told_before_anything_starts(void **state)
{
    struct error error = {0};
    struct port_eal_config config = {.huge_pages = true, .memory_mb = 1u << 28};
    assert_int_equal(-ENOMEM, port_eal_init(&config, &error));
    assert_non_null(strstr(error.text, "nr_hugepages"));
}

static int eal_setup(void **state)
{
    struct error error = {0};
    struct port_eal_config config = {.memory_mb = 64, .file_prefix = "test_port_dpdk"};
    int status = port_eal_init(&config, &error);
    if (status != 0) {
        print_message("%s\n", error.text);
    }
    return status;
}

int main(void)
{
    static const struct CMUnitTest first[] = {
        cmocka_unit_test(test_missing_hugepages_are_told_before_anything_starts),
    };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_sent_into_a_ring_come_back_whole),
        cmocka_unit_test(test_empty_pool_is_a_verdict_and_not_a_crash),
        cmocka_unit_test(test_missing_port_is_named),
        cmocka_unit_test(test_more_queues_than_the_port_has_are_refused),
        cmocka_unit_test(test_unknown_driver_is_refused),
    };
    int failed = cmocka_run_group_tests(first, NULL, NULL);
    failed += cmocka_run_group_tests(tests, eal_setup, NULL);
    port_eal_fini();
    return failed;
}
