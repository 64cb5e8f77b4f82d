/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the appliance, for the files that share it: appliance.c starts and stops it,
 * supervise.c watches over it, report.c tells people about it. */
#pragma once

#include <signal.h>

#include "control/appliance.h"
#include "control/box.h"
#include "control/control_socket.h"
#include "control/job_file.h"
#include "control/positions.h"
#include "control/storage.h"

/* How far the end of a run is. */
enum appliance_phase {
    APPLIANCE_RUNNING = 0,
    APPLIANCE_DRAINING,      /* told to stop: what was read is worked off */
    APPLIANCE_CHECKPOINTING, /* all is answered; the last checkpoint is made */
    APPLIANCE_STOPPED,       /* in order; nothing is left to do */
};

struct appliance {
    const char *config_path;
    const char *script_path;
    struct appliance_config config;
    struct job_file script;
    struct metadata *metadata; /* NULL: no control_bootstrap */
    struct box box;
    struct positions *positions;        /* NULL without metadata */
    struct storage *storage;            /* NULL: checkpoint.path is not set */
    struct storage_resume resume;       /* of the command line; drop_states is owned */
    struct checkpoint_report savepoint; /* the last one that was asked for */
    struct checkpoint_report report;    /* the last one */
    bool is_full; /* the state memory of full_core is used up, and that ends the run */
    uint32_t full_core;
    uint64_t final_began_ns;
    uint64_t final_id;             /* 0: not whole yet */
    struct control_socket *socket; /* NULL: run.control_socket is not set */
    enum appliance_phase phase;
    uint64_t drain_began_ns;
    int exit_code;
    struct error error;
};

/* Notes the exit code of a failure whose reason stands in appliance->error.
 * returns  -1, for steps */
int appliance_fail(struct appliance *appliance, int code);

/* Runs the control loop: signals, requests, news of lanes, group commits, until the run is over or
 * must end. signals are blocked in every thread. */
void supervise(struct appliance *appliance, const sigset_t *signals);

/* Takes the lanes' last news, after they have stopped. */
void supervise_finish(struct appliance *appliance);

/* Prints nodes, sources, stacks and the ledger to stdout, and the ledger's file. */
void report_print(struct appliance *appliance);

/* Prints how the run stands as JSON, for `penstock ctl status`. */
void report_status(struct appliance *appliance, FILE *into);
