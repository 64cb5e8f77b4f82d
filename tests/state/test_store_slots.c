/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of slots against plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "state/store_slots.h"

#define SLOTS 64U
#define LISTS 4U

static void expect_list(const struct store_slots *slots, const struct slot_list *list,
                        const uint32_t *expected, uint32_t count)
{
    uint32_t at = list->head;
    for (uint32_t index = 0; index < count; index++) {
        assert_int_equal(at, expected[index]);
        at = slots->next[at];
    }
    assert_int_equal(at, 0);
    assert_int_equal(list->count, count);
    assert_int_equal(list->tail, count == 0 ? 0 : expected[count - 1]);
}

static void test_push_when_popped_then_first_in_first_out(void **state)
{
    (void)state;
    struct store_slots slots;
    struct slot_list list = {.head = 0};
    assert_int_equal(store_slots_init(&slots, SLOTS), 0);
    assert_int_equal(store_slots_pop(&slots, &list), 0);
    store_slots_push(&slots, &list, 5);
    store_slots_push(&slots, &list, 1);
    store_slots_push(&slots, &list, 63);
    assert_false(store_slots_is_loose(&slots, 63));
    assert_true(store_slots_is_loose(&slots, 2));
    assert_int_equal(store_slots_pop(&slots, &list), 5);
    assert_true(store_slots_is_loose(&slots, 5));
    assert_int_equal(store_slots_pop(&slots, &list), 1);
    assert_int_equal(store_slots_pop(&slots, &list), 63);
    expect_list(&slots, &list, NULL, 0);
    store_slots_fini(&slots);
}

static void test_splice_when_either_is_empty_then_order_stays(void **state)
{
    (void)state;
    struct store_slots slots;
    struct slot_list one = {.head = 0}, other = {.head = 0};
    assert_int_equal(store_slots_init(&slots, SLOTS), 0);
    store_slots_splice(&slots, &one, &other);
    expect_list(&slots, &one, NULL, 0);
    store_slots_push(&slots, &other, 3);
    store_slots_push(&slots, &other, 4);
    store_slots_splice(&slots, &one, &other);
    expect_list(&slots, &one, (const uint32_t[]){3, 4}, 2);
    expect_list(&slots, &other, NULL, 0);
    store_slots_splice(&slots, &one, &other);
    store_slots_push(&slots, &other, 9);
    store_slots_splice(&slots, &one, &other);
    expect_list(&slots, &one, (const uint32_t[]){3, 4, 9}, 3);
    store_slots_fini(&slots);
}

static void test_remove_when_head_middle_tail_or_absent_then_list_stays_whole(void **state)
{
    (void)state;
    struct store_slots slots;
    struct slot_list list = {.head = 0};
    assert_int_equal(store_slots_init(&slots, SLOTS), 0);
    for (uint32_t slot = 1; slot <= 5; slot++) {
        store_slots_push(&slots, &list, slot);
    }
    assert_false(store_slots_remove(&slots, &list, 6));
    assert_true(store_slots_remove(&slots, &list, 1));
    assert_true(store_slots_remove(&slots, &list, 3));
    assert_true(store_slots_remove(&slots, &list, 5));
    expect_list(&slots, &list, (const uint32_t[]){2, 4}, 2);
    store_slots_push(&slots, &list, 5);
    expect_list(&slots, &list, (const uint32_t[]){2, 4, 5}, 3);
    assert_true(store_slots_remove(&slots, &list, 2));
    assert_true(store_slots_remove(&slots, &list, 4));
    assert_true(store_slots_remove(&slots, &list, 5));
    expect_list(&slots, &list, NULL, 0);
    store_slots_fini(&slots);
}

struct model {
    uint32_t slots[SLOTS];
    uint32_t count;
};

/* One random operation on both. */
static void step(struct store_slots *slots, struct slot_list *lists, struct model *models,
                 uint64_t random)
{
    const uint32_t one = random % LISTS, other = (one + 1 + (random >> 8) % (LISTS - 1)) % LISTS;
    const uint32_t slot = 1 + (random >> 16) % (SLOTS - 1);
    struct model *model = &models[one];
    if (store_slots_is_loose(slots, slot)) {
        store_slots_push(slots, &lists[one], slot);
        model->slots[model->count++] = slot;
    } else if ((random >> 24) % 8 == 0) {
        store_slots_splice(slots, &lists[one], &lists[other]);
        memcpy(model->slots + model->count, models[other].slots,
               models[other].count * sizeof(uint32_t));
        model->count += models[other].count;
        models[other].count = 0;
    } else if ((random >> 24) % 8 < 4) {
        const uint32_t got = store_slots_pop(slots, &lists[one]);
        assert_int_equal(got, model->count == 0 ? 0 : model->slots[0]);
        model->count -= model->count != 0;
        memmove(model->slots, model->slots + 1, model->count * sizeof(uint32_t));
    } else {
        uint32_t at = 0;
        while (at < model->count && model->slots[at] != slot) {
            at++;
        }
        assert_true(store_slots_remove(slots, &lists[one], slot) == (at < model->count));
        if (at < model->count) {
            model->count--;
            memmove(model->slots + at, model->slots + at + 1,
                    (model->count - at) * sizeof(uint32_t));
        }
    }
}

static void test_lists_when_random_then_as_the_model(void **state)
{
    (void)state;
    struct store_slots slots;
    struct slot_list lists[LISTS] = {{.head = 0}};
    static struct model models[LISTS];
    uint64_t random = 42;
    assert_int_equal(store_slots_init(&slots, SLOTS), 0);
    for (uint32_t round = 0; round < 20000; round++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        step(&slots, lists, models, random >> 20);
        for (uint32_t list = 0; list < LISTS; list++) {
            expect_list(&slots, &lists[list], models[list].slots, models[list].count);
        }
    }
    store_slots_fini(&slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_when_popped_then_first_in_first_out),
        cmocka_unit_test(test_splice_when_either_is_empty_then_order_stays),
        cmocka_unit_test(test_remove_when_head_middle_tail_or_absent_then_list_stays_whole),
        cmocka_unit_test(test_lists_when_random_then_as_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
