/* SPDX-License-Identifier: Apache-2.0 */
/* Decides how a checkpoint comes back: first every state of it is held against the job's, then
 * pages go to their numbers if lanes, states and owners are the same, else they are copied. The
 * arenas are emptied before, and again when anything fails, so a caller can try an older one. */
#include "state/restore.h"

#include <errno.h>
#include <pthread.h>

#include "state/audit.h"
#include "state/restore_inner.h"

uint32_t restore_object(const struct arena *arena, const char *name)
{
    ASSERT(arena != NULL && name != NULL);
    for (uint32_t object = 0; object < arena->object_count; object++) {
        if (strcmp(arena->objects[object].name, name) == 0) {
            return object;
        }
    }
    return UINT32_MAX;
}

bool restore_may_drop(const struct restore_config *config, const char *name)
{
    ASSERT(config->drop_count == 0 || config->drop_names != NULL);
    for (uint32_t index = 0; index < config->drop_count; index++) {
        if (strcmp(config->drop_names[index], name) == 0) {
            return true;
        }
    }
    return false;
}

bool restore_is_root_empty(const void *root)
{
    static const uint8_t zeros[ARENA_ROOT_BYTES];
    return root == NULL || memcmp(root, zeros, sizeof(zeros)) == 0;
}

struct heap *restore_heap(const struct arena *arena)
{
    const uint32_t object = restore_object(arena, HEAP_NAME);
    ASSERT(object != UINT32_MAX && arena->shapes[object].shape != NULL);
    return arena->shapes[object].shape;
}

void restore_clear(struct arena *arena)
{
    ASSERT(arena != NULL);
    arena_clear(arena);
    for (uint32_t object = 0; object < arena->object_count; object++) {
        const struct arena_shape *shape = &arena->shapes[object];
        const int code = shape->ops == NULL ? 0 : shape->ops->rebuild(shape->shape, NULL, NULL);
        ASSERT(code == 0);
    }
}

static void clear_all(const struct restore_config *config)
{
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        if (config->arenas[lane] != NULL) {
            restore_clear(config->arenas[lane]);
        }
    }
}

/* Whether each segment and directory page is named by something. */
static int orphans_check(const struct audit *audit, struct error *error)
{
    const struct arena *arena = audit->arena;
    for (uint32_t page = 1; page < arena->page_fresh; page++) {
        const uint32_t kind = arena->meta[page].kind;
        const bool is_named = (audit->pages[page / 64U] >> (page % 64U) & 1U) != 0;
        if (!is_named && (kind == ARENA_PAGE_TABLE_SEGMENT || kind == ARENA_PAGE_TABLE_DIRECTORY)) {
            return error_set(error, -EBADMSG, "page %u belongs to no table", page);
        }
    }
    return 0;
}

int restore_adopt(struct arena *arena, uint64_t base_id, struct error *error)
{
    ASSERT(arena != NULL);
    int code = arena_adopt(arena, base_id, error);
    if (code != 0) {
        return code;
    }
    struct audit audit;
    code = audit_init(&audit, arena, restore_heap(arena), error);
    if (code != 0) {
        return code;
    }
    for (uint32_t object = 0; code == 0 && object < arena->object_count; object++) {
        const struct arena_shape *shape = &arena->shapes[object];
        struct error reason = {0};
        code = shape->ops == NULL ? 0 : shape->ops->rebuild(shape->shape, &audit, &reason);
        if (code != 0) {
            (void)error_set(error, code, "state '%s' is damaged: %.300s",
                            arena->objects[object].name, reason.text);
        }
    }
    code = code == 0 ? orphans_check(&audit, error) : code;
    audit_fini(&audit);
    return code;
}

/* Whether two descriptions tell of the same state. */
static bool is_like(const struct shape_description *left, const struct shape_description *right)
{
    ASSERT(left != NULL && right != NULL);
    return strcmp(left->name, right->name) == 0 && left->kind == right->kind &&
           left->value_bytes == right->value_bytes && left->key_bytes_max == right->key_bytes_max &&
           left->key_bytes_inline == right->key_bytes_inline &&
           left->key_skip_bytes == right->key_skip_bytes && left->head_count == right->head_count &&
           memcmp(left->heads, right->heads, left->head_count * sizeof(left->heads[0])) == 0;
}

/* The number of the first lane of the job that has a state; lane_count: none. */
static uint32_t job_lane_with(const struct restore_config *config, const char *name)
{
    uint32_t lane = 0;
    while (lane < config->lane_count &&
           (config->arenas[lane] == NULL ||
            restore_object(config->arenas[lane], name) == UINT32_MAX)) {
        lane++;
    }
    return lane;
}

/* Whether an old lane in front of this one has a state, so that it was counted there. */
static bool is_counted(const struct restore *restore, uint32_t lane, const char *name)
{
    for (uint32_t before = 0; before < lane; before++) {
        const struct span list = restore->lists[before];
        const struct shape_list_head *head = (const void *)list.data;
        for (uint32_t state = 0; list.data != NULL && state < head->state_count; state++) {
            if (strcmp(shape_list_at(list, state)->name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Holds one state of the checkpoint against the job's. */
static int state_match(struct restore *restore, uint32_t lane,
                       const struct shape_description *description, struct error *error)
{
    const struct restore_config *config = restore->config;
    if (description->kind == ARENA_OBJECT_HEAP) {
        return 0;
    }
    const bool is_first = !is_counted(restore, lane, description->name);
    if (restore_may_drop(config, description->name)) {
        restore->report->states_dropped += is_first;
        return 0;
    }
    const uint32_t with = job_lane_with(config, description->name);
    if (with == config->lane_count) {
        if (error != NULL) {
            memcpy(error->place, description->name, sizeof(description->name));
        }
        return error_set(error, -ENOTSUP, "the job no longer has state '%s' of the checkpoint",
                         description->name);
    }
    struct shape_description mine;
    shape_describe(config->arenas[with], restore_object(config->arenas[with], description->name),
                   &mine);
    if (!is_like(description, &mine)) {
        if (error != NULL) {
            memcpy(error->place, description->name, sizeof(description->name));
        }
        return error_set(error, -ENOTSUP,
                         "state '%s' of the checkpoint has values of %u bytes and %u collections, "
                         "the job's has %u and %u",
                         description->name, description->value_bytes, description->head_count,
                         mine.value_bytes, mine.head_count);
    }
    restore->report->states_restored += is_first;
    return 0;
}

/* Holds all states against the job's; counts those that the checkpoint does not have. */
static int states_match(struct restore *restore, struct error *error)
{
    const struct restore_config *config = restore->config;
    ASSERT(restore->checkpoint.lane_count <= STORE_LANES_MAX);
    for (uint32_t lane = 0; lane < restore->checkpoint.lane_count; lane++) {
        const struct span list = restore->lists[lane];
        const struct shape_list_head *head = (const void *)list.data;
        if (list.data != NULL && head->shard_count != restore->checkpoint.shard_count) {
            return error_set(error, -EBADMSG, "lane %u of the checkpoint has %u shards", lane,
                             head->shard_count);
        }
        for (uint32_t state = 0; list.data != NULL && state < head->state_count; state++) {
            const int code = state_match(restore, lane, shape_list_at(list, state), error);
            if (code != 0) {
                return code;
            }
        }
    }
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        const struct arena *arena = config->arenas[lane];
        for (uint32_t object = 0; arena != NULL && object < arena->object_count; object++) {
            const char *name = arena->objects[object].name;
            restore->report->states_new +=
                arena->objects[object].kind != ARENA_OBJECT_HEAP &&
                job_lane_with(config, name) == lane &&
                !is_counted(restore, restore->checkpoint.lane_count, name);
        }
    }
    return 0;
}

/* Whether an arena has exactly the states of an old lane, in their order. */
static bool is_same_lane(const struct arena *arena, struct span list)
{
    if (arena == NULL || list.data == NULL) {
        return arena == NULL && list.data == NULL;
    }
    const struct shape_list_head *head = (const void *)list.data;
    bool is_same = head->state_count == arena->object_count;
    for (uint32_t object = 0; is_same && object < arena->object_count; object++) {
        struct shape_description mine;
        shape_describe(arena, object, &mine);
        is_same = is_like(&mine, shape_list_at(list, object));
    }
    return is_same;
}

/* Whether pages may go back to their numbers, as far as can be told without reading them. */
static bool is_in_place(const struct restore *restore)
{
    const struct restore_config *config = restore->config;
    bool is_same = config->lane_count == restore->checkpoint.lane_count &&
                   restore->report->states_dropped == 0;
    for (uint32_t lane = 0; is_same && lane < config->lane_count; lane++) {
        is_same = is_same_lane(config->arenas[lane], restore->lists[lane]);
    }
    return is_same;
}

/* Whether every shard that holds something is owned by the lane it is on. */
static bool is_owner_same(const struct restore_config *config, uint32_t lane)
{
    const struct arena *arena = config->arenas[lane];
    for (uint32_t object = 0; object < arena->object_count; object++) {
        for (uint32_t shard = 0; shard < arena->shard_count; shard++) {
            if (arena->objects[object].kind != ARENA_OBJECT_HEAP &&
                !restore_is_root_empty(arena_root_read(arena, object, shard)) &&
                config->owner(config->owner_context, arena->objects[object].name, shard) != lane) {
                return false;
            }
        }
    }
    return true;
}

/* One lane's part of a restore in place, on a thread of its own. */
struct lane_adopt {
    struct arena *arena;
    uint64_t base_id;
    int code;
    struct error error;
    pthread_t thread;
    bool is_started;
};

static void *lane_adopt_run(void *context)
{
    struct lane_adopt *part = context;
    part->code = restore_adopt(part->arena, part->base_id, &part->error);
    return NULL;
}

/* Adopts all lanes side by side: they share nothing. */
static int adopt_all(struct restore *restore, struct error *error)
{
    const struct restore_config *config = restore->config;
    struct lane_adopt parts[STORE_LANES_MAX];
    memset(parts, 0, sizeof(parts));
    ASSERT(config->lane_count <= STORE_LANES_MAX);
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        struct lane_adopt *part = &parts[lane];
        part->arena = config->arenas[lane];
        part->base_id = restore->checkpoint.id;
        if (part->arena == NULL) {
            continue;
        }
        part->is_started = lane + 1U < config->lane_count &&
                           pthread_create(&part->thread, NULL, lane_adopt_run, part) == 0;
        if (!part->is_started) {
            (void)lane_adopt_run(part);
        }
    }
    int code = 0;
    for (uint32_t lane = 0; lane < config->lane_count; lane++) {
        if (parts[lane].is_started) {
            (void)pthread_join(parts[lane].thread, NULL);
        }
        if (code == 0 && parts[lane].code != 0) {
            code =
                error_set(error, parts[lane].code, "lane %u: %.480s", lane, parts[lane].error.text);
        }
    }
    return code;
}

/* Puts pages back to their numbers.
 * returns  RESTORE_MOVED when they cannot go there */
static int in_place(struct restore *restore, struct error *error)
{
    const struct restore_config *config = restore->config;
    int code = restore_pages(restore, config->arenas, UINT32_MAX, error);
    if (code == 0) {
        code = adopt_all(restore, error);
    }
    for (uint32_t lane = 0; code == 0 && lane < config->lane_count; lane++) {
        if (config->arenas[lane] != NULL && !is_owner_same(config, lane)) {
            code = RESTORE_MOVED;
        }
    }
    return code;
}

/* Restores an opened checkpoint whose arenas are empty. */
static int bring_back(struct restore *restore, struct error *error)
{
    const struct restore_config *config = restore->config;
    const struct arena *any = NULL;
    for (uint32_t lane = 0; lane < config->lane_count && any == NULL; lane++) {
        any = config->arenas[lane];
    }
    if (any != NULL && any->shard_count != restore->checkpoint.shard_count) {
        return error_set(error, -ENOTSUP, "the checkpoint is of %u shards, the job of %u",
                         restore->checkpoint.shard_count, any->shard_count);
    }
    int code = states_match(restore, error);
    if (code != 0) {
        return code;
    }
    if (is_in_place(restore)) {
        code = in_place(restore, error);
        restore->report->is_in_place = code == 0;
        if (code != RESTORE_MOVED) {
            return code;
        }
        clear_all(config);
        restore->report->pages = 0;
        restore->report->bytes = 0;
    }
    return restore_copy(restore, error);
}

int restore_state(const struct restore_config *config, uint64_t (*now)(void *context),
                  struct restore_report *report, struct error *error)
{
    ASSERT(config != NULL && config->arenas != NULL && config->owner != NULL);
    ASSERT(config->lane_count != 0 && config->lane_count <= STORE_LANES_MAX);
    struct restore_report unused;
    struct restore restore = {.config = config, .report = report == NULL ? &unused : report};
    *restore.report = (struct restore_report){0};
    const uint64_t began_ns = now == NULL ? 0 : now(config->owner_context);
    clear_all(config);
    int code = restore_open(&restore, error);
    if (code == 0) {
        code = bring_back(&restore, error);
    }
    restore_close(&restore);
    if (code != 0) {
        clear_all(config);
        return code;
    }
    restore.report->duration_ns = now == NULL ? 0 : now(config->owner_context) - began_ns;
    return 0;
}
