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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_when_key_is_known_then_as_kafka),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
