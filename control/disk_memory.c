/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that behaves as a disk; completions wait in order until they are reaped. */
#include "control/disk_memory.h"

#include <errno.h>
#include <stdlib.h>

#include "control/mapping.h"

#define DEPTH_MAX 64

struct disk_memory {
    struct disk base;
    uint8_t *bytes;
    struct disk_completion done[DEPTH_MAX]; /* base.in_flight of them */
};

static struct disk_memory *from_base(struct disk *disk)
{
    return (struct disk_memory *)(void *)disk;
}

static bool submit(struct disk *base, const struct disk_request *request)
{
    struct disk_memory *disk = from_base(base);
    ASSERT(request->bytes <= base->bytes && request->offset <= base->bytes - request->bytes);
    if (base->in_flight == DEPTH_MAX) {
        return false;
    }
    if (request->operation == DISK_WRITE) {
        memcpy(disk->bytes + request->offset, request->buffer, request->bytes);
    } else if (request->operation == DISK_READ) {
        memcpy(request->buffer, disk->bytes + request->offset, request->bytes);
    }
    disk->done[base->in_flight++] = (struct disk_completion){
        .tag = request->tag,
        .result = request->operation == DISK_FLUSH ? 0 : (int64_t)request->bytes,
    };
    return true;
}

static uint32_t reap(struct disk *base, struct disk_completion *into, uint32_t max,
                     uint64_t wait_ns)
{
    struct disk_memory *disk = from_base(base);
    ASSERT(into != NULL);
    (void)wait_ns;
    const uint32_t count = max < base->in_flight ? max : base->in_flight;
    memcpy(into, disk->done, count * sizeof(*into));
    base->in_flight -= count;
    memmove(disk->done, disk->done + count, base->in_flight * sizeof(*into));
    return count;
}

static int register_memory(struct disk *base, void *memory, size_t bytes)
{
    ASSERT(memory != NULL);
    (void)base;
    (void)bytes;
    return 0;
}

static void close_memory(struct disk *base)
{
    struct disk_memory *disk = from_base(base);
    mapping_scratch_free(NULL, disk->bytes, base->bytes);
    free(disk);
}

int disk_memory_open(uint64_t bytes, struct disk **out, struct error *error)
{
    static const struct disk_ops OPS = {submit, reap, register_memory, close_memory};
    ASSERT(bytes % DISK_ALIGN_BYTES == 0 && bytes != 0);
    struct disk_memory *disk = calloc(1, sizeof(*disk));
    void *memory = mapping_scratch(NULL, bytes);
    if (disk == NULL || memory == NULL) {
        free(disk);
        if (memory != NULL) {
            mapping_scratch_free(NULL, memory, bytes);
        }
        return error_set(error, -ENOMEM, "out of memory for checkpoints");
    }
    disk->base = (struct disk){.ops = &OPS, .bytes = bytes, .identity = 1, .depth_max = DEPTH_MAX};
    disk->bytes = memory;
    *out = &disk->base;
    return 0;
}
