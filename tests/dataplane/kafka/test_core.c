/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, back-offs and the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dataplane/kafka/core.h"

static struct kafka_core *make_core(void)
{
    struct kafka_core *core = calloc(1, sizeof(*core));
    kafka_config_init(&core->config);
    core->random = 1;
    return core;
}

static struct kafka_address address_of(const char *host, uint16_t port)
{
    struct kafka_address address = {.port = port};
    memcpy(address.host, host, strlen(host));
    return address;
}

static void test_resolve_when_mapped_then_row_else_dotted_number(void **state)
{
    struct kafka_core *core = make_core();
    core->config.address_map_count = 2;
    core->config.address_map[0] = (struct kafka_address_map){address_of("kafka", 9092), 7, 19092};
    core->config.address_map[1] = (struct kafka_address_map){address_of("any", 0), 8, 1};
    static const struct {
        const char *host;
        uint16_t port;
        bool is_found;
        uint32_t ip4;
        uint16_t dialled;
    } rows[] = {
        {"kafka", 9092, true, 7, 19092},
        {"kafka", 9093, false, 0, 0},
        {"any", 1234, true, 8, 1234},
        {"198.18.0.1", 5, true, 0xC6120001, 5},
        {"255.255.255.255", 5, true, ~0U, 5},
        {"256.1.1.1", 5, false, 0, 0},
        {"1.2.3", 5, false, 0, 0},
        {"1.2.3.4.5", 5, false, 0, 0},
        {"1.2.3.0004", 5, false, 0, 0},
        {"", 5, false, 0, 0},
        {"::1", 5, false, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kafka_address address = address_of(rows[i].host, rows[i].port);
        uint32_t ip4 = 0;
        uint16_t port = 0;
        assert_int_equal(kafka_core_resolve(core, &address, &ip4, &port), rows[i].is_found);
        if (rows[i].is_found) {
            assert_int_equal(ip4, rows[i].ip4);
            assert_int_equal(port, rows[i].dialled);
        }
    }
    free(core);
}

static void test_retry_when_failing_on_then_doubles_to_a_second(void **state)
{
    struct kafka_core *core = make_core();
    for (uint32_t count = 1; count < 40; count++) {
        uint64_t ms = UINT64_C(50) << (count - 1 < 5 ? count - 1 : 5);
        ms = ms < 1000 ? ms : 1000;
        uint64_t at = kafka_core_retry_at(core, count, 7);
        assert_true(at >= 7 + ms * KAFKA_NANOSECONDS_PER_MS);
        assert_true(at <= 7 + ms * KAFKA_NANOSECONDS_PER_MS * 6 / 5 + 1);
    }
    free(core);
}

static void test_arena_when_counted_then_the_same_as_laid(void **state)
{
    struct kafka_core *core = make_core();
    core->config.sources_max = 10;
    core->config.sinks_max = 10;
    core->config.topics_max = 2;
    core->config.topic_partitions_max = 4;
    core->config.brokers_max = 4;
    core->config.response_bytes_max = 8192;
    struct kafka_arena counting = {0};
    kafka_core_layout(NULL, &core->config, &counting);
    void *memory = aligned_alloc(64, counting.used);
    struct kafka_arena arena = {.base = memory};
    kafka_core_layout(core, &core->config, &arena);
    assert_int_equal(arena.used, counting.used);
    assert_non_null(core->metadata.topics[1].leaders);
    assert_int_equal(kafka_core_index(core, &core->connections[5]), 5);
    assert_int_equal(kafka_core_broker_of(5), 1);
    assert_int_equal(kafka_core_role_of(5), KAFKA_ROLE_PRODUCE);
    free(memory);
    free(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolve_when_mapped_then_row_else_dotted_number),
        cmocka_unit_test(test_retry_when_failing_on_then_doubles_to_a_second),
        cmocka_unit_test(test_arena_when_counted_then_the_same_as_laid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
