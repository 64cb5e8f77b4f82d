/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a scripted cluster's partitions with batches as brokers hold them: every codec by its real
 * library, gaps of compaction, empty batches, transactions with their markers, both timestamp
 * types, delete horizons. Keeps the list of records that a reader must see, in order. */
#pragma once

#include "base.h"
#include "tests/sim/broker.h"

#define FEED_TRANSACTIONS_MAX 3

/* A record that a reader must see. */
struct feed_record {
    int64_t offset;
    int64_t timestamp_ms;
    uint64_t hash;
};

struct feed_transaction {
    bool is_open;
    bool will_abort;
    int64_t first_offset; /* -1 nothing written yet */
};

struct feed {
    struct broker *broker;
    struct broker_partition *partition;
    bool reads_committed; /* hide aborted records */
    size_t value_bytes_max;
    struct feed_transaction transactions[FEED_TRANSACTIONS_MAX];
    struct feed_record *records;
    uint32_t record_count;
    uint32_t record_capacity;
};

/* Hashes what a reader sees of a record; start with FEED_HASH_START.
 * threads  any */
uint64_t feed_hash(uint64_t hash, struct span bytes, bool has);

#define FEED_HASH_START UINT64_C(0xcbf29ce484222325)

/* Appends one random batch.
 * threads  one */
void feed_batch(struct feed *feed);

/* Ends all open transactions.
 * threads  one */
void feed_end(struct feed *feed);

/* Frees the list.
 * threads  one */
void feed_free(struct feed *feed);

/* Compresses by the codec's own library; snappy as one raw block or in the xerial container.
 * out      appended
 * threads  any */
void feed_compress(int codec, bool is_xerial, struct span in, struct bytes *out);

/* The fields of a batch header that vary. */
struct feed_header {
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
};

/* Puts a whole batch together.
 * out      appended
 * threads  any */
void feed_build(const struct feed_header *header, struct span records, struct bytes *out);
