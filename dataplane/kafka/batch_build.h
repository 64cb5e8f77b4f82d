/* SPDX-License-Identifier: Apache-2.0 */
/* Builds one record batch, magic 2, in a buffer of the caller: records are appended one by one
 * behind a header that is written last. A finished batch can be stamped anew with another producer
 * epoch and sequence; nothing else of it changes, so a retry is the same bytes. */
#pragma once

#include "base.h"
#include "dataplane/kafka/batch.h"
#include "dataplane/kafka/codec.h"

/* What a record takes at most beside key, value and headers. */
#define KAFKA_RECORD_OVERHEAD_BYTES 40

struct kafka_builder {
    uint8_t *data;
    size_t capacity;
    size_t bytes; /* header and records so far; as finished once it is */
    int32_t record_count;
    bool has_base; /* else the first record sets the base */
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms;
};

/* A record to append. Headers come as an array, or already encoded. */
struct kafka_build_record {
    struct span key;
    struct span value;
    bool has_key;
    bool has_value;
    int64_t timestamp_ms;
    uint32_t header_count;
    const struct kafka_header *headers;
    struct span encoded_headers; /* instead of headers, when data is set */
};

/* The idempotent producer's place of a batch. */
struct kafka_stamp {
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    bool is_transactional; /* a finished batch keeps what it was finished with */
};

/* Starts an empty batch.
 * into     at least a batch header; borrowed while the builder is used
 * threads  owner of the builder */
void kafka_builder_init(struct kafka_builder *builder, struct span_mut into);

/* Tells how many bytes a record takes at most.
 * threads  any */
size_t kafka_builder_record_bytes(const struct kafka_build_record *record);

/* Appends a record.
 * returns  false when it does not fit: the batch is as before
 * threads  owner of the builder */
bool kafka_builder_append(struct kafka_builder *builder, const struct kafka_build_record *record);

/* Compresses the records as LZ4 where that makes them smaller, and writes the header.
 * codec    for KAFKA_CODEC_LZ4; NULL leaves them plain
 * scratch  for the compressed records, as large as the batch; unused when codec is NULL
 * threads  owner of the builder */
void kafka_builder_finish(struct kafka_builder *builder, const struct kafka_stamp *stamp,
                          struct kafka_codec *codec, struct span_mut scratch);

/* Writes another stamp into a finished batch, and its checksum.
 * whole    the finished batch
 * threads  owner of the batch */
void kafka_batch_stamp(struct span_mut whole, const struct kafka_stamp *stamp);
