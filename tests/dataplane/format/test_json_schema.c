/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of members: nesting, lookups by exact name at every size, and what it refuses. */
#include "dataplane/format/json_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/dataplane/format/table.h"

static struct json_member *find(const struct json_object *object, const char *name)
{
    return json_schema_find(object, (struct span){(const uint8_t *)name, strlen(name)});
}

static void test_find_when_nested_then_by_exact_name(void **state)
{
    (void)state;
    struct table table;
    struct json_object *root;
    table_init(&table, "id INT, r.a INT, r.q.b STRING, -x INT, key:k INT");
    assert_int_equal(json_schema_create(&table.source, PLAN_FIELD_VALUE, &root, NULL), 0);
    assert_int_equal(root->member_count, 3);
    assert_int_equal(find(root, "id")->column, 0);
    assert_null(find(root, "ID"));
    assert_null(find(root, "k"));
    assert_null(find(root, ""));
    assert_int_equal(find(root, "x")->column, JSON_COLUMN_NONE);
    const struct json_member *r = find(root, "r");
    assert_int_equal(find(r->object, "a")->column, 1);
    assert_int_equal(find(find(r->object, "q")->object, "b")->column, 2);
    json_schema_destroy(root);
    table_fini(&table);
}

static void test_find_when_many_members_then_each_is_found(void **state)
{
    (void)state;
    struct table table;
    struct json_object *root;
    char text[4096];
    char name[16];
    size_t used = 0;
    for (int i = 0; i < 60; i++) {
        used += (size_t)sprintf(text + used, "%sm%d INT", i == 0 ? "" : ", ", i);
    }
    table_init(&table, text);
    assert_int_equal(json_schema_create(&table.source, PLAN_FIELD_VALUE, &root, NULL), 0);
    for (uint32_t i = 0; i < 60; i++) {
        (void)sprintf(name, "m%u", i);
        assert_int_equal(find(root, name)->column, i);
    }
    assert_null(find(root, "m60"));
    json_schema_destroy(root);
    table_fini(&table);
}

static void test_create_when_a_member_is_used_twice_then_refused(void **state)
{
    (void)state;
    static const char *const TABLES[] = {"a INT, a INT", "a INT, a.b INT", "a.b INT, a INT"};
    for (size_t i = 0; i < COUNT_OF(TABLES); i++) {
        struct table table;
        struct json_object *root;
        struct error error = {.line = 0};
        table_init(&table, TABLES[i]);
        assert_int_not_equal(json_schema_create(&table.source, PLAN_FIELD_VALUE, &root, &error), 0);
        assert_non_null(strstr(error.text, "cannot be read twice"));
        json_schema_destroy(root);
        table_fini(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_when_nested_then_by_exact_name),
        cmocka_unit_test(test_find_when_many_members_then_each_is_found),
        cmocka_unit_test(test_create_when_a_member_is_used_twice_then_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
