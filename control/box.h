/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of the appliance and all that each of them owns: its core and roles, its stack, its
 * Kafka clients with the record sources and sinks over them, its memory and its part of the job.
 * Built by the control thread before lanes run, taken down after they have stopped. */
#pragma once

#include <pthread.h>

#include "control/config.h"
#include "control/mapping.h"
#include "control/metadata_rdkafka.h"
#include "control/network.h"
#include "control/news.h"
#include "dataplane/job.h"
#include "dataplane/lane.h"
#include "dataplane/lane_checkpoint.h"
#include "dataplane/sink_kafka.h"
#include "dataplane/source_kafka.h"
#include "dataplane/table_sink.h"
#include "dataplane/table_source.h"
#include "state/arena.h"
#include "state/heap.h"
#include "state/snapshot.h"

#define BOX_SOURCES_MAX 32 /* source tables of a plan */
#define BOX_SHARDS      256

/* One source table on a receive lane. */
struct box_source {
    const struct plan_node *node;
    struct kafka_client *client;
    struct source_kafka *source;
    struct source_kafka_position *positions; /* of the group; owned */
    uint32_t position_count;
};

struct box_lane {
    struct box *box;
    uint32_t number;
    uint32_t core;
    bool receive;
    bool operate;
    bool transmit;
    struct stack *stack; /* NULL: the lane does not talk to the network */
    uint32_t queue;      /* of the port, where there is a stack */
    struct mapping *mapping;
    struct arena *arena;
    struct heap *heap;
    struct snapshot *snapshot;          /* borrowed; NULL: no checkpoints */
    struct lane_checkpoint *checkpoint; /* where there is a snapshot */
    uint64_t durable_id;                /* the last that the lane was told of */
    /* The last durable one whose answers are all visible: sinks have nothing under way. Written by
     * the lane, read by control. */
    _Atomic uint64_t visible_id;
    struct box_source sources[BOX_SOURCES_MAX];
    uint32_t source_count;
    struct kafka_client *writer; /* transmit lanes, and receive lanes with dead letters */
    struct sink_kafka *sink;
    struct kafka_client *pool[SINK_KAFKA_POOL_MAX]; /* transactional; where tables want it */
    uint32_t pool_count;
    struct record_sink *printer;
    struct news *news;
    uint64_t first_poll_ns; /* 0: not yet polled */
    bool has_brokers;       /* each client has heard from its cluster once */
    struct lane *lane;
    pthread_t thread;
    bool is_running; /* the thread was started */
    bool has_ended;
    bool has_failed;
};

struct box {
    const struct appliance_config *config;
    const struct plan *plan;
    struct network *network;
    struct box_lane lanes[PLACEMENT_LANES_MAX];
    uint32_t lane_count;
    struct sink_kafka_topic *topics;     /* that are written; a sink's topic is its place here */
    const char *transactional_id_prefix; /* of the first table written exactly-once; NULL: none */
    uint32_t topic_count;
    struct table_source_environment source_environment;
    struct table_sink_environment sink_environment;
    struct job *job;
    struct lane_checkpoint *checkpoints[PLACEMENT_LANES_MAX]; /* the lanes', for the job's hook */
};

/* Lays lanes over the cores of the three roles, and lists the topics that the plan writes.
 * returns  0, or -E2BIG when there are more lanes, sources or topics than the limits above */
int box_init(struct box *box, const struct appliance_config *config, const struct plan *plan,
             struct error *error);

/* Tells how many lanes talk to the network: each needs a queue of the port. */
uint32_t box_queue_count(const struct box *box);

/* Maps memory and makes state; everything is resident after. */
int box_make_memory(struct box *box, struct error *error);

/* Makes Kafka clients, record sources and record sinks over box->network.
 * metadata  where the script starts at group offsets; else NULL is fine */
int box_make_edges(struct box *box, struct metadata *metadata, struct error *error);

/* Makes the job and the lanes around it. */
int box_make_job(struct box *box, struct error *error);

/* Hands the lanes what a checkpoint says of transactions: those that belong to it are committed,
 * all others of the job aborted, before new ones begin. To be called at every start.
 * checkpoint_id  0: there is none, store may be NULL
 * threads        control, before lanes run */
int box_recover(struct box *box, struct store *store, uint64_t checkpoint_id, struct error *error);

/* Tells whether every lane has heard that a checkpoint is durable, and all that was written before
 * it is visible.
 * threads  control */
bool box_is_visible(const struct box *box, uint64_t checkpoint_id);

/* Starts one pinned thread a lane. */
int box_start(struct box *box, struct error *error);

/* Tells all lanes to leave their loops, and waits for the threads. */
void box_stop(struct box *box);

/* Frees what the calls above made; also after a failure in the middle. */
void box_fini(struct box *box);

/* Nanoseconds of the monotonic clock, without a system call. Any thread. */
uint64_t box_clock(void *context);
