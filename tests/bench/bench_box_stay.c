/* SPDX-License-Identifier: Apache-2.0 */
/* The stay in the box: the whole appliance on core 0 (NIC, TCP, Kafka, SQL, and back), a scripted
 * broker on core 1, a memif pair between them. Payments of 300 bytes come open loop at a set rate,
 * each a record batch of its own, the worst case for a client.
 *
 *     bench_box_stay [JOB [RATE [RECORDS]]]     JOB: project, over, fraud; each alone when none
 *
 * Two measures: the ledger of the box, stage by stage, from the turn that took the frame from the
 * NIC to the return of the call that gave the answer to the NIC; and, at the broker, from the
 * moment a record was due there to the moment its answer was read there: memif, the broker's own
 * turns and its lateness included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/box/rig.h"

static const char *const topics[] = {"scores", "alerts", "merchant_minute", NULL};

static void forget(void *context, int64_t lane)
{
    struct rig *rig = context;
    struct ledger *ledger = job_lane_ledger(rig->box.job, (uint32_t)lane);
    for (uint32_t i = 0; i < LEDGER_STAGE_COUNT; i++) {
        histogram_init(ledger->stages[i]);
    }
    for (uint32_t i = 0; i < ledger->sink_count; i++) {
        histogram_init(ledger->sinks[i].processed);
        histogram_init(ledger->sinks[i].stay);
    }
}

static void print_outside(const struct cluster *cluster)
{
    const struct histogram *outside = &cluster->outside;
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
    (void)printf("%-32s %12lu", "due at broker -> answer there", (unsigned long)outside->total);
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        (void)printf(" %10.1f", (double)histogram_percentile(outside, shares[i]) / 1e3);
    }
    (void)printf(" %10.1f\n", (double)outside->max / 1e3);
    (void)printf("answered %u, twice %u, strange %u; the broker was late by up to %.1f us; its own "
                 "resends %lu\n",
                 cluster->answered_count, cluster->doubled_count, cluster->strange_count,
                 (double)cluster->late_ns_max / 1e3, (unsigned long)cluster->server->resent_count);
}

static int run(const char *job, double rate, uint32_t records)
{
    char path[128];
    const bool is_fraud = strcmp(job, "fraud") == 0;
    (void)snprintf(path, sizeof(path),
                   is_fraud ? "configs/fraud/job.sql" : "tests/bench/stay_%s.sql", job);
    const struct rig_config config = {
        .script_path = path,
        .cores = "receive: [0], operate: [0], transmit: [0]",
        .idle = "spin",
        .broker_core = 1,
        .payment_count = records,
        .warm_count = records / 5,
        .rate = rate,
        .partitions = 1,
        .topics = topics,
    };
    struct rig *rig = rig_start(&config);
    rig_begin(rig);
    bool good = rig_wait(rig, config.warm_count, 5);
    rig_call(rig, 0, forget, rig);
    good = good && rig_wait(rig, records, 5);
    rig_stop(rig);
    (void)printf("\n%s, %.0f records/s, one lane\n", job, rate);
    ledger_print(rig_ledger(rig), stdout);
    print_outside(rig->cluster);
    (void)fflush(stdout);
    if (getenv("BOX_STAY_COUNTERS") != NULL) {
        job_print(rig->box.job, stdout);
        network_print(rig->box.network, stdout);
    }
    rig_destroy(rig);
    return good ? 0 : 1;
}

/* One process a job: DPDK comes up once in each. */
static int run_apart(const char *program, const char *job)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        (void)execl(program, program, job, (char *)NULL);
        _exit(1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        const double rate = argc > 2 ? atof(argv[2]) : 100000;
        return run(argv[1], rate > 0 ? rate : 100000, argc > 3 ? (uint32_t)atoi(argv[3]) : 500000);
    }
    return run_apart("/proc/self/exe", "project") + run_apart("/proc/self/exe", "over") +
           run_apart("/proc/self/exe", "fraud");
}
