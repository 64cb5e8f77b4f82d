/* SPDX-License-Identifier: Apache-2.0 */
/* What the state tests share: an arena over an anonymous mapping, a seeded random source, keys made
 * from a number, and a recorder that plays a checkpoint: it keeps the pre-images of one
 * barrier and can rebuild every page as it was then. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "state/arena.h"
#include "state/hash.h"
#include "state/heap.h"

#define KEY_BYTES_MAX_MADE 6000U

struct fixture {
    void *memory;
    size_t bytes;
    struct arena *arena;
    struct heap *heap;
    uint64_t random;
    /* the recorder */
    uint8_t *barrier;             /* every page at the barrier */
    struct arena_page_meta *meta; /* and its metadata */
    uint8_t *images;              /* pre-images by page */
    uint8_t *is_recorded;
    uint32_t barrier_epoch;
    uint32_t recorded_count;
};

/* The next number of the seeded source. */
static inline uint64_t fixture_random(struct fixture *fixture)
{
    /* xorshift64*, Vigna 2016 */
    fixture->random ^= fixture->random >> 12;
    fixture->random ^= fixture->random << 25;
    fixture->random ^= fixture->random >> 27;
    return fixture->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* A number below bound, evenly enough. */
static inline uint32_t fixture_below(struct fixture *fixture, uint32_t bound)
{
    return (uint32_t)(fixture_random(fixture) >> 32) % bound;
}

/* Maps an arena of page_count pages and creates its heap. */
static inline void fixture_open(struct fixture *fixture, uint32_t page_count, uint32_t shard_count)
{
    *fixture = (struct fixture){.random = 0x9e3779b97f4a7c15U,
                                .bytes = (size_t)page_count * ARENA_PAGE_BYTES};
    fixture->memory =
        mmap(NULL, fixture->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fixture->memory != MAP_FAILED);
    const struct arena_config config = {
        .memory = fixture->memory, .bytes = fixture->bytes, .shard_count = shard_count};
    struct error error = {0};
    assert_int_equal(arena_create(&config, &fixture->arena, &error), 0);
    assert_int_equal(heap_create(fixture->arena, &fixture->heap, &error), 0);
}

/* Undoes fixture_open. */
static inline void fixture_close(struct fixture *fixture)
{
    heap_destroy(fixture->heap);
    free(fixture->barrier);
    free(fixture->meta);
    free(fixture->images);
    free(fixture->is_recorded);
    assert_int_equal(munmap(fixture->memory, fixture->bytes), 0);
}

/* The hook: keeps the first image of each page of the barrier's epoch or older. */
static inline void fixture_record(void *context, const struct arena_page_view *view)
{
    struct fixture *fixture = context;
    assert_true(view->epoch <= fixture->barrier_epoch);
    assert_false(fixture->is_recorded[view->page]);
    assert_int_equal(view->kind, fixture->meta[view->page].kind);
    fixture->is_recorded[view->page] = 1;
    fixture->recorded_count++;
    memcpy(fixture->images + (size_t)view->page * ARENA_PAGE_BYTES, view->image, ARENA_PAGE_BYTES);
}

/* Sets a barrier: what the arena holds now is what fixture_barrier_check expects back. */
static inline void fixture_barrier(struct fixture *fixture)
{
    const struct arena *arena = fixture->arena;
    const size_t bytes = (size_t)arena->page_count * ARENA_PAGE_BYTES;
    const size_t meta_bytes = arena->page_count * sizeof(*fixture->meta);
    fixture->barrier = realloc(fixture->barrier, bytes);
    fixture->images = realloc(fixture->images, bytes);
    fixture->meta = realloc(fixture->meta, meta_bytes);
    fixture->is_recorded = realloc(fixture->is_recorded, arena->page_count);
    assert_true(fixture->barrier != NULL && fixture->images != NULL);
    assert_true(fixture->meta != NULL && fixture->is_recorded != NULL);
    memset(fixture->is_recorded, 0, arena->page_count);
    memcpy(fixture->barrier, arena->base, bytes);
    memcpy(fixture->meta, arena->meta, meta_bytes);
    fixture->recorded_count = 0;
    fixture->barrier_epoch = arena_epoch_advance(fixture->arena);
    arena_preimage_set(fixture->arena, fixture_record, fixture);
}

/* Rebuilds every page of the barrier from its pre-image, or from the page itself when nobody has
 * touched it since, and compares with the copy taken then. */
static inline void fixture_barrier_check(struct fixture *fixture)
{
    const struct arena *arena = fixture->arena;
    for (uint32_t page = 1; page < arena->page_count; page++) {
        if (fixture->meta[page].kind == ARENA_PAGE_FREE) {
            continue;
        }
        const size_t offset = (size_t)page * ARENA_PAGE_BYTES;
        const uint8_t *image =
            fixture->is_recorded[page] ? fixture->images + offset : arena_read(arena, page);
        assert_memory_equal(image, fixture->barrier + offset, ARENA_PAGE_BYTES);
        if (!fixture->is_recorded[page]) {
            assert_int_equal(arena->meta[page].kind, fixture->meta[page].kind);
            assert_int_equal(arena->meta[page].shard, fixture->meta[page].shard);
            assert_true(arena->meta[page].epoch <= fixture->barrier_epoch);
        }
    }
}

/* Makes the bytes that belong to a number: some short, some long, different for every number.
 * into     KEY_BYTES_MAX_MADE bytes
 * bytes_max  the longest allowed, at least 4 */
static inline struct span fixture_key(uint32_t number, uint32_t bytes_max, uint8_t *into)
{
    uint32_t bytes = 4 + number % 13;
    if (number % 7 == 0) {
        bytes = 20 + number % 90;
    }
    if (number % 101 == 0) {
        bytes = 4000 + number % 2000;
    }
    bytes = bytes > bytes_max ? bytes_max : bytes;
    for (uint32_t at = 4; at < bytes; at++) {
        into[at] = (uint8_t)(number * 31 + at * 7);
    }
    store_be32(into, number);
    if (number % 14 == 0 && bytes > 200) { /* the difference only at the end */
        memset(into, 'p', bytes - 4);
        store_be32(into + bytes - 4, number);
    }
    return (struct span){into, bytes};
}
