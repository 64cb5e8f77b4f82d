/* SPDX-License-Identifier: Apache-2.0 */
/* The reading half of a client: sources (assigned partitions), Fetch v11 without sessions, and
 * ListOffsets v2 for where to start and end.
 *
 * A response is walked twice. When it is whole, batch headers alone give each partition's next
 * fetch offset, and the next request goes out at once; then the batches are checked, decompressed
 * and handed up record by record while the bytes stay where they are. So a partition has two
 * places: fetch_offset, where the next request starts, and position, the next offset to hand up.
 *
 * Invariants, per source:
 *   1. position only grows (but for seek and reset), and every record at or above it is still to
 *      be handed up: by the response that is being decoded, or by a later fetch.
 *   2. It is in at most one request in flight that counts (requested_on); the answers of others
 *      are dropped.
 *   3. Whatever goes wrong, fetch_offset falls back to position: nothing is lost or repeated. */
#pragma once

#include "base.h"
#include "dataplane/kafka/batch.h"
#include "dataplane/kafka/core.h"
#include "dataplane/kafka/fetch_wire.h"

#define KAFKA_ABORTED_MAX 4096

/* What a source asks ListOffsets for. */
enum kafka_query {
    KAFKA_QUERY_NONE = 0,
    KAFKA_QUERY_START,
    KAFKA_QUERY_START_LATEST, /* no record is as young as the wanted timestamp */
    KAFKA_QUERY_END,
    KAFKA_QUERY_END_LATEST,
    KAFKA_QUERY_RESET,
};

struct kafka_source {
    struct kafka_assignment assignment;
    enum kafka_source_state state;
    enum kafka_query query;
    uint32_t query_on;     /* connection, KAFKA_NO_CONNECTION when no query is in flight */
    uint64_t query_token;  /* of the request; older answers are for a query that was given up */
    uint32_t requested_on; /* connection */
    uint32_t decode_on;    /* connection whose held response has data of it */
    int64_t position;
    int64_t fetch_offset;
    int64_t high_watermark;
    int64_t end_offset; /* -1 none */
    int32_t leader_epoch;
    uint32_t partition_bytes;
    uint32_t fail_count; /* in a row */
    uint32_t corrupt_count;
    uint64_t retry_at_ns;
    uint64_t caught_up_ns;
    bool is_paused;
    bool is_caught_up;
    int16_t error_code;
};

/* The decoding of the response that one fetch connection holds. */
struct kafka_fetch_hold {
    bool is_held;
    bool in_records; /* entry's records are being read from records_read on */
    uint32_t source_index;
    struct kafka_fetch_cursor cursor;
    struct kafka_fetch_entry entry;
    size_t records_read;
    uint64_t aborted_done[KAFKA_ABORTED_MAX / 64]; /* transactions that have seen their marker */
};

/* The batch whose records are being handed up. */
struct kafka_fetch_open {
    bool is_open;
    bool is_decoded; /* its records are in the decode buffer, else in the held response */
    uint32_t connection_index;
    uint32_t source_index;
    struct kafka_batch batch;
    size_t records_at;    /* offset in the response's body when not decoded */
    size_t records_bytes; /* as decoded */
    size_t read_bytes;
    uint32_t records_left;
};

struct kafka_fetch {
    struct kafka_core *core;
    struct kafka_source *sources;
    uint32_t source_end;            /* one above the highest used index */
    int32_t *source_of;             /* topics_max * topic_partitions_max, -1 none */
    uint32_t *topic_want;           /* scratch of one send: sources a topic has in the request */
    struct kafka_fetch_hold *holds; /* one a broker */
    struct kafka_fetch_open open;
    struct span_mut decode_buffer;
    uint64_t query_token;   /* of the newest ListOffsets request */
    uint32_t hold_cursor;   /* the broker that pull looks at first */
    uint32_t metadata_seen; /* change_count at the last look at leaders */
    uint64_t now_ns;        /* of the last poll */
};

/* Lays the reading half out, as kafka_core_layout does.
 * threads  control */
void kafka_fetch_layout(struct kafka_fetch *fetch, const struct kafka_config *config,
                        struct kafka_arena *arena);

/* Fills it in after the layout.
 * threads  control */
void kafka_fetch_init(struct kafka_fetch *fetch, struct kafka_core *core);

/* As kafka_client_assign.
 * threads  owning lane only */
bool kafka_fetch_assign(struct kafka_fetch *fetch, const struct kafka_assignment *assignment,
                        uint32_t *out);

/* As kafka_client_unassign.
 * threads  owning lane only */
void kafka_fetch_unassign(struct kafka_fetch *fetch, uint32_t source_index);

/* Drops what was received and not handed up of a source, so that it is fetched again.
 * threads  owning lane only */
void kafka_fetch_rewind(struct kafka_fetch *fetch, uint32_t source_index);

/* As kafka_client_seek.
 * threads  owning lane only */
void kafka_fetch_seek(struct kafka_fetch *fetch, uint32_t source_index, int64_t offset);

/* As kafka_client_source_status.
 * threads  owning lane only */
void kafka_fetch_status(const struct kafka_fetch *fetch, uint32_t source_index,
                        struct kafka_source_status *out);

/* Sends what is due: offset queries and fetches.
 * returns  requests sent
 * threads  owning lane only */
uint32_t kafka_fetch_poll(struct kafka_fetch *fetch, uint64_t now_ns);

/* Takes note of a Fetch response that a connection holds, and sends the next fetch.
 * returns  false when it is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_fetch_take(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns);

/* Takes in a ListOffsets response that a connection holds.
 * returns  false when it is malformed; the connection has failed then
 * threads  owning lane only */
bool kafka_fetch_take_offsets(struct kafka_fetch *fetch, uint32_t connection_index,
                              uint64_t now_ns);

/* Forgets what a lost connection had in flight or held.
 * threads  owning lane only */
void kafka_fetch_lost(struct kafka_fetch *fetch, uint32_t connection_index, uint64_t now_ns);

/* As kafka_client_pull.
 * threads  owning lane only */
uint32_t kafka_fetch_pull(struct kafka_fetch *fetch, struct kafka_record *out, uint32_t record_max);

/* Ends a source for good with an event.
 * reason   a static string
 * threads  owning lane only */
void kafka_fetch_fail(struct kafka_fetch *fetch, uint32_t source_index, int16_t code,
                      const char *reason);

/* Acts on an error code that a broker gave for a source: back-off, refresh or the end.
 * threads  owning lane only */
void kafka_fetch_error(struct kafka_fetch *fetch, uint32_t source_index, int16_t code);

/* Sends a source back to its position after a batch that cannot be right; fails it when that has
 * happened too often at one place.
 * reason   a static string
 * threads  owning lane only */
void kafka_fetch_corrupt(struct kafka_fetch *fetch, uint32_t source_index, const char *reason);

/* Moves a source's position on, and ends it at its end offset.
 * position at least the old one
 * returns  false when the source is not READING any more
 * threads  owning lane only */
bool kafka_fetch_advance(struct kafka_fetch *fetch, uint32_t source_index, int64_t position);

/* Tells which query finds a source's end.
 * returns  KAFKA_QUERY_NONE when it is known or there is none
 * threads  owning lane only */
enum kafka_query kafka_fetch_end_query(struct kafka_source *source);

/* Tells which broker leads a source's partition.
 * returns  -1 when that is not known
 * threads  owning lane only */
int32_t kafka_fetch_leader(const struct kafka_fetch *fetch, const struct kafka_source *source);

/* Shows a source in use.
 * threads  owning lane only */
struct kafka_source *kafka_fetch_source(const struct kafka_fetch *fetch, uint32_t source_index);

/* Makes an event about a source, without its text.
 * threads  owning lane only */
struct kafka_event kafka_fetch_event(const struct kafka_fetch *fetch, uint32_t source_index,
                                     enum kafka_event_code code, int16_t error_code);

/* Asks the reset policy after an offset out of range.
 * threads  owning lane only */
void kafka_fetch_out_of_range(struct kafka_fetch *fetch, uint32_t source_index);

/* Finds the source of a topic's partition.
 * returns  its index, -1 when it is not assigned
 * threads  owning lane only */
int32_t kafka_fetch_find(const struct kafka_fetch *fetch, struct span topic, int32_t partition);

/* Sends the offset queries that are due.
 * returns  requests sent
 * threads  owning lane only */
uint32_t kafka_fetch_send_queries(struct kafka_fetch *fetch, uint64_t now_ns);
