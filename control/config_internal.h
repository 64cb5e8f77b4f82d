/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the appliance file, for config.c and its table. */
#pragma once

#include "control/config.h"

enum key_type {
    KEY_BOOL = 0,
    KEY_NUMBER,
    KEY_TEXT,
    KEY_CORE,
    KEY_CORES,
    KEY_LIST,
    KEY_CHOICE, /* one of a few words, stored as its number */
};

struct config_key {
    const char *section;
    const char *key;
    size_t offset; /* in struct appliance_config */
    enum key_type type;
    uint64_t min;
    uint64_t max;
    const char *initial; /* as it would stand in the file */
    const char *doc;
    const char *const *choices; /* KEY_CHOICE: NULL-terminated */
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;
