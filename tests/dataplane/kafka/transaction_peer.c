/* SPDX-License-Identifier: Apache-2.0 */
/* See transaction_peer.h. Requests are answered in the moment in which they are whole; an answer is
 * written by hand from the schemas of the versions that the client speaks. */
#include "tests/dataplane/kafka/transaction_peer.h"

#include <stdio.h>
#include <stdlib.h>

static struct span body_readable(struct stream *stream)
{
    struct peer_stream *self = (struct peer_stream *)stream;
    return (struct span){self->in.data, self->in.count};
}

static void body_consume(struct stream *stream, size_t bytes)
{
    struct peer_stream *self = (struct peer_stream *)stream;
    ASSERT(bytes <= self->in.count);
    self->in.count -= bytes;
    memmove(self->in.data, self->in.data + bytes, self->in.count);
}

static struct span_mut body_writable(struct stream *stream)
{
    struct peer_stream *self = (struct peer_stream *)stream;
    const bool is_open = stream->state == STREAM_OPEN;
    return (struct span_mut){self->tx, is_open ? sizeof(self->tx) : 0};
}

static void put_versions(struct bytes *out)
{
    static const int16_t apis[] = {0, 3, 10, 18, 22, 24, 26};
    bytes_i16(out, 0);
    bytes_i8(out, COUNT_OF(apis) + 1);
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        bytes_i16(out, apis[i]);
        bytes_i16(out, 0);
        bytes_i16(out, 7);
        bytes_i8(out, 0);
    }
    bytes_i32(out, 0);
    bytes_i8(out, 0);
}

/* Metadata v7: one node that leads all partitions of every topic asked about. */
static void put_metadata(struct kafka_reader *reader, struct bytes *out)
{
    const int32_t topics = kafka_read_i32(reader);
    bytes_i32(out, 0);
    bytes_i32(out, 1);
    bytes_i32(out, PEER_NODE);
    bytes_string(out, "198.18.0.1");
    bytes_i32(out, BROKER_PORT);
    bytes_i16(out, -1);
    bytes_i16(out, -1);
    bytes_i32(out, PEER_NODE);
    bytes_i32(out, topics < 0 ? 0 : topics);
    for (int32_t i = 0; i < topics; i++) {
        const struct span name = kafka_read_string(reader);
        bytes_i16(out, 0);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        bytes_i8(out, 0);
        bytes_i32(out, PEER_PARTITIONS);
        for (int32_t k = 0; k < PEER_PARTITIONS; k++) {
            bytes_i16(out, 0);
            bytes_i32(out, k);
            bytes_i32(out, PEER_NODE);
            bytes_i32(out, 1);
            bytes_i32(out, 0);
            bytes_i32(out, 0);
            bytes_i32(out, 0);
        }
    }
}

/* Both requests list topics and their partitions; AddPartitionsToTxn has no bytes behind one. */
static void put_partitions(struct peer *peer, struct kafka_reader *reader, bool is_produce,
                           int16_t code, struct bytes *out)
{
    const int32_t topics = kafka_read_i32(reader);
    bytes_i32(out, topics);
    for (int32_t i = 0; i < topics; i++) {
        const struct span name = kafka_read_string(reader);
        const int32_t count = kafka_read_i32(reader);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        bytes_i32(out, count);
        for (int32_t k = 0; k < count; k++) {
            bytes_i32(out, kafka_read_i32(reader));
            bytes_i16(out, code);
            if (is_produce) {
                const struct span batch = kafka_read_bytes(reader);
                ASSERT(batch.bytes > 61);
                bytes_i64(out, peer->next_offset);
                bytes_i64(out, -1);
                bytes_i64(out, 0);
                peer->next_offset += load_be32(batch.data + 57);
            }
        }
    }
    ASSERT(!reader->bad);
}

static int16_t next_code(struct peer *peer, enum kafka_api api)
{
    return peer->code_next[api] < peer->code_count[api] ? peer->codes[api][peer->code_next[api]++]
                                                        : 0;
}

static void put_answer(struct peer *peer, enum kafka_api api, struct kafka_reader *reader,
                       struct bytes *out)
{
    const int16_t code = next_code(peer, api);
    switch (api) {
    case KAFKA_API_API_VERSIONS:
        put_versions(out);
        return;
    case KAFKA_API_METADATA:
        put_metadata(reader, out);
        return;
    case KAFKA_API_FIND_COORDINATOR:
        bytes_i32(out, 0);
        bytes_i16(out, code);
        bytes_i16(out, -1);
        bytes_i32(out, code == 0 ? PEER_NODE : -1);
        bytes_string(out, "198.18.0.1");
        bytes_i32(out, BROKER_PORT);
        return;
    case KAFKA_API_INIT_PRODUCER_ID:
        bytes_i8(out, 0); /* the header's tags */
        bytes_i32(out, 0);
        bytes_i16(out, code);
        bytes_i64(out, code == 0 ? PEER_PRODUCER_ID : -1);
        bytes_i16(out, code == 0 ? peer->epoch++ : -1);
        bytes_i8(out, 0);
        return;
    case KAFKA_API_ADD_PARTITIONS_TO_TXN:
        bytes_i32(out, 0);
        (void)kafka_read_string(reader);
        (void)kafka_read_raw(reader, 10);
        put_partitions(peer, reader, false, code, out);
        return;
    case KAFKA_API_END_TXN:
        bytes_i32(out, 0);
        bytes_i16(out, code);
        return;
    case KAFKA_API_PRODUCE:
        (void)kafka_read_string(reader);
        (void)kafka_read_raw(reader, 6);
        put_partitions(peer, reader, true, code, out);
        bytes_i32(out, 0);
        return;
    default:
        ASSERT(false);
    }
}

static void take_request(struct peer_stream *self, struct span request)
{
    struct peer *peer = self->peer;
    struct kafka_reader reader = kafka_reader_of(request);
    const enum kafka_api api = (enum kafka_api)kafka_read_i16(&reader);
    const int16_t version = kafka_read_i16(&reader);
    const int32_t correlation = kafka_read_i32(&reader);
    (void)kafka_read_string(&reader);
    if (kafka_api_is_flexible(api, version)) {
        kafka_read_tags(&reader);
    }
    ASSERT(peer->asked_count < PEER_ASKED_MAX);
    struct peer_asked *asked = &peer->asked[peer->asked_count++];
    asked->api = api;
    asked->body_bytes = kafka_reader_left(&reader);
    memcpy(asked->body, reader.data + reader.at,
           asked->body_bytes < sizeof(asked->body) ? asked->body_bytes : sizeof(asked->body));
    if (peer->is_mute[api]) {
        return;
    }
    struct bytes answer = {0};
    bytes_i32(&answer, correlation);
    put_answer(peer, api, &reader, &answer);
    bytes_i32(&self->in, (int32_t)answer.count);
    bytes_put(&self->in, answer.data, answer.count);
    bytes_free(&answer);
}

static void body_commit(struct stream *stream, size_t bytes)
{
    struct peer_stream *self = (struct peer_stream *)stream;
    bytes_put(&self->out, self->tx, bytes);
    stream->sent_bytes += bytes;
    while (self->out.count >= 4 && self->out.count >= 4 + load_be32(self->out.data)) {
        const size_t whole = 4 + load_be32(self->out.data);
        take_request(self, (struct span){self->out.data + 4, whole - 4});
        self->out.count -= whole;
        memmove(self->out.data, self->out.data + whole, self->out.count);
    }
}

static void body_end(struct stream *stream)
{
    stream->state = STREAM_FAILED;
}

static void body_release(struct stream *stream)
{
    struct peer_stream *self = (struct peer_stream *)stream;
    struct peer *peer = self->peer;
    for (uint32_t i = 0; i < peer->stream_count; i++) {
        if (peer->streams[i] == self) {
            peer->streams[i] = peer->streams[--peer->stream_count];
        }
    }
    bytes_free(&self->in);
    bytes_free(&self->out);
    free(self);
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

struct peer *peer_create(void)
{
    return calloc(1, sizeof(struct peer));
}

void peer_destroy(struct peer *peer)
{
    ASSERT(peer->stream_count == 0);
    free(peer);
}

struct stream *peer_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct peer *peer = context;
    ASSERT(ip4 == BROKER_IP4 && port == BROKER_PORT);
    ASSERT(peer->stream_count < PEER_STREAMS_MAX);
    struct peer_stream *self = calloc(1, sizeof(*self));
    self->peer = peer;
    self->stream.ops = &body;
    self->stream.state = STREAM_OPEN;
    self->stream.arrival_ns = now_ns;
    peer->streams[peer->stream_count++] = self;
    return &self->stream;
}

void peer_answer_next(struct peer *peer, enum kafka_api api, int16_t code)
{
    ASSERT(peer->code_count[api] < PEER_CODES_MAX);
    peer->codes[api][peer->code_count[api]++] = code;
}

void peer_cut_off(struct peer *peer)
{
    for (uint32_t i = 0; i < peer->stream_count; i++) {
        peer->streams[i]->stream.state = STREAM_FAILED;
    }
}

uint32_t peer_count(const struct peer *peer, enum kafka_api api)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < peer->asked_count; i++) {
        count += peer->asked[i].api == api;
    }
    return count;
}

const struct peer_asked *peer_last(const struct peer *peer, enum kafka_api api)
{
    for (uint32_t i = peer->asked_count; i > 0; i--) {
        if (peer->asked[i - 1].api == api) {
            return &peer->asked[i - 1];
        }
    }
    return NULL;
}

void peer_config(struct kafka_config *config)
{
    kafka_config_init(config);
    config->bootstrap_count = 1;
    (void)snprintf(config->bootstrap[0].host, KAFKA_HOST_BYTES, "198.18.0.1");
    config->bootstrap[0].port = BROKER_PORT;
    config->topics_max = 3;
    config->topic_partitions_max = 4;
    config->sources_max = 2;
    config->sinks_max = 6;
    config->brokers_max = 3;
    config->stream_receive_bytes = 1 << 16;
    config->response_bytes_max = 1 << 16;
    config->decoded_bytes_max = 1 << 16;
    config->fetch_bytes_max = 4096;
    config->fetch_partition_bytes_max = 4096;
    config->produce_batch_bytes = 1024;
    config->produce_buffers = 8;
    config->produce_record_bytes_max = 4096;
    config->produce_large_buffers = 1;
    config->request_timeout_ms = 500;
}
