/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted Kafka cluster in memory, for simulation: an append-only log with the idempotent rules
 * of a real broker, and streams that fragment, stall, reset and lie by seed. It shares no code with
 * the client under test: its own primitives, its own CRC, the real compression libraries.
 *
 * Time is virtual. One request of a connection is worked on at a time, a long poll holds up what is
 * queued behind it. Single-threaded; allocates freely. */
#pragma once

#include "base.h"
#include "nic/stream.h"

#define BROKER_NODES_MAX      4
#define BROKER_TOPICS_MAX     4
#define BROKER_PARTITIONS_MAX 8
#define BROKER_PRODUCERS_MAX  1024
#define BROKER_DUPLICATES     5
#define BROKER_IP4            0xC6120001 /* 198.18.0.1 is node 0 */
#define BROKER_PORT           9092
#define BROKER_ODDS_ONE       4096 /* odds are out of this many */
#define BROKER_IDS_MAX        64   /* transactional ids */
#define BROKER_ID_BYTES       256

enum broker_api_versions {
    BROKER_VERSIONS_V3 = 0, /* answers v3 */
    BROKER_VERSIONS_OLD,    /* error 35 in the body of v0 */
    BROKER_VERSIONS_BROKEN, /* error 35 and one byte that fits nothing */
    BROKER_VERSIONS_CLOSE,  /* closes on v3 */
};

/* What goes wrong, and how often: chances out of BROKER_ODDS_ONE. */
struct broker_faults {
    uint32_t refuse;      /* of a connect */
    uint32_t hang;        /* of a connect, for ever */
    uint32_t reset;       /* of a step of a connection */
    uint32_t finish;      /* FIN of a step of a connection */
    uint32_t stall;       /* of a request: it is never answered */
    uint32_t slow;        /* of a request: some hundred milliseconds */
    uint32_t error;       /* of a partition in an answer: a random error code */
    uint32_t sequence;    /* of a produced batch: a false sequence error */
    uint32_t expire;      /* of a produced batch: before it, the partition forgets its producers */
    uint32_t shorten;     /* of a produced batch: before it, of each producer the last is known */
    uint32_t garbage;     /* of an answer: mangled */
    uint32_t flip;        /* of a fetched batch: a bit is wrong */
    uint32_t move;        /* of a step: a leader moves */
    uint32_t forget;      /* of a Metadata answer: topics, partitions or leaders are missing */
    uint32_t throttle;    /* of an answer */
    uint32_t lose_answer; /* of a request that writes: done, but the connection breaks before */
    uint32_t coordinator; /* of a step: a transactional id gets another coordinator */
    uint32_t restart;     /* of a step: a node breaks its connections and is away for a while */
    uint32_t marker;      /* of a step and partition: a transaction's marker is late */
};

struct broker_config {
    uint64_t seed;
    uint32_t nodes;
    enum broker_api_versions versions;
    int16_t metadata_version_max;
    size_t fragment_bytes_max; /* of one delivery, above 0 */
    size_t send_bytes_max;     /* the stream's send buffer */
    size_t receive_bytes_max;  /* the stream's receive buffer */
    size_t batch_bytes_max;    /* max.message.bytes */
    uint32_t linger_ms;        /* what a client that is gone has sent is still worked on, so long */
    struct broker_faults faults;
};

/* A stored batch; data is owned. */
struct broker_batch {
    uint8_t *data;
    size_t bytes;
    int64_t base_offset;
    int64_t last_offset;
    int64_t max_timestamp;
};

struct broker_span {
    int32_t first_sequence;
    int32_t last_sequence;
    int64_t base_offset;
};

/* What a partition knows of one producer. */
struct broker_producer {
    int64_t id;
    int16_t epoch;
    int32_t last_sequence;
    struct broker_span recent[BROKER_DUPLICATES];
    uint32_t recent_count; /* ever stored */
};

struct broker_aborted {
    int64_t producer_id;
    int64_t first_offset;
    int64_t last_offset; /* of the marker */
};

/* What a producer has in a partition of a transaction that is not over. */
struct broker_open {
    int64_t producer_id;
    int64_t first_offset;
};

struct broker_partition {
    struct broker_batch *batches;
    uint32_t batch_count;
    uint32_t batch_capacity;
    int64_t start_offset;
    int64_t next_offset;
    int64_t stable_offset; /* -1: as next_offset */
    uint32_t leader;
    int32_t epoch;
    struct broker_producer producers[BROKER_PRODUCERS_MAX];
    uint32_t producer_count;
    struct broker_aborted *aborted;
    uint32_t aborted_count;
    struct broker_open open[BROKER_IDS_MAX];
    uint32_t open_count;
    uint64_t duplicate_count; /* batches answered as duplicates */
};

struct broker_topic {
    const char *name;
    uint32_t partition_count;
    struct broker_partition partitions[BROKER_PARTITIONS_MAX];
};

enum broker_transaction_state {
    BROKER_TXN_EMPTY = 0,
    BROKER_TXN_ONGOING,
    BROKER_TXN_PREPARE_COMMIT, /* markers are being written */
    BROKER_TXN_PREPARE_ABORT,
    BROKER_TXN_COMPLETE_COMMIT,
    BROKER_TXN_COMPLETE_ABORT,
};

/* What the coordinator knows of a transactional id. */
struct broker_transaction {
    char id[BROKER_ID_BYTES];
    int64_t producer_id;
    int16_t epoch;
    enum broker_transaction_state state;
    uint32_t coordinator; /* node */
    uint64_t timeout_ns;
    uint64_t began_ns;
    bool is_added[BROKER_TOPICS_MAX][BROKER_PARTITIONS_MAX]; /* and without a marker yet */
};

struct broker_stream;

struct broker {
    struct broker_config config;
    uint64_t random;
    uint64_t now_ns;
    struct broker_topic topics[BROKER_TOPICS_MAX];
    uint32_t topic_count;
    struct broker_stream *streams; /* a list of the open ones */
    int64_t next_producer_id;
    struct broker_transaction transactions[BROKER_IDS_MAX];
    uint32_t transaction_count;
    uint32_t expired_count; /* transactions that the cluster ended by itself */
    uint32_t restart_count;
    uint64_t away_until_ns[BROKER_NODES_MAX];
    uint64_t request_count;
    uint64_t malformed_count; /* requests of the client that broke the protocol */
};

/* Bytes that grow; data is owned. */
struct bytes {
    uint8_t *data;
    size_t count;
    size_t capacity;
};

/* Makes a cluster.
 * returns  freed by broker_destroy
 * threads  one */
struct broker *broker_create(const struct broker_config *config);

/* Frees a cluster and the streams that were not released.
 * threads  one */
void broker_destroy(struct broker *broker);

/* Adds a topic.
 * threads  one */
struct broker_topic *broker_add_topic(struct broker *broker, const char *name, uint32_t partitions);

/* Connects: a kafka_connector's connect; context is the broker.
 * threads  one */
struct stream *broker_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns);

/* Moves time on: delivers fragments both ways, works on requests, lets things go wrong.
 * threads  one */
void broker_step(struct broker *broker, uint64_t now_ns);

/* Stops all faults.
 * threads  one */
void broker_calm(struct broker *broker);

/* Draws a random number.
 * threads  one */
uint64_t broker_random(struct broker *broker);

/* Tells by chance, out of BROKER_ODDS_ONE.
 * threads  one */
bool broker_chance(struct broker *broker, uint32_t odds);

/* Works on one request.
 * request  without its size field
 * out      the answer with correlation id, without size, is appended; a Fetch that has to wait
 *          appends nothing
 * returns  0 answered, 1 wait, -1 close the connection
 * threads  one */
int broker_answer(struct broker *broker, uint32_t node, struct span request, bool may_wait,
                  struct bytes *out);

/* Works on the partitions of Fetch and Produce requests; see broker_answer.
 * threads  one */
int broker_answer_fetch(struct broker *broker, uint32_t node, struct span body, bool may_wait,
                        struct bytes *out);

/* As broker_answer, for what concerns transactional ids: FindCoordinator v2, InitProducerId v3,
 * AddPartitionsToTxn v1, EndTxn v1. body is behind the request's header.
 * threads  one */
int broker_answer_transaction(struct broker *broker, uint32_t node, int64_t key, struct span body,
                              struct bytes *out);

/* Moves transactions on: markers, timeouts, coordinators that move.
 * threads  one */
void broker_transactions_step(struct broker *broker);

/* Judges a transactional batch before the log takes it.
 * returns  0 or a Kafka error code; a batch outside of a transaction is counted as malformed
 * threads  one */
int16_t broker_transaction_check(struct broker *broker, const struct broker_partition *partition,
                                 struct span batch);

/* Notes that the log has taken a transactional batch.
 * threads  one */
void broker_transaction_stored(struct broker_partition *partition, int64_t producer_id,
                               int64_t base_offset);

/* Forgets all but the last batch of each producer, as a broker does that is started again: so much
 * is in its snapshot.
 * threads  one */
void broker_log_shorten(struct broker_partition *partition);

/* Notes the epoch of a marker with a partition's producer.
 * threads  one */
void broker_log_marked(struct broker_partition *partition, int64_t producer_id, int16_t epoch);

/* Tells whether a transactional record of a partition is visible to a reader of what is committed.
 * batch_index  of a batch with the attribute
 * threads      one */
bool broker_is_committed(const struct broker_partition *partition, uint32_t batch_index);

/* As broker_answer_fetch, for Produce v7.
 * threads  one */
int broker_answer_produce(struct broker *broker, uint32_t node, struct span body,
                          struct bytes *out);

/* Tells how long a Fetch request may wait.
 * threads  one */
uint32_t broker_fetch_wait_ms(struct span request);

/* Stores a batch at a partition's end, giving it its offsets; data is copied.
 * last_offset_delta  of the batch
 * returns            the stored batch
 * threads            one */
struct broker_batch *broker_log_append(struct broker_partition *partition, struct span batch,
                                       uint32_t last_offset_delta);

/* Applies the idempotent rules to a produced batch and stores it.
 * base_offset  set when the answer is 0
 * returns      a Kafka error code
 * threads      one */
int16_t broker_log_produce(struct broker *broker, struct broker_partition *partition,
                           struct span batch, int64_t *base_offset);

/* Finds a topic by name.
 * returns  NULL when there is none
 * threads  one */
struct broker_topic *broker_find_topic(struct broker *broker, struct span name);

/* Computes CRC-32C bit by bit.
 * threads  any */
uint32_t broker_crc32c(struct span in);

/* Takes a zigzag varint.
 * at       moved on; past the end reads as 0 and sets *at beyond end
 * threads  any */
int64_t broker_varint(const uint8_t **at, const uint8_t *end);

/* Appends big-endian integers and bytes.
 * threads  any */
void bytes_put(struct bytes *into, const void *from, size_t count);

/* As bytes_put. */
void bytes_i8(struct bytes *into, int8_t value);

/* As bytes_put. */
void bytes_i16(struct bytes *into, int16_t value);

/* As bytes_put. */
void bytes_i32(struct bytes *into, int32_t value);

/* As bytes_put. */
void bytes_i64(struct bytes *into, int64_t value);

/* As bytes_put, an i16 string. */
void bytes_string(struct bytes *into, const char *text);

/* As bytes_put, a zigzag varint. */
void bytes_varint(struct bytes *into, int64_t value);

/* Frees what it holds.
 * threads  any */
void bytes_free(struct bytes *bytes);
