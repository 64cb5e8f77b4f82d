/* SPDX-License-Identifier: Apache-2.0 */
/* The feeder; see broker_feed.h. */
#include "tests/sim/broker_feed.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define ATTRIBUTE_LOG_TIME 0x08
#define ATTRIBUTE_TXN      0x10
#define ATTRIBUTE_CONTROL  0x20
#define ATTRIBUTE_HORIZON  0x40

uint64_t feed_hash(uint64_t hash, struct span bytes, bool has)
{
    hash = (hash ^ (has ? bytes.bytes + 1 : 0)) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < bytes.bytes; i++) {
        hash = (hash ^ bytes.data[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void deflate_gzip(struct span in, struct bytes *out)
{
    z_stream stream = {0};
    int status = deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    ASSERT(status == Z_OK);
    size_t bound = deflateBound(&stream, in.bytes);
    uint8_t *into = malloc(bound);
    union {
        const uint8_t *data;
        uint8_t *mutable_data;
    } from = {.data = in.data};
    stream.next_in = from.mutable_data;
    stream.avail_in = (uInt)in.bytes;
    stream.next_out = into;
    stream.avail_out = (uInt)bound;
    status = deflate(&stream, Z_FINISH);
    ASSERT(status == Z_STREAM_END);
    bytes_put(out, into, bound - stream.avail_out);
    (void)deflateEnd(&stream);
    free(into);
}

static void put_snappy_block(struct span in, bool has_size, struct bytes *out)
{
    size_t bytes = snappy_max_compressed_length(in.bytes);
    char *into = malloc(bytes);
    snappy_status status = snappy_compress((const char *)in.data, in.bytes, into, &bytes);
    ASSERT(status == SNAPPY_OK);
    if (has_size) {
        bytes_i32(out, (int32_t)bytes);
    }
    bytes_put(out, into, bytes);
    free(into);
}

static void put_xerial(struct span in, struct bytes *out)
{
    static const uint8_t magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
    const size_t block = 1024;
    bytes_put(out, magic, sizeof(magic));
    bytes_i32(out, 1);
    bytes_i32(out, 1);
    for (size_t at = 0; at < in.bytes; at += block) {
        size_t bytes = in.bytes - at < block ? in.bytes - at : block;
        put_snappy_block((struct span){.data = in.data + at, .bytes = bytes}, true, out);
    }
}

static void put_lz4(struct span in, struct bytes *out)
{
    LZ4F_preferences_t preferences = {0};
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.frameInfo.blockSizeID = LZ4F_max64KB;
    preferences.frameInfo.contentChecksumFlag =
        in.bytes % 2 ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
    size_t bound = LZ4F_compressFrameBound(in.bytes, &preferences);
    uint8_t *into = malloc(bound);
    size_t bytes = LZ4F_compressFrame(into, bound, in.data, in.bytes, &preferences);
    ASSERT(!LZ4F_isError(bytes));
    bytes_put(out, into, bytes);
    free(into);
}

/* As Java does: a stream, so that the frame does not say how long its content is. */
static void put_zstd(struct span in, struct bytes *out)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(in.bytes) + 64;
    uint8_t *into = malloc(bound);
    ZSTD_inBuffer from = {.src = in.data, .size = in.bytes};
    ZSTD_outBuffer to = {.dst = into, .size = bound};
    size_t left = ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
    ASSERT(left == 0);
    left = ZSTD_compressStream2(context, &to, &from, ZSTD_e_end);
    ASSERT(left == 0);
    bytes_put(out, into, to.pos);
    free(into);
    ZSTD_freeCCtx(context);
}

void feed_compress(int codec, bool is_xerial, struct span in, struct bytes *out)
{
    switch (codec) {
    case 1:
        deflate_gzip(in, out);
        return;
    case 2:
        if (is_xerial) {
            put_xerial(in, out);
        } else {
            put_snappy_block(in, false, out);
        }
        return;
    case 3:
        put_lz4(in, out);
        return;
    case 4:
        put_zstd(in, out);
        return;
    default:
        bytes_put(out, in.data, in.bytes);
    }
}

void feed_build(const struct feed_header *header, struct span records, struct bytes *out)
{
    size_t start = out->count;
    bytes_i64(out, 0);
    bytes_i32(out, (int32_t)(61 - 12 + records.bytes));
    bytes_i32(out, 0);
    bytes_i8(out, 2);
    bytes_i32(out, 0);
    bytes_i16(out, header->attributes);
    bytes_i32(out, header->last_offset_delta);
    bytes_i64(out, header->base_timestamp);
    bytes_i64(out, header->max_timestamp);
    bytes_i64(out, header->producer_id);
    bytes_i16(out, header->producer_epoch);
    bytes_i32(out, header->base_sequence);
    bytes_i32(out, header->record_count);
    bytes_put(out, records.data, records.bytes);
    struct span covered = {.data = out->data + start + 21, .bytes = out->count - start - 21};
    store_be32(out->data + start + 17, broker_crc32c(covered));
}

static void note(struct feed *feed, int64_t offset, int64_t timestamp_ms, uint64_t hash)
{
    if (feed->record_count == feed->record_capacity) {
        feed->record_capacity = feed->record_capacity * 2 + 64;
        feed->records = realloc(feed->records, feed->record_capacity * sizeof(struct feed_record));
    }
    feed->records[feed->record_count++] = (struct feed_record){offset, timestamp_ms, hash};
}

static uint64_t put_random(struct feed *feed, size_t count, bool has, struct bytes *body,
                           uint64_t hash)
{
    uint8_t filler[64];
    bytes_varint(body, has ? (int64_t)count : -1);
    size_t at = body->count;
    for (size_t left = has ? count : 0; left > 0;) {
        size_t bytes = left < sizeof(filler) ? left : sizeof(filler);
        memset(filler, (int)broker_random(feed->broker), sizeof(filler));
        bytes_put(body, filler, bytes);
        left -= bytes;
    }
    return feed_hash(hash, (struct span){.data = body->data + at, .bytes = has ? count : 0}, has);
}

/* Appends a random record to a batch's records; returns its hash. */
static uint64_t put_record(struct feed *feed, int32_t offset_delta, int64_t timestamp_delta,
                           struct bytes *records)
{
    struct broker *broker = feed->broker;
    struct bytes body = {0};
    size_t value_bytes = broker_random(broker) % 40;
    if (broker_random(broker) % 16 == 0) {
        value_bytes = broker_random(broker) % feed->value_bytes_max;
    }
    uint32_t headers = broker_random(broker) % 4 == 0 ? (uint32_t)(broker_random(broker) % 4) : 0;
    bytes_i8(&body, 0);
    bytes_varint(&body, timestamp_delta);
    bytes_varint(&body, offset_delta);
    uint64_t hash = put_random(feed, broker_random(broker) % 10, broker_random(broker) % 3 != 0,
                               &body, FEED_HASH_START);
    hash = put_random(feed, value_bytes, broker_random(broker) % 8 != 0, &body, hash);
    bytes_varint(&body, headers);
    for (uint32_t i = 0; i < headers; i++) {
        hash = put_random(feed, broker_random(broker) % 4, true, &body, hash);
        hash = put_random(feed, broker_random(broker) % 4, broker_random(broker) % 2, &body, hash);
    }
    bytes_varint(records, (int64_t)body.count);
    bytes_put(records, body.data, body.count);
    bytes_free(&body);
    return hash;
}

static void update_stable(struct feed *feed)
{
    int64_t stable = -1;
    for (int i = 0; i < FEED_TRANSACTIONS_MAX; i++) {
        const struct feed_transaction *transaction = &feed->transactions[i];
        if (transaction->is_open && transaction->first_offset >= 0 &&
            (stable < 0 || transaction->first_offset < stable)) {
            stable = transaction->first_offset;
        }
    }
    feed->partition->stable_offset = stable;
}

static void end_transaction(struct feed *feed, int index)
{
    struct feed_transaction *transaction = &feed->transactions[index];
    struct bytes records = {0};
    struct bytes batch = {0};
    const uint8_t value[6] = {0, 0, 0, 0, 0, 7};
    transaction->is_open = false;
    bytes_varint(&records, 1 + 1 + 1 + 1 + 4 + 1 + 6 + 1);
    bytes_i8(&records, 0);
    bytes_varint(&records, 0);
    bytes_varint(&records, 0);
    bytes_varint(&records, 4);
    bytes_i16(&records, 0);
    bytes_i16(&records, transaction->will_abort ? 0 : 1);
    bytes_varint(&records, sizeof(value));
    bytes_put(&records, value, sizeof(value));
    bytes_varint(&records, 0);
    struct feed_header header = {.attributes = ATTRIBUTE_CONTROL | ATTRIBUTE_TXN,
                                 .base_timestamp = 5,
                                 .max_timestamp = 5,
                                 .producer_id = index + 1,
                                 .base_sequence = -1,
                                 .record_count = 1};
    feed_build(&header, (struct span){.data = records.data, .bytes = records.count}, &batch);
    struct broker_batch *stored = broker_log_append(
        feed->partition, (struct span){.data = batch.data, .bytes = batch.count}, 0);
    if (transaction->will_abort && transaction->first_offset >= 0) {
        struct broker_partition *partition = feed->partition;
        partition->aborted = realloc(partition->aborted, (partition->aborted_count + 1) *
                                                             sizeof(struct broker_aborted));
        partition->aborted[partition->aborted_count++] =
            (struct broker_aborted){index + 1, transaction->first_offset, stored->base_offset};
    }
    bytes_free(&records);
    bytes_free(&batch);
    update_stable(feed);
}

static void choose_timestamps(struct broker *broker, struct feed_header *header)
{
    int64_t base = 1700000000000 + (int64_t)(broker_random(broker) % 100000);
    header->base_timestamp = base;
    header->max_timestamp = base + 1000;
    if (broker_random(broker) % 8 == 0) {
        header->attributes |= ATTRIBUTE_LOG_TIME;
    }
    if (broker_random(broker) % 8 == 0) {
        /* The base is the horizon then: deltas need more than 32 bits. */
        header->attributes |= ATTRIBUTE_HORIZON;
        header->base_timestamp += (int64_t)1 << 40;
    }
}

/* Picks the transaction that a batch belongs to; -1 none. */
static int choose_transaction(struct feed *feed, struct feed_header *header)
{
    struct broker *broker = feed->broker;
    header->producer_id = -1;
    header->producer_epoch = -1;
    header->base_sequence = -1;
    int index = (int)(broker_random(broker) % (FEED_TRANSACTIONS_MAX * 2));
    if (index >= FEED_TRANSACTIONS_MAX) {
        return -1;
    }
    struct feed_transaction *transaction = &feed->transactions[index];
    if (!transaction->is_open) {
        *transaction = (struct feed_transaction){.is_open = true,
                                                 .will_abort = broker_random(broker) % 2,
                                                 .first_offset = feed->partition->next_offset};
    }
    header->attributes |= ATTRIBUTE_TXN;
    header->producer_id = index + 1;
    header->producer_epoch = 0;
    return index;
}

void feed_batch(struct feed *feed)
{
    struct broker *broker = feed->broker;
    struct feed_header header = {.attributes = (int16_t)(broker_random(broker) % 5)};
    int codec = header.attributes;
    choose_timestamps(broker, &header);
    int transaction = choose_transaction(feed, &header);
    bool is_hidden =
        feed->reads_committed && transaction >= 0 && feed->transactions[transaction].will_abort;
    int32_t slots = (int32_t)(broker_random(broker) % 12) + 1;
    uint32_t kept_odds = broker_random(broker) % 4 == 0 ? (uint32_t)(broker_random(broker) % 3) : 3;
    struct bytes records = {0};
    for (int32_t i = 0; i < slots; i++) {
        if (broker_random(broker) % 3 >= kept_odds) {
            continue; /* compacted away */
        }
        int64_t timestamp = header.max_timestamp - 1000 + (int64_t)(broker_random(broker) % 1000);
        uint64_t hash = put_record(feed, i, timestamp - header.base_timestamp, &records);
        header.record_count++;
        if (header.attributes & ATTRIBUTE_LOG_TIME) {
            timestamp = header.max_timestamp;
        }
        if (!is_hidden) {
            note(feed, feed->partition->next_offset + i, timestamp, hash);
        }
    }
    header.last_offset_delta = slots - 1;
    struct bytes stored = {0};
    struct bytes batch = {0};
    feed_compress(codec, broker_random(broker) % 2,
                  (struct span){.data = records.data, .bytes = records.count}, &stored);
    feed_build(&header, (struct span){.data = stored.data, .bytes = stored.count}, &batch);
    (void)broker_log_append(feed->partition,
                            (struct span){.data = batch.data, .bytes = batch.count},
                            (uint32_t)header.last_offset_delta);
    bytes_free(&records);
    bytes_free(&stored);
    bytes_free(&batch);
    update_stable(feed);
    if (transaction >= 0 && broker_random(broker) % 3 == 0) {
        end_transaction(feed, transaction);
    }
}

void feed_end(struct feed *feed)
{
    for (int i = 0; i < FEED_TRANSACTIONS_MAX; i++) {
        if (feed->transactions[i].is_open) {
            end_transaction(feed, i);
        }
    }
}

void feed_free(struct feed *feed)
{
    free(feed->records);
    feed->records = NULL;
}
