/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to one broker for one role: dials, agrees on versions, keeps the queue of
 * requests in flight, sends what is queued piece by piece as the stream takes it, and cuts the
 * received bytes into responses.
 *
 *   IDLE -open-> CONNECTING -> NEGOTIATING -> READY -> LOST -reset-> BACKOFF -> IDLE
 *
 * Invariants:
 *   1. Responses come in the order of the requests; any other correlation id ends the connection.
 *   2. A request once begun on the wire is finished or the connection ends.
 *   3. At most one response is held; the bytes behind it stay in the stream until it is done.
 * Limits: KAFKA_IN_FLIGHT_MAX requests, a response of at most response_bytes_max. One above the
 * stream's receive buffer is put together in the assembly buffer that all connections share. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/kafka/event.h"
#include "dataplane/kafka/wire.h"

#define KAFKA_IN_FLIGHT_MAX  8
#define KAFKA_SEGMENTS_MAX   256
#define KAFKA_HEADROOM_BYTES 128 /* what a request's header takes at most */

enum kafka_connection_state {
    KAFKA_CONNECTION_IDLE = 0,
    KAFKA_CONNECTION_BACKOFF,
    KAFKA_CONNECTION_CONNECTING,
    KAFKA_CONNECTION_NEGOTIATING,
    KAFKA_CONNECTION_READY,
    KAFKA_CONNECTION_LOST, /* waits for kafka_connection_reset */
};

enum kafka_connection_step {
    KAFKA_STEP_NOTHING = 0,
    KAFKA_STEP_WORK,  /* something moved */
    KAFKA_STEP_READY, /* versions are agreed on */
    KAFKA_STEP_FRAME, /* a response is held: see kafka_connection_body */
    KAFKA_STEP_LOST,  /* see lost_reason; every request in flight is unanswered */
};

/* A request that waits for its response. */
struct kafka_request {
    enum kafka_api api;
    int16_t version;
    int32_t correlation;
    uint64_t deadline_ns;
    uint64_t tx_end; /* where it ends, counted in bytes ever queued */
    uint64_t token;  /* the sender's own */
};

/* The one buffer for responses that do not fit into a stream's. */
struct kafka_assembly {
    uint8_t *data;
    size_t capacity;
    size_t filled;
    const void *owner; /* the connection that fills or holds it, NULL when free */
};

struct kafka_segment {
    const uint8_t *data;
    size_t bytes;
};

struct kafka_connection {
    /* Set by kafka_connection_init. */
    const struct kafka_config *config;
    const struct kafka_connector *connector;
    struct kafka_counters *counters;
    struct kafka_assembly *assembly;
    struct span_mut scratch;

    enum kafka_connection_state state;
    struct stream *stream;
    const char *lost_reason; /* a static string */
    uint64_t deadline_ns;    /* of the current state, where it has one */
    uint64_t throttle_until_ns;
    uint64_t used_ns; /* when a request was last sent or answered */
    uint32_t backoff_ms;
    bool versions_are_old; /* ask for ApiVersions v0 */
    int16_t version_min[KAFKA_API_KEYS_MAX];
    int16_t version_max[KAFKA_API_KEYS_MAX];

    int32_t correlation;
    struct kafka_request queue[KAFKA_IN_FLIGHT_MAX];
    uint32_t queue_head;
    uint32_t queue_count;

    struct kafka_segment segments[KAFKA_SEGMENTS_MAX];
    uint32_t segment_count;
    uint32_t segment_index; /* the first that is not wholly sent */
    size_t segment_sent;    /* bytes of it that are */
    size_t scratch_used;
    uint64_t tx_queued;
    uint64_t tx_sent;

    /* The request being written, between begin and submit. */
    struct kafka_request draft;
    uint32_t draft_segments;
    size_t draft_bytes; /* in closed segments */
    size_t draft_start; /* of the open piece, in the scratch */

    struct kafka_request held; /* whose response is held */
    size_t held_bytes;         /* with the size field, 0 when none is held */
    size_t frame_bytes;        /* of the frame that is coming in, 0 when its size is not known */
    bool is_assembled;         /* the frame goes through the assembly buffer */
    uint64_t held_arrival_ns;
};

/* What every connection of a client shares, and its own scratch memory. */
struct kafka_connection_setup {
    const struct kafka_config *config;
    const struct kafka_connector *connector;
    struct kafka_counters *counters;
    struct kafka_assembly *assembly;
    struct span_mut scratch; /* for request headers and bodies, not for batches */
};

/* Fills in an idle connection.
 * setup    its pointers are borrowed for the connection's life
 * threads  control */
void kafka_connection_init(struct kafka_connection *connection,
                           const struct kafka_connection_setup *setup);

/* Starts to dial.
 * returns  false when the state is not IDLE or the connector has no stream (then it backs off)
 * threads  owning lane only */
bool kafka_connection_open(struct kafka_connection *connection, uint32_t ip4, uint16_t port,
                           uint64_t now_ns);

/* Does one step: sends, receives, looks at deadlines.
 * returns  the most telling thing that happened; FRAME again and again while a response is not yet
 *          taken note of is not returned: once a response
 * threads  owning lane only */
enum kafka_connection_step kafka_connection_poll(struct kafka_connection *connection,
                                                 uint64_t now_ns);

/* Tells whether a request could be sent now: ready, not throttled, room in queue and scratch.
 * threads  owning lane only */
bool kafka_connection_can_send(const struct kafka_connection *connection, uint64_t now_ns);

/* Tells whether the broker speaks a version of an API.
 * threads  owning lane only */
bool kafka_connection_speaks(const struct kafka_connection *connection, enum kafka_api api,
                             int16_t version);

/* Begins a request; its header is written.
 * returns  a writer for the body, over the scratch; finish it by submit or drop it
 * threads  owning lane only; kafka_connection_can_send must hold */
struct kafka_writer kafka_connection_begin(struct kafka_connection *connection, enum kafka_api api,
                                           int16_t version);

/* Puts bytes into the request without copying them (small ones are copied).
 * writer   as begin gave it; goes on behind the bytes
 * from     borrowed until the response is there or the connection is lost
 * returns  false when there is no room: drop the request
 * threads  owning lane only */
bool kafka_connection_splice(struct kafka_connection *connection, struct kafka_writer *writer,
                             struct span from);

/* Queues the request begun last and sends what the stream takes.
 * token      comes back with the response, in held.token
 * timeout_ms from now
 * returns    false when the writer overflowed: nothing is sent
 * threads    owning lane only */
bool kafka_connection_submit(struct kafka_connection *connection, struct kafka_writer *writer,
                             uint64_t token, uint64_t timeout_ms, uint64_t now_ns);

/* Forgets the request begun last.
 * threads  owning lane only */
void kafka_connection_drop(struct kafka_connection *connection);

/* Shows the body of the held response, behind its header.
 * returns  borrowed until the network's next poll, or kafka_connection_done
 * threads  owning lane only */
struct span kafka_connection_body(struct kafka_connection *connection);

/* Frees the held response's bytes.
 * threads  owning lane only */
void kafka_connection_done(struct kafka_connection *connection, uint64_t now_ns);

/* Holds back new requests, as a broker's throttle_time_ms asks.
 * threads  owning lane only */
void kafka_connection_throttle(struct kafka_connection *connection, int32_t throttle_ms,
                               uint64_t now_ns);

/* Ends the connection; the next poll returns LOST.
 * reason   a static string
 * threads  owning lane only */
void kafka_connection_fail(struct kafka_connection *connection, const char *reason);

/* Clears a lost connection and starts its back-off, which doubles until a connection is READY.
 * jitter   any random number
 * threads  owning lane only */
void kafka_connection_reset(struct kafka_connection *connection, uint64_t jitter, uint64_t now_ns);

/* Closes a connection that nobody needs, without back-off.
 * threads  owning lane only */
void kafka_connection_close(struct kafka_connection *connection);
