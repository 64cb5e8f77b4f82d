/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a client share: config, counters, events, the cluster's picture, the table of
 * connections (broker x role) and the refresh of metadata. Fetch and produce hang on it.
 *
 * A broker works on one request of a connection at a time, so a long poll would hold up whatever
 * is queued behind it: roles have connections of their own. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/kafka/codec.h"
#include "dataplane/kafka/connection.h"
#include "dataplane/kafka/event.h"
#include "dataplane/kafka/metadata.h"

#define KAFKA_NANOSECONDS_PER_MS UINT64_C(1000000)
#define KAFKA_NO_CONNECTION      UINT32_MAX

enum kafka_role {
    KAFKA_ROLE_CONTROL = 0, /* Metadata, ListOffsets, InitProducerId */
    KAFKA_ROLE_FETCH,
    KAFKA_ROLE_PRODUCE,
    KAFKA_ROLE_COUNT,
};

struct kafka_core {
    struct kafka_config config;
    struct kafka_connector connector;
    struct kafka_counters counters;
    struct kafka_events events;
    struct kafka_metadata metadata;
    struct kafka_assembly assembly;
    struct kafka_codec *codec;
    struct kafka_connection *connections; /* brokers_max * KAFKA_ROLE_COUNT */
    uint64_t random;

    bool metadata_is_wanted;
    uint32_t metadata_connection; /* that has a request in flight, or KAFKA_NO_CONNECTION */
    uint64_t metadata_next_ns;    /* not before, when it is wanted */
    uint64_t metadata_stale_ns;   /* when it is wanted without any cause */
    uint32_t metadata_cursor;     /* the broker asked last */
};

/* Hands out memory from one block; with base NULL it only counts. */
struct kafka_arena {
    uint8_t *base;
    size_t used;
};

/* Takes zeroed, 64-byte aligned memory.
 * returns  NULL when the arena only counts
 * threads  control */
void *kafka_arena_take(struct kafka_arena *arena, size_t count, size_t bytes_each);

/* Lays the shared parts out; run once to count and once for real.
 * core     NULL when the arena only counts; its config and connector are set
 * threads  control */
void kafka_core_layout(struct kafka_core *core, const struct kafka_config *config,
                       struct kafka_arena *arena);

/* Fills the shared parts in after the layout: bootstrap brokers, connections.
 * threads  control */
void kafka_core_init(struct kafka_core *core);

/* Finds the connection to a broker for a role, and dials it when it is idle.
 * returns  NULL unless a request can be sent on it now
 * threads  owning lane only */
struct kafka_connection *kafka_core_ready(struct kafka_core *core, uint32_t broker_index,
                                          enum kafka_role role, uint64_t now_ns);

/* Numbers a connection.
 * threads  owning lane only */
uint32_t kafka_core_index(const struct kafka_core *core, const struct kafka_connection *connection);

/* Tells which broker a connection goes to.
 * threads  owning lane only */
static inline uint32_t kafka_core_broker_of(uint32_t connection_index)
{
    return connection_index / KAFKA_ROLE_COUNT;
}

/* Tells what a connection is for.
 * threads  owning lane only */
static inline enum kafka_role kafka_core_role_of(uint32_t connection_index)
{
    return (enum kafka_role)(connection_index % KAFKA_ROLE_COUNT);
}

/* Asks for a metadata refresh as soon as the back-off allows.
 * threads  owning lane only */
void kafka_core_want_metadata(struct kafka_core *core);

/* Sends a metadata request when one is due.
 * returns  work done
 * threads  owning lane only */
uint32_t kafka_core_poll_metadata(struct kafka_core *core, uint64_t now_ns);

/* Takes in the answer that a connection holds.
 * returns  false when the answer is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_core_take_metadata(struct kafka_core *core, struct kafka_connection *connection,
                              uint64_t now_ns);

/* Draws a random number.
 * threads  owning lane only */
uint64_t kafka_core_random(struct kafka_core *core);

/* Looks an advertised address up in the map, or reads it as a dotted number.
 * returns  false when neither gives an address
 * threads  owning lane only */
bool kafka_core_resolve(const struct kafka_core *core, const struct kafka_address *address,
                        uint32_t *ip4, uint16_t *port);

/* Gives the retry back-off with jitter, from now on.
 * try_count  how often it failed in a row, from 1; doubles up to 2^6 times the config's back-off,
 *            capped at a second or that back-off
 * threads    owning lane only */
uint64_t kafka_core_retry_at(struct kafka_core *core, uint32_t try_count, uint64_t now_ns);
