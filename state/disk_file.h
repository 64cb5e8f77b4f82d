/* SPDX-License-Identifier: Apache-2.0 */
/* The file or block device under a disk: opening or making it, its lock, size and identity. */
#pragma once

#include "base.h"

struct disk_file {
    int fd;
    uint64_t bytes; /* a multiple of DISK_ALIGN_BYTES */
    uint64_t identity;
    bool is_block;
};

/* Opens a file or block device for O_DIRECT, locked; makes the file when there is none and bytes is
 * not 0.
 * out      fd is closed by the caller, which ends the lock
 * returns  0 or -errno with the reason
 * threads  control */
int disk_file_open(const char *path, uint64_t bytes, struct disk_file *out, struct error *error);
