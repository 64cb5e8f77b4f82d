/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made plans for tests of the runtime: sources that count, operators that copy, double or hold
 * rows, sinks that remember. Rows have two BIGINT columns: key and number. A source on lane L makes
 * numbers L, L + lanes, …; the key is number % key_count; the event time is the number. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "dataplane/job.h"

#define FAKE_NODES_MAX  24
#define FAKE_BLOCKS_MAX 8192

enum fake_kind {
    FAKE_COPY = 0,
    FAKE_DOUBLE, /* each row twice */
    FAKE_HOLD,   /* keeps rows, gives them out in order once the watermark has reached them */
};

struct fake_row {
    int64_t key;
    int64_t number;
    int64_t time_ms;
};

struct fake_plan {
    struct plan plan;
    struct plan_node nodes[FAKE_NODES_MAX];
    const struct plan_node *pointers[FAKE_NODES_MAX];
    uint32_t inputs[FAKE_NODES_MAX][4];
    struct type types[2];
    uint16_t slots[2];
    uint32_t key_column;
};

struct fake_sink_log {
    struct fake_row *rows;
    size_t count;
    size_t capacity;
    int64_t watermarks; /* not seen by sinks: 0 */
};

/* What sources and sinks of a lane find in their environment. */
struct fake_world {
    uint32_t lane_count;
    uint32_t key_count;
    int64_t rows_a_source;
    int64_t watermark_every;                   /* rows between watermarks; 0: only at the end */
    uint32_t refuse_of_16;                     /* how often a sink says it is full */
    uint64_t random;                           /* of this lane */
    struct fake_sink_log logs[FAKE_NODES_MAX]; /* of this lane's sinks, by node */
};

struct fake_source {
    struct source base;
    struct source_context *context;
    int64_t made;
    int64_t tick_ms;
    bool draining;
};

struct fake_operator {
    struct operator base;
    struct operator_context *context;
    enum fake_kind kind;
    const struct row_layout *layout;
    struct fake_row *held;
    size_t held_count;
    size_t held_capacity;
    size_t given;
    int64_t watermark_ms;
};

struct fake_sink {
    struct sink base;
    struct sink_context *context;
};

/* Draws the next number, 31 bits.
 * threads  any, one at a time */
uint64_t fake_random(uint64_t *state);

/* The bodies of fake sources, operators and sinks.
 * threads  any */
extern const struct source_ops fake_source_ops;
extern const struct operator_ops fake_operator_ops;
extern const struct sink_ops fake_sink_ops;

/* Opens a fake operator; tests that replace its calls start from it.
 * threads  control */
int fake_operator_open(const struct plan_node *node, const struct row_layout *const *inputs,
                       struct operator_context *context, struct operator** out,
                       struct error *error);

/* Frees it.
 * threads  control */
void fake_operator_close(struct operator* base);

/* Gives the fake operator for every node.
 * threads  any */
const struct operator_ops *fake_find(enum plan_operator operator);

/* Empties a plan; its rows are two BIGINT columns, the key is column 0.
 * threads  control */
void fake_plan_init(struct fake_plan *plan);

/* Adds a node; the kind of a fake operator rides in the node's line.
 * returns  its id
 * threads  control */
uint32_t fake_node(struct fake_plan *plan, enum plan_operator operator, enum fake_kind kind,
                   enum plan_distribution distribution, uint32_t input_count,
                   const uint32_t *inputs);

#define FAKE_INPUTS(...)                                                                           \
    (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (uint32_t[])                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Memory that goes back with the test. */
struct fake_memory {
    void *blocks[FAKE_BLOCKS_MAX];
    uint32_t count;
};

/* Takes zeroed memory, as job_config.allocate does.
 * context  a struct fake_memory
 * threads  control */
void *fake_allocate(void *context, uint32_t lane, size_t bytes);

/* Gives all of it back.
 * threads  control */
void fake_memory_free(struct fake_memory *memory);

/* Fills in a lane's world: 1,000 rows a source, 17 keys.
 * threads  control */
void fake_world_init(struct fake_world *world, uint32_t lane, uint32_t lane_count);

/* Frees its logs.
 * threads  control */
void fake_world_free(struct fake_world *world);

/* A configuration of lanes that have every role; the worlds stand one a lane.
 * threads  control */
struct job_config fake_config(const struct fake_plan *plan, uint32_t lane_count,
                              struct fake_world *worlds, struct fake_memory *memory);

/* Polls all lanes in turn until all have ended; fails after turns_max.
 * threads  control */
void fake_run(struct job *job, uint32_t lane_count, uint32_t turns_max);
