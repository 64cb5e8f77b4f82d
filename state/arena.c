/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the caller's memory: page 0 holds struct arena, pages 1.. are handed out, and behind
 * the last one lie the metadata arrays. They are at the end so that page numbers mean the same in
 * a memory of another size, which restore needs.
 *
 * Free pages form a stack through links; pages never handed out lie above page_fresh. A freed page
 * keeps the epoch in which it was freed, so that an incremental checkpoint can tell. */
#include "state/arena.h"

#include <errno.h>

#define ARENA_ANCHOR_MAGIC UINT32_C(0x616e6368)

/* The first record of an anchor page; the roots follow it. */
struct arena_anchor {
    uint32_t magic;
    uint32_t shard;
    uint32_t index;
    uint32_t reserved[13];
};
static_assert(sizeof(struct arena_anchor) == ARENA_ROOT_BYTES, "roots follow at their own size");
static_assert(sizeof(struct arena) <= ARENA_PAGE_BYTES, "the struct lives in page 0");

static size_t round_up(size_t value, size_t unit)
{
    ASSERT(unit != 0);
    return (value + unit - 1) / unit * unit;
}

/* Bytes behind the pages when there are page_count of them. */
static size_t tail_bytes(size_t page_count, uint32_t shard_count)
{
    const size_t per_page = sizeof(struct arena_page_meta) + sizeof(struct arena_page_link);
    const size_t anchors = (size_t)shard_count * ARENA_ANCHOR_COUNT_MAX * sizeof(uint32_t);
    const size_t objects =
        ARENA_OBJECT_COUNT_MAX * (sizeof(struct arena_object) + sizeof(struct arena_shape));
    const size_t groups = ((page_count >> ARENA_GROUP_SHIFT) + 1U) * sizeof(uint32_t);
    return round_up(page_count * per_page, CACHE_LINE_BYTES) + objects + anchors + groups;
}

size_t arena_memory_bytes(uint32_t page_count, uint32_t shard_count)
{
    ASSERT(page_count != 0);
    ASSERT(shard_count != 0 && shard_count <= ARENA_SHARD_COUNT_MAX);
    return (size_t)page_count * ARENA_PAGE_BYTES +
           round_up(tail_bytes(page_count, shard_count), ARENA_PAGE_BYTES);
}

static int config_check(const struct arena_config *config, struct error *error)
{
    ASSERT(config != NULL);
    if (config->memory == NULL || (uintptr_t)config->memory % ARENA_PAGE_BYTES != 0) {
        return error_set(error, -EINVAL, "state memory is not aligned to %u bytes",
                         ARENA_PAGE_BYTES);
    }
    if (config->shard_count == 0 || config->shard_count > ARENA_SHARD_COUNT_MAX) {
        return error_set(error, -EINVAL, "shard count %u is not in 1..%u", config->shard_count,
                         ARENA_SHARD_COUNT_MAX);
    }
    const size_t least = tail_bytes(0, config->shard_count) + (size_t)8 * ARENA_PAGE_BYTES;
    if (config->bytes < least) {
        return error_set(error, -EINVAL, "state memory of %zu bytes is too small, need %zu",
                         config->bytes, least);
    }
    return 0;
}

/* The largest page count whose metadata still fits behind it. */
static uint32_t pages_fit(const struct arena_config *config)
{
    ASSERT_SLOW(config != NULL);
    size_t page_count = config->bytes / ARENA_PAGE_BYTES;
    page_count = page_count > UINT32_MAX ? UINT32_MAX : page_count;
    while (page_count * ARENA_PAGE_BYTES + tail_bytes(page_count, config->shard_count) >
           config->bytes) {
        const size_t over = page_count * ARENA_PAGE_BYTES +
                            tail_bytes(page_count, config->shard_count) - config->bytes;
        page_count -= over / (ARENA_PAGE_BYTES + 16) + 1;
    }
    return (uint32_t)page_count;
}

int arena_create(const struct arena_config *config, struct arena **out, struct error *error)
{
    ASSERT(config != NULL && out != NULL);
    const int result = config_check(config, error);
    if (result != 0) {
        return result;
    }
    uint8_t *base = config->memory;
    const uint32_t page_count = pages_fit(config);
    uint8_t *tail = base + (size_t)page_count * ARENA_PAGE_BYTES;
    const size_t pages_bytes = round_up(
        (size_t)page_count * (sizeof(struct arena_page_meta) + sizeof(struct arena_page_link)),
        CACHE_LINE_BYTES);
    memset(tail, 0, tail_bytes(page_count, config->shard_count));
    for (uint32_t page = 0; page < page_count && !config->is_lazy; page++) {
        *(volatile uint8_t *)(base + ((size_t)page << ARENA_PAGE_SHIFT)) = 0;
    }
    struct arena *arena = (struct arena *)(void *)base;
    *arena = (struct arena){
        .base = base,
        .meta = (struct arena_page_meta *)(void *)tail,
        .links = (struct arena_page_link *)(void *)(tail + (size_t)page_count *
                                                               sizeof(struct arena_page_meta)),
        .objects = (struct arena_object *)(void *)(tail + pages_bytes),
        .epoch = 1,
        .page_count = page_count,
        .page_fresh = 1,
        .shard_count = config->shard_count,
        .warn_pages_free = config->warn_pages_free,
        .reserve_pages = config->reserve_pages,
        .preimage = config->preimage,
        .preimage_context = config->preimage_context,
    };
    arena->shapes = (struct arena_shape *)(void *)(arena->objects + ARENA_OBJECT_COUNT_MAX);
    arena->anchors = (uint32_t *)(void *)(arena->shapes + ARENA_OBJECT_COUNT_MAX);
    arena->groups = arena->anchors + (size_t)config->shard_count * ARENA_ANCHOR_COUNT_MAX;
    ASSERT((uint8_t *)(arena->groups + (page_count >> ARENA_GROUP_SHIFT) + 1U) <=
           base + config->bytes);
    *out = arena;
    return 0;
}

void arena_preimage_set(struct arena *arena, arena_preimage_fn *preimage, void *context)
{
    ASSERT(arena != NULL);
    arena->preimage = preimage;
    arena->preimage_context = context;
}

struct arena_page_view arena_page_view(const struct arena *arena, uint32_t page)
{
    ASSERT(page != 0 && page < arena->page_count);
    const struct arena_page_meta *meta = &arena->meta[page];
    ASSERT(meta->epoch <= arena->epoch);
    return (struct arena_page_view){.page = page,
                                    .epoch = meta->epoch,
                                    .shard = meta->shard,
                                    .kind = meta->kind,
                                    .image = arena->base + ((uint64_t)page << ARENA_PAGE_SHIFT)};
}

void arena_page_touch(struct arena *arena, uint32_t page)
{
    ASSERT(page != 0 && page < arena->page_count);
    ASSERT(arena->meta[page].epoch < arena->epoch);
    if (arena->preimage != NULL) {
        const struct arena_page_view view = arena_page_view(arena, page);
        arena->counters.preimages += view.kind != ARENA_PAGE_FREE;
        arena->preimage(arena->preimage_context, &view);
    }
    arena->meta[page].epoch = arena->epoch;
    arena->groups[page >> ARENA_GROUP_SHIFT] = arena->epoch;
}

/* True when the test seam refuses this acquire. */
static bool is_refused(struct arena *arena)
{
    ASSERT_SLOW(arena != NULL);
    if (LIKELY(arena->acquire_fail_after == 0)) {
        return false;
    }
    if (arena->acquire_fail_after == 1) {
        return true;
    }
    arena->acquire_fail_after--;
    return false;
}

uint32_t arena_page_acquire(struct arena *arena, uint32_t shard, enum arena_page_kind kind)
{
    ASSERT(shard < arena->shard_count);
    ASSERT(kind != ARENA_PAGE_FREE && kind < ARENA_PAGE_KIND_COUNT);
    uint32_t page = arena->page_free_head;
    if (UNLIKELY(is_refused(arena) || (page == 0 && arena->page_fresh == arena->page_count))) {
        arena->counters.exhausted++;
        return 0;
    }
    if (page != 0) {
        arena->page_free_head = arena->links[page].next;
    } else {
        page = arena->page_fresh++;
    }
    struct arena_page_meta *meta = &arena->meta[page];
    ASSERT(meta->kind == ARENA_PAGE_FREE);
    if (meta->epoch != arena->epoch) {
        arena_page_touch(arena, page);
    }
    meta->shard = (uint16_t)shard;
    meta->kind = (uint8_t)kind;
    arena->links[page] = (struct arena_page_link){0};
    struct arena_counters *counters = &arena->counters;
    ASSERT(meta->epoch == arena->epoch);
    counters->acquires++;
    counters->pages_used++;
    if (counters->pages_used > counters->pages_used_max) {
        counters->pages_used_max = counters->pages_used;
    }
    return page;
}

void arena_page_release(struct arena *arena, uint32_t page)
{
    ASSERT(page != 0 && page < arena->page_count);
    struct arena_page_meta *meta = &arena->meta[page];
    ASSERT(meta->kind != ARENA_PAGE_FREE);
    if (meta->epoch != arena->epoch) {
        arena_page_touch(arena, page);
    }
    meta->kind = ARENA_PAGE_FREE;
    arena->links[page] = (struct arena_page_link){.next = arena->page_free_head};
    arena->page_free_head = page;
    ASSERT(arena->counters.pages_used != 0);
    arena->counters.releases++;
    arena->counters.pages_used--;
}

uint32_t arena_epoch_advance(struct arena *arena)
{
    ASSERT(arena->epoch != UINT32_MAX);
    return arena->epoch++;
}

uint32_t arena_pages_free(const struct arena *arena)
{
    ASSERT(arena->counters.pages_used < arena->page_count);
    return arena->page_count - 1 - (uint32_t)arena->counters.pages_used;
}

bool arena_is_low(const struct arena *arena)
{
    return arena_pages_free(arena) < arena->warn_pages_free;
}

bool arena_is_full(const struct arena *arena)
{
    return arena_pages_free(arena) < arena->reserve_pages;
}

int arena_object_create(struct arena *arena, enum arena_object_kind kind, const char *name,
                        uint32_t *out, struct error *error)
{
    ASSERT(arena != NULL && name != NULL && out != NULL);
    const size_t name_bytes = strlen(name);
    if (name_bytes == 0 || name_bytes >= ARENA_OBJECT_NAME_BYTES) {
        return error_set(error, -EINVAL, "state name '%s' is not 1 to %u bytes long", name,
                         ARENA_OBJECT_NAME_BYTES - 1);
    }
    for (uint32_t object = 0; object < arena->object_count; object++) {
        if (strcmp(arena->objects[object].name, name) == 0) {
            return error_set(error, -EEXIST, "state name '%s' is used twice", name);
        }
    }
    if (arena->object_count == ARENA_OBJECT_COUNT_MAX) {
        return error_set(error, -ENOSPC, "a lane holds at most %u named states",
                         ARENA_OBJECT_COUNT_MAX);
    }
    struct arena_object *object = &arena->objects[arena->object_count];
    memcpy(object->name, name, name_bytes + 1);
    object->kind = kind;
    *out = arena->object_count++;
    return 0;
}

void arena_object_attach(struct arena *arena, uint32_t object, const struct shape_ops *ops,
                         void *shape)
{
    ASSERT(object < arena->object_count && ops != NULL && shape != NULL);
    ASSERT(arena->shapes[object].ops == NULL);
    arena->shapes[object] = (struct arena_shape){.ops = ops, .shape = shape};
}

/* Where the number of the anchor page with object's root is kept. */
static uint32_t *anchor_of(const struct arena *arena, uint32_t object, uint32_t shard)
{
    ASSERT(object < arena->object_count);
    ASSERT(shard < arena->shard_count);
    return &arena->anchors[shard * ARENA_ANCHOR_COUNT_MAX + object / ARENA_ROOTS_PER_ANCHOR];
}

static size_t root_offset(uint32_t object)
{
    ASSERT_SLOW(object < ARENA_OBJECT_COUNT_MAX);
    return (size_t)(1 + object % ARENA_ROOTS_PER_ANCHOR) * ARENA_ROOT_BYTES;
}

const void *arena_root_read(const struct arena *arena, uint32_t object, uint32_t shard)
{
    const uint32_t page = *anchor_of(arena, object, shard);
    return page == 0 ? NULL : arena_read(arena, page) + root_offset(object);
}

void *arena_root_write(struct arena *arena, uint32_t object, uint32_t shard)
{
    ASSERT_SLOW(arena != NULL);
    uint32_t *anchor = anchor_of(arena, object, shard);
    if (UNLIKELY(*anchor == 0)) {
        const uint32_t page = arena_page_acquire(arena, shard, ARENA_PAGE_ANCHOR);
        if (page == 0) {
            return NULL;
        }
        uint8_t *bytes = arena_write(arena, page);
        memset(bytes, 0, ARENA_PAGE_BYTES);
        const struct arena_anchor head = {
            .magic = ARENA_ANCHOR_MAGIC, .shard = shard, .index = object / ARENA_ROOTS_PER_ANCHOR};
        memcpy(bytes, &head, sizeof(head));
        *anchor = page;
    }
    ASSERT(arena->meta[*anchor].kind == ARENA_PAGE_ANCHOR);
    ASSERT_SLOW(arena->meta[*anchor].shard == shard);
    return arena_write(arena, *anchor) + root_offset(object);
}

void arena_fail_after(struct arena *arena, uint32_t acquire_count)
{
    ASSERT(arena != NULL);
    arena->acquire_fail_after = acquire_count;
}

void arena_clear(struct arena *arena)
{
    ASSERT(arena != NULL);
    const size_t page_count = arena->page_count;
    memset(arena->meta, 0, page_count * sizeof(*arena->meta));
    memset(arena->links, 0, page_count * sizeof(*arena->links));
    memset(arena->groups, 0, ((page_count >> ARENA_GROUP_SHIFT) + 1U) * sizeof(*arena->groups));
    memset(arena->anchors, 0,
           (size_t)arena->shard_count * ARENA_ANCHOR_COUNT_MAX * sizeof(*arena->anchors));
    arena->epoch = 1;
    arena->page_fresh = 1;
    arena->page_free_head = 0;
    arena->base_id = 0;
    arena->base_epoch = 0;
    arena->counters = (struct arena_counters){0};
}

/* Takes over an anchor page.
 * returns  whether it is one, and the only one in its place */
static bool anchor_adopt(struct arena *arena, uint32_t page)
{
    ASSERT_SLOW(arena->meta[page].kind == ARENA_PAGE_ANCHOR);
    struct arena_anchor head;
    memcpy(&head, arena_read(arena, page), sizeof(head));
    if (head.magic != ARENA_ANCHOR_MAGIC || head.shard != arena->meta[page].shard ||
        head.index >= ARENA_ANCHOR_COUNT_MAX) {
        return false;
    }
    uint32_t *place = &arena->anchors[head.shard * ARENA_ANCHOR_COUNT_MAX + head.index];
    const bool is_first = *place == 0;
    *place = page;
    return is_first;
}

int arena_adopt(struct arena *arena, uint64_t base_id, struct error *error)
{
    ASSERT(arena->epoch == 1 && arena->page_fresh == 1 && arena->counters.pages_used == 0);
    uint32_t last = arena->page_count - 1U;
    while (last != 0 && arena->meta[last].kind == ARENA_PAGE_FREE) {
        last--;
    }
    arena->page_fresh = last + 1U;
    for (uint32_t page = last; page != 0; page--) {
        struct arena_page_meta *meta = &arena->meta[page];
        if (meta->kind >= ARENA_PAGE_KIND_COUNT || meta->shard >= arena->shard_count) {
            return error_set(error, -EBADMSG, "page %u is of kind %u, shard %u", page, meta->kind,
                             meta->shard);
        }
        meta->epoch = 1;
        if (meta->kind == ARENA_PAGE_FREE) {
            arena->links[page].next = arena->page_free_head;
            arena->page_free_head = page;
            continue;
        }
        arena->counters.pages_used++;
        if (meta->kind == ARENA_PAGE_ANCHOR && !anchor_adopt(arena, page)) {
            return error_set(error, -EBADMSG, "page %u is no anchor of shard %u", page,
                             meta->shard);
        }
    }
    for (uint32_t group = 0; group <= last >> ARENA_GROUP_SHIFT; group++) {
        arena->groups[group] = 1;
    }
    arena->counters.pages_used_max = arena->counters.pages_used;
    arena->base_id = base_id;
    arena->base_epoch = arena_epoch_advance(arena);
    return 0;
}

void arena_check(const struct arena *arena)
{
    uint64_t pages_used = 0;
    for (uint32_t page = 1; page < arena->page_count; page++) {
        const struct arena_page_meta *meta = &arena->meta[page];
        ASSERT(meta->kind < ARENA_PAGE_KIND_COUNT);
        ASSERT(meta->epoch <= arena->epoch);
        ASSERT(meta->epoch <= arena->groups[page >> ARENA_GROUP_SHIFT]);
        ASSERT(page < arena->page_fresh || meta->kind == ARENA_PAGE_FREE);
        pages_used += meta->kind != ARENA_PAGE_FREE;
        if (meta->kind == ARENA_PAGE_ANCHOR) {
            const struct arena_anchor *head = (const void *)arena_read(arena, page);
            ASSERT(head->magic == ARENA_ANCHOR_MAGIC && head->shard == meta->shard);
            ASSERT(arena->anchors[head->shard * ARENA_ANCHOR_COUNT_MAX + head->index] == page);
        }
    }
    ASSERT(pages_used == arena->counters.pages_used);
    uint64_t pages_free = arena->page_count - arena->page_fresh;
    for (uint32_t page = arena->page_free_head; page != 0; page = arena->links[page].next) {
        ASSERT(arena->meta[page].kind == ARENA_PAGE_FREE);
        pages_free++;
    }
    ASSERT(pages_free == arena_pages_free(arena));
}
