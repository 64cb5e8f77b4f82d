/* SPDX-License-Identifier: Apache-2.0 */
/* What ckpt.c and ckpt_export.c share. */
#pragma once

#include <stdio.h>

#include "state/store.h"

struct ckpt {
    struct disk *disk;
    struct store *store;
    bool writes;
    bool is_moved;     /* a copy from another device is accepted */
    uint64_t id;       /* 0: none was named */
    const char *state; /* export: NULL lists the states */
};

/* Prints a state of a checkpoint as JSON lines, or the list of its states.
 * returns  0 or -errno with the reason
 * threads  control */
int ckpt_export(const struct ckpt *ckpt, FILE *into, struct error *error);
