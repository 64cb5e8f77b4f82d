/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk is a heap block: items grow from its front, 2-byte places of the items, in order, from
 * its end. Dropping from the front only moves first; removing in the middle moves places.
 *
 *     chunk | head | item | item | ... free ... | place n-1 | ... | place 1 | place 0 |
 *     item  | order | bytes, flags | content or blob reference, padded to 8 |
 *
 * Invariants:
 *  L1  places first..end-1 of a chunk name its items in ascending order, equals in insertion order;
 *      a chunk in a list is never empty
 *  L2  chunks are linked both ways, and orders do not descend from one to the next
 *  L3  head.count is the number of items
 *  L4  a mark stands at the first item with order >= its bound, or at the end; once stepped by
 *      hand it may stand behind some whose order equals the bound
 *  L5  no chunk is longer than CHUNK_BYTES_MAX, so one write touches one page */
#include "state/list.h"

#include "state/list_inner.h"

static const struct chunk *chunk_read(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(ref != 0 && heap->arena->meta[heap_page(ref)].kind == ARENA_PAGE_HEAP);
    return heap_read(heap, ref);
}

static struct chunk *chunk_write(struct heap *heap, uint64_t ref)
{
    ASSERT(ref != 0);
    return heap_write(heap, ref);
}

static void place_set(struct chunk *chunk, uint32_t index, uint32_t place)
{
    ASSERT_SLOW(place >= sizeof(*chunk) && place < chunk->bytes);
    const uint16_t value = (uint16_t)place;
    memcpy((uint8_t *)chunk + chunk->bytes - (index + 1U) * PLACE_BYTES, &value, sizeof(value));
}

static const struct item *item_at(const struct chunk *chunk, uint32_t index)
{
    ASSERT(index >= chunk->first && index < chunk->end);
    return (const struct item *)(const void *)((const uint8_t *)chunk + list_place(chunk, index));
}

static bool has_room(const struct chunk *chunk, uint32_t room)
{
    ASSERT_SLOW(chunk->used <= chunk->bytes);
    return chunk->used + room + (chunk->end + 1U) * PLACE_BYTES <= chunk->bytes;
}

static int64_t order_at(const struct heap *heap, const struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    return item_at(chunk_read(heap, cursor->chunk), cursor->index)->order;
}

void list_init(struct list_head *head, uint32_t shard, uint32_t mark_count)
{
    ASSERT(head != NULL && mark_count <= LIST_MARK_COUNT_MAX);
    *head = (struct list_head){.shard = (uint16_t)shard, .mark_count = (uint8_t)mark_count};
    for (uint32_t mark = 0; mark < mark_count; mark++) {
        head->marks[mark] = (struct list_mark){.bound = INT64_MIN};
    }
}

bool list_first(const struct heap *heap, const struct list_head *head, struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor != NULL);
    *cursor = (struct list_cursor){.chunk = head->first};
    if (head->first != 0) {
        cursor->index = chunk_read(heap, head->first)->first;
    }
    return head->first != 0;
}

bool list_last(const struct heap *heap, const struct list_head *head, struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor != NULL);
    *cursor = (struct list_cursor){.chunk = head->last};
    if (head->last != 0) {
        cursor->index = chunk_read(heap, head->last)->end - 1U;
    }
    return head->last != 0;
}

bool list_next(const struct heap *heap, struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->chunk != 0);
    const struct chunk *chunk = chunk_read(heap, cursor->chunk);
    if (++cursor->index < chunk->end) {
        return true;
    }
    cursor->chunk = chunk->next;
    cursor->index = chunk->next == 0 ? 0 : chunk_read(heap, chunk->next)->first;
    return cursor->chunk != 0;
}

bool list_prev(const struct heap *heap, struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->chunk != 0);
    const struct chunk *chunk = chunk_read(heap, cursor->chunk);
    if (cursor->index > chunk->first) {
        cursor->index--;
        return true;
    }
    cursor->chunk = chunk->prev;
    cursor->index = chunk->prev == 0 ? 0 : chunk_read(heap, chunk->prev)->end - 1U;
    return cursor->chunk != 0;
}

/* The first index of a chunk whose order is >= the given one; end when there is none. */
static uint32_t chunk_seek(const struct chunk *chunk, int64_t order)
{
    ASSERT_SLOW(chunk->used <= chunk->bytes);
    ASSERT_SLOW(chunk->first < chunk->end); /* L1 */
    uint32_t low = chunk->first;
    uint32_t high = chunk->end;
    while (low < high) {
        const uint32_t middle = (low + high) / 2U;
        if (item_at(chunk, middle)->order < order) {
            low = middle + 1U;
        } else {
            high = middle;
        }
    }
    return low;
}

bool list_seek(const struct heap *heap, const struct list_head *head, int64_t order,
               struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(cursor != NULL);
    struct list_cursor found = {0};
    for (uint64_t ref = head->last; ref != 0; ref = chunk_read(heap, ref)->prev) {
        const struct chunk *chunk = chunk_read(heap, ref);
        const uint32_t index = chunk_seek(chunk, order);
        if (index < chunk->end) {
            found = (struct list_cursor){.chunk = ref, .index = index};
        }
        if (index > chunk->first) {
            break;
        }
    }
    *cursor = found;
    return found.chunk != 0;
}

struct list_item list_item(const struct heap *heap, const struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(cursor != NULL);
    ASSERT(cursor->chunk != 0);
    const struct item *item = item_at(chunk_read(heap, cursor->chunk), cursor->index);
    struct list_item out = {
        .order = item->order, .bytes = item->bytes, .data = (const uint8_t *)(item + 1)};
    if (item->flags & FLAG_BLOB) {
        memcpy(&out.blob, item + 1, sizeof(out.blob));
        const struct span piece = heap_blob_piece(heap, out.blob, 0);
        const bool is_whole = piece.bytes == item->bytes;
        out.data = is_whole ? piece.data : NULL;
        out.blob = is_whole ? 0 : out.blob;
    }
    return out;
}

uint8_t *list_item_write(struct heap *heap, const struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    const struct list_item item = list_item(heap, cursor);
    if (item.data == NULL) {
        return NULL;
    }
    return heap_write(heap, (uint64_t)(item.data - heap->arena->base));
}

/* Copies the items of a chunk to a fresh one, without holes; index i becomes i - first. */
static void chunk_copy(const struct chunk *from, uint32_t first, uint32_t end, struct chunk *into)
{
    for (uint32_t index = first; index < end; index++) {
        const struct item *item = item_at(from, index);
        const uint32_t room = list_item_room(item->bytes, item->flags);
        ASSERT(has_room(into, room));
        memcpy((uint8_t *)into + into->used, item, room);
        place_set(into, into->end++, into->used);
        into->used = (uint16_t)(into->used + room);
    }
}

static uint64_t chunk_acquire(struct heap *heap, uint32_t shard, uint32_t bytes)
{
    ASSERT_SLOW(shard < heap->arena->shard_count);
    ASSERT(bytes <= CHUNK_BYTES_MAX); /* L5 */
    const uint32_t block_bytes = heap_class_bytes(bytes);
    const uint64_t ref = heap_acquire(heap, shard, block_bytes);
    if (ref != 0) {
        *chunk_write(heap, ref) =
            (struct chunk){.bytes = (uint16_t)block_bytes, .used = sizeof(struct chunk)};
    }
    return ref;
}

/* Points the neighbours of a chunk, or the head, at it. */
static void chunk_link(struct heap *heap, struct list_head *head, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    const struct chunk *chunk = chunk_read(heap, ref);
    if (chunk->prev == 0) {
        head->first = ref;
    } else {
        chunk_write(heap, chunk->prev)->next = ref;
    }
    if (chunk->next == 0) {
        head->last = ref;
    } else {
        chunk_write(heap, chunk->next)->prev = ref;
    }
}

/* Moves marks at from's indexes first..end-1 to the copies of those items. */
static void marks_move(struct list_head *head, uint64_t from, uint32_t first, uint32_t end,
                       uint64_t into)
{
    ASSERT_SLOW(head != NULL);
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        const struct list_cursor at = mark_cursor(head->marks[mark].place);
        if (at.chunk == from && at.index >= first && at.index < end) {
            head->marks[mark].place = mark_pack(into, at.index - first);
        }
    }
}

/* Replaces a chunk by one of at least bytes, without holes.
 * returns  the new chunk or 0 */
static uint64_t chunk_renew(struct heap *heap, struct list_head *head, uint64_t ref, uint32_t bytes)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    const uint64_t fresh = chunk_acquire(heap, head->shard, bytes);
    if (fresh == 0) {
        return 0;
    }
    const struct chunk *from = chunk_read(heap, ref);
    struct chunk *into = chunk_write(heap, fresh);
    chunk_copy(from, from->first, from->end, into);
    into->next = from->next;
    into->prev = from->prev;
    chunk_link(heap, head, fresh);
    marks_move(head, ref, from->first, from->end, fresh);
    heap_release(heap, ref);
    return fresh;
}

/* Bytes of a chunk when its holes are squeezed out. */
static uint32_t chunk_live_bytes(const struct chunk *chunk)
{
    ASSERT_SLOW(chunk->used <= chunk->bytes);
    uint32_t bytes = sizeof(struct chunk);
    for (uint32_t index = chunk->first; index < chunk->end; index++) {
        const struct item *item = item_at(chunk, index);
        bytes += list_item_room(item->bytes, item->flags) + PLACE_BYTES;
    }
    return bytes;
}

/* Splits a chunk in front of index, which is inside, into two fresh ones.
 * returns  false when the arena is exhausted: then nothing has changed */
static bool chunk_split(struct heap *heap, struct list_head *head, uint64_t ref, uint32_t index)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    const uint64_t front = chunk_acquire(heap, head->shard, CHUNK_BYTES_MAX);
    const uint64_t back = front == 0 ? 0 : chunk_acquire(heap, head->shard, CHUNK_BYTES_MAX);
    if (back == 0) {
        if (front != 0) {
            heap_release(heap, front);
        }
        return false;
    }
    const struct chunk *from = chunk_read(heap, ref);
    ASSERT(index > from->first && index < from->end);
    chunk_copy(from, from->first, index, chunk_write(heap, front));
    chunk_copy(from, index, from->end, chunk_write(heap, back));
    chunk_write(heap, front)->prev = from->prev;
    chunk_write(heap, front)->next = back;
    chunk_write(heap, back)->prev = front;
    chunk_write(heap, back)->next = from->next;
    chunk_link(heap, head, front);
    chunk_link(heap, head, back);
    marks_move(head, ref, from->first, index, front);
    marks_move(head, ref, index, from->end, back);
    heap_release(heap, ref);
    return true;
}

/* Puts an empty chunk behind ref, or in front of all when ref is 0.
 * returns  it or 0 */
static uint64_t chunk_behind(struct heap *heap, struct list_head *head, uint64_t ref,
                             uint32_t bytes)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    const uint64_t fresh = chunk_acquire(heap, head->shard, bytes);
    if (fresh != 0) {
        struct chunk *chunk = chunk_write(heap, fresh);
        chunk->prev = ref;
        chunk->next = ref == 0 ? head->first : chunk_read(heap, ref)->next;
        chunk_link(heap, head, fresh);
    }
    return fresh;
}

/* Where an item of this order goes: behind all with order <= it. index may be the chunk's end. */
static struct list_cursor insert_place(const struct heap *heap, const struct list_head *head,
                                       int64_t order)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    uint64_t ref = head->last;
    ASSERT(ref != 0);
    for (;;) {
        const struct chunk *chunk = chunk_read(heap, ref);
        if (item_at(chunk, chunk->first)->order <= order || chunk->prev == 0) {
            const bool is_last = item_at(chunk, chunk->end - 1U)->order <= order;
            const uint32_t index = is_last ? chunk->end : chunk_seek(chunk, order + 1);
            return (struct list_cursor){.chunk = ref, .index = index};
        }
        ref = chunk->prev;
    }
}

/* Makes room at the insert place, by a larger chunk, a new one or a split. When items have moved,
 * again is set and the place must be looked up anew.
 * returns  false when the arena is exhausted: then the list reads as before */
static bool room_make(struct heap *heap, struct list_head *head, struct list_cursor *at,
                      uint32_t room, bool *again)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(again != NULL);
    const struct chunk *chunk = chunk_read(heap, at->chunk);
    *again = false;
    if (has_room(chunk, room)) {
        return true;
    }
    const uint32_t live = chunk_live_bytes(chunk) + room + PLACE_BYTES;
    *again = true;
    if (live <= CHUNK_BYTES_MAX) {
        const uint32_t is_sole = head->first == head->last;
        const uint32_t twice = live * 2U < CHUNK_BYTES_MAX ? live * 2U : CHUNK_BYTES_MAX;
        return chunk_renew(heap, head, at->chunk, is_sole ? twice : CHUNK_BYTES_MAX) != 0;
    }
    if (at->index == chunk->end) {
        at->chunk = chunk_behind(heap, head, at->chunk, CHUNK_BYTES_MAX);
        at->index = 0;
        *again = false;
        return at->chunk != 0;
    }
    if (at->index == chunk->first) {
        at->chunk = chunk_behind(heap, head, chunk->prev, CHUNK_BYTES_MAX);
        at->index = 0;
        *again = false;
        return at->chunk != 0;
    }
    return chunk_split(heap, head, at->chunk, at->index);
}

/* Puts an item's bytes into a chunk with room, in front of index. */
static void item_put(struct chunk *chunk, uint32_t index, const struct item *item,
                     const void *content)
{
    ASSERT_SLOW(chunk->used <= chunk->bytes);
    const uint32_t room = list_item_room(item->bytes, item->flags);
    ASSERT(has_room(chunk, room));
    ASSERT(index >= chunk->first && index <= chunk->end);
    uint8_t *into = (uint8_t *)chunk + chunk->used;
    memcpy(into, item, sizeof(*item));
    const size_t bytes = item->flags & FLAG_BLOB ? sizeof(uint64_t) : item->bytes;
    if (bytes != 0) {
        memcpy(into + sizeof(*item), content, bytes);
    }
    for (uint32_t slot = chunk->end; slot > index; slot--) {
        place_set(chunk, slot, list_place(chunk, slot - 1U));
    }
    place_set(chunk, index, chunk->used);
    chunk->end++;
    chunk->used = (uint16_t)(chunk->used + room);
}

/* Keeps L4 after an item has been put at a cursor. */
static void marks_inserted(const struct heap *heap, struct list_head *head,
                           const struct list_cursor *at, int64_t order)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    /* Behind all others, an item can only be that of marks at the end: the rest need no look. */
    const bool is_last =
        at->chunk == head->last && at->index + 1U == chunk_read(heap, at->chunk)->end;
    for (uint32_t index = 0; index < head->mark_count; index++) {
        struct list_mark *mark = &head->marks[index];
        struct list_cursor stands = mark_cursor(mark->place);
        if (stands.chunk == at->chunk && stands.index >= at->index) {
            stands.index++;
            mark->place = mark_pack(stands.chunk, stands.index);
        }
        if (order >= mark->bound &&
            (stands.chunk == 0 || (!is_last && order_at(heap, &stands) > order))) {
            mark->place = mark_pack(at->chunk, at->index);
        }
    }
}

/* Finds a place with room for an item.
 * returns  false when the arena is exhausted */
static bool place_make(struct heap *heap, struct list_head *head, int64_t order, uint32_t room,
                       struct list_cursor *at)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    if (head->first == 0) {
        const uint32_t bytes = (uint32_t)sizeof(struct chunk) + room + PLACE_BYTES;
        *at = (struct list_cursor){.chunk = chunk_behind(heap, head, 0, bytes)};
        return at->chunk != 0;
    }
    for (uint32_t turn = 0; turn < 4; turn++) {
        bool again;
        *at = insert_place(heap, head, order);
        if (!room_make(heap, head, at, room, &again)) {
            return false;
        }
        if (!again) {
            return true;
        }
    }
    ASSERT(false); /* a renewed or split chunk has room, or an end to go behind */
    return false;
}

bool list_insert(struct heap *heap, struct list_head *head, int64_t order, struct span content)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(content.bytes <= LIST_ITEM_BYTES_MAX);
    ASSERT(head->count != UINT32_MAX);
    struct item item = {.order = order, .bytes = (uint32_t)content.bytes};
    uint64_t blob = 0;
    const void *bytes = content.data;
    if (content.bytes > LIST_ITEM_BYTES_INLINE_MAX) {
        blob = heap_blob_store(heap, head->shard, content);
        if (blob == 0) {
            return false;
        }
        item.flags = FLAG_BLOB;
        bytes = &blob;
    }
    struct list_cursor at;
    if (!place_make(heap, head, order, list_item_room(item.bytes, item.flags), &at)) {
        if (blob != 0) {
            heap_blob_release(heap, blob);
        }
        return false;
    }
    item_put(chunk_write(heap, at.chunk), at.index, &item, bytes);
    head->count++; /* L3 */
    marks_inserted(heap, head, &at, order);
    return true;
}

static void item_free(struct heap *heap, const struct item *item)
{
    ASSERT_SLOW(item != NULL);
    if (item->flags & FLAG_BLOB) {
        uint64_t blob;
        memcpy(&blob, item + 1, sizeof(blob));
        heap_blob_release(heap, blob);
    }
}

/* Takes a chunk out of the list. */
static void chunk_free(struct heap *heap, struct list_head *head, uint64_t ref)
{
    const struct chunk *chunk = chunk_read(heap, ref);
    ASSERT(chunk->prev != 0 || head->first == ref); /* L2 */
    ASSERT(chunk->next != 0 || head->last == ref);
    if (chunk->prev == 0) {
        head->first = chunk->next;
    } else {
        chunk_write(heap, chunk->prev)->next = chunk->next;
    }
    if (chunk->next == 0) {
        head->last = chunk->prev;
    } else {
        chunk_write(heap, chunk->next)->prev = chunk->prev;
    }
    heap_release(heap, ref);
}

/* Sets marks at index first..end-1 of a chunk to place, which is where those items' successor is.
 */
static void marks_leave(struct list_head *head, uint64_t ref, uint32_t first, uint32_t end,
                        const struct list_cursor *behind)
{
    ASSERT_SLOW(head != NULL);
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        const struct list_cursor at = mark_cursor(head->marks[mark].place);
        if (at.chunk == ref && at.index >= first && at.index < end) {
            head->marks[mark].place = mark_pack(behind->chunk, behind->index);
        }
    }
}

/* Takes the place at index out of a chunk; marks behind it follow. */
static void place_close(struct list_head *head, struct chunk *chunk, uint64_t ref, uint32_t index)
{
    ASSERT(chunk->used <= chunk->bytes);
    ASSERT(head != NULL);
    ASSERT(index >= chunk->first && index < chunk->end);
    for (uint32_t slot = index + 1U; slot < chunk->end; slot++) {
        place_set(chunk, slot - 1U, list_place(chunk, slot));
    }
    chunk->end--;
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        const struct list_cursor at = mark_cursor(head->marks[mark].place);
        if (at.chunk == ref && at.index > index) {
            head->marks[mark].place = mark_pack(ref, at.index - 1U);
        }
    }
}

void list_remove(struct heap *heap, struct list_head *head, struct list_cursor *cursor)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT(cursor->chunk != 0);
    ASSERT(head->count != 0);
    const struct list_cursor at = *cursor;
    struct chunk *chunk = chunk_write(heap, at.chunk);
    item_free(heap, item_at(chunk, at.index));
    (void)list_next(heap, cursor);
    marks_leave(head, at.chunk, at.index, at.index + 1U, cursor);
    head->count--;
    if (at.index == chunk->first) {
        chunk->first++;
    } else {
        place_close(head, chunk, at.chunk, at.index);
        cursor->index -= cursor->chunk == at.chunk;
    }
    if (chunk->first == chunk->end) {
        chunk_free(heap, head, at.chunk);
    }
}

void list_drop_first(struct heap *heap, struct list_head *head)
{
    ASSERT_SLOW(heap->arena != NULL);
    struct list_cursor cursor;
    const bool is_there = list_first(heap, head, &cursor);
    ASSERT(is_there);
    list_remove(heap, head, &cursor);
}

bool list_clear(struct heap *heap, struct list_head *head, uint32_t chunk_count_max)
{
    ASSERT_SLOW(heap != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(chunk_count_max != 0);
    for (uint32_t count = 0; head->first != 0 && count < chunk_count_max; count++) {
        const uint64_t ref = head->first;
        const struct chunk *chunk = chunk_read(heap, ref);
        struct list_cursor behind = {.chunk = ref, .index = chunk->end - 1U};
        (void)list_next(heap, &behind);
        marks_leave(head, ref, chunk->first, chunk->end, &behind);
        for (uint32_t index = chunk->first; index < chunk->end; index++) {
            item_free(heap, item_at(chunk, index));
        }
        head->count -= (uint32_t)(chunk->end - chunk->first);
        chunk_free(heap, head, ref);
    }
    return head->first == 0;
}

bool list_mark(const struct heap *heap, const struct list_head *head, uint32_t mark,
               struct list_cursor *cursor)
{
    ASSERT(mark < head->mark_count);
    *cursor = mark_cursor(head->marks[mark].place);
    ASSERT_SLOW(cursor->chunk == 0 || order_at(heap, cursor) >= head->marks[mark].bound);
    return cursor->chunk != 0;
}

bool list_mark_step(const struct heap *heap, struct list_head *head, uint32_t mark,
                    struct list_item *item)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(mark < head->mark_count && item != NULL);
    struct list_cursor at = mark_cursor(head->marks[mark].place);
    if (at.chunk == 0) {
        return false;
    }
    *item = list_item(heap, &at);
    const bool is_more = list_next(heap, &at);
    head->marks[mark].place = mark_pack(at.chunk, at.index);
    head->marks[mark].bound = is_more ? order_at(heap, &at) : item->order;
    return true;
}

bool list_mark_pass(const struct heap *heap, struct list_head *head, uint32_t mark, int64_t bound,
                    struct list_item *item)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT(mark < head->mark_count);
    struct list_mark *moved = &head->marks[mark];
    const struct list_cursor at = mark_cursor(moved->place);
    const bool is_behind = at.chunk != 0 && order_at(heap, &at) < bound;
    if (is_behind) {
        (void)list_mark_step(heap, head, mark, item);
    }
    if (is_behind == (moved->bound > bound)) { /* it has arrived, or stepped to one >= bound */
        moved->bound = bound;
    }
    return is_behind;
}

void list_mark_rewind(const struct heap *heap, struct list_head *head, uint32_t mark, int64_t bound)
{
    ASSERT(mark < head->mark_count);
    ASSERT(bound <= head->marks[mark].bound);
    struct list_cursor at;
    (void)list_seek(heap, head, bound, &at);
    head->marks[mark] = (struct list_mark){.bound = bound, .place = mark_pack(at.chunk, at.index)};
}

static void chunk_prefetch(const struct heap *heap, uint64_t ref)
{
    ASSERT_SLOW(heap->arena != NULL);
    if (ref != 0) {
        __builtin_prefetch(heap_read(heap, ref), 1);
        __builtin_prefetch(&heap->arena->meta[heap_page(ref)]);
    }
}

void list_prefetch(const struct heap *heap, const struct list_head *head)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    chunk_prefetch(heap, head->first);
    if (head->last != head->first) {
        chunk_prefetch(heap, head->last);
    }
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        chunk_prefetch(heap, mark_cursor(head->marks[mark].place).chunk);
    }
}

/* The item and its place, which stand apart in the chunk; at the end, the last item and the room
 * behind it. Items have about one length, so the place need not be read to guess where the item is.
 */
static void item_prefetch(const struct chunk *chunk, uint32_t index)
{
    ASSERT_SLOW(chunk->used <= chunk->bytes);
    const uint8_t *at = (const uint8_t *)chunk;
    const uint32_t head = sizeof(*chunk);
    const uint32_t mean = chunk->end == 0 ? 0 : (uint32_t)(chunk->used - head) / chunk->end;
    const uint32_t start = index < chunk->end ? head + mean * index : chunk->used - mean;
    const uint32_t end = index < chunk->end ? start + mean : chunk->used + mean;
    __builtin_prefetch(at + chunk->bytes - (index + 1U) * PLACE_BYTES, 1);
    __builtin_prefetch(at + start, 1);
    __builtin_prefetch(at + end - 1, 1);
}

void list_prefetch_items(const struct heap *heap, const struct list_head *head)
{
    ASSERT_SLOW(heap->arena != NULL);
    ASSERT_SLOW(head != NULL);
    if (head->first == 0) {
        return;
    }
    const struct chunk *first = chunk_read(heap, head->first);
    const struct chunk *last = chunk_read(heap, head->last);
    item_prefetch(first, first->first);
    item_prefetch(last, last->end);
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        const struct list_cursor cursor = mark_cursor(head->marks[mark].place);
        if (cursor.chunk != 0) {
            item_prefetch(chunk_read(heap, cursor.chunk), cursor.index);
        }
    }
}

void list_prefetch_end(const struct heap *heap, const struct list_head *head, uint32_t step)
{
    ASSERT_SLOW(step <= 1);
    if (head->last != 0 && step == 0) {
        chunk_prefetch(heap, head->last);
    } else if (head->last != 0) {
        const struct chunk *last = chunk_read(heap, head->last);
        item_prefetch(last, last->end);
    }
}

/* Checks L1 and L5 of one chunk.
 * returns  the last order in it */
static int64_t chunk_check(const struct chunk *chunk, int64_t order)
{
    ASSERT(chunk->first < chunk->end);                                      /* L1 */
    ASSERT(chunk->bytes <= CHUNK_BYTES_MAX && chunk->used <= chunk->bytes); /* L5 */
    for (uint32_t index = chunk->first; index < chunk->end; index++) {
        const struct item *item = item_at(chunk, index);
        ASSERT(item->order >= order);
        order = item->order;
        ASSERT(list_place(chunk, index) + list_item_room(item->bytes, item->flags) <= chunk->used);
    }
    return order;
}

/* Checks that a mark stands at an item of the list, as L4 says. */
static void mark_check(const struct heap *heap, const struct list_head *head,
                       const struct list_mark *mark)
{
    const struct list_cursor stands = mark_cursor(mark->place);
    struct list_cursor at;
    bool is_there = list_first(heap, head, &at);
    while (is_there && (at.chunk != stands.chunk || at.index != stands.index)) {
        ASSERT(order_at(heap, &at) <= mark->bound); /* L4 */
        is_there = list_next(heap, &at);
    }
    ASSERT(is_there == (stands.chunk != 0));
    ASSERT(!is_there || order_at(heap, &stands) >= mark->bound); /* L4 */
}

void list_check(const struct heap *heap, const struct list_head *head)
{
    uint64_t prev = 0;
    uint32_t count = 0;
    int64_t order = INT64_MIN;
    for (uint64_t ref = head->first; ref != 0; ref = chunk_read(heap, ref)->next) {
        const struct chunk *chunk = chunk_read(heap, ref);
        ASSERT(heap->arena->meta[heap_page(ref)].shard == head->shard);
        ASSERT(chunk->prev == prev); /* L2 */
        order = chunk_check(chunk, order);
        count += (uint32_t)(chunk->end - chunk->first);
        prev = ref;
    }
    ASSERT(head->last == prev);   /* L2 */
    ASSERT(head->count == count); /* L3 */
    for (uint32_t mark = 0; mark < head->mark_count; mark++) {
        mark_check(heap, head, &head->marks[mark]);
    }
}
