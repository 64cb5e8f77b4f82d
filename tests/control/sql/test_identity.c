/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of plan nodes: what changes in a script and what a node's state makes of it. */
#include "control/sql/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "control/sql/sql.h"

#define TABLE(columns)                                                                             \
    "CREATE TABLE t (" columns ", ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ("                 \
    "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092',"             \
    " 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');\n"
#define COLUMNS       "k STRING, c STRING, v INT, d DECIMAL(10, 2)"
#define ARRIVAL       "SET 'penstock.over.emit' = 'on-arrival';\n"
#define SINK(columns) "CREATE TABLE s (" columns ") WITH ('connector' = 'blackhole');\n"
#define OVER(calls, where, key, frame)                                                             \
    "CREATE VIEW o AS SELECT *, " calls " FROM t" where " WINDOW w AS (PARTITION BY " key          \
    " ORDER BY ts " frame ");\n"
#define MINUTE    "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
#define HOUR      "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
#define BASE_OVER OVER("SUM(v) OVER w AS n", "", "k", MINUTE)
#define BASE                                                                                       \
    ARRIVAL TABLE(COLUMNS)                                                                         \
    BASE_OVER SINK("k STRING, n INT")
#define GROUPED(calls, key)                                                                        \
    TABLE(COLUMNS)                                                                                 \
    SINK("k STRING, n BIGINT") "INSERT INTO s SELECT " key ", " calls " FROM t GROUP BY " key ";"
#define KNOWN_OVER  UINT64_C(0x878dbe6c34c8b963)
#define KNOWN_GROUP UINT64_C(0x8b81f42b507fb62a)
#define WINDOWED(calls, size)                                                                      \
    TABLE(COLUMNS)                                                                                 \
    SINK("k STRING, n BIGINT")                                                                     \
    "INSERT INTO s SELECT k, " calls " FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '" size \
    "' MINUTE)) "                                                                                  \
    "GROUP BY window_start, window_end, k;"

static struct plan *plan_of(const char *text)
{
    struct plan *plan = NULL;
    struct error error = {0};
    const struct sql_input input = {.text = text, .bytes = strlen(text), .file_name = "test.sql"};
    if (sql_plan(&input, &plan, NULL, &error) != 0) {
        fail_msg("%u:%u %s", error.line, error.column, error.text);
    }
    return plan;
}

/* The identity of the one node of a kind in a script. */
static uint64_t identity_of(const char *text, enum plan_operator operator)
{
    struct plan *plan = plan_of(text);
    uint64_t identity = 0;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== operator) {
            assert_int_equal(identity, 0);
            identity = plan->nodes[i]->identity;
        }
    }
    assert_int_not_equal(identity, 0);
    plan_destroy(plan);
    return identity;
}

static uint64_t over_in(const char *text)
{
    return identity_of(text, PLAN_OVER);
}

static void test_over_when_what_stands_above_changes_then_the_same(void **state)
{
    (void)state;
    const uint64_t base = over_in(BASE "INSERT INTO s SELECT k, n FROM o;");
    static const char *const scripts[] = {
        BASE "INSERT INTO s SELECT k, n + 1 FROM o;",
        BASE "INSERT INTO s SELECT c, CASE WHEN n > 3 THEN 1 ELSE 2 END FROM o;",
        BASE "INSERT INTO s SELECT UPPER(k), CAST(d AS INT) FROM o WHERE n > 10;",
        ARRIVAL TABLE(COLUMNS) BASE_OVER
        "CREATE TABLE other (a INT, b STRING) WITH ('connector' = 'print');\n"
        "INSERT INTO other SELECT n, c FROM o;",
        /* A column more in the table, a view between, another name. */
        ARRIVAL TABLE("x INT, " COLUMNS)
            BASE_OVER SINK("k STRING, n INT") "INSERT INTO s SELECT k, x + n FROM o;",
        ARRIVAL TABLE(COLUMNS) "CREATE VIEW between_us AS SELECT ts, v AS amount, k AS card FROM "
                               "t;\n" SINK(
                                   "k STRING, n INT") "INSERT INTO s SELECT card, SUM(amount) OVER "
                                                      "(PARTITION BY card ORDER BY ts " MINUTE
                                                      ") FROM between_us;",
    };
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        if (over_in(scripts[i]) != base) {
            fail_msg("script %zu has another identity", i);
        }
    }
}

static void test_over_when_its_own_matter_changes_then_another(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        BASE "INSERT INTO s SELECT k, n FROM o;",
        TABLE(COLUMNS) BASE_OVER SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE("k STRING, c STRING, v BIGINT, d DECIMAL(10, 2)")
            BASE_OVER SINK("k STRING, n BIGINT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n", " WHERE v > 0", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n", " WHERE v > 1", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n", "", "c", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n", "", "k, c", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n", "", "k", HOUR)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("MAX(v) OVER w AS n", "", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v) OVER w AS n, MAX(v) OVER w AS m", "", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n + m FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v + 1) OVER w AS n", "", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
        ARRIVAL TABLE(COLUMNS) OVER("SUM(v + 2) OVER w AS n", "", "k", MINUTE)
            SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;",
    };
    uint64_t identities[COUNT_OF(scripts)];
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        identities[i] = over_in(scripts[i]);
        for (size_t k = 0; k < i; k++) {
            if (identities[i] == identities[k]) {
                fail_msg("scripts %zu and %zu have one identity", k, i);
            }
        }
    }
}

/* By watermark rows wait whole: a column more of them is another state. */
static void test_over_by_watermark_when_more_columns_pass_then_another(void **state)
{
    (void)state;
    const uint64_t one = over_in(
        TABLE(COLUMNS) BASE_OVER SINK("k STRING, n INT") "INSERT INTO s SELECT k, n FROM o;");
    const uint64_t same = over_in(
        TABLE(COLUMNS) BASE_OVER SINK("k STRING, n INT") "INSERT INTO s SELECT k, n + 1 FROM o;");
    const uint64_t more = over_in(
        TABLE(COLUMNS) BASE_OVER SINK("k STRING, n INT") "INSERT INTO s SELECT c, n FROM o;");
    assert_int_equal(one, same);
    assert_int_not_equal(one, more);
}

static void test_group_and_window_when_changed_then_another(void **state)
{
    (void)state;
    const uint64_t group = identity_of(GROUPED("COUNT(*)", "k"), PLAN_GROUP);
    assert_int_equal(group, identity_of(GROUPED("COUNT(*) + 5", "k"), PLAN_GROUP));
    assert_int_not_equal(group, identity_of(GROUPED("COUNT(*)", "c"), PLAN_GROUP));
    assert_int_not_equal(group, identity_of(GROUPED("COUNT(DISTINCT c)", "k"), PLAN_GROUP));
    assert_int_not_equal(group, identity_of(GROUPED("COUNT(c)", "k"), PLAN_GROUP));
    const uint64_t window = identity_of(WINDOWED("COUNT(*)", "5"), PLAN_WINDOW);
    assert_int_equal(window, identity_of(WINDOWED("COUNT(*) * 2", "5"), PLAN_WINDOW));
    assert_int_not_equal(window, identity_of(WINDOWED("COUNT(*)", "6"), PLAN_WINDOW));
    assert_int_not_equal(window, identity_of(WINDOWED("COUNT(v)", "5"), PLAN_WINDOW));
}

/* A job with a query more keeps the names of what it had. */
static void test_common_part_of_two_jobs_when_planned_then_equal_names(void **state)
{
    (void)state;
    struct plan *one = plan_of(BASE "INSERT INTO s SELECT k, n FROM o;");
    struct plan *two = plan_of(
        BASE "CREATE TABLE g (c STRING, n BIGINT) WITH ('connector' = 'blackhole');\n"
             "EXECUTE STATEMENT SET BEGIN INSERT INTO g SELECT c, COUNT(*) FROM t GROUP BY c;\n"
             "INSERT INTO s SELECT k, n FROM o; END;");
    for (uint32_t i = 0; i < one->node_count; i++) {
        const struct plan_node *node = one->nodes[i];
        uint32_t found = 0;
        for (uint32_t k = 0; k < two->node_count; k++) {
            found += two->nodes[k]->identity == node->identity;
        }
        if (node->operator== PLAN_SOURCE || node->operator== PLAN_OVER) {
            assert_int_equal(found, 1);
        }
    }
    plan_destroy(one);
    plan_destroy(two);
}

static void test_identities_in_a_plan_when_nodes_are_equal_then_told_apart(void **state)
{
    (void)state;
    struct plan *plan = plan_of("SET 'penstock.over.fuse' = 'false';\n" TABLE(
        COLUMNS) "CREATE TABLE p (k STRING, n INT) WITH ('connector' = 'blackhole');\n"
                 "EXECUTE STATEMENT SET BEGIN\n"
                 "INSERT INTO p SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts " MINUTE
                 ") FROM t;\n"
                 "INSERT INTO p SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts " MINUTE
                 ") FROM t;\n"
                 "END;");
    for (uint32_t i = 0; i < plan->node_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_int_not_equal(plan->nodes[i]->identity, plan->nodes[k]->identity);
        }
    }
    plan_destroy(plan);
}

/* Known values: a change of the hash would orphan the state of every checkpoint there is. */
static void test_identity_when_planned_anywhere_then_a_known_number(void **state)
{
    (void)state;
    assert_int_equal(over_in(BASE "INSERT INTO s SELECT k, n FROM o;"), KNOWN_OVER);
    assert_int_equal(identity_of(GROUPED("COUNT(*)", "k"), PLAN_GROUP), KNOWN_GROUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_when_what_stands_above_changes_then_the_same),
        cmocka_unit_test(test_over_when_its_own_matter_changes_then_another),
        cmocka_unit_test(test_over_by_watermark_when_more_columns_pass_then_another),
        cmocka_unit_test(test_group_and_window_when_changed_then_another),
        cmocka_unit_test(test_common_part_of_two_jobs_when_planned_then_equal_names),
        cmocka_unit_test(test_identities_in_a_plan_when_nodes_are_equal_then_told_apart),
        cmocka_unit_test(test_identity_when_planned_anywhere_then_a_known_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
