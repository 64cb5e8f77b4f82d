/* SPDX-License-Identifier: Apache-2.0 */
/* The appliance file: defaults, values, and the place and words of each kind of error. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "control/config.h"

static int parse(const char *text, struct appliance_config *config, struct error *error)
{
    memset(error, 0, sizeof(*error));
    return config_parse("box.yaml", text, strlen(text), config, error);
}

static void test_parse_when_empty_then_defaults(void **state)
{
    struct appliance_config config;
    struct error error;
    assert_int_equal(parse("", &config, &error), 0);
    assert_int_equal(config.cores.operate.count, 1);
    assert_int_equal(config.cores.operate.ids[0], 0);
    assert_int_equal(config.cores.idle, CONFIG_IDLE_SPIN);
    assert_true(config.memory.hugepages);
    assert_int_equal(config.memory.state_mib, 256);
    assert_string_equal(config.nic.address, "198.18.0.2/15");
    assert_int_equal(config.kafka.addresses.count, 0);
    config_free(&config);
}

static void test_parse_when_values_are_given_then_they_replace_defaults(void **state)
{
    struct appliance_config config;
    struct error error;
    const char *text = "cores:\n  operate: [2, 3]\n  idle: yield\n"
                       "memory: {hugepages: false, state_mib: 64}\n"
                       "kafka:\n  addresses:\n    - kafka:9092=198.18.0.1:9092\n"
                       "    - other:9092=198.18.0.1:9093\n";
    assert_int_equal(parse(text, &config, &error), 0);
    assert_int_equal(config.cores.operate.count, 2);
    assert_int_equal(config.cores.operate.ids[1], 3);
    assert_int_equal(config.cores.receive.count, 1);
    assert_int_equal(config.cores.idle, CONFIG_IDLE_YIELD);
    assert_false(config.memory.hugepages);
    assert_int_equal(config.memory.state_mib, 64);
    assert_int_equal(config.kafka.addresses.count, 2);
    assert_string_equal(config.kafka.addresses.items[1], "other:9092=198.18.0.1:9093");
    config_free(&config);
}

static void test_parse_when_brackets_nest_too_deeply_then_refused_at_once(void **state)
{
    char text[100001];
    struct appliance_config config;
    struct error error;
    memset(text, '[', sizeof(text) - 1);
    text[100000] = '\0';
    text[10] = '\n';
    assert_int_equal(parse(text, &config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "nested deeper than 64"));
    assert_int_equal(error.line, 2);
    config_free(&config);
}

struct bad_file {
    const char *text;
    uint32_t line;
    uint32_t column;
    const char *words; /* that the message must hold */
};

static void test_parse_when_file_is_bad_then_error_names_the_place(void **state)
{
    static const struct bad_file files[] = {
        {"cores:\n  operat: [1]\n", 2, 3, "unknown key cores.operat; known: receive, operate"},
        {"core: {}\n", 1, 1,
         "unknown section core; known: cores, memory, nic, kafka, checkpoint, run"},
        {"checkpoint:\n  when_offset_is_gone: skip\n", 2, 24, "fail or earliest or latest"},
        {"memory:\n  state_mib: lots\n", 2, 14, "memory.state_mib: found lots"},
        {"memory:\n  state_mib: 0\n", 2, 14, "from 1 to 16777216"},
        {"memory:\n  state_mib: -1\n", 2, 14, "found -1"},
        {"memory:\n  state_mib: 99999999999999999999999\n", 2, 14, "a whole number"},
        {"memory:\n  hugepages: yes\n", 2, 14, "true or false"},
        {"cores:\n  idle: sleep\n", 2, 9, "spin or yield"},
        {"cores:\n  receive: 1\n", 2, 12, "a list"},
        {"cores:\n  receive: [1, two]\n", 2, 16, "found two"},
        {"nic:\n  address: [a]\n", 2, 12, "found a list"},
        {"nic:\n  address: {a: b}\n", 2, 12, "found a mapping"},
        {"kafka:\n  addresses: [[a]]\n", 2, 15, "a nested value"},
        {"nic: 5\n", 1, 6, "want a mapping of keys"},
        {"- a\n", 1, 1, "want a mapping of sections"},
        {"cores: {\n", 2, 1, "not YAML"},
        {"nic: {mtu: 1500, mtu: 1400}\n", 1, 18, "nic.mtu is given twice"},
        {"nic: {}\ncores: {}\nnic: {}\n", 3, 1, "section nic is given twice"},
        {"nic:\n  mtu: 9600\n", 2, 8, "from 576 to 9000"},
        {"memory:\n  parcels_mib: 5000\n", 2, 16, "from 1 to 4096"},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct appliance_config config;
        struct error error;
        assert_int_equal(parse(files[i].text, &config, &error), -EINVAL);
        assert_string_equal(error.place, "box.yaml");
        assert_non_null(strstr(error.text, files[i].words));
        assert_int_equal(error.line, files[i].line);
        assert_int_equal(error.column, files[i].column);
        config_free(&config);
    }
}

static void test_parse_when_list_is_too_long_then_refused(void **state)
{
    char text[1024] = "cores:\n  receive: [0";
    for (int i = 1; i <= CONFIG_CORES_MAX; i++) {
        char item[16];
        (void)snprintf(item, sizeof(item), ", %d", i);
        (void)strcat(text, item);
    }
    (void)strcat(text, "]\n");
    struct appliance_config config;
    struct error error;
    assert_int_equal(parse(text, &config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "at most 64"));
    config_free(&config);
}

static void test_load_when_file_is_missing_then_error_names_it(void **state)
{
    struct appliance_config config;
    struct error error = {0};
    assert_int_equal(config_load("/nonexistent/box.yaml", &config, &error), -ENOENT);
    assert_string_equal(error.place, "/nonexistent/box.yaml");
    config_free(&config);
}

static void test_check_when_core_is_missing_or_twice_then_refused(void **state)
{
    struct appliance_config config;
    struct error error;
    assert_int_equal(parse("cores: {receive: [0], operate: [0], transmit: [1]}", &config, &error),
                     0);
    assert_int_equal(config_check(&config, 2, &error), 0);
    assert_int_equal(config_check(&config, 1, &error), -EINVAL);
    assert_non_null(strstr(error.text, "cores.transmit: core 1 does not exist"));
    config_free(&config);
    assert_int_equal(parse("cores: {operate: [1, 0, 1]}", &config, &error), 0);
    assert_int_equal(config_check(&config, 2, &error), -EINVAL);
    assert_non_null(strstr(error.text, "cores.operate: core 1 is given twice"));
    config_free(&config);
    assert_int_equal(parse("cores: {control: 7}", &config, &error), 0);
    assert_int_equal(config_check(&config, 2, &error), -EINVAL);
    config_free(&config);
}

static void test_print_reference_then_every_key_has_a_row(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    config_print_reference(out);
    (void)fclose(out);
    assert_non_null(strstr(text, "| `memory.state_mib` | number | 1 | 16777216 | `256` |"));
    assert_non_null(strstr(text, "| `run.drain_timeout_ms` |"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_when_empty_then_defaults),
        cmocka_unit_test(test_parse_when_brackets_nest_too_deeply_then_refused_at_once),
        cmocka_unit_test(test_parse_when_values_are_given_then_they_replace_defaults),
        cmocka_unit_test(test_parse_when_file_is_bad_then_error_names_the_place),
        cmocka_unit_test(test_parse_when_list_is_too_long_then_refused),
        cmocka_unit_test(test_load_when_file_is_missing_then_error_names_it),
        cmocka_unit_test(test_check_when_core_is_missing_or_twice_then_refused),
        cmocka_unit_test(test_print_reference_then_every_key_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
