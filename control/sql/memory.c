/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator in blocks; see memory.h. */
#include "control/sql/memory.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES_MIN (size_t)65536

struct block {
    struct block *next;
    size_t used;
    size_t bytes;
    _Alignas(16) uint8_t data[];
};

struct sql_memory {
    struct block *blocks; /* the newest first */
};

struct sql_memory *sql_memory_create(void)
{
    return calloc(1, sizeof(struct sql_memory));
}

void sql_memory_destroy(struct sql_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    struct block *block = memory->blocks;
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(memory);
}

static struct block *add_block(struct sql_memory *memory, size_t bytes)
{
    ASSERT(memory != NULL);
    const size_t room = bytes > BLOCK_BYTES_MIN ? bytes : BLOCK_BYTES_MIN;
    struct block *block = calloc(1, sizeof(*block) + room);
    if (block == NULL) {
        (void)fprintf(stderr, "penstock: out of memory while planning (%zu bytes)\n", room);
        exit(EXIT_FAILURE);
    }
    block->bytes = room;
    block->next = memory->blocks;
    memory->blocks = block;
    return block;
}

void *sql_allocate(struct sql_memory *memory, size_t bytes)
{
    ASSERT(memory != NULL);
    const size_t rounded = (bytes + 15) & ~(size_t)15;
    ASSERT(rounded >= bytes);
    struct block *block = memory->blocks;
    if (block == NULL || block->bytes - block->used < rounded) {
        block = add_block(memory, rounded);
    }
    void *out = block->data + block->used;
    block->used += rounded;
    ASSERT(block->used <= block->bytes);
    return out;
}

char *sql_copy_text(struct sql_memory *memory, const char *text, size_t bytes)
{
    ASSERT(memory != NULL);
    ASSERT(text != NULL || bytes == 0);
    char *copy = sql_allocate(memory, bytes + 1);
    if (bytes != 0) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

char *sql_format(struct sql_memory *memory, const char *format, ...)
{
    ASSERT(memory != NULL);
    ASSERT(format != NULL);
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    char probe[1];
    const int bytes = vsnprintf(probe, sizeof(probe), format, arguments);
    va_end(arguments);
    ASSERT(bytes >= 0);
    char *text = sql_allocate(memory, (size_t)bytes + 1);
    (void)vsnprintf(text, (size_t)bytes + 1, format, again);
    va_end(again);
    return text;
}
