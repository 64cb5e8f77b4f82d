/* SPDX-License-Identifier: Apache-2.0 */
/* `penstock run` and `penstock check`: the appliance from its two files. Control thread only. */
#pragma once

/* Exit codes of the program, for users; the README lists them. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_RUN_FAILED = 1, /* Kafka, the network or a lane failed while running */
    EXIT_USAGE = 2,      /* arguments, a file, the appliance file, a device, memory */
    EXIT_REFUSED = 3,    /* the script is wrong, or needs what Penstock has not */
    EXIT_JOB_FAILED = 4, /* the job failed on its data, as it would on Flink */
    EXIT_KILLED = 130,   /* a second signal: stopped without draining */
};

/* What `penstock run --help` and `penstock check --help` print. */
extern const char run_help[];
extern const char check_help[];

/* Runs a job until it ends (bounded input), fails, or is told to stop. SIGINT and SIGTERM drain and
 * stop, a second one quits at once; SIGUSR1 prints the ledger.
 * argv     run APPLIANCE.yaml JOB.sql
 * returns  an exit_code */
int run_command(int argc, char **argv);

/* Validates both files and prints plan, lanes and memory; starts nothing, needs no root.
 * argv     check APPLIANCE.yaml JOB.sql, or check --config-reference
 * returns  an exit_code */
int check_command(int argc, char **argv);
