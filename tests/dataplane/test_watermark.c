/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum over senders, against Flink's rules for partitions and inputs. */
#include "tests/dataplane/fake_job.h"

#include "dataplane/watermark.h"

static void test_move_when_all_have_moved_then_gives_the_minimum(void **state)
{
    struct watermark_sender senders[3];
    struct watermark watermark;
    watermark_init(&watermark, senders, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(watermark_add(&watermark), i);
    }
    assert_false(watermark_move(&watermark, 0, 50));
    assert_false(watermark_move(&watermark, 1, 40));
    assert_int_equal(watermark.value_ms, WATERMARK_MIN);
    assert_true(watermark_move(&watermark, 2, 60));
    assert_int_equal(watermark.value_ms, 40);
    assert_false(watermark_move(&watermark, 2, 70));
    assert_true(watermark_move(&watermark, 1, 100));
    assert_int_equal(watermark.value_ms, 50);
}

static void test_move_back_changes_nothing(void **state)
{
    struct watermark_sender senders[1];
    struct watermark watermark;
    watermark_init(&watermark, senders, 1);
    (void)watermark_add(&watermark);
    assert_true(watermark_move(&watermark, 0, 10));
    assert_false(watermark_move(&watermark, 0, 5));
    assert_int_equal(watermark.value_ms, 10);
    assert_false(watermark_move(&watermark, 0, 10));
}

static void test_idle_sender_does_not_hold_back(void **state)
{
    struct watermark_sender senders[2];
    struct watermark watermark;
    watermark_init(&watermark, senders, 2);
    (void)watermark_add(&watermark);
    (void)watermark_add(&watermark);
    assert_false(watermark_move(&watermark, 0, 10));
    assert_true(watermark_idle(&watermark, 1, true));
    assert_int_equal(watermark.value_ms, 10);
    assert_false(watermark_idle(&watermark, 0, true));
    assert_true(watermark_is_idle(&watermark));
    assert_int_equal(watermark.value_ms, 10);
    assert_false(watermark_move(&watermark, 1, 4));
    assert_false(watermark_is_idle(&watermark));
    assert_int_equal(watermark.value_ms, 10);
    assert_true(watermark_move(&watermark, 1, 12));
    assert_int_equal(watermark.value_ms, 12);
}

static void test_new_sender_holds_the_minimum_where_it_is(void **state)
{
    struct watermark_sender senders[2];
    struct watermark watermark;
    watermark_init(&watermark, senders, 2);
    (void)watermark_add(&watermark);
    assert_true(watermark_move(&watermark, 0, 10));
    (void)watermark_add(&watermark);
    assert_false(watermark_move(&watermark, 0, 20));
    assert_int_equal(watermark.value_ms, 10);
    assert_true(watermark_move(&watermark, 1, WATERMARK_MAX));
    assert_int_equal(watermark.value_ms, 20);
}

static void test_move_against_a_plain_model(void **state)
{
    enum {
        SENDERS = 7
    };
    struct watermark_sender senders[SENDERS];
    struct watermark watermark;
    watermark_init(&watermark, senders, SENDERS);
    int64_t values[SENDERS];
    bool idle[SENDERS] = {false};
    int64_t expected = WATERMARK_MIN;
    uint64_t random = 3;
    for (uint32_t i = 0; i < SENDERS; i++) {
        values[i] = WATERMARK_MIN;
        (void)watermark_add(&watermark);
    }
    for (uint32_t step = 0; step < 20000; step++) {
        const uint32_t who = (uint32_t)fake_random(&random) % SENDERS;
        const int64_t before = expected;
        bool moved = false;
        if (fake_random(&random) % 4 == 0) {
            idle[who] = !idle[who];
            moved = watermark_idle(&watermark, who, idle[who]);
        } else {
            const int64_t value = (int64_t)(step + fake_random(&random) % 50);
            idle[who] = false;
            values[who] = value > values[who] ? value : values[who];
            moved = watermark_move(&watermark, who, value);
        }
        int64_t minimum = WATERMARK_MAX;
        for (uint32_t i = 0; i < SENDERS; i++) {
            minimum = !idle[i] && values[i] < minimum ? values[i] : minimum;
        }
        expected = minimum != WATERMARK_MAX && minimum > expected ? minimum : expected;
        assert_int_equal(watermark.value_ms, expected);
        assert_int_equal(moved, expected != before);
    }
}

static void
test_recount_when_a_late_sender_is_lower_then_down_to_it_but_not_below_what_was_told(void **state)
{
    struct watermark_sender senders[2];
    struct watermark watermark;
    watermark_init(&watermark, senders, 2);
    (void)watermark_add(&watermark);
    assert_true(watermark_move(&watermark, 0, 100));
    (void)watermark_add(&watermark);
    senders[1].value_ms = 40;
    watermark_recount(&watermark, WATERMARK_MIN);
    assert_int_equal(watermark.value_ms, 40);
    watermark_recount(&watermark, 70);
    assert_int_equal(watermark.value_ms, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move_when_all_have_moved_then_gives_the_minimum),
        cmocka_unit_test(test_move_back_changes_nothing),
        cmocka_unit_test(test_idle_sender_does_not_hold_back),
        cmocka_unit_test(test_new_sender_holds_the_minimum_where_it_is),
        cmocka_unit_test(test_move_against_a_plain_model),
        cmocka_unit_test(
            test_recount_when_a_late_sender_is_lower_then_down_to_it_but_not_below_what_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
