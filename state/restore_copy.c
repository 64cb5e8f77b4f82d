/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring onto other lanes or another job: an old lane is read into a scratch arena as if it went
 * on there, then each shard of each state is copied to the arena that owns it now. One old lane at
 * a time, so the scratch memory is that of the largest. */
#include <errno.h>
#include <stdlib.h>

#include "state/audit.h"
#include "state/restore_inner.h"
#include "state/table.h"
#include "state/timers.h"

#define SCRATCH_PAGES_MIN 64U /* more than the least that arena_create takes */

/* An old lane in scratch memory. */
struct scratch {
    void *memory;
    size_t bytes;
    struct arena *arena;
    struct heap *heap;
    uint32_t state_count;
    struct table **tables; /* by object; NULL where it is none */
    struct timers **timers;
};

static void scratch_close(const struct restore_config *config, struct scratch *scratch)
{
    for (uint32_t state = 0; state < scratch->state_count; state++) {
        table_destroy(scratch->tables == NULL ? NULL : scratch->tables[state]);
        timers_destroy(scratch->timers == NULL ? NULL : scratch->timers[state]);
    }
    free(scratch->tables);
    free(scratch->timers);
    heap_destroy(scratch->heap);
    if (scratch->memory != NULL) {
        config->unmap(config->map_context, scratch->memory, scratch->bytes);
    }
    *scratch = (struct scratch){0};
}

/* Makes the table that a description tells of. */
static int table_like(struct heap *heap, const struct shape_description *description,
                      struct table **out, struct error *error)
{
    struct table_head heads[SHAPE_HEADS_MAX];
    ASSERT(description->head_count <= SHAPE_HEADS_MAX);
    for (uint32_t head = 0; head < description->head_count; head++) {
        heads[head] = (struct table_head){.offset = description->heads[head].offset,
                                          .kind = description->heads[head].kind};
    }
    const struct table_config config = {.name = description->name,
                                        .value_bytes = description->value_bytes,
                                        .key_bytes_max = description->key_bytes_max,
                                        .key_bytes_inline = description->key_bytes_inline,
                                        .key_skip_bytes = description->key_skip_bytes,
                                        .heads = heads,
                                        .head_count = description->head_count};
    if (config.key_bytes_max == 0 || config.key_bytes_inline == 0 ||
        config.key_skip_bytes >= config.key_bytes_max) {
        return error_set(error, -EBADMSG, "state '%s' has keys of no length", config.name);
    }
    return table_create(heap, &config, out, error);
}

/* Makes the shapes of an old lane, in the order of their objects. */
static int shapes_make(struct scratch *scratch, struct span list, struct error *error)
{
    ASSERT(scratch->arena != NULL && scratch->state_count != 0);
    for (uint32_t state = 0; state < scratch->state_count; state++) {
        const struct shape_description *description = shape_list_at(list, state);
        const bool is_heap = description->kind == ARENA_OBJECT_HEAP;
        int code = -EBADMSG;
        if (is_heap != (state == 0) || (is_heap && strcmp(description->name, HEAP_NAME) != 0)) {
            return error_set(error, code, "the list of states in the checkpoint is out of order");
        }
        if (is_heap) {
            code = heap_create(scratch->arena, &scratch->heap, error);
        } else if (description->kind == ARENA_OBJECT_TABLE) {
            code = table_like(scratch->heap, description, &scratch->tables[state], error);
        } else {
            code = timers_create(scratch->heap, description->name, &scratch->timers[state], error);
        }
        if (code != 0) {
            return code == -ENOMEM ? code : -EBADMSG;
        }
    }
    return 0;
}

static int scratch_open(const struct restore *restore, uint32_t lane, struct scratch *scratch,
                        struct error *error)
{
    const struct span list = restore->lists[lane];
    const struct shape_list_head *head = (const void *)list.data;
    const struct restore_config *config = restore->config;
    ASSERT(list.data != NULL && head->shard_count == restore->checkpoint.shard_count);
    scratch->state_count = head->state_count;
    scratch->tables = calloc(head->state_count + 1U, sizeof(*scratch->tables));
    scratch->timers = calloc(head->state_count + 1U, sizeof(*scratch->timers));
    scratch->bytes = arena_memory_bytes(head->page_count < SCRATCH_PAGES_MIN ? SCRATCH_PAGES_MIN
                                                                             : head->page_count,
                                        head->shard_count);
    scratch->memory = config->map(config->map_context, scratch->bytes);
    if (scratch->memory == NULL || scratch->tables == NULL || scratch->timers == NULL) {
        return error_set(error, -ENOMEM, "no memory of %zu bytes to read a lane of the checkpoint",
                         scratch->bytes);
    }
    const struct arena_config arena = {.memory = scratch->memory,
                                       .bytes = scratch->bytes,
                                       .shard_count = head->shard_count,
                                       .is_lazy = true};
    const int code = arena_create(&arena, &scratch->arena, error);
    return code != 0 ? code : shapes_make(scratch, list, error);
}

/* Copies one state of an old lane to where its shards live now. */
static int state_copy(const struct restore *restore, const struct scratch *scratch, uint32_t state,
                      struct shape_copy *copy, struct error *error)
{
    const struct restore_config *config = restore->config;
    const struct arena_shape *from = &scratch->arena->shapes[state];
    const char *name = scratch->arena->objects[state].name;
    for (copy->shard = 0; copy->shard < scratch->arena->shard_count; copy->shard++) {
        if (restore_is_root_empty(arena_root_read(scratch->arena, state, copy->shard))) {
            continue;
        }
        const uint32_t lane = config->owner(config->owner_context, name, copy->shard);
        ASSERT(lane < config->lane_count);
        struct arena *arena = config->arenas[lane];
        const uint32_t object = arena == NULL ? UINT32_MAX : restore_object(arena, name);
        if (object == UINT32_MAX) {
            (void)error_set(error, -ENOTSUP, "state '%s' has no place on lane %u", name, lane);
            return -ENOTSUP;
        }
        const int code = from->ops->copy(arena->shapes[object].shape, from->shape, copy);
        if (code == -ENOSPC) {
            return error_set(error, code, "the state memory of lane %u is too small for '%s'", lane,
                             name);
        }
        if (code != 0) {
            return error_set(error, code, "shard %u of state '%s' is in the checkpoint twice",
                             copy->shard, name);
        }
    }
    return 0;
}

/* Reads an old lane into scratch memory, checked, as if it went on there. */
static int lane_open(struct restore *restore, uint32_t lane, struct scratch *scratch,
                     struct error *error)
{
    struct arena *arenas[STORE_LANES_MAX] = {NULL};
    ASSERT(lane < STORE_LANES_MAX);
    int code = scratch_open(restore, lane, scratch, error);
    if (code == 0) {
        arenas[lane] = scratch->arena;
        code = restore_pages(restore, arenas, lane, error);
        code = code == RESTORE_MOVED
                   ? error_set(error, -EBADMSG, "a page of lane %u is out of range", lane)
                   : code;
    }
    return code != 0 ? code : restore_adopt(scratch->arena, restore->checkpoint.id, error);
}

/* Reads an old lane and copies what the job still has. */
static int lane_copy(struct restore *restore, uint32_t lane, struct shape_copy *copy,
                     struct error *error)
{
    struct scratch scratch = {0};
    int code = lane_open(restore, lane, &scratch, error);
    for (uint32_t state = 1; code == 0 && state < scratch.state_count; state++) {
        if (!restore_may_drop(restore->config, scratch.arena->objects[state].name)) {
            code = state_copy(restore, &scratch, state, copy, error);
        }
    }
    scratch_close(restore->config, &scratch);
    return code;
}

int restore_copy(struct restore *restore, struct error *error)
{
    ASSERT(restore->config->map != NULL && restore->config->unmap != NULL);
    struct shape_copy copy = {.scratch = malloc(SHAPE_SCRATCH_BYTES)};
    if (copy.scratch == NULL) {
        return error_set(error, -ENOMEM, "no memory to copy state");
    }
    int code = 0;
    for (uint32_t lane = 0; code == 0 && lane < restore->checkpoint.lane_count; lane++) {
        if (restore->lists[lane].data != NULL) {
            code = lane_copy(restore, lane, &copy, error);
        }
    }
    restore->report->entries = copy.entries;
    free(copy.scratch);
    return code;
}

/* Shows one old lane. */
static int lane_look(struct restore *restore, uint32_t lane, restore_view_fn *visit, void *context,
                     struct error *error)
{
    struct scratch scratch = {0};
    int code = lane_open(restore, lane, &scratch, error);
    if (code == 0) {
        const struct restore_view view = {
            .lane = lane,
            .heap = scratch.heap,
            .list = restore->lists[lane],
            .state_count = scratch.state_count,
            .tables = scratch.tables,
            .timers = scratch.timers,
        };
        code = visit(context, &view);
    }
    scratch_close(restore->config, &scratch);
    return code;
}

int restore_look(const struct restore_config *config, restore_view_fn *visit, void *context,
                 struct error *error)
{
    ASSERT(config->map != NULL && config->unmap != NULL);
    struct restore_report report = {0};
    struct restore restore = {.config = config, .report = &report};
    int code = restore_open(&restore, error);
    for (uint32_t lane = 0; code == 0 && lane < restore.checkpoint.lane_count; lane++) {
        if (restore.lists[lane].data != NULL) {
            code = lane_look(&restore, lane, visit, context, error);
        }
    }
    restore_close(&restore);
    return code;
}
