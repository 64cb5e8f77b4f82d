/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a Fetch v11 response, walked partition by partition without copying. A cursor keeps
 * offsets into the body, not pointers, because a held response may move between turns. */
#pragma once

#include "base.h"
#include "dataplane/kafka/wire.h"

#define KAFKA_FETCH_VERSION         11
#define KAFKA_ABORTED_ENTRY_BYTES   16
#define KAFKA_FETCH_TOPIC_BYTES_MIN 6

/* One partition of a response. */
struct kafka_fetch_entry {
    struct span topic; /* borrowed from the body that the cursor walked */
    int32_t partition;
    int16_t error_code;
    int64_t high_watermark;
    int64_t last_stable_offset;
    uint32_t aborted_count;
    size_t aborted_at; /* offset in the body of {producer id i64, first offset i64} entries */
    size_t records_at; /* offset in the body */
    size_t records_bytes;
};

struct kafka_fetch_cursor {
    size_t at;
    uint32_t topics_left;
    uint32_t partitions_left;
    size_t topic_at;
    size_t topic_bytes;
    int32_t throttle_ms;
    int16_t error_code;
    bool bad;
};

/* Reads the response's head.
 * threads  any */
struct kafka_fetch_cursor kafka_fetch_cursor_of(struct span body);

/* Steps to the next partition.
 * body     the same bytes as before, wherever they are now
 * returns  false at the end, or when the bytes are malformed (cursor->bad)
 * threads  any */
bool kafka_fetch_cursor_next(struct kafka_fetch_cursor *cursor, struct span body,
                             struct kafka_fetch_entry *out);

/* Walks a whole response to see that it is well formed up to its last byte.
 * threads  any */
bool kafka_fetch_is_well_formed(struct span body);
