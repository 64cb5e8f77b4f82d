/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka client of one lane: reads assigned partitions, writes idempotently or in transactions,
 * over streams that a connector supplies. It never waits, allocates nothing after create and reads
 * no clock; every step takes now_ns. A turn of the lane is: poll the network, kafka_client_poll,
 * then kafka_client_pull until it returns 0 or the lane has enough, kafka_client_append as output
 * comes. What is not pulled stays in the stream's buffer and so closes the TCP window.
 *
 * Limits: one client belongs to one lane. Records come per partition in offset order, each once,
 * whatever connections and leaders do. A frame larger than the stream's receive buffer goes
 * through one shared assembly buffer of response_bytes_max. */
#pragma once

#include "base.h"
#include "dataplane/kafka/batch.h"
#include "dataplane/kafka/event.h"
#include "nic/stream.h"

#define KAFKA_HOST_BYTES      256
#define KAFKA_TOPIC_BYTES     250
#define KAFKA_BOOTSTRAP_MAX   8
#define KAFKA_ADDRESS_MAP_MAX 64

#define KAFKA_TRANSACTIONAL_ID_BYTES 256

/* Bytes after a decompressed batch that may be read (never written) beyond a value's end. */
#define KAFKA_DECODE_SLACK_BYTES 64

struct kafka_client;

/* A broker's address: as advertised or configured, and what it is dialled at. */
struct kafka_address {
    char host[KAFKA_HOST_BYTES];
    uint16_t port;
};

/* One row of the address map: a broker that advertises `advertised` is dialled at ip4:port.
 * A port of 0 in `advertised` matches every port and keeps it. */
struct kafka_address_map {
    struct kafka_address advertised;
    uint32_t ip4; /* host byte order */
    uint16_t port;
};

/* Opens streams for the client. */
struct kafka_connector {
    /* Starts a connection and returns its stream, or NULL when none can be had now (it is tried
     * again after the back-off). The client releases the stream. */
    struct stream *(*connect)(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns);
    void *context;
};

/* Constants for the client's life. kafka_config_init fills in the defaults; the caller then sets
 * at least one bootstrap address and, to match the connector, stream_receive_bytes. */
struct kafka_config {
    struct kafka_address bootstrap[KAFKA_BOOTSTRAP_MAX];
    uint32_t bootstrap_count;
    struct kafka_address_map address_map[KAFKA_ADDRESS_MAP_MAX];
    uint32_t address_map_count;
    char client_id[64];

    uint32_t topics_max;
    uint32_t topic_partitions_max; /* partitions of one topic */
    uint32_t sources_max;          /* partitions read */
    uint32_t sinks_max;            /* partitions written */
    uint32_t brokers_max;

    uint32_t stream_receive_bytes; /* the receive buffer of the connector's streams */
    uint32_t response_bytes_max;   /* largest response, through the assembly buffer */
    uint32_t decoded_bytes_max;    /* largest batch after decompression */

    bool read_committed;
    uint32_t fetch_wait_ms;
    uint32_t fetch_bytes_max;
    uint32_t fetch_partition_bytes_max;

    enum kafka_codec_kind produce_codec; /* NONE or LZ4 */
    uint32_t produce_batch_bytes;        /* size of an ordinary batch buffer */
    uint32_t produce_buffers;            /* how many of them */
    uint32_t produce_record_bytes_max;   /* a record above produce_batch_bytes takes a large one */
    uint32_t produce_large_buffers;
    uint32_t produce_request_bytes_max;
    uint32_t produce_in_flight_max;           /* requests per broker, 1 to 5 */
    uint32_t produce_partition_in_flight_max; /* batches of one partition among them, 1 to 5 */

    bool is_transactional;           /* writes inside transactions only */
    uint32_t transaction_timeout_ms; /* the broker aborts an older one; its own cap is above it */

    uint32_t connect_timeout_ms;
    uint32_t request_timeout_ms;
    uint32_t retry_backoff_ms;
    uint32_t reconnect_backoff_ms;
    uint32_t reconnect_backoff_ms_max;
    uint32_t metadata_age_ms_max;
    uint32_t idle_close_ms;
    uint64_t seed; /* of the jitter in back-offs */

    /* Where the client lives: kafka_client_bytes bytes, 64-byte aligned, owned by the caller.
     * Empty: create takes it from the heap. */
    struct span_mut memory;
};

enum kafka_start {
    KAFKA_START_EARLIEST = 0,
    KAFKA_START_LATEST,
    KAFKA_START_TIMESTAMP, /* the first record at or after it; none: the end */
    KAFKA_START_OFFSET,
};

enum kafka_end {
    KAFKA_END_NONE = 0,
    KAFKA_END_LATEST,    /* the end at the time of the assignment */
    KAFKA_END_TIMESTAMP, /* before the first record at or after it; none: the end at assignment */
    KAFKA_END_OFFSET,    /* before it */
};

/* What happens when the broker no longer holds the wanted offset. */
enum kafka_reset {
    KAFKA_RESET_FAIL = 0,
    KAFKA_RESET_EARLIEST,
    KAFKA_RESET_LATEST,
};

struct kafka_assignment {
    uint32_t topic_index;
    int32_t partition;
    enum kafka_start start;
    int64_t start_value; /* milliseconds or an offset */
    enum kafka_end end;
    int64_t end_value;
    enum kafka_reset reset;
};

enum kafka_source_state {
    KAFKA_SOURCE_UNUSED = 0,
    KAFKA_SOURCE_STARTING, /* its offsets are being asked for */
    KAFKA_SOURCE_READING,
    KAFKA_SOURCE_ENDED,  /* bounded, all pulled */
    KAFKA_SOURCE_FAILED, /* see the event; the rest of the client goes on */
};

/* How far a source is. */
struct kafka_source_status {
    enum kafka_source_state state;
    int64_t position; /* the next offset to pull: what a checkpoint stores; -1 not known yet */
    int64_t high_watermark; /* as of the last response; read_committed: the last stable offset */
    int64_t end_offset;     /* -1 unbounded or not known yet */
    int32_t leader_epoch;   /* of the last batch pulled, -1 unknown */
    bool is_caught_up;      /* the broker answered: nothing after position */
    bool is_paused;
    uint64_t caught_up_ns; /* when is_caught_up last became true */
    int16_t error_code;    /* why it failed */
};

/* One record read. Spans point into the stream's buffer or the decode buffer. */
struct kafka_record {
    uint32_t source_index;
    uint32_t topic_index;
    int32_t partition;
    int32_t leader_epoch;
    int64_t offset;
    int64_t timestamp_ms; /* -1 none */
    enum kafka_timestamp_type timestamp_type;
    bool has_key;   /* false: null, not empty */
    bool has_value; /* false: a tombstone */
    struct span key;
    struct span value;
    uint32_t header_count;
    struct span headers; /* as encoded: walk it by kafka_header_next */
    uint64_t arrival_ns; /* when the response's last byte came in */
};

enum kafka_append {
    KAFKA_APPEND_OK = 0,
    KAFKA_APPEND_FULL,      /* no buffer (or transaction) now: try again after a poll */
    KAFKA_APPEND_TOO_LARGE, /* above produce_record_bytes_max */
    KAFKA_APPEND_FAILED,    /* the sink has failed: see its event */
};

/* One record to write; everything is copied. */
struct kafka_produce_record {
    struct span key;
    struct span value;
    bool has_key;
    bool has_value;
    const struct kafka_header *headers;
    uint32_t header_count;
    int64_t timestamp_ms;
};

/* How far a sink is: appended = acked + lost + pending. */
struct kafka_sink_status {
    bool is_failed;
    int16_t error_code;
    uint64_t appended_count;
    uint64_t acked_count;
    uint64_t lost_count;
    int64_t last_acked_offset; /* -1 none or not told */
    uint64_t handed_ns;        /* when the newest batch was first given to its stream */
    uint64_t handed_count;     /* records of the batches given to a stream at least once */
    uint64_t departed_count;   /* those whose last byte went to the port */
};

enum kafka_transaction_state {
    KAFKA_TRANSACTION_OFF = 0,    /* no id is taken */
    KAFKA_TRANSACTION_STARTING,   /* takes its id over: fences others, aborts what they left */
    KAFKA_TRANSACTION_READY,      /* nothing is open */
    KAFKA_TRANSACTION_OPEN,       /* takes records */
    KAFKA_TRANSACTION_COMMITTING, /* until everything is acknowledged and EndTxn answered */
    KAFKA_TRANSACTION_ABORTING,
    KAFKA_TRANSACTION_RESOLVING, /* ends a transaction of an earlier run */
    KAFKA_TRANSACTION_FAILED,    /* for good: see the event */
};

/* A transaction, or an id that may have one open, of an earlier run. */
struct kafka_transaction_claim {
    char transactional_id[KAFKA_TRANSACTIONAL_ID_BYTES];
    int64_t producer_id;
    int16_t producer_epoch;
    bool is_prepared; /* commit exactly this one; else abort whatever is open */
};

struct kafka_transaction_status {
    enum kafka_transaction_state state;
    int64_t producer_id; /* -1 not known yet */
    int16_t producer_epoch;
    int16_t error_code; /* why it failed */
    bool is_tainted;    /* READY: to be started anew, or a late request may end what comes next */
};

/* Fills in the defaults: 64 topics, 1024 partitions each way, long poll of 500 ms, 16 MiB
 * responses, lz4 off.
 * threads  any */
void kafka_config_init(struct kafka_config *config);

/* Says how much memory a client of this config takes.
 * threads  any */
size_t kafka_client_bytes(const struct kafka_config *config);

/* Makes a client; all memory is reserved and touched here.
 * config     copied; checked, the error names the key that is wrong
 * connector  copied; its context is borrowed until destroy
 * out        freed by kafka_client_destroy
 * returns    0, -EINVAL or -ENOMEM with the reason in error
 * threads    control */
int kafka_client_create(const struct kafka_config *config, const struct kafka_connector *connector,
                        struct kafka_client **out, struct error *error);

/* Releases all streams and the memory; what was not acknowledged is lost.
 * client   NULL is allowed
 * threads  control, when no lane uses it any more */
void kafka_client_destroy(struct kafka_client *client);

/* Does one bounded step of everything: reads responses, sends what is due, looks at timers.
 * returns  how many things were done, 0 when idle
 * threads  owning lane only */
uint32_t kafka_client_poll(struct kafka_client *client, uint64_t now_ns);

/* Adds a row to the address map, or replaces the one of the same advertised address.
 * returns  false when the map is full
 * threads  owning lane only */
bool kafka_client_map_address(struct kafka_client *client, const struct kafka_address_map *row);

/* Names a topic that is read or written; the same name gives the same index.
 * name     1 to 249 bytes, NUL-terminated, copied
 * out      its index, from 0
 * returns  false when the name is not legal or topics_max are there already
 * threads  owning lane only (or control before the lane starts) */
bool kafka_client_topic(struct kafka_client *client, const char *name, uint32_t *out);

/* Tells how many partitions a topic has.
 * returns  0 until the metadata is known, -1 when the cluster does not know the topic
 * threads  owning lane only */
int32_t kafka_client_partition_count(const struct kafka_client *client, uint32_t topic_index);

/* Starts to read a partition.
 * out      the source's index, stable until unassign
 * returns  false when sources_max are there or this partition is assigned already
 * threads  owning lane only */
bool kafka_client_assign(struct kafka_client *client, const struct kafka_assignment *assignment,
                         uint32_t *out);

/* Stops reading a partition; nothing of it is pulled any more and its index is free.
 * threads  owning lane only */
void kafka_client_unassign(struct kafka_client *client, uint32_t source_index);

/* Holds a source back, without loss: what was received of it and not pulled is fetched again.
 * Not pulling at all is the cheaper way to hold back everything.
 * threads  owning lane only */
void kafka_client_pause(struct kafka_client *client, uint32_t source_index);

/* Lets a paused source go on from its position.
 * threads  owning lane only */
void kafka_client_resume(struct kafka_client *client, uint32_t source_index);

/* Moves a source to an offset, also out of FAILED or ENDED.
 * threads  owning lane only */
void kafka_client_seek(struct kafka_client *client, uint32_t source_index, int64_t offset);

/* Tells how far a source is.
 * threads  owning lane only */
void kafka_client_source_status(const struct kafka_client *client, uint32_t source_index,
                                struct kafka_source_status *out);

/* Takes the next records, all of one batch of one source; their offsets count as taken.
 * out      record_max places; the spans are borrowed until the next pull, poll or network poll
 * returns  how many, 0 when nothing is there now
 * threads  owning lane only */
uint32_t kafka_client_pull(struct kafka_client *client, struct kafka_record *out,
                           uint32_t record_max);

/* Opens a partition for writing.
 * out      the sink's index, stable for the client's life; the same partition, the same index
 * returns  false when sinks_max are open
 * threads  owning lane only */
bool kafka_client_sink(struct kafka_client *client, uint32_t topic_index, int32_t partition,
                       uint32_t *out);

/* Copies a record into the sink's next batch; it leaves with a later poll.
 * returns  anything but KAFKA_APPEND_OK: the record was not taken
 * threads  owning lane only */
enum kafka_append kafka_client_append(struct kafka_client *client, uint32_t sink_index,
                                      const struct kafka_produce_record *record);

/* Counts the sinks opened; their indices run from 0 and never reach the config's sinks_max.
 * threads  owning lane only */
uint32_t kafka_client_sink_count(const struct kafka_client *client);

/* Tells the config's sinks_max.
 * threads  any */
uint32_t kafka_client_sinks_max(const struct kafka_client *client);

/* Tells whether any sink, or the transaction, has failed, and why.
 * threads  owning lane only */
bool kafka_client_has_failed(const struct kafka_client *client, int16_t *error_code);

/* Counts the records of a sink that were appended, and those of them that are answered for good,
 * acknowledged or lost: what kafka_client_sink_status tells, for less.
 * threads  owning lane only */
void kafka_client_sink_progress(const struct kafka_client *client, uint32_t sink_index,
                                uint64_t *appended_count, uint64_t *answered_count);

/* Turns a config into one of a transactional client: nothing is read, buffers are few. The rest
 * stays as it is.
 * threads  any */
void kafka_config_make_transactional(struct kafka_config *config);

/* Takes a transactional id over: whoever held it is fenced, what was open on it is aborted.
 * id       1 to 255 bytes, NUL-terminated, copied; the state must be OFF or READY
 * threads  owning lane only (or control before the lane starts) */
void kafka_client_transaction_start(struct kafka_client *client, const char *id);

/* Ends what an earlier run left; the state is OFF before and after.
 * claim    copied
 * threads  owning lane only (or control before the lane starts) */
void kafka_client_transaction_resolve(struct kafka_client *client,
                                      const struct kafka_transaction_claim *claim);

/* Opens a transaction; from here on appending works.
 * returns  false unless the state is READY
 * threads  owning lane only */
bool kafka_client_transaction_begin(struct kafka_client *client);

/* Ends the open transaction once everything appended is answered; the state tells when it is done.
 * Nothing can be appended from here on.
 * threads  owning lane only; the state is OPEN, or FAILED (then nothing happens) */
void kafka_client_transaction_end(struct kafka_client *client, bool is_commit);

/* Tells where the transaction stands.
 * threads  owning lane only */
void kafka_client_transaction_status(const struct kafka_client *client,
                                     struct kafka_transaction_status *out);

/* Holds back what is appended, or lets it go: a client that is held sends no records, but does all
 * else. What is in flight is not called back.
 * threads  owning lane only */
void kafka_client_hold(struct kafka_client *client, bool is_held);

/* Tells how many appended records are neither acknowledged nor lost: 0 is "flushed".
 * threads  owning lane only */
uint64_t kafka_client_pending(const struct kafka_client *client);

/* Tells how far a sink is.
 * threads  owning lane only */
void kafka_client_sink_status(const struct kafka_client *client, uint32_t sink_index,
                              struct kafka_sink_status *out);

/* Takes the oldest event.
 * returns  false when there is none
 * threads  owning lane only */
bool kafka_client_event(struct kafka_client *client, struct kafka_event *out);

/* Shows what the client was made with.
 * returns  borrowed for the client's life
 * threads  any */
const struct kafka_config *kafka_client_config(const struct kafka_client *client);

/* Shows the counters.
 * returns  borrowed for the client's life; written by the lane, a reader may see any mix
 * threads  any */
const struct kafka_counters *kafka_client_counters(const struct kafka_client *client);
