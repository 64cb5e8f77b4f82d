/* SPDX-License-Identifier: Apache-2.0 */
/* A heap page holds blocks of one class for one shard. Its header counts them and heads a chain of
 * released blocks inside the page; blocks never used lie above fresh. Which pages have room is
 * known outside the pages, in links, so that linking one dirties no other page.
 *
 *     page   | class used free fresh | block | block | ...
 *     blob   | bytes 0 | content |                              when it fits one block
 *     blob   | bytes pieces | next index | next queued | piece, piece, ... |
 *
 * A long blob's pieces are whole pages (ARENA_PAGE_BLOB), the last one a block of the rest. */
#include "state/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "state/heap_inner.h"

static const uint16_t class_bytes[HEAP_CLASS_COUNT] = {
    16,  32,  48,  64,  80,  96,  112, 128, 144,  160,  192,  224, 256,
    288, 336, 400, 448, 496, 576, 672, 816, 1008, 1360, 2032, 4080};

int heap_create(struct arena *arena, struct heap **out, struct error *error)
{
    ASSERT(arena != NULL && out != NULL);
    struct heap *heap = calloc(1, sizeof(*heap));
    uint32_t *partial = calloc((size_t)arena->shard_count * HEAP_CLASS_COUNT, sizeof(*partial));
    int result = -ENOMEM;
    if (heap == NULL || partial == NULL) {
        (void)error_set(error, result, "no memory for the heap's lists");
        goto fail;
    }
    heap->arena = arena;
    heap->partial = partial;
    uint32_t class_index = 0;
    for (uint32_t units = 1; units <= HEAP_BLOCK_BYTES_MAX / HEAP_UNIT; units++) {
        class_index += class_bytes[class_index] < units * HEAP_UNIT;
        heap->class_of[units] = (uint8_t)class_index;
    }
    result = arena_object_create(arena, ARENA_OBJECT_HEAP, HEAP_NAME, &heap->object, error);
    if (result != 0) {
        goto fail;
    }
    arena_object_attach(arena, heap->object, &heap_shape_ops, heap);
    *out = heap;
    return 0;
fail:
    free(partial);
    free(heap);
    return result;
}

void heap_destroy(struct heap *heap)
{
    if (heap != NULL) {
        free(heap->partial);
        free(heap);
    }
}

uint32_t heap_class_bytes(uint32_t bytes)
{
    ASSERT(bytes != 0 && bytes <= HEAP_BLOCK_BYTES_MAX);
    uint32_t class_index = 0;
    while (class_bytes[class_index] < bytes) {
        class_index++;
    }
    return class_bytes[class_index];
}

static uint32_t *partial_of(struct heap *heap, uint32_t shard, uint32_t class_index)
{
    ASSERT(class_index < HEAP_CLASS_COUNT);
    ASSERT_SLOW(shard < heap->arena->shard_count);
    return &heap->partial[shard * HEAP_CLASS_COUNT + class_index];
}

void heap_partial_link(struct heap *heap, uint32_t page, uint32_t class_index)
{
    ASSERT_SLOW(heap->arena != NULL);
    struct arena_page_link *links = heap->arena->links;
    uint32_t *head = partial_of(heap, heap->arena->meta[page].shard, class_index);
    ASSERT(*head != page);
    links[page] = (struct arena_page_link){.next = *head};
    if (*head != 0) {
        links[*head].prev = page;
    }
    *head = page;
}

static void partial_unlink(struct heap *heap, uint32_t page, uint32_t class_index)
{
    ASSERT_SLOW(heap->arena != NULL);
    struct arena_page_link *links = heap->arena->links;
    const struct arena_page_link link = links[page];
    ASSERT(link.prev != page && link.next != page);
    if (link.prev != 0) {
        links[link.prev].next = link.next;
    } else {
        uint32_t *head = partial_of(heap, heap->arena->meta[page].shard, class_index);
        ASSERT(*head == page);
        *head = link.next;
    }
    if (link.next != 0) {
        links[link.next].prev = link.prev;
    }
    links[page] = (struct arena_page_link){0};
}

bool heap_page_has_room(const struct heap_page *head)
{
    ASSERT_SLOW(head->class_index < HEAP_CLASS_COUNT && head->fresh != 0);
    const uint32_t end = head->fresh * HEAP_UNIT + class_bytes[head->class_index];
    return head->free != 0 || end <= ARENA_PAGE_BYTES;
}

uint32_t heap_class_at(uint32_t class_index)
{
    ASSERT(class_index < HEAP_CLASS_COUNT);
    return class_bytes[class_index];
}

static uint32_t page_with_room(struct heap *heap, uint32_t shard, uint32_t class_index)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    uint32_t page = *partial_of(heap, shard, class_index);
    if (page != 0) {
        return page;
    }
    page = arena_page_acquire(heap->arena, shard, ARENA_PAGE_HEAP);
    if (page != 0) {
        struct heap_page *head = (void *)arena_write(heap->arena, page);
        *head = (struct heap_page){.class_index = (uint16_t)class_index, .fresh = 1};
        heap_partial_link(heap, page, class_index);
    }
    return page;
}

uint64_t heap_acquire(struct heap *heap, uint32_t shard, uint32_t bytes)
{
    ASSERT(bytes != 0 && bytes <= HEAP_BLOCK_BYTES_MAX);
    ASSERT(shard < heap->arena->shard_count);
    const uint32_t class_index = heap->class_of[(bytes + HEAP_UNIT - 1) / HEAP_UNIT];
    const uint32_t page = page_with_room(heap, shard, class_index);
    if (UNLIKELY(page == 0)) {
        return 0;
    }
    uint8_t *base = arena_write(heap->arena, page);
    struct heap_page *head = (void *)base;
    ASSERT(head->class_index == class_index && heap_page_has_room(head));
    uint32_t place = head->free;
    if (place != 0) {
        memcpy(&head->free, base + place * HEAP_UNIT, sizeof(head->free));
    } else {
        place = head->fresh;
        head->fresh = (uint16_t)(place + class_bytes[class_index] / HEAP_UNIT);
    }
    head->used++;
    if (!heap_page_has_room(head)) {
        partial_unlink(heap, page, class_index);
    }
    ASSERT(place != 0 && place < head->fresh);
    heap->counters.blocks_used++;
    heap->counters.bytes_used += class_bytes[class_index];
    return ((uint64_t)page << ARENA_PAGE_SHIFT) + place * HEAP_UNIT;
}

void heap_release(struct heap *heap, uint64_t ref)
{
    const uint32_t page = heap_page(ref);
    const uint32_t offset = ref & (ARENA_PAGE_BYTES - 1);
    ASSERT(heap->arena->meta[page].kind == ARENA_PAGE_HEAP);
    ASSERT(offset != 0 && offset % HEAP_UNIT == 0);
    uint8_t *base = arena_write(heap->arena, page);
    struct heap_page *head = (void *)base;
    ASSERT(head->used != 0);
    if (!heap_page_has_room(head)) {
        heap_partial_link(heap, page, head->class_index);
    }
    memcpy(base + offset, &head->free, sizeof(head->free));
    head->free = (uint16_t)(offset / HEAP_UNIT);
    head->used--;
    heap->counters.blocks_used--;
    heap->counters.bytes_used -= class_bytes[head->class_index];
    if (head->used == 0) {
        partial_unlink(heap, page, head->class_index);
        arena_page_release(heap->arena, page);
    }
}

uint32_t heap_block_bytes(const struct heap *heap, uint64_t ref)
{
    ASSERT(heap->arena->meta[heap_page(ref)].kind == ARENA_PAGE_HEAP);
    const struct heap_page *head = (const void *)arena_read(heap->arena, heap_page(ref));
    return class_bytes[head->class_index];
}

static const struct blob_index *index_read(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena->meta[heap_page(ref)].kind == ARENA_PAGE_HEAP);
    return heap_read(heap, ref);
}

uint32_t heap_blob_bytes(const struct heap *heap, uint64_t ref)
{
    ASSERT(ref != 0);
    return index_read(heap, ref)->bytes;
}

/* Where a blob's bytes come from: the caller's memory, or another blob. */
struct source {
    const uint8_t *data;
    uint64_t blob; /* 0: from data */
};

static void source_read(const struct heap *heap, const struct source *source, uint32_t offset,
                        uint32_t bytes, void *into)
{
    ASSERT(source->blob != 0 || bytes == 0 || source->data != NULL);
    ASSERT(into != NULL);
    if (source->blob != 0) {
        heap_blob_read(heap, source->blob, offset, bytes, into);
    } else if (bytes != 0) {
        memcpy(into, source->data + offset, bytes);
    }
}

static uint64_t short_store(struct heap *heap, uint32_t shard, const struct source *source,
                            uint32_t bytes)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT(!blob_is_long(bytes));
    const uint64_t ref = heap_acquire(heap, shard, BLOB_HEAD_BYTES + bytes);
    if (ref != 0) {
        uint8_t *block = heap_write(heap, ref);
        const uint32_t head[2] = {bytes, 0};
        memcpy(block, head, sizeof(head));
        source_read(heap, source, 0, bytes, block + BLOB_HEAD_BYTES);
    }
    return ref;
}

static void piece_release(struct heap *heap, uint64_t piece)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(piece != 0);
    if (heap->arena->meta[heap_page(piece)].kind == ARENA_PAGE_BLOB) {
        arena_page_release(heap->arena, heap_page(piece));
        heap->counters.blob_pages_used--;
    } else {
        heap_release(heap, piece);
    }
}

/* Part of a source. */
struct source_range {
    uint32_t offset;
    uint32_t bytes;
};

/* Stores at most a page of a source: as a whole page, or as a block of the rest. */
static uint64_t piece_store(struct heap *heap, uint32_t shard, const struct source *source,
                            struct source_range range)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(range.bytes != 0 && range.bytes <= ARENA_PAGE_BYTES);
    uint64_t piece = 0;
    if (range.bytes > HEAP_BLOCK_BYTES_MAX) {
        const uint32_t page = arena_page_acquire(heap->arena, shard, ARENA_PAGE_BLOB);
        piece = (uint64_t)page << ARENA_PAGE_SHIFT;
        heap->counters.blob_pages_used += page != 0;
    } else {
        piece = heap_acquire(heap, shard, range.bytes);
    }
    if (piece != 0) {
        source_read(heap, source, range.offset, range.bytes, heap_write(heap, piece));
    }
    return piece;
}

/* Stores up to one index block's worth of a source.
 * returns  the index block, or 0 with nothing taken */
static uint64_t index_store(struct heap *heap, uint32_t shard, const struct source *source,
                            struct source_range range)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    const uint32_t piece_count = (range.bytes + ARENA_PAGE_BYTES - 1) / ARENA_PAGE_BYTES;
    ASSERT(piece_count != 0 && piece_count <= BLOB_INDEX_PIECES);
    const uint64_t ref = heap_acquire(
        heap, shard, (uint32_t)(sizeof(struct blob_index) + piece_count * sizeof(uint64_t)));
    if (ref == 0) {
        return 0;
    }
    struct blob_index *index = heap_write(heap, ref);
    *index = (struct blob_index){.bytes = range.bytes};
    const uint32_t end = range.offset + range.bytes;
    while (range.offset != end) {
        const uint32_t left = end - range.offset;
        range.bytes = left < ARENA_PAGE_BYTES ? left : ARENA_PAGE_BYTES;
        const uint64_t piece = piece_store(heap, shard, source, range);
        if (piece == 0) {
            break;
        }
        index->pieces[index->piece_count++] = piece;
        range.offset += range.bytes;
    }
    if (range.offset == end) {
        return ref;
    }
    while (index->piece_count != 0) {
        piece_release(heap, index->pieces[--index->piece_count]);
    }
    heap_release(heap, ref);
    return 0;
}

/* How many index blocks a long blob of this length has. */
static uint32_t blob_index_count(uint32_t bytes)
{
    ASSERT(blob_is_long(bytes) && bytes <= HEAP_BLOB_BYTES_MAX);
    return (uint32_t)((bytes + BLOB_INDEX_CONTENT - 1) / BLOB_INDEX_CONTENT);
}

/* Puts a long blob on its shard's queue of pages to free; the root is there since it was stored. */
static void long_queue(struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    struct arena *arena = heap->arena;
    struct heap_root *root =
        arena_root_write(arena, heap->object, arena->meta[heap_page(ref)].shard);
    ASSERT(root != NULL);
    struct blob_index *index = heap_write(heap, ref);
    const uint32_t pages = (index->bytes + ARENA_PAGE_BYTES - 1) / ARENA_PAGE_BYTES;
    heap->counters.blob_pages_queued += pages + blob_index_count(index->bytes);
    index->queued = root->queue;
    root->queue = ref;
}

static uint64_t long_store(struct heap *heap, uint32_t shard, const struct source *source,
                           uint32_t bytes)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT_SLOW(heap->arena != NULL);
    if (arena_root_write(heap->arena, heap->object, shard) == NULL) {
        return 0;
    }
    ASSERT(blob_is_long(bytes) && bytes <= HEAP_BLOB_BYTES_MAX);
    uint64_t first = 0;
    uint64_t last = 0;
    uint32_t stored = 0;
    while (stored != bytes) {
        struct source_range range = {.offset = stored, .bytes = bytes - stored};
        range.bytes = range.bytes < BLOB_INDEX_CONTENT ? range.bytes : BLOB_INDEX_CONTENT;
        const uint64_t ref = index_store(heap, shard, source, range);
        if (ref == 0) {
            break;
        }
        if (first == 0) {
            first = ref;
        } else {
            ((struct blob_index *)heap_write(heap, last))->next = ref;
        }
        last = ref;
        stored += range.bytes;
    }
    if (first != 0) {
        ((struct blob_index *)heap_write(heap, first))->bytes = stored;
    }
    if (stored == bytes) {
        return first;
    }
    if (first != 0) {
        long_queue(heap, first);
    }
    return 0;
}

uint64_t heap_blob_store(struct heap *heap, uint32_t shard, struct span content)
{
    ASSERT(content.bytes <= HEAP_BLOB_BYTES_MAX);
    ASSERT(content.bytes == 0 || content.data != NULL);
    const struct source source = {.data = content.data};
    const uint32_t bytes = (uint32_t)content.bytes;
    return blob_is_long(bytes) ? long_store(heap, shard, &source, bytes)
                               : short_store(heap, shard, &source, bytes);
}

uint64_t heap_blob_copy(struct heap *heap, uint32_t shard, uint64_t ref)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT(ref != 0);
    const struct source source = {.blob = ref};
    const uint32_t bytes = heap_blob_bytes(heap, ref);
    return blob_is_long(bytes) ? long_store(heap, shard, &source, bytes)
                               : short_store(heap, shard, &source, bytes);
}

void heap_blob_release(struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(ref != 0);
    if (blob_is_long(heap_blob_bytes(heap, ref))) {
        long_queue(heap, ref);
    } else {
        heap_release(heap, ref);
    }
}

struct span heap_blob_piece(const struct heap *heap, uint64_t ref, uint32_t offset)
{
    ASSERT_SLOW(heap->arena != NULL);
    const uint32_t bytes = heap_blob_bytes(heap, ref);
    ASSERT(offset <= bytes);
    if (!blob_is_long(bytes) || offset == bytes) {
        const uint8_t *block = heap_read(heap, ref);
        return (struct span){block + BLOB_HEAD_BYTES + offset, bytes - offset};
    }
    uint64_t at = offset;
    while (at >= BLOB_INDEX_CONTENT) {
        ref = index_read(heap, ref)->next;
        at -= BLOB_INDEX_CONTENT;
    }
    const uint8_t *piece = heap_read(heap, index_read(heap, ref)->pieces[at / ARENA_PAGE_BYTES]);
    const uint32_t within = at % ARENA_PAGE_BYTES;
    const uint32_t left = bytes - offset;
    const uint32_t page_left = ARENA_PAGE_BYTES - within;
    return (struct span){piece + within, left < page_left ? left : page_left};
}

void heap_blob_read(const struct heap *heap, uint64_t ref, uint32_t offset, uint32_t bytes,
                    uint8_t *into)
{
    ASSERT((uint64_t)offset + bytes <= heap_blob_bytes(heap, ref));
    while (bytes != 0) {
        const struct span piece = heap_blob_piece(heap, ref, offset);
        const uint32_t step = piece.bytes < bytes ? (uint32_t)piece.bytes : bytes;
        ASSERT(step != 0);
        memcpy(into, piece.data, step);
        into += step;
        offset += step;
        bytes -= step;
    }
}

int heap_blob_compare(const struct heap *heap, uint64_t ref, struct span with)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(with.data != NULL || with.bytes == 0);
    const uint32_t bytes = heap_blob_bytes(heap, ref);
    const uint32_t common = bytes < with.bytes ? bytes : (uint32_t)with.bytes;
    for (uint32_t offset = 0; offset < common;) {
        const struct span piece = heap_blob_piece(heap, ref, offset);
        const uint32_t left = common - offset;
        const uint32_t step = piece.bytes < left ? (uint32_t)piece.bytes : left;
        const int order = memcmp(piece.data, with.data + offset, step);
        if (order != 0) {
            return order;
        }
        offset += step;
    }
    return (bytes > with.bytes) - (bytes < with.bytes);
}

/* Frees one piece of the shard's first queued blob, or its index block once that is empty. */
static void queue_step(struct heap *heap, struct heap_root *root)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(root->queue != 0);
    const uint64_t ref = root->queue;
    struct blob_index *index = heap_write(heap, ref);
    ASSERT(heap->counters.blob_pages_queued != 0);
    heap->counters.blob_pages_queued--;
    if (index->piece_count != 0) {
        piece_release(heap, index->pieces[--index->piece_count]);
        return;
    }
    if (index->next != 0) {
        ((struct blob_index *)heap_write(heap, index->next))->queued = index->queued;
        root->queue = index->next;
    } else {
        root->queue = index->queued;
    }
    heap_release(heap, ref);
}

uint32_t heap_poll(struct heap *heap, uint32_t step_count_max)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(step_count_max != 0);
    struct arena *arena = heap->arena;
    uint32_t steps = 0;
    while (heap_has_queue(heap) && steps < step_count_max) {
        const struct heap_root *root = arena_root_read(arena, heap->object, heap->queue_shard);
        if (root != NULL && root->queue != 0) {
            queue_step(heap, arena_root_write(arena, heap->object, heap->queue_shard));
            steps++;
        } else if (root != NULL && root->trash != 0) {
            trash_step(heap, arena_root_write(arena, heap->object, heap->queue_shard));
            steps++;
        } else {
            heap->queue_shard = (heap->queue_shard + 1) % arena->shard_count;
        }
    }
    return steps;
}

static void page_check(const struct heap *heap, uint32_t page)
{
    const uint8_t *base = arena_read(heap->arena, page);
    const struct heap_page *head = (const void *)base;
    ASSERT(head->class_index < HEAP_CLASS_COUNT);
    ASSERT(head->used != 0);
    const uint32_t units = class_bytes[head->class_index] / HEAP_UNIT;
    uint32_t count = 0;
    for (uint32_t place = head->free; place != 0; count++) {
        ASSERT(place < head->fresh && (place - 1) % units == 0);
        uint16_t next;
        memcpy(&next, base + place * HEAP_UNIT, sizeof(next));
        place = next;
    }
    ASSERT(count + head->used == (head->fresh - 1U) / units);
}

void heap_check(const struct heap *heap)
{
    const struct arena *arena = heap->arena;
    uint32_t with_room = 0;
    uint64_t blocks = 0;
    for (uint32_t page = 1; page < arena->page_fresh; page++) {
        if (arena->meta[page].kind == ARENA_PAGE_HEAP) {
            page_check(heap, page);
            const struct heap_page *head = (const void *)arena_read(arena, page);
            with_room += heap_page_has_room(head);
            blocks += head->used;
        }
    }
    ASSERT(blocks == heap->counters.blocks_used);
    for (uint32_t list = 0; list < arena->shard_count * HEAP_CLASS_COUNT; list++) {
        for (uint32_t page = heap->partial[list]; page != 0; page = arena->links[page].next) {
            const struct heap_page *head = (const void *)arena_read(arena, page);
            ASSERT(arena->meta[page].shard == list / HEAP_CLASS_COUNT);
            ASSERT(head->class_index == list % HEAP_CLASS_COUNT && heap_page_has_room(head));
            with_room--;
        }
    }
    ASSERT(with_room == 0);
}
