/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of penstock replay. */
#pragma once

#include "base.h"

#define REPLAY_LANES_MAX 16

struct replay_options {
    const char *script;
    const char *input;
    const char *output;
    uint32_t parcel_rows;
    uint32_t lanes;
    uint32_t state_mib;     /* address space of a lane's state; touched as it is used */
    uint32_t restart_every; /* records between restarts; 0: none */
    uint32_t restart_lanes[REPLAY_LANES_MAX]; /* lanes after each restart, in turn */
    uint32_t restart_lane_count;              /* 0: as before */
    bool is_quiet;
    bool prints_nodes;
};

/* What `penstock replay --help` prints. */
extern const char replay_help[];

/* Reads the arguments; complaints go to stderr.
 * argv     argv[0] is "replay"
 * returns  false when they are wrong
 * threads  control */
bool replay_options_read(int argc, char **argv, struct replay_options *out);
