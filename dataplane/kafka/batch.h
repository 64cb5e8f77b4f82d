/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches, magic 2, read in place: header, CRC-32C, records, record headers.
 *
 *   0        8       12     16    17   21          23                27
 *   | base   | length | leader| magic| crc | attributes | last offset  | base timestamp, max
 *   | offset | after  | epoch | (2)  |     |            | delta        | timestamp, producer id ...
 *   The CRC covers everything from the attributes on; `length` counts from the leader epoch on.
 *   Records follow at byte 61, as one compressed blob when the attributes name a codec.
 *
 * Magic 0 and 1 (message sets of brokers before 0.11) have the magic at the same place; they are
 * recognised and reported, never parsed. Source: KIP-98, KIP-534 (delete horizon). */
#pragma once

#include "base.h"
#include "dataplane/kafka/wire.h"

#define KAFKA_BATCH_HEADER_BYTES 61
#define KAFKA_BATCH_PREFIX_BYTES 12 /* base offset and length, not counted by length */

enum kafka_codec_kind {
    KAFKA_CODEC_NONE = 0,
    KAFKA_CODEC_GZIP = 1,
    KAFKA_CODEC_SNAPPY = 2,
    KAFKA_CODEC_LZ4 = 3,
    KAFKA_CODEC_ZSTD = 4,
};

enum kafka_timestamp_type {
    KAFKA_TIMESTAMP_CREATE = 0,
    KAFKA_TIMESTAMP_LOG_APPEND,
};

enum kafka_batch_verdict {
    KAFKA_BATCH_OK = 0,
    KAFKA_BATCH_SHORT,  /* cut off: total_bytes says how long it is, 0 when even that is cut off */
    KAFKA_BATCH_LEGACY, /* magic 0 or 1 */
    KAFKA_BATCH_BAD,    /* not a batch */
};

/* A batch's header, and where its records are. */
struct kafka_batch {
    int64_t base_offset;
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms;
    int64_t producer_id;
    size_t total_bytes; /* with the prefix */
    int32_t leader_epoch;
    int32_t last_offset_delta;
    int32_t base_sequence;
    int32_t record_count;
    uint32_t crc;
    int16_t producer_epoch;
    uint8_t codec; /* enum kafka_codec_kind, or a number that nobody has defined yet */
    uint8_t magic;
    enum kafka_timestamp_type timestamp_type;
    bool is_transactional;
    bool is_control;
    struct span records; /* as stored, perhaps compressed */
};

/* One record of a batch; offset and timestamp are made absolute by the batch's header. */
struct kafka_batch_record {
    int64_t offset;
    int64_t timestamp_ms;
    bool has_key;
    bool has_value;
    uint32_t header_count;
    struct span key;
    struct span value;
    struct span headers;
};

enum kafka_control {
    KAFKA_CONTROL_ABORT = 0,
    KAFKA_CONTROL_COMMIT = 1,
    KAFKA_CONTROL_OTHER = 2,
};

/* A record header. */
struct kafka_header {
    struct span key;
    struct span value;
    bool has_value;
};

/* Reads a batch's header; does not look at the CRC or the records.
 * in       starts at a batch, may hold more after it
 * out      filled for OK; for SHORT and LEGACY total_bytes, magic and base_offset as far as known
 * threads  any
 * source   KIP-98, record batch v2 */
enum kafka_batch_verdict kafka_batch_parse(struct span in, struct kafka_batch *out);

/* Checks the CRC-32C of a whole batch.
 * whole    the batch's total_bytes, at least a header
 * threads  any */
bool kafka_batch_crc_is_good(struct span whole);

/* Computes CRC-32C (Castagnoli) as Kafka stores it.
 * threads  any */
uint32_t kafka_crc32c(struct span in);

/* Tells the first offset after the batch, which is where the next fetch goes on, whatever records
 * compaction has left in it.
 * threads  any */
static inline int64_t kafka_batch_next_offset(const struct kafka_batch *batch)
{
    return batch->base_offset + batch->last_offset_delta + 1;
}

/* Takes the next record.
 * batch    the header that the reader's bytes belong to
 * reader   over the decompressed records
 * returns  false (and reader->bad) when the record is not possible
 * threads  any
 * source   KIP-98, record */
bool kafka_batch_record_next(const struct kafka_batch *batch, struct kafka_reader *reader,
                             struct kafka_batch_record *out);

/* Reads which marker a control batch carries.
 * records  of a control batch, never compressed
 * returns  KAFKA_CONTROL_OTHER for unknown types and for what cannot be read
 * threads  any */
enum kafka_control kafka_batch_control(const struct kafka_batch *batch);

/* Walks a record's headers: start with the record's headers span and header_count.
 * left     headers not walked yet, counted down
 * rest     bytes not walked yet, moved on
 * returns  false at the end
 * threads  any */
bool kafka_header_next(struct span *rest, uint32_t *left, struct kafka_header *out);
