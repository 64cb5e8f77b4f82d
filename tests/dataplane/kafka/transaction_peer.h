/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster of one node that speaks just what a transactional client asks: versions, metadata, the
 * four transaction APIs and Produce. What it answers is scripted by the test, code by code; what it
 * was asked is kept. It keeps no log and no rules: those are a real broker's. */
#pragma once

#include "base.h"
#include "dataplane/kafka/client.h"
#include "dataplane/kafka/wire.h"
#include "tests/sim/broker.h"

#define PEER_STREAMS_MAX  64
#define PEER_CODES_MAX    16
#define PEER_ASKED_MAX    4096
#define PEER_PARTITIONS   2
#define PEER_PRODUCER_ID  INT64_C(0x0102030405060708)
#define PEER_NODE         7
#define PEER_STREAM_BYTES (1 << 16)

struct peer;

struct peer_stream {
    struct stream stream;
    struct peer *peer;
    struct bytes in;  /* what the client may read */
    struct bytes out; /* what it has sent, requests not yet whole */
    uint8_t tx[PEER_STREAM_BYTES];
};

/* A request as it came. */
struct peer_asked {
    enum kafka_api api;
    uint8_t body[256]; /* its first bytes, behind the header */
    size_t body_bytes;
};

struct peer {
    struct peer_stream *streams[PEER_STREAMS_MAX];
    uint32_t stream_count;
    struct peer_asked asked[PEER_ASKED_MAX];
    uint32_t asked_count;
    int16_t codes[KAFKA_API_KEYS_MAX][PEER_CODES_MAX]; /* what is answered next; 0 behind them */
    uint32_t code_count[KAFKA_API_KEYS_MAX];
    uint32_t code_next[KAFKA_API_KEYS_MAX];
    bool is_mute[KAFKA_API_KEYS_MAX]; /* this API is heard and not answered */
    int16_t epoch;                    /* of the next InitProducerId */
    int64_t next_offset;
};

/* Makes one.
 * threads  one */
struct peer *peer_create(void);

/* Frees it, when no client uses it any more.
 * threads  one */
void peer_destroy(struct peer *peer);

/* A kafka_connector's connect; context is the peer.
 * threads  one */
struct stream *peer_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns);

/* Puts a code that the next request of an API is answered by, behind those put before.
 * threads  one */
void peer_answer_next(struct peer *peer, enum kafka_api api, int16_t code);

/* Breaks all connections.
 * threads  one */
void peer_cut_off(struct peer *peer);

/* Counts the requests of an API.
 * threads  one */
uint32_t peer_count(const struct peer *peer, enum kafka_api api);

/* Shows the newest request of an API.
 * returns  NULL when there was none
 * threads  one */
const struct peer_asked *peer_last(const struct peer *peer, enum kafka_api api);

/* Fills in a small config that dials the peer.
 * threads  one */
void peer_config(struct kafka_config *config);
