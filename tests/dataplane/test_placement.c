/* SPDX-License-Identifier: Apache-2.0 */
/* Which lanes run a node, and who sends to whom. */
#include "tests/dataplane/fake_job.h"

#define LANES(...) lanes_of((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)

static uint64_t lanes_of(const uint32_t *lanes, size_t count)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < count; i++) {
        mask |= UINT64_C(1) << lanes[i];
    }
    return mask;
}

/* 0 source, 1 calc, 2 over by hash, 3 sink forward, 4 sink single, 5 sink of the calc. */
static void make_plan(struct fake_plan *plan)
{
    fake_plan_init(plan);
    (void)fake_node(plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(plan, PLAN_CALC, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    (void)fake_node(plan, PLAN_OVER, 0, PLAN_HASH, FAKE_INPUTS(1));
    (void)fake_node(plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(2));
    (void)fake_node(plan, PLAN_SINK, 0, PLAN_SINGLE, FAKE_INPUTS(2));
    (void)fake_node(plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
}

static void test_roles_when_apart_then_nodes_follow_them(void **state)
{
    struct fake_plan plan;
    struct placement placement = {
        .receive = LANES(0, 1), .operate = LANES(2, 3, 4), .transmit = LANES(5, 6)};
    make_plan(&plan);
    placement_init(&placement, &plan.plan);
    assert_int_equal(placement.nodes[0], LANES(0, 1));
    assert_int_equal(placement.nodes[1], LANES(0, 1));
    assert_int_equal(placement.nodes[2], LANES(2, 3, 4));
    assert_int_equal(placement.nodes[3], LANES(5, 6));
    assert_int_equal(placement.nodes[4], LANES(5));
    assert_int_equal(placement.nodes[5], LANES(5, 6));
    assert_int_equal(placement_targets(&placement, &plan.nodes[1], 1), LANES(1));
    assert_int_equal(placement_targets(&placement, &plan.nodes[2], 1), LANES(2, 3, 4));
    assert_int_equal(placement_targets(&placement, &plan.nodes[3], 2), LANES(5));
    assert_int_equal(placement_targets(&placement, &plan.nodes[3], 3), LANES(6));
    assert_int_equal(placement_targets(&placement, &plan.nodes[3], 4), LANES(5));
}

static void test_roles_when_all_on_one_lane_then_every_edge_is_direct(void **state)
{
    struct fake_plan plan;
    struct placement placement = {.receive = 1, .operate = 1, .transmit = 1};
    make_plan(&plan);
    placement_init(&placement, &plan.plan);
    for (uint32_t i = 1; i < plan.plan.node_count; i++) {
        assert_int_equal(placement.nodes[i], 1);
        const uint64_t targets = placement_targets(&placement, &plan.nodes[i], 0);
        assert_int_equal(placement_kind(targets, 0), EXCHANGE_DIRECT);
    }
}

static void test_lane_that_transmits_keeps_its_own_output(void **state)
{
    struct fake_plan plan;
    struct placement placement = {
        .receive = LANES(0), .operate = LANES(0, 1, 2), .transmit = LANES(1, 2)};
    make_plan(&plan);
    placement_init(&placement, &plan.plan);
    assert_int_equal(placement_targets(&placement, &plan.nodes[3], 2), LANES(2));
    assert_int_equal(placement_targets(&placement, &plan.nodes[3], 1), LANES(1));
    assert_int_equal(placement_kind(LANES(1), 0), EXCHANGE_LANE);
    assert_int_equal(placement_kind(LANES(0, 1), 0), EXCHANGE_HASH);
}

static void test_next_walks_a_set(void **state)
{
    const uint64_t lanes = LANES(3, 17, 63);
    assert_int_equal(placement_next(lanes, 0), 3);
    assert_int_equal(placement_next(lanes, 4), 17);
    assert_int_equal(placement_next(lanes, 18), 63);
    assert_int_equal(placement_next(lanes, 64), PLACEMENT_LANES_MAX);
    assert_int_equal(placement_next(0, 0), PLACEMENT_LANES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_when_apart_then_nodes_follow_them),
        cmocka_unit_test(test_roles_when_all_on_one_lane_then_every_edge_is_direct),
        cmocka_unit_test(test_lane_that_transmits_keeps_its_own_output),
        cmocka_unit_test(test_next_walks_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
