/* SPDX-License-Identifier: Apache-2.0 */
/* Random puts and removes against an array; the shifting delete is what could go wrong. */
#include "nic/tcp_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define TUPLE_COUNT 300

static struct flow_tuple tuple_of(uint32_t number)
{
    return (struct flow_tuple){.local_ip4 = 1,
                               .remote_ip4 = 2 + number % 3,
                               .local_port = (uint16_t)(32768 + number),
                               .remote_port = 9092};
}

static void test_random_changes_agree_with_an_array(void **state)
{
    struct tcp_table table;
    uint32_t values[TUPLE_COUNT];
    uint32_t count = 0;
    assert_int_equal(0, tcp_table_init(&table, 200));
    memset(values, 0xff, sizeof(values));
    srand(7);
    for (uint32_t step = 0; step < 50000; step++) {
        uint32_t number = (uint32_t)rand() % TUPLE_COUNT;
        struct flow_tuple tuple = tuple_of(number);
        if (values[number] != TCP_TABLE_NONE) {
            tcp_table_remove(&table, &tuple);
            values[number] = TCP_TABLE_NONE;
            count--;
        } else if (count < 200) {
            tcp_table_put(&table, &tuple, step);
            values[number] = step;
            count++;
        }
        uint32_t probe = (uint32_t)rand() % TUPLE_COUNT;
        struct flow_tuple other = tuple_of(probe);
        assert_int_equal(values[probe], tcp_table_find(&table, &other));
        assert_int_equal(count, table.count);
    }
    tcp_table_fini(&table);
}

static void test_put_of_a_tuple_that_is_there_changes_its_value(void **state)
{
    struct tcp_table table;
    struct flow_tuple tuple = tuple_of(1);
    assert_int_equal(0, tcp_table_init(&table, 4));
    tcp_table_put(&table, &tuple, 5);
    tcp_table_put(&table, &tuple, 6);
    assert_int_equal(6, tcp_table_find(&table, &tuple));
    assert_int_equal(1, table.count);
    tuple.remote_port++;
    assert_int_equal(TCP_TABLE_NONE, tcp_table_find(&table, &tuple));
    tcp_table_fini(&table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_changes_agree_with_an_array),
        cmocka_unit_test(test_put_of_a_tuple_that_is_there_changes_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
