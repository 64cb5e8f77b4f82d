/* SPDX-License-Identifier: Apache-2.0 */
/* Hints of a SELECT: STATE_TTL('table or alias' = 'duration') says how long the state of its GROUP
 * BY or DISTINCT lives without a write. As in Flink the key is the alias where FROM gives one, with
 * its case, and is checked only where the SELECT groups; elsewhere the hint does nothing. Of one
 * key given twice the last counts inside of one hint, the first among several. */
#include <errno.h>

#include "control/sql/bind.h"

/* Flink's other hints are about joins. */
static const char *const join_hints[] = {"BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP",
                                         "LOOKUP",    "MULTI_JOIN",   "EARLY_FIRE"};

static int check_name(struct session *session, const struct ast_name *name)
{
    ASSERT(session != NULL);
    ASSERT(name != NULL && name->text != NULL);
    if (strcasecmp(name->text, "STATE_TTL") == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < COUNT_OF(join_hints); i++) {
        if (strcasecmp(name->text, join_hints[i]) == 0) {
            return sql_fail(session, -ENOTSUP, name->at,
                            "%s is a hint for joins, which are not supported yet", name->text);
        }
    }
    return sql_fail(session, -EINVAL, name->at, "hint `%s` is not known; there is STATE_TTL",
                    name->text);
}

/* Whether a key names what FROM names: by its alias, or a plain table by its whole path as well. */
static bool names_input(const struct ast_from *from, const struct scope *scope, const char *key)
{
    ASSERT(from != NULL);
    ASSERT(key != NULL);
    static const char path[] = "default_catalog.default_database.";
    const bool is_plain = from->kind == AST_FROM_TABLE && from->alias.text == NULL;
    if (is_plain && strncmp(key, path, sizeof(path) - 1) == 0) {
        key += sizeof(path) - 1;
    }
    return scope->alias != NULL && strcmp(scope->alias, key) == 0;
}

/* Reads one STATE_TTL; all its keys name the one input, so its last duration counts. */
static int bind_ttl(struct session *session, const struct ast_hint *hint,
                    const struct ast_select *select, const struct scope *scope, uint64_t *ttl_ms)
{
    ASSERT(hint != NULL);
    ASSERT(ttl_ms != NULL);
    if (hint->options.count == 0) {
        return sql_fail(session, -EINVAL, hint->name.at,
                        "STATE_TTL takes 'table or alias' = 'duration', at least once");
    }
    for (uint32_t i = 0; i < hint->options.count; i++) {
        const struct ast_option *option = hint->options.items[i];
        if (!names_input(select->from, scope, option->key.text)) {
            return sql_fail(session, -EINVAL, option->key.at,
                            "STATE_TTL names `%s`, which is not in FROM%s%s%s", option->key.text,
                            scope->alias == NULL ? "" : ": there is `",
                            scope->alias == NULL ? "" : scope->alias,
                            scope->alias == NULL ? "" : "`");
        }
        if (!sql_duration(option->value.text, ttl_ms)) {
            return sql_fail(session, -EINVAL, option->value.at,
                            "STATE_TTL takes a duration such as 1 d, not '%s'", option->value.text);
        }
    }
    return 0;
}

int bind_hints(struct session *session, const struct ast_select *select, const struct scope *scope,
               bool groups, uint64_t *ttl_ms)
{
    ASSERT(select != NULL && select->from != NULL);
    ASSERT(scope != NULL && ttl_ms != NULL);
    *ttl_ms = session->settings.state_ttl_ms;
    bool is_set = false;
    for (uint32_t i = 0; i < select->hints.count; i++) {
        const struct ast_hint *hint = select->hints.items[i];
        int verdict = check_name(session, &hint->name);
        if (verdict == 0 && !groups) {
            sql_note(session, hint->name.at,
                     "STATE_TTL has no effect here: it is for GROUP BY and DISTINCT");
            continue;
        }
        uint64_t own_ms = 0;
        if (verdict == 0) {
            verdict = bind_ttl(session, hint, select, scope, &own_ms);
        }
        if (verdict != 0) {
            return verdict;
        }
        *ttl_ms = is_set ? *ttl_ms : own_ms;
        is_set = true;
    }
    return 0;
}
