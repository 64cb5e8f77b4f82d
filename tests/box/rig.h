/* SPDX-License-Identifier: Apache-2.0 */
/* The whole appliance in one process, as control starts it: config, script, lanes, stacks, Kafka
 * clients, job. Its NIC is one end of a memif pair; at the other end the scripted cluster runs in a
 * thread of its own. What is measured or tested here is the product's own code from frame to frame.
 *
 * One rig a process: DPDK's environment comes up once. Needs no root and no hugepages. */
#pragma once

#include <pthread.h>

#include "control/box.h"
#include "control/job_file.h"
#include "dataplane/ledger.h"
#include "tests/box/cluster.h"

struct rig_config {
    const char *script_path;
    const char *cores; /* of the appliance file: "receive: [0], operate: [0], transmit: [0]" */
    const char *idle;  /* spin or yield */
    uint32_t broker_core;
    uint32_t payment_count;
    uint32_t warm_count;
    double rate;
    uint32_t misroute_ppm;
    uint32_t partitions;
    const char *const *topics; /* that the job writes, up to NULL; the first is measured */
};

struct rig {
    struct rig_config config;
    struct appliance_config appliance;
    struct job_file script;
    struct box box;
    struct port *far_port;
    struct cluster *cluster;
    struct span *payments;
    uint8_t *payment_bytes;
    struct ledger *ledger; /* made by rig_ledger */
    pthread_t broker_thread;
    bool broker_runs;
    bool broker_stops;   /* told to the thread; atomic */
    bool begins;         /* told to the thread; atomic */
    uint32_t done_count; /* answers so far, told by the thread; atomic */
};

/* Builds everything and starts the lanes and the cluster; ends the process with a message when
 * something is not to be had, with exit code 77 where the machine has too few cores.
 * threads  control */
struct rig *rig_start(const struct rig_config *config);

/* Lets records come, and waits until all are answered.
 * returns  false when the box fell silent for `patience_s` seconds or a lane failed
 * threads  control */
bool rig_run(struct rig *rig, uint32_t patience_s);

/* Waits until `count` records are answered; as rig_run otherwise. */
bool rig_wait(struct rig *rig, uint32_t count, uint32_t patience_s);

/* Lets records come, without waiting. */
void rig_begin(struct rig *rig);

/* Runs a call on a lane and waits until it has run.
 * threads  control */
void rig_call(struct rig *rig, uint32_t lane, void (*call)(void *context, int64_t value),
              void *context);

/* Sums the lanes' ledgers.
 * returns  owned by the rig */
struct ledger *rig_ledger(struct rig *rig);

/* Stops the lanes and the cluster. */
void rig_stop(struct rig *rig);

/* Frees everything. */
void rig_destroy(struct rig *rig);
