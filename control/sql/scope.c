/* SPDX-License-Identifier: Apache-2.0 */
/* Names to columns. A path is a column and fields below it, or a table's alias in front of that;
 * Flink looks for the alias first. Names have case. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/bind.h"

#define LISTED_MAX 12

/* Finds a field by name.
 * returns  NULL: none; *count says how many have the name */
static const struct field *find_field(const struct field *fields, uint32_t field_count,
                                      const char *name, uint32_t *count)
{
    ASSERT(count != NULL);
    const struct field *found = NULL;
    *count = 0;
    for (uint32_t i = 0; i < field_count; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            found = found == NULL ? &fields[i] : found;
            (*count)++;
        }
    }
    return found;
}

/* "did you mean …?" or the list of what there is. */
static const char *hint(struct session *session, const struct field *fields, uint32_t count,
                        const char *name)
{
    ASSERT(session != NULL);
    const char **names = sql_allocate(session->memory, count * sizeof(*names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = fields[i].name;
    }
    const char *nearest = sql_nearest(name, names, count);
    if (nearest != NULL) {
        return sql_format(session->memory, "; did you mean `%s`?", nearest);
    }
    const char *list = "; there are";
    for (uint32_t i = 0; i < count && i < LISTED_MAX; i++) {
        list = sql_format(session->memory, "%s%s %s", list, i == 0 ? "" : ",", names[i]);
    }
    return count == 0 ? "" : list;
}

static int not_found(struct session *session, const struct scope *scope,
                     const struct ast_name *name, bool is_qualified)
{
    ASSERT(scope != NULL);
    ASSERT(session != NULL);
    const struct relation *relation = &scope->relation;
    if (is_qualified) {
        return sql_fail(session, -EINVAL, name->at,
                        "`%s` is neither a table in FROM nor a column%s%s", name->text,
                        scope->alias == NULL ? "" : "; there is ",
                        scope->alias == NULL ? "" : scope->alias);
    }
    return sql_fail(session, -EINVAL, name->at, "column `%s` is not known%s%s%s", name->text,
                    scope->alias == NULL ? "" : " in ", scope->alias == NULL ? "" : scope->alias,
                    hint(session, relation->fields, relation->field_count, name->text));
}

int scope_resolve(struct session *session, const struct scope *scope, const struct ast_expr *name,
                  const struct field **out)
{
    ASSERT(name->path_count >= 1);
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    ASSERT(name->path_count >= 1);
    if (scope == NULL) {
        return sql_fail(session, -EINVAL, name->at, "there is no table to take column `%s` from",
                        name->path[0].text);
    }
    const struct relation *relation = &scope->relation;
    uint32_t at = 0;
    uint32_t count = 0;
    const struct field *field = NULL;
    if (name->path_count > 1 && scope->alias != NULL &&
        strcmp(scope->alias, name->path[0].text) == 0) {
        at = 1;
        field = find_field(relation->fields, relation->field_count, name->path[1].text, &count);
    }
    if (field == NULL) {
        const struct field *own =
            find_field(relation->fields, relation->field_count, name->path[0].text, &count);
        at = own != NULL ? 0 : at;
        field = own;
    }
    if (field == NULL) {
        return not_found(session, scope, &name->path[at], name->path_count > 1 && at == 0);
    }
    if (count > 1) {
        return sql_fail(session, -EINVAL, name->path[at].at,
                        "column `%s` is ambiguous: %u columns have this name", name->path[at].text,
                        count);
    }
    for (at++; at < name->path_count; at++) {
        const struct ast_name *part = &name->path[at];
        if (field->field_count == 0) {
            return sql_fail(session, -EINVAL, part->at, "`%s` is no ROW: it has no field `%s`",
                            field->name, part->text);
        }
        const struct field *next =
            find_field(field->fields, field->field_count, part->text, &count);
        if (next == NULL) {
            return sql_fail(session, -EINVAL, part->at, "ROW `%s` has no field `%s`%s", field->name,
                            part->text,
                            hint(session, field->fields, field->field_count, part->text));
        }
        field = next;
    }
    *out = field;
    return 0;
}
