/* SPDX-License-Identifier: Apache-2.0 */
/* The list of named states. It comes from a disk, so every number is checked before it is used;
 * what a table then makes of its description is checked again by table_create. */
#include "state/shape.h"

#include <errno.h>

size_t shape_list_bytes(const struct arena *arena)
{
    ASSERT(arena->object_count <= ARENA_OBJECT_COUNT_MAX);
    return sizeof(struct shape_list_head) + arena->object_count * sizeof(struct shape_description);
}

void shape_describe(const struct arena *arena, uint32_t object, struct shape_description *out)
{
    ASSERT(object < arena->object_count);
    ASSERT(out != NULL);
    const struct arena_shape *shape = &arena->shapes[object];
    *out = (struct shape_description){0};
    if (shape->ops != NULL) {
        shape->ops->describe(shape->shape, out);
    }
    memcpy(out->name, arena->objects[object].name, sizeof(out->name));
    out->kind = arena->objects[object].kind;
}

void shape_list_write(const struct arena *arena, uint8_t *into)
{
    ASSERT(into != NULL);
    const struct shape_list_head head = {.magic = SHAPE_LIST_MAGIC,
                                         .version = SHAPE_LIST_VERSION,
                                         .page_count = arena->page_count,
                                         .shard_count = arena->shard_count,
                                         .state_count = arena->object_count};
    memcpy(into, &head, sizeof(head));
    into += sizeof(head);
    for (uint32_t object = 0; object < arena->object_count; object++) {
        struct shape_description description;
        shape_describe(arena, object, &description);
        memcpy(into, &description, sizeof(description));
        into += sizeof(description);
    }
}

const struct shape_description *shape_list_at(struct span list, uint32_t index)
{
    const struct shape_list_head *head = (const void *)list.data;
    ASSERT(list.bytes >= sizeof(*head) && index < head->state_count);
    return (const struct shape_description *)(const void *)(list.data + sizeof(*head)) + index;
}

static int description_check(const struct shape_description *description, struct error *error)
{
    ASSERT(description != NULL);
    const char *name = description->name;
    const bool is_named = name[0] != '\0' && memchr(name, '\0', sizeof(description->name)) != NULL;
    if (!is_named || description->head_count > SHAPE_HEADS_MAX || description->kind == 0 ||
        description->kind > ARENA_OBJECT_TIMERS) {
        return error_set(error, -EBADMSG, "a state's description in the checkpoint is damaged");
    }
    return 0;
}

int shape_list_check(struct span bytes, struct error *error)
{
    ASSERT(bytes.data != NULL && (uintptr_t)bytes.data % sizeof(uint64_t) == 0);
    struct shape_list_head head = {0};
    if (bytes.bytes >= sizeof(head)) {
        memcpy(&head, bytes.data, sizeof(head));
    }
    if (head.magic != SHAPE_LIST_MAGIC || head.version != SHAPE_LIST_VERSION ||
        head.state_count > ARENA_OBJECT_COUNT_MAX || head.shard_count == 0 ||
        head.shard_count > ARENA_SHARD_COUNT_MAX || head.page_count < 2 ||
        bytes.bytes != sizeof(head) + head.state_count * sizeof(struct shape_description)) {
        return error_set(error, -EBADMSG, "the list of states in the checkpoint is damaged");
    }
    for (uint32_t index = 0; index < head.state_count; index++) {
        const int code = description_check(shape_list_at(bytes, index), error);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}
