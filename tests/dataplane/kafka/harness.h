/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a scripted cluster on virtual time, for tests of the client's parts; includes
 * cmocka and what it needs. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "dataplane/kafka/client.h"
#include "tests/sim/broker.h"
#include "tests/sim/broker_feed.h"

#define HARNESS_MS         UINT64_C(1000000)
#define HARNESS_PARTITIONS 2
#define HARNESS_PULL       64

struct harness {
    struct broker *broker;
    struct kafka_client *client;
    struct broker_topic *in;
    struct broker_topic *out;
    struct kafka_config config;
    uint64_t now_ns;
    uint32_t in_index;
    uint32_t out_index;
    struct kafka_record records[HARNESS_PULL];
    uint32_t pulled; /* of the last harness_pull */
};

/* Fills in a config that is small enough for tests.
 * threads  one */
static inline void harness_config(struct harness *harness)
{
    struct kafka_config *config = &harness->config;
    kafka_config_init(config);
    config->bootstrap_count = 1;
    (void)snprintf(config->bootstrap[0].host, KAFKA_HOST_BYTES, "198.18.0.1");
    config->bootstrap[0].port = BROKER_PORT;
    for (uint32_t i = 0; i < BROKER_NODES_MAX; i++) {
        struct kafka_address_map *row = &config->address_map[config->address_map_count++];
        (void)snprintf(row->advertised.host, KAFKA_HOST_BYTES, "node-%u", i + 1);
        row->ip4 = BROKER_IP4 + i;
    }
    config->topics_max = 3;
    config->topic_partitions_max = 8;
    config->sources_max = 6;
    config->sinks_max = 6;
    config->brokers_max = 6;
    config->stream_receive_bytes = 1 << 16;
    config->response_bytes_max = 1 << 18;
    config->decoded_bytes_max = 1 << 18;
    config->produce_batch_bytes = 4096;
    config->produce_buffers = 8;
    config->produce_record_bytes_max = 40000;
    config->produce_large_buffers = 2;
    config->fetch_bytes_max = 1 << 16;
    config->fetch_partition_bytes_max = 1 << 15;
    config->fetch_wait_ms = 20;
    config->request_timeout_ms = 500;
}

/* Makes a calm cluster of two nodes with topics "in" and "out". */
static inline struct harness *harness_cluster(void)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    struct broker_config config = {.seed = 7,
                                   .nodes = 2,
                                   .metadata_version_max = 12,
                                   .fragment_bytes_max = 5000,
                                   .send_bytes_max = 1 << 16,
                                   .receive_bytes_max = 1 << 16,
                                   .batch_bytes_max = 30000};
    harness->broker = broker_create(&config);
    harness->in = broker_add_topic(harness->broker, "in", HARNESS_PARTITIONS);
    harness->out = broker_add_topic(harness->broker, "out", HARNESS_PARTITIONS);
    harness_config(harness);
    return harness;
}

/* Makes the client, after the test has changed harness->config. */
static inline void harness_client(struct harness *harness)
{
    struct kafka_connector connector = {.connect = broker_connect, .context = harness->broker};
    struct error error = {0};
    assert_int_equal(kafka_client_create(&harness->config, &connector, &harness->client, &error),
                     0);
    assert_true(kafka_client_topic(harness->client, "in", &harness->in_index));
    assert_true(kafka_client_topic(harness->client, "out", &harness->out_index));
}

/* Frees the client and the cluster.
 * threads  one */
static inline void harness_free(struct harness *harness)
{
    kafka_client_destroy(harness->client);
    broker_destroy(harness->broker);
    free(harness);
}

/* Moves time on by a quarter of a millisecond and polls both sides.
 * threads  one */
static inline void harness_turn(struct harness *harness)
{
    harness->now_ns += HARNESS_MS / 4;
    broker_step(harness->broker, harness->now_ns);
    (void)kafka_client_poll(harness->client, harness->now_ns);
}

/* Turns for a while without pulling. */
static inline void harness_run(struct harness *harness, uint64_t ms)
{
    for (uint64_t end = harness->now_ns + ms * HARNESS_MS; harness->now_ns < end;) {
        harness_turn(harness);
    }
}

/* Turns until records come, at most for a second. */
static inline uint32_t harness_pull(struct harness *harness)
{
    harness->pulled = 0;
    for (int i = 0; i < 4000 && harness->pulled == 0; i++) {
        harness_turn(harness);
        harness->pulled = kafka_client_pull(harness->client, harness->records, HARNESS_PULL);
    }
    return harness->pulled;
}

/* Pulls for a while and counts; every offset must be the one after the last of its partition. */
static inline uint32_t harness_drain(struct harness *harness, uint64_t ms)
{
    uint32_t total = 0;
    int64_t last[HARNESS_PARTITIONS] = {-1, -1};
    for (uint64_t end = harness->now_ns + ms * HARNESS_MS; harness->now_ns < end;) {
        harness_turn(harness);
        uint32_t count = kafka_client_pull(harness->client, harness->records, HARNESS_PULL);
        for (uint32_t i = 0; i < count; i++) {
            int32_t partition = harness->records[i].partition;
            assert_true(harness->records[i].offset > last[partition]);
            last[partition] = harness->records[i].offset;
        }
        total += count;
    }
    return total;
}

/* Stores a plain batch of count records with values "v0", "v1", … and one timestamp. */
static inline void harness_store(struct broker_partition *partition, int32_t count,
                                 int64_t timestamp_ms)
{
    struct bytes records = {0};
    struct bytes batch = {0};
    for (int32_t i = 0; i < count; i++) {
        char value[16];
        int bytes = snprintf(value, sizeof(value), "v%d", i);
        bytes_varint(&records, (i < 64 ? 6 : i < 8192 ? 7 : 8) + bytes);
        bytes_i8(&records, 0);
        bytes_varint(&records, 0);
        bytes_varint(&records, i);
        bytes_varint(&records, -1);
        bytes_varint(&records, bytes);
        bytes_put(&records, value, (size_t)bytes);
        bytes_varint(&records, 0);
    }
    struct feed_header header = {.last_offset_delta = count - 1,
                                 .base_timestamp = timestamp_ms,
                                 .max_timestamp = timestamp_ms,
                                 .producer_id = -1,
                                 .producer_epoch = -1,
                                 .base_sequence = -1,
                                 .record_count = count};
    feed_build(&header, (struct span){records.data, records.count}, &batch);
    (void)broker_log_append(partition, (struct span){batch.data, batch.count}, (uint32_t)count - 1);
    bytes_free(&records);
    bytes_free(&batch);
}

/* Assigns a partition of "in", without an end.
 * threads  one */
static inline uint32_t harness_assign(struct harness *harness, int32_t partition,
                                      enum kafka_start start, int64_t value)
{
    struct kafka_assignment assignment = {.topic_index = harness->in_index,
                                          .partition = partition,
                                          .start = start,
                                          .start_value = value};
    uint32_t source;
    assert_true(kafka_client_assign(harness->client, &assignment, &source));
    return source;
}

/* Shows how far a source is.
 * threads  one */
static inline struct kafka_source_status harness_source(const struct harness *harness,
                                                        uint32_t source)
{
    struct kafka_source_status status;
    kafka_client_source_status(harness->client, source, &status);
    return status;
}

/* Shows how far a sink is.
 * threads  one */
static inline struct kafka_sink_status harness_sink(const struct harness *harness, uint32_t sink)
{
    struct kafka_sink_status status;
    kafka_client_sink_status(harness->client, sink, &status);
    return status;
}

/* Appends a record without a key.
 * threads  one */
static inline enum kafka_append harness_append(struct harness *harness, uint32_t sink,
                                               const char *value)
{
    struct kafka_produce_record record = {
        .value = {(const uint8_t *)value, strlen(value)}, .has_value = true, .timestamp_ms = 5};
    return kafka_client_append(harness->client, sink, &record);
}

/* Tells whether an event of this kind came; all older ones are dropped. */
static inline bool harness_event(struct harness *harness, enum kafka_event_code code,
                                 struct kafka_event *out)
{
    while (kafka_client_event(harness->client, out)) {
        if (out->code == code) {
            return true;
        }
    }
    return false;
}
