/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of one shard against a plain map: a list of (part, depth, pattern, page) rules,
 * split at random; every index must answer with the page of the one rule that fits it. */
#include "fixture.h"

#include "state/directory.h"

#define RULE_MAX 6000U

struct rule {
    uint32_t part;
    uint32_t depth;
    uint32_t pattern;
    uint32_t page;
};

struct model {
    struct fixture fixture;
    struct directory_root root;
    uint32_t shard;
    uint32_t count;
    struct rule rules[RULE_MAX];
};

static void model_open(struct model *model, uint32_t shard)
{
    fixture_open(&model->fixture, 4000, 8);
    model->root = (struct directory_root){0};
    model->shard = shard;
    model->count = 0;
    assert_true(directory_open(model->fixture.arena, &model->root, shard));
    for (uint32_t part = 0; part < segment_parts(shard); part++) {
        model->rules[model->count] = (struct rule){.part = part, .page = 100 + model->count};
        directory_set(model->fixture.arena, &model->root, shard, part, 0, 0, 100 + model->count);
        model->count++;
    }
}

/* Splits a rule as a table would: grow, then point the upper half elsewhere. */
static bool split(struct model *model, uint32_t which)
{
    struct rule *rule = &model->rules[which];
    const uint32_t pattern = rule->pattern | 1U << rule->depth;
    struct arena *arena = model->fixture.arena;
    if (!directory_grow(arena, &model->root, model->shard, rule->depth + 1, pattern)) {
        return false;
    }
    const uint32_t page = 100 + model->count;
    directory_set(arena, &model->root, model->shard, rule->part, rule->depth + 1, pattern, page);
    rule->depth++;
    model->rules[model->count++] =
        (struct rule){.part = rule->part, .depth = rule->depth, .pattern = pattern, .page = page};
    return true;
}

static void compare(struct model *model)
{
    for (uint32_t which = 0; which < model->count; which++) {
        const struct rule *rule = &model->rules[which];
        for (uint32_t try = 0; try < 20; try++) {
            const uint32_t high = try == 0 ? 0 : (uint32_t)fixture_random(&model->fixture);
            const struct segment_spot spot = {
                .shard = model->shard,
                .part = rule->part,
                .index = (rule->pattern | high << rule->depth) & ((1U << SEGMENT_INDEX_BITS) - 1),
            };
            assert_int_equal(directory_find(model->fixture.arena, &model->root, &spot), rule->page);
        }
    }
}

static void test_random_splits_answer_as_the_rules_say(void **state)
{
    (void)state;
    struct model model;
    for (uint32_t shard = 0; shard < 4; shard++) {
        model_open(&model, shard);
        while (model.count < RULE_MAX) {
            const uint32_t which = fixture_below(&model.fixture, model.count);
            const uint32_t depth_max = model.count < 3000 ? 11 : DIRECTORY_DEPTH_MAX;
            if (model.rules[which].depth < depth_max) {
                assert_true(split(&model, which));
            }
            if (model.count % 500 == 0) {
                compare(&model);
            }
        }
        assert_int_equal(model.root.level, 2);
        compare(&model);
        fixture_close(&model.fixture);
    }
}

static void test_one_deep_branch_takes_one_page_a_step(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 3);
    while (model.rules[0].depth < DIRECTORY_DEPTH_MAX) {
        const uint64_t used = model.fixture.arena->counters.pages_used;
        assert_true(split(&model, 0));
        assert_true(model.fixture.arena->counters.pages_used - used <= 2);
        compare(&model);
    }
    fixture_close(&model.fixture);
}

static void test_joining_again_gives_the_old_answers(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 1);
    while (model.count < 3000) {
        const uint32_t which = fixture_below(&model.fixture, model.count);
        if (model.rules[which].depth < DIRECTORY_DEPTH_MAX) {
            assert_true(split(&model, which));
        }
    }
    while (model.count > segment_parts(1)) { /* the newest rule is a leaf: undo splits backwards */
        const struct rule last = model.rules[--model.count];
        for (uint32_t which = 0; which < model.count; which++) {
            struct rule *rule = &model.rules[which];
            if (rule->part == last.part && rule->depth == last.depth &&
                rule->pattern == (last.pattern & ~(1U << (last.depth - 1)))) {
                rule->depth--;
                directory_set(model.fixture.arena, &model.root, 1, rule->part, rule->depth,
                              rule->pattern, rule->page);
            }
        }
        if (model.count % 200 == 0) {
            compare(&model);
        }
    }
    compare(&model);
    fixture_close(&model.fixture);
}

static void test_growth_refused_at_any_page_keeps_all_answers(void **state)
{
    (void)state;
    struct model model;
    model_open(&model, 2);
    uint32_t refused = 0;
    while (model.count < 3000) {
        const uint32_t which = fixture_below(&model.fixture, model.count);
        if (model.rules[which].depth == DIRECTORY_DEPTH_MAX) {
            continue;
        }
        for (uint32_t after = 1;; after++) {
            arena_fail_after(model.fixture.arena, after);
            const bool is_done = split(&model, which);
            arena_fail_after(model.fixture.arena, 0);
            if (is_done) {
                break;
            }
            refused++;
            compare(&model);
        }
    }
    assert_true(refused > 5);
    compare(&model);
    fixture_close(&model.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_splits_answer_as_the_rules_say),
        cmocka_unit_test(test_one_deep_branch_takes_one_page_a_step),
        cmocka_unit_test(test_joining_again_gives_the_old_answers),
        cmocka_unit_test(test_growth_refused_at_any_page_keeps_all_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
