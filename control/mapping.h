/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for lanes: resident, zeroed, in hugepages where the appliance file says so. All of it is
 * mapped and touched at start and freed at once. Control thread only. */
#pragma once

#include "base.h"

struct mapping;

/* Makes an empty mapping.
 * hugepages  use hugepages of 2 MiB; false: ordinary pages, populated
 * returns    NULL when the process is out of memory */
struct mapping *mapping_create(bool hugepages);

/* Unmaps everything. NULL is fine. */
void mapping_destroy(struct mapping *mapping);

/* Takes zeroed bytes, 64-byte aligned (page aligned from 4 KiB up).
 * returns  NULL when there is no more; lives as long as the mapping */
void *mapping_take(struct mapping *mapping, size_t bytes);

/* Tells how much was mapped. */
uint64_t mapping_bytes(const struct mapping *mapping);

/* Maps ordinary memory that costs nothing until it is touched, for a while: what restore_config.map
 * wants.
 * context  not used
 * returns  NULL when there is no more */
void *mapping_scratch(void *context, size_t bytes);

/* Gives it back. */
void mapping_scratch_free(void *context, void *memory, size_t bytes);
