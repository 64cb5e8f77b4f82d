/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the appliance file over libyaml's document tree. libyaml itself rather than libcyaml on top
 * of it: the tree keeps the line and column of each value, so that every error can name its place.
 *
 * The file is a mapping of sections, a section a mapping of keys; config_keys (config_keys.c) is
 * the whole schema. Unknown sections and keys, values of another type and values out of bounds are
 * errors. */
#include "control/config_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include <yaml.h>

/* Flow collections in flow collections: libyaml takes quadratic time over them. */
#define NESTING_MAX 64

/* Where a value stands, for errors. */
struct place {
    const char *name;
    const struct config_key *key;
    uint32_t line;
    uint32_t column;
};

static int fail(struct error *error, const struct place *place, const char *found,
                const char *wanted)
{
    ASSERT(place != NULL);
    if (error != NULL) {
        (void)snprintf(error->place, sizeof(error->place), "%s", place->name);
        error->line = place->line;
        error->column = place->column;
    }
    return error_set(error, -EINVAL, "%s.%s: found %s, want %s", place->key->section,
                     place->key->key, found, wanted);
}

static void *field(struct appliance_config *config, const struct config_key *key)
{
    return (uint8_t *)config + key->offset;
}

static int parse_number(const char *text, const struct place *place, uint64_t *out,
                        struct error *error)
{
    ASSERT(text != NULL);
    ASSERT(out != NULL);
    char wanted[128];
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < place->key->min ||
        value > place->key->max) {
        (void)snprintf(wanted, sizeof(wanted), "a whole number from %" PRIu64 " to %" PRIu64,
                       place->key->min, place->key->max);
        return fail(error, place, text, wanted);
    }
    *out = value;
    return 0;
}

/* A choice is stored as the number of its word: the order of its enum. */
static int parse_choice(const char *text, const struct place *place, uint32_t *out,
                        struct error *error)
{
    ASSERT(text != NULL);
    ASSERT(place->key->choices != NULL);
    char wanted[128];
    size_t used = 0;
    for (uint32_t i = 0; place->key->choices[i] != NULL; i++) {
        if (strcmp(text, place->key->choices[i]) == 0) {
            *out = i;
            return 0;
        }
        used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s", i == 0 ? "" : " or ",
                                 place->key->choices[i]);
        ASSERT(used < sizeof(wanted));
    }
    return fail(error, place, text, wanted);
}

static int parse_scalar(struct appliance_config *config, const char *text,
                        const struct place *place, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(place != NULL);
    void *into = field(config, place->key);
    uint64_t number = 0;
    switch (place->key->type) {
    case KEY_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
            return fail(error, place, text, "true or false");
        }
        *(bool *)into = text[0] == 't';
        return 0;
    case KEY_CHOICE:
        return parse_choice(text, place, into, error);
    case KEY_NUMBER:
        return parse_number(text, place, into, error);
    case KEY_CORE:
        if (parse_number(text, place, &number, error) != 0) {
            return -EINVAL;
        }
        *(uint32_t *)into = (uint32_t)number;
        return 0;
    case KEY_TEXT:
        free(*(char **)into);
        *(char **)into = strdup(text);
        return *(char **)into == NULL ? error_set(error, -ENOMEM, "out of memory") : 0;
    default:
        return fail(error, place, text, "a list, e.g. [a, b]");
    }
}

static void list_clear(struct config_list *list)
{
    ASSERT(list != NULL);
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    list->count = 0;
}

static int add_item(struct appliance_config *config, const char *text, const struct place *place,
                    struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(place != NULL);
    if (place->key->type == KEY_CORES) {
        struct config_cores *cores = field(config, place->key);
        uint64_t number = 0;
        if (cores->count == CONFIG_CORES_MAX) {
            return fail(error, place, "more cores", "at most 64");
        }
        if (parse_number(text, place, &number, error) != 0) {
            return -EINVAL;
        }
        cores->ids[cores->count++] = (uint32_t)number;
        return 0;
    }
    struct config_list *list = field(config, place->key);
    if (list->count == CONFIG_LIST_MAX) {
        return fail(error, place, "more items", "at most 64");
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    list->items[list->count++] = copy;
    return 0;
}

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static void place_at(struct place *place, const yaml_node_t *node)
{
    place->line = (uint32_t)node->start_mark.line + 1;
    place->column = (uint32_t)node->start_mark.column + 1;
}

static int read_list(struct appliance_config *config, yaml_document_t *document,
                     const yaml_node_t *node, struct place *place, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(node != NULL);
    if (place->key->type == KEY_CORES) {
        ((struct config_cores *)field(config, place->key))->count = 0;
    } else {
        list_clear(field(config, place->key));
    }
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *value = yaml_document_get_node(document, *item);
        ASSERT(value != NULL);
        place_at(place, value);
        if (value->type != YAML_SCALAR_NODE) {
            return fail(error, place, "a nested value", "a plain one");
        }
        const int status = add_item(config, scalar_text(value), place, error);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static int read_value(struct appliance_config *config, yaml_document_t *document,
                      const yaml_node_t *value, struct place *place, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(value != NULL);
    ASSERT(place != NULL);
    const bool is_list = place->key->type == KEY_CORES || place->key->type == KEY_LIST;
    place_at(place, value);
    if (value->type == YAML_SEQUENCE_NODE && is_list) {
        return read_list(config, document, value, place, error);
    }
    if (value->type != YAML_SCALAR_NODE) {
        return fail(error, place, value->type == YAML_SEQUENCE_NODE ? "a list" : "a mapping",
                    "a single value");
    }
    return parse_scalar(config, scalar_text(value), place, error);
}

static const struct config_key *find_key(const char *section, const char *key)
{
    for (size_t i = 0; i < config_key_count; i++) {
        if (strcmp(config_keys[i].section, section) == 0 &&
            (key == NULL || strcmp(config_keys[i].key, key) == 0)) {
            return &config_keys[i];
        }
    }
    return NULL;
}

static int fail_at(struct error *error, const char *name, const yaml_node_t *node)
{
    if (error != NULL) {
        (void)snprintf(error->place, sizeof(error->place), "%s", name);
        error->line = (uint32_t)node->start_mark.line + 1;
        error->column = (uint32_t)node->start_mark.column + 1;
    }
    return -EINVAL;
}

/* Finds a key that stands before a pair in the same mapping too: YAML forbids it, libyaml takes it,
 * and one of both values would be lost in silence. */
static bool is_given_twice(yaml_document_t *document, const yaml_node_t *mapping,
                           const yaml_node_pair_t *pair, const char *text)
{
    for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair; other++) {
        const yaml_node_t *key = yaml_document_get_node(document, other->key);
        if (key->type == YAML_SCALAR_NODE && strcmp(scalar_text(key), text) == 0) {
            return true;
        }
    }
    return false;
}

/* Lists the names that could have been meant, for an unknown section (section NULL) or key. */
static void list_names(const char *section, char *into, size_t bytes)
{
    ASSERT(into != NULL);
    size_t used = 0;
    into[0] = '\0';
    for (size_t i = 0; i < config_key_count; i++) {
        const bool first =
            i == 0 || strcmp(config_keys[i].section, config_keys[i - 1].section) != 0;
        const bool wanted = section == NULL ? first : strcmp(config_keys[i].section, section) == 0;
        const char *text = section == NULL ? config_keys[i].section : config_keys[i].key;
        if (wanted && used + strlen(text) + 3 < bytes) {
            used +=
                (size_t)snprintf(into + used, bytes - used, "%s%s", used == 0 ? "" : ", ", text);
        }
    }
}

static int read_section(struct appliance_config *config, yaml_document_t *document,
                        const yaml_node_t *node, struct place *place, const char *section,
                        struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(node != NULL);
    char names[384];
    if (node->type != YAML_MAPPING_NODE) {
        (void)fail_at(error, place->name, node);
        return error_set(error, -EINVAL, "%s: want a mapping of keys", section);
    }
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        ASSERT(key != NULL && value != NULL);
        const char *text = key->type == YAML_SCALAR_NODE ? scalar_text(key) : "(not text)";
        place->key = find_key(section, text);
        if (place->key == NULL) {
            (void)fail_at(error, place->name, key);
            list_names(section, names, sizeof(names));
            return error_set(error, -EINVAL, "unknown key %s.%s; known: %s", section, text, names);
        }
        if (is_given_twice(document, node, pair, text)) {
            (void)fail_at(error, place->name, key);
            return error_set(error, -EINVAL, "%s.%s is given twice; keep one", section, text);
        }
        const int status = read_value(config, document, value, place, error);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static int read_document(struct appliance_config *config, yaml_document_t *document,
                         const char *name, struct error *error)
{
    ASSERT(config != NULL);
    char names[384];
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL) {
        return 0; /* an empty file: all defaults */
    }
    if (root->type != YAML_MAPPING_NODE) {
        (void)fail_at(error, name, root);
        return error_set(error, -EINVAL, "want a mapping of sections");
    }
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        ASSERT(key != NULL && value != NULL);
        const char *section = key->type == YAML_SCALAR_NODE ? scalar_text(key) : "(not text)";
        if (find_key(section, NULL) == NULL) {
            (void)fail_at(error, name, key);
            list_names(NULL, names, sizeof(names));
            return error_set(error, -EINVAL, "unknown section %s; known: %s", section, names);
        }
        if (is_given_twice(document, root, pair, section)) {
            (void)fail_at(error, name, key);
            return error_set(error, -EINVAL, "section %s is given twice; join both", section);
        }
        struct place place = {.name = name};
        const int status = read_section(config, document, value, &place, section, error);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

/* The defaults stand in the table as they would stand in a file. */
static int set_defaults(struct appliance_config *config, struct error *error)
{
    ASSERT(config != NULL);
    for (size_t i = 0; i < config_key_count; i++) {
        const struct place place = {.name = "defaults", .key = &config_keys[i]};
        const char *initial = config_keys[i].initial;
        int status = 0;
        if (config_keys[i].type == KEY_CORES) {
            status = add_item(config, "0", &place, error);
        } else if (config_keys[i].type != KEY_LIST) {
            status = parse_scalar(config, initial, &place, error);
        }
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static int parser_error(const yaml_parser_t *parser, const char *name, struct error *error)
{
    ASSERT(parser != NULL);
    if (error != NULL) {
        (void)snprintf(error->place, sizeof(error->place), "%s", name);
        error->line = (uint32_t)parser->problem_mark.line + 1;
        error->column = (uint32_t)parser->problem_mark.column + 1;
    }
    return error_set(error, -EINVAL, "not YAML: %s",
                     parser->problem == NULL ? "unreadable" : parser->problem);
}

/* Counts brackets wherever they stand, also in texts: no key wants that many. */
static int check_nesting(const char *name, const char *text, size_t bytes, struct error *error)
{
    uint32_t depth = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < bytes; i++) {
        line += text[i] == '\n' ? 1 : 0;
        if (text[i] == '[' || text[i] == '{') {
            depth++;
        } else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
            depth--;
        }
        if (depth > NESTING_MAX) {
            (void)snprintf(error->place, sizeof(error->place), "%s", name);
            error->line = line;
            error->column = 1;
            return error_set(error, -EINVAL, "brackets are nested deeper than %d", NESTING_MAX);
        }
    }
    return 0;
}

int config_parse(const char *name, const char *text, size_t bytes, struct appliance_config *out,
                 struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(name != NULL);
    ASSERT(text != NULL || bytes == 0);
    yaml_parser_t parser;
    yaml_document_t document;
    memset(out, 0, sizeof(*out));
    int status = set_defaults(out, error);
    if (status == 0) {
        status = check_nesting(name, text, bytes, error);
    }
    if (status != 0) {
        return status;
    }
    if (yaml_parser_initialize(&parser) == 0) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    if (yaml_parser_load(&parser, &document) == 0) {
        status = parser_error(&parser, name, error);
    } else {
        status = read_document(out, &document, name, error);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return status;
}

int config_load(const char *path, struct appliance_config *out, struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(path != NULL);
    memset(out, 0, sizeof(*out));
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        (void)snprintf(error->place, sizeof(error->place), "%s", path);
        return error_set(error, -errno, "cannot read it: %s", strerror(errno));
    }
    char *text = malloc(CONFIG_FILE_BYTES_MAX);
    const size_t bytes = text == NULL ? 0 : fread(text, 1, CONFIG_FILE_BYTES_MAX, file);
    const bool failed = text == NULL || ferror(file) != 0;
    const int code = errno;
    (void)fclose(file);
    int status = 0;
    if (failed || bytes == CONFIG_FILE_BYTES_MAX) {
        (void)snprintf(error->place, sizeof(error->place), "%s", path);
        status = failed ? error_set(error, -EIO, "cannot read it: %s", strerror(code))
                        : error_set(error, -EFBIG, "longer than 1 MiB");
    } else {
        status = config_parse(path, text, bytes, out, error);
    }
    free(text);
    return status;
}

void config_free(struct appliance_config *config)
{
    for (size_t i = 0; i < config_key_count; i++) {
        void *at = field(config, &config_keys[i]);
        if (config_keys[i].type == KEY_TEXT) {
            free(*(char **)at);
            *(char **)at = NULL;
        } else if (config_keys[i].type == KEY_LIST) {
            list_clear(at);
        }
    }
}

static int check_role(const struct config_cores *cores, const char *role, uint32_t core_count,
                      struct error *error)
{
    ASSERT(cores->count <= CONFIG_CORES_MAX);
    if (cores->count == 0) {
        return error_set(error, -EINVAL, "cores.%s: want at least one core", role);
    }
    for (uint32_t i = 0; i < cores->count; i++) {
        if (cores->ids[i] >= core_count) {
            return error_set(error, -EINVAL,
                             "cores.%s: core %u does not exist; this machine has cores 0 to %u",
                             role, cores->ids[i], core_count - 1);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (cores->ids[j] == cores->ids[i]) {
                return error_set(error, -EINVAL,
                                 "cores.%s: core %u is given twice; each lane needs its own", role,
                                 cores->ids[i]);
            }
        }
    }
    return 0;
}

int config_check(const struct appliance_config *config, uint32_t core_count, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(core_count > 0);
    int status = check_role(&config->cores.receive, "receive", core_count, error);
    if (status == 0) {
        status = check_role(&config->cores.operate, "operate", core_count, error);
    }
    if (status == 0) {
        status = check_role(&config->cores.transmit, "transmit", core_count, error);
    }
    if (status == 0 && config->cores.control >= core_count) {
        status = error_set(error, -EINVAL,
                           "cores.control: core %u does not exist; this machine has cores 0 to %u",
                           config->cores.control, core_count - 1);
    }
    if (status == 0 && config->checkpoint.core >= core_count) {
        status =
            error_set(error, -EINVAL,
                      "checkpoint.core: core %u does not exist; this machine has cores 0 to %u",
                      config->checkpoint.core, core_count - 1);
    }
    return status;
}

static const char *type_text(enum key_type type)
{
    static const char *const names[] = {
        [KEY_BOOL] = "true or false", [KEY_NUMBER] = "number",       [KEY_TEXT] = "text",
        [KEY_CORE] = "core",          [KEY_CORES] = "list of cores", [KEY_LIST] = "list of texts",
        [KEY_CHOICE] = "word",
    };
    ASSERT(type < COUNT_OF(names));
    return names[type];
}

void config_print_reference(FILE *out)
{
    (void)fprintf(out, "| key | type | from | to | default | meaning |\n");
    (void)fprintf(out, "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        (void)fprintf(out, "| `%s.%s` | %s", key->section, key->key, type_text(key->type));
        for (uint32_t c = 0; key->choices != NULL && key->choices[c] != NULL; c++) {
            (void)fprintf(out, "%s %s", c == 0 ? ":" : " or", key->choices[c]);
        }
        (void)fprintf(out, " | ");
        if (key->type == KEY_NUMBER) {
            (void)fprintf(out, "%" PRIu64 " | %" PRIu64, key->min, key->max);
        } else {
            (void)fprintf(out, " | ");
        }
        (void)fprintf(out, " | `%s` | %s |\n", key->initial, key->doc);
    }
}
