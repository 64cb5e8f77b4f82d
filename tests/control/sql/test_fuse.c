/* SPDX-License-Identifier: Apache-2.0 */
/* Which OVER nodes the planner fuses, and where rows stay on their lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "control/sql/sql.h"

#define TABLES                                                                                     \
    "CREATE TABLE t (k STRING, c STRING, v INT, d DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS "   \
    "ts)"                                                                                          \
    " WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092',"      \
    " 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');\n"
#define SINK(columns) "CREATE TABLE s (" columns ") WITH ('connector' = 'blackhole');\n"
#define ARRIVAL       "SET 'penstock.over.emit' = 'on-arrival';\n"
#define LEVEL(name, from, calls, key, frame)                                                       \
    "CREATE VIEW " name " AS SELECT *, " calls " FROM " from " WINDOW w AS (PARTITION BY " key     \
    " ORDER BY ts " frame ");\n"
#define MINUTE "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
#define HOUR   "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
#define THREE  "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"

static struct plan *plan_of(const char *text)
{
    struct plan *plan = NULL;
    struct error error = {0};
    const struct sql_input input = {.text = text, .bytes = strlen(text), .file_name = "test.sql"};
    if (sql_plan(&input, &plan, NULL, &error) != 0) {
        fail_msg("%u:%u %s", error.line, error.column, error.text);
    }
    for (uint32_t i = 0; i < plan->node_count; i++) {
        assert_int_equal(i, plan->nodes[i]->id);
        for (uint32_t k = 0; k < plan->nodes[i]->input_count; k++) {
            assert_true(plan->nodes[i]->inputs[k] < i);
        }
    }
    return plan;
}

/* The n-th OVER node, or NULL. */
static const struct plan_node *over_of(const struct plan *plan, uint32_t n)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_OVER && n-- == 0) {
            return plan->nodes[i];
        }
    }
    return NULL;
}

static void test_stack_becomes_one_node_when_keys_are_equal(void **context)
{
    struct plan *plan = plan_of(
        TABLES LEVEL("a", "t", "SUM(v) OVER w AS s1", "k", MINUTE)
            LEVEL("b", "a", "COUNT(*) OVER w AS n, MAX(v) OVER w AS m", "k", THREE)
                LEVEL("e", "b", "LAG(v) OVER w AS l", "k", "")
                    SINK("k STRING, s1 INT, n BIGINT, m INT, l INT") "INSERT INTO s SELECT k, s1, "
                                                                     "n, m, l FROM e;");
    const struct plan_node *node = over_of(plan, 0);
    assert_null(over_of(plan, 1));
    assert_int_equal(PLAN_HASH, node->distribution);
    assert_int_equal(3, node->over.frame_count);
    const struct plan_over_frame *frames = node->over.frames;
    assert_true(!frames[0].is_rows && !frames[0].unbounded && frames[0].preceding == 60000);
    assert_true(frames[1].is_rows && !frames[1].unbounded && frames[1].preceding == 3);
    assert_true(!frames[2].is_rows && frames[2].unbounded);
    assert_int_equal(AGGREGATE_SUM, frames[0].calls[0].function);
    assert_int_equal(AGGREGATE_COUNT, frames[1].calls[0].function);
    assert_int_equal(AGGREGATE_MAX, frames[1].calls[1].function);
    assert_int_equal(AGGREGATE_LAG, frames[2].calls[0].function);
    const uint32_t below = plan->nodes[node->inputs[0]]->layout.column_count;
    assert_int_equal(below + 4, node->layout.column_count);
    assert_int_equal(TYPE_BIGINT, node->layout.types[below + 1].kind);
    assert_string_equal("Over[k, 1 min, 3 rows, RANGE unbounded]", node->name);
    plan_destroy(plan);
}

static void test_stack_stays_apart_when_asked_to(void **context)
{
    struct plan *plan = plan_of("SET 'penstock.over.fuse' = 'false';\n" TABLES LEVEL(
        "a", "t", "SUM(v) OVER w AS s1", "k", MINUTE) LEVEL("b", "a", "SUM(v) OVER w AS s2", "k",
                                                            HOUR)
                                    SINK("s1 INT, s2 INT") "INSERT INTO s SELECT s1, s2 FROM b;");
    assert_int_equal(0, over_of(plan, 0)->over.frame_count);
    assert_int_equal(0, over_of(plan, 1)->over.frame_count);
    plan_destroy(plan);
}

static void test_level_stays_apart_when_it_reads_the_one_below(void **context)
{
    struct plan *plan =
        plan_of(TABLES LEVEL("a", "t", "SUM(v) OVER w AS s1", "k", MINUTE)
                    LEVEL("b", "a", "SUM(s1) OVER w AS s2", "k", HOUR)
                        SINK("s1 INT, s2 INT") "INSERT INTO s SELECT s1, s2 FROM b;");
    assert_int_equal(0, over_of(plan, 0)->over.frame_count);
    assert_int_equal(PLAN_FORWARD, over_of(plan, 1)->distribution);
    plan_destroy(plan);
}

static void test_level_stays_apart_when_another_reads_it_too(void **context)
{
    struct plan *plan =
        plan_of(TABLES LEVEL("a", "t", "SUM(v) OVER w AS s1", "k", MINUTE)
                    LEVEL("b", "a", "SUM(v) OVER w AS s2", "k", HOUR)
                        SINK("s1 INT, s2 INT") "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT "
                                               "s1, s2 FROM b;\n"
                                               "INSERT INTO s SELECT s1, s1 FROM a; END;");
    assert_non_null(over_of(plan, 1));
    plan_destroy(plan);
}

static void test_floating_sum_stays_apart_when_on_arrival(void **context)
{
#define FLOATING                                                                                   \
    TABLES LEVEL("a", "t", "SUM(d) OVER w AS s1", "k", MINUTE)                                     \
        LEVEL("b", "a", "SUM(d) OVER w AS s2", "k", HOUR)                                          \
            SINK("s1 DOUBLE, s2 DOUBLE") "INSERT INTO s SELECT s1, s2 FROM b;"
    struct plan *plan = plan_of(ARRIVAL FLOATING);
    assert_non_null(over_of(plan, 1));
    plan_destroy(plan);
    plan = plan_of(FLOATING);
    assert_null(over_of(plan, 1));
    plan_destroy(plan);
}

static void test_stack_splits_when_a_table_value_is_too_small(void **context)
{
    struct plan *plan = plan_of(
        TABLES LEVEL(
            "a", "t", "MAX(v) OVER w AS a1, MIN(v) OVER w AS a2, LAST_VALUE(v) OVER w AS a3", "k",
            MINUTE) LEVEL("b", "a",
                          "MAX(v) OVER w AS b1, MIN(v) OVER w AS b2, LAST_VALUE(v) OVER w AS b3",
                          "k", HOUR)
            LEVEL("e", "b",
                  "MAX(d) OVER w AS c1, MIN(d) OVER w AS c2, MAX(c) OVER w AS c3, "
                  "MIN(c) OVER w AS c4, LAST_VALUE(c) OVER w AS c5",
                  "k",
                  MINUTE) LEVEL("f", "e",
                                "MAX(d) OVER w AS d1, MIN(d) OVER w AS d2, MAX(v) OVER w AS d3, "
                                "MIN(v) OVER w AS d4",
                                "k", HOUR)
                SINK(
                    "n INT, m DOUBLE") "INSERT INTO s SELECT a1 + a2 + a3 + b1 + b2 + b3 + d3 + d4,"
                                       " c1 + c2 + d1 + d2 + CHAR_LENGTH(c3) + CHAR_LENGTH(c4) + "
                                       "CHAR_LENGTH(c5) FROM f;");
    assert_int_equal(3, over_of(plan, 0)->over.frame_count);
    assert_int_equal(0, over_of(plan, 1)->over.frame_count);
    plan_destroy(plan);
}

static void test_finer_key_is_spread_anew_when_the_coarser_one_is_in_it(void **context)
{
    struct plan *plan = plan_of(
        TABLES LEVEL("a", "t", "SUM(v) OVER w AS s1", "k",
                     MINUTE) LEVEL("b", "a", "SUM(v) OVER w AS s2", "c, k", HOUR)
            LEVEL("e", "b", "SUM(v) OVER w AS s3", "k", HOUR) LEVEL("f", "e", "SUM(v) OVER w AS s4",
                                                                    "c", HOUR)
                SINK("a INT, b INT, c INT, d INT") "INSERT INTO s SELECT s1, s2, s3, s4 FROM f;");
    assert_int_equal(PLAN_HASH, over_of(plan, 0)->distribution);
    assert_int_equal(PLAN_HASH, over_of(plan, 1)->distribution);
    assert_int_equal(PLAN_HASH, over_of(plan, 2)->distribution);
    assert_int_equal(PLAN_HASH, over_of(plan, 3)->distribution);
    plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stack_becomes_one_node_when_keys_are_equal),
        cmocka_unit_test(test_stack_stays_apart_when_asked_to),
        cmocka_unit_test(test_level_stays_apart_when_it_reads_the_one_below),
        cmocka_unit_test(test_level_stays_apart_when_another_reads_it_too),
        cmocka_unit_test(test_floating_sum_stays_apart_when_on_arrival),
        cmocka_unit_test(test_stack_splits_when_a_table_value_is_too_small),
        cmocka_unit_test(test_finer_key_is_spread_anew_when_the_coarser_one_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
