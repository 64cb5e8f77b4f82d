/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of members that a document is read against. Every field of the plan is known to it,
 * also those that nothing reads, because Flink stops looking for members once it has met as many
 * as the table has. Each object finds its members by a small hash table, and remembers the names
 * and order of the last record, so that most names are met with one comparison. */
#include "dataplane/format/json_internal.h"

#include <errno.h>
#include <stdlib.h>

/* FNV-1a, its high bits folded in. */
static uint32_t hash_name(struct span name)
{
    ASSERT_SLOW(name.data != NULL || name.bytes == 0);
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.bytes; i++) {
        hash = (hash ^ name.data[i]) * 16777619u;
    }
    return hash ^ hash >> 15;
}

static struct json_member *find_linear(struct json_object *object, const char *name)
{
    ASSERT(name != NULL);
    for (uint32_t i = 0; i < object->member_count; i++) {
        if (strcmp(object->members[i].name, name) == 0) {
            return &object->members[i];
        }
    }
    return NULL;
}

static struct json_member *add_member(struct json_object *object, const char *name)
{
    ASSERT(name != NULL);
    ASSERT(object->member_count < ROW_COLUMNS_MAX);
    const size_t bytes = (object->member_count + 1) * sizeof(struct json_member);
    struct json_member *members = realloc(object->members, bytes);
    if (members == NULL) {
        return NULL;
    }
    object->members = members;
    struct json_member *member = &members[object->member_count++];
    *member = (struct json_member){
        .name = name,
        .name_bytes = (uint32_t)strlen(name),
        .column = JSON_COLUMN_NONE,
    };
    return member;
}

/* Walks or makes the members of one path; sets the column of its last one when it is read. */
static int add_field(struct json_object *object, const struct plan_source *source, uint32_t index)
{
    const struct plan_field *field = &source->fields[index];
    ASSERT(index < source->field_count);
    ASSERT(field->path_count <= JSON_PATH_MAX);
    for (uint32_t depth = 0; depth < field->path_count; depth++) {
        const char *name = field->path[depth];
        const bool last = depth + 1 == field->path_count;
        struct json_member *member = find_linear(object, name);
        if (member != NULL && (last || member->object == NULL)) {
            return -EINVAL;
        }
        if (member == NULL) {
            member = add_member(object, name);
        }
        if (member == NULL) {
            return -ENOMEM;
        }
        if (last) {
            member->column = field->needed ? index : JSON_COLUMN_NONE;
            member->word = source->decoded.slots[index];
            member->type = field->type;
            return 0;
        }
        if (member->object == NULL) {
            member->object = calloc(1, sizeof(*member->object));
        }
        if (member->object == NULL) {
            return -ENOMEM;
        }
        object = member->object;
    }
    return -EINVAL;
}

/* Makes the hash tables of an object and all below it, at most half full. */
static int fill_buckets(struct json_object *object, uint32_t depth)
{
    ASSERT(object->buckets == NULL);
    ASSERT(depth <= JSON_PATH_MAX);
    uint32_t count = 8;
    while (count < 2 * object->member_count) {
        count *= 2;
    }
    object->buckets = calloc(count, sizeof(*object->buckets));
    if (object->buckets == NULL) {
        return -ENOMEM;
    }
    object->bucket_mask = count - 1;
    for (uint32_t i = 0; i < object->member_count; i++) {
        struct json_member *member = &object->members[i];
        const struct span name = {(const uint8_t *)member->name, member->name_bytes};
        uint32_t at = hash_name(name) & object->bucket_mask;
        while (object->buckets[at] != 0) {
            at = (at + 1) & object->bucket_mask;
        }
        object->buckets[at] = (uint16_t)(i + 1);
        if (member->object != NULL && fill_buckets(member->object, depth + 1) != 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

int json_schema_create(const struct plan_source *source, enum plan_field_origin origin,
                       struct json_object **out, struct error *error)
{
    ASSERT(source != NULL && out != NULL);
    ASSERT(source->field_count <= ROW_COLUMNS_MAX);
    *out = calloc(1, sizeof(**out));
    if (*out == NULL) {
        return error_set(error, -ENOMEM, "no memory for the members of table '%s'", source->table);
    }
    for (uint32_t i = 0; i < source->field_count; i++) {
        const struct plan_field *field = &source->fields[i];
        if (field->origin != origin) {
            continue;
        }
        if (field->path_count == 0 || field->path_count > JSON_PATH_MAX) {
            return error_set(error, -EINVAL,
                             "a ROW of table '%s' is nested too deeply (%u, at most %d)",
                             source->table, field->path_count, JSON_PATH_MAX);
        }
        if (add_field(*out, source, i) != 0) {
            return error_set(error, -EINVAL, "member '%s' of table '%s' cannot be read twice",
                             field->path[0], source->table);
        }
    }
    return fill_buckets(*out, 0);
}

static void destroy_at(struct json_object *object, uint32_t depth)
{
    ASSERT(object != NULL);
    ASSERT(depth <= JSON_PATH_MAX);
    for (uint32_t i = 0; i < object->member_count; i++) {
        if (object->members[i].object != NULL) {
            destroy_at(object->members[i].object, depth + 1);
        }
    }
    free(object->members);
    free(object->buckets);
    free(object);
}

void json_schema_destroy(struct json_object *object)
{
    if (object != NULL) {
        destroy_at(object, 0);
    }
}

struct json_member *json_schema_find(const struct json_object *object, struct span name)
{
    ASSERT_SLOW(object->buckets != NULL);
    uint32_t at = hash_name(name) & object->bucket_mask;
    for (; object->buckets[at] != 0; at = (at + 1) & object->bucket_mask) {
        struct json_member *member = &object->members[object->buckets[at] - 1];
        if (member->name_bytes == name.bytes && memcmp(member->name, name.data, name.bytes) == 0) {
            return member;
        }
    }
    return NULL;
}
