/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted cluster's log: storing batches, the idempotent producer's rules, and the small
 * helpers that the other parts use. */
#include "tests/sim/broker.h"

#include <stdlib.h>

void bytes_put(struct bytes *into, const void *from, size_t count)
{
    if (into->count + count > into->capacity) {
        into->capacity = (into->count + count) * 2 + 64;
        into->data = realloc(into->data, into->capacity);
    }
    if (count > 0) {
        memcpy(into->data + into->count, from, count);
        into->count += count;
    }
}

void bytes_i8(struct bytes *into, int8_t value)
{
    bytes_put(into, &value, 1);
}

void bytes_i16(struct bytes *into, int16_t value)
{
    uint16_t raw = __builtin_bswap16((uint16_t)value);
    bytes_put(into, &raw, sizeof(raw));
}

void bytes_i32(struct bytes *into, int32_t value)
{
    uint32_t raw = __builtin_bswap32((uint32_t)value);
    bytes_put(into, &raw, sizeof(raw));
}

void bytes_i64(struct bytes *into, int64_t value)
{
    uint64_t raw = __builtin_bswap64((uint64_t)value);
    bytes_put(into, &raw, sizeof(raw));
}

void bytes_string(struct bytes *into, const char *text)
{
    bytes_i16(into, (int16_t)strlen(text));
    bytes_put(into, text, strlen(text));
}

void bytes_varint(struct bytes *into, int64_t value)
{
    uint64_t raw = value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1;
    do {
        uint8_t byte = (uint8_t)((raw & 0x7f) | (raw > 0x7f ? 0x80 : 0));
        bytes_put(into, &byte, 1);
        raw >>= 7;
    } while (raw != 0);
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

int64_t broker_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t raw = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (*at >= end) {
            *at = end + 1;
            return 0;
        }
        uint8_t byte = *(*at)++;
        raw += (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            break;
        }
    }
    return raw % 2 == 0 ? (int64_t)(raw / 2) : -1 - (int64_t)(raw / 2);
}

uint32_t broker_crc32c(struct span in)
{
    /* Nibble by nibble; row i is what four bits i do to the register. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < in.bytes; i++) {
        crc ^= in.data[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return crc ^ 0xFFFFFFFF;
}

uint64_t broker_random(struct broker *broker)
{
    uint64_t z = (broker->random += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

bool broker_chance(struct broker *broker, uint32_t odds)
{
    return odds > 0 && broker_random(broker) % BROKER_ODDS_ONE < odds;
}

struct broker *broker_create(const struct broker_config *config)
{
    struct broker *broker = calloc(1, sizeof(*broker));
    broker->config = *config;
    broker->random = config->seed;
    broker->next_producer_id = 4000;
    return broker;
}

struct broker_topic *broker_add_topic(struct broker *broker, const char *name, uint32_t partitions)
{
    ASSERT(broker->topic_count < BROKER_TOPICS_MAX);
    ASSERT(partitions <= BROKER_PARTITIONS_MAX);
    struct broker_topic *topic = &broker->topics[broker->topic_count++];
    topic->name = name;
    topic->partition_count = partitions;
    for (uint32_t i = 0; i < partitions; i++) {
        topic->partitions[i].leader = (uint32_t)(broker_random(broker) % broker->config.nodes);
        topic->partitions[i].stable_offset = -1;
    }
    return topic;
}

struct broker_topic *broker_find_topic(struct broker *broker, struct span name)
{
    for (uint32_t i = 0; i < broker->topic_count; i++) {
        const char *have = broker->topics[i].name;
        if (strlen(have) == name.bytes && memcmp(have, name.data, name.bytes) == 0) {
            return &broker->topics[i];
        }
    }
    return NULL;
}

struct broker_batch *broker_log_append(struct broker_partition *partition, struct span batch,
                                       uint32_t last_offset_delta)
{
    if (partition->batch_count == partition->batch_capacity) {
        partition->batch_capacity = partition->batch_capacity * 2 + 16;
        partition->batches =
            realloc(partition->batches, partition->batch_capacity * sizeof(struct broker_batch));
    }
    struct broker_batch *stored = &partition->batches[partition->batch_count++];
    *stored = (struct broker_batch){
        .data = malloc(batch.bytes),
        .bytes = batch.bytes,
        .base_offset = partition->next_offset,
        .last_offset = partition->next_offset + last_offset_delta,
        .max_timestamp = (int64_t)load_be64(batch.data + 35),
    };
    memcpy(stored->data, batch.data, batch.bytes);
    store_be64(stored->data, (uint64_t)stored->base_offset);
    store_be32(stored->data + 12, (uint32_t)partition->epoch);
    partition->next_offset = stored->last_offset + 1;
    return stored;
}

static struct broker_producer *producer_of(struct broker_partition *partition, int64_t id)
{
    for (uint32_t i = 0; i < partition->producer_count; i++) {
        if (partition->producers[i].id == id) {
            return &partition->producers[i];
        }
    }
    ASSERT(partition->producer_count < BROKER_PRODUCERS_MAX);
    struct broker_producer *fresh = &partition->producers[partition->producer_count++];
    *fresh = (struct broker_producer){.id = id, .epoch = -1, .last_sequence = -1};
    return fresh;
}

static bool find_duplicate(const struct broker_producer *producer, int32_t first, int32_t last,
                           int64_t *base_offset)
{
    for (uint32_t i = 0; i < BROKER_DUPLICATES && i < producer->recent_count; i++) {
        const struct broker_span *span = &producer->recent[i];
        if (span->first_sequence == first && span->last_sequence == last) {
            *base_offset = span->base_offset;
            return true;
        }
    }
    return false;
}

/* The rules of one producer and partition; 0: store it, 46: it is there already. */
static int16_t check_sequence(struct broker_producer *producer, int16_t epoch, int32_t first,
                              int32_t last, int64_t *base_offset)
{
    if (epoch < producer->epoch) {
        return 47;
    }
    if (epoch > producer->epoch) {
        bool is_new = producer->epoch < 0;
        if (first != 0 && !is_new) {
            return 45;
        }
        producer->epoch = epoch;
        producer->recent_count = 0;
        producer->last_sequence = first == 0 ? -1 : first - 1;
    }
    if (find_duplicate(producer, first, last, base_offset)) {
        return 46;
    }
    int32_t wanted = producer->last_sequence == INT32_MAX ? 0 : producer->last_sequence + 1;
    return first == wanted ? 0 : 45;
}

int16_t broker_log_produce(struct broker *broker, struct broker_partition *partition,
                           struct span batch, int64_t *base_offset)
{
    if (batch.bytes < 61 || load_be32(batch.data + 8) != batch.bytes - 12 || batch.data[16] != 2) {
        broker->malformed_count++;
        return 87;
    }
    if (batch.bytes > broker->config.batch_bytes_max) {
        return 10;
    }
    if (broker_crc32c((struct span){batch.data + 21, batch.bytes - 21}) !=
        load_be32(batch.data + 17)) {
        broker->malformed_count++;
        return 2;
    }
    uint32_t delta = load_be32(batch.data + 23);
    int32_t first = (int32_t)load_be32(batch.data + 53);
    int32_t last = (int32_t)(((uint32_t)first + delta) & INT32_MAX);
    struct broker_producer *producer = producer_of(partition, (int64_t)load_be64(batch.data + 43));
    int16_t code =
        check_sequence(producer, (int16_t)load_be16(batch.data + 51), first, last, base_offset);
    if (code == 46) {
        partition->duplicate_count++;
        return 0;
    }
    if (code != 0) {
        return code;
    }
    struct broker_batch *stored = broker_log_append(partition, batch, delta);
    if ((batch.data[22] & 0x10) != 0) {
        broker_transaction_stored(partition, producer->id, stored->base_offset);
    }
    producer->recent[producer->recent_count++ % BROKER_DUPLICATES] =
        (struct broker_span){first, last, stored->base_offset};
    producer->last_sequence = last;
    *base_offset = stored->base_offset;
    return 0;
}

/* A marker of a higher epoch begins the producer anew; of the same one it changes nothing. */
void broker_log_marked(struct broker_partition *partition, int64_t producer_id, int16_t epoch)
{
    struct broker_producer *producer = producer_of(partition, producer_id);
    if (epoch > producer->epoch) {
        producer->epoch = epoch;
        producer->recent_count = 0;
        producer->last_sequence = -1;
    }
}

void broker_log_shorten(struct broker_partition *partition)
{
    for (uint32_t i = 0; i < partition->producer_count; i++) {
        struct broker_producer *producer = &partition->producers[i];
        if (producer->recent_count > 1) {
            producer->recent[0] =
                producer->recent[(producer->recent_count - 1) % BROKER_DUPLICATES];
            producer->recent_count = 1;
        }
    }
}
