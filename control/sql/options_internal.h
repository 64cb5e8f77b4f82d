/* SPDX-License-Identifier: Apache-2.0 */
/* What options.c and options_format.c share while they read the options of one table. */
#pragma once

#include "control/sql/catalog.h"

struct options_reading {
    struct session *session;
    struct table *table;
    const struct ast_list *list;
    const char *connector;
    uint32_t connector_bit;
    bool has_startup_timestamp;
    bool has_bounded_timestamp;
    struct place startup_at;
    struct place bounded_at;
    const char *value_prefix; /* of the value format's options: "json." or "value.json." */
    const char *key_prefix;   /* "key.json.", or NULL */
    struct place value_format_at;
};

/* Finds an option by key.
 * returns  NULL when it is not given */
const struct ast_option *options_find(const struct options_reading *reading, const char *key);

/* Reports a value that the option does not take. */
int options_bad_value(struct options_reading *reading, const struct ast_option *option,
                      const char *takes);

/* Reads true or false. */
int options_boolean(struct options_reading *reading, const struct ast_option *option, bool *out);

/* Reads 'format', 'value.format' and 'key.format'. */
int options_choose_formats(struct options_reading *reading);

/* Reads an option of a format.
 * is_format  whether it is one */
int options_read_format(struct options_reading *reading, const struct ast_option *option,
                        bool *is_format);

/* Spreads columns over the record's key and value; checks what the formats can hold. */
int options_apply_keys(struct options_reading *reading);
