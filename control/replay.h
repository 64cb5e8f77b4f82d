/* SPDX-License-Identifier: Apache-2.0 */
/* penstock replay: a job over recorded files, with the operators of the appliance and virtual time;
 * no network, no broker, no hugepages, no root. The same input gives the same bytes out each time,
 * whatever the size of parcels. */
#pragma once

#include "base.h"

enum replay_exit {
    REPLAY_OK = 0,
    REPLAY_USAGE = 2,   /* wrong arguments, or a file that cannot be read or written */
    REPLAY_REFUSED = 3, /* the script: FILE:LINE:COLUMN: reason on stderr */
    REPLAY_FAILED = 4,  /* the job failed while it ran */
};

/* Runs `replay JOB.sql --in DIR --out DIR [options]`.
 * argv     argv[0] is "replay"
 * returns  the process's exit code, enum replay_exit
 * threads  control */
int replay_command(int argc, char **argv);
