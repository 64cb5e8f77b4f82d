/* SPDX-License-Identifier: Apache-2.0 */
/* WITH (…): which options each connector takes, and their values. As in Flink an option that the
 * connector does not know is an error; here it comes with its place and the nearest known name.
 * Formats and their options are in options_format.c. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "control/sql/options_internal.h"

#define TOPICS_MAX  1024
#define OFFSETS_MAX 4096

enum connector_set {
    KAFKA = 1,
    UPSERT = 2,
    PRINT = 4,
    BLACKHOLE = 8,
};

struct option_rule {
    const char *key;
    uint32_t connectors; /* enum connector_set */
    int (*apply)(struct options_reading *reading, const struct ast_option *option);
};

int options_bad_value(struct options_reading *reading, const struct ast_option *option,
                      const char *takes)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    ASSERT(takes != NULL);
    return sql_fail(reading->session, -EINVAL, option->value.at, "'%s' takes %s, not '%s'",
                    option->key.text, takes, option->value.text);
}

int options_boolean(struct options_reading *reading, const struct ast_option *option, bool *out)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *text = option->value.text;
    ASSERT(text != NULL);
    if (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0) {
        return options_bad_value(reading, option, "true or false");
    }
    *out = strcasecmp(text, "true") == 0;
    return 0;
}

static int read_topic(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    struct sql_memory *memory = reading->session->memory;
    struct ast_list topics = {0};
    char *rest = sql_copy_text(memory, option->value.text, strlen(option->value.text));
    while (rest != NULL) {
        char *topic = strsep(&rest, ";");
        while (isspace((unsigned char)*topic)) {
            topic++;
        }
        size_t bytes = strlen(topic);
        while (bytes != 0 && isspace((unsigned char)topic[bytes - 1])) {
            topic[--bytes] = 0;
        }
        if (bytes == 0 || topics.count == TOPICS_MAX) {
            return options_bad_value(reading, option, "a topic, or several as 'a;b'");
        }
        ast_append(memory, &topics, topic);
    }
    const char **list = sql_allocate(memory, topics.count * sizeof(*list));
    for (uint32_t i = 0; i < topics.count; i++) {
        list[i] = topics.items[i];
    }
    reading->table->options.topics = list;
    reading->table->options.topic_count = topics.count;
    return 0;
}

static int read_startup_mode(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    static const char *const modes[] = {"group-offsets", "earliest-offset", "latest-offset",
                                        "timestamp", "specific-offsets"};
    for (uint32_t i = 0; i < COUNT_OF(modes); i++) {
        if (strcmp(modes[i], option->value.text) == 0) {
            reading->table->options.startup = (enum plan_startup)i;
            reading->startup_at = option->value.at;
            return 0;
        }
    }
    return options_bad_value(reading, option,
                             "group-offsets, earliest-offset, latest-offset, timestamp or "
                             "specific-offsets");
}

static int read_bounded_mode(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    static const char *const modes[] = {"unbounded", "latest-offset", "group-offsets", "timestamp",
                                        "specific-offsets"};
    for (uint32_t i = 0; i < COUNT_OF(modes); i++) {
        if (i == PLAN_BOUNDED_GROUP_OFFSETS && strcmp(modes[i], option->value.text) == 0) {
            return sql_fail(reading->session, -ENOTSUP, option->value.at,
                            "'%s' = 'group-offsets' is not supported yet", option->key.text);
        }
        if (strcmp(modes[i], option->value.text) == 0) {
            reading->table->options.bounded = (enum plan_bounded)i;
            reading->bounded_at = option->value.at;
            return 0;
        }
    }
    return options_bad_value(
        reading, option, "unbounded, latest-offset, group-offsets, timestamp or specific-offsets");
}

static int read_number(struct options_reading *reading, const struct ast_option *option,
                       int64_t *out)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    char *end = NULL;
    errno = 0;
    *out = strtoll(option->value.text, &end, 10);
    if (errno != 0 || end == option->value.text || *end != 0 || *out < 0) {
        return options_bad_value(reading, option, "a whole number");
    }
    return 0;
}

static int read_startup_timestamp(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    reading->has_startup_timestamp = true;
    return read_number(reading, option, &reading->table->options.startup_timestamp_ms);
}

static int read_bounded_timestamp(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    reading->has_bounded_timestamp = true;
    return read_number(reading, option, &reading->table->options.bounded_timestamp_ms);
}

/* partition:0,offset:42;partition:1,offset:300 */
static int read_offsets(struct options_reading *reading, const struct ast_option *option,
                        struct ast_list *out)
{
    ASSERT(out != NULL);
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *text = option->value.text;
    while (*text != 0 && out->count < OFFSETS_MAX) {
        char *end = NULL;
        if (strncmp(text, "partition:", 10) != 0 || !isdigit((unsigned char)text[10])) {
            break;
        }
        struct plan_partition_offset *offset =
            sql_allocate(reading->session->memory, sizeof(*offset));
        offset->partition = (uint32_t)strtoul(text + 10, &end, 10);
        if (strncmp(end, ",offset:", 8) != 0 || !isdigit((unsigned char)end[8])) {
            break;
        }
        offset->offset = strtoll(end + 8, &end, 10);
        ast_append(reading->session->memory, out, offset);
        if (*end == 0) {
            return 0;
        }
        if (*end != ';') {
            break;
        }
        text = end + 1;
    }
    return options_bad_value(reading, option, "partition:0,offset:42;partition:1,offset:300");
}

static int read_startup_offsets(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    return read_offsets(reading, option, &reading->table->options.startup_offsets);
}

static int read_bounded_offsets(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    return read_offsets(reading, option, &reading->table->options.bounded_offsets);
}

static int read_emit_strategy(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const bool on_event = strcmp(option->value.text, "on-event") == 0;
    if (!on_event && strcmp(option->value.text, "on-periodic") != 0) {
        return options_bad_value(reading, option, "on-periodic or on-event");
    }
    reading->table->options.watermark_on_event = on_event;
    return 0;
}

static int read_idle_timeout(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    uint64_t ms = 0;
    if (!sql_duration(option->value.text, &ms)) {
        return options_bad_value(reading, option, "a duration such as 10 s");
    }
    if (ms != 0) {
        sql_note(reading->session, option->key.at,
                 "'%s' has no effect here: a partition is idle as soon as the broker says that it "
                 "holds no more",
                 option->key.text);
    }
    return 0;
}

static int read_partitioner(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    static const char *const names[] = {"default", "fixed", "round-robin"};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(names[i], option->value.text) == 0) {
            reading->table->options.partitioner = (enum plan_partitioner)i;
            return 0;
        }
    }
    return sql_fail(reading->session, -ENOTSUP, option->value.at,
                    "'%s' = '%s': only default, fixed and round-robin are supported",
                    option->key.text, option->value.text);
}

static int read_guarantee(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *text = option->value.text;
    if (strcasecmp(text, "exactly-once") == 0) {
        reading->table->options.exactly_once = true;
        reading->table->options.exactly_once_at = option->value.at;
        return 0;
    }
    if (strcasecmp(text, "none") == 0) {
        sql_note(reading->session, option->key.at,
                 "'%s' = 'none' has no effect here: delivery is at-least-once", option->key.text);
        return 0;
    }
    return strcasecmp(text, "at-least-once") == 0
               ? 0
               : options_bad_value(reading, option, "at-least-once, exactly-once or none");
}

/* Flink takes 64,000 bytes, for ids that the broker keeps; here checkpoints keep them too. */
static int read_transactional_prefix(struct options_reading *reading,
                                     const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *text = option->value.text;
    ASSERT(text != NULL);
    if (strlen(text) > PLAN_TRANSACTIONAL_PREFIX_BYTES_MAX) {
        return sql_fail(reading->session, -EINVAL, option->value.at,
                        "'%s' takes at most %d bytes, not %zu", option->key.text,
                        PLAN_TRANSACTIONAL_PREFIX_BYTES_MAX, strlen(text));
    }
    reading->table->options.transactional_id_prefix = text;
    return 0;
}

static int read_naming(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *text = option->value.text;
    if (strcasecmp(text, "incrementing") != 0 && strcasecmp(text, "pooling") != 0) {
        return options_bad_value(reading, option, "incrementing or pooling");
    }
    sql_note(reading->session, option->key.at,
             "'%s' has no effect here: transactional ids are always pooled", option->key.text);
    return 0;
}

static int read_fields_include(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const bool except = strcmp(option->value.text, "EXCEPT_KEY") == 0;
    if (!except && strcmp(option->value.text, "ALL") != 0) {
        return options_bad_value(reading, option, "ALL or EXCEPT_KEY");
    }
    reading->table->options.except_key = except;
    return 0;
}

static int read_key_fields(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    reading->table->options.key_fields = option->value.text;
    reading->table->options.key_fields_at = option->value.at;
    return 0;
}

static int read_key_prefix(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    ASSERT(option->value.text != NULL);
    reading->table->options.key_prefix = option->value.text;
    return 0;
}

static int read_note(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    sql_note(reading->session, option->key.at,
             "'%s' has no effect here: answers are the same without it", option->key.text);
    return 0;
}

static int read_pattern(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    return sql_fail(reading->session, -ENOTSUP, option->key.at,
                    "'topic-pattern' is not supported yet: name the topics, 'a;b'");
}

static int read_identifier(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    ASSERT(option->value.text != NULL);
    reading->table->options.print_identifier = option->value.text;
    return 0;
}

static int read_standard_error(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    return options_boolean(reading, option, &reading->table->options.print_to_stderr);
}

/* 'connector', 'format' and such are read before all others. */
static int read_nothing(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    ASSERT(reading->table != NULL && option != NULL);
    return 0;
}

static const struct option_rule rules[] = {
    {"connector", KAFKA | UPSERT | PRINT | BLACKHOLE, read_nothing},
    {"format", KAFKA, read_nothing},
    {"value.format", KAFKA | UPSERT, read_nothing},
    {"key.format", KAFKA | UPSERT, read_nothing},
    {"topic", KAFKA | UPSERT, read_topic},
    {"topic-pattern", KAFKA, read_pattern},
    {"key.fields", KAFKA, read_key_fields},
    {"key.fields-prefix", KAFKA | UPSERT, read_key_prefix},
    {"value.fields-include", KAFKA | UPSERT, read_fields_include},
    {"scan.startup.mode", KAFKA, read_startup_mode},
    {"scan.startup.specific-offsets", KAFKA, read_startup_offsets},
    {"scan.startup.timestamp-millis", KAFKA, read_startup_timestamp},
    {"scan.bounded.mode", KAFKA | UPSERT, read_bounded_mode},
    {"scan.bounded.specific-offsets", KAFKA | UPSERT, read_bounded_offsets},
    {"scan.bounded.timestamp-millis", KAFKA | UPSERT, read_bounded_timestamp},
    {"scan.topic-partition-discovery.interval", KAFKA, read_note},
    {"scan.parallelism", KAFKA | UPSERT, read_note},
    {"scan.watermark.emit.strategy", KAFKA | UPSERT, read_emit_strategy},
    {"scan.watermark.idle-timeout", KAFKA | UPSERT, read_idle_timeout},
    {"scan.watermark.alignment.group", KAFKA | UPSERT, read_note},
    {"scan.watermark.alignment.max-drift", KAFKA | UPSERT, read_note},
    {"scan.watermark.alignment.update-interval", KAFKA | UPSERT, read_note},
    {"sink.partitioner", KAFKA, read_partitioner},
    {"sink.delivery-guarantee", KAFKA | UPSERT, read_guarantee},
    {"sink.transactional-id-prefix", KAFKA | UPSERT, read_transactional_prefix},
    {"sink.transaction-naming-strategy", KAFKA | UPSERT, read_naming},
    {"sink.parallelism", KAFKA | UPSERT | PRINT, read_note},
    {"sink.buffer-flush.max-rows", UPSERT, read_note},
    {"sink.buffer-flush.interval", UPSERT, read_note},
    {"print-identifier", PRINT, read_identifier},
    {"standard-error", PRINT, read_standard_error},
};

static int unknown_option(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    const char *known[COUNT_OF(rules)];
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT_OF(rules); i++) {
        if ((rules[i].connectors & reading->connector_bit) != 0) {
            known[count++] = rules[i].key;
        }
    }
    const char *nearest = sql_nearest(option->key.text, known, count);
    return sql_fail(reading->session, -EINVAL, option->key.at,
                    "connector '%s' has no option '%s'%s%s%s", reading->connector, option->key.text,
                    nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "'?");
}

static int read_protocol(struct options_reading *reading, const struct ast_option *option)
{
    if (strcmp(option->value.text, "PLAINTEXT") == 0) {
        return 0;
    }
    return sql_fail(reading->session, -ENOTSUP, option->value.at,
                    "'%s' = '%s' is not supported yet: only PLAINTEXT is", option->key.text,
                    option->value.text);
}

static int read_isolation(struct options_reading *reading, const struct ast_option *option)
{
    const char *level = option->value.text;
    reading->table->options.read_committed = strcmp(level, "read_committed") == 0;
    if (!reading->table->options.read_committed && strcmp(level, "read_uncommitted") != 0) {
        return options_bad_value(reading, option, "read_committed or read_uncommitted");
    }
    return 0;
}

/* Decides only where a group has no offset yet. */
static int read_reset(struct options_reading *reading, const struct ast_option *option)
{
    static const char *const names[] = {"none", "earliest", "latest"};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        if (strcasecmp(names[i], option->value.text) == 0) {
            reading->table->options.group_reset = (enum plan_group_reset)i;
            return 0;
        }
    }
    return options_bad_value(reading, option, "earliest, latest or none");
}

/* Those of Kafka's client properties that decide answers. */
static const struct {
    const char *key;
    int (*apply)(struct options_reading *reading, const struct ast_option *option);
} properties[] = {
    {"security.protocol", read_protocol},
    {"isolation.level", read_isolation},
    {"auto.offset.reset", read_reset},
};

static int read_property(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    struct table_options *options = &reading->table->options;
    const char *key = option->key.text + strlen("properties.");
    if (strcmp(key, "bootstrap.servers") == 0) {
        options->bootstrap_servers = option->value.text;
        return 0;
    }
    if (strcmp(key, "group.id") == 0) {
        options->group_id = option->value.text;
        return 0;
    }
    for (uint32_t i = 0; i < COUNT_OF(properties); i++) {
        if (strcmp(properties[i].key, key) == 0) {
            return properties[i].apply(reading, option);
        }
    }
    if (strncmp(key, "sasl.", 5) == 0 || strncmp(key, "ssl.", 4) == 0) {
        return sql_fail(reading->session, -ENOTSUP, option->key.at,
                        "'%s' is not supported yet: brokers are reached in plain text",
                        option->key.text);
    }
    sql_note(reading->session, option->key.at,
             "'%s' has no effect here: the appliance file's kafka section is what tunes clients",
             option->key.text);
    return 0;
}

static int read_option(struct options_reading *reading, const struct ast_option *option)
{
    ASSERT(reading != NULL);
    ASSERT(option != NULL);
    bool is_format = false;
    if ((reading->connector_bit & (KAFKA | UPSERT)) != 0) {
        if (strncmp(option->key.text, "properties.", 11) == 0) {
            return read_property(reading, option);
        }
        const int verdict = options_read_format(reading, option, &is_format);
        if (verdict != 0 || is_format) {
            return verdict;
        }
    }
    for (uint32_t i = 0; i < COUNT_OF(rules); i++) {
        if (strcmp(rules[i].key, option->key.text) == 0 &&
            (rules[i].connectors & reading->connector_bit) != 0) {
            return rules[i].apply(reading, option);
        }
    }
    return unknown_option(reading, option);
}

static int read_connector(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    static const char *const names[] = {"kafka", "upsert-kafka", "print", "blackhole"};
    const struct ast_option *option = options_find(reading, "connector");
    if (option == NULL) {
        const bool is_old = options_find(reading, "connector.type") != NULL;
        return sql_fail(reading->session, is_old ? -ENOTSUP : -EINVAL, reading->table->at,
                        is_old ? "table `%s`: the properties of old ('connector.type') are not "
                                 "supported"
                               : "table `%s` has no option 'connector'",
                        reading->table->name.text);
    }
    reading->connector = option->value.text;
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(names[i], option->value.text) == 0) {
            reading->table->options.connector = (enum plan_connector)i;
            reading->connector_bit = 1u << i;
            reading->table->options.is_source = i <= 1;
            return 0;
        }
    }
    return sql_fail(reading->session, -ENOTSUP, option->value.at,
                    "connector '%s' is not supported yet: there are kafka, upsert-kafka, print and "
                    "blackhole",
                    option->value.text);
}

const struct ast_option *options_find(const struct options_reading *reading, const char *key)
{
    ASSERT(reading != NULL);
    ASSERT(key != NULL);
    for (uint32_t i = 0; i < reading->list->count; i++) {
        const struct ast_option *option = reading->list->items[i];
        if (strcmp(option->key.text, key) == 0) {
            return option;
        }
    }
    return NULL;
}

static int check_twice(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    for (uint32_t i = 0; i < reading->list->count; i++) {
        const struct ast_option *option = reading->list->items[i];
        if (options_find(reading, option->key.text) != option) {
            return sql_fail(reading->session, -EINVAL, option->key.at, "'%s' is given twice",
                            option->key.text);
        }
    }
    return 0;
}

/* What Kafka tables must have, and modes with what they need. */
static int check_kafka(struct options_reading *reading)
{
    ASSERT(reading != NULL);
    struct session *session = reading->session;
    const struct table_options *options = &reading->table->options;
    const struct place at = reading->table->at;
    const char *name = reading->table->name.text;
    if (options->topic_count == 0) {
        return sql_fail(session, -EINVAL, at, "table `%s` has no option 'topic'", name);
    }
    if (options->bootstrap_servers == NULL) {
        return sql_fail(session, -EINVAL, at,
                        "table `%s` has no option 'properties.bootstrap.servers'", name);
    }
    if (options->startup == PLAN_STARTUP_TIMESTAMP && !reading->has_startup_timestamp) {
        return sql_fail(session, -EINVAL, reading->startup_at,
                        "'scan.startup.mode' = 'timestamp' needs 'scan.startup.timestamp-millis'");
    }
    if (options->startup == PLAN_STARTUP_SPECIFIC && options->startup_offsets.count == 0) {
        return sql_fail(session, -EINVAL, reading->startup_at,
                        "'scan.startup.mode' = 'specific-offsets' needs "
                        "'scan.startup.specific-offsets'");
    }
    if (options->bounded == PLAN_BOUNDED_TIMESTAMP && !reading->has_bounded_timestamp) {
        return sql_fail(session, -EINVAL, reading->bounded_at,
                        "'scan.bounded.mode' = 'timestamp' needs 'scan.bounded.timestamp-millis'");
    }
    if (options->bounded == PLAN_BOUNDED_SPECIFIC && options->bounded_offsets.count == 0) {
        return sql_fail(session, -EINVAL, reading->bounded_at,
                        "'scan.bounded.mode' = 'specific-offsets' needs "
                        "'scan.bounded.specific-offsets'");
    }
    const bool is_upsert = options->connector == PLAN_CONNECTOR_UPSERT_KAFKA;
    if (is_upsert && reading->table->primary_key_count == 0) {
        return sql_fail(session, -EINVAL, at,
                        "table `%s`: connector 'upsert-kafka' needs a PRIMARY KEY … NOT ENFORCED",
                        name);
    }
    if (!is_upsert && reading->table->primary_key_count != 0) {
        return sql_fail(session, -EINVAL, at,
                        "table `%s`: connector 'kafka' with an insert-only format takes no PRIMARY "
                        "KEY; use 'upsert-kafka'",
                        name);
    }
    return 0;
}

int options_apply(struct session *session, struct table *table, const struct ast_list *options)
{
    ASSERT(table->columns != NULL || table->column_count == 0);
    ASSERT(options->count <= options->capacity);
    ASSERT(session != NULL);
    struct options_reading reading = {.session = session, .table = table, .list = options};
    int verdict = check_twice(&reading);
    if (verdict == 0) {
        verdict = read_connector(&reading);
    }
    const bool is_kafka = (reading.connector_bit & (KAFKA | UPSERT)) != 0;
    if (verdict == 0 && is_kafka) {
        verdict = options_choose_formats(&reading);
    }
    for (uint32_t i = 0; i < options->count && verdict == 0; i++) {
        verdict = read_option(&reading, options->items[i]);
    }
    if (verdict == 0 && is_kafka) {
        verdict = check_kafka(&reading);
    }
    if (verdict == 0 && is_kafka) {
        verdict = options_apply_keys(&reading);
    }
    return verdict;
}
