/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in the appliance file and the script, and the Kafka settings made from them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/network.h"

static int parse(const char *text, struct kafka_address *out)
{
    return network_parse_address(text, strlen(text), out);
}

static void test_parse_address_when_legal_then_host_and_port(void **state)
{
    struct kafka_address address;
    assert_int_equal(parse("kafka:9092", &address), 0);
    assert_string_equal(address.host, "kafka");
    assert_int_equal(address.port, 9092);
    assert_int_equal(parse("198.18.0.1:1", &address), 0);
    assert_string_equal(address.host, "198.18.0.1");
    assert_int_equal(address.port, 1);
    assert_int_equal(parse("a:65535", &address), 0);
    assert_int_equal(address.port, 65535);
    assert_int_equal(parse("fd00::1:9092", &address), 0); /* the last colon splits */
    assert_string_equal(address.host, "fd00::1");
}

static void test_parse_address_when_bytes_end_before_the_text_then_only_those_count(void **state)
{
    struct kafka_address address;
    assert_int_equal(network_parse_address("a:12,b:34", 4, &address), 0);
    assert_string_equal(address.host, "a");
    assert_int_equal(address.port, 12);
}

static void test_parse_address_when_malformed_then_refused(void **state)
{
    static const char *const texts[] = {"",       ":",       ":9092",        "kafka",
                                        "kafka:", "kafka:0", "k:-1",         "k:9092x",
                                        "k: 1",   "k:65536", "k:99999999999"};
    struct kafka_address address;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(parse(texts[i], &address), -EINVAL);
    }
    char longest[KAFKA_HOST_BYTES + 8];
    memset(longest, 'h', sizeof(longest));
    memcpy(longest + KAFKA_HOST_BYTES, ":1", 3);
    assert_int_equal(parse(longest, &address), -EINVAL);
    memcpy(longest + KAFKA_HOST_BYTES - 1, ":1", 3);
    assert_int_equal(parse(longest, &address), 0);
}

static int settings(const char *yaml, const char *servers, struct kafka_config *out,
                    struct error *error)
{
    struct appliance_config config;
    memset(error, 0, sizeof(*error));
    assert_int_equal(config_parse("box.yaml", yaml, strlen(yaml), &config, error), 0);
    const int status = network_kafka_config(&config, servers, out, error);
    config_free(&config);
    return status;
}

static void test_kafka_config_when_script_names_servers_then_all_are_bootstrap(void **state)
{
    struct kafka_config config;
    struct error error;
    assert_int_equal(settings("", "198.18.0.1:9092,198.18.0.2:9093", &config, &error), 0);
    assert_int_equal(config.bootstrap_count, 2);
    assert_string_equal(config.bootstrap[0].host, "198.18.0.1");
    assert_int_equal(config.bootstrap[1].port, 9093);
    assert_int_equal(config.address_map_count, 0);
}

static void test_kafka_config_when_file_has_bootstrap_then_it_goes_before_the_script(void **state)
{
    struct kafka_config config;
    struct error error;
    const char *yaml = "kafka:\n  bootstrap: [\"198.18.0.9:1\"]\n  fetch_max_kib: 64\n"
                       "  fetch_wait_ms: 5\n  request_timeout_ms: 1000\n  produce_lz4: true\n";
    assert_int_equal(settings(yaml, "198.18.0.1:9092", &config, &error), 0);
    assert_int_equal(config.bootstrap_count, 1);
    assert_string_equal(config.bootstrap[0].host, "198.18.0.9");
    assert_int_equal(config.fetch_bytes_max, 64 << 10);
    assert_int_equal(config.fetch_wait_ms, 5);
    assert_int_equal(config.request_timeout_ms, 1000);
    assert_int_equal(config.produce_codec, KAFKA_CODEC_LZ4);
}

static void test_kafka_config_when_host_is_mapped_then_no_resolver_is_asked(void **state)
{
    struct kafka_config config;
    struct error error;
    const char *yaml = "kafka:\n  addresses: [\"broker.invalid:9092=198.18.0.7:19092\"]\n";
    assert_int_equal(settings(yaml, "broker.invalid:9092", &config, &error), 0);
    assert_int_equal(config.address_map_count, 1);
    assert_string_equal(config.address_map[0].advertised.host, "broker.invalid");
    assert_int_equal(config.address_map[0].ip4, 0xc6120007);
    assert_int_equal(config.address_map[0].port, 19092);
}

static void test_kafka_config_when_wrong_then_error_names_the_key(void **state)
{
    static const struct {
        const char *yaml;
        const char *servers;
        const char *place;
        const char *words;
    } rows[] = {
        {"", NULL, "kafka.bootstrap", "no broker is given"},
        {"", "", "kafka.bootstrap", "no broker is given"},
        {"", "198.18.0.1", "properties.bootstrap.servers", "found '198.18.0.1', want host:port"},
        {"", "198.18.0.1:1,,x:2", "properties.bootstrap.servers", "want host:port"},
        {"kafka:\n  bootstrap: [nowhere]\n", NULL, "kafka.bootstrap", "found 'nowhere'"},
        {"kafka:\n  addresses: [\"a:1\"]\n", NULL, "kafka.addresses", "want host:port=a.b.c.d"},
        {"kafka:\n  addresses: [\"a:1=b:2\"]\n", NULL, "kafka.addresses", "found a:1=b:2"},
        {"kafka:\n  addresses: [\"a=1.2.3.4:2\"]\n", NULL, "kafka.addresses", "found a=1.2.3.4:2"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kafka_config config;
        struct error error;
        assert_int_equal(settings(rows[i].yaml, rows[i].servers, &config, &error), -EINVAL);
        assert_string_equal(error.place, rows[i].place);
        assert_non_null(strstr(error.text, rows[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_address_when_legal_then_host_and_port),
        cmocka_unit_test(test_parse_address_when_bytes_end_before_the_text_then_only_those_count),
        cmocka_unit_test(test_parse_address_when_malformed_then_refused),
        cmocka_unit_test(test_kafka_config_when_script_names_servers_then_all_are_bootstrap),
        cmocka_unit_test(test_kafka_config_when_file_has_bootstrap_then_it_goes_before_the_script),
        cmocka_unit_test(test_kafka_config_when_host_is_mapped_then_no_resolver_is_asked),
        cmocka_unit_test(test_kafka_config_when_wrong_then_error_names_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
