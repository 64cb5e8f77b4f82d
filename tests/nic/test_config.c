/* SPDX-License-Identifier: Apache-2.0 */
/* The table: defaults hold their own bounds, bad values are named, unknown keys too. */
#include "nic/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_defaults_with_an_address_pass_the_check(void **state)
{
    struct nic_config config;
    struct error error = {0};
    nic_config_defaults(&config);
    assert_int_equal(-EINVAL, nic_config_check(&config, &error));
    assert_string_equal("address_ip4", error.place);
    assert_int_equal(0, nic_config_set(&config, "address_ip4", "198.18.0.2", &error));
    assert_int_equal(0, nic_config_check(&config, &error));
    assert_int_equal(200, config.rto_ms_min);
    assert_int_equal(10, config.initial_window_segments);
}

static void test_every_key_has_a_meaning_and_sane_bounds(void **state)
{
    size_t count;
    const struct nic_config_key *keys = nic_config_keys(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(keys[i].doc) > 5);
        assert_true(keys[i].min <= keys[i].max);
        assert_true(keys[i].offset < sizeof(struct nic_config));
    }
}

static void test_set_of_bad_values_names_key_and_value(void **state)
{
    static const char *const bad[][2] = {
        {"queue_count", "0"},
        {"queue_count", "65"},
        {"queue_count", "two"},
        {"queue_count", ""},
        {"queue_count", "-1"},
        {"queue_count", "99999999999999999999"},
        {"receive_bytes_max", "100000"},
        {"address_ip4", "198.18.0"},
        {"huge_pages", "maybe"},
        {"rto_ms_min", "49"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct nic_config config;
        struct error error = {0};
        nic_config_defaults(&config);
        assert_int_equal(-EINVAL, nic_config_set(&config, bad[i][0], bad[i][1], &error));
        assert_non_null(strstr(error.text, bad[i][0]));
        assert_string_equal(bad[i][0], error.place);
    }
}

static void test_set_of_an_unknown_key_is_refused(void **state)
{
    struct nic_config config;
    struct error error = {0};
    nic_config_defaults(&config);
    assert_int_equal(-ENOENT, nic_config_set(&config, "mtu", "1500", &error));
    assert_non_null(strstr(error.text, "mtu"));
}

static void test_set_of_good_values_is_kept(void **state)
{
    struct nic_config config;
    nic_config_defaults(&config);
    assert_int_equal(0, nic_config_set(&config, "vdev", "net_tap0,iface=x", NULL));
    assert_string_equal("net_tap0,iface=x", config.vdev);
    assert_int_equal(0, nic_config_set(&config, "huge_pages", "true", NULL));
    assert_int_equal(1, config.huge_pages);
    assert_int_equal(0, nic_config_set(&config, "gateway_ip4", "198.18.0.1", NULL));
    assert_int_equal(UINT32_C(0xc6120001), config.gateway_ip4);
    assert_int_equal(0, nic_config_set(&config, "gateway_ip4", "", NULL));
    assert_int_equal(0, config.gateway_ip4);
}

static void test_check_of_crossed_limits_fails(void **state)
{
    struct nic_config config;
    struct error error = {0};
    nic_config_defaults(&config);
    config.address_ip4 = 1;
    config.local_port_min = 40000;
    config.local_port_max = 39999;
    assert_int_equal(-EINVAL, nic_config_check(&config, &error));
    assert_string_equal("local_port_min", error.place);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_with_an_address_pass_the_check),
        cmocka_unit_test(test_every_key_has_a_meaning_and_sane_bounds),
        cmocka_unit_test(test_set_of_bad_values_names_key_and_value),
        cmocka_unit_test(test_set_of_an_unknown_key_is_refused),
        cmocka_unit_test(test_set_of_good_values_is_kept),
        cmocka_unit_test(test_check_of_crossed_limits_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
