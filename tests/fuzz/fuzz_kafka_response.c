/* SPDX-License-Identifier: Apache-2.0 */
/* The whole client against a peer whose answers are the input. Each request is answered by a chunk
 * of it: one byte of mode, two of length, then the body. Mode bits choose whether the framing and
 * the correlation id are right (else the chunk is the raw stream) and whether ApiVersions is
 * answered well, so that all later APIs are reached. Bit 3 of the first mode makes the client a
 * transactional one. Nothing may crash, and the client must stay usable. */
#include <stdlib.h>

#include "dataplane/kafka/client.h"

#define RX_BYTES  65536
#define TX_BYTES  16384
#define TURNS_MAX 400
#define STEP_NS   UINT64_C(3000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What all streams of one run share. */
struct tape {
    const uint8_t *data;
    size_t size;
    size_t at;
};

struct peer {
    struct stream stream;
    struct tape *tape;
    size_t rx_count;
    size_t tx_count;
    uint8_t rx[RX_BYTES];
    uint8_t tx[TX_BYTES];
    struct peer *next;
    bool is_released;
};

struct world {
    struct tape tape;
    struct peer *peers;
};

static struct peer *of(struct stream *stream)
{
    return (struct peer *)stream;
}

static struct span body_readable(struct stream *stream)
{
    return (struct span){.data = of(stream)->rx, .bytes = of(stream)->rx_count};
}

static void body_consume(struct stream *stream, size_t bytes)
{
    struct peer *peer = of(stream);
    ASSERT(bytes <= peer->rx_count);
    peer->rx_count -= bytes;
    memmove(peer->rx, peer->rx + bytes, peer->rx_count);
}

static struct span_mut body_writable(struct stream *stream)
{
    struct peer *peer = of(stream);
    if (stream->state != STREAM_OPEN) {
        return (struct span_mut){0};
    }
    return (struct span_mut){.data = peer->tx + peer->tx_count, .bytes = TX_BYTES - peer->tx_count};
}

static void body_commit(struct stream *stream, size_t bytes)
{
    of(stream)->tx_count += bytes;
}

static void body_end(struct stream *stream)
{
    stream->state = STREAM_FAILED;
}

static void body_release(struct stream *stream)
{
    of(stream)->is_released = true;
}

static const struct stream_ops body = {
    .readable = body_readable,
    .consume = body_consume,
    .writable = body_writable,
    .commit = body_commit,
    .close = body_end,
    .abort = body_end,
    .release = body_release,
};

static struct stream *connect_peer(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct world *world = context;
    (void)ip4;
    (void)port;
    (void)now_ns;
    struct peer *peer = calloc(1, sizeof(*peer));
    peer->stream.ops = &body;
    peer->stream.state = STREAM_OPEN;
    peer->tape = &world->tape;
    peer->next = world->peers;
    world->peers = peer;
    return &peer->stream;
}

static void put(struct peer *peer, const void *from, size_t bytes)
{
    size_t room = RX_BYTES - peer->rx_count;
    bytes = bytes < room ? bytes : room;
    memcpy(peer->rx + peer->rx_count, from, bytes);
    peer->rx_count += bytes;
}

static void put_i32(struct peer *peer, uint32_t value)
{
    uint8_t raw[4];
    store_be32(raw, value);
    put(peer, raw, sizeof(raw));
}

/* Fetch 11, Produce 7, ListOffsets 2, Metadata 7, InitProducerId 3, FindCoordinator 2,
 * AddPartitionsToTxn 1, EndTxn 1 and their neighbours. */
static void put_versions(struct peer *peer, uint32_t correlation)
{
    static const uint8_t keys[] = {0, 1, 2, 3, 10, 18, 22, 24, 26};
    put_i32(peer, 4 + 2 + 1 + sizeof(keys) * 7 + 4 + 1);
    put_i32(peer, correlation);
    static const uint8_t head[] = {0, 0, sizeof(keys) + 1};
    put(peer, head, sizeof(head));
    for (size_t i = 0; i < sizeof(keys); i++) {
        const uint8_t row[] = {0, keys[i], 0, 0, 0, 12, 0};
        put(peer, row, sizeof(row));
    }
    static const uint8_t tail[5] = {0};
    put(peer, tail, sizeof(tail));
}

/* Answers one request with the next chunk of the tape. */
static void answer(struct peer *peer, const uint8_t *request)
{
    struct tape *tape = peer->tape;
    if (tape->size - tape->at < 3) {
        return;
    }
    const uint8_t *chunk = tape->data + tape->at;
    uint8_t mode = chunk[0];
    size_t bytes = load_be16(chunk + 1);
    size_t left = tape->size - tape->at - 3;
    bytes = bytes < left ? bytes : left;
    if (load_be16(request + 4) == 18 && (mode & 7) != 7) {
        put_versions(peer, load_be32(request + 8));
        return; /* the chunk is kept for the next request */
    }
    tape->at += 3 + bytes;
    if ((mode & 0x30) != 0x30) {
        put_i32(peer, (uint32_t)(4 + bytes));
        put_i32(peer, load_be32(request + 8));
    }
    put(peer, chunk + 3, bytes);
    if ((mode & 0xC0) == 0xC0) {
        peer->stream.state = STREAM_HALF_CLOSED;
    }
}

static void step_peer(struct peer *peer)
{
    while (peer->tx_count >= 12) {
        size_t bytes = load_be32(peer->tx) + 4;
        if (peer->tx_count < bytes) {
            return;
        }
        answer(peer, peer->tx);
        peer->tx_count -= bytes;
        memmove(peer->tx, peer->tx + bytes, peer->tx_count);
    }
}

static struct kafka_client *make_client(struct world *world, bool is_transactional)
{
    struct kafka_config config;
    kafka_config_init(&config);
    config.bootstrap_count = 1;
    memcpy(config.bootstrap[0].host, "198.18.0.1", sizeof("198.18.0.1"));
    config.bootstrap[0].port = 9092;
    config.topics_max = 2;
    config.topic_partitions_max = 4;
    config.sources_max = 4;
    config.sinks_max = 4;
    config.brokers_max = 4;
    config.stream_receive_bytes = 16384;
    config.response_bytes_max = 32768;
    config.decoded_bytes_max = 32768;
    config.fetch_bytes_max = 8192;
    config.fetch_partition_bytes_max = 8192;
    config.produce_batch_bytes = 1024;
    config.produce_buffers = 4;
    config.produce_record_bytes_max = 2048;
    config.produce_large_buffers = 1;
    config.request_timeout_ms = 60;
    config.retry_backoff_ms = 1;
    config.reconnect_backoff_ms = 1;
    config.is_transactional = is_transactional;
    struct kafka_connector connector = {.connect = connect_peer, .context = world};
    struct kafka_client *client = NULL;
    int status = kafka_client_create(&config, &connector, &client, NULL);
    ASSERT(status == 0);
    if (is_transactional) {
        kafka_client_transaction_start(client, "id");
    }
    return client;
}

/* A transactional client writes only: its answers come in an order that a tape can follow. */
static void load(struct kafka_client *client, bool is_transactional)
{
    uint32_t topic;
    uint32_t index;
    (void)kafka_client_topic(client, "t", &topic);
    for (int32_t i = 0; i < 2; i++) {
        struct kafka_assignment assignment = {.topic_index = topic,
                                              .partition = i,
                                              .start = i == 0 ? KAFKA_START_OFFSET
                                                              : KAFKA_START_EARLIEST,
                                              .reset = KAFKA_RESET_EARLIEST};
        if (!is_transactional) {
            (void)kafka_client_assign(client, &assignment, &index);
        }
        (void)kafka_client_sink(client, topic, i, &index);
    }
}

/* A transaction of a few turns, one after another. */
static void turn_transaction(struct kafka_client *client, uint64_t turn)
{
    struct kafka_transaction_status status;
    kafka_client_transaction_status(client, &status);
    if (status.state == KAFKA_TRANSACTION_READY) {
        (void)kafka_client_transaction_begin(client);
    } else if (status.state == KAFKA_TRANSACTION_OPEN && turn % 8 == 0) {
        kafka_client_transaction_end(client, turn % 16 == 0);
    }
}

static void turn(struct kafka_client *client, struct world *world, uint64_t now_ns)
{
    for (struct peer *peer = world->peers; peer != NULL; peer = peer->next) {
        if (!peer->is_released) {
            step_peer(peer);
        }
    }
    (void)kafka_client_poll(client, now_ns);
    struct kafka_record records[8];
    uint32_t count = kafka_client_pull(client, records, 8);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t sum = 0;
        for (size_t k = 0; k < records[i].value.bytes; k++) {
            sum ^= records[i].value.data[k];
        }
        ASSERT(records[i].offset >= 0 || sum != 0);
    }
    struct kafka_produce_record record = {.has_value = true};
    (void)kafka_client_append(client, (uint32_t)(now_ns / STEP_NS % 2), &record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {.tape = {.data = data, .size = size}};
    const bool is_transactional = size > 0 && (data[0] & 8) != 0;
    struct kafka_client *client = make_client(&world, is_transactional);
    load(client, is_transactional);
    uint64_t now_ns = 1;
    for (int i = 0; i < TURNS_MAX && world.tape.size - world.tape.at >= 3; i++) {
        turn(client, &world, now_ns += STEP_NS);
        turn_transaction(client, (uint64_t)i);
    }
    kafka_client_destroy(client);
    while (world.peers != NULL) {
        struct peer *next = world.peers->next;
        free(world.peers);
        world.peers = next;
    }
    return 0;
}
