/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of an extent's own structure; everything here may come from a damaged disk. */
#include "state/extent.h"

static uint32_t payload_bytes(const struct extent_header *head)
{
    return head->kind == EXTENT_PAGES ? head->image_count * ARENA_PAGE_BYTES : head->facts_bytes;
}

/* Items within bounds, each with a page and a known kind, as many with an image as it says. */
static bool check_items(const uint8_t *extent, const struct extent_header *head)
{
    ASSERT(head->kind == EXTENT_PAGES);
    if (head->item_count > EXTENT_ITEMS_MAX || head->image_count > head->item_count ||
        head->image_count > EXTENT_IMAGES_MAX || head->facts_bytes != 0) {
        return false;
    }
    uint32_t image_count = 0;
    for (uint32_t index = 0; index < head->item_count; index++) {
        struct extent_page item;
        memcpy(&item, extent + sizeof(*head) + index * sizeof(item), sizeof(item));
        if (item.page == 0 || item.kind >= ARENA_PAGE_KIND_COUNT ||
            item.shard >= ARENA_SHARD_COUNT_MAX) {
            return false;
        }
        image_count += item.kind != ARENA_PAGE_FREE;
    }
    return image_count == head->image_count;
}

bool extent_check(const uint8_t *extent, size_t bytes)
{
    ASSERT(extent != NULL);
    struct extent_header head;
    if (bytes < EXTENT_HEAD_BYTES || bytes > EXTENT_BYTES) {
        return false;
    }
    memcpy(&head, extent, sizeof(head));
    if (head.magic != EXTENT_MAGIC || head.version != EXTENT_VERSION || head.checkpoint == 0) {
        return false;
    }
    if (head.kind == EXTENT_FACTS || head.kind == EXTENT_STATES) {
        if (head.item_count != 0 || head.image_count != 0 || head.facts_bytes > EXTENT_FACTS_MAX) {
            return false;
        }
    } else if (head.kind != EXTENT_PAGES || !check_items(extent, &head)) {
        return false;
    }
    return EXTENT_HEAD_BYTES + (size_t)payload_bytes(&head) <= bytes;
}

uint32_t extent_bytes(const uint8_t *extent)
{
    ASSERT(extent != NULL);
    struct extent_header head;
    memcpy(&head, extent, sizeof(head));
    ASSERT(head.magic == EXTENT_MAGIC);
    const uint32_t payload = payload_bytes(&head);
    ASSERT(payload <= EXTENT_BYTES - EXTENT_HEAD_BYTES);
    return EXTENT_HEAD_BYTES +
           (payload + ARENA_PAGE_BYTES - 1U) / ARENA_PAGE_BYTES * ARENA_PAGE_BYTES;
}
