/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted broker of tests/sim behind a TCP station, fed open loop: record n becomes readable
 * when it is due, whatever the box does, and its stay outside counts from that moment to the moment
 * at which the produced answer with its id arrives here. One thread; allocates freely. */
#pragma once

#include "base.h"
#include "dataplane/histogram.h"
#include "nic/port.h"
#include "tests/box/tcp_server.h"
#include "tests/sim/broker.h"

struct cluster_config {
    struct port *port;
    const struct span *payments; /* JSON objects, "id":1, "id":2, … */
    uint32_t payment_count;
    uint32_t warm_count; /* records at the front that are not measured */
    double rate;         /* records a second */
    uint32_t misroute_ppm;
    uint32_t partitions;       /* of the topic payments */
    const char *const *topics; /* that the job writes, up to NULL; the first is measured */
};

struct cluster {
    struct cluster_config config;
    struct broker *broker;
    struct tcp_server *server;
    struct bytes *batches; /* one a record, ready made */
    struct bytes answer;
    struct broker_topic *input;
    struct broker_topic *output;
    uint32_t next;
    uint64_t start_ns; /* 0: not begun */
    uint32_t seen_batches[BROKER_PARTITIONS_MAX];
    uint8_t *seen; /* by id */
    uint32_t answered_count;
    uint32_t doubled_count;
    uint32_t strange_count; /* answers without a known id */
    struct histogram outside;
    uint64_t late_ns_max; /* how late the feeder itself was at worst */
};

/* Makes the cluster with topic "payments" and those of the config.
 * threads  one */
struct cluster *cluster_create(const struct cluster_config *config);

/* Frees it.
 * threads  one */
void cluster_destroy(struct cluster *cluster);

/* From now on records are due.
 * threads  one */
void cluster_begin(struct cluster *cluster, uint64_t now_ns);

/* One turn: feeds, receives, answers.
 * threads  one */
void cluster_poll(struct cluster *cluster, uint64_t now_ns);
