/* SPDX-License-Identifier: Apache-2.0 */
/* The whole box on two lanes with two NIC queues, whose broker answers on the wrong queue now and
 * then: lanes, exchanges, hand-off and counters at work in threads. Every payment is answered once.
 * Run under the thread sanitizer it is the proof that lanes share nothing but rings. */
#include <stdio.h>

#include "tests/box/rig.h"

int main(void)
{
    static const char *const topics[] = {"scores", "alerts", "merchant_minute", NULL};
    const struct rig_config config = {
        .script_path = "configs/fraud/job.sql",
        .cores = "receive: [0, 1], operate: [0, 1], transmit: [0, 1]",
        .idle = "yield",
        .broker_core = 1,
        .payment_count = 6000,
        .rate = 3000,
        .misroute_ppm = 30000,
        .partitions = 2,
        .topics = topics,
    };
    struct rig *rig = rig_start(&config);
    const bool answered = rig_run(rig, 60);
    rig_stop(rig);
    const struct cluster *cluster = rig->cluster;
    const bool good = answered && cluster->answered_count == config.payment_count &&
                      cluster->doubled_count == 0 && cluster->strange_count == 0 &&
                      cluster->server->misrouted_count > 0;
    (void)printf("answered %u of %u, twice %u, strange %u; %lu frames on a wrong queue\n",
                 cluster->answered_count, config.payment_count, cluster->doubled_count,
                 cluster->strange_count, (unsigned long)cluster->server->misrouted_count);
    network_print(rig->box.network, stdout);
#ifndef __SANITIZE_THREAD__
    /* memif's and DPDK's own thread, which the sanitizer cannot look into, takes part in taking
     * the ports down: that is no lane's business. */
    rig_destroy(rig);
#endif
    return good ? 0 : 1;
}
