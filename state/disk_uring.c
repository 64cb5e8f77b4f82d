/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring under disk.h. Requests are handed to the kernel one by one: they are big, and a request
 * that waits for company would be a flush that never comes. */
#include "state/disk_uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include "state/disk_file.h"

#define RANGE_BYTES_MAX (UINT64_C(1) << 30) /* the kernel's limit for one registered buffer */
#define RANGES_MAX      256U

struct disk_uring {
    struct disk disk; /* first */
    struct io_uring ring;
    bool has_ring;
    pid_t owner; /* the thread that made the ring */
    int fd;
    uint32_t flags;  /* that the kernel took */
    bool has_ranges; /* they are registered with this ring */
    uint32_t range_count;
    struct iovec ranges[RANGES_MAX];
};

/* Makes a ring for the calling thread, with as much as the kernel knows of what we want. */
static int make_ring(struct disk_uring *uring)
{
    static const uint32_t wishes[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, /* 6.1 */
        IORING_SETUP_COOP_TASKRUN,                               /* 5.19 */
        0,
    };
    ASSERT(!uring->has_ring);
    int status = -EINVAL;
    for (size_t index = 0; index < COUNT_OF(wishes) && status == -EINVAL; index++) {
        struct io_uring_params params = {.flags = wishes[index]};
        status = io_uring_queue_init_params(uring->disk.depth_max, &uring->ring, &params);
        uring->flags = wishes[index];
    }
    if (status != 0) {
        return status;
    }
    uring->has_ring = true;
    uring->owner = gettid();
    status = io_uring_register_files(&uring->ring, &uring->fd, 1);
    if (status == 0 && uring->range_count != 0) {
        /* Refused for want of RLIMIT_MEMLOCK it is only slower. */
        uring->has_ranges =
            io_uring_register_buffers(&uring->ring, uring->ranges, uring->range_count) == 0;
    }
    return status;
}

static void drop_ring(struct disk_uring *uring)
{
    if (uring->has_ring) {
        /* The ring itself goes some time after this call, and would hold the file until then. */
        (void)io_uring_unregister_files(&uring->ring);
        io_uring_queue_exit(&uring->ring);
    }
    uring->has_ring = false;
    uring->has_ranges = false;
}

/* Sees to it that the ring is the calling thread's.
 * returns  0 or -errno */
static int own_ring(struct disk_uring *uring)
{
    if (LIKELY(uring->has_ring && uring->owner == gettid())) {
        return 0;
    }
    ASSERT(uring->disk.in_flight == 0); /* else completions would be lost with the old ring */
    drop_ring(uring);
    return make_ring(uring);
}

/* The registered range that a buffer lies in whole, or -1. */
static int find_range(const struct disk_uring *uring, const struct disk_request *request)
{
    const uint32_t count = uring->has_ranges ? uring->range_count : 0;
    for (uint32_t index = 0; index < count; index++) {
        const uint8_t *start = uring->ranges[index].iov_base;
        if (request->buffer >= start &&
            request->buffer + request->bytes <= start + uring->ranges[index].iov_len) {
            return (int)index;
        }
    }
    return -1;
}

static void prepare(const struct disk_uring *uring, struct io_uring_sqe *sqe,
                    const struct disk_request *request)
{
    const int range = find_range(uring, request);
    switch (request->operation) {
    case DISK_READ:
        if (range >= 0) {
            io_uring_prep_read_fixed(sqe, 0, request->buffer, request->bytes, request->offset,
                                     range);
        } else {
            io_uring_prep_read(sqe, 0, request->buffer, request->bytes, request->offset);
        }
        break;
    case DISK_WRITE:
        if (range >= 0) {
            io_uring_prep_write_fixed(sqe, 0, request->buffer, request->bytes, request->offset,
                                      range);
        } else {
            io_uring_prep_write(sqe, 0, request->buffer, request->bytes, request->offset);
        }
        break;
    default:
        ASSERT(request->operation == DISK_FLUSH);
        io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
    }
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, request->tag);
}

static bool uring_submit(struct disk *disk, const struct disk_request *request)
{
    struct disk_uring *uring = (struct disk_uring *)disk;
    if (disk->in_flight == disk->depth_max) {
        return false;
    }
    /* A ring that cannot be had is no outside input: the same thread count had one at opening. */
    const int status = own_ring(uring);
    ASSERT(status == 0);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
    ASSERT(sqe != NULL); /* as many places as depth_max */
    prepare(uring, sqe, request);
    disk->in_flight++;
    /* What the kernel refuses for the moment stays in the queue; reaping submits it again. */
    (void)io_uring_submit(&uring->ring);
    return true;
}

static uint32_t take(struct disk_uring *uring, struct disk_completion *into, uint32_t max)
{
    struct io_uring_cqe *cqes[DISK_URING_DEPTH_MAX];
    const uint32_t most = max < COUNT_OF(cqes) ? max : (uint32_t)COUNT_OF(cqes);
    const uint32_t count = io_uring_peek_batch_cqe(&uring->ring, cqes, most);
    for (uint32_t index = 0; index < count; index++) {
        into[index] = (struct disk_completion){.tag = io_uring_cqe_get_data64(cqes[index]),
                                               .result = cqes[index]->res};
    }
    io_uring_cq_advance(&uring->ring, count);
    ASSERT(count <= uring->disk.in_flight);
    uring->disk.in_flight -= count;
    return count;
}

static uint32_t uring_reap(struct disk *disk, struct disk_completion *into, uint32_t max,
                           uint64_t wait_ns)
{
    struct disk_uring *uring = (struct disk_uring *)disk;
    if (disk->in_flight == 0) {
        return 0;
    }
    ASSERT(uring->owner == gettid());
    const uint32_t count = take(uring, into, max);
    if (count != 0) {
        return count;
    }
    if (wait_ns == 0) {
        (void)io_uring_submit_and_get_events(&uring->ring);
        return take(uring, into, max);
    }
    struct __kernel_timespec timeout = {.tv_sec = (int64_t)(wait_ns / NANOSECONDS_PER_S),
                                        .tv_nsec = (long long)(wait_ns % NANOSECONDS_PER_S)};
    struct io_uring_cqe *cqe = NULL;
    (void)io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, &timeout, NULL);
    return take(uring, into, max);
}

static int uring_register_memory(struct disk *disk, void *memory, size_t bytes)
{
    struct disk_uring *uring = (struct disk_uring *)disk;
    ASSERT(disk->in_flight == 0);
    const uint32_t before = uring->range_count;
    uint8_t *start = memory;
    while (bytes != 0) {
        if (uring->range_count == RANGES_MAX) {
            uring->range_count = before;
            return -ENOSPC;
        }
        const size_t part = bytes < RANGE_BYTES_MAX ? bytes : RANGE_BYTES_MAX;
        uring->ranges[uring->range_count++] = (struct iovec){.iov_base = start, .iov_len = part};
        start += part;
        bytes -= part;
    }
    int status = own_ring(uring);
    if (status == 0 && uring->has_ranges) {
        status = io_uring_unregister_buffers(&uring->ring);
        uring->has_ranges = false;
    }
    if (status == 0) {
        status = io_uring_register_buffers(&uring->ring, uring->ranges, uring->range_count);
        uring->has_ranges = status == 0;
    }
    if (status != 0) { /* go on with what there was before */
        uring->range_count = before;
        if (uring->has_ring && before != 0) {
            uring->has_ranges = io_uring_register_buffers(&uring->ring, uring->ranges, before) == 0;
        }
    }
    return status;
}

static void uring_close(struct disk *disk)
{
    struct disk_uring *uring = (struct disk_uring *)disk;
    drop_ring(uring);
    (void)flock(uring->fd, LOCK_UN);
    (void)close(uring->fd);
    free(uring);
}

static int explain_ring(int status, struct error *error)
{
    ASSERT(status < 0);
    if (status == -ENOSYS || status == -EPERM) {
        return error_set(error, status,
                         "this system does not allow io_uring (kernel.io_uring_disabled, or a "
                         "container's seccomp profile)");
    }
    return error_set(error, status, "cannot set up io_uring: %s%s", strerror(-status),
                     status == -ENOMEM ? " (RLIMIT_MEMLOCK)" : "");
}

int disk_uring_open(const struct disk_uring_config *config, struct disk **out, struct error *error)
{
    static const struct disk_ops ops = {.submit = uring_submit,
                                        .reap = uring_reap,
                                        .register_memory = uring_register_memory,
                                        .close = uring_close};
    ASSERT(config != NULL && out != NULL);
    ASSERT(config->depth_max != 0 && config->depth_max <= DISK_URING_DEPTH_MAX);
    struct disk_file file;
    int status = disk_file_open(config->path, config->bytes, &file, error);
    if (status != 0) {
        return status;
    }
    struct disk_uring *uring = calloc(1, sizeof(*uring));
    if (uring == NULL) {
        (void)close(file.fd);
        return error_set(error, -ENOMEM, "no memory for a disk");
    }
    uring->fd = file.fd;
    uring->disk = (struct disk){.ops = &ops,
                                .bytes = file.bytes,
                                .identity = file.identity,
                                .depth_max = config->depth_max};
    status = make_ring(uring);
    if (status != 0) {
        uring_close(&uring->disk);
        return explain_ring(status, error);
    }
    *out = &uring->disk;
    return 0;
}

void disk_uring_features(const struct disk *disk, uint32_t *flags, uint32_t *buffers)
{
    const struct disk_uring *uring = (const struct disk_uring *)disk;
    ASSERT(uring->has_ring);
    *flags = uring->flags;
    *buffers = uring->has_ranges ? uring->range_count : 0;
}
