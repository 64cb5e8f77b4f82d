/* SPDX-License-Identifier: Apache-2.0 */
/* SET 'key' = 'value'. Flink takes any key. Keys that change answers are implemented or refused;
 * known keys that do not are noted; others are noted loudly, for they may be mistyped. Keys
 * penstock.* are ours: an unknown one is refused. */
#include <errno.h>
#include <stdlib.h>

#include "control/sql/session.h"
#include "dataplane/expr/zone.h"

struct setting {
    const char *key;
    int (*apply)(struct session *session, const struct ast_option *option);
    bool decides; /* answers: must stand before the first query */
};

static int bad_value(struct session *session, const struct ast_option *option, const char *takes)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    return sql_fail(session, -EINVAL, option->value.at, "'%s' takes %s, not '%s'", option->key.text,
                    takes, option->value.text);
}

static bool is_word(const struct ast_option *option, const char *word)
{
    ASSERT(option != NULL);
    ASSERT(word != NULL);
    return strcasecmp(option->value.text, word) == 0;
}

static int set_time_zone(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    const char *zone = option->value.text;
    struct zone *known = NULL;
    if (zone[0] != 0 && strlen(zone) < 64) {
        known = zone_open(is_word(option, "default") ? "UTC" : zone);
    }
    const bool is_known = known != NULL;
    zone_destroy(known);
    if (!is_known) {
        return bad_value(session, option, "a time zone such as UTC or Asia/Kolkata");
    }
    session->settings.time_zone = is_word(option, "default") ? "UTC" : zone;
    ASSERT(session->settings.time_zone != NULL);
    return 0;
}

static int set_not_null_enforcer(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (!is_word(option, "ERROR") && !is_word(option, "DROP")) {
        return bad_value(session, option, "ERROR or DROP");
    }
    session->settings.not_null_drop = is_word(option, "DROP");
    return 0;
}

static int set_length_enforcer(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (is_word(option, "ERROR")) {
        return sql_fail(session, -ENOTSUP, option->value.at, "'%s' = 'ERROR' is not supported yet",
                        option->key.text);
    }
    if (!is_word(option, "IGNORE") && !is_word(option, "TRIM_PAD")) {
        return bad_value(session, option, "IGNORE or TRIM_PAD");
    }
    session->settings.trim_pad = is_word(option, "TRIM_PAD");
    return 0;
}

static int set_state_ttl(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (!sql_duration(option->value.text, &session->settings.state_ttl_ms)) {
        return bad_value(session, option, "a duration such as 1 d");
    }
    return 0;
}

static int set_watermark_interval(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (!sql_duration(option->value.text, &session->settings.watermark_interval_ms)) {
        return bad_value(session, option, "a duration such as 200 ms");
    }
    return 0;
}

static int set_idle_timeout(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    uint64_t ms = 0;
    if (!sql_duration(option->value.text, &ms)) {
        return bad_value(session, option, "a duration such as 5 s");
    }
    if (ms != 0) {
        sql_note(session, option->key.at,
                 "'%s' has no effect here: a partition is idle as soon as the broker says that it "
                 "holds no more",
                 option->key.text);
    }
    return 0;
}

static int set_agg_phase(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (!is_word(option, "AUTO") && !is_word(option, "ONE_PHASE") &&
        !is_word(option, "TWO_PHASE")) {
        return bad_value(session, option, "AUTO, ONE_PHASE or TWO_PHASE");
    }
    session->settings.one_phase = is_word(option, "ONE_PHASE");
    return 0;
}

static int set_over_emit(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (!is_word(option, "on-arrival") && !is_word(option, "watermark")) {
        return bad_value(session, option, "watermark (as Flink) or on-arrival");
    }
    session->settings.over_on_arrival = is_word(option, "on-arrival");
    return 0;
}

static int set_over_fuse(struct session *session, const struct ast_option *option)
{
    if (!is_word(option, "true") && !is_word(option, "false")) {
        return bad_value(session, option, "true or false");
    }
    session->settings.over_apart = is_word(option, "false");
    return 0;
}

/* Legacy casts and the like: only Flink's default is what we do. */
static int set_only_default(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    if (is_word(option, "false") || is_word(option, "DISABLED") || is_word(option, "streaming") ||
        is_word(option, "default")) {
        return 0;
    }
    return sql_fail(session, -ENOTSUP, option->value.at, "'%s' = '%s' is not supported",
                    option->key.text, option->value.text);
}

static int set_note(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    sql_note(session, option->key.at, "'%s' has no effect here: answers are the same without it",
             option->key.text);
    return 0;
}

static const struct setting settings[] = {
    {"table.local-time-zone", set_time_zone, true},
    {"table.exec.sink.not-null-enforcer", set_not_null_enforcer, true},
    {"table.exec.sink.type-length-enforcer", set_length_enforcer, true},
    {"table.exec.state.ttl", set_state_ttl, true},
    {"pipeline.auto-watermark-interval", set_watermark_interval, true},
    {"table.exec.source.idle-timeout", set_idle_timeout, true},
    {"table.optimizer.agg-phase-strategy", set_agg_phase, true},
    {"penstock.over.emit", set_over_emit, true},
    {"penstock.over.fuse", set_over_fuse, true},
    {"table.exec.legacy-cast-behaviour", set_only_default, true},
    {"table.exec.source.cdc-events-duplicate", set_only_default, true},
    {"execution.runtime-mode", set_only_default, true},
    {"sql-client.execution.result-mode", set_note, false},
    {"table.dml-sync", set_note, false},
    {"table.exec.mini-batch.enabled", set_note, false},
    {"table.exec.mini-batch.allow-latency", set_note, false},
    {"table.exec.mini-batch.size", set_note, false},
    {"table.exec.resource.default-parallelism", set_note, false},
    {"table.optimizer.distinct-agg.split.enabled", set_note, false},
    {"table.optimizer.distinct-agg.split.bucket-num", set_note, false},
    {"table.optimizer.incremental-agg-enabled", set_note, false},
    {"table.optimizer.reuse-source-enabled", set_note, false},
    {"table.optimizer.reuse-sub-plan-enabled", set_note, false},
    {"table.optimizer.source.predicate-pushdown-enabled", set_note, false},
    {"table.exec.sink.upsert-materialize", set_note, false},
    {"table.exec.sink.keyed-shuffle", set_note, false},
    {"parallelism.default", set_note, false},
    {"pipeline.name", set_note, false},
    {"pipeline.max-parallelism", set_note, false},
    {"pipeline.object-reuse", set_note, false},
    {"pipeline.operator-chaining.enabled", set_note, false},
    {"execution.checkpointing.interval", set_note, false},
    {"execution.checkpointing.mode", set_note, false},
    {"execution.checkpointing.timeout", set_note, false},
    {"execution.checkpointing.min-pause", set_note, false},
    {"execution.buffer-timeout.interval", set_note, false},
    {"execution.target", set_note, false},
    {"state.backend.type", set_note, false},
    {"state.checkpoints.dir", set_note, false},
    {"restart-strategy.type", set_note, false},
};

static const char *const table_keys[] = {"on-error", "dead-letter-topic"};

/* penstock.table.NAME.KEY; the name may hold points, the key does not. */
static int set_table(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    static const char prefix[] = "penstock.table.";
    const char *name = option->key.text + sizeof(prefix) - 1;
    const char *point = strrchr(name, '.');
    if (point == NULL || point == name) {
        return sql_fail(session, -EINVAL, option->key.at,
                        "'%s' is not of the form penstock.table.NAME.KEY", option->key.text);
    }
    bool known = false;
    for (uint32_t i = 0; i < COUNT_OF(table_keys); i++) {
        known = known || strcmp(point + 1, table_keys[i]) == 0;
    }
    if (!known) {
        const char *nearest = sql_nearest(point + 1, table_keys, COUNT_OF(table_keys));
        return sql_fail(session, -EINVAL, option->key.at,
                        "'%s' is not a key of penstock.table.NAME: there are on-error and "
                        "dead-letter-topic%s%s",
                        point + 1, nearest == NULL ? "" : "; did you mean ",
                        nearest == NULL ? "" : nearest);
    }
    struct table_setting *setting = sql_allocate(session->memory, sizeof(*setting));
    setting->table = sql_copy_text(session->memory, name, (size_t)(point - name));
    setting->key = point + 1;
    setting->value = option->value.text;
    setting->at = option->key.at;
    ast_append(session->memory, &session->table_settings, setting);
    return 0;
}

struct table_setting *settings_of_table(struct session *session, const char *table, const char *key)
{
    ASSERT(session != NULL);
    ASSERT(table != NULL && key != NULL);
    struct table_setting *found = NULL;
    for (uint32_t i = 0; i < session->table_settings.count; i++) {
        struct table_setting *setting = session->table_settings.items[i];
        if (strcmp(setting->table, table) == 0 && strcmp(setting->key, key) == 0) {
            setting->used = true;
            found = setting; /* the last one counts */
        }
    }
    return found;
}

static int unknown(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    const char *known[COUNT_OF(settings)];
    for (uint32_t i = 0; i < COUNT_OF(settings); i++) {
        known[i] = settings[i].key;
    }
    const char *nearest = sql_nearest(option->key.text, known, COUNT_OF(known));
    const char *hint =
        nearest == NULL ? "" : sql_format(session->memory, "; did you mean '%s'?", nearest);
    if (strncmp(option->key.text, "penstock.", 9) == 0) {
        return sql_fail(session, -EINVAL, option->key.at, "'%s' is not a setting of Penstock%s",
                        option->key.text, hint);
    }
    sql_note(session, option->key.at,
             "'%s' is not known here and is NOT applied (Flink takes any key too)%s",
             option->key.text, hint);
    return 0;
}

int settings_apply(struct session *session, const struct ast_option *option)
{
    ASSERT(session != NULL);
    ASSERT(option != NULL);
    ASSERT(option->key.text != NULL);
    if (strncmp(option->key.text, "penstock.table.", 15) == 0) {
        return set_table(session, option);
    }
    for (uint32_t i = 0; i < COUNT_OF(settings); i++) {
        if (strcmp(settings[i].key, option->key.text) != 0) {
            continue;
        }
        if (settings[i].decides && session->has_query) {
            return sql_fail(session, -ENOTSUP, option->key.at,
                            "SET '%s' must stand before the first CREATE VIEW and INSERT",
                            option->key.text);
        }
        return settings[i].apply(session, option);
    }
    return unknown(session, option);
}
