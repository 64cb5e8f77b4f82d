/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of disk.h over io_uring: a regular file, preallocated, or a whole block device; opened
 * with O_DIRECT, locked against every other process.
 *
 * A ring belongs to the thread that submits (SINGLE_ISSUER, DEFER_TASKRUN where the kernel has
 * them). The disk may change hands while nothing is in flight: the first request of another thread
 * makes a new ring there, so control formats, opens and restores, and the storage thread goes on.
 */
#pragma once

#include "state/disk.h"

#define DISK_URING_DEPTH_MAX 256U

struct disk_uring_config {
    const char *path;
    uint64_t bytes;     /* of a file that is made; an existing one keeps its size; 0: make none */
    uint32_t depth_max; /* requests in flight at once, 1..DISK_URING_DEPTH_MAX */
};

/* Opens a file or block device, making the file when there is none: allocated whole, and it and its
 * folder synced.
 * config   borrowed during the call
 * out      closed by disk_close
 * returns  0 or -errno with the reason: -EBUSY when another process or a mount has it, -EISDIR,
 *          -ENOSPC, -ENOENT (and config->bytes is 0), -EINVAL (no O_DIRECT, too small, a bad size)
 * threads  control */
int disk_uring_open(const struct disk_uring_config *config, struct disk **out, struct error *error);

/* Tells what the current ring was given, for doctors and tests.
 * flags    of io_uring_setup
 * buffers  registered ranges
 * threads  as the disk's owner */
void disk_uring_features(const struct disk *disk, uint32_t *flags, uint32_t *buffers);
