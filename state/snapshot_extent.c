/* SPDX-License-Identifier: Apache-2.0 */
/* Filling staging buffers: a page or a piece of bytes goes to the open extent of its kind, which is
 * handed over when it is full. Buffers go round: free stack -> open -> news ring -> storage thread
 * -> empties ring -> free stack. */
#include "state/snapshot_inner.h"
#include "state/snapshot_ring.h"

static_assert(EXTENT_ITEMS_MAX >= EXTENT_IMAGES_MAX, "items never end before images do");

void snapshot_say(struct snapshot *snapshot, const struct snapshot_news *news)
{
    ASSERT(news->kind != 0);
    const bool is_said = snapshot_ring_push(snapshot->news, news, sizeof(*news));
    ASSERT(is_said); /* each buffer is in it once, and the rest is sparse */
}

void snapshot_refill(struct snapshot *snapshot)
{
    ASSERT(snapshot->free_count <= snapshot->config.buffer_count);
    uint32_t buffer;
    while (snapshot_ring_pop(snapshot->empties, &buffer, sizeof(buffer))) {
        ASSERT(buffer < snapshot->config.buffer_count);
        ASSERT(snapshot->free_count < snapshot->config.buffer_count);
        snapshot->free[snapshot->free_count++] = buffer;
    }
}

/* Opens a buffer for an extent.
 * returns  false when no more than reserve are free */
static bool extent_open(struct snapshot *snapshot, struct snapshot_open *open, uint32_t reserve)
{
    ASSERT(open->buffer == SNAPSHOT_BUFFER_NONE);
    if (snapshot->free_count <= reserve) {
        snapshot_refill(snapshot);
    }
    if (snapshot->free_count <= reserve) {
        return false;
    }
    *open = (struct snapshot_open){.buffer = snapshot->free[--snapshot->free_count]};
    return true;
}

/* Hands an extent over, its head filled in. */
static void extent_close(struct snapshot *snapshot, struct snapshot_open *open,
                         enum extent_kind kind, uint32_t total)
{
    ASSERT(open->buffer != SNAPSHOT_BUFFER_NONE);
    ASSERT(open->item_count != 0 || open->bytes != 0);
    struct extent_header *header = (void *)snapshot_buffer(snapshot, open->buffer);
    *header = (struct extent_header){.magic = EXTENT_MAGIC,
                                     .version = EXTENT_VERSION,
                                     .kind = (uint16_t)kind,
                                     .checkpoint = snapshot->id,
                                     .lane = snapshot->config.lane,
                                     .number = snapshot->numbers[kind]++,
                                     .item_count = open->item_count,
                                     .image_count = open->image_count,
                                     .facts_bytes = open->bytes,
                                     .facts_total = total};
    snapshot_say(snapshot, &(struct snapshot_news){.kind = SNAPSHOT_NEWS_EXTENT,
                                                   .buffer = open->buffer,
                                                   .id = snapshot->id,
                                                   .at_ns = snapshot->now_ns});
    open->buffer = SNAPSHOT_BUFFER_NONE;
}

bool snapshot_stage_page(struct snapshot *snapshot, const struct arena_page_view *view,
                         uint32_t reserve)
{
    ASSERT(view->page != 0 && view->shard < ARENA_SHARD_COUNT_MAX);
    struct snapshot_open *open = &snapshot->pages_open;
    if (snapshot->free_count < reserve) {
        return false; /* the open one, too, is the hook's */
    }
    if (open->buffer == SNAPSHOT_BUFFER_NONE && !extent_open(snapshot, open, reserve)) {
        return false;
    }
    uint8_t *buffer = snapshot_buffer(snapshot, open->buffer);
    struct extent_page *items = (void *)(buffer + sizeof(struct extent_header));
    items[open->item_count++] = (struct extent_page){
        .page = view->page, .shard = (uint16_t)view->shard, .kind = (uint8_t)view->kind};
    if (view->kind != ARENA_PAGE_FREE) {
        memcpy(buffer + EXTENT_HEAD_BYTES + (size_t)open->image_count * ARENA_PAGE_BYTES,
               view->image, ARENA_PAGE_BYTES);
        open->image_count++;
    }
    if (open->image_count == EXTENT_IMAGES_MAX || open->item_count == EXTENT_ITEMS_MAX) {
        extent_close(snapshot, open, EXTENT_PAGES, 0);
    }
    return true;
}

uint32_t snapshot_stage_bytes(struct snapshot *snapshot, struct snapshot_bytes *from,
                              uint32_t bytes_max)
{
    ASSERT(from->done <= from->bytes && bytes_max != 0);
    struct snapshot_open *open = &snapshot->bytes_open;
    uint32_t staged = 0;
    while (from->done != from->bytes && staged != bytes_max) {
        if (open->buffer == SNAPSHOT_BUFFER_NONE &&
            !extent_open(snapshot, open, snapshot->reserve)) {
            break;
        }
        uint32_t step = from->bytes - from->done;
        step = step < bytes_max - staged ? step : bytes_max - staged;
        step = step < EXTENT_FACTS_MAX - open->bytes ? step : EXTENT_FACTS_MAX - open->bytes;
        memcpy(snapshot_buffer(snapshot, open->buffer) + EXTENT_HEAD_BYTES + open->bytes,
               from->data + from->done, step);
        open->bytes += step;
        from->done += step;
        staged += step;
        if (open->bytes == EXTENT_FACTS_MAX || from->done == from->bytes) {
            extent_close(snapshot, open, from->kind, from->bytes);
        }
    }
    return staged;
}

void snapshot_close_pages(struct snapshot *snapshot)
{
    ASSERT(snapshot->bytes_open.buffer == SNAPSHOT_BUFFER_NONE);
    if (snapshot->pages_open.buffer != SNAPSHOT_BUFFER_NONE) {
        extent_close(snapshot, &snapshot->pages_open, EXTENT_PAGES, 0);
    }
}

void snapshot_discard(struct snapshot *snapshot)
{
    struct snapshot_open *const opens[] = {&snapshot->pages_open, &snapshot->bytes_open};
    for (uint32_t index = 0; index < COUNT_OF(opens); index++) {
        if (opens[index]->buffer != SNAPSHOT_BUFFER_NONE) {
            ASSERT(snapshot->free_count < snapshot->config.buffer_count);
            snapshot->free[snapshot->free_count++] = opens[index]->buffer;
            opens[index]->buffer = SNAPSHOT_BUFFER_NONE;
        }
    }
}
