/* SPDX-License-Identifier: Apache-2.0 */
/* The disk as the checkpoint store sees it: reads, writes and flushes of aligned ranges of one file
 * or block device, submitted and reaped, never waited for but where a caller asks. io_uring is the
 * real body (disk_uring.h); tests have one that tears, loses, misdirects and fails (tests/sim).
 *
 * Limits: one thread. Offsets, lengths and buffers are multiples of DISK_ALIGN_BYTES. At most
 * depth_max requests are in flight. Completions come in any order. */
#pragma once

#include "base.h"

#define DISK_ALIGN_BYTES 4096U

enum disk_operation {
    DISK_READ = 1,
    DISK_WRITE,
    DISK_FLUSH, /* everything whose completion was reaped before it was submitted is durable */
};

struct disk_request {
    uint32_t operation; /* enum disk_operation */
    uint32_t bytes;     /* 0 for a flush */
    uint64_t offset;
    uint8_t *buffer; /* borrowed until the completion is reaped; best inside a registered range */
    uint64_t tag;    /* the caller's, comes back with the completion */
};

struct disk_completion {
    uint64_t tag;
    int64_t result; /* bytes done, which may be fewer than asked for, or -errno */
};

struct disk;

struct disk_ops {
    bool (*submit)(struct disk *disk, const struct disk_request *request);
    uint32_t (*reap)(struct disk *disk, struct disk_completion *into, uint32_t max,
                     uint64_t wait_ns);
    int (*register_memory)(struct disk *disk, void *memory, size_t bytes);
    void (*close)(struct disk *disk);
};

/* A body embeds this first. Fields are const after opening, but for in_flight. */
struct disk {
    const struct disk_ops *ops;
    uint64_t bytes;     /* size of the file or device, a multiple of DISK_ALIGN_BYTES */
    uint64_t identity;  /* of the device and file: device number, inode or serial, hashed */
    uint32_t depth_max; /* requests in flight at once */
    uint32_t in_flight;
};

/* Hands a request to the disk.
 * request  copied; its buffer is borrowed until its completion
 * returns  false when depth_max are in flight: reap first
 * threads  the storage thread only */
static inline bool disk_submit(struct disk *disk, const struct disk_request *request)
{
    ASSERT(request->offset % DISK_ALIGN_BYTES == 0 && request->bytes % DISK_ALIGN_BYTES == 0);
    ASSERT(request->operation == DISK_FLUSH || request->offset + request->bytes <= disk->bytes);
    return disk->ops->submit(disk, request);
}

/* Takes completions.
 * into     max places
 * wait_ns  how long to wait for the first one; 0 looks and returns
 * returns  how many were filled in
 * threads  the storage thread only */
static inline uint32_t disk_reap(struct disk *disk, struct disk_completion *into, uint32_t max,
                                 uint64_t wait_ns)
{
    ASSERT(max != 0);
    return disk->ops->reap(disk, into, max, wait_ns);
}

/* Names memory that requests will use often, so that the kernel keeps it pinned.
 * memory   outlives the disk
 * returns  0 or -errno; requests from elsewhere work as well, only slower
 * threads  control, before requests are in flight */
static inline int disk_register_memory(struct disk *disk, void *memory, size_t bytes)
{
    ASSERT(memory != NULL && bytes != 0);
    return disk->ops->register_memory(disk, memory, bytes);
}

/* Closes a disk that has nothing in flight. NULL is fine.
 * threads  control */
static inline void disk_close(struct disk *disk)
{
    if (disk != NULL) {
        ASSERT(disk->in_flight == 0);
        disk->ops->close(disk);
    }
}
