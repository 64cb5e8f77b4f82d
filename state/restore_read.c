/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a checkpoint's extents: lists of states, facts, and pages to their numbers. The store has
 * checked sums; what an extent says is checked here before it is believed. */
#include <errno.h>
#include <stdlib.h>

#include "state/audit.h"
#include "state/restore_inner.h"

#define BYTES_TOTAL_MAX (UINT32_C(64) << 20) /* of a lane's facts */

/* Bytes of each lane that come in pieces, in any order. */
struct pieces {
    uint64_t id; /* only this checkpoint's; 0: the last one read wins */
    uint32_t lane_count;
    struct {
        uint8_t *data;
        uint32_t total;
        uint32_t have;
        uint64_t id;
    } lanes[STORE_LANES_MAX];
};

static void pieces_free(struct pieces *pieces)
{
    ASSERT(pieces->lane_count <= STORE_LANES_MAX);
    for (uint32_t lane = 0; lane < pieces->lane_count; lane++) {
        free(pieces->lanes[lane].data);
    }
}

/* Takes one piece. */
static int piece_take(void *context, const struct store_checkpoint *checkpoint,
                      const uint8_t *extent)
{
    struct pieces *pieces = context;
    const struct extent_header *header = (const void *)extent;
    if (pieces->id != 0 && checkpoint->id != pieces->id) {
        return 0; /* facts of a base are history */
    }
    if (header->checkpoint != checkpoint->id || header->lane >= pieces->lane_count ||
        header->facts_total > BYTES_TOTAL_MAX || header->facts_bytes > EXTENT_FACTS_MAX ||
        header->number > BYTES_TOTAL_MAX / EXTENT_FACTS_MAX) {
        return -EBADMSG;
    }
    const uint32_t begin = header->number * EXTENT_FACTS_MAX;
    ASSERT(EXTENT_HEAD_BYTES + header->facts_bytes <= EXTENT_BYTES);
    if (pieces->lanes[header->lane].id != checkpoint->id) {
        free(pieces->lanes[header->lane].data);
        pieces->lanes[header->lane].data = calloc(1, header->facts_total + 1U);
        pieces->lanes[header->lane].total = header->facts_total;
        pieces->lanes[header->lane].have = 0;
        pieces->lanes[header->lane].id = checkpoint->id;
    }
    const uint32_t total = pieces->lanes[header->lane].total;
    if (pieces->lanes[header->lane].data == NULL) {
        return -ENOMEM;
    }
    if (header->facts_total != total || begin > total || header->facts_bytes > total - begin) {
        return -EBADMSG;
    }
    memcpy(pieces->lanes[header->lane].data + begin, extent + EXTENT_HEAD_BYTES,
           header->facts_bytes);
    pieces->lanes[header->lane].have += header->facts_bytes;
    return 0;
}

/* Words for a refusal of our own, which the store has none for. */
static int explain(int code, uint64_t id, struct error *error)
{
    ASSERT(code != 0);
    if (error != NULL && error->text[0] == '\0') {
        (void)error_set(error, code,
                        code == -ENOMEM ? "no memory to read checkpoint %lu"
                                        : "checkpoint %lu is damaged: an extent contradicts itself",
                        (unsigned long)id);
    }
    return code;
}

/* Reads the pieces of one kind of all lanes.
 * returns  0, -EBADMSG or -errno; pieces_free is due in any case */
static int pieces_read(struct store *store, const struct store_checkpoint *checkpoint,
                       uint32_t kind, struct pieces *pieces, struct error *error)
{
    if (checkpoint->lane_count == 0 || checkpoint->lane_count > STORE_LANES_MAX) {
        return error_set(error, -EBADMSG, "checkpoint %lu is of %u lanes",
                         (unsigned long)checkpoint->id, checkpoint->lane_count);
    }
    pieces->lane_count = checkpoint->lane_count;
    const int code = store_read(store, checkpoint->id, UINT32_MAX, kind, piece_take, pieces, error);
    if (code != 0) {
        return explain(code, checkpoint->id, error);
    }
    for (uint32_t lane = 0; lane < pieces->lane_count; lane++) {
        if (pieces->lanes[lane].have != pieces->lanes[lane].total) {
            return error_set(error, -EBADMSG, "checkpoint %lu lacks a part of lane %u",
                             (unsigned long)checkpoint->id, lane);
        }
    }
    return 0;
}

/* The checkpoint's entry in the store. */
static int checkpoint_find(const struct store *store, uint64_t id, struct store_checkpoint *out,
                           struct error *error)
{
    ASSERT(store != NULL && out != NULL);
    return store_find(store, id, out)
               ? 0
               : error_set(error, -ENOENT, "there is no checkpoint %lu", (unsigned long)id);
}

/* An -EIO of the disk makes a checkpoint as unusable as a wrong sum does. */
static int as_damage(int code)
{
    return code == -EIO ? -EBADMSG : code;
}

int restore_open(struct restore *restore, struct error *error)
{
    const struct restore_config *config = restore->config;
    ASSERT(config->store != NULL);
    int code = checkpoint_find(config->store, config->id, &restore->checkpoint, error);
    if (code != 0) {
        return code;
    }
    struct pieces pieces = {0};
    code = pieces_read(config->store, &restore->checkpoint, EXTENT_STATES, &pieces, error);
    for (uint32_t lane = 0; code == 0 && lane < pieces.lane_count; lane++) {
        if (pieces.lanes[lane].data == NULL) {
            continue;
        }
        restore->lists[lane] = (struct span){pieces.lanes[lane].data, pieces.lanes[lane].total};
        pieces.lanes[lane].data = NULL;
        code = shape_list_check(restore->lists[lane], error);
    }
    pieces_free(&pieces);
    return as_damage(code);
}

void restore_close(struct restore *restore)
{
    ASSERT(restore != NULL);
    for (uint32_t lane = 0; lane < STORE_LANES_MAX; lane++) {
        free((void *)(uintptr_t)restore->lists[lane].data);
    }
}

/* Where pages go while they are read. */
struct pages {
    struct restore *restore;
    struct arena *const *arenas;
    bool has_no_place;
};

static int page_put(struct pages *pages, struct arena *arena, const struct extent_page *item,
                    const uint8_t *image)
{
    ASSERT(image != NULL);
    if (item->page == 0 || item->kind >= ARENA_PAGE_KIND_COUNT ||
        item->shard >= pages->restore->checkpoint.shard_count) {
        return -EBADMSG;
    }
    if (item->page >= arena->page_count) {
        pages->has_no_place = true;
        return -ENOSPC;
    }
    arena->meta[item->page].kind = item->kind;
    arena->meta[item->page].shard = item->shard;
    if (item->kind != ARENA_PAGE_FREE) {
        memcpy(arena->base + ((uint64_t)item->page << ARENA_PAGE_SHIFT), image, ARENA_PAGE_BYTES);
    }
    return 0;
}

static int pages_take(void *context, const struct store_checkpoint *checkpoint,
                      const uint8_t *extent)
{
    struct pages *pages = context;
    const struct extent_header *header = (const void *)extent;
    const struct extent_page *items = (const void *)(header + 1);
    struct restore *restore = pages->restore;
    if (header->checkpoint != checkpoint->id || header->lane >= restore->checkpoint.lane_count ||
        pages->arenas[header->lane] == NULL || header->image_count > EXTENT_IMAGES_MAX ||
        header->item_count > EXTENT_ITEMS_MAX) {
        return -EBADMSG;
    }
    const uint8_t *image = extent + EXTENT_HEAD_BYTES;
    const uint8_t *end = image + (size_t)header->image_count * ARENA_PAGE_BYTES;
    for (uint32_t index = 0; index < header->item_count; index++) {
        const bool has_image = items[index].kind != ARENA_PAGE_FREE;
        if (has_image && image == end) {
            return -EBADMSG;
        }
        const int code = page_put(pages, pages->arenas[header->lane], &items[index], image);
        if (code != 0) {
            return code;
        }
        image += has_image ? ARENA_PAGE_BYTES : 0;
    }
    restore->report->pages += header->image_count;
    restore->report->bytes += extent_bytes(extent);
    return image == end ? 0 : -EBADMSG;
}

int restore_pages(struct restore *restore, struct arena *const *arenas, uint32_t lane,
                  struct error *error)
{
    struct pages pages = {.restore = restore, .arenas = arenas};
    ASSERT(lane == UINT32_MAX || lane < restore->checkpoint.lane_count);
    const int code = store_read(restore->config->store, restore->checkpoint.id, lane, EXTENT_PAGES,
                                pages_take, &pages, error);
    if (pages.has_no_place) {
        return RESTORE_MOVED;
    }
    return as_damage(code == 0 ? 0 : explain(code, restore->checkpoint.id, error));
}

int restore_facts(struct store *store, uint64_t id, restore_facts_fn *visit, void *context,
                  struct error *error)
{
    ASSERT(store != NULL && visit != NULL);
    struct store_checkpoint checkpoint;
    int code = checkpoint_find(store, id, &checkpoint, error);
    if (code != 0) {
        return code;
    }
    struct pieces pieces = {.id = id};
    code = as_damage(pieces_read(store, &checkpoint, EXTENT_FACTS, &pieces, error));
    for (uint32_t lane = 0; code == 0 && lane < pieces.lane_count; lane++) {
        code =
            visit(context, lane, (struct span){pieces.lanes[lane].data, pieces.lanes[lane].total});
    }
    pieces_free(&pieces);
    return code;
}
