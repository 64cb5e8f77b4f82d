/* SPDX-License-Identifier: Apache-2.0 */
/* See mapping.h: small pieces come from chunks, large ones are mapped alone. */
#include "control/mapping.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES  (size_t)4096
#define HUGE_BYTES  ((size_t)2 << 20)
#define CHUNK_BYTES ((size_t)4 << 20)

struct chunk {
    struct chunk *next;
    uint8_t *memory;
    size_t bytes;
    size_t used;
};

struct mapping {
    bool hugepages;
    struct chunk *chunks; /* the newest first */
    uint64_t bytes;
};

struct mapping *mapping_create(bool hugepages)
{
    struct mapping *mapping = calloc(1, sizeof(*mapping));
    if (mapping != NULL) {
        mapping->hugepages = hugepages;
    }
    return mapping;
}

void mapping_destroy(struct mapping *mapping)
{
    struct chunk *chunk = mapping == NULL ? NULL : mapping->chunks;
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        (void)munmap(chunk->memory, chunk->bytes);
        free(chunk);
        chunk = next;
    }
    free(mapping);
}

static struct chunk *add_chunk(struct mapping *mapping, size_t wanted)
{
    ASSERT(mapping != NULL);
    const size_t unit = mapping->hugepages ? HUGE_BYTES : PAGE_BYTES;
    const size_t least = wanted > CHUNK_BYTES ? wanted : CHUNK_BYTES;
    const size_t bytes = (least + unit - 1) / unit * unit;
    const int huge = mapping->hugepages ? MAP_HUGETLB : 0;
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL) {
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | huge, -1, 0);
    if (memory == MAP_FAILED) {
        free(chunk);
        return NULL;
    }
    /* Ordinary pages may be swapped or compacted away: hold them where the limit allows it. */
    (void)mlock(memory, bytes);
    *chunk = (struct chunk){.next = mapping->chunks, .memory = memory, .bytes = bytes};
    mapping->chunks = chunk;
    mapping->bytes += bytes;
    return chunk;
}

void *mapping_take(struct mapping *mapping, size_t bytes)
{
    ASSERT(mapping != NULL);
    ASSERT(bytes > 0);
    const size_t align = bytes >= PAGE_BYTES ? PAGE_BYTES : CACHE_LINE_BYTES;
    struct chunk *chunk = mapping->chunks;
    size_t start = chunk == NULL ? 0 : (chunk->used + align - 1) / align * align;
    if (chunk == NULL || start > chunk->bytes || chunk->bytes - start < bytes) {
        chunk = add_chunk(mapping, bytes);
        start = 0;
    }
    if (chunk == NULL) {
        return NULL;
    }
    chunk->used = start + bytes;
    ASSERT(chunk->used <= chunk->bytes);
    return chunk->memory + start;
}

uint64_t mapping_bytes(const struct mapping *mapping)
{
    return mapping->bytes;
}

void *mapping_scratch(void *context, size_t bytes)
{
    ASSERT(bytes != 0);
    (void)context;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void mapping_scratch_free(void *context, void *memory, size_t bytes)
{
    ASSERT(memory != NULL);
    (void)context;
    (void)munmap(memory, bytes);
}
