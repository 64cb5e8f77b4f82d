/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory: what a replay with restarts writes its checkpoints to, on any machine. Requests
 * are done as they are submitted; pages cost nothing until they are written. */
#pragma once

#include "state/disk.h"

/* Makes one, all zeros.
 * bytes    a multiple of DISK_ALIGN_BYTES
 * out      closed by disk_close
 * returns  0 or -ENOMEM
 * threads  control */
int disk_memory_open(uint64_t bytes, struct disk **out, struct error *error);
