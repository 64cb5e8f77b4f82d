/* SPDX-License-Identifier: Apache-2.0 */
/* What storage.c and resume.c share. */
#pragma once

#include <pthread.h>

#include "control/storage.h"
#include "state/store.h"

struct storage {
    const struct appliance_config *config;
    struct disk *disk;
    struct store *store;
    enum store_fault fault; /* why the store could not be opened */
    struct snapshot *snapshots[STORE_LANES_MAX];
    uint32_t lane_count;
    struct checkpoint *checkpoint;
    uint64_t resumed_id; /* 0: started empty */
    uint64_t base_id;    /* what incremental checkpoints may build on; 0: the first is full */
    pthread_t thread;
    bool is_running;
    bool is_stuck;      /* the disk did not finish within STOP_NS; read once the thread has ended */
    _Atomic bool stops; /* control writes, the storage thread reads */
};
