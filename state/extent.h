/* SPDX-License-Identifier: Apache-2.0 */
/* The unit that a checkpoint is made of: one staging buffer on its way from a lane to the disk, and
 * back. Either pages of the lane's arena, or a piece of the lane's facts (bytes that mean something
 * to the layer above), or a list of the lane's named states (once in a full checkpoint).
 *
 *     0      struct extent_header, then item_count struct extent_page (pages) or nothing
 *     4096   the images of the items that have one, in their order, 4 KiB each | facts_bytes bytes
 *
 * A page that was freed since the base has an item and no image. The checksum of the whole extent
 * is kept by its parent (store.h), not in it. Numbers are little-endian, as the machine's. */
#pragma once

#include "state/arena.h"

#define EXTENT_BYTES      (UINT32_C(256) << 10)
#define EXTENT_HEAD_BYTES 4096U
#define EXTENT_IMAGES_MAX ((EXTENT_BYTES - EXTENT_HEAD_BYTES) / ARENA_PAGE_BYTES)
#define EXTENT_FACTS_MAX  (EXTENT_BYTES - EXTENT_HEAD_BYTES)
#define EXTENT_MAGIC      UINT32_C(0x50535458) /* "XTSP" */
#define EXTENT_VERSION    1U

enum extent_kind {
    EXTENT_PAGES = 1,
    EXTENT_FACTS,
    EXTENT_STATES, /* struct shape_list_head and its list (shape.h): laid out as facts are */
};

struct extent_header {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;       /* enum extent_kind */
    uint64_t checkpoint; /* whose it is */
    uint32_t lane;
    uint32_t number; /* among the lane's extents of this kind in this checkpoint, from 0 */
    uint32_t item_count;
    uint32_t image_count;
    uint32_t facts_bytes; /* in this extent, of facts or states */
    uint32_t facts_total; /* in all extents of this kind of the lane in this checkpoint */
    uint32_t reserved[6];
};
static_assert(sizeof(struct extent_header) == 64, "part of the checkpoint format");

struct extent_page {
    uint32_t page;
    uint16_t shard;
    uint8_t kind; /* enum arena_page_kind; ARENA_PAGE_FREE: no image follows */
    uint8_t reserved;
};
static_assert(sizeof(struct extent_page) == 8, "part of the checkpoint format");

#define EXTENT_ITEMS_MAX                                                                           \
    ((EXTENT_HEAD_BYTES - sizeof(struct extent_header)) / sizeof(struct extent_page))

/* Checks an extent's own structure: counts within bounds, kinds known, pages above 0. What it
 * carries is checked by those who use it.
 * extent   EXTENT_BYTES or the shorter length that was written, at least EXTENT_HEAD_BYTES
 * returns  false when it cannot be an extent
 * threads  any */
bool extent_check(const uint8_t *extent, size_t bytes);

/* The bytes of an extent that must be written: head and images or facts, rounded up to pages.
 * threads  any */
uint32_t extent_bytes(const uint8_t *extent);
