/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a running box: the disk and the store on it, one snapshot a lane, what is resumed
 * from at the start, and the storage thread that runs them. How each works is in state/; here they
 * are put together from the appliance file.
 *
 *     open -> make lanes -> resume -> start -> (run) -> stop -> close */
#pragma once

#include <stdio.h>

#include "control/box.h"
#include "state/checkpoint.h"

struct storage;

/* What the command line says about resuming. */
struct storage_resume {
    uint64_t from_id; /* 0: the newest that is whole */
    bool is_fresh;    /* start empty, whatever is there */
    const char *const *drop_states;
    uint32_t drop_count;
};

/* Opens the disk of checkpoint.path and the store on it; a file that does not exist is made and
 * formatted, with progress told to messages.
 * out      closed by storage_close
 * returns  0 or -errno with the key's name in error->place
 * threads  control */
int storage_open(const struct appliance_config *config, FILE *messages, struct storage **out,
                 struct error *error);

/* Makes a snapshot for each lane of the box, in the lane's memory, and hangs it into the lane.
 * threads  control, when lanes have state and before the job is made */
int storage_make_lanes(struct storage *storage, struct box *box, struct error *error);

/* Brings the job back to a checkpoint: the newest that is whole, or the one that was asked for. A
 * damaged one is told to messages, and the one before is tried.
 * returns  0, also when there was none; -ENOTSUP when a state no longer fits; -errno
 * threads  control, when the job is made and before lanes run */
int storage_resume(struct storage *storage, struct box *box, const struct storage_resume *resume,
                   FILE *messages, struct error *error);

/* Starts the storage thread on its core.
 * threads  control */
int storage_start(struct storage *storage, struct box *box, const char *label, struct error *error);

/* Ends the storage thread; a checkpoint that is open and not being committed is given up.
 * threads  control; lanes have stopped */
void storage_stop(struct storage *storage);

/* Forgets the lanes, whose memory goes next. NULL is fine.
 * threads  control */
void storage_drop_lanes(struct storage *storage);

/* Closes everything. NULL is fine.
 * threads  control */
void storage_close(struct storage *storage);

/* The coordinator, to ask for checkpoints and to read reports.
 * returns  borrowed; NULL before storage_start
 * threads  control */
struct checkpoint *storage_checkpoint(struct storage *storage);

/* What the run was resumed from.
 * returns  0: nothing */
uint64_t storage_resumed_id(const struct storage *storage);

/* This machine, as it is known to checkpoints.
 * source   machine-id(5) */
uint64_t storage_host_identity(void);
