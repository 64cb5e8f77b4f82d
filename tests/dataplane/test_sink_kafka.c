/* SPDX-License-Identifier: Apache-2.0 */
/* The partition that a key goes to, against the values of Kafka's own tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dataplane/sink_kafka.h"

struct hashed {
    const char *key;
    int32_t murmur2; /* as org.apache.kafka.common.utils.UtilsTest has it */
};

static void test_hash_when_key_is_known_then_as_kafka(void **state)
{
    static const struct hashed keys[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829},
        {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
        {"abc", 479470107},
    };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const struct span key = {.data = (const uint8_t *)keys[i].key,
                                 .bytes = strlen(keys[i].key)};
        assert_int_equal(sink_kafka_hash(key), (uint32_t)keys[i].murmur2 & 0x7fffffff);
    }
}

static uint32_t choose(struct sink_kafka_turn *turn, int32_t wanted, const char *key)
{
    const struct record record = {
        .key = {.data = (const uint8_t *)key, .bytes = key == NULL ? 0 : strlen(key)},
        .key_is_null = key == NULL,
    };
    return sink_kafka_partition(turn, wanted, &record, 3);
}

static void test_partition_when_named_then_modulo_the_count(void **state)
{
    struct sink_kafka_turn turn = {0};
    for (int32_t lane = 0; lane < 7; lane++) {
        assert_int_equal(choose(&turn, lane, "abc"), (uint32_t)lane % 3);
    }
    assert_int_equal(turn.next, 0);
}

static void test_partition_when_in_turn_then_one_after_another_whatever_the_key(void **state)
{
    struct sink_kafka_turn turn = {0};
    static const char *const keys[] = {"abc", NULL, "abc", "abc", NULL, NULL, "foobar"};
    for (uint32_t i = 0; i < COUNT_OF(keys); i++) {
        assert_int_equal(choose(&turn, RECORD_PARTITION_NEXT, keys[i]), i % 3);
    }
}

/* The keys {"g":0} to {"g":3} on three partitions: where Flink 2.3's default partitioner puts them.
 */
static void test_partition_when_keyed_then_as_flink(void **state)
{
    struct sink_kafka_turn turn = {0};
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"g\":0}"), 0);
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"g\":1}"), 2);
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"g\":2}"), 2);
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"g\":3}"), 2);
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"id\":0}"), 1);
    assert_int_equal(choose(&turn, RECORD_PARTITION_DEFAULT, "{\"id\":1}"), 0);
}

static void test_partition_when_no_key_then_sticky(void **state)
{
    struct sink_kafka_turn turn = {0};
    uint32_t changes = 0;
    uint32_t counts[3] = {0};
    uint32_t last = choose(&turn, RECORD_PARTITION_DEFAULT, NULL);
    for (uint32_t i = 1; i < 6 * 64; i++) {
        const uint32_t now = choose(&turn, RECORD_PARTITION_DEFAULT, NULL);
        changes += now != last;
        counts[now]++;
        last = now;
    }
    assert_int_equal(changes, 5);
    assert_true(counts[0] > 100 && counts[1] > 100 && counts[2] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_when_key_is_known_then_as_kafka),
        cmocka_unit_test(test_partition_when_named_then_modulo_the_count),
        cmocka_unit_test(test_partition_when_in_turn_then_one_after_another_whatever_the_key),
        cmocka_unit_test(test_partition_when_keyed_then_as_flink),
        cmocka_unit_test(test_partition_when_no_key_then_sticky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
